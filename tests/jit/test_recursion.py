"""Functions that call themselves, or each other, in native code."""

from __future__ import annotations

import linecache
import math
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import compiled_module, runs_loops_on_host

needs_native = pytest.mark.skipif(not runs_loops_on_host(), reason="needs native code")


def is_even(n: int) -> Any:
    return True if n == 0 else is_odd(n - 1)


def is_odd(n: int) -> Any:
    return False if n == 0 else is_even(n - 1)


def first(n: int) -> Any:
    return 0 if n <= 0 else 1 + second(n - 1)


def second(n: int) -> Any:
    return 0 if n <= 0 else 10 + third(n - 1)


def third(n: int) -> Any:
    return 0 if n <= 0 else 100 + first(n - 1) + fourth(n - 2)


def fourth(n: int) -> Any:
    return 0 if n <= 0 else second(n - 1) + fourth(n - 1)


def ping(n: int) -> Any:
    return 1 if n <= 0 else pong(n - 1) * 2


def pong(n: int) -> Any:
    return ping(n - 1) + 1


def both(n: int) -> Any:
    return pong(n) + ping(n) + pong(n + 1)


def through_closures(n: int) -> Any:
    def down(m: int) -> int:
        return 0 if m <= 0 else 1 + up(m - 1)

    def up(m: int) -> int:
        return 0 if m <= 0 else 10 + down(m - 1)

    compiled = dp.jit(cache=False)(down)
    return compiled(n)


def product(n: int, total: int = 1) -> Any:
    return total if n <= 1 else product(n - 1, total * n)


def product_by_name(n: int, total: int = 1) -> Any:
    return total if n <= 1 else product_by_name(n=n - 1, total=total * n)


def doubled_in_int8(n: int, x: Any) -> Any:
    return x + x if n == 0 else doubled_in_int8(n - 1, np.int8(x))


def tenth_in_float64(n: int, x: Any) -> Any:
    return float(x * 0.1) if n == 0 else tenth_in_float64(n - 1, np.float64(x) + 0.5)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [(is_even, (7,)), (is_odd, (7,)), (first, (11,)), (both, (8,)),
     (through_closures, (9,)), (product, (6,)),
     (product_by_name, (6,)), (doubled_in_int8, (2, 100)),
     (tenth_in_float64, (2, np.float32(0.3)))],
    ids=lambda each: getattr(each, "__name__", ""),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:overflow")
def test_functions_of_numbers(function: Callable[..., Any], arguments: Any) -> None:
    assert dp.jit(cache=False)(function)(*arguments) == function(*arguments)


def in_a_loop(x: Any) -> None:
    for i in range(x.size):
        x[i] = first(i)


def in_a_prange_loop(x: Any) -> None:
    for i in dp.prange(x.size):
        x[i] = first(i)


def in_a_vector_loop(x: Any) -> None:
    for i in dp.prange(x.size):
        x[i] = math.exp(x[i] - 1) * first(i)


def own_prange_loop(x: Any, depth: int = 3) -> Any:
    total = 0.0
    for i in dp.prange(x.size):
        total += x[i] if depth == 0 else x[i] * own_prange_loop(x, depth - 1)
    return total


def alternating(x: Any, start: int = 0) -> None:
    if start < x.size:
        x[start] = start
        negative(x, start + 1)


def negative(x: Any, start: int) -> None:
    if start < x.size:
        x[start] = -start
        alternating(x, start + 1)


def sum_of_rows(x: Any) -> Any:
    if x.ndim == 1:
        return x.sum()
    total = 0.0
    for i in range(x.shape[0]):
        total += sum_of_rows(x[i])
    return total


@pytest.mark.parametrize(
    "function", [in_a_loop, in_a_prange_loop, in_a_vector_loop, own_prange_loop, alternating]
)
def test_functions_of_arrays(function: Callable[..., Any]) -> None:
    x, expected = dp.ones(6), np.ones(6)
    assert dp.jit(cache=False)(function)(x) == function(expected)
    np.testing.assert_array_equal(x.asnumpy(), expected)


def test_fewer_dimensions_in_each_call() -> None:
    assert dp.jit(cache=False)(sum_of_rows)(dp.ones((2, 3, 4))) == 24


def test_debug_mode() -> None:
    x, expected = dp.ones(6), np.ones(6)
    in_a_loop(expected)
    with dp.config.override(debug=True):
        dp.jit(cache=False)(in_a_loop)(x)
    np.testing.assert_array_equal(x.asnumpy(), expected)


def test_many_functions_that_call_each_other() -> None:
    names = [f"part_{at}" for at in range(8)]
    calls = " + ".join(f"{name}(n - {at + 3})" for at, name in enumerate(names))
    text = "".join(f"def {name}(n):\n    return 1 if n <= 0 else {calls}\n" for name in names)
    linecache.cache["<parts>"] = len(text), None, text.splitlines(True), "<parts>"
    space: dict[str, Any] = {}
    exec(compile(text, "<parts>", "exec"), space)
    assert dp.jit(cache=False)(space["part_0"])(20) == space["part_0"](20)


def endless(x: Any, n: int) -> Any:
    return x.sum() if n == 0 else endless(x[None], n - 1)


def calls_endless(x: Any) -> Any:
    return endless(x, 2)


@needs_native
def test_other_types_in_each_call_are_no_native_code() -> None:
    compiled = dp.jit(cache=False)(calls_endless)
    assert compiled(dp.ones(3)) == 3
    assert "not native" in compiled.inspect()


def runs_away(n: int) -> Any:
    return runs_back(n + 1)


def runs_back(n: int) -> Any:
    return runs_away(n + 1)


def calls_runaway(x: Any) -> None:
    for i in range(x.size):
        x[i] = runs_away(i)


@needs_native
def test_recursion_without_an_end_is_an_error() -> None:
    compiled = dp.jit(cache=False)(calls_runaway)
    with (
        pytest.warns(dp.FallbackWarning, match="return a value that needs no call"),
        pytest.raises(RecursionError),
    ):
        compiled(dp.ones(3))


def depth(n: int) -> Any:
    return 0 if n == 0 else 1 + depth(n - 1)


def counts_depth(x: Any, n: int) -> Any:
    for i in range(x.size):
        x[i] = depth(n)
    return x


def counts_depth_in_parts(x: Any, n: int) -> Any:
    for i in dp.prange(x.size):
        x[i] = depth(n)
    return x


def is_even_sum(x: Any, n: int) -> Any:
    count = 0
    for i in range(x.size):
        count += is_even(n + 2 * i)
    return count


@needs_native
@pytest.mark.skipif(compiled_module is None, reason="the fast path is not built")
@pytest.mark.parametrize("function", [counts_depth, counts_depth_in_parts, is_even_sum])
def test_recursion_that_is_too_deep_raises_as_in_python(function: Callable[..., Any]) -> None:
    compiled = dp.jit(cache=False)(function)
    x = dp.zeros(3, dtype="int64")
    expected = function(np.zeros(3, np.int64), 40)
    np.testing.assert_array_equal(np.asarray(dp.asnumpy(compiled(x, 40))), expected)
    for n in (-1, 10**12):
        with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
            compiled(x, n)
    np.testing.assert_array_equal(np.asarray(dp.asnumpy(compiled(x, 40))), expected)


def raises_at_three(x: Any, i: int) -> Any:
    if i == 3:
        raise ValueError("three")
    return passes_on(x, i + 1)


def passes_on(x: Any, i: int) -> Any:
    return raises_at_three(x, i) + x[i]


def calls_raising(x: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        total += raises_at_three(x, i)
    return total


@needs_native
def test_an_exception_has_the_lines_of_all_functions() -> None:
    with pytest.raises(ValueError, match="three") as raised:
        dp.jit(cache=False)(calls_raising)(dp.ones(2))
    names = [each.name for each in traceback.extract_tb(raised.value.__traceback__)]
    assert names[-8:] == ["calls_raising", *["raises_at_three", "passes_on"] * 3, "raises_at_three"]


_PROGRAM = """
import dparray as dp

def to_itself(n):
    return {end} if n <= 0 else to_itself(n - 1) + 1
def to_other(n):
    return {end} if n <= 0 else back(n - 1) + 1
def back(n):
    return 0 if n <= 0 else to_other(n - 1) + 10

@dp.jit
def first_loop(x):
    for i in range(x.size):
        x[i] = to_itself(i)
@dp.jit
def second_loop(x):
    for i in range(x.size):
        x[i] = back(i)

x, y = dp.ones(4), dp.ones(4)
first_loop(x)
second_loop(y)
print(x.tolist(), y.tolist())
"""


@needs_native
@pytest.mark.process
@pytest.mark.slow
def test_the_disk_cache(tmp_path: Path) -> None:
    environment = {**os.environ, "DPARRAY_CACHE_DIR": str(tmp_path / "cache")}
    for end in (0, 0, 5):
        (tmp_path / "program.py").write_text(_PROGRAM.format(end=end))
        output = subprocess.check_output(
            [sys.executable, "program.py"], text=True, cwd=tmp_path, env=environment
        )
        own = [float(end + i) for i in range(4)]
        assert output.strip() == f"{own} {[0.0, 10.0 + end, 11.0, 21.0 + end]}"
    assert len([*(tmp_path / "cache").rglob("*.region")]) == 4


def test_a_changed_function_of_a_recursion(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, x = dp.jit(cache=False)(in_a_loop), dp.zeros(6)
    compiled(x)
    monkeypatch.setitem(globals(), "fourth", product)
    compiled(x)
    expected = np.zeros(6)
    in_a_loop(expected)
    np.testing.assert_array_equal(x.asnumpy(), expected)
