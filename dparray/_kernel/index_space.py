"""Convert the ranges that users pass to global and local ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray.exceptions import KernelRangeError
from dparray.kernel_api import NdRange, Range


def best_divisor(extent: int, limit: int, multiple: int) -> int:
    """Return the largest divisor up to ``limit``, if possible one that ``multiple`` divides."""
    divisors = [d for d in range(1, min(extent, limit) + 1) if extent % d == 0]
    preferred = [d for d in divisors if d % multiple == 0]
    return (preferred or divisors)[-1]


def as_index_space(index_space: Any) -> Any:
    """Return a ``Range`` or ``NdRange`` of what the user wrote."""
    if hasattr(index_space, "launch_over"):  # over several devices
        return index_space
    if isinstance(index_space, NdRange):
        if type(index_space) is NdRange:
            return index_space
        return NdRange(index_space.global_range, index_space.local_range)
    if isinstance(index_space, tuple | list):
        if len(index_space) == 2 and all(isinstance(part, tuple | list) for part in index_space):
            return NdRange(*index_space)
        return Range(*index_space)
    if isinstance(index_space, int | np.integer):
        return Range(index_space)
    raise KernelRangeError(
        f"the range of a kernel must be a Range, an NdRange, an integer or a tuple of integers; "
        f"got {index_space!r} of type {type(index_space).__name__}"
    )
