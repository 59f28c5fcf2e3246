"""Functions of float32 and float64 on the host's driver, against NumPy in a higher precision."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import special
from tests.host.newest import vectorized_code
from tests.support import force

DEVICE = dp.Device("host:cpu")
SPECIAL = (0.0, 1.0, 0.5, 2.0, 80.0, 1e6, 3e9, 1e20, 3e38, 1e-30, 1e-38, 1e-41, 1e-45, math.inf)
_erf, _erfc = (np.vectorize(each, otypes=["f8"]) for each in (math.erf, math.erfc))
FUNCTIONS: dict[str, tuple[Any, Callable[..., Any], float, float]] = {
    "exp": (dp.exp, np.exp, -105, 90),
    "exp2": (dp.exp2, np.exp2, -151, 129),
    "expm1": (dp.expm1, np.expm1, -20, 90),
    "log": (dp.log, np.log, 0, 4),
    "log2": (dp.log2, np.log2, 0, 4),
    "log10": (dp.log10, np.log10, 0, 4),
    "log1p": (dp.log1p, np.log1p, -1, 4),
    "sin": (dp.sin, np.sin, -40, 40),
    "cos": (dp.cos, np.cos, -40, 40),
    "tan": (dp.tan, np.tan, -40, 40),
    "tanh": (dp.tanh, np.tanh, -10, 10),
    "erf": (special.erf, _erf, -4.5, 4.5),
    "erfc": (special.erfc, _erfc, -2, 10.4),
}


def operands(low: float, high: float, dtype: str, count: int = 40_000) -> np.ndarray:
    """Return numbers of a range, of all exponents, and special ones, with both signs."""
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 1 << 31, count).astype("uint32").view("float32")
    with np.errstate(all="ignore"):
        every = np.concatenate([rng.uniform(low, high, count), bits, SPECIAL, [math.nan]])
        every = every.astype(dtype)
    return np.concatenate([every, -every])


def errors_in_ulp(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the largest error; infinities and NaN must be the same."""
    with np.errstate(all="ignore"):
        wanted = exact.astype(found.dtype)
    usual = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~usual], wanted[~usual])
    np.testing.assert_array_equal(np.signbit(found[usual]), np.signbit(wanted[usual]))
    wide = np.abs(found[usual].astype(exact.dtype) - exact[usual])
    with np.errstate(over="ignore"):  # at the largest number
        spacing = np.spacing(np.abs(wanted[usual]))
    spacing[np.isinf(spacing)] = np.spacing(np.finfo(found.dtype).max / 2) * 2
    return float((wide / spacing.astype(exact.dtype)).max())


def computed(function: Any, *given: np.ndarray) -> np.ndarray:
    with force("fused"):
        return function(*(dp.asarray(each, device=DEVICE) for each in given)).asnumpy()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32_functions(name: str) -> None:
    function, exact, low, high = FUNCTIONS[name]
    every = np.arange(0, 2**32, 4093).astype("uint32").view("float32")
    a = np.concatenate([operands(low, high, "float32"), every])
    with np.errstate(all="ignore"):
        wanted = exact(a.astype("float64"))
    assert errors_in_ulp(computed(function, a), wanted) <= 2


def test_float32_logarithms_of_powers_are_exact() -> None:
    for function, base, exponents in (
        (dp.log2, 2.0, np.arange(-149, 128)),
        (dp.log10, 10.0, np.arange(11)),
    ):
        powers = (base**exponents).astype("float32")
        np.testing.assert_array_equal(computed(function, powers), exponents)


@dp.kernel
def exp2_in_kernel(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = math.exp2(x[i])


@dp.kernel
def cbrt_in_kernel(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = math.cbrt(x[i])


def in_kernel(kernel: Any) -> Callable[..., Any]:
    """Return a function of arrays; those of dparray are computed by powers."""

    def computed(x: Any, dtype: str = "") -> Any:
        if not hasattr(math, "exp2"):
            pytest.skip("math.exp2 and math.cbrt need Python 3.11")
        out = dp.zeros_like(x, dtype=dtype or x.dtype)
        dp.call_kernel(kernel, dp.Range(x.size), x, out)
        return out

    return computed


exp2, cbrt = in_kernel(exp2_in_kernel), in_kernel(cbrt_in_kernel)


def test_exp2_in_a_kernel() -> None:
    a = operands(-151, 129, "float32")
    with np.errstate(all="ignore"):
        wanted = np.exp2(a.astype("float64"))
    assert errors_in_ulp(computed(exp2, a), wanted) <= 2


def _long_erf(x: np.ndarray) -> np.ndarray:
    """Return erf of long doubles, by a series of terms of one sign."""
    x = np.clip(x, -7, 7)
    term = 2 / np.sqrt(_PI) * x * np.exp(-x * x)
    total = term
    for k in range(1, 250):
        term = term * 2 * x * x / (2 * k + 1)
        total = total + term
    return total


def _long_erfc(x: np.ndarray) -> np.ndarray:
    """Return erfc of long doubles; past 2 by Laplace's continued fraction."""
    a = np.clip(x, 2, 30)
    value = a
    for k in range(100, 0, -1):
        value = a + k / value / 2
    near = a.astype("float32").astype(a.dtype)  # Its square is exact.
    tail = np.exp(-near * near) * np.exp((near - a) * (near + a)) / (np.sqrt(_PI) * value)
    return np.where(x > 2, tail, 1 - _long_erf(x))


_PI = np.longdouble("3.14159265358979323846")
_SMALLEST, _LARGEST = 2.2250738585072014e-308, 1.7976931348623157e308
# Special numbers of float64: subnormal ones, limits of overflow and underflow.
SPECIAL_FLOAT64 = (
    *(5e-324, 1e-310, _SMALLEST, _LARGEST, 709.782712893384, 709.7827128933841, 1.5, 22.0, 1 / 3),
    *(710.4758600739439, 710.475860073944, 745.1332191019411, 745.1332191019412, 26.5, 27.2, 1e-9),
)
# The function, the exact one, a range, and the largest error in ulp.
FLOAT64: dict[str, tuple[Any, Callable[..., Any], float, float, float]] = {
    "acos": (dp.acos, np.arccos, -1, 1, 2),
    "acosh": (dp.acosh, np.arccosh, 1, 9, 2),
    "asin": (dp.asin, np.arcsin, -1, 1, 2),
    "asinh": (dp.asinh, np.arcsinh, -5, 5, 2),
    "atan": (dp.atan, np.arctan, -5, 5, 2),
    "atanh": (dp.atanh, np.arctanh, -1, 1, 2),
    "cbrt": (cbrt, np.cbrt, -9, 9, 1),
    "cos": (dp.cos, np.cos, -40, 40, 2),
    "cosh": (dp.cosh, np.cosh, -711, 711, 2),
    "erf": (special.erf, _long_erf, -6.2, 6.2, 2),
    "erfc": (special.erfc, _long_erfc, -6, 27.5, 4),
    "exp": (dp.exp, np.exp, -746, 710, 2),
    "exp2": (exp2, np.exp2, -1080, 1025, 2),
    "expm1": (dp.expm1, np.expm1, -40, 710, 2),
    "log": (dp.log, np.log, 0, 4, 2),
    "log10": (dp.log10, np.log10, 0, 4, 1),
    "log1p": (dp.log1p, np.log1p, -1, 4, 2),
    "log2": (dp.log2, np.log2, 0, 4, 1),
    "sin": (dp.sin, np.sin, -40, 40, 2),
    "sinh": (dp.sinh, np.sinh, -711, 711, 2),
    "tan": (dp.tan, np.tan, -40, 40, 2),
    "tanh": (dp.tanh, np.tanh, -23, 23, 2),
}


# Functions of float32 that are computed in float64.
WIDE = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cosh", "sinh")


@pytest.mark.sample(len(WIDE))
@pytest.mark.parametrize("name", WIDE)
def test_float32_functions_in_float64(name: str) -> None:
    function, exact, low, high, _ = FLOAT64[name]
    a = operands(max(low, -90), min(high, 90), "float32")
    with np.errstate(all="ignore"):
        wanted = exact(a.astype("float64"))
    assert errors_in_ulp(computed(function, a), wanted) <= 0.51


@pytest.mark.sample(len(FLOAT64))
@pytest.mark.parametrize("name", FLOAT64)
def test_float64_functions(name: str) -> None:
    function, exact, low, high, limit = FLOAT64[name]
    rng = np.random.default_rng(9)
    bits = rng.integers(0, 0x7FF << 52, 40_000).view("float64")
    near = rng.uniform(-1.5, 1.5, 20_000)
    own = np.concatenate([bits, near, SPECIAL_FLOAT64])
    a = np.concatenate([operands(low, high, "float64"), own, -own])
    with np.errstate(all="ignore"):
        wanted = exact(a.astype("longdouble"))
    assert errors_in_ulp(computed(function, a), wanted) <= limit


def is_vectorized(name: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether the newest kernel stores vectors and does not call the C library."""
    code = vectorized_code(monkeypatch)
    if name in ("sin", "cos", "tan") and "call <" not in code:
        return False
    in_c = re.search(rf"call double @(llvm\.(?!sin|cos|tan))?{name}[.(]", code)
    return in_c is None and re.search(r"store <\d+ x (double|float)>", code) is not None


@pytest.mark.sample(len(FLOAT64))
@pytest.mark.parametrize("name", FLOAT64)
def test_float64_functions_are_vectorized(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = FLOAT64[name][0]
    a = np.linspace(1, 1.5, 1003)
    # Both are no kernels of other tests.
    if function in (cbrt, exp2):
        computed(lambda x: function(x, "float32"), a)
    else:
        computed(lambda x: x + function(x) * 1.375, a)
    assert is_vectorized(name, monkeypatch)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["atan2", "hypot"])
def test_functions_of_two_numbers(name: str, dtype: str) -> None:
    function, exact = (dp.atan2, np.arctan2) if name == "atan2" else (dp.hypot, np.hypot)
    rng = np.random.default_rng(10)
    every = np.array([0, 1, 3, 1e-30, 1e-38, *SPECIAL, *SPECIAL_FLOAT64, math.nan])
    every = np.concatenate([every, -every])
    bits = rng.integers(0, 0x7FF << 52, (2, 40_000)).view("float64")
    bits[1, ::2] = bits[0, ::2] / rng.uniform(1, 5, 20_000)
    pairs = [np.array(np.meshgrid(every, every)).reshape(2, -1), bits, rng.normal(0, 1, bits.shape)]
    with np.errstate(all="ignore"):
        y, x = np.concatenate(pairs, 1).astype(dtype)
        wide = "longdouble" if dtype == "float64" else "float64"
        wanted = exact(y.astype(wide), x.astype(wide))
    limit = 2 if dtype == "float64" else 0.52
    assert errors_in_ulp(computed(function, y, x), wanted) <= limit


def test_float64_logarithms_of_powers_are_exact() -> None:
    for function, base, exponents in (
        (dp.log2, 2.0, np.arange(-1074, 1024)),
        (dp.log10, 10.0, np.arange(23)),
    ):
        np.testing.assert_array_equal(computed(function, base**exponents), exponents)


def test_powers_of_float32() -> None:
    a = operands(0, 30, "float32")
    b = np.random.default_rng(8).permutation(operands(-10, 10, "float32"))
    whole = np.round(b)
    for exponent in (b, whole, np.float32(2) * np.ones_like(a), np.float32(0.5) * np.ones_like(a)):
        with np.errstate(all="ignore"):
            wanted = np.power(a.astype("float64"), exponent.astype("float64"))
        assert errors_in_ulp(computed(dp.pow, a, exponent), wanted) <= 0.52


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sin", "tanh", "expm1", "log1p", "erf"])
def test_the_sign_of_zero(name: str, dtype: str) -> None:
    zeros = np.full(100, -0.0, dtype)
    assert np.signbit(computed(FUNCTIONS[name][0], zeros)).all()


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_a_value_does_not_depend_on_its_neighbors(name: str) -> None:
    a = operands(-7000, 7000, "float32")
    alone = computed(FUNCTIONS[name][0], a)
    a[::5] = 1e5
    np.testing.assert_array_equal(
        np.delete(computed(FUNCTIONS[name][0], a), np.s_[::5]), np.delete(alone, np.s_[::5])
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_vector_with_one_large_angle(dtype: str) -> None:
    a = np.linspace(-3, 3, 1001).astype(dtype)
    a[[5, 500, 1000]] = 1e22, -3e30, math.inf
    with np.errstate(invalid="ignore"):
        wanted = np.sin(a.astype("longdouble"))
    assert errors_in_ulp(computed(dp.sin, a), wanted) <= 2


def test_powers_of_float64() -> None:
    rng = np.random.default_rng(11)
    bases = np.concatenate([operands(0, 30, "float64", 20_000), rng.uniform(0.9, 1.1, 20_000)])
    fit = 745 / np.log(np.abs(bases[:20_000]) + 1.1)  # up to the limits of overflow and underflow
    fit *= rng.uniform(-1, 1, fit.size)
    exponents = rng.permutation(operands(-10, 10, "float64", 20_000))
    exponents = np.concatenate([exponents, rng.uniform(-7000, 7000, 20_000)])
    every = np.array([*SPECIAL, *SPECIAL_FLOAT64, 3, 2.0**53, 2.0**53 + 2, 1e300, math.nan])
    every = np.concatenate([every, -every])
    special_ones = np.array(np.meshgrid(every, every)).reshape(2, -1)
    for x, y in (
        (bases, exponents),
        (bases, np.round(exponents)),
        (bases[:20_000], fit),
        (special_ones[0], special_ones[1]),
    ):
        with np.errstate(all="ignore"):
            wanted = np.power(x.astype("longdouble"), y.astype("longdouble"))
        assert errors_in_ulp(computed(dp.pow, x, y), wanted) <= 2


def test_powers_of_float64_are_vectorized(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.linspace(1, 1.5, 1003)
    computed(lambda x, y: x + x**y * 1.375, a, a)
    assert is_vectorized("pow", monkeypatch)


@dp.kernel
def powers_to_constants(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i, 0] = math.pow(x[i], 2.0)
    out[i, 1] = math.pow(x[i], 0.5)
    out[i, 2] = math.pow(x[i], -1.0)
    out[i, 3] = math.pow(2.0, x[i])


def test_powers_to_constants() -> None:
    a = operands(0, 30, "float64", 1000)
    x, out = dp.asarray(a, device=DEVICE), dp.empty((a.size, 4), dtype="f8", device=DEVICE)
    dp.call_kernel(powers_to_constants, dp.Range(a.size), x, out)
    exact = a.astype("longdouble")
    with np.errstate(all="ignore"):
        for column, power in enumerate((2, 0.5, -1)):
            assert errors_in_ulp(out.asnumpy()[:, column], np.power(exact, power)) <= 0.51
        assert errors_in_ulp(out.asnumpy()[:, 3], np.exp2(exact)) <= 1


@dp.kernel
def sines_of_some(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    if x[i] > 0:
        out[i] = math.sin(x[i])


def test_angles_in_a_branch() -> None:
    a = np.linspace(-2, 2, 999).astype("float32")
    a[7] = 1e30
    x, out = (dp.asarray(each, device=DEVICE) for each in (a, np.zeros_like(a)))
    dp.call_kernel(sines_of_some, dp.Range(a.size), x, out)
    wanted = np.where(a > 0, np.sin(a.astype("float64")), 0)
    assert errors_in_ulp(out.asnumpy(), wanted) <= 2
