"""Hide the first value of a phi whose next value depends on a condition of the work-item.

The loop starts with a function's result, which the driver treats as different in each work-item. It
does not if no choice in it depends on the work-item: a variance would take twice as long, with
masks.

Defect of Intel's CPU driver 2026.2: a loop changes a uniform number under a condition of the
    work-item, and a later loop starts with it: the value of one work-item is used for all.
Tests: test_variables_of_a_loop_belong_to_each_work_item,
    test_starts_are_hidden_only_in_loops_that_depend_on_the_work_item.
"""

from dparray._compiler.back_ends.spirv.intel_cpu.loop_values import INTEGER_OF, Changed, kind_of_phi
from dparray._compiler.back_ends.spirv.intel_cpu.opaque import UNCHANGED
from dparray._compiler.back_ends.spirv.text import INCOMING, Loop


def hide(function: Changed, loop: Loop) -> bool:
    """Hide the starts of such phis; return whether there were any."""
    if function.is_uniform(loop.blocks, function.deciding_in(loop.blocks)):
        return False
    has_chosen = False
    for name, at in function.carried_by(loop).items():
        incoming = INCOMING.findall(function.lines[at])
        if not any(
            place in loop.blocks and _is_chosen(function, loop, name, value)
            for value, place in incoming
        ):
            continue
        has_chosen = True
        kind = kind_of_phi(function.lines[at])
        for value, place in incoming:
            if place in loop.blocks:
                continue
            whole = {"i1": "i8"}.get(kind, INTEGER_OF[kind])
            to, back = ("zext", "trunc") if kind == "i1" else ("bitcast", "bitcast")
            hidden = f"%dparray.start.{at}.{function.ends[place]}"
            given, lines = value, function.before.setdefault(function.ends[place], [])
            result = hidden
            if whole != kind:
                given, result = f"{hidden}.bits", f"{hidden}.same"
                lines.append(f"  {given} = {to} {kind} {value} to {whole}")
            call = f"call spir_func {whole} {UNCHANGED[whole]}({whole} {given}, {whole} 0)"
            lines.append(f"  {result} = {call}")
            if whole != kind:
                lines.append(f"  {hidden} = {back} {whole} {result} to {kind}")
            function.varying.add(hidden)
            old = f"[ {value}, {place} ]"
            function.lines[at] = function.lines[at].replace(old, f"[ {hidden}, {place} ]")
    return has_chosen


def _is_chosen(function: Changed, loop: Loop, name: str, value: str) -> bool:
    """Return whether a phi's next value, or one that reaches it in more steps, is a select."""
    phis = function.carried_by(loop)
    waiting, seen = {value}, {name}
    while waiting:
        found = function.choices_of(loop, waiting.pop(), phis)
        if len(found) > 1:
            return True
        for each in (found & phis.keys()) - seen:
            seen.add(each)
            line = function.lines[phis[each]]
            waiting |= {next for next, place in INCOMING.findall(line) if place in loop.blocks}
    return False
