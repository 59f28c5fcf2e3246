"""The beta function, the incomplete beta function, its inverse, and distributions based on them."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dparray.kernels.special.approximation import (
    Device,
    Functions,
    has_double_precision,
)
from dparray.kernels.special.error import make_error_functions
from dparray.kernels.special.gamma import make_gamma_functions
from dparray.kernels.special.pairs import make_pair_functions


@functools.cache
def make_beta_functions(dtype: type, device: Device) -> Functions:
    """Return the beta function, the incomplete one, its inverse, and distributions.

    They use the power series if ``b * x`` is small, or that of the complement if ``a`` is, too.
    Otherwise they use the continued fraction of A. R. DiDonato and A. H. Morris ("Algorithm 708",
    1992; DLMF 8.17.22). If both parameters are large, the factor before it is written with
    deviances (C. Loader, 2000). The inverse uses Newton's method for the logarithm of the smaller
    part, within bounds.
    """
    is_double = has_double_precision(dtype)
    zero, half, one, two = (dtype(value) for value in (0, 0.5, 1, 2))
    inf, nan, _pi = dtype(math.inf), dtype(math.nan), dtype(math.pi)
    large = dtype(12 if is_double else 8)
    epsilon = dtype(np.finfo(dtype).eps / 2)
    tiny, huge = dtype(np.finfo(dtype).tiny), dtype(np.finfo(dtype).max)
    root_two_pi = dtype(math.sqrt(2 * math.pi))
    most_steps, most_turns = dtype(20000), dtype(101)
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
        u, v, is_negated = a, b, False
        if not (a > zero and b > zero):
            if a != a or b != b or a < -huge or b < -huge:
                return nan
            if a == zero or b == zero:
                return inf
            s = a + b
            if (a < zero and nearest(a) == a) or (b < zero and nearest(b) == b):
                n = a if a < zero and nearest(a) == a else b
                m = b if n == a else a
                if nearest(m) != m or one - n - m <= zero:
                    return inf
                h = half * m
                u, v, is_negated = one - n - m, m, nearest(h) != h
            elif s <= zero and nearest(s) == s:
                return zero
            else:
                # A loop, so that the kernel contains the logarithm of gamma only once.
                logarithm, sign, turn = zero, one, zero
                while turn <= two:
                    x = a if turn == zero else b if turn == one else s
                    part = gammaln(x)
                    logarithm = logarithm - part if turn == two else logarithm + part
                    sign = sign * gammasgn(x)
                    turn = turn + one
                return sign * math.exp(logarithm)
        found = beta_of_positive(u, v) if u <= huge and v <= huge else zero
        return -found if is_negated else found

    @device
    def betaln(a: Any, b: Any) -> Any:
        if a > zero and b > zero:
            return betaln_of_positive(a, b) if a <= huge and b <= huge else -inf
        return math.log(abs(beta(a, b)))

    @device
    def density(a: Any, b: Any, x: Any, xl: Any, y: Any, yl: Any) -> Any:
        """Return ``x**a * y**b / beta(a, b)`` with ``y = 1 - x``; x and y are pairs."""
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
        # A smaller and a larger parameter, so that the kernel contains each formula only once.
        is_ordered = a < b
        c, u, ul = (a, x, xl) if is_ordered else (b, y, yl)
        d, v, vl = (b, y, yl) if is_ordered else (a, x, xl)
        last = math.pow(v, d) * (one + d * (vl / v))
        if last == zero:
            return zero
        if d >= large:
            factor, nh, nl = ratio(c, d)
            ph, pl = product_of(nh, u)
            if ph < tiny:
                return math.pow(nh, c) * math.pow(u, c) * last / (of_positive(c) * factor)
            power = math.pow(ph, c) * (one + c * ((pl + nl * u + nh * ul) / ph))
            return power / of_positive(c) * last / factor
        first = math.pow(u, c) * (one + c * (ul / u))
        if c < tiny:
            return c * first * last
        return first / of_positive(c) * (gamma_of_sum(a, b) / of_positive(d)) * last

    @device
    def series(a: Any, b: Any, x: Any) -> Any:
        """Return the power series without its first factor (DLMF 8.17.8, of ``1 - b``) and term."""
        total, n, term = zero, zero, one
        more = one
        while abs(more) > epsilon * abs(total) and n < most_steps:
            n = n + one
            term = term * ((n - b) / n * x)
            more = term / (a + n)
            total = total + more
        return total

    @device
    def fraction(a: Any, b: Any, x: Any, y: Any) -> Any:
        """Return the even part of the continued fraction, by the recurrence of its convergents."""
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
    def whole(a: Any, b: Any, x: Any, xl: Any, y: Any, yl: Any) -> Any:
        """Return the lower part, the upper part and the density for positive numbers; y is 1 - x.

        A second turn of the loop computes the other part if the first is almost 1. So the kernel
        contains each formula only once, and GPU compilers finish within seconds.
        """
        factor = density(a, b, x, xl, y, yl)
        is_below_mean = x * (a + b) <= a
        is_small, is_lower = b * x <= one and x <= half, True
        if not is_small:
            is_small, is_lower = a * y <= one and y <= half, False
            if not is_small:
                is_lower = is_below_mean
        found, rest = zero, one
        while True:
            c, u = (a, x) if is_lower else (b, y)
            d, v, vl = (b, y, yl) if is_lower else (a, x, xl)
            if is_small:
                total = series(c, d, u)
                if c <= limit and d >= large:
                    # The upper part: the series without its first term.
                    nh = c + d
                    e = (c - (d - half) * math.log1p(c / d)) + (correction(d) - correction(nh))
                    e = (c * math.log(nh * u) - lgamma1p(c)) - e
                    rest = -math.expm1(e) - math.exp(e) * c * total
                    if rest < half:
                        found = one - rest
                        break
                found = zero
                if factor > zero:
                    last = math.pow(v, d) * (one + d * (vl / v))
                    found = factor / last * (one / c + total)
            else:
                found = factor * fraction(c, d, u, v) if factor > zero else zero
            rest = one - found
            if not is_small or found < border or is_lower == is_below_mean:
                break
            is_small, is_lower = False, is_below_mean
        under = found if is_lower else rest
        above = rest if is_lower else found
        return under, above, factor

    @device
    def both(a: Any, b: Any, x: Any, xl: Any, y: Any, yl: Any) -> Any:
        under, above, _factor = whole(a, b, x, xl, y, yl)
        return under, above

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
    def start(a: Any, b: Any, p: Any) -> Any:
        """Return an estimate of the point where the lower part is p; at most 1/2."""
        x = math.exp((math.log(p) + math.log(a) + betaln_of_positive(a, b)) / a)
        mean = a / (a + b)
        if not x < mean:
            x = mean
        return half if x > half else x

    @device
    def point(a: Any, b: Any, p: Any, q: Any) -> Any:
        """Return the point where the lower part is p and the upper q, and its distance from 1."""
        if p == zero or q == zero:
            return (zero, one) if p == zero else (one, zero)
        is_low = True
        x, least, most = half, zero, one
        turns = zero
        while turns < most_turns:
            y, yl = sum_of(one, -x)
            under, above, slope = whole(a, b, x, zero, y, yl)
            # choose the half of the interval; from here on numbers are relative to its end
            if turns == zero:
                is_low = under >= p
                if not is_low:
                    a, b, p, q = b, a, q, p
                x = start(a, b, p)
                if x < tiny:
                    break
                turns = one
                continue
            turns = turns + one
            slope = slope / y
            if p <= half:
                is_below = under < p
                step = -math.log(under / p) * under / slope
            else:
                is_below = above > q
                step = math.log(above / q) * above / slope
            if is_below:
                least = x if x > least else least
            else:
                most = x if x < most else most
            if step < one and step > -one:
                z = x + x * math.expm1(step)
            else:
                z = x * math.exp(step)
            if not (z > least and z < most):
                z = math.sqrt(least) * math.sqrt(most) if least > zero else half * half * x
            has_ended = abs(z - x) <= two * epsilon * x
            x = z
            if has_ended:
                break
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
        """Return ``a / (a + b)`` and ``b / (a + b)``, each with its rounding error."""
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
            return ndtr(t)  # the value in the limit
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
