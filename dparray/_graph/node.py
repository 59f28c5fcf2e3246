"""Expression nodes: what a pending array will be.

A node is *pending* while it has operands and no layout, and *computed* once it has a layout (it
then keeps no operands, so the arrays behind it can be freed). Shape, dtype and placement are known
from the start. A leaf is a node that was computed when it was made.

Nodes know no queue but as an opaque value, and import no SYCL package.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from dparray._graph.ops import CONVERT, OPS, Op
from dparray._graph.reductions import Reduce
from dparray._layout import AxisMap, Shape, Strides, axis_map, is_contiguous, mapped


class Scalar(NamedTuple):
    """A Python scalar among the operands; it becomes a kernel argument, never a constant."""

    value: Any


class Node:
    """One value of an expression.

    Attributes:
        op: the operation, or ``None`` for a leaf.
        operands: nodes and scalars; empty once computed.
        loop: the dtype that each operand is converted to, then the result's dtype.
        shape, size, dtype, queue, usm_type: of the value.
        layout: where the value lies, or ``None`` while it is pending.
        users: while pending, weak references to the nodes that have it as operand; they become the
            readers of its memory.
        weight: cost of computing it from the leaves, in additions for one element.
        leaves: how many leaves it has at the most.
    """

    __slots__ = (
        "__weakref__",
        "dtype",
        "layout",
        "leaves",
        "loop",
        "op",
        "operands",
        "queue",
        "shape",
        "size",
        "users",
        "usm_type",
        "weight",
    )

    op: Op | Reduce | None
    operands: tuple[Node | Scalar, ...]
    loop: tuple[np.dtype[Any], ...]
    layout: Any
    weight: int
    leaves: int

    def __init__(
        self,
        op: Op | Reduce,
        operands: tuple[Node | Scalar, ...],
        loop: tuple[np.dtype[Any], ...],
        shape: tuple[int, ...],
        size: int,
        queue: Any,
        usm_type: str,
    ) -> None:
        self.op = op
        self.operands = operands
        self.loop = loop
        self.dtype = loop[-1]
        self.shape = shape
        self.size = size
        self.queue = queue
        self.usm_type = usm_type
        self.layout = None
        self.users: list[Any] | None = None
        weight = op.weight
        leaves = 0
        for operand in operands:
            if type(operand) is Node:
                weight += operand.weight
                leaves += operand.leaves
        self.weight = weight
        self.leaves = leaves

    @classmethod
    def leaf(cls, layout: Any, queue: Any, usm_type: str) -> Node:
        """The node of values that lie at ``layout``."""
        self = object.__new__(cls)
        self.op = None
        self.operands = ()
        self.loop = ()
        self.dtype = layout.dtype
        self.shape = layout.shape
        self.size = prod(layout.shape)
        self.queue = queue
        self.usm_type = usm_type
        self.layout = layout
        self.users = None
        self.weight = 0
        self.leaves = 1
        return self

    def recount(self) -> None:
        """Set weight and leaves to those of the distinct parts of a pending expression.

        Until then, a part that is used twice was counted twice.
        """
        order = pending_order([self])
        self.weight = sum(node.op.weight for node in order if node.op is not None)
        self.leaves = len(
            {
                id(operand)
                for node in order
                for operand in node.operands
                if type(operand) is Node and operand.layout is not None
            }
        )

    def complete(self, layout: Any) -> None:
        """Make the node a leaf at ``layout``, memory of its own, and let go of its operands."""
        self.layout = layout
        layout.block.readers = self.users
        self.users = None
        self.op = None
        self.operands = ()
        self.weight = 0
        self.leaves = 1

    def become(
        self, op: Op | Reduce, *operands: Node | Scalar, loop: tuple[np.dtype[Any], ...] = ()
    ) -> None:
        """Make a pending node another operation with the same result.

        ``loop`` is as the attribute; the node's own dtype for all if not given.
        """
        self.op = op
        self.operands = operands
        self.loop = loop or (self.dtype,) * (1 + len(operands))
        self.recount()


def view_of(root: Node, shape: Shape, strides: Strides, offset: int) -> Node | None:
    """A view of a pending elementwise expression: the expression of views of its leaves.

    Where it lies is said as of a C-contiguous array of the expression's shape. The new nodes are
    not yet known to the leaves as readers. ``None`` if the leaves cannot be seen so.
    """
    itemsize = root.dtype.itemsize
    view = axis_map(root.shape, itemsize, (shape, strides, offset))
    if view is None:  # a reshape that runs over the end of an axis
        view = axis_map((root.size,), itemsize, (shape, strides, offset))
        if view is None or not _is_linear(root):
            return None
        return _viewed(root, view, True)
    return _viewed(root, view, False)


def _is_linear(root: Node) -> bool:
    """Whether all leaves of an expression are contiguous arrays of its shape."""
    return all(
        operand.shape == root.shape
        and (
            operand.layout is None
            or is_contiguous(operand.shape, operand.layout.strides, operand.dtype.itemsize)
        )
        for node in pending_order([root])
        for operand in node.operands
        if type(operand) is Node
    )


def _viewed(root: Node, view: AxisMap, is_linear: bool) -> Node:
    """The expression of the leaves seen through a view; linear ones as of one dimension."""
    copies: dict[Node, Node] = {}
    for node in pending_order([root]):
        parts: list[Node | Scalar] = []
        for operand in node.operands:
            if type(operand) is Node:
                if operand not in copies:
                    copies[operand] = _viewed_leaf(operand, view, is_linear)
                parts.append(copies[operand])
            else:
                parts.append(operand)
        assert node.op is not None
        seen = (node.size,) if is_linear else node.shape
        shape, _, _ = mapped(seen, seen, 0, view)
        copies[node] = Node(
            node.op, tuple(parts), node.loop, shape, prod(shape), node.queue, node.usm_type
        )
    whole = copies[root]
    if whole.shape == view.shape:
        return whole
    # The view repeats elements: they are computed once.
    loop = (root.dtype, root.dtype)
    return Node(CONVERT, (whole,), loop, view.shape, prod(view.shape), root.queue, root.usm_type)


def _offset_positions(leaf: Node, layout: Any) -> Node:
    """Positions that do not begin at 0, as a sum."""
    start = Scalar(layout.offset // layout.dtype.itemsize)
    first = Node.leaf(layout._replace(offset=0), leaf.queue, leaf.usm_type)
    place = (first.shape, first.size, leaf.queue, leaf.usm_type)
    return Node(OPS["add"], (first, start), (leaf.dtype,) * 3, *place)


def _viewed_leaf(leaf: Node, view: AxisMap, is_linear: bool) -> Node:
    layout = leaf.layout
    seen = (layout.shape, layout.strides)
    if is_linear:
        seen = ((leaf.size,), (leaf.dtype.itemsize,))
    shape, strides, offset = mapped(*seen, layout.offset, view)
    layout = layout._replace(shape=shape, strides=strides, offset=offset)
    if layout.block.memory is None and offset:
        return _offset_positions(leaf, layout)
    return Node.leaf(layout, leaf.queue, leaf.usm_type)


def pending_order(roots: Iterable[Node]) -> list[Node]:
    """The pending nodes that ``roots`` need, operands before users, each once."""
    order: list[Node] = []
    done: set[Node] = set()
    stack = [root for root in roots if root.layout is None]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        depth = len(stack)
        for operand in node.operands:
            if type(operand) is Node and operand.layout is None and operand not in done:
                stack.append(operand)
        if len(stack) == depth:
            stack.pop()
            done.add(node)
            order.append(node)
    return order
