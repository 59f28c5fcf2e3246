"""Functions that are composed of others: sorting, statistics, sums along an axis, polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dparray._layout import at_axis
from dparray.exceptions import GradientError
from dparray.gradients.calls import COMPOSED, apply, is_array
from dparray.gradients.elementwise import compose, function_of
from dparray.gradients.public import dp
from dparray.gradients.rows import Linear, Pulled, axes_of, with_axes
from dparray.gradients.tape import conjugate
from dparray.gradients.traced import constants


def _dropped(x: Any, axes: Any, keepdims: bool) -> Any:
    """Return a result without the reduced axes, unless they are kept."""
    return x if keepdims or not axes else dp.squeeze(x, axis=tuple(axes))


def _count(x: Any, axis: Any) -> int:
    return math.prod(x.shape[a] for a in axes_of(axis, x.ndim))


def logsumexp(x: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    """Return the logarithm of the sum of exponentials."""
    top = dp.max(constants(x), axis=axis, keepdims=True)
    top = dp.where(dp.isfinite(top), top, 0)
    e = dp.exp(x - top)
    made = dp.log(dp.sum(e if b is None else b * e, axis=axis, keepdims=True)) + top
    return _dropped(made, axes_of(axis, x.ndim), keepdims)


def _softmax(x: Any, axis: Any = None) -> Any:
    e = dp.exp(x - dp.max(constants(x), axis=axis, keepdims=True))
    return e / dp.sum(e, axis=axis, keepdims=True)


def _log_softmax(x: Any, axis: Any = None) -> Any:
    return x - logsumexp(x, axis=axis, keepdims=True)


def sort(x: Any, /, axis: Any = -1, *, descending: bool = False, **_: Any) -> Any:
    """Sort by the positions of the values."""
    if axis is None:
        x, axis = dp.reshape(x, (-1,)), 0
    order = dp.argsort(constants(x), axis=axis, stable=True)
    made = dp.take_along_axis(x, order, axis=axis)
    return dp.flip(made, axis=axis) if descending else made


def _partition(x: Any, kth: Any, axis: Any = -1, **_: Any) -> Any:
    if axis is None:
        x, axis = dp.reshape(x, (-1,)), 0
    return dp.take_along_axis(x, dp.argpartition(constants(x), kth, axis=axis), axis=axis)


def _lines(x: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """Return the reduced axes as one last axis, and the axes."""
    axes = axes_of(axis, x.ndim)
    left = [k for k in range(x.ndim) if k not in axes]
    moved = dp.permute_dims(x, (*left, *axes))
    return dp.reshape(moved, (*[x.shape[k] for k in left], -1)), axes


def _quantile(scale: float) -> Callable[..., Any]:
    def quantile(
        x: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
    ) -> Any:
        if method != "linear" or (is_array(q) and constants(q) is not q):
            raise GradientError(
                "quantile: has a derivative by its values, with method='linear' only"
            )
        lines, axes = _lines(x, axis)
        ordered = sort(lines)
        values = np.asarray(q.asnumpy() if is_array(q) else q, float) / scale
        at = np.atleast_1d(values) * (ordered.shape[-1] - 1)
        parts = []
        for place in at.ravel():
            low = math.floor(place)
            part, high = place - low, min(low + 1, ordered.shape[-1] - 1)
            parts.append(ordered[..., low] * (1 - part) + ordered[..., high] * part)
        parts = [with_axes(part, axes, x.shape, not keepdims) for part in parts]
        if not values.ndim:
            return parts[0]
        return dp.reshape(dp.stack(parts), (*values.shape, *parts[0].shape))

    return quantile


def _median(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
    return _quantile(1.0)(x, 0.5, axis, keepdims=keepdims)


def _clip(x: Any, *args: Any, **options: Any) -> Any:
    low, high = (*args, None, None)[:2]
    low = options.get("min", options.get("a_min", low))
    high = options.get("max", options.get("a_max", high))
    x = x if low is None else dp.maximum(x, low)
    return x if high is None else dp.minimum(x, high)


def _without_nan(name: str, fill: float) -> Callable[..., Any]:
    def reduced(x: Any, *args: Any, **options: Any) -> Any:
        is_nan = dp.isnan(constants(x))
        made = getattr(dp, name)(dp.where(is_nan, fill, x), *args, **options)
        if name in ("max", "min"):  # of NaN alone
            axis = options.get("axis", args[0] if args else None)
            keepdims = options.get("keepdims", False)
            made = dp.where(dp.all(is_nan, axis=axis, keepdims=keepdims), np.nan, made)
        return made

    return reduced


def _interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    if period is not None:
        raise GradientError("interp: period= has no derivative; extend xp and fp instead")
    x, xp, fp = (v if is_array(v) else dp.asarray(v) for v in (x, xp, fp))
    last = xp.shape[0] - 1
    at = dp.searchsorted(constants(xp), dp.reshape(constants(x), (-1,)), side="right") - 1
    at = dp.reshape(dp.clip(at, 0, last - 1), x.shape)
    x0, x1, f0, f1 = xp[at], xp[at + 1], fp[at], fp[at + 1]
    made = f0 + (f1 - f0) * ((x - x0) / (x1 - x0))
    made = dp.where(constants(x) < constants(xp)[0], fp[0] if left is None else left, made)
    return dp.where(constants(x) > constants(xp)[-1], fp[-1] if right is None else right, made)


def _polyfit(x: Any, y: Any, deg: int, **options: Any) -> Any:
    if options:
        raise GradientError(f"polyfit: {', '.join(options)}= has no derivative")
    return dp.linalg.lstsq(_vander(x, deg + 1), y)[0]


def _vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    count = x.shape[0] if N is None else N
    columns = [dp.ones_like(constants(x))]
    for _ in range(count - 1):
        columns.append(columns[-1] * x)
    return dp.stack(columns if increasing else columns[::-1], axis=1)


def _gradient(f: Any, *steps: Any, axis: Any = None, edge_order: int = 1) -> Any:
    axes = axes_of(axis, f.ndim)
    steps = steps * len(axes) if len(steps) == 1 else steps or (1.0,) * len(axes)
    if any(not isinstance(step, int | float) for step in steps) or edge_order != 1:
        raise GradientError("gradient: has a derivative with equal steps and edge_order=1 only")
    made = []
    for line, step in zip(axes, steps, strict=True):

        def part(start: Any, stop: Any, line: int = line) -> Any:
            return f[at_axis(line, slice(start, stop))]

        first = (part(1, 2) - part(0, 1)) / step
        inner = (part(2, None) - part(None, -2)) / (2 * step)
        last = (part(-1, None) - part(-2, -1)) / step
        made.append(dp.concatenate([first, inner, last], axis=line))
    return made[0] if len(made) == 1 else made


# -- sums and products along an axis --------------------------------------------------------------


def _of_cumsum(g: Any, x: Any, axis: Any = None, **_: Any) -> Any:
    dp.eval(g)  # A view of a pending array leaves the array pending, and its operands in memory.
    flat, line = (dp.reshape(g, (x.size,)), 0) if axis is None else (g, axis)
    back = dp.flip(dp.cumsum(dp.flip(flat, axis=line), axis=line), axis=line)
    return dp.reshape(back, x.shape)


def _shifted(x: Any, axis: int, count: int, fill: float) -> Any:
    """Return the elements ``count`` further along an axis, filled up at the end."""
    tail = dp.full_like(constants(x)[at_axis(axis, slice(0, count))], fill)
    return dp.concatenate([x[at_axis(axis, slice(count, None))], tail], axis=axis)


def _pull_cumprod(place: int, g: Any, r: Any, x: Any, axis: Any = None, **_: Any) -> Any:
    """Return the cotangent of a product along an axis, without a division.

    ``h[j] = g[j] + x[j + 1] * h[j + 1]`` is computed in a number of steps that is the logarithm of
    the length, so that it is right where elements are zero.
    """
    flat, line = (dp.reshape(x, (x.size,)), 0) if axis is None else (x, axis % x.ndim)
    h = dp.reshape(g, flat.shape)
    factors = _shifted(conjugate(flat), line, 1, 0.0)
    count = 1
    while count < flat.shape[line]:
        h = h + factors * _shifted(h, line, count, 0.0)
        factors = factors * _shifted(factors, line, count, 0.0)
        count *= 2
    before = conjugate(dp.cumprod(flat, axis=line))[at_axis(line, slice(None, -1))]
    ones = dp.ones_like(constants(flat)[at_axis(line, slice(0, 1))])
    return dp.reshape(h * dp.concatenate([ones, before], axis=line), x.shape)


def _cumulative(name: str, start: float) -> Callable[..., Any]:
    def cumulative(
        x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
    ) -> Any:
        x = x if dtype is None else dp.astype(x, dtype)
        line = 0 if axis is None else axis % x.ndim
        made = getattr(dp, name)(x, axis=line)
        if include_initial:
            first = dp.full_like(constants(made)[at_axis(line, slice(0, 1))], start)
            made = dp.concatenate([first, made], axis=line)
        return made

    return cumulative


def _cumulative_logsumexp(x: Any, /, *, axis: Any = None, **options: Any) -> Any:
    if any(options.values()):
        raise GradientError("cumulative_logsumexp: has a derivative with axis= only")
    line = 0 if axis is None else axis % x.ndim
    top = dp.max(constants(x), axis=line, keepdims=True)
    return dp.log(dp.cumsum(dp.exp(x - top), axis=line)) + top


def _cum_row(name: str) -> Any:
    """Return a sum or product along an axis, in another dtype if one is requested."""

    def cumulative(x: Any, axis: Any = None, dtype: Any = None) -> Any:
        x = x if dtype is None else dp.astype(x, dtype)
        return apply(_ALONG[name], (x,), {"axis": axis})

    return cumulative


_ALONG = {
    "cumsum": Linear("cumsum", dp.cumsum, _of_cumsum),
    "cumprod": Pulled("cumprod", dp.cumprod, _pull_cumprod),
}


def _unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    if discont is not None:
        raise GradientError("unwrap: discont= has no derivative")
    values = constants(p)
    return p + (dp.unwrap(values, axis=axis, period=period) - values)


def _modf(x: Any) -> Any:
    whole = dp.trunc(constants(x))
    return x - whole, whole


def _frexp(x: Any) -> Any:
    _, exponent = dp.frexp(constants(x))
    return x * dp.exp2(-dp.astype(exponent, x.dtype)), exponent


def _method(reduction: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``reduce`` or ``accumulate`` of a ufunc, from the function that does the same."""

    def along(x: Any, /, axis: Any = 0, dtype: Any = None, **options: Any) -> Any:
        return reduction(x, axis=axis, **options, **({} if dtype is None else {"dtype": dtype}))

    return along


def _outer(function: Callable[..., Any]) -> Callable[..., Any]:
    def outer(x1: Any, x2: Any, /) -> Any:
        key = (..., *(None,) * getattr(x2, "ndim", 0))
        return function(x1[key] if is_array(x1) else x1, x2)

    return outer


#: Methods of ufuncs and the functions that do the same.
_METHODS = {
    "reduce": "add sum, multiply prod, maximum max, minimum min, fmax nanmax, fmin nanmin, "
    "logaddexp logsumexp, logical_and all, logical_or any",
    "accumulate": "add cumsum, multiply cumprod, logaddexp cumulative_logsumexp",
}


def _enter() -> None:
    for method, pairs in _METHODS.items():
        for ufunc, name in map(str.split, pairs.split(",")):
            COMPOSED[getattr(getattr(dp, ufunc), method)] = _method(getattr(dp, name))
    for function in map(function_of, dp.__all__):
        if hasattr(function, "outer"):
            COMPOSED[function.outer] = _outer(function)
    compose(
        globals(),
        "special.softmax special.log_softmax partition median clip interp polyfit vander gradient "
        "cumulative_logsumexp unwrap modf frexp",
    )
    composed: dict[str, Any] = {
        "logsumexp": logsumexp,
        "special.logsumexp": logsumexp,
        "sort": sort,
        "std": lambda x, /, *args, **options: dp.sqrt(dp.var(x, *args, **options)),
        "divmod": lambda x, y: (dp.floor_divide(x, y), dp.remainder(x, y)),
        "quantile": _quantile(1.0),
        "percentile": _quantile(100.0),
        "nansum": _without_nan("sum", 0.0),
        "nanprod": _without_nan("prod", 1.0),
        "nanmax": _without_nan("max", -np.inf),
        "nanmin": _without_nan("min", np.inf),
        "cumsum": _cum_row("cumsum"),
        "cumprod": _cum_row("cumprod"),
        "cumulative_sum": _cumulative("cumsum", 0.0),
        "cumulative_prod": _cumulative("cumprod", 1.0),
        "nancumsum": _without_nan("cumsum", 0.0),
        "nancumprod": _without_nan("cumprod", 1.0),
    }
    COMPOSED.update({function_of(name): function for name, function in composed.items()})


_enter()
