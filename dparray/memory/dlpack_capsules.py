"""DLPack's capsules over memory that NumPy and dpnp do not know: write and read them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dparray import _dtypes
from dparray.exceptions import DTypeError

_READ_ONLY = 1
_VERSION = (1, 1)
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
BFLOAT = 4


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_STRUCTURES = {b"dltensor": _Managed, b"dltensor_versioned": _Versioned}
# A capsule keeps the address of its name, so the names exist as long as the process.
_USED = {name: b"used_" + name for name in _STRUCTURES}
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)


class _Memory:
    """Describes memory to NumPy, which keeps this object, and with it the owner of the memory."""

    def __init__(self, owner: Any, **interface: Any) -> None:
        self.owner = owner
        self.__array_interface__ = interface


def capsule_of(
    owner: Any,
    pointer: int,
    device: tuple[int, int],
    shape: Sequence[int],
    strides: Sequence[int],
    dtype: np.dtype[Any],
    is_read_only: bool,
    is_versioned: bool,
) -> Any:
    """Return a capsule over an array's memory, which keeps its owner alive.

    NumPy makes the capsule, without reading the memory, and releases it: the destructor of a
    capsule may run while an exception is raised, so it cannot be a Python function.

    Args:
        owner: what owns the memory.
        pointer: the address of the first element.
        device: DLPack's device.
        shape: the shape.
        strides: the strides in bytes.
        dtype: the dtype.
        is_read_only: whether consumers must not write; only a versioned capsule says so.
        is_versioned: whether it is a capsule of DLPack 1, if NumPy is at least 2.1.
    """
    is_bfloat16 = _dtypes.is_bfloat16(dtype)
    stored = np.dtype(np.uint16) if is_bfloat16 else dtype
    memory = _Memory(
        owner,
        version=3,
        data=(pointer, is_read_only),
        shape=tuple(shape),
        strides=tuple(strides),
        typestr=stored.str,
    )
    view: Any = np.asarray(memory)
    try:
        capsule = view.__dlpack__(max_version=_VERSION) if is_versioned else view.__dlpack__()
    except TypeError:  # NumPy 2.0
        capsule = view.__dlpack__()
    tensor = tensor_of(capsule)
    tensor.device_type, tensor.device_id = device
    if is_bfloat16:
        tensor.code = BFLOAT
    return capsule


class _Owner:
    """Calls the deleter of a capsule that was taken, when the last array over it dies."""

    def __init__(self, address: int, deleter: int | None) -> None:
        self._address, self._deleter = address, deleter

    def __del__(self) -> None:
        if self._deleter:
            _Deleter(self._deleter)(self._address)


class Taken(NamedTuple):
    """The array in a capsule; strides are in bytes."""

    owner: Any
    pointer: int
    device: tuple[int, int]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype[Any]
    is_read_only: bool


def _content_of(capsule: Any) -> tuple[bytes, int, Any]:
    """Return the name of a capsule, and the address and the structure behind it."""
    name = next(each for each in _STRUCTURES if _is_valid(capsule, each))
    address = _pointer_of(capsule, name)
    return name, address, _STRUCTURES[name].from_address(address)


def tensor_of(capsule: Any) -> Any:
    """Return the description of a capsule's array, to read and to write."""
    return _content_of(capsule)[2].tensor


def take(capsule: Any) -> Taken:
    """Take the array of a capsule.

    Raises:
        DTypeError: there is no such dtype.
    """
    name, address, structure = _content_of(capsule)
    tensor = structure.tensor
    dtype = _dtype(tensor.code, tensor.bits, tensor.lanes)
    _rename(capsule, _USED[name])
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = (
        tuple(stride * dtype.itemsize for stride in tensor.strides[: tensor.ndim])
        if tensor.strides
        else None
    )
    return Taken(
        _Owner(address, structure.deleter),
        (tensor.data or 0) + tensor.byte_offset,
        (tensor.device_type, tensor.device_id),
        shape,
        strides,
        dtype,
        name != b"dltensor" and bool(structure.flags & _READ_ONLY),
    )


def _dtype(code: int, bits: int, lanes: int) -> np.dtype[Any]:
    if (code, bits, lanes) == (BFLOAT, 16, 1):
        return _dtypes.bfloat16()
    kinds = {number: kind for kind, number in CODES.items()}
    if code not in kinds or lanes != 1 or bits % 8:
        raise DTypeError(f"from_dlpack: elements of code {code}, {bits} bits and {lanes} lanes")
    return np.dtype(f"{kinds[code]}{bits // 8}")
