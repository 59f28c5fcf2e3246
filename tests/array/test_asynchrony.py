"""Events of arrays and kernels: waiting, callbacks, and order across queues without the host."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp
from tests.support import until

COUNT = 1_000_000


def slow(queue: Any, turns: int = 15) -> Any:
    x = dp.full(COUNT, 0.5, sycl_queue=queue)
    for _ in range(turns):
        x = dp.sin(x) + 1
        dp.eval(x)
    return x


def slow_value(turns: int = 15) -> float:
    x = 0.5
    for _ in range(turns):
        x = float(np.sin(x) + 1)
    return x


def test_an_event_submits_and_does_not_wait(queue: Any) -> None:
    x = slow(queue)
    dp.synchronize(x)
    start = time.perf_counter()
    x = slow(queue) * 2
    event = x.event
    submitted = time.perf_counter() - start
    assert not x.is_pending
    event.wait()
    assert event.done
    assert x.ready
    assert submitted < time.perf_counter() - start
    assert float(x[0]) == pytest.approx(2 * slow_value())


@pytest.mark.usefixtures("tests_options")
def test_a_pending_array_is_not_ready(queue: Any) -> None:
    dp.synchronize(dp.Device(queue))
    x = dp.ones(100_000, sycl_queue=queue) + 1
    assert not x.ready
    assert x.is_pending
    assert (dp.ones(3, sycl_queue=queue) + 1).asnumpy().tolist() == [2, 2, 2]
    x.event.wait()
    assert x.ready


def test_callbacks_are_called_in_order_and_give_futures(queue: Any) -> None:
    seen: list[int] = []
    futures = []
    for number in range(5):
        x = slow(queue, 3)
        futures.append(x.event.then(lambda number=number: seen.append(number) or number))
    assert [future.result(60) for future in futures] == [0, 1, 2, 3, 4]
    assert seen == [0, 1, 2, 3, 4]

    def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        slow(queue).event.then(fail).result(60)


def test_callbacks_of_done_work_follow_earlier_callbacks(queue: Any) -> None:
    class Gate(dp.Event):
        def __init__(self) -> None:
            super().__init__((), None, queue)
            self.opened = threading.Event()

        @property
        def done(self) -> bool:
            return self.opened.is_set()

        def wait(self) -> None:
            assert self.opened.wait(60)

    seen: list[str] = []
    gate, done = Gate(), dp.Event((), None, queue)
    assert done.done
    done.then(lambda: seen.append("immediately"))
    assert seen == ["immediately"]
    gate.then(lambda: seen.append("first"))
    inside = done.then(lambda: done.then(lambda: seen.append("inside")).result(60))
    last = done.then(lambda: seen.append("last"))
    assert seen == ["immediately"]
    gate.opened.set()
    inside.result(60)
    last.result(60)
    assert seen == ["immediately", "first", "inside", "last"]


def test_threads_that_wait_for_events_end() -> None:
    device = dp.Device("cpu").sycl_device

    def waiting() -> int:
        return sum(thread.name == "dparray events" for thread in threading.enumerate())

    for _ in range(4):  # a deleted queue keeps no thread
        x = slow(dpctl.SyclQueue(device), 3)
        assert x.event.then(lambda: 5).result() == 5
    until(lambda: not waiting())
    assert slow(x.queue, 3).event.then(lambda: 6).result() == 6


def test_invalid_callbacks_and_events_raise_immediately(queue: Any) -> None:
    x = dp.ones(100, sycl_queue=queue)
    with pytest.raises(dp.exceptions.KernelArgumentError, match="is not callable"):
        x.event.then(None)  # type: ignore[arg-type]
    for wrong in (x, [x]):
        with pytest.raises(dp.exceptions.KernelArgumentError, match=r"depends_on=x\.event"):
            dp.eval(x + 1, depends_on=wrong)


def test_a_callback_may_compute(queue: Any) -> None:
    x = slow(queue)
    assert x.event.then(lambda: float((x + 1)[0])).result(60) == pytest.approx(slow_value() + 1)


def test_a_loop_goes_on_while_an_array_is_awaited(queue: Any) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async def main() -> None:
        ticking = asyncio.ensure_future(tick())
        x = slow(queue)
        assert await x is x
        assert x.ready

        @dp.kernel
        def double(item: Any, x: Any) -> None:
            x[item.get_id(0)] *= 2

        await dp.call_kernel(double, dp.Range(COUNT), x)
        results = await asyncio.gather(*(slow_array(number) for number in range(4)))
        assert results == [pytest.approx(slow_value() + number) for number in range(4)]
        ticking.cancel()

    async def slow_array(number: int) -> float:
        return float((await (slow(queue) + number))[0])

    asyncio.run(main())
    assert ticks > 3


def pairs() -> list[tuple[Any, Any]]:
    device = dp.Device("cpu")
    queues = [device.sycl_queue, dpctl.SyclQueue(device.sycl_device)]
    queues.append(dpctl.SyclQueue(queues[0].sycl_context, device.sycl_device))
    if device.sycl_device.max_compute_units > 1:
        queues += [part.sycl_queue for part in device.create_sub_devices(partition=1)[:2]]
    return [(a, b) for a in queues for b in queues if a is not b]


@pytest.mark.parametrize("number", range(len(pairs())))
@pytest.mark.sample(4)
def test_arrays_move_between_queues_behind_the_work_on_both(number: int) -> None:
    source, target = pairs()[number]
    for _ in range(2):
        x = slow(source)
        beside = slow(target)
        start = time.perf_counter()
        y = x.to_device(dp.Device(target)) + beside
        x += 1  # comes after the copy
        submitted = time.perf_counter() - start
        y.event.wait()
        took = time.perf_counter() - start
        np.testing.assert_allclose(y.asnumpy(), 2 * slow_value())
        assert float(x[-1]) == pytest.approx(slow_value() + 1)
        assert submitted < took


def test_work_waits_for_events_of_other_queues(queue: Any) -> None:
    device = queue.sycl_device
    other = dpctl.SyclQueue(queue.sycl_context, device)
    first = slow(queue)
    shared = dp.zeros(COUNT, sycl_queue=other)

    @dp.kernel
    def put(item: Any, x: Any, event_of: Any) -> None:
        x[item.get_id(0)] = event_of

    last = dp.call_kernel(put, dp.Range(COUNT), shared, 7.0, depends_on=first.event)
    last.wait()
    assert first.ready
    second = slow(queue)
    dp.eval(shared, depends_on=[second.event, last])
    float(shared[0])
    assert second.ready
    with pytest.raises(dp.exceptions.KernelArgumentError, match=r"x\.event"):
        dp.eval(shared, depends_on=[1])


def test_threads_queues_and_sub_devices_end_with_right_results() -> None:
    queues = list(dict.fromkeys(queue for pair in pairs() for queue in pair))
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        try:
            host = random.normal(size=200_000)
            x = dp.asarray(host, device=queues[seed % len(queues)])
            for _ in range(25):
                host = np.sin(host) + 1
                x = dp.sin(x) + 1
                choice = random.integers(4)
                if choice == 0:
                    x = x.to_device(dp.Device(queues[random.integers(len(queues))]))
                elif choice == 1:
                    x.event.then(lambda: None)
                elif choice == 2:
                    x.event.wait()
                else:
                    dp.eval(x, depends_on=dp.ones(20_000, device=queues[0]).event)
            np.testing.assert_allclose(x.asnumpy(), host, rtol=1e-9)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
    assert not any(thread.is_alive() for thread in threads)
    assert not errors


def test_a_process_ends_while_a_callback_is_waiting() -> None:
    program = """
import dparray as dp
x = dp.ones(3_000_000)
for _ in range(20):
    x = dp.sin(x)
    dp.eval(x)
x.event.then(lambda: None)
print("over")
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "over\n", "")
