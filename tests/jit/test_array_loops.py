"""Array statements of medium size, which run as loops over rows on threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.jit.test_row_loops import function_of

N = 60
STATEMENTS = [
    "v[1:-1, 1:-1] = u[1:-1, 1:-1] + a * (u[:-2, 1:-1] + u[2:, 1:-1] - u[1:-1, :-2])",
    "v[...] = u * 2 + v",
    "v += u * a",
    "v[2:] -= np.sqrt(u[:-2]) + np.where(u[2:] > a, u[1:-1], v[2:])",
    "v[:, 1] = u[1] * u[:, -1]",
    "v[k:, -k:] = u[:-k, :k] - a",
    "v[-k:] = -u[-k:]",
    "v[3:3] = u[3:3] + 1",
    "v[1:] = v[:-1] * 2",  # overlap
    "v[1:-1] = (v[:-2] + v[2:]) * 0.5",
    "v[::-1] = v[:, :] + u",
    "v[:, :] = u[:1] + v",  # broadcasts
    "v[:, :] = u[0] + v",
    "v[:, :] = v * v[3, 3]",
    "v[0, 1:] = 7",
    "for t in range(k):\n        v[1:-1] = u[:-2] + u[2:]\n        u[1:-1] = v[1:-1] * 0.5",
    "x = v[0] * 2\n    v[1] = x + u[1]",
    "for t in range(2):\n        x = u[0] * 2 + a\n        y = x - u[1]\n    v[1] = x * y",
    "v[1:] = u[1:] + 1; u[1:] = v[1:] * 2",
    "w[1:] += w[:-1] * 3",
    "w[1:] = v[0, :1] * w[:1]",
]


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.sample(3)
def test_array_statements_are_numpys(statement: str) -> None:
    random = np.random.default_rng(1)
    given: list[Any] = [random.uniform(1, 2, (N, N)), random.uniform(1, 2, (N, N)),
                        random.uniform(1, 2, N * N), 0.5, 2]  # fmt: skip
    function = function_of(f"    {statement}", "v, u, w, a, k")
    found = [dp.asarray(x) if isinstance(x, np.ndarray) else x for x in given]
    function(*given)
    dp.jit(cache=False)(function)(*found)
    for each, wanted in zip(found[:3], given, strict=False):
        np.testing.assert_allclose(each.asnumpy(), wanted, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "int16", "int64"])
@pytest.mark.sample(1)
def test_array_statements_keep_numpys_dtypes(dtype: str) -> None:
    x = np.arange(N * N, dtype=dtype).reshape(N, N) * 5
    function = function_of("    y[1:] = x[1:] * x[:-1] + 3\n    y *= x", "x, y")
    wanted, found = np.zeros_like(x), dp.zeros((N, N), dtype=dtype)
    function(x, wanted)
    dp.jit(cache=False)(function)(dp.asarray(x), found)
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-6)


def test_arguments_may_show_the_same_memory() -> None:
    x = np.arange(float(N * N)).reshape(N, N)
    function = function_of("    x[1:] = y[:-1] + 1", "x, y")
    found = dp.asarray(x)
    function(x, x)
    dp.jit(cache=False)(function)(found, found)
    np.testing.assert_array_equal(found.asnumpy(), x)


def test_other_shapes_are_refused_with_the_line() -> None:
    function = function_of("    x[1:] = y[:-2] + 1", "x, y")
    with pytest.raises((ValueError, dp.exceptions.ShapeError)):
        dp.jit(cache=False)(function)(dp.ones((N, N)), dp.ones((N, N)))
