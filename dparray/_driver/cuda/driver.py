"""The functions of the CUDA driver: :class:`dparray._driver.interface.Driver`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from cuda.core import Device

from dparray._driver import marks
from dparray._driver.cuda import context
from dparray._driver.cuda.devices import *
from dparray._driver.cuda.events import *
from dparray._driver.cuda.memory import *
from dparray._driver.cuda.modules import *
from dparray._driver.cuda.order import Order
from dparray._driver.cuda.queues import *
from dparray._driver.cuda.queues import Event, Queue, created
from dparray._driver.cuda.submission import *
from dparray._driver.cuda.submission import addresses_of_functions
from dparray._driver.interface import PackedRange
from dparray._driver.own_queues import *
from dparray._driver.own_queues import order_of

name = "cuda"
queue_type, device_type, event_type = Queue, Device, Event


def is_in_order(queue: Queue) -> bool:
    """Return whether a queue was requested to run its work one after another; every stream does."""
    return False


def for_launch(queue: Queue, kernel: int, index_space: PackedRange) -> bytes | None:
    """Return the address of the context that a thread makes current; ``None`` for profiling."""
    return None if queue.has_profiling else queue.context.to_bytes(8, sys.byteorder)


def address_of(queue: Queue) -> int:
    """Return the address of a queue's stream, for the compiled module."""
    return int(queue.handle)


def for_c() -> tuple[Any, ...]:
    """Return the objects that the compiled module needs to submit launches."""
    return (name, order_of, addresses_of_functions(), {})


# Forks: a child process has no contexts, so it may not use devices.


def queues_in_use() -> list[Queue]:
    return [queue for queue in tuple(created) if queue.order.count > Order.count]


def locks() -> tuple[Any, ...]:
    return (context.lock, marks.lock)


def forbid(refuse: Callable[..., Any]) -> None:
    Order.before_launch = refuse  # type: ignore[method-assign]
    context.refuse_with(refuse)
