"""``prange`` loops whose bodies need NumPy functions: native code on the cores of the device."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp

RNG = np.random.default_rng(7)
MATRICES = RNG.random((200, 6, 6)) + np.eye(6) * 4


@pytest.fixture(autouse=True)
def always_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dparray._jit.regions._MIN_SECONDS", 0.0)


def sum_of_inverses(x: Any, out: Any) -> None:
    for i in dp.prange(x.shape[0]):
        inverse = np.linalg.inv(x[i])
        out += inverse


def medians(x: Any, out: Any) -> Any:
    largest = 0.0
    for i in dp.prange(x.shape[0]):
        for j in dp.prange(x.shape[1]):
            row = np.sort(x[i, j])
            out[i, j] = row[row.size // 2]
            largest = max(largest, out[i, j])
    return largest


def test_library_calls_of_iterations() -> None:
    out, expected = dp.zeros(MATRICES.shape[:2]), np.zeros(MATRICES.shape[:2])
    assert dp.jit(medians)(dp.asarray(MATRICES), out) == medians(MATRICES, expected)
    np.testing.assert_array_equal(out.asnumpy(), expected)


def test_no_update_of_an_array_by_several_threads_is_lost() -> None:
    expected = np.ones((6, 6))
    sum_of_inverses(MATRICES, expected)
    compiled, x = dp.jit(sum_of_inverses), dp.asarray(MATRICES)
    for _ in range(20):
        out = dp.ones((6, 6))
        compiled(x, out)
        np.testing.assert_allclose(out.asnumpy(), expected, 1e-12)


def _from_text(text: str) -> Callable[..., Any]:
    name = f"<{text}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"dp": dp, "np": np}
    exec(compile(text, name, "exec"), space)
    function: Callable[..., Any] = space["f"]
    return function


@pytest.mark.parametrize("dtype", ["int64", "float64", "float32", "bool"])
@pytest.mark.parametrize(
    "update",
    ["out += {}", "out -= {}", "out *= {}", "out |= {}", "out &= {}", "out ^= {}",
     "out = out + {}", "out = out * {}", "out = np.minimum(out, {})", "out = np.maximum({}, out)"],
)  # fmt: skip
def test_reductions_of_arrays(update: str, dtype: str) -> None:
    function = _from_text(
        "def f(x, out):\n"
        "    for i in dp.prange(x.shape[0]):\n"
        f"        {update.format('np.sort(x[i])')}\n"
        "    return out\n"
    )
    host = RNG.integers(1, 4, (30, 5)).astype(dtype)
    start = RNG.integers(1, 4, 5).astype(dtype)
    given = start.copy()
    try:
        expected = function(host, given)
    except TypeError:  # the operator is not defined for the dtype
        return
    out = dp.asarray(start)
    found = dp.jit(cache=False)(function)(dp.asarray(host), out)
    np.testing.assert_allclose(found.asnumpy(), expected, 1e-5)
    np.testing.assert_allclose(out.asnumpy(), given, 1e-5)
    assert found.dtype == expected.dtype
    assert (found is out) == (expected is given)


@pytest.mark.parametrize("bad", [[0], [199], [70, 130]])
def test_an_exception_of_any_thread_is_raised(bad: list[int]) -> None:
    matrices = MATRICES.copy()
    matrices[bad] = 0
    with pytest.raises(np.linalg.LinAlgError) as caught:
        dp.jit(sum_of_inverses)(dp.asarray(matrices), dp.zeros((6, 6)))
    lines = [each.lineno + 1 for each in caught.traceback if each.name == "sum_of_inverses"]
    first = sum_of_inverses.__code__.co_firstlineno
    assert lines == [first + 1, first + 2]


def unequal(a: Any, b: Any, n: int) -> None:
    for _ in range(n):
        for i in dp.prange(a.shape[0]):
            a[i, : i + 1] += b[i, :3]


def inverses_again(x: Any, out: Any, n: int) -> None:
    for _ in range(n):
        for i in dp.prange(x.shape[0]):
            out[i] = np.linalg.inv(x[i])


def test_exceptions_in_a_loop_around_prange_loops() -> None:
    with pytest.raises(dp.exceptions.ShapeError, match="does not broadcast"):
        dp.jit(unequal)(dp.zeros((6, 6)), dp.ones((6, 6)), 2)
    matrices = MATRICES[:40].copy()
    matrices[39] = 0
    with pytest.raises(np.linalg.LinAlgError):
        dp.jit(inverses_again)(dp.asarray(matrices), dp.zeros((40, 6, 6)), 2)


def test_exceptions_are_raised_with_every_threading_layer_of_numba() -> None:
    name = test_exceptions_in_a_loop_around_prange_loops.__name__
    code = f"from tests.jit import {Path(__file__).stem} as tests; tests.{name}()"
    for layer in ("tbb", "workqueue"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "NUMBA_THREADING_LAYER": layer},
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr


def test_a_partial_sum_cannot_be_read() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for i in dp.prange(x.shape[0]):
            total += x[i]
            x[i] = total
        return total

    with pytest.raises(dp.exceptions.KernelCompileError, match=r"x\[i\] = total"):
        dp.jit(f)(dp.ones(4))


def test_a_partial_minimum_can_be_read() -> None:
    def f(x: Any) -> Any:
        least = 1e9
        for i in dp.prange(x.shape[0]):
            if x[i] < least:
                least = min(least, x[i])
        return least

    assert dp.jit(f)(dp.asarray(MATRICES[:, 0, 0])) == MATRICES[:, 0, 0].min()


def test_threads_that_call_together_and_sub_devices() -> None:
    device = dpctl.SyclDevice("cpu")
    expected = np.zeros((6, 6))
    sum_of_inverses(MATRICES, expected)
    compiled = dp.jit(sum_of_inverses)
    queues = [dpctl.SyclQueue(each) for each in device.create_sub_devices(partition=1)[:2]]
    results = []

    def call(queue: Any) -> None:
        x = dp.asarray(MATRICES, sycl_queue=queue)
        for _ in range(5):
            out = dp.zeros((6, 6), sycl_queue=queue)
            compiled(x, out)
            results.append(out.asnumpy())

    callers = [threading.Thread(target=call, args=(queue,)) for queue in queues]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert len(results) == 5 * len(queues)
    for found in results:
        np.testing.assert_allclose(found, expected, 1e-12)


def test_a_sub_device_uses_its_share_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []

    def counted(work: Any, pieces: list[Any], threads: int) -> None:
        used.append(threads)
        for piece in pieces:
            work(piece)

    monkeypatch.setattr("dparray._jit.regions.share_out", counted)
    device = dpctl.SyclDevice("cpu")
    part = device.create_sub_devices(partition=1)[0]
    for each in (device, part):
        queue = dpctl.SyclQueue(each)
        out = dp.zeros((6, 6), sycl_queue=queue)
        dp.jit(sum_of_inverses)(dp.asarray(MATRICES, sycl_queue=queue), out)
    assert used == [device.max_compute_units, 1]
