"""Tasks for later, done by a thread that sleeps until work of another context has ended.

Drivers take no events but their context's, so the host stands between contexts; but the thread that
asks goes on. Memory that is then read and written is held meanwhile as an open map holds it
(:mod:`dparray._runtime.host_maps`): work on it waits in its own thread, just then. All other work
on the queue goes on, since only memory tells in what order work was done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dpctl

from dparray import _hooks
from dparray._layout import Layout
from dparray._runtime import host_maps
from dparray._runtime.event import Event
from dparray.device import describe_queue


class _All(Event):
    """The end of some events, of whatever contexts, that a line of the program waits for."""

    __slots__ = ("by", "events")

    def __init__(self, events: Sequence[Event], by: _hooks.Asker) -> None:
        super().__init__((), None, events[-1].queue)
        self.events, self.by = events, by

    @property
    def done(self) -> bool:
        return all(event.done for event in self.events)

    def wait(self) -> None:
        with _hooks.on_behalf(self.by):
            for event in self.events:
                event.wait()


def after(events: Sequence[Event], held: Sequence[host_maps.Hold], do: Callable[[], Any]) -> None:
    """Do something when events are done, and let go of the memory that is held for it."""
    by = _hooks.asker()

    def done_by_this_thread() -> None:
        host_maps.take_over(held)
        with _hooks.on_behalf(by):
            do()

    made = _All(events, by).before_others(done_by_this_thread)
    made.add_done_callback(lambda future: host_maps.end(held, future.exception()))


def launch_after(
    others: Sequence[Event],
    submit: Callable[[], dpctl.SyclEvent],
    accesses: Sequence[tuple[Layout, str]],
    kernel: Any,
    queue: dpctl.SyclQueue,
) -> Event:
    """Submit a launch when events of other contexts are done, and give its event at once.

    Waits for them here where the launch writes memory that others know, or none: they may wait for
    the queue, which would know nothing of it.

    Args:
        others: the events.
        submit: submits it.
        accesses: the arrays among its arguments, each with ``"r"`` or ``"w"``.
        kernel: what is launched.
        queue: where.
    """
    memory = [layout.block.segment for layout, _ in accesses]
    is_ours = all(each is not None and not each.is_shared for each in memory)
    if not is_ours or all(mode == "r" for _, mode in accesses):
        for other in others:
            other.wait()
        return Event(submit(), kernel, queue)
    task = f"written by kernel {kernel.__name__} on {describe_queue(queue)}"
    held = host_maps.hold_for_later(task, *accesses)
    event = Event((), kernel, queue, held)
    after(others, held, lambda: event.submitted_as(submit()))
    return event
