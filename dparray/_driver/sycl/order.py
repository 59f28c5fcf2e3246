"""Order the work on a queue of SYCL's.

dpctl's ``SequentialOrderManager`` holds for each queue the events that later work must wait for.
dpnp, dpnp.tensor and dparray all use it. It keeps every incomplete event and queries each of them
on every call, so a launch slows down with the number of pending launches. A dparray launch waits
for all existing events, so it replaces them: a wait for the launch also waits for them.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import Any

import dpctl
from dpctl.utils import SequentialOrderManager, _order_manager, _seq_order_keeper
from dpctl.utils._order_manager import _SequentialOrderManager

from dparray._driver.interface import Queue
from dparray._driver.marks import Marks, lock
from dparray._driver.sycl.in_order import register_queue, wait_for
from dparray._driver.waiting import long_work

_COMPLETE = dpctl.event_status_type.complete


class Order(Marks, _SequentialOrderManager):
    """dpctl's order manager for one queue; each launch replaces the previous launch in it.

    Invariant: all work added to the queue is the last launch, or among dpctl's events, or complete,
    or waited for by one of these.
    """

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
        """Pass the last launch to dpctl's list of events."""
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

    def _add_unordered(self, event: dpctl.SyclEvent) -> None:
        self._state.add_to_submitted_events(event)

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

    def add_host_task(self, event: dpctl.SyclEvent) -> None:
        """Add a task that releases resources of finished work; nothing is ordered after it."""
        self._state.add_to_host_task_events(event)


_is_ready = False


def make_ready() -> None:
    """Make dpctl's C++ code create the object that it would create when it first queries an event.

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
    """Return the :class:`Order` of a queue, and install it in dpctl's map."""
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
    """Prevent dpctl from waiting at exit for the work on all queues."""
    _order_manager.f.detach()
