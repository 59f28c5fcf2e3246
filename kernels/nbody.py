"""Gravitation of many bodies, with interactions between all pairs.

After L. Nyland, M. Harris and J. Prins, "Fast N-Body Simulation with CUDA" (GPU Gems 3, 2007). The
work-items of a group together copy a tile of bodies to local memory. Then each of them adds up the
attraction of all bodies in the tile on its own body.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from numpy import uint64

from dparray.kernel_api import MemoryScope, group_barrier

__all__ = ["make_acceleration_kernel"]


@cache
def make_acceleration_kernel(dtype: type) -> Callable[..., None]:
    """Return the acceleration of each body by all others, softened at short distances.

    Launch over ``NdRange(groups * lanes, lanes)`` with at least ``n`` work-items.

    Kernel parameters:
        position (n, 3): input of ``dtype``, a floating-point scalar type.
        mass (n,): input of ``dtype``, with the gravitational constant multiplied in.
        acceleration (n, 3): output of ``dtype``.
        tile (4, lanes): local memory of ``dtype``.
        softening: scalar of ``dtype``, the square of a length: it is added to squared distances,
            and must be positive, because the sum includes the body itself.
    """

    def acceleration_of_all(
        nd_item: Any, position: Any, mass: Any, acceleration: Any, tile: Any, softening: Any
    ) -> None:
        group = nd_item.get_group()
        lane = uint64(nd_item.get_local_id(0))
        lanes = nd_item.get_local_range(0)
        n = mass.shape[0]
        i = nd_item.get_global_id(0)
        # Work-items beyond the last body help to read, and store nothing.
        body = uint64(min(i, n - 1))
        x = position[body, uint64(0)]
        y = position[body, uint64(1)]
        z = position[body, uint64(2)]
        total_x = dtype(0)
        total_y = dtype(0)
        total_z = dtype(0)
        for first in range(0, n, lanes):
            other = uint64(min(first + nd_item.get_local_id(0), n - 1))
            tile[uint64(0), lane] = position[other, uint64(0)]
            tile[uint64(1), lane] = position[other, uint64(1)]
            tile[uint64(2), lane] = position[other, uint64(2)]
            tile[uint64(3), lane] = mass[other]
            group_barrier(group, MemoryScope.WORK_GROUP)
            for j in range(min(lanes, n - first)):
                step_x = tile[uint64(0), uint64(j)] - x
                step_y = tile[uint64(1), uint64(j)] - y
                step_z = tile[uint64(2), uint64(j)] - z
                square = step_x * step_x + step_y * step_y + step_z * step_z + softening
                pull = tile[uint64(3), uint64(j)] / (square * math.sqrt(square))
                total_x += pull * step_x
                total_y += pull * step_y
                total_z += pull * step_z
            group_barrier(group, MemoryScope.WORK_GROUP)
        if i < n:
            acceleration[body, uint64(0)] = total_x
            acceleration[body, uint64(1)] = total_y
            acceleration[body, uint64(2)] = total_z

    return acceleration_of_all
