"""Histograms and counts compared with NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp
from dparray.algorithms.histograms import count_in_bins, count_integers
from dparray.algorithms.tiles import bin_between_edges
from dparray.kernels.histogram import (
    make_add_rows_kernel,
    make_bincount_kernel,
    make_histogram_kernel,
)


def same(result, expected):
    for ours, theirs in zip(result, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(dp.asnumpy(ours), theirs)


@pytest.mark.parametrize("bins", [1, 10, 1000])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1"])
@pytest.mark.parametrize("size", [1, 10, 5000, 50_001])
def test_histogram_equals_numpy(size, dtype, bins):
    x = (np.random.default_rng(size).standard_normal(size) * 30 + 100).astype(dtype)
    same(count_in_bins(dp.asarray(x), bins), np.histogram(x, bins))
    same(count_in_bins(dp.asarray(x), bins, (90, 120)), np.histogram(x, bins, (90, 120)))


def test_elements_on_the_edges_fall_where_numpy_puts_them():
    edges = np.linspace(0.1, 0.7, 13)
    x = np.concatenate([np.nextafter(edges, 0), edges, np.nextafter(edges, 1)])
    same(count_in_bins(dp.asarray(x), 12, (0.1, 0.7)), np.histogram(x, 12, (0.1, 0.7)))


@pytest.mark.parametrize("low", [0, 1e3, -1e6])
def test_edges_that_rounding_has_moved(low):
    x = (low + np.random.default_rng(0).integers(0, 100, 50_000) / 16).astype("f4")
    same(count_in_bins(dp.asarray(x), 64, (low, low + 6)), np.histogram(x, 64, (low, low + 6)))


def test_nan_and_elements_outside_are_not_counted():
    x = np.array([0.5, np.nan, -1, 2, np.inf, 1.0])
    counts, _ = count_in_bins(dp.asarray(x), 2, (0, 1))
    assert dp.asnumpy(counts).tolist() == [0, 2]


@pytest.mark.parametrize("size", [1, 100, 30_000])
def test_bincount_equals_numpy(size):
    x = np.random.default_rng(size).integers(0, 300, size)
    for dtype in ("i8", "u2"):
        expected = np.bincount(x, minlength=200)
        same([count_integers(dp.asarray(x.astype(dtype)), 200)], [expected])


def test_counts_are_where_the_input_is(queue):
    x = dp.asarray(np.arange(5000) % 7, sycl_queue=queue, usm_type="shared")
    counts = count_integers(x)
    assert (counts.queue, counts.usm_type) == (queue, "shared")
    assert dp.asnumpy(counts).sum() == 5000


def test_empty_arrays():
    same(count_in_bins(dp.zeros(0, dtype="f4"), 3), np.histogram(np.zeros(0, "f4"), 3))
    assert count_integers(dp.zeros(0, dtype="i4"), 2).shape == (2,)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: count_in_bins(dp.zeros(3), 0), ValueError),
        (lambda: count_in_bins(dp.zeros(3), 2, (1, 0)), ValueError),
        (lambda: count_in_bins(dp.asarray([1.0, np.nan])), ValueError),
        (lambda: count_in_bins(dp.asarray([1e8, 1e8 + 1], dtype="f4"), 1000), ValueError),
        (lambda: count_in_bins(dp.zeros(3), 2.5), dp.ArgumentError),
        (lambda: count_in_bins(dp.zeros(3), [0, 1, 2]), dp.ArgumentError),
        (lambda: count_in_bins(dp.zeros(3), 2, (0, 1, 2)), dp.ArgumentError),
        (lambda: count_in_bins(dp.zeros(3), 2, ("a", "b")), dp.ArgumentError),
        (lambda: count_in_bins(dp.zeros(3), 2, (np.nan, 1)), ValueError),
        (lambda: count_in_bins(dp.zeros((2, 2))), dp.ShapeError),
        (lambda: count_in_bins(dp.zeros(2, dtype="c8")), dp.DTypeError),
        (lambda: count_integers(dp.asarray([1, -1])), ValueError),
        (lambda: count_integers(dp.zeros(2)), dp.DTypeError),
        (lambda: count_integers(dp.asarray([1]), 2.5), dp.ArgumentError),
        (lambda: count_integers(dp.asarray([1]), -1), dp.ArgumentError),
    ],
)
def test_wrong_arguments_are_refused(call, error):
    with pytest.raises(error, match=r"histogram|bincount"):
        call()


@pytest.mark.parametrize(
    "x",
    [
        [0.0, 5e-324],
        np.array([0, 1e-40, 3e-40], "f4"),
        [-1.7e308, 1.7e308],
        np.array([-3e38, 3e38], "f4"),
    ],
)
def test_ranges_that_cannot_be_divided_are_refused(x):
    """If an element's bin is NaN, it must not be counted out of bounds."""
    for bins in (1, 3):
        with pytest.raises(ValueError, match=r"too many bins|too wide or too narrow"):
            count_in_bins(dp.asarray(x), bins, (float(x[0]), float(x[-1])))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u4", "i8", "u8"])
def test_the_limits_of_integers(dtype):
    limits = np.iinfo(dtype)
    x = np.array([limits.min, limits.max, limits.max // 2, limits.max // 3, 1], dtype)
    same(count_in_bins(dp.asarray(x), 7), np.histogram(x, 7))


def test_the_kernels_are_right_in_the_simulator():
    x = np.random.default_rng(0).random(50)
    edges = np.linspace(0, 1, 6)
    rows, out = np.full((4, 5), -1), np.zeros(5, np.int64)
    counting = make_histogram_kernel(bin_between_edges(np.float64))
    dp.simulate(counting, dp.NdRange(4, 1), x, edges, rows, 16, 5.0, 1e-9)
    dp.simulate(make_add_rows_kernel(), 5, rows, out)
    np.testing.assert_array_equal(out, np.histogram(x, 5, (0, 1))[0])
    numbers = np.arange(50) % 5
    dp.simulate(make_bincount_kernel(), dp.NdRange(4, 2), numbers, rows, 16)
    np.testing.assert_array_equal(rows.sum(axis=0), [10] * 5)
