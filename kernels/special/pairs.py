"""Sums, products and logarithms represented as the sum of two floats."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dparray.kernels.special.approximation import (
    Device,
    Functions,
    has_double_precision,
    make_polynomial,
)


@functools.cache
def make_pair_functions(dtype: type, device: Device) -> Functions:
    """Return functions whose results are sums of two floats; the second is a correction.

    ``sum_of(a, b)``, ``product_of(a, b)``: exact (D. E. Knuth; T. J. Dekker, 1971).
    ``logarithm(x, more)``: of ``x + more``, by the series of the inverse hyperbolic tangent.
    ``deviance(x, more, a)``: ``x - a - a * log(x / a)`` of ``x + more`` and ``a``, positive
    numbers (C. Loader, "Fast and Accurate Computation of Binomial Probabilities", 2000).
    ``exponential(h, l)``: of the negative sum, as one float.
    ``sin_pi(x)``: the sine of pi times ``x``.
    ``nearest(x)``: the nearest integer.
    """
    is_double = has_double_precision(dtype)
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
        r = x - n  # exact, without rounding
        h = n * half
        s = math.sin(pi * r)
        return s if nearest(h) == h else -s

    @device
    def cube_third(sh: Any, sl: Any) -> Any:
        """Return a third of the third power of a pair, as a pair."""
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
