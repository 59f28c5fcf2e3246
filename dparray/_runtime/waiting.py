"""Calls into drivers that Ctrl-C ends: the main thread waits in Python while a helper is in them.

Python handles signals on the main thread, between two of its instructions. A main thread that
waits in a driver handles none, and Intel's CPU runtime has a waiting thread carry out work-items:
inside a kernel that never ends it would never return. So the call is made by a helper thread, and
the main thread waits for a lock, which a signal interrupts. Handing over takes 13 microseconds;
short calls are therefore made directly (:func:`dparray._runtime.in_order.wait_for` decides). An
interrupt leaves the helper with its call, and the next call gets another one.
"""

from __future__ import annotations

import os
import threading
from _thread import allocate_lock
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

_Result = TypeVar("_Result")

#: The helpers that wait for a call.
_idle: list[SimpleQueue[Any]] = []


def is_main_thread() -> bool:
    """Return whether this is the thread on which Python handles signals."""
    return threading.get_ident() == threading.main_thread().ident


def interruptible(call: Callable[[], _Result]) -> _Result:
    """Make a call that blocks so that a signal is handled meanwhile, and may end the wait for it.

    The call itself goes on after an interrupt.
    """
    if not is_main_thread():
        return call()
    try:
        helper = _idle.pop() if _idle else _new_helper()
    except RuntimeError:  # the interpreter ends and starts no threads
        return call()
    done, answer = allocate_lock(), list[Any]()
    done.acquire()
    helper.put((call, answer, done))
    done.acquire()
    result, error = answer
    if error is not None:
        raise error
    returned: _Result = result
    return returned


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
        del call, answer, done  # nothing is kept alive until the next call


os.register_at_fork(after_in_child=_idle.clear)
