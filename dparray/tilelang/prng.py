"""The generator behind ``prng_step``: 2048 combined Tausworthe streams.

Source: P. L'Ecuyer, "Maximally equidistributed combined Tausworthe generators", Mathematics of
Computation 65 (1996).
"""

from __future__ import annotations

from typing import Any

from numpy import float32, uint32, uint64

from dparray._array.allocation import empty_on
from dparray._array.apply import copy_of
from dparray._array.ndarray import ndarray
from dparray._kernel.decorators import kernel
from dparray._placement import Placement
from dparray.kernel_api import Range
from dparray.tilelang.values import FLOAT32

COLUMNS = 2048
_SCALE = float32(2.0**-32)


@kernel
def _advance(item: Any, state: Any, numbers: Any, count: Any) -> None:
    column = uint64(item.get_id(0))
    s1 = state[uint64(0), column]
    s2 = state[uint64(1), column]
    s3 = state[uint64(2), column]
    for at in range(item.get_id(0), count, 2048):
        s1 = uint32(
            (uint32(s1 & uint32(4294967294)) << uint32(12))
            ^ (uint32(uint32(s1 << uint32(13)) ^ s1) >> uint32(19))
        )
        s2 = uint32(
            (uint32(s2 & uint32(4294967288)) << uint32(4))
            ^ (uint32(uint32(s2 << uint32(2)) ^ s2) >> uint32(25))
        )
        s3 = uint32(
            (uint32(s3 & uint32(4294967280)) << uint32(17))
            ^ (uint32(uint32(s3 << uint32(3)) ^ s3) >> uint32(11))
        )
        numbers[uint64(at)] = float32(uint32(s1 ^ s2 ^ s3)) * _SCALE
    state[uint64(0), column] = s1
    state[uint64(1), column] = s2
    state[uint64(2), column] = s3


def step(placement: Placement, state: ndarray, count: int) -> tuple[ndarray, ndarray]:
    """Return the state after ``count`` numbers, and the numbers."""
    following = copy_of(state)
    numbers = empty_on(placement, (max(count, 1),), FLOAT32)
    _advance._launch(Range(COLUMNS), (following, numbers, count))
    return following, numbers if count else numbers[:0]
