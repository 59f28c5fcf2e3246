"""Kernels give the same results in the simulator and on the device."""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np
import pytest

import dparray as dp
from dparray import kernel_api


def on_both(function, index_range, *args):
    """Return the arrays among ``args`` after a launch, on the device and in the simulator."""
    device = [dp.asarray(one) if isinstance(one, np.ndarray) else one for one in args]
    dp.call_kernel(dp.kernel(function), index_range, *device)
    host = [one.copy() if isinstance(one, np.ndarray) else one for one in args]
    dp.simulate(function, index_range, *host)
    pairs = zip(device, host, strict=True)
    return [(dp.asnumpy(a), b) for a, b in pairs if isinstance(b, np.ndarray)]


def indices(item, x, out):
    i = item.get_id(0)
    out[i, 0] = x[-1 - i]
    out[i, -1] = x[i - x.shape[0]]
    out[i, 1] = x[i // 2 : i + 1][0] + len(x)


def test_negative_indices_and_views():
    x = np.arange(9.0)[::-2].copy()
    (_, (device, simulated)) = on_both(indices, dp.Range(5), x, np.zeros((5, 3)))
    np.testing.assert_array_equal(simulated, device)


def local_memory(nd_item, x, counts, out, slm, bins):
    i, local = nd_item.get_global_id(0), nd_item.get_local_id(0)
    group = nd_item.get_group()
    private = kernel_api.PrivateArray(3, np.int64, fill_zeros=True)
    slm[local] = x[i]
    if local < bins.shape[0]:
        bins[local] = 0
    kernel_api.group_barrier(group)
    for k in range(nd_item.get_local_range(0)):
        private[slm[k] % 3] += 1
    kernel_api.AtomicRef(
        bins, x[i] % bins.shape[0], address_space=kernel_api.AddressSpace.LOCAL
    ).fetch_add(np.int64(1))
    kernel_api.AtomicRef(counts, x[i] % counts.size).fetch_sub(np.int64(2))
    step = 1
    while step < nd_item.get_local_range(0):
        kernel_api.group_barrier(group)
        before = slm[local - step] if local >= step else 0
        kernel_api.group_barrier(group)
        slm[local] += before
        step *= 2
    kernel_api.group_barrier(group)
    out[i, 0] = slm[local]
    out[i, 1] = private[0] * 100 + private[1] * 10 + private[2]
    out[i, 2] = bins[local % bins.shape[0]]
    out[i, 3] = kernel_api.group_reduce(group, x[i]) + group.get_group_linear_id()
    out[i, 4] = kernel_api.group_inclusive_scan(group, x[i], "max")
    out[i, 5] = kernel_api.group_broadcast(group, slm[local], 3)
    out[i, 6] = nd_item.get_local_linear_id() + 100 * nd_item.get_global_linear_range()


def test_barriers_local_memory_atomics_and_group_algorithms():
    x = np.random.default_rng(4).integers(0, 50, 48)
    accessors = [dp.LocalAccessor(shape, np.int64) for shape in (16, 5)]
    out = np.zeros((48, 7), np.int64)
    results = on_both(local_memory, dp.NdRange(48, 16), x, np.zeros(4, np.int64), out, *accessors)
    for device, simulated in results:
        np.testing.assert_array_equal(simulated, device)


def increment(item, x):
    x[item.get_id(0)] += 1


def test_arrays_of_dparray_are_copied_to_the_host_and_back(queue):
    x = dp.asarray(np.zeros((4, 6)), sycl_queue=queue, usm_type="shared")
    kernel = dp.kernel(increment)
    dp.simulate(kernel, 3, x[1, ::-2])
    dp.call_kernel(kernel, dp.Range(3), x[1, ::-2])
    expected = np.zeros((4, 6))
    expected[1, ::-2] = 2
    np.testing.assert_array_equal(dp.asnumpy(x), expected)


def shift(item, source, target):
    i = item.get_id(0)
    target[i] = source[i]


def test_overlapping_views_of_one_device_array_share_memory():
    x = dp.arange(8)
    with pytest.raises(dp.SimulationError, match=r"source\[1\], which work-item \(0,\) wrote"):
        dp.simulate(shift, 7, x[:-1], x[1:])
    assert x.tolist() == list(range(8))


SCALES = (0.1, 0.7, 3.5)
STEPS = (3, 2**40, -1)


class Rate(NamedTuple):
    slope: float
    shift: int


RATE = Rate(0.1, 7)


class Mode(enum.Enum):
    SLOW = 0.1
    FAST = 2.5


def constants(item, x, n, reals, integers):
    i = item.get_id(0)

    def scaled(value, by=0.1):
        return value * by

    product = x[i]
    for factor in (0.1, 0.2):
        product *= factor
    reals[i, 0] = product
    reals[i, 1] = x[i] * SCALES[i]
    reals[i, 2] = x[i] * RATE.slope + RATE[1]
    reals[i, 3] = x[i] * Mode.SLOW.value + scaled(x[i])
    reals[i, 4] = x[i] + round(x[i])
    reals[i, 5] = x[i] ** (n[i] // n[i] + 1) + pow(x[i], i)
    integers[i, 0] = STEPS[i] * STEPS[i] * (3, 4, 5)[i]
    integers[i, 1] = (n[i] + 1) ** (i - 2) + (-n[i]) ** (-n[i]) + (i - 2) ** (i - 1)
    integers[i, 2] = Mode.FAST.value * n[i]  # truncated, like any float stored as an integer


def test_constants_and_powers_have_the_types_of_compiled_code():
    """Items of tuples, values of enumerations and defaults are numbers of the kernel, too."""
    x, n = np.array([0.1, 0.7, 3.3], np.float32), np.array([-2, 1, -1])
    results = (np.zeros((3, 6)), np.zeros((3, 3), np.int64))
    for device, host in on_both(constants, 3, x, n, *results):
        np.testing.assert_allclose(device, host, rtol=1e-7)
