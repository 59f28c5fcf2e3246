"""An expression is cut into steps: what one device computes without asking another.

The steps are those that the scheduler of one queue makes, by its rules of fusion. Where that would
put in one kernel what lies on several devices, or what several could compute side by side, there
are further cuts with more steps: which of them is best, their schedules say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dparray._codegen.canonical import Canonical
from dparray._evaluate import evaluate
from dparray._evaluate.expression import Expression, Traits
from dparray._evaluate.fusion import is_worth_storing
from dparray._evaluate.plan import ContractionStep, FusedStep
from dparray._evaluate.schedule import schedule
from dparray._graph.contractions import Contraction
from dparray._graph.node import Node, layout_of, pending_order
from dparray._graph.reductions import WEIGHT, Reduce
from dparray.memory.blocks import planned_layout


class CutStep(NamedTuple):
    """A step, by numbers.

    Attributes:
        nodes: the operations, operands before users, by their positions in the expression.
        results: those of them that are stored.
        leaves: the arrays of the expression that it reads.
        reads: the results of other steps that it reads.
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
    traits: Traits,
) -> tuple[CutStep, ...]:
    """Return the steps of an expression; nothing is computed.

    Args:
        order: its pending nodes, operands before users.
        roots: what is asked for.
        held: inner nodes that are stored where that is a part of the same work.
        first: inner nodes that have a step of their own.
        numbers: by id of a computed node the number of its array.
        traits: those of a device.
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
        copy = Node(node.op, tuple(parts), node.loop, *attributes)  # type: ignore[arg-type]
        copy.weight, copy.leaves = node.weight, node.leaves
        copies[id(node)] = copy
        positions[id(copy)] = position
    kept = [copies[id(node)] for node in held]
    steps: list[CutStep] = []
    groups = [[copies[id(node)]] for node in first]
    groups += evaluate.grouped([copies[id(node)] for node in roots])
    for group in groups:
        asked = [node for node in group if node.layout is None]
        if asked:
            steps += _steps(asked, kept, positions, leaf_numbers, traits)
    return tuple(steps)


def _steps(
    roots: Sequence[Node],
    held: Sequence[Node],
    positions: Mapping[int, int],
    leaf_numbers: Mapping[int, int],
    traits: Traits,
) -> list[CutStep]:
    order = pending_order(roots)
    number = {id(node): at for at, node in enumerate(order)}
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
            node.weight, node.leaves = 0, 1
    return steps


def branches(order: Sequence[Node], roots: Sequence[Node], least: float) -> list[Node]:
    """Return the values that are worth a step of their own, because devices can compute them side
    by side.

    Those are the heavy operands of what has several, what is heavy and used more than once, and
    the roots where there are several.

    Args:
        order: the pending nodes of an expression, operands before users.
        roots: what is asked for.
        least: how many additions are worth a step.
    """
    users: dict[int, int] = {}
    for node in order:
        for key in {id(part) for part in node.operands}:
            users[key] = users.get(key, 0) + 1
    total: dict[int, float] = {}
    own: dict[int, float] = {}
    found: dict[int, Node] = {}

    def take(node: Node) -> None:
        found[id(node)] = node
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
    return [node for node in order if id(node) in found]


def additions(node: Node) -> float:
    """About how many additions an operation is worth."""
    op = node.op
    assert op is not None
    walked = [part for part in node.operands if type(part) is Node]
    if isinstance(op, Contraction):
        return float(node.size * op.terms(walked[0].shape))
    if isinstance(op, Reduce):
        return float(walked[0].size * max(1, op.weight // WEIGHT))
    return float(node.size * op.weight)


def apart(
    order: Sequence[Node], numbers: Mapping[int, int], homes: Sequence[int | None]
) -> list[Node]:
    """Return the values that are worth a step of their own, because all that they need lies on one
    device, and what else their users need on others.

    Args:
        order: the pending nodes of an expression, operands before users.
        numbers: by id of a computed node the number of its array.
        homes: the place of each array; ``None`` of what is in no memory.
    """
    places: dict[int, frozenset[int]] = {}
    found: dict[int, Node] = {}
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
                    found[id(part)] = part
    return list(found.values())
