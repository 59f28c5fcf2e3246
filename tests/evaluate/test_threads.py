"""Threads may share arrays and queues; a crash of one of these tests is a race in dparray."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import run_in_threads


def test_pending_arrays_of_one_thread_are_computed_in_others() -> None:
    x = dp.ones(100_000)
    pending = [x + number for number in range(8)]
    found = run_in_threads(lambda number: float((pending[number] * 2).sum()))
    assert found == [200_000.0 * (number + 1) for number in range(8)]


def test_all_threads_compute_one_pending_array() -> None:
    y = dp.arange(50_000) * 2
    found = run_in_threads(lambda number: int(y[number]))
    assert found == [2 * number for number in range(8)]


def test_threads_work_on_one_queue() -> None:
    @dp.kernel
    def double(item: Any, x: Any) -> None:
        i = item.get_id(0)
        x[i] = x[i] * 2

    def work(number: int) -> Any:
        values = np.arange(3000.0) + number
        x = dp.asarray(values)
        for step in range(20):
            x = x + step
            dp.call_kernel(double, dp.Range(x.size), x)
            x[::2] -= 1
            values = (values + step) * 2
            values[::2] -= 1
            if step % 5 == 0:
                assert float(x.max()) == values.max()
        np.testing.assert_array_equal(x.asnumpy(), values)
        return float(x[1])

    assert all(value is not None for value in run_in_threads(work))


def test_threads_reduce_on_one_queue() -> None:
    host = np.random.default_rng(5).integers(0, 9, (600, 700))

    def work(number: int) -> Any:
        x = dp.asarray(host + number)
        for _ in range(30):
            assert int(x.sum()) == host.sum() + number * host.size
            np.testing.assert_array_equal(x.max(axis=0).asnumpy(), host.max(axis=0) + number)
        return True

    assert all(run_in_threads(work))


def test_threads_copy_between_queues() -> None:
    parts = dp.Device("cpu").create_sub_devices(partition=1)

    def work(number: int) -> int:
        x = dp.full(2000, number, device=parts[number % 2])
        for _ in range(10):
            x = x.to_device(parts[0]).to_device(parts[1]) + 1
        return int(x.sum())

    assert run_in_threads(work) == [2000 * (number + 10) for number in range(8)]


def test_threads_launch_on_one_queue_together_with_dpnp() -> None:
    dpt = pytest.importorskip("dpnp.tensor")

    @dp.kernel
    def increase(item: Any, x: Any) -> None:
        i = item.get_id(0)
        x[i] = x[i] + 1

    def work(number: int) -> int:
        x = dpt.full(20_000, number, dtype="int64")
        for _ in range(40):
            increase[20_000](x)
            increase[20_000](x)
            x += 1  # dpnp's kernel
        return int(x[19_999])

    # Two threads that build dpnp's first kernels at the same time deadlock in dpnp.
    assert work(0) == 120
    assert run_in_threads(work) == [number + 120 for number in range(8)]
