"""Compaction: copy the selected elements of an array to contiguous memory in their order, and back.

The kernels read the mask once. A work-item counts the selected elements of a tile and waits for the
number before it, like the chained tiles of a scan (:func:`dparray.kernels.scan.make_chain`). Their
factories take the result of :func:`make_claim` as a device function. They are launched over
``NdRange(tiles, 1)`` on devices whose work-groups make progress independently; other devices have
the kernels of :mod:`dparray.kernels.tiles`. They have these parameters in common:

- mask (n,): input, boolean;
- progress, carry: as in ``make_chain``; ``carry`` of int64;
- tile: elements in a tile; the last one may have fewer.

No kernel needs local memory or a barrier.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import int64, uint64

from dparray.kernel_api import AtomicRef
from dparray.kernels.combine import reduce_run

__all__ = [
    "make_claim",
    "make_expand_kernel",
    "make_positions_kernel",
    "make_select_kernel",
]


@functools.cache
def make_claim(chain: Callable[..., Any]) -> Callable[..., Any]:
    """Make a device function that claims the next tile of a mask.

    It returns where the tile starts, how many elements it has, and how many are selected before it
    and in it. ``chain`` is the result of ``make_chain`` for addition, as a device function.
    """

    def claim(mask: Any, progress: Any, carry: Any, tile: int) -> Any:
        t = AtomicRef(progress, 0).fetch_add(int64(1))
        start = t * tile
        count = min(tile, mask.size - start)
        total = reduce_run("add", mask, start, count, int64(0))
        return start, count, chain(progress, carry, t, t == 0, int64(0), total), total

    return claim


@functools.cache
def make_select_kernel(claim: Callable[..., Any]) -> Callable[..., None]:
    """Write the selected elements of an array one after another.

    Further kernel parameters:
        x (n,): input.
        out (selected,): output of the dtype of x.
    """

    def select(
        nd_item: Any, x: Any, mask: Any, progress: Any, carry: Any, out: Any, tile: int
    ) -> None:
        start, count, before, total = claim(mask, progress, carry, tile)
        target = uint64(before)
        stop = target + uint64(total)
        i = uint64(start)
        for _ in range(count):
            # Every element is written, and the next one overwrites it if it was not selected: with
            # random masks, a branch on the mask would be mispredicted often.
            if target < stop:
                out[target] = x[i]
            target += uint64(mask[i])
            i += uint64(1)

    return select


@functools.cache
def make_positions_kernel(claim: Callable[..., Any]) -> Callable[..., None]:
    """Write the positions of the selected elements one after another.

    Further kernel parameters:
        out (selected,): output, int64.
    """

    def positions(nd_item: Any, mask: Any, progress: Any, carry: Any, out: Any, tile: int) -> None:
        start, count, before, total = claim(mask, progress, carry, tile)
        target = uint64(before)
        stop = target + uint64(total)
        i = uint64(start)
        for _ in range(count):
            if target < stop:
                out[target] = int64(i)
            target += uint64(mask[i])
            i += uint64(1)

    return positions


@functools.cache
def make_expand_kernel(claim: Callable[..., Any]) -> Callable[..., None]:
    """Write values, one after another, to the selected elements of an array.

    Further kernel parameters:
        x (n,): output.
        values (selected,): input of the dtype of x.
    """

    def expand(
        nd_item: Any, x: Any, mask: Any, progress: Any, carry: Any, values: Any, tile: int
    ) -> None:
        start, count, before, total = claim(mask, progress, carry, tile)
        target = uint64(before)
        if total > 0:
            last = target + uint64(total) - uint64(1)
            i = uint64(start)
            for _ in range(count):
                # As in `select`: every element is read and written, selected or not.
                value = values[min(target, last)]
                x[i] = value if mask[i] else x[i]
                target += uint64(mask[i])
                i += uint64(1)

    return expand
