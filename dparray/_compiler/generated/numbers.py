"""Numbers in LLVM's text: their types, as in Numba and NumPy, and their spelling."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np


class Kind(NamedTuple):
    """A type of numbers: kind (``"b"``, ``"i"``, ``"u"`` or ``"f"``), bits, name in LLVM."""

    kind: str
    bits: int
    llvm: str

    @property
    def code(self) -> str:
        """The code of the type in the names of OpenCL's functions."""
        return {32: "f", 64: "d"}[self.bits]

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"


def _kinds() -> dict[str, Kind]:
    found = {"bool": Kind("b", 1, "i1")}
    for bits in (8, 16, 32, 64):
        found[f"int{bits}"] = Kind("i", bits, f"i{bits}")
        found[f"uint{bits}"] = Kind("u", bits, f"i{bits}")
    return found | {"float32": Kind("f", 32, "float"), "float64": Kind("f", 64, "double")}


KINDS = _kinds()
BOOL, INT32, INT64, UINT64 = (KINDS[name] for name in ("bool", "int32", "int64", "uint64"))
UINT16, SINGLE, DOUBLE = (KINDS[name] for name in ("uint16", "float32", "float64"))


class Value(NamedTuple):
    """A number.

    Attributes:
        text: LLVM's.
        kind: its type.
        written: the number as it is written in the text, which takes the type of what is beside it.
        counts: made of the numbers of trips, so it does not overflow.
    """

    text: str
    kind: Kind
    written: int | float | None = None
    counts: bool = False


def constant(number: float, kind: Kind) -> str:
    """Return the spelling of a number in LLVM."""
    if kind.kind == "f":
        rounded = float(np.float32(number)) if kind.bits == 32 else float(number)
        return "0x" + struct.pack(">d", rounded).hex().upper()
    if kind.kind == "b":
        return "true" if number else "false"
    wrapped = int(number) % (1 << kind.bits)
    is_above = kind.kind == "i" and wrapped >> (kind.bits - 1)
    return str(wrapped - (1 << kind.bits) if is_above else wrapped)


def written(number: float) -> Value:
    """Return the value of a literal."""
    if isinstance(number, bool):
        return Value(constant(number, BOOL), BOOL)
    kind = INT64 if isinstance(number, int) else DOUBLE
    return Value(constant(number, kind), kind, number)


def is_weak(value: Value) -> bool:
    """Return whether a value is an integer literal that fits uint64."""
    return isinstance(value.written, int) and value.written >= 0


def common(first: Value, second: Value) -> Kind:
    """Return the type in which two numbers are combined."""
    a, b = first.kind, second.kind
    if "f" in (a.kind, b.kind):
        is_single = all(each.kind == "f" and each.bits == 32 for each in (a, b))
        return SINGLE if is_single else DOUBLE
    if (a == UINT64 and is_weak(second)) or (b == UINT64 and is_weak(first)):
        return UINT64
    return UINT64 if (a.kind, b.kind) == ("u", "u") else INT64


def in_memory(kind: Kind) -> str:
    return "i8" if kind.kind == "b" else kind.llvm


#: The functions of ``math`` that have the same name in OpenCL, for one and for two numbers.
UNARY = frozenset(
    (
        *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sin", "sinh"),
        *("tan", "tanh", "cbrt", "sqrt", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2"),
        *("erf", "erfc", "lgamma", "ceil", "floor", "trunc", "fabs"),
    )
)
BINARY = frozenset(("atan2", "copysign", "fmod", "hypot", "nextafter", "pow"))

# The power of two integers modulo 2**64, the same as in `_language.intrinsics`.
INTEGER_POWER = """
define internal i64 @integer_power(i64 %base, i64 %exponent, i1 %is_negative) alwaysinline {
  %is_one = icmp eq i64 %base, 1
  %is_minus_one = icmp eq i64 %base, -1
  %has_inverse = or i1 %is_one, %is_minus_one
  %odd = and i64 %exponent, 1
  %times = select i1 %is_negative, i64 %odd, i64 %exponent
  %inverse = zext i1 %has_inverse to i64
  %start = select i1 %is_negative, i64 %inverse, i64 1
  br label %test
test:
  %left = phi i64 [ %times, %0 ], [ %halved, %step ]
  %factor = phi i64 [ %base, %0 ], [ %squared, %step ]
  %result = phi i64 [ %start, %0 ], [ %next, %step ]
  %is_done = icmp eq i64 %left, 0
  br i1 %is_done, label %end, label %step
step:
  %bit = and i64 %left, 1
  %is_odd = icmp ne i64 %bit, 0
  %product = mul i64 %result, %factor
  %next = select i1 %is_odd, i64 %product, i64 %result
  %squared = mul i64 %factor, %factor
  %halved = lshr i64 %left, 1
  br label %test
end:
  ret i64 %result
}
"""
