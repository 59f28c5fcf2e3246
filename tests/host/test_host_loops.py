"""Loops, private arrays and branches that all work-items take together, on both drivers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.host.newest import compile_newest, vectorized_code
from tests.support import force

SIZES = [1, 31, 32, 33, 200]


@dp.kernel
def differences(item: dp.Item, x: Any, out: Any, at: Any) -> None:
    i = item.get_id(0)
    window: Any = dp.PrivateArray(8, dtype=dp.float32)
    for k in range(8):
        window[k] = x[i] * k + at[i]
    total = dp.float32(0)
    for k in range(1, at[i] + 1):  # The length differs, so the array stays in memory.
        total += window[k] - 2 * window[k - 1]
    out[i] = total + window[at[i]]


@dp.kernel
def constant_loops(item: dp.Item, x: Any, out: Any, limit: int) -> None:
    i = item.get_id(0)
    total = x[i]
    for j in range(3):
        for k in range(4, -4, -3):
            total = total * 2 + j * k
        if total > limit:
            break
    for j in range(2, 9, 3):
        total += j * x[i]
    left = 9
    while left > 2:
        total += left
        left -= 2
    out[i] = total


@dp.kernel
def rounds(item: dp.NdItem, x: Any, out: Any, count: int, flag: int, local: Any) -> None:
    i, j = item.get_global_id(0), item.get_local_id(0)
    group = item.get_group()
    value, other, steps = x[i], 1, 0
    if flag > 0:
        for k in range(count):
            value, other = other + k, value - k
            local[j] = value
            dp.group_barrier(group)
            if j > 0:
                other += local[j - 1]
            dp.group_barrier(group)
            if value < -1000 and flag > 5:
                value = 0
            if flag > 1 and k == flag:
                break
            steps += 1
    elif count > 3:
        value = 7
    if count % 2 == 0:
        value += dp.reduce_over_group(group, other)
    out[i] = value * 3 + other * steps + steps


@pytest.mark.parametrize("device", ["host:cpu", "cpu"])
@pytest.mark.parametrize("size", SIZES)
def test_private_arrays(size: int, device: str) -> None:
    x = np.linspace(-1, 1, size, dtype="f4")
    at = np.arange(size) % 8
    out = dp.empty(size, dtype="f4", device=device)
    dp.call_kernel(
        differences,
        dp.Range(size),
        dp.asarray(x, device=device),
        out,
        dp.asarray(at, device=device),
    )
    window = x[:, None] * np.arange(8, dtype="f4") + at[:, None].astype("f4")
    steps = window[:, 1:] - 2 * window[:, :-1]
    wanted = [steps[i, : at[i]].sum() + window[i, at[i]] for i in range(size)]
    np.testing.assert_allclose(dp.asnumpy(out), wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("device", ["host:cpu", "cpu"])
@pytest.mark.parametrize("size", SIZES)
def test_loops_of_constant_length(size: int, device: str) -> None:
    x = np.arange(size)
    out = dp.empty(size, dtype="i8", device=device)
    dp.call_kernel(constant_loops, dp.Range(size), dp.asarray(x, device=device), out, 500)
    wanted = []
    for total in x.tolist():
        first = total
        for j in range(3):
            for k in range(4, -4, -3):
                total = total * 2 + j * k
            if total > 500:
                break
        wanted.append(total + (2 + 5 + 8) * first + 9 + 7 + 5 + 3)
    np.testing.assert_array_equal(dp.asnumpy(out), wanted)


@pytest.mark.parametrize("count", [0, 1, 4, 7])
@pytest.mark.parametrize("flag", [0, 1, 2, 6])
@pytest.mark.parametrize("group", [1, 5, 48])
def test_branches_of_all_work_items(group: int, flag: int, count: int) -> None:
    x = np.arange(3 * group) - 4
    space = dp.NdRange(3 * group, group)
    wanted = np.empty_like(x)
    local = dp.LocalAccessor(group, dtype=dp.int64)
    dp.simulate(rounds, space, x, wanted, count, flag, local)
    out = dp.empty(x.size, dtype="i8", device="host:cpu")
    dp.call_kernel(rounds, space, dp.asarray(x, device="host:cpu"), out, count, flag, local)
    np.testing.assert_array_equal(dp.asnumpy(out), wanted)


@dp.kernel
def neighbors(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    window: Any = dp.PrivateArray(4, dtype=dp.float32)
    for k in range(4):
        window[k] = x[i] * k
    out[i] = window[3] * window[2]
    for k in range(1, 4):
        out[i] += window[k] * window[k - 1]


def test_short_loops_leave_only_arrays_with_unknown_indices_in_memory() -> None:
    x = dp.ones(8, dtype="f4", device="host:cpu")
    out = dp.empty_like(x)
    for kernel, places in ((neighbors, 0), (differences, 1)):
        rest = [dp.ones(8, dtype="i8", device="host:cpu")] if places else []
        own = dp.kernel(kernel.py_func)  # compiled for no other device
        dp.call_kernel(own, dp.Range(8), x, out, *rest)
        (text,) = own.inspect_spirv().values()
        assert text.count("alloca [") == places


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "u1", "u2", "u4"])
def test_integer_division_at_extremes(dtype: str) -> None:
    limits, rng = np.iinfo(dtype), np.random.default_rng(0)
    values = {limits.min, limits.min + 1, limits.max, limits.max - 1, *range(limits.max)[:40]}
    values |= {-each for each in values} | {limits.max // each for each in range(1, 40)}
    values |= {int(each) for each in rng.integers(limits.min, limits.max, 40)}
    a = np.array(sorted(each for each in values if limits.min <= each <= limits.max), dtype)
    x, y = np.meshgrid(a, a)
    found = [dp.asarray(each, device="host:cpu") for each in (x, y)]
    with np.errstate(all="ignore"), force("fused"):
        for name in ("floor_divide", "remainder", "fmod"):
            wanted = getattr(np, name)(x, y)
            np.testing.assert_array_equal(dp.asnumpy(getattr(dp, name)(*found)), wanted, name)


@dp.kernel
def divided(item: dp.Item, x: Any, y: Any, quotients: Any, rests: Any) -> None:
    i = item.get_id(0)
    quotients[i] = x[i] // y[i]
    rests[i] = x[i] % y[i]


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8"])
def test_integer_division_in_kernels(dtype: str) -> None:
    limits = np.iinfo(dtype)
    a = np.array([limits.min, limits.max, 1, 2, 3, 7, limits.max // 2 + 1, limits.max - 1], dtype)
    x, y = (each.ravel().copy() for each in np.meshgrid(a, a[a != 0]))
    quotients, rests = (dp.empty(x.size, dtype=dtype, device="host:cpu") for _ in range(2))
    moved = [dp.asarray(each, device="host:cpu") for each in (x, y)]
    dp.call_kernel(divided, dp.Range(x.size), *moved, quotients, rests)
    np.testing.assert_array_equal(dp.asnumpy(quotients), x // y)
    np.testing.assert_array_equal(dp.asnumpy(rests), x % y)


@pytest.mark.parametrize("step", [-3, -2, 2, 3, 5])
@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 33, 1000])
def test_constant_strides(size: int, step: int) -> None:
    x = np.arange(abs(step) * size, dtype="f4")[::step]
    out = dp.zeros(3 * size, dtype="f4", device="host:cpu")
    with force("fused"):
        out[1::3] = dp.asarray(x.base, device="host:cpu")[::step] * 2 + 1
    wanted = np.zeros(3 * size, "f4")
    wanted[1::3] = x * 2 + 1
    np.testing.assert_array_equal(dp.asnumpy(out), wanted)


@dp.kernel
def left_apart(item: dp.Item, x: Any, out: Any, limit: int) -> None:
    i = item.get_id(0)
    value, steps, last, odd = x[i], 0, 0, False
    for again in range(2):
        while value % 7 != again and steps < limit:
            last = value
            if value % 3 == 0:
                value = value // 3 + 1
                odd = not odd
                continue
            value += 2 * again + 1
            steps += 1
            if value > 40:
                break
        value += 1
    out[i] = value + 10 * last + 1000 * steps + (1 if odd else 0)


@pytest.mark.parametrize("device", ["host:cpu", "cpu"])
@pytest.mark.parametrize("limit", [0, 1, 20])
@pytest.mark.parametrize("size", SIZES)
def test_loops_that_work_items_leave_at_different_times(size: int, limit: int, device: str) -> None:
    x = np.arange(size) * 5 % 53
    wanted = np.empty_like(x)
    dp.simulate(left_apart, dp.Range(size), x, wanted, limit)
    out = dp.empty(size, dtype="i8", device=device)
    dp.call_kernel(left_apart, dp.Range(size), dp.asarray(x, device=device), out, limit)
    np.testing.assert_array_equal(dp.asnumpy(out), wanted)


@dp.kernel
def reads_its_own(item: dp.Item, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    x[2 * i] = y[i]
    out[i] = x[2 * i + y[i] % 2]
    x[2 * i + 1] = y[i] + 1


@pytest.mark.parametrize("device", ["host:cpu", "cpu"])
@pytest.mark.parametrize("size", SIZES)
def test_work_items_read_what_they_wrote_between_neighbors(size: int, device: str) -> None:
    y = np.arange(size) // 3
    x, out = (dp.full(n * size, -5, dtype="i8", device=device) for n in (2, 1))
    dp.call_kernel(reads_its_own, dp.Range(size), x, dp.asarray(y, device=device), out)
    np.testing.assert_array_equal(dp.asnumpy(out), np.where(y % 2 == 0, y, -5))
    np.testing.assert_array_equal(dp.asnumpy(x), np.stack([y, y + 1], axis=1).ravel())


@dp.kernel
def steps_until_large(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    value, count = x[i], 0
    while count < 50 and value < dp.float32(4):
        value = value * value + x[i]
        count += 1
    out[i] = count


def test_items_that_leave_a_loop_at_different_times_are_one_vector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a = np.linspace(-2, 2, 1003).astype("float32")
    x, out = dp.asarray(a, device="host:cpu"), dp.empty(1003, dtype="i8", device="host:cpu")
    dp.call_kernel(steps_until_large, dp.Range(1003), x, out)
    value, counts = a.copy(), np.zeros(1003, "i8")
    for _ in range(50):
        goes_on = value < 4
        value = np.where(goes_on, value * value + a, value)
        counts += goes_on
    assert out.tolist() == counts.tolist()

    assert "= fmul <16 x float>" in vectorized_code(
        monkeypatch
    )  # 8 with 64-bit counters as the limit


@dp.kernel
def add_in_double(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i] * x[i] + np.float64(0.1)


def test_float32_beside_float64_is_computed_in_whole_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a = np.linspace(-2, 2, 1003).astype("float32")
    x, out = dp.asarray(a, device="host:cpu"), dp.empty(1003, dtype="f8", device="host:cpu")
    dp.call_kernel(add_in_double, dp.Range(1003), x, out)
    np.testing.assert_array_equal(out.asnumpy(), a * a + np.float64(0.1))

    assert "= fmul <16 x float>" in vectorized_code(monkeypatch)  # 8 with the float64 as the limit


@dp.kernel
def strided_sums(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    total = 0.0
    for k in range(i, len(x), item.get_range(0)):
        total += math.exp(x[k])
    out[i] = total


@dp.kernel
def strided_sums_of_c(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    total = 0.0
    for k in range(i, len(x), item.get_range(0)):
        total += math.log1p(x[k])
    out[i] = total


@dp.kernel
def waits_before_a_sum(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    while dp.AtomicRef(x, 0).load() > 1:
        pass
    for k in range(i, len(x), item.get_range(0)):
        out[i] += x[k]


@pytest.mark.parametrize(
    ("kernel", "ufunc"),
    [(strided_sums, np.exp), (strided_sums_of_c, np.log1p), (waits_before_a_sum, np.positive)],
)
def test_llvm_prints_no_remarks(kernel: Any, ufunc: Any, capfd: pytest.CaptureFixture[str]) -> None:
    a = np.linspace(0, 1, 1003)
    x, out = dp.asarray(a, device="host:cpu"), dp.zeros(50, device="host:cpu")
    dp.call_kernel(kernel, dp.Range(50), x, out)
    sums = [ufunc(a[i::50]).sum() for i in range(50)]
    np.testing.assert_allclose(out.asnumpy(), sums, rtol=1e-14)

    compile_newest()
    assert capfd.readouterr() == ("", "")


@dp.kernel
def continues_between_barriers(item: dp.NdItem, x: Any, out: Any, limit: int, end: int) -> None:
    group, i, k = item.get_group(), item.get_global_id(0), 0
    while k < end:
        k += 1
        dp.group_barrier(group)
        if k % 3 == 1:
            if x[0] > limit:
                continue
            if k == end:
                continue
            out[i] += dp.reduce_over_group(group, k)
        elif k % 3 == 2:
            if x[i] > limit:
                continue
            out[i] += 100
        out[i] += k


@pytest.mark.parametrize("device", ["host:cpu", "cpu"])
@pytest.mark.parametrize("end", [1, 2, 4, 5])
@pytest.mark.parametrize("limit", [-1, 0, 3, 9])
def test_continue_between_barriers(limit: int, end: int, device: str) -> None:
    x, wanted = np.arange(8), np.zeros(8, "i8")
    out = dp.zeros(8, dtype="i8", device=device)
    space = dp.NdRange(8, 4)
    dp.simulate(continues_between_barriers, space, x, wanted, limit, end)
    dp.call_kernel(continues_between_barriers, space, dp.asarray(x, device=device), out, limit, end)
    assert out.tolist() == wanted.tolist()


@dp.kernel
def sort_rows(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    row: Any = dp.PrivateArray(6, dtype=dp.float32)
    for j in range(6):
        row[j] = x[i, j]
    for j in range(5):
        for k in range(j + 1, 6):
            if row[k] < row[j]:
                kept = row[j]
                row[j] = row[k]
                row[k] = kept
    for j in range(6):
        out[i, j] = row[j]


def test_loops_whose_lengths_follow_an_outer_loop_are_unrolled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a = np.random.default_rng(5).random((1003, 6), dtype="float32")
    x = dp.asarray(a, device="host:cpu")
    out = dp.empty_like(x)
    dp.call_kernel(sort_rows, dp.Range(1003), x, out)
    np.testing.assert_array_equal(out.asnumpy(), np.sort(a))
    (text,) = sort_rows.inspect_spirv().values()
    assert "alloca [" not in text
    # Otherwise there are vectors for rows of one element alone, whose neighbors lie side by side.
    code = vectorized_code(monkeypatch)
    assert "fcmp olt <" in code
    assert "load <" not in code


@dp.kernel
def insert_into_rows(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    row: Any = dp.PrivateArray(20, dtype=dp.float32)
    for j in range(20):
        row[j] = x[i, j]
    for j in range(1, 20):
        value = row[j]
        k = j - 1
        while k >= 0 and row[k] > value:
            row[k + 1] = row[k]
            k -= 1
        row[k + 1] = value
    for j in range(20):
        out[i, j] = row[j]


def test_llvm_prints_no_remarks_of_copied_rows(capfd: pytest.CaptureFixture[str]) -> None:
    a = np.random.default_rng(5).random((203, 20), dtype="float32")
    x = dp.asarray(a, device="host:cpu")
    out = dp.empty_like(x)
    dp.call_kernel(insert_into_rows, dp.Range(203), x, out)
    np.testing.assert_array_equal(out.asnumpy(), np.sort(a))
    compile_newest()
    assert capfd.readouterr() == ("", "")
