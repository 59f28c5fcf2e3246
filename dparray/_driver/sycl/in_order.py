"""Wait on in-order queues and call other libraries there without a deadlock.

dpctl and dpnp submit host tasks after their kernels, and these tasks take the interpreter's lock.
On an in-order queue, the next kernel waits for them. SYCL waits for such a kernel while it holds
the lock of its graph, and submitting takes that lock too. The libraries submit while they hold the
interpreter's lock. A deadlock follows: one thread holds the graph and waits for a host task, the
host task waits for the interpreter, and a second thread holds the interpreter and waits for the
graph. From the first in-order queue on, therefore:

- no thread waits in SYCL for work that has not started, which a host task may delay;
- one thread at a time calls other libraries, which submit and wait freely, and the call begins when
  the host tasks of its queue are done;
- dparray's launches release the interpreter's lock.

In a program without such queues, each wait and each call only tests a flag.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache, partial

import dpctl
from dpctl.utils import SequentialOrderManager

from dparray._driver import waiting
from dparray._driver.interface import Queue
from dparray._driver.sycl import submission
from dparray._driver.waiting import long_work, may_be_long, when_submission_unlocks

_has_in_order_queue = False
_refuse: Callable[[], object] | None = None
lock = threading.RLock()
_in_driver = threading.Lock()
_unlocked = nullcontext()


@lru_cache(maxsize=256)
def register_queue(queue: Queue) -> None:
    """Record that work is about to be submitted to ``queue``."""
    global _has_in_order_queue
    if queue.is_in_order and not _has_in_order_queue:
        _has_in_order_queue = True
        submission.let_go_of_interpreter()
        _tell_of_it()


def has_in_order_queue() -> bool:
    """Return whether an in-order queue has been used, or all device use is forbidden."""
    return _has_in_order_queue


def refuse_with(refuse: Callable[[], object]) -> None:
    """Make every later build, wait or foreign call raise, by calling ``refuse``."""
    global _has_in_order_queue, _refuse
    _has_in_order_queue, _refuse = True, refuse
    _tell_of_it()


def _tell_of_it() -> None:
    for action in when_submission_unlocks:
        action()


def check() -> None:
    """Raise if all device use is forbidden."""
    if _refuse is not None:
        _refuse()


#: Events whose wait the program interrupted.
_interrupted: deque[dpctl.SyclEvent] = deque(maxlen=64)
#: Above this number the main thread only polls for completion, because each abandoned helper may
#: carry out work-items of the same kernel forever.
_MAX_LEFT_HELPERS = 32


def interrupted_waits() -> int:
    """Return the number of interrupted waits whose work is still running."""
    return sum(map(_not_complete, tuple(_interrupted)))


def is_refused() -> bool:
    """Return whether all device use is forbidden, as in the child of a fork."""
    return _refuse is not None


def wait_for(events: Sequence[dpctl.SyclEvent], is_long: bool = False) -> None:
    """Wait on the host for events; other threads run meanwhile, and signals are handled.

    Args:
        events: the events to wait for.
        is_long: whether they may take long; by default ``long_work`` decides.
    """
    global _in_driver
    if not events:
        return
    if _has_in_order_queue:
        check()
        for event in events:
            waiting.poll(partial(_not_started, event))
    is_long = is_long or bool(long_work and may_be_long())
    if not is_long or not any(map(_not_complete, events)) or not waiting.is_main_thread():
        _wait_in_driver(events)
    elif _interrupted and interrupted_waits() >= _MAX_LEFT_HELPERS:
        for event in events:
            waiting.poll(partial(_not_complete, event))
    else:
        try:
            waiting.interruptible(lambda: _wait_in_driver(events))
        except BaseException:
            _in_driver = threading.Lock()  # The helper may hold the other lock forever.
            _interrupted.extend(event for event in events if _not_complete(event))
            raise


def _wait_in_driver(events: Sequence[dpctl.SyclEvent]) -> None:
    # A thread that waits in Intel's CPU runtime carries out other tasks meanwhile. One of them may
    # be another thread's wait, for work that this thread is part of: then both wait forever. So one
    # dparray thread waits in the runtime, and the others poll.
    in_driver = _in_driver
    if in_driver.acquire(blocking=False):
        try:
            for event in events:
                event.wait()
        finally:
            in_driver.release()
    else:
        for event in events:
            waiting.poll(partial(_not_complete, event))


def _not_complete(event: dpctl.SyclEvent) -> bool:
    return event.execution_status != dpctl.event_status_type.complete


def _not_started(event: dpctl.SyclEvent) -> bool:
    return event.execution_status == dpctl.event_status_type.submitted


def wait_for_host_tasks(queue: Queue) -> None:
    """Wait until all objects that the work on ``queue`` keeps alive are released."""
    wait_for(SequentialOrderManager[queue].host_task_events)


def foreign_calls(queue: Queue) -> AbstractContextManager[None]:
    """Return a context for calls of dpctl and dpnp that submit work to ``queue`` or wait for it."""
    register_queue(queue)
    return _one_at_a_time(queue) if _has_in_order_queue else _unlocked


@contextmanager
def _one_at_a_time(queue: Queue) -> Iterator[None]:
    check()
    with lock:
        if queue.is_in_order:
            wait_for_host_tasks(queue)
        yield
