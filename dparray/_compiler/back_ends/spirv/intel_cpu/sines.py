"""Hide the argument of a cosine if it is a sine or cosine, and its sine is computed, too.

The driver computes the sine and the cosine of one number together, which it does not if the bits of
one argument are combined with an opaque zero. Other pairs stay, because one call is faster.

Defect of Intel's CPU driver 2026.2: the driver crashes if a number whose sine and cosine are
    computed is itself one of such a pair.
Tests: test_sines_and_cosines_of_sines_and_cosines.
"""

import re

from dparray._compiler.back_ends.spirv.intel_cpu.loop_values import INTEGER_OF
from dparray._compiler.back_ends.spirv.intel_cpu.opaque import opaque_zero

_CALLS = re.compile(
    r"^  (?P<name>%\S+) = (?:tail )?call spir_func (?P<type>float|double) "
    r"(?P<function>@_Z3(?P<which>sin|cos)[fd])\(\w+ (?P<given>[^\s)]+)\).*$",
    re.MULTILINE,
)


def apply(text: str) -> str:
    calls = list(_CALLS.finditer(text))
    which = {(call["which"], call["given"]) for call in calls}
    pairs = {given for _, given in which if {("sin", given), ("cos", given)} <= which}
    nested = {call["name"] for call in calls if call["given"] in pairs} & pairs

    def hide(call: re.Match[str]) -> str:
        given, kind = call["given"], call["type"]
        if call["which"] != "cos" or given not in nested:
            return call[0]
        whole = INTEGER_OF[kind]
        bits, same, hidden = (f"%dparray.{of}.{call.start()}" for of in ("bits", "same", "angle"))
        none, lines = opaque_zero(f"of.angle.{call.start()}", whole)
        lines += [
            f"  {bits} = bitcast {kind} {given} to {whole}",
            f"  {same} = xor {whole} {bits}, {none}",
            f"  {hidden} = bitcast {whole} {same} to {kind}",
            call[0].replace(f" {given})", f" {hidden})"),
        ]
        return "\n".join(lines)

    return _CALLS.sub(hide, text) if nested else text
