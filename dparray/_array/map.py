"""Host maps: the contents of an array as a NumPy array, while a lock keeps other work away."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from types import TracebackType
from typing import Any

import numpy as np

from dparray import _hooks
from dparray._array.ndarray import ndarray
from dparray._evaluate.writes import flush_dependents
from dparray._layout import Layout, shows_elements_twice
from dparray._runtime import host_maps, queues
from dparray.device import describe_queue
from dparray.exceptions import ArgumentError, MapError
from dparray.memory import copies, staging

_MODES = ("r", "w", "rw")


class Map:
    """The contents of an array in host memory, made by :meth:`dparray.ndarray.map`.

    Open from the start; :meth:`close`, or the end of a ``with`` block, closes it. A map that is
    lost while it is open is closed, with its writes, before work that would wait for it; a
    ``ResourceWarning`` says so.

    Attributes:
        values: the NumPy array, of the array's shape and dtype; read-only after closing, and from
            the start in mode ``"r"``. Views that were taken of it are not made read-only.
        mode: ``"r"``, ``"w"`` or ``"rw"``.
        is_staged: whether it is a copy in host memory, because the host cannot reach the array's.
        is_open: whether it is still open.

    Example:
        >>> x = dp.arange(3)
        >>> opened = x.map("rw")
        >>> opened.values[0] = 7
        >>> opened.close()
        >>> x.asnumpy()
        array([7, 1, 2])
    """

    # The state for closing is apart from the map, so that it can be closed after the map was lost.
    __slots__ = ("__weakref__", "_closer", "is_staged", "mode", "values")

    def __init__(self, x: ndarray, mode: str) -> None:
        if mode not in _MODES:
            raise ArgumentError(
                "x.map: mode must be 'r' (read), 'w' (write, contents discarded) or 'rw' (read and "
                f"write); got {mode!r}"
            )
        writes = mode != "r"
        if writes and shows_elements_twice(x.shape, x.strides):
            raise MapError(
                f"x.map({mode!r}): the {x.dtype} array of shape {x.shape} with strides {x.strides} "
                f"on {describe_queue(x.queue)} shows elements more than once, so that they "
                f"can be read through a map, x.map('r'), and not written; map a copy: "
                f"y = x.copy(); y.map({mode!r})"
            )
        start = time.perf_counter()
        layout = Layout(x.block, x.offset, x.shape, x.strides, x.dtype)
        queue = x.queue
        hold = host_maps.Hold(layout, mode)
        host_maps.open_hold(
            hold, layout, (lambda: flush_dependents(layout.block)) if writes else _noop
        )
        try:
            self.mode = mode
            self.is_staged = not copies.is_host_accessible(queue, x.usm_type)
            if 0 in x.shape:
                self.values, stage = np.empty(x.shape, x.dtype), None
            elif self.is_staged:
                stage = staging.allocate(layout)
                self.values = staging.host_view(stage)
                if mode != "w":
                    staging.copy_in(layout, self.values)
            else:
                stage = None
                (queues.wait_to_write if writes else queues.wait_to_read)(layout.block)
                self.values = staging.host_view(layout)
        except BaseException:
            host_maps.close_hold(hold)
            raise
        hold.is_settling = False
        if not writes:
            self.values.flags.writeable = False
        self._closer = _Closer(hold, layout, stage, self.values, mode, start)

    @property
    def is_open(self) -> bool:
        """Whether the map is open."""
        return not self._closer.is_done

    def close(self) -> None:
        """Give the memory back; what was written is seen by all work submitted from now on.

        A second call does nothing.
        """
        self._closer()

    def __enter__(self) -> np.ndarray:
        if not self.is_open:
            raise MapError(
                f"x.map({self.mode!r}): the map of the {self.values.dtype} array of shape "
                f"{self.values.shape} is closed, and opens once; open a new one: "
                f"with x.map({self.mode!r}) as h"
            )
        return self.values

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        how = "staged" if self.is_staged else "no copy"
        state = "open" if self.is_open else "closed"
        what = f"{self.values.shape} {self.values.dtype}"
        return f"<dparray map {self.mode!r} of {what}, {how}, {state}>"

    def __del__(self) -> None:
        closer = getattr(self, "_closer", None)
        if closer is not None and not closer.is_done:
            # The garbage collector may run this anywhere: the next thread that needs it closes it.
            closer.hold.finish = closer
            if sys.is_finalizing():  # a warning needs modules that may be gone
                return
            warnings.warn(
                "a map of an array was lost while it was open; write `with x.map(...) as h:`, or "
                "call close()",
                ResourceWarning,
                stacklevel=2,
            )


class _Closer:
    """Closes a map, once."""

    __slots__ = ("hold", "is_done", "layout", "mode", "stage", "start", "values")

    def __init__(
        self, hold: host_maps.Hold, layout: Layout, stage: Any, values: Any, mode: str, start: float
    ) -> None:
        self.hold, self.layout, self.stage = hold, layout, stage
        self.values, self.mode, self.start = values, mode, start
        self.is_done = False

    def __call__(self) -> None:
        with host_maps.lock:
            if self.is_done:
                return
            self.is_done = True
            self.values.flags.writeable = False
            hold = self.hold
            hold.is_settling, thread = True, hold.thread
            hold.thread = threading.get_ident()
            try:
                if hold.writes and self.stage is not None:
                    staging.copy_out(self.stage, self.values, self.layout)
            finally:
                hold.is_settling, hold.thread = False, thread
                host_maps.close_hold(hold)
        if _hooks.subscribers:
            _hooks.emit(
                "map",
                queue=hold.queue,
                mode=self.mode,
                nbytes=self.values.nbytes,
                staged=self.stage is not None,
                start=self.start,
                seconds=time.perf_counter() - self.start,
            )


def _noop() -> None:
    pass


def _map_method(self: ndarray, mode: str = "r") -> Map:
    """Return the array's contents as a NumPy array in host memory, for as long as a map is open.

    Without a copy for ``shared`` and ``host`` memory and where the device shares the host's memory
    (CPUs); else through a buffer in host memory, which is copied to the device when the map closes.
    Waits for the work on that memory. Pending values that read the old elements are
    computed before a map that may write.

    An open map is a lock on the addresses between the array's first and last element, of views and
    of the arrays it is a view of, too: work that would write there, or, for a map that may write,
    read there, waits if another thread holds the map. Kernels count as writing the arguments that
    they may write. Several maps may read simultaneously.

    Args:
        mode: ``"r"`` to read; ``"w"`` to write, the contents are undefined before; ``"rw"``.

    Returns:
        A :class:`Map`, for a ``with`` block, which gives the NumPy array of the array's shape. It
        is read-only after the block; an exception in the block closes the map, and what was written
        stays.

    Raises:
        MapError: the same thread has work or a map that would wait for itself; the array shows
            elements more than once and is to be written; or two threads would wait for each other.
        ArgumentError: the mode is unknown.

    Example:
        >>> x = dp.zeros(3)
        >>> with x.map("w") as h:
        ...     h[:] = [1, 2, 3]
        >>> (x * 2).asnumpy()
        array([2., 4., 6.])
    """
    return Map(self, mode)


_map_method.__name__ = "map"
_map_method.__qualname__ = "ndarray.map"
ndarray.map = _map_method  # type: ignore[assignment]
