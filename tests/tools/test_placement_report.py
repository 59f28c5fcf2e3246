"""The report of where a function ran, and of what ran last."""

from __future__ import annotations

from typing import Any

import numpy as np

import dparray as dp


def test_a_report_tells_each_step(queue: Any) -> None:
    def mine(x: Any, y: Any) -> Any:
        total = (x * 2 + y).sum()
        elsewhere = x.to_device(dp.Device("cpu").create_sub_devices(partition=1)[0])
        return total, dp.sort(x), elsewhere, float(total)

    x = dp.asarray(np.arange(2_000_000.0), sycl_queue=queue, usm_type="shared")
    y = dp.ones(2_000_000, sycl_queue=queue)
    dp.eval(x, y)
    report = dp.explain(mine, x, y)
    text = str(report)
    kernel = next(row for row in report.rows if row.operations == "multiply, add, sum")
    assert kernel.tier == "kernel"
    assert kernel.queue == str(dp.Device(queue))
    assert kernel.decided_by == "the queue of argument 'x'"
    assert kernel.usm_type.startswith("device memory: of device and shared")
    assert kernel.line.startswith("test_placement_report.py:")
    assert kernel.compiled in ("compiled now", "loaded from disk", "known")
    assert kernel.nbytes >= x.nbytes + y.nbytes
    assert report.bytes_to_host >= 8
    assert "sort" in text
    assert "argument 'x'" in text
    assert "float" not in report.function
    assert report.function == "mine"
    assert float(report.result[0]) == report.result[3]
    assert kernel.line in report._repr_html_()


def test_small_work_says_why_the_host_did_it() -> None:
    report = dp.explain(lambda: dp.ones(3) + 1)
    assert [row.tier for row in report.rows if row.what == "add"] == ["host"]
    assert "at once" in str(report)


def test_what_ran_is_said_of_a_computed_array(queue: Any) -> None:
    x = dp.asarray(np.arange(200_000)[::-1].copy(), sycl_queue=queue)
    total = dp.cumsum(x)
    text = str(dp.explain(total))
    assert "ran last on its queue" in text
    assert "scan" in text
    assert "NumPy" in str(dp.explain(dp.sort(x)))
