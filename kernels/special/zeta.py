"""Zeta functions and polygamma functions."""

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
    make_from_text,
)
from dparray.kernels.special.gamma import make_gamma_functions
from dparray.kernels.special.pairs import make_pair_functions


@functools.cache
def make_zeta_functions(dtype: type, device: Device) -> Functions:
    """Return Hurwitz's and Riemann's zeta functions and the polygamma functions.

    They use the Euler-Maclaurin formula, as in Cephes, with a number of terms that grows with
    ``s``. Below 0 they use Riemann's functional equation.
    """
    is_double = has_double_precision(dtype)
    zero, half, one, two = (dtype(value) for value in (0, 0.5, 1, 2))
    quarter, nine, _ten, large = (dtype(value) for value in (0.25, 9, 10, 12))
    if not is_double:
        nine, large = dtype(5), dtype(8)
    epsilon = dtype(np.finfo(dtype).eps / 8)
    pi, inf, nan = dtype(math.pi), dtype(math.inf), dtype(math.nan)
    whole = dtype(2.0**52 if is_double else 2.0**23)
    far = dtype(-1e5)
    many = dtype(300 if is_double else 80)
    # 2 pi and 2 pi e, and the errors of their rounded values
    two_pi = dtype(2 * math.pi)
    two_pi_rest = dtype(2.4492935982947064e-16 if is_double else 2 * math.pi - float(two_pi))
    # one float away from the rounded value, because the product of floats is rounded, too
    rounded = 17.079468445347135
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
    rest = make_from_text("\n".join([*lines, "    return found"]) + "\n", names, device)

    @device
    def sum_from(s: Any, less: Any, q: Any) -> Any:
        """Return Hurwitz's function of s; ``less`` is ``s - 1``."""
        enough = nine + quarter * s
        total = math.pow(q, -s)
        a = q
        count = zero
        while count < nine or a < enough:
            count = count + one
            a = a + one
            term = math.pow(a, -s)
            total = total + term
            # Both may be 0, and the sum may be NaN: all later terms change nothing.
            if a > zero and not abs(term) > epsilon * abs(total):
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
