"""Quantiles, percentiles and medians."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on
from dparray._array.apply import astype_array, choose_elements, ops
from dparray._array.assignment import assign, write_out
from dparray._array.dispatch import compute
from dparray._array.host_fastpath import compute_small
from dparray._array.ndarray import ndarray
from dparray._array.operands import (
    check_array,
    check_out,
    scalar_value,
)
from dparray._driver import traits_of
from dparray._evaluate import limits
from dparray._functions import order_statistics
from dparray._functions.cumulative import cumsum
from dparray._functions.indexing import take_along_axis
from dparray._functions.manipulation import (
    broadcast_to,
    expand_dims,
    moveaxis,
    permute_dims,
    reshape,
)
from dparray._functions.operands import vector_of
from dparray._functions.reductions import any as any_of
from dparray._functions.reductions import count_nonzero
from dparray._functions.sorting import argsort, sort
from dparray._functions.statistics import Axis
from dparray._placement import common_placement
from dparray.algorithms.quantiles import (
    can_pick,
    can_select,
    write_quantile,
    write_selected,
)
from dparray.exceptions import ArgumentError, DTypeError, ShapeError

__all__ = [
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "percentile",
    "quantile",
]


#: The offsets alpha and beta of the interpolating methods (Hyndman and Fan, 1996, types 4 to 9).
_OFFSETS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}


#: The methods that return one of the elements, and keep integer dtypes.
_CHOOSING = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")


#: Up to this many quantiles, selecting the elements around each is faster than to sort.
_FEW_FRACTIONS = 8

_METHODS = (*_OFFSETS, *_CHOOSING, "averaged_inverted_cdf", "midpoint")


def _fractions(function: str, q: Any, whole: float) -> np.ndarray:
    """Return the requested quantiles, on the host, after checking that they are from 0 to 1."""
    q = scalar_value(q)
    values = np.asarray(q.asnumpy() if isinstance(q, ndarray) else q, dtype=np.float64) / whole
    if np.any(~((values >= 0) & (values <= 1))):
        raise ValueError(f"{function}: q must be between 0 and {whole:g}; got {q!r}")
    return values


def _quantiles(
    function: str,
    x: Any,
    q: Any,
    axis: Axis,
    out: ndarray | None,
    method: str,
    keepdims: bool,
    whole: float,
    leave_nan_out: bool,
    weights: Any = None,
) -> ndarray:
    x = check_array(function, "x", x)
    named = [("x", x), *([("q", q)] if isinstance(q, ndarray) else [])]
    if weights is not None:
        weights = vector_of(function, x, "weights", weights)
        named.append(("weights", weights))
    placement = common_placement(function, named)
    check_out(function, named, out)
    if method not in _METHODS:
        raise ArgumentError(
            f"{function}: unknown method {method!r}; expected one of {', '.join(_METHODS)}"
        )
    if weights is not None and method != "inverted_cdf":
        raise ArgumentError(f"{function}: weights= requires method='inverted_cdf'; got {method!r}")
    if x.dtype.kind == "c" and "median" not in function:
        raise DTypeError(f"{function}: not defined for complex numbers; use x.real")
    is_plain = type(q) in (float, int) and 0 <= q <= whole and not (keepdims or leave_nan_out)
    if is_plain and out is weights is None and x.ndim == 1 and axis in (None, 0):
        kind = _quantile_dtype(x, q, method)
        if can_select(x, kind):
            selected = empty_on(placement, (), kind)
            write_selected(x, selected, q / whole, method, _rule)
            return selected
    fractions = _fractions(function, q, whole)
    is_for_numpy = not leave_nan_out or x.dtype.kind != "c"
    is_one_line = axis is None or x.ndim == 1
    is_for_numpy &= not (is_one_line and x.size >= order_statistics.MIN_ELEMENTS)
    if out is weights is None and x.size and is_for_numpy and not isinstance(q, ndarray):
        wanted: Any = float(fractions) if _is_weak(q) else fractions.astype(_dtype_of_fractions(q))
        is_median, known_method = "median" in function, cast("Any", method)

        def by_numpy(values: np.ndarray) -> Any:
            if leave_nan_out:
                is_whole = axis is None or (x.ndim == 1 and np.size(axis) > 0)
                values = _numbers_of(values, not is_whole or (x.ndim > 1 and keepdims))
            if is_median:
                return np.median(values, axis, keepdims=keepdims)
            return np.quantile(values, wanted, axis, method=known_method, keepdims=keepdims)

        dtype = None if is_median else _quantile_dtype(x, q, method)
        small = compute_small(_by_numpy(by_numpy, dtype), x)
        if small is not None:
            return small
    axes = tuple(range(x.ndim)) if axis is None else _layout.normalize_axes(function, axis, x.ndim)
    kept = tuple(extent for at, extent in enumerate(x.shape) if at not in axes)
    if weights is not None:
        weights = _lines(_spread(function, weights, x, axis, axes), axes, kept)
    lines = _lines(x, axes, kept)
    is_empty = lines.shape[-1] == 0
    if is_empty and not (leave_nan_out or function == "median"):
        raise ShapeError(f"{function}: x of shape {x.shape} must not be empty along {axis}")
    dtype = _quantile_dtype(x, q, method)
    if leave_nan_out and x.size == 0 and dtype.kind not in "fc":
        # The selected element would have the dtype of x, which has no NaN.
        dtype = _dtypes.default_float(traits_of(x.queue))
    result: ndarray | None = None
    if weights is None and not is_empty:
        result = _selected(function, lines, fractions, method, leave_nan_out, dtype)
    if result is None:
        result = empty_on(placement, (*fractions.shape, *kept), dtype)
        _fill(function, result, lines, weights, fractions, method, leave_nan_out)
    if keepdims:
        shape = tuple(1 if at in axes else extent for at, extent in enumerate(x.shape))
        result = reshape(result, (*fractions.shape, *shape))
    return write_out(function, result, out)


def _fill(
    function: str,
    result: ndarray,
    lines: ndarray,
    weights: ndarray | None,
    fractions: np.ndarray,
    method: str,
    leave_nan_out: bool,
) -> None:
    """Write the quantiles of lines, one for each fraction; NaN if the lines have no elements."""
    dtype = result.dtype
    if lines.shape[-1] == 0:
        number = complex(math.nan, math.nan) if dtype.kind == "c" else math.nan
        assign(result, number, function)
        return
    if weights is not None:
        pick = _weighted_picker(function, lines, weights, leave_nan_out)
    elif leave_nan_out and lines.dtype.kind in "fc":
        pick = _picker_without_nan(sort(lines), method, dtype)
    else:
        ordered = sort(lines)
        if result.size and can_pick(ordered, dtype):
            rows: Any = [result] if fractions.size == 1 else reshape(result, (fractions.size, -1))
            for number, fraction in enumerate(fractions.flat):
                _pick_by_kernel(ordered, rows[number], method, float(fraction))
            return
        pick = _picker(ordered, method, dtype)
    for position in np.ndindex(fractions.shape):
        result[position] = pick(float(fractions[position]))


def _quantile_dtype(x: ndarray, q: Any, method: str) -> np.dtype[Any]:
    """Return NumPy's dtype: selected elements keep their dtype; arrays of fractions affect it."""
    traits = traits_of(x.queue)
    if x.dtype.kind == "c":
        return x.dtype
    if method in _CHOOSING:
        return x.dtype
    if _is_weak(q):
        return x.dtype if x.dtype.kind == "f" else _dtypes.default_float(traits)
    return _dtypes.fit_device(_dtypes.promote([x.dtype, _dtype_of_fractions(q)]), traits)


def _is_weak(q: Any) -> bool:
    """Return whether a fraction is a Python number; some NumPy scalars are floats, too."""
    return type(q) in (int, float)


def _dtype_of_fractions(q: Any) -> np.dtype[Any]:
    """Return the dtype of fractions that are not Python numbers."""
    given = getattr(q, "dtype", None)
    return given if given is not None and given.kind == "f" else _dtypes.float64


def _lines(x: ndarray, axes: tuple[int, ...], kept: tuple[int, ...]) -> ndarray:
    """Return an array with the elements along the given axes as the last axis."""
    if axes == (x.ndim - 1,):
        return x
    moved = moveaxis(x, axes, tuple(range(x.ndim - len(axes), x.ndim)))
    return reshape(moved, (*kept, math.prod(x.shape[at] for at in axes)))


def _spread(
    function: str, weights: ndarray, x: ndarray, axis: Axis, axes: tuple[int, ...]
) -> ndarray:
    """Return weights of the shape of ``x``, even if they were given for its axes only."""
    if bool(any_of(weights < 0)):
        raise ArgumentError(f"{function}: weights must not be negative")
    if weights.shape == x.shape:
        return weights
    if axis is None or weights.shape != tuple(x.shape[at] for at in axes):
        raise ShapeError(
            f"{function}: weights of shape {weights.shape} match neither x of shape {x.shape} nor "
            f"its axis {axis}"
        )
    ordered = permute_dims(weights, tuple(sorted(range(len(axes)), key=axes.__getitem__)))
    shape = tuple(extent if at in axes else 1 for at, extent in enumerate(x.shape))
    return broadcast_to(reshape(ordered, shape), x.shape)


Pick = Callable[[float], ndarray]


def _selected(
    function: str,
    lines: ndarray,
    fractions: np.ndarray,
    method: str,
    leave_nan_out: bool,
    dtype: np.dtype[Any],
) -> ndarray | None:
    """Return few quantiles of one large vector that the host may read, without sorting it."""
    count = lines.size
    if (
        lines.ndim > 1
        or count < order_statistics.MIN_ELEMENTS
        or lines.dtype.kind not in "iuf"
        or fractions.size > _FEW_FRACTIONS
        or not limits.may_compute_on_host()
        or not traits_of(lines.queue).shares_memory
    ):
        return None
    if leave_nan_out and lines.dtype.kind == "f":
        count -= int(count_nonzero(ops.isnan(lines)))
        if not count:
            return None
    cores = traits_of(lines.queue).units

    def select(values: np.ndarray) -> np.ndarray:
        chosen = np.empty(fractions.shape, dtype)
        for position, fraction in np.ndenumerate(fractions):
            ranks, weight = _ranks(method, count, float(fraction))
            below, above, last = order_statistics.of_ranks(values, [*ranks], cores)
            if last != last and not leave_nan_out:
                chosen[position] = last
            elif method in _CHOOSING:
                chosen[position] = above if weight else below
            else:
                low, high = (dtype.type(one) for one in (below, above))
                chosen[position] = _between(low, high, weight, np.isfinite, np.where)
        return chosen

    selected: ndarray | None = compute(function, (("x", lines),), host=select)
    return selected


def _ranks(method: str, count: int, fraction: float) -> tuple[tuple[int, int], float]:
    """Return the ranks of the two elements around a quantile, and the weight of the upper one."""
    low, weight = _neighbors(method, np.float64(count), fraction, np.floor, np.where)
    below, above = (min(max(int(low) + step, 0), count - 1) for step in (0, 1))
    return (below, above), float(weight)


def _rule(method: str, count: int, fraction: float) -> tuple[tuple[int, int], float, bool]:
    """Return the ranks and the weight, and whether the result is one of the elements."""
    return *_ranks(method, count, fraction), method in _CHOOSING


def _picker(ordered: ndarray, method: str, dtype: np.dtype[Any]) -> Pick:
    """Return quantiles of sorted lines; NaN if a line contains NaN."""

    def pick(fraction: float) -> ndarray:
        ranks, weight = _ranks(method, ordered.shape[-1], fraction)
        below, above, last = (ordered[..., at] for at in (*ranks, -1))
        is_float = last.dtype.kind in "fc"
        if method in _CHOOSING:
            value = above if weight else below
        else:
            below, above = (astype_array(one, dtype, copy=False) for one in (below, above))
            value = _between(below, above, weight)
        if not is_float:
            return value
        return choose_elements("where", ops.isnan(last), last, value)

    return pick


def _pick_by_kernel(ordered: ndarray, out: ndarray, method: str, fraction: float) -> None:
    """Write one quantile of each sorted line to ``out``, as a function of :func:`_picker` does."""
    count = ordered.shape[-1]
    ranks, weight = _ranks(method, count, fraction)
    write_quantile(ordered, out, *ranks, weight, method in _CHOOSING)


def _picker_without_nan(ordered: ndarray, method: str, dtype: np.dtype[Any]) -> Pick:
    """Return quantiles of sorted lines without NaN; NaN if there is nothing else."""
    count = count_nonzero(ops.logical_not(ops.isnan(ordered)), -1)
    number = astype_array(count, _dtypes.default_float(traits_of(ordered.queue)))

    def floor(position: ndarray) -> ndarray:
        return ops.floor(position)

    def choose(condition: ndarray, x1: float, x2: float) -> ndarray:
        first = ops.multiply(condition, x1)
        return first + (ops.logical_not(condition) * x2)

    def pick(fraction: float) -> ndarray:
        low, weight = _neighbors(method, number, fraction, floor, choose)
        below, above = (
            take_along_axis(
                ordered,
                expand_dims(
                    ops.maximum(ops.minimum(astype_array(low, _dtypes.int64) + step, count - 1), 0),
                    -1,
                ),
                -1,
            )[..., 0]
            for step in (0, 1)
        )
        below, above, weight = (
            astype_array(one, dtype, copy=False) for one in (below, above, weight)
        )
        return _between(below, above, weight)

    return pick


def _weighted_picker(function: str, lines: ndarray, weights: ndarray, leave_nan_out: bool) -> Pick:
    """Return quantiles of lines with weighted elements."""
    order = argsort(lines)
    ordered = take_along_axis(lines, order, -1)
    weights = astype_array(weights, _dtypes.default_float(traits_of(lines.queue)))
    sums: Any = take_along_axis(weights, order, -1)
    is_nan = ops.isnan(ordered)
    if leave_nan_out:
        sums = choose_elements(function, is_nan, 0, sums)
    sums = cumsum(sums, -1)
    shares = sums / sums[..., -1:]
    last = lines.shape[-1] - 1

    def pick(fraction: float) -> ndarray:
        # Leading elements of zero weight are ignored, even for the fraction 0.
        is_before = ops.logical_or(shares < fraction, ops.equal(shares, 0))
        index = ops.minimum(count_nonzero(is_before, -1), last)
        value = take_along_axis(ordered, expand_dims(index, -1), -1)[..., 0]
        if leave_nan_out or ordered.dtype.kind != "f":
            return value
        return choose_elements(function, is_nan[..., -1], ordered[..., -1], value)

    return pick


def _neighbors(method: str, count: Any, fraction: float, floor: Any, choose: Any) -> Any:
    """Return the lower of the two elements around a quantile, and the weight of the upper one.

    The lower index may be outside 0 to count - 1, and so may the upper one, which is the next.
    ``count`` is a number, or an array with ``floor`` and ``choose`` for it.
    """
    if method in _OFFSETS and method != "linear":
        alpha, beta = _OFFSETS[method]
        position = count * fraction + (alpha + fraction * (1 - alpha - beta)) - 1
    elif method in ("inverted_cdf", "averaged_inverted_cdf"):
        position = count * fraction - 1
    elif method == "closest_observation":
        position = count * fraction - 1.5
    else:
        position = (count - 1) * fraction
    low = floor(position)
    rest = position - low
    if method in _OFFSETS:
        return low, rest
    if method == "nearest":
        return low, choose((rest > 0.5) | ((rest == 0.5) & (low % 2 == 1)), 1.0, 0.0)
    if method == "closest_observation":
        return low, choose((rest == 0) & (low % 2 == 1), 0.0, 1.0)
    at_element, beyond = {
        "averaged_inverted_cdf": (0.5, 1.0),
        "inverted_cdf": (0.0, 1.0),
        "lower": (0.0, 0.0),
        "higher": (0.0, 1.0),
        "midpoint": (0.0, 0.5),
    }[method]
    return low, choose(rest == 0, at_element, beyond)


def _choose(condition: ndarray, x1: Any, x2: Any) -> ndarray:
    return choose_elements("where", condition, x1, x2)


def _between(
    low: Any, high: Any, weight: Any, isfinite: Any = ops.isfinite, choose: Any = _choose
) -> Any:
    """Interpolate between two values, from the nearer one, so that both ends are exact.

    If one value is infinite, so is the result; between two opposite infinities it is NaN. The
    values are arrays, or NumPy's numbers with NumPy's functions.
    """
    is_array = isinstance(weight, ndarray)
    if not is_array and weight == 0:
        return low  # an infinite neighbor has no weight
    distance = high - low
    rest = 1 - weight
    if is_array:
        near = choose(weight >= 0.5, high - distance * rest, low + distance * weight)
    else:
        near = high - distance * rest if weight >= 0.5 else low + distance * weight
    chosen = choose(isfinite(distance), near, low * rest + high * weight)
    return choose(weight == 0, low, chosen) if is_array else chosen


def _numbers_of(values: np.ndarray, in_lines: bool) -> np.ndarray:
    """Return the values that are not NaN, if they form an array: all of them, or one line.

    Raises:
        ValueError: they do not.
    """
    is_nan = np.isnan(values)
    if not is_nan.any():
        return values
    if in_lines or is_nan.all():
        raise ValueError
    return values[~is_nan]


def _by_numpy(
    compute: Callable[[np.ndarray], Any], dtype: np.dtype[Any] | None
) -> Callable[[np.ndarray], Any]:
    """Compute quantiles with NumPy if they are finite.

    Integers become floats first: NumPy's differences of integers wrap around.
    """

    def quantiles_of(values: np.ndarray) -> Any:
        from_integers = values.dtype.kind in "iu" and dtype is not None and dtype.kind == "f"
        found = compute(values.astype(np.float64) if from_integers else values)
        if from_integers:
            found = found.astype(dtype)
        if found.dtype.kind in "fc" and not np.isfinite(found).all():
            raise ValueError
        return found

    return quantiles_of


def quantile(
    x: Any,
    q: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> ndarray:
    """Return quantiles: the values below which fractions ``q`` of the elements are.

    Args:
        x: a real array.
        q: fractions between 0 and 1: a scalar, a list, or an array on the queue of ``x`` (the host
            waits for its values).
        axis: an axis or a tuple of axes; all of them if ``None``.
        out: an array to write the result to.
        overwrite_input: ignored.
        method: the interpolation between two elements: ``"linear"``, ``"lower"``, ``"higher"``,
            ``"nearest"``, ``"midpoint"``, or another of NumPy's methods: ``"inverted_cdf"``,
            ``"averaged_inverted_cdf"``, ``"closest_observation"``, ``"interpolated_inverted_cdf"``,
            ``"hazen"``, ``"weibull"``, ``"median_unbiased"``, ``"normal_unbiased"`` (Hyndman and
            Fan, "Sample Quantiles in Statistical Packages", 1996).
        keepdims: whether to keep the reduced axes, with length 1.
        weights: the weights of the elements, for ``method="inverted_cdf"``, with the shape of ``x``
            or the lengths of ``axis``.

    Returns:
        An array of the shape of ``q`` followed by that of the reduced ``x``; NaN if an element is
        NaN.

    Raises:
        ArgumentError: the method is unknown or does not accept weights, or a weight is negative.
        AxisError: an axis is out of range.
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: there are no elements, or the weights have the wrong shape.
        ValueError: a fraction is not between 0 and 1.

    Example:
        >>> dp.quantile(dp.asarray([1.0, 2.0, 3.0]), [0.25, 0.5]).asnumpy()
        array([1.5, 2. ])
    """
    return _quantiles("quantile", x, q, axis, out, method, keepdims, 1, False, weights)


def percentile(
    x: Any,
    q: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> ndarray:
    """Return percentiles: the values below which ``q`` percent of the elements are.

    See :func:`quantile` for the other arguments and the errors.

    Example:
        >>> float(dp.percentile(dp.asarray([1.0, 2.0, 3.0]), 50))
        2.0
    """
    return _quantiles("percentile", x, q, axis, out, method, keepdims, 100, False, weights)


def median(
    x: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> ndarray:
    """Return the median: the middle element, or the mean of the two middle ones.

    See :func:`quantile` for arguments and errors. Complex numbers are sorted by real part, then by
    imaginary part.

    Example:
        >>> float(dp.median(dp.asarray([3.0, 1.0, 2.0])))
        2.0
    """
    return _quantiles("median", x, 0.5, axis, out, "linear", keepdims, 1, False)


def nanquantile(
    x: Any,
    q: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> ndarray:
    """Compute :func:`quantile` of the elements that are not NaN.

    Example:
        >>> float(dp.nanquantile(dp.asarray([1.0, dp.nan, 3.0]), 0.5))
        2.0
    """
    return _quantiles("nanquantile", x, q, axis, out, method, keepdims, 1, True, weights)


def nanpercentile(
    x: Any,
    q: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> ndarray:
    """Compute :func:`percentile` of the elements that are not NaN.

    Example:
        >>> float(dp.nanpercentile(dp.asarray([1.0, dp.nan, 3.0]), 50))
        2.0
    """
    return _quantiles("nanpercentile", x, q, axis, out, method, keepdims, 100, True, weights)


def nanmedian(
    x: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> ndarray:
    """Compute :func:`median` of the elements that are not NaN.

    Example:
        >>> float(dp.nanmedian(dp.asarray([1.0, dp.nan, 3.0])))
        2.0
    """
    return _quantiles("nanmedian", x, 0.5, axis, out, "linear", keepdims, 1, True)
