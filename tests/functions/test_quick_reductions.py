"""Reductions of all elements in memory, which NumPy computes if it is faster than a launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._evaluate import cost_model, host, limits
from tests.support import same

COUNT = 1 << 18


def array(dtype: str, queue: Any) -> tuple[np.ndarray, dp.ndarray]:
    a = (np.arange(COUNT).reshape(-1, 128) * 7 % 1013 - 500).astype(dtype)
    return a, dp.asarray(a, sycl_queue=queue)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "float64"])
@pytest.mark.parametrize("name", host.QUICK_FOLDS)
def test_all_elements_are_reduced_as_by_numpy(name: str, dtype: str, queue: Any) -> None:
    a, x = array(dtype, queue)
    for keepdims in (False, True):
        for ours, theirs in ((x, a), (x.T, a.T), (x[::2], a[::2])):
            found = getattr(dp, name)(ours, keepdims=keepdims)
            assert (found.queue, found.usm_type) == (x.queue, x.usm_type)
            same(found, getattr(np, name)(theirs, keepdims=keepdims), 1e-6)


def test_pending_values_are_reduced_by_a_kernel(queue: Any) -> None:
    a, x = array("float32", queue)
    a[5, 5] = np.nan
    x[5, 5] = dp.nan
    assert np.isnan(float(x.max()))
    assert np.isnan(float((x * 2).max()))
    same(dp.argmax(x), np.argmax(a))
    x[5, 5] = 0
    same((x * 2).sum(), np.asarray(2 * x.asnumpy().sum()), 1e-5)


def test_the_number_of_elements_reduced_together_follows_the_model() -> None:
    with dp.config.override(cost_model={"launch": 1.0}):
        assert limits.folded_elements == cost_model.MAX_FOLDED
    with dp.config.override(cost_model={"launch": 1e-9}):
        assert limits.folded_elements == cost_model.MIN_AT_ONCE
    with limits.force("fused"):
        assert limits.folded_elements == 0


def test_a_result_in_the_pools_memory_is_reduced() -> None:
    host = np.linspace(0, 1, 40_000)
    assert np.isclose(float((dp.asarray(host) * 2).sum()), (host * 2).sum())
    assert np.isclose(float((dp.asarray(host) * 2)[10:].max()), 2)


def test_an_array_whose_memory_a_kernel_still_writes(queue: Any) -> None:
    few = dp.asarray(np.ones(60), sycl_queue=queue)
    x = few + 1  # computed eagerly, not in USM memory yet

    @dp.kernel
    def slowly_double(item: Any, x: Any, rounds: Any) -> None:
        total = 0.0
        for _ in range(rounds):
            total = total * 0.5 + 1e-9
        i = item.get_id(0)
        x[i] = 2 * x[i] + (total > 1)

    dp.call_kernel(slowly_double, dp.Range(60), x, 300_000)
    assert float(x.sum()) == 240


@pytest.mark.parametrize("function", ["sum", "mean"])
@pytest.mark.parametrize("shape", [(20_000_000,), (200, 100_000), (100_000, 200), (3_000_001, 3)])
def test_sums_of_many_floats_have_small_rounding_errors(
    function: str, shape: tuple[int, ...]
) -> None:
    x = dp.full(shape, 0.1, dtype="float32")
    count = {"sum": x.size, "mean": 1}[function]
    value = float(np.float32(0.1))
    with limits.force("fused"):
        total = float(getattr(dp, function)(x))
    np.testing.assert_allclose(total, value * count, rtol=2e-6)
    for axis in range(len(shape)):
        with limits.force("fused"):
            found = getattr(dp, function)(x, axis=axis).asnumpy()
        count = {"sum": shape[axis], "mean": 1}[function]
        np.testing.assert_allclose(found, value * count, rtol=4e-6)


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_sums_of_many_floats_keep_infinities(odd: float) -> None:
    x = dp.ones(3_000_000, dtype="float32")
    x[1_234_567] = odd
    with limits.force("fused"):
        np.testing.assert_equal(float(dp.sum(x)), odd)
