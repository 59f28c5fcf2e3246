"""Functions that flip, roll and repeat arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from dparray import _layout
from dparray._array.allocation import empty_on, from_host
from dparray._array.apply import copy_of
from dparray._array.ndarray import as_method, has_memory, materialize, ndarray
from dparray._array.nodes import assembled_array
from dparray._evaluate import limits
from dparray._functions.manipulation import broadcast_to, reshape, swapaxes
from dparray._functions.public import public
from dparray._graph.assembly import Box
from dparray._placement import common_placement, placement_of
from dparray.exceptions import DTypeError, ShapeError

__all__ = [
    "flip",
    "fliplr",
    "flipud",
    "repeat",
    "roll",
    "rot90",
    "tile",
]


@public(small=np.flip, takes=("axis",), mode="view")
def flip(x: Any, /, axis: int | Sequence[int] | None = None) -> ndarray:
    """Return a view with the order of elements reversed along axes, by default all.

    Example:
        >>> dp.flip(dp.asarray([1, 2, 3])).asnumpy()
        array([3, 2, 1])
    """
    if x.ndim == 1 and axis is None:
        return x[::-1]
    turned = range(x.ndim) if axis is None else _layout.normalize_axes("flip", axis, x.ndim)
    back, forth = slice(None, None, -1), slice(None)
    return x[tuple(back if at in turned else forth for at in range(x.ndim))]


def flipud(x: Any, /) -> ndarray:
    """Return a view with the order of rows reversed.

    Example:
        >>> dp.flipud(dp.asarray([[1], [2]])).asnumpy()
        array([[2],
               [1]])
    """
    return flip(x, 0)


def fliplr(x: Any, /) -> ndarray:
    """Return a view with the order of columns reversed.

    Example:
        >>> dp.fliplr(dp.asarray([[1, 2]])).asnumpy()
        array([[2, 1]])
    """
    return flip(x, 1)


@public()
def rot90(x: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> ndarray:
    """Return a view rotated by ``k`` quarter turns from the first towards the second axis.

    Raises:
        ShapeError: the axes are equal, or not two.

    Example:
        >>> dp.rot90(dp.asarray([[1, 2], [3, 4]])).asnumpy()
        array([[2, 4],
               [1, 3]])
    """
    plane = _layout.normalize_axes("rot90", axes, x.ndim)
    if len(plane) != 2:
        raise ShapeError(f"rot90: axes {tuple(axes)} must be two different axes")
    turns = k % 4
    if turns == 0:
        return x[...]
    if turns == 2:
        return flip(x, plane)
    return (
        swapaxes(flip(x, plane[1]), *plane) if turns == 1 else flip(swapaxes(x, *plane), plane[1])
    )


def _is_plain_roll(x: Any, shift: Any, axis: Any) -> bool:
    return type(shift) is int and (axis is None or type(axis) is int)


@public(small=np.roll, takes=("shift", "axis"), when=_is_plain_roll)
def roll(x: Any, /, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> ndarray:
    """Roll elements along axes: those that leave one end enter at the other, in a new array.

    Args:
        x: an array.
        shift: the number of positions for each axis; the host waits for an array on the queue of
            ``x``.
        axis: one axis or several; ``None`` rolls the flattened array.

    Raises:
        ShapeError: there are more axes than shifts.

    Example:
        >>> dp.roll(dp.arange(5), 2).asnumpy()
        array([3, 4, 0, 1, 2])
    """
    shift, axis = _on_host(x, "shift", shift), _on_host(x, "axis", axis)
    if axis is None:
        total = shift if isinstance(shift, int) else sum(shift)
        if x.ndim != 1:
            return reshape(roll(reshape(x, (x.size,)), total, 0), x.shape)
        shift, axis = total, 0
    axes = [axis] if isinstance(axis, int) else list(axis)
    shifts = [shift] * len(axes) if not isinstance(shift, Sequence) else list(shift)
    if len(axes) == 1 and len(shifts) > 1:
        axes *= len(shifts)
    if len(axes) != len(shifts):
        raise ShapeError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    totals = [0] * x.ndim
    for at, by in zip(axes, shifts, strict=True):
        totals[_layout.normalize_axis("roll", at, x.ndim)] += operator.index(by)
    if x.size == 0:
        return empty_on(placement_of(x), x.shape, x.dtype)
    boxes = _rolled_boxes(x.shape, tuple(totals))
    return assembled_array("roll", (x,), boxes, x.shape, x.dtype, placement_of(x))


@lru_cache(maxsize=1024)
def _rolled_boxes(shape: tuple[int, ...], totals: tuple[int, ...]) -> tuple[Box, ...]:
    """Return the boxes of an array that is rolled by some positions along each axis."""
    parts = []
    for extent, total in zip(shape, totals, strict=True):
        by = total % extent
        # The source, the start in the result, and the length of each part.
        parts.append([(0, by, extent - by), (extent - by, 0, by)] if by else [(0, 0, extent)])
    boxes = []
    for chosen in product(*parts):
        source, start, extents = zip(*chosen, strict=True) if chosen else ((), (), ())
        boxes.append(Box(0, start, source, extents))
    return tuple(boxes)


def _on_host(x: ndarray, name: str, value: Any) -> Any:
    """Return integers that determine the result, read from the queue of ``x`` if in an array."""
    if isinstance(value, float | np.generic):  # NumPy drops the fraction
        return int(value)
    if not isinstance(value, ndarray | np.ndarray):
        return value
    if isinstance(value, ndarray):
        common_placement("roll", (("x", x), (name, value)))
    if value.dtype.kind not in "iu":
        raise DTypeError(f"roll: {name} of dtype {value.dtype} must be integers")
    return value.tolist()


def _has_few_copies(x: ndarray, repeats: Any, axis: Any) -> bool:
    return type(repeats) is int and x.size * repeats <= limits.host_elements


@as_method
@public(small=np.repeat, takes=("repeats", "axis"), when=_has_few_copies)
def repeat(x: Any, /, repeats: Any, axis: int | None = None) -> ndarray:
    """Repeat every element along an axis, in a new array.

    Args:
        x: an array.
        repeats: the number of repetitions: an integer, a list, a NumPy array, or an integer array
            on the queue of ``x`` (the host waits for its values, which determine the shape).
        axis: the axis; ``None`` repeats the flattened array.

    Raises:
        ExecutionPlacementError: ``repeats`` is on another queue.
        ShapeError: ``repeats`` does not match the axis, or is negative.

    Example:
        >>> dp.repeat(dp.asarray([1, 2]), 2).asnumpy()
        array([1, 1, 2, 2])
    """
    placement = placement_of(x)
    if isinstance(repeats, ndarray):
        placement = common_placement("repeat", (("x", x), ("repeats", repeats)))
        counts = repeats.asnumpy()
    else:
        counts = np.asarray(repeats)
    if counts.size == 0:
        counts = counts.astype(np.int64)
    if counts.dtype.kind not in "iu":
        raise DTypeError(f"repeat: repeats of dtype {counts.dtype} must be integers")
    if axis is None or x.ndim == 0:
        x, axis = reshape(x, (x.size,)), axis or 0
    axis = _layout.normalize_axis("repeat", axis, x.ndim)
    extent = x.shape[axis]
    if counts.ndim > 1 or (counts.size != 1 and counts.size != extent):
        raise ShapeError(f"repeat: repeats of shape {counts.shape} for an axis of length {extent}")
    if extent and counts.size and counts.min() < 0:
        raise ShapeError("repeat: repeats must not be negative")
    if counts.size == 1 and placement.usm_type == x.usm_type:
        count = max(int(counts.reshape(-1)[0]), 0)
        before, after = x.shape[: axis + 1], x.shape[axis + 1 :]
        return _copied(
            x,
            (*before, 1, *after),
            (*before, count, *after),
            (*x.shape[:axis], extent * count, *after),
        )
    positions = from_host(np.repeat(np.arange(extent), counts), *placement)
    return x[_layout.at_axis(axis, positions)]


#: Rows that are repeated as a whole are first extended to this many bytes: one row of the range.
_REPEATED_BYTES = 1024

#: Runs of narrower elements are copied as these words, the widest first.
_WORDS = tuple(map(np.dtype, (np.uint64, np.uint32, np.uint16)))


def _copied(
    x: ndarray, parts: tuple[int, ...], target: tuple[int, ...], shape: tuple[int, ...]
) -> ndarray:
    """Copy the elements of an array, broadcast, to a new one.

    Contiguous runs are copied as the widest words that fit: a device loads and stores single bytes
    one at a time.

    Args:
        x: the array.
        parts: its shape with an axis of length 1 for each broadcast axis.
        target: the broadcast shape.
        shape: the shape of the result, with the same number of elements.
    """
    last = len(parts)
    while last and parts[last - 1] == target[last - 1]:
        last -= 1
    run, count = math.prod(parts[last:]), math.prod(target[:last])
    if run == x.size and 2 * run * x.itemsize <= _REPEATED_BYTES < count * run * x.itemsize:
        times = _REPEATED_BYTES // (run * x.itemsize)
        rows = -(-count // times)
        row = _copied(x, (1, run), (times, run), (times * run,))
        materialize(row)
        whole = _copied(row, (1, times * run), (rows, times * run), (rows * times * run,))
    else:
        word = _word_of(x, run)
        taken = reshape(x, parts)
        if word is not None:
            words = run * x.itemsize // word.itemsize
            inner = (words,) if words > 1 else ()
            parts, target = (*parts[:last], *inner), (*target[:last], *inner)
            strides = _layout.contiguous_strides(parts, word.itemsize)
            taken = x._view(parts, strides, x.offset, word)
        whole = copy_of(broadcast_to(taken, target))
    strides = _layout.contiguous_strides(shape, x.itemsize)
    dtype = None if whole.dtype == x.dtype else x.dtype  # another dtype needs its own memory
    return whole._view(shape, strides, whole.offset, dtype)


def _word_of(x: ndarray, run: int) -> np.dtype[Any] | None:
    """Return the widest word that divides runs of elements, if it is wider than an element."""
    if (
        x.size == 0
        or not has_memory(x)
        or not _layout.is_contiguous(x.shape, x.strides, x.itemsize)
    ):
        return None
    address, nbytes = x.block.pointer + x.offset, run * x.itemsize
    return next(
        (
            word
            for word in _WORDS
            if word.itemsize > x.itemsize and not (address | nbytes) % word.itemsize
        ),
        None,
    )


def _tiled(values: np.ndarray, reps: Any) -> np.ndarray:
    counts = _layout.check_shape(reps)
    if values.size * math.prod(counts) > limits.host_elements:
        raise ValueError
    return np.tile(values, counts)


@public(small=_tiled, takes=("reps",))
def tile(x: Any, /, reps: Any) -> ndarray:
    """Tile an array: repeat it as a whole along each axis, in a new array.

    Args:
        x: an array.
        reps: the repetitions along each axis; along the last axes if there are fewer.

    Raises:
        ShapeError: a number is negative or not an integer.

    Example:
        >>> dp.tile(dp.asarray([1, 2]), 2).asnumpy()
        array([1, 2, 1, 2])
    """
    counts = _layout.check_shape(reps)
    ndim = max(x.ndim, len(counts))
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - x.ndim) + x.shape
    return _copied(
        x,
        tuple(part for extent in shape for part in (1, extent)),
        tuple(part for pair in zip(counts, shape, strict=True) for part in pair),
        tuple(count * extent for count, extent in zip(counts, shape, strict=True)),
    )
