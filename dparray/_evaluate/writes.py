"""Writes to existing memory, after the pending expressions that read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dparray import _hooks, _placement
from dparray._evaluate import deferred_placement
from dparray._evaluate.dependents import (
    add_dependent,
    externally_referenced,
    is_referenced,
    lock,
    siblings_of,
)
from dparray._evaluate.evaluate import compute, evaluate
from dparray._graph.assembly import layouts_of_whole
from dparray._graph.node import Node, Scalar, memory_read_by, pending_order
from dparray._graph.ops import CONVERT
from dparray._layout import Block, Layout, are_apart, broadcast_strides
from dparray._runtime import host_maps
from dparray._runtime.queues import note_others
from dparray.memory import copies
from dparray.memory.blocks import SHARED, allocate


def store(value: Node | Scalar, target: Layout, is_owned: bool = False) -> None:
    """Write a value into an existing layout of the same shape, converted to its dtype.

    Pending readers of the memory are computed first, so that they see the old values.

    Args:
        value: the value to write.
        target: the layout to write to.
        is_owned: whether only the caller refers to ``value``.
    """
    if 0 in target.shape:  # Nothing is written, so the value and the readers stay pending.
        return
    if host_maps.holds:
        host_maps.before_write(target)
        if type(value) is Node:
            host_maps.before_read(*_read_by(value))
    if _hooks.subscribers and type(value) is Node:
        _hooks.emit("evaluate", nodes=(value,))
    with lock:
        if (deferred_placement.nodes or _placement.in_force) and type(value) is Node:
            value = deferred_placement.brought(value, target.block.queue)
            if host_maps.holds:  # A deferred copy may still be writing it.
                host_maps.before_read(*_read_by(value))
        readers = target.block.readers
        try:
            _store(value, target, is_owned)
        except BaseException:
            _note_again(target.block, readers)
            raise


def _note_again(block: Block, readers: Any) -> None:
    """Restore the readers of a block after a write that failed, for example for lack of memory."""
    if readers and block.readers is not readers and block.readers is not SHARED:
        readers += block.readers or ()
        block.readers = readers


def _store(value: Node | Scalar, target: Layout, is_owned: bool) -> None:
    """Write a value, with the lock held."""
    flush_dependents(target.block, value)
    if type(value) is not Node or is_owned:
        is_lost = False
    else:
        is_lost = value.layout is None and _reads(value, target.block)
        if is_lost and (value.dtype != target.dtype or target.block.readers is SHARED):
            evaluate(value)
            is_lost = False
    if type(value) is Node and _overlaps(value, target):
        if value.layout is None:
            evaluate(value)
        else:
            value = _copied(value)
        is_lost = False
    if type(value) is Node and value.layout is None:
        order = pending_order((value,))
        held = externally_referenced([value], order) if len(order) > 1 else ()
        compute(order, [value], held, siblings_of(order), target=target)
    else:
        compute([], [], value=value, target=target)
    if is_lost and type(value) is Node and value.layout is None:
        _read_back(value, target)


def _store_memory(target: Layout, source: Any) -> None:
    """Write the values in other memory, or a number, by a kernel, for :func:`copies.assign`."""
    value: Node | Scalar
    if isinstance(source, int | float | complex):
        value = Scalar(source)
    else:
        block = source.block
        strides = broadcast_strides("a copy", source.shape, source.strides, target.shape)
        layout = Layout(block, source.offset, target.shape, strides, source.dtype)
        value = Node.leaf(layout, target.block.queue, block.usm_type)
    with lock:
        if type(value) is Node and _overlaps(value, target):
            value = _copied(value)
        compute([], [], value=value, target=target)


copies.store_by_kernel = _store_memory


def _read_by(value: Node) -> list[Layout]:
    """Return the layouts that computing a value reads."""
    if value.layout is not None:
        return [value.layout]
    return memory_read_by(pending_order((value,)))


def _read_back(value: Node, target: Layout) -> None:
    """Turn a pending value, whose operands were overwritten by it, into a copy of ``target``.

    The copy is only made if the value is asked for, or before the target is written again.
    """
    value.become(CONVERT, Node.leaf(target, value.queue, value.usm_type))
    add_dependent(value, value.operands[0])  # type: ignore[arg-type]


def flush_dependents(block: Block, value: Node | Scalar | None = None) -> None:
    """Compute the pending nodes that read ``block``, which is about to be written.

    Nodes that are computed with the write, as operands of ``value``, stay pending unless they read
    it and are referenced from outside.
    """
    readers = block.readers
    if not readers:
        return
    block.readers = None  # Evaluating a reader may register others.
    try:
        _settle(readers, block, value)
    except BaseException:
        _note_again(block, readers)
        raise


def _settle(
    readers: Sequence[Callable[[], Node | None]], block: Block, value: Node | Scalar | None
) -> None:
    order = pending_order((value,)) if type(value) is Node else []
    inside = set(map(id, order))
    for node in _readers_among(order[:-1], block):
        if node.layout is None and is_referenced(node, inside):
            evaluate(node)
    for reference in readers:
        reader = reference()
        if reader is not None and reader.layout is None and id(reader) not in inside:
            evaluate(reader)


def _readers_among(order: list[Node], block: Block) -> list[Node]:
    """Return the pending nodes that depend on a block's memory, operands before users."""
    readers: dict[int, Node] = {}
    for node in order:
        for operand in node.operands:
            if type(operand) is Node and (
                id(operand) in readers
                if operand.layout is None
                else operand.layout.block.memory is block.memory
            ):
                readers[id(node)] = node
                break
    return list(readers.values())


def settle_blocks(blocks: Iterable[Block]) -> None:
    """Evaluate the pending readers of a kernel's arguments, any of which the kernel may write."""
    for block in blocks:
        if block.readers:
            with lock:
                flush_dependents(block)


def share(block: Block) -> None:
    """Prepare a block for sharing with another library: evaluate its pending readers, and defer no
    more work on it.
    """
    if host_maps.holds:
        host_maps.before_sharing(block)
    with lock:
        flush_dependents(block)
        block.readers = SHARED
        if block.segment is not None:
            block.segment.is_shared = True
        note_others(block.queue)


def _overlaps(value: Node, target: Layout) -> bool:
    """Return whether a leaf shares elements with the target, unless it is stored exactly there.

    Operations on whole arrays read any element, so these may not be stored there either.
    """
    block, offset, shape, strides, dtype = target
    memory = block.memory
    order = pending_order((value,))
    for node in order:  # A generator here and in `_reads` is a call for each value.
        for read in layouts_of_whole(node):
            if read.block.memory is memory:
                return True
    for read in [value.layout] if value.layout is not None else memory_read_by(order):
        if read.block.memory is memory and read[1:] != target[1:]:
            one = (read.offset, read.shape, read.strides, read.dtype.itemsize)
            if not are_apart(one, (offset, shape, strides, dtype.itemsize)):
                return True
    return False


def _reads(value: Node, block: Block) -> bool:
    """Return whether a leaf is stored in the block."""
    memory, is_read = block.memory, False
    for read in _read_by(value):
        is_read = is_read or read.block.memory is memory
    return is_read


def _copied(value: Node) -> Node:
    """Return a leaf with a copy of a computed value in its own memory."""
    layout = allocate(value.queue, value.usm_type, value.shape, value.dtype)
    compute([], [], value=value, target=layout)
    return Node.leaf(layout, value.queue, value.usm_type)
