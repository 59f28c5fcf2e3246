"""Kernels read every layout of an array correctly: strided, transposed, reversed, broadcast."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import dparray as dp


@dp.kernel
def copy_1d(item: dp.Item, x: Any, y: Any) -> None:
    i = item.get_id(0)
    y[i] = x[i]


@dp.kernel
def copy_2d(item: dp.Item, x: Any, y: Any) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    y[i, j] = x[i, j]


@dp.kernel
def copy_3d(item: dp.Item, x: Any, y: Any) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    k = item.get_id(2)
    y[i, j, k] = x[i, j, k]


COPIES = {1: copy_1d, 2: copy_2d, 3: copy_3d}
SLICES = [
    slice(None),
    slice(None, None, 2),
    slice(None, None, -1),
    slice(None, None, -2),
    slice(1, 4),
]


def views(ndim: int) -> list[tuple[Any, ...]]:
    return list(itertools.product(SLICES, repeat=ndim))[:: 1 if ndim < 3 else 7]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_reading_a_view_gives_its_elements(ndim: int, order: str) -> None:
    shape = {1: (9,), 2: (5, 6), 3: (4, 5, 4)}[ndim]
    host = np.asarray(np.arange(np.prod(shape), dtype="int32").reshape(shape), order=order)
    array = dp.asarray(host, order=order)
    for index in views(ndim):
        source, expected = array[index], host[index]
        result = dp.zeros(expected.shape, dtype="int32")
        dp.call_kernel(COPIES[ndim], dp.Range.like(source), source, result)
        np.testing.assert_array_equal(result.asnumpy(), expected, err_msg=str(index))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_writing_to_a_view_changes_its_elements_only(ndim: int, order: str) -> None:
    shape = {1: (9,), 2: (5, 6), 3: (4, 5, 4)}[ndim]
    for index in views(ndim):
        expected = np.full(shape, -1, dtype="int64")
        values = np.arange(expected[index].size).reshape(expected[index].shape)
        expected[index] = values
        array = dp.full(shape, -1, dtype="int64", order=order)
        target = array[index]
        dp.call_kernel(COPIES[ndim], dp.Range.like(target), dp.asarray(values), target)
        np.testing.assert_array_equal(array.asnumpy(), expected, err_msg=str(index))


def test_a_transposed_view_of_a_view() -> None:
    host = np.arange(120.0).reshape(4, 5, 6)
    source = dp.permute_dims(dp.asarray(host)[::-2, 1:, ::-3], (2, 0, 1))
    expected = host[::-2, 1:, ::-3].transpose(2, 0, 1)
    result = dp.zeros(expected.shape)
    dp.call_kernel(copy_3d, dp.Range.like(source), source, result)
    np.testing.assert_array_equal(result.asnumpy(), expected)


def test_a_broadcast_view_reads_one_element_many_times() -> None:
    source = dp.broadcast_to(dp.asarray(np.array([1.0, 2.0, 3.0])), (4, 3))
    result = dp.zeros((4, 3))
    dp.call_kernel(copy_2d, dp.Range.like(source), source, result)
    np.testing.assert_array_equal(result.asnumpy(), np.tile([1.0, 2.0, 3.0], (4, 1)))


@pytest.mark.parametrize("step", [1, 2, -1, -2, -3])
def test_views_of_dpnp_tensor_and_dpnp(step: int) -> None:
    import dpnp
    import dpnp.tensor as dpt

    for make, back in ((dpt.arange, dpt.asnumpy), (dpnp.arange, dpnp.asnumpy)):
        source = make(17, dtype="int32")[::step]
        result = make(source.shape[0], dtype="int32") * 0
        dp.call_kernel(copy_1d, dp.Range(source.shape[0]), source, result)
        np.testing.assert_array_equal(back(result), np.arange(17, dtype="int32")[::step])


def test_slices_made_inside_a_kernel() -> None:
    @dp.kernel
    def row_sums(item: dp.Item, x: Any, y: Any) -> None:
        i = item.get_id(0)
        row = x[i]
        total = 0.0
        for j in range(row.shape[0] - 1, -1, -1):
            total += row[j]
        tail = x[i, 2::2]
        y[i, 0] = total
        y[i, 1] = tail[0] + tail[tail.shape[0] - 1]

    host = np.arange(30.0).reshape(5, 6)
    for flip in (slice(None), slice(None, None, -2)):
        source = dp.asarray(host)[flip]
        result = dp.zeros((source.shape[0], 2))
        dp.call_kernel(row_sums, dp.Range(source.shape[0]), source, result)
        want = host[flip]
        np.testing.assert_array_equal(result.asnumpy()[:, 0], want.sum(axis=1))
        np.testing.assert_array_equal(result.asnumpy()[:, 1], want[:, 2] + want[:, 4])


def test_slices_of_a_local_accessor() -> None:
    @dp.kernel
    def transpose_tile(item: dp.NdItem, x: Any, y: Any, tile: Any) -> None:
        i = item.get_local_id(0)
        j = item.get_local_id(1)
        row = tile[i]
        row[j] = x[i, j]
        dp.group_barrier(item.get_group())
        column = tile[:, i]
        y[i, j] = column[j] + tile[1:, 0][0] - tile[1, 0]

    host = np.arange(16, dtype="float32").reshape(4, 4)
    result = dp.zeros((4, 4), dtype="float32")
    local = dp.LocalAccessor((4, 4), np.float32)
    dp.call_kernel(transpose_tile, dp.NdRange((4, 4), (4, 4)), dp.asarray(host), result, local)
    np.testing.assert_array_equal(result.asnumpy(), host.T)


def test_a_negative_index_counts_from_the_end() -> None:
    @dp.kernel
    def last(item: dp.Item, x: Any, y: Any) -> None:
        i = item.get_id(0)
        y[i] = x[-1 - i]

    source = dp.arange(6, dtype="int32")
    result = dp.zeros(6, dtype="int32")
    dp.call_kernel(last, dp.Range(6), source, result)
    assert result.tolist() == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    "name",
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ],
)
def test_arrays_of_every_dtype(name: str) -> None:
    host = (np.arange(8) % 3 - 1).astype(name) if name[0] != "u" else np.arange(8).astype(name)
    if host.dtype.kind == "c":
        host = host + 2j * host
    result = dp.zeros(4, dtype=name)
    dp.call_kernel(copy_1d, dp.Range(4), dp.asarray(host)[::-2], result)
    np.testing.assert_array_equal(result.asnumpy(), host[::-2])
