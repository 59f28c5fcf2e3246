"""Arithmetic of 0-d arrays, which NumPy's scalars compute on a CPU device."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import dparray as dp

VALUES: dict[str, list[Any]] = {
    "?": [True, False],
    "i1": [-128, 127, 0],
    "u1": [0, 255],
    "i4": [-(2**31), 7],
    "i8": [-(2**63), 2**63 - 1, -1, 0],
    "u8": [0, 2**64 - 1],
    "f2": [1.5, 6e4],
    "f4": [np.nan, np.inf, -0.0, 3e38],
    "f8": [-np.inf, -0.0, 2.5, 1e308],
    "c8": [1 + 2j, complex(np.nan, 0)],
    "c16": [1 - 2j, 0],
}
ARRAYS = [np.array(value, dtype) for dtype in VALUES for value in VALUES[dtype]]
LONG = 10**30
PLAIN = [True, 3, -1, 2**62, LONG, 1.5, float("nan"), 2j]
INTEGERS = ["and_", "or_", "xor", "lshift", "rshift"]
OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", *INTEGERS]
OPERATORS += ["lt", "le", "gt", "ge", "eq", "ne"]


def _result(function: Any, *operands: Any) -> Any:
    try:
        return function(*operands)
    except Exception:
        return None


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.sample(len(OPERATORS))
def test_operators_of_numbers_are_numpys(name: str) -> None:
    function = getattr(operator, name)
    pairs = [(x, y) for x in ARRAYS for y in ARRAYS]
    pairs += [pair for x in ARRAYS for y in PLAIN for pair in ((x, y), (y, x))]
    for pair in pairs:
        if any(x is LONG for x in pair) and any(np.asarray(x).dtype.kind == "b" for x in pair):
            continue  # NumPy's comparisons of Booleans and long integers raise.
        with np.errstate(all="ignore"):
            expected = _result(function, *pair)
        ours = [dp.asarray(x) if isinstance(x, np.ndarray) else x for x in pair]
        found = _result(function, *ours)
        assert (found is None) == (expected is None), pair
        if expected is not None:
            assert isinstance(found, dp.ndarray)
            assert found.shape == ()
            assert found.dtype == np.asarray(expected).dtype, pair
            np.testing.assert_array_equal(found.asnumpy(), expected, repr(pair), strict=False)


def test_the_device_and_the_identity_of_numbers() -> None:
    x = dp.asarray(2.0)
    y = x
    y = y * 3
    assert (float(x), float(y)) == (2.0, 6.0)
    assert y.sycl_queue == x.sycl_queue
    assert y.usm_type == x.usm_type
    y[...] = 7
    assert (float(x), float(y)) == (2.0, 7.0)
