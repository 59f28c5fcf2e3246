"""Inclusive and exclusive scans compared with NumPy's accumulate."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import dpctl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dparray as dp
from dparray.algorithms import exclusive_scan, inclusive_scan
from dparray.kernels.combine import OPERATIONS
from dparray.kernels.scan import make_chain, make_chained_scan_kernel
from tests.support import examples

UFUNCS = {"add": np.add, "multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum}
SIZES = [1, 2, 3, 5, 16, 2048, 2049, 300_001]


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


@pytest.mark.parametrize("op", ["add", "maximum"])
def test_devices_without_independent_work_groups_scan_by_tiles(pretend, op):
    pretend(shares_memory=False)
    x = values(30_001, "f4")
    out = dp.asnumpy(inclusive_scan(dp.asarray(x), op))
    np.testing.assert_array_equal(out, UFUNCS[op].accumulate(x))
    x[20_000] = np.nan
    out = dp.asnumpy(exclusive_scan(dp.asarray(x), op, initial=1))
    np.testing.assert_array_equal(out, UFUNCS[op].accumulate([np.float32(1), *x[:-1]]))


def test_a_scan_runs_where_its_input_is(queue):
    x = values(5000, "f4")
    out = inclusive_scan(dp.asarray(x, sycl_queue=queue, usm_type="shared"))
    assert (out.queue, out.usm_type) == (queue, "shared")
    np.testing.assert_array_equal(dp.asnumpy(out), x.cumsum())


@pytest.mark.parametrize("op", UFUNCS)
@pytest.mark.parametrize("place", [0, 1, 2, 3, 17, 65_535, 65_536, 199_998, 199_999])
def test_nan_and_infinities(op, place):
    x = 1 + np.random.default_rng(0).random(200_000).astype("f4") / np.float32(2**20)
    x[place], x[place // 2], x[place // 3] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        expected = UFUNCS[op].accumulate(x)
    np.testing.assert_allclose(dp.asnumpy(inclusive_scan(dp.asarray(x), op)), expected, rtol=1e-2)


@pytest.mark.slow
@given(
    size=st.integers(1, 150_000),
    step=st.sampled_from([1, 1, 2, -1, -3]),
    dtype=st.sampled_from(["?", "i1", "u2", "i4", "u8", "f4", "f8"]),
    working=st.sampled_from([None, "i4", "i8", "u4", "f8"]),
    op=st.sampled_from(sorted(UFUNCS)),
    inclusive=st.booleans(),
)
@settings(max_examples=examples(20), deadline=None)
def test_scans_of_all_dtypes_and_layouts_equal_numpy(size, step, dtype, working, op, inclusive):
    x = values(size, dtype)[::step]
    if working in ("i4", "u4") and dtype == "u8":
        working = None
    array = dp.asarray(values(size, dtype))[::step]
    if inclusive:
        out = inclusive_scan(array, op, dtype=working)
    else:
        out = exclusive_scan(array, op, initial=2, dtype=working)
        x = np.concatenate([np.asarray([2], out.dtype), x.astype(out.dtype)])[:-1]
    with np.errstate(all="ignore"):
        expected = UFUNCS[op].accumulate(x, dtype=out.dtype)
    np.testing.assert_array_equal(dp.asnumpy(out), expected)


def test_scans_of_several_threads_and_queues_do_not_wait_for_each_other():
    x = values(400_000, "i4")
    arrays = [dp.asarray(x, sycl_queue=dpctl.SyclQueue()) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(3):
            for out in threads.map(inclusive_scan, arrays):
                np.testing.assert_array_equal(dp.asnumpy(out), x.cumsum())


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


def launched(kernel, index_space, *arguments):
    """Launch the kernel on copies of the arrays on the device; return the arrays afterwards."""
    arrays = [dp.asarray(each) if isinstance(each, np.ndarray) else each for each in arguments]
    dp.call_kernel(dp.kernel(kernel), index_space, *arrays)
    for array, argument in zip(arrays, arguments, strict=True):
        if isinstance(argument, np.ndarray):
            argument[...] = dp.asnumpy(array)


@pytest.mark.parametrize("run", [dp.simulate, launched])
@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("op", ["add", "minimum"])
def test_the_kernels_are_right_in_the_simulator_and_on_the_device(op, inclusive, run):
    x = values(157, "f4") - np.float32(1)
    x[140] = np.nan
    start = np.float32(3)
    expected = UFUNCS[op].accumulate(np.concatenate([[start], x]))
    expected = expected[1:] if inclusive else expected[:-1]
    as_device = dp.device_func if run is launched else lambda function: function

    out, progress, carry = np.zeros(157, "f4"), np.zeros(5, "i8"), np.zeros(4, "f4")
    chain = as_device(make_chain(as_device(OPERATIONS[op].combine)))
    scan = make_chained_scan_kernel(op, chain, np.float32, inclusive)
    run(scan, dp.NdRange(4, 1), x, progress, carry, out, 157, 48, start)
    np.testing.assert_array_equal(out, expected)
    assert progress.tolist() == [4, 1, 1, 1, 1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scans_of_booleans_as_floats(dtype):
    x = np.arange(40) % 3 == 0
    found = inclusive_scan(dp.asarray(x), dtype=dtype)
    np.testing.assert_array_equal(found.asnumpy(), np.cumsum(x, dtype=dtype))
