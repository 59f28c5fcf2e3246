"""Fixtures of all tests: a separate cache, and the queues on which arrays are tested."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import changed, crashes, environment, kept_binaries, sampling, worker_memory

pytest_collection_modifyitems = sampling.pytest_collection_modifyitems

_cache_dir = pytest.StashKey[tempfile.TemporaryDirectory]()
_drivers_dir = pytest.StashKey[tempfile.TemporaryDirectory]()

_QUEUES = ["cpu", "sub-device-1", "sub-device-2", "second-queue"]
_DRIVERS = "OCL_ICD_FILENAMES"
_BINARIES = Path("build", "test-binaries")
_MAX_CACHED = 64 * 2**20
# With Python's own threshold of 700 objects, collections take 7 % of a run: compilers create many.
_THRESHOLD = (50_000, *gc.get_threshold()[1:])
# Whether to load the CPU driver twice: the fixture `queue` then has a second real device. The
# loader finds drivers once per process, so this holds for all tests of the process.
if os.environ.get("DPARRAY_TEST_SECOND_PLATFORM"):
    _QUEUES.append("second-platform")


def drivers_with_a_copy(folder: Path) -> str | None:
    """Return the loader's value that makes two platforms of the CPU driver: the driver and a copy.

    The copy is a separate library with its own USM, context and DLPack number. Return None if the
    driver does not belong to this environment. Nothing of dparray is imported, because the loader
    reads its variable once.
    """
    driver = Path(os.environ.get(_DRIVERS) or Path(sys.prefix, "lib", "libintelocl.so"))
    if not driver.is_file():
        return None
    for file in driver.parent.iterdir():
        if file.is_file() and file.name != driver.name:
            (folder / file.name).symlink_to(file)
    copy = folder / driver.name
    shutil.copy(driver, copy)
    return f"{driver}:{copy}"


def pytest_addoption(parser: pytest.Parser) -> None:
    changed.pytest_addoption(parser)
    sampling.pytest_addoption(parser)
    worker_memory.pytest_addoption(parser)
    text = "set no option of dparray: the run has a user's defaults and an empty cache"
    parser.addoption("--users-defaults", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Give the session its own kernel cache, before anything imports dparray.

    ``DPARRAY_TEST_CACHE`` names a folder that keeps it for the next session. It also reaches the
    processes that tests start, and pytest's workers. Kernels compiled outside of the tests have no
    influence on them.
    """
    changed.pytest_configure(config)
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    if config.getoption("--all"):
        os.environ["DPARRAY_TEST_ALL"] = "1"  # read by `tests.support.examples`, also in workers
    os.environ["DPARRAY_VERIFY_IR"] = "1"  # read by `dparray._ir.passes`
    if kept := os.environ.get("DPARRAY_TEST_CACHE"):
        os.environ["DPARRAY_CACHE_DIR"] = os.path.abspath(kept)
    else:
        directory = tempfile.TemporaryDirectory(prefix="dparray-test-cache-")
        config.stash[_cache_dir] = directory
        os.environ["DPARRAY_CACHE_DIR"] = directory.name
        if not config.getoption("--users-defaults"):
            kept_binaries.copy_to(Path(directory.name), config.rootpath / _BINARIES)
    # With this variable, each process that a test starts would compile dparray's source files
    # again, which takes half of the time of an import.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if not config.getoption("--users-defaults"):
        environment.set_for_tests()
    if "second-platform" in _QUEUES:
        copies = tempfile.TemporaryDirectory(prefix="dparray-test-drivers-")
        config.stash[_drivers_dir] = copies
        both = drivers_with_a_copy(Path(copies.name))
        if both is None:
            raise pytest.UsageError("second platform: this environment has no driver to copy")
        os.environ[_DRIVERS] = both


def pytest_sessionstart(session: pytest.Session) -> None:
    crashes.configure(session.config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Collect no garbage while tests are collected: 30,000 cases are created, and none is freed.

    The collector stays enabled: Dask keeps what it finds when it is imported, and its functions
    would disable the collector for the rest of the session.
    """
    gc.set_threshold(0)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") != "loadfile":
        return None
    from tests.scheduler import FileScheduling  # pytest-xdist is optional

    return FileScheduling(config, log)


pytest_handlecrashitem = crashes.pytest_handlecrashitem
pytest_testnodedown = worker_memory.pytest_testnodedown
pytest_sessionfinish = worker_memory.pytest_sessionfinish
pytest_terminal_summary = worker_memory.pytest_terminal_summary


def pytest_unconfigure(config: pytest.Config) -> None:
    crashes.unconfigure(config)
    if _cache_dir in config.stash:
        cache = Path(config.stash[_cache_dir].name)
        if not config.getoption("--users-defaults"):
            kept_binaries.copy_from(cache, config.rootpath / _BINARIES)
    for key in (_cache_dir, _drivers_dir):
        if key in config.stash:
            config.stash[key].cleanup()


def pytest_collection_finish() -> None:
    """Freeze the garbage collector's objects, so that a collection need not visit every test."""
    gc.set_threshold(*_THRESHOLD)
    gc.collect()
    gc.freeze()


@pytest.fixture
def pretend() -> Iterator[Callable[..., None]]:
    """A function that lets devices report other traits: see ``tests.support.pretending``."""
    from tests.support import pretending

    with pretending() as change:
        yield change


@pytest.fixture
def heeds_interrupts() -> Iterator[None]:
    """Let Ctrl-C reach the test, also in processes that a shell starts in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def standin() -> Iterator[Any]:
    """Return a stand-in driver, to which the queues of ``tests.standin`` belong."""
    from dparray import _driver
    from dparray.memory import libraries
    from tests.standin import Queue, StandIn

    _driver.by_type[Queue] = driver = StandIn()
    _driver.others.append(driver)
    libraries.modules["NumPy on the stand-in"] = "tests.standin_library"
    yield driver
    driver.lost = ()
    driver.opened.set()
    _driver.others.remove(driver)  # The pool goes on to ask it for its memory's queues.
    _driver.traits_of.cache_clear()
    _driver.place_of.cache_clear()


@pytest.fixture(autouse=True, scope="module")
def _forget_kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Drop plans, kernels and free USM memory after each module, to keep workers small.

    100 kernels take 50 MB. The kernels and plans of the module's own functions are dropped, too,
    because these functions live as long as the session.
    """
    yield
    if "dparray" in sys.modules:
        import dparray as dp
        from dparray._evaluate import evaluate
        from dparray._jit.function import JitFunction
        from dparray._kernel.function import KernelFunction
        from dparray.algorithms import ranges

        evaluate.forget()
        ranges.forget_kernels()
        for value in vars(request.module).values():
            values = value.values() if type(value) is dict else (value,)
            for each in values:
                if isinstance(each, KernelFunction):
                    each._kernels, each._orders = {}, {}
                elif isinstance(each, JitFunction):
                    each._plans = {}
        gc.collect()
        # Without this, each collection visits all objects of the imported libraries, which takes
        # 0.5 s.
        gc.freeze()
        dp.memory.release()
        _give_memory_back()


@pytest.fixture(autouse=True)
def _release_memory() -> Iterator[None]:
    """Release much free USM memory after a test: the next test may use other queues."""
    yield
    if "dparray" in sys.modules:
        import dparray as dp

        if dp.memory.stats().cached > _MAX_CACHED:
            dp.memory.release()


def _give_memory_back() -> None:
    """Return free memory to the system, where the C library has a function for that (glibc)."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(autouse=True)
def _process_state() -> Iterator[None]:
    """Fail a test that changes what all later tests of the process see."""
    before = _state()
    yield
    assert _state() == before, "the test left the process in another state"


def _state() -> dict[str, Any]:
    return {
        "NumPy's error state": np.geterr(),
        "garbage collection": gc.isenabled(),
        "recursion limit": sys.getrecursionlimit(),
        "working folder": os.getcwd(),
    }


@functools.cache
def _queues() -> dict[str, Any]:
    """Return the queues by name; they are created once, so that tests share compiled kernels."""
    import dparray as dp

    device = dp.Device(os.environ.get("DPARRAY_DEVICE") or "cpu")
    queues = {"cpu": device.queue, "second-queue": device.new_queue().queue}
    if "partition" in device.traits.aspects and device.traits.units > 1:
        parts = device.create_sub_devices(partition=1)[:2]
        queues |= {f"sub-device-{number}": part.queue for number, part in enumerate(parts, 1)}
    others = [each for each in dp.devices() if each != device and each.driver == device.driver]
    if others:
        queues["second-platform"] = others[0].queue
    return queues


@pytest.fixture(params=_QUEUES)
def queue(request: pytest.FixtureRequest) -> Any:
    """Return a queue: the CPU's default queue, one of two sub-devices, a second queue.

    ``DPARRAY_DEVICE`` names another device than the CPU, whose tests without sub-devices are
    skipped.

    With ``DPARRAY_TEST_SECOND_PLATFORM=1`` there is also the queue of a second real device.
    """
    queues = _queues()
    if request.param not in queues:
        pytest.skip("the device has no sub-devices")
    return queues[request.param]


@pytest.fixture(params=["host", "device"])
def executor(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test twice: small arrays are computed by the host, then by kernels of the device."""
    import dparray as dp

    with dp.config.override(host_tier=request.param == "host"):
        yield request.param


@pytest.fixture
def new_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty the kernel cache on disk, also if another test compiled the same kernels."""
    monkeypatch.setenv("DPARRAY_CACHE_DIR", str(tmp_path / "kernels"))


@pytest.fixture
def fused() -> Iterator[None]:
    """Force generated kernels for everything that they can compute."""
    from dparray._evaluate import limits

    with limits.force("fused"):
        yield


@pytest.fixture
def tests_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the tests' own options with ``--users-defaults``, too, for a test that counts kernels."""
    import dparray as dp

    values = {each.variable: each.value for each in environment.TESTS}
    monkeypatch.setattr(dp.config, "background_compile", False)
    monkeypatch.setattr(dp.config, "cost_model", json.loads(values["DPARRAY_COST_MODEL"]))


@pytest.fixture(scope="session")
def seeming_busy() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """Return a context where all queues seem busy, so that the host computes nothing eagerly."""
    from dparray._evaluate import host
    from dparray._runtime import queues as queues_module

    @contextlib.contextmanager
    def context() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(host, "is_ready", lambda *_: False)
            patch.setitem(queues_module.working, None, object())
            yield

    return context
