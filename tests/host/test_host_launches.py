"""Launches on the host device that the compiled module runs: values, order, interrupts, forks."""

from __future__ import annotations

import _thread
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._array import fastpath
from dparray._driver import driver_of
from dparray._driver.host import modules
from dparray._evaluate import evaluate
from tests.support import force, same, values

DEVICE = dp.Device("host:cpu")
needs_module = pytest.mark.skipif(fastpath.module is None, reason="it is about the compiled module")


@pytest.fixture
def from_python(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The kernels that Python submits, while kernels compute everything."""
    driver, found = driver_of(DEVICE.queue), []
    submit = driver.submit

    def note(kernel: int, *args: Any) -> Any:
        found.append(kernel)
        return submit(kernel, *args)

    monkeypatch.setattr(driver, "submit", note)
    with force("fused"), dp.config.override(background_compile=False):
        yield found


@needs_module
@pytest.mark.parametrize("shape", [(3,), (50_001,), (7, 333), (40, 30, 20)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_the_compiled_module_runs_cached_launches(
    shape: tuple[int, ...],
    dtype: str,
    from_python: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(modules.Pace, "was_short", True)
    for seed in range(12):
        a, b = values(shape, dtype, seed=seed), values(shape, dtype, seed=seed + 20)
        x, y = dp.asarray(a, device=DEVICE), dp.asarray(b, device=DEVICE)
        same(x * y + x, a * b + a, 1e-2 if dtype == "float16" else 1e-6)
    # One, or every other one if other programs make all runs long.
    assert len(from_python) < 8


@needs_module
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_cached_reductions_have_their_local_memory(
    axis: int | None, from_python: list[int]
) -> None:
    for seed in range(4):
        a = values((300, 70), "float64", seed=seed)
        x = dp.asarray(a, device=DEVICE)
        same(dp.sum(x, axis=axis) * (seed + 1.5), a.sum(axis) * (seed + 1.5), 1e-12)


def test_a_cached_launch_waits_for_earlier_work(from_python: list[int]) -> None:
    device = DEVICE.new_queue()
    a = values((1000,), "float32")
    x = dp.asarray(a, device=device)
    for _ in range(3):
        dp.synchronize(x + 1)
    gate = threading.Event()
    queue = device.queue
    earlier = queue.submit(gate.wait)
    queue.order.add_launch(earlier, queue.order.before_launch())
    result = x + 1
    dp.eval(result)
    assert queue.submitted - queue.done >= 2
    gate.set()
    same(result, a + 1)


@needs_module
def test_a_launch_that_was_long_goes_back_to_the_thread_of_its_queue(
    from_python: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    a = np.linspace(1, 2, 2_000_000)
    x = dp.asarray(a, device=DEVICE)
    monkeypatch.setattr(modules.Pace, "was_short", True)
    for counted in (1, 1, 2):
        same(dp.sin(dp.log(x)), np.sin(np.log(a)), 1e-14)
        assert len(from_python) == counted


@needs_module
@pytest.mark.usefixtures("heeds_interrupts")
@pytest.mark.parametrize("cached", [False, True])
def test_an_interrupt_does_not_end_a_kernel_in_the_caller(
    cached: bool, from_python: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(x: Any, module: Any) -> Any:
        for _ in range(10):
            x = module.exp(module.cos(x))
        return x

    a = np.linspace(1, 2, 1_000_000)
    x = dp.asarray(a, device=DEVICE)
    monkeypatch.setattr(modules.Pace, "was_short", cached)
    monkeypatch.setattr(modules.Pace, "is_short", lambda self, scalars: True)
    dp.synchronize(slow(x, dp))
    result = slow(x, dp)

    def interrupted() -> None:
        timer = threading.Timer(0.03, _thread.interrupt_main)
        timer.start()
        dp.eval(result)
        timer.join()

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    same(result, slow(a, np), 1e-12)


def test_a_profile_has_cached_launches(from_python: list[int]) -> None:
    x = dp.ones(1000, dtype="float32", device=DEVICE)
    for _ in range(3):
        dp.synchronize(x + 1)
    with dp.profile() as found:
        for _ in range(3):
            dp.synchronize(x + 1)
    assert sum(each.kind == "kernel" for each in found.events) == 3


_FORK = """
import os
import dparray as dp
from dparray._evaluate import limits
x = dp.ones(1000, device="host:cpu")
x.queue.submit(lambda: None)  # starts the thread of the queue
with limits.force("fused"), dp.config.override(background_compile=False):
    for _ in range(3):
        dp.synchronize(x + 1)
    if (child := os.fork()) == 0:
        try:
            dp.synchronize(x + 1)
        except dp.ForkError:
            os._exit(0)
        os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), float((x + 1).sum()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_process_runs_no_cached_launch() -> None:
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    run = subprocess.run(
        [sys.executable, "-c", _FORK], capture_output=True, text=True, env=environment
    )
    assert run.stdout.split() == ["0", "2000.0"], run.stderr


def test_few_work_items_with_loops_run_on_all_threads_and_are_freed_with_their_function() -> None:
    @dp.kernel
    def totals(item: Any, x: Any, out: Any) -> None:
        i = item.get_id(0)
        total = 0.0
        for j in range(x.size):
            total += x[j] * i
        out[i] = total

    known = set(modules.by_number)
    x, out = dp.ones(100, device=DEVICE), dp.empty(1000, device=DEVICE)
    dp.call_kernel(totals, dp.Range(1000), x, out)
    same(out, np.arange(1000) * 100.0, 1e-12)
    (made,) = (number for number in modules.by_number if number not in known)
    (launch,) = modules.by_number[made]._launches.values()
    assert launch.units > 1
    del totals
    evaluate.forget()
    gc.collect()
    assert made not in modules.by_number
