"""CUDA's queues: one stream each, which orders its work.

State: the default queue of each device, and the queues of streams of other libraries.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from cuda.core import Device, EventOptions, Stream, StreamOptions

from dparray._driver.cuda.context import Current, failure, is_refused, lock, primary
from dparray._driver.cuda.order import Order
from dparray.exceptions import DeviceError

_TIMED = EventOptions(timing_enabled=True)
#: Times are float differences from a recorded event, which is replaced this often to stay precise.
_SECONDS_OF_ORIGIN = 1.0


@dataclass(slots=True, eq=False)
class Event:
    """A point in the work of a queue.

    Attributes:
        queue: the queue.
        raw: the ``cuda.core.Event``.
        number: its position among the events of the queue.
        times: on a queue with profiling, the time of the submission, the origin of times, and the
            event before the work.
    """

    queue: Queue
    raw: Any
    number: int
    times: Any
    _is_done: bool = False

    @property
    def is_done(self) -> bool:
        """Whether the work before it is complete; never waits."""
        # Before a fork, the parent waited for all of its work.
        if not (self._is_done or is_refused()):
            try:
                self._is_done = self.raw.is_done
            except Exception as error:
                raise failure(error, f"the work on {self.queue.name}") from None
        return self._is_done or is_refused()

    def measured(self) -> tuple[int, int, int]:
        """Return the submission, start and end times of completed work."""
        submitted, origin, start = self.times
        started = origin.time() + _nanoseconds(origin.raw, start)
        return submitted, started, started + _nanoseconds(start, self.raw)


class _Origin:
    """An event of a queue from which later times are measured.

    Attributes:
        raw: the ``cuda.core.Event``.
        recorded: when the host recorded it, in nanoseconds.
    """

    def __init__(self, raw: Any, previous: _Origin | None) -> None:
        self.raw = raw
        self.recorded = self._reached = time.perf_counter_ns()
        self._previous = previous

    def time(self) -> int:
        """Return the device's time of the event; for the first event, the host's time."""
        with lock:
            if self._previous is not None:
                self._reached = self._previous.time() + _nanoseconds(self._previous.raw, self.raw)
                self._previous = None
            return self._reached


def _nanoseconds(start: Any, end: Any) -> int:
    return round((end - start) * 1e6)


class Queue:
    """A queue of a GPU: a stream.

    Attributes:
        device: the ``cuda.core.Device``.
        number: its number.
        context: its primary context.
        stream: the ``cuda.core.Stream``; other libraries take the queue itself as a stream.
        handle: the stream for the driver.
        has_profiling: whether it collects the times of its work.
        order: the order of its work.
        kept: objects that live until an event is complete.
    """

    def __init__(self, device: Device, stream: Stream, has_profiling: bool = False) -> None:
        self.device = device
        self.number = device.device_id
        self.context = primary(self.number)
        self.stream = stream
        self.handle = stream.handle
        self.has_profiling = has_profiling
        self.order = Order(self)
        self.kept: deque[tuple[Event, tuple[Any, ...]]] = deque()
        self._lock = threading.Lock()
        self._recorded = 0
        self._origin: _Origin | None = None
        created.add(self)

    @property
    def name(self) -> str:
        """The name of its device in messages."""
        return f"cuda:{self.number}"

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the stream in the protocol of CUDA's libraries: its version, the handle."""
        return 0, int(self.handle)

    def __repr__(self) -> str:
        return f"<CUDA queue on {self.name}, stream {int(self.handle):#x}>"

    def begin(self) -> Any:
        """Return the time before a submission, on a queue with profiling."""
        if not self.has_profiling:
            return None
        now = time.perf_counter_ns()
        with self._lock:
            origin = self._origin
            if origin is None or now - origin.recorded > _SECONDS_OF_ORIGIN * 1e9:
                self._origin = origin = _Origin(self.stream.record(options=_TIMED), origin)
        return now, origin, self.stream.record(options=_TIMED)

    def record(self, times: Any = None) -> Event:
        """Return a new event after all work on the stream; its device's context must be current."""
        # Numbers follow the order of the stream, since a later event represents all earlier ones.
        with self._lock:
            try:
                raw = self.stream.record(options=times and _TIMED)
            except Exception as error:
                raise failure(error, f"the work on {self.name}") from None
            self._recorded = number = self._recorded + 1
        return Event(self, raw, number, times)

    def follow(self, events: Iterable[Event]) -> None:
        """Make later work wait for events of other queues."""
        for event in events:
            if event.queue is not self and not event.is_done:
                with Current(self.number):
                    self.stream.wait(event.raw)

    def keep(self, event: Event, objects: tuple[Any, ...]) -> None:
        """Keep objects alive until an event is complete."""
        self.release()
        self.kept.append((event, objects))

    def release(self) -> None:
        """Release the objects whose events are complete."""
        while self.kept:
            try:
                event, objects = self.kept.popleft()
            except IndexError:  # Another thread removed the last one.
                return
            if not event.is_done:
                self.kept.appendleft((event, objects))
                return


_default: dict[int, Queue] = {}
_of_streams: WeakValueDictionary[int, Queue] = WeakValueDictionary()
#: All queues of this process.
created: WeakSet[Queue] = WeakSet()


def default_queue(device: Device) -> Queue:
    with lock:
        queue = _default.get(device.device_id)
        if queue is None:
            queue = _default[device.device_id] = _created(device, False)
        return queue


def _created(device: Device, has_profiling: bool) -> Queue:
    number = device.device_id
    with Current(number):
        of_thread = Device(number)  # cuda-core's objects belong to threads
        of_thread.set_current()
        stream = of_thread.create_stream(options=StreamOptions(nonblocking=True))
    return Queue(device, stream, has_profiling)


def new_queue(like: Queue, in_order: bool = False, profiling: bool = False) -> Queue:
    """Return a new queue on the device of another queue; all queues run their work in order."""
    return _created(like.device, profiling)


def queue_of_stream(value: Any) -> Queue:
    """Return the queue for a stream of another library, the same object every time.

    Raises:
        DeviceError: the stream does not belong to a device's primary context.
    """
    version, handle = value.__cuda_stream__()
    with lock:
        queue = _of_streams.get(handle)
        if queue is None:
            stream = Stream.from_handle(handle)
            device = stream.device
            if version or int(stream.context.handle) != primary(device.device_id):
                raise DeviceError(
                    f"device: {value!r} is a stream of another context than the device's primary "
                    "one, in which dparray, CuPy and PyTorch work; pass a stream of that context"
                )
            queue = _of_streams[handle] = Queue(device, stream)
            queue.owner = value  # type: ignore[attr-defined]  # It destroys the stream.
        return queue
