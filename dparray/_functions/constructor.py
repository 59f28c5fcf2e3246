"""``dp.ndarray(shape, dtype=...)``, with the signature of NumPy's constructor."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from dparray import _dtypes, _layout
from dparray._array.ndarray import as_method, materialize, ndarray, take_layout_of
from dparray._driver import traits_of
from dparray._driver.interface import Queue
from dparray._functions.creation import empty
from dparray._placement import check_dtype
from dparray._runtime import host_maps
from dparray.exceptions import ArgumentError, HostConversionError, ShapeError

__all__: list[str] = []


@as_method
def __init__(
    self: ndarray,
    shape: int | Sequence[int],
    dtype: Any = None,
    buffer: ndarray | None = None,
    offset: int = 0,
    strides: Sequence[int] | None = None,
    order: str | None = None,
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> None:
    """Return an array whose values are undefined, or another view of an array's memory.

    Args:
        shape: the shape of the array.
        dtype: the default is the device's default float dtype (``float64`` where there is fp64).
        buffer: a contiguous dparray array, whose memory and queue the new array shares.
        offset: bytes from the first element of ``buffer``.
        strides: the distance in bytes between consecutive elements along each axis.
        order: ``"C"`` (rows first, the default) or ``"F"`` (columns first).
        device, usm_type, sycl_queue: see :func:`dparray.empty`; not with ``buffer``.

    Raises:
        HostConversionError: ``buffer`` is host memory.
        ArgumentError: ``buffer`` is not contiguous; ``offset`` or ``strides`` are given without it;
            or it is given together with a placement.
        ShapeError: the elements are not within ``buffer``, or ``shape`` is not a shape.

    Example:
        >>> dp.ndarray((2, 3), dtype="int32").shape
        (2, 3)
        >>> x = dp.arange(6.0)
        >>> dp.ndarray((2,), x.dtype, buffer=x, offset=16).asnumpy()
        array([2., 3.])
    """
    order = _layout.as_order("C" if order is None else order)
    if buffer is None:
        if strides is not None or offset:
            raise ArgumentError(
                "ndarray: offset and strides require buffer=; give it, or omit them"
            )
        made = empty(shape, dtype, order, device=device, usm_type=usm_type, sycl_queue=sycl_queue)
    else:
        if device is not None or usm_type is not None or sycl_queue is not None:
            raise ArgumentError(
                "ndarray: the placement of buffer= cannot be changed; omit device, "
                "usm_type and sycl_queue"
            )
        made = _over(buffer, shape, dtype, offset, strides, order)
    self.queue, self.usm_type = made.queue, made.usm_type
    take_layout_of(self, made)


def _over(
    buffer: Any, shape: Any, dtype: Any, offset: int, strides: Sequence[int] | None, order: str
) -> ndarray:
    """Create an array over the memory of another array."""
    if not isinstance(buffer, ndarray):
        raise HostConversionError(
            f"ndarray: buffer of type {type(buffer).__name__} is host memory, and arrays "
            "are on a device; copy it there: dp.asarray(numpy.ndarray(shape, dtype, buffer))"
        )
    source = materialize(buffer)
    if not _layout.is_contiguous(source.shape, source.strides, source.dtype.itemsize):
        raise ArgumentError("ndarray: the buffer is not contiguous; give buffer=x.copy()")
    shape = _layout.check_shape(shape)
    kind = _dtypes.default_float(traits_of(buffer.queue))
    if dtype is not None:
        kind = check_dtype(_dtypes.as_dtype(dtype), buffer.queue)
    steps = _layout.contiguous_strides(shape, kind.itemsize, "F" if order == "F" else "C")
    if strides is not None:
        steps = tuple(operator.index(step) for step in strides)
        if len(steps) != len(shape):
            raise ShapeError(f"ndarray: {len(steps)} strides for {len(shape)} dimensions")
    start = operator.index(offset)
    low, high = host_maps.span_of(start, shape, steps, kind.itemsize)
    if low < 0 or high > buffer.nbytes:
        raise ShapeError(
            f"ndarray: {kind} elements of shape {shape} at offset {start} in strides of {steps} "
            f"bytes take bytes {low} to {high}; the buffer has {buffer.nbytes}"
        )
    if (source.offset + start) % kind.itemsize or any(step % kind.itemsize for step in steps):
        raise ArgumentError(
            f"ndarray: offset {start} and strides {steps} do not lead to whole {kind} elements; "
            f"give multiples of {kind.itemsize} bytes"
        )
    return ndarray._from_layout(source.block, source.offset + start, shape, steps, kind)
