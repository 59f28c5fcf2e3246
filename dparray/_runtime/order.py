"""The order of the work on a queue, and of the memory that it reads and writes.

dpctl's ``SequentialOrderManager`` holds for each queue the events that later work has to wait for;
dpnp and dpnp.tensor go through it, and so do we. It holds every event
that is not complete and asks each at every turn, so that a launch behind many others takes as
long as they are many. A launch of ours waits for all events that are there: a wait for it
waits for these, too, and it takes the place of the launch before it.

A launch leaves a mark on each piece of memory that it reads or writes (:class:`Marked`), which says
what the host has to wait for before it touches that memory: the end of the last launch there. All
other work, of dpnp's and copies, comes by the order manager, too, and says nothing of its memory:
the host waits for it before it touches any. The order counts what is added. That tells whether a
launch came after other work, and so after it in time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from typing import Any, Protocol

import dpctl
from dpctl.utils import SequentialOrderManager, _order_manager, _seq_order_keeper
from dpctl.utils._order_manager import _SequentialOrderManager

from dparray._runtime.in_order import long_work, meet, wait_for

# Reentrant: the collector may run a finalizer of the user's while it is held, which may launch.
lock = threading.RLock()


_COMPLETE = dpctl.event_status_type.complete

#: Launches of generated kernels on one array of so many bytes may take long, and so may so many
#: launches. A tenth of a second is long: people expect Ctrl-C to end a wait within two tenths.
MIN_LONG_BYTES = 8 << 20
MAX_SHORT_BACKLOG = 64

#: A launch on a piece of memory: its event, and the order's count when it was about to be
#: submitted. It comes after all that was counted until then.
Mark = tuple[dpctl.SyclEvent, int]


class Marked(Protocol):
    """A piece of memory that launches mark.

    Attributes:
        used: the last launch that reads or writes it, until that is seen to be complete.
        written: the last that may write it.
        nbytes: its size.
    """

    used: Mark | None
    written: Mark | None
    nbytes: int


class Order(_SequentialOrderManager):
    """dpctl's order manager of one queue, where a launch follows the one before it.

    Invariant: all work on the queue that was added is the last launch, or among dpctl's events, or
    complete, or something that one of these waits for.

    Attributes:
        count: of all work that was added. What was there before the first launch counts as one.
    """

    count = 1
    _last: dpctl.SyclEvent | None = None
    _launched_at = 0  # the count when a launch was last added
    _others_at = 1  # the same of work that says nothing of its memory
    _done_at = 0  # until which count all work is complete
    _long: Sequence[dpctl.SyclEvent] = ()  # of the last work that may take long

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

    def add_event_pair(self, host_task_ev: Any, comp_ev: Any) -> None:
        """Add work of other libraries, and copies."""
        super().add_event_pair(host_task_ev, comp_ev)
        with lock:
            self._others_at = self.count = self.count + 1
        self.note_long(*(comp_ev if isinstance(comp_ev, list | tuple) else (comp_ev,)))

    def before_launch(self) -> list[dpctl.SyclEvent]:
        """Return the events that a launch has to wait for; the last launch comes last."""
        last = self._last  # first: it may become one of the others meanwhile
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
        """Add a launch that waits for ``after``, which ends with what ``before_launch`` gave.

        Where another thread has launched since then, it does not wait for that.

        Args:
            event: of the launch.
            after: what it waits for.
            seen: the count before ``before_launch`` was asked.
            memory: all that it reads or writes; ``None`` among it is memory without marks.
            reads: how many of these, the first, it only reads.
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
        """Note that all that was added is complete, until there were so many."""
        with lock:
            self._done_at = max(self._done_at, count)

    def note_long(self, *events: dpctl.SyclEvent) -> None:
        """Note work that may take long, or may never end; by default the last launch.

        It comes after what was noted before, whose events are forgotten.
        """
        last = self._last
        if last is not None or events:
            self._long = events or (last,)
            long_work.add(self)

    def has_long_work(self) -> bool:
        """Return whether work that may take long is not complete; never waits."""
        return any(each.execution_status != _COMPLETE for each in self._long)

    def is_after_others(self, mark: Mark | None) -> bool:
        """Return whether work that says nothing of its memory is complete, or comes before a
        launch.
        """
        at = self._others_at
        return at <= self._done_at or (mark is not None and at <= mark[1])

    def is_after_all(self, mark: Mark) -> bool:
        """Return whether no work was added after a launch."""
        return self._last is mark[0] and self._others_at <= mark[1]

    def add_host_task(self, event: dpctl.SyclEvent) -> None:
        """Add a task that lets go of what work has used; nothing is ordered after it."""
        self._state.add_to_host_task_events(event)


_is_ready = False


def make_ready() -> None:
    """Let dpctl's C++ make what it makes when it first looks at an event.

    It lets go of the interpreter's lock meanwhile, and a second thread that came there would wait
    with that lock for ever. So one thread calls it before any other can, with what it refuses.
    """
    global _is_ready
    with lock:
        if not _is_ready:
            with contextlib.suppress(Exception):
                _seq_order_keeper._submit_empty_task(object())
            _is_ready = True


# dpctl's map of this context, in which each launch looks its queue up: dpctl's way does so twice.
_map = SequentialOrderManager._map.get


def order_of(queue: dpctl.SyclQueue) -> Any:
    """Return the :class:`Order` that dpctl's map has for a queue from now on."""
    order = _map().get(queue)
    if type(order) is not Order:
        make_ready()
        order = SequentialOrderManager[queue]
        meet(queue)
        order.__class__ = Order  # the same object, to which another thread may be adding work
    return order


def used_queues() -> list[dpctl.SyclQueue]:
    """Return the queues that may have had work."""
    return list(_map())


def forget_at_exit() -> None:
    """Do not wait for the work on all queues when the process ends, as dpctl does."""
    _order_manager.f.detach()


def order_after(queue: dpctl.SyclQueue, other: dpctl.SyclQueue) -> None:
    """Let later work on a queue come after the work that is on another one of its context."""
    events = order_of(other).submitted_events
    if events:
        order_of(queue).add_event_pair([], events)
