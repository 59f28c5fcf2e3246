"""Creation functions: only these choose a device, and only these copy from host to device."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dparray import _dtypes, _layout, config
from dparray._array.allocation import (
    axes_like,
    chosen_placement,
    empty_array,
    from_host,
    is_made_by_host,
    placed_like,
)
from dparray._array.apply import operate
from dparray._array.assignment import assign
from dparray._array.host_fastpath import TAKEN_BY
from dparray._array.ndarray import ndarray
from dparray._array.operands import (
    checked_scalar,
    foreign_operand,
    is_taken_from_host,
    scalar_value,
    shared,
)
from dparray._driver import traits_of
from dparray._driver.interface import Queue
from dparray._evaluate import limits
from dparray._functions.conversion import asarray
from dparray._functions.public import public
from dparray._graph.ops import CONVERT
from dparray._placement import Placement, check_dtype, common_placement
from dparray.device import supports_usm

__all__ = [
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


def checked_dtype(dtype: Any, placement: Placement, default: Any = None) -> np.dtype[Any]:
    """Return the requested dtype, or the default float, if the device supports it."""
    if dtype is not None:
        return check_dtype(_dtypes.as_dtype(dtype), placement.queue)
    return default or _dtypes.default_float(traits_of(placement.queue))


@public(operands=("shape",), small=np.empty, takes=("dtype",), mode="create")
def empty(
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Return a new array whose values are undefined.

    Args:
        shape: the shape of the array.
        dtype: the default is the device's default float dtype (``float64`` where there is fp64).
        order: ``"C"`` (rows first) or ``"F"`` (columns first).
        device: whatever :class:`dparray.Device` takes; the default device if not given.
        usm_type: ``"device"`` (the default), ``"shared"`` or ``"host"``.
        sycl_queue: the queue to allocate on, as an alternative to ``device``.

    Returns:
        An array on the given queue, with the given USM type, in memory from the pool.

    Raises:
        DeviceError: the device is unknown, or ``device`` and ``sycl_queue`` disagree.
        UsmTypeError: ``usm_type`` is not one of the three.
        ShapeError: ``shape`` is not a shape.
        DTypeError: arrays do not support ``dtype``.
        UnsupportedDeviceError: the device does not support ``dtype``.
        MemoryError: there is not enough memory.

    Example:
        >>> dp.empty((2, 3), dtype="int32").shape
        (2, 3)
    """
    placement = chosen_placement(device, usm_type, sycl_queue)
    return empty_array(
        placement, _layout.check_shape(shape), checked_dtype(dtype, placement), order
    )


#: Larger arrays are allocated immediately, so that a memory error comes from the line that caused
#: it.
_MAX_PENDING_BYTES = 1 << 30


def may_wait(placement: Placement, size: int, dtype: np.dtype[Any]) -> bool:
    """Return whether an array whose values follow from their indices stays pending.

    As an operand it then requires no memory reads.
    """
    return (
        config.lazy
        and limits.host_elements < size <= _MAX_PENDING_BYTES // dtype.itemsize
        and supports_usm(traits_of(placement.queue), placement.usm_type)
    )


def filled(
    placement: Placement,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    order: str,
    value: Any,
    function: str,
    like: ndarray | None = None,
) -> ndarray:
    """Return a new array filled with a scalar or a broadcast array; pending if it is large.

    The orders ``"A"`` and ``"K"`` are that of ``like``, or C.
    """
    order = _layout.as_order(order)
    if order in ("A", "K") and like is not None:
        is_plain = axes_like(like, len(shape), order) is None
    else:
        is_plain = order in ("C", "A", "K")
    is_plain = is_plain and not isinstance(value, ndarray)
    if is_plain and may_wait(placement, prod(shape), dtype):
        value = checked_scalar(function, value, dtype)
        return operate(CONVERT, (value,), (dtype, dtype), shape, placement)
    if is_plain and is_made_by_host(prod(shape), *placement):
        values = np.empty(shape, dtype)
        values.fill(checked_scalar(function, value, dtype))
        return ndarray._from_host_value(values, *placement)
    array = empty_array(placement, shape, dtype, order, like)
    assign(array, value, function)
    return array


@public(operands=("shape",), small=np.full, takes=("fill_value",), mode="create")
def full(
    shape: int | Sequence[int],
    fill_value: Any,
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Return a new array filled with ``fill_value``, a scalar or an array that broadcasts to it.

    If nothing else is given, an array as ``fill_value`` determines the placement. With ``device``
    or ``sycl_queue``, the value is copied there, and so is a NumPy array.

    The dtype defaults to that of ``fill_value``, also for a NumPy scalar: ``int64`` for a Python
    integer, the device's default float dtype for a float. See :func:`empty` for the other arguments
    and the errors.

    Example:
        >>> dp.full(3, 7).asnumpy()
        array([7, 7, 7])
    """
    value = fill_value
    if isinstance(value, list | tuple):
        place = {"device": device, "usm_type": usm_type, "sycl_queue": sycl_queue}
        value = asarray(value, **place)
    value = shared(value)
    if isinstance(value, ndarray) and device is None and sycl_queue is None:
        placement = placed_like(value, None, usm_type, None)
    else:
        placement = chosen_placement(device, usm_type, sycl_queue)
        value = _moved(value, placement, device is not None or sycl_queue is not None)
    if isinstance(value, ndarray | np.generic):
        default = value.dtype
    elif isinstance(value, bool | int | float | complex):
        default = _dtypes.default_for_scalar(type(value), traits_of(placement.queue))
    else:
        raise foreign_operand("full", "fill_value", fill_value)
    chosen = checked_dtype(dtype, placement, default)
    value = _converted(value, chosen)
    return filled(placement, _layout.check_shape(shape), chosen, order, value, "full")


def _moved(value: Any, placement: Placement, is_asked: bool) -> Any:
    """Return a fill value for an explicit placement: other arrays are copied there."""
    if is_asked and isinstance(value, ndarray):
        return value.to_device(placement.queue)
    if (is_asked and isinstance(value, np.ndarray)) or is_taken_from_host(value):
        return from_host(value, *placement)
    return value


def _converted(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a fill value: floats and NumPy integers are cast as arrays are, Python integers must
    fit.
    """
    if isinstance(value, float | np.floating | np.integer | np.bool_) and dtype.kind in "iu":
        value = np.asarray(value).astype(dtype)[()]
    return scalar_value(value)


@public(operands=("shape",), small=np.zeros, takes=("dtype",), mode="create")
def zeros(
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Return a new array of zeros. See :func:`empty` for arguments and errors.

    Example:
        >>> dp.zeros(2).asnumpy()
        array([0., 0.])
    """
    placement = chosen_placement(device, usm_type, sycl_queue)
    chosen = checked_dtype(dtype, placement)
    return filled(placement, _layout.check_shape(shape), chosen, order, 0, "zeros")


@public(operands=("shape",), small=np.ones, takes=("dtype",), mode="create")
def ones(
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Return a new array of ones. See :func:`empty` for arguments and errors.

    Example:
        >>> dp.ones(2, usm_type="shared").usm_type
        'shared'
    """
    placement = chosen_placement(device, usm_type, sycl_queue)
    chosen = checked_dtype(dtype, placement)
    return filled(placement, _layout.check_shape(shape), chosen, order, 1, "ones")


@public(small=np.empty_like)
def empty_like(
    x: ndarray,
    dtype: DTypeLike | None = None,
    order: str = "K",
    *,
    shape: int | Sequence[int] | None = None,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Return an uninitialized array with the shape, dtype, queue and USM type of ``x``.

    Explicit arguments override those of ``x``. For errors see :func:`empty`.

    Example:
        >>> x = dp.ones((2, 2), dtype="float32", usm_type="shared")
        >>> y = dp.empty_like(x)
        >>> y.shape, y.dtype.name, y.usm_type
        ((2, 2), 'float32', 'shared')
    """
    form = _form_like(x, dtype, shape, device, usm_type, sycl_queue)
    return empty_array(*form, order, x)


def _form_like(
    x: ndarray,
    dtype: Any,
    shape: Any,
    device: Any,
    usm_type: str | None,
    sycl_queue: Queue | None,
) -> tuple[Placement, tuple[int, ...], np.dtype[Any]]:
    """Return the placement, shape and dtype for an array like another; arguments override them."""
    placement = placed_like(x, device, usm_type, sycl_queue)
    return (
        placement,
        x.shape if shape is None else _layout.check_shape(shape),
        checked_dtype(x.dtype if dtype is None else dtype, placement),
    )


@public(small=np.zeros_like)
def zeros_like(
    x: ndarray,
    dtype: DTypeLike | None = None,
    order: str = "K",
    *,
    shape: int | Sequence[int] | None = None,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Return an array of zeros like ``x``; see :func:`empty_like`.

    Example:
        >>> dp.zeros_like(dp.ones(2, dtype="int16")).asnumpy()
        array([0, 0], dtype=int16)
    """
    form = _form_like(x, dtype, shape, device, usm_type, sycl_queue)
    return filled(*form, order, 0, "zeros_like", x)


@public(small=np.ones_like)
def ones_like(
    x: ndarray,
    dtype: DTypeLike | None = None,
    order: str = "K",
    *,
    shape: int | Sequence[int] | None = None,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Return an array of ones like ``x``; see :func:`empty_like`.

    Example:
        >>> dp.ones_like(dp.zeros(2, dtype="int16")).asnumpy()
        array([1, 1], dtype=int16)
    """
    form = _form_like(x, dtype, shape, device, usm_type, sycl_queue)
    return filled(*form, order, 1, "ones_like", x)


def _is_kept(x: ndarray, fill_value: Any) -> bool:
    """Return whether NumPy writes a number to arrays of this dtype unchanged."""
    kinds = TAKEN_BY.get(type(fill_value))
    return kinds is not None and x.dtype.kind in kinds


@public(small=np.full_like, takes=("fill_value",), when=_is_kept)
def full_like(
    x: ndarray,
    fill_value: Any,
    dtype: DTypeLike | None = None,
    order: str = "K",
    *,
    shape: int | Sequence[int] | None = None,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Return an array like ``x`` filled with ``fill_value``; see :func:`empty_like`.

    Example:
        >>> dp.full_like(dp.zeros(2, dtype="float32"), 3).asnumpy()
        array([3., 3.], dtype=float32)
    """
    fill_value = shared(fill_value)
    is_asked = device is not None or sycl_queue is not None
    if isinstance(fill_value, ndarray) and not is_asked:
        common_placement("full_like", (("x", x), ("fill_value", fill_value)))
    form = _form_like(x, dtype, shape, device, usm_type, sycl_queue)
    fill_value = _moved(fill_value, form[0], is_asked)
    value = scalar_value(fill_value)
    if not isinstance(value, ndarray | bool | int | float | complex):
        raise foreign_operand("full_like", "fill_value", fill_value)
    return filled(*form, order, _converted(fill_value, form[-1]), "full_like", x)
