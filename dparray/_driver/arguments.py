"""The types of packed arguments, which `dparray/_runtime/packing.py` writes and drivers read.

A launch passes the numbers of the types, and an address for each argument: that of a scalar, the
value of a pointer, or that of a :class:`LocalMemory`.
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

# The values of DPCTLKernelArgType: scalars in this order, then pointers and local memory.
SCALARS: tuple[Any, ...] = (
    ctypes.c_int8,
    ctypes.c_uint8,
    ctypes.c_int16,
    ctypes.c_uint16,
    ctypes.c_int32,
    ctypes.c_uint32,
    ctypes.c_int64,
    ctypes.c_uint64,
    ctypes.c_float,
    ctypes.c_double,
)
POINTER = len(SCALARS)
LOCAL = POINTER + 1


class LocalMemory(ctypes.Structure):
    """``MDLocalAccessor``: the local memory of a work-group.

    Attributes:
        dimensions: the number of dimensions.
        kind: the position of the element type in :data:`SCALARS`.
        extents: the size of each dimension.
    """

    _fields_ = (
        ("dimensions", ctypes.c_size_t),
        ("kind", ctypes.c_int),
        ("extents", ctypes.c_size_t * 3),
    )

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return prod(self.extents[: self.dimensions]) * ctypes.sizeof(SCALARS[self.kind])
