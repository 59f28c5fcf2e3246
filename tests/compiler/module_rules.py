"""Constructs that SPIR-V modules for drivers must not contain.

Each rule is a fault of a driver's compiler. ``dparray/_compiler/back_ends/spirv`` describes each
fault where it keeps modules free of the construct. This file shares no code with it.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

_FUNCTION, _FUNCTION_END, _PHI, _LABEL, _BRANCH, _CONDITIONAL, _SWITCH = (
    *(54, 56, 245),
    *(248, 249, 250, 251),
)
_CARRIES = range(149, 153)
_EQUALITIES = (170, 171)
_ORDERED = range(172, 180)
_LOGICAL = range(164, 170)
_OF_CONDITIONS = (166, 167)  # disjunctions and conjunctions
_OR, _XOR, _SELECT, _EXTENDED = 197, 198, 169, 12
_BOOLEAN = 20
_BITS_OF_BOTH, _SHIFT = 199, 194
_CONVERSIONS = (113, 114, 124, 170, 171)  # of integers and bits; and comparisons that give Booleans
_FLOAT_SUMS = (129, 131, 133, 136)
# Loads, calls, extended instructions, conversions of floats, divisions; comparisons of floats,
# atomics, group operations.
_UNCOUNTED = {12, 57, 61, 109, 110, 124, *range(134, 142)}
_UNCOUNTED |= {*range(180, 192), *range(227, 243), *range(261, 272)}
_LOAD, _STORE, _VARIABLE, _BITCAST, _LIFETIME_START = 61, 62, 59, 124, 256
_DECORATION, _BUILT_IN = 71, 11
_OF_GROUPS = (24, 25, 26, 30, 31)  # the numbers, sizes and ids of groups, dimensions, global sizes
# Integer arithmetic, conversions and comparisons, bits, choices, and parts of vectors.
_ALIKE = {
    *(81, 113, 114, 124, 128, 130, 132, 134, 135, 137, 138, 139, _SELECT, _PHI),
    *(*_EQUALITIES, *_ORDERED, *_LOGICAL, 194, 195, 196, 197, 198, 199, 200),
}
_GROUP_OPERATIONS = range(261, 272)
_GROUP_VOTES = range(261, 264)  # with broadcasts; the others name an operation before the value
# The positions of an instruction's identifiers, unless they are all words after its result.
_USES = {12: (5, None), 61: (3, 4), 59: (3, 3), 79: (3, 5), 81: (3, 4), 82: (3, 5)}
_WITHOUT_RESULT = {62, 63, 64, 224, 225, 228, 246, 247, 249, 250, 251, 253, 254, 255, 256, 257}


class _Instruction(NamedTuple):
    code: int
    words: tuple[int, ...]
    block: int

    def uses(self) -> tuple[int, ...]:
        if self.code == _PHI:
            return self.words[3::2]
        if self.code in (_BRANCH, 246, 247, _LABEL):
            return ()
        if self.code in (_CONDITIONAL, _SWITCH):
            return self.words[1:2]
        if self.code in _WITHOUT_RESULT:
            return self.words[1:3] if self.code == 62 else self.words[1:]
        first, last = _USES.get(self.code, (3, None))
        return self.words[first:last]


class _Function:
    """The blocks of a function in SPIR-V's order: a block follows those that dominate it."""

    def __init__(
        self, instructions: list[_Instruction], boolean: int = 0, of_groups: Collection[int] = ()
    ) -> None:
        self.boolean = boolean  # the type
        self.of_groups = of_groups  # the built-in variables that are equal within a group
        self.made = {
            one.words[2]: one
            for one in instructions
            if one.code not in _WITHOUT_RESULT and one.code != _LABEL and len(one.words) > 2
        }
        self.order = {one.block: at for at, one in enumerate(instructions) if one.code == _LABEL}
        self.ends = {one.block: one for one in instructions}
        self.instructions = instructions

    def targets(self, block: int) -> tuple[int, ...]:
        end = self.ends[block]
        if end.code == _BRANCH:
            return end.words[1:2]
        return end.words[2:4] if end.code == _CONDITIONAL else ()

    def loops(self) -> list[tuple[int, set[int], set[int]]]:
        """Yield the header, the blocks and the latches of each loop."""
        before: dict[int, list[int]] = {block: [] for block in self.order}
        latches: dict[int, set[int]] = {}
        for block in self.order:
            for target in self.targets(block):
                before[target].append(block)
                if self.order[target] <= self.order[block]:
                    latches.setdefault(target, set()).add(block)
        found = []
        for header, ends in latches.items():
            blocks, coming = {header}, list(ends)
            while coming:
                block = coming.pop()
                if block not in blocks:
                    blocks.add(block)
                    coming += before[block]
            found.append((header, blocks, ends))
        return found

    def sources(
        self, name: int, blocks: set[int], *, without_hiding_bits: bool = False
    ) -> set[int]:
        found: set[int] = set()
        coming = [name]
        while coming:
            each = coming.pop()
            if without_hiding_bits and self._is_hiding_bit(each):
                continue
            if each in self.made and each not in found and self.made[each].block in blocks:
                found.add(each)
                coming += self.made[each].uses()
        return found

    def is_counted(self, name: int, blocks: set[int], *, in_equality: bool) -> bool:
        """Return whether a driver might compute a number for each step of a loop.

        An equality of an exclusive or and 0 counts as one of its operands.
        """
        for each in self.sources(name, blocks):
            one = self.made[each]
            if one.code in _UNCOUNTED:
                return False
            if one.code == _XOR and one.words[4] in self.made and not in_equality:
                return False
            if one.code == _OR and one.words[4] in self.made:
                return False
        return True

    def choices(self, value: int, blocks: set[int], phis: Collection[int]) -> set[int]:
        """Return the values that a value in a loop is chosen from, with the phis of its header."""
        coming, seen, found = [value], set(), set()
        while coming:
            each = coming.pop()
            one = self.made.get(each)
            if each in seen:
                continue
            seen.add(each)
            if each not in phis and one is not None and one.block in blocks:
                if one.code == _PHI:
                    coming += one.words[3::2]
                    continue
                if one.code == _SELECT:
                    coming += one.words[4:6]
                    continue
                if one.code in _GROUP_OPERATIONS:
                    coming.append(one.words[4 if one.code in _GROUP_VOTES else 5])
                    continue
            found.add(each)
        return found

    def is_chosen(self, phi: int, blocks: set[int], phis: Mapping[int, set[int]]) -> bool:
        """Return whether a phi's next value, or one that reaches it in more steps, is a choice."""
        coming, seen = list(phis[phi]), {phi}
        while coming:
            found = self.choices(coming.pop(), blocks, phis.keys())
            if len(found) > 1:
                return True
            for each in (found & phis.keys()) - seen:
                seen.add(each)
                coming += phis[each]
        return False

    def is_uniform(self, blocks: Collection[int], names: Sequence[int]) -> bool:
        """Return whether names are the same for all work-items of a group, as are the blocks."""
        known, coming = set(blocks), list(names)
        seen: set[int] = set()
        while coming:
            one = self.made.get(coming.pop())
            if one is None or one.words[2] in seen:
                continue
            seen.add(one.words[2])
            if one.code == _PHI and one.block not in known:
                earlier = self._before(one.block) - known
                coming += [each for block in earlier for each in self._deciding(block)]
                known |= earlier
            elif one.code == _LOAD and one.words[3] in self.of_groups:
                continue
            elif one.code not in _ALIKE:
                return False
            coming += one.uses()
        return True

    def _deciding(self, block: int) -> list[int]:
        """Return the conditions in a block, of branches and of choices."""
        codes = (_CONDITIONAL, _SELECT)
        inside = [one for one in self.instructions if one.block == block and one.code in codes]
        return [one.words[1 if one.code == _CONDITIONAL else 3] for one in inside]

    def _before(self, block: int) -> set[int]:
        """Return the blocks from which a block can be reached."""
        found: set[int] = set()
        coming = [block]
        while coming:
            target = coming.pop()
            more = {each for each in self.ends if target in self.targets(each)} - found
            found |= more
            coming += more
        return found

    def begins_hidden(self, phi: int, latches: set[int]) -> bool:
        """Return whether a phi's first value is a function's result, perhaps converted."""
        words = self.made[phi].words
        for value, place in zip(words[3::2], words[4::2], strict=True):
            if place in latches or self.made[phi].code != _PHI:
                continue
            one = self.made.get(value)
            while one is not None and one.code in _CONVERSIONS:
                one = self.made.get(one.words[3])
            if one is None or one.code != _EXTENDED:
                return False
        return True

    def without_lifetime(self) -> list[int]:
        """Return the private memory of which no lifetime starts."""
        started = set()
        for one in self.instructions:
            if one.code == _LIFETIME_START:
                pointer = one.words[1]
                while self.made[pointer].code == _BITCAST:
                    pointer = self.made[pointer].words[3]
                started.add(pointer)
        return [
            name for name, one in self.made.items() if one.code == _VARIABLE and name not in started
        ]

    def fixed_conditions(self, blocks: set[int]) -> list[int]:
        """Return the conditions that do not change in a loop."""
        found = []
        for one in self.instructions:
            if one.block not in blocks:
                continue
            if one.code == _CONDITIONAL:
                names = one.words[1:2]
            elif one.code in (_SELECT, *_OF_CONDITIONS):
                names = one.words[3:4] if one.code == _SELECT else one.words[3:5]
            else:
                continue
            found += [
                name
                for name in names
                if name in self.made
                and self.made[name].words[1] == self.boolean
                and not any(
                    self.made[each].code in (_PHI, _LOAD) for each in self.sources(name, blocks)
                )
            ]
        return found

    def chooses_by(
        self, fixed: list[int], header: int, blocks: set[int], phis: Mapping[int, set[int]]
    ) -> bool:
        """Return whether fixed conditions choose a number that a loop carries or that leaves it."""
        inside = [one for one in self.instructions if one.block in blocks]
        deciding = [one for one in inside if set(fixed) & set(one.uses())]
        choosing = {one.words[2] for one in deciding if one.code in (_SELECT, *_OF_CONDITIONS)}
        if any(one.code == _CONDITIONAL for one in deciding):
            choosing |= {
                one.words[2]
                for one in inside
                if one.code == _PHI and one.block != header and len(set(one.uses())) > 1
            }
        kept = {each for nexts in phis.values() for each in nexts}
        kept |= {
            each
            for one in self.instructions
            if one.block not in blocks
            for each in one.uses()
            if each in self.made and self.made[each].block in blocks
        }
        return any(self.sources(each, blocks) & choosing for each in kept)

    def is_known_outside(self, name: int, blocks: set[int]) -> bool:
        """Return whether a condition is used outside a loop."""
        return any(name in one.uses() for one in self.instructions if one.block not in blocks)

    def faults(self) -> list[str]:
        found = [
            f"the lifetime of the private memory %{name} has no start"
            for name in self.without_lifetime()
        ]
        for header, blocks, latches in self.loops():
            exits = [each for each in blocks if not blocks.issuperset(self.targets(each))]
            conditions = [self.ends[each].words[1] for each in exits]
            phis = {
                name: {
                    value
                    for value, place in zip(one.words[3::2], one.words[4::2], strict=True)
                    if place in latches
                }
                for name, one in self.made.items()
                if one.code == _PHI and one.block == header
            }
            choosing = [each for block in blocks for each in self._deciding(block)]
            is_uniform = self.is_uniform(blocks, choosing)
            if phis and not is_uniform:
                fixed = [
                    name
                    for name in self.fixed_conditions(blocks)
                    if not self.is_uniform((), [name])
                ]
                is_chosen = len(exits) > 1 or self.chooses_by(fixed, header, blocks, phis)
                found += [
                    f"the condition %{name} is fixed in a loop"
                    for name in fixed
                    if is_chosen or self.is_known_outside(name, blocks)
                ]
            for name, nexts in phis.items():
                chosen = {each for one in nexts for each in self.choices(one, blocks, phis.keys())}
                for each in (chosen & phis.keys()) - {name}:
                    if not all(each in self.sources(one, blocks) for one in conditions):
                        found.append(f"the next value of the phi %{name} may be the phi %{each}")
            found += [
                f"the phi %{name}, whose next value is a choice, begins as a known number"
                for name in phis
                if not is_uniform
                and self.is_chosen(name, blocks, phis)
                and not self.begins_hidden(name, latches)
            ]
            leaving = {
                each
                for one in self.instructions
                if one.block not in blocks
                for each in one.uses()
                if each in self.made and self.made[each].block in blocks
            }
            is_written = any(
                one.code == _STORE and one.block in blocks for one in self.instructions
            )
            if not leaving and not is_written:
                continue
            spoiled = f"%{min(leaving)} leaves a loop" if leaving else "memory is written in a loop"
            sums_floats = any(
                self.made[each].code in _FLOAT_SUMS and name in self.made[each].uses()
                for name, nexts in phis.items()
                for each in nexts & self.made.keys()
            )
            is_plain = (
                not sums_floats
                and len(exits) == 1
                and exits[0] in latches
                and not any(self.is_computed(each, blocks, phis) for each in leaving)
            )
            compared = [one for each in conditions for one in self._compared(each, blocks)]
            counted = [self._is_seen(one, blocks) for one in compared]
            if len(exits) == 1 and not all(counted):
                continue
            found += [
                f"{spoiled} of which %{one.words[2]} tells the steps"
                for one, is_seen in zip(compared, counted, strict=True)
                if is_seen and not (is_plain and one.code in _EQUALITIES)
            ]
        return found

    def is_computed(self, name: int, blocks: set[int], phis: Mapping[int, set[int]]) -> bool:
        """Return whether a value is computed from a loop's phis and not carried on.

        The results of calls are opaque.
        """
        carried = {each for nexts in phis.values() for each in nexts}
        made = self.made[name]
        while made.code in _CONVERSIONS and made.words[3] in self.made:
            made = self.made[made.words[3]]
        if name in carried or made.code == _EXTENDED:
            return False
        # A number combined with an opaque zero is 0 in every step.
        return bool(self.sources(name, blocks, without_hiding_bits=True) & phis.keys())

    def _compared(self, condition: int, blocks: set[int]) -> list[_Instruction]:
        found, coming, seen = [], [condition], set()
        while coming:
            name = coming.pop()
            one = self.made.get(name)
            if one is None or name in seen or one.block not in blocks:
                continue
            seen.add(name)
            if one.code in (*_EQUALITIES, *_ORDERED):
                is_of_numbers = any(self.sources(side, blocks) for side in one.words[3:5])
                if is_of_numbers and not self._is_hiding_bit(one.words[3]):
                    found.append(one)
            elif one.code in _LOGICAL or one.code == _PHI:
                coming += one.uses()
        return found

    def _is_hiding_bit(self, name: int) -> bool:
        """Return whether a number is combined with the opaque zero: a number of dimensions, cut."""
        one = self.made.get(name)
        if one is not None and one.code == _BITS_OF_BOTH:
            return any(self._is_hiding_bit(each) for each in one.words[3:5])
        while one is not None and one.code in _CONVERSIONS:
            one = self.made.get(one.words[3])
        if one is None or one.code != _SHIFT:
            return False
        loaded = self.made.get(one.words[3])
        return loaded is not None and loaded.code == _LOAD and loaded.words[3] not in self.made

    def _is_seen(self, one: _Instruction, blocks: set[int]) -> bool:
        in_equality = one.code in _EQUALITIES
        return all(
            self.is_counted(each, blocks, in_equality=in_equality) for each in one.words[3:5]
        )


def faults(spirv: bytes) -> list[str]:
    """Return the rules that a module breaks, as text."""
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    found, at, block, boolean = [], 5, 0, 0
    of_groups: set[int] = set()
    function: list[_Instruction] = []
    while at < len(words):
        count, code = words[at] >> 16, words[at] & 0xFFFF
        if code in _CARRIES:
            found.append(f"a sum or product in two parts, opcode {code}")
        if code == _SWITCH:
            found.append("a switch")
        if code == _DECORATION and words[at + 2] == _BUILT_IN and words[at + 3] in _OF_GROUPS:
            of_groups.add(words[at + 1])
        if code == _BOOLEAN:
            boolean = words[at + 1]
        if code == _LABEL:
            block = words[at + 1]
        if code == _FUNCTION:
            function, block = [], 0
        elif code == _FUNCTION_END:
            if block:
                found += _Function(function, boolean, of_groups).faults()
        elif block:
            function.append(_Instruction(code, words[at : at + count], block))
        at += count
    return found
