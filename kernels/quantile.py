"""Quantiles of sorted lines, in one launch for each fraction, and elements of two ranks.

An element of a rank is found without a sort: each launch counts the digits of the elements that
begin as it does, and its last group chooses the next digit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import int32, int64, uint64

from dparray.kernel_api import (
    AddressSpace,
    AtomicRef,
    MemoryOrder,
    MemoryScope,
    PrivateArray,
    group_barrier,
)

__all__ = [
    "DIGITS",
    "DIGIT_BITS",
    "STATE",
    "make_ordered",
    "make_quantile_kernel",
    "make_rank_kernel",
]

#: A launch finds this many bits of the elements, of this many digits.
DIGIT_BITS = 11
DIGITS = 1 << DIGIT_BITS
#: The numbers that a launch leaves for the next: groups that have ended, and whether there is NaN;
#: then for each rank the digits so far, and the rank among the elements that begin with them.
STATE = 6
# The elements that a work-item loads before it counts the first.
_LOADED = tuple(range(8))


@functools.cache
def make_quantile_kernel(dtype: type, is_chosen: bool, is_float: bool) -> Callable[..., None]:
    """Return a kernel that computes one quantile of each line.

    Launch over ``Range(lines)``. Between two elements the value starts from the nearer one, so that
    both ends are exact. A line with NaN, which is sorted last, gives NaN.

    Args:
        dtype: the NumPy scalar type of the result.
        is_chosen: the result is one of the two elements, not a value between them.
        is_float: the elements may be NaN.

    Kernel parameters:
        ordered (lines * count,): input, each line sorted.
        out (lines,): output of ``dtype``.
        count: elements of a line.
        low, high: the positions of the two elements in a line.
        weight, rest: the weights of the upper and of the lower element, of ``dtype``.
    """

    def quantile(
        item: Any,
        ordered: Any,
        out: Any,
        count: Any,
        low: Any,
        high: Any,
        weight: Any,
        rest: Any,
    ) -> None:
        line = item.get_id(0)
        first = line * count
        below = dtype(ordered[uint64(first + low)])
        value = below
        if is_chosen:
            if weight != dtype(0):
                value = dtype(ordered[uint64(first + high)])
        elif weight != dtype(0):  # otherwise an infinite neighbor has weight 0
            above = dtype(ordered[uint64(first + high)])
            distance = above - below
            if distance - distance != dtype(0):  # one of them is infinite
                value = below * rest + above * weight
            elif weight >= dtype(0.5):
                value = above - distance * rest
            else:
                value = below + distance * weight
        if is_float:
            last = ordered[uint64(first + count - 1)]
            if last != last:
                value = dtype(last)
        out[uint64(line)] = value

    return quantile


def make_ordered(kind: str, bits: int) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Make device functions between bits and integers that are ordered as the elements are.

    All NaN become the largest integer, and negative zero becomes zero.

    Args:
        kind: ``"u"``, ``"i"`` or ``"f"``: the type of the elements.
        bits: the size of an element.
    """
    sign, every = uint64(1 << (bits - 1)), uint64((1 << bits) - 1)
    infinity = uint64({32: 0x7F800000, 64: 0x7FF0000000000000}.get(bits, 0))

    def same(key: Any) -> Any:
        return uint64(key)

    def signed(key: Any) -> Any:
        return uint64(key) ^ sign

    def ordered_real(key: Any) -> Any:
        pattern = uint64(key)
        size = pattern & (sign - uint64(1))
        found = every - pattern if pattern >= sign and size != uint64(0) else size | sign
        return every if size > infinity else found

    def bits_of_real(found: Any) -> Any:
        return found ^ sign if found >= sign else every - found

    both = {"u": (same, same), "i": (signed, signed), "f": (ordered_real, bits_of_real)}
    return both[kind]


@functools.cache
def make_rank_kernel(
    ordered: Callable[[Any], Any],
    bits_of: Callable[[Any], Any],
    dtype: type,
    lanes: int,
    is_float: bool,
) -> Callable[..., None]:
    """Return a kernel that finds the next digit of the elements of two ranks.

    Launch over ``NdRange(groups * lanes, lanes)``, once for each digit, from the highest one.

    Args:
        ordered, bits_of: the results of ``make_ordered`` as device functions.
        dtype: the unsigned integer of an element's size.
        lanes: the work-items of a group, which divides ``DIGITS``.
        is_float: the elements may be NaN.

    Kernel parameters:
        x (n,): input, the bits of the elements; at most 2**31 - 1.
        found (3,): output of the last launch: the elements of both ranks, and NaN if there is one,
            otherwise the first again.
        memory (STATE + 2 * DIGITS,): int64, zeros, also after the last launch.
        counts (2 * DIGITS,), sums (2 * lanes,), last (1,): local memory of int32.
        low, high: the ranks.
        shift, width: the first bit of the digit, and its bits; ``shift`` is 0 in the last launch.
        is_first: whether it is the first launch.
    """
    every = uint64((1 << (8 * np.dtype(dtype).itemsize)) - 1)

    def rank(
        nd_item: Any,
        x: Any,
        found: Any,
        memory: Any,
        counts: Any,
        sums: Any,
        last: Any,
        low: Any,
        high: Any,
        shift: Any,
        width: Any,
        is_first: Any,
    ) -> None:
        group = nd_item.get_group()
        lane = uint64(nd_item.get_local_id(0))
        begin, other = uint64(memory[2]), uint64(memory[3])
        mask = (uint64(1) << uint64(width)) - uint64(1)
        for at in range(2 * DIGITS // lanes):
            counts[lane + uint64(at * lanes)] = int32(0)
        group_barrier(group, MemoryScope.WORK_GROUP)

        def add(key: Any) -> None:
            rest = (key >> uint64(shift)) >> uint64(width)
            digit = (key >> uint64(shift)) & mask
            if (rest == begin) | (rest == other):
                if rest != begin:
                    digit += uint64(DIGITS)
                AtomicRef(
                    counts,
                    digit,
                    memory_order=MemoryOrder.RELAXED,
                    memory_scope=MemoryScope.WORK_GROUP,
                    address_space=AddressSpace.LOCAL,
                ).fetch_add(int32(1))

        size = uint64(x.size)
        step = uint64(nd_item.get_global_range(0))
        i = uint64(nd_item.get_global_id(0))
        values = PrivateArray(8, dtype)
        is_odd = False
        while i + uint64(7) * step < size:
            for k in _LOADED:
                values[k] = x[i + uint64(k) * step]
            for k in _LOADED:
                key = ordered(values[k])
                is_odd = is_odd | (key == every)
                add(key)
            i += uint64(8) * step
        while i < size:
            key = ordered(x[i])
            is_odd = is_odd | (key == every)
            add(key)
            i += step
        if is_float and is_odd:
            AtomicRef(memory, 1, memory_order=MemoryOrder.RELAXED).store(1)
        group_barrier(group, MemoryScope.WORK_GROUP)
        for at in range(2 * DIGITS // lanes):
            place = lane + uint64(at * lanes)
            if counts[place] > 0:
                AtomicRef(
                    memory, uint64(STATE) + place, memory_order=MemoryOrder.RELAXED
                ).fetch_add(int64(counts[place]))
        group_barrier(group, MemoryScope.WORK_GROUP)
        if lane == 0:
            ended = AtomicRef(memory, 0, memory_order=MemoryOrder.ACQ_REL).fetch_add(1)
            last[0] = int32(ended)
        group_barrier(group, MemoryScope.WORK_GROUP)
        if last[0] != int32(nd_item.get_global_range(0) // lanes) - int32(1):
            return
        part = DIGITS // lanes
        for which in range(2):
            total = int32(0)
            for at in range(part):
                place = uint64(which * DIGITS + at) + lane * uint64(part)
                counted = AtomicRef(
                    memory, uint64(STATE) + place, memory_order=MemoryOrder.RELAXED
                ).exchange(0)
                counts[place] = int32(counted)
                total += int32(counted)
            sums[lane + uint64(which * lanes)] = total
        group_barrier(group, MemoryScope.WORK_GROUP)
        if lane < uint64(2):
            is_same = begin == other
            source = uint64(0) if is_same else lane
            left = int64(memory[uint64(4) + lane])
            if is_first == 1:
                left = int64(low) if lane == 0 else int64(high)
            at = uint64(0)
            while left >= int64(sums[source * uint64(lanes) + at]):
                left -= int64(sums[source * uint64(lanes) + at])
                at += uint64(1)
            digit = at * uint64(part)
            while left >= int64(counts[source * uint64(DIGITS) + digit]):
                left -= int64(counts[source * uint64(DIGITS) + digit])
                digit += uint64(1)
            begun = begin if lane == 0 else other
            key = (begun << uint64(width)) | digit
            if shift == 0:
                found[lane] = dtype(bits_of(key))
                memory[uint64(2) + lane] = 0
                memory[uint64(4) + lane] = 0
            else:
                memory[uint64(2) + lane] = int64(key)
                memory[uint64(4) + lane] = left
            if shift == 0 and lane == 0:
                found[2] = dtype(bits_of(every)) if memory[1] != 0 else dtype(bits_of(key))
                memory[1] = 0
        if lane == 0:
            memory[0] = 0

    return rank
