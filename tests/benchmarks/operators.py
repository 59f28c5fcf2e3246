"""Every elementwise operation against NumPy and dpnp, on the same values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isqrt
from typing import Any

import dpnp
import numpy as np

import dparray as dp
from dparray._graph.ops import OPS, Op
from tests.benchmarks._registry import Benchmark, Row, Settings, complete, finish, row
from tests.benchmarks._timer import Candidate

# Operations whose domain does not contain (0.1, 0.9), where all others are defined.
_SHIFTED = {"acosh": 1.0}


def operands(op: Op, size: int) -> list[np.ndarray]:
    """Return host arrays in an operation's domain: float32, or int32 for integer operations."""
    random = np.random.default_rng(1)
    if _is_for_integers(op):
        return [random.integers(0, 30, size, dtype=np.int32) for _ in range(op.arity)]
    shift = np.float32(_SHIFTED.get(op.name, 0.0))
    return [random.uniform(0.1, 0.9, size).astype(np.float32) + shift for _ in range(op.arity)]


def _is_for_integers(op: Op) -> bool:
    return not any(set(loop.partition("->")[0]) == {"f"} for loop in op.ufunc.types)


def rows(settings: Settings) -> Iterator[Row]:
    """Yield each operation of the table and the matrix product, for each size."""
    for size in settings.sizes:
        for op in OPS.values():
            yield _elementwise(settings, op, size)
        yield _matmul(settings, size)


def _elementwise(settings: Settings, op: Op, size: int) -> Row:
    host = operands(op, size)
    return compare(
        settings,
        op.name,
        size,
        host,
        getattr(dp, op.name),
        op.ufunc,
        getattr(dpnp, op.ufunc.__name__),
        bytes_moved=sum(x.nbytes for x in host) + op.ufunc(*(x[:1] for x in host)).itemsize * size,
    )


def _matmul(settings: Settings, size: int) -> Row:
    n = isqrt(min(size, 1_000_000))
    random = np.random.default_rng(1)
    host = [random.uniform(0.1, 0.9, (n, n)).astype(np.float32) for _ in range(2)]
    case = f"matmul {n} x {n}"
    return compare(settings, case, size, host, lambda a, b: a @ b, np.matmul, dpnp.matmul)


def compare(
    settings: Settings,
    case: str,
    size: int,
    host: list[np.ndarray],
    ours: Callable[..., Any],
    numpy: Callable[..., Any],
    neighbor: Callable[..., Any],
    *,
    bytes_moved: int = 0,
) -> Row:
    """Compare dparray, NumPy and dpnp: into a new array, and with ``out=``."""
    queue = settings.device.sycl_queue
    arrays = [dp.asarray(x, device=settings.device) for x in host]
    theirs = [dpnp.asarray(x, sycl_queue=queue) for x in host]
    host_out, their_out = numpy(*host), neighbor(*theirs)

    def with_neighbor() -> None:
        neighbor(*theirs)
        finish(settings)

    def with_neighbor_out() -> None:
        neighbor(*theirs, out=their_out)
        finish(settings)

    candidates = {
        "dparray": Candidate(complete(settings, lambda: ours(*arrays))),
        "numpy": Candidate(lambda: numpy(*host)),
        "numpy_out": Candidate(lambda: numpy(*host, out=host_out)),
        "dpnp": Candidate(with_neighbor),
        "dpnp_out": Candidate(with_neighbor_out),
    }
    return row(settings, case, size, candidates, bytes_moved=bytes_moved)


BENCHMARK = Benchmark("operators", "each operator and elementary function, float32", rows)
