"""Compaction: the selected elements of an array, close together and in their order.

Each work-item owns a chunk. After the selected elements of every chunk are counted, an item adds
up the counts before its own, which is where its first selected element goes. See G. Blelloch,
"Prefix Sums and Their Applications" (1990).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import int64, uint64

__all__ = ["make_compact_kernel"]


@functools.cache
def make_compact_kernel() -> Callable[..., None]:
    """Write the selected elements of each chunk behind those of the chunks before.

    Launch over ``NdRange(items, local)`` with an item for each chunk. Needs no local memory.

    Kernel parameters:
        x (n,): input.
        mask (n,): input, boolean.
        counts (chunks,): input of int64, the number of selected elements in each chunk.
        out (sum of counts,): output of the dtype of x.
        chunk: elements in a chunk.
    """

    def compact(nd_item: Any, x: Any, mask: Any, counts: Any, out: Any, chunk: int) -> None:
        c = nd_item.get_global_id(0)
        if c >= counts.size:
            return
        start = int64(0)
        for before in range(c):
            start += counts[uint64(before)]
        place = uint64(start)
        stop = uint64(start + counts[uint64(c)])
        i = uint64(c * chunk)
        for _ in range(min(chunk, x.size - c * chunk)):
            # Every element is written, and the next one overwrites it if it was not selected:
            # random masks would spoil the prediction of a branch on the mask.
            if place < stop:
                out[place] = x[i]
            place += uint64(mask[i])
            i += uint64(1)

    return compact
