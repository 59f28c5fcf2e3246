"""Powers of integers in kernels: what generated kernels call, and what device code makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np


def integer_power(base: Any, exponent: Any) -> Any:
    """The power of two integers modulo 2**64, as uint64.

    By squaring. What a narrower dtype wraps around to are the low bits of it. Of a negative
    exponent, 1 and -1 give 1 or -1, their inverses; any other base gives 0.
    """
    one = np.uint64(1)
    zero = np.uint64(0)
    left = np.uint64(exponent)
    factor = np.uint64(base)
    result = one
    if exponent < 0:
        left = left & one
        if base != 1 and base != -1:
            result = zero
    while left != zero:
        if left & one != zero:
            result = result * factor
        factor = factor * factor
        left = left >> one
    return result
