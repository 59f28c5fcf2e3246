"""Evenly spaced values."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import DTypeLike

from dparray import _dtypes, _layout
from dparray._array.allocation import (
    chosen_placement,
    empty_on,
    from_host,
    is_made_by_host,
)
from dparray._array.apply import astype_array, choose_elements, ops, with_axes
from dparray._array.assignment import assign
from dparray._array.ndarray import ndarray
from dparray._array.nodes import positions
from dparray._array.operands import check_arrays, checked_scalar, foreign_operand, scalar_value
from dparray._driver import traits_of
from dparray._driver.interface import Queue
from dparray._functions.conversion import asarray, rearranged
from dparray._functions.creation import checked_dtype
from dparray._functions.manipulation import expand_dims, moveaxis, reshape
from dparray._functions.public import public
from dparray._placement import Placement, check_usm_type, common_placement, placement_of
from dparray.exceptions import ArgumentError, DTypeError, ShapeError

__all__ = [
    "arange",
    "geomspace",
    "linspace",
    "logspace",
    "meshgrid",
]


@public(operands=("start",), small=np.arange, mode="create")
def arange(
    start: Any = None,
    stop: Any = None,
    step: Any = 1,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Return evenly spaced values from ``start`` up to but excluding ``stop``.

    A single value is the stop, with a start of 0. See :func:`empty` for placement and errors.

    Example:
        >>> dp.arange(1, 7, 2).asnumpy()
        array([1, 3, 5])
    """
    if stop is None:
        if start is None:
            raise ArgumentError("arange: stop is missing; write dp.arange(stop)")
        start, stop = 0, start
    elif start is None:
        start = 0
    given = tuple(_as_numpy_scalar(value) for value in (start, stop, 1 if step is None else step))
    start, stop, step = (scalar_value(value) for value in given)
    placement = chosen_placement(device, usm_type, sycl_queue)
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        if isinstance(value, complex) or not hasattr(value, "__float__"):
            raise DTypeError(f"arange: {name} must be a real number, not {value!r}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ArgumentError(f"arange: {name} must be finite; got {value}")
    is_unsigned = any(
        isinstance(value, np.uint64 | np.ulonglong)
        or (isinstance(value, int) and 2**63 <= value < 2**64)
        for value in given
    )
    if step == 0:
        raise ValueError("arange: step must not be 0")
    kinds = {type(value) for value in (start, stop, step)}
    # NumPy chooses at least int64, which promotes with uint64 to a float.
    default = _dtypes.default_for_scalar(
        int if kinds <= {int, bool} and not is_unsigned else float, traits_of(placement.queue)
    )
    chosen = checked_dtype(dtype, placement, default)
    if any(isinstance(value, np.floating) for value in given):
        # NumPy scalars round the second value; the step is its difference from the first.
        start, stop, step = (
            value if isinstance(value, np.number) else plain
            for value, plain in zip(given, (start, stop, step), strict=True)
        )
    if kinds <= {int, bool}:
        length = max(0, -((int(start) - int(stop)) // int(step)))
    else:
        length = max(0, int(np.ceil((stop - start) / step)))
    if chosen.kind in "iu":
        for value in (start, start + step)[:length]:  # NumPy also checks the first two
            checked_scalar("arange", value, chosen)
    if is_made_by_host(length, *placement):
        values = np.arange(start, stop, step, dtype=chosen)
        if values.shape == (length,):
            return ndarray._from_host_value(values, *placement)
    return _ramp(placement, length, start, step, chosen)


def _as_numpy_scalar(value: Any) -> Any:
    """Return a 0-d array as the NumPy scalar of its dtype; anything else unchanged."""
    if isinstance(value, ndarray) and value.ndim == 0:
        return value.dtype.type(value.item())
    return value


def _ramp(
    placement: Placement, length: int, start: Any, step: Any, dtype: np.dtype[Any]
) -> ndarray:
    """Compute `start + i * step` as NumPy does: the step is the difference of the first values."""
    with np.errstate(all="ignore"):
        first, second = np.array([start, start + step], dtype)
        wide = np.dtype(np.float32) if dtype == _dtypes.float16 else dtype
        begin, distance = wide.type(first), wide.type(second) - wide.type(first)
    wide = _dtypes.uint8 if dtype.kind == "b" else wide
    values = astype_array(positions(placement, (length,)), wide)
    if distance != 1:
        values = values * distance.item()
    if begin != 0:
        values = values + begin.item()
    return astype_array(values, dtype, copy=False)


def _spaced(count: int, start: float, stop: float) -> np.ndarray:
    return np.linspace(start, stop, count)


@overload
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray: ...
@overload
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> tuple[ndarray, ndarray]: ...
@public(operands=("num", "start", "stop"), small=_spaced, mode="create")
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> Any:
    """Return ``num`` evenly spaced values from ``start`` to ``stop``, included by ``endpoint``.

    Args:
        start: the first value, or an array of first values.
        stop: the end; an array on the queue of ``start``, or a scalar.
        num: the number of values.
        endpoint: whether ``stop`` is the last value.
        retstep: whether to also return the step.
        dtype: defaults to the dtype to which ``start``, ``stop`` and a Python float promote: the
            device's default float for Python scalars and integers.
        axis: the position of the new axis among those of ``start`` and ``stop``.
        device, usm_type, sycl_queue: see :func:`empty`. If none is given, arrays determine the
            placement; otherwise they are copied to it.

    Returns:
        An array, or a tuple of the array and the step, which is also an array.

    Raises:
        DparrayError: any other error of :func:`empty`.

    Example:
        >>> dp.linspace(0, 1, 5).asnumpy()
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    (length,) = _layout.check_shape(num)
    ends = [("start", start), ("stop", stop)]
    arrays = [each for each in ends if isinstance(each[1], ndarray | list | tuple)]
    if arrays:
        start, stop = check_arrays("linspace", *ends)
        placement = common_placement("linspace", (("start", start), ("stop", stop)))
        if device is not None or sycl_queue is not None:
            placement = chosen_placement(device, usm_type, sycl_queue)
        elif usm_type is not None:
            placement = Placement(placement.queue, check_usm_type(usm_type))
        start, stop = (
            rearranged(x, None, None, None, None, *placement[::-1]) for x in (start, stop)
        )
    else:
        placement = chosen_placement(device, usm_type, sycl_queue)
        for name, value in ends:
            if not isinstance(value, bool | int | float | complex | np.generic):
                raise foreign_operand("linspace", name, value)
    real = _dtypes.default_for_scalar(float, traits_of(placement.queue))
    keys = [
        x.dtype if isinstance(given, list | tuple | ndarray) else _dtypes.promotion_key(given)
        for (_, given), x in zip(ends, (start, stop), strict=True)
    ]
    loop_dtype = _dtypes.fit_device(_dtypes.promote([*keys, 0.0]), traits_of(placement.queue))
    chosen = checked_dtype(dtype, placement, loop_dtype)
    if not arrays and is_made_by_host(length, *placement) and chosen.kind in "fc":
        made, step = np.linspace(start, stop, length, endpoint, True, chosen)  # type: ignore[call-overload]
        values = ndarray._from_host_value(made if made.base is None else made.copy(), *placement)
        return (values, _step(step, placement)) if retstep else values
    counted = arange(length, dtype=real, sycl_queue=placement.queue, usm_type=placement.usm_type)
    # Computed as in NumPy, so that the last bits are equal.
    if arrays:
        start, stop = (astype_array(x, loop_dtype, copy=False) for x in (start, stop))
    else:
        start, stop = (loop_dtype.type(x) for x in (start, stop))
    intervals = length - bool(endpoint)
    with np.errstate(all="ignore"):
        distance = stop - start
        step = distance / intervals if intervals > 0 else math.nan
    if arrays:
        counted = counted.reshape((length,) + (1,) * distance.ndim)
    ramp = astype_array(counted, loop_dtype, copy=False)
    values = ramp * (step if intervals > 0 else distance)
    values = values + start
    if endpoint and length > 1:
        is_last = counted == (length - 1)
        last = astype_array(stop, values.dtype, copy=False) if arrays else stop
        values = (
            choose_elements("linspace", is_last, last, values)
            if arrays
            else choose_elements(
                "linspace", is_last, checked_scalar("linspace", last.item(), values.dtype), values
            )
        )
    if chosen.kind in "iu":
        values = ops.floor(values)
    values = astype_array(values, chosen, copy=False)
    if arrays and axis:
        at = _layout.normalize_axis("linspace", axis, values.ndim)
        order = list(range(1, values.ndim))
        values = with_axes(values, [*order[:at], 0, *order[at:]])
    return (values, _step(step, placement)) if retstep else values


def _step(step: Any, placement: Placement) -> ndarray:
    """Return the step as an array."""
    if isinstance(step, ndarray):
        return step
    values = np.asarray(step)
    dtype = _dtypes.fit_device(values.dtype, traits_of(placement.queue))
    return from_host(values.astype(dtype), *placement)


def meshgrid(
    *arrays: Any,
    copy: bool = True,
    sparse: bool = False,
    indexing: str = "xy",
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> tuple[ndarray, ...]:
    """Return coordinate arrays from coordinate vectors.

    Args:
        *arrays: vectors (or scalars) of one dtype.
        copy: ``False`` returns views whose elements share memory.
        sparse: whether each array has length 1 along the other axes.
        indexing: ``"xy"`` (the first vector is along the second axis) or ``"ij"``.
        device, usm_type, sycl_queue: the placement of the results; that of the vectors by default.

    Returns:
        One array for each vector, each with one axis for every vector.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: one of them has more than one dimension.

    Example:
        >>> x, y = dp.meshgrid(dp.asarray([1, 2]), dp.asarray([3, 4]))
        >>> y.asnumpy()
        array([[3, 3],
               [4, 4]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij'; got {indexing!r}")
    if not arrays:
        return ()
    given = [(f"arrays[{position}]", x) for position, x in enumerate(arrays)]
    checked = [
        rearranged(x, None, None, None, device, usm_type, sycl_queue)
        for x in check_arrays("meshgrid", *given)
    ]
    named = [(name, x) for (name, _), x in zip(given, checked, strict=True)]
    placement = common_placement("meshgrid", named)
    for name, x in named:
        if x.ndim > 1:
            raise ShapeError(f"meshgrid: {name} must be a vector; it has {x.ndim} dimensions")
    order = list(range(len(named)))
    if indexing == "xy" and len(named) > 1:
        order[0], order[1] = 1, 0
    shape = tuple(named[at][1].size for at in order)
    results = []
    for position, (_, x) in enumerate(named):
        strides = [0] * len(named)
        own = order.index(position)
        strides[own] = x.strides[0] if x.ndim else x.itemsize
        extents = [1] * len(named) if sparse else list(shape)
        extents[own] = x.size
        view = x._view(tuple(extents), tuple(strides), x.offset)
        if not copy:
            results.append(view)
            continue
        result = empty_on(placement, view.shape, x.dtype)
        assign(result, view, "meshgrid")
        results.append(result)
    return tuple(results)


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    **place: Any,
) -> ndarray:
    """Return powers of ``base`` with evenly spaced exponents; see :func:`linspace`.

    An array of bases broadcasts with the ends; each has its own powers along ``axis``. Like the
    ends, it determines the placement, or is copied to an explicit one.

    Example:
        >>> dp.logspace(0, 2, 3).asnumpy()
        array([  1.,  10., 100.])
    """
    is_array = isinstance(base, ndarray | list | tuple) or getattr(base, "shape", None)
    if is_array:
        start, stop, base = check_arrays(
            "logspace", ("start", start), ("stop", stop), ("base", base)
        )
        ndim = max(start.ndim, stop.ndim, base.ndim)
        start, stop, base = (
            reshape(x, (1,) * (ndim - x.ndim) + x.shape) for x in (start, stop, base)
        )
        base = expand_dims(base, axis)
    exponents = linspace(start, stop, num, endpoint=endpoint, axis=axis, **place)
    if is_array:
        at = placement_of(exponents)
        base = rearranged(base, None, None, None, None, at.usm_type, at.queue)
    result = ops.pow(base, exponents)
    return result if dtype is None else astype_array(result, _dtypes.as_dtype(dtype), copy=False)


def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    **place: Any,
) -> ndarray:
    """Return values from ``start`` to ``stop`` in geometric progression.

    Complex numbers are on a spiral between the ends.

    Raises:
        ValueError: an end is 0.

    Example:
        >>> dp.geomspace(1, 8, 4).asnumpy()
        array([1., 2., 4., 8.])
    """
    given = [("start", start), ("stop", stop)]
    if not any(isinstance(end, ndarray | np.ndarray | list | tuple) for _, end in given):
        if scalar_value(start) == 0 or scalar_value(stop) == 0:
            raise ValueError(f"geomspace: start and stop must not be 0; got {start} and {stop}")
        kept = _dtypes.promote([*(_dtypes.promotion_key(end) for _, end in given), 0.0])
        start, stop = (asarray(end, **place) for _, end in given)
    else:
        start, stop = check_arrays("geomspace", *given)
        kept = _dtypes.promote([start.dtype, stop.dtype, 0.0])
    kept = _dtypes.fit_device(kept, traits_of(start.queue))
    # Rotated so that the start is a positive real number, which selects one branch of the
    # logarithm.
    start, stop = (astype_array(end, kept, copy=False) for end in (start, stop))
    turn = ops.sign(start)
    first, last = (ops.divide(end, turn) for end in (start, stop))
    powers = logspace(_log10(first), _log10(last), num, endpoint)
    powers = astype_array(powers, kept, copy=False)
    if num > 0:
        powers[0] = first
        if num > 1 and endpoint:
            powers[-1] = last
    result = powers * turn
    if axis:
        result = moveaxis(result, 0, axis)
    return result if dtype is None else astype_array(result, _dtypes.as_dtype(dtype), copy=False)


def _log10(x: ndarray) -> ndarray:
    """Return the logarithm to base 10, also for complex numbers."""
    if x.dtype.kind != "c":
        return ops.log10(x)
    return ops.log(x) * (1 / math.log(10))
