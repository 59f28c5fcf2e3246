"""Exchange arrays with dpnp, dpnp.tensor and objects with ``__sycl_usm_array_interface__``.

Other modules use dpnp through this one, as ``dpnp`` and ``dpt``. It is imported at the first use of
an attribute: the import takes 0.5 s and 250 MB, most of it oneMKL.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import sys
import threading
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dparray._driver import driver_of, drivers
from dparray._driver.interface import Queue
from dparray._dtypes import is_bfloat16
from dparray._imports import when_imported
from dparray._layout import Block, Layout, contiguous_strides
from dparray._runtime.queues import note_work
from dparray.exceptions import ArgumentError, DTypeError
from dparray.memory.blocks import SHARED, BorrowedBlock, Positions
from dparray.memory.segments import slab_of

if TYPE_CHECKING:
    import dpnp
    import dpnp.tensor as dpt

__all__ = [
    "defer_operators",
    "dpnp",
    "dpnp_array",
    "dpt",
    "is_dpnp",
    "is_tensor",
    "later",
    "layout_of_interface",
    "layout_of_tensor",
    "on_queue",
    "tensor_of",
    "wait_for_host_tasks",
]


class _Library:
    """A placeholder for a module, which is imported when an attribute is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self._name), name)
        _make_statics()
        setattr(self, name, value)
        return value


_making_statics = threading.Lock()
_with_statics: set[str] = set()
_OF_ARRAYS = re.compile(r"\((\w+: .*usm_ndarray.*)\) ->")


def _make_statics() -> None:
    """Make dpnp's compiled modules create the objects that they create for their first array.

    They create these behind a C++ lock, and release the interpreter's lock meanwhile: a second
    thread that arrives there would wait forever with the interpreter's lock held. So one thread
    first calls a function of each module, with arguments that it rejects.
    """
    drivers()[0].make_ready()  # type: ignore[attr-defined]
    with _making_statics:
        for name, module in tuple(sys.modules.items()):
            if not name.startswith("dpnp.") or name in _with_statics:
                continue
            _with_statics.add(name)
            for function in vars(module).values():
                text = getattr(function, "__doc__", None)
                found = _OF_ARRAYS.search(text) if type(function) is type(len) and text else None
                if found is not None:
                    with contextlib.suppress(Exception):
                        function(*[object()] * len(re.findall(r"\w+: ", found[1])))
                    break


if not TYPE_CHECKING:
    dpnp, dpt = _Library("dpnp"), _Library("dpnp.tensor")


def allocation_error() -> type[Exception]:
    """Return the class of the library's errors where memory is missing."""
    memory: Any = importlib.import_module("dpctl.memory")
    kind: type[Exception] = memory.USMAllocationError
    return kind


def later(name: str, library: Any = None) -> Callable[..., Any]:
    """Return a function of ``dpt``, or of another library here, that is looked up when it is
    called.

    For functions passed as values that are called only if neither the host nor a kernel computes.
    """
    find = attrgetter(name)

    def function(*args: Any, **kwargs: Any) -> Any:
        return find(dpt if library is None else library)(*args, **kwargs)

    return function


def _type(module: str, name: str) -> Any:
    """Return a dpnp class, or, if dpnp is not imported, a class without instances."""
    return getattr(sys.modules.get(module), name, ())


def is_tensor(obj: object) -> bool:
    """Return whether an object is an array of dpnp.tensor."""
    return isinstance(obj, _type("dpnp.tensor", "usm_ndarray"))


def is_dpnp(obj: object) -> bool:
    """Return whether an object is an array of dpnp."""
    return isinstance(obj, _type("dpnp", "ndarray"))


def tensor_of(layout: Layout, as_bits: bool = False) -> dpt.usm_ndarray:
    """Return the array as a ``dpnp.tensor.usm_ndarray`` over the same memory.

    A caller that lets the library work on it must call :func:`note_work`.

    Args:
        layout: the array.
        as_bits: whether bfloat16 becomes uint16, for copies.

    Raises:
        DTypeError: the array is bfloat16.
    """
    block = layout.block
    if isinstance(block, Positions):
        values = block.values(layout)
        with driver_of(block.queue).foreign_calls(block.queue):
            return dpt.asarray(values, sycl_queue=block.queue, usm_type=block.usm_type)
    itemsize = layout.dtype.itemsize
    dtype = layout.dtype
    if is_bfloat16(dtype):
        if not as_bits:
            raise DTypeError(
                "dpnp, which computes this, has no bfloat16; write x.astype('float32') first"
            )
        dtype = np.dtype(np.uint16)
    return dpt.usm_ndarray(
        layout.shape,
        dtype=dtype,
        strides=tuple(stride // itemsize for stride in layout.strides),
        buffer=block.memory,
        offset=layout.offset // itemsize,
    )


def on_queue(tensor: dpt.usm_ndarray, queue: Queue) -> dpt.usm_ndarray:
    """Return the tensor on another queue of its context, over the same memory, which it keeps
    alive.

    The caller orders the work of both queues.
    """
    if tensor.sycl_queue == queue:
        return tensor
    memory = tensor.usm_data
    shown = driver_of(queue).part(memory, memory._pointer, memory.nbytes, queue)
    return dpt.usm_ndarray(
        tensor.shape,
        dtype=tensor.dtype,
        strides=tensor.strides,
        buffer=shown,
        offset=tensor._element_offset,
    )


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


def layout_of_tensor(
    tensor: dpt.usm_ndarray, is_shared: bool = False, is_read_only: bool = False
) -> Layout:
    """Return the layout of a ``usm_ndarray``, over its memory.

    Args:
        tensor: a result of the library without other references, or
        is_shared: a user's array, which the user can write at any time.
        is_read_only: writes through the layout raise.
    """
    note_work(tensor.sycl_queue)
    itemsize = tensor.dtype.itemsize
    readers = SHARED if is_shared else None
    memory = tensor.usm_data
    return Layout(
        BorrowedBlock(
            memory, memory.nbytes, memory.get_usm_type(), tensor.sycl_queue, readers, is_read_only
        ),
        tensor._element_offset * itemsize,
        tensor.shape,
        tuple(stride * itemsize for stride in tensor.strides),
        tensor.dtype,
    )


def layout_of_interface(obj: Any, keeps_read_only: bool = False) -> Layout:
    """Return the layout of any object with ``__sycl_usm_array_interface__``; the memory is shared.

    Args:
        obj: the object.
        keeps_read_only: writes through the layout raise where the object's owner forbids them.

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
    return layout_of_tensor(tensor, True, keeps_read_only and is_read_only(obj))


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
    strides = interface.get("strides")
    if strides is None:
        strides = contiguous_strides(shape, 1)
    reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    start = interface["data"][0] + interface.get("offset", 0) * itemsize
    first = start + itemsize * sum(min(each, 0) for each in reach)
    last = start + itemsize * (sum(max(each, 0) for each in reach) + 1) - 1
    for address in (first, last):
        try:
            driver_of(interface["syclobj"]).part(obj, address, 1, interface["syclobj"])
        except ValueError:
            raise ArgumentError(
                f"a {type(obj).__module__}.{type(obj).__name__} declares memory from "
                f"{first:#x} to {last:#x}, of shape {shape}, but there is no allocation of its "
                f"queue at {address:#x}; its shape, strides or queue are wrong"
            ) from None


def dpnp_array(tensor: dpt.usm_ndarray) -> Any:
    """Return a ``dpnp.ndarray`` over the memory of a tensor, for functions that only dpnp (oneMKL)
    has.
    """
    return dpnp.ndarray._create_from_usm_ndarray(tensor)


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


def wait_for_host_tasks(queue: Queue) -> None:
    """Wait until all objects that the work on ``queue`` keeps alive are released, before a call of
    oneMKL.

    Each host task that releases them takes the interpreter's lock on one of SYCL's few threads for
    such tasks. dpnp's calls of oneMKL hold the lock while they wait for a host task of their own: a
    deadlock if all those threads wait for the lock (dpnp 0.20: Cholesky of stacks, transforms).
    """
    driver_of(queue).wait_for_kept(queue)
