"""Distribution functions of numbers and their inverses: device functions that kernels call.

They are based on the incomplete gamma and beta functions of `dparray.kernels.special`.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dparray.kernels.special.approximation import Device, Functions, has_double_precision
from dparray.kernels.special.error import make_error_functions
from dparray.kernels.special.incomplete_beta import make_beta_functions
from dparray.kernels.special.incomplete_gamma import make_incomplete_gamma_functions
from dparray.kernels.special.pairs import make_pair_functions


@functools.cache
def make_distribution_functions(dtype: type, device: Device) -> Functions:
    """Return distributions of counts, the gamma distribution, binomial coefficients, and inverses.

    They use the incomplete gamma and beta functions (M. Abramowitz and I. A. Stegun, "Handbook of
    Mathematical Functions", 26.4.21, 26.5.24 to 26.5.28, 26.6.2 and 26.7.1). The inverses take the
    smaller of the two parts, so that they lose no digits near the ends.
    """
    zero, half, one, two = (dtype(value) for value in (0, 0.5, 1, 2))
    inf, nan = dtype(math.inf), dtype(math.nan)
    huge = dtype(np.finfo(dtype).max)
    is_double = has_double_precision(dtype)
    many = dtype(1e16 if is_double else 1e8)
    few, pi = dtype(30), dtype(math.pi)
    ndtri = make_error_functions(dtype, device)["ndtri"]
    incomplete = make_incomplete_gamma_functions(dtype, device)
    gammainc, gammaincc = incomplete["gammainc"], incomplete["gammaincc"]
    gammaincinv, gammainccinv = incomplete["gammaincinv"], incomplete["gammainccinv"]
    betas = make_beta_functions(dtype, device)
    beta, betainc, betaincc = betas["beta"], betas["betainc"], betas["betaincc"]
    betaincinv, point = betas["betaincinv"], betas["point"]
    pair = make_pair_functions(dtype, device)
    nearest, sum_of = pair["nearest"], pair["sum_of"]

    @device
    def floor(x: Any) -> Any:
        n = nearest(x)
        return n - one if n > x else n

    @device
    def pdtr(k: Any, m: Any) -> Any:
        if not (k >= zero and m >= zero):
            return nan
        if m == zero:
            return one
        return gammaincc(floor(k) + one, m)

    @device
    def pdtrc(k: Any, m: Any) -> Any:
        if not (k >= zero and m >= zero):
            return nan
        if m == zero:
            return zero
        return gammainc(floor(k) + one, m)

    @device
    def pdtri(k: Any, p: Any) -> Any:
        if not (k >= zero and p >= zero and p < one):
            return nan
        return gammainccinv(floor(k) + one, p)

    @device
    def bdtr(k: Any, n: Any, p: Any) -> Any:
        if not (k >= zero and n <= huge and p >= zero and p <= one):
            return nan
        j = floor(k)
        if not j <= n:
            return nan
        return one if j == n else betaincc(j + one, n - j, p)

    @device
    def bdtrc(k: Any, n: Any, p: Any) -> Any:
        if not (k == k and n <= huge and p >= zero and p <= one):
            return nan
        j = floor(k)
        if not j <= n:
            return nan
        if k < zero:
            return one
        return zero if j == n else betainc(j + one, n - j, p)

    @device
    def bdtri(k: Any, n: Any, y: Any) -> Any:
        if not (k >= zero and n <= huge and y >= zero and y <= one):
            return nan
        j = floor(k)
        if not j < n:
            return nan
        p, _rest = point(j + one, n - j, one - y, y)
        return p

    @device
    def nbdtr(k: Any, n: Any, p: Any) -> Any:
        return betainc(n, floor(k) + one, p) if k >= zero else nan

    @device
    def nbdtrc(k: Any, n: Any, p: Any) -> Any:
        return betaincc(n, floor(k) + one, p) if k >= zero else nan

    @device
    def nbdtri(k: Any, n: Any, y: Any) -> Any:
        return betaincinv(n, floor(k) + one, y) if k >= zero else nan

    @device
    def gdtr(a: Any, b: Any, x: Any) -> Any:
        return gammainc(b, a * x) if x >= zero else nan

    @device
    def gdtrc(a: Any, b: Any, x: Any) -> Any:
        return gammaincc(b, a * x) if x >= zero else nan

    @device
    def gdtrix(a: Any, b: Any, p: Any) -> Any:
        return gammaincinv(b, p) / a

    @device
    def fdtri(m: Any, n: Any, p: Any) -> Any:
        if not (m > zero and n > zero and p >= zero and p <= one) or m > huge or n > huge:
            return nan
        u, v = point(half * m, half * n, p, one - p)
        return n * u / (m * v) if v > zero else inf

    @device
    def stdtrit(df: Any, p: Any) -> Any:
        if not (df > zero and p >= zero and p <= one):
            return nan
        if p in (zero, one):
            return -inf if p == zero else inf
        if df > many:
            return ndtri(p)
        tail = two * (p if p < half else one - p)
        u, v = point(half * df, half, tail, one - tail)
        t = math.sqrt(df * v / u) if u > zero else inf
        return -t if p < half else t

    @device
    def binom(n: Any, k: Any) -> Any:
        if n != n or k != k or abs(n) > huge or abs(k) > huge:
            return nan
        whole = floor(n)
        if whole == n and n < zero:
            return nan
        j = floor(k)
        if j == k:
            if whole == n and k > half * n:
                j = n - k
            if whole == n and j < zero:
                return zero
            if j >= zero and j < few:
                product, at = one, one
                while at <= j:
                    product = product * (n - j + at) / at
                    at = at + one
                return product
        u, v, sine = one + (n - k), one + k, zero
        is_reflected = n > -one and (k > n or k < zero)
        if is_reflected:
            # Computed with the exact difference of the two.
            high, low = sum_of(k, -n) if k > n else (-k, zero)
            at = nearest(high)
            share = at * half
            sine = math.sin(pi * ((high - at) + low)) / pi
            sine = sine if nearest(share) == share else -sine
            u, v = n + one, high
        found = beta(u, v)
        return found * sine if is_reflected else one / ((n + one) * found)

    return {
        "pdtr": pdtr,
        "pdtrc": pdtrc,
        "pdtri": pdtri,
        "bdtr": bdtr,
        "bdtrc": bdtrc,
        "bdtri": bdtri,
        "nbdtr": nbdtr,
        "nbdtrc": nbdtrc,
        "nbdtri": nbdtri,
        "gdtr": gdtr,
        "gdtrc": gdtrc,
        "gdtrix": gdtrix,
        "fdtri": fdtri,
        "stdtrit": stdtrit,
        "binom": binom,
    }
