"""Matrix multiplication and transposition with tiles in local memory.

Both are launched over a one-dimensional range, with a work-group for each tile of the result.
Multiplication has a work-item for each of its columns: CPU drivers vectorize kernels with barriers
along one dimension only. Neighboring work-items access neighboring elements on every device.
Transposition is for GPUs, which need several sub-groups in a group.

Multiplication follows V. Volkov, "Better performance at lower occupancy" (2010): a work-item keeps
a column of several results in registers, so that an element loaded once is used that many times.
Transposition follows G. Ruetsch and P. Micikevicius, "Optimizing matrix transpose in CUDA" (2009).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numpy import uint32, uint64

from dparray.kernel_api import MemoryScope, PrivateArray, group_barrier

__all__ = ["make_matmul_kernel", "make_transpose_kernel"]


@cache
def make_matmul_kernel(rows: int, depth: int, dtype: type) -> Callable[..., None]:
    """Return the product of two stacks of matrices.

    A group computes ``rows`` times as many elements as it has work-items. The part of ``a`` that it
    needs is copied to local memory, ``depth`` columns at a time, because all work-items read the
    same element of it together. A row of ``b`` is read by neighboring work-items from global
    memory, and from the cache when further groups read it.

    Launch over ``NdRange(tiles * lanes, lanes)``, with tiles of ``rows`` by ``lanes`` elements that
    cover all matrices. No size needs to be a multiple of another.

    Kernel parameters:
        a (stack, m, k): input of ``dtype``.
        b (stack, k, n): input of ``dtype``.
        c (stack, m, n): output of ``dtype``.
        part (rows * depth,): local memory of ``dtype``.
    """

    def matmul(nd_item: Any, a: Any, b: Any, c: Any, part: Any) -> None:
        group = nd_item.get_group()
        lane = nd_item.get_local_id(0)
        lanes = nd_item.get_local_range(0)
        m = c.shape[1]
        n = c.shape[2]
        length = a.shape[2]
        across = (n + lanes - 1) // lanes
        down = (m + rows - 1) // rows

        number = group.get_group_id(0)
        column = uint64((number % across) * lanes + lane)
        top = (number // across % down) * rows
        matrix = uint64(number // across // down)

        total = PrivateArray(rows, dtype)
        for r in range(rows):
            total[r] = dtype(0)
        for first in range(0, length, depth):
            for t in range(lane, rows * depth, lanes):
                # Rows below the matrix repeat its last one; their results are not stored.
                i = min(top + t // depth, m - 1)
                k = first + t % depth
                part[uint64(t)] = a[matrix, uint64(i), uint64(k)] if k < length else dtype(0)
            group_barrier(group, MemoryScope.WORK_GROUP)
            for k in range(min(depth, length - first)):
                if column < uint64(n):
                    factor = b[matrix, uint64(first + k), column]
                    for r in range(rows):
                        total[r] += part[uint64(r * depth + k)] * factor
            group_barrier(group, MemoryScope.WORK_GROUP)
        if column < uint64(n):
            for r in range(rows):
                if top + r < m:
                    c[matrix, uint64(top + r), column] = total[r]

    return matmul


@cache
def make_transpose_kernel(side: int, together: int) -> Callable[..., None]:
    """Return a stack of matrices with rows and columns exchanged.

    Launch over ``NdRange(tiles * side * together, side * together)``, with square tiles of ``side``
    elements a side that cover all matrices. A group copies ``together`` rows of its tile at a time.

    Kernel parameters:
        x (stack, m, n): input.
        out (stack, n, m): output of the same dtype.
        tile (side, side + 1): local memory of the same dtype. The column that is not used keeps
            the elements of a column in different banks.
    """
    width, rest = uint64(side), uint64(side - 1)

    def transpose(nd_item: Any, x: Any, out: Any, tile: Any) -> None:
        group = nd_item.get_group()
        local = uint64(nd_item.get_local_id(0))
        column = local % width
        begin = local // width
        m = uint64(x.shape[1])
        n = uint64(x.shape[2])
        across = (n + rest) // width
        down = (m + rest) // width

        # GPUs divide numbers of 32 bits in a tenth of the instructions.
        number = uint64(group.get_group_id(0))
        line = uint64(uint32(number)) // uint64(uint32(across))
        matrix = uint64(uint32(line)) // uint64(uint32(down))
        left = (number - line * across) * width
        top = (line - matrix * down) * width

        if top + width <= m and left + width <= n:
            for turn in range(side // together):
                r = begin + uint64(turn * together)
                tile[r, column] = x[matrix, top + r, left + column]
            group_barrier(group, MemoryScope.WORK_GROUP)
            for turn in range(side // together):
                r = begin + uint64(turn * together)
                out[matrix, left + r, top + column] = tile[column, r]
            return
        for turn in range(side // together):
            r = begin + uint64(turn * together)
            if top + r < m and left + column < n:
                tile[r, column] = x[matrix, top + r, left + column]
        group_barrier(group, MemoryScope.WORK_GROUP)
        for turn in range(side // together):
            r = begin + uint64(turn * together)
            if left + r < n and top + column < m:
                out[matrix, left + r, top + column] = tile[column, r]

    return transpose
