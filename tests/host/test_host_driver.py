"""The driver of the host processor: values of kernels, queues, memory, and a start without SYCL."""

from __future__ import annotations

import _thread
import math
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._array.ndarray import materialize
from dparray._driver import driver_of, traits_of
from dparray.memory.copies import host_view
from tests.support import force, run_in_threads, same, until, values

DEVICE = dp.Device("host:cpu")


def on_host(*arrays: Any) -> tuple[dp.ndarray, ...]:
    return tuple(dp.asarray(each, device=DEVICE) for each in arrays)


@pytest.mark.parametrize("shape", [(1,), (1000,), (100_001,), (7, 333), (3, 5, 70)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64"])
def test_fused_expressions(shape: tuple[int, ...], dtype: str) -> None:
    a, b = values(shape, dtype), values(shape, dtype, seed=1)
    x, y = on_host(a, b)
    with force("fused"):
        same(x * y + x - 3, a * b + a - 3, 1e-2 if dtype == "float16" else 1e-6)
        same(x.sum(), a.sum(), 2e-2 if dtype == "float16" else 1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "tanh", "exp2", "log2", "log10"])
def test_mathematics_at_special_values(name: str, dtype: str) -> None:
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-300, 1, -1, 80, -80, 3e9, 1e20, -1e38]
    with np.errstate(all="ignore"):
        a = np.array(special).astype(dtype)
        wanted = getattr(np, name)(a)
    (x,) = on_host(a)
    with force("fused"):
        found = getattr(dp, name)(x).asnumpy()
    np.testing.assert_allclose(found, wanted, rtol=3e-7 if dtype == "float32" else 5e-16, atol=0)


@pytest.mark.parametrize(("name", "low", "high"), [("exp", -80, 80), ("sin", -1e6, 1e6)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mathematics_is_accurate(name: str, low: float, high: float, dtype: str) -> None:
    a = np.random.default_rng(0).uniform(low, high, 50_000).astype(dtype)
    wanted = getattr(np, name)(a.astype("longdouble"))
    (x,) = on_host(a)
    with force("fused"):
        found = getattr(dp, name)(x).asnumpy()
    ulp = np.abs(np.spacing(wanted.astype(dtype))).astype("longdouble")
    assert float(np.max(np.abs(found - wanted) / ulp)) <= 2


@dp.kernel
def reverse_groups(item: dp.NdItem, x: Any, out: Any, local: Any) -> None:
    i, j = item.get_global_id(0), item.get_local_id(0)
    size = item.get_local_range(0)
    local[j] = x[i]
    dp.group_barrier(item.get_group())
    out[i] = local[size - 1 - j]


@pytest.mark.parametrize("size", [1, 8, 24, 256, 1024])
def test_local_memory_and_barriers(size: int) -> None:
    a = np.arange(4 * size, dtype="float32")
    x, out = on_host(a, np.zeros_like(a))
    local = dp.LocalAccessor(size, dtype=dp.float32)
    dp.call_kernel(reverse_groups, dp.NdRange((4 * size,), (size,)), x, out, local)
    same(out, a.reshape(4, size)[:, ::-1].reshape(-1))


@dp.kernel
def steps(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    value = x[i]
    count = 0
    while value > 1:
        value = value // 2 if value % 2 == 0 else 3 * value + 1
        count += 1
    out[i] = count


def test_loops_that_work_items_leave_at_different_times() -> None:
    def collatz(value: int) -> int:
        count = 0
        while value > 1:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            count += 1
        return count

    a = np.arange(1, 1001, dtype="int64")
    x, out = on_host(a, np.zeros_like(a))
    dp.call_kernel(steps, dp.Range(1000), x, out)
    assert out.tolist() == [collatz(int(each)) for each in a]


@dp.kernel
def histogram(item: dp.NdItem, x: Any, bins: Any, local: Any) -> None:
    i, j = item.get_global_id(0), item.get_local_id(0)
    local[j] = 0
    dp.group_barrier(item.get_group())
    dp.AtomicRef(local, x[i], address_space=dp.AddressSpace.LOCAL).fetch_add(1)
    dp.group_barrier(item.get_group())
    dp.AtomicRef(bins, j).fetch_add(local[j])


def test_atomic_updates_of_local_memory_are_not_lost() -> None:
    a = np.random.default_rng(1).integers(0, 16, 4096).astype("int32")
    x, bins = on_host(a, np.zeros(16, "int32"))
    local = dp.LocalAccessor(16, dtype=dp.int32)
    dp.call_kernel(histogram, dp.NdRange((4096,), (16,)), x, bins, local)
    assert bins.tolist() == np.bincount(a, minlength=16).tolist()


def test_a_group_with_too_much_local_memory_is_refused() -> None:
    x, out = on_host(np.zeros(8, "float32"), np.zeros(8, "float32"))
    most = traits_of(DEVICE.queue).local_memory
    local = dp.LocalAccessor(most // 4 + 1, dtype=dp.float32)
    with pytest.raises(dp.KernelRangeError, match="local memory"):
        dp.call_kernel(reverse_groups, dp.NdRange((8,), (8,)), x, out, local)


@dp.kernel
def sum_in_some(item: dp.NdItem, x: Any, out: Any, count: Any) -> None:
    i = item.get_global_id(0)
    if i < count:
        out[i] = dp.reduce_over_group(item.get_group(), x[i])


def test_group_functions_that_some_work_items_reach_are_refused() -> None:
    x, out = on_host(np.ones(64, "float32"), np.zeros(64, "float32"))
    with pytest.raises(dp.KernelCompileError, match="can tell, only some work-items reach"):
        dp.call_kernel(sum_in_some, dp.NdRange((64,), (32,)), x, out, 48)


@dp.kernel
def wait_for_gate(item: dp.Item, gate: Any, out: Any) -> None:
    for _ in range(3_000_000_000):  # takes several seconds
        if dp.AtomicRef(gate, 0).load() != 0:
            break
    out[item.get_id(0)] += 1


def test_work_is_ordered_across_queues_and_the_caller_goes_on() -> None:
    gate, out = on_host(np.ones(1, "int32"), np.zeros(1, "int32"))
    dp.call_kernel(wait_for_gate, dp.Range(1), gate, out).wait()  # compiled first
    word = host_view(materialize(gate))
    word[0] = 0
    first = dp.call_kernel(wait_for_gate, dp.Range(1), gate, out)
    queue = DEVICE.new_queue().queue
    driver = driver_of(queue)
    after = driver.barrier(queue, first._driver_events)
    assert not first.done
    assert not driver.is_done(after)
    word[0] = 1
    driver.wait([after])
    assert first.done
    assert out.tolist() == [2]


def test_a_queue_with_profiling_has_times_in_order() -> None:
    device = DEVICE.new_queue(profiling=True)
    queue = device.queue
    driver = driver_of(queue)
    event = queue.submit(lambda: time.sleep(0.01))
    submitted, started, ended = driver.times(event)
    assert submitted <= started
    assert ended - started >= 9_000_000


@pytest.mark.usefixtures("heeds_interrupts")
def test_an_interrupt_ends_a_wait() -> None:
    queue = DEVICE.new_queue().queue
    end = threading.Event()
    event = queue.submit(end.wait)

    def wait() -> None:
        threading.Timer(0.05, _thread.interrupt_main).start()
        driver_of(queue).wait([event])

    with pytest.raises(KeyboardInterrupt):
        wait()
    assert not event.is_done
    end.set()
    driver_of(queue).wait([event])


def run_long_work(device: dp.Device) -> None:
    x = dp.ones(70_000, device=device)
    dp.call_kernel(halve, dp.Range(x.size), x)
    assert float(x.sum()) == 35_000


@dp.kernel
def halve(item: Any, x: Any) -> None:
    x[item.get_id(0)] /= 2


def test_queues_without_work_have_no_thread() -> None:
    def count() -> int:
        return sum(thread.name == "dparray queue" for thread in threading.enumerate())

    for _ in range(20):
        run_long_work(DEVICE.new_queue())
    until(lambda: count() == 0)
    run_long_work(DEVICE)


def test_work_is_done_where_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    device = DEVICE.new_queue()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        run_long_work(device)
    run_long_work(device)


def test_threads_launch_on_one_queue() -> None:
    total = dp.zeros(1, dtype="int32", device=DEVICE)

    @dp.kernel
    def count(item: dp.Item, total: Any) -> None:
        dp.AtomicRef(total, 0).fetch_add(1)

    run_in_threads(lambda _: [dp.call_kernel(count, dp.Range(100), total) for _ in range(20)])
    assert total.tolist() == [8 * 20 * 100]


def test_parts_are_the_same_objects_and_share_the_units() -> None:
    if DEVICE.traits.units < 2:
        pytest.skip("a processor with one thread has no parts")
    parts = DEVICE.create_sub_devices(partition=1)
    assert parts == DEVICE.create_sub_devices(partition=1)
    assert len(parts) == DEVICE.traits.units
    assert all(each.traits.units == 1 and each.is_sub_device for each in parts)
    with pytest.raises(dp.DeviceError, match="cannot be split"):
        DEVICE.create_sub_devices(partition=DEVICE.traits.units + 1)
    same(dp.ones(5, device=parts[1]) + 1, np.full(5, 2.0))


def test_memory_is_zeroed_aligned_and_limited() -> None:
    driver = driver_of(DEVICE.queue)
    for nbytes in (1, 5 << 20):
        memory = driver.allocate(DEVICE.queue, "device", nbytes)
        assert driver.pointer(memory) % 4096 == 0
    with pytest.raises(MemoryError):
        driver.allocate(DEVICE.queue, "device", 1 << 60)
    with pytest.raises(ValueError, match="no allocation"):
        driver.part(memory, driver.pointer(memory) - 8, 16, DEVICE.queue)


@pytest.mark.parametrize("size", [5, 100_000])
def test_copies_in_queue_order(size: int) -> None:
    a = np.arange(size)
    (x,) = on_host(a)
    y = x + 1
    other = y.to_device(DEVICE.new_queue())
    same(other, a + 1)
    x[...] = dp.asarray(a[::-1].copy(), device=DEVICE)
    same(x, a[::-1])


_WITHOUT_SYCL = """
import math, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"dpctl", "dpnp"}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
import dparray as dp

x = dp.linspace(0, 1, 1_000_000, dtype="float32")
y = dp.linspace(1, 2, 1_000_000, dtype="float32")
print(dp.default_device().filter_string, float(dp.sqrt(((x - y) ** 2).mean())))

@dp.jit
def pairwise(x1, x2, out):
    for i in dp.prange(x1.shape[0]):
        for j in range(x2.shape[0]):
            d = 0.0
            for k in range(x1.shape[1]):
                d += (x1[i, k] - x2[j, k]) ** 2
            out[i, j] = math.sqrt(d)

points = dp.asarray([[0.0, 0.0], [3.0, 4.0]])
pairwise(points, points, out := dp.empty((2, 2)))
print(out.tolist())

@dp.kernel
def total(item, x, out):
    values = [x[item.get_id(0)]]
    out[0] = sum(values)

try:
    dp.call_kernel(total, dp.Range(1000), x, dp.zeros(1, dtype="float32"))
except dp.KernelCompileError as error:
    print("a list is not available" in str(error))
m = dp.asarray([[2.0, 0.0], [0.0, 4.0]])
print((m @ dp.linalg.inv(m)).tolist(), dp.sort(dp.asarray([3, 1, 2])).tolist())
"""


def test_the_first_programs_run_without_sycl(tmp_path: Path) -> None:
    script = tmp_path / "script.py"  # dp.jit reads its source
    script.write_text(_WITHOUT_SYCL)
    root = str(Path(__file__).resolve().parents[2])
    run = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "host:cpu 1.0",
        "[[0.0, 5.0], [5.0, 0.0]]",
        "True",
        "[[1.0, 0.0], [0.0, 1.0]] [1, 2, 3]",
    ]


@dp.kernel
def two_loops(item: dp.Item, x: Any, low: dp.constexpr, r1: Any) -> None:
    x0 = item.get_id(0)
    total = 0.5
    for a in range(4):
        if (x0 + a) % 2:
            total += a
    for a in range(9):
        if total > r1:
            break
        for shift in (1, -2):
            if (x0 + shift) % 2:
                continue
            total += a * shift + 2.5
    x[x0] = total * low


def test_a_loop_that_follows_another_is_left_at_different_times() -> None:
    def expected(i: int) -> float:
        total = 0.5 + sum(a for a in range(4) if (i + a) % 2)
        for a in range(9):
            if total > 11.5:
                break
            total += sum(a * shift + 2.5 for shift in (1, -2) if not (i + shift) % 2)
        return total * 2

    (x,) = on_host(np.zeros(40))
    dp.call_kernel(two_loops, dp.Range(40), x, 2, 11.5)
    assert x.tolist() == [expected(i) for i in range(40)]


def test_functions_that_numpy_has_not_or_with_other_defaults() -> None:
    a = np.random.default_rng(0).integers(0, 5, (3, 40)).astype("complex64")
    b = np.linspace(-30, 30, 4000)
    x, y = on_host(a, b)
    with dp.config.override(host_tier=False):
        assert np.array_equal(dp.argsort(x).asnumpy(), np.argsort(a, kind="stable"))
        same(dp.cumulative_logsumexp(y), np.logaddexp.accumulate(b), 1e-12)


@pytest.mark.parametrize("device", ["host:cpu", "cpu"])
def test_factors_of_a_stack_without_matrices(device: str) -> None:
    a, b = dp.zeros((0, 3, 4), device=device), dp.ones((4, 2), device=device)
    shapes = [(0, 3, 3), (0, 3, 3), (0, 3, 4)]
    assert [each.shape for each in dp.linalg.lu(a)] == shapes
    assert [each.shape for each in dp.linalg.lu(a, permute_l=True)] == shapes[1:]
    rows = dp.linalg.lu(a, p_indices=True)[0]
    assert (rows.shape, rows.dtype) == ((0, 3), np.int64)
    factors, rows = dp.linalg.lu_factor(dp.zeros((0, 4, 4), device=device))
    assert (factors.shape, rows.shape) == ((0, 4, 4), (0, 4))
    assert dp.linalg.lu_solve((factors, rows), b * 1j).shape == (0, 4, 2)
    assert dp.linalg.lu_solve((factors, rows), b * 1j).dtype == np.complex128
