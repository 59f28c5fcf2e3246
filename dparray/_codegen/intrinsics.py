"""Functions that the text of generated kernels calls, with their meaning in Python.

In kernels the compiler's device code stands for them. Half precision is bits in memory and single
precision in between: a kernel's variable of dtype float16 is a float32 whose value a half can hold.
That is how NumPy computes, too: every operation in single precision, its result rounded to half.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def half_value(bits: Any) -> Any:
    """Return the float32 with the value of a half, given as its bits (uint16)."""
    return np.uint16(bits).view(np.float16).astype(np.float32)


def half_bits(value: Any) -> Any:
    """Return the bits (uint16) of the half nearest to a number, of two equally near the even
    one.
    """
    if isinstance(value, int | np.integer | np.bool_):
        value = np.float32(value)
    with np.errstate(all="ignore"):
        return np.float16(value).view(np.uint16)


def half(value: Any) -> Any:
    """Return the float32 with the value of the half nearest to a number."""
    return half_value(half_bits(value))


def bfloat16_value(bits: Any) -> Any:
    """Return the float32 with the value of a bfloat16, given as its bits (uint16)."""
    return np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32)


def bfloat16_bits(value: Any) -> Any:
    """Return the bits (uint16) of the bfloat16 nearest to a number, of two equally near the even
    one.

    A bfloat16 is the upper half of a float32. Rounding could carry a NaN over to infinity, so NaN
    keeps its upper half, made quiet.
    """
    with np.errstate(all="ignore"):
        number = np.float32(value)
        bits = int(number.view(np.uint32))
        if number != number:
            return np.uint16(bits >> 16 | 0x40)
        return np.uint16((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def bfloat16(value: Any) -> Any:
    """Return the float32 with the value of the bfloat16 nearest to a number."""
    return bfloat16_value(bfloat16_bits(value))


def flat(array: Any) -> Any:
    """Return the memory of an array from its first element on, as a vector.

    In kernels its indices are unsigned and have no end: those of strided arrays lie beyond the
    number of elements or, as two's complements, before the first.
    """
    return np.lib.stride_tricks.as_strided(array, (array.size,), (array.itemsize,))


def integer_power(base: Any, exponent: Any) -> Any:
    """Return the power of two integers modulo 2**64, as uint64.

    By squaring. What a narrower dtype wraps around to are the low bits of it. Of a negative
    exponent, 1 and -1 give 1 or -1, their inverses; any other base gives 0.
    """
    one = np.uint64(1)
    zero = np.uint64(0)
    left = np.uint64(exponent)
    factor = np.uint64(base)
    result = one
    if exponent < 0:
        left = left & one
        if base != 1 and base != -1:
            result = zero
    while left != zero:
        if left & one != zero:
            result = result * factor
        factor = factor * factor
        left = left >> one
    return result


def multiply_add_32(first: Any, second: Any, added: Any) -> Any:
    """Return ``first * second + added`` as uint64, computed in 32 bits with a sign."""
    bits = (int(first) * int(second) + int(added)) % 2**32
    return np.uint64((bits - ((bits >> 31) << 32)) % 2**64)


def of_kind(value: Any, kind: str) -> Any:
    """``value``; a kernel in which it is no number of ``kind`` does not compile.

    What a function returns is of one type in a kernel, the same on all its paths. A float on one of
    them would be cut where a trial of another path has found integers.

    Args:
        value: what the function returns.
        kind: ``"b"`` or ``"i"`` for Booleans and integers, ``"f"`` for floats.
    """
    return value
