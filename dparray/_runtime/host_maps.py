"""Host access to memory: open maps, and the work that conflicts with them.

An open map holds a range of addresses for a thread, for reading or writing. Work checks the maps
before it reads or writes memory; without open maps, the check is one test of a Boolean. Work waits
for a map of another thread, and raises if a thread would wait for itself. Deferred tasks hold the
memory that they read and write in the same way, without a thread: a copy by the host
(:mod:`dparray.memory.async_copy`), or a launch that depends on another context
(:mod:`dparray._runtime.deferred_launch`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from dparray import _hooks
from dparray._driver.interface import Queue
from dparray._layout import Block, Layout
from dparray._layout import span_of as span_of
from dparray._runtime.queues import leave_unmapped, note_mapped
from dparray.device import describe_queue, waits
from dparray.exceptions import KernelExecutionError, MapError

#: Held while expressions are evaluated, and while maps open and close.
lock = threading.RLock()
_changed = threading.Condition(lock)  # Waiting on it releases the lock, however often it is held.

#: The open maps. Work takes the lock only if there are any.
holds: list[Hold] = []

#: The number of maps opened so far. If this changes during a read, the thread may have read old and
#: new values mixed, so it reads again.
openings = 0

_waiting: dict[int, Hold] = {}  # The map that each thread waits for.
_LOOK_AGAIN = 0.2  # After this many seconds, ended threads and lost maps are noticed.


class Hold:
    """The memory of one open map.

    Attributes:
        first, last: the first address, and the address after the last.
        writes: whether the host may write to the memory.
        queue: the queue of the memory.
        thread: the thread that opened the map.
        what: the array and the line that opened the map, for messages.
        finish: releases a map that was lost without being closed, or ``None``.
        is_settling: whether the opener itself copies for the map, which does not wait for it.
        task: a description of the deferred task that holds the memory, or ``""`` for a map.
        failure: the error of a deferred task that failed.
    """

    __slots__ = (
        "failure", "finish", "first", "is_settling", "last", "queue", "task", "thread", "what",
        "writes",
    )  # fmt: skip

    def __init__(self, layout: Layout, mode: str) -> None:
        self.first, self.last = span_of_layout(layout)
        self.writes = mode != "r"
        self.queue: Queue = layout.block.queue
        self.thread = threading.get_ident()
        line = _hooks.line_text(_hooks.line_of(_hooks.user_frame()))
        self.what = mode, layout.shape, layout.dtype, line
        self.finish: Callable[[], None] | None = None
        self.is_settling = False
        self.task = ""
        self.failure: BaseException | None = None

    def crosses(self, span: tuple[int, int], writes: bool) -> bool:
        """Return whether reading or writing a range must wait for the map."""
        if not (writes or self.writes) or (
            self.is_settling and self.thread == threading.get_ident()
        ):
            return False
        return span[0] < self.last and self.first < span[1]


def span_of_layout(layout: Layout) -> tuple[int, int]:
    """Return the address range of an array or a layout, which is empty if it has no memory."""
    block = layout.block
    if block.memory is None:
        return 0, 0
    start = block.pointer + layout.offset
    return span_of(start, layout.shape, layout.strides, layout.dtype.itemsize)


def before_read(*layouts: Layout) -> bool:
    """Wait for write maps that overlap memory to be read; return whether there were any.

    Raises:
        MapError: the calling thread would wait for itself.
    """
    waited = [_pass(span_of_layout(layout), False, layout) for layout in layouts]
    return any(waited)


def before_noting(layout: Layout) -> None:
    """Wait for maps before an expression on memory is recorded, but not for deferred tasks."""
    _pass(span_of_layout(layout), False, layout, is_noted=True)


def before_write(*layouts: Layout) -> None:
    """Wait for all maps that overlap memory to be written; raises as :func:`before_read`."""
    for layout in layouts:
        _pass(span_of_layout(layout), True, layout)


def before_sharing(block: Block) -> None:
    """Wait until no map overlaps a block whose address is passed to another library."""
    if block.memory is not None:
        _pass((block.pointer, block.pointer + block.nbytes), True, None)


def open_hold(hold: Hold, layout: Layout, settle: Callable[[], None]) -> None:
    """Register a map after all conflicting maps are closed; ``settle`` is called just before."""
    with lock:
        _pass((hold.first, hold.last), hold.writes, layout)
        settle()
        hold.is_settling = True
        _hold(hold)


def _hold(hold: Hold) -> None:
    global openings
    holds.append(hold)
    note_mapped(hold.queue)
    openings += 1  # Set last: a thread that reads the new number must find the memory held.


def hold_for_later(task: str, *accesses: tuple[Layout, str]) -> tuple[Hold, ...]:
    """Hold memory in given modes for a deferred task; the thread that runs the task takes over.

    Args:
        task: the task as its error message describes it: ``"copied to opencl:cpu:0"``.
        accesses: pairs of a layout and ``"r"`` or ``"w"``.
    """
    holds = tuple([Hold(layout, mode) for layout, mode in accesses])
    with lock:
        has_waited = True
        while has_waited:  # This releases the lock, and all memory must be free at one time.
            has_waited = False
            for hold, (layout, _) in zip(holds, accesses, strict=True):
                has_waited |= _pass((hold.first, hold.last), hold.writes, layout)
        for hold in holds:
            hold.task, hold.thread = task, 0
            _hold(hold)
    return holds


def take_over(held: Sequence[Hold]) -> None:
    """Let the calling thread, which runs the task of these holds, pass them."""
    for hold in held:
        hold.thread, hold.is_settling = threading.get_ident(), True


def writes_ahead(layout: Layout) -> tuple[Hold, ...]:
    """Return the holds of unfinished tasks that write the memory of an array."""
    span = span_of_layout(layout)
    with lock:
        return tuple(
            hold for hold in holds if hold.task and hold.writes and hold.crosses(span, False)
        )


def wait_for_writes_ahead(queue: Queue) -> None:
    """Wait for deferred writes to memory of ``queue``: for copies until they end, for launches
    until they are submitted.
    """
    with lock:
        earlier = [hold for hold in holds if hold.task and hold.writes and hold.queue == queue]
    wait_for(earlier)


waits.insert(0, wait_for_writes_ahead)  # Needed before waiting for submitted work.


def wait_for(held: Sequence[Hold]) -> None:
    """Wait until the deferred tasks of some holds are done.

    Raises:
        KernelExecutionError: the task failed.
    """
    if not held:
        return
    with lock:
        for hold in held:
            while hold in holds and not _has_failed(hold):
                _changed.wait(_LOOK_AGAIN)


def _has_failed(hold: Hold) -> bool:
    """Raise if the task failed. The memory stays held, so that no thread reads wrong values."""
    if hold.failure is not None:
        _, shape, dtype, line = hold.what
        raise KernelExecutionError(
            f"the {dtype} array of shape {shape} could not be {hold.task}, as "
            f"{line or 'a thread'} had asked for: {hold.failure}"
        ) from hold.failure
    return False


def end(held: Sequence[Hold], failure: BaseException | None) -> None:
    """Release the memory of a finished task, or, if it failed, make all present and later readers
    of the unwritten memory raise.
    """
    with lock:
        for hold in held:
            if failure is None or not hold.writes:
                close_hold(hold)
            else:
                hold.failure = failure
        _changed.notify_all()


def close_hold(hold: Hold) -> None:
    """Let work continue that waits for a map."""
    with lock:
        if hold in holds:
            holds.remove(hold)
            leave_unmapped(hold.queue)
            _changed.notify_all()


def _pass(span: tuple[int, int], writes: bool, what: Any, is_noted: bool = False) -> bool:
    """Wait until no map conflicts; return whether any did."""
    me, has_waited = threading.get_ident(), False
    with lock:
        while (hold := _in_the_way(span, writes, is_noted)) is not None:
            has_waited = True
            _check_end(hold, me, writes, what)
            _waiting[me] = hold
            try:
                _changed.wait(_LOOK_AGAIN)
            finally:
                del _waiting[me]
    return has_waited


def _in_the_way(span: tuple[int, int], writes: bool, is_noted: bool) -> Hold | None:
    for hold in [each for each in holds if each.finish is not None]:
        finish, hold.finish = hold.finish, None
        # The task copies as part of dparray's work.
        hold.thread, hold.is_settling = threading.get_ident(), True
        with suppress(Exception):
            finish()  # type: ignore[misc]
        close_hold(hold)
    for hold in holds:
        if hold.crosses(span, writes) and not (is_noted and hold.task and hold.failure is None):
            return hold
    return None


def _check_end(hold: Hold, me: int, writes: bool, what: Any) -> None:
    """Raise if waiting for a map would never end."""
    if hold.task:
        _has_failed(hold)
        return
    if hold.thread == me:
        allowed = "work may read the memory, and not write it"
        if hold.writes:
            allowed = "the memory is read and written through the NumPy array that it gave alone"
        raise MapError(
            f"{_clash(hold, writes, what)} in the same thread: it would wait for itself forever. "
            f"While that map is open, {allowed}; close it first: leave its `with` block, or call "
            "its close()"
        )
    asked, seen = hold, set()
    while (further := _waiting.get(asked.thread)) is not None and asked.thread not in seen:
        seen.add(asked.thread)
        if further.thread == me:
            raise MapError(
                f"{_clash(hold, writes, what)} in {_thread_name(hold.thread)}, which waits for "
                f"{_told(further)} in this thread: a deadlock. Open maps in the same "
                "order in all threads, or close one before opening the next"
            )
        asked = further
    if all(thread.ident != hold.thread for thread in threading.enumerate()):
        raise MapError(
            f"{_clash(hold, writes, what)} in a thread that has ended; call close() of the map"
        )


def _clash(hold: Hold, writes: bool, what: Any) -> str:
    """Return the message: the requested access, and the conflicting map."""
    does = "would write" if writes else "reads"
    memory = "memory that others are given"
    if what is not None:
        memory = f"the {what.dtype} array of shape {tuple(what.shape)}"
    name = _hooks.public_name()
    return (
        f"{_SPOKEN.get(name, name)} {does} {memory} on {describe_queue(hold.queue)}, held by "
        f"{_told(hold)}"
    )


_SPOKEN = {
    "": "this work",
    "operate": "this operation",
    "map": "x.map",
    "__getitem__": "x[index]",
    "__setitem__": "x[index] = value",
    **{f"__{name}__": f"{name}(x)" for name in ("bool", "complex", "float", "int", "repr", "str")},
}


def _told(hold: Hold) -> str:
    mode, shape, dtype, line = hold.what
    place = f" at {line}" if line else ""
    return f"x.map({mode!r}){place} (of {dtype}, shape {shape})"


def _thread_name(ident: int) -> str:
    names = [thread.name for thread in threading.enumerate() if thread.ident == ident]
    return f"thread {names[0]!r}" if names else "another thread"


def _forget_tasks() -> None:
    """Forget deferred tasks in the child of ``fork``, where no thread runs them."""
    holds[:] = [hold for hold in holds if not hold.task]


_hooks.at_fork(after_in_child=_forget_tasks)
