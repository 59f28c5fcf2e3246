"""Operations on arrays of every shape: elementwise, broadcast, reductions, scans, transposed.

All arrays have the same number of elements, in rows of 1 to 4,096 and in three dimensions. Each row
states the least bytes that the work moves, including its result. Elements of the result have 8
bytes where integers are added up or divided. An elementwise kernel over contiguous memory runs in
the same turns: a share below 1 is the cost of the shape.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import dparray as dp
from tests.benchmarks._registry import Benchmark, Row, Settings, complete, row
from tests.benchmarks._timer import Candidate
from tests.benchmarks.algorithms import elementwise

#: Lengths of rows: powers of two, their neighbors, and common lengths.
COLUMNS = tuple(
    sorted({1 << power for power in range(13)} | {3, 5, 7, 15, 31, 33, 63, 65, 100, 1000})
)
DTYPES = ("float32", "float64", "int32", "uint8")

#: Operations by name: a function of a module, a matrix, one of its rows and one of its columns, and
#: the number of bytes read per byte of the matrix.
CASES: dict[str, tuple[Callable[..., Any], float]] = {
    "x + 1": (lambda m, x, row, column: x + 1, 1),
    "x - row": (lambda m, x, row, column: x - row, 1),
    "x * column": (lambda m, x, row, column: x * column, 1),
    "x.T + 1": (lambda m, x, row, column: x.T + 1, 1),
    "copy of x.T": (lambda m, x, row, column: m.ascontiguousarray(x.T), 1),
    "x[::2] + 1": (lambda m, x, row, column: x[::2] + 1, 0.5),
    "x[:, ::-1] + 1": (lambda m, x, row, column: x[:, ::-1] + 1, 1),
    "sum, axis 0": (lambda m, x, row, column: x.sum(axis=0), 1),
    "sum, axis 1": (lambda m, x, row, column: x.sum(axis=1), 1),
    "max, axis 1": (lambda m, x, row, column: x.max(axis=1), 1),
    "cumsum, axis 1": (lambda m, x, row, column: m.cumsum(x, axis=1), 1),
    "standardised": (
        lambda m, x, row, column: (x - m.mean(x, axis=0)) / (m.std(x, axis=0) + 1e-3),
        3,
    ),
}
#: The same for an array of three dimensions.
CUBES: dict[str, tuple[Callable[..., Any], float]] = {
    "inner part * 2 + 1": (lambda m, x: x[1:-1, 1:-1] * 2 + 1, 1),
    "swapped axes + 1": (lambda m, x: m.swapaxes(x, 0, 1) + 1, 1),
    "sum, axes 0 and 1": (lambda m, x: x.sum(axis=(0, 1)), 1),
}


def rows(settings: Settings) -> Iterator[Row]:
    """Yield each case with each length of rows and each dtype, for each size."""
    random = np.random.default_rng(5)
    for size in settings.sizes:
        for dtype in DTYPES:
            values = random.integers(0, 100, size).astype(dtype)
            for columns in (each for each in COLUMNS if each <= size):
                yield from _rows(settings, values, columns)


def _rows(settings: Settings, values: np.ndarray, columns: int) -> Iterator[Row]:
    """Yield the cases with rows of one length."""
    count = values.size // columns
    flat = values[: count * columns]
    table = flat.reshape(count, columns)
    deep = max(1, int(count**0.5))
    cube = flat[: deep * deep * columns].reshape(deep, deep, columns)
    given = (table, table[0].copy(), table[:, :1].copy())
    plain = Candidate(elementwise(settings, dp.asarray(flat, device=settings.device)))
    for cases, theirs in ((CASES, given), (CUBES, (cube,))):
        ours = [dp.asarray(each, device=settings.device) for each in theirs]
        for name, (function, share) in cases.items():
            candidates = {
                "dparray": Candidate(complete(settings, partial(function, dp, *ours))),
                "numpy": Candidate(partial(function, np, *theirs)),
                "elementwise": plain,
            }
            yield row(
                settings,
                f"{name}, {' x '.join(map(str, theirs[0].shape))}, {values.dtype}",
                flat.size,
                candidates,
                bytes_moved=int(share * theirs[0].nbytes) + function(np, *theirs).nbytes,
                elementwise_bytes=2 * flat.nbytes,
            )


def conclusion(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how many cells reach the memory bandwidth and beat NumPy, and the worst ones."""
    shares = {each.case: each.share or 0.0 for each in rows if each.timings}
    ahead = {
        each.case: each.timings["numpy"].median / each.timings["dparray"].median
        for each in rows
        if each.timings
    }
    if not shares:
        return
    fast = sum(share >= 0.6 for share in shares.values())
    faster = sum(ratio > 1 for ratio in ahead.values())
    yield (
        f"{fast} of {len(shares)} at 0.6 of the memory's speed and more, median "
        f"{statistics.median(shares.values()):.2f}; {faster} ahead of NumPy"
    )
    for title, found in (("least of the memory's speed", shares), ("behind NumPy", ahead)):
        worst = sorted(found, key=lambda case: found[case])[:8]
        yield f"{title}: " + "; ".join(f"{case} {found[case]:.2f}" for case in worst)


BENCHMARK = Benchmark(
    "shapes",
    "rows of 1 to 4096, transposes, strides: what a shape costs",
    rows,
    sizes=(16_000_000,),
    conclude=conclusion,
)
