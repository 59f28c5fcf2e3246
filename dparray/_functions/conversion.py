"""Conversions from other objects to arrays and back; ``asarray`` accepts host data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dparray import _dtypes, _layout
from dparray._array.allocation import chosen_placement, empty_array, from_host, placed_like
from dparray._array.apply import astype_array, cast_unsafe, copy_of, ops
from dparray._array.assignment import assign
from dparray._array.ndarray import array_method, as_method, materialize, ndarray
from dparray._array.operands import (
    arrays_inside,
    check_array,
    dispatch_override,
    host_values,
    is_shareable,
    joined_at_once,
    layout_of,
    moved_inside,
    overriding,
    shared,
    shared_inside,
    stack_nested,
)
from dparray._driver import traits_of
from dparray._driver.interface import Queue
from dparray._evaluate import writes
from dparray._functions.manipulation import reshape
from dparray._functions.public import public
from dparray._functions.reductions import all as all_of
from dparray._placement import check_dtype, check_usm_type, common_placement, placement_of
from dparray._runtime import queues
from dparray.algorithms.tiled_transpose import contiguous_copy
from dparray.device import Device, queue_of
from dparray.exceptions import ArgumentError, DTypeError, HostConversionError
from dparray.memory import async_copy, copies, dlpack_bits
from dparray.memory.blocks import is_read_only
from dparray.memory.libraries import cuda_arrays, usm

__all__ = [
    "array",
    "asanyarray",
    "asarray",
    "asarray_chkfinite",
    "ascontiguousarray",
    "asfortranarray",
    "asnumpy",
    "astype",
    "copy",
    "from_dlpack",
    "frombuffer",
    "fromiter",
    "isfortran",
    "require",
]


#: The device type in DLPack that stands for the host.
_DLPACK_HOST = 1


def asarray_chkfinite(
    obj: Any, dtype: DTypeLike | None = None, order: str | None = None, **place: Any
) -> ndarray:
    """Convert like :func:`asarray`, but raise for NaN and infinity; the host waits for the check.

    Raises:
        ArgumentError: the values include NaN or infinity.

    Example:
        >>> dp.asarray_chkfinite([1.0, 2.0]).shape
        (2,)
    """
    x = asarray(obj, dtype, order, **place)
    if x.dtype.kind in "fc" and not bool(all_of(ops.isfinite(x))):
        raise ArgumentError("asarray_chkfinite: x must not contain NaN or infinity")
    return x


def require(x: Any, dtype: DTypeLike | None = None, requirements: Any = None) -> ndarray:
    """Return an array with a dtype and NumPy's requirements, copied if necessary.

    Args:
        x: whatever :func:`asarray` takes.
        dtype: the dtype.
        requirements: one or more of ``"C"``, ``"F"``, ``"A"`` (aligned) and ``"W"`` (writeable),
            which always hold, ``"O"`` (owns its memory) and ``"E"``.

    Raises:
        ArgumentError: a requirement is unknown, or both orders are requested.

    Example:
        >>> dp.require([[1, 2]], "float32", "F").flags.f_contiguous
        True
    """
    known = {"C": "C", "C_CONTIGUOUS": "C", "CONTIGUOUS": "C", "F": "F", "F_CONTIGUOUS": "F"}
    known |= {"FORTRAN": "F", "A": "A", "ALIGNED": "A", "W": "W", "WRITEABLE": "W"}
    known |= {"O": "O", "OWNDATA": "O", "E": "E", "ENSUREARRAY": "E"}
    given = [requirements] if isinstance(requirements, str) else list(requirements or ())
    unknown = [one for one in given if str(one).upper() not in known]
    if unknown:
        raise ArgumentError(
            f"require: unknown requirement {unknown[0]!r}; expected one of C, F, A, W, O, E"
        )
    wanted = {known[str(one).upper()] for one in given}
    if {"C", "F"} <= wanted:
        raise ArgumentError("require: C and F must not both be required; omit one")
    order = "C" if "C" in wanted else "F" if "F" in wanted else None
    return asarray(x, dtype, order, copy=True if "O" in wanted else None)


@public()
def isfortran(x: ndarray) -> bool:
    """Return whether columns are contiguous and rows are not.

    Example:
        >>> dp.isfortran(dp.ones((2, 3)).T)
        True
    """
    return bool(x.flags.fnc)


_HOST_TYPES = (np.ndarray, np.generic)


_NESTED = (list, tuple)


def asarray(
    obj: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Convert an object that holds numbers to an array.

    Args:
        obj: an array, a NumPy array, a buffer, a Python or NumPy scalar, or an object with
            ``__sycl_usm_array_interface__`` (dpnp), ``__cuda_array_interface__`` (CuPy, Numba) or
            ``__dlpack__``. Also nested sequences of
            scalars and arrays on one queue; with ``device`` or ``sycl_queue`` given, of arrays on
            any queue and NumPy arrays.
        dtype: the dtype of the result; that of ``obj`` by default. Strings and objects (``["1.5",
            "2"]``, a table column) are converted to it.
        order: ``"C"`` or ``"F"``; that of ``obj`` by default.
        copy: ``True`` always copies, ``False`` never copies and raises if a copy is needed,
            ``None`` copies only if needed.
        device: the device of the result. If neither this nor ``sycl_queue`` is given, the queue of
            ``obj`` if it has one, else the default device.
        usm_type: the USM type of the result; that of ``obj`` by default, else ``"device"``.
        sycl_queue: the queue, as an alternative to ``device``.

    Returns:
        ``obj`` itself if it is an array that meets the request, an array that shares the memory of
        USM objects of other libraries, or else a copy.

    Raises:
        DeviceError: the device is unknown, or ``device`` and ``sycl_queue`` disagree.
        DTypeError: arrays do not support the dtype of the values.
        ExecutionPlacementError: arrays inside a sequence are on different queues.
        ArgumentError: a string or object cannot be converted to the requested dtype.
        OverflowError: a Python integer does not fit the dtype.
        ValueError: ``copy=False``, but a copy is needed.

    Example:
        >>> dp.asarray([[1, 2], [3, 4]], dtype="float32").shape
        (2, 2)
    """
    if type(obj) is list and obj and type(obj[0]) is ndarray:
        is_plain = dtype is device is usm_type is sycl_queue is None and copy is not False
        if is_plain and order in (None, "K"):
            small = joined_at_once(obj)
            if small is not None:
                return small
    if usm_type is not None:
        check_usm_type(usm_type)
    order = _layout.as_order(order, None)
    wanted = None if dtype is None else _dtypes.as_dtype(dtype)
    if isinstance(obj, ndarray):
        return rearranged(obj, wanted, order, copy, device, usm_type, sycl_queue)
    is_of_host = isinstance(obj, _HOST_TYPES)
    if not is_of_host and overriding((obj,)) is not None:
        placed = {"device": device, "usm_type": usm_type, "sycl_queue": sycl_queue}
        given = {"dtype": dtype, "order": order, "copy": copy, **placed}
        given = {key: value for key, value in given.items() if value is not None}
        return dispatch_override(asarray, (obj,), **given)
    if is_shareable(obj):
        found = _taken(layout_of(obj), copy)
        return rearranged(found, wanted, order, copy, device, usm_type, sycl_queue)
    if isinstance(obj, _NESTED):
        obj = shared_inside(obj)
        arrays = arrays_inside("obj", obj)
        if arrays and (device is not None or sycl_queue is not None):
            obj = moved_inside(obj, chosen_placement(device, usm_type, sycl_queue).queue)
            arrays = arrays_inside("obj", obj)
        if arrays:
            stacked = stack_nested("asarray", obj, common_placement("asarray", arrays))
            return rearranged(stacked, wanted, order, copy, device, usm_type, sycl_queue)
    elif not is_of_host and hasattr(obj, "__dlpack__"):
        found = from_dlpack(obj, copy=None if copy else copy)
        return rearranged(found, wanted, order, copy, device, usm_type, sycl_queue)
    if copy is False:
        raise ValueError("asarray: copy=False, but host values must be copied to a device")
    placement = chosen_placement(device, usm_type, sycl_queue)
    values = host_values("asarray", obj, placement.queue, wanted)
    if wanted is not None and values.dtype.kind == "c" and wanted.kind not in "bc":
        raise DTypeError(
            f"asarray: complex numbers are not converted to {wanted} implicitly; write "
            "dp.asarray(x).real, or .imag"
        )
    if wanted is not None and wanted.kind in "iu" and not is_of_host and values.dtype != wanted:
        # NumPy converts integers on both sides of 2**63 to floats, and reports those that overflow.
        values = np.asarray(obj, wanted)
    array = from_host(values, placement.queue, placement.usm_type, wanted)
    if order in ("C", "F"):
        return rearranged(array, None, order, None, None, None, None)
    return array


def _taken(layout: _layout.Layout, copy: bool | None) -> ndarray:
    """Return an array over memory of another library; a copy if its owner forbids writes."""
    is_unwritable = is_read_only(layout.block)
    if is_unwritable and copy is False:
        raise ValueError("asarray: copy=False, but the memory of the object is read-only")
    found = ndarray._from_layout(*layout)
    return copy_of(found) if is_unwritable else found


def placed(
    function: str,
    name: str,
    x: Any,
    device: Any,
    usm_type: str | None,
    sycl_queue: Queue | None,
) -> ndarray:
    """Return an operand of a creation function, copied to the requested placement."""
    if device is None and usm_type is None and sycl_queue is None:
        return check_array(function, name, x)
    if not isinstance(x, ndarray | list | tuple) and not is_shareable(x):
        x = check_array(function, name, x)
    return asarray(x, device=device, usm_type=usm_type, sycl_queue=sycl_queue)


def rearranged(
    x: ndarray,
    dtype: np.dtype[Any] | None,
    order: str | None,
    copy: bool | None,
    device: Any,
    usm_type: str | None,
    sycl_queue: Queue | None,
) -> ndarray:
    """Return ``x`` with another dtype, order, placement or USM type; ``x`` if none changes."""
    if order not in (None, "C", "F", "A", "K"):
        raise ValueError(f"order: unknown order {order!r}; expected one of 'C', 'F', 'A', 'K'")
    placement = placed_like(x, device, usm_type, sycl_queue)
    changes_place = placement.queue != x.queue or placement.usm_type != x.usm_type
    changes_dtype = dtype is not None and dtype != x.dtype
    if order == "A":  # NumPy ignores "A" when it converts to another dtype
        is_by_columns = _layout.order_like(x.shape, x.strides, x.itemsize, order) is not None
        order = ("F" if is_by_columns else "C") if copy and not changes_dtype else None
    changes_order = order in ("C", "F") and not _layout.is_contiguous(
        x.shape, x.strides, x.itemsize, order or "C"
    )
    if not (changes_place or changes_dtype or changes_order):
        return copy_of(x, "K") if copy else x
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
        _dtypes.check_device(dtype, traits_of(placement.queue))
        x = astype_array(x, dtype, order="K")
    if changes_place:
        x = ndarray._from_layout(*async_copy.send(materialize(x), *placement))
    if order == "F" and not _layout.is_contiguous(x.shape, x.strides, x.itemsize, "F"):
        result = empty_array(placement_of(x), x.shape, x.dtype, "F")
        assign(result, x)
        return result
    if order == "C" and not _layout.is_contiguous(x.shape, x.strides, x.itemsize):
        return contiguous_copy(x)
    return x


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> ndarray:
    """Return an array from any object with ``__dlpack__``; host memory is copied, USM is shared.

    SYCL needs USM memory, which NumPy and PyTorch on the CPU do not allocate. In the other
    direction, ``torch.from_dlpack(x)`` shares the memory of an array on a CPU device.

    Args:
        x: the producer. Host data (such as NumPy arrays) is copied to ``device``.
        device: the device of the result. By default, the producer's queue if it has one
            (``__sycl_usm_array_interface__``, as dpnp arrays do); otherwise the default queue of
            its device, or the default device for host data.
        copy: see :func:`asarray`.

    Raises:
        TypeError: the object has no ``__dlpack__``.
        ValueError: ``copy=False``, but a copy is needed.

    Example:
        >>> import numpy as np
        >>> dp.from_dlpack(np.arange(3, dtype="int32")).asnumpy()
        array([0, 1, 2], dtype=int32)
    """
    if isinstance(x, ndarray):
        return rearranged(x, None, None, copy, device, None, None)
    if hasattr(x, "__sycl_usm_array_interface__"):  # it names the queue, which DLPack does not
        return rearranged(shared(x), None, None, copy, device, None, None)
    if not hasattr(x, "__dlpack__"):
        raise HostConversionError(
            f"from_dlpack: {type(x).__name__} has no __dlpack__; use dp.asarray(x)"
        )
    kind = x.__dlpack_device__()[0]
    on_host = int(kind) == _DLPACK_HOST
    if on_host:
        if copy is False:
            raise ValueError("from_dlpack: copy=False, but host data must be copied to a device")
        queue = queue_of(device)
        bits = dlpack_bits.Bits(x)
        values = np.from_dlpack(bits)
        if bits.is_bfloat16:
            values = values.view(_dtypes.bfloat16())
        return from_host(values, queue, "device")
    if cuda_arrays.is_dlpack_device(int(kind)):
        found = _taken(cuda_arrays.layout_of_dlpack(x), copy)
        return rearranged(found, None, None, copy, device, None, None)
    bits = dlpack_bits.Bits(x)
    found = ndarray._from_layout(*usm.layout_of_tensor(usm.dpt.from_dlpack(bits), is_shared=True))
    if bits.is_bfloat16:
        found = found.view(_dtypes.bfloat16())
    return rearranged(found, None, None, copy, device, None, None)


@array_method("__dlpack__")
def _dlpack(
    self: ndarray,
    /,
    *,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Export the array as a DLPack capsule over its own memory, or over a copy if needed.

    On an NVIDIA GPU, ``stream`` waits for earlier work on the queue: an address, 1 for the default
    stream (as ``None``), 2 for that of the thread, -1 for no order. On other devices the host
    waits. The host is ``dl_device=(1, 0)``, and the default for an
    array on a CPU device: memory that it can read at its own address is shared, other memory is
    copied. Later work and the host do not wait for each other: call ``dp.synchronize(x)``
    before you read the shared memory again, or use ``x.map()``, which orders both.

    Raises:
        BufferError: ``copy=False``, but a copy is needed; another device was requested; or the
            array is on a sub-device or in a context that DLPack cannot represent.
    """
    of_cuda = cuda_arrays.dlpack_device(self)
    if of_cuda is not None and (dl_device is None or tuple(map(int, dl_device)) == of_cuda):
        source = self.copy() if copy else self
        writes.share(source.block)
        is_versioned = max_version is not None and max_version[0] >= 1
        return cuda_arrays.dlpack(source, materialize(source), stream, is_versioned)
    if _dtypes.is_bfloat16(self.dtype):
        bits = self.view(np.uint16)
        capsule = _dlpack(
            bits, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )
        return dlpack_bits.as_bfloat16(capsule)
    if stream is not None and of_cuda is None:
        raise ValueError("__dlpack__: streams are not supported; order work by queues")
    versions: dict[str, Any] = {} if max_version is None else {"max_version": max_version}
    if dl_device is None:
        dl_device = _dlpack_device(self)
    if int(dl_device[0]) == _DLPACK_HOST:
        if copy is None:
            # DLPack before version 1.0 cannot mark memory as read-only.
            is_unspoken = max_version is None and _is_read_only(self)
            copy = is_unspoken or not copies.is_host_accessible(self.queue, self.usm_type)
        return (self.asnumpy() if copy else _shared_with_host(self)).__dlpack__(**versions)
    if of_cuda is not None:
        raise BufferError(
            f"__dlpack__: the array is on DLPack device {of_cuda}, not {dl_device}; "
            f"move it first: x.to_device(...)"
        )
    source = self.copy() if copy else self
    tensor = usm.dpt.asarray(source)  # through the interface that shares dparray's memory
    place = _oneapi_device(tensor)
    if tuple(map(int, dl_device)) != place:
        raise BufferError(
            f"__dlpack__: the array is on DLPack device {place}, not {dl_device}; "
            f"move it first: x.to_device(...)"
        )
    queues.wait(self.queue)
    return tensor.__dlpack__(**versions)


class _HostMemory:
    """Export the memory of an array as NumPy's array interface; keeps the array alive."""

    def __init__(self, x: ndarray) -> None:
        self.owner = x
        view = copies.host_view(materialize(x))
        self.__array_interface__ = view.__array_interface__


def _shared_with_host(x: ndarray) -> np.ndarray:
    """Return a NumPy array over the memory of an array, after earlier work on the queue.

    Raises:
        BufferError: the host cannot read the memory.
    """
    if not copies.is_host_accessible(x.queue, x.usm_type):
        raise BufferError(
            f"__dlpack__: copy=False, but the host cannot read {x.usm_type} memory of "
            f"{x.device}; omit copy"
        )
    writes.share(x.block)
    queues.wait(x.queue)
    shared_values = np.asarray(_HostMemory(x))
    if _is_read_only(x):
        shared_values.flags.writeable = False
    return shared_values


def _is_read_only(x: ndarray) -> bool:
    """Return whether a write to one element changes others, as after ``broadcast_to``."""
    return _layout.shows_elements_twice(x.shape, x.strides)


@array_method("__dlpack_device__")
def _dlpack_device(self: ndarray) -> tuple[int, int]:
    """Return the DLPack device: the host for CPU devices, whose memory every library can read.

    For NVIDIA GPUs: 2, for shared memory 13, for host memory 3, and the number of the device. For
    other devices: the oneAPI type and the number.

    Raises:
        BufferError: the array is on a sub-device or in a context that DLPack cannot represent.
    """
    if traits_of(self.queue).shares_memory:
        return _DLPACK_HOST, 0
    of_cuda = cuda_arrays.dlpack_device(self)
    if of_cuda is not None:
        return of_cuda
    bits = self.view(np.uint16) if _dtypes.is_bfloat16(self.dtype) else self
    return _oneapi_device(usm.dpt.asarray(bits))


def _oneapi_device(tensor: Any) -> tuple[int, int]:
    kind, number = tensor.__dlpack_device__()
    return int(kind), int(number)


def asnumpy(x: ndarray) -> np.ndarray:
    """Return the values of an array as a new NumPy array; waits for pending work on it.

    Raises:
        HostConversionError: ``x`` is not an array.

    Example:
        >>> dp.asnumpy(dp.ones(2))
        array([1., 1.])
    """
    if isinstance(x, np.ndarray):
        return x
    return check_array("asnumpy", "x", x).asnumpy()


def _can_hold(x: ndarray, dtype: Any, order: Any) -> bool:
    """Return whether the fast path may convert an array: its device computes in the dtype."""
    return dtype is not None and check_dtype(_dtypes.as_dtype(dtype), x.queue) is not None


@as_method
@public(small=np.ndarray.astype, takes=("dtype", "order"), when=_can_hold, mode="convert")
def astype(
    x: ndarray,
    dtype: Any,
    order: str = "K",
    *,
    casting: Any = None,
    subok: bool = True,
    copy: bool = True,
    device: Any = None,
) -> ndarray:
    """Convert the array to another dtype, on the same queue unless ``device`` is given.

    Args:
        x: the array.
        dtype: the new dtype. Complex to real raises, since the imaginary part would be lost.
        order: ``"K"``, the order of ``x``; ``"C"``; ``"F"``; or ``"A"``, ``"F"`` if ``x`` is only F
            contiguous.
        casting: the allowed conversions, as in NumPy. By default, all except complex to real, which
            ``"unsafe"`` allows.
        subok: ignored; arrays have no subclasses.
        copy: ``False`` returns ``x`` itself if nothing changes.
        device: another placement for the result.

    Raises:
        DTypeError: the dtype is unknown, a complex array would become real, or ``casting`` forbids
            the conversion.
        UnsupportedDeviceError: the device does not support the dtype.

    Example:
        >>> dp.ones(2).astype("int32").asnumpy()
        array([1, 1], dtype=int32)
    """
    wanted = _dtypes.as_dtype(dtype)
    if casting is None and x.dtype.kind == "c" and wanted.kind not in "c":
        raise DTypeError(
            f"astype: {x.dtype} to {wanted} would lose the imaginary part; "
            f"write x.real.astype('{wanted}'), or casting='unsafe'"
        )
    if casting is not None and not _dtypes.can_cast(x.dtype, wanted, casting):
        raise DTypeError(
            f"astype: {x.dtype} cannot be converted to {wanted} with casting={casting!r}; omit "
            f"casting="
        )
    if device is not None:
        x = x.to_device(Device(device))
    if order != "K":
        order = _layout.as_order(order, "K")
    if order == "A":
        is_by_columns = _layout.order_like(x.shape, x.strides, x.itemsize, order) is not None
        order = "F" if is_by_columns else "C"
    if x.dtype.kind == "c" and wanted.kind != "c":
        x = cast_unsafe(x, wanted)  # a view of the real parts, if the dtype is right
    if order == "K":
        return astype_array(x, wanted, copy, order)
    return rearranged(x, wanted, order, True if copy else None, None, None, None)


@public(small=np.ndarray.copy, takes=("order",))
def copy(
    x: ndarray,
    order: str = "K",
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Return a copy that shares no memory, by default on the same queue and with the same USM type.

    Example:
        >>> x = dp.zeros(2)
        >>> y = x.copy()
        >>> y[0] = 1
        >>> float(x[0])
        0.0
    """
    order = _layout.as_order(order, "K")
    if placed_like(x, device, usm_type, sycl_queue) != (x.queue, x.usm_type):
        kept = None if order == "K" else order
        return rearranged(x, None, kept, None, device, usm_type, sycl_queue)
    if order == "K":
        return copy_of(x, "K")
    return rearranged(x, None, order, True, None, None, None)


@array_method("copy")
@public(small=np.ndarray.copy, takes=("order",))
def _copy(
    self: ndarray,
    order: str = "C",
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Copy like :func:`dparray.copy`, but keep the order of the axes; the method uses C order."""
    return copy(self, order, device=device, usm_type=usm_type, sycl_queue=sycl_queue)


def array(
    obj: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = True,
    ndmin: int = 0,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Any = None,
) -> ndarray:
    """Convert to an array like :func:`asarray`, with a copy unless ``copy=False``.

    Args:
        obj, dtype, order: see :func:`asarray`.
        copy: see :func:`asarray`. Defaults to ``True``.
        ndmin: the minimum number of dimensions; axes are added in front.
        device, usm_type, sycl_queue: see :func:`asarray`.

    Example:
        >>> dp.array([1, 2], ndmin=2).shape
        (1, 2)
    """
    if type(obj) is not np.ndarray and overriding((obj,)) is not None:
        given = {"dtype": dtype, "order": order, "ndmin": ndmin or None}
        given |= {"device": device, "usm_type": usm_type, "sycl_queue": sycl_queue}
        given = {key: value for key, value in given.items() if value is not None}
        return dispatch_override(array, (obj,), **given)
    result = asarray(
        obj, dtype, order, copy=copy, device=device, usm_type=usm_type, sycl_queue=sycl_queue
    )
    missing = ndmin - result.ndim
    return result if missing <= 0 else reshape(result, (1,) * missing + result.shape)


def asanyarray(
    obj: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    **place: Any,
) -> ndarray:
    """Convert like :func:`asarray`, of which this is NumPy's other name.

    Example:
        >>> dp.asanyarray([1, 2]).shape
        (2,)
    """
    return asarray(obj, dtype, order, device=device, copy=copy, **place)


def ascontiguousarray(obj: Any, dtype: DTypeLike | None = None, **place: Any) -> ndarray:
    """Convert like :func:`asarray`, to a C-contiguous array with at least one dimension.

    Example:
        >>> dp.ascontiguousarray(dp.ones((2, 3)).T).strides
        (16, 8)
    """
    result = asarray(obj, dtype, "C", **place)
    return result if result.ndim else reshape(result, (1,))


def asfortranarray(obj: Any, dtype: DTypeLike | None = None, **place: Any) -> ndarray:
    """Convert like :func:`asarray`, to an F-contiguous array with at least one dimension.

    Example:
        >>> dp.asfortranarray(dp.ones((2, 3))).strides
        (8, 16)
    """
    result = asarray(obj, dtype, "F", **place)
    return result if result.ndim else reshape(result, (1,))


def frombuffer(
    buffer: Any, dtype: DTypeLike | None = None, count: int = -1, offset: int = 0, **place: Any
) -> ndarray:
    """Convert a buffer of bytes to an array on a device.

    Args:
        buffer: an object with the buffer protocol.
        dtype: the dtype of the bytes; the default float if not given.
        count: the number of elements; all if -1.
        offset: the offset of the first byte.
        **place: ``device``, ``usm_type``, ``sycl_queue``; see :func:`asarray`.

    Example:
        >>> dp.frombuffer(b"ab", dtype="uint8").asnumpy()
        array([97, 98], dtype=uint8)
    """
    kind = np.float64 if dtype is None else dtype
    return asarray(np.frombuffer(buffer, kind, count, offset), **place)


def fromiter(iterable: Iterable[Any], dtype: Any, count: int = -1, **place: Any) -> ndarray:
    """Convert the numbers of an iterable to a 1-D array.

    Example:
        >>> dp.fromiter((i * i for i in range(3)), int).asnumpy()
        array([0, 1, 4])
    """
    return asarray(np.fromiter(iterable, dtype, count), **place)
