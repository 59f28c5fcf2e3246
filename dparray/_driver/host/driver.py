"""The functions of the host driver: :class:`dparray._driver.interface.Driver`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from dparray._driver import marks
from dparray._driver.host import queues
from dparray._driver.host.devices import NEEDS_OF_GPUS as NEEDS_OF_GPUS
from dparray._driver.host.devices import Device
from dparray._driver.host.devices import describe as describe
from dparray._driver.host.devices import devices as devices
from dparray._driver.host.devices import path_of as path_of
from dparray._driver.host.devices import platforms as platforms
from dparray._driver.host.devices import root_of as root_of
from dparray._driver.host.devices import select as select
from dparray._driver.host.devices import split as split
from dparray._driver.host.devices import traits as traits
from dparray._driver.host.devices import unusable as unusable
from dparray._driver.host.devices import why_none as why_none
from dparray._driver.host.memory import allocate as allocate
from dparray._driver.host.memory import clear as clear
from dparray._driver.host.memory import copy as copy
from dparray._driver.host.memory import part as part
from dparray._driver.host.memory import pointer as pointer
from dparray._driver.host.modules import load as load
from dparray._driver.host.queues import Event, Order, Queue
from dparray._driver.host.queues import barrier as barrier
from dparray._driver.host.queues import default_queue as default_queue
from dparray._driver.host.queues import forbid as forbid
from dparray._driver.host.queues import new_queue as new_queue
from dparray._driver.host.queues import queues_in_use as queues_in_use
from dparray._driver.host.queues import times as times
from dparray._driver.host.queues import wait_for as wait
from dparray._driver.host.submission import for_launch as for_launch
from dparray._driver.host.submission import submit as submit

__all__ = ["wait"]

name = "host"
queue_type = Queue


def taken(value: Any) -> Queue | None:
    """Return the queue that an object stands for: a queue, or a device."""
    if isinstance(value, Device):
        return default_queue(value)
    queue = value if isinstance(value, Queue) else getattr(value, "queue", None)
    return queue if isinstance(queue, Queue) else None


def names_device_only(value: object) -> bool:
    """Return whether an object that :func:`taken` accepts names a device and not a queue."""
    return isinstance(value, Device)


def is_in_order(queue: Queue) -> bool:
    """Return whether a queue was created as one that runs its work one after another."""
    return queue.is_in_order


def has_profiling(queue: Queue) -> bool:
    """Return whether a queue collects the times of its work."""
    return queue.has_profiling


def copies_by_host(queue: Queue) -> bool:
    """Return false: queues copy."""
    return False


def device_of(queue: Queue) -> Device:
    """Return the device that a queue belongs to."""
    return queue.device


def domain(queue: Queue) -> str:
    """Return the name of the driver: all queues wait for each other."""
    return name


def takes_source(queue: Queue) -> bool:
    """Return false: the driver compiles no OpenCL C."""
    return False


def warm_up(queue: Queue) -> None:
    """Do nothing: LLVM is loaded in a few milliseconds."""


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


def order_of(queue: Queue) -> Order:
    """Return the order of a queue's work."""
    return queue.order


def is_event(value: object) -> bool:
    """Return whether an object is an event of this driver."""
    return isinstance(value, Event)


def is_done(event: Event) -> bool:
    """Return whether the work before an event is complete; never waits."""
    return event.is_done


def wait_for_queue(queue: Queue) -> None:
    """Wait for all work on a queue."""
    queue.wait(queue.submitted)


def wait_for_kept(queue: Queue) -> None:
    """Wait until the objects that the work on a queue keeps alive are released."""
    queue.wait(queue.submitted)
    queue.release()


def keep_until(queue: Queue, objects: tuple[Any, ...], event: Event) -> None:
    """Keep objects alive until an event is complete."""
    queue.keep(objects, event)


def foreign_calls(queue: Queue) -> AbstractContextManager[None]:
    """Return a context for calls of other libraries, which needs nothing here."""
    return nullcontext()


def locks() -> Sequence[Any]:
    """Return the locks that another thread may hold at a fork."""
    return (marks.lock, *(queue.lock for queue in queues_in_use()))
