"""Reductions of whole arrays and along an axis against NumPy and dpnp.

A kernel that adds an array to itself shows the read bandwidth in the same turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isqrt
from typing import Any

import dpnp
import numpy as np

import dparray as dp
from tests.benchmarks._registry import Benchmark, Row, Settings, complete, finish, row
from tests.benchmarks._timer import Candidate
from tests.benchmarks.algorithms import elementwise

_FUNCTIONS = ("sum", "prod", "max", "argmax", "mean", "var", "any")


def rows(settings: Settings) -> Iterator[Row]:
    """Yield each function over all elements, rows and columns of a matrix, for each size."""
    random = np.random.default_rng(3)
    for size in settings.sizes:
        n = isqrt(size)
        host = random.uniform(0.9, 1.1, (n, n)).astype(np.float32)
        ours = dp.asarray(host, device=settings.device)
        theirs = dpnp.asarray(host, sycl_queue=settings.device.sycl_queue)
        plain = Candidate(elementwise(settings, dp.reshape(ours, -1)))
        for name in _FUNCTIONS:
            for axis in (None, 0, 1):
                yield _row(settings, name, axis, host, ours, theirs, plain)


def _row(
    settings: Settings,
    name: str,
    axis: int | None,
    host: np.ndarray,
    ours: Any,
    theirs: Any,
    plain: Candidate,
) -> Row:
    def with_dpnp() -> None:
        getattr(dpnp, name)(theirs, axis=axis)
        finish(settings)

    reduce: Callable[..., Any] = getattr(dp, name)
    candidates = {
        "dparray": Candidate(complete(settings, lambda: reduce(ours, axis=axis))),
        "numpy": Candidate(lambda: getattr(np, name)(host, axis=axis)),
        "dpnp": Candidate(with_dpnp),
        "elementwise": plain,
    }
    case = name if axis is None else f"{name}, axis {axis}"
    return row(
        settings,
        case,
        host.size,
        candidates,
        bytes_moved=host.nbytes,
        elementwise_bytes=2 * host.nbytes,
    )


BENCHMARK = Benchmark("reductions", "reductions over all elements and along an axis", rows)
