"""The functions of the SYCL driver: :class:`dparray._driver.interface.Driver`."""

from collections.abc import Callable
from typing import Any

import dpctl

from dparray._driver import marks
from dparray._driver.interface import PackedRange
from dparray._driver.sycl import (
    exits,  # registers actions for the end of the process
    in_order,
    modules,
    submission,
)
from dparray._driver.sycl.devices import *
from dparray._driver.sycl.events import *
from dparray._driver.sycl.in_order import foreign_calls as foreign_calls
from dparray._driver.sycl.memory import *
from dparray._driver.sycl.modules import *
from dparray._driver.sycl.order import Order, forget_at_exit, used_queues
from dparray._driver.sycl.order import make_ready as make_ready
from dparray._driver.sycl.order import order_of as order_of
from dparray._driver.sycl.report import platforms as platforms
from dparray._driver.sycl.submission import submit as submit

name = "sycl"
queue_type, device_type, event_type = dpctl.SyclQueue, dpctl.SyclDevice, dpctl.SyclEvent
wait = in_order.wait_for
has_loaded = modules.is_used
queues_in_use = used_queues


def for_launch(queue: dpctl.SyclQueue, kernel: int, index_space: PackedRange) -> bytes | None:
    """Return no words; ``None`` after an in-order queue was used: submissions then release the
    interpreter's lock.
    """
    return None if in_order.has_in_order_queue() else b""


def address_of(queue: dpctl.SyclQueue) -> int:
    return int(queue.addressof_ref())


def for_c() -> tuple[Any, ...]:
    """Return the objects that the compiled module needs to submit launches."""
    return name, order_of, submission.addresses_of_functions(), vars(in_order)


# Forks: a child process has none of SYCL's threads, so it may not use devices.


def locks() -> tuple[Any, ...]:
    return (in_order.lock, marks.lock)


def forbid(refuse: Callable[..., Any]) -> None:
    Order.before_launch = refuse  # type: ignore[method-assign]
    in_order.refuse_with(refuse)
    forget_at_exit()
    exits.leave_without_destructors()
