"""Describe queues and devices in messages."""

from __future__ import annotations

import threading

from dparray._driver import driver_of
from dparray._driver.interface import Queue

_lock = threading.Lock()
_extra_queue_numbers: dict[int, int] = {}


def is_default(queue: Queue) -> bool:
    """Return whether a queue is the default queue of its device."""
    driver = driver_of(queue)
    return bool(queue == driver.default_queue(driver.device_of(queue)))


def describe_device(queue: Queue) -> str:
    """Return ``opencl:cpu:0`` for a queue of a root device, ``opencl:cpu:0, sub-device 1 of 2``
    for one of a part of it.

    Example:
        >>> dp.device.describe_device(dp.Device("cpu").queue)
        'opencl:cpu:0'
    """
    driver = driver_of(queue)
    return driver.describe(driver.device_of(queue))


def _queue_text(queue: Queue) -> str:
    """Return ``default queue`` or ``queue #2``, with properties other than the defaults."""
    if is_default(queue):
        text = "default queue"
    else:
        with _lock:
            number = _extra_queue_numbers.setdefault(hash(queue), len(_extra_queue_numbers) + 2)
        text = f"queue #{number}"
    driver = driver_of(queue)
    properties = [
        name
        for name, is_set in (
            ("in-order", driver.is_in_order(queue)),
            ("profiling", driver.has_profiling(queue)),
        )
        if is_set
    ]
    return f"{text} ({', '.join(properties)})" if properties else text


def describe_queue(queue: Queue) -> str:
    """Describe a queue in messages: its device, its sub-device, its number.

    Example:
        >>> dp.device.describe_queue(dp.Device("cpu").queue)
        'opencl:cpu:0, default queue'
    """
    return f"{describe_device(queue)}, {_queue_text(queue)}"
