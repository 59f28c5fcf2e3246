"""USM memory and the world around it: host copies, copies between queues, dpnp.tensor.

This is the only module that imports ``dpnp.tensor``. Everything that leaves or enters USM memory
passes here, in order with the work on the queues that own it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import dpctl
import dpctl.memory
import dpnp as neighbour
import dpnp.tensor as library
import numpy as np
from dpctl.utils import SequentialOrderManager

from dparray import _hooks, memory
from dparray._layout import contiguous_strides
from dparray._runtime import access
from dparray._runtime.in_order import foreign_calls, wait_for
from dparray.device import is_idle, note_others, note_work, wait, wait_if_working, working

__all__ = [
    "is_idle",
    "library",
    "neighbour",
    "note_others",
    "note_work",
    "wait",
    "wait_if_working",
    "working",
]


# What `readers` of a block says when somebody outside can write its memory at any time: nothing may
# be deferred on it.
SHARED: tuple[()] = ()


class BorrowedBlock:
    """USM memory that somebody else owns, seen as the pool's blocks are.

    Invariant: holds a reference to the owner for as long as an array shows the memory.
    """

    __slots__ = ("memory", "nbytes", "pointer", "queue", "readers", "usm_type")

    def __init__(self, usm_memory: Any, queue: dpctl.SyclQueue, readers: Any = None) -> None:
        if readers is SHARED:
            note_others(queue)
        self.readers = readers
        self.memory = usm_memory
        self.pointer = usm_memory._pointer
        self.nbytes = usm_memory.nbytes
        self.queue = queue
        self.usm_type = usm_memory.get_usm_type()

    @property
    def host_bytes(self) -> np.ndarray:
        """The bytes at their own address, for memory that the host may touch."""
        return memory.bytes_at(self.pointer, self.nbytes)


class Positions:
    """A block with no memory, of int64 elements that are their own positions: 0, 1, 2, ...

    What lies on it begins at offset 0. In kernels the elements are index arithmetic.
    """

    __slots__ = ("nbytes", "queue", "readers", "usm_type")

    memory = None

    def __init__(self, queue: dpctl.SyclQueue, usm_type: str, count: int) -> None:
        self.queue = queue
        self.usm_type = usm_type
        self.nbytes = 8 * count
        self.readers: Any = None

    def values(self, layout: Layout) -> np.ndarray:
        """The elements of a layout on this block."""
        result = np.zeros(layout.shape, np.int64)
        for axis, (extent, stride) in enumerate(zip(layout.shape, layout.strides, strict=True)):
            along = np.arange(extent, dtype=np.int64) * (stride // 8)
            result += along.reshape((-1,) + (1,) * (len(layout.shape) - axis - 1))
        return result


class Layout(NamedTuple):
    """Where the elements of an array lie in a block; offset and strides in bytes."""

    block: Any
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]


class _NoMemory:
    """Stands for a block of memory that would be allocated."""

    def __init__(self, queue: dpctl.SyclQueue, usm_type: str, nbytes: int) -> None:
        self.queue = queue
        self.usm_type = usm_type
        self.nbytes = nbytes
        self.memory = self
        self.readers: Any = None


def planned_layout(
    queue: dpctl.SyclQueue, usm_type: str, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Layout:
    """Where values would lie that :func:`allocate` makes room for; nothing is allocated."""
    block = _NoMemory(queue, usm_type, prod(shape) * dtype.itemsize)
    return Layout(block, 0, shape, contiguous_strides(shape, dtype.itemsize), dtype)


class _Interface:
    """A pointer into a block as ``__sycl_usm_array_interface__``; keeps the block alive."""

    __slots__ = ("__sycl_usm_array_interface__", "block")

    def __init__(self, block: Any, offset: int) -> None:
        self.block = block
        self.__sycl_usm_array_interface__ = {
            "data": (block.pointer + offset, False),
            "shape": (max(block.nbytes - offset, 1),),
            "strides": None,
            "typestr": "|u1",
            "version": 1,
            "syclobj": block.queue,
        }


def memory_at(block: Any, offset: int) -> Any:
    """A ``dpctl.memory`` object whose pointer is ``offset`` bytes into ``block``."""
    if offset == 0:
        return block.memory
    return dpctl.memory.as_usm_memory(_Interface(block, offset))


def tensor_of(layout: Any) -> library.usm_ndarray:
    """The array as a ``dpnp.tensor.usm_ndarray`` over the same memory.

    Whoever lets the library work on it says so with :func:`note_work`.
    """
    if type(layout.block) is Positions:
        values, block = layout.block.values(layout), layout.block
        with foreign_calls(block.queue):
            return library.asarray(values, sycl_queue=block.queue, usm_type=block.usm_type)
    itemsize = layout.dtype.itemsize
    buffer = layout.block.memory  # first: an array finds its place there
    return library.usm_ndarray(
        layout.shape,
        dtype=layout.dtype,
        strides=tuple(stride // itemsize for stride in layout.strides),
        buffer=buffer,
        offset=layout.offset // itemsize,
    )


def layout_of_tensor(tensor: library.usm_ndarray, is_shared: bool = False) -> Layout:
    """The layout of a ``usm_ndarray``, over its memory.

    Args:
        tensor: a result of the library, which nobody else has, or
        is_shared: somebody's array, who can write it at any time.
    """
    note_work(tensor.sycl_queue)
    itemsize = tensor.dtype.itemsize
    return Layout(
        BorrowedBlock(tensor.usm_data, tensor.sycl_queue, SHARED if is_shared else None),
        tensor._element_offset * itemsize,
        tensor.shape,
        tuple(stride * itemsize for stride in tensor.strides),
        tensor.dtype,
    )


def layout_of_interface(obj: Any) -> Layout:
    """The layout of any object with ``__sycl_usm_array_interface__``; the memory is shared.

    Raises:
        DTypeError: its element type is none of ours.
    """
    if isinstance(obj, library.usm_ndarray):
        return layout_of_tensor(obj, is_shared=True)
    if isinstance(getattr(obj, "_array_obj", None), library.usm_ndarray):
        return layout_of_tensor(obj._array_obj, is_shared=True)  # dpnp.ndarray
    return layout_of_tensor(library.asarray(obj, copy=False), is_shared=True)


def dpnp_array(tensor: library.usm_ndarray) -> Any:
    """A ``dpnp.ndarray`` over the memory of a tensor, for what only dpnp itself (oneMKL) can do."""
    return neighbour.ndarray._create_from_usm_ndarray(tensor)


def wait_for_host_tasks(queue: dpctl.SyclQueue) -> None:
    """Wait until all that work on ``queue`` keeps alive is let go, as a call of oneMKL needs it.

    Each of these host tasks takes the interpreter's lock on one of the few threads that SYCL has
    for them. dpnp's calls of oneMKL hold the lock while they wait for a host task of their own, for
    ever if all those threads wait for the lock (dpnp 0.20: Cholesky of stacks, transforms).
    """
    wait_for(SequentialOrderManager[queue].host_task_events)


def host_views(queue: dpctl.SyclQueue, *layouts: Any) -> list[np.ndarray] | None:
    """NumPy arrays over arrays of a CPU device, for what NumPy does faster there; else ``None``.

    Waits for the work before it on the queue, so the caller may read and write until it submits
    work of its own.
    """
    if not is_cpu(queue):
        return None
    if access.holds:
        access.before_read(*layouts)
    if _hooks.subscribers:
        _hooks.emit("host", queue=queue)
    wait_if_working(queue)
    return [host_view(layout) for layout in layouts]


@lru_cache(maxsize=64)
def is_cpu(queue: dpctl.SyclQueue) -> bool:
    """Whether the queue's device is a CPU, whose memory the host shares; asked once."""
    return bool(queue.sycl_device.is_cpu)


def is_host_accessible(queue: dpctl.SyclQueue, usm_type: str) -> bool:
    """Whether the host may read and write the memory at its own address."""
    return usm_type != "device" or is_cpu(queue)


def host_view(layout: Any) -> np.ndarray:
    """A NumPy array over host-accessible USM memory; the caller orders its accesses."""
    if 0 in layout.shape:  # its strides may lead anywhere
        return np.empty(layout.shape, layout.dtype)
    if type(layout.block) is Positions:
        return layout.block.values(layout)
    return np.ndarray(
        layout.shape, layout.dtype, layout.block.host_bytes, layout.offset, layout.strides
    )


#: So many bytes are copied at once; in between it tells of its progress and can be stopped.
COPY_PIECE = 64 << 20


def _copy(target: np.ndarray, source: np.ndarray, task: str) -> None:
    """Copy between host-accessible arrays of one shape, a large one piece by piece."""
    count = -(-target.nbytes // COPY_PIECE)
    if count <= 1:
        target[...] = source
        return
    longest = target.shape.index(max(target.shape))
    axis = next((axis for axis, size in enumerate(target.shape) if size >= count), longest)
    extent = target.shape[axis]
    step = -(-extent // count)
    for start in range(0, extent, step):
        stop = min(start + step, extent)
        piece = (*(slice(None),) * axis, slice(start, stop))
        target[piece] = source[piece]
        if _hooks.subscribers:
            done = target.nbytes * stop // extent
            _hooks.emit("progress", task=task, done=done, total=target.nbytes)


def _pieces(nbytes: int, task: str) -> Iterator[tuple[int, int]]:
    """Where each piece of a copy begins and ends, in bytes."""
    for start in range(0, nbytes, COPY_PIECE):
        stop = min(start + COPY_PIECE, nbytes)
        yield start, stop
        if _hooks.subscribers and nbytes > COPY_PIECE:
            _hooks.emit("progress", task=task, done=stop, total=nbytes)


def copy_from_host(source: np.ndarray, target: Any) -> None:
    """Copy a C-contiguous host array into a C-contiguous layout; returns when it is there."""
    if source.nbytes == 0:
        return
    if access.holds:
        access.before_write(target)
    block = target.block
    queue = block.queue
    if is_host_accessible(queue, block.usm_type):
        wait_if_working(queue)
        _copy(host_view(target), source, "copy to the device")
    else:
        flat = source.reshape(-1).view(np.uint8)
        before = SequentialOrderManager[queue].submitted_events
        for start, stop in _pieces(source.nbytes, "copy to the device"):
            place = memory_at(block, target.offset + start)
            with foreign_calls(queue):
                event = queue.memcpy_async(place, flat[start:stop], stop - start, before)
            wait_for([event])
    if _hooks.subscribers:
        _hooks.emit("copy", source="host", target=queue, nbytes=source.nbytes)


def copy_to_host(layout: Any) -> np.ndarray:
    """A new host array with the values; waits for the work before it on the queue."""
    queue = layout.block.queue
    if access.holds:
        access.before_read(layout)
    result = np.empty(layout.shape, layout.dtype)
    if is_host_accessible(queue, layout.block.usm_type):
        wait_if_working(queue)
        _copy(result, host_view(layout), "copy to the host")
    elif result.nbytes:
        if layout.strides != contiguous_strides(layout.shape, layout.dtype.itemsize):
            layout = packed(layout)
        flat = result.reshape(-1).view(np.uint8)
        before = SequentialOrderManager[queue].submitted_events
        for start, stop in _pieces(result.nbytes, "copy to the host"):
            place = memory_at(layout.block, layout.offset + start)
            with foreign_calls(queue):
                event = queue.memcpy_async(flat[start:stop], place, stop - start, before)
            wait_for([event])
    if _hooks.subscribers:
        _hooks.emit("copy", source=queue, target="host", nbytes=result.nbytes)
    return result


def allocate(
    queue: dpctl.SyclQueue, usm_type: str, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Layout:
    """A C-contiguous layout in fresh memory of the pool."""
    itemsize = dtype.itemsize
    block = memory.allocate(queue, usm_type, prod(shape) * itemsize)
    return Layout(block, 0, shape, contiguous_strides(shape, itemsize), dtype)


def assign(target: Any, source: Any) -> None:
    """Write the values of ``source`` into ``target`` on their common queue, with broadcasting and
    conversion; overlapping memory is copied as if through a temporary.
    """
    if access.holds:
        access.before_write(target)
        if not isinstance(source, int | float | complex):
            access.before_read(source)
    if _hooks.subscribers:
        _hooks.emit("library", function="a copy")
    with foreign_calls(target.block.queue):
        tensor_of(target)[...] = (
            source if isinstance(source, int | float | complex) else tensor_of(source)
        )
    note_work(target.block.queue)


def packed(layout: Any) -> Layout:
    """A C-contiguous copy on the same queue."""
    copy = allocate(layout.block.queue, layout.block.usm_type, layout.shape, layout.dtype)
    assign(copy, layout)
    return copy


def copy_to_queue(layout: Any, queue: dpctl.SyclQueue, usm_type: str) -> Layout:
    """A copy on another queue that shares nothing with the original.

    Device to device where the queues share a context, through the host otherwise. On both
    queues it is ordered with the work before and after it.
    """
    source_queue = layout.block.queue
    if access.holds:
        access.before_read(layout)
    target = allocate(queue, usm_type, layout.shape, layout.dtype)
    nbytes = prod(layout.shape) * layout.dtype.itemsize
    if nbytes == 0:
        return target
    if source_queue.sycl_context != queue.sycl_context:
        copy_from_host(copy_to_host(layout), target)
        return target
    if layout.strides != contiguous_strides(layout.shape, layout.dtype.itemsize):
        layout = packed(layout)
    before = SequentialOrderManager[source_queue].submitted_events
    if source_queue != queue:
        before = before + SequentialOrderManager[queue].submitted_events
    with foreign_calls(queue):
        event = queue.memcpy_async(
            target.block.memory, memory_at(layout.block, layout.offset), nbytes, before
        )
    for ordered in {source_queue, queue}:
        SequentialOrderManager[ordered].add_event_pair([], [event])
        note_work(ordered)
    if _hooks.subscribers:
        _hooks.emit("copy", source=source_queue, target=queue, nbytes=nbytes)
    return target
