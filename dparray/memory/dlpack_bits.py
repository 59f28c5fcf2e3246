"""bfloat16 through DLPack, which neither NumPy nor dpnp exchanges: as its bits, under its own name.

A capsule names the kind of its elements in one byte. NumPy and dpnp exchange the 16 bits as uint16,
and that byte is changed on the way: to "bfloat" in a capsule that is handed out, to "unsigned
integer" in one that is taken.
"""

from __future__ import annotations

import ctypes
from typing import Any

#: DLPack's ``kDLUInt`` and ``kDLBfloat``.
_UINT, _BFLOAT = 1, 4
#: Where the code of the dtype is: in ``DLManagedTensor``, and in ``DLManagedTensorVersioned``,
#: which begins with the version, the manager's context, the deleter and the flags.
_CODE_AT = {b"dltensor": 20, b"dltensor_versioned": 32 + 20}

_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _dtype_code(capsule: Any) -> Any:
    """Return the bytes of code and bits in a capsule, to read and to write."""
    name = _name_of(capsule)
    return (ctypes.c_uint8 * 2).from_address(_pointer_of(capsule, name) + _CODE_AT[name])


def as_bfloat16(capsule: Any) -> Any:
    """Return a capsule of uint16 as one of bfloat16."""
    _dtype_code(capsule)[0] = _BFLOAT
    return capsule


class Bits:
    """An object with ``__dlpack__``, whose bfloat16 is exchanged as uint16.

    Attributes:
        is_bfloat16: whether the last capsule was bfloat16.
    """

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.is_bfloat16 = False

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.owner.__dlpack__(**options)
        code = _dtype_code(capsule)
        self.is_bfloat16 = tuple(code) == (_BFLOAT, 16)
        if self.is_bfloat16:
            code[0] = _UINT
        return capsule

    def __dlpack_device__(self) -> Any:
        return self.owner.__dlpack_device__()
