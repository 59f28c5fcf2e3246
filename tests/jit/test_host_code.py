"""Compiled functions of numbers and elements, which dparray's own compiler makes."""

from __future__ import annotations

import ctypes
import linecache
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dparray as dp
from dparray._array import fastpath
from dparray._jit import parts
from dparray._jit.function import Plan
from dparray._jit.host_code import HostCode
from tests.support import runs_loops_on_host

pytestmark = pytest.mark.skipif(not runs_loops_on_host(), reason="native code needs a CPU device")


def plan_of(function: Any) -> Plan:
    """Return the only plan of a compiled function."""
    (plan,) = function._plans.values()
    return plan


def largest_and_count(x: Any, limit: float) -> Any:
    largest = -math.inf
    count = 0
    for i in dp.prange(len(x)):
        largest = max(largest, x[i])
        if x[i] > limit:
            count += 1
    return largest, count, x


def rows(u: Any, v: Any, weight: float) -> None:
    for i in dp.prange(1, u.shape[0] - 1):
        for j in dp.prange(1, u.shape[1] - 1, 2):
            v[i, j] = weight * (u[i - 1, j] + u[i + 1, j - 1])


def backward(x: Any, out: Any) -> None:
    for i in dp.prange(len(x) - 1, -1, -1):
        out[len(x) - 1 - i] = x[i]


def several(x: Any, y: Any, n: int) -> float:
    total = 0.0
    for step in range(n):
        for i in dp.prange(x.size):
            y[i] = x[i] * step
        part = 0.0
        for i in dp.prange(x.size):
            part += y[i]
        total += part / n
    return total


def running(x: Any, out: Any) -> int:
    place = 0
    for i in range(len(x)):
        if x[i] < 0:
            continue
        out[place] = x[i]
        place += 1
    return place


@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8", "complex128"])
def test_arrays_of_all_orders_give_the_values_of_numpy(order: str, dtype: str) -> None:
    host = (np.arange(600).reshape(20, 30) % 91).astype(dtype)
    whole: Any = dp.asarray(host if order != "strided" else np.repeat(host, 2, axis=1))
    u = whole[:, ::2] if order == "strided" else dp.asarray(host, order=order)
    v, expected = dp.zeros((20, 30), dtype), np.zeros((20, 30), dtype)
    weight = 0.5 if "float" in dtype else 2
    dp.jit(rows)(u, v, weight)
    for i in range(1, 19):
        for j in range(1, 29, 2):
            with np.errstate(over="ignore"):
                expected[i, j] = weight * (host[i - 1, j] + host[i + 1, j - 1])
    np.testing.assert_array_equal(v.asnumpy(), expected)


def test_one_function_takes_arrays_of_other_orders_later() -> None:
    double = dp.jit(running)
    host = np.array([3.0, -1, 4, -1, 5])
    for x in (dp.asarray(host), dp.asarray(np.repeat(host, 3))[::3], dp.asarray(host[::-1])[::-1]):
        out = dp.zeros(5)
        assert double(x, out) == 3
        assert out.tolist() == [3.0, 4.0, 5.0, 0.0, 0.0]
    assert isinstance(plan_of(double).native, HostCode)


def test_read_only_arrays_are_read_and_never_written() -> None:
    once = dp.broadcast_to(dp.asarray([2.0]), (4,))
    out = dp.zeros(4)
    copied = dp.jit(running)
    assert copied(dp.ones(4), out) == 4
    assert copied(once, out) == 4
    assert out.tolist() == [2.0] * 4
    with pytest.raises(dp.exceptions.DparrayError):
        copied(dp.ones(4), once)
    assert once.tolist() == [2.0] * 4


def test_results_are_numbers_and_the_arguments_themselves() -> None:
    x = dp.asarray(np.linspace(-3, 5, 77))
    found = dp.jit(largest_and_count)
    largest, count, same = found(x, 1.0)
    assert (float(largest), count) == (5.0, int((np.linspace(-3, 5, 77) > 1).sum()))
    assert same is x
    assert found(dp.zeros(0), 1.0)[:2] == (-math.inf, 0)


@pytest.mark.parametrize("size", [0, 1, 7, 1000, 200_000])
def test_loops_one_after_the_other_and_inside_of_loops(size: int) -> None:
    x, y = dp.arange(float(size)), dp.zeros(size)
    expected = sum((np.arange(float(size)) * step).sum() / 3 for step in range(3))
    summed = dp.jit(several)
    assert float(summed(x, y, 3)) == pytest.approx(expected)
    assert isinstance(plan_of(summed).native, HostCode)


@pytest.mark.parametrize("size", [1, 2, 5, 4097])
def test_loops_count_down(size: int) -> None:
    x, out = dp.arange(float(size)), dp.zeros(size)
    dp.jit(backward)(x, out)
    np.testing.assert_array_equal(out.asnumpy(), np.arange(float(size))[::-1])


def products(x: Any) -> Any:
    product = 1
    flags = 0
    for i in dp.prange(len(x)):
        product *= x[i] % 3 + 1
        flags |= 1 << (i % 5)
    return product, flags


def test_reductions_of_integers_wrap() -> None:
    x = dp.asarray(np.arange(1000) % 7)
    product, flags = dp.jit(products)(x)
    expected = np.multiply.reduce(np.arange(1000) % 7 % 3 + 1)
    assert (int(product), int(flags)) == (int(expected), 31)


def test_plain_loops_need_no_numba(tmp_path: Path) -> None:
    program = """
import sys
import dparray as dp

@dp.jit
def total(x):
    s = 0.0
    for i in dp.prange(x.size):
        s += x[i] * x[i]
    return s

@dp.jit
def first(x, limit):
    for i in range(x.size):
        if x[i] > limit:
            return i
    return -1

@dp.jit
def axpy(a, x, y):
    for i in dp.prange(x.size):
        y[i] += a * x[i]

x, y = dp.arange(50.0), dp.ones(50)
axpy(2, x, y)
print(float(total(x)), first(y, 20.5), "numba" in sys.modules)
"""
    file = tmp_path / "program.py"
    file.write_text(program)
    found = subprocess.run([sys.executable, str(file)], capture_output=True, text=True)
    assert found.stdout.split() == ["40425.0", "10", "False"], found.stderr


@given(
    st.lists(
        st.one_of(
            st.integers(-(2**63), 2**63 - 1),
            st.floats(),
            st.integers(0, 5).map(lambda n: np.arange(float(n))),
            st.integers(0, 5).map(lambda n: np.zeros((n, 3), np.int32)[:, ::2]),
        ),
        max_size=4,
    )
)
@pytest.mark.skipif(fastpath.module is None, reason="there is no compiled module")
def test_the_compiled_module_passes_what_its_twin_passes(values: list[Any]) -> None:
    kinds = "".join(
        ("C" if value.ndim == 1 else "S")
        if isinstance(value, np.ndarray)
        else {int: "q", float: "d"}[type(value)]
        for value in values
    ).encode()
    seen: list[tuple[int, ...]] = []
    count = sum(3 + 2 * x.ndim if isinstance(x, np.ndarray) else 1 for x in values)

    @ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int64))
    def note(words: Any) -> None:
        seen.append(tuple(words[:count]))

    address = ctypes.cast(note, ctypes.c_void_p).value
    assert address is not None
    for call in (parts._call_function, parts.call_function):
        assert call(address, kinds, tuple(values), b"", 1) == ()
    one, other = seen
    assert one == other


def prefix(x: Any, n: int) -> Any:
    sums = np.zeros(n)
    doubled = np.full((n, 2), 2, dtype=np.float32)
    count = np.empty_like(x, dtype=np.int64)
    for i in range(n):
        sums[i] = x[i] + (sums[i - 1] if i > 0 else 0)
        doubled[i, 1] *= x[i]
        count[i] = i
    return sums, doubled, count


def test_new_arrays_are_results() -> None:
    host = np.arange(5.0) + 1
    made = dp.jit(prefix)
    for _ in range(3):
        sums, doubled, count = made(dp.asarray(host), 5)
        assert sums.tolist() == np.cumsum(host).tolist()
        assert doubled.dtype == np.float32
        assert doubled.tolist() == [[2, 2 * x] for x in host]
        assert (count.dtype, count.tolist()) == (np.int64, [0, 1, 2, 3, 4])
    empty, _, _ = made(dp.zeros(0), 0)
    assert empty.shape == (0,)
    with pytest.raises(ValueError, match="negative dimensions"):
        made(dp.ones(2), -2)
    assert isinstance(plan_of(made).native, HostCode)


def limit(value: float) -> float:
    if value > 4:
        raise ValueError("too large")
    return value


def checked_sum(x: Any, n: int) -> Any:
    assert n >= 0, "n is negative"
    total = 0.0
    for i in range(n):
        total += limit(x[i])
    return total


def checked_rows(x: Any) -> None:
    for i in dp.prange(len(x)):
        assert x[i] != 700, "an element is 700"
        x[i] = limit(x[i] % 5)


def test_exceptions_have_the_lines_of_the_function() -> None:
    summed = dp.jit(checked_sum)
    assert float(summed(dp.ones(3), 3)) == 3
    with pytest.raises(AssertionError, match="n is negative") as raised:
        summed(dp.ones(3), -1)
    assert raised.traceback[-1].name == "checked_sum"
    with pytest.raises(ValueError, match="too large") as other:
        summed(dp.arange(9.0), 9)
    assert [each.name for each in other.traceback][-2:] == ["checked_sum", "limit"]
    assert float(summed(dp.ones(3), 3)) == 3
    assert isinstance(plan_of(summed).native, HostCode)


@pytest.mark.parametrize("size", [10, 100_000])
def test_the_first_part_that_fails_raises(size: int) -> None:
    in_rows = dp.jit(checked_rows)
    x = dp.arange(float(size)) % 5
    in_rows(x)
    x[size // 2 :] = 700
    with pytest.raises(AssertionError, match="an element is 700"):
        in_rows(x)
    x[0] = 4.5
    with pytest.raises(ValueError, match="too large"):
        in_rows(x)


def test_functions_run_without_the_compiled_module() -> None:
    program = """if True:
        import dparray as dp
        from tests.jit.test_host_code import checked_sum, largest_and_count, prefix
        sums, doubled, count = dp.jit(prefix)(dp.ones(3), 3)
        print(sums.tolist(), doubled.tolist(), count.tolist())
        print(dp.jit(largest_and_count)(dp.arange(9.0), 4.0)[1])
        for size in (3, 9, -1):
            try:
                print(float(dp.jit(checked_sum)(dp.arange(9.0), size)))
            except Exception as error:
                print(type(error).__name__, error)
    """
    environment = {**os.environ, "DPARRAY_COMPILED": "0"}
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert found.stdout.splitlines() == [
        "[1.0, 2.0, 3.0] [[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]] [0, 1, 2]",
        "4",
        "3.0",
        "ValueError too large",
        "AssertionError n is negative",
    ], found.stderr


def weighted(x: Any, weights: Any, mode: str) -> Any:
    total = 0.0
    for i in range(len(x)):
        if mode == "first":
            total += weights[0] * x[i]
        else:
            total -= weights[1] * x[i]
    return total


def test_tuples_of_numbers_and_texts_are_arguments() -> None:
    compiled = dp.jit(weighted)
    x = dp.arange(4.0)
    assert float(compiled(x, (2, 0.5), "first")) == 12
    assert float(compiled(x, (2, 0.5), "second")) == -3
    assert float(compiled(x, (2.5, 3), "first")) == 15
    assert all(isinstance(plan.native, HostCode) for plan in compiled._plans.values())


def test_more_arrays_than_a_native_call_takes() -> None:
    names = [f"x{at}" for at in range(60)]
    text = f"def added({', '.join(names)}):\n    for i in range(2):\n        x0[i, 0] = "
    text += " + ".join(f"{name}[i, 1]" for name in names) + "\n"
    linecache.cache["<added>"] = len(text), None, text.splitlines(True), "<added>"
    space: dict[str, Any] = {}
    exec(compile(text, "<added>", "exec"), space)
    arrays = [dp.ones((2, 2)) for _ in names]
    dp.jit(cache=False)(space["added"])(*arrays)
    assert arrays[0].tolist() == [[60.0, 1.0]] * 2


WEIGHTS = (0.5, 1.5, 2.5)


def by_steps(x: Any, step: int) -> Any:
    total = 0.0
    for i in range(0, len(x), step):
        total += WEIGHTS[i] * x[i]
    return total


def by_parallel_steps(x: Any, step: int) -> None:
    for i in dp.prange(0, len(x), step):
        x[i] = WEIGHTS[i]


@pytest.mark.parametrize("function", [by_steps, by_parallel_steps])
def test_steps_of_zero_and_items_outside_of_a_tuple_raise(function: Any) -> None:
    compiled = dp.jit(function)
    compiled(dp.ones(3), 1)
    with pytest.raises(ValueError, match="must not be zero"):
        compiled(dp.ones(3), 0)
    with pytest.raises(IndexError, match="tuple index out of range"):
        compiled(dp.ones(5), 1)
    assert isinstance(plan_of(compiled).native, HostCode)


def variable_in_error(x: Any) -> None:
    for i in range(len(x)):
        if x[i] < 0:
            raise ValueError(i)


def test_an_exception_has_the_values_of_variables() -> None:
    def detailed(x: Any, k: Any, flag: Any) -> None:
        for i in range(len(x)):
            if x[i] < 0:
                raise ValueError(f"{x[i]:.2f} at {i} of {x.shape}", k, x[i], flag, k + 1, x.size)

    checked = dp.jit(variable_in_error)
    checked(dp.ones(3))
    assert isinstance(plan_of(checked).native, HostCode)
    with pytest.raises(ValueError, match=r"^1$"):
        checked(dp.asarray([1.0, -1.0]))
    for host in (np.asarray([1, -1.5], "float32"), np.asarray([1, -7], "int8")):
        with pytest.raises(ValueError, match="at 1 of") as expected:
            detailed(host, 2**40, True)
        compiled = dp.jit(detailed)
        with pytest.raises(ValueError, match="at 1 of") as raised:
            compiled(dp.asarray(host), 2**40, True)
        assert raised.value.args == expected.value.args
        assert list(map(type, raised.value.args)) == list(map(type, expected.value.args))
        assert isinstance(plan_of(compiled).native, HostCode)
        compiled(dp.ones(2, dtype=host.dtype), 1, False)
