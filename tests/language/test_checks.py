"""Kernels of debug mode report the first fault, and neither read nor write outside of arrays.

PYTEST_DONT_REWRITE: the assertions in kernels stay as they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._ir import interpreter
from dparray._ir.interpreter import Machine
from dparray._language.checks import Site
from dparray._language.frontend import translation
from tests.language.running import key_of, packed


class Recorder(Machine):
    """Records the faults."""

    def __init__(self, sites: Sequence[Site]) -> None:
        super().__init__()
        self.sites = sites
        self.faults: list[str] = []

    def check(self, op: Any, item: Any, values: Sequence[Any]) -> None:
        attribute = op.attribute
        site = self.sites[attribute.site]
        found = [
            int(value) % 2**64 if attribute.unsigned >> number & 1 else int(value)
            for number, value in enumerate(values[: attribute.indices])
        ]
        described = site.describe(found, list(map(int, values[attribute.indices :])))
        self.faults.append(f"{site.function}: {described}")


def faults_of(kernel: Any, size: int, *arguments: Any, local: Any = None) -> list[str]:
    kind = "item" if local is None else "nditem"
    keys = [f"{kind}:1", *map(key_of, arguments)]
    program, _, sites, *_ = translation(kernel, keys, checked=True)
    values = [size] if local is None else []
    for argument in arguments:
        values += packed(argument)
    machine = Recorder(sites)
    groups = None if local is None else (local,)
    interpreter.run(program, values, (size,), groups, machine)
    return machine.faults


@dp.device_func
def ahead(x: Any, i: Any) -> Any:
    return x[i + 1]


def reads(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i + 1] if i < 3 else ahead(x, i)


def writes(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i + 3] = x[i]
    out[i + 3] += 10


def counts_down(item: Any, x: Any, out: Any) -> None:
    i = np.uint64(item.get_id(0))
    out[i] = x[i - np.uint64(1)] + x[-1]


def looks_up(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    table = (5, 6, 7)
    out[i] = table[i] + out.shape[i // 3]


def asserts(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    assert x[i] < 3, "too {large}"
    out[i] = 1


def steps(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    for k in range(0, 3, i):
        out[i] += x[k]


def vectors(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    v = dp.vec_load(x, i, 2)
    dp.vec_store(out, i + 1, v)


@pytest.mark.parametrize(
    ("kernel", "faults", "result"),
    [
        (reads, ["ahead: index 4 is out of bounds of x, whose shape is (4,)"], [1, 2, 3, 0]),
        (writes, ["writes: index 4 is out of bounds of out, whose shape is (4,)"] * 2, None),
        (counts_down, [f"counts_down: index {2**64 - 1} is out of bounds of x"], [3, 3, 4, 5]),
        (looks_up, ["looks_up: index 3 is out of bounds of table, whose shape is (3,)"], None),
        (asserts, ["asserts: the assertion x[i] < 3 failed: too {large}"], [1, 1, 1, 1]),
        (steps, ["steps: the step of range(0, 3, i) is 0"], [0, 3, 2, 0]),
        (vectors, ["vectors: the elements from index 3 on are not all inside"], None),
    ],
)
def test_faults(kernel: Any, faults: list[str], result: list[int] | None) -> None:
    x, out = np.arange(4.0), np.zeros(4)
    reported = faults_of(kernel, 4, x, out)
    assert len(reported) >= len(faults)
    assert any(fault.startswith(faults[0]) for fault in reported), reported
    if result is not None:
        assert out.tolist() == result


def test_indices_inside_are_no_fault() -> None:
    def kernel(item: Any, x: Any, out: Any) -> None:
        i = item.get_global_id(0)
        memory = dp.LocalArray(2, np.float64)
        memory[item.get_local_id(0)] = x[-1 - i]
        dp.group_barrier(item.get_group())
        dp.AtomicRef(out, 0).fetch_add(memory[-1])
        assert x[i] >= 0

    x, out = np.arange(4.0), np.zeros(1)
    assert faults_of(kernel, 4, x, out, local=2) == []
    assert out.item() == 4


def test_work_items_with_a_fault_still_meet_at_the_barrier() -> None:
    def kernel(item: Any, x: Any, out: Any) -> None:
        i = item.get_global_id(0)
        out[i + 2] = x[i]
        dp.group_barrier(item.get_group())
        out[i] += 1

    x, out = np.arange(4.0), np.zeros(4)
    faults = faults_of(kernel, 4, x, out, local=4)
    assert faults == [
        f"kernel: index {i} is out of bounds of out, whose shape is (4,)" for i in (4, 5)
    ]
    assert out.tolist() == [1, 1, 1, 2]
