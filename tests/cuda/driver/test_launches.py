"""Kernels, events and errors on NVIDIA GPUs."""

from __future__ import annotations

import dataclasses
import gc
import math
import signal
import threading
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import LocalAccessor, NdRange, Range, _driver
from dparray._driver import driver_of
from dparray._driver.cuda import submission
from dparray._evaluate import bound_plan
from dparray._runtime import launch
from dparray.kernel_api import AtomicRef, group_barrier
from tests.cuda.standin import StandIn


@pytest.fixture
def gpu(driver: StandIn) -> Any:
    """Return the first GPU of the stand-in."""
    return dp.Device("cuda:0")


@dp.kernel
def add_position(item: Any, x: Any, factor: Any) -> None:
    i = item.get_id(0)
    x[i] += factor * i


def quotients(item: Any, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = math.sqrt(x[i] / y[i] * x[i] + y[i])


@dp.kernel
def note_ids(item: Any, x: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    x[i, j] = 1000 * i + j + item.get_range(0) + item.get_range(1)


@dp.kernel
def note_groups(item: Any, x: Any) -> None:
    x[item.get_global_id(0), item.get_global_id(1)] = item.get_local_id(0)


@dp.kernel
def note_cubes(item: Any, x: Any) -> None:
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    x[i, j, k] += 10_000 * i + 100 * j + k


@dp.kernel
def reversed_groups(item: Any, x: Any, out: Any, total: Any, scratch: Any, more: Any) -> None:
    i, own = item.get_global_id(0), item.get_local_id(0)
    size = item.get_local_range(0)
    scratch[own] = x[i]
    more[own] = i
    group_barrier(item.get_group())
    out[i] = scratch[size - 1 - own] + more[size - 1 - own]
    AtomicRef(total, 0).fetch_add(x[i])


@dp.kernel
def write_far(item: Any, x: Any, at: Any) -> None:
    x[at + item.get_id(0)] = 1.0


# --- kernels -------------------------------------------------------------------------------------


@dp.kernel
def sum_of_tile(item: Any, out: Any, tile: Any) -> None:
    i = item.get_local_id(0)
    tile[i] = i
    total = dp.reduce_over_group(item.get_group(), tile[i] + 1)
    out[i] = total


@pytest.mark.parametrize("kib", [46, 47, 48, 49, 64])
def test_local_memory_beside_that_of_a_group_function(gpu: dp.Device, kib: int) -> None:
    out = dp.zeros(256, dtype="int32", device=gpu)
    tile = LocalAccessor(kib * 256, "int32")
    dp.call_kernel(sum_of_tile, NdRange((256,), (256,)), out, tile)
    assert out.tolist() == [256 * 257 // 2] * 256


def test_much_local_memory_is_allowed_once(gpu: dp.Device) -> None:
    local = 32
    x = dp.ones(local, dtype="float32", device=gpu)
    out, total = dp.zeros_like(x), dp.zeros(1, dtype="float32", device=gpu)
    for count in (20_000, 25_000):  # beyond 48 KiB
        scratch = LocalAccessor(count, "float32"), LocalAccessor(local, "int32")
        dp.call_kernel(reversed_groups, NdRange((local,), (local,)), x, out, total, *scratch)
    assert out.tolist() == [local - i for i in range(local)]
    scratch = LocalAccessor(60_000, "float32"), LocalAccessor(local, "int32")
    with pytest.raises(dp.KernelRangeError, match="local memory"):
        dp.call_kernel(reversed_groups, NdRange((local,), (local,)), x, out, total, *scratch)


def test_large_groups_get_fewer_registers(
    gpu: dp.Device, driver: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dp.kernel
    def add_one(item: Any, x: Any) -> None:
        x[item.get_global_id(0)] += 1

    monkeypatch.setattr(driver, "registers", 200)
    x = dp.zeros(2048, device=gpu)
    for size in (256, 512, 1024):
        dp.call_kernel(add_one, NdRange(2048, size), x)
    assert x.tolist() == [3.0] * 2048
    with pytest.raises(dp.KernelRangeError, match="1024"):
        dp.call_kernel(add_one, NdRange(2048, 2048), x)


@pytest.mark.parametrize("shape", [(1000, 3), (2, 200, 5), (200, 2, 5)])
def test_a_range_of_too_many_groups_is_launched_in_pieces(
    gpu: dp.Device, driver: StandIn, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = gpu.new_queue()
    few = (2**31 - 1, 2, 1)
    monkeypatch.setitem(
        _driver.declared, device.queue, dataclasses.replace(device.traits, groups=few)
    )
    monkeypatch.setattr(submission, "_MOST_GROUPS", few)
    _driver.traits_of.cache_clear()
    x = dp.zeros(shape, dtype="int64", device=device)
    x.block  # noqa: B018
    before = driver.calls("launch")
    dp.call_kernel(note_ids if len(shape) == 2 else note_cubes, Range(*shape), x)
    assert driver.calls("launch") > before + 1
    ids = np.indices(shape)
    expected = (
        1000 * ids[0] + ids[1] + sum(shape)
        if len(shape) == 2
        else (10_000 * ids[0] + 100 * ids[1] + ids[2])
    )
    np.testing.assert_array_equal(x.asnumpy(), expected)


def test_too_many_groups_are_a_range_error(gpu: dp.Device) -> None:
    x = dp.zeros((1, 1), dtype="int64", device=gpu)
    with pytest.raises(dp.KernelRangeError, match=r"allows 65535.*last dimension"):
        dp.call_kernel(note_groups, NdRange((65_536, 1), (1, 1)), x)
    with pytest.raises(dp.KernelRangeError, match="allows 1024 in a group"):
        dp.call_kernel(note_groups, NdRange((2048, 1), (2048, 1)), x)


def test_known_launches_come_from_c(gpu: dp.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    if bound_plan.make_launch is None:
        pytest.skip("the C module was not built")
    driver, counts = driver_of(gpu.queue), []
    submit = driver.submit
    monkeypatch.setattr(driver, "submit", lambda *given: counts.append(1) or submit(*given))
    values = np.arange(3000, dtype=np.float32)
    x = dp.asarray(values, device=gpu)
    for number in range(20):
        np.testing.assert_array_equal((x * 2 + number).asnumpy(), values * 2 + number)
    assert not counts
    y = x
    for _ in range(100):  # with work on the queue
        y = y + 1
        y.event.done  # noqa: B018
    np.testing.assert_array_equal(y.asnumpy(), values + 100)


def test_two_threads_and_queues(gpu: dp.Device) -> None:
    found: list[float] = []

    def work(device: dp.Device) -> None:
        x = dp.zeros(500, device=device)
        for _ in range(30):
            x += 1
            x = x.to_device(device.new_queue()).to_device(device)
        found.append(float(x.sum()))

    threads = [threading.Thread(target=work, args=(gpu,)) for _ in range(2)]
    threads.append(threading.Thread(target=work, args=(gpu.new_queue(),)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [15_000.0] * 3


# --- events --------------------------------------------------------------------------------------


def test_events_of_other_queues_and_drivers(gpu: dp.Device, driver: StandIn) -> None:
    driver.configure(seed=3, delay=20_000)
    other, host = gpu.new_queue(), dp.Device("cpu")
    x = dp.zeros(64, device=gpu)
    first = dp.call_kernel(add_position, Range(64), x, 1.0)
    for device in (other, host, dp.Device("cuda:1")):
        y = dp.ones(64, device=device)
        second = dp.call_kernel(add_position, Range(64), y, 1.0, depends_on=first)
        second.wait()
        assert first.done
        assert y.tolist() == [1.0 + i for i in range(64)]


def test_callbacks_and_objects_kept_alive(gpu: dp.Device, driver: StandIn) -> None:
    driver.configure(seed=4, delay=5000)
    x = dp.ones(100, device=gpu)
    event = dp.call_kernel(add_position, Range(100), x, 1.0)
    assert event.then(lambda: float(x[99])).result() == 100.0
    assert event.done


def test_times_of_a_queue_with_profiling(gpu: dp.Device) -> None:
    x = dp.ones(200, device=gpu.new_queue(profiling=True))
    events = [dp.call_kernel(add_position, Range(200), x, 1.0) for _ in range(3)]
    times = [event.profile for event in events]
    assert all(each.submit <= each.start + 1_000_000 for each in times)
    assert all(each.start <= each.end for each in times)
    assert times[0].end <= times[2].start + 1000
    plain = dp.call_kernel(add_position, Range(200), dp.ones(200, device=gpu), 1.0)
    with pytest.raises(dp.KernelExecutionError, match="does not collect times"):
        _ = plain.profile


def test_a_profile_has_the_device_times(gpu: dp.Device) -> None:
    x = dp.asarray(np.arange(2000.0), device=gpu)
    (x * 3).asnumpy()
    with dp.profile() as profile:
        found = (x * 3 + 1).asnumpy()
    np.testing.assert_array_equal(found, np.arange(2000.0) * 3 + 1)
    assert "fused_multiply_add" in str(profile)
    assert float((x + 1).sum()) == (np.arange(2000.0) + 1).sum()  # back on its own stream


@pytest.mark.usefixtures("heeds_interrupts")
def test_ctrl_c_ends_a_wait(gpu: dp.Device, driver: StandIn) -> None:
    x = dp.ones(2, device=gpu)
    timer = threading.Timer(0.1, lambda: signal.raise_signal(signal.SIGINT))
    with driver.held():
        event = dp.call_kernel(add_position, Range(2), x, 1.0)

        def wait() -> None:
            timer.start()
            event.wait()

        with pytest.raises(KeyboardInterrupt):
            wait()
        assert not event.done
    timer.join()
    event.wait()
    assert x.tolist() == [1.0, 2.0]


# --- errors --------------------------------------------------------------------------------------


def test_a_refused_launch(gpu: dp.Device, driver: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    x = dp.ones(10, device=gpu)
    if launch.launch_packed is not None:  # A launch that it cannot submit is repeated in Python.
        driver.refuse("launch", 1, "LAUNCH_OUT_OF_RESOURCES")
    dp.call_kernel(add_position, Range(10), x, 1.0)
    monkeypatch.setattr(launch, "launch_packed", None)
    driver.refuse("launch", 1, "LAUNCH_OUT_OF_RESOURCES")
    with pytest.raises(dp.KernelExecutionError, match=r"add_position.*rejected a launch"):
        dp.call_kernel(add_position, Range(10), x, 1.0)
    dp.call_kernel(add_position, Range(10), x, 1.0)
    assert x.tolist() == [1.0 + 2 * i for i in range(10)]


def test_a_refused_module(gpu: dp.Device, driver: StandIn) -> None:
    @dp.kernel
    def fresh(item: Any, x: Any) -> None:
        x[item.get_id(0)] = 41.5

    driver.refuse("module", 1, "INVALID_PTX")
    x = dp.zeros(4, device=gpu)
    with pytest.raises(dp.KernelCompileError, match="does not accept the compiled module"):
        dp.call_kernel(fresh, Range(4), x)
    dp.call_kernel(fresh, Range(4), x)
    assert x.tolist() == [41.5] * 4


def test_a_kernel_that_faults_names_itself(driver: StandIn) -> None:
    x = dp.zeros(100, device="cuda:1")
    x.tolist()
    try:
        event = dp.call_kernel(write_far, Range(1), x, 1 << 40)
        with pytest.raises(dp.KernelExecutionError, match="process must be restarted") as caught:
            event.wait()
        assert isinstance(caught.value.__cause__, dp.exceptions.DeviceLostError)
        assert "latest first: write_far" in str(caught.value)
        with pytest.raises(dp.DparrayError, match="must be restarted"):
            (x + 1).tolist()
    finally:
        driver.repair(1)
        gc.collect()


@dp.kernel
def write_beyond(item: Any, x: Any) -> None:
    x[item.get_id(0) + 1] = 0


def test_the_records_of_debug_mode_are_no_fallback(gpu: Any) -> None:
    x = dp.arange(64, 128, device=gpu)
    with dp.config.override(fallback="error", debug=True):
        dp.call_kernel(add_position, Range(64), x, 1)
        assert x.asnumpy().tolist() == list(range(64, 192, 2))
        with pytest.raises(dp.KernelExecutionError, match="index 64 is out of bounds"):
            dp.call_kernel(write_beyond, Range(64), x)


def test_reading_an_element_launches_nothing(gpu: Any, driver: StandIn) -> None:
    values = np.arange(300, dtype="float32").reshape(30, 10)
    x = dp.asarray(values, device=gpu)
    before = driver.calls("launch")
    assert float(x[3, 4]) == values[3, 4]
    assert x.T[4, -1].item() == values[-1, 4]
    assert driver.calls("launch") == before
    assert int(x[3, 4].astype("int64")) == int(values[3, 4])  # A conversion is computed.


def test_an_element_keeps_its_value_until_it_is_read(gpu: Any) -> None:
    x = dp.arange(300, dtype="float32", device=gpu)
    element, copy = x[7], x[8:9].copy()
    x[7:9] = -1
    assert (float(element), float(copy[0]), float(x[7])) == (7, 8, -1)


@pytest.mark.parametrize("is_fast", [False, True])
def test_divisions_and_roots_are_approximate_only_with_fastmath(gpu: Any, is_fast: bool) -> None:
    kernel = dp.kernel(quotients, fastmath=is_fast)
    values = np.random.default_rng(3).uniform(1, 9, (2, 500)).astype("f4")
    x, y = (dp.asarray(each, device=gpu) for each in values)
    out = dp.empty_like(x)
    dp.call_kernel(kernel, Range(x.size), x, y, out)
    exact = np.sqrt(values[0] / values[1] * values[0] + values[1])
    np.testing.assert_array_max_ulp(out.asnumpy(), exact, 3)
    (text,) = kernel.inspect_spirv().values()
    for rounded, approximate in [("div.rn", "div.full"), ("sqrt.rn", "sqrt.approx")]:
        assert (f"{approximate}.f32" in text) == is_fast, text
        assert (f"{rounded}.f32" in text) != is_fast, text
    assert ("fma.rn" in text) == is_fast


def test_a_read_keeps_no_memory_once_it_is_complete(gpu: Any) -> None:
    x = dp.ones(1 << 18, device=gpu) + 1
    assert x.asnumpy()[0] == 2
    assert not gpu.queue.kept  # The pool waits for memory that is still referenced.
