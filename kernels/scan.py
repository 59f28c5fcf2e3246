"""Prefix sums (scans) of an array.

Two kernels for two kinds of devices. In both a work-item owns consecutive elements, and works
through them in vectors (:func:`~dparray.kernels.combine.scan_run`).

``chained_scan`` reads memory once. A work-item reduces a tile small enough to stay in its cache,
waits for what the tiles before it combine to, hands on what they and its own do, and only then
scans its tile. Tiles are taken in the order in which work-groups start, so the one that is waited
for is always being worked on; this asks that work-groups which have started make progress
independently of each other, as the threads of a CPU do. After S. Yan, G. Long and Y. Zhang,
"StreamScan: Fast Scan Algorithms for GPUs without Global Barrier Synchronization" (2013).

``chunk_scan`` asks for nothing. The host reduces every chunk first; an item combines the results
of the chunks before its own, which is the value its chunk starts from. The array is read twice and
written once: the "reduce-then-scan" of D. Merrill and A. Grimshaw, "Parallel Scan for Stream
Architectures" (2009).

Neither needs local memory or a barrier. (A scan in local memory with a barrier in each step runs
at a third of this speed on CPUs.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import int64

from dparray.kernel_api import AtomicRef, MemoryOrder
from dparray.kernels.combine import Operation, identity, reduce_run, scan_run

__all__ = ["make_chained_scan_kernel", "make_chunk_scan_kernel"]


@functools.cache
def make_chained_scan_kernel(op: Operation, dtype: type, inclusive: bool) -> Callable[..., None]:
    """Scan an array tile by tile, each starting from what the one before it hands on.

    Launch over ``NdRange(tiles, 1)``, on devices whose work-groups make progress independently.

    Args:
        op: the operation, its function made into a device function.
        dtype: the NumPy scalar type to combine in.
        inclusive: whether ``out[i]`` includes ``x[i]``.

    Kernel parameters:
        x (n,): input of any real dtype.
        progress (tiles + 1,): int64, zeros at first: how many tiles are begun, and for each tile
            whether its carry is there.
        carry (tiles,): memory of ``dtype``: what each tile and all before it combine to.
        out (n,): output of ``dtype``; it may be ``x``.
        tile: elements in a tile.
        initial: a scalar of ``dtype`` that comes before ``x[0]``.
    """
    combine = op.combine
    name = op.name
    nothing = identity(name, dtype)

    def chained_scan(
        nd_item: Any, x: Any, progress: Any, carry: Any, out: Any, tile: int, initial: Any
    ) -> None:
        t = AtomicRef(progress, 0).fetch_add(int64(1))
        start = t * tile
        count = min(tile, x.size - start)
        total = reduce_run(name, x, start, count, nothing)
        before = dtype(initial)
        if t > 0:
            while AtomicRef(progress, t, memory_order=MemoryOrder.ACQUIRE).load() == 0:
                pass
            before = carry[t - 1]
        carry[t] = combine(before, total)
        AtomicRef(progress, t + 1, memory_order=MemoryOrder.RELEASE).store(int64(1))
        scan_run(name, x, out, start, count, before, total, inclusive)

    return chained_scan


@functools.cache
def make_chunk_scan_kernel(op: Operation, dtype: type, inclusive: bool) -> Callable[..., None]:
    """Scan each chunk of an array, starting from the results of the chunks before it.

    Launch over ``NdRange(items, local)`` with at least ``ceil(x.size / chunk)`` items.

    Args:
        op, dtype, inclusive: as of :func:`make_chained_scan_kernel`.

    Kernel parameters:
        x (n,): input of any real dtype.
        total (chunks,): input of ``dtype``: what each chunk combines to.
        out (n,): output of ``dtype``; it may be ``x``.
        chunk: elements in a chunk.
        initial: a scalar of ``dtype`` that comes before ``x[0]``.
    """
    name = op.name

    def chunk_scan(nd_item: Any, x: Any, total: Any, out: Any, chunk: int, initial: Any) -> None:
        c = nd_item.get_global_id(0)
        count = min(chunk, x.size - c * chunk)
        if count > 0:
            before = reduce_run(name, total, 0, c, dtype(initial))
            scan_run(name, x, out, c * chunk, count, before, total[c], inclusive)

    return chunk_scan
