"""The reasons why inner values get memory and work has no kernel, for explanations and reports."""

from __future__ import annotations

from dparray import config
from dparray._codegen.elementwise import MAX_ARRAYS
from dparray._codegen.reduction import is_generated
from dparray._evaluate import limits
from dparray._evaluate.plan import KernelLaunch
from dparray._graph.assembly import is_assembled
from dparray._graph.contractions import Contraction
from dparray._graph.node import Node, pending_order
from dparray._graph.reductions import Reduce


def why_stored(node: Node, root: Node) -> str:
    """Return the reason why an inner node is stored in memory."""
    for op in (root.op, node.op):
        if type(op) is Contraction and op.implementation is not None:
            return f"an implementation of {op.name} computes whole arrays"
    if type(root.op) is Contraction:
        return "a contraction reads any element of it"
    if type(node.op) is Contraction:
        return "a contraction is read by a reduction, or keeps several results of a work-item"
    if any(is_assembled(user) and node in user.operands for user in pending_order([root])):
        return "its elements are read at other indices than their own"
    if is_assembled(node):
        return "a kernel with a reduction reads no rolled or joined operands"
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
    """Return the reason why no kernel is generated for an operation."""
    assert node.op is not None
    dtypes = ", ".join(
        dict.fromkeys(
            part.dtype.name if isinstance(part, Node) else dtype.name
            for part, dtype in zip(node.operands, node.signature, strict=False)
        )
    )
    return f"no kernel is generated for {node.op.name} of {dtypes}: the library has one"


def why_not_compiled(launch: KernelLaunch, elements: int, is_on_disk: bool) -> str:
    """Return the reason why another backend computes, while the generated kernel is not in memory.

    Args:
        launch: the launch of the kernel.
        elements: the number of elements computed without it, including those of this call.
        is_on_disk: whether the kernel can be loaded.
    """
    if not config.fused_tier:
        return "dp.config.fused_tier is off, so no kernel is compiled"
    if not limits.chooses():
        return "another backend is forced"
    entry = launch.entry
    if launch.gain is not None and limits.compiles_in_background():
        if launch.gain <= 0:
            return f"NumPy is faster than a fused kernel, by about {_time(-launch.gain)} per call"
        saves = f"The kernel would save about {_time(launch.gain)} per call; it is"
        if is_on_disk:
            return (
                "the fused kernel is on disk, so NumPy computes this call while it is loaded. "
                f"{saves} used from the next call on"
            )
        after = "" if entry.is_asked_for == "compiler" else " once it is clear that it pays"
        return (
            "the fused kernel is not compiled yet, so NumPy computes this call. "
            f"{saves} compiled in the background{after}"
        )
    if entry.is_asked_for == "compiler":
        return "the fused kernel is not ready yet: it is compiled in the background"
    if entry.calls:
        return f"the kernel is compiled in the background from call {limits.COMPILE_CALLS} on"
    return (
        f"{elements} elements of this structure so far are not worth compiling: that takes "
        f"{limits.COMPILE_ELEMENTS} in one call or {limits.COMPILE_TOTAL_ELEMENTS} in all"
    )


def why_on_host(because: str) -> str:
    """Return why NumPy computes an operation that could have a kernel."""
    return f"NumPy is faster here, as for up to {limits.host_elements:,} additions: {because}"


def why_immediate(size: int) -> str:
    """Return why NumPy computes operations on arrays of a size when they are called."""
    count = f"{size:,} element{'s' * (size != 1)} (limit {limits.host_elements:,})"
    return f"immediately by NumPy: for {count} launching a kernel would take longer"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"
