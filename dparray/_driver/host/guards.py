"""Find the work-items of a row that a kernel's first tests let through, as the inside of an image.

They become the bounds of the loop over work-items. With the tests inside, all accesses would be
masked, and elements that all work-items read would be gathered.
"""

from __future__ import annotations

import re

from dparray._driver.host.analysis import Function, is_pure
from dparray._driver.host.reading import NAME, Block

_BRANCH = re.compile(r"br i1 (%\S+), label (%\S+), label (%\S+)")
_TEST = re.compile(r"icmp (samesign )?([su])(lt|le|gt|ge) i64 (\S+), (\S+)")
_SHIFTED = re.compile(r"add (?:nuw )?(?:nsw )?i64 (\S+), (-?\d{1,9})")
_BOTH = re.compile(r"select i1 (\S+), i1 (\S+), i1 false|and i1 (\S+), (\S+)")
_EITHER = re.compile(r"select i1 (\S+), i1 true, i1 (\S+)|or (?:disjoint )?i1 (\S+), (\S+)")
_NOT = re.compile(r"xor i1 (\S+), true")
_MARKS = re.compile(r"\b(?:nuw|nsw|exact|disjoint|samesign|nneg|inbounds|nusw) ")
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


class Guard:
    """The tests of a kernel that only the position in a row and uniform values decide.

    Attributes:
        lines: instructions that narrow the items from ``%low.0`` to ``%high.0`` down to those from
            ``%low`` to ``%high``; empty if there is no such test.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._last = f"%dp.g{function.ndim - 1}"
        self._parameters = {name for name, _ in function.parameters}
        self.lines: list[str] = []
        self._low, self._high = "%low.0", "%high.0"
        block = function.blocks[0]
        while inside := self._lift(block):
            block = function.by[inside]
            if function.predecessors[inside] != [block.name]:
                break
        if self.lines:
            self.lines.append(f"  %low = add i64 {self._low}, 0")
            self.lines.append(f"  %high = add i64 {self._high}, 0")
            function.analyze()

    def _lift(self, block: Block) -> str:
        """Lift the test at the end of a block, and return the block behind it."""
        function = self._function
        *body, last = block.body
        branch = _BRANCH.fullmatch(last.text)
        if not branch or any(not is_pure(one) for one in body):
            return ""
        ways = [each.strip('%"') for each in branch.groups()[1:]]
        ends = [[one.opcode for one in function.by[each].body] == ["ret"] for each in ways]
        if ends[0] == ends[1]:
            return ""
        count = len(self.lines)
        tests = self._tests(branch[1], not ends[0])
        if tests is None:
            del self.lines[count:]
            return ""
        for kind, value in tests:
            self._narrow(kind, value)
        inside = ways[ends[0]]
        last.text, last.used, block.to = f'br label %"{inside}"', [], [inside]
        return inside

    def _tests(self, condition: str, wanted: bool) -> list[tuple[str, str]] | None:
        """Return what must hold for a condition to be as wanted.

        Each is ``"low"`` or ``"high"`` with a bound, or ``"if"`` with a condition. The result is
        ``None`` if other values decide, too.
        """
        text = self._text(condition)
        if found := _NOT.fullmatch(text):
            return self._tests(found[1], not wanted)
        if found := (_BOTH if wanted else _EITHER).fullmatch(text):
            first, second = (self._tests(each, wanted) for each in found.groups() if each)
            return None if first is None or second is None else first + second
        uniform = self._uniform(condition)
        if uniform:
            if not wanted:
                uniform = self._named(f"xor i1 {uniform}, true")
            return [("if", uniform)]
        return self._bound(text, wanted)

    def _bound(self, text: str, wanted: bool) -> list[tuple[str, str]] | None:
        """Return the bound that a comparison of the position in a row is."""
        test = _TEST.fullmatch(text)
        if not test:
            return None
        same_sign, sign, order, first, second = test.groups()
        if self._position(first) is None:
            first, second, order = second, first, _SWAPPED[order]
        shift, bound = self._position(first), self._uniform(second)
        order = order if wanted else _OPPOSITE[order]
        is_lower = order in ("gt", "ge")
        is_unsigned = sign == "u" and not same_sign
        if shift is None or not bound or (is_unsigned and shift < 0 and is_lower):
            return None
        bounds = []
        if is_unsigned:  # The position is not above the largest signed integer.
            bound = self._named(f"call i64 @llvm.umin.i64(i64 {bound}, i64 {2**63 - 1})")
            bounds = [("low", str(-shift))] if shift < 0 else []
        added = (order in ("gt", "le")) - shift
        if added:
            bound = self._named(f"call i64 @llvm.sadd.sat.i64(i64 {bound}, i64 {added})")
        return [*bounds, ("low" if is_lower else "high", bound)]

    def _position(self, value: str) -> int | None:
        """Return what is added to the position in a row; ``None`` for other values.

        Positions are so far from the largest integers that these sums do not wrap around.
        """
        if value == self._last:
            return 0
        found = _SHIFTED.fullmatch(self._text(value))
        return int(found[2]) if found and found[1] == self._last else None

    def _narrow(self, kind: str, value: str) -> None:
        if kind == "if":
            self._high = self._named(f"select i1 {value}, i64 {self._high}, i64 {self._low}")
        elif kind == "low":
            self._low = self._named(f"call i64 @llvm.smax.i64(i64 {self._low}, i64 {value})")
        else:
            self._high = self._named(f"call i64 @llvm.smin.i64(i64 {self._high}, i64 {value})")

    def _text(self, value: str) -> str:
        return self._function.defs[value][1].text if value in self._function.defs else ""

    def _named(self, text: str) -> str:
        """Write an instruction, once, and return the name of its result."""
        for line in self.lines:
            name, _, known = line.strip().partition(" = ")
            if known == text:
                return name
        name = f"%dp.guard{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def _uniform(self, value: str) -> str:
        """Return a value that is the same in a row, computed before the row; or nothing."""
        if not value.startswith("%"):
            return value
        if value in self._parameters or re.fullmatch(r"%dp\.gs?\d", value):
            return "" if value == self._last else value
        if value not in self._function.defs:
            return ""
        one = self._function.defs[value][1]
        if not is_pure(one):
            return ""
        names = {each: self._uniform(each) for each in one.used}
        if not all(names.values()):
            return ""
        # A test before this one may have kept values away that the marks exclude.
        text = _MARKS.sub("", one.text)
        return self._named(NAME.sub(lambda found: names.get(found[0], found[0]), text))
