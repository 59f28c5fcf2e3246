"""Events of SYCL: their state and times, barriers, and objects that live until one is complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dpctl

from dparray._driver.sycl.order import order_of

_COMPLETE = dpctl.event_status_type.complete


def is_done(event: dpctl.SyclEvent) -> bool:
    return bool(event.execution_status == _COMPLETE)


def barrier(queue: dpctl.SyclQueue, events: Sequence[dpctl.SyclEvent] = ()) -> dpctl.SyclEvent:
    return queue.submit_barrier(list(events))


def times(event: dpctl.SyclEvent) -> tuple[int, int, int]:
    event.wait()
    return event.profiling_info_submit, event.profiling_info_start, event.profiling_info_end


def keep_until(queue: dpctl.SyclQueue, objects: tuple[Any, ...], event: dpctl.SyclEvent) -> None:
    order_of(queue).add_host_task(queue._submit_keep_args_alive(objects, [event]))
