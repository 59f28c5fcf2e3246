"""explain describes planned work without executing it; the log describes executed work."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import dparray as dp
from dparray import _hooks
from dparray._evaluate import limits
from dparray._evaluate.cost_model import Terms
from tests.support import held

LARGE = limits.COMPILE_ELEMENTS


def array(size: int = LARGE, dtype: str = "float32") -> dp.ndarray:
    return dp.asarray(np.linspace(0, 1, size).astype(dtype))


def test_nothing_is_computed_compiled_or_allocated() -> None:
    x = array()
    y = dp.sinh(x) * x + 0.25
    events: list[str] = []
    unsubscribe = _hooks.subscribe(lambda event, **values: events.append(event))
    try:
        plan = dp.explain(y)
    finally:
        unsubscribe()
    assert y.is_pending
    assert plan.is_pending
    assert not {"compile", "launch", "allocate"} & set(events)


def test_a_large_expression_is_one_new_kernel_then_a_compiled_one(new_cache: None) -> None:
    x = array()
    y = dp.cosh(x) * 2 + x
    with dp.config.override(host_tier=False):  # otherwise NumPy's wide vectors may be preferred
        plan = dp.explain(y)
    assert (plan.tier, len(plan.kernels), plan.kernels[0].state) == ("fused", 1, "new")
    assert (plan.bytes_read, plan.bytes_written) == (4 * LARGE, 4 * LARGE)
    assert [each.operation for each in plan.operations] == ["array", "cosh", "multiply", "add"]
    assert "math.cosh" in plan.source
    with dp.config.override(host_tier=False):
        dp.eval(y)
        assert dp.explain(dp.cosh(x) * 3 + x).kernels[0].state == "compiled"


@pytest.mark.usefixtures("tests_options")
def test_explain_agrees_with_the_launches() -> None:
    x = array()
    plan = dp.explain(dp.exp(x) * dp.sin(x))
    launched: list[str] = []
    unsubscribe = _hooks.subscribe(
        lambda event, **values: (
            launched.append(values["kernel"].name) if event == "launch" else None
        )
    )
    try:
        dp.eval(dp.exp(x) * dp.sin(x))
    finally:
        unsubscribe()
    assert [f"def {name}(" for name in launched] == [plan.source.partition("(")[0] + "("]


def test_small_arrays_are_computed_by_the_host() -> None:
    x = array(100)
    dp.synchronize()  # on a busy queue they wait
    plan = dp.explain(dp.tan(x) - 1)
    assert plan.tier == "host"
    assert not plan.is_pending
    assert f"for 100 elements (limit {limits.host_elements:,})" in plan.reason
    assert plan.reason in str(plan)
    with dp.config.override(host_tier=False):
        assert dp.explain(dp.tan(array(100)) - 1).tier == "library"


def test_explain_shows_that_the_host_computes_medium_arrays_eagerly() -> None:
    with dp.config.override(cost_model=Terms()._asdict()):
        x, large = dp.asarray(np.ones(30_000)), dp.asarray(np.ones(2_000_000))
        x[:1], large[:1]
        dp.synchronize()
        made = x * 2 + x
        told = dp.explain(made)
        assert not told.is_pending
        assert (
            f"immediately by NumPy: for 30,000 elements (limit {limits.host_elements:,}) "
            in str(told)
        )
        with dp.config.override(host_tier=False):
            assert "immediately" not in str(dp.explain(made))
        assert "immediately" not in str(dp.explain(large))


def test_small_arrays_wait_for_the_work_that_writes_them() -> None:
    x = dp.zeros(1)
    with held(x.sycl_queue, x, dp.ones(1)):
        y = dp.tan(x) - 1
        plan = dp.explain(y)
    assert (plan.tier, plan.is_pending, len(plan.operations)) == ("host", True, 3)
    assert f"{limits.host_elements:,}" in plan.reason
    np.testing.assert_allclose(y.asnumpy(), np.tan(x.asnumpy()) - 1)


def test_an_operation_without_a_kernel_is_named() -> None:
    x = array(dtype="complex64")
    plan = dp.explain(dp.log(x))
    assert plan.tier == "library"
    assert "log of complex64" in plan.reason


@pytest.mark.usefixtures("tests_options")
@pytest.mark.parametrize("dtype", ["complex64", "int32", "float16"])
def test_squares_of_every_kind_fuse(dtype: str) -> None:
    x = dp.asarray(np.ones(LARGE, dtype))
    plan = dp.explain((x + x) ** 2)
    assert [each.operation for each in plan.operations] == ["array", "add", "square"]
    assert (len(plan.kernels), plan.tier) == (1, "fused")


@pytest.mark.usefixtures("tests_options")
def test_little_data_is_not_worth_compiling() -> None:
    plan = dp.explain(dp.atanh(array(2 * limits.host_elements + 1)) * 0.5)
    assert plan.tier == "host"
    assert "not worth compiling" in plan.reason
    with dp.config.override(host_tier=False):
        plan = dp.explain(dp.atanh(array(2 * limits.host_elements + 1)) * 0.5)
    assert plan.tier == "library"
    assert "not worth compiling" in plan.reason


@pytest.mark.usefixtures("tests_options")
def test_a_small_inner_value_is_stored_before_it_is_broadcast() -> None:
    row = dp.exp(array(20_000))
    y = row + dp.ones((100, 1), dtype="float32")
    first, second = dp.explain(y).kernels
    assert first.shape == (20_000,)
    assert "broadcast" in first.stored_because
    assert second.shape == (100, 20_000)


def test_a_held_value_is_an_output_of_the_same_kernel() -> None:
    x = array()
    held = dp.exp(dp.sin(x))
    plan = dp.explain(held + 1)
    assert len(plan.kernels) == 1
    assert plan.bytes_written == 2 * held.nbytes
    assert held.is_pending


@pytest.mark.usefixtures("tests_options")
def test_a_small_inner_expression_is_stored_as_a_whole() -> None:
    x = dp.linspace(0, 1, 600_000, dtype="float32")
    wide = dp.reshape(x, (20, 30_000))
    row = dp.log(dp.abs(x[:30_000] - 1.5) + 0.5)
    plan = dp.explain(wide * row)
    assert [len(kernel.operations) for kernel in plan.kernels] == [4, 1]
    want = wide.asnumpy() * np.log(np.abs(x.asnumpy()[:30_000] - 1.5) + 0.5)
    np.testing.assert_allclose((wide * row).asnumpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("tests_options")
def test_an_array_that_is_computed_has_no_steps() -> None:
    plan = dp.explain(array())
    assert not plan.is_pending
    assert (plan.kernels, plan.tier, plan.source) == ((), "", "")
    assert "nothing is pending" in str(plan)


def test_text_and_picture_name_every_operation(queue: Any) -> None:
    x = dp.asarray(np.ones(10_000, np.float32), sycl_queue=queue)
    with dp.config.override(host_tier=False):  # arrays of this size may be computed eagerly
        plan = dp.explain(dp.sqrt(x) * 2 < 3)
    for text in (str(plan), plan.svg(), plan._repr_html_()):
        for name in ("sqrt", "multiply", "less", "2.0"):
            assert name in text
    ElementTree.fromstring(plan.svg())
    assert str(x.device.filter_string) in plan.queue


@pytest.mark.usefixtures("tests_options")
def test_counted_elements_are_not_read() -> None:
    plan = dp.explain(dp.arange(LARGE) * 2 + dp.zeros(LARGE))
    assert (plan.bytes_read, len(plan.kernels)) == (0, 1)
    assert "int64 positions" in str(plan)


def test_only_arrays_are_computed() -> None:
    with pytest.raises(dp.HostConversionError, match=r"arrays\[1\] is of type int"):
        dp.eval(dp.ones(3), 3)


def test_only_arrays_are_explained() -> None:
    with pytest.raises(dp.exceptions.HostConversionError):
        dp.explain(np.ones(3))


@pytest.mark.usefixtures("tests_options")
def test_the_log_names_kernels_and_ends_with_its_block(
    new_cache: None, capsys: pytest.CaptureFixture[str]
) -> None:
    x = array()
    with dp.config.override(log=True):
        dp.eval(dp.asinh(x) - x)
    logged = capsys.readouterr().err
    assert "compiled fused_asinh_subtract" in logged
    assert "launch fused_asinh_subtract" in logged
    dp.eval(dp.asinh(x) - x)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("tests_options")
def test_numpys_work_has_the_name_that_the_program_calls() -> None:
    x = dp.ones((300, 300))
    for call, name in (
        (lambda: x @ x, "matmul"),
        (lambda: dp.sort(x), "sort"),
        (lambda: dp.fft.fft(x), "fft"),
        (lambda: dp.fft.rfft2(x), "rfft2"),
    ):
        explained = dp.explain(call())
        assert (explained.made_by, explained.ran[-1]) == (name, f"NumPy for {name}")


@pytest.mark.usefixtures("tests_options")
def test_reductions_that_share_a_pass_are_listed() -> None:
    x = dp.asarray(np.random.default_rng(0).normal(size=(600, 400)))
    mean, variance, largest = x.mean(axis=1), x.var(axis=1), x.max(axis=0)
    plan = dp.explain(mean)
    (kernel,) = plan.kernels
    assert (len(kernel.results), len(kernel.siblings)) == (2, 1)
    assert kernel.siblings[0] in kernel.results
    assert "= var(a0" in str(plan)
    assert f"with {kernel.siblings[0]}: pending too" in str(plan)
    ElementTree.fromstring(plan.svg())
    dp.eval(mean)
    assert (variance.is_pending, largest.is_pending) == (False, True)


def test_results_asked_for_together_are_explained_together() -> None:
    x = array()
    total, rest = dp.exp(x) + 1, dp.exp(x) - 1
    plan = dp.explain(total, rest)
    (kernel,) = plan.kernels
    assert len(kernel.results) == 2
    assert f"stores {', '.join(kernel.results)}" in str(plan)
    assert plan.bytes_written == total.nbytes + rest.nbytes
    assert total.is_pending
    with dp.config.override(host_tier=False):  # arrays of this size may be computed eagerly
        other = dp.explain(total, x[:9000] * 2.0, dp.sum(rest))
    assert {kernel.shape for kernel in other.kernels} == {total.shape, (9000,), ()}
    with pytest.raises(dp.exceptions.HostConversionError, match=r"others\[0\]"):
        dp.explain(total, np.ones(3))


@pytest.mark.process
def test_a_kernel_on_disk_is_not_called_missing(tmp_path: Any) -> None:
    script = (
        "import dparray as dp\n"
        "x = dp.asarray([1.5] * 1_000_000)\n"
        "dp.eval(x)\n"
        "dp.config.background_compile = True\n"
        "dp.config.cost_model = {'compile': 10.0}\n"
        "print(dp.explain(dp.sin(x) * dp.cos(x)).reason)\n"
        "with dp.config.override(background_compile=False):\n"
        "    dp.eval(dp.sin(x) * dp.cos(x))\n"
    )
    environment = {**os.environ, "DPARRAY_CACHE_DIR": str(tmp_path), "DPARRAY_KERNEL_STORE": ""}
    reasons = [
        subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True
        ).stdout
        for _ in range(2)
    ]
    assert "the fused kernel is not compiled yet, so NumPy computes this call" in reasons[0]
    assert "the fused kernel is on disk" in reasons[1]
    assert all("The kernel would save about " in reason for reason in reasons)
