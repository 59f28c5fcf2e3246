"""Division of an expression into steps, each of which one device computes on its own.

The steps are those of the scheduler for a single queue, by its rules of fusion. One kernel
may then combine data of several devices, or work that several devices could do in parallel. If so,
finer divisions are tried as well, and their schedules decide which is best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dparray._codegen.canonical import Canonical
from dparray._evaluate import evaluate
from dparray._evaluate.expression import Expression, PlanTraits
from dparray._evaluate.fusion import is_worth_storing
from dparray._evaluate.plan import ContractionStep, FusedStep
from dparray._evaluate.schedule import schedule
from dparray._graph.contractions import Contraction
from dparray._graph.node import Node, layout_of, pending_order
from dparray._graph.reductions import REDUCTION_COST, Reduce
from dparray.memory.blocks import planned_layout


class CutStep(NamedTuple):
    """A step, with nodes and arrays given by number.

    Attributes:
        nodes: the operations, operands before users, as positions in the expression.
        results: the nodes that are stored.
        leaves: the arrays of the expression that the step reads.
        reads: the results of other steps that the step reads.
        kind: ``"fused"``, ``"contraction"`` or ``"library"``.
    """

    nodes: tuple[int, ...]
    results: tuple[int, ...]
    leaves: tuple[int, ...]
    reads: tuple[int, ...]
    kind: str


def cut(
    order: Sequence[Node],
    roots: Sequence[Node],
    held: Sequence[Node],
    first: Sequence[Node],
    numbers: Mapping[int, int],
    traits: PlanTraits,
) -> tuple[CutStep, ...]:
    """Return the steps of an expression, without computing anything.

    Args:
        order: the pending nodes, operands before users.
        roots: the requested nodes.
        held: inner nodes that are stored if this is part of the same work.
        first: inner nodes that get their own step.
        numbers: maps the id of a computed node to the number of its array.
        traits: the traits of a device.
    """
    copies: dict[int, Node] = {}
    leaf_numbers: dict[int, int] = {}
    positions: dict[int, int] = {}
    for position, node in enumerate(order):
        parts: list[object] = []
        for part in node.operands:
            if type(part) is not Node:
                parts.append(part)
                continue
            copy = copies.get(id(part))
            if copy is None:
                copy = copies[id(part)] = Node.leaf(layout_of(part), part.queue, part.usm_type)
                leaf_numbers[id(copy)] = numbers[id(part)]
            parts.append(copy)
        assert node.op is not None
        attributes = node.shape, node.size, node.queue, node.usm_type, node.axes
        copy = Node(node.op, tuple(parts), node.signature, *attributes)  # type: ignore[arg-type]
        copy.cost, copy.leaves = node.cost, node.leaves
        copies[id(node)] = copy
        positions[id(copy)] = position
    stored = [copies[id(node)] for node in held]
    steps: list[CutStep] = []
    groups = [[copies[id(node)]] for node in first]
    groups += evaluate.grouped([copies[id(node)] for node in roots])
    for group in groups:
        asked = [node for node in group if node.layout is None]
        if asked:
            steps += _steps(asked, stored, positions, leaf_numbers, traits)
    return tuple(steps)


def _steps(
    roots: Sequence[Node],
    held: Sequence[Node],
    positions: Mapping[int, int],
    leaf_numbers: Mapping[int, int],
    traits: PlanTraits,
) -> list[CutStep]:
    order = pending_order(roots)
    number = {id(node): position for position, node in enumerate(order)}
    expression = Expression(
        order,
        tuple([number[id(node)] for node in roots]),
        tuple([number[id(node)] for node in held if id(node) in number]),
    )
    steps = []
    for step in schedule(expression, Canonical(order), traits).steps:
        results = [order[at] for _, at in step.stores if order[at].layout is None]
        inside = pending_order(results)
        leaves: dict[int, None] = {}
        reads: dict[int, None] = {}
        for node in inside:
            for part in node.operands:
                if type(part) is Node and part.layout is not None:
                    if id(part) in leaf_numbers:
                        leaves[leaf_numbers[id(part)]] = None
                    else:
                        reads[positions[id(part)]] = None
        kind = "library"
        if isinstance(step, FusedStep | ContractionStep):
            kind = "fused" if isinstance(step, FusedStep) else "contraction"
        steps.append(
            CutStep(
                tuple([positions[id(node)] for node in inside]),
                tuple([positions[id(node)] for node in results]),
                tuple(leaves),
                tuple(reads),
                kind,
            )
        )
        for node in results:
            node.layout = planned_layout(node.queue, node.usm_type, node.shape, node.dtype)
            node.cost, node.leaves = 0, 1
    return steps


def branches(order: Sequence[Node], roots: Sequence[Node], least: float) -> list[Node]:
    """Return the values that get their own step so that devices can compute them in parallel.

    These are the expensive operands of nodes with several, expensive values that are used more than
    once, and the roots if there are several.

    Args:
        order: the pending nodes of an expression, operands before users.
        roots: the requested nodes.
        least: the minimum number of additions for a separate step.
    """
    users: dict[int, int] = {}
    for node in order:
        for key in {id(part) for part in node.operands}:
            users[key] = users.get(key, 0) + 1
    total: dict[int, float] = {}
    own: dict[int, float] = {}
    nodes: dict[int, Node] = {}

    def take(node: Node) -> None:
        nodes[id(node)] = node
        own[id(node)] = 0.0

    for node in order:
        pending = [part for part in node.operands if type(part) is Node and id(part) in total]
        if sum(total[id(part)] >= least for part in pending) > 1:
            for part in pending:
                if own[id(part)] >= least:
                    take(part)
        work = additions(node)
        total[id(node)] = work + sum(total[id(part)] for part in pending)
        own[id(node)] = work + sum(own[id(part)] for part in pending)
        if users.get(id(node), 0) > 1 and own[id(node)] >= least:
            take(node)
    if len(roots) > 1:
        for root in roots:
            if own[id(root)] >= least:
                take(root)
    return [node for node in order if id(node) in nodes]


def additions(node: Node) -> float:
    """Return the approximate cost of an operation in additions."""
    op = node.op
    assert op is not None
    walked = [part for part in node.operands if type(part) is Node]
    if isinstance(op, Contraction):
        return float(node.size * op.terms(walked[0].shape))
    if isinstance(op, Reduce):
        return float(walked[0].size * max(1, op.cost // REDUCTION_COST))
    return float(node.size * op.cost)


def apart(
    order: Sequence[Node], numbers: Mapping[int, int], homes: Sequence[int | None]
) -> list[Node]:
    """Return the values that get their own step because all of their inputs are on one device.

    The other inputs of their users are on other devices.

    Args:
        order: the pending nodes of an expression, operands before users.
        numbers: maps the id of a computed node to the number of its array.
        homes: the placement of each array; ``None`` for values that are not in memory.
    """
    places: dict[int, frozenset[int]] = {}
    nodes: dict[int, Node] = {}
    for node in order:
        here: frozenset[int] = frozenset()
        parts = [part for part in node.operands if type(part) is Node]
        for part in parts:
            if id(part) not in places:
                home = homes[numbers[id(part)]]
                places[id(part)] = frozenset() if home is None else frozenset((home,))
            here |= places[id(part)]
        places[id(node)] = here
        if len(here) > 1:
            for part in parts:
                if part.layout is None and len(places[id(part)]) == 1 and is_worth_storing(part):
                    nodes[id(part)] = part
    return list(nodes.values())
