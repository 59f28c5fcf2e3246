"""Arrays in new memory: uninitialized, filled with one scalar, or copied from the host."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from dparray import _dtypes, _hooks, _layout
from dparray._array.ndarray import config_values, materialize, ndarray
from dparray._driver import traits_of
from dparray._driver.interface import Queue
from dparray._evaluate import host, limits
from dparray._placement import Placement, check_dtype, check_usm_type
from dparray.device import default_device, queue_of
from dparray.memory import blocks, copies

_PLAIN = frozenset("?bhilBHILfdFD")
#: NumPy dtypes, keyed by dtype, by the classes of NumPy and Python scalars, and by name.
USUAL_DTYPES: dict[Any, np.dtype[Any]] = {
    None: np.dtype(np.float64),
    **{np.dtype(char): np.dtype(char) for char in _PLAIN},
    **{np.dtype(char).type: np.dtype(char) for char in _PLAIN},
    **{kind: np.dtype(kind) for kind in (bool, int, float, complex)},
    **{np.dtype(char).name: np.dtype(char) for char in _PLAIN},
}


def empty_on(
    placement: Placement,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    axes: tuple[int, ...] | None = None,
) -> ndarray:
    """Return an uninitialized array in pool memory: C-contiguous, or with axes in a given order."""
    return ndarray._from_layout(*blocks.allocate(*placement, shape, dtype, axes))


def order_by_columns(x: ndarray) -> tuple[int, ...] | None:
    """Return Fortran's axis order for a result if ``x`` has it, otherwise ``None``."""
    return _layout.order_like(x.shape, x.strides, x.itemsize, "A")


def axes_like(like: ndarray, ndim: int, order: str) -> tuple[int, ...] | None:
    """Return the axis order of a new array that takes over the order of another one."""
    if like.ndim == ndim:
        return _layout.order_like(like.shape, like.strides, like.itemsize, order)
    is_by_columns = order == "A" and order_by_columns(like) is not None
    return tuple(range(ndim))[::-1] if is_by_columns and ndim > 1 else None


def is_made_by_host(size: int, queue: Queue, usm_type: str) -> bool:
    """Return whether the host creates a small new array."""
    return (
        size <= limits.host_elements
        and config_values.get("host_tier", False)
        and host.COMPUTES_AT_ONCE
        and host.can_compute(queue, usm_type)
    )


def full_scalar(value: Any, queue: Queue, dtype: Any = None) -> ndarray:
    """Return a 0-dimensional array with the value of a Python or NumPy scalar."""
    if dtype is None:
        dtype = (
            value.dtype
            if isinstance(value, np.generic)
            else _dtypes.default_for_scalar(type(value), traits_of(queue))
        )
    try:
        values = np.asarray(value, dtype)
    except OverflowError:
        raise OverflowError(
            f"{value} does not fit into {np.dtype(dtype)}; write a floating-point number, such as "
            f"{float(value):g}, or an array with another dtype"
        ) from None
    return from_host(values, queue, "device")


def from_host(values: np.ndarray, queue: Queue, usm_type: str, dtype: Any = None) -> ndarray:
    """Return a new array with the values of a host array.

    Raises:
        DTypeError: arrays do not support the host array's dtype.
        UnsupportedDeviceError: the device cannot compute in the dtype.
    """
    target = check_dtype(_dtypes.as_dtype(values.dtype if dtype is None else dtype), queue)
    if values.dtype.kind not in "biufc":
        _dtypes.as_dtype(values.dtype)
    # The host must not compute with bfloat16, because NumPy promotes it by other rules.
    is_small = is_made_by_host(values.size, queue, check_usm_type(usm_type))
    if is_small and not (_dtypes.is_bfloat16_used and _dtypes.is_bfloat16(target)):
        if _hooks.subscribers:
            _hooks.emit("copy", source="host", target=queue, nbytes=values.size * target.itemsize)
        return ndarray._from_host_value(np.array(values, target, order="K"), queue, usm_type)
    axes = _layout.order_of_copy(values.shape, values.strides)
    result = empty_on(Placement(queue, check_usm_type(usm_type)), values.shape, target, axes)
    seen = result
    if axes is not None:  # The copy is in C order.
        values = values.transpose(axes)
        strides = _layout.contiguous_strides(values.shape, target.itemsize)
        seen = result._view(values.shape, strides, result.offset)
    copies.copy_from_host(
        np.ascontiguousarray(values, target).reshape(values.shape), materialize(seen)
    )
    return result


def chosen_placement(device: Any, usm_type: str | None, sycl_queue: Queue | None) -> Placement:
    return Placement(
        queue_of(device, sycl_queue), check_usm_type("device" if usm_type is None else usm_type)
    )


def placed_like(
    x: ndarray, device: Any, usm_type: str | None, sycl_queue: Queue | None
) -> Placement:
    queue = x.queue if device is None and sycl_queue is None else queue_of(device, sycl_queue)
    return Placement(queue, check_usm_type(x.usm_type if usm_type is None else usm_type))


#: The default device of the last call, and its queue if the host may create arrays there.
_usual: list[Any] = [None, None]


def usual_queue() -> Queue | None:
    """Return the default queue if the host may create arrays there, otherwise ``None``."""
    device = default_device()
    if device is not _usual[0]:
        is_made = (
            "fp64" in traits_of(device.queue).aspects  # float64 is the usual dtype
            and host.COMPUTES_AT_ONCE
            and host.can_compute(device.queue, "device")
        )
        _usual[:] = device, device.queue if is_made else None
    queue: Queue | None = _usual[1]
    return queue


def empty_array(
    placement: Placement,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    order: str,
    like: ndarray | None = None,
) -> ndarray:
    """Return an uninitialized array; ``"A"`` and ``"K"`` use the order of ``like``, otherwise C
    order.
    """
    order = _layout.as_order(order)
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be 'C', 'F', 'A' or 'K'; got {order!r}")
    axes = None
    if order == "F":
        axes = _layout.order_like(shape, (), 0, order)
    elif order != "C" and like is not None:
        axes = axes_like(like, len(shape), order)
    is_small = is_made_by_host(prod(shape), *placement) and not _dtypes.is_bfloat16(dtype)
    if axes is None and is_small:
        return ndarray._from_host_value(np.empty(shape, dtype), *placement)
    return empty_on(placement, shape, dtype, axes)
