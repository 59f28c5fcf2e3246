"""Blocks that set options, placement or the default device are of their thread or task."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp
from dparray import _hooks, config

#: Two values of each option.
VALUES: dict[str, tuple[Any, Any]] = {
    "tuning": ({"cpu": {"elements": 2}}, {"cpu": {"elements": 4}}),
    "cost_model": ({"launch": 1e-3}, {"launch": 1e-4}),
    "host_operands": ("copy", "warn"),
    "fallback": ("allow", "error"),
    "device": ("cpu", "opencl:cpu"),
    "placement": ("fastest", lambda step: step.devices[0]),
} | {name: (True, False) for name, value in config._DEFAULTS.items() if isinstance(value, bool)}


def entered(name: str, at: int) -> contextlib.AbstractContextManager[Any]:
    """Return the block that sets one of two values."""
    if name == "use_device":
        return dp.use_device(parts()[at])
    if name == "dp.placement":
        return dp.placement(VALUES["placement"][at])
    return config.override(**{name: VALUES[name][at]})


@functools.cache
def parts() -> list[Any]:
    return [dp.Device(dpctl.SyclQueue("cpu")) for _ in range(2)]


def seen(name: str) -> Any:
    """Return what a thread sees."""
    if name == "use_device":
        return dp.default_device()
    return dp.placement.policy if name == "dp.placement" else getattr(config, name)


NAMES = [*config.OPTIONS, "use_device", "dp.placement"]


@pytest.fixture(autouse=True)
def _unchanged() -> Iterator[None]:
    """Compare the state of the process before and after."""
    before = {name: seen(name) for name in NAMES}, vars(config).keys(), list(_hooks.subscribers)
    yield
    after = {name: seen(name) for name in NAMES}, vars(config).keys(), list(_hooks.subscribers)
    assert after == before


def wanted(name: str) -> list[Any]:
    """Return what two blocks show."""
    found = []
    for at in (0, 1):
        with entered(name, at):
            found.append(seen(name))
    assert found[0] != found[1]
    return found


@pytest.mark.sample(20)
@pytest.mark.parametrize("name", NAMES)
class TestBlocks:
    def test_overlapping_blocks_of_threads(self, name: str) -> None:
        values, outside = wanted(name), seen(name)
        barrier = threading.Barrier(3)
        found: dict[int, list[Any]] = {0: [], 1: []}

        def run(at: int) -> None:
            with entered(name, at):
                barrier.wait()  # Both are inside.
                found[at].append(seen(name))
                barrier.wait()
                if at == 1:
                    barrier.wait()  # The other one has left.
                    found[at].append(seen(name))
            found[at].append(seen(name))
            if at == 0:
                barrier.wait()

        threads = [threading.Thread(target=run, args=(at,)) for at in (0, 1)]
        for thread in threads:
            thread.start()
        barrier.wait()
        assert seen(name) == outside
        barrier.wait()
        barrier.wait()
        for thread in threads:
            thread.join()
        assert found == {0: [values[0], outside], 1: [values[1], values[1], outside]}

    def test_overlapping_blocks_of_tasks(self, name: str) -> None:
        values, outside = wanted(name), seen(name)

        async def run(at: int, own: asyncio.Event, other: asyncio.Event) -> list[Any]:
            with entered(name, at):
                own.set()
                await other.wait()
                found = [seen(name)]
                if at:
                    await asyncio.sleep(0)
                found.append(seen(name))
            return [*found, seen(name)]

        async def both() -> list[list[Any]]:
            events = asyncio.Event(), asyncio.Event()
            return await asyncio.gather(*(run(at, events[at], events[1 - at]) for at in (0, 1)))

        assert asyncio.run(both()) == [[value, value, outside] for value in values]

    def test_a_task_keeps_the_block_that_started_it(self, name: str) -> None:
        values, outside = wanted(name), seen(name)

        async def look() -> Any:
            return seen(name)

        async def start() -> list[Any]:
            with entered(name, 0):
                task = asyncio.create_task(look())
            return [seen(name), await task, seen(name)]

        assert asyncio.run(start()) == [outside, values[0], outside]

    def test_blocks_that_generators_interleave(self, name: str) -> None:
        values, outside = wanted(name), seen(name)

        def steps() -> Iterator[None]:
            with entered(name, 0):
                yield

        first, second = steps(), steps()
        next(first)
        with entered(name, 1):
            next(second)
            first.close()
            second.close()
            assert seen(name) == values[1]
            last = steps()
            next(last)
        last.close()
        assert seen(name) == outside

    def test_a_generator_ends_in_another_thread(self, name: str) -> None:
        outside = seen(name)
        found: list[Any] = []

        def steps() -> Iterator[None]:
            with entered(name, 0):
                yield

        def begin() -> None:
            found.append(steps())
            next(found[0])

        thread = threading.Thread(target=begin)
        thread.start()
        thread.join()
        found[0].close()
        assert seen(name) == outside


def test_an_assignment_in_a_block_ends_with_it() -> None:
    with config.override(debug=False, lazy=False):
        config.debug = True
        config.lazy = False
        assert config.debug
    assert not config.debug
    assert config.lazy


def in_thread(call: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


def test_host_operands_of_a_block_are_no_other_threads() -> None:
    def add() -> str:
        try:
            return type(dp.ones(3) + np.ones(3)).__name__
        except dp.HostConversionError as error:
            return type(error).__name__

    with config.override(host_operands="copy"):
        assert (add(), in_thread(add)) == ("ndarray", "HostConversionError")


def test_laziness_of_a_block_is_no_other_threads(fused: None) -> None:
    def is_pending() -> bool:
        return (dp.ones(100_000) + 1).is_pending

    with config.override(lazy=False):
        assert (is_pending(), in_thread(is_pending)) == (False, True)


def test_plans_of_a_block_are_no_other_threads(fused: None) -> None:
    """A kernel that contracts rounds once."""
    values = 1 + np.random.default_rng(1).random(1 << 18)
    a, product = dp.asarray(values), dp.asarray(values * values)

    def difference() -> float:
        return float(np.abs((a * a - product).asnumpy()).max())

    def both(is_contracted: bool) -> None:
        with config.override(fp_contract=is_contracted):
            assert (difference() > 0) == is_contracted

    both(True)
    with config.override(fp_contract=True):
        for _ in range(2):
            assert difference() > 0
            assert in_thread(difference) == 0
            in_thread(lambda: both(False))
            in_thread(lambda: both(True))
    assert difference() == 0
