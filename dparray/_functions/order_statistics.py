"""Elements of given ranks in a large vector, found by NumPy on the threads of the device.

A sample bounds the elements that may have the ranks. One pass over the vector counts the smaller
elements and collects those within the bounds, which are few, and only they are partitioned. See
R. Floyd and R. Rivest, "Expected time bounds for selection" (1975).
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from dparray._functions.line_sorts import AT_ONCE, MIN_FOR_THREADS
from dparray._runtime.threads import share_out

#: The elements of a sample, and how far, in standard deviations, its bounds are from the ranks.
_SAMPLE, _CERTAINTY = 1 << 13, 5

#: From this many elements, the sample costs less than it saves.
MIN_ELEMENTS = 1 << 15


def of_ranks(values: np.ndarray, ranks: list[int], cores: int) -> np.ndarray:
    """Return the elements that a sorted copy would have at ``ranks``, which are close together.

    NaN is sorted last; if there is one, it is the last element of the result, otherwise any other.

    Args:
        values: a vector of integers or floats.
        ranks: positions, in ascending order.
        cores: the maximum number of threads.
    """
    low, high = _bounds(values, ranks)
    starts = range(0, values.size, AT_ONCE)
    below = [0] * len(starts)
    parts: list[Any] = [None] * len(starts)

    def look_at(number: int) -> None:
        part = values[starts[number] : starts[number] + AT_ONCE]
        is_out = np.zeros(part.shape, bool) if low is None else part < low
        below[number] = int(np.count_nonzero(is_out))
        if high is not None:
            np.logical_or(is_out, part > high, out=is_out)
        parts[number] = part[np.logical_not(is_out, out=is_out)]

    share_out(look_at, list(range(len(starts))), cores if values.size >= MIN_FOR_THREADS else 1)
    near = np.concatenate(parts)
    places = [rank - sum(below) for rank in ranks]
    if places[0] < 0 or places[-1] >= near.size:  # The sample was not like the vector.
        near, places = values, ranks
    near = np.partition(near, places)
    last = near[-1:]
    if near.dtype.kind == "f":
        # The partitioned elements after the last rank are in no order.
        is_nan = np.isnan(near[places[-1] :])
        last = near[places[-1] + is_nan.argmax() :][:1]
    return np.concatenate([near[places], last])


def _bounds(values: np.ndarray, ranks: list[int]) -> tuple[Any, Any]:
    """Return values between which the elements of the ranks almost certainly are; ``None`` where
    there is no bound.
    """
    # Positions at random: values that repeat would give steps of equal length a wrong sample.
    positions = np.random.default_rng(0).integers(0, values.size, _SAMPLE)
    sample = np.sort(values[positions])
    first, last = (rank / values.size for rank in (ranks[0], ranks[-1]))
    margins = [_CERTAINTY * sqrt(_SAMPLE * at * (1 - at)) + _CERTAINTY for at in (first, last)]
    low, high = int(_SAMPLE * first - margins[0]), int(_SAMPLE * last + margins[1]) + 1
    return sample[low] if low >= 0 else None, sample[high] if high < _SAMPLE else None
