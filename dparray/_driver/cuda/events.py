"""Events of CUDA: waits, barriers, times, and objects that live until one is complete."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from dparray._driver import waiting
from dparray._driver.cuda.context import Current, check, failure
from dparray._driver.cuda.queues import Event, Queue

_free: AbstractContextManager[None] = nullcontext()

#: The seconds for which a wait polls the driver without a pause. A pause takes at least 60 us, as
#: long as many kernels.
_BUSY = 2e-3


def wait(events: Sequence[Event], is_long: bool = False) -> None:
    """Wait on the host for events; other threads run meanwhile, and signals are handled.

    The main thread polls, since no signal ends a wait in the driver.
    """
    check()
    is_main = waiting.is_main_thread()
    for event in events:
        if is_main:
            waiting.poll(partial(_is_running, event), _BUSY)
        elif not event.is_done:
            try:
                event.raw.sync()
            except Exception as error:
                raise failure(error, f"the work on {event.queue.name}") from None
        if event.queue.kept:  # The pool waits for memory that is still referenced.
            event.queue.release()


def _is_running(event: Event) -> bool:
    return not event.is_done


def barrier(queue: Queue, events: Sequence[Event] = ()) -> Event:
    """Return a new event after some events, and after all work on a queue."""
    queue.follow(events)
    with Current(queue.number):
        return queue.record(queue.begin())


def times(event: Event) -> tuple[int, int, int]:
    wait([event])
    return event.measured()


def wait_for_queue(queue: Queue) -> None:
    wait([barrier(queue)])


def wait_for_kept(queue: Queue) -> None:
    wait([event for event, _ in tuple(queue.kept)])


def foreign_calls(queue: Queue) -> AbstractContextManager[None]:
    """Return a context for calls of other libraries, which submit work to the stream."""
    queue.follow(queue.order.before_launch())
    return _free
