"""Lists of numbers in compiled functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import runs_loops_on_host

pytestmark = pytest.mark.skipif(not runs_loops_on_host(), reason="native code needs a CPU device")


def positions(x: Any) -> Any:
    found = []
    for i in range(x.size):
        if x[i] > 0.2:
            found.append(i)
    return found


def floats(x: Any) -> Any:
    found = [1.5]
    for i in range(x.size):
        found.append(i * 0.5)
    return found


def as_array(x: Any) -> Any:
    kept = []
    for i in range(x.size):
        kept.append(x[i] * 2)
    return np.array(kept), len(kept)


def primes(x: Any) -> Any:
    found = [2]
    for k in range(3, 40 * x.size):
        is_prime = True
        for p in found:
            if p * p > k:
                break
            if k % p == 0:
                is_prime = False
                break
        if is_prime:
            found.append(k)
    return len(found), found[-1], found[0], found[len(found) // 2]


def depth_first(x: Any) -> Any:
    stack = [0]
    order = []
    while stack:
        node = stack.pop()
        order.append(node if stack else -node)
        if not stack:
            order.append(len(order))
        for child in range(2 * node + 1, 2 * node + 3):
            if child < x.size:
                stack.append(child)
    return order


def breadth_first(x: Any) -> Any:
    queue = [0]
    total = 0
    for node in queue:
        total = total * 3 % 1000003 + node
        if 2 * node + 1 < x.size:
            queue.append(2 * node + 1)
        if node % 3 == 1:
            continue
        if 2 * node + 2 < x.size:
            queue.append(2 * node + 2)
    return total, len(queue)


def lists_of_each_iteration(x: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        values = []
        for j in range(i % 5 + 1):
            values.append(x[i] + j)
        values.pop()
        values.append(x[i])
        total += values[0] * len(values) + values[-1]
    return total


FUNCTIONS = (
    positions, floats, as_array, primes, depth_first, breadth_first, lists_of_each_iteration,
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [1, 5, 300])
def test_lists_are_those_of_python(function: Callable[..., Any], dtype: str, size: int) -> None:
    host = np.random.default_rng(size).random(size).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as for a loop that runs in Python
        found = dp.jit(cache=False)(function)(dp.asarray(host))
    expected = function(host)
    if function is lists_of_each_iteration:
        assert found.dtype == expected.dtype
        assert float(found) == pytest.approx(float(expected), 1e-5)
    elif function is as_array:
        assert found[0].dtype == expected[0].dtype
        assert (found[0].tolist(), found[1]) == (expected[0].tolist(), expected[1])
    else:
        assert found == expected
        assert type(found) is type(expected)


def beyond(x: Any, at: int) -> Any:
    values = []
    for i in range(3):
        values.append(x[i])
    return values[at]  # raises


def empties(x: Any, count: int) -> Any:
    values = [1]
    for _ in range(count):
        values.pop()  # raises
    return x[0]


@pytest.mark.parametrize(
    ("function", "argument", "message"),
    [(beyond, 3, "list index out of range"), (beyond, -4, "list index out of range"),
     (empties, 2, "pop from empty list")],
)  # fmt: skip
def test_errors_have_their_line(function: Callable[..., Any], argument: int, message: str) -> None:
    compiled, x = dp.jit(cache=False)(function), dp.arange(3.0)
    assert compiled(x, 1) == function(np.arange(3.0), 1)
    with pytest.raises(IndexError, match=message) as raised:
        compiled(x, argument)
    assert str(raised.traceback[-1].statement).endswith("# raises")


def aliases(x: Any) -> Any:
    values = []
    other = values
    for i in range(x.size):
        values.append(x[i])
    return len(other)


def slices(x: Any) -> Any:
    values = []
    for i in range(x.size):
        values.append(x[i])
    return values[1:]


def inner_function(x: Any) -> Any:
    values = []

    def add(value: Any) -> None:
        values.append(value)

    for i in range(x.size):
        add(i)
    return values


def of_several_types(x: Any) -> Any:
    values = [1]
    for i in range(x.size):
        values.append(i * 0.5)
        x[i] = values[i]
    return values


@pytest.mark.parametrize("function", [aliases, slices, of_several_types])
def test_other_uses_run_in_python(function: Callable[..., Any]) -> None:
    with pytest.warns(dp.FallbackWarning, match="run in Python"):
        found = dp.jit(cache=False)(function)(dp.ones(4))
    assert found == function(np.ones(4))


def test_a_list_of_an_inner_function() -> None:
    assert dp.jit(cache=False)(inner_function)(dp.ones(4)) == [0, 1, 2, 3]
