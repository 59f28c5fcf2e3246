"""Loops inside of ``prange`` loops that become dimensions of kernels, and those that must not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import prange


@dp.device_func
def _square(x: Any) -> Any:
    return x * x


@dp.device_func
def _store(out: Any, at: Any) -> Any:
    out[at, 0] = 1.0
    return 2.0


def product(out: Any, x: Any, y: Any) -> None:
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(x.shape[1]):
                total += x[i, k] * y[k, j]
            out[i, j] = total


def inside(out: Any, x: Any, y: Any) -> None:
    for i in prange(1, x.shape[0] - 1):
        for j in range(2, x.shape[1] - 2):
            total = 0.0
            for a in range(-1, 2):
                for b in range(-2, 3):
                    total += y[a + 1, b + 2] * x[i + a, j + b]
            out[i, j] = total


def border_of_a_variable(out: Any, x: Any, y: Any) -> None:
    r = y.shape[0] // 4
    for i in prange(r, x.shape[0] - r):
        for j in range(r, x.shape[1] - r):
            total = 0.0
            for a in range(2 * r + 1):
                total += x[i + a - r, j] + x[i, j + a - r]
            out[i, j] = total


def escape(out: Any, x: Any, y: Any) -> None:
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            value, count = x[i, j], 0
            while value < 10 and count < 30:
                value = _square(value) + 0.3
                count += 1
            if count == 3:
                continue
            out[i, j] += count


def two_outputs(out: Any, x: Any, y: Any) -> None:
    for i in prange(x.shape[0]):
        for j in range(0, x.shape[1], 2):
            out[i, j] = math.exp(x[i, j])
            y[j, i] = math.sin(x[i, j]) + out[i, j]


def backwards(out: Any, x: Any, y: Any) -> None:
    for i in prange(x.shape[0]):
        for j in range(x.shape[1] - 1, -1, -1):
            out[i, j] = math.exp(x[i, j]) + j


INDEPENDENT = (product, inside, border_of_a_variable, escape, two_outputs, backwards)


def running(out: Any, x: Any, y: Any) -> None:
    for i in prange(x.shape[0]):
        for j in range(1, x.shape[1]):
            out[i, j] = math.exp(-out[i, j - 1]) + x[i, j]


def carried(out: Any, x: Any, y: Any) -> None:
    for i in prange(x.shape[0]):
        last = 0.5
        for j in range(x.shape[1]):
            last = math.exp(-last * x[i, j])
            out[i, j] = last


def first_found(out: Any, x: Any, y: Any) -> None:
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            if math.exp(x[i, j]) > 2:
                out[i, j] = 1.0
                break


def one_element(out: Any, x: Any, y: Any) -> None:
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, 0] = math.exp(x[i, j])


def counted_twice(out: Any, x: Any, y: Any) -> None:
    n = out.shape[1]
    for i in prange(x.shape[0]):
        for j in range(-n, n):
            out[i, j] = math.exp(j / n)


def at_an_index(out: Any, x: Any, y: Any) -> None:
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, int(x[i, j] * 2)] = math.exp(j / 10)


def triangle(out: Any, x: Any, y: Any) -> None:
    for i in prange(x.shape[0]):
        for j in range(i):
            out[i, j] = math.exp(x[i, j])


def in_a_function(out: Any, x: Any, y: Any) -> None:
    for i in prange(x.shape[0]):
        for j in range(x.shape[1] - 1):
            out[i, j] = math.exp(x[i, j]) + _store(y, i)


def half_of_the_index(out: Any, x: Any, y: Any) -> None:
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j // 2] = math.exp(x[i, j])


DEPENDENT = (running, carried, first_found, one_element, counted_twice, at_an_index, triangle,
             in_a_function, half_of_the_index)  # fmt: skip


def compared(function: Callable[..., Any], make: Callable[[], list[Any]], places: Any) -> None:
    """Compare a call on views of one array with the plain function."""
    host, memory = make(), make()
    function(*(place(host) for place in places))
    arrays = [dp.asarray(each) for each in memory]
    dp.jit(function)(*(place(arrays) for place in places))
    for own, expected in zip(arrays, host, strict=True):
        np.testing.assert_allclose(own.asnumpy(), expected, rtol=1e-12)


def arrays() -> list[Any]:
    random = np.random.default_rng(1).random
    return [random((9, 9)), random((9, 9)), random((9, 9))]


def three(number: int) -> Callable[[list[Any]], Any]:
    return lambda given: given[number]


@pytest.mark.parametrize("function", INDEPENDENT + DEPENDENT)
def test_values(function: Callable[..., Any]) -> None:
    compared(function, arrays, [three(0), three(1), three(2)])


@pytest.mark.parametrize("function", [escape, two_outputs, backwards])
def test_values_where_arrays_are_the_same(function: Callable[..., Any]) -> None:
    compared(function, arrays, [three(0), three(0), three(2)])


def test_values_where_views_overlap() -> None:
    def shifted(out: Any, x: Any) -> None:
        for i in prange(x.shape[0]):
            for j in range(x.shape[1]):
                out[i, j] = math.exp(-x[i, j])

    def left(given: list[Any]) -> Any:
        return given[0][:, 1:]

    def right(given: list[Any]) -> Any:
        return given[0][:, :-1]

    compared(shifted, arrays, [left, right])
    compared(shifted, arrays, [right, left])
    compared(shifted, arrays, [three(1), right])


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1)])
def test_empty_and_single_ranges(shape: tuple[int, int]) -> None:
    compared(backwards, lambda: [np.zeros(shape), np.ones(shape)], [three(0), three(1), three(1)])


@pytest.mark.parametrize("function", INDEPENDENT)
def test_independent_loops_are_dimensions_of_kernels(function: Callable[..., Any]) -> None:
    text = str(dp.explain(dp.jit(function), *map(dp.asarray, arrays())))
    assert "kernel over 2 dimensions" in text, text


@pytest.mark.parametrize("function", DEPENDENT)
def test_other_loops_are_not(function: Callable[..., Any]) -> None:
    if function is counted_twice:
        pytest.skip("this is found in the call")
    text = str(dp.explain(dp.jit(function), *map(dp.asarray, arrays())))
    assert "2 dimensions" not in text, text


def test_loops_of_three() -> None:
    def distances(out: Any, x: Any) -> None:
        for i in prange(x.shape[0]):
            for j in range(x.shape[0]):
                for k in range(x.shape[1]):
                    out[i, j, k] = math.exp(x[i, k] - x[j, k])

    host = np.random.default_rng(3).random((6, 5))
    out = dp.zeros((6, 6, 5))
    compiled = dp.jit(distances)
    compiled(out, dp.asarray(host))
    np.testing.assert_allclose(out.asnumpy(), np.exp(host[:, None] - host[None]), rtol=1e-12)
    assert "kernel over 3 dimensions" in str(dp.explain(compiled, out, dp.asarray(host)))
