"""Hide which conditions of the work-item do not change in a loop.

The condition is combined with bits of a number that the loop carries. Other conditions stay, since
hidden ones need masks: a convolution would take four times as long.

Defect of Intel's CPU driver 2026.2: the driver splits a loop by such a condition. A number that
    depends on the condition and leaves the loop, or is computed behind it, is then that of one
    work-item for all.
Tests: test_conditions_that_are_fixed_in_loops_are_found_and_are_hidden,
    test_a_condition_behind_a_loop_belongs_to_each_work_item,
    test_a_condition_that_chooses_an_exchanged_number_is_hidden.
"""

import re
from collections.abc import Sequence

from dparray._compiler.back_ends.spirv.intel_cpu.loop_values import (
    DECISIONS,
    INTEGER_OF,
    Changed,
    kind_of_phi,
)
from dparray._compiler.back_ends.spirv.intel_cpu.opaque import UNCHANGED
from dparray._compiler.back_ends.spirv.text import INCOMING, NAMES, Loop


def hide(function: Changed, loop: Loop) -> None:
    phis = function.carried_by(loop)
    if not phis or function.is_uniform(loop.blocks, function.deciding_in(loop.blocks)):
        return
    deciding = {each for one in function.conditions(loop) for each in function.sources(one, loop)}
    kind_of = {name: kind_of_phi(function.lines[at]) for name, at in phis.items()}
    number = min(phis, key=lambda name: (kind_of[name] not in UNCHANGED, name not in deciding))
    inside = [at for at in function.labels if function.labels[at] in loop.blocks]
    start = next(
        at
        for at in inside
        if function.labels[at] == loop.header and " = phi " not in function.lines[at]
    )
    bit = f"%dparray.bit.{start}"
    fixed = [
        (at, name)
        for at in inside
        if (found := DECISIONS.match(function.lines[at]))
        for name in NAMES.findall(found[1])
        if _is_fixed(function, loop, name)
    ]
    is_chosen = len(function.exits(loop)) > 1 or _chooses_by(function, loop, fixed)
    hidden_here = [
        (at, name) for at, name in fixed if is_chosen or _is_known_outside(function, loop, name)
    ]
    for at, name in hidden_here:
        hidden = f"%dparray.fixed.{at}.{len(function.before.setdefault(at, []))}"
        function.before[at].append(f"  {hidden} = xor i1 {name}, {bit}")
        whole = rf"{re.escape(name)}(?=[, ]|$)"
        function.lines[at] = re.sub(whole, hidden, function.lines[at])
    if hidden_here:
        kind, whole = kind_of[number], INTEGER_OF[kind_of[number]]
        lines, given = [], number
        if kind != whole:
            given = f"{bit}.whole"
            lines = [f"  {given} = bitcast {kind} {number} to {whole}"]
        lines.append(f"  {bit}.none = and {whole} {given}, {function.zero(whole)}")
        lines.append(f"  {bit} = icmp ne {whole} {bit}.none, 0")
        function.before.setdefault(start, [])[:0] = lines


def _is_fixed(function: Changed, loop: Loop, name: str) -> bool:
    """Return whether a condition of the work-item does not change in a loop."""
    coming, seen = [name], set[str]()
    while coming:
        each = coming.pop()
        if each in seen or not function.is_in(each, loop):
            continue
        seen.add(each)
        _, operation, rest = function.definitions[each]
        if operation in ("phi", "load"):  # Most walks end here, after a few steps.
            return False
        coming += NAMES.findall(rest)
    return not function.is_uniform((), [name])


def _chooses_by(function: Changed, loop: Loop, fixed: Sequence[tuple[int, str]]) -> bool:
    """Return whether fixed conditions choose a number that a loop carries or that leaves it."""
    choosing = {function.lines[at].split(" = ")[0].strip() for at, _ in fixed}
    if any(function.lines[at].startswith("  br ") for at, _ in fixed):
        choosing |= {
            name
            for name, (at, operation, rest) in function.definitions.items()
            if operation == "phi"
            and function.labels[at] in loop.blocks - {loop.header}
            and len({value for value, _ in INCOMING.findall(rest)}) > 1
        }
    kept = {
        value
        for name in function.carried_by(loop)
        for value, place in INCOMING.findall(function.definitions[name][2])  # before it is hidden
        if place in loop.blocks
    } | {
        name
        for name, (at, _, _) in function.definitions.items()
        if function.labels[at] in loop.blocks and not function.users.get(name, set()) <= loop.blocks
    }
    return any(function.sources(each, loop) & choosing for each in kept)


def _is_known_outside(function: Changed, loop: Loop, name: str) -> bool:
    """Return whether a condition, or one on the same numbers, is used outside a loop."""
    about = {name, *NAMES.findall(function.definitions[name][2])}
    return any(
        about & set(NAMES.findall(function.lines[at]))
        for at, label in function.labels.items()
        if label not in loop.blocks
        and not function.lines[at].startswith(f"  {name} = ")
        and (name in function.lines[at] or " = icmp " in function.lines[at])
    )
