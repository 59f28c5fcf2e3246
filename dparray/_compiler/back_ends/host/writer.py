"""Write arithmetic of one type of float as LLVM IR, and fit polynomials to functions."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

#: An operand: the name of a value, or a number.
Value = str | float
#: The bits of a mantissa, the exponent of the smallest normal number, and the codes of bytes.
_FORMATS = {"float": (23, -126, "f", "i"), "double": (52, -1022, "d", "q")}


def fitted(function: Callable[[float], float], low: float, high: float, degree: int) -> list[float]:
    """Return the coefficients, lowest first, of a polynomial close to a function."""
    nodes = np.cos(np.pi * (np.arange(4 * degree) + 0.5) / (4 * degree))
    x = (high + low) / 2 + nodes * (high - low) / 2
    y = np.array([function(each) for each in x])
    fit = Chebyshev.fit(x, y, degree, domain=[low, high]).convert(kind=Polynomial)
    return [float(each) for each in fit.coef]


def interpolated(
    function: Callable[[Decimal], Decimal], low: float, high: float, degree: int
) -> list[float]:
    """Return the coefficients, lowest first, of a polynomial close to a function.

    It has the function's values at Chebyshev's nodes, by Newton's divided differences with 60
    digits, so that only the rounding of the coefficients is left.
    """
    angles = [math.pi * (k + 0.5) / (degree + 1) for k in range(degree + 1)]
    with localcontext() as context:
        context.prec = 60
        nodes = [Decimal((low + high) / 2 + (high - low) / 2 * math.cos(each)) for each in angles]
        divided = [function(each) for each in nodes]
        for step in range(1, degree + 1):
            for k in range(degree, step - 1, -1):
                divided[k] = (divided[k] - divided[k - 1]) / (nodes[k] - nodes[k - step])
        found: list[Decimal] = []
        for node, constant in zip(nodes[::-1], divided[::-1], strict=True):
            found = [
                a - node * b
                for a, b in zip([Decimal(0), *found], [*found, Decimal(0)], strict=True)
            ]
            found[0] += constant
    return [float(each) for each in found]


class Writer:
    """Writes instructions on floats of one type, or on vectors of them.

    Operands are names of values or numbers; each method returns the name of its result.

    Attributes:
        lines: the instructions.
        lanes: the numbers in a vector; 0 if there are no vectors.
        type: the LLVM type of a number.
        integer: the LLVM type of an integer with as many bits.
        mantissa: the bits of its mantissa.
        suffix: the end of the names of LLVM's functions for a number.
        rounding: adding it rounds a number to an integer, in the low bits of the sum.
    """

    def __init__(self, kind: str, lanes: int = 0, lines: list[str] | None = None) -> None:
        self.lines: list[str] = [] if lines is None else lines
        self.type, self.lanes = kind, lanes
        self.mantissa, self._least, self._float, self._int = _FORMATS[kind]
        self.integer = "i32" if kind == "float" else "i64"
        self.rounding = 1.5 * 2.0**self.mantissa
        self.suffix = self.integer.replace("i", "f")

    def bits_of(self, value: float) -> int:
        """Return the bits of a number as an integer."""
        return int(struct.unpack(self._int, struct.pack(self._float, value))[0])

    def kind(self, element: str) -> str:
        """Return the type of a number, or of a vector of them."""
        return f"<{self.lanes} x {element}>" if self.lanes else element

    def do(self, text: str) -> str:
        """Write an instruction with a result."""
        self.lines.append(f"  %t{len(self.lines)} = {text}")
        return f"%t{len(self.lines) - 1}"

    def _operand(self, value: Value, element: str) -> str:
        if isinstance(value, str):
            return value
        if element == self.type:  # LLVM writes the bits of a float32 as a float64, too.
            (rounded,) = struct.unpack(self._float, struct.pack(self._float, value))
            number = "0x" + struct.pack(">d", rounded).hex().upper()
        else:
            number = str(int(value))
        return f"splat ({element} {number})" if self.lanes else number

    def real(self, operation: str, *operands: Value) -> str:
        """Write an operation of floats."""
        given = ", ".join(self._operand(each, self.type) for each in operands)
        return self.do(f"{operation} {self.kind(self.type)} {given}")

    def whole(self, operation: str, *operands: Value) -> str:
        """Write an operation of integers."""
        given = ", ".join(self._operand(each, self.integer) for each in operands)
        return self.do(f"{operation} {self.kind(self.integer)} {given}")

    def call(self, name: str, *operands: Value) -> str:
        """Write a call of a function of LLVM's."""
        kind, vector = self.kind(self.type), f"v{self.lanes}" if self.lanes else ""
        given = ", ".join(f"{kind} {self._operand(each, self.type)}" for each in operands)
        return self.do(f"call {kind} @llvm.{name}.{vector}{self.suffix}({given})")

    def add(self, a: Value, b: Value) -> str:
        return self.real("fadd", a, b)

    def sub(self, a: Value, b: Value) -> str:
        return self.real("fsub", a, b)

    def mul(self, a: Value, b: Value) -> str:
        return self.real("fmul", a, b)

    def div(self, a: Value, b: Value) -> str:
        return self.real("fdiv", a, b)

    def neg(self, a: str) -> str:
        return self.real("fneg", a)

    def abs(self, x: str) -> str:
        return self.call("fabs", x)

    def fma(self, a: Value, b: Value, c: Value) -> str:
        return self.call("fmuladd", a, b, c)

    def poly(self, x: str, coefficients: Sequence[float]) -> str:
        value: Value = coefficients[-1]
        for each in coefficients[-2::-1]:
            value = self.fma(value, x, each)
        return str(value)

    def compare(self, order: str, a: Value, b: Value) -> str:
        return self.real(f"fcmp {order}", a, b)

    def select(self, condition: str, a: Value, b: Value, element: str = "") -> str:
        element = element or self.type
        kind = self.kind(element)
        a, b = self._operand(a, element), self._operand(b, element)
        return self.do(f"select {self.kind('i1')} {condition}, {kind} {a}, {kind} {b}")

    def bits(self, x: str) -> str:
        return self.do(f"bitcast {self.kind(self.type)} {x} to {self.kind(self.integer)}")

    def of_bits(self, bits: str) -> str:
        return self.do(f"bitcast {self.kind(self.integer)} {bits} to {self.kind(self.type)}")

    def power_of_two(self, exponent: str) -> str:
        """Return the power of two whose exponent is in the low bits of an integer."""
        shifted = self.whole("shl", exponent, self.mantissa)
        return self.of_bits(self.whole("add", shifted, self.bits_of(1)))

    def with_sign(self, x: str, of: str) -> str:
        return self.call("copysign", x, of)

    def at_most(self, x: str, most: float) -> str:
        return self.select(self.compare("ogt", x, most), most, x)

    def at_least(self, x: str, least: float) -> str:
        return self.select(self.compare("olt", x, least), least, x)

    def head(self, x: str, cleared: int) -> str:
        """Return a number without the lowest bits of its mantissa."""
        return self.of_bits(self.whole("and", self.bits(x), -1 << cleared))

    def split(self, x: str) -> tuple[str, str]:
        """Return m - 1 and an integer n: x is m * 2**n, and m is from root 1/2 to root 2."""
        bits = self.bits(x)
        exponent = self.whole("sub", bits, self.bits_of(0.5**0.5))
        exponent = self.whole("ashr", exponent, self.mantissa)
        shifted = self.whole("shl", exponent, self.mantissa)
        return self.sub(self.of_bits(self.whole("sub", bits, shifted)), 1), exponent

    def split_any(self, x: str) -> tuple[str, str]:
        """Return the same of a number that may be subnormal; n is a float."""
        shift = self.mantissa + 2
        is_small = self.compare("olt", x, 2.0**self._least)
        f, n = self.split(self.select(is_small, self.mul(x, 2.0**shift), x))
        return f, self.float_of(self.whole("sub", n, self.select(is_small, shift, 0, self.integer)))

    def float_of(self, n: str) -> str:
        """Return a float of an integer of at most 32 bits."""
        if self.integer == "i64":
            n = self.do(f"trunc {self.kind('i64')} {n} to {self.kind('i32')}")
        return self.do(f"sitofp {self.kind('i32')} {n} to {self.kind(self.type)}")

    def at_ends(self, x: str, logarithm: str) -> str:
        """Return a logarithm, or its value where x is infinite, zero, negative or NaN."""
        value = self.select(self.compare("olt", x, np.inf), logarithm, x)
        value = self.select(self.compare("oeq", x, 0), -np.inf, value)
        return self.select(self.compare("olt", x, 0), np.nan, value)

    def in_quadrant(self, quadrant: str, sine: str, cosine: str) -> str:
        """Return the sine of an angle, from the sine and cosine of its rest in a quadrant.

        The quadrant is in the low bits of an integer; that of a cosine is one more.
        """
        is_odd = self.whole("icmp ne", self.whole("and", quadrant, 1), 0)
        value = self.bits(self.select(is_odd, cosine, sine))
        flip = self.whole("shl", self.whole("and", quadrant, 2), int(self.integer[1:]) - 2)
        return self.of_bits(self.whole("xor", value, flip))
