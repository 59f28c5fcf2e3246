"""Treat the CPU device as a GPU, as a pytest plugin: GPU kernels and code paths, real values.

    PYTHONPATH=tests python -m pytest -p as_gpu tests/evaluate tests/algorithms

The host may not compute, and kernels are divided as on a GPU of the Xe family. The host cannot
reach device memory: code that asks for its bytes at their own address gets an error, and only
commands of the queue copy it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

# 96 compute units and 64 KiB of local memory, as on an Iris Xe, and work-groups of 1,024. The
# sub-group sizes stay those of the CPU device, which executes the kernels.
UNITS = 96
GROUP = 1024
LOCAL_MEMORY = 1 << 16

# Tests of code paths that only a CPU device has.
CPU_ONLY = (
    "test_backend_choice",
    "test_cached_launches",
    "test_deferred_steps",
    "test_eager_functions",
    "test_eager_limits",
    "test_prange_calls",  # library calls in loops are native code
    "test_large_ranges",  # dpnp's kernels crash the CPU driver at such sizes
    "test_quick_reductions",
    "test_recorded_in_c",
    "test_small_arrays",
    "test_trace",
)


# Some of these tests cover how a CPU divides a reduction, sorts, selects, shares memory with the
# host and runs native code. The others use dpnp's sort of narrow integers or copies between
# sub-devices, which end or hang the process in the CPU driver. Elsewhere dparray works around both.
OF_CPU_FORMS = (
    # kernels call no functions without @dp.device_func
    "test_functions_that_are_called_compute_in_the_dtypes_of_their_arguments",
    "test_functions_of_arrays",
    "test_a_known_call_enters_few_functions",
    "test_an_array_that_numpy_returns_as_it_is_given_is_copied",
    "test_a_window_that_needs_smaller_tiles",  # of 80 KiB, more than LOCAL_MEMORY
    "test_an_error_of_a_thread_is_raised_by_the_caller",
    "test_consumers_without_a_flag_for_it_get_a_copy",
    "test_array_code_of_medium_size_is_vectorized_native_code",
    "test_array_code_with_single_elements_is_vectorized_at_every_size",
    "test_comprehensions_and_lambdas_have_separate_names",
    "test_copies_between_sub_devices_of_one_context",
    "test_exceptions_of_native_regions_have_the_line_of_the_function",
    "test_a_cache_that_is_off_says_so_once",
    "test_a_damaged_or_foreign_region_is_compiled_again",
    "test_regions_are_cached_under_every_umask",
    "test_the_cache_counts_regions",
    "test_updates_of_one_array_keep_their_order",
    "test_vectorized_updates_read_what_was_there_before",
    "test_explain_shows_reductions",
    "test_a_group_reduces_several_rows",
    "test_products_of_windows_are_convolutions",
    "test_steps_of_the_host_are_the_general_ones",
    "test_small_arrays_are_computed_by_numpy",
    "test_shared_views_that_repeat_an_element_are_read_only",
    "test_the_last_group_merges_the_chunks",
    "test_long_rows_of_float16_are_sorted_by_radix",
    "test_narrow_integers_are_sorted_and_looked_up_without_the_host",
    "test_numpy_selects_until_the_kernel_is_there",
    "test_numpy_selects_contiguous_elements",
    "test_powers_that_are_simpler_cost_what_the_simpler_costs",
    "test_a_result_that_broadcasts_to_a_large_shape_is_not_computed_immediately",
    "test_a_reduction_of_an_array_that_the_loop_reads_is_refused",
    "test_a_target_takes_the_values_from_before",
    "test_atomics_beside_array_statements_are_refused",
    "test_tuples_and_lists_of_numbers_and_arrays",
    "test_types_that_only_numba_knows",
    "test_a_tuple_class_with_other_fields_is_another_type",
    "test_a_value_changes",
    "test_rows_of_a_prange_loop",
    "test_statements_on_rows_are_numpys",
    "test_the_simulator_reads_the_items_of_lists",
    "test_the_work_of_a_call_is_explained",
    "test_writing_by_a_mask_copies_nothing_that_the_host_has_computed",
)
#: What only a CPU device runs, by reason.
OF_CPU = {"tests code paths of CPU devices": (*CPU_ONLY, *OF_CPU_FORMS)}


def play_gpu() -> None:
    """Treat every device of this process as a GPU from now on."""
    from dparray import _driver
    from tests.support import forget_traits

    real = _driver.read_traits

    @functools.cache
    def as_gpu(traits: Any) -> Any:
        return replace(
            traits,
            kind="gpu",
            shares_memory=False,
            units=UNITS,
            threads=8,
            group=GROUP,
            local_memory=LOCAL_MEMORY,
        )

    _driver.read_traits = lambda queue: as_gpu(real(queue))
    forget_traits()
    import_module("tests.support").leave_out_radix_sort(setattr)


def pytest_sessionstart() -> None:
    play_gpu()


def leave_out(left_out: Mapping[str, Iterable[str]], items: list[pytest.Item]) -> None:
    """Skip files and tests by their names.

    Args:
        left_out: by reason, the names of what cannot run; files also with that of their folder,
            tests also with their parameters.
        items: the tests of the run.
    """
    reasons = {name: reason for reason, names in left_out.items() for name in names}
    for item in items:
        file = item.path.stem
        for name in (file, f"{item.path.parent.name}/{file}", item.name, item.name.split("[")[0]):
            if name in reasons:
                item.add_marker(pytest.mark.skip(reason=reasons[name]))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    leave_out({**OF_CPU, "has the limits of real devices": ("test_traced_functions",)}, items)
