"""The kernels that GPUs use for scans, compaction and counting: on the CPU device and simulated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.algorithms import (
    compact,
    exclusive_scan,
    inclusive_scan,
    pairwise_distance,
    sort_by_key,
    stable_argsort,
)
from dparray.algorithms.histograms import count_in_bins, count_integers
from dparray.kernels import tiles
from dparray.kernels.combine import OPERATIONS
from tests.support import leave_out_radix_sort

UFUNCS = {"add": np.add, "multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum}
SIZES = [1, 3, 255, 1024, 1025, 300_001]


@pytest.fixture(autouse=True)
def _as_gpu(monkeypatch: pytest.MonkeyPatch, pretend: Any) -> Iterator[None]:
    pretend(shares_memory=False)
    leave_out_radix_sort(monkeypatch.setattr)
    with dp.config.override(fallback="error"):
        yield


@pytest.mark.parametrize("op", UFUNCS)
@pytest.mark.parametrize("dtype", ["i1", "u4", "i8", "f4", "f8"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.sample(2)
def test_scans_equal_numpy(size: int, dtype: str, op: str) -> None:
    x = np.random.default_rng(size).integers(0, 4, size).astype(dtype)
    out = inclusive_scan(dp.asarray(x), op)
    expected = UFUNCS[op].accumulate(x, dtype=out.dtype)
    np.testing.assert_array_equal(out.asnumpy(), expected)
    start = out.dtype.type(2)
    before = exclusive_scan(dp.asarray(x), op, initial=start).asnumpy()
    expected = UFUNCS[op].accumulate([start, *x[:-1]], dtype=out.dtype)
    np.testing.assert_array_equal(before, expected)


def test_nan_passes_through_a_scan_of_minima() -> None:
    x = np.arange(5000, dtype="f4")[::-1].copy()
    x[3000] = np.nan
    out = inclusive_scan(dp.asarray(x), "minimum").asnumpy()
    np.testing.assert_array_equal(out, np.minimum.accumulate(x))


@pytest.mark.parametrize("dtype", ["i1", "i4", "f8", "c8"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_compact_equals_a_mask_and_reads_one_number(size: int, dtype: str, share: float) -> None:
    generator = np.random.default_rng(size)
    x, mask = generator.integers(0, 99, size).astype(dtype), generator.random(size) < share
    np.testing.assert_array_equal(compact(dp.asarray(x), dp.asarray(mask)).asnumpy(), x[mask])


@pytest.mark.parametrize("bins", [1, 7, 64, 5000, 100_000])
@pytest.mark.parametrize("dtype", ["i2", "f4", "f8"])
def test_histograms_equal_numpy(dtype: str, bins: int) -> None:
    x = (np.random.default_rng(bins).normal(size=70_001) * 100).astype(dtype)
    counts, edges = count_in_bins(dp.asarray(x), bins, (-150.0, 150.0))
    expected, expected_edges = np.histogram(x, bins, (-150.0, 150.0))
    np.testing.assert_array_equal(edges.asnumpy(), expected_edges)
    np.testing.assert_array_equal(counts.asnumpy(), expected)
    assert counts.dtype == np.int64


@pytest.mark.parametrize("largest", [0, 5, 1000, 200_000])
@pytest.mark.parametrize("dtype", ["i4", "u4", "i8"])
def test_integers_are_counted_as_by_numpy(dtype: str, largest: int) -> None:
    x = np.random.default_rng(largest).integers(0, largest + 1, 50_000).astype(dtype)
    np.testing.assert_array_equal(count_integers(dp.asarray(x)).asnumpy(), np.bincount(x))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "i8", "f2", "f4", "f8"])
@pytest.mark.sample(3)
def test_the_library_sorts_stably_with_nan_last(dtype: str, descending: bool) -> None:
    keys = np.random.default_rng(1).integers(0, 2 if dtype == "?" else 50, 5000).astype(dtype)
    if dtype[0] == "f":
        keys[::7], keys[1::9] = np.nan, -keys[1::9]
    numbers = keys.astype("f8")
    order = np.argsort(-numbers if descending else numbers, kind="stable")
    x = dp.asarray(keys)
    found = stable_argsort(x, descending=descending)
    np.testing.assert_array_equal(found.asnumpy(), order)
    by_key, values = sort_by_key(x, dp.arange(5000), descending=descending)
    assert values is not None
    np.testing.assert_array_equal(by_key.asnumpy(), keys[order])
    np.testing.assert_array_equal(values.asnumpy(), order)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (100, 77, 3), (33, 130, 70), (16, 64, 32)])
def test_distances_by_tiles_of_both_sets(shape: tuple[int, ...], dtype: str) -> None:
    n, m, dimensions = shape
    generator = np.random.default_rng(n)
    x = generator.normal(size=(n, dimensions)).astype(dtype)
    y = generator.normal(size=(m, dimensions)).astype(dtype)
    expected = np.sqrt(((x[:, None] - y[None]) ** 2).sum(-1))
    actual = pairwise_distance(dp.asarray(x), dp.asarray(y)).asnumpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("sub_group", [4, 8])
def test_the_kernels_are_right_in_the_simulator(sub_group: int) -> None:
    x = np.arange(300, dtype="i8") % 7
    combine = OPERATIONS["add"].combine
    scan, access = tiles.make_group_scan(combine, np.int64), tiles.make_tile_access(np.int64)
    total, carry, out = np.zeros(3, "i8"), np.zeros(4, "i8"), np.zeros(300, "i8")
    scratch, tile = (dp.LocalAccessor(size, np.dtype("i8")) for size in (8, 8 * 17))
    ranges = dp.NdRange(24, 8), dp.NdRange(8, 8)
    options = {"sub_group_size": sub_group}
    functions = ("add", combine, scan, np.int64)
    dp.simulate(tiles.make_tile_total_kernel(*functions), ranges[0], x, total, scratch, **options)
    sums = [x[at : at + 128].sum() for at in (0, 128, 256)]
    assert total.tolist() == sums
    carrying = tiles.make_carry_kernel(*functions)
    dp.simulate(carrying, ranges[1], total, carry, scratch, np.int64(3), **options)
    assert carry.tolist() == [3, *(3 + np.cumsum(sums))]
    scanning = tiles.make_tile_scan_kernel(*functions[:3], access, np.int64, True)
    dp.simulate(scanning, ranges[0], x, carry, out, scratch, tile, **options)
    assert out.tolist() == (3 + x.cumsum()).tolist()
    mask, chosen = x > 3, np.zeros((x > 3).sum(), "i8")
    dp.simulate(
        tiles.make_tile_total_kernel(*functions), ranges[0], mask, total, scratch, **options
    )
    dp.simulate(carrying, ranges[1], total, carry, scratch, np.int64(0), **options)
    scan, access = tiles.make_group_scan(combine, np.int32), tiles.make_tile_access(np.int32)
    scratch, tile = (dp.LocalAccessor(size, np.dtype("i4")) for size in (8, 8 * 17))
    selecting = tiles.make_tile_select_kernel(scan, access)
    dp.simulate(selecting, ranges[0], x, mask, carry, chosen, scratch, tile, **options)
    assert chosen.tolist() == x[mask].tolist()


@pytest.mark.parametrize("op", UFUNCS)
@pytest.mark.parametrize("inclusive", [True, False])
def test_a_scan_in_one_launch_is_right_in_the_simulator(op: str, inclusive: bool) -> None:
    x = np.random.default_rng(1).integers(1, 4, 700)
    combine, progress = OPERATIONS[op].combine, np.zeros(7, "i4")
    total, carry, out = np.zeros(6, "i8"), np.zeros(6, "i8"), np.zeros(700, "i8")
    scan, access = tiles.make_group_scan(combine, np.int64), tiles.make_tile_access(np.int64)
    kernel = tiles.make_look_back_kernel(op, combine, scan, access, np.int64, inclusive)
    local = [dp.LocalAccessor(size, np.dtype("i8")) for size in (8, 8 * 17, 1)]
    arguments = (x, out, progress, total, carry, np.int64(2), *local)
    number = dp.LocalAccessor(1, np.dtype("i4"))
    dp.simulate(kernel, dp.NdRange(48, 8), *arguments, number, sub_group_size=4)
    expected = UFUNCS[op].accumulate([2, *x])
    assert out.tolist() == (expected[1:] if inclusive else expected[:-1]).tolist()
