"""A few elements of a value, read without computing or copying the rest."""

from __future__ import annotations

import numpy as np

from dparray import _layout
from dparray._evaluate import evaluate
from dparray._graph.node import Node, layout_of
from dparray._graph.views import view_of
from dparray._layout import Layout
from dparray.memory import copies

Slices = tuple[slice, ...]


def read(node: Node, index: Slices) -> np.ndarray:
    """Return the elements of a value at ``index`` on the host; waits for the work before them.

    A pending element-wise value stays pending: its expression is computed at these elements only,
    from those of its operands. Parts that are not element-wise, such as a sum, are computed.

    Args:
        node: any value.
        index: a slice for each axis.
    """
    evaluate.compute_inner(node)
    layout = node.layout
    if layout is not None:
        block, offset, shape, strides, dtype = layout
        shape, strides, offset = _layout.basic_index(shape, strides, offset, index)
        return copies.copy_to_host(Layout(block, offset, shape, strides, dtype))
    sample = view_of(node, *_layout.basic_index(node.shape, node.strides, 0, index))
    assert sample is not None  # slices are views
    evaluate.evaluate(sample)
    return copies.copy_to_host(layout_of(sample))
