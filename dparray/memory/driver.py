"""Allocate segments with SYCL, and measure the free host memory."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Hashable
from typing import Any, ClassVar, Protocol

import dpctl.memory
import numpy as np

from dparray._driver import is_queue, place_of, traits_of
from dparray._driver.interface import Queue
from dparray._driver.sycl.devices import one_object
from dparray._runtime.in_order import wait_for_host_tasks
from dparray._runtime.queues import wait
from dparray._runtime.waiting import interruptible
from dparray.device import Device, describe_device, describe_queue, supports_usm
from dparray.exceptions import DeviceError

__all__ = ["Driver"]

# Small blocks are split from slabs of this size, which is also the size of a huge page.
SLAB = 2 << 20


class Driver(Protocol):
    """The part of SYCL that the pool uses; tests replace it with a simulation."""

    def queue_of(self, device: Any) -> Any:
        """Return the queue for a device argument."""

    def context_and_device(self, queue: Any) -> Hashable:
        """Return the context and the device of ``queue``; equal pairs share a pool."""

    def describe(self, queue: Any) -> tuple[str, str]:
        """Return a readable name of the device and the queue."""

    def supports(self, queue: Any, usm_type: str) -> bool:
        """Return whether the device has USM of that type."""

    def capacity(self, queue: Any) -> tuple[int, int | None]:
        """Return the largest allocation and the total memory (``None``: the driver decides)."""

    def available(self, queue: Any, usm_type: str, held: int) -> int | None:
        """Return the free bytes of the host beyond ``held``, if such memory is host memory."""

    def allocate(self, queue: Any, usm_type: str, nbytes: int) -> Any:
        """Return new memory, freed when the object dies; raises ``builtins.MemoryError``."""

    def pointer(self, memory: Any) -> int:
        """Return the address of the first byte."""

    def part(self, memory: Any, pointer: int, nbytes: int, queue: Any) -> Any:
        """Return a part of ``memory`` as a separate object that keeps the whole alive."""

    def wait(self, queue: Any) -> None:
        """Wait for all work submitted to ``queue``."""


def bytes_at(pointer: int, nbytes: int) -> np.ndarray:
    """Return a NumPy array over bytes at an address; the memory's owner keeps them alive."""
    return np.frombuffer(memoryview((ctypes.c_char * nbytes).from_address(pointer)), np.uint8)


_MADV_HUGEPAGE = 14


_madvise: Any = ctypes.CDLL(None).madvise if sys.platform == "linux" else None


if _madvise is not None:
    _madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class _Part:
    """A part of an allocation as ``__sycl_usm_array_interface__``; keeps the whole alive."""

    __slots__ = ("__sycl_usm_array_interface__", "whole")

    def __init__(self, whole: Any, pointer: int, nbytes: int, queue: Queue) -> None:
        self.whole = whole
        self.__sycl_usm_array_interface__ = {
            "data": (pointer, False),
            "shape": (nbytes,),
            "strides": None,
            "typestr": "|u1",
            "version": 1,
            "syclobj": queue,
        }


class SyclDriver:
    """USM allocated through dpctl."""

    _classes: ClassVar[dict[str, Any]] = {
        "device": dpctl.memory.MemoryUSMDevice,
        "shared": dpctl.memory.MemoryUSMShared,
        "host": dpctl.memory.MemoryUSMHost,
    }

    def queue_of(self, device: Any) -> Queue:
        return Device(device).queue

    def context_and_device(self, queue: Queue) -> Hashable:
        if not is_queue(queue):
            raise DeviceError(
                f"allocate: {queue!r} is not a dpctl.SyclQueue; use `dp.Device(...).queue`"
            )
        return place_of(queue)

    def describe(self, queue: Queue) -> tuple[str, str]:
        return describe_device(queue), describe_queue(queue)

    def supports(self, queue: Queue, usm_type: str) -> bool:
        return supports_usm(traits_of(queue), usm_type)

    def capacity(self, queue: Queue) -> tuple[int, int | None]:
        traits = traits_of(queue)
        return traits.largest, traits.memory if traits.shares_memory else None

    def available(self, queue: Queue, usm_type: str, held: int) -> int | None:
        if traits_of(queue).shares_memory or usm_type == "host":
            return _host_memory_left(held)
        return None

    def allocate(self, queue: Queue, usm_type: str, nbytes: int) -> Any:
        queue = one_object(queue)
        is_huge = nbytes >= 2 * SLAB
        memory = self._classes[usm_type](nbytes, alignment=SLAB if is_huge else 4096, queue=queue)
        if is_huge and _madvise is not None and traits_of(queue).shares_memory:
            # Huge pages make the first access several times faster. This is a hint that the kernel
            # may ignore.
            _madvise(memory._pointer, nbytes, _MADV_HUGEPAGE)
        return memory

    def pointer(self, memory: Any) -> int:
        return int(memory._pointer)

    def part(self, memory: Any, pointer: int, nbytes: int, queue: Queue) -> Any:
        return dpctl.memory.as_usm_memory(_Part(memory, pointer, nbytes, queue))

    def wait(self, queue: Queue) -> None:
        # The order manager knows work on other queues that uses blocks of this queue; the queue
        # knows work that was submitted without the order manager.
        wait(queue)
        wait_for_host_tasks(queue)
        interruptible(queue.wait)


def _host_memory_left(held: int) -> int | None:
    """Return the bytes that can be used without swapping or a killed process; ``None`` if unknown.

    The kernel counts those of the ``held`` bytes as available that were never accessed; they are
    not available to the pool. A sixteenth is left to the rest of the machine.
    """
    try:
        left = _first_number("/proc/meminfo", "MemAvailable:") * 1024
        page = os.sysconf("SC_PAGE_SIZE")
        physical = page * os.sysconf("SC_PHYS_PAGES")
        with open("/proc/self/statm") as file:
            resident = int(file.read().split()[1]) * page
    except (OSError, ValueError, NameError):  # `open` may be deleted during finalization.
        return None
    for limit_file, stat_file, used in _CONTROL_GROUPS:
        try:
            with open(limit_file) as file:
                limit = int(file.read())
            if limit < physical:
                left = min(left, limit - _first_number(stat_file, used))
        except (OSError, ValueError):  # There is no such control group, or it has no limit ("max").
            continue
    return max(left - left // 16 - max(held - resident, 0), 0)


# cgroup v2 and v1 files with the memory limit and the memory use of a container.
_CONTROL_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.stat", "anon"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
        "total_rss",
    ),
)


def _first_number(path: str, name: str) -> int:
    """Return the number after ``name`` in a file in the kernel's usual format."""
    with open(path) as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1])
    raise ValueError(f"{path} does not say {name}")
