"""Transfer of values to other queues: copied, or lent within one device and context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dparray import _layout
from dparray._layout import Layout
from dparray._runtime import queues
from dparray.memory import async_copy
from dparray.memory.blocks import LentBlock, Positions


def copied(layout: Layout, queue: Any) -> Layout:
    """Return a copy on another queue with the same memory order of axes, without waiting."""
    axes = None
    if len(layout.shape) > 1:
        axes = _layout.order_of_axes(layout.shape, layout.strides)
    if axes is None:
        return async_copy.send(layout, queue, layout.block.usm_type)
    turned = layout._replace(
        shape=tuple([layout.shape[axis] for axis in axes]),
        strides=tuple([layout.strides[axis] for axis in axes]),
    )
    copy = async_copy.send(turned, queue, layout.block.usm_type)
    strides = [0] * len(axes)
    for index, axis in enumerate(axes):
        strides[axis] = copy.strides[index]
    return copy._replace(shape=layout.shape, strides=tuple(strides))


def lent(layout: Layout, queue: Any) -> Layout:
    """Return the same memory for another queue of the device, ordered after earlier work on it."""
    block = layout.block
    queues.order_after(queue, block.queue)
    queues.note_work(queue)
    return layout._replace(block=LentBlock(block, queue))


def ordered_after(queue: Any, read: Sequence[Layout | None]) -> None:
    """Order later work on lent memory after the work on the queue that borrowed it."""
    for owner in {
        layout.block.owner.queue
        for layout in read
        if layout is not None and type(layout.block) is LentBlock
    }:
        queues.order_after(owner, queue)
        queues.note_work(owner)


def positions_on(layout: Layout, queue: Any) -> Layout:
    """Return indices along axes, which are computed on the fly, as operands on another queue."""
    block = layout.block
    return layout._replace(block=Positions(queue, block.usm_type, block.nbytes // 8))
