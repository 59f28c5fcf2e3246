"""The math module in kernels, on floats and on integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dparray as dp

UNARY = [
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh"),
    *("ceil", "floor", "fabs", "sqrt", "exp", "expm1", "log", "log10", "log1p", "log2"),
    *("erf", "erfc", "gamma", "lgamma", "isnan", "isinf"),
]
BINARY = ["atan2", "copysign", "pow", "fmod", "hypot"]
PAIRS = [
    *(("float64", "float64"), ("float32", "float32"), ("int64", "int64"), ("int32", "int32")),
    *(("float64", "int64"), ("float32", "int32"), ("float32", "float64")),
]


def apply_all(names: list[str], arguments: str, *arrays: np.ndarray) -> np.ndarray:
    """Every function of a list in one kernel; a row of results for each."""
    lines = [f"    out[{row}, i] = math.{name}({arguments})" for row, name in enumerate(names)]
    text = "\n".join(["def apply(item, x, y, out):", "    i = item.get_id(0)", *lines])
    scope: dict[str, Any] = {"math": math}
    exec(text, scope)
    out = dp.zeros((len(names), arrays[0].size))
    given = [dp.asarray(array) for array in (arrays[0], arrays[-1])]
    dp.call_kernel(dp.kernel(scope["apply"]), dp.Range(arrays[0].size), *given, out)
    return out.asnumpy()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint32"])
def test_functions_of_one_number(dtype: str) -> None:
    x = np.array([1], dtype=dtype)
    result = apply_all(UNARY, "x[i]", x)
    expected = [[getattr(math, name)(value) for value in x.tolist()] for name in UNARY]
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_functions_of_two_numbers(one: str, other: str) -> None:
    x, y = np.array([7, 2], dtype=one), np.array([2, 3], dtype=other)
    result = apply_all(BINARY, "x[i], y[i]", x, y)
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    expected = [[getattr(math, name)(a, b) for a, b in pairs] for name in BINARY]
    np.testing.assert_allclose(result, expected, rtol=1e-5)
