"""Steps that NumPy computes on another thread, since a user's kernel writes their operands."""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp

SIZE = 300
VALUES = np.random.default_rng(2).random(SIZE)


@dp.kernel
def slowly_halve(item: Any, x: Any, steps: int) -> None:
    i = item.get_id(0)
    value = x[i]
    for _ in range(steps):
        value = value * value - 1.0
    x[i] = 0.5 * x[i] + 0.0 * min(max(value, -1.0), 1.0)


@pytest.fixture(params=["cpu", "host:cpu"])
def x(request: pytest.FixtureRequest) -> Any:
    """Return an array that a kernel writes for some tenths of a second."""
    x = dp.asarray(VALUES, device=dp.Device(request.param).new_queue())
    dp.call_kernel(slowly_halve, dp.Range(SIZE), x, 1).wait()
    dp.call_kernel(slowly_halve, dp.Range(SIZE), x, 2_000_000)
    return x


OPERATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sum": (operator.methodcaller("sum"),) * 2,
    "small": (lambda x: x[:5] + x[5:10],) * 2,
    "expression": (lambda x: (x * 2 - 1) ** 2,) * 2,
    "where": (lambda x: dp.where(x > 0.1, x, -1.0), lambda h: np.where(h > 0.1, h, -1.0)),
    "axis": (lambda x: x.reshape(20, 15).mean(axis=0),) * 2,
    "join": (lambda x: dp.concatenate([x, x[::-1]]), lambda h: np.concatenate([h, h[::-1]])),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_step_behind_a_running_kernel_returns(x: Any, name: str) -> None:
    ours, theirs = OPERATIONS[name]
    host = VALUES * 0.25
    y = ours(x)
    dp.eval(y)
    assert not x.ready
    z = y + 1  # Work on the result waits for it.
    y -= 1
    np.testing.assert_allclose(z.asnumpy(), theirs(host) + 1)
    np.testing.assert_allclose(y.asnumpy(), theirs(host) - 1)


def test_statements_keep_their_order(x: Any) -> None:
    host = VALUES * 0.25
    total = x.sum()
    dp.eval(total)
    x[3] = 7.0
    x[10:20] += x[20:30]
    first = float(total)
    assert first == pytest.approx(host.sum())
    host[3] = 7.0
    host[10:20] += host[20:30]
    np.testing.assert_allclose(x.asnumpy(), host)


def test_memory_of_a_dropped_result_is_not_used_before_its_step(x: Any) -> None:
    y = x[:100] * 2
    dp.eval(y)
    del y
    gc.collect()
    others = [dp.full(100, float(number), device=x.device) for number in range(8)]
    assert x.asnumpy() == pytest.approx(VALUES * 0.25)
    for number, each in enumerate(others):
        assert (each.asnumpy() == number).all()
