"""The values that loops read from the function around them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
from dparray._jit.inference import Known
from dparray._jit.source import Source, python_function_of
from dparray.exceptions import KernelCompileError

#: The most items of a tuple or list that are variables of a loop.
_MAX_ITEMS = 64
_PLAIN = (ndarray, float, int)
_NUMBERS = (bool, int, float, complex, np.generic)
_CONSTANTS = (*_NUMBERS, np.ndarray, NoneType, str, bytes, np.dtype, np.ufunc, BuiltinFunctionType)
_CONTAINERS = ("dict", "set", "frozenset", "range", "slice")


def check_types(source: Source, loop: ast.stmt, types: Mapping[str, Any]) -> None:
    """Check the inferred types of the variables that a loop reads.

    Raises:
        KernelCompileError: with the line where the loop reads a variable that it cannot read.
    """
    for name, kind in types.items():
        if isinstance(kind, Known):
            check_value(source, loop, name, kind.value)
    nodes = [*ast.walk(source.definition)]
    values = {id(node.targets[0]): node.value for node in nodes if isinstance(node, ast.Assign)}
    kinds: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in types:
            value = values.get(id(node))
            kind = type(value).__name__.removesuffix("Comp").lower()
            kind = ast.unparse(value.func) if isinstance(value, ast.Call) else kind
            kinds.setdefault(node.id, set()).add(kind)
    changed = {
        ast.unparse(node.value)
        for node in ast.walk(loop)
        if isinstance(node, ast.Attribute)
        or (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store))
    }
    for name, found in kinds.items():
        if found <= {*_CONTAINERS, *["list"] * (name in changed)}:
            raise unreadable(source, loop, name, found.pop())


def check_value(source: Source, loop: ast.stmt, name: str, value: Any) -> None:
    """Check that a loop can read the value of a variable.

    Raises:
        KernelCompileError: with the line where the loop reads it.
    """
    if type(value) not in _PLAIN and not _is_readable(value):
        raise unreadable(source, loop, name, type(value).__name__)


def unreadable(source: Source, loop: ast.stmt, name: str, kind: str) -> KernelCompileError:
    """Return the error for a variable that a loop cannot read."""
    reads = (node for node in ast.walk(loop) if isinstance(node, ast.Name) and node.id == name)
    return source.error(
        next(reads, loop),
        f"{name!r} is a {kind} made outside of the loop, which compiled code cannot use",
        f"use numbers and arrays, or tuples and lists of at most {_MAX_ITEMS} of them that the "
        "loop does not change",
    )


def unpacked(name: str, value: Any) -> tuple[str, dict[str, Any]] | None:
    """Return an expression for a short tuple or list of numbers and arrays, and its variables.

    Return ``None`` for another value.
    """
    text, parts = _display(name, value)
    is_short = text != name and len(parts) <= _MAX_ITEMS
    is_plain = all(isinstance(each, (ndarray, *_NUMBERS)) for each in parts.values())
    return (text, parts) if is_short and is_plain else None


def of_one_type(value: Sequence[Any]) -> Sequence[Any]:
    """Return a list of integers and floats as floats, as in an array of them."""
    is_mixed = type(value) is list and {*map(type, value)} == {int, float}
    return [*map(float, value)] if is_mixed else value


def _display(name: str, value: Any) -> tuple[str, dict[str, Any]]:
    if type(value) not in (tuple, list):
        return name, {name: value}
    items = [_display(f"{name}__{at}", item) for at, item in enumerate(of_one_type(value))]
    parts = {key: item for _, each in items for key, item in each.items()}
    return f"({''.join(f'{text}, ' for text, _ in items)})", parts


def _is_readable(value: Any) -> bool:
    if isinstance(value, tuple | list):
        if unpacked("", value) is not None:
            return True
        try:
            hash(value)  # a constant
        except TypeError:
            return False
        return all(map(_is_readable, value))
    is_number = isinstance(value, type) and issubclass(value, _NUMBERS)
    is_constant = is_number or isinstance(value, (ndarray, ModuleType, *_CONSTANTS))
    return is_constant or is_function(value)


def is_value(value: Any) -> bool:
    """Return whether a value is passed to compiled code, which contains functions and modules."""
    return not (is_function(value) or isinstance(value, ModuleType))


def is_function(value: Any) -> bool:
    """Return whether a value is a function that compiled code may call."""
    return isinstance(value, FunctionType | BuiltinFunctionType) or bool(python_function_of(value))
