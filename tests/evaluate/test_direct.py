"""Operations of large arrays that NumPy computes: the second and later ones take a short way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import _hooks
from dparray._evaluate import direct

COUNT = 300_000
VALUES = np.random.default_rng(8).uniform(0.1, 0.9, COUNT)

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "abs": lambda m, x: m.abs(x),
    "sqrt": lambda m, x: m.sqrt(x),
    "reciprocal": lambda m, x: m.reciprocal(x),
    "floor": lambda m, x: m.floor(x),
    "is nan": lambda m, x: m.isnan(x),
    "two": lambda m, x: x + x,
    "number": lambda m, x: x - 2,
    "compared": lambda m, x: x > 0.5,
    "chosen": lambda m, x: m.where(x > 0.5, x, -x),
    "converted": lambda m, x: m.astype(x, np.float64),
    "to integers": lambda m, x: m.astype(x * 100, np.int16),
    "every other": lambda m, x: x[::2] + x[1::2],
    "reversed": lambda m, x: -x[::-1],
    "transposed": lambda m, x: m.abs(x.reshape(300, 1000).T),
    "broadcast": lambda m, x: x.reshape(300, 1000) + x[:1000],
    "maxima": lambda m, x: m.max(x.reshape(300, 1000), axis=1),
    "means": lambda m, x: m.mean(x.reshape(300, 1000), axis=0),
}


@pytest.fixture(autouse=True)
def takes_numpy() -> Any:
    """The cost model prefers NumPy for single operations, and all else may be chosen."""
    with dp.config.override(cost_model={"launch": 1e-2, "wake": 1e-2}):
        yield


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_results_are_those_of_the_first_time(name: str, dtype: str) -> None:
    values, call = VALUES.astype(dtype), CALLS[name]
    x, expected = dp.asarray(values), CALLS[name](np, values)
    for _ in range(3):
        found = call(dp, x)
        dp.eval(found)
        assert found.dtype == expected.dtype
        assert found.strides == expected.strides or found.size == found.shape[0]
        np.testing.assert_allclose(
            found.asnumpy(), expected, rtol=2e-3 if dtype == "float16" else 1e-5
        )


def test_a_known_operation_is_not_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x = dp.asarray(VALUES)
    dp.eval(dp.abs(x))
    monkeypatch.setattr("dparray._evaluate.evaluate._evaluate_group", None)
    y = dp.abs(x)
    dp.eval(y)
    np.testing.assert_array_equal(y.asnumpy(), np.abs(VALUES))


def test_other_values_and_other_numbers() -> None:
    for number in (2.0, 3.0, 4):
        x = dp.asarray(VALUES * number)
        np.testing.assert_array_equal((x * number).asnumpy(), VALUES * number * number)


def _fill_slowly(item: Any, x: Any, rounds: Any) -> None:
    i = item.get_id(0)
    value = x[i] * 0
    for _ in range(rounds):
        value += 1.0
    x[i] = value


def test_memory_at_work_is_waited_for() -> None:
    x = dp.asarray(VALUES)
    dp.eval(x + 1)
    kernel = dp.kernel(_fill_slowly)
    dp.call_kernel(kernel, dp.Range(COUNT), x, 1)
    dp.synchronize()
    dp.call_kernel(kernel, dp.Range(COUNT), x, 2_000)
    y = x + 1
    dp.eval(y)
    np.testing.assert_array_equal(y.asnumpy(), np.full(COUNT, 2_001.0))


def test_who_listens_is_told() -> None:
    x = dp.asarray(VALUES)
    dp.eval(dp.abs(x))
    told: list[str] = []
    unsubscribe = _hooks.subscribe(lambda event, **values: told.append(event))
    try:
        dp.eval(dp.abs(x))
    finally:
        unsubscribe()
    assert "host" in told


def test_nothing_is_remembered_where_the_host_may_not_compute() -> None:
    x = dp.asarray(VALUES)
    dp.eval(dp.abs(x))
    with dp.config.override(host_tier=False):
        y = dp.abs(x)
        dp.eval(y)
    np.testing.assert_array_equal(y.asnumpy(), np.abs(VALUES))
    direct.forget()
    assert not direct.operations
