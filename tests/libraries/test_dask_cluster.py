"""Dask workers are processes with a device each: results, failures and memory are right."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
import pytest

import dparray as dp
from tests.support import observed

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

LIMIT = 4_000_000  # bytes on each worker's device


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    import dparray.dask

    with (
        mock.patch.dict(os.environ),  # Dask sets variables for the workers here.
        dask.config.set({"array.backend": "dparray", "distributed.comm.timeouts.connect": "60s"}),
        dparray.dask.LocalCluster(device_memory_limit=LIMIT, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def on_workers(client: Any, function: Callable[..., Any]) -> list[Any]:
    return list(client.run(function).values())


def computed(x: Any) -> Any:
    """Return the result; raise an error if the cluster hangs."""
    return distributed.default_client().compute(x).result(timeout=60)


def chunked(values: np.ndarray, chunks: Any) -> Any:
    return da.from_array(dp.asarray(values), chunks=chunks, asarray=False)


def test_each_worker_has_a_device_and_its_threads(client: Any) -> None:
    def facts() -> tuple[int, frozenset[int], str]:
        units = dp.default_device().sycl_device.max_compute_units
        return units, frozenset(os.sched_getaffinity(0)), os.environ["OMP_NUM_THREADS"]

    found = on_workers(client, facts)
    assert len(found) == len(client.cluster.devices)
    if len(found) > 1:
        assert [units for units, _, _ in found] == [1] * len(found)
        assert len({cores for _, cores, _ in found}) == len(found)
        assert {threads for _, _, threads in found} == {"1"}


@dp.kernel
def scale(item: Any, x: Any, y: Any) -> None:
    i = item.get_id(0)
    y[i] = 3 * x[i]


VALUES = np.random.default_rng(0).random((60, 40))
CALLS: dict[str, Callable[[Any], Any]] = {
    "reductions": lambda d: (d * 2 + 1).sum(axis=0) / d.std(),
    "product": lambda d: d @ d.T,
    "tensordot": lambda d: da.tensordot(d, d, axes=([0], [0])),
    "einsum": lambda d: da.einsum("ij,ik->jk", d, d),
    "fft": lambda d: da.fft.fft(d.rechunk((20, 40)), axis=1),
    "singular values": lambda d: da.linalg.svd(d.rechunk((20, 40)))[1],
    "triangle": lambda d: abs(da.linalg.qr(d.rechunk((20, 40)))[1]),
    "other chunks": lambda d: d.rechunk((7, 13)).max(axis=1),
    "overlapping": lambda d: d.map_overlap(lambda b: b * 2, depth=1, boundary="reflect"),
    "percentile": lambda d: da.percentile(d.ravel(), [50]),
    "place": lambda d: d.argmax(axis=0),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_numpys_chunks(name: str, client: Any) -> None:
    wanted = CALLS[name](da.from_array(VALUES, chunks=(20, 20))).compute(scheduler="synchronous")
    found = computed(CALLS[name](chunked(VALUES, (20, 20))))
    assert isinstance(found, dp.ndarray)
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-9, atol=1e-9)


def test_a_kernel_runs_on_every_block(client: Any) -> None:
    import cloudpickle

    x, here = np.arange(1000.0), sys.modules[__name__]
    cloudpickle.register_pickle_by_value(here)
    try:
        found = computed(chunked(x, 300).map_blocks(tripled_of(scale.py_func)))
    finally:
        cloudpickle.unregister_pickle_by_value(here)
    np.testing.assert_array_equal(found.asnumpy(), 3 * x)


def tripled_of(function: Callable[..., Any]) -> Callable[[Any], Any]:
    def apply(block: Any) -> Any:
        kernel, result = dp.kernel(function), dp.empty_like(block)
        dp.call_kernel(kernel, dp.Range(block.size), block, result)
        return result

    return apply


def test_a_kernel_of_a_script_travels_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    import cloudpickle

    monkeypatch.setattr(scale, "__module__", "__main__")
    monkeypatch.setattr(scale.py_func, "__module__", "__main__")
    sent = cloudpickle.loads(cloudpickle.dumps(scale))
    assert isinstance(sent, dp.KernelFunction)
    assert sent is not scale
    x = dp.ones(4)
    sent[4](x, x).wait()
    assert x.tolist() == [3.0] * 4


def test_random_chunks_have_streams_of_their_own(client: Any) -> None:
    def draw() -> np.ndarray:
        x = da.random.default_rng(5).normal(size=(4000,), chunks=1000)
        return computed(x).asnumpy()

    first = draw()
    assert np.array_equal(first, draw())
    assert len(np.unique(first)) == 4000
    assert abs(first.mean()) < 0.1
    assert isinstance(computed(da.random.RandomState(3).uniform(size=10, chunks=5)), dp.ndarray)


def test_results_are_computed_when_a_task_ends(client: Any) -> None:
    x = client.submit(lambda: dp.arange(100_000.0) * 2 + 1)
    assert client.submit(lambda x: x.is_pending, x).result(timeout=60) is False


def test_errors_of_the_device_are_those_of_the_task(client: Any) -> None:
    with pytest.raises(dp.ShapeError, match="broadcast"):
        client.submit(lambda: dp.ones(3) + dp.ones(4)).result(timeout=60)


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(client: Any) -> None:
    if len(client.cluster.devices) < 2:
        pytest.skip("one worker")
    x = chunked(np.arange(40_000.0), 5_000).persist()
    distributed.wait(x, timeout=60)

    victim = min(client.has_what().items(), key=lambda each: -len(each[1]))[0]
    (process,) = client.run(os.getpid, workers=[victim]).values()
    os.kill(process, signal.SIGKILL)
    assert float(computed((x * 2).sum())) == 39_999.0 * 40_000.0
    client.wait_for_workers(len(client.cluster.devices), timeout=90)


def held(dask_worker: Any) -> tuple[int, int, int]:
    data = dask_worker.data
    return data.limit, int(data.fast.total_weight), len(data.disk)


def test_a_sum_of_four_times_the_limit(client: Any) -> None:
    chunk, count = 50_000, 4 * len(client.cluster.devices) * LIMIT // (8 * 50_000)
    x = da.random.default_rng(1).random((count * chunk,), chunks=chunk).persist()
    distributed.wait(x, timeout=60)
    found = on_workers(client, held)
    assert all(weight <= limit == LIMIT for limit, weight, _ in found)
    assert sum(files for _, _, files in found) > count // 2
    assert abs(float(computed(x.mean())) - 0.5) < 0.01
    in_use = on_workers(client, lambda: dp.memory.stats().in_use)
    assert max(in_use) < 3 * LIMIT


@pytest.mark.slow
def test_a_sort_of_four_times_the_limit(client: Any) -> None:
    import dparray.dask

    chunk, count = 125_000, 4 * len(client.cluster.devices) * LIMIT // (8 * 125_000)
    x = da.random.default_rng(2).random((count * chunk,), chunks=chunk)
    ordered = dparray.dask.sort(x).persist()
    distributed.wait(ordered, timeout=90)
    assert all(weight <= limit for limit, weight, _ in on_workers(client, held))
    ends = [
        client.submit(
            lambda b: (b.size, float(b[0]), float(b[-1]), bool((b[1:] >= b[:-1]).all())), f
        )
        for f in client.futures_of(ordered)
    ]
    parts = sorted(client.gather(ends), key=lambda part: part[1])
    assert sum(part[0] for part in parts) == count * chunk
    assert all(part[3] for part in parts)
    assert all(a[2] <= b[1] for a, b in pairwise(parts))


# -- without a cluster -----------------------------------------------------------------------------


def test_sending_copies_nothing_on_a_cpu() -> None:
    from distributed.protocol import deserialize, serialize

    x = dp.arange(1_000_000.0)
    dp.synchronize(x)
    copies: list[str] = []
    with observed(lambda event, **given: copies.append(event)):
        header, frames = serialize(x)
    assert "copy" not in copies
    assert [memoryview(frame).nbytes for frame in frames] == [x.nbytes]
    assert np.shares_memory(np.frombuffer(frames[0], "f8"), np.from_dlpack(x))
    assert np.array_equal(deserialize(header, frames).asnumpy(), np.arange(1_000_000.0))
    del x
    dp.zeros(1_000_000)  # memory that is being sent is not reused
    assert np.frombuffer(frames[0], "f8")[-1] == 999_999


@pytest.mark.parametrize("family", ["dask", "dparray", "pickle"])
@pytest.mark.parametrize(
    "x",
    [
        dp.ones((3, 4)).T,
        dp.arange(12.0).reshape(3, 4)[:, ::2],
        dp.zeros((0, 3)),
        dp.asarray(2.5),
        dp.arange(6, dtype="int8") + 1,
        dp.asarray([1 + 2j]),
    ],
    ids=["transposed", "strided", "empty", "scalar", "pending", "complex"],
)
def test_every_array_arrives_as_it_was(x: Any, family: str) -> None:
    from distributed.protocol import deserialize, serialize

    header, frames = serialize(x, serializers=[family], on_error="raise")
    found = deserialize(header, [bytes(frame) for frame in frames])
    assert isinstance(found, dp.ndarray)
    assert (found.shape, found.dtype, found.usm_type) == (x.shape, x.dtype, x.usm_type)
    np.testing.assert_array_equal(found.asnumpy(), x.asnumpy())


def test_arrays_are_measured_and_named() -> None:
    from dask.base import tokenize
    from dask.sizeof import sizeof

    x = dp.arange(1000.0)
    assert x.nbytes <= sizeof(x) < x.nbytes + 1000
    assert tokenize(x) == tokenize(dp.arange(1000.0))
    assert tokenize(x) != tokenize(x + 1)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"devices": []}, dp.ArgumentError, "devices is empty"),
        ({"devices": "cpu"}, dp.ArgumentError, r"give a list: devices=\['cpu'\]"),
        ({"devices": ["gpu:9"]}, dp.DeviceError, "no device matches"),
        ({"device_memory_limit": "much"}, dp.ArgumentError, "'much' must be a number of bytes"),
        ({"device_memory_limit": 0}, dp.ArgumentError, "positive"),
        ({"threads_per_worker": 0}, dp.ArgumentError, "threads_per_worker is 0"),
    ],
)
def test_bad_clusters(options: dict[str, Any], error: type[Exception], words: str) -> None:
    import dparray.dask

    with pytest.raises(error, match=words):
        dparray.dask.LocalCluster(**options)


def test_a_queue_of_this_process_is_not_valid_in_another() -> None:
    import dpctl

    import dparray.dask

    with pytest.raises(dp.DeviceError, match="exists in this process only"):
        dparray.dask.LocalCluster([dp.Device(dpctl.SyclQueue("cpu"))])


def test_a_sort_of_many_equal_float16_numbers() -> None:
    import dparray.dask

    # NumPy's default sort leaves them unsorted on some processors.
    h = np.random.default_rng(0).choice(np.asarray([1.5, 2.5, -1.5, -1, 1, -2, 3], "f2"), 40_000)
    x = da.from_array(dp.asarray(h), chunks=1_000, asarray=False)
    ordered = dparray.dask.sort(x).compute(scheduler="synchronous")
    np.testing.assert_array_equal(ordered.asnumpy(), np.sort(h, kind="stable"))


@pytest.mark.parametrize(
    ("x", "error"), [(lambda: da.ones((2, 2)), dp.ShapeError), (lambda: [1], dp.ArgumentError)]
)
def test_bad_arguments_of_sort(x: Any, error: type[Exception]) -> None:
    import dparray.dask

    with dask.config.set({"array.backend": "dparray"}), pytest.raises(error, match="sort: x"):
        dparray.dask.sort(x())
