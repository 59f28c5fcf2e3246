"""``prange`` loops whose bodies need NumPy functions: native code on the cores of the device."""

from __future__ import annotations

import linecache
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp

RNG = np.random.default_rng(7)
MATRICES = RNG.random((200, 6, 6)) + np.eye(6) * 4


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
@pytest.mark.sample(1)
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
    assert lines[-1] == first + 2


def unequal(a: Any, b: Any, n: int) -> None:
    for _ in range(n):
        for i in dp.prange(a.shape[0]):
            a[i, : i + 1] += b[i, :3]


def inverses_again(x: Any, out: Any, n: int) -> None:
    for _ in range(n):
        for i in dp.prange(x.shape[0]):
            out[i] = np.linalg.inv(x[i])


def limited(value: float) -> float:
    if value > 2:
        raise ValueError("too large")
    return value


def calls_what_raises(a: Any, b: Any, n: int) -> None:
    for _ in range(n):
        for i in dp.prange(a.shape[0]):
            a[i, 0] = limited(b[i, 0] + n)


def asserts(a: Any, b: Any, n: int) -> None:
    for _ in range(n):
        for i in dp.prange(a.shape[0]):
            assert a[i, 0] < 1
            a[i, 0] += b[i, 0]


def has_the_maximum_of_nothing(a: Any, b: Any, n: int) -> None:
    for _ in range(n):
        for i in dp.prange(a.shape[0]):
            a[i, 0] += np.max(b[i, n:2])


def adds_chosen_elements(a: Any, b: Any, n: int) -> None:
    some, others = np.arange(2), np.arange(3)
    for _ in range(n):
        for i in dp.prange(a.shape[0]):
            a[i, 0] += np.sum(b[i][some] + b[i][others])


def multiplies_matrices(a: Any, b: Any, n: int) -> None:
    for _ in range(n):
        for i in dp.prange(a.shape[0]):
            a[i, 0] += np.sum(b[:, 1:] @ b[:, 1:])


def steps_by_zero(a: Any, b: Any, n: int) -> None:
    for _ in range(n):
        for i in dp.prange(a.shape[0]):
            for j in range(0, 3, n - 2):
                a[i, j] += b[i, j]


def multiplies_columns_and_rows(a: Any, b: Any, n: int) -> None:
    for t in range(n):
        for i in dp.prange(a.shape[1]):
            a[0, i] += np.dot(a[t:, i], b[i, t:])


RAISING = (unequal, calls_what_raises, asserts, has_the_maximum_of_nothing, adds_chosen_elements,
           multiplies_matrices, steps_by_zero, multiplies_columns_and_rows)  # fmt: skip


@pytest.mark.parametrize("function", RAISING)
@pytest.mark.sample(2)
def test_exceptions_in_a_loop_around_prange_loops(function: Callable[..., None]) -> None:
    compiled = dp.jit(function)
    for _ in range(3):
        with pytest.raises((ValueError, AssertionError)):
            compiled(dp.zeros((6, 7)), dp.ones((7, 6))[:, :5], 2)


def test_errors_of_libraries_in_a_loop_around_prange_loops() -> None:
    with pytest.raises(dp.exceptions.ShapeError, match="does not broadcast"):
        dp.jit(unequal)(dp.zeros((6, 6)), dp.ones((6, 6)), 2)
    matrices = MATRICES[:40].copy()
    matrices[39] = 0
    with pytest.raises(np.linalg.LinAlgError):
        dp.jit(inverses_again)(dp.asarray(matrices), dp.zeros((40, 6, 6)), 2)


def symmetric_product(c: Any, a: Any, b: Any) -> None:
    for i in range(c.shape[0]):
        for j in dp.prange(c.shape[1]):
            c[:i, j] += 2 * b[i, j] * a[i, :i]
            c[i, j] += b[:i, j] @ a[i, :i]


def test_slices_of_axes_of_equal_and_unequal_lengths() -> None:
    rng = np.random.default_rng(0)
    compiled = dp.jit(symmetric_product)
    for extra in (0, 2, 0):  # the slices are equal, though the axes are not
        c, a, b = rng.random((5, 9)), rng.random((5 + extra, 5 + extra)), rng.random((5 + extra, 9))
        given = dp.asarray(c)
        compiled(given, dp.asarray(a), dp.asarray(b))
        symmetric_product(c, a, b)
        np.testing.assert_allclose(given.asnumpy(), c)
    with pytest.raises(ValueError, match=r"broadcast|sizes"):
        compiled(dp.ones((5, 9)), dp.ones((5, 2)), dp.ones((5, 9)))


def test_a_loop_on_views_is_compiled_once() -> None:
    compiled = dp.jit(symmetric_product)
    compiled(dp.zeros((5, 9)), dp.ones((5, 9))[:, :5], dp.ones((5, 9))[:, ::-1])
    (plan,) = compiled._plans.values()
    assert len(plan.native._by_orders) == 1


def test_threads_that_call_together_and_sub_devices() -> None:
    expected = np.zeros((6, 6))
    sum_of_inverses(MATRICES, expected)
    compiled = dp.jit(sum_of_inverses)
    queues = [each.queue for each in dp.Device("cpu").create_sub_devices(partition=1)[:2]]
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
    call = sys.modules["dparray._jit.host_code"].call_function

    def counting(*arguments: Any) -> Any:
        used.append(arguments[-1])
        return call(*arguments)

    monkeypatch.setattr("dparray._jit.host_code.call_function", counting)
    device = dp.Device("cpu")
    part = device.create_sub_devices(partition=1)[0]
    for queue in (device.new_queue().queue, part.queue):
        out = dp.zeros((6, 6), sycl_queue=queue)
        dp.jit(sum_of_inverses)(dp.asarray(MATRICES, sycl_queue=queue), out)
    assert used == [device.traits.units, 1]
