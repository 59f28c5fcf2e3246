"""Expressions whose devices a policy decides at evaluation.

An expression recorded under a policy other than "follow" is computed by that policy, whenever it is
evaluated. Without such a policy nothing is recorded, at the cost of one lookup in an empty dict.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from dparray import _placement, _satellites
from dparray._graph.node import Node, layout_of, pending_order
from dparray._placement import Policy

#: Maps the id of a pending node to a reference to it, and its policy.
nodes: dict[int, tuple[weakref.ref[Node], Policy]] = {}


def note(node: Node) -> None:
    """Record that the active policy decides about a new node."""
    policy = _placement.policy_in_force()
    if policy is not None:
        _note(node, policy)


def note_as(node: Node, view: Node) -> None:
    """Let the policy of an expression also decide about a view of it."""
    policy = policy_of(node)
    if policy is not None:
        _note(view, policy)


def _note(node: Node, policy: Policy) -> None:
    key = id(node)

    # also during interpreter shutdown
    def forget(_: object, recorded: dict[int, Any] = nodes) -> None:
        recorded.pop(key, None)

    nodes[key] = weakref.ref(node, forget), policy


def evaluate(roots: Sequence[Node]) -> list[Node]:
    """Compute the nodes that policies decide about; return the others."""
    left: list[Node] = []
    groups: dict[Policy, list[Node]] = {}
    for root in roots:
        policy = policy_of(root) if root.layout is None else None
        if policy is None:
            left.append(root)
        else:
            groups.setdefault(policy, []).append(root)
    for policy, group in groups.items():
        inside = [id(node) for node in pending_order(group)]
        if not _satellites.provider("placement").compute(policy, group):
            left += group
        for key in inside:
            entry = nodes.get(key)
            node = None if entry is None else entry[0]()
            if node is not None and (node.layout is not None or group[0].layout is None):
                del nodes[key]
    return left


def policy_of(root: Node) -> Policy | None:
    """Return the policy of an expression: of its last operation that has one."""
    for node in reversed(pending_order([root])):
        entry = nodes.get(id(node))
        if entry is not None:
            return entry[1]
    return None


def brought(value: Node, queue: Any) -> Node:
    """Return a value that is about to be written to memory of a queue: unchanged, or computed and
    copied there if a policy decides and the value is not entirely on that queue.
    """
    policy = policy_of(value) or _placement.policy_in_force()
    if policy is None:
        return value
    policies = _satellites.provider("placement")
    if value.layout is None:
        policies.compute(policy, [value])
    if value.layout is None or value.queue == queue:
        return value
    return Node.leaf(policies.bring(policy, layout_of(value), queue), queue, value.usm_type)
