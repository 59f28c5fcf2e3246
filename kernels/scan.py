"""Prefix sums (scans) of arrays.

A work-item owns consecutive elements, and processes them in vectors (the functions of runs in
:mod:`dparray.kernels.combine`). The axis and the device decide which kernel fits.

``chained_scan`` is for long lines, and reads memory once. A work-item reduces a tile small enough
to stay in its cache, and waits for the result of the tiles before it. It passes on the result that
includes its own tile, and only then scans the tile. Tiles are taken in the order in which
work-groups start, so a tile that others wait for is always being processed. This requires that
work-groups which have started make progress independently, as the threads of a CPU do. After S.
Yan, G. Long and Y. Zhang, "StreamScan: Fast Scan Algorithms for GPUs without Global Barrier
Synchronization" (2013).

``line_scan`` is for many or short lines: a work-item scans whole lines. ``column_scan`` is for
lines across memory: a work-item adds rows of several neighboring lines to the rows of results
before them, which are still in its cache.

None needs local memory or a barrier. (A scan in local memory with a barrier in each step runs at a
third of this speed on CPUs.) Other devices have the kernels of :mod:`dparray.kernels.tiles`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import int64

from dparray.kernel_api import AtomicRef, MemoryOrder
from dparray.kernels.combine import combine_runs, identity, reduce_run, scan_run

__all__ = [
    "make_chain",
    "make_chained_scan_kernel",
    "make_column_scan_kernel",
    "make_line_scan_kernel",
]


@functools.cache
def make_chain(combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return a device function with which a tile waits for its carry and passes on its own.

    Its parameters:
        progress (tiles + 1,): int64, zeros at first: how many tiles have begun, and for each tile
            whether its carry is available.
        carry (tiles,): memory: for each tile the result of it and all tiles before it.
        t: the tile's number, which is how many were begun before it.
        is_first: whether no tile comes before it.
        initial: the carry before the first tile.
        total: the result of combining the tile's own elements.

    It returns the carry before the tile.
    """

    def chain(progress: Any, carry: Any, t: Any, is_first: Any, initial: Any, total: Any) -> Any:
        before = initial
        if not is_first:
            while AtomicRef(progress, t, memory_order=MemoryOrder.ACQUIRE).load() == 0:
                pass
            before = carry[t - 1]
        carry[t] = combine(before, total)
        AtomicRef(progress, t + 1, memory_order=MemoryOrder.RELEASE).store(int64(1))
        return before

    return chain


@functools.cache
def make_chained_scan_kernel(
    op: str, chain: Callable[..., Any], dtype: type, inclusive: bool
) -> Callable[..., None]:
    """Scan lines of an array tile by tile, each starting from the carry of the one before it.

    Launch over ``NdRange(tiles of all lines, 1)``, on devices whose work-groups make progress
    independently.

    Args:
        op: the name of the operation.
        chain: the result of :func:`make_chain` for its function, as a device function.
        dtype: the NumPy scalar type to combine in.
        inclusive: whether ``out[i]`` includes ``x[i]``.

    Kernel parameters:
        x (lines * length,): input of any real dtype, one line after another.
        progress, carry: as in :func:`make_chain`, for the tiles of all lines; ``carry`` of
            ``dtype``.
        out (lines * length,): output of ``dtype``; it may be ``x``.
        length: elements in a line.
        tile: elements in a tile; the last one of a line may have fewer.
        initial: a scalar of ``dtype`` that comes before the first element of each line.
    """
    nothing = identity(op, dtype)

    def chained_scan(
        nd_item: Any,
        x: Any,
        progress: Any,
        carry: Any,
        out: Any,
        length: int,
        tile: int,
        initial: Any,
    ) -> None:
        t = AtomicRef(progress, 0).fetch_add(int64(1))
        tiles = (length + tile - 1) // tile
        first = t % tiles * tile
        start = t // tiles * length + first
        count = min(tile, length - first)
        total = reduce_run(op, x, start, count, nothing)
        before = chain(progress, carry, t, first == 0, dtype(initial), total)
        scan_run(op, x, out, start, count, before, total, inclusive)

    return chained_scan


@functools.cache
def make_line_scan_kernel(op: str, dtype: type, inclusive: bool) -> Callable[..., None]:
    """Scan whole lines of consecutive elements.

    Launch over ``NdRange(items, local)`` with at least ``ceil(lines / share)`` items.

    Args:
        op, dtype, inclusive: as in :func:`make_chained_scan_kernel`.

    Kernel parameters:
        x (lines * length,): input of any real dtype, one line after another.
        out (lines * length,): output of ``dtype``; it may be ``x``.
        length: elements in a line, at least 1.
        share: lines that a work-item scans.
        initial: a scalar of ``dtype`` that comes before the first element of each line.
    """
    nothing = identity(op, dtype)

    def line_scan(nd_item: Any, x: Any, out: Any, length: int, share: int, initial: Any) -> None:
        first = nd_item.get_global_id(0) * share
        last = min(first + share, x.size // length)
        for line in range(first, last):
            start = line * length
            total = reduce_run(op, x, start, length, nothing)
            scan_run(op, x, out, start, length, dtype(initial), total, inclusive)

    return line_scan


@functools.cache
def make_column_scan_kernel(op: str, dtype: type) -> Callable[..., None]:
    """Scan lines across memory, whose elements are ``width`` apart.

    ``out[i]`` includes ``x[i]``. Launch over ``NdRange((blocks, shares), (1, local))`` with at
    least ``ceil(width / share)`` shares.

    Args:
        op, dtype: as in :func:`make_chained_scan_kernel`.

    Kernel parameters:
        x (blocks * length * width,): input of any real dtype: blocks of rows.
        out (blocks * length * width,): output of ``dtype``; it may be ``x``.
        length: elements in a line, at least 1: rows in a block.
        width: lines in a block.
        share: neighboring lines that a work-item scans.
    """

    def column_scan(nd_item: Any, x: Any, out: Any, length: int, width: int, share: int) -> None:
        first = nd_item.get_global_id(1) * share
        count = min(share, width - first)
        if count > 0:
            at = nd_item.get_global_id(0) * length * width + first
            for i in range(at, at + count):
                out[i] = dtype(x[i])
            for _ in range(1, length):
                combine_runs(op, out, at, x, at + width, out, at + width, count)
                at += width

    return column_scan
