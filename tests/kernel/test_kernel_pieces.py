"""Ranges with more work-items or groups than drivers can count are launched in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._runtime import rounding
from dparray._runtime.rounding import IN_ANY_GROUP, pieces_of

ANY = (2**31 - 1,) * 3


@dp.kernel
def write(item: dp.Item, out: Any, ranges: Any) -> None:
    i = item.get_linear_id()
    code = 0
    for dimension in range(item.dimensions):
        code = 100 * code + item.get_id(dimension)
    out[i] += code + 1
    if i == item.get_linear_range() - 1:
        for dimension in range(item.dimensions):
            ranges[dimension] = item.get_range(dimension)


def check_ids(size: tuple[int, ...], queue: Any) -> None:
    """Check the ids and the range that each work-item sees."""
    out = dp.zeros(int(np.prod(size)), dtype="int64", sycl_queue=queue)
    ranges = dp.zeros(3, dtype="int64", sycl_queue=queue)
    write[dp.Range(*size)](out, ranges)
    wanted = np.zeros(size, int)
    for index in np.ndindex(*size):
        wanted[index] = 1 + sum(at * 100**place for place, at in enumerate(index[::-1]))
    np.testing.assert_array_equal(out.asnumpy(), wanted.ravel())
    assert tuple(ranges.tolist()[: len(size)]) == size


@pytest.mark.parametrize("size", [(23,), (5, 7), (3, 11), (2, 3, 5), (1, 2, 17)])
@pytest.mark.parametrize("limit", [3, 10, 16])
def test_a_range_in_pieces_is_as_one(
    size: tuple[int, ...], limit: int, monkeypatch: pytest.MonkeyPatch, queue: Any
) -> None:
    monkeypatch.setattr(rounding, "INDEX_LIMIT", limit)
    check_ids(size, queue)


@pytest.mark.parametrize("size", [(1,), (10,), (4, 4), (2, 30), (3, 1, 9), (2**40,), (3, 2**33)])
def test_pieces_cover_a_range_once(size: tuple[int, ...]) -> None:
    limit = 7 if max(size) < 100 else 2**31
    found = list(pieces_of(size, limit, ANY))
    assert all(0 < np.prod(piece, dtype=object) < limit for _, piece in found)
    check_pieces(size, found)


@pytest.mark.parametrize("size", [(1, 200), (200, 7), (5, 200), (200, 130, 3), (129, 200, 2)])
def test_pieces_have_as_many_groups_as_a_device_counts(size: tuple[int, ...]) -> None:
    groups = (9, 2, 1)
    longest = [IN_ANY_GROUP * count for count in groups[: len(size)][::-1]]
    found = list(pieces_of(size, 2**31, groups))
    assert all(np.less_equal(piece, longest).all() for _, piece in found)
    check_pieces(size, found)


def check_pieces(size: tuple[int, ...], found: Any) -> None:
    assert sum(int(np.prod(piece, dtype=object)) for _, piece in found) == int(
        np.prod(size, dtype=object)
    )
    if max(size) < 1000:
        seen = np.zeros(size, int)
        for offset, piece in found:
            seen[tuple(slice(at, at + n) for at, n in zip(offset, piece, strict=True))] += 1
        assert (seen == 1).all()


def test_large_pieces_are_of_whole_groups() -> None:
    # A range of 2**31 - 1 cannot be rounded up, and divides only into groups of one work-item.
    (_, first), *_ = pieces_of((2**32,), 2**31, ANY)
    assert first[0] % 2**16 == 0
    assert first[0] > 0.99 * 2**31


@pytest.mark.parametrize("size", [(150, 3), (2, 150, 3), (150, 2, 3)])
def test_a_range_of_too_many_groups_is_as_one(
    size: tuple[int, ...], queue: Any, pretend: Any
) -> None:
    pretend(groups=(2**31 - 1, 2, 1), shares_memory=False, chooses_groups=False)
    check_ids(size, queue)


def test_many_pieces_are_launched_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding, "INDEX_LIMIT", 3)
    out, ranges = dp.zeros(500, dtype="int64"), dp.zeros(3, dtype="int64")
    write[dp.Range(500)](out, ranges)
    np.testing.assert_array_equal(out.asnumpy(), np.arange(1, 501))


@pytest.mark.parametrize("size", [(2**40, 2**40), (2**32, 2**31), (2**21, 2**21, 2**21)])
def test_more_work_items_than_indices_are_refused(size: tuple[int, ...]) -> None:
    with pytest.raises(dp.KernelRangeError, match=r"work-items; a 64-bit index ends"):
        dp.Range(*size)
    with pytest.raises(dp.KernelRangeError, match=r"work-items; a 64-bit index ends"):
        dp.NdRange(size, (1,) * len(size))
