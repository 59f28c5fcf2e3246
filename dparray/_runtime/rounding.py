"""Ranges rounded up: the groups that a range without groups is launched in.

A driver divides a range into groups by its divisors: of a prime number of work-items each is a
group of its own, and of short rows each row. So ranges are rounded up to whole groups of a good
size, and the work-items beyond the end, which kernels of a ``Range`` are compiled to leave out, do
nothing: DPC++ rounds ranges so too. On CPUs the groups are chosen here, the last dimension, which
is contiguous in most arrays, first; on other devices, where a kernel's registers decide, by the
driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

#: Drivers count fewer work-items than this.
INDEX_LIMIT = 2**31
_PIECE_STEP = 2**16

#: Work-items of a group on a CPU: it runs them in a loop, whose start this makes cheap; fewer where
#: there would be too few groups for the cores.
MOST_IN_GROUP, FEWEST_IN_GROUP = 4096, 64
GROUPS_FOR_EACH_UNIT = 16

#: Fewer in three dimensions whose inner two have so many: the driver makes vectors of them, and
#: loops over the first for each (measured: 0.65 to 0.75 of the time of the largest groups).
MOST_IN_CUBE, FEWEST_INNER = 256, 32

#: Groups of part of a row are multiples of what vectors hold.
VECTOR = 16

#: Ranges of one dimension of a multiple of so many, so many at least, have divisors enough. In
#: several dimensions drivers choose groups that are no rows: a copy of 2000000 x 2 elements,
#: transposed, takes 10 times as long.
GOOD_MULTIPLE, GOOD_ROW = 64, 512

#: Other devices' ranges are rounded to multiples of these where that adds little.
MULTIPLE, LEAST_ROUNDED = 64, 1024


class Rounded(NamedTuple):
    """A range in whole groups.

    Attributes:
        size: the extents, none less than those asked for.
        local: the extents of a group; ``None`` where the driver chooses them.
    """

    size: tuple[int, ...]
    local: tuple[int, ...] | None


def on_cpu(size: Sequence[int], limit: int, units: int) -> Rounded:
    """Return a range for a CPU.

    Args:
        size: the extents asked for.
        limit: the largest group that the kernel allows.
        units: the device's compute units.
    """
    total = prod(size)
    is_good = len(size) == 1 and total % GOOD_MULTIPLE == 0 and total >= GOOD_ROW
    if is_good or limit < VECTOR or total <= FEWEST_IN_GROUP:
        return Rounded(tuple(size), None)
    wanted = max(total // (GROUPS_FOR_EACH_UNIT * units), FEWEST_IN_GROUP)
    left = min(wanted, limit, MOST_IN_GROUP) // VECTOR * VECTOR
    rounded: list[int] = []
    local: list[int] = []
    for extent in reversed(size):
        inner = prod(local)
        if len(local) == 2 and inner >= FEWEST_INNER:
            left = max(min(left, MOST_IN_CUBE // inner), 1)
        part = -(-extent // -(-extent // left))  # pieces as equal as possible
        if part < extent and not local:
            part = -(-part // VECTOR) * VECTOR
        rounded.insert(0, -(-extent // part) * part)
        local.insert(0, part)
        left = max(left // part, 1)
    return Rounded(tuple(rounded), tuple(local))


def elsewhere(size: Sequence[int]) -> Rounded:
    """Return a range for another device."""
    rounded = (
        -(-extent // MULTIPLE) * MULTIPLE if extent >= LEAST_ROUNDED else extent for extent in size
    )
    return Rounded(tuple(rounded), None)


def pieces_of(size: Sequence[int], limit: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Where each piece of a range begins, and its extents: fewer work-items than ``limit``."""
    if not size:
        yield (), ()
        return
    inner = prod(size[1:])
    rows = max((limit - 1) // inner, 1)
    if rows > _PIECE_STEP:  # of whole groups, since there is no room to round up
        rows -= rows % _PIECE_STEP
    for first in range(0, size[0], rows):
        extent = min(rows, size[0] - first)
        # A row that is too long by itself is cut, too.
        below = pieces_of(size[1:], limit) if inner >= limit else [((0,) * len(size[1:]), size[1:])]
        for offset, piece in below:
            yield (first, *offset), (extent, *piece)
