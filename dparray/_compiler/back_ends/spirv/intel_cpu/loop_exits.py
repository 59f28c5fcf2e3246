"""Hide the number of steps of a loop: each exit compares an opaque value.

Equalities (the ends of ``for`` loops) are unchanged if the loop has a single exit, with two
exceptions. The loop carries a number into another one, and a number leaves it: there a function
hides the count, since the driver looks through ``or``. Or the loop sums floats, which the driver
reorders: there ``or`` hides it, since with a function a matrix product takes 5 times as long. A
minimum and its index are no exchange: a condition decides them (with a hidden count, k-means takes
3 times as long).

Defect of Intel's CPU driver 2026.2: if a loop ends when a counter's next value exceeds a bound, or
    has two exits, numbers that leave the loop are those of another step: counters are one step
    late, sums over more than a vector's steps are wrong, and memory is written in one step too
    many.
Tests: test_numbers_that_leave_loops_are_those_of_the_last_step, test_random_programs.py,
    test_floats_are_added_in_order, test_values_of_inner_loops_are_not_computed_behind_outer_loops.
"""

import re
from collections.abc import Iterator

from dparray._compiler.back_ends.spirv.intel_cpu.loop_values import Changed
from dparray._compiler.back_ends.spirv.intel_cpu.opaque import UNCHANGED
from dparray._compiler.back_ends.spirv.text import BRANCHES, INCOMING, NAMES, TRUTHS, Loop

_COMPARED = re.compile(
    r"^  (?P<name>%\S+) = icmp (?P<order>(?:samesign )?\w+) (?P<type>i8|i16|i32|i64) "
    r"(?P<a>[^\s,]+), (?P<b>[^\s,]+)$"
)
# Operations for which no closed form is computed if they change in the loop.
_UNCOUNTED = frozenset(
    ("load", "udiv", "sdiv", "urem", "srem", "fptosi", "fptoui", "fcmp", "bitcast", "ptrtoint")
) | {"extractelement", "cmpxchg", "atomicrmw"}
_IN_ORDER = frozenset(("fadd", "fsub", "fmul", "fdiv"))


def hide(function: Changed, loop: Loop) -> None:
    exits = function.exits(loop)
    sums_floats = _sums_floats(function, loop)
    exchanges = _leaves(function, loop) and _exchanges(function, loop)
    is_plain = (
        not sums_floats
        and len(exits) == 1
        and exits[0] in loop.latches
        and not exchanges
        and not _leaves_computed(function, loop)
    )
    counted: list[tuple[int, re.Match[str], str]] = []
    for label in exits:
        found = BRANCHES.match(function.lines[function.ends[label]])
        compared = list(_compared(function, loop, found[1])) if found else []
        if len(exits) == 1 and not all(side for _, _, side in compared):
            return
        counted += compared
    for at, found, side in counted:
        earlier = function.before.get(at, [])
        # A side that was hidden for an outer loop may be constant in this one.
        is_hidden = any(function.is_in(name, loop) for name in NAMES.findall("".join(earlier)))
        if side and not is_hidden and not (is_plain and found["order"] in ("eq", "ne")):
            kind = found["type"]
            hidden = f"%dparray.count.{at}.{len(earlier)}"
            if found["order"] in ("eq", "ne"):  # the driver looks through an exclusive or in these
                if sums_floats and not exchanges:
                    line = f"  {hidden} = or {kind} {found[side]}, {function.zero(kind)}"
                else:
                    given = f"{kind} {found[side]}, {kind} 0"
                    line = f"  {hidden} = call spir_func {kind} {UNCHANGED[kind]}({given})"
                    function.varying.add(hidden)
            else:
                line = f"  {hidden} = xor {kind} {found[side]}, {function.zero(kind)}"
            function.before[at] = [*earlier, line]
            sides = {"a": found["a"], "b": found["b"], side: hidden}
            function.lines[at] = (
                f"  {found['name']} = icmp {found['order']} {kind} {sides['a']}, {sides['b']}"
            )


def _compared(
    function: Changed, loop: Loop, condition: str
) -> Iterator[tuple[int, re.Match[str], str]]:
    """Return the comparisons of integers that make up an exit condition, with the side to hide.

    The side is "" if no count can be computed from the comparison.
    """
    coming, seen = [condition], set()
    while coming:
        name = coming.pop()
        if name in seen or name not in function.definitions:
            continue
        seen.add(name)
        at, operation, rest = function.definitions[name]
        if not function.is_in(name, loop):
            continue
        found = _COMPARED.match(function.lines[at])
        if found:
            sides = [side for side in "ab" if function.is_in(found[side], loop)]
            if sides:
                is_counted = all(
                    _is_counted(function, loop, found[side], found["order"]) for side in sides
                )
                yield at, found, sides[0] if is_counted else ""
        elif operation in TRUTHS:
            coming += NAMES.findall(rest)


def _is_counted(function: Changed, loop: Loop, name: str, order: str) -> bool:
    """Return whether the driver might know how a number changes from step to step."""
    for each in function.sources(name, loop):
        _, operation, rest = function.definitions[each]
        is_call = operation in ("call", "tail") and "@llvm." not in rest
        if operation in _UNCOUNTED or is_call:
            return False
        if (
            operation == "xor"
            and order not in ("eq", "ne")
            and not rest.rsplit(", ", 1)[1].lstrip("-").isdigit()
        ):
            return False
    return True


def _sums_floats(function: Changed, loop: Loop) -> bool:
    """Return whether a loop has a sum or product of floats, which the driver would reorder."""
    for name in function.carried_by(loop):
        for value, _ in INCOMING.findall(function.definitions[name][2]):
            _, made, of = function.definitions.get(value, (0, "", ""))
            if made in _IN_ORDER and name in NAMES.findall(of):
                return True
    return False


def _leaves(function: Changed, loop: Loop) -> bool:
    """Return whether a value of a loop is used after it."""
    return any(
        function.labels[at] in loop.blocks and not function.users.get(name, set()) <= loop.blocks
        for name, (at, _, _) in function.definitions.items()
    )


def _exchanges(function: Changed, loop: Loop) -> bool:
    """Return whether a loop carries a number into another one, as swaps do."""
    phis = {
        name: value
        for name, (at, operation, rest) in function.definitions.items()
        if operation == "phi" and function.labels[at] == loop.header
        for value, place in INCOMING.findall(rest)
        if place in loop.blocks
    }
    counting = {
        each for one in function.conditions(loop) for each in function.sources(one, loop)
    } & phis.keys()
    return any(
        (function.sources(value, loop, with_conditions=False) & phis.keys()) - {name} - counting
        for name, value in phis.items()
    )


def _leaves_computed(function: Changed, loop: Loop) -> bool:
    """Return whether a phi leaves a loop, or a value made of phis that the loop does not carry on.

    The driver computes such a value behind the loop, and behind an outer loop, too, if it knows the
    number of steps of the loop. There it reads the phi as it would be in the next step.
    """
    phis = function.carried_by(loop)
    carried: set[str] = set()
    for at in phis.values():
        incoming = INCOMING.findall(function.lines[at])
        carried |= {value for value, place in incoming if place in loop.blocks}
    return any(
        function.labels[at] in loop.blocks
        and name not in carried
        and not function.users.get(name, set()) <= loop.blocks
        and function.sources(name, loop) & phis.keys()
        for name, (at, _, _) in function.definitions.items()
    )
