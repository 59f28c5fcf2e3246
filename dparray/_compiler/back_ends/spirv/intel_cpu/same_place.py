"""Hide the target of stores if no work-item accesses memory by its ids.

Defect of Intel's CPU driver 2026.0 (no longer of 2026.2): the driver crashes when it builds a
    kernel whose work-items all write the same value to the same place, and call a device function
    in a loop to compute it. It does not crash if it cannot prove that the place is the same.
Tests: test_work_items_may_all_do_the_same, test_a_norm_of_all_elements_of_a_transposed_array.
"""

import re

from dparray._compiler.back_ends.spirv.intel_cpu.early_returns import (
    IDS,
    PASSES_ON,
    ids_and_computed,
)
from dparray._compiler.back_ends.spirv.intel_cpu.opaque import FIRST_ID, NO_BYTES
from dparray._compiler.back_ends.spirv.text import NAMES

_STORES = re.compile(
    r"^  store (?!atomic|volatile)(?P<value>.+), ptr addrspace\(1\) (?P<place>[^\s,]+)"
    r"(?P<rest>.*)$",
    re.MULTILINE,
)
_MEMORY = re.compile(
    r"^  (?:%\S+ = )?(?:tail )?(?:store|load|getelementptr|call) (.*)$", re.MULTILINE
)


def apply(text: str) -> str:
    ids, computed = ids_and_computed(text, IDS)
    if any(
        name in ids or name in computed
        for rest in _MEMORY.findall(text)
        if not PASSES_ON.search(rest)
        for name in NAMES.findall(rest)
    ):
        return text

    def hide(found: re.Match[str]) -> str:
        name = f"%dparray.{{}}.{found.start()}"
        first, none, place = (name.format(each) for each in ("id", "none", "place"))
        return "\n".join(
            (
                f"  {first} = call spir_func i64 {FIRST_ID}(i32 0)",
                f"  {none} = call spir_func i64 {NO_BYTES}(i64 {first}, i64 {first})",
                f"  {place} = getelementptr i8, ptr addrspace(1) {found['place']}, i64 {none}",
                f"  store {found['value']}, ptr addrspace(1) {place}{found['rest']}",
            )
        )

    return _STORES.sub(hide, text)
