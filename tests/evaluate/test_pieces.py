"""Expressions of more elements than drivers count are pieces of one kernel; the limit is small."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._codegen import elementwise
from dparray._evaluate import bound_plan, schedule, tuning
from dparray._runtime import launch
from tests.support import forced, launched

LIMIT = 40_000
SIZE = LIMIT + 20_016


@pytest.fixture(autouse=True)
def few_work_items(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    bound_plan.forget()
    tuning._machine.cache_clear()
    monkeypatch.setattr(schedule, "INDEX_LIMIT", LIMIT)
    monkeypatch.setattr(launch, "INDEX_LIMIT", LIMIT)
    yield
    bound_plan.forget()
    tuning._machine.cache_clear()


@dp.elementwise
def halved(x: Any) -> Any:
    return x / 2


A = np.arange(3 * SIZE, dtype="float32") % 1000
PLANE, CUBE = A[: 600 * 300].reshape(600, 300), A[: 20 * 60 * 150].reshape(20, 60, 150)

#: Expressions on a vector, a plane and a cube.
EXPRESSIONS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "vector": lambda xp, x, y, z: x * 2 + 1,
    "reversed": lambda xp, x, y, z: x[::-1] - x,
    "steps": lambda xp, x, y, z: x[::2] * x[1::2],
    "plane": lambda xp, x, y, z: y[1:, 2:] + y[:-1, :-2],
    "columns": lambda xp, x, y, z: (y.T * 2)[:, ::-1],
    "broadcast": lambda xp, x, y, z: y[:, :1] * y[0] + y[:1],
    "cube": lambda xp, x, y, z: z[1:-1, 1:-1, 1:-1] * 6 - z[2:, 1:-1, 1:-1],
    "long rows": lambda xp, x, y, z: xp.stack([x, x + 1]).reshape(2, -1)[:, 1:] * 3,
    "complex": lambda xp, x, y, z: (x + 1j * x) * 2,
    "positions": lambda xp, x, y, z: xp.arange(x.size) * 3 - x,
    "indices": lambda xp, x, y, z: xp.indices((600, 300))[1] * 2 + y - xp.indices((600, 300))[0],
    "triangle": lambda xp, x, y, z: xp.tril(y, 3) + xp.eye(600, 300),
    "function": lambda xp, x, y, z: halved(x) if xp is dp else x / 2,
}


@pytest.mark.parametrize("has_vectors", [True, False])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_pieces_are_computed_by_one_kernel(
    name: str, has_vectors: bool, pretend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(kind="gpu", shares_memory=False, loads_vectors=has_vectors)
    monkeypatch.setattr(elementwise, "MIN_IN_VECTORS", 1)
    compute = EXPRESSIONS[name]
    with forced("fused"):
        arrays = [dp.asarray(each) for each in (A, PLANE, CUBE)]
        dp.eval(*arrays)
        with launched() as launches:
            found = compute(dp, *arrays)
            dp.eval(found)
        np.testing.assert_array_equal(found.asnumpy(), compute(np, A, PLANE, CUBE))
    count = found.size // LIMIT + 1
    assert len(launches) >= count > 1
    pieces = launches[-count:]
    assert len({each.kernel.name for each in pieces}) == 1
    assert all(np.prod(each.global_range) < LIMIT for each in pieces)


def test_pieces_of_statements_and_of_two_results(pretend: Any) -> None:
    pretend(kind="gpu", shares_memory=False)
    host = PLANE.copy()
    with forced("fused"):
        x = dp.asarray(host)
        x[1:-1, 1:-1] += x[1:-1, 1:-1] * 2
        host[1:-1, 1:-1] += host[1:-1, 1:-1] * 2
        x[:, 1:] = x[:, :-1] + 1
        host[:, 1:] = host[:, :-1] + 1
        x[...] = 3 - x
        host[...] = 3 - host
        low, high = x - 1, x + 1
        dp.eval(low, high)
        np.testing.assert_array_equal(x.asnumpy(), host)
        np.testing.assert_array_equal(low.asnumpy(), host - 1)
        np.testing.assert_array_equal(high.asnumpy(), host + 1)


@pytest.mark.parametrize("has_vectors", [True, False])
def test_a_grid_of_few_rows_takes_several_launches(
    has_vectors: bool, pretend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(kind="gpu", shares_memory=False, loads_vectors=has_vectors, groups=(2**31 - 1, 10, 10))
    monkeypatch.setattr(schedule, "INDEX_LIMIT", 2**31)
    monkeypatch.setattr(elementwise, "MIN_IN_VECTORS", 1)
    with forced("fused"):
        y, z = dp.asarray(PLANE), dp.asarray(CUBE)
        dp.eval(y, z)
        with launched() as launches:
            found = y[:, 1:] * 2, z[:, 1:, 1:] + z[:, :-1, :-1]
            for each in found:
                dp.eval(each)
        np.testing.assert_array_equal(found[0].asnumpy(), PLANE[:, 1:] * 2)
        np.testing.assert_array_equal(found[1].asnumpy(), CUBE[:, 1:, 1:] + CUBE[:, :-1, :-1])
    assert all(each.global_range[0] <= 80 for each in launches)
    assert len(launches) >= 6
