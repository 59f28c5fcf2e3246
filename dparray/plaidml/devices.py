"""Contexts, devices, shapes and tensors, under PlaidML's names."""

from __future__ import annotations

import contextlib
import ctypes
import enum
import warnings
import weakref
from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from dparray._array.ndarray import ndarray
from dparray._functions.creation import empty
from dparray.device import Device as ArrayDevice
from dparray.device import devices as array_devices
from dparray.plaidml.exceptions import (
    Cancelled,
    FailedPrecondition,
    InvalidArgument,
    PlaidMLError,
)
from dparray.plaidml.views import View
from dparray.tilelang.values import set_floatx as _set_floatx


class Context:
    """A scope of work: cancelling it cancels all work that was submitted in it.

    Attributes:
        eventlog_filename: where an event log was asked for; none is written.
    """

    def __init__(self) -> None:
        self._is_open = True
        self.eventlog_filename: str | None = None

    def cancel(self) -> None:
        """Reject further work; submitted work completes. A second call does nothing."""
        self._is_open = False

    shutdown = cancel

    def set_eventlog_filename(self, filename: str) -> None:
        """Accept a file name, as PlaidML does; nothing is written. Use :func:`dparray.profile`."""
        self.eventlog_filename = filename

    def check(self) -> None:
        """Raise :class:`Cancelled` if the context is closed."""
        if not self._is_open:
            raise Cancelled("the context was cancelled or shut down; make another: Context()")


class DType(enum.IntEnum):
    """Element types, under PlaidML's names."""

    BOOLEAN = 2
    INT8 = 0x10
    INT16 = 0x11
    INT32 = 0x12
    INT64 = 0x13
    UINT8 = 0x20
    UINT16 = 0x21
    UINT32 = 0x22
    UINT64 = 0x23
    FLOAT16 = 0x31
    FLOAT32 = 0x32
    FLOAT64 = 0x33

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype of the type."""
        return np.dtype("bool" if self is DType.BOOLEAN else self.name.lower())


def dtype_of(array: np.dtype[Any]) -> DType:
    """Return PlaidML's type for a dtype."""
    return DType.BOOLEAN if array == np.bool_ else DType[array.name.upper()]


def set_floatx(dtype: DType) -> None:
    """Set the type of float literals and Python floats."""
    _set_floatx(DType(dtype).numpy)


class Dimension(NamedTuple):
    """A dimension: its size, and its stride in elements."""

    size: int
    stride: int


class Shape:
    """The type and the sizes of a tensor in row-major order.

    Attributes:
        dtype: the :class:`DType`.
        offset: of the first element.
    """

    def __init__(self, ctx: Context, dtype: DType, *dims: int) -> None:
        ctx.check()
        if not all(isinstance(size, int | np.integer) and size >= 0 for size in dims):
            raise InvalidArgument(f"the sizes {dims}; they are integers from 0")
        self.dtype = DType(dtype)
        self.offset = 0
        self._dims = tuple(int(size) for size in dims)

    @property
    def dims(self) -> tuple[int, ...]:
        """The sizes."""
        return self._dims

    @property
    def ctype(self) -> Any:
        """The ctypes type of an element; for float16, of its bits."""
        if self.dtype is DType.FLOAT16:
            return ctypes.c_uint16
        return np.ctypeslib.as_ctypes_type(self.dtype.numpy)

    @property
    def dimensions(self) -> list[Dimension]:
        """The dimensions."""
        return [
            Dimension(size, prod(self._dims[axis + 1 :])) for axis, size in enumerate(self._dims)
        ]

    @property
    def dimension_count(self) -> int:
        """The number of dimensions."""
        return len(self._dims)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shape) and (self.dtype, self._dims) == (other.dtype, other._dims)

    def __hash__(self) -> int:
        return hash((self.dtype, self._dims))

    def __repr__(self) -> str:
        return f"Shape({self.dtype.name}, {', '.join(map(str, self._dims))})"


class DeviceConfig(NamedTuple):
    """A device that can be opened."""

    id: bytes
    config: str
    description: bytes
    details: str
    device: ArrayDevice


def devices(ctx: Context, limit: int = 1, return_all: bool = False) -> Any:
    """Return the available devices.

    Args:
        ctx: the context.
        limit: the largest number of devices.
        return_all: also those that cannot be used: a pair of lists, the second of which is empty.

    Raises:
        PlaidMLError: there is none, or more than ``limit``.
    """
    ctx.check()
    found = []
    for each in array_devices():
        name = str(each)
        found.append(DeviceConfig(name.encode(), name, repr(each).encode(), name, each))
    if return_all:
        return found, []
    if not found:
        raise PlaidMLError("there is no device; `dparray doctor` says why")
    if len(found) > limit:
        raise PlaidMLError(
            f"there are {len(found)} devices: {', '.join(each.config for each in found)}; choose "
            "one, or raise the limit: devices(ctx, limit=10)[0]"
        )
    return found


class Device:
    """An open device.

    Attributes:
        queue: where everything on it runs.
    """

    def __init__(self, ctx: Context, config: Any) -> None:
        ctx.check()
        self._context = ctx
        if isinstance(config, DeviceConfig):
            chosen = config.device
        else:
            try:
                chosen = ArrayDevice(config)
            except Exception as error:
                raise InvalidArgument(f"the device {config!r}: {error}") from error
        self.queue = chosen.queue
        self._tensors: weakref.WeakSet[Tensor] = weakref.WeakSet()
        self._is_open = True

    def get_context(self) -> Context:
        """Return the context in which the device was opened."""
        return self._context

    def check(self) -> None:
        """Raise if the device is closed."""
        if not self._is_open:
            raise FailedPrecondition("the device was closed; open it again: Device(ctx, config)")

    def close(self) -> None:
        """Free the buffers of all tensors on it."""
        self._is_open = False
        for tensor in list(self._tensors):
            tensor.free()


@contextlib.contextmanager
def open_first_device(ctx: Context) -> Iterator[Device]:
    """Open the first device; the end of the block closes it.

    Example:
        >>> from dparray import plaidml
        >>> ctx = plaidml.Context()
        >>> with plaidml.open_first_device(ctx) as device:
        ...     tensor = plaidml.Tensor(device, plaidml.Shape(ctx, plaidml.DType.FLOAT32, 2, 3))
        ...     with tensor.mmap_discard(ctx) as view:
        ...         view[:] = range(6)
        ...         view.writeback()
        ...     tensor.as_ndarray(ctx).tolist()
        [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """
    device = Device(ctx, devices(ctx, limit=10)[0])
    try:
        yield device
    finally:
        device.close()


class Tensor:
    """A buffer on a device with a shape; its contents are undefined until they are written.

    Attributes:
        shape: the :class:`Shape`.
        device: where it lies.
    """

    def __init__(self, dev: Device, shape: Shape, copy_buffer: Any = None) -> None:
        dev.check()
        self.device = dev
        self.shape = shape
        self._array: ndarray | None = empty(
            shape.dims, shape.dtype.numpy, sycl_queue=dev.queue, usm_type="device"
        )
        self._kept: Any = None
        dev._tensors.add(self)
        if copy_buffer is not None:
            with self.mmap_discard(dev.get_context()) as view:
                view.copy_from_ndarray(copy_buffer)
                view.writeback()

    @property
    def array(self) -> ndarray:
        """The contents as a dparray array in the same memory."""
        if self._array is None:
            raise FailedPrecondition("the tensor's device was closed, which freed its buffer")
        return self._array

    def free(self) -> None:
        """Free the buffer."""
        self._array = None

    @contextlib.contextmanager
    def mmap_discard(self, ctx: Context) -> Iterator[View]:
        """Return a view for writing; the previous contents of the tensor are lost.

        Raises:
            MapError: another view of it is open in this thread.
        """
        ctx.check()
        yield from self._viewed("w")

    @contextlib.contextmanager
    def mmap_current(self, ctx: Context | None = None) -> Iterator[View]:
        """Return a view of the contents, after all runs that write to them.

        Raises:
            MapError: another view of it is open in this thread.
        """
        yield from self._viewed("rw")

    def _viewed(self, mode: str) -> Iterator[View]:
        # Closing a map of mode "w" writes its memory back, even for a view without writeback().
        view = View(self.array.map("rw"), mode == "rw")
        try:
            yield view
            if view.is_lost:
                warnings.warn(
                    "plaidml: a view of a tensor was assigned to and left without "
                    "view.writeback(), so nothing was written to the tensor; add "
                    "view.writeback() at the end of the block",
                    stacklevel=4,
                )
        finally:
            if view._values is not None:
                view._end()

    def as_ndarray(self, ctx: Context) -> Any:
        """Return the contents as a NumPy array, the same object in every call."""
        ctx.check()
        values = self.array.asnumpy()
        if self._kept is None:
            self._kept = values.copy()
        self._kept[...] = values
        return self._kept
