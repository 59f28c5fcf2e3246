"""Branch-free mathematical functions as LLVM IR, which LLVM vectorizes like any other code.

Functions of float32 compute in float64 with short polynomials, which gives about 0.5 ulp. Those of
float64 have longer ones and stay below 2 ulp. The polynomials are fitted at the first use.
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
# ln 2 and pi / 2 in parts, the first with trailing zeros so that products with integers are exact.
_LN2 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
_HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD
#: The largest angle that the three parts of pi / 2 reduce; larger ones are left to the C library.
_MAX_ANGLE = 1e9


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


def _error_over_root(v: float) -> float:
    return math.erf(math.sqrt(v)) / math.sqrt(v) if v > 1e-12 else 2 / math.sqrt(math.pi)


def _scaled_complement(t: float) -> float:
    x = 2 * (1 / t - 1)
    return math.erfc(x) * math.exp(x * x)


@functools.cache
def _series(name: str, is_long: bool) -> Sequence[float]:
    """Return the coefficients of a function; the short ones serve float32."""
    if is_long:
        return {
            "exp": [1 / math.factorial(k) for k in range(14)],
            "log": [1 / (2 * k + 1) for k in range(11)],
            "sin": [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)],
            "cos": [(-1) ** k / math.factorial(2 * k) for k in range(10)],
        }[name]
    if name == "log":
        return [1 / (2 * k + 1) for k in range(5)]
    return _fitted(
        *{
            "exp": (math.exp, -0.3466, 0.3466, 9),
            "sin": (_sine_over_root, 0, 0.62, 5),
            "cos": (lambda v: math.cos(math.sqrt(v)), 0, 0.62, 5),
            "erf": (_error_over_root, 0, 1, 9),
            "erfc": (_scaled_complement, 1 / 6.2, 1 / 1.22, 16),
        }[name]
    )


class _Writer:
    """Writes instructions on float64 values; each method returns the name of its result."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)

    def do(self, text: str) -> str:
        self.lines.append(f"  %t{len(self.lines)} = {text}")
        return f"%t{len(self.lines) - 1}"

    def add(self, a: str, b: str) -> str:
        return self.do(f"fadd double {a}, {b}")

    def sub(self, a: str, b: str) -> str:
        return self.do(f"fsub double {a}, {b}")

    def mul(self, a: str, b: str) -> str:
        return self.do(f"fmul double {a}, {b}")

    def div(self, a: str, b: str) -> str:
        return self.do(f"fdiv double {a}, {b}")

    def neg(self, a: str) -> str:
        return self.do(f"fneg double {a}")

    def fma(self, a: str, b: str, c: str) -> str:
        return self.do(f"call double @llvm.fmuladd.f64(double {a}, double {b}, double {c})")

    def poly(self, x: str, coefficients: Sequence[float]) -> str:
        value = _number(coefficients[-1])
        for each in coefficients[-2::-1]:
            value = self.fma(value, x, _number(each))
        return value

    def compare(self, order: str, a: str, b: str) -> str:
        return self.do(f"fcmp {order} double {a}, {b}")

    def select(self, condition: str, a: str, b: str, kind: str = "double") -> str:
        return self.do(f"select i1 {condition}, {kind} {a}, {kind} {b}")

    def bits(self, x: str) -> str:
        return self.do(f"bitcast double {x} to i64")

    def of_bits(self, bits: str) -> str:
        return self.do(f"bitcast i64 {bits} to double")

    def power_of_two(self, exponent: str) -> str:
        return self.of_bits(self.do(f"shl i64 {self.do(f'add i64 {exponent}, 1023')}, 52"))

    def abs(self, x: str) -> str:
        return self.do(f"call double @llvm.fabs.f64(double {x})")

    def floor(self, x: str) -> str:
        return self.do(f"call double @llvm.floor.f64(double {x})")

    def with_sign(self, x: str, of: str) -> str:
        return self.do(f"call double @llvm.copysign.f64(double {x}, double {of})")

    def at_most(self, x: str, most: float) -> str:
        return self.select(self.compare("ogt", x, _number(most)), _number(most), x)

    def at_least(self, x: str, least: float) -> str:
        return self.select(self.compare("olt", x, _number(least)), _number(least), x)

    def nearest(self, x: str, factor: float) -> tuple[str, str]:
        """Return the integer closest to a product, and it in the low bits of a sum."""
        total = self.fma(x, _number(factor), _number(_ROUNDING))
        return self.sub(total, _number(_ROUNDING)), total


def _exp(w: _Writer, x: str, is_long: bool) -> str:
    x = w.at_least(w.at_most(x, 710), -746 if is_long else -300)
    n, total = w.nearest(x, 1 / math.log(2))
    r = w.fma(n, _number(-_LN2[1]), w.fma(n, _number(-_LN2[0]), x))
    value = w.poly(r, _series("exp", is_long))
    exponent = w.do(f"sub i64 {w.bits(total)}, {_ROUNDING_BITS}")
    if not is_long:  # The exponents of float32 need one step.
        return w.mul(value, w.power_of_two(exponent))
    half = w.do(f"ashr i64 {exponent}, 1")
    for part in (half, w.do(f"sub i64 {exponent}, {half}")):
        value = w.mul(value, w.power_of_two(part))
    return value


def _log(w: _Writer, x: str, is_long: bool) -> str:
    scaled, shift = x, "0"
    if is_long:  # Subnormal float32 numbers are normal in float64.
        is_small = w.compare("olt", x, _number(2.0**-1022))
        scaled = w.select(is_small, w.mul(x, _number(2.0**54)), x)
        shift = w.select(is_small, "54", "0", "i64")
    bits = w.bits(scaled)
    exponent = w.do(f"ashr i64 {w.do(f'sub i64 {bits}, {_ROOT_HALF_BITS}')}, 52")
    m = w.of_bits(w.do(f"sub i64 {bits}, {w.do(f'shl i64 {exponent}, 52')}"))
    narrow = w.do(f"trunc i64 {w.do(f'sub i64 {exponent}, {shift}')} to i32")
    n = w.do(f"sitofp i32 {narrow} to double")
    f = w.sub(m, _number(1))
    s = w.div(f, w.add(f, _number(2)))
    squared = w.mul(s, s)
    series = _series("log", is_long)
    if is_long:
        # log(m) = f - (h - s * (h + r)) with h = f * f / 2, so that 2 * s is not rounded.
        h = w.mul(w.mul(f, f), _number(0.5))
        r = w.mul(w.mul(squared, _number(2)), w.poly(squared, series[1:]))
        inner = w.fma(s, w.add(h, r), w.mul(n, _number(_LN2[1])))
        value = w.fma(n, _number(_LN2[0]), w.sub(f, w.sub(h, inner)))
    else:
        value = w.fma(w.add(s, s), w.poly(squared, series), w.mul(n, _number(math.log(2))))
    value = w.select(w.compare("olt", x, _number(math.inf)), value, x)  # infinity and NaN stay
    value = w.select(w.compare("oeq", x, _number(0)), _number(-math.inf), value)
    return w.select(w.compare("olt", x, _number(0)), _number(math.nan), value)


def _circular(w: _Writer, x: str, tail: str, is_long: bool, is_cosine: bool) -> str:
    """Return the sine or cosine of the sum of an angle and a small tail."""
    n, total = w.nearest(x if is_long else w.add(x, tail), 2 / math.pi)
    first, second, third = (_number(-part) for part in _HALF_PI)
    near = w.fma(n, first, x)  # exact
    r = w.fma(n, second, near)
    rest = w.fma(n, second, w.sub(near, r))  # its rounding error
    r = w.add(r, w.add(w.fma(n, third, rest), tail))
    quadrant = w.do(f"add i64 {w.bits(total)}, {int(is_cosine)}")
    squared = w.mul(r, r)
    sines, cosines = _series("sin", is_long), _series("cos", is_long)
    if is_long:  # The series begin with 1, which is added last, so that it is rounded once.
        sine = w.fma(w.mul(r, squared), w.poly(squared, sines[1:]), r)
        cosine = w.fma(squared, w.poly(squared, cosines[1:]), _number(1))
    else:
        sine = w.mul(r, w.poly(squared, sines))
        cosine = w.poly(squared, cosines)
    is_odd = w.do(f"icmp ne i64 {w.do(f'and i64 {quadrant}, 1')}, 0")
    value = w.bits(w.select(is_odd, cosine, sine))
    flip = w.do(f"shl i64 {w.do(f'and i64 {quadrant}, 2')}, 62")
    return w.of_bits(w.do(f"xor i64 {value}, {flip}"))


def _tanh(w: _Writer, x: str) -> str:
    a = w.abs(x)
    e = _exp(w, w.at_most(w.add(a, a), 40), False)
    value = w.div(w.sub(e, _number(1)), w.add(e, _number(1)))
    value = w.select(w.compare("olt", a, _number(1e-4)), a, value)
    return w.with_sign(value, x)


def _erf(w: _Writer, x: str) -> str:
    a = w.at_most(w.abs(x), 4.2)
    small, tail = _error_parts(w, a)
    large = w.sub(_number(1), tail)
    return w.with_sign(w.select(w.compare("olt", a, _number(1)), small, large), x)


def _erfc(w: _Writer, x: str) -> str:
    a = w.at_most(w.abs(x), 10.3)
    small, tail = _error_parts(w, a)
    large = w.select(w.compare("olt", x, _number(0)), w.sub(_number(2), tail), tail)
    near = w.sub(_number(1), w.with_sign(small, x))
    return w.select(w.compare("olt", a, _number(0.5)), near, large)


def _error_parts(w: _Writer, a: str) -> tuple[str, str]:
    """Return erf of a number from 0 to 1, and erfc of one from 0.45 to 10.4."""
    squared = w.mul(a, a)
    small = w.mul(a, w.poly(squared, _series("erf", False)))
    t = w.div(_number(1), w.fma(a, _number(0.5), _number(1)))
    return small, w.mul(_exp(w, w.neg(squared), False), w.poly(t, _series("erfc", False)))


def _pow(w: _Writer, x: str, y: str) -> str:
    a = w.abs(x)
    product = w.at_least(w.at_most(w.mul(y, _log(w, a, True)), 300), -300)
    value = _exp(w, product, False)
    value = w.select(w.compare("oeq", y, _number(0)), _number(1), value)
    value = w.select(w.compare("oeq", a, _number(1)), _number(1), value)
    is_whole = w.compare("oeq", w.floor(y), y)
    half = w.mul(y, _number(0.5))
    is_odd = w.do(f"and i1 {is_whole}, {w.compare('une', w.floor(half), half)}")
    # By its sign bit, since odd powers of -0 are negative, too.
    is_negative = w.do(f"icmp slt i64 {w.bits(x)}, 0")
    value = w.select(w.do(f"and i1 {is_negative}, {is_odd}"), w.neg(value), value)
    is_below = w.compare("olt", x, _number(0))
    is_finite = w.compare("one", a, _number(math.inf))
    is_broken = w.do(f"and i1 {is_below}, {w.do(f'xor i1 {is_whole}, true')}")
    is_broken = w.do(f"and i1 {is_broken}, {is_finite}")
    value = w.select(is_broken, _number(math.nan), value)
    return w.select(w.compare("oeq", x, _number(1)), _number(1), value)


_SHORT: dict[str, Callable[[_Writer, str], str]] = {
    "exp": lambda w, x: _exp(w, x, False),
    "log": lambda w, x: _log(w, x, False),
    "tanh": _tanh,
    "erf": _erf,
    "erfc": _erfc,
    "exp2": lambda w, x: _exp(w, w.mul(x, _number(math.log(2))), False),
    "log2": lambda w, x: w.mul(_log(w, x, False), _number(1 / math.log(2))),
    "log10": lambda w, x: w.mul(_log(w, x, False), _number(1 / math.log(10))),
}
_LONG: dict[str, Callable[[_Writer, str], str]] = {
    "exp": lambda w, x: _exp(w, x, True),
    "log": lambda w, x: _log(w, x, True),
}


def body(name: str, kind: str) -> str | None:
    """Return the body of a function of %0 and %1; ``None`` if it has none here.

    Args:
        name: its name in OpenCL.
        kind: the LLVM type of the numbers.
    """
    if name in ("sin", "cos") and kind in ("float", "double"):
        return _angles(name, kind)
    if kind == "float" and (name == "pow" or name in _SHORT):
        w = _Writer("  %x = fpext float %0 to double")
        if name == "pow":
            w.lines.append("  %y = fpext float %1 to double")
        value = _pow(w, "%x", "%y") if name == "pow" else _SHORT[name](w, "%x")
        narrow = f"  %r = fptrunc double {value} to float\n  ret float %r"
        return "\n".join([*w.lines, narrow])
    if kind == "double" and name in _LONG:
        w = _Writer()
        value = _LONG[name](w, "%0")
        return "\n".join([*w.lines, f"  ret double {value}"])
    return None


def _angles(name: str, kind: str) -> str:
    """Return sine or cosine; large angles are reduced by a table, or left to LLVM's function."""
    if kind == "double":
        w = _Writer()
        is_large = w.compare("ogt", w.abs("%0"), _number(_MAX_ANGLE))
        w.lines += [f"  br i1 {is_large}, label %large, label %usual", "large:"]
        # LLVM vectorizes around a call of its own function, but not of the C library's.
        far = w.do(f"call double @llvm.{name}.f64(double %0)")
        w.lines += [f"  ret double {far}", "usual:"]
        value = _circular(w, "%0", _number(0), True, name == "cos")
        return "\n".join([*w.lines, f"  ret double {value}"])
    w = _Writer("  %x = fpext float %0 to double")
    is_large = w.compare("ogt", w.abs("%x"), _number(_MAX_ANGLE))
    is_large = w.do(f"and i1 {is_large}, {w.compare('one', w.abs('%x'), _number(math.inf))}")
    w.lines += [f"  br i1 {is_large}, label %large, label %usual", "large:"]
    bits = w.bits("%x")
    exponent = w.do(f"and i64 {w.do(f'lshr i64 {bits}, 52')}, 127")  # less 1023, without the sign
    exponent = w.do(f"and i64 {w.do(f'add i64 {exponent}, 1')}, 127")
    scale = w.power_of_two(w.do(f"sub i64 {_MANTISSA}, {exponent}"))
    mantissa = w.mul("%x", scale)
    parts = []
    for column in (0, 1):
        place = f"getelementptr [2 x double], ptr @{ANGLES}, i64 {exponent}, i64 {column}"
        factor = w.do(f"load double, ptr {w.do(place)}")
        parts.append(w.mul(mantissa, factor))
    w.lines += ["  br label %usual", "usual:"]
    angle = w.do(f"phi double [ %x, %start ], [ {parts[0]}, %large ]")
    tail = w.do(f"phi double [ {_number(0)}, %start ], [ {parts[1]}, %large ]")
    value = _circular(w, angle, tail, False, name == "cos")
    value = w.do(f"fptrunc double {value} to float")
    return "\n".join(["start:", *w.lines, f"  ret float {value}"])


#: The bits behind the point of a float32's mantissa.
_MANTISSA = 23
#: The table for large angles: 2**(exponent - 23) modulo 2 pi, in two parts.
ANGLES = "dparray.angles"


@functools.cache
def angles() -> str:
    """Return the definition of the table, by the exponents of float32.

    The first parts have 29 bits, so that their products with mantissas are exact.
    """
    scale = 1 << 400
    pi = 4 * (4 * _arctangent(5, scale) - _arctangent(239, scale))
    rows = []
    for exponent in range(128):
        rest = (scale << exponent >> _MANTISSA) % (2 * pi)
        value = rest - 2 * pi if rest > pi else rest
        high = round(value / scale * 2**27) / 2**27
        low = (value - int(high * 2**27) * (scale >> 27)) / scale
        rows.append(f"[2 x double] [double {_number(high)}, double {_number(low)}]")
    kind = f"[{len(rows)} x [2 x double]]"
    return f"@{ANGLES} = internal unnamed_addr constant {kind} [{', '.join(rows)}]\n"


def _arctangent(inverse: int, scale: int) -> int:
    """Return the arctangent of 1 / inverse, times a scale."""
    power, total, k = scale // inverse, 0, 0
    while power:
        total += (-power if k % 2 else power) // (2 * k + 1)
        power, k = power // (inverse * inverse), k + 1
    return total
