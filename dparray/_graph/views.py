"""Views of pending expressions."""

from __future__ import annotations

from math import prod

from dparray._graph.node import Node, Scalar, layout_of, pending_order
from dparray._graph.ops import CONVERT, OPS
from dparray._layout import (
    AxisMap,
    Layout,
    Shape,
    Strides,
    axis_map,
    is_contiguous,
    mapped,
    order_of_axes,
)


def view_of(root: Node, shape: Shape, strides: Strides, offset: int) -> Node | None:
    """Return a view of a pending element-wise expression: the expression of views of its leaves.

    The location of the view is computed as for an array with the strides of the expression. The new
    nodes are not yet registered with the leaves as readers. Returns ``None`` if the leaves have no
    such views.
    """
    itemsize, axes = root.dtype.itemsize, root.axes
    ordered = root.shape if axes is None else tuple([root.shape[axis] for axis in axes])
    is_linear = False
    view = axis_map(ordered, itemsize, (shape, strides, offset))
    if view is None:  # a reshape that crosses the end of an axis
        view = axis_map((root.size,), itemsize, (shape, strides, offset))
        if view is None or axes is not None or not _is_linear(root):
            return None
        is_linear = True
    elif axes is not None:
        view = _with_axes(view, axes)
    result = _viewed(root, view, is_linear)
    result.axes = order_of_axes(shape, strides) if len(shape) > 1 else None
    return result


def _with_axes(view: AxisMap, axes: tuple[int, ...]) -> AxisMap:
    """Return a view of an array whose axes are not in C order."""
    order = [axes.index(axis) for axis in range(len(axes))]
    steps = tuple(tuple([along[axis] for axis in order]) for along in view.steps)
    return AxisMap(view.shape, tuple([view.starts[axis] for axis in order]), steps)


def _is_linear(root: Node) -> bool:
    """Return whether all leaves of an expression are contiguous arrays of its shape."""
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
    """Return the expression of the leaves under a view; linear ones as one-dimensional."""
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
            node.op, tuple(parts), node.signature, shape, prod(shape), node.queue, node.usm_type
        )
    whole = copies[root]
    if whole.shape == view.shape:
        return whole
    # The view repeats elements, which are computed once.
    signature = (root.dtype, root.dtype)
    return Node(
        CONVERT, (whole,), signature, view.shape, prod(view.shape), root.queue, root.usm_type
    )


def _offset_positions(leaf: Node, layout: Layout) -> Node:
    """Return the node of positions that start above 0: positions from 0 on, plus the start."""
    start = Scalar(layout.offset // layout.dtype.itemsize)
    first = Node.leaf(layout._replace(offset=0), leaf.queue, leaf.usm_type)
    attributes = (first.shape, first.size, leaf.queue, leaf.usm_type)
    return Node(OPS["add"], (first, start), (leaf.dtype,) * 3, *attributes)


def _viewed_leaf(leaf: Node, view: AxisMap, is_linear: bool) -> Node:
    layout = layout_of(leaf)
    seen = (layout.shape, layout.strides)
    if is_linear:
        seen = ((leaf.size,), (leaf.dtype.itemsize,))
    shape, strides, offset = mapped(*seen, layout.offset, view)
    layout = layout._replace(shape=shape, strides=strides, offset=offset)
    if layout.block.memory is None and offset:
        return _offset_positions(leaf, layout)
    return Node.leaf(layout, leaf.queue, leaf.usm_type)
