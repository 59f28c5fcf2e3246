"""From arrays to the host, and to other queues."""

from __future__ import annotations

import math
import operator
import sys
import warnings
from collections.abc import Iterator
from typing import Any, SupportsIndex

import numpy as np

from dparray import _dtypes, _hooks, config
from dparray._array.apply import copy_of
from dparray._array.ndarray import (
    as_method,
    has_memory,
    materialize,
    ndarray,
    readable_layout,
)
from dparray._array.operands import warn_of_host_copy
from dparray._driver import traits_of
from dparray._evaluate import host
from dparray._graph.node import Node
from dparray._graph.ops import CONVERT
from dparray._runtime import host_maps
from dparray.device import Device, describe_queue
from dparray.exceptions import DTypeError, HostConversionError, HostCopyWarning, ShapeError
from dparray.memory import async_copy, copies
from dparray.memory.blocks import Positions

as_array = np.asarray


@as_method
def asnumpy(self: ndarray) -> np.ndarray:
    """Return the values as a new NumPy array; waits for the work that writes them.

    Example:
        >>> dp.arange(3, dtype="int32").asnumpy()
        array([0, 1, 2], dtype=int32)
    """
    values, openings = self._host_view, host_maps.openings
    if values is not None and values.nbytes <= copies.COPY_PIECE and host.is_ready(self._block):
        copy = values.copy()
        if host_maps.openings == openings:
            if _hooks.subscribers:
                _hooks.emit("copy", source=self.queue, target="host", nbytes=values.nbytes)
            return copy
    if values is None and self._block is None and not traits_of(self.queue).shares_memory:
        return _read(self)
    return copies.copy_to_host(readable_layout(self))


@as_method
def item(self: ndarray, *index: SupportsIndex | tuple[SupportsIndex, ...]) -> Any:
    """Return one element as a Python scalar; wait for the work that writes it.

    ``x.item(3)`` counts in the flattened array; ``x.item(0, 1)`` and ``x.item((0, 1))`` along axes.

    Raises:
        ShapeError: no index was given and the array has not exactly one element.
    """
    element = self
    if len(index) == 1 and type(index[0]) is tuple:
        index = index[0]
    if index:
        element = self.reshape(-1)[index[0]] if len(index) == 1 else self[index]
    if element.size != 1:
        raise ShapeError(
            f"item: only an array of one element becomes a scalar; this has shape {self.shape}; "
            f"use x.item(i), or dp.asnumpy(x) for all of them"
        )
    values = element._host_view
    if values is not None and host.is_ready(element._block):
        if _hooks.subscribers:
            place = element.queue
            _hooks.emit("copy", source=place, target="host", nbytes=values.nbytes)
        return values.item()
    return _read(element).item()


def _read(x: ndarray) -> np.ndarray:
    source = _source_of_copy(x)
    if source is not None:
        values = copies.copy_to_host(source)
        if x._node.layout is None:  # Before a write to the source, the copy is computed.
            return values
    return copies.copy_to_host(readable_layout(x))


def _source_of_copy(x: ndarray) -> Any:
    """Return the layout that a pending copy, such as ``x[3]``, would copy, because reading it saves
    a launch on a GPU; ``None`` for other arrays.
    """
    is_pending = x._block is None and x._host_view is None
    if not is_pending or traits_of(x.queue).shares_memory:
        return None
    node = x._node_kept
    operands = node.operands  # If another thread has computed the node, it has no operands.
    if node.op is not CONVERT or len(operands) != 1 or not isinstance(operands[0], Node):
        return None
    layout = operands[0].layout
    if layout is None or isinstance(layout.block, Positions):
        return None
    return layout if node.signature == (layout.dtype, layout.dtype) else None


@as_method
def tolist(self: ndarray) -> Any:
    """Return the values as nested Python lists; waits for the work that writes them."""
    return self.asnumpy().tolist()


@as_method
def __bool__(self: ndarray) -> bool:
    if self.size != 1:
        raise ShapeError(
            f"the truth value of an array of shape {self.shape} is ambiguous; "
            f"use dp.any(x) or dp.all(x)"
        )
    return bool(self.item())


@as_method
def __int__(self: ndarray) -> int:
    return int(self.item())


@as_method
def __float__(self: ndarray) -> float:
    return float(self.item())


@as_method
def __complex__(self: ndarray) -> complex:
    return complex(self.item())


@as_method
def __trunc__(self: ndarray) -> int:
    return math.trunc(self.item())


@as_method
def __index__(self: ndarray) -> int:
    if self.dtype.kind not in "iu":
        raise DTypeError(f"an array of dtype {self.dtype} cannot be an index; only integers can")
    if self.shape:
        raise DTypeError(
            f"an array of dtype {self.dtype} and shape {self.shape} cannot be an index; only "
            f"integers without dimensions can"
        )
    return operator.index(self.item())


@as_method
def __bytes__(self: ndarray) -> bytes:
    """Return the values as bytes, rows first; waits for the work that writes them."""
    return self.asnumpy().tobytes()


@as_method
def __array__(self: ndarray, dtype: Any = None, copy: Any = None) -> np.ndarray:
    if not self.shape and copy is not False:
        return np.asarray(self.item(), self.dtype if dtype is None else dtype)  # as float(x) does
    # Not a view: work that writes the memory later would change it at an unknown time.
    if copy is False:
        raise ValueError(
            "__array__: copy=False, but an array becomes NumPy's by a copy; np.from_dlpack(x) "
            "shares memory that the host can read"
        )
    if traits_of(self.queue).driver != "host":  # On the host, a copy moves nothing between devices.
        if config.host_operands == "error":
            raise HostConversionError(
                "Implicit conversion of a dparray array to NumPy is disabled because it copies and "
                "synchronizes. Use x.asnumpy(), or set dp.config.host_operands = 'copy'."
            )
        warn_of_host_copy(f"an array of {self.nbytes} bytes is copied to the host: dp.asnumpy(x)")
    values = self.asnumpy() if dtype is None else self.asnumpy().astype(dtype, copy=False)
    if copy is None and config.host_operands == "error":
        # A function that fills an argument, as SciPy's `output=`, would fill the copy.
        values.flags.writeable = False
    return values


def _array_interface(self: ndarray) -> dict[str, Any]:
    """Return the values for libraries that only support NumPy's interface, if that is allowed."""
    if config.host_operands == "error":
        raise AttributeError(
            "a dparray array has no __array_interface__, because its memory may be the device's "
            "own; write dp.asnumpy(x), or let it be copied: dp.config.host_operands = 'copy'"
        )
    if self.dtype.kind == "V":  # NumPy asks __array__ next, which gives the dtype, too
        raise AttributeError(f"the array interface has no code for {self.dtype.name}")
    warn_of_host_copy(f"an array of {self.nbytes} bytes is copied to the host: dp.asnumpy(x)")
    values = self.asnumpy()
    # The consumer keeps a buffer object alive, but not the owner of an address.
    return values.__array_interface__ | {"data": values.data, "strides": values.strides}


ndarray.__array_interface__ = property(  # type: ignore[attr-defined]
    _array_interface, doc=_array_interface.__doc__
)


@as_method
def __dir__(self: ndarray) -> list[str]:
    hidden = {"mT"} if len(self.shape) < 2 else set()  # undefined for vectors and scalars
    driver = traits_of(self.queue).driver
    if driver != "cuda":
        hidden.add("__cuda_array_interface__")
    if driver != "sycl":
        hidden.update(_OF_SYCL)
    return [name for name in object.__dir__(self) if _is_offered(name) and name not in hidden]


#: Attributes that only arrays on SYCL's devices have.
_OF_SYCL = {
    *("sycl_queue", "sycl_device", "sycl_context", "usm_data"),
    *("__usm_ndarray__", "__sycl_usm_array_interface__"),
}


def _is_offered(name: str) -> bool:
    """Return whether an attribute is usable; some exist only to explain why they are missing."""
    if name == "__array_interface__":
        return config.host_operands != "error"
    if name.startswith("_") and not name.startswith("__"):
        return False
    text = getattr(vars(ndarray).get(name), "__doc__", None) or ""
    return not text.startswith("Not available: ")


@as_method
def to_numpy(self: ndarray, dtype: Any = None, copy: bool = True) -> np.ndarray:
    """Return the values as a NumPy array, under the name that pandas, Matplotlib and xarray use.

    Args:
        dtype: of the result. Defaults to the array's own.
        copy: without effect: the values are always copied.

    Example:
        >>> dp.arange(3, dtype="int32").to_numpy()
        array([0, 1, 2], dtype=int32)
    """
    values = self.asnumpy()
    return values if dtype is None else values.astype(dtype, copy=False)


_MIN_WARNED_ELEMENTS = 1000
_has_warned = False


def _warn_of_iteration(size: int) -> None:
    """Warn once where code of another package reads a long array element by element."""
    global _has_warned
    caller = sys._getframe(2)
    file = caller.f_code.co_filename.replace("\\", "/")
    package = (caller.f_globals.get("__name__") or "").partition(".")[0]
    if "/site-packages/" not in file or package == "dparray":
        return
    _has_warned = True
    warnings.warn(
        f"{package} reads an array of {size} elements one by one, with a copy from the device for "
        "each; give it x.asnumpy()",
        HostCopyWarning,
        stacklevel=3,
    )


@as_method
def __iter__(self: ndarray) -> Iterator[ndarray]:
    shape = self.shape
    if not shape:
        raise TypeError("iteration over an array with 0 dimensions")
    if not _has_warned and len(shape) == 1 and shape[0] >= _MIN_WARNED_ELEMENTS:
        _warn_of_iteration(shape[0])
    if not has_memory(self) or len(shape) > 1:
        materialize(self)  # all of it, since all elements are read
    return map(self.__getitem__, range(shape[0]))


@as_method
def __hash__(self: ndarray) -> int:
    if self.shape:
        raise TypeError(
            f"an array of shape {self.shape} cannot be a key; use x.tobytes() or tuple(x.tolist())"
        )
    return hash(self.item())


@as_method
def to_device(
    self: ndarray, device: Any, /, *, stream: None = None, copy: bool | None = None
) -> ndarray:
    """Return the array on another device or queue: the only way data move.

    Args:
        device: whatever :class:`dparray.Device` takes: a filter string, a device, a queue,
            another array's ``.device``.
        stream: only ``None``.
        copy: ``None`` copies if the queue differs; ``True`` always; ``False`` never, and
            raises where a copy would be needed.

    Returns:
        ``self`` if the queue is the same; otherwise a contiguous copy that shares nothing, of the
        same USM type. The copy is ordered with the work before and after it on both queues, and the
        call does not wait for any. Within one context it goes directly. Between contexts, such as
        those of two platforms or two sub-devices, SYCL gives no address that both may use. There
        the host copies, in a thread that sleeps until the work before it is done. Work that reads
        the copy before it is there waits for it when it is submitted.

    Raises:
        DeviceError: the device is unknown.
        ValueError: ``copy=False`` and the queue differs, or a stream was given.

    Example:
        >>> first, second = (dp.Device("cpu").new_queue() for _ in range(2))
        >>> a, b = dp.ones(3, device=first), dp.ones(3, device=second)
        >>> (a + b.to_device(a.device)).asnumpy()
        array([2., 2., 2.])
    """
    if stream is not None:
        raise ValueError("to_device: streams are not supported; order work by queues")
    queue = Device(device).queue
    if queue == self.queue:
        return copy_of(self) if copy else self
    if copy is False:
        raise ValueError(
            f"to_device: copy=False, but the array is on {describe_queue(self.queue)} and "
            f"would have to be copied to {describe_queue(queue)}"
        )
    _dtypes.check_device(self.dtype, traits_of(queue))
    return ndarray._from_layout(*async_copy.send(materialize(self), queue, self.usm_type))
