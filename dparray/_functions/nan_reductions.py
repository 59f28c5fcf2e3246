"""Reductions that ignore NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dparray import _dtypes
from dparray._array.apply import apply, astype_array, choose_elements, ops
from dparray._array.assignment import write_out
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._driver import traits_of
from dparray._functions.cumulative import cumprod, cumsum
from dparray._functions.manipulation import broadcast_to
from dparray._functions.moments import taken_off, var
from dparray._functions.operands import as_mask
from dparray._functions.public import public
from dparray._functions.reductions import all as all_of
from dparray._functions.reductions import any as any_of
from dparray._functions.reductions import argmax, argmin, count_nonzero
from dparray._functions.reductions import max as max_of
from dparray._functions.reductions import min as min_of
from dparray._functions.reductions import prod as prod_of
from dparray._functions.reductions import sum as sum_of
from dparray._functions.statistics import Axis
from dparray._graph.ops import OPS
from dparray._placement import common_placement, placement_of

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]


def _filled(function: str, x: ndarray, value: Any, where: Any = True) -> tuple[ndarray, Any]:
    """Return ``x`` with NaN replaced, and a mask of NaN; integers have none."""
    if isinstance(where, ndarray):
        common_placement(function, (("x", x), ("where", where)))
    if x.dtype.kind not in "fc":
        return x, None
    is_nan = ops.isnan(x)
    return choose_elements("where", is_nan, value, x), is_nan


def _named(function: Callable[..., ndarray], name: str, text: str) -> Callable[..., ndarray]:
    """Return a generated function, made public, with its name and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return public()(function)


_FOLD = """Compute :func:`{of}` with NaN treated as {value}.

    See :func:`{of}` for arguments, result and errors.

    Example:
        >>> dp.{name}(dp.asarray([2.0, dp.nan, 3.0])).asnumpy()
        {result}
    """


def _fold(
    name: str, reduce: Callable[..., ndarray], value: int, result: str
) -> Callable[..., ndarray]:
    """Create a sum or a product that ignores NaN."""

    def function(
        x: Any,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: ndarray | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> ndarray:
        filled = _filled(name, x, value, where)[0]
        return reduce(filled, axis, dtype, out, keepdims, initial, where)

    text = _FOLD.format(name=name, of=name.removeprefix("nan"), value=value, result=result)
    return _named(function, name, text)


def _scan(
    name: str, scan: Callable[..., ndarray], value: int, result: str
) -> Callable[..., ndarray]:
    """Create a cumulative sum or product that ignores NaN."""

    def function(
        x: Any, axis: int | None = None, dtype: DTypeLike | None = None, out: ndarray | None = None
    ) -> ndarray:
        return scan(_filled(name, x, value)[0], axis, dtype, out)

    text = _FOLD.format(name=name, of=name.removeprefix("nan"), value=value, result=result)
    return _named(function, name, text)


_EXTREME = """Compute :func:`{of}` ignoring NaN; the result is NaN if all elements are NaN.

    See :func:`{of}` for arguments, result and errors.

    Example:
        >>> float(dp.{name}(dp.asarray([1.0, dp.nan])))
        1.0
    """


def _extreme_of(name: str, reduce: Callable[..., ndarray], worst: float) -> Callable[..., ndarray]:
    """Create a maximum or minimum that ignores NaN."""

    def function(
        x: Any,
        axis: Axis = None,
        out: ndarray | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> ndarray:
        filled, is_nan = _filled(name, x, worst, where)
        fits = x.dtype.kind == "c" or not np.iscomplexobj(initial)
        if is_nan is None or not (initial is None or (fits and initial != initial)):
            return reduce(filled, axis, out, keepdims, initial, where)
        if initial is None:
            result = reduce(filled, axis, None, keepdims, None, where)
            nothing = all_of(is_nan, axis, None, keepdims)
        else:  # ignored as any NaN, but some lines have no elements now
            result = reduce(filled, axis, None, keepdims, worst, where)
            nothing = all_of(is_nan, axis, None, keepdims, where=where)
        result = choose_elements("where", nothing, math.nan, result)
        if out is None:
            return result
        out[...] = result
        return out

    return _named(function, name, _EXTREME.format(name=name, of=name.removeprefix("nan")))


_POSITION = """Compute :func:`{of}` ignoring NaN; the host waits to check that other elements exist.

    See :func:`{of}` for arguments, result and errors.

    Raises:
        ValueError: all elements are NaN.

    Example:
        >>> int(dp.{name}(dp.asarray([dp.nan, 1.0])))
        1
    """


def _position_of(name: str, find: Callable[..., ndarray], worst: float) -> Callable[..., ndarray]:
    """Create a search for the position of the maximum or minimum that ignores NaN."""

    def function(
        x: Any, axis: int | None = None, out: ndarray | None = None, *, keepdims: bool = False
    ) -> ndarray:
        filled, is_nan = _filled(name, x, worst)
        if is_nan is not None and bool(any_of(all_of(is_nan, axis))):
            raise ValueError(
                f"{name}: all elements along axis {axis} are NaN; use dp.where to replace them"
            )
        return find(filled, axis, out, keepdims=keepdims)

    return _named(function, name, _POSITION.format(name=name, of=name.removeprefix("nan")))


nansum = _fold("nansum", sum_of, 0, "array(5.)")
nanprod = _fold("nanprod", prod_of, 1, "array(6.)")
nancumsum = _scan("nancumsum", cumsum, 0, "array([2., 2., 5.])")
nancumprod = _scan("nancumprod", cumprod, 1, "array([2., 2., 6.])")
nanmax = _extreme_of("nanmax", max_of, -math.inf)
nanmin = _extreme_of("nanmin", min_of, math.inf)
nanargmax = _position_of("nanargmax", argmax, -math.inf)
nanargmin = _position_of("nanargmin", argmin, math.inf)


def _moments(
    function: str, x: ndarray, axis: Axis, dtype: Any, keepdims: bool, where: Any = True
) -> tuple[ndarray, ndarray, ndarray]:
    """Return the values with 0 for NaN and masked elements, a mask, and the counts along axes."""
    if x.dtype.kind not in "fc" and dtype is None:
        dtype = _dtypes.default_float(traits_of(x.queue))
    if dtype is not None:
        x = astype_array(x, _dtypes.as_dtype(dtype), copy=False)
    is_there = ops.logical_not(ops.isnan(x))
    if where is not True:
        mask = as_mask(function, where, placement_of(x))
        common_placement(function, (("x", x), ("where", mask)))
        is_there = ops.logical_and(is_there, broadcast_to(mask, x.shape))
    count = count_nonzero(is_there, axis, keepdims=keepdims)
    return choose_elements("where", is_there, x, 0), is_there, count


def _is_half(x: ndarray, dtype: Any) -> bool:
    """Return whether sums would be float16, which can overflow although the mean does not."""
    wanted = x.dtype if dtype is None else _dtypes.as_dtype(dtype)
    return wanted == _dtypes.float16


def _in_single(x: ndarray) -> ndarray:
    return astype_array(x, _dtypes.float32)


@public()
def nanmean(
    x: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> ndarray:
    """Compute :func:`mean` of the elements that are not NaN.

    Example:
        >>> float(dp.nanmean(dp.asarray([1.0, dp.nan, 3.0])))
        2.0
    """
    if _is_half(x, dtype):
        mean = nanmean(_in_single(x), axis, None, None, keepdims, where=where)
        return write_out("nanmean", astype_array(mean, _dtypes.float16), out)
    values, _, count = _moments("nanmean", x, axis, dtype, keepdims, where)
    total = sum_of(values, axis, None, None, keepdims)
    return apply(OPS["divide"], total, astype_array(count, total.dtype), out=out)


@public()
def nanvar(
    x: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: ndarray | None = None,
    correction: float | None = None,
) -> ndarray:
    """Compute :func:`var` of the elements that are not NaN.

    Example:
        >>> float(dp.nanvar(dp.asarray([1.0, dp.nan, 3.0])))
        1.0
    """
    less = taken_off("nanvar", ddof, correction)
    if x.dtype.kind in "biu":  # with no degrees of freedom infinite if they differ
        return var(x, axis, dtype, out, less, keepdims, where=where, mean=mean)
    if _is_half(x, dtype):
        if isinstance(mean, ndarray):
            mean = _in_single(mean)
        found = nanvar(_in_single(x), axis, None, None, less, keepdims, where=where, mean=mean)
        return write_out("nanvar", astype_array(found, _dtypes.float16), out)
    values, is_there, count = _moments("nanvar", x, axis, dtype, True, where)
    if mean is None:
        total = sum_of(values, axis, None, None, True)
        mean = total / astype_array(count, total.dtype)
    else:
        common_placement("nanvar", (("x", x), ("mean", check_array("nanvar", "mean", mean))))
    distance = ops.abs(values - mean)
    squares = choose_elements("where", is_there, ops.square(distance), 0)
    spread = sum_of(squares, axis, None, None, keepdims)
    number = count_nonzero(is_there, axis, keepdims=keepdims)
    freedom = ops.maximum(ops.subtract(number, less), 0)
    result = spread / astype_array(freedom, spread.dtype)
    # With no degrees of freedom the variance is undefined, even if the elements differ.
    result = choose_elements("nanvar", freedom == 0, math.nan, result)
    return write_out("nanvar", _of_complex(result, dtype), out)


def _of_complex(variance: ndarray, dtype: Any) -> ndarray:
    """Convert a variance to the requested dtype if that is complex."""
    wanted = variance.dtype if dtype is None else _dtypes.as_dtype(dtype)
    return astype_array(variance, wanted) if wanted.kind == "c" else variance


@public()
def nanstd(
    x: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: ndarray | None = None,
    correction: float | None = None,
) -> ndarray:
    """Compute :func:`std` of the elements that are not NaN.

    Example:
        >>> float(dp.nanstd(dp.asarray([1.0, dp.nan, 3.0])))
        1.0
    """
    if isinstance(where, ndarray):
        common_placement("nanstd", (("x", x), ("where", where)))
    return apply(
        OPS["sqrt"],
        nanvar(x, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction),
        out=out,
    )
