"""Which integers of a function's source are known not to be negative."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any


def mark_powers(definition: ast.FunctionDef, names: Mapping[str, Any]) -> None:
    """Mark the powers whose exponents are not negative.

    Copies of the nodes keep the marks (see :mod:`dparray._jit.only_python`).
    """
    powers: list[Any] = [
        node
        for node in ast.walk(definition)
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow)
    ]
    values = _values_of(definition, names) if powers else {}
    for node in powers:
        exponent = node.right if isinstance(node, ast.BinOp) else node.value
        node.is_natural = _is_natural(exponent, values, frozenset())


def is_natural(node: ast.AST) -> bool:
    """Return whether a power has the mark of :func:`mark_powers`."""
    return getattr(node, "is_natural", False)


def _values_of(
    definition: ast.FunctionDef, names: Mapping[str, Any]
) -> dict[str, list[ast.expr | None]]:
    """Return the expressions that are assigned to each name, ``None`` for any other value.

    A loop variable has the range that it runs through.
    """
    values: dict[str, list[ast.expr | None]] = {
        name: [ast.Constant(value)] for name, value in names.items() if type(value) is int
    }
    single: dict[int, ast.expr] = {}
    for node in ast.walk(definition):
        if isinstance(node, ast.Assign):
            single |= {id(target): node.value for target in node.targets}
        elif isinstance(node, ast.AugAssign):
            single[id(node.target)] = ast.BinOp(node.target, node.op, node.value)
        elif isinstance(node, ast.For):
            single[id(node.target)] = node.iter
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            values.setdefault(node.id, []).append(single.get(id(node)))
        elif isinstance(node, ast.arg):
            values.setdefault(node.arg, []).append(None)
    return values


_KEEPING_SIGN = ast.Add | ast.Mult | ast.FloorDiv | ast.RShift | ast.LShift | ast.Pow


def _is_natural(
    node: ast.expr | None, values: dict[str, list[ast.expr | None]], inside: frozenset[str]
) -> bool:
    """Return whether an integer is at least 0, or a range has such integers only.

    Args:
        node: the expression of the integer or the range.
        values: the expressions that are assigned to each name.
        inside: the names whose values are assumed not to be negative, as by an induction.
    """

    def natural(each: ast.expr | None) -> bool:
        return _is_natural(each, values, inside)

    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and node.value >= 0
    if isinstance(node, ast.Name):
        known, within = values.get(node.id, [None]), inside | {node.id}
        return node.id in inside or all(_is_natural(each, values, within) for each in known)
    if isinstance(node, ast.BinOp):
        sides = [natural(node.left), natural(node.right)]
        if isinstance(node.op, ast.BitAnd):
            return any(sides)
        return (
            sides[1]
            if isinstance(node.op, ast.Mod)
            else (isinstance(node.op, _KEEPING_SIGN) and all(sides))
        )
    if isinstance(node, ast.IfExp):
        return natural(node.body) and natural(node.orelse)
    if isinstance(node, ast.Attribute):
        return node.attr in ("size", "ndim")
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if not isinstance(node, ast.Call) or not node.args or node.keywords:
        return False
    name = ast.unparse(node.func).rpartition(".")[2]
    if name in ("range", "prange"):
        bounds = [natural(each) for each in node.args]
        return len(bounds) == 1 or (bounds[0] and all(bounds[2:]))
    if name == "max":
        return any(map(natural, node.args))
    return name in ("len", "abs") or (name in ("min", "int") and all(map(natural, node.args)))
