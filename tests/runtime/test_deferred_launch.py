"""Launches after events of another context: the launching thread goes on."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._runtime import host_maps
from dparray._runtime.event import Event
from tests.support import Waiting, run_in_threads

COUNT = 20_000


@pytest.fixture
def other(queue: Any) -> Any:
    """Return a queue of another context."""
    device = dp.Device("cpu")
    parts: list[Any] = []
    if device.sycl_device.max_compute_units > 1:
        parts = list(device.create_sub_devices(partition=1)[:2])
    for place in (*dp.devices(), *parts):
        if place.sycl_context != queue.sycl_context:
            return place.sycl_queue
    pytest.skip("all queues share a context")


class Gate(Event):
    """The end of work that seems unfinished until the gate is opened."""

    __slots__ = ("failure", "opened")

    def __init__(self, queue: Any) -> None:
        super().__init__((), None, queue)
        self.opened = threading.Event()
        self.failure: Exception | None = None

    done = property(lambda self: self.opened.is_set() and self.failure is None)  # type: ignore[assignment]

    def wait(self) -> None:
        assert self.opened.wait(120)
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def gate(other: Any) -> Iterator[Gate]:
    made = Gate(other)
    yield made
    made.opened.set()
    for hold in [each for each in host_maps.holds if each.task]:  # left by a failed test
        with contextlib.suppress(dp.exceptions.KernelExecutionError):
            host_maps.wait_for([hold])
        host_maps.close_hold(hold)


@dp.kernel
def twice(item: Any, x: Any, y: Any) -> None:
    y[item.get_id(0)] = 2 * x[item.get_id(0)]


@dp.kernel
def increment(item: Any, x: Any) -> None:
    x[item.get_id(0)] += 1


def test_a_launch_returns_and_work_on_its_memory_waits(queue: Any, gate: Gate) -> None:
    x, y, z = (dp.full(COUNT, value, sycl_queue=queue) for value in (1.0, 5.0, 7.0))
    dp.eval(x, y, z)
    event = dp.call_kernel(twice, dp.Range(COUNT), x, y, depends_on=gate)
    assert not event.done
    assert not y.ready
    assert not y.event.done
    dp.call_kernel(increment, dp.Range(COUNT), z).wait()  # other memory of the queue
    assert float((z + x).sum()) == 9 * COUNT  # the operand that it reads may be read
    reading = Waiting(lambda: y.asnumpy())
    writing = Waiting(lambda: dp.call_kernel(increment, dp.Range(COUNT), x).wait())
    assert not reading.is_done
    assert not writing.is_done
    gate.opened.set()
    np.testing.assert_array_equal(reading.result(), np.full(COUNT, 2.0))
    writing.result()
    assert float(x.sum()) == 2 * COUNT
    event.wait()
    assert event.done
    assert len(event.sycl_events) == 1
    assert not host_maps.holds


def by_map(y: Any) -> float:
    with y.map("r") as h:
        return float(h[2])


READS: dict[str, Callable[[Any], Any]] = {
    "expression": lambda y: (y * 2).asnumpy()[3] / 2,
    "view": lambda y: float(y[5:][::-1][0]),
    "element": lambda y: float(y[7]),
    "launch": lambda y: (dp.call_kernel(increment, dp.Range(COUNT), y), float(y[0]) - 1)[1],
    "map": by_map,
    "library": lambda y: float(dp.sort(y)[0]),
    "to_device": lambda y: float(y.to_device("cpu")[1]),
    "synchronize": lambda y: (dp.synchronize(y), float(y[0]))[1],
    "device": lambda y: (y.device.wait(), float(y[0]))[1],
    "dpnp": lambda y: float(dp.asarray(y._library_array)[0]),
    "written": lambda y: (y.__setitem__(0, 3.0), float(y[0]) + float(y[1]) - 3)[1],
}


@pytest.mark.parametrize("read", READS)
def test_readers_wait(queue: Any, gate: Gate, read: str) -> None:
    x, y = dp.full(COUNT, 4.0, sycl_queue=queue), dp.zeros(COUNT, sycl_queue=queue)
    dp.call_kernel(twice, dp.Range(COUNT), x, y, depends_on=[gate])
    waiting = Waiting(lambda: READS[read](y))
    assert not waiting.is_done
    gate.opened.set()
    assert waiting.result() == 8


def test_launches_follow_each_other_over_contexts(queue: Any, other: Any, gate: Gate) -> None:
    here, there = dp.zeros(COUNT, sycl_queue=queue), dp.zeros(COUNT, sycl_queue=other)
    event: Event = gate
    for _ in range(4):
        event = dp.call_kernel(increment, dp.Range(COUNT), dp.zeros(COUNT, sycl_queue=queue),
                               depends_on=event)  # fmt: skip
        event = dp.call_kernel(
            increment, dp.Range(COUNT), dp.zeros(COUNT, sycl_queue=other), depends_on=event
        )
    last = dp.call_kernel(twice, dp.Range(COUNT), here + 1, here, depends_on=event)
    again = dp.call_kernel(twice, dp.Range(COUNT), there + 1, there, depends_on=[last, event])
    assert not again.done
    gate.opened.set()
    again.wait()
    assert last.done
    assert float(here[0]) == float(there[0]) == 2


def test_pending_readers_of_the_memory_have_the_old_values(queue: Any, gate: Gate) -> None:
    x = dp.ones(COUNT, sycl_queue=queue)
    dp.eval(x)
    before = x * 10
    dp.call_kernel(increment, dp.Range(COUNT), x, depends_on=gate)
    after = x * 10  # deferred; waits when it is evaluated
    gate.opened.set()
    assert (float(before[3]), float(after[3])) == (10, 20)


def test_the_arguments_are_kept(queue: Any, gate: Gate) -> None:
    y = dp.zeros(COUNT, sycl_queue=queue)
    dp.call_kernel(
        twice, dp.Range(COUNT), dp.full(COUNT, 3.0, sycl_queue=queue), y, depends_on=gate
    )
    for value in range(5):
        dp.eval(dp.full(COUNT, float(value), sycl_queue=queue) + 1)
    gate.opened.set()
    assert float(y.sum()) == 6 * COUNT


def test_a_failure_before_the_copy_raises_in_every_reader(queue: Any, gate: Gate) -> None:
    y = dp.zeros(COUNT, sycl_queue=queue)
    event = dp.call_kernel(increment, dp.Range(COUNT), y, depends_on=gate)
    gate.failure = dp.exceptions.KernelExecutionError("the other device is lost")
    gate.opened.set()
    try:
        for use in (event.wait, y.asnumpy, lambda: y + 1, lambda: dp.synchronize(y)):
            with pytest.raises(dp.exceptions.KernelExecutionError) as refusal:
                use()
            for word in ("written by kernel increment", "test_deferred_launch.py:", "is lost"):
                assert word in str(refusal.value)
        assert not event.done
    finally:
        for hold in tuple(host_maps.holds):
            host_maps.close_hold(hold)


@dp.kernel
def in_groups(item: Any, x: Any, part: Any) -> None:
    part[item.get_local_id(0)] = 1.0
    x[item.get_global_id(0)] += part[item.get_local_id(0)]


def test_wrong_ranges_raise_immediately(queue: Any, gate: Gate) -> None:
    y = dp.zeros(COUNT, sycl_queue=queue)
    with pytest.raises(dp.exceptions.KernelRangeError):
        dp.call_kernel(
            in_groups, dp.NdRange(1 << 20, 1 << 20), y, dp.LocalAccessor(8, "f8"), depends_on=gate
        )
    with pytest.raises(dp.exceptions.KernelRangeError, match="local memory"):
        dp.call_kernel(
            in_groups, dp.NdRange(8, 8), y, dp.LocalAccessor(1 << 28, "f8"), depends_on=gate
        )
    assert not host_maps.holds


def test_shared_memory_is_waited_for_by_the_calling_thread(queue: Any, gate: Gate) -> None:
    y = dp.zeros(COUNT, sycl_queue=queue)
    assert y.__sycl_usm_array_interface__["shape"] == (COUNT,)
    launching = Waiting(lambda: dp.call_kernel(increment, dp.Range(COUNT), y, depends_on=gate))
    assert not launching.is_done
    gate.opened.set()
    launching.result().wait()
    assert float(y[0]) == 1


def test_a_raw_kernel_and_a_range_over_shards(queue: Any, other: Any, gate: Gate) -> None:
    raw = dp.raw_kernel(
        "__kernel void add(__global double *x) { x[get_global_id(0)] += 1; }", "add"
    )
    z = dp.distribute(dp.zeros(COUNT), [dp.Device(queue), dp.Device(other)])
    x = dp.zeros(COUNT, sycl_queue=queue)
    for each in (*z.shards, x):
        dp.synchronize(each)  # a running copy would wait behind the gate's queue
    event = raw[COUNT](x, depends_on=gate)
    assert not event.done
    cut = dp.call_kernel(
        increment, dp.sharding.ShardedRange(z), z, depends_on=(each for each in [event])
    )
    assert not cut.done
    gate.opened.set()
    assert float(z.gather().sum()) == float(x.sum()) == COUNT


def test_deferred_launches_are_awaited_timed_and_reported(queue: Any, gate: Gate) -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_later(0.01, gate.opened.set)
        await y
        await event

    y = dp.zeros(COUNT, sycl_queue=queue)
    dp.call_kernel(increment, dp.Range(COUNT), y).wait()
    with dp.profile() as p:
        event = dp.call_kernel(increment, dp.Range(COUNT), y, depends_on=gate)
        asyncio.run(main())
    (launched,) = [each for each in p.events if each.kind == "kernel"]
    assert launched.name == "increment"
    assert launched.line.startswith("test_deferred_launch.py:")
    assert float(y[0]) == 2


def test_a_callback_may_read_results_of_later_work(queue: Any, other: Any, gate: Gate) -> None:
    y = dp.zeros(COUNT, sycl_queue=queue)
    called = gate.then(lambda: float(y[0]))  # on the thread of that queue, before later work
    dp.call_kernel(increment, dp.Range(COUNT), y, depends_on=gate)
    gate.opened.set()
    assert called.result(60) == 1


def test_threads_launch_over_contexts(queue: Any, other: Any) -> None:
    queues = [queue, other]

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        arrays = [dp.zeros(COUNT, sycl_queue=each) for each in queues]
        event: Any = ()
        for step in range(60):
            at = int(random.integers(2))
            event = dp.call_kernel(increment, dp.Range(COUNT), arrays[at], depends_on=event)
            if not random.integers(6):
                arrays[at] += 1
            if not random.integers(10):
                arrays[1 - at][...] = arrays[at].to_device(queues[1 - at])
                arrays[at] -= 1
            if not random.integers(10):
                assert float(arrays[at][0]) == float(arrays[at][COUNT - 1])
            assert step < 60
        for array in arrays:
            values = array.asnumpy()
            assert (values == values[0]).all()

    run_in_threads(work, 6)
    assert not host_maps.holds
