"""The same blocks on one Dask worker and on two, each of which is a process with its own cores.

Nothing is measured if Dask is not installed, or the device does not have two sub-devices.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dparray as dp
from dparray._kernel.decorators import kernel
from tests.benchmarks._registry import Benchmark, Row, Settings, row
from tests.benchmarks._timer import Candidate

_BLOCKS = 8


@kernel
def _settle(item: Any, x: Any, y: Any) -> None:
    """Do work that moves almost no memory."""
    i = item.get_id(0)
    value = x[i]
    for _ in range(1500):
        value = 0.5 * (value + 2.0 / value)
    y[i] = value


def _block(size: int) -> Any:
    return dp.linspace(1, 3, size)


def _settled(block: Any) -> Any:
    result = dp.empty_like(block)
    dp.call_kernel(_settle, dp.Range(block.size), block, result)
    return result


def rows(settings: Settings) -> Iterator[Row]:
    """Yield blocks that are stored on the workers, for each size."""
    units = settings.device.traits.units
    if importlib.util.find_spec("distributed") is None or units < 2:
        return
    from distributed import Client, wait

    from dparray.dask import LocalCluster

    parts = settings.device.create_sub_devices(partition=units // 2)[:2]
    with LocalCluster(parts) as cluster, Client(cluster) as client:
        names = sorted(client.scheduler_info()["workers"])

        def placed(function: Callable[..., Any], arguments: Sequence[Any], count: int) -> list[Any]:
            found = []
            for at, each in enumerate(arguments):
                place = [names[at % count]]
                found += client.map(function, [each], workers=place, pure=False)
            wait(found)
            return found

        size = min(max(settings.sizes), 50_000)
        blocks = {count: placed(_block, [size] * _BLOCKS, count) for count in (1, 2)}
        placed(_settled, blocks[2], 2)  # compiles
        candidates = {
            "dparray": Candidate(lambda: placed(_settled, blocks[2], 2)),
            "one worker": Candidate(lambda: placed(_settled, blocks[1], 1)),
        }
        yield row(settings, "a kernel over blocks, two workers", _BLOCKS * size, candidates)


BENCHMARK = Benchmark("workers", "one of Dask's workers against two", rows)
