"""Replace queues by profiling queues while a profile is recorded.

Work is submitted to a *twin*: a queue with profiling enabled on the same device and context. All
work is ordered by events, so it runs where and when it would run anyway, and arrays keep their
queue. An in-order queue has no twin, since other libraries may rely on its order without events.
"""

from __future__ import annotations

import threading

from dparray._driver import driver_of
from dparray._driver.interface import Queue
from dparray.exceptions import DeviceError

_lock = threading.Lock()
# Never released: work may still be on a twin after the last profile.
_twins: dict[Queue, Queue | None] = {}
_measuring = 0


def start() -> None:
    """Time all work from now on, until :func:`stop` has been called equally often."""
    global _measuring
    with _lock:
        _measuring += 1


def stop() -> None:
    """Submit work to its own queue again."""
    global _measuring
    with _lock:
        _measuring -= 1


def timed(queue: Queue) -> Queue | None:
    """Return the queue with profiling to submit to instead of ``queue``; ``None`` if there is
    none.
    """
    if not _measuring:
        return None
    driver = driver_of(queue)
    if driver.has_profiling(queue):
        return queue
    if queue in _twins:
        return _twins[queue]
    twin = None
    if not driver.is_in_order(queue):
        try:
            twin = driver.new_queue(queue, profiling=True)
        except DeviceError:
            twin = None
    with _lock:
        return _twins.setdefault(queue, twin)


def target_of(queue: Queue) -> Queue:
    """Return the queue that a queue's work is submitted to: itself, or its twin while profiling."""
    return timed(queue) or queue
