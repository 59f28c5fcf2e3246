"""Order the work on a CUDA queue, which its stream runs in order.

A queue keeps the events that stand for all its work: the last launch, and the last other work of
each queue, such as copies and profiled launches. The host waits for them, and work on other queues.
"""

from __future__ import annotations

from typing import Any

from dparray._driver.marks import MAX_SHORT_BACKLOG, Marks, lock


class Order(Marks):
    """The order of one queue.

    Invariant: all work added to the queue is the last launch, or precedes one of the events of
    other work, or is complete.
    """

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._others: dict[Any, Any] = {}  # the last event of each queue

    def before_launch(self) -> list[Any]:
        """Return the events that work on other queues must wait for, the last launch at the end."""
        count, last = self.count, self._last
        events: list[Any] = []
        if self._others:
            with lock:
                for queue, event in tuple(self._others.items()):
                    if event.is_done:
                        del self._others[queue]
                    else:
                        events.append(event)
        if last is not None:
            events.append(last)
            # Programs that only launch query no state, so finished launches would seem pending.
            if count % MAX_SHORT_BACKLOG == 0 and len(events) == 1 and last.is_done:
                self.note_done(count)
        return events

    def add_event_pair(self, kept: Any, events: Any) -> None:
        """Add work of other queues, of other libraries, and copies."""
        with lock:
            for event in events if isinstance(events, list | tuple) else (events,):
                self._add_unordered(event)
            self._others_at = self.count = self.count + 1
        # Other libraries do not ask the order, so the stream itself waits for the events.
        self._queue.follow(events if isinstance(events, list | tuple) else (events,))

    def _add_unordered(self, event: Any) -> None:
        # Events of one queue are complete in the order of their numbers.
        known = self._others.get(event.queue)
        if known is None or known.number < event.number:
            self._others[event.queue] = event
