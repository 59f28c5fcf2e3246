"""Reductions of expressions to kernel source; the producer is computed inside the kernel.

One kernel folds all reduced elements, or leaves a few partial results for each output that a second
pass of the same kind folds. Which of three forms it has depends on where memory is contiguous:

- *lanes*: many reduced elements, on the inner axes; a work-group walks one output's elements (or a
  chunk of them), neighbouring work-items taking neighbouring elements;
- *columns*: neighbouring work-items fold neighbouring outputs along the last kept dimension, a
  chunk of the reduced elements each;
- *items*: few reduced elements, and no kept dimension is long; a work-item folds all of one output.

Everything that decides an address is the same for a whole work-group but for the local id, and the
trip counts are the same for all items, so that devices load vectors. No form has a barrier: on a
CPU a barrier costs more than a second pass over the partial results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import c_uint64
from typing import Any, NamedTuple

import numpy as np

from dparray._codegen import (
    BOOL,
    TYPE_NAMES,
    Numbering,
    can_generate,
    converted_text,
    dtype_of,
    element_strides,
    emit_steps,
    kernel_name,
    letters_of,
    merge_axes,
    remember,
    scalar_lines,
    scalar_parameters,
    stride_arguments,
    type_key,
)
from dparray._expr import Node

# Work-items of a group that walks one output: one vector. With more, a CPU device walks the memory
# once for each vector of them (measured: 16 reach 1.4 times the speed of 64).
LANES = 16
# Work-items of a group where each folds an output of its own.
ITEMS = 64
# A kept dimension of at least this extent is worth columns.
SHORTEST_ROW = 32
# Groups for each compute unit: enough to balance them.
GROUPS_A_UNIT = 64
# Neighbouring outputs of a group: enough to use what a cache line and a page bring.
COLUMNS = 256
# Reduced extents up to the first are unrolled; up to the second one work-item folds them all, also
# where they are on the inner axes.
UNROLLED = 16
SERIAL = 256
# So few elements in all are folded without a second launch, although items then work in sequence.
ALONE = 2048
# Independent accumulators of a work-item, which hide the latency of additions.
ACCUMULATORS = 8

COMBINE = {
    "sum": "{acc} + {value}",
    "prod": "{acc} * {value}",
    "max": "{value} if ({value} > {acc}) | ({value} != {value}) else {acc}",
    "min": "{value} if ({value} < {acc}) | ({value} != {value}) else {acc}",
    "all": "{acc} & {value}",
    "any": "{acc} | {value}",
}


class ReductionStructure(NamedTuple):
    """What decides the text of a reduction kernel.

    Attributes:
        steps, scalars: as in :class:`dparray._codegen.Structure`.
        arrays: dtype, and index letters over the kept and over the reduced dimensions.
        value: the reference that is reduced.
        combine: a key of :data:`COMBINE`.
        loop: the dtype of the accumulator and the result.
        kept, reduced: the numbers of collapsed dimensions.
        form: ``"items"``, ``"lanes"`` or ``"columns"``.
        unrolled: the reduced extent, if the loop over it is unrolled, else 0. A stride of the kept
            dimensions that equals it has the letter ``"u"`` and is a constant, so that the device
            can load neighbouring outputs' elements as vectors.
    """

    steps: tuple[Any, ...]
    arrays: tuple[tuple[str, str, str], ...]
    scalars: tuple[str, ...]
    value: str
    combine: str
    loop: str
    kept: int
    reduced: int
    form: str
    unrolled: int


class ReductionPlan(NamedTuple):
    """What follows from the form of a reduction: its operations, dtypes, layouts and axes.

    Attributes:
        structure: what decides the text of the kernel.
        numbers: the arguments after the scalars, in the order of :func:`parameters_of`.
        partials: how many results each output has after this kernel, 1 if it is done.
        partials_are_inner: whether the partial results of one output lie next to each other.
        global_range, local_range: the range.
    """

    structure: ReductionStructure
    numbers: tuple[Any, ...]
    partials: int
    partials_are_inner: bool
    global_range: tuple[int, ...]
    local_range: tuple[int, ...]


class ReductionProgram(NamedTuple):
    """A plan, and the arrays and scalars it is applied to."""

    structure: ReductionStructure
    numbers: tuple[Any, ...]
    partials: int
    partials_are_inner: bool
    global_range: tuple[int, ...]
    local_range: tuple[int, ...]
    arrays: list[Any]
    scalars: list[Any]


_plans: dict[Any, ReductionPlan] = {}


def can_reduce(name: str, node: Node, loop: np.dtype[Any]) -> bool:
    """Whether a kernel can be generated for this reduction of a node."""
    if name not in COMBINE or loop.str not in (*TYPE_NAMES, BOOL) or node.dtype.char in "eFD":
        return False
    return node.layout is not None or can_generate(node)


def identity(combine: str, loop: np.dtype[Any]) -> str:
    """The text of the value that changes nothing."""
    if combine in ("all", "any"):
        return f"int32({int(combine == 'all')})"
    name = TYPE_NAMES[loop.str]
    if combine in ("sum", "prod"):
        return f"{name}({int(combine == 'prod')})"
    if loop.kind == "f":
        return f"{name}({'-' if combine == 'max' else ''}math.inf)"
    limits = np.iinfo(loop)
    return f"{name}({limits.min if combine == 'max' else limits.max})"


def linearize_reduction(
    order: Sequence[Node],
    value: Node,
    axes: tuple[int, ...],
    combine: str,
    loop: np.dtype[Any],
    compute_units: int,
) -> ReductionProgram:
    """The program of reducing ``value``, of at least one element, over ``axes``."""
    numbering = Numbering(order, [(value, loop)])
    form = (numbering.form, value.shape, axes, combine, compute_units)
    plan = _plans.get(form)
    if plan is None:
        plan = _plan_of(numbering, value.shape, axes, combine, loop, compute_units)
        remember(_plans, form, plan)
    return ReductionProgram(*plan, numbering.arrays, numbering.scalars)


def _plan_of(
    numbering: Numbering,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    combine: str,
    loop: np.dtype[Any],
    compute_units: int,
) -> ReductionPlan:
    steps, scalars, ((reference, _),) = numbering.described()
    walked = element_strides(numbering.arrays, shape)
    kept_axes = [axis for axis in range(len(shape)) if axis not in axes]
    kept_extents, kept_columns = merge_axes(kept_axes, shape, walked)
    extents, columns = merge_axes(sorted(axes), shape, walked)
    kept, count = math.prod(kept_extents), math.prod(extents)
    form, chunks = _form(kept_extents, count, columns, compute_units)
    lanes = LANES if form == "lanes" else 1
    partials = lanes * chunks
    if form == "lanes":
        total, local = kept * chunks * LANES, LANES
    elif form == "columns":
        row = kept_extents[-1]
        total, local = kept // row * -(-row // COLUMNS) * chunks * COLUMNS, COLUMNS
    else:
        total, local = -(-kept // ITEMS) * ITEMS, ITEMS
    unrolled = count if count <= UNROLLED else 0
    structure = ReductionStructure(
        steps,
        tuple(
            (layout.dtype.str, letters_of(kept_column, unrolled), letters_of(column))
            for layout, kept_column, column in zip(
                numbering.arrays, kept_columns, columns, strict=True
            )
        ),
        scalars,
        reference,
        combine,
        loop.str,
        len(kept_extents),
        len(extents),
        form,
        unrolled,
    )
    numbers = [
        kept,
        count,
        chunks,
        count // partials,
        kept_extents[-1],
        *kept_extents[1:],
        *extents[1:],
    ]
    for column in kept_columns:
        numbers += stride_arguments(column, unrolled)
    for column in columns:
        numbers += stride_arguments(column)
    return ReductionPlan(
        structure,
        tuple(map(c_uint64, numbers)),  # the trips have the same bits as int64
        partials,
        form == "lanes",
        (total,),
        (local,),
    )


def _form(
    kept_extents: Sequence[int], count: int, columns: Sequence[Sequence[int]], compute_units: int
) -> tuple[str, int]:
    """The form of the kernel, and into how many chunks the reduced elements are cut."""
    wanted_groups = GROUPS_A_UNIT * compute_units
    kept, row = math.prod(kept_extents), kept_extents[-1]
    if kept * count <= ALONE:
        return "items", 1
    inner_is_reduced = any(column[-1] == 1 for column in columns) or kept == 1
    has_rows = row >= SHORTEST_ROW
    if count > SERIAL and (inner_is_reduced or not has_rows):
        most = max(1, count // (LANES * ACCUMULATORS * 4))
        return "lanes", min(most, -(-wanted_groups // kept))
    if not has_rows or (len(kept_extents) == 1 and count <= UNROLLED):
        return "items", 1
    groups = kept // row * -(-row // COLUMNS)
    return "columns", min(max(1, count // SERIAL), -(-wanted_groups // groups))


def parameters_of(structure: ReductionStructure) -> tuple[tuple[str, str], ...]:
    """Name and type key of each kernel parameter after the item, in order."""
    parameters = [
        (f"a{number}", f"{type_key(dtype)}:1C")
        for number, (dtype, _, _) in enumerate(structure.arrays)
    ]
    parameters.append(("out", f"{type_key(structure.loop)}:1C"))
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
    for position, prefix in ((1, "k"), (2, "r")):
        for number, row in enumerate(structure.arrays):
            parameters += [
                (f"a{number}_{prefix}{stride}", "u8") for stride in range(row[position].count("s"))
            ]
    return tuple(parameters)


def types_of(structure: ReductionStructure) -> tuple[str, ...]:
    """The type keys of the kernel's parameters after the item."""
    return tuple(key for _, key in parameters_of(structure))


def source_of(structure: ReductionStructure) -> str:
    """The text of the kernel for a structure."""
    names = ", ".join(name for name, _ in parameters_of(structure))
    lines = [f"def {kernel_name(structure.steps, structure.combine)}(item, {names}):"]
    lines += scalar_lines(structure.scalars)
    lines += _PLACES[structure.form]
    if structure.form == "columns":
        lines.append(f"    o{structure.kept - 1} = column")
        lines += _decomposed("outer", "n", structure.kept - 1, name="o")
    else:
        lines += _decomposed("o", "n", structure.kept)
    for number, (_, letters, _) in enumerate(structure.arrays):
        start = _terms(letters, "o", f"a{number}_k", structure.unrolled) or "uint64(0)"
        lines.append(f"    b{number} = {start}")
    if structure.unrolled:
        for position in range(structure.unrolled):
            lines.append(f"    j = uint64({position})")
            value = _value(structure, lines, "    ")
            if position == 0:
                lines.append(f"    acc0 = {value}")
            else:
                lines.append(f"    acc0 = {_combined(structure, 'acc0', value)}")
        lines.append(f"    out[o] = {_stored(structure)}")
        return "\n".join(lines) + "\n"
    neutral = identity(structure.combine, np.dtype(structure.loop))
    accumulators = ACCUMULATORS if structure.form == "lanes" else 1
    lines += [f"    acc{number} = {neutral}" for number in range(accumulators)]
    if accumulators > 1:
        lines.append(f"    for trip in range(trips // {accumulators}):")
        for number in range(accumulators):
            lines.append(f"        j = first + uint64(trip * {accumulators} + {number}) * step")
            value = _value(structure, lines, "        ")
            lines.append(f"        acc{number} = {_combined(structure, f'acc{number}', value)}")
        lines.append(f"    for trip in range(trips - trips % {accumulators}, trips):")
        lines.append("        j = first + uint64(trip) * step")
    else:
        lines.append("    for trip in range(trips):")
        lines.append("        j = first + uint64(trip) * step")
    value = _value(structure, lines, "        ")
    lines.append(f"        acc0 = {_combined(structure, 'acc0', value)}")
    lines.append("    j = partials * uint64(trips) + partial")
    lines.append("    if j < count:")
    value = _value(structure, lines, "        ")
    lines.append(f"        acc0 = {_combined(structure, 'acc0', value)}")
    for number in range(1, accumulators):
        lines.append(f"    acc0 = {_combined(structure, 'acc0', f'acc{number}')}")
    lines.append(f"    out[{_OUTPUTS[structure.form]}] = {_stored(structure)}")
    return "\n".join(lines) + "\n"


# Where a work-item is: output `o`, its first reduced element, the step to the next, and which of
# the partial results it makes.
_PLACES = {
    "items": [
        "    o = uint64(item.get_global_id(0))",
        "    if o >= kept:",
        "        return",
        "    first = uint64(0)",
        "    step = uint64(1)",
        "    partials = uint64(1)",
        "    partial = uint64(0)",
    ],
    "lanes": [
        "    group = uint64(item.get_group().get_group_id(0))",
        "    lane = uint64(item.get_local_id(0))",
        "    o = group // chunks",
        "    chunk = group - o * chunks",
        f"    step = uint64({LANES})",
        "    first = chunk * uint64(trips) * step + lane",
        "    partials = chunks * step",
        "    partial = chunk * step + lane",
    ],
    "columns": [
        "    group = uint64(item.get_group().get_group_id(0))",
        f"    blocks = (row + uint64({COLUMNS - 1})) // uint64({COLUMNS})",
        "    outer = group // blocks",
        f"    column = (group - outer * blocks) * uint64({COLUMNS}) + uint64(item.get_local_id(0))",
        "    if column >= row:",
        "        return",
        "    rows = kept // row",
        "    chunk = outer // rows",
        "    outer = outer - chunk * rows",
        "    o = outer * row + column",
        "    first = chunk * uint64(trips)",
        "    step = uint64(1)",
        "    partials = chunks",
        "    partial = chunk",
    ],
}
_OUTPUTS = {"items": "o", "lanes": "o * partials + partial", "columns": "partial * kept + o"}


def _decomposed(
    index: str, extent: str, dimensions: int, indent: str = "    ", name: str = ""
) -> list[str]:
    """The lines that take a linear index apart into one for each dimension."""
    name = name or index
    lines = []
    rest = index
    for dimension in range(dimensions - 1, 0, -1):
        quotient = f"{name}q{dimension}"
        lines.append(f"{indent}{quotient} = {rest} // {extent}{dimension}")
        lines.append(f"{indent}{name}{dimension} = {rest} - {quotient} * {extent}{dimension}")
        rest = quotient
    if dimensions:
        lines.append(f"{indent}{name}0 = {rest}")
    return lines


def _terms(letters: str, index: str, stride: str, constant: int = 0) -> str:
    terms = []
    number = 0
    for dimension, letter in enumerate(letters):
        if letter == "1":
            terms.append(f"{index}{dimension}")
        elif letter == "s":
            terms.append(f"{index}{dimension} * {stride}{number}")
            number += 1
        elif letter == "u":
            terms.append(f"{index}{dimension} * uint64({constant})")
    return " + ".join(terms)


def _value(structure: ReductionStructure, lines: list[str], indent: str) -> str:
    """Append the lines that compute element ``j`` of output ``o``; its name in the loop dtype."""
    lines += _decomposed("j", "m", structure.reduced, indent)
    for number, (_, _, letters) in enumerate(structure.arrays):
        terms = _terms(letters, "j", f"a{number}_r")
        index = f"b{number} + {terms}" if terms else f"b{number}"
        lines.append(f"{indent}x{number} = a{number}[{index}]")
    operand = emit_steps(structure.steps, lines, indent)
    text = operand(structure.value)
    text = converted_text(text, dtype_of(structure, structure.value), structure.loop)
    lines.append(f"{indent}v = {_accumulated(structure, text)}")
    return "v"


def _accumulated(structure: ReductionStructure, text: str) -> str:
    """A value of the loop's dtype as the accumulator's: booleans are folded as integers."""
    return f"int32({text})" if structure.loop == BOOL else text


def _stored(structure: ReductionStructure) -> str:
    return "acc0 != 0" if structure.loop == BOOL else "acc0"


def _combined(structure: ReductionStructure, accumulator: str, value: str) -> str:
    text = COMBINE[structure.combine].format(acc=accumulator, value=value)
    return f"{'int32' if structure.loop == BOOL else TYPE_NAMES[structure.loop]}({text})"
