"""``dp.config.debug``: indices are checked, and a fault names kernel, line, index and shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp


@pytest.fixture(autouse=True)
def debug() -> Iterator[None]:
    with dp.config.override(debug=True):
        yield


@dp.device_func
def element(x: Any, i: Any) -> Any:
    return x[i]


@dp.kernel
def shift(item: dp.Item, x: Any, y: Any) -> None:
    i = item.get_id(0)
    y[i] = x[i + 3]


@dp.kernel
def plane(item: dp.Item, x: Any, y: Any) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    y[i, j] = element(x, j)


def test_indices_within_bounds_give_the_result() -> None:
    x, y = dp.arange(8, dtype="int32"), dp.zeros(8, dtype="int32")
    dp.call_kernel(shift, dp.Range(5), x, y)
    assert y.tolist() == [3, 4, 5, 6, 7, 0, 0, 0]


def test_an_index_out_of_bounds_is_reported_with_its_place() -> None:
    x, y = dp.arange(8, dtype="int32"), dp.zeros(8, dtype="int32")
    with pytest.raises(dp.KernelExecutionError) as caught:
        dp.call_kernel(shift, dp.Range(6), x, y)
    message = str(caught.value)
    assert message.startswith("kernel shift: index 8 is out of bounds of x, whose shape is (8,)")
    line = shift.py_func.__code__.co_firstlineno + 3
    assert f"test_kernel_debug.py:{line}\n" in message
    assert "    y[i] = x[i + 3]\n           ^^^^^^^^" in message


def test_writes_in_two_dimensions() -> None:
    with pytest.raises(dp.KernelExecutionError, match=r"index \(4, \d\) .* of y, .* \(4, 2\)"):
        plane[5, 2](dp.zeros(2), dp.zeros((4, 2)))


def test_faults_in_device_functions_name_the_function_and_count() -> None:
    with pytest.raises(dp.KernelExecutionError, match=r"in element \(3 more accesses"):
        plane[4, 3](dp.zeros(2), dp.zeros((4, 3)))


def test_local_and_private_memory_and_atomics_are_checked_around_barriers() -> None:
    @dp.kernel
    def kernel(item: dp.NdItem, x: Any, local: Any, where: Any) -> None:
        lid = item.get_local_id(0)
        i = item.get_global_id(0)
        private = dp.PrivateArray(2, np.int32)
        local[lid + where[0]] = x[i]
        dp.group_barrier(item.get_group())
        private[where[1]] = local[lid]
        dp.group_barrier(item.get_group())
        dp.AtomicRef(x, where[2]).fetch_add(private[0])

    for place, name in enumerate(("local", "private", "x")):
        where = np.zeros(3, dtype="int64")
        x = dp.ones(8, dtype="int32")
        local = dp.LocalAccessor(4, np.int32)
        dp.call_kernel(kernel, dp.NdRange(8, 4), x, local, dp.asarray(where))
        where[place] = 50
        with pytest.raises(dp.KernelExecutionError, match=f"index 5[0-3] is .* of {name}"):
            dp.call_kernel(kernel, dp.NdRange(8, 4), x, local, dp.asarray(where))


def test_negative_indices_within_bounds_are_no_fault() -> None:
    @dp.kernel
    def last(item: dp.Item, x: Any, y: Any) -> None:
        y[0] = x[-1]
        y[1] = x[-2 - x.shape[0] + x.shape[0]]

    y = dp.zeros(2, dtype="int32")
    dp.call_kernel(last, dp.Range(1), dp.arange(5, dtype="int32"), y)
    assert y.tolist() == [4, 3]


def test_captured_values_and_augmented_assignments_still_work() -> None:
    scale = 7

    @dp.kernel
    def accumulate(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)
        x[i] += scale * (i + 1)

    x = dp.ones(3, dtype="int64")
    dp.call_kernel(accumulate, dp.Range(3), x)
    assert x.tolist() == [8, 15, 22]


def test_without_debug_nothing_is_checked() -> None:
    x, y = dp.arange(64, dtype="int32")[:8], dp.zeros(64, dtype="int32")[:8]
    with dp.config.override(debug=False):
        dp.call_kernel(shift, dp.Range(6), x, y)
        assert y.tolist()[:6] == [3, 4, 5, 6, 7, 8]
