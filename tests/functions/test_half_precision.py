"""float16 in generated kernels: NumPy's values for every float16 number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import force, launched

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
OTHERS = np.random.default_rng(0).permutation(EVERY)

EXACT: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda xp, x, y: x + y,
    "subtract": lambda xp, x, y: x - y,
    "multiply": lambda xp, x, y: x * y,
    "divide": lambda xp, x, y: x / y,
    "remainder": lambda xp, x, y: x % y,
    "with scalars": lambda xp, x, y: x * 0.1 + 3,
    "several, each rounded": lambda xp, x, y: (x * y + x) * y - x,
    "maximum": lambda xp, x, y: xp.maximum(x, y),
    "compared": lambda xp, x, y: x < y,
    "chosen": lambda xp, x, y: xp.where(x > 0, x, y),
    "negative": lambda xp, x, y: -x,
    "sqrt": lambda xp, x, y: xp.sqrt(x),
    "floor": lambda xp, x, y: xp.floor(x),
    "round": lambda xp, x, y: xp.round(x),
    "sign": lambda xp, x, y: xp.sign(x),
    "to single": lambda xp, x, y: x.astype("float32"),
    "to double": lambda xp, x, y: x.astype("float64"),
    "with single": lambda xp, x, y: x + y.astype("float32") * 0.3,
    "a view": lambda xp, x, y: (x + y)[::-3],
    "in place": lambda xp, x, y: (x + 0).__iadd__(y),
}


pytestmark = pytest.mark.usefixtures("fused")


def computed(function: Callable[[], dp.ndarray]) -> np.ndarray:
    """Return the values, which a generated kernel must have computed."""
    with launched() as launches:
        found = function().asnumpy()
    assert any(launch.name.startswith("fused_") for launch in launches)
    return found


@pytest.mark.parametrize("name", EXACT)
def test_operations_have_the_bits_of_numpy(name: str) -> None:
    operation = EXACT[name]
    with np.errstate(all="ignore"):
        wanted = operation(np, EVERY.copy(), OTHERS.copy())
    x, y = dp.asarray(EVERY), dp.asarray(OTHERS)
    found = computed(lambda: operation(dp, x, y))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "cbrt", "log1p"])
def test_functions_are_within_one_unit_of_numpy(name: str) -> None:
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(EVERY)
    found = computed(lambda: getattr(dp, name)(dp.asarray(EVERY)))
    np.testing.assert_allclose(found, wanted, rtol=2**-10, atol=2**-23)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool", "int16"])
def test_numbers_are_rounded_once(dtype: str) -> None:
    random = np.random.default_rng(1)
    host = random.standard_normal(1 << 16) * 10.0 ** random.integers(-9, 6, 1 << 16)
    # Just above and below the midpoint of two float16 numbers, where double rounding goes wrong.
    middle = 1 + 2.0**-11
    host[:3] = middle, np.nextafter(middle, 2), np.nextafter(middle, 0)
    with np.errstate(all="ignore"):
        host = host.astype(dtype)
        wanted = host.astype("float16")
    found = computed(lambda: dp.asarray(host).astype("float16"))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["sum", "mean", "var", "max", "min", "any", "argmax"])
@pytest.mark.parametrize("axis", [None, 0])
def test_reductions_are_computed_in_single_precision(name: str, axis: int | None) -> None:
    host = np.random.default_rng(2).uniform(-1, 1, (300, 2500)).astype("float16")
    x = dp.asarray(host)
    found = computed(lambda: getattr(dp, name)(x * 2, axis=axis))
    wanted = getattr(np, name)((host * 2).astype("float32"), axis=axis)
    wanted = wanted if name in ("any", "argmax") else wanted.astype("float16")
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)
    with dp.config.override(host_tier=True):
        small = getattr(dp, name)(x[:4, :5], axis=axis)
    numpy = getattr(np, name)(host[:4, :5], axis=axis)
    assert small.dtype == numpy.dtype
    np.testing.assert_allclose(small.asnumpy(), numpy, rtol=2e-3, atol=2e-3)


def test_sums_and_means_of_expressions() -> None:
    host = np.random.default_rng(2).uniform(-1, 1, (300, 200)).astype("float16")
    x = dp.asarray(host)
    wanted = np.mean(host * host, axis=1)
    np.testing.assert_allclose(dp.mean(x * x, axis=1).asnumpy(), wanted, rtol=2e-3)
    single = np.sum((host + host).astype("float32"), axis=0)
    found = computed(lambda: dp.sum((x + x).astype("float32"), axis=0))
    np.testing.assert_allclose(found, single, rtol=1e-5, atol=1e-4)


PRODUCTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "matrices": lambda xp, x, y: x @ y.T,
    "a matrix with itself": lambda xp, x, y: x @ x.T,
    "a matrix and a vector": lambda xp, x, y: x @ y[0],
    "vectors": lambda xp, x, y: xp.dot(x[0], y[0]),
    "inner": lambda xp, x, y: xp.inner(x, y),
    "vdot": lambda xp, x, y: xp.vdot(x, y),
    "tensordot": lambda xp, x, y: xp.tensordot(x, y, 2),
    "einsum": lambda xp, x, y: xp.einsum("ij,kj->ik", x, y),
    "einsum of float16 and small integers": lambda xp, x, y: xp.einsum(
        "ij,kj->i", x.astype("int8"), y
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_float16_that_the_library_does_not_have(name: str, queue: Any) -> None:
    values = np.random.default_rng(7).integers(-3, 4, (2, 30, 70)).astype(np.float16)
    wanted = PRODUCTS[name](np, *values)
    x, y = (dp.asarray(each, sycl_queue=queue) for each in values)
    found = PRODUCTS[name](dp, x, y)
    assert found.queue == queue
    assert found.dtype == wanted.dtype == np.float16
    np.testing.assert_array_equal(found.asnumpy(), wanted)


SUMS_OF_LINES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "vecdot": lambda xp, x, w: xp.vecdot(x.T, w),
    "vecdot along": lambda xp, x, w: xp.vecdot(x, w[:, None], axis=0),
    "vecmat": lambda xp, x, w: xp.vecmat(w, x),
    "matvec": lambda xp, x, w: xp.matvec(x.T, w),
    "average": lambda xp, x, w: xp.average(x, 0, w),
    "average of lines": lambda xp, x, w: xp.average(x.T, -1, w),
    "mean": lambda xp, x, w: xp.mean(x, 0),
    "norm": lambda xp, x, w: xp.linalg.norm(x, axis=0),
    "sum": lambda xp, x, w: xp.sum(x.T, -1),
    "tensordot": lambda xp, x, w: xp.tensordot(x, w, axes=((0,), (0,))),
    "einsum": lambda xp, x, w: xp.einsum("ij,i->j", x, w),
    "nanmean": lambda xp, x, w: xp.nanmean(x, 0),
    "trapezoid": lambda xp, x, w: xp.trapezoid(x, axis=0),
}


@pytest.mark.parametrize("executor", ["host", "library", "fused"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", SUMS_OF_LINES)
def test_sums_of_many_float16_numbers_are_as_exact_as_numpys(
    name: str, order: Any, executor: str
) -> None:
    """A sum rounded to float16 after each addition stays at 2048, to which 1 adds nothing."""
    x, w = np.ones((8193, 4), "float16", order), np.full(8193, 2.0, "float16")
    call = SUMS_OF_LINES[name]
    exact = np.asarray(call(np, x.astype("float64"), w.astype("float64")))
    off = np.abs(call(np, x, w).astype("float64") - exact).max()
    with force(executor):
        found = call(dp, dp.asarray(x, order=order), dp.asarray(w)).asnumpy().astype("float64")
    assert np.abs(found - exact).max() <= off + 1e-3 * np.abs(exact).max()


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "irfftn"])
def test_fourier_transforms_are_those_of_float32(name: str, executor: str) -> None:
    x = np.ones(60_000, "float16")  # float16 holds neither the number of points nor its inverse
    found = getattr(dp.fft, name)(dp.asarray(x))
    wanted = getattr(np.fft, name)(x.astype("float32"))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-6, atol=1e-2)
