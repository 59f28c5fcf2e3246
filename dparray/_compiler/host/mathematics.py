"""Mathematical functions as LLVM IR, which LLVM vectorizes like any other code.

Functions of float32 compute in float64 with short polynomials, which gives at most 0.51 ulp. In
float32 that takes about as many instructions, since sums need two numbers. Functions of float64
stay below 2 ulp. The polynomials are fitted at the first use.

All are free of branches, except sine and cosine of large angles. Those two are functions with a
variant for each size of vector (``apart``), so that one branch serves a whole vector.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Sequence

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

# Adding it rounds a float64 to an integer, which is in the low bits of the sum.
_ROUNDING = 1.5 * 2.0**52
_ROUNDING_BITS = struct.unpack("q", struct.pack("d", _ROUNDING))[0]
_ONE_BITS = struct.unpack("q", struct.pack("d", 1.0))[0]
# ln 2, pi / 2 and pi in parts; the first ones have trailing zeros, so that products with integers
# are exact.
_LN2 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
_HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
_PI = (3373259426 / 2**30, 1.2154201013012384e-10)
_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD
#: The largest angle for which products with the parts of pi are exact; the C library has the rest.
_MAX_ANGLE = 1e6
#: The sizes of vectors for which sine and cosine have variants.
_LANES = {"float": (2, 4, 8, 16), "double": (2, 4, 8)}
#: The beginning of the names of functions with variants.
APART = "dparray.apart."


def _number(value: float) -> str:
    return "0x" + struct.pack(">d", float(value)).hex().upper()


def _fitted(
    function: Callable[[float], float], low: float, high: float, degree: int
) -> list[float]:
    """Return the coefficients, lowest first, of a polynomial close to a function."""
    nodes = np.cos(np.pi * (np.arange(4 * degree) + 0.5) / (4 * degree))
    x = (high + low) / 2 + nodes * (high - low) / 2
    y = np.array([function(each) for each in x])
    fit = Chebyshev.fit(x, y, degree, domain=[low, high]).convert(kind=Polynomial)
    return [float(each) for each in fit.coef]


def _sine_over_root(v: float) -> float:
    return math.sin(math.sqrt(v)) / math.sqrt(v) if v > 1e-12 else 1 - v / 6


def _tangent_over_root(v: float) -> float:
    return math.atanh(math.sqrt(v)) / math.sqrt(v) if v > 1e-12 else 1 + v / 3


def _error_over_root(v: float) -> float:
    return math.erf(math.sqrt(v)) / math.sqrt(v) if v > 1e-12 else 2 / math.sqrt(math.pi)


def _scaled_complement(t: float) -> float:
    x = 2 * (1 / t - 1)
    return math.erfc(x) * math.exp(x * x)


@functools.cache
def _series(name: str) -> Sequence[float]:
    """Return the coefficients of a function, lowest first."""
    if name == "exp":
        return [1 / math.factorial(k) for k in range(14)]
    if name == "log":
        return [1 / (2 * k + 1) for k in range(11)]
    if name == "sin":
        return [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)]
    if name == "cos":
        return [(-1) ** k / math.factorial(2 * k) for k in range(10)]
    return _fitted(
        *{
            "short exp": (lambda f: math.expm1(f * math.log(2)) / f, -0.5, 0.5, 6),
            "short log": (_tangent_over_root, 0, 0.0295, 4),
            "log for pow": (lambda f: math.log1p(f) / f, _ROOT - 1, 2 * _ROOT - 1, 15),
            "short sin": (_sine_over_root, 0, (math.pi / 2) ** 2, 5),
            "erf": (_error_over_root, 0, 1, 9),
            "erfc": (_scaled_complement, 1 / 6.2, 1 / 1.22, 16),
        }[name]
    )


_ROOT = math.sqrt(0.5)
_Value = str | float


class _Writer:
    """Writes instructions on float64 values, or on vectors of them.

    Operands are names of values or numbers; each method returns the name of its result.
    """

    def __init__(self, lanes: int = 0) -> None:
        self.lines: list[str] = []
        self._lanes = lanes
        self._suffix = f"v{lanes}f64" if lanes else "f64"

    def kind(self, element: str) -> str:
        """Return the type of a number, or of a vector of them."""
        return f"<{self._lanes} x {element}>" if self._lanes else element

    def do(self, text: str) -> str:
        self.lines.append(f"  %t{len(self.lines)} = {text}")
        return f"%t{len(self.lines) - 1}"

    def _operand(self, value: _Value, element: str) -> str:
        if isinstance(value, str):
            return value
        text = f"{element} {_number(value) if element == 'double' else int(value)}"
        return f"splat ({text})" if self._lanes else text.split()[1]

    def real(self, operation: str, *operands: _Value) -> str:
        """Write an operation of float64 operands."""
        given = ", ".join(self._operand(each, "double") for each in operands)
        return self.do(f"{operation} {self.kind('double')} {given}")

    def whole(self, operation: str, *operands: _Value) -> str:
        """Write an operation of int64 operands."""
        given = ", ".join(self._operand(each, "i64") for each in operands)
        return self.do(f"{operation} {self.kind('i64')} {given}")

    def call(self, name: str, *operands: _Value) -> str:
        """Write a call of a function of LLVM's."""
        kind = self.kind("double")
        given = ", ".join(f"{kind} {self._operand(each, 'double')}" for each in operands)
        return self.do(f"call {kind} @llvm.{name}.{self._suffix}({given})")

    def add(self, a: _Value, b: _Value) -> str:
        return self.real("fadd", a, b)

    def sub(self, a: _Value, b: _Value) -> str:
        return self.real("fsub", a, b)

    def mul(self, a: _Value, b: _Value) -> str:
        return self.real("fmul", a, b)

    def div(self, a: _Value, b: _Value) -> str:
        return self.real("fdiv", a, b)

    def neg(self, a: str) -> str:
        return self.real("fneg", a)

    def abs(self, x: str) -> str:
        return self.call("fabs", x)

    def fma(self, a: _Value, b: _Value, c: _Value) -> str:
        return self.call("fmuladd", a, b, c)

    def poly(self, x: str, coefficients: Sequence[float]) -> str:
        value: _Value = coefficients[-1]
        for each in coefficients[-2::-1]:
            value = self.fma(value, x, each)
        return str(value)

    def compare(self, order: str, a: _Value, b: _Value) -> str:
        return self.real(f"fcmp {order}", a, b)

    def select(self, condition: str, a: _Value, b: _Value, element: str = "double") -> str:
        kind = self.kind(element)
        a, b = self._operand(a, element), self._operand(b, element)
        return self.do(f"select {self.kind('i1')} {condition}, {kind} {a}, {kind} {b}")

    def bits(self, x: str) -> str:
        return self.do(f"bitcast {self.kind('double')} {x} to {self.kind('i64')}")

    def of_bits(self, bits: str) -> str:
        return self.do(f"bitcast {self.kind('i64')} {bits} to {self.kind('double')}")

    def power_of_two(self, exponent: str) -> str:
        """Return the power of two whose exponent is in the low bits of an integer."""
        return self.of_bits(self.whole("add", self.whole("shl", exponent, 52), _ONE_BITS))

    def with_sign(self, x: str, of: str) -> str:
        return self.call("copysign", x, of)

    def at_most(self, x: str, most: float) -> str:
        return self.select(self.compare("ogt", x, most), most, x)

    def at_least(self, x: str, least: float) -> str:
        return self.select(self.compare("olt", x, least), least, x)


def _growth(w: _Writer, x: str, factor: float = 1 / math.log(2)) -> tuple[str, str]:
    """Return two numbers, s and t, so that s + s * t is 2**(x * factor); it is at most 2**200."""
    x = w.at_least(w.at_most(x, 200 / factor), -200 / factor)
    total = w.fma(x, factor, _ROUNDING)
    rest = w.fma(x, factor, w.sub(_ROUNDING, total))
    return w.power_of_two(w.bits(total)), w.mul(rest, w.poly(rest, _series("short exp")))


def _exp(w: _Writer, x: str, factor: float = 1 / math.log(2)) -> str:
    scale, tail = _growth(w, x, factor)
    return w.fma(scale, tail, scale)


def _long_exp(w: _Writer, x: str) -> str:
    x = w.at_least(w.at_most(x, 710), -746)
    total = w.fma(x, 1 / math.log(2), _ROUNDING)
    n = w.sub(total, _ROUNDING)
    r = w.fma(n, -_LN2[1], w.fma(n, -_LN2[0], x))
    value = w.poly(r, _series("exp"))
    exponent = w.whole("sub", w.bits(total), _ROUNDING_BITS)
    half = w.whole("ashr", exponent, 1)
    for part in (half, w.whole("sub", exponent, half)):  # for subnormal results
        value = w.mul(value, w.power_of_two(part))
    return value


def _split(w: _Writer, x: str, shift: _Value = 0) -> tuple[str, str]:
    """Return m - 1 and n: x is m * 2**(n + shift), and m is from the root of 1/2 to that of 2."""
    bits = w.bits(x)
    exponent = w.whole("ashr", w.whole("sub", bits, _ROOT_HALF_BITS), 52)
    m = w.of_bits(w.whole("sub", bits, w.whole("shl", exponent, 52)))
    narrow = f"trunc {w.kind('i64')} {w.whole('sub', exponent, shift)} to {w.kind('i32')}"
    n = w.do(f"sitofp {w.kind('i32')} {w.do(narrow)} to {w.kind('double')}")
    return w.sub(m, 1), n


def _log(w: _Writer, x: str) -> str:
    f, n = _split(w, x)  # Subnormal float32 numbers are normal in float64.
    s = w.div(f, w.add(f, 2))
    near = w.mul(w.add(s, s), w.poly(w.mul(s, s), _series("short log")))
    return _at_ends(w, x, w.fma(n, math.log(2), near))


def _log_for_pow(w: _Writer, x: str) -> str:
    """Return a logarithm that is precise enough for products up to 128."""
    f, n = _split(w, x)
    near = w.mul(f, w.poly(f, _series("log for pow")))
    return _at_ends(w, x, w.fma(n, math.log(2), near))


def _long_log(w: _Writer, x: str) -> str:
    is_small = w.compare("olt", x, 2.0**-1022)
    scaled = w.select(is_small, w.mul(x, 2.0**54), x)
    f, n = _split(w, scaled, w.select(is_small, 54, 0, "i64"))
    s = w.div(f, w.add(f, 2))
    squared = w.mul(s, s)
    # log(m) = f - (h - s * (h + r)) with h = f * f / 2, so that 2 * s is not rounded.
    h = w.mul(w.mul(f, f), 0.5)
    r = w.mul(w.mul(squared, 2), w.poly(squared, _series("log")[1:]))
    inner = w.fma(s, w.add(h, r), w.mul(n, _LN2[1]))
    return _at_ends(w, x, w.fma(n, _LN2[0], w.sub(f, w.sub(h, inner))))


def _at_ends(w: _Writer, x: str, logarithm: str) -> str:
    value = w.select(w.compare("olt", x, math.inf), logarithm, x)  # infinity and NaN stay
    value = w.select(w.compare("oeq", x, 0), -math.inf, value)
    return w.select(w.compare("olt", x, 0), math.nan, value)


def _circular(w: _Writer, x: str, is_cosine: bool) -> str:
    """Return the sine or cosine of a float32 angle."""
    turns = w.fma(x, 1 / math.pi, -0.5 if is_cosine else 0.0)
    total = w.add(turns, _ROUNDING)
    n = w.add(w.sub(total, _ROUNDING), 0.5) if is_cosine else w.sub(total, _ROUNDING)
    r = w.fma(n, -_PI[1], w.fma(n, -_PI[0], x))
    # Past n + 1/2 half turns, the cosine is the sine of the rest, or its negative for even n.
    series = [-each if is_cosine else each for each in _series("short sin")]
    value = w.mul(r, w.poly(w.mul(r, r), series))
    flip = w.whole("shl", w.bits(total), 63)
    return w.of_bits(w.whole("xor", w.bits(value), flip))


def _long_circular(w: _Writer, x: str, is_cosine: bool) -> str:
    total = w.fma(x, 2 / math.pi, _ROUNDING)
    n = w.sub(total, _ROUNDING)
    near = w.fma(n, -_HALF_PI[0], x)  # exact
    r = w.fma(n, -_HALF_PI[1], near)
    rest = w.fma(n, -_HALF_PI[1], w.sub(near, r))  # its rounding error
    r = w.add(r, w.fma(n, -_HALF_PI[2], rest))
    quadrant = w.whole("add", w.bits(total), is_cosine)
    squared = w.mul(r, r)
    # The series begin with 1, which is added last, so that it is rounded once.
    sine = w.fma(w.mul(r, squared), w.poly(squared, _series("sin")[1:]), r)
    cosine = w.fma(squared, w.poly(squared, _series("cos")[1:]), 1)
    is_odd = w.whole("icmp ne", w.whole("and", quadrant, 1), 0)
    value = w.bits(w.select(is_odd, cosine, sine))
    flip = w.whole("shl", w.whole("and", quadrant, 2), 62)
    return w.of_bits(w.whole("xor", value, flip))


def _tanh(w: _Writer, x: str) -> str:
    scale, tail = _growth(w, w.at_most(w.abs(x), 20), 2 / math.log(2))
    less = w.fma(scale, tail, w.sub(scale, 1))  # exp(2 * x) - 1
    return w.with_sign(w.div(less, w.add(less, 2)), x)


def _erf(w: _Writer, x: str) -> str:
    a = w.at_most(w.abs(x), 4.2)
    small, tail = _error_parts(w, a)
    return w.with_sign(w.select(w.compare("olt", a, 1), small, w.sub(1, tail)), x)


def _erfc(w: _Writer, x: str) -> str:
    a = w.at_most(w.abs(x), 10.3)
    small, tail = _error_parts(w, a)
    large = w.select(w.compare("olt", x, 0), w.sub(2, tail), tail)
    near = w.sub(1, w.with_sign(small, x))
    return w.select(w.compare("olt", a, 0.5), near, large)


def _error_parts(w: _Writer, a: str) -> tuple[str, str]:
    """Return erf of a number from 0 to 1, and erfc of one from 0.45 to 10.4."""
    squared = w.mul(a, a)
    small = w.mul(a, w.poly(squared, _series("erf")))
    t = w.div(1, w.fma(a, 0.5, 1))
    return small, w.mul(_exp(w, w.neg(squared)), w.poly(t, _series("erfc")))


def _pow(w: _Writer, x: str, y: str) -> str:
    a = w.abs(x)
    value = _exp(w, w.mul(y, _log_for_pow(w, a)))
    value = w.select(w.compare("oeq", y, 0), 1, value)
    value = w.select(w.compare("oeq", a, 1), 1, value)
    is_whole = w.compare("oeq", w.call("floor", y), y)
    half = w.mul(y, 0.5)
    is_odd = w.do(f"and i1 {is_whole}, {w.compare('une', w.call('floor', half), half)}")
    # By its sign bit, since odd powers of -0 are negative, too.
    is_negative = w.whole("icmp slt", w.bits(x), 0)
    value = w.select(w.do(f"and i1 {is_negative}, {is_odd}"), w.neg(value), value)
    is_below = w.compare("olt", x, 0)
    is_finite = w.compare("one", a, math.inf)
    is_broken = w.do(f"and i1 {is_below}, {w.do(f'xor i1 {is_whole}, true')}")
    is_broken = w.do(f"and i1 {is_broken}, {is_finite}")
    value = w.select(is_broken, math.nan, value)
    return w.select(w.compare("oeq", x, 1), 1, value)


_SHORT: dict[str, Callable[..., str]] = {
    "exp": _exp,
    "exp2": lambda w, x: _exp(w, x, 1.0),
    "log": _log,
    "log2": lambda w, x: w.mul(_log(w, x), 1 / math.log(2)),
    "log10": lambda w, x: w.mul(_log(w, x), 1 / math.log(10)),
    "tanh": _tanh,
    "erf": _erf,
    "erfc": _erfc,
    "pow": _pow,
}
_LONG: dict[str, Callable[..., str]] = {"exp": _long_exp, "log": _long_log}


def body(name: str, kind: str) -> str | None:
    """Return the body of a function of %0 and %1; ``None`` if it has none here.

    Args:
        name: its name in OpenCL.
        kind: the LLVM type of the numbers.
    """
    if name in ("sin", "cos") and kind in _LANES:
        return f"  %r = call {kind} @{APART}{name}.{kind}({kind} %0)\n  ret {kind} %r"
    w = _Writer()
    if kind == "float" and name in _SHORT:
        given = [w.do(f"fpext float %{at} to double") for at in range(1 + (name == "pow"))]
        value = w.do(f"fptrunc double {_SHORT[name](w, *given)} to float")
    elif kind == "double" and name in _LONG:
        value = _LONG[name](w, "%0")
    else:
        return None
    return "\n".join([*w.lines, f"  ret {kind} {value}"])


def apart(name: str) -> str:
    """Return the definitions of sine or cosine, for a number and for vectors.

    LLVM calls the variants for vectors where it vectorizes a call; they are inlined afterwards.
    """
    function, kind = name.removeprefix(APART).split(".")
    variants = [f"_ZGV_LLVM_N{lanes}v_{name}({name}.{lanes})" for lanes in _LANES[kind]]
    marks = f'noinline "vector-function-abi-variant"="{",".join(variants)}"'
    texts = [_angle(name, function, kind, 0, marks)]
    for lanes in _LANES[kind]:
        texts.append(_angle(f"{name}.{lanes}", function, kind, lanes, "alwaysinline"))
    return "".join(texts)


def _angle(name: str, function: str, kind: str, lanes: int, marks: str) -> str:
    w = _Writer(lanes)
    own, double = w.kind(kind), w.kind("double")
    is_long = kind == "double"
    x = "%0" if is_long else w.do(f"fpext {own} %0 to {double}")
    is_large = w.compare("ogt", w.abs(x), _MAX_ANGLE)
    if lanes:
        is_large = w.do(f"call i1 @llvm.vector.reduce.or.v{lanes}i1({w.kind('i1')} {is_large})")
    w.lines.append(f"  br i1 {is_large}, label %large, label %usual\nlarge:")

    def returned(value: str) -> None:
        value = value if is_long else w.do(f"fptrunc {double} {value} to {own}")
        w.lines.append(f"  ret {own} {value}")

    far = "poison"
    for lane in range(lanes):
        one = w.do(f"extractelement {double} {x}, i32 {lane}")
        one = w.do(f"call double @llvm.{function}.f64(double {one})")
        far = w.do(f"insertelement {double} {far}, double {one}, i32 {lane}")
    returned(far if lanes else w.call(function, x))
    w.lines.append("usual:")
    returned((_long_circular if is_long else _circular)(w, x, function == "cos"))
    lines = "\n".join(w.lines)
    return f"define {own} @{name}({own} %0) nounwind memory(none) {marks} {{\n{lines}\n}}\n"
