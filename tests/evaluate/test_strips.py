"""Short rows of small elements: kernels traverse them in strips. Results are NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._codegen import elementwise
from dparray._codegen.elementwise import (
    MAX_STRIPS,
    MIN_IN_BLOCKS,
    SHORTEST_ROW,
    SHORTEST_SMALL_ROW,
    SHORTEST_STRIP,
)
from tests.support import same, values

pytestmark = pytest.mark.usefixtures("fused")

COLUMNS = [
    *(1, 2, 3, 8),
    *(SHORTEST_SMALL_ROW - 1, SHORTEST_SMALL_ROW, 33),
    *(SHORTEST_ROW - 1, SHORTEST_ROW),
]
SMALL = ["uint8", "int8", "bool", "int16", "uint16", "float16"]

#: Functions by name, of a table, one of its rows and one of its columns.
CASES: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "row": lambda xp, x, row, column: xp.maximum(x, row),
    "row reversed": lambda xp, x, row, column: xp.minimum(row[::-1], x),
    "column": lambda xp, x, row, column: xp.maximum(x, column),
    "row and column": lambda xp, x, row, column: xp.minimum(row, column),
    "all of them": lambda xp, x, row, column: xp.where(x > row, column, x),
    "one element": lambda xp, x, row, column: xp.maximum(x[:, ::-1], row[:1]),
    "every second row": lambda xp, x, row, column: xp.maximum(x[::2], row),
    "reversed": lambda xp, x, row, column: xp.minimum(x[::-1, ::-1], column),
    "wide and small": lambda xp, x, row, column: (x + row).astype("float32") * 2,
}


def _walks_in_strips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the strips of kernels that are generated from now on."""
    found = []
    range_of = elementwise._range_of_strips

    def noted(extents: Any, strips: int, rows: int, tuning: Any) -> Any:
        found.append(strips)
        return range_of(extents, strips, rows, tuning)

    monkeypatch.setattr(elementwise, "_range_of_strips", noted)
    return found


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("name", sorted(CASES))
def test_rows_of_any_length(name: str, columns: int) -> None:
    host = values((70_000 // columns, columns), "uint8")
    hosts = (host, host[3].copy(), host[:, :1].copy())
    arrays = [dp.asarray(each) for each in hosts]
    same(CASES[name](dp, *arrays), CASES[name](np, *hosts))


@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize("columns", [3, 31])
def test_as_many_rows_as_blocks_have_or_some_more(columns: int, dtype: str) -> None:
    width = 16 * columns * -(-SHORTEST_STRIP // (16 * columns))
    block = max(width * MAX_STRIPS, MIN_IN_BLOCKS) // columns
    for rows in (0, 1, block - 1, block, block + 1, 2 * block - 1, 5 * block + width // columns):
        host = values((rows, columns), dtype)
        row = values((columns,), dtype, seed=1)
        x = dp.asarray(host)
        same(dp.maximum(x, dp.asarray(row)), np.maximum(host, row))


def test_operations_traverse_rows_in_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _walks_in_strips(monkeypatch)
    host = values((30_000, 3), "uint8")
    x = dp.asarray(host)
    same(x ^ x[0], host ^ host[0])
    assert found == [MAX_STRIPS]
    long, wanted = x, host
    for number in range(1, 6):
        long, wanted = (long ^ x[number]) & x[0], (wanted ^ host[number]) & host[0]
    same(long, wanted)
    assert found[1:] == [4]  # fewer if more is computed per element
    found.clear()
    same(x[:100] ^ x[0], host[:100] ^ host[0])  # few elements
    wide = host.astype("float32")
    same(dp.asarray(wide) + dp.asarray(wide[0]), wide + wide[0])
    assert not found


def test_in_the_memory_that_is_read() -> None:
    host = values((30_000, 7), "uint8")
    x = dp.asarray(host)
    row, column = host[5].copy(), host[:, 2:3].copy()
    x -= x[5]
    host -= row
    same(x, host)
    x[:] = dp.maximum(x, dp.asarray(column))
    same(x, np.maximum(host, column))


def test_on_every_queue(queue: Any) -> None:
    host = values((50_000, 5), "int8")
    x = dp.asarray(host, device=queue)
    same(x ^ x[7], host ^ host[7])
