"""Generated kernels with reductions in plain Python: results, barriers, local memory, races."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytest

from dparray import simulate
from dparray._codegen import (
    domain,
    elementwise,
    reduction,
    reduction_forms,
    reduction_rows,
    reduction_steps,
)
from dparray._evaluate.fusion import split
from dparray._graph.node import Node, Scalar
from dparray._graph.ops import OPS
from dparray._graph.reductions import REDUCTIONS, Reduce
from dparray._layout import contiguous_strides, reduced_shape
from dparray.kernel_api import (
    AtomicRef,
    LocalAccessor,
    MemoryOrder,
    MemoryScope,
    NdRange,
    group_barrier,
)


class FakeBlock(NamedTuple):
    """Host memory."""

    memory: np.ndarray


class FakeLayout(NamedTuple):
    """The layout of host values."""

    block: Any
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]


def leaf(values: np.ndarray) -> Node:
    layout = FakeLayout(FakeBlock(values), 0, values.shape, values.strides, values.dtype)
    return Node.leaf(layout, None, "device")


def reduced(x: Node, axes: tuple[int, ...], name: str, keepdims: bool = True) -> Node:
    op = Reduce(REDUCTIONS[name], axes, keepdims)
    scalars = [Scalar(float(prod(x.shape[axis] for axis in axes)))] * op.reduction.scalars
    kind = np.dtype("i8") if name.startswith("arg") else x.dtype
    signature = (x.dtype,) * (1 + len(scalars))
    shape = reduced_shape(x.shape, axes, keepdims)
    return Node(op, (x, *scalars), (*signature, kind), shape, prod(shape), None, "device")


def node(name: str, *operands: Node) -> Node:
    shape = np.broadcast_shapes(*(each.shape for each in operands))
    signature = (operands[0].dtype,) * (1 + len(operands))
    return Node(OPS[name], operands, signature, shape, prod(shape), None, "device")


NAMES = {
    "AtomicRef": AtomicRef,
    "MemoryOrder": MemoryOrder,
    "MemoryScope": MemoryScope,
    "group_barrier": group_barrier,
}


def computed(*values: Node, chunks: int = 1) -> list[np.ndarray]:
    """Return the values that the one generated kernel computes in the simulator."""
    machine = domain.Machine(compute_units=1)
    part = split(values, [], False, machine)
    assert not part.first
    kernel = part.group
    assert kernel.domain is not None
    targets = [np.zeros(value.shape, value.dtype) for value in values]
    outputs = [
        (
            value,
            FakeLayout(
                out, 0, out.shape, contiguous_strides(out.shape, out.dtype.itemsize), out.dtype
            ),
        )
        for value, out in zip(values, targets, strict=True)
    ]
    program = reduction.linearize_reduction(
        kernel.order, outputs, kernel.domain, kernel.dropped, kernel.rows, machine
    )
    assert program.partials == chunks
    structure = program.structure
    function = elementwise.function_of(reduction_rows.source_of(structure), NAMES)
    arguments: list[Any] = [layout.block.memory.reshape(-1) for layout in program.arrays]
    arguments += [out.reshape(-1) for out in targets]
    accumulators = [dtype for _, dtype in reduction_steps.shared_accumulators(structure)]
    counters = np.zeros(reduction.most_counters(machine), np.int32)
    if structure.merges_chunks:
        left = reduction.count_left(program)
        arguments += [np.full(left, 99, dtype) for dtype in accumulators]
        arguments += [counters, LocalAccessor(1, np.int32)]
    if structure.form in ("lanes", "rows"):
        lanes = program.local_range[0]
        count = lanes if structure.form == "lanes" else lanes * (lanes + 1)
        arguments += [LocalAccessor(count, dtype) for dtype in accumulators]
    arguments += [scalar.value for scalar in program.scalars]
    arguments += [np.uint64(number.value) for number in program.numbers]
    types = reduction_steps.types_of(structure)
    trips = [name for name, _ in reduction_steps.parameters_of(structure)].index("trips")
    assert types[trips] == "i8"
    arguments[trips] = int(arguments[trips])
    simulate(function, NdRange(program.global_range, program.local_range), *arguments)
    assert not counters.any()  # ready for the next kernel
    return targets


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


# Each form of the kernel: lanes; columns; several column vectors, the last of which overlap those
# before; items in a loop; unrolled items; and rows, where nothing of the domain's shape is stored.
CASES = [
    ((4, 300), (1,)),
    ((3, 40, 64), (1,)),
    ((12, 330), (0,)),
    ((2, 9, 150), (1,)),
    ((20, 30), (1,)),
    ((90, 3), (1,)),
    ((7, 40), (0,)),
    ((70, 30), (1,)),
    ((9, 8, 33), (2,)),
]


@pytest.mark.parametrize(("shape", "axes"), CASES)
@pytest.mark.sample(4)
def test_softmax(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = values(*shape)
    array = leaf(x)
    e = node("exp", node("subtract", array, reduced(array, axes, "max")))
    (found,) = computed(node("divide", e, reduced(e, axes, "sum")))
    wanted = np.exp(x - x.max(axes, keepdims=True))
    np.testing.assert_allclose(found, wanted / wanted.sum(axes, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize(("shape", "axes"), CASES)
@pytest.mark.sample(2)
def test_several_reductions_of_one_loop(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = values(*shape) + np.float32(100)
    x.flat[5] = np.nan
    array = leaf(x)
    names = ("mean", "var", "max", "argmax", "argmin")
    found = computed(*(reduced(array, axes, name, keepdims=False) for name in names))
    for name, one in zip(names, found, strict=True):
        axis: Any = axes[0] if name.startswith("arg") else axes
        np.testing.assert_allclose(one, getattr(np, name)(x, axis), rtol=1e-4)


@pytest.mark.parametrize(
    ("shape", "axes", "chunks"),
    [((9_000,), (0,), 17), ((5, 3_000), (1,), 5), ((1100, 40), (0,), 4)],
)
def test_chunks_are_merged_by_the_last_group(
    shape: tuple[int, ...], axes: tuple[int, ...], chunks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduction_forms, "MIN_CHUNKED", 1)
    x = values(*shape)
    array = leaf(x)
    names = ("sum", "var", "argmax")
    found = computed(*(reduced(array, axes, name, keepdims=False) for name in names), chunks=chunks)
    for name, one in zip(names, found, strict=True):
        np.testing.assert_allclose(one, getattr(np, name)(x, axes[0]), rtol=1e-4, atol=1e-3)


def test_a_mean_is_taken_from_its_elements() -> None:
    x = values(3, 600)
    array = leaf(x)
    (found,) = computed(node("subtract", array, reduced(array, (1,), "mean")))
    np.testing.assert_allclose(found, x - x.mean(1, keepdims=True), atol=1e-6)
