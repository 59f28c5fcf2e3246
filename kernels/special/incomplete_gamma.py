"""The incomplete gamma functions, their inverses, and distributions based on them."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dparray.kernels.special.approximation import (
    Device,
    Functions,
    has_double_precision,
    make_temme_sum,
)
from dparray.kernels.special.error import make_error_functions
from dparray.kernels.special.gamma import make_gamma_functions
from dparray.kernels.special.pairs import make_pair_functions


@functools.cache
def make_incomplete_gamma_functions(dtype: type, device: Device) -> Functions:
    """Return the regularized incomplete gamma functions, their inverses, and distributions.

    If ``a`` is large and ``x`` near it, they use N. M. Temme's uniform expansion ("The Asymptotic
    Expansion of the Incomplete Gamma Functions", 1979). Otherwise they use the power series below
    ``a``, Legendre's continued fraction above, and the series of the complement for small ``a`` and
    ``x`` (A. R. DiDonato and A. H. Morris, "Computation of the Incomplete Gamma Function Ratios and
    their Inverse", 1986). The inverses use Newton's method for the logarithm of the smaller one.
    """
    is_double = has_double_precision(dtype)
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
        """Return ``x**a * exp(-x) / gamma(a + 1)``."""
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
        """Return Legendre's continued fraction, summed from its first term on as by J. Steed."""
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
        """Return the upper function of small numbers: a series without its first term."""
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
        """Return the lower and the upper function of positive finite numbers."""
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
