"""Bits of integers: counted, packed into bytes and unpacked."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import from_host
from dparray._array.apply import apply, astype_array
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._functions.creation import full
from dparray._functions.manipulation import expand_dims, moveaxis, reshape
from dparray._functions.operands import placement_keywords
from dparray._functions.public import public
from dparray._functions.reductions import sum as sum_of
from dparray._functions.ufunc_options import with_options
from dparray._graph.ops import OPS
from dparray.exceptions import ArgumentError, DTypeError

__all__ = ["bitwise_count", "packbits", "unpackbits"]


@with_options
def bitwise_count(x: Any, /) -> ndarray:
    """Return how many bits of the absolute value are set, as ``uint8``.

    Raises:
        DTypeError: ``x`` is not integer.

    Example:
        >>> import dparray as dp
        >>> dp.bitwise_count(dp.asarray([0, 7, -8])).asnumpy()
        array([0, 3, 1], dtype=uint8)
    """
    x = check_array("bitwise_count", "x", x)
    if x.dtype.kind not in "biu":
        raise DTypeError(f"bitwise_count: x of dtype {x.dtype} must be integers")
    if x.dtype.kind == "b":
        return astype_array(x, _dtypes.uint8)
    if x.dtype.kind == "i":  # the least integer is its own absolute value, as bits the right one
        x = astype_array(apply(OPS["abs"], x), np.dtype(f"u{x.itemsize}"))
    # Sums of neighboring fields of 1, 2 and 4 bits; the bytes are added by a multiplication.
    bits = astype_array(x, _dtypes.uint64)
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    count = (bits * 0x0101010101010101) >> 56
    return astype_array(count, _dtypes.uint8)


@public()
def packbits(x: Any, axis: int | None = None, bitorder: str = "big") -> ndarray:
    """Elements as bits of ``uint8``, eight along an axis in one; the last is filled with zeros.

    Args:
        x: integers or booleans; each counts as a set bit if it is not zero.
        axis: the axis; ``None`` packs the flattened array.
        bitorder: ``"big"`` makes the first element the highest bit, ``"little"`` the lowest.

    Raises:
        ArgumentError: there is no such order of bits.
        AxisError: there is no such axis.
        DTypeError: ``x`` is neither integer nor boolean.

    Example:
        >>> import dparray as dp
        >>> dp.packbits(dp.asarray([1, 0, 1])).asnumpy()
        array([160], dtype=uint8)
    """
    if x.dtype.kind not in "biu":
        raise DTypeError(f"packbits: x of dtype {x.dtype} must be integers or booleans")
    shifts = _bit_shifts("packbits", x, bitorder)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = _layout.normalize_axis("packbits", axis, x.ndim)
    lines = moveaxis(x, axis, -1)
    count = -(-lines.shape[-1] // 8)
    bits = full((*lines.shape[:-1], 8 * count), 0, "uint8", **placement_keywords(x))
    bits[..., : lines.shape[-1]] = apply(OPS["not_equal"], lines, 0)
    fields = reshape(bits, (*lines.shape[:-1], count, 8)) << shifts
    return moveaxis(sum_of(fields, -1, dtype="uint8"), -1, axis)


@public()
def unpackbits(
    x: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> ndarray:
    """Return the bits of ``uint8`` as elements that are 0 or 1, along an axis.

    Args:
        x: a ``uint8`` array.
        axis: the axis; ``None`` unpacks the flattened array.
        count: how many bits to keep along it; a negative number leaves so many out.
        bitorder: ``"big"`` or ``"little"``, as of :func:`packbits`.

    Raises:
        ArgumentError: there is no such order of bits.
        AxisError: there is no such axis.
        DTypeError: ``x`` is not ``uint8``.

    Example:
        >>> import dparray as dp
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
    """By how much each of eight bits is shifted in its byte."""
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"{function}: bitorder {bitorder!r} is neither 'big' nor 'little'")
    order = range(7, -1, -1) if bitorder == "big" else range(8)
    return from_host(np.asarray(order, np.uint8), x.sycl_queue, x.usm_type)
