"""Pack arrays in memory as kernel arguments, once, and keep the result on the array."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dparray._driver.arguments import POINTER
from dparray._dtypes import is_bfloat16
from dparray._layout import Layout, Shape, Strides, order_of, shows_elements_twice
from dparray._runtime.packing import Packed, address_bytes, pack_numbers, pack_pointer
from dparray._type_keys import TypeKey, code_of
from dparray.memory.blocks import BorrowedBlock

_ARRAY_TYPES = frozenset(
    ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
)


class PackedArray:
    """An array as a kernel argument. It belongs to a layout, which never changes.

    Attributes:
        layout: the layout of the array.
        block, offset: the memory of the layout.
        form: dtype, shape, strides, and a sign that the array is in memory: its part of a plan's
            key.
        owners: the block if it is outside the pool: a launch must keep it alive.
        pointer: the address of its elements, once a generated kernel has used it.
        shaped: the type key of the array, and its arguments with shape and strides, once a user's
            kernel has used them.
    """

    __slots__ = ("block", "form", "layout", "offset", "owners", "pointer", "shaped")

    def __init__(self, layout: Layout) -> None:
        block, offset, shape, strides, dtype = layout
        self.layout = layout
        self.block = block
        self.offset = offset
        self.form = (dtype, shape, strides, False)
        self.owners: tuple[Any, ...] = (block,) if type(block) is BorrowedBlock else ()
        self.pointer: Packed | None = None
        self.shaped: tuple[str, Packed] | None = None

    def pack_pointer(self) -> Packed:
        """Set ``pointer``."""
        block, address = self.block, self.block.pointer + self.offset
        self.pointer = packed = pack_pointer(block.memory, address, block.nbytes)
        return packed

    def pack_shaped(self) -> tuple[str, Packed]:
        """Set ``shaped``.

        Raises:
            TypeError: kernels do not support the element type.
        """
        self.shaped = packed = shaped(self.layout)
        return packed


def shaped(layout: Layout) -> tuple[str, Packed]:
    """Return the type key of a layout, and its arguments with shape and strides in bytes.

    Raises:
        TypeError: kernels do not support the element type.
    """
    block, offset, shape, strides, dtype = layout
    key = array_key(dtype, shape, strides, type(block) is BorrowedBlock and block.is_read_only)
    kinds, before, after, values = pack_numbers(POINTER, dtype.itemsize, shape, strides)
    pointer = address_bytes(block.pointer + offset)
    return key, Packed(kinds, before + pointer + after, (values, block.memory))


@lru_cache(maxsize=4096)
def array_key(
    dtype: np.dtype[Any], shape: Shape, strides: Strides, is_read_only: bool = False
) -> str:
    """Return the type key of an array; ``strides`` in bytes."""
    code = code_of(dtype)
    if code not in _ARRAY_TYPES:
        fix = "; give x.astype('float32'), or its bits: x.view('uint16')"
        raise TypeError(
            f"an array of {dtype.name}; a kernel takes arrays of bool, integers, float16, "
            "float32, float64, complex64 and complex128" + (fix if is_bfloat16(dtype) else "")
        )
    is_read_only = is_read_only or shows_elements_twice(shape, strides)
    order = "R" if is_read_only else order_of(shape, strides, dtype.itemsize)
    return str(TypeKey("array", code, len(shape), order))
