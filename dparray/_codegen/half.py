"""Half precision in kernels: bits in memory, single precision in between.

A kernel's variable of dtype float16 is a float32 whose value a half can hold. That is how NumPy
computes too: every operation in single precision, its result rounded to half. These functions are
what generated kernels call; this is what they do, and `_device_code` says how.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def half_value(bits: Any) -> Any:
    """The float32 with the value of a half, given as its bits (uint16)."""
    return np.uint16(bits).view(np.float16).astype(np.float32)


def half_bits(value: Any) -> Any:
    """The bits (uint16) of the half nearest to a number, of two equally near the even one."""
    if isinstance(value, int | np.integer | np.bool_):
        value = np.float32(value)
    with np.errstate(all="ignore"):
        return np.float16(value).view(np.uint16)


def half(value: Any) -> Any:
    """The float32 with the value of the half nearest to a number."""
    return half_value(half_bits(value))
