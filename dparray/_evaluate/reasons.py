"""Why inner values get memory and operations have no kernel, in words for ``dp.explain``."""

from __future__ import annotations

from dparray._codegen.elementwise import MOST_ARRAYS
from dparray._codegen.reduction import is_generated
from dparray._graph.contractions import Contraction
from dparray._graph.node import Node
from dparray._graph.reductions import Reduce


def why_stored(node: Node, root: Node) -> str:
    """Why an inner node gets memory."""
    if type(root.op) is Contraction:
        return "a contraction reads any element of it"
    if type(node.op) is Contraction:
        return "a contraction is read by a reduction, or keeps several results of a work-item"
    if not is_generated(node):
        return why_not_generated(node)
    if type(node.op) is Reduce:
        return "what needs it walks other axes, or memory that no cache holds until then"
    if node.size < root.size:
        return (
            f"it has {node.size} elements and is broadcast to {root.size}: storing it costs less "
            "than computing it for each of them"
        )
    if not is_generated(root):
        assert root.op is not None
        return f"it is needed by {root.op.name}, which is not generated"
    return f"a kernel takes at most {MOST_ARRAYS} arrays"


def why_not_generated(node: Node) -> str:
    """Why no kernel is generated for an operation."""
    assert node.op is not None
    dtypes = ", ".join(
        dict.fromkeys(
            part.dtype.name if isinstance(part, Node) else loop.name
            for part, loop in zip(node.operands, node.loop, strict=False)
        )
    )
    return f"no kernel is generated for {node.op.name} of {dtypes}: the library has one"
