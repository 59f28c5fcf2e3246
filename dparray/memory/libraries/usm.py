"""Exchange arrays with all that has ``__sycl_usm_array_interface__``: arrays of dpnp, dpnp.tensor
and other libraries over SYCL's memory, which users pass to dparray and make of its arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dparray._driver import driver_of
from dparray._imports import when_imported
from dparray._layout import Block, Layout, contiguous_strides, span_of
from dparray.exceptions import ArgumentError
from dparray.memory.libraries.dpnp import dpnp, dpt, is_tensor, layout_of_tensor, tensor_of
from dparray.memory.segments import slab_of

if TYPE_CHECKING:
    import dpnp.tensor

__all__ = [
    "defer_operators",
    "dpt",
    "is_read_only",
    "layout_of_interface",
    "layout_of_tensor",
    "own_tensor_of",
    "tensor_of",
]


class _SharedMemory:
    """Creates the memory objects of :func:`own_tensor_of`; one class for each USM type."""

    classes: ClassVar[dict[str, Any]] = {}

    @classmethod
    def of(cls, block: Block) -> Any:
        """Return the slab of a block as a memory object with the same queue object, which keeps the
        block alive.
        """
        whole = slab_of(block)
        kind = cls.classes.get(block.usm_type)
        if kind is None:
            kind = type("SharedMemory", (type(whole),), {})
            cls.classes[block.usm_type] = kind
        memory = kind(whole)
        memory.block = block
        return memory


def own_tensor_of(layout: Layout) -> dpt.usm_ndarray:
    """Return :func:`tensor_of` with the same queue object as the array's, if possible.

    dpnp shares memory only between arrays with the same queue object; equal queues are not enough.
    dpctl creates a new queue object for each part of an allocation.
    """
    block = layout.block
    if slab_of(block) is None:
        return tensor_of(layout)
    memory = _SharedMemory.of(block)
    start = block.pointer + layout.offset - memory._pointer
    itemsize = layout.dtype.itemsize
    if start % itemsize:
        return tensor_of(layout)
    return dpt.usm_ndarray(
        layout.shape,
        dtype=layout.dtype,
        strides=tuple(stride // itemsize for stride in layout.strides),
        buffer=memory,
        offset=start // itemsize,
    )


def layout_of_interface(obj: Any) -> Layout:
    """Return the layout of any object with ``__sycl_usm_array_interface__``; the memory is shared.

    Raises:
        DTypeError: the element type is unsupported.
        ArgumentError: elements would lie outside the allocated memory.
    """
    if is_tensor(obj):
        tensor = obj
    elif is_tensor(getattr(obj, "_array_obj", None)):
        tensor = obj._array_obj  # dpnp.ndarray
    else:
        _check_extent(obj)
        tensor = dpt.asarray(obj, copy=False)
    return layout_of_tensor(tensor, True, is_read_only(obj))


def is_read_only(obj: Any) -> bool:
    """Return whether an object with ``__sycl_usm_array_interface__`` forbids writes to its
    memory.
    """
    tensor = getattr(obj, "_array_obj", obj)
    if is_tensor(tensor):
        return not tensor.flags.writable  # without the dictionary, which takes longer
    return bool(obj.__sycl_usm_array_interface__["data"][1])


def _check_extent(obj: Any) -> None:
    """Raise for an object that describes more memory than was allocated: using it would crash the
    process.
    """
    interface = obj.__sycl_usm_array_interface__
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    itemsize = dtype.itemsize
    if interface["data"][0] % dtype.alignment:
        raise ArgumentError(
            f"a {type(obj).__module__}.{type(obj).__name__} has {dtype} elements at address "
            f"{interface['data'][0]:#x}, which is not a multiple of {dtype.alignment}; copy its "
            "bytes to aligned memory first"
        )
    if 0 in shape:
        return
    steps = interface.get("strides") or contiguous_strides(shape, 1)
    start = interface["data"][0] + interface.get("offset", 0) * itemsize
    first, end = span_of(start, shape, [itemsize * step for step in steps], itemsize)
    last = end - 1
    for address in (first, last):
        try:
            driver_of(interface["syclobj"]).part(obj, address, 1, interface["syclobj"])
        except ValueError:
            raise ArgumentError(
                f"a {type(obj).__module__}.{type(obj).__name__} declares memory from "
                f"{first:#x} to {last:#x}, of shape {shape}, but there is no allocation of its "
                f"queue at {address:#x}; its shape, strides or queue are wrong"
            ) from None


def defer_operators(to: type, names: Iterable[str]) -> None:
    """Make operators of dpnp arrays defer to those of another array class.

    dpnp raises for unknown operands, where Python expects an operator to return ``NotImplemented``,
    so that the other operand's operator is tried: ``dpnp.ones(3) + dparray.ones(3)``. In place,
    where the result belongs to dpnp's array, the other operand is converted to a dpnp array over
    the same memory. Nothing else changes for dpnp arrays. If dpnp is not imported yet, this happens
    at its import.
    """

    def defer(library: Any) -> None:
        theirs = library.ndarray
        for name in names:
            setattr(theirs, name, _deferring(getattr(theirs, name), to))
            in_place = f"__i{name[2:]}"
            if hasattr(theirs, in_place):
                setattr(theirs, in_place, _taking(getattr(theirs, in_place), to))

    when_imported("dpnp", defer)


def _deferring(operator: Callable[[Any, Any], Any], to: type) -> Callable[[Any, Any], Any]:
    @functools.wraps(operator)
    def method(self: Any, other: Any, /) -> Any:
        return NotImplemented if isinstance(other, to) else operator(self, other)

    return method


def _taking(operator: Callable[[Any, Any], Any], arrays: type) -> Callable[[Any, Any], Any]:
    @functools.wraps(operator)
    def method(self: Any, other: Any, /) -> Any:
        return operator(self, dpnp.asarray(other) if isinstance(other, arrays) else other)

    return method
