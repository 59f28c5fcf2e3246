"""Estimate how long the kernels on a queue will still run, from how long they took before.

A kernel's time is known when a thread waited for its end: it began when it was submitted, or when
the kernel before it ended. State: for each queue, the kernels that have not been seen to end.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, NamedTuple

from dparray import _hooks
from dparray._driver import by_type
from dparray._driver.interface import DriverEvent, Queue

#: A shorter wait shows only that the work had ended before.
_LONG_WAIT = 1e-3
_MAX_RUNNING, _MAX_RANGES = 256, 64


class _Running(NamedTuple):
    """A kernel that has not been seen to end.

    Attributes:
        seconds: the times of its function, by argument types and range.
        key: its argument types and range.
        event: its event.
        begin: when it was submitted.
    """

    seconds: dict[Any, float]
    key: Any
    event: DriverEvent
    begin: float


_new = tuple.__new__  # Cheaper than a `__new__` of the class itself.
_now = time.perf_counter
running: dict[Queue, deque[_Running]] = {}
_ended: dict[Queue, float] = {}  # when the last of them was seen to end
# Reentrant: a finalizer that waits may run while it is held.
_lock = threading.RLock()
_hooks.at_fork(after_in_child=running.clear)


def note_launch(queue: Queue, seconds: dict[Any, float], key: Any, event: DriverEvent) -> None:
    """Record a launch of a user's kernel.

    Args:
        queue: the queue.
        seconds: the times of its function.
        key: its argument types and range.
        event: its event.
    """
    launches = running.get(queue)
    if launches is None:
        launches = running[queue] = deque(maxlen=_MAX_RUNNING)
    launches.append(_new(_Running, (seconds, key, event, _now())))


def note_wait(queue: Queue, start: float) -> None:
    """Learn from a wait for work on a queue, which began at ``start`` and has ended."""
    now = _now()
    driver, done = by_type[type(queue)], list[_Running]()
    with _lock:
        launches = running.get(queue, ())
        for each in tuple(launches):
            if not driver.is_done(each.event):
                break
            done.append(each)
        if not done:
            return
        average = (now - max(done[0].begin, _ended.get(queue, 0.0))) / len(done)
        left = tuple(launches)[len(done) :]
        if left:
            running[queue], _ended[queue] = deque(left, _MAX_RUNNING), now
        else:
            running.pop(queue, None)
            _ended.pop(queue, None)
    for seconds, key, *_ in done:
        if now - start > _LONG_WAIT or average < seconds.get(key, 0.0):
            if len(seconds) >= _MAX_RANGES:
                seconds.clear()
            seconds[key] = average


def remaining(queue: Queue, unknown: float) -> float:
    """Return how many seconds the kernels of a queue will still run.

    Args:
        queue: the queue.
        unknown: the seconds of a kernel that nobody has waited for. If it runs already, it is
            assumed to run at least as long again.
    """
    now = _now()
    note_wait(queue, now)
    launches = tuple(running.get(queue, ()))
    if not launches:
        return 0.0
    seconds, key, _, begin = launches[0]
    elapsed = now - max(begin, _ended.get(queue, 0.0))
    left = max(seconds[key] - elapsed if key in seconds else elapsed, unknown)
    return left + sum(seconds.get(key, unknown) for seconds, key, *_ in launches[1:])
