"""``pad``: arrays with added borders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on, from_host, order_by_columns
from dparray._array.apply import astype_array, copy_of
from dparray._array.assignment import assign
from dparray._array.dispatch import compute, compute_at_once
from dparray._array.ndarray import ndarray
from dparray._functions.creation import full_like
from dparray._functions.elementwise import rint
from dparray._functions.manipulation import moveaxis
from dparray._functions.moments import mean
from dparray._functions.public import public
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

#: The option that a mode accepts; no mode accepts two.
_OPTION_OF = {
    "constant": "constant_values",
    **dict.fromkeys(("reflect", "symmetric"), "reflect_type"),
    **dict.fromkeys(_STATISTICS, "stat_length"),
    "linear_ramp": "end_values",
}


def _padded_by(
    function: Callable[..., Any], x: ndarray, pad_width: Any, keywords: dict[str, Any]
) -> ndarray:
    """Let a user function fill the borders, line by line."""
    all_widths = _widths(pad_width, x.ndim)
    result = pad(x, all_widths)
    for axis, widths in enumerate(all_widths):
        lines = moveaxis(result, axis, -1)
        for at in np.ndindex(lines.shape[:-1]):
            function(lines[at], tuple(widths), axis, keywords)
    return result


def _padded_rows(values: np.ndarray, widths: Any, mode: Any, constant: Any) -> np.ndarray:
    """Pad an array in C order, which the result keeps."""
    if not values.flags.c_contiguous:
        raise ValueError
    if mode != "constant":
        return np.pad(values, widths, mode)
    # A tenth of the time of NumPy's ``pad``, which is written in Python.
    shape = [low + size + high for size, (low, high) in zip(values.shape, widths, strict=True)]
    result = np.full(shape, constant, values.dtype)
    result[_inside(values.shape, widths)] = values
    return result


def _inside(shape: Sequence[int], widths: Any) -> tuple[slice, ...]:
    return tuple([slice(low, low + size) for size, (low, _) in zip(shape, widths, strict=True)])


@public()
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
        pad_width: the number of elements: a number, a pair (before, after) for all axes, one pair
            for each axis, or a dictionary from axes to numbers or pairs, where other axes are not
            padded.
        mode: ``"constant"``, ``"edge"`` (the outermost element), ``"reflect"`` and ``"symmetric"``
            (mirrored without and with the edge element), ``"wrap"``, ``"empty"``, ``"maximum"``,
            ``"minimum"``, ``"mean"``, ``"median"`` or ``"linear_ramp"``. A function receives each
            line of the array padded with zeros, which it modifies, the pair of widths, the axis,
            and ``keywords`` as a dictionary.
        constant_values: the added elements for ``"constant"``, in the format of ``pad_width``.
        stat_length: the number of edge elements for the maximum and other statistics, in that
            format.
        end_values: the end values of the ramps, in that format.
        reflect_type: ``"odd"`` also reflects the values about the edge value, for ``"reflect"`` and
            ``"symmetric"``: twice the edge value minus the mirrored one.

    Raises:
        ArgumentError: ``reflect_type`` is unknown, the mode does not accept an option, or the
            widths are not integers.
        AxisError: an axis is out of range.
        ShapeError: ``pad_width`` has the wrong shape, or a ``stat_length`` has no statistic.
        ValueError: the mode is unknown.

    Example:
        >>> dp.pad(dp.asarray([1, 2]), (1, 2)).asnumpy()
        array([0, 1, 2, 0, 0])
    """
    if callable(mode):
        return _padded_by(mode, x, pad_width, keywords)
    known = (*_PAD_MODES, *_STATISTICS, "linear_ramp")
    if mode not in known:
        raise ArgumentError(f"pad: unknown mode {mode!r}; expected one of {', '.join(known)}")
    given = (
        ("constant_values", constant_values, 0),
        ("stat_length", stat_length, None),
        ("end_values", end_values, 0),
        ("reflect_type", reflect_type, "even"),
    )
    keywords |= {name: value for name, value, default in given if value is not default}
    keywords.pop(_OPTION_OF.get(mode, ""), None)
    if keywords:
        raise ArgumentError(f"pad: mode {mode!r} does not accept {', '.join(keywords)}; omit it")
    shape = x.shape
    widths = _widths(pad_width, len(shape))
    if reflect_type not in ("even", "odd"):
        raise ArgumentError(f"pad: reflect_type must be 'even' or 'odd'; got {reflect_type!r}")
    if min(map(min, widths), default=0) < 0:
        raise ShapeError(f"pad: pad_width must not be negative; got {pad_width!r}")
    if not shape:
        return copy_of(x)  # it has no edges
    kind = type(constant_values)
    is_plain = kind is x.dtype.type or (kind is int and constant_values == 0)
    if mode != "empty" and mode in _PAD_MODES and is_plain and reflect_type == "even":
        padded_rows = partial(_padded_rows, widths=widths, mode=mode, constant=constant_values)
        small = compute_at_once(padded_rows, (("x", x),))
        if small is not None:
            return small
    lengths: Any = ()
    if mode in _STATISTICS:
        lengths = _pairs("stat_length", stat_length, len(shape))
        if any(length is not None and length < 0 for pair in lengths for length in pair):
            raise ShapeError(f"pad: stat_length must not be negative; got {stat_length!r}")
        if mode in ("maximum", "minimum") and any(0 in pair for pair in lengths):
            raise ShapeError(
                f"pad: stat_length must be at least 1 for mode {mode!r}; got {stat_length!r}"
            )
    if mode in _STATISTICS or mode == "linear_ramp":
        options: Any = (
            {"end_values": end_values} if mode == "linear_ramp" else {"stat_length": stat_length}
        )
        by_numpy = partial(np.pad, pad_width=widths, mode=mode, **options)
        padded = compute("pad", (("x", x),), host=by_numpy)
        if padded is not None:
            return padded
    padded_shape = [
        before + extent + after for extent, (before, after) in zip(shape, widths, strict=True)
    ]
    result = empty_on(placement_of(x), tuple(padded_shape), x.dtype, order_by_columns(x))
    inside = _inside(shape, widths)
    if mode == "constant":  # The borders first: no work on the result is to be waited for yet.
        constants = _pairs("constant_values", constant_values, len(shape))
        for axis, (before, _) in enumerate(widths):
            for edge, constant in zip(
                (slice(0, before), slice(before + shape[axis], None)),
                constants[axis],
                strict=True,
            ):
                border = _layout.at_axis(axis, edge, *inside[axis + 1 :])
                assign(result[border], constant, "pad")
    assign(result[inside], x, "pad")
    if mode in ("constant", "empty"):
        return result
    for axis, (before, after) in enumerate(widths):
        # The following axes are not padded yet, so only their inner part is used.
        rest = inside[axis + 1 :]
        extent = shape[axis]
        if before or after:
            if extent == 0:
                raise ShapeError(
                    f"pad: axis {axis} is empty, so mode {mode!r} cannot pad it; use 'constant'"
                )
            whole = moveaxis(result[_layout.at_axis(axis, slice(None), *rest)], axis, 0)
            if mode in _STATISTICS:
                _fill_with_statistics(whole, before, extent, mode, lengths[axis])
                continue
            if mode == "linear_ramp":
                ends = _pairs("end_values", end_values, len(shape))[axis]
                _fill_with_ramps(whole, before, extent, ends)
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
    """Return a pair of integers for each axis."""
    if isinstance(pad_width, dict):
        by_axis: list[Any] = [0] * ndim
        for axis, width in pad_width.items():
            by_axis[_layout.normalize_axis("pad", axis, ndim)] = width
        return [_widths(width, 1)[0] for width in by_axis]
    pairs = _pairs("pad_width", pad_width, ndim)
    if not all(isinstance(width, int) for pair in pairs for width in pair):
        raise ArgumentError(
            f"pad: pad_width {pad_width!r:.60} must be integers; write n // 2 or int(n)"
        )
    return pairs


def _pairs(name: str, value: Any, ndim: int) -> list[tuple[Any, Any]]:
    if type(value) in (int, float):
        return [(value, value)] * ndim
    try:
        return [tuple(pair) for pair in np.broadcast_to(np.asarray(value), (ndim, 2)).tolist()]
    except ValueError:
        raise ShapeError(f"pad: {name} must be pairs for {ndim} axes; got {value!r}") from None


def _sources(line: np.ndarray, extent: int, mode: str) -> np.ndarray:
    """Return the source index for each index of the padded line; element 0 is at index 0."""
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
    """Fill both borders of the first axis with a statistic of the adjacent elements."""
    inner = whole[before : before + extent]
    near, far = (extent if length is None else min(length, extent) for length in lengths)
    for border, elements in (
        (whole[:before], inner[:near]),
        (whole[before + extent :], inner[extent - far :]),
    ):
        value = _STATISTICS[mode](elements, axis=0, keepdims=True)
        assign(border, rint(value) if whole.dtype.kind in "iu" else value, "pad")


def _fill_with_ramps(whole: ndarray, before: int, extent: int, ends: tuple[Any, Any]) -> None:
    """Fill both borders of the first axis with linear ramps from the outermost elements."""
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
    """Fill the border along an axis with values mirrored and reflected about the edges.

    Each is ``sign * element + first_times * first + last_times * last``: twice the edge value minus
    the mirrored value, which may itself be a reflection.
    """
    inner = slice(-int(line[0]), -int(line[0]) + extent)
    elements = moveaxis(result[_layout.at_axis(axis, inner, *rest)], axis, -1)
    first, last = elements[..., :1], elements[..., extent - 1 :]
    own = 1 if mode == "symmetric" else 0  # whether the edge element is mirrored too
    for outside in (line < 0, line >= extent):
        positions = line[outside]
        if not positions.size:
            continue
        rows = [_folded(int(position), extent, own) for position in positions]
        place = placement_of(result)
        at, sign, first_times, last_times = (
            from_host(np.asarray(column, np.int64), *place) for column in zip(*rows, strict=True)
        )
        dtype = _dtypes.int8 if result.dtype.kind == "b" else result.dtype
        value = astype_array(elements, dtype, copy=False)[..., at] * astype_array(sign, dtype)
        value = value + astype_array(first, dtype, copy=False) * astype_array(first_times, dtype)
        value = value + astype_array(last, dtype, copy=False) * astype_array(last_times, dtype)
        border = slice(int(positions[0] - line[0]), int(positions[-1] - line[0]) + 1)
        target = result[_layout.at_axis(axis, border, *rest)]
        assign(moveaxis(target, axis, -1), value, "pad")


def _folded(position: int, extent: int, own: int) -> tuple[int, int, int, int]:
    """Return the element that an outside index mirrors, its sign, and the weights of the edges."""
    if extent == 1 and not own:
        return 0, 1, 0, 0  # only the edge value
    sign, first_times, last_times = 1, 0, 0
    while not 0 <= position < extent:
        if position < 0:
            position, first_times = -position - own, first_times + 2 * sign
        else:
            position, last_times = 2 * (extent - 1) - position + own, last_times + 2 * sign
        sign = -sign
    return position, sign, first_times, last_times
