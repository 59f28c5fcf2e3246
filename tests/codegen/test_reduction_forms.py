"""The kernel form of reductions depends on the device: it fits, and has enough work-items."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dparray as dp
from dparray._codegen.domain import Domain, Machine
from dparray._codegen.reduction import ReductionProgram, linearize_reduction
from dparray._codegen.reduction_steps import parameters_of, shared_accumulators
from dparray._evaluate import tuning
from tests.codegen.test_generated_source import GPU, leaf, reduced
from tests.support import forced

SMALL_GPU = Machine(24, 128, 32, 256, 1 << 16, 8)
LARGE_GPU = Machine(512, 128, 32, 1024, 1 << 17, 8)


def program_of(
    shape: tuple[int, ...], axes: tuple[int, ...], name: str, machine: Machine
) -> ReductionProgram:
    value = reduced(leaf("x", shape), axes, name, result="i8" if name == "argmax" else "")
    domain, out = Domain(shape, axes), leaf("out", value.shape, value.dtype.str)
    return linearize_reduction(
        [value], [(value, out.layout)], domain, {id(value)}, {id(value)}, machine
    )


def local_bytes(program: ReductionProgram) -> int:
    structure = program.structure
    if not any(key.startswith("local") for _, key in parameters_of(structure)):
        return 0
    items = structure.lanes * (structure.lanes + 1 if structure.form == "rows" else 1)
    return 4 + items * sum(dtype.itemsize for _, dtype in shared_accumulators(structure))


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
