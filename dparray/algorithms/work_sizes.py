"""Work-group sizes for kernels that are launched over images, points and matrices."""

from __future__ import annotations

from dparray._driver.interface import Traits

#: The default number of work-items in a group: a power of two, because CPU drivers do not vectorize
#: other sizes, and small enough for every device.
GROUP = 64


def rounded_up(count: int, multiple: int = GROUP) -> int:
    """Return the smallest multiple that is not less than ``count``.

    The kernel then has to check its index. Without padding, a CPU driver must choose a work-group
    size that divides ``count``, which is 1 for a prime.
    """
    return -(-count // multiple) * multiple


def lanes_that_fit(traits: Traits, bytes_of_a_lane: int, most: int = GROUP) -> int:
    """Return a power-of-two number of work-items whose arrays fit in local memory; at least 1."""
    fit = min(most, traits.group, traits.local_memory // max(1, bytes_of_a_lane))
    return 1 << max(0, fit.bit_length() - 1)
