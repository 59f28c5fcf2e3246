"""The order of the work on a queue.

dpctl's ``SequentialOrderManager`` holds for each queue the events that later work has to wait for;
dpnp and dpnp.tensor go through it, and so do we. It holds every event
that is not complete and asks each at every turn, so that a launch behind many others takes as
long as they are many. A launch of ours waits for all events that are there: a wait for it
waits for these, too, and it takes the place of the launch before it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import dpctl
from dpctl.utils import SequentialOrderManager, _order_manager
from dpctl.utils._order_manager import _SequentialOrderManager

from dparray._runtime.in_order import meet, wait_for

# Reentrant: the collector may run a finalizer of the user's while it is held, which may launch.
lock = threading.RLock()


class Order(_SequentialOrderManager):
    """dpctl's order manager of one queue, where a launch follows the one before it.

    Invariant: all work on the queue that was added is the last launch, or among dpctl's events, or
    complete, or something that one of these waits for.
    """

    _last: dpctl.SyclEvent | None = None

    @property
    def submitted_events(self) -> list[dpctl.SyclEvent]:
        """The events that work of other libraries has to wait for."""
        self._give_last()
        events: list[dpctl.SyclEvent] = self._state.get_submitted_events()
        return events

    @property
    def num_submitted_events(self) -> int:
        """How many they are at most."""
        self._give_last()
        return int(self._state.get_num_submitted_events())

    def wait(self) -> None:
        """Wait for all of it."""
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

    def before_launch(self) -> list[dpctl.SyclEvent]:
        """The events that a launch has to wait for; the last launch comes last."""
        last = self._last  # first: it may become one of the others meanwhile
        events: list[dpctl.SyclEvent] = self._state.get_submitted_events()
        if last is not None:
            events.append(last)
        return events

    def add_launch(self, event: dpctl.SyclEvent, after: Sequence[dpctl.SyclEvent]) -> None:
        """Add a launch that waits for ``after``, which ends with what ``before_launch`` gave.

        Where another thread has launched since then, it does not wait for that.
        """
        with lock:
            if self._last is None or (after and after[-1] is self._last):
                self._last = event
            else:
                self._state.add_to_submitted_events(event)

    def add_host_task(self, event: dpctl.SyclEvent) -> None:
        """Add a task that lets go of what work has used; nothing is ordered after it."""
        self._state.add_to_host_task_events(event)


def order_of(queue: dpctl.SyclQueue) -> Any:
    """The :class:`Order` that dpctl's map has for a queue from now on."""
    order = SequentialOrderManager[queue]
    if type(order) is not Order:
        meet(queue)
        order.__class__ = Order  # the same object, to which another thread may be adding work
    return order


def used_queues() -> list[dpctl.SyclQueue]:
    """The queues that may have had work."""
    return list(SequentialOrderManager._map.get())


def forget_at_exit() -> None:
    """Do not wait for the work on all queues when the process ends, as dpctl does."""
    _order_manager.f.detach()


def order_after(queue: dpctl.SyclQueue, other: dpctl.SyclQueue) -> None:
    """Let later work on a queue come after the work that is on another one of its context."""
    events = order_of(other).submitted_events
    if events:
        order_of(queue).add_event_pair([], events)
