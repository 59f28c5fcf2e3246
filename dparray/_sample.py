"""A few elements of a value, read without computing or copying the rest."""

from __future__ import annotations

from math import prod

import numpy as np

from dparray import _evaluate, _layout, _usm
from dparray._expr import Node, Scalar, pending_order
from dparray._usm import Layout

Slices = tuple[slice, ...]


def read(node: Node, index: Slices) -> np.ndarray:
    """The elements of a value at ``index`` on the host; waits for the work before them.

    A pending value stays pending: its expression is computed at these elements only, from its
    operands indexed likewise.

    Args:
        node: any value.
        index: a slice for each axis.
    """
    copy = _indexed(node, index)
    _evaluate.evaluate(copy)
    return _usm.copy_to_host(copy.layout)


def _indexed(root: Node, index: Slices) -> Node:
    """A copy of an expression, as if every array in it had been indexed."""
    if root.layout is not None:
        return _indexed_leaf(root, index)
    copies: dict[Node, Node] = {}
    for node in pending_order([root]):
        parts: list[Node | Scalar] = []
        for operand in node.operands:
            if type(operand) is not Node:
                parts.append(operand)
                continue
            if operand not in copies:
                copies[operand] = _indexed_leaf(operand, _aligned(operand, root, index))
            parts.append(copies[operand])
        assert node.op is not None
        shape = tuple(
            len(range(*entry.indices(extent)))
            for extent, entry in zip(node.shape, _aligned(node, root, index), strict=True)
        )
        copies[node] = Node(
            node.op, tuple(parts), node.loop, shape, prod(shape), node.queue, node.usm_type
        )
    return copies[root]


def _indexed_leaf(leaf: Node, index: Slices) -> Node:
    block, offset, shape, strides, dtype = leaf.layout
    shape, strides, offset = _layout.basic_index(shape, strides, offset, index)
    return Node.leaf(Layout(block, offset, shape, strides, dtype), leaf.queue, leaf.usm_type)


def _aligned(node: Node, root: Node, index: Slices) -> Slices:
    """The index of ``root`` for a node that is broadcast to it.

    The last axes belong together, and an axis that is repeated along the root's stays whole.
    """
    skipped = len(root.shape) - len(node.shape)
    return tuple(
        slice(None) if extent != whole else entry
        for extent, whole, entry in zip(
            node.shape, root.shape[skipped:], index[skipped:], strict=True
        )
    )
