"""Functions of points in space: distances and gravitation, each point with each."""

from __future__ import annotations

import numpy as np

from dparray._array.fresh import empty_on
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._kernel.launch import call_kernel
from dparray._placement import common_placement
from dparray.algorithms.ranges import kernel_of, real_number
from dparray.algorithms.work_sizes import lanes_that_fit, rounded_up
from dparray.exceptions import ArgumentError, DTypeError, ShapeError
from dparray.kernel_api import LocalAccessor, NdRange
from dparray.kernels.distance import make_pairwise_distance_kernel
from dparray.kernels.nbody import make_acceleration_kernel

__all__ = ["nbody_acceleration", "pairwise_distance"]

# Points of x that a work-item of pairwise_distance has in registers; coordinates in local memory.
_ROWS = 16
_DEPTH = 32
_BODIES_OF_A_TILE = 128


def _check_floats(function: str, **arrays: ndarray) -> None:
    dtypes = {array.dtype.name for array in arrays.values()}
    if len(dtypes) != 1 or not dtypes <= {"float32", "float64"}:
        raise DTypeError(
            f"{function}: {' and '.join(arrays)} must both be float32 or both float64; got "
            f"{' and '.join(array.dtype.name for array in arrays.values())}; convert with "
            "x.astype('float32')"
        )


def pairwise_distance(x: ndarray, y: ndarray, /, *, squared: bool = False) -> ndarray:
    """The Euclidean distance of each point of ``x`` to each of ``y``.

    Differences are squared and added, so that near points lose no digits.

    Args:
        x: shape ``(n, dimensions)``, float32 or float64.
        y: shape ``(m, dimensions)``, of the same dtype.
        squared: leave out the square root.

    Returns:
        Shape ``(n, m)``, of the same dtype, on the queue of the arrays, with a USM type coerced
        from theirs.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not fit.
        DTypeError: the dtypes differ or are not of floating point.

    Example:
        >>> import dparray as dp
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
            f"{function}: x (n, dimensions) and y (m, dimensions) are needed; got {x.shape} and "
            f"{y.shape}"
        )
    _check_floats(function, x=x, y=y)
    result = empty_on(placement, (x.shape[0], y.shape[0]), x.dtype)
    if result.size:
        lanes = lanes_that_fit(placement.queue.sycl_device, 1)
        tiles = -(-x.shape[0] // _ROWS) * -(-y.shape[0] // lanes)
        call_kernel(
            kernel_of(make_pairwise_distance_kernel, _ROWS, _DEPTH, bool(squared), x.dtype.type),
            NdRange(tiles * lanes, lanes),
            x,
            y,
            result,
            LocalAccessor(_ROWS * _DEPTH, x.dtype),
        )
    return result


def nbody_acceleration(position: ndarray, mass: ndarray, /, softening: float) -> ndarray:
    """The acceleration of each body by the gravitation of all others.

    Body ``i`` gets the sum over ``j`` of ``mass[j] * d / (|d|**2 + softening**2)**1.5`` with ``d =
    position[j] - position[i]``.

    Args:
        position: shape ``(n, 3)``, float32 or float64.
        mass: shape ``(n,)``, of the same dtype, with the gravitational constant multiplied in.
        softening: a positive length below which the attraction levels off.

    Returns:
        Shape ``(n, 3)``, of the same dtype, on the queue of the arrays, with a USM type coerced
        from theirs.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not fit.
        DTypeError: the dtypes differ or are not of floating point.
        ValueError: ``softening`` is not positive, or too small for the dtype.

    Example:
        >>> import dparray as dp
        >>> position = dp.asarray([[0, 0, 0], [4, 0, 0]], dtype="float32")
        >>> mass = dp.asarray([1, 125], dtype="float32")
        >>> dp.algorithms.nbody_acceleration(position, mass, softening=3.0).asnumpy()
        array([[ 4.   ,  0.   ,  0.   ],
               [-0.032,  0.   ,  0.   ]], dtype=float32)
    """
    function = "nbody_acceleration"
    position = check_array(function, "position", position)
    mass = check_array(function, "mass", mass)
    placement = common_placement(function, (("position", position), ("mass", mass)))
    if position.ndim != 2 or position.shape[1] != 3 or mass.shape != position.shape[:1]:
        raise ShapeError(
            f"{function}: position (n, 3) and mass (n,) are needed; got {position.shape} and "
            f"{mass.shape}"
        )
    _check_floats(function, position=position, mass=mass)
    length = mass.dtype.type(real_number(function, "softening", softening))
    with np.errstate(over="ignore", under="ignore"):
        square = length * length
    if not (length > 0 and square > 0):
        raise ArgumentError(
            f"{function}: softening must be positive, and its square more than 0 in "
            f"{mass.dtype}; got {softening!r}"
        )
    result = empty_on(placement, position.shape, position.dtype)
    if result.size:
        bytes_of_a_lane = 4 * mass.itemsize
        lanes = lanes_that_fit(placement.queue.sycl_device, bytes_of_a_lane, _BODIES_OF_A_TILE)
        call_kernel(
            kernel_of(make_acceleration_kernel, mass.dtype.type),
            NdRange(rounded_up(mass.size, lanes), lanes),
            position,
            mass,
            result,
            LocalAccessor((4, lanes), mass.dtype),
            square,
        )
    return result
