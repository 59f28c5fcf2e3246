"""Quantiles by all of NumPy's methods, with weights and with NaN; covariance with weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._functions import order_statistics, quantiles
from tests.support import same

RNG = np.random.default_rng(3)
FRACTIONS: list[Any] = [0.0, 0.1, 0.3, 0.5, 0.75, 1.0, [0.2, 0.5]]


def agrees(call: Callable[[Any, Callable[[Any], Any]], Any], rtol: float = 1e-6) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.asarray(call(np, np.asarray))
    found = call(dp, dp.asarray)
    same(found, expected, rtol, atol=0.0)


@pytest.fixture(params=[True, False], ids=["at once", "sorted"])
def at_once(request: pytest.FixtureRequest) -> Iterator[None]:
    with dp.config.override(host_tier=request.param):
        yield


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("method", quantiles._METHODS)
@pytest.mark.sample(5)
def test_methods(method: str, dtype: str, at_once: None) -> None:
    for count in (1, 2, 5, 10):
        x = (RNG.normal(size=(3, count)) * 10).astype(dtype)
        for q in FRACTIONS:
            agrees(lambda xp, a, x=x, q=q: xp.quantile(a(x), q, axis=1, method=method))
        agrees(lambda xp, a, x=x: xp.percentile(a(x), 40, method=method, keepdims=True))


@pytest.mark.parametrize("method", quantiles._METHODS)
@pytest.mark.sample(5)
def test_methods_with_nan(method: str, at_once: None) -> None:
    x = RNG.normal(size=(3, 10))
    x[0, 0] = x[1, :] = np.nan
    for q in FRACTIONS:
        agrees(lambda xp, a, q=q: xp.quantile(a(x), q, axis=1, method=method))
        agrees(lambda xp, a, q=q: xp.nanquantile(a(x), q, axis=1, method=method))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_weights(dtype: str) -> None:
    x = (RNG.normal(size=(3, 7)) * 10).astype(dtype)
    weights = RNG.integers(0, 4, size=(3, 7))
    weights[:, -1] = 1
    options = {"method": "inverted_cdf", "axis": 1}
    for q in FRACTIONS:
        agrees(lambda xp, a, q=q: xp.quantile(a(x), q, weights=a(weights), **options))
        agrees(lambda xp, a, q=q: xp.nanquantile(a(x), q, weights=a(weights), **options))
        agrees(lambda xp, a, q=q: xp.percentile(a(x), q, weights=a(weights[0]), **options))
        agrees(lambda xp, a, q=q: xp.quantile(a(x), q, weights=a(weights), method="inverted_cdf"))


def test_weights_with_nan() -> None:
    x = RNG.normal(size=(3, 7))
    x[0, 2] = x[1, :] = np.nan
    weights = RNG.integers(1, 4, size=(3, 7))
    options = {"method": "inverted_cdf", "axis": 1}
    for q in FRACTIONS:
        agrees(lambda xp, a, q=q: xp.quantile(a(x), q, weights=a(weights), **options))
        agrees(lambda xp, a, q=q: xp.nanquantile(a(x), q, weights=a(weights), **options))


def test_wrong_weights() -> None:
    x = dp.arange(3.0)
    with pytest.raises(dp.ArgumentError, match="inverted_cdf"):
        dp.quantile(x, 0.5, weights=[1, 2, 3])
    with pytest.raises(dp.ArgumentError, match="negative"):
        dp.quantile(x, 0.5, weights=[1, -2, 3], method="inverted_cdf")
    with pytest.raises(dp.ShapeError, match="weights of shape"):
        dp.quantile(x, 0.5, weights=[1, 2], method="inverted_cdf")
    with pytest.raises(dp.ArgumentError, match="one of interpolated"):
        dp.quantile(x, 0.5, method="best")


@pytest.mark.parametrize("options", [{}, {"bias": True}, {"ddof": 0}, {"ddof": 2}])
def test_covariance(options: dict[str, Any]) -> None:
    x, y = RNG.normal(size=(3, 7)), RNG.normal(size=(2, 7))
    often, much = RNG.integers(0, 4, 7), RNG.random(7)
    agrees(lambda xp, a: xp.cov(a(x), a(y), **options))
    agrees(lambda xp, a: xp.cov(a(x), a(y), fweights=a(often), **options))
    agrees(lambda xp, a: xp.cov(a(x), aweights=a(much), **options))
    agrees(lambda xp, a: xp.cov(a(x + 1j), fweights=a(often), aweights=a(much), **options))
    agrees(lambda xp, a: xp.cov(a(x.T), rowvar=False, aweights=a(much), **options))


def test_dtypes_of_covariance() -> None:
    x = RNG.normal(size=(3, 7)).astype(np.float32)
    agrees(lambda xp, a: xp.cov(a(x)), 1e-4)
    agrees(lambda xp, a: xp.cov(a(x), dtype=np.float32), 1e-4)
    agrees(lambda xp, a: xp.cov(a(np.arange(6).reshape(2, 3))))
    agrees(lambda xp, a: xp.corrcoef(a(x), dtype=np.float32), 1e-4)


def test_wrong_weights_of_covariance() -> None:
    x = dp.ones((2, 3))
    with pytest.raises(dp.DTypeError, match="fweights must be integers"):
        dp.cov(x, fweights=[0.5, 1.0, 2.0])
    with pytest.raises(dp.ShapeError, match="aweights of shape"):
        dp.cov(x, aweights=[0.5, 1.0])
    with pytest.raises(dp.ArgumentError, match="aweights must not be negative"):
        dp.cov(x, aweights=[0.5, -1.0, 1.0])


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "bool"])
@pytest.mark.parametrize("fraction", ["float16", "float32", "float64"])
def test_numbers_of_numpy_decide_the_dtype(
    fraction: str, dtype: str, method: str, at_once: None
) -> None:
    if dtype == "bool" and method == "linear":
        pytest.skip("NumPy has no differences of Booleans")
    x, q = np.arange(6).astype(dtype), np.asarray([0.25, 0.5], fraction)
    for name in ("quantile", "nanquantile", "percentile", "nanpercentile"):
        agrees(lambda xp, a, name=name: getattr(xp, name)(a(x), q[0], method=method), 2e-3)
        agrees(lambda xp, a, name=name: getattr(xp, name)(a(x), a(q), method=method), 2e-3)


RANDOM = np.random.default_rng(5)
LONG = 100_003
#: Large vectors, for which the elements around a quantile are selected instead of sorted.
LONG_VECTORS = {
    "float32": RANDOM.normal(size=LONG).astype("float32"),
    "float64": RANDOM.normal(size=LONG),
    "int32": RANDOM.integers(-1000, 1000, LONG, dtype="int32"),
    "uint8": RANDOM.integers(0, 255, LONG, dtype="uint8"),
    "uint64": RANDOM.integers(0, 2**53, LONG, dtype="uint64"),
    "two values": RANDOM.integers(0, 2, LONG),
    "one value": np.ones(LONG, "float32"),
    "a NaN": np.where(np.arange(LONG) == 77, np.nan, RANDOM.random(LONG)),
    "mostly NaN": np.where(RANDOM.random(LONG) < 0.7, np.nan, RANDOM.random(LONG)),
    "descending": np.arange(LONG)[::-1].astype("float32"),
    "periodic": np.arange(LONG) % 7 * 1.0,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("fraction", [0.0, 0.003, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("name", LONG_VECTORS)
def test_quantiles_of_long_vectors(name: str, fraction: float) -> None:
    host = LONG_VECTORS[name]
    x = dp.asarray(host)
    for method in ("linear", "lower", "midpoint"):
        for function in ("quantile", "nanquantile"):
            expected = getattr(np, function)(host, fraction, method=method)
            found = getattr(dp, function)(x, fraction, method=method).asnumpy()
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal(dp.median(x).asnumpy(), np.median(host))
    np.testing.assert_array_equal(dp.median(x[::-2]).asnumpy(), np.median(host[::-2]))


@pytest.mark.parametrize("certainty", [5, 0, -5])
def test_a_sample_that_misleads_costs_time_only(
    certainty: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order_statistics, "_CERTAINTY", certainty)
    host = LONG_VECTORS["float64"]
    ordered = np.sort(host)
    for rank in (0, 5_000, 50_000, 90_000):
        found = order_statistics.of_ranks(host, [rank, rank + 1], 2)
        np.testing.assert_array_equal(found[:2], ordered[rank : rank + 2])
        assert not np.isnan(found[2])
