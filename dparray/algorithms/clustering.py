"""The steps of k-means clustering."""

from __future__ import annotations

import math
from typing import Any

from dparray import _dtypes
from dparray._array.allocation import empty_on
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._driver import traits_of
from dparray._driver.interface import Traits
from dparray._kernel.launch import call_kernel
from dparray._placement import common_placement
from dparray.algorithms.points import check_floats
from dparray.algorithms.ranges import kernel_of, real_number
from dparray.algorithms.work_sizes import GROUP, lanes_that_fit, rounded_up
from dparray.exceptions import DTypeError, ShapeError
from dparray.kernel_api import LocalAccessor, NdRange, Range
from dparray.kernels.kmeans import make_accumulate_kernel, make_assign_kernel, make_centroids_kernel

__all__ = ["kmeans_assign", "kmeans_update"]

_LONGEST_CHAIN = 256
_MIN_GROUPS = 32
_MAX_GROUPS = 4096
# On a GPU, groups of one sub-group add up the points. Several must fit on a compute unit, so each
# takes little local memory; more would leave more partial sums to the last kernel.
_GPU_LOCAL_MEMORY = 16 << 10
_GPU_GROUPS_A_UNIT = 4


def _check(function: str, points: Any, centroids: Any) -> tuple[ndarray, ndarray]:
    points = check_array(function, "points", points)
    centroids = check_array(function, "centroids", centroids)
    if points.ndim != 2 or centroids.ndim != 2 or points.shape[1] != centroids.shape[1]:
        raise ShapeError(
            f"{function}: points must be (n, dimensions) and centroids (clusters, dimensions); "
            f"got {points.shape} and {centroids.shape}"
        )
    if 0 in points.shape or 0 in centroids.shape:
        raise ShapeError(
            f"{function}: points and centroids must not be empty; got points of shape "
            f"{points.shape} and centroids of shape {centroids.shape}"
        )
    check_floats(function, points=points, centroids=centroids)
    return points, centroids


def kmeans_assign(points: ndarray, centroids: ndarray, /) -> ndarray:
    """Return the index of the nearest centroid of each point, by Euclidean distance.

    If several centroids are equally near, the first is returned.

    Args:
        points: shape ``(n, dimensions)``, float32 or float64. Points stored by columns (the
            transpose of a ``(dimensions, n)`` array) are the fastest to read.
        centroids: shape ``(clusters, dimensions)``, of the same dtype.

    Returns:
        An int32 array of shape ``(n,)`` on the queue of the arrays, with the USM type coerced from
        their USM types.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not match, or there are no points or no centroids.
        DTypeError: the dtypes differ or are not floating-point.

    Example:
        >>> points = dp.asarray([[0.0, 0.0], [9.0, 8.0], [1.0, 0.0]], dtype="float32")
        >>> centroids = dp.asarray([[0.0, 1.0], [8.0, 8.0]], dtype="float32")
        >>> dp.algorithms.kmeans_assign(points, centroids).asnumpy()
        array([0, 1, 0], dtype=int32)
    """
    points, centroids = _check("kmeans_assign", points, centroids)
    placement = common_placement("kmeans_assign", (("points", points), ("centroids", centroids)))
    n, dimensions = points.shape
    labels = empty_on(placement, (n,), _dtypes.int32)
    call_kernel(
        kernel_of(make_assign_kernel, dimensions, points.dtype.type),
        Range(rounded_up(n)),
        points,
        centroids,
        labels,
    )
    return labels


def kmeans_update(
    points: ndarray, labels: ndarray, centroids: ndarray, /, *, steps: float = 0
) -> ndarray:
    """Return the mean of the points with each label; a cluster without points keeps its centroid.

    Sums are computed in a fixed order, so a repeated call on the same device gives identical bits.

    Args:
        points: shape ``(n, dimensions)``, float32 or float64, fastest if stored by columns.
        labels: shape ``(n,)``, integers from 0 to ``clusters - 1``, as returned by
            :func:`kmeans_assign`. Other labels are invalid: their effect on the result is
            undefined, but no memory outside the arrays is accessed.
        centroids: shape ``(clusters, dimensions)``, of the points' dtype.
        steps: the means are rounded to multiples of ``1 / steps``, with ties up; 0 turns rounding
            off. If the points are integers and ``steps`` is a power of two, distances are exact, so
            that ties are resolved in the same way on every device.

    Returns:
        The new centroids, with the shape and dtype of ``centroids``, on the queue of the arrays,
        with the coerced USM type.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not match, or there are no points or no centroids.
        DTypeError: the dtypes of points and centroids differ or are not floating-point, or the
            labels are not integers.
        ValueError: ``steps`` is negative or not finite.

    Example:
        >>> points = dp.asarray([[0.0, 0.0], [9.0, 8.0], [1.0, 0.0]], dtype="float32")
        >>> labels = dp.asarray([0, 1, 0], dtype="int32")
        >>> centroids = dp.zeros((2, 2), dtype="float32")
        >>> dp.algorithms.kmeans_update(points, labels, centroids).asnumpy()
        array([[0.5, 0. ],
               [9. , 8. ]], dtype=float32)
    """
    points, centroids = _check("kmeans_update", points, centroids)
    labels = check_array("kmeans_update", "labels", labels)
    placement = common_placement(
        "kmeans_update", (("points", points), ("labels", labels), ("centroids", centroids))
    )
    n, dimensions = points.shape
    clusters = centroids.shape[0]
    if labels.shape != (n,):
        raise ShapeError(f"kmeans_update: labels must have shape ({n},); got {labels.shape}")
    if labels.dtype.kind not in "iu":
        raise DTypeError(f"kmeans_update: labels must be integers; got {labels.dtype}")
    if not 0 <= real_number("kmeans_update", "steps", steps) < math.inf:
        raise ValueError(f"kmeans_update: steps must be finite and not negative; got {steps!r}")
    if labels.dtype.name == "uint64":  # kernels cannot mix uint64 with signed integers
        labels = labels.astype(_dtypes.int64)
    traits = traits_of(placement.queue)
    dtype = points.dtype
    rows = clusters * (dimensions + 1)
    lanes, groups, local = _shape_of_sums(traits, n, rows, dtype.itemsize)
    partials = empty_on(placement, (groups, rows), dtype)
    moved = empty_on(placement, centroids.shape, dtype)
    call_kernel(
        kernel_of(make_accumulate_kernel, dimensions, dtype.type),
        NdRange(groups * lanes, lanes),
        points,
        labels,
        partials,
        LocalAccessor(local, dtype),
    )
    call_kernel(
        kernel_of(make_centroids_kernel, dimensions, dtype.type),
        Range(clusters),
        partials,
        centroids,
        moved,
        dtype.type(steps),
    )
    return moved


def _shape_of_sums(
    traits: Traits, n: int, rows: int, itemsize: int
) -> tuple[int, int, tuple[int, int]]:
    """Return the size and the number of the groups that add up n points, and their local memory."""
    if traits.kind == "gpu":
        lanes = min(traits.sub_group, traits.group)
        pitch = lanes + 1  # so that work-items in different rows of a column use different banks
        memory = min(_GPU_LOCAL_MEMORY, traits.local_memory // 2)
        fewest = _GPU_GROUPS_A_UNIT * traits.units
    else:
        lanes = lanes_that_fit(traits, 2 * rows * itemsize, GROUP // 2)
        if lanes < 8:  # several passes over the points are cheaper than idle lanes
            lanes = min(8, lanes_that_fit(traits, itemsize))
        pitch, memory, fewest = lanes, traits.local_memory // 2, _MIN_GROUPS
    # The chain of additions is as short as that of a pairwise sum, but there are no more groups
    # than the last kernel can add quickly. With few points, each work-item has at least eight.
    groups = max(fewest, min(n // (_LONGEST_CHAIN * lanes), _MAX_GROUPS))
    return (
        lanes,
        min(groups, -(-n // (8 * lanes))),
        (min(rows, memory // (pitch * itemsize)), pitch),
    )
