"""Host memory that replaces device memory while the host computes on an array."""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np

from dparray._driver import driver_of, order_of, traits_of
from dparray._layout import Layout, contiguous_strides
from dparray._runtime.queues import note_work
from dparray.device import supports_usm
from dparray.memory import blocks, copies
from dparray.memory import pool as pool_module
from dparray.memory.driver import check_host_access


class _HostBlock:
    """NumPy memory in place of USM that a device does not have."""

    memory = None
    segment = None
    pointer = 0
    usm_type = "host"

    def __init__(self, values: np.ndarray, queue: Any) -> None:
        self.host_bytes = values
        self.nbytes = values.nbytes
        self.queue = queue
        self.readers: Any = None


def host_view(layout: Layout) -> np.ndarray:
    """Return a NumPy array over host-accessible memory, which it keeps alive."""
    block = layout.block
    if isinstance(block, _HostBlock):
        return block.host_bytes
    check_host_access(block.queue, block.usm_type)
    return view_at_address(layout)


def view_at_address(layout: Layout) -> np.ndarray:
    """Return a NumPy array over memory that is the host's, which it keeps alive."""
    block = layout.block
    buffer: Any = (ctypes.c_char * block.nbytes).from_address(block.pointer)
    buffer._owner = block
    return np.ndarray(layout.shape, layout.dtype, buffer, layout.offset, layout.strides)


def allocate(layout: Layout) -> Layout:
    """Host memory for the elements of an array, from the pool if the device has such memory."""
    queue, shape, dtype = layout.block.queue, layout.shape, layout.dtype
    if not supports_usm(traits_of(queue), "host"):
        strides = contiguous_strides(shape, dtype.itemsize)
        return Layout(_HostBlock(np.empty(shape, dtype), queue), 0, shape, strides, dtype)
    block = pool_module.allocate(queue, "host", prod(shape) * dtype.itemsize)
    return Layout(block, 0, shape, contiguous_strides(shape, dtype.itemsize), dtype)


def _is_packed(layout: Layout) -> bool:
    return layout.strides == contiguous_strides(layout.shape, layout.dtype.itemsize)


def copy_in(layout: Layout, values: np.ndarray) -> None:
    """Copy an array to its host values, and wait for the copy."""
    queue = layout.block.queue
    if not _is_packed(layout):
        layout = copies.packed(layout)
    driver = driver_of(queue)
    before = driver.order_of(queue).submitted_events
    device_bytes = blocks.memory_at(layout.block, layout.offset)
    flat = values.reshape(-1).view(np.uint8)
    driver.wait([driver.copy(queue, flat, device_bytes, values.nbytes, before)], is_long=True)


def copy_out(stage: Layout, values: np.ndarray, layout: Layout) -> None:
    """Copy from the host values, in order with the work before and after it on the queue."""
    queue = layout.block.queue
    if isinstance(stage.block, _HostBlock):
        target = layout
        if not _is_packed(layout):
            usm_type = layout.block.usm_type
            target = blocks.allocate(queue, usm_type, layout.shape, layout.dtype)
        copies.copy_from_host(values, target)
        if target is not layout:
            copies.assign(layout, target)
        return
    if not _is_packed(layout):
        copies.assign(layout, stage)
        return
    order = order_of(queue)
    device_bytes = blocks.memory_at(layout.block, layout.offset)
    event = driver_of(queue).copy(
        queue, device_bytes, stage.block.memory, values.nbytes, order.submitted_events
    )
    order.add_event_pair([], [event])
    note_work(queue)
