"""Reductions with the collection's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array import check_array, empty_on, ndarray
from dparray._placement import Placement
from dparray.algorithms._groups import lanes_that_fit, rounded_up
from dparray.algorithms._ranges import accumulator, kernel_of, operation
from dparray.exceptions import DTypeError, ShapeError
from dparray.kernel import call_kernel
from dparray.kernel_api import LocalAccessor, NdRange, Range
from dparray.kernels.combine import identity, loses_nan
from dparray.kernels.reduce import (
    CHAIN,
    make_reduce_columns_kernel,
    make_reduce_rows_kernel,
    make_reduce_runs_kernel,
)

__all__ = ["reduce"]

# A shorter row is not worth a work-group of its own: on a GPU because of idle work-items, on a CPU
# because of the barriers.
_SHORTEST_ROW = 512
_SHORTEST_ROW_ON_CPU = 16384

# Work-items of a group, and chains of each: on a CPU two vector registers that move through the
# memory without gaps, on a GPU enough groups to occupy it.
_ON_CPU = 32, 32
_ON_GPU = 256, 2

# On a CPU, a work-item gets rows with so many elements together.
_ELEMENTS_OF_AN_ITEM = 2048

# With fewer columns, neighbouring work-items do better on other rows or blocks.
_FEW_COLUMNS = 8


def reduce(
    x: ndarray,
    op: str = "add",
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> ndarray:
    """Combine the elements along axes, in blocks: sums are about as exact as pairwise ones.

    The order of operations depends on the shape and the device's limits alone, so a result repeats
    bit for bit.

    Args:
        x: an array of a real dtype other than float16.
        op: ``"add"``, ``"multiply"``, ``"minimum"`` or ``"maximum"``. The last two give NaN if an
            element is NaN.
        axis: the axis or axes to reduce; all of them if ``None``.
        keepdims: keep the reduced axes, with length 1.

    Returns:
        An array without the reduced axes, on the queue of ``x``, with its USM type. The dtype is
        that of ``x``, or of 64 bits for sums and products of integers and booleans.

    Raises:
        ValueError: there is no such operation.
        AxisError: there is no such axis.
        ShapeError: a minimum or maximum of no elements.
        DTypeError: ``x`` is complex or float16.

    Example:
        >>> import dparray as dp
        >>> x = dp.asarray([[1.0, 2.0], [3.0, 5.0]], dtype="float32")
        >>> dp.algorithms.reduce(x, axis=0).asnumpy()
        array([4., 7.], dtype=float32)
        >>> dp.algorithms.reduce(x, "maximum").item()
        5.0
    """
    x = check_array("reduce", "x", x)
    if x.dtype.kind not in "biuf" or x.dtype.name == "float16":
        raise DTypeError(f"reduce: x must be real and of at least float32; it is {x.dtype}")
    dtype = accumulator(op, x.dtype)
    functions = operation("reduce", op)
    plain = functions.combine if loses_nan(op, dtype.type) else functions.combine_nan
    _dtypes.check_device(dtype, x.sycl_queue.sycl_device)
    axes = tuple(range(x.ndim)) if axis is None else _layout.normalize_axes("reduce", axis, x.ndim)
    kept = tuple(1 if i in axes else extent for i, extent in enumerate(x.shape))
    shape = kept if keepdims else tuple(e for i, e in enumerate(x.shape) if i not in axes)
    if prod(x.shape) == 0:
        return _nothing(op, x, axes, shape, dtype)
    # Local memory has no bool; the kernels convert what they read.
    working = _dtypes.uint8 if dtype == _dtypes.bool else dtype
    result = x
    if len(axes) == x.ndim:
        result = _along(result.reshape((1, x.size, 1)), plain, working, functions.combine_nan)
    else:
        # The longest first: what is left of the others is the smaller for it.
        for i in sorted(axes, key=lambda i: -x.shape[i]):
            now = result.shape
            outer, inner = prod(now[:i]), prod(now[i + 1 :])
            combined = _along(
                result.reshape((outer, now[i], inner)), plain, working, functions.combine_nan
            )
            result = combined.reshape((*now[:i], 1, *now[i + 1 :]))
    return result.astype(dtype, copy=result.block is x.block).reshape(shape)


def _nothing(
    op: str, x: ndarray, axes: tuple[int, ...], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> ndarray:
    """The reduction of an array without elements."""
    result = empty_on(Placement(x.sycl_queue, x.usm_type), shape, dtype)
    if result.size:
        if op in ("minimum", "maximum"):
            raise ShapeError(
                f"reduce: the {op} of an array of shape {x.shape} along axes {axes} has no element "
                "to come from"
            )
        result[...] = identity(op, dtype.type)
    return result


def _along(x: ndarray, combine: Any, dtype: np.dtype[Any], combine_nan: Any = None) -> ndarray:
    """Reduce the middle axis of ``x``, of shape ``(outer, n, inner)``, to length 1 in ``dtype``.

    ``combine`` is a device function, associative and commutative; ``combine_nan`` is the one that
    takes over where there is a NaN, if ``combine`` may lose it.
    """
    placement = Placement(x.sycl_queue, x.usm_type)
    device = x.sycl_device
    outer, n, inner = x.shape
    key = (combine, combine_nan or combine, dtype.type)
    lanes, chains = _ON_CPU if device.is_cpu else _ON_GPU
    lanes = lanes_that_fit(device, dtype.itemsize, lanes)
    shortest = _SHORTEST_ROW_ON_CPU if device.is_cpu else _SHORTEST_ROW
    while n > 1:
        if inner == 1 and n >= shortest:
            blocks = -(-n // (lanes * chains * CHAIN))
            partial = empty_on(placement, (outer, blocks, 1), dtype)
            call_kernel(
                kernel_of(make_reduce_rows_kernel, *key, chains),
                NdRange(outer * blocks * lanes, lanes),
                x.reshape((outer, n)),
                partial.reshape((outer, blocks)),
                LocalAccessor(lanes, dtype),
            )
        elif inner == 1 and device.is_cpu:
            blocks = 1
            partial = empty_on(placement, (outer, 1, 1), dtype)
            rows = max(1, _ELEMENTS_OF_AN_ITEM // n)
            call_kernel(
                kernel_of(make_reduce_runs_kernel, *key),
                NdRange(-(-outer // rows), 1),
                x.reshape((outer, n)),
                partial.reshape((outer,)),
                rows,
            )
        else:
            blocks = -(-n // CHAIN)
            partial = empty_on(placement, (outer, blocks, inner), dtype)
            extents = {"outer": outer, "blocks": blocks, "inner": inner}
            fastest = "inner" if inner >= _FEW_COLUMNS else max(extents, key=extents.__getitem__)
            last = extents.pop(fastest)
            call_kernel(
                kernel_of(make_reduce_columns_kernel, *key, fastest),
                Range(*extents.values(), rounded_up(last, 16)),
                x,
                partial,
            )
        x, n = partial, blocks
    return x
