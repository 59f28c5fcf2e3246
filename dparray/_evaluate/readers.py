"""Who else can ask for a pending value, and which pending values read a block of memory."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from sys import getrefcount
from typing import Any

from dparray._evaluate.fusion import is_worth_storing
from dparray._evaluate.limits import MOST_SIBLINGS, STORING_WEIGHT
from dparray._graph.node import Node, pending_order
from dparray._graph.reductions import WEIGHT, Reduce
from dparray._runtime import access
from dparray._runtime.access import lock as lock
from dparray.memory.blocks import SHARED

# Above this many notes of readers, those that are computed or gone are dropped.
MOST_READERS = 64


def _references_of_a_walk() -> int:
    """The count of ``getrefcount`` in a loop over a list, for an object of no other reference.

    Interpreters differ: Python 3.14 lends references to local names.
    """
    for node in [object()]:
        return getrefcount(node)
    raise AssertionError


#: References to a node that are a walk's own, in a loop written as the one that is measured.
WALK_REFERENCES = _references_of_a_walk()


def externally_referenced(roots: Sequence[Node], order: Sequence[Node] | None = None) -> list[Node]:
    """The inner nodes that are worth storing and referenced from outside the expression.

    ``order``, if given, is the only list of the pending nodes that the caller has.
    """
    if len(roots) == 1:
        if roots[0].weight <= STORING_WEIGHT:
            return []
    elif max([node.weight for node in roots]) <= STORING_WEIGHT:
        return []
    if order is None:
        order = pending_order(roots)
    # One reference is the user's in `order`; most nodes have no more.
    most = WALK_REFERENCES + 1
    only = roots[0] if len(roots) == 1 else None  # which is stored anyway
    shared: list[Node] = []
    references: list[int] = []
    for node in order:
        count = getrefcount(node)
        if count > most and node is not only and is_worth_storing(node):
            shared.append(node)
            references.append(count - WALK_REFERENCES)
    if not shared:
        return []
    uses = inner_uses(order)
    return [
        node
        for node, count in zip(shared, references, strict=True)
        if count > uses[id(node)] and not any(node is root for root in roots)
    ]


def inner_uses(order: Sequence[Node]) -> dict[int, int]:
    """How often each node of ``order`` is an operand of another."""
    uses: dict[int, int] = dict.fromkeys(map(id, order), 0)
    for user in order:
        for operand in user.operands:
            if id(operand) in uses:
                uses[id(operand)] += 1
    return uses


def siblings_of(order: Sequence[Node]) -> list[Node]:
    """Pending reductions of what nodes reduce, over the same axes: one pass may compute both."""
    if not order or order[-1].weight < WEIGHT:  # there is no reduction
        return []
    found: dict[int, Node] = {}
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
                and count < MOST_SIBLINGS
            ):
                found[id(other)] = other
                count += 1
    return list(found.values())


def _is_same(operand: Any, walked: Node) -> bool:
    """Whether two operands have the same values, since they are one or lie at the same address."""
    return operand is walked or (operand.layout is not None and operand.layout == walked.layout)


def note_reader(node: Node, operand: Node) -> bool:
    """Remember that a pending node reads ``operand``; false if that lies in shared memory."""
    holder: Any = operand if operand.layout is None else operand.layout.block
    if access.holds and operand.layout is not None:
        access.before_noting(operand.layout)
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
