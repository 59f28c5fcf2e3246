"""Functions as arguments of compiled functions, and lambdas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import runs_loops_on_host

FACTOR = 3.0


def cube(x: Any) -> Any:
    return x**3


@dp.jit
def half(x: Any) -> Any:
    return x / 2


@dp.jit
def mean_in_order(f: Any, n: int) -> float:
    total = 0.0
    for i in range(n):
        total += f(i / n)
    return total / n


@dp.jit
def mean(f: Any, n: int) -> float:
    total = 0.0
    for i in dp.prange(n):
        total += f(i / n)
    return total / n


@pytest.mark.parametrize("function", [cube, half, math.exp, lambda x: x * FACTOR + 1],
                         ids=["def", "jit", "math", "lambda"])  # fmt: skip
@pytest.mark.parametrize("called", [mean_in_order, mean], ids=["range", "prange"])
@pytest.mark.parametrize("debug", [False, True])
def test_a_function_as_an_argument(called: Any, function: Any, debug: bool) -> None:
    plain = getattr(function, "py_func", function)
    if called is mean and function is plain is not math.exp and not runs_loops_on_host():
        pytest.skip("kernels call no functions without @dp.device_func")
    with dp.config.override(debug=debug):
        assert called(function, 50) == pytest.approx(called.py_func(plain, 50), rel=1e-14)


def test_a_compiled_lambda() -> None:
    line = dp.jit(lambda x, slope=2.0: slope * x + 1)
    for size in (3, 300_000):
        np.testing.assert_array_equal(line(dp.ones(size)).asnumpy(), np.full(size, 3.0))
    assert line(dp.ones(2), 4.0).tolist() == [5.0, 5.0]


def test_lambdas_that_cannot_be_told_apart_are_refused() -> None:
    pair = dp.jit(lambda x: x + 1), dp.jit(lambda x: x + 2)
    with pytest.raises(dp.exceptions.KernelCompileError, match="only one in its lines"):
        pair[0](dp.ones(2))
