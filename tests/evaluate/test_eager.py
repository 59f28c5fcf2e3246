"""Eager mode: with laziness off, each operation is computed by its bound plan."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import dpnp
import numpy as np
import pytest

import dparray as dp
from dparray._evaluate import evaluate, schedule
from dparray._evaluate.plan import KernelEntry
from tests.support import force


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    """Compile each new structure immediately; the host computes nothing."""
    with force("fused"), dp.config.override(lazy=False, host_tier=False):
        yield


RNG = np.random.default_rng(0)
A = RNG.standard_normal((6, 8)).astype(np.float32)
B = RNG.standard_normal((6, 8)).astype(np.float32)
N = RNG.integers(-9, 9, (6, 8))

CALLS: dict[str, Callable[..., Any]] = {
    "two arrays": lambda xp, a, b, n: a + b,
    "one array twice": lambda xp, a, b, n: a * a,
    "equal views": lambda xp, a, b, n: a[1:] * a[1:],
    "overlapping views": lambda xp, a, b, n: a[1:] - a[:-1],
    "transposed": lambda xp, a, b, n: a[:, :6] + a[:, :6].T,
    "negative strides": lambda xp, a, b, n: xp.exp(a[::-1, ::-2]),
    "broadcast": lambda xp, a, b, n: a[:, :1] - b[0],
    "scalar": lambda xp, a, b, n: 1.5 - a,
    "integer and scalar": lambda xp, a, b, n: n // 3,
    "mixed dtypes": lambda xp, a, b, n: a * n,
    "comparison": lambda xp, a, b, n: a < b,
    "choice": lambda xp, a, b, n: xp.where(a > 0, a, b),
    "choice of scalars": lambda xp, a, b, n: xp.where(n > 0, a, 0.5),
    "conversion": lambda xp, a, b, n: n.astype("float32"),
    "floats divided and floored": lambda xp, a, b, n: a // b,
    "power": lambda xp, a, b, n: abs(a) ** b,
    "sum": lambda xp, a, b, n: xp.sum(a),
    "sum of an axis": lambda xp, a, b, n: xp.sum(n, axis=0),
    "sum of a view": lambda xp, a, b, n: a[::2, ::-1].sum(axis=1, keepdims=True),
    "maximum": lambda xp, a, b, n: xp.max(a, axis=1),
    "mean": lambda xp, a, b, n: xp.mean(a, axis=0),
    "variance": lambda xp, a, b, n: xp.var(a, axis=1),
    "position": lambda xp, a, b, n: xp.argmax(a, axis=1),
    "truth": lambda xp, a, b, n: xp.any(n > 5, axis=0),
    "zero dimensions": lambda xp, a, b, n: a[0, 0] + b[0, 0],
    "no elements": lambda xp, a, b, n: a[:0] + b[:0],
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("usm_type", ["device", "shared"])
def test_each_call_gives_the_same_again_and_again(name: str, usm_type: str, queue: Any) -> None:
    call = CALLS[name]
    arrays = [dp.asarray(x, sycl_queue=queue, usm_type=usm_type) for x in (A, B, N)]
    others = [dp.asarray(x[::-1].copy(), sycl_queue=queue, usm_type=usm_type) for x in (A, B, N)]
    expected, turned = call(np, A, B, N), call(np, A[::-1].copy(), B[::-1].copy(), N[::-1].copy())
    for _ in range(3):
        for given, values in ((arrays, expected), (others, turned)):
            result = call(dp, *given)
            assert result.queue == queue
            assert result.usm_type == usm_type
            assert (result.dtype, result.shape) == (values.dtype, values.shape)
            np.testing.assert_allclose(result.asnumpy(), values, rtol=2e-5, atol=1e-5)


def test_scalars_are_arguments() -> None:
    x = dp.asarray(A)
    for scalar in (1.0, 2.5, -3.0):
        np.testing.assert_array_equal((x * scalar).asnumpy(), A * np.float32(scalar))


def test_memory_of_others_stays_while_it_is_read() -> None:
    for _ in range(20):
        theirs = dpnp.asarray(A)
        ours = dp.asarray(theirs)
        result = ours + ours
        del theirs, ours
        np.testing.assert_array_equal(result.asnumpy(), A + A)


def test_an_array_that_changes_its_shape() -> None:
    x = dp.asarray(A)
    for _ in range(2):
        x = x + 0
        x.shape = (8, 6)
        np.testing.assert_array_equal((x * x).asnumpy(), (A * A).reshape(8, 6))
        x.shape = (6, 8)
        np.testing.assert_array_equal((x * x).asnumpy(), A * A)


def test_written_values_are_read() -> None:
    x = dp.asarray(A)
    for step in range(5):
        x[1:3] = step
        y = x + x
        x[1:3] = -1
        assert (y[1:3].asnumpy() == 2 * step).all()


OUTS: dict[str, Callable[..., Any]] = {
    "new memory": lambda xp, a, b, out: xp.add(a, b, out=out),
    "in place": lambda xp, a, b, out: xp.multiply(out, a, out=out),
    "twice": lambda xp, a, b, out: xp.add(out, out, out=out),
    "overlapping": lambda xp, a, b, out: xp.add(out[1:], out[:-1], out=out[:-1]),
    "overlapping backwards": lambda xp, a, b, out: xp.add(out[1:], out[:-1], out=out[1:]),
    "transposed": lambda xp, a, b, out: xp.add(out[:, :6].T, a[:, :6], out=out[:, :6]),
    "a view": lambda xp, a, b, out: xp.subtract(a[:, ::2], b[:, ::2], out=out[:, ::-2]),
    "broadcast": lambda xp, a, b, out: xp.add(a[0], 1.5, out=out),
    "operator": lambda xp, a, b, out: out.__iadd__(2),
}


@pytest.mark.parametrize("name", OUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_in_memory_that_is_there(name: str, dtype: str, queue: Any) -> None:
    x, y, out = (dp.asarray(v, sycl_queue=queue) for v in (A, B, np.ones((6, 8), dtype)))
    expected = np.ones((6, 8), dtype)
    for _ in range(4):
        OUTS[name](dp, x, y, out)
        OUTS[name](np, A, B, expected)
        np.testing.assert_allclose(out.asnumpy(), expected, rtol=2e-5, atol=1e-5)


def test_pending_readers_see_the_old_values() -> None:
    x = dp.asarray(A)
    y = dp.asarray(B)
    for _ in range(3):
        with dp.config.override(lazy=True):
            waiting = x * 3
        before = x.asnumpy()
        dp.add(x, y, out=x)
        np.testing.assert_allclose(waiting.asnumpy(), before * 3, rtol=1e-6)


def test_forgotten_kernels_are_not_launched() -> None:
    x = dp.asarray(A)
    dp.exp(x)
    dp.exp(x)
    evaluate.forget()
    np.testing.assert_allclose(dp.exp(x).asnumpy(), np.exp(A), rtol=1e-6)


@pytest.mark.slow
def test_memory_keeps_a_bounded_number_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def programs(x: Any) -> list[Any]:
        with dp.config.override(lazy=True):
            found = [dp.exp(x) * count + sum([x * x] * count) for count in range(1, 7)]
        u, v = dp.zeros_like(x), dp.zeros_like(x)
        for row in range(5):
            u[row] = x[row] - row
            v[: row + 1] = x[: row + 1] * x[1 : row + 2]
        return [*found, u, v]

    wanted = [each.asnumpy() for each in programs(dp.asarray(A))]
    evaluate.forget()

    def alive() -> int:
        gc.collect()
        return sum(type(each) is KernelEntry for each in gc.get_objects())

    others = alive()
    monkeypatch.setattr(schedule, "MAX_ENTRIES", 3)
    for _ in range(3):
        for found, values in zip(programs(dp.asarray(A)), wanted, strict=True):
            np.testing.assert_allclose(found.asnumpy(), values, rtol=1e-6)
        assert alive() - others <= 3
