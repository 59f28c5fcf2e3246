"""Sorting of many lines with NumPy, in cache-sized blocks, on the threads of the device.

NumPy sorts on one thread and releases the interpreter lock meanwhile. Its stable argsort compares
two values at a time. Its other algorithm is vectorized but may leave equal values in any order,
which is fixed here where it occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Literal

import numpy as np

from dparray._runtime.threads import share_out

#: Elements of a block, which fits with its indices in a core's private caches; and the minimum
#: number of adjacent lines copied together, which share cache lines.
AT_ONCE, MIN_WIDTH = 1 << 16, 16

#: The minimum number of elements for which another thread is worth starting.
MIN_FOR_THREADS = 1 << 17

#: The minimum length of lines for the vectorized sort: for 32-bit values, packed with their
#: indices, and for 64-bit values. NumPy's stable sort is as fast for shorter lines.
SHORTEST_PACKED, SHORTEST_OF_VECTORS = 8, 16

#: Writes the result for the other arguments to the last one; lines are along the last of three
#: axes.
OfLines = Callable[[list[np.ndarray], np.ndarray], None]


def sort_lines(values: np.ndarray, axis: int, out: np.ndarray, cores: int) -> None:
    """Sort along an axis into ``out``, on up to ``threads`` threads."""

    def ordered(parts: list[np.ndarray], target: np.ndarray) -> None:
        lines = target if target.flags.c_contiguous else np.empty(target.shape, target.dtype)
        np.copyto(lines, parts[0])
        lines.sort(axis=-1, kind=kind_of_values(lines))
        if lines is not target:
            np.copyto(target, lines)

    _line_by_line(ordered, [values], axis, out, cores)


def kind_of_values(values: np.ndarray) -> Literal["quicksort", "stable"]:
    """Return NumPy's fastest algorithm for values; all have the same result."""
    # On some processors NumPy 2.4's quicksort leaves many float16 values unsorted.
    return "stable" if values.itemsize == 1 or values.dtype.char == "e" else "quicksort"


def argsort_lines(
    values: np.ndarray, axis: int, out: np.ndarray, cores: int, is_stable: bool
) -> None:
    """Write the indices that sort along an axis to ``out``; see :func:`sort_lines`."""
    order_of = _order_of if is_stable else partial(np.argsort, axis=-1)

    def order(parts: list[np.ndarray], target: np.ndarray) -> None:
        np.copyto(target, order_of(_lines(parts[0])).reshape(target.shape))

    _line_by_line(order, [values], axis, out, cores)


def lexsort_lines(keys: Sequence[np.ndarray], axis: int, out: np.ndarray, cores: int) -> None:
    """Return the sorting indices for several keys, of which the last is the primary one."""

    def order(parts: list[np.ndarray], target: np.ndarray) -> None:
        found = _order_of(_lines(parts[0]))
        for part in parts[1:]:
            found = _taken(found, _order_of(_taken(_lines(part), found)))
        np.copyto(target, found.reshape(target.shape))

    _line_by_line(order, keys, axis, out, cores)


def _lines(part: np.ndarray) -> np.ndarray:
    """Return the lines of a block as a contiguous 2-D array."""
    return np.ascontiguousarray(part).reshape(-1, part.shape[-1])


def _line_by_line(
    function: OfLines,
    sources: Sequence[np.ndarray],
    axis: int,
    out: np.ndarray,
    cores: int,
) -> None:
    """Call a function for blocks of arrays, on several threads."""
    if not out.size:
        return
    before, extent = int(np.prod(out.shape[:axis])), out.shape[axis]
    shape = (before, extent, out.size // (before * extent))
    given = [np.ascontiguousarray(source).reshape(shape) for source in sources]
    target = out.reshape(shape)

    def compute(piece: tuple[slice, slice]) -> None:
        first, last = piece
        parts = [source[first, :, last].swapaxes(1, 2) for source in given]
        function(parts, target[first, :, last].swapaxes(1, 2))

    threads = cores if out.size >= MIN_FOR_THREADS else 1
    share_out(compute, list(_pieces(*shape)), threads)
    if not np.may_share_memory(target, out):
        np.copyto(out, target.reshape(out.shape))


def _pieces(before: int, extent: int, after: int) -> Iterator[tuple[slice, slice]]:
    """Return slices of the axes before and after the axis of the lines."""
    at_once = max(1, AT_ONCE // extent)
    width = min(after, max(at_once, MIN_WIDTH))
    above = max(1, at_once // after)
    for first, last in product(range(0, before, above), range(0, after, width)):
        yield slice(first, first + above), slice(last, last + width)


def _taken(lines: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return each line reordered by indices."""
    if len(lines) == 1:
        return lines[0].take(order)
    starts = np.arange(0, lines.size, lines.shape[-1])
    return lines.reshape(-1).take(order + starts[:, None])


def _order_of(lines: np.ndarray) -> np.ndarray:
    """Return the stable order of each line."""
    extent = lines.shape[-1]
    if lines.dtype.kind in "iuf":
        if lines.itemsize == 4 and extent >= SHORTEST_PACKED:
            return _unpacked(_ordered_bits(lines).astype(np.uint64), np.arange(extent))
        if lines.itemsize == 8 and extent >= SHORTEST_OF_VECTORS:
            return _order_by_vectors(lines)
    return np.argsort(lines, axis=-1, kind="stable")


def _unpacked(values: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return indices sorted by values below 2**32, and by the indices where values are equal.

    They are sorted as integers with the value in the high bits; ``values`` are overwritten.
    """
    values <<= np.uint64(32)
    values |= positions.astype(np.uint64)
    values.sort(axis=-1)
    values &= np.uint64(0xFFFFFFFF)
    return values.view(np.int64)


def _order_by_vectors(lines: np.ndarray) -> np.ndarray:
    """Return the stable order of 64-bit values: an unstable sort, then equal runs by index."""
    order = np.argsort(lines, axis=-1)
    ordered = _taken(lines, order)
    is_same = ordered[:, 1:] == ordered[:, :-1]
    if lines.dtype.kind == "f" and np.isnan(ordered[:, -1]).any():
        is_nan = np.isnan(ordered)
        is_same |= is_nan[:, 1:] & is_nan[:, :-1]
    if is_same.any():
        follows = np.zeros(lines.shape, bool)
        follows[:, 1:] = is_same
        is_tied = follows.copy()
        is_tied[:, :-1] |= is_same
        tied = np.flatnonzero(is_tied)
        runs = np.cumsum(~follows.reshape(-1)[tied], dtype=np.uint64)
        positions = order.reshape(-1)
        positions[tied] = _unpacked(runs, positions[tied])
    return order


def _ordered_bits(values: np.ndarray) -> np.ndarray:
    """Map 32-bit values to unsigned integers of equal order: one zero, NaN last."""
    if values.dtype.kind == "u":
        return values
    if values.dtype.kind == "i":
        return values.view(np.uint32) ^ np.uint32(1 << 31)
    with np.errstate(invalid="ignore"):
        bits = (values + np.float32(0)).view(np.int32)
    ordered = (bits ^ ((bits >> 31) | np.int32(-(1 << 31)))).view(np.uint32)
    ordered[np.isnan(values)] = 0xFFFFFFFF
    return ordered
