"""Elementwise expressions on the calling thread, piece by piece.

What one operation makes of a piece is in the processor's own caches for the next, as it would not
be of whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from dparray._graph.node import Node, Scalar, layout_of
from dparray._graph.ops import CONVERT, Op
from dparray._layout import Layout

#: Bytes of a piece of the widest array: few enough for the caches, and so many that NumPy's calls
#: do not count.
NBYTES = 1 << 20

#: Shorter arrays are computed node by node.
FEWEST = 1 << 16

#: Gives what computes an operation of operands and an output of such dtypes, called with them.
FunctionOf = Callable[[Node, Sequence[np.dtype[Any]]], Callable[..., Any]]


class _Calls(NamedTuple):
    """Functions, each with what takes its operands and its output from all values.

    The values are those of arrays, scalars and temporaries, whose dtypes come with them.
    """

    calls: tuple[tuple[Callable[..., Any], Callable[[Sequence[Any]], tuple[Any, ...]]], ...]
    temporaries: tuple[np.dtype[Any], ...]


class Recipe:
    """How the calling thread computes elementwise operations of one large shape, piece by piece.

    Args:
        order: the operations, operands before users.
        reuses: see :class:`dparray._evaluate.plan.HostStep`.
        stored: those that are stored, and where.

    Attributes:
        sources, targets: the layouts that are read and written, with slots for blocks.
        scalars: the numbers of the scalars, and the types that they are used in.
    """

    __slots__ = (
        "_calls",
        "_early",
        "_order",
        "_reuses",
        "_stored",
        "scalars",
        "sources",
        "targets",
    )

    def __init__(
        self, order: Sequence[Node], reuses: Sequence[int], stored: Sequence[tuple[Any, Layout]]
    ) -> None:
        self._order, self._reuses = order, reuses
        self._stored = [id(value) for value, _ in stored]
        leaves, scalars = self._read()
        self.sources = tuple(map(layout_of, leaves.values()))
        self.targets = tuple([layout for _, layout in stored])
        self.scalars = tuple(scalars.values())
        self._calls: _Calls | None = None
        self._early: _Calls | None = None

    def compute(
        self,
        sources: Sequence[np.ndarray],
        targets: Sequence[np.ndarray],
        scalars: Sequence[Any],
        function_of: FunctionOf,
    ) -> bool:
        """Compute the operations; false if that would not be right piece by piece."""
        is_apart, may_share_memory = True, np.may_share_memory
        for source in sources:
            for target in targets:
                if may_share_memory(source, target):
                    if not _is_same(source, target) or len(targets) > 1:
                        return False
                    is_apart = False
        shape = self._order[-1].shape
        arrays = [_broadcast(each, shape) for each in (*sources, *targets)]
        widest = max([each.itemsize for each in arrays])
        if all(each.flags.c_contiguous for each in arrays):
            arrays = [each.reshape(-1) for each in arrays]
            shape = (prod(shape),)
        before, axis, count = _cut(shape, max(1, NBYTES // widest))
        # Nobody reads the result's memory until it is there; to add to rows that lie apart costs
        # more.
        if is_apart and len(targets) == 1 and targets[0].flags.c_contiguous:
            found = self._early = self._early or self._bound(function_of, len(sources))
        else:
            found = self._calls = self._calls or self._bound(function_of, -1)
        calls, dtypes = found
        piece = (count, *shape[axis + 1 :])
        temporaries = [np.empty(piece, dtype) for dtype in dtypes]
        for index, length in _pieces(before, axis, shape[axis], count):
            values = [array[index] for array in arrays]
            values += scalars
            values += temporaries if length == count else [each[:length] for each in temporaries]
            for function, take in calls:
                function(*take(values))
        return True

    def _read(self) -> tuple[dict[int, Node], dict[tuple[int, int], tuple[int, Any]]]:
        """The leaves by their ids, and the scalars by the ids of nodes and their positions."""
        leaves: dict[int, Node] = {}
        scalars: dict[tuple[int, int], tuple[int, Any]] = {}
        inside = {id(node) for node in self._order}
        for node in self._order:
            for position, part in enumerate(node.operands):
                if type(part) is Scalar:
                    scalars[id(node), position] = part.value.number, node.loop[position].type
                elif type(part) is Node and id(part) not in inside:
                    leaves[id(part)] = part
        return leaves, scalars

    def _bound(self, function_of: FunctionOf, early: int) -> _Calls:
        """The operations as calls; ``early`` is an array that may hold what is not stored there."""
        leaves, scalars = self._read()
        dtypes = [layout.dtype for layout in (*self.sources, *self.targets)]
        dtypes += [np.dtype(kind) for _, kind in self.scalars]
        at: dict[Any, int] = {}
        for number, key in enumerate((*leaves, *self._stored, *scalars)):
            at[key] = number
        first_own = len(dtypes)
        own: set[int] = set()  # numbers of what may be written again
        calls = []
        for node, reused in zip(self._order, self._reuses, strict=True):
            operands = [
                at[id(part) if type(part) is Node else (id(node), position)]
                for position, part in enumerate(node.operands)
            ]
            out = at.get(id(node), -1)
            if out < 0:
                if reused >= 0 and operands[reused] in own:
                    out = operands[reused]
                elif early >= 0 and dtypes[early] == node.dtype:
                    out, early = early, -1
                else:
                    out = len(dtypes)
                    dtypes.append(node.dtype)
                own.add(out)
                at[id(node)] = out
            taken = (*operands, out)
            function = function_of(node, [dtypes[each] for each in taken])
            calls.append((function, itemgetter(*taken)))
        return _Calls(tuple(calls), tuple(dtypes[first_own:]))


def recipe(
    order: Sequence[Node], reuses: Sequence[int], stored: Sequence[tuple[Any, Layout]]
) -> Recipe | None:
    """How operations are computed piece by piece, if they can be: all elementwise, of one shape."""
    if len(order) < 2 or order[-1].size < FEWEST:
        return None
    shape, inside = order[-1].shape, {id(node) for node in order}
    if len({id(value) for value, _ in stored} & inside) < len(stored):
        return None
    for node in order:
        if type(node.op) is not Op or node.shape != shape:
            return None
        if node.op is CONVERT and type(node.operands[0]) is Scalar:
            return None
    return Recipe(order, reuses, stored)


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


def _cut(shape: tuple[int, ...], most: int) -> tuple[tuple[int, ...], int, int]:
    """Which axis is cut for pieces of so many elements, and a piece's extent along it.

    Those before it, which come first, are walked one by one.
    """
    axis, inner = 0, prod(shape[1:])
    while inner > 2 * most:
        axis += 1
        inner //= shape[axis]
    extent = shape[axis]
    pieces = -(-extent // max(1, most // inner))
    return shape[:axis], axis, -(-extent // pieces)


def _pieces(
    before: tuple[int, ...], axis: int, extent: int, count: int
) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The index of each piece, and its extent along the axis that is cut."""
    for leading in product(*map(range, before)):
        for start in range(0, extent, count):
            stop = min(start + count, extent)
            yield (*leading, slice(start, stop)), stop - start
