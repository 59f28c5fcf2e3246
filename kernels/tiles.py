"""Scans, compaction and counting for GPUs: tiles of a group, read by neighboring work-items.

A group has a tile of consecutive elements. Neighboring work-items load neighboring elements of it,
several for each work-item, and exchange them through local memory, so that each work-item scans
consecutive ones. Lanes exchange values within their sub-group, in log2(size) steps. One value of
each sub-group is exchanged through local memory. A scan of reals is three launches: tiles are
reduced, one group scans their results, and tiles are scanned from there (M. Harris, S. Sengupta and
J. D. Owens, "Parallel Prefix Sum (Scan) with CUDA", 2007). A scan of integers is one launch. The
kernels query the size of their sub-groups, which the driver chooses.

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
    reduce_over_group,
    select_from_group,
)
from dparray.kernels.combine import identity

__all__ = [
    "COUNTED",
    "ELEMENTS",
    "make_carry_kernel",
    "make_group_scan",
    "make_local_count_kernel",
    "make_look_back_kernel",
    "make_tile_access",
    "make_tile_scan_kernel",
    "make_tile_select_kernel",
    "make_tile_total_kernel",
]

#: The number of elements of a work-item in a tile.
ELEMENTS = 16
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
def make_tile_access(dtype: type) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return functions that load a tile into local memory and store it from there.

    Neighboring work-items access neighboring elements of the array, while in local memory the
    elements of a work-item are consecutive. A word that is not used follows them, so that the
    work-items of a sub-group access different banks. All elements are loaded before the first one
    is written, because a compiler must not move a load across a write to other memory.
    """

    def load(nd_item: Any, x: Any, first: Any, nothing: Any, tile: Any) -> None:
        lane = uint32(nd_item.get_local_id(0))
        lanes = uint32(nd_item.get_local_range(0))
        size = uint64(x.size)
        values = PrivateArray(ELEMENTS, dtype)
        if first + uint64(lanes * uint32(ELEMENTS)) <= size:
            for k in range(ELEMENTS):
                values[k] = dtype(x[first + uint64(uint32(k) * lanes + lane)])
        else:
            for k in range(ELEMENTS):
                i = first + uint64(uint32(k) * lanes + lane)
                values[k] = dtype(x[i]) if i < size else nothing
        for k in range(ELEMENTS):
            at = uint32(k) * lanes + lane
            tile[uint64(at + at // uint32(ELEMENTS))] = values[k]
        group_barrier(nd_item.get_group(), MemoryScope.WORK_GROUP)

    def store(nd_item: Any, out: Any, first: Any, tile: Any) -> None:
        group_barrier(nd_item.get_group(), MemoryScope.WORK_GROUP)
        lane = uint32(nd_item.get_local_id(0))
        lanes = uint32(nd_item.get_local_range(0))
        size = uint64(out.size)
        if first + uint64(lanes * uint32(ELEMENTS)) <= size:
            for k in range(ELEMENTS):
                at = uint32(k) * lanes + lane
                out[first + uint64(at)] = tile[uint64(at + at // uint32(ELEMENTS))]
        else:
            for k in range(ELEMENTS):
                at = uint32(k) * lanes + lane
                if first + uint64(at) < size:
                    out[first + uint64(at)] = tile[uint64(at + at // uint32(ELEMENTS))]

    return load, store


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
        number = uint64(nd_item.get_group().get_group_id(0))
        lane = uint32(nd_item.get_local_id(0))
        lanes = uint32(nd_item.get_local_range(0))
        size = uint64(x.size)
        first = number * uint64(lanes * uint32(ELEMENTS))
        value = nothing
        if first + uint64(lanes * uint32(ELEMENTS)) <= size:
            for k in range(ELEMENTS):
                value = dtype(combine(value, dtype(x[first + uint64(uint32(k) * lanes + lane)])))
        else:
            for k in range(ELEMENTS):
                i = first + uint64(uint32(k) * lanes + lane)
                if i < size:
                    value = dtype(combine(value, dtype(x[i])))
        _, combined = scan(nd_item, value, nothing, scratch)
        if lane == 0:
            total[number] = combined

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
    access: tuple[Callable[..., Any], Callable[..., Any]],
    dtype: type,
    inclusive: bool,
) -> Callable[..., None]:
    """Scan each tile, starting from its carry; arguments as for the others.

    Args:
        access: the results of :func:`make_tile_access`, as device functions.
        inclusive: whether ``out[i]`` includes ``x[i]``.

    Kernel parameters:
        x (n,): input of any real dtype.
        carry (tiles + 1,): input, the output of :func:`make_carry_kernel`.
        out (n,): output of ``dtype``; it may be ``x``.
        scratch: see above.
        tile: local memory of ``dtype``, ``ELEMENTS + 1`` elements for each work-item.
    """
    nothing = identity(op, dtype)
    load, store = access

    def tile_scan(nd_item: Any, x: Any, carry: Any, out: Any, scratch: Any, tile: Any) -> None:
        number = uint64(nd_item.get_group().get_group_id(0))
        own = uint32(nd_item.get_local_id(0)) * uint32(ELEMENTS + 1)
        first = number * uint64(nd_item.get_local_range(0)) * uint64(ELEMENTS)
        load(nd_item, x, first, nothing, tile)
        value = nothing
        for k in range(ELEMENTS):
            value = dtype(combine(value, tile[uint64(own + uint32(k))]))
        before, _ = scan(nd_item, value, nothing, scratch)
        before = dtype(combine(carry[number], before))
        for k in range(ELEMENTS):
            after = dtype(combine(before, tile[uint64(own + uint32(k))]))
            tile[uint64(own + uint32(k))] = after if inclusive else before
            before = after
        store(nd_item, out, first, tile)

    return tile_scan


@functools.cache
def make_look_back_kernel(
    op: str,
    combine: Callable[[Any, Any], Any],
    scan: Callable[..., Any],
    access: tuple[Callable[..., Any], Callable[..., Any]],
    dtype: type,
    inclusive: bool,
) -> Callable[..., None]:
    """Scan all tiles in one launch, which reads and writes memory once.

    A tile publishes its total, and then looks back. Its first sub-group combines the totals of the
    tiles before it, one for each work-item at a time. It stops at the nearest tile that has
    published the result of all tiles up to itself. Tiles are numbered in the order in which groups
    start, so a tile waits only for groups that have started. Which totals are combined depends on
    timing, so results of reals would differ from run to run in their last bits. After D. Merrill
    and M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back" (2016). Arguments as
    for the others.

    Kernel parameters:
        x (n,): input of any real dtype.
        out (n,): output of ``dtype``; it may be ``x``.
        progress (tiles + 1,): int32, zeros at first: how many tiles have started, and for each one
            whether its total (1) or the result up to it (2) is available.
        total, carry (tiles,): memory of ``dtype``.
        initial: a scalar of ``dtype`` that comes before the first element.
        scratch, tile: as for :func:`make_tile_scan_kernel`.
        shared: local memory of ``dtype``, 1 element.
        number: local memory of int32, 1 element.
    """
    nothing = identity(op, dtype)
    load, store = access

    def look_back(
        nd_item: Any,
        x: Any,
        out: Any,
        progress: Any,
        total: Any,
        carry: Any,
        initial: Any,
        scratch: Any,
        tile: Any,
        shared: Any,
        number: Any,
    ) -> None:
        group = nd_item.get_group()
        part = nd_item.get_sub_group()
        lane = part.get_local_id()
        size = part.get_local_range()
        if nd_item.get_local_id(0) == 0:
            number[0] = AtomicRef(progress, 0, memory_order=MemoryOrder.RELAXED).fetch_add(int32(1))
        group_barrier(group, MemoryScope.WORK_GROUP)
        t = int64(number[0])
        own = uint32(nd_item.get_local_id(0)) * uint32(ELEMENTS + 1)
        first = uint64(t) * uint64(nd_item.get_local_range(0)) * uint64(ELEMENTS)
        load(nd_item, x, first, nothing, tile)
        value = nothing
        for k in range(ELEMENTS):
            value = dtype(combine(value, tile[uint64(own + uint32(k))]))
        before, combined = scan(nd_item, value, nothing, scratch)
        if part.get_group_id() == 0:
            if lane == 0:
                if t == 0:
                    carry[0] = dtype(combine(dtype(initial), combined))
                    state = int32(2)
                else:
                    total[uint64(t)] = combined
                    state = int32(1)
                AtomicRef(progress, t + 1, memory_order=MemoryOrder.RELEASE).store(state)
            result = nothing
            last = t - 1
            while last >= 0:
                other = last - lane
                state = int32(2)
                value = nothing
                if other >= 0:
                    ready = AtomicRef(progress, other + 1, memory_order=MemoryOrder.ACQUIRE)
                    state = ready.load()
                    while state == 0:
                        state = ready.load()
                    value = carry[uint64(other)] if state == 2 else total[uint64(other)]
                nearest = reduce_over_group(part, lane if state == 2 else size, "min")
                if lane > nearest:
                    value = nothing
                step = 1
                while step < size:  # the results are combined in the order of their tiles
                    next_value = dtype(select_from_group(part, value, min(lane + step, size - 1)))
                    if lane + step < size:
                        value = dtype(combine(next_value, value))
                    step *= 2
                result = dtype(combine(value, result))
                last = last - size if nearest == size else int64(-1)
            if lane == 0:
                if t == 0:
                    result = dtype(initial)
                else:
                    carry[uint64(t)] = dtype(combine(result, combined))
                    AtomicRef(progress, t + 1, memory_order=MemoryOrder.RELEASE).store(int32(2))
                shared[0] = result
        group_barrier(group, MemoryScope.WORK_GROUP)
        before = dtype(combine(shared[0], before))
        for k in range(ELEMENTS):
            after = dtype(combine(before, tile[uint64(own + uint32(k))]))
            tile[uint64(own + uint32(k))] = after if inclusive else before
            before = after
        store(nd_item, out, first, tile)

    return look_back


@functools.cache
def make_tile_select_kernel(
    scan: Callable[..., Any], access: tuple[Callable[..., Any], Callable[..., Any]]
) -> Callable[..., None]:
    """Write the selected elements of each tile after those of the tiles before.

    Args:
        scan: the result of :func:`make_group_scan` for the addition of int32, as a device function.
        access: the results of :func:`make_tile_access` for int32, as device functions.

    Kernel parameters:
        x (n,): input.
        mask (n,): input, boolean.
        carry (tiles + 1,): input: how many elements are selected before each tile.
        out (selected,): output of the dtype of x.
        scratch: see above, of int32.
        tile: local memory of int32, ``ELEMENTS + 1`` elements for each work-item.
    """
    load, _ = access

    def tile_select(
        nd_item: Any, x: Any, mask: Any, carry: Any, out: Any, scratch: Any, tile: Any
    ) -> None:
        number = uint64(nd_item.get_group().get_group_id(0))
        lane = uint32(nd_item.get_local_id(0))
        lanes = uint32(nd_item.get_local_range(0))
        own = lane * uint32(ELEMENTS + 1)
        first = number * uint64(lanes) * uint64(ELEMENTS)
        load(nd_item, mask, first, int32(0), tile)
        count = int32(0)
        for k in range(ELEMENTS):
            count = int32(count + tile[uint64(own + uint32(k))])
        place, _ = scan(nd_item, count, int32(0), scratch)
        for k in range(ELEMENTS):
            is_selected = tile[uint64(own + uint32(k))]
            tile[uint64(own + uint32(k))] = place if is_selected else int32(-1)
            place = int32(place + is_selected)
        group_barrier(nd_item.get_group(), MemoryScope.WORK_GROUP)
        target = carry[number]
        for k in range(ELEMENTS):
            at = lane + uint32(k) * lanes
            place = tile[uint64(at + at // uint32(ELEMENTS))]
            if place >= 0:
                out[uint64(target + int64(place))] = x[first + uint64(at)]

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
