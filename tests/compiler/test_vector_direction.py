"""Kernels whose loops follow rows: vectors of iterations instead of vectors of work-items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._ir.facts import follows_rows
from dparray._language.frontend import translated
from dparray.kernel_api import group_barrier


def scaled_rows(item: Any, x: Any, out: Any, a: Any) -> None:
    i = item.get_id(0)
    for j in range(x.shape[1]):
        out[i, j] = a * x[i, j]


def stencil_by_rows(item: Any, x: Any, out: Any, a: Any) -> None:
    i = item.get_id(0)
    if i > 0 and i + 1 < x.shape[0]:
        for j in range(1, x.shape[1] - 1):
            out[i, j] = x[i - 1, j] + x[i + 1, j] + a * (x[i, j - 1] + x[i, j + 1])


def flat_rows(item: Any, x: Any, out: Any, a: Any) -> None:
    first = item.get_id(0) * x.shape[1]
    for k in range(first, first + x.shape[1]):
        out[k // x.shape[1], k % x.shape[1]] = a * x[k // x.shape[1], k % x.shape[1]]


def rows_from_the_end(item: Any, x: Any, out: Any, a: Any) -> None:
    i = item.get_id(0)
    for j in range(x.shape[1] - 1, -1, -1):
        out[i - x.shape[0], j] = a * x[i, j - x.shape[1]]


def scaled_columns(item: Any, x: Any, out: Any, a: Any) -> None:
    i = item.get_id(0)
    for j in range(x.shape[0]):
        out[j, i] = a * x[j, i]


def transposed(item: Any, x: Any, out: Any, a: Any) -> None:
    i = item.get_id(0)
    for j in range(x.shape[0]):
        out[i, j] = a * x[j, i]


def pairs(item: Any, x: Any, out: Any, a: Any) -> None:
    i = item.get_id(0)
    total = 0.0
    for j in range(x.shape[0]):
        total += abs(x[j, 0] - x[i, 0]) * a
    out[i, 0] = total


def steps_until_a_limit(item: Any, x: Any, out: Any, a: Any) -> None:
    i = item.get_id(0)
    for j in range(x.shape[1]):
        value = x[i, j]
        while value < 4:
            value = value * value + a
        out[i, j] = value


def rows_of_matrices(item: Any, x: Any, out: Any, a: Any) -> None:
    i = item.get_id(0)
    for j in range(x.shape[1]):
        total = 0.0
        for k in range(x.shape[1]):
            total += x[i, k] * x[i, k + 0 * j]
        out[i, j] = a * total


def without_loops(item: Any, x: Any, out: Any, a: Any) -> None:
    i = item.get_id(0)
    out[i, 0] = a * x[i, 0]


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (scaled_rows, True),
        (stencil_by_rows, True),
        (rows_from_the_end, True),
        (rows_of_matrices, True),
        (scaled_columns, False),
        (transposed, False),
        (pairs, False),
        (steps_until_a_limit, False),
        (without_loops, False),
    ],
)
def test_rows_are_found(kernel: Callable[..., Any], expected: bool) -> None:
    function = translated(kernel, ["item:1", "f8:2C", "f8:2C", "f8"])
    assert follows_rows(function) == expected


def test_work_items_that_wait_for_each_other_are_not_run_in_order() -> None:
    def kernel(item: Any, x: Any) -> None:
        i = item.get_global_id(0)
        for j in range(x.shape[1]):
            x[i, j] = 0
            group_barrier(item.get_group())

    assert not follows_rows(translated(kernel, ["nditem:1", "f8:2C"]))


@pytest.mark.parametrize(
    "kernel",
    [scaled_rows, stencil_by_rows, flat_rows, rows_from_the_end, scaled_columns, transposed, pairs],
)
@pytest.mark.parametrize("shape", [(1, 1), (37, 37), (70, 70)])
def test_values(kernel: Callable[..., Any], shape: tuple[int, int]) -> None:
    class Item:
        def __init__(self, number: int) -> None:
            self.number = number

        def get_id(self, dimension: int) -> int:
            return self.number

    host = np.random.default_rng(1).random(shape)
    expected = np.zeros(shape)
    for number in range(shape[0]):
        kernel(Item(number), host, expected, 0.25)
    x, out = dp.asarray(host), dp.zeros(shape)
    dp.call_kernel(dp.kernel(kernel), dp.Range(shape[0]), x, out, 0.25)
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-14)


def test_a_row_that_is_written_where_another_is_read_keeps_the_order_of_its_iterations() -> None:
    @dp.kernel
    def running(item: Any, x: Any) -> None:
        i = item.get_id(0)
        for j in range(1, x.shape[1]):
            x[i, j] = x[i, j] + x[i, j - 1]

    host = np.random.default_rng(2).random((50, 300))
    x = dp.asarray(host)
    dp.call_kernel(running, dp.Range(50), x)
    np.testing.assert_allclose(x.asnumpy(), np.cumsum(host, axis=1), rtol=1e-12)
