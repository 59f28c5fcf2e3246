"""Stencils and convolutions over signals, images and volumes."""

from __future__ import annotations

from math import prod
from typing import Any

from dparray._array.allocation import empty_on
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._kernel.launch import call_kernel
from dparray._placement import common_placement
from dparray.algorithms.ranges import kernel_of
from dparray.algorithms.work_sizes import lanes_that_fit
from dparray.exceptions import DTypeError, KernelRangeError, ShapeError
from dparray.kernel_api import LocalAccessor, NdRange
from dparray.kernels.stencil import (
    make_convolution_kernel,
    make_separable_convolution_kernel,
)

__all__ = ["convolve_dense", "convolve_separable"]

# Tiles without their halos: (depth, height, width), the largest for each number of dimensions; and
# the work-items of a group.
_TILES = {1: (1, 1, 1024), 2: (1, 16, 64), 3: (4, 8, 64)}
_LANES = 64
_BOUNDARIES = ("edge", "zero")

_TILE_WIDTH = 64
_TILE_HEIGHTS = (32, 16, 8, 4, 2, 1)


def _tile(device: Any, radius: int, itemsize: int) -> tuple[int, int] | None:
    """Height and width of a tile that fits into local memory with its halo and row sums."""
    width = min(_TILE_WIDTH, 1 << (device.max_work_group_size.bit_length() - 1))
    for height in _TILE_HEIGHTS:
        elements = (height + 2 * radius) * (2 * width + 2 * radius)
        if elements * itemsize <= device.local_mem_size:
            return height, width
    return None


def convolve_separable(x: ndarray, weights: ndarray, /) -> ndarray:
    """Weigh the neighbors of each element along the last two axes with the same weights.

    The edges are repeated outside the image. The weights are not flipped (a correlation, which is
    the same for symmetric weights): what SciPy's ``correlate1d(..., mode="nearest")`` gives when it
    is applied along the last axis and then along the one before it.

    Args:
        x: shape ``(..., height, width)``, float32 or float64.
        weights: an odd number of weights, one-dimensional, of the same dtype.

    Returns:
        A new array with the shape and dtype of ``x`` on the queue of the arrays, with a USM type
        coerced from theirs.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: ``x`` has fewer than two dimensions, or the number of weights is even.
        DTypeError: the dtypes differ or are not of floating point.
        KernelRangeError: the neighborhood does not fit into the device's local memory.

    Example:
        >>> import dparray as dp
        >>> x = dp.asarray([[0, 0, 0], [0, 16, 0], [0, 0, 0]], dtype="float32")
        >>> weights = dp.asarray([0.25, 0.5, 0.25], dtype="float32")
        >>> dp.algorithms.convolve_separable(x, weights).asnumpy()
        array([[1., 2., 1.],
               [2., 4., 2.],
               [1., 2., 1.]], dtype=float32)
    """
    function = "convolve_separable"
    x = check_array(function, "x", x)
    weights = check_array(function, "weights", weights)
    placement = common_placement(function, (("x", x), ("weights", weights)))
    if x.ndim < 2:
        raise ShapeError(f"{function}: x needs two or more dimensions; got shape {x.shape}")
    if weights.ndim != 1 or weights.size % 2 == 0:
        raise ShapeError(
            f"{function}: weights must be an odd number in one dimension, so that one is in the "
            f"middle; got shape {weights.shape}"
        )
    _check_dtypes(function, x, weights)
    result = empty_on(placement, x.shape, x.dtype)
    if x.size == 0:
        return result
    radius = weights.size // 2
    device = placement.queue.sycl_device
    tile = _tile(device, radius, x.dtype.itemsize)
    if tile is None:
        raise KernelRangeError(
            f"{function}: the neighbourhood of {weights.size} weights does not fit into the "
            f"{device.local_mem_size} bytes of local memory of {device.name}; use fewer weights"
        )
    height, width = tile
    planes = (prod(x.shape[:-2]), *x.shape[-2:])
    tiles = planes[0] * -(-planes[1] // height) * -(-planes[2] // width)
    call_kernel(
        kernel_of(make_separable_convolution_kernel, radius),
        NdRange(tiles * width, width),
        x.reshape(planes),
        weights,
        result.reshape(planes),
        LocalAccessor((height + 2 * radius, width + 2 * radius), x.dtype),
        LocalAccessor((height + 2 * radius, width), x.dtype),
    )
    return result


def convolve_dense(x: ndarray, weights: ndarray, /, *, boundary: str = "edge") -> ndarray:
    """Convolution of a signal, an image or a volume with a small window of weights.

    Any linear stencil is one: a Laplacian has the weights ``[[0, 1, 0], [1, -4, 1], [0, 1, 0]]``.
    The result has the size of ``x``. The middle of the window lies on the element it is for, and
    the window is flipped, as the definition has it: the first weight belongs to the last neighbor.

    Args:
        x: one to three dimensions, float32 or float64.
        weights: as many dimensions, of the same dtype, an odd number of weights along each.
        boundary: what is outside of ``x``: ``"edge"``, its edges repeated (SciPy's ``"nearest"``),
            or ``"zero"``.

    Returns:
        A new array with the shape and dtype of ``x`` on the queue of the arrays, with a USM type
        coerced from theirs.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ValueError: there is no such boundary.
        ShapeError: the numbers of dimensions do not fit, or that of weights along one is even.
        DTypeError: the dtypes differ or are not of floating point.
        KernelRangeError: the window does not fit into the device's local memory.

    Example:
        >>> import dparray as dp
        >>> x = dp.asarray([0, 0, 1, 0, 0], dtype="float32")
        >>> weights = dp.asarray([1, 2, 3], dtype="float32")
        >>> dp.algorithms.convolve_dense(x, weights).asnumpy()
        array([0., 1., 2., 3., 0.], dtype=float32)
    """
    function = "convolve_dense"
    x = check_array(function, "x", x)
    weights = check_array(function, "weights", weights)
    placement = common_placement(function, (("x", x), ("weights", weights)))
    if boundary not in _BOUNDARIES:
        raise ValueError(
            f"{function}: boundary must be one of {', '.join(_BOUNDARIES)}; got {boundary!r}"
        )
    if x.ndim != weights.ndim or x.ndim not in _TILES:
        raise ShapeError(
            f"{function}: x and weights must both have 1, 2 or 3 dimensions; got {x.shape} and "
            f"{weights.shape}"
        )
    if any(extent % 2 == 0 for extent in weights.shape):
        raise ShapeError(
            f"{function}: weights must have an odd extent along each axis, so that one is in the "
            f"middle; got {weights.shape}"
        )
    _check_dtypes(function, x, weights)
    result = empty_on(placement, x.shape, x.dtype)
    if x.size == 0:
        return result
    missing = (1,) * (3 - x.ndim)
    volume, window = (*missing, *x.shape), (*missing, *weights.shape)
    device = placement.queue.sycl_device
    depth, height, width = _volume_tile(function, device, x, window)
    lanes = lanes_that_fit(device, 1, min(width, _LANES))
    tiles = -(-volume[0] // depth) * -(-volume[1] // height) * -(-volume[2] // width)
    call_kernel(
        kernel_of(make_convolution_kernel, window, boundary == "edge", x.dtype.type),
        NdRange(tiles * lanes, lanes),
        x.reshape(volume),
        weights[(slice(None, None, -1),) * x.ndim].reshape(window),
        result.reshape(volume),
        LocalAccessor(
            (depth + window[0] - 1, height + window[1] - 1, width + window[2] - 1), x.dtype
        ),
    )
    return result


def _volume_tile(
    function: str, device: Any, x: ndarray, window: tuple[int, ...]
) -> tuple[int, int, int]:
    """A tile that fits into local memory with its halo: fewer planes, then rows, then columns."""
    depth, height, width = _TILES[x.ndim]
    while (
        prod(
            extent + reach - 1 for extent, reach in zip((depth, height, width), window, strict=True)
        )
        * x.itemsize
        > device.local_mem_size
    ):
        if depth > 1:
            depth //= 2
        elif height > 1:
            height //= 2
        elif width > 16:
            width //= 2
        else:
            raise KernelRangeError(
                f"{function}: the neighbourhood of {prod(window)} weights does not fit into the "
                f"{device.local_mem_size} bytes of local memory of {device.name}; use fewer weights"
            )
    return depth, height, width


def _check_dtypes(function: str, x: ndarray, weights: ndarray) -> None:
    if x.dtype != weights.dtype or x.dtype.name not in ("float32", "float64"):
        raise DTypeError(
            f"{function}: x and weights must both be float32 or both float64; got {x.dtype} and "
            f"{weights.dtype}; convert with x.astype('float32')"
        )
