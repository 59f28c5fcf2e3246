"""Reductions of 8-bit and 16-bit integers, which kernels compute in 32 bits: NumPy's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import kernels_of, same, values

pytestmark = pytest.mark.usefixtures("fused")

NARROW = ["uint8", "int8", "uint16", "int16", "bool"]

#: Functions by name, of a table along an axis.
CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda xp, x, axis: x.sum(axis=axis),
    "sum in the own dtype": lambda xp, x, axis: xp.sum(x, axis=axis, dtype=x.dtype),
    "mean": lambda xp, x, axis: x.mean(axis=axis),
    "prod": lambda xp, x, axis: x.prod(axis=axis),
    "max": lambda xp, x, axis: x.max(axis=axis),
    "min": lambda xp, x, axis: x.min(axis=axis),
    "argmin": lambda xp, x, axis: x.argmin(axis=axis),
    "all": lambda xp, x, axis: xp.all(x, axis=axis),
    "sum of squares": lambda xp, x, axis: (x * x).sum(axis=axis),
    "sum and largest": lambda xp, x, axis: x.sum(axis=axis) - x.max(axis=axis),
}


@pytest.mark.parametrize("columns", [1, 3, 8, 15, 16, 17, 31, 64, 300, 1024, 1025])
@pytest.mark.sample(4)
def test_rows_of_any_length(columns: int) -> None:
    host = values((70_000 // columns, columns), "uint8")
    x = dp.asarray(host)
    for axis in (0, 1, None):
        for name in ("sum", "mean", "max"):
            same(CASES[name](dp, x, axis), CASES[name](np, host, axis), 1e-12)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", sorted(CASES))
def test_every_narrow_dtype(name: str, dtype: str) -> None:
    for columns in (16, 33):
        host = values((40_000 // columns, columns), dtype)
        x = dp.asarray(host)
        for axis in (0, 1):
            found, wanted = CASES[name](dp, x, axis), CASES[name](np, host, axis)
            assert found.dtype == wanted.dtype
            same(found, wanted, 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["uint16", "int16", "int8"])
def test_sums_of_the_largest_and_least_numbers(dtype: str) -> None:
    limits = np.iinfo(dtype)
    for shape in ((70_000, 33), (300_000, 8), (33, 70_000), (2_310_000, 1)):
        for value in (limits.max, limits.min):
            x = dp.full(shape, value, dtype=dtype)
            for axis in (0, 1):
                wanted = np.full(np.delete(shape, axis), int(value) * shape[axis])
                same(x.sum(axis=axis), wanted.astype(x.sum(axis=axis).dtype), 0)
            same(x.mean(axis=0), np.full(shape[1], float(value)), 0)
            assert int(x.sum()) == int(value) * shape[0] * shape[1]


@pytest.mark.parametrize("dtype", ["uint32", "int32", "float32"])
def test_wider_numbers_are_reduced_as_they_are(dtype: str) -> None:
    host = values((40_000, 3), dtype) if dtype == "float32" else np.full((40_000, 3), 2**30, dtype)
    for axis in (0, 1):
        same(dp.asarray(host).sum(axis=axis), host.sum(axis=axis))


def test_layouts_and_empty_arrays() -> None:
    host = values((3000, 48), "uint8")
    x = dp.asarray(host)
    for turned in (lambda x: x[::2], lambda x: x[:, ::-3], lambda x: x.T, lambda x: x[:, 1:18]):
        for axis in (0, 1):
            same(turned(x).sum(axis=axis), turned(host).sum(axis=axis), 0)
            same(turned(x).max(axis=axis), turned(host).max(axis=axis), 0)
    same(x[:0].sum(axis=0), host[:0].sum(axis=0), 0)
    same(x[:, :0].sum(axis=1), host[:, :0].sum(axis=1), 0)


def test_rows_of_sixteen_bytes_are_reduced_several_by_a_group() -> None:
    host = values((50_000, 16), "uint8")
    x = dp.asarray(host)
    assert len(kernels_of(lambda: same(x.max(axis=1), host.max(axis=1), 0))) == 1
    same((x - host[3, 2]).min(axis=1), (host - host[3, 2]).min(axis=1), 0)


def test_on_every_queue(queue: Any) -> None:
    host = values((9000, 31), "int16")
    x = dp.asarray(host, device=queue)
    same(x.sum(axis=0), host.sum(axis=0), 0)
    same(x.max(axis=1), host.max(axis=1), 0)
