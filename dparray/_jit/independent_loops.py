"""Loops inside of ``prange`` loops whose iterations are known to be independent, too.

They become dimensions of the kernel, so that its work-items are single elements and not rows.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dparray._jit.inference import constant
from dparray._jit.source import (
    Source,
    assigned_names,
    entries_of,
    own_jumps,
    root_of,
    source_of,
    upward_exposed,
    used_names,
    users_function,
)
from dparray.exceptions import KernelCompileError

_STATEMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.For, ast.While, ast.Pass,
               ast.Continue, ast.Break)  # fmt: skip
_NOT_IN_EXPRESSIONS = (ast.Lambda, ast.NamedExpr, ast.ListComp, ast.SetComp, ast.DictComp,
                       ast.GeneratorExp, ast.Starred, ast.Slice)  # fmt: skip
#: Calls of users' functions inside of each other that are looked through.
_MAX_DEPTH = 4
_BUILTINS = (abs, bool, complex, divmod, float, int, len, max, min, pow, range, round)
#: Attributes of arrays that are no elements of them.
_PROPERTIES = ("shape", "size", "ndim")


class Independent(NamedTuple):
    """A loop whose iterations are independent under two conditions, which a call has to check.

    Arrays that it writes share no memory with others. Its variable is not below ``least``: negative
    indices count from the end, where they may meet others.
    """

    loop: ast.For
    least: int


def independent_loops(
    source: Source, body: Sequence[ast.stmt], outer: set[str], most: int
) -> list[Independent]:
    """Return the loops, outer ones first, that are each the only statement of the one before.

    Iterations are independent if they carry no variable on, and if an axis of each array that they
    write counts with the loop in all accesses.

    Args:
        source: the function.
        body: the body of a ``prange`` loop.
        outer: the variables of the loops around it.
        most: how many are wanted at most.
    """
    found: list[Independent] = []
    while len(found) < most and len(body) == 1 and isinstance(body[0], ast.For):
        loop = body[0]
        least = _least(source, loop, outer)
        if least is None:
            break
        found.append(Independent(loop, least))
        outer = outer | assigned_names(loop.target)
        body = loop.body
    return found


def written_arrays(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names of the arrays of which statements write elements."""
    return {root_of(node) for node in _stores(body)}


def _stores(body: Sequence[ast.stmt]) -> Iterator[ast.Subscript]:
    for node in _nodes(body):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            yield node


def _nodes(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    return (node for each in body for node in ast.walk(each))


def _least(source: Source, loop: ast.For, outer: set[str]) -> int | None:
    """Return from where on iterations of a loop are independent; ``None`` if they may not be."""
    call, target, body = loop.iter, loop.target, loop.body
    if loop.orelse or not isinstance(target, ast.Name) or target.id in outer:
        return None
    if not isinstance(call, ast.Call) or source.resolve(call.func) not in (None, range):
        return None
    if not isinstance(call.func, ast.Name) or call.func.id != "range" or call.keywords:
        return None
    assigned = assigned_names(body)
    changing = assigned | outer | {target.id}
    if not 1 <= len(call.args) <= 3 or any(used_names(each) & changing for each in call.args):
        return None
    if target.id in assigned or upward_exposed(body) & assigned:
        return None
    if any(isinstance(each, ast.Break) for each in own_jumps(body)):
        return None
    written = written_arrays(body)
    if not written or written & assigned or not _is_plain(source, body, written):
        return None
    least = [_least_of(name, body, target.id) for name in written]
    known = [each for each in least if each is not None]
    return max(known) if len(known) == len(least) else None


def _is_plain(source: Source, body: Sequence[ast.stmt], written: set[str]) -> bool:
    """Return whether statements do nothing but compute numbers and access elements."""
    for node in _nodes(body):
        is_refused = isinstance(node, ast.stmt) and not isinstance(node, _STATEMENTS)
        if is_refused or isinstance(node, _NOT_IN_EXPRESSIONS):
            return False
        if isinstance(node, ast.Call) and not _is_of_numbers(source, node.func):
            return False
    # The name of a written array stands only where an element or a property of it is meant.
    parents = [node for node in _nodes(body) if isinstance(node, ast.Subscript | ast.Attribute)]
    meant = [
        node.value
        for node in parents
        if isinstance(node, ast.Subscript) or node.attr in _PROPERTIES
    ]
    names = [node for node in _nodes(body) if isinstance(node, ast.Name) and node.id in written]
    return all(any(name is each for each in meant) for name in names)


def _is_of_numbers(source: Source, node: ast.expr, depth: int = 0) -> bool:
    """Return whether a function computes numbers from values, and changes none."""
    function = source.resolve(node)
    if function is None and isinstance(node, ast.Name):
        function = getattr(builtins, node.id, None)
    plain = users_function(function)
    if plain is None:
        home = getattr(function, "__module__", None)
        return (
            function in _BUILTINS or home == math.__name__ or isinstance(function, np.ufunc | type)
        )
    if type(function).__name__ not in ("JitFunction", "DeviceFunction"):
        return False  # Kernels call no others.
    try:
        inner = source_of(plain)
    except KernelCompileError:  # the compiler reports it
        return False
    calls = [each for each in _nodes(inner.definition.body) if isinstance(each, ast.Call)]
    return (
        depth < _MAX_DEPTH
        and not written_arrays(inner.definition.body)
        and all(_is_of_numbers(inner, each.func, depth + 1) for each in calls)
    )


def _least_of(name: str, body: Sequence[ast.stmt], variable: str) -> int | None:
    """Return from where on a loop counts an axis of an array up from 0, for all its accesses.

    ``None`` if they do not agree in an axis, or if none counts with the loop.
    """
    nodes = [node for node in _nodes(body) if isinstance(node, ast.Subscript)]
    nodes = [node for node in nodes if isinstance(node.value, ast.Name) and node.value.id == name]
    least = []
    for entries in zip(*map(entries_of, nodes), strict=False):
        added = {_added(each, variable) for each in entries}
        if len(added) == 1 and None not in added:
            least += [-each for each in added if each is not None]
    return min(least, default=None)


def _added(entry: ast.expr, variable: str) -> int | None:
    """Return the number that an entry of an index adds to a variable, if it is such a sum."""
    if isinstance(entry, ast.Name):
        return 0 if entry.id == variable else None
    if isinstance(entry, ast.BinOp) and isinstance(entry.op, ast.Add | ast.Sub):
        number = constant(entry.right)
        if isinstance(entry.left, ast.Name) and entry.left.id == variable and type(number) is int:
            return number if isinstance(entry.op, ast.Add) else -number
    return None
