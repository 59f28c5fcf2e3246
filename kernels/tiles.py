"""Scans, compaction and counting for GPUs: tiles of a group, read by neighboring work-items.

A group has a tile of consecutive elements, of which each of its work-items has a few, so that a
sub-group reads one contiguous chunk of memory. Lanes exchange values within their sub-group, in
log2(size) steps. One value of each sub-group is exchanged through local memory. A scan is three
launches: tiles are reduced, one group scans their results, and tiles are scanned from there (M.
Harris, S. Sengupta and J. D. Owens, "Parallel Prefix Sum (Scan) with CUDA", 2007). The kernels
query the size of their sub-groups, which the driver chooses.

All are launched over ``NdRange(groups * local, local)``; ``local`` is a multiple of every size of a
sub-group that the device has. ``scratch`` is local memory for a value of each sub-group.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import int32, int64, uint32, uint64

from dparray.kernel_api import (
    AddressSpace,
    AtomicRef,
    MemoryOrder,
    MemoryScope,
    PrivateArray,
    group_barrier,
    select_from_group,
)
from dparray.kernels.combine import identity

__all__ = [
    "COUNTED",
    "ELEMENTS",
    "make_carry_kernel",
    "make_group_scan",
    "make_local_count_kernel",
    "make_tile_scan_kernel",
    "make_tile_select_kernel",
    "make_tile_total_kernel",
]

#: The number of consecutive elements of a work-item in a tile.
ELEMENTS = 4
#: The number of elements that a work-item loads before it counts them.
COUNTED = 8


@functools.cache
def make_group_scan(combine: Callable[[Any, Any], Any], dtype: type) -> Callable[..., Any]:
    """Return a device function that scans one value of each work-item of a group.

    Its parameters are the item, the value, the operation's neutral element, and ``scratch``. It
    returns the result for the work-items before this one, and the result for all.
    """

    def group_scan(nd_item: Any, value: Any, nothing: Any, scratch: Any) -> Any:
        group = nd_item.get_group()
        part = nd_item.get_sub_group()
        lane = part.get_local_id()
        size = part.get_local_range()
        number = part.get_group_id()
        combined = dtype(value)
        step = 1
        while step < size:
            other = dtype(select_from_group(part, combined, max(lane - step, 0)))
            if lane >= step:
                combined = dtype(combine(other, combined))
            step *= 2
        if lane == size - 1:
            scratch[uint64(number)] = combined
        group_barrier(group, MemoryScope.WORK_GROUP)
        before = dtype(nothing)
        total = dtype(nothing)
        for each in range(nd_item.get_local_range(0) // size):
            if each == number:
                before = total
            total = dtype(combine(total, scratch[uint64(each)]))
        own = dtype(select_from_group(part, combined, max(lane - 1, 0)))
        if lane > 0:
            before = dtype(combine(before, own))
        group_barrier(group, MemoryScope.WORK_GROUP)  # the scratch memory may be written again
        return before, total

    return group_scan


@functools.cache
def make_tile_total_kernel(
    op: str, combine: Callable[[Any, Any], Any], scan: Callable[..., Any], dtype: type
) -> Callable[..., None]:
    """Reduce each tile.

    Args:
        op: the name of the operation.
        combine: its function, as a device function.
        scan: the result of :func:`make_group_scan` for it, as a device function.
        dtype: the NumPy scalar type to combine in.

    Kernel parameters:
        x (n,): input of any real dtype.
        total (tiles,): output of ``dtype``.
        scratch: see above.
    """
    nothing = identity(op, dtype)

    def tile_total(nd_item: Any, x: Any, total: Any, scratch: Any) -> None:
        first = nd_item.get_global_id(0) * ELEMENTS
        value = nothing
        for i in range(first, min(first + ELEMENTS, x.size)):
            value = dtype(combine(value, dtype(x[uint64(i)])))
        _, combined = scan(nd_item, value, nothing, scratch)
        if nd_item.get_local_id(0) == 0:
            total[uint64(nd_item.get_group().get_group_id(0))] = combined

    return tile_total


@functools.cache
def make_carry_kernel(
    op: str, combine: Callable[[Any, Any], Any], scan: Callable[..., Any], dtype: type
) -> Callable[..., None]:
    """Scan the results of all tiles, with one group; arguments as for the others.

    Each work-item combines consecutive tiles, so that the group scans only once.

    Kernel parameters:
        total (tiles,): input of ``dtype``.
        carry (tiles + 1,): output of ``dtype``: the result before each tile, and that of all.
        scratch: see above.
        initial: a scalar that comes before the first tile.
    """
    nothing = identity(op, dtype)

    def carry_of_tiles(nd_item: Any, total: Any, carry: Any, scratch: Any, initial: Any) -> None:
        lane = nd_item.get_local_id(0)
        lanes = nd_item.get_local_range(0)
        share = (total.size + lanes - 1) // lanes
        first = min(lane * share, total.size)
        last = min(first + share, total.size)
        value = nothing
        for i in range(first, last):
            value = dtype(combine(value, total[uint64(i)]))
        own, combined = scan(nd_item, value, nothing, scratch)
        before = dtype(combine(dtype(initial), own))
        for i in range(first, last):
            carry[uint64(i)] = before
            before = dtype(combine(before, total[uint64(i)]))
        if lane == 0:
            carry[uint64(total.size)] = dtype(combine(dtype(initial), combined))

    return carry_of_tiles


@functools.cache
def make_tile_scan_kernel(
    op: str,
    combine: Callable[[Any, Any], Any],
    scan: Callable[..., Any],
    dtype: type,
    inclusive: bool,
) -> Callable[..., None]:
    """Scan each tile, starting from its carry; arguments as for the others.

    Kernel parameters:
        x (n,): input of any real dtype.
        carry (tiles + 1,): input, the output of :func:`make_carry_kernel`.
        out (n,): output of ``dtype``; it may be ``x``.
        scratch: see above.
    """
    nothing = identity(op, dtype)

    def tile_scan(nd_item: Any, x: Any, carry: Any, out: Any, scratch: Any) -> None:
        first = nd_item.get_global_id(0) * ELEMENTS
        last = min(first + ELEMENTS, x.size)
        value = nothing
        for i in range(first, last):
            value = dtype(combine(value, dtype(x[uint64(i)])))
        own, _ = scan(nd_item, value, nothing, scratch)
        before = dtype(combine(carry[uint64(nd_item.get_group().get_group_id(0))], own))
        for i in range(first, last):
            after = dtype(combine(before, dtype(x[uint64(i)])))
            out[uint64(i)] = after if inclusive else before
            before = after

    return tile_scan


@functools.cache
def make_tile_select_kernel(scan: Callable[..., Any]) -> Callable[..., None]:
    """Write the selected elements of each tile after those of the tiles before.

    Args:
        scan: the result of :func:`make_group_scan` for the addition of int64, as a device function.

    Kernel parameters:
        x (n,): input.
        mask (n,): input, boolean.
        carry (tiles + 1,): input: how many elements are selected before each tile.
        out (selected,): output of the dtype of x.
        scratch: see above.
    """

    def tile_select(nd_item: Any, x: Any, mask: Any, carry: Any, out: Any, scratch: Any) -> None:
        first = nd_item.get_global_id(0) * ELEMENTS
        last = min(first + ELEMENTS, x.size)
        count = int64(0)
        for i in range(first, last):
            count += int64(mask[uint64(i)])
        own, _ = scan(nd_item, count, int64(0), scratch)
        target = uint64(carry[uint64(nd_item.get_group().get_group_id(0))] + own)
        for i in range(first, last):
            if mask[uint64(i)]:
                out[target] = x[uint64(i)]
                target += uint64(1)

    return tile_select


@functools.cache
def make_local_count_kernel(
    bin_of: Callable[..., Any], dtype: type, count: type, is_local: bool
) -> Callable[..., None]:
    """Count the elements in bins.

    Groups traverse the input together, a tile of ``COUNTED`` elements for each work-item at a time.
    All elements of a tile are loaded before the first of them is counted, because a compiler must
    not move a load across an atomic operation. Counts are in local memory, with atomic operations
    on the copy that a sub-group shares with few others, and are added to the result once.

    Args:
        bin_of: ``bin_of_integer`` or the result of ``make_bin_between_edges`` as a device function.
        dtype: the NumPy scalar type of ``x``.
        count: the NumPy scalar type of ``out``.
        is_local: whether the counts of a group are in local memory, or all in the result.

    Kernel parameters:
        x (n,): input, integers or reals; at most 2**31 - 1.
        out (bins,): output, zeros at first.
        counts (copies * bins,): local memory of int32; 1 element if not ``is_local``.
        copies: how many copies of the counts a group has, at most one for each of its sub-groups.
        edges, scale, margin: as in ``make_histogram_kernel``; ignored for integers.
        low, high: the first and the last edge; ignored for integers.
    """

    def local_count(
        nd_item: Any,
        x: Any,
        out: Any,
        counts: Any,
        copies: int,
        edges: Any,
        low: Any,
        high: Any,
        scale: Any,
        margin: Any,
    ) -> None:
        group = nd_item.get_group()
        lane = uint32(nd_item.get_local_id(0))
        lanes = uint32(nd_item.get_local_range(0))
        bins = out.size
        own = int64(uint32(nd_item.get_sub_group().get_group_id()) % uint32(copies)) * bins
        if is_local:
            for at in range(int64(lane), copies * bins, int64(lanes)):
                counts[uint64(at)] = 0
            group_barrier(group, MemoryScope.WORK_GROUP)

        def add(value: Any) -> None:
            index = bin_of(value, edges, low, high, bins, scale, margin)
            if index >= 0:
                if is_local:
                    AtomicRef(
                        counts,
                        own + index,
                        memory_order=MemoryOrder.RELAXED,
                        memory_scope=MemoryScope.WORK_GROUP,
                        address_space=AddressSpace.LOCAL,
                    ).fetch_add(int32(1))
                else:
                    AtomicRef(out, index, memory_order=MemoryOrder.RELAXED).fetch_add(count(1))

        size = uint64(x.size)
        tile = uint64(lanes * uint32(COUNTED))
        step = uint64(nd_item.get_global_range(0)) * uint64(COUNTED)
        first = uint64(group.get_group_id(0)) * tile
        values = PrivateArray(COUNTED, dtype)
        while first + tile <= size:
            for k in range(COUNTED):
                values[k] = x[first + uint64(uint32(k) * lanes + lane)]
            for k in range(COUNTED):
                add(values[k])
            first += step
        i = first + uint64(lane)
        while i < size:  # the tile that is not full, of one group
            add(x[i])
            i += uint64(lanes)

        if is_local:
            group_barrier(group, MemoryScope.WORK_GROUP)
            for at in range(int64(lane), bins, int64(lanes)):
                total = int32(0)
                for number in range(copies):
                    total += counts[uint64(number * bins + at)]
                if total > 0:
                    AtomicRef(out, at, memory_order=MemoryOrder.RELAXED).fetch_add(count(total))

    return local_count
