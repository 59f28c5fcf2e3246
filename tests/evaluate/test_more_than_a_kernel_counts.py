"""Arrays of more elements than drivers count work-items: 2**31, which is made small here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._evaluate import evaluate, schedule
from dparray._runtime import launch

LIMIT = 40_000
SIZE = LIMIT + 20_016


@pytest.fixture(autouse=True)
def few_work_items(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    evaluate.plans.clear()
    monkeypatch.setattr(schedule, "INDEX_LIMIT", LIMIT)
    monkeypatch.setattr(launch, "INDEX_LIMIT", LIMIT)
    yield
    evaluate.plans.clear()


def added(xp: Any, x: Any) -> Any:
    x += 1
    return x


def masked(xp: Any, x: Any) -> Any:
    x[x % 7 == 0] = -1
    return x


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "in place": added,
    "expression": lambda xp, x: xp.where(x % 3 == 0, x * 2, x - 1),
    "slice": lambda xp, x: x[5:].copy(),
    "reversed": lambda xp, x: x[::-1] + x,
    "concatenate": lambda xp, x: xp.concatenate([x, x[:10]]),
    "roll": lambda xp, x: xp.roll(x, 3),
    "nonzero": lambda xp, x: xp.nonzero(x % 1000 == 3)[0],
    "mask": lambda xp, x: x[x % 1000 == 3],
    "write by a mask": masked,
    "take": lambda xp, x: xp.take(x, xp.asarray([3, -1])),
    "sum": lambda xp, x: xp.sum(x, dtype="int64"),
    "sum of rows": lambda xp, x: xp.sum(x.reshape(11, -1), axis=0),
    "cumsum": lambda xp, x: xp.cumsum(x),
    "argmax": lambda xp, x: xp.argmax(x),
    "sort": lambda xp, x: xp.sort(x),
    "astype": lambda xp, x: x.astype("float32"),
    "matrix": lambda xp, x: (x.reshape(-1, 11).T * 2).copy(),
    "compare": lambda xp, x: xp.all(x == x),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("lazy", [True, False])
def test_as_numpy(name: str, lazy: bool) -> None:
    values = (np.arange(SIZE) % 30_000).astype("int32")
    wanted = CALLS[name](np, values.copy())
    with dp.config.override(lazy=lazy):
        found = CALLS[name](dp, dp.asarray(values))
        np.testing.assert_array_equal(found.asnumpy(), wanted)


def test_a_range_of_the_user_says_what_to_do() -> None:
    @dp.kernel
    def fill(item: dp.NdItem, x: Any) -> None:
        x[item.get_global_id(0)] = 1

    space = dp.NdRange((SIZE // 16 * 16,), (16,))
    with pytest.raises(dp.KernelRangeError, match="launched in pieces; in groups, let a work-item"):
        dp.call_kernel(fill, space, dp.zeros(SIZE))
