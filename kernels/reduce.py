"""Reductions along an axis, in blocks, so that rounding errors grow slowly.

All kernels turn ``n`` elements into one for each block; the host launches them again until one
is left. An element passes through a chain of at most ``CHAIN`` operations before its result is
combined with others, so the error of a sum grows about as that of pairwise summation does (N.
Higham, "The accuracy of floating point summation", 1993). The order of operations depends on the
shape and the device's limits alone: the same array gives the same bits on every run.

A minimum or maximum that passes NaN on needs a second comparison, with which compilers give up on
vector instructions. So these kernels use the plain one, which may lose a NaN, and add up the
elements times zero beside it: that sum is NaN if there was a NaN (or an infinity), and only then
the elements are gone through again with care. Arguments of the factories: ``combine`` and
``combine_nan`` are device functions of two values of ``dtype``, the same one where NaN needs no
care; ``dtype`` is the scalar type to combine in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numpy import uint64

from dparray.kernel_api import MemoryScope, PrivateArray, group_barrier

__all__ = [
    "CHAIN",
    "make_reduce_columns_kernel",
    "make_reduce_rows_kernel",
    "make_reduce_runs_kernel",
]

Combine = Callable[[Any, Any], Any]

#: Elements that a work-item combines one after another.
CHAIN = 32

# Work-items that combine the results of a group, before one of them combines theirs.
_FOLDERS = 8

# Chains that one work-item advances side by side in a run, and how far: a vector register or two.
_WIDTH = 16
_DEPTH = 8


@cache
def make_reduce_rows_kernel(
    combine: Combine, combine_nan: Combine, dtype: type, chains: int
) -> Callable[..., None]:
    """Reduce blocks of each row, a work-group for each block: for long rows.

    Neighbouring work-items read neighbouring elements. Their results meet in local memory, in two
    steps rather than in a tree: a barrier costs more than a few operations.

    Launch over ``NdRange(rows * blocks * lanes, lanes)`` with ``blocks = ceil(n / (lanes * chains *
    CHAIN))``.

    Args:
        combine, combine_nan, dtype: see above.
        chains: of one work-item, one after another. With many, the two barriers are spread over
            many elements; with few, there are more groups.

    Kernel parameters:
        x (rows, n): input of any dtype that converts to ``dtype``, ``n`` not zero.
        partial (rows, blocks): output of ``dtype``.
        local (lanes,): local memory of ``dtype``.
    """
    steps = chains * CHAIN
    probes = combine is not combine_nan
    zero = dtype(0)

    def reduce_rows(nd_item: Any, x: Any, partial: Any, local: Any) -> None:
        group = nd_item.get_group()
        lane = nd_item.get_local_id(0)
        lanes = nd_item.get_local_range(0)
        blocks = partial.shape[1]
        number = group.get_group_id(0)
        row = uint64(number // blocks)
        block = number % blocks
        first = block * lanes * steps
        count = min(lanes * steps, x.shape[1] - first)

        if count == lanes * steps:
            # Loops of constant length without a condition: compiled to plain vector loads.
            total = dtype(x[row, uint64(first + lane)])
            probe = total * zero
            for chain in range(chains):
                start = first + lane + chain * CHAIN * lanes
                part = dtype(x[row, uint64(start)])
                if probes:
                    probe += part * zero
                for step in range(1, CHAIN):
                    value = dtype(x[row, uint64(start + step * lanes)])
                    part = dtype(combine(part, value))
                    if probes:
                        probe += value * zero
                total = part if chain == 0 else dtype(combine(total, part))
        elif lane < count:
            total = dtype(x[row, uint64(first + lane)])
            probe = total * zero
            for j in range(lane + lanes, count, lanes):
                value = dtype(x[row, uint64(first + j)])
                total = dtype(combine(total, value))
                if probes:
                    probe += value * zero
        else:
            total = zero
            probe = zero
        if probes and probe != probe:
            total = dtype(x[row, uint64(first + lane)])
            for j in range(lane + lanes, count, lanes):
                total = dtype(combine_nan(total, dtype(x[row, uint64(first + j)])))
        local[uint64(lane)] = total
        group_barrier(group, MemoryScope.WORK_GROUP)
        used = min(lanes, count)
        if lane < _FOLDERS and lane < used:
            total = local[uint64(lane)]
            for other in range(lane + _FOLDERS, used, _FOLDERS):
                total = dtype(combine_nan(total, local[uint64(other)]))
            local[uint64(lane)] = total
        group_barrier(group, MemoryScope.WORK_GROUP)
        if lane == 0:
            total = local[uint64(0)]
            for other in range(1, min(_FOLDERS, used)):
                total = dtype(combine_nan(total, local[uint64(other)]))
            partial[row, uint64(block)] = total

    return reduce_rows


@cache
def make_reduce_runs_kernel(
    combine: Combine, combine_nan: Combine, dtype: type
) -> Callable[..., None]:
    """Reduce whole rows, a work-item for several of them: for CPUs, whose work-item is a loop.

    The work-item advances ``_WIDTH`` chains side by side, which the compiler turns into vector
    instructions, and combines them pairwise.

    Launch over ``NdRange(items, 1)`` with ``items * rows_of_an_item`` not less than the rows.

    Kernel parameters:
        x (rows, n): input of any dtype that converts to ``dtype``, ``n`` not zero.
        out (rows,): output of ``dtype``.
        rows_of_an_item: neighbouring rows for each work-item.
    """
    probes = combine is not combine_nan
    halvings = _WIDTH.bit_length() - 1
    zero = dtype(0)

    def reduce_runs(nd_item: Any, x: Any, out: Any, rows_of_an_item: int) -> None:
        begin = nd_item.get_global_id(0) * rows_of_an_item
        pieces = x.shape[1] // _WIDTH
        sums = PrivateArray(_WIDTH, dtype)
        odd = PrivateArray(_WIDTH, dtype)
        for number in range(begin, min(begin + rows_of_an_item, x.shape[0])):
            row = uint64(number)
            total = dtype(x[row, uint64(0)])
            probe = total * zero
            for first in range(0, pieces, _DEPTH):
                place = uint64(first * _WIDTH)
                for k in range(_WIDTH):
                    sums[k] = dtype(x[row, place + uint64(k)])
                    if probes:
                        odd[k] = sums[k] * zero
                for _ in range(1, min(_DEPTH, pieces - first)):
                    place += uint64(_WIDTH)
                    for k in range(_WIDTH):
                        value = dtype(x[row, place + uint64(k)])
                        sums[k] = dtype(combine(sums[k], value))
                        if probes:
                            odd[k] += value * zero
                for halving in range(1, halvings + 1):
                    half = _WIDTH >> halving
                    for k in range(half):
                        sums[k] = dtype(combine(sums[k], sums[k + half]))
                        if probes:
                            odd[k] += odd[k + half]
                total = sums[0] if first == 0 else dtype(combine(total, sums[0]))
                if probes:
                    probe += odd[0]
            for j in range(max(1, pieces * _WIDTH), x.shape[1]):
                value = dtype(x[row, uint64(j)])
                total = dtype(combine(total, value))
                if probes:
                    probe += value * zero
            if probes and probe != probe:
                total = dtype(x[row, uint64(0)])
                for j in range(1, x.shape[1]):
                    total = dtype(combine_nan(total, dtype(x[row, uint64(j)])))
            out[row] = total

    return reduce_runs


@cache
def make_reduce_columns_kernel(
    combine: Combine, combine_nan: Combine, dtype: type, fastest: str
) -> Callable[..., None]:
    """Reduce blocks of the middle axis, a work-item for each block of each column.

    Launch over a ``Range`` of at least ``(outer, blocks, inner)`` work-items, with the extent named
    by ``fastest`` moved to the end. ``blocks = ceil(n / CHAIN)``. Needs no local memory.

    Args:
        combine, combine_nan, dtype: see above.
        fastest: ``"outer"``, ``"blocks"`` or ``"inner"``: in which of them neighbouring work-items
            differ. It should be ``"inner"`` if there are more than a few columns.

    Kernel parameters:
        x (outer, n, inner): input of any dtype that converts to ``dtype``, ``n`` not zero.
        partial (outer, blocks, inner): output of ``dtype``.
    """
    order = [name for name in ("outer", "blocks", "inner") if name != fastest] + [fastest]
    outer_index, block_index, column_index = map(order.index, ("outer", "blocks", "inner"))
    probes = combine is not combine_nan
    zero = dtype(0)

    def reduce_columns(item: Any, x: Any, partial: Any) -> None:
        outer = uint64(item.get_id(outer_index))
        block = uint64(item.get_id(block_index))
        column = uint64(item.get_id(column_index))
        if (
            outer < uint64(partial.shape[0])
            and block < uint64(partial.shape[1])
            and column < uint64(partial.shape[2])
        ):
            first = block * uint64(CHAIN)
            count = min(uint64(CHAIN), uint64(x.shape[1]) - first)
            total = dtype(x[outer, first, column])
            probe = total * zero
            for step in range(1, count):
                value = dtype(x[outer, first + uint64(step), column])
                total = dtype(combine(total, value))
                if probes:
                    probe += value * zero
            if probes and probe != probe:
                total = dtype(x[outer, first, column])
                for step in range(1, count):
                    value = dtype(x[outer, first + uint64(step), column])
                    total = dtype(combine_nan(total, value))
            partial[outer, block, column] = total

    return reduce_columns
