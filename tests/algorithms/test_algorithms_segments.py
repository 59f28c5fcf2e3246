"""Segmented reductions and sparse products compared with NumPy and SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dparray as dp
from dparray.algorithms import csr_matvec, segmented_reduce
from dparray.kernels.combine import OPERATIONS
from dparray.kernels.segmented import (
    find_segment,
    make_carry_kernel,
    make_csr_matvec_kernel,
    make_segmented_reduce_kernel,
)
from tests.support import examples

UFUNCS = {"add": np.add, "multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum}
LENGTHS = {
    "short": [0, 1, 2, 3, 5] * 2000,
    "long": [9000, 0, 0, 20_000, 1],
    "one": [30_000],
    "empty at both ends": [0, 0, 7, 0],
    "nothing": [0, 0],
}


def segments(name):
    return np.concatenate([[0], np.cumsum(LENGTHS[name])])


def reference(x, offsets, ufunc, dtype, empty):
    pairs = itertools.pairwise(offsets)
    return np.array([ufunc.reduce(x[a:b], dtype=dtype) if b > a else empty for a, b in pairs])


@pytest.mark.parametrize("op", UFUNCS)
@pytest.mark.parametrize("dtype", ["i4", "u1", "f8"])
@pytest.mark.parametrize("name", LENGTHS)
def test_segmented_reduce_equals_numpy(name, dtype, op):
    offsets = segments(name)
    x = np.random.default_rng(0).integers(1, 4, offsets[-1]).astype(dtype)
    out = segmented_reduce(dp.asarray(x), dp.asarray(offsets), op)
    limits = np.iinfo(dtype) if dtype != "f8" else np.finfo(dtype)
    infinite = (np.inf, -np.inf) if dtype == "f8" else (limits.max, limits.min)
    empty = {"add": 0, "multiply": 1, "minimum": infinite[0], "maximum": infinite[1]}[op]
    with np.errstate(over="ignore"):
        expected = reference(x, offsets, UFUNCS[op], out.dtype, empty)
    np.testing.assert_allclose(dp.asnumpy(out), expected, rtol=1e-12)


def test_nan_reaches_its_own_segment_only():
    x = np.arange(10_000, dtype="f4")
    x[5000] = np.nan
    offsets = np.array([0, 4000, 9000, 10_000])
    out = dp.asnumpy(segmented_reduce(dp.asarray(x), dp.asarray(offsets), "minimum"))
    np.testing.assert_array_equal(out, [0, np.nan, 9000])


def test_an_operation_may_be_a_string_of_numpys():
    x, offsets = dp.arange(300), dp.asarray([0, 100, 300])
    for op in (np.str_("maximum"), "maximum"):
        assert segmented_reduce(x, offsets, op).asnumpy().tolist() == [99, 299]


def test_booleans_are_counted():
    x = np.arange(100) % 3 == 0
    out = segmented_reduce(dp.asarray(x), dp.asarray([0, 50, 100]))
    assert dp.asnumpy(out).tolist() == [17, 17]


def test_the_result_is_where_the_inputs_are(queue):
    x = dp.ones(30_000, dtype="f4", sycl_queue=queue)
    offsets = dp.asarray([0, 10_000, 30_000], sycl_queue=queue)
    out = segmented_reduce(x, offsets)
    assert out.queue == queue
    assert dp.asnumpy(out).tolist() == [10_000, 20_000]


@pytest.mark.parametrize("dtype", ["i1", "u1", "u2", "i4", "u4", "u8"])
@pytest.mark.sample(2)
def test_offsets_of_every_dtype_skip_elements_outside(dtype):
    generator = np.random.default_rng(7)
    x, vector = generator.random(50_000), generator.random(100)
    largest = min(np.iinfo(dtype).max, 40_000)
    offsets = np.sort(generator.integers(1, largest, 500)).astype(dtype)
    columns = generator.integers(0, 100, x.size).astype(dtype)
    found = segmented_reduce(dp.asarray(x), dp.asarray(offsets))
    np.testing.assert_allclose(dp.asnumpy(found), reference(x, offsets, np.add, "f8", 0))
    found = csr_matvec(*map(dp.asarray, (x, columns, offsets, vector)))
    products = x * vector[columns]
    np.testing.assert_allclose(dp.asnumpy(found), reference(products, offsets, np.add, "f8", 0))


ANY = st.integers(-(2**62), 2**62) | st.integers(-20, 80)


@pytest.mark.slow
@given(offsets=st.lists(ANY, min_size=1, max_size=9), column=ANY)
@settings(max_examples=examples(40), deadline=None)
def test_wrong_offsets_and_indices_touch_nothing_outside(offsets, column):
    """The simulator would report an access out of bounds."""
    x, columns, vector = np.ones(60), np.arange(60) % 5, np.ones(5)
    columns[::7] = column
    offsets, carry = np.asarray(offsets), np.zeros(4)
    segment, out = np.zeros(4, np.int64), np.zeros(offsets.size - 1)
    reducing = make_segmented_reduce_kernel(OPERATIONS["add"], find_segment, np.float64)
    dp.simulate(reducing, dp.NdRange(4, 1), x, offsets, out, carry, segment, 16)
    multiplying = make_csr_matvec_kernel(find_segment, np.float64)
    arguments = (x, columns, offsets, vector, out, carry, segment, 16)
    dp.simulate(multiplying, dp.NdRange(4, 1), *arguments)
    assert set(segment) <= set(range(-1, offsets.size - 1))


@pytest.mark.parametrize("offsets", [[0, 5, 3], [-1, 4], [0, 10]])
def test_debug_finds_wrong_offsets_and_indices(offsets):
    x, right = dp.arange(9), dp.asarray([0, 9])
    with dp.config.override(debug=True):
        for call in (segmented_reduce, lambda x, o: csr_matvec(x, x, o, x)):
            with pytest.raises(dp.ArgumentError, match="offsets must be nondecreasing"):
                call(x, dp.asarray(offsets))
        for indices in (x - 1, x + 1):
            with pytest.raises(dp.ArgumentError, match="indices must be from 0 to 8"):
                csr_matvec(x, indices, right, x)
        assert csr_matvec(x, x, right, x).item() == 204


def test_a_long_segment_keeps_its_digits():
    x = np.random.default_rng(2).random(2_000_001, dtype="f4")
    found = segmented_reduce(dp.asarray(x), dp.asarray([0, 1, x.size])).asnumpy()
    np.testing.assert_allclose(found, [x[0], x[1:].sum(dtype="f8")], rtol=1e-6)


def matrix(rows, columns, per_row, dtype):
    generator = np.random.default_rng(rows)
    lengths = generator.integers(0, 2 * per_row + 1, rows)
    lengths[rows // 2] = 20 * per_row
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    indices = generator.integers(0, columns, offsets[-1]).astype(np.int32)
    return generator.random(offsets[-1]).astype(dtype), indices, offsets


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("rows", "per_row"), [(1, 3), (50, 1), (3000, 20), (4, 8000)])
def test_csr_matvec_equals_a_sum_over_rows(rows, per_row, dtype):
    data, indices, offsets = matrix(rows, 100, per_row, dtype)
    x = np.random.default_rng(1).random(100).astype(dtype)
    out = csr_matvec(*map(dp.asarray, (data, indices, offsets, x)))
    products = data.astype("f8") * x[indices]
    expected = reference(products, offsets, np.add, "f8", 0)
    assert out.dtype == np.dtype(dtype)
    np.testing.assert_allclose(dp.asnumpy(out), expected, rtol=1e-5 if dtype == "f4" else 1e-12)


def test_csr_matvec_equals_scipy():
    sparse = pytest.importorskip("scipy.sparse")
    generator = np.random.default_rng(3)
    dense = generator.random((300, 200)) * (generator.random((300, 200)) < 0.1)
    a, x = sparse.csr_matrix(dense), generator.random(200)
    out = csr_matvec(*map(dp.asarray, (a.data, a.indices, a.indptr, x)))
    np.testing.assert_allclose(dp.asnumpy(out), a @ x)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x, o: segmented_reduce(x, o, "mean"), ValueError),
        (lambda x, o: segmented_reduce(x, o[:0]), dp.ShapeError),
        (lambda x, o: segmented_reduce(x, x), dp.DTypeError),
        (lambda x, o: segmented_reduce(x.reshape(2, 2), o), dp.ShapeError),
        (lambda x, o: csr_matvec(x, o, o, x), dp.ShapeError),
        (lambda x, o: csr_matvec(x[:3], o, o, x[:0]), dp.ShapeError),
        (lambda x, o: csr_matvec(x, x, o, x), dp.DTypeError),
        (lambda x, o: csr_matvec(x, o, o, x > 1), dp.DTypeError),
    ],
)
def test_wrong_arguments_are_refused(call, error):
    with pytest.raises(error, match=r"segmented_reduce|csr_matvec"):
        call(dp.asarray([1.0, 2.0, 3.0, 4.0]), dp.asarray([0, 1, 4]))


def test_the_kernels_are_right_in_the_simulator():
    offsets = np.array([0, 3, 3, 30, 31, 50])
    x = np.arange(50.0)
    out, carry, segment = np.zeros(5), np.zeros(4), np.zeros(4, np.int64)
    add = OPERATIONS["add"]
    kernel = make_segmented_reduce_kernel(add, find_segment, np.float64)
    dp.simulate(kernel, dp.NdRange(4, 1), x, offsets, out, carry, segment, 16)
    assert segment.tolist() == [-1, 2, 4, 4]
    dp.simulate(make_carry_kernel(add, np.float64), 1, carry, segment, out)
    np.testing.assert_array_equal(out, [3, 0, x[3:30].sum(), 30, x[31:].sum()])
