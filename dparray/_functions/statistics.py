"""Statistics: order statistics, histograms, reductions that leave NaN out, covariance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.apply import apply, astype_array, choose_elements
from dparray._array.assignment import delivered
from dparray._array.fresh import empty_on
from dparray._array.libraries import call_either
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_out, foreign_operand, scalar_value
from dparray._array.small import call_at_once
from dparray._functions.creation import asarray
from dparray._functions.indexing import take_along_axis
from dparray._functions.manipulation import (
    broadcast_to,
    expand_dims,
    moveaxis,
    permute_dims,
    reshape,
)
from dparray._functions.products import matmul
from dparray._functions.reductions import all as all_of
from dparray._functions.reductions import any as any_of
from dparray._functions.reductions import (
    argmax,
    argmin,
    average,
    count_nonzero,
    cumprod,
    cumsum,
)
from dparray._functions.reductions import max as max_of
from dparray._functions.reductions import min as min_of
from dparray._functions.reductions import prod as prod_of
from dparray._functions.reductions import sum as sum_of
from dparray._functions.sorting import argsort, sort
from dparray._graph.ops import OPS
from dparray._placement import Placement, common_placement
from dparray.algorithms import bincount as count_integers
from dparray.algorithms import histogram as count_in_bins
from dparray.exceptions import ArgumentError, DTypeError, ShapeError

__all__ = [
    "bincount",
    "corrcoef",
    "cov",
    "digitize",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "interp",
    "median",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "percentile",
    "quantile",
]

Axis = int | Sequence[int] | None
#: The offsets alpha and beta of the methods that interpolate (Hyndman and Fan, 1996, types 4 to 9).
_OFFSETS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
#: The methods that give one of the elements, and keep the dtype of integers.
_CHOOSING = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
_METHODS = (*_OFFSETS, *_CHOOSING, "averaged_inverted_cdf", "midpoint")


# -- order statistics -----------------------------------------------------------------------------


def _fractions(function: str, q: Any, whole: float) -> np.ndarray:
    """The quantiles asked for, on the host, between 0 and 1."""
    q = scalar_value(q)
    if isinstance(q, np.ndarray):
        raise foreign_operand(function, "q", q)
    values = np.asarray(q.asnumpy() if isinstance(q, ndarray) else q, dtype=np.float64) / whole
    if np.any(~((values >= 0) & (values <= 1))):
        raise ValueError(f"{function}: q is {q!r}; it must be between 0 and {whole:g}")
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
        weights = _vector(function, x, "weights", weights)
        named.append(("weights", weights))
    placement = common_placement(function, named)
    check_out(function, named, out)
    if method not in _METHODS:
        raise ArgumentError(f"{function}: method {method!r} is none of {', '.join(_METHODS)}")
    if weights is not None and method != "inverted_cdf":
        raise ArgumentError(
            f"{function}: weights are for method='inverted_cdf' only; got {method!r}"
        )
    if x.dtype.kind == "c":
        raise DTypeError(f"{function}: complex numbers have no order")
    fractions = _fractions(function, q, whole)
    if out is weights is None and not leave_nan_out and x.size and not isinstance(q, ndarray):
        wanted: Any = float(fractions) if isinstance(q, int | float) else fractions
        known_method: Any = method
        small = call_at_once(
            (lambda values: np.median(values, axis, keepdims=keepdims))
            if function == "median"
            else lambda values: np.quantile(
                values, wanted, axis, method=known_method, keepdims=keepdims
            ),
            x,
        )
        if small is not None:
            return small
    axes = tuple(range(x.ndim)) if axis is None else _layout.normalize_axes(function, axis, x.ndim)
    kept = tuple(extent for at, extent in enumerate(x.shape) if at not in axes)
    if weights is not None:
        weights = _lines(_spread(function, weights, x, axis, axes), axes, kept)
    lines = _lines(x, axes, kept)
    if lines.shape[-1] == 0:
        raise ShapeError(f"{function}: an array of shape {x.shape} has no element along {axis}")
    dtype = _quantile_dtype(x, q, method)
    if weights is not None:
        pick = _weighted_picker(function, lines, weights, leave_nan_out)
    elif leave_nan_out and lines.dtype.kind == "f":
        pick = _picker_without_nan(sort(lines), method, dtype)
    else:
        pick = _picker(sort(lines), method, dtype)
    result = empty_on(placement, (*fractions.shape, *kept), dtype)
    for position in np.ndindex(fractions.shape):
        result[position] = pick(float(fractions[position]))
    if keepdims:
        shape = tuple(1 if at in axes else extent for at, extent in enumerate(x.shape))
        result = reshape(result, (*fractions.shape, *shape))
    return delivered(function, result, out)


def _quantile_dtype(x: ndarray, q: Any, method: str) -> np.dtype[Any]:
    """NumPy's: elements that are given as they are keep theirs; fractions in arrays take part."""
    device = x.sycl_queue.sycl_device
    if x.dtype.kind != "f":
        is_kept = method in _CHOOSING and x.dtype.kind != "b"
        return x.dtype if is_kept else _dtypes.default_float(device)
    if method in _CHOOSING or isinstance(q, int | float):
        return x.dtype
    single = isinstance(q, ndarray) and q.dtype.kind == "f"
    return _dtypes.fit_device(_dtypes.promote([x.dtype, q.dtype if single else np.float64]), device)


def _lines(x: ndarray, axes: tuple[int, ...], kept: tuple[int, ...]) -> ndarray:
    """The elements along the given axes as the last axis of an array."""
    moved = moveaxis(x, axes, tuple(range(x.ndim - len(axes), x.ndim)))
    return reshape(moved, (*kept, math.prod(x.shape[at] for at in axes)))


def _spread(
    function: str, weights: ndarray, x: ndarray, axis: Axis, axes: tuple[int, ...]
) -> ndarray:
    """Weights of the shape of ``x``, if they were given for its axes alone."""
    if bool(any_of(apply(OPS["less"], weights, 0))):
        raise ArgumentError(f"{function}: weights must not be negative")
    if weights.shape == x.shape:
        return weights
    if axis is None or weights.shape != tuple(x.shape[at] for at in axes):
        raise ShapeError(
            f"{function}: weights of shape {weights.shape} fit neither x of shape {x.shape} nor "
            f"its axis {axis}"
        )
    ordered = permute_dims(weights, tuple(sorted(range(len(axes)), key=axes.__getitem__)))
    shape = tuple(extent if at in axes else 1 for at, extent in enumerate(x.shape))
    return broadcast_to(reshape(ordered, shape), x.shape)


Pick = Callable[[float], ndarray]


def _picker(ordered: ndarray, method: str, dtype: np.dtype[Any]) -> Pick:
    """Quantiles of sorted lines; NaN where a line has one, which is last then."""
    count = ordered.shape[-1]
    last = ordered[..., count - 1]

    def pick(fraction: float) -> ndarray:
        low, weight = _neighbours(method, np.float64(count), fraction, np.floor, np.where)
        below, above = (ordered[..., min(max(at, 0), count - 1)] for at in (int(low), int(low) + 1))
        if method in _CHOOSING:
            value = above if weight else below
        else:
            below, above = (astype_array(one, dtype, copy=False) for one in (below, above))
            value = _between(below, above, float(weight))
        if ordered.dtype.kind != "f":
            return value
        return choose_elements("where", apply(OPS["isnan"], last), last, value)

    return pick


def _picker_without_nan(ordered: ndarray, method: str, dtype: np.dtype[Any]) -> Pick:
    """Quantiles of sorted lines up to the first NaN; NaN where there is nothing else."""
    count = count_nonzero(apply(OPS["logical_not"], apply(OPS["isnan"], ordered)), -1)
    number = astype_array(count, _dtypes.default_float(ordered.sycl_queue.sycl_device))

    def floor(place: ndarray) -> ndarray:
        return apply(OPS["floor"], place)

    def choose(condition: ndarray, x1: float, x2: float) -> ndarray:
        first = apply(OPS["multiply"], condition, x1)
        return first + apply(OPS["multiply"], apply(OPS["logical_not"], condition), x2)

    def pick(fraction: float) -> ndarray:
        low, weight = _neighbours(method, number, fraction, floor, choose)
        below, above = (
            take_along_axis(
                ordered,
                expand_dims(
                    apply(
                        OPS["maximum"],
                        apply(OPS["minimum"], astype_array(low, _dtypes.int64) + step, count - 1),
                        0,
                    ),
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
    """Quantiles of lines whose elements count by their weights."""
    order = argsort(lines)
    ordered = take_along_axis(lines, order, -1)
    weights = astype_array(weights, _dtypes.default_float(lines.sycl_queue.sycl_device))
    sums: Any = take_along_axis(weights, order, -1)
    is_nan = apply(OPS["isnan"], ordered)
    if leave_nan_out:
        sums = choose_elements(function, is_nan, 0, sums)
    sums = cumsum(sums, -1)
    shares = sums / sums[..., -1:]
    last = lines.shape[-1] - 1

    def pick(fraction: float) -> ndarray:
        # Elements of no weight in front are none, not even for the fraction 0.
        is_before = apply(OPS["logical_or"], shares < fraction, apply(OPS["equal"], shares, 0))
        place = apply(OPS["minimum"], count_nonzero(is_before, -1), last)
        value = take_along_axis(ordered, expand_dims(place, -1), -1)[..., 0]
        if leave_nan_out or ordered.dtype.kind != "f":
            return value
        return choose_elements(function, is_nan[..., -1], ordered[..., -1], value)

    return pick


def _neighbours(method: str, count: Any, fraction: float, floor: Any, choose: Any) -> Any:
    """The lower of the two sorted elements around a quantile, and how much of the upper goes in.

    The lower one may lie outside 0 ... count - 1, and so may the upper one, which is the next.
    ``count`` is a number, or an array of numbers with ``floor`` and ``choose`` for it.
    """
    if method in _OFFSETS and method != "linear":
        alpha, beta = _OFFSETS[method]
        place = count * fraction + (alpha + fraction * (1 - alpha - beta)) - 1
    elif method in ("inverted_cdf", "averaged_inverted_cdf"):
        place = count * fraction - 1
    elif method == "closest_observation":
        place = count * fraction - 1.5
    else:
        place = (count - 1) * fraction
    low = floor(place)
    rest = place - low
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


def _between(low: ndarray, high: ndarray, weight: Any) -> ndarray:
    """The point between two values; from the nearer one, so that both ends are exact."""
    distance = apply(OPS["subtract"], high, low)
    from_low = apply(OPS["add"], low, apply(OPS["multiply"], distance, weight))
    from_high = apply(
        OPS["subtract"],
        high,
        apply(OPS["multiply"], distance, apply(OPS["subtract"], 1, weight))
        if isinstance(weight, ndarray)
        else apply(OPS["multiply"], distance, 1 - weight),
    )
    if not isinstance(weight, ndarray):
        # Equal neighbours, infinite ones too, have no distance.
        chosen = from_high if weight >= 0.5 else from_low
        return choose_elements("where", apply(OPS["equal"], low, high), low, chosen)
    chosen = choose_elements("where", apply(OPS["greater_equal"], weight, 0.5), from_high, from_low)
    return choose_elements("where", apply(OPS["equal"], low, high), low, chosen)


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
    """The values below which fractions ``q`` of the elements lie.

    Args:
        x: a real array.
        q: fractions between 0 and 1: a scalar, a list, or an array on the queue of ``x`` (for
            whose values the host waits).
        axis: an axis or a tuple of axes; all of them if ``None``.
        out: an array for the result.
        overwrite_input: without effect.
        method: between two elements: ``"linear"``, ``"lower"``, ``"higher"``, ``"nearest"``,
            ``"midpoint"``, or any other of NumPy's: ``"inverted_cdf"``,
            ``"averaged_inverted_cdf"``, ``"closest_observation"``,
            ``"interpolated_inverted_cdf"``, ``"hazen"``, ``"weibull"``, ``"median_unbiased"``,
            ``"normal_unbiased"`` (Hyndman and Fan, "Sample Quantiles in Statistical Packages",
            1996).
        keepdims: keep the reduced axes, with extent 1.
        weights: how much each element counts, for ``method="inverted_cdf"``: of the shape of
            ``x``, or of the extents of ``axis``.

    Returns:
        An array of the shape of ``q`` followed by that of the reduced ``x``; NaN where one is.

    Raises:
        ArgumentError: there is no such method, or it takes no weights, or one is negative.
        AxisError: there is no such axis.
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: there is no element, or the weights do not fit.
        ValueError: a fraction is outside 0 ... 1.

    Example:
        >>> import dparray as dp
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
    """The values below which ``q`` percent of the elements lie; otherwise as :func:`quantile`.

    Example:
        >>> import dparray as dp
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
    """The middle of the sorted elements, or the mean of the two middle ones.

    Arguments and errors as of :func:`quantile`.

    Example:
        >>> import dparray as dp
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
    """:func:`quantile` of the elements that are not NaN.

    Example:
        >>> import dparray as dp
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
    """:func:`percentile` of the elements that are not NaN.

    Example:
        >>> import dparray as dp
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
    """:func:`median` of the elements that are not NaN.

    Example:
        >>> import dparray as dp
        >>> float(dp.nanmedian(dp.asarray([1.0, dp.nan, 3.0])))
        2.0
    """
    return _quantiles("nanmedian", x, 0.5, axis, out, "linear", keepdims, 1, True)


# -- reductions that leave NaN out ----------------------------------------------------------------


def _filled(
    function: str, x: Any, value: Any, out: ndarray | None = None, where: Any = True
) -> tuple[ndarray, Any]:
    """``x`` with NaN replaced, and where it was; integers have none."""
    x = check_array(function, "x", x)
    placed = [("x", x), *([("where", where)] if isinstance(where, ndarray) else [])]
    check_out(function, placed, out)
    common_placement(function, placed)
    if x.dtype.kind not in "fc":
        return x, None
    is_nan = apply(OPS["isnan"], x)
    return choose_elements("where", is_nan, value, x), is_nan


def nansum(
    x: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> ndarray:
    """:func:`sum` with NaN counted as 0.

    Example:
        >>> import dparray as dp
        >>> float(dp.nansum(dp.asarray([1.0, dp.nan])))
        1.0
    """
    filled = _filled("nansum", x, 0, out, where)[0]
    return sum_of(filled, axis, dtype, out, keepdims, initial, where)


def nanprod(
    x: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> ndarray:
    """:func:`prod` with NaN counted as 1.

    Example:
        >>> import dparray as dp
        >>> float(dp.nanprod(dp.asarray([2.0, dp.nan])))
        2.0
    """
    filled = _filled("nanprod", x, 1, out, where)[0]
    return prod_of(filled, axis, dtype, out, keepdims, initial, where)


def nancumsum(
    x: Any, axis: int | None = None, dtype: Any = None, out: ndarray | None = None
) -> ndarray:
    """:func:`cumsum` with NaN counted as 0.

    Example:
        >>> import dparray as dp
        >>> dp.nancumsum(dp.asarray([1.0, dp.nan, 2.0])).asnumpy()
        array([1., 1., 3.])
    """
    return cumsum(_filled("nancumsum", x, 0, out)[0], axis, dtype, out)


def nancumprod(
    x: Any, axis: int | None = None, dtype: Any = None, out: ndarray | None = None
) -> ndarray:
    """:func:`cumprod` with NaN counted as 1.

    Example:
        >>> import dparray as dp
        >>> dp.nancumprod(dp.asarray([2.0, dp.nan, 3.0])).asnumpy()
        array([2., 2., 6.])
    """
    return cumprod(_filled("nancumprod", x, 1, out)[0], axis, dtype, out)


def _extreme(
    function: str,
    reduce: Callable[..., ndarray],
    x: Any,
    axis: Axis,
    out: ndarray | None,
    keepdims: bool,
    worst: float,
    initial: Any,
    where: Any,
) -> ndarray:
    filled, is_nan = _filled(function, x, worst, out, where)
    result = reduce(filled, axis, None, keepdims, initial, where)
    if is_nan is not None and initial is None:
        result = choose_elements("where", all_of(is_nan, axis, None, keepdims), math.nan, result)
    if out is None:
        return result
    out[...] = result
    return out


def nanmax(
    x: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> ndarray:
    """:func:`max` of the elements that are not NaN; NaN where there is nothing else.

    Example:
        >>> import dparray as dp
        >>> float(dp.nanmax(dp.asarray([1.0, dp.nan])))
        1.0
    """
    return _extreme("nanmax", max_of, x, axis, out, keepdims, -math.inf, initial, where)


def nanmin(
    x: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> ndarray:
    """:func:`min` of the elements that are not NaN; NaN where there is nothing else.

    Example:
        >>> import dparray as dp
        >>> float(dp.nanmin(dp.asarray([1.0, dp.nan])))
        1.0
    """
    return _extreme("nanmin", min_of, x, axis, out, keepdims, math.inf, initial, where)


def _extreme_position(
    function: str,
    find: Callable[..., ndarray],
    x: Any,
    axis: int | None,
    keepdims: bool,
    worst: float,
    out: ndarray | None,
) -> ndarray:
    filled, is_nan = _filled(function, x, worst, out)
    if is_nan is not None and bool(any_of(all_of(is_nan, axis))):
        raise ValueError(f"{function}: there is nothing but NaN along axis {axis}")
    return find(filled, axis, out, keepdims=keepdims)


def nanargmax(
    x: Any, axis: int | None = None, out: ndarray | None = None, *, keepdims: bool = False
) -> ndarray:
    """:func:`argmax` of the elements that are not NaN; the host waits to know that there are some.

    Raises:
        ValueError: there is nothing but NaN.

    Example:
        >>> import dparray as dp
        >>> int(dp.nanargmax(dp.asarray([dp.nan, 1.0])))
        1
    """
    return _extreme_position("nanargmax", argmax, x, axis, keepdims, -math.inf, out)


def nanargmin(
    x: Any, axis: int | None = None, out: ndarray | None = None, *, keepdims: bool = False
) -> ndarray:
    """:func:`argmin` of the elements that are not NaN; the host waits to know that there are some.

    Raises:
        ValueError: there is nothing but NaN.

    Example:
        >>> import dparray as dp
        >>> int(dp.nanargmin(dp.asarray([dp.nan, 1.0])))
        1
    """
    return _extreme_position("nanargmin", argmin, x, axis, keepdims, math.inf, out)


def _moments(
    function: str, x: Any, axis: Axis, dtype: Any, keepdims: bool, where: Any = True
) -> tuple[ndarray, ndarray, ndarray]:
    """The values with 0 for NaN and what is masked out, where they are, how many along the axes."""
    x = check_array(function, "x", x)
    if x.dtype.kind not in "fc" and dtype is None:
        dtype = _dtypes.default_float(x.sycl_queue.sycl_device)
    if dtype is not None:
        x = astype_array(x, _dtypes.as_dtype(dtype), copy=False)
    is_there = apply(OPS["logical_not"], apply(OPS["isnan"], x))
    if where is not True:
        mask = check_array(function, "where", where, Placement(x.sycl_queue, x.usm_type))
        common_placement(function, (("x", x), ("where", mask)))
        is_there = apply(OPS["logical_and"], is_there, broadcast_to(mask, x.shape))
    count = count_nonzero(is_there, axis, keepdims=keepdims)
    return choose_elements("where", is_there, x, 0), is_there, count


def nanmean(
    x: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> ndarray:
    """:func:`mean` of the elements that are not NaN.

    Example:
        >>> import dparray as dp
        >>> float(dp.nanmean(dp.asarray([1.0, dp.nan, 3.0])))
        2.0
    """
    x = check_array("nanmean", "x", x)
    check_out(
        "nanmean", [("x", x), *([("where", where)] if isinstance(where, ndarray) else [])], out
    )
    values, _, count = _moments("nanmean", x, axis, dtype, keepdims, where)
    total = sum_of(values, axis, None, None, keepdims)
    return apply(OPS["divide"], total, astype_array(count, total.dtype), out=out)


def nanvar(
    x: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: ndarray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: ndarray | None = None,
    correction: float | None = None,
) -> ndarray:
    """:func:`var` of the elements that are not NaN.

    Example:
        >>> import dparray as dp
        >>> float(dp.nanvar(dp.asarray([1.0, dp.nan, 3.0])))
        1.0
    """
    x = check_array("nanvar", "x", x)
    check_out(
        "nanvar", [("x", x), *([("where", where)] if isinstance(where, ndarray) else [])], out
    )
    values, is_there, count = _moments("nanvar", x, axis, dtype, True, where)
    if mean is None:
        total = sum_of(values, axis, None, None, True)
        mean = apply(OPS["divide"], total, astype_array(count, total.dtype))
    else:
        common_placement("nanvar", (("x", x), ("mean", check_array("nanvar", "mean", mean))))
    distance = apply(OPS["abs"], apply(OPS["subtract"], values, mean))
    squares = choose_elements("where", is_there, apply(OPS["square"], distance), 0)
    spread = sum_of(squares, axis, None, None, keepdims)
    number = count_nonzero(is_there, axis, keepdims=keepdims)
    freedom = apply(
        OPS["maximum"],
        apply(OPS["subtract"], number, ddof if correction is None else correction),
        0,
    )
    return apply(OPS["divide"], spread, astype_array(freedom, spread.dtype), out=out)


def nanstd(
    x: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: ndarray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: ndarray | None = None,
    correction: float | None = None,
) -> ndarray:
    """:func:`std` of the elements that are not NaN.

    Example:
        >>> import dparray as dp
        >>> float(dp.nanstd(dp.asarray([1.0, dp.nan, 3.0])))
        1.0
    """
    x = check_array("nanstd", "x", x)
    placed = [("x", x), *([("where", where)] if isinstance(where, ndarray) else [])]
    common_placement("nanstd", placed)
    check_out("nanstd", placed, out)
    return apply(
        OPS["sqrt"],
        nanvar(x, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction),
        out=out,
    )


# -- histograms -----------------------------------------------------------------------------------

# From so many elements on, the kernels are faster than NumPy on the host.
_LARGE = 1 << 15
_LARGE_COUNT = 1 << 17
# Of integers that NumPy counts: those that are safely positions.
_INDICES = tuple(np.dtype(letter) for letter in "bBhHiIq")


def _vector(function: str, like: ndarray, name: str, value: Any) -> ndarray:
    """A list as an array on the queue of another; an array as it is."""
    return check_array(function, name, value, Placement(like.sycl_queue, like.usm_type))


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> ndarray:
    """How often each of the integers 0, 1, 2 ... is there, or the sums of their weights.

    The length of the result depends on the values, so the host waits for them.

    Args:
        x: a vector of integers that are not negative.
        weights: a vector of the same length.
        minlength: the least number of counts.

    Returns:
        An array of ``max(x) + 1`` counts or more.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: ``x`` is no vector, or the lengths differ.
        ValueError: an integer or ``minlength`` is negative.

    Example:
        >>> import dparray as dp
        >>> dp.bincount(dp.asarray([0, 2, 2])).asnumpy()
        array([1, 0, 2])
    """
    x = check_array("bincount", "x", x)
    named = [("x", x)]
    if weights is None and x.ndim == 1 and x.size >= _LARGE_COUNT and x.dtype in _INDICES:
        return count_integers(x, minlength)
    if weights is not None:
        named.append(("weights", _vector("bincount", x, "weights", weights)))
    return call_either(
        "bincount", lambda xp, *arrays: xp.bincount(*arrays, minlength=minlength), named
    )


def histogram(
    x: Any,
    bins: Any = 10,
    range: tuple[float, float] | None = None,
    density: bool = False,
    weights: Any = None,
) -> tuple[ndarray, ndarray]:
    """How many elements are in each of a row of bins.

    Args:
        x: an array.
        bins: their number, or a list or array of their edges.
        range: lowest and highest edge, if ``bins`` is a number; those of ``x`` if not given.
        density: give the density of probability instead, whose integral is 1.
        weights: what each element counts.

    Returns:
        The counts and the edges.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the weights do not fit.
        ValueError: the edges do not increase, or are not finite, or there are no bins.

    Example:
        >>> import dparray as dp
        >>> counts, edges = dp.histogram(dp.asarray([1.0, 2.0, 2.5, 4.0]), bins=3)
        >>> counts.asnumpy(), edges.asnumpy()
        (array([1, 2, 1]), array([1., 2., 3., 4.]))
    """
    x = check_array("histogram", "x", x)
    named = [("x", x)]
    is_number = isinstance(bins, int | np.integer) and not isinstance(bins, bool)
    has_kernel = x.dtype.kind in "iuf" and x.dtype != np.float16
    if is_number and weights is None and has_kernel and x.size >= _LARGE:
        counts, edges = count_in_bins(x.reshape(-1), int(bins), range)
        if density:
            real = _dtypes.default_float(x.sycl_queue.sycl_device)
            widths = astype_array(edges[1:] - edges[:-1], real)
            counts = astype_array(counts, real) / widths / sum_of(counts)
        return counts, edges
    if isinstance(bins, ndarray | list | tuple):
        named.append(("bins", _vector("histogram", x, "bins", bins)))
    if weights is not None:
        named.append(("weights", _vector("histogram", x, "weights", weights)))

    def compute(xp: Any, values: Any, *rest: Any) -> Any:
        arrays = dict(zip((name for name, _ in named[1:]), rest, strict=True))
        options = {"bins": bins, "range": range, "density": density} | arrays
        return tuple(xp.histogram(values, **options))

    counts, edges = call_either("histogram", compute, named)
    return counts, edges


def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool = False,
    weights: Any = None,
) -> tuple[ndarray, ndarray, ndarray]:
    """How many points are in each cell of a grid.

    Args:
        x: a vector of coordinates.
        y: the other coordinates.
        bins: their number, a pair of numbers, a vector of edges, or a pair of such.
        range: lowest and highest edge along both axes; those of the points if not given.
        density: give the density of probability instead, whose integral is 1.
        weights: what each point counts.

    Returns:
        The counts, and the edges along both axes.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the vectors differ in length, or edges do not increase.

    Example:
        >>> import dparray as dp
        >>> x = dp.asarray([0.5, 1.5, 1.5])
        >>> dp.histogram2d(x, x, bins=2, range=[[0, 2], [0, 2]])[0].asnumpy()
        array([[1., 0.],
               [0., 2.]])
    """
    x = asarray(x) if isinstance(x, list | tuple) else check_array("histogram2d", "x", x)
    y = _vector("histogram2d", x, "y", y)
    common_placement("histogram2d", (("x", x), ("y", y)))
    if x.ndim != 1 or x.shape != y.shape:
        raise ShapeError(f"histogram2d: x of shape {x.shape} and y of shape {y.shape}")
    is_pair = isinstance(bins, list | tuple) and len(bins) == 2
    chosen = list(bins) if is_pair else [bins, bins]
    named = [("x", x), ("y", y)]
    counts, edges = _counts("histogram2d", named, chosen, range, density, weights)
    return counts, edges[0], edges[1]


def histogramdd(
    x: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[ndarray, tuple[ndarray, ...]]:
    """How many points of any dimension are in each cell of a grid.

    Args:
        x: points as rows, or a sequence of vectors of coordinates.
        bins: as of :func:`histogram2d`, for each dimension.
        range: as of :func:`histogram2d`, for each dimension.
        density: as of :func:`histogram2d`.
        weights: as of :func:`histogram2d`.

    Returns:
        The counts, and a tuple of edges.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the arguments do not fit each other, or edges do not increase.

    Example:
        >>> import dparray as dp
        >>> counts, edges = dp.histogramdd(dp.asarray([[0.0, 0.0], [1.0, 1.0]]), bins=2)
        >>> counts.asnumpy()
        array([[1., 0.],
               [0., 1.]])
    """
    if isinstance(x, list | tuple):
        named = [
            (f"x[{at}]", check_array("histogramdd", f"x[{at}]", one)) for at, one in enumerate(x)
        ]
    else:
        x = check_array("histogramdd", "x", x)
        x = expand_dims(x, 1) if x.ndim == 1 else x
        named = [("x", x[:, at]) for at in np.arange(x.shape[1])]
    is_listed = isinstance(bins, list | tuple) and len(bins) == len(named)
    chosen = list(bins) if is_listed else [bins] * len(named)
    return _counts("histogramdd", named, chosen, range, density, weights)


def _counts(
    function: str,
    coordinates: list[tuple[str, ndarray]],
    bins: list[Any],
    limits: Any,
    density: bool,
    weights: Any,
) -> tuple[ndarray, tuple[ndarray, ...]]:
    """A histogram of points: the cell of each by its coordinates, and one count of all cells."""
    named = list(coordinates)
    if weights is not None:
        named.append(("weights", _vector(function, coordinates[0][1], "weights", weights)))
    placement = common_placement(function, named)
    columns = [_with_usm_type(column, placement) for _, column in coordinates]
    ranges = [None] * len(columns) if limits is None else list(limits)
    if len(ranges) != len(columns):
        raise ShapeError(f"{function}: {len(ranges)} ranges for {len(columns)} dimensions")
    edges = tuple(
        histogram_bin_edges(column, one, limit)
        for column, one, limit in zip(columns, bins, ranges, strict=True)
    )
    shape = tuple(edge.size - 1 for edge in edges)
    cell: Any = None
    inside: Any = None
    for column, edge, extent in zip(columns, edges, shape, strict=True):
        place = apply(OPS["subtract"], digitize(column, edge), 1)
        # The last cell has its right edge.
        place = choose_elements(function, apply(OPS["equal"], column, edge[-1]), extent - 1, place)
        fits = apply(
            OPS["logical_and"],
            apply(OPS["greater_equal"], place, 0),
            apply(OPS["less"], place, extent),
        )
        if cell is None:
            cell, inside = place, fits
        else:
            cell = apply(OPS["add"], apply(OPS["multiply"], cell, extent), place)
            inside = apply(OPS["logical_and"], inside, fits)
    # Points outside are counted in a cell behind the last one.
    total = math.prod(shape)
    cell = choose_elements(function, inside, cell, total)
    amounts = None if weights is None else named[-1][1]
    flat = bincount(cell, amounts, minlength=total + 1)[:total]
    dtype = _dtypes.default_float(placement.queue.sycl_device)
    counts = reshape(astype_array(flat, dtype), shape)
    if density:
        for axis, edge in enumerate(edges):
            width = edge[1:] - edge[:-1]
            counts = counts / reshape(width, (-1,) + (1,) * (len(edges) - axis - 1))
        counts = counts / sum_of(flat)
    return counts, edges


def _with_usm_type(x: ndarray, placement: Placement) -> ndarray:
    """The array, or a copy of it in memory of the common USM type."""
    if x.usm_type == placement.usm_type:
        return x
    copied = empty_on(placement, x.shape, x.dtype)
    copied[...] = x
    return copied


def histogram_bin_edges(x: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> ndarray:
    """The edges that :func:`histogram` takes; weights have no influence on them.

    Example:
        >>> import dparray as dp
        >>> dp.histogram_bin_edges(dp.asarray([1.0, 4.0]), bins=3).asnumpy()
        array([1., 2., 3., 4.])
    """
    x = check_array("histogram_bin_edges", "x", x)
    named = [("x", x)]
    if isinstance(bins, ndarray | list | tuple):
        named.append(("bins", _vector("histogram_bin_edges", x, "bins", bins)))
    return call_either(
        "histogram_bin_edges",
        lambda xp, values, *edges: xp.histogram_bin_edges(
            values, bins=edges[0] if edges else bins, range=range
        ),
        named,
    )


def digitize(x: Any, bins: Any, right: bool = False) -> ndarray:
    """In which of the bins with the given edges each element is.

    Args:
        x: an array.
        bins: a vector of edges that increase or decrease.
        right: the right edge belongs to the bin.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: ``bins`` is no vector, or is not monotonic.

    Example:
        >>> import dparray as dp
        >>> dp.digitize(dp.asarray([0.5, 1.5]), dp.asarray([0.0, 1.0, 2.0])).asnumpy()
        array([1, 2])
    """
    x = check_array("digitize", "x", x)
    edges = _vector("digitize", x, "bins", bins)
    return call_either(
        "digitize",
        lambda xp, values, at: xp.digitize(values, at, right=right),
        (("x", x), ("bins", edges)),
    )


def interp(
    x: Any,
    xp: Any,
    fp: Any,
    left: float | None = None,
    right: float | None = None,
    period: float | None = None,
) -> ndarray:
    """The values at ``x`` of the function that joins the points (``xp``, ``fp``) by lines.

    Args:
        x: an array of places.
        xp: an increasing vector of places.
        fp: the values there.
        left: the value left of ``xp[0]``; ``fp[0]`` if not given.
        right: the value right of ``xp[-1]``; ``fp[-1]`` if not given.
        period: of the places, which then need not increase.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: ``xp`` and ``fp`` differ in length.

    Example:
        >>> import dparray as dp
        >>> dp.interp(dp.asarray([0.5]), dp.asarray([0.0, 1.0]), dp.asarray([2.0, 4.0])).asnumpy()
        array([3.])
    """
    x = check_array("interp", "x", x)
    named = (
        ("x", x),
        ("xp", _vector("interp", x, "xp", xp)),
        ("fp", _vector("interp", x, "fp", fp)),
    )
    return call_either(
        "interp",
        lambda module, *arrays: module.interp(*arrays, left=left, right=right, period=period),
        named,
    )


# -- covariance -----------------------------------------------------------------------------------


def cov(
    x: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> ndarray:
    """The covariance matrix of variables.

    Args:
        x: a matrix of one variable in each row, or a vector.
        y: further variables, of the same form.
        rowvar: false if each column is a variable.
        bias: divide by the number of observations instead of one less.
        ddof: what is taken from the number of observations in the divisor; overrides ``bias``.
        fweights: how often each observation was made: a vector of integers.
        aweights: how much each observation counts: a vector.
        dtype: the dtype to compute in; double precision, where the device has it, if not given.

    Raises:
        ArgumentError: a weight is negative.
        DTypeError: ``fweights`` are no integers.
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: ``x`` has more than two dimensions, or the weights do not fit.

    Example:
        >>> import dparray as dp
        >>> dp.cov(dp.asarray([[1.0, 3.0], [2.0, 6.0]])).asnumpy()
        array([[2., 4.],
               [4., 8.]])
    """
    given = (("fweights", fweights), ("aweights", aweights))
    variables, weights = _variables("cov", x, y, rowvar, dtype, given)
    return _covariance(variables, weights, (0 if bias else 1) if ddof is None else ddof)


def _covariance(variables: ndarray, weights: dict[str, ndarray], ddof: float) -> ndarray:
    """The covariance matrix of rows, whose columns may have weights."""
    together: Any = None
    for each in weights.values():
        together = each if together is None else together * each
    count: Any = float(variables.shape[1])
    if together is not None:
        count = float(sum_of(together))
        if ddof and "aweights" in weights:
            ddof = ddof * float(sum_of(together * weights["aweights"])) / count
        together = astype_array(together, _real(variables.dtype))
    centred = variables - average(variables, 1, together, keepdims=True)
    turned = (centred if together is None else centred * together).T
    if turned.dtype.kind == "c":
        turned = apply(OPS["conj"], turned)
    products = apply(OPS["divide"], matmul(centred, turned), max(count - ddof, 0.0))
    return products[0, 0] if products.shape == (1, 1) else products


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts of complex numbers; that of real ones itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _variables(
    function: str,
    x: Any,
    y: Any,
    rowvar: bool,
    dtype: Any,
    weights: Sequence[tuple[str, Any]] = (),
) -> tuple[ndarray, dict[str, ndarray]]:
    """The variables as rows of one matrix, and those weights of their columns that are given."""
    named = [("x", check_array(function, "x", x))]
    if y is not None:
        named.append(("y", check_array(function, "y", y)))
    weighing = {
        name: _vector(function, named[0][1], name, value)
        for name, value in weights
        if value is not None
    }
    placement = common_placement(function, [*named, *weighing.items()])
    rows = []
    for name, values in named:
        if values.ndim > 2:
            raise ShapeError(f"{function}: {name} has {values.ndim} dimensions; give 1 or 2")
        matrix = reshape(values, (1, -1)) if values.ndim < 2 else values
        rows.append(matrix if rowvar or values.ndim < 2 else matrix.T)
    if len({matrix.shape[1] for matrix in rows}) != 1:
        raise ShapeError(f"{function}: x and y have different numbers of observations")
    for name, values in weighing.items():
        if values.shape != rows[0].shape[1:]:
            raise ShapeError(
                f"{function}: {name} of shape {values.shape} for {rows[0].shape[1]} observations"
            )
        if name == "fweights" and values.dtype.kind not in "iu":
            raise DTypeError(f"{function}: fweights must be integers, not {values.dtype}")
        if bool(any_of(apply(OPS["less"], values, 0))):
            raise ArgumentError(f"{function}: {name} must not be negative")
    if dtype is None:
        loop = _dtypes.promote([*(matrix.dtype for matrix in rows), np.dtype("float64")])
        loop = _dtypes.fit_device(loop, placement.queue.sycl_device)
    else:
        loop = _dtypes.check_device(_dtypes.as_dtype(dtype), placement.queue.sycl_device)
    shape = (sum(matrix.shape[0] for matrix in rows), rows[0].shape[1])
    result = empty_on(placement, shape, loop)
    start = 0
    for matrix in rows:
        result[start : start + matrix.shape[0]] = matrix
        start += matrix.shape[0]
    return result, weighing


def corrcoef(
    x: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: Any = None,
    ddof: Any = None,
    *,
    dtype: Any = None,
) -> ndarray:
    """The correlation coefficients of variables; arguments and errors as of :func:`cov`.

    ``bias`` and ``ddof`` have no effect on them.

    Example:
        >>> import dparray as dp
        >>> dp.corrcoef(dp.asarray([[1.0, 3.0], [2.0, 6.0]])).asnumpy()
        array([[1., 1.],
               [1., 1.]])
    """
    products = _covariance(*_variables("corrcoef", x, y, rowvar, dtype), 1)
    if products.ndim == 0:
        return apply(OPS["divide"], products, products)
    spread = apply(OPS["sqrt"], products.diagonal().real)
    scaled = apply(OPS["divide"], products, expand_dims(spread, 1))
    scaled = apply(OPS["divide"], scaled, expand_dims(spread, 0))
    if scaled.dtype.kind == "c":
        return scaled
    return apply(OPS["minimum"], apply(OPS["maximum"], scaled, -1), 1)
