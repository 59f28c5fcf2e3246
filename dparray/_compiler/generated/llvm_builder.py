"""Instructions on numbers, written in LLVM's text: arithmetic, conversions, memory, calls."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from dparray._compiler import abi
from dparray._compiler.generated.numbers import (
    BOOL,
    INT32,
    INT64,
    SINGLE,
    UINT64,
    Kind,
    Value,
    constant,
    in_memory,
)
from dparray.kernel_api import MemoryScope

POINTER = "ptr addrspace({})"
GLOBAL, LOCAL = 1, 3


class Array(NamedTuple):
    """A pointer, and the type of what it points to."""

    pointer: str
    kind: Kind
    space: int


class Reference(NamedTuple):
    """An element that several work-items change."""

    pointer: str
    kind: Kind
    space: int
    order: int


class Writer:
    """Writes the body of a function.

    Attributes:
        lines: of its body so far.
        block: the label of the block that is being written.
        declared: the declarations of the functions that it calls.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.block = "entry"
        self.declared: dict[str, None] = {}
        self._count = 0

    def label(self, prefix: str = "v") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def emit(self, instruction: str) -> str:
        """Write an instruction, and return the name of its result."""
        name = f"%{self.label()}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def value(self, instruction: str, kind: Kind, counts: bool = False) -> Value:
        return Value(self.emit(instruction), kind, counts=counts)

    def do(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}")

    def begin(self, label: str) -> None:
        """Begin a block of instructions."""
        self.lines.append(f"{label}:")
        self.block = label

    def call(
        self, name: str, result: str, arguments: Sequence[tuple[str, str]], attribute: str = ""
    ) -> str:
        """Return the instruction that calls a function of the device; arguments are types and
        values.
        """
        kinds = ", ".join(kind for kind, _ in arguments)
        self.declared[f"declare spir_func {result} @{name}({kinds}) nounwind {attribute}"] = None
        given = ", ".join(f"{kind} {value}" for kind, value in arguments)
        attribute = "convergent" if attribute == "convergent" else ""
        return f"call spir_func {result} @{name}({given}) {attribute}".rstrip()

    def mathematics(self, name: str, kind: Kind, arguments: Sequence[str]) -> Value:
        mangled = abi.mangled(name, kind.code * len(arguments))
        given = [(kind.llvm, argument) for argument in arguments]
        return self.value(self.call(mangled, kind.llvm, given, "memory(none)"), kind)

    def address(self, array: Array, index: str) -> str:
        element = in_memory(array.kind)
        pointer = POINTER.format(array.space)
        return self.emit(f"getelementptr {element}, {pointer} {array.pointer}, i64 {index}")

    def store(self, value: Value, pointer: str, array: Array) -> None:
        text = value.text
        if array.kind == BOOL:
            text = self.emit(f"zext i1 {text} to i8")
        self.do(f"store {in_memory(array.kind)} {text}, {POINTER.format(array.space)} {pointer}")

    def shift(self, operation: type, first: Value, second: Value) -> Value:
        """Write a shift; a shift by at least 64 bits, or by a negative number, gives 0."""
        kind = UINT64 if first.kind.kind == "u" else INT64
        value = self.to(first, kind).text
        amount = self.to(second, UINT64 if second.kind.kind == "u" else INT64).text
        fits = self.emit(f"icmp ule i64 {amount}, 63")
        if operation is ast.RShift and kind == INT64:
            amount = self.emit(f"select i1 {fits}, i64 {amount}, i64 63")
            return self.value(f"ashr i64 {value}, {amount}", kind)
        name = "shl" if operation is ast.LShift else "lshr"
        amount = self.emit(f"select i1 {fits}, i64 {amount}, i64 0")
        shifted = self.emit(f"{name} i64 {value}, {amount}")
        return self.value(f"select i1 {fits}, i64 {shifted}, i64 0", kind)

    def unsigned_quotient(self, a: Value, b: Value, index: int) -> Value:
        """Return the quotient or the remainder, which are 0 for a division by 0."""
        name = ("udiv", "urem")[index]
        if b.text != "0" and b.text.isdigit():
            return self.value(f"{name} i64 {a.text}, {b.text}", UINT64)
        is_none = self.emit(f"icmp eq i64 {b.text}, 0")
        before, divides, end = self.block, self.label("divides"), self.label("end")
        self.do(f"br i1 {is_none}, label %{end}, label %{divides}")
        self.begin(divides)
        found = self.emit(f"{name} i64 {a.text}, {b.text}")
        self.do(f"br label %{end}")
        self.begin(end)
        return self.value(f"phi i64 [ {found}, %{divides} ], [ 0, %{before} ]", UINT64)

    def floored(self, a: Value, b: Value, index: int) -> Value:
        """Return the floored quotient or remainder of signed integers; 0 for a division by 0."""
        by_zero = self.emit(f"icmp eq i64 {b.text}, 0")
        by_minus_one = self.emit(f"icmp eq i64 {b.text}, -1")
        is_special = self.emit(f"or i1 {by_zero}, {by_minus_one}")
        safe = self.emit(f"select i1 {is_special}, i64 1, i64 {b.text}")
        rest = self.emit(f"srem i64 {a.text}, {safe}")
        has_rest = self.emit(f"icmp ne i64 {rest}, 0")
        signs = self.emit(f"xor i64 {rest}, {safe}")
        differ = self.emit(f"icmp slt i64 {signs}, 0")
        is_below = self.emit(f"and i1 {has_rest}, {differ}")
        if index:
            moved = self.emit(f"add i64 {rest}, {safe}")
            return self.value(f"select i1 {is_below}, i64 {moved}, i64 {rest}", INT64)
        quotient = self.emit(f"sdiv i64 {a.text}, {safe}")
        less = self.emit(f"zext i1 {is_below} to i64")
        quotient = self.emit(f"sub i64 {quotient}, {less}")
        negative = self.emit(f"sub i64 0, {a.text}")
        quotient = self.emit(f"select i1 {by_minus_one}, i64 {negative}, i64 {quotient}")
        return self.value(f"select i1 {by_zero}, i64 0, i64 {quotient}", INT64)

    def compared(self, order: str, a: Value, b: Value, kind: Kind) -> Value:
        if kind.kind == "f":
            # Only "not equal" is true of a NaN.
            name = "fcmp " + ("une" if order == "ne" else f"o{order}")
        elif order in ("eq", "ne"):
            name = f"icmp {order}"
        else:
            name = f"icmp {'s' if kind.kind == 'i' else 'u'}{order}"
        return self.value(f"{name} {kind.llvm} {a.text}, {b.text}", BOOL)

    def compared_mixed(self, order: str, first: Value, second: Value) -> Value:
        """Compare a uint64 with a signed integer: negative integers are less than every uint64."""
        is_first = first.kind.kind == "i"
        signed = self.to(first if is_first else second, INT64)
        is_negative = self.emit(f"icmp slt i64 {signed.text}, 0")
        a, b = (Value(self.to(each, INT64).text, UINT64) for each in (first, second))
        found = self.compared(order, a, b, UINT64)
        answer = order == "ne" or (order in ("lt", "le") if is_first else order in ("gt", "ge"))
        text = "true" if answer else "false"
        return self.value(f"select i1 {is_negative}, i1 {text}, i1 {found.text}", BOOL)

    def extended(self, bits: str) -> Value:
        number = self.emit(f"bitcast i16 {bits} to half")
        return self.value(f"fpext half {number} to float", SINGLE)

    def truth(self, value: Value) -> Value:
        return self.to(value, BOOL)

    def to(self, value: Value, kind: Kind) -> Value:
        """Return a number in another type."""
        own = value.kind
        if value.written is not None:
            if kind.kind == "b":
                return Value(constant(value.written != 0, kind), kind)
            if isinstance(value.written, int) or kind.kind == "f":
                return Value(constant(value.written, kind), kind)
        if own == kind:
            return value._replace(written=None)
        if kind.kind == "b":
            if own.kind == "f":
                return self.value(f"fcmp une {own.llvm} {value.text}, 0.0", kind)
            return self.value(f"icmp ne {own.llvm} {value.text}, 0", kind)
        if kind.kind == "f":
            if own.kind == "f":
                name = "fpext" if kind.bits > own.bits else "fptrunc"
            else:
                name = "sitofp" if own.kind == "i" else "uitofp"
        elif own.kind == "f" and (kind.kind == "u" or kind.bits < 32):
            # LLVM does not define conversions of numbers that do not fit; here they wrap around.
            through = INT64 if kind.bits >= 32 else INT32
            wide = self.value(f"fptosi {own.llvm} {value.text} to {through.llvm}", through)
            if kind.bits < 64:
                return self.value(f"trunc {through.llvm} {wide.text} to {kind.llvm}", kind)
            positive = self.value(f"fptoui {own.llvm} {value.text} to i64", kind)
            is_negative = self.value(f"fcmp olt {own.llvm} {value.text}, 0.0", BOOL)
            return self.value(
                f"select i1 {is_negative.text}, i64 {wide.text}, i64 {positive.text}", kind
            )
        elif own.kind == "f":
            name = "fptosi"
        elif own.bits == kind.bits:
            return Value(value.text, kind, counts=value.counts)
        elif own.bits > kind.bits:
            name = "trunc"
        else:
            name = "sext" if own.kind == "i" else "zext"
        return self.value(f"{name} {own.llvm} {value.text} to {kind.llvm}", kind)

    def fetch_add(self, reference: Reference, value: Value) -> Value:
        """Add to an element of 32-bit integers, and return its previous value."""
        kind = reference.kind
        assert kind == INT32
        pointer = f"PU3AS{reference.space}i"
        name = abi.mangled("__spirv_AtomicIAdd", pointer + "jji")
        arguments = [
            (POINTER.format(reference.space), reference.pointer),
            ("i32", str(abi.scope(MemoryScope.DEVICE))),
            ("i32", str(abi.semantics(reference.order))),
            (kind.llvm, self.to(value, kind).text),
        ]
        return self.value(self.call(name, kind.llvm, arguments, "convergent"), kind)
