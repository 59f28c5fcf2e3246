"""Views made by choosing shape and strides, by the names of ``numpy.lib.stride_tricks``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dparray import _layout
from dparray._array.ndarray import materialize, ndarray
from dparray._functions.manipulation import broadcast_arrays, broadcast_shapes, broadcast_to
from dparray._functions.public import public
from dparray.exceptions import ArgumentError, ShapeError

__all__ = [
    "as_strided",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "sliding_window_view",
]


@public()
def sliding_window_view(
    x: Any,
    window_shape: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    writeable: bool = False,
) -> ndarray:
    """Return all windows of a shape, as a view whose last axes are those of the windows.

    Args:
        x: an array.
        window_shape: the extents of the windows.
        axis: the axes they lie along; all of them, in order, if not given.
        writeable: without effect; a write to a window shows in those that overlap with it.

    Returns:
        A view of ``x``, on its queue.

    Raises:
        ShapeError: there are not as many extents as axes, or a window does not fit.

    Example:
        >>> dp.lib.stride_tricks.sliding_window_view(dp.arange(5), 3).asnumpy()
        array([[0, 1, 2],
               [1, 2, 3],
               [2, 3, 4]])
    """
    window = _layout.check_shape(window_shape)
    if axis is None:
        axes: tuple[int, ...] = tuple(range(x.ndim))
    else:
        given = (axis,) if isinstance(axis, int) else axis
        # The same axis may come several times.
        axes = tuple(_layout.normalize_axis("sliding_window_view", one, x.ndim) for one in given)
    if len(window) != len(axes):
        raise ShapeError(
            f"sliding_window_view: a window of {len(window)} sizes for {len(axes)} axes of x of "
            f"shape {x.shape}; give one size for each, or choose the axes by axis="
        )
    shape = list(x.shape)
    for at, extent in zip(axes, window, strict=True):
        if extent < 1 or extent > shape[at]:
            raise ShapeError(
                f"sliding_window_view: a window of {extent} does not fit axis {at} of x of shape "
                f"{x.shape}"
            )
        shape[at] -= extent - 1
    materialize(x)  # Windows overlap, so pending values are computed first.
    strides = (*x.strides, *(x.strides[at] for at in axes))
    return x._view((*shape, *window), strides, x.offset)


@public()
def as_strided(
    x: Any,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    subok: bool = False,
    writeable: bool = True,
) -> ndarray:
    """Return a view of any shape and strides, inside the memory that the elements of ``x`` lie in.

    Args:
        x: an array.
        shape: the view's shape; that of ``x`` if not given.
        strides: its strides in bytes; those of ``x`` if not given.
        subok: without effect.
        writeable: without effect.

    Raises:
        ArgumentError: the strides are no multiples of the elements' size.
        ShapeError: the view would leave the memory of ``x``, which NumPy does not check.

    Example:
        >>> x = dp.arange(4, dtype="int64")
        >>> dp.lib.stride_tricks.as_strided(x, (2, 3), (8, 8)).asnumpy()
        array([[0, 1, 2],
               [1, 2, 3]])
    """
    materialize(x)  # Pending values have no memory yet.
    extents = x.shape if shape is None else _layout.check_view_shape(shape)
    steps = x.strides if strides is None else tuple(strides)
    if len(steps) != len(extents):
        raise ShapeError(f"as_strided: {len(steps)} strides for a shape of {len(extents)} sizes")
    if any(step % x.itemsize for step in steps):
        raise ArgumentError(
            f"as_strided: strides {steps} must be multiples of {x.itemsize}, the size of an element"
        )
    if 0 not in extents:
        first, last = _reach(x.shape, x.strides)
        lowest, highest = _reach(extents, steps)
        if 0 in x.shape or lowest < first or highest > last:
            raise ShapeError(
                f"as_strided: shape {extents} and strides {steps} reach from byte {lowest} to "
                f"{highest}; the elements of x lie from {first} to {last}"
            )
    return x._view(extents, steps, x.offset)


def _reach(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """Return the least and the largest distance of an element from the first one, in bytes."""
    ends = [(extent - 1) * step for extent, step in zip(shape, strides, strict=True)]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
