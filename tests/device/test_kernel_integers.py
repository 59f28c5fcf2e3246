"""Powers and quotients of integers: one meaning in arrays, in kernels and in the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp


@pytest.mark.parametrize("host_tier", [True, False])
@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_negative_exponents_in_arrays_invert_one_and_minus_one(host_tier: bool, dtype: str) -> None:
    base = dp.asarray([2, 3, 0, 5, 1, -1, -1, -1, -3], dtype=dtype)
    exponent = dp.asarray([-1, 2, 0, -3, -2, -1, -2, 3, -1], dtype=dtype)
    expected = [0, 9, 1, 0, 1, -1, 1, -1, 0]
    with dp.config.override(host_tier=host_tier):
        assert (base**exponent).tolist() == expected
        assert ((base + 0) ** (exponent + 0) + 0).tolist() == expected


@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_negative_exponents_in_kernels_invert_one_and_minus_one(dtype: str) -> None:
    @dp.kernel
    def power(item: dp.Item, base: Any, exponent: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = base[i] ** exponent[i]
        out[i, 1] = base[i] ** -1

    base = np.array([2, 0, 1, -1, -1, -3], dtype)
    exponent = np.array([-1, -1, -2, -1, -2, 3], dtype)
    expected = [[0, 0], [0, 0], [1, 1], [-1, -1], [1, -1], [-27, 0]]
    out, simulated = dp.zeros((6, 2), dtype=dtype), np.zeros((6, 2), dtype)
    power[6](dp.asarray(base), dp.asarray(exponent), out)
    dp.simulate(power, 6, base, exponent, simulated)
    assert out.tolist() == simulated.tolist() == expected


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_squares_beyond_63_bits_wrap_around_before_they_are_divided(dtype: str) -> None:
    @dp.kernel
    def divide(item: dp.Item, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = (x[i] ** 2) % 7
        out[i, 1] = (x[i] ** 2) // 7

    x = np.array([3, 2**32 - 1, 2**31 + 5], dtype)
    out, simulated = dp.zeros((3, 2), dtype="int64"), np.zeros((3, 2), np.int64)
    divide[3](dp.asarray(x), out)
    dp.simulate(divide, 3, x, simulated)
    square = x.astype(np.int64) ** 2
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
