"""The values that ``prange`` loops read, and loops that read no array."""

from __future__ import annotations

import collections
import linecache
import math
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp
from dparray._jit import regions
from dparray._kernel.launch import call_kernel
from dparray.exceptions import KernelCompileError
from tests.jit.test_dependences import arguments, assert_refused, assert_same

WEIGHTS = [0.5, 2, 3]
ARRAYS = [dp.ones(7), dp.ones(7)]
NAMES = {"a": 1}
Pair = collections.namedtuple("Pair", "first second")
PAIR = Pair(2.0, 3)


def tuples_and_lists(a: Any, b: Any, c: Any) -> Any:
    weights = [0.25, 0.5, 1]
    counts = [i * 2 for i in range(3)]
    scales = (b[1], b[3])
    rows = [b, (c[:, 0], 2.0)]
    own = WEIGHTS
    pair = PAIR
    row: Any = [1.0, 2.0, 3.0]
    row = np.asarray(row)
    for i in dp.prange(len(a)):
        a[i] = (
            weights[i % 3] * b[i]
            + row[i % row.shape[0]]
            + WEIGHTS[i % 3]
            + len(own)
            + counts[i % 3]
        )
        a[i] += scales[i % 2] + rows[0][i] + rows[1][0][i] * rows[1][1] + pair.first
    counts[1] = 7
    total = 0.0
    for i in dp.prange(3):
        for j in dp.prange(2):
            total += counts[i] * scales[j]
    for j in range(2):
        for i in dp.prange(len(a)):
            a[i] += counts[j] * rows[0][i]
    for i in range(1, len(a)):
        a[i] += weights[i % 3] * rows[1][0][i - 1]
    return total


def with_array_statements(a: Any, b: Any, c: Any) -> Any:
    weights, rows = [1, 2.5], (b, c)
    for i in dp.prange(len(a)):
        a[i] = rows[1][i].sum() * weights[i % 2] + rows[0][:2].sum()
    return 0


@pytest.mark.parametrize("function", [tuples_and_lists, with_array_statements])
def test_tuples_and_lists_of_numbers_and_arrays(function: Any) -> None:
    assert_same(function)


def test_new_items_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    @dp.jit
    def scaled(x: Any, k: Any) -> None:
        weights = [k, 2 * k]
        for i in dp.prange(x.size):
            x[i] = weights[i % 2]

    x = dp.ones(4)
    scaled(x, 1.5)
    monkeypatch.setattr("dparray._kernel.function.KernelFunction._compile", None)
    scaled(x, 2.5)
    assert x.tolist() == [2.5, 5, 2.5, 5]


def test_the_simulator_reads_the_items_of_lists() -> None:
    hosts, arrays = arguments(), [dp.asarray(x) for x in arguments()]
    assert float(dp.simulate(dp.jit(tuples_and_lists), *arrays)) == tuples_and_lists(*hosts)
    np.testing.assert_array_equal(arrays[0].asnumpy(), hosts[0])


def a_dict(a: Any, b: Any, c: Any) -> None:
    a[0] = 100
    table = {"k": 2.0}
    for i in dp.prange(len(a)):
        a[i] = table["k"]


def a_set(a: Any, b: Any, c: Any) -> None:
    a[0] = 100
    chosen = {x % 2 for x in range(3)}
    for i in dp.prange(len(a)):
        a[i] = i in chosen


def a_range(a: Any, b: Any, c: Any) -> None:
    a[0] = 100
    places = range(3)
    for i in dp.prange(len(a)):
        a[i] = places[i % 3]


def a_dict_of_the_module(a: Any, b: Any, c: Any) -> None:
    a[0] = 100
    names = NAMES
    for i in dp.prange(len(a)):
        a[i] = len(names)


def a_dict_in_a_loop_over_elements(a: Any, b: Any, c: Any) -> None:
    a[0] = 100
    table = dict(k=2.0)  # noqa: C408
    for i in range(len(a)):
        a[i] = table["k"]
    for i in dp.prange(len(a)):
        a[i] = 1


def arrays_of_the_module(a: Any, b: Any, c: Any) -> None:
    a[0] = 100
    for i in dp.prange(len(a)):
        a[i] = ARRAYS[0][i]


def a_list_that_changes(a: Any, b: Any, c: Any) -> None:
    a[0] = 100
    found = [0.0, 0.0]
    for i in dp.prange(len(a)):
        a[i] = found[0]
        found[i % 2] = b[i]


def a_list_that_grows(a: Any, b: Any, c: Any) -> None:
    a[0] = 100
    found = [0.0]
    for i in dp.prange(len(a)):
        a[i] = 1
        found.append(b[i])


@pytest.mark.parametrize("function", [
    a_dict, a_set, a_range, a_dict_of_the_module,
    arrays_of_the_module, a_list_that_changes, a_list_that_grows,
])  # fmt: skip
def test_other_values_are_refused_before_anything_runs(function: Any) -> None:
    assert_refused(function, r"is a (dict|set|range|list) made(.|\n)*\^|value of 'ARRAYS'")


def test_a_loop_that_reads_a_dict_runs_in_python() -> None:
    x = dp.zeros(3)
    with pytest.warns(dp.FallbackWarning, match=r"'table' is a dict made outside of the loop"):
        dp.jit(a_dict_in_a_loop_over_elements)(x, x, x)
    assert x.tolist() == [1.0] * 3


def test_long_lists_and_objects_are_refused_when_the_loop_is_reached() -> None:
    @dp.jit
    def read(x: Any, length: Any) -> None:
        weights = [1.5] * length if length else ("a", x)
        for i in dp.prange(x.size):
            x[i] = len(weights)

    x = dp.zeros(2)
    read(x, 64)
    assert x.tolist() == [64, 64]
    for length in (65, 0):
        with pytest.raises(KernelCompileError, match="at most 64"):
            read(x, length)


def pi(count: Any) -> Any:
    total = 0.0
    for i in dp.prange(count):
        x = (i + 0.5) / count
        total += 4.0 / (1.0 + x * x)
    return total / count


def collatz(count: Any) -> Any:
    steps, most = 0, 0
    for i in dp.prange(1, count):
        number, own = i, 0
        while number > 1:
            number = number // 2 if number % 2 == 0 else 3 * number + 1
            own += 1
        steps += own
        most = max(most, own)
    return steps, most


def points_of_a_circle(count: Any) -> Any:
    inside = 0
    for i in dp.prange(count):
        for j in dp.prange(count):
            if i * i + j * j < count * count:
                inside += 1
    return inside


@pytest.mark.parametrize("count", [0, 1, 3000])
def test_loops_without_arrays(count: int) -> None:
    if count:
        assert math.isclose(dp.jit(pi)(count), pi(count), rel_tol=1e-12)
    assert dp.jit(collatz)(count) == collatz(count)
    assert dp.jit(points_of_a_circle)(min(count, 40)) == points_of_a_circle(min(count, 40))
    assert dp.simulate(dp.jit(collatz), min(count, 5)) == collatz(min(count, 5))


def test_a_loop_without_arrays_runs_on_the_queue_of_the_function() -> None:
    @dp.jit
    def added(x: Any, count: Any) -> Any:
        total = 0
        for i in dp.prange(count):
            total += i
        return x + total

    part = dpctl.SyclDevice("cpu").create_sub_devices(partition=[1, 1])[1]
    queue = dpctl.SyclQueue(part)
    seen: list[Any] = []

    def launch(kernel: Any, space: Any, *arguments: Any) -> None:
        seen.append(next(x for x in arguments if isinstance(x, dp.ndarray)).sycl_queue)
        call_kernel(kernel, space, *arguments)

    token = regions.launcher.set(launch)
    try:
        assert added(dp.ones(2, sycl_queue=queue), 10).tolist() == [46, 46]
        with dp.use_device(queue):
            assert dp.jit(collatz)(30) == collatz(30)
            assert "no argument is an array" in str(dp.explain(dp.jit(collatz), 30))
    finally:
        regions.launcher.reset(token)
    assert len(seen) == 2
    assert all(each == queue for each in seen)
    assert "no argument" not in str(dp.explain(added, dp.ones(2, sycl_queue=queue), 10))


def test_a_loop_without_any_result_is_refused() -> None:
    def nothing(a: Any, b: Any, c: Any) -> None:
        a[0] = 100
        for i in dp.prange(3):
            number = i * 2  # noqa: F841

    assert_refused(nothing, r"neither writes an array nor has a reduction(.|\n)*\^\nuse range")


def histogram(a: Any, b: Any, c: Any) -> None:
    for i in dp.prange(len(b)):
        dp.AtomicRef(a, int(b[i])).fetch_add(1)


def test_atomics_in_prange() -> None:
    hosts = arguments()
    x = dp.zeros(7)
    for run in (dp.jit(histogram), lambda *given: dp.simulate(dp.jit(histogram), *given)):
        x[...] = 0
        run(x, dp.asarray(hosts[1]), 0)
        assert x.tolist() == np.bincount(hosts[1].astype(int), minlength=7).tolist()


def test_atomics_beside_array_statements_are_refused() -> None:
    def counted(a: Any, b: Any, c: Any) -> None:
        a[0] = 100
        for i in dp.prange(len(b)):
            dp.AtomicRef(a, int(b[i])).fetch_add(1)
            c[i, :] = b[:3].sum()

    arrays = [dp.asarray(x) for x in arguments()]
    with pytest.raises(KernelCompileError, match=r"dp\.AtomicRef needs a kernel(.|\n)*\^\nwrite"):
        dp.jit(counted)(*arrays)
    assert arrays[0].tolist() == [0] * 7


@pytest.mark.parametrize("update", ["max(x[i], m)", "max(m, x[i])"])
def test_nan_is_left_out_of_largest_elements(update: str) -> None:
    text = f"def f(x, m):\n    for i in dp.prange(x.size):\n        m = {update}\n    return m\n"
    name = f"<nan {update}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"dp": dp}
    exec(compile(text, name, "exec"), space)
    function = dp.jit(cache=False)(space["f"])
    for at in (0, 500, 999):
        x = np.arange(1000.0)[::-1].copy()
        x[at] = np.nan
        assert function(dp.asarray(x), -1.0) == (998 if at == 0 else 999)
