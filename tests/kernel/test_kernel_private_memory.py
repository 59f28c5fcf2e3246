"""The index of an element of private memory may depend on conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp


def filled(length: int, dtype: Any, take: Any) -> Any:
    """Return a kernel whose work-items fill private memory, and then read elements of it."""

    @dp.kernel
    def write(item: dp.NdItem, x: Any, out: Any) -> None:
        i = item.get_global_id(0)
        v = np.int64(x[i])
        p = dp.PrivateArray(length, dtype)
        for j in range(length):
            p[j] = v + j
        out[i] = take(p, v, length)

    return write


def by_a_comparison(length: int, dtype: Any) -> Any:
    @dp.device_func
    def take(p: Any, v: Any, length: Any) -> Any:
        p[np.int64(v > 35)] = v + 7
        return p[(v // 2) % 2]

    return filled(length, dtype, take)


def by_a_choice(length: int, dtype: Any) -> Any:
    @dp.device_func
    def take(p: Any, v: Any, length: Any) -> Any:
        p[length - 1 if v > 35 else length - 2] = v + 7
        return p[v % length]

    return filled(length, dtype, take)


def in_either_array(length: int, dtype: Any) -> Any:
    @dp.kernel
    def write(item: dp.NdItem, x: Any, out: Any) -> None:
        i = item.get_global_id(0)
        v = np.int64(x[i])
        p = dp.PrivateArray(length, dtype, True)
        q = dp.PrivateArray(length, dtype, True)
        either = p if v > 35 else q
        either[v % 2] = 7
        out[i] = np.int64(p[(v // 2) % 2]) * 1000 + q[(v // 2) % 2]

    return write


def in_turn(length: int, dtype: Any) -> Any:
    @dp.device_func
    def take(p: Any, v: Any, length: Any) -> Any:
        for j in range(2):
            p[j], p[1 if v > j * 10 else 0] = p[1 if v > 35 else 0], p[j]
        return p[(v // 2) % length]

    return filled(length, dtype, take)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float32, np.int64])
@pytest.mark.parametrize("length", [2, 3, 4, 16])
@pytest.mark.parametrize("make", [by_a_comparison, by_a_choice, in_either_array, in_turn])
def test_an_element_is_taken_by_a_condition(
    make: Callable[..., Any], length: int, dtype: Any
) -> None:
    x = np.random.default_rng(length).integers(0, 60, 32).astype(np.int32)
    out, simulated = dp.zeros(32, dtype="int64"), np.zeros(32, np.int64)
    write = make(length, dtype)
    dp.call_kernel(write, dp.NdRange((32,), (32,)), dp.asarray(x), out)
    dp.simulate(write, dp.NdRange((32,), (32,)), x, simulated)
    np.testing.assert_array_equal(out.asnumpy(), simulated)


def test_an_element_is_taken_by_parity_with_sub_groups() -> None:
    @dp.kernel
    def write(item: dp.NdItem, x: Any, y: Any, out: Any) -> None:
        at = (item.get_global_id(0), item.get_global_id(1))
        dp.shift_group_left(item.get_sub_group(), np.uint16(48), 3)
        half, odd = divmod(x[at] - y[at], 2)
        p = dp.PrivateArray(2, np.uint16, True)
        p[half % 2] += np.int32(y[at])
        out[at] = p[odd % 2]

    numbers = np.random.default_rng(0)
    x, y = numbers.integers(-40, 40, (2, 8)).astype("int8"), numbers.integers(0, 80, (2, 8))
    y = y.astype("uint32")
    out = dp.zeros((2, 8), dtype="int64")
    dp.call_kernel(write, dp.NdRange((2, 8), (2, 8)), dp.asarray(x), dp.asarray(y), out)
    half, odd = np.divmod(x.astype("int64") - y, 2)
    np.testing.assert_array_equal(out.asnumpy(), np.where(half % 2 == odd, y, 0))


@pytest.mark.parametrize("fill", [False, True])
def test_private_memory_of_many_elements_takes_no_longer_to_compile(fill: bool) -> None:
    @dp.kernel
    def sieve(item: dp.Item, limits: Any, out: Any) -> None:
        marked = dp.PrivateArray(30_000, np.int8, fill)
        limit = limits[item.get_id(0)]
        if not fill:
            for k in range(limit):
                marked[k] = 0
        count = 0
        for k in range(2, limit):
            if not marked[k]:
                count += 1
                for multiple in range(k * k, limit, k):
                    marked[multiple] = 1
        out[item.get_id(0)] = count

    limits, out = dp.asarray([10, 1000, 30_000]), dp.zeros(3, dtype="int64")
    sieve[3](limits, out)
    assert out.tolist() == [4, 168, 3245]
    assert max(sieve.compile_seconds.values()) < 5


def test_private_memory_of_more_elements_than_a_module_can_say() -> None:
    @dp.kernel
    def large(item: dp.Item, out: Any) -> None:
        part = dp.PrivateArray((100_000, 100_000), np.float64)
        part[0, 0] = 1
        out[0] = part[0, 0]

    with pytest.raises(
        dp.KernelCompileError, match=r"PrivateArray: it has at most 2\*\*31 - 1 elements"
    ):
        large[1](dp.zeros(1))
