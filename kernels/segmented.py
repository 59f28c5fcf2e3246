"""Reductions over segments of an array, and sparse matrix times vector.

Segments have very different lengths, so the elements are divided evenly and not the segments. Each
work-item takes a chunk of elements, looks up by bisection the segment in which it starts, and
finishes all segments that end in its chunk. Elements of a segment that began in an earlier chunk go
to a carry, and a last kernel of one item adds the few carries. This is the non-zero-split form of
segmented sums, as in D. Merrill and M. Garland, "Merge-based Parallel Sparse Matrix-Vector
Multiplication" (2016).

On a GPU a sub-group takes the chunk, so that its lanes read neighboring elements, and exchanges
values for the results of segments; a sub-group for each segment adds the carries.

Offsets that decrease or are out of bounds give meaningless results, but never accesses out of
bounds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import int64, uint64

from dparray.kernel_api import select_from_group
from dparray.kernels.combine import Operation, identity, reduce_run

__all__ = [
    "find_segment",
    "make_carry_by_sub_groups_kernel",
    "make_carry_kernel",
    "make_csr_matvec_kernel",
    "make_lane_reduction",
    "make_segmented_reduce_kernel",
    "make_segments_by_sub_groups_kernel",
]

# Chunks shorter than a vector are combined one by one.
_SHORT = 16


def find_segment(offsets: Any, segments: int, start: int) -> int:
    """Return the segment of the element at ``start``: the last that does not begin after it."""
    segment = 0
    beyond = segments
    while segment < beyond:
        middle = (segment + beyond) >> 1
        if int64(offsets[uint64(middle + 1)]) <= start:
            segment = middle + 1
        else:
            beyond = middle
    return segment


@functools.cache
def make_segmented_reduce_kernel(
    op: Operation, find_segment: Callable[..., Any], dtype: type
) -> Callable[..., None]:
    """Combine the elements of each segment, chunk by chunk.

    Launch over ``NdRange(items, local)`` with an item for each chunk.

    Args:
        op: the operation, its function made into a device function.
        find_segment: :func:`find_segment` as a device function.
        dtype: the NumPy scalar type to combine in.

    Kernel parameters:
        x (n,): input of any real dtype.
        offsets (segments + 1,): input, integers that do not decrease; segment s has the elements
            from ``offsets[s]`` up to ``offsets[s + 1]``.
        out (segments,): output of ``dtype``, filled with the identity before.
        carry (chunks,): output of ``dtype``.
        carry_segment (chunks,): output of int64, the segment of the carry or -1.
        chunk: elements in a chunk.
    """
    combine = op.combine
    name = op.name
    nothing = identity(name, dtype)

    def segmented_reduce(
        nd_item: Any, x: Any, offsets: Any, out: Any, carry: Any, carry_segment: Any, chunk: int
    ) -> None:
        c = nd_item.get_global_id(0)
        if c >= carry.size:
            return
        start = max(int64(offsets[0]), 0) + c * chunk
        stop = min(start + chunk, int64(offsets[uint64(out.size)]), x.size)
        carry_segment[c] = -1
        segment = find_segment(offsets, out.size, start)
        while start < stop and segment < out.size:
            begin = int64(offsets[uint64(segment)])
            end = int64(offsets[uint64(segment + 1)])
            count = max(min(end, stop) - start, 0)
            total = nothing
            if count < _SHORT:
                for i in range(start, start + count):
                    total = dtype(combine(total, dtype(x[uint64(i)])))
            else:
                total = reduce_run(name, x, start, count, nothing)
            if begin < start:
                carry[c] = total
                carry_segment[c] = segment
            else:
                out[uint64(segment)] = total
            start += count
            segment += 1

    return segmented_reduce


@functools.cache
def make_carry_kernel(op: Operation, dtype: type) -> Callable[..., None]:
    """Add the carries to the segments to which they belong.

    Launch over ``Range(1)``.

    Kernel parameters:
        carry (chunks,): input of ``dtype``.
        carry_segment (chunks,): input of int64.
        out (segments,): input and output of ``dtype``.
    """
    combine = op.combine

    def add_carries(item: Any, carry: Any, carry_segment: Any, out: Any) -> None:
        for c in range(item.get_id(0), carry.size):
            segment = carry_segment[uint64(c)]
            if segment >= 0:
                before = out[uint64(segment)]
                out[uint64(segment)] = dtype(combine(before, carry[uint64(c)]))

    return add_carries


@functools.cache
def make_csr_matvec_kernel(find_segment: Callable[..., Any], dtype: type) -> Callable[..., None]:
    """Multiply a sparse matrix by a vector, chunk by chunk of the stored elements.

    Launch over ``NdRange(items, local)`` with an item for each chunk.

    Args:
        find_segment: :func:`find_segment` as a device function.
        dtype: the NumPy scalar type of the result.

    Kernel parameters:
        data (stored,): input, the stored elements row by row.
        columns (stored,): input, integers, the column of each; one out of bounds counts as
            the last.
        offsets (rows + 1,): input, integers: row r has the elements from ``offsets[r]`` on.
        x (matrix columns,): input.
        out (rows,): output of ``dtype``, filled with zeros before.
        carry (chunks,): output of ``dtype``.
        carry_segment (chunks,): output of int64, the row of the carry or -1.
        chunk: stored elements in a chunk.
    """

    def csr_matvec(
        nd_item: Any,
        data: Any,
        columns: Any,
        offsets: Any,
        x: Any,
        out: Any,
        carry: Any,
        carry_segment: Any,
        chunk: int,
    ) -> None:
        c = nd_item.get_global_id(0)
        if c >= carry.size:
            return
        start = max(int64(offsets[0]), 0) + c * chunk
        stop = min(start + chunk, int64(offsets[uint64(out.size)]), data.size)
        carry_segment[c] = -1
        last = uint64(x.size - 1)
        row = find_segment(offsets, out.size, start)
        while start < stop and row < out.size:
            begin = int64(offsets[uint64(row)])
            end = int64(offsets[uint64(row + 1)])
            i = uint64(start)
            count = max(min(end, stop) - start, 0)
            r0 = r1 = r2 = r3 = dtype(0)
            for _ in range(count >> 2):
                r0 += dtype(data[i] * x[min(uint64(columns[i]), last)])
                r1 += dtype(data[i + uint64(1)] * x[min(uint64(columns[i + uint64(1)]), last)])
                r2 += dtype(data[i + uint64(2)] * x[min(uint64(columns[i + uint64(2)]), last)])
                r3 += dtype(data[i + uint64(3)] * x[min(uint64(columns[i + uint64(3)]), last)])
                i += uint64(4)
            for _ in range(count & 3):
                r0 += dtype(data[i] * x[min(uint64(columns[i]), last)])
                i += uint64(1)
            r0 = dtype(r0 + r1) + dtype(r2 + r3)
            if begin < start:
                carry[c] = r0
                carry_segment[c] = row
            else:
                out[uint64(row)] = r0
            start += count
            row += 1

    return csr_matvec


@functools.cache
def make_lane_reduction(combine: Callable[[Any, Any], Any], dtype: type) -> Callable[..., Any]:
    """Return a device function that combines the values of the lanes of a sub-group."""

    def reduce_lanes(part: Any, value: Any) -> Any:
        lane = part.get_local_id()
        step = part.get_local_range() >> 1
        total = dtype(value)
        while step > 0:
            other = dtype(select_from_group(part, total, lane ^ step))
            total = dtype(combine(total, other))
            step >>= 1
        return total

    return reduce_lanes


@functools.cache
def make_segments_by_sub_groups_kernel(
    op: Operation,
    find_segment: Callable[..., Any],
    reduce_lanes: Callable[..., Any],
    dtype: type,
    has_columns: bool,
) -> Callable[..., None]:
    """Combine the elements of each segment, chunk by chunk, with a sub-group for each chunk.

    Launch over ``NdRange(groups * local, local)`` with at least as many sub-groups as chunks.

    Args:
        op: the operation, its function made into a device function.
        find_segment: :func:`find_segment` as a device function.
        reduce_lanes: the result of :func:`make_lane_reduction` as a device function.
        dtype: the NumPy scalar type to combine in.
        has_columns: elements are multiplied by those of ``vector`` at ``columns``.

    Kernel parameters: as in the kernels for a work-item above.
    """
    combine = op.combine
    nothing = identity(op.name, dtype)

    def segments_by_sub_groups(
        nd_item: Any,
        data: Any,
        columns: Any,
        offsets: Any,
        vector: Any,
        out: Any,
        carry: Any,
        carry_segment: Any,
        chunk: int,
    ) -> None:
        part = nd_item.get_sub_group()
        lane, lanes = part.get_local_id(), part.get_local_range()
        parts = nd_item.get_local_range(0) // lanes
        c = nd_item.get_group().get_group_id(0) * parts + part.get_group_id()
        if c >= carry.size:
            return
        start = max(int64(offsets[0]), 0) + c * chunk
        stop = min(start + chunk, int64(offsets[uint64(out.size)]), data.size)
        if lane == 0:
            carry_segment[uint64(c)] = -1
        last = uint64(vector.size - 1)
        segment = find_segment(offsets, out.size, start)
        while start < stop and segment < out.size:
            begin = int64(offsets[uint64(segment)])
            end = int64(offsets[uint64(segment + 1)])
            count = max(min(end, stop) - start, 0)
            total = nothing
            for i in range(start + lane, start + count, lanes):
                value = dtype(data[uint64(i)])
                if has_columns:
                    value = dtype(value * vector[min(uint64(columns[uint64(i)]), last)])
                total = dtype(combine(total, value))
            total = reduce_lanes(part, total)
            if lane == 0:
                if begin < start:
                    carry[uint64(c)] = total
                    carry_segment[uint64(c)] = segment
                else:
                    out[uint64(segment)] = total
            start += count
            segment += 1

    return segments_by_sub_groups


@functools.cache
def make_carry_by_sub_groups_kernel(
    op: Operation, reduce_lanes: Callable[..., Any], dtype: type
) -> Callable[..., None]:
    """Add the carries to their segments; the carries of one segment are adjacent.

    Launch over ``NdRange(groups * local, local)`` with at least as many sub-groups as carries.

    Kernel parameters: as in :func:`make_carry_kernel`.
    """
    combine = op.combine
    nothing = identity(op.name, dtype)

    def carries_by_sub_groups(nd_item: Any, carry: Any, carry_segment: Any, out: Any) -> None:
        part = nd_item.get_sub_group()
        lane, lanes = part.get_local_id(), part.get_local_range()
        parts = nd_item.get_local_range(0) // lanes
        c = nd_item.get_group().get_group_id(0) * parts + part.get_group_id()
        if c >= carry.size:
            return
        segment = carry_segment[uint64(c)]
        if segment < 0 or (c > 0 and carry_segment[uint64(max(c - 1, 0))] == segment):
            return
        total = nothing
        at = c + lane
        while at < carry.size and carry_segment[uint64(at)] == segment:
            total = dtype(combine(total, carry[uint64(at)]))
            at += lanes
        total = reduce_lanes(part, total)
        if lane == 0:
            out[uint64(segment)] = dtype(combine(out[uint64(segment)], total))

    return carries_by_sub_groups
