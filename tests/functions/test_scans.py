"""Cumulative functions of arrays large enough for kernels, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp
from dparray.kernels.scan import make_column_scan_kernel, make_line_scan_kernel
from tests.support import counts

SHAPES = [
    (40_000,),
    (2, 150_000),  # lines of several tiles
    (3, 7, 2000),
    (40_000, 1),
    (1, 40_000),
    (7000, 5),  # many short lines, few long columns
    (5, 7003),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["i1", "f4"])
@pytest.mark.parametrize("function", ["cumsum", "cumprod"])
@pytest.mark.sample(2)
def test_every_axis_and_layout_equals_numpy(function, dtype, shape):
    host = counts(shape, dtype)
    x = dp.asarray(host)
    ours, theirs = getattr(dp, function), getattr(np, function)
    for axis in (None, *range(len(shape))):
        expected = theirs(host, axis=axis)
        result = ours(x, axis=axis)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result.asnumpy(), expected)
        expected = theirs(host[..., ::-1], axis=axis)
        np.testing.assert_array_equal(ours(x[..., ::-1], axis=axis).asnumpy(), expected)
    np.testing.assert_array_equal(ours(x.T, axis=0).asnumpy(), theirs(host.T, axis=0))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_are_nan_from_the_first_nan_on(name, shape):
    host = counts(shape, "f4")
    host.reshape(-1)[host.size // 2 :: 9000] = np.nan
    for axis in range(len(shape)):
        expected = getattr(np, name).accumulate(host, axis)
        result = getattr(dp, name).accumulate(dp.asarray(host), axis)
        np.testing.assert_array_equal(result.asnumpy(), expected)


def test_the_empty_sum_can_come_first():
    host = counts((40, 1000), "f4")
    for axis in (0, 1):
        result = dp.cumulative_sum(dp.asarray(host), axis=axis, include_initial=True).asnumpy()
        first = np.zeros_like(host[:1] if axis == 0 else host[:, :1])
        expected = np.concatenate([first, host.cumsum(axis)], axis)
        np.testing.assert_array_equal(result, expected)
    flat = dp.cumulative_sum(dp.asarray(host.reshape(-1)), include_initial=True).asnumpy()
    np.testing.assert_array_equal(flat, [0, *host.reshape(-1).cumsum()])


def test_a_scan_takes_dtype_and_out_and_follows_its_input(queue):
    host = counts((3, 40_000), "i4")
    x = dp.asarray(host, sycl_queue=queue, usm_type="shared")
    out = dp.empty((3, 40_000), dtype="f8", sycl_queue=queue)
    assert dp.cumsum(x + 1, axis=1, dtype="f8", out=out) is out
    np.testing.assert_array_equal(out.asnumpy(), (host + 1).cumsum(axis=1))
    result = x.cumsum(axis=1)
    assert (result.queue, result.usm_type) == (queue, "shared")


@pytest.mark.parametrize("op", ["add", "maximum"])
def test_the_kernels_are_right_in_the_simulator(op):
    ufunc = getattr(np, op)
    x = counts(60, "i2")
    out = np.zeros(60, "i8")
    lines = make_line_scan_kernel(op, np.int64, True)
    dp.simulate(lines, dp.NdRange(2, 1), x, out, 12, 3, np.int64(-9 if op == "maximum" else 0))
    np.testing.assert_array_equal(out.reshape(5, 12), ufunc.accumulate(x.reshape(5, 12), 1))
    columns = make_column_scan_kernel(op, np.int64)
    dp.simulate(columns, dp.NdRange((3, 2), (1, 1)), x, out, 4, 5, 3)
    expected = ufunc.accumulate(x.reshape(3, 4, 5), 1)
    np.testing.assert_array_equal(out.reshape(3, 4, 5), expected)
