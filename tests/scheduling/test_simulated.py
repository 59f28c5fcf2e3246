"""Simulated machines: schedules, virtual times, limits, and devices that vanish."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.testing import SimulatedDevice
from tests.support import values

SHAPE = (300, 400)
NBYTES = 4 * 300 * 400
FAST = {"launch": 5e-6, "memory": 400e9, "reduction": 400e9, "single": 4e12, "double": 1e12}
SLOW = {"launch": 5e-6, "memory": 10e9, "reduction": 10e9, "single": 20e9, "double": 10e9}


def _machine(*others: SimulatedDevice) -> list[SimulatedDevice]:
    return [SimulatedDevice("cpu", SLOW), *others]


def _branches(x: dp.ndarray, count: int = 3) -> dp.ndarray:
    """Return branches with much arithmetic, which a sum joins."""
    total = None
    for number in range(count):
        part = x * (number + 1)
        for _ in range(4):
            part = dp.exp(dp.sin(part)) - dp.tanh(part)
        mean = part.mean(axis=1, keepdims=True)
        part = (part - mean).sum(axis=0)
        total = part if total is None else total + part
    assert total is not None
    return total


def _on_host(x: np.ndarray, count: int = 3) -> np.ndarray:
    total = np.zeros(x.shape[1])
    for number in range(count):
        part = x.astype("float64") * (number + 1)
        for _ in range(4):
            part = np.exp(np.sin(part)) - np.tanh(part)
        total += (part - part.mean(axis=1, keepdims=True)).sum(axis=0)
    return total


def test_a_processor_and_two_gpus_share_the_work() -> None:
    gpus = [SimulatedDevice(f"gpu{n}", {**FAST, "single": 150e9}, 12e9) for n in range(2)]
    devices = _machine(*gpus)
    host = values(SHAPE)
    x = dp.asarray(host, device=devices[0])
    with dp.placement("fastest", devices=devices):
        result = _branches(x, 6)
        np.testing.assert_allclose(result.asnumpy(), _on_host(host, 6), atol=2e-2)
    record = dp.placement.trace()[-1]
    assert {step.device for step in record.steps} >= {"gpu0", "gpu1"}
    assert record.seconds <= 0.8 * min(seconds for _, seconds in record.alone)
    assert record.measured == pytest.approx(record.seconds, rel=0.1)
    assert all(step.measured is not None for step in record.steps)
    assert "else" in str(record)
    assert "gpu0" in record.svg()
    assert result.queue == devices[0].queue


def test_a_gpu_without_double_precision_computes_the_rest() -> None:
    gpu = SimulatedDevice("gpu", FAST, 100e9, aspects=["fp16"])
    devices = _machine(gpu)
    host = values((1000, 1000))
    x = dp.asarray(host, device=devices[0])
    with dp.placement("fastest", devices=devices):
        in_single = dp.exp(dp.sin(dp.exp(dp.sin(x * x)))).sum(axis=0)
        result = in_single.astype("float64") * 2
        assert result.asnumpy().dtype == "float64"
    for step in dp.placement.trace()[-1].steps:
        if "float64" in step.what:
            assert step.device == "cpu"
            assert dict(step.alternatives)["gpu"] == float("inf")
    with dp.placement("fastest", devices=[gpu]):
        pending = x.astype("float64") + 1
    with pytest.raises(dp.ExecutionPlacementError, match=r"no device can compute step 1.*float64"):
        pending.asnumpy()


@dp.kernel
def scale(item: Any, x: Any) -> None:
    i = item.get_id(0)
    x[i] = dp.float64(i) / 3


def test_arrays_of_dtypes_that_a_device_has_no_aspect_for_are_refused() -> None:
    tiny = SimulatedDevice("tiny", aspects=[])
    double = np.ones(3)
    # a kernel exists for the real device
    dp.call_kernel(scale, dp.Range(3), dp.ones(3, dtype="float32"))
    for make in (
        lambda: dp.asarray(double, device=tiny),
        lambda: dp.ones(3, dtype="float64", device=tiny),
        lambda: dp.ones(3, dtype="complex128", device=tiny),
        lambda: dp.asarray(double).to_device(tiny),
        lambda: dp.arange(3, device=tiny).astype("float64"),
        lambda: dp.call_kernel(scale, dp.Range(3), dp.ones(3, device=tiny)),
    ):
        with pytest.raises(
            dp.exceptions.UnsupportedDeviceError, match=r"float64|complex128.*fp64"
        ) as refusal:
            make()
        assert "the simulated device 'tiny'" in str(refusal.value)
    with pytest.raises(dp.exceptions.UnsupportedDeviceError, match="fp16"):
        dp.ones(3, dtype="float16", device=tiny)


def test_where_there_is_no_double_precision_single_is_computed_in() -> None:
    tiny = SimulatedDevice("tiny", aspects=["fp16"])
    x = dp.arange(300, device=tiny)
    made = [
        *(dp.ones(3, device=tiny), dp.linspace(0, 1, 5, device=tiny), x / 2, x.mean(), dp.sin(x)),
        dp.random.default_rng(0, device=tiny).random(3),
        dp.linalg.inv(dp.eye(200, device=tiny)),
        dp.median(x),
        dp.ones(3, dtype="float16", device=tiny).astype("float32"),
    ]
    assert {str(each.dtype) for each in made} == {"float32"}
    assert float(made[3]) == 149.5
    assert dp.fft.fft(made[0]).dtype == "complex64"


def test_four_gpus_on_two_links_wait_for_them() -> None:
    gpus = [
        SimulatedDevice(f"gpu{number}", FAST, 2e9, link=f"bus{number // 2}") for number in range(4)
    ]
    devices = _machine(*gpus)
    hosts = [values(SHAPE, seed=seed) for seed in range(4)]
    arrays = [dp.asarray(host, device=devices[0]) for host in hosts]
    in_turn = iter(gpus)
    with dp.placement(lambda step: next(in_turn), devices=devices):
        sums = [dp.exp(x).sum(axis=0) for x in arrays]
        dp.eval(*sums)
    record = dp.placement.trace()[-1]
    there = sorted((copy.start, copy.finish) for copy in record.copies if copy.source == "cpu")
    assert len(there) == 4
    assert there[0][0] == there[1][0] < there[2][0] == there[3][0]  # two at a time
    for x, found in zip(hosts, sums, strict=True):
        np.testing.assert_allclose(found.asnumpy(), np.exp(x).sum(axis=0), rtol=1e-4)


@pytest.mark.usefixtures("tests_options")
def test_a_small_accelerator_gets_only_values_that_fit() -> None:
    small = SimulatedDevice("accelerator", FAST, 50e9, memory=2.5 * NBYTES)
    devices = _machine(small)
    host = values(SHAPE)
    x = dp.asarray(host, device=devices[0])
    with dp.placement("fastest", devices=devices):
        result = _branches(x, 4)
        np.testing.assert_allclose(result.asnumpy(), _on_host(host, 4), atol=2e-2)
    tiny = SimulatedDevice("tiny", FAST, 50e9, memory=1000)
    with dp.placement("fastest", devices=[tiny]):
        pending = x + x.sum()
    with pytest.raises(dp.MemoryError) as raised:
        pending.asnumpy()
    text = str(raised.value)
    assert "array a0 (float32 of shape (300, 400), 468.8 KiB)" in text
    assert "tiny has 1000 B free" in text
    np.testing.assert_allclose(x.asnumpy(), host)


@pytest.mark.usefixtures("tests_options")
def test_a_device_that_vanishes_with_arrays_is_an_error_that_names_them() -> None:
    gpu = SimulatedDevice("gpu", FAST)
    devices = _machine(gpu)
    x = dp.asarray(values(SHAPE), device=gpu)
    with dp.placement("fastest", devices=devices):
        pending = x * 2
    gpu.vanish()
    with pytest.raises(dp.DeviceError, match=r"a0 \(float32 of shape \(300, 400\).*on gpu"):
        pending.asnumpy()
    with dp.placement("fastest", devices=[gpu]):
        pending = dp.asarray(values(SHAPE), device=devices[0]) * 2
    with pytest.raises(dp.DeviceError, match=r"no device is left.*gpu were lost"):
        pending.asnumpy()


@pytest.mark.usefixtures("tests_options")
def test_a_result_of_a_vanished_device_is_not_computed_forever() -> None:
    gpu = SimulatedDevice("gpu", FAST)
    devices = _machine(gpu)
    x = dp.ones(SHAPE, device=gpu)  # uses no memory there
    with dp.placement("fastest", devices=devices):
        pending = x @ x.T
    gpu.vanish()
    with pytest.raises(dp.DeviceError, match=r"result \(float64 of shape \(300, 300\)\).*on gpu"):
        pending.asnumpy()


@pytest.mark.usefixtures("tests_options")
def test_inner_results_of_a_vanished_device_are_dropped() -> None:
    gpu = SimulatedDevice("gpu", FAST)
    devices = _machine(gpu)
    with dp.placement("fastest", devices=devices):
        inner = dp.ones(SHAPE, device=gpu) * 2
        with dp.placement("fastest", devices=devices, result=devices[0]):
            outer = dp.exp(inner).sum()
    gpu.vanish()
    assert float(outer) == pytest.approx(np.exp(2.0) * np.prod(SHAPE))
    with pytest.raises(dp.DeviceError, match="on gpu"):
        inner.asnumpy()


def test_results_of_a_vanished_device_are_computed_again() -> None:
    gpu = SimulatedDevice("gpu", FAST, 100e9)
    devices = _machine(gpu)
    host = values(SHAPE)
    x = dp.asarray(host, device=devices[0])
    with dp.placement(lambda step: step.devices[-1], devices=devices):
        result = _branches(x, 2)
        gpu.vanish(after=1)
        np.testing.assert_allclose(result.asnumpy(), _on_host(host, 2), atol=2e-2)
    record = dp.placement.trace()[-1]
    assert record.retried == ("gpu",)
    assert {step.device for step in record.steps} == {"cpu"}


def test_measured_times_differ_for_a_slower_device() -> None:
    gpu = SimulatedDevice("gpu", FAST, 100e9)
    gpu.slowdown = 3.0
    devices = _machine(gpu)
    x = dp.asarray(values(SHAPE), device=gpu)
    with dp.placement("fastest", devices=devices):
        dp.exp(x).sum().item()
    record = dp.placement.trace()[-1]
    (step,) = record.steps
    assert step.measured == pytest.approx(3 * (step.finish - step.start))
    assert gpu.busy_until >= step.measured


def test_claims_about_a_device_are_checked() -> None:
    with pytest.raises(dp.ArgumentError, match="unknown rate flops; expected launch"):
        SimulatedDevice("gpu", {"flops": 1e12})
    with pytest.raises(dp.ArgumentError, match="unknown aspect fp80"):
        SimulatedDevice("gpu", aspects=["fp80"])
    with pytest.raises(dp.ArgumentError, match="memory must be a positive"):
        SimulatedDevice("gpu", memory=0)
    with pytest.raises(dp.ArgumentError, match="memory must be a positive number; got '8GB'"):
        SimulatedDevice("gpu", memory="8GB")  # type: ignore[arg-type]
    with pytest.raises(dp.ArgumentError, match="speeds must be a positive"):
        SimulatedDevice("gpu", 0)
    with pytest.raises(dp.ArgumentError, match="single must be a positive"):
        SimulatedDevice("gpu", {"single": "fast"})  # type: ignore[dict-item]
    with pytest.raises(dp.ArgumentError, match="name must be a string"):
        SimulatedDevice(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "words"),
    [(None, "returned None for step 1"), ("gpu", "did not choose a device for step 1: device: no")],
)
def test_a_policy_that_gives_no_device_is_named(answer: Any, words: str) -> None:
    devices = _machine(SimulatedDevice("gpu", FAST))
    x = dp.asarray(values(SHAPE), device=devices[0])
    with dp.placement(lambda step: answer, devices=devices):
        pending = x * 2
        with pytest.raises(dp.DeviceError, match=words):
            pending.asnumpy()


def test_devices_of_a_policy_are_a_list() -> None:
    with pytest.raises(dp.ArgumentError, match=r"must be a list of devices: devices=\["):
        dp.placement("fastest", devices=dp.Device("cpu"))  # type: ignore[arg-type]
    with pytest.raises(dp.ArgumentError, match=r"devices=\['cpu'\]"):
        dp.placement("fastest", devices="cpu")
