"""Sizes of work-groups for the kernels that are launched over images, points and matrices."""

from __future__ import annotations

from typing import Any

#: Work-items in a group where nothing else decides: a power of two, because CPU drivers do not
#: vectorize others, and small enough for every device.
GROUP = 64


def rounded_up(count: int, multiple: int = GROUP) -> int:
    """Return the smallest multiple that is not less than ``count``.

    A kernel then tests its index. Without that, a CPU driver has to choose a work-group size that
    divides ``count``, which is 1 for a prime.
    """
    return -(-count // multiple) * multiple


def lanes_that_fit(device: Any, bytes_of_a_lane: int, most: int = GROUP) -> int:
    """Return a power of two of work-items, each with its own part of the local memory; at least
    1.
    """
    fit = min(most, device.max_work_group_size, device.local_mem_size // max(1, bytes_of_a_lane))
    return 1 << max(0, fit.bit_length() - 1)
