"""The state of the work that computes an array, without waiting for it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from dparray._array.ndarray import materialize, ndarray
from dparray._runtime import host_maps
from dparray._runtime.event import Event, event_of_work


def event(self: ndarray) -> Event:
    """Return the event of the work that computes the array; a pending array is submitted now.

    It covers all work submitted to the array's queue so far, which runs in order.

    Example:
        >>> x = dp.ones(100_000) + 1
        >>> x.event.wait()
        >>> x.ready
        True
    """
    if self.is_pending:
        materialize(self)  # Requesting the memory evaluates the array.
    work = event_of_work(self.queue)
    if host_maps.holds and self._block is not None:
        ahead = host_maps.writes_ahead(materialize(self))
        return Event(work.driver_events, None, work.queue, ahead)
    return work


def ready(self: ndarray) -> bool:
    """Return whether the values can be read without waiting for a device; never waits.

    A pending array is not ready, and this check does not submit it; ``x.event`` or ``dp.eval``
    does.
    """
    if self.is_only_on_host:
        return True
    return not self.is_pending and event(self).done


def __await__(self: ndarray) -> Generator[Any, None, ndarray]:
    """Wait in asyncio until the values are computed: ``y = await x`` returns ``x``."""
    yield from event(self).__await__()
    return self


ndarray.event = property(event)  # type: ignore[assignment]
ndarray.ready = property(ready)  # type: ignore[assignment]
ndarray.__await__ = __await__  # type: ignore[assignment]
