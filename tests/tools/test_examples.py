"""The worked examples compared with NumPy: gravitation, option prices, fractals, matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.benchmarks import examples
from tests.support import counts, normal, same


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


@pytest.mark.parametrize("shape", [(1, 1), (31, 47), (3, 100), (0, 4)])
def test_mandelbrot(queue: Any, shape: tuple[int, int]) -> None:
    found = examples.mandelbrot(
        shape, left=-2, top=1, step=0.0625, limit=60, dtype="float64", device=dp.Device(queue)
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


# Around the tile (16 by 128, 64 deep), matrices that are vectors, and stacks that broadcast.
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((1, 1), (1, 1)),
        ((1, 70), (70, 1)),
        ((70, 1), (1, 70)),
        ((16, 64), (64, 128)),
        ((17, 65), (65, 129)),
        ((15, 63), (63, 127)),
        ((100, 200), (200, 3)),
        ((2, 17, 9), (2, 9, 33)),
        ((3, 1, 5, 6), (4, 6, 7)),
        ((5, 6), (3, 6, 7)),
        ((3, 5, 0), (3, 0, 7)),
        ((0, 6), (6, 7)),
    ],
)
def test_products(queue: Any, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = normal(a), normal(b)
    found = examples.matmul(dp.asarray(x, sycl_queue=queue), dp.asarray(y, sycl_queue=queue))
    assert found.sycl_queue == queue
    np.testing.assert_allclose(found.asnumpy(), x.astype("f8") @ y, atol=1e-5 * (1 + a[-1]) ** 0.5)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "uint64", "float64"])
def test_products_of_views_in_every_dtype(dtype: str) -> None:
    a, b = counts((30, 20), dtype, below=100), counts((60, 280), dtype, below=100)
    found = examples.matmul(dp.asarray(a).T, dp.asarray(b)[::-2, ::2])
    same(found, a.T @ b[::-2, ::2])


@pytest.mark.parametrize(
    "shape", [(1, 1), (127, 128), (129, 257), (1, 300), (300, 1), (3, 70, 145), (0, 3)]
)
def test_transposition(queue: Any, shape: tuple[int, ...]) -> None:
    x = normal(shape)
    found = examples.transpose(dp.asarray(x, sycl_queue=queue))
    assert found.sycl_queue == queue
    same(found, np.swapaxes(x, -1, -2), 0)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float64"])
def test_transposition_of_a_view_copies_every_dtype(dtype: str) -> None:
    x = counts((40, 50), dtype, below=100)
    array = dp.asarray(x)
    found = examples.transpose(array[::2, ::-3])
    found[...] = found + 1
    same(found, x[::2, ::-3].T + x.dtype.type(1))
    same(array, x)
