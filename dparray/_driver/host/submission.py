"""Submit kernels: their data is copied from packed arguments, so that these may change."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from struct import pack
from time import perf_counter_ns
from typing import Any

from dparray._driver.arguments import LocalMemory
from dparray._driver.host import modules, threads
from dparray._driver.host.devices import LOCAL_MEMORY
from dparray._driver.host.frame import LOCAL_BYTES, WORDS
from dparray._driver.host.queues import Event, Queue
from dparray._driver.interface import PackedRange

_ALIGNMENT = 64


def submit(
    kernel: int,
    queue: Queue,
    kinds: bytes,
    addresses: bytes,
    index_space: PackedRange,
    dependencies: Sequence[Event],
) -> Event | None:
    """Submit the kernel of a number after some events; ``None`` if groups take too much memory."""
    of_module = modules.by_number[kernel]
    variant, data_type, head, units, pace = of_module.launch(index_space, queue.device.units)
    data = data_type.from_buffer_copy(head)
    variant.pack(addresses, ctypes.addressof(data) + 8 * WORDS)
    if of_module.local_parameters:
        _place_local_memory(data, of_module)
    if data[LOCAL_BYTES] > LOCAL_MEMORY:
        return None
    scalars = of_module.scalars_of(data)
    is_short = pace.is_short(scalars)

    def work() -> None:
        begun = perf_counter_ns()
        threads.run(variant.run, data, units, queue.device.units)
        pace.note(scalars, perf_counter_ns() - begun)

    return queue.submit(work, dependencies, is_short)


def for_launch(queue: Queue, kernel: int, index_space: PackedRange) -> bytes | None:
    """Return the function, units, threads, time limit and first words of a short launch; ``None``
    for other launches.

    The compiled module runs the launch. After a run above the limit, :func:`submit` runs the next.
    """
    units = queue.device.units
    launch = modules.by_number[kernel].launch(index_space, units)
    if queue.has_profiling or not launch.pace.was_short:
        return None
    words = pack("4q", launch.variant.run, launch.units, units, modules.SHORT_TIME)
    return words + launch.head[: 8 * WORDS]


def _place_local_memory(data: Any, kernel: modules.Kernel) -> None:
    """Replace the sizes of local memory by offsets."""
    offset = kernel.local_bytes
    for at in kernel.local_parameters:
        nbytes = LocalMemory.from_address(data[WORDS + at]).nbytes
        offset = -(-offset // _ALIGNMENT) * _ALIGNMENT
        data[WORDS + at] = offset
        offset += nbytes
    data[LOCAL_BYTES] = offset
