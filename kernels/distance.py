"""Distances between all pairs of points of two sets.

Like in matrix multiplication (see ``matrix``), a work-item keeps the distances of several points to
one in registers. The coordinates that all work-items read together are in local memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from numpy import uint64

from dparray.kernel_api import MemoryScope, PrivateArray, group_barrier

__all__ = ["make_pairwise_distance_kernel"]


@cache
def make_pairwise_distance_kernel(
    rows: int, depth: int, squared: bool, dtype: type, is_staged: bool = False
) -> Callable[..., None]:
    """Return the Euclidean distance of each point of one set to each of another.

    Differences are squared and added; no products are subtracted, so near points lose no digits.

    The work-items of a group have different points of the second set, whose coordinates are a row
    apart: on a GPU each load would touch as many cache lines as there are lanes. There the points
    are staged in local memory, where neighboring items load neighboring coordinates. A row has one
    element more than it needs, so that a column's elements are in different banks.

    Launch over ``NdRange(tiles * lanes, lanes)``, with tiles of ``rows`` by ``lanes`` elements that
    cover the result.

    Kernel parameters:
        x (n, dimensions): input of ``dtype``, a floating-point scalar type.
        y (m, dimensions): input of ``dtype``.
        distance (n, m): output of ``dtype``; its square if ``squared``.
        part (rows * depth,): local memory of ``dtype``.
        other (lanes * (depth + 1),): local memory of ``dtype``; one element unless ``is_staged``.
    """

    def pairwise_distance(
        nd_item: Any, x: Any, y: Any, distance: Any, part: Any, other: Any
    ) -> None:
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
        column = left + lane

        total = PrivateArray(rows, dtype)
        for r in range(rows):
            total[r] = dtype(0)
        for first in range(0, dimensions, depth):
            for t in range(lane, rows * depth, lanes):
                # Rows below the last repeat it; their results are not stored.
                i = min(top + t // depth, n - 1)
                q = first + t % depth
                part[uint64(t)] = x[uint64(i), uint64(q)] if q < dimensions else dtype(0)
            if is_staged:
                for t in range(lane, lanes * depth, lanes):
                    i = min(left + t // depth, m - 1)
                    q = first + t % depth
                    at = uint64(t // depth * (depth + 1) + t % depth)
                    other[at] = y[uint64(i), uint64(q)] if q < dimensions else dtype(0)
            group_barrier(group, MemoryScope.WORK_GROUP)
            for q in range(min(depth, dimensions - first)):
                if is_staged:
                    coordinate = other[uint64(lane * (depth + 1) + q)]
                else:
                    coordinate = y[uint64(min(column, m - 1)), uint64(first + q)]
                for r in range(rows):
                    step = part[uint64(r * depth + q)] - coordinate
                    total[r] += step * step
            group_barrier(group, MemoryScope.WORK_GROUP)
        if column < m:
            for r in range(rows):
                if top + r < n:
                    value = total[r] if squared else math.sqrt(total[r])
                    distance[uint64(top + r), uint64(column)] = value

    return pairwise_distance
