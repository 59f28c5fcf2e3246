"""The memory of queues as the pool allocates it, and the free host memory."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable
from typing import Any

import numpy as np

from dparray._driver import driver_of, is_queue, place_of, traits_of
from dparray._driver.interface import Queue
from dparray._runtime.queues import is_idle, wait
from dparray._system import available_memory
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

    def is_idle(self, queue: Queue) -> bool:
        """Return whether all work submitted to ``queue`` is done; never waits."""
        return is_idle(queue)

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

    The ``held`` bytes are not available. A sixteenth is left to the rest of the machine.
    """
    left = available_memory(held)
    return None if left is None else max(left - left // 16, 0)
