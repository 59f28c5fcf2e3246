"""Matrix multiplication and transposition with tiles in local memory.

Both are launched over a one-dimensional range, with a work-group for each tile of the result and a
work-item for each of its columns. CPU drivers vectorize kernels with barriers along one dimension
only, and neighboring work-items access neighboring elements on every device.

Multiplication follows V. Volkov, "Better performance at lower occupancy" (2010): a work-item keeps
a column of several results in registers, so that an element loaded once is used that many times.
Transposition follows G. Ruetsch and P. Micikevicius, "Optimizing matrix transpose in CUDA" (2009).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numpy import uint64

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
def make_transpose_kernel() -> Callable[..., None]:
    """Return a stack of matrices with rows and columns exchanged.

    Launch over ``NdRange(tiles * lanes, lanes)``, with square tiles of ``lanes`` elements a side
    that cover all matrices.

    Kernel parameters:
        x (stack, m, n): input.
        out (stack, n, m): output of the same dtype.
        tile (lanes, lanes + 1): local memory of the same dtype. The column that is not used keeps
            the elements of a column in different banks.
    """

    def transpose(nd_item: Any, x: Any, out: Any, tile: Any) -> None:
        group = nd_item.get_group()
        lane = nd_item.get_local_id(0)
        lanes = nd_item.get_local_range(0)
        m = x.shape[1]
        n = x.shape[2]
        across = (n + lanes - 1) // lanes
        down = (m + lanes - 1) // lanes

        number = group.get_group_id(0)
        left = (number % across) * lanes
        top = (number // across % down) * lanes
        matrix = uint64(number // across // down)

        if left + lane < n:
            for r in range(min(lanes, m - top)):
                tile[uint64(r), uint64(lane)] = x[matrix, uint64(top + r), uint64(left + lane)]
        group_barrier(group, MemoryScope.WORK_GROUP)
        if top + lane < m:
            for r in range(min(lanes, n - left)):
                out[matrix, uint64(left + r), uint64(top + lane)] = tile[uint64(lane), uint64(r)]

    return transpose
