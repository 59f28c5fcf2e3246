"""``dp.jit``: compiled functions compared with plain Python on NumPy arrays."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import warnings
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import dpnp
import numpy as np
import pytest

import dparray as dp
from dparray._compiler import cache
from tests.support import runs_loops_on_host

RNG = np.random.default_rng(36)


def another_queue() -> Any:
    """Return another queue of the default device."""
    return dp.ones(1).device.new_queue().queue


@pytest.fixture(params=["default", "second", "in order", "sub-device"])
def queue(request: pytest.FixtureRequest) -> Any:
    device = dp.ones(1).device
    if request.param == "default":
        return device.queue
    if request.param != "sub-device":
        return device.new_queue(in_order=request.param == "in order").queue
    if device.traits.units < 2 or "partition" not in device.traits.aspects:
        pytest.skip("the device cannot be split in two")
    return device.create_sub_devices(partition=1)[0].queue


def explains(function: Any, *arguments: Any, native: str, kernel: str) -> bool:
    """Return whether an explanation has the text for a CPU device, or for other devices."""
    text = native if runs_loops_on_host() else kernel
    return text in str(dp.explain(function, *arguments))


ON_DRIVER = "driver in Python, array statements by dparray"
ONE_WORK_ITEM = "kernel of one work-item"


@dp.jit
def pairwise(x1: Any, x2: Any, out: Any) -> None:
    for i in dp.prange(x1.shape[0]):
        for j in range(x2.shape[0]):
            d = 0.0
            for k in range(x1.shape[1]):
                t = x1[i, k] - x2[j, k]
                d += t * t
            out[i, j] = math.sqrt(d)


@dp.jit
def step(u: Any, dt: Any) -> Any:
    u[1:-1, 1:-1] += dt * (
        u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    )
    return u


@dp.jit
def seidel(a: Any, steps: int) -> None:
    for _ in range(steps):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = (a[i - 1, j] + a[i, j - 1] + a[i, j] + a[i, j + 1] + a[i + 1, j]) / 5.0


@dp.jit
def cholesky(a: Any) -> None:
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, a.shape[0]):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])


@dp.jit
def crc16(data: Any, poly: int = 0x8408) -> int:
    crc = 0xFFFF
    for byte in data:
        current = 0xFF & byte
        for _ in range(8):
            if (crc & 1) ^ (current & 1):
                crc = (crc >> 1) ^ poly
            else:
                crc >>= 1
            current >>= 1
    crc = ~crc & 0xFFFF
    return (crc << 8) | ((crc >> 8) & 0xFF)


@dp.jit
def softmax(x: Any) -> Any:
    shifted = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return shifted / np.sum(shifted, axis=-1, keepdims=True)


def test_pairwise(queue: Any) -> None:
    x1, x2 = RNG.random((20, 3)), RNG.random((15, 3))
    out = dp.empty((20, 15), device=queue)
    pairwise(dp.asarray(x1, device=queue), dp.asarray(x2, device=queue), out)
    wanted = np.sqrt(((x1[:, None] - x2[None]) ** 2).sum(-1))
    np.testing.assert_allclose(out.asnumpy(), wanted, rtol=1e-14)


@pytest.mark.parametrize("size", [12, 400])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_stencil_step(queue: Any, size: int, dtype: str) -> None:
    host = RNG.random((size, size)).astype(dtype)
    u = dp.asarray(host, device=queue)
    for _ in range(3):
        result = step(u, 0.1)
        step.py_func(host, 0.1)
    assert result is u
    np.testing.assert_allclose(u.asnumpy(), host, rtol=1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_loops_over_elements_run_in_the_memory_of_the_array(queue: Any, dtype: str) -> None:
    host = RNG.random((20, 20)).astype(dtype)
    a = dp.asarray(host, device=queue)
    seidel(a, 3)
    seidel.py_func(host, 3)
    np.testing.assert_array_equal(a.asnumpy(), host)
    matrix = host @ host.T + 20 * np.eye(20, dtype=dtype)
    a = dp.asarray(matrix, device=queue)
    cholesky(a)
    wanted = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(np.tril(a.asnumpy()), wanted, rtol=1e-4, atol=1e-5)


def test_a_checksum_of_bytes_is_an_integer_of_python() -> None:
    data = RNG.integers(0, 256, 200).astype("uint8")
    found = crc16(dp.asarray(data))
    assert type(found) is int
    assert found == crc16.py_func(data.astype(int))
    assert crc16(dp.asarray(data), poly=0x1021) == crc16.py_func(data.astype(int), 0x1021)


@pytest.mark.parametrize("rows", [3, 3000])
def test_array_code_gives_new_arrays(queue: Any, rows: int) -> None:
    x = RNG.random((rows, 10))
    result = softmax(dp.asarray(x, device=queue, usm_type="shared"))
    assert result.queue == queue
    assert result.usm_type == "shared"
    np.testing.assert_allclose(result.asnumpy(), softmax.py_func(x), rtol=1e-12)


# -- dtypes ----------------------------------------------------------------------------------------

DTYPES = ["float64", "float32", "int64", "int32", "uint8"]


@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("second", DTYPES)
@pytest.mark.parametrize("size", [5, 40_000])
@pytest.mark.sample(1)
def test_dtypes_are_those_of_numpy(first: str, second: str, size: int) -> None:
    def combined(x: Any, y: Any) -> Any:
        return x + y, x / y, x * 2, x * 0.5, x // 3

    x, y = (np.arange(1, size + 1).clip(1, 100).astype(dtype) for dtype in (first, second))
    results = dp.jit(combined)(dp.asarray(x), dp.asarray(y))
    for result, wanted in zip(results, combined(x, y), strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_allclose(result.asnumpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_in_loops_have_the_dtypes_of_numpy(dtype: str) -> None:
    def walked(x: Any, out: Any) -> Any:
        last = x[0]
        for i in range(1, x.shape[0]):
            last = x[i] * 3 + x[i - 1]
            out[i] = last / 7
        return last

    x = np.arange(1, 9).astype(dtype)
    out, wanted_out = dp.zeros(8), np.zeros(8)
    last = dp.jit(walked)(dp.asarray(x), out)
    wanted = walked(x, wanted_out)
    assert last.dtype == wanted.dtype
    assert last.item() == wanted
    np.testing.assert_array_equal(out.asnumpy(), wanted_out)


# -- prange ----------------------------------------------------------------------------------------


def test_prange_with_bounds_and_steps() -> None:
    @dp.jit
    def fill(x: Any, begin: int, step: int) -> None:
        for i in dp.prange(begin, x.size, step):
            x[i] = i

    for begin, step_ in [(0, 1), (3, 2), (5, 7), (40, 1)]:
        x, wanted = dp.zeros(20), np.zeros(20)
        fill(x, begin, step_)
        fill.py_func(wanted, begin, step_)
        np.testing.assert_array_equal(x.asnumpy(), wanted)


def test_nested_prange_is_one_range() -> None:
    @dp.jit
    def fill(x: Any) -> None:
        for i in dp.prange(x.shape[0]):
            for j in dp.prange(1, x.shape[1]):
                for k in dp.prange(x.shape[2]):
                    x[i, j, k] = 100 * i + 10 * j + k

    x, wanted = dp.zeros((3, 4, 5)), np.zeros((3, 4, 5))
    fill(x)
    fill.py_func(wanted)
    np.testing.assert_array_equal(x.asnumpy(), wanted)
    assert "3 dimension" in str(dp.explain(fill, x))


def test_nested_prange_with_statements_between() -> None:
    @dp.jit
    def fill(x: Any) -> None:
        for i in dp.prange(x.shape[0]):
            begin = i * 2
            for j in dp.prange(x.shape[1]):
                if j == 2:
                    continue
                x[i, j] = begin + j
            if i == 1:
                continue
            x[i, 0] = -1

    x, wanted = dp.zeros((3, 4)), np.zeros((3, 4))
    fill(x)
    fill.py_func(wanted)
    np.testing.assert_array_equal(x.asnumpy(), wanted)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
@pytest.mark.parametrize("size", [0, 1, 7, 5000])
def test_reductions(queue: Any, dtype: str, size: int) -> None:
    @dp.jit
    def reduced(x: Any) -> Any:
        total = 10.0
        count = 0
        smallest = x[0] if x.size else 0
        largest = 3
        for i in dp.prange(x.shape[0]):
            total += x[i] * 2
            if x[i] > 3:
                count += 1
            smallest = min(smallest, x[i])
            largest = max(x[i], largest)
        return total, count, smallest, largest

    x = RNG.integers(0, 9, size).astype(dtype)
    total, count, smallest, largest = reduced(dp.asarray(x, device=queue))
    assert float(total) == 10 + 2 * x.astype(float).sum()
    assert int(count) == int((x > 3).sum())
    assert int(smallest) == int(x.min(initial=9) if size else 0)
    assert int(largest) == int(x.max(initial=3))
    if size:
        assert total.dtype == (10.0 + x[0] * 2).dtype


def test_reductions_of_integers_by_other_operators() -> None:
    @dp.jit
    def reduced(x: Any) -> Any:
        product, either, both, odd = 1, 0, 255, 0
        for i in dp.prange(x.shape[0]):
            product *= x[i]
            either |= x[i]
            both &= x[i]
            odd ^= x[i]
        return product, either, both, odd

    x = np.array([3, 5, 7, 11])
    assert [int(each) for each in reduced(dp.asarray(x))] == [1155, 15, 1, 3 ^ 5 ^ 7 ^ 11]


def test_slices_in_prange() -> None:
    @dp.jit
    def rows(a: Any, b: Any, c: Any) -> None:
        for i in dp.prange(a.shape[0]):
            c[i, :] = a[i, :] + b[i, :]

    a = dp.ones((4, 5), dtype="int32")
    c = dp.zeros((4, 5), dtype="int32")
    rows(a, a, c)
    assert c.tolist() == [[2] * 5] * 4
    kernel = "kernel over 1 dimension"
    assert explains(rows, a, a, c, native="native parallel region over 1 dimension", kernel=kernel)


def test_prange_in_a_loop_over_time_with_array_statements() -> None:
    @dp.jit
    def run(x: Any, steps: int) -> Any:
        y = np.zeros_like(x)
        for _ in range(steps):
            y[:] = x * 0.5
            for i in dp.prange(1, x.shape[0]):
                x[i] = y[i - 1] + 1.0
        return x.sum()

    x = RNG.random(50)
    found = run(dp.asarray(x), 4)
    assert isinstance(found, dp.ndarray)
    wanted = run.py_func(x, 4)
    np.testing.assert_allclose(found.item(), wanted, rtol=1e-12)


def test_an_element_loop_next_to_a_prange_loop() -> None:
    @dp.jit
    def both(x: Any) -> Any:
        last = 0.0
        for i in range(1, x.shape[0]):
            x[i] += x[i - 1]
            last = x[i]
        for i in dp.prange(x.shape[0]):
            x[i] /= last
        return last

    x = RNG.random(30)
    a = dp.asarray(x)
    found = both(a)
    wanted = both.py_func(x)
    np.testing.assert_allclose(float(found), wanted, rtol=1e-12)
    np.testing.assert_allclose(a.asnumpy(), x, rtol=1e-12)
    assert explains(both, a, native="native region", kernel=ONE_WORK_ITEM)


# -- the language ----------------------------------------------------------------------------------


class Point(NamedTuple):
    x: float
    y: float


OFFSET = 3


@dp.device_func
def squared(x: Any) -> Any:
    return x * x


@dp.jit
def factorial(n: int) -> int:
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@dp.jit
def doubled(x: Any) -> Any:
    return x * 2


def test_scalars_alone() -> None:
    assert factorial(10) == math.factorial(10)

    @dp.jit
    def power(x: float, n: int = 3, *, up: bool = True) -> float:
        result = 1.0
        while n > 0:
            result = result * x if up else result / x
            n -= 1
        return result

    assert power(2.0) == 8.0
    assert power(2.0, 2) == 4.0
    assert power(x=2.0, n=1, up=False) == 0.5


@pytest.mark.parametrize("size", [6, 30_000])
def test_calls_closures_and_options(size: int) -> None:
    factor = 4

    @dp.jit
    def mixed(x: Any, mode: str) -> Any:
        if mode == "double":
            return doubled(x) + factor
        return x + OFFSET

    x = np.arange(float(size))
    np.testing.assert_array_equal(mixed(dp.asarray(x), "double").asnumpy(), 2 * x + 4)
    np.testing.assert_array_equal(mixed(dp.asarray(x), "other").asnumpy(), x + 3)


def test_device_functions_in_every_region() -> None:
    @dp.jit
    def elements(x: Any) -> None:
        for i in range(x.shape[0]):
            x[i] = squared(x[i])

    @dp.jit
    def parallel(x: Any) -> None:
        for i in dp.prange(x.shape[0]):
            x[i] = squared(x[i])

    for function in (elements, parallel):
        x = dp.arange(4.0)
        function(x)
        assert x.tolist() == [0, 1, 4, 9]


@dp.kernel
def add_one(item: Any, x: Any) -> None:
    i = item.get_id(0)
    x[i] += 1


def test_a_kernel_is_launched_between_statements() -> None:
    @dp.jit
    def launched(x: Any) -> Any:
        y = x * 2
        dp.call_kernel(add_one, dp.Range(y.size), y)
        return y - 1

    assert launched(dp.arange(4)).tolist() == [0, 2, 4, 6]


def test_tuples_and_named_tuples() -> None:
    @dp.jit
    def moved(x: Any, by: Any) -> Any:
        x += by.x
        return x * by.y, (x.shape[0], by.x)

    result, (size, by_x) = moved(dp.arange(3.0), Point(2.0, 3.0))
    assert result.tolist() == [6, 9, 12]
    assert (size, by_x) == (3, 2.0)


def test_arrays_created_inside_take_the_placement() -> None:
    queue = another_queue()

    @dp.jit
    def made(n: int) -> Any:
        return dp.zeros(n, dtype="int32", usm_type="shared", device=queue)

    @dp.jit
    def like(x: Any) -> Any:
        y = np.empty(x.shape[0], dtype=np.float32)
        for i in range(x.shape[0]):
            y[i] = i
        return y

    found = made(4)
    assert found.dtype == "int32"
    assert found.usm_type == "shared"
    assert found.queue == queue
    found = like(dp.ones(5, usm_type="host", device=queue))
    assert found.dtype == "float32"
    assert found.usm_type == ("host" if runs_loops_on_host() else "device")
    assert found.queue == queue
    assert found.tolist() == [0, 1, 2, 3, 4]


add_of_dpnp, sine_of_numpy = dpnp.add, np.sin


def test_captured_functions_of_dpnp_and_numpy() -> None:
    @dp.jit
    def applied(x: Any) -> Any:
        return add_of_dpnp(sine_of_numpy(x), dpnp.erf(x))

    x = np.arange(3.0)
    wanted = np.sin(x) + [math.erf(each) for each in x]
    np.testing.assert_allclose(applied(dp.asarray(x)).asnumpy(), wanted)
    assert isinstance(applied(dpnp.asarray(x)), dpnp.ndarray)


# -- aliasing and order ----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 40_000])
def test_views_overlap_and_run_backwards(size: int) -> None:
    @dp.jit
    def shifted(x: Any, y: Any) -> Any:
        x[1:] = x[:-1]
        x[1:] += y[:-1]
        return x[::-1]

    host = RNG.random(size)
    x = dp.asarray(host)
    result = shifted(x, x)
    wanted = shifted.py_func(host, host)
    np.testing.assert_allclose(result.asnumpy(), wanted)
    result[0] = 7
    assert x[-1].item() == 7  # a view of the argument

    host = RNG.random(size)
    x = dp.asarray(host)[::-2]
    cumulated = dp.jit(lambda_free_cumulate)
    cumulated(x)
    lambda_free_cumulate(host[::-2])
    np.testing.assert_allclose(x.asnumpy(), host[::-2])


def lambda_free_cumulate(x: Any) -> None:
    for i in range(1, x.shape[0]):
        x[i] += x[i - 1]


def test_pending_readers_keep_the_values_from_before() -> None:
    x = dp.arange(50_000.0)
    before = x * 2
    dp.jit(lambda_free_cumulate)(x)
    assert before[3].item() == 6.0
    assert x[3].item() == 6.0
    y = dp.arange(50_000.0) + 1  # pending
    dp.jit(lambda_free_cumulate)(y)
    assert y[2].item() == 6.0


def test_a_native_region_waits_for_a_kernel() -> None:
    x = dp.zeros(1 << 20)
    for _ in range(3):
        dp.call_kernel(add_one, dp.Range(x.size), x)
        dp.jit(lambda_free_cumulate)(x[:4])
    assert x[:4].tolist() == [3, 6, 9, 12] or x[0].item() == 3
    host = np.zeros(4)
    for _ in range(3):
        host += 1
        lambda_free_cumulate(host)
    np.testing.assert_array_equal(x[:4].asnumpy(), host)


def test_writing_a_broadcast_array_is_refused() -> None:
    x = dp.broadcast_to(dp.ones(1), (4,))
    with pytest.raises(dp.exceptions.KernelCompileError, match="read-only"):
        dp.jit(lambda_free_cumulate)(x)


# -- errors ----------------------------------------------------------------------------------------


def test_arrays_on_two_queues_are_refused_by_name() -> None:
    other = dp.ones(3, device=another_queue())
    with pytest.raises(dp.ExecutionPlacementError, match=r"x1.*\n.*x2"):
        pairwise(dp.ones((2, 2)), other, other)


def test_numpy_arrays_are_refused_with_the_fix() -> None:
    with pytest.raises(dp.HostConversionError, match=r"u = dp.asarray\(u\)"):
        step(np.ones((3, 3)), 0.1)


def test_a_list_is_refused() -> None:
    with pytest.raises(dp.KernelArgumentError, match="'u' is a list"):
        step([1.0], 0.1)


def test_a_wrong_number_of_arguments() -> None:
    with pytest.raises(dp.KernelArgumentError, match="missing a required argument: 'dt'"):
        step(dp.ones((3, 3)))


def test_unknown_options() -> None:
    with pytest.raises(dp.KernelArgumentError, match="unknown option 'fast'"):
        dp.jit(fast=True)
    with pytest.raises(dp.KernelArgumentError, match="not a Python function"):
        dp.jit(3)  # type: ignore[call-overload]


def test_options_of_numba() -> None:
    for options in ({"fastmath": True}, {"cache": False}, {"parallel": True}, {"nopython": True}):
        x = dp.ones(4)
        dp.jit(**options)(lambda_free_cumulate)(x)
        assert x.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("word", ["return", "break"])
def test_leaving_a_prange_loop_is_an_error(word: str) -> None:
    @dp.jit
    def left(x: Any) -> None:
        for i in dp.prange(x.shape[0]):
            x[i] = 1
            return

    @dp.jit
    def broken(x: Any) -> None:
        for i in dp.prange(x.shape[0]):
            if x[i] > 1:
                break

    with pytest.raises(dp.exceptions.KernelCompileError, match=f"{word} cannot leave"):
        (left if word == "return" else broken)(dp.ones(3))


def test_exceptions_of_native_regions_have_the_line_of_the_function() -> None:
    @dp.jit
    def checked(x: Any) -> None:
        for i in range(x.shape[0]):
            if x[i] < 0:
                raise ValueError("negative")  # the line

    with pytest.raises(ValueError, match="negative") as caught:
        checked(dp.asarray([1.0, -1.0]))
    entry = caught.traceback[-1]
    assert str(entry.path) == __file__
    assert "# the line" in str(entry.statement)


def test_an_undefined_name_raises_with_its_line() -> None:
    @dp.jit
    def refused(x: Any) -> None:
        for i in range(x.shape[0]):
            x[i] = undefined_name  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(dp.exceptions.KernelCompileError, match="undefined_name") as caught:
        refused(dp.ones(3))
    assert "x[i] = undefined_name" in str(caught.value)


# -- inspection ------------------------------------------------------------------------------------


def test_signatures_and_explanations() -> None:
    x = dp.ones(4)
    function = dp.jit(lambda_free_cumulate)
    function(x)
    function(dp.ones(4, dtype="float32"))
    assert function.signatures == [("float64[1]",), ("float32[1]",)]
    assert explains(function, x, native="native region", kernel=ONE_WORK_ITEM)
    assert "for i in range" in function.inspect()
    assert repr(function) == "<dparray jit function lambda_free_cumulate>"


# -- devices other than CPUs -----------------------------------------------------------------------


def clipped_sum(x: Any, most: float) -> Any:
    total = 0.0
    count = 0
    for i in range(x.shape[0]):
        total = min(total + x[i], most)
        count += 1
        x[i] = total
    return total, count


@pytest.fixture
def no_cpu(monkeypatch: pytest.MonkeyPatch, pretend: Any) -> Iterator[None]:
    pretend(shares_memory=False)
    monkeypatch.setattr("dparray._runtime.fallback._told", set())
    # The host reads no memory directly, so every read is a copy from a device.
    with dp.config.override(host_tier=False):
        yield


@pytest.mark.usefixtures("no_cpu")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_loop_over_elements_runs_as_one_work_item(dtype: str) -> None:
    host = np.arange(6).astype(dtype)
    x = dp.asarray(host)
    compiled = dp.jit(clipped_sum)
    with pytest.warns(dp.FallbackWarning, match="single work-item"):
        total, count = compiled(x, 7)
    wanted, wanted_count = clipped_sum(host, 7)
    assert float(total) == wanted
    assert int(count) == wanted_count
    np.testing.assert_array_equal(x.asnumpy(), host)
    assert "kernel of one work-item" in str(dp.explain(compiled, x, 7))


def test_the_memory_of_new_results_is_not_compared(monkeypatch: Any) -> None:
    compared = []

    @dp.jit
    def double(x: Any) -> Any:
        return x * 2

    @dp.jit
    def tail(x: Any) -> Any:
        return x[1:]

    def lies_in(value: Any, view: Any, x: Any) -> bool:
        compared.append(value)
        return bool(np.may_share_memory(value, view))

    monkeypatch.setattr("dparray._jit.views._lies_in", lies_in)
    x = dp.arange(6.0)
    assert double(x).tolist() == [0, 2, 4, 6, 8, 10]
    assert not compared
    shown = tail(x)
    shown += 1
    assert x.tolist() == [0, 2, 3, 4, 5, 6]
    assert not compared


@pytest.mark.parametrize("given", ["array", "tuple", "dtype", "default"])
def test_each_kind_of_device_has_its_own_plan(given: str, monkeypatch: Any, pretend: Any) -> None:
    @dp.jit
    def cumulate(x: Any, other: Any = 1) -> None:
        y = other[0] if isinstance(other, tuple) else x
        for i in range(1, x.shape[0]):
            y[i] += x[i - 1]

    on_cpu, elsewhere = another_queue(), another_queue()
    pretend(lambda queue: queue != on_cpu, shares_memory=False)
    pretend(lambda queue: queue == on_cpu, shares_memory=True)
    monkeypatch.setattr("dparray._runtime.fallback._told", set())
    for queue in (on_cpu, elsewhere, on_cpu):
        x = dp.ones(3, device=queue)
        others = {"array": (x,), "tuple": ((x,),), "dtype": (np.float32,), "default": ()}
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            cumulate(x, *others[given])
        assert x.tolist() == [1, 2, 3]
        assert bool(told) is (queue is elsewhere)


@pytest.mark.usefixtures("no_cpu")
def test_the_fallback_policy_can_forbid_one_work_item() -> None:
    @dp.jit
    def cumulate(x: Any) -> None:
        x += 1
        for i in range(1, x.shape[0]):
            x[i] += x[i - 1]

    x = dp.ones(3)
    with (
        dp.config.override(fallback="error"),
        pytest.raises(dp.exceptions.FallbackError, match=r"cumulate, line \d+.*dp\.prange"),
    ):
        cumulate(x)
    assert x.tolist() == [1, 1, 1]
    with dp.config.override(fallback="allow"):
        cumulate(x)
    assert x.tolist() == [2, 4, 6]


@pytest.mark.usefixtures("no_cpu")
def test_a_warning_names_the_function_whose_values_leave_the_device() -> None:
    @dp.jit
    def all_bits(x: Any) -> Any:
        bits = 0
        for i in dp.prange(x.shape[0]):
            bits |= x[i]
        return bits

    with pytest.warns(dp.FallbackWarning, match="^all_bits: .* bytes leave"):
        assert all_bits(dp.asarray([1, 2, 4])) == 7


@pytest.mark.usefixtures("no_cpu")
def test_loops_that_one_work_item_cannot_run_are_refused_before_anything_runs() -> None:
    @dp.jit
    def first_negative(x: Any) -> Any:
        x += 1
        for i in range(x.shape[0]):
            if x[i] < 0:
                return i
        return -1

    x = dp.ones(3)
    with pytest.raises(dp.exceptions.KernelCompileError, match=r"for i in range(.|\n)*dp\.prange"):
        first_negative(x)
    assert x.tolist() == [1, 1, 1]


@pytest.mark.usefixtures("no_cpu")
def test_functions_of_numbers_run_on_the_host() -> None:
    assert dp.jit(factorial.py_func)(5) == 120


# -- errors before execution -----------------------------------------------------------------------


def test_a_prange_loop_is_compiled_before_anything_runs() -> None:
    @dp.jit
    def refused(x: Any, y: Any) -> None:
        x += 1
        for i in dp.prange(x.shape[0]):
            y[i] = undefined_name + x[i]  # type: ignore[name-defined]  # noqa: F821

    x = dp.zeros(3)
    with pytest.raises(dp.exceptions.KernelCompileError, match="undefined_name"):
        refused(x, x)
    assert x.tolist() == [0, 0, 0]


def test_a_loop_over_elements_beside_prange_is_compiled_before_anything_runs() -> None:
    @dp.jit
    def refused(x: Any) -> None:
        x += 1
        for i in dp.prange(x.shape[0]):
            x[i] += 1
        for i in range(x.shape[0]):
            x[i] = undefined_name  # type: ignore[name-defined]  # noqa: F821

    x = dp.zeros(3)
    with pytest.raises(dp.exceptions.KernelCompileError, match="undefined_name"):
        refused(x)
    assert x.tolist() == [0, 0, 0]


def add_300(x: Any) -> None:
    x += 300


def store_300(x: Any) -> None:
    for i in range(x.shape[0]):
        x[i] = 300


def store_300_in_parallel(x: Any) -> None:
    for i in dp.prange(x.shape[0]):
        x[i] = 300


def multiply_element(x: Any) -> None:
    for i in range(x.shape[0]):
        x[i] = (x[i] * 300) % 7


def subtract_from_negative(x: Any) -> Any:
    return -1 - x


@pytest.mark.parametrize(
    "function",
    [add_300, store_300, store_300_in_parallel, multiply_element, subtract_from_negative],
)
def test_a_literal_that_does_not_fit_is_an_error_as_in_numpy(function: Any) -> None:
    host = np.ones(3, np.uint8)
    with pytest.raises(OverflowError):
        function(host)
    x = dp.asarray(host)
    with pytest.raises(OverflowError, match=r"does not fit into uint8(.|\n)*\^"):
        dp.jit(function)(x)
    assert x.tolist() == host.tolist()
    wide = dp.ones(3, dtype="int16")
    dp.jit(function)(wide)  # fits


def add_number(x: Any, k: int) -> Any:
    y = x + k
    return y * 2


def store_number(x: Any, k: int) -> None:
    for i in range(x.shape[0]):
        x[i] = k


def add_number_in_parallel(x: Any, k: int) -> None:
    for i in dp.prange(x.shape[0]):
        x[i] = x[i] + k


def add_number_if_it_fits(x: Any, k: int) -> None:
    if k < 128:
        x += k


@pytest.mark.parametrize("function", [add_number, store_number, add_number_in_parallel])
@pytest.mark.parametrize("size", [3, 70_000])
def test_an_argument_that_does_not_fit_is_an_error_as_in_numpy(function: Any, size: int) -> None:
    host = np.ones(size, np.int8)
    x = dp.asarray(host)
    with pytest.raises(OverflowError):
        function(host[:3].copy(), 300)
    compiled = dp.jit(function)
    with pytest.raises(OverflowError, match=r"300 does not fit into int8(.|\n)*\^"):
        compiled(x, 300)
    np.testing.assert_array_equal(x.asnumpy(), host)
    compiled(x, 100)  # fits
    compiled(dp.ones(3, dtype="int16"), 300)


def test_an_argument_under_a_condition_is_not_checked() -> None:
    x = dp.ones(3, dtype="int8")
    compiled = dp.jit(add_number_if_it_fits)
    compiled(x, 300)
    assert x.tolist() == [1, 1, 1]
    compiled(x, 3)
    assert x.tolist() == [4, 4, 4]


@dp.jit
def weighted_counts(x: Any, edges: Any) -> Any:
    counts = np.zeros(edges.shape[0])
    for i in range(x.shape[0]):
        counts[int(x[i] * edges.shape[0])] += x[i]
    return counts


@dp.jit
def mean_of_bins(x: Any, edges: Any) -> Any:
    return weighted_counts(x, edges=edges) / edges


def test_array_code_around_a_loop_over_elements_is_native_code() -> None:
    host, edges = RNG.random(70_000), np.arange(1.0, 9.0)
    x, y = dp.asarray(host), dp.asarray(edges)
    np.testing.assert_allclose(
        mean_of_bins(x, y).asnumpy(),
        weighted_counts.py_func(host, edges) / edges,
        1e-12,
    )
    native = "it calls weighted_counts, which loops"
    assert explains(mean_of_bins, x, y, native=native, kernel=ON_DRIVER)


def mixed_bits(x: Any, out: Any) -> Any:
    mask = 5
    last = x[0]
    for i in range(1, x.shape[0]):
        y = x[i]
        a = 0x0F & y
        b = (a ^ (mask & 3)) | x[i - 1]
        c = b >> 1
        c >>= 1
        d = -c + ~y
        last = (d * 3 + (y ^ x[i - 1])) ^ a
        out[i] = last + (c & 1)
    return last


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int32", "uint32", "int64"])
@pytest.mark.sample(3)
def test_bits_and_signs_of_narrow_integers(dtype: str) -> None:
    limits = np.iinfo(dtype)
    host = RNG.integers(limits.min, limits.max, 100, dtype, endpoint=True)
    wanted = np.zeros_like(host)
    with np.errstate(over="ignore"):
        wanted_last = mixed_bits(host, wanted)
    out = dp.zeros(100, dtype=dtype)
    last = dp.jit(mixed_bits)(dp.asarray(host), out)
    np.testing.assert_array_equal(out.asnumpy(), wanted)
    assert last.dtype == wanted_last.dtype
    assert last.item() == wanted_last


# -- debugging -------------------------------------------------------------------------------------


@dp.jit
def shifted_in_place(x: Any) -> None:
    for i in dp.prange(1, x.shape[0]):
        x[i] = x[i - 1]  # a race


@dp.jit
def past_the_end(x: Any, y: Any) -> None:
    for i in dp.prange(x.shape[0]):
        x[i] = y[i + 1]  # out of bounds by one


@dp.jit
def past_the_end_in_order(x: Any, y: Any) -> None:
    for i in range(x.shape[0]):
        x[i] = y[i + 1]  # out of bounds by one


@dp.jit
def raced_sum(x: Any, y: Any) -> Any:
    total = 0.0
    for i in dp.prange(x.shape[0]):
        y[i // 5000] = x[i]  # all write one element
        total += x[i]
    return total


def test_the_simulator_finds_races_in_prange_loops() -> None:
    with pytest.raises(dp.exceptions.SimulationError, match=r"x\[i\] = x\[i - 1\]"):
        dp.simulate(shifted_in_place, dp.arange(5.0))
    with pytest.raises(dp.exceptions.SimulationError, match=r"y\[i // 5000\] = x\[i\]"):
        dp.simulate(raced_sum, dp.arange(2000.0), dp.zeros(1))


def test_the_simulator_runs_a_compiled_function_and_returns_its_result() -> None:
    x = dp.arange(9.0)
    total, peak = dp.simulate(sum_and_peak, x)
    assert (float(total), float(peak)) == (36.0, 8.0)


@dp.jit
def sum_and_peak(x: Any) -> Any:
    total, peak = 0.0, x[0]
    for i in dp.prange(x.shape[0]):
        total += x[i]
        peak = max(peak, x[i])
    return total, peak


def test_index_errors_are_found_in_debug_mode_and_by_the_simulator() -> None:
    x, y = dp.zeros(4), dp.zeros(4)
    with pytest.raises(dp.exceptions.SimulationError, match=r"y\[i \+ 1\]"):
        dp.simulate(past_the_end, x, y)
    fault: type[Exception] = IndexError
    if not runs_loops_on_host():
        fault = dp.exceptions.SimulationError
    with pytest.raises(fault):
        dp.simulate(past_the_end_in_order, x, y)
    with dp.config.override(debug=True):
        with pytest.raises(dp.exceptions.KernelExecutionError, match=r"y\[i \+ 1\]"):
            past_the_end(x, y)
        if not runs_loops_on_host():
            fault = dp.exceptions.KernelExecutionError
        with pytest.raises(fault) as caught:
            past_the_end_in_order(x, y)
    assert not runs_loops_on_host() or str(caught.traceback[-1].path) == __file__


def test_the_cache_counts_regions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPARRAY_CACHE_DIR", str(tmp_path))
    assert cache.stats().regions == 0
    dp.jit(lambda_free_cumulate)(dp.ones(3))
    stats = cache.stats()
    assert stats.regions == 1
    assert stats.region_bytes > 0
    assert cache.clear() >= 1
    assert cache.stats().regions == 0


@pytest.mark.parametrize("size", [20, 600])
def test_functions_over_lines_of_large_arrays_are_native(size: int) -> None:
    @dp.jit
    def smooth(x: Any, a: float) -> Any:
        y = np.empty_like(x)
        y[:, 0] = x[:, 0]
        for j in range(1, x.shape[1]):
            y[:, j] = a * x[:, j] + (1.0 - a) * y[:, j - 1]
        return y

    host = RNG.random((size, size))
    x = dp.asarray(host)
    np.testing.assert_allclose(smooth(x, 0.3).asnumpy(), smooth.py_func(host, 0.3), rtol=1e-12)
    assert explains(smooth, x, 0.3, native="whole function: native region", kernel=ON_DRIVER)
    long_lines = dp.zeros((1 << 20, 2))
    assert "driver" in str(dp.explain(smooth, long_lines, 0.3))


_PROCESS = """
import os, sys, numpy, dparray as dp
from dparray._compiler import llvm
def fail(*args, **options): raise SystemExit("it compiles")
if sys.argv[1] == "second": llvm.module = fail
total = os.getpid()
TABLE = numpy.ones(1)
def one(x, k=1):
    return x * k * TABLE[0]
@dp.jit
def walk(x):
    total = 0.0  # not the global, which differs from process to process
    for i in range(1, x.shape[0]):
        x[i] += one(x[i - 1])
        total += x[i]
    return total
x = dp.ones(4)
walk(x)
print(x.tolist())
"""


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(_PROCESS)
    environment = {**os.environ, "DPARRAY_CACHE_DIR": str(tmp_path / "cache")}
    for turn in ("first", "second"):
        run = subprocess.run(
            [sys.executable, str(file), turn], env=environment, capture_output=True, text=True
        )
        assert run.stdout == "[1.0, 2.0, 3.0, 4.0]\n", run.stderr


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an empty cache."""
    monkeypatch.setenv("DPARRAY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_state", cache._State())
    return tmp_path / "kernels-2"


@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty", "foreign"])
def test_a_damaged_or_foreign_region_is_compiled_again(
    empty_cache: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> None:
        x = dp.ones(3)
        dp.jit(lambda_free_cumulate)(x)
        assert x.tolist() == [1.0, 2.0, 3.0]

    run()
    (region,) = empty_cache.glob(f"*{cache.REGION}")
    whole = region.read_bytes()
    damaged = {
        "flipped": [
            whole[:at] + bytes([whole[at] ^ 64]) + whole[at + 1 :]
            for at in range(0, len(whole), len(whole) // 5)
        ],
        "truncated": [whole[:-1], whole[: len(whole) // 2], whole[:20]],
        "empty": [b""],
        "foreign": [pickle.dumps(exit), whole[:100] + pickle.dumps(exit)],
    }[damage]
    for content in damaged:
        region.write_bytes(content)
        run()
        assert region.read_bytes() != content
    monkeypatch.setattr("dparray._compiler.llvm.module", None)  # The last one is whole.
    run()


@pytest.mark.parametrize("mask", [0o002, 0o000, 0o077])
def test_regions_are_cached_under_every_umask(empty_cache: Path, mask: int) -> None:
    previous = os.umask(mask)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dp.jit(lambda_free_cumulate)(dp.ones(3))
    finally:
        os.umask(previous)
    assert cache.stats().regions == 1
    assert not any(path.stat().st_mode & 0o077 for path in empty_cache.rglob("*"))


def test_a_cache_that_is_off_says_so_once(empty_cache: Path) -> None:
    empty_cache.mkdir()
    empty_cache.chmod(0o777)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            dp.jit(lambda_free_cumulate)(dp.ones(3))
    (warning,) = caught
    assert "can be written by other users" in str(warning.message)


def test_a_tuple_class_with_other_fields_is_another_type(empty_cache: Path) -> None:
    def first_times(x: Any, pair: Any) -> Any:
        for i in range(x.shape[0]):
            x[i] *= pair.a
        return x

    for fields in ("a b", "b a"):
        pair = namedtuple("Pair", fields)(2.0, 3.0)  # type: ignore[call-overload]
        found = dp.jit(first_times)(dp.ones(1), pair)
        assert found.tolist() == first_times(np.ones(1), pair).tolist()


def test_defaults_complete_a_call() -> None:
    def weighted(x: Any, a: float = 2.0, b: float = 3.0) -> Any:
        return x * a + b

    compiled, x = dp.jit(weighted), dp.arange(3.0)
    for given in ((), (5.0,), (5.0, 7.0)):
        assert compiled(x, *given).tolist() == weighted(x, *given).tolist()
    assert compiled(x, b=1.0).tolist() == weighted(x, b=1.0).tolist()
    with pytest.raises(dp.KernelArgumentError, match="missing a required argument: 'x'"):
        compiled()
    with pytest.raises(dp.KernelArgumentError, match="too many"):
        compiled(x, 1.0, 2.0, 3.0)


# -- loops around prange loops ---------------------------------------------------------------------


def shortest_paths(path: Any) -> Any:
    steps = 0
    for k in range(path.shape[0]):
        for i in dp.prange(path.shape[0]):
            path[i, :] = np.minimum(path[i, :], path[i, k] + path[k, :])
        steps += k
    return steps


def time_steps(u: Any, v: Any, n: int) -> Any:
    total = 0.0
    for _ in range(n):
        for i in dp.prange(1, u.shape[0] - 1):
            v[i] = u[i - 1] * 0.5 + u[i + 1] * 0.5
        u[1:-1] = v[1:-1]
        for i in dp.prange(u.shape[0]):
            total += u[i]
    return total


def test_a_loop_around_prange_loops() -> None:
    host = RNG.integers(1, 100, (7, 7))
    path = dp.asarray(host)
    compiled = dp.jit(shortest_paths)
    assert compiled(path) == shortest_paths(host) == 21
    np.testing.assert_array_equal(path.asnumpy(), host)
    native = "native parallel region over 1 dimension"
    assert explains(compiled, path, native=native, kernel="kernel over 1 dimension")


@pytest.mark.parametrize("limit", [0, 1 << 18])
def test_reductions_in_a_loop_over_time(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dparray._jit.driver.MAX_NEST_ELEMENTS", limit)
    hosts = [RNG.random(9), np.zeros(9)]
    arrays = [dp.asarray(each) for each in hosts]
    compiled = dp.jit(time_steps)
    found = compiled(*arrays, 3)
    native = "native parallel region for at most"
    assert explains(compiled, *arrays, 3, native=native, kernel="kernel over 1 dimension")
    assert isinstance(found, dp.ndarray)
    np.testing.assert_allclose(float(found), time_steps(*hosts, 3), 1e-12)
    for one, other in zip(arrays, hosts, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other, 1e-12)


# -- statements that threads share -----------------------------------------------------------------


def wave(u: Any, v: Any, steps: int) -> Any:
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        u[1:-1, 1:-1] += np.sqrt(v[1:-1, 1:-1]) - u[1:-1, 1:-1] * 0.5
    return u + v


def in_place(x: Any, y: Any, n: int) -> None:
    x[1:-1] += x[2:] * 0.5 + x[:-2]
    view = x[::-1]
    x += view * 2
    view -= x[:, ::-1] * 0.25 + y
    y[:-1] *= y[1:] + x[1:]


@pytest.mark.parametrize("in_loop", [False, True])
@pytest.mark.slow
@pytest.mark.sample(1)
def test_shared_updates_read_what_was_there_before(in_loop: bool) -> None:
    def looped(x: Any, y: Any, n: int) -> None:
        for _ in range(n):
            x[1:-1] += x[2:] * 0.5 + x[:-2]
            for i in dp.prange(x.shape[0]):
                y[i, 1:] += y[i, :-1] * 2.0

    if in_loop and not runs_loops_on_host():
        pytest.skip("a work-item has no memory for a copy of overlapping slices")
    function = looped if in_loop else in_place
    hosts = [RNG.random((160, 150)) for _ in range(2)]
    arrays = [dp.asarray(each) for each in hosts]
    dp.jit(function)(*arrays, 2)
    function(*hosts, 2)
    for one, other in zip(arrays, hosts, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other, 1e-12)


def shifted_add(x: Any, y: Any) -> None:
    t = y * 2.0
    x += t


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
def test_threads_share_array_code_of_medium_size(dtype: str) -> None:
    hosts = [RNG.random((150, 141)).astype(dtype) for _ in range(2)]
    arrays = [dp.asarray(each) for each in hosts]
    compiled = dp.jit(wave)
    found = compiled(*arrays, 3)
    wanted = wave(*hosts, 3)
    if runs_loops_on_host():
        assert "whole function: native region" in dp.explain(compiled, *arrays, 3)
    assert found.dtype == wanted.dtype
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    for one, other in zip([found, *arrays], [wanted, *hosts], strict=True):
        np.testing.assert_allclose(one.asnumpy(), other, tolerance)


def waves_with_a_source(u: Any, v: Any, source: Any) -> None:
    for t in range(source.shape[0]):
        u[0, :] = source[t]
        u[1:, :] -= 0.5 * (v[1:, :] - v[:-1, :])
        v[:-1, :] -= 0.7 * (u[1:, :] - u[:-1, :])


@pytest.mark.parametrize("rows", [60, 3000])
@pytest.mark.sample(1)
def test_array_code_with_single_elements_is_native_at_every_size(rows: int) -> None:
    hosts = [RNG.random((rows, 100)), RNG.random((rows, 100)), RNG.random(4)]
    arrays = [dp.asarray(each) for each in hosts]
    compiled = dp.jit(waves_with_a_source)
    if runs_loops_on_host():
        assert "whole function: native region" in str(dp.explain(compiled, *arrays))
    compiled(*arrays)
    waves_with_a_source(*hosts)
    for one, other in zip(arrays, hosts, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other, 1e-12)


def test_arguments_may_overlap_or_broadcast() -> None:
    host = np.arange(25000.0)
    memory = dp.asarray(host)
    compiled = dp.jit(shifted_add)
    compiled(memory[1:], memory[:-1])
    shifted_add(host[1:], host[:-1])
    np.testing.assert_array_equal(memory.asnumpy(), host)
    matrix = dp.ones((2, 13000))
    compiled(matrix, dp.ones((1, 13000)))
    assert matrix.sum().item() == 3 * 26000


@dp.jit
def square(x: Any) -> Any:
    return x[:2:2] * 2.0


def first_element(x: Any, y: Any) -> Any:
    return x * y[:1] + x


def last_element(x: Any, y: Any) -> Any:
    return x - y[-1:]


def one_of_a_slice(x: Any, y: Any) -> Any:
    middle = y[2:20]
    return x * middle[17:] + y


def shrinking(x: Any, y: Any) -> Any:
    rest = y[1:]
    for _ in range(2998):
        rest = rest[1:]
    return x + rest * x


def annotated(x: Any, y: Any) -> Any:
    first: Any = y[0:1]
    return x + first * y


def named_like_a_function_of_numpy(x: Any, y: Any) -> Any:
    total = x + y
    return x * square(y) + total


@pytest.mark.parametrize(
    "function",
    [
        *(first_element, last_element, one_of_a_slice, shrinking, annotated),
        named_like_a_function_of_numpy,
    ],
)
@pytest.mark.sample(3)
def test_slices_of_one_element_broadcast(function: Any) -> None:
    hosts = [RNG.random(3000) for _ in range(2)]
    found = dp.jit(function)(*map(dp.asarray, hosts))
    with mock.patch.dict(function.__globals__, square=square.py_func):
        wanted = function(*hosts)
    np.testing.assert_allclose(found.asnumpy(), wanted, 1e-12)


def test_axes_that_a_slice_cuts_to_one_element_broadcast() -> None:
    @dp.jit
    def flux(x: Any, y: Any) -> Any:
        inner = x[:, 1:-1] * 2.0
        return y[:, 1:-1] * 3.0 + inner[:, 1:] * inner[:, :-1]

    for columns in (4, 5):
        hosts = [RNG.random((2000, columns)), RNG.random((2000, 3))]
        found = flux(*map(dp.asarray, hosts))
        inner = hosts[0][:, 1:-1] * 2.0
        wanted = hosts[1][:, 1:-1] * 3.0 + inner[:, 1:] * inner[:, :-1]
        np.testing.assert_allclose(found.asnumpy(), wanted, 1e-12)


def test_sizes_that_differ_are_an_error_in_shared_code() -> None:
    with pytest.raises(ValueError, match=r"Sizes of|broadcast"):
        dp.jit(shifted_add)(dp.ones(3000), dp.ones(2999))


def test_defaults_are_constants_of_native_code() -> None:
    @dp.jit
    def powers(x: Any, base: int = 3, scale: float = 0.5) -> None:
        for i in range(x.shape[0]):
            x[i] = base**i * scale

    x = dp.zeros(3)
    powers(x)
    assert x.tolist() == [0.5, 1.5, 4.5]
    powers(x, 2)
    assert x.tolist() == [0.5, 1.0, 2.0]
    powers(x, 2, 1.0)
    assert x.tolist() == [1.0, 2.0, 4.0]
    powers(x, scale=2.0)
    assert x.tolist() == [2.0, 6.0, 18.0]


def mixed_updates(x: Any) -> None:
    x[1:-1] = (x[2:] * 2 + x[:-2]) % 5
    x += x[::-1] * 2
    x %= 7
    x[1:-1] += (x[2:] * 2 + x[:-2]) % 5
    x += x[::-1] * 2
    x %= 7


@pytest.mark.slow
def test_updates_of_one_array_keep_their_order() -> None:
    host = RNG.integers(0, 9, 23000)
    x = dp.asarray(host)
    dp.jit(mixed_updates)(x)
    mixed_updates(host)
    np.testing.assert_array_equal(x.asnumpy(), host)
