"""Differences, gradients and integrals along axes."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on
from dparray._array.apply import apply, astype_array, copy_of, ops
from dparray._array.assignment import assign
from dparray._array.dispatch import by_name, compute
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_arrays, is_operand, on_queue_of, scalar_value
from dparray._driver import traits_of
from dparray._functions.creation import full
from dparray._functions.cumulative import cumsum
from dparray._functions.elementwise import where
from dparray._functions.joining import concat
from dparray._functions.manipulation import broadcast_to, ravel, reshape
from dparray._functions.operands import vector_of
from dparray._functions.public import public
from dparray._functions.reductions import sum as sum_of
from dparray._graph.ops import OPS
from dparray._placement import Placement, common_placement, placement_of
from dparray.exceptions import DTypeError, ShapeError

__all__ = [
    "diff",
    "ediff1d",
    "gradient",
    "interp",
    "trapezoid",
    "unwrap",
]


def _along(axis: int, start: int | None, stop: int | None) -> tuple[Any, ...]:
    return _layout.at_axis(axis, slice(start, stop))


def _has_few_rounds(x: Any, n: Any, axis: Any) -> bool:
    return type(n) is int and n <= x.size  # NumPy loops n times even when nothing is left.


@public(small=np.diff, takes=("n", "axis"), when=_has_few_rounds)
def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> ndarray:
    """Return the differences of adjacent elements along an axis, repeated ``n`` times.

    Args:
        x: an array.
        n: the number of repetitions.
        axis: the axis.
        prepend: an array or a scalar to put before the elements.
        append: an array or a scalar to put after them.

    Returns:
        An array that is ``n`` shorter along the axis. Booleans give Booleans: whether they differ.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ValueError: ``n`` is negative.

    Example:
        >>> dp.diff(dp.asarray([1, 4, 9])).asnumpy()
        array([3, 5])
    """
    if n < 0:
        raise ValueError(f"diff: n must be at least 0; got {n}")
    if n == 0:
        return x
    axis = _layout.normalize_axis("diff", axis, x.ndim)
    named = [("x", x)]
    for name, value in (("prepend", prepend), ("append", append)):
        if isinstance(value, ndarray):
            named.append((name, value))
    common_placement("diff", named)
    parts = [_edge(x, prepend, axis), x, _edge(x, append, axis)]
    present = [part for part in parts if part is not None]
    if len(present) > 1:
        x = concat(present, axis=axis)
    op = OPS["not_equal"] if x.dtype.kind == "b" else OPS["subtract"]
    for _ in range(min(n, x.shape[axis] + 1)):
        x = apply(op, x[_along(axis, 1, None)], x[_along(axis, None, -1)])
    return x


def _edge(x: ndarray, value: Any, axis: int) -> ndarray | None:
    if value is None:
        return None
    if not is_operand("diff", value):
        dtype = value.dtype if isinstance(value, np.generic) else None
        value = full((), value, dtype=dtype, sycl_queue=x.queue, usm_type=x.usm_type)
    if value.ndim == 0:
        return broadcast_to(value, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    return value


def ediff1d(x: Any, /, to_end: Any = None, to_begin: Any = None) -> ndarray:
    """Return the differences of adjacent elements of the flattened array.

    Args:
        x: an array.
        to_end: an array, a list or a scalar to append.
        to_begin: an array, a list or a scalar to prepend.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> dp.ediff1d(dp.asarray([[1, 4], [9, 16]])).asnumpy()
        array([3, 5, 7])
    """
    named = [("x", x), ("to_end", to_end), ("to_begin", to_begin)]
    given = [each for each in named if each[1] is not None]
    checked = check_arrays("ediff1d", *given)
    parts = {name: ravel(part) for (name, _), part in zip(given, checked, strict=True)}
    steps = diff(parts["x"])
    order = [parts.get("to_begin"), steps, parts.get("to_end")]
    joined = [part for part in order if part is not None]
    return steps if len(joined) == 1 else concat(joined, dtype=steps.dtype)


@public()
def gradient(
    x: Any, /, *spacing: Any, axis: int | Sequence[int] | None = None, edge_order: int = 1
) -> Any:
    """Return the gradient along axes: central differences inside, one-sided ones at the edges.

    Args:
        x: an array with at least two elements along each axis.
        *spacing: nothing (distance 1), one scalar for all axes, or a scalar or a vector of
            coordinates for each axis.
        axis: the axes; all of them if ``None``.
        edge_order: 1 or 2, the order of accuracy at the edges.

    Returns:
        An array of the shape of ``x``, or a tuple with one for each axis if there are several.

    Raises:
        DTypeError: ``x`` is Boolean.
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: an axis is too short, or the spacing has the wrong shape.

    Example:
        >>> dp.gradient(dp.asarray([1.0, 4.0, 9.0])).asnumpy()
        array([3., 4., 5.])
    """
    if x.dtype.kind == "b":
        raise DTypeError("gradient: x must not have dtype bool; use x.astype('int8')")
    place = placement_of(x)
    named = [("x", x)]
    distances: list[Any] = []
    for position, distance in enumerate(spacing):
        name = "spacing" if len(spacing) == 1 else f"spacing[{position}]"
        distance = on_queue_of(x, distance)
        if isinstance(distance, list | tuple):
            distance = check_array("gradient", name, distance, place)
        if isinstance(distance, ndarray):
            named.append((name, distance))
        distances.append(scalar_value(distance))
    placement = common_placement("gradient", named)
    axes = (
        tuple(range(x.ndim)) if axis is None else _layout.normalize_axes("gradient", axis, x.ndim)
    )
    if len(distances) == 1:
        distances *= len(axes)
    if distances and len(distances) != len(axes):
        raise ShapeError(f"gradient: {len(distances)} spacings for {len(axes)} axes")
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2; got {edge_order}")
    floating = _dtypes.default_float(traits_of(x.queue))
    if x.dtype.kind not in "fc":
        x = astype_array(x, floating)
    # Differences of unsigned and narrow integers would wrap around.
    distances = [
        astype_array(each, floating)
        if isinstance(each, ndarray) and each.dtype.kind in "biu"
        else each
        for each in distances
    ]
    slopes = [
        _slope(x, at, distances[position] if distances else 1.0, edge_order, placement)
        for position, at in enumerate(axes)
    ]
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


def _slope(x: ndarray, axis: int, spacing: Any, edge_order: int, placement: Placement) -> ndarray:
    extent = x.shape[axis]
    if extent <= edge_order:
        raise ShapeError(
            f"gradient: axis {axis} must have at least {edge_order + 1} elements; it has {extent}"
        )
    result = empty_on(placement, x.shape, x.dtype)
    inner = x[_along(axis, 1, -1)]
    before, after = x[_along(axis, None, -2)], x[_along(axis, 2, None)]
    if isinstance(spacing, ndarray) and spacing.ndim:
        if spacing.shape != (extent,):
            raise ShapeError(
                f"gradient: spacing of shape {spacing.shape} for an axis of {extent} elements"
            )
        steps = diff(reshape(spacing, (extent, *(1,) * (x.ndim - axis - 1))), axis=0)
        left, right = steps[:-1], steps[1:]
        # The terms have NumPy's order: with infinities, an equivalent order gives other results.
        inside = (
            -right / (left * (left + right)) * before
            + (right - left) / (left * right) * inner
            + left / (right * (left + right)) * after
        )
        is_even = (steps == steps[0]).all()
        inside = where(is_even, (after - before) / (2 * steps[0]), inside)
        first, second = steps[0], steps[1] if extent > 2 else steps[0]
        last, last_but_one = steps[-1], steps[-2] if extent > 2 else steps[-1]
    else:
        inside = (after - before) / (2 * spacing)
        first = second = last = last_but_one = spacing
    assign(result[_along(axis, 1, -1)], inside, "gradient")
    at = [x[_layout.at_axis(axis, position)] for position in (0, 1, -2, -1)]
    if edge_order == 1:
        start, end = (at[1] - at[0]) / first, (at[3] - at[2]) / last
    else:
        a, b, c = _one_sided(first, second)
        start = a * at[0] + b * at[1] + c * x[_layout.at_axis(axis, 2)]
        a, b, c = _one_sided(last, last_but_one)
        # The terms are added in memory order, so that the result rounds as NumPy's does.
        end = -c * x[_layout.at_axis(axis, -3)] - b * at[2] - a * at[3]
    result[_layout.at_axis(axis, 0)] = start
    result[_layout.at_axis(axis, -1)] = end
    return result


def _one_sided(near: Any, far: Any) -> tuple[Any, Any, Any]:
    """Return the weights of the first three elements in the second-order slope at the first."""
    if near is far:
        return -1.5 / near, 2.0 / near, -0.5 / near
    whole = near + far
    return -(2.0 * near + far) / (near * whole), whole / (near * far), -near / (far * whole)


@public()
def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> ndarray:
    """Integrate ``y`` along an axis by the trapezoidal rule.

    Args:
        y: an array of values.
        x: the sample points: a vector, or an array of the shape of ``y``.
        dx: the distance between samples if ``x`` is not given.
        axis: the axis.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> float(dp.trapezoid(dp.asarray([1.0, 2.0, 3.0])))
        4.0
    """
    axis = _layout.normalize_axis("trapezoid", axis, y.ndim)
    step: Any = dx
    if x is not None:
        x = vector_of("trapezoid", y, "x", x)
        common_placement("trapezoid", (("y", y), ("x", x)))
        if x.ndim == 1:
            step = reshape(diff(x), (-1, *(1,) * (y.ndim - axis - 1)))
        else:
            step = diff(x, axis=axis)
    pairs = y[_along(axis, 1, None)] + y[_along(axis, None, -1)]
    return sum_of(pairs * step / 2.0, axis)


@public()
def unwrap(
    x: Any, /, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi
) -> ndarray:
    """Unwrap angles: remove jumps above half a period, or above ``discont``, along an axis.

    Integers stay integers if the period is an integer.

    Raises:
        DTypeError: ``x`` is complex.

    Example:
        >>> dp.unwrap(dp.asarray([0.0, 3.0, -3.0])).asnumpy()
        array([0.        , 3.        , 3.28318531])
    """
    if x.dtype.kind not in "biuf":
        raise DTypeError(f"unwrap: not defined for {x.dtype}")
    axis = _layout.normalize_axis("unwrap", axis, x.ndim)
    traits = traits_of(x.queue)
    dtype = _dtypes.fit_device(_dtypes.promote([x.dtype, _dtypes.promotion_key(period)]), traits)
    period = scalar_value(period)
    x = astype_array(x, dtype, copy=False)
    steps = diff(x, axis=axis)
    high: Any = period / 2
    is_ambiguous = True
    if dtype.kind in "biu":
        high, rest = builtins.divmod(period, 2)
        is_ambiguous = rest == 0
    inside = ops.add(steps, high) % period
    wrapped = inside - high
    if is_ambiguous:
        at_edge = ops.logical_and(ops.equal(wrapped, -high), ops.greater(steps, 0))
        wrapped = where(at_edge, high, wrapped)
    largest = period / 2 if discont is None else discont
    is_plain = ops.abs(steps) < largest
    correction = where(is_plain, 0, wrapped - steps)
    result = copy_of(x, "K")
    rest_of = (*(slice(None),) * axis, slice(1, None))
    result[rest_of] = x[rest_of] + cumsum(correction, axis)
    return result


@public(operands=("x", "xp", "fp"), small=np.interp, takes=("left", "right", "period"))
def interp(
    x: Any,
    xp: Any,
    fp: Any,
    left: float | None = None,
    right: float | None = None,
    period: float | None = None,
) -> ndarray:
    """Return the piecewise linear interpolant of the points (``xp``, ``fp``) at ``x``.

    Args:
        x: the points at which to evaluate.
        xp: the sample points, an increasing vector.
        fp: the values at the sample points.
        left: the value to the left of ``xp[0]``. Defaults to ``fp[0]``.
        right: the value to the right of ``xp[-1]``. Defaults to ``fp[-1]``.
        period: the period of the sample points, which then need not increase.

    Raises:
        ShapeError: ``xp`` and ``fp`` differ in length.

    Example:
        >>> dp.interp(dp.asarray([0.5]), dp.asarray([0.0, 1.0]), dp.asarray([2.0, 4.0])).asnumpy()
        array([3.])
    """
    ends = {"left": left, "right": right, "period": period}
    named = (("x", x), ("xp", xp), ("fp", fp))
    return compute("interp", named, host=True, library=partial(by_name("interp"), **ends))
