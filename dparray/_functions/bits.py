"""Bit operations on integers: count, pack into bytes and unpack."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import from_host
from dparray._array.apply import astype_array, ops
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._functions.creation import full
from dparray._functions.manipulation import expand_dims, moveaxis, reshape
from dparray._functions.operands import placement_keywords
from dparray._functions.public import public, with_options
from dparray._functions.reductions import sum as sum_of
from dparray.exceptions import ArgumentError, DTypeError

__all__ = ["bitwise_count", "packbits", "unpackbits"]


@with_options()
def bitwise_count(x: Any, /) -> ndarray:
    """Return the number of set bits of the absolute value, as ``uint8``.

    Raises:
        DTypeError: ``x`` is not an integer array.

    Example:
        >>> dp.bitwise_count(dp.asarray([0, 7, -8])).asnumpy()
        array([0, 3, 1], dtype=uint8)
    """
    x = check_array("bitwise_count", "x", x)
    if x.dtype.kind not in "biu":
        raise DTypeError(f"bitwise_count: x of dtype {x.dtype} must be integers")
    if x.dtype.kind == "b":
        return astype_array(x, _dtypes.uint8)
    # the absolute value of the minimum overflows to itself, whose bits are correct
    if x.dtype.kind == "i":
        x = astype_array(ops.abs(x), np.dtype(f"u{x.itemsize}"))
    # Sums of adjacent fields of 1, 2 and 4 bits; a multiplication adds the bytes.
    bits = astype_array(x, _dtypes.uint64)
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    count = (bits * 0x0101010101010101) >> 56
    return astype_array(count, _dtypes.uint8)


@public()
def packbits(x: Any, axis: int | None = None, bitorder: str = "big") -> ndarray:
    """Pack elements into the bits of ``uint8``, eight along an axis in one byte, padded with zeros.

    Args:
        x: integers or Booleans; each nonzero element is a set bit.
        axis: the axis; ``None`` packs the flattened array.
        bitorder: ``"big"`` puts the first element into the highest bit, ``"little"`` the lowest.

    Raises:
        ArgumentError: the order of bits is unknown.
        DTypeError: ``x`` is neither an integer nor a Boolean array.

    Example:
        >>> dp.packbits(dp.asarray([1, 0, 1])).asnumpy()
        array([160], dtype=uint8)
    """
    if x.dtype.kind not in "biu":
        raise DTypeError(f"packbits: x of dtype {x.dtype} must be integers or Booleans")
    shifts = _bit_shifts("packbits", x, bitorder)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = _layout.normalize_axis("packbits", axis, x.ndim)
    lines = moveaxis(x, axis, -1)
    count = -(-lines.shape[-1] // 8)
    bits = full((*lines.shape[:-1], 8 * count), 0, "uint8", **placement_keywords(x))
    bits[..., : lines.shape[-1]] = lines != 0
    fields = reshape(bits, (*lines.shape[:-1], count, 8)) << shifts
    return moveaxis(sum_of(fields, -1, dtype="uint8"), -1, axis)


@public()
def unpackbits(
    x: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> ndarray:
    """Unpack ``uint8`` into elements that are 0 or 1, along an axis.

    Args:
        x: a ``uint8`` array.
        axis: the axis; ``None`` unpacks the flattened array.
        count: the number of bits to keep along the axis; a negative number drops that many.
        bitorder: ``"big"`` or ``"little"``, as in :func:`packbits`.

    Raises:
        ArgumentError: the order of bits is unknown.
        DTypeError: ``x`` is not ``uint8``.

    Example:
        >>> dp.unpackbits(dp.asarray([160], dtype="uint8"), count=3).asnumpy()
        array([1, 0, 1], dtype=uint8)
    """
    if x.dtype != _dtypes.uint8:
        raise DTypeError(f"unpackbits: x of dtype {x.dtype} must be uint8")
    shifts = _bit_shifts("unpackbits", x, bitorder)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = _layout.normalize_axis("unpackbits", axis, x.ndim)
    lines = moveaxis(x, axis, -1)
    bits = (expand_dims(lines, -1) >> shifts) & 1
    bits = reshape(bits, (*lines.shape[:-1], 8 * lines.shape[-1]))
    if count is not None and count > bits.shape[-1]:
        longer = full((*bits.shape[:-1], count), 0, "uint8", **placement_keywords(x))
        longer[..., : bits.shape[-1]] = bits
        bits = longer
    elif count is not None:
        bits = bits[..., :count].copy()
    return moveaxis(bits, -1, axis)


def _bit_shifts(function: str, x: ndarray, bitorder: str) -> ndarray:
    """Return the shift of each of the eight bits of a byte."""
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"{function}: bitorder must be 'big' or 'little'; got {bitorder!r}")
    order = range(7, -1, -1) if bitorder == "big" else range(8)
    return from_host(np.asarray(order, np.uint8), x.queue, x.usm_type)
