"""Cost of memory: reused from the pool, new from the driver, and touched for the first time."""

from __future__ import annotations

from collections.abc import Iterator

import dpctl.memory
import dpnp
import numpy as np

import dparray as dp
from tests.benchmarks._registry import Benchmark, Row, Settings, complete, finish, row
from tests.benchmarks._timer import Candidate

_ITEMSIZE = 4


def rows(settings: Settings) -> Iterator[Row]:
    """Yield allocating, and allocating and filling, for each size and USM type."""
    for size in settings.sizes:
        for usm_type in settings.device.usm_types:
            yield _allocate(settings, size, usm_type)
        yield _fill(settings, size)


def _allocate(settings: Settings, size: int, usm_type: str) -> Row:
    queue = settings.device.sycl_queue
    fresh = {
        "device": dpctl.memory.MemoryUSMDevice,
        "shared": dpctl.memory.MemoryUSMShared,
        "host": dpctl.memory.MemoryUSMHost,
    }[usm_type]

    def pooled() -> None:
        dp.memory.allocate(queue, usm_type, size * _ITEMSIZE)

    def from_driver() -> None:
        fresh(size * _ITEMSIZE, queue=queue)

    candidates = {
        "dparray": Candidate(pooled, before=pooled),
        "dpctl_fresh": Candidate(from_driver),
    }
    return row(settings, f"allocate, {usm_type}", size, candidates)


def _fill(settings: Settings, size: int) -> Row:
    queue = settings.device.sycl_queue

    def full() -> None:
        # The new array is a sum of arrays, since a mere fill may stay pending.
        complete(settings, lambda: ones + ones)()

    def dpnp_full() -> None:
        dpnp.add(theirs, theirs)
        finish(settings)

    def release() -> None:
        dp.memory.release(settings.device)

    theirs = dpnp.ones(size, dtype="f4", sycl_queue=queue)
    host = np.ones(size, dtype="f4")
    ones = dp.asarray(host, device=settings.device)
    candidates = {
        "dparray": Candidate(full, before=full),
        "dparray_fresh": Candidate(full, before=release, alone=True),
        "numpy": Candidate(lambda: host + host),
        "dpnp": Candidate(dpnp_full),
    }
    return row(
        settings, "x + x into new memory", size, candidates, bytes_moved=2 * size * _ITEMSIZE
    )


BENCHMARK = Benchmark("allocation", "reused against fresh memory, with its first touch", rows)
