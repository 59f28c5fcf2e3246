"""Round ranges up to whole work-groups, for launches without explicit groups.

A driver divides a range into groups by its divisors: with a prime number of work-items, each is a
group, and with short rows, each row is a group. So ranges are rounded up to whole groups of a good
size. Kernels of a ``Range`` are compiled to skip the work-items beyond the end; DPC++ rounds in the
same way. On CPUs dparray chooses the groups, starting with the last dimension, which is contiguous
in most arrays. On other devices, where a kernel's registers matter, the driver chooses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

#: Drivers support fewer work-items than this.
INDEX_LIMIT = 2**31
_PIECE_STEP = 2**16

#: Work-items of a group on a CPU, which runs them in a loop: this size makes the start of the loop
#: cheap. Groups are smaller if there would be too few of them for the cores.
MAX_IN_GROUP, MIN_IN_GROUP = 4096, 64
GROUPS_FOR_EACH_UNIT = 16

#: Smaller in three dimensions if the inner two have this many: the driver vectorizes the inner two
#: and loops over the first (measured: 0.65 to 0.75 of the time of the largest groups).
MAX_IN_CUBE, MIN_INNER = 256, 32

#: Groups that cover part of a row are multiples of the vector length.
VECTOR = 16

#: A one-dimensional range of at least this size that is a multiple of it has enough divisors. In
#: several dimensions drivers choose groups that are not rows: a transposed copy of 2000000 x 2
#: elements takes 10 times as long.
GOOD_MULTIPLE, GOOD_ROW = 64, 512

#: Ranges on other devices are rounded to multiples of these if that adds little.
MULTIPLE, MIN_ROUNDED = 64, 1024


#: Work-items of a group on a GPU whose driver does not choose, and of its rows; rows of a group in
#: three dimensions.
IN_GROUP, WARP, ROWS = 256, 32, 4

#: Work-items of a group along any dimension that every kernel and device allow.
IN_ANY_GROUP = 64


class Rounded(NamedTuple):
    """A range in whole groups.

    Attributes:
        size: the sizes, none smaller than requested.
        local: the sizes of a group; ``None`` if the driver chooses them.
    """

    size: tuple[int, ...]
    local: tuple[int, ...] | None


def on_cpu(size: Sequence[int], limit: int, units: int) -> Rounded:
    """Return a range for a CPU.

    Args:
        size: the requested sizes.
        limit: the largest group that the kernel allows.
        units: the device's compute units.
    """
    total = prod(size)
    is_good = len(size) == 1 and total % GOOD_MULTIPLE == 0 and total >= GOOD_ROW
    if is_good or limit < VECTOR or total <= MIN_IN_GROUP:
        return Rounded(tuple(size), None)
    wanted = max(total // (GROUPS_FOR_EACH_UNIT * units), MIN_IN_GROUP)
    left = min(wanted, limit, MAX_IN_GROUP) // VECTOR * VECTOR
    rounded: list[int] = []
    local: list[int] = []
    for extent in reversed(size):
        inner = prod(local)
        if len(local) == 2 and inner >= MIN_INNER:
            left = max(min(left, MAX_IN_CUBE // inner), 1)
        part = -(-extent // -(-extent // left))  # pieces of nearly equal size
        if part < extent and not local:
            part = -(-part // VECTOR) * VECTOR
        rounded.insert(0, -(-extent // part) * part)
        local.insert(0, part)
        left = max(left // part, 1)
    return Rounded(tuple(rounded), tuple(local))


def elsewhere(size: Sequence[int]) -> Rounded:
    """Return a range for another device."""
    rounded = (
        -(-extent // MULTIPLE) * MULTIPLE if extent >= MIN_ROUNDED else extent for extent in size
    )
    return Rounded(tuple(rounded), None)


def in_groups(
    size: Sequence[int], limit: int, sizes: Sequence[int], groups: Sequence[int]
) -> Rounded:
    """Return a range in groups of 256 for a GPU: rows of 32 work-items, and up to 8 rows; in three
    dimensions, up to 4 in the middle one. Groups are larger and their rows shorter where there
    would be too many groups.

    Args:
        size: the requested sizes.
        limit: the largest group that the kernel allows.
        sizes, groups: the largest sizes of groups, and their largest numbers, the last dimension
            first.
    """
    most_in_group = 1 << (limit.bit_length() - 1)
    left = min(IN_GROUP, most_in_group)
    row = left if len(size) == 1 else WARP
    local: list[int] = []
    for axis, extent in enumerate(reversed(size)):
        is_first = axis == len(size) - 1
        most = left if is_first else min(left, row if axis == 0 else ROWS)
        part = min(most, sizes[axis], 1 << (extent - 1).bit_length())
        local.insert(0, part)
        left //= part
    for axis in range(len(size) - 1):
        most, count = sizes[len(size) - 1 - axis], groups[len(size) - 1 - axis]
        while -(-size[axis] // local[axis]) > count and 2 * local[axis] <= most:
            if 2 * prod(local) > most_in_group:
                if local[-1] == 1:
                    break
                local[-1] //= 2
            local[axis] *= 2
    rounded = (-(-extent // part) * part for extent, part in zip(size, local, strict=True))
    return Rounded(tuple(rounded), tuple(local))


@lru_cache
def is_whole(size: Sequence[int], groups: Sequence[int]) -> bool:
    """Return whether a range needs no pieces.

    Args:
        size: the requested sizes.
        groups: the largest numbers of groups, the last dimension first.
    """
    return prod(size) < INDEX_LIMIT and (
        len(size) == 1 or not any(map(int.__gt__, size, _longest(groups, len(size))))
    )


@lru_cache
def _longest(groups: Sequence[int], dimensions: int) -> tuple[int, ...]:
    """Return the sizes of the largest range of groups that every kernel may have."""
    return tuple(IN_ANY_GROUP * count for count in groups[:dimensions][::-1])


def pieces_of(
    size: Sequence[int], limit: int, groups: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the start and the sizes of each piece of a range, with fewer work-items than
    ``limit``, and sizes for ``groups`` as of :func:`is_whole`.
    """
    return _pieces(tuple(size), limit, _longest(groups, len(size)))


def _pieces(
    size: tuple[int, ...], limit: int, longest: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    if not size:
        yield (), ()
        return
    rows = max((limit - 1) // prod(size[1:]), 1)
    if size[0] > rows > _PIECE_STEP:  # Whole groups, since there is no room to round up.
        rows -= rows % _PIECE_STEP
    rows = min(rows, longest[0])
    for first in range(0, size[0], rows):
        # A row that is too long by itself is split too.
        for offset, piece in _pieces(size[1:], limit, longest[1:]):
            yield (first, *offset), (min(rows, size[0] - first), *piece)
