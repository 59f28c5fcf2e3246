"""The cost model: the time of an expression by NumPy on the calling thread, and by a kernel.

NumPy starts immediately and traverses memory for each operation; a kernel is submitted, wakes the
device's threads, and traverses memory once on all of them. The terms are constants in seconds
(:class:`Terms`), so the same program makes the same plans on every run, regardless of the load of
the machine. A choice exists only on devices in whose memory the host computes: CPU devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from dparray import config
from dparray._graph.node import Node, Scalar
from dparray._graph.ops import CONVERT, WHERE, Op
from dparray._graph.reductions import Reduce
from dparray._layout import is_contiguous


class Terms(NamedTuple):
    """The terms of the model, in seconds.

    Attributes:
        launch: submitting a kernel and learning of its end, with a known plan.
        wake: waking the device's threads, which are idle during the program's own work.
        node: a NumPy call, including the memory of its result.
        operation: a NumPy addition of one element, with operands in a cache.
        host_byte: a byte that NumPy moves between memory and processor.
        device_byte: a byte that a kernel moves, all cores together.
        compile: compiling a kernel.
        cores: speedup of a kernel over NumPy for values in its cores' registers.
    """

    launch: float = 45e-6
    wake: float = 15e-6
    node: float = 0.6e-6
    operation: float = 0.17e-9
    host_byte: float = 0.08e-9
    device_byte: float = 0.025e-9
    compile: float = 0.06
    cores: float = 2.0


#: Measured on a server processor with two cores.
DEFAULT = Terms()

#: The size of a core's own caches in bytes. Larger data comes from the shared cache, and evicts a
#: program's code: launching a kernel then takes this many times as long.
NEAR_BYTES, COLD = 1 << 20, 2.0

#: Ratio of the time for a deferred operation with plan lookup and launch to the time of a prepared
#: launch.
NOTED = 1.5

#: Ratio for a launch that is awaited immediately: the program did other work since the last one, so
#: the device sleeps and its code is not cached.
AWAITED = 3.0

#: NumPy waits for memory from this many bytes on, and fully from this many times as many.
CACHED_BYTES, ALL_FROM_MEMORY = 8 << 20, 4

#: Slowdown of NumPy for an operation on views with strided rows.
APART = 2.5

#: Cost of writing one number to each element, as a share of an addition.
FILL = 0.5

#: Cost of a NumPy selection between two elements, in additions. NumPy branches, so a mask without
#: runs costs ten times as much as a mask with runs, which costs two additions.
BRANCHES = 4.0

#: The share of an addition's cost that remains in a kernel, whose operands are in registers, and of
#: a byte's cost if the byte comes from a cache.
IN_REGISTERS, FROM_CACHES = 0.15, 0.25

#: Assumed number of further additions in an expression that is computed while it is recorded: each
#: saves a kernel one traversal of memory, which favors the kernel.
EXPECTED_OPERATIONS = 3

#: NumPy processes short contiguous runs one by one: the seconds of each, the smallest run length
#: that hides this, and the speedup that a kernel must have, as it keeps all cores busy.
RUN, LONG_RUN, CLEARLY = 5e-9, 64, 8

#: Seconds of each row for NumPy, which reduces rows one by one unless it reduces all elements.
FOLDED_ROW = 10e-9

#: Limits of the sizes that follow from the terms.
MIN_AT_ONCE, MAX_AT_ONCE, MAX_FOLDED = 1 << 13, 160_000, 1 << 21


def elements_at_once(terms: Terms) -> int:
    """Return the largest size for which the calling thread computes an addition immediately."""
    launch, operations = terms.launch * NOTED, EXPECTED_OPERATIONS * terms.operation
    found = (launch + terms.wake) / operations
    if 3 * 8 * found > NEAR_BYTES * terms.cores:  # two operands and a result
        found = (launch * COLD + terms.wake) / operations
    return min(max(round(found), MIN_AT_ONCE), MAX_AT_ONCE)


def share_of(cost: int) -> float:
    """Return the share of that size for an operation of a given cost.

    Heavy operations are not expected to continue: two in a row cost as much as three additions.
    """
    return min(1.0, EXPECTED_OPERATIONS / (1.5 * cost))


def elements_folded_at_once(terms: Terms) -> int:
    """Return the largest size for which the calling thread sums elements immediately.

    An addition whose result stays in a register costs half as much as one that is stored.
    """
    found = 2 * (terms.launch * AWAITED + terms.wake) / terms.operation
    return min(max(round(found), MIN_AT_ONCE), MAX_FOLDED)


def _host_bytes(nbytes: int, terms: Terms) -> float:
    """Return the seconds that one NumPy operation waits for the bytes it moves."""
    if nbytes <= NEAR_BYTES:
        return 0.0
    beyond = (nbytes - CACHED_BYTES) / ((ALL_FROM_MEMORY - 1) * CACHED_BYTES)
    share = FROM_CACHES + (1 - FROM_CACHES) * min(max(beyond, 0.0), 1.0)
    return nbytes * terms.host_byte * share


def _share_of_a_vector(node: Node) -> float:
    """Return the cost of an element relative to 8 bytes: vectors hold more narrow ones."""
    if any(dtype.char == "e" for dtype in node.signature):  # NumPy converts these one by one.
        return 1.0
    return min(max(dtype.itemsize for dtype in node.signature), 8) / 8


#: Single-instruction operations, which NumPy vectorizes for floats of any width; operations that it
#: has for single precision at memory bandwidth; and single-precision functions that cost two
#: additions with 512-bit vector loops.
_ROUNDING = frozenset({"floor", "ceil", "trunc", "round"})
_QUICK_IN_SINGLE = frozenset({"sqrt", "reciprocal", "divide"})
_BY_WIDE_VECTORS = frozenset({"expm1", "log2", "log10", "sinh", "cosh", "tanh"})


@cache
def _has_wide_vectors() -> bool:
    """Return whether NumPy's loops for such functions use 512-bit vectors here."""
    try:
        from numpy.lib.introspect import opt_func_info
    except ImportError:  # NumPy 1
        return False
    loop = opt_func_info(func_name="^expm1$").get("expm1", {}).get("ff", {})
    return loop.get("current", "").startswith(("AVX512", "X86_V4"))


def _host_cost(node: Node, cost: int) -> float:
    """Return the cost of an element for NumPy, in additions; by default ``cost``."""
    op = node.op
    if type(op) is not Op:
        return cost
    if op.float_cost and node.signature[0].kind == "f":
        return op.float_cost
    if op is CONVERT and type(node.operands[0]) is Scalar:
        return FILL
    if op.name in _ROUNDING and node.dtype.kind == "f":
        return 1
    if node.dtype.char == "f":
        if op.name in _QUICK_IN_SINGLE:
            return 1
        if op.name in _BY_WIDE_VECTORS and _has_wide_vectors():
            return 2
    return cost


def _is_apart(leaf: Node) -> bool:
    """Return whether a leaf's elements are not contiguous."""
    layout = leaf.layout
    return layout is not None and not is_contiguous(
        layout.shape, layout.strides, layout.dtype.itemsize
    )


def _memory_of(leaf: Node) -> Any:
    """Return the same for leaves that are disjoint parts of one memory, as far as layouts show.

    Inner slices of one shape usually belong to a stencil: a kernel reads their elements once.
    """
    layout = leaf.layout
    if layout is None or len(layout.shape) < 2 or layout.strides[-1] != layout.dtype.itemsize:
        return id(leaf)
    return layout.shape, layout.strides, layout.dtype


class Costs(NamedTuple):
    """The costs of one expression, in seconds, for both backends."""

    host: float
    kernel: float

    def __str__(self) -> str:
        each = terms()
        return (
            f"NumPy on the calling thread {self.host * 1e6:.0f} us, a kernel "
            f"{self.kernel * 1e6:.0f} us (launch {each.launch * 1e6:.0f}, wake-up "
            f"{each.wake * 1e6:.0f})"
        )


def costs(nodes: Sequence[Node], outputs: int, terms: Terms) -> Costs:
    """Return the costs of pending nodes that one kernel could compute.

    Args:
        nodes: the operations.
        outputs: the number of stored bytes.
        terms: the terms of the device.
    """
    host = arithmetic = 0.0
    read: dict[Any, int] = {}
    inside = set(map(id, nodes))
    for node in nodes:
        assert node.op is not None
        size, cost = node.size, node.op.cost
        if isinstance(node.op, Reduce):
            walked, cost = node.operands[0], node.op.reduction.cost
            assert isinstance(walked, Node)
            size = walked.size
            if len(node.op.axes) < len(walked.shape):
                host += size // max(walked.shape[-1], 1) * FOLDED_ROW
        moved = node.size * node.dtype.itemsize
        apart, is_walk = 1.0, type(node.op) is Op
        for part in node.operands:
            if isinstance(part, Node):
                nbytes = part.size * part.dtype.itemsize
                moved += nbytes
                is_walk &= part.shape == node.shape or part.size == 1
                if id(part) not in inside:
                    if _is_apart(part):
                        read[_memory_of(part)] = nbytes
                        apart, is_walk = APART, False
                    else:
                        read[id(part)] = nbytes
        operation = terms.operation
        if is_walk:
            operation *= _share_of_a_vector(node)
        elif type(node.op) is Op and node.shape:
            host += size // max(node.shape[-1], 1) * RUN
        branches = BRANCHES if node.op is WHERE else 1.0
        per_element = _host_cost(node, cost) * operation * branches
        host += terms.node + size * per_element * apart
        host += _host_bytes(moved, terms)
        arithmetic += size * (cost - 1 + IN_REGISTERS) * operation / terms.cores
    traffic = sum(read.values()) + outputs
    launch, byte = terms.launch, terms.device_byte * FROM_CACHES
    if traffic > NEAR_BYTES * terms.cores:
        launch, byte = launch * COLD, terms.device_byte
    return Costs(host, launch + terms.wake + max(traffic * byte, arithmetic))


def gain_of_copy(size: int, run: int, terms: Terms) -> float:
    """Return the seconds that a kernel saves over NumPy when copying elements in runs of this
    length.

    0 if that is unclear.
    """
    at_once = terms.launch + terms.wake
    by_runs = size // run * RUN
    return by_runs - at_once if run < LONG_RUN and by_runs > CLEARLY * at_once else 0.0


def terms() -> Terms:
    """Return the terms: the constants, with the terms pinned by ``dp.config.cost_model``."""
    return DEFAULT._replace(**config.cost_model) if config.cost_model else DEFAULT
