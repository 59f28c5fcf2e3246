"""Stable sorting by key compared with NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp
from dparray.algorithms import sort_by_key, stable_argsort
from dparray.kernels.radix_sort import (
    make_digit_count_kernel,
    make_digit_of,
    make_digit_place_kernel,
    make_move_kernel,
)

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]


def keys_of(size, dtype):
    generator = np.random.default_rng(size)
    if dtype == "?":
        return generator.random(size) < 0.5
    if dtype[0] == "f":
        keys = (generator.standard_normal(size) * 10).astype(dtype)
        special = [np.nan, np.inf, -np.inf, 0.0, -0.0, -np.nan]
        keys[generator.integers(0, size, size // 5)] = generator.choice(special, size // 5)
        return keys
    limits = np.iinfo(dtype)
    keys = generator.integers(limits.min, limits.max, size, dtype=dtype, endpoint=True)
    # equal keys, which make stability visible
    keys[: size // 2] //= np.asarray(limits.max // 8, dtype)
    return keys


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 100, 4097, 20_000])
@pytest.mark.sample(4)
def test_sort_by_key_equals_numpys_stable_sort(size, dtype):
    keys, values = keys_of(size, dtype), np.arange(size) * 1.5
    order = np.argsort(keys, kind="stable")
    sorted_keys, sorted_values = sort_by_key(dp.asarray(keys), dp.asarray(values))
    assert sorted_keys.dtype == keys.dtype
    np.testing.assert_array_equal(dp.asnumpy(sorted_values), values[order])
    np.testing.assert_array_equal(dp.asnumpy(sorted_keys), keys[order])
    np.testing.assert_array_equal(dp.asnumpy(stable_argsort(dp.asarray(keys))), order)


@pytest.mark.parametrize("dtype", ["u1", "i4", "f8"])
def test_descending_order_is_stable_and_has_nan_last(dtype):
    keys = keys_of(10_000, dtype)
    number = keys.astype("f8") if dtype == "f8" else keys.astype("i8")
    order = np.argsort(-number, kind="stable")  # NaN stays last
    result = dp.asnumpy(stable_argsort(dp.asarray(keys), descending=True))
    np.testing.assert_array_equal(result, order)


def test_inputs_are_left_alone_and_may_be_views():
    keys = keys_of(9000, "i4")
    array = dp.asarray(keys)
    out, none = sort_by_key(array[::-3])
    assert none is None
    np.testing.assert_array_equal(dp.asnumpy(out), np.sort(keys[::-3]))
    np.testing.assert_array_equal(dp.asnumpy(array), keys)
    assert sort_by_key(array[:0])[0].shape == (0,)


def test_the_result_is_where_the_inputs_are(queue):
    keys = keys_of(5000, "u2")
    out, values = sort_by_key(dp.asarray(keys, sycl_queue=queue), dp.arange(5000, sycl_queue=queue))
    assert out.queue == values.queue == queue
    np.testing.assert_array_equal(dp.asnumpy(out), np.sort(keys))


def test_wrong_arguments_are_refused():
    x = dp.arange(4)
    with pytest.raises(dp.ShapeError, match="values have shape"):
        sort_by_key(x, x[:2])
    with pytest.raises(dp.DTypeError, match="keys must have"):
        sort_by_key(dp.zeros(3, dtype="c8"))
    with pytest.raises(dp.ShapeError, match="1 dimension"):
        stable_argsort(dp.zeros((2, 2)))


@pytest.mark.parametrize("dtype", ["u1", "i2", "f2"])
def test_the_kernels_are_right_in_the_simulator(dtype):
    keys = keys_of(60, dtype)
    bits = 8 * keys.itemsize
    digit_of = make_digit_of(np.dtype(dtype).kind, bits, descending=False)
    pattern, values = keys.view(f"u{keys.itemsize}").copy(), np.arange(60)
    for shift in range(0, bits, 8):
        counts, out, moved = np.full((4, 256), -1), np.zeros_like(pattern), np.zeros_like(values)
        items, step = dp.NdRange(4, 1), np.uint64(shift)
        dp.simulate(make_digit_count_kernel(digit_of), items, pattern, counts, 16, step)
        dp.simulate(make_digit_place_kernel(), 1, counts)
        move = make_move_kernel(digit_of, has_values=True)
        dp.simulate(move, items, pattern, values, counts, out, moved, 16, step)
        pattern, values = out, moved
    np.testing.assert_array_equal(values, np.argsort(keys, kind="stable"))
