"""Mathematical functions as LLVM IR, which LLVM vectorizes like any other code.

Functions of float32 compute in float32, with at most 2 ulp; ``pow`` and ``erfc``, and those that
``float32.py`` lacks, compute in float64, which takes fewer instructions than their numbers in
parts. Functions of float64 are in ``float64.py``. The polynomials are fitted at the first use.

All are free of branches, except sine, cosine and tangent of large angles. Those are functions with
a variant for each size of vector (``apart``), so that one branch serves a whole vector.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from dparray._compiler.back_ends.host import float32, float64
from dparray._compiler.back_ends.host.writer import Writer, fitted

# pi / 2 and pi in parts; the first ones have trailing zeros, so that products with integers
# are exact.
_HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
_PI = (3373259426 / 2**30, 1.2154201013012384e-10)
#: The largest angle for which products with the parts of pi are exact; the C library has the rest.
_MAX_ANGLE = 1e6
#: The sizes of vectors for which sine, cosine and tangent have variants.
_LANES = {"float": (2, 4, 8, 16), "double": (2, 4, 8)}
#: The beginning of the names of functions with variants.
APART = "dparray.apart."
_ROOT = math.sqrt(0.5)


def _sine_over_root(v: float) -> float:
    return math.sin(math.sqrt(v)) / math.sqrt(v) if v > 1e-12 else 1 - v / 6


def _scaled_complement(t: float) -> float:
    x = 2 * (1 / t - 1)
    return math.erfc(x) * math.exp(x * x)


@functools.cache
def _series(name: str) -> Sequence[float]:
    """Return the coefficients of a function, lowest first."""
    if name == "sin":
        return [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)]
    if name == "cos":
        return [(-1) ** k / math.factorial(2 * k) for k in range(10)]
    return fitted(
        *{
            "log for pow": (lambda f: math.log1p(f) / f, _ROOT - 1, 2 * _ROOT - 1, 15),
            "short sin": (_sine_over_root, 0, (math.pi / 2) ** 2, 5),
            "erf": (float32.error_over_root, 0, 1, 9),
            "erfc": (_scaled_complement, 1 / 6.2, 1 / 1.22, 16),
        }[name]
    )


def _exp(w: Writer, x: str) -> str:
    """Return exp(x) with the precision of float32; at most 2**200."""
    x = w.at_least(w.at_most(x, 200 * math.log(2)), -200 * math.log(2))
    total = w.fma(x, 1 / math.log(2), w.rounding)
    rest = w.fma(x, 1 / math.log(2), w.sub(w.rounding, total))
    scale = w.power_of_two(w.bits(total))
    return w.fma(scale, w.mul(rest, w.poly(rest, float32.series("exp2"))), scale)


def _log_for_pow(w: Writer, x: str) -> str:
    """Return a logarithm that is precise enough for products up to 128."""
    f, n = w.split(x)  # Subnormal float32 numbers are normal in float64.
    near = w.mul(f, w.poly(f, _series("log for pow")))
    return w.at_ends(x, w.fma(w.float_of(n), math.log(2), near))


def _circular(w: Writer, x: str, is_cosine: bool) -> str:
    """Return the sine or cosine of a float32 angle."""
    turns = w.fma(x, 1 / math.pi, -0.5 if is_cosine else 0.0)
    total = w.add(turns, w.rounding)
    n = w.add(w.sub(total, w.rounding), 0.5) if is_cosine else w.sub(total, w.rounding)
    r = w.fma(n, -_PI[1], w.fma(n, -_PI[0], x))
    # Past n + 1/2 half turns, the cosine is the sine of the rest, or its negative for even n.
    series = [-each if is_cosine else each for each in _series("short sin")]
    value = w.mul(r, w.poly(w.mul(r, r), series))
    flip = w.whole("shl", w.bits(total), 63)
    return w.of_bits(w.whole("xor", w.bits(value), flip))


def _long_circular(w: Writer, x: str, function: str) -> str:
    """Return the sine, cosine or tangent of a float64 angle."""
    total = w.fma(x, 2 / math.pi, w.rounding)
    n = w.sub(total, w.rounding)
    near = w.fma(n, -_HALF_PI[0], x)  # exact
    r = w.fma(n, -_HALF_PI[1], near)
    rest = w.fma(n, _HALF_PI[1], w.sub(r, near))  # its rounding error
    rest = w.fma(n, _HALF_PI[2], rest)
    before, r = r, w.sub(r, rest)  # keeps the sign of 0
    squared = w.mul(r, r)
    # The series begin with 1, which is added last, so that it is rounded once.
    more, less = w.poly(squared, _series("sin")[1:]), w.poly(squared, _series("cos")[1:])
    if function == "tan":
        more, less = w.mul(w.mul(r, squared), more), w.mul(squared, less)
        return _tangent(w, w.bits(total), r, w.sub(w.sub(before, r), rest), more, less)
    sine = w.with_sign(w.fma(w.mul(r, squared), more, r), r)  # of 0
    cosine = w.fma(squared, less, 1)
    quadrant = w.whole("add", w.bits(total), function == "cos")
    return w.in_quadrant(quadrant, sine, cosine)


def _tangent(w: Writer, quadrant: str, r: str, rest: str, more: str, less: str) -> str:
    """Return the tangent of r + rest, whose sine is about r + more, and cosine 1 + less.

    The quotient is corrected by its rounding error, and those of the sine and the cosine.
    """
    sine, cosine = w.with_sign(w.add(r, more), r), w.add(less, 1)
    sine_rest = w.fma(rest, cosine, w.add(w.sub(r, sine), more))
    cosine_rest = w.fma(rest, w.neg(sine), w.add(w.sub(1, cosine), less))
    is_odd = w.whole("icmp ne", w.whole("and", quadrant, 1), 0)
    a, b = w.select(is_odd, w.neg(cosine), sine), w.select(is_odd, sine, cosine)
    a_rest = w.select(is_odd, w.neg(cosine_rest), sine_rest)
    b_rest = w.select(is_odd, sine_rest, cosine_rest)
    inverse = w.div(1, b)
    value = w.mul(a, inverse)
    left = w.add(w.fma(w.neg(value), b, a), w.fma(w.neg(value), b_rest, a_rest))
    return w.with_sign(w.fma(left, inverse, value), value)  # of 0


def _erfc(w: Writer, x: str) -> str:
    a = w.at_most(w.abs(x), 10.3)
    small, tail = _error_parts(w, a)
    large = w.select(w.compare("olt", x, 0), w.sub(2, tail), tail)
    near = w.sub(1, w.with_sign(small, x))
    return w.select(w.compare("olt", a, 0.5), near, large)


def _error_parts(w: Writer, a: str) -> tuple[str, str]:
    """Return erf of a number from 0 to 1, and erfc of one from 0.45 to 10.4."""
    squared = w.mul(a, a)
    small = w.mul(a, w.poly(squared, _series("erf")))
    t = w.div(1, w.fma(a, 0.5, 1))
    return small, w.mul(_exp(w, w.neg(squared)), w.poly(t, _series("erfc")))


def _hypot(w: Writer, x: str, y: str) -> str:
    value = w.call("sqrt", w.fma(x, x, w.mul(y, y)))
    is_infinite = (w.compare("oeq", w.abs(each), math.inf) for each in (x, y))
    return w.select(w.do(f"or i1 {', '.join(is_infinite)}"), math.inf, value)


def _pow(w: Writer, x: str, y: str) -> str:
    a = w.abs(x)
    return float64.power(w, x, y, _exp(w, w.mul(y, _log_for_pow(w, a))))


_SHORT: dict[str, Callable[..., str]] = {"erfc": _erfc, "hypot": _hypot, "pow": _pow}
_OF_TWO = ("atan2", "hypot", "pow")


def body(name: str, kind: str) -> str | None:
    """Return the body of a function of %0 and %1; ``None`` if it has none here.

    Args:
        name: its name in OpenCL.
        kind: the LLVM type of the numbers.
    """
    if name in ("sin", "cos", "tan") and kind in _LANES:
        return f"  %r = call {kind} @{APART}{name}.{kind}({kind} %0)\n  ret {kind} %r"
    w = Writer("float" if name in float32.FUNCTIONS and kind == "float" else "double")
    if kind == "float" and name in float32.FUNCTIONS:
        value = float32.FUNCTIONS[name](w, "%0")
    elif kind == "float" and name in _SHORT:
        given = [w.do(f"fpext float %{at} to double") for at in range(1 + (name in _OF_TWO))]
        value = w.do(f"fptrunc double {_SHORT[name](w, *given)} to float")
    elif name in float64.FUNCTIONS and kind in _LANES:
        given = [f"%{at}" for at in range(1 + (name in _OF_TWO))]
        if kind == "float":
            given = [w.do(f"fpext float {each} to double") for each in given]
        value = float64.FUNCTIONS[name](w, *given)
        if kind == "float":
            value = w.do(f"fptrunc double {value} to float")
    else:
        return None
    return "\n".join([*w.lines, f"  ret {kind} {value}"])


def apart(name: str) -> str:
    """Return the definitions of sine, cosine or tangent, for a number and for vectors.

    LLVM calls the variants for vectors where it vectorizes a call; they are inlined afterwards.
    """
    function, kind = name.removeprefix(APART).split(".")
    is_cosine = function == "cos"

    def of_float64(w: Writer) -> str:
        if kind == "double":
            return _long_circular(w, "%0", function)
        wide = Writer("double", w.lanes, w.lines)
        x = w.do(f"fpext {w.kind('float')} %0 to {w.kind('double')}")
        if function == "tan":
            value = _long_circular(wide, x, function)
        else:
            value = _circular(wide, x, is_cosine)
        return w.do(f"fptrunc {w.kind('double')} {value} to {w.kind('float')}")

    def of_c_library(w: Writer) -> str:
        value = "poison"
        for lane in range(w.lanes):
            one = w.do(f"extractelement {w.kind(kind)} %0, i32 {lane}")
            one = w.do(f"call {kind} @llvm.{function}.{w.suffix}({kind} {one})")
            value = w.do(f"insertelement {w.kind(kind)} {value}, {kind} {one}, i32 {lane}")
        return value if w.lanes else w.call(function, "%0")

    variants = [f"_ZGV_LLVM_N{lanes}v_{name}({name}.{lanes})" for lanes in _LANES[kind]]
    marks = f'noinline "vector-function-abi-variant"="{",".join(variants)}"'
    texts = []
    for lanes in (0, *_LANES[kind]):
        own = f"{name}.{lanes}" if lanes else name
        if kind == "float" and function != "tan":

            def near(w: Writer) -> str:
                return float32.circular(w, "%0", is_cosine)

            def far(w: Writer, far: str = f"{own}.far") -> str:
                return w.do(f"call {w.kind(kind)} @{far}({w.kind(kind)} %0)")

            texts.append(_angles(own, Writer(kind, lanes), marks, float32.MAX_ANGLE, near, far))
            own, marks = f"{own}.far", "noinline"
        texts.append(_angles(own, Writer(kind, lanes), marks, _MAX_ANGLE, of_float64, of_c_library))
        marks = "alwaysinline"
    return "".join(texts)


def _angles(
    name: str,
    w: Writer,
    marks: str,
    limit: float,
    near: Callable[[Writer], str],
    far: Callable[[Writer], str],
) -> str:
    """Define a function of angles %0 from one for angles up to a limit and one for all others.

    A number's value does not depend on its neighbors in a vector.
    """
    kind, value = w.kind(w.type), near(w)
    is_far = w.compare("ogt", w.abs("%0"), limit)
    any_far = is_far
    if w.lanes:
        any_far = w.do(f"call i1 @llvm.vector.reduce.or.v{w.lanes}i1({w.kind('i1')} {is_far})")
    w.lines.append(f"  br i1 {any_far}, label %far, label %near\nfar:")
    w.lines.append(f"  ret {kind} {w.select(is_far, far(w), value)}\nnear:\n  ret {kind} {value}")
    lines = "\n".join(w.lines)
    return f"define {kind} @{name}({kind} %0) nounwind memory(none) {marks} {{\n{lines}\n}}\n"
