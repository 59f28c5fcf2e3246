"""Loops on GPUs: the dimensions of kernels, and loops that are not ``prange``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.jit.forms import function_of
from tests.support import launched, observed

RNG = np.random.default_rng(3)
#: Compute units, and sub-groups of each, of the device that plays a GPU.
UNITS, SUB_GROUPS = 132, 64


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch, pretend: Any) -> None:
    pretend(shares_memory=False, kind="gpu", units=UNITS, threads=SUB_GROUPS, sub_groups=(16, 32))
    # The host reads no memory directly, so every read is a copy from a device.
    monkeypatch.setattr("dparray._array.transfer.host.is_ready", lambda *given: False)
    monkeypatch.setattr("dparray._runtime.fallback._told", set())


# -- the dimensions of kernels ---------------------------------------------------------------------


def by_rows(x: Any, out: Any) -> None:
    for i in dp.prange(x.shape[0]):
        for j in dp.prange(x.shape[1]):
            out[i, j] = 2 * x[i, j] + 100 * i + j


def by_columns(x: Any, out: Any) -> None:
    for j in dp.prange(1, x.shape[1]):
        for i in dp.prange(x.shape[0] - 1, -1, -2):
            out[i, j] = x[i, j] + x[i, j - 1]


def rows_of_rows(x: Any, out: Any) -> None:
    for j in dp.prange(x.shape[1]):
        for i in dp.prange(x.shape[0]):
            out[i][j] = x[i][j] + i


def transposed(x: Any, out: Any) -> None:
    for i in dp.prange(x.shape[0]):
        for j in dp.prange(x.shape[0]):
            out[j, i] = x[j, i]


@pytest.mark.parametrize(
    ("function", "space"),
    [(by_rows, (6, 40)), (by_columns, (3, 39)), (rows_of_rows, (6, 40)), (transposed, (6, 6))],
)
def test_neighboring_work_items_use_neighboring_elements(function: Any, space: Any) -> None:
    host, wanted = RNG.random((6, 40)), np.zeros((6, 40))
    function(host, wanted)
    x, out = dp.asarray(host), dp.zeros((6, 40))
    with launched() as launches:
        dp.jit(function)(x, out)
    assert launches[-1].global_range == space
    np.testing.assert_array_equal(out.asnumpy(), wanted)


def sums(x: Any, y: Any) -> Any:
    total, most = 0.0, -1.0
    for i in dp.prange(x.shape[0]):
        for j in dp.prange(x.shape[1]):
            if x[i, j] < 0.25:
                continue
            total += x[i, j] * y[j]
            most = max(most, x[i, j])
    return total, most


def sums_by_columns(x: Any, y: Any) -> Any:
    total, most = 0.0, -1.0
    for j in dp.prange(1, y.shape[0], 2):
        for i in dp.prange(x.shape[0]):
            for k in dp.prange(2):
                total += x[i, j] * y[j - k]
                most = max(most, x[i, j] - k)
    return total, most


def sum_of_changing_rows(x: Any, y: Any) -> Any:
    total, most, n = 0.0, -1.0, 1
    for i in dp.prange(x.shape[0]):
        n = min(i, y.shape[0])
        for j in dp.prange(n):
            total += x[i, j]
    return total, most


@pytest.mark.parametrize("function", [sums, sums_by_columns, sum_of_changing_rows])
@pytest.mark.parametrize("shape", [(3, 50), (50, 3), (1, 1), (0, 5), (5, 0)])
def test_reductions_over_several_dimensions(function: Any, shape: tuple[int, int]) -> None:
    x, y = RNG.random(shape), RNG.random(shape[1])
    found = dp.jit(function)(dp.asarray(x), dp.asarray(y))
    np.testing.assert_allclose([*map(float, found)], [*map(float, function(x, y))], 1e-12)


def test_a_reduction_has_the_work_items_that_fill_the_device() -> None:
    shape = 3, 100_000
    x, y = dp.ones(shape, dtype="float32"), dp.ones(shape[1], dtype="float32")
    with launched() as launches:
        total, most = dp.jit(sums)(x, y)
    (space,) = (each.global_range for each in launches if each.name.startswith("sums"))
    assert space == (UNITS * 2048,)
    assert (float(total), float(most)) == (300_000, 1)


def test_explain_counts_the_dimensions_of_the_kernel() -> None:
    x, y = dp.ones((3, 4)), dp.ones(4)
    assert "kernel over 2 dimensions, reduction of most, total" in str(
        dp.explain(dp.jit(sums), x, y)
    )


# -- other loops -----------------------------------------------------------------------------------


def recurrence(x: Any, y: Any, out: Any) -> Any:
    last = 0.5
    for i in range(1, x.shape[0]):
        last = 0.5 * (last + x[i - 1]) + y[i]
        out[i] = last
    return last


def until(x: Any, y: Any, out: Any) -> Any:
    k = 0
    while k < x.shape[0] and x[k] < 2:
        out[k] = x[k] + y[k]
        k += 1
    return k


def squares(x: Any, y: Any, out: Any) -> Any:
    n = x.shape[0]
    for i in range(n):
        for j in range(n):
            out[i] += x[j] * y[i]
    return n


@pytest.fixture
def modes() -> Iterator[list[tuple[str, int]]]:
    """The maps of arrays by which loops run on the host, with their bytes."""
    found: list[tuple[str, int]] = []

    def note(event: str, **values: Any) -> None:
        if event == "map":
            found.append((values["mode"], values["nbytes"]))

    with observed(note):
        yield found


@pytest.mark.parametrize(
    ("function", "size", "is_on_host"),
    [
        (recurrence, 20, False), (recurrence, 5000, True),
        (until, 20, True),  # how often it iterates is not known before
        (squares, 20, False), (squares, 65, True),
    ],
)  # fmt: skip
def test_only_short_loops_are_one_work_item(
    function: Callable[..., Any], size: int, is_on_host: bool, modes: list[Any]
) -> None:
    x, y = RNG.random((2, size))
    out = np.zeros(size)
    wanted = function(x, y, out)
    found = dp.zeros(size)
    with pytest.warns(dp.FallbackWarning) as told:
        result = dp.jit(function)(dp.asarray(x), dp.asarray(y), found)
    (text,) = (str(each.message) for each in told)
    assert (f"on the host, for which {3 * 8 * size} bytes leave" in text) is is_on_host
    assert ("as a single work-item" in text) is not is_on_host
    assert f"line {function.__code__.co_firstlineno + 2}" in text
    assert sorted(modes) == ([("r", 8 * size), ("r", 8 * size), ("rw", 8 * size)] * is_on_host)
    np.testing.assert_allclose(float(result), wanted)
    np.testing.assert_allclose(found.asnumpy(), out, 1e-12)


def test_the_policy_decides_before_anything_runs() -> None:
    @dp.jit
    def changed(x: Any) -> None:
        x += 1
        for i in range(1, x.shape[0]):
            x[i] += x[i - 1]

    x = dp.ones(5000)
    with dp.config.override(fallback="error"), pytest.raises(dp.exceptions.FallbackError):
        changed(x)
    assert x[-1].item() == 1
    with dp.config.override(fallback="allow"), warnings.catch_warnings():
        warnings.simplefilter("error")
        changed(x)
    np.testing.assert_array_equal(x.asnumpy(), np.cumsum(np.full(5000, 2.0)))


@pytest.mark.filterwarnings("ignore::dparray.FallbackWarning")
@pytest.mark.parametrize("size", [10, 6000])
def test_views_and_overlapping_arrays(size: int) -> None:
    def shifted(x: Any, y: Any) -> None:
        for i in range(y.shape[0]):
            x[i] += y[i]

    base, host = np.arange(float(size)), np.arange(float(size))
    shifted(host[1:], host[:-1])
    x = dp.asarray(base)
    dp.jit(shifted)(x[1:], x[:-1])
    np.testing.assert_array_equal(x.asnumpy(), host)
    host = base.reshape(-1, 2).copy()
    shifted(host[::-1, 1], base[: size // 2])
    x = dp.asarray(base.reshape(-1, 2))
    dp.jit(shifted)(x[::-1, 1], dp.asarray(base)[: size // 2])
    np.testing.assert_array_equal(x.asnumpy(), host)


@pytest.mark.filterwarnings("ignore::dparray.FallbackWarning")
@pytest.mark.parametrize("size", [10, 6000])
def test_loops_that_swap_arrays_and_read_tuples(size: int) -> None:
    def smoothed(x: Any, y: Any, weights: Any) -> Any:
        for _ in range(3):
            for i in range(1, x.shape[0] - 1):
                y[i] = weights[0] * x[i - 1] + weights[1] * x[i + 1]
            x, y = y, x
        return x, y[1:]

    host, other = RNG.random(size), np.zeros(size)
    x, y = dp.asarray(host), dp.asarray(other)
    found = dp.jit(smoothed)(x, y, (0.25, 0.5))
    wanted = smoothed(host, other, (0.25, 0.5))
    for one, each in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.asnumpy(), each, 1e-12)
    found[0][0] = 7  # It is an argument, as in the uncompiled function.
    assert y[0].item() == 7


@pytest.mark.filterwarnings("ignore::dparray.FallbackWarning")
def test_results_are_views_of_arguments() -> None:
    def last_row(x: Any) -> Any:
        row = x[0]
        for i in range(x.shape[0]):
            row = x[i]
            row[0] += 1
        return row

    for part in (np.s_[:], np.s_[:, ::2], np.s_[::-1, 1:]):
        host = np.arange(24.0).reshape(4, 6)
        x = dp.asarray(host)
        row = dp.jit(last_row)(x[part])
        row += 1
        last_row(host[part])[:] += 1
        np.testing.assert_array_equal(x.asnumpy(), host)


@pytest.mark.filterwarnings("ignore::dparray.FallbackWarning")
def test_exceptions_of_the_host_leave_what_was_written() -> None:
    def checked(x: Any) -> None:
        for i in range(x.shape[0]):
            if x[i] > 4999:
                raise ValueError("large")
            x[i] = -1

    x = dp.arange(6000.0)
    with pytest.raises(ValueError, match="large"):
        dp.jit(checked)(x)
    assert x[4999].item() == -1
    assert x[5000].item() == 5000


@pytest.mark.filterwarnings("ignore::dparray.FallbackWarning")
@pytest.mark.parametrize("count", ["n", "3"])
def test_a_loop_that_makes_the_only_array(count: str) -> None:
    text = f"""
def f(n):
    total = 0.0
    for i in range({count}):
        x = np.zeros(3)
        x[i] = 1
        total += x[i]
    return x, total
"""
    function = function_of(text)
    x, total = dp.jit(function)(3)
    assert x.queue == dp.zeros(1).queue
    assert x.tolist() == [0, 0, 1]
    assert total == 3
