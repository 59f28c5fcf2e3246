"""Ten operations end to end: the first tests to run after a change (`make tiny`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp

SIZES = [5, 20_000]  # computed by the host, and by kernels


@pytest.mark.parametrize("size", SIZES)
def test_arithmetic(size: int) -> None:
    a, b = np.arange(size, dtype=np.float32), np.full(size, 2, np.float32)
    x, y = dp.asarray(a), dp.asarray(b)
    np.testing.assert_array_equal((x * y + 1).asnumpy(), a * b + 1)


@pytest.mark.parametrize("size", SIZES)
def test_reduction(size: int) -> None:
    assert float(dp.arange(size, dtype="int64").sum()) == size * (size - 1) // 2


def test_reduction_along_an_axis() -> None:
    x = dp.reshape(dp.arange(60_000, dtype="int32"), (200, 300))
    expected = np.arange(60_000).reshape(200, 300)
    np.testing.assert_array_equal(x.sum(axis=0).asnumpy(), expected.sum(axis=0))


def test_views_share_memory() -> None:
    x = dp.zeros(6)
    x[::2] = 1
    assert x.tolist() == [1, 0, 1, 0, 1, 0]


def test_a_view_of_a_pending_array() -> None:
    assert (dp.arange(20_000) * 2)[10:13].tolist() == [20, 22, 24]


def test_masks() -> None:
    x = dp.arange(10)
    assert x[x > 7].tolist() == [8, 9]


def test_sorting() -> None:
    assert dp.sort(dp.asarray([3, 1, 2])).tolist() == [1, 2, 3]


def test_matrix_product() -> None:
    assert (dp.ones((2, 3)) @ dp.ones((3, 2))).tolist() == [[3, 3], [3, 3]]


def test_a_kernel() -> None:
    @dp.kernel
    def double(item: Any, x: Any) -> None:
        i = item.get_id(0)
        x[i] = 2 * x[i]

    x = dp.arange(5)
    dp.call_kernel(double, dp.Range(5), x)
    assert x.tolist() == [0, 2, 4, 6, 8]


def test_two_queues_do_not_mix() -> None:
    x, y = dp.ones(3, device="cpu"), dp.ones(3, device=dp.Device("cpu").new_queue())
    with pytest.raises(dp.ExecutionPlacementError, match="to_device"):
        x + y
    assert (x + y.to_device(x.device)).tolist() == [2, 2, 2]
