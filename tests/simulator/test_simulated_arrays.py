"""Kernels give the same results in the simulator and on the device."""

from __future__ import annotations

import enum
import math
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


def integer_arithmetic(item, a, b, n, out):
    i = item.get_id(0)
    x, y = a[i], b[i]
    out[0, i] = x + y
    out[1, i] = x - y
    out[2, i] = x * y
    out[3, i] = x // y
    out[4, i] = x % y
    out[5, i] = int(x) & int(y)
    out[6, i] = int(x) | (int(y) ^ 5)
    out[7, i] = x << 3
    out[8, i] = x >> 2
    out[9, i] = ~x
    out[10, i] = -x
    out[11, i] = x + n
    out[12, i] = x * 7 - i
    out[13, i] = (x < y) + 0
    out[14, i] = np.int32(x * y)
    out[15, i] = np.uint8(x + y)
    out[16, i] = min(x, y)
    out[17, i] = max(x, n)
    out[18, i] = int(x / (y + 7.5))
    out[19, i] = abs(x)


@pytest.mark.parametrize("second", ["i1", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("first", ["i1", "u1", "i4", "u4", "i8", "u8"])
def test_integers(first, second):
    generator = np.random.default_rng(0)
    a, b = (
        generator.integers(
            max(np.iinfo(dtype).min, -(2**40)), min(np.iinfo(dtype).max, 2**40), 50, dtype=dtype
        )
        for dtype in (first, second)
    )
    b[b == 0] = 3
    out = np.zeros((20, 50), np.int64)
    *_, (device, simulated) = on_both(integer_arithmetic, dp.Range(50), a, b, 11, out)
    np.testing.assert_array_equal(simulated, device)


def real_arithmetic(item, a, b, k, out):
    i = item.get_id(0)
    x, y = a[i], b[i]
    out[0, i] = x + y
    out[1, i] = x * y - 1
    out[2, i] = x / y
    out[3, i] = x // y
    out[4, i] = x % y
    out[5, i] = x * 2.5
    out[6, i] = x * 3
    out[7, i] = x**2
    out[8, i] = math.sqrt(abs(x))
    out[9, i] = math.floor(x) - math.ceil(x * 3)
    out[10, i] = x * k
    out[11, i] = np.float32(x) / np.float32(3)
    out[12, i] = min(x, y)
    out[13, i] = -x if x < y else x
    out[14, i] = i / 7
    out[15, i] = x / (y - y)
    out[16, i] = float(x) + int(y)


@pytest.mark.parametrize("second", ["f4", "f8", "i4", "u1", "i8"])
@pytest.mark.parametrize("first", ["f4", "f8"])
def test_reals(first, second):
    generator = np.random.default_rng(1)
    a, b = (((generator.random(50) + 0.1) * 50).astype(dtype) + 1 for dtype in (first, second))
    out = np.zeros((17, 50))
    *_, (device, simulated) = on_both(
        real_arithmetic, dp.Range(50), a.astype(first), b.astype(second), np.float32(0.1), out
    )
    np.testing.assert_allclose(simulated, device, rtol=1e-15 if first == "f8" else 1e-7)


def functions(item, x, out):
    i = item.get_id(0)
    out[0, i] = math.exp(x[i])
    out[1, i] = math.log(x[i])
    out[2, i] = math.sin(x[i]) + math.cos(x[i])
    out[3, i] = math.pow(x[i], x[i])
    out[4, i] = math.atan2(x[i], x[0])
    out[5, i] = math.erf(x[i])
    out[6, i] = math.tanh(x[i])
    out[7, i] = math.lgamma(x[i])


@pytest.mark.parametrize(("dtype", "rtol"), [("f4", 2e-6), ("f8", 1e-14)])
def test_math(dtype, rtol):
    x = np.linspace(0.1, 4, 30).astype(dtype)
    (_, (device, simulated)) = on_both(functions, dp.Range(30), x, np.zeros((8, 30), dtype))
    np.testing.assert_allclose(simulated, device, rtol=rtol, atol=rtol)


def complexes(item, z, factor, out):
    i = item.get_id(0)
    out[i] = z[i] * factor + z[i].conjugate() - z[i].real


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_numbers(dtype):
    z = (np.arange(5) + 1j * np.arange(5)[::-1]).astype(dtype)
    (_, (device, simulated)) = on_both(complexes, dp.Range(5), z, 2 - 1j, np.zeros(5, "c16"))
    np.testing.assert_allclose(simulated, device, rtol=1e-7)


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


def test_uint64_with_signed_integers():
    """The signed type wins in arithmetic; quotients, comparisons, min and max are exact."""

    @dp.kernel
    def compute(item, x, y, integers, reals):
        i = item.get_id(0)
        integers[i, 0] = x[i] // y[i]
        integers[i, 1] = x[i] % y[i]
        integers[i, 2] = y[i] // x[i]
        integers[i, 3] = x[i] ** 2
        integers[i, 4] = x[i] < y[i]
        integers[i, 5] = x[i] == y[i]
        reals[i, 0] = max(x[i], y[i])
        reals[i, 1] = x[i] ** 2
        reals[i, 2] = min(x[i], 7)

    x = np.array([2**64 - 1, 2**63 - 1, 2**62 + 1, 3], np.uint64)
    y = np.array([3, 2**63 - 2, 2**62, -2], np.int64)
    results = np.zeros((4, 6), np.int64), np.zeros((4, 3))
    on_device = [dp.asarray(array) for array in results]
    compute[4](dp.asarray(x), dp.asarray(y), *on_device)
    dp.simulate(compute, 4, x, y, *results)
    for device, simulated in zip(on_device, results, strict=True):
        np.testing.assert_array_equal(device.asnumpy(), simulated)


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
    integers[i, 1] = (n[i] + 1) ** n[i] + (-n[i]) ** abs(n[i]) + (i - 2) ** max(i - 1, 0)
    integers[i, 2] = Mode.FAST.value * n[i]  # truncated, like any float stored as an integer


def test_constants_and_powers_have_the_types_of_compiled_code():
    """Items of tuples, values of enumerations and defaults are numbers of the kernel, too."""
    x, n = np.array([0.1, 0.7, 3.3], np.float32), np.array([-2, 1, -1])
    results = (np.zeros((3, 6)), np.zeros((3, 3), np.int64))
    for device, host in on_both(constants, 3, x, n, *results):
        np.testing.assert_allclose(device, host, rtol=1e-7)
