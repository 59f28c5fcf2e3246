"""Scans, compaction and counting for GPUs: tiles of a group, read by neighboring work-items.

A group has a tile of consecutive elements. Neighboring work-items load neighboring elements of it,
several for each work-item, and exchange them through local memory, so that each work-item scans
consecutive ones. Lanes exchange values within their sub-group, in log2(size) steps. One value of
each sub-group is exchanged through local memory. A scan of reals is three launches: tiles are
reduced, one group scans their results, and tiles are scanned from there (M. Harris, S. Sengupta and
J. D. Owens, "Parallel Prefix Sum (Scan) with CUDA", 2007). A scan of integers is one launch, and
so is the count of a mask's elements before each tile. The kernels query the size of their
sub-groups, which the driver chooses.

All are launched over ``NdRange(groups * lanes, lanes)``. Their factories take ``lanes``, so that
indices in a tile are constants: a multiple of ``ELEMENTS`` and of every size of a sub-group that
the device has. ``scratch`` is local memory for a value of each sub-group.
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
    atomic_fence,
    group_barrier,
    reduce_over_group,
    select_from_group,
)
from dparray.kernels.combine import identity

__all__ = [
    "COUNTED",
    "ELEMENTS",
    "TILES_COUNTED",
    "count_flags",
    "flags_at_end",
    "make_carry_kernel",
    "make_group_scan",
    "make_local_count_kernel",
    "make_look_back",
    "make_look_back_kernel",
    "make_mask_count_kernel",
    "make_tile_access",
    "make_tile_scan_kernel",
    "make_tile_select_kernel",
    "make_tile_total_kernel",
    "whole_flags",
]

#: The number of elements of a work-item in a tile.
ELEMENTS = 16
#: The number of elements that a work-item loads before it counts them.
COUNTED = 8
#: The number of tiles of a mask that a group counts.
TILES_COUNTED = 4
# Loops over tuples are unrolled, so that private arrays become registers.
_ALL = tuple(range(ELEMENTS))
_HALF = ELEMENTS // 2
_TILES = tuple(range(TILES_COUNTED))
_COUNTED = tuple(range(COUNTED))
_COUNTED_WORDS = tuple(range(2 * TILES_COUNTED))
# A byte of each element of a mask, eight in a word.
_ONES = 0x0101_0101_0101_0101


@functools.cache
def make_group_scan(
    combine: Callable[[Any, Any], Any], dtype: type, lanes: int
) -> Callable[..., Any]:
    """Return a device function that scans one value of each work-item of a group.

    Its parameters are the item, the value, the operation's neutral element, and ``scratch``. It
    returns the result for the work-items before this one, and the result for all.
    """

    def group_scan(nd_item: Any, value: Any, nothing: Any, scratch: Any) -> Any:
        group = nd_item.get_group()
        part = nd_item.get_sub_group()
        lane = int32(part.get_local_id())
        # Groups have whole sub-groups only, and some compilers know this size.
        size = int32(part.get_max_local_range())
        number = int32(part.get_group_id())
        combined = dtype(value)
        step = int32(1)
        while step < size:
            other = dtype(select_from_group(part, combined, max(lane - step, int32(0))))
            if lane >= step:
                combined = dtype(combine(other, combined))
            step = int32(step * int32(2))
        if lane == size - int32(1):
            scratch[uint64(number)] = combined
        group_barrier(group, MemoryScope.WORK_GROUP)
        before = dtype(nothing)
        total = dtype(nothing)
        for each in range(int32(lanes) // size):
            if each == number:
                before = total
            total = dtype(combine(total, scratch[uint64(each)]))
        own = dtype(select_from_group(part, combined, max(lane - int32(1), int32(0))))
        if lane > 0:
            before = dtype(combine(before, own))
        group_barrier(group, MemoryScope.WORK_GROUP)  # the scratch memory may be written again
        return before, total

    return group_scan


@functools.cache
def make_tile_access(dtype: type, lanes: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return functions that load a tile into local memory and store it from there.

    Neighboring work-items access neighboring elements of the array, while in local memory the
    elements of a work-item are consecutive. A word that is not used follows them, so that the
    work-items of a sub-group access different banks. All elements are loaded before the first one
    is written, because a compiler must not move a load across a write to other memory. Behind the
    end of the array, a tile has its last element.
    """

    def load(nd_item: Any, x: Any, first: Any, tile: Any) -> None:
        lane = uint32(nd_item.get_local_id(0))
        size = uint64(x.size)
        values = PrivateArray(ELEMENTS, dtype)
        if first + uint64(lanes * ELEMENTS) <= size:
            for k in _ALL:
                values[k] = dtype(x[first + uint64(lane) + uint64(k * lanes)])
        else:
            for k in _ALL:
                i = first + uint64(lane) + uint64(k * lanes)
                values[k] = dtype(x[min(i, size - uint64(1))])
        own = lane + lane // uint32(ELEMENTS)
        for k in _ALL:
            tile[uint64(own + uint32(k * (lanes + lanes // ELEMENTS)))] = values[k]
        group_barrier(nd_item.get_group(), MemoryScope.WORK_GROUP)

    def store(nd_item: Any, out: Any, first: Any, tile: Any) -> None:
        group_barrier(nd_item.get_group(), MemoryScope.WORK_GROUP)
        lane = uint32(nd_item.get_local_id(0))
        own = lane + lane // uint32(ELEMENTS)
        size = uint64(out.size)
        step = lanes + lanes // ELEMENTS
        if first + uint64(lanes * ELEMENTS) <= size:
            for k in _ALL:
                out[first + uint64(lane) + uint64(k * lanes)] = tile[uint64(own + uint32(k * step))]
        else:
            for k in _ALL:
                i = first + uint64(lane) + uint64(k * lanes)
                if i < size:
                    out[i] = tile[uint64(own + uint32(k * step))]

    return load, store


@functools.cache
def make_tile_total_kernel(
    op: str, combine: Callable[[Any, Any], Any], scan: Callable[..., Any], dtype: type, lanes: int
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
        lane = uint64(uint32(nd_item.get_local_id(0)))
        size = uint64(x.size)
        first = number * uint64(lanes * ELEMENTS) + lane
        value = nothing
        if first - lane + uint64(lanes * ELEMENTS) <= size:
            values = PrivateArray(ELEMENTS, dtype)
            for k in _ALL:
                values[k] = dtype(x[first + uint64(k * lanes)])
            for k in _ALL:
                value = dtype(combine(value, values[k]))
        else:
            for k in range(ELEMENTS):
                i = first + uint64(k * lanes)
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
    lanes: int,
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
        first = number * uint64(lanes * ELEMENTS)
        load(nd_item, x, first, tile)
        values = PrivateArray(ELEMENTS, dtype)
        value = nothing
        for k in _ALL:
            values[k] = tile[uint64(own + uint32(k))]
            value = dtype(combine(value, values[k]))
        before, _ = scan(nd_item, value, nothing, scratch)
        before = dtype(combine(carry[number], before))
        for k in _ALL:
            after = dtype(combine(before, values[k]))
            tile[uint64(own + uint32(k))] = after if inclusive else before
            before = after
        store(nd_item, out, first, tile)

    return tile_scan


@functools.cache
def make_look_back(
    op: str, combine: Callable[[Any, Any], Any], dtype: type, lanes: int, is_packed: bool
) -> tuple[Callable[..., Any], ...]:
    """Return functions with which a tile gets its number and the result before it, and ends.

    A tile publishes its total, and then looks back. Its first sub-group combines the totals of the
    tiles before it, one for each work-item at a time. It stops at the nearest tile that has
    published the result of all tiles up to itself. Tiles are numbered in the order in which groups
    start, so a tile waits only for groups that have started. Which totals are combined depends on
    timing, so results of reals would differ from run to run in their last bits. After D. Merrill
    and M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back" (2016).

    Args:
        op, combine, dtype, lanes: as for the others.
        is_packed: whether a value and its state share a word: an integer of at most 62 bits. It
            is then published without a fence.

    Their parameters:
        progress (tiles + 2,): int64, or int32 if not ``is_packed``; zeros, also afterward: the last
            tile clears it. How many tiles have started and have ended, and for each one whether
            its total (1) or the result up to it (2) is available.
        total, carry (tiles,): memory of ``dtype``; not used if ``is_packed``.
        t: the number of the tile.
        combined: the result for its elements.
        initial: a value of ``dtype`` that comes before the first tile.
        shared: local memory of ``dtype``, 1 element.
        number: local memory of int64, 1 element.
    """
    nothing = identity(op, dtype)
    word = int64 if is_packed else int32

    def take(nd_item: Any, progress: Any, number: Any) -> Any:
        if nd_item.get_local_id(0) == 0:
            count = AtomicRef(progress, 0, memory_order=MemoryOrder.RELAXED)
            number[0] = int64(count.fetch_add(word(1)))
        group_barrier(nd_item.get_group(), MemoryScope.WORK_GROUP)
        return number[0]

    def look_back(
        nd_item: Any,
        progress: Any,
        total: Any,
        carry: Any,
        t: Any,
        combined: Any,
        initial: Any,
        shared: Any,
    ) -> Any:
        part = nd_item.get_sub_group()
        lane = int32(part.get_local_id())
        size = int32(part.get_max_local_range())

        def publish(values: Any, value: Any, state: Any) -> None:
            if is_packed:
                packed = int64(value) * int64(4) + state
                AtomicRef(progress, uint64(t + 2), memory_order=MemoryOrder.RELAXED).store(packed)
            else:
                values[uint64(t)] = value
                AtomicRef(progress, uint64(t + 2), memory_order=MemoryOrder.RELEASE).store(
                    word(state)
                )

        if part.get_group_id() == 0:
            result = dtype(initial)
            if t == 0:
                if lane == 0:
                    publish(carry, dtype(combine(result, combined)), int64(2))
            else:
                if lane == 0:
                    publish(total, combined, int64(1))
                result = nothing
            last = t - 1
            while last >= 0:
                other = last - int64(lane)
                state = word(2)
                value = nothing
                if other >= 0:
                    if is_packed:
                        ready = AtomicRef(
                            progress, uint64(other + 2), memory_order=MemoryOrder.RELAXED
                        )
                    else:
                        ready = AtomicRef(
                            progress, uint64(other + 2), memory_order=MemoryOrder.ACQUIRE
                        )
                    state = ready.load()
                    while state == 0:
                        state = ready.load()
                    if is_packed:
                        value = dtype(state >> word(2))
                        state = state & word(3)
                    else:
                        value = carry[uint64(other)] if state == 2 else total[uint64(other)]
                nearest = int32(reduce_over_group(part, lane if state == 2 else size, "min"))
                if lane > nearest:
                    value = nothing
                step = int32(1)
                while step < size:  # the results are combined in the order of their tiles
                    at = min(lane + step, size - int32(1))
                    next_value = dtype(select_from_group(part, value, at))
                    if lane + step < size:
                        value = dtype(combine(next_value, value))
                    step = int32(step * int32(2))
                result = dtype(combine(value, result))
                last = last - int64(size) if nearest == size else int64(-1)
            if lane == 0:
                if t > 0:
                    publish(carry, dtype(combine(result, combined)), int64(2))
                shared[0] = result
        group_barrier(nd_item.get_group(), MemoryScope.WORK_GROUP)
        return shared[0]

    def finish(nd_item: Any, progress: Any) -> None:
        part = nd_item.get_sub_group()
        lane = int32(part.get_local_id())
        if part.get_group_id() == 0:
            ended = word(0)
            if lane == 0:
                count = AtomicRef(progress, 1, memory_order=MemoryOrder.RELEASE)
                ended = count.fetch_add(word(1))
            ended = word(select_from_group(part, ended, int32(0)))
            if ended == word(progress.size - 3):  # no tile looks back any more
                atomic_fence(MemoryOrder.ACQ_REL, MemoryScope.DEVICE)
                for i in range(int64(lane), progress.size, int64(part.get_max_local_range())):
                    clear = AtomicRef(progress, uint64(i), memory_order=MemoryOrder.RELAXED)
                    clear.store(word(0))

    return take, look_back, finish


@functools.cache
def make_look_back_kernel(
    op: str,
    combine: Callable[[Any, Any], Any],
    scan: Callable[..., Any],
    access: tuple[Callable[..., Any], Callable[..., Any]],
    back: tuple[Callable[..., Any], ...],
    dtype: type,
    lanes: int,
    inclusive: bool,
) -> Callable[..., None]:
    """Scan all tiles in one launch, which reads and writes memory once.

    Args:
        op, combine, scan, access, dtype, lanes, inclusive: as for the others.
        back: the results of :func:`make_look_back` for the operation, as device functions.

    Kernel parameters:
        x (n,): input of any real dtype.
        out (n,): output of ``dtype``; it may be ``x``.
        progress, total, carry, initial, shared, number: see :func:`make_look_back`.
        scratch, tile: as for :func:`make_tile_scan_kernel`.
    """
    nothing = identity(op, dtype)
    load, store = access
    take, look_back, finish = back

    def one_pass_scan(
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
        t = take(nd_item, progress, number)
        own = uint32(nd_item.get_local_id(0)) * uint32(ELEMENTS + 1)
        first = uint64(t) * uint64(lanes * ELEMENTS)
        load(nd_item, x, first, tile)
        value = nothing
        for k in _ALL:
            value = dtype(combine(value, tile[uint64(own + uint32(k))]))
        before, combined = scan(nd_item, value, nothing, scratch)
        earlier = look_back(nd_item, progress, total, carry, t, combined, initial, shared)
        before = dtype(combine(earlier, before))
        for k in _ALL:
            after = dtype(combine(before, tile[uint64(own + uint32(k))]))
            tile[uint64(own + uint32(k))] = after if inclusive else before
            before = after
        store(nd_item, out, first, tile)
        finish(nd_item, progress)

    return one_pass_scan


def whole_flags(flags: Any) -> Any:
    """Return eight elements of a mask in a word as bytes of 0 or 1; a device function."""
    flags |= flags >> uint64(4)  # a byte other than 0 and 1 is true, too
    flags |= flags >> uint64(2)
    flags |= flags >> uint64(1)
    return flags & uint64(_ONES)


def flags_at_end(mask: Any, at: Any) -> Any:
    """Return the elements of a mask from ``8 * at`` on likewise, 0 behind its end."""
    flags = uint64(0)
    for k in range(8):
        i = at * uint64(8) + uint64(k)
        if i < uint64(mask.size) and mask[i]:
            flags |= uint64(1) << uint64(8 * k)
    return flags


def count_flags(flags: Any) -> Any:
    """Return how many of eight elements are true; a device function."""
    return int32((flags * uint64(_ONES)) >> uint64(56))


@functools.cache
def make_mask_count_kernel(
    scan: Callable[..., Any],
    back: tuple[Callable[..., Any], ...],
    flags: tuple[Callable[..., Any], ...],
    lanes: int,
) -> Callable[..., None]:
    """Count the true elements of a mask before each tile.

    A group counts ``TILES_COUNTED`` tiles, and adds up their counts together, in 16 bits each.

    Args:
        scan: the result of :func:`make_group_scan` for the addition of int64, as a device function.
        back: the results of :func:`make_look_back` for packed sums of int64, as device functions.
        flags: ``whole_flags``, ``flags_at_end`` and ``count_flags``, as device functions.
        lanes: see above.

    Kernel parameters:
        mask (n,): input, boolean.
        words (n // 8,): its memory as uint64; no elements if it is not aligned.
        carry (tiles + 1,): output of int64; the last one is the number of all true elements.
        progress (groups + 2,): see :func:`make_look_back`.
        scratch: see above, of int64.
        shared, number: local memory of int64, 1 element.
    """
    take, look_back, finish = back
    whole, at_end, count = flags

    def mask_count(
        nd_item: Any,
        mask: Any,
        words: Any,
        carry: Any,
        progress: Any,
        scratch: Any,
        shared: Any,
        number: Any,
    ) -> None:
        t = take(nd_item, progress, number)
        lane = int64(nd_item.get_local_id(0))
        at = uint64(t) * uint64(lanes * 2 * TILES_COUNTED) + uint64(lane)
        selected = int64(0)
        if at - uint64(lane) + uint64(lanes * 2 * TILES_COUNTED) <= uint64(words.size):
            loaded = PrivateArray(2 * TILES_COUNTED, uint64)
            for k in _COUNTED_WORDS:
                loaded[k] = words[at + uint64(k * lanes)]
            for k in _COUNTED_WORDS:
                selected += int64(count(whole(loaded[k]))) << int64(k // 2 * 16)
        else:
            for k in range(2 * TILES_COUNTED):
                counted = count(at_end(mask, at + uint64(k * lanes)))
                selected += int64(counted) << int64(k // 2 * 16)
        _, packed = scan(nd_item, selected, int64(0), scratch)
        total = int64(0)
        own = int64(0)
        for k in _TILES:
            if k == lane:
                own = total
            total += (packed >> int64(16 * k)) & int64(0xFFFF)
        before = look_back(nd_item, progress, carry, carry, t, total, int64(0), shared)
        first = t * int64(TILES_COUNTED)
        if lane < TILES_COUNTED and first + lane < carry.size - 1:
            carry[uint64(first + lane)] = before + own
        if lane == 0 and first + int64(TILES_COUNTED) >= carry.size - 1:
            carry[uint64(carry.size - 1)] = before + total
        finish(nd_item, progress)

    return mask_count


@functools.cache
def make_tile_select_kernel(
    scan: Callable[..., Any],
    flags: tuple[Callable[..., Any], ...],
    lanes: int,
    dtype: type,
    is_index: bool,
) -> Callable[..., None]:
    """Write the selected elements of each tile after those of the tiles before, or their indices.

    Args:
        scan: the result of :func:`make_group_scan` for the addition of int32, as a device function.
        flags, lanes: as for :func:`make_mask_count_kernel`.
        dtype: the NumPy scalar type of ``out``.
        is_index: whether indices are written, as int64.

    Kernel parameters:
        x (n,): input, of ``dtype``; ignored for indices.
        mask, words: as for :func:`make_mask_count_kernel`.
        carry (tiles + 1,): input, its output.
        out (selected,): output of ``dtype``.
        scratch: see above, of int32.
        tile: local memory of uint64, 2 elements for each work-item.
        counts: local memory of int32, 2 elements for each work-item.
    """
    whole, at_end, count = flags

    def tile_select(
        nd_item: Any,
        x: Any,
        mask: Any,
        words: Any,
        carry: Any,
        out: Any,
        scratch: Any,
        tile: Any,
        counts: Any,
    ) -> None:
        number = uint64(nd_item.get_group().get_group_id(0))
        lane = uint32(nd_item.get_local_id(0))
        at = (number * uint64(lanes) + uint64(lane)) * uint64(2)
        own = uint64(lane * uint32(2))
        if (number + uint64(1)) * uint64(2 * lanes) <= uint64(words.size):
            low, high = whole(words[at]), whole(words[at + uint64(1)])
        else:
            low, high = at_end(mask, at), at_end(mask, at + uint64(1))
        in_low = count(low)
        before, _ = scan(nd_item, int32(in_low + count(high)), int32(0), scratch)
        tile[own] = low
        tile[own + uint64(1)] = high
        counts[own] = before
        counts[own + uint64(1)] = int32(before + in_low)
        group_barrier(nd_item.get_group(), MemoryScope.WORK_GROUP)
        # A work-item has the same byte of each word.
        shift = uint64((lane % uint32(8)) * uint32(8))
        earlier = (uint64(1) << shift) - uint64(1)
        places = PrivateArray(_HALF, int32)
        values = PrivateArray(_HALF, dtype)
        first = number * uint64(lanes * ELEMENTS) + uint64(lane)
        target = carry[number]
        # Intel's GPUs do not have the registers for all elements together.
        for half in (0, _HALF):
            for k in range(_HALF):
                word = uint64(lane // uint32(8) + uint32((half + k) * (lanes // 8)))
                i = first + uint64((half + k) * lanes)
                places[k] = int32(-1)
                if (tile[word] >> shift) & uint64(1) != uint64(0):
                    places[k] = int32(counts[word] + count(tile[word] & earlier))
                    values[k] = dtype(i) if is_index else x[i]
            for k in range(_HALF):
                if places[k] >= 0:
                    out[uint64(target + int64(places[k]))] = values[k]

    return tile_select


@functools.cache
def make_local_count_kernel(
    bin_of: Callable[..., Any], dtype: type, lanes: int, is_local: bool, copies_edges: bool
) -> Callable[..., None]:
    """Count the elements in bins.

    Groups traverse the input together, a tile of ``COUNTED`` elements for each work-item at a time.
    All elements of the next tile are loaded before the first one of a tile is counted, because a
    compiler must not move a load across an atomic operation. Counts are in local memory, with
    atomic operations on the copy that a sub-group shares with few others. A group adds them to the
    sums of all, and the last group to do so writes the result.

    Args:
        bin_of: ``bin_of_integer`` or the result of ``make_bin_between_edges`` as a device function.
        dtype: the NumPy scalar type of ``x``.
        lanes: see above.
        is_local: whether the counts of a group are in local memory, or all in ``out``.
        copies_edges: whether the edges are also a result.

    Kernel parameters:
        x (n,): input, integers or reals; at most 2**31 - 1.
        out (bins,): output, int64; any integers, and zeros at first, if not ``is_local``.
        sums (bins + 1,): memory of integers, zeros, also afterward; used if ``is_local``.
        edges (bins + 1,): the edges of the bins.
        copied (bins + 1,): output, the edges.
        counts (copies * bins,): local memory of int32; 1 element if not ``is_local``.
        last: local memory of int32, 1 element.
        copies: how many copies of the counts a group has, at most one for each of its sub-groups.
        low, high, scale, margin: as for ``make_bin_between_edges``.

    The edges and the parameters from ``low`` on are ignored for integers.
    """

    def local_count(
        nd_item: Any,
        x: Any,
        out: Any,
        sums: Any,
        edges: Any,
        copied: Any,
        counts: Any,
        last: Any,
        copies: int,
        low: Any,
        high: Any,
        scale: Any,
        margin: Any,
    ) -> None:
        group = nd_item.get_group()
        lane = int32(nd_item.get_local_id(0))
        bins = int32(out.size)
        if copies_edges and group.get_group_id(0) == 0:
            for at in range(lane, bins + int32(1), int32(lanes)):
                copied[uint64(at)] = edges[uint64(at)]
        own = int32(int32(nd_item.get_sub_group().get_group_id()) % int32(copies)) * bins
        if is_local:
            for at in range(lane, int32(copies) * bins, int32(lanes)):
                counts[uint64(at)] = int32(0)
            group_barrier(group, MemoryScope.WORK_GROUP)

        def add(value: Any) -> None:
            index = int32(bin_of(value, edges, low, high, bins, scale, margin))
            if index >= 0:
                if not is_local:
                    counted = AtomicRef(out, uint64(index), memory_order=MemoryOrder.RELAXED)
                    counted.fetch_add(out.dtype.type(1))
                else:
                    AtomicRef(
                        counts,
                        uint64(uint32(own + index)),
                        memory_order=MemoryOrder.RELAXED,
                        memory_scope=MemoryScope.WORK_GROUP,
                        address_space=AddressSpace.LOCAL,
                    ).fetch_add(int32(1))

        size = uint64(x.size)
        step = uint64(nd_item.get_global_range(0)) * uint64(COUNTED)
        first = uint64(group.get_group_id(0)) * uint64(lanes * COUNTED)
        tile = uint64(lanes * COUNTED)
        values = PrivateArray(COUNTED, dtype)
        following = PrivateArray(COUNTED, dtype)
        if first + tile <= size:
            for k in _COUNTED:
                values[k] = x[first + uint64(lane) + uint64(k * lanes)]
        while first + tile <= size:
            # The loads of the next tile are in flight while this one is counted.
            loaded = first + step if first + step + tile <= size else first
            for k in _COUNTED:
                following[k] = x[loaded + uint64(lane) + uint64(k * lanes)]
            for k in _COUNTED:
                add(values[k])
            for k in _COUNTED:
                values[k] = following[k]
            first += step
        i = first + uint64(lane)
        while i < size:  # the tile that is not full, of one group
            add(x[i])
            i += uint64(lanes)

        if is_local:
            group_barrier(group, MemoryScope.WORK_GROUP)
            one = sums.dtype.type(1)
            for at in range(lane, bins, int32(lanes)):
                total = int32(0)
                for number in range(int32(copies)):
                    total += counts[uint64(number * bins + at)]
                if total > 0:
                    counted = sums.dtype.type(total)
                    AtomicRef(sums, uint64(at + 1), memory_order=MemoryOrder.RELAXED).fetch_add(
                        counted
                    )
            group_barrier(group, MemoryScope.WORK_GROUP)
            if lane == 0:
                ended = AtomicRef(sums, 0, memory_order=MemoryOrder.ACQ_REL).fetch_add(one)
                last[0] = int32(ended)
            group_barrier(group, MemoryScope.WORK_GROUP)
            if last[0] == int32(nd_item.get_global_range(0) // lanes) - int32(1):
                for at in range(lane, bins, int32(lanes)):
                    found = AtomicRef(sums, uint64(at + 1), memory_order=MemoryOrder.RELAXED)
                    out[uint64(at)] = int64(found.exchange(sums.dtype.type(0)))
                if lane == 0:
                    AtomicRef(sums, 0, memory_order=MemoryOrder.RELAXED).store(one - one)

    return local_count
