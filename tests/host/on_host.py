"""Run tests on the host's own driver, without SYCL, as a pytest plugin.

    python -m pytest -q -p tests.host.on_host tests/test_tiny.py tests/kernel

The fixture ``queue`` then has queues of ``host:cpu``. Tests about SYCL's objects
and modules are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.as_gpu import leave_out

#: Files and tests that cannot run there, by reason.
LEFT_OUT: dict[str, tuple[str, ...]] = {
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
        "test_the_setting_is_part_of_the_key_on_disk_and_in_memory",
    ),
    "has a kernel in OpenCL C or SPIR-V": (
        "test_raw_kernels",
        "test_an_empty_range_runs_nothing",
    ),
    "exchanges arrays with dpnp": (
        "test_others_see_the_hosts_writes",
        "test_uses_of_a_pending_view_have_the_right_values",
    ),
    "has a function that dpnp computes on the host": (
        "test_dpnp_computes_eigenvalues_on_the_host_and_pickles_are_asked_for",
    ),
    "expects an error of np.asarray, which copies arrays of this device": (
        "test_missing_functions_raise_an_error_with_their_name",
        "test_the_error_of_an_implicit_conversion_is_short",
        "test_vectorized_numpy_functions_raise_the_conversion_error",
        "test_functions_that_numpy_makes_raise_the_conversion_error",
        "test_host_data[numpy of ours]",
    ),
    "divides a range into groups, which this driver does not": (
        "test_a_range_of_too_many_groups_is_as_one",
    ),
    "reads the plan of a convolution, which is a matrix product on this device": (
        "test_large_convolutions_are_pending",
        "test_operations_on_a_padded_convolution_are_in_its_kernel",
        "test_large_products_by_constant_weights",
    ),
    "creates queues of SYCL": (
        "test_a_failing_wait_names_kernel_and_line",
        "test_a_launch_that_another_thread_overtook_is_waited_for",
    ),
    "counts launches of the compiled module, which leaves some to Python there": (
        "test_cached_launches",
        "test_a_cached_expression_is_read_in_few_calls",
        "test_a_cached_eager_call_schedules_nothing",
        "test_a_cached_slice_statement_takes_few_calls",
    ),
    "counts what dpnp's kernels compute, which are compiled ahead": (
        "test_a_structure_of_few_elements_is_compiled_when_it_comes_back_often",
        "test_backend_choice",
        "test_little_data_takes_the_functions_own_kernel_and_the_host",
    ),
}
#: Errors that only a driver other than SYCL's raises, or SYCL's packages for other objects.
_OF_SYCL = re.compile(
    r"has no SYCL objects|has no attribute .sycl_(device|queue).|Sycl\w+ is not a (queue|device)"
    r"|only OpenCL drivers compile|raw kernels need a SYCL device"
    r"|Expected dpctl\.SyclQueue|to usm_ndarray requires a copy"
)


def pytest_sessionstart() -> None:
    from dparray import _driver

    _driver._found["sycl"] = _driver.Missing("sycl", "tests run without it", "")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    leave_out(LEFT_OUT, items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    return (yield from _skip_tests_of_sycl())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    return (yield from _skip_tests_of_sycl())


def _skip_tests_of_sycl() -> Iterator[None]:
    try:
        return (yield)
    except Exception as error:
        if _OF_SYCL.search(str(error)):
            pytest.skip("it is about SYCL")
        raise
