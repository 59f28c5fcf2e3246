"""Events of launches: waiting, status and times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import dpctl

from dparray._runtime.in_order import wait_for
from dparray.exceptions import KernelArgumentError, KernelExecutionError

__all__ = [
    "Event",
]


class ProfilingTimes(NamedTuple):
    """When a launch was submitted, started and ended, in nanoseconds of the device's clock."""

    submit: int
    start: int
    end: int

    @property
    def seconds(self) -> float:
        """How long the kernel ran."""
        return (self.end - self.start) * 1e-9


class Launchable(Protocol):
    """What an event says of the kernel that was launched."""

    __name__: str

    @property
    def location(self) -> str:
        """File and line of the kernel."""


class Event:
    """The end of one launch.

    Attributes:
        sycl_event: the ``dpctl.SyclEvent``.
        kernel: the kernel function that was launched.
        queue: where it runs.

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

    __slots__ = ("kernel", "queue", "sycl_event")

    def __init__(
        self, sycl_event: dpctl.SyclEvent, kernel: Launchable, queue: dpctl.SyclQueue
    ) -> None:
        self.sycl_event = sycl_event
        self.kernel = kernel
        self.queue = queue

    def wait(self) -> None:
        """Wait on the host until the kernel has run.

        Raises:
            KernelExecutionError: the device failed; the message names the kernel and its line.
        """
        try:
            wait_for([self.sycl_event])
        except Exception as error:
            raise KernelExecutionError(
                f"kernel {self.kernel.__name__} ({self.kernel.location}) failed on "
                f"{self.queue.sycl_device.name}: {error}"
            ) from error

    @property
    def done(self) -> bool:
        """Whether the kernel has run."""
        return bool(self.sycl_event.execution_status == dpctl.event_status_type.complete)

    @property
    def profile(self) -> ProfilingTimes:
        """The times of the launch; waits for it.

        Raises:
            KernelExecutionError: the queue does not collect times.
        """
        if not self.queue.has_enable_profiling:
            raise KernelExecutionError(
                f"kernel {self.kernel.__name__}: its queue collects no times; make one with "
                'dpctl.SyclQueue(device, property="enable_profiling") and put the arrays on it'
            )
        self.wait()
        event = self.sycl_event
        return ProfilingTimes(
            event.profiling_info_submit, event.profiling_info_start, event.profiling_info_end
        )

    def __repr__(self) -> str:
        state = "done" if self.done else "running"
        return f"<dparray event of kernel {self.kernel.__name__}, {state}>"


def _events(depends_on: Any) -> Any:
    """``depends_on`` as a sequence of ``dpctl.SyclEvent``."""
    if type(depends_on) is tuple and not depends_on:
        return depends_on
    if isinstance(depends_on, Event | dpctl.SyclEvent):
        depends_on = (depends_on,)
    elif not isinstance(depends_on, Iterable):
        raise _no_event(depends_on)
    events = [event.sycl_event if isinstance(event, Event) else event for event in depends_on]
    for event in events:
        if not isinstance(event, dpctl.SyclEvent):
            raise _no_event(event)
    return events


def _no_event(value: Any) -> KernelArgumentError:
    return KernelArgumentError(
        f"depends_on: {value!r} of type {type(value).__name__} is no event; give what call_kernel "
        "returned, a dpctl.SyclEvent, or a list of them"
    )
