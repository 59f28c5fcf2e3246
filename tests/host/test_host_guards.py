"""Tests at the beginning of kernels, which become the bounds of the loop over work-items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._driver.host import frame, guards

DEVICE = dp.Device("host:cpu")


def below(item: Any, x: Any, out: Any, n: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    if j < n:
        out[i, j] = x[i, j]


def inside(item: Any, x: Any, out: Any, n: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    if 0 < i < x.shape[0] - 1 and j >= 2 and j + 2 < x.shape[1]:
        out[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 2] + x[i, j + 2]


def after_a_return(item: Any, x: Any, out: Any, n: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    if i == 0 or j >= x.shape[1] - n or j + 1 <= n:
        return
    out[i, j] = x[i - 1, j]


def two_returns(item: Any, x: Any, out: Any, n: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    if i > n:
        return
    if not (j > n - 3):
        return
    out[i, j] = x[i, j] + n


def from_above(item: Any, x: Any, out: Any, n: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    if n > j - 1 and n + 9 >= i:
        for k in range(3):
            out[i, j] += x[i, j] * k


def of_elements(item: Any, x: Any, out: Any, n: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    if j < n and x[i, j] > 0.5:
        out[i, j] = 1.0


def of_other_positions(item: Any, x: Any, out: Any, n: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    if i + j < n and i * j != n:
        out[i, j] = x[i, j]


KERNELS = (below, inside, after_a_return, two_returns, from_above, of_elements, of_other_positions)


class _Item:
    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers

    def get_id(self, dimension: int) -> int:
        return self.numbers[dimension]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (7, 100)])
@pytest.mark.parametrize("n", [-(2**63), -4, 0, 1, 2, 37, 2**63 - 1])
def test_values(kernel: Callable[..., Any], shape: tuple[int, int], n: int) -> None:
    if abs(n) > 2**60 and kernel is not below:
        pytest.skip("the sums wrap around, which Python's do not")
    host = np.random.default_rng(1).random(shape)
    expected = np.zeros(shape)
    for i, j in np.ndindex(shape):
        kernel(_Item(i, j), host, expected, n)
    x, out = dp.asarray(host, device=DEVICE), dp.zeros(shape, device=DEVICE)
    dp.call_kernel(dp.kernel(kernel), dp.Range(*shape), x, out, n)
    np.testing.assert_array_equal(out.asnumpy(), expected)


@pytest.mark.parametrize("n", [0, 3, 2**63, 2**64 - 1])
def test_unsigned_bounds(n: int) -> None:
    @dp.kernel
    def fill(item: Any, out: Any, n: Any) -> None:
        i = item.get_id(0)
        if i < n:
            out[i] = 1

    out = dp.zeros(10, device=DEVICE)
    dp.call_kernel(fill, dp.Range(10), out, np.uint64(n))
    assert out.sum() == min(n, 10)


def test_rows_of_three_dimensions() -> None:
    @dp.kernel
    def middle(item: Any, x: Any, out: Any) -> None:
        i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
        if 0 < i < x.shape[0] - 1 and 0 < j < x.shape[1] - 1 and 0 < k < x.shape[2] - 1:
            out[i, j, k] = x[i - 1, j, k] + x[i, j + 1, k] + x[i, j, k - 1]

    host = np.random.default_rng(2).random((6, 7, 90))
    x, out = dp.asarray(host, device=DEVICE), dp.zeros(host.shape, device=DEVICE)
    dp.call_kernel(middle, dp.Range(*host.shape), x, out)
    expected = np.zeros(host.shape)
    inner = host[:-2, 1:-1, 1:-1] + host[1:-1, 2:, 1:-1] + host[1:-1, 1:-1, :-2]
    expected[1:-1, 1:-1, 1:-1] = inner
    np.testing.assert_array_equal(out.asnumpy(), expected)


@pytest.mark.parametrize(
    ("kernel", "is_found"),
    [
        (inside, True),
        (after_a_return, True),
        (two_returns, True),
        (of_elements, True),
        (of_other_positions, False),
    ],
)
def test_bounds_are_found(
    kernel: Callable[..., Any], is_found: bool, new_cache: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[list[str]] = []

    class Guard(guards.Guard):
        def __init__(self, function: Any) -> None:
            super().__init__(function)
            found.append(self.lines)

    monkeypatch.setattr(frame, "Guard", Guard)
    x, out = dp.ones((5, 70), device=DEVICE), dp.zeros((5, 70), device=DEVICE)
    dp.call_kernel(dp.kernel(kernel), dp.Range(5, 70), x, out, np.int32(1))
    assert [bool(each) for each in found] == [is_found]
