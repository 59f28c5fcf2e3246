"""Events: wait for work on a queue, order other work after it, or get notified when it ends."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from dparray import _hooks
from dparray._driver import driver_of, is_event, order_of, place_of, sycl_queue_of, traits_of
from dparray._driver.interface import DriverEvent, Queue
from dparray._runtime import durations, host_maps
from dparray.exceptions import KernelArgumentError, KernelExecutionError

if TYPE_CHECKING:
    import dpctl


class ProfilingTimes(NamedTuple):
    """The submission, start and end of a launch, in nanoseconds of the device's clock."""

    submit: int
    start: int
    end: int

    @property
    def seconds(self) -> float:
        """Return how long the kernel ran."""
        return (self.end - self.start) * 1e-9


class Event:
    """The end of one launch, or of the work that computes an array (``x.event``).

    ``await event`` waits in asyncio while the loop continues. Passed as ``depends_on=``, an event
    orders work on any queue after it, and the calling thread continues. Queues that share a context
    wait on the device. Drivers accept only events of their own context. So a sleeping thread
    submits a launch that depends on another context, and work on the same memory waits for it.

    Attributes:
        kernel: the kernel function that was launched; ``None`` for an array's work.
        queue: the queue of the work.
        holds: tasks that threads must finish before this work
            (:mod:`dparray._runtime.deferred_launch`).

    Example:
        >>> @dp.kernel
        ... def fill(item, x, value):
        ...     x[item.get_id(0)] = value
        >>> x = dp.zeros(4)
        >>> event = dp.call_kernel(fill, dp.Range.like(x), x, 7)
        >>> event.wait()
        >>> event.done
        True
    """

    __slots__ = ("_driver_events", "holds", "kernel", "queue")

    def __init__(
        self,
        driver_event: DriverEvent | Sequence[DriverEvent],
        kernel: Any,
        queue: Queue,
        holds: tuple[host_maps.Hold, ...] = (),
    ) -> None:
        is_many = isinstance(driver_event, tuple | list)
        self._driver_events = tuple(driver_event) if is_many else (driver_event,)
        self.kernel = kernel
        self.queue = queue
        self.holds = holds

    def submitted_as(self, driver_event: DriverEvent) -> None:
        """Describe the launch that was to be submitted."""
        self._driver_events = (driver_event,)

    @property
    def driver_events(self) -> tuple[DriverEvent, ...]:
        """The driver's events behind the event; waits until all are submitted."""
        host_maps.wait_for(self.holds)
        return self._driver_events

    @property
    def driver_event(self) -> DriverEvent:
        """One event of the driver; if there are several, a new one that is submitted after them."""
        events = self.driver_events
        if len(events) == 1:
            return events[0]
        driver = driver_of(self.queue)
        with driver.foreign_calls(self.queue):
            return driver.barrier(self.queue, events)

    @property
    def sycl_events(self) -> tuple[dpctl.SyclEvent, ...]:
        """The ``dpctl.SyclEvent`` objects behind the event, on devices of SYCL; waits until all
        are submitted.
        """
        sycl_queue_of(self, self.queue)
        return self.driver_events

    @property
    def sycl_event(self) -> dpctl.SyclEvent:
        """One ``dpctl.SyclEvent``, on devices of SYCL; if there are several, a new one that is
        submitted after them.
        """
        sycl_queue_of(self, self.queue)
        return self.driver_event

    def wait(self) -> None:
        """Wait on the host until the work is done.

        Raises:
            KernelExecutionError: the device failed; the message names the kernel and its source
                line.
        """
        start = time.perf_counter()
        host_maps.wait_for(self.holds)
        try:
            driver_of(self.queue).wait(self._driver_events)
        except Exception as error:
            what = "the work before an event"
            if self.kernel is not None:
                what = f"kernel {self.kernel.__name__} ({self.kernel.location})"
            raise KernelExecutionError(
                f"{what} failed on {traits_of(self.queue).name}: {error}"
            ) from error
        if self.queue in durations.running:
            durations.note_wait(self.queue, start)
        if _hooks.subscribers:
            _hooks.emit("wait", queue=self.queue, start=start)

    @property
    def done(self) -> bool:
        """Return whether the work is done; never waits."""
        if self.has_work_ahead:
            return False
        return all(map(driver_of(self.queue).is_done, self._driver_events))

    @property
    def has_work_ahead(self) -> bool:
        """Return whether threads must still do something before the work starts."""
        return any(hold in host_maps.holds for hold in self.holds)

    def then(self, callback: Callable[[], Any]) -> Future[Any]:
        """Call ``callback`` when the work is done: immediately if it is and no earlier callback of
        the queue is left, otherwise on a dparray thread.

        There is one such thread for each queue, which calls them in the order of ``then``. It
        sleeps while it waits, and ends after one second without callbacks. A callback may submit
        work, and should not take long; its own callbacks of done work are called immediately.

        Returns:
            A future with the return value or the exception of the callback, or the error of the
            work.

        Raises:
            KernelArgumentError: ``callback`` is not callable.

        Example:
            >>> x = dp.ones(100_000) + 1
            >>> x.event.then(lambda: float(x[0])).result()
            2.0
        """
        if not callable(callback):
            raise KernelArgumentError(
                f"then: {callback!r} of type {type(callback).__name__} is not callable; pass a "
                "function without arguments: event.then(lambda: print('done'))"
            )
        return _after(self, callback)

    def before_others(self, callback: Callable[[], Any]) -> Future[Any]:
        """Call as :meth:`then`, for dparray's callbacks; their thread runs no user callbacks, which
        may wait for them.
        """
        return _after(self, callback, is_ours=True)

    def __await__(self) -> Generator[Any, None, None]:
        if not self.done:
            # A program that uses await has imported asyncio already.
            loop = importlib.import_module("asyncio").get_running_loop()
            waiter = loop.create_future()
            ended = self.then(lambda: None)
            ended.add_done_callback(lambda future: _wake(loop, waiter, future.exception()))
            yield from waiter

    @property
    def profile(self) -> ProfilingTimes:
        """The times of the launch; waits for it to end.

        Raises:
            KernelExecutionError: the queue does not collect times.
        """
        driver = driver_of(self.queue)
        if not driver.has_profiling(self.queue):
            name = "x.event" if self.kernel is None else f"kernel {self.kernel.__name__}"
            raise KernelExecutionError(
                f"{name}: its queue does not collect times; use dp.profile(), or create a queue "
                "with dp.Device(...).new_queue(profiling=True) for the arrays"
            )
        self.wait()
        return ProfilingTimes(*driver.times(self.driver_event))

    def __repr__(self) -> str:
        state = "done" if self.done else "running"
        of = "" if self.kernel is None else f" of kernel {self.kernel.__name__}"
        return f"<dparray event{of}, {state}>"


def event_of_work(queue: Queue) -> Event:
    """Return the end of all work that has been submitted to a queue."""
    return Event(order_of(queue).submitted_events, None, queue)


def order_after(queue: Queue, depends_on: Any) -> None:
    """Make all later work on a queue wait for one or more events of any queues.

    The host waits for events of another domain, because the later work is not known yet.
    """
    events, others = events_before(depends_on, queue)
    for other in others:
        other.wait()
    order = order_of(queue)
    for event in events:
        order.add_event_pair([], [event])


def events_before(depends_on: Any, queue: Queue) -> tuple[list[DriverEvent], list[Event]]:
    """Split ``depends_on`` into events that work on a queue can depend on, and all others.

    The others belong to another context, or are not submitted yet (see `deferred_launch`).

    Raises:
        KernelArgumentError: the value is not an event.
    """
    events: list[DriverEvent] = []
    others: list[Event] = []
    for event in checked_events(depends_on):
        if not isinstance(event, Event):
            events.append(event)
        elif place_of(event.queue)[0] == place_of(queue)[0] and not event.has_work_ahead:
            events += event._driver_events
        elif event.done:
            event.wait()  # This raises if the event has failed.
        else:
            others.append(event)
    return events, others


def checked_events(depends_on: Any) -> tuple[Any, ...]:
    """Return ``depends_on`` as a tuple of events; raises as :func:`events_before`."""
    if isinstance(depends_on, Event) or is_event(depends_on):
        return (depends_on,)
    if not isinstance(depends_on, Iterable) or hasattr(depends_on, "usm_type"):
        raise _no_event(depends_on)
    events = tuple(depends_on)
    for event in events:
        if not (isinstance(event, Event) or is_event(event)):
            raise _no_event(event)
    return events


def _no_event(value: Any) -> KernelArgumentError:
    if hasattr(value, "usm_type"):
        return KernelArgumentError(
            f"depends_on: an array of shape {value.shape} is not an event; the event of the work "
            "that computes it is x.event: depends_on=x.event"
        )
    return KernelArgumentError(
        f"depends_on: {value!r} of type {type(value).__name__} is not an event; pass the result "
        "of call_kernel, x.event of an array, a dpctl.SyclEvent, or a list of them"
    )


# -- notification ----------------------------------------------------------------------------------

#: A thread keeps its queue alive, so it ends after this many seconds without callbacks.
IDLE_SECONDS = 1.0


class _Waiter(threading.Thread):
    """The thread that waits for the events of a queue in order, and calls what follows them."""

    def __init__(self, place: tuple[Queue, bool]) -> None:
        super().__init__(name="dparray events", daemon=True)
        self.place = place
        self.asked: SimpleQueue[Any] = SimpleQueue()
        self.uncalled = 0

    def run(self) -> None:
        while True:
            try:
                event, callback, result = self.asked.get(timeout=IDLE_SECONDS)
            except Empty:
                with _lock:  # Nothing is added meanwhile.
                    if self.asked.empty():
                        if _waiters.get(self.place) is self:  # The child of a fork has no threads.
                            del _waiters[self.place]
                        return
                continue
            try:
                event.wait()
                settle = partial(result.set_result, callback())
            except BaseException as error:
                settle = partial(result.set_exception, error)
            with _lock:
                self.uncalled -= 1
            settle()
            # Drop references, so that nothing stays alive until the next event.
            del event, callback, result, settle


#: Keyed by queue, and by whether the callbacks are dparray's.
_waiters: dict[tuple[Queue, bool], _Waiter] = {}
_lock = threading.Lock()


def _after(event: Event, callback: Callable[[], Any], is_ours: bool = False) -> Future[Any]:
    """Call a function now if an event is done, otherwise on the thread that waits for it.

    A dparray callback follows only the callbacks passed before it, so that two such threads never
    wait for each other.
    """
    place = event.queue, is_ours
    result: Future[Any] = Future()
    waiter = None if is_ours else _waiters.get(place)
    # A callback must not wait for others that its own thread calls after it.
    is_first = not (waiter and waiter.uncalled) or isinstance(threading.current_thread(), _Waiter)
    if event.done and is_first:
        try:
            result.set_result(callback())
        except Exception as error:
            result.set_exception(error)
        return result
    with _lock:
        waiter = _waiters.get(place)
        if waiter is None:
            waiter = _waiters[place] = _Waiter(place)
            waiter.start()
        waiter.uncalled += 1
        waiter.asked.put((event, callback, result))
    return result


def _wake(loop: Any, waiter: Any, error: BaseException | None) -> None:
    """Wake a coroutine from another thread, unless its loop is closed."""

    def wake() -> None:
        if waiter.done():
            return
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)

    if not loop.is_closed():
        loop.call_soon_threadsafe(wake)


_hooks.at_fork(after_in_child=_waiters.clear)
