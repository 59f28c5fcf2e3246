"""Cotangents of slices of large arrays, which kernels add where they are stored."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import _hooks
from dparray._array.nodes import assembled_array
from dparray._graph.assembly import Box
from dparray._placement import placement_of


def extended(x: Any, start: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    box = Box(0, start, (0,) * x.ndim, x.shape)
    return assembled_array("extend", (x,), (box,), shape, x.dtype, placement_of(x), fills=True)


def expected(x: Any, start: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    out = np.zeros(shape, x.dtype)
    out[tuple(slice(a, a + n) for a, n in zip(start, x.shape, strict=True))] = x
    return out


def random(shape: Any, dtype: str = "f8", seed: int = 0) -> Any:
    values = np.random.default_rng(seed).normal(size=(2, *shape))
    return (values[0] + (1j * values[1] if dtype[0] == "c" else 0)).astype(dtype)


def neighbors(extend: Any, x: Any) -> Any:
    whole = tuple(n + 2 for n in x.shape)
    total = 2 * extend(x, (1,) * x.ndim, whole)
    for axis in range(x.ndim):
        for start in (0, 2):
            first = [1] * x.ndim
            first[axis] = start
            total = total + extend(x, tuple(first), whole)
    return total


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(70_000,), (300, 301), (40, 41, 42), (500, 6), (1, 90_000)])
def test_extended_arrays_are_zero_outside_of_their_box(shape: Any, dtype: str) -> None:
    values = random(shape, dtype)
    x = dp.asarray(values)
    want = neighbors(expected, values)
    for turned, host in ((x, values), (x.T, values.T)):
        want = neighbors(expected, host)
        for backend in (True, False):
            with dp.config.override(fused_tier=backend):
                found = neighbors(extended, turned).asnumpy()
            assert np.allclose(found, want, rtol=1e-5, atol=1e-6)


def test_extended_arrays_meet_rolled_ones_reductions_and_broadcasting() -> None:
    values = random((300, 200))
    x = dp.asarray(values)
    start, shape = (3, 0), (305, 200)
    both = extended(x, start, shape) + dp.roll(extended(x, start, shape), 7, axis=1)
    want = expected(values, start, shape)
    assert np.allclose(both.asnumpy(), want + np.roll(want, 7, axis=1))
    total = dp.sum(extended(x, start, shape) * 2, axis=0)
    assert np.allclose(total.asnumpy(), 2 * want.sum(axis=0))
    row = extended(dp.asarray(values[:1]), (0, 5), (1, 210))
    more = row + dp.ones((400, 1))
    assert np.allclose(more.asnumpy(), expected(values[:1], (0, 5), (1, 210)) + np.ones((400, 1)))


def test_two_boxes_of_one_array_are_told_apart() -> None:
    values = random((90_000,))
    x = dp.asarray(values)
    short, long = x[:80_000], x[:85_000]
    total = extended(short, (0,), (90_000,)) + extended(long, (0,), (90_000,)) + x
    want = values.copy()
    want[:80_000] += values[:80_000]
    want[:85_000] += values[:85_000]
    assert np.allclose(total.asnumpy(), want)


def test_a_write_to_the_operand_comes_after_its_reading() -> None:
    values = random((90_000,))
    x = dp.asarray(values)
    y = extended(x, (5,), (90_010,))
    x[...] = 0
    assert np.array_equal(y.asnumpy(), expected(values, (5,), (90_010,)))
    z = dp.asarray(values)
    z[...] = extended(z[:-5], (5,), (90_000,))
    assert np.array_equal(z.asnumpy(), expected(values[:-5], (5,), (90_000,)))


KEYS = [
    (slice(1, -1), slice(1, -1)),
    (slice(None, -2), slice(1, -1)),
    (slice(2, None), slice(1, -1)),
    (slice(1, -1), slice(None, -2)),
    (Ellipsis, slice(2, None)),
    slice(5, None),
    (slice(None, None, 2), slice(None)),
    (slice(None, None, -1), Ellipsis),
    (Ellipsis, 7),
    -3,
    (None, slice(10, None)),
    (slice(0, 5), slice(None)),
    (slice(5, 5), slice(None)),
]


@pytest.mark.parametrize("seed", range(12))
def test_sums_of_slices_have_numpys_gradients(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = random((320, 300), "f8", seed)
    keys = [KEYS[i] for i in rng.integers(len(KEYS), size=6)]
    weights = [random(values[key].shape, "f8", seed + 1) for key in keys]
    held = [dp.asarray(w) for w in weights]

    def f(x: Any) -> Any:
        total = dp.sum(x * x)
        for key, w in zip(keys, held, strict=True):
            total = total + dp.sum(x[key] * w)
        return total

    want = 2 * values
    for key, w in zip(keys, weights, strict=True):
        want[key] += w
    assert np.allclose(dp.grad(f)(dp.asarray(values)).asnumpy(), want)


def test_more_slices_than_a_kernel_reads() -> None:
    values = random((90_000,))

    def f(x: Any) -> Any:
        total = 0.0
        for i in range(1, 20):
            total = total + dp.sum(x[i:] * x[:-i])
        return total

    want = np.zeros_like(values)
    for i in range(1, 20):
        want[i:] += values[:-i]
        want[:-i] += values[i:]
    assert np.allclose(dp.grad(f)(dp.asarray(values)).asnumpy(), want)


def heat(u: Any) -> Any:
    for _ in range(4):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u = inner + 0.1 * (around - 4 * inner)
    return dp.sum(u * u)


@pytest.mark.parametrize("is_replayed", [False, True])
def test_a_stencil_takes_a_launch_for_each_step_and_direction(is_replayed: bool) -> None:
    x = dp.ones(1)
    n = 100 if "cuda" in str(x.device) else 1000  # the stand-in for CUDA is slow
    x = dp.asarray(random((n, n), "f4"))

    def works(f: Any) -> list[str]:
        found: list[str] = []
        stop = _hooks.subscribe(lambda event, **_: found.append(event))
        f()
        stop()
        return [event for event in found if event in ("launch", "host", "library")]

    until = time.monotonic() + 60
    both = dp.value_and_grad(heat)
    if is_replayed:
        both = dp.jit(both)
        works(lambda: both(x))
        works(lambda: both(x))
    while "host" in (found := works(lambda: dp.eval(*both(x)))) and time.monotonic() < until:
        time.sleep(0.2)  # kernels are compiled in the background
    forward = works(lambda: dp.eval(heat(x)))
    # Another launch stores the last step, which the sum alone does not need in memory.
    assert set(found) == {"launch"}
    others = 1 + ("cuda" in str(x.device))  # the cotangent of the sum is stored on a GPU
    assert len(found) <= len(forward) + 4 + others
