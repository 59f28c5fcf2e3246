"""Kernels whose work-items compute blocks, for arrays read across their rows: NumPy's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dparray as dp
from dparray._codegen.elementwise import BLOCK, SHORTEST_ROW
from tests.support import examples, same, values

pytestmark = pytest.mark.usefixtures("fused")

EXTENTS = [1, 2, 3, BLOCK - 1, BLOCK, BLOCK + 1, SHORTEST_ROW - 1, SHORTEST_ROW, 100, 2 * BLOCK + 5]


def copy(xp: Any, x: Any) -> Any:
    return xp.ascontiguousarray(x)


MATRICES: dict[str, Callable[[Any, Any], Any]] = {
    "copy": lambda xp, x: copy(xp, x.T),
    "columns reversed": lambda xp, x: copy(xp, x[:, ::-1].T),
    "rows reversed": lambda xp, x: copy(xp, x[::-1].T),
    "every second row": lambda xp, x: copy(xp, x[::2].T),
    "every third column": lambda xp, x: copy(xp, x[:, ::3].T),
    "part": lambda xp, x: copy(xp, x[1:, 1:].T),
    "beside a row": lambda xp, x: copy(xp, x.T) + x[:, 0] * copy(xp, x.T),
    "by columns": lambda xp, x: xp.asarray(x, order="F") + x,
}


@pytest.mark.parametrize("columns", EXTENTS)
@pytest.mark.parametrize("name", sorted(MATRICES))
def test_matrices_with_rows_of_any_length(name: str, columns: int) -> None:
    host = values((70_000 // columns, columns))
    given = dp.asarray(host)
    same(MATRICES[name](dp, given), MATRICES[name](np, host))
    same(MATRICES[name](dp, given.T), MATRICES[name](np, host.T))


@settings(max_examples=examples(25), deadline=None)
@given(
    extents=st.lists(st.sampled_from([1, 2, 3, 15, 17, 40, 70]), min_size=2, max_size=3),
    axes=st.permutations(range(4)),
    dtype=st.sampled_from(["float32", "float64", "int32", "uint8", "bool"]),
    steps=st.lists(st.sampled_from([1, 1, 2, -1]), min_size=4, max_size=4),
)
def test_axes_in_any_order(
    extents: list[int], axes: list[int], dtype: str, steps: list[int]
) -> None:
    rest = max(1, 40_000 // int(np.prod(extents)))
    host = values((*extents, rest), dtype)
    order = [axis for axis in axes if axis < host.ndim]
    cut = tuple(slice(None, None, step) for step in steps[: host.ndim])

    def turned(xp: Any, x: Any) -> Any:
        return copy(xp, x[cut].transpose(order))

    given = dp.asarray(host)
    same(turned(dp, given), turned(np, host))
    same(turned(dp, given) == given[cut].transpose(order), turned(np, host) == turned(np, host))


def test_a_matrix_and_its_transpose() -> None:
    host = values((300, 300), "float64")
    x = dp.asarray(host)
    same(x + x.T, host + host.T)
    x += x.T
    same(x, host + host.T)
    host = values((300, 300))
    x = dp.asarray(host)
    x[:] = x.T
    same(x, host.T)
    empty = dp.zeros((0, 3)).T
    same(copy(dp, empty), np.zeros((3, 0)))


def test_on_every_queue(queue: Any) -> None:
    host = values((5000, 9))
    x = dp.asarray(host, device=queue)
    same(copy(dp, x.T), host.T)
    cube = values((90, 80, 7))
    same(copy(dp, dp.swapaxes(dp.asarray(cube, device=queue), 0, 1)), cube.swapaxes(0, 1))
