"""Hide the ones in complements that are in a chain with minima or maxima.

The driver keeps chains of integers in vector registers if that makes minima and maxima cheaper, and
computes the complement in such a chain by all ones. A value that it does not know to be all ones is
kept in a register like any other. A single minimum or maximum does not form a chain; one in a loop
may become several.

Defect of Intel's CPU driver 2026.2: for registers from 16 on, which functions like sine do not use,
    complements become an instruction that processors do not have.
Tests: test_complements_with_extremes_are_valid_instructions,
    test_complements_in_chains_of_extremes_are_of_hidden_ones,
    test_the_complement_before_extremes_and_that_of_a_loop_is_hidden.
"""

import re

from dparray._compiler.back_ends.spirv.intel_cpu.opaque import opaque_zero
from dparray._compiler.back_ends.spirv.text import DEFINITIONS, NAMES

_COMPLEMENTS = re.compile(
    r"^  (?P<name>%\S+) = xor (?P<type>i8|i16|i32|i64) (?P<given>[^\s,]+), -1$", re.MULTILINE
)
_EXTREME = re.compile(r"@llvm\.[su]m(?:in|ax)\.i\d+\(")
_IN_CHAINS = frozenset(
    ("add", "sub", "and", "or", "xor", "shl", "lshr", "ashr", "trunc", "zext", "sext")
) | {"select", "phi"}


def apply(text: str) -> str:
    if not (_COMPLEMENTS.search(text) and _EXTREME.search(text)):
        return text
    found = _chained(text)

    def hide(of: re.Match[str]) -> str:
        if of["name"] not in found:
            return of[0]
        kind, ones = of["type"], f"%dparray.ones.{of.start()}"
        none, lines = opaque_zero(f"of.ones.{of.start()}", kind)
        lines += [
            f"  {ones} = sub {kind} {none}, 1",
            f"  {of['name']} = xor {kind} {of['given']}, {ones}",
        ]
        return "\n".join(lines)

    return _COMPLEMENTS.sub(hide, text)


def _chained(text: str) -> set[str]:
    """Return the names of values in chains that may have several minima or maxima."""
    operands, extremes, in_loops = {}, set(), set()
    for name, operation, rest in DEFINITIONS.findall(text):
        if operation in _IN_CHAINS:
            if operation == "phi":
                in_loops.add(name)
        elif operation in ("call", "tail") and _EXTREME.search(rest):
            extremes.add(name)
        else:
            continue
        operands[name] = NAMES.findall(rest)
    neighbors: dict[str, list[str]] = {name: [] for name in operands}
    for name, used in operands.items():
        for one in used:
            if one in neighbors:
                neighbors[name].append(one)
                neighbors[one].append(name)
    found: set[str] = set()
    while extremes:
        chain: set[str] = set()
        coming = [extremes.pop()]
        while coming:
            name = coming.pop()
            if name not in chain:
                chain.add(name)
                coming += neighbors[name]
        if chain & extremes or chain & in_loops:
            found |= chain
        extremes -= chain
    return found
