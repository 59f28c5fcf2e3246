"""Algorithms that users write as kernels, one for each work-item or group, against plain Python."""

from __future__ import annotations

import fnmatch
import itertools
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp

SIZES = (1, 15, 16, 17, 63, 65, 1000)  # remainders by the lanes of a vector


@dp.kernel
def select(item: dp.Item, x: Any, k: Any, out: Any) -> None:
    i = item.get_id(0)
    low, high = 0, x.shape[1] - 1
    while low < high:
        pivot = x[i, (low + high) // 2]
        left, right = low, high
        while left <= right:
            while x[i, left] < pivot:
                left += 1
            while x[i, right] > pivot:
                right -= 1
            if left <= right:
                x[i, left], x[i, right] = x[i, right], x[i, left]
                left, right = left + 1, right - 1
        if right < k[i, 0] < left:
            break
        low, high = (low, right) if k[i, 0] <= right else (left, high)
    out[i, 0] = x[i, k[i, 0]]


@dp.kernel
def match(item: dp.Item, text: Any, pattern: Any, out: Any) -> None:
    i = item.get_id(0)
    s, p, star, mark, n, m = 0, 0, -1, 0, text.shape[1], pattern.shape[1]
    while s < n:
        if p < m and (pattern[i, p] == text[i, s] or pattern[i, p] == 63):
            s, p = s + 1, p + 1
        elif p < m and pattern[i, p] == 42:
            star, mark, p = p, s, p + 1
        elif star != -1:
            p, mark, s = star + 1, mark + 1, mark + 1
        else:
            return
    while p < m and pattern[i, p] == 42:
        p += 1
    out[i, 0] = p == m


@dp.kernel
def permute(item: dp.Item, rank: Any, out: Any) -> None:
    i = item.get_id(0)
    used, left, orders = 0, rank[i, 0], 24
    for place in range(5):
        skipped, left, k = left // orders, left % orders, 0
        while True:
            if used >> k & 1:
                k += 1
                continue
            if skipped == 0:
                break
            skipped, k = skipped - 1, k + 1
        used |= 1 << k
        out[i, place] = k
        orders //= max(4 - place, 1)


@dp.kernel
def place_queens(item: dp.Item, size: Any, out: Any) -> None:
    i = item.get_id(0)
    full, depth = (1 << size[i, 0]) - 1, 0
    taken = dp.PrivateArray((4, 9), dp.uint32, fill_zeros=True)
    taken[3, 0] = full
    while depth >= 0:
        if taken[3, depth] == 0:
            depth -= 1
            continue
        bit = taken[3, depth] & -taken[3, depth]
        taken[3, depth] ^= bit
        if taken[0, depth] | bit == full:
            out[i, 0] += 1
            continue
        depth += 1
        taken[0, depth] = taken[0, depth - 1] | bit
        taken[1, depth] = (taken[1, depth - 1] | bit) << 1
        taken[2, depth] = (taken[2, depth - 1] | bit) >> 1
        taken[3, depth] = full & ~(taken[0, depth] | taken[1, depth] | taken[2, depth])


@dp.kernel
def read_numbers(item: dp.Item, data: Any, out: Any) -> None:
    i = item.get_id(0)
    k, count = 0, 0
    while k < data.shape[1]:
        value, shift, complete = np.uint64(0), 0, False
        while k < data.shape[1] and not complete:
            value |= np.uint64(data[i, k] & 127) << np.uint64(shift)
            complete = data[i, k] < 128
            k, shift = k + 1, shift + 7
        if not complete:
            break
        out[i, count] = np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1))
        count += 1


@dp.kernel
def encode_runs(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    k, count = 0, 0
    while k < x.shape[1]:
        length = 1
        while k + length < x.shape[1] and x[i, k + length] == x[i, k]:
            length += 1
            if length == 3:
                break
        out[i, count] = x[i, k] * 10 + length
        k, count = k + length, count + 1


@dp.kernel
def check(item: dp.Item, data: Any, out: Any) -> None:
    i = item.get_id(0)
    crc = np.uint32(0xFFFFFFFF)
    for k in range(data.shape[1]):
        crc ^= data[i, k]
        for _ in range(8):
            crc = crc >> 1 ^ 0xEDB88320 if crc & 1 else crc >> 1
    out[i, 0] = ~np.uint32(crc)


@dp.kernel
def sort_in_group(item: dp.NdItem, x: Any, out: Any) -> None:
    buffer, changed = dp.LocalArray(24, dp.int64), dp.LocalArray(1, dp.int64)
    group = item.get_group()
    row, i = group.get_group_id(0), item.get_local_id(0)
    buffer[i] = x[row, i]
    again = True
    while again:
        if group.leader:
            changed[0] = 0
        dp.group_barrier(group)
        for k in range(2 * i, 2 * i + 2):
            if k + 1 < 24 and buffer[k] > buffer[k + 1]:
                buffer[k], buffer[k + 1] = buffer[k + 1], buffer[k]
                dp.AtomicRef(changed, 0).store(1)
            dp.group_barrier(group)
        again = changed[0] == 1
        dp.group_barrier(group)
    out[row, i] = buffer[i]


def numbers(data: list[int]) -> Iterator[int]:
    value, shift = 0, 0
    for byte in data:
        value, shift = value | (byte & 127) << shift, shift + 7
        if byte < 128:
            yield value >> 1 ^ -(value & 1)
            value, shift = 0, 0


def runs(x: list[int]) -> Iterator[int]:
    for value, equal in itertools.groupby(x):
        length = len(list(equal))
        yield from (value * 10 + min(length - k, 3) for k in range(0, length, 3))


LETTERS = np.frombuffer(b"ab**?", "uint8")
BYTES = np.arange(256, dtype="uint8")
#: Choices for the elements of operands, lengths of operands and results, and the right results.
CASES: dict[Any, tuple[list[tuple[Any, int]], int, Any]] = {
    select: ([(30, 21), (21, 1)], 1, lambda x, k: [sorted(x)[k[0]]]),
    match: ([(LETTERS[:2], 9), (LETTERS, 6)], 1, lambda *x: [fnmatch.fnmatchcase(*map(bytes, x))]),
    permute: ([(120, 1)], 5, lambda r: list(itertools.permutations(range(5)))[r[0]]),
    place_queens: ([(7, 1)], 1, lambda n: [(0, 1, 0, 0, 2, 10, 4)[n[0]]]),
    read_numbers: ([(BYTES, 9)], 9, numbers),
    encode_runs: ([(2, 12)], 12, runs),
    check: ([(BYTES, 11)], 1, lambda data: [zlib.crc32(bytes(data))]),
    sort_in_group: ([(99, 24)], 24, sorted),
}


@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: kernel.__name__)
def test_known_algorithms_have_the_results_of_plain_python(kernel: Any) -> None:
    operands, length, expected = CASES[kernel]
    for n in SIZES:
        rng = np.random.default_rng(n)
        data = [rng.choice(choices, (n, width)) for choices, width in operands]
        out = dp.zeros((n, length), dtype="int64")
        work = dp.NdRange(24 * n, 24) if kernel is sort_in_group else dp.Range(n)
        dp.call_kernel(kernel, work, *map(dp.asarray, data), out)
        for row, *given in zip(out.tolist(), *(each.tolist() for each in data), strict=True):
            right = list(expected(*given))
            assert row == right + [0] * (length - len(right)), (n, given)
