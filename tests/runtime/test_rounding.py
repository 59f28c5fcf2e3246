"""Ranges are rounded up to whole groups at launch, and kernels do not see the extra work-items."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp
from dparray._runtime import rounding

# Primes, neighbors of powers of two, short rows, and ranges that drivers divide by themselves.
RANGES = [
    (1,),
    (7,),
    (997,),
    (1024,),
    (4099,),
    (100_003,),
    (1, 1),
    (5003, 1),
    (5003, 3),
    (3, 5003),
    (61, 67),
    (64, 512),
    (1, 1, 1),
    (1009, 4, 4),
    (4, 4, 1009),
    (17, 19, 23),
]


@dp.kernel
def count(item: dp.Item, visits: Any, seen: Any) -> None:
    dp.AtomicRef(visits, item.get_linear_id()).fetch_add(1)
    dp.AtomicRef(seen, 0).fetch_add(1)
    if item.get_linear_id() == item.get_linear_range() - 1:
        for dimension in range(item.dimensions):
            seen[1 + dimension] = item.get_range(dimension)


@pytest.mark.parametrize("size", RANGES)
def test_each_work_item_is_there_once_and_no_other(
    size: tuple[int, ...], queue: dpctl.SyclQueue
) -> None:
    visits = dp.zeros(prod(size) + 10_000, dtype="int32", sycl_queue=queue)
    seen = dp.zeros(4, dtype="int32", sycl_queue=queue)
    dp.call_kernel(count, dp.Range(*size), visits, seen)
    assert visits[: prod(size)].tolist() == [1] * prod(size)
    assert not visits[prod(size) :].any()
    assert seen.tolist() == [prod(size), *size, *[0] * (3 - len(size))]


def test_indices_are_those_of_the_range() -> None:
    @dp.kernel
    def note(item: dp.Item, out: Any) -> None:
        i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
        out[i, j, k] = 10_000 * i + 100 * j + k

    for size in [(37, 3, 1), (2, 41, 3), (3, 1, 53)]:
        out = dp.full(size, -1)
        dp.call_kernel(note, dp.Range(*size), out)
        i, j, k = np.indices(size)
        assert np.array_equal(out.asnumpy(), 10_000 * i + 100 * j + k)


def test_ranges_are_passed_with_an_item_to_device_functions() -> None:
    @dp.device_func
    def is_last(item: dp.Item, dimension: int) -> bool:
        return item.get_id(dimension) == item.get_range(dimension) - 1

    @dp.kernel
    def mark(item: dp.Item, out: Any) -> None:
        inside = True
        for dimension in range(2):
            if not is_last(item, dimension):
                inside = False
        if inside:
            out[item.get_id(0), item.get_id(1)] = 1

    out = dp.zeros((101, 3), dtype="int32")
    dp.call_kernel(mark, dp.Range(101, 3), out)
    assert out.sum() == 1
    assert out[100, 2] == 1


def test_a_range_of_groups_is_as_it_was_given() -> None:
    @dp.kernel
    def note(item: dp.NdItem, out: Any) -> None:
        out[item.get_global_id(0)] = item.get_global_range(0)

    out = dp.zeros(21, dtype="int32")
    dp.call_kernel(note, dp.NdRange(21, 7), out)
    assert out.tolist() == [21] * 21


def test_ranges_are_rounded_to_groups_of_the_device() -> None:
    draw = random.Random(5)
    for _ in range(2000):
        size = tuple(
            draw.choice((1, 2, 3, 7, 64, 97, 1000, 9973)) for _ in range(draw.choice((1, 2, 3)))
        )
        limit, units = draw.choice((1, 16, 100, 8192)), draw.choice((1, 2, 64))
        rounded, local = rounding.on_cpu(size, limit, units)
        if local is None:
            assert rounded == size
            continue
        assert prod(local) <= max(limit, 1)
        for asked, extent, part in zip(size, rounded, local, strict=True):
            assert extent % part == 0
            assert asked <= extent < asked + part


@pytest.mark.parametrize("size", [(16_000_057,), (5_333_333, 3), (16_000_000, 1), (8, 2_000_003)])
def test_groups_are_large_in_large_ranges(size: tuple[int, ...]) -> None:
    rounded, local = rounding.on_cpu(size, 8192, 2)
    assert local is not None
    assert prod(local) >= 2048
    assert prod(rounded) <= 1.01 * prod(size)


def test_other_devices_choose_their_groups() -> None:
    assert rounding.elsewhere((16_000_057, 3)) == ((16_000_064, 3), None)
    assert rounding.elsewhere((100, 1000)) == ((100, 1000), None)


def test_a_range_that_rounding_would_make_too_large_is_launched_as_it_is() -> None:
    from dparray._runtime.launch import INDEX_LIMIT, _rounded

    queue = dp.Device().sycl_queue
    assert _rounded(queue, (INDEX_LIMIT - 1,), 8192) == ((INDEX_LIMIT - 1,), None)


def test_groups_of_three_dimensions_have_few_rows_of_rows() -> None:
    assert rounding.on_cpu((250_000, 8, 8), 4096, 2).local == (4, 8, 8)
    assert rounding.on_cpu((53_333, 100, 3), 4096, 2).local == (1, 100, 3)
    assert rounding.on_cpu((1_000_003, 4, 4), 4096, 2).local == (256, 4, 4)
