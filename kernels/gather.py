"""Gather the elements at given positions, and check the positions in the same launch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import int32, int64, uint64

__all__ = ["make_gather_kernel"]


@functools.cache
def make_gather_kernel(is_flat: bool, is_signed: bool) -> Callable[..., None]:
    """Return a kernel that copies the elements at positions along one axis.

    Launch over ``Range(out.size)``. Negative positions count from the end of the axis. If a
    position is out of bounds, nothing is written, and ``fault[0]`` becomes 1.

    Args:
        is_flat: ``x`` has only this axis, so that no index needs to be split.
        is_signed: whether positions may be negative.

    Kernel parameters:
        x (outer * extent * inner,): the elements.
        positions (count,): of an integer dtype.
        out (outer * count * inner,): output of the dtype of ``x``.
        fault (1,): int32, zero before the launch.
        extent: the length of the axis.
        inner: how many consecutive elements belong to one position.
    """

    def gather(
        item: Any, x: Any, positions: Any, out: Any, fault: Any, extent: Any, inner: Any
    ) -> None:
        i = item.get_id(0)
        first = int64(0)
        rest = int64(0)
        place = i
        if not is_flat:
            row = i // inner
            rest = i - row * inner
            outer = row // positions.size
            place = row - outer * positions.size
            first = outer * extent
        at = int64(positions[uint64(place)])
        if is_signed and at < 0:
            at += extent
        if at < 0 or at >= extent:
            fault[0] = int32(1)
        elif is_flat:
            out[uint64(i)] = x[uint64(at)]
        else:
            out[uint64(i)] = x[uint64((first + at) * inner + rest)]

    return gather
