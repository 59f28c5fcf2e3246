"""The choice between NumPy on the calling thread and a kernel: two sizes and the launch time.

NumPy starts immediately and traverses memory for each operation; a kernel is submitted, wakes the
device's threads, and traverses memory once on all of them. An expression is measured in additions
of two float64 elements, less those that a kernel on two cores needs for its one traversal: below a
size NumPy is faster, above it the kernel. The terms are constants (:class:`Terms`), so the same
program makes the same plans on every run. A choice exists only on devices in whose memory the host
computes: CPU devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dparray import config
from dparray._graph.assembly import Assembly
from dparray._graph.node import Node
from dparray._graph.ops import CONVERT, Op
from dparray._graph.reductions import Reduce


class Terms(NamedTuple):
    """The terms of the choice, in seconds; those of a server processor with two cores.

    Attributes:
        launch: submitting a kernel, waking the device's threads and learning of the end.
        addition: an addition of NumPy, with operands from a shared cache.
        compile: compiling a kernel.
    """

    launch: float = 65e-6
    addition: float = 0.375e-9
    compile: float = 0.06


#: NumPy processes short contiguous rows one by one: the additions that each costs, the smallest row
#: length that hides this, and the ratio to a launch that a copy must reach, as it keeps all cores
#: busy.
ROW, LONG_ROW, CLEARLY = 13, 64, 8

#: The size from which operands come from memory instead of a cache, and the additions that this
#: costs NumPy for each element of each operation, and a kernel for each element.
CACHED_ELEMENTS, FROM_MEMORY, KERNEL_FROM_MEMORY = 1 << 20, 4, 1

#: The cost of an element that is only copied, in additions, and of each further launch of a kernel,
#: in seconds: it is submitted while an earlier one runs.
COPYING, FURTHER_LAUNCH = 0.4, 15e-6

#: Limits of the sizes that are computed immediately.
MIN_AT_ONCE, MAX_AT_ONCE, MAX_FOLDED = 1 << 13, 160_000, 1 << 21


def break_even() -> float:
    """Return the saved additions that a launch costs."""
    return terms().launch / terms().addition


def elements_at_once(cost: int = 1) -> int:
    """Return the largest size for which the calling thread computes an operation immediately.

    Heavy operations cost more than the one traversal of memory that a longer expression saves.
    """
    most = min(max(break_even(), MIN_AT_ONCE), MAX_AT_ONCE)
    return max(MIN_AT_ONCE, round(most * min(1.0, 2 / cost)))


def elements_folded_at_once() -> int:
    """Return the largest size for which the calling thread sums elements immediately.

    The result stays in a register, and the code of a launch is no longer cached when it comes.
    """
    return round(min(max(4 * break_even(), MIN_AT_ONCE), MAX_FOLDED))


def saved_additions(nodes: Sequence[Node]) -> float:
    """Return what a kernel saves of pending nodes, in NumPy's additions of float64 elements."""
    total, traversal = _additions(nodes)
    return total - traversal


def seconds_on_host(nodes: Sequence[Node]) -> float:
    """Return the seconds of NumPy for pending nodes."""
    return _additions(nodes)[0] * terms().addition


def seconds_of_kernel(nodes: Sequence[Node], launches: int = 1) -> float:
    """Return the seconds from the submission of a kernel for pending nodes to its end."""
    now = terms()
    return now.launch + _additions(nodes)[1] * now.addition + (launches - 1) * FURTHER_LAUNCH


def _additions(nodes: Sequence[Node]) -> tuple[float, float]:
    """Return the additions of NumPy for pending nodes, and those of a kernel's traversal."""
    total = traversal = 0.0
    cost: float
    for node in nodes:
        least = 0.5
        op, walked = node.op, node
        assert op is not None
        if isinstance(op, Reduce):
            walked, cost = node.operands[0], op.reduction.cost  # type: ignore[assignment]
            is_by_row = len(op.axes) < len(walked.shape)
        else:
            cost = COPYING if _is_copy(node) else op.cost
            if type(op) is Op and op.float_cost and node.signature[0].kind == "f":
                cost = op.float_cost
            elif type(op) is Op and op.number_cost and _divides_by_a_number(node):
                cost = least = op.number_cost
            is_by_row = any(
                isinstance(part, Node) and part.shape != node.shape and part.size > 1
                for part in node.operands
            )
        size = walked.size * _share_of_a_vector(node)
        is_cached = size <= CACHED_ELEMENTS
        total += size * (cost if is_cached else cost + FROM_MEMORY)
        traversal = max(traversal, size * (least if is_cached else least + KERNEL_FROM_MEMORY))
        if is_by_row and walked.shape:
            total += walked.size // max(walked.shape[-1], 1) * ROW
    return total, traversal


def _divides_by_a_number(node: Node) -> bool:
    """Return whether the operands are integers, the second one a number."""
    return node.signature[0].kind in "iu" and not isinstance(node.operands[1], Node)


def _is_copy(node: Node) -> bool:
    """Return whether NumPy computes a node by copying long rows."""
    part = node.operands[0]
    if node.op is not CONVERT and type(node.op) is not Assembly:
        return False
    return isinstance(part, Node) and part.dtype == node.dtype and not _has_gaps(part)


def _share_of_a_vector(node: Node) -> float:
    """Return the cost of an element relative to 8 bytes: vectors hold more narrow ones."""
    if any(dtype.char == "e" for dtype in node.signature):  # NumPy converts these one by one.
        return 1.0
    if any(isinstance(part, Node) and _has_gaps(part) for part in node.operands):
        return 1.0
    return min(max(dtype.itemsize for dtype in node.signature), 8) / 8


def _has_gaps(part: Node) -> bool:
    """Return whether NumPy reads an operand's elements one by one, since others lie between."""
    return bool(part.strides) and abs(part.strides[-1]) > part.dtype.itemsize


def gain(count: float, launches: int = 1) -> float:
    """Return the seconds that a kernel saves for `count` additions; negative if NumPy is faster."""
    return (count - break_even()) * terms().addition - (launches - 1) * FURTHER_LAUNCH


def gain_of_copy(size: int, run: int) -> float:
    """Return the seconds that a kernel saves when copying elements in runs of this length.

    0 if that is unclear.
    """
    by_runs = size // run * ROW
    return gain(by_runs) if run < LONG_ROW and by_runs > CLEARLY * break_even() else 0.0


def described(count: float) -> str:
    """Return the reason of a choice, for reports."""
    return f"a kernel saves {count:,.0f} additions and pays from {break_even():,.0f} on"


def terms() -> Terms:
    """Return the terms: the constants, with the terms pinned by ``dp.config.cost_model``."""
    return Terms()._replace(**config.cost_model) if config.cost_model else _TERMS


_TERMS = Terms()
