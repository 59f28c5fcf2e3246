"""Common functions, methods and indices on few elements and on many, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import exp, isqrt, log
from typing import Any

import numpy as np

import dparray as dp
from dparray._array.ndarray import materialize
from tests.benchmarks._registry import Benchmark, Row, Settings, finish, row
from tests.benchmarks._timer import Candidate


class Operands:
    """Vectors, a matrix, positions and a mask of ``size`` elements."""

    def __init__(self, size: int, move: Callable[[np.ndarray], Any]) -> None:
        random = np.random.default_rng(1)
        rows = isqrt(size)
        self.size = size
        self.x = move(random.uniform(0.0, 1.0, size).astype(np.float32))
        self.y = move(random.uniform(0.0, 1.0, size).astype(np.float32))
        self.out = move(np.empty(size, np.float32))
        self.sorted = move(np.linspace(0.0, 1.0, size, dtype=np.float32))
        self.matrix = move(random.uniform(0.0, 1.0, (rows, size // rows)).astype(np.float32))
        self.numbers = move(random.integers(0, 64, size, dtype=np.int64))
        self.positions = move(random.integers(0, size, size, dtype=np.int64))
        self.mask = move(random.uniform(0.0, 1.0, size) < 0.5)
        self.begins_true = move(np.arange(size) < 1)
        self.weights = move(np.ones(5, np.float32))


#: By name; each is called with the module and the operands.
CALLS: dict[str, Callable[[Any, Operands], Any]] = {
    "zeros": lambda np, o: np.zeros(o.size),
    "ones": lambda np, o: np.ones(o.size, "float32"),
    "full": lambda np, o: np.full(o.size, 2.0),
    "arange": lambda np, o: np.arange(o.size),
    "linspace": lambda np, o: np.linspace(0.0, 1.0, o.size),
    "copy": lambda np, o: o.x.copy(),
    "astype": lambda np, o: o.x.astype("float64"),
    "reshape": lambda np, o: o.x.reshape(-1, 1),
    "ravel": lambda np, o: o.matrix.ravel(),
    "transpose": lambda np, o: np.transpose(o.matrix),
    "x[3]": lambda np, o: o.x[3],
    "x[1:-1]": lambda np, o: o.x[1:-1],
    "x[mask]": lambda np, o: o.x[o.mask],
    "x[positions]": lambda np, o: o.x[o.positions],
    "take": lambda np, o: np.take(o.x, o.positions),
    "concatenate": lambda np, o: np.concatenate([o.x, o.y]),
    "stack": lambda np, o: np.stack([o.x, o.y]),
    "tile": lambda np, o: np.tile(o.x, 2),
    "repeat": lambda np, o: np.repeat(o.x, 2),
    "roll": lambda np, o: np.roll(o.x, 1),
    "flip": lambda np, o: np.flip(o.x),
    "pad": lambda np, o: np.pad(o.x, 1),
    "where": lambda np, o: np.where(o.mask, o.x, o.y),
    "clip": lambda np, o: np.clip(o.x, 0.2, 0.8),
    "maximum": lambda np, o: np.maximum(o.x, 0.5),
    "add, out": lambda np, o: np.add(o.x, o.y, out=o.out),
    "exp": lambda np, o: np.exp(o.x),
    "isnan": lambda np, o: np.isnan(o.x),
    "sum": lambda np, o: np.sum(o.x),
    "sum, axis": lambda np, o: np.sum(o.matrix, axis=0),
    "mean": lambda np, o: o.x.mean(),
    "std": lambda np, o: np.std(o.x),
    "max": lambda np, o: np.max(o.x),
    "argmax": lambda np, o: np.argmax(o.x),
    "any, begins true": lambda np, o: np.any(o.begins_true),
    "count_nonzero": lambda np, o: np.count_nonzero(o.mask),
    "nonzero": lambda np, o: np.nonzero(o.mask),
    "cumsum": lambda np, o: np.cumsum(o.x),
    "diff": lambda np, o: np.diff(o.x),
    "sort": lambda np, o: np.sort(o.x),
    "argsort": lambda np, o: np.argsort(o.x),
    "unique": lambda np, o: np.unique(o.numbers),
    "searchsorted": lambda np, o: np.searchsorted(o.sorted, o.x),
    "median": lambda np, o: np.median(o.x),
    "percentile": lambda np, o: np.percentile(o.x, 90),
    "bincount": lambda np, o: np.bincount(o.numbers),
    "histogram": lambda np, o: np.histogram(o.x, 10),
    "interp": lambda np, o: np.interp(o.x, o.sorted, o.y),
    "convolve": lambda np, o: np.convolve(o.x, o.weights),
    "dot": lambda np, o: np.dot(o.x, o.y),
    "norm": lambda np, o: np.linalg.norm(o.x),
}


def rows(settings: Settings) -> Iterator[Row]:
    """Yield a row for each function and size."""
    for size in settings.sizes:
        ours = Operands(size, lambda values: dp.asarray(values, device=settings.device))
        host = Operands(size, np.asarray)
        with dp.use_device(settings.device):
            for case, call in CALLS.items():
                yield row(settings, case, size, _candidates(settings, call, ours, host))


def _candidates(
    settings: Settings, call: Callable[..., Any], ours: Operands, host: Operands
) -> dict[str, Candidate]:
    def ours_alone() -> Any:
        return call(dp, ours)

    def complete() -> None:
        for each in _arrays(call(dp, ours)):
            materialize(each)
        finish(settings)

    # Small arrays are computed during the call.
    is_pending = any(each._host_view is None for each in _arrays(call(dp, ours)))
    return {
        "dparray": Candidate(complete if is_pending else ours_alone),
        "numpy": Candidate(lambda: call(np, host)),
    }


def _arrays(result: Any) -> list[dp.ndarray]:
    parts = result if isinstance(result, tuple) else (result,)
    return [each for each in parts if isinstance(each, dp.ndarray)]


def conclude(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the geometric mean of the speed relative to NumPy, and the slowest, for each size."""
    for size in dict.fromkeys(each.size for each in rows):
        speeds = {
            each.case: each.timings["numpy"].low / each.timings["dparray"].low
            for each in rows
            if each.size == size
        }
        mean = exp(sum(map(log, speeds.values())) / len(speeds))
        slowest = sorted(speeds, key=speeds.__getitem__)[:5]
        shown = ", ".join(f"{case} {speeds[case]:.2f}" for case in slowest)
        yield f"{size} elements: {mean:.2f} of NumPy's speed; slowest: {shown}"


BENCHMARK = Benchmark(
    "functions", "common functions beside NumPy", rows, (100, 1_000_000), conclude
)
