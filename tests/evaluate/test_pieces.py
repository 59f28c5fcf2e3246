"""What the calling thread computes piece by piece is what it computes whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._evaluate import limits, pieces

SHAPES = [(66_000,), (100_003,), (300, 300), (3, 70_000), (41, 41, 41), (2, 3, 70_000), (70_000, 1)]


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """The calling thread computes what is noted down; whether it did so piece by piece."""
    found: list[bool] = []
    compute = pieces.Recipe.compute

    def noted(*args: Any) -> bool:
        found.append(compute(*args))
        return found[-1]

    monkeypatch.setattr(pieces.Recipe, "compute", noted)
    with limits.force("host"):
        limits.set_host_elements(10)
        monkeypatch.setattr(limits, "uses_kernels", False)  # those that other tests have made
        yield found


def chain(xp: Any, a: Any, b: Any, c: Any, row: Any) -> Any:
    return a * 2 + a


def several_dtypes(xp: Any, a: Any, b: Any, c: Any, row: Any) -> Any:
    return xp.where(a * b > c, xp.sqrt(abs(c)) + a, b * 2 + row)


def broadcast(xp: Any, a: Any, b: Any, c: Any, row: Any) -> Any:
    return (a + row) * (c % 3) - b**2


def backwards(xp: Any, a: Any, b: Any, c: Any, row: Any) -> Any:
    return (a[::-1] * 2 + 1) * a


def complex_numbers(xp: Any, a: Any, b: Any, c: Any, row: Any) -> Any:
    return xp.exp(a * 1j) * b + abs(c)


def written_where_it_is_read(xp: Any, a: Any, b: Any, c: Any, row: Any) -> Any:
    x = a.copy()
    x[...] = x * 2 + x * a
    x[::2] -= x[::2] * a[::2] + 1
    x[1:] = (x[:-1] + x[1:]) * 0.5
    return x


def narrowed(xp: Any, a: Any, b: Any, c: Any, row: Any) -> Any:
    x = b.copy()
    x[...] = xp.where(a > 0.5, b * 3 + row, b - 1)
    return x


CASES = [chain, several_dtypes, broadcast, backwards, complex_numbers, written_where_it_is_read]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("case", [*CASES, narrowed], ids=lambda case: case.__name__)
def test_pieces_are_computed_as_the_whole(cut: list[bool], case: Any, shape: Any) -> None:
    rng = np.random.default_rng(7)
    given = [
        rng.random(shape),
        rng.random(shape).astype(np.float32),
        rng.integers(-5, 5, shape),
        rng.random(shape[-1]).astype(np.float32 if case is narrowed else np.float64),
    ]
    wanted = case(np, *given)
    found = case(dp, *map(dp.asarray, given))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=2e-6)
    assert any(cut)


def test_what_reads_its_neighbours_reads_them_before_they_are_written(cut: list[bool]) -> None:
    values = np.random.default_rng(8).random(200_001)
    x = dp.asarray(values)
    x[1:] = x[:-1] * 2 + 1
    values[1:] = values[:-1] * 2 + 1
    np.testing.assert_array_equal(x.asnumpy(), values)


def test_few_elements_are_not_cut(cut: list[bool]) -> None:
    x = dp.ones(pieces.FEWEST - 1)
    assert (x * 2 + x).asnumpy()[-1] == 3
    assert not cut
