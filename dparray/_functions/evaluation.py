"""Functions that evaluate arrays and that make the host wait."""

from __future__ import annotations

from threading import get_ident
from typing import Any

from dparray import _hooks
from dparray._array.ndarray import ndarray
from dparray._array.operands import OVERRIDE, dispatch_override
from dparray._evaluate import evaluate, execute
from dparray._runtime import durations, host_maps, queues
from dparray._runtime.event import checked_events, order_after
from dparray.device import Device, default_device, queue_of
from dparray.exceptions import HostConversionError

__all__ = ["eval", "synchronize"]


_NO_EVENTS: tuple[()] = ()


def _evaluate(*nodes: Any) -> None:
    """Evaluate nodes; the host's steps may follow later if a user's kernel is running."""
    if not durations.running:
        evaluate.evaluate(*nodes)
        return
    thread = get_ident()
    execute.deferring.add(thread)
    try:
        evaluate.evaluate(*nodes)
    finally:
        execute.deferring.discard(thread)


def eval(*arrays: ndarray, depends_on: Any = _NO_EVENTS) -> None:
    """Submit the work of pending arrays now, without waiting for kernels.

    On a CPU device NumPy computes some operations: small arrays, expressions whose kernel is not
    compiled yet, matrix products and sorts. If a kernel of yours is still writing the memory,
    another thread computes the last step of an expression, and the call returns. Matrix products
    and sorts wait for earlier work on their memory, and the call returns after the computation.

    Arrays of the same shape on one queue share a kernel. The arrays may be on different queues;
    those that are evaluated already do not change.

    Args:
        arrays: the arrays to evaluate.
        depends_on: events from any queue (:class:`dparray.Event`, ``dpctl.SyclEvent``). This work
            and all later work on the arrays' queues waits for them: on the device, or on the host
            for events of another context.

    Raises:
        HostConversionError: an argument is not an array.
        KernelArgumentError: ``depends_on`` contains an object that is not an event.

    Example:
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
            _evaluate(x._node)
            _hooks.note_call("eval", mark, x)
        return
    pending = []
    for number, x in enumerate(arrays):
        if type(x) is ndarray and x._host_view is not None:
            continue
        if hasattr(type(x), OVERRIDE):
            dispatch_override(eval, (x,))
            continue
        if not isinstance(x, ndarray):
            raise HostConversionError(
                f"eval: arrays[{number}] is of type {type(x).__name__}; it must be an array: "
                "dp.eval(x, y)"
            )
        if x.is_pending:
            pending.append(x._node)
    used = {x.queue for x in arrays if isinstance(x, ndarray)}
    if type(depends_on) is not tuple or depends_on:
        events = checked_events(depends_on)
        for queue in used if events else ():
            order_after(queue, events)
    if pending:
        mark = _hooks.latest_work()
        _evaluate(*pending)
        _hooks.note_call("eval", mark, arrays)


def synchronize(device: Any = None) -> None:
    """Wait on the host for all work submitted to a queue.

    A timer around expressions, including ``dpctl.SyclTimer``, measures only how long it takes to
    record them: nothing is computed until a value is needed. :class:`dparray.timer` evaluates the
    arrays created inside and waits. With any other clock, end the measured code with
    ``dp.synchronize(x)``. Also call it before you access a host view that another library created
    (``np.from_dlpack``).

    Args:
        device: whatever :class:`dparray.Device` accepts, or an array, whose pending values are
            evaluated first; the default device if not given.

    Raises:
        DeviceError: the device is unknown.

    Example:
        >>> x = dp.ones(3) + 1
        >>> dp.synchronize(x)
    """
    if isinstance(device, ndarray):
        eval(device)
        queue = device.queue
    else:
        queue = default_device().queue if device is None else queue_of(Device(device))
    if host_maps.holds:
        host_maps.wait_for_writes_ahead(queue)
    queues.wait(queue)
