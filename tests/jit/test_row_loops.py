"""Array statements on rows inside of prange loops, which run as loops over elements."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import runs_loops_on_host

_CHECKS_SIZES = pytest.mark.skipif(
    not runs_loops_on_host(), reason="kernels do not check the sizes of rows"
)
STATEMENTS = [
    "out[i, :] = x[i, :] * 2 + v",
    "out[i, 1:-1] = np.sqrt(x[i, 2:] * x[i, :-2]) + np.maximum(v[1:-1], 0.5)",
    "out[i] = np.where(x[i] > v, x[i], -v)",
    "out[i, :] -= x[i, :] * x[:, i]",
    "out[:, i] = x[i, ::-1]",
    "out[i, 1:] = out[i, :-1]",  # overlap
    "out[i, ::-1] = out[i, :] + 1",
    "out[i, :] = out[i, :] * 2",
    "out[i, :] = x[i, :1]",  # broadcasts
    "out[i, :] = 3",
    "out[i, :] = x[i, 2]",
    "out[i, 0] = np.sum(x[i] * v) + x[i].mean() + x[i].max() - np.min(v)",
    "out[i, 0] = np.dot(x[i:, i], x[i:, 1]) + x[i] @ v",
    "out[i, 0] = x[i, ::2] @ x[::2, i] + np.dot(x[i, :0], v[:0])",
    "out[i, :] = x[i, :] / np.sum(x[i, :])",
    "out[i, 0] += np.prod(x[i, 2:2]) + np.sum(x[i, 3:3])",
    "out[i, :] = np.abs(-x[i, :]) ** 2",
    "out[i, np.array([2, 0])] = x[i, 1:3]",
    "out[i, 1:3] = x[i, np.array([2, 0])] * 2",
    "out[i, :] = out[i, :] * out[i, 1]",
    "out[i, x[i] > v] = x[i, 0]",
    "if i % 2 == 0: out[i, :] = x[i, :]",
    "for k in range(2): out[i, k:] += x[i, k:]",
    "t = x[i] * 2\n        out[i, :] = t + v",
    "row = x[i]\n        out[i, :] = row * row",
    "t = x[i] * 2\n        t += v\n        out[i] = t",
    "t = x[i, :3] + v[:1]\n        out[i, :3] = t",  # broadcasts
    "t = x[i] - 1\n        t = t * t\n        out[i] = t",
    "place = out[i]\n        place[:] = x[i] + v\n        place *= v[i]",
]
INTEGERS = [
    "out[i] = x[i] + v",
    "out[i] = x[i] * x[:, i] - 1",
    "out[i] -= x[i] * 3",
    "out[i] = np.abs(x[i]) + np.maximum(-x[i], v)",
    "out[i] = x[i] // v",
    "out[i] = x[i] % v",
    "out[i] = (x[i] << 1) ^ (v & 7) | (x[i] >> 2)",
    "out[i] = x[i] ** 2",
    "out[i] = np.where(x[i] > v, x[i], 0)",
    "mask[i] = (x[i] > v) & ~(x[i] < 9)",
    "mask[i] = x[i] == v",
    "wide[i, 0] = np.sum(x[i]) + np.prod(x[i]) + np.max(x[i]) - x[i].min()",
    "wide[i, 0] = np.sum(x[i] > v)",
    "floats[i] = x[i] * floats[i] + x[i]",
    "floats[i, 0] = x[i].mean()",
    "t = x[i] + v\n        out[i] = t * t",
    "out[i] = 3",
]


def function_of(body: str, parameters: str) -> Any:
    """Return a function of generated statements."""
    text = f"def f({parameters}):\n{body}"
    name = f"<rows {text}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"np": np, "dp": dp}
    exec(compile(text, name, "exec"), space)
    return space["f"]


def compiled(statement: str, parameters: str = "x, v, out") -> Any:
    return function_of(f"    for i in dp.prange(x.shape[0]):\n        {statement}", parameters)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.sample(2)
def test_statements_on_rows_are_numpys(statement: str, dtype: str) -> None:
    random = np.random.default_rng(1)
    x = random.uniform(1, 9, (6, 6)).astype(dtype)
    v = random.uniform(1, 9, 6).astype(dtype)
    out = random.uniform(1, 9, (6, 6)).astype("float64" if dtype == "int32" else dtype)
    function = compiled(statement)
    wanted, found = out.copy(), dp.asarray(out)
    function(x, v, wanted)
    dp.jit(cache=False)(function)(dp.asarray(x), dp.asarray(v), found)
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64"])
@pytest.mark.parametrize("statement", INTEGERS)
@pytest.mark.sample(2)
def test_integers_of_rows_wrap_as_numpys(statement: str, dtype: str) -> None:
    limits, random = np.iinfo(dtype), np.random.default_rng(2)
    x = random.integers(limits.min, limits.max, (6, 6), dtype, endpoint=True)
    given = [
        x,
        random.integers(1, limits.max, 6, dtype, endpoint=True),
        random.integers(limits.min, limits.max, (6, 6), dtype, endpoint=True),
        np.zeros((6, 6), bool),
        np.zeros((6, 6), "uint64" if dtype.startswith("u") else "int64"),
        random.uniform(1, 9, (6, 6)),
    ]
    function = compiled(statement, "x, v, out, mask, wide, floats")
    found = [dp.asarray(each) for each in given]
    with np.errstate(over="ignore"):
        function(*given)
    dp.jit(cache=False)(function)(*found)
    for each, wanted in zip(found, given, strict=True):
        np.testing.assert_allclose(each.asnumpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_largest_element_of_a_row_with_nan_is_nan(dtype: str) -> None:
    x = np.arange(48, dtype=dtype).reshape(3, 16)
    x[1, 11] = np.nan
    out = dp.zeros((3, 16), dtype=dtype)
    function = compiled("out[i, 0], out[i, 1] = 0, 0\n        out[i, 0] = x[i].max()\n"
                        "        out[i, 1] = np.min(x[i])")  # fmt: skip
    dp.jit(cache=False)(function)(dp.asarray(x), dp.zeros(16), out)
    np.testing.assert_array_equal(out.asnumpy()[:, 0], x.max(axis=1))
    np.testing.assert_array_equal(out.asnumpy()[:, 1], x.min(axis=1))


@_CHECKS_SIZES
@pytest.mark.parametrize(
    "statement",
    [
        "out[i, :] = x[i, :-1]",
        "out[i, 0] = np.sum(x[i, 1:] * v)",
        "out[i] += v[2:]",
        "out[i, 0] = np.dot(x[1:, i], v)",
    ],
)
@pytest.mark.sample(2)
def test_rows_of_other_lengths_are_refused(statement: str) -> None:
    x = dp.ones((4, 4))
    with pytest.raises((ValueError, dp.exceptions.ShapeError)):
        dp.jit(cache=False)(compiled(statement))(x, dp.ones(4), dp.ones((4, 4)))


@_CHECKS_SIZES
def test_the_largest_element_of_an_empty_row_is_refused() -> None:
    with pytest.raises(ValueError, match=r"zero-size|empty"):
        dp.jit(cache=False)(compiled("out[i, 0] = x[i, 2:2].max()"))(
            dp.ones((4, 4)), dp.ones(4), dp.ones((4, 4))
        )
