"""Create graph nodes for arrays: each pending array has one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from dparray import _dtypes, _layout, _placement, config
from dparray._array.ndarray import ndarray
from dparray._evaluate import deferred_placement, dependents, evaluate, host
from dparray._evaluate.limits import MAX_COST, MAX_LEAVES
from dparray._graph.assembly import Box, assembly, flattened
from dparray._graph.node import Node, Scalar
from dparray._graph.ops import CONVERT, WHERE, Op
from dparray._graph.reductions import Reduce
from dparray._placement import Placement
from dparray.memory import blocks, pool

#: A placement policy gets expressions that are this many times as large, since it has more choices.
_WIDER = 8

#: Rolled and joined arrays of fewer bytes stay pending even on devices with a memory limit.
_LARGE = 1 << 16


def array_of_operation(
    op: Op | Reduce,
    operands: Sequence[Any],
    signature: tuple[np.dtype[Any], ...],
    shape: tuple[int, ...],
    placement: Placement,
    keeps_order: bool = True,
) -> ndarray:
    """Return a new array for an operation or a reduction: pending, or computed if it must be.

    The axes of an element-wise result follow NumPy's order ``"K"``, unless ``keeps_order`` is
    false.
    """
    if _placement.in_force:
        placement = _placement.result_placement(placement)
    if _dtypes.is_bfloat16_used and op is not CONVERT and _meets_bfloat16(operands, signature):
        return _rounded_to_bfloat16(op, operands, signature, shape, placement, keeps_order)
    return ndarray._pending(
        register(node_of(op, operands, signature, shape, placement, keeps_order))
    )


def _meets_bfloat16(operands: Sequence[Any], signature: tuple[np.dtype[Any], ...]) -> bool:
    read = (each.dtype for each in operands if isinstance(each, ndarray))
    return any(map(_dtypes.is_bfloat16, (*signature, *read)))


def _rounded_to_bfloat16(
    op: Op | Reduce,
    operands: Sequence[Any],
    signature: tuple[np.dtype[Any], ...],
    shape: tuple[int, ...],
    placement: Placement,
    keeps_order: bool,
) -> ndarray:
    """Return the result for bfloat16, computed in float32: only conversions support bfloat16."""
    single = _dtypes.float32
    widened = [
        array_of_operation(CONVERT, (each,), (single, single), each.shape, placement)
        if isinstance(each, ndarray) and _dtypes.is_bfloat16(each.dtype)
        else float(dtype.type(each))
        if not isinstance(each, ndarray) and _dtypes.is_bfloat16(dtype)
        else each
        for each, dtype in zip(operands, signature, strict=False)
    ]
    wide = tuple([single if _dtypes.is_bfloat16(each) else each for each in signature])
    result = array_of_operation(op, widened, wide, shape, placement, keeps_order)
    if signature[-1] == wide[-1]:
        return result
    return array_of_operation(CONVERT, (result,), (signature[-1],) * 2, shape, placement)


def _order_of(
    op: Op | Reduce, shape: tuple[int, ...], operands: Sequence[Any]
) -> tuple[int, ...] | None:
    """Return the axis order of a result in memory; operands are arrays or nodes."""
    if not operands:
        return None
    if isinstance(op, Reduce):
        strides = operands[0].strides
        if len(strides) != len(shape):
            strides = tuple([each for axis, each in enumerate(strides) if axis not in op.axes])
        return None if op.merges else _layout.order_of_axes(shape, strides)
    if op is CONVERT:
        strides = operands[0].strides
        if operands[0].shape == shape:
            return _layout.order_of_copy(shape, strides)
    return _layout.order_of_axes(
        shape,
        *[_layout.broadcast_strides(op.name, x.shape, x.strides, shape) for x in operands],
    )


def array_of_node(node: Node) -> ndarray:
    """Return a new array for an expression that no other array has."""
    return ndarray._pending(register(node))


def register(node: Node) -> Node:
    """Return the node, registered with its operands; computed if it must not stay pending."""
    if _placement.in_force:
        deferred_placement.note(node)
    may_wait = config.lazy
    for operand in node.operands:
        if type(operand) is Node:
            may_wait &= dependents.add_dependent(node, operand)
    if not may_wait:
        evaluate.evaluate(node)
    return node


def node_of(
    op: Op | Reduce,
    operands: Sequence[Any],
    signature: tuple[np.dtype[Any], ...],
    shape: tuple[int, ...],
    placement: Placement,
    keeps_order: bool = True,
) -> Node:
    """Return the node of an operation; operands that are too large are computed first."""
    parts = tuple(
        [
            (
                operand._node
                # Pending, or in memory; host-computed numbers are in neither.
                if operand._block is not None or operand._host_view is None
                else _part(op, operand, shape)
            )
            if isinstance(operand, ndarray)
            else Scalar(operand)
            for operand in operands
        ]
    )
    node = Node(op, parts, signature, shape, prod(shape), *placement)
    if keeps_order and len(shape) > 1:
        for part in parts:
            if type(part) is Node and (part.axes is not None or op is CONVERT):
                node.axes = _order_of(op, shape, [each for each in parts if type(each) is Node])
                break
    if node.cost > MAX_COST or node.leaves > MAX_LEAVES:
        return _within_limits(node)
    return node


def _within_limits(node: Node) -> Node:
    """Return the node of an operation, with computed operands if its expression is too large."""
    node.recount()
    wider = _WIDER if _placement.in_force else 1
    if node.cost > MAX_COST * wider or node.leaves > MAX_LEAVES * wider:
        op, parts = node.op, node.operands
        assert op is not None
        evaluate.evaluate(*(part for part in parts if type(part) is Node))
        attributes = node.size, node.queue, node.usm_type, node.axes
        node = Node(op, parts, node.signature, node.shape, *attributes)
    return node


def assembled_array(
    name: str,
    arrays: Sequence[ndarray],
    boxes: tuple[Box, ...],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    placement: Placement,
    axes: tuple[int, ...] | None = None,
    fills: bool = False,
) -> ndarray:
    """Return a new array of boxes of other arrays: pending, or computed if it must not stay so.

    ``axes`` is the order of its axes in memory; ``None`` means C order. If ``fills`` is set, there
    is one box, and all other elements are zero.
    """
    if _placement.in_force:
        placement = _placement.result_placement(placement)
    nodes, flat = [x._node for x in arrays], boxes
    if not fills:
        nodes, flat = flattened(nodes, boxes)
    pending = [each for each in nodes if each.layout is None]
    if pending and not _placement.in_force:
        # A kernel needs them in memory. Pending ones would be parts of ever larger expressions.
        evaluate.evaluate(*pending)
    signature = (dtype,) * (len(nodes) + 1)
    op = assembly(name, flat, fills)
    node = Node(op, tuple(nodes), signature, shape, prod(shape), *placement, axes)
    if node.cost > MAX_COST or node.leaves > MAX_LEAVES:
        node = _within_limits(node)
    node = register(node)
    if node.layout is None and not _placement.in_force and _may_lack_memory_later(node):
        evaluate.evaluate(node)
    return ndarray._pending(node)


def _may_lack_memory_later(node: Node) -> bool:
    """Return whether memory for an assembled array is to be taken now, while it is known to fit.

    A waiting array keeps its operands, so that ``del x`` frees nothing, and takes its own memory in
    addition later. Under a limit, a program that deletes operands would no longer fit. An array
    that repeats its operands may not wait either, since it needs far more memory than they free.
    """
    nbytes = node.size * node.dtype.itemsize
    if nbytes < _LARGE:
        return False
    held: dict[int, int] = {}
    for part in node.operands:
        if type(part) is Node:
            block = None if part.layout is None else part.layout.block
            of_part = part.size * part.dtype.itemsize if block is None else block.nbytes
            held[id(block or part)] = of_part
    return nbytes >= 2 * sum(held.values()) or pool.is_limited()


def _part(op: Op | Reduce, operand: ndarray, shape: tuple[int, ...]) -> Node | Scalar:
    """Return a host-computed operand: a 0-d array next to arrays becomes a scalar of an
    element-wise operation, so that it needs no memory.
    """
    value = None
    if shape and type(op) is Op and op is not WHERE:
        value = host_number(operand)
    return operand._node if value is None else Scalar(value)


def host_number(x: ndarray, dtype: np.dtype[Any] | None = None) -> Any:
    """Return the value of a host-computed 0-d array that is not in USM memory, converted to a dtype
    if given; ``None`` for other arrays.
    """
    seen = x._host_view
    if seen is None or seen.ndim or not x.is_only_on_host:
        return None
    if dtype is None or seen.dtype == dtype:
        return seen.item()
    converted = host.call(seen.astype, dtype)
    return None if converted is None else converted.item()


def positions(
    placement: Placement, shape: tuple[int, ...], strides: tuple[int, ...] | None = None
) -> ndarray:
    """Return a pending int64 array of positions along its axes: `sum(index * stride)`.

    In a kernel this is index arithmetic. The strides default to those of a contiguous array.
    """
    chosen = _layout.contiguous_strides(shape, 1) if strides is None else strides
    highest = sum((extent - 1) * stride for extent, stride in zip(shape, chosen, strict=True))
    block = blocks.Positions(*placement, max(highest, 0) + 1)
    layout = _layout.Layout(block, 0, shape, tuple(8 * each for each in chosen), _dtypes.int64)
    counted = (_dtypes.int64, _dtypes.int64)
    leaf = Node.leaf(layout, *placement)
    return array_of_node(Node(CONVERT, (leaf,), counted, shape, prod(shape), *placement))


def index_along(placement: Placement, shape: tuple[int, ...], axis: int) -> Node:
    """Return each element's int64 coordinate on an axis: index arithmetic in kernels, without
    memory.
    """
    block = blocks.Positions(*placement, shape[axis])
    strides = tuple(8 * (each == axis) for each in range(len(shape)))
    return Node.leaf(_layout.Layout(block, 0, shape, strides, _dtypes.int64), *placement)
