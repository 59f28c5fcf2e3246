"""The gamma function, its logarithm, the logarithm's derivative, and beta."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dparray.kernels.special.approximation import (
    Device,
    Functions,
    has_double_precision,
    make_approximation,
    make_polynomial,
    zeros_of,
)
from dparray.kernels.special.pairs import make_pair_functions


@functools.cache
def make_gamma_functions(dtype: type, device: Device) -> Functions:
    """Return the gamma function, its logarithm and the logarithm's derivative; beta.

    Gamma uses an approximation between 2 and 3, recurrence to it below 12, and Stirling's series
    above, with the power split into two factors as in Cephes (S. L. Moshier). Negative numbers use
    reflection. The logarithm keeps its zeros at 1 and 2 as factors, the digamma function its zero,
    as in Boost. Near the negative zeros of both, the error is small compared with 1, not with the
    value. ``beta`` of large arguments uses deviances (A. R. DiDonato and A. H. Morris, "Algorithm
    708", 1992, use the same form).
    """
    is_double = has_double_precision(dtype)
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
    zero_high, zero_low = zeros_of(dtype, "digamma")
    stirling = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
    series = make_polynomial(dtype, stirling if is_double else stirling[:4], device)
    # B(2k) / 2k
    bernoulli = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
    psi_series = make_polynomial(dtype, bernoulli if is_double else bernoulli[:4], device)

    @device
    def correction(x: Any) -> Any:
        """Return the remainder of Stirling's formula for the logarithm of a large number."""
        t = one / x
        return t * series(t * t)

    @device
    def of_large(x: Any) -> Any:
        """Return Stirling's formula without its last power."""
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
        """Return ``lgamma(1 + x)`` for x from -0.3 to 0.45, without rounding the sum."""
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
        size, positive = -x, x
        if x > zero:
            if x == inf:
                return inf
        else:
            if x != x:
                return x
            if nearest(x) == x:
                return inf
            if size < tiny:
                return -math.log(size)
            if size <= low - half:
                return lgamma1p(x) - math.log(size)
            # Below 1/2, in terms of 1 + x, because the logarithm has a zero there.
            positive = one - size if size < half else size
        found = gammaln_of_positive(positive)
        if x > zero:
            return found
        if size < half:
            return found - math.log(size)
        return log_root_pi - math.log(abs(sin_pi(size)) * size) - found

    @device
    def loggamma(x: Any) -> Any:
        return gammaln(x) if x >= zero else nan

    @device
    def rgamma(x: Any) -> Any:
        if x <= zero and nearest(x) == x and x > -inf:
            return zero
        if x > overflows:  # Gamma has no number there, but its reciprocal is a subnormal one.
            if x > vanishes:
                return zero
            power, factor = of_large(x)
            return math.exp(x) / power / power / factor
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
        """Return the logarithm of beta for a and b of at least `large`: a pair, and a factor."""
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
        """Return ``gamma(b) / gamma(a + b)`` without ``(a + b)**-a``; a is small and b large."""
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
