"""Copy between USM memory and the host, and between arrays of a queue.

All data that leaves or enters USM memory
passes through here, in order with the work on the queues that own it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import prod
from threading import get_ident
from typing import Any

import numpy as np

from dparray import _hooks
from dparray._driver import by_type, driver_of, order_of, place_of, traits_of
from dparray._driver.interface import Queue
from dparray._layout import Layout, contiguous_strides
from dparray._runtime import fallback, host_maps, profiled
from dparray._runtime.queues import note_work, wait_to_read, wait_to_write
from dparray.memory import pinned
from dparray.memory.blocks import Positions, allocate, memory_at
from dparray.memory.libraries import has_kernels, library_of


def host_views(
    function: str, queue: Queue, *layouts: Layout, because: str = "", usm_type: str = ""
) -> list[np.ndarray] | None:
    """Return NumPy arrays over arrays of a CPU device, where NumPy is faster; otherwise ``None``.

    Waits for the work on their memory, so the caller may read until it submits work itself. With
    writes, it waits by :func:`dparray._runtime.queues.wait_to_write` too. Listeners receive the
    reason, and the USM type of the result; ``function`` is the name of the work, for explanations.
    """
    if not traits_of(queue).shares_memory:
        return None
    if host_maps.holds:
        host_maps.before_read(*layouts)
    if _hooks.subscribers:
        nbytes = sum(prod(layout.shape) * layout.dtype.itemsize for layout in layouts)
        _hooks.emit("host", queue=queue, nbytes=nbytes, because=because, usm_type=usm_type)
    _hooks.recent.append((function, "NumPy for", queue, get_ident()))
    for layout in layouts:
        wait_to_read(layout.block)
    return [host_view(layout) for layout in layouts]


def is_host_accessible(queue: Queue, usm_type: str) -> bool:
    """Return whether the host can access the memory at its own address."""
    return usm_type != "device" or traits_of(queue).shares_memory


def host_view(layout: Layout) -> np.ndarray:
    """Return a NumPy array over host-accessible USM memory; the caller orders its accesses."""
    if 0 in layout.shape:  # The strides may reach any address.
        return np.empty(layout.shape, layout.dtype)
    block = layout.block
    segment = block.segment
    memory = None if segment is None else segment.host_bytes
    if memory is None:
        if isinstance(block, Positions):
            return block.values(layout)
        memory = block.host_bytes
    return np.ndarray(layout.shape, layout.dtype, memory, layout.offset, layout.strides)


#: Bytes of one chunk of a copy; between chunks it reports progress and can be interrupted.
COPY_PIECE = 64 << 20


def _copy(target: np.ndarray, source: np.ndarray, task: str) -> None:
    """Copy between host-accessible arrays of one shape, a large one in chunks."""
    count = -(-target.nbytes // COPY_PIECE)
    if count <= 1:
        target[...] = source
        return
    longest = target.shape.index(max(target.shape))
    axis = next((axis for axis, size in enumerate(target.shape) if size >= count), longest)
    extent = target.shape[axis]
    step = -(-extent // count)
    for start in range(0, extent, step):
        stop = min(start + step, extent)
        piece = (*(slice(None),) * axis, slice(start, stop))
        target[piece] = source[piece]
        if _hooks.subscribers:
            done = target.nbytes * stop // extent
            _hooks.emit("progress", task=task, done=done, total=target.nbytes)


def _pieces(nbytes: int, task: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each chunk of a copy, in bytes."""
    for start in range(0, nbytes, COPY_PIECE):
        stop = min(start + COPY_PIECE, nbytes)
        yield start, stop
        if _hooks.subscribers and nbytes > COPY_PIECE:
            _hooks.emit("progress", task=task, done=stop, total=nbytes)


def copy_from_host(source: np.ndarray, target: Layout) -> None:
    """Copy a C-contiguous host array into a C-contiguous layout.

    Returns when the source may change; a copy to device memory may still be running, ordered like
    other work on the queue.
    """
    if source.nbytes == 0:
        return
    if host_maps.holds:
        host_maps.before_write(target)
    block = target.block
    queue = block.queue
    start = time.perf_counter()
    if is_host_accessible(queue, block.usm_type):
        wait_to_write(block)
        start = time.perf_counter()
        _copy(host_view(target), source, "copy to the device")
    else:
        pinned.send(source.reshape(-1).view(np.uint8), block, target.offset)
    if _hooks.subscribers:
        _hooks.emit("copy", source="host", target=queue, nbytes=source.nbytes, start=start)


def copy_to_host(layout: Layout) -> np.ndarray:
    """Return a new host array with the values; waits for the work that writes them."""
    block = layout.block
    queue = block.queue
    openings = host_maps.openings
    if host_maps.holds:
        host_maps.before_read(layout)
    result = np.empty(layout.shape, layout.dtype)
    nbytes, shares_memory = result.nbytes, traits_of(queue).shares_memory
    if nbytes > layout.dtype.itemsize and not shares_memory:
        fallback.leaves(queue, nbytes)
    start = time.perf_counter()
    if shares_memory or block.usm_type != "device":
        wait_to_read(block)
        start = time.perf_counter()
        _copy(result, host_view(layout), "copy to the host")
        while host_maps.openings != openings:  # Another thread may have written meanwhile.
            openings = host_maps.openings
            host_maps.before_read(layout)
            wait_to_read(block)
            _copy(result, host_view(layout), "copy to the host")
    elif nbytes:
        if layout.strides != contiguous_strides(layout.shape, layout.dtype.itemsize):
            layout = packed(layout)
        flat = result.reshape(-1).view(np.uint8)
        driver = by_type[type(queue)]
        before = driver.order_of(queue).submitted_events
        pieces = [(0, nbytes)] if nbytes <= COPY_PIECE else _pieces(nbytes, "copy to the host")
        for first, last in pieces:
            device_bytes = memory_at(layout.block, layout.offset + first)
            event = driver.copy(queue, flat[first:last], device_bytes, last - first, before)
            driver.wait([event])
    if _hooks.subscribers:
        _hooks.emit("copy", source=queue, target="host", nbytes=nbytes, start=start)
    return result


#: Writes values by a kernel; set by the layer that has kernels.
store_by_kernel: Any = None


def assign(target: Layout, source: Layout) -> None:
    """Write the values of ``source`` into ``target`` on their common queue, with broadcasting and
    conversion. Overlapping memory is copied as if through a temporary array.
    """
    if host_maps.holds:
        host_maps.before_write(target)
        if not isinstance(source, int | float | complex):
            host_maps.before_read(source)
    is_scalar = isinstance(source, int | float | complex)
    queue = target.block.queue
    if driver_of(queue).copies_by_host(queue):
        wait_to_write(target.block)
        if is_scalar:
            (view,) = host_views("x[...] = y", queue, target)  # type: ignore[misc]  # it is a CPU's
            view[...] = source
        else:
            view, values = host_views("x[...] = y", queue, target, source)  # type: ignore[misc]
            view[...] = values.copy() if np.may_share_memory(view, values) else values
        return
    if not has_kernels(traits_of(queue)):
        store_by_kernel(target, source)
        return
    start = _hooks.begin(queue) if _hooks.subscribers else 0.0
    library = library_of(queue)
    with library.calls(queue):
        try:
            library.store(library.array(target), source if is_scalar else library.array(source))
        finally:  # Work submitted before an error or an interrupt counts too.
            note_work(queue)
    if start:
        _hooks.emit("library", function="a copy", queue=queue, start=start)


def packed(layout: Layout) -> Layout:
    """Return a C-contiguous copy on the same queue."""
    copy = allocate(layout.block.queue, layout.block.usm_type, layout.shape, layout.dtype)
    assign(copy, layout)
    return copy


def goes_by_host(source: Queue, target: Queue) -> bool:
    """Return whether the host must copy between two queues, since none of their commands can."""
    driver = driver_of(target)
    return place_of(source)[0] != place_of(target)[0] or driver.copies_by_host(target)


def copy_by_host(source: Layout, target: Layout) -> None:
    """Copy into memory of another context, after all earlier work on both memories is done."""
    ends = [(layout.block.queue, layout.block.usm_type) for layout in (source, target)]
    if all(is_host_accessible(*end) for end in ends):
        _copy(host_view(target), host_view(source), "copy to another queue")
    else:
        copy_from_host(copy_to_host(source), target)


def copy_to_queue(layout: Layout, queue: Queue, usm_type: str) -> Layout:
    """Return a copy on another queue that shares no memory with the original.

    Between queues that share a context, the device copies: events order the copy with the work
    before and after it on both queues, and the host does not wait. Between contexts the copy goes
    through the host, which waits here for the work before it;
    :func:`dparray.memory.async_copy.send` lets a thread wait instead.
    """
    source_queue = layout.block.queue
    if host_maps.holds:
        host_maps.before_read(layout)
    target = allocate(queue, usm_type, layout.shape, layout.dtype)
    nbytes = prod(layout.shape) * layout.dtype.itemsize
    if nbytes == 0:
        return target
    if goes_by_host(source_queue, queue):
        wait_to_read(layout.block)
        wait_to_write(target.block)
        start = time.perf_counter()
        with _hooks.events_disabled():  # This counts as one copy.
            copy_by_host(layout, target)
        if _hooks.subscribers:
            _hooks.emit("copy", source=source_queue, target=queue, nbytes=nbytes, start=start)
        return target
    if layout.strides != contiguous_strides(layout.shape, layout.dtype.itemsize):
        layout = packed(layout)
    before = order_of(source_queue).submitted_events
    if source_queue != queue:
        before = before + order_of(queue).submitted_events
    source = memory_at(layout.block, layout.offset)
    start = time.perf_counter()
    target_queue = profiled.target_of(queue) if _hooks.subscribers else queue
    event = driver_of(queue).copy(target_queue, target.block.memory, source, nbytes, before)
    for ordered in {source_queue, queue}:
        order_of(ordered).add_event_pair([], [event])
        note_work(ordered)
    if _hooks.subscribers:
        _hooks.emit(
            "copy",
            source=source_queue,
            target=queue,
            nbytes=nbytes,
            start=start,
            driver_event=event,
        )
    return target
