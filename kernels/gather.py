"""Read and write the elements at given positions, which the kernels check."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import int32, int64, uint32, uint64

__all__ = ["make_gather_kernel"]


@functools.cache
def make_gather_kernel(
    is_flat: bool, is_signed: bool, role: str = "get", is_narrow: bool = False
) -> Callable[..., None]:
    """Return a kernel that reads or writes the elements at positions along one axis.

    Launch over ``Range(out.size)``, or ``Range(positions.size)`` to check. Negative positions count
    from the end of the axis. If a position is out of bounds, nothing is copied, and
    ``fault[0]`` becomes 1.

    Args:
        is_flat: ``x`` has only this axis, so that no index needs to be split.
        is_signed: whether positions may be negative.
        role: ``"get"`` copies the elements to ``out``. ``"check"`` copies nothing. If ``fault[0]``
            is 0, ``"put"`` copies from ``out`` to ``x``, and ``"fill"`` sets all elements to the
            number ``out``.
        is_narrow: ``out`` has fewer than 2**32 elements. GPUs divide numbers of 32 bits in a tenth
            of the instructions.

    Kernel parameters:
        x (outer * extent * inner,): the elements.
        positions (count,): of an integer dtype.
        out (outer * count * inner,): of the dtype of ``x``.
        fault (1,): int32, zero before the launch.
        extent: the length of the axis.
        inner: how many consecutive elements belong to one position.
    """
    checks, fills, gets = role == "check", role == "fill", role == "get"

    def gather(
        item: Any, x: Any, positions: Any, out: Any, fault: Any, extent: Any, inner: Any
    ) -> None:
        i = item.get_id(0)
        if not gets and not checks and fault[0] != 0:
            return
        first = int64(0)
        rest = int64(0)
        place = i
        if not is_flat:
            if is_narrow:
                row = int64(uint64(uint32(i)) // uint64(uint32(inner)))
                outer = int64(uint64(uint32(row)) // uint64(uint32(positions.size)))
            else:
                row = i // inner
                outer = row // positions.size
            rest = i - row * inner
            place = row - outer * positions.size
            first = outer * extent
        at = int64(positions[uint64(place)])
        if is_signed and at < 0:
            at += extent
        if at < 0 or at >= extent:
            fault[0] = int32(1)
        elif not checks:
            where = uint64(at)
            if not is_flat:
                where = uint64((first + at) * inner + rest)
            if gets:
                out[uint64(i)] = x[where]
            elif fills:
                x[where] = out
            else:
                x[where] = out[uint64(i)]

    return gather
