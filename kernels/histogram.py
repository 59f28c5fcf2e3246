"""Counting: the number of elements in each bin.

Each work-item counts one chunk of the input in its own row, so no operation needs to be atomic; a
second kernel adds up the rows. This is a privatized histogram as described by J. Gomez-Luna et al.,
"An optimized approach to histogram computation on GPU" (2013), with one private copy for each item.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import int32, int64, uint64

__all__ = [
    "bin_of_integer",
    "make_add_rows_kernel",
    "make_bin_between_edges",
    "make_bincount_kernel",
    "make_histogram_kernel",
]


@functools.cache
def make_bin_between_edges(dtype: type) -> Callable[..., Any]:
    """Make a device function that finds the bin of a value, -1 if it is in none.

    The bin is computed from the distance. A value next to an edge is compared with it, as in NumPy,
    so that the stored value of the edge decides the side. The last bin includes its right edge; NaN
    and values outside are in no bin. ``low`` and ``high`` are the first and the last edge, so that
    memory is read for values next to an edge only; the other parameters are those of
    :func:`make_histogram_kernel`.
    """
    half = dtype(0.5)

    def bin_between_edges(
        value: Any, edges: Any, low: Any, high: Any, bins: Any, scale: Any, margin: Any
    ) -> Any:
        index = int32(-1)
        if value >= low and value <= high:
            distance = dtype((value - low) * scale)
            # Conversions of reals to 32-bit integers are five times as fast as those to 64-bit
            # ones.
            index = int32(distance)
            if abs(distance - dtype(index) - half) > half - margin:
                last = int32(bins) - int32(1)
                index = int32(min(max(index, int32(0)), last))
                if value < edges[uint64(index)]:
                    index = int32(index - int32(1))
                elif index < last and value >= edges[uint64(index) + uint64(1)]:
                    index = int32(index + int32(1))
        return index

    return bin_between_edges


def bin_of_integer(
    value: Any, edges: Any, low: Any, high: Any, bins: Any, scale: Any, margin: Any
) -> Any:
    """Return a small integer as its own bin; also a device function."""
    return int64(value) if value >= 0 and value < bins else int64(-1)


@functools.cache
def make_histogram_kernel(bin_of: Callable[..., Any]) -> Callable[..., None]:
    """Count the elements between edges at equal distances, chunk by chunk.

    Launch over ``NdRange(items, local)`` with an item for each chunk.

    Args:
        bin_of: the result of :func:`make_bin_between_edges`, as a device function.

    Kernel parameters:
        x (n,): input, integers or reals.
        edges (bins + 1,): input, increasing.
        rows (chunks, bins): output of int64, all of it written.
        chunk: elements in a chunk.
        scale: bins divided by the distance between the outer edges, of ``dtype``.
        margin: how near to an edge, in bins, rounding may have moved an element across it.
    """

    def histogram(
        nd_item: Any, x: Any, edges: Any, rows: Any, chunk: int, scale: Any, margin: Any
    ) -> None:
        c = nd_item.get_global_id(0)
        if c >= rows.shape[0]:
            return
        row = uint64(c)
        bins = rows.shape[1]
        low, high = edges[0], edges[uint64(bins)]
        for index in range(bins):
            rows[row, uint64(index)] = 0
        i = uint64(c * chunk)
        for _ in range(min(chunk, x.size - c * chunk)):
            index = bin_of(x[i], edges, low, high, bins, scale, margin)
            if index >= 0:
                rows[row, uint64(index)] += 1
            i += uint64(1)

    return histogram


@functools.cache
def make_bincount_kernel() -> Callable[..., None]:
    """Count how often each small integer occurs, chunk by chunk.

    Launch over ``NdRange(items, local)`` with an item for each chunk.

    Kernel parameters:
        x (n,): input, integers; those outside of 0 to bins - 1 are not counted.
        rows (chunks, bins): output of int64, all of it written.
        chunk: elements in a chunk.
    """

    def bincount(nd_item: Any, x: Any, rows: Any, chunk: int) -> None:
        c = nd_item.get_global_id(0)
        if c >= rows.shape[0]:
            return
        row = uint64(c)
        bins = rows.shape[1]
        for index in range(bins):
            rows[row, uint64(index)] = 0
        i = uint64(c * chunk)
        for _ in range(min(chunk, x.size - c * chunk)):
            value = x[i]
            if value >= 0 and value < bins:
                rows[row, uint64(value)] += 1
            i += uint64(1)

    return bincount


@functools.cache
def make_add_rows_kernel() -> Callable[..., None]:
    """Add up the rows of a matrix.

    Launch over a ``Range`` of at least ``bins`` items.

    Kernel parameters:
        rows (chunks, bins): input.
        out (bins,): output.
    """

    def add_rows(item: Any, rows: Any, out: Any) -> None:
        column = item.get_id(0)
        if column >= out.size:
            return
        total = rows[0, column]
        for row in range(1, rows.shape[0]):
            total += rows[uint64(row), column]
        out[column] = total

    return add_rows
