"""Matrix multiplication and transposition with tiles in local memory.

Both have a work-group for each tile of the result. Multiplication is launched over a
one-dimensional range, and has a work-item for each of its columns: CPU drivers vectorize kernels
with barriers along one dimension only. Neighboring work-items access neighboring elements on every
device. Transposition is for GPUs, which need several sub-groups in a group.

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
def make_transpose_kernel(
    side: int, together: int, dtype: type, is_wide: bool = False
) -> Callable[..., None]:
    """Return a stack of matrices with rows and columns exchanged.

    Launch over ``NdRange((rows * together, columns * side), (together, side))`` with a group for
    each tile of ``side`` by ``side`` elements: ``rows`` are those of the tiles of all matrices, one
    after another, and ``columns`` those of a matrix. If ``is_wide``, groups count along the other
    dimension: ``NdRange((columns * together, rows * side), (together, side))``. GPUs count more
    groups along the last dimension. A group copies ``together`` rows of its tile at a time. All
    elements are loaded before the first one is written.

    Args:
        side, together: see above.
        dtype: the NumPy scalar type of the elements.
        is_wide: see above.

    Kernel parameters:
        x (stack * m * n,): input, the matrices one after another.
        out (stack * n * m,): output.
        tile (side * (side + 1),): local memory of the same dtype. The column that is not used keeps
            the elements of a column in different banks.
        m, n: the rows and columns of a matrix.
    """
    turns = tuple(range(side // together))  # loops over tuples are unrolled

    def transpose(nd_item: Any, x: Any, out: Any, tile: Any, m: int, n: int) -> None:
        group = nd_item.get_group()
        column = uint32(nd_item.get_local_id(1))
        begin = uint32(nd_item.get_local_id(0))
        height = uint64(m)
        width = uint64(n)
        line = uint32(group.get_group_id(1 if is_wide else 0))
        down = uint32((height + uint64(side - 1)) // uint64(side))
        matrix = uint32(0)
        if line >= down:  # not the first matrix
            matrix = line // down
        top = uint64(line - matrix * down) * uint64(side)
        left = uint64(group.get_group_id(0 if is_wide else 1)) * uint64(side)
        start = uint64(matrix) * height * width
        is_whole = top + uint64(side) <= height and left + uint64(side) <= width

        values = PrivateArray(side // together, dtype)
        row, at = top + uint64(begin), left + uint64(column)
        i = start + row * width + at
        if is_whole:
            for k in turns:
                values[k] = x[i]
                i += uint64(together) * width
        else:
            for k in turns:
                is_inside = row + uint64(k * together) < height and at < width
                values[k] = x[i] if is_inside else dtype(0)
                i += uint64(together) * width
        own = begin * uint32(side + 1) + column
        for k in turns:
            tile[uint64(own + uint32(k * together * (side + 1)))] = values[k]
        group_barrier(group, MemoryScope.WORK_GROUP)
        own = column * uint32(side + 1) + begin
        row, at = left + uint64(begin), top + uint64(column)
        i = start + row * height + at
        if is_whole:
            for k in turns:
                out[i] = tile[uint64(own + uint32(k * together))]
                i += uint64(together) * height
        else:
            for k in turns:
                if row + uint64(k * together) < width and at < height:
                    out[i] = tile[uint64(own + uint32(k * together))]
                i += uint64(together) * height

    return transpose
