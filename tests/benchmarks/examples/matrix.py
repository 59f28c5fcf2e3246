"""Matrix multiplication and transposition with the collection's tiled kernels."""

from __future__ import annotations

from math import prod
from typing import Any

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._driver import traits_of
from dparray._kernel.launch import call_kernel
from dparray._placement import common_placement
from dparray.algorithms.ranges import kernel_of
from dparray.algorithms.work_sizes import lanes_that_fit
from dparray.exceptions import DTypeError, ShapeError
from dparray.kernel_api import LocalAccessor, NdRange
from dparray.kernels.matrix import make_matmul_kernel, make_transpose_kernel

__all__ = ["matmul", "transpose"]

# Rows of the result that a work-item keeps in registers, and columns of `a` in local memory.
_ROWS = 16
_DEPTH = 64
_LANES = 128
# The sides of a tile of `transpose`. On a CPU the tile fills the L2 cache (measured). On other
# devices it is small enough for several groups to share the local memory of a compute unit.
_CPU_SIDE = 128
_SIDE = 32


def _matrices(function: str, name: str, value: Any) -> ndarray:
    x = check_array(function, name, value)
    if x.ndim < 2:
        raise ShapeError(
            f"{function}: {name} needs two or more dimensions; its shape is {x.shape}; "
            f"use dp.reshape({name}, ...)"
        )
    return x


def matmul(a: ndarray, b: ndarray, /) -> ndarray:
    """Return the matrix product, computed by a kernel with tiles in local memory.

    `dp.matmul` uses the vendor's library, which is faster; this kernel is the same on every device
    and for every dtype, and is meant for reading.

    Args:
        a: shape ``(..., m, k)``, of a real dtype other than bool.
        b: shape ``(..., k, n)``, of the same dtype; the leading dimensions broadcast.

    Returns:
        Shape ``(..., m, n)``, of the same dtype, on the queue of the arrays, with a USM type
        coerced from their USM types. Integers wrap around.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not fit.
        DTypeError: the dtypes differ, or are bool or complex.

    Example:
        >>> from tests.benchmarks.examples import matmul
        >>> a = dp.asarray([[1.0, 2.0], [3.0, 4.0]], dtype="float32")
        >>> matmul(a, a).asnumpy()
        array([[ 7., 10.],
               [15., 22.]], dtype=float32)
    """
    a, b = _matrices("matmul", "a", a), _matrices("matmul", "b", b)
    placement = common_placement("matmul", (("a", a), ("b", b)))
    (m, k), (inner, n) = a.shape[-2:], b.shape[-2:]
    if k != inner:
        raise ShapeError(
            f"matmul: the columns of a and the rows of b must be as many; got {a.shape} and "
            f"{b.shape}"
        )
    if a.dtype != b.dtype or a.dtype.kind not in "iuf" or a.dtype.name == "float16":
        raise DTypeError(
            "matmul: a and b must have one dtype, integers of any size, float32 or float64; got "
            f"{a.dtype} and {b.dtype}; convert one with x.astype(...)"
        )
    leading = _layout.broadcast_shapes("matmul", [a.shape[:-2], b.shape[:-2]])
    stack = prod(leading)
    result = empty_on(placement, (*leading, m, n), a.dtype)
    if result.size:
        lanes = lanes_that_fit(traits_of(placement.queue), 1, _LANES)
        tiles = stack * -(-m // _ROWS) * -(-n // lanes)
        call_kernel(
            kernel_of(make_matmul_kernel, _ROWS, _DEPTH, a.dtype.type),
            NdRange(tiles * lanes, lanes),
            _stacked(a, leading, (stack, m, k)),
            _stacked(b, leading, (stack, k, n)),
            result.reshape((stack, m, n)),
            LocalAccessor(_ROWS * _DEPTH, a.dtype),
        )
    return result


def _stacked(x: ndarray, leading: tuple[int, ...], shape: tuple[int, int, int]) -> ndarray:
    """Return the matrices of ``x``, broadcast, in a stack of shape ``(stack, rows, columns)``."""
    if x.shape[:-2] != leading:
        shape_of_all = (*leading, *x.shape[-2:])
        strides = _layout.broadcast_strides("matmul", x.shape, x.strides, shape_of_all)
        x = x._view(shape_of_all, strides, x.offset)
    return x.reshape(shape)


def transpose(x: ndarray, /) -> ndarray:
    """Return a copy with the last two axes exchanged, made through tiles in local memory.

    `dp.permute_dims` gives a view, without copying; this gives a C-contiguous copy, reading and
    writing memory in long contiguous chunks.

    Args:
        x: shape ``(..., m, n)``, of a real dtype.

    Returns:
        Shape ``(..., n, m)``, of the same dtype, on the queue of ``x``, with its USM type.

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.
        DTypeError: ``x`` is complex or float16.

    Example:
        >>> from tests.benchmarks.examples import transpose
        >>> transpose(dp.asarray([[1, 2], [3, 4]])).asnumpy()
        array([[1, 3],
               [2, 4]])
    """
    x = _matrices("transpose", "x", x)
    if x.dtype.kind not in "biuf" or x.dtype.name == "float16":
        raise DTypeError(f"transpose: x must be real and of at least float32; it is {x.dtype}")
    placement = common_placement("transpose", (("x", x),))
    *leading, m, n = x.shape
    result = empty_on(placement, (*leading, n, m), x.dtype)
    if result.size:
        if x.dtype == _dtypes.bool:  # local memory cannot hold Booleans
            x = x._view(x.shape, x.strides, x.offset, _dtypes.uint8)
        stack = prod(leading)
        traits = traits_of(placement.queue)
        side = _CPU_SIDE if traits.shares_memory else _SIDE
        lanes = lanes_that_fit(traits, (side + 1) * x.itemsize, side)
        tiles = stack * -(-m // lanes) * -(-n // lanes)
        call_kernel(
            kernel_of(make_transpose_kernel, lanes, 1),
            NdRange(tiles * lanes, lanes),
            x.reshape((stack, m, n)),
            result._view(
                (stack, n, m), (n * m * x.itemsize, m * x.itemsize, x.itemsize), 0, x.dtype
            ),
            LocalAccessor((lanes, lanes + 1), x.dtype),
        )
    return result
