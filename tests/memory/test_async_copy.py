"""Copies between contexts: the calling thread goes on, and readers of the copy wait for it.

The work before a copy is held: on the CPU by a kernel, on the stand-in driver by a switch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp
from dparray._runtime import host_maps
from tests.standin import Device, Queue, StandIn
from tests.support import Waiting, launch_held, run_in_threads

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


@pytest.fixture
def here(standin: StandIn) -> Iterator[Queue]:
    """Return a queue of one of two devices whose work is done only when it is waited for."""
    standin.found = Device("standin:0"), Device("standin:1")
    yield Queue(standin.found[0])
    for hold in [each for each in host_maps.holds if each.task]:  # left by a failed test
        host_maps.close_hold(hold)


@pytest.fixture
def there(here: Queue, standin: StandIn) -> Queue:
    return Queue(standin.found[1])


#: The host copies between memory that it can reach, and through its own memory otherwise.
USM_TYPES = ["shared", "device"]


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
def test_work_that_reads_the_copy_waits_for_it(queue: Any, other: Any, read: str) -> None:
    x = dp.arange(COUNT, dtype="float64", sycl_queue=queue)
    before, gate = launch_held(queue, x, dp.full(1, -1.0, sycl_queue=queue))  # writes x[0] = 0
    try:
        y = x.to_device(other)  # returns although the work before it goes on
        assert not y.ready
        assert y.sycl_queue == other
        waiting = Waiting(lambda: READS[read](y))
        assert not waiting.is_done
        assert not before.done
    finally:
        gate[0] = 1
    np.testing.assert_array_equal(waiting.result(), 2 * np.arange(COUNT))
    assert not host_maps.holds


@pytest.mark.parametrize("usm_type", USM_TYPES)
def test_the_source_of_a_copy_is_not_overwritten_before(
    standin: StandIn, here: Queue, there: Queue, usm_type: str
) -> None:
    x = dp.arange(COUNT, dtype="float64", device=here, usm_type=usm_type)
    assert float(x[1]) == 1
    z = x + 1
    dp.eval(z)
    standin.opened.clear()
    y = x[::2].to_device(there)
    writing = Waiting(lambda: x.__setitem__(slice(None), 0.0))
    assert not writing.is_done
    standin.opened.set()
    writing.result()
    np.testing.assert_array_equal(y.asnumpy(), np.arange(COUNT)[::2])
    assert float(x.sum()) == 0


@pytest.mark.parametrize("usm_type", USM_TYPES)
def test_the_memory_of_a_copys_source_is_kept(
    standin: StandIn, here: Queue, there: Queue, usm_type: str
) -> None:
    x = dp.full(COUNT, 3.0, device=here, usm_type=usm_type)
    dp.eval(x)
    standin.opened.clear()
    y = x.to_device(there)
    del x
    for value in range(5):
        dp.eval(dp.full(COUNT, float(value), device=here, usm_type=usm_type) + 1)
    standin.opened.set()
    assert float(y.sum()) == 3.0 * COUNT


@pytest.mark.parametrize("wait", ["synchronize", "device", "event", "timer"])
def test_waiting_for_the_queue_or_the_event_waits_for_the_copy(
    standin: StandIn, here: Queue, there: Queue, wait: str
) -> None:
    x = dp.ones(COUNT, device=here)
    dp.eval(x)
    standin.opened.clear()
    y = x.to_device(there)
    event = y.event
    assert not event.done

    def timed() -> None:
        with dp.timer(there):
            pass

    waits = {
        "synchronize": lambda: dp.synchronize(y),
        "device": lambda: dp.Device(there).wait(),
        "event": event.wait,
        "timer": timed,
    }
    waiting = Waiting(waits[wait])
    assert not waiting.is_done
    standin.opened.set()
    waiting.result()
    assert y.ready
    assert event.done


def test_a_kernel_waits_for_the_event_of_a_copy(
    standin: StandIn, here: Queue, there: Queue
) -> None:
    x, z = dp.ones(COUNT, device=here), dp.zeros(COUNT, device=there)
    dp.eval(x, z)
    standin.opened.clear()
    y = x.to_device(there)
    launching = Waiting(
        lambda: dp.call_kernel(double, dp.Range.like(z), z, z, depends_on=y.event).wait()
    )
    assert not launching.is_done
    standin.opened.set()
    launching.result()
    assert y.ready


def test_a_copy_is_awaited_while_the_loop_goes_on(
    standin: StandIn, here: Queue, there: Queue
) -> None:
    x = dp.full(COUNT, 2.0, device=here)
    dp.eval(x)

    async def main() -> float:
        standin.opened.clear()
        y = x.to_device(there)
        asyncio.get_running_loop().call_soon(standin.opened.set)
        return float((await y)[3])

    assert asyncio.run(main()) == 2


def test_a_failed_copy_raises_in_every_reader(standin: StandIn, here: Queue, there: Queue) -> None:
    x = dp.ones(COUNT, dtype="float32", device=here)
    dp.eval(x)
    standin.opened.clear()
    y = x.to_device(there)
    standin.lost = standin.found
    standin.opened.set()
    try:
        for read in (y.asnumpy, lambda: y + 1, lambda: dp.synchronize(y), y.event.wait):
            with pytest.raises(dp.exceptions.KernelExecutionError) as refusal:
                read()
            for word in ("float32", f"({COUNT},)", "test_async_copy.py:", "the device is lost"):
                assert word in str(refusal.value)
        assert not y.ready
    finally:
        standin.lost = ()


def test_a_profile_shows_the_copy_at_the_line_that_asked(queue: Any, other: Any) -> None:
    x = dp.ones(COUNT, sycl_queue=queue)
    _, gate = launch_held(queue, x, dp.zeros(1, sycl_queue=queue))
    with dp.profile() as recorded:
        y = x.to_device(other)
        gate[0] = 1
        dp.synchronize(y)
    (copy,) = [record for record in recorded.events if record.kind == "copy"]
    assert copy.line.startswith("test_async_copy.py:")
    assert all(record.line.startswith("test_async_copy.py:") for record in recorded.events)
    assert copy.because == "asked for by to_device"
    assert copy.nbytes == x.nbytes


def test_a_child_of_fork_waits_for_no_copy(standin: StandIn, here: Queue, there: Queue) -> None:
    x = dp.ones(COUNT, device=here)
    dp.eval(x)
    standin.opened.clear()
    y = x.to_device(there)
    kept = list(host_maps.holds)
    assert kept
    host_maps._forget_tasks()
    assert not host_maps.holds
    host_maps.holds.extend(kept)
    standin.opened.set()
    y.asnumpy()


@pytest.mark.parametrize("usm_type", USM_TYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (5,), (40, 7)])
def test_small_empty_and_transposed_arrays(
    here: Queue, there: Queue, usm_type: str, shape: tuple[int, ...]
) -> None:
    host = np.random.default_rng(1).normal(size=shape)
    x = dp.asarray(host, device=here, usm_type=usm_type)
    y = x.T.to_device(there)
    np.testing.assert_array_equal(y.asnumpy(), host.T)
    positions = dp.arange(9, device=here, usm_type=usm_type).to_device(there)
    np.testing.assert_array_equal(positions.asnumpy(), np.arange(9))


def test_a_policy_sends_results_and_waits_for_operands(
    standin: StandIn, here: Queue, there: Queue
) -> None:
    host = np.random.default_rng(2).normal(size=COUNT)
    x = dp.asarray(host, device=here)
    dp.eval(x)
    places = [dp.Device(here), dp.Device(there)]

    def by_the_other(step: Any) -> Any:
        return places[1]

    with dp.placement(by_the_other, devices=places):
        y = dp.exp(x) + 1
    standin.opened.clear()
    reading = Waiting(lambda: dp.eval(y))  # the operand of its step is being copied
    assert not reading.is_done
    standin.opened.set()
    reading.result()
    np.testing.assert_allclose(y.asnumpy(), np.exp(host) + 1, rtol=1e-12)
    assert y.queue == here

    z = dp.asarray(host, device=there)
    dp.eval(z)
    with dp.placement(by_the_other, devices=places):
        total = dp.add(z * 2, x)
        target = dp.zeros(COUNT, device=here)
        target[...] = total  # the array that is written is being copied, too
    np.testing.assert_allclose(target.asnumpy(), host * 3, rtol=1e-12)
    assert not host_maps.holds


def test_a_library_call_beside_a_map_leaves_memory_that_work_reads(here: Queue) -> None:
    host = np.arange(1200.0).reshape(40, 30)
    x, mapped = dp.asarray(host, device=here), dp.ones(3, device=here)
    taken = x + 1
    dp.eval(taken)
    with mapped.map("r"):
        doubled = taken * 2
        dp.eval(doubled)  # Nothing has waited for the launch yet.
        del taken  # Its memory is used again.
        product = x @ x.T
    np.testing.assert_array_equal(doubled.asnumpy(), (host + 1) * 2)
    np.testing.assert_allclose(product.asnumpy(), host @ host.T)


@pytest.mark.parametrize("seed", range(3))
def test_expressions_under_policies_with_copies_on_their_way(
    here: Queue, there: Queue, seed: int
) -> None:
    random = np.random.default_rng(seed)
    places = [dp.Device(here), dp.Device(there)]
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
