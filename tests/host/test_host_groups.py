"""Barriers and functions of sub-groups in branches and loops, on both drivers of the processor.

The simulator has the values that are wanted, for the size of sub-group that the kernel reports.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp

SIZES = [1, 3, 16, 24, 48, 100, 256]


@dp.kernel
def width(item: dp.NdItem, out: Any) -> None:
    out[0] = item.get_sub_group().get_max_local_range()


@dp.kernel
def total_in_two_steps(item: dp.NdItem, x: Any, out: Any, local: Any) -> None:
    i, part = item.get_global_id(0), item.get_sub_group()
    value = dp.reduce_over_group(part, x[i])
    if part.leader:
        local[part.get_group_id()] = value
    dp.group_barrier(item.get_group())
    if part.get_group_id() == 0:
        value = 0
        for k in range(part.get_local_id(), part.get_group_range(), part.get_local_range()):
            value += local[k]
        value = dp.reduce_over_group(part, value)
        if part.leader:
            out[item.get_group().get_group_id(0)] = value


@dp.kernel
def scan_in_chosen_sub_groups(item: dp.NdItem, x: Any, chosen: Any, out: Any) -> None:
    i, part = item.get_global_id(0), item.get_sub_group()
    if chosen[part.get_group_id()] > 0:
        value = dp.inclusive_scan_over_group(part, x[i])
        out[i] = value + dp.shift_group_right(part, value, 1) * part.get_local_id()
    else:
        out[i] = dp.group_broadcast(part, x[i], 0)


@dp.kernel
def rounds_of_sub_groups(item: dp.NdItem, x: Any, out: Any, local: Any) -> None:
    i, j, part = item.get_global_id(0), item.get_local_id(0), item.get_sub_group()
    value, rounds = x[i], 0
    while dp.reduce_over_group(part, value) % 7 != 0 and rounds < 9:
        value += part.get_group_id() + part.get_local_id() % 2 + 1
        rounds += 1
    local[j] = value
    dp.group_barrier(item.get_group())
    out[i] = local[item.get_local_range(0) - 1 - j] * 10 + rounds


@dp.kernel
def whole_sub_groups_return(item: dp.NdItem, x: Any, out: Any, count: Any) -> None:
    i, part = item.get_global_id(0), item.get_sub_group()
    if part.get_group_id() >= count:
        return
    out[i] = dp.exclusive_scan_over_group(part, x[i])


@dp.kernel
def halves(item: dp.NdItem, x: Any, out: Any, local: Any) -> None:
    i, j, size = item.get_global_id(0), item.get_local_id(0), item.get_local_range(0)
    local[j] = x[i]
    dp.group_barrier(item.get_group())
    while size > 1:
        size = (size + 1) // 2
        other = local[j + size] if j + size < item.get_local_range(0) and j < size else 0
        dp.group_barrier(item.get_group())
        if j < size:
            local[j] += other
            if j + size < item.get_local_range(0):
                local[j + size] = 0
        dp.group_barrier(item.get_group())
    out[i] = local[0]


def compare(kernel: Any, size: int, device: str, *rest: Any, local: bool = False) -> None:
    """Compare a kernel's results in 3 groups with the simulator's."""
    place = dp.Device(device)
    space = dp.NdRange((3 * size,), (size,))
    x = np.random.default_rng(size).integers(-9, 9, 3 * size).astype("int32")
    found = dp.zeros(3 * size, dtype="int32", device=place)
    wanted, of_parts = np.zeros(3 * size, "int32"), dp.zeros(1, dtype="int64", device=place)
    dp.call_kernel(width, space, of_parts)
    memory = [dp.LocalAccessor(size, dtype=dp.int32)] if local else []
    dp.call_kernel(kernel, space, dp.asarray(x, device=place), *_on(place, rest, found), *memory)
    dp.simulate(
        kernel, space, x, *_on(None, rest, wanted), *memory, sub_group_size=int(of_parts[0])
    )
    np.testing.assert_array_equal(found.asnumpy(), wanted)


def _on(place: Any, rest: tuple[Any, ...], out: Any) -> list[Any]:
    """Return the other arguments: arrays come before the result, numbers after it."""
    arrays = [each for each in rest if isinstance(each, np.ndarray)]
    moved = arrays if place is None else [dp.asarray(each, device=place) for each in arrays]
    return [*moved, out, *(each for each in rest if not isinstance(each, np.ndarray))]


@pytest.mark.parametrize("device", ["host:cpu", "cpu"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kernel", [total_in_two_steps, rounds_of_sub_groups, halves])
@pytest.mark.sample(4)
def test_with_barriers(kernel: Any, size: int, device: str) -> None:
    compare(kernel, size, device, local=True)


@pytest.mark.parametrize("device", ["host:cpu", "cpu"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("first", [0, 1])
def test_in_branches_by_memory(first: int, size: int, device: str) -> None:
    chosen = (np.arange(size) % 2 == first).astype("int32")
    compare(scan_in_chosen_sub_groups, size, device, chosen)


@pytest.mark.parametrize("device", ["host:cpu", "cpu"])
@pytest.mark.parametrize("size", SIZES)
def test_sub_groups_that_return_early(size: int, device: str) -> None:
    compare(whole_sub_groups_return, size, device, 2)


@dp.kernel
def loop_after_a_group_function(item: dp.NdItem, x: Any, counts: Any, out: Any) -> None:
    i = item.get_global_id(0)
    total = x[i]
    if dp.any_of_group(item.get_group(), x[i] == 3):
        total += 10
    for k in range(counts[i]):
        m = 0
        while m < (counts[i] & 3):
            m += 1
            total += m * k
    out[i] = total


@pytest.mark.parametrize("device", ["host:cpu", "cpu"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.sample(2)
def test_loops_of_other_lengths_after_a_group_function(size: int, device: str) -> None:
    compare(loop_after_a_group_function, size, device, np.arange(3 * size) % 6)
