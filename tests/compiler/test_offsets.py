"""Indices with offsets that are arguments: right for all signs, and fast for positive ones."""

import numpy as np
import pytest

import dparray as dp


@dp.kernel
def shifted(item, x, y, s):
    i = item.get_id(0) + s
    y[i] = 2 * x[i]


@dp.kernel
def flat(item, x, y, width, s):
    for k in range(s, s + width):
        y[item.get_id(0) * width + k] = x[item.get_id(0), k - s]


@dp.kernel
def stepped(item, x, y, start, step):
    for k in range(start, x.shape[0], step):
        y[item.get_id(0), k] = x[k]


@dp.kernel
def bounded(item, x, y, n):
    i = item.get_id(0)
    if i < n:
        y[i] = x[i] + n


@pytest.mark.parametrize("s", [0, 3, -1, -6, -10])
def test_offsets_of_all_signs_index_as_in_python(s: int) -> None:
    x = np.arange(10.0)
    y = dp.zeros(10)
    # Work-items of negative indices count from the end.
    n = 10 - s if s > 0 else 10
    shifted[dp.Range(n)](dp.asarray(x), y, s)
    expected = np.zeros(10)
    for i in range(n):
        expected[i + s] = 2 * x[i + s]
    assert y.tolist() == expected.tolist()


@pytest.mark.parametrize("s", [0, 2, -3])
def test_offsets_in_products_and_starts_of_loops(s: int) -> None:
    x = np.arange(12.0).reshape(4, 3)
    y = dp.zeros(20)
    flat[dp.Range(4)](dp.asarray(x), y, 3, s)
    expected = np.zeros(20)
    for i in range(4):
        for k in range(s, s + 3):
            expected[i * 3 + k] = x[i, k - s]
    assert y.tolist() == expected.tolist()


@pytest.mark.parametrize("start", [1, -4])
def test_ranges_with_arguments(start: int) -> None:
    x = np.arange(7.0)
    y = dp.zeros((2, 7))
    stepped[dp.Range(2)](dp.asarray(x), y, start, 2)
    expected = np.zeros((2, 7))
    for k in range(start, 7, 2):
        expected[:, k] = x[k]
    assert y.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("kernel", "arguments", "loads"),
    [(shifted, (1,), 2), (bounded, (5,), 1)],
)
def test_code_is_there_twice_only_for_offsets(kernel, arguments, loads: int) -> None:
    x = dp.arange(8.0)
    fresh = dp.kernel(kernel.py_func)
    fresh[dp.Range(5)](x, dp.zeros_like(x), *arguments).wait()
    (text,) = fresh.inspect_llvm().values()
    assert text.count("load double") == loads
    checks = ["select" in block for block in text.split("\n\n") if "load double" in block]
    assert False in checks
