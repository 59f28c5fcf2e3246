"""Special functions of one element: device functions that kernels call.

Each family has a factory that makes its functions for one precision, and names its sources. The
approximations were made for these intervals (`special_coefficients`); where a rounding error would
be multiplied, as in the exponent of a power, it is carried along as the sum of two floats (T. J.
Dekker, "A Floating-Point Technique for Extending the Available Precision", 1971), so that the
arithmetic must round each operation as it is written.

All computing is in the precision asked for: nothing here needs float64 where float32 is computed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dparray.kernels.special_coefficients import FITS, TEMME, ZEROS

__all__ = [
    "make_bessel_functions",
    "make_beta_functions",
    "make_elementary_functions",
    "make_error_functions",
    "make_gamma_functions",
    "make_incomplete_gamma_functions",
    "make_pair_functions",
    "make_zeta_functions",
]

#: Makes a device function of a Python function.
Device = Callable[[Callable[..., Any]], Callable[..., Any]]
Functions = Mapping[str, Callable[..., Any]]


def _is_double(dtype: type) -> bool:
    return bool(dtype(0).itemsize == 8)


def _fitted(dtype: type, name: str) -> Any:
    return FITS["float64" if _is_double(dtype) else "float32"][name]


def _zeros(dtype: type, name: str) -> list[Any]:
    pairs = ZEROS["float64" if _is_double(dtype) else "float32"][name]
    return [dtype(part) for pair in pairs for part in pair]


def _compiled(text: str, names: dict[str, Any], device: Device) -> Callable[..., Any]:
    scope: dict[str, Any] = {"__name__": __name__, **names}
    exec(compile(text, "<dparray polynomial>", "exec"), scope)
    return device(scope["value"])


def _nested(names: Sequence[str], variable: str) -> str:
    """A polynomial by Horner's rule, its coefficients from the constant one on."""
    return f" + {variable} * (".join(names) + ")" * (len(names) - 1)


def make_polynomial(dtype: type, coefficients: Sequence[float], device: Device) -> Any:
    """The polynomial with these coefficients, the constant one first."""
    names = {f"c{k}": dtype(value) for k, value in enumerate(coefficients)}
    return _compiled(f"def value(x):\n    return {_nested(list(names), 'x')}\n", names, device)


def make_approximation(dtype: type, name: str, device: Device) -> Any:
    """What `special_coefficients` has for a name: a polynomial, or a quotient of two."""
    parts = _fitted(dtype, name)
    names: dict[str, Any] = {}
    texts = []
    for letter, part in zip("pq", parts, strict=False):
        here = {f"{letter}{k}": dtype(value) for k, value in enumerate(part)}
        names |= here
        texts.append(f"({_nested(list(here), 'x')})")
    return _compiled(f"def value(x):\n    return {' / '.join(texts)}\n", names, device)


def make_temme_sum(dtype: type, device: Device) -> Any:
    """The double series of N. M. Temme's expansion: of powers of eta and of 1/a."""
    rows = TEMME["float64" if _is_double(dtype) else "float32"]
    names: dict[str, Any] = {}
    texts = []
    for k, row in enumerate(rows):
        here = {f"c{k}_{n}": dtype(value) for n, value in enumerate(row)}
        names |= here
        texts.append(f"({_nested(list(here), 'x')})")
    return _compiled(f"def value(x, y):\n    return {_nested(texts, 'y')}\n", names, device)


@functools.cache
def make_pair_functions(dtype: type, device: Device) -> Functions:
    """Sums, products and logarithms as the sum of two floats, the second a correction.

    ``sum_of(a, b)``, ``product_of(a, b)``: exact (D. E. Knuth; T. J. Dekker, 1971).
    ``logarithm(x, more)``: of ``x + more``, by the series of the inverse hyperbolic tangent.
    ``deviance(x, more, a)``: ``x - a - a * log(x / a)`` of ``x + more`` and ``a``, positive
    numbers (C. Loader, "Fast and Accurate Computation of Binomial Probabilities", 2000).
    ``exponential(h, l)``: of the negative sum, as one float.
    ``sin_pi(x)``: the sine of pi times ``x``.
    ``nearest(x)``: the nearest integer.
    """
    is_double = _is_double(dtype)
    zero, half, one, two, three = (dtype(value) for value in (0, 0.5, 1, 2, 3))
    splitter = dtype(2**27 + 1 if is_double else 2**12 + 1)
    whole = dtype(2.0**52 if is_double else 2.0**23)
    largest_step = dtype(512 if is_double else 64)
    largest_power = dtype(2.0**512 if is_double else 2.0**64)
    root_two, root_half = dtype(math.sqrt(2)), dtype(math.sqrt(0.5))
    # The logarithm of 2 in two parts; an exponent times the first is exact.
    high, low = (
        (0.6931471805598903, 5.497923018708371e-14)
        if is_double
        else (0.693145751953125, 1.4286068203094173e-06)
    )
    log2_high, log2_low = dtype(high), dtype(low)
    largest = dtype(np.log(np.finfo(dtype).max) * 1.3)
    near = dtype(0.25)
    pi = dtype(math.pi)
    terms = 14 if is_double else 6
    tail = make_polynomial(dtype, [1 / (2 * k + 5) for k in range(terms)], device)
    far_tail = make_polynomial(dtype, [1 / (2 * k + 5) for k in range(terms - 3)], device)

    @device
    def sum_of(a: Any, b: Any) -> Any:
        s = a + b
        c = s - a
        return s, (a - (s - c)) + (b - c)

    @device
    def product_of(a: Any, b: Any) -> Any:
        p = a * b
        c = splitter * a
        a1 = c - (c - a)
        a2 = a - a1
        d = splitter * b
        b1 = d - (d - b)
        b2 = b - b1
        return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2

    @device
    def nearest(x: Any) -> Any:
        if abs(x) < whole:
            big = math.copysign(whole, x)
            return (x + big) - big
        return x

    @device
    def sin_pi(x: Any) -> Any:
        n = nearest(x)
        r = x - n  # exact
        h = n * half
        s = math.sin(pi * r)
        return s if nearest(h) == h else -s

    @device
    def cube_third(sh: Any, sl: Any) -> Any:
        """A third of the third power of a pair, as a pair."""
        zh, zl = product_of(sh, sh)
        zl = zl + two * sh * sl
        ch, cl = product_of(zh, sh)
        cl = cl + zl * sh + zh * sl
        vh = ch / three
        ph, pl = product_of(vh, three)
        return vh, (((ch - ph) - pl) + cl) / three

    @device
    def logarithm(x: Any, more: Any) -> Any:
        # Powers of two are taken out, the largest first: each is exact, as is its root.
        m, ml, k = x, more, zero
        power, step = largest_power, largest_step
        while step >= one:
            if m >= power:
                m, ml, k = m / power, ml / power, k + step
            elif m * power < one:
                m, ml, k = m * power, ml * power, k - step
            power, step = math.sqrt(power), half * step
        if m > root_two:
            m, ml, k = half * m, half * ml, k + one
        elif m < root_half:
            m, ml, k = two * m, two * ml, k - one
        nh, nl = sum_of(m, -one)
        nl = nl + ml
        th, tl = sum_of(m, one)
        tl = tl + ml
        sh = nh / th
        ph, pl = product_of(sh, th)
        sl = (((nh - ph) - pl) + nl - sh * tl) / th
        vh, vl = cube_third(sh, sl)
        z = sh * sh
        rest = sh * z * z * far_tail(z)
        ah, al = sum_of(sh, vh)
        al = al + sl + vl + rest
        bh, bl = sum_of(k * log2_high, two * ah)
        bl = bl + two * al + k * log2_low
        return sum_of(bh, bl)

    @device
    def deviance(x: Any, more: Any, a: Any) -> Any:
        dh, dl = sum_of(x, -a)
        dl = dl + more
        if abs(dh) > near * (x + a):
            q = x / a
            plain = dh - a * math.log(q)
            if plain > largest:
                return plain, zero
            ph, pl = product_of(q, a)
            lh, ll = logarithm(q, (((x - ph) - pl) + more) / a)
            gh, gl = product_of(a, lh)
            rh, rl = sum_of(dh, -gh)
            return sum_of(rh, rl + (dl - gl - a * ll))
        th, tl = sum_of(x, a)
        tl = tl + more
        sh = dh / th
        ph, pl = product_of(sh, th)
        sl = (((dh - ph) - pl) + dl - sh * tl) / th
        fh, fl = product_of(sh, dh)
        fl = fl + sh * dl + sl * dh
        vh, vl = cube_third(sh, sl)
        gh, gl = product_of(two * a, vh)
        gl = gl + two * a * vl
        z = sh * sh
        rest = two * a * sh * z * z * tail(z)
        rh, rl = sum_of(fh, -gh)
        return sum_of(rh, rl + (fl - gl - rest))

    @device
    def exponential(h: Any, low: Any) -> Any:
        return math.exp(-h) * (one - low)

    return {
        "sum_of": sum_of,
        "product_of": product_of,
        "nearest": nearest,
        "sin_pi": sin_pi,
        "logarithm": logarithm,
        "deviance": deviance,
        "exponential": exponential,
    }


@functools.cache
def make_error_functions(dtype: type, device: Device) -> Functions:
    """The error function, its complement and inverses, and the normal distribution.

    ``erfcx`` by a polynomial of ``(x - k) / (x + k)`` (M. M. Shepherd and J. G. Laframboise,
    "Chebyshev Approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf", 1981); ``erfc`` and
    ``ndtr`` are made of it, with the square in the exponent split in two parts as W. J. Cody does
    ("Rational Chebyshev Approximations for the Error Function", 1969). The inverses as functions
    of the logarithm of ``1 - x**2`` (M. Giles, "Approximating the erfinv Function", 2010).
    """
    is_double = _is_double(dtype)
    zero, half, one, two = (dtype(value) for value in (0, 0.5, 1, 2))
    point = dtype(3.75)
    splitter = dtype(2**27 + 1 if is_double else 2**12 + 1)
    overflows = dtype(math.sqrt(np.log(np.finfo(dtype).max)) * 1.5)
    far = dtype(1e7 if is_double else 1e4)
    root_pi = dtype(1 / math.sqrt(math.pi))
    root_half, root_two = dtype(math.sqrt(0.5)), dtype(math.sqrt(2))
    small = make_approximation(dtype, "erf", device)
    scaled = make_approximation(dtype, "erfcx", device)
    central = make_approximation(dtype, "erfinv_0", device)
    tail_1 = make_approximation(dtype, "erfinv_1", device)
    tail_2 = make_approximation(dtype, "erfinv_2", device)
    tail_3 = make_approximation(dtype, "erfinv_3", device) if is_double else tail_2
    c0, c1, c2, c3 = (dtype(value) for value in (3.125, 3.5, 7.5, 19))
    w0, w1, w2 = (dtype(value) for value in (6.25, 4.5, 10.5))
    inf, nan = dtype(math.inf), dtype(math.nan)
    quarter = dtype(0.25)

    @device
    def scaled_tail(x: Any) -> Any:
        """``erfcx`` of a number from 0 on."""
        if x > far:
            return root_pi / x
        return scaled((x - point) / (x + point)) / (one + two * x)

    @device
    def of_square(x: Any, scale: Any) -> Any:
        """``exp(-scale * x**2)``, the scale a power of two."""
        if abs(x) > overflows:
            return zero * x if x != x else zero
        c = splitter * x
        high = c - (c - x)
        e = math.exp(-scale * high * high)
        return e + e * math.expm1(-scale * (x - high) * (x + high))

    @device
    def erfc(x: Any) -> Any:
        if abs(x) < half:
            return one - (x + x * small(x * x))
        tail = of_square(x, one) * scaled_tail(abs(x))
        return tail if x > zero else two - tail

    @device
    def erf(x: Any) -> Any:
        size = abs(x)
        if size < one:
            return x + x * small(x * x)
        tail = of_square(x, one) * scaled_tail(size)
        return math.copysign(one - tail, x) if x == x else x

    @device
    def erfcx(x: Any) -> Any:
        if x >= zero:
            return scaled_tail(x)
        if -x > overflows:
            return inf
        # Of the negative square: its two parts have the other sign.
        c = splitter * x
        high = c - (c - x)
        e = math.exp(high * high)
        e = e + e * math.expm1((x - high) * (x + high))
        return two * e - scaled_tail(-x)

    @device
    def scaled_normal(x: Any) -> Any:
        """``erfcx(x / sqrt(2)) / 2``."""
        return half * scaled_tail(x * root_half)

    @device
    def ndtr(x: Any) -> Any:
        size = abs(x)
        if size < half:
            y = x * root_half
            return half + half * (y + y * small(y * y))
        tail = of_square(x, half) * scaled_normal(size)
        return tail if x < zero else one - tail

    @device
    def log_ndtr(x: Any) -> Any:
        if x > -one:
            if x < half:
                return math.log(ndtr(x))
            return math.log1p(-of_square(x, half) * scaled_normal(x))
        return math.log(scaled_normal(-x)) - half * x * x

    @device
    def over(w: Any) -> Any:
        """The inverse error function of a number x over x, where ``w = -log(1 - x**2)``."""
        if w < w0:
            return central(w - c0)
        s = math.sqrt(w)
        if s < w1:
            return tail_1(s - c1)
        return tail_2(s - c2) if s < w2 else tail_3(s - c3)

    @device
    def erfinv(x: Any) -> Any:
        if abs(x) >= one:
            return math.copysign(inf, x) if abs(x) == one else nan
        if abs(x) < half:
            return x * over(-math.log1p(-x * x))
        return x * over(-math.log((one - x) * (one + x)))

    @device
    def erfcinv(y: Any) -> Any:
        if y <= zero or y >= two:
            if y == zero:
                return inf
            return -inf if y == two else nan
        x = one - y
        if abs(x) < half:
            return x * over(-math.log1p(-x * x))
        return x * over(-math.log(y * (two - y)))

    @device
    def ndtri(p: Any) -> Any:
        if p <= zero or p >= one:
            if p == zero:
                return -inf
            return inf if p == one else nan
        x = two * (p - half)
        if abs(x) < half:
            return root_two * x * over(-math.log1p(-x * x))
        # 4 p (1 - p), in an order that does not vanish
        return root_two * x * over(-math.log(p * ((one - p) / quarter)))

    return {
        "erf": erf,
        "erfc": erfc,
        "erfcx": erfcx,
        "erfinv": erfinv,
        "erfcinv": erfcinv,
        "ndtr": ndtr,
        "ndtri": ndtri,
        "log_ndtr": log_ndtr,
        "scaled_tail": scaled_tail,
    }


@functools.cache
def make_gamma_functions(dtype: type, device: Device) -> Functions:
    """The gamma function, its logarithm and the logarithm's derivative; beta.

    Between 2 and 3 by an approximation, below 12 by recurrence to it, above by Stirling's series
    with the power taken in two factors, as in Cephes (S. L. Moshier); below 0 by reflection. The
    logarithm keeps its zeros at 1 and 2 as factors, the digamma function its zero, as in Boost.
    Near the other zeros of the two, below 0, the error is small beside 1, not beside the value.
    ``beta`` of large arguments by deviances (A. R. DiDonato and A. H. Morris, "Algorithm 708",
    1992, use the same form).
    """
    is_double = _is_double(dtype)
    zero, half, one, two, three = (dtype(value) for value in (0, 0.5, 1, 2, 3))
    quarter, three_halves, middle = dtype(0.25), dtype(1.5), dtype(2.5)
    large = dtype(12 if is_double else 8)
    ten = dtype(10)
    pi = dtype(math.pi)
    root_two_pi = dtype(math.sqrt(2 * math.pi))
    log_root = dtype(0.5 * math.log(2 * math.pi) - 0.5)
    log_root_pi = dtype(math.log(math.pi))
    low, high = dtype(0.7), dtype(1.45)
    inf, nan = dtype(math.inf), dtype(math.nan)
    overflows = dtype(171.7 if is_double else 35.1)
    vanishes = dtype(185 if is_double else 43)
    tiny = dtype(np.finfo(dtype).tiny)
    whole = dtype(2.0**52 if is_double else 2.0**23)
    pair = make_pair_functions(dtype, device)
    nearest, sin_pi, sum_of = pair["nearest"], pair["sin_pi"], pair["sum_of"]
    logarithm, product_of, exponential = (
        pair["logarithm"],
        pair["product_of"],
        pair["exponential"],
    )
    from_two = make_approximation(dtype, "gamma", device)
    around_one = make_approximation(dtype, "gammaln_0", device)
    around_two = make_approximation(dtype, "gammaln_1", device)
    psi_part = make_approximation(dtype, "digamma", device)
    zero_high, zero_low = _zeros(dtype, "digamma")
    stirling = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
    series = make_polynomial(dtype, stirling if is_double else stirling[:4], device)
    # B(2k) / 2k
    bernoulli = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
    psi_series = make_polynomial(dtype, bernoulli if is_double else bernoulli[:4], device)

    @device
    def correction(x: Any) -> Any:
        """What Stirling's formula for the logarithm lacks, of a large number."""
        t = one / x
        return t * series(t * t)

    @device
    def of_large(x: Any) -> Any:
        """Stirling's formula, without the last power."""
        power = math.pow(x, half * x - quarter)
        return power, root_two_pi * math.exp(correction(x))

    @device
    def of_positive(x: Any) -> Any:
        if x >= large:
            if x > overflows:
                return inf
            power, factor = of_large(x)
            return power * math.exp(-x) * factor * power
        product = one
        while x >= three:
            x = x - one
            product = product * x
        if x >= two:
            return product * from_two(x - middle)
        if x < one:
            return from_two(x - half) / (x * (x + one))
        return from_two(x - three_halves) / x

    @device
    def gamma(x: Any) -> Any:
        if x > zero:
            return of_positive(x)
        if x == zero:
            return math.copysign(inf, x)
        if x != x:
            return x
        if x == -inf or nearest(x) == x:
            return nan
        if x > -one:
            return from_two(x + half) / (x * (x + one) * (x + two))
        size = -x
        s = -size * sin_pi(size)
        if size < large:
            return pi / s / of_positive(size)
        if size > vanishes:
            return math.copysign(zero, s)
        power, factor = of_large(size)
        return pi / s / factor * (math.exp(size) / power) / power

    @device
    def lgamma1p(x: Any) -> Any:
        """Of 1 + x, from -0.3 to 0.45 without rounding that sum."""
        return x * (x - one) * around_one(x)

    @device
    def gammaln_of_positive(x: Any) -> Any:
        if x < low:
            if x < tiny:
                return -math.log(x)
            if x < high - one:
                return lgamma1p(x) - math.log(x)
            return x * (x - one) * around_two(x - one) - math.log(x)
        if x < high:
            return (x - one) * (x - two) * around_one(x - one)
        if x >= large:
            if x > whole * whole:
                return x * (math.log(x) - one)
            return (x - half) * (math.log(x) - one) + log_root + correction(x)
        product = one
        while x >= three:
            x = x - one
            product = product * x
        near = (x - one) * (x - two) * around_two(x - two)
        return near + math.log(product) if product > one else near

    @device
    def gammaln(x: Any) -> Any:
        if x > zero:
            return gammaln_of_positive(x) if x < inf else inf
        if x != x:
            return x
        if nearest(x) == x:
            return inf
        size = -x
        s = abs(sin_pi(size))
        if size < tiny:
            return -math.log(size)
        if size < half:
            # In terms of 1 + x, which the logarithm has a zero at.
            found = gammaln_of_positive(one - size) if size > low - half else lgamma1p(x)
            return found - math.log(size)
        return log_root_pi - math.log(s * size) - gammaln_of_positive(size)

    @device
    def loggamma(x: Any) -> Any:
        return gammaln(x) if x >= zero else nan

    @device
    def rgamma(x: Any) -> Any:
        if x <= zero and nearest(x) == x and x > -inf:
            return zero
        return one / gamma(x)

    @device
    def gammasgn(x: Any) -> Any:
        if x > zero:
            return one
        if x != x:
            return x
        if x == zero:
            return math.copysign(one, x)
        n = nearest(x)
        if x == n:
            return nan
        below = n if n < x else n - one
        h = below * half
        return one if nearest(h) == h else -one

    @device
    def digamma_of_positive(x: Any) -> Any:
        if x >= ten:
            t = one / (x * x)
            return math.log(x) - (half / x + t * psi_series(t))
        if x < one:
            y = x + one
            return (x - (zero_high - one) - zero_low) * psi_part(y - three_halves) - one / x
        total = zero
        while x > two:
            x = x - one
            total = total + one / x
        return total + ((x - zero_high) - zero_low) * psi_part(x - three_halves)

    @device
    def digamma(x: Any) -> Any:
        if x > zero:
            return digamma_of_positive(x) if x < inf else inf
        if x == zero:
            return -math.copysign(inf, x)
        n = nearest(x)
        if x == -inf or x != x or n == x:
            return nan
        r = x - n
        angle = pi * r
        return digamma_of_positive(one - x) - pi * math.cos(angle) / math.sin(angle)

    @device
    def beta_of_large(a: Any, b: Any) -> Any:
        """The logarithm's parts: of the power as a pair, and the factor; both at least `large`."""
        nh, nl = sum_of(a, b)
        qa, qb = nh / a, nh / b
        ph, pl = product_of(qa, a)
        lh, ll = logarithm(qa, (((nh - ph) - pl) + nl) / a)
        ah, al = product_of(a, lh)
        al = al + a * ll
        ph, pl = product_of(qb, b)
        lh, ll = logarithm(qb, (((nh - ph) - pl) + nl) / b)
        bh, bl = product_of(b, lh)
        bl = bl + b * ll
        eh, el = sum_of(ah, bh)
        eh, el = sum_of(eh, el + al + bl)
        factor = root_two_pi * math.sqrt(nh / a / b)
        factor = factor * math.exp(correction(a) + correction(b) - correction(nh))
        return eh, el, factor

    @device
    def gamma_of_sum(a: Any, b: Any) -> Any:
        s, rest = sum_of(a, b)
        return of_positive(s) * (one + rest * digamma_of_positive(s))

    @device
    def ratio(a: Any, b: Any) -> Any:
        """``gamma(b) / gamma(a + b)`` without ``(a + b)**-a``, of a small and a large number."""
        nh, nl = sum_of(a, b)
        u = a - (b - half) * math.log1p(a / b)
        return math.exp(u + correction(b) - correction(nh)), nh, nl

    @device
    def beta_of_positive(a: Any, b: Any) -> Any:
        x = a if a < b else b
        y = b if a < b else a
        if x >= large:
            eh, el, factor = beta_of_large(x, y)
            return factor * exponential(eh, el)
        if y >= large:
            factor, nh, nl = ratio(x, y)
            if x < tiny:
                return one / x
            return of_positive(x) * factor * (math.pow(nh, -x) * (one - x * nl / nh))
        if x < tiny:
            return one / x
        return of_positive(x) / gamma_of_sum(x, y) * of_positive(y)

    @device
    def betaln_of_positive(a: Any, b: Any) -> Any:
        x = a if a < b else b
        y = b if a < b else a
        if x >= large:
            eh, el, factor = beta_of_large(x, y)
            return (math.log(factor) - eh) - el
        if y >= large:
            nh, _nl = sum_of(x, y)
            u = x - (y - half) * math.log1p(x / y)
            u = u + (correction(y) - correction(nh))
            return (gammaln_of_positive(x) - x * math.log(nh)) + u
        product = beta_of_positive(x, y)
        if product < inf and product > tiny:
            return math.log(product)
        return -math.log(x)

    return {
        "gamma": gamma,
        "gammaln": gammaln,
        "loggamma": loggamma,
        "rgamma": rgamma,
        "gammasgn": gammasgn,
        "digamma": digamma,
        "of_positive": of_positive,
        "correction": correction,
        "lgamma1p": lgamma1p,
        "ratio": ratio,
        "gamma_of_sum": gamma_of_sum,
        "beta_of_positive": beta_of_positive,
        "betaln_of_positive": betaln_of_positive,
    }


@functools.cache
def make_zeta_functions(dtype: type, device: Device) -> Functions:
    """Hurwitz's and Riemann's zeta functions and the polygamma functions.

    By the summation formula of Euler and Maclaurin, as in Cephes, with the number of terms grown
    with ``s``; below 0 by Riemann's functional equation.
    """
    is_double = _is_double(dtype)
    zero, half, one, two = (dtype(value) for value in (0, 0.5, 1, 2))
    quarter, nine, _ten, large = (dtype(value) for value in (0.25, 9, 10, 12))
    if not is_double:
        nine, large = dtype(5), dtype(8)
    epsilon = dtype(np.finfo(dtype).eps / 8)
    pi, inf, nan = dtype(math.pi), dtype(math.inf), dtype(math.nan)
    whole = dtype(2.0**52 if is_double else 2.0**23)
    far = dtype(-1e5)
    many = dtype(300 if is_double else 80)
    # 2 pi and 2 pi e, and what their rounded values lack
    two_pi = dtype(2 * math.pi)
    two_pi_rest = dtype(2.4492935982947064e-16 if is_double else 2 * math.pi - float(two_pi))
    rounded = 17.079468445347135  # the float next to it; the product of floats is another one
    two_pi_e = dtype(rounded)
    two_pi_e_rest = dtype(-1.3547630581004848e-15 if is_double else rounded - float(two_pi_e))
    gamma = make_gamma_functions(dtype, device)
    of_positive, digamma = gamma["of_positive"], gamma["digamma"]
    correction = gamma["correction"]
    pair = make_pair_functions(dtype, device)
    nearest, product_of, sin_pi = pair["nearest"], pair["product_of"], pair["sin_pi"]
    near_one = make_approximation(dtype, "zeta", device)
    # B(2j) / (2j)!
    ratios = [1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000]
    ratios += [1 / 74724249600, -3617 / 10670622842880000]
    ratios += [43867 / 5109094217170944000, -174611 / 802857662698291200000]
    ratios += [77683 / 14101100039391805440000, -236364091 / 1693824136731743669452800000]
    ratios = ratios if is_double else ratios[:6]
    lines = ["def value(s, a):", "    t = s / a", "    found = c0 * t"]
    for k in range(1, len(ratios)):
        lines.append(f"    t = t * ((s + n{2 * k - 1}) / a) * ((s + n{2 * k}) / a)")
        lines.append(f"    found = found + c{k} * t")
    names = {f"c{k}": dtype(value) for k, value in enumerate(ratios)}
    names |= {f"n{k}": dtype(k) for k in range(2 * len(ratios))}
    rest = _compiled("\n".join([*lines, "    return found"]) + "\n", names, device)

    @device
    def sum_from(s: Any, less: Any, q: Any) -> Any:
        """Hurwitz's function of s; ``less`` is ``s - 1``."""
        enough = nine + quarter * s
        total = math.pow(q, -s)
        a = q
        count = zero
        while count < nine or a < enough:
            count = count + one
            a = a + one
            term = math.pow(a, -s)
            total = total + term
            if abs(term) < epsilon * abs(total):
                return total
        power = math.pow(a, -s)
        return total + (power * a / less + power * (rest(s, a) - half))

    @device
    def zeta(s: Any, q: Any) -> Any:
        if s != s or q != q:
            return nan
        if s == one:
            return inf
        if s < one:
            return nan
        if q <= zero:
            if nearest(q) == q:
                return inf
            if nearest(s) != s or q < far:
                return nan
        if q == inf:
            return zero
        if s == inf:
            return zero if q > one else (one if q == one else inf)
        return sum_from(s, s - one, q)

    @device
    def riemann_zeta(s: Any) -> Any:
        if s == one:
            return inf
        if s >= zero:
            if s == inf:
                return one
            if s < two:
                return near_one(s - one) / (s - one)
            return sum_from(s, s - one, one)
        if s != s or s == -inf:
            return nan
        n = -s
        if n < epsilon:
            return -half
        turned = sin_pi(half * n) if n < whole else zero
        if turned == zero:
            return zero
        if n < large:
            power = math.pow(two_pi, -n) * (one - n * (two_pi_rest / two_pi))
            value = of_positive(n) * n * power
        elif n > many:
            return math.copysign(inf, -turned)
        else:
            c = n / two_pi_e
            ph, pl = product_of(c, two_pi_e)
            missing = ((n - ph) - pl - c * two_pi_e_rest) / n
            power = math.pow(c, half * n) * (one + half * n * missing)
            value = power * (math.sqrt(two_pi * n) * math.exp(correction(n))) * power
        return -value / pi * turned * sum_from(n + one, n, one)

    @device
    def polygamma(n: Any, x: Any) -> Any:
        if n == zero:
            return digamma(x)
        if n < zero or nearest(n) != n:
            return nan
        h = half * n
        value = of_positive(n + one) * zeta(n + one, x)
        return -value if nearest(h) == h else value

    return {"zeta": zeta, "riemann_zeta": riemann_zeta, "polygamma": polygamma}


@functools.cache
def make_bessel_functions(dtype: type, device: Device) -> Functions:
    """Bessel functions of order 0 and 1: ``j``, ``y`` and the modified ``i``, ``k``.

    Those of the first two kinds are, below 8, an approximation times the distance from each of the
    zeros there (as in Boost), above in Hankel's form with amplitudes approximated in ``1/x``
    (Cephes; J. F. Hart et al., "Computer Approximations", 1968). Errors are small beside the
    amplitude ``sqrt(2 / (pi x))``: near the zeros above 8 not beside the value. The modified ones
    as power series below 7.75, and without their exponential factor above.
    """
    zero, half, one, two = (dtype(value) for value in (0, 0.5, 1, 2))
    quarter, four, five, eight = (dtype(value) for value in (0.25, 4, 5, 8))
    eighth = dtype(0.125)
    inf, nan, pi = dtype(math.inf), dtype(math.nan), dtype(math.pi)
    two_over_pi = dtype(2 / math.pi)
    border = dtype(7.75)
    i_series = [make_approximation(dtype, f"i{n}", device) for n in (0, 1)]
    i_middle = [make_approximation(dtype, f"i{n}_middle", device) for n in (0, 1)]
    i_inverse = [make_approximation(dtype, f"i{n}_inverse", device) for n in (0, 1)]
    k_near = [make_approximation(dtype, f"k{n}_0", device) for n in (0, 1)]
    k_middle = [make_approximation(dtype, f"k{n}_1", device) for n in (0, 1)]
    k_large = [make_approximation(dtype, f"k{n}_2", device) for n in (0, 1)]
    p0, p1 = (make_approximation(dtype, f"hankel_p{n}", device) for n in (0, 1))
    q0, q1 = (make_approximation(dtype, f"hankel_q{n}", device) for n in (0, 1))
    i0_series, i1_series = i_series
    i0_middle, i1_middle = i_middle
    i0_inverse, i1_inverse = i_inverse
    twelve, twenty = dtype(12), dtype(20)
    k0_near, k1_near = k_near
    k0_middle, k1_middle = k_middle
    k0_large, k1_large = k_large
    c15 = dtype(1.5)
    j0_first = make_approximation(dtype, "j0_0", device)
    j0_second = make_approximation(dtype, "j0_1", device)
    j1_first = make_approximation(dtype, "j1_0", device)
    j1_second = make_approximation(dtype, "j1_1", device)
    y0_first = make_approximation(dtype, "y0_0", device)
    y0_second = make_approximation(dtype, "y0_1", device)
    y0_third = make_approximation(dtype, "y0_2", device)
    y1_first = make_approximation(dtype, "y1_0", device)
    y1_second = make_approximation(dtype, "y1_1", device)
    j0_z0, j0_z0r, j0_z1, j0_z1r = _zeros(dtype, "j0")
    j1_z0, j1_z0r, j1_z1, j1_z1r = _zeros(dtype, "j1")
    y0_z0, y0_z0r, y0_z1, y0_z1r, y0_z2, y0_z2r = _zeros(dtype, "y0")
    y1_z0, y1_z0r, y1_z1, y1_z1r = _zeros(dtype, "y1")
    s6, s65, s675, s575, s125, s3 = (dtype(value) for value in (6, 6.5, 6.75, 5.75, 12.5, 3))
    b25, b35, b55 = (dtype(value) for value in (2.5, 3.5, 5.5))
    huge = dtype(np.finfo(dtype).max)

    @device
    def i0_near(x: Any) -> Any:
        z = x * x
        return one + quarter * z * i0_series(z)

    @device
    def i1_near(x: Any) -> Any:
        z = x * x
        return half * x * (one + eighth * z * i1_series(z))

    @device
    def i0_large(x: Any) -> Any:
        """Without ``exp(x)``, above 7.75."""
        return (i0_middle(x - twelve) if x < twenty else i0_inverse(one / x)) / math.sqrt(x)

    @device
    def i1_large(x: Any) -> Any:
        return (i1_middle(x - twelve) if x < twenty else i1_inverse(one / x)) / math.sqrt(x)

    @device
    def i0(x: Any) -> Any:
        size = abs(x)
        if size < border:
            return i0_near(size)
        if size > huge:
            return inf
        e = math.exp(half * size)
        return e * i0_large(size) * e

    @device
    def i0e(x: Any) -> Any:
        size = abs(x)
        if size < border:
            return i0_near(size) * math.exp(-size)
        return i0_large(size)

    @device
    def i1(x: Any) -> Any:
        size = abs(x)
        if size < border:
            return i1_near(x)
        if size > huge:
            return x
        e = math.exp(half * size)
        return math.copysign(e * i1_large(size) * e, x)

    @device
    def i1e(x: Any) -> Any:
        size = abs(x)
        if size < border:
            return i1_near(x) * math.exp(-size)
        if x != x:
            return x
        return math.copysign(i1_large(size), x)

    @device
    def k0_of_small(x: Any) -> Any:
        return k0_near(x * x) - math.log(x) * i0_near(x)

    @device
    def k1_of_small(x: Any) -> Any:
        return one / x + (math.log(x) * i1_near(x) + x * k1_near(x * x))

    @device
    def k0_scaled(x: Any) -> Any:
        """Without ``exp(-x)``, above 1."""
        if x < two:
            return k0_middle(x - c15) / math.sqrt(x)
        return k0_large(one / x) / math.sqrt(x)

    @device
    def k1_scaled(x: Any) -> Any:
        if x < two:
            return k1_middle(x - c15) / math.sqrt(x)
        return k1_large(one / x) / math.sqrt(x)

    @device
    def k0(x: Any) -> Any:
        if x <= zero:
            return inf if x == zero else nan
        if x <= one:
            return k0_of_small(x)
        e = math.exp(-half * x)
        return e * k0_scaled(x) * e

    @device
    def k0e(x: Any) -> Any:
        if x <= zero:
            return inf if x == zero else nan
        if x <= one:
            return k0_of_small(x) * math.exp(x)
        return k0_scaled(x)

    @device
    def k1(x: Any) -> Any:
        if x <= zero:
            return inf if x == zero else nan
        if x <= one:
            return k1_of_small(x)
        e = math.exp(-half * x)
        return e * k1_scaled(x) * e

    @device
    def k1e(x: Any) -> Any:
        if x <= zero:
            return inf if x == zero else nan
        if x <= one:
            return k1_of_small(x) * math.exp(x)
        return k1_scaled(x)

    @device
    def from_zero(x: Any, high: Any, low: Any) -> Any:
        return ((x - high) - low) * (x + high)

    @device
    def j0(x: Any) -> Any:
        size = abs(x)
        if size < four:
            return from_zero(size, j0_z0, j0_z0r) * j0_first(size * size - eight)
        if size < eight:
            return from_zero(size, j0_z1, j0_z1r) * j0_second(size - s6)
        if size > huge:
            return zero
        t = eight / size
        c, s = math.cos(size), math.sin(size)
        z = t * t
        return (p0(z) * (c + s) - q0(z) / size * (s - c)) / math.sqrt(pi * size)

    @device
    def j1(x: Any) -> Any:
        size = abs(x)
        if size < five:
            return x * (from_zero(size, j1_z0, j1_z0r) * j1_first(size * size - s125))
        if size < eight:
            found = from_zero(size, j1_z1, j1_z1r) * j1_second(size - s65)
            return found if x > zero else -found
        if size > huge:
            return zero
        t = eight / size
        c, s = math.cos(size), math.sin(size)
        z = t * t
        found = (p1(z) * (s - c) + q1(z) / size * (s + c)) / math.sqrt(pi * size)
        return found if x > zero else -found

    @device
    def logarithm_from(x: Any, high: Any, low: Any) -> Any:
        """The logarithm of x over a zero."""
        if x > half * high and x < two * high:
            return math.log1p(((x - high) - low) / high)
        return math.log(x / high)

    @device
    def y0(x: Any) -> Any:
        if x <= zero:
            return -inf if x == zero else nan
        if x < b25:
            found = from_zero(x, y0_z0, y0_z0r) * y0_first(x * x - s3)
            return found + two_over_pi * logarithm_from(x, y0_z0, y0_z0r) * j0(x)
        if x < b55:
            return from_zero(x, y0_z1, y0_z1r) * y0_second(x - four)
        if x < eight:
            return from_zero(x, y0_z2, y0_z2r) * y0_third(x - s675)
        if x > huge:
            return zero
        t = eight / x
        c, s = math.cos(x), math.sin(x)
        z = t * t
        return (p0(z) * (s - c) + q0(z) / x * (s + c)) / math.sqrt(pi * x)

    @device
    def y1(x: Any) -> Any:
        if x <= zero:
            return -inf if x == zero else nan
        if x < b35:
            found = from_zero(x, y1_z0, y1_z0r) * y1_first(x * x - s6) / x
            return found + two_over_pi * logarithm_from(x, y1_z0, y1_z0r) * j1(x)
        if x < eight:
            return from_zero(x, y1_z1, y1_z1r) * y1_second(x - s575)
        if x > huge:
            return zero
        t = eight / x
        c, s = math.cos(x), math.sin(x)
        z = t * t
        return (q1(z) / x * (s - c) - p1(z) * (s + c)) / math.sqrt(pi * x)

    return {
        "i0": i0,
        "i0e": i0e,
        "i1": i1,
        "i1e": i1e,
        "j0": j0,
        "j1": j1,
        "k0": k0,
        "k0e": k0e,
        "k1": k1,
        "k1e": k1e,
        "y0": y0,
        "y1": y1,
    }


@functools.cache
def make_elementary_functions(dtype: type, device: Device) -> Functions:
    """What is made of exponentials and logarithms: logistic, entropies, Box and Cox, Huber.

    Differences of logarithms are taken as one logarithm near 1; powers as powers.
    """
    is_double = _is_double(dtype)
    zero, half, one, two, ten = (dtype(value) for value in (0, 0.5, 1, 2, 10))
    inf, nan, pi = dtype(math.inf), dtype(math.nan), dtype(math.pi)
    low, high = dtype(0.3), dtype(0.65)
    epsilon = dtype(np.finfo(dtype).eps / 4)
    tiny, huge = dtype(np.finfo(dtype).tiny), dtype(np.finfo(dtype).max)
    most = dtype(np.log(np.finfo(dtype).max))
    dtype(math.pi / 180)
    _sixty, _ninety, _half_turn = dtype(60), dtype(90), dtype(180)
    pair = make_pair_functions(dtype, device)
    eight = dtype(8)
    most_of_pairs = dtype(1e280 if is_double else 1e30)
    least_of_pairs = dtype(1e-280 if is_double else 1e-30)
    sum_of, product_of = pair["sum_of"], pair["product_of"]
    _nearest, sin_pi, deviance = pair["nearest"], pair["sin_pi"], pair["deviance"]
    logarithm = pair["logarithm"]

    @device
    def expit(x: Any) -> Any:
        if x < zero:
            e = math.exp(x)
            return e / (one + e)
        return one / (one + math.exp(-x))

    @device
    def log_expit(x: Any) -> Any:
        if x < zero:
            return x - math.log1p(math.exp(x))
        return -math.log1p(math.exp(-x))

    @device
    def softplus(x: Any) -> Any:
        return -log_expit(-x)

    @device
    def logit(p: Any) -> Any:
        if p > low and p < high:
            s = two * (p - half)
            return math.log1p(s) - math.log1p(-s)
        if p < zero or p > one:
            return nan
        if p == one:
            return inf
        return math.log(p / (one - p))

    @device
    def xlogy(x: Any, y: Any) -> Any:
        if x == zero and y == y:
            return zero
        return x * math.log(y) if y >= zero else nan

    @device
    def xlog1py(x: Any, y: Any) -> Any:
        if x == zero and y == y:
            return zero
        return x * math.log1p(y) if y >= -one else nan

    @device
    def entr(x: Any) -> Any:
        if x > zero:
            return -x * math.log(x)
        if x == zero:
            return zero
        return x if x != x else -inf

    @device
    def rel_entr(x: Any, y: Any) -> Any:
        if x != x or y != y:
            return nan
        if x > zero and y > zero:
            if x > half * y and x < two * y:
                return x * math.log1p((x - y) / y)
            ratio = x / y
            if ratio > tiny and ratio <= huge:
                return x * math.log(ratio)
            return x * (math.log(x) - math.log(y))
        return zero if x == zero and y >= zero else inf

    @device
    def kl_div(x: Any, y: Any) -> Any:
        if x != x or y != y:
            return nan
        if x > zero and y > zero:
            if x > eight * y or y > eight * x or x > most_of_pairs or x < least_of_pairs:
                # Nothing is lost here, or pairs do not reach there.
                return (x * (math.log(x) - math.log(y)) - x) + y
            h, rest = deviance(y, zero, x)
            return h + rest
        return y if x == zero and y >= zero else inf

    @device
    def sinc(x: Any) -> Any:
        if abs(x) < epsilon:
            return one
        return sin_pi(x) / (pi * x) if abs(x) <= huge else (zero if x == x else x)

    @device
    def exprel(x: Any) -> Any:
        if abs(x) < epsilon:
            return one
        if x > most - one:
            if x > most + ten:
                return inf
            e = math.exp(half * x)
            return e / x * e
        return math.expm1(x) / x

    @device
    def exp10(x: Any) -> Any:
        return math.pow(ten, x)

    @device
    def power_less_one(high: Any, low: Any, power: Any) -> Any:
        """``((high + low)**power - 1) / power``, the base near 1 or the power small."""
        h, rest = logarithm(high, low)
        e = power * h
        if abs(e) < one:
            return math.expm1(power * (h + rest)) / power
        return (math.pow(high, power) * (one + power * (low / high)) - one) / power

    @device
    def boxcox(x: Any, power: Any) -> Any:
        if x != x or power != power or x < zero:
            return nan
        if power == zero:
            return math.log(x)
        if x == zero or x > huge or abs(power) > huge:
            if x == zero:
                return -inf if power < zero else -one / power
            return (math.pow(x, power) - one) / power
        e = power * math.log(x)
        if abs(e) < one:
            return math.expm1(e) / power
        if e < most:
            return (math.pow(x, power) - one) / power
        half_power = math.pow(x, half * power)
        return half_power / power * half_power

    @device
    def boxcox1p(x: Any, power: Any) -> Any:
        if x != x or power != power or x < -one:
            return nan
        e = math.log1p(x)
        if abs(power) < tiny:
            return e
        if x == -one or x > huge or abs(power) > huge:
            return math.expm1(power * e) / power
        e = power * e
        if abs(e) < one:
            return math.expm1(e) / power
        h, rest = sum_of(one, x)
        if e < most:
            return (math.pow(h, power) * (one + power * (rest / h)) - one) / power
        half_power = math.pow(h, half * power)
        return half_power / power * (one + power * (rest / h)) * half_power

    @device
    def log_over(x: Any, power: Any) -> Any:
        """``log1p(power * x) / power`` as a pair, where the product is neither near 0 nor 1."""
        ph, pl = product_of(power, x)
        h, rest = sum_of(one, ph)
        h, rest = logarithm(h, rest + pl)
        q = h / power
        ph, pl = product_of(q, power)
        return q, (((h - ph) - pl) + rest) / power

    @device
    def inv_boxcox(x: Any, power: Any) -> Any:
        if power == zero:
            return math.exp(x)
        y = power * x
        if abs(y) < half or y != y or abs(y) > huge or y <= -one:
            return math.exp(math.log1p(y) / power) if y >= -one else nan
        e = math.log1p(y) / power
        if abs(e) > most:
            return math.exp(e)
        h, rest = log_over(x, power)
        return math.exp(h) * (one + rest)

    @device
    def inv_boxcox1p(x: Any, power: Any) -> Any:
        if power == zero:
            return math.expm1(x)
        y = power * x
        if abs(y) < epsilon:
            return math.expm1(x)
        if abs(y) < half or y != y or abs(y) > huge or y <= -one:
            return math.expm1(math.log1p(y) / power) if y >= -one else nan
        e = math.log1p(y) / power
        if abs(e) > most:
            return math.expm1(e)
        h, rest = log_over(x, power)
        e = math.expm1(h)
        return e + (e + one) * rest if e < huge else e

    @device
    def huber(delta: Any, r: Any) -> Any:
        if delta < zero:
            return inf
        size = abs(r)
        return half * r * r if size <= delta else delta * (size - half * delta)

    @device
    def pseudo_huber(delta: Any, r: Any) -> Any:
        if delta < zero:
            return inf
        if delta == zero or r == zero:
            return zero
        v = r / delta
        return delta * (v / (math.sqrt(one + v * v) + one)) * r

    return {
        "expit": expit,
        "log_expit": log_expit,
        "softplus": softplus,
        "logit": logit,
        "xlogy": xlogy,
        "xlog1py": xlog1py,
        "entr": entr,
        "rel_entr": rel_entr,
        "kl_div": kl_div,
        "sinc": sinc,
        "exprel": exprel,
        "exp10": exp10,
        "boxcox": boxcox,
        "boxcox1p": boxcox1p,
        "inv_boxcox": inv_boxcox,
        "inv_boxcox1p": inv_boxcox1p,
        "huber": huber,
        "pseudo_huber": pseudo_huber,
    }


@functools.cache
def make_incomplete_gamma_functions(dtype: type, device: Device) -> Functions:
    """The incomplete gamma functions, regularised, their inverses, and distributions by them.

    Where ``a`` is large and ``x`` near it, N. M. Temme's uniform expansion ("The Asymptotic
    Expansion of the Incomplete Gamma Functions", 1979); else the power series below ``a`` and
    Legendre's continued fraction above, and for small ``a`` and ``x`` the series of the complement
    (A. R. DiDonato and A. H. Morris, "Computation of the Incomplete Gamma Function Ratios and
    their Inverse", 1986). The inverses by Newton's method for the logarithm of the smaller one.
    """
    is_double = _is_double(dtype)
    zero, half, one, two, nine = (dtype(value) for value in (0, 0.5, 1, 2, 9))
    inf, nan = dtype(math.inf), dtype(math.nan)
    large = dtype(30 if is_double else 12)
    near = dtype(0.35)
    widest = dtype(1e35 if is_double else 1e16)
    epsilon = dtype(np.finfo(dtype).eps / 2)
    tiny, huge = dtype(np.finfo(dtype).tiny), dtype(np.finfo(dtype).max)
    vanishes = dtype(1100 if is_double else 200)
    root_two_pi = dtype(math.sqrt(2 * math.pi))
    border, two_fifths, third = dtype(1.1), dtype(0.4), dtype(1 / 3)
    most_steps, most_turns = dtype(2000), dtype(60)
    pair = make_pair_functions(dtype, device)
    deviance, exponential = pair["deviance"], pair["exponential"]
    gamma = make_gamma_functions(dtype, device)
    of_positive, correction = gamma["of_positive"], gamma["correction"]
    lgamma1p, gammaln = gamma["lgamma1p"], gamma["gammaln"]
    error = make_error_functions(dtype, device)
    scaled_tail, ndtri = error["scaled_tail"], error["ndtri"]
    temme = make_temme_sum(dtype, device)
    limit = dtype(0.44)

    @device
    def density(a: Any, x: Any) -> Any:
        """``x**a * exp(-x) / gamma(a + 1)``."""
        if a >= large:
            h, rest = deviance(x, zero, a)
            return exponential(h, rest) / (root_two_pi * math.sqrt(a)) * math.exp(-correction(a))
        if x > vanishes:
            return zero
        e = math.exp(-half * x)
        power = math.pow(x, a) * e
        if a > limit:
            return power / (a * of_positive(a)) * e
        return power * math.exp(-lgamma1p(a)) * e

    @device
    def series(a: Any, x: Any) -> Any:
        total, term, n = one, one, a
        turns = zero
        while term > epsilon * total and turns < most_steps:
            n = n + one
            term = term * (x / n)
            total = total + term
            turns = turns + one
        return total

    @device
    def fraction(a: Any, x: Any) -> Any:
        """Legendre's, summed from its first term on, as J. Steed does."""
        b = x + one - a
        d = one / b
        term = d
        found = d
        n = zero
        while abs(term) > epsilon * abs(found) and n < most_steps:
            n = n + one
            factor = -n * (n - a)
            b = b + two
            d = one / (b + factor * d)
            term = (b * d - one) * term
            found = found + term
        return found

    @device
    def complement(a: Any, x: Any) -> Any:
        """The upper function of small numbers: the lower one's series without its first term."""
        total, factor, n = zero, one, zero
        term = one
        while abs(term) > epsilon * abs(total) or n < two:
            n = n + one
            factor = factor * (-x / n)
            term = factor / (a + n)
            total = total + term
        log_gamma = lgamma1p(a)
        e = a * math.log(x) - log_gamma
        return -math.expm1(e) - a * math.exp(e) * total

    @device
    def both(a: Any, x: Any) -> Any:
        """The lower and the upper function of positive finite numbers."""
        if a > widest:  # the step is narrower than a rounding error
            lower = half if x == a else (zero if x < a else one)
            return lower, one - lower
        if a >= large and abs(x - a) <= near * a:
            h, rest = deviance(x, zero, a)
            h = h if h > zero else zero
            e = exponential(h, rest)
            eta = math.copysign(math.sqrt(two * h / a), x - a)
            s = temme(eta, one / a) / (root_two_pi * math.sqrt(a))
            tail = half * scaled_tail(math.sqrt(h))
            if x >= a:
                upper = e * (tail + s)
                return one - upper, upper
            lower = e * (tail - s)
            return lower, one - lower
        if x <= border and a <= limit:
            is_upper = x > half and x * border >= a
            if x <= half:
                is_upper = -two_fifths / math.log(x) >= a
            if is_upper:
                upper = complement(a, x)
                return (one - upper if upper < half else density(a, x) * series(a, x)), upper
        if x <= border or x <= a:
            lower = density(a, x) * series(a, x)
            return lower, one - lower
        upper = density(a, x)
        if upper > zero:
            upper = upper * a * fraction(a, x)
        return one - upper, upper

    @device
    def gammainc(a: Any, x: Any) -> Any:
        if a != a or x != x or a < zero or x < zero:
            return nan
        if x == zero:
            return nan if a == zero else zero
        if a == zero:
            return one
        if a > huge or x > huge:
            return nan if a > huge and x > huge else (zero if a > huge else one)
        lower, _upper = both(a, x)
        return lower

    @device
    def gammaincc(a: Any, x: Any) -> Any:
        if a != a or x != x or a < zero or x < zero:
            return nan
        if x == zero:
            return nan if a == zero else one
        if a == zero:
            return zero
        if a > huge or x > huge:
            return nan if a > huge and x > huge else (one if a > huge else zero)
        _lower, upper = both(a, x)
        return upper

    @device
    def guess(a: Any, p: Any, q: Any) -> Any:
        z = ndtri(p) if p < half else -ndtri(q)
        root = one - one / (nine * a) + z * third / math.sqrt(a)
        if a > half and root > third:
            return a * root * root * root
        small = math.exp((math.log(p) + gammaln(a + one)) / a)
        y = -math.log(q) - gammaln(a)
        if small > one and a < one and y > one:
            return y + (a - one) * math.log(y)
        return small

    @device
    def solve(a: Any, p: Any, q: Any) -> Any:
        x = guess(a, p, q)
        if x < tiny:
            return x
        least, most = zero, inf
        turns = zero
        while turns < most_turns:
            turns = turns + one
            lower, upper = both(a, x)
            slope = density(a, x) * a / x
            if p <= half:
                is_low = lower < p
                ratio = math.log(lower / p) * lower / (slope * x)
                y = x * math.exp(-ratio)
                if ratio < half and ratio > -half:
                    y = x + x * math.expm1(-ratio)
            else:
                is_low = upper > q
                y = x + math.log(upper / q) * upper / slope
            if is_low:
                least = x if x > least else least
            else:
                most = x if x < most else most
            if y > two * two * x + one:
                y = two * two * x + one
            if not (y > least and y < most):
                y = half * half * x if least == zero else half * (least + most)
                if most > huge:
                    y = two * x
            if abs(y - x) <= two * epsilon * x:
                return y
            x = y
        return x

    @device
    def gammaincinv(a: Any, p: Any) -> Any:
        if not (a >= zero and p >= zero and p <= one):
            return nan
        if p == zero:
            return zero
        if p == one:
            return inf
        if a == zero or a > huge:
            return nan
        return solve(a, p, one - p) if a < widest else a

    @device
    def gammainccinv(a: Any, q: Any) -> Any:
        if not (a >= zero and q >= zero and q <= one):
            return nan
        if q == one:
            return zero
        if q == zero:
            return inf
        if a == zero or a > huge:
            return nan
        return solve(a, one - q, q) if a < widest else a

    @device
    def chdtr(v: Any, x: Any) -> Any:
        return gammainc(half * v, half * x)

    @device
    def chdtrc(v: Any, x: Any) -> Any:
        return gammaincc(half * v, half * x)

    @device
    def chdtri(v: Any, p: Any) -> Any:
        return two * gammainccinv(half * v, p)

    return {
        "gammainc": gammainc,
        "gammaincc": gammaincc,
        "gammaincinv": gammaincinv,
        "gammainccinv": gammainccinv,
        "chdtr": chdtr,
        "chdtrc": chdtrc,
        "chdtri": chdtri,
    }


@functools.cache
def make_beta_functions(dtype: type, device: Device) -> Functions:
    """The beta function, the incomplete one, its inverse, and distributions by them.

    By the power series where ``b * x`` is small, or that of the complement where ``a`` is, too,
    else by the continued fraction of A. R. DiDonato and A. H. Morris ("Algorithm 708", 1992; DLMF
    8.17.22), with the factor before it written with
    deviances (C. Loader, 2000) where both parameters are large. The inverse by Newton's method for
    the logarithm of the smaller part, within bounds.
    """
    is_double = _is_double(dtype)
    zero, half, one, two = (dtype(value) for value in (0, 0.5, 1, 2))
    inf, nan, _pi = dtype(math.inf), dtype(math.nan), dtype(math.pi)
    large = dtype(12 if is_double else 8)
    epsilon = dtype(np.finfo(dtype).eps / 2)
    tiny, huge = dtype(np.finfo(dtype).tiny), dtype(np.finfo(dtype).max)
    root_two_pi = dtype(math.sqrt(2 * math.pi))
    most_steps, most_turns = dtype(20000), dtype(100)
    border, limit = dtype(0.95), dtype(0.44)
    far = dtype(1e250 if is_double else 1e30)
    many = dtype(1e16 if is_double else 1e8)
    ndtr = make_error_functions(dtype, device)["ndtr"]
    pair = make_pair_functions(dtype, device)
    sum_of, product_of = pair["sum_of"], pair["product_of"]
    deviance, exponential = pair["deviance"], pair["exponential"]
    nearest = pair["nearest"]
    gamma = make_gamma_functions(dtype, device)
    of_positive, correction = gamma["of_positive"], gamma["correction"]
    gammaln, gammasgn = gamma["gammaln"], gamma["gammasgn"]
    lgamma1p = gamma["lgamma1p"]
    ratio, gamma_of_sum = gamma["ratio"], gamma["gamma_of_sum"]
    beta_of_positive = gamma["beta_of_positive"]
    betaln_of_positive = gamma["betaln_of_positive"]

    @device
    def beta(a: Any, b: Any) -> Any:
        if a > zero and b > zero:
            return beta_of_positive(a, b) if a <= huge and b <= huge else zero
        if a != a or b != b or a < -huge or b < -huge:
            return nan
        if a == zero or b == zero:
            return inf
        s = a + b
        if (a < zero and nearest(a) == a) or (b < zero and nearest(b) == b):
            n = a if a < zero and nearest(a) == a else b
            m = b if n == a else a
            if nearest(m) == m and one - n - m > zero:
                h = half * m
                found = beta_of_positive(one - n - m, m)
                return found if nearest(h) == h else -found
            return inf
        if s <= zero and nearest(s) == s:
            return zero
        sign = gammasgn(a) * gammasgn(b) * gammasgn(s)
        return sign * math.exp(gammaln(a) + gammaln(b) - gammaln(s))

    @device
    def betaln(a: Any, b: Any) -> Any:
        if a > zero and b > zero:
            return betaln_of_positive(a, b) if a <= huge and b <= huge else -inf
        return math.log(abs(beta(a, b)))

    @device
    def mixed(a: Any, b: Any, x: Any, y: Any, y_more: Any) -> Any:
        """``x**a * y**b / beta(a, b)`` of a small ``a`` and a large ``b``."""
        last = math.pow(y, b) * (one + b * (y_more / y))
        if last == zero:
            return zero
        factor, nh, nl = ratio(a, b)
        ph, pl = product_of(nh, x)
        if ph < tiny:
            return math.pow(nh, a) * math.pow(x, a) * last / (of_positive(a) * factor)
        power = math.pow(ph, a) * (one + a * ((pl + nl * x) / ph))
        return power / of_positive(a) * last / factor

    @device
    def density(a: Any, b: Any, x: Any, xl: Any, y: Any, yl: Any) -> Any:
        """``x**a * y**b / beta(a, b)``, where ``y = 1 - x``; both with the rest of their value."""
        if a >= large and b >= large:
            nh, nl = sum_of(a, b)
            uh, ul = product_of(nh, x)
            ul = ul + (nl * x + nh * xl)
            vh, vl = product_of(nh, y)
            vl = vl + (nl * y + nh * yl)
            dh, dl = deviance(uh, ul, a)
            eh, el = deviance(vh, vl, b)
            h, rest = sum_of(dh, eh)
            factor = math.exp(correction(nh) - correction(a) - correction(b))
            scale = a / nh * b
            return exponential(h, rest + dl + el) * (math.sqrt(scale) / root_two_pi) * factor
        if b >= large:
            return mixed(a, b, x, y, yl)
        if a >= large:
            return mixed(b, a, y, x, xl)
        last = math.pow(y, b) * (one + b * (yl / y))
        if a < tiny or b < tiny:
            return (a if a < b else b) * math.pow(x, a) * last
        return math.pow(x, a) / of_positive(a) * (gamma_of_sum(a, b) / of_positive(b)) * last

    @device
    def series(a: Any, b: Any, x: Any, first: Any) -> Any:
        """The power series without its first factor (DLMF 8.17.8, of ``1 - b``) and term."""
        total, n, term = first, zero, one
        more = one
        while abs(more) > epsilon * abs(total) and n < most_steps:
            n = n + one
            term = term * ((n - b) / n * x)
            more = term / (a + n)
            total = total + more
        return total

    @device
    def fraction(a: Any, b: Any, x: Any, y: Any) -> Any:
        """The even part of the continued fraction, by the recurrence of its convergents."""
        c = one + (a * y - b * x if a > b else a - (a + b) * x)
        c0 = b / a
        c1 = one + one / a
        yp1 = y + one
        n = zero
        p = one
        s = a + one
        an = zero
        bn = one
        anp1 = one
        bnp1 = c / c1
        r = c1 / c
        change = one
        while change > epsilon and n < most_steps:
            n = n + one
            t = n / a
            w = n * (b - n) * x
            e = a / s
            alpha = (p * (p + c0) * e * e) * (w * x)
            e = (one + t) / (c1 + t + t)
            be = n + w / s + e * (c + n * yp1)
            p = one + t
            s = s + two
            t = alpha * an + be * anp1
            an = anp1
            anp1 = t
            t = alpha * bn + be * bnp1
            bn = bnp1
            bnp1 = t
            r0 = r
            r = anp1 / bnp1
            change = abs((r - r0) / r)
            an = an / bnp1
            bn = bn / bnp1
            anp1 = r
            bnp1 = one
        return r

    @device
    def lower(a: Any, b: Any, x: Any, xl: Any, y: Any, yl: Any) -> Any:
        """The lower part, for x below the mean or so."""
        d = density(a, b, x, xl, y, yl)
        if d == zero:
            return zero
        if b * x <= one and x <= border:
            return d / (math.pow(y, b) * (one + b * (yl / y))) * series(a, b, x, one / a)
        return d * fraction(a, b, x, y)

    @device
    def complement(a: Any, b: Any, x: Any) -> Any:
        """The upper part where ``a`` and ``b * x`` are small: the series without its first term."""
        nh = a + b
        u = (a - (b - half) * math.log1p(a / b)) + (correction(b) - correction(nh))
        e = (a * math.log(nh * x) - lgamma1p(a)) - u
        total = series(a, b, x, zero)
        return -math.expm1(e) - math.exp(e) * a * total

    @device
    def both(a: Any, b: Any, x: Any, xl: Any, y: Any, yl: Any) -> Any:
        """The lower and the upper part for positive numbers, ``x + y`` being 1."""
        if b * x <= one and x <= border and x <= half:
            if a <= limit and b >= large:
                above = complement(a, b, x)
                if above < half:
                    return one - above, above
            found = lower(a, b, x, xl, y, yl)
            if found < border:
                return found, one - found
        if a * y <= one and y <= border and y <= half:
            if b <= limit and a >= large:
                under = complement(b, a, y)
                if under < half:
                    return under, one - under
            found = lower(b, a, y, yl, x, xl)
            if found < border:
                return one - found, found
        if x * (a + b) <= a:
            found = lower(a, b, x, xl, y, yl)
            return found, one - found
        found = lower(b, a, y, yl, x, xl)
        return one - found, found

    @device
    def betainc(a: Any, b: Any, x: Any) -> Any:
        if not (a >= zero and b >= zero and x >= zero and x <= one):
            return nan
        if (a == zero and b == zero) or (a > huge and b > huge):
            return nan
        if x == zero:
            return zero
        if x == one:
            return one
        if a == zero or b > huge:
            return one
        if b == zero or a > huge:
            return zero
        y, yl = sum_of(one, -x)
        found, _other = both(a, b, x, zero, y, yl)
        return found

    @device
    def betaincc(a: Any, b: Any, x: Any) -> Any:
        if not (a >= zero and b >= zero and x >= zero and x <= one):
            return nan
        if (a == zero and b == zero) or (a > huge and b > huge):
            return nan
        if x == zero:
            return one
        if x == one:
            return zero
        if a == zero or b > huge:
            return zero
        if b == zero or a > huge:
            return one
        y, yl = sum_of(one, -x)
        _found, other = both(a, b, x, zero, y, yl)
        return other

    @device
    def solve(a: Any, b: Any, p: Any, q: Any) -> Any:
        """Where the lower part is p and the upper q; not above 1/2."""
        x = math.exp((math.log(p) + math.log(a) + betaln_of_positive(a, b)) / a)
        mean = a / (a + b)
        if not x < mean:
            x = mean
        if x > half:
            x = half
        if x < tiny:
            return x
        least, most = zero, one
        turns = zero
        while turns < most_turns:
            turns = turns + one
            y, yl = sum_of(one, -x)
            under, above = both(a, b, x, zero, y, yl)
            slope = density(a, b, x, zero, y, yl) / y
            if p <= half:
                is_low = under < p
                step = -math.log(under / p) * under / slope
            else:
                is_low = above > q
                step = math.log(above / q) * above / slope
            if is_low:
                least = x if x > least else least
            else:
                most = x if x < most else most
            if step < one and step > -one:
                z = x + x * math.expm1(step)
            else:
                z = x * math.exp(step)
            if not (z > least and z < most):
                z = math.sqrt(least) * math.sqrt(most) if least > zero else half * half * x
            if abs(z - x) <= two * epsilon * x:
                return z
            x = z
        return x

    @device
    def point(a: Any, b: Any, p: Any, q: Any) -> Any:
        """Where the lower part is p and the upper q, and its distance from 1."""
        if p == zero or q == zero:
            return (zero, one) if p == zero else (one, zero)
        under, _above = both(a, b, half, zero, half, zero)
        is_low = under >= p
        x = solve(
            a if is_low else b,
            b if is_low else a,
            p if is_low else q,
            q if is_low else p,
        )
        y = one - x
        return (x, y) if is_low else (y, x)

    @device
    def betaincinv(a: Any, b: Any, p: Any) -> Any:
        if not (a > zero and b > zero and p >= zero and p <= one) or a > huge or b > huge:
            return nan
        x, _y = point(a, b, p, one - p)
        return x

    @device
    def betainccinv(a: Any, b: Any, q: Any) -> Any:
        if not (a > zero and b > zero and q >= zero and q <= one) or a > huge or b > huge:
            return nan
        x, _y = point(a, b, one - q, q)
        return x

    @device
    def quotient(a: Any, rest: Any, b: Any, more: Any) -> Any:
        q = a / b
        ph, pl = product_of(q, b)
        return q, (((a - ph) - pl) + rest - q * more) / b

    @device
    def parts(a: Any, rest: Any, b: Any) -> Any:
        """The shares of a and b in their sum, each with the rest of its value."""
        s, more = sum_of(a, b)
        more = more + rest
        x, xl = quotient(a, rest, s, more)
        y, yl = quotient(b, zero, s, more)
        return x, xl, y, yl

    @device
    def stdtr(df: Any, t: Any) -> Any:
        if not (df > zero) or t != t:
            return nan
        if abs(t) > huge:
            return one if t > zero else zero
        if t == zero:
            return half
        if df > many:
            return ndtr(t)  # what it tends to
        s, sl = product_of(t, t)
        if s > far:
            x, xl, y, yl = df / t / t, zero, one, zero
        else:
            x, xl, y, yl = parts(s, sl, df)
            x, xl, y, yl = y, yl, x, xl
        if x == zero:
            return one if t > zero else zero
        if y == zero:
            return half
        under, _above = both(half * df, half, x, xl, y, yl)
        tail = half * under
        return one - tail if t > zero else tail

    @device
    def of_f(m: Any, n: Any, x: Any) -> Any:
        w, wl = product_of(m, x)
        if w > far:
            return one, zero
        u, ul, v, vl = parts(w, wl, n)
        if u == zero or v == zero:
            return u, v
        return both(half * m, half * n, u, ul, v, vl)

    @device
    def fdtr(m: Any, n: Any, x: Any) -> Any:
        if not (m > zero and n > zero and x >= zero) or m > huge or n > huge:
            return nan
        if x == zero or x > huge:
            return zero if x == zero else one
        under, _above = of_f(m, n, x)
        return under

    @device
    def fdtrc(m: Any, n: Any, x: Any) -> Any:
        if not (m > zero and n > zero and x >= zero) or m > huge or n > huge:
            return nan
        if x == zero or x > huge:
            return one if x == zero else zero
        _under, above = of_f(m, n, x)
        return above

    return {
        "beta": beta,
        "betaln": betaln,
        "betainc": betainc,
        "betaincc": betaincc,
        "betaincinv": betaincinv,
        "betainccinv": betainccinv,
        "point": point,
        "stdtr": stdtr,
        "fdtr": fdtr,
        "fdtrc": fdtrc,
    }
