"""Reductions in several passes: a kernel leaves accumulators in memory, the next merges them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dparray._codegen import reduction, reduction_steps
from dparray._codegen.domain import Domain, Machine
from dparray._codegen.reduction import ReductionProgram, linearize_reduction
from dparray._codegen.values import element_key
from dparray._evaluate.fusion import FusionGroup
from dparray._graph.node import Node, pending_order
from dparray._graph.reductions import Reduce


class Pass(NamedTuple):
    """One of the kernels that compute values with reductions.

    Attributes:
        program: the kernel.
        order: the nodes in it, operands before users.
        stored: the outputs that it stores.
        left: the outputs that another kernel computes from the accumulators.
        shape, strides: those of the accumulators; strides in elements.
    """

    program: ReductionProgram
    order: list[Node]
    stored: list[tuple[Node, Any]]
    left: list[tuple[Node, Any]]
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def left_dtypes(self) -> list[np.dtype[Any]]:
        """The dtype of each array of accumulators that the kernel leaves in memory."""
        structure = self.program.structure
        if not structure.stores_accumulators:
            return []
        return [dtype for _, dtype in reduction_steps.shared_accumulators(structure)]


def first_pass(outputs: Sequence[tuple[Node, Any]], group: FusionGroup, machine: Machine) -> Pass:
    """Return the first kernel for values with reductions, which is usually the only one."""
    domain = group.domain
    assert domain is not None
    walked = group.first_domain
    if walked is domain:
        program = linearize_reduction(
            group.order,
            outputs,
            domain,
            group.dropped,
            group.rows,
            machine,
            group.elements_last,
        )
        if program.partials == 1 or program.structure.merges_chunks:
            count = reduction.count_left(program)
            return Pass(program, group.order, list(outputs), [], (count,), (1,))
    reductions = [node for node in group.order if type(node.op) is Reduce]
    stored = [each for each in outputs if id(each[0]) not in group.rows]
    left = [each for each in outputs if id(each[0]) in group.rows]
    order = pending_order([*reductions, *(value for value, _ in stored)])
    rows = frozenset(map(id, reductions))
    program = linearize_reduction(
        order, stored, walked, (), rows, machine, leaves_accumulators=True
    )
    shape, strides = _partial_layout(walked, program.partials, program.partials_are_inner)
    return Pass(program, order, stored, left, shape, strides)


def next_group(done: Pass, accumulators: list[Any], group: FusionGroup) -> FusionGroup:
    """Return the group that remains after a pass; its reductions merge ``accumulators``."""
    domain = group.domain
    assert domain is not None
    for node in done.order:
        if type(node.op) is Reduce:
            _merge_instead(node, accumulators)
    return FusionGroup(
        pending_order([value for value, _ in done.left]),
        Domain(done.shape, domain.axes),
        group.rows,
        group.dropped,
    )


def must_generate(structure: Any) -> bool:
    """Return whether a structure has a reduction that only generated kernels can compute."""
    rows = [row for _, row, _ in reduction_steps.reductions_of(structure)]
    return not all(row.has_library for row in rows)


def local_memory(program: ReductionProgram) -> tuple[tuple[np.dtype[Any], int], ...]:
    """Return dtype and length of each array that a kernel with reductions has in local memory."""
    structure = program.structure
    arrays = [(np.dtype(np.int32), 1)] if structure.merges_chunks else []
    if structure.form in ("lanes", "rows"):
        lanes = program.local_range[0]
        if structure.merges_in_sub_groups:  # only a lane of each sub-group stores accumulators
            lanes //= max(1, structure.sub_group)
        count = lanes if structure.form == "lanes" else lanes * (lanes + 1)
        arrays += [(dtype, count) for _, dtype in reduction_steps.shared_accumulators(structure)]
    keys = [element_key(structure.arrays[number][0]) for number in structure.in_local_memory]
    arrays += [(np.dtype(key), program.staged) for key in keys]
    return tuple(arrays)


def _merge_instead(node: Node, accumulators: list[Any]) -> None:
    """Turn a reduction into one that merges accumulators, which are removed from the list."""
    op = node.op
    assert type(op) is Reduce
    row = op.reduction
    leaves = [Node.leaf(accumulators.pop(0), node.queue, node.usm_type) for _ in row.accumulators]
    scalars = node.operands[len(node.operands) - row.scalars :] if row.scalars else ()
    kinds = node.signature[len(node.signature) - 1 - row.scalars :]
    node.become(
        op._replace(merges=True),
        *leaves,
        *scalars,
        signature=(*(leaf.dtype for leaf in leaves), *kinds),
    )


def _partial_layout(
    walked: Domain, partials: int, are_inner: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shape and strides, in elements, of the accumulators that a kernel leaves for a domain.

    The first reduced axis has the accumulators of one output, the others have length 1.
    """
    shape = list(walked.row)
    strides = [0] * len(shape)
    step = partials if are_inner else 1
    for axis in reversed(range(len(shape))):
        if axis not in walked.axes:
            strides[axis] = step
            step *= shape[axis]
    if walked.axes:
        shape[walked.axes[0]] = partials
        strides[walked.axes[0]] = 1 if are_inner else step
    return tuple(shape), tuple(strides)
