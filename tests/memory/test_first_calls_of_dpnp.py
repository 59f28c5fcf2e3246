"""Threads that make the first calls of dpnp at the same time do not deadlock."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

SCRIPT = """
import faulthandler, sys, threading
faulthandler.dump_traceback_later(60, exit=True)
import dparray as dp, dpctl
from dparray.memory.libraries.dpnp import dpt
sys.setswitchinterval(1e-6)
dpt.usm_ndarray
queues = [dpctl.SyclQueue() for _ in range(8)]
barrier = threading.Barrier(8)
def work(queue):
    barrier.wait()
    dpt.sort(dpt.zeros(100, sycl_queue=queue))
threads = [threading.Thread(target=work, args=(queue,)) for queue in queues]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.slow
def test_first_calls_by_threads_end() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_each_compiled_module_is_called_once_with_invalid_input() -> None:
    from dparray._driver.sycl import order
    from dparray.memory.libraries import dpnp as exchange

    assert exchange.dpt.usm_ndarray
    assert order._is_ready  # dpctl's order manager was imported
    seen = set(exchange._with_statics)
    assert {"dpnp.tensor._tensor_impl", "dpnp.tensor._tensor_sorting_impl"} <= seen
    exchange._make_statics()
    assert seen <= exchange._with_statics
