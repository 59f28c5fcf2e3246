"""The memory of queues as the pool allocates it, and the free host memory."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Hashable
from typing import Any

import numpy as np

from dparray._driver import driver_of, is_queue, place_of, traits_of
from dparray._driver.interface import Queue
from dparray._runtime.queues import wait
from dparray.device import Device, describe_device, describe_queue, supports_usm
from dparray.exceptions import DeviceError, HostConversionError

__all__ = ["Driver"]

# Small blocks are split from slabs of this size, which is also the size of a huge page.
SLAB = 2 << 20


def check_host_access(queue: Queue, usm_type: str) -> None:
    """Raise unless the host can access memory at its own address."""
    if usm_type == "device" and not traits_of(queue).shares_memory:
        raise HostConversionError(
            f"memory on {describe_queue(queue)} is device memory, which the host cannot access at "
            "its own address; copy it first: x.asnumpy()"
        )


def bytes_at(pointer: int, nbytes: int) -> np.ndarray:
    """Return a NumPy array over bytes at an address; the memory's owner keeps them alive."""
    return np.frombuffer(memoryview((ctypes.c_char * nbytes).from_address(pointer)), np.uint8)


class Driver:
    """The part of drivers that the pool uses; tests replace it with a simulation."""

    def queue_of(self, device: Any) -> Queue:
        """Return the queue for a device argument."""
        return Device(device).queue

    def context_and_device(self, queue: Queue) -> Hashable:
        """Return the context and the device of ``queue``; equal pairs share a pool."""
        if not is_queue(queue):
            raise DeviceError(f"allocate: {queue!r} is not a queue; use `dp.Device(...).queue`")
        return place_of(queue)

    def describe(self, queue: Queue) -> tuple[str, str]:
        """Return a readable name of the device and the queue."""
        return describe_device(queue), describe_queue(queue)

    def supports(self, queue: Queue, usm_type: str) -> bool:
        """Return whether the device has USM of that type."""
        return supports_usm(traits_of(queue), usm_type)

    def capacity(self, queue: Queue) -> tuple[int, int | None]:
        """Return the largest allocation and the total memory (``None``: the driver decides)."""
        traits = traits_of(queue)
        return traits.largest, traits.memory if traits.shares_memory else None

    def available(self, queue: Queue, usm_type: str, held: int) -> int | None:
        """Return the free bytes of the host beyond ``held``, if such memory is host memory."""
        if traits_of(queue).shares_memory or usm_type == "host":
            return _host_memory_left(held)
        return None

    def allocate(self, queue: Queue, usm_type: str, nbytes: int) -> Any:
        """Return new memory, freed when the object dies; raises ``builtins.MemoryError``."""
        return driver_of(queue).allocate(queue, usm_type, nbytes)

    def pointer(self, memory: Any, queue: Queue) -> int:
        """Return the address of the first byte."""
        return driver_of(queue).pointer(memory)

    def part(self, memory: Any, pointer: int, nbytes: int, queue: Queue) -> Any:
        """Return a part of ``memory`` as a separate object that keeps the whole alive."""
        return driver_of(queue).part(memory, pointer, nbytes, queue)

    def wait(self, queue: Queue) -> None:
        """Wait for all work submitted to ``queue``."""
        # The order knows work on other queues that uses blocks of this queue; the queue knows work
        # that was submitted without the order.
        wait(queue)
        driver = driver_of(queue)
        driver.wait_for_kept(queue)
        driver.wait_for_queue(queue)


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
