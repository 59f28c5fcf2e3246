"""Evaluation: the way from an expression to work on a queue.

Read from the top: :func:`evaluate` and :func:`store` are the entries, and :func:`_run` chooses the
tier:

- *host*: few elements in memory that the host may read and write at its own address are computed on
  the calling thread, because a launch would cost more than the work;
- *fused*: one generated kernel for the whole expression;
- *library*: ready kernels, one for each operation, where an operation cannot be generated, or where
  a structure is not worth compiling yet.

:func:`settle_arguments` is what kernels that users wrote need of it before they are launched.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from math import prod
from sys import getrefcount
from typing import TYPE_CHECKING, Any

from dparray import config
from dparray._codegen import elementwise
from dparray._codegen.domain import Domain
from dparray._codegen.reduction import can_reduce
from dparray._evaluate import fused, host, launch_cache, library
from dparray._evaluate.fused import argument_of as argument_of
from dparray._evaluate.library import library_call as library_call
from dparray._evaluate.schedule import (
    HOST_ELEMENTS as HOST_ELEMENTS,
)
from dparray._evaluate.schedule import (
    MOST_SIBLINGS,
    STORING_WEIGHT,
    Cut,
    Kernel,
    cut,
    is_call,
    is_worth_storing,
)
from dparray._graph.node import Node, Scalar, pending_order
from dparray._graph.ops import CONVERT, Op
from dparray._graph.reductions import WEIGHT, Reduce
from dparray._runtime import access, queues
from dparray._runtime.access import lock as lock
from dparray.memory import blocks

if TYPE_CHECKING:
    from dpctl import SyclQueue

SHARED = blocks.SHARED

# Above this many notes of readers, those that are computed or gone are dropped.
MOST_READERS = 64


def evaluate(*nodes: Node) -> None:
    """Compute pending nodes; returns when the work is submitted, not when it is done.

    Nodes of one shape on one queue share a kernel. So do inner values that somebody else can still
    ask for, where storing them costs less than computing them again.
    """
    with lock:
        for group in grouped(nodes):
            left = [node for node in group if node.layout is None]  # others may have needed some
            if left:
                _evaluate_group(left)


def _evaluate_group(nodes: list[Node]) -> None:
    """Compute pending nodes of one shape and place."""
    first = nodes[0]
    if first.size == 0:  # there is nothing to compute, so what they are made of stays pending
        for node in nodes:
            node.complete(_fresh(node))
        return
    order = pending_order(nodes)
    held = held_elsewhere(nodes, order)
    if is_for_host(first.size, first.queue, first.usm_type, nodes):
        _run_on_host([*held, *nodes])
    elif held or _has_siblings(order):
        _run(nodes, held)
    else:
        expression = launch_cache.Expression(nodes, order)
        if not expression.repeat():
            launches = _run(nodes, [])
            if launches and sum(node.layout is not None for node in order) == len(nodes):
                expression.remember(launches)


def _has_siblings(order: Sequence[Node]) -> bool:
    """Whether a kernel for these nodes would compute other pending reductions, too."""
    last = next((node for node in reversed(order) if type(node.op) is Reduce), None)
    if last is None:
        return False
    domain = Domain(last.operands[0].shape, last.op.axes)  # type: ignore[union-attr]
    return bool(with_siblings(Kernel([*order], domain))[1])


def grouped(nodes: Sequence[Node]) -> list[list[Node]]:
    """Those of some nodes that are pending, once each, in groups that share kernels."""
    groups: dict[Any, list[Node]] = {}
    for node in dict.fromkeys(nodes):
        if node.layout is None:
            groups.setdefault((node.queue, node.usm_type, node.shape), []).append(node)
    return list(groups.values())


def compute_known(
    op: Op | Reduce,
    operands: Sequence[Any],
    loop: tuple[Any, ...],
    shape: tuple[int, ...],
    queue: SyclQueue,
    usm_type: str,
    target: Any = None,
) -> Any:
    """The layout of one operation's result, computed by a kernel that is there; else ``None``.

    What an eager call needs: no expression is made of it, since nothing can join it. The result is
    written to ``target``, a layout of its shape, or to fresh memory.
    """
    size = prod(shape)
    if not size or (
        size <= HOST_ELEMENTS and config.host_tier and host.can_compute(queue, usm_type)
    ):
        return None
    if access.holds:
        access.before_read(*(x for x in operands if hasattr(x, "block")))
        if target is not None:
            access.before_write(target)
    if target is None:
        return fused.compute_known(op, operands, loop, shape, queue, usm_type, _only_kernel)
    with lock:
        settle_readers(target.block)
        return fused.compute_known(op, operands, loop, shape, queue, usm_type, _only_kernel, target)


def _only_kernel(node: Node) -> Kernel | None:
    """The kernel that computes a node of computed operands, if there is but one."""
    part = cut([node], [], None, fused.machine_of(node.queue))
    return None if part.first or part.apart else part.kernel


def compile_alone(node: Node) -> None:
    """Obtain the kernel of one operation, its operands seen as computed; nothing is computed.

    So that what the compiler finds wrong in a user's function is said at the user's line.
    """
    operands = tuple(
        Node.leaf(
            blocks.planned_layout(part.queue, part.usm_type, part.shape, part.dtype),
            part.queue,
            part.usm_type,
        )
        if type(part) is Node and part.layout is None
        else part
        for part in node.operands
    )
    assert node.op is not None
    place = (node.shape, node.size, node.queue, node.usm_type)
    alone = Node(node.op, operands, node.loop, *place)
    kernel = _only_kernel(alone)
    assert kernel is not None
    with lock:
        fused.prepare(alone, kernel)


def compute_inner(root: Node) -> None:
    """Compute what is in a pending expression and not elementwise, so that the rest is."""
    for node in pending_order([root]):
        if type(node.op) is not Op and node.layout is None:
            evaluate(node)


def held_elsewhere(roots: Sequence[Node], order: Sequence[Node] | None = None) -> list[Node]:
    """The inner nodes that are worth storing and that somebody else can still ask for.

    ``order``, if given, is the only list of the pending nodes that the caller has.
    """
    if max([node.weight for node in roots]) <= STORING_WEIGHT:
        return []
    if order is None:
        order = pending_order(roots)
    # Three references are ours: the list `order`, the name `node`, and getrefcount's argument. One
    # is the user's in `order`; most nodes have no more.
    shared: list[Node] = []
    references: list[int] = []
    for node in order:
        count = getrefcount(node)
        if count > 4 and is_worth_storing(node):
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
    if 0 in target.shape:  # nothing is written: what reads the memory, and the value, stay pending
        return
    if access.holds:
        access.before_write(target)
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
        pending = type(value) is Node and value.layout is None
        _run([], held_elsewhere([value]) if pending else [], value, target)  # type: ignore[list-item]
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
    if access.holds and operand.layout is not None:
        access.before_read(operand.layout)
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
    if access.holds:
        access.before_sharing(block)
    with lock:
        settle_readers(block)
        block.readers = SHARED
        queues.note_others(block.queue)


# -- the choice of the tier -----------------------------------------------------------------------


def _run(
    nodes: Sequence[Node],
    held: Sequence[Node],
    value: Any = None,
    target: Any = None,
) -> list[fused.Launched]:
    """Compute values.

    Args:
        nodes: pending nodes of one shape, which get memory of their own.
        held: inner ones, which get it where that is a part of the same work.
        value: what is written to ``target``, a layout of its shape; if given, ``nodes`` is empty.
        target: see there.

    Returns:
        The launches, if one fused kernel computed all, with the one that merges what it leaves.
    """
    roots = list(nodes)
    if type(value) is Node and value.layout is None:
        roots = [value]
    first = roots[0] if roots else None
    if target is not None:
        size, queue, usm_type = prod(target.shape), target.block.queue, target.block.usm_type
    else:
        assert first is not None
        size, queue, usm_type = first.size, first.queue, first.usm_type
    if is_for_host(size, queue, usm_type, roots):
        _run_on_host([*held, *nodes], [(value, target)] if target is not None else [])
        return []
    launches: list[fused.Launched] = []
    kernels = 0
    while roots:
        part = plan(roots, held, value, target, evaluate)
        launches = _run_kernel(part.kernel, roots, held, value, target)
        kernels += 1
        roots = part.apart
    if target is not None and not (first is not None and first.layout is None):
        # A scalar, or a value that had to be computed before.
        _run_elements([(value, target)], [])
    return launches if kernels == 1 else []


def _run_on_host(nodes: Sequence[Node], stores: Sequence[tuple[Any, Any]] = ()) -> None:
    """Compute nodes, and values that are written to layouts, on the calling thread."""
    outputs = [(node, _fresh(node)) for node in nodes]
    host.run([*outputs, *stores])
    for node, layout in outputs:
        node.complete(layout)


def plan(
    roots: list[Node],
    held: Sequence[Node],
    value: Node | Scalar | None,
    target: Any,
    evaluate: Callable[..., None],
) -> Cut:
    """What the next kernel computes of ``roots``, which lose what was computed for others.

    ``evaluate`` computes nodes; :mod:`dparray.explain` gives one that only takes notes.
    """
    machine = fused.machine_of(roots[0].queue)
    while True:
        part = cut(roots, held, target if roots[-1] is value else None, machine)
        if not part.first:
            return part
        evaluate(*part.first)
        roots[:] = [node for node in roots if node.layout is None]
        if not roots:
            return Cut([], Kernel([]), [])


def _run_kernel(
    kernel: Kernel,
    roots: Sequence[Node],
    held: Sequence[Node],
    value: Any,
    target: Any,
) -> list[fused.Launched]:
    """Compute what is in a kernel: of ``roots`` and ``held``, and reductions of the same memory."""
    wanted = stored_by(kernel, [*held, *roots])
    stores = [(value, target)] if any(node is value for node in wanted) else []
    wanted = [node for node in wanted if node is not value]
    if kernel.domain is not None:
        kernel, siblings = with_siblings(kernel)
        wanted += siblings
    outputs = [(node, _fresh(node)) for node in wanted]
    launches: list[fused.Launched] = []
    if kernel.domain is not None:
        launches = fused.reduce([*outputs, *stores], kernel)
    if not launches:
        launches = _run_elements([*outputs, *stores], kernel.order, len(outputs))
    for node, layout in outputs:
        if node.layout is None:
            node.complete(layout)
    return launches


def _run_elements(
    outputs: Sequence[tuple[Any, Any]], order: Sequence[Node], fresh: int = 0
) -> list[fused.Launched]:
    """Compute values of one shape, the first ``fresh`` of them into memory of their own."""
    if not outputs:
        return []
    size = prod(outputs[0][1].shape)
    if all(map(elementwise.can_generate, order)):
        launches = fused.run(outputs, order, size)
        if launches:
            return launches
    computed_apart(order, [value for value, _ in outputs], evaluate)
    for position, (value, layout) in enumerate(outputs):
        if type(value) is not Node or not is_call(value):
            _run_ready(value, layout)
        elif not fused.run([(value, layout)], [value], size):
            raise AssertionError(f"{value.op} has no kernel")
        if position < fresh:
            value.complete(layout)
    return []


def _run_ready(value: Node | Scalar, layout: Any) -> None:
    """Compute a value without a generated kernel."""
    queue, usm_type = layout.block.queue, layout.block.usm_type
    if type(value) is Node and is_for_host(value.size, queue, usm_type, [value]):
        host.run([(value, layout)])
    else:
        library.run(value, layout)


def computed_apart(
    order: Sequence[Node], roots: Sequence[Any], evaluate: Callable[..., None]
) -> None:
    """Compute what only generated kernels can, each by itself, since all together is not worth one.

    Calls of users' functions among ``roots`` are left with operands that are computed.
    """
    for node in order:
        if is_call(node):
            evaluate(*(part for part in node.operands if type(part) is Node))
            if not any(node is root for root in roots):
                evaluate(node)


def stored_by(kernel: Kernel, nodes: Sequence[Node]) -> list[Node]:
    """Those of ``nodes``, of which the last is asked for, that a kernel stores."""
    inside = set(map(id, kernel.order))
    shape = nodes[-1].shape if nodes else ()
    return [
        node
        for node in nodes
        if id(node) in inside and (kernel.domain is not None or node.shape == shape)
    ]


def with_siblings(kernel: Kernel) -> tuple[Kernel, list[Node]]:
    """The kernel with the pending reductions of what it reduces, over the same axes; and these."""
    domain = kernel.domain
    assert domain is not None
    known = set(map(id, kernel.order))
    found: list[Node] = []
    for node in kernel.order:
        if type(node.op) is not Reduce or node.op.merges:
            continue
        walked = node.operands[0]
        assert type(walked) is Node
        notes = walked.users if walked.layout is None else walked.layout.block.readers
        for note in notes if isinstance(notes, list) else ():
            other = note()
            if (
                other is not None
                and other.layout is None
                and id(other) not in known
                and _reduces(other, walked, domain)
                and len(found) < MOST_SIBLINGS
            ):
                known.add(id(other))
                found.append(other)
    return joined(kernel, found), found


def joined(kernel: Kernel, reductions: Sequence[Node]) -> Kernel:
    """The kernel with further reductions over its domain."""
    domain = kernel.domain
    if not reductions or domain is None:
        return kernel
    dropped = {
        id(node) for node in reductions if domain.row != node.shape and not domain.is_leading
    }
    return kernel._replace(
        order=[*kernel.order, *reductions],
        rows=kernel.rows | {id(node) for node in reductions},
        dropped=kernel.dropped | dropped,
    )


def _reduces(node: Node, walked: Node, domain: Domain) -> bool:
    """Whether a pending node reduces the values of ``walked`` over the axes of a domain."""
    if type(node.op) is not Reduce or node.op.merges or node.op.axes != domain.axes:
        return False
    operand = node.operands[0]
    assert type(operand) is Node
    is_same = operand is walked or (operand.layout is not None and operand.layout == walked.layout)
    return is_same and can_reduce(node)


def _fresh(node: Node) -> Any:
    return blocks.allocate(node.queue, node.usm_type, node.shape, node.dtype)


def is_for_host(size: int, queue: Any, usm_type: str, roots: Sequence[Node]) -> bool:
    """Whether the calling thread computes pending nodes, of ``size`` elements each.

    It does not where a reduction among them is too large for it, or something is unknown to it.
    """
    if size > HOST_ELEMENTS or not host_may_compute(queue, usm_type):
        return False
    if not any(node.weight >= WEIGHT for node in roots):
        return True
    return all(
        node.operands[0].size <= HOST_ELEMENTS  # type: ignore[union-attr]
        and not node.op.merges
        and node.op.reduction.has_library
        if type(node.op) is Reduce
        else not is_call(node)
        for node in pending_order(roots)
    )


def host_may_compute(queue: Any, usm_type: str) -> bool:
    """Whether the host computes few elements in such memory."""
    return config.host_tier and host.can_compute(queue, usm_type)


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
    layout = _fresh(value)
    _run([], [], value, layout)
    return Node.leaf(layout, value.queue, value.usm_type)
