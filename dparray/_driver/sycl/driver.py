"""The functions of the SYCL driver: :class:`dparray._driver.interface.Driver`."""

from typing import Any

import dpctl

from dparray._driver.interface import PackedRange
from dparray._driver.sycl import exits as exits  # registers actions for the end of the process
from dparray._driver.sycl import in_order, modules, submission
from dparray._driver.sycl.devices import NEEDS_OF_GPUS as NEEDS_OF_GPUS
from dparray._driver.sycl.devices import copies_by_host as copies_by_host
from dparray._driver.sycl.devices import default_queue as default_queue
from dparray._driver.sycl.devices import describe as describe
from dparray._driver.sycl.devices import device_of as device_of
from dparray._driver.sycl.devices import devices as devices
from dparray._driver.sycl.devices import domain as domain
from dparray._driver.sycl.devices import has_profiling as has_profiling
from dparray._driver.sycl.devices import is_in_order as is_in_order
from dparray._driver.sycl.devices import names_device_only as names_device_only
from dparray._driver.sycl.devices import new_queue as new_queue
from dparray._driver.sycl.devices import path_of as path_of
from dparray._driver.sycl.devices import root_of as root_of
from dparray._driver.sycl.devices import select as select
from dparray._driver.sycl.devices import split as split
from dparray._driver.sycl.devices import taken as taken
from dparray._driver.sycl.devices import traits as traits
from dparray._driver.sycl.devices import unusable as unusable
from dparray._driver.sycl.devices import why_none as why_none
from dparray._driver.sycl.events import barrier as barrier
from dparray._driver.sycl.events import is_done as is_done
from dparray._driver.sycl.events import is_event as is_event
from dparray._driver.sycl.events import keep_until as keep_until
from dparray._driver.sycl.events import times as times
from dparray._driver.sycl.forks import forbid as forbid
from dparray._driver.sycl.forks import locks as locks
from dparray._driver.sycl.forks import queues_in_use as queues_in_use
from dparray._driver.sycl.in_order import foreign_calls as foreign_calls
from dparray._driver.sycl.memory import allocate as allocate
from dparray._driver.sycl.memory import clear as clear
from dparray._driver.sycl.memory import copy as copy
from dparray._driver.sycl.memory import part as part
from dparray._driver.sycl.memory import pointer as pointer
from dparray._driver.sycl.memory import wait_for_kept as wait_for_kept
from dparray._driver.sycl.memory import wait_for_queue as wait_for_queue
from dparray._driver.sycl.modules import keeps_binaries as keeps_binaries
from dparray._driver.sycl.modules import load as load
from dparray._driver.sycl.modules import takes_source as takes_source
from dparray._driver.sycl.modules import warm_up as warm_up
from dparray._driver.sycl.order import make_ready as make_ready
from dparray._driver.sycl.order import order_of as order_of
from dparray._driver.sycl.report import platforms as platforms
from dparray._driver.sycl.submission import submit as submit

name = "sycl"
queue_type = dpctl.SyclQueue
wait = in_order.wait_for
has_loaded = modules.is_used


def for_launch(queue: dpctl.SyclQueue, kernel: int, index_space: PackedRange) -> bytes | None:
    """Return no words; ``None`` after an in-order queue was used: submissions then release the
    interpreter's lock.
    """
    return None if in_order.has_in_order_queue() else b""


def address_of(queue: dpctl.SyclQueue) -> int:
    """Return the address of a queue, for the compiled module."""
    return int(queue.addressof_ref())


def for_c() -> tuple[Any, ...]:
    """Return the objects that the compiled module needs to submit launches."""
    return name, order_of, submission.addresses_of_functions(), vars(in_order)
