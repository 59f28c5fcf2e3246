"""The dtypes and the overflow of numbers in compiled functions are NumPy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.jit.number_table import AROUND, DTYPES, FORMS, NUMBERS, OPERATIONS, check

#: Each dtype with itself, and pairs whose result is of another dtype.
_PAIRS = [*((dtype, dtype) for dtype in DTYPES), ("int8", "int16"), ("uint8", "int8"),
          ("uint16", "int32"), ("int64", "uint64"), ("uint64", "int64"), ("uint8", "uint64"),
          ("int32", "float32"), ("int16", "float32"), ("bool", "int8"),
          *((dtype, kind) for dtype in ("int8", "uint32", "uint64", "float32") for kind in NUMBERS),
          ]  # fmt: skip


def assert_equals_uncompiled(
    run: Any, x: np.ndarray, y: np.ndarray, wanted: Sequence[np.ndarray]
) -> None:
    """Check what a compiled function writes against what the plain function writes."""
    found = [dp.asarray(each) for each in wanted]
    with np.errstate(over="ignore"):
        run.py_func(x, y, *wanted)
    run(dp.asarray(x), dp.asarray(y), *found)
    for own, right in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(own.asnumpy(), right)


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pair", _PAIRS, ids=":".join)
def test_operations_at_the_extremes(pair: tuple[str, str], form: str) -> None:
    at = _PAIRS.index(pair) + FORMS.index(form)
    around = AROUND[1 + at % (len(AROUND) - 1)]
    assert check(*pair, form, OPERATIONS[at % 4 :: 4], [around]) == []


@pytest.mark.parametrize("size", [8, 3000, 300_000])
def test_a_difference_of_uint8_wraps_at_all_sizes(size: int) -> None:
    @dp.jit
    def halved(x: dp.ndarray, y: dp.ndarray) -> dp.ndarray:
        return (x - y) // 2

    x, y = np.full(size, 3, np.uint8), np.full(size, 5, np.uint8)
    found = halved(dp.asarray(x), dp.asarray(y))
    np.testing.assert_array_equal(found.asnumpy(), (x - y) // 2)
    assert found.dtype == np.uint8


def test_comparisons_after_overflow() -> None:
    @dp.jit
    def count(x: dp.ndarray) -> int:
        found = 0
        for i in range(x.size):
            if x[i] + 1 < x[i]:
                found += 1
            if (x[i] * 2) // 2 != x[i]:
                found += 1
        return found

    x = np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).max // 2 + 1, 3])
    with np.errstate(over="ignore"):
        wanted = count.py_func(x)
    assert count(dp.asarray(x)) == wanted


def test_a_sum_of_uint64_that_starts_with_0() -> None:
    @dp.jit
    def total(x: dp.ndarray) -> int:
        s = 0
        for i in range(x.size):
            s += x[i]
        return s

    x = np.array([2**63 + 1, 5, 2**53 + 1], np.uint64)
    assert int(total(dp.asarray(x))) == int(total.py_func(x))


def test_where_with_a_python_number_keeps_the_dtype() -> None:
    @dp.jit
    def positive(x: dp.ndarray) -> dp.ndarray:
        return np.where(x > 0, x, 0)

    x = np.arange(-3, 3, dtype=np.int8)
    found = positive(dp.asarray(x))
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found.asnumpy(), positive.py_func(x))


def _halved_difference(x: np.uint8, y: np.uint8) -> np.uint8:
    return (x - y) // 2


def test_variables_with_values_of_several_types() -> None:
    """Parameters of other functions, and variables with values of several types."""

    @dp.jit
    def run(x: dp.ndarray, y: dp.ndarray, a: dp.ndarray, b: dp.ndarray) -> None:
        for i in range(x.size):
            a[i] = _halved_difference(x[i], y[i])
            t = x[i]
            t = t - y[i]
            t = t * np.float64(1.5)
            b[i] = t

    x, y = np.array([3, 200, 7], np.uint8), np.array([5, 100, 8], np.uint8)
    wanted = np.zeros(3, np.uint8), np.zeros(3)
    assert_equals_uncompiled(run, x, y, wanted)


@pytest.mark.parametrize("size", [3, 5000])
def test_quotients_of_booleans_are_float64(size: int) -> None:
    @dp.jit(cache=False)
    def quotient(x, y):
        return x / y

    x = dp.asarray(np.arange(size) % 2 == 0)
    found = quotient(x, x | True)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found.asnumpy(), x.asnumpy() * 1.0)


def _smoothed(a, b):
    total = 0.0
    for _ in range(3):
        total = total * 0.7 + a / 3
    if a > b:
        total += b
    return total


def square(a):
    """Shadow the name of a NumPy function."""
    return a * 0.1 - a


def dot(a, b):
    """Shadow the name of a NumPy function."""
    return a[0] * 0.3 + b[1]


def _nested(a, b):
    return _smoothed(a, b) * 0.1 + square(b) - _smoothed(b, a)


def _of_integers(a, b):
    return (a * b + 100) // 7 - (a - b) * (a + b)


@dp.jit(cache=False)
def _together(x, y, numbers, out):
    for i in dp.prange(x.size):
        numbers[i] = _of_integers(x[i], y[i])
        out[i, 0] = _nested(x[i], y[i])
        out[i, 1] = square(x[i]) * 0.1
        out[i, 2] = dot(x, y) * 0.7


@dp.jit(cache=False)
def _in_order(x, y, numbers, out):
    for i in range(x.size):
        numbers[i] = _of_integers(x[i], y[i])
        out[i, 0] = _nested(x[i], y[i])
        out[i, 1] = square(x[i]) * 0.1
        out[i, 2] = dot(x, y) * 0.7


@pytest.mark.parametrize("run", [_together, _in_order])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int32", "int64"])
@pytest.mark.sample(2)
def test_functions_that_are_called_compute_in_the_dtypes_of_their_arguments(
    run: Any, dtype: str
) -> None:
    ends = [127, -128, 1, 50] if dtype[0] == "i" else [255, 0, 1, 50]
    x, y = (np.random.default_rng(seed).choice(ends, 50).astype(dtype) for seed in range(2))
    if dtype[0] == "f":
        x, y = x / x.dtype.type(7), y / x.dtype.type(3)
    wanted = np.zeros_like(x), np.zeros((50, 3))
    assert_equals_uncompiled(run, x, y, wanted)
