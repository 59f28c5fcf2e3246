"""Which temporaries of an expression are overwritten by what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dparray._graph.node import Node


def reuses(order: Sequence[Node], stored: Sequence[Any]) -> tuple[int, ...]:
    """For each node the index of an operand that nothing needs after it, or -1.

    Args:
        order: pending nodes, operands before users.
        stored: the values among them that are stored.
    """
    kept = set(map(id, stored))
    made = {id(node): node for node in order}
    last = {id(part): node for node in order for part in node.operands}
    return tuple([_reused(node, made, last, kept) for node in order])


def _reused(node: Node, made: dict[int, Node], last: dict[int, Node], kept: set[int]) -> int:
    if id(node) in kept:
        return -1
    for index, part in enumerate(node.operands):
        if (
            id(part) in made
            and id(part) not in kept
            and last[id(part)] is node
            and type(part) is Node
            and (part.shape, part.dtype) == (node.shape, node.dtype)
        ):
            return index
    return -1
