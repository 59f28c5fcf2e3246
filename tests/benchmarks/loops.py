"""``prange`` loops of ``dp.jit`` against Numba's ``parallel=True``, in turns.

A time is the 20th percentile of batches, because other programs on the machine only make a batch
slower. A batch ends when the device is idle. The control times the same work of NumPy under both
names; it must read 1.00 +- 0.05.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numba
import numpy as np

import dparray as dp
from tests.benchmarks import _loop_programs as programs
from tests.benchmarks._registry import Benchmark, Row, Settings, finish
from tests.benchmarks._timer import Timing, summary

_SQUARES = (256, 512, 1000, 1024, 2000)
_LENGTHS = (10_000, 1_000_000, 10_000_000)
_MIN_BATCH = 500e-6
_MIN_ROUNDS = 8


def _cases() -> Iterator[tuple[str, Callable[..., Any], Callable[[], list[Any]]]]:
    """Yield a name, the program, and a function that creates its arguments."""
    random = np.random.default_rng(1).random
    for n in _SQUARES:
        for name, program in (
            ("stencil, rows", programs.stencil_rows),
            ("stencil, both", programs.stencil_both),
            ("stencil, row statements", programs.row_statements),
            ("stencil, array statement", programs.array_statement),
        ):
            yield f"{name}, {n}", program, lambda n=n: [np.zeros((n, n)), random((n, n)), 0.1]
        yield f"row maxima, {n}", programs.row_maxima, lambda n=n: [np.zeros(n), random((n, n))]
        yield (
            f"transposition, {n}",
            programs.transposition,
            lambda n=n: [np.zeros((n, n)), random((n, n))],
        )
    for n in _LENGTHS:
        yield f"saxpy, {n}", programs.saxpy, lambda n=n: [random(n), random(n), 1e-3]
        yield f"shift, {n}", programs.shift, lambda n=n: [np.zeros(n), random(n), 3]
        yield f"sum of products, {n}", programs.sum_of_products, lambda n=n: [random(n), random(n)]
    yield "stencil, 3-d, 128", programs.stencil_3d, lambda: [
        np.zeros((128, 128, 128)), random((128, 128, 128)), 0.1
    ]  # fmt: skip
    yield "matrix product, 256", programs.matrix_product, lambda: [
        np.zeros((256, 256)), random((256, 256)), random((256, 256))
    ]  # fmt: skip
    yield "Mandelbrot, 256", programs.mandelbrot, lambda: [np.zeros((256, 256), np.int64), 100]
    yield "n bodies, 1000", programs.n_body, lambda: [np.zeros((3, 1000)), random((3, 1000))]
    yield "histogram, 1e6", programs.histogram, lambda: [
        np.zeros((16, 256), np.int64), random(1_000_000)
    ]  # fmt: skip
    yield "sparse product, 1e5", programs.sparse_product, _sparse


def _sparse() -> list[Any]:
    random = np.random.default_rng(2)
    n, each = 100_000, 10
    columns = random.integers(0, n, n * each)
    return [
        np.zeros(n), random.random(n * each), columns, np.arange(0, n * each + 1, each),
        random.random(n),
    ]  # fmt: skip


def rows(settings: Settings) -> Iterator[Row]:
    """Yield the cells, and the control first and last."""
    yield _control(settings)
    for case, program, make in _cases():
        if settings.only and not any(each in case for each in settings.only):
            continue
        theirs = make()
        ours = [
            dp.asarray(each, device=settings.device) if isinstance(each, np.ndarray) else each
            for each in theirs
        ]
        by_dparray, by_numba = dp.jit(program), numba.njit(parallel=True)(program)
        results = by_dparray(*ours), by_numba(*theirs)
        found = [*ours, results[0]]
        for one, other in zip(found, [*theirs, results[1]], strict=True):
            if one is not None:
                np.testing.assert_allclose(np.asarray(dp.asarray(one).asnumpy()), other, 1e-9)

        def call(by_dparray: Any = by_dparray, ours: Any = ours) -> None:
            by_dparray(*ours)

        def call_numba(by_numba: Any = by_numba, theirs: Any = theirs) -> None:
            by_numba(*theirs)

        yield Row(
            case,
            max(prod(each.shape) for each in theirs if isinstance(each, np.ndarray)),
            _in_turns(settings, {"dp.jit": call, "numba": call_numba}),
        )
    yield _control(settings)


def _control(settings: Settings) -> Row:
    x = np.ones(100_000)
    calls = {"dp.jit": lambda: np.add(x, 1.0), "numba": lambda: np.add(x, 1.0)}
    return Row("control (NumPy twice)", x.size, _in_turns(settings, calls))


def _in_turns(settings: Settings, calls: dict[str, Callable[[], Any]]) -> dict[str, Timing]:
    counts, times = {}, dict[str, list[float]]()
    for name, call in calls.items():
        once = min(_batch(settings, call, 1) for _ in range(5))
        counts[name], times[name] = int(_MIN_BATCH / once) + 1, []
    end = time.perf_counter() + settings.budget
    while time.perf_counter() < end or len(times["numba"]) < _MIN_ROUNDS:
        for name, call in calls.items():
            call()  # the threads and caches are then in the state that the same program leaves
            times[name].append(_batch(settings, call, counts[name]))
    return {name: _low(found) for name, found in times.items()}


def _batch(settings: Settings, call: Callable[[], Any], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    finish(settings)
    return (time.perf_counter() - start) / count


def _low(times: list[float]) -> Timing:
    """Return a timing whose median is the 20th percentile."""
    whole = summary(times)
    return Timing(statistics.quantiles(times, n=5)[0], whole.best, whole.spread, whole.rounds)


def conclusion(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the geometric mean and the lowest cells."""
    speeds = {
        each.case: each.timings["numba"].median / each.timings["dp.jit"].median
        for each in rows
        if not each.case.startswith("control")
    }
    if speeds:
        low = [case for case in sorted(speeds, key=lambda case: speeds[case]) if speeds[case] < 0.9]
        yield (
            f"{len(speeds)} cells; geometric mean of the speed relative to Numba "
            f"{statistics.geometric_mean(speeds.values()):.2f}; below 0.9: "
            + (", ".join(f"{case} {speeds[case]:.2f}" for case in low) or "none")
        )


BENCHMARK = Benchmark(
    "loops", "prange loops of dp.jit against Numba's parallel=True", rows, conclude=conclusion
)
