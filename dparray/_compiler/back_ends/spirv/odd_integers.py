"""Store integers of odd widths in 8, 16, 32 or 64 bits, with zeros in the higher bits.

LLVM counts the steps of a loop up to a masked number in as many bits as the mask has, and truncates
numbers to the bits that are used.

Defect of LLVM 22: integers of fewer than 8 bits are not compared, and other odd widths need an
    extension that not all drivers have.
Tests: test_integers_of_odd_widths_are_kept_in_standard_ones.
"""

import re

from dparray._compiler.back_ends.spirv.text import INCOMING, ORDERS

_ODD = r"i(?:[2-7]|9|1[0-57-9]|2\d|3[013-9]|4\d|5\d|6[0-3])"
_HAS_ODD = re.compile(rf"(?<![^\s(]){_ODD}(?![\w.])")
_ODD_RESULT = re.compile(r"^  (%\S+) = (.*)$")
_ODD_EXTENSION = re.compile(r"^([sz])ext (?:nneg )?i(\d+) (\S+) to i(\d+)$")
_ODD_CUT = re.compile(r"^trunc (?:nuw |nsw )*i(\d+) (\S+) to i(\d+)$")
_ODD_ORDER = re.compile(rf"^icmp (?:samesign )?(\w+) ({_ODD}) ([^\s,]+), (\S+)$")
_ODD_CHOICE = re.compile(rf"^(select i1 [^\s,]+, )({_ODD}) ([^\s,]+), {_ODD} (\S+)$")
_ODD_PHI = re.compile(rf"^phi ({_ODD}) (.*)$")
_ODD_FREEZE = re.compile(rf"^freeze ({_ODD}) (\S+)$")
_ODD_ARITHMETIC = re.compile(
    rf"^(?P<operation>add|sub|mul|shl|xor|and|or|lshr|ashr|[us]div|[us]rem) "
    rf"(?:nuw |nsw |exact |disjoint )*(?P<type>{_ODD}) (?P<a>[^\s,]+), (?P<b>\S+)$"
)
_ODD_EXTREME = re.compile(
    rf"^(?:tail )?call (?P<type>{_ODD}) @llvm\.(?P<which>[su]m(?:in|ax))\.i\d+"
    rf"\({_ODD} (?:range\([^)]*\) )?(?P<a>[^\s,]+), {_ODD} (?:range\([^)]*\) )?(?P<b>[^\s,)]+)\).*$"
)
_OVERFLOWING = frozenset(("add", "sub", "mul", "shl", "xor"))


def _standard_width(bits: int) -> int:
    """Return the width of the standard integer for some bits; a Boolean stays 1."""
    return 1 if bits == 1 else next(each for each in (8, 16, 32, 64) if bits <= each)


class _OddLine:
    """The lines that replace one with integers of odd widths.

    Attributes:
        name: the name of the result.
        lines: all lines except the last, which computes the result.
    """

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.lines: list[str] = []

    def add(self, text: str) -> str:
        """Add an instruction and return the name of its result."""
        name = f"%dparray.odd.{self.number}.{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def operand(self, value: str, bits: int, *, signed: bool = False) -> str:
        """Return an integer in its standard width, extended by its sign or by zeros."""
        if re.fullmatch(r"-?\d+", value):
            number = int(value) % (1 << bits)
            return str(number - (1 << bits) if signed and number >> (bits - 1) else number)
        width = _standard_width(bits)
        if not signed or width == bits:
            return value
        shifted = self.add(f"shl i{width} {value}, {width - bits}")
        return self.add(f"ashr i{width} {shifted}, {width - bits}")

    def masked(self, text: str, bits: int) -> list[str]:
        """Return all lines; the last truncates the result of an instruction to some bits."""
        width = _standard_width(bits)
        if width != bits:
            text = f"and i{width} {self.add(text)}, {(1 << bits) - 1}"
        return [*self.lines, f"  {self.name} = {text}"]

    def extension(self, sign: str, source: int, value: str, target: int) -> list[str]:
        """Return the lines of ``sext`` or ``zext``."""
        value = self.operand(value, source, signed=sign == "s")
        start, end = _standard_width(source), _standard_width(target)
        extended = (
            f"{sign}ext i{start} {value} to i{end}" if start < end else f"or i{end} {value}, 0"
        )
        return self.masked(extended, target)

    def cut(self, source: int, value: str, target: int) -> list[str]:
        """Return the lines of ``trunc``."""
        start, end = _standard_width(source), _standard_width(target)
        return self.masked(
            f"trunc i{start} {value} to i{end}" if end < start else f"or i{end} {value}, 0", target
        )

    def arithmetic(self, operation: str, bits: int, a: str, b: str) -> list[str]:
        """Return the lines of an operation on two integers."""
        signed = operation in ("ashr", "sdiv", "srem")
        a = self.operand(a, bits, signed=signed)
        b = self.operand(b, bits, signed=signed and operation != "ashr")
        text = f"{operation} i{_standard_width(bits)} {a}, {b}"
        if signed or operation in _OVERFLOWING:
            return self.masked(text, bits)
        return [*self.lines, f"  {self.name} = {text}"]

    def order(self, order: str, bits: int, a: str, b: str) -> str:
        """Return a comparison."""
        a, b = (self.operand(each, bits, signed=order.startswith("s")) for each in (a, b))
        return f"icmp {order} i{_standard_width(bits)} {a}, {b}"


def apply(text: str) -> str:
    if not _HAS_ODD.search(text):
        return text
    lines: list[str] = []
    for number, line in enumerate(text.splitlines()):
        lines += _with_standard_integers(line, number) if _HAS_ODD.search(line) else [line]
    return "\n".join([*lines, ""])


def _with_standard_integers(line: str, number: int) -> list[str]:
    result = _ODD_RESULT.match(line)
    if not result:
        return [] if line.startswith("declare ") and "@llvm." in line else [line]
    name, rest = result.groups()
    one = _OddLine(name, number)
    if found := _ODD_EXTENSION.match(rest):
        return one.extension(found[1], int(found[2]), found[3], int(found[4]))
    if found := _ODD_CUT.match(rest):
        return one.cut(int(found[1]), found[2], int(found[3]))
    if found := _ODD_ARITHMETIC.match(rest):
        return one.arithmetic(found["operation"], int(found["type"][1:]), found["a"], found["b"])
    if found := _ODD_ORDER.match(rest):
        text = one.order(found[1], int(found[2][1:]), found[3], found[4])
        return [*one.lines, f"  {name} = {text}"]
    if found := _ODD_EXTREME.match(rest):
        bits = int(found["type"][1:])
        a, b = (one.operand(found[side], bits) for side in "ab")
        is_first = one.add(one.order(ORDERS[found["which"]], bits, found["a"], found["b"]))
        width = _standard_width(bits)
        return [*one.lines, f"  {name} = select i1 {is_first}, i{width} {a}, i{width} {b}"]
    if found := _ODD_CHOICE.match(rest):
        bits = int(found[2][1:])
        a, b = (f"i{_standard_width(bits)} {one.operand(each, bits)}" for each in found.group(3, 4))
        return [f"  {name} = {found[1]}{a}, {b}"]
    if found := _ODD_PHI.match(rest):
        bits = int(found[1][1:])
        incoming = (
            f"[ {one.operand(value, bits)}, {place} ]" for value, place in INCOMING.findall(rest)
        )
        return [f"  {name} = phi i{_standard_width(bits)} {', '.join(incoming)}"]
    if found := _ODD_FREEZE.match(rest):
        return [f"  {name} = freeze i{_standard_width(int(found[1][1:]))} {found[2]}"]
    return [line]
