"""``dp.explain`` of compiled functions: why loops are not vectorized, and what to write instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.jit.forms import function_of
from tests.support import runs_loops_on_host

pytestmark = pytest.mark.skipif(not runs_loops_on_host(), reason="native code needs a CPU device")


@dp.jit
def powered(x: Any) -> Any:
    for _ in range(3):
        x *= x
    return x


@dp.jit
def halved(x: Any, times: int) -> Any:
    return x if times == 0 else halved(x / 2, times - 1)


@dp.jit
def third(x: Any) -> Any:
    return x / 3


def running(x: Any, y: Any, at: Any) -> None:
    for i in range(1, x.size):
        x[i] = x[i - 1] * 0.5 + y[i]


def running_back(x: Any, y: Any, at: Any) -> None:
    for i in range(x.size - 2, -1, -1):
        x[i] = x[i + 1] + y[i]


def forward(x: Any, y: Any, at: Any) -> None:
    for i in range(x.size - 1):
        x[i] = x[i + 1] + y[i]


def carried(x: Any, y: Any, at: Any) -> None:
    before = 0.0
    for i in range(x.size):
        y[i] = x[i] - before
        before = x[i] * before


def summed(x: Any, y: Any, at: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


def counted(x: Any, y: Any, at: Any) -> Any:
    count = 0
    for i in range(at.size):
        count += at[i]
    return count


def searched(x: Any, y: Any, at: Any) -> Any:
    i = 0
    while x[i] > 0 and i < 5:
        i += 1
    return i


def left(x: Any, y: Any, at: Any) -> None:
    for i in range(x.size):
        if x[i] > 3:
            break
        y[i] = x[i]


def scattered(x: Any, y: Any, at: Any) -> None:
    for i in range(x.size):
        y[at[i]] += x[i]


def scattered_by_name(x: Any, y: Any, at: Any) -> None:
    for i in range(x.size):
        place = int(x[i])
        y[place] = 1.0


def gathered(x: Any, y: Any, at: Any) -> None:
    for i in range(x.size):
        y[i] += x[at[i]]


def calling(x: Any, y: Any, at: Any) -> None:
    for i in range(x.size):
        y[i] = powered(x[i])


def recursive(x: Any, y: Any, at: Any) -> None:
    for i in range(x.size):
        y[i] = halved(x[i], 3)


def inlining(x: Any, y: Any, at: Any) -> None:
    for i in range(x.size):
        y[i] = third(x[i])


def mixed(x: Any, y: Any, at: Any) -> None:
    for i in range(at.size):
        at[i] = at[i] * np.int32(3)


def of_one_size(x: Any, y: Any, at: Any) -> None:
    for i in range(at.size):
        at[i] = at[i] * 3 + i


def by_rows(x: Any, y: Any, at: Any) -> None:
    for i in dp.prange(x.size):
        y[at[i]] = third(x[i])


CASES: list[tuple[Any, list[str]]] = [
    (running, ["x[i - 1] may be the x[i] of an earlier iteration", "dp.cumulative_sum"]),
    (running_back, ["x[i + 1] may be the x[i] of an earlier iteration"]),
    (forward, []),
    (carried, ["before carries a value to the next iteration", "in a loop of its own"]),
    (summed, ["total += x[i] * y[i] adds in order", "fastmath=True"]),
    (counted, []),
    (searched, ["ends at a value that it computes", "let range count to it"]),
    (left, ["ends at a value that it computes"]),
    (scattered, ["y[at[i]] is stored at an index that was read", "dp.bincount"]),
    (scattered_by_name, ["y[place] is stored at an index that was read"]),
    (gathered, []),
    (calling, ["powered has a loop or calls itself", "without either"]),
    (recursive, ["halved has a loop or calls itself"]),
    (inlining, []),
    (mixed, ["at[i] * np.int32(3) mixes int32 and int64", "astype('int32')"]),
    (of_one_size, []),
    (
        by_rows,
        ["y[at[i]] is stored at an index that was read"],
    ),
]


@pytest.mark.parametrize(
    ("function", "texts"), CASES, ids=lambda case: getattr(case, "__name__", "")
)
def test_obstacles_and_rewrites(function: Any, texts: list[str]) -> None:
    given = dp.ones(8), dp.ones(8), dp.arange(8)
    shown = str(dp.explain(dp.jit(function), *given))
    for text in texts:
        assert text in shown
    assert texts or "; " not in shown.partition("native")[2]


def test_only_the_axis_of_the_innermost_loop_carries() -> None:
    @dp.jit
    def down(x: Any) -> None:
        for i in range(1, x.shape[0]):
            for j in range(1, x.shape[1]):
                x[i, j] = x[i - 1, j - 1] + x[i - 1, j]

    @dp.jit
    def along(x: Any) -> None:
        for i in range(x.shape[0]):
            for j in range(1, x.shape[1]):
                x[i, j] = x[i, j - 1] + 1

    assert "earlier iteration" not in str(dp.explain(down, dp.ones((3, 3))))
    text = str(dp.explain(along, dp.ones((3, 3))))
    assert "x[i, j - 1] may be the x[i, j] of an earlier iteration" in text


def test_each_region_of_a_driver_is_explained() -> None:
    @dp.jit
    def f(x: Any, y: Any) -> None:
        x += 1
        for i in dp.prange(x.size):
            y[int(x[i])] = 2.0
        for i in range(1, x.size):
            y[i] += y[i - 1]

    text = str(dp.explain(f, dp.ones(9), dp.ones(9)))
    assert "y[int(x[i])] is stored at an index that was read" in text
    assert "y[i - 1] may be the y[i] of an earlier iteration" in text


def test_prange_by_another_name_runs_and_is_explained_alike() -> None:
    text = "def f(x):\n    s = 0.0\n    for i in {}(x.size):\n        s += x[i]\n    return s\n"
    x, found = dp.arange(9.0), []
    for name, names in (("dp.prange", {}), ("loop", {"loop": dp.prange})):
        function = dp.jit(function_of(text.format(name), **names))
        assert float(function(x)) == 36.0
        found.append(str(dp.explain(function, x)).split("\n", 2)[2].replace(f"in {name}(", "("))
    assert found[0] == found[1]
