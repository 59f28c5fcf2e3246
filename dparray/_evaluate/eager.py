"""Eager calls: one operation on computed arrays, by its plan and without an expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dparray._codegen.canonical import Canonical, call_key
from dparray._evaluate import evaluate
from dparray._evaluate.execute import execute
from dparray._evaluate.expression import Expression, Target
from dparray._evaluate.kernels import obtain
from dparray._evaluate.plan import FusedStep
from dparray._evaluate.readers import lock
from dparray._evaluate.schedule import schedule
from dparray._evaluate.writes import settle_readers
from dparray._graph.node import Node
from dparray._graph.ops import Op
from dparray._graph.reductions import Reduce
from dparray._layout import Layout
from dparray._runtime import access
from dparray._runtime.submission import Packed
from dparray.memory.blocks import planned_layout
from dparray.memory.packed import PackedArray

# The one operation is asked for; no inner value is stored, and nothing computed beside it.
_ASKED = ((0,), (), 0)


def compute_known(
    op: Op | Reduce,
    operands: Sequence[Any],
    loop: tuple[Any, ...],
    shape: tuple[int, ...],
    queue: Any,
    usm_type: str,
    axes: tuple[int, ...] | None = None,
) -> Layout | None:
    """The layout of one operation's result, computed by the plan that is there; else ``None``.

    What an eager call needs: no expression is made of it, since nothing can join it.

    Args:
        op: the operation or the reduction.
        operands: arguments (:class:`dparray.memory.packed.PackedArray`) and Python scalars.
        loop: the dtype each operand is converted to, then the result's.
        shape: the result's shape.
        queue, usm_type: the operands' common placement.
        axes: the order of the result's axes, as of a node.
    """
    if access.holds:
        access.before_read(*(each.layout for each in operands if type(each) is PackedArray))
    form, arrays, scalars = call_key(op, operands, loop, shape, usm_type, axes)
    plan = evaluate.plans.get(evaluate.plan_key(form, _ASKED, queue, None))
    if plan is None:
        return None
    leaves, packed = _leaves_of(arrays)
    found: Layout = execute(plan, queue, leaves, scalars, None, packed)[plan.results[0]]
    return found


def write_known(
    op: Op | Reduce,
    operands: Sequence[Any],
    loop: tuple[Any, ...],
    target: Layout,
    queue: Any,
    usm_type: str,
) -> bool:
    """Write one operation's result to a layout of its shape by the plan that is there, if it is.

    The arguments are those of :func:`compute_known`.
    """
    if access.holds:
        access.before_read(*(each.layout for each in operands if type(each) is PackedArray))
        access.before_write(target)
    block, offset, shape, strides, dtype = target
    with lock:
        settle_readers(block)
        form, arrays, scalars = call_key(op, operands, loop, shape, usm_type, None)
        overlapped: tuple[int, ...] = ()
        for number, array in enumerate(arrays):
            if array.block.memory is block.memory:
                if array.offset != offset or array.form != (dtype, shape, strides, False):
                    return False  # what is written may be read afterwards
                overlapped += (number,)
        written = Target(dtype, shape, strides, block.usm_type, overlapped)
        plan = evaluate.plans.get(evaluate.plan_key(form, _ASKED, queue, written))
        if plan is not None:
            leaves, packed = _leaves_of(arrays)
            execute(plan, queue, leaves, scalars, target, packed)
    return plan is not None


def _leaves_of(arrays: Sequence[PackedArray]) -> tuple[list[Layout], list[Packed]]:
    """The layouts of arguments, and the pointers to their elements."""
    leaves, packed = [], []
    for array in arrays:
        leaves.append(array.layout)
        packed.append(array.pointer or array.pack_pointer())
    return leaves, packed


def compile_alone(node: Node) -> None:
    """Obtain the kernel of one operation, its operands seen as computed; nothing is computed.

    So that what the compiler finds wrong in a user's function is said at the user's line.

    Raises:
        KernelCompileError: the function does not compile.
        UnsupportedDeviceError: it computes in float64, which the device does not.
    """
    operands = tuple(
        Node.leaf(
            planned_layout(part.queue, part.usm_type, part.shape, part.dtype),
            part.queue,
            part.usm_type,
        )
        if type(part) is Node and part.layout is None
        else part
        for part in node.operands
    )
    assert node.op is not None
    placement = (node.shape, node.size, node.queue, node.usm_type)
    alone = Node(node.op, operands, node.loop, *placement)
    with lock:
        traits = evaluate.traits_of(node.queue)
        step = schedule(Expression([alone], (0,)), Canonical([alone]), traits).steps[0]
        assert isinstance(step, FusedStep)
        obtain(step.launches[0]).check_device(node.queue.sycl_device)
