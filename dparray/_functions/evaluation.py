"""When work is computed and when the host waits for it."""

from __future__ import annotations

from typing import Any

from dparray import _hooks
from dparray._array.ndarray import ndarray
from dparray._evaluate import evaluate
from dparray._runtime import host_maps, queues
from dparray._runtime.event import checked_events, order_after
from dparray.device import Device, default_device, queue_of
from dparray.exceptions import HostConversionError

__all__ = ["eval", "synchronize"]


_NO_EVENTS: tuple[()] = ()


def eval(*arrays: ndarray, depends_on: Any = _NO_EVENTS) -> None:
    """Submit the work of pending arrays now; kernels are not waited for.

    On a CPU device the calling thread computes some work itself, by NumPy: matrix products, sorts,
    small arrays, and expressions whose kernel is not compiled yet. There it waits until earlier
    work on the same memory is done, and returns with the result.

    Arrays of one shape on one queue are computed by one kernel. The arrays need not be on one
    queue; those that are computed already stay as they are.

    Args:
        arrays: what to compute.
        depends_on: events of whatever queues (:class:`dparray.Event`, ``dpctl.SyclEvent``) that
            this work, and all later work on the arrays' queues, waits for: on the device, or, if
            they are of another context, here.

    Raises:
        HostConversionError: an argument is no array.
        KernelArgumentError: what is in ``depends_on`` is no event.

    Example:
        >>> import dparray as dp
        >>> x = dp.ones(3) + 1
        >>> y = x * 2
        >>> dp.eval(x, y)
        >>> y.is_pending
        False
    """
    if len(arrays) == 1 and type(arrays[0]) is ndarray and depends_on is _NO_EVENTS:
        (x,) = arrays
        if x._host_view is None and x._node.layout is None:
            mark = _hooks.latest_work()
            evaluate.evaluate(x._node)
            _hooks.note_call("eval", mark, x)
        return
    pending = []
    for number, x in enumerate(arrays):
        if type(x) is ndarray and x._host_view is not None:
            continue
        if not isinstance(x, ndarray):
            raise HostConversionError(
                f"eval: arrays[{number}] is of type {type(x).__name__}; only arrays are computed: "
                "dp.eval(x, y)"
            )
        if x.is_pending:
            pending.append(x._node)
    used = {x.sycl_queue for x in arrays}
    if type(depends_on) is not tuple or depends_on:
        events = checked_events(depends_on)
        for queue in used if events else ():
            order_after(queue, events)
    if pending:
        mark = _hooks.latest_work()
        evaluate.evaluate(*pending)
        _hooks.note_call("eval", mark, arrays)


def synchronize(device: Any = None) -> None:
    """Wait on the host for all work submitted to a queue.

    A timer around expressions, ``dpctl.SyclTimer`` among them, measures how they are recorded:
    nothing is computed until a value is asked for. :class:`dparray.timer` computes what is built
    inside and waits; with any other clock, what is to be measured ends in ``dp.synchronize(x)``.
    The same call comes before a host view that another library made of the memory
    (``np.from_dlpack``) is read or written.

    Args:
        device: whatever :class:`dparray.Device` takes, or an array, whose pending values are then
            computed first; the default device if not given.

    Raises:
        DeviceError: there is no such device.

    Example:
        >>> import dparray as dp
        >>> x = dp.ones(3) + 1
        >>> dp.synchronize(x)
    """
    if isinstance(device, ndarray):
        eval(device)
        queue = device.sycl_queue
    else:
        queue = default_device().sycl_queue if device is None else queue_of(Device(device))
    if host_maps.holds:
        host_maps.wait_for_writes_ahead(queue)
    queues.wait(queue)
