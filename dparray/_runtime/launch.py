"""Check a range and submit a kernel in order with its queue.

All work on a queue, dpnp's and dparray's, is ordered as submitted (:mod:`dparray._driver.marks`).
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterable, Sequence
from math import prod
from threading import get_ident
from typing import Any, NamedTuple

from dparray import _hooks
from dparray._driver import by_type, driver_of, traits_of
from dparray._driver.interface import DriverEvent, Loaded, PackedRange, Queue
from dparray._driver.marks import MIN_LONG_BYTES, Marked
from dparray._runtime import profiled, rounding
from dparray._runtime.packing import (
    Packed,
    arrays_of,
    has_local_memory,
    pack_range,
    pack_scalars,
)
from dparray._runtime.queues import note_work
from dparray._runtime.rounding import INDEX_LIMIT
from dparray.exceptions import ForkError, KernelExecutionError, KernelRangeError


def check_range(
    kernel: str, queue: Queue, size: Sequence[int], local: Sequence[int] | None
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
    limits = traits_of(queue)
    for dimension, (extent, part) in enumerate(zip(size, local, strict=True)):
        if part <= 0 or extent % part:
            raise KernelRangeError(
                f"kernel {kernel}: the local size {part} does not divide the global size {extent} "
                f"in dimension {dimension}"
            )
    # The device has the dimensions in reverse order.
    allowed = limits.sizes[: len(local)][::-1]
    if prod(local) > limits.group or any(map(int.__gt__, map(int, local), allowed)):
        raise KernelRangeError(
            f"kernel {kernel}: a work-group of {tuple(local)} is {prod(local)} work-items; "
            f"{traits_of(queue).name} allows {limits.group} in a group and {allowed} in its "
            "dimensions. Use a smaller local size"
        )
    check_groups(kernel, queue, size, local)


def check_groups(kernel: str, queue: Queue, size: Sequence[int], local: Sequence[int]) -> None:
    """Raise ``KernelRangeError`` if a range has more work-groups than the queue's device counts."""
    limits = traits_of(queue)
    allowed = limits.groups[: len(local)][::-1]
    for dimension, (extent, part, most) in enumerate(zip(size, local, allowed, strict=True)):
        if extent // part > most:
            raise KernelRangeError(
                f"kernel {kernel}: {extent // part} work-groups in dimension {dimension}; "
                f"{limits.name} allows {most}. Make the last dimension the longest, or use larger "
                "groups"
            )


def check_local_memory(kernel: str, queue: Queue, asked: int) -> None:
    """Raise ``KernelRangeError`` if a group needs more local memory than the device has."""
    available = traits_of(queue).local_memory
    if asked > available:
        raise KernelRangeError(
            f"kernel {kernel}: its local accessors take {asked} bytes of local memory for each "
            f"work-group; {traits_of(queue).name} has {available}. Use smaller groups or tiles"
        )


class Built:
    """A kernel as built by a driver for one device of a context.

    Attributes:
        loaded: the driver's kernel.
        address: the address of the kernel, for the C interface.
        most_in_group: the number of work-items in the largest group of a kernel of a ``Range``. Its
            first parameters are the requested sizes, and work-items beyond them do nothing. 0 for
            other kernels, whose range is launched unchanged.
    """

    __slots__ = ("address", "loaded", "most_in_group")

    def __init__(self, loaded: Loaded, takes_range: bool) -> None:
        self.loaded = loaded
        self.address = loaded.address
        self.most_in_group = loaded.group if takes_range else 0


class Ready(NamedTuple):
    """A kernel over a range on a queue, ready for submission.

    Attributes:
        address: the address of the kernel.
        index_space: the range.
        extents: the requested sizes as arguments, if the kernel takes them.
        kinds: the types of all arguments, equal to the types of the kernel's parameters.
        takes_local: whether the arguments include local memory.
        known: the launch of the compiled module; ``None`` if there is none.
    """

    address: int
    index_space: PackedRange
    extents: Packed | None
    kinds: bytes
    takes_local: bool
    known: Any


_MAX_READY = 1024

#: Creates a launch of the compiled module, and submits it with packed arguments. ``None`` without
#: that module.
make_known: Callable[[tuple[Any, ...]], Any] | None = None
launch_packed: Callable[[Any, Any, Any, int], DriverEvent | None] | None = None


def _made_ready(
    kernel: Any,
    queue: Queue,
    global_range: Sequence[int],
    local_range: Sequence[int] | None,
    arguments: Sequence[Packed],
) -> Ready:
    """Build a kernel and check a range; stored with the kernel, since a lookup is cheaper."""
    built: Built = kernel.built_for(queue)
    check_range(kernel.name, queue, global_range, local_range)
    if len(kernel.ready) >= _MAX_READY:
        kernel.ready.clear()
    size, local, extents = global_range, local_range, None
    if built.most_in_group:
        extents = pack_scalars(map(ctypes.c_int64, global_range))
        if local is None:
            size, local = _rounded(queue, global_range, built.most_in_group)
            if local is not None:
                check_groups(kernel.name, queue, size, local)
    parameters = arguments if extents is None else (extents, *arguments)
    kinds = b"".join([each.kinds for each in parameters])
    space = pack_range(size, local)
    known = _known(kernel.name, queue, built.address, space, extents, kinds)
    ready = Ready(built.address, space, extents, kinds, has_local_memory(kinds), known)
    kernel.ready[queue, global_range, local_range] = ready
    return ready


def _known(
    name: str, queue: Queue, address: int, space: PackedRange, extents: Packed | None, kinds: bytes
) -> Any:
    """Return the launch of the compiled module; ``None`` if Python is to submit."""
    driver = driver_of(queue)
    words = None if make_known is None else driver.for_launch(queue, address, space)
    if make_known is None or words is None:
        return None
    first = b"" if extents is None else extents.addresses
    place = driver.address_of(queue)
    launch = (extents, queue, name, address, place, space.extents, space.local, kinds, first)
    return make_known((*launch, (), 0, (), (), 0, 0, 0, driver.name, words))


def _rounded(queue: Queue, size: Sequence[int], most_in_group: int) -> rounding.Rounded:
    limits = traits_of(queue)
    if not limits.has_groups:
        return rounding.Rounded(tuple(size), None)
    if limits.shares_memory:
        # The device has the dimensions in reverse order.
        groups = rounding.on_cpu(size, min(most_in_group, *limits.sizes), limits.units)
    elif not limits.chooses_groups:
        return rounding.in_groups(size, most_in_group, limits.sizes, limits.groups)
    else:
        groups = rounding.elsewhere(size)
    counted = max(max(groups.size), prod(groups.size) if prod(size) < INDEX_LIMIT else 0)
    return groups if counted < INDEX_LIMIT else rounding.Rounded(tuple(size), None)


def check_launch(
    kernel: Any,
    global_range: Sequence[int],
    local_range: Sequence[int] | None,
    arguments: Sequence[Packed],
    queue: Queue,
) -> None:
    """Check the range and the local memory as :func:`launch` does, without a launch."""
    kernel.built_for(queue)
    check_range(kernel.name, queue, global_range, local_range)
    if local_range is not None:
        asked = sum([argument.local_nbytes for argument in arguments])
        check_local_memory(kernel.name, queue, asked)


_recent = _hooks.recent.append


def launch(
    kernel: Any,
    global_range: Sequence[int],
    local_range: Sequence[int] | None,
    arguments: Sequence[Packed],
    queue: Queue,
    depends_on: Iterable[DriverEvent] = (),
    keep_alive: tuple[Any, ...] = (),
    memory: Sequence[Marked | None] = (None,),
    reads: int = 0,
) -> DriverEvent:
    """Submit ``kernel`` after all earlier work on ``queue``; return without waiting.

    Args:
        kernel: a compiled kernel (``built_for(queue)`` returns a :class:`Built`; ``name``;
            ``ready``, a dict of :class:`Ready` objects that this function fills).
        global_range, local_range: sizes in the order of the kernel's indices, as tuples.
        arguments: the arguments for all parameters of the kernel. Pool memory among them may be
            dropped immediately, because a block is reused only in order with its queue.
        queue: the queue to run on.
        depends_on: events of other queues that must complete first.
        keep_alive: owners of memory outside the pool, kept alive until the kernel has run.
        memory: the pool memory behind the arguments; ``None`` stands for other memory.
        reads: how many of ``memory``, from the start, are only read.

    Raises:
        KernelRangeError: the device cannot run this range.
        KernelExecutionError: the driver rejects the launch.
    """
    ready = kernel.ready.get((queue, global_range, local_range))
    if ready is None:
        ready = _made_ready(kernel, queue, global_range, local_range, arguments)
    if ready.takes_local:
        asked = 0
        for argument in arguments:  # A comprehension is one more call up to Python 3.11.
            asked += argument.local_nbytes
        if asked > traits_of(queue).local_memory:
            check_local_memory(kernel.name, queue, asked)
    driver = by_type[type(queue)]
    event, target, start = None, queue, 0.0
    if _hooks.subscribers:
        target, start = profiled.target_of(queue), time.perf_counter()
    try:
        if launch_packed is not None and ready.known and not (depends_on or _hooks.subscribers):
            event = launch_packed(ready.known, arguments, memory, reads)
        if event is None:
            event = _submit(kernel.name, ready, arguments, queue, target, depends_on, memory, reads)
        if event is not None:
            for each in memory:
                if each is not None and each.nbytes >= MIN_LONG_BYTES:
                    driver.order_of(queue).note_long()
                    break
            if keep_alive:
                with driver.foreign_calls(queue):
                    driver.keep_until(queue, keep_alive, event)
    except ForkError:
        raise
    except BaseException:
        # An interrupt may come after the kernel was submitted and before anything waits for it.
        _note_interrupted(driver.order_of(queue), queue, target, keep_alive)
        raise
    if event is None:
        raise _refusal(kernel, queue, global_range, local_range)
    if _hooks.subscribers:
        _hooks.emit(
            "launch",
            kernel=kernel,
            queue=queue,
            driver_event=event,
            start=start,
            global_range=tuple(global_range),
            local_range=local_range,
            arguments=arguments,
            nbytes=sum(dict(arrays_of(arguments)).values()),
        )
    return event


def _submit(
    name: str,
    ready: Ready,
    arguments: Sequence[Packed],
    queue: Queue,
    target: Queue,
    depends_on: Iterable[DriverEvent],
    memory: Sequence[Marked | None],
    reads: int,
) -> DriverEvent | None:
    """Submit a kernel to ``target``, which stands for ``queue``; ``None`` if the driver rejects it.

    The same as `launch_packed` of the compiled module, which has no profiling.
    """
    driver = by_type[type(queue)]
    order = driver.order_of(queue)
    seen = order.count
    dependencies = [*depends_on, *order.before_launch()]
    _recent((name, "kernel", queue, get_ident()))
    addresses = b"".join([argument.addresses for argument in arguments])
    if ready.extents is not None:
        addresses = ready.extents.addresses + addresses
    space = ready.index_space
    event = driver.submit(ready.address, target, ready.kinds, addresses, space, dependencies)
    if event is not None:
        order.add_launch(event, dependencies, seen, memory, reads)
        note_work(queue)
    return event


def _note_interrupted(order: Any, queue: Queue, target: Queue, keep_alive: tuple[Any, ...]) -> None:
    """Make later work wait for everything submitted, including a launch whose event was lost."""
    driver = driver_of(queue)
    barrier = driver.barrier(target)
    order.add_event_pair([], [barrier])
    if keep_alive:
        driver.keep_until(queue, keep_alive, barrier)
    note_work(queue)


def _refusal(
    kernel: Any,
    queue: Queue,
    global_range: Sequence[int],
    local_range: Sequence[int] | None,
) -> KernelExecutionError:
    total = prod(global_range)
    remedy = getattr(
        kernel,
        "remedy",
        "Use smaller groups, or smaller dp.LocalArray arrays: a group has "
        f"{traits_of(queue).local_memory} bytes of local memory",
    )
    if total >= INDEX_LIMIT:
        remedy = (
            f"These are {total} work-items, and drivers may not count beyond "
            f"{INDEX_LIMIT - 1}: let each work-item do several elements"
        )
    groups = f" in groups of {tuple(local_range)}" if local_range else ""
    return KernelExecutionError(
        f"kernel {kernel.name}: {traits_of(queue).name} rejected a launch over "
        f"{tuple(global_range)}{groups}. {remedy}"
    )
