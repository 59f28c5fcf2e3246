"""Quantiles of sorted lines, in one launch for each fraction."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import uint64

__all__ = ["make_quantile_kernel"]


@functools.cache
def make_quantile_kernel(dtype: type, is_chosen: bool, is_float: bool) -> Callable[..., None]:
    """Return a kernel that computes one quantile of each line.

    Launch over ``Range(lines)``. Between two elements the value starts from the nearer one, so that
    both ends are exact. A line with NaN, which is sorted last, gives NaN.

    Args:
        dtype: the NumPy scalar type of the result.
        is_chosen: the result is one of the two elements, not a value between them.
        is_float: the elements may be NaN.

    Kernel parameters:
        ordered (lines * count,): input, each line sorted.
        out (lines,): output of ``dtype``.
        count: elements of a line.
        low, high: the positions of the two elements in a line.
        weight, rest: the weights of the upper and of the lower element, of ``dtype``.
    """

    def quantile(
        item: Any,
        ordered: Any,
        out: Any,
        count: Any,
        low: Any,
        high: Any,
        weight: Any,
        rest: Any,
    ) -> None:
        line = item.get_id(0)
        first = line * count
        below = dtype(ordered[uint64(first + low)])
        value = below
        if is_chosen:
            if weight != dtype(0):
                value = dtype(ordered[uint64(first + high)])
        elif weight != dtype(0):  # otherwise an infinite neighbor has weight 0
            above = dtype(ordered[uint64(first + high)])
            distance = above - below
            if distance - distance != dtype(0):  # one of them is infinite
                value = below * rest + above * weight
            elif weight >= dtype(0.5):
                value = above - distance * rest
            else:
                value = below + distance * weight
        if is_float:
            last = ordered[uint64(first + count - 1)]
            if last != last:
                value = dtype(last)
        out[uint64(line)] = value

    return quantile
