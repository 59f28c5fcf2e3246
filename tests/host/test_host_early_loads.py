"""Loads that the host's kernels make before a condition in a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._ir.instructions import walk
from dparray._ir.speculation import load_early
from dparray._ir.verify import verify
from dparray._language.frontend import translated

DEVICE = dp.Device("host:cpu")


def others(item: Any, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    for k in range(x.size):
        if k != i:
            out[i] += x[k] * x[i] + y[k]


def outside(item: Any, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    for k in range(10_000_000):
        if i > 10_000:
            out[i] += x[k * 1000] + y[i * 1_000_000]
        if k > 3:
            break


def from_the_end(item: Any, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    for k in range(5):
        if i > k:
            out[i] += x[k - 5] * (y[-1] if i % 2 else y[k])
        else:
            out[i] -= x[i - 1]


def written(item: Any, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    for k in range(3):
        if i == k:
            out[i] += 1.0
            out[i] += out[k] + x[k]


def in_a_condition_of_a_loop(item: Any, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    for k in range(y.size):
        if y[k] > 0.5 and i != k:
            total = 0.0
            for m in range(3):
                if m != i:
                    total += x[m] * y[m]
            out[i] += total


KERNELS = (others, outside, from_the_end, written, in_a_condition_of_a_loop)


class _Item:
    def __init__(self, number: int) -> None:
        self.number = number

    def get_id(self, dimension: int) -> int:
        return self.number


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("count", [1, 7, 100])
def test_values(kernel: Callable[..., Any], count: int) -> None:
    random = np.random.default_rng(count).random
    x, y, out = random(max(count, 5)), random(max(count, 5)), random(count)
    expected = out.copy()
    for number in range(count):
        kernel(_Item(number), x, y, expected)
    arrays = [dp.asarray(each, device=DEVICE) for each in (x, y, out)]
    dp.call_kernel(dp.kernel(kernel), dp.Range(count), *arrays)
    np.testing.assert_allclose(arrays[2].asnumpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [(others, {"x", "y"}), (outside, {"x", "y"}), (from_the_end, {"x", "y"}), (written, set())],
)
def test_loads_are_moved(kernel: Callable[..., Any], expected: set[str]) -> None:
    program = translated(kernel, ["item:1", *["f8:1C"] * 3])
    load_early(program)
    verify(program, "loads")
    early = [op for op in walk(program.body) if "early" in op.marks]
    assert {op.operands[0].operands[0].attribute.argument for op in early} == expected


def test_programs_without_loops_stay_as_they_are() -> None:
    def kernel(item: Any, x: Any, out: Any) -> None:
        i = item.get_id(0)
        if i > 2:
            out[i] = x[0]

    program = translated(kernel, ["item:1", "f8:1C", "f8:1C"])
    load_early(program)
    assert not any(op.marks for op in walk(program.body) if op.name == "load")
