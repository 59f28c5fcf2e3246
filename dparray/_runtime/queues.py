"""Record which queues have work, and wait for it."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

from dparray import _hooks
from dparray._driver import by_type, driver_of, order_of
from dparray._driver.interface import Queue
from dparray._driver.marks import MAX_SHORT_BACKLOG, Mark
from dparray._layout import Block
from dparray._runtime import durations
from dparray.device import lock, waits


def wait(queue: Queue) -> None:
    """Wait on the host for all work submitted to ``queue``.

    The order manager's ``wait`` iterates over its list of events without the interpreter's lock,
    while other threads append to it. So the list is copied first: it holds the events that a launch
    would wait for.
    """
    driver = by_type[type(queue)]
    order = driver.order_of(queue)
    mark = working.get(queue)
    if order.is_known_done():
        _forget_work(queue, mark)
        return
    count, events = order.count, order.before_launch()
    if events:
        start = time.perf_counter()
        driver.wait(events, count - order._done_at > MAX_SHORT_BACKLOG)
        if queue in durations.running:
            durations.note_wait(queue, start)
        if _hooks.subscribers:
            _hooks.emit("wait", queue=queue, start=start)
    order.note_done(count)
    _forget_work(queue, mark)


def wait_for_all(queue: Queue) -> None:
    """Wait on the host for all work on ``queue``, including work of other libraries."""
    wait(queue)
    driver_of(queue).wait_for_queue(queue)


waits.append(wait_for_all)


#: The queues that may have unfinished work, each with a token of its latest work. A queue that is
#: missing here is idle, and this lookup is cheaper than a query of the queue.
working: dict[Queue, object] = {}


#: The token of a queue on whose memory another library may have work at any time.
OTHERS_WORK = object()


def note_work(queue: Queue) -> None:
    """Record that work was submitted to ``queue``; called after the submission."""
    if working.get(queue) is not OTHERS_WORK:
        working[queue] = object()


def note_others(queue: Queue) -> None:
    """Record that other libraries have memory of ``queue``: its events are queried every time from
    now on.
    """
    working[queue] = OTHERS_WORK


#: Queues with memory mapped by the host, with the number of open maps. They do not count as idle,
#: so no expression is computed eagerly next to a map without checking its lock.
mapped: dict[Queue, int] = {}


def note_mapped(queue: Queue) -> None:
    """Record that the host mapped memory of ``queue``."""
    with lock:
        mapped[queue] = mapped.get(queue, 0) + 1
        note_work(queue)


def leave_unmapped(queue: Queue) -> None:
    """Record that a map of the queue's memory was closed."""
    with lock:
        mapped[queue] -= 1
        if not mapped[queue]:
            del mapped[queue]


def is_idle(queue: Queue) -> bool:
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


def _forget_work(queue: Queue, mark: object) -> None:
    """Remove a token if it is unchanged since all work was seen to be done."""
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


def _launch_on(order: Any, block: Block, writes: bool) -> tuple[bool, Mark | None]:
    """Return the last launch that the host must wait for before it accesses a block.

    The first value is whether no other work may use the block's memory.
    """
    memory, mark, is_known = block.segment, None, block.memory is None
    if memory is not None and not memory.is_shared:
        is_known, mark = True, memory.used if writes else memory.written
    others_at = order._others_at  # The memory of this work is unknown.
    is_past = others_at <= order._done_at or (mark is not None and others_at <= mark[1])
    return is_known and is_past, mark


def _is_free(block: Block, writes: bool) -> bool:
    """Return whether the host may access memory of a queue that may have work."""
    queue = block.queue
    if is_idle(queue):
        return True
    driver = by_type[type(queue)]
    order = driver.order_of(queue)
    is_known, mark = _launch_on(order, block, writes)
    if not is_known or queue in mapped:
        return False
    if mark is not None:
        if not driver.is_done(mark[0]):
            return False
        order.note_done(mark[1])
    return True


def wait_to_read(block: Block, writes: bool = False) -> None:
    """Wait on the host for the work that writes memory, or also for the work that reads it."""
    queue = block.queue
    if queue not in working:
        return
    driver = by_type[type(queue)]
    order = driver.order_of(queue)
    is_known, mark = _launch_on(order, block, writes)
    if not is_known:
        wait(queue)
    elif mark is not None:
        work = working.get(queue)
        start = time.perf_counter()
        driver.wait([mark[0]], order.count - order._done_at > MAX_SHORT_BACKLOG)
        if queue in durations.running:
            durations.note_wait(queue, start)
        if _hooks.subscribers:
            _hooks.emit("wait", queue=queue, start=start)
        if order.note_launch_done(mark):
            _forget_work(queue, work)


def wait_to_write(block: Block) -> None:
    """Wait on the host for the work that reads or writes memory."""
    if block.queue in working:
        wait_to_read(block, True)


def sibling_queue(queue: Queue) -> Queue:
    """Return a new queue on the same device and in the same context."""
    return driver_of(queue).new_queue(queue)


@lru_cache(maxsize=64)
def out_of_order(queue: Queue) -> Queue:
    """Return the queue that other libraries use instead of an in-order queue."""
    return sibling_queue(queue)


def order_after(queue: Queue, other: Queue) -> None:
    """Order later work on a queue after the present work on another queue of its domain."""
    events = order_of(other).submitted_events
    if events:
        order_of(queue).add_event_pair([], events)
