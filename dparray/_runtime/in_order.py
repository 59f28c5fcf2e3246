"""In-order queues: waiting for work on them, and other libraries' calls, without a deadlock.

dpctl and dpnp submit host tasks after their kernels, which take the interpreter's lock. On an
in-order queue the next kernel waits for them. SYCL waits for such a kernel with the lock of its
graph held, submitting takes that lock, and the libraries submit with the interpreter's lock held:
one thread holds the graph and waits for a host task, which waits for the interpreter, which a
second thread holds that waits for the graph. So, from the first queue in order that is met:

- no thread waits in SYCL for work that has not started, which a host task may hold up;
- one thread at a time is in calls of other libraries, which submit and wait as they like, and it
  begins when the host tasks of its queue are done;
- our own launches let go of the interpreter.

A program without such queues pays one look at a flag for each wait and each call.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Protocol

import dpctl
from dpctl.utils import SequentialOrderManager

from dparray._runtime import submission, waiting

#: The longest pause between two looks at work, in seconds.
MOST_PAUSE = 5e-4

_is_met = False
_refuse: Callable[[], object] | None = None
lock = threading.RLock()
_in_driver = threading.Lock()
_unlocked = nullcontext()
#: Called once no work may be submitted with the interpreter's lock held.
when_met: list[Callable[[], None]] = []


@lru_cache(maxsize=256)
def meet(queue: dpctl.SyclQueue) -> None:
    """Say that work is about to be submitted to ``queue``."""
    global _is_met
    if queue.is_in_order and not _is_met:
        _is_met = True
        submission.let_go_of_interpreter()
        _tell_of_it()


def is_met() -> bool:
    """Return whether a queue in order has been met, or everything is refused."""
    return _is_met


def refuse_with(refuse: Callable[[], object]) -> None:
    """From now on call ``refuse``, which raises, in place of any build, wait or foreign call."""
    global _is_met, _refuse
    _is_met, _refuse = True, refuse
    _tell_of_it()


def _tell_of_it() -> None:
    for action in when_met:
        action()


def check() -> None:
    """Raise where all use of devices is refused."""
    if _refuse is not None:
        _refuse()


class LongWork(Protocol):
    """A queue's order, which knows whether work that may take long has ended."""

    def has_long_work(self) -> bool:
        """Return whether work that may take long is not known to be complete; never waits."""


#: The queues to which work has been submitted that may take long, or never end. While there are
#: any, the main thread waits for no queue in a driver: a thread that waits in Intel's CPU runtime
#: may be given work-items of any of them.
long_work: set[LongWork] = set()


#: Events for which the program did not wait to the end, because it was interrupted.
_interrupted: deque[dpctl.SyclEvent] = deque(maxlen=64)
#: With so many of them the main thread only looks whether work is complete: each helper that is
#: left behind may carry out work-items of the same kernel for ever.
_MAX_LEFT_HELPERS = 32


def interrupted_waits() -> int:
    """Return how many waits were interrupted for work that still goes on."""
    return sum(map(_not_complete, tuple(_interrupted)))


def is_refused() -> bool:
    """Return whether all use of devices is refused, as in the child of a fork."""
    return _refuse is not None


def _may_be_long() -> bool:
    for order in tuple(long_work):
        if not order.has_long_work():
            long_work.discard(order)
    return bool(long_work)


def wait_for(events: Sequence[dpctl.SyclEvent], is_long: bool = False) -> None:
    """Wait on the host for events; other threads run meanwhile, and signals are handled.

    Args:
        events: those to wait for.
        is_long: they may take long; otherwise ``long_work`` says whether they may.
    """
    global _in_driver
    if not events:
        return
    if _is_met:
        check()
        for event in events:
            _wait_while(event, _not_started)
    is_long = is_long or bool(long_work and _may_be_long())
    if not is_long or not any(map(_not_complete, events)) or not waiting.is_main_thread():
        _wait_in_driver(events)
    elif _interrupted and interrupted_waits() >= _MAX_LEFT_HELPERS:
        for event in events:
            _wait_while(event, _not_complete)
    else:
        try:
            waiting.interruptible(lambda: _wait_in_driver(events))
        except BaseException:
            _in_driver = threading.Lock()  # the helper may hold the other one for ever
            _interrupted.extend(event for event in events if _not_complete(event))
            raise


def _wait_in_driver(events: Sequence[dpctl.SyclEvent]) -> None:
    # A thread that waits in Intel's CPU runtime carries out tasks meanwhile, the wait of another
    # thread among them, which may be for what it stands in: then both wait for ever. So one of ours
    # waits there, and the others look.
    in_driver = _in_driver
    if in_driver.acquire(blocking=False):
        try:
            for event in events:
                event.wait()
        finally:
            in_driver.release()
    else:
        for event in events:
            _wait_while(event, _not_complete)


def _not_complete(event: dpctl.SyclEvent) -> bool:
    return event.execution_status != dpctl.event_status_type.complete


def _not_started(event: dpctl.SyclEvent) -> bool:
    return event.execution_status == dpctl.event_status_type.submitted


def _wait_while(event: dpctl.SyclEvent, holds: Callable[[dpctl.SyclEvent], bool]) -> None:
    pause = 0.0
    while holds(event):
        time.sleep(pause)
        pause = min(2 * pause + 1e-5, MOST_PAUSE)


def wait_for_host_tasks(queue: dpctl.SyclQueue) -> None:
    """Wait until all that work on ``queue`` keeps alive is let go."""
    wait_for(SequentialOrderManager[queue].host_task_events)


def foreign_calls(queue: dpctl.SyclQueue) -> AbstractContextManager[None]:
    """Return a context for calls of dpctl and dpnp that submit work to ``queue`` or wait for it."""
    meet(queue)
    return _one_at_a_time(queue) if _is_met else _unlocked


@contextmanager
def _one_at_a_time(queue: dpctl.SyclQueue) -> Iterator[None]:
    check()
    with lock:
        if queue.is_in_order:
            wait_for_host_tasks(queue)
        yield
