"""The driver's build of a kernel is stored on disk, and loaded from there."""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp
from dparray._compiler import cache, compile
from dparray._compiler.kernel import Kernel
from dparray._driver.sycl import modules as device_binary

FACTORS = itertools.count(7000)
needs_opencl = pytest.mark.skipif(
    dp.Device().sycl_queue.backend != dpctl.backend_type.opencl,
    reason="other backends store binaries themselves",
)
pytestmark = needs_opencl


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Record how each program was created, with an empty disk cache."""
    monkeypatch.setenv("DPARRAY_CACHE_DIR", str(tmp_path))
    made: list[str] = []

    def count_builds(place: Any, name: str) -> None:
        original = getattr(place, name)

        def build(*args: Any) -> Any:
            made.append("built")
            return original(*args)

        monkeypatch.setattr(place, name, build)

    count_builds(device_binary, "create_program_from_spirv")
    count_builds(device_binary._Driver, "built")
    of_binary = device_binary._Driver.program_of

    def load(*args: Any) -> Any:
        program = of_binary(*args)
        made.append("refused" if program is None else "loaded")
        return program

    monkeypatch.setattr(device_binary._Driver, "program_of", load)
    return made


def make_scale(factor: int, **options: Any) -> Any:
    @dp.kernel(**options)
    def scale(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)
        x[i] = x[i] * factor

    return scale


def scaled(factor: int, device: Any = None, **options: Any) -> np.ndarray:
    """Return the result for 0, 1, 2, 3 of a kernel that is not in memory, as in a new process."""
    compile.forget()
    x = dp.arange(4, device=device)
    make_scale(factor, **options)[4](x)
    return x.asnumpy()


@pytest.mark.parametrize("options", [{}, {"debug": True}], ids=["optimised", "debug"])
def test_a_cached_kernel_is_loaded_as_its_device_binary(
    builds: list[str], options: dict[str, Any]
) -> None:
    factor = next(FACTORS)
    for _ in range(3):
        assert (scaled(factor, **options) == np.arange(4) * factor).all()
    assert builds == ["built", "loaded", "loaded", "loaded"]


def test_sub_devices_load_it_too(builds: list[str]) -> None:
    factor = next(FACTORS)
    device = dp.Device("cpu")
    for place in (device, *device.create_sub_devices(partition=1)):
        assert (scaled(factor, place) == np.arange(4) * factor).all()
    assert "refused" not in builds


def test_a_kernel_that_prints_prints_when_loaded(
    builds: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    @dp.kernel
    def say(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)
        if i == 3:
            print("item", i)
        x[i] = i

    for _ in range(2):
        compile.forget()
        x = dp.zeros(8, dtype="int64")
        dp.kernel(say.py_func)[8](x)
        dp.synchronize(x)
    assert builds == ["built", "loaded", "loaded"]
    assert capfd.readouterr().out.count("item 3") == 2


def test_a_binary_that_the_driver_rejects_is_built_again(builds: list[str]) -> None:
    factor = next(FACTORS)
    scaled(factor)
    for path in cache.base_directory().rglob("*.kernel"):
        content = cache.load(path.stem)
        assert content is not None
        if content.startswith(b"\x7fELF"):
            cache.save(path.stem, content[:64])
    assert (scaled(factor) == np.arange(4) * factor).all()
    assert (scaled(factor) == np.arange(4) * factor).all()
    assert builds == ["built", "loaded", "refused", "built", "loaded", "loaded"]


def test_another_driver_or_setting_has_its_own_binaries(
    builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    factor = next(FACTORS)
    scaled(factor)
    monkeypatch.setenv("CL_CONFIG_USE_VECTORIZER", "False")
    device_binary._platform_text.cache_clear()
    scaled(factor)
    device_binary._platform_text.cache_clear()
    assert builds == ["built", "loaded"] * 2


def test_without_the_functions_that_load_binaries_modules_are_built(
    builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_binary, "_SYCL_LIBRARY", "libsycl.so.0")
    device_binary._driver.cache_clear()
    factor = next(FACTORS)
    for _ in range(2):
        assert (scaled(factor) == np.arange(4) * factor).all()
    device_binary._driver.cache_clear()
    assert builds == ["built", "built"]


@pytest.mark.slow
def test_the_driver_program_of_a_build_is_not_kept(builds: list[str]) -> None:
    """A driver's program holds more than a megabyte after a build; a process may build hundreds."""

    def resident() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize()

    count = 40
    for _ in range(5):
        scaled(next(FACTORS))
    before = resident()
    for _ in range(count):
        scaled(next(FACTORS))
    assert builds.count("built") == count + 5
    assert (resident() - before) / count < 1 << 20


@pytest.mark.usefixtures("new_cache")
def test_modules_are_built_in_one_thread_for_every_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    # The driver starts its compiler anew in each thread.
    threads = set()
    built_here = device_binary._Driver.built_here

    def note(*args: Any) -> Any:
        threads.add(threading.current_thread())
        return built_here(*args)

    monkeypatch.setattr(device_binary._Driver, "built_here", note)
    factors = [next(FACTORS) for _ in range(2)]
    asking = [threading.Thread(target=scaled, args=(factor,)) for factor in factors]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    (thread,) = threads
    assert thread not in (threading.main_thread(), *asking)


_FIRST = """
import atexit
import threading
import dparray as dp
from dparray._driver.sycl import modules

built = []
built_here = modules._Driver.built_here

def note(driver, queue, spirv, options):
    built.append(spirv)
    return built_here(driver, queue, spirv, options)

modules._Driver.built_here = note

@dp.kernel
def first(item, x):
    x[item.get_id(0)] += 1

@dp.kernel
def last(item, x):
    x[item.get_id(0)] += 2

def at_the_end():
    last[3](x)
    print(x.tolist())

x = dp.zeros(3, device="opencl:cpu")
first[3](x)
assert built[0] == modules._NOTHING and len(built) == 2, built
atexit.register(at_the_end)
"""


@pytest.mark.slow
def test_the_driver_starts_its_compiler_while_the_first_kernel_is_compiled(tmp_path: Path) -> None:
    environment = {**os.environ, "DPARRAY_CACHE_DIR": str(tmp_path), "DPARRAY_NOTICES": "0"}
    finished = subprocess.run(
        [sys.executable, "-c", _FIRST], env=environment, capture_output=True, text=True
    )
    # The last one is built when the interpreter ends, and must not start threads.
    assert finished.stdout.split() == ["[3.0,", "3.0,", "3.0]"], finished.stderr


@pytest.mark.slow
@pytest.mark.parametrize("shared_by", [1, 2], ids=["context of one device", "of two"])
def test_the_driver_frees_deleted_kernels(shared_by: int) -> None:
    kernel = make_scale(next(FACTORS))
    kernel[4](dp.arange(4))
    (compiled,) = kernel._kernels.values()
    queue = dpctl.SyclQueue()
    if shared_by == 2:
        parts = queue.sycl_device.create_sub_devices(partition=1)
        queue = dpctl.SyclQueue(dpctl.SyclContext(parts), parts[0])

    def build(count: int) -> int:
        """Return the bytes that the process holds after more kernels were built and dropped."""
        for _ in range(count):
            Kernel.from_bytes(compiled.to_bytes()).built_for(queue)
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    before = build(20)
    assert build(60) - before < 10e6  # if they were kept, each would take half a megabyte or more
