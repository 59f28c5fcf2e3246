"""Give loops with group functions a single latch.

LLVM's passes can give a loop several latches, for example when they sink a store from one of two
branches. A call that no pass may duplicate keeps a single latch; it is removed from the output.

Defect of Intel's CPU driver 2026.2: a loop with several latches becomes two nested ones, and
    work-items on different paths no longer meet in a group function of the loop. SPIR-V promises
    such meetings to no loop of this form.
Tests: test_work_items_that_continue_meet_the_others.
"""

import re

from dparray._compiler.back_ends.spirv.text import FUNCTION, INCOMING, Function

_MEET = "@dparray.meet()"
_MEETINGS = re.compile(rf"^(?:  (?:tail )?call|declare) void {re.escape(_MEET)}.*\n", re.MULTILINE)
_CONVERGENT_GROUPS = re.compile(r"^attributes (#\d+) = \{[^}\n]* convergent ", re.MULTILINE)
_NAMED = r"(@[-\w.$]+|@\"[^\"]*\")\("
_DECLARED = re.compile(rf"^declare [^@\n]*{_NAMED}(.*)$", re.MULTILINE)
_DEFINED = re.compile(rf"^define [^@\n]*{_NAMED}")
_CALLED = re.compile(rf"^  (?:%\S+ = )?(?:tail )?call [^@\n]*{_NAMED}", re.MULTILINE)


def add(text: str) -> str:
    """Return a module's text in which loops with group functions have a single latch."""
    groups = set(_CONVERGENT_GROUPS.findall(text))
    together = {
        name
        for name, rest in _DECLARED.findall(text)
        if groups & set(rest.split()) and "__spirv_Atomic" not in name
    }
    if not together:
        return text
    calls = {
        defined[1]: set(_CALLED.findall(function[2]))
        for function in FUNCTION.finditer(text)
        if (defined := _DEFINED.match(function[1]))
    }
    while more := {name for name, called in calls.items() if called & together} - together:
        together |= more
    meeting = FUNCTION.sub(lambda of: of[1] + _with_one_way_back(of[2], together), text)
    attributes = "convergent nounwind willreturn memory(inaccessiblemem: readwrite)"
    return f"{meeting}\ndeclare void {_MEET} {attributes}\n"


def _with_one_way_back(body: str, together: set[str]) -> str:
    """Return the lines of a function; ``together`` are the functions that groups call together."""
    if "\n  switch " in body or together.isdisjoint(_CALLED.findall(body)):
        return body
    function = Function(body.splitlines())
    lines, added = function.lines, []
    calling = {
        function.labels[at]
        for at, line in enumerate(lines)
        if (called := _CALLED.match(line)) and called[1] in together
    }
    for number, loop in enumerate(function.loops()):
        if calling.isdisjoint(loop.blocks):
            continue
        back = f"%dparray.back.{number}"
        added.append(f"{back[1:]}:")
        for name, (at, operation, _) in function.definitions.items():
            if operation != "phi" or function.labels[at] != loop.header:
                continue
            incoming = INCOMING.findall(lines[at])
            kind = lines[at].split(" = phi ")[1].split(" [ ")[0]
            again = [f"[ {value}, {place} ]" for value, place in incoming if place in loop.latches]
            first = [
                f"[ {each}, {place} ]" for each, place in incoming if place not in loop.latches
            ]
            added.append(f"  {back}.{at} = phi {kind} {', '.join(again)}")
            lines[at] = f"  {name} = phi {kind} {', '.join([*first, f'[ {back}.{at}, {back} ]'])}"
        for label in loop.latches:
            end = function.ends[label]
            target = rf"label {re.escape(loop.header)}(?=,|$)"
            lines[end] = re.sub(target, f"label {back}", lines[end])
        added += [f"  call void {_MEET}", f"  br label {loop.header}"]
    return "\n".join([*lines, *added, ""])


def remove(text: str) -> str:
    """Return a module's text without the calls that :func:`add` inserted."""
    return _MEETINGS.sub("", text)
