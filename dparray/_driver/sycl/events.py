"""Events of SYCL: their state and times, barriers, and objects that live until one is complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dpctl

from dparray._driver.sycl.order import order_of

_COMPLETE = dpctl.event_status_type.complete


def is_event(value: object) -> bool:
    """Return whether an object is an event of SYCL's."""
    return isinstance(value, dpctl.SyclEvent)


def is_done(event: dpctl.SyclEvent) -> bool:
    """Return whether the work before an event is complete; never waits."""
    return bool(event.execution_status == _COMPLETE)


def barrier(queue: dpctl.SyclQueue, events: Sequence[dpctl.SyclEvent] = ()) -> dpctl.SyclEvent:
    """Return a new event after some events, or after all work on a queue."""
    return queue.submit_barrier(list(events))


def times(event: dpctl.SyclEvent) -> tuple[int, int, int]:
    """Return the submission, start and end of work on a queue with profiling, in nanoseconds."""
    event.wait()
    return event.profiling_info_submit, event.profiling_info_start, event.profiling_info_end


def keep_until(queue: dpctl.SyclQueue, objects: tuple[Any, ...], event: dpctl.SyclEvent) -> None:
    """Keep objects alive until an event is complete."""
    order_of(queue).add_host_task(queue._submit_keep_args_alive(objects, [event]))
