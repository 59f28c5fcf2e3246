"""Fixtures of the tests that need a CUDA driver: the stand-in's, see ``tests/cuda/standin.py``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cuda import standin


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Leave these tests to ``test_in_standin.py`` and ``make cuda-tests``, which start a process
    with the stand-in."""
    return None if config.pluginmanager.hasplugin(standin.__name__) else True


@pytest.fixture(autouse=True)
def _work_ends() -> Iterator[None]:
    """Wait for the work on dparray's queues: the emulator stops the garbage collector meanwhile."""
    yield
    if "dparray._driver" in sys.modules:
        for driver in sys.modules["dparray._driver"].loaded():
            if driver.name == "cuda":
                for queue in driver.queues_in_use():
                    driver.wait_for_queue(queue)


@pytest.fixture
def driver() -> Iterator[standin.StandIn]:
    """Return the stand-in; afterwards it is whole again and its work has ended."""
    driver = standin.install()
    yield driver
    for kind in standin.KINDS:
        driver.refuse(kind, 0)
    for device in range(2):
        driver.repair(device)
    driver.configure(seed=1, delay=100)


@pytest.fixture
def stream() -> Iterator[Any]:
    """Return a stream of device 0, whose context is current until the end of the test."""
    from cuda.bindings import driver as cuda
    from cuda.core import Device

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    yield stream
    cuda.cuCtxSetCurrent(cuda.CUcontext(0))
