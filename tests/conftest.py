"""What all tests share: a cache of their own, and the queues that arrays are tried on."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest

_cache_dir = pytest.StashKey[tempfile.TemporaryDirectory]()


def pytest_configure(config: pytest.Config) -> None:
    """Give the session its own kernel cache, before anything imports dparray.

    It reaches the processes that tests start, and pytest's workers, too. What users have compiled
    neither helps nor hurts a test.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    directory = tempfile.TemporaryDirectory(prefix="dparray-test-cache-")
    config.stash[_cache_dir] = directory
    os.environ["DPARRAY_CACHE_DIR"] = directory.name


def pytest_unconfigure(config: pytest.Config) -> None:
    if _cache_dir in config.stash:
        config.stash[_cache_dir].cleanup()


def pytest_collection_finish() -> None:
    """A collection of garbage, which some tests ask for often, need not visit every test."""
    gc.collect()
    gc.freeze()


@functools.cache
def _queues() -> dict[str, Any]:
    """The queues by name; made once, so that a test finds what another test has compiled."""
    import dparray as dp  # finds the driver, which it can only before dpctl is imported

    # isort: split
    import dpctl

    device = dp.Device("cpu")
    queues = {"cpu": device.sycl_queue, "second-queue": dpctl.SyclQueue(device.sycl_device)}
    if device.sycl_device.max_compute_units > 1:
        parts = device.create_sub_devices(partition=1)[:2]
        queues |= {f"sub-device-{number}": part.sycl_queue for number, part in enumerate(parts, 1)}
    return queues


@pytest.fixture(params=["cpu", "sub-device-1", "sub-device-2", "second-queue"])
def queue(request: pytest.FixtureRequest) -> Any:
    """A ``dpctl.SyclQueue``: the CPU's canonical one, two sub-devices', a second one."""
    queues = _queues()
    if request.param not in queues:
        pytest.skip("a CPU with one compute unit has no sub-devices")
    return queues[request.param]


@pytest.fixture(scope="session")
def seeming_busy() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """A context where all queues seem to work, so that nothing is computed at once."""
    from dparray._evaluate import host
    from dparray._runtime import queues as queues_module

    @contextlib.contextmanager
    def context() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(host, "is_ready", lambda queue: False)
            patch.setitem(queues_module.working, None, object())
            yield

    return context
