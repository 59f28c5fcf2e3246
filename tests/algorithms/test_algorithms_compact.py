"""Compaction compared with NumPy's Boolean indexing."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp
from dparray.algorithms import compact
from dparray.kernels import compact as kernels
from dparray.kernels.combine import OPERATIONS
from dparray.kernels.scan import make_chain


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 1])
@pytest.mark.parametrize("dtype", ["f4", "i8", "u1", "?", "c16"])
@pytest.mark.parametrize("size", [1, 7, 4097, 40_000])
def test_compact_equals_numpy(size, dtype, share):
    generator = np.random.default_rng(size)
    x, mask = generator.integers(0, 100, size).astype(dtype), generator.random(size) < share
    out = compact(dp.asarray(x), dp.asarray(mask))
    assert out.dtype == x.dtype
    np.testing.assert_array_equal(dp.asnumpy(out), x[mask])


def test_devices_without_independent_work_groups_compact_in_two_launches(pretend):
    pretend(shares_memory=False)
    x = np.arange(40_001)
    out = compact(dp.asarray(x), dp.asarray(x % 7 == 2))
    np.testing.assert_array_equal(dp.asnumpy(out), x[x % 7 == 2])


def test_views_and_empty_arrays():
    x = np.arange(6000.0)
    y = dp.asarray(x)[::-2]
    np.testing.assert_array_equal(dp.asnumpy(compact(y, y > 100)), x[::-2][x[::-2] > 100])
    assert compact(y[:0], y[:0] > 0).shape == (0,)


def test_the_result_is_where_the_inputs_are(queue):
    x = dp.asarray(np.arange(5000), sycl_queue=queue)
    out = compact(x, x % 3 == 0)
    assert out.queue == queue
    np.testing.assert_array_equal(dp.asnumpy(out), np.arange(0, 5000, 3))


def test_wrong_arguments_are_refused():
    x = dp.arange(4)
    with pytest.raises(dp.DTypeError, match="mask must have a boolean dtype"):
        compact(x, x)
    with pytest.raises(dp.ShapeError, match=r"\(3,\) and x has shape \(4,\)"):
        compact(x, x[:3] > 0)
    with pytest.raises(dp.HostConversionError, match="mask"):
        compact(x, np.ones(4, bool))


def test_inputs_on_different_queues_are_refused(queue):
    other = dp.Device(queue).new_queue().queue
    x = dp.arange(4, sycl_queue=queue)
    with pytest.raises(dp.ExecutionPlacementError, match="mask"):
        compact(x, dp.ones(4, dtype=bool, sycl_queue=other))


def test_the_kernels_are_right_in_the_simulator():
    x = np.arange(50)
    mask = x % 3 != 1
    out = np.zeros(mask.sum(), x.dtype)
    claim = kernels.make_claim(make_chain(OPERATIONS["add"].combine))
    for make in (kernels.make_select_kernel, kernels.make_positions_kernel):
        out[...] = 0
        inputs = (x,) if make is kernels.make_select_kernel else ()
        memory = (np.zeros(5, "i8"), np.zeros(4, "i8"))
        dp.simulate(make(claim), dp.NdRange(4, 1), *inputs, mask, *memory, out, 16)
        np.testing.assert_array_equal(out, x[mask])
    memory = (np.zeros(5, "i8"), np.zeros(4, "i8"))
    dp.simulate(kernels.make_expand_kernel(claim), dp.NdRange(4, 1), x, mask, *memory, -out, 16)
    np.testing.assert_array_equal(x, np.where(mask, -np.arange(50), np.arange(50)))
