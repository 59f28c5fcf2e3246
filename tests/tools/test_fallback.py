"""The policy for values that leave a device; the CPU is treated as another kind of device."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._runtime import fallback
from tests.support import forget_kernels, leave_out_radix_sort


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch, pretend: Any) -> Iterator[None]:
    """Treat the device as one that is not a CPU."""
    pretend(shares_memory=False)
    with monkeypatch.context() as patch:
        leave_out_radix_sort(patch.setattr)
        patch.setattr(fallback, "_told", set())
        yield


def leave(x: Any) -> Any:
    """Call a dparray function that computes on the host."""
    return dp.linalg.eigvals(dp.diag(x))


@pytest.mark.usefixtures("far")
def test_values_that_leave_the_device_are_reported_once_per_line(queue: Any) -> None:
    x = dp.asarray(np.arange(10.0), sycl_queue=queue)
    assert dp.config.fallback == "warn"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            dp.meshgrid(x)
            leave(x)
    told = [each for each in told if issubclass(each.category, dp.FallbackWarning)]
    assert len(told) == 1
    text = str(told[0].message)
    assert "eigvals" in text
    assert str(dp.Device(queue)) in text
    assert "to_device" in text
    assert told[0].filename == __file__


@pytest.mark.usefixtures("far")
def test_it_can_be_forbidden_or_allowed(queue: Any) -> None:
    x = dp.asarray(np.arange(10.0), sycl_queue=queue)
    with dp.config.override(fallback="error"), pytest.raises(dp.FallbackError, match="eigvals"):
        leave(x)
    with dp.config.override(fallback="error"), pytest.raises(dp.FallbackError, match="roots"):
        dp.roots(x)
    with dp.config.override(fallback="allow"), warnings.catch_warnings():
        warnings.simplefilter("error")
        leave(x)


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
def test_reads_that_are_asked_for_and_small_arrays_stay_where_they_are(
    queue: Any, usm_type: str, tmp_path: Any
) -> None:
    with dp.config.override(fallback="error"):
        x = dp.asarray(np.arange(10.0), sycl_queue=queue, usm_type=usm_type)
        assert dp.explain(x + 1).tier != "host"
        assert (x + 1).tolist() == list(range(1, 11))
        assert float(x[3]) == 3
        assert "3." in repr(x) + str(x) + f"{x[3]:.2f}"
        assert x[x > 5].asnumpy().tolist() == [6, 7, 8, 9]
        assert bool(dp.all(x >= 0))
        dp.save(tmp_path / "x.npy", x)
        with x.map("rw") as h:
            h += 1
        assert dp.sort(x).asnumpy()[0] == 1


@pytest.mark.usefixtures("far")
def test_values_that_decide_a_shape_are_asked_for(queue: Any) -> None:
    x, counts = dp.arange(6.0, sycl_queue=queue), dp.asarray([0, 1, 2, 0, 1, 1], sycl_queue=queue)
    with dp.config.override(fallback="error"):
        assert dp.repeat(x, counts).asnumpy().tolist() == [1, 2, 2, 4, 5]
        points = dp.asarray([2, 3], sycl_queue=queue)
        assert [each.size for each in dp.split(x, points)] == [2, 1, 3]
        assert dp.delete(x, points).asnumpy().tolist() == [0, 1, 4, 5]
        assert dp.insert(x, points, 9).size == 8
        halves = dp.asarray([0.0, 0.5], sycl_queue=queue)
        assert dp.quantile(x, halves).asnumpy().tolist() == [0, 2.5]
        assert dp.algorithms.compact(x, x > 2).asnumpy().tolist() == [3, 4, 5]


def test_on_a_cpu_no_value_leaves_the_device(queue: Any) -> None:
    x = dp.asarray(np.arange(10.0), sycl_queue=queue)
    with dp.config.override(fallback="error"):
        leave(x)


def test_the_option_takes_three_words() -> None:
    with pytest.raises(ValueError, match="'warn'"):
        dp.config.fallback = "never"
    with pytest.raises(TypeError, match="str"):
        dp.config.fallback = True


def test_64_bit_atomics_raise_before_a_launch(queue: Any, pretend: Any) -> None:
    @dp.kernel
    def count(item: Any, x: Any) -> None:
        dp.AtomicRef(x, 0).fetch_add(1)

    pretend(lacks=["atomic64"])
    forget_kernels()
    x = dp.zeros(1, dtype="int64", sycl_queue=queue)
    with pytest.raises(dp.UnsupportedDeviceError, match=r"count.*atomic64.*int32"):
        dp.call_kernel(count, dp.Range(8), x)
    assert int(x[0]) == 0
    y = dp.zeros(1, dtype="int32", sycl_queue=queue)
    dp.call_kernel(count, dp.Range(8), y)
    assert int(y[0]) == 8
