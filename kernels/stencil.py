"""Stencils and convolutions over images, with the neighborhood of a tile in local memory.

A work-group computes one tile of the result. It first copies the tile with its halo (the elements
around it that the weights reach) to local memory. So each element is read from global memory about
once, whatever the number of weights. The range is one-dimensional, with one work-item for each
column of a tile: CPU drivers vectorize kernels with barriers along one dimension only. Nonnegative
indices are converted to ``uint64``, to which Python's rule that -1 is the last element does not
apply. Consecutive work-items then load consecutive elements with one instruction.

The method is the tiled convolution of V. Podlozhnyuk, "Image Convolution with CUDA" (2007).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numpy import uint64

from dparray.kernel_api import MemoryScope, group_barrier

__all__ = ["make_convolution_kernel", "make_separable_convolution_kernel"]


@cache
def make_separable_convolution_kernel(radius: int) -> Callable[..., None]:
    """Weigh the ``2 * radius + 1`` neighbors along both axes of planes; edges are repeated.

    Launch over ``NdRange(tiles * width, width)``, where a tile has ``width`` columns and the rows
    of ``rows`` without the halo, and ``tiles`` cover every plane. Height and width of the planes
    need not be multiples of a tile's.

    Kernel parameters:
        source (planes, height, width): input.
        weights (2 * radius + 1,): input of the same dtype; not flipped, so this is a correlation.
        target (planes, height, width): output; it must not be ``source``.
        tile (tile height + 2 * radius, tile width + 2 * radius): local, the tile with its halo.
        rows (tile height + 2 * radius, tile width): local, the tile weighted along its rows.
    """
    reach = 2 * radius

    def separable_convolution(
        nd_item: Any, source: Any, weights: Any, target: Any, tile: Any, rows: Any
    ) -> None:
        group = nd_item.get_group()
        lane = nd_item.get_local_id(0)
        tile_width = nd_item.get_local_range(0)
        tile_height = rows.shape[0] - reach
        height = source.shape[1]
        width = source.shape[2]
        across = (width + tile_width - 1) // tile_width
        down = (height + tile_height - 1) // tile_height

        number = group.get_group_id(0)
        left = (number % across) * tile_width
        top = (number // across % down) * tile_height
        plane = uint64(number // across // down)

        # The edges of the image are repeated where the halo is outside.
        within = left >= radius and left + tile_width + radius <= width
        for i in range(tile_height + reach):
            y = uint64(min(max(top - radius + i, 0), height - 1))
            row = uint64(i)
            if within:
                x = left - radius + lane
                tile[row, uint64(lane)] = source[plane, y, uint64(x)]
                for j in range(lane + tile_width, tile_width + reach, tile_width):
                    tile[row, uint64(j)] = source[plane, y, uint64(left - radius + j)]
            else:
                for j in range(lane, tile_width + reach, tile_width):
                    x = min(max(left - radius + j, 0), width - 1)
                    tile[row, uint64(j)] = source[plane, y, uint64(x)]
        group_barrier(group, MemoryScope.WORK_GROUP)

        for i in range(tile_height + reach):
            total = weights[0] * tile[uint64(i), uint64(lane)]
            for k in range(1, reach + 1):
                total += weights[uint64(k)] * tile[uint64(i), uint64(lane + k)]
            rows[uint64(i), uint64(lane)] = total
        group_barrier(group, MemoryScope.WORK_GROUP)

        if left + lane < width:
            for i in range(min(tile_height, height - top)):
                total = weights[0] * rows[uint64(i), uint64(lane)]
                for k in range(1, reach + 1):
                    total += weights[uint64(k)] * rows[uint64(i + k), uint64(lane)]
                target[plane, uint64(top + i), uint64(left + lane)] = total

    return separable_convolution


@cache
def make_convolution_kernel(
    window: tuple[int, int, int], repeats_edges: bool, dtype: type
) -> Callable[..., None]:
    """Weigh the neighbors of each element of a volume: any stencil of one to three dimensions.

    An image is a volume of depth 1, a signal one of depth and height 1. Launch over
    ``NdRange(tiles * lanes, lanes)``, where the tiles have the columns, rows and planes of ``tile``
    without the halo, and cover the volume. No size needs to be a multiple of a tile's.

    Args:
        window: the shape of ``weights``, odd numbers. The loops over it are unrolled.
        repeats_edges: whether the edges are repeated outside; otherwise there are zeros.
        dtype: the scalar type of all arrays.

    Kernel parameters:
        source (depth, height, width): input.
        weights (window): input; not flipped, so this is a correlation.
        target (depth, height, width): output; it must not be ``source``.
        tile (tile depth, height and width, each plus the window's minus 1): local memory. The
            width of a tile is a multiple of the group's; the columns of
            a work-item are one group width apart.
    """
    window_depth, window_height, window_width = window
    before_z, before_y, before_x = (extent // 2 for extent in window)

    def convolution(nd_item: Any, source: Any, weights: Any, target: Any, tile: Any) -> None:
        group = nd_item.get_group()
        lane = nd_item.get_local_id(0)
        lanes = nd_item.get_local_range(0)
        tile_width = tile.shape[2] - window_width + 1
        tile_height = tile.shape[1] - window_height + 1
        tile_depth = tile.shape[0] - window_depth + 1
        depth = source.shape[0]
        height = source.shape[1]
        width = source.shape[2]
        across = (width + tile_width - 1) // tile_width
        down = (height + tile_height - 1) // tile_height

        number = group.get_group_id(0)
        left = (number % across) * tile_width
        top = (number // across % down) * tile_height
        front = (number // across // down) * tile_depth

        within = left >= before_x and left - before_x + tile.shape[2] <= width
        for i in range(tile.shape[0]):
            z = front - before_z + i
            for j in range(tile.shape[1]):
                y = top - before_y + j
                outside = z < 0 or z >= depth or y < 0 or y >= height
                plane = uint64(min(max(z, 0), depth - 1))
                row = uint64(min(max(y, 0), height - 1))
                if outside and not repeats_edges:
                    for k in range(lane, tile.shape[2], lanes):
                        tile[uint64(i), uint64(j), uint64(k)] = dtype(0)
                elif within:
                    for first in range(0, tile_width, lanes):
                        x = uint64(left - before_x + first + lane)
                        tile[uint64(i), uint64(j), uint64(first + lane)] = source[plane, row, x]
                    for k in range(tile_width + lane, tile.shape[2], lanes):
                        x = uint64(left - before_x + k)
                        tile[uint64(i), uint64(j), uint64(k)] = source[plane, row, x]
                else:
                    for k in range(lane, tile.shape[2], lanes):
                        c = left - before_x + k
                        value = source[plane, row, uint64(min(max(c, 0), width - 1))]
                        if not repeats_edges and (c < 0 or c >= width):
                            value = dtype(0)
                        tile[uint64(i), uint64(j), uint64(k)] = value
        group_barrier(group, MemoryScope.WORK_GROUP)

        for first in range(0, tile_width, lanes):
            column = first + lane
            if left + column < width:
                for i in range(min(tile_depth, depth - front)):
                    for j in range(min(tile_height, height - top)):
                        total = dtype(0)
                        for a in range(window_depth):
                            for b in range(window_height):
                                for c in range(window_width):
                                    total += (
                                        weights[uint64(a), uint64(b), uint64(c)]
                                        * tile[uint64(i + a), uint64(j + b), uint64(column + c)]
                                    )
                        target[uint64(front + i), uint64(top + j), uint64(left + column)] = total

    return convolution
