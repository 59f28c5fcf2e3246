"""Distances between all pairs of points of two sets.

Like matrix multiplication (see ``matrix``): a work-item keeps the distances of several points to
one in registers, and the coordinates that all work-items read at once are in local memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from numpy import uint64

from dparray.kernel_api import MemoryScope, PrivateArray, group_barrier

__all__ = ["make_pairwise_distance_kernel", "make_tiled_distance_kernel"]


@cache
def make_pairwise_distance_kernel(
    rows: int, depth: int, squared: bool, dtype: type
) -> Callable[..., None]:
    """Return the Euclidean distance of each point of one set to each of another.

    Differences are squared and added, not products subtracted, so that near points lose no digits.

    Launch over ``NdRange(tiles * lanes, lanes)``, with tiles of ``rows`` by ``lanes`` elements
    that cover the result.

    Kernel parameters:
        x (n, dimensions): input of ``dtype``, a floating-point scalar type.
        y (m, dimensions): input of ``dtype``.
        distance (n, m): output of ``dtype``; its square if ``squared``.
        part (rows * depth,): local memory of ``dtype``.
    """

    def pairwise_distance(nd_item: Any, x: Any, y: Any, distance: Any, part: Any) -> None:
        group = nd_item.get_group()
        lane = nd_item.get_local_id(0)
        lanes = nd_item.get_local_range(0)
        n = distance.shape[0]
        m = distance.shape[1]
        dimensions = x.shape[1]
        across = (m + lanes - 1) // lanes
        number = group.get_group_id(0)
        column = uint64((number % across) * lanes + lane)
        top = (number // across) * rows

        total = PrivateArray(rows, dtype)
        for r in range(rows):
            total[r] = dtype(0)
        for first in range(0, dimensions, depth):
            for t in range(lane, rows * depth, lanes):
                # Rows below the last repeat it; their results are not stored.
                i = min(top + t // depth, n - 1)
                q = first + t % depth
                part[uint64(t)] = x[uint64(i), uint64(q)] if q < dimensions else dtype(0)
            group_barrier(group, MemoryScope.WORK_GROUP)
            for q in range(min(depth, dimensions - first)):
                if column < uint64(m):
                    coordinate = y[column, uint64(first + q)]
                    for r in range(rows):
                        step = part[uint64(r * depth + q)] - coordinate
                        total[r] += step * step
            group_barrier(group, MemoryScope.WORK_GROUP)
        if column < uint64(m):
            for r in range(rows):
                if top + r < n:
                    distance[uint64(top + r), column] = total[r] if squared else math.sqrt(total[r])

    return pairwise_distance


@cache
def make_tiled_distance_kernel(
    rows: int, depth: int, squared: bool, dtype: type
) -> Callable[..., None]:
    """Return the same for GPUs: the coordinates of both sets come through local memory.

    The work-items of a group have different points of the second set, whose coordinates are a
    row apart: each load would be of as many cache lines as there are lanes. Here neighbouring items
    load neighbouring coordinates. The rows in local memory have one element more than they need, so
    that those of a column are in different banks.

    Launch and kernel parameters as of :func:`make_pairwise_distance_kernel`; and after ``part``
        other (local size * (depth + 1),): local memory of ``dtype``.
    """

    def tiled_distance(nd_item: Any, x: Any, y: Any, distance: Any, part: Any, other: Any) -> None:
        group = nd_item.get_group()
        lane = nd_item.get_local_id(0)
        lanes = nd_item.get_local_range(0)
        n = distance.shape[0]
        m = distance.shape[1]
        dimensions = x.shape[1]
        across = (m + lanes - 1) // lanes
        number = group.get_group_id(0)
        left = (number % across) * lanes
        top = (number // across) * rows

        total = PrivateArray(rows, dtype)
        for r in range(rows):
            total[r] = dtype(0)
        for first in range(0, dimensions, depth):
            for t in range(lane, rows * depth, lanes):
                # Rows below the last repeat it; their results are not stored.
                i = min(top + t // depth, n - 1)
                q = first + t % depth
                part[uint64(t)] = x[uint64(i), uint64(q)] if q < dimensions else dtype(0)
            for t in range(lane, lanes * depth, lanes):
                i = min(left + t // depth, m - 1)
                q = first + t % depth
                at = uint64(t // depth * (depth + 1) + t % depth)
                other[at] = y[uint64(i), uint64(q)] if q < dimensions else dtype(0)
            group_barrier(group, MemoryScope.WORK_GROUP)
            for q in range(min(depth, dimensions - first)):
                coordinate = other[uint64(lane * (depth + 1) + q)]
                for r in range(rows):
                    step = part[uint64(r * depth + q)] - coordinate
                    total[r] += step * step
            group_barrier(group, MemoryScope.WORK_GROUP)
        column = uint64(left + lane)
        if column < uint64(m):
            for r in range(rows):
                if top + r < n:
                    distance[uint64(top + r), column] = total[r] if squared else math.sqrt(total[r])

    return tiled_distance
