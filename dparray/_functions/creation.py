"""Creation functions: the only ones that choose a device, and the only host to device copies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from dparray import _dtypes, _layout, config
from dparray._array.apply import apply, astype_array, choose_elements, copy_of, operate, with_axes
from dparray._array.assignment import assign
from dparray._array.fresh import empty_on, from_host, is_made_by_host
from dparray._array.ndarray import as_method, ndarray
from dparray._array.nodes import array_of_node
from dparray._array.operands import (
    arrays_inside,
    check_array,
    check_arrays,
    checked_scalar,
    foreign_operand,
    host_values,
    scalar_value,
    stack_nested,
)
from dparray._evaluate import evaluate
from dparray._evaluate.schedule import HOST_ELEMENTS
from dparray._graph.node import Node
from dparray._graph.ops import CONVERT, OPS
from dparray._placement import Placement, check_dtype, check_usm_type, common_placement
from dparray._runtime import queues
from dparray.device import Device, queue_of, supports_usm
from dparray.exceptions import DTypeError, HostConversionError, ShapeError
from dparray.memory import blocks, copies, exchange

if TYPE_CHECKING:
    import dpctl

__all__ = [
    "arange",
    "asarray",
    "asnumpy",
    "astype",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "to_numpy",
    "zeros",
    "zeros_like",
]


_HOST_TYPES = (np.ndarray, np.generic)
_NESTED = (list, tuple)


def placement_of(
    device: Any, usm_type: str | None, sycl_queue: dpctl.SyclQueue | None
) -> Placement:
    return Placement(
        queue_of(device, sycl_queue), check_usm_type("device" if usm_type is None else usm_type)
    )


def _placed_like(
    x: ndarray, device: Any, usm_type: str | None, sycl_queue: dpctl.SyclQueue | None
) -> Placement:
    queue = x.sycl_queue if device is None and sycl_queue is None else queue_of(device, sycl_queue)
    return Placement(queue, check_usm_type(x.usm_type if usm_type is None else usm_type))


def _checked_dtype(dtype: Any, placement: Placement, default: Any = None) -> np.dtype[Any]:
    """The dtype asked for, or the default float, that the device can compute in."""
    if dtype is not None:
        return check_dtype(_dtypes.as_dtype(dtype), placement.queue)
    return default or _dtypes.default_float(placement.queue.sycl_device)


def empty(
    shape: int | Sequence[int],
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: dpctl.SyclQueue | None = None,
) -> ndarray:
    """A new array whose values are undefined.

    Args:
        shape: extents.
        dtype: the default is the device's default float dtype (``float64`` where there is fp64).
        order: ``"C"`` (rows first) or ``"F"`` (columns first).
        device: whatever :class:`dparray.Device` takes; the default device if not given.
        usm_type: ``"device"`` (the default), ``"shared"`` or ``"host"``.
        sycl_queue: the queue to allocate on; may be given instead of ``device``.

    Returns:
        An array on the named queue, of the named USM type, in memory of the pool.

    Raises:
        DeviceError: there is no such device, or ``device`` and ``sycl_queue`` disagree.
        UsmTypeError: ``usm_type`` is none of the three.
        ShapeError: ``shape`` is no shape.
        DTypeError: ``dtype`` is none that arrays have.
        UnsupportedDeviceError: the device cannot compute in ``dtype``.
        MemoryError: there is not enough memory.

    Example:
        >>> import dparray as dp
        >>> dp.empty((2, 3), dtype="int32").shape
        (2, 3)
    """
    placement = placement_of(device, usm_type, sycl_queue)
    return _empty(placement, _layout.check_shape(shape), _checked_dtype(dtype, placement), order)


def _empty(
    placement: Placement, shape: tuple[int, ...], dtype: np.dtype[Any], order: str
) -> ndarray:
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"order: {order!r} is none of 'C', 'F', 'A', 'K'")
    array = empty_on(placement, shape, dtype)
    if order != "F":
        return array
    strides = _layout.contiguous_strides(shape, dtype.itemsize, "F")
    return array._view(shape, strides, 0)


#: Larger arrays are made at once, so that an error of memory comes from the line that asks for it.
_MOST_PENDING_BYTES = 1 << 30


def may_wait(placement: Placement, size: int, dtype: np.dtype[Any]) -> bool:
    """Whether an array whose values follow from their positions is made when they are needed.

    Then nothing is read from memory for it where it is an operand.
    """
    return (
        config.lazy
        and HOST_ELEMENTS < size <= _MOST_PENDING_BYTES // dtype.itemsize
        and supports_usm(placement.queue.sycl_device, placement.usm_type)
    )


def _filled(
    placement: Placement,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    order: str,
    value: Any,
    function: str,
) -> ndarray:
    """A new array with one value, a scalar or an array that broadcasts; pending if it is large."""
    is_plain = order in ("C", "A", "K") and not isinstance(value, ndarray)
    if is_plain and may_wait(placement, prod(shape), dtype):
        value = checked_scalar(function, value, dtype)
        return operate(CONVERT, (value,), (dtype, dtype), shape, placement)
    if is_plain and is_made_by_host(prod(shape), *placement):
        values = np.empty(shape, dtype)
        values.fill(checked_scalar(function, value, dtype))
        return ndarray._computed(values, *placement)
    array = _empty(placement, shape, dtype, order)
    assign(array, value, function)
    return array


def full(
    shape: int | Sequence[int],
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: dpctl.SyclQueue | None = None,
) -> ndarray:
    """A new array filled with ``fill_value`` (a scalar, or an array on the same queue).

    The dtype is that of ``fill_value`` where none is given, also of a NumPy scalar: ``int64`` for
    a Python integer, the device's default float dtype for a float. Further arguments and
    errors as of :func:`empty`.

    Example:
        >>> import dparray as dp
        >>> dp.full(3, 7).asnumpy()
        array([7, 7, 7])
    """
    value = fill_value
    if isinstance(value, list | tuple):
        place = {"device": device, "usm_type": usm_type, "sycl_queue": sycl_queue}
        value = asarray(value, **place)
    if isinstance(value, ndarray) and device is None and sycl_queue is None:
        placement = _placed_like(value, None, usm_type, None)
    else:
        placement = placement_of(device, usm_type, sycl_queue)
    if isinstance(value, ndarray | np.generic):
        default = value.dtype
    elif isinstance(value, bool | int | float | complex):
        default = _dtypes.default_for_scalar(type(value), placement.queue.sycl_device)
    else:
        raise foreign_operand("full", "fill_value", fill_value)
    chosen = _checked_dtype(dtype, placement, default)
    value = _converted(value, chosen)
    return _filled(placement, _layout.check_shape(shape), chosen, order, value, "full")


def _converted(value: Any, dtype: np.dtype[Any]) -> Any:
    """A fill value: NumPy's integers are converted as arrays are, Python's have to fit."""
    if isinstance(value, np.integer | np.bool_) and dtype.kind in "iu":
        value = value.astype(dtype)
    return scalar_value(value)


def zeros(
    shape: int | Sequence[int],
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: dpctl.SyclQueue | None = None,
) -> ndarray:
    """A new array of zeros. Arguments and errors as of :func:`empty`.

    Example:
        >>> import dparray as dp
        >>> dp.zeros(2).asnumpy()
        array([0., 0.])
    """
    placement = placement_of(device, usm_type, sycl_queue)
    chosen = _checked_dtype(dtype, placement)
    return _filled(placement, _layout.check_shape(shape), chosen, order, 0, "zeros")


def ones(
    shape: int | Sequence[int],
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: dpctl.SyclQueue | None = None,
) -> ndarray:
    """A new array of ones. Arguments and errors as of :func:`empty`.

    Example:
        >>> import dparray as dp
        >>> dp.ones(2, usm_type="shared").usm_type
        'shared'
    """
    placement = placement_of(device, usm_type, sycl_queue)
    chosen = _checked_dtype(dtype, placement)
    return _filled(placement, _layout.check_shape(shape), chosen, order, 1, "ones")


def empty_like(
    x: ndarray,
    dtype: Any = None,
    order: str = "C",
    *,
    shape: int | Sequence[int] | None = None,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: dpctl.SyclQueue | None = None,
) -> ndarray:
    """A new array with shape, dtype, queue and USM type of ``x``, values undefined.

    What is given instead wins. Errors as of :func:`empty`.

    Example:
        >>> import dparray as dp
        >>> x = dp.ones((2, 2), dtype="float32", usm_type="shared")
        >>> y = dp.empty_like(x)
        >>> y.shape, y.dtype.name, y.usm_type
        ((2, 2), 'float32', 'shared')
    """
    return _empty(*_form_like("empty_like", x, dtype, shape, device, usm_type, sycl_queue), order)


def _form_like(
    function: str,
    x: Any,
    dtype: Any,
    shape: Any,
    device: Any,
    usm_type: str | None,
    sycl_queue: dpctl.SyclQueue | None,
) -> tuple[Placement, tuple[int, ...], np.dtype[Any]]:
    """Placement, shape and dtype of an array like another, what is given instead winning."""
    x = check_array(function, "x", x)
    placement = _placed_like(x, device, usm_type, sycl_queue)
    return (
        placement,
        x.shape if shape is None else _layout.check_shape(shape),
        _checked_dtype(x.dtype if dtype is None else dtype, placement),
    )


def zeros_like(
    x: ndarray,
    dtype: Any = None,
    order: str = "C",
    *,
    shape: int | Sequence[int] | None = None,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: dpctl.SyclQueue | None = None,
) -> ndarray:
    """A new array of zeros with shape, dtype, queue and USM type of ``x``; see :func:`empty_like`.

    Example:
        >>> import dparray as dp
        >>> dp.zeros_like(dp.ones(2, dtype="int16")).asnumpy()
        array([0, 0], dtype=int16)
    """
    form = _form_like("zeros_like", x, dtype, shape, device, usm_type, sycl_queue)
    return _filled(*form, order, 0, "zeros_like")


def ones_like(
    x: ndarray,
    dtype: Any = None,
    order: str = "C",
    *,
    shape: int | Sequence[int] | None = None,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: dpctl.SyclQueue | None = None,
) -> ndarray:
    """A new array of ones with shape, dtype, queue and USM type of ``x``; see :func:`empty_like`.

    Example:
        >>> import dparray as dp
        >>> dp.ones_like(dp.zeros(2, dtype="int16")).asnumpy()
        array([1, 1], dtype=int16)
    """
    form = _form_like("ones_like", x, dtype, shape, device, usm_type, sycl_queue)
    return _filled(*form, order, 1, "ones_like")


def full_like(
    x: ndarray,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    shape: int | Sequence[int] | None = None,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: dpctl.SyclQueue | None = None,
) -> ndarray:
    """An array like ``x`` filled with ``fill_value``; see :func:`empty_like`.

    Example:
        >>> import dparray as dp
        >>> dp.full_like(dp.zeros(2, dtype="float32"), 3).asnumpy()
        array([3., 3.], dtype=float32)
    """
    x = check_array("full_like", "x", x)
    if isinstance(fill_value, ndarray) and device is None and sycl_queue is None:
        common_placement("full_like", (("x", x), ("fill_value", fill_value)))
    form = _form_like("full_like", x, dtype, shape, device, usm_type, sycl_queue)
    value = scalar_value(fill_value)
    if not isinstance(value, ndarray | bool | int | float | complex):
        raise foreign_operand("full_like", "fill_value", fill_value)
    return _filled(*form, order, _converted(fill_value, form[-1]), "full_like")


def arange(
    start: Any,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: dpctl.SyclQueue | None = None,
) -> ndarray:
    """Evenly spaced values from ``start`` up to, not including, ``stop``.

    With one value it is the stop and the start is 0. Placement and errors as of :func:`empty`.

    Example:
        >>> import dparray as dp
        >>> dp.arange(1, 7, 2).asnumpy()
        array([1, 3, 5])
    """
    if stop is None:
        start, stop = 0, start
    is_unsigned = any(isinstance(value, np.uint64 | np.ulonglong) for value in (start, stop, step))
    start, stop, step = (scalar_value(value) for value in (start, stop, step))
    placement = placement_of(device, usm_type, sycl_queue)
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        if isinstance(value, complex) or not hasattr(value, "__float__"):
            raise DTypeError(f"arange: {name} must be a real number, not {value!r}")
    if step == 0:
        raise ValueError("arange: step is 0; it must lead from start towards stop")
    kinds = {type(value) for value in (start, stop, step)}
    # NumPy's smallest choice is int64, which promotes with uint64 to a float.
    default = _dtypes.default_for_scalar(
        int if kinds <= {int, bool} and not is_unsigned else float, placement.queue.sycl_device
    )
    chosen = _checked_dtype(dtype, placement, default)
    length = max(0, int(np.ceil((stop - start) / step)))
    if kinds <= {int, bool}:
        length = len(range(int(start), int(stop), int(step)))
    if is_made_by_host(length, *placement):
        values = np.arange(start, stop, step, chosen)
        if values.shape == (length,):
            return ndarray._computed(values, *placement)
    return _ramp(placement, length, start, step, chosen)


def positions(
    placement: Placement, shape: tuple[int, ...], strides: tuple[int, ...] | None = None
) -> ndarray:
    """An int64 array, pending, of what is counted along its axes: `sum(index * stride)`.

    In a kernel that is index arithmetic. The strides are those of a contiguous array if not given.
    """
    chosen = _layout.contiguous_strides(shape, 1) if strides is None else strides
    highest = sum((extent - 1) * stride for extent, stride in zip(shape, chosen, strict=True))
    block = blocks.Positions(*placement, max(highest, 0) + 1)
    layout = _layout.Layout(block, 0, shape, tuple(8 * each for each in chosen), _dtypes.int64)
    counted = (_dtypes.int64, _dtypes.int64)
    leaf = Node.leaf(layout, *placement)
    return array_of_node(Node(CONVERT, (leaf,), counted, shape, prod(shape), *placement))


def _ramp(
    placement: Placement, length: int, start: Any, step: Any, dtype: np.dtype[Any]
) -> ndarray:
    """`start + i * step` as NumPy computes it: the step is the distance of the first two values."""
    with np.errstate(all="ignore"):
        first, second = np.array([start, start + step], dtype)
        wide = np.dtype(np.float32) if dtype == _dtypes.float16 else dtype
        begin, distance = wide.type(first), wide.type(second) - wide.type(first)
    wide = _dtypes.uint8 if dtype.kind == "b" else wide
    values = astype_array(positions(placement, (length,)), wide)
    if distance != 1:
        values = apply(OPS["multiply"], values, distance.item())
    if begin != 0:
        values = apply(OPS["add"], values, begin.item())
    return astype_array(values, dtype, copy=False)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: dpctl.SyclQueue | None = None,
) -> Any:
    """``num`` evenly spaced values from ``start`` to ``stop``, which ``endpoint`` includes.

    Args:
        start: the first value, or an array of first values.
        stop: where they end; an array on the queue of ``start``, or a scalar.
        num: how many.
        endpoint: ``stop`` is the last value.
        retstep: give the distance of neighbours too.
        dtype: the default is the dtype that ``start`` and ``stop`` promote to with a Python float:
            the device's default float dtype for Python's scalars and integers.
        axis: where the new axis is among those of ``start`` and ``stop``.
        device, usm_type, sycl_queue: as of :func:`empty`; arrays stay on their queue.

    Returns:
        An array, or a tuple of it and the step.

    Raises:
        ExecutionPlacementError: ``start`` and ``stop`` are on different queues.
        As :func:`empty` otherwise.

    Example:
        >>> import dparray as dp
        >>> dp.linspace(0, 1, 5).asnumpy()
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    (length,) = _layout.check_shape(num)
    ends = [("start", start), ("stop", stop)]
    arrays = [each for each in ends if isinstance(each[1], ndarray | list | tuple)]
    if arrays:
        start, stop = check_arrays("linspace", *ends)
        placement = common_placement("linspace", (("start", start), ("stop", stop)))
    else:
        placement = placement_of(device, usm_type, sycl_queue)
        for name, value in ends:
            if not isinstance(value, bool | int | float | complex | np.generic):
                raise foreign_operand("linspace", name, value)
    real = _dtypes.default_for_scalar(float, placement.queue.sycl_device)
    keys = [
        x.dtype if isinstance(given, list | tuple | ndarray) else _dtypes.promotion_key(given)
        for (_, given), x in zip(ends, (start, stop), strict=True)
    ]
    loop = _dtypes.fit_device(_dtypes.promote([*keys, 0.0]), placement.queue.sycl_device)
    chosen = _checked_dtype(dtype, placement, loop)
    if not arrays and is_made_by_host(length, *placement) and chosen.kind in "fc":
        made, step = np.linspace(start, stop, length, endpoint, True, chosen)  # type: ignore[call-overload]
        values = ndarray._computed(made if made.base is None else made.copy(), *placement)
        return (values, step.item()) if retstep else values
    counted = arange(length, dtype=real, sycl_queue=placement.queue, usm_type=placement.usm_type)
    # As NumPy computes them, so that the last bits are the same.
    if arrays:
        start, stop = (astype_array(x, loop, copy=False) for x in (start, stop))
    else:
        start, stop = (loop.type(x) for x in (start, stop))
    intervals = length - bool(endpoint)
    with np.errstate(all="ignore"):
        distance = stop - start
        step = distance / intervals if intervals > 0 else math.nan
    if arrays:
        counted = counted.reshape((length,) + (1,) * distance.ndim)
    ramp = astype_array(counted, loop, copy=False)
    values = apply(OPS["multiply"], ramp, step if intervals > 0 else distance)
    values = apply(OPS["add"], values, start)
    if endpoint and length > 1:
        is_last = apply(OPS["equal"], counted, length - 1)
        last = astype_array(stop, values.dtype, copy=False) if arrays else stop
        values = (
            choose_elements("linspace", is_last, last, values)
            if arrays
            else choose_elements(
                "linspace", is_last, checked_scalar("linspace", last.item(), values.dtype), values
            )
        )
    if chosen.kind in "iu":
        values = apply(OPS["floor"], values)
    values = astype_array(values, chosen, copy=False)
    if arrays and axis:
        at = _layout.normalize_axis("linspace", axis, values.ndim)
        order = [place for place in range(values.ndim) if place]
        values = with_axes(values, [*order[:at], 0, *order[at:]])
    return (values, scalar_value(step)) if retstep else values


def eye(
    n_rows: int,
    n_cols: int | None = None,
    k: int = 0,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: dpctl.SyclQueue | None = None,
) -> ndarray:
    """A matrix with ones on diagonal ``k`` and zeros elsewhere. Errors as of :func:`empty`.

    Example:
        >>> import dparray as dp
        >>> dp.eye(2, dtype="int8").asnumpy()
        array([[1, 0],
               [0, 1]], dtype=int8)
    """
    shape = _layout.check_shape((n_rows, n_rows if n_cols is None else n_cols))
    placement = placement_of(device, usm_type, sycl_queue)
    chosen = _checked_dtype(dtype, placement)
    if order in ("C", "A", "K") and may_wait(placement, prod(shape), chosen):
        rows, columns = (positions(placement, shape, each) for each in ((1, 0), (0, 1)))
        is_one = apply(OPS["equal"], apply(OPS["add"], rows, k) if k else rows, columns)
        return astype_array(is_one, chosen, copy=False)
    array = _filled(placement, shape, chosen, order, 0, "eye")
    row, column = max(0, -k), max(0, k)
    length = min(shape[0] - row, shape[1] - column)
    if length > 0:
        stride = array.strides[0] + array.strides[1]
        offset = array.offset + row * array.strides[0] + column * array.strides[1]
        assign(array._view((length,), (stride,), offset), 1)
    return array


def asarray(
    obj: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: dpctl.SyclQueue | None = None,
) -> ndarray:
    """Anything that holds numbers as an array.

    Args:
        obj: an array, a NumPy array, a buffer, a Python or NumPy scalar, nested sequences of
            scalars and of arrays on one queue, or an object with ``__sycl_usm_array_interface__``
            (dpnp) or ``__dlpack__``.
        dtype: the result's dtype; that of ``obj`` if not given.
        order: ``"C"`` or ``"F"``; as ``obj`` is if not given.
        copy: ``True`` always copies, ``False`` never does and raises where it would be needed,
            ``None`` copies only where needed.
        device: where the result lives. If neither this nor ``sycl_queue`` is given: on the queue
            of ``obj`` if it has one, on the default device otherwise.
        usm_type: the result's USM type: that of ``obj`` if not given, else ``"device"``.
        sycl_queue: the queue; may be given instead of ``device``.

    Returns:
        ``obj`` itself if it is an array that already is what was asked for; an array over the
        same memory for USM objects of other libraries; else a copy.

    Raises:
        DeviceError: there is no such device, or ``device`` and ``sycl_queue`` disagree.
        DTypeError: the values are of a dtype that arrays cannot have.
        ExecutionPlacementError: arrays inside a sequence are on different queues.
        OverflowError: a Python integer does not fit the dtype.
        ValueError: ``copy=False``, but a copy is needed.

    Example:
        >>> import dparray as dp
        >>> dp.asarray([[1, 2], [3, 4]], dtype="float32").shape
        (2, 2)
    """
    if usm_type is not None:
        check_usm_type(usm_type)
    wanted = None if dtype is None else _dtypes.as_dtype(dtype)
    if isinstance(obj, ndarray):
        return _rearranged(obj, wanted, order, copy, device, usm_type, sycl_queue)
    is_of_host = isinstance(obj, _HOST_TYPES)
    if not is_of_host and hasattr(obj, "__sycl_usm_array_interface__"):
        shared = ndarray._from_layout(*exchange.layout_of_interface(obj))
        return _rearranged(shared, wanted, order, copy, device, usm_type, sycl_queue)
    if isinstance(obj, _NESTED):
        arrays = arrays_inside("obj", obj)
        if arrays:
            stacked = stack_nested("asarray", obj, common_placement("asarray", arrays))
            return _rearranged(stacked, wanted, order, copy, device, usm_type, sycl_queue)
    elif not is_of_host and hasattr(obj, "__dlpack__"):
        return _rearranged(from_dlpack(obj), wanted, order, copy, device, usm_type, sycl_queue)
    if copy is False:
        raise ValueError(
            "asarray: copy=False, but values of the host have to be copied to a device"
        )
    placement = placement_of(device, usm_type, sycl_queue)
    values = host_values("asarray", obj, placement.queue)
    if wanted is not None and wanted.kind in "iu" and not is_of_host and values.dtype != wanted:
        # NumPy makes floats of integers on both sides of 2**63, and tells which do not fit.
        values = np.asarray(obj, wanted)
    array = from_host(values, placement.queue, placement.usm_type, wanted)
    if order == "F":
        return _rearranged(array, None, "F", None, None, None, None)
    return array


def _rearranged(
    x: ndarray,
    dtype: np.dtype[Any] | None,
    order: str | None,
    copy: bool | None,
    device: Any,
    usm_type: str | None,
    sycl_queue: dpctl.SyclQueue | None,
) -> ndarray:
    """``x`` with another dtype, order, place or USM type; ``x`` itself if it has them already."""
    if order not in (None, "C", "F", "A", "K"):
        raise ValueError(f"order: {order!r} is none of 'C', 'F', 'A', 'K'")
    placement = _placed_like(x, device, usm_type, sycl_queue)
    changes_place = placement.queue != x.sycl_queue or placement.usm_type != x.usm_type
    changes_dtype = dtype is not None and dtype != x.dtype
    changes_order = order in ("C", "F") and not _layout.is_contiguous(
        x.shape, x.strides, x.itemsize, order or "C"
    )
    if not (changes_place or changes_dtype or changes_order):
        return copy_of(x) if copy else x
    if copy is False:
        what = [
            name
            for name, changes in (
                ("its place", changes_place),
                ("its dtype", changes_dtype),
                ("its order", changes_order),
            )
            if changes
        ]
        raise ValueError(f"asarray: copy=False, but {' and '.join(what)} must change")
    if changes_dtype and dtype is not None:
        _dtypes.check_device(dtype, placement.queue.sycl_device)
        x = astype_array(x, dtype)
    if changes_place:
        x = ndarray._from_layout(*copies.copy_to_queue(x, *placement))
    if order == "F" and not _layout.is_contiguous(x.shape, x.strides, x.itemsize, "F"):
        result = _empty(Placement(x.sycl_queue, x.usm_type), x.shape, x.dtype, "F")
        assign(result, x)
        return result
    if order == "C" and not _layout.is_contiguous(x.shape, x.strides, x.itemsize):
        return copy_of(x)
    return x


def meshgrid(
    *arrays: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[ndarray]:
    """Coordinate arrays made of coordinate vectors.

    Args:
        *arrays: vectors (or scalars) of one dtype.
        copy: ``False`` gives views, in which elements share their memory.
        sparse: keep each array's extent along the other axes 1.
        indexing: ``"xy"`` (the first vector runs along the second axis) or ``"ij"``.

    Returns:
        As many arrays as vectors, each with one axis for every vector.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: one of them has more than one dimension.

    Example:
        >>> import dparray as dp
        >>> x, y = dp.meshgrid(dp.asarray([1, 2]), dp.asarray([3, 4]))
        >>> y.asnumpy()
        array([[3, 3],
               [4, 4]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing {indexing!r} is neither 'xy' nor 'ij'")
    if not arrays:
        return []
    given = [(f"arrays[{position}]", x) for position, x in enumerate(arrays)]
    checked = check_arrays("meshgrid", *given)
    named = [(name, x) for (name, _), x in zip(given, checked, strict=True)]
    placement = common_placement("meshgrid", named)
    for name, x in named:
        if x.ndim > 1:
            raise ShapeError(f"meshgrid: {name} has {x.ndim} dimensions; give vectors")
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
    return results


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> ndarray:
    """An array from any object with ``__dlpack__``; memory is shared where that is possible.

    Args:
        x: the producer. Data of the host (NumPy and the like) are copied to ``device``.
        device: where the result lives; the producer's own queue if not given, the default
            device for data of the host.
        copy: as of :func:`asarray`.

    Raises:
        TypeError: the object has no ``__dlpack__``.
        ValueError: ``copy=False``, but a copy is needed.

    Example:
        >>> import dparray as dp
        >>> import numpy as np
        >>> dp.from_dlpack(np.arange(3, dtype="int32")).asnumpy()
        array([0, 1, 2], dtype=int32)
    """
    if isinstance(x, ndarray):
        return _rearranged(x, None, None, copy, device, None, None)
    if not hasattr(x, "__dlpack__"):
        raise HostConversionError(
            f"from_dlpack: {type(x).__name__} has no __dlpack__; use dp.asarray(x)"
        )
    kind = x.__dlpack_device__()[0]
    on_host = int(kind) == int(exchange.dpt.DLDeviceType.kDLCPU)
    if on_host:
        if copy is False:
            raise ValueError(
                "from_dlpack: copy=False, but data of the host have to be copied to a device"
            )
        queue = queue_of(device)
        return from_host(np.from_dlpack(x), queue, "device")
    shared = ndarray._from_layout(
        *exchange.layout_of_tensor(exchange.dpt.from_dlpack(x), is_shared=True)
    )
    return _rearranged(shared, None, None, copy, device, None, None)


def _dlpack(
    self: ndarray,
    /,
    *,
    stream: None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """The array as a DLPack capsule over its own memory, or over a copy where that is needed.

    Waits for the work before it on the queue. For the host (``dl_device=(1, 0)``) memory that it
    can read at its own address is shared, other memory copied.

    Raises:
        BufferError: ``copy=False``, but a copy is needed; another device was asked for; or the
            array is on a sub-device or in a context that DLPack cannot name.
    """
    if stream is not None:
        raise ValueError("__dlpack__: streams are not supported; order work by queues")
    versions: dict[str, Any] = {} if max_version is None else {"max_version": max_version}
    if dl_device is not None and int(dl_device[0]) == int(exchange.dpt.DLDeviceType.kDLCPU):
        if copy is None and not copies.is_host_accessible(self.sycl_queue, self.usm_type):
            copy = True
        return (self.asnumpy() if copy else _shared_with_host(self)).__dlpack__(**versions)
    source = self.copy() if copy else self
    tensor = exchange.dpt.asarray(source)  # through the interface that shares our memory
    if dl_device is not None and tuple(map(int, dl_device)) != _dlpack_device(self):
        raise BufferError(
            f"__dlpack__: the array is on DLPack device {_dlpack_device(self)}, not {dl_device}; "
            f"move it first: x.to_device(...)"
        )
    queues.wait(self.sycl_queue)
    return tensor.__dlpack__(**versions)


class _HostMemory:
    """The memory of an array as NumPy's array interface; keeps the array alive."""

    def __init__(self, x: ndarray) -> None:
        self.owner = x
        view = copies.host_view(x)
        self.__array_interface__ = view.__array_interface__


def _shared_with_host(x: ndarray) -> np.ndarray:
    """A NumPy array over the memory of an array, after the work before it on the queue.

    Raises:
        BufferError: the host cannot read the memory.
    """
    if not copies.is_host_accessible(x.sycl_queue, x.usm_type):
        raise BufferError(
            f"__dlpack__: copy=False, but the host cannot read {x.usm_type} memory of "
            f"{x.device}; leave copy out"
        )
    evaluate.share(x.block)
    queues.wait(x.sycl_queue)
    return np.asarray(_HostMemory(x))


def _dlpack_device(self: ndarray) -> tuple[int, int]:
    """The DLPack device: type oneAPI and the number of the device."""
    kind, number = exchange.dpt.asarray(self).__dlpack_device__()
    return int(kind), int(number)


def _attach_dlpack() -> None:
    for name, method in (("__dlpack__", _dlpack), ("__dlpack_device__", _dlpack_device)):
        method.__name__ = name
        method.__qualname__ = f"ndarray.{name}"
        setattr(ndarray, name, method)


_attach_dlpack()


def asnumpy(x: ndarray) -> np.ndarray:
    """The values of an array as a new NumPy array; waits for the work before it on its queue.

    Raises:
        HostConversionError: ``x`` is no array.

    Example:
        >>> import dparray as dp
        >>> dp.asnumpy(dp.ones(2))
        array([1., 1.])
    """
    if isinstance(x, np.ndarray):
        return x
    return check_array("asnumpy", "x", x).asnumpy()


to_numpy = asnumpy


@as_method
def astype(
    x: ndarray,
    dtype: Any,
    order: str = "K",
    *,
    casting: Any = "unsafe",
    subok: bool = True,
    copy: bool = True,
    device: Any = None,
) -> ndarray:
    """The array in another dtype, on the same queue unless ``device`` names another.

    Args:
        x: the array.
        dtype: the new dtype. Complex to real is an error, as it would lose the imaginary part.
        order: ``"K"``, ``"C"`` or ``"F"``.
        casting: which conversions are allowed, as of NumPy.
        subok: without effect, as there are no subclasses.
        copy: ``False`` gives ``x`` itself if nothing changes.
        device: another place for the result.

    Raises:
        DTypeError: there is no such dtype, complex would become real, or ``casting`` forbids it.
        UnsupportedDeviceError: the device cannot compute in it.

    Example:
        >>> import dparray as dp
        >>> dp.ones(2).astype("int32").asnumpy()
        array([1, 1], dtype=int32)
    """
    x = check_array("astype", "x", x)
    wanted = _dtypes.as_dtype(dtype)
    if x.dtype.kind == "c" and wanted.kind not in "c":
        raise DTypeError(
            f"astype: {x.dtype} to {wanted} would lose the imaginary part; "
            f"write x.real.astype('{wanted}')"
        )
    if casting != "unsafe" and not np.can_cast(x.dtype, wanted, casting):
        raise DTypeError(
            f"astype: {x.dtype} does not convert to {wanted} by the rule {casting!r}; leave "
            f"casting= out"
        )
    if device is not None:
        x = x.to_device(Device(device))
    result = astype_array(x, wanted, copy)
    if order == "F":
        return _rearranged(result, None, "F", None, None, None, None)
    return result


@as_method
def copy(x: ndarray, order: str = "C") -> ndarray:
    """A copy on the same queue, of the same USM type, that shares nothing.

    Example:
        >>> import dparray as dp
        >>> x = dp.zeros(2)
        >>> y = x.copy()
        >>> y[0] = 1
        >>> float(x[0])
        0.0
    """
    x = check_array("copy", "x", x)
    if order == "F":
        result = _empty(Placement(x.sycl_queue, x.usm_type), x.shape, x.dtype, "F")
        assign(result, x)
        return result
    return copy_of(x)
