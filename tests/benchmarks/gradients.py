"""Gradients against the forward pass, and against JAX if it is installed.

``python -m tests.benchmarks.gradients`` prints the peak memory of gradients.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator
from math import isqrt
from typing import Any

import numpy as np

import dparray as dp
from tests.benchmarks._registry import Benchmark, Row, Settings, finish, row
from tests.benchmarks._timer import Candidate
from tests.support import wait_for_compiler

try:
    import jax
except ImportError:
    jax = None  # type: ignore[assignment]


def chain(m: Any, x: Any, y: Any) -> Any:
    return m.mean((m.sin(x) * m.exp(-x * x) - y) ** 2)


def black_scholes(m: Any, price: Any, strike: Any) -> Any:
    first = (m.log(price / strike) + 0.1) / 0.3
    second = first - 0.3

    def normal(z: Any) -> Any:
        return 0.5 * (1 + m.tanh(0.79788 * (z + 0.044715 * z * z * z)))

    return m.sum(price * normal(first) - 0.95 * strike * normal(second))


def heat(m: Any, u: Any) -> Any:
    for _ in range(4):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u = u[1:-1, 1:-1] + 0.1 * (around - 4 * u[1:-1, 1:-1])
    return m.sum(u * u)


def network(m: Any, w1: Any, b1: Any, w2: Any, b2: Any, x: Any, target: Any) -> Any:
    z = m.maximum(x @ w1 + b1, 0.0) @ w2 + b2
    z = z - m.max(z, axis=1, keepdims=True)
    return -m.mean(m.sum(target * (z - m.log(m.sum(m.exp(z), axis=1, keepdims=True))), axis=1))


@dp.jit
def diffused(u: Any) -> Any:
    v = u.copy()
    for i in dp.prange(1, u.shape[0] - 1):
        for j in dp.prange(1, u.shape[1] - 1):
            v[i, j] += 0.1 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
    return v


@dp.jit
def energies(p: Any, q: Any) -> Any:
    found = dp.empty_like(p, shape=p.shape[:1])
    for i in dp.prange(p.shape[0]):
        energy = 0.0
        for j in range(q.shape[0]):
            x, y, z = p[i, 0] - q[j, 0], p[i, 1] - q[j, 1], p[i, 2] - q[j, 2]
            energy += 1 / math.sqrt(x * x + y * y + z * z + 0.1)
        found[i] = energy
    return found


def rows(settings: Settings) -> Iterator[Row]:
    """Yield four programs, the first three for each size, and two with ``prange`` loops."""
    random = np.random.default_rng(0)

    def values(*shape: int, low: float = 0.5, high: float = 1.5) -> Any:
        return random.uniform(low, high, shape).astype("float32")

    for size in settings.sizes:
        pair, side = [values(size), values(size)], isqrt(size)
        yield _program(settings, f"chain, {size}", chain, pair, (0,))
        yield _program(settings, f"Black-Scholes, {size}", black_scholes, pair, (0, 1))
        yield _program(settings, f"heat, {side} x {side}", heat, [values(side, side)], (0,))
    weights = [values(784, 256, low=-0.05, high=0.05), values(256)]
    weights += [values(256, 10, low=-0.1, high=0.1), values(10)]
    labels = np.eye(10, dtype="float32")[random.integers(0, 10, 128)]
    given = [*weights, values(128, 784), labels]
    yield _program(settings, "network 784-256-10, batch 128", network, given, (0, 1, 2, 3))
    loops = (lambda m, u: m.sum(diffused(u) ** 2)), (lambda m, p, q: m.sum(energies(p, q)))
    yield _program(settings, "loop: 5-point stencil", loops[0], [values(1000, 1000)], (0,), False)
    points = [values(2000, 3), values(2000, 3)]
    yield _program(settings, "loop: 2,000 x 2,000 pairs", loops[1], points, (0, 1), False)


def _program(
    settings: Settings,
    case: str,
    f: Callable[..., Any],
    host: list[Any],
    argnums: Any,
    has_arrays: bool = True,
) -> Row:
    arrays = [dp.asarray(x, device=settings.device) for x in host]
    plain = dp.value_and_grad(lambda *x: f(dp, *x), argnums)
    replayed = dp.jit(plain)

    def forward() -> None:
        dp.eval(f(dp, *arrays))
        finish(settings)

    def both(function: Callable[..., Any]) -> Callable[[], None]:
        def run() -> None:
            value, gradients = function(*arrays)
            dp.eval(value, *gradients)
            finish(settings)

        return run

    candidates = {
        "value_and_grad": Candidate(both(plain)),
        "jit": Candidate(both(replayed)),
        "forward": Candidate(forward),
    }
    if jax is not None and has_arrays:
        given = [jax.numpy.asarray(x) for x in host]
        compiled = jax.jit(jax.value_and_grad(lambda *x: f(jax.numpy, *x), argnums))
        candidates["jax.jit"] = Candidate(lambda: jax.block_until_ready(compiled(*given)))
    return row(settings, case, host[0].size, candidates)


BENCHMARK = Benchmark(
    "gradients",
    "gradients of six programs, by the tape and replayed, and the forward pass",
    rows,
    (100, 1000, 10_000, 1_000_000),
)


def _in_place(u: Any) -> Any:
    for _ in range(16):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] += 0.1 * (around - 4 * u[1:-1, 1:-1])
    return dp.sum(u * u)


def _layers(x: Any, layer: Callable[[Any], Any]) -> Any:
    for _ in range(16):
        x = layer(x)
    return dp.sum(x)


def _peak(f: Callable[..., Any], *arrays: Any) -> float:
    """Return the megabytes that a call takes at most, once its kernels are compiled."""
    for _ in range(6):
        gc.collect()
        before = dp.memory.stats().in_use
        dp.memory.reset_peak()
        result = f(*arrays)
        dp.eval(*result)
        most = dp.memory.stats().peak - before
        del result
        wait_for_compiler()
    return float(most / 1e6)


def _print_peaks() -> None:
    """Print the peaks, and what a backward pass that computes no value again must hold.

    These are the values that derivatives read, the cotangent and the gradients.
    """
    x, y = (dp.asarray(np.random.default_rng(0).random(10**6), dtype="float32") for _ in range(2))
    weights = [dp.full(shape, 0.01, dtype="float32") for shape in ((784, 256), 256, (256, 10), 10)]
    samples = dp.ones((4096, 784), dtype="float32"), dp.ones((4096, 10), dtype="float32")
    sums = lambda x: dp.tanh(dp.cumsum(x) * 1e-6 + x)  # noqa: E731
    programs = {
        "chain": (lambda x: chain(dp, x, y), [x], 20.0),
        "heat, 16 steps in place": (_in_place, [x.reshape(1000, 1000)], 12.0),
        "16 layers of tanh": (lambda x: _layers(x, lambda x: dp.tanh(1.01 * x)), [x], 68.0),
        "16 layers of cumsum and tanh": (lambda x: _layers(x, sums), [x], 76.0),
        "network, batch 4096": (lambda *w: network(dp, *w, *samples), weights, 9.8),
    }
    for name, (f, arrays, kept) in programs.items():
        dp.eval(*arrays)
        both = dp.value_and_grad(f, tuple(range(len(arrays))))
        calls = [both, dp.jit(both)]
        peaks = [_peak(lambda *x, g=g: (lambda y: (y[0], *y[1]))(g(*x)), *arrays) for g in calls]
        print(f"{name:30}", *[f"{megabytes:6.1f}" for megabytes in (*peaks, kept)])


if __name__ == "__main__":
    _print_peaks()
