"""Expressions whose devices a policy decides when they are computed.

What is noted down while a policy other than "follow" is in force is computed by that policy,
whenever that is. Without one, nothing is noted, and one look at an empty dict is all that it costs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dparray import _placement
from dparray._graph.node import Node, layout_of, pending_order
from dparray._layout import Layout
from dparray._placement import Policy

#: By id of a pending node a reference to it, and its policy.
nodes: dict[int, tuple[weakref.ref[Node], Policy]] = {}


class Binder(NamedTuple):
    """The functions that carry out policies; ``_scheduling.executor`` sets them.

    Attributes:
        compute: computes pending nodes by a policy; false if that leaves them as they are.
        bring: copies values to a queue.
    """

    compute: Callable[[Policy, Sequence[Node]], bool]
    bring: Callable[[Policy, Layout, Any], Layout]


#: Without one, policies decide nothing.
binder: Binder | None = None


def note(node: Node) -> None:
    """Remember that the policy in force decides about a new node."""
    policy = _placement.policy_in_force()
    if policy is not None:
        _note(node, policy)


def note_as(node: Node, view: Node) -> None:
    """Let the policy of an expression decide about a view of it, which is an expression too."""
    policy = policy_of(node)
    if policy is not None:
        _note(view, policy)


def _note(node: Node, policy: Policy) -> None:
    key = id(node)

    def forget(_: object, noted: dict[int, Any] = nodes) -> None:  # also while all ends
        noted.pop(key, None)

    nodes[key] = weakref.ref(node, forget), policy


def evaluate(roots: Sequence[Node]) -> list[Node]:
    """Compute those of some nodes that policies decide about; returns the others."""
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
        if binder is None or not binder.compute(policy, group):
            left += group
        for key in inside:
            found = nodes.get(key)
            node = None if found is None else found[0]()
            if node is not None and (node.layout is not None or group[0].layout is None):
                del nodes[key]
    return left


def policy_of(root: Node) -> Policy | None:
    """Return the policy of an expression: of the last operation that has one."""
    for node in reversed(pending_order([root])):
        found = nodes.get(id(node))
        if found is not None:
            return found[1]
    return None


def brought(value: Node, queue: Any) -> Node:
    """Return a value that is about to be written to memory of a queue: as it is, or computed and
    brought there, where a policy decides and it is not all on that queue.
    """
    policy = policy_of(value) or _placement.policy_in_force()
    if policy is None or binder is None:
        return value
    if value.layout is None:
        binder.compute(policy, [value])
    if value.layout is None or value.queue == queue:
        return value
    return Node.leaf(binder.bring(policy, layout_of(value), queue), queue, value.usm_type)
