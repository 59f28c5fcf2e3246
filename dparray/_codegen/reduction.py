"""Kernel source for reductions of expressions: the reductions and later steps in one kernel.

A kernel traverses a *domain*, a shape with some reduced axes. It has one loop over the reduced
elements of an output for each reduction that depends on the result of an earlier one; independent
reductions share a loop. After each loop the results, and values computed from them, are available
to the next. A plain reduction is one loop. Values of the domain's shape can also be stored, as in
``x / x.sum(axis=1, keepdims=True)``.

A kernel has one of six forms, depending on the contiguous axes:

- *lanes*: many reduced elements, on the inner axes. A work-group processes one output's elements
  (or a chunk of them), with adjacent elements in adjacent work-items. After each loop the group's
  accumulators are combined in local memory, behind a barrier;
- *rows*: tens to hundreds of reduced elements, on the inner axes, for many outputs. A group
  processes the elements of one output after another, and each work-item merges the accumulators of
  one output;
- *sub-groups*: the same on GPUs, also for fewer outputs. A sub-group processes one output, and its
  lanes exchange their accumulators without local memory or a barrier;
- *columns*: adjacent work-items reduce adjacent outputs along the last kept dimension, several
  vectors each, in a chunk of the reduced elements. A group processes row after row;
- *short rows*: many reduced elements, and fewer adjacent outputs than a vector. A group processes
  blocks of as many whole rows as make some vectors, and leaves the accumulators of each position in
  a block, several for each output;
- *items*: few reduced elements, and no long kept dimension. A work-item reduces all elements of one
  output.

If there are too few outputs for the device, or the strides would be too long, the reduced elements
are divided into chunks, whose accumulators the kernel writes to memory. The last group to write the
accumulators of an output merges them, in the order of the chunks (the method of the CUDA sample
threadFenceReduction). If there are many chunks, or a user-defined function could end a work-item
before it is counted, another kernel of the same kind merges them.

On a GPU, a kernel with several loops copies the rows of a group to registers or to local memory if
they fit. Each work-item copies the elements that it reduces, and all loops read them there.

Everything in an address except the local id is uniform across a work-group, and the trip counts are
the same for all work-items, so that devices load vectors.
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
    rows_together,
    wanted_groups,
)
from dparray._codegen.reduction_steps import (
    FLAT,
    ReductionStructure,
    is_reduction,
    loop_count,
    worth_staging,
)
from dparray._codegen.steps import ScalarUse, Steps
from dparray._codegen.values import (
    dtype_read,
    is_convertible,
)
from dparray._dtypes import is_bfloat16
from dparray._graph.node import Node
from dparray._graph.reductions import MAX_UNSETTLED, Reduce
from dparray._layout import Layout


class ReductionProgram(NamedTuple):
    """A kernel with reductions, and the arrays and scalars of its launch.

    Attributes:
        structure: determines the source of the kernel.
        numbers: the arguments after the scalars, in the order of the parameters.
        partials: the number of accumulator sets that the kernel leaves for each output; 1 if none.
        partials_are_inner: whether the accumulators of one output are adjacent.
        global_range, local_range: the range of the launch.
        arrays: the layouts of the input arrays.
        scalars: the scalars in the order of the parameters.
        staged: the elements of each array that a group copies to local memory.
    """

    structure: ReductionStructure
    numbers: tuple[Any, ...]
    partials: int
    partials_are_inner: bool
    global_range: tuple[int, ...]
    local_range: tuple[int, ...]
    arrays: list[Any]
    scalars: list[ScalarUse]
    staged: int = 0


# Kinds of dtypes that are reduced. Intel's CPU driver crashes on accumulators of complex numbers.
_KINDS = frozenset("biuf")


def can_reduce(node: Node) -> bool:
    """Return whether a kernel can compute this reduction from its operands."""
    return all(dtype.kind in _KINDS for dtype in node.signature) and all(
        type(operand) is not Node
        or (
            is_convertible(operand.dtype, wanted)
            and (operand.layout is not None or is_generated(operand))
        )
        for operand, wanted in zip(node.operands, node.signature, strict=False)
    )


def is_generated(node: Node) -> bool:
    """Return whether a kernel can compute a pending node, whether or not it is a reduction."""
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

    If it has more than one chunk of elements per output, the caller must request it again as a
    program that leaves accumulators.

    Args:
        order: the pending nodes, operands before users.
        outputs: the nodes to store, and where.
        domain: the domain, with at least one element.
        dropped: ids of the nodes shaped without the reduced axes.
        rows: ids of the nodes with one element per output of the reductions, including those.
        machine: the device.
        elements_last, leaves_accumulators: see :class:`ReductionStructure`. With the latter, all
            outputs have the domain's shape.
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
    """Return whether an operation calls a user-defined function."""
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
    output_count, count = math.prod(kept_extents), math.prod(extents)
    names = [name for name, _ in parts.outputs]
    elements = [name for name, is_row in zip(names, are_rows, strict=True) if not is_row]
    is_whole = loop_count(steps, elements, elements_last) > 1
    walks = list(zip(kept_columns, columns, strict=True))
    # An operand that is broadcast along the outputs is small, so it is ignored.
    read = walks[:count_arrays]
    large = [column for kept_column, column in read if any(kept_column)]
    staged = [
        number
        for number in sorted(worth_staging(steps, elements, elements_last))
        if _may_be_staged(parts.arrays[number]) and all(map(any, read[number]))
    ]
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
        sum(parts.arrays[number].dtype.itemsize for number in staged),
    )
    form, vectors, chunks, lanes, staged_rows, held, loads_vectors = reduction_forms.choose(
        question, machine
    )
    is_short = form == "short rows"
    blocks = count // (vectors * lanes // output_count) if is_short else count
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
        total, local = (chunks if is_short else output_count * chunks) * lanes, lanes
    elif form == "columns":
        groups = column_groups(kept_extents, lanes * vectors)
        total, local = groups * chunks * lanes, lanes
    elif form == "sub-groups":
        total, local = -(-output_count // (lanes // machine.sub_group)) * lanes, lanes
    elif form == "rows":
        total, local = -(-output_count // lanes) * lanes, lanes
    else:
        total, local = -(-output_count // ITEMS) * ITEMS, ITEMS
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
        tuple([_for_count(step, trips, machine.sub_group == 0) for step in steps]),
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
        tuple(staged) if staged_rows or held else (),
        staged_rows,
        machine.sub_group if machine.is_fixed else 0,
        rows_together(
            [layout for layout, walk in zip(parts.arrays, read, strict=True) if any(walk[1])],
            steps,
            vectors,
            machine,
            loads_vectors,
        )
        if form == "columns" and not (unrolled or elements_last)
        else 1,
        (staged_rows > 0 or held > 0) and not unrolled and machine.bytes_in_flight > 0,
        held,
        held * (lanes if form == "lanes" else machine.sub_group) == count,
        loads_vectors,
    )
    numbers = [
        output_count,
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
        tuple(map(c_uint64, numbers)),  # the trip counts have the same bits as int64
        chunks * (lanes * vectors // output_count) if is_short else chunks,
        form == "lanes",
        (total,),
        (local,),
        parts.in_memory,
        parts.scalars,
        staged_rows * count,
    )


def _may_be_staged(layout: Layout) -> bool:
    """Return whether a kernel may copy elements of an array to local memory.

    It may not copy complex elements, which are pairs, Booleans, or positions, which are computed.
    """
    is_number = layout.dtype.kind in "iuf" or is_bfloat16(layout.dtype)
    return layout.block.memory is not None and is_number


#: Floats are summed in blocks if a work-item reduces at least this many elements.
MIN_IN_BLOCKS = 4 * MAX_UNSETTLED


def _for_count(step: Any, folded: int, in_blocks: bool) -> Any:
    """Return a step with the variant of its reduction for this many elements per work-item.

    The sum of few narrow integers has 32 bits. It is computed in 64-bit integers, or in floats that
    are exact. Work-items of GPUs sum fewer floats, and need several accumulators more than blocks.
    """
    if not is_reduction(step) or step[1][1] or step[1][0].of_narrow is None:
        return step
    name, (row, _), references, signature, result = step
    operand, wide = np.dtype(references[0][1]), np.dtype(signature[0])
    if in_blocks and wide.kind == operand.kind == "f" and folded >= MIN_IN_BLOCKS:
        return name, (row.of_many, False), references, signature, result
    if operand.kind not in "biu" or operand.itemsize > 2 or wide.itemsize < 8:
        return step
    if folded > 1 << (31 - 8 * operand.itemsize):
        return step
    return name, (row.of_narrow, False), references, signature, result


def is_row_cached(
    domain: Domain, layouts: Sequence[Layout], machine: Machine, most_bytes: int
) -> bool:
    """Return whether data that a group reads again in a second loop is still in its cache, or is
    in local memory.

    Args:
        domain: the domain.
        layouts: the layouts of the input arrays.
        machine: the device; there must be groups for all of its compute units.
        most_bytes: the capacity of a cache.
    """
    shape = domain.shape
    walked = element_strides(layouts, shape)
    kept_axes = [axis for axis in range(len(shape)) if axis not in domain.axes]
    kept_extents, _ = merge_axes(kept_axes, shape, walked)
    extents, columns = merge_axes(domain.axes, shape, walked)
    output_count, count = math.prod(kept_extents), math.prod(extents)
    nbytes = sum(
        layout.dtype.itemsize
        for layout, column in zip(layouts, columns, strict=True)
        if any(column)
    )
    form = form_of_loops(kept_extents, count, columns, nbytes, machine)
    outputs = outputs_of_group(form, machine)
    if form.staged_rows or form.held:
        return True
    is_small = output_count * count <= CACHED_ELEMENTS and form.name != "lanes"
    if machine.sub_group:
        is_filled = 2 * (output_count // outputs) * form.lanes >= machine.resident_items
    else:
        is_filled = output_count >= 4 * machine.compute_units * outputs
    return is_small or (count * outputs * nbytes <= most_bytes and is_filled)


def count_left(program: ReductionProgram) -> int:
    """Return the number of accumulator sets that a kernel that merges chunks leaves in memory."""
    structure = program.structure
    outputs = structure.lanes * structure.vectors if structure.form == "columns" else 1
    return program.global_range[0] // structure.lanes * outputs


def most_counters(machine: Machine) -> int:
    """Return an upper bound for the outputs or column blocks whose chunks one kernel merges."""
    return max(wanted_groups(machine, machine.lanes), GROUPS_A_UNIT * machine.compute_units)
