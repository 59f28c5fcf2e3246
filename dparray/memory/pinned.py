"""Copies from host arrays to device memory through pinned buffers.

A driver first copies pageable memory to its own buffer, and the host waits for both copies. Here
the host fills one of two pinned buffers while the device reads the other, and waits only for a
buffer that it needs again.
"""

from __future__ import annotations

import atexit
import os
from threading import Lock
from typing import Any

import numpy as np

from dparray import _hooks
from dparray._driver import driver_of, order_of
from dparray._driver.interface import Queue
from dparray._layout import Block
from dparray._runtime.queues import note_work
from dparray.memory.blocks import memory_at
from dparray.memory.driver import bytes_at

#: The size of a buffer in bytes: large enough that the latency of a copy does not matter.
BUFFER = 8 << 20
_COUNT = 2


class _Ring:
    """The pinned buffers of a queue, used in turn.

    Attributes:
        lock: held by the copying thread.
        memories, views: the buffers, allocated on demand, and NumPy arrays over them.
        events: the last copy from each buffer.
        turn: the index of the next buffer.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.memories: list[Any] = [None] * _COUNT
        self.views: list[Any] = [None] * _COUNT
        self.events: list[Any] = [None] * _COUNT
        self.turn = 0

    def free_buffer(self, queue: Queue, nbytes: int) -> int:
        """Return the index of a buffer of at least this many bytes that no copy reads."""
        driver = driver_of(queue)
        number, self.turn = self.turn, (self.turn + 1) % _COUNT
        if self.events[number] is not None:
            driver.wait([self.events[number]])
            self.events[number] = None
        if self.views[number] is None or self.views[number].size < nbytes:
            size = min(BUFFER, 1 << (nbytes - 1).bit_length())
            self.memories[number] = driver.allocate(queue, "host", size)
            self.views[number] = bytes_at(driver.pointer(self.memories[number]), size)
        return number


_rings: dict[tuple[int, Queue], _Ring] = {}


def send(source: np.ndarray, block: Block, offset: int) -> None:
    """Copy bytes of the host into device memory; return when ``source`` may change.

    Args:
        source: a contiguous, non-empty array of bytes.
        block, offset: the destination.
    """
    queue = block.queue
    # A forked child has none of its parent's copies, and must not write into buffers that they
    # read.
    ring = _rings.setdefault((os.getpid(), queue), _Ring())
    with ring.lock:
        driver, order = driver_of(queue), order_of(queue)
        before = order.submitted_events
        for start in range(0, source.size, BUFFER):
            stop = min(start + BUFFER, source.size)
            number = ring.free_buffer(queue, stop - start)
            ring.views[number][: stop - start] = source[start:stop]
            target = memory_at(block, offset + start)
            event = driver.copy(queue, target, ring.memories[number], stop - start, before)
            ring.events[number] = event
            order.add_event_pair([], [event])
            note_work(queue)
            if _hooks.subscribers and source.size > BUFFER:
                _hooks.emit("progress", task="copy to the device", done=stop, total=source.size)


@atexit.register
def _finish() -> None:
    """Wait for running copies: their buffers are freed when the interpreter exits."""
    for (process, queue), ring in _rings.items():
        events = [event for event in ring.events if event is not None]
        if process == os.getpid() and events:
            driver_of(queue).wait(events)
