"""Elementwise expressions on the calling thread, piece by piece.

What one operation makes of a piece is in the processor's own caches for the next, as it would not
be of whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from dparray._graph.node import Node, Scalar
from dparray._graph.ops import CONVERT, Op

#: Elements of a piece: few enough for the caches, and so many that NumPy's calls do not count.
ELEMENTS = 1 << 15

#: Shorter arrays are computed whole.
FEWEST = 2 * ELEMENTS


class _Call(NamedTuple):
    """An operation on what the numbers stand for: parts of arrays, temporaries, and scalars."""

    node: Node
    function: Callable[..., Any] | None  # a ufunc; None for what has none
    operands: tuple[int, ...]
    out: int
    is_plain: bool  # all in one dtype, which NumPy then chooses by itself


def can_be_cut(order: Sequence[Node]) -> bool:
    """Whether operations can be computed piece by piece: all elementwise, of one large shape."""
    if len(order) < 2:
        return False
    shape = order[-1].shape
    if prod(shape) < FEWEST:
        return False
    return all(
        type(node.op) is Op
        and node.shape == shape
        and not (node.op is CONVERT and type(node.operands[0]) is Scalar)
        for node in order
    )


def compute(
    order: Sequence[Node],
    reuses: Sequence[int],
    leaves: dict[int, np.ndarray],
    numbers: dict[tuple[int, int], Any],
    targets: dict[int, np.ndarray],
    special: Callable[..., Any],
    has_ufunc: Callable[[Op], bool],
) -> bool:
    """Compute operations piece by piece; false if that would not be right.

    Args:
        order: the operations, operands before users; :func:`can_be_cut` is true of them.
        reuses: see :class:`dparray._evaluate.plan.HostStep`.
        leaves: the arrays that they read, by the ids of operands.
        numbers: the values of scalars, by the ids of nodes and the positions of operands.
        targets: the arrays that values are stored to, by the ids of nodes.
        special: computes a node that has no plain ufunc, of operands, into an output or ``None``.
        has_ufunc: whether an operation is its ufunc.
    """
    shape = order[-1].shape
    stored = list(targets.values())
    is_apart = True
    for source in leaves.values():
        for target in stored:
            if np.may_share_memory(source, target):
                if not _is_same(source, target) or len(stored) > 1:
                    return False
                is_apart = False
    arrays = [_broadcast(each, shape) for each in (*leaves.values(), *stored)]
    if all(each.flags.c_contiguous for each in arrays):
        arrays = [each.reshape(-1) for each in arrays]
        shape = (prod(shape),)
    at: dict[Any, int] = {key: number for number, key in enumerate((*leaves, *targets))}
    before, axis, count = _cut(shape)
    piece = (count, *shape[axis + 1 :])
    values: list[Any] = [*arrays, *numbers.values()]
    for number, key in enumerate(numbers, len(arrays)):
        at[key] = number
    first_own = len(values)
    # Nobody reads the result's memory until it is there; rows that lie apart cost more to add to.
    is_free = is_apart and len(stored) == 1 and stored[0].flags.c_contiguous
    early = stored[0] if is_free else None
    calls: list[_Call] = []
    own: set[int] = set()  # numbers of what may be written again
    for node, reused in zip(order, reuses, strict=True):
        op = node.op
        assert type(op) is Op
        operands = tuple(
            [
                at[id(part) if type(part) is Node else (id(node), position)]
                for position, part in enumerate(node.operands)
            ]
        )
        out = at.get(id(node), -1)
        if out < 0:
            if reused >= 0 and operands[reused] in own:
                out = operands[reused]
            elif early is not None and early.dtype == node.dtype:
                out, early = len(arrays) - 1, None
            else:
                out = len(values)
                values.append(np.empty(piece, node.dtype))
            own.add(out)
            at[id(node)] = out
        is_plain = len({*node.loop, *[values[each].dtype for each in (*operands, out)]}) == 1
        calls.append(_Call(node, op.ufunc if has_ufunc(op) else None, operands, out, is_plain))
    temporaries = values[first_own:]
    for index, length in _pieces(before, axis, shape[axis], count):
        for number, array in enumerate(arrays):
            values[number] = array[index]
        if length != count:
            values[first_own:] = [each[:length] for each in temporaries]
        for node, ufunc, operands, out, is_plain in calls:
            given = [values[each] for each in operands]
            if ufunc is None:
                special(node, node.op, given, values[out])
            elif is_plain:
                ufunc(*given, out=values[out])
            else:
                ufunc(*given, out=values[out], casting="unsafe", signature=node.loop)
        if length != count:
            values[first_own:] = temporaries
    return True


def _is_same(source: np.ndarray, target: np.ndarray) -> bool:
    """Whether two arrays have each element at the same place."""
    return (
        source.ctypes.data == target.ctypes.data
        and source.strides == target.strides
        and source.shape == target.shape
        and source.dtype == target.dtype
    )


def _broadcast(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return array if array.shape == shape else np.broadcast_to(array, shape)


def _cut(shape: tuple[int, ...]) -> tuple[tuple[int, ...], int, int]:
    """Which axis is cut: those before it are walked one by one. The axis, and a piece's extent."""
    axis, inner = 0, prod(shape[1:])
    while inner > 2 * ELEMENTS:
        axis += 1
        inner //= shape[axis]
    extent = shape[axis]
    pieces = -(-extent // max(1, ELEMENTS // inner))
    return shape[:axis], axis, -(-extent // pieces)


def _pieces(
    before: tuple[int, ...], axis: int, extent: int, count: int
) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The index of each piece, and its extent along the axis that is cut."""
    for leading in np.ndindex(before):
        for start in range(0, extent, count):
            stop = min(start + count, extent)
            yield (*leading, slice(start, stop)), stop - start
