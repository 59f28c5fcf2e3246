"""Masks, positions, histograms and counts of arrays large enough for kernels, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dparray as dp
from dparray.algorithms import selection
from tests.support import counts, examples, kernels_of, launched, wait_for_compiler

SHAPES = [(40_000,), (70_001,), (200, 300), (5, 100, 101)]


def mask_of(shape, share):
    return np.random.default_rng(1).random(shape) < share


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["?", "i1", "f4", "c16", "f2"])
@pytest.mark.parametrize("share", [0, 0.001, 0.5, 1])
def test_mask_selection_and_where_equal_numpy(share, dtype, shape):
    host, mask = counts(shape, dtype), mask_of(shape, share)
    x, m = dp.asarray(host), dp.asarray(mask)
    np.testing.assert_array_equal(x[m].asnumpy(), host[mask])
    np.testing.assert_array_equal(x[..., ::-1][m].asnumpy(), host[..., ::-1][mask])
    for array in (m, x):
        for ours, theirs in zip(dp.nonzero(array), np.nonzero(array.asnumpy()), strict=True):
            assert ours.dtype == np.int64
            np.testing.assert_array_equal(ours.asnumpy(), theirs)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["?", "f4", "c16", "f2"])
@pytest.mark.parametrize("share", [0, 0.001, 0.5, 1])
def test_writing_to_what_a_mask_selects_equals_numpy(share, dtype, shape):
    host, mask = counts(shape, dtype), mask_of(shape, share)
    x, m = dp.asarray(host), dp.asarray(mask)
    new = counts(int(mask.sum()), dtype, seed=2)
    x[m] = dp.asarray(new)
    host[mask] = new
    np.testing.assert_array_equal(x.asnumpy(), host)
    x[..., ::-1][m] = dp.asarray(new)
    host[..., ::-1][mask] = new
    np.testing.assert_array_equal(x.asnumpy(), host)
    x[m] = 1
    host[mask] = 1
    np.testing.assert_array_equal(x.asnumpy(), host)
    x[m] = dp.asarray(new[:1])
    host[mask] = new[:1]
    np.testing.assert_array_equal(x.asnumpy(), host)


def test_a_mask_of_the_first_axes_takes_a_scalar():
    host, mask = counts((40_000, 3), "f4"), mask_of(40_000, 0.5)
    x = dp.asarray(host)
    x[dp.asarray(mask)] = 7
    host[mask] = 7
    np.testing.assert_array_equal(x.asnumpy(), host)


@given(shift=st.integers(0, 3), is_array=st.booleans())
@settings(max_examples=examples(20), deadline=None)
def test_a_mask_may_share_memory_with_the_target(shift, is_array):
    host = mask_of(50_000, 0.5)
    x = dp.asarray(host)
    end = host.size - shift
    mask = host[:end].copy()
    new = mask_of(int(mask.sum()), 0.5) if is_array else True
    x[shift:][x[:end]] = dp.asarray(new) if is_array else new
    host[shift:][mask] = new
    np.testing.assert_array_equal(x.asnumpy(), host)


def test_values_may_share_memory_with_the_target():
    x, host = dp.arange(50_000), np.arange(50_000)
    x[x > 25_000] = x[:24_999]
    host[host > 25_000] = host[:24_999].copy()
    np.testing.assert_array_equal(x.asnumpy(), host)
    x[x > 10] += x[x > 10]
    host[host > 10] += host[host > 10]
    np.testing.assert_array_equal(x.asnumpy(), host)


def test_values_that_do_not_fit_leave_the_array_as_it_was():
    x = dp.arange(50_000)
    with pytest.raises(dp.ShapeError, match="x\\[index\\] = value"):
        x[x > 10] = dp.arange(3)
    with pytest.raises(dp.DTypeError):
        x[x > 10] = dp.ones(49_989, dtype="c8")
    with pytest.raises(OverflowError):
        dp.asarray(x, dtype="i1")[x > 10] = 1000
    np.testing.assert_array_equal(x.asnumpy(), np.arange(50_000))


def test_selecting_follows_its_input(queue):
    host = counts(40_000, "f4")
    x = dp.asarray(host, sycl_queue=queue, usm_type="shared")
    found = x[x > 1]
    assert (found.queue, found.usm_type) == (queue, "shared")
    np.testing.assert_array_equal(found.asnumpy(), host[host > 1])
    (places,) = dp.nonzero(x > 1)
    assert (places.queue, places.usm_type) == (queue, "shared")
    other = dp.asarray(host > 1, device=dp.Device(queue).new_queue())
    for use in (lambda: x[other], lambda: x.__setitem__(other, 1)):
        with pytest.raises(dp.ExecutionPlacementError):
            use()


@pytest.mark.parametrize("dtype", ["u1", "i4", "f4", "f8"])
@pytest.mark.parametrize("density", [False, True])
def test_histograms_equal_numpy(density, dtype):
    host = (np.random.default_rng(0).normal(size=(200, 250)) * 50 + 100).astype(dtype)
    for bins in (1, 10, 257):
        for limits in (None, (0, 200), (50.5, 60.25)):
            expected = np.histogram(host, bins, limits, density=density)
            result = dp.histogram(dp.asarray(host), bins, limits, density=density)
            for ours, theirs in zip(result, expected, strict=True):
                assert ours.dtype == theirs.dtype
                np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-14)


def test_counts_of_integers_equal_numpy():
    host = counts(200_000, "u2")
    for least in (0, 100):
        result = dp.bincount(dp.asarray(host), minlength=least)
        np.testing.assert_array_equal(result.asnumpy(), np.bincount(host, minlength=least))


@pytest.mark.parametrize("size", [100, 200_000])
def test_wrong_bins_and_counts_are_value_errors(size):
    x = dp.ones(size, dtype="i4")
    for use in (
        lambda: dp.histogram(x, 0),
        lambda: dp.histogram(x, 3, (2, 1)),
        lambda: dp.histogram(x, 3, (0, np.inf)),
        lambda: dp.bincount(-x),
        lambda: dp.bincount(x, minlength=-1),
    ):
        with pytest.raises(ValueError, match=r"histogram|bincount"):
            use()


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f4", "f8"])
def test_long_sorts_equal_numpy(dtype):
    host = (np.random.default_rng(0).normal(size=600_001) * 100).astype(dtype)
    if dtype in ("f4", "f8"):
        host[::1000] = np.nan
    np.testing.assert_array_equal(dp.sort(dp.asarray(host)).asnumpy(), np.sort(host))
    result = dp.sort(dp.asarray(host), descending=True).asnumpy()
    np.testing.assert_array_equal(result, np.sort(host)[::-1])


@pytest.mark.parametrize("is_scattered", [False, True])
def test_numpy_selects_contiguous_elements(is_scattered):
    """Each change of a mask from False to True costs NumPy a branch, and a kernel nothing."""
    size = 200_000
    mask = mask_of((size,), 0.5) if is_scattered else np.arange(size) < size // 2
    host = np.arange(float(size))
    x, m = dp.asarray(host), dp.asarray(mask)
    usual = {"launch": 65e-6, "addition": 0.375e-9}
    with dp.config.override(cost_model=usual), launched() as kernels:
        chosen = x[m]
        x[m] = chosen * 2
        x[~m] = 1.0
        wanted = np.where(mask, host * 2, 1.0)
        np.testing.assert_array_equal(x.asnumpy(), wanted)
    names = [each.name for each in kernels]
    assert any("select" in name or "expand" in name for name in names) == is_scattered


def test_writing_by_a_mask_copies_nothing_that_the_host_has_computed():
    size = 200_000
    host = np.linspace(0, 1, size)
    x = dp.asarray(host)
    usual = {"launch": 65e-6, "addition": 0.375e-9}
    with dp.config.override(cost_model=usual):
        chosen = x < 0.005
        values = x[chosen] ** 2.0
        x[chosen] = values
        assert values.is_only_on_host
        np.testing.assert_array_equal(x.asnumpy()[:1000], host[:1000] ** 2)


def test_numpy_selects_until_the_kernel_is_there() -> None:
    x = dp.asarray(np.random.default_rng(0).random(200_003, dtype=np.float32))
    mask = x > 0.5
    expected = x.asnumpy()[mask.asnumpy()]
    # After some selections without the kernel, the lost time reaches the cost of compiling it.
    costly = {"addition": 1e-9, "compile": 1.0, "launch": 1e-9}
    selection._Later._all.clear()
    with dp.config.override(cost_model=costly, background_compile=True):
        assert kernels_of(lambda: x[mask]) == []
        for _ in range(60):
            np.testing.assert_array_equal(x[mask].asnumpy(), expected)
        wait_for_compiler()
        found = []
        assert kernels_of(lambda: found.append(x[mask]))
    np.testing.assert_array_equal(found[0].asnumpy(), expected)
