"""Iterations of a ``prange`` loop that depend on each other through elements."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp
from tests.jit.forms import function_of
from tests.support import runs_loops_on_host

_HEAD = "def f(x, y, w, k):\n    "
_DEPENDENT = (
    "for i in dp.prange(1, len(x)): x[i] = x[i - 1] + 1",
    "for i in dp.prange(len(x) - 1): x[i] = x[i + 1]",
    "for i in dp.prange(3, x.size): x[i] = x[i - 3]",
    "for i in dp.prange(len(x)): x[i] = x[len(x) - 1 - i]",
    "for i in dp.prange(len(x) // 2): x[2 * i] = x[i]",
    "for i in dp.prange(len(x)): x[i // 2] = y[i]",
    "for i in dp.prange(1, len(x)): x[i] = max(x[i], x[i - 1])",
    "for i in dp.prange(1, len(x)): x[i] += x[i - 1]",
    "z = x\n    for i in dp.prange(1, len(x)): z[i] = x[i - 1]",
    "n = x.shape[0]\n    for i in dp.prange(1, n):\n        t = x[i - 1]\n        x[i] = t * 2",
    "for i in dp.prange(len(x)):\n        k = i - 1\n        if k >= 0: x[i] = x[k]",
    "for i in dp.prange(len(x)):\n        for k in range(len(x)): x[i] += x[k]",
    "for i in dp.prange(len(x) - 1):\n        x[i] = y[i]\n        x[i + 1] = y[i] * 2",
    "for i in dp.prange(1, len(x)):\n        for j in dp.prange(3): w[i, j] = w[i - 1, j]",
    "for i in dp.prange(2):\n        for j in dp.prange(1, len(x)): w[i, j] = w[i, j - 1]",
)  # fmt: skip
_INDEPENDENT = (
    "for i in dp.prange(len(x) // 2): x[2 * i] = x[2 * i + 1]",
    "for i in dp.prange(0, len(x), 2): x[i] = x[i + 1]",
    "n = len(x) // 2\n    for i in dp.prange(n): x[i] = x[i + n]",
    "for i in dp.prange(len(x) // 2):\n        t = x[i]\n        x[i] = x[len(x) - 1 - i]\n"
    "        x[len(x) - 1 - i] = t",
    "for i in dp.prange(1, len(x) - 1):\n        if i % 2 == 0: x[i] = x[i - 1] + x[i + 1]",
    "for i in dp.prange(2):\n        for j in range(1, len(x)): w[i, j] = w[i, j - 1]",
    "for i in dp.prange(3):\n        for j in range(i):\n            w[i, j] = w[j, i]",
    "for i in dp.prange(len(x)): x[i] = y[i - 1] + x[i]",
    "for i in dp.prange(3): x[i] = x[i + 5]",
    "for i in dp.prange(k, len(x)): x[i] = x[i - k] + 1",
    "for i in dp.prange(len(x) - 1):\n        x[i] = 1\n        x[i + 1] = 1",
    "for i in dp.prange(len(x)):\n        t = np.zeros(2)\n        t[1] = t[0] + x[i]\n"
    "        x[i] = t[1]",
    "z = x\n    x = x.copy()\n    for i in dp.prange(1, len(x)): x[i] = z[i - 1]",
)  # fmt: skip


@pytest.mark.parametrize("loop", _DEPENDENT)
def test_dependent_iterations_are_refused(loop: str) -> None:
    function = function_of(_HEAD + loop + "\n")
    x, y, w = dp.arange(40.0), dp.arange(40.0), dp.ones((40, 40))
    refused = dp.exceptions.KernelCompileError
    with pytest.raises(refused, match=r"(?s)depend on each other: one writes .*\[.*use range"):
        dp.jit(function)(x, y, w, 1)
    np.testing.assert_array_equal(x.asnumpy(), np.arange(40.0))


@pytest.mark.parametrize("loop", _INDEPENDENT)
def test_independent_iterations_run(loop: str) -> None:
    function = function_of(_HEAD + loop + "\n")
    given = [np.arange(40.0), np.arange(40.0), np.arange(1600.0).reshape(40, 40)]
    own = [dp.asarray(each) for each in given]
    if "np.zeros" in loop and not runs_loops_on_host():
        with pytest.raises(dp.exceptions.KernelCompileError, match="is a new array"):
            dp.jit(function)(*own, 0)
        return  # Kernels make no arrays.
    dp.jit(function)(*own, 0)
    function(*given, 0)
    for one, other in zip(own, given, strict=True):
        np.testing.assert_array_equal(one.asnumpy(), other)


def test_the_simulator_reports_dependent_iterations() -> None:
    function = dp.jit(function_of(_HEAD + _DEPENDENT[0] + "\n"))
    with pytest.raises(dp.exceptions.SimulationError, match="x"):
        dp.simulate(function, dp.arange(5.0), dp.arange(5.0), dp.ones((2, 2)), 1)
