"""Gravitation: each body is attracted by all others, a tile of which is in local memory."""

from __future__ import annotations

import numpy as np

from dparray._array.allocation import empty_on
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._driver import traits_of
from dparray._kernel.launch import call_kernel
from dparray._placement import common_placement
from dparray.algorithms.points import check_floats
from dparray.algorithms.ranges import kernel_of, real_number
from dparray.algorithms.work_sizes import lanes_that_fit, rounded_up
from dparray.exceptions import ArgumentError, ShapeError
from dparray.kernel_api import LocalAccessor, NdRange
from dparray.kernels.nbody import make_acceleration_kernel

__all__ = ["nbody_acceleration"]

_BODIES_OF_A_TILE = 128


def nbody_acceleration(position: ndarray, mass: ndarray, /, softening: float) -> ndarray:
    """Return the acceleration of each body by the gravitation of all others.

    Body ``i`` gets the sum over ``j`` of ``mass[j] * d / (|d|**2 + softening**2)**1.5`` with ``d =
    position[j] - position[i]``.

    Args:
        position: shape ``(n, 3)``, float32 or float64.
        mass: shape ``(n,)``, of the same dtype, with the gravitational constant multiplied in.
        softening: a positive length below which the attraction levels off.

    Returns:
        Shape ``(n, 3)``, of the same dtype, on the queue of the arrays, with a USM type coerced
        from their USM types.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not fit.
        DTypeError: the dtypes differ or are not of floating point.
        ValueError: ``softening`` is not positive, or too small for the dtype.

    Example:
        >>> from tests.benchmarks.examples import nbody_acceleration
        >>> position = dp.asarray([[0, 0, 0], [4, 0, 0]], dtype="float32")
        >>> mass = dp.asarray([1, 125], dtype="float32")
        >>> nbody_acceleration(position, mass, softening=3.0).asnumpy()
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
    check_floats(function, position=position, mass=mass)
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
        lanes = lanes_that_fit(traits_of(placement.queue), bytes_of_a_lane, _BODIES_OF_A_TILE)
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
