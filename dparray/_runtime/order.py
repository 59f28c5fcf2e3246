"""Order the work on a queue, and track the memory that it reads and writes.

dpctl's ``SequentialOrderManager`` holds for each queue the events that later work must wait for.
dpnp, dpnp.tensor and dparray all use it. It keeps every incomplete event and queries each of them
on every call, so a launch slows down with the number of pending launches. A dparray launch waits
for all existing events, so it replaces them: a wait for the launch also waits for them.

A launch records an event on each piece of memory that it reads or writes (:class:`Marked`). Before
the host touches that memory, it waits for the last such launch. All other work, such as dpnp's and
copies, also goes through the order manager, but its memory is unknown: the host waits for all of it
before it touches any memory. The order counts all added work, which shows whether a launch was
added after other work.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Sequence
from typing import Any, Protocol

import dpctl
from dpctl.utils import SequentialOrderManager, _order_manager, _seq_order_keeper
from dpctl.utils._order_manager import _SequentialOrderManager

from dparray._driver.interface import Queue
from dparray._runtime.in_order import long_work, register_queue, wait_for

# Reentrant: the garbage collector may run a user's finalizer, which may launch, while it is held.
lock = threading.RLock()


_COMPLETE = dpctl.event_status_type.complete

#: Launches of generated kernels may take long on an array of at least this many bytes, or in at
#: least this number. Long means a tenth of a second: people expect Ctrl-C to end a wait within two
#: tenths.
MIN_LONG_BYTES = 8 << 20
MAX_SHORT_BACKLOG = 64

#: A launch on a piece of memory: its event, and the order's count just before submission. It runs
#: after all work counted until then.
Mark = tuple[dpctl.SyclEvent, int]


class Marked(Protocol):
    """A piece of memory on which launches record their events.

    Attributes:
        used: the last launch that reads or writes the memory, until it is seen to be complete.
        written: the last launch that may write the memory.
        nbytes: the size of the memory.
    """

    used: Mark | None
    written: Mark | None
    nbytes: int


class Order(_SequentialOrderManager):
    """dpctl's order manager of one queue, in which each launch replaces the one before it.

    Invariant: all work added to the queue is the last launch, or among dpctl's events, or complete,
    or waited for by one of these.

    Attributes:
        count: the number of additions. All work before the first launch counts as one.
    """

    count = 1
    _last: dpctl.SyclEvent | None = None
    _launched_at = 0  # count at the last launch
    _others_at = 1  # count at the last submission whose memory footprint is unknown
    _done_at = 0  # count up to which all work is complete
    _long: Sequence[dpctl.SyclEvent] = ()  # events of the last work that may take long

    @property
    def submitted_events(self) -> list[dpctl.SyclEvent]:
        """The events that work of other libraries must wait for."""
        self._give_last()
        events: list[dpctl.SyclEvent] = self._state.get_submitted_events()
        return events

    @property
    def num_submitted_events(self) -> int:
        """The largest possible number of those events."""
        self._give_last()
        return int(self._state.get_num_submitted_events())

    def wait(self) -> None:
        """Wait for all work."""
        self._give_last()
        wait_for(self.host_task_events)
        wait_for(self.submitted_events)
        super().wait()

    def _give_last(self) -> None:
        """Make the last launch one of dpctl's events."""
        if self._last is None:
            return
        with lock:
            last = self._last
            if last is not None:
                self._state.add_to_submitted_events(last)
                if self._last is last:
                    self._last = None

    def add_event_pair(self, host_task_ev: Any, comp_ev: Any) -> None:
        """Add work of other libraries, and copies."""
        super().add_event_pair(host_task_ev, comp_ev)
        with lock:
            self._others_at = self.count = self.count + 1
        self.note_long(*(comp_ev if isinstance(comp_ev, list | tuple) else (comp_ev,)))

    def before_launch(self) -> list[dpctl.SyclEvent]:
        """Return the events that a launch must wait for, with the last launch at the end."""
        last = self._last  # read before submitted_events: another thread may move it there.
        events: list[dpctl.SyclEvent] = self._state.get_submitted_events()
        if last is not None:
            events.append(last)
        return events

    def add_launch(
        self,
        event: dpctl.SyclEvent,
        after: Sequence[dpctl.SyclEvent],
        seen: int = 0,
        memory: Sequence[Marked | None] = (None,),
        reads: int = 0,
    ) -> None:
        """Add a launch that waits for ``after``, the events that ``before_launch`` returned.

        A launch that another thread added since then is not waited for.

        Args:
            event: the event of the launch.
            after: the events that the launch waits for.
            seen: the count before the call of ``before_launch``.
            memory: all memory that the launch reads or writes; ``None`` stands for untracked
                memory.
            reads: how many of ``memory``, from the start, are only read.
        """
        with lock:
            if self._last is None or (after and after[-1] is self._last):
                self._last = event
            else:
                self._state.add_to_submitted_events(event)
            is_other = self._launched_at > seen
            self._launched_at = self.count = count = self.count + 1
            mark = (event, seen)
            for each in memory[:reads] if reads else ():
                if each is None:
                    is_other = True
                else:
                    each.used = mark
            for each in memory[reads:] if reads else memory:
                if each is None:
                    is_other = True
                else:
                    each.used = each.written = mark
            if is_other:
                self._others_at = count

    def is_known_done(self) -> bool:
        """Return whether all work that was added has been seen to be complete."""
        return self._done_at >= self.count

    def is_done(self) -> bool:
        """Return whether all work is complete; never waits."""
        count = self.count
        if self._done_at >= count:
            return True
        last = self._last
        if last is not None and last.execution_status != _COMPLETE:
            return False
        for event in self.before_launch():
            if event.execution_status != _COMPLETE:
                return False
        self.note_done(count)
        return True

    def note_done(self, count: int) -> None:
        """Record that the first additions, up to a count, are complete."""
        with lock:
            self._done_at = max(self._done_at, count)

    def note_long(self, *events: dpctl.SyclEvent) -> None:
        """Record work that may take long or never end; by default the last launch.

        It comes after the work recorded before, whose events are dropped.
        """
        last = self._last
        if last is not None or events:
            self._long = events or (last,)
            long_work.add(self)

    def has_long_work(self) -> bool:
        """Return whether work that may take long is not complete; never waits."""
        return any(each.execution_status != _COMPLETE for each in self._long)

    def is_after_others(self, mark: Mark | None) -> bool:
        """Return whether work with unknown memory is complete, or precedes a launch."""
        at = self._others_at
        return at <= self._done_at or (mark is not None and at <= mark[1])

    def is_after_all(self, mark: Mark) -> bool:
        """Return whether no work was added after a launch."""
        return self._last is mark[0] and self._others_at <= mark[1]

    def add_host_task(self, event: dpctl.SyclEvent) -> None:
        """Add a task that releases resources of finished work; nothing is ordered after it."""
        self._state.add_to_host_task_events(event)


_is_ready = False


def make_ready() -> None:
    """Make dpctl's C++ code create the object that it creates at its first look at an event.

    That code releases the interpreter's lock meanwhile, and a second thread that arrives there
    would wait forever with the lock held. So one thread calls it first, with an argument that it
    rejects. In finalizers at the end of the process the call would crash.
    """
    global _is_ready
    with lock:
        if not (_is_ready or sys.is_finalizing()):
            with contextlib.suppress(Exception):
                _seq_order_keeper._submit_empty_task(object())
            _is_ready = True


# dpctl's map of this context. Each launch looks its queue up here; dpctl's own lookup does it
# twice.
_map = SequentialOrderManager._map.get


def order_of(queue: Queue) -> Any:
    """Return the :class:`Order` that dpctl's map holds for a queue from now on."""
    order = _map().get(queue)
    if type(order) is not Order:
        make_ready()
        order = SequentialOrderManager[queue]
        register_queue(queue)
        order.__class__ = Order  # The same object, since another thread may be adding work to it.
    return order


def used_queues() -> list[Queue]:
    """Return the queues that may have had work."""
    return list(_map())


def forget_at_exit() -> None:
    """Do not wait at exit for the work on all queues, as dpctl does."""
    _order_manager.f.detach()


def order_after(queue: Queue, other: Queue) -> None:
    """Order later work on a queue after the present work on another queue of its context."""
    events = order_of(other).submitted_events
    if events:
        order_of(queue).add_event_pair([], events)
