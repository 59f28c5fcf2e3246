"""Kernels in which each work-item computes one element, without its neighbors.

Launch them over a ``Range`` of at least as many work-items as there are elements; work-items beyond
the last element do nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from numpy import int32, uint64

__all__ = ["make_black_scholes_kernel", "make_mandelbrot_kernel"]


@cache
def make_black_scholes_kernel(dtype: type) -> Callable[..., None]:
    """Compute the prices of European options (F. Black and M. Scholes, 1973).

    Kernel parameters:
        price, strike, years (n,): inputs of ``dtype``, a floating-point scalar type.
        call, put (n,): outputs of ``dtype``.
        rate, volatility: scalars of ``dtype``, per year.
    """
    half = dtype(0.5)
    one = dtype(1)
    root_half = dtype(math.sqrt(0.5))

    def black_scholes(
        item: Any,
        price: Any,
        strike: Any,
        years: Any,
        call: Any,
        put: Any,
        rate: Any,
        volatility: Any,
    ) -> None:
        i = uint64(item.get_id(0))
        if i < uint64(call.shape[0]):
            s = price[i]
            t = years[i]
            spread = volatility * math.sqrt(t)
            d1 = (math.log(s / strike[i]) + (rate + half * volatility * volatility) * t) / spread
            d2 = d1 - spread
            # The normal distribution function, computed from the error function.
            n1 = half + half * math.erf(d1 * root_half)
            n2 = half + half * math.erf(d2 * root_half)
            discounted = strike[i] * math.exp(-rate * t)
            call[i] = s * n1 - discounted * n2
            put[i] = discounted * (one - n2) - s * (one - n1)

    return black_scholes


@cache
def make_mandelbrot_kernel(dtype: type) -> Callable[..., None]:
    """Count the iterations of ``z -> z*z + c`` until ``z`` is farther than 2 from 0.

    Launch over a ``Range`` of at least ``(height, width)`` work-items.

    Kernel parameters:
        count (height, width): output, int32; ``limit`` where ``z`` stayed near.
        left, top: scalars of ``dtype``, the point of element (0, 0).
        step: scalar of ``dtype``, the distance of neighbors; rows go down.
        limit: the most iterations.
    """
    zero = dtype(0)
    two = dtype(2)
    four = dtype(4)

    def mandelbrot(item: Any, count: Any, left: Any, top: Any, step: Any, limit: int) -> None:
        i = uint64(item.get_id(0))
        j = uint64(item.get_id(1))
        if i < uint64(count.shape[0]) and j < uint64(count.shape[1]):
            x = left + dtype(j) * step
            y = top - dtype(i) * step
            real = zero
            imaginary = zero
            iterations = int32(0)
            while iterations < limit and real * real + imaginary * imaginary <= four:
                old = real
                real = old * old - imaginary * imaginary + x
                imaginary = two * old * imaginary + y
                iterations += int32(1)
            count[i, j] = iterations

    return mandelbrot
