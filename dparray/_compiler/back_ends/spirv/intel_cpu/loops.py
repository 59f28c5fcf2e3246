"""Write loops that Intel's CPU driver handles correctly.

The driver vectorizes a kernel over its work-items, and then also the loops of the scalar kernel
that it keeps for the remainder (its pass VPlanDriver). A loop is vectorized only if the driver can
compute its number of steps. The rules for loops change a function together, in this order.
"""

import re

from dparray._compiler.back_ends.spirv.intel_cpu import (
    fixed_conditions,
    loop_exits,
    loop_starts,
    low_bits,
    swapped_numbers,
)
from dparray._compiler.back_ends.spirv.intel_cpu.loop_values import Changed
from dparray._compiler.back_ends.spirv.text import FUNCTION


def apply(text: str) -> str:
    if " phi " not in text:
        return text
    compared = _LOWEST_BITS.sub(_compare_lowest_bit, text)
    return FUNCTION.sub(lambda of: of[1] + _uncounted(of[2]), compared)


_LOWEST_BITS = re.compile(
    r"^  (?P<name>%\S+) = trunc (?:nuw |nsw )*(?P<type>i8|i16|i32|i64) (?P<given>%\S+) to i1$",
    re.MULTILINE,
)


def _compare_lowest_bit(found: re.Match[str]) -> str:
    bit, kind = f"%dparray.lowest.{found.start()}", found["type"]
    return f"  {bit} = and {kind} {found['given']}, 1\n  {found['name']} = icmp ne {kind} {bit}, 0"


def _uncounted(body: str) -> str:
    function = Changed(body.splitlines())
    loops = function.loops()
    for loop in loops:
        swapped_numbers.hide(function, loop)
        low_bits.hide(function, loop)
        loop_exits.hide(function, loop)
    # A hidden start may make a later loop depend on the work-item, so repeat until none is found.
    waiting = loops
    while rest := [loop for loop in waiting if not loop_starts.hide(function, loop)]:
        if len(rest) == len(waiting):
            break
        waiting = rest
    for loop in sorted(loops, key=lambda each: len(each.blocks)):
        fixed_conditions.hide(function, loop)
    return function.text() if function.before else body
