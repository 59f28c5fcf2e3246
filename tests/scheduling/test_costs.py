"""Estimates of steps: the amount of work, and the rates that they use."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._graph.node import pending_order
from dparray._scheduling import device_costs, places
from dparray._scheduling.trace import Measuring, PlacedExpression, PlacedWork
from tests.standin import Device, Queue, StandIn

#: Rates for which only arithmetic takes time.
RATES = {"launch": 1e-12, "memory": 1e18, "reduction": 1e18, "single": 1e9, "single_product": 1e9}


def _estimate(text: str, *shapes: tuple[int, ...]) -> float:
    device = dp.testing.SimulatedDevice("counting", RATES)
    arrays = [dp.zeros(shape, dtype="float32", device=device) + 1 for shape in shapes]
    dp.eval(*arrays)
    with dp.placement("fastest", devices=[device, dp.testing.SimulatedDevice("slow", 1e-6)]):
        found = dp.explain(dp.tilelang.function(text)(*arrays)).placed
    return found.seconds * 1e9


@pytest.mark.parametrize(
    ("text", "shapes", "additions"),
    [
        (
            "function (I[N], K[T]) -> (O) { O[x: N - T + 1] = +(I[x + t] * K[t]); }",
            ((40_999,), (1000,)),
            2 * 40_000 * 1000,
        ),
        ("function (I[N]) -> (O) { O[x: N - 499] = +(I[x + t]), t < 500; }", ((40_499,),), 2e7),
        (
            "function (A[M, L], B[L, N]) -> (C) { C[i, j: M, N] = +(A[i, k] * B[k, j]); }",
            ((100, 200), (200, 300)),
            6e6,
        ),
    ],
    ids=["convolution", "window", "product"],
)
def test_contractions_count_the_points_of_their_domain(
    text: str, shapes: tuple[tuple[int, ...], ...], additions: float
) -> None:
    assert 0.8 * additions < _estimate(text, *shapes) < 1.5 * additions


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Store rates on disk and none in the process; the device measures 50 G/s."""
    files: dict[str, bytes] = {}
    monkeypatch.setattr(device_costs, "_known", {})
    monkeypatch.setattr(device_costs, "_doubted", set())
    monkeypatch.setattr(
        device_costs, "cache", SimpleNamespace(load=files.get, save=files.__setitem__)
    )
    monkeypatch.setattr(
        device_costs, "_measured", lambda queue: device_costs.Speeds(1e-5, *[50e9] * 8)
    )
    return files


QUEUE: Any = dp.Device("cpu").queue


@pytest.mark.parametrize(
    "rates",
    [
        [1e-5, *[1e6] * 8],  # far below the device's present rate
        [1e-5, *[-1.0] * 8],
        [1e-5, *[float("nan")] * 8],
        [1e-5, *[float("inf")] * 8],
        [0.0, *[50e9] * 8],
        [1e-5],
        "text",
    ],
)
def test_implausible_rates_on_disk_are_measured_again(disk: dict[str, bytes], rates: Any) -> None:
    device_costs.speeds_of(QUEUE)
    (name,) = disk
    disk[name] = json.dumps(rates).encode()
    device_costs._known.clear()
    assert device_costs.speeds_of(QUEUE).single == 50e9
    assert json.loads(disk[name])[3] == 50e9


def test_rates_that_steps_disagree_with_are_measured_again_once(
    disk: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_costs, "_is_refuted", lambda queue, speeds: False)
    device_costs.speeds_of(QUEUE)
    (name,) = disk
    disk[name] = json.dumps([1e-5, *[60e9] * 8]).encode()
    device_costs._known.clear()
    assert device_costs.speeds_of(QUEUE).single == 60e9
    assert device_costs.doubt(QUEUE)
    assert device_costs.speeds_of(QUEUE).single == 50e9
    assert not device_costs.doubt(QUEUE)


@pytest.mark.parametrize(("took", "doubts"), [(0.011, []), (0.5, [0]), (0.002, [0])])
def test_the_trace_compares_times_with_estimates(took: float, doubts: list[int]) -> None:
    step = PlacedWork("step", "cpu", "1. add", 8, 0.0, 0.01)
    found: list[int] = []
    record = Measuring(
        PlacedExpression("fastest", ("cpu",), (step,), 0.01), {0: lambda: took}, found.append
    ).read()
    assert record.times_estimate == pytest.approx(took / 0.01)
    assert f"took {took / 0.01:.2g} times the estimate" in str(record)
    assert found == doubts


def test_work_that_no_policy_submitted_keeps_a_device_busy(standin: StandIn) -> None:
    queue = Queue(Device("standin:costs"))
    x = dp.zeros(10, device=queue)
    dp.eval(x)
    assert places._backlog(queue) == pytest.approx(1e-3, rel=0.5)
    time.sleep(0.05)  # for a kernel that a user launched
    assert places._backlog(queue) > 0.03
    standin.run(queue)
    assert places._backlog(queue) == 0.0
    dp.eval(x + 1)
    places.note_busy(queue, 2.8)  # a policy's own work, whose estimate is known
    assert places._backlog(queue) == 2.0


@dp.kernel
def steps(item: Any, x: Any, count: int) -> None:
    i = item.get_id(0)
    value = x[i]
    for _ in range(count):
        value = value * value - 1.0
    x[i] = value


@pytest.mark.parametrize("device", ["host:cpu", "cpu"])
def test_queued_kernels_count_with_the_time_that_they_took_before(device: str) -> None:
    queue = dp.Device(device).new_queue().queue
    x = dp.asarray(np.full(16, 0.5), device=queue)
    dp.call_kernel(steps, dp.Range(16), x, 1).wait()
    start = time.perf_counter()
    dp.call_kernel(steps, dp.Range(16), x, 5_000_000).wait()
    took = time.perf_counter() - start
    assert places._backlog(queue) == 0.0
    for _ in range(3):
        event = dp.call_kernel(steps, dp.Range(16), x, 5_000_000)
    assert places._backlog(queue) > 1.5 * took  # A power of two between 2 and 4.3 times as long.
    event.wait()
    assert places._backlog(queue) == 0.0
    dp.call_kernel(steps, dp.Range(16), x, 1).wait()  # It counts with the time of its last call.
    dp.call_kernel(steps, dp.Range(16), x, 5_000_000)
    assert places._backlog(queue) < 2e-3
    x.asnumpy()


@pytest.mark.parametrize("name", ["copy", "roll", "concat", "negative"])
def test_every_step_takes_time(name: str) -> None:
    x = dp.asarray(np.ones((700, 1000)))  # neither computed immediately nor too large for a cache
    y = {
        "copy": x.copy,
        "roll": lambda: dp.roll(x, 3, axis=0),
        "concat": lambda: dp.concat([x[:300], x[300:]]),
        "negative": lambda: -x,
    }[name]()
    nodes = pending_order([y._node])
    work = device_costs.work_of(nodes, [y._node], True)
    assert nodes
    assert device_costs.seconds_on(QUEUE, nodes, [y._node], work, False) > 0
