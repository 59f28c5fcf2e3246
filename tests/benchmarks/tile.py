"""Tile functions against array code, NumPy and, if installed, PyTorch on the CPU.

The forms without Tile are the usual ones: ``@``, a sum of matrix products over the window for
convolutions, a maximum of slices for pooling. PyTorch computes with channels first, in its own
contiguous layout. No extra installs it, because its wheels are larger than all others together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isqrt
from typing import Any

import numpy as np

import dparray as dp
from dparray import tilelang
from tests.benchmarks._registry import Benchmark, Row, Settings, complete, finish, row
from tests.benchmarks._timer import Candidate
from tests.benchmarks.algorithms import elementwise

MATMUL = "function (A[N, K], B[K, M]) -> (C) { C[i, j: N, M] = +(A[i, k] * B[k, j]); }"
ROWS = "function (A[N, M]) -> (S) { S[i: N] = %s(A[i, j]); }"
#: Windows that no array operation has, so that they get separate kernels.
SHIFT = "function (A[N]) -> (S) { S[i: N] = +(A[i - k]), k < 3; }"
_WINDOW = (3, 3, 8, 16)


def rows(settings: Settings) -> Iterator[Row]:
    """Yield products, convolutions, pooling and reductions for each size; the cost of a call."""
    random = np.random.default_rng(5)
    for size in settings.sizes:
        yield _product(settings, size, random)
        yield _convolution(settings, size, random)
        yield _pooling(settings, size, random)
        for sign, name in (("+", "sum"), (">", "max")):
            yield _row_reduction(settings, 16 * size, sign, name, random)
    yield from _calls(settings)


def _product(settings: Settings, size: int, random: Any) -> Row:
    n = isqrt(size)
    host = random.random((n, n), dtype=np.float32)
    ours = dp.asarray(host, device=settings.device)
    function = tilelang.function(MATMUL)
    candidates = {
        "tile": Candidate(complete(settings, lambda: function(ours, ours))),
        "dparray @": Candidate(complete(settings, lambda: ours @ ours)),
        "numpy": Candidate(lambda: host @ host),
    }
    return row(settings, f"matrix product {n} x {n}", host.size, candidates)


def _convolution(settings: Settings, size: int, random: Any) -> Row:
    n = max(4, isqrt(size))
    host = random.random((1, n, n, _WINDOW[2]), dtype=np.float32)
    window = random.random(_WINDOW, dtype=np.float32)
    ours = dp.asarray(host, device=settings.device)
    weights = dp.asarray(window, device=settings.device)
    candidates = {
        "tile": Candidate(complete(settings, lambda: tilelang.conv(ours, weights))),
        "numpy": Candidate(lambda: _convolved(host, window)),
    }
    candidates |= _with_torch(host, window)
    return row(settings, f"convolution {n} x {n} x 8 by 3 x 3 x 8 x 16", host.size, candidates)


def _convolved(x: Any, w: Any) -> Any:
    """Compute a sum of matrix products, one for each element of the window."""
    high, wide = x.shape[1] - w.shape[0] + 1, x.shape[2] - w.shape[1] + 1
    total = np.zeros((x.shape[0], high, wide, w.shape[3]), x.dtype)
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            total += x[:, i : i + high, j : j + wide] @ w[i, j]
    return total


def _with_torch(host: Any, window: Any) -> dict[str, Candidate]:
    try:
        import torch
    except ImportError:
        return {}
    x = torch.from_numpy(np.ascontiguousarray(np.moveaxis(host, -1, 1)))
    w = torch.from_numpy(np.ascontiguousarray(np.moveaxis(window, (-1, -2), (0, 1))))
    return {"torch": Candidate(lambda: torch.nn.functional.conv2d(x, w))}


def _pooling(settings: Settings, size: int, random: Any) -> Row:
    n = max(4, 2 * isqrt(size // 4))
    host = random.random((1, n, n, 8), dtype=np.float32)
    ours = dp.asarray(host, device=settings.device)

    def by_numpy() -> Any:
        tall = np.maximum(host[:, ::2], host[:, 1::2])
        return np.maximum(tall[:, :, ::2], tall[:, :, 1::2])

    candidates = {
        "tile": Candidate(complete(settings, lambda: tilelang.max_pool(ours, 2))),
        "numpy": Candidate(by_numpy),
        "elementwise": Candidate(elementwise(settings, dp.reshape(ours, -1))),
    }
    return row(
        settings,
        f"max-pooling {n} x {n} x 8 by 2 x 2",
        host.size,
        candidates,
        bytes_moved=host.nbytes + host.nbytes // 4,
        elementwise_bytes=2 * host.nbytes,
    )


def _row_reduction(settings: Settings, size: int, sign: str, name: str, random: Any) -> Row:
    n = isqrt(size)
    host = random.random((n, n), dtype=np.float32)
    ours = dp.asarray(host, device=settings.device)
    function = tilelang.function(ROWS % sign)
    ready: Callable[..., Any] = getattr(dp, name)
    candidates = {
        "tile": Candidate(complete(settings, lambda: function(ours))),
        f"dparray {name}": Candidate(complete(settings, lambda: ready(ours, axis=1))),
        "numpy": Candidate(lambda: getattr(np, name)(host, axis=1)),
        "elementwise": Candidate(elementwise(settings, dp.reshape(ours, -1))),
    }
    return row(
        settings,
        f"{name} of rows",
        host.size,
        candidates,
        bytes_moved=host.nbytes,
        elementwise_bytes=2 * host.nbytes,
    )


@dp.kernel
def _copy(item: dp.Item, out: Any, x: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i]


def _calls(settings: Settings) -> Iterator[Row]:
    """Yield a call of a known program and a launch of a kernel."""
    x = dp.ones(64, dtype="float32", device=settings.device)
    function = tilelang.function(SHIFT)
    with dp.config.override(host_tier=False):
        out, items = dp.empty_like(x), dp.Range(64)

        def called() -> None:
            function(x)

        def launched() -> None:
            dp.call_kernel(_copy, items, out, x)

        candidates = {
            "tile": Candidate(called, after=lambda: finish(settings)),
            "a launch": Candidate(launched, after=lambda: finish(settings)),
        }
        yield row(settings, "a call, 64 elements, by a kernel", 64, candidates)
    small = Candidate(lambda: function(x))
    yield row(settings, "a call, 64 elements, by the host", 64, {"tile": small})


BENCHMARK = Benchmark(
    "tile", "Tile functions: products, windows, reductions, calls", rows, (1 << 20,)
)
