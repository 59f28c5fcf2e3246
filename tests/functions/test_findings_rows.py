"""Each numbered row of the findings has a test that failed before the fix, or a written reason.

The calls of `test_findings` are named by their rows. The other rows are listed here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dparray as dp
from tests.functions import test_findings

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "notebooks" / "coming-from" / "differences.md").read_text()
ROWS = [
    *(f"W{n}" for n in range(1, 26)),
    *(f"M{n}" for n in range(1, 26)),
    *(f"B{n}" for n in range(1, 18)),
    *(f"R{n}" for n in range(1, 22)),
    "S",
]

#: The tests of the other rows, by folder and name.
SHOWN: dict[str, str] = {
    "W2": "functions/test_aliasing.py::test_orders",
    "M1": "functions/test_special.py::test_errors_are_those_in_the_table",
    "M3": "libraries/test_einops.py::test_patterns",
    "M4": "libraries/test_xarray.py::test_calls",
    "M5": "libraries/test_dask.py::test_calls",
    "B1": "functions/test_placement_rules.py::test_from_dlpack_of_dpnp_keeps_its_queue",
    "B2": "functions/test_placement_rules.py::test_copies_between_sub_devices_of_one_context",
    "B3": "tools/test_profile.py::test_a_timer_waits_for_expressions_built_inside",
    "B4": "tools/test_profile.py::test_the_log_contains_all_work",
    "B5": "functions/test_placement_rules.py::test_functions_of_c_become_array_functions",
    "B6": "functions/test_placement_rules.py::test_placements_with_different_names",
    "B7": "array/test_host_maps.py::test_a_map_waits_for_the_work_before_it",
    "B8": "functions/test_placement_rules.py::test_dpnp_shares_the_memory_of_its_operands",
    "B9": "functions/test_placement_rules.py::test_arrays_of_dpnp_are_operands_and_indices",
    "B10": "functions/test_placement_rules.py::test_filter_strings_skip_devices_without_usm",
    "B11": "tools/test_doctor.py::test_a_selector_that_hides_all_devices_is_named",
    "B12": "functions/test_placement_rules.py::test_creation_functions_take_a_placement",
    "B13": "functions/test_placement_rules.py::test_simulate_raises_where_a_launch_raises",
    "B14": "functions/test_findings_rows.py::test_splits_and_linspaces_follow_the_queue_rule",
    "B15": "functions/test_placement_rules.py::test_suggested_fixes_are_valid_python",
    "B16": "functions/test_placement_rules.py::test_numpy_arrays_are_written_by_assignment",
    "B17": "kernel/test_kernel_numba_dpex.py::test_its_argument_error_is_caught_by_its_own_class",
    "R1": "evaluate/test_empty_operands.py::test_a_pending_reduction_outlives_an_empty_reader",
    "R2": "runtime/test_in_order_queues.py::test_threads_on_in_order_queues_end",
    "R3": "runtime/test_forks.py::test_forks",
    "R11": "functions/test_findings.py::test_integer_products_wrap_without_the_host",
    "R12": "compiler/test_cache.py::test_users_files_stay",
    "R13": "compiler/test_cache.py::test_an_entry_is_no_other_keys",
    "R14": "compiler/test_cache.py::test_a_fifo_does_not_hang",
    "R15": "memory/test_sharing.py::test_an_interface_beyond_its_allocation_raises",
    "R16": "evaluate/test_large_ranges.py::test_as_numpy",
    "R17": "functions/test_damaged_files.py::test_damaged_files_are_refused",
    "R19": "simulator/test_simulated_numbers.py::test_the_same",
    "R21": "stress/test_stress.py::test_growth_that_no_kernel_explains_fails",
}

#: Phrases of the list of differences from NumPy that give the reason of remaining differences.
REASONS: dict[str, str] = {
    "S": "complex numbers are not converted to real ones",
    "W4": "quantiles between a number and an infinity",
    "M4": "NumPy operands raise an error",
}


@pytest.mark.parametrize("row", ROWS)
def test_each_row_has_a_test_or_a_reason(row: str) -> None:
    calls = {name.partition(" ")[0] for name in test_findings.CALLS}
    assert row in calls or row in SHOWN or row in REASONS
    if row in SHOWN:
        file, _, name = SHOWN[row].partition("::")
        assert re.search(rf"^(async )?def {name}\(", (TESTS / file).read_text(), re.MULTILINE)
    if row in REASONS:
        words = " ".join(PAGE.replace("*", "").replace("`", "").split()).lower()
        assert REASONS[row].lower() in words


def test_splits_and_linspaces_follow_the_queue_rule() -> None:
    x = dp.arange(6)
    other = x.device.new_queue().queue
    with pytest.raises(dp.ExecutionPlacementError, match="indices_or_sections"):
        dp.split(x, dp.asarray([2, 4], sycl_queue=other))
    assert dp.linspace(dp.asarray(0.0), 1.0, 3, sycl_queue=other).queue == other
