"""Selection of elements by a mask."""

from __future__ import annotations

from dparray._array.ndarray import ndarray
from dparray._driver import traits_of
from dparray.algorithms import tiles
from dparray.algorithms.ranges import check_1d, check_kind, check_width, new, placement_of
from dparray.algorithms.selection import selected
from dparray.exceptions import ShapeError

__all__ = ["compact"]


def compact(x: ndarray, mask: ndarray) -> ndarray:
    """Return the elements of ``x`` where ``mask`` is true, in order: ``x[mask]``.

    Args:
        x: a 1-D array of shape ``(n,)``.
        mask: a Boolean array of shape ``(n,)`` on the same queue.

    Returns:
        A 1-D array with one element for each true element of ``mask``. The host reads their number,
        so it waits for ``mask``.

    Raises:
        ExecutionPlacementError: ``x`` and ``mask`` are on different queues.
        ShapeError: the shapes differ, or are not one-dimensional.
        DTypeError: ``mask`` is not Boolean.

    Placement: runs on the common queue; the result has the coerced USM type.

    Example:
        >>> from dparray.algorithms import compact
        >>> x = dp.asarray([3, 1, 4, 1, 5])
        >>> dp.asnumpy(compact(x, x > 2))
        array([3, 4, 5])
    """
    where = placement_of("compact", [("x", x), ("mask", mask)])
    check_1d("compact", "x", x)
    check_width("compact", "x", x)
    check_kind("compact", "mask", mask, "b", "a boolean")
    if mask.shape != x.shape:
        raise ShapeError(f"compact: mask has shape {mask.shape} and x has shape {x.shape}")
    if not x.size:
        return new(0, x.dtype, where)
    return (tiles.select if tiles.uses_tiles(where.queue) else selected)(x, mask, where)


def can_compact(x: ndarray) -> bool:
    """Return whether the kernels of :func:`compact` select elements with a mask in ``x[mask]``."""
    return not traits_of(x.queue).shares_memory and x.dtype.char in "?bBhHiIlLqQfd"
