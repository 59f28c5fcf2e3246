"""Memory and streams of CUDA's other libraries."""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver
from cuda.core import Device

from dparray._driver.cuda.context import Current, call
from dparray._driver.cuda.memory import Memory, part
from dparray._driver.cuda.queues import Queue, default_queue
from dparray.exceptions import DeviceError

_ATTRIBUTE = driver.CUpointer_attribute
_UNTIMED = driver.CUevent_flags.CU_EVENT_DISABLE_TIMING


def place_of(pointer: int) -> tuple[Queue, str]:
    """Return the default queue of the device of an address, and its kind of memory.

    Raises:
        ValueError: there is no memory of CUDA at the address.
    """
    status, number = driver.cuPointerGetAttribute(
        _ATTRIBUTE.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer
    )
    if status:
        raise ValueError(f"there is no memory of CUDA at {pointer:#x}")
    if call(driver.cuPointerGetAttribute, _ATTRIBUTE.CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer):
        usm_type = "shared"
    else:
        kind = call(
            driver.cuPointerGetAttribute, _ATTRIBUTE.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer
        )
        usm_type = "host" if kind == int(driver.CUmemorytype.CU_MEMORYTYPE_HOST) else "device"
    return default_queue(Device(int(number))), usm_type


def memory_of(owner: Any, first: int, last: int, queue: Queue) -> Memory:
    """Return memory of another library from its first to its last byte.

    Raises:
        ValueError: there is no memory at one of the ends.
    """
    part(owner, last, 1, queue)
    return part(owner, first, last - first + 1, queue)


def take_from(queue: Queue, stream: int) -> None:
    """Let later work on a queue wait for the present work of a stream."""
    with Current(queue.number):
        _wait(int(queue.handle), stream)
        queue.order.add_event_pair([], [queue.record()])


def give_to(queue: Queue, stream: int) -> None:
    """Let later work on a stream wait for the present work of a queue."""
    queue.follow(queue.order.before_launch())
    if stream != int(queue.handle):
        with Current(queue.number):
            _wait(stream, int(queue.handle))


def _wait(waiting: int, stream: int) -> None:
    # By waiting, the queue's stream would join the capture: kernels would be recorded, not run.
    for each in (stream, waiting):
        if call(driver.cuStreamIsCapturing, each):
            what = f"stream {each:#x} is capturing a CUDA graph, which dparray's work cannot join"
            raise DeviceError(f"{what}; use the array before the capture begins, or after it ends")
    event = call(driver.cuEventCreate, _UNTIMED)
    try:
        call(driver.cuEventRecord, event, stream)
        call(driver.cuStreamWaitEvent, waiting, event, 0)
    finally:
        driver.cuEventDestroy(event)  # destroyed once the stream has reached it
