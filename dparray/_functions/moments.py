"""Means, variances and averages."""

from __future__ import annotations

import builtins
from math import prod as product
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dparray import _dtypes
from dparray._array.apply import astype_array, choose_elements, ops
from dparray._array.assignment import write_out
from dparray._array.ndarray import as_method, ndarray
from dparray._array.operands import check_array, scalar_value
from dparray._driver import traits_of
from dparray._evaluate.host import deviation_by, variance_by
from dparray._functions.creation import full_like
from dparray._functions.operands import vector_of
from dparray._functions.public import public
from dparray._functions.reductions import (
    Axis,
    axes_of,
    count_nonzero,
    float_of,
    folding,
    mask_of,
    reduce_over,
    sum,
)
from dparray._graph.reductions import REDUCTIONS
from dparray._placement import common_placement
from dparray.exceptions import ArgumentError, ShapeError

__all__ = [
    "average",
    "mean",
    "std",
    "var",
]


def _loop_dtype_of(x: ndarray, dtype: Any, out: ndarray | None) -> np.dtype[Any]:
    """Return the dtype of a result; float16 values stay in float32 until they go to ``out``."""
    loop_dtype = float_of(x, dtype)
    if out is not None and dtype is None and loop_dtype == _dtypes.float16:
        return _dtypes.float32
    return loop_dtype


def _mean_in(
    x: ndarray,
    loop_dtype: np.dtype[Any],
    axes: tuple[int, ...],
    keepdims: bool,
    mask: ndarray | None = None,
) -> ndarray:
    """Compute the mean in ``loop_dtype``; float16 is summed in float32."""
    wide = _dtypes.float32 if loop_dtype == _dtypes.float16 else loop_dtype
    if mask is not None:
        total = sum(
            choose_elements("mean", mask, astype_array(x, wide, copy=False), 0),
            axes,
            wide,
            None,
            keepdims,
        )
        number = astype_array(count_nonzero(mask, axes, keepdims=keepdims), _dtypes.real_of(wide))
        return astype_array(total / number, loop_dtype, copy=False)
    count = float(product(x.shape[axis] for axis in axes))
    narrow = astype_array(x, wide, copy=False) if x.dtype == _dtypes.float16 else x
    result = reduce_over("mean", narrow, axes, wide, None, keepdims, count)
    return astype_array(result, loop_dtype, copy=False)


@as_method
@folding("mean")
def mean(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> ndarray:
    """Return the arithmetic mean over axes; NaN if there are no elements.

    Args:
        a: an array.
        axis: an axis or a tuple of axes; all of them if ``None``.
        dtype: the dtype to compute in; for integers the device's default float.
        out: an array to write the result to.
        keepdims: whether to keep the reduced axes, with length 1.
        where: a mask that broadcasts to ``a``; other elements are ignored.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> float(dp.mean(dp.asarray([1, 2, 6])))
        3.0
    """
    mask = None if where is True else mask_of("mean", a, where, out)
    loop_dtype = _loop_dtype_of(a, dtype, out)
    result = _mean_in(a, loop_dtype, axes_of("mean", a, axis), keepdims, mask)
    return write_out("mean", result, out)


def _small_variance(values: Any, axis: Axis, keepdims: bool, ddof: Any, correction: Any) -> Any:
    return variance_by(taken_off("var", ddof, correction))(values, axis, keepdims)


def _small_deviation(values: Any, axis: Axis, keepdims: bool, ddof: Any, correction: Any) -> Any:
    return deviation_by(taken_off("std", ddof, correction))(values, axis, keepdims)


@as_method
@public(
    small=_small_variance,
    takes=("axis", "keepdims", "ddof", "correction"),
    operation=REDUCTIONS["var"],
)
def var(
    a: Any,
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
    """Return the variance over axes: the mean of the squared deviations from the mean.

    Real elements are read once, by the shifted sums of T. Chan, G. Golub and R. LeVeque
    ("Algorithms for computing the sample variance", 1983). A mean that is large compared with the
    deviations therefore costs no precision, and equal elements give exactly 0.

    Args:
        a: an array.
        axis: an axis or a tuple of axes; all of them if ``None``.
        dtype: the dtype to compute in; for integers the device's default float.
        out: an array to write the result to.
        ddof: the number subtracted from the number of elements in the divisor.
        keepdims: whether to keep the reduced axes, with length 1.
        where: a mask that broadcasts to ``a``; other elements are ignored.
        mean: the mean, if known, with the reduced axes kept.
        correction: the Array API's name for ``ddof``.

    Returns:
        A real array on the queue of ``a``; NaN if there are at most ``ddof`` elements.

    Raises:
        ArgumentError: ``ddof`` is not a number, or ``correction`` is given too.
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> float(dp.var(dp.asarray([1.0, 2.0, 3.0]), correction=1))
        1.0
    """
    less = taken_off("var", ddof, correction)
    loop_dtype = _loop_dtype_of(a, dtype, out)
    variance = _variance("var", a, axis, loop_dtype, less, keepdims, where, mean)
    if dtype is not None and _dtypes.as_dtype(dtype).kind == "c":
        variance = astype_array(variance, _dtypes.as_dtype(dtype))
    return write_out("var", variance, out)


def _variance(
    name: str,
    x: ndarray,
    axis: Axis,
    loop_dtype: np.dtype[Any],
    ddof: float,
    keepdims: bool,
    where: Any,
    known_mean: ndarray | None,
) -> ndarray:
    axes = axes_of(name, x, axis)
    wide = _dtypes.float32 if loop_dtype == _dtypes.float16 else loop_dtype
    mask = None if where is True else mask_of(name, x, where, None)
    taken = _degrees_of_freedom(name, ddof)
    x = astype_array(x, wide, copy=False)
    count = builtins.max(float(product(x.shape[axis] for axis in axes) - taken), 0.0)
    if mask is None and known_mean is None and wide.kind == "f" and (axes or not x.ndim):
        result = reduce_over("var", x, axes, wide, None, keepdims, count)
        return astype_array(result, loop_dtype, copy=False)
    if known_mean is None:
        known_mean = _mean_in(x, wide, axes, True, mask)
    else:
        common_placement(name, (("a", x), ("mean", check_array(name, "mean", known_mean))))
    distance = x - known_mean
    if wide.kind == "c":
        distance = ops.abs(distance)
    squares = ops.square(distance)
    divisor: Any
    if mask is None:
        total = sum(squares, axes, None, None, keepdims)
        divisor = count
    else:
        total = sum(choose_elements(name, mask, squares, 0), axes, None, None, keepdims)
        number = count_nonzero(mask, axes, keepdims=keepdims) - taken
        divisor = astype_array(ops.maximum(number, 0), total.dtype)
    result = total / divisor
    return astype_array(result, _dtypes.float16, False) if loop_dtype == _dtypes.float16 else result


def taken_off(function: str, ddof: Any, correction: Any) -> Any:
    """Return the degrees of freedom correction, given by either name."""
    if correction is None:
        return scalar_value(ddof)
    if ddof:
        raise ArgumentError(f"{function}: ddof= and correction= are the same; give only one")
    return scalar_value(correction)


def _degrees_of_freedom(name: str, ddof: Any) -> Any:
    """Return ``ddof`` after checking that it is a number."""
    value = scalar_value(ddof)
    if not isinstance(value, int | float):
        raise ArgumentError(f"{name}: ddof must be a number; got {ddof!r}")
    return value


@as_method
@public(small=_small_deviation, takes=("axis", "keepdims", "ddof", "correction"))
def std(
    a: Any,
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
    """Return the standard deviation over axes, `sqrt(var(x))`; see :func:`var`.

    Example:
        >>> float(dp.std(dp.asarray([1.0, 3.0])))
        1.0
    """
    less = taken_off("std", ddof, correction)
    loop_dtype = _loop_dtype_of(a, dtype, out)
    variance = _variance("std", a, axis, loop_dtype, less, keepdims, where, mean)
    return write_out("std", ops.sqrt(variance), out)


@public()
def average(
    x: Any,
    axis: Axis = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Return the average over axes, weighted by ``weights`` if given.

    Args:
        x: an array.
        axis: an axis or a tuple of axes; all of them if ``None``.
        weights: an array or a list of the shape of ``x``, or of the lengths of ``axis``.
        returned: whether to return the sums of the weights too.
        keepdims: whether to keep the reduced axes, with length 1.

    Returns:
        An array on the queue of ``x``, or a tuple with the sums of the weights.

    Raises:
        ExecutionPlacementError: ``x`` and ``weights`` are on different queues.
        ShapeError: the weights have the wrong shape.

    Example:
        >>> float(dp.average(dp.asarray([1.0, 5.0]), weights=dp.asarray([3.0, 1.0])))
        2.0
    """
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        count = x.size // builtins.max(result.size, 1)
        return (result, full_like(result, count, order="C")) if returned else result
    weights = vector_of("average", x, "weights", weights)
    common_placement("average", (("x", x), ("weights", weights)))
    if weights.shape != x.shape:
        axes = axes_of("average", x, axis)
        if axis is None or weights.shape != tuple(x.shape[at] for at in axes):
            raise ShapeError(
                f"average: weights of shape {weights.shape} match neither x of shape {x.shape} "
                f"nor its axis {axis}"
            )
        step = dict(zip(axes, weights.strides, strict=True))
        strides = tuple(step.get(at, 0) for at in range(x.ndim))
        shape = tuple(extent if at in step else 1 for at, extent in enumerate(x.shape))
        weights = weights._view(shape, strides, weights.offset)
    dtype = np.result_type(x.dtype, weights.dtype, *(("f8",) if x.dtype.kind in "biu" else ()))
    dtype = _dtypes.fit_device(dtype, traits_of(x.queue))
    scale = sum(weights, axis, dtype, None, keepdims)
    product_of_both = astype_array(x, dtype, copy=False) * weights
    result = sum(product_of_both, axis, dtype, None, keepdims) / scale
    if not returned:
        return result
    return result, full_like(result, scale, order="C", usm_type=scale.usm_type)
