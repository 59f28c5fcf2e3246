"""The values where a derivative does not exist; the guide page has them as a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp

NAN = float("nan")

#: The point, the gradient, and the function.
CONVENTIONS: dict[str, tuple[list[float], list[float], Callable[[Any], Any]]] = {
    "max": ([1.0, 2.0, 2.0], [0.0, 0.5, 0.5], dp.max),
    "min": ([1.0, 1.0, 2.0], [0.5, 0.5, 0.0], dp.min),
    "nanmax": ([2.0, NAN, 2.0], [0.5, 0.0, 0.5], dp.nanmax),
    "maximum": ([0.0, 1.0, -1.0], [0.5, 1.0, 0.0], lambda x: dp.sum(dp.maximum(x, 0.0))),
    "minimum": ([0.0, 1.0, -1.0], [0.5, 0.0, 1.0], lambda x: dp.sum(dp.minimum(x, 0.0))),
    "fmax": ([0.0, NAN, -1.0], [0.5, 0.0, 0.0], lambda x: dp.sum(dp.fmax(x, 0.0))),
    "clip": ([0.0, 0.5, 1.0, 2.0], [0.5, 1.0, 0.5, 0.0], lambda x: dp.sum(dp.clip(x, 0.0, 1.0))),
    "abs": ([0.0, -2.0], [0.0, -1.0], lambda x: dp.sum(dp.abs(x))),
    "sign": ([0.0, 2.0], [0.0, 0.0], lambda x: dp.sum(dp.sign(x))),
    "floor": ([1.0, 1.5], [0.0, 0.0], lambda x: dp.sum(dp.floor(x) + dp.round(x) + dp.ceil(x))),
    "sort": ([2.0, 1.0, 1.0], [3.0, 1.0, 2.0], lambda x: dp.sum(dp.sort(x) * dp.arange(1, 4))),
    "sqrt": ([0.0, 4.0], [0.0, 0.25], lambda x: dp.sum(dp.where(x > 0, dp.sqrt(x), 0.0))),
    "log": ([0.0, 4.0], [0.0, 0.25], lambda x: dp.sum(dp.where(x > 0, dp.log(x), 0.0))),
    "divide": ([0.0, 2.0], [0.0, -0.25], lambda x: dp.sum(dp.where(x > 0, 1 / x, 0.0))),
    "norm": ([0.0, 0.0], [NAN, NAN], dp.linalg.norm),
    "norm squared": ([0.0, 0.0], [0.0, 0.0], lambda x: dp.linalg.norm(x) ** 2),
    "std": ([1.0, 1.0], [NAN, NAN], dp.std),
    "prod": ([0.0, 2.0, 3.0], [6.0, 0.0, 0.0], dp.prod),
    "power 0": ([0.0, 2.0], [0.0, 0.0], lambda x: dp.sum(x**0)),
    "power 2": ([0.0, 2.0], [0.0, 4.0], lambda x: dp.sum(x**2)),
    "power of 0": ([0.0, 2.0], [0.0, 0.0], lambda y: dp.sum(dp.pow(dp.asarray(0.0), y))),
    "sinc": ([0.0], [0.0], lambda x: dp.sum(dp.sinc(x))),
}


@pytest.mark.parametrize("name", CONVENTIONS)
def test_conventions(name: str) -> None:
    point, expected, f = CONVENTIONS[name]
    x = dp.asarray(point)
    gradient = dp.grad(f)(x).asnumpy()
    assert np.array_equal(gradient, expected, equal_nan=True), gradient
    for at in range(len(point)):
        t = np.zeros(len(point))
        t[at] = 1
        along = float(dp.jvp(f, (x,), (dp.asarray(t),))[1])
        assert np.isnan(expected[at]) or along == expected[at]


@pytest.mark.parametrize("name", ["sqrt", "log", "divide", "norm squared"])
def test_an_option_gives_nan_for_zero_times_infinity(name: str) -> None:
    point, expected, f = CONVENTIONS[name]
    with dp.config.override(zero_wins=False):
        gradient = dp.grad(f)(dp.asarray(point)).asnumpy()
    assert np.isnan(gradient[0])
    assert np.array_equal(gradient[1:], expected[1:]) or name == "norm squared"


def test_the_gradient_by_complex_numbers_is_the_steepest_ascent() -> None:
    z = dp.asarray([1 + 1j, 2 - 1j])
    gradient = dp.grad(lambda z: dp.sum(dp.real(z * (1 + 2j))))(z)
    # real((a + bj) * (1 + 2j)) = a - 2 b
    assert gradient.tolist() == [1 - 2j, 1 - 2j]
    squares = dp.grad(lambda z: dp.sum(dp.abs(z) ** 2))(z)
    assert np.allclose(squares.asnumpy(), 2 * z.asnumpy())
    angles = dp.grad(lambda z: dp.sum(dp.angle(z)))(z).asnumpy()
    for k, v in enumerate(z.asnumpy()):
        of_real = (np.angle(v + 1e-6) - np.angle(v - 1e-6)) / 2e-6
        of_imaginary = (np.angle(v + 1e-6j) - np.angle(v - 1e-6j)) / 2e-6
        assert np.isclose(angles[k], of_real + 1j * of_imaginary)


def test_the_modulus_has_the_gradient_zero_at_zero() -> None:
    gradient = dp.grad(lambda z: dp.sum(dp.abs(z)))(dp.asarray([0j, 3 + 4j])).asnumpy()
    assert np.allclose(gradient, [0, 0.6 + 0.8j])


def test_random_numbers_are_constants() -> None:
    def f(x: Any) -> Any:
        return dp.sum(x + 2 * dp.random.default_rng(0).normal(size=3))

    assert dp.grad(f)(dp.ones(3)).tolist() == [1.0, 1.0, 1.0]


def test_single_precision_stays_single() -> None:
    def f(x: Any) -> Any:
        y = dp.sin(x) * 0.5 + dp.sqrt(x) ** 1.5 - dp.special.erf(x) / 3
        return dp.mean(dp.maximum(y, 0.1) ** 2) + dp.std(x) + dp.linalg.norm(x)

    x = dp.asarray([0.5, 1.0, 2.0], dtype="float32")
    assert dp.grad(f)(x).dtype == dp.float32
    assert dp.hessian(f)(x).dtype == dp.float32
    assert dp.jvp(f, (x,), (x,))[1].dtype == dp.float32
