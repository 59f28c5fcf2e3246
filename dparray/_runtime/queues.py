"""The record of queues that have work, and waiting for it."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import dpctl

from dparray import _hooks
from dparray._layout import Block
from dparray._runtime import drivers
from dparray._runtime.in_order import wait_for
from dparray._runtime.order import MAX_SHORT_BACKLOG, Mark, order_of
from dparray._runtime.waiting import interruptible
from dparray.device import advices, lock, waits


def wait(queue: dpctl.SyclQueue) -> None:
    """Wait on the host for all work submitted to ``queue``.

    The order manager's own ``wait`` walks its list of events without the interpreter's lock, while
    other threads add to it; so the list is copied first. What a launch would wait for is all.
    """
    order = order_of(queue)
    mark = working.get(queue)
    if order.is_known_done():
        _forget_work(queue, mark)
        return
    count, events = order.count, order.before_launch()
    if events:
        start = time.perf_counter() if _hooks.subscribers else 0.0
        wait_for(events, count - order._done_at > MAX_SHORT_BACKLOG)
        if start:
            _hooks.emit("wait", queue=queue, start=start)
    order.note_done(count)
    _forget_work(queue, mark)


def wait_for_all(queue: dpctl.SyclQueue) -> None:
    """Wait on the host for all work on ``queue``, that of other libraries too."""
    wait(queue)
    interruptible(queue.wait)


waits.append(wait_for_all)
advices.extend(filter(None, [drivers.late_import()]))


#: The queues that may have work left, each with a mark of the last that was noted. A queue that is
#: not here is idle, and asking that costs less than asking the queue.
working: dict[dpctl.SyclQueue, object] = {}


#: The mark of a queue on whose memory another library can have work at any time.
OTHERS_WORK = object()


def note_work(queue: dpctl.SyclQueue) -> None:
    """Note that work has been submitted to ``queue``; called after the submission."""
    if working.get(queue) is not OTHERS_WORK:
        working[queue] = object()


def note_others(queue: dpctl.SyclQueue) -> None:
    """Say that others have memory of ``queue``: from now on its events are asked every time."""
    working[queue] = OTHERS_WORK


#: Queues with memory that the host has mapped, and how many maps are open. They do not count as
#: idle, so that nothing is computed eagerly beside a map, whose lock would not be asked for.
mapped: dict[dpctl.SyclQueue, int] = {}


def note_mapped(queue: dpctl.SyclQueue) -> None:
    """Say that the host has mapped memory of ``queue``."""
    with lock:
        mapped[queue] = mapped.get(queue, 0) + 1
        note_work(queue)


def leave_unmapped(queue: dpctl.SyclQueue) -> None:
    """Say that a map of the queue's memory is closed."""
    with lock:
        mapped[queue] -= 1
        if not mapped[queue]:
            del mapped[queue]


def is_idle(queue: dpctl.SyclQueue) -> bool:
    """Return whether all work submitted to ``queue`` is done; never waits."""
    mark = working.get(queue)
    if mark is None:
        return True
    if queue in mapped:
        return False
    if not order_of(queue).is_done():
        return False
    _forget_work(queue, mark)
    return True


_COMPLETE = dpctl.event_status_type.complete


def _forget_work(queue: dpctl.SyclQueue, mark: object) -> None:
    """Take away a mark that was there before all work was seen to be done."""
    if mark is not None and mark is not OTHERS_WORK and queue not in mapped:
        with lock:
            if working.get(queue) is mark:
                del working[queue]


def may_read(block: Block) -> bool:
    """Return whether the host may read memory now: no work writes it; never waits."""
    queue = block.queue
    return queue not in working or _is_free(block, False)


def may_write(block: Block) -> bool:
    """Return whether the host may write memory now: no work reads or writes it; never waits."""
    queue = block.queue
    return queue not in working or _is_free(block, True)


def wait_to_read(block: Block) -> None:
    """Wait on the host for the work that writes memory."""
    if block.queue in working:
        _wait_for_memory(block, False)


def wait_to_write(block: Block) -> None:
    """Wait on the host for the work that reads or writes memory."""
    if block.queue in working:
        _wait_for_memory(block, True)


def _mark_of(block: Block, writes: bool) -> tuple[bool, Mark | None]:
    """Whether the launches on memory are known, and the last of them that the host waits for."""
    memory = block.segment
    if memory is None or memory.is_shared:
        return block.memory is None, None
    return True, memory.used if writes else memory.written


def _is_free(block: Block, writes: bool) -> bool:
    """Whether the host may touch memory of a queue that may not be idle."""
    queue = block.queue
    if is_idle(queue):
        return True
    order = order_of(queue)
    is_known, mark = _mark_of(block, writes)
    if not is_known or queue in mapped:
        return False
    if mark is not None:
        if mark[0].execution_status != _COMPLETE:
            return False
        order.note_done(mark[1])
    return bool(order.is_after_others(mark))


def _wait_for_memory(block: Block, writes: bool) -> None:
    queue = block.queue
    order = order_of(queue)
    is_known, mark = _mark_of(block, writes)
    if not is_known or not order.is_after_others(mark):
        wait(queue)
    elif mark is not None:
        work = working.get(queue)
        start = time.perf_counter() if _hooks.subscribers else 0.0
        wait_for([mark[0]], order.count - order._done_at > MAX_SHORT_BACKLOG)
        if start:
            _hooks.emit("wait", queue=queue, start=start)
        order.note_done(mark[1])
        if order.is_after_all(mark):
            _forget_work(queue, work)


def beside(queue: dpctl.SyclQueue) -> dpctl.SyclQueue:
    """Return a new queue on the same device and in the same context."""
    return dpctl.SyclQueue(queue.sycl_context, queue.sycl_device)


@lru_cache(maxsize=64)
def out_of_order(queue: dpctl.SyclQueue) -> dpctl.SyclQueue:
    """Return the queue beside one in order on which other libraries work in its place."""
    return beside(queue)


def without_aspects(queue: dpctl.SyclQueue, name: str, aspects: Iterable[str]) -> dpctl.SyclQueue:
    """Return a new queue beside another, whose device says that it is called otherwise and lacks
    aspects.

    So all that ask it, dpnp among them, do as on a device that has none of them.

    Args:
        queue: the other.
        name: the device's.
        aspects: as ``has_aspect_fp64`` has them, ``"fp64"``.
    """
    said: dict[str, Any] = {"name": name, **{f"has_aspect_{aspect}": False for aspect in aspects}}
    # No other device, so that what was built for the real one is not taken for it.
    said |= {"__eq__": operator.is_, "__hash__": object.__hash__}
    device = type("SyclDevice", (dpctl.SyclDevice,), said)(queue.sycl_device)
    place = type("SyclQueue", (dpctl.SyclQueue,), {"sycl_device": device})
    found: dpctl.SyclQueue = place(queue.sycl_context, queue.sycl_device)
    return found
