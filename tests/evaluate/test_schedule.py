"""Schedules of expressions, created on the host alone: no device, no memory, no SYCL package."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest

from dparray._codegen.canonical import Canonical
from dparray._codegen.domain import Machine
from dparray._evaluate import limits
from dparray._evaluate.expression import Expression, PlanTraits, Target
from dparray._evaluate.plan import FusedStep, HostStep, LibraryStep, Plan
from dparray._evaluate.schedule import schedule
from dparray._graph.node import Node, Scalar, pending_order
from dparray._graph.ops import OPS
from dparray._graph.reductions import REDUCTIONS, Reduce
from dparray._layout import Layout, broadcast_shapes, contiguous_strides, reduced_shape
from dparray.config import Tuning

GPU = PlanTraits(Machine(8, 32), Tuning())
CPU = PlanTraits(Machine(8), Tuning(), frozenset({"device", "shared", "host"}))
F4 = np.dtype("f4")


class Memory:
    """A block without content."""

    def __init__(self) -> None:
        self.memory = self


def leaf(*shape: int, dtype: str = "f4", block: Any = None, offset: int = 0) -> Node:
    kind = np.dtype(dtype)
    strides = contiguous_strides(shape, kind.itemsize)
    return Node.leaf(Layout(block or Memory(), offset, shape, strides, kind), None, "device")


def node(name: str, *operands: Any) -> Node:
    parts = tuple(each if isinstance(each, Node) else Scalar(each) for each in operands)
    arrays = [each for each in parts if isinstance(each, Node)]
    shape = broadcast_shapes(name, [each.shape for each in arrays])
    signature = (arrays[0].dtype,) * (1 + len(parts))
    return Node(OPS[name], parts, signature, shape, prod(shape), None, "device")


def reduced(name: str, x: Node, *axes: int, keepdims: bool = False) -> Node:
    op = Reduce(REDUCTIONS[name], axes, keepdims)
    count = prod(x.shape[axis] for axis in axes)
    scalars = (Scalar(float(count)),) * op.reduction.scalars
    shape = reduced_shape(x.shape, axes, keepdims)
    signature = (x.dtype,) * (2 + len(scalars))
    return Node(op, (x, *scalars), signature, shape, prod(shape), None, "device")


def planned(
    *roots: Node, held: Sequence[Node] = (), siblings: Sequence[Node] = (), place: PlanTraits = GPU
) -> Plan:
    order = [*pending_order(roots), *siblings]
    number = {id(each): position for position, each in enumerate(order)}
    expression = Expression(
        order,
        tuple(number[id(root)] for root in roots),
        tuple(number[id(each)] for each in held),
        len(siblings),
    )
    return schedule(expression, Canonical(order), place)


def key(*roots: Node) -> Any:
    return Canonical(pending_order(roots)).key


def test_a_chain_of_operations_is_one_launch() -> None:
    a, b = leaf(1000), leaf(1000)
    plan = planned(node("add", node("multiply", a, b), 2.0))
    (launch,) = plan.launches
    assert str(plan) == "fused: leaf 0, leaf 1 -> result 0"
    assert (plan.leaves, plan.results, launch.arguments) == (2, (2,), (0, 1, 2))
    assert launch.scalars == ((0, F4),)
    assert launch.entry.kernel is None


def test_a_plan_follows_from_the_key_and_not_from_addresses_or_scalars() -> None:
    one = node("add", node("multiply", leaf(30, 40), leaf(40)), 2.0)
    other = node("add", node("multiply", leaf(30, 40), leaf(40)), 3.0)
    assert key(one) == key(other)
    assert str(planned(one)) == str(planned(other))


def test_the_key_contains_everything_that_decides_a_plan() -> None:
    a, b = leaf(40, 40), leaf(40, 40)
    keys = {
        key(node("add", a, b)),
        key(node("add", a, a)),
        key(node("subtract", a, b)),
        key(node("add", a, 1.0)),
        key(node("add", a, leaf(40))),
        key(node("add", a, leaf(40, 40, dtype="f8"))),
        key(node("add", node("add", a, b), b)),
    }
    assert len(keys) == 7


def test_views_of_one_block_are_arguments_of_their_own() -> None:
    block = Memory()
    there, beside = leaf(500, block=block), leaf(500, block=block, offset=4)
    again = leaf(500, block=block)
    (launch,) = planned(node("add", node("subtract", there, beside), again)).launches
    assert launch.arguments == (0, 1, 2)


@pytest.mark.usefixtures("tests_options")
def test_few_elements_that_the_host_reaches_are_computed_there() -> None:
    x = node("add", leaf(limits.host_elements), 1.0)
    (step,) = planned(x, place=CPU).steps
    assert isinstance(step, HostStep)
    (step,) = planned(x, place=GPU).steps
    assert isinstance(step, FusedStep)
    (step,) = planned(node("add", leaf(limits.host_elements + 1), 1.0), place=CPU).steps
    assert isinstance(step, FusedStep)


@pytest.mark.parametrize("executor", ["host", "fused", "library"])
def test_a_backend_can_be_forced(executor: str) -> None:
    x = node("add", leaf(100), 1.0)
    with limits.force(executor):
        (step,) = planned(x, place=CPU).steps
        assert limits.is_worth_compiling(100, 100) == (executor == "fused")
    assert isinstance(step, HostStep if executor == "host" else FusedStep)
    assert not limits.is_worth_compiling(100, 100)


def test_only_backends_can_be_forced() -> None:
    message = "the backend must be 'host', 'fused' or 'library'; got 'numpy'"
    with pytest.raises(ValueError, match=message), limits.force("numpy"):
        pass


def test_an_operation_without_a_kernel_uses_dpnp_and_shows_why() -> None:
    x = leaf(1000, dtype="F")
    log = node("log", node("add", x, x))
    first, second = planned(node("multiply", log, x)).steps[:2]
    assert isinstance(first, FusedStep)
    assert isinstance(second, LibraryStep)
    assert "no kernel is generated for log of complex64" in second.because


def test_a_fused_step_knows_the_steps_in_its_place() -> None:
    (step,) = planned(node("exp", node("add", leaf(1000), leaf(1000)))).steps
    assert isinstance(step, FusedStep)
    (other,) = step.otherwise
    assert isinstance(other, LibraryStep)
    assert (other.reads, other.outputs, other.new) == (step.reads, step.outputs, ())


def test_a_small_inner_value_is_stored_before_it_is_broadcast() -> None:
    row = node("exp", leaf(1000))
    first, second = planned(node("add", row, leaf(300, 1))).steps
    assert "broadcast to 300000" in first.stored_because
    assert first.outputs[0] in second.reads
    assert first.stores[0][1] == 0


def test_a_reduction_and_its_users_are_one_launch_on_rows() -> None:
    x = leaf(4096, 64)
    shares = node("divide", x, reduced("sum", x, 1, keepdims=True))
    assert len(list(planned(shares).launches)) == 1


def test_a_long_reduction_merges_its_chunks_in_the_same_launch() -> None:
    (launch,) = planned(reduced("sum", leaf(1 << 22), 0)).launches
    assert launch.merges_chunks
    assert launch.accumulators
    assert launch.arguments[-1] == launch.accumulators[-1].slot


def test_a_reduction_over_separated_axes_takes_two_launches() -> None:
    first, second = planned(reduced("sum", leaf(64, 512, 64), 0, 2)).launches
    assert set(second.reads) == {array.slot for array in first.accumulators}
    assert second.must_compile


def test_a_value_that_is_held_is_stored_by_the_same_launch() -> None:
    held = node("sin", node("exp", leaf(1000)))
    plan = planned(node("add", held, 1.0), held=[held])
    (launch,) = plan.launches
    assert len(launch.outputs) == 2
    assert [number for _, number in plan.steps[0].stores] == [1, 2]


def test_reductions_of_the_same_memory_are_computed_together() -> None:
    x = leaf(600, 400)
    mean, largest, other = (
        reduced("mean", x, 1), reduced("max", x, 1), reduced("max", leaf(600, 400), 1)
    )  # fmt: skip
    plan = planned(mean, siblings=[largest, other])
    (step,) = plan.steps
    assert (step.siblings, len(step.outputs)) == ((1,), 2)


def test_operands_that_are_overwritten_are_read_first() -> None:
    x = leaf(4096, 64)
    largest = reduced("max", x, 1, keepdims=True)
    value = node("subtract", x, largest)
    order = pending_order([value])
    target = Target(F4, x.shape, x.layout.strides, "device", (0,))
    plan = schedule(Expression(order, (1,)), Canonical(order), GPU, target)
    (launch,) = plan.launches
    assert plan.results == (1,)
    assert plan.steps[0].stores == ()
    assert launch.structure.elements_last


def test_a_scalar_is_written_by_a_launch_of_no_operations() -> None:
    value = Scalar(1.0)
    target = Target(F4, (1000,), (4,), "device")
    plan = schedule(Expression([], (), value=value), Canonical([], value), GPU, target)
    (launch,) = plan.launches
    assert (launch.arguments, launch.scalars) == ((0,), ((0, F4),))
