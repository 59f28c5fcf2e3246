"""``pad``: arrays with a border."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on, from_host, order_by_columns
from dparray._array.apply import astype_array, copy_of
from dparray._array.assignment import assign
from dparray._array.dispatch import compute, compute_at_once
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._functions.creation import full_like
from dparray._functions.elementwise import rint
from dparray._functions.manipulation import moveaxis
from dparray._functions.moments import mean
from dparray._functions.quantiles import median
from dparray._functions.ranges import linspace
from dparray._functions.reductions import max as max_of
from dparray._functions.reductions import min as min_of
from dparray._placement import placement_of
from dparray.exceptions import ArgumentError, ShapeError

__all__ = [
    "pad",
]


_STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": max_of,
    "minimum": min_of,
    "mean": mean,
    "median": median,
}


_PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap", "empty")

#: The option that a mode takes; no mode takes two.
_OPTION_OF = {
    "constant": "constant_values",
    **dict.fromkeys(("reflect", "symmetric"), "reflect_type"),
    **dict.fromkeys(_STATISTICS, "stat_length"),
    "linear_ramp": "end_values",
}


def _padded_by(
    function: Callable[..., Any], x: ndarray, pad_width: Any, keywords: dict[str, Any]
) -> ndarray:
    """Let a function of the user's fill the edges, line by line."""
    all_widths = _widths(pad_width, x.ndim)
    result = pad(x, all_widths)
    for axis, widths in enumerate(all_widths):
        lines = moveaxis(result, axis, -1)
        for at in np.ndindex(lines.shape[:-1]):
            function(lines[at], tuple(widths), axis, keywords)
    return result


def _padded_rows(values: np.ndarray, widths: Any, mode: Any) -> np.ndarray:
    """NumPy's ``pad`` of an array in C order, which that keeps."""
    if not values.flags.c_contiguous:
        raise ValueError
    return np.pad(values, widths, mode)


def pad(
    x: Any,
    pad_width: Any,
    mode: str | Callable[..., Any] = "constant",
    *,
    constant_values: Any = 0,
    stat_length: Any = None,
    end_values: Any = 0,
    reflect_type: str = "even",
    **keywords: Any,
) -> ndarray:
    """Return a copy with elements added before and after along each axis.

    Args:
        x: an array.
        pad_width: how many: a number; a pair (before, after) for all axes; one pair for each; or a
            dictionary of axes and their numbers or pairs, where other axes get nothing.
        mode: ``"constant"``, ``"edge"`` (the outermost element), ``"reflect"`` and
            ``"symmetric"`` (mirrored at it, without and with it), ``"wrap"``, ``"empty"``,
            ``"maximum"``, ``"minimum"``, ``"mean"``, ``"median"`` or ``"linear_ramp"``. A function
            is given each line of the array padded with zeros, which it changes, the pair of widths,
            the axis, and ``keywords`` as a dictionary.
        constant_values: the added elements for ``"constant"``, in the form of ``pad_width``.
        stat_length: of how many elements at the edges the maximum and so on are, in that form.
        end_values: where the ramps end, in that form.
        reflect_type: ``"odd"`` mirrors values at the one at the edge, too, for ``"reflect"`` and
            ``"symmetric"``: twice that value less the mirrored one.

    Raises:
        ArgumentError: there is no such ``reflect_type``, the mode takes no such option, or the
            widths are no integers.
        AxisError: there is no such axis.
        ShapeError: ``pad_width`` does not fit, or a ``stat_length`` has no statistic.
        ValueError: there is no such mode.

    Example:
        >>> import dparray as dp
        >>> dp.pad(dp.asarray([1, 2]), (1, 2)).asnumpy()
        array([0, 1, 2, 0, 0])
    """
    x = check_array("pad", "x", x)
    if callable(mode):
        return _padded_by(mode, x, pad_width, keywords)
    known = (*_PAD_MODES, *_STATISTICS, "linear_ramp")
    if mode not in known:
        raise ArgumentError(f"pad: mode {mode!r} is none of {', '.join(known)}")
    given = (
        ("constant_values", constant_values, 0),
        ("stat_length", stat_length, None),
        ("end_values", end_values, 0),
        ("reflect_type", reflect_type, "even"),
    )
    keywords |= {name: value for name, value, default in given if value is not default}
    keywords.pop(_OPTION_OF.get(mode, ""), None)
    if keywords:
        raise ArgumentError(f"pad: mode {mode!r} takes no {', '.join(keywords)}")
    widths = _widths(pad_width, x.ndim)
    if reflect_type not in ("even", "odd"):
        raise ArgumentError(f"pad: reflect_type {reflect_type!r} is neither 'even' nor 'odd'")
    if any(width < 0 for pair in widths for width in pair):
        raise ShapeError(f"pad: pad_width {pad_width!r} has negative numbers")
    if x.ndim == 0:
        return copy_of(x)  # it has no edge
    has_zeros = type(constant_values) is int and constant_values == 0
    if mode != "empty" and mode in _PAD_MODES and has_zeros and reflect_type == "even":
        small = compute_at_once(partial(_padded_rows, widths=widths, mode=mode), (("x", x),))
        if small is not None:
            return small
    lengths = _pairs("stat_length", stat_length, x.ndim)
    if any(length is not None and length < 0 for pair in lengths for length in pair):
        raise ShapeError(f"pad: stat_length {stat_length!r} has negative numbers")
    if mode in ("maximum", "minimum") and any(0 in pair for pair in lengths):
        raise ShapeError(f"pad: of stat_length {stat_length!r}, 0 elements have no {mode}")
    if mode in _STATISTICS or mode == "linear_ramp":
        options: Any = (
            {"end_values": end_values} if mode == "linear_ramp" else {"stat_length": stat_length}
        )
        by_numpy = partial(np.pad, pad_width=widths, mode=mode, **options)
        padded = compute("pad", (("x", x),), host=by_numpy)
        if padded is not None:
            return padded
    ends = _pairs("end_values", end_values, x.ndim)
    constants = _pairs("constant_values", constant_values, x.ndim)
    result = empty_on(
        placement_of(x),
        tuple(
            before + extent + after for extent, (before, after) in zip(x.shape, widths, strict=True)
        ),
        x.dtype,
        order_by_columns(x),
    )
    inside = tuple(
        slice(before, before + extent) for extent, (before, _) in zip(x.shape, widths, strict=True)
    )
    assign(result[inside], x, "pad")
    for axis, (before, after) in enumerate(widths):
        # The axes after this one are not padded yet, so only their inner part counts.
        rest = inside[axis + 1 :]
        extent = x.shape[axis]
        if mode == "constant":
            assign(
                result[_layout.at_axis(axis, slice(0, before), *rest)], constants[axis][0], "pad"
            )
            after_all = _layout.at_axis(axis, slice(before + extent, None), *rest)
            assign(result[after_all], constants[axis][1], "pad")
        elif mode != "empty" and (before or after):
            if extent == 0:
                raise ShapeError(f"pad: axis {axis} is empty, so mode {mode!r} has nothing to add")
            whole = moveaxis(result[_layout.at_axis(axis, slice(None), *rest)], axis, 0)
            if mode in _STATISTICS:
                _fill_with_statistics(whole, before, extent, mode, lengths[axis])
                continue
            if mode == "linear_ramp":
                _fill_with_ramps(whole, before, extent, ends[axis])
                continue
            line = np.arange(-before, extent + after)
            if reflect_type == "odd" and mode in ("reflect", "symmetric"):
                _reflect_oddly(result, axis, line, extent, mode, rest)
                continue
            sources = _sources(line, extent, mode) + before
            for position in (*range(before), *range(before + extent, len(line))):
                source = result[_layout.at_axis(axis, int(sources[position]), *rest)]
                result[_layout.at_axis(axis, position, *rest)] = source
    return result


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    """A pair of integers for each axis."""
    if isinstance(pad_width, dict):
        by_axis: list[Any] = [0] * ndim
        for axis, width in pad_width.items():
            by_axis[_layout.normalize_axis("pad", axis, ndim)] = width
        return [_widths(width, 1)[0] for width in by_axis]
    pairs = _pairs("pad_width", pad_width, ndim)
    if not all(isinstance(width, int) for pair in pairs for width in pair):
        raise ArgumentError(
            f"pad: pad_width {pad_width!r:.60} must be integers; write n // 2, int(n)"
        )
    return pairs


def _pairs(name: str, value: Any, ndim: int) -> list[tuple[Any, Any]]:
    try:
        return [tuple(pair) for pair in np.broadcast_to(np.asarray(value), (ndim, 2)).tolist()]
    except ValueError:
        raise ShapeError(f"pad: {name} {value!r} is not in pairs for {ndim} axes") from None


def _sources(line: np.ndarray, extent: int, mode: str) -> np.ndarray:
    """The index of the element that each position takes; element 0 is at position 0."""
    if mode == "edge":
        return np.clip(line, 0, extent - 1)
    if mode == "wrap":
        return line % extent
    if mode == "symmetric":
        folded = line % (2 * extent)
        return np.where(folded < extent, folded, 2 * extent - 1 - folded)
    period = max(2 * extent - 2, 1)
    folded = line % period
    return np.where(folded < extent, folded, period - folded)


def _fill_with_statistics(
    whole: ndarray, before: int, extent: int, mode: str, lengths: tuple[int | None, int | None]
) -> None:
    """Fill both borders of the first axis with a statistic of the elements next to each."""
    inner = whole[before : before + extent]
    near, far = (extent if length is None else min(length, extent) for length in lengths)
    for border, elements in (
        (whole[:before], inner[:near]),
        (whole[before + extent :], inner[extent - far :]),
    ):
        value = _STATISTICS[mode](elements, axis=0, keepdims=True)
        assign(border, rint(value) if whole.dtype.kind in "iu" else value, "pad")


def _fill_with_ramps(whole: ndarray, before: int, extent: int, ends: tuple[Any, Any]) -> None:
    """Fill both borders of the first axis with even steps from the outermost elements."""
    for border, end, edge in (
        (whole[:before], ends[0], whole[before]),
        (whole[before + extent :][::-1], ends[1], whole[before + extent - 1]),
    ):
        count = border.shape[0]
        if count:
            ramp = linspace(full_like(edge, end), edge, count, False, dtype=whole.dtype)
            assign(border, ramp, "pad")


def _reflect_oddly(
    result: ndarray,
    axis: int,
    line: np.ndarray,
    extent: int,
    mode: str,
    rest: tuple[slice, ...],
) -> None:
    """Fill the border along an axis with values mirrored at those at the edges.

    Each is ``sign * element + first_times * first + last_times * last``: twice the value at the
    edge less the mirrored one, which may have been mirrored itself.
    """
    inner = slice(-int(line[0]), -int(line[0]) + extent)
    elements = moveaxis(result[_layout.at_axis(axis, inner, *rest)], axis, -1)
    first, last = elements[..., :1], elements[..., extent - 1 :]
    own = 1 if mode == "symmetric" else 0  # whether the edge is mirrored, too
    for outside in (line < 0, line >= extent):
        positions = line[outside]
        if not positions.size:
            continue
        rows = [_folded(int(position), extent, own) for position in positions]
        place = placement_of(result)
        at, sign, first_times, last_times = (
            from_host(np.asarray(column, np.int64), *place) for column in zip(*rows, strict=True)
        )
        loop = _dtypes.int8 if result.dtype.kind == "b" else result.dtype
        value = astype_array(elements, loop, copy=False)[..., at] * astype_array(sign, loop)
        value = value + astype_array(first, loop, copy=False) * astype_array(first_times, loop)
        value = value + astype_array(last, loop, copy=False) * astype_array(last_times, loop)
        border = slice(int(positions[0] - line[0]), int(positions[-1] - line[0]) + 1)
        target = result[_layout.at_axis(axis, border, *rest)]
        assign(moveaxis(target, axis, -1), value, "pad")


def _folded(position: int, extent: int, own: int) -> tuple[int, int, int, int]:
    """A position outside of a line: the element it mirrors, its sign, and the edges' shares."""
    if extent == 1 and not own:
        return 0, 1, 0, 0  # nothing but the edge itself
    sign, first_times, last_times = 1, 0, 0
    while not 0 <= position < extent:
        if position < 0:
            position, first_times = -position - own, first_times + 2 * sign
        else:
            position, last_times = 2 * (extent - 1) - position + own, last_times + 2 * sign
        sign = -sign
    return position, sign, first_times, last_times
