"""Functions of float32 in float32, with at most 2 ulp, as LLVM IR without branches.

Arguments are reduced as in Cody and Waite, Software Manual for the Elementary Functions (1980): all
parts of a constant but the last have trailing zeros, so that their products with small integers are
exact, also without fused multiply-add. A polynomial in the rest computes what is added to a number
that is exact or rounded once, as in the Cephes library. Polynomials are fitted at the first use.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from dparray._compiler.back_ends.host.writer import Value, Writer, fitted

_LN2 = (0.693359375, math.log(2) - 0.693359375)
_LOG10_2 = (0.30078125, math.log10(2) - 0.30078125)
_HALF_PI = (3216 / 2**11, 4058 / 2**23, 2594 / 2**35, 2.563344151594519e-12)
#: The largest angle for which products with the parts of pi / 2 are exact.
MAX_ANGLE = 6000.0


def _powerseries(of: Callable[[int], float]) -> Callable[[float], float]:
    return lambda x: sum(of(k) * x**k for k in range(30))


def _log1p_rest(f: float) -> float:
    """Return (log(1 + f) - f + f**2 / 2) / f**3."""
    if abs(f) < 0.05:
        return sum((-f) ** k / (k + 3) for k in range(20))
    return (math.log1p(f) - f + f * f / 2) / f**3


def _tanh_rest(v: float) -> float:
    """Return (tanh(x) / x - 1) / x**2 of x**2."""
    x = math.sqrt(v)
    return (math.tanh(x) / x - 1) / v if v > 1e-3 else -1 / 3 + 2 * v / 15 - 17 * v * v / 315


def error_over_root(v: float) -> float:
    """Return erf(x) / x of x**2."""
    return math.erf(math.sqrt(v)) / math.sqrt(v) if v > 1e-12 else 2 / math.sqrt(math.pi)


@functools.cache
def series(name: str) -> Sequence[float]:
    """Return the coefficients of a function, lowest first."""
    fits: dict[str, tuple[Callable[[float], float], float, float, int]] = {
        # What follows the first two terms of the power series of exp, sin and cos:
        "exp": (_powerseries(lambda k: 1 / math.factorial(k + 2)), -0.35, 0.35, 4),
        "sin": (_powerseries(lambda k: -((-1) ** k) / math.factorial(2 * k + 3)), 0, 0.63, 2),
        "cos": (_powerseries(lambda k: (-1) ** k / math.factorial(2 * k + 4)), 0, 0.63, 2),
        "exp2": (lambda f: math.expm1(f * math.log(2)) / f, -0.5, 0.5, 6),
        "log1p": (_log1p_rest, math.sqrt(0.5) - 1, math.sqrt(2) - 1, 8),
        "tanh": (_tanh_rest, 0, 0.36, 4),
        "erf": (lambda v: error_over_root(v) - 1, 0, 1, 6),
        "erfc": (lambda a: -math.log(math.erfc(a)), 1, 4, 8),
    }
    return fitted(*fits[name])


def _growth(w: Writer, x: str) -> tuple[str, str]:
    """Return n, in the low bits of an integer, and t, so that exp(x) is 2**n * (1 + t)."""
    total = w.fma(x, 1 / math.log(2), w.rounding)
    n = w.sub(total, w.rounding)
    r = w.fma(n, -_LN2[1], w.fma(n, -_LN2[0], x))
    return w.bits(total), w.fma(w.mul(r, r), w.poly(r, series("exp")), r)


def _grown(w: Writer, total: str, tail: str) -> str:
    """Return 2**n * (1 + t)."""
    exponent = w.whole("sub", total, w.bits_of(w.rounding))
    half = w.whole("ashr", exponent, 1)
    scale = w.power_of_two(half)  # two factors, for large and subnormal results
    return w.mul(w.fma(scale, tail, scale), w.power_of_two(w.whole("sub", exponent, half)))


def _exp(w: Writer, x: str) -> str:
    return _grown(w, *_growth(w, w.at_least(w.at_most(x, 89), -104)))


def _exp2(w: Writer, x: str) -> str:
    x = w.at_least(w.at_most(x, 129), -151)
    total = w.add(x, w.rounding)
    r = w.sub(x, w.sub(total, w.rounding))
    return _grown(w, w.bits(total), w.mul(r, w.poly(r, series("exp2"))))


def _expm1(w: Writer, x: str) -> str:
    total, tail = _growth(w, w.at_least(w.at_most(x, 89), -18))
    scale = w.power_of_two(w.whole("sub", total, 1))  # half of it, since 2**128 is infinite
    value = w.fma(scale, tail, w.sub(scale, 0.5))
    value = w.add(value, value)
    is_near = w.whole("icmp eq", total, w.bits_of(w.rounding))
    return w.with_sign(w.select(is_near, tail, value), x)


def _rest(w: Writer, f: str, last: Value = 0) -> str:
    """Return log(1 + f) - f + last, where last is small."""
    squared = w.mul(f, f)
    r = w.fma(w.mul(f, squared), w.poly(f, series("log1p")), last)
    return w.fma(squared, -0.5, r)


def _natural(w: Writer, f: str, n: str) -> str:
    return w.fma(n, _LN2[0], w.add(f, _rest(w, f, w.mul(n, _LN2[1]))))


def _log(w: Writer, x: str) -> str:
    return w.at_ends(x, _natural(w, *w.split_any(x)))


def _log2(w: Writer, x: str) -> str:
    f, n = w.split_any(x)
    factor = 1 / math.log(2)
    return w.at_ends(x, w.add(n, w.fma(f, factor, w.mul(_rest(w, f), factor))))


def _log10(w: Writer, x: str) -> str:
    f, n = w.split_any(x)
    factor = 1 / math.log(10)
    rest = w.fma(_rest(w, f), factor, w.mul(n, _LOG10_2[1]))
    return w.at_ends(x, w.fma(n, _LOG10_2[0], w.fma(f, factor, rest)))


def _log1p(w: Writer, x: str) -> str:
    u = w.add(x, 1)
    m, exponent = w.split(u)
    scale = w.of_bits(w.whole("sub", w.bits_of(1), w.whole("shl", exponent, w.mantissa)))
    f = w.select(w.compare("olt", x, 2.0**30), w.fma(x, scale, w.sub(scale, 1)), m)
    return w.with_sign(w.at_ends(u, _natural(w, f, w.float_of(exponent))), x)


def circular(w: Writer, x: str, is_cosine: bool) -> str:
    """Return the sine or cosine of an angle of at most ``MAX_ANGLE``."""
    total = w.fma(x, 2 / math.pi, w.rounding)
    n = w.sub(total, w.rounding)
    near = w.fma(n, -_HALF_PI[1], w.fma(n, -_HALF_PI[0], x))  # exact
    r = w.fma(n, -_HALF_PI[2], near)
    rest = w.fma(n, -_HALF_PI[2], w.sub(near, r))  # its rounding error
    rest = w.fma(n, -_HALF_PI[3], rest)
    squared = w.mul(r, r)
    # The rest counts in the sine alone. It is added late, so that the polynomials do not wait.
    sine = w.fma(w.mul(r, squared), w.poly(squared, series("sin")), rest)
    sine = w.with_sign(w.add(r, sine), r)  # of 0
    near = w.fma(squared, w.poly(squared, series("cos")), -0.5)
    cosine = w.fma(squared, near, 1)
    quadrant = w.whole("add", w.bits(total), 1) if is_cosine else w.bits(total)
    return w.in_quadrant(quadrant, sine, cosine)


def _tanh(w: Writer, x: str) -> str:
    a = w.at_most(w.abs(x), 10)
    squared = w.mul(a, a)
    small = w.fma(w.mul(a, squared), w.poly(squared, series("tanh")), a)
    total, tail = _growth(w, w.add(a, a))
    scale = w.power_of_two(total)
    large = w.sub(1, w.div(2, w.fma(scale, tail, w.add(scale, 1))))
    return w.with_sign(w.select(w.compare("olt", a, 0.6), small, large), x)


def _erf(w: Writer, x: str) -> str:
    a = w.at_most(w.abs(x), 4)
    small = w.fma(a, w.poly(w.mul(a, a), series("erf")), a)
    total, tail = _growth(w, w.neg(w.poly(a, series("erfc"))))
    scale = w.power_of_two(total)
    large = w.fma(w.neg(scale), tail, w.sub(1, scale))
    return w.with_sign(w.select(w.compare("olt", a, 1), small, large), x)


FUNCTIONS: dict[str, Callable[[Writer, str], str]] = {
    "exp": _exp,
    "exp2": _exp2,
    "expm1": _expm1,
    "log": _log,
    "log2": _log2,
    "log10": _log10,
    "log1p": _log1p,
    "tanh": _tanh,
    "erf": _erf,
}
