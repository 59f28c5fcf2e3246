"""The structure of a kernel with reductions, and what follows from its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dparray._codegen.values import array_key, array_parameters, scalar_parameters, type_key
from dparray._graph.reductions import Reduction

# Independent accumulators of a work-item, which hide the latency of additions, by the form; fewer
# where a loop has many steps, which are written out once for each.
ACCUMULATORS = {"lanes": 8, "rows": 2, "sub-groups": 4}
MAX_STEPS_WRITTEN = 48


# The letters, over the reduced dimension, of an array that short rows fill without a gap.
FLAT = "f"


class ReductionStructure(NamedTuple):
    """The structure of a reduction kernel: all that decides its text.

    Attributes:
        steps, scalars: as in :class:`dparray._codegen.elementwise.Structure`; in place of the
            template, a reduction has its row of the table and whether it merges accumulators.
        arrays: dtype, and index letters over the kept and over the reduced dimensions.
        outputs: reference, dtype, letters as of the arrays, and whether there is one element for
            each output of the reductions or one for each of the domain.
        kept, reduced: the numbers of collapsed dimensions.
        form: ``"items"``, ``"lanes"``, ``"rows"``, ``"sub-groups"``, ``"columns"`` or
            ``"short rows"``.
        lanes: the work-items of a group.
        vectors: of neighboring outputs, or slots of short rows, that a work-item folds; else 1.
        unrolled: the reduced extent, if the loops over it are unrolled, else 0. A stride of the
            kept dimensions that equals it has the letter ``"u"`` and is a constant, so that the
            device can load neighboring outputs' elements as vectors.
        leaves_accumulators: in memory, for another kernel, in place of results.
        merges_chunks: the last group to have left its accumulators makes the results of them.
        elements_last: elements are stored in a loop of their own after all others, because memory
            is overwritten that the others read.
        merges_in_sub_groups: lanes merge by exchange within their sub-group first.
        is_narrow: as in :class:`dparray._codegen.elementwise.Structure`.
    """

    steps: tuple[Any, ...]
    arrays: tuple[tuple[str, str, str], ...]
    scalars: tuple[str, ...]
    outputs: tuple[tuple[str, str, str, str, bool], ...]
    kept: int
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

    @property
    def stores_accumulators(self) -> bool:
        """Whether accumulators are left in memory, for whatever kernel."""
        return self.leaves_accumulators or self.merges_chunks


def is_widened(row: Reduction, operand: np.dtype[Any]) -> bool:
    """Return whether a reduction folds elements of this dtype as ``int32``, and converts the
    result.

    Booleans are no numbers, and bytes are found in local memory one by one. A user's function takes
    the elements as they are.
    """
    return operand.kind == "b" or (
        operand.kind in "iu" and operand.itemsize <= 2 and not row.functions
    )


def accumulator_dtypes(row: Reduction, operand: np.dtype[Any]) -> list[np.dtype[Any]]:
    """Return the dtypes of the accumulators of a reduction whose operand has the dtype."""
    own = np.dtype(np.int32) if is_widened(row, operand) else operand
    return [np.dtype(dtype) if dtype else own for dtype in row.accumulators.values()]


def accumulator_bytes(steps: Sequence[Any]) -> int:
    """Return the bytes of all accumulators of a work-item."""
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
    """For each step the number of loops that come before its value is there."""
    before: list[int] = []
    for step in steps:
        needed = max((before[int(name[1:])] for name, _ in step[2] if name[0] == "t"), default=0)
        before.append(needed + is_reduction(step))
    return before


def loop_count(steps: Sequence[Any], elements: Sequence[str], elements_last: bool) -> int:
    """Return how many loops a kernel has."""
    before = loops_before(steps)
    reductions = max(before[at] for at, step in enumerate(steps) if is_reduction(step))
    stored = [before[int(name[1:])] for name in elements]
    return max([reductions, *(1 + at for at in stored)]) + (
        bool(elements) and elements_last and reductions > max(stored)
    )


def reductions_of(structure: ReductionStructure) -> Iterator[tuple[int, Reduction, np.dtype[Any]]]:
    """Step number, row of the table and operand dtype of each reduction."""
    for number, step in enumerate(structure.steps):
        if is_reduction(step):
            yield number, step[1][0], np.dtype(step[3][0])


def shared_accumulators(structure: ReductionStructure) -> list[tuple[str, np.dtype[Any]]]:
    """Name and dtype of all accumulators, in the order of steps."""
    return [
        (f"t{number}_{name}", dtype)
        for number, row, operand in reductions_of(structure)
        for name, dtype in zip(row.accumulators, accumulator_dtypes(row, operand), strict=True)
    ]


def power_of_two(number: int) -> int:
    """Return the largest power of two that is no larger."""
    return 1 << (number.bit_length() - 1)


def parameters_of(structure: ReductionStructure) -> tuple[tuple[str, str], ...]:
    """Name and type key of each kernel parameter after the item, in order.

    Inputs, outputs, accumulators left in memory, counters of the groups that have left theirs,
    local memory, scalars, numbers.
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
    parameters += scalar_parameters(structure.scalars)
    parameters += [
        ("kept", "u8"),
        ("count", "u8"),
        ("chunks", "u8"),
        ("trips", "i8"),
        ("row", "u8"),
    ]
    parameters += [(f"n{dimension}", "u8") for dimension in range(1, structure.kept)]
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
    """Return the device functions that the text calls, by the names it has for them."""
    return {
        f"t{number}_{name}": function
        for number, row, _ in reductions_of(structure)
        for name, function in row.functions.items()
    }
