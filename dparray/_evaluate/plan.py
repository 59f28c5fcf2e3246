"""A plan: the steps that compute an expression, as a value.

A plan follows from the key of an expression (:mod:`dparray._codegen.canonical`) and from what of
the device decides. It names no memory: arrays are *slots*, numbered from the leaves on; a step
fills slots from others, and scalars are numbered by themselves. So one plan computes all
expressions of its key: :func:`dparray._evaluate.execute.execute` fills in the arrays.
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
    """A slot that a step fills, and what is allocated for it."""

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
        calls: how many computed without it so far, on devices where calls are counted.
        elements: how many elements were computed without it so far, small calls counted as more.
        lost: the seconds that computing without it took longer than the cost model expects of it.
        target: the target that it is compiled for.
        is_asked_for: ``"disk"`` once the background has been asked to look there, ``"compiler"``
            once it has been asked to compile it.
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
        structure: what decides the kernel's text.
        entry: the kernel, once there is one.
        functions: what the text calls by names of its own.
        arguments: the slots of the arrays that it reads, writes and leaves accumulators in.
        outputs: those of them that it writes results to.
        accumulators: those of them that it leaves accumulators in.
        nodes: the numbers of the nodes that it computes.
        scalars: number and dtype of each scalar.
        numbers: the arguments after them.
        local_memory: dtype and count of each array in local memory.
        global_range, local_range: the range.
        size: how many elements are walked.
        must_compile: nothing else can compute it.
        fp_contract: whether products and sums may be rounded once.
        merges_chunks: groups are counted, so that the last one merges what the others leave.
        gain: the seconds that the kernel is faster than the calling thread with NumPy, by the cost
            model; ``None`` where that cannot compute it.
        kernel_seconds: how long the kernel takes from its submission on, by the cost model.
        host_seconds: the shortest time that the calling thread took with NumPy so far.
        host_calls: how many such calls there were.
        packed: the local memory and the numbers as the runtime takes them, since the first launch.
        takes_pointers: its arrays are pointers, since the text knows where the elements lie. One
            that calls functions is Numba's, whose arrays have extents.
        offsets: the bytes from the first element of each argument on; empty where all are 0.
        count_read: how many of the arguments, the first, it only reads.
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
    takes_pointers: bool = field(init=False)
    count_read: int = field(init=False)

    def __post_init__(self) -> None:
        self.takes_pointers = not self.functions
        self.count_read = len(self.arguments) - len(self.outputs) - len(self.accumulators)

    @property
    def reads(self) -> tuple[int, ...]:
        """The slots of the arrays that it reads."""
        return self.arguments[: self.count_read]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a plan.

    Attributes:
        new: the slots that it fills in memory of their own.
        outputs: the slots of all values that it stores.
        stores: slot, and number in the order of the expression, of each node that it stores.
        nodes: the numbers of the nodes that it computes.
        reads: the slots that it reads.
        stored_because: why the result gets memory, of an inner value.
        siblings: the numbers of those nodes that are computed beside what is asked for.
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
    """Generated kernels: one, or more of which each merges what the one before has left.

    Attributes:
        launches: the kernels.
        is_by_cells: they compute one cell of the result each, and merge nothing.
        otherwise: the steps to the same values while compiling is not worth it.
    """

    launches: tuple[KernelLaunch, ...]
    otherwise: tuple[Step, ...] = ()
    is_by_cells: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationsStep(Step):
    """One operation after the other.

    Attributes:
        order: the operations, operands before users, with slots for arrays and scalars.
        values: what is stored: nodes and scalars, and their layouts, with slots for blocks.
    """

    order: tuple[Node, ...] = field(repr=False)
    values: tuple[tuple[Node | Scalar, Layout], ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStep(OperationsStep):
    """The calling thread computes with NumPy, in the arrays' own memory.

    Attributes:
        instead: the kernel that does the same without a wait, where the memory is at work.
        because: why, in the cost model's terms.
        operations: what it calls.
    """

    operations: HostOperations = field(repr=False)
    because: str = ""
    instead: FusedStep | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryStep(OperationsStep):
    """Ready kernels of the device's library.

    Attributes:
        because: why no kernel is generated; empty where it may be.
    """

    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractionStep(Step):
    """A contraction that a library computes.

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
        steps: in order.
        leaves: how many slots are leaves; the next is the target, where there is one.
        slots: how many slots there are.
        results: the slots of what was asked for.
    """

    steps: tuple[Step, ...]
    leaves: int
    slots: int
    results: tuple[int, ...]

    @property
    def launches(self) -> Iterator[KernelLaunch]:
        """The kernels, where all are compiled."""
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
