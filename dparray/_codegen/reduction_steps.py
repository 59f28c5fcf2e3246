"""The structure of a kernel with reductions, and facts derived from its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dparray._codegen.values import (
    array_key,
    array_parameters,
    element_key,
    scalar_parameters,
    type_key,
)
from dparray._graph.reductions import Reduction

# The number of independent accumulators per work-item, which hide the latency of additions, by
# form; fewer for loops with many steps, whose source is repeated for each.
ACCUMULATORS = {"lanes": 8, "rows": 2, "sub-groups": 4}
MAX_STEPS_WRITTEN = 48

# The loads that a work-item has in flight while it copies a row to local memory.
STAGED_TOGETHER = 8

# The letters, over the reduced dimension, of an array that short rows fill without gaps.
FLAT = "f"


class ReductionStructure(NamedTuple):
    """The structure of a reduction kernel: everything that determines its source.

    Attributes:
        steps, scalars: as in :class:`dparray._codegen.elementwise.Structure`; instead of the
            template, a reduction has its table row and a flag for merging accumulators.
        arrays: the dtype, and the index letters over the kept and the reduced dimensions.
        outputs: the reference, dtype, letters (as in ``arrays``), and whether there is one element
            for each output of the reductions or one for each of the domain.
        output_ndim, reduced: the numbers of collapsed dimensions, kept and reduced.
        form: ``"items"``, ``"lanes"``, ``"rows"``, ``"sub-groups"``, ``"columns"`` or
            ``"short rows"``.
        lanes: the work-items of a group.
        vectors: the vectors of adjacent outputs, or slots of short rows, per work-item; else 1.
        unrolled: the reduced length, if the loops over it are unrolled, else 0. A stride of the
            kept dimensions that equals it has the letter ``"u"`` and is a constant, so that the
            device can load adjacent outputs as vectors.
        leaves_accumulators: whether accumulators are stored for another kernel instead of results.
        merges_chunks: whether the last group to store its accumulators computes the results.
        elements_last: whether elements are stored in a separate last loop, because they overwrite
            memory that the other loops read.
        merges_in_sub_groups: whether lanes first merge by exchange within their sub-group.
        is_narrow: see :class:`dparray._codegen.elementwise.Structure`.
        staged: the numbers of the arrays whose elements are copied to local memory first.
        staged_rows: the outputs of a group whose elements local memory holds.
        sub_group: the size of all sub-groups if the driver does not choose it, else 0.
        rows_together: the rows of columns that a work-item loads before it adds the first.
        keeps_values: whether a loop may write a value in place of elements in local memory, or in
            registers.
        held: the elements of each staged array that a work-item loads first and keeps in registers
            for all loops; 0 if they are copied to local memory.
        is_full: whether each work-item has as many elements; otherwise some have one less.
        loads_vectors: whether the outputs of a work-item in columns are adjacent, so that it loads
            its elements of a row together.
    """

    steps: tuple[Any, ...]
    arrays: tuple[tuple[str, str, str], ...]
    scalars: tuple[str, ...]
    outputs: tuple[tuple[str, str, str, str, bool], ...]
    output_ndim: int
    reduced: int
    form: str
    lanes: int
    vectors: int
    unrolled: int
    leaves_accumulators: bool
    merges_chunks: bool
    elements_last: bool
    merges_in_sub_groups: bool = False
    is_narrow: bool = False
    staged: tuple[int, ...] = ()
    staged_rows: int = 0
    sub_group: int = 0
    rows_together: int = 1
    keeps_values: bool = False
    held: int = 0
    is_full: bool = False
    loads_vectors: bool = False

    @property
    def stores_accumulators(self) -> bool:
        """Whether accumulators are left in memory, for any kernel."""
        return self.leaves_accumulators or self.merges_chunks

    @property
    def in_local_memory(self) -> tuple[int, ...]:
        """The staged arrays that are copied to local memory."""
        return () if self.held else self.staged


def is_widened(row: Reduction, operand: np.dtype[Any]) -> bool:
    """Return whether a reduction computes this dtype as ``int32`` and converts the result.

    Booleans are not numbers, and bytes in local memory are accessed one at a time. A user-defined
    function receives the elements unchanged.
    """
    return operand.kind == "b" or (
        operand.kind in "iu" and operand.itemsize <= 2 and not row.functions
    )


def accumulator_dtypes(row: Reduction, operand: np.dtype[Any]) -> list[np.dtype[Any]]:
    """Return the dtypes of the accumulators of a reduction for an operand dtype."""
    own = np.dtype(np.int32) if is_widened(row, operand) else operand
    return [np.dtype(dtype) if dtype else own for dtype in row.accumulators.values()]


def accumulator_bytes(steps: Sequence[Any]) -> int:
    """Return the size of all accumulators of a work-item in bytes."""
    return sum(
        dtype.itemsize
        for step in steps
        if is_reduction(step)
        for dtype in accumulator_dtypes(step[1][0], np.dtype(step[3][0]))
    )


def is_reduction(step: Any) -> bool:
    """Return whether a step of a structure is a reduction."""
    return not isinstance(step[1], str)


def loops_before(steps: Sequence[Any]) -> list[int]:
    """Return for each step the number of loops before its value is available."""
    before: list[int] = []
    for step in steps:
        needed = max((before[int(name[1:])] for name, _ in step[2] if name[0] == "t"), default=0)
        before.append(needed + is_reduction(step))
    return before


def loop_count(steps: Sequence[Any], elements: Sequence[str], elements_last: bool) -> int:
    """Return the number of loops of a kernel."""
    before = loops_before(steps)
    reductions = max(before[number] for number, step in enumerate(steps) if is_reduction(step))
    stored = [before[int(name[1:])] for name in elements]
    return max([reductions, *(1 + loop for loop in stored)]) + (
        bool(elements) and elements_last and reductions > max(stored)
    )


def worth_staging(steps: Sequence[Any], elements: Sequence[str], elements_last: bool) -> set[int]:
    """Return the numbers of the arrays that several loops read, for a GPU's local memory."""
    before = loops_before(steps)
    loops: dict[str, set[int]] = {}
    last = max(before[number] for number, step in enumerate(steps) if is_reduction(step))
    for name in elements:
        loop = last if elements_last or name[0] != "t" else before[int(name[1:])]
        loops.setdefault(name, set()).add(loop)
    for number, step in reversed(list(enumerate(steps))):
        own = {before[number] - 1} if is_reduction(step) else loops.get(f"t{number}", set())
        for name, _ in step[2]:
            loops.setdefault(name, set()).update(own)
    return {int(name[1:]) for name, own in loops.items() if name[0] == "a" and len(own) > 1}


def reductions_of(structure: ReductionStructure) -> Iterator[tuple[int, Reduction, np.dtype[Any]]]:
    """Return step number, table row and operand dtype of each reduction."""
    for number, step in enumerate(structure.steps):
        if is_reduction(step):
            yield number, step[1][0], np.dtype(step[3][0])


def shared_accumulators(structure: ReductionStructure) -> list[tuple[str, np.dtype[Any]]]:
    """Return name and dtype of all accumulators, in the order of steps."""
    return [
        (f"t{number}_{name}", dtype)
        for number, row, operand in reductions_of(structure)
        for name, dtype in zip(row.accumulators, accumulator_dtypes(row, operand), strict=True)
    ]


def power_of_two(number: int) -> int:
    """Return the largest power of two that is not larger than a number."""
    return 1 << (number.bit_length() - 1)


def parameters_of(structure: ReductionStructure) -> tuple[tuple[str, str], ...]:
    """Return name and type key of each kernel parameter after the item, in order.

    Inputs, outputs, accumulators in memory, counters of finished groups, local memory, scalars,
    numbers.
    """
    parameters = array_parameters(structure.arrays)
    parameters += [
        (f"out{number}", array_key(dtype))
        for number, (_, dtype, _, _, _) in enumerate(structure.outputs)
    ]
    accumulators = [(name, type_key(dtype.str)) for name, dtype in shared_accumulators(structure)]
    if structure.stores_accumulators:
        parameters += [(f"{name}_out", f"{key}:1C") for name, key in accumulators]
    if structure.merges_chunks:
        parameters += [("arrived", "i4:1C"), ("is_last", "local i4:1")]
    if structure.form in ("lanes", "rows"):
        parameters += [(f"{name}_local", f"local {key}:1") for name, key in accumulators]
    for number in structure.in_local_memory:
        key = element_key(structure.arrays[number][0])
        parameters.append((f"a{number}_local", f"local {key}:1"))
    parameters += scalar_parameters(structure.scalars)
    parameters += [
        ("kept", "u8"),
        ("count", "u8"),
        ("chunks", "u8"),
        ("trips", "i8"),
        ("row", "u8"),
    ]
    parameters += [(f"n{dimension}", "u8") for dimension in range(1, structure.output_ndim)]
    parameters += [(f"m{dimension}", "u8") for dimension in range(1, structure.reduced)]
    walked = [(f"a{number}", row[1:]) for number, row in enumerate(structure.arrays)]
    walked += [(f"out{number}", row[2:4]) for number, row in enumerate(structure.outputs)]
    for name, (kept, reduced) in walked:
        for prefix, letters in (("k", kept), ("r", reduced)):
            parameters += [
                (f"{name}_{prefix}{stride}", "u8") for stride in range(letters.count("s"))
            ]
    return tuple(parameters)


def types_of(structure: ReductionStructure) -> tuple[str, ...]:
    """Return the type keys of the kernel's parameters after the item."""
    return tuple(key for _, key in parameters_of(structure))


def functions_of(structure: ReductionStructure) -> dict[str, Any]:
    """Return the device functions that the source calls, by their names in it."""
    return {
        f"t{number}_{name}": function
        for number, row, _ in reductions_of(structure)
        for name, function in row.functions.items()
    }
