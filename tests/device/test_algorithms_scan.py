"""Inclusive and exclusive scans against NumPy's accumulate."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp
from dparray.algorithms import exclusive_scan, inclusive_scan
from dparray.kernels.combine import OPERATIONS
from dparray.kernels.scan import make_chunk_scan_kernel
from dparray.simulate import simulate

UFUNCS = {"add": np.add, "multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum}
SIZES = [1, 2, 3, 5, 16, 2048, 2049, 30_001]


def values(size, dtype):
    return np.random.default_rng(size).integers(0, 4, size).astype(dtype)


@pytest.mark.parametrize("op", UFUNCS)
@pytest.mark.parametrize("dtype", ["i1", "u4", "i8", "f4", "f8"])
@pytest.mark.parametrize("size", SIZES)
def test_inclusive_scan_equals_numpy(size, dtype, op):
    x = values(size, dtype)
    with np.errstate(all="ignore"):
        expected = UFUNCS[op].accumulate(x)
    out = inclusive_scan(dp.asarray(x), op)
    assert out.dtype == (expected.dtype if op in ("minimum", "maximum") else x.cumsum().dtype)
    np.testing.assert_array_equal(dp.asnumpy(out), UFUNCS[op].accumulate(x, dtype=out.dtype))


@pytest.mark.parametrize("size", SIZES)
def test_exclusive_scan_starts_from_the_initial_value(size):
    x = values(size, "i4")
    expected = np.concatenate([[7], 7 + x.cumsum()[:-1]])
    np.testing.assert_array_equal(dp.asnumpy(exclusive_scan(dp.asarray(x), initial=7)), expected)
    peak = dp.asnumpy(exclusive_scan(dp.asarray(x), "maximum"))
    assert peak[0] == np.iinfo(np.int32).min
    np.testing.assert_array_equal(peak[1:], np.maximum.accumulate(x)[:-1])


def test_a_scan_runs_where_its_input_is(queue):
    x = values(5000, "f4")
    out = inclusive_scan(dp.asarray(x, sycl_queue=queue, usm_type="shared"))
    assert (out.sycl_queue, out.usm_type) == (queue, "shared")
    np.testing.assert_array_equal(dp.asnumpy(out), x.cumsum())


@pytest.mark.parametrize("op", ["minimum", "maximum"])
@pytest.mark.parametrize("place", [0, 1, 2, 3, 4998, 4999])
def test_nan_and_infinities(op, place):
    x = np.random.default_rng(0).random(5000).astype("f4")
    x[place], x[place // 2], x[place // 3] = np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(
        dp.asnumpy(inclusive_scan(dp.asarray(x), op)), UFUNCS[op].accumulate(x)
    )


def test_booleans_strided_views_and_empty_arrays():
    x = values(4001, "f8")
    np.testing.assert_array_equal(dp.asnumpy(inclusive_scan(dp.asarray(x)[::-3])), x[::-3].cumsum())
    np.testing.assert_array_equal(dp.asnumpy(inclusive_scan(dp.asarray(x > 1))), (x > 1).cumsum())
    assert inclusive_scan(dp.asarray(x[:0])).shape == (0,)


def test_sums_of_a_million_floats_are_accurate():
    x = np.random.default_rng(1).random(1_000_000).astype("f4")
    out = dp.asnumpy(inclusive_scan(dp.asarray(x)))
    np.testing.assert_allclose(out, x.cumsum(dtype="f8"), rtol=2e-5)
    wide = inclusive_scan(dp.asarray(x), dtype="f8")
    assert wide.dtype == np.float64
    np.testing.assert_allclose(dp.asnumpy(wide), x.cumsum(dtype="f8"), rtol=1e-12)


@pytest.mark.parametrize(
    ("x", "arguments", "error"),
    [
        (np.zeros((2, 2)), {}, dp.ShapeError),
        (np.zeros(2, "c8"), {}, dp.DTypeError),
        (np.zeros(2), {"dtype": "c16"}, dp.DTypeError),
        (np.zeros(2), {"op": "subtract"}, ValueError),
    ],
)
def test_wrong_arguments_are_refused(x, arguments, error):
    with pytest.raises(error, match="inclusive_scan"):
        inclusive_scan(dp.asarray(x), **arguments)


def test_numpy_arrays_are_refused():
    with pytest.raises(dp.HostConversionError, match=r"dp\.asarray\(x\)"):
        inclusive_scan(np.zeros(3))


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("op", ["add", "minimum"])
def test_the_kernels_are_right_in_the_simulator(op, inclusive):
    x = values(61, "f4") - np.float32(1)
    x[40] = np.nan
    out = np.zeros(61, "f4")
    total = np.array([UFUNCS[op].reduce(x[at : at + 16]) for at in range(0, 61, 16)])
    start = np.float32(3)
    scan = make_chunk_scan_kernel(OPERATIONS[op], np.float32, inclusive)
    simulate(scan, dp.NdRange(4, 1), x, total, out, 16, start)
    expected = UFUNCS[op].accumulate(np.concatenate([[start], x]))
    np.testing.assert_array_equal(out, expected[1:] if inclusive else expected[:-1])
