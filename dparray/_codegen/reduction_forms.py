"""The choice of a form for a kernel with reductions, by the shape and the device.

The forms are described in :mod:`dparray._codegen.reduction`. A CPU device traverses memory once for
each vector of a group, and few groups fill it. A GPU runs tens of thousands of work-items
concurrently and reads memory efficiently only if adjacent lanes of a sub-group read adjacent
elements. Each therefore has its own rules, and only :func:`choose` checks the device type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from dparray._codegen.domain import Machine
from dparray._codegen.elementwise import SMALL_ELEMENT
from dparray._codegen.reduction_steps import (
    ACCUMULATORS,
    MAX_STEPS_WRITTEN,
    accumulator_bytes,
    is_reduction,
    power_of_two,
)
from dparray._layout import Layout

# The work-items of a group in which each reduces its own output.
ITEMS = 64
# Groups per compute unit: enough to balance the load.
GROUPS_A_UNIT = 64
# The maximum number of vectors of adjacent outputs that a work-item reduces in columns, so that a
# group reads as much of each row as possible at a time; the number of accumulators that registers
# hold; and fewer if there would be too few groups for the device (measured: 16 vectors reach the
# memory bandwidth, one vector a third of it).
VECTORS = 16
REGISTERS = 32
MIN_GROUPS_A_UNIT = 4
# Up to this many elements a second launch, for chunks, costs more than fewer vectors.
MIN_CHUNKED = 1 << 21
# Fewer elements in short rows are not worth the second launch, which merges the blocks' results.
MIN_IN_SHORT_ROWS = 1 << 19
# More vectors than this gain nothing in kernels with several loops.
MIN_VECTORS = 4
# Reduced lengths up to the first are unrolled. Up to the second, one work-item reduces them all,
# unless they are on the inner axes and give each lane of a group this many (measured: sums of rows
# of 128 take 0.4 of the time, `x / x.sum(axis=1, keepdims=True)` 0.25).
UNROLLED = 16
SERIAL = 256
MIN_TRIPS = 4
# Rows longer than the unrolled ones and at most this long share a group if there are many of them:
# they then share its barrier and its merge.
MAX_IN_ROW = 1024
# Up to this many elements, several loops traverse data in a cache.
CACHED_ELEMENTS = 1 << 19
# Up to this many elements, no second launch is used, although the work-items then run in sequence.
ALONE = 2048
# More chunks are merged by another kernel, which has more than one group per output.
MAX_MERGED = 1024

# On a GPU: the minimum number of reduced rows in a chunk of columns; the maximum number of vectors
# of adjacent outputs per work-item (more only add waiting, and hide no extra latency); and the
# target number of groups, as a multiple of the number that runs concurrently.
GPU_SERIAL = 16
GPU_VECTORS = 2
GPU_WAVES = 2
# Rows of columns whose loads are in flight together, at most.
MAX_TOGETHER = 16
# Rows that are copied to local memory take at most this fraction of it for a group, so that some
# groups of a compute unit load while others compute.
STAGED_SHARE = 4
# Rows that registers hold take at most the first number of bytes of a work-item, if a sub-group has
# a row, and about the second, if a group has one. Their loops are unrolled up to the last number of
# steps.
HELD_BYTES = 128
HELD_BYTES_IN_GROUPS = 64
MAX_HELD_STEPS = 384


class Form(NamedTuple):
    """The form of a kernel, and its division into groups and chunks.

    Attributes:
        name: see :mod:`dparray._codegen.reduction`.
        vectors: the vectors of adjacent outputs, or slots of short rows, of a work-item.
        chunks: the number of chunks of reduced elements.
        lanes: the work-items of a group.
        staged_rows: the outputs of a group whose elements local memory holds, or 0.
        held: the elements that registers of a work-item hold instead, or 0.
        loads_vectors: whether a work-item in columns has adjacent outputs.
    """

    name: str
    vectors: int
    chunks: int
    lanes: int
    staged_rows: int = 0
    held: int = 0
    loads_vectors: bool = False


class Question(NamedTuple):
    """The facts about a kernel that determine its form.

    Attributes:
        kept_extents, extents: the lengths of the kept and of the reduced axes, with contiguous axes
            collapsed.
        columns: the strides over the reduced axes of each large array.
        read: the strides over the kept and the reduced axes of each input array.
        arrays: the layouts of these arrays.
        steps: the steps of the kernel.
        is_whole: whether the reduced elements cannot be divided, because a loop depends on another.
        stores_elements: whether values of the domain's shape are stored.
        calls_user: whether a user-defined function is called.
        leaves_accumulators: whether accumulators are left in memory for another kernel.
        element_bytes: the size of one element of each array that may be copied to local memory.
    """

    kept_extents: Sequence[int]
    extents: Sequence[int]
    columns: Sequence[Sequence[int]]
    read: Sequence[tuple[Sequence[int], Sequence[int]]]
    arrays: Sequence[Layout]
    steps: Sequence[Any]
    is_whole: bool
    stores_elements: bool
    calls_user: bool
    leaves_accumulators: bool
    element_bytes: int


def choose(of: Question, machine: Machine) -> Form:
    """Return the form of a kernel on a device."""
    output_count, count = math.prod(of.kept_extents), math.prod(of.extents)
    # A user-defined function may end a work-item while the others of its sub-group wait for it.
    is_gpu = machine.sub_group > 0 and not of.calls_user
    lanes, most = machine.lanes, most_vectors(of.steps)
    if not (of.is_whole or of.stores_elements) and has_short_rows(
        of.kept_extents, of.extents, of.read, machine
    ):
        vectors = vectors_of_rows(output_count, lanes, min(most, GPU_VECTORS) if is_gpu else most)
        blocks = count // (vectors * lanes // output_count)
        serial = GPU_SERIAL if is_gpu else SERIAL
        chunks = min(blocks // serial, wanted_groups(machine, lanes))
        return Form("short rows", vectors, chunks, lanes)
    if is_gpu:
        form = _gpu_form(of.kept_extents, count, of.columns, machine, of.is_whole, most)
        if form.name == "columns":
            return _with_vectors(form, of, machine, most)
        # Copied rows leave this share of local memory to the accumulators of work-items.
        share = machine.local_memory * (STAGED_SHARE - 1) // STAGED_SHARE
        share //= max(1, accumulator_bytes(of.steps))
        most = min(machine.group, share * (machine.sub_group if machine.is_fixed else 1))
        return staged(form, count, of.element_bytes, len(of.steps), machine._replace(group=most))
    if (
        not (of.is_whole or of.stores_elements or of.calls_user or of.leaves_accumulators)
        and (UNROLLED < count <= MAX_IN_ROW or (count == UNROLLED and are_small(of.arrays)))
        and lanes <= count
        and any(column[-1] == 1 for column in of.columns)
        and output_count >= MIN_GROUPS_A_UNIT * machine.compute_units * lanes
        and lanes * (lanes + 1) * accumulator_bytes(of.steps) <= machine.local_memory
    ):
        return Form("rows", 1, 1, lanes)
    name, vectors, chunks = _cpu_form(
        of.kept_extents, count, of.columns, machine, of.is_whole, most
    )
    return Form(name, vectors, chunks, lanes)


def _with_vectors(form: Form, of: Question, machine: Machine, most: int) -> Form:
    """Return the form of columns with vector loads, if all arrays have such rows.

    Each vector of a row is then 16 bytes, and begins at a multiple of its length.
    """
    largest = max((layout.dtype.itemsize for layout in of.arrays), default=0)
    row, count = of.kept_extents[-1], math.prod(of.extents)
    length = min(machine.bytes_in_flight // largest, most) if largest else 0
    if (
        length < 2
        or of.is_whole
        or of.stores_elements
        or any(is_reduction(step) and step[1][0].settle for step in of.steps)
        or rows_together(of.arrays, of.steps, length, machine, True) < 2
        or row % length
        or row < form.lanes * length
        or any(layout.dtype.kind not in "iuf" for layout in of.arrays)
        or any(layout.block.memory is None for layout in of.arrays)
        or not all(any(column) for _, column in of.read)
        or any(steps[-1] != 1 for steps, _ in of.read)
        or any(stride % length for steps, column in of.read for stride in (*steps[:-1], *column))
    ):
        return form
    groups = column_groups(of.kept_extents, form.lanes * length)
    wanted = -(-wanted_groups(machine, form.lanes) // groups)
    chunks = max(1, min(count // GPU_SERIAL, wanted))
    if groups * chunks < GPU_WAVES * machine.compute_units:
        return form
    return form._replace(vectors=length, chunks=chunks, loads_vectors=True)


def staged(form: Form, count: int, element_bytes: int, steps: int, machine: Machine) -> Form:
    """Return the form with rows in registers or in local memory, if they fit.

    A group of one row has as many work-items as keep a unit full: the longer a row is, the fewer
    groups share the unit's local memory.

    Args:
        form: the form of the kernel.
        count: the number of reduced elements.
        element_bytes: see :class:`Question`.
        steps: the number of steps.
        machine: the device.
    """
    nbytes, limit = count * element_bytes, machine.local_memory // STAGED_SHARE
    lanes, rows = form.lanes, form.lanes // machine.sub_group
    if not nbytes or form.chunks > 1 or form.name not in ("lanes", "sub-groups"):
        return form
    is_short = machine.sub_group <= count <= MAX_IN_ROW
    held = held_in_registers(form, count, element_bytes, steps, machine)
    if held is not None or nbytes > limit:
        return held or form
    if form.name == "sub-groups" and is_short and rows * nbytes <= limit:
        return form._replace(staged_rows=rows)
    if count < lanes:  # a work-item copies its first element in place of those after the last
        return form
    groups = machine.local_memory // nbytes
    while lanes * 2 <= min(machine.group, count) and lanes * groups < machine.unit_items:
        lanes *= 2
    return form._replace(name="lanes", lanes=lanes, staged_rows=1)


def held_in_registers(
    form: Form, count: int, element_bytes: int, steps: int, machine: Machine
) -> Form | None:
    """Return the form with rows in registers; ``None`` if they do not fit.

    Args: see :func:`staged`.
    """
    if not machine.bytes_in_flight:
        return None
    name, lanes, most = "sub-groups", machine.sub_group, HELD_BYTES // element_bytes
    if form.name == "lanes" or not machine.is_fixed or -(-count // lanes) > most:
        name, lanes = "lanes", form.lanes
        most_lanes = min(machine.group, count)
        while 2 * lanes <= most_lanes and -(-count // lanes) * element_bytes > HELD_BYTES_IN_GROUPS:
            lanes *= 2
    held = -(-count // lanes)
    if count < lanes or held > most or held * steps > MAX_HELD_STEPS:
        return None
    return form._replace(name=name, lanes=max(lanes, form.lanes), held=held)


def form_of_loops(
    kept_extents: Sequence[int],
    count: int,
    columns: Sequence[Sequence[int]],
    element_bytes: int,
    machine: Machine,
) -> Form:
    """Return the form of a kernel with several loops, and the outputs of one of its groups."""
    if machine.sub_group:
        form = _gpu_form(kept_extents, count, columns, machine, True, VECTORS)
        return staged(form, count, element_bytes, 1, machine)
    name, vectors, chunks = _cpu_form(kept_extents, count, columns, machine, True, VECTORS)
    return Form(name, vectors, chunks, machine.lanes)


def outputs_of_group(form: Form, machine: Machine) -> int:
    """Return the number of outputs that a group of a form reduces."""
    if form.name == "columns":
        return form.lanes * form.vectors
    if form.name == "sub-groups":
        return form.lanes // machine.sub_group
    return ITEMS if form.name == "items" else 1


def wanted_groups(machine: Machine, lanes: int) -> int:
    """Return the groups that fill the device and balance its units."""
    if not machine.sub_group:
        return GROUPS_A_UNIT * machine.compute_units
    groups = min(MAX_MERGED, max(1, GPU_WAVES * machine.resident_items // lanes))
    # Each unit gets as many groups, if they are as fast as the memory.
    rest = groups % machine.compute_units if machine.bytes_in_flight else 0
    return groups - rest or groups


def _gpu_form(
    kept_extents: Sequence[int],
    count: int,
    columns: Sequence[Sequence[int]],
    machine: Machine,
    is_whole: bool,
    most_vectors: int,
) -> Form:
    """Choose the form for GPUs, where lanes read memory together and thousands run concurrently."""
    output_count, row, sub_group = math.prod(kept_extents), kept_extents[-1], machine.sub_group
    lanes = max(sub_group, machine.lanes // sub_group * sub_group)
    if count <= UNROLLED:
        return Form("items", 1, 1, lanes)
    if output_count == 1 or any(column[-1] == 1 for column in columns):
        if count <= MAX_IN_ROW or output_count * sub_group >= machine.resident_items:
            return Form("sub-groups", 1, 1, lanes)
        most = max(1, count // (lanes * ACCUMULATORS["lanes"]))
        wanted = -(-wanted_groups(machine, lanes) // output_count)
        return Form("lanes", 1, 1 if is_whole else min(most, wanted), lanes)
    if row < lanes:
        lanes = sub_group
    if row >= lanes:
        vectors = 1
        limit = min(most_vectors, GPU_VECTORS, row // lanes)
        while (
            vectors * 2 <= limit
            and column_groups(kept_extents, lanes * vectors * 2) * lanes >= machine.resident_items
        ):
            vectors *= 2
        groups = column_groups(kept_extents, lanes * vectors)
        wanted = -(-wanted_groups(machine, lanes) // groups)
        chunks = 1 if is_whole else max(1, min(count // GPU_SERIAL, wanted))
        return Form("columns", vectors, chunks, lanes)
    return Form("sub-groups", 1, 1, lanes)


def _cpu_form(
    kept_extents: Sequence[int],
    count: int,
    columns: Sequence[Sequence[int]],
    machine: Machine,
    is_whole: bool,
    most_vectors: int,
) -> tuple[str, int, int]:
    """Choose the form, vectors and chunks for CPUs, where a group is a vector of a core."""
    wanted = wanted_groups(machine, machine.lanes)
    output_count, row = math.prod(kept_extents), kept_extents[-1]
    if output_count * count <= ALONE:
        return "items", 1, 1
    inner_is_reduced = any(column[-1] == 1 for column in columns) or output_count == 1
    has_rows = row >= machine.lanes  # a group of columns has this many adjacent outputs
    fills_lanes = inner_is_reduced and count >= MIN_TRIPS * machine.lanes
    if fills_lanes or (count > SERIAL and (inner_is_reduced or not has_rows)):
        most = max(1, count // (machine.lanes * ACCUMULATORS["lanes"] * 4))
        return "lanes", 1, 1 if is_whole else min(most, -(-wanted // output_count))
    if not has_rows or (len(kept_extents) == 1 and count <= UNROLLED):
        return "items", 1, 1
    vectors = min(MIN_VECTORS if is_whole else most_vectors, power_of_two(row // machine.lanes))
    balanced = vectors
    fewest_groups = MIN_GROUPS_A_UNIT * machine.compute_units
    while balanced > 1 and column_groups(kept_extents, machine.lanes * balanced) < fewest_groups:
        balanced //= 2
    is_enough = balanced >= min(vectors, MIN_VECTORS) and output_count * count <= MIN_CHUNKED
    if is_whole or is_enough or count < 2 * SERIAL:
        return "columns", balanced, 1
    groups = column_groups(kept_extents, machine.lanes * vectors)
    return "columns", vectors, min(count // SERIAL, -(-wanted // groups))


def are_small(layouts: Sequence[Layout]) -> bool:
    """Return whether elements are gathered because adjacent work-items read adjacent rows."""
    return all(layout.dtype.itemsize <= SMALL_ELEMENT for layout in layouts)


def has_short_rows(
    kept_extents: Sequence[int],
    extents: Sequence[int],
    read: Sequence[tuple[Sequence[int], Sequence[int]]],
    machine: Machine,
) -> bool:
    """Return whether there are many contiguous rows that are shorter than a vector."""
    row, count = kept_extents[-1], extents[-1]
    return (
        len(kept_extents) == len(extents) == 1
        and 1 < row < (machine.sub_group or machine.lanes)
        and math.lcm(row, machine.lanes) <= VECTORS * machine.lanes
        and row * count >= MIN_IN_SHORT_ROWS
        and any(any(steps) and any(column) for steps, column in read)
        and all(
            list(steps) == [1] and list(column) == [row]
            for steps, column in read
            if any(steps) and any(column)
        )
    )


def vectors_of_rows(row: int, lanes: int, most: int) -> int:
    """Return the number of vectors, about ``most``, that hold a whole number of rows."""
    fewest = math.lcm(row, lanes) // lanes
    return fewest * max(1, most // fewest)


def rows_together(
    arrays: Sequence[Layout],
    steps: Sequence[Any],
    vectors: int,
    machine: Machine,
    loads_vectors: bool = False,
) -> int:
    """Return the rows of columns that a work-item loads before it adds the first.

    The compiler keeps few loads in flight by itself: their number times the vectors' is that of
    twice the bytes of an element-wise kernel, since additions follow in sequence; of as many bytes
    as registers hold, if it loads vectors.
    """
    nbytes = vectors * sum(layout.dtype.itemsize for layout in arrays)
    if not machine.bytes_in_flight or not nbytes:
        return 1
    most = HELD_BYTES if loads_vectors else 2 * machine.bytes_in_flight
    rows = power_of_two(max(1, min(MAX_TOGETHER, most // nbytes)))
    while rows > 1 and rows * vectors * len(steps) > 2 * MAX_STEPS_WRITTEN:
        rows //= 2
    return rows


def column_groups(kept_extents: Sequence[int], width: int) -> int:
    """Return the number of groups that reduce all outputs in columns of the given width."""
    return math.prod(kept_extents[:-1]) * -(-kept_extents[-1] // width)


def most_vectors(steps: Sequence[Any]) -> int:
    """Return the number of vectors of outputs that fit in registers and in the source limit."""
    sets = sum(len(step[1][0].accumulators) for step in steps if is_reduction(step))
    return power_of_two(max(1, min(VECTORS, REGISTERS // sets, MAX_STEPS_WRITTEN // len(steps))))
