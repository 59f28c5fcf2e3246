"""Consecutive elements of a work-item, loaded as vectors. Results are NumPy's, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._codegen.elementwise import MAX_STEPS_IN_VECTORS, MIN_IN_VECTORS, VECTOR_LENGTHS
from tests.support import launched, values

pytestmark = pytest.mark.usefixtures("fused")

SMALL = ["bool", "int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32"]
SIZE = MIN_IN_VECTORS + 5


@pytest.fixture(autouse=True)
def _loads_vectors(pretend: Any) -> None:
    pretend(kind="gpu", shares_memory=False, loads_vectors=True)


def items_of(compute: Callable[[], Any]) -> int:
    """Return the work-items of the last launch of a computation."""
    with launched() as launches:
        dp.eval(compute())
    return launches[-1].global_range[0]


def combined(xp: Any, x: Any, y: Any) -> Any:
    return x ^ y | x if x.dtype.kind == "b" else xp.maximum(x, y) * x - y


def equal(found: Any, wanted: np.ndarray) -> None:
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.asnumpy(), wanted)


@pytest.mark.parametrize("dtype", SMALL)
def test_values(dtype: str) -> None:
    length = VECTOR_LENGTHS[np.dtype(dtype).itemsize]
    a, b = values(SIZE + 9, dtype), values(SIZE + 9, dtype, seed=1)
    x, y = dp.asarray(a), dp.asarray(b)
    dp.eval(x, y)
    for size in (MIN_IN_VECTORS - 1, MIN_IN_VECTORS, SIZE):
        found = combined(dp, x[:size], y[:size])
        items = items_of(lambda: found)  # noqa: B023
        assert (items < 2 * size / length) == (size >= MIN_IN_VECTORS)
        equal(found, combined(np, a[:size], b[:size]))
    # Views that begin between two vectors.
    for first, second in ((1, 1), (8, 3), (2, 8)):
        left, right = slice(first, first + SIZE), slice(second, second + SIZE)
        equal(combined(dp, x[left], y[right]), combined(np, a[left], b[right]))
        out = dp.zeros(SIZE + 9, dtype=dtype)
        out[right] = combined(dp, x[left], y[left])
        wanted = np.zeros(SIZE + 9, dtype)
        wanted[right] = combined(np, a[left], b[left])
        equal(out, wanted)


def test_bfloat16() -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    a, b = values(SIZE).astype(bfloat16), values(SIZE, seed=1).astype(bfloat16)
    found = dp.asarray(a) * 3 + dp.asarray(b)
    assert items_of(lambda: found) < SIZE / 3
    np.testing.assert_array_equal(found.asnumpy(), (a * bfloat16(3)).astype(bfloat16) + b)


@pytest.mark.parametrize(
    ("first", "second"), [("uint8", "float32"), ("bool", "int16"), ("float16", "float32")]
)
def test_dtypes_of_different_sizes(first: str, second: str) -> None:
    a, b = values(SIZE, first), values(SIZE, second)
    x, y = dp.asarray(a), dp.asarray(b)
    dp.eval(x, y)
    wanted = a + b
    length = VECTOR_LENGTHS[wanted.itemsize]
    assert items_of(lambda: x + y) < 2 * SIZE / length
    equal(x + y, wanted)
    equal((x + y).astype("uint8"), wanted.astype("uint8"))
    equal(x + y > 1, wanted > 1)
    equal(x[3:] + y[:-3], a[3:] + b[:-3])


def test_two_results_and_positions() -> None:
    a = values(SIZE, "float32")
    x = dp.asarray(a)
    low, high = x * 2, x * 2 + 1
    dp.eval(low, high)
    equal(low, a * 2)
    equal(high, a * 2 + 1)
    ramp = dp.arange(SIZE, dtype="int32") + x.astype("int32")
    equal(ramp, np.arange(SIZE, dtype="int32") + a.astype("int32"))


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
def test_memory_that_is_read_is_overwritten(dtype: str) -> None:
    a = values(SIZE, dtype)
    x = dp.asarray(a)
    x += x[::1] * 2
    x[1:] = x[:-1] + 1
    x[8:] = x[:-8] * 2
    a += a * 2
    a[1:] = a[:-1] + 1
    a[8:] = a[:-8] * 2
    equal(x, a)


def test_many_steps_take_shorter_vectors() -> None:
    a = values(SIZE, "int8")

    def long(x: Any, steps: int) -> Any:
        y = x
        for step in range(steps):
            y = y * x + (step % 3)
        return y

    x = dp.asarray(a)
    dp.eval(x)
    items = []
    for steps in (1, MAX_STEPS_IN_VECTORS // 8, MAX_STEPS_IN_VECTORS // 4, MAX_STEPS_IN_VECTORS):
        items.append(items_of(lambda: long(x, steps)))  # noqa: B023
        equal(long(x, steps), long(a, steps))
    assert items == sorted(set(items))
    assert items[-1] >= SIZE


def test_other_arrays_have_an_element_for_each_work_item() -> None:
    wide, small = dp.ones(SIZE, dtype="float64"), dp.ones(2 * SIZE, dtype="int8")
    plane = dp.ones((SIZE // 100, 100), dtype="float32")
    dp.eval(wide, small, plane)
    assert items_of(lambda: wide + 1) >= SIZE
    assert items_of(lambda: wide.astype("float32")) >= SIZE
    assert items_of(lambda: small.astype("float64")) >= 2 * SIZE
    assert items_of(lambda: small[::2] + 1) >= SIZE
    assert items_of(lambda: plane[:, 1:] + plane[:, :-1]) == SIZE // 100
    with dp.config.override(tuning={"gpu": {"elements": 4}}):
        assert SIZE / 2 <= items_of(lambda: small + 1) < SIZE
