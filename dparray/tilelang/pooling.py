"""Pooling: the maximum or the mean of each window.

Windows read the array itself, not a padded copy: elements outside of it are not points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from dparray._array.allocation import from_host
from dparray._array.apply import astype_array, copy_of
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, overriding
from dparray._functions import elementwise as ew
from dparray._functions.manipulation import broadcast_to, reshape
from dparray._functions.padding import pad
from dparray.exceptions import ArgumentError
from dparray.tilelang.contraction import PROPAGATE_NAN
from dparray.tilelang.function import TileFunction, function
from dparray.tilelang.values import floatx
from dparray.tilelang.windows import (
    Pairs,
    borders_of,
    channels_first,
    channels_last,
    check_window,
    numbers_of,
    space_of,
)


def max_pool(
    x: ndarray,
    size: int | Sequence[int],
    *,
    strides: int | Sequence[int] | None = None,
    padding: Any = "valid",
    dilation: int | Sequence[int] = 1,
    ceil: bool = False,
    indices: bool = False,
    channels: str = "last",
) -> Any:
    """Return the maximum of each window; elements outside of the array are ignored.

    Args:
        x: ``(batch, *space, channels)`` with ``channels="last"``, ``(batch, channels, *space)``
            with ``"first"``.
        size: the size of the window, one for each dimension or one for all.
        strides: the strides of the window. Defaults to its size.
        padding: as in :func:`conv`.
        dilation: the spacing of the window's elements, at least 1.
        ceil: whether the last window may extend beyond the padding, if it begins before its end.
        indices: whether to also return the indices of the elements.
        channels: as in :func:`conv`.

    Returns:
        A pending array with the axes of ``x``, of its dtype and placement; NaN if the window
        contains NaN, as in :func:`dparray.max`. With ``indices=True`` a pair: that array, and the
        int64 index of each element (the first of equal ones) in the flattened space of its batch
        and channel.

    Raises:
        ShapeError: the window is larger than the padded space.
        ArgumentError: invalid size, strides, padding, dilation or channels.

    Example:
        >>> x = dp.reshape(dp.arange(16, dtype="float32"), (1, 4, 4, 1))
        >>> dp.tilelang.max_pool(x, 2)[0, :, :, 0].tolist()
        [[5.0, 7.0], [13.0, 15.0]]
        >>> dp.tilelang.max_pool(x, 2, indices=True)[1][0, :, :, 0].tolist()
        [[5, 7], [13, 15]]
    """
    x, window = _window("max_pool", x, size, strides, padding, dilation, ceil, channels)
    is_first = channels == "first"
    if not indices:
        made: ndarray = _pool(f"[[{PROPAGATE_NAN}]]", ">", window.program, is_first)(
            x, *window.counts
        )
        return made
    values, positions = _largest(channels_last(x) if is_first else x, window)
    return (channels_first(values), channels_first(positions)) if is_first else (values, positions)


def avg_pool(
    x: ndarray,
    size: int | Sequence[int],
    *,
    strides: int | Sequence[int] | None = None,
    padding: Any = "valid",
    dilation: int | Sequence[int] = 1,
    ceil: bool = False,
    count_padding: bool = False,
    channels: str = "last",
) -> ndarray:
    """Return the mean of each window; elements outside of the array are ignored.

    Args:
        x, size, strides, padding, dilation, ceil, channels: as in :func:`max_pool`.
        count_padding: whether padding counts as zeros; the part of a window beyond the padding,
            which ``ceil`` allows, never counts.

    Returns:
        A pending array with the axes of ``x``; integers are converted to the default float dtype.

    Raises:
        ShapeError: the window is larger than the padded space.
        ArgumentError: invalid size, strides, padding, dilation or channels.

    Example:
        >>> x = dp.reshape(dp.arange(16, dtype="float32"), (1, 4, 4, 1))
        >>> dp.tilelang.avg_pool(x, 2)[0, :, :, 0].tolist()
        [[2.5, 4.5], [10.5, 12.5]]
    """
    x, window = _window("avg_pool", x, size, strides, padding, dilation, ceil, channels)
    if x.dtype.kind != "f":
        x = astype_array(x, floatx())
    is_first = channels == "first"
    total: ndarray = _pool("", "+", window.program, is_first)(x, *window.counts)
    counts = reduce(np.multiply.outer, window.elements(count_padding), np.ones((), np.int64))
    divisor = from_host(counts.astype(x.dtype), x.queue, x.usm_type)
    return ew.divide(total, divisor if is_first else reshape(divisor, (*window.counts, 1)))


# -- windows ---------------------------------------------------------------------------------------


class _Program(NamedTuple):
    """The compile-time part of a window; its sizes are arguments."""

    size: tuple[int, ...]
    steps: tuple[int, ...]
    apart: tuple[int, ...]
    borders: Pairs


class _Window(NamedTuple):
    """A window that moves over a space.

    Attributes:
        program: its size, strides, dilation and borders.
        space: the sizes of the space.
        counts: the number of windows along each dimension.
    """

    program: _Program
    space: tuple[int, ...]
    counts: tuple[int, ...]

    def elements(self, count_padding: bool) -> list[np.ndarray]:
        """Return for each dimension the number of elements inside the array, by window."""
        size, steps, apart, borders = self.program
        return [
            _elements(size[a], steps[a], apart[a], borders[a], self.space[a], count, count_padding)
            for a, count in enumerate(self.counts)
        ]


@lru_cache(maxsize=1024)
def _elements(
    wide: int,
    step: int,
    gap: int,
    border: tuple[int, int],
    size: int,
    count: int,
    count_padding: bool,
) -> np.ndarray:
    """Return the number of elements of each window along a dimension."""
    before, after = border if count_padding else (0, 0)
    at = step * np.arange(count)[:, None] - border[0] + gap * np.arange(wide)
    return np.count_nonzero((at >= -before) & (at < size + after), axis=1)


def _window(
    name: str,
    x: ndarray,
    size: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    ceil: bool,
    channels: str,
) -> tuple[ndarray, _Window]:
    """Check the arguments of a pooling function."""
    if overriding((x,)) is None:
        x = check_array(name, "x", x)
    count = space_of(name, x, channels)
    wide = numbers_of(name, "size", size, count)
    steps = wide if strides is None else numbers_of(name, "strides", strides, count)
    apart = numbers_of(name, "dilation", dilation, count)
    space = tuple(x.shape[2:] if channels == "first" else x.shape[1:-1])
    reach = [d * (k - 1) + 1 for d, k in zip(apart, wide, strict=True)]
    borders = borders_of(name, padding, space, reach, steps)
    check_window(name, space, reach, borders)
    counts = [_count(*each, ceil) for each in zip(space, reach, steps, borders, strict=True)]
    window = _Window(_Program(wide, steps, apart, borders), space, tuple(counts))
    if not all(each.all() for each in window.elements(False)):
        raise ArgumentError(
            f"{name}: padding={padding!r} leaves windows of {wide} empty; it must be "
            "smaller than the window"
        )
    return x, window


def _count(size: int, wide: int, step: int, border: tuple[int, int], ceil: bool) -> int:
    """Return the number of windows along a dimension."""
    rest = size + sum(border) - wide
    count = rest // step + 1
    # The last window must begin in the array or in the padding before it.
    return count + (ceil and rest % step > 0 and count * step < size + border[0])


@lru_cache(maxsize=256)
def _pool(attribute: str, aggregation: str, window: _Program, is_first: bool) -> TileFunction:
    size, steps, apart, borders = window
    axes = range(len(size))
    sizes = ", ".join(f"X{a}" for a in axes)
    counts = ", ".join(f"S{a}" for a in axes)
    points = ", ".join(f"x{a}" for a in axes)
    read = ", ".join(f"{steps[a]} * x{a} + {apart[a]} * k{a} - {borders[a][0]}" for a in axes)
    limits = ", ".join(f"k{a} < {size[a]}" for a in axes)
    if is_first:
        shape, written, made = f"N, C, {sizes}", f"n, c, {points}", f"N, C, {counts}"
        inner = f"n, c, {read}"
    else:
        shape, written, made = f"N, {sizes}, C", f"n, {points}, c", f"N, {counts}, C"
        inner = f"n, {read}, c"
    return function(
        f"""function (I[{shape}], {counts}) -> (O) {{
            {attribute} O[{written}: {made}] = {aggregation}(I[{inner}]), {limits};
        }}"""
    )


# -- positions -------------------------------------------------------------------------------------


def _largest(x: ndarray, window: _Window) -> tuple[ndarray, ndarray]:
    """Return the maximum of each window and its index; the channels are last."""
    size, steps, apart, borders = window.program
    # Padding at both ends makes every window whole.
    ends = [
        (count - 1) * step + gap * (wide - 1) + 1 - before - length
        for count, step, gap, wide, (before, _), length in zip(
            window.counts, steps, apart, size, borders, window.space, strict=True
        )
    ]
    widths = [(before, max(0, end)) for (before, _), end in zip(borders, ends, strict=True)]
    wide_x = pad(x, ((0, 0), *widths, (0, 0))) if any(map(any, widths)) else x
    axes = range(len(size))
    distances = [prod(window.space[a + 1 :]) for a in axes]

    def on_device(values: np.ndarray) -> ndarray:
        return from_host(values[None, ..., None], x.queue, x.usm_type)

    best: ndarray | None = None
    at: Any = None
    for place, lines in _places(window):
        inner = [
            slice(start, start + (count - 1) * step + 1, step)
            for start, count, step in (
                (apart[a] * place[a], window.counts[a], steps[a]) for a in axes
            )
        ]
        cuts = (slice(None), *inner, slice(None))
        value = wide_x[cuts]
        distance = sum(apart[a] * place[a] * distances[a] for a in axes)
        is_inside = reduce(np.logical_and.outer, lines)
        if best is None:
            best, at = value, ew.where(on_device(is_inside), distance, -1)
            continue
        is_new = ew.logical_or(ew.greater(value, best), ew.less(at, 0))
        if x.dtype.kind == "f":
            nan_first = ew.logical_and(ew.not_equal(value, value), ew.equal(best, best))
            is_new = ew.logical_or(is_new, nan_first)
        if not is_inside.all():
            is_new = ew.logical_and(is_new, on_device(is_inside))
        best, at = ew.where(is_new, value, best), ew.where(is_new, distance, at)
    assert best is not None
    starts = [(steps[a] * np.arange(window.counts[a]) - borders[a][0]) * distances[a] for a in axes]
    position = ew.add(at, on_device(reduce(np.add.outer, starts)))
    # Windows of one element have not been compared with anything.
    is_whole = position.shape == best.shape
    return best, position if is_whole else copy_of(broadcast_to(position, best.shape))


def _places(window: _Window) -> Iterator[tuple[tuple[int, ...], list[np.ndarray]]]:
    """Yield the positions in a window, and for each dimension the windows that have them inside."""
    size, steps, apart, borders = window.program
    for place in product(*map(range, size)):
        lines = []
        for a, at in enumerate(place):
            where = steps[a] * np.arange(window.counts[a]) - borders[a][0] + apart[a] * at
            lines.append((where >= 0) & (where < window.space[a]))
        yield place, lines
