"""Integers beyond the precision of floats mean the same in arrays, kernels and the simulator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import lowered_modules


@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_negative_exponents_in_arrays_invert_one_and_minus_one(executor: str, dtype: str) -> None:
    base = dp.asarray([2, 3, 0, 5, 1, -1, -1, -1, -3], dtype=dtype)
    exponent = dp.asarray([-1, 2, 0, -3, -2, -1, -2, 3, -1], dtype=dtype)
    expected = [0, 9, 1, 0, 1, -1, 1, -1, 0]
    assert (base**exponent).tolist() == expected
    assert ((base + 0) ** (exponent + 0) + 0).tolist() == expected


@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_negative_exponents_in_kernels_invert_one_and_minus_one(dtype: str) -> None:
    @dp.kernel
    def power(item: dp.Item, base: Any, exponent: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i] = base[i] ** exponent[i]

    base = np.array([2, 0, 1, -1, -1, -3], dtype)
    exponent = np.array([-1, -1, -2, -1, -2, 3], dtype)
    out, simulated = dp.zeros(6, dtype=dtype), np.zeros(6, dtype)
    power[6](dp.asarray(base), dp.asarray(exponent), out)
    dp.simulate(power, 6, base, exponent, simulated)
    assert out.tolist() == simulated.tolist() == [0, 0, 1, -1, 1, -27]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_squares_beyond_their_bits_wrap_around_before_they_are_divided(dtype: str) -> None:
    @dp.kernel
    def divide(item: dp.Item, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = (x[i] ** 2) % 7
        out[i, 1] = (x[i] ** 2) // 7

    x = np.array([3, 2**32 - 1, 2**31 + 5], dtype)
    out, simulated = dp.zeros((3, 2), dtype=dtype), np.zeros((3, 2), dtype)
    divide[3](dp.asarray(x), out)
    dp.simulate(divide, 3, x, simulated)
    square = x**2
    expected = np.stack([square % 7, square // 7], axis=1)
    np.testing.assert_array_equal(simulated, expected)
    np.testing.assert_array_equal(out.asnumpy(), expected)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_quotients_of_the_least_integer_and_by_zero_are_numpys(dtype: str) -> None:
    @dp.kernel
    def divide(item: dp.Item, x: Any, y: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = x[i] // y[i]
        out[i, 1] = x[i] % y[i]
        out[i, 2], out[i, 3] = divmod(x[i], y[i])

    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    values = np.array([least, least + 1, -7, -1, 0, 1, 3, most], dtype)
    x, y = (part.ravel() for part in np.meshgrid(values, values))
    out = dp.zeros((x.size, 4), dtype=dtype)
    divide[x.size](dp.asarray(x), dp.asarray(y), out)
    expected = np.stack([x // y, x % y, *np.divmod(x, y)], axis=1)
    np.testing.assert_array_equal(out.asnumpy(), expected)


def on_device_and_simulated(
    kernel: Any, *arrays: np.ndarray, out: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    on_device, simulated = dp.asarray(out), out.copy()
    kernel[len(out)](*map(dp.asarray, arrays), on_device)
    dp.simulate(kernel, len(out), *(array.copy() for array in arrays), simulated)
    return on_device.asnumpy(), simulated


LARGE = np.array([0, 1, 5, 2**63 - 1, 2**63, 2**63 + 9, 2**64 - 1], np.uint64)
FACTOR = 6364136223846793005


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_literal_is_a_uint64_with_a_uint64_operand() -> None:
    @dp.kernel
    def compute(item: dp.Item, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = x[i] // 3
        out[i, 1] = x[i] % 10
        out[i, 2], out[i, 3] = divmod(x[i], 7)
        out[i, 4] = (x[i] + 1) // 2
        out[i, 5] = (x[i] * FACTOR + 1) % 1000
        out[i, 6] = (x[i] ^ 0xFF) // 5
        out[i, 7] = max(x[i], 2)
        out[i, 8] = min(x[i], 2)
        state = x[i]
        for _ in range(3):
            state = state * FACTOR + 1442695040888963407
        out[i, 9] = state % 100
        chosen = 0
        if i > 0:
            chosen = x[i]
        out[i, 10] = chosen // 2

    state = LARGE.copy()
    for _ in range(3):
        state = state * FACTOR + np.uint64(1442695040888963407)
    expected = np.stack(
        [
            *(LARGE // 3, LARGE % 10, LARGE // 7, LARGE % 7, (LARGE + 1) // 2),
            *((LARGE * FACTOR + 1) % 1000, (LARGE ^ 0xFF) // 5),
            *(np.maximum(LARGE, 2), np.minimum(LARGE, 2), state % 100, LARGE // 2),
        ],
        axis=1,
    )
    out = np.zeros_like(expected)
    for result in on_device_and_simulated(compute, LARGE, out=out):
        np.testing.assert_array_equal(result, expected)


def test_a_python_integer_takes_the_type_of_a_uint64() -> None:
    @dp.kernel
    def count(item: dp.Item, x: Any, y: Any, out: Any) -> None:
        n, total, other = 0, 0, 0
        while n < 6:
            n += 1
            if n > 4:
                continue
            total += x[0]
            other += y[0]
        out[0, 0] = (x[0] - n) & 15
        out[0, 1] = (x[0] // n) & 15
        out[0, 2] = total >> 1
        out[0, 3] = (x[0] + np.uint64(other)) ^ 1

    x, y = np.array([2**63 + 9], np.uint64), np.array([-3])
    wanted = [2**63 + 9 - 6 & 15, (2**63 + 9) // 6 & 15, (4 * (2**63 + 9)) % 2**64 >> 1]
    for result in on_device_and_simulated(count, x, y, out=np.zeros((1, 4), np.uint64)):
        assert result[0].tolist() == [*wanted, 2**63 + 9 - 12 ^ 1]


def test_comparisons_and_choices_among_uint64_and_signed_integers_are_exact() -> None:
    @dp.kernel
    def compute(item: dp.Item, x: Any, y: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = x[i] < y[i]
        out[i, 1] = x[i] == y[i]
        out[i, 2] = y[i] >= x[i]
        out[i, 3] = np.uint64(min(y[i], x[i]))

    signed = np.array([-(2**63), -9, -1, 0, 1, 10, 2**63 - 1], np.int64)
    x, y = (part.ravel() for part in np.meshgrid(LARGE, signed))
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    rows = [[a < b, a == b, b >= a, min(a, b) % 2**64] for a, b in pairs]
    expected = np.array(rows, np.uint64)
    for result in on_device_and_simulated(compute, x, y, out=np.zeros_like(expected)):
        np.testing.assert_array_equal(result, expected)


def test_a_uint64_is_compared_exactly_with_a_negative_python_integer() -> None:
    @dp.kernel
    def compare(item: dp.Item, x: Any, k: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = x[i] == k
        out[i, 1] = x[i] > k
        out[i, 2] = k >= x[i]

    x = np.array([2**64 - 1, 2**63, 0], np.uint64)
    out, simulated = dp.zeros((3, 3), dtype="int64"), np.zeros((3, 3), np.int64)
    compare[3](dp.asarray(x), -1, out)
    dp.simulate(compare, 3, x, -1, simulated)
    assert out.tolist() == simulated.tolist() == [[0, 1, 0]] * 3


def test_a_uint64_and_a_signed_integer_make_a_float() -> None:
    @dp.kernel
    def compute(item: dp.Item, x: Any, y: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = x[i] + y[i]
        out[i, 1] = x[i] // y[i]
        out[i, 2] = y[i] * x[i]

    x, y = np.array([3, 2**63 + 4096], np.uint64), np.array([-2, 7], np.int64)
    expected = np.stack([x + y, x // y, y * x], axis=1)
    for result in on_device_and_simulated(compute, x, y, out=np.zeros((2, 3))):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int8", "uint32"])
def test_bits_shifted_out_are_lost(dtype: str) -> None:
    @dp.kernel
    def shift(item: dp.Item, x: Any, places: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = x[i] << int(places[i])
        out[i, 1] = x[i] >> int(places[i])
        out[i, 2] = 1 << places[i]

    places = np.array([0, 1, 7, 63, 64, 65, 1000, -1, -70], np.int64)
    x = np.full(places.shape, -77 if np.dtype(dtype).kind == "i" else 77, dtype)
    bits = np.iinfo(dtype).bits
    is_lost = (places < 0) | (places >= bits)
    count = np.where(is_lost, 0, places).astype(dtype)
    left = np.where(is_lost, 0, x << count)
    right = np.where(is_lost, -(x < 0).astype("int64"), x >> count).astype("int64")
    expected = np.stack([left.astype("int64"), right, np.int64(1) << places], axis=1)
    out = np.zeros(expected.shape, "int64")
    for result in on_device_and_simulated(shift, x, places, out=out):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("amounts", ["int8", "uint8", "int16", "uint32", "int64"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_bits_shifted_out_of_a_loaded_element_are_lost(dtype: str, amounts: str) -> None:
    @dp.kernel
    def shift(item: dp.Item, x: Any, places: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = x[i] << places[i]
        out[i, 1] = x[i] >> places[i]

    is_signed = np.dtype(amounts).kind == "i"
    places = np.array([0, 1, 7, 31, 32, 63, 64, 65, 120, *([-1, -70] * is_signed)], amounts)
    x = np.full(places.shape, -77 if np.dtype(dtype).kind == "i" else 77, dtype)
    expected = np.stack([x << places, x >> places], axis=1)
    out = np.zeros(expected.shape, expected.dtype)
    for result in on_device_and_simulated(shift, x, places, out=out):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.filterwarnings("ignore::dparray.KernelTypeWarning")
@pytest.mark.parametrize("real", ["float16", "float32", "float64"])
def test_negative_floats_wrap_where_they_become_unsigned(real: str, dtype: str) -> None:
    to = np.dtype(dtype).type

    @dp.kernel
    def convert(item: dp.Item, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = x[i]
        out[i, 1] = to(x[i])
        out[i, 2] = dp.vec_load(x, i, 2).astype(to)[0]

    x = np.array([-128, -1.5, -0.5, -0.0, 0.5, 7.75, -300, -60000, 250, 0], real)
    out = np.zeros((len(x) - 1, 3), dtype)
    for result in on_device_and_simulated(convert, x, out=out):
        np.testing.assert_array_equal(result, np.stack([x[:-1].astype(dtype)] * 3, axis=1))


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_rounding_an_integer_goes_through_no_float(dtype: str) -> None:
    @dp.kernel
    def rounded(item: dp.Item, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = round(x[i])
        out[i, 1] = round(x[i], 2)
        out[i, 2] = round(x[i], -1)
        out[i, 3] = round(x[i], -3)
        out[i, 4] = math.floor(x[i])
        out[i, 5] = math.ceil(x[i])
        out[i, 6] = math.trunc(x[i])

    values = [0, 5, 15, 25, 26, 499, 500, 1500, 2**62 + 7, 2**53 + 1]
    values += [2**63 + 9] if dtype == "uint64" else [-5, -15, -26, -1500, -(2**62) - 7]
    x = np.array(values, dtype)
    expected = np.array([[v, v, round(v, -1), round(v, -3), v, v, v] for v in values], dtype)
    out = dp.zeros(expected.shape, dtype=dtype)
    rounded[len(values)](dp.asarray(x), out)
    np.testing.assert_array_equal(out.asnumpy(), expected)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sums_and_products_wrap_around() -> None:
    @dp.kernel
    def overflow(item: dp.Item, x: Any, y: Any) -> None:
        i = item.get_id(0)
        y[i, 0] = x[i] + 1 > x[i]
        y[i, 1] = x[i] - (-1) < x[i]
        y[i, 2] = x[i] * 2 // 2
        total = x[i]
        total += 1
        y[i, 3] = total // 2 + 0 * y[i, total - x[i]]

    x = np.array([2**63 - 1, -(2**63), 2**62, 3])
    out, simulated = dp.zeros((4, 4), dtype="int64"), np.zeros((4, 4), "int64")
    overflow[4](dp.asarray(x), out)
    dp.simulate(overflow, 4, x, simulated)
    one = x + 1
    expected = np.stack([one > x, one < x, x * 2 // 2, one // 2], axis=1)
    np.testing.assert_array_equal(simulated, expected)
    np.testing.assert_array_equal(out.asnumpy(), expected)


def test_pure_indices_may_be_assumed_not_to_overflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lowered = lowered_modules(monkeypatch)

    @dp.kernel
    def neighbor(item: dp.Item, x: Any, y: Any) -> None:
        y[item.get_id(0)] = x[3 * x[0] + 1]

    @dp.kernel
    def compared(item: dp.Item, x: Any, y: Any) -> None:
        i = 3 * x[0] + 1
        y[0] = x[i] if i > 5 else 0

    @dp.kernel
    def stored(item: dp.Item, x: Any, y: Any) -> None:
        i = 3 * x[0] + 1
        y[0] = x[i] + i

    @dp.kernel
    def compared_alone(item: dp.Item, x: Any, y: Any) -> None:
        y[0] = 3 * x[0] + 1 > x[0]

    for kernel, is_told in (
        (neighbor, True),
        (compared, True),
        (stored, False),
        (compared_alone, False),
    ):
        kernel[2](dp.arange(8), dp.zeros(2, dtype="int64"))
        # LLVM computes an offset from the index, so the check of the text does not apply.
        assert (" nsw i64 3" in lowered[-1]) == is_told


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("real", ["float16", "float32"])
def test_small_integers_with_small_floats_give_small_floats(real: str, dtype: str) -> None:
    @dp.kernel
    def compute(item: dp.Item, x: Any, y: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = x[i] * y[i]
        out[i, 1] = y[i] - x[i]
        out[i, 2] = max(x[i], y[i])

    x, y = np.array([3, 7, 100], dtype), np.array([0.1, 0.7, 200.3], real)
    wide = np.result_type(dtype, real, np.float32)
    a, b = x.astype(wide), y.astype(wide)
    expected = np.stack([a * b, b - a, np.maximum(a, b)], axis=1)
    for result in on_device_and_simulated(compute, x, y, out=np.zeros((3, 3))):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.filterwarnings("ignore::dparray.exceptions.KernelTypeWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("real", ["float16", "float32", "float64"])
def test_floats_that_do_not_fit_wrap_in_integers_of_eight_and_sixteen_bits(
    real: str, dtype: str
) -> None:
    """Processors without AVX-512 took the nearest integer: 300.0 became 127."""

    @dp.kernel
    def assigned(item: dp.Item, x: Any, out: Any) -> None:
        out[item.get_id(0)] = x[item.get_id(0)]

    @dp.kernel
    def loaded(item: dp.Item, x: Any, out: Any) -> None:
        i = 4 * item.get_id(0)
        dp.vec_store(out, i, dp.vec_load(x, i, 4))

    @dp.kernel
    def called(item: dp.Item, x: Any, out: Any) -> None:
        out[item.get_id(0)] = np.int16(x[item.get_id(0)])

    x = np.resize([-2.5, 200.5, 300.0, -300.0, 4e4, -4e4, 6e4], 64).astype(real)
    expected = x.astype("int32").astype(dtype)
    for kernel, count in ((assigned, 64), (loaded, 16), (called, 64)):
        out, simulated = dp.zeros(64, dtype=dtype), np.zeros(64, dtype)
        kernel[count](dp.asarray(x), out)
        dp.simulate(kernel, count, x, simulated)
        np.testing.assert_array_equal(out.asnumpy(), expected)
        np.testing.assert_array_equal(simulated, expected)
