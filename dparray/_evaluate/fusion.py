"""The rules by which operations form one kernel, and their named limits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from dparray._codegen.domain import Domain, Machine, last_run
from dparray._codegen.elementwise import MAX_ARRAYS, can_generate
from dparray._codegen.reduction import can_reduce, is_generated, is_row_cached
from dparray._evaluate.limits import STORING_COST
from dparray._evaluate.slots import is_overwritten
from dparray._graph.assembly import (
    MAX_BOUNDED_AXES,
    MAX_CELLS,
    Assembly,
    count_bounded_axes,
    count_cells,
    is_assembled,
    is_extended,
)
from dparray._graph.contractions import Contraction
from dparray._graph.node import Node, Scalar, layout_of, pending_order
from dparray._graph.ops import Op
from dparray._graph.reductions import REDUCTION_COST, Reduce

#: A kernel with several loops reads a group's data again, so it must fit a core's cache.
CACHE_BYTES = 1 << 18

#: Elements that cost more than this are not recomputed in a later loop.
MAX_RECOMPUTED_COST = 64


class Position(Enum):
    """The position of a node's values in a kernel over a domain.

    ELEMENT: one value for each element of the domain. OUTPUT: one for each output of the
    reductions, shaped with the reduced axes or broadcast-compatible with that shape.
    SQUEEZED_OUTPUT: the same, shaped without them. OUTSIDE: not in the kernel.
    """

    ELEMENT = 0
    OUTPUT = 1
    SQUEEZED_OUTPUT = 2
    OUTSIDE = 3


def is_worth_storing(node: Node) -> bool:
    """Return whether a value that is needed twice costs more to recompute than to store."""
    return node.cost >= STORING_COST


def must_be_stored_first(node: Node, size: int) -> bool:
    """Return whether an inner node is stored in memory instead of computed at each use.

    It is stored if no kernel can be generated for it, or if it is smaller than the result: then
    storing it costs less than recomputing it for each element of the broadcast.
    """
    return not can_generate(node) or node.size < size


class FusionGroup(NamedTuple):
    """The nodes that one kernel computes.

    Attributes:
        order: the nodes, operands before users.
        domain: the domain that it traverses if it has reductions.
        rows: ids of nodes with one element for each output of the reductions.
        dropped: ids of those that are shaped without the reduced axes.
        elements_last: whether it overwrites its inputs, so that it must read a whole row first.
    """

    order: list[Node]
    domain: Domain | None = None
    rows: frozenset[int] = frozenset()
    dropped: frozenset[int] = frozenset()
    elements_last: bool = False

    @property
    def walked(self) -> list[Any]:
        """The layouts of the arrays that have elements in the domain."""
        readers = (
            node for node in self.order if id(node) not in self.rows or type(node.op) is Reduce
        )
        return list({id(leaf): leaf.layout for node in readers for leaf in _leaves(node)}.values())

    @property
    def first_domain(self) -> Domain:
        """The operands that the first pass over the domain reduces."""
        assert self.domain is not None
        if len(self.domain.axes) == 1:
            return self.domain
        is_positional = any(
            type(node.op) is Reduce and node.op.reduction.is_positional for node in self.order
        )
        return self.domain if is_positional else last_run(self.domain, self.walked)


class Split(NamedTuple):
    """How an expression is split.

    Attributes:
        first: nodes that are computed first; if there are any, the rest is split again.
        group: the nodes that one kernel computes.
        apart: roots outside the group.
    """

    first: list[Node]
    group: FusionGroup
    apart: list[Node]


def split(
    roots: Sequence[Node], extras: Sequence[Node], is_written: bool, machine: Machine
) -> Split:
    """Determine the part of an expression that one kernel computes.

    Args:
        roots: the requested nodes.
        extras: inner nodes that are stored too, if they are in the kernel.
        is_written: whether the last root is written to memory that leaves may share.
        machine: the device.
    """
    order = pending_order(roots)
    if not any(type(node.op) is Reduce for node in order):
        return Split(_stored_before_elements(order, roots, extras), FusionGroup(order), [])
    last = next(node for node in reversed(order) if type(node.op) is Reduce)
    domain = Domain(last.operands[0].shape, last.op.axes)  # type: ignore[union-attr]
    positions: dict[int, Position] = {}
    needs: dict[int, list[Node]] = {}
    for node in order:
        positions[id(node)], needs[id(node)] = _position_of(node, domain, positions)
    inside = [root for root in roots if positions[id(root)] is not Position.OUTSIDE]
    if not inside:
        first = [each for root in roots for each in needs[id(root)] or _pending_reductions(root)]
        return Split(first, FusionGroup(order), [])
    first = []
    reached: dict[int, Node] = {}
    stack = list(inside)
    while stack:
        node = stack.pop()
        if id(node) not in reached:
            reached[id(node)] = node
            first += needs[id(node)]
            stack += [
                each
                for each in _pending_operands(node)
                if positions[id(each)] is not Position.OUTSIDE
            ]
    if first:
        return Split(first, FusionGroup(order), [])
    part = _split_loops(
        [node for node in order if id(node) in reached],
        inside,
        extras,
        is_written,
        machine,
        domain,
        positions,
    )
    return part._replace(apart=[root for root in roots if positions[id(root)] is Position.OUTSIDE])


def _position_of(
    node: Node, domain: Domain, positions: Mapping[int, Position]
) -> tuple[Position, list[Node]]:
    """Return the position of a node in a kernel over a domain, and the nodes to compute first.

    These are operands, or a node's operands if it is outside, so that it gets a position elsewhere.
    """
    pending = _pending_operands(node)
    if not is_generated(node) or type(node.op) in (Contraction, Assembly):
        return Position.OUTSIDE, pending
    op = node.op
    is_leading = domain.is_leading
    if type(op) is Reduce:
        walked = node.operands[0]
        assert type(walked) is Node
        if walked.shape != domain.shape or op.axes != domain.axes:
            return Position.OUTSIDE, []
        misplaced = [each for each in pending if positions[id(each)] is not Position.ELEMENT]
        return Position.OUTPUT if op.keepdims or is_leading else Position.SQUEEZED_OUTPUT, misplaced
    kinds = {positions[id(each)] for each in pending}
    loose = [each for each in pending if positions[id(each)] is Position.OUTSIDE]
    kinds.discard(Position.OUTSIDE)
    if not kinds:
        if node.shape == domain.shape:
            return Position.ELEMENT, loose
        return Position.OUTSIDE, []
    is_row = len(node.shape) == len(domain.shape)
    shape = domain.row if is_row else domain.output_shape
    if kinds == {Position.OUTPUT} and node.shape == shape and (is_row or is_leading):
        return Position.OUTPUT, loose
    if kinds == {Position.SQUEEZED_OUTPUT} and node.shape == domain.output_shape:
        return Position.SQUEEZED_OUTPUT, loose
    if Position.SQUEEZED_OUTPUT not in kinds and node.shape == domain.shape:
        return Position.ELEMENT, loose
    return Position.OUTSIDE, [
        each for each in pending if positions[id(each)] is not Position.OUTSIDE
    ]


def _split_loops(
    order: list[Node],
    roots: Sequence[Node],
    extras: Sequence[Node],
    is_written: bool,
    machine: Machine,
    domain: Domain,
    positions: Mapping[int, Position],
) -> Split:
    """Split an expression whose nodes all have a position in one domain."""
    before: dict[int, int] = {}
    for node in order:
        loop = max((before.get(id(each), 0) for each in node.operands), default=0)
        before[id(node)] = loop + (type(node.op) is Reduce)
    elements = [node for node in order if positions[id(node)] is Position.ELEMENT]
    reductions = [node for node in order if type(node.op) is Reduce]
    loops = max(before.values())
    for node in (*roots, *extras):
        if id(node) in before and positions[id(node)] is Position.ELEMENT:
            loops = max(loops, 1 + before[id(node)])
    overwrites = is_written and any(
        is_overwritten(layout_of(leaf)) for node in order for leaf in _leaves(node)
    )
    kernel = FusionGroup(
        order,
        domain,
        frozenset(
            key
            for key, place in positions.items()
            if place in (Position.OUTPUT, Position.SQUEEZED_OUTPUT)
        ),
        frozenset(key for key, place in positions.items() if place is Position.SQUEEZED_OUTPUT),
        overwrites,
    )
    if overwrites and positions[id(roots[-1])] is not Position.ELEMENT:
        # A group would write memory that another still reads.
        return Split(reductions, kernel, [])
    if loops + overwrites > 1:
        stored = [node for node in (*roots, *extras) if id(node) in before]
        loops_of = _loops_that_need(elements, [*reductions, *stored], before)
        cost = sum(
            node.op.cost for node in elements if node.op is not None and len(loops_of[id(node)]) > 1
        )
        if (
            cost > MAX_RECOMPUTED_COST
            or kernel.first_domain is not domain
            or not is_row_cached(domain, kernel.walked, machine, CACHE_BYTES)
        ):
            return Split([node for node in reductions if before[id(node)] == 1], kernel, [])
    sets = sum(len(node.op.reduction.accumulators) for node in reductions)  # type: ignore
    return Split(_over_the_limit(order, roots, 2 * sets), kernel, [])


def _loops_that_need(
    elements: Sequence[Node], needed: Sequence[Node], before: Mapping[int, int]
) -> dict[int, set[int]]:
    """Return the loops in which each of ``elements``, operands before users, is computed.

    Args:
        elements: nodes with a value for each element of a domain.
        needed: the reductions and the stored nodes, which may be elements.
        before: how many loops precede the availability of a node's value.
    """
    loops: dict[int, set[int]] = {id(node): set() for node in elements}
    for node in needed:
        if type(node.op) is Reduce:
            for operand in node.operands:
                if id(operand) in loops:
                    loops[id(operand)].add(before[id(node)])
        elif id(node) in loops:
            loops[id(node)].add(1 + before[id(node)])
    for node in reversed(elements):
        for operand in node.operands:
            if id(operand) in loops:
                loops[id(operand)] |= loops[id(node)]
    return loops


def _stored_before_elements(
    order: Sequence[Node], roots: Sequence[Node], extras: Sequence[Node]
) -> list[Node]:
    """Return the operands that an element-wise kernel needs in memory."""
    whole = {id(each) for node in order for each in _whole_operands(node)}
    for node in order:
        # One by one, because the kernel of a contraction with a tail stores one value.
        if id(node) in whole and any(map(_takes_tail, pending_order([node]))):
            return [node]
    asked = set(map(id, roots))
    size = roots[0].size if roots else 0
    begin = with_tail(order, roots, extras)
    stored = {
        id(node)
        for node in order
        if id(node) not in asked and node is not begin and must_be_stored_first(node, size)
    }
    stored |= whole
    stored |= {id(node) for node in _not_read_by_index(order, stored) if id(node) not in asked}
    # Nodes that only they need become part of their kernels.
    needed = {id(each) for node in order if id(node) not in stored for each in node.operands}
    first = [node for node in order if id(node) in stored & needed]
    for root in roots:
        if not can_generate(root):
            first += _pending_operands(root)
    return first or _over_the_limit(order, roots, 0)


def _not_read_by_index(order: Sequence[Node], stored: Collection[int]) -> list[Node]:
    """Return the assembled operands that a kernel does not read where their boxes are stored."""
    inside = [node for node in order if id(node) not in stored]
    assemblies = [node for node in inside if type(node.op) is Assembly]
    if not assemblies:
        return []
    leaves = [each for node in inside for each in _leaves(node)]
    extended = list(filter(is_extended, assemblies))
    if extended and (
        len(extended) < len(assemblies) or count_bounded_axes(extended) > MAX_BOUNDED_AXES
    ):
        return assemblies
    if (
        not any(map(is_call, inside))
        and all(layout_of(leaf).block.memory is not None for leaf in leaves)
        and count_cells(assemblies) <= MAX_CELLS
    ):
        return []
    return assemblies


def with_tail(
    order: Sequence[Node], roots: Sequence[Node], extras: Sequence[Node] = ()
) -> Node | None:
    """Return the contraction whose kernel computes a root from its results, if there is one.

    Args:
        order: the pending nodes, operands before users.
        roots: the requested nodes.
        extras: inner nodes that are stored too, for which such a kernel has no room.
    """
    candidates = [node for node in order if _takes_tail(node)]
    if not candidates or len(roots) != 1 or candidates[-1] is roots[0]:
        return None
    inside = set(map(id, order))
    if any(id(node) in inside and node is not roots[0] for node in extras):
        return None
    begin, shape = candidates[-1], roots[0].shape
    after = {id(begin)}
    for node in order:
        if not after.isdisjoint(map(id, node.operands)):
            after.add(id(node))
            if type(node.op) is not Op or node.shape != shape or not can_generate(node):
                return None
        if node.size == roots[0].size and can_generate(node) and not _may_be_in_tail(node):
            return None
    return begin if begin.shape == shape else None


def _takes_tail(node: Node) -> bool:
    return type(node.op) is Contraction and node.op.takes_tail


def _may_be_in_tail(node: Node) -> bool:
    """Return whether the kernel of a contraction can compute a node that kernels can compute."""
    parts = [part for part in node.operands if type(part) is Node]
    dtypes = {*node.signature, *(part.dtype for part in parts)}
    return (
        not (is_call(node) or is_assembled(node))
        and all(dtype.char not in "eEFD" for dtype in dtypes)
        and all(
            part.layout is None
            or (part.layout.block.memory is not None and not is_overwritten(part.layout))
            for part in parts
        )
    )


def _over_the_limit(order: Sequence[Node], roots: Sequence[Node], others: int) -> list[Node]:
    """Return an inner node to store so that the kernel has few enough arguments."""
    if sum(root.leaves for root in roots) + others <= MAX_ARRAYS:
        return []
    leaves = {
        id(node) if is_assembled(node) else id(leaf) for node in order for leaf in _leaves(node)
    }
    if len(leaves) + others <= MAX_ARRAYS:
        return []
    asked = set(map(id, roots))
    inner = [node for node in order if id(node) not in asked]
    return inner[len(inner) // 2 :][:1]


def _pending_reductions(node: Node) -> list[Node]:
    """Return the pending operands whose computation needs reductions."""
    return [
        each
        for each in _pending_operands(node)
        if each.cost >= REDUCTION_COST
        and any(type(inner.op) is Reduce for inner in pending_order([each]))
    ]


def is_call(node: Node | Scalar) -> bool:
    """Return whether only a kernel can compute a node: a user's function, or a contraction."""
    op = node.op if type(node) is Node else None
    return type(op) is Contraction or (type(op) is Op and (op.is_device_only or bool(op.functions)))


def _whole_operands(node: Node) -> list[Node]:
    """Return the pending operands that an operation on whole arrays needs in memory."""
    if type(node.op) not in (Contraction, Assembly):
        return []
    whole = node.op.whole if type(node.op) is Contraction else None
    return [each for each in node.operands[:whole] if type(each) is Node and each.layout is None]


def _leaves(node: Node) -> list[Node]:
    return [each for each in node.operands if type(each) is Node and each.layout is not None]


def _pending_operands(node: Node) -> list[Node]:
    return [each for each in node.operands if type(each) is Node and each.layout is None]


def reduces(node: Node, walked: Any, domain: Domain) -> bool:
    """Return whether a pending node reduces the values of ``walked`` over the axes of a domain."""
    assert type(node.op) is Reduce
    operand = node.operands[0]
    assert type(operand) is Node
    is_same = operand is walked or (operand.layout is not None and operand.layout == walked.layout)
    return is_same and node.op.axes == domain.axes and can_reduce(node)


def joined(group: FusionGroup, reductions: Sequence[Node]) -> FusionGroup:
    """Return the group with further reductions over its domain."""
    domain = group.domain
    if not reductions or domain is None:
        return group
    dropped = {
        id(node) for node in reductions if domain.row != node.shape and not domain.is_leading
    }
    return group._replace(
        order=[*group.order, *reductions],
        rows=group.rows | {id(node) for node in reductions},
        dropped=group.dropped | dropped,
    )


def stored_by(group: FusionGroup, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes, the last of which is requested, that a group stores."""
    inside = set(map(id, group.order))
    shape = nodes[-1].shape if nodes else ()
    return [
        node
        for node in nodes
        if id(node) in inside and (group.domain is not None or node.shape == shape)
    ]
