"""Arrays in memory as kernels take them: packed once, and kept on the array."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dparray._layout import Layout, Shape, Strides, order_of, shows_elements_twice
from dparray._runtime.submission import Packed, pack_array, pack_flat, pack_pointer
from dparray._type_keys import TypeKey, code_of
from dparray.memory.blocks import BorrowedBlock

_ARRAY_TYPES = frozenset(
    ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
)


class PackedArray:
    """An array as an argument of kernels. It belongs to a layout, which never changes.

    Attributes:
        layout: where the array lies.
        block, offset: of the layout.
        form: dtype, shape, strides, and that it is in memory: what the key of a plan says of it.
        owners: the block, if it is none of the pool: a launch has to keep it alive.
        pointer: where its elements begin, once generated kernels have asked for it.
        shaped: the type key of the array, and the arguments of it with its shape and strides, once
            users' kernels have asked for them.
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
        """Make ``pointer``."""
        block, address = self.block, self.block.pointer + self.offset
        self.pointer = packed = pack_pointer(block.memory, address, block.nbytes)
        return packed

    def pack_shaped(self) -> tuple[str, Packed]:
        """Make ``shaped``.

        Raises:
            TypeError: kernels take no such elements.
        """
        self.shaped = packed = shaped(self.layout)
        return packed


def flat(layout: Layout) -> Packed:
    """Return the arguments of a layout seen as one contiguous dimension."""
    block = layout.block
    return pack_flat(
        block.memory, block.pointer + layout.offset, layout.dtype.itemsize, block.nbytes
    )


def shaped(layout: Layout, is_read_only: bool = False) -> tuple[str, Packed]:
    """Return the type key of a layout, and its arguments with shape and strides.

    Args:
        layout: the layout.
        is_read_only: whether its owner forbids writes.

    Raises:
        TypeError: kernels take no such elements.
    """
    block, offset, shape, strides, dtype = layout
    key = array_key(dtype, shape, strides, is_read_only)
    return key, pack_array(block.memory, block.pointer + offset, dtype.itemsize, shape, strides)


@lru_cache(maxsize=4096)
def array_key(
    dtype: np.dtype[Any], shape: Shape, strides: Strides, is_read_only: bool = False
) -> str:
    """Return the type key of an array; ``strides`` in bytes."""
    code = code_of(dtype)
    if code not in _ARRAY_TYPES:
        raise TypeError(
            f"an array of {dtype.name}; a kernel takes arrays of bool, of integers, of float16, "
            "float32, float64, complex64 and complex128"
        )
    is_read_only = is_read_only or shows_elements_twice(shape, strides)
    order = "R" if is_read_only else order_of(shape, strides, dtype.itemsize)
    return str(TypeKey("array", code, len(shape), order))
