"""A plan: the steps that compute an expression, as a value.

A plan depends on the key of an expression (:mod:`dparray._codegen.canonical`) and on the traits of
the device, but on no memory. Arrays are *slots*, which are numbered, the leaves first; a step fills
slots from other slots. Scalars have numbers of their own. One plan therefore computes all
expressions with its key: :func:`dparray._evaluate.execute.execute` fills in the arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dparray._evaluate.host_operations import HostOperations
from dparray._graph.node import Node, Scalar
from dparray._layout import Layout


class NewArray(NamedTuple):
    """A slot that a step fills, and the array to allocate for it."""

    slot: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    usm_type: str
    nbytes: int
    strides: tuple[int, ...]


@dataclass(slots=True, eq=False)
class KernelEntry:
    """The kernel of one structure in this process; shared by all plans that launch it.

    Attributes:
        kernel: the compiled kernel, or ``None`` while there is none.
        source: its text.
        origin: ``"compiled"`` or ``"disk"``; empty while there is no kernel.
        calls: the number of calls without it so far, on devices where calls are counted.
        elements: the number of elements computed without it so far; small calls count as more.
        lost: the seconds by which computing without it exceeded the kernel's expected time.
        target: the target that it is compiled for.
        is_asked_for: the last request to the background thread: ``"disk"`` to load it, or
            ``"compiler"`` to compile it.
    """

    target: Any
    kernel: Any = None
    source: str = ""
    origin: str = ""
    calls: int = 0
    elements: int = 0
    lost: float = 0.0
    is_asked_for: str = ""


@dataclass(slots=True, eq=False)
class KernelLaunch:
    """The launch of one generated kernel.

    Attributes:
        structure: determines the kernel's source.
        entry: the kernel, once there is one.
        functions: the device functions that the source calls, by their names in it.
        arguments: the slots of all arrays: operands, results, accumulators.
        outputs: the slots of the results.
        accumulators: the arrays in which it leaves accumulators for another kernel.
        nodes: the numbers of the nodes that it computes.
        scalars: number and dtype of each scalar.
        numbers: the integer arguments after the scalars.
        local_memory: dtype and count of each array in local memory.
        global_range, local_range: the range.
        size: the number of elements that it traverses.
        must_compile: whether no other backend can compute it.
        fp_contract: whether a product and a sum may be rounded together, as one operation.
        merges_chunks: whether the last group merges the accumulators of the others.
        gain: the seconds by which the kernel is faster than NumPy, by the cost model; ``None`` if
            NumPy cannot compute it.
        kernel_seconds: the time from submission to the end, by the cost model.
        host_seconds: the shortest time that NumPy took in its place so far.
        host_calls: the number of times that NumPy computed in its place.
        packed: the packed local memory and numbers, which the first launch stores here.
        offsets: the offset of each array's first element in bytes; empty if all are 0.
        count_read: the number of operands, which come first among the arguments.
    """

    structure: Any
    entry: KernelEntry
    functions: Mapping[str, Any]
    arguments: tuple[int, ...]
    outputs: tuple[int, ...]
    accumulators: tuple[NewArray, ...]
    nodes: tuple[int, ...]
    scalars: tuple[tuple[int, np.dtype[Any]], ...]
    numbers: tuple[Any, ...]
    local_memory: tuple[tuple[np.dtype[Any], int], ...]
    global_range: tuple[int, ...]
    local_range: tuple[int, ...] | None
    size: int
    must_compile: bool
    fp_contract: bool
    merges_chunks: bool
    gain: float | None = None
    kernel_seconds: float = 0.0
    host_seconds: float = float("inf")
    host_calls: int = 0
    packed: Any = None
    offsets: tuple[int, ...] = ()
    count_read: int = field(init=False)

    def __post_init__(self) -> None:
        self.count_read = len(self.arguments) - len(self.outputs) - len(self.accumulators)

    @property
    def reads(self) -> tuple[int, ...]:
        """The slots of the operands."""
        return self.arguments[: self.count_read]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a plan.

    Attributes:
        new: the slots for which memory is allocated.
        outputs: the slots of all values that it stores.
        stores: slot and node number of each node that it stores.
        nodes: the numbers of the nodes that it computes.
        reads: the slots that it reads.
        stored_because: the reason why the result is stored, if it is an inner value.
        siblings: the numbers of the nodes that are computed without being requested.
    """

    new: tuple[NewArray, ...]
    outputs: tuple[int, ...]
    stores: tuple[tuple[int, int], ...]
    nodes: tuple[int, ...]
    reads: tuple[int, ...]
    stored_because: str = ""
    siblings: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedStep(Step):
    """Generated kernels: one, or several that each merge the accumulators of the one before.

    Attributes:
        launches: the launches of the kernels.
        is_by_cells: whether each kernel computes one cell of the result, instead.
        otherwise: the steps that compute the same values while there is no kernel.
    """

    launches: tuple[KernelLaunch, ...]
    otherwise: tuple[Step, ...] = ()
    is_by_cells: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationsStep(Step):
    """A step that computes its operations one after the other.

    Attributes:
        order: the operations, operands before users, with slots for arrays and scalars.
        values: the stored nodes and scalars, and their layouts, with slots for blocks.
    """

    order: tuple[Node, ...] = field(repr=False)
    values: tuple[tuple[Node | Scalar, Layout], ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStep(OperationsStep):
    """A step that NumPy computes on the calling thread, in the arrays' own memory.

    Attributes:
        instead: the kernel that computes the same while work on the memory is running.
        because: the reason, in the cost model's terms.
        operations: the prepared NumPy calls.
    """

    operations: HostOperations = field(repr=False)
    because: str = ""
    instead: FusedStep | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryStep(OperationsStep):
    """A step that the library of the device computes.

    Attributes:
        because: the reason why no kernel is generated; empty if one can be.
    """

    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractionStep(Step):
    """A step with one contraction, which a library computes.

    Attributes:
        op: the operation.
        arrays, output: the slots that it reads and writes.
    """

    op: Any
    arrays: tuple[int, ...]
    output: int


class Plan(NamedTuple):
    """The steps that compute an expression.

    Attributes:
        steps: the steps, in order.
        leaves: the number of leaves; the slot after them is the target, if there is one.
        slots: the number of slots.
        results: the slots of the requested values.
    """

    steps: tuple[Step, ...]
    leaves: int
    slots: int
    results: tuple[int, ...]

    @property
    def launches(self) -> Iterator[KernelLaunch]:
        """The launches of all generated kernels."""
        for step in self.steps:
            if isinstance(step, FusedStep):
                yield from step.launches

    def name_of(self, slot: int) -> str:
        """Return the role of a slot: ``"leaf 0"``, ``"result 0"`` or ``"scratch 5"``."""
        if slot < self.leaves:
            return f"leaf {slot}"
        if slot in self.results:
            return f"result {self.results.index(slot)}"
        return f"scratch {slot}"

    def __str__(self) -> str:
        lines = []
        for step in self.steps:
            kind = type(step).__name__.removesuffix("Step").lower()
            reads = ", ".join(map(self.name_of, step.reads))
            outputs = ", ".join(map(self.name_of, step.outputs))
            launches = len(step.launches) if isinstance(step, FusedStep) else 0
            count = f" in {launches} kernels" if launches > 1 else ""
            lines.append(f"{kind}{count}: {reads or 'nothing'} -> {outputs}")
        return "\n".join(lines) or "nothing to compute"
