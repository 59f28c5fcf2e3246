"""Functions that drivers with their own classes of queues and events have in common.

A queue has the attributes ``device``, ``has_profiling`` and ``order``, and a method ``keep``; an
event has ``is_done``.
"""

from __future__ import annotations

from typing import Any


def device_of(queue: Any) -> Any:
    """Return the device that a queue belongs to."""
    return queue.device


def has_profiling(queue: Any) -> bool:
    """Return whether a queue collects the times of its work."""
    return bool(queue.has_profiling)


def order_of(queue: Any) -> Any:
    """Return the order of a queue's work."""
    return queue.order


def copies_by_host(queue: Any) -> bool:
    """Return false: queues copy."""
    return False


def warm_up(queue: Any) -> None:
    """Do nothing: no compiler is started in advance."""


def is_done(event: Any) -> bool:
    """Return whether the work before an event is complete; never waits."""
    return bool(event.is_done)


def keep_until(queue: Any, objects: tuple[Any, ...], event: Any) -> None:
    """Keep objects alive until an event is complete."""
    queue.keep(event, objects)
