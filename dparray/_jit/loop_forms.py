"""The choice between a kernel and native code for a ``prange`` loop on a CPU device.

A kernel computes neighboring iterations of the innermost ``prange`` loop together, as elements of
vectors. Native code runs them one after the other, and its innermost loop is vectorized.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set
from types import FunctionType
from typing import Any, NamedTuple

from dparray._jit.dependences import uses_of
from dparray._jit.inference import Inference, Value, constant
from dparray._jit.source import (
    Source,
    assigned_names,
    entries_of,
    expressions_of,
    python_function_of,
    source_of,
    upward_exposed,
    used_names,
    users_function,
)
from dparray.exceptions import KernelCompileError

#: Functions of numbers that take so long that it pays to compute vectors of them.
_SLOW_FUNCTIONS = frozenset(
    {"exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
     "atan", "atan2", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh", "asinh",
     "acosh", "atanh", "arcsinh", "arccosh", "arctanh", "pow", "power", "cbrt", "erf", "erfc",
     "gamma", "lgamma"}
)  # fmt: skip


#: Those that the host calls for each number.
_OF_LIBRARY = frozenset({"gamma", "lgamma"})


class _Access(NamedTuple):
    """An element that the innermost loops read or write.

    Attributes:
        node: its expression.
        inner: the innermost loop around it.
    """

    node: ast.Subscript
    inner: ast.For | ast.While


def calls_slow_functions(body: Sequence[ast.stmt]) -> bool:
    """Return whether statements call functions of which it pays to compute vectors."""
    return any(_is_slow(node) for each in body for node in ast.walk(each))


def is_slow(body: Sequence[ast.stmt]) -> bool:
    """Return whether an iteration takes so long that several are better computed as a vector."""
    return bool(_depth(body)) or any(map(_is_slow, _innermost(body, 0)))


def are_vectors(source: Source, body: Sequence[ast.stmt]) -> bool:
    """Return whether the host computes vectors of all functions that statements call."""
    statements = [*body, *_called(source, body)]
    calls = [each for one in statements for each in ast.walk(one) if isinstance(each, ast.Call)]
    return _OF_LIBRARY.isdisjoint(map(_name_of, calls))


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


def other_loops(source: Source, body: Any) -> Iterator[ast.For | ast.While]:
    """Yield the outermost loops that are not ``prange`` loops, and have none inside."""
    for statement in body:
        if source.is_prange(statement):
            continue
        is_loop = isinstance(statement, ast.For | ast.While)
        if is_loop and not any(map(source.is_prange, ast.walk(statement))):
            yield statement
        else:
            yield from other_loops(source, _inner(statement))


def remarks(
    source: Source, body: Sequence[ast.stmt], types: Inference, reduced: Set[str] = frozenset()
) -> Iterator[str]:
    """Yield why native code of innermost loops is not vectorized, with what to write instead.

    Args:
        source: the function.
        body: statements with loops; without a loop, the body of a ``prange`` loop.
        types: the types of the function.
        reduced: the reduction variables of a ``prange`` loop around the statements.
    """
    inner = [each for each in _loops(body) if not _depth(each.body)]
    found = [each for loop in inner for each in _obstacles(source, loop, types, reduced)]
    if not inner:
        found = list(_costs(source, body, types))
    for line, problem in dict.fromkeys((each.lineno, text) for each, text in found):
        yield f"line {line}: {problem}"


def _obstacles(
    source: Source, loop: ast.For | ast.While, types: Inference, reduced: Set[str]
) -> Iterator[tuple[Any, str]]:
    """Yield the statements of an innermost loop that keep it from being vectorized, and why."""
    jump = next((each for each in _innermost(loop.body, 0) if isinstance(each, ast.Break)), None)
    if isinstance(loop, ast.While) or jump is not None:
        yield (
            jump or loop,
            "the loop ends at a value that it computes, so that its iterations run in order; if "
            "the number of iterations has a limit, let range count to it, and keep the results by "
            "a condition: x = new if is_active else x",
        )
        return
    targets = assigned_names(loop.target)
    for access in _accesses([loop], 1):
        text = ast.unparse(access.node)
        if used_names(ast.Tuple(entries_of(access.node)[:-1])) & targets:
            yield (
                access.node,
                f"{text} steps over rows in the innermost loop; let that loop run over the last "
                "index",
            )
    for name in sorted(upward_exposed(loop.body) & assigned_names(loop.body) - targets - reduced):
        used = [use for each in loop.body for use in uses_of(each, name)]
        reads = [node for node, op in used if op is None and isinstance(node.ctx, ast.Load)]
        if reads:
            yield (
                reads[0],
                f"{name} carries a value to the next iteration, so that they run in order; compute "
                f"what does not need {name} in a loop of its own",
            )
        elif used[0][1] in (ast.Add, ast.Mult) and not _is_integer(
            types.of(ast.Name(name, ast.Load()))
        ):
            yield (
                used[0][0],
                f"{ast.unparse(used[0][0])} adds in order, one element after the other, if these "
                "are floats; dp.jit(fastmath=True) allows any order",
            )
    for store, load in _carried(loop, targets):
        yield (
            load,
            f"{ast.unparse(load)} may be the {ast.unparse(store)} of an earlier iteration, so that "
            "they run in order; use dp.cumulative_sum or dp.cumulative_prod if that is all, or "
            f"compute what does not need {ast.unparse(load)} in a loop of its own",
        )
    yield from _costs(source, loop.body, types)


def _carried(loop: ast.For, targets: set[str]) -> Iterator[tuple[ast.Subscript, ast.Subscript]]:
    """Yield the elements that a loop writes, each with one that a later iteration reads there."""
    nodes = [node for each in loop.body for node in ast.walk(each) if _is_element(node)]
    elements = [each for each in nodes if isinstance(each, ast.Subscript) and not _is_slice(each)]
    last = loop.iter.args[-1] if isinstance(loop.iter, ast.Call) and loop.iter.args[2:] else None
    is_reverse = last is not None and ast.unparse(last).startswith("-")
    for store in elements:
        for load in elements:
            if not isinstance(store.ctx, ast.Store) or not isinstance(load.ctx, ast.Load):
                continue
            pairs = list(zip(entries_of(store), entries_of(load), strict=False))
            moving = [each for each in pairs if used_names(ast.Tuple(list(each))) & targets]
            others = [each for each in pairs if each not in moving]
            is_same = ast.unparse(store.value) == ast.unparse(load.value) and len(moving) == 1
            if not is_same or any(ast.unparse(a) != ast.unparse(b) for a, b in others):
                continue
            at, read = (_offset(each, targets) for each in moving[0])
            if at is None or read is None:
                continue
            if (read > at) if is_reverse else (read < at):
                yield store, load


def _offset(index: ast.expr, targets: set[str]) -> int | None:
    """Return the number that an index adds to a loop variable, if it is such a sum."""
    if isinstance(index, ast.Name):
        return 0 if index.id in targets else None
    if isinstance(index, ast.BinOp) and isinstance(index.op, ast.Add | ast.Sub):
        number = constant(index.right)
        is_plain = isinstance(index.left, ast.Name) and index.left.id in targets
        if is_plain and type(number) is int:
            return number if isinstance(index.op, ast.Add) else -number
    return None


def _costs(source: Source, body: Sequence[ast.stmt], types: Inference) -> Iterator[tuple[Any, str]]:
    """Yield the expressions of an innermost loop that vectors cannot compute, and why."""
    chosen = _dependent(body, "")
    for node in (node for each in body for node in ast.walk(each)):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            entries = ast.Tuple(entries_of(node))
            if any(map(_is_element, ast.walk(entries))) or used_names(entries) & chosen:
                yield (
                    node,
                    f"{ast.unparse(node)} is stored at an index that was read, one element after "
                    "the other; loop over the elements that are written and read the others by "
                    "index, or use dp.bincount or dp.add.at",
                )
        elif isinstance(node, ast.Call):
            function = users_function(source.resolve(node.func))
            if function is not None and _stays_a_call(source, function):
                yield (
                    node,
                    f"{ast.unparse(node.func)} has a loop or calls itself, so that the call stays; "
                    "write what it does without either, or let its own loop run over neighbors",
                )
        elif isinstance(node, ast.BinOp):
            kinds = [types.of(each) for each in (node.left, node.right)]
            sizes = {
                each.dtype.itemsize: each.dtype
                for each in kinds
                if _is_integer(each) and not each.is_weak
            }
            if len(sizes) > 1:
                narrow, wide = sizes[min(sizes)], sizes[max(sizes)]
                yield (
                    node,
                    f"{ast.unparse(node)} mixes {narrow} and {wide}, of which a vector holds fewer "
                    f"elements; convert the other before the loop if its values fit: "
                    f"x = x.astype('{narrow}')",
                )


def _is_integer(kind: Any) -> bool:
    return isinstance(kind, Value) and kind.dtype.kind in "iu"


def _stays_a_call(source: Source, plain: FunctionType) -> bool:
    """Return whether a function has a loop or calls itself; others are inlined."""
    try:
        called = source if plain is source.function else source_of(plain)
    except KernelCompileError:  # the compiler reports it
        return False
    body = called.definition.body
    nodes = [node for each in body for node in ast.walk(each) if isinstance(node, ast.Call)]
    is_own = any(
        (python_function_of(f) or f) is plain for f in map(called.resolve, (n.func for n in nodes))
    )
    return bool(_depth(body)) or is_own


def contiguous_last(names: Sequence[str], body: Sequence[ast.stmt]) -> list[int]:
    """Return the positions of loop variables, that of the one which steps along the last dimension
    of most elements last.
    """
    found = [node for each in body for node in ast.walk(each) if isinstance(node, ast.Subscript)]
    rows = {id(node.value) for node in found}  # ``x[i]`` in ``x[i][j]``
    counts = [0] * len(names)
    for node in found:
        if id(node) not in rows:
            entries, outer = entries_of(node), node.value
            while isinstance(outer, ast.Subscript):
                entries, outer = entries_of(outer) + entries, outer.value
            for at, name in enumerate(names):
                uses = [name in used_names(each) for each in entries]
                counts[at] += uses[-1] - any(uses[:-1])
    fastest = max(reversed(range(len(names))), key=counts.__getitem__)
    return [at for at in range(len(names)) if at != fastest] + [fastest]


def _called(source: Source, body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of the user's functions that a body calls."""
    for statement in body:
        for node in ast.walk(statement):
            called = node.func if isinstance(node, ast.Call) else None
            function = None if called is None else users_function(source.resolve(called))
            if function is not None:
                try:
                    yield from source_of(function).definition.body
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
            yield from (node for each in expressions_of(statement) for node in ast.walk(each))
        yield from _innermost(_inner(statement), depth - is_loop)


def _accesses(body: Sequence[ast.stmt], depth: int) -> Iterator[_Access]:
    for loop in _loops(body):
        if _depth([loop]) == 1:
            for node in _innermost(loop.body, 0):
                if isinstance(node, ast.Subscript) and not _is_slice(node):
                    yield _Access(node, loop)


def _is_slice(node: ast.Subscript) -> bool:
    return any(isinstance(each, ast.Slice) for each in entries_of(node))


def _is_element(node: ast.AST) -> bool:
    """Return whether an expression reads an array, and not its shape."""
    return isinstance(node, ast.Subscript) and not (
        isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    )


def _is_slow(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return not (isinstance(node.right, ast.Constant) and type(node.right.value) is int)
    if not isinstance(node, ast.Call):
        return False
    return _name_of(node) in _SLOW_FUNCTIONS


def _name_of(node: ast.Call) -> str:
    """Return the plain name of the function that is called."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return node.func.id if isinstance(node.func, ast.Name) else name


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
    entries = entries_of(node)
    if any(used_names(each) & dependent for each in entries):
        return True
    return _is_far(entries, {variable})


def _is_strided(access: _Access) -> bool:
    """Return whether the next iteration of the innermost loop uses an element that is far away."""
    inner = access.inner
    names = assigned_names(inner.body) if isinstance(inner, ast.For) else set()
    if isinstance(inner, ast.For):
        names |= assigned_names(inner.target)
    return _is_far(entries_of(access.node), names)


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
