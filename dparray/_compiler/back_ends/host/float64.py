"""Functions of float64 as LLVM IR without branches, which LLVM vectorizes like any other code.

Arguments are reduced as in Cody and Waite, Software Manual for the Elementary Functions (1980), and
Muller, Elementary Functions (2016). A polynomial in the rest computes what is added to a number
that is exact or rounded once. Polynomials are fitted at the first use.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal

from dparray._compiler.back_ends.host.writer import Value, Writer, interpolated

# ln 2 in parts; the first one has trailing zeros, so that products with integers are exact.
_LN2 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
#: The number c of ``_large_error``.
_ERFC_CENTER = 2.5


def _exp_rest(x: Decimal) -> Decimal:
    """Return (exp(x) - 1 - x) / x**2."""
    return (x.exp() - 1 - x) / (x * x)


def _sinh_rest(v: Decimal) -> Decimal:
    """Return (sinh(x) / x - 1) / x**2 of x**2."""
    x = v.sqrt()
    return ((x.exp() - (-x).exp()) / (2 * x) - 1) / v


def _tanh_rest(v: Decimal) -> Decimal:
    """Return (tanh(x) / x - 1) / x**2 of x**2."""
    x = v.sqrt()
    grown = (2 * x).exp()
    return ((grown - 1) / (grown + 1) / x - 1) / v


def _atanh_rest(v: Decimal) -> Decimal:
    """Return (2 * atanh(x) / x - 2) / x**2 of x**2."""
    x = v.sqrt()
    return (((1 + x) / (1 - x)).ln() / x - 2) / v


def _series_of_erf(x: Decimal) -> Decimal:
    """Return erf(x) * exp(x**2) / x, by a series of positive terms."""
    term = total = 2 / _PI.sqrt()
    k = 0
    while term > total * Decimal("1e-58"):
        k += 1
        term *= 2 * x * x / (2 * k + 1)
        total += term
    return total


def _erf_rest(v: Decimal) -> Decimal:
    """Return erf(x) / x - 1 of x**2."""
    return _series_of_erf(v.sqrt()) * (-v).exp() - 1


def _scaled_complement(u: Decimal) -> Decimal:
    """Return erfc(x) * exp(x**2) * (x + c) of (x - c) / (x + c)."""
    c = Decimal(_ERFC_CENTER)
    x = c * (1 + u) / (1 - u)
    if x < 6:
        value = (x * x).exp() - x * _series_of_erf(x)
    else:  # Laplace's continued fraction
        value = x
        for k in range(80, 0, -1):
            value = x + Decimal(k) / 2 / value
        value = 1 / (value * _PI.sqrt())
    return value * (x + c)


@functools.cache
def series(name: str) -> Sequence[float]:
    """Return the coefficients of a function, lowest first."""
    fits: dict[str, tuple[Callable[[Decimal], Decimal], float, float, int]] = {
        "exp": (_exp_rest, -0.3466, 0.3466, 9),
        "sinh": (_sinh_rest, 0, 1, 6),
        "tanh": (_tanh_rest, 0, 0.3025, 10),
        "erf": (_erf_rest, 0, 1, 11),
        "erfc": (_scaled_complement, -0.42858, 0.83334, 18),
        "log": (_atanh_rest, 0, 0.02944, 6),
    }
    return interpolated(*fits[name])


def _growth(w: Writer, x: str, low: Value = 0) -> tuple[str, str, str]:
    """Return n, in the low bits of an integer, r and t: exp(x + low) is 2**n * (1 + r + t)."""
    total = w.fma(x, 1 / math.log(2), w.rounding)
    n = w.sub(total, w.rounding)
    near = w.fma(n, -_LN2[0], x)  # exact
    lost = w.mul(n, _LN2[1])
    if low != 0:
        lost = w.sub(lost, low)
    r = w.sub(near, lost)
    rest = w.sub(w.sub(near, r), lost)  # its rounding error
    return w.bits(total), r, w.fma(w.mul(r, r), w.poly(r, series("exp")), rest)


def _scaled(w: Writer, total: str, value: str, less: int = 0) -> str:
    """Return 2**(n - less) * value, which may be large or subnormal."""
    exponent = w.whole("sub", total, w.bits_of(w.rounding) + less)
    half = w.whole("ashr", exponent, 1)
    value = w.mul(value, w.power_of_two(half))
    return w.mul(value, w.power_of_two(w.whole("sub", exponent, half)))


def _exp(w: Writer, x: str) -> str:
    total, r, rest = _growth(w, w.at_least(w.at_most(x, 710), -746))
    return _scaled(w, total, w.add(1, w.add(r, rest)))


def _expm1(w: Writer, x: str) -> str:
    total, r, rest = _growth(w, w.at_least(w.at_most(x, 710), -40))
    scale = w.power_of_two(w.whole("sub", total, 1))  # half of it, since 2**1024 is infinite
    value = w.fma(scale, rest, w.fma(scale, r, w.sub(scale, 0.5)))
    value = w.add(value, value)
    is_near = w.whole("icmp eq", total, w.bits_of(w.rounding))
    return w.with_sign(w.select(is_near, w.add(r, rest), value), x)


def _tanh(w: Writer, x: str) -> str:
    a = w.at_most(w.abs(x), 22)
    squared = w.mul(a, a)
    small = w.fma(w.mul(a, squared), w.poly(squared, series("tanh")), a)
    total, r, rest = _growth(w, w.add(a, a))
    scale = w.power_of_two(total)
    large = w.sub(1, w.div(2, w.fma(scale, w.add(r, rest), w.add(scale, 1))))
    return w.with_sign(w.select(w.compare("olt", a, 0.55), small, large), x)


def _half_exp(w: Writer, a: str) -> tuple[str, str]:
    """Return exp(a) / 2 and exp(-a) / 2 of a number that is not negative."""
    total, r, rest = _growth(w, w.at_most(a, 712))
    half = _scaled(w, total, w.add(1, w.add(r, rest)), 1)
    return half, w.div(0.25, half)


def _sinh(w: Writer, x: str) -> str:
    a = w.abs(x)
    squared = w.mul(a, a)
    small = w.fma(w.mul(a, squared), w.poly(squared, series("sinh")), a)
    large = w.sub(*_half_exp(w, a))
    return w.with_sign(w.select(w.compare("olt", a, 1), small, large), x)


def _cosh(w: Writer, x: str) -> str:
    return w.add(*_half_exp(w, w.abs(x)))


def _small_error(w: Writer, x: str) -> str:
    """Return erf(x) - x of a number from -1 to 1."""
    return w.mul(x, w.poly(w.mul(x, x), series("erf")))


def _large_error(w: Writer, a: str) -> str:
    """Return erfc of a number from 1 to 27.5.

    A polynomial in (a - c) / (a + c), as of Shepherd and Laframboise (1981), is its quotient with
    exp(-a**2) / (a + c).
    """
    # The square of the first half of the number is exact.
    half = w.head(a, 27)
    lost = w.mul(w.sub(half, a), w.add(half, a))
    total, r, rest = _growth(w, w.neg(w.mul(half, half)), lost)
    divisor = w.add(a, _ERFC_CENTER)
    quotient = w.div(1, divisor)
    factor = w.poly(w.fma(quotient, -2 * _ERFC_CENTER, 1), series("erfc"))
    # The rounding errors of the divisor and the quotient, relative to the latter, count up to
    # 2.2 times in erfc: with the derivative of exp(a**2) * erfc(a), which a line comes close to.
    lost = w.sub(a, w.sub(divisor, _ERFC_CENTER))
    lost = w.fma(w.neg(lost), quotient, w.fma(w.neg(divisor), quotient, 1))
    rest = w.fma(lost, w.fma(quotient, 1.7 * _ERFC_CENTER, 1), rest)
    factor = w.fma(factor, w.add(r, rest), factor)
    return _scaled(w, total, w.mul(quotient, factor))


def _erf(w: Writer, x: str) -> str:
    a = w.abs(x)
    small = w.add(a, _small_error(w, a))
    large = w.sub(1, _large_error(w, w.at_most(a, 6)))
    return w.with_sign(w.select(w.compare("olt", a, 1), small, large), x)


def _erfc(w: Writer, x: str) -> str:
    a = w.abs(x)
    tail = _large_error(w, w.at_most(a, 27.5))
    large = w.select(w.compare("olt", x, 0), w.sub(2, tail), tail)
    small = w.sub(w.sub(1, x), _small_error(w, x))
    return w.select(w.compare("olt", a, 1), small, large)


def _logarithm(w: Writer, f: str, n: str) -> str:
    """Return log((1 + f) * 2**n)."""
    s = w.div(f, w.add(f, 2))
    squared = w.mul(s, s)
    # log(1 + f) is f - (h - s * (h + r)) with h = f * f / 2, so that 2 * s is not rounded.
    h = w.mul(w.mul(f, f), 0.5)
    r = w.mul(squared, w.poly(squared, series("log")))
    inner = w.fma(s, w.add(h, r), w.mul(n, _LN2[1]))
    return w.fma(n, _LN2[0], w.sub(f, w.sub(h, inner)))


def _log(w: Writer, x: str) -> str:
    return w.at_ends(x, _logarithm(w, *w.split_any(x)))


def _log1p(w: Writer, x: str) -> str:
    """Return log1p(x)."""
    u = w.add(x, 1)
    m, exponent = w.split(u)
    scale = w.of_bits(w.whole("sub", w.bits_of(1), w.whole("shl", exponent, w.mantissa)))
    f = w.select(w.compare("olt", x, 2.0**60), w.fma(x, scale, w.sub(scale, 1)), m)
    return w.with_sign(w.at_ends(u, _logarithm(w, f, w.float_of(exponent))), x)


FUNCTIONS: dict[str, Callable[..., str]] = {
    "cosh": _cosh,
    "erf": _erf,
    "erfc": _erfc,
    "exp": _exp,
    "expm1": _expm1,
    "log": _log,
    "log1p": _log1p,
    "sinh": _sinh,
    "tanh": _tanh,
}
