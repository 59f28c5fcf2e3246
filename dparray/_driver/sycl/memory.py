"""USM through dpctl: allocation, parts, copies."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import dpctl.memory

from dparray._driver.sycl.devices import one_object
from dparray._driver.sycl.in_order import foreign_calls, wait_for_host_tasks
from dparray._driver.waiting import interruptible

_CLASSES: dict[str, Any] = {
    "device": dpctl.memory.MemoryUSMDevice,
    "shared": dpctl.memory.MemoryUSMShared,
    "host": dpctl.memory.MemoryUSMHost,
}
_HUGE_PAGE = 2 << 20
_MADV_HUGEPAGE = 14
_madvise: Any = ctypes.CDLL(None).madvise if sys.platform == "linux" else None
if _madvise is not None:
    _madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def allocate(queue: dpctl.SyclQueue, usm_type: str, nbytes: int) -> Any:
    """Return new memory, which is freed when the object dies."""
    queue = one_object(queue)
    is_huge = nbytes >= 2 * _HUGE_PAGE
    memory = _CLASSES[usm_type](nbytes, alignment=_HUGE_PAGE if is_huge else 4096, queue=queue)
    if is_huge and _madvise is not None and queue.sycl_device.is_cpu:
        # Huge pages make the first access several times faster. This is a hint that the kernel
        # may ignore.
        _madvise(memory._pointer, nbytes, _MADV_HUGEPAGE)
    return memory


def pointer(memory: Any) -> int:
    return int(memory._pointer)


class _Part:
    """Bytes of a queue as ``__sycl_usm_array_interface__``; keeps their owner alive."""

    __slots__ = ("__sycl_usm_array_interface__", "owner")

    def __init__(self, owner: Any, pointer: int, nbytes: int, queue: dpctl.SyclQueue) -> None:
        self.owner = owner
        self.__sycl_usm_array_interface__ = {
            "data": (pointer, False),
            "shape": (nbytes,),
            "strides": None,
            "typestr": "|u1",
            "version": 1,
            "syclobj": queue,
        }


def part(owner: Any, pointer: int, nbytes: int, queue: dpctl.SyclQueue) -> Any:
    return dpctl.memory.as_usm_memory(_Part(owner, pointer, nbytes, queue))


def copy(
    queue: dpctl.SyclQueue, target: Any, source: Any, nbytes: int, after: Sequence[Any]
) -> dpctl.SyclEvent:
    """Copy bytes after some events; return the event of the copy."""
    with foreign_calls(queue):
        return queue.memcpy_async(target, source, nbytes, list(after))


def clear(queue: dpctl.SyclQueue, memory: Any) -> None:
    with foreign_calls(queue):
        memory.memset()


def wait_for_queue(queue: dpctl.SyclQueue) -> None:
    interruptible(queue.wait)


def wait_for_kept(queue: dpctl.SyclQueue) -> None:
    wait_for_host_tasks(queue)
