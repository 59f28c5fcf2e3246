"""Small elements on a GPU: a work-item loads several before it stores any. Results are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._codegen.elementwise import BATCH, MIN_IN_BATCHES
from tests.support import launched, same, values

pytestmark = pytest.mark.usefixtures("fused")


@pytest.fixture(autouse=True)
def _as_gpu(pretend: Any) -> None:
    pretend(kind="gpu", shares_memory=False)


def items_of(compute: Any) -> int:
    """Return the work-items of the last launch of a computation."""
    with launched() as launches:
        compute()
    return launches[-1].global_range[0]


@pytest.mark.parametrize("size", [MIN_IN_BATCHES, MIN_IN_BATCHES + 1, 300_007])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "bool"])
def test_values(dtype: str, size: int) -> None:
    a, b = values(size, dtype), values(size, dtype, seed=1)
    x, y = dp.asarray(a), dp.asarray(b)
    dp.eval(x, y)
    assert items_of(lambda: dp.eval(dp.maximum(x, y))) < size / BATCH + 4096
    same(dp.maximum(x, y), np.maximum(a, b))
    same(
        dp.where(x > y, x, y) if dtype != "bool" else x & ~y,
        np.where(a > b, a, b) if dtype != "bool" else a & ~b,
    )


def test_memory_that_is_read_is_overwritten() -> None:
    a = values(MIN_IN_BATCHES + 5, "int8")
    x = dp.asarray(a)
    x += x[::1] * 2
    x[1:] = x[:-1] + 1
    a += a * 2
    a[1:] = a[:-1] + 1
    same(x, a)


def test_other_arrays_have_an_element_for_each_work_item() -> None:
    size = MIN_IN_BATCHES
    wide, small = dp.ones(size, dtype="float32"), dp.ones(2 * size, dtype="int8")
    dp.eval(wide, small)
    assert items_of(lambda: dp.eval(wide + 1)) == size
    assert items_of(lambda: dp.eval(small[::2] + 1)) == size
    assert items_of(lambda: dp.eval(small[: size // 2] + 1)) == size // 2
