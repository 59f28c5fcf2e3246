"""Run tasks on a sleeping thread after work in another context has ended.

Drivers accept only events of their own context, so the host must wait between contexts; the calling
thread continues meanwhile. Memory that the task will read or write is held as an open map holds it
(:mod:`dparray._runtime.host_maps`): later work on that memory waits in its own thread. All other
work on the queue continues, because only memory shows the order in which work was done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dparray import _hooks
from dparray._driver.interface import DriverEvent, Queue
from dparray._layout import Layout
from dparray._runtime import host_maps
from dparray._runtime.event import Event
from dparray.device import describe_queue


class _All(Event):
    """The end of several events, of any contexts, on behalf of one line of the program."""

    __slots__ = ("by", "events")

    def __init__(self, events: Sequence[Event], by: _hooks.Caller) -> None:
        super().__init__((), None, events[-1].queue)
        self.events, self.by = events, by

    @property
    def done(self) -> bool:
        return all(event.done for event in self.events)

    def wait(self) -> None:
        with _hooks.attributed_to(self.by):
            for event in self.events:
                event.wait()


def after(events: Sequence[Event], held: Sequence[host_maps.Hold], do: Callable[[], Any]) -> None:
    """Run a task when events are done, then release the memory that is held for it."""
    by = _hooks.caller()

    def done_by_this_thread() -> None:
        host_maps.take_over(held)
        with _hooks.attributed_to(by):
            do()

    ended = _All(events, by).before_others(done_by_this_thread)
    ended.add_done_callback(lambda future: host_maps.end(held, future.exception()))


def launch_after(
    others: Sequence[Event],
    submit: Callable[[], DriverEvent],
    accesses: Sequence[tuple[Layout, str]],
    kernel: Any,
    queue: Queue,
) -> Event:
    """Submit a launch when events of other contexts are done, and return its event immediately.

    Wait here for the events if the launch writes memory that other libraries know, or if it has no
    array arguments: other libraries may wait for the queue, which does not know of a deferred
    launch.

    Args:
        others: the events to wait for.
        submit: the function that submits the launch.
        accesses: the arrays among the arguments, each with ``"r"`` or ``"w"``.
        kernel: the kernel to launch.
        queue: the queue to launch on.
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
