"""Expressions of several operations, which dparray computes in one pass over memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import dpnp
import numpy as np

import dparray as dp
from dparray.bench._registry import Benchmark, Row, Settings, complete, finish, row
from dparray.bench._timer import Candidate

_EXPRESSIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a*b + a - b*2": lambda xp, a, b: a * b + a - b * 2.0,
    "sqrt(a**2 + b**2)": lambda xp, a, b: xp.sqrt(a * a + b * b),
    "exp(-a) * sin(b) + cos(a)": lambda xp, a, b: xp.exp(-a) * xp.sin(b) + xp.cos(a),
    "sum((a - b)**2)": lambda xp, a, b: xp.sum((a - b) * (a - b)),
}


def rows(settings: Settings) -> Iterator[Row]:
    """Each expression for each size, in float32."""
    random = np.random.default_rng(2)
    for size in settings.sizes:
        host = [random.uniform(0.1, 0.9, size).astype(np.float32) for _ in range(2)]
        ours = [dp.asarray(x, device=settings.device) for x in host]
        theirs = [dpnp.asarray(x, sycl_queue=settings.device.sycl_queue) for x in host]
        for text, expression in _EXPRESSIONS.items():
            yield _row(settings, text, expression, host, ours, theirs)


def _row(
    settings: Settings,
    text: str,
    expression: Callable[[Any, Any, Any], Any],
    host: list[np.ndarray],
    ours: list[Any],
    theirs: list[Any],
) -> Row:
    def with_dpnp() -> None:
        expression(dpnp, *theirs)
        finish(settings)

    size = host[0].size
    written = 0 if text.startswith("sum") else 1
    candidates = {
        "dparray": Candidate(complete(settings, lambda: expression(dp, *ours))),
        "numpy": Candidate(lambda: expression(np, *host)),
        "dpnp": Candidate(with_dpnp),
    }
    return row(settings, text, size, candidates, bytes_moved=(2 + written) * 4 * size)


BENCHMARK = Benchmark("fusion", "expressions computed in one pass, float32", rows)
