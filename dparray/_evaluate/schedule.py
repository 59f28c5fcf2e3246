"""Which operations become which kernel: the rules and limits, by name.

All limits are about one machine-independent trade: a launch costs tens of microseconds, compiling
a tenth of a second, and memory traffic more than arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dparray._codegen.domain import Domain, Machine, last_run
from dparray._codegen.elementwise import MOST_ARRAYS, can_generate
from dparray._codegen.reduction import is_generated, is_row_cached
from dparray._graph.node import Node, pending_order
from dparray._graph.ops import Op
from dparray._graph.reductions import WEIGHT, Reduce

#: Up to this many elements the calling thread is faster than a launch (`dparray bench tiers`).
HOST_ELEMENTS = 8192

#: A structure met with this many elements is compiled at once.
COMPILE_ELEMENTS = 1 << 17

#: A structure met with fewer is compiled once so many elements went through the library's kernels.
COMPILE_TOTAL_ELEMENTS = 1 << 21

#: A call of the library counts as at least so many: that is what it costs more than a launch.
LEAST_CALL_ELEMENTS = 1 << 11

#: A structure met for the first time with this many elements is looked up in the disk cache.
LOAD_ELEMENTS = 1 << 13

#: A pending expression with more operations or leaves than these computes its operands first, so
#: that a loop of a million steps holds neither memory nor graph.
MOST_WEIGHT = 512
MOST_LEAVES = 24


#: A value of at least this weight that somebody holds is stored when it is computed for another,
#: since storing it costs about as much as this many additions.
STORING_WEIGHT = 8


#: A kernel of several loops reads again what one group reads, so that must fit a core's cache.
CACHE_BYTES = 1 << 18

#: So many pending reductions are computed beside one of the same memory that is needed.
MOST_SIBLINGS = 4

#: Elements whose computation costs more than this are not computed again in a later loop.
MOST_WEIGHT_AGAIN = 64


def is_worth_storing(node: Node) -> bool:
    """Whether a value that is needed twice costs more to compute again than to store."""
    return node.weight >= STORING_WEIGHT


def is_worth_compiling(size: int, total: int) -> bool:
    """Whether to compile for ``size`` elements, ``total`` having been computed so far."""
    return size >= COMPILE_ELEMENTS or total >= COMPILE_TOTAL_ELEMENTS


def counted_elements(size: int) -> int:
    """As how many elements a call of the library counts that computes ``size``."""
    return max(size, LEAST_CALL_ELEMENTS)


def must_be_stored_first(node: Node, size: int) -> bool:
    """Whether an inner node gets memory of its own instead of being computed where it is used.

    It does where no kernel can be generated for it, and where it is smaller than the result: then
    storing it costs less than computing it anew for each element it is broadcast to.
    """
    return not can_generate(node) or node.size < size


class Kernel(NamedTuple):
    """What one kernel computes.

    Attributes:
        order: the nodes, operands before users.
        domain: what it walks if it has reductions.
        rows: ids of the nodes with one element for each output of the reductions.
        dropped: ids of those of them that are shaped without the reduced axes.
        elements_last: it overwrites what it reads, so it must have read all of a row by then.
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
        """What the first pass over the domain reduces."""
        assert self.domain is not None
        if len(self.domain.axes) == 1:
            return self.domain
        is_positional = any(
            type(node.op) is Reduce and node.op.reduction.is_positional for node in self.order
        )
        return self.domain if is_positional else last_run(self.domain, self.walked)


class Cut(NamedTuple):
    """How an expression is cut.

    Attributes:
        first: nodes that are computed before anything else; if there are any, cut again then.
        kernel: what one kernel computes.
        apart: roots that are not in the kernel.
    """

    first: list[Node]
    kernel: Kernel
    apart: list[Node]


def cut(roots: Sequence[Node], kept: Sequence[Node], target: Any, machine: Machine) -> Cut:
    """Find out what of an expression one kernel computes.

    Args:
        roots: what is asked for.
        kept: inner nodes that are stored, too, if they are in the kernel.
        target: an existing layout that the last root is written to, or ``None``.
        machine: the device.
    """
    order = pending_order(roots)
    if not any(type(node.op) is Reduce for node in order):
        return Cut(_stored_before_elements(order, roots), Kernel(order), [])
    last = next(node for node in reversed(order) if type(node.op) is Reduce)
    domain = Domain(last.operands[0].shape, last.op.axes)  # type: ignore[union-attr]
    places: dict[int, str] = {}
    needs: dict[int, list[Node]] = {}
    for node in order:
        places[id(node)], needs[id(node)] = _place(node, domain, places)
    inside = [root for root in roots if places[id(root)] != "loose"]
    if not inside:
        first = [each for root in roots for each in needs[id(root)] or _pending_reductions(root)]
        return Cut(first, Kernel(order), [])
    first = []
    reached: dict[int, Node] = {}
    stack = list(inside)
    while stack:
        node = stack.pop()
        if id(node) not in reached:
            reached[id(node)] = node
            first += needs[id(node)]
            stack += [each for each in _pending_operands(node) if places[id(each)] != "loose"]
    if first:
        return Cut(first, Kernel(order), [])
    part = _cut_loops(
        [node for node in order if id(node) in reached],
        inside,
        kept,
        target,
        machine,
        domain,
        places,
    )
    return part._replace(apart=[root for root in roots if places[id(root)] == "loose"])


def _place(node: Node, domain: Domain, places: Mapping[int, str]) -> tuple[str, list[Node]]:
    """Where a node has its values in a kernel over a domain.

    Returns:
        ``"element"``: one for each of the domain. ``"row"``: one for each output of the
        reductions, shaped with the reduced axes or aligned as if it were; ``"dropped"``: shaped
        without them. ``"loose"``: nowhere. And the operands that must be computed first, of a loose
        node so that it finds a place elsewhere.
    """
    pending = _pending_operands(node)
    if not is_generated(node):
        return "loose", pending
    op = node.op
    is_leading = domain.is_leading
    if type(op) is Reduce:
        walked = node.operands[0]
        assert type(walked) is Node
        if walked.shape != domain.shape or op.axes != domain.axes:
            return "loose", []
        misplaced = [each for each in pending if places[id(each)] != "element"]
        return "row" if op.keepdims or is_leading else "dropped", misplaced
    kinds = {places[id(each)] for each in pending}
    loose = [each for each in pending if places[id(each)] == "loose"]
    kinds.discard("loose")
    if not kinds:
        if node.shape == domain.shape:
            return "element", loose
        return "loose", []
    row = domain.row if len(node.shape) == len(domain.shape) else domain.kept
    if kinds == {"row"} and node.shape == row and (row is not domain.kept or is_leading):
        return "row", loose
    if kinds == {"dropped"} and node.shape == domain.kept:
        return "dropped", loose
    if "dropped" not in kinds and node.shape == domain.shape:
        return "element", loose
    return "loose", [each for each in pending if places[id(each)] != "loose"]


def _cut_loops(
    order: list[Node],
    roots: Sequence[Node],
    kept: Sequence[Node],
    target: Any,
    machine: Machine,
    domain: Domain,
    places: Mapping[int, str],
) -> Cut:
    """Cut an expression all of whose nodes have a place in one domain."""
    before: dict[int, int] = {}
    for node in order:
        loop = max((before.get(id(each), 0) for each in node.operands), default=0)
        before[id(node)] = loop + (type(node.op) is Reduce)
    elements = [node for node in order if places[id(node)] == "element"]
    reductions = [node for node in order if type(node.op) is Reduce]
    loops = max(before.values())
    for node in (*roots, *kept):
        if id(node) in before and places[id(node)] == "element":
            loops = max(loops, 1 + before[id(node)])
    overwrites = target is not None and any(
        leaf.layout.block is target.block for node in order for leaf in _leaves(node)
    )
    kernel = Kernel(
        order,
        domain,
        frozenset(key for key, place in places.items() if place in ("row", "dropped")),
        frozenset(key for key, place in places.items() if place == "dropped"),
        overwrites,
    )
    if overwrites and places[id(roots[-1])] != "element":
        # A group would write what another still reads.
        return Cut(reductions, kernel, [])
    if loops + overwrites > 1:
        stored = [node for node in (*roots, *kept) if id(node) in before]
        loops_of = _loops_that_need(elements, [*reductions, *stored], before)
        weight = sum(
            node.op.weight
            for node in elements
            if node.op is not None and len(loops_of[id(node)]) > 1
        )
        if (
            weight > MOST_WEIGHT_AGAIN
            or kernel.first_domain is not domain
            or not is_row_cached(domain, kernel.walked, machine, CACHE_BYTES)
        ):
            return Cut([node for node in reductions if before[id(node)] == 1], kernel, [])
    sets = sum(len(node.op.reduction.accumulators) for node in reductions)  # type: ignore
    return Cut(_over_the_limit(order, roots, 2 * sets), kernel, [])


def _loops_that_need(
    elements: Sequence[Node], needed: Sequence[Node], before: Mapping[int, int]
) -> dict[int, set[int]]:
    """The loops in which each of ``elements``, operands before users, is computed.

    Args:
        elements: nodes with a value for each element of a domain.
        needed: the reductions, and what is stored, which may be elements.
        before: how many loops come before a node's value is there.
    """
    found: dict[int, set[int]] = {id(node): set() for node in elements}
    for node in needed:
        if type(node.op) is Reduce:
            for operand in node.operands:
                if id(operand) in found:
                    found[id(operand)].add(before[id(node)])
        elif id(node) in found:
            found[id(node)].add(1 + before[id(node)])
    for node in reversed(elements):
        for operand in node.operands:
            if id(operand) in found:
                found[id(operand)] |= found[id(node)]
    return found


def _stored_before_elements(order: Sequence[Node], roots: Sequence[Node]) -> list[Node]:
    """What an elementwise kernel needs in memory."""
    asked = set(map(id, roots))
    size = roots[0].size if roots else 0
    stored = {
        id(node) for node in order if id(node) not in asked and must_be_stored_first(node, size)
    }
    # What only they need becomes part of their kernels.
    needed = {id(each) for node in order if id(node) not in stored for each in node.operands}
    first = [node for node in order if id(node) in stored & needed]
    for root in roots:
        if not can_generate(root):
            first += _pending_operands(root)
    return first or _over_the_limit(order, roots, 0)


def _over_the_limit(order: Sequence[Node], roots: Sequence[Node], others: int) -> list[Node]:
    """An inner node to be stored so that the kernel's arguments are few enough."""
    if sum(root.leaves for root in roots) + others <= MOST_ARRAYS:
        return []
    leaves = {id(leaf) for node in order for leaf in _leaves(node)}
    if len(leaves) + others <= MOST_ARRAYS:
        return []
    asked = set(map(id, roots))
    inner = [node for node in order if id(node) not in asked]
    return inner[len(inner) // 2 :][:1]


def _pending_reductions(node: Node) -> list[Node]:
    """The pending operands that reductions are needed for."""
    return [
        each
        for each in _pending_operands(node)
        if each.weight >= WEIGHT
        and any(type(inner.op) is Reduce for inner in pending_order([each]))
    ]


def is_call(node: Node) -> bool:
    """Whether a pending node calls a user's function, which only a generated kernel can."""
    op = node.op
    return type(op) is Op and bool(op.functions)


def _leaves(node: Node) -> list[Node]:
    return [each for each in node.operands if type(each) is Node and each.layout is not None]


def _pending_operands(node: Node) -> list[Node]:
    return [each for each in node.operands if type(each) is Node and each.layout is None]
