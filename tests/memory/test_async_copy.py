"""Copies between contexts: the calling thread goes on, and readers of the copy wait for it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp
from dparray._runtime import host_maps
from dparray._runtime.event import Event
from dparray.memory import async_copy, copies
from tests.support import Waiting, run_in_threads

COUNT = 30_000


def sub_devices() -> list[Any]:
    device = dp.Device("cpu")
    if device.sycl_device.max_compute_units == 1:
        return []
    return list(device.create_sub_devices(partition=1)[:2])


@pytest.fixture
def other(queue: Any) -> Any:
    """Return a queue of another context: of another sub-device, or of another real device."""
    for device in (*dp.devices(), *sub_devices()):
        if device.sycl_context != queue.sycl_context:
            return device.sycl_queue
    pytest.skip("all queues share a context")


@pytest.fixture(params=["no copy", "staged"])
def reach(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use the real device, or pretend that the host cannot reach device memory."""
    if request.param == "staged":
        monkeypatch.setattr(copies, "is_host_accessible", lambda queue, usm_type: False)
    return str(request.param)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Make the work before a copy seem unfinished until this is set."""
    opened = threading.Event()

    class Delayed(Event):
        done = property(lambda self: False)  # type: ignore[assignment]

        def wait(self) -> None:
            assert opened.wait(60)
            super().wait()

    monkeypatch.setattr(async_copy, "Event", Delayed)
    yield opened
    opened.set()


@dp.kernel
def double(item: Any, x: Any, y: Any) -> None:
    y[item.get_id(0)] = 2 * x[item.get_id(0)]


def by_kernel(x: Any) -> np.ndarray:
    y = dp.empty_like(x)
    dp.call_kernel(double, dp.Range.like(x), x, y)
    return y.asnumpy()


def by_map(x: Any) -> np.ndarray:
    with x.map("r") as h:
        return 2 * h


def into(target: Any, x: Any) -> Any:
    target[...] = x
    return target


READS = {
    "expression": lambda x: (x * 2).asnumpy(),
    "view": lambda x: (x[::-1] * 2).asnumpy()[::-1],
    "kernel": by_kernel,
    "map": by_map,
    "library": lambda x: 2 * dp.sort(x).asnumpy(),
    "asnumpy": lambda x: 2 * x.asnumpy(),
    "in place": lambda x: x.__imul__(2).asnumpy(),
    "assigned": lambda x: into(dp.zeros_like(x), x).asnumpy() * 2,
    "added to another": lambda x: dp.zeros_like(x).__iadd__(x).asnumpy() * 2,
    "joined": lambda x: 2 * dp.concat([x[:1], x[1:]]).asnumpy(),
    "sent on": lambda x: 2 * x.to_device("cpu").asnumpy(),
    "dpnp": lambda x: 2 * dp.asnumpy(dp.asarray(x._library_array)),
}


@pytest.mark.parametrize("read", READS)
def test_work_that_reads_the_copy_waits_for_it(
    queue: Any, other: Any, gate: threading.Event, read: str
) -> None:
    x = dp.arange(COUNT, dtype="float64", sycl_queue=queue)
    y = x.to_device(other)  # returns although the work before it goes on
    assert not y.ready
    assert y.sycl_queue == other
    waiting = Waiting(lambda: READS[read](y))
    assert not waiting.is_done
    gate.set()
    np.testing.assert_array_equal(waiting.result(), 2 * np.arange(COUNT))
    assert not host_maps.holds


def test_the_source_of_a_copy_is_not_overwritten_before(
    queue: Any, other: Any, reach: str, gate: threading.Event
) -> None:
    x = dp.arange(COUNT, dtype="float64", sycl_queue=queue)
    y = x[::2].to_device(other)
    assert float(x[1]) == 1  # others may read
    writing = Waiting(lambda: x.__setitem__(slice(None), 0.0))
    assert not writing.is_done
    gate.set()
    writing.result()
    np.testing.assert_array_equal(y.asnumpy(), np.arange(COUNT)[::2])
    assert float(x.sum()) == 0


def test_the_memory_of_a_copys_source_is_kept(
    queue: Any, other: Any, reach: str, gate: threading.Event
) -> None:
    x = dp.full(COUNT, 3.0, sycl_queue=queue)
    y = x.to_device(other)
    del x
    for value in range(5):
        dp.eval(dp.full(COUNT, float(value), sycl_queue=queue) + 1)
    gate.set()
    assert float(y.sum()) == 3.0 * COUNT


@pytest.mark.parametrize("wait", ["synchronize", "device", "event", "timer"])
def test_waiting_for_the_queue_or_the_event_waits_for_the_copy(
    queue: Any, other: Any, gate: threading.Event, wait: str
) -> None:
    y = dp.ones(COUNT, sycl_queue=queue).to_device(other)
    event = y.event
    assert not event.done

    def timed() -> None:
        with dp.timer(other):
            pass

    waits = {
        "synchronize": lambda: dp.synchronize(y),
        "device": lambda: dp.Device(other).wait(),
        "event": event.wait,
        "timer": timed,
    }
    waiting = Waiting(waits[wait])
    assert not waiting.is_done
    gate.set()
    waiting.result()
    assert y.ready
    assert event.done


def test_a_kernel_waits_for_the_event_of_a_copy(
    queue: Any, other: Any, gate: threading.Event
) -> None:
    y = dp.ones(COUNT, sycl_queue=queue).to_device(other)
    z = dp.zeros(COUNT, sycl_queue=other)
    launching = Waiting(
        lambda: dp.call_kernel(double, dp.Range.like(z), z, z, depends_on=y.event).wait()
    )
    assert not launching.is_done
    gate.set()
    launching.result()
    assert y.ready


def test_a_copy_is_awaited_while_the_loop_goes_on(
    queue: Any, other: Any, gate: threading.Event
) -> None:
    async def main() -> float:
        y = dp.full(COUNT, 2.0, sycl_queue=queue).to_device(other)
        asyncio.get_running_loop().call_later(0.01, gate.set)
        return float((await y)[3])

    assert asyncio.run(main()) == 2


def test_a_failed_copy_raises_in_every_reader(
    queue: Any, other: Any, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(source: Any, target: Any) -> None:
        raise RuntimeError("the device is lost")

    monkeypatch.setattr(copies, "copy_by_host", lost)
    y = dp.ones(COUNT, dtype="float32", sycl_queue=queue).to_device(other)
    gate.set()
    try:
        for read in (y.asnumpy, lambda: y + 1, lambda: dp.synchronize(y), y.event.wait):
            with pytest.raises(dp.exceptions.KernelExecutionError) as refusal:
                read()
            for word in ("float32", f"({COUNT},)", "test_async_copy.py:", "the device is lost"):
                assert word in str(refusal.value)
        assert not y.ready
    finally:
        for hold in tuple(host_maps.holds):
            host_maps.close_hold(hold)


def test_a_profile_shows_the_copy_at_the_line_that_asked(
    queue: Any, other: Any, gate: threading.Event
) -> None:
    x = dp.ones(COUNT, sycl_queue=queue)
    with dp.profile() as recorded:
        y = x.to_device(other)
        gate.set()
        dp.synchronize(y)
    (copy,) = [record for record in recorded.events if record.kind == "copy"]
    assert copy.line.startswith("test_async_copy.py:")
    assert all(record.line.startswith("test_async_copy.py:") for record in recorded.events)
    assert copy.because == "asked for by to_device"
    assert copy.nbytes == x.nbytes


def test_a_child_of_fork_waits_for_no_copy(queue: Any, other: Any, gate: threading.Event) -> None:
    dp.ones(COUNT, sycl_queue=queue).to_device(other)
    kept = list(host_maps.holds)
    assert kept
    host_maps._forget_tasks()
    assert not host_maps.holds
    host_maps.holds.extend(kept)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (5,), (40, 7)])
def test_small_empty_and_transposed_arrays(
    queue: Any, other: Any, reach: str, gate: threading.Event, shape: tuple[int, ...]
) -> None:
    host = np.random.default_rng(1).normal(size=shape)
    x = dp.asarray(host, sycl_queue=queue)
    y = x.T.to_device(other)
    gate.set()
    np.testing.assert_array_equal(y.asnumpy(), host.T)
    positions = dp.arange(9, sycl_queue=queue).to_device(other)
    np.testing.assert_array_equal(positions.asnumpy(), np.arange(9))


def test_a_policy_sends_results_and_waits_for_operands(
    queue: Any, other: Any, gate: threading.Event
) -> None:
    host = np.random.default_rng(2).normal(size=COUNT)
    x = dp.asarray(host, sycl_queue=queue)
    dp.eval(x)

    def by_the_other(step: Any) -> Any:
        return dp.Device(other)

    with dp.placement(by_the_other, devices=[dp.Device(queue), dp.Device(other)]):
        y = dp.exp(x) + 1
    reading = Waiting(lambda: dp.eval(y))  # the operand of its step is being copied
    assert not reading.is_done
    gate.set()
    reading.result()
    np.testing.assert_allclose(y.asnumpy(), np.exp(host) + 1, rtol=1e-12)
    assert y.sycl_queue == queue

    there = dp.asarray(host, sycl_queue=other)
    dp.eval(there)
    with dp.placement(by_the_other, devices=[dp.Device(queue), dp.Device(other)]):
        z = dp.add(there * 2, x)
        target = dp.zeros(COUNT, sycl_queue=queue)
        target[...] = z  # the array that is written is being copied, too
    np.testing.assert_allclose(target.asnumpy(), host * 3, rtol=1e-12)
    assert not host_maps.holds


@pytest.mark.parametrize("seed", range(3))
def test_expressions_under_policies_with_copies_on_their_way(
    queue: Any, other: Any, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    class Late(Event):
        done = property(lambda self: False)  # type: ignore[assignment]

        def wait(self) -> None:
            time.sleep(0.002)
            super().wait()

    monkeypatch.setattr(async_copy, "Event", Late)
    random = np.random.default_rng(seed)
    places = [dp.Device(queue), dp.Device(other)]
    hosts = [random.normal(size=(40, 30)) for _ in range(4)]
    arrays = [dp.asarray(host, device=places[n % 2]) for n, host in enumerate(hosts)]
    with dp.placement(lambda step: step.devices[int(random.integers(2))], devices=places):
        for _ in range(12):
            a, b, c = map(int, random.integers(0, 4, 3))
            way = random.integers(5)
            if way == 0:
                arrays[c], hosts[c] = dp.sin(arrays[a]) + arrays[b], np.sin(hosts[a]) + hosts[b]
            elif way == 1:
                arrays[c] = arrays[a] @ dp.exp(-(arrays[b] ** 2)).T @ arrays[c]
                hosts[c] = hosts[a] @ np.exp(-(hosts[b] ** 2)).T @ hosts[c]
            elif way == 2:
                arrays[c] = arrays[a] / (1 + arrays[b].std(axis=0)) - arrays[c].mean()
                hosts[c] = hosts[a] / (1 + hosts[b].std(axis=0)) - hosts[c].mean()
            elif way == 3:
                hosts[c] = hosts[c].copy()
                arrays[c] = arrays[c].copy()
                arrays[c][3:9] = arrays[a][4:10] * 2
                hosts[c][3:9] = hosts[a][4:10] * 2
            else:
                dp.eval(arrays[a])
    for array, host in zip(arrays, hosts, strict=True):
        np.testing.assert_allclose(array.asnumpy(), host, rtol=1e-9, atol=1e-9)


def test_threads_send_between_all_queues() -> None:
    device = dp.Device("cpu").sycl_device
    places = [dp.Device("cpu").sycl_queue, dpctl.SyclQueue(device)]
    places += [part.sycl_queue for part in sub_devices()]

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        host = random.normal(size=40_000)
        x = dp.asarray(host, device=places[seed % len(places)])
        for _ in range(30):
            x = dp.sin(x) * 2
            host = np.sin(host) * 2
            dp.eval(x)
            source, x = x, x.to_device(places[random.integers(len(places))])
            if random.integers(2):
                source[:] = 0  # after the copy
                if source is x:
                    host[:] = 0
        np.testing.assert_allclose(x.asnumpy(), host, rtol=1e-12)

    run_in_threads(work, 6)
