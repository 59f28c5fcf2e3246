"""Work-items that return early, and conditions on differences of which an id is taken away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp


@dp.kernel
def difference(item: Any, out: Any, n: int) -> None:
    i = item.get_id(0)
    if n - i > 1:
        out[i] = 1


@dp.kernel
def difference_returns(item: Any, out: Any, n: int) -> None:
    i = item.get_id(0)
    if n - i < 2:
        return
    out[i] = 1


@dp.kernel
def difference_after_return(item: Any, out: Any, n: int) -> None:
    i = item.get_id(0)
    if i >= n + 3:
        return
    if n - i < 2:
        return
    out[i] = 1


@dp.kernel
def narrow_difference(item: Any, out: Any, n: int) -> None:
    i = np.int32(item.get_id(0))
    if np.int32(n) - i > np.int32(1):
        out[i] = 1


@pytest.mark.parametrize(
    "kernel", [difference, difference_returns, difference_after_return, narrow_difference]
)
@pytest.mark.parametrize(("size", "n"), [(8, 8), (8, 5), (13, 9), (1, 4), (5000, 4001)])
def test_a_difference_decides_as_it_is_written(
    kernel: Callable[..., None], size: int, n: int, queue: Any
) -> None:
    out = dp.zeros(size, dtype="int64", sycl_queue=queue)
    dp.call_kernel(kernel, dp.Range(size), out, n)
    np.testing.assert_array_equal(out.asnumpy(), n - np.arange(size) > 1)


@dp.kernel
def from_its_id(item: Any, out: Any) -> None:
    for at in range(item.get_id(0), out.size):
        out[at] = at + 1


@dp.kernel
def from_its_id_after_return(item: Any, out: Any, n: int) -> None:
    first = item.get_global_id(0)
    if first >= n:
        return
    for at in range(first, out.shape[0]):
        out[at] = at + 1


def test_a_loop_begins_at_an_id(queue: Any) -> None:
    for space in (dp.Range(1), dp.Range(9)):
        out = dp.zeros(9, dtype="int64", sycl_queue=queue)
        dp.call_kernel(from_its_id, space, out)
        np.testing.assert_array_equal(out.asnumpy(), np.arange(1, 10))


def test_a_loop_begins_at_an_id_after_others_have_returned(queue: Any) -> None:
    for size, n in ((1, 1), (9, 4), (16, 9)):
        out = dp.zeros(9, dtype="int64", sycl_queue=queue)
        dp.call_kernel(from_its_id_after_return, dp.NdRange((size,), (size,)), out, n)
        np.testing.assert_array_equal(out.asnumpy(), np.arange(1, 10))
