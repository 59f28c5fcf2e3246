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


@pytest.mark.parametrize("exponent", [0.5, 1, 2, 2.0])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i8"])
def test_powers_that_are_simpler_cost_what_the_simpler_costs(exponent, dtype):
    """A square of this size is computed eagerly, as the product would be."""
    host = np.linspace(1, 2, 30_000).astype(dtype)
    usual = {"launch": 65e-6, "addition": 0.375e-9}
    with dp.config.override(cost_model=usual):
        made = dp.asarray(host) ** exponent
        assert dtype == "i8" or not made.is_pending
        wanted = host**exponent
        assert made.dtype == wanted.dtype
        np.testing.assert_allclose(made.asnumpy(), wanted, rtol=1e-6)
