"""Why inner values get memory and work has no kernel, in words for explanations and reports."""

from __future__ import annotations

from dparray import config
from dparray._codegen.elementwise import MAX_ARRAYS
from dparray._codegen.reduction import is_generated
from dparray._evaluate import cost_model, limits
from dparray._evaluate.plan import KernelLaunch
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
    return f"a kernel takes at most {MAX_ARRAYS} arrays"


def why_not_generated(node: Node) -> str:
    """Why no kernel is generated for an operation."""
    assert node.op is not None
    dtypes = ", ".join(
        dict.fromkeys(
            part.dtype.name if isinstance(part, Node) else dtype.name
            for part, dtype in zip(node.operands, node.signature, strict=False)
        )
    )
    return f"no kernel is generated for {node.op.name} of {dtypes}: the library has one"


def why_not_compiled(launch: KernelLaunch, elements: int) -> str:
    """Why something else computes instead of a generated kernel that is not there.

    Args:
        launch: of the kernel.
        elements: how many were computed without it, with those of this call.
    """
    if not config.fused_tier:
        return "dp.config.fused_tier is off, so that no kernel is compiled"
    if not limits.chooses():
        return "another executor is forced"
    entry = launch.entry
    if launch.gain is not None and limits.compiles_in_background():
        kernel = f"its kernel, faster by {launch.gain * 1e6:.0f} us in the cost model, is not there"
        if launch.gain <= 0:
            return (
                "its kernel is not there, and would be slower by "
                f"{-launch.gain * 1e6:.0f} us in the cost model"
            )
        if entry.is_asked_for == "compiler":
            return f"{kernel} yet: it is compiled in the background"
        return (
            f"{kernel}; {entry.lost * 1e3:.1f} ms are lost so far, and it is compiled in the "
            f"background from {cost_model.terms().compile / 8 * 1e3:.0f} ms on"
        )
    if entry.is_asked_for == "compiler":
        return "its kernel is not there yet: it is compiled in the background"
    if entry.calls:
        return f"its kernel is compiled in the background from call {limits.COMPILE_CALLS} on"
    return (
        f"{elements} elements of this structure so far are not worth compiling: that takes "
        f"{limits.COMPILE_ELEMENTS} in one call or {limits.COMPILE_TOTAL_ELEMENTS} in all"
    )


def why_on_host(because: str) -> str:
    """Why the calling thread computes what there is a kernel for, or may be."""
    return (
        f"the cost model prefers it, as it does for up to {limits.host_elements} additions: "
        f"{because}"
    )
