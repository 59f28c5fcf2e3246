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
    ranges,
    sort_by_key,
    stable_argsort,
)
from dparray.algorithms import tiles as host_tiles
from dparray.algorithms.histograms import count_in_bins, count_integers
from dparray.algorithms.workspace import zeros
from dparray.kernels import quantile, tiles
from dparray.kernels.combine import OPERATIONS
from dparray.kernels.histogram import make_bin_between_edges
from tests.support import kernels_of, leave_out_radix_sort

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


@pytest.mark.parametrize("looks_back", [True, False])
@pytest.mark.parametrize("start", [0, 1, 8])
def test_views_of_masks_select_elements_and_indices(
    start: int, looks_back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_tiles, "LOOKS_BACK", looks_back)
    x = np.random.default_rng(start).integers(0, 3, 40_009).astype("u1")
    mask = dp.asarray(x).view("?")[start:]  # a byte of 2 is true
    expected = np.flatnonzero(x[start:])
    np.testing.assert_array_equal(dp.nonzero(mask)[0].asnumpy(), expected)
    found = compact(dp.asarray(x)[start:], mask).asnumpy()
    np.testing.assert_array_equal(found, x[start:][expected])
    assert compact(mask, mask).asnumpy().all()


@pytest.mark.parametrize("size", [1, 40_009, 65_537])
@pytest.mark.parametrize("dtype", ["i1", "i8", "f4"])
def test_views_at_odd_addresses_are_scanned_and_counted(dtype: str, size: int) -> None:
    whole = np.random.default_rng(size).integers(0, 99, size + 3).astype(dtype)
    x, values = dp.asarray(whole)[3:], whole[3:]
    out = inclusive_scan(x)
    np.testing.assert_array_equal(out.asnumpy(), values.cumsum(dtype=out.dtype))
    counts, _ = count_in_bins(x, 9, (0.0, 90.0))
    np.testing.assert_array_equal(counts.asnumpy(), np.histogram(values, 9, (0, 90))[0])


@pytest.mark.parametrize("has_wide_atomics", [True, False])
def test_more_elements_than_32_bits_count_need_atomic_operations_on_64(
    has_wide_atomics: bool, monkeypatch: pytest.MonkeyPatch, pretend: Any
) -> None:
    x = np.random.default_rng(1).integers(0, 9, 50_021)
    pretend(shares_memory=False, lacks=() if has_wide_atomics else ("atomic64",))
    monkeypatch.setattr(host_tiles, "_MAX_COUNTED", 50_000)
    assert host_tiles.counts_in_tiles(dp.asarray(x)) == has_wide_atomics
    assert host_tiles.counts_in_tiles(dp.asarray(x[:50_000]))
    np.testing.assert_array_equal(count_integers(dp.asarray(x)).asnumpy(), np.bincount(x))
    scanned = inclusive_scan(dp.asarray(x), dtype="i4").asnumpy()
    np.testing.assert_array_equal(scanned, x.cumsum(dtype="i4"))
    np.testing.assert_array_equal(compact(dp.asarray(x), dp.asarray(x > 4)).asnumpy(), x[x > 4])


def test_forgotten_kernels_are_compiled_again() -> None:
    x = dp.asarray(np.arange(70_001))
    inclusive_scan(x)
    ranges.forget_kernels()
    assert kernels_of(lambda: inclusive_scan(x)) == ["one_pass_scan"]
    scanning = ranges._kernel_of.cache_info()
    assert scanning.currsize == 1


def test_scans_and_selections_leave_their_memory_zero() -> None:
    x = dp.asarray(np.arange(70_001))
    for _ in range(2):
        inclusive_scan(x)
        compact(x, x > 5)
    progress = dp.ndarray._from_layout(*zeros(x.queue, 100, np.dtype("i4")))
    assert not progress.asnumpy().any()


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


LANES = 16


def _local(*sizes: int, dtype: str = "i8") -> list[dp.LocalAccessor]:
    return [dp.LocalAccessor(size, np.dtype(dtype)) for size in sizes]


@pytest.mark.parametrize("sub_group", [4, 8])
def test_a_scan_in_three_launches_is_right_in_the_simulator(sub_group: int) -> None:
    x = np.arange(700, dtype="i8") % 7
    combine = OPERATIONS["add"].combine
    scan = tiles.make_group_scan(combine, np.int64, LANES)
    access = tiles.make_tile_access(np.int64, LANES)
    total, carry, out = np.zeros(3, "i8"), np.zeros(4, "i8"), np.zeros(700, "i8")
    scratch, tile = _local(LANES, LANES * 17)
    ranges = dp.NdRange(3 * LANES, LANES), dp.NdRange(LANES, LANES)
    options = {"sub_group_size": sub_group}
    functions = ("add", combine, scan)
    reducing = tiles.make_tile_total_kernel(*functions, np.int64, LANES)
    dp.simulate(reducing, ranges[0], x, total, scratch, **options)
    sums = [x[at : at + 256].sum() for at in (0, 256, 512)]
    assert total.tolist() == sums
    carrying = tiles.make_carry_kernel(*functions, np.int64)
    dp.simulate(carrying, ranges[1], total, carry, scratch, np.int64(3), **options)
    assert carry.tolist() == [3, *(3 + np.cumsum(sums))]
    scanning = tiles.make_tile_scan_kernel(*functions, access, np.int64, LANES, True)
    dp.simulate(scanning, ranges[0], x, carry, out, scratch, tile, **options)
    assert out.tolist() == (3 + x.cumsum()).tolist()


@pytest.mark.parametrize("is_aligned", [True, False])
def test_a_selection_is_right_in_the_simulator(is_aligned: bool) -> None:
    x = np.random.default_rng(1).integers(0, 7, 2300)
    mask = x > 3
    words = mask[: mask.size // 8 * 8].view("u8") if is_aligned else np.zeros(0, "u8")
    combine, options = OPERATIONS["add"].combine, {"sub_group_size": 4}
    scan = tiles.make_group_scan(combine, np.int64, LANES)
    back = tiles.make_look_back("add", combine, np.int64, LANES, True)
    flags = tiles.whole_flags, tiles.flags_at_end, tiles.count_flags
    carry, progress = np.zeros(10, "i8"), np.zeros(5, "i8")
    counting = tiles.make_mask_count_kernel(scan, back, flags, LANES)
    local = _local(LANES, 1, 1)
    arguments = (mask, words, carry, progress)
    dp.simulate(counting, dp.NdRange(3 * LANES, LANES), *arguments, *local, **options)
    assert carry.tolist() == [int(mask[: 256 * each].sum()) for each in range(10)]
    assert not progress.any()
    scan = tiles.make_group_scan(combine, np.int32, LANES)
    local = [*_local(LANES, dtype="i4"), *_local(2 * LANES, dtype="u8")]
    local += _local(2 * LANES, dtype="i4")
    for is_index, expected in ((False, x[mask]), (True, np.flatnonzero(mask))):
        selecting = tiles.make_tile_select_kernel(scan, flags, LANES, np.int64, is_index)
        out = np.zeros(expected.size, "i8")
        arguments = (mask if is_index else x, mask, words, carry, out)
        dp.simulate(selecting, dp.NdRange(9 * LANES, LANES), *arguments, *local, **options)
        assert out.tolist() == expected.tolist()


@pytest.mark.parametrize("op", UFUNCS)
@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_a_scan_in_one_launch_is_right_in_the_simulator(
    dtype: type, inclusive: bool, op: str
) -> None:
    x = np.random.default_rng(1).integers(1, 4, 1400) * np.where(np.arange(1400) % 90, 1, -1)
    is_packed = dtype is np.int32
    combine, progress = OPERATIONS[op].combine, np.zeros(8, "i8" if is_packed else "i4")
    total, carry, out = (np.zeros(size, dtype) for size in (6, 6, 1400))
    scan = tiles.make_group_scan(combine, dtype, LANES)
    access = tiles.make_tile_access(dtype, LANES)
    back = tiles.make_look_back(op, combine, dtype, LANES, is_packed)
    kernel = tiles.make_look_back_kernel(op, combine, scan, access, back, dtype, LANES, inclusive)
    name = np.dtype(dtype).str[1:]
    local = [*_local(LANES, LANES * 17, 1, dtype=name), *_local(1)]
    arguments = (x, out, progress, total, carry, dtype(2), *local)
    with np.errstate(over="ignore"):
        dp.simulate(kernel, dp.NdRange(6 * LANES, LANES), *arguments, sub_group_size=4)
        expected = UFUNCS[op].accumulate([2, *x], dtype=dtype)
    assert out.tolist() == (expected[1:] if inclusive else expected[:-1]).tolist()
    assert not progress.any()


@pytest.mark.parametrize("is_local", [True, False])
def test_counts_are_right_in_the_simulator(is_local: bool) -> None:
    x = np.random.default_rng(1).random(700, "f4") * np.float32(1.2)
    x[:9], x[9] = np.linspace(0, 1, 9), np.nan
    edges, copied = np.linspace(0, 1, 9, dtype="f4"), np.zeros(9, "f4")
    bin_of = make_bin_between_edges(np.float32)
    kernel = tiles.make_local_count_kernel(bin_of, np.float32, LANES, is_local, True)
    out, sums = np.zeros(8, "i8"), np.zeros(9, "i8")
    numbers = np.array([0, 1, 8, 1e-4], "f4")
    arguments = (x, out, sums, edges, copied, *_local(16, 1, dtype="i4"), 2, *numbers)
    dp.simulate(kernel, dp.NdRange(3 * LANES, LANES), *arguments, sub_group_size=8)
    assert out.tolist() == np.histogram(x, edges)[0].tolist()
    assert copied.tolist() == edges.tolist()
    assert not sums.any()


def test_a_prepared_launch_takes_memory_of_other_libraries_and_what_waits_for_it() -> None:
    x = np.random.default_rng(1).integers(0, 9, 70_000)
    expected = x.cumsum()
    own, borrowed = dp.asarray(x), dp.from_dlpack(dp.asarray(x))
    for each in (own, borrowed, own):
        np.testing.assert_array_equal(inclusive_scan(each).asnumpy(), expected)
    with dp.config.override(debug=True):
        np.testing.assert_array_equal(inclusive_scan(own).asnumpy(), expected)
    out = dp.asarray(x)
    pending = out * 2
    host_tiles.scan_axis("add", own, out)
    np.testing.assert_array_equal(pending.asnumpy(), x * 2)
    np.testing.assert_array_equal(out.asnumpy(), expected)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f4", "f8"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.sample(3)
def test_quantiles_of_vectors_are_selected(size: int, dtype: str) -> None:
    generator = np.random.default_rng(size)
    host = (generator.normal(size=size) * 40).astype("f4" if dtype[0] == "f" else "i4")
    host = host.astype(dtype)
    x = dp.asarray(np.repeat(host, 2))[::2]
    for method in ("linear", "higher", "midpoint"):
        for q in (0.0, 0.25, 0.5, 0.9, 1.0):
            found = dp.quantile(x, q, method=method)
            expected = np.quantile(host, q, method=method)  # type: ignore[call-overload]
            assert (found.dtype, found.shape) == (expected.dtype, ())
            np.testing.assert_allclose(found.asnumpy(), expected, 1e-6, 1e-6)
    assert dp.median(x).item() == np.median(host)
    if dtype[0] == "f" and size > 1:
        for odd in (np.nan, -np.nan, np.inf, -np.inf, -0.0):
            host[size // 2] = odd
            np.testing.assert_array_equal(dp.median(dp.asarray(host)).asnumpy(), np.median(host))


def test_ranks_in_the_simulator() -> None:
    x = np.random.default_rng(0).normal(size=100).astype("f4")
    memory, found = np.zeros(quantile.STATE + 2 * quantile.DIGITS, np.int64), np.zeros(3, "u4")
    functions = map(dp.device_func, quantile.make_ordered("f", 32))
    kernel = dp.kernel(quantile.make_rank_kernel(*functions, np.uint32, 8, True))
    for shift, width in ((21, 11), (10, 11), (0, 10)):
        local = [dp.LocalAccessor(size, "i4") for size in (2 * quantile.DIGITS, 16, 1)]
        numbers = (49, 50, shift, width, shift == 21)
        dp.simulate(kernel, dp.NdRange(16, 8), x.view("u4"), found, memory, *local, *numbers)
    np.testing.assert_array_equal(found.view("f4")[:2], np.sort(x)[49:51])
    assert not memory.any()
