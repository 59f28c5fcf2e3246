"""Pairwise distances of points."""

from __future__ import annotations

from dparray._array.allocation import empty_on
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._driver import traits_of
from dparray._kernel.launch import call_kernel
from dparray._placement import common_placement
from dparray.algorithms.ranges import kernel_of
from dparray.algorithms.tiles import uses_tiles
from dparray.algorithms.work_sizes import lanes_that_fit
from dparray.exceptions import DTypeError, ShapeError
from dparray.kernel_api import LocalAccessor, NdRange
from dparray.kernels.distance import make_pairwise_distance_kernel

__all__ = ["pairwise_distance"]

# The points of x that a work-item of pairwise_distance keeps in registers; the coordinates in local
# memory.
_ROWS = 16
_DEPTH = 32


def check_floats(function: str, **arrays: ndarray) -> None:
    """Raise ``DTypeError`` unless all arrays are float32, or all float64."""
    dtypes = {array.dtype.name for array in arrays.values()}
    if len(dtypes) != 1 or not dtypes <= {"float32", "float64"}:
        raise DTypeError(
            f"{function}: {' and '.join(arrays)} must both be float32 or both float64; got "
            f"{' and '.join(array.dtype.name for array in arrays.values())}; convert with "
            "x.astype('float32')"
        )


def pairwise_distance(x: ndarray, y: ndarray, /, *, squared: bool = False) -> ndarray:
    """Return the Euclidean distance between each point of ``x`` and each point of ``y``.

    Differences are squared and added, so nearby points lose no precision.

    Args:
        x: shape ``(n, dimensions)``, float32 or float64.
        y: shape ``(m, dimensions)``, of the same dtype.
        squared: whether to omit the square root.

    Returns:
        Shape ``(n, m)``, of the same dtype, on the queue of the arrays, with the USM type coerced
        from their USM types.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not match.
        DTypeError: the dtypes differ or are not floating-point.

    Example:
        >>> x = dp.asarray([[0.0, 0.0], [3.0, 0.0]], dtype="float32")
        >>> y = dp.asarray([[0.0, 4.0]], dtype="float32")
        >>> dp.algorithms.pairwise_distance(x, y).asnumpy()
        array([[4.],
               [5.]], dtype=float32)
    """
    function = "pairwise_distance"
    x, y = check_array(function, "x", x), check_array(function, "y", y)
    placement = common_placement(function, (("x", x), ("y", y)))
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise ShapeError(
            f"{function}: x must be (n, dimensions) and y (m, dimensions); got {x.shape} and "
            f"{y.shape}"
        )
    check_floats(function, x=x, y=y)
    result = empty_on(placement, (x.shape[0], y.shape[0]), x.dtype)
    if result.size:
        is_gpu = uses_tiles(placement.queue)
        bytes_of_a_lane = (_DEPTH + 1) * x.itemsize * 2 if is_gpu else 1  # so that two groups fit
        lanes = lanes_that_fit(traits_of(placement.queue), bytes_of_a_lane)
        tiles = -(-x.shape[0] // _ROWS) * -(-y.shape[0] // lanes)
        call_kernel(
            kernel_of(
                make_pairwise_distance_kernel, _ROWS, _DEPTH, bool(squared), x.dtype.type, is_gpu
            ),
            NdRange(tiles * lanes, lanes),
            x,
            y,
            result,
            LocalAccessor(_ROWS * _DEPTH, x.dtype),
            LocalAccessor(lanes * (_DEPTH + 1) if is_gpu else 1, x.dtype),
        )
    return result
