"""Checks of integers that do not fit the integer arrays and elements they are used with.

NumPy raises an error for them, and the compilers would wrap them around.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np

from dparray._jit.inference import Inference, Value
from dparray._jit.source import Source, assigned_names


def check_literals(source: Source, types: Inference) -> None:
    """Reject integer literals that do not fit the integer arrays and elements they are used with.

    NumPy raises; the compilers would wrap the number around.

    Raises:
        OverflowError: a literal does not fit; the message has the line.
    """
    for node, dtype in (*_meetings(source.definition, types), *_items_of_arrays(source, types)):
        number = _integer(node)
        if number is not None:
            check_fit(source, node, number, dtype)


def check_fit(source: Source, node: ast.expr, number: int, dtype: np.dtype[Any]) -> None:
    """Raise NumPy's error for an integer that does not fit a dtype.

    Raises:
        OverflowError: with the line.
    """
    limits = np.iinfo(dtype)
    if not limits.min <= number <= limits.max:
        raise OverflowError(
            source.text_of_error(
                node,
                f"{number} does not fit into {dtype} ({limits.min} ... {limits.max})",
                "convert the array first, as in x.astype(np.int64)",
            )
        )


def parameters_in_bounds(source: Source, types: Inference) -> list[tuple[str, ast.expr, Any]]:
    """Return the parameters that are Python integers and certainly meet narrower ones: the name,
    where it does, and the dtype.

    Statements under a condition are left out, since they may not run.
    """
    assigned = assigned_names(source.definition.body)
    found: list[tuple[str, ast.expr, Any]] = []
    for statement in _unconditional(source.definition.body):
        for node, dtype in _meetings(statement, types):
            is_narrow = dtype.itemsize < 8 or dtype.kind == "u"
            if isinstance(node, ast.Name) and node.id not in assigned and is_narrow:
                kind = types.parameters.get(node.id)
                if isinstance(kind, Value) and kind.is_weak and kind.dtype.kind == "i":
                    found.append((node.id, node, dtype))
    return found


def _unconditional(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that every call runs, unless a loop has no iteration."""
    for statement in body:
        if isinstance(statement, ast.For):
            yield from _unconditional(statement.body)
        is_branch = isinstance(statement, ast.If | ast.While | ast.With | ast.Try)
        jumps = ast.Return | ast.Raise | ast.Break | ast.Continue
        if any(isinstance(node, jumps) for node in ast.walk(statement)):
            if isinstance(statement, ast.Return):
                yield statement
            return
        has_choice = any(isinstance(node, ast.IfExp | ast.BoolOp) for node in ast.walk(statement))
        if not (is_branch or has_choice or isinstance(statement, ast.For | ast.FunctionDef)):
            yield statement


def _meetings(tree: ast.AST, types: Inference) -> Iterator[tuple[ast.expr, np.dtype[Any]]]:
    """Yield the operands and stored values that take the dtype of the integers that they meet."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Div):
            pairs += [(node.left, node.right), (node.right, node.left)]
        elif isinstance(node, ast.AugAssign) and not isinstance(node.op, ast.Div):
            pairs.append((node.value, node.target))
        elif isinstance(node, ast.Assign):
            pairs += [
                (node.value, target.value)
                for target in node.targets
                if isinstance(target, ast.Subscript)
            ]
        elif isinstance(node, ast.Call):
            pairs += _operands_of_call(node, types)
    for own, other in pairs:
        kind = types.of(other)
        if isinstance(kind, Value) and not kind.is_weak and kind.dtype.kind in "iu":
            yield own, kind.dtype


def _items_of_arrays(source: Source, types: Inference) -> Iterator[tuple[ast.expr, np.dtype[Any]]]:
    """Yield the items of lists that become arrays of integers of a given dtype."""
    for node in ast.walk(source.definition):
        if not isinstance(node, ast.Call) or types.called(node) not in ("array", "asarray"):
            continue
        given = [each.value for each in node.keywords if each.arg == "dtype"] or node.args[1:2]
        dtype: Any = source.resolve(given[0]) if given else None
        is_list = bool(node.args) and isinstance(node.args[0], ast.List | ast.Tuple)
        if is_list and isinstance(dtype, type) and issubclass(dtype, np.integer):
            for each in ast.walk(node.args[0]):
                if isinstance(each, ast.expr):
                    yield each, np.dtype(dtype)


def _operands_of_call(node: ast.Call, types: Inference) -> list[tuple[ast.expr, ast.expr]]:
    """Return the operands of a function that take a dtype, each with what has that dtype."""
    name, result, values = types.called(node), types.of(node), node.args
    function = vars(np).get(name)
    if name == "fill" and len(values) == 1 and isinstance(node.func, ast.Attribute):
        return [(values[0], node.func.value)]
    if name in ("full", "full_like") and len(values) > 1:
        return [(values[1], node)]
    if not isinstance(result, Value) or any(each.arg == "dtype" for each in node.keywords):
        return []
    if isinstance(function, type) and issubclass(function, np.integer) and len(values) == 1:
        return [(values[0], node)]
    first = 1 if name == "where" and len(values) == 3 else 0
    is_binary = isinstance(function, np.ufunc) and function.nin == 2 and len(values) > 1
    if (first or is_binary) and result.dtype.kind in "iu":
        one, other = values[first : first + 2]
        return [(one, other), (other, one)]
    return []


def _integer(node: ast.expr) -> int | None:
    """Return the value of an integer literal."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _integer(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None
