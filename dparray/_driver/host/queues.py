"""Queues of the host processor: an order of work, and events that are counters.

The work of a queue runs one after another, on a thread. The thread starts with the first work that
the caller does not do itself, and ends after a while without work. The caller does short work
itself if the queue has no other.

State: the default queues, and the queues that were used.
"""

from __future__ import annotations

import threading
import time
from _thread import LockType, allocate_lock
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any
from weakref import WeakSet

from dparray._driver.host.devices import Device
from dparray._driver.marks import Marks

#: A signal that arrives just before the main thread sleeps does not wake it, so it looks for one
#: this often, in seconds.
_CHECK_PERIOD = 0.1
#: The thread of a queue ends after this time without work, in seconds: programs that create many
#: queues keep few threads, and starting one again takes a thousandth of it.
_IDLE_TIME = 0.1
_used: WeakSet[Queue] = WeakSet()
_refuse: Callable[[], object] | None = None


class Event:
    """The end of a piece of work.

    Attributes:
        queue: its queue.
        number: how many pieces of work of the queue are complete then.
        submitted, started, ended: times in nanoseconds.
    """

    __slots__ = ("__weakref__", "ended", "number", "queue", "started", "submitted")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.number = self.submitted = self.started = self.ended = 0

    @property
    def is_done(self) -> bool:
        """Whether the work is complete."""
        return self.queue.done >= self.number


class Queue:
    """An order of work on a device.

    Attributes:
        device: the device.
        is_in_order, has_profiling: the properties with which it was created.
        submitted, done: how many pieces of work were submitted, and are complete.
        order: the order for the layers above.
    """

    def __init__(
        self, device: Device, is_in_order: bool = False, has_profiling: bool = False
    ) -> None:
        self.device, self.is_in_order, self.has_profiling = device, is_in_order, has_profiling
        self.submitted = self.done = 0
        # Reentrant: the garbage collector may run a finalizer, which may launch.
        self.lock = threading.RLock()
        self.order = Order(self)
        self._pending: SimpleQueue[tuple[Callable[[], object], Sequence[Event], Event]]
        self._pending = SimpleQueue()
        self._waiting: list[tuple[int, LockType]] = []
        self._kept: deque[tuple[Event, tuple[Any, ...]]] = deque()
        self._has_thread = False

    def submit(
        self, work: Callable[[], object], after: Sequence[Event] = (), is_short: bool = False
    ) -> Event:
        """Do work after all earlier work and some events; return its event.

        Args:
            work: a function, which raises nothing.
            after: events, which may belong to other queues.
            is_short: whether the caller does it if nothing else is to be done before.
        """
        if _refuse is not None:
            _refuse()
        event = Event(self)
        if self.has_profiling:
            event.submitted = time.perf_counter_ns()
        with self.lock:
            if is_short and self.done == self.submitted and all(each.is_done for each in after):
                event.number = self.submitted = self.submitted + 1
                self._do(work, event)
                return event
            event.number = self.submitted = self.submitted + 1
            self._pending.put((work, after, event))
            starts, self._has_thread = not self._has_thread, True
        if starts:
            _used.add(self)
            try:
                threading.Thread(target=self._serve, name="dparray queue", daemon=True).start()
            except RuntimeError:  # The interpreter ends, or the system has no more threads.
                self._serve(idle_time=0)
        return event

    def _do(self, work: Callable[[], object], event: Event) -> None:
        if not self.has_profiling:
            work()
        else:
            event.started = time.perf_counter_ns()
            work()
            event.ended = time.perf_counter_ns()
        self.done = event.number

    def _serve(self, idle_time: float = _IDLE_TIME) -> None:
        while True:
            try:
                work, after, event = self._pending.get(timeout=idle_time)
            except Empty:
                with self.lock:
                    if self._pending.empty():
                        self._has_thread = False
                        return
                continue
            wait_for(after)
            self._do(work, event)
            del work, after, event
            if self._waiting:
                self._wake()
            if self._kept:
                self.release()

    def _wake(self) -> None:
        with self.lock:
            for number, lock in self._waiting:
                if number <= self.done:
                    lock.release()
            self._waiting = [each for each in self._waiting if each[0] > self.done]

    def wait(self, number: int) -> None:
        """Wait until a number of pieces of work are complete; signals are handled meanwhile."""
        if self.done >= number:
            return
        lock = allocate_lock()
        lock.acquire()
        with self.lock:
            self._waiting.append((number, lock))
            if self.done >= number:
                self._waiting.remove((number, lock))
                return
        while not lock.acquire(timeout=_CHECK_PERIOD) and self.done < number:
            pass

    def keep(self, event: Event, objects: tuple[Any, ...]) -> None:
        """Keep objects alive until an event is complete."""
        if not event.is_done:
            with self.lock:
                self._kept.append((event, objects))
            self.release()

    def release(self) -> None:
        """Release the objects that complete work has kept alive."""
        released = []
        with self.lock:
            while self._kept and self._kept[0][0].is_done:
                released.append(self._kept.popleft())
        released.clear()  # outside of the lock, since it may run finalizers


class Order(Marks):
    """The order of a queue's work for the layers above."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._events: list[Event] = []

    def before_launch(self) -> list[Event]:
        """Return the events that a launch must wait for, with the last launch at the end."""
        if self._events:
            self._events = [each for each in self._events if not each.is_done]
        return [*self._events] if self._last is None else [*self._events, self._last]

    def _add_unordered(self, event: Event) -> None:
        self._events.append(event)

    def add_event_pair(self, kept: Any, events: Event | Sequence[Event]) -> None:
        """Add work of other libraries, and copies."""
        self._events = [*self._events, *([events] if isinstance(events, Event) else events)]
        self._others_at = self.count = self.count + 1


@cache
def default_queue(device: Device) -> Queue:
    return Queue(device)


def new_queue(like: Queue, in_order: bool = False, profiling: bool = False) -> Queue:
    """Return a new queue on the device of another."""
    return Queue(like.device, in_order, profiling)


def wait_for(events: Sequence[Event], is_long: bool = False) -> None:
    """Wait for events; signals are handled meanwhile."""
    for event in events:
        if not event.is_done:
            event.queue.wait(event.number)


def _nothing() -> None:
    pass


def barrier(queue: Queue, events: Sequence[Event] = ()) -> Event:
    return queue.submit(_nothing, events, is_short=True)


def times(event: Event) -> tuple[int, int, int]:
    wait_for([event])
    return event.submitted, event.started, event.ended


def queues_in_use() -> list[Queue]:
    """Return the queues whose threads have had work."""
    return list(_used)


def forbid(refuse: Callable[..., Any]) -> None:
    """Call ``refuse``, which raises, instead of everything that would use a queue."""
    global _refuse
    _refuse = refuse
