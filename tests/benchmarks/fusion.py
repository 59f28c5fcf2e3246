"""Expressions of several operations, which dparray computes in one pass over memory.

NumPy, numexpr and Numba (fresh and preallocated output) do the same work in the same turns. So do
triads ``out = b + s * c`` in Numba, plain and with non-temporal stores, which measure the memory
bandwidth. numexpr is left out if it is not installed (the extra ``bench`` contains it). The rows
below the expressions show the cost of a single operation, a first use and a dependent chain.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dpnp
import numpy as np

import dparray as dp
from dparray._evaluate import evaluate
from dparray._runtime import queues
from tests.benchmarks import _peers, examples
from tests.benchmarks._registry import Benchmark, Row, Settings, finish, row
from tests.benchmarks._timer import Candidate

Arrays = list[Any]

# Numba compiles for seconds, which small data is not worth.
_SMALLEST_WITH_PEERS = 100_000


def rows(settings: Settings) -> Iterator[Row]:
    """Yield the expressions of the table, then the overheads."""
    for size in settings.sizes:
        yield from _expressions(settings, size)
    yield from _overheads(settings)


def _case(
    settings: Settings,
    name: str,
    size: int,
    function: Callable[..., Any],
    host: Arrays,
    bytes_moved: int,
    peers: Callable[[], dict[str, Callable[[], Any]]],
) -> Row:
    ours = [dp.asarray(x, device=settings.device) for x in host]
    queue = settings.device.sycl_queue

    def call() -> None:
        result = function(dp, *ours)
        dp.eval(result)
        queues.wait(queue)

    candidates = {
        "dparray": Candidate(call),
        "numpy": Candidate(lambda: function(np, *host)),
    }
    theirs = [dpnp.asarray(x, sycl_queue=queue) for x in host]

    def neighbor() -> None:
        function(dpnp, *theirs)
        finish(settings)

    candidates["dpnp"] = Candidate(neighbor)
    if size >= _SMALLEST_WITH_PEERS:
        others = peers() | _peers.triads(bytes_moved)
        candidates |= {peer: Candidate(work) for peer, work in others.items()}
    steps = len(dp.explain(function(dp, *ours)).kernels)
    return row(settings, name, size, candidates, bytes_moved=bytes_moved, steps=steps)


def _expressions(settings: Settings, size: int) -> Iterator[Row]:
    random = np.random.default_rng(2)
    for dtype in ("float32", "float64"):
        host = [random.uniform(0.1, 0.9, size).astype(dtype) for _ in range(2)]
        nbytes = host[0].nbytes
        yield _case(
            settings,
            f"a*b + a - b*2, {dtype}",
            size,
            lambda xp, a, b: a * b + a - b * 2.0,
            host,
            3 * nbytes,
            partial(_peers.chain, *host),
        )
    host = [random.uniform(0.1, 0.9, size).astype(np.float32) for _ in range(2)]
    nbytes = host[0].nbytes
    market = [
        random.uniform(10, 50, size).astype(np.float32),
        random.uniform(10, 50, size).astype(np.float32),
        random.uniform(1, 2, size).astype(np.float32),
    ]
    yield _case(
        settings,
        "Black-Scholes call",
        size,
        black_scholes,
        market,
        4 * nbytes,
        lambda: _peers.black_scholes(*market) | {"hand-written kernel": _by_hand(settings, market)},
    )
    points = random.random((max(1, size // 3), 3), dtype=np.float32)
    yield _case(
        settings,
        "row L2 norm, (n, 3)",
        size,
        lambda xp, x: xp.sqrt(xp.sum(x * x, axis=1)),
        [points],
        points.nbytes * 4 // 3,
        lambda: _peers.row_norm(points),
    )
    yield _case(
        settings,
        "sum",
        size,
        lambda xp, a: xp.sum(a),
        host[:1],
        nbytes,
        lambda: _peers.total(host[0]),
    )
    yield _case(
        settings,
        "sum((a - b)**2)",
        size,
        lambda xp, a, b: xp.sum((a - b) ** 2),
        host,
        2 * nbytes,
        lambda: _peers.squared_distance(*host),
    )
    side = max(3, math.isqrt(size))
    grid = random.random((side, side), dtype=np.float32)
    yield _case(
        settings,
        "softmax of rows",
        grid.size,
        softmax,
        [grid],
        2 * grid.nbytes,
        lambda: _peers.softmax(grid),
    )
    yield _case(
        settings,
        "5-point Jacobi step",
        grid.size,
        jacobi,
        [grid],
        2 * grid.nbytes,
        lambda: _peers.jacobi(grid),
    )
    count = max(2, math.isqrt(size))
    cloud = random.random((count, 3), dtype=np.float32)
    yield _case(
        settings,
        "pairwise distances in 3-D",
        count * count,
        lambda xp, x: xp.sqrt(xp.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=-1)),
        [cloud],
        4 * count * count,
        lambda: _peers.distances(cloud),
    )


def black_scholes(xp: Any, price: Any, strike: Any, years: Any) -> Any:
    """Return call option prices, with the normal distribution by Abramowitz and Stegun 26.2.17."""
    rate, volatility = 0.1, 0.2
    scale = volatility * xp.sqrt(years)
    d1 = (xp.log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / scale
    discounted = strike * xp.exp(-rate * years)
    return price * _normal(xp, d1) - discounted * _normal(xp, d1 - scale)


def _normal(xp: Any, x: Any) -> Any:
    k = 1.0 / (1.0 + 0.2316419 * abs(x))
    tail = k * (
        0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    )
    tail = 0.39894228 * xp.exp(-0.5 * x * x) * tail
    return xp.where(x > 0, 1.0 - tail, tail)


def softmax(xp: Any, x: Any) -> Any:
    """Compute the softmax of the rows."""
    e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


def jacobi(xp: Any, u: Any) -> Any:
    """Compute the mean of each inner point and its four neighbors."""
    return 0.2 * (u[1:-1, 1:-1] + u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


def _by_hand(settings: Settings, market: Arrays) -> Callable[[], None]:
    """Run the example's kernel for the same prices, which computes those of puts, too."""
    ours = [dp.asarray(x, device=settings.device) for x in market]

    def call() -> None:
        examples.black_scholes(*ours, rate=0.1, volatility=0.2)
        finish(settings)

    return call


# -- overheads ------------------------------------------------------------------------------------


def _overheads(settings: Settings) -> Iterator[Row]:
    host = np.linspace(0, 1, 1000).astype(np.float32)
    x = dp.asarray(host, device=settings.device)
    theirs = dpnp.asarray(host, sycl_queue=settings.device.sycl_queue)

    def dependent(array: Any) -> Any:
        for _ in range(20):
            array = array + 1.0
        return array

    yield row(
        settings,
        "20 dependent adds, then read",
        host.size,
        {
            "dparray": Candidate(lambda: dependent(x).asnumpy()),
            "numpy": Candidate(lambda: dependent(host)),
            "dpnp": Candidate(lambda: dpnp.asnumpy(dependent(theirs))),
        },
        limit=100e-6,
    )
    yield row(
        settings, "building one operation", 1, {"dparray": Candidate(lambda: x + x)}, limit=4e-6
    )
    yield _chain_in_memory(settings)
    large = dp.ones(1 << 18, dtype="float32", device=settings.device)
    dp.eval(large)
    counter = iter(range(1, 1_000_000))

    def unseen() -> None:
        """Yield expressions with new structures: the operations spell a number in binary."""
        value = large
        for bit in f"{next(counter):b}":
            value = value + 1.0 if bit == "1" else value * 1.5
        dp.eval(value)
        finish(settings)

    def seen() -> None:
        dp.eval(dp.sqrt(large * 2.0 + 1.0) - large)
        finish(settings)

    def forget() -> None:
        """Reset the state that a new process does not have; the disk cache stays."""
        evaluate.forget()

    with tempfile.TemporaryDirectory() as directory, _peers.cache_in(directory):
        yield row(
            settings,
            "first use of a new structure",
            large.size,
            {"dparray": Candidate(unseen, alone=True)},
            limit=150e-3,
        )
        yield row(
            settings,
            "first use, known on disk",
            large.size,
            {"dparray": Candidate(seen, before=forget, alone=True)},
            limit=25e-3,
        )
    kernel_only = _launch_only(settings, large)
    yield row(
        settings,
        "use, known in memory",
        large.size,
        {"dparray": Candidate(seen), "the kernel's launch": Candidate(kernel_only)},
    )


def _chain_in_memory(settings: Settings) -> Row:
    """Time chains of 20 operations; the case states the peak memory, in arrays."""
    size = 1 << 20
    random = np.random.default_rng(3)
    host = [random.uniform(0.5, 1.5, size).astype(np.float32) for _ in range(2)]
    a, b = (dp.asarray(x, device=settings.device) for x in host)

    def chain(a: Any, b: Any) -> Any:
        value = a
        for _ in range(10):
            value = value * b + a
        return value

    def call() -> None:
        dp.eval(chain(a, b))
        finish(settings)

    call()
    dp.memory.reset_peak(settings.device)
    before = dp.memory.stats(settings.device).in_use
    call()
    arrays = (dp.memory.stats(settings.device).peak - before) / a.nbytes
    candidates = {"dparray": Candidate(call), "numpy": Candidate(lambda: chain(*host))}
    return row(settings, f"20 operations, {arrays:.0f} array beside the inputs", size, candidates)


def _launch_only(settings: Settings, x: Any) -> Callable[[], None]:
    """Launch a handwritten kernel for the same work, with allocated memory."""
    from dparray._kernel.decorators import kernel
    from dparray._kernel.launch import call_kernel
    from dparray.kernel_api import Range

    out = dp.empty_like(x)
    index_space = Range(x.size)

    @kernel
    def same_work(item: Any, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i] = math.sqrt(x[i] * np.float32(2.0) + np.float32(1.0)) - x[i]

    def call() -> None:
        call_kernel(same_work, index_space, x, out)
        finish(settings)

    return call


BENCHMARK = Benchmark(
    "fusion",
    "expressions computed in one pass; costs of laziness",
    rows,
    sizes=(1_000, 1_000_000, 20_000_000),
)
