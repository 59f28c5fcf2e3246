"""Time a first call in a new process, in seconds; the benchmark ``compile`` runs :func:`main`.

Print the time of each named call, until its result is computed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dparray as dp
from dparray._array.ndarray import ndarray
from dparray._evaluate import limits

_ROWS = 1000


@dp.kernel
def _stencil(item: Any, x: Any, out: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    if i > 0 and i < x.shape[0] - 1 and j > 0 and j < x.shape[1] - 1:
        out[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] - 4 * x[i, j]


@dp.kernel
def _weighted(item: Any, x: Any, out: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = np.float32(0.5) * x[i, j] + np.float32(2) * out[i, j]


def _kernel(kernel: Any) -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        out = dp.empty_like(x)
        dp.call_kernel(kernel, dp.Range.like(x), x, out)
        return out

    return call


def _softmax(x: Any) -> Any:
    powers = dp.exp(x - dp.max(x, axis=1, keepdims=True))
    return powers / dp.sum(powers, axis=1, keepdims=True)


#: The calls by name; each takes a matrix of float32.
CALLS: dict[str, Callable[[Any], Any]] = {
    "std(axis=0)": lambda x: dp.std(x, axis=0),
    "var(axis=0)": lambda x: dp.var(x, axis=0),
    "softmax": _softmax,
    "histogram": lambda x: dp.histogram(x, bins=50, range=(0.0, 1.0))[0],
    "argmax(axis=1)": lambda x: dp.argmax(x, axis=1),
    "logsumexp": lambda x: dp.special.logsumexp(x, axis=1),
    "boolean mask": lambda x: x[x > 0.5],
    "max": lambda x: dp.max(x),
    "standardising": lambda x: (x - dp.mean(x, axis=0)) / dp.std(x, axis=0),
    "sum": lambda x: dp.sum(x),
    "cumsum": lambda x: dp.cumulative_sum(dp.reshape(x, -1)),
    "stencil": lambda x: (
        x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1]
    ),
    "array expression": lambda x: dp.sqrt(x * 2 + 1),
    "another expression": lambda x: dp.exp(-x) * 3,
    "user kernel": _kernel(_weighted),
    "another user kernel": _kernel(_stencil),
}


def main(executor: str, size: int, filter_string: str, *names: str) -> None:
    """Print the time of each call, in order.

    Args:
        executor: the backend: ``"fused"`` for kernels, ``""`` for dparray's choice.
        size: elements of the matrix.
        filter_string: the device.
        names: of the calls.
    """
    host = np.random.default_rng(0).random((_ROWS, size // _ROWS), dtype=np.float32)
    x = dp.asarray(host, device=filter_string)
    dp.synchronize(x)
    with limits.force(executor) if executor else contextlib.nullcontext():
        for name in names:
            started = time.perf_counter()
            found = CALLS[name](x)
            assert isinstance(found, ndarray)
            dp.eval(found)
            dp.synchronize(x)
            print(time.perf_counter() - started)
