"""Every operation with a generated kernel gives NumPy's values, also at the edges."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._codegen import elementwise
from dparray._graph.ops import OPS, Op
from tests.support import launched

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64"),
]
#: An operation is compiled for one of each group of dtypes with the same expression, and all pairs
#: of edge values are computed.
FEW = ["bool", "int8", "int64", "uint8", "uint64", "float32", "float64", "complex64"]


pytestmark = pytest.mark.usefixtures("fused")


def edges(dtype: str) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind == "f":
        large = float(2 ** np.finfo(kind).nmant)
        found = [0.0, 0.3, 0.5, 1.0, 1.5, 2.5, 3.0, 27.0, large - 0.5, large, 3 * large, np.inf]
        return np.array([*found, *(-value for value in found), np.nan], kind)
    if kind.kind == "c":
        parts = [0.0, -0.0, 0.5, -1.5, 3.0, 1e3, np.inf, -np.inf, np.nan]
        return np.array([complex(a, b) for a in parts for b in parts], kind)
    limits = np.iinfo(kind)
    inner = [value for value in (-9, -3, -1, 0, 1, 2, 3, 7, 8, 63) if limits.min <= value]
    return np.array([*inner, limits.min, limits.min + 1, limits.max - 1, limits.max], kind)


def generated(op: Op, kind: str) -> bool:
    return bool(op.expression) and kind in op.kinds


def compare(op: Op, *operands: np.ndarray) -> None:
    if op.name == "pow" and operands[1].dtype.kind == "i":
        # NumPy raises for negative exponents; here they give the truncated quotient.
        base, exponent = operands
        inverse = np.where(np.abs(base) == 1, op.ufunc(base, exponent & 1), np.zeros_like(base))
        expected = np.where(exponent < 0, inverse, op.ufunc(base, np.maximum(exponent, 0)))
    else:
        with np.errstate(all="ignore"):
            try:
                expected = op.ufunc(*operands)
            except TypeError:
                pytest.skip("NumPy does not define the operation")
    kinds = "iu" if op.name == "round" else "biu"  # NumPy's round converts Booleans to floats
    if op.keeps_integers and operands[0].dtype.kind in kinds:
        expected = operands[0]
    if op.name == "reciprocal" and operands[0].dtype.kind in "iu":
        expected[operands[0] == 0] = 0  # NumPy's value is the processor's conversion of infinity
    with launched() as launches:
        pending = getattr(dp, op.name)(*map(dp.asarray, operands))
        runs_in_kernel = elementwise.can_generate(pending._node)
        actual = pending.asnumpy()
    if runs_in_kernel:
        # If an operation computes in another dtype, the same kernel converts its operands.
        (launch,) = launches
        assert launch.name in (f"fused_{op.name}", f"fused_convert_{op.name}")
    assert actual.dtype == expected.dtype
    if expected.dtype.kind in "fc":
        tolerance = 1e-5 if expected.real.dtype == np.float32 else 1e-13
        parts = [(actual, expected)]
        if expected.dtype.kind == "c":
            parts = [(actual.real, expected.real), (actual.imag, expected.imag)]
        for found, wanted in parts:
            np.testing.assert_allclose(found, wanted, rtol=tolerance)
            zeros = wanted == 0
            if op.name == "exp":  # the standard does not specify the sign of 0 at -infinity
                zeros = zeros & (np.isfinite(operands[0].real))
            np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))
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


@pytest.mark.parametrize(
    "name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "add", "where"]
)
@pytest.mark.parametrize(("one", "other"), [("uint64", "int64"), ("int64", "uint64")])
def test_integers_of_64_bits_with_and_without_sign(name: str, one: str, other: str) -> None:
    """Comparisons are exact, as in NumPy; other operations are computed in float64."""
    x, y = (grid.ravel() for grid in np.meshgrid(edges(one), edges(other)))
    if name == "where":
        pending = dp.where(dp.asarray(x) > 3, dp.asarray(x), dp.asarray(y))
        expected = np.where(x > 3, x, y)
        np.testing.assert_array_equal(pending.asnumpy(), expected)
    else:
        compare(OPS[name], x, y)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float64", "bool", "complex128"])
def test_complex_numbers_with_others(dtype: str) -> None:
    x = edges("complex64")
    y = np.resize(edges(dtype), x.shape)
    compare(OPS["multiply"], x, y)
    compare(OPS["equal"], y, x)
    chosen = dp.where(dp.asarray(y) != 0, dp.asarray(x), dp.asarray(y))
    np.testing.assert_array_equal(chosen.asnumpy(), np.where(y != 0, x, y))
    scaled = dp.asarray(x) * (2 - 1j) + 1
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(scaled.asnumpy(), x * np.complex64(2 - 1j) + np.complex64(1))


@pytest.mark.parametrize("shape", [(17,), (5000,), (300, 40), (2000, 3), (3, 2000)])
def test_complex_numbers_in_kernels_with_reductions(shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(0)
    x = (generator.normal(size=shape) + 1j * generator.normal(size=shape)).astype(np.complex64)

    def results(xp: Any, v: Any) -> Any:
        for axis in (None, 0):
            yield xp.sum(xp.abs(v * (0.5 - 1j)) ** 2, axis=axis)
            yield xp.any(xp.sqrt(v) == 0, axis=axis)
            yield v / xp.sum(xp.abs(v), axis=axis, keepdims=True)

    for actual, expected in zip(results(dp, dp.asarray(x)), results(np, x), strict=True):
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual.asnumpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("op", "dtype"), binary())
def test_all_pairs_of_edges(op: Op, dtype: str) -> None:
    first, second = np.meshgrid(edges(dtype), edges(dtype))
    compare(op, first.ravel(), second.ravel())
