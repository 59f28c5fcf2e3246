"""The two steps of k-means: the nearest centroid of each point, and the mean of each cluster.

Lloyd's algorithm (S. Lloyd, "Least squares quantization in PCM", 1982) repeats them. Points are
``(n, dimensions)`` in any layout; stored by columns (the transpose of ``(dimensions, n)``),
neighboring work-items read neighboring elements.

Sums are computed without atomics and in a fixed order, so that results are reproducible: each
work-item adds its points to its own column of local memory, a work-group reduces its columns, and a
last small kernel adds up the work-groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from numpy import int32, uint64

from dparray.kernel_api import MemoryScope, group_barrier

__all__ = ["make_accumulate_kernel", "make_assign_kernel", "make_centroids_kernel"]


@cache
def make_assign_kernel(dimensions: int, dtype: type) -> Callable[..., None]:
    """Return the index of the nearest centroid by Euclidean distance; ties give the first.

    Launch over a ``Range`` of at least ``n`` work-items.

    Kernel parameters:
        points (n, dimensions): input of ``dtype``, a floating-point scalar type.
        centroids (clusters, dimensions): input of ``dtype``.
        labels (n,): output, int32.
    """
    infinity = dtype(math.inf)

    def assign(item: Any, points: Any, centroids: Any, labels: Any) -> None:
        i = uint64(item.get_id(0))
        if i < uint64(labels.shape[0]):
            shortest = infinity
            label = int32(0)
            for cluster in range(centroids.shape[0]):
                distance = dtype(0)
                for q in range(dimensions):
                    step = points[i, uint64(q)] - centroids[uint64(cluster), uint64(q)]
                    distance += step * step
                if distance < shortest:
                    shortest = distance
                    label = int32(cluster)
            labels[i] = label

    return assign


@cache
def make_accumulate_kernel(dimensions: int, dtype: type) -> Callable[..., None]:
    """Compute sums and counts of the points of each cluster, for each work-group.

    Launch over ``NdRange(groups * lanes, lanes)``; the points are divided evenly among work-groups.
    If a column of ``local`` is too short for all clusters, it is used several times, and the points
    are read each time.

    Kernel parameters:
        points (n, dimensions): input of ``dtype``.
        labels (n,): input, from 0 to ``clusters - 1``.
        partials (groups, clusters * (dimensions + 1)): output of ``dtype``: for each cluster the
            sum in each dimension, then the number of points.
        local (1 to clusters * (dimensions + 1), lanes): local memory of ``dtype``.
    """
    stride = dimensions + 1

    def accumulate(nd_item: Any, points: Any, labels: Any, partials: Any, local: Any) -> None:
        group = nd_item.get_group()
        g = uint64(group.get_group_id(0))
        lane = uint64(nd_item.get_local_id(0))
        lanes = nd_item.get_local_range(0)
        rows = partials.shape[1]
        capacity = local.shape[0]
        for first in range(0, rows, capacity):
            count = min(capacity, rows - first)
            for r in range(count):
                local[uint64(r), lane] = dtype(0)
            for i in range(nd_item.get_global_id(0), labels.shape[0], nd_item.get_global_range(0)):
                # Rows before `first` become huge numbers, so one comparison finds both ends.
                base = labels[uint64(i)] * stride - first
                for q in range(dimensions):
                    row = uint64(base + q)
                    if row < uint64(count):
                        local[row, lane] += points[uint64(i), uint64(q)]
                row = uint64(base + dimensions)
                if row < uint64(count):
                    local[row, lane] += dtype(1)
            group_barrier(group, MemoryScope.WORK_GROUP)
            for r in range(nd_item.get_local_id(0), count, lanes):
                total = dtype(0)
                for other in range(lanes):
                    total += local[uint64(r), uint64(other)]
                partials[g, uint64(first + r)] = total
            group_barrier(group, MemoryScope.WORK_GROUP)

    return accumulate


@cache
def make_centroids_kernel(dimensions: int, dtype: type) -> Callable[..., None]:
    """Return the mean of each cluster from the sums of the work-groups; empty clusters stay.

    Sums are compensated (O. Moller, "Quasi double-precision in floating point addition", 1965), so
    that the number of work-groups does not affect the result. Launch over ``Range(clusters)``.

    Kernel parameters:
        partials (groups, clusters * (dimensions + 1)): input, the output of the accumulate kernel.
        centroids (clusters, dimensions): input of ``dtype``.
        moved (clusters, dimensions): output of ``dtype``.
        steps: scalar of ``dtype``. If it is not 0, means are rounded to multiples of its
            reciprocal, with ties rounded up.
    """
    stride = dimensions + 1
    zero = dtype(0)
    half = dtype(0.5)

    def means(item: Any, partials: Any, centroids: Any, moved: Any, steps: Any) -> None:
        cluster = uint64(item.get_id(0))
        base = cluster * uint64(stride)
        members = dtype(0)
        for g in range(partials.shape[0]):
            members += partials[uint64(g), base + uint64(dimensions)]
        for q in range(dimensions):
            mean = centroids[cluster, uint64(q)]
            if members > 0:
                total = dtype(0)
                lost = dtype(0)
                for g in range(partials.shape[0]):
                    value = partials[uint64(g), base + uint64(q)]
                    larger = total + value
                    part = larger - total
                    lost += (total - (larger - part)) + (value - part)
                    total = larger
                mean = (total + lost) / members
                if steps != zero:
                    mean = dtype(math.floor(mean * steps + half)) / steps
            moved[cluster, uint64(q)] = mean

    return means
