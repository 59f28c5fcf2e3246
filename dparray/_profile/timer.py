"""Measure the time of lazy work."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any

from dparray._array.ndarray import ndarray
from dparray._functions.evaluation import eval as compute
from dparray._profile.recorder import Recorder
from dparray._runtime.host_maps import wait_for_writes_ahead
from dparray._runtime.queues import wait
from dparray.device import Device, describe_queue


class timer:
    """A timer that evaluates the arrays created in a ``with`` block, and waits for them.

    A plain clock around lazy work only measures how long recording takes. Arrays that the block's
    thread created, on any queue, are evaluated if the program still holds them when the block ends;
    intermediate arrays are not stored for that.

    Args:
        place: an array, or any device argument of :class:`dparray.Device`, whose device clock is
            read; the default device if omitted. Work on other queues counts only in ``host``.

    Attributes:
        host: seconds from the start of the block to the end of the work.
        device: seconds of work of the queue's device, by its own clock. 0 if the calling thread did
            all the work, which the printed timer says. It does so for small arrays and, on a CPU,
            while the kernel of a new expression is compiled in the background
            (``dp.config.background_compile``). ``None`` if the queue does not collect times.

    Example:
        >>> x = dp.ones(1_000_000)
        >>> with dp.config.override(background_compile=False), dp.timer(x) as t:
        ...     y = dp.sin(x) * 2
        >>> y.is_pending, t.host >= t.device > 0
        (False, True)
    """

    def __init__(self, place: Any = None) -> None:
        if isinstance(place, ndarray):
            self._queue = place.queue
            if place.is_pending:  # Earlier arrays are not measured.
                compute(place)
        else:
            self._queue = Device(place).queue
        self.host = 0.0
        self.device: float | None = 0.0
        self._about = ""

    def __enter__(self) -> timer:
        wait(self._queue)
        self._recorder = Recorder(threading.get_ident())
        self._recorder.start()
        self._start = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                built = self._recorder.pending()
                compute(*built)
                queues = (x.queue for x in built)
                for queue in {self._queue, *self._recorder.queues.values(), *queues}:
                    wait_for_writes_ahead(queue)
                    wait(queue)
            self.host = time.perf_counter() - self._start
        finally:
            self._recorder.stop()
        name = describe_queue(self._queue)
        records = self._recorder.records()
        work = [record for record in records if record.kind in ("kernel", "library", "copy")]
        here = [each for each in work if each.queue == name]
        self.device = sum(each.duration for each in here if each.clock == "device")
        if any(each.kind == "kernel" and each.clock == "host" for each in here):
            self.device = None
        self._about = ""
        elsewhere = {each.queue for each in work if each.kind != "copy"} - {name}
        if not self.device and elsewhere:
            self._about = f"; the work was on {', '.join(sorted(elsewhere))}"
        elif self.device == 0 and any(record.kind == "host" for record in records):
            self._about = ", the calling thread did the work"

    def __repr__(self) -> str:
        device = "no times" if self.device is None else f"{self.device * 1e3:.3f} ms"
        return f"<dparray timer: host {self.host * 1e3:.3f} ms, device {device}{self._about}>"
