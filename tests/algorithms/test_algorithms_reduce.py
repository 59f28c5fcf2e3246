"""Reductions of the kernel collection compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import algorithms

REFERENCE = {"add": np.sum, "multiply": np.prod, "minimum": np.min, "maximum": np.max}
# Around the sizes of chains, chunks and blocks, and primes.
LENGTHS = (1, 2, 16, 17, 31, 32, 33, 511, 512, 1009, 16384, 32769, 40009)


def _values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    return (0.9 + 0.2 * rng.random(shape)).astype(dtype)


def _check(x: np.ndarray, op: str, axis: Any, queue: Any) -> None:
    found = algorithms.reduce(dp.asarray(x, sycl_queue=queue), op, axis=axis)
    with np.errstate(all="ignore"):
        expected = np.asarray(REFERENCE[op](x, axis=axis))
        precise = (
            REFERENCE[op](x.astype(np.float64), axis=axis) if x.dtype.kind == "f" else expected
        )
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.queue == queue
    tolerance = 2e-6 if x.dtype == np.float32 else 1e-12 if x.dtype == np.float64 else 0
    np.testing.assert_allclose(
        found.asnumpy(), precise, rtol=tolerance * (50 if op == "multiply" else 1)
    )


@pytest.mark.parametrize("op", ["add", "maximum"])
@pytest.mark.parametrize("n", LENGTHS)
def test_every_length(queue: Any, op: str, n: int) -> None:
    _check(_values((n,), "float32"), op, None, queue)


@pytest.mark.parametrize("op", ["add", "minimum"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "uint64", "float64"])
@pytest.mark.parametrize("shape", [(1000,), (7, 600), (600, 8)])
def test_every_dtype(op: str, dtype: str, shape: tuple[int, ...]) -> None:
    queue = dp.default_device().queue
    for axis in (None, *range(len(shape))):
        _check(_values(shape, dtype), op, axis, queue)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 2), (1, 0), ()])
@pytest.mark.parametrize(
    "shape", [(3, 40, 5), (40, 3, 100), (2, 17, 1), (100, 1, 40), (1, 600, 33)]
)
def test_every_axis(axis: Any, shape: tuple[int, ...]) -> None:
    _check(_values(shape, "float64"), "add", axis, dp.default_device().queue)


@pytest.mark.parametrize("columns", [1, 20])
@pytest.mark.parametrize("n", [1, 40, 1000, 16384, 40009])
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_minimum_and_maximum_pass_nan_on(n: int, columns: int, odd: float) -> None:
    for place in {0, n // 2, n - 1}:
        x = _values((n, columns), "float32")
        x[place, columns // 2] = odd
        for op in ("minimum", "maximum"):
            found = algorithms.reduce(dp.asarray(x), op, axis=0).asnumpy()
            np.testing.assert_array_equal(found, REFERENCE[op](x, axis=0))


def test_sums_are_about_as_exact_as_numpys_pairwise_ones() -> None:
    x = np.random.default_rng(4).random(3_000_000).astype(np.float32)
    exact = x.sum(dtype=np.float64)
    error = abs(float(algorithms.reduce(dp.asarray(x))) - exact) / exact
    assert error < 4e-7
    columns = x.reshape(-1, 10)
    exact = columns.sum(0, dtype=np.float64)
    error = np.max(np.abs(algorithms.reduce(dp.asarray(columns), axis=0).asnumpy() - exact) / exact)
    assert error < 1e-6  # NumPy adds rows one by one and is off by 2e-5


def test_a_result_repeats_bit_for_bit() -> None:
    x = dp.asarray(np.random.default_rng(5).standard_normal(1_000_003).astype(np.float32))
    first = algorithms.reduce(x).asnumpy()
    assert all(algorithms.reduce(x).asnumpy() == first for _ in range(5))


def test_views_are_reduced_with_their_layout() -> None:
    x = np.arange(600.0).reshape(20, 30)
    view = dp.asarray(x)[::-2, 3::4]
    for axis in (None, 0, 1):
        found = algorithms.reduce(view, axis=axis).asnumpy()
        np.testing.assert_allclose(found, x[::-2, 3::4].sum(axis))


def test_kept_axes_have_length_one() -> None:
    x = dp.ones((3, 4, 5))
    assert algorithms.reduce(x, axis=(0, 2), keepdims=True).shape == (1, 4, 1)
    assert algorithms.reduce(x, keepdims=True).shape == (1, 1, 1)


def test_no_elements_give_the_identity_or_an_error() -> None:
    empty = dp.zeros((0, 3), dtype="float32")
    np.testing.assert_array_equal(algorithms.reduce(empty, axis=0).asnumpy(), [0, 0, 0])
    np.testing.assert_array_equal(algorithms.reduce(empty, "multiply", axis=0).asnumpy(), [1, 1, 1])
    assert algorithms.reduce(empty, "maximum", axis=1).shape == (0,)
    with pytest.raises(dp.ShapeError, match="there are no elements"):
        algorithms.reduce(empty, "maximum", axis=0)


def test_the_result_is_a_new_array() -> None:
    x = dp.ones((1, 4), dtype="float32")
    algorithms.reduce(x, axis=0)[...] = 5
    np.testing.assert_array_equal(x.asnumpy(), np.ones((1, 4)))


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="op must be one of"):
        algorithms.reduce(dp.ones(3), "mean")
    with pytest.raises(ValueError, match=r"got \['add'\]"):
        algorithms.reduce(dp.ones(3), ["add"])  # type: ignore[arg-type]
    with pytest.raises(dp.AxisError):
        algorithms.reduce(dp.ones(3), axis=1)
    with pytest.raises(dp.DTypeError, match="complex64"):
        algorithms.reduce(dp.ones(3, dtype="complex64"))
    with pytest.raises(dp.HostConversionError):
        algorithms.reduce(np.ones(3))  # type: ignore[arg-type]
