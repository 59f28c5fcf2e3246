"""Threads on in-order queues, where host tasks of other libraries delay later work."""

from __future__ import annotations

import subprocess
import sys

import dpctl
import pytest

import dparray as dp
from dparray._driver import order_of
from dparray._driver.sycl import in_order

# If a program hangs, it ends with a dump of all threads; the second one also checks values.
HEAD = """
import faulthandler, threading
faulthandler.enable()
faulthandler.dump_traceback_later(60, exit=True)
import dparray as dp, numpy as np
import dpctl
device = dpctl.SyclDevice("cpu")
def run(*functions):
    failures = []
    threading.excepthook = lambda info: failures.append(info.exc_value)
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
"""

PROGRAMS = {
    "two threads": """
queue = dpctl.SyclQueue(device, property="in_order")
X = dp.asarray(np.arange(50_000.0), sycl_queue=queue)
def write():
    for _ in range(150):
        y = X.copy()
        z = y + 1
        y[::2] = 0
        y += z
        y.asnumpy()
def read():
    for _ in range(150):
        (X * 3 - X).asnumpy()
run(write, read)
""",
    "eight threads, five queues": """
queues = [dpctl.SyclQueue(device, property="in_order")]
queues += [dpctl.SyclQueue(device) for _ in range(4)]
def work(number):
    values = np.arange(50_000.0) + number
    x = dp.asarray(values, sycl_queue=queues[number % 5])
    expected = values.copy()
    expected[::2] = 0
    expected += values + 1
    for _ in range(25):
        y = x.copy()
        z = y + 1
        y[::2] = 0
        y += z
        total, triple, large, order = x.sum(), x * 3 - x, x[x > 100.0], dp.sort(x)
        np.testing.assert_array_equal(y.asnumpy(), expected)
        np.testing.assert_allclose(float(total), values.sum())
        np.testing.assert_array_equal(triple.asnumpy(), values * 2)
        np.testing.assert_array_equal(large.asnumpy(), values[values > 100])
        np.testing.assert_array_equal(order.asnumpy(), values)
run(*[lambda number=number: work(number) for number in range(8)])
""",
    "borrowed memory and events": """
import dpnp
@dp.kernel
def double(item, a, b):
    i = item.get_id(0)
    b[i] = 2 * a[i]
queue = dpctl.SyclQueue(device, property="in_order")
a = dpnp.ones(20_000, sycl_queue=queue)
def work():
    for _ in range(60):
        b = dp.zeros(20_000, sycl_queue=queue)
        double[dp.Range(20_000)](dp.asarray(a), b)
        dp.call_kernel(double, dp.Range(20_000), dp.asarray(a), b).wait()
        b[::2] = 5
        assert float(b.sum()) == 7 * 10_000
run(work, work, work)
""",
    "calls of oneMKL": """
queue = dpctl.SyclQueue(device, property="in_order")
matrices = np.random.default_rng(0).normal(size=(5, 8, 8)) + 60 * np.eye(8)
def work():
    x = dp.asarray(matrices, sycl_queue=queue)
    for _ in range(15):
        for function, options in (("fft", {"n": 11}), ("fftn", {}), ("fft2", {"s": (7, 9)})):
            found = getattr(dp.fft, function)(x + 0, **options)
            wanted = getattr(np.fft, function)(matrices, **options)
            np.testing.assert_allclose(found.asnumpy(), wanted, atol=1e-9)
            assert found.sycl_queue == queue
        upper = dp.linalg.cholesky(x @ dp.matrix_transpose(x), upper=True)
        again = dp.matrix_transpose(upper) @ upper
        np.testing.assert_allclose(again.asnumpy(), matrices @ np.swapaxes(matrices, 1, 2))
        np.testing.assert_allclose((dp.linalg.inv(x) @ x).asnumpy()[0], np.eye(8), atol=1e-9)
with dp.config.override(host_tier=False):
    run(work, work)
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("attempt", range(2))
def test_threads_on_in_order_queues_end(program: str, attempt: int) -> None:
    """No deadlock occurs between threads, and all values are right."""
    text = HEAD + PROGRAMS[program]
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_one_thread_waits_in_the_driver(queue: dpctl.SyclQueue) -> None:
    """The others poll, since the driver lets a waiting thread execute another thread's wait."""
    x = dp.arange(1 << 20, dtype="float32", device=queue)
    order = order_of(queue)
    with in_order._in_driver:
        for _ in range(20):
            x += 1
            dp.eval(x)
            in_order.wait_for(order.submitted_events)
            assert all(
                event.execution_status == dpctl.event_status_type.complete
                for event in order.submitted_events
            )
    assert float(x[0]) == 20
