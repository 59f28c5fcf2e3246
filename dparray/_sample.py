"""A few elements of a value, read without computing or copying the rest."""

from __future__ import annotations

import numpy as np

from dparray import _evaluate, _layout, _usm
from dparray._expr import Node, viewed
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
    _evaluate.compute_inner(node)
    if node.layout is not None:
        block, offset, shape, strides, dtype = node.layout
        shape, strides, offset = _layout.basic_index(shape, strides, offset, index)
        return _usm.copy_to_host(Layout(block, offset, shape, strides, dtype))
    strides = _layout.contiguous_strides(node.shape, node.dtype.itemsize)
    selected = _layout.basic_index(node.shape, strides, 0, index)
    view = _layout.axis_map(node.shape, node.dtype.itemsize, selected)
    assert view is not None  # slices walk the axes straight
    part = viewed(node, view)
    _evaluate.evaluate(part)
    return _usm.copy_to_host(part.layout)
