"""Values of loops that the rules for Intel's CPU driver look at."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from dparray._compiler.back_ends.spirv.intel_cpu.opaque import opaque_zero
from dparray._compiler.back_ends.spirv.text import INCOMING, NAMES, Function, Loop

INTEGER_OF = {
    **{kind: kind for kind in ("i1", "i8", "i16", "i32", "i64")},
    "half": "i16",
    "float": "i32",
    "double": "i64",
}
GROUP_FUNCTION = "__spirv_Group"
GROUP_ID = "get_group_id"
# Operations whose results are the same for all work-items if their operands are.
_ALIKE = frozenset(
    ("phi", "icmp", "select", "freeze", "sext", "zext", "trunc", "and", "or", "xor")
) | {*("add", "sub", "mul", "shl", "lshr", "ashr", "udiv", "sdiv", "urem", "srem")}
DECISIONS = re.compile(
    r"  (?:br|%\S+ = (?:select(?: [a-z]+)*|[sz]ext|and|or(?: disjoint)?)) i1 (%[^\s,]+(?:, \S+$)?)"
)


def kind_of_phi(line: str) -> str:
    return line.split(" = phi ")[1].split(" [ ")[0]


class Changed(Function):
    """A function and the changes that rules make to it.

    Attributes:
        before: the lines to insert before each line.
        varying: hidden values, which the driver takes for each work-item's own.
    """

    def __init__(self, lines: list[str]) -> None:
        super().__init__(lines)
        self.before: dict[int, list[str]] = {}
        self.varying: set[str] = set()
        self._zeros: dict[str, list[str]] = {}

    def zero(self, kind: str) -> str:
        """Return the name of an opaque zero."""
        name, self._zeros[kind] = opaque_zero(f"of.loops.{kind}", kind)
        return name

    def text(self) -> str:
        """Return the lines, with the inserted ones and opaque zeros."""
        zeros = [line for _, lines in sorted(self._zeros.items()) for line in lines]
        self.before.setdefault(min(self.ends.values()), [])[:0] = zeros
        result = []
        for at, line in enumerate(self.lines):
            result += [*self.before.get(at, ()), line]
        return "\n".join([*result, ""])

    def carried_by(self, loop: Loop) -> dict[str, int]:
        """Return the integers and floats that a loop carries from step to step, and their lines."""
        return {
            name: at
            for name, (at, operation, _) in self.definitions.items()
            if operation == "phi"
            and self.labels[at] == loop.header
            and kind_of_phi(self.lines[at]) in INTEGER_OF
        }

    def is_uniform(self, blocks: Collection[str], names: Iterable[str]) -> bool:
        """Return whether names and choices in blocks are the same for all work-items of a group."""
        blocks, seen = set(blocks), set[str]()
        coming = list(names)
        while coming:
            name = coming.pop()
            if name in seen or name not in self.definitions:  # a parameter
                continue
            seen.add(name)
            at, operation, rest = self.definitions[name]
            if not self.varying.isdisjoint(NAMES.findall(self.lines[at])):
                return False
            if operation == "phi" and self.labels[at] not in blocks:
                # The branches that lead to a phi choose its value; those of the loop are known.
                earlier = self.leading_to(self.labels[at]) - blocks
                coming += self.deciding_in(earlier)
                blocks |= earlier
            elif operation not in _ALIKE and GROUP_ID not in rest:
                return False
            coming += NAMES.findall(rest)
        return True

    def deciding_in(self, blocks: Collection[str]) -> Iterator[str]:
        """Yield the names on which branches and choices in blocks depend."""
        for at, line in enumerate(self.lines):
            found = DECISIONS.match(line) if self.labels.get(at) in blocks else None
            yield from NAMES.findall(found[1]) if found else ()

    def choices_of(self, loop: Loop, value: str, phis: Collection[str]) -> set[str]:
        """Return the possible sources of a value in a loop, with the phis of its header."""
        seen: set[str] = set()
        found: set[str] = set()
        coming = [value]
        while coming:
            each = coming.pop()
            if each in seen:
                continue
            seen.add(each)
            if each in phis or not self.is_in(each, loop):
                found.add(each)
                continue
            at, operation, rest = self.definitions[each]
            if operation == "phi":
                coming += [incoming for incoming, _ in INCOMING.findall(self.lines[at])]
            elif operation == "select":
                coming += [side.split()[-1] for side in rest.split(", ")[1:]]
            elif operation == "freeze" or GROUP_FUNCTION in rest:
                coming += NAMES.findall(rest)
            elif rest.startswith("i1 "):  # a condition as a number
                found |= {"0", "1"}
            else:
                found.add(each)
        return found
