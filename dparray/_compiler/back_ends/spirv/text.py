"""Parts of LLVM's text that rules read: names, functions with their blocks, and loops."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

DEFINITIONS = re.compile(r"^  (%\S+) = (\S+) (.*)$", re.MULTILINE)
NAMES = re.compile(r"%(?:[-\w.$]+|\"[^\"]*\")")
BRANCHES = re.compile(r"^  br i1 (%[^\s,]+),", re.MULTILINE)
FUNCTION = re.compile(r"(^define [^\n]*\{\n)(.*?)(?=^\}$)", re.MULTILINE | re.DOTALL)
LABEL = re.compile(r"^([-\w.$]+|\"[^\"]*\"):")
INCOMING = re.compile(r"\[ ([^\s,]+|splat \([^)]*\)), (%[-\w.$]+|%\"[^\"]*\") \]")
TARGETS = re.compile(r"label (%[-\w.$]+|%\"[^\"]*\")")
TERMINATORS = ("  br ", "  ret ", "  unreachable")
TRUTHS = frozenset(("and", "or", "xor", "select", "freeze", "phi", "zext", "sext", "trunc"))
ORDERS = {"smin": "slt", "smax": "sgt", "umin": "ult", "umax": "ugt"}


def element_of(kind: str) -> str:
    """Return the type of an element: ``i32`` for ``<8 x i32>`` and for ``i32``."""
    return kind.split()[-1].rstrip(">")


def reached(names: Iterable[str], following: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the names that depend on some names, directly or through others."""
    reached: set[str] = set()
    coming = list(names)
    while coming:
        for name in following.get(coming.pop(), ()):
            if name not in reached:
                reached.add(name)
                coming.append(name)
    return reached


class Loop(NamedTuple):
    """A loop: the labels of its header, of all its blocks and of its latches."""

    header: str
    blocks: set[str]
    latches: set[str]


class Function:
    """A function's lines, with the block of each, the edges of blocks, and definitions."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.labels: dict[int, str] = {}  # the block of each line
        self.ends: dict[str, int] = {}  # the last line of each block
        self.targets: dict[str, list[str]] = {}
        # the line, the operation and the rest
        self.definitions: dict[str, tuple[int, str, str]] = {}
        self.users: dict[str, set[str]] = {}  # the blocks that use each name
        label = "%"
        for at, line in enumerate(lines):
            if found := LABEL.match(line):
                label = "%" + found[1]
                continue
            self.labels[at] = label
            if line.startswith(TERMINATORS):
                self.ends[label] = at
                self.targets[label] = TARGETS.findall(line)
            found = DEFINITIONS.match(line)
            rest = line
            if found:
                name, operation, rest = found.groups()
                self.definitions[name] = at, operation, rest
            for value in NAMES.findall(rest):
                self.users.setdefault(value, set()).add(label)

    def loops(self) -> list[Loop]:
        """Return the loops, by the edges that jump back to a dominating block."""
        sources: dict[str, list[str]] = {label: [] for label in self.targets}
        for label, targets in self.targets.items():
            for target in targets:
                sources[target].append(label)
        found: dict[str, Loop] = {}
        entry = next(iter(self.targets))
        seen, active = {entry}, {entry}
        way = [(entry, iter(self.targets[entry]))]
        while way:
            label, coming = way[-1]
            target = next(coming, "")
            if not target:
                active.discard(label)
                way.pop()
            elif target in active:
                loop = found.setdefault(target, Loop(target, {target}, set()))
                loop.latches.add(label)
            elif target not in seen:
                seen.add(target)
                active.add(target)
                way.append((target, iter(self.targets[target])))
        for loop in found.values():
            waiting = list(loop.latches)
            while waiting:
                label = waiting.pop()
                if label not in loop.blocks:
                    loop.blocks.add(label)
                    waiting += sources[label]
        return list(found.values())

    def exits(self, loop: Loop) -> list[str]:
        """Return the labels of the blocks that exit a loop."""
        return [
            label
            for label in self.targets
            if label in loop.blocks and not loop.blocks.issuperset(self.targets[label])
        ]

    def leading_to(self, label: str) -> set[str]:
        """Return the blocks from which a block can be reached."""
        found: set[str] = set()
        coming = [label]
        while coming:
            each = coming.pop()
            more = {place for place, targets in self.targets.items() if each in targets} - found
            found |= more
            coming += more
        return found

    def conditions(self, loop: Loop) -> list[str]:
        """Return the names that decide whether a loop exits."""
        found = (BRANCHES.match(self.lines[self.ends[label]]) for label in self.exits(loop))
        return [one[1] for one in found if one]

    def is_in(self, name: str, loop: Loop) -> bool:
        """Return whether a name is defined in a loop."""
        return name in self.definitions and self.labels[self.definitions[name][0]] in loop.blocks

    def sources(self, name: str, loop: Loop, *, with_conditions: bool = True) -> set[str]:
        """Return a name and the names in a loop from which its value is computed or chosen."""
        found: set[str] = set()
        coming = [name]
        while coming:
            each = coming.pop()
            if each not in found and self.is_in(each, loop):
                found.add(each)
                _, operation, rest = self.definitions[each]
                if operation == "select" and not with_conditions:
                    rest = rest.partition(", ")[2]
                coming += NAMES.findall(rest)
        return found
