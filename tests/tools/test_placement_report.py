"""The report of where a function ran, and of the last run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import _hooks


@pytest.mark.usefixtures("tests_options")
def test_a_report_lists_each_step(queue: Any) -> None:
    def mine(x: Any, y: Any) -> Any:
        total = (x * 2 + y).sum()
        elsewhere = x.to_device(dp.Device("cpu").create_sub_devices(partition=1)[0])
        return total, dp.sort(x), elsewhere, float(total)

    x = dp.asarray(np.arange(2_000_000.0), sycl_queue=queue, usm_type="shared")
    y = dp.ones(2_000_000, sycl_queue=queue)
    dp.eval(x, y)
    report = dp.explain(mine, x, y)
    text = str(report)
    # One kernel, or two where those of the parts are known already.
    kernel = next(row for row in report.rows if row.operations.endswith("add, sum"))
    assert kernel.tier == "kernel"
    assert kernel.queue == str(dp.Device(queue))
    assert kernel.decided_by == "the queue of argument 'x'"
    assert kernel.usm_type.startswith("device memory: of device and shared")
    assert kernel.line.startswith("test_placement_report.py:")
    assert kernel.compiled in ("compiled now", "loaded from disk", "known")
    assert kernel.nbytes >= x.nbytes + y.nbytes
    assert report.bytes_to_host >= 8
    # NumPy sorts faster where the processor has AVX-512, otherwise kernels do.
    assert "sort (host" in text or "digit_count (kernel" in text
    assert "argument 'x'" in text
    assert "float" not in report.function
    assert report.function == "mine"
    assert float(report.result[0]) == report.result[3]
    assert kernel.line in report._repr_html_()


def test_small_work_shows_why_the_host_did_it() -> None:
    report = dp.explain(lambda: dp.ones(3) + 1)
    (row,) = [row for row in report.rows if row.what == "add"]
    assert row.tier == "host"
    assert "immediately" in row.reason
    assert row.queue == str(dp.Device("cpu"))
    assert row.usm_type == "device memory, as its operands"


def test_each_backend_shows_why_no_kernel_ran(queue: Any) -> None:
    x = dp.asarray(np.arange(300_000.0)[::-1].copy(), sycl_queue=queue, usm_type="shared")
    dp.eval(x)

    def mine(x: Any) -> Any:
        return dp.sort(x), dp.fft.fft(x[::2])

    rows = {row.what: row for row in dp.explain(mine, x).rows}
    assert rows["sort"].tier == rows["fft"].tier == "host"
    assert "float64 of shape (300000,) on this device" in rows["sort"].reason
    assert "(150000,) (not contiguous)" in rows["fft"].reason
    assert rows["sort"].usm_type == "shared memory, as its operands"
    assert rows["sort"].decided_by == "the queue of argument 'x'"
    z = x.astype("complex128")  # dparray's radix sort handles real numbers
    dp.eval(z)
    with dp.config.override(host_tier=False):
        (row,) = [row for row in dp.explain(dp.sort, z).rows if row.what == "sort"]
    assert row.tier == "library"
    assert "no kernel of dparray's" in row.reason


def test_an_expression_shows_why_its_kernel_was_not_used(queue: Any) -> None:
    x = dp.ones(300_000, sycl_queue=queue)
    dp.eval(x)
    with dp.config.override(fused_tier=False):
        (row,) = dp.explain(lambda x: dp.sin(dp.cos(dp.sinh(x))), x).rows
    assert row.tier == "host"
    assert "fused_tier is off" in row.reason
    assert row.usm_type == "device memory, as its operands"
    costs = {"compile": 1e3, "addition": 1e-9}  # no kernel is worth the wait for its compilation
    with dp.config.override(cost_model=costs, background_compile=True):
        (row,) = dp.explain(lambda x: dp.cos(dp.sinh(dp.sin(x))), x).rows
    assert row.tier == "host"
    assert "the fused kernel is not compiled yet, so NumPy computes this call" in row.reason
    assert "compiled in the background once it is clear that it pays" in row.reason
    with dp.config.override(cost_model={"launch": 1.0}):
        (row,) = dp.explain(lambda x: x + 1, x).rows
    assert row.tier == "host"
    assert "NumPy is faster here" in row.reason


def test_a_copy_between_contexts_is_one_step_between_queues() -> None:
    target = dp.Device("cpu").create_sub_devices(partition=1)[0]
    x = dp.ones(50_000)
    dp.eval(x)
    report = dp.explain(lambda x: x.to_device(target), x)
    (row,) = report.rows
    assert row.what == "copy to another queue"
    assert row.queue == str(target)
    assert row.reason == "asked for by to_device"
    assert report.bytes_between_queues == x.nbytes
    assert report.bytes_to_host == 0


def test_a_function_of_dparrays_is_reported_by_its_name() -> None:
    (row, *_) = dp.explain(dp.linalg.inv, dp.eye(20)).rows
    assert row.what == "inv"


def test_the_work_of_a_computed_array_is_shown(queue: Any) -> None:
    x = dp.asarray(np.arange(200_000)[::-1].copy(), sycl_queue=queue)
    total = dp.cumsum(x)
    explained = dp.explain(total)
    assert explained.made_by == "cumsum"
    assert any("scan" in each for each in explained.ran)
    assert "sort ran: NumPy for sort" in str(dp.explain(dp.sort(x)))


def test_work_of_another_call_is_not_shown(queue: Any) -> None:
    x = dp.asarray(np.arange(500_000)[::-1].copy(), sycl_queue=queue)
    in_order, sums, parts = dp.sort(x), dp.cumsum(x), x[x > 7]
    spectrum = dp.fft.fft(x)
    x.sort()
    for array, name in (
        (in_order, "sort"),
        (sums, "cumsum"),
        (parts, "x[index]"),
        (spectrum, "fft"),
        (x, "sort"),
    ):
        explained = dp.explain(array)
        assert explained.made_by == name
        assert 1 <= len(explained.ran) <= 4
    assert "fft ran: NumPy for fft" in str(dp.explain(spectrum))


@pytest.mark.usefixtures("tests_options")
def test_each_of_several_results_shows_the_work_of_its_call() -> None:
    left, values, _ = dp.linalg.svd(dp.eye(200))
    assert dp.explain(left).made_by == dp.explain(values).made_by == "svd"


def test_the_work_of_a_pending_result_is_shown() -> None:
    x = dp.asarray(np.random.default_rng(0).random(300_000))
    order = dp.argsort(x)
    text = str(dp.explain(order))
    assert "argsort ran: " in text


def test_the_last_run_is_shown_for_an_array_without_a_record() -> None:
    x = dp.asarray(np.random.default_rng(0).random(300_000))
    y = dp.sort(x)[::2]
    text = str(dp.explain(y))
    assert "the call that wrote this array is not remembered" in text
    assert "the last work on its queue, oldest first: " in text


def test_each_read_of_a_value_is_a_copy_to_the_host(queue: Any) -> None:
    x = dp.ones(50, sycl_queue=queue)
    dp.synchronize(x)

    def mine(x: Any) -> Any:
        return float(x[0]), int(x[1]), x[2].item(), bool(x[3] == 1)

    report = dp.explain(mine, x)
    reads = [row for row in report.rows if row.what == "copy to the host"]
    names = [row.reason.removeprefix("asked for by ") for row in reads]
    assert names == ["__float__", "__int__", "item", "__bool__"]
    assert report.bytes_to_host == 3 * 8 + 1
    assert report.result == (1.0, 1, 1.0, True)


def test_a_report_counts_launches_reads_and_waits(queue: Any) -> None:
    x = dp.ones(300_000, sycl_queue=queue)
    dp.eval(x)

    def mine(x: Any) -> Any:
        y = x * 2 + 1
        for _ in range(3):  # work may have finished before it is waited for
            _hooks.emit("wait", queue=x.sycl_queue, start=time.perf_counter())
        return y, (y.sum() > 0).item(), y[:3].asnumpy()

    with dp.config.override(host_tier=False):
        report = dp.explain(mine, x)
    tiers = [row.tier for row in report.rows]
    assert report.launches == tiers.count("kernel") + tiers.count("library") >= 2
    assert report.reads == 2
    assert 3 <= report.waits <= 5
    counts = f"{report.launches} launches, 2 reads, {report.waits} waits"
    assert counts in str(report)
