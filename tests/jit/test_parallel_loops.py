"""``prange`` loops as native code whose parts the threads of a CPU device share."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp
from tests.benchmarks import _loop_programs as programs
from tests.support import runs_loops_on_host

pytestmark = pytest.mark.skipif(not runs_loops_on_host(), reason="native code needs a CPU device")
RNG = np.random.default_rng(5)


def shifted(y: Any, x: Any, k: int, first: int) -> None:
    for i in dp.prange(first, x.size - 3):
        y[i] = x[i - k] + x[i + k]


@pytest.mark.parametrize("first", [-2, 0, 3])
@pytest.mark.parametrize("k", [-3, 0, 3])
def test_offsets_of_either_sign(k: int, first: int) -> None:
    x, expected = RNG.random(1000), np.zeros(1000)
    shifted(expected, x, k, first)
    y = dp.zeros(1000)
    dp.jit(shifted)(y, dp.asarray(x), k, first)
    np.testing.assert_array_equal(y.asnumpy(), expected)


def box(out: Any, n: int, step: int, last: int) -> Any:
    count = 0
    for i in dp.prange(n):
        for j in dp.prange(1, 9, step):
            for k in dp.prange(last, -1, -1):
                if (i + j + k) % 3 == 0:
                    continue
                out[i, j, k] += 100 * i + 10 * j + k
    for i in dp.prange(5, n, 2):
        count += i
    return count


@pytest.mark.parametrize(("n", "step", "last"), [(7, 1, 4), (40, 3, 0), (1, 20, 6), (0, 1, 1)])
def test_ranges_of_three_dimensions(n: int, step: int, last: int) -> None:
    expected, out = np.zeros((40, 9, 7)), dp.zeros((40, 9, 7))
    assert dp.jit(box)(out, n, step, last) == box(expected, n, step, last)
    np.testing.assert_array_equal(out.asnumpy(), expected)


def reduced(x: Any, y: Any) -> Any:
    total, product, bits, least, most = 0.0, 1.0, 0, x[0], x[0]
    for i in dp.prange(x.size):
        total += x[i]
        product *= 1 + x[i] * 1e-3
        bits ^= y[i]
        least = min(least, x[i])
        if x[i] > most:
            most = x[i]
    return total, product, bits, least, most


@pytest.mark.parametrize("size", [1, 127, 129, 5000])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_reductions(dtype: str, size: int) -> None:
    x, y = RNG.random(size).astype(dtype), RNG.integers(0, 1 << 40, size)
    expected = reduced(x, y)
    found = dp.jit(reduced)(dp.asarray(x), dp.asarray(y))
    np.testing.assert_allclose([float(each) for each in found], np.array(expected, float), 1e-4)
    assert found[0].dtype == np.result_type(np.float64 if dtype == "float64" else dtype)


def test_a_sum_does_not_depend_on_the_number_of_threads() -> None:
    device = dpctl.SyclDevice("cpu")
    part = device.create_sub_devices(partition=1)[0]
    x, y = RNG.random(100_003), RNG.random(100_003)
    compiled = dp.jit(programs.sum_of_products)
    found = {
        float(compiled(dp.asarray(x, sycl_queue=queue), dp.asarray(y, sycl_queue=queue)))
        for queue in map(dpctl.SyclQueue, (device, part))
        for _ in range(20)
    }
    assert len(found) == 1
    np.testing.assert_allclose(found.pop(), x @ y)


def test_loops_of_several_threads_at_once() -> None:
    x = RNG.random((300, 400))
    expected = np.zeros_like(x)
    programs.stencil_rows(expected, x, 0.1)
    compiled, ours, results = dp.jit(programs.stencil_rows), dp.asarray(x), []

    def call() -> None:
        for _ in range(50):
            out = dp.zeros(x.shape)
            compiled(out, ours, 0.1)
            results.append(np.array_equal(out.asnumpy(), expected))

    callers = [threading.Thread(target=call) for _ in range(4)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert len(results) == 200
    assert all(results)


@pytest.mark.parametrize(
    ("name", "shapes", "form"),
    [
        ("stencil_rows", [(9, 9), (9, 9)], "native parallel region over 1 dimension"),
        ("stencil_both", [(9, 9), (9, 9)], "native parallel region over 2 dimensions"),
        ("transposition", [(9, 9), (9, 9)], "native parallel region over 1 dimension"),
        ("row_maxima", [(9,), (9, 9)], "native parallel region over 1 dimension"),
        ("matrix_product", [(9, 9), (9, 9), (9, 9)], "kernel over 2 dimensions: iterations"),
        ("mandelbrot", [(9, 9)], "kernel over 2 dimensions: iterations"),
        ("n_body", [(3, 9), (3, 9)], "kernel over 1 dimension: it computes vectors"),
    ],
)
def test_explain_names_the_form(name: str, shapes: list[Any], form: str) -> None:
    compiled = dp.jit(getattr(programs, name))
    arrays = [dp.ones(shape) for shape in shapes]
    scalars = (0.1,) if name.startswith("stencil") else (50,) if name == "mandelbrot" else ()
    assert form in str(dp.explain(compiled, *arrays, *scalars))


def test_explain_says_what_prevents_vectors() -> None:
    def columns(out: Any, x: Any) -> None:
        for i in dp.prange(x.shape[0]):
            total = 0.0
            for j in range(x.shape[0]):
                total += x[i, j] * x[j, i + j]
            out[i] = total

    text = str(dp.explain(dp.jit(columns), dp.zeros(4), dp.ones((4, 8))))
    assert "x[j, i + j] steps over rows" in text
    assert "fastmath=True" in text


def _run(code: str, **environment: str) -> str:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=root,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


_SUMS = """
    import os, signal, sys, threading, time
    import numpy as np, dparray as dp
    from tests.benchmarks import _loop_programs as programs
    x = np.random.default_rng(0).random(2_000_000)
    compiled, ours = dp.jit(programs.sum_of_products), dp.asarray(x)
    assert np.isclose(float(compiled(ours, ours)), x @ x)
"""


@pytest.mark.process
def test_a_forked_process_has_threads_of_its_own() -> None:
    code = """
    child = os.fork()
    for _ in range(30):
        assert np.isclose(float(compiled(ours, ours)), x @ x)
    if not child:
        print("child", flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    """
    assert _run(_SUMS + code) == "child\n"


def spins(out: Any, count: int) -> None:
    for i in dp.prange(out.shape[0]):
        for j in range(count):
            out[i, j % 8] += 1


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.usefixtures("heeds_interrupts")
@pytest.mark.parametrize("environment", [{}, {"DPARRAY_COMPILED": "0"}], ids=["C", "Python"])
def test_an_interrupt_ends_a_long_loop(environment: dict[str, str]) -> None:
    code = """
    from tests.jit.test_parallel_loops import spins
    long, out = dp.jit(spins), dp.zeros((1000, 8))
    long(out, 1)
    start = time.perf_counter()
    long(out, 100_000)
    whole = 200 * (time.perf_counter() - start)
    start = time.perf_counter()
    try:
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        long(out, 20_000_000)
    except KeyboardInterrupt:
        print("interrupted", time.perf_counter() - start < whole / 2)
    assert np.isclose(float(compiled(ours, ours)), x @ x)
    """
    assert _run(_SUMS + code, **environment) == "interrupted True\n"


@pytest.mark.process
@pytest.mark.slow
def test_loops_without_the_compiled_module() -> None:
    code = """
    from tests.jit import test_parallel_loops as tests
    tests.test_ranges_of_three_dimensions(7, 1, 4)
    tests.test_reductions("float64", 5000)
    tests.test_a_sum_does_not_depend_on_the_number_of_threads()
    from tests.jit import test_prange_calls as others
    others.test_an_exception_of_any_thread_is_raised([70, 130])
    print("done")
    """
    assert _run(_SUMS + code, DPARRAY_COMPILED="0") == "done\n"
