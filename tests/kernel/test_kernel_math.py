"""The math module in kernels, on floats and on integers."""

from __future__ import annotations

import cmath
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import execute

UNARY = [
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh"),
    *("ceil", "floor", "fabs", "sqrt", "exp", "expm1", "log", "log10", "log1p", "log2"),
    *("erf", "erfc", "gamma", "lgamma", "isnan", "isinf"),
]
BINARY = ["atan2", "copysign", "pow", "fmod", "hypot"]
PAIRS = [
    *(("float64", "float64"), ("float32", "float32"), ("int64", "int64"), ("int32", "int32")),
    *(("float64", "int64"), ("float32", "int32"), ("float32", "float64")),
]


def apply_all(names: list[str], arguments: str, *arrays: np.ndarray) -> np.ndarray:
    """Return a kernel that applies every function of a list, with a row of results for each."""
    lines = [f"    out[{row}, i] = math.{name}({arguments})" for row, name in enumerate(names)]
    text = "\n".join(["def apply(item, x, y, out):", "    i = item.get_id(0)", *lines])
    scope: dict[str, Any] = {"math": math}
    execute(text, scope)
    out = dp.zeros((len(names), arrays[0].size))
    given = [dp.asarray(array) for array in (arrays[0], arrays[-1])]
    dp.call_kernel(dp.kernel(scope["apply"]), dp.Range(arrays[0].size), *given, out)
    return out.asnumpy()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint32"])
def test_functions_of_one_number(dtype: str) -> None:
    x = np.array([1], dtype=dtype)
    result = apply_all(UNARY, "x[i]", x)
    expected = [[getattr(math, name)(value) for value in x.tolist()] for name in UNARY]
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_functions_of_two_numbers(one: str, other: str) -> None:
    x, y = np.array([7, 2], dtype=one), np.array([2, 3], dtype=other)
    result = apply_all(BINARY, "x[i], y[i]", x, y)
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    expected = [[getattr(math, name)(a, b) for a, b in pairs] for name in BINARY]
    np.testing.assert_allclose(result, expected, rtol=1e-5)


@dp.kernel
def remainders(item: Any, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    out[0, i] = x[i] % y[i]
    out[1, i] = x[i] // y[i]
    out[2, i], out[3, i] = divmod(x[i], y[i])
    out[4, i] = math.fmod(x[i], y[i])


@dp.elementwise
def remainder_of(x: Any, y: Any) -> Any:
    return x % y


@dp.jit
def remainders_in_a_loop(x: Any, y: Any, out: Any) -> None:
    for i in dp.prange(len(x)):
        out[i] = x[i] % y[i]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_quotients_and_remainders_of_large_floats_are_exact(dtype: str) -> None:
    numbers = [1, -1, 3, 0.1, -2.5, 4.268839, 6e4, np.inf, -np.inf, np.finfo(dtype).max]
    if dtype != "float16":
        numbers += [576784302080, 1e30, -1e30, 1e-30]
    if dtype == "float64":
        numbers += [1e308, 1e300]
    x, y = (each.ravel() for each in np.meshgrid(*[np.array(numbers, dtype)] * 2))
    with np.errstate(all="ignore"):
        remainder, quotient = np.remainder(x, y), np.floor_divide(x, y)
        expected = [remainder, quotient, quotient, remainder, np.fmod(x, y)]
    arrays = [dp.asarray(x), dp.asarray(y)]
    out = dp.zeros((5, x.size), dtype)
    dp.call_kernel(remainders, dp.Range(x.size), *arrays, out)
    np.testing.assert_array_equal(out.asnumpy(), expected)
    np.testing.assert_array_equal(remainder_of(*arrays).asnumpy(), remainder)
    remainders_in_a_loop(*arrays, out[0])
    np.testing.assert_array_equal(out[0].asnumpy(), remainder)


COMPLEX = [
    *("exp", "log", "log10", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
]


def test_functions_of_complex_numbers() -> None:
    lines = [f"    out[{row}, i] = cmath.{name}(x[i])" for row, name in enumerate(COMPLEX)]
    text = "\n".join(["def apply(item, x, out):", "    i = item.get_id(0)", *lines])
    scope: dict[str, Any] = {"cmath": cmath}
    execute(text, scope)
    x = np.array([1 + 2j, -0.5 + 0.25j, 0.5j, 2.5])
    out = dp.zeros((len(COMPLEX), x.size), dtype="complex128")
    dp.kernel(scope["apply"])[x.size](dp.asarray(x), out)
    expected = [[getattr(cmath, name)(value) for value in x.tolist()] for name in COMPLEX]
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-12)


@dp.kernel
def raise_to(item: dp.Item, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i] ** y[i]


@pytest.mark.parametrize(("dtype", "rtol"), [("complex64", 2e-6), ("complex128", 1e-14)])
def test_powers_of_complex_numbers(dtype: str, rtol: float) -> None:
    x = np.array([1 + 2j, 3 - 1j, 0.5j, 0, 0, 2 + 1j], dtype)
    y = np.array([2.5, -3, 0.5 + 1j, 2, 0, 7], dtype)
    out = dp.zeros(x.size, dtype=dtype)
    raise_to[x.size](dp.asarray(x), dp.asarray(y), out)
    np.testing.assert_allclose(out.asnumpy(), x**y, rtol=rtol)


@pytest.mark.parametrize("exponent", ["int8", "int64", "uint64"])
@pytest.mark.parametrize("base", ["int32", "int64", "uint8", "uint64"])
def test_powers_of_integers_are_exact(base: str, exponent: str) -> None:
    x = np.array([255, 3, 10, 127, 0, 1], base)
    y = np.array([7, 39, 18, 9, 0, 63], exponent)
    kind = np.power(x[:0], y[:0]).dtype
    if kind.kind == "f":
        pytest.skip("NumPy has no integer for both")
    out = dp.zeros(x.size, dtype=kind)
    raise_to[x.size](dp.asarray(x), dp.asarray(y), out)
    exact = [pow(a, b, 2**64) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert out.tolist() == np.array(exact, np.uint64).astype(kind).tolist()


def test_negative_powers_of_integers_are_rounded_to_zero() -> None:
    x, y = np.array([2, 1, -1, -1, 0, 7]), np.array([-1, -5, -2, -3, -1, -63])
    out = dp.zeros(6, dtype="int64")
    raise_to[6](dp.asarray(x), dp.asarray(y), out)
    assert out.tolist() == [0, 1, 1, -1, 0, 0]


@pytest.mark.parametrize(
    ("one", "other"), [("int64", "uint64"), ("uint64", "int64"), ("uint64", "int8")]
)
def test_comparisons_of_signed_and_unsigned_integers_are_exact(one: str, other: str) -> None:
    @dp.kernel
    def compare(item: dp.Item, x: Any, y: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = x[i] < y[i]
        out[i, 1] = x[i] <= y[i]
        out[i, 2] = x[i] > y[i]
        out[i, 3] = x[i] >= y[i]
        out[i, 4] = x[i] == y[i]
        out[i, 5] = x[i] != y[i]
        out[i, 6] = x[i] > 9007199254740992
        out[i, 7] = 0 <= x[i] < 5

    def numbers(dtype: str) -> np.ndarray:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        large = [2**53, 2**53 + 1, 2**63 - 1, 2**63 - 2, 2**63]
        return np.array([v for v in (0, 4, -1, low, high, *large) if low <= v <= high], dtype)

    x, y = map(np.ravel, np.meshgrid(numbers(one), numbers(other)))
    out = dp.zeros((x.size, 8), dtype=bool)
    compare[x.size](dp.asarray(x), dp.asarray(y), out)
    expected = [x < y, x <= y, x > y, x >= y, x == y, x != y, x > 2**53, (x >= 0) & (x < 5)]
    np.testing.assert_array_equal(out.asnumpy(), np.stack(expected, axis=1))


_LATE = """
import dparray as dp
from tests.support import execute

@dp.kernel
def before(item, x):
    x[item.get_id(0)] += 1

x = dp.zeros(1)
before[1](x)

@dp.kernel
def after(item, x):
    x[item.get_id(0)] = dp.special.erf(x[item.get_id(0)])

after[1](x)
print(x.item())
"""


@pytest.mark.slow
def test_special_functions_work_if_first_used_after_a_compilation() -> None:
    finished = subprocess.run([sys.executable, "-c", _LATE], capture_output=True, text=True)
    assert finished.stdout.startswith("0.8427"), finished.stderr


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("run", [dp.call_kernel, dp.simulate])
def test_rounding_to_digits_is_numpys(run: Any, dtype: str) -> None:
    @dp.kernel
    def rounds(item: dp.Item, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = round(x[i], 2)
        out[i, 1] = round(x[i], 0)
        out[i, 2] = round(x[i], -1)

    # Python rounds the exact decimal value, 2.675 to 2.67.
    x = np.array([2.675, 0.285, 1.005, -2.5, 3.5, 15, 25, -0.0, np.inf, np.nan, 1234.5678], dtype)
    x = np.concatenate([x, np.round(np.random.default_rng(3).normal(size=200), 2) + 0.005])
    x = x.astype(dtype)
    out = dp.zeros((len(x), 3), dtype=dtype)
    run(rounds, dp.Range(len(x)), dp.asarray(x), out)
    expected = np.stack([np.round(x, digits) for digits in (2, 0, -1)], axis=1)
    np.testing.assert_array_equal(out.asnumpy(), expected)


@dp.kernel
def to_halves(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i, 0] = x[i] ** 0.5
    out[i, 1] = x[i] ** 1.5
    out[i, 2] = x[i] ** -0.5
    out[i, 3] = x[i] ** -1.5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_to_halves(dtype: str) -> None:
    special = [-np.inf, -2.5, -0.0, 0.0, 1e-30, 1.0, np.inf, np.nan, np.finfo(dtype).max]
    host = np.concatenate([special, np.random.default_rng(1).random(50) * 100]).astype(dtype)
    x, out = dp.asarray(host), dp.empty((host.size, 4), dtype=dtype)
    dp.call_kernel(to_halves, dp.Range(host.size), x, out)
    with np.errstate(all="ignore"):
        expected = np.stack([np.array([each**power for each in host], dtype)
                             for power in (0.5, 1.5, -0.5, -1.5)], axis=1)  # fmt: skip
    found = out.asnumpy()
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
