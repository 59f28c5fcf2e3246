"""``dp.algorithms`` against a plain elementwise kernel, NumPy, SciPy and dpnp.

The elementwise kernel reads and writes as many elements as the input has. It measures the memory
bandwidth in the same turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dpnp
import numpy as np

import dparray as dp
from dparray import algorithms
from dparray._kernel.decorators import kernel
from dparray._kernel.launch import call_kernel
from dparray.algorithms.histograms import count_in_bins, count_integers
from dparray.kernel_api import Range
from tests.benchmarks._registry import Benchmark, Row, Settings, complete, finish, row
from tests.benchmarks._timer import Candidate

_BINS = 256
_ROW_LENGTH = 50  # stored elements in a row of the sparse matrix
_SEGMENT_LENGTHS = (10, 1000)


def rows(settings: Settings) -> Iterator[Row]:
    """Yield each algorithm on inputs of each size."""
    for size in settings.sizes:
        yield from _rows(settings, size)


def _rows(settings: Settings, size: int) -> Iterator[Row]:
    random = np.random.default_rng(5)
    host = random.random(size, dtype=np.float32)
    small = random.integers(0, _BINS, size).astype(np.int32)
    mask = host > 0.5
    x, k, m = (dp.asarray(each, device=settings.device) for each in (host, small, mask))
    queue = settings.device.sycl_queue
    x_theirs, k_theirs, m_theirs = (
        dpnp.asarray(each, sycl_queue=queue) for each in (host, small, mask)
    )
    plain = Candidate(elementwise(settings, x))

    def case(
        name: str,
        ours: Callable[[], Any],
        bytes_moved: int,
        numpy: Callable[[], Any] | None = None,
        theirs: Callable[[], Any] | None = None,
        scipy: Callable[[], Any] | None = None,
    ) -> Row:
        candidates = {"dparray": Candidate(complete(settings, ours)), "elementwise": plain}
        if numpy is not None:
            candidates["numpy"] = Candidate(numpy)
        if scipy is not None:
            candidates["scipy"] = Candidate(scipy)
        if theirs is not None:
            candidates["dpnp"] = Candidate(_finished(settings, theirs))
        return row(
            settings,
            name,
            size,
            candidates,
            bytes_moved=bytes_moved,
            elementwise_bytes=2 * host.nbytes,
        )

    yield case(
        "inclusive scan",
        lambda: algorithms.inclusive_scan(x),
        2 * host.nbytes,
        lambda: np.cumsum(host),
        lambda: dpnp.cumsum(x_theirs),
    )
    yield case(
        "exclusive scan",
        lambda: algorithms.exclusive_scan(x),
        2 * host.nbytes,
        lambda: np.cumsum(host) - host,
    )
    yield case(
        "inclusive scan, maximum",
        lambda: algorithms.inclusive_scan(x, "maximum"),
        2 * host.nbytes,
        lambda: np.maximum.accumulate(host),
    )
    yield case(
        f"histogram, {_BINS} bins",
        lambda: count_in_bins(x, _BINS, (0.0, 1.0))[0],
        host.nbytes,
        lambda: np.histogram(host, _BINS, (0.0, 1.0)),
        lambda: dpnp.histogram(x_theirs, _BINS, (0.0, 1.0))[0],
    )
    yield case(
        f"bincount, {_BINS} values",
        lambda: count_integers(k, _BINS),
        2 * small.nbytes,
        lambda: np.bincount(small, minlength=_BINS),
        lambda: dpnp.bincount(k_theirs, minlength=_BINS),
    )
    yield case(
        "compact, half of it",
        lambda: algorithms.compact(x, m),
        2 * mask.nbytes + host.nbytes * 3 // 2,
        lambda: host[mask],
        lambda: x_theirs[m_theirs],
    )
    yield case(
        "stable sort",
        lambda: algorithms.sort_by_key(x)[0],
        4 * 3 * host.nbytes,
        lambda: np.sort(host, kind="stable"),
        lambda: dpnp.sort(x_theirs, kind="stable"),
    )
    yield case(
        "stable argsort",
        lambda: algorithms.stable_argsort(x),
        4 * 5 * host.nbytes,
        lambda: np.argsort(host, kind="stable"),
        lambda: dpnp.argsort(x_theirs, kind="stable"),
    )
    for length in _SEGMENT_LENGTHS:
        starts = np.arange(0, size, length)
        offsets = dp.asarray(np.append(starts, size), device=settings.device)
        yield case(
            f"segmented sum, {length} each",
            partial(algorithms.segmented_reduce, x, offsets),
            host.nbytes + 8 * starts.size,
            partial(np.add.reduceat, host, starts),
        )
    yield _sparse(case, settings, host, random)
    yield case(
        "Philox, uniform",
        lambda: algorithms.philox_uniform(size, 1, device=settings.device),
        host.nbytes,
        lambda: random.random(size, dtype=np.float32),
        lambda: dpnp.random.random(size, sycl_queue=queue),
    )
    yield case(
        "Philox, normal",
        lambda: algorithms.philox_normal(size, 1, device=settings.device),
        host.nbytes,
        lambda: random.standard_normal(size, dtype=np.float32),
        lambda: dpnp.random.standard_normal(size, sycl_queue=queue),
    )


def _sparse(
    case: Callable[..., Row], settings: Settings, stored: np.ndarray, random: np.random.Generator
) -> Row:
    count = max(1, stored.size // _ROW_LENGTH)
    offsets = np.linspace(0, stored.size, count + 1).astype(np.int32)
    columns = random.integers(0, count, stored.size).astype(np.int32)
    vector = random.random(count, dtype=np.float32)
    operands = [dp.asarray(a, device=settings.device) for a in (stored, columns, offsets, vector)]
    try:
        from scipy.sparse import csr_matrix
    except ImportError:
        scipy = None
    else:
        matrix = csr_matrix((stored, columns, offsets), shape=(count, count))
        scipy = lambda: matrix @ vector  # noqa: E731
    return case(
        f"sparse matrix times vector, {_ROW_LENGTH} a row",
        lambda: algorithms.csr_matvec(*operands),
        2 * stored.nbytes,
        scipy=scipy,
    )


def elementwise(settings: Settings, x: Any) -> Callable[[], None]:
    """Return a kernel that reads and writes every element once, to measure the memory bandwidth."""
    out = dp.empty_like(x)
    index_space = Range.like(x)

    @kernel
    def add_to_itself(item: Any, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i] = x[i] + x[i]

    def call() -> None:
        call_kernel(add_to_itself, index_space, x, out)
        finish(settings)

    return call


def _finished(settings: Settings, function: Callable[[], Any]) -> Callable[[], None]:
    def call() -> None:
        function()
        finish(settings)

    return call


BENCHMARK = Benchmark("algorithms", "scans, histograms, sorts, sparse products, random", rows)
