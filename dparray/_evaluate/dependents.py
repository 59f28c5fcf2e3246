"""Find other references to a pending value, and the pending values that read a block of memory."""

from __future__ import annotations

import weakref
from collections.abc import Container, Sequence
from typing import Any

from dparray import config
from dparray._evaluate.fusion import is_worth_storing
from dparray._evaluate.limits import MAX_SIBLINGS, STORING_COST
from dparray._graph.node import Node, pending_order
from dparray._graph.reductions import REDUCTION_COST, Reduce
from dparray._runtime import host_maps
from dparray._runtime.host_maps import lock as lock
from dparray.memory.blocks import SHARED

# Above this many recorded readers, computed and dead ones are dropped.
MAX_READERS = 64


def externally_referenced(roots: Sequence[Node], order: Sequence[Node] | None = None) -> list[Node]:
    """Return the inner nodes that are worth storing and referenced from outside the expression.

    Args:
        roots: the requested nodes, which are stored anyway.
        order: the pending nodes of the expression, if the caller has them.
    """
    if len(roots) == 1:
        if roots[0].cost <= STORING_COST:
            return []
    elif max([node.cost for node in roots]) <= STORING_COST:
        return []
    if order is None:
        order = pending_order(roots)
    inside = set(map(id, order))
    asked = set(map(id, roots))
    return [
        node
        for node in order
        if id(node) not in asked and is_referenced(node, inside) and is_worth_storing(node)
    ]


def is_referenced(node: Node, inside: Container[int]) -> bool:
    """Return whether a pending node is referenced from outside an expression.

    References count from the array with this value, or from pending operations outside the
    expression.

    Args:
        node: the node.
        inside: the ids of the pending nodes of the expression.
    """
    array = node.array
    if array is not None and array() is not None:
        return True
    for reference in node.users or ():
        user = reference()
        if user is not None and user.layout is None and id(user) not in inside:
            return True
    return False


def siblings_of(order: Sequence[Node]) -> list[Node]:
    """Return pending reductions of the same operands and axes: one pass may compute both."""
    if not order or order[-1].cost < REDUCTION_COST:  # there is no reduction
        return []
    if not config.implementations:
        # Inside an implementation, the reduction that called it is still pending, and a kernel that
        # computes both would overwrite its result.
        return []
    siblings: dict[int, Node] = {}
    known = set(map(id, order))
    for node in order:
        op = node.op
        if type(op) is not Reduce:
            continue
        walked = node.operands[0]
        assert type(walked) is Node
        notes = walked.users if walked.layout is None else walked.layout.block.readers
        count = 0
        for note in notes if isinstance(notes, list) else ():
            other = note()
            if (
                other is not None
                and other.layout is None
                and id(other) not in known
                and type(other.op) is Reduce
                and other.op.axes == op.axes
                and _is_same(other.operands[0], walked)
                and count < MAX_SIBLINGS
            ):
                siblings[id(other)] = other
                count += 1
    return list(siblings.values())


def _is_same(operand: Any, walked: Node) -> bool:
    """Return whether two operands have the same values: the same object or the same address."""
    return operand is walked or (operand.layout is not None and operand.layout == walked.layout)


def add_dependent(node: Node, operand: Node) -> bool:
    """Record that a pending node reads ``operand``; return False if that is in shared memory."""
    holder: Any = operand if operand.layout is None else operand.layout.block
    if host_maps.holds and operand.layout is not None:
        host_maps.before_noting(operand.layout)
    readers = holder.users if operand.layout is None else holder.readers
    if readers is SHARED:
        return False
    if readers is None:
        readers = []
        if operand.layout is None:
            holder.users = readers
        else:
            holder.readers = readers
    elif len(readers) > MAX_READERS:
        readers[:] = [
            reference
            for reference in readers
            if (reader := reference()) is not None and reader.layout is None
        ]
    readers.append(weakref.ref(node))
    return True
