"""Stencils and convolutions of signals, images and volumes."""

from __future__ import annotations

from math import prod

from dparray._array.allocation import empty_on
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._driver import traits_of
from dparray._driver.interface import Traits
from dparray._kernel.launch import call_kernel
from dparray._placement import common_placement
from dparray.algorithms.points import check_floats
from dparray.algorithms.ranges import kernel_of
from dparray.algorithms.work_sizes import lanes_that_fit
from dparray.exceptions import KernelRangeError, ShapeError
from dparray.kernel_api import LocalAccessor, NdRange
from dparray.kernels.stencil import make_convolution_kernel, make_separable_convolution_kernel

__all__ = ["convolve_dense", "convolve_separable"]

# Tile sizes without halos (depth, height, width), the largest for each number of dimensions; and
# the work-items of a group.
_TILES = {1: (1, 1, 1024), 2: (1, 16, 64), 3: (4, 8, 64)}
_LANES = 64
_BOUNDARIES = ("edge", "zero")

_TILE_WIDTH = 64
_TILE_HEIGHTS = (32, 16, 8, 4, 2, 1)


def _tile(traits: Traits, radius: int, itemsize: int) -> tuple[int, int] | None:
    """Return the height and width of a tile that fits in local memory with halo and row sums."""
    width = min(_TILE_WIDTH, 1 << (traits.group.bit_length() - 1))
    for height in _TILE_HEIGHTS:
        elements = (height + 2 * radius) * (2 * width + 2 * radius)
        if elements * itemsize <= traits.local_memory:
            return height, width
    return None


def convolve_separable(x: ndarray, weights: ndarray, /) -> ndarray:
    """Filter along the last two axes with the same weights.

    The image is extended by its edge values. The weights are not flipped (a correlation, which is
    the same for symmetric weights). The result equals SciPy's ``correlate1d(..., mode="nearest")``
    along the last axis and then along the axis before it.

    Args:
        x: shape ``(..., height, width)``, float32 or float64.
        weights: an odd number of weights, one-dimensional, of the same dtype.

    Returns:
        A new array with the shape and dtype of ``x`` on the queue of the arrays, with the USM type
        coerced from their USM types.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: ``x`` has fewer than two dimensions, or the number of weights is even.
        DTypeError: the dtypes differ or are not floating-point.
        KernelRangeError: the neighborhood does not fit in the device's local memory.

    Example:
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
        raise ShapeError(f"{function}: x must have at least 2 dimensions; got shape {x.shape}")
    if weights.ndim != 1 or weights.size % 2 == 0:
        raise ShapeError(
            f"{function}: weights must be 1-D with an odd length, so that one is in the "
            f"middle; got shape {weights.shape}"
        )
    check_floats(function, x=x, weights=weights)
    result = empty_on(placement, x.shape, x.dtype)
    if x.size == 0:
        return result
    radius = weights.size // 2
    traits = traits_of(placement.queue)
    tile = _tile(traits, radius, x.dtype.itemsize)
    if tile is None:
        raise KernelRangeError(
            f"{function}: the neighborhood of {weights.size} weights does not fit in the "
            f"{traits.local_memory} bytes of local memory of {traits.name}; use fewer weights"
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
    """Convolve a signal, an image or a volume with a small window of weights.

    Any linear stencil is a convolution: a Laplacian has the weights ``[[0, 1, 0], [1, -4, 1], [0,
    1, 0]]``. The result has the shape of ``x``. The window is centered on each element and flipped,
    as in the definition of convolution: the first weight applies to the last neighbor.

    Args:
        x: an array of one to three dimensions, float32 or float64.
        weights: an array with as many dimensions, of the same dtype, with an odd length along each
            axis.
        boundary: the values outside ``x``: ``"edge"`` for repeated edge values (SciPy's
            ``"nearest"``), or ``"zero"``.

    Returns:
        A new array with the shape and dtype of ``x`` on the queue of the arrays, with the USM type
        coerced from their USM types.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ValueError: the boundary is unknown.
        ShapeError: the numbers of dimensions differ, or a length of ``weights`` is even.
        DTypeError: the dtypes differ or are not floating-point.
        KernelRangeError: the window does not fit in the device's local memory.

    Example:
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
            f"{function}: weights must have an odd length along each axis, so that one is in the "
            f"middle; got {weights.shape}"
        )
    check_floats(function, x=x, weights=weights)
    result = empty_on(placement, x.shape, x.dtype)
    if x.size == 0:
        return result
    missing = (1,) * (3 - x.ndim)
    volume, window = (*missing, *x.shape), (*missing, *weights.shape)
    traits = traits_of(placement.queue)
    depth, height, width = _volume_tile(function, traits, x, window)
    lanes = lanes_that_fit(traits, 1, min(width, _LANES))
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
    function: str, traits: Traits, x: ndarray, window: tuple[int, ...]
) -> tuple[int, int, int]:
    """Return a tile that fits in local memory with its halo; planes shrink first, then rows."""
    depth, height, width = _TILES[x.ndim]
    while (
        prod(
            extent + reach - 1 for extent, reach in zip((depth, height, width), window, strict=True)
        )
        * x.itemsize
        > traits.local_memory
    ):
        if depth > 1:
            depth //= 2
        elif height > 1:
            height //= 2
        elif width > 16:
            width //= 2
        else:
            raise KernelRangeError(
                f"{function}: the neighborhood of {prod(window)} weights does not fit in the "
                f"{traits.local_memory} bytes of local memory of {traits.name}; use fewer weights"
            )
    return depth, height, width
