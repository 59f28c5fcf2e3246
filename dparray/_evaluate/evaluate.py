"""Evaluate an expression: turn it into work on a queue.

The expression signature finds the bound plan of an expression
(:mod:`dparray._evaluate.bound_plan`). :mod:`dparray._evaluate.schedule` makes the plan at the first
use, and :mod:`dparray._evaluate.execute` runs it. Its steps have three backends:

- *host*: the calling thread computes few elements in host-accessible memory, because a launch would
  cost more than the work;
- *fused*: one generated kernel for the whole expression, or for the largest possible part;
- *library*: one kernel of a library for each operation, for operations without generated kernels,
  and for expressions that are not worth compiling yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dparray import _hooks, config
from dparray._codegen.canonical import Canonical
from dparray._compiler import compile
from dparray._driver import traits_of
from dparray._evaluate import deferred_placement, host, limits, schedule
from dparray._evaluate.bound_plan import BoundPlan, keep, plans
from dparray._evaluate.dependents import externally_referenced, lock, siblings_of
from dparray._evaluate.expression import Expression, PlanTraits, Target
from dparray._evaluate.fusion import with_tail
from dparray._evaluate.kernels import obtain
from dparray._evaluate.plan import FusedStep
from dparray._evaluate.tuning import machine_of, tuning_of
from dparray._graph.assembly import is_extended
from dparray._graph.node import Node, Scalar, memory_read_by, pending_order
from dparray._graph.ops import Op
from dparray._layout import Layout
from dparray._runtime import host_maps
from dparray.memory.blocks import allocate, planned_layout
from dparray.memory.libraries import has_kernels

#: Called before one node is evaluated alone, with the bound plan, the signature, and the nodes.
observers: list[Callable[[BoundPlan, Canonical, Sequence[Node]], None]] = []


def forget() -> None:
    """Drop all plans and kernels in memory, as in a new process; kernels on disk stay."""
    schedule.forget()
    compile.forget()


def evaluate(*nodes: Node) -> None:
    """Compute pending nodes; return when the work is submitted, not when it is done.

    Nodes of one shape on one queue share a kernel. So do inner values that are referenced from
    outside, if storing them costs less than recomputing them.
    """
    if _hooks.subscribers:
        _hooks.emit("evaluate", nodes=nodes)
    with lock:
        if deferred_placement.nodes:
            nodes = tuple(deferred_placement.evaluate(nodes))
        for group in (nodes,) if len(nodes) == 1 else grouped(nodes):
            if group[0].size == 0:  # There is nothing to compute, so the operands stay pending.
                for node in group:
                    if node.layout is None:
                        place = node.queue, node.usm_type
                        node.complete(allocate(*place, node.shape, node.dtype, node.axes))
                continue
            order = pending_order(group)
            while host_maps.holds and host_maps.before_read(*memory_read_by(order)):
                order = pending_order(group)  # Other threads may have computed some meanwhile.
            if not order:
                continue
            # Also an earlier group may have computed some of these nodes for itself.
            roots = group if len(group) == 1 else [node for node in group if node.layout is None]
            if len(roots) == 1 and roots[0].cost <= limits.STORING_COST:
                compute(order, roots)  # nothing is worth storing
            else:
                held = externally_referenced(roots, order) if len(order) > len(roots) else ()
                compute(order, roots, held, siblings_of(order))


def grouped(nodes: Sequence[Node]) -> list[list[Node]]:
    """Return the pending nodes among some nodes, once each, in groups that share kernels."""
    groups: dict[Any, list[Node]] = {}
    for node in dict.fromkeys(nodes):
        if node.layout is None:
            groups.setdefault((node.queue, node.usm_type, node.shape), []).append(node)
    return list(groups.values())


def compute_inner(root: Node) -> None:
    """Compute the parts of a pending expression that are not element-wise, so that the rest is.

    All of it is computed if one kernel can: a product's, or one that reads extended parts in place.
    """
    order = pending_order((root,))
    if with_tail(order, [root]) is not None or any(map(is_extended, order)):
        evaluate(root)
        return
    for node in order:
        if type(node.op) is not Op and node.layout is None:
            evaluate(node)


def compute(
    order: list[Node],
    roots: Sequence[Node],
    held: Sequence[Node] = (),
    siblings: Sequence[Node] = (),
    value: Node | Scalar | None = None,
    target: Layout | None = None,
) -> None:
    """Compute an expression by its plan, which is made if it does not exist.

    Args:
        order: the pending nodes, operands before users.
        roots: the requested nodes, of one shape and placement.
        held: inner nodes that are stored if they are part of the same work.
        siblings: pending nodes that may be computed in the same pass.
        value: a scalar or a computed node that is written to ``target``.
        target: the layout that the value, or the only root, is written to.
    """
    if siblings:
        order += siblings
    canonical = Canonical(order, value)
    is_plain = target is None and value is None and not (held or siblings) and len(roots) == 1
    if is_plain:
        queue = roots[0].queue
        key: Any = canonical.key, queue, config.plans_differ and config.plan_options()
        bound = plans.get(key)
        if bound is not None:
            for note in observers:
                note(bound, canonical, order)
            bound.run(canonical, None, order)
            return
        asked: tuple[Any, ...] = (len(order) - 1,), (), 0
        written = None
    else:
        numbers = canonical.numbers
        if len(roots) <= 1 and not (held or siblings):
            asked = (len(order) - 1,) if roots else (), (), 0
        else:
            asked = (
                tuple([-1 - numbers[id(node)] for node in roots]),
                tuple([-1 - numbers[id(node)] for node in held]) if held else (),
                len(siblings),
            )
        queue = roots[0].queue if target is None else target.block.queue
        written = None if target is None else target_of(target, canonical.arrays)
        options = config.plans_differ and config.plan_options()
        key = canonical.key, queue, asked, written, options
        bound = plans.get(key)
    if bound is None:
        roots_at, held_at, count = asked
        expression = Expression(order, roots_at, held_at, count, value)
        plan = schedule.schedule(expression, canonical, plan_traits_of(queue), written)
        bound = BoundPlan(plan, queue, is_plain)
        keep(key, bound)
        for note in observers if is_plain else ():
            note(bound, canonical, order)
    bound.run(canonical, target, order)


def target_of(target: Layout, arrays: Sequence[Any]) -> Target:
    """Return the target of a plan, for a layout that is written while ``arrays`` are read."""
    block = target.block
    memory = block.memory
    overlapped: tuple[int, ...] = ()
    for number, array in enumerate(arrays):  # A comprehension is one more call up to Python 3.11.
        if array.block.memory is memory:
            overlapped += (number,)
    return Target(target.dtype, target.shape, target.strides, block.usm_type, overlapped)


_KINDS_OF_MEMORY = ("device", "shared", "host")


def plan_traits_of(queue: Any) -> PlanTraits:
    """Return the properties of a queue that decide how expressions are computed there."""
    accessible = [kind for kind in _KINDS_OF_MEMORY if host_may_compute(queue, kind)]
    facts = machine_of(queue), tuning_of(queue), frozenset(accessible)
    traits = traits_of(queue)
    return PlanTraits(*facts, config.fp_contract, traits.target, has_kernels(traits))


def host_may_compute(queue: Any, usm_type: str) -> bool:
    """Return whether the host computes few elements in such memory."""
    return config.host_tier and host.can_compute(queue, usm_type)


def compile_alone(node: Node) -> None:
    """Compile the kernel of one operation as if its operands were computed, without computing it.

    Compile errors in a user's function are thus raised at the user's line.

    Raises:
        KernelCompileError: the function does not compile.
        UnsupportedDeviceError: it computes in float64, which the device lacks.
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
    alone = Node(node.op, operands, node.signature, *placement)
    with lock:
        traits = plan_traits_of(node.queue)
        step = schedule.schedule(Expression([alone], (0,)), Canonical([alone]), traits).steps[0]
        if isinstance(step, FusedStep):  # A user's implementation needs no kernel.
            obtain(step.launches[0]).check_device(traits_of(node.queue))
