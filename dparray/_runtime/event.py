"""Events: the end of work on a queue, to wait for, to order other work by, or to be told of."""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import dpctl

from dparray import _hooks
from dparray._runtime import access
from dparray._runtime.in_order import foreign_calls, wait_for
from dparray._runtime.order import order_of
from dparray.exceptions import KernelArgumentError, KernelExecutionError


class ProfilingTimes(NamedTuple):
    """When a launch was submitted, started and ended, in nanoseconds of the device's clock."""

    submit: int
    start: int
    end: int

    @property
    def seconds(self) -> float:
        """How long the kernel ran."""
        return (self.end - self.start) * 1e-9


class Event:
    """The end of one launch, or of the work that an array waits for (``x.event``).

    ``await event`` waits in asyncio while the loop goes on. Given to ``depends_on=`` it orders work
    on any queue behind it, and no host thread waits where the queues share a context. An event of
    another context is waited for by the calling thread: drivers take no events but their context's,
    and a launch has to be submitted before the work after it on its queue.

    Attributes:
        sycl_events: the ``dpctl.SyclEvent`` objects that it is made of.
        kernel: the kernel function that was launched; ``None`` of an array's work.
        queue: where it runs.
        copies: what the host has still to copy before it, see :mod:`dparray.memory.arrivals`.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def fill(item, x, value):
        ...     x[item.get_id(0)] = value
        >>> x = dp.zeros(4)
        >>> event = dp.call_kernel(fill, dp.Range.like(x), x, 7)
        >>> event.wait()
        >>> event.done
        True
    """

    __slots__ = ("copies", "kernel", "queue", "sycl_events")

    def __init__(
        self,
        sycl_event: dpctl.SyclEvent | Sequence[dpctl.SyclEvent],
        kernel: Any,
        queue: dpctl.SyclQueue,
        copies: tuple[access.Hold, ...] = (),
    ) -> None:
        is_one = isinstance(sycl_event, dpctl.SyclEvent)
        self.sycl_events = (sycl_event,) if is_one else tuple(sycl_event)
        self.kernel = kernel
        self.queue = queue
        self.copies = copies

    @property
    def sycl_event(self) -> dpctl.SyclEvent:
        """The one ``dpctl.SyclEvent``; of several, one that is submitted to come after them."""
        access.wait_for(self.copies)
        if len(self.sycl_events) == 1:
            return self.sycl_events[0]
        with foreign_calls(self.queue):
            return self.queue.submit_barrier(list(self.sycl_events))

    def wait(self) -> None:
        """Wait on the host until the work is done.

        Raises:
            KernelExecutionError: the device failed; the message names the kernel and its line.
        """
        start = time.perf_counter()
        access.wait_for(self.copies)
        try:
            wait_for(self.sycl_events)
        except Exception as error:
            what = "the work before an event"
            if self.kernel is not None:
                what = f"kernel {self.kernel.__name__} ({self.kernel.location})"
            raise KernelExecutionError(
                f"{what} failed on {self.queue.sycl_device.name}: {error}"
            ) from error
        if _hooks.subscribers:
            _hooks.emit("wait", queue=self.queue, start=start)

    @property
    def done(self) -> bool:
        """Whether the work is done; does not wait."""
        complete = dpctl.event_status_type.complete
        if any(copy in access.holds for copy in self.copies):
            return False
        return all(event.execution_status == complete for event in self.sycl_events)

    def then(self, callback: Callable[[], Any]) -> Future[Any]:
        """Call ``callback`` when the work is done: at once if it is, else on a thread of dparray's.

        That thread, one for each queue, sleeps while it waits, and ends when nothing was asked of
        it for a second. A callback may submit work, and should not take long.

        Returns:
            A future of what the callback returns, or raises; or of the error of the work itself.

        Raises:
            KernelArgumentError: ``callback`` cannot be called.

        Example:
            >>> import dparray as dp
            >>> x = dp.ones(100_000) + 1
            >>> x.event.then(lambda: float(x[0])).result()
            2.0
        """
        if not callable(callback):
            raise KernelArgumentError(
                f"then: {callback!r} of type {type(callback).__name__} cannot be called; give a "
                "function without arguments: event.then(lambda: print('done'))"
            )
        result: Future[Any] = Future()
        if self.done:
            _call(callback, result)
        else:
            _ask(self, callback, result)
        return result

    def __await__(self) -> Generator[Any, None, None]:
        if not self.done:
            # Whoever awaits has imported it.
            loop = importlib.import_module("asyncio").get_running_loop()
            waiter = loop.create_future()
            ended = self.then(lambda: None)
            ended.add_done_callback(lambda future: _tell(loop, waiter, future.exception()))
            yield from waiter

    @property
    def profile(self) -> ProfilingTimes:
        """The times of the launch; waits for it.

        Raises:
            KernelExecutionError: the queue does not collect times.
        """
        if not self.queue.has_enable_profiling:
            name = "x.event" if self.kernel is None else f"kernel {self.kernel.__name__}"
            raise KernelExecutionError(
                f"{name}: its queue collects no times; look with dp.profile(), or make one with "
                'dpctl.SyclQueue(device, property="enable_profiling") and put the arrays on it'
            )
        self.wait()
        event = self.sycl_event
        return ProfilingTimes(
            event.profiling_info_submit, event.profiling_info_start, event.profiling_info_end
        )

    def __repr__(self) -> str:
        state = "done" if self.done else "running"
        of = "" if self.kernel is None else f" of kernel {self.kernel.__name__}"
        return f"<dparray event{of}, {state}>"


def event_of_work(queue: dpctl.SyclQueue) -> Event:
    """The end of all work that has been submitted to a queue."""
    return Event(order_of(queue).submitted_events, None, queue)


def order_after(queue: dpctl.SyclQueue, depends_on: Any) -> None:
    """Let all later work on a queue wait for an event or some, of whatever queues."""
    order = order_of(queue)
    for event in sycl_events(depends_on, queue):
        order.add_event_pair([], [event])


def sycl_events(depends_on: Any, queue: dpctl.SyclQueue | None) -> Any:
    """``depends_on``, an event or some, as what work on a queue can depend on.

    The host waits for events of queues in another context, see ``memory.arrivals``.

    Raises:
        KernelArgumentError: it is none.
    """
    if type(depends_on) is tuple and not depends_on:
        return depends_on
    if isinstance(depends_on, Event | dpctl.SyclEvent):
        depends_on = (depends_on,)
    elif not isinstance(depends_on, Iterable) or hasattr(depends_on, "sycl_queue"):
        raise _no_event(depends_on)
    events: list[dpctl.SyclEvent] = []
    for event in depends_on:
        if isinstance(event, Event):
            if queue is not None and event.queue.sycl_context != queue.sycl_context:
                event.wait()
                continue
            access.wait_for(event.copies)
            events += event.sycl_events
        elif isinstance(event, dpctl.SyclEvent):
            events.append(event)
        else:
            raise _no_event(event)
    return events


def events_before(depends_on: Any, arguments: Sequence[Any]) -> Any:
    """The same for a launch with arguments."""
    if type(depends_on) is tuple and not depends_on:
        return depends_on
    queues = (getattr(argument, "sycl_queue", None) for argument in arguments)
    return sycl_events(depends_on, next((queue for queue in queues if queue is not None), None))


def _no_event(value: Any) -> KernelArgumentError:
    if hasattr(value, "sycl_queue"):
        return KernelArgumentError(
            f"depends_on: an array of shape {value.shape} is no event; the end of the work that "
            "fills it is one: depends_on=x.event"
        )
    return KernelArgumentError(
        f"depends_on: {value!r} of type {type(value).__name__} is no event; give what call_kernel "
        "returned, x.event of an array, a dpctl.SyclEvent, or a list of them"
    )


# -- being told ------------------------------------------------------------------------------------

_waiters: dict[dpctl.SyclQueue, SimpleQueue[Any]] = {}
_lock = threading.Lock()


#: A thread ends when nothing was asked of it for so many seconds: it keeps its queue alive.
IDLE_SECONDS = 1.0


def _ask(event: Event, callback: Callable[[], Any], result: Future[Any]) -> None:
    """Give an event to the thread that waits for those of its queue, one after the other."""
    queue = event.queue
    with _lock:
        asked = _waiters.get(queue)
        if asked is None:
            asked = _waiters[queue] = SimpleQueue()
            threading.Thread(
                target=_wait_for_each, args=(queue, asked), name="dparray events", daemon=True
            ).start()
        asked.put((event, callback, result))


def _wait_for_each(queue: dpctl.SyclQueue, asked: SimpleQueue[Any]) -> None:
    while True:
        try:
            event, callback, result = asked.get(timeout=IDLE_SECONDS)
        except Empty:
            with _lock:  # nothing is put in meanwhile
                if asked.empty():
                    if _waiters.get(queue) is asked:  # a child of fork has forgotten it
                        del _waiters[queue]
                    return
            continue
        try:
            event.wait()
        except BaseException as error:
            result.set_exception(error)
        else:
            _call(callback, result)
        del event, callback, result  # nothing is kept alive while it waits for the next


def _call(callback: Callable[[], Any], result: Future[Any]) -> None:
    try:
        result.set_result(callback())
    except Exception as error:
        result.set_exception(error)


def _tell(loop: Any, waiter: Any, error: BaseException | None) -> None:
    """Wake a coroutine from another thread, unless its loop is gone."""

    def wake() -> None:
        if waiter.done():
            return
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)

    if not loop.is_closed():
        loop.call_soon_threadsafe(wake)


os.register_at_fork(after_in_child=_waiters.clear)
