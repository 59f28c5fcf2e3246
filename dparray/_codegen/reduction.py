"""Reductions of expressions to kernel source: what is reduced, and what follows, in one kernel.

A kernel walks a *domain*, a shape some axes of which are reduced. It has one loop over the reduced
elements of an output for each reduction that needs the result of another one first, several
reductions in a loop where they do not; after each loop the results, and what is computed of them,
are there for the next. A plain reduction is one loop. Values of the domain's shape can be stored,
too, as in ``x / x.sum(axis=1, keepdims=True)``.

Which of six forms a kernel has depends on where memory is contiguous:

- *lanes*: many reduced elements, on the inner axes; a work-group walks one output's elements (or a
  chunk of them), neighboring work-items taking neighboring elements. After each loop the group's
  accumulators meet in local memory, behind a barrier;
- *rows*: tens to hundreds of reduced elements, on the inner axes, of many outputs; a group walks
  one output's elements after another's, and each work-item merges what is left of one of them;
- *sub-groups*: the same on GPUs, and for fewer outputs; a sub-group walks one output's elements,
  and its lanes exchange their accumulators, without local memory or a barrier;
- *columns*: neighboring work-items fold neighboring outputs along the last kept dimension, several
  vectors of them each, a chunk of the reduced elements: a group walks row after row;
- *short rows*: many reduced elements, and so few neighboring outputs that they are no vector: a
  group walks block after block of as many whole rows as make some vectors, and leaves the
  accumulators of each place in a block, which have several for each output;
- *items*: few reduced elements, and no kept dimension is long; a work-item folds all of one output.

Where the outputs are too few for the device, or memory would be walked in too long strides, the
reduced elements are cut into chunks, whose accumulators the kernel leaves in memory. The group that
is the last to have left those of an output merges them, in the order of the chunks (after the
sample threadFenceReduction of NVIDIA's CUDA). Where they are many, or a user's function might end a
work-item before it is counted, another kernel of the same kind does.

Everything that decides an address is the same for a whole work-group except the local id, and the
trip counts are the same for all items, so that devices load vectors.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from ctypes import c_uint64
from typing import Any, NamedTuple

import numpy as np

from dparray._codegen import reduction_forms
from dparray._codegen.domain import Domain, Machine, spread_layout
from dparray._codegen.elementwise import can_generate
from dparray._codegen.indexing import (
    element_strides,
    fits_32_bits,
    letters_of,
    merge_axes,
    stride_arguments,
)
from dparray._codegen.reduction_forms import (
    CACHED_ELEMENTS,
    GROUPS_A_UNIT,
    ITEMS,
    MAX_MERGED,
    UNROLLED,
    column_groups,
    form_of_loops,
    outputs_of_group,
    wanted_groups,
)
from dparray._codegen.reduction_steps import (
    FLAT,
    ReductionStructure,
    is_reduction,
    loop_count,
)
from dparray._codegen.steps import ScalarUse, Steps
from dparray._codegen.values import (
    dtype_read,
    is_convertible,
)
from dparray._graph.node import Node
from dparray._graph.reductions import Reduce
from dparray._layout import Layout


class ReductionProgram(NamedTuple):
    """A kernel with reductions, and the arrays and scalars it is launched with.

    Attributes:
        structure: what decides the text of the kernel.
        numbers: the arguments after the scalars, in the order of the parameters.
        partials: how many sets of accumulators the kernel leaves of each output; 1 if it does not.
        partials_are_inner: whether the accumulators of one output lie next to each other.
        global_range, local_range: the range.
        arrays: the layouts of the arrays that are read.
        scalars: in the order of the parameters.
    """

    structure: ReductionStructure
    numbers: tuple[Any, ...]
    partials: int
    partials_are_inner: bool
    global_range: tuple[int, ...]
    local_range: tuple[int, ...]
    arrays: list[Any]
    scalars: list[ScalarUse]


# Kinds of dtypes that are reduced. Intel's CPU driver crashes on accumulators of complex numbers.
_KINDS = frozenset("biuf")


def can_reduce(node: Node) -> bool:
    """Return whether a kernel can compute this reduction from its operands."""
    return all(dtype.kind in _KINDS for dtype in node.loop) and all(
        type(operand) is not Node
        or (
            is_convertible(operand.dtype, wanted)
            and (operand.layout is not None or is_generated(operand))
        )
        for operand, wanted in zip(node.operands, node.loop, strict=False)
    )


def is_generated(node: Node) -> bool:
    """Return whether a kernel can compute a pending node, be it a reduction or not."""
    return can_reduce(node) if type(node.op) is Reduce else can_generate(node)


def linearize_reduction(
    order: Sequence[Node],
    outputs: Sequence[tuple[Node, Any]],
    domain: Domain,
    dropped: Collection[int],
    rows: Collection[int],
    machine: Machine,
    elements_last: bool = False,
    leaves_accumulators: bool = False,
) -> ReductionProgram:
    """Return the program of one kernel with reductions.

    Where that has more than one chunk of elements for each output, it has to be asked for again as
    one that leaves accumulators.

    Args:
        order: the pending nodes, operands before users.
        outputs: the nodes to be stored, and where.
        domain: what is walked; it has at least one element.
        dropped: ids of the nodes shaped without the reduced axes.
        rows: ids of the nodes with one element for each output of the reductions, those too.
        machine: the device.
        elements_last, leaves_accumulators: see :class:`ReductionStructure`; with the latter,
            all outputs are of the domain's shape.
    """
    parts = Steps(
        order,
        [(value, layout.dtype) for value, layout in outputs],
        {id(node) for node in order if id(node) in dropped and type(node.op) is not Reduce},
        lambda layout: spread_layout(layout, domain),
    )
    targets = [
        spread_layout(layout, domain) if id(value) in dropped else layout
        for value, layout in outputs
    ]
    return _program(
        parts,
        targets,
        [id(value) in rows for value, _ in outputs],
        domain,
        machine,
        elements_last,
        leaves_accumulators,
        any(_calls_user(node.op) for node in order),
    )


def _calls_user(op: Any) -> bool:
    """Whether an operation calls a user's function."""
    return bool((op.reduction if type(op) is Reduce else op).functions)


def _program(
    parts: Steps,
    targets: Sequence[Layout],
    are_rows: Sequence[bool],
    domain: Domain,
    machine: Machine,
    elements_last: bool,
    leaves_accumulators: bool,
    calls_user: bool,
) -> ReductionProgram:
    steps = parts.steps
    layouts = [*parts.arrays, *targets]
    count_arrays = len(parts.arrays)
    shape = domain.shape
    walked = element_strides(layouts, shape)
    kept_axes = [axis for axis in range(len(shape)) if axis not in domain.axes]
    kept_extents, kept_columns = merge_axes(kept_axes, shape, walked)
    extents, columns = merge_axes(domain.axes, shape, walked)
    kept, count = math.prod(kept_extents), math.prod(extents)
    names = [name for name, _ in parts.outputs]
    elements = [name for name, is_row in zip(names, are_rows, strict=True) if not is_row]
    is_whole = loop_count(steps, elements, elements_last) > 1
    walks = list(zip(kept_columns, columns, strict=True))
    # An operand that is broadcast along the outputs is small, and decides nothing.
    read = walks[:count_arrays]
    large = [column for kept_column, column in read if any(kept_column)]
    question = reduction_forms.Question(
        kept_extents,
        extents,
        large or columns[:count_arrays],
        read,
        parts.arrays,
        steps,
        is_whole,
        bool(elements),
        calls_user,
        leaves_accumulators,
    )
    form, vectors, chunks, lanes = reduction_forms.choose(question, machine)
    is_short = form == "short rows"
    blocks = count // (vectors * lanes // kept) if is_short else count
    trips = blocks // chunks
    if form in ("lanes", "rows"):
        trips //= lanes
    elif form in ("columns", "short rows"):
        trips = -(-blocks // chunks)
        chunks = -(-blocks // trips)
    merges_chunks = (
        not (leaves_accumulators or is_short) and 1 < chunks <= MAX_MERGED and not calls_user
    )
    if form in ("lanes", "short rows"):
        total, local = (chunks if is_short else kept * chunks) * lanes, lanes
    elif form == "columns":
        groups = column_groups(kept_extents, lanes * vectors)
        total, local = groups * chunks * lanes, lanes
    elif form == "sub-groups":
        total, local = -(-kept // (lanes // machine.sub_group)) * lanes, lanes
    elif form == "rows":
        total, local = -(-kept // lanes) * lanes, lanes
    else:
        total, local = -(-kept // ITEMS) * ITEMS, ITEMS
    unrolled = count if count <= UNROLLED and form not in ("rows", "sub-groups") else 0
    flat = [is_short and kept_column == [1] and any(column) for kept_column, column in walks]
    letters = [
        (
            layout.dtype.str,
            letters_of(kept_column, unrolled),
            FLAT if is_flat else letters_of(column),
        )
        for layout, (kept_column, column), is_flat in zip(layouts, walks, flat, strict=True)
    ]
    structure = ReductionStructure(
        tuple([_of_few(step, trips) for step in steps]),
        tuple(
            (dtype_read(layout), *each[1:])
            for layout, each in zip(layouts, letters[:count_arrays], strict=False)
        ),
        parts.scalar_dtypes,
        tuple(
            (name, *each, is_row)
            for name, each, is_row in zip(names, letters[count_arrays:], are_rows, strict=True)
        ),
        len(kept_extents),
        len(extents),
        form,
        lanes,
        vectors,
        unrolled,
        leaves_accumulators,
        merges_chunks,
        elements_last,
        form == "lanes" and machine.sub_group > 0 and not calls_user,
        machine.sub_group > 0
        and fits_32_bits(
            [*kept_extents, *extents],
            [[*kept_column, *column] for kept_column, column in walks],
            total,
        ),
    )
    numbers = [
        kept,
        count,
        chunks,
        trips,
        kept_extents[-1],
        *kept_extents[1:],
        *extents[1:],
    ]
    for (kept_column, column), is_flat in zip(walks, flat, strict=True):
        numbers += stride_arguments(kept_column, unrolled)
        numbers += () if is_flat else stride_arguments(column)
    return ReductionProgram(
        structure,
        tuple(map(c_uint64, numbers)),  # the trips have the same bits as int64
        chunks * (lanes * vectors // kept) if is_short else chunks,
        form == "lanes",
        (total,),
        (local,),
        parts.in_memory,
        parts.scalars,
    )


def _of_few(step: Any, folded: int) -> Any:
    """A step of a kernel in which a work-item folds so many elements: sums of narrow integers.

    Their sum has 32 bits. It is taken over integers of 64 bits, or over floats that are exact.
    """
    if not is_reduction(step) or step[1][1] or step[1][0].of_narrow is None:
        return step
    name, (row, _), references, loop, result = step
    operand, wide = np.dtype(references[0][1]), np.dtype(loop[0])
    if operand.kind not in "biu" or operand.itemsize > 2 or wide.itemsize < 8:
        return step
    if folded > 1 << (31 - 8 * operand.itemsize):
        return step
    return name, (row.of_narrow, False), references, loop, result


def is_row_cached(
    domain: Domain, layouts: Sequence[Layout], machine: Machine, most_bytes: int
) -> bool:
    """Return whether what a group reads again in a second loop is still in its cache.

    Args:
        domain: what is walked.
        layouts: of the arrays that are read.
        machine: the device; there must be groups for all of its compute units.
        most_bytes: what a cache holds.
    """
    shape = domain.shape
    walked = element_strides(layouts, shape)
    kept_axes = [axis for axis in range(len(shape)) if axis not in domain.axes]
    kept_extents, _ = merge_axes(kept_axes, shape, walked)
    extents, columns = merge_axes(domain.axes, shape, walked)
    kept, count = math.prod(kept_extents), math.prod(extents)
    form = form_of_loops(kept_extents, count, columns, machine)
    outputs = outputs_of_group(form, machine)
    nbytes = sum(
        layout.dtype.itemsize
        for layout, column in zip(layouts, columns, strict=True)
        if any(column)
    )
    is_small = kept * count <= CACHED_ELEMENTS and form.name != "lanes"
    if machine.sub_group:
        is_filled = 2 * (kept // outputs) * form.lanes >= machine.resident_items
    else:
        is_filled = kept >= 4 * machine.compute_units * outputs
    return is_small or (count * outputs * nbytes <= most_bytes and is_filled)


def count_left(program: ReductionProgram) -> int:
    """Return how many sets of accumulators a kernel that merges chunks leaves in memory."""
    structure = program.structure
    outputs = structure.lanes * structure.vectors if structure.form == "columns" else 1
    return program.global_range[0] // structure.lanes * outputs


def most_counters(machine: Machine) -> int:
    """More than the outputs, or blocks of columns, whose chunks one kernel merges."""
    return max(wanted_groups(machine, machine.lanes), GROUPS_A_UNIT * machine.compute_units)
