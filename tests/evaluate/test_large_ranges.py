"""Arrays with more elements than a driver's limit of 2**31 work-items, which is reduced here."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._evaluate import bound_plan, schedule
from dparray._runtime import launch
from tests.support import force

LIMIT = 40_000
SIZE = LIMIT + 20_016


@pytest.fixture(autouse=True)
def few_work_items(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    bound_plan.forget()
    monkeypatch.setattr(schedule, "INDEX_LIMIT", LIMIT)
    monkeypatch.setattr(launch, "INDEX_LIMIT", LIMIT)
    yield
    bound_plan.forget()


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
    "write rows by a mask": lambda xp, x: masked(xp, x.reshape(11, -1)),
    "write columns by a mask": lambda xp, x: masked(xp, x.reshape(11, -1).T),
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


def test_a_user_defined_range_raises_with_a_suggested_fix() -> None:
    @dp.kernel
    def fill(item: dp.NdItem, x: Any) -> None:
        x[item.get_global_id(0)] = 1

    space = dp.NdRange((SIZE // 16 * 16,), (16,))
    with pytest.raises(dp.KernelRangeError, match="launched in pieces; in groups, let a work-item"):
        dp.call_kernel(fill, space, dp.zeros(SIZE))


@pytest.mark.usefixtures("tests_options")
def test_a_write_by_a_mask_needs_no_memory_for_another_array() -> None:
    x, wanted = dp.asarray(np.arange(SIZE)), np.arange(SIZE)
    mask = x % 7 == 0
    dp.eval(mask)
    dp.synchronize()
    tracemalloc.start()
    x[mask] = -1
    dp.synchronize()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    wanted[wanted % 7 == 0] = -1
    np.testing.assert_array_equal(x.asnumpy(), wanted)
    assert peak < x.nbytes // 2


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex64"])
def test_an_array_that_is_its_own_mask_or_value(dtype: str) -> None:
    with force("host"):
        host = (np.arange(SIZE) % 3).astype(dtype)
        x = dp.asarray(host)
        for mine, theirs in ((x, host), (x[1:], host[1:])):
            mine[mine == 1] = 2
            theirs[theirs == 1] = 2
            mine[...] = dp.where(mine[::-1] == 2, mine[::-1], mine)
            theirs[...] = np.where(theirs[::-1] == 2, theirs[::-1], theirs)
        np.testing.assert_array_equal(x.asnumpy(), host)
        if dtype == "bool":
            x[1:][x[:-1]] = False
            host[1:][host[:-1].copy()] = False
            np.testing.assert_array_equal(x.asnumpy(), host)
