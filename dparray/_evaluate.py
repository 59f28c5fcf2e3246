"""Evaluation: the way from an expression to work on a queue.

Read from the top: :func:`evaluate`, :func:`store` and :func:`reduce` are the entries, and
:func:`_run` chooses the tier:

- *host*: few elements in memory that the host may read and write at its own address are computed on
  the calling thread, because a launch would cost more than the work;
- *fused*: one generated kernel for the whole expression;
- *library*: ready kernels, one for each operation, where an operation cannot be generated, or where
  a structure is not worth compiling yet.

:func:`launch_kernel` is the way of kernels that users wrote.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from math import prod
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from dparray import (
    _codegen,
    _codegen_reduction,
    _tier_fused,
    _tier_host,
    _tier_library,
    _usm,
    config,
)
from dparray._expr import Node, Scalar, pending_order
from dparray._launcher import Bound, launch
from dparray._ops import CONVERT, Op
from dparray._schedule import (
    HOST_ELEMENTS as HOST_ELEMENTS,
)
from dparray._schedule import (
    STORING_WEIGHT,
    is_worth_storing,
    must_be_stored_first,
)
from dparray._tier_library import library_call as library_call

if TYPE_CHECKING:
    from dpctl import SyclEvent, SyclQueue

SHARED = _usm.SHARED

# Above this many notes of readers, those that are computed or gone are dropped.
MOST_READERS = 64

lock = threading.RLock()


def evaluate(*nodes: Node) -> None:
    """Compute pending nodes; returns when the work is submitted, not when it is done.

    Nodes of one shape on one queue share a kernel. So do inner values that somebody else can still
    ask for, where storing them costs less than computing them again.
    """
    with lock:
        groups: dict[Any, list[Node]] = {}
        for node in dict.fromkeys(nodes):
            if node.layout is None:
                groups.setdefault((node.queue, node.usm_type, node.shape), []).append(node)
        for group in groups.values():
            left = [node for node in group if node.layout is None]  # others may have needed some
            if left:
                _run([], [*held_elsewhere(left), *left])


def compute_inner(root: Node) -> None:
    """Compute what is in a pending expression and not elementwise, so that the rest is."""
    for node in pending_order([root]):
        if type(node.op) is not Op and node.layout is None:
            evaluate(node)


def held_elsewhere(roots: Sequence[Node]) -> list[Node]:
    """The inner nodes that are worth storing and that somebody else can still ask for."""
    if max(node.weight for node in roots) <= STORING_WEIGHT:
        return []
    shape = roots[0].shape
    order = pending_order(roots)
    # Three references are ours: the list `order`, the name `node`, and getrefcount's argument. One
    # is the user's in `order`; most nodes have no more.
    shared: list[Node] = []
    references: list[int] = []
    for node in order:
        count = getrefcount(node)
        if count > 4 and is_worth_storing(node) and node.shape == shape:
            shared.append(node)
            references.append(count - 3)
    if not shared:
        return []
    uses = _inner_uses(order)
    return [
        node
        for node, count in zip(shared, references, strict=True)
        if count > uses[id(node)] and not any(node is root for root in roots)
    ]


def _inner_uses(order: Sequence[Node]) -> dict[int, int]:
    """How often each node of ``order`` is an operand of another."""
    uses: dict[int, int] = dict.fromkeys(map(id, order), 0)
    for user in order:
        for operand in user.operands:
            if id(operand) in uses:
                uses[id(operand)] += 1
    return uses


def store(value: Node | Scalar, target: Any, is_fresh: bool = False) -> None:
    """Write a value into an existing layout of the same shape, converted to its dtype.

    Whatever is pending and reads the memory is computed first, so that it sees the old values.

    Args:
        value: what to write.
        target: where.
        is_fresh: nobody but the caller can ask for ``value`` afterwards.
    """
    with lock:
        settle_readers(target.block, value)
        if type(value) is not Node or is_fresh:
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
        held = held_elsewhere([value]) if type(value) is Node else []
        _run([(value, target)], held)
        if is_lost and type(value) is Node and value.layout is None:
            _read_back(value, target)


def _read_back(value: Node, target: Any) -> None:
    """Make a pending value a copy of ``target``, which holds it now while its operands are gone.

    The copy is only made if somebody asks for the value, or before the target is written again.
    """
    value.become(CONVERT, Node.leaf(target, value.queue, value.usm_type))
    note_reader(value, value.operands[0])  # type: ignore[arg-type]


def settle_readers(block: Any, value: Node | Scalar | None = None) -> None:
    """Compute the pending nodes that read ``block``, which is about to be written.

    Nodes that are computed with the write, as operands of ``value``, stay pending unless somebody
    else can still ask for them.
    """
    readers = block.readers
    if not readers:
        return
    block.readers = None
    order = pending_order([value]) if type(value) is Node else []
    uses = _inner_uses(order)
    used = order[:-1]
    del order
    for node in used:
        # Three references are ours: the list `used`, the name `node`, and getrefcount's argument.
        if node.layout is None and getrefcount(node) > uses[id(node)] + 3:
            evaluate(node)
    for reference in readers:
        reader = reference()
        if reader is not None and reader.layout is None and id(reader) not in uses:
            evaluate(reader)


def settle_arguments(arguments: Sequence[Any]) -> None:
    """Compute what is pending on the arguments of a kernel, which may write any of them."""
    for argument in arguments:
        block = getattr(argument, "block", None)
        if block is not None and block.readers:
            with lock:
                settle_readers(block)


def note_reader(node: Node, operand: Node) -> bool:
    """Remember that a pending node reads ``operand``; false if that lies in shared memory."""
    holder: Any = operand if operand.layout is None else operand.layout.block
    readers = holder.users if operand.layout is None else holder.readers
    if readers is SHARED:
        return False
    if readers is None:
        readers = []
        if operand.layout is None:
            holder.users = readers
        else:
            holder.readers = readers
    elif len(readers) > MOST_READERS:
        readers[:] = [
            reference
            for reference in readers
            if (reader := reference()) is not None and reader.layout is None
        ]
    readers.append(weakref.ref(node))
    return True


def share(block: Any) -> None:
    """The block's memory leaves our hands: compute what reads it, and defer no more on it."""
    with lock:
        settle_readers(block)
        block.readers = SHARED
        _usm.note_others(block.queue)


def reduce(
    name: str,
    value: Node,
    axes: tuple[int, ...],
    loop: np.dtype[Any],
    target: Any,
    is_needed_later: bool,
) -> bool:
    """Reduce an expression over ``axes`` into ``target``; false if only the library can.

    Args:
        name: ``"sum"``, ``"prod"``, ``"max"``, ``"min"``, ``"all"`` or ``"any"``.
        value: what is reduced, of at least one element; computed inside the kernel if pending.
        axes: the reduced axes, counted from the front.
        loop: the dtype to accumulate in, which is the target's.
        target: a contiguous layout, shaped as the value with the reduced axes left out or of
            extent 1.
        is_needed_later: somebody can still ask for the value itself.
    """
    if name not in _codegen_reduction.COMBINE:
        return False
    with lock:
        if value.size <= HOST_ELEMENTS and host_may_compute(target):
            _tier_host.reduce(name, value, axes, loop, target)
            return True
        if value.layout is None:
            held = held_elsewhere([value])
            if is_needed_later and is_worth_storing(value):
                held.append(value)
            if held:
                _run([], held)
        if loop.kind == "b":
            name = {"max": "any", "min": "all"}.get(name, name)
        store_first([value], value.size, evaluate)
        if not _codegen_reduction.can_reduce(name, value, loop):
            return False
        inner = _last_run(axes)
        if inner != axes:
            return _reduce_run_by_run(name, value, axes, inner, loop, target)
        return _tier_fused.reduce(name, value, axes, loop, target)


def _last_run(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The adjacent axes at the end: one loop can walk them."""
    ordered = sorted(axes)
    start = len(ordered) - 1
    while start > 0 and ordered[start - 1] == ordered[start] - 1:
        start -= 1
    return tuple(ordered[start:]) if start > 0 else axes


def _reduce_run_by_run(
    name: str,
    value: Node,
    axes: tuple[int, ...],
    inner: tuple[int, ...],
    loop: np.dtype[Any],
    target: Any,
) -> bool:
    """Reduce the innermost run of adjacent axes, then the others."""
    shape = tuple(1 if axis in inner else extent for axis, extent in enumerate(value.shape))
    partial = _usm.allocate(value.queue, value.usm_type, shape, loop)
    rest = tuple(axis for axis in axes if axis not in inner)
    return _tier_fused.reduce(name, value, inner, loop, partial) and reduce(
        name, Node.leaf(partial, value.queue, value.usm_type), rest, loop, target, False
    )


# -- the choice of the tier -----------------------------------------------------------------------


def _run(stores: Sequence[tuple[Node | Scalar, Any]], nodes: Sequence[Node]) -> None:
    """Compute values of one shape: into layouts that are there, and ``nodes`` into fresh memory.

    Operands come before users among the nodes.
    """
    fresh = [
        (node, _usm.allocate(node.queue, node.usm_type, node.shape, node.dtype)) for node in nodes
    ]
    _run_in_tier([*fresh, *stores], len(fresh))
    for node, layout in fresh:
        if node.layout is None:
            node.complete(layout)


def _run_in_tier(outputs: Sequence[tuple[Node | Scalar, Any]], fresh: int) -> None:
    """Compute values of one shape, the first ``fresh`` of them into memory of their own."""
    target = outputs[0][1]
    size = prod(target.shape)
    if size == 0:
        return
    if size <= HOST_ELEMENTS and host_may_compute(target):
        _tier_host.run(outputs)
        return
    pending = [value for value, _ in outputs if type(value) is Node and value.layout is None]
    order = store_first(pending, size, evaluate)
    if any(node.layout is not None for node in pending):  # computed for another meanwhile
        kept = [getattr(value, "layout", None) is None for value, _ in outputs]
        fresh = sum(kept[:fresh])
        outputs = [each for each, is_kept in zip(outputs, kept, strict=True) if is_kept]
        pending = [node for node in pending if node.layout is None]
    if all(map(_codegen.can_generate, pending)) and _tier_fused.run(outputs, order, size):
        return
    for place, (value, layout) in enumerate(outputs):
        _tier_library.run(value, layout)
        if place < fresh and type(value) is Node:
            value.complete(layout)


def host_may_compute(target: Any) -> bool:
    return config.host_tier and _tier_host.can_compute(target.block.queue, target.block.usm_type)


def store_first(roots: Sequence[Node], size: int, evaluate: Callable[..., None]) -> list[Node]:
    """Compute the inner nodes that need memory of their own, and keep kernels' arguments few.

    ``evaluate`` computes nodes; :mod:`dparray.explain` gives one that only takes notes.

    Returns:
        The nodes that are left to compute, operands before users.
    """
    order = pending_order(roots)
    alone = [node for node in order if must_be_stored_first(node, size)]
    if alone:
        for node in alone:
            if node.layout is None and not any(node is root for root in roots):
                evaluate(node)
        for root in roots:
            if root.layout is None and not _codegen.can_generate(root):
                evaluate(*(operand for operand in root.operands if type(operand) is Node))
        order = pending_order(roots)
    elif sum(root.leaves for root in roots) <= _codegen.MOST_ARRAYS:
        return order
    while _leaf_count(order) > _codegen.MOST_ARRAYS:
        inner = [node for node in order if not any(node is root for root in roots)]
        if not inner:
            return order
        evaluate(inner[len(inner) // 2])
        order = pending_order(roots)
    return order


def _leaf_count(order: Sequence[Node]) -> int:
    return len(
        {
            id(operand)
            for node in order
            for operand in node.operands
            if type(operand) is Node and operand.layout is not None
        }
    )


# -- aliasing -------------------------------------------------------------------------------------


def _overlaps(value: Node, target: Any) -> bool:
    """Whether a leaf lies in the target's block other than exactly at the target."""
    place = (target.offset, target.strides, target.shape, target.dtype)
    return any(
        leaf.layout.block.memory is target.block.memory
        and (leaf.layout.offset, leaf.layout.strides, leaf.layout.shape, leaf.layout.dtype) != place
        for leaf in _leaves(value)
    )


def _reads(value: Node, block: Any) -> bool:
    """Whether a leaf lies in the block."""
    return any(leaf.layout.block.memory is block.memory for leaf in _leaves(value))


def _leaves(value: Node) -> list[Node]:
    """The computed nodes that a value is computed from; itself if it is computed."""
    if value.layout is not None:
        return [value]
    return [
        operand
        for node in pending_order([value])
        for operand in node.operands
        if type(operand) is Node and operand.layout is not None
    ]


def _copied(value: Node) -> Node:
    """Computed values in memory of their own."""
    layout = _usm.allocate(value.queue, value.usm_type, value.shape, value.dtype)
    _run([(value, layout)], ())
    return Node.leaf(layout, value.queue, value.usm_type)


# -- kernels that users wrote ---------------------------------------------------------------------


def launch_kernel(
    kernel: Any,
    global_range: tuple[int, ...],
    local_range: tuple[int, ...] | None,
    bound: Bound,
    queue: SyclQueue,
    depends_on: Sequence[SyclEvent] = (),
) -> SyclEvent:
    """Launch a compiled kernel with arguments that a binder of ``_launcher`` has flattened."""
    return launch(kernel, global_range, local_range, bound.flat, queue, depends_on, bound.borrowed)
