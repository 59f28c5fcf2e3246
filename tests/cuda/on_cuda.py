"""Run tests with ``cuda:0`` as the default device, as a pytest plugin.

    python -m pytest -q -p tests.cuda.on_cuda tests/test_tiny.py tests/kernel

The driver is the stand-in of ``standin.py``; with ``CUDA_STANDIN=0`` in the environment it is the
real one. The fixture ``queue`` then has queues of the device.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
from collections.abc import Generator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.as_gpu import OF_CPU, leave_out
from tests.cuda import cupy_standin, standin

os.environ["DPARRAY_DEVICE"] = "cuda:0"  # before anything imports dparray
_IS_STANDIN = os.environ.get("CUDA_STANDIN") != "0"

#: Files and tests that cannot run there, by reason.
LEFT_OUT: dict[str, tuple[str, ...]] = {
    **OF_CPU,
    "counts what the host computes of little data, or the kernels or the memory of a CPU": (
        "test_a_corner_is_computed_of_an_array_that_is_printed",
        "test_a_structure_met_on_little_data_is_not_compiled",
        "test_a_structure_of_few_elements_is_compiled_when_it_comes_back_often",
        "test_a_structure_that_comes_back_is_compiled",
        "test_little_data_takes_the_functions_own_kernel_and_the_host",
        "test_memory_taken_over_from_another_queue_is_complete",
        "test_nothing_is_lost_when_memory_runs_out",
        "test_one_axis_is_one_launch",
        "test_the_setting_is_part_of_the_key_on_disk_and_in_memory",
    ),
    "exchanges arrays with dpnp": (
        "test_first_calls_of_dpnp",
        "test_sharing",
        "test_a_kernel_is_ordered_with_dpnp_tensor",
        "test_an_interface_beyond_its_allocation_raises",
        "test_anything_with_the_usm_interface",
        "test_arrays_of_dpnp_are_operands_and_indices",
        "test_arrays_of_dpnp_are_operands_of_every_kind_of_function",
        "test_arrays_of_dpnp_dpnp_tensor_and_dparray_together",
        "test_arrays_of_dpnp_follow_the_rule_of_one_queue",
        "test_arrays_of_several_placements_go_to_the_given_one",
        "test_dpnp_on_the_left_of_an_operator",
        "test_dpnp_shares_the_memory_of_its_operands",
        "test_exported_memory_outlives_its_array",
        "test_foreign_arrays_on_another_queue_are_named_too",
        "test_from_dlpack_of_dpnp_keeps_its_queue",
        "test_kernels_do_not_write_memory_whose_owner_forbids_it",
        "test_operators_take_both_kinds_of_arrays_in_any_order",
        "test_raw_kernels_do_not_write_memory_whose_owner_forbids_it",
        "test_uses_of_a_pending_view_have_the_right_values",
    ),
    "creates queues of SYCL": (
        "test_async_copy",
        "test_a_block_is_usm_of_its_queue",
        "test_a_failing_wait_names_kernel_and_line",
        "test_a_launch_that_another_thread_overtook_is_waited_for",
        "test_arrays_on_two_queues_are_refused_before_anything_runs",
        "test_blocks_of_one_slab_do_not_touch_each_other",
        "test_explicit_order_across_queues",
        "test_memory_of_dropped_arguments_lives_until_the_kernel_has_run",
        "test_profiling_times_where_the_queue_collects_them",
        "test_the_vocabulary_of_dpctl",
        "test_threads_that_build_a_kernel_launch_the_kept_one",
        "test_waiting_for_a_launch_waits_for_those_before_it",
    ),
    "counts on functions that dpnp does not compute": (
        "test_dpnp_computes_eigenvalues_on_the_host_and_pickles_are_asked_for",
    ),
    "pretends that a device has no float64, which all of this driver have": (
        "test_results_of_integers_stay_in_single_precision",
    ),
    "reads SPIR-V": (
        "test_a_kernel_can_be_inspected",
        "test_a_kernel_of_float32_needs_no_double_precision",
        "test_a_kernel_of_float64_is_found_to_need_it",
        "test_a_long_function_is_a_small_module",
        "test_loads_and_stores_get_an_order_that_they_may_have",
        "test_pure_indices_may_be_assumed_not_to_overflow",
    ),
    "checks messages that name the CPU device": ("functions/test_bad_input",),
    "takes float64 powers to the last bit, which NVIDIA's library does not compute": (
        "test_broadcast_operands_do_not_affect_the_memory_order",
        "test_operands_of_at_are_not_converted_first",
    ),
    "has a kernel in OpenCL C": ("test_raw_kernels", "test_an_empty_range_runs_nothing"),
    "has groups of more than 1,024 work-items": ("test_scans_over_two_dimensions_of_any_group",),
    "the compiler refuses such local memory already": (
        "test_a_refusal_names_the_local_memory_of_a_group",
    ),
}
if _IS_STANDIN:
    LEFT_OUT["NumPy, which is CuPy here, does not sort float16 on processors with AVX-512"] = (
        "test_float16_numbers_are_sorted",
    )
    LEFT_OUT["limits its process to less address space than the stand-in reserves"] = (
        "test_mutated_models_never_crash",
    )
    LEFT_OUT["runs kernels when Python has ended, and with it the emulator"] = (
        "test_a_finalizer_at_exit_may_compute",
    )
    LEFT_OUT["has too many work-items to be emulated"] = (
        "test_loops_of_several_threads_at_once",
        "test_more_work_items_than_the_driver_counts",
        "test_threads_reduce_on_one_queue",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if _IS_STANDIN:
        standin.pytest_configure(config)
        cupy_standin.install()


def pytest_report_header() -> str:
    return standin.pytest_report_header() if _IS_STANDIN else "driver: the machine's"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    leave_out(LEFT_OUT, items)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Repair the contexts, so that a fault in one test is not an error of all others."""
    if _IS_STANDIN:
        for device in range(2):
            standin.install().repair(device)


# --- packages that are not there ------------------------------------------------------------------

_PACKAGES_OF_SYCL = ("dpctl", "dpnp")


def _missing(error: BaseException | None) -> str:
    """Return the package whose absence an error reports, or ""."""
    while error is not None:
        if "has no SYCL objects" in str(error) or "No module named 'dpctl'" in str(error):
            return "dpctl"
        if "has no library for what dparray's kernels do not compute" in str(error):
            return "a library of the device"
        name = (getattr(error, "name", None) or "").partition(".")[0]
        if isinstance(error, ImportError) and name in _PACKAGES_OF_SYCL:
            return name
        error = error.__cause__ or error.__context__
    return ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip tests that need dpctl, dpnp or CuPy's functions where these are not installed."""
    report = yield
    if report.failed and call.excinfo and (name := _missing(call.excinfo.value)):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, f"{name} is not installed")
    return report


class _Absent(types.ModuleType):
    """Takes the place of a package that is not installed while files of tests are imported."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        package = self.__name__.partition(".")[0]
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)


_ABSENT = {
    name: _Absent(name)
    for package in _PACKAGES_OF_SYCL
    if find_spec(package) is None
    for name in (package, f"{package}.memory", f"{package}.tensor", f"{package}.utils")
}
for _name, _module in _ABSENT.items():
    if "." in _name:
        _package, _, _attribute = _name.partition(".")
        setattr(_ABSENT[_package], _attribute, _module)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let files import dpctl and dpnp where these are not installed; skip those that use them."""
    # Only files of tests see these modules: dparray looks before and after them.
    if isinstance(collector, pytest.Module):
        importlib.import_module("dparray")
        sys.modules.update(_ABSENT)
    try:
        report = yield
    finally:
        for name in _ABSENT:
            sys.modules.pop(name, None)
    for name in _PACKAGES_OF_SYCL:
        if report.failed and f"No module named '{name}" in str(report.longrepr):
            report.outcome = "skipped"
            report.longrepr = (str(collector.path), 0, f"{name} is not installed")
    return report
