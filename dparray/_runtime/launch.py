"""Launching: the range is checked, and the kernel is submitted in order with its queue.

All work on a queue is ordered as submitted, dpnp's and ours (:mod:`dparray._runtime.order`).
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import dpctl

from dparray import _hooks
from dparray._runtime import profiled, rounding
from dparray._runtime.arguments import Packed, arrays_of, pack_scalars
from dparray._runtime.device_facts import is_cpu, limits_of
from dparray._runtime.in_order import foreign_calls
from dparray._runtime.order import order_of
from dparray._runtime.queues import note_work
from dparray._runtime.rounding import INDEX_LIMIT
from dparray._runtime.submission import PackedRange, pack_range, submit
from dparray.exceptions import KernelExecutionError, KernelRangeError


def check_range(
    kernel: str, queue: dpctl.SyclQueue, size: Sequence[int], local: Sequence[int] | None
) -> None:
    """Raise ``KernelRangeError`` unless the queue's device can run this range."""
    for dimension, extent in enumerate(size):
        if not 0 < extent < INDEX_LIMIT:
            raise KernelRangeError(
                f"kernel {kernel}: the global range {tuple(size)} has {extent} work-items in "
                f"dimension {dimension}; a kernel's index counts from 1 to {INDEX_LIMIT - 1}. "
                "A dp.Range is launched in pieces; in groups, let a work-item do several elements"
            )
    if local is None:
        return
    limits = limits_of(queue)
    for dimension, (extent, part) in enumerate(zip(size, local, strict=True)):
        if part <= 0 or extent % part:
            raise KernelRangeError(
                f"kernel {kernel}: the local size {part} does not divide the global size {extent} "
                f"in dimension {dimension}"
            )
    # Dimensions are reversed on the way to the device.
    allowed = limits.sizes[: len(local)][::-1]
    if prod(local) > limits.group or any(map(int.__gt__, map(int, local), allowed)):
        raise KernelRangeError(
            f"kernel {kernel}: a work-group of {tuple(local)} is {prod(local)} work-items; "
            f"{queue.sycl_device.name} allows {limits.group} in a group and {allowed} in its "
            "dimensions. Use a smaller local size"
        )


def check_local_memory(kernel: str, queue: dpctl.SyclQueue, asked: int) -> None:
    """Raise ``KernelRangeError`` where a group asks for more local memory than the device has."""
    available = limits_of(queue).local_memory
    if asked > available:
        raise KernelRangeError(
            f"kernel {kernel}: its local accessors take {asked} bytes of local memory for each "
            f"work-group; {queue.sycl_device.name} has {available}. Use smaller groups or tiles"
        )


# Ranges that were checked and are possible: looking one up costs less than checking it again.
_possible_ranges: dict[tuple[Any, ...], tuple[PackedRange, Packed]] = {}


_MOST_POSSIBLE_RANGES = 4096


def _checked_range(
    kernel: Any,
    queue: dpctl.SyclQueue,
    global_range: Sequence[int],
    local_range: Sequence[int] | None,
    most_in_group: int,
) -> tuple[PackedRange, Packed]:
    """The range as it is submitted, and the extents that were asked for, as arguments."""
    check_range(kernel.name, queue, global_range, local_range)
    if len(_possible_ranges) >= _MOST_POSSIBLE_RANGES:
        _possible_ranges.clear()
    size, local = global_range, local_range
    if most_in_group and local is None:
        size, local = _rounded(queue, global_range, most_in_group)
    asked = pack_scalars(map(ctypes.c_int64, global_range))
    found = pack_range(size, local), asked
    _possible_ranges[queue, global_range, local_range, most_in_group] = found
    return found


def _rounded(queue: dpctl.SyclQueue, size: Sequence[int], most_in_group: int) -> rounding.Rounded:
    if is_cpu(queue):
        limits = limits_of(queue)
        # Dimensions are reversed on the way to the device.
        found = rounding.on_cpu(size, min(most_in_group, *limits.sizes), limits.units)
    else:
        found = rounding.elsewhere(size)
    counted = max(max(found.size), prod(found.size) if prod(size) < INDEX_LIMIT else 0)
    return found if counted < INDEX_LIMIT else rounding.Rounded(tuple(size), None)


_recent = _hooks.recent.append


def launch(
    kernel: Any,
    global_range: Sequence[int],
    local_range: Sequence[int] | None,
    arguments: Sequence[Packed],
    queue: dpctl.SyclQueue,
    depends_on: Iterable[dpctl.SyclEvent] = (),
    keep_alive: tuple[Any, ...] = (),
) -> dpctl.SyclEvent:
    """Submit ``kernel`` after all earlier work on ``queue``; returns without waiting.

    Args:
        kernel: a compiled kernel (``sycl_kernel(queue)``, ``most_in_group(queue)`` and ``name``).
        global_range, local_range: extents in the order of the kernel's indices, as tuples.
        arguments: those of all parameters of the kernel. Memory of the pool among them may be
            dropped at once, because a block is only reused in order with its queue.
        queue: where to run.
        depends_on: events of other queues that must be complete first.
        keep_alive: owners of memory outside the pool, held until the kernel has run.

    Raises:
        KernelRangeError: the device cannot run this range.
        KernelExecutionError: the driver refuses the launch.
    """
    most_in_group = kernel.most_in_group(queue)
    found = _possible_ranges.get((queue, global_range, local_range, most_in_group))
    if found is None:
        found = _checked_range(kernel, queue, global_range, local_range, most_in_group)
    index_space, extents = found
    if local_range is not None:
        asked = sum([argument.local_nbytes for argument in arguments])
        if asked:
            check_local_memory(kernel.name, queue, asked)
    order = order_of(queue)
    dependencies = order.before_launch()
    if depends_on:
        dependencies = [*depends_on, *dependencies]
    target, start = queue, 0.0
    if _hooks.subscribers:
        target, start = profiled.target_of(queue), time.perf_counter()
    _recent((kernel.name, "kernel", queue))
    given = [extents, *arguments] if most_in_group else arguments
    event = submit(kernel.sycl_kernel(queue), target, given, index_space, dependencies)
    if event is None:
        raise _refusal(kernel, queue, global_range, local_range)
    order.add_launch(event, dependencies)
    if keep_alive:
        with foreign_calls(queue):
            order.add_host_task(queue._submit_keep_args_alive(keep_alive, [event]))
    note_work(queue)
    if _hooks.subscribers:
        _hooks.emit(
            "launch",
            kernel=kernel,
            queue=queue,
            sycl_event=event,
            start=start,
            global_range=tuple(global_range),
            local_range=local_range,
            arguments=arguments,
            nbytes=sum(dict(arrays_of(arguments)).values()),
        )
    return event


def _refusal(
    kernel: Any,
    queue: dpctl.SyclQueue,
    global_range: Sequence[int],
    local_range: Sequence[int] | None,
) -> KernelExecutionError:
    total = prod(global_range)
    remedy = "Smaller groups need less of what a device has"
    if total >= INDEX_LIMIT:
        remedy = (
            f"These are {total} work-items, and drivers may count no further than "
            f"{INDEX_LIMIT - 1}: let each work-item do several elements"
        )
    return KernelExecutionError(
        f"kernel {kernel.name}: {queue.sycl_device.name} refused a launch over "
        f"{tuple(global_range)} in groups of {local_range and tuple(local_range)}. {remedy}"
    )
