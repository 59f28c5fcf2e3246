"""The choice between a kernel and native code for a ``prange`` loop on a CPU device.

A kernel computes neighboring iterations of the innermost ``prange`` loop together, as elements of
vectors. Native code runs them one after the other, and its innermost loop is vectorized.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from dparray._jit.source import Source, assigned_names, source_of, used_names
from dparray.exceptions import KernelCompileError

#: Functions of numbers that take so long that it pays to compute vectors of them.
_SLOW_FUNCTIONS = frozenset(
    {"exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
     "atan", "atan2", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh", "asinh",
     "acosh", "atanh", "arcsinh", "arccosh", "arctanh", "pow", "power", "cbrt", "erf", "erfc",
     "gamma", "lgamma"}
)  # fmt: skip


class _Access(NamedTuple):
    """An element that the innermost loops read or write.

    Attributes:
        node: its expression.
        inner: the innermost loop around it.
    """

    node: ast.Subscript
    inner: ast.For | ast.While


def reason_for_kernel(loop: Any) -> str:
    """Return why a loop is a kernel on a CPU device, or ``""`` if it is native code there."""
    body = [*loop.body, *_called(loop.source, loop.body)]
    depth = _depth(body)
    innermost = list(_innermost(body, depth))
    if any(map(_is_slow, innermost)):
        return "it computes vectors of mathematical functions"
    if not depth:
        return ""
    variable = loop.loops[-1][0]
    dependent = _dependent(body, variable)
    accesses = {ast.unparse(each.node): each for each in _accesses(body, depth)}.values()
    scattered = sum(_is_scattered(each.node, variable, dependent) for each in accesses)
    ranges = [each.iter for each in _loops(body) if isinstance(each, ast.For)]
    scattered += any(used_names(each) & {variable, *dependent} for each in ranges)
    strided = sum(map(_is_strided, accesses))
    is_shared = any(variable not in used_names(each.node.slice) for each in accesses)
    if scattered > strided or (scattered and not is_shared):
        return ""
    return "neighboring iterations share what its inner loops read, or read neighboring elements"


def remarks(loop: Any) -> Iterator[str]:
    """Yield why native code of a loop is not vectorized, each with what to write instead."""
    depth = _depth(loop.body)
    for each in _accesses(loop.body, depth):
        target = each.inner.target if isinstance(each.inner, ast.For) else ast.Tuple([])
        if used_names(ast.Tuple(_entries(each.node)[:-1])) & assigned_names(target):
            yield (
                f"line {each.node.lineno}: {ast.unparse(each.node)} steps over rows in the "
                "innermost loop; let that loop run over the last index"
            )
    for statement in _innermost(loop.body, depth) if depth else ():
        is_sum = isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name)
        names = {each.name for each in loop.reductions}
        if is_sum and statement.target.id not in names:
            yield (
                f"line {statement.lineno}: {ast.unparse(statement)} adds in order, one element "
                "after the other, if these are floats; dp.jit(fastmath=True) allows any order"
            )


def contiguous_last(names: Sequence[str], body: Sequence[ast.stmt]) -> list[int]:
    """Return the positions of loop variables, that of the one which steps along the last dimension
    of most elements last.
    """
    found = [node for each in body for node in ast.walk(each) if isinstance(node, ast.Subscript)]
    rows = {id(node.value) for node in found}  # ``x[i]`` in ``x[i][j]``
    counts = [0] * len(names)
    for node in found:
        if id(node) not in rows:
            entries, outer = _entries(node), node.value
            while isinstance(outer, ast.Subscript):
                entries, outer = _entries(outer) + entries, outer.value
            for at, name in enumerate(names):
                uses = [name in used_names(each) for each in entries]
                counts[at] += uses[-1] - any(uses[:-1])
    fastest = max(reversed(range(len(names))), key=counts.__getitem__)
    return [at for at in range(len(names)) if at != fastest] + [fastest]


def _called(source: Source, body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of the user's functions that a body calls."""
    for statement in body:
        for node in ast.walk(statement):
            function = source.resolve(node.func) if isinstance(node, ast.Call) else None
            plain = getattr(function, "py_func", function)
            home = (getattr(plain, "__module__", None) or "").partition(".")[0]
            if isinstance(plain, FunctionType) and home not in ("dparray", "numpy", "numba"):
                try:
                    yield from source_of(plain).definition.body
                except KernelCompileError:  # the compiler reports it
                    continue


def _loops(body: Sequence[ast.stmt]) -> Iterator[ast.For | ast.While]:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.For | ast.While):
                yield node


def _inner(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements directly below a statement."""
    return (each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt))


def _depth(body: Any) -> int:
    """Return how deep the loops in a body are nested."""
    return max(
        (_depth(_inner(each)) + isinstance(each, ast.For | ast.While) for each in body), default=0
    )


def _innermost(body: Any, depth: int) -> Iterator[Any]:
    """Yield the statements in loops nested so deep, and the expressions of these statements."""
    for statement in body:
        is_loop = isinstance(statement, ast.For | ast.While)
        if not depth:
            yield statement
            own = (e for e in ast.iter_child_nodes(statement) if isinstance(e, ast.expr))
            yield from (node for each in own for node in ast.walk(each))
        yield from _innermost(_inner(statement), depth - is_loop)


def _accesses(body: Sequence[ast.stmt], depth: int) -> Iterator[_Access]:
    for loop in _loops(body):
        if _depth([loop]) == 1:
            for node in _innermost(loop.body, 0):
                if isinstance(node, ast.Subscript) and not _is_slice(node):
                    yield _Access(node, loop)


def _is_slice(node: ast.Subscript) -> bool:
    return any(isinstance(each, ast.Slice) for each in _entries(node))


def _is_element(node: ast.AST) -> bool:
    """Return whether an expression reads an array, and not its shape."""
    return isinstance(node, ast.Subscript) and not (
        isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    )


def _entries(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _is_slow(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return not (isinstance(node.right, ast.Constant) and type(node.right.value) is int)
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return (node.func.id if isinstance(node.func, ast.Name) else name) in _SLOW_FUNCTIONS


def _dependent(body: Sequence[ast.stmt], variable: str) -> set[str]:
    """Return the names whose values differ between iterations in ways that are not known."""
    found: set[str] = set()
    nodes = [node for each in body for node in ast.walk(each)]
    for _ in range(3):  # a statement may read what a later statement assigns
        for node in nodes:
            if isinstance(node, ast.For):
                target, value = node.target, node.iter
            elif isinstance(node, ast.Assign | ast.AugAssign):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                value = node.value
            else:
                continue
            is_read = any(map(_is_element, ast.walk(value)))
            if is_read or used_names(value) & {variable, *found}:
                found |= assigned_names(target)
    return found


def _is_scattered(node: ast.Subscript, variable: str, dependent: set[str]) -> bool:
    """Return whether neighboring iterations use elements that are far from each other."""
    entries = _entries(node)
    if any(used_names(each) & dependent for each in entries):
        return True
    return _is_far(entries, {variable})


def _is_strided(access: _Access) -> bool:
    """Return whether the next iteration of the innermost loop uses an element that is far away."""
    inner = access.inner
    names = assigned_names(inner.body) if isinstance(inner, ast.For) else set()
    if isinstance(inner, ast.For):
        names |= assigned_names(inner.target)
    return _is_far(_entries(access.node), names)


def _is_far(entries: list[ast.expr], names: set[str]) -> bool:
    """Return whether an index changes by more than one element with some names."""
    *others, last = entries
    if any(used_names(each) & names for each in others):
        return True
    far = ast.Subscript | ast.Mult | ast.FloorDiv | ast.Call
    return any(
        isinstance(getattr(each, "op", each), far) and bool(used_names(each) & names)
        for each in ast.walk(last)
        if isinstance(each, ast.expr)
    )
