"""The expressions of ``fusion`` in numexpr (if installed) and Numba; and the memory bandwidth.

Each function returns candidates by name: ``numexpr``, ``numba`` (fresh output) and
``numba into out`` (preallocated output). Numba's functions are compiled when they are created.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from tests.benchmarks import _streaming

Candidates = dict[str, Callable[[], Any]]

try:
    import numexpr
except ImportError:
    numexpr = None


@contextmanager
def cache_in(directory: str) -> Iterator[None]:
    """Set the folder of the kernel cache."""
    before = os.environ.get("DPARRAY_CACHE_DIR")
    os.environ["DPARRAY_CACHE_DIR"] = directory
    try:
        yield
    finally:
        if before is None:
            del os.environ["DPARRAY_CACHE_DIR"]
        else:
            os.environ["DPARRAY_CACHE_DIR"] = before


@cache
def _numba() -> Any:
    """Import Numba late; it is installed because the kernel compiler needs it."""
    import numba

    # The other threading layers print to the output when the kernel compiler starts a process.
    numba.config.THREADING_LAYER = "workqueue"

    return numba


def _parallel(function: Callable[..., Any]) -> Callable[..., Any]:
    return _numba().njit(parallel=True, fastmath=True)(function)


def _evaluated(text: str, names: dict[str, Any]) -> Candidates:
    if numexpr is None:
        return {}
    return {"numexpr": lambda: numexpr.evaluate(text, local_dict=names)}


@cache
def _triad(is_temporal: bool) -> Callable[..., None]:
    return _streaming.make_triad(_numba(), is_temporal)


def triads(bytes_moved: int) -> Candidates:
    """`out = b + 3 * c`, by plain and non-temporal stores that move the given number of bytes."""
    size = max(1, bytes_moved // 3 // _streaming.LINE) * _streaming.LINE // 4
    b, c = np.ones(size, np.float32), np.ones(size, np.float32)
    out = _streaming.aligned(size, np.float32)
    plain, streaming = _triad(True), _triad(False)
    return {
        "triad of as many bytes": lambda: plain(b, c, out),
        "triad, non-temporal": lambda: streaming(b, c, out),
    }


def chain(a: np.ndarray, b: np.ndarray) -> Candidates:
    """Compute `a*b + a - b*2`."""
    two = a.dtype.type(2)
    fresh = _parallel(lambda a, b, two: a * b + a - b * two)
    prange = _numba().prange

    def into(a: Any, b: Any, two: Any, out: Any) -> None:
        for i in prange(a.size):
            out[i] = a[i] * b[i] + a[i] - b[i] * two

    filled, out = _parallel(into), np.empty_like(a)
    return _evaluated("a*b + a - b*two", {"a": a, "b": b, "two": two}) | {
        "numba": lambda: fresh(a, b, two),
        "numba into out": lambda: filled(a, b, two, out),
    }


def black_scholes(price: np.ndarray, strike: np.ndarray, years: np.ndarray) -> Candidates:
    """Price options in a loop; the distribution is a polynomial without `erf`, as in array code."""
    prange = _numba().prange
    single = np.float32

    @_numba().njit(fastmath=True, inline="always")
    def normal(x: Any) -> Any:
        k = single(1) / (single(1) + single(0.2316419) * abs(x))
        tail = k * (
            single(0.319381530)
            + k
            * (
                single(-0.356563782)
                + k * (single(1.781477937) + k * (single(-1.821255978) + k * single(1.330274429)))
            )
        )
        tail = single(0.39894228) * math.exp(single(-0.5) * x * x) * tail
        return single(1) - tail if x > 0 else tail

    def into(price: Any, strike: Any, years: Any, out: Any) -> None:
        for i in prange(price.size):
            scale = single(0.2) * math.sqrt(years[i])
            d1 = (math.log(price[i] / strike[i]) + single(0.12) * years[i]) / scale
            discounted = strike[i] * math.exp(single(-0.1) * years[i])
            out[i] = price[i] * normal(d1) - discounted * normal(d1 - scale)

    filled, out = _parallel(into), np.empty_like(price)
    return {"numba into out": lambda: filled(price, strike, years, out)}


def row_norm(x: np.ndarray) -> Candidates:
    """Compute the length of each row."""
    prange = _numba().prange

    def into(x: Any, out: Any) -> None:
        for i in prange(x.shape[0]):
            total = np.float32(0)
            for j in range(x.shape[1]):
                total += x[i, j] * x[i, j]
            out[i] = math.sqrt(total)

    filled, out = _parallel(into), np.empty(len(x), x.dtype)
    return {"numba into out": lambda: filled(x, out)}


def total(a: np.ndarray) -> Candidates:
    """Compute the sum."""
    prange = _numba().prange

    def add(a: Any) -> Any:
        result = np.float32(0)
        for i in prange(a.size):
            result += a[i]
        return result

    added = _parallel(add)
    return _evaluated("sum(a)", {"a": a}) | {"numba": lambda: added(a)}


def squared_distance(a: np.ndarray, b: np.ndarray) -> Candidates:
    """Compute `sum((a - b)**2)`."""
    prange = _numba().prange

    def add(a: Any, b: Any) -> Any:
        result = np.float32(0)
        for i in prange(a.size):
            result += (a[i] - b[i]) * (a[i] - b[i])
        return result

    added = _parallel(add)
    return _evaluated("sum((a - b)**2)", {"a": a, "b": b}) | {"numba": lambda: added(a, b)}


def softmax(x: np.ndarray) -> Candidates:
    """Compute the softmax of the rows."""
    prange = _numba().prange

    def into(x: Any, out: Any) -> None:
        for i in prange(x.shape[0]):
            largest = x[i].max()
            total = np.float32(0)
            for j in range(x.shape[1]):
                out[i, j] = math.exp(x[i, j] - largest)
                total += out[i, j]
            for j in range(x.shape[1]):
                out[i, j] /= total

    filled, out = _parallel(into), np.empty_like(x)
    return {"numba into out": lambda: filled(x, out)}


def jacobi(u: np.ndarray) -> Candidates:
    """Compute a step of a five-point stencil."""
    prange = _numba().prange

    def into(u: Any, out: Any) -> None:
        for i in prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                total = u[i, j] + u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                out[i - 1, j - 1] = np.float32(0.2) * total

    filled, out = _parallel(into), np.empty((len(u) - 2, len(u) - 2), u.dtype)
    parts = {
        "a": u[1:-1, 1:-1],
        "b": u[:-2, 1:-1],
        "c": u[2:, 1:-1],
        "d": u[1:-1, :-2],
        "e": u[1:-1, 2:],
        "k": np.float32(0.2),
    }
    return _evaluated("k * (a + b + c + d + e)", parts) | {"numba into out": lambda: filled(u, out)}


def distances(x: np.ndarray) -> Candidates:
    """Compute all distances between points."""
    prange = _numba().prange

    def into(x: Any, out: Any) -> None:
        for i in prange(x.shape[0]):
            for j in range(x.shape[0]):
                total = np.float32(0)
                for k in range(x.shape[1]):
                    total += (x[i, k] - x[j, k]) * (x[i, k] - x[j, k])
                out[i, j] = math.sqrt(total)

    filled, out = _parallel(into), np.empty((len(x), len(x)), x.dtype)
    return {"numba into out": lambda: filled(x, out)}
