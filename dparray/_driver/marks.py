"""Track the memory that the launches on a queue read and write: the common half of a queue's order.

A launch records an event on each piece of memory that it reads or writes (:class:`Marked`). Before
the host touches that memory, it waits for the last such launch. All other work, such as that of
libraries and copies, is ordered too, but its memory is unknown: the host waits for all of it before
it touches any memory. A queue's order counts all added work, which shows whether a launch was added
after other work.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol

# Reentrant: the garbage collector may run a user's finalizer, which may launch, while it is held.
lock = threading.RLock()

#: Launches of generated kernels may take long on an array of at least this many bytes, or in at
#: least this number. Long means a tenth of a second: people expect Ctrl-C to end a wait within two
#: tenths.
MIN_LONG_BYTES = 8 << 20
MAX_SHORT_BACKLOG = 64

#: A launch on a piece of memory: its event, and the order's count just before submission. It runs
#: after all work counted until then.
Mark = tuple[Any, int]


class Marked(Protocol):
    """A piece of memory in which launches store their latest events.

    Attributes:
        used: the last launch that reads or writes the memory, until it is seen to be complete.
        written: the last launch that may write the memory.
        nbytes: the size of the memory.
    """

    used: Mark | None
    written: Mark | None
    nbytes: int


class Marks:
    """The counts of a queue's order.

    Attributes:
        count: the number of additions. All work before the first launch counts as one.
    """

    count = 1
    _last: Any = None  # the event of the last launch
    _launched_at = 0  # count at the last launch
    _others_at = 1  # count at the last submission whose memory footprint is unknown
    _done_at = 0  # count up to which all work is complete

    def add_launch(
        self,
        event: Any,
        after: Sequence[Any],
        seen: int = 0,
        memory: Sequence[Marked | None] = (None,),
        reads: int = 0,
    ) -> None:
        """Add a launch that runs after the events ``after``, which ``before_launch`` returned.

        A launch that another thread added since then is not waited for.

        Args:
            event: the event of the launch.
            after: the events that the launch waits for.
            seen: the count before the call of ``before_launch``.
            memory: all memory that the launch reads or writes; ``None`` stands for untracked
                memory.
            reads: how many of ``memory``, from the start, are only read.
        """
        with lock:
            if self._last is None or (after and after[-1] is self._last):
                self._last = event
            else:
                self._add_unordered(event)
            is_other = self._launched_at > seen
            self._launched_at = self.count = count = self.count + 1
            mark = (event, seen)
            for each in memory[:reads] if reads else ():
                if each is None:
                    is_other = True
                else:
                    each.used = mark
            for each in memory[reads:] if reads else memory:
                if each is None:
                    is_other = True
                else:
                    each.used = each.written = mark
            if is_other:
                self._others_at = count

    def _add_unordered(self, event: Any) -> None:
        """Add a launch that does not wait for the last one, which another thread added."""
        raise NotImplementedError

    def before_launch(self) -> list[Any]:
        """Return the events that a launch must wait for, with the last launch at the end."""
        raise NotImplementedError

    @property
    def submitted_events(self) -> list[Any]:
        """The events that other work must wait for."""
        return self.before_launch()

    def is_done(self) -> bool:
        """Return whether all work is complete; never waits."""
        count = self.count
        if self._done_at >= count:
            return True
        if not all(event.is_done for event in self.before_launch()):
            return False
        self.note_done(count)
        return True

    def note_long(self, *events: Any) -> None:
        """Record work that may take long, where a wait for it could not be interrupted."""

    def has_long_work(self) -> bool:
        """Return whether recorded work is not complete; false where every wait is interruptible."""
        return False

    def is_known_done(self) -> bool:
        """Return whether all work that was added has been seen to be complete."""
        return self._done_at >= self.count

    def note_done(self, count: int) -> None:
        """Record that the first additions, up to a count, are complete."""
        with lock:
            self._done_at = max(self._done_at, count)

    def note_launch_done(self, mark: Mark) -> bool:
        """Record that a launch is complete; return whether no work was added after it."""
        self.note_done(mark[1])
        return self._last is mark[0] and self._others_at <= mark[1]
