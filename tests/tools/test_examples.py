"""The worked examples compared with NumPy: gravitation, option prices, the Mandelbrot set."""

from __future__ import annotations

import doctest
import inspect
import math
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.benchmarks import examples
from tests.support import normal


@pytest.mark.parametrize("name", examples.__all__)
def test_the_docstring_has_an_example_that_runs(name: str) -> None:
    text = inspect.getdoc(getattr(examples, name)) or ""
    assert "Raises:" in text
    test = doctest.DocTestParser().get_doctest(text, {"dp": dp}, name, None, 0)
    assert test.examples
    output: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=output.append)
    assert not output, "".join(output)


@pytest.mark.parametrize("name", examples.__all__)
def test_examples_are_no_names_of_the_library(name: str) -> None:
    assert not hasattr(dp.algorithms, name)


@pytest.mark.parametrize("n", [1, 2, 127, 128, 300])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nbody(queue: Any, n: int, dtype: str) -> None:
    position, mass = normal((n, 3), dtype), np.abs(normal((n,), dtype))
    found = examples.nbody_acceleration(
        dp.asarray(position, sycl_queue=queue), dp.asarray(mass, sycl_queue=queue), softening=0.1
    )
    assert found.dtype == dtype
    step = position[None].astype(np.float64) - position[:, None]
    square = np.square(step).sum(-1) + 0.01
    expected = (step * (mass / square**1.5)[..., None]).sum(1)
    scale = np.abs(expected).max() or 1.0
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(found.asnumpy() / scale, expected / scale, atol=tolerance)


def test_bodies_with_wrong_arguments() -> None:
    x = dp.ones((4, 3), dtype="float32")
    with pytest.raises(dp.ShapeError, match="mass"):
        examples.nbody_acceleration(x, x[0], softening=1.0)
    for softening in (0.0, -0.0, -1, math.nan, 1e-30):
        with pytest.raises(ValueError, match="softening must be positive"):
            examples.nbody_acceleration(x, x[:, 0], softening=softening)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_black_scholes(queue: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    price, strike = (rng.uniform(20, 200, (5, 41)).astype(dtype) for _ in range(2))
    years = rng.uniform(0.05, 3, (5, 41)).astype(dtype)
    arrays = [dp.asarray(values, sycl_queue=queue) for values in (price, strike, years)]
    call, put = examples.black_scholes(*arrays, rate=0.03, volatility=0.25)
    spread = 0.25 * np.sqrt(years, dtype=np.float64)
    d1 = (np.log(price / strike) + (0.03 + 0.03125) * years) / spread
    normal = np.vectorize(lambda value: 0.5 * math.erfc(-value / math.sqrt(2)))
    discounted = strike * np.exp(-0.03 * years.astype(np.float64))
    expected = price * normal(d1) - discounted * normal(d1 - spread)
    tolerance = 1e-4 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(call.asnumpy(), expected, atol=tolerance)
    np.testing.assert_allclose(put.asnumpy(), expected - price + discounted, atol=tolerance)


def test_black_scholes_with_wrong_arguments() -> None:
    x = dp.ones(3, dtype="float32")
    with pytest.raises(ValueError, match="volatility must be positive"):
        examples.black_scholes(x, x, x, rate=0.1, volatility=0)
    with pytest.raises(dp.ArgumentError, match="rate must be a number"):
        examples.black_scholes(x, x, x, rate=x[0], volatility=0.2)  # type: ignore[arg-type]
    with pytest.raises(dp.ShapeError, match="one shape"):
        examples.black_scholes(x, x[:2], x, rate=0.1, volatility=0.2)
    with pytest.raises(dp.DTypeError, match="float64"):
        examples.black_scholes(x, x.astype("float64"), x, rate=0.1, volatility=0.2)


@pytest.mark.parametrize("shape", [(1, 1), (31, 47), (3, 100), (0, 4)])
def test_mandelbrot(queue: Any, shape: tuple[int, int]) -> None:
    found = examples.mandelbrot(
        shape, left=-2, top=1, step=0.0625, limit=60, dtype="float64", sycl_queue=queue
    )
    assert found.sycl_queue == queue
    # Binary fractions, so that every coordinate is exact.
    c = (-2 + 0.0625 * np.arange(shape[1])) + 1j * (1 - 0.0625 * np.arange(shape[0])[:, None])
    z, expected = np.zeros_like(c), np.zeros(c.shape, np.int32)
    for _ in range(60):
        near = z.real**2 + z.imag**2 <= 4
        expected += near
        z[near] = z[near] ** 2 + c[near]
    # Where rounding decides, results may differ by one iteration.
    assert np.mean(found.asnumpy() != expected) < 0.01 if expected.size else found.shape == shape


def test_mandelbrot_with_wrong_arguments() -> None:
    with pytest.raises(dp.ShapeError, match="height, width"):
        examples.mandelbrot((1, 2, 3))  # type: ignore[arg-type]
    with pytest.raises(dp.ShapeError, match="height, width"):
        examples.mandelbrot(5)  # type: ignore[arg-type]
    for limit in (0, 2.5, "9"):
        with pytest.raises(dp.ArgumentError, match="limit must be"):
            examples.mandelbrot((2, 2), limit=limit)  # type: ignore[arg-type]
    with pytest.raises(dp.ArgumentError, match="step must be a number"):
        examples.mandelbrot((2, 2), step="x")  # type: ignore[arg-type]
    with pytest.raises(dp.DTypeError, match="float32 or float64"):
        examples.mandelbrot((2, 2), dtype="int32")
    with pytest.raises(dp.UsmTypeError):
        examples.mandelbrot((2, 2), usm_type="managed")
