"""The kernel form of reductions depends on the device: it fits, and has enough work-items."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dparray as dp
from dparray._codegen.domain import Domain, Machine
from dparray._codegen.reduction import ReductionProgram, linearize_reduction
from dparray._codegen.reduction_rows import source_of
from dparray._codegen.reduction_steps import parameters_of
from dparray._evaluate import tuning
from dparray._evaluate.multipass_reductions import local_memory
from dparray._graph.node import Node
from dparray._graph.reductions import Reduce
from tests.codegen.test_generated_source import GPU, leaf, node, reduced
from tests.support import forced

SMALL_GPU = Machine(24, 128, 32, 256, 1 << 16, 8)
LARGE_GPU = Machine(512, 128, 32, 1024, 1 << 17, 8)


def program_of(
    shape: tuple[int, ...], axes: tuple[int, ...], name: str, machine: Machine, dtype: str = "f4"
) -> ReductionProgram:
    operand = leaf("x", shape, dtype)
    value = reduced(operand, axes, name, result="i8" if name == "argmax" else "")
    return program_of_nodes([value], machine)


def program_of_nodes(order: Sequence[Node], machine: Machine) -> ReductionProgram:
    """Return the program of nodes, each after its operands, of which the last is stored."""
    value, reductions = order[-1], [each for each in order if type(each.op) is Reduce]
    domain = Domain(reductions[0].operands[0].shape, reductions[0].op.axes)  # type: ignore[union-attr]
    out, rows = leaf("out", value.shape, value.dtype.str), {id(each) for each in reductions}
    return linearize_reduction(order, [(value, out.layout)], domain, {id(value)}, rows, machine)


def local_bytes(program: ReductionProgram) -> int:
    structure = program.structure
    if not any(key.startswith("local") for _, key in parameters_of(structure)):
        return 0
    return 4 + sum(dtype.itemsize * count for dtype, count in local_memory(program))


@given(
    shape=st.lists(st.integers(1, 3000), min_size=1, max_size=3).map(tuple),
    axis=st.integers(0, 2),
    name=st.sampled_from(["sum", "max", "argmax", "mean", "var"]),
    machine=st.builds(
        Machine,
        st.sampled_from([1, 2, 24, 96, 512]),
        st.sampled_from([1, 4, 16, 64, 128, 256]),
        st.sampled_from([0, 16, 32, 64]),
        st.just(256),
        st.sampled_from([1 << 14, 1 << 16, 1 << 17]),
        st.sampled_from([1, 7, 8]),
    ),
)
def test_a_form_fits_the_device(
    shape: tuple[int, ...], axis: int, name: str, machine: Machine
) -> None:
    program = program_of(shape, (axis % len(shape),), name, machine)
    assert local_bytes(program) <= machine.local_memory
    assert program.local_range[0] <= machine.group
    assert program.global_range[0] % program.local_range[0] == 0


@pytest.mark.parametrize("name", ["sum", "argmax", "mean", "var"])
@pytest.mark.parametrize("lanes", [16, 32, 64, 128])
def test_rows_meet_in_local_memory_only_where_it_is_large_enough(name: str, lanes: int) -> None:
    for memory in (1 << 14, 1 << 16, 1 << 18):
        machine = Machine(24, lanes, 0, 256, memory)
        program = program_of((65_536, 1000), (1,), name, machine)
        assert local_bytes(program) <= memory


@pytest.mark.parametrize("columns", [17, 100, 256, 1000, 1024])
@pytest.mark.parametrize("machine", [SMALL_GPU, GPU, LARGE_GPU])
def test_a_sub_group_of_a_gpu_has_a_row(columns: int, machine: Machine) -> None:
    program = program_of((4096, columns), (1,), "sum", machine)
    assert program.structure.form == "sub-groups"
    assert program.global_range == (4096 * machine.sub_group,)
    assert local_bytes(program) == 0


@pytest.mark.parametrize("shape", [(1024, 1024), (100_000, 128), (5000, 300)])
@pytest.mark.parametrize("machine", [SMALL_GPU, GPU])
def test_columns_fill_a_gpu(shape: tuple[int, ...], machine: Machine) -> None:
    program = program_of(shape, (0,), "sum", machine)
    assert program.structure.form == "columns"
    assert program.global_range[0] >= min(machine.resident_items, prod(shape) // 32)


@pytest.mark.parametrize(
    ("shape", "dtype", "form", "lanes"),
    [
        ((65_536, 256), "f4", "sub-groups", 128),
        ((16_384, 1024), "f4", "sub-groups", 128),
        ((65_536, 1025), "f4", "lanes", 128),
        ((4096, 4096), "f4", "lanes", 256),
        ((4096, 4096), "f8", "lanes", 512),
        ((1024, 12_000), "f4", "lanes", 512),
        ((1024, 14_528), "f4", "lanes", 512),
        ((1024, 14_529), "f4", "", 0),
        ((1024, 7265), "f8", "", 0),
        ((1024, 29_056), "f2", "lanes", 512),
    ],
)
def test_rows_are_staged_if_some_fit_in_local_memory(
    shape: tuple[int, ...], dtype: str, form: str, lanes: int
) -> None:
    # A compute unit runs 2,048 work-items; several groups of rows share its local memory.
    machine = Machine(132, 128, 32, 1024, 232_448, 64)
    x = leaf("x", shape, dtype)
    most = reduced(x, (1,), "max", dtype, keepdims=True)
    below = node("subtract", x, most, dtype=dtype)
    program = program_of_nodes([most, below, reduced(below, (1,), "sum", dtype)], machine)
    structure = program.structure
    assert (structure.form if structure.staged else "") == form
    # What one loop reads is not kept: of the variance it took 1.5 times as long on an H200.
    assert not program_of(shape, (1,), "var", machine, dtype).structure.staged
    if form:
        assert structure.lanes == lanes
        assert program.staged == shape[1] * (1 if form == "lanes" else lanes // 32)
        assert 2 * local_bytes(program) <= machine.local_memory


@pytest.mark.parametrize("shape", [(4096, 100), (8, 100_000)])
@pytest.mark.parametrize("is_fixed", [False, True])
def test_kernels_ask_for_the_size_of_sub_groups_if_it_is_not_fixed(
    shape: tuple[int, ...], is_fixed: bool
) -> None:
    program = program_of(shape, (1,), "sum", GPU._replace(is_fixed=is_fixed))
    assert ("sub_group.get_local_range()" in source_of(program.structure)) is not is_fixed


CASES: list[tuple[tuple[int, ...], Any]] = [
    ((300_001,), None),
    ((700, 17), 1),
    ((700, 100), 1),
    ((5, 1024), 1),
    ((40, 5000), 1),
    ((2, 300_000), 1),
    ((3000, 300), 0),
    ((3000, 70), 0),
    ((200_000, 3), 0),
    ((30, 40, 50), 1),
    ((1, 33), 1),
]


@pytest.mark.parametrize(("shape", "axis"), CASES)
@pytest.mark.sample(4)
def test_values_of_the_forms_of_a_gpu(shape: tuple[int, ...], axis: Any, pretend: Any) -> None:
    pretend(kind="gpu", units=96, group=512, threads=8)
    tuning._machine.cache_clear()
    try:
        host = np.random.default_rng(7).normal(size=shape)
        x = dp.asarray(host)
        with dp.config.override(tuning={"cpu": {"lanes": 128}}), forced("fused"):
            for name in ("sum", "max", "argmin", "any", "var", "mean"):
                expected = getattr(np, name)(host, axis=axis)
                actual = getattr(dp, name)(x, axis=axis).asnumpy()
                np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)
            if axis == 1 and len(shape) == 2:
                actual = (x / dp.abs(x).sum(axis=1, keepdims=True)).asnumpy()
                expected = host / np.abs(host).sum(axis=1, keepdims=True)
                np.testing.assert_allclose(actual, expected, rtol=1e-12)
    finally:
        tuning._machine.cache_clear()
