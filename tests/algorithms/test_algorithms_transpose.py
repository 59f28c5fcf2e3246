"""Copies of transposed matrices on GPUs: NumPy's values, and which arrays the kernel takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.algorithms import tiled_transpose
from tests.support import kernels_of


@pytest.fixture(autouse=True)
def _as_gpu(pretend: Any) -> None:
    pretend(shares_memory=False)


@pytest.mark.parametrize("shape", [(128, 128), (513, 33), (33, 1000), (5, 65, 64), (2, 3, 40, 99)])
@pytest.mark.parametrize("dtype", ["?", "f2", "i4", "f8", "c8"])
def test_copies_equal_numpys(shape: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 99, shape).astype(dtype)
    view = dp.asarray(x).swapaxes(-1, -2)
    assert tiled_transpose.can_transpose(view)
    found = tiled_transpose.transposed(view)
    assert found.flags.c_contiguous
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found.asnumpy(), x.swapaxes(-1, -2))


@pytest.mark.parametrize("most", [2, 65_535])
def test_more_groups_than_a_dimension_has_go_along_the_last_one(most: int, pretend: Any) -> None:
    pretend(shares_memory=False, groups=(2**31 - 1, most, most))
    for shape in ((20, 1000), (1000, 20), (2, 100, 100)):
        x = np.random.default_rng(0).random(shape, "f4")
        if tiled_transpose.can_transpose(dp.asarray(x).swapaxes(-1, -2)):
            found = tiled_transpose.transposed(dp.asarray(x).swapaxes(-1, -2))
            np.testing.assert_array_equal(found.asnumpy(), x.swapaxes(-1, -2))


def test_pending_values_and_parts_of_arrays_equal_numpys() -> None:
    x = np.arange(3 * 200 * 300, dtype="f4").reshape(3, 200, 300)
    whole = dp.asarray(x)
    for given, values in ((whole[1:], x[1:]), (whole[2], x[2]), (whole + 1, x + 1)):
        view = given.swapaxes(-1, -2)
        assert tiled_transpose.can_transpose(view)
        found = tiled_transpose.transposed(view)
        np.testing.assert_array_equal(found.asnumpy(), values.swapaxes(-1, -2))


def test_other_arrays_are_left_alone() -> None:
    x = dp.ones((200, 300), dtype="f4")
    wide = dp.ones((10, 200, 300), dtype="f4")
    for other in (x, x[:, ::2].T, x[:100].T[::2], x[:8, :8].T, wide.transpose(2, 0, 1), x[0]):
        assert not tiled_transpose.can_transpose(other)
    assert not tiled_transpose.can_transpose(dp.ones((200, 300), dtype="c16").T)


def test_the_order_of_c_is_one_launch() -> None:
    x = dp.ones((200, 300), dtype="f4")
    dp.eval(x)
    for copy in (lambda: x.T.copy(), lambda: dp.ascontiguousarray(x.T)):
        assert kernels_of(copy) == ["transpose"]
