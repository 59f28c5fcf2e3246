"""Bessel functions of orders 0 and 1."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dparray.kernels.special.approximation import (
    Device,
    Functions,
    make_approximation,
    zeros_of,
)


@functools.cache
def make_bessel_functions(dtype: type, device: Device) -> Functions:
    """Return Bessel functions of order 0 and 1: ``j``, ``y`` and the modified ``i``, ``k``.

    Below 8, ``j`` and ``y`` are an approximation times the distance from each of the zeros there
    (as in Boost). Above, they use Hankel's form with amplitudes approximated in ``1/x`` (Cephes; J.
    F. Hart et al., "Computer Approximations", 1968). Errors are small compared with the amplitude
    ``sqrt(2 / (pi x))``, but not with the value near zeros above 8. The modified functions are
    power series below 7.75, and computed without their exponential factor above.
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
    j0_z0, j0_z0r, j0_z1, j0_z1r = zeros_of(dtype, "j0")
    j1_z0, j1_z0r, j1_z1, j1_z1r = zeros_of(dtype, "j1")
    y0_z0, y0_z0r, y0_z1, y0_z1r, y0_z2, y0_z2r = zeros_of(dtype, "y0")
    y1_z0, y1_z0r, y1_z1, y1_z1r = zeros_of(dtype, "y1")
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
        """Return ``exp(-x) * i0(x)`` above 7.75."""
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
        """Return ``exp(x) * k0(x)`` above 1."""
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
        """Return ``log(x / zero)``, accurate near the zero."""
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
