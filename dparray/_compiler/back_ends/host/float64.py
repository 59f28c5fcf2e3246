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

_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


def _parts(value: Decimal, cleared: int) -> tuple[float, float]:
    """Return two numbers whose sum is close to a constant; the first one ends with zero bits."""
    mantissa, exponent = math.frexp(value)
    first = math.ldexp(math.floor(math.ldexp(mantissa, 53 - cleared)), exponent - 53 + cleared)
    return first, float(value - Decimal(first))


# Products of the first parts with exponents, with the numbers 1 to 4, and with numbers of 21 bits
# are exact.
_LN2 = _parts(Decimal(2).ln(), 20)
_LOG10_2 = _parts(Decimal(2).log10(), 12)
_QUARTER_PI = _parts(_PI / 4, 3)
_LOG2_E, _LOG10_E = (_parts(1 / Decimal(base).ln(), 24) for base in (2, 10))
_TWO_THIRDS = 2 / 3, float(Decimal(2) / 3 - Decimal(2 / 3))
#: From here on, 1 + x and x are the same.
_LARGE = 2.0**60
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


def _atanh_second_rest(v: Decimal) -> Decimal:
    """Return (2 * atanh(x) / x - 2 - 2 / 3 * x**2) / x**4 of x**2."""
    return (_atanh_rest(v) - Decimal(2) / 3) / v


def _exp2_rest(x: Decimal) -> Decimal:
    """Return (2**x - 1) / x."""
    return ((x * Decimal(2).ln()).exp() - 1) / x


def _cube_root(f: Decimal) -> Decimal:
    """Return the cube root of 1 + f."""
    return ((1 + f).ln() / 3).exp()


def _atan_rest(v: Decimal) -> Decimal:
    """Return (atan(x) / x - 1) / x**2 of x**2."""
    return sum((-((-v) ** k) / (2 * k + 3) for k in range(80)), Decimal(0))


def _asin_rest(v: Decimal) -> Decimal:
    """Return (asin(x) / x - 1) / x**2 of x**2."""
    total, term = Decimal(0), Decimal(1)
    for k in range(100):
        term *= Decimal(2 * k + 1) / (2 * k + 2)
        total += term / (2 * k + 3)
        term *= v
    return total


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
        "asin": (_asin_rest, 0, 0.25, 13),
        "atan": (_atan_rest, 0, 0.17158, 11),
        "cbrt": (_cube_root, -0.293, 0.4143, 8),
        "erfc for erf": (_scaled_complement, -0.42858, 0.41177, 14),
        "exp": (_exp_rest, -0.3466, 0.3466, 9),
        "exp2": (_exp2_rest, -0.5, 0.5, 11),
        "sinh": (_sinh_rest, 0, 1, 6),
        "tanh": (_tanh_rest, 0, 0.3025, 10),
        "erf": (_erf_rest, 0, 1, 11),
        "erfc": (_scaled_complement, -0.42858, 0.83334, 18),
        "log": (_atanh_rest, 0, 0.02944, 6),
        "log for pow": (_atanh_second_rest, 0, 0.02944, 8),
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


def _exp2(w: Writer, x: str) -> str:
    x = w.at_least(w.at_most(x, 1025), -1080)
    total = w.add(x, w.rounding)
    r = w.sub(x, w.sub(total, w.rounding))
    return _scaled(w, w.bits(total), w.fma(r, w.poly(r, series("exp2")), 1))


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
    a = w.at_most(w.abs(x), 6)
    small = w.add(a, _small_error(w, a))
    # As in ``_large_error``, without corrections of rounding errors: erfc is at most 0.16 here.
    total, r, rest = _growth(w, w.neg(w.mul(a, a)))
    quotient = w.div(1, w.add(a, _ERFC_CENTER))
    tail = w.poly(w.fma(quotient, -2 * _ERFC_CENTER, 1), series("erfc for erf"))
    tail = w.mul(w.mul(quotient, tail), w.power_of_two(total))
    large = w.sub(1, w.fma(tail, w.add(r, rest), tail))
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


def _logarithm_to(w: Writer, x: str, factor: tuple[float, float], of_2: tuple[float, float]) -> str:
    """Return a logarithm to another base, from 1 / ln(base) and the logarithm of 2 to it."""
    f, n = w.split_any(x)
    s = w.div(f, w.add(f, 2))
    squared = w.mul(s, s)
    h = w.mul(w.mul(f, f), 0.5)
    r = w.mul(squared, w.poly(squared, series("log")))
    first = w.head(w.sub(f, h), 32)
    second = w.fma(s, w.add(h, r), w.sub(w.sub(f, first), h))
    rest = w.fma(second, sum(factor), w.fma(first, factor[1], w.mul(n, of_2[1])))
    whole, part = w.mul(n, of_2[0]), w.mul(first, factor[0])
    total = w.add(whole, part)
    rest = w.add(rest, w.add(w.sub(whole, total), part))  # its rounding error
    return w.at_ends(x, w.add(total, rest))


def _log2(w: Writer, x: str) -> str:
    return _logarithm_to(w, x, _LOG2_E, (1.0, 0.0))


def _log10(w: Writer, x: str) -> str:
    return _logarithm_to(w, x, _LOG10_E, _LOG10_2)


def _log1p(w: Writer, x: str, doublings: Value = 0) -> str:
    """Return log((1 + x) * 2**doublings)."""
    u = w.add(x, 1)
    m, exponent = w.split(u)
    scale = w.of_bits(w.whole("sub", w.bits_of(1), w.whole("shl", exponent, w.mantissa)))
    f = w.select(w.compare("olt", x, _LARGE), w.fma(x, scale, w.sub(scale, 1)), m)
    n = w.float_of(exponent)
    if doublings != 0:
        n = w.add(n, doublings)
    return w.with_sign(w.at_ends(u, _logarithm(w, f, n)), x)


def _asinh(w: Writer, x: str) -> str:
    a = w.abs(x)
    squared = w.mul(a, a)
    more = w.div(squared, w.add(w.call("sqrt", w.add(squared, 1)), 1))
    is_large = w.compare("ogt", a, _LARGE)
    given = w.select(is_large, a, w.add(a, more))
    return w.with_sign(_log1p(w, given, w.select(is_large, 1, 0)), x)


def _acosh(w: Writer, x: str) -> str:
    t = w.sub(x, 1)
    more = w.call("sqrt", w.fma(t, t, w.add(t, t)))
    is_large = w.compare("ogt", x, _LARGE)
    given = w.select(is_large, x, w.add(t, more))
    value = _log1p(w, given, w.select(is_large, 1, 0))
    return w.select(w.compare("olt", x, 1), math.nan, value)


def _atanh(w: Writer, x: str) -> str:
    a = w.abs(x)
    value = _log1p(w, w.div(w.add(a, a), w.sub(1, a)))
    return w.with_sign(w.mul(value, 0.5), x)


def _angle(w: Writer, a: str, b: str, is_swapped: str, is_negative: str = "") -> str:
    """Return the angle of a point (b, a), or (a, b), or one of these with a negative first number.

    a is from 0 to b, which is not 0. If it is above tan(pi / 8) * b, the point is turned back by an
    eighth of a turn, to (a + b, a - b).
    """
    is_far = w.compare("ogt", a, w.mul(b, math.tan(math.pi / 8)))
    t = w.div(w.select(is_far, w.sub(a, b), a), w.select(is_far, w.add(a, b), b))
    eighths = w.select(is_far, 1, 0)
    eighths = w.select(is_swapped, w.sub(2, eighths), eighths)
    t = w.select(is_swapped, w.neg(t), t)
    if is_negative:
        eighths = w.select(is_negative, w.sub(4, eighths), eighths)
        t = w.select(is_negative, w.neg(t), t)
    squared = w.mul(t, t)
    rest = w.fma(w.mul(t, squared), w.poly(squared, series("atan")), w.mul(eighths, _QUARTER_PI[1]))
    return w.fma(eighths, _QUARTER_PI[0], w.add(t, rest))


def _atan(w: Writer, x: str) -> str:
    a = w.abs(x)
    is_large = w.compare("ogt", a, 1)
    less, more = w.select(is_large, 1, a), w.select(is_large, a, 1)
    return w.with_sign(_angle(w, less, more, is_large), x)


def _atan2(w: Writer, y: str, x: str) -> str:
    a, b = w.abs(y), w.abs(x)
    is_swapped = w.compare("ogt", a, b)
    less, more = w.select(is_swapped, b, a), w.select(is_swapped, a, b)
    scale = w.select(w.compare("ogt", more, 2.0**1000), 2.0**-10, 1)  # The sum must be finite.
    less, more = w.mul(less, scale), w.mul(more, scale)
    is_infinite = w.compare("oeq", more, math.inf)
    is_diagonal = w.select(w.compare("oeq", less, math.inf), 1, 0)
    less = w.select(is_infinite, is_diagonal, less)
    is_zero = w.compare("oeq", more, 0)
    more = w.select(w.do(f"or i1 {is_infinite}, {is_zero}"), 1, more)
    is_negative = w.whole("icmp slt", w.bits(x), 0)
    value = w.with_sign(_angle(w, less, more, is_swapped, is_negative), y)
    return w.select(w.compare("uno", x, y), math.nan, value)


def _arc(w: Writer, x: str) -> tuple[str, str, str]:
    """Return |x| <= 1/2, r and t: asin(|x|) is r * (1 + t), or pi / 2 less twice that."""
    a = w.abs(x)
    is_small = w.compare("ole", a, 0.5)
    squared = w.select(is_small, w.mul(a, a), w.fma(a, -0.5, 0.5))
    root = w.select(is_small, a, w.call("sqrt", squared))
    return is_small, root, w.mul(squared, w.poly(squared, series("asin")))


def _asin(w: Writer, x: str) -> str:
    is_small, r, t = _arc(w, x)
    twice = w.add(r, r)
    large = w.sub(2 * _QUARTER_PI[0], w.add(twice, w.fma(twice, t, -2 * _QUARTER_PI[1])))
    return w.with_sign(w.select(is_small, w.fma(r, t, r), large), x)


def _acos(w: Writer, x: str) -> str:
    is_small, r, t = _arc(w, x)
    is_below = w.compare("olt", x, 0)
    # It is quarters * pi / 4 less y * (1 + t).
    quarters = w.select(is_small, 2, w.select(is_below, 4, 0))
    twice = w.add(r, r)
    y = w.select(is_small, x, w.select(is_below, twice, w.neg(twice)))
    rest = w.fma(y, t, w.mul(quarters, -_QUARTER_PI[1]))
    return w.fma(quarters, _QUARTER_PI[0], w.neg(w.add(y, rest)))


def _cbrt(w: Writer, x: str) -> str:
    a = w.abs(x)
    f, n = w.split_any(a)
    thirds = w.fma(n, 1 / 3, w.rounding)
    left = w.fma(w.sub(thirds, w.rounding), -3, n)
    m = w.add(f, 1)
    root = w.poly(f, series("cbrt"))
    for sign in (1, -1):
        is_left = w.compare("oeq", left, sign)
        m = w.select(is_left, w.mul(m, 2.0**sign), m)
        root = w.select(is_left, w.mul(root, 2 ** (sign / 3)), root)
    root = w.head(root, 30)  # Its square is exact.
    # A step of Halley's iteration, which triples the right digits.
    quotient = w.div(m, w.mul(root, root))
    change = w.div(w.sub(quotient, root), w.add(quotient, w.add(root, root)))
    value = w.mul(w.fma(root, change, root), w.power_of_two(w.bits(thirds)))
    is_usual = w.do(f"and i1 {w.compare('one', a, math.inf)}, {w.compare('one', a, 0)}")
    return w.select(is_usual, w.with_sign(value, x), x)


def power(w: Writer, x: str, y: str, value: str) -> str:
    """Return x**y from that of |x|: its sign, and the powers of 1 and to 0."""
    a = w.abs(x)
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
    return w.select(is_broken, math.nan, value)


def _product(w: Writer, a: str, b: str, c: str, d: str) -> tuple[str, str]:
    """Return the product of two sums a + b and c + d as a sum, as of Dekker (1971)."""
    first = w.mul(a, c)
    rest = w.call("fma", a, c, w.neg(first))
    return first, w.add(rest, w.fma(a, d, w.mul(b, c)))


def _double_logarithm(w: Writer, a: str) -> tuple[str, str]:
    """Return a logarithm as a sum of two numbers, with an error of about 2**-65 of it."""
    f, n = w.split_any(a)
    # log(1 + f) is s * (2 + s**2 * (2 / 3 + ...)) with s = f / (f + 2), all as sums of two.
    divisor = w.add(f, 2)
    inverse = w.div(1, divisor)
    s = w.mul(f, inverse)
    lost = w.mul(s, w.add(w.sub(2, divisor), f))
    pair = s, w.mul(w.sub(w.call("fma", w.neg(s), divisor, f), lost), inverse)
    squared = _product(w, *pair, *pair)
    more = w.mul(squared[0], w.poly(squared[0], series("log for pow")))
    r = w.add(more, _TWO_THIRDS[0])
    rest = w.add(w.add(w.sub(_TWO_THIRDS[0], r), more), _TWO_THIRDS[1])
    first, second = _product(w, *squared, r, rest)
    factor = w.add(first, 2)
    first, second = _product(w, *pair, factor, w.add(w.add(w.sub(2, factor), first), second))
    whole = w.mul(n, _LN2[0])
    total = w.add(whole, first)
    second = w.fma(n, _LN2[1], second)
    return total, w.add(w.add(w.sub(whole, total), first), second)


def _pow(w: Writer, x: str, y: str) -> str:
    a = w.abs(x)
    first, second = _double_logarithm(w, a)
    first = w.at_ends(a, first)
    product = w.mul(y, first)
    rest = w.fma(y, second, w.call("fma", y, first, w.neg(product)))
    # Infinite products have no rest.
    rest = w.select(w.compare("olt", w.abs(product), 800), rest, 0)
    total, r, t = _growth(w, w.at_least(w.at_most(product, 710), -746), rest)
    value = power(w, x, y, _scaled(w, total, w.add(1, w.add(r, t))))
    root = w.select(w.compare("oeq", x, -math.inf), math.inf, w.abs(w.call("sqrt", x)))
    known = ((x, 2, _exp2(w, y)), (y, 2, w.mul(x, x)), (y, 0.5, root), (y, -1, w.div(1, x)))
    # LLVM removes the powers that it does not need: the general one for these constants, and
    # these for all other numbers.
    for given, constant, simple in known:
        is_known = w.do(f"call i1 @llvm.is.constant.f64(double {given})")
        is_known = w.do(f"and i1 {is_known}, {w.compare('oeq', given, constant)}")
        value = w.select(is_known, simple, value)
    return value


def _hypot(w: Writer, x: str, y: str) -> str:
    a, b = w.abs(x), w.abs(y)
    more = w.select(w.compare("ogt", a, b), a, b)
    is_large, is_small = w.compare("ogt", more, 2.0**500), w.compare("olt", more, 2.0**-400)
    scale = w.select(is_large, 2.0**-600, w.select(is_small, 2.0**600, 1))
    back = w.select(is_large, 2.0**600, w.select(is_small, 2.0**-600, 1))
    a, b = w.mul(a, scale), w.mul(b, scale)
    value = w.mul(w.call("sqrt", w.fma(a, a, w.mul(b, b))), back)
    is_infinite = (w.compare("oeq", each, math.inf) for each in (a, b))
    return w.select(w.do(f"or i1 {', '.join(is_infinite)}"), math.inf, value)


FUNCTIONS: dict[str, Callable[..., str]] = {
    "acos": _acos,
    "acosh": _acosh,
    "asin": _asin,
    "asinh": _asinh,
    "atan": _atan,
    "atan2": _atan2,
    "atanh": _atanh,
    "cbrt": _cbrt,
    "cosh": _cosh,
    "erf": _erf,
    "erfc": _erfc,
    "exp": _exp,
    "exp2": _exp2,
    "expm1": _expm1,
    "hypot": _hypot,
    "log": _log,
    "log10": _log10,
    "log1p": _log1p,
    "log2": _log2,
    "pow": _pow,
    "sinh": _sinh,
    "tanh": _tanh,
}
