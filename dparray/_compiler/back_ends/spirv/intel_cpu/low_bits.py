"""Hide that the indices of stores in a loop are the lowest bits of a counter.

Defect of Intel's CPU driver 2026.2: if a loop reads and writes memory at the lowest bits of a
    counter, ``p[k & 3] += 1``, the driver assumes that no address repeats.
Tests: test_numbers_that_leave_loops_are_those_of_the_last_step.
"""

import re

from dparray._compiler.back_ends.spirv.intel_cpu.loop_values import Changed
from dparray._compiler.back_ends.spirv.text import Loop

# Conversions from narrower integers also use the lowest bits: a narrow counter may wrap around.
_LOW_BITS = re.compile(
    r"^  %\S+ = (?P<how>(?:and|[sz]ext(?: nneg)?) (?P<type>i8|i16|i32|i64) (?P<given>%[^\s,]+)"
    r"(?:, \d+| to (?P<to>i32|i64)))$"
)
_IN_STEPS = frozenset(("phi", "add", "sub", "mul", "shl", "or", "and", "sext", "zext", "trunc"))


def hide(function: Changed, loop: Loop) -> None:
    if not any(
        line.startswith("  store ") and function.labels.get(at) in loop.blocks
        for at, line in enumerate(function.lines)
    ):
        return
    places: set[str] = set()
    for name, (at, operation, _) in function.definitions.items():
        if operation == "getelementptr" and function.labels[at] in loop.blocks:
            places |= function.sources(name, loop)
    for name in sorted(places):
        at = function.definitions[name][0]
        found = _LOW_BITS.match(function.lines[at])
        if found is None or not _is_in_steps(function, loop, found["given"]):
            continue
        kind, bits = found["to"] or found["type"], f"%dparray.bits.{at}"
        function.before.setdefault(at, []).append(f"  {bits} = {found['how']}")
        function.lines[at] = f"  {name} = xor {kind} {bits}, {function.zero(kind)}"


def _is_in_steps(function: Changed, loop: Loop, value: str) -> bool:
    """Return whether a value changes by the same number in each step of a loop."""
    sources = function.sources(value, loop)
    return bool(sources) and all(function.definitions[each][1] in _IN_STEPS for each in sources)
