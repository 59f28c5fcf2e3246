"""Write switches as branches, for all drivers: the rules against Intel's CPU driver know no switch.

Defect of IGC 1.0.12504: for a switch with cases that share a block with a phi, the compiler for
    Intel's GPUs loses entries of the phi and crashes.
Tests: test_a_set_of_numbers_is_no_switch.
"""

from typing import Any


def add_passes(manager: Any) -> None:
    manager.add_lower_switch_pass()
