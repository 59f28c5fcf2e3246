"""Copy between contexts without blocking the caller.

Memory of one context has no address in another, and drivers accept no events of another: a launch
that depends on one crashed the CPU driver (2026.0) with threads and sub-devices, in about one of a
hundred runs. So the host makes such copies, and the calling thread continues. Another thread sleeps
in the driver until the work before the copy is done on both queues, then copies. Meanwhile the
memory is held as an open map holds it. Work that reads the copy, or writes its
source, waits in its own thread.
"""

from __future__ import annotations

import time
from math import prod

from dparray import _hooks
from dparray._driver import order_of
from dparray._driver.interface import Queue
from dparray._layout import Layout
from dparray._runtime import deferred_launch, host_maps
from dparray._runtime.event import Event
from dparray._runtime.queues import wait_to_read
from dparray.device import describe_queue
from dparray.memory import copies
from dparray.memory.blocks import allocate


def send(layout: Layout, queue: Queue, usm_type: str) -> Layout:
    """Return a copy on another queue like :func:`dparray.memory.copies.copy_to_queue`, without
    waiting.

    A copy by the host is made immediately if both queues are idle, otherwise later.
    """
    source = layout.block.queue
    if layout.block.memory is None or 0 in layout.shape or not copies.goes_by_host(source, queue):
        return copies.copy_to_queue(layout, queue, usm_type)
    if host_maps.holds:
        host_maps.before_read(layout)
    ready = [Event(order_of(each).submitted_events, None, each) for each in (source, queue)]
    if all(event.done for event in ready):
        return copies.copy_to_queue(layout, queue, usm_type)
    target = allocate(queue, usm_type, layout.shape, layout.dtype)
    task = f"copied to {describe_queue(queue)}"
    held = host_maps.hold_for_later(task, (layout, "r"), (target, "w"))
    deferred_launch.after(ready, held, lambda: _copy(layout, target))
    return target


def _copy(layout: Layout, target: Layout) -> None:
    start = time.perf_counter()
    with _hooks.events_disabled():
        copies.copy_by_host(layout, target)
        wait_to_read(target.block)  # The device may be reading a pinned buffer.
    if _hooks.subscribers:
        _hooks.emit(
            "copy",
            source=layout.block.queue,
            target=target.block.queue,
            nbytes=prod(layout.shape) * layout.dtype.itemsize,
            start=start,
        )
