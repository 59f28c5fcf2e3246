"""Code that only Python computes as written: texts of numbers, some ranges and powers.

Nothing computes sums of floats in an array of integers.

``2 ** k`` is an integer, or a float if ``k`` is negative. Compiled code has one type for it: an
integer where the code shows that no exponent is negative, otherwise a float. Where a float could
give another result than an integer, the power is rejected. A power of an array or an element is an
integer, and NumPy raises for a negative exponent.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dparray._jit.inference import WEAK_INT, Inference, Value, constant, is_array, is_number
from dparray._jit.signs import is_natural
from dparray._jit.source import Source
from dparray.exceptions import KernelCompileError


def refused_in_native_code(
    source: Source, tree: ast.AST, types: Inference
) -> KernelCompileError | None:
    """Return the error for the first text, call or power that only Python computes."""
    text = _refused_text(source, tree, types)
    return text or _refused_array(source, tree, types) or refused_power(source, tree, types)


def _refused_array(source: Source, tree: ast.AST, types: Inference) -> KernelCompileError | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and types.called(node) == "arange":
            kinds = [types.of(each) for each in node.args]
            is_plain = all(kind == WEAK_INT for kind in kinds)
            if is_plain and getattr(types.of(node), "dtype", None) != np.uint64:
                continue
            return source.error(
                node,
                "native code computes arange of floats and uint64 otherwise than NumPy",
                "make the array outside of the loop",
            )
        if isinstance(node, ast.AugAssign) and is_array(types.of(node.target)):
            own, kind = types.of(node.target), types.of(node.value)
            result = types.binary(node.op, own, kind)
            if isinstance(result, Value) and not np.can_cast(result.dtype, own.dtype, "same_kind"):
                target = ast.unparse(node.target)
                return source.error(
                    node,
                    f"a result of {result.dtype} does not fit {target}, which is {own.dtype}",
                    f"convert first: {ast.unparse(node.value)}.astype('{own.dtype}')",
                )
    return None


def _refused_text(source: Source, tree: ast.AST, types: Inference) -> KernelCompileError | None:
    # Exceptions are made in Python.
    raised = {
        id(node)
        for each in ast.walk(tree)
        for part in (getattr(each, "exc", None), getattr(each, "msg", None))
        if part is not None
        for node in ast.walk(part)
    }
    for node in ast.walk(tree):
        if id(node) in raised:
            continue
        values: list[ast.expr] = []
        name = types.called(node) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.FormattedValue):
            name, values = "format" if node.format_spec else "str", [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            values = node.args if name in ("str", "repr", "print") else []
        for value in values:
            kind = types.of(value)
            if isinstance(kind, Value) and not _has_text(kind, name):
                return source.error(
                    node if isinstance(node, ast.Call) else value,
                    f"native code cannot make a text of {ast.unparse(value)}, which is not a "
                    "Python integer",
                    "make the text outside of the loop, or outside of the compiled function",
                )
    return None


def _has_text(kind: Value, function: str) -> bool:
    """Return whether the text by a function, or ``format``, is Python's in native code."""
    if function == "print":
        return kind.dtype.char not in "efF"
    is_integer = not kind.ndim and kind.dtype.kind in "biu"
    return is_integer and (function == "str" or (function == "repr" and kind.is_weak))


def refused_power(source: Source, tree: ast.AST, types: Inference) -> KernelCompileError | None:
    """Return the error for the first power that compiled code cannot compute as Python does."""
    parents = {inner: node for node in ast.walk(tree) for inner in ast.iter_child_nodes(node)}
    for node, base, exponent in _powers(tree, types):
        left, right = types.of(base), types.of(exponent)
        kinds = (left, right)
        if not all(isinstance(kind, Value) and kind.dtype.kind in "biu" for kind in kinds):
            continue
        number, text = constant(exponent), ast.unparse(base)
        is_negative = type(number) is int and number < 0
        if not (left.is_weak and right.is_weak):
            if is_negative:
                return source.error(
                    node,
                    f"an integer to the negative power {number} is not an integer",
                    f"convert first: {text}.astype('float64')"
                    if not is_number(left)
                    else f"convert first: float({text})",
                )
        elif not (
            is_negative
            or isinstance(node, ast.Call)
            or is_natural(node)
            or _meets_float(node, parents, types)
        ):
            shown = ast.unparse(exponent)
            return source.error(
                node,
                f"{ast.unparse(base)} ** ({shown}) is an integer, or a float if {shown} is "
                "negative, and compiled code has one type for it",
                f"write float({text}) ** ({shown}) for a float, or "
                f"{text} ** max({shown}, 0) for an integer",
            )
    return None


def _powers(tree: ast.AST, types: Inference) -> Iterator[tuple[ast.expr, ast.expr, ast.expr]]:
    """Yield the powers of code, each with its base and its exponent."""
    for node in ast.walk(tree):
        found: Any = node
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            yield found, node.left, node.right
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Pow):
            yield found, node.target, node.value
        elif isinstance(node, ast.Call) and types.called(node) == "power" and len(node.args) == 2:
            yield found, *node.args


def _meets_float(node: ast.AST, parents: Mapping[ast.AST, ast.AST], types: Inference) -> bool:
    """Return whether a number is used as a float, so that an integer would give the same."""
    parent: Any = parents.get(node)
    if isinstance(parent, ast.BinOp) and not isinstance(parent.op, ast.Div):
        other = types.of(parent.right if parent.left is node else parent.left)
        if isinstance(other, Value) and other.dtype.kind in "fc":
            return True
        is_exact = isinstance(parent.op, ast.Add | ast.Sub | ast.Mult)
        return is_exact and is_number(other) and _meets_float(parent, parents, types)
    if isinstance(parent, ast.UnaryOp):
        return not isinstance(parent.op, ast.Not) and _meets_float(parent, parents, types)
    if isinstance(parent, ast.Call):
        return ast.unparse(parent.func).startswith(("math.", "float"))
    if isinstance(parent, ast.Assign | ast.AugAssign):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        kinds = [types.of(each) for each in targets]
        are_floats = all(isinstance(each, Value) and each.dtype.kind in "fc" for each in kinds)
        is_update = isinstance(parent, ast.AugAssign)
        return are_floats and (is_update or all(isinstance(t, ast.Subscript) for t in targets))
    return isinstance(parent, ast.BinOp)
