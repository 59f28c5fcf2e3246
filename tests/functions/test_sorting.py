"""Sorting, argsort and unique values, by NumPy in the arrays' memory and by kernels.

Where NumPy may not compute, dparray's radix sort handles real numbers and the library complex ones.
The limits of the radix sort by rows are set to one element here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._functions import sets, sorting
from tests.support import same

DTYPES = [
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64", "complex64"),
]


@pytest.fixture(params=["radix", "host", "no host"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "radix":
        for module, name in (
            (sorting, "_LONG"),
            (sorting, "_LONG_FOR_POSITIONS"),
            (sorting, "_LONG_HALVES"),
            (sets, "_LONG"),
        ):
            monkeypatch.setattr(module, name, 1)
        monkeypatch.setattr(sorting, "_LONG_FOR_VECTORS", {4: 1, 8: 1})
    with dp.config.override(host_tier=request.param != "no host"):
        yield request.param


def values(dtype: str, shape: tuple[int, ...], nan: bool = True) -> np.ndarray:
    """Return few different values, with NaN, infinities and both zeros among them."""
    random = np.random.default_rng(len(shape))
    numbers = random.integers(0, 7, shape).astype(dtype)
    if numbers.dtype.kind == "f":
        numbers = numbers - numbers.dtype.type(3)
        numbers.flat[::5] = np.inf
        numbers.flat[::7] = -0.0
        if nan:
            numbers.flat[::6] = np.nan
    return numbers


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (40,), (3, 17), (2, 5, 7), (0,), (3, 0)])
def test_sort_along_each_axis(dtype: str, shape: tuple[int, ...]) -> None:
    host = values(dtype, shape)
    x = dp.asarray(host)
    for axis in range(-1, len(shape)):
        expected = np.sort(host, axis=axis)
        np.testing.assert_array_equal(dp.sort(x, axis=axis).asnumpy(), expected)
        turned = np.flip(expected, axis)
        np.testing.assert_array_equal(dp.sort(x, axis=axis, descending=True).asnumpy(), turned)
    np.testing.assert_array_equal(dp.sort(x, axis=None).asnumpy(), np.sort(host, axis=None))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (40,), (3, 17), (2, 5, 7), (0,)])
def test_positions_are_those_of_a_stable_sort(dtype: str, shape: tuple[int, ...]) -> None:
    host = values(dtype, shape)
    x = dp.asarray(host)
    for axis in range(-1, len(shape)):
        expected = np.argsort(host, axis=axis, kind="stable")
        found = dp.argsort(x, axis=axis)
        assert found.dtype == "int64"
        np.testing.assert_array_equal(found.asnumpy(), expected)
        turned = np.argsort(np.flip(host, axis), axis=axis, kind="stable")
        descending = shape[axis] - 1 - np.flip(turned, axis)
        found = dp.argsort(x, axis=axis, descending=True)
        np.testing.assert_array_equal(found.asnumpy(), descending)


def test_views_are_sorted_and_stay_as_they_are(queue: Any) -> None:
    host = values("float32", (6, 20))
    x = dp.asarray(host, sycl_queue=queue, usm_type="shared")
    for view in (np.s_[::-1], np.s_[:, ::-2], np.s_[1:3, 3:9], np.s_[2], np.s_[..., 4]):
        found = dp.sort(x[view], axis=0)
        assert found.queue == queue
        assert found.usm_type == "shared"
        np.testing.assert_array_equal(found.asnumpy(), np.sort(host[view], axis=0))
    np.testing.assert_array_equal(x.asnumpy(), host)
    x.sort(axis=1)
    np.testing.assert_array_equal(x.asnumpy(), np.sort(host, axis=1))


def test_pending_arrays_are_sorted() -> None:
    host = values("float64", (50,), nan=False)
    x = dp.asarray(host)
    np.testing.assert_array_equal(dp.sort(-x * 2).asnumpy(), np.sort(-host * 2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 11), (0,)])
def test_unique_values(dtype: str, shape: tuple[int, ...]) -> None:
    host = values(dtype, shape, nan=False)
    x = dp.asarray(host, usm_type="host")
    expected, found = np.unique_all(host), dp.unique_all(x)
    for name in ("values", "indices", "inverse_indices", "counts"):
        one, other = getattr(found, name), getattr(expected, name)
        assert one.usm_type == "host"
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_array_equal(one.asnumpy(), other)
    np.testing.assert_array_equal(dp.unique_values(x).asnumpy(), expected.values)
    counts = dp.unique_counts(x)
    np.testing.assert_array_equal(counts.values.asnumpy(), expected.values)
    np.testing.assert_array_equal(counts.counts.asnumpy(), expected.counts)
    np.testing.assert_array_equal(
        dp.unique_inverse(x).inverse_indices.asnumpy(), expected.inverse_indices
    )


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(40, 2), (3, 5, 2), (6, 1), (0, 3), (3, 0), (0, 0), (1, 1)])
def test_unique_slices(queue: Any, dtype: str, shape: tuple[int, ...]) -> None:
    host = np.random.default_rng(3).integers(0, 3, shape).astype(dtype)
    x = dp.asarray(host, sycl_queue=queue, usm_type="shared")
    for axis in (0, 1, -1):
        wanted = np.unique(host, True, True, True, axis=axis)
        found, alone = dp.unique(x, True, True, True, axis=axis), dp.unique(x, axis=axis)
        for one, other in zip((*found, alone), (*wanted, wanted[0]), strict=True):
            same(one, other)
            assert (one.queue, one.usm_type) == (queue, "shared")


@pytest.mark.parametrize("equal_nan", [True, False])
def test_nan_of_vectors_are_one_and_those_of_slices_are_not(equal_nan: bool) -> None:
    host = np.asarray([np.nan, 1, np.nan, 1, 0, np.nan], "float32")
    for given, axes in ((host, (None, 0)), (host.reshape(3, 2), (None, 0, 1))):
        for axis in axes:
            wanted = np.unique(given, axis=axis, equal_nan=equal_nan, return_counts=True)
            x = dp.asarray(given)
            found = dp.unique(x, axis=axis, equal_nan=equal_nan, return_counts=True)
            for one, other in zip(found, wanted, strict=True):
                same(one, other)


def test_every_nan_is_another_value() -> None:
    x = dp.asarray([np.nan, 1.0, np.nan, 1.0])
    found = dp.unique_counts(x)
    np.testing.assert_array_equal(found.values.asnumpy(), [1.0, np.nan, np.nan])
    assert found.counts.tolist() == [2, 1, 1]


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint32", "float64"])
@pytest.mark.parametrize("shape", [(513, 8), (585, 7), (4095,), (4096,), (2, 70_000), (9, 500, 11)])
@pytest.mark.parametrize("descending", [False, True])
def test_positions_in_many_lines_are_stable(
    shape: tuple[int, ...], dtype: str, descending: bool
) -> None:
    values = np.random.default_rng(3).integers(0, 50, shape).astype(dtype)
    if values.dtype.kind == "f":
        values -= 25
        flat = values.ravel()
        flat[::7], flat[1::11] = -0.0, 0.0
        flat[5::13], flat[6::17], flat[3::19], flat[4::23] = np.nan, -np.nan, np.inf, -np.inf
    elif values.dtype.kind == "i":
        values -= 25
        values.flat[3] = np.iinfo(dtype).min
    for axis in range(values.ndim):
        if values.size > 1000 * values.shape[axis]:  # the radix kernels take a minute for those
            continue
        found = dp.argsort(dp.asarray(values), axis=axis, descending=descending)
        if descending:
            wanted = np.argsort(np.flip(values, axis), axis=axis, kind="stable")
            wanted = values.shape[axis] - 1 - np.flip(wanted, axis)
        else:
            wanted = np.argsort(values, axis=axis, kind="stable")
        np.testing.assert_array_equal(found.asnumpy(), wanted)
    turned = dp.asarray(values)[:20][::-1]
    np.testing.assert_array_equal(
        dp.argsort(turned).asnumpy(), np.argsort(values[:20][::-1], kind="stable")
    )


def test_positions_on_every_queue(queue: Any) -> None:
    values = np.random.default_rng(4).standard_normal((100, 100)).astype("float32")
    found = dp.argsort(dp.asarray(values, device=queue), axis=0)
    np.testing.assert_array_equal(found.asnumpy(), np.argsort(values, axis=0, kind="stable"))


@pytest.mark.parametrize("count", [1, 32, 5000])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_positions_of_complex_numbers_in_order(dtype: str, count: int) -> None:
    x = (np.arange(count) * 7 % 5 + 1j * (np.arange(count) % 3)).astype(dtype)
    found = dp.argsort(dp.asarray(x), kind="stable").asnumpy()
    assert np.array_equal(found, np.argsort(x, kind="stable"))


@pytest.mark.parametrize(("seconds", "expected"), [(0.0, True), (1e-3, False)])
def test_the_speed_of_numpys_sort_is_measured(
    seconds: float, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(np, "sort", lambda values: seconds and time.sleep(seconds))
    for itemsize in (2, 4, 8):
        assert sorting._numpy_vectorizes.__wrapped__(itemsize) is expected
    assert not sorting._numpy_vectorizes.__wrapped__(1)


def test_long_rows_of_float16_are_sorted_by_radix(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy merges them, ten times as slowly as dparray's radix sort."""
    x = dp.asarray(np.random.default_rng(0).normal(size=1 << 17).astype("float16"))
    assert not sorting.is_vectorized(x)
    monkeypatch.setattr(sorting, "compute", None)  # disables NumPy's sort
    found = dp.sort(x).asnumpy(), dp.argsort(x).asnumpy()
    np.testing.assert_array_equal(found[0], np.sort(x.asnumpy(), kind="stable"))
    np.testing.assert_array_equal(found[1], np.argsort(x.asnumpy(), kind="stable"))
