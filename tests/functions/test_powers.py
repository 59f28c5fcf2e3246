"""Powers on every backend: NumPy's values; negative literal exponents of integers raise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp


def test_a_negative_constant_is_refused_at_its_line() -> None:
    with pytest.raises(dp.ArgumentError, match=r"negative power -1.*astype"):
        dp.arange(3) ** -1
    assert (dp.arange(1.0, 3.0) ** -1).tolist() == [1.0, 0.5]


def test_negative_exponents_in_an_array_give_zero_except_of_one(executor: str) -> None:
    base, exponent = dp.asarray([2, 3, 0, 5]), dp.asarray([-1, 2, 0, -3])
    assert (base**exponent).tolist() == [0, 9, 1, 0]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_powers(executor: str, dtype: str) -> None:
    """As in NumPy, zero to the power of zero is one."""
    base = np.asarray([0, 1, -1, 2 + 1j, -2.5 + 1j], dtype)[:, None]
    exponent = np.asarray([0, 1, 2, -1, 0.5, 1j, 2 + 1j], dtype)
    with np.errstate(all="ignore"):
        x, y = dp.asarray(base), dp.asarray(exponent)
        for actual, expected in (
            (x**y, base**exponent),
            (0j**y, 0j**exponent),
            (x**0j, base**0j),
            (x[::-1] ** y[::-1], base[::-1] ** exponent[::-1]),
        ):
            np.testing.assert_allclose(actual.asnumpy(), expected, rtol=1e-5, atol=1e-5)
        expected = 0j**exponent
        y[...] = 0j**y
        np.testing.assert_allclose(y.asnumpy(), expected)


def test_powers_of_masks(executor: str) -> None:
    """NumPy's operator squares a mask in int8; its function, and other powers, do not."""
    mask = np.asarray([True, False])
    programs: list[Any] = [
        lambda xp, x: x**2,
        lambda xp, x: x**2.0,
        lambda xp, x: x**3,
        lambda xp, x: 2**x,
        lambda xp, x: x**x,
        lambda xp, x: xp.power(x, 2),
    ]
    for program in programs:
        actual, expected = program(dp, dp.asarray(mask)), program(np, mask)
        assert (actual.dtype, actual.tolist()) == (expected.dtype, expected.tolist())


@pytest.mark.parametrize("exponent", [0.5, 1, 2, 2.0, -1])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i8"])
def test_powers_that_are_simpler_cost_what_the_simpler_costs(exponent, dtype):
    """A square of this size is computed eagerly, as the product would be."""
    if exponent == -1 and dtype == "i8":
        pytest.skip("integers have no negative powers")
    host = np.linspace(1, 2, 30_000).astype(dtype)
    usual = {"launch": 65e-6, "addition": 0.375e-9}
    with dp.config.override(cost_model=usual):
        made = dp.asarray(host) ** exponent
        assert dtype == "i8" or not made.is_pending
        wanted = host**exponent
        assert made.dtype == wanted.dtype
        np.testing.assert_allclose(made.asnumpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("exponent", [3, 4, -1, 1.5, -0.5, -1.5])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_powers_by_products_and_roots_are_those_of_pow(exponent, dtype, fused):
    """Kernels compute them without pow, with the values of pow at zeros, infinities and NaN."""
    limits = np.finfo(dtype)
    ends = [0.0, -0.0, 1, -1, -2.5, np.inf, -np.inf, np.nan, limits.max, limits.min, limits.tiny]
    host = np.exp(np.random.default_rng(5).uniform(-9, 9, 2000))
    host = np.concatenate([ends, host]).astype(dtype)
    x = dp.asarray(host)
    made = x**exponent
    assert "math.pow" not in dp.explain(made).source
    with np.errstate(all="ignore"):
        wanted = host.astype("f8" if dtype != "f8" else "g") ** exponent
        rounded = wanted.astype(dtype)
    actual = made.asnumpy()
    assert actual.dtype == host.dtype
    is_usual = np.isfinite(rounded)
    np.testing.assert_array_equal(actual[~is_usual], rounded[~is_usual])
    np.testing.assert_array_equal(np.signbit(actual[is_usual]), np.signbit(rounded[is_usual]))
    errors = np.abs(actual[is_usual].astype(wanted.dtype) - wanted[is_usual])
    assert (errors <= 3 * np.spacing(np.abs(rounded[is_usual]))).all()


def test_known_powers_differ_in_their_kernels(fused):
    """Exponents are part of the key of such a kernel."""
    x = dp.linspace(1, 2, 1000)
    for exponent in (3, 4, 1.5, -1.5, 3, 2.5):
        np.testing.assert_allclose((x**exponent).asnumpy(), x.asnumpy() ** exponent, rtol=1e-14)
