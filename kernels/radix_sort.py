"""Stable sort by key: least significant digit first, eight bits in each pass.

In each pass every work-item counts the digits of its chunk. The counts become the offsets where the
elements of each digit and chunk begin. Then every item moves the elements of its chunk there, in
their order, which makes the sort stable. See M. Zagha and G. Blelloch, "Radix Sort for Vector
Multiprocessors" (1991).

Keys are handled as the unsigned integers of their bits; ``ordered`` turns those of signed integers
and of reals into integers that sort as the keys do (all NaN last, both zeros equal).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import uint64

__all__ = ["DIGITS", "make_digit_count_kernel", "make_digit_place_kernel", "make_move_kernel"]

DIGITS = 256


def _digit_of(kind: str, bits: int, descending: bool) -> Callable[[Any, Any], Any]:
    """Return a function that gives the digit at a shift of the key's bits."""
    sign = uint64(1 << (bits - 1))
    every = uint64((1 << bits) - 1)
    infinity = uint64({16: 0x7C00, 32: 0x7F800000, 64: 0x7FF0000000000000}.get(bits, 0))
    digit_mask = uint64(DIGITS - 1)
    flipped = uint64(DIGITS - 1 if descending else 0)

    def digit_of_unsigned(key: Any, shift: Any) -> Any:
        return ((uint64(key) >> shift) & digit_mask) ^ flipped

    def digit_of_signed(key: Any, shift: Any) -> Any:
        return (((uint64(key) ^ sign) >> shift) & digit_mask) ^ flipped

    def digit_of_real(key: Any, shift: Any) -> Any:
        pattern = uint64(key)
        size = pattern & (sign - uint64(1))
        ordered = every - pattern if pattern >= sign and size != uint64(0) else size | sign
        digit = ((ordered >> shift) & digit_mask) ^ flipped
        # NaN has the largest digit, so it is sorted last.
        return digit_mask if size > infinity else digit

    return {"u": digit_of_unsigned, "i": digit_of_signed, "f": digit_of_real}[kind]


@functools.cache
def make_digit_of(kind: str, bits: int, descending: bool) -> Callable[[Any, Any], Any]:
    """Make the device function ``digit_of`` of the kernels below, as plain Python.

    Args:
        kind: ``"u"``, ``"i"`` or ``"f"``: the type of the keys.
        bits: 8, 16, 32 or 64.
        descending: whether the largest key comes first.
    """
    return _digit_of(kind, bits, descending)


@functools.cache
def make_digit_count_kernel(digit_of: Callable[[Any, Any], Any]) -> Callable[..., None]:
    """Count the digits of each chunk.

    Launch over ``NdRange(items, local)`` with an item for each chunk.

    Kernel parameters:
        keys (n,): input, unsigned integers.
        counts (chunks, 256): output of int64, all of it written.
        chunk: elements in a chunk.
        shift: the digit's lowest bit, uint64.
    """

    def digit_count(nd_item: Any, keys: Any, counts: Any, chunk: int, shift: Any) -> None:
        c = nd_item.get_global_id(0)
        if c >= counts.shape[0]:
            return
        row = uint64(c)
        for digit in range(DIGITS):
            counts[row, uint64(digit)] = 0
        i = uint64(c * chunk)
        for _ in range(min(chunk, keys.size - c * chunk)):
            counts[row, digit_of(keys[i], shift)] += 1
            i += uint64(1)

    return digit_count


@functools.cache
def make_digit_place_kernel() -> Callable[..., None]:
    """Turn counts into offsets: the start of each digit's elements from each chunk.

    Launch over ``Range(1)``: the matrix is small and the sum is sequential.

    Kernel parameters:
        counts (chunks, 256): input and output of int64.
    """

    def digit_place(item: Any, counts: Any) -> None:
        start = counts[0, 0] * item.get_id(0)
        for digit in range(DIGITS):
            for row in range(counts.shape[0]):
                count = counts[uint64(row), uint64(digit)]
                counts[uint64(row), uint64(digit)] = start
                start += count

    return digit_place


@functools.cache
def make_move_kernel(digit_of: Callable[[Any, Any], Any], has_values: bool) -> Callable[..., None]:
    """Move the elements of each chunk to the positions of their digits.

    Launch over ``NdRange(items, local)`` with an item for each chunk.

    Kernel parameters:
        keys (n,): input, unsigned integers.
        values (n,): input (only with ``has_values``).
        starts (chunks, 256): input of int64; overwritten.
        keys_out (n,): output.
        values_out (n,): output (only with ``has_values``).
        chunk: elements in a chunk.
        shift: the digit's lowest bit, uint64.
    """

    def move(
        nd_item: Any,
        keys: Any,
        values: Any,
        starts: Any,
        keys_out: Any,
        values_out: Any,
        chunk: int,
        shift: Any,
    ) -> None:
        c = nd_item.get_global_id(0)
        if c >= starts.shape[0]:
            return
        row = uint64(c)
        i = uint64(c * chunk)
        for _ in range(min(chunk, keys.size - c * chunk)):
            key = keys[i]
            digit = digit_of(key, shift)
            target = uint64(starts[row, digit])
            starts[row, digit] += 1
            keys_out[target] = key
            if has_values:
                values_out[target] = values[i]
            i += uint64(1)

    return move
