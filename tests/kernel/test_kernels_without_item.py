"""Programs in numba-dpex's kernel language up to 0.21: no work-item parameter."""

from __future__ import annotations

import math
from typing import Any

import numba_dpex
import numba_dpex as ndpx
import numpy as np
import pytest
from numba_dpex import NdRange, Range, atomic, barrier, float32, get_global_id, local, private

import dparray as dp

TILE = 4


@ndpx.kernel
def add(a, b, c):
    i = ndpx.get_global_id(0)
    c[i] = a[i] + b[i]


@pytest.mark.parametrize(
    "size",
    [
        *(12, Range(12), (12, ndpx.DEFAULT_LOCAL_SIZE), (12, 4), ((12,), (4,))),
        NdRange(Range(12), Range(4)),
    ],
    ids=str,
)
def test_ranges_of_one_dimension(size: Any) -> None:
    a, b, c = dp.arange(12.0), dp.ones(12), dp.zeros(12)
    assert add[size](a, b, c) is None
    assert c.tolist() == list(range(1, 13))


def test_both_languages_launch_it() -> None:
    a, c = dp.arange(12.0), dp.zeros(12)
    ndpx.call_kernel(add, Range(12), a, a, c)
    assert c.tolist() == list(range(0, 24, 2))
    dp.call_kernel(add, dp.Range(12), c, a, c)
    assert c.tolist() == list(range(0, 36, 3))


@ndpx.func
def twice(x):
    return 2 * x


@ndpx.func(debug=True)
def place():
    return get_global_id(0) * 100 + get_global_id(1)


@numba_dpex.kernel
def ids(out):
    i = get_global_id(0)
    j = get_global_id(1)
    out[i, j, 0] = place()
    out[i, j, 1] = twice(ndpx.get_local_id(0)) + ndpx.get_local_id(1)
    out[i, j, 2] = 10 * ndpx.get_group_id(0) + ndpx.get_group_id(1)
    out[i, j, 3] = 10 * ndpx.get_num_groups(0) + ndpx.get_num_groups(1)
    out[i, j, 4] = 10 * ndpx.get_global_size(0) + ndpx.get_global_size(1)
    for d in range(2):
        out[i, j, 5] = out[i, j, 5] * 10 + ndpx.get_local_size(d)
    out[i, j, 6] = ndpx.get_global_size(2)


@pytest.mark.parametrize("size", [((4, 6), (2, 3)), NdRange(Range(4, 6), Range(2, 3))], ids=str)
def test_ids_of_two_dimensions(size: Any) -> None:
    out = dp.zeros((4, 6, 7), dtype="int64")
    ids[size](out)
    wanted = [
        [
            [
                i * 100 + j,
                2 * (i % 2) + j % 3,
                10 * (i // 2) + j // 3,
                22,
                46,
                23,
                1,
            ]
            for j in range(6)
        ]
        for i in range(4)
    ]
    assert out.tolist() == wanted


@ndpx.kernel
def sum_of_groups(x, partial):
    k = ndpx.get_local_id(0)
    i = ndpx.get_global_id(0)
    n = ndpx.get_local_size(0)
    sums = local.array(64, dtype=float32)
    sums[k] = x[i]
    stride = n // 2
    while stride > 0:
        barrier(ndpx.CLK_LOCAL_MEM_FENCE)
        if k < stride:
            sums[k] += sums[k + stride]
        stride >>= 1
    if k == 0:
        partial[ndpx.get_group_id(0)] = sums[0]


def test_a_reduction_in_local_memory() -> None:
    x = np.arange(256, dtype="float32")
    partial = dp.zeros(4, dtype="float32")
    sum_of_groups[256, 64](dp.asarray(x), partial)
    np.testing.assert_array_equal(partial.asnumpy(), x.reshape(4, 64).sum(1))


@ndpx.kernel
def multiply(a, b, c):
    tile_a = local.array(shape=(TILE, TILE), dtype=float32)
    tile_b = local.array(shape=(TILE, TILE), dtype=np.float32)
    row, column = ndpx.get_global_id(0), ndpx.get_global_id(1)
    i, j = ndpx.get_local_id(0), ndpx.get_local_id(1)
    total = float32(0)
    for step in range(ndpx.get_num_groups(0)):
        tile_a[i, j] = a[row, j + step * TILE]
        tile_b[i, j] = b[i + step * TILE, column]
        barrier(ndpx.CLK_LOCAL_MEM_FENCE)
        for k in range(TILE):
            total += tile_a[i, k] * tile_b[k, j]
        barrier()
    c[row, column] = total


def test_a_product_of_matrices_by_tiles() -> None:
    a, b = np.random.default_rng(1).integers(0, 9, (2, 12, 12)).astype("float32")
    c = dp.zeros((12, 12), dtype="float32")
    multiply[(12, 12), (TILE, TILE)](dp.asarray(a), dp.asarray(b), c)
    np.testing.assert_array_equal(c.asnumpy(), a @ b)


@ndpx.kernel
def histogram(x, counts, total):
    i = get_global_id(0)
    atomic.add(counts, x[i], 1)
    before = ndpx.atomic.sub(total, (0, 0), 2)
    ndpx.mem_fence(ndpx.CLK_GLOBAL_MEM_FENCE)
    counts[4] = before - before


def test_atomic_operations() -> None:
    x = np.array([0, 1, 1, 3, 3, 3] * 10)
    counts, total = dp.zeros(5, dtype="int64"), dp.zeros((1, 1))
    histogram[Range(60)](dp.asarray(x), counts, total)
    assert counts.tolist() == [10, 20, 0, 30, 0]
    assert total.item() == -120


@ndpx.kernel
def distances(x, out):
    i = ndpx.get_global_id(0)
    mine = private.array(3, dtype=np.float64)
    for k in range(3):
        mine[k] = x[i, k]
    for j in range(x.shape[0]):
        total = 0.0
        for k in range(3):
            total += (mine[k] - x[j, k]) ** 2
        out[i, j] = math.sqrt(total)


def test_distances_with_private_memory() -> None:
    x = np.random.default_rng(2).normal(size=(7, 3))
    out = dp.zeros((7, 7))
    distances[x.shape[0], ndpx.DEFAULT_LOCAL_SIZE](dp.asarray(x), out)
    np.testing.assert_allclose(out.asnumpy(), np.linalg.norm(x[:, None] - x, axis=2))


def test_local_memory_and_barriers_need_groups() -> None:
    with pytest.raises(dp.KernelRangeError, match="LocalArray and barrier need work-groups"):
        sum_of_groups[256](dp.zeros(256, dtype="float32"), dp.zeros(4, dtype="float32"))


def test_three_sizes_are_refused() -> None:
    with pytest.raises(dp.KernelArgumentError, match=r"numba_dpex\.Range\(2, 3, 4\)"):
        add[2, 3, 4]


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        (ndpx, "get_work_dim", "item.dimensions"),
        (ndpx, "offload_to_sycl_device", "queue of the arrays"),
        (ndpx.atomic, "max", "fetch_max"),
        (ndpx.atomic, "compare_and_swap", "compare_exchange"),
        (ndpx.local, "static_alloc", "LocalArray"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_removed_names_suggest_the_new_ones(module: Any, name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=instead):
        getattr(module, name)


def test_the_simulator_requires_the_item() -> None:
    with pytest.raises(dp.KernelArgumentError, match=r"def add\(item, \.\.\.\)"):
        dp.simulate(add, 3, np.zeros(3), np.zeros(3), np.zeros(3))
