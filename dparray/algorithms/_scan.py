"""Inclusive and exclusive scans."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray._array import ndarray
from dparray._creation import empty, zeros
from dparray._placement import Placement
from dparray.algorithms._ranges import (
    accumulator,
    check_1d,
    check_kind,
    check_width,
    chunks,
    kernel_of,
    new,
    operation,
    place,
)
from dparray.algorithms._reduce import chunk_totals
from dparray.kernel import call_kernel
from dparray.kernel_api import NdRange
from dparray.kernels.combine import Operation, identity
from dparray.kernels.scan import make_chained_scan_kernel, make_chunk_scan_kernel

__all__ = ["exclusive_scan", "inclusive_scan"]

# A tile and its results stay in the cache of a core.
_TILE_BYTES = 1 << 18


def inclusive_scan(x: ndarray, op: str = "add", *, dtype: Any = None) -> ndarray:
    """The running result of an operation: ``out[i]`` combines ``x[0]`` to ``x[i]``.

    Args:
        x: a 1-D array of shape ``(n,)``, of real or boolean dtype.
        op: ``"add"``, ``"multiply"``, ``"minimum"`` or ``"maximum"``.
        dtype: the dtype to combine in. By default sums and products of integers have 64 bits, as in
            NumPy; everything else keeps the dtype of ``x``.

    Returns:
        An array of shape ``(n,)``. ``minimum`` and ``maximum`` are NaN from the first NaN on.

    Raises:
        ShapeError: ``x`` has not one dimension.
        DTypeError: ``x`` or ``dtype`` is complex, or ``dtype`` is boolean.
        ValueError: ``op`` is none of the four.
        HostConversionError: ``x`` is no dparray array.

    Placement: runs on the queue of ``x``; the result has its USM type.

    Example:
        >>> import dparray as dp
        >>> from dparray.algorithms import inclusive_scan
        >>> dp.asnumpy(inclusive_scan(dp.asarray([3, 1, 4, 1])))
        array([3, 4, 8, 9])
    """
    return _scan("inclusive_scan", x, op, dtype, None, inclusive=True)


def exclusive_scan(
    x: ndarray, op: str = "add", *, initial: Any = None, dtype: Any = None
) -> ndarray:
    """The running result before each element: ``out[i]`` combines ``x[0]`` to ``x[i - 1]``.

    Args:
        x: a 1-D array of shape ``(n,)``, of real or boolean dtype.
        op: ``"add"``, ``"multiply"``, ``"minimum"`` or ``"maximum"``.
        initial: the value of ``out[0]``, combined with all later ones; by default the
            operation's identity (0, 1, the largest and the smallest value of the dtype).
        dtype: as for :func:`inclusive_scan`.

    Returns:
        An array of shape ``(n,)``.

    Raises: as :func:`inclusive_scan`.

    Placement: runs on the queue of ``x``; the result has its USM type.

    Example:
        >>> import dparray as dp
        >>> from dparray.algorithms import exclusive_scan
        >>> dp.asnumpy(exclusive_scan(dp.asarray([3, 1, 4, 1])))
        array([0, 3, 4, 8])
    """
    return _scan("exclusive_scan", x, op, dtype, initial, inclusive=False)


def _scan(
    function: str, x: ndarray, op: str, dtype: Any, initial: Any, *, inclusive: bool
) -> ndarray:
    combine = operation(function, op)
    where = place(function, [("x", x)])
    check_1d(function, "x", x)
    check_kind(function, "x", x, "biuf", "a real or boolean")
    check_width(function, "x", x)
    out_dtype = accumulator(op, x.dtype) if dtype is None else np.dtype(dtype)
    if out_dtype.kind == "b":
        out_dtype = np.dtype(np.uint8)
    out = new(x.size, out_dtype, where)
    check_kind(function, "the result", out, "iuf", "an integer or real")
    if not x.size:
        return out
    scalar: Any = out_dtype.type
    start: Any = identity(op, scalar) if initial is None else scalar(initial)
    if out_dtype.kind in "iu":
        # dpctl takes no scalars of 8 bits; the kernel takes the bits it needs.
        start = np.int64(start) if out_dtype.kind == "i" else np.uint64(start)
    if where.queue.sycl_device.is_cpu:
        _chained_scan(x, out, combine, inclusive, start, where)
    else:
        _chunk_scan(x, out, combine, inclusive, start, where)
    return out


def _chained_scan(
    x: ndarray, out: ndarray, op: Operation, inclusive: bool, start: Any, where: Placement
) -> None:
    """In one launch, which reads memory once; work-groups wait for those that started before."""
    tile = _TILE_BYTES // out.itemsize
    tiles = -(-x.size // tile)
    progress = zeros(tiles + 1, dtype=np.int64, sycl_queue=where.queue, usm_type="device")
    carry = empty(tiles, dtype=out.dtype, sycl_queue=where.queue, usm_type="device")
    scan = kernel_of(make_chained_scan_kernel, op, out.dtype.type, inclusive)
    call_kernel(scan, NdRange((tiles,), (1,)), x, progress, carry, out, tile, start)


def _chunk_scan(
    x: ndarray, out: ndarray, op: Operation, inclusive: bool, start: Any, where: Placement
) -> None:
    """In two launches, of work-items that are independent of each other."""
    index_space, count, chunk = chunks(where.queue, x.size)
    total = chunk_totals(x, op.name, count, chunk, out.dtype)
    scan = kernel_of(make_chunk_scan_kernel, op, out.dtype.type, inclusive)
    call_kernel(scan, index_space, x, total, out, chunk, start)
