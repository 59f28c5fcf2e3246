"""Cumulative sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dparray import _layout
from dparray._array.allocation import empty_on
from dparray._array.apply import astype_array
from dparray._array.assignment import write_out
from dparray._array.dispatch import by_name, compute
from dparray._array.ndarray import as_method, ndarray
from dparray._functions.public import public
from dparray._functions.reductions import accumulator_of, check_numeric, float_of
from dparray._placement import placement_of
from dparray.algorithms.tiles import has_scan, scan_axis
from dparray.exceptions import ShapeError

__all__ = [
    "cumprod",
    "cumsum",
    "cumulative_logsumexp",
    "cumulative_prod",
    "cumulative_sum",
]


_CUMULATIVE: dict[np.ufunc, Callable[..., Any]] = {
    np.add: by_name("cumulative_sum"),
    np.multiply: by_name("cumulative_prod"),
    np.logaddexp: by_name("cumulative_logsumexp"),
}


def _cumulate(
    name: str,
    ufunc: np.ufunc,
    x: ndarray,
    axis: int | None,
    loop_dtype: np.dtype[Any],
    out: ndarray | None,
    include_initial: bool,
) -> ndarray:
    if axis is None:
        if x.ndim != 1:
            raise ShapeError(
                f"{name}: axis= is required for {x.ndim} dimensions; give it, "
                f"or flatten it with x.reshape(-1)"
            )
        axis = 0
    axis = _layout.normalize_axis(name, axis, x.ndim)
    if x.dtype.kind == "f" and loop_dtype.kind in "iu":
        x = astype_array(x, loop_dtype)
    shape = list(x.shape)
    shape[axis] += include_initial
    result = empty_on(placement_of(x), tuple(shape), loop_dtype)
    initial = -np.inf if ufunc.identity is None else ufunc.identity
    first, following = _layout.at_axis(axis, 0), _layout.at_axis(axis, slice(1, None))

    def by_kernel() -> ndarray:
        if include_initial:
            result[first] = initial
        target = result[following] if include_initial else result
        scan_axis(ufunc.__name__, x, target, axis)
        return result

    def by_host(source: np.ndarray, target: np.ndarray) -> None:
        if include_initial:
            target[first] = initial
            target = target[following]
        ufunc.accumulate(source, axis, loop_dtype, out=target)

    def by_library(library: Any, source: Any, target: Any) -> None:
        options = {"axis": axis, "dtype": loop_dtype, "include_initial": include_initial}
        _CUMULATIVE[ufunc](library, source, out=target, **options)

    compute(
        name,
        (("x", x),),
        kernel=by_kernel if has_scan(ufunc.__name__, x, loop_dtype) else None,
        host=by_host,
        library=by_library,
        out=result,
    )
    return write_out(name, result, out, casting="unsafe")


def _is_along_axis(x: ndarray, axis: Any) -> bool:
    return x.ndim > 0 and (axis is not None or x.ndim == 1)


@public(small=np.cumsum, takes=("axis",), when=_is_along_axis)
def cumulative_sum(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    include_initial: bool = False,
) -> ndarray:
    """Return the cumulative sum of the elements along an axis.

    Args:
        x: an array.
        axis: the axis; optional if ``x`` has one dimension.
        dtype: the dtype to add in; by default as in :func:`sum`.
        out: an array to write the result to.
        include_initial: whether to start with the empty sum, so that the axis is one longer.

    Kernels scan large arrays of real numbers (``dparray.kernels.scan``) in another order than
    NumPy. The last digits of floats may therefore differ from NumPy's, but they are reproducible.

    Raises:
        ShapeError: ``axis`` was not given and ``x`` is not one-dimensional.

    Example:
        >>> dp.cumulative_sum(dp.asarray([1, 2, 3]), include_initial=True).asnumpy()
        array([0, 1, 3, 6])
    """
    loop_dtype = accumulator_of(x, dtype)
    return _cumulate("cumulative_sum", np.add, x, axis, loop_dtype, out, include_initial)


@public(small=np.cumprod, takes=("axis",), when=_is_along_axis)
def cumulative_prod(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    include_initial: bool = False,
) -> ndarray:
    """Return the cumulative product along an axis; for arguments see :func:`cumulative_sum`.

    Example:
        >>> dp.cumulative_prod(dp.asarray([2, 3, 4])).asnumpy()
        array([ 2,  6, 24])
    """
    loop_dtype = accumulator_of(x, dtype)
    return _cumulate("cumulative_prod", np.multiply, x, axis, loop_dtype, out, include_initial)


@public()
def cumulative_logsumexp(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    include_initial: bool = False,
) -> ndarray:
    """Return the cumulative log-sum-exp along an axis; for arguments see :func:`cumulative_sum`.

    Example:
        >>> dp.cumulative_logsumexp(dp.asarray([0.0, 0.0])).asnumpy()
        array([0.        , 0.69314718])
    """
    check_numeric("cumulative_logsumexp", x, "biuf")
    loop_dtype = float_of(x, dtype)
    return _cumulate(
        "cumulative_logsumexp", np.logaddexp, x, axis, loop_dtype, out, include_initial
    )


def _flat_or(x: ndarray, axis: int | None) -> tuple[ndarray, int]:
    """Return the flattened array and its axis if ``axis`` is ``None``, as in NumPy."""
    if axis is None:
        return x if x.ndim == 1 else x.reshape(-1), 0
    return x, axis


@as_method
@public(small=np.cumsum, takes=("axis",))
def cumsum(
    x: Any, axis: int | None = None, dtype: DTypeLike | None = None, out: ndarray | None = None
) -> ndarray:
    """Return the cumulative sum; NumPy's name for :func:`cumulative_sum`, flattening by default.

    Example:
        >>> dp.cumsum(dp.asarray([[1, 2], [3, 4]])).asnumpy()
        array([ 1,  3,  6, 10])
    """
    x, axis = _flat_or(x, axis)
    loop_dtype = accumulator_of(x, dtype, out)
    return _cumulate("cumsum", np.add, x, axis, loop_dtype, out, False)


@as_method
@public(small=np.cumprod, takes=("axis",))
def cumprod(
    x: Any, axis: int | None = None, dtype: DTypeLike | None = None, out: ndarray | None = None
) -> ndarray:
    """Return the cumulative product; as :func:`cumulative_prod`, flattening by default.

    Example:
        >>> dp.cumprod(dp.asarray([1, 2, 3])).asnumpy()
        array([1, 2, 6])
    """
    x, axis = _flat_or(x, axis)
    loop_dtype = accumulator_of(x, dtype, out)
    return _cumulate("cumprod", np.multiply, x, axis, loop_dtype, out, False)
