"""Functions that generated kernels call, with their meaning in Python.

In kernels, the compiler's device code replaces them. float16 is bits in memory and float32 in
between: a kernel variable of dtype float16 is a float32 whose value float16 can represent. NumPy
computes in the same way: every operation in float32, with its result rounded to float16.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray._ir import arithmetic


def half_value(bits: Any) -> Any:
    """Return the float32 value of a float16 given as its bits (uint16)."""
    return np.uint16(bits).view(np.float16).astype(np.float32)


def half_bits(value: Any) -> Any:
    """Return the bits (uint16) of the float16 nearest to a number, ties to even."""
    if isinstance(value, int | np.integer | np.bool_):
        value = np.float32(value)
    with np.errstate(all="ignore"):
        return np.float16(value).view(np.uint16)


def half(value: Any) -> Any:
    """Return the float32 value of the float16 nearest to a number."""
    return half_value(half_bits(value))


def bfloat16_value(bits: Any) -> Any:
    """Return the float32 value of a bfloat16 given as its bits (uint16)."""
    return np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32)


def bfloat16_bits(value: Any) -> Any:
    """Return the bits (uint16) of the bfloat16 nearest to a number, ties to even.

    A bfloat16 is the upper half of a float32. Rounding could carry a NaN over to infinity, so a NaN
    keeps its upper half and is made quiet.
    """
    with np.errstate(all="ignore"):
        number = np.float32(value)
        bits = int(number.view(np.uint32))
        if number != number:
            return np.uint16(bits >> 16 | 0x40)
        return np.uint16((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def bfloat16(value: Any) -> Any:
    """Return the float32 value of the bfloat16 nearest to a number."""
    return bfloat16_value(bfloat16_bits(value))


def flat(array: Any) -> Any:
    """Return the memory of an array, from its first element on, as a vector.

    In kernels its indices are unsigned and unbounded: indices of strided arrays may exceed the
    number of elements or, as two's complements, be before the first element.
    """
    return np.lib.stride_tricks.as_strided(array, (array.size,), (array.itemsize,))


def integer_power(base: Any, exponent: Any) -> Any:
    """Return the power of two integers modulo 2**64, as uint64.

    Computed by squaring; a narrower dtype wraps around to the low bits. For a negative exponent, 1
    and -1 give their inverses, 1 or -1; any other base gives 0.
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


def fused_multiply_add(first: Any, second: Any, added: Any) -> Any:
    """Return ``first * second + added``, of float32, rounded once."""
    return arithmetic.fused_multiply_add(first, second, added)


def is_aligned(array: Any, count: int) -> bool:
    """Return whether an array begins at the address of a vector of ``count`` of its elements."""
    return bool(array.ctypes.data % (count * array.itemsize) == 0)


def load_vector(array: Any, index: Any, count: int) -> Any:
    """Return ``count`` elements of an aligned array, from an index on that ``count`` divides."""
    return array[int(index) : int(index) + count].copy()


def new_vector(array: Any, count: int) -> Any:
    """Return a vector whose elements will be stored in an array; each must be assigned."""
    return np.empty(count, array.dtype)


def store_vector(array: Any, index: Any, vector: Any) -> None:
    """Store a vector in an aligned array, from an index on that its length divides."""
    array[int(index) : int(index) + len(vector)] = vector


def of_kind(value: Any, kind: str) -> Any:
    """Return ``value``; the kernel does not compile if it is not a number of ``kind``.

    The return value of a function has one type in a kernel, on all paths. A float on one of them
    would be truncated if another path returned integers when the function was tried.

    Args:
        value: the return value of the function.
        kind: ``"b"`` or ``"i"`` for Booleans and integers, ``"f"`` for floats.
    """
    return value


def shared(total: int, parts: int) -> Any:
    """Yield the parts of ``range(total)``: the number of a part, its first number and its end.

    A loop over them runs its body for the parts on threads of the host; what it assigns is the
    body's own. With ``parts`` of 0 there are as many as suit the threads.
    """
    parts = parts or 1
    for part in range(min(parts, total)):
        yield part, total * part // parts, total * (part + 1) // parts


def reordered(value: Any) -> Any:
    """Return ``value``, a sum, a difference or a product that may be reordered with others."""
    return value


def give(*results: Any) -> None:
    """Store the addresses and shapes of arrays that a function of the host returns.

    Args:
        results: for each array where its numbers are stored, the array, its dtype and its number
            of dimensions.
    """
    for numbers, array, _, _ in results:
        numbers[: 1 + array.ndim] = array.ctypes.data, *array.shape


def launch(
    address: Any, sizes: tuple[int, int], extents: Any, keys: tuple[str, ...], *arguments: Any
) -> None:
    """Run a kernel of the host over a range, on threads of the host.

    Args:
        address: of the kernel's code.
        sizes: the least sizes of the pieces of a row, as a multiple and as a number.
        extents: of the range.
        keys: the type keys of the arguments.
        arguments: arrays and numbers.
    """
    raise NotImplementedError("it has no meaning in Python")


def are_apart(first: Any, second: Any) -> bool:
    """Return whether the memory between the first and the last byte of two arrays is separate."""
    return not np.may_share_memory(first, second)
