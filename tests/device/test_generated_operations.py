"""Every operation a kernel is generated for gives NumPy's values, at the edges too."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import _codegen, _evaluate, _hooks, _tier_fused
from dparray._ops import OPS, Op

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64"),
]
#: An operation is compiled for one of each group of dtypes with the same expression, and all pairs
#: of edge values go through it.
FEW = ["bool", "int8", "int64", "uint8", "uint64", "float32", "float64"]


@pytest.fixture(autouse=True)
def fused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_evaluate, "HOST_ELEMENTS", 0)
    monkeypatch.setattr(_tier_fused, "is_worth_compiling", lambda size, total: True)


def edges(dtype: str) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind == "f":
        large = float(2 ** np.finfo(kind).nmant)
        found = [0.0, 0.3, 0.5, 1.0, 1.5, 2.5, 3.0, 27.0, large - 0.5, large, 3 * large, np.inf]
        return np.array([*found, *(-value for value in found), np.nan], kind)
    limits = np.iinfo(kind)
    inner = [value for value in (-9, -3, -1, 0, 1, 2, 3, 7, 8, 63) if limits.min <= value]
    return np.array([*inner, limits.min, limits.min + 1, limits.max - 1, limits.max], kind)


def generated(op: Op, kind: str) -> bool:
    return bool(op.expression) and kind in op.kinds


def compare(op: Op, *operands: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        try:
            expected = op.ufunc(*operands)
        except TypeError:
            pytest.skip("NumPy does not define it")
    if op.keeps_integers and operands[0].dtype.kind in "biu":
        expected = operands[0]
    launched: list[str] = []
    unsubscribe = _hooks.subscribe(
        lambda event, **values: (
            launched.append(values["kernel"].name) if event == "launch" else None
        )
    )
    try:
        pending = getattr(dp, op.name)(*map(dp.asarray, operands))
        runs_in_kernel = _codegen.can_generate(pending._node)
        actual = pending.asnumpy()
    finally:
        unsubscribe()
    if runs_in_kernel:
        assert launched == [f"fused_{op.name}"]
    assert actual.dtype == expected.dtype
    if expected.dtype.kind == "f":
        tolerance = 1e-5 if expected.dtype == np.float32 else 1e-13
        np.testing.assert_allclose(actual, expected, rtol=tolerance)
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(actual[zeros]), np.signbit(expected[zeros]))
    else:
        np.testing.assert_array_equal(actual, expected)


def unary() -> list[Any]:
    return [
        pytest.param(op, dtype, id=f"{op.name}-{dtype}")
        for op, dtype in itertools.product(OPS.values(), FEW)
        if op.arity == 1 and generated(op, np.dtype(dtype).kind)
    ]


def binary() -> list[Any]:
    return [
        pytest.param(op, dtype, id=f"{op.name}-{dtype}")
        for op, dtype in itertools.product(OPS.values(), FEW)
        if op.arity == 2 and generated(op, np.dtype(dtype).kind)
    ]


@pytest.mark.parametrize(("op", "dtype"), unary())
def test_one_operand(op: Op, dtype: str) -> None:
    compare(op, edges(dtype))


@pytest.mark.parametrize(("op", "dtype"), binary())
def test_all_pairs_of_edges(op: Op, dtype: str) -> None:
    first, second = np.meshgrid(edges(dtype), edges(dtype))
    compare(op, first.ravel(), second.ravel())
