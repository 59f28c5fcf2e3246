"""Failures end cleanly: memory, groups, lost devices, interrupts, the end of the process."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]


def test_too_large_a_group_and_too_much_local_memory_are_refused_by_name(queue: Any) -> None:
    @dp.kernel
    def grouped(item: Any, x: Any, local: Any) -> None:
        local[item.get_local_id(0)] = x[item.get_global_id(0)]

    x = dp.ones(1 << 16, sycl_queue=queue)
    device = queue.sycl_device
    size = 2 * device.max_work_group_size
    few = dp.LocalAccessor(1, "float32")
    with pytest.raises(dp.KernelRangeError, match=r"grouped.*smaller local size"):
        dp.call_kernel(grouped, dp.NdRange((4 * size,), (size,)), x, few)
    many = dp.LocalAccessor(device.local_mem_size, "float64")
    with pytest.raises(dp.KernelRangeError, match=r"grouped.*local memory"):
        dp.call_kernel(grouped, dp.NdRange((16,), (16,)), x, many)
    assert float(x.sum()) == 1 << 16


@pytest.mark.slow
def test_after_memory_ran_out_in_a_plan_the_arrays_can_still_be_computed(queue: Any) -> None:
    count = 4_000_000  # larger than the free parts of slabs that other arrays share
    x = dp.asarray(np.linspace(0, 1, count), sycl_queue=queue)
    y = dp.sin(x) + 1
    total = (y * y).sum(keepdims=True)
    z = y / total
    gc.collect()
    dp.memory.release()  # memory kept by the pool needs no new allocation
    previous = dp.memory.set_limit(1 << 10)
    try:
        with pytest.raises(dp.exceptions.MemoryError, match="limit") as raised:
            z.asnumpy()
    finally:
        dp.memory.set_limit(previous)
    assert raised.value.requested > 0
    assert re.search(rf"step \d of \d.*float64 of shape \({count},\)", str(raised.value))
    assert raised.value.device
    right = np.sin(np.linspace(0, 1, count)) + 1
    np.testing.assert_allclose(z.asnumpy(), right / (right * right).sum())


LONG = """
import dparray as dp
x = dp.ones(2_000_000)
for _ in range(REPEATS):
    x = dp.sin(x) + 1
    dp.eval(x)
"""


def test_the_process_ends_with_work_maps_and_profiles_open() -> None:
    program = LONG.replace("REPEATS", "30") + (
        "p = dp.profile(); p.__enter__()\n"
        "y = dp.zeros(50_000); m = y.map('rw')\n"
        "dp.eval(x * 2); x.event.then(lambda: None)\n"
        "print('over')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("over")
    assert "Traceback" not in run.stderr


def test_an_interrupt_ends_a_wait_and_breaks_nothing() -> None:
    program = """
import os, signal, sys, threading, time
import dparray as dp
from tests.support import launch_held

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have it ignored in the background
x, y = dp.zeros(1), dp.ones(1)
event, gate = launch_held(x.sycl_queue, x, y)
main = threading.main_thread().ident

def interrupt():
    while sys._current_frames()[main].f_code.co_name != "interruptible":
        time.sleep(1e-3)
    os.kill(os.getpid(), signal.SIGINT)
    is_told.wait(100)
    gate[0] = 1

is_told = threading.Event()
threading.Thread(target=interrupt).start()
try:
    dp.synchronize(x)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", event.done)
is_told.set()
print(float((x * 0 + 1).sum()))
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["interrupted", "False", "1.0"]
