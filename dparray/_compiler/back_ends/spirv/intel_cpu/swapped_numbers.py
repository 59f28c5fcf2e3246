"""Hide that the next value of a loop's phi may be another of its phis.

The driver may know which of several values is chosen, or that a group function returns its
argument. Phis that decide the exit are safe, and hiding them is slow: Euclid's algorithm takes
twice as long.

Defect of Intel's CPU driver 2026.2: the driver crashes if a phi's next value is another phi of the
    loop.
Tests: test_values_that_change_places_in_loops, test_module_rules.py.
"""

from dparray._compiler.back_ends.spirv.intel_cpu.loop_values import INTEGER_OF, Changed, kind_of_phi
from dparray._compiler.back_ends.spirv.text import INCOMING, Loop


def hide(function: Changed, loop: Loop) -> None:
    conditions = function.conditions(loop)
    phis = function.carried_by(loop)
    for name, at in phis.items():
        for value, place in INCOMING.findall(function.lines[at]):
            if place not in loop.blocks:
                continue
            chosen = (function.choices_of(loop, value, phis) & phis.keys()) - {name}
            if not chosen or all(
                chosen <= function.sources(condition, loop) for condition in conditions
            ):
                continue
            kind = kind_of_phi(function.lines[at])
            whole = INTEGER_OF[kind]
            hidden = f"%dparray.next.{at}.{function.ends[place]}"
            lines = function.before.setdefault(function.ends[place], [])
            if whole == kind:
                lines.append(f"  {hidden} = xor {kind} {value}, {function.zero(kind)}")
            else:
                lines += [
                    f"  {hidden}.bits = bitcast {kind} {value} to {whole}",
                    f"  {hidden}.same = xor {whole} {hidden}.bits, {function.zero(whole)}",
                    f"  {hidden} = bitcast {whole} {hidden}.same to {kind}",
                ]
            old = f"[ {value}, {place} ]"
            function.lines[at] = function.lines[at].replace(old, f"[ {hidden}, {place} ]")
