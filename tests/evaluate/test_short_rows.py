"""Reductions over many rows shorter than a vector: groups traverse blocks of whole rows.

Results are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._codegen.reduction_forms import MIN_IN_SHORT_ROWS
from tests.support import counts, launched, same, values

pytestmark = pytest.mark.usefixtures("fused")

NAMES = ("sum", "max", "var", "argmax", "any", "prod")


def rows_for(columns: int) -> int:
    """Return the smallest number of rows that kernels traverse in blocks."""
    return -(-MIN_IN_SHORT_ROWS // columns)


def check(name: str, host: np.ndarray, given: Any, axis: Any = 0) -> None:
    exact = host.astype("float64") if host.dtype.kind == "f" and name != "argmax" else host
    wanted = np.asarray(getattr(exact, name)(axis=axis))
    found = getattr(given, name)(axis=axis)
    same(found, wanted.astype(found.dtype), 2e-4)


@pytest.mark.parametrize("columns", [2, 3, 4, 7, 8, 15])
@pytest.mark.parametrize("beside", [-1, 0, 1, 5])
def test_sums_and_positions_on_both_sides_of_the_limit(columns: int, beside: int) -> None:
    host = values((rows_for(columns) + beside, columns))
    given = dp.asarray(host)
    check("sum", host, given)
    check("argmax", host, given)


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("name", NAMES)
def test_reductions_of_each_kind(name: str, dtype: str) -> None:
    host = counts((rows_for(5) + 3, 5), dtype, 2)
    host[-1, 2] = 1  # the last row, which is not in a whole block
    if name == "prod":
        host[:-3] = 1
    with launched() as launches:
        check(name, host, dp.asarray(host))
    assert launches[0].global_range[0] % 16 == 0


@pytest.mark.parametrize("last", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["sum", "max", "min", "argmax"])
def test_elements_that_are_not_finite_in_the_last_row(name: str, last: float) -> None:
    host = values((rows_for(3) + 2, 3))
    host[-1, 1] = last
    check(name, host, dp.asarray(host))


VIEWS: dict[str, Callable[[Any], Any]] = {
    "reversed": lambda x: x[::-1],
    "columns reversed": lambda x: x[:, ::-1],
    "every second row": lambda x: x[::2],
    "columns left out": lambda x: x[:, 1:],
    "rows left out": lambda x: x[3:],
    "pending": lambda x: x * 2 - 1,
    "less a row": lambda x: x - x[7],
    "times a column": lambda x: x * x[:, :1],
}


@pytest.mark.parametrize("view", sorted(VIEWS))
@pytest.mark.sample(4)
def test_views_and_expressions(view: str) -> None:
    host = values((2 * rows_for(6) + 1, 6))
    given = dp.asarray(host)
    for name in ("sum", "min", "var"):
        check(name, VIEWS[view](host), VIEWS[view](given))


def test_several_reductions_and_their_users() -> None:
    host = values((rows_for(3) + 1, 3))

    def standardised(xp: Any, x: Any) -> Any:
        return (x - x.mean(axis=0)) / (x.std(axis=0) + 1)

    same(standardised(dp, dp.asarray(host)), standardised(np, host), 2e-4)
    cube = values((90, 3000, 4))
    check("sum", cube, dp.asarray(cube), (0, 1))
    check("sum", cube, dp.asarray(cube), 1)
    found = dp.logaddexp.reduce(dp.asarray(host))
    same(found, np.logaddexp.reduce(host.astype("float64")).astype("float32"), 1e-3)


def test_on_every_queue(queue: Any) -> None:
    host = values((rows_for(7) + 1, 7))
    check("sum", host, dp.asarray(host, device=queue))
    check("var", host, dp.asarray(host, device=queue))


@pytest.mark.parametrize("columns", [17, 63, 64, 65, 127, 128, 130, 255, 257])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.sample(4)
def test_sums_along_rows_below_and_above_the_number_of_lanes(columns: int, dtype: str) -> None:
    host = counts((40_000 // columns, columns), dtype, 100)
    given = dp.asarray(host)
    for name in ("sum", "max", "argmin", "var"):
        check(name, host, given, 1)
        check(name, host[::-1, ::2], given[::-1, ::2], 1)
    shares = given / given.sum(axis=1, keepdims=True)
    same(shares, (host / host.sum(axis=1, keepdims=True)).astype(shares.dtype))


@pytest.mark.parametrize("columns", [17, 33, 100, 1024])
@pytest.mark.parametrize("name", NAMES)
def test_a_group_reduces_several_rows(name: str, columns: int) -> None:
    host = values((1043, columns))
    with launched() as launches:
        check(name, host, dp.asarray(host), axis=1)
    assert launches[0].global_range == (1056,)


def test_several_results_of_rows_and_values_broadcast_along_them() -> None:
    host, column = values((999, 40)), values((999, 1))
    x, y = dp.asarray(host), dp.asarray(column)
    wanted = ((host - column) ** 2).sum(axis=1) / column[:, 0] + host.max(axis=1)
    same(((x - y) ** 2).sum(axis=1) / y[:, 0] + x.max(axis=1), wanted, 1e-4)
    same(x[1:-1, 1:-1].min(axis=1), host[1:-1, 1:-1].min(axis=1))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "bool"])
@pytest.mark.parametrize("columns", [15, 16, 31, 63])
def test_small_elements_in_rows(columns: int, dtype: str) -> None:
    host = counts((501, columns), dtype, 2)
    x = dp.asarray(host)
    same(x ^ x[7], host ^ host[7])
    same(x & x[:, :1], host & host[:, :1])
    same(x[:-1:2] | x[1::2], host[:-1:2] | host[1::2])
    same(x[:, ::-1] ^ x, host[:, ::-1] ^ host)
