"""Expression nodes: the values of pending arrays.

A node is *pending* while it has operands and no layout, and *computed* once it has a layout. It
then drops its operands, so that their arrays can be freed. Shape, dtype and placement are known
from the start. A leaf is a node that was computed when it was created.

Nodes treat queues as opaque values, and import no SYCL package.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from dparray import _layout
from dparray._graph.ops import Op
from dparray._graph.reductions import Reduce
from dparray._layout import Layout


class Scalar(NamedTuple):
    """A Python scalar among the operands; it becomes a kernel argument, never a constant."""

    value: Any


class Node:
    """One value of an expression.

    Attributes:
        op: the operation, or ``None`` for a leaf.
        operands: nodes and scalars; empty once computed.
        signature: the dtype that each operand is converted to, then the result's dtype.
        shape, size, dtype, queue, usm_type: properties of the value.
        layout: the location of the value, or ``None`` while it is pending.
        axes: the order of its axes in memory (:func:`dparray._layout.order_of_axes`), known before
            it is computed; ``None`` means C order.
        users: while pending, weak references to the nodes that have it as an operand, which become
            readers of its memory.
        cost: the cost of computing it from the leaves, in additions per element.
        leaves: an upper bound for its number of leaves.
        array: a weak reference to the array with this value, or ``None``; while the array is alive,
            its value may be needed again.
    """

    __slots__ = (
        "__weakref__",
        "array",
        "axes",
        "cost",
        "dtype",
        "layout",
        "leaves",
        "op",
        "operands",
        "queue",
        "shape",
        "signature",
        "size",
        "users",
        "usm_type",
    )

    op: Op | Reduce | None
    operands: tuple[Node | Scalar, ...]
    signature: tuple[np.dtype[Any], ...]
    layout: Layout | None
    cost: int
    leaves: int

    def __init__(
        self,
        op: Op | Reduce,
        operands: tuple[Node | Scalar, ...],
        signature: tuple[np.dtype[Any], ...],
        shape: tuple[int, ...],
        size: int,
        queue: Any,
        usm_type: str,
        axes: tuple[int, ...] | None = None,
    ) -> None:
        self.op = op
        self.axes = axes
        self.operands = operands
        self.signature = signature
        self.dtype = signature[-1]
        self.shape = shape
        self.size = size
        self.queue = queue
        self.usm_type = usm_type
        self.layout = None
        self.users: list[Any] | None = None
        self.array: Any = None
        cost = op.cost
        leaves = 0
        for operand in operands:
            if type(operand) is Node:
                cost += operand.cost
                leaves += operand.leaves
        self.cost = cost
        self.leaves = leaves

    @classmethod
    def leaf(cls, layout: Layout, queue: Any, usm_type: str) -> Node:
        """Return a node for values stored at ``layout``."""
        self = object.__new__(cls)
        self.op = None
        self.operands = ()
        self.signature = ()
        self.dtype = layout.dtype
        self.shape = layout.shape
        self.size = prod(layout.shape)
        self.queue = queue
        self.usm_type = usm_type
        self.layout = layout
        shape = layout.shape
        self.axes = None if len(shape) < 2 else _layout.order_of_axes(shape, layout.strides)
        self.users = None
        self.array = None
        self.cost = 0
        self.leaves = 1
        return self

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of the value in memory, now or once it is computed."""
        if self.layout is not None:
            return self.layout.strides
        return _layout.strides_in_order(self.shape, self.dtype.itemsize, self.axes)

    def recount(self) -> None:
        """Compute cost and leaves from the distinct parts of a pending expression.

        Before this call, a part that is used twice is counted twice.
        """
        order = pending_order([self])
        self.cost = sum(node.op.cost for node in order if node.op is not None)
        self.leaves = len(
            {
                id(operand)
                for node in order
                for operand in node.operands
                if type(operand) is Node and operand.layout is not None
            }
        )

    def complete(self, layout: Layout) -> None:
        """Make the node a leaf at ``layout``, which it owns, and drop its operands."""
        self.layout = layout
        layout.block.readers = self.users
        self.users = None
        self.op = None
        self.operands = ()
        self.cost = 0
        self.leaves = 1

    def become(
        self, op: Op | Reduce, *operands: Node | Scalar, signature: tuple[np.dtype[Any], ...] = ()
    ) -> None:
        """Replace the operation of a pending node by another one with the same result.

        ``signature`` is as the attribute; by default the node's own dtype for all operands.
        """
        self.op = op
        self.operands = operands
        self.signature = signature or (self.dtype,) * (1 + len(operands))
        self.recount()


def layout_of(node: Node | Scalar) -> Layout:
    """Return the layout of the values of a computed node."""
    assert type(node) is Node
    layout = node.layout
    assert layout is not None
    return layout


def memory_read_by(order: Iterable[Node]) -> list[Layout]:
    """Return the layouts of computed operands of some nodes."""
    return [
        operand.layout
        for node in order
        for operand in node.operands
        if type(operand) is Node and operand.layout is not None
    ]


def pending_order(roots: Iterable[Node]) -> list[Node]:
    """Return the pending nodes that ``roots`` depend on, operands before users, each once."""
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
