"""Gradients of large arrays, which fused kernels compute; the tape's memory."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import forced, wait_for_compiler

N = 60_000


def chain(x: Any) -> Any:
    return dp.mean((dp.sin(x) * dp.exp(-x * x) - 0.5) ** 2)


def slices(x: Any) -> Any:
    y = x * 1
    y[1:-1] += 0.1 * (y[2:] + y[:-2] - 2 * y[1:-1])
    return dp.sum(y * y)


def masked(x: Any) -> Any:
    return dp.sum(dp.where(x > 0, dp.sqrt(x), 0)) + dp.sum(dp.maximum(x, 0.5) ** 2)


@pytest.mark.parametrize("f", [chain, slices, masked])
def test_kernels_compute_the_same_gradients_as_numpy(f: Any) -> None:
    values = np.random.default_rng(0).normal(size=N)
    x = dp.asarray(values)
    fused = dp.grad(f)(x).asnumpy()
    with dp.config.override(fused_tier=False):
        by_numpy = dp.grad(f)(dp.asarray(values)).asnumpy()
    assert np.allclose(fused, by_numpy, rtol=1e-12, atol=1e-15)
    t = np.random.default_rng(1).normal(size=N)
    along = float(dp.jvp(f, (x,), (dp.asarray(t),))[1])
    assert along == pytest.approx(float(np.sum(fused * t)), rel=1e-9)


def test_a_gradient_is_pending_like_any_result() -> None:
    x = dp.ones(1_000_000)
    dp.eval(x)
    gradient = dp.grad(lambda x: dp.sum(dp.sin(x) * x))(x)
    assert gradient.is_pending
    assert gradient[0].item() == pytest.approx(np.cos(1) + np.sin(1))


def in_use() -> int:
    gc.collect()
    return int(dp.memory.stats().in_use)


def peak(f: Any, *arrays: Any) -> float:
    """Return the memory of a call, in arrays like the first."""
    for _ in range(3):
        dp.eval(*arrays)
        before = in_use()
        dp.memory.reset_peak()
        results = f(*arrays)
        dp.eval(*(results if isinstance(results, tuple) else (results,)))
        most = dp.memory.stats().peak - before
        del results
        wait_for_compiler()
    return float(most / arrays[0].nbytes)


def test_the_tape_keeps_what_derivatives_read() -> None:
    def steps(x: Any, count: int) -> Any:
        for _ in range(count):
            x[1:-1] += 0.1 * (x[2:] + x[:-2] - 2 * x[1:-1])
        return dp.sum(x * x)

    w = dp.ones((64, 2))
    for backend in ("host", "fused"):
        with forced(backend):
            assert peak(dp.value_and_grad(lambda x: steps(x, 9)), dp.ones(1 << 14)) < 7
    product = dp.value_and_grad(lambda x, w: dp.sum(dp.tanh(x @ w)), 1)
    assert peak(product, dp.ones((1 << 14, 64)), w) < 0.6
