"""Make calls into drivers interruptible by Ctrl-C: a helper thread calls, the main thread waits in
Python.

Python handles signals on the main thread between two bytecode instructions. A main thread that
waits in a driver handles none, and Intel's CPU runtime lets a waiting thread carry out work-items,
so inside an endless kernel it would never return. Instead a helper thread makes the call, and the
main thread waits for a lock, which a signal interrupts. The handover takes 13 microseconds, so
short calls are made directly (each driver decides). After an
interrupt the helper stays in its call, and the next call uses another helper.
"""

from __future__ import annotations

import threading
import time
from _thread import allocate_lock
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from dparray import _hooks

_Result = TypeVar("_Result")

#: A signal that arrives just before the main thread sleeps does not wake it, so it looks for one
#: this often, in seconds.
_CHECK_PERIOD = 0.1

#: The helpers that wait for a call.
_idle: list[SimpleQueue[Any]] = []


class LongWork(Protocol):
    """The part of a queue's order that records whether long work has ended."""

    def has_long_work(self) -> bool:
        """Return whether work that may take long is not known to be complete; never waits."""


#: The queues with submitted work that may take long or never end. While there are any, the main
#: thread does not wait in a driver: Intel's CPU runtime may give work-items of any of these queues
#: to a waiting thread.
long_work: set[LongWork] = set()


#: Called as soon as a driver may no longer submit work while it holds the interpreter's lock.
when_submission_unlocks: list[Callable[[], None]] = []


def may_be_long() -> bool:
    """Return whether any queue has long work; never waits."""
    for order in tuple(long_work):
        if not order.has_long_work():
            long_work.discard(order)
    return bool(long_work)


def is_main_thread() -> bool:
    """Return whether this is the thread on which Python handles signals."""
    return threading.get_ident() == threading.main_thread().ident


def interruptible(call: Callable[[], _Result]) -> _Result:
    """Make a blocking call such that a signal is handled meanwhile and may end the wait.

    The call itself continues after an interrupt.
    """
    if not is_main_thread():
        return call()
    try:
        helper = _idle.pop() if _idle else _new_helper()
    except RuntimeError:  # The interpreter is shutting down and starts no threads.
        return call()
    done, answer = allocate_lock(), list[Any]()
    done.acquire()
    helper.put((call, answer, done))
    while not done.acquire(timeout=_CHECK_PERIOD):
        pass
    result, error = answer
    if error is not None:
        raise error
    returned: _Result = result
    return returned


#: The longest pause between two checks of work, in seconds.
MAX_PAUSE = 5e-4
#: How long a check is repeated without a pause.
_SPIN = 5e-5
#: A pause is at most this fraction of the time waited, so a wait ends late by no more.
_LATE = 0.05


def poll(holds: Callable[[], bool], busy: float = _SPIN) -> None:
    """Wait on the host while a condition holds; signals are handled between two checks.

    Args:
        holds: the condition.
        busy: the seconds for which it is checked without a pause; other Python threads run.
    """
    start = time.perf_counter()
    while holds():
        waited = time.perf_counter() - start
        if waited > _SPIN:
            time.sleep(min(_LATE * waited, MAX_PAUSE) if waited > busy else 0)


def _new_helper() -> SimpleQueue[Any]:
    asked: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_serve, args=(asked,), name="dparray waits", daemon=True).start()
    return asked


def _serve(asked: SimpleQueue[Any]) -> None:
    while True:
        call, answer, done = asked.get()
        try:
            answer += (call(), None)
        except BaseException as error:
            answer += (None, error)
        _idle.append(asked)
        done.release()
        del call, answer, done  # Drop references until the next call.


_hooks.at_fork(after_in_child=_idle.clear)
