"""DLPack's capsules over memory that NumPy and dpnp do not know: write and read them.

State: the exported arrays, until their consumers release them.
"""

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
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, _Destructor]
# These take addresses, because a capsule that is being destroyed cannot be passed as an object.
_is_valid = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)
_exported: dict[int, tuple[Any, ...]] = {}


@_Deleter
def _release(address: int) -> None:
    _exported.pop(address, None)


@_Destructor
def _drop(capsule: int) -> None:
    """Release the array of a capsule that no consumer took."""
    for name in _STRUCTURES:
        if _is_valid(capsule, name):
            _release(_pointer_of(capsule, name))


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

    Args:
        owner: what owns the memory.
        pointer: the address of the first element.
        device: DLPack's device.
        shape: the shape.
        strides: the strides in bytes.
        dtype: the dtype.
        is_read_only: whether consumers must not write; only a versioned capsule says so.
        is_versioned: whether it is a capsule of DLPack 1.
    """
    name = b"dltensor_versioned" if is_versioned else b"dltensor"
    structure: Any = _STRUCTURES[name]()
    sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    steps = (ctypes.c_int64 * max(1, len(shape)))(*(each // dtype.itemsize for each in strides))
    tensor = structure.tensor
    tensor.data, tensor.ndim = pointer, len(shape)
    tensor.device_type, tensor.device_id = device
    tensor.code = BFLOAT if _dtypes.is_bfloat16(dtype) else CODES[dtype.kind]
    tensor.bits, tensor.lanes = 8 * dtype.itemsize, 1
    tensor.shape = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
    tensor.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
    structure.deleter = ctypes.cast(_release, ctypes.c_void_p)
    if is_versioned:
        structure.major, structure.minor = _VERSION
        structure.flags = _READ_ONLY * is_read_only
    address = ctypes.addressof(structure)
    _exported[address] = (structure, sizes, steps, owner)
    return _new(address, name, _drop)


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
    name = next(each for each in _STRUCTURES if _is_valid(id(capsule), each))
    address = _pointer_of(id(capsule), name)
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
    _rename(capsule, b"used_dltensor" + name.removeprefix(b"dltensor"))
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = (
        tuple(each * dtype.itemsize for each in tensor.strides[: tensor.ndim])
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
