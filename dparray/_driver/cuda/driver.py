"""The functions of the CUDA driver: :class:`dparray._driver.interface.Driver`."""

from __future__ import annotations

import sys
from typing import Any

from dparray._driver.cuda.devices import NEEDS_OF_GPUS as NEEDS_OF_GPUS
from dparray._driver.cuda.devices import describe as describe
from dparray._driver.cuda.devices import device_of as device_of
from dparray._driver.cuda.devices import devices as devices
from dparray._driver.cuda.devices import domain as domain
from dparray._driver.cuda.devices import names_device_only as names_device_only
from dparray._driver.cuda.devices import path_of as path_of
from dparray._driver.cuda.devices import platforms as platforms
from dparray._driver.cuda.devices import root_of as root_of
from dparray._driver.cuda.devices import select as select
from dparray._driver.cuda.devices import split as split
from dparray._driver.cuda.devices import taken as taken
from dparray._driver.cuda.devices import traits as traits
from dparray._driver.cuda.devices import unusable as unusable
from dparray._driver.cuda.devices import why_none as why_none
from dparray._driver.cuda.events import barrier as barrier
from dparray._driver.cuda.events import foreign_calls as foreign_calls
from dparray._driver.cuda.events import is_done as is_done
from dparray._driver.cuda.events import is_event as is_event
from dparray._driver.cuda.events import keep_until as keep_until
from dparray._driver.cuda.events import times as times
from dparray._driver.cuda.events import wait as wait
from dparray._driver.cuda.events import wait_for_kept as wait_for_kept
from dparray._driver.cuda.events import wait_for_queue as wait_for_queue
from dparray._driver.cuda.forks import forbid as forbid
from dparray._driver.cuda.forks import locks as locks
from dparray._driver.cuda.forks import queues_in_use as queues_in_use
from dparray._driver.cuda.memory import allocate as allocate
from dparray._driver.cuda.memory import clear as clear
from dparray._driver.cuda.memory import copy as copy
from dparray._driver.cuda.memory import part as part
from dparray._driver.cuda.memory import pointer as pointer
from dparray._driver.cuda.modules import has_loaded as has_loaded
from dparray._driver.cuda.modules import keeps_binaries as keeps_binaries
from dparray._driver.cuda.modules import load as load
from dparray._driver.cuda.modules import takes_source as takes_source
from dparray._driver.cuda.modules import warm_up as warm_up
from dparray._driver.cuda.order import order_of as order_of
from dparray._driver.cuda.queues import Queue as Queue
from dparray._driver.cuda.queues import default_queue as default_queue
from dparray._driver.cuda.queues import new_queue as new_queue
from dparray._driver.cuda.submission import addresses_of_functions
from dparray._driver.cuda.submission import submit as submit
from dparray._driver.interface import PackedRange

name = "cuda"
queue_type = Queue


def is_in_order(queue: Queue) -> bool:
    """Return whether a queue was requested to run its work one after another; every stream does."""
    return False


def has_profiling(queue: Queue) -> bool:
    """Return whether a queue collects the times of its work."""
    return queue.has_profiling


def copies_by_host(queue: Queue) -> bool:
    """Return whether the host must do the copies on a queue: never."""
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
