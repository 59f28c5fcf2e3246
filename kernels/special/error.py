"""The error function, its complement and inverses."""

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
)


@functools.cache
def make_error_functions(dtype: type, device: Device) -> Functions:
    """Return the error function, its complement and inverses, and the normal distribution.

    ``erfcx`` is a polynomial of ``(x - k) / (x + k)`` (M. M. Shepherd and J. G. Laframboise,
    "Chebyshev Approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf", 1981); ``erfc`` and
    ``ndtr`` use it, with the square in the exponent split in two parts as by W. J. Cody ("Rational
    Chebyshev Approximations for the Error Function", 1969). The inverses are functions of the
    logarithm of ``1 - x**2`` (M. Giles, "Approximating the erfinv Function", 2010).
    """
    is_double = has_double_precision(dtype)
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
        """Return ``erfcx`` of a nonnegative number."""
        if x > far:
            return root_pi / x
        return scaled((x - point) / (x + point)) / (one + two * x)

    @device
    def of_square(x: Any, scale: Any) -> Any:
        """Return ``exp(-scale * x**2)``; the scale is a power of two."""
        if abs(x) > overflows:
            return zero * x if x != x else zero
        c = splitter * x
        high = c - (c - x)
        e = math.exp(-scale * high * high)
        return e + e * math.expm1(-scale * (x - high) * (x + high))

    @device
    def erfc(x: Any) -> Any:
        return math.erfc(x)

    @device
    def erf(x: Any) -> Any:
        return math.erf(x)

    @device
    def erfcx(x: Any) -> Any:
        if x >= zero:
            return scaled_tail(x)
        if -x > overflows:
            return inf
        # For the negative square, its two parts have the opposite sign.
        c = splitter * x
        high = c - (c - x)
        e = math.exp(high * high)
        if e == inf:
            return inf
        e = e + e * math.expm1((x - high) * (x + high))
        return two * e - scaled_tail(-x)

    @device
    def scaled_normal(x: Any) -> Any:
        """Return ``erfcx(x / sqrt(2)) / 2``."""
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
        """Return the inverse error function of x divided by x, where ``w = -log(1 - x**2)``."""
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
        # 4 p (1 - p), in an order that does not underflow
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
