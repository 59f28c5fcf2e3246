"""The functions of the host driver: :class:`dparray._driver.interface.Driver`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from dparray._driver import marks
from dparray._driver.host import queues
from dparray._driver.host.devices import *
from dparray._driver.host.devices import Device
from dparray._driver.host.memory import *
from dparray._driver.host.modules import load as load
from dparray._driver.host.queues import *
from dparray._driver.host.queues import Event, Queue, default_queue, queues_in_use, wait_for
from dparray._driver.host.submission import *
from dparray._driver.own_queues import *
from dparray._driver.own_queues import order_of

name = "host"
queue_type, device_type, event_type = Queue, Device, Event
wait = wait_for


def taken(value: Any) -> Queue | None:
    """Return the queue that an object stands for: a queue, or a device."""
    if isinstance(value, Device):
        return default_queue(value)
    queue = value if isinstance(value, Queue) else getattr(value, "queue", None)
    return queue if isinstance(queue, Queue) else None


def is_in_order(queue: Queue) -> bool:
    """Return whether a queue was created as one that runs its work one after another."""
    return queue.is_in_order


def domain(queue: Queue) -> str:
    """Return the name of the driver: all queues wait for each other."""
    return name


def keeps_binaries(queue: Queue) -> bool:
    """Return true: object code is kept on disk."""
    return True


def has_loaded() -> bool:
    """Return whether threads were started, which a fork does not have."""
    return bool(queues_in_use())


def address_of(queue: Queue) -> int:
    """Return 0: the compiled module takes the queue itself."""
    return 0


def for_c() -> tuple[Any, ...]:
    """Return the objects with which the compiled module runs short kernels."""
    return name, order_of, (0,) * 4, vars(queues)


def wait_for_queue(queue: Queue) -> None:
    """Wait for all work on a queue."""
    queue.wait(queue.submitted)


def wait_for_kept(queue: Queue) -> None:
    queue.wait(queue.submitted)
    queue.release()


def foreign_calls(queue: Queue) -> AbstractContextManager[None]:
    """Return a context for calls of other libraries, which needs nothing here."""
    return nullcontext()


def locks() -> Sequence[Any]:
    return (marks.lock, *(queue.lock for queue in queues_in_use()))
