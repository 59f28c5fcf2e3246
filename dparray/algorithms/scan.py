"""Inclusive and exclusive scans."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
from dparray.algorithms.ranges import (
    accumulator,
    check_1d,
    check_kind,
    check_width,
    new,
    operation,
    placement_of,
)
from dparray.algorithms.tiles import scan_axis

__all__ = ["exclusive_scan", "inclusive_scan"]


def inclusive_scan(x: ndarray, op: str = "add", *, dtype: Any = None) -> ndarray:
    """Compute an inclusive scan: ``out[i]`` combines ``x[0]`` to ``x[i]``.

    Args:
        x: a 1-D array of shape ``(n,)``, of real or Boolean dtype.
        op: ``"add"``, ``"multiply"``, ``"minimum"`` or ``"maximum"``.
        dtype: the dtype to combine in. By default sums and products of integers have 64 bits, as in
            NumPy; everything else keeps the dtype of ``x``.

    Returns:
        An array of shape ``(n,)``. ``minimum`` and ``maximum`` are NaN from the first NaN on.

    Raises:
        ShapeError: ``x`` is not one-dimensional.
        DTypeError: ``x`` or ``dtype`` is complex, or ``dtype`` is Boolean.
        ValueError: ``op`` is not one of the four.
        HostConversionError: ``x`` is not a dparray array.

    Placement: runs on the queue of ``x``; the result has its USM type.

    Example:
        >>> from dparray.algorithms import inclusive_scan
        >>> dp.asnumpy(inclusive_scan(dp.asarray([3, 1, 4, 1])))
        array([3, 4, 8, 9])
    """
    return _scan("inclusive_scan", x, op, dtype, None, inclusive=True)


def exclusive_scan(
    x: ndarray, op: str = "add", *, initial: Any = None, dtype: Any = None
) -> ndarray:
    """Compute an exclusive scan: ``out[i]`` combines ``x[0]`` to ``x[i - 1]``.

    Args:
        x: a 1-D array of shape ``(n,)``, of real or Boolean dtype.
        op: ``"add"``, ``"multiply"``, ``"minimum"`` or ``"maximum"``.
        initial: the value of ``out[0]``, which is combined with all later ones; by default the
            identity of the operation (0, 1, the largest or the smallest value of the dtype).
        dtype: see :func:`inclusive_scan`.

    Returns:
        An array of shape ``(n,)``.

    Raises: see :func:`inclusive_scan`.

    Placement: runs on the queue of ``x``; the result has its USM type.

    Example:
        >>> from dparray.algorithms import exclusive_scan
        >>> dp.asnumpy(exclusive_scan(dp.asarray([3, 1, 4, 1])))
        array([0, 3, 4, 8])
    """
    return _scan("exclusive_scan", x, op, dtype, initial, inclusive=False)


def _scan(
    function: str, x: ndarray, op: str, dtype: Any, initial: Any, *, inclusive: bool
) -> ndarray:
    operation(function, op)
    where = placement_of(function, [("x", x)])
    check_1d(function, "x", x)
    check_kind(function, "x", x, "biuf", "a real or Boolean")
    check_width(function, "x", x)
    out_dtype = accumulator(op, x.dtype) if dtype is None else np.dtype(dtype)
    if out_dtype.kind == "b":
        out_dtype = np.dtype(np.uint8)
    out = new(x.size, out_dtype, where)
    check_kind(function, "the result", out, "iuf", "an integer or real")
    if not x.size:
        return out
    scan_axis(op, x, out, initial=initial, inclusive=inclusive)
    return out
