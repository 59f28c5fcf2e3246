"""Memory of CUDA: allocation, parts, copies.

All addresses are valid on the host's side too: a copy takes any two of them.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Sequence
from typing import Any

from cuda.bindings import driver

from dparray._driver.cuda.context import Current, call, failure, is_refused, push
from dparray._driver.cuda.events import wait
from dparray._driver.cuda.queues import Event, Queue

_OUT_OF_MEMORY = driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY
_ATTACH_GLOBAL = int(driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL)
#: Page-locked memory that all contexts may use.
_PORTABLE = driver.CU_MEMHOSTALLOC_PORTABLE

_ALLOCATE: dict[str, Callable[[int], Any]] = {
    "device": driver.cuMemAlloc,
    "shared": lambda nbytes: driver.cuMemAllocManaged(nbytes, _ATTACH_GLOBAL),
    "host": lambda nbytes: driver.cuMemHostAlloc(nbytes, _PORTABLE),
}


class Memory:
    """Bytes at an address: an allocation, which is freed when this object dies, or a part of one.

    Attributes:
        queue: the queue that it was allocated for.
        nbytes: the size.
        owner: the object that a part keeps alive.
    """

    __slots__ = ("__weakref__", "_free", "_pointer", "nbytes", "owner", "queue")

    def __init__(
        self, queue: Queue, pointer: int, nbytes: int, owner: Any = None, free: Any = None
    ) -> None:
        self.queue = queue
        self._pointer = pointer
        self.nbytes = nbytes
        self.owner = owner
        self._free = free

    def __del__(self, is_at_end: Callable[[], bool] = sys.is_finalizing) -> None:
        # At the end of the process the driver frees everything, and this module has no names.
        if self._free is not None and not (is_at_end() or is_refused()):
            with Current(self.queue.number):
                self._free(self._pointer)


def allocate(queue: Queue, usm_type: str, nbytes: int) -> Memory:
    with Current(queue.number):
        status, pointer = _ALLOCATE[usm_type](nbytes)
    if status == _OUT_OF_MEMORY:
        raise builtins.MemoryError(f"{nbytes} bytes of {usm_type} memory on {queue.name}")
    if status:
        raise failure(status, f"the allocation of {nbytes} bytes on {queue.name}")
    free = driver.cuMemFreeHost if usm_type == "host" else driver.cuMemFree
    return Memory(queue, int(pointer), nbytes, free=free)


def pointer(memory: Memory) -> int:
    return memory._pointer


def part(owner: Any, pointer: int, nbytes: int, queue: Queue) -> Memory:
    whole = getattr(owner, "memory", owner)  # the part of a block
    if not isinstance(whole, Memory):
        kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        with Current(queue.number):
            status, _ = driver.cuPointerGetAttribute(kind, pointer)
        if status:
            raise ValueError(f"there is no memory of {queue.name} at {pointer:#x}")
    return Memory(queue, pointer, nbytes, owner)


def copy(queue: Queue, target: Any, source: Any, nbytes: int, after: Sequence[Event]) -> Event:
    """Copy bytes after some events; return the event of the copy."""
    for event in after:
        if event.queue is not queue:
            queue.follow(after)
            break
    to = target._pointer if isinstance(target, Memory) else target.ctypes.data
    start = source._pointer if isinstance(source, Memory) else source.ctypes.data
    is_pushed = push(queue.context)
    try:
        times = queue.begin() if queue.has_profiling else None
        (status,) = driver.cuMemcpyAsync(to, start, nbytes, queue.handle)
        if status:
            raise failure(status, f"a copy on {queue.name}")
        event = queue.record(times)
    finally:
        if is_pushed:
            driver.cuCtxPopCurrent()
    if not isinstance(target, Memory) or not isinstance(source, Memory):
        queue.keep(event, (target, source))
    return event


def clear(queue: Queue, memory: Memory) -> None:
    with Current(queue.number):
        call(driver.cuMemsetD8Async, memory._pointer, 0, memory.nbytes, queue.handle)
        event = queue.record()
    wait([event])
