"""Find the arguments that a kernel may write, from its source."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from dparray._language.source import source_of
from dparray.kernel_api import AtomicRef, vec_load, vec_store

_FACTS = frozenset({"shape", "strides", "size", "ndim", "dtype", "itemsize", "nbytes"})


def read_only_parameters(
    function: Callable[..., Any], dimensions: tuple[int | None, ...]
) -> frozenset[str]:
    """Return the parameters of which a function only reads elements and properties; others may be
    written.

    Args:
        function: a Python function. Without the source that it was compiled from, or for host
            stand-ins of kernel functions, no parameter is known to be read-only.
        dimensions: the number of dimensions of array arguments, ``None`` for others.
    """
    found = None
    if not (function.__module__ or "").startswith("dparray.kernel_api"):
        found = source_of(function, exact=True)
    if found is None:
        return frozenset()
    tree = found.tree
    names = [each.arg for each in (*tree.args.posonlyargs, *tree.args.args)]
    of_name = dict(zip(names, dimensions, strict=False))
    known = inspect.getclosurevars(function)
    called = {**known.globals, **known.nonlocals}
    harmless: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            if isinstance(node.ctx, ast.Load) and _is_element(node, of_name.get(node.value.id)):
                harmless.add(id(node.value))
        elif isinstance(node, ast.Attribute) and node.attr in _FACTS:
            harmless.add(id(node.value))
        elif isinstance(node, ast.Call) and _resolved(node.func, called) is vec_load:
            harmless |= set(map(id, node.args))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "len":
                harmless |= set(map(id, node.args))
            harmless |= _only_read_by(called.get(node.func.id), node.args, of_name)
    return frozenset(names) - {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and id(node) not in harmless
    }


def assigned_parameters(function: Callable[..., Any]) -> frozenset[str]:
    """Return the parameters whose elements a function surely writes: by assignments, atomic
    operations and stores of vectors.
    """
    found = source_of(function, exact=True)
    if found is None:
        return frozenset()
    known = inspect.getclosurevars(function)
    called = {**known.globals, **known.nonlocals}
    written = set()
    for node in ast.walk(found.tree):
        place: Any = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            place = node.value
        elif isinstance(node, ast.Call) and node.args:
            is_store = _resolved(node.func, called) in (AtomicRef, vec_store)
            place = node.args[0] if is_store else None
        while isinstance(place, ast.Subscript):
            place = place.value
        written |= {place.id} if isinstance(place, ast.Name) else set()
    arguments = found.tree.args
    return frozenset(written & {each.arg for each in (*arguments.posonlyargs, *arguments.args)})


def _resolved(function: ast.expr, called: dict[str, Any]) -> Any:
    """Return the function that a call names, directly or in a module."""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return getattr(called.get(function.value.id), function.attr, None)
    return called.get(function.id) if isinstance(function, ast.Name) else None


def _is_element(node: ast.Subscript, dimensions: int | None) -> bool:
    """Return whether an index selects one element, rather than a row that could be written."""
    entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return len(entries) == dimensions and not any(
        isinstance(entry, ast.Slice | ast.Starred) for entry in entries
    )


def _only_read_by(function: Any, arguments: list[ast.expr], of_name: dict[str, Any]) -> set[int]:
    """Return the arguments that the called function only reads."""
    function = getattr(function, "py_func", function)
    if not inspect.isfunction(function):
        return set()
    dimensions = tuple(
        of_name.get(each.id) if isinstance(each, ast.Name) else None for each in arguments
    )
    try:
        reads = read_only_parameters(function, dimensions)
    except RecursionError:
        return set()
    parameters = inspect.signature(function).parameters
    return {
        id(argument) for name, argument in zip(parameters, arguments, strict=False) if name in reads
    }
