"""The arguments of layers that move a window: strides, padding and dilation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
from dparray._functions.manipulation import permute_dims
from dparray.exceptions import ArgumentError, ShapeError

Pairs = tuple[tuple[int, int], ...]


def space_of(name: str, x: ndarray, channels: str) -> int:
    """Return the number of dimensions that are neither the batch nor the channels."""
    if channels not in ("last", "first"):
        raise ArgumentError(f"{name}: channels must be 'last' or 'first'; got {channels!r}")
    if not 3 <= x.ndim <= 5:
        raise ShapeError(
            f"{name}: x must have a batch, 1 to 3 space dimensions, and channels, not {x.shape}: "
            "reshape it, x[None, ..., None] for one image without them"
        )
    return int(x.ndim - 2)


def numbers_of(name: str, what: str, given: Any, count: int) -> tuple[int, ...]:
    """Return a positive integer for each dimension."""
    numbers = (given,) * count if isinstance(given, int | np.integer) else given
    if (
        not isinstance(numbers, tuple | list)
        or len(numbers) != count
        or not all(isinstance(each, int | np.integer) and each > 0 for each in numbers)
    ):
        raise ArgumentError(
            f"{name}: {what}={given!r} must be a positive integer, or one for each of {count} "
            "dimensions"
        )
    return tuple(int(each) for each in numbers)


def borders_of(
    name: str, given: Any, space: Sequence[int], reach: Sequence[int], steps: Sequence[int]
) -> Pairs:
    """Return the number of elements added before and after along each dimension."""
    count = len(space)
    if isinstance(given, str) and given == "valid":
        return ((0, 0),) * count
    if isinstance(given, str) and given == "same":
        total = [
            max(0, (-(-size // step) - 1) * step + wide - size)
            for size, wide, step in zip(space, reach, steps, strict=True)
        ]
        return tuple((each // 2, each - each // 2) for each in total)
    numbers = (given,) * count if isinstance(given, int | np.integer) else given
    pairs: list[tuple[int, int]] = []
    if isinstance(numbers, tuple | list) and len(numbers) == count:
        for each in numbers:
            pair = (each, each) if isinstance(each, int | np.integer) else each
            if (
                isinstance(pair, tuple | list)
                and len(pair) == 2
                and all(isinstance(one, int | np.integer) and one >= 0 for one in pair)
            ):
                pairs.append((int(pair[0]), int(pair[1])))
    if len(pairs) != count:
        raise ArgumentError(
            f"{name}: padding={given!r} must be 'valid', 'same', an integer from 0, or for each of "
            f"{count} dimensions one or a pair"
        )
    return tuple(pairs)


def check_window(name: str, space: Sequence[int], reach: Sequence[int], borders: Pairs) -> None:
    """Check that a window is not larger than the padded space."""
    for size, wide, pair in zip(space, reach, borders, strict=True):
        if size + sum(pair) < wide:
            raise ShapeError(
                f"{name}: a window that spans {wide} elements is larger than {size} with "
                f"{sum(pair)} of padding; use a smaller window or dilation, or more padding"
            )


def channels_last(x: ndarray) -> ndarray:
    """Return a view of ``(batch, channels, *space)`` as ``(batch, *space, channels)``."""
    return permute_dims(x, (0, *range(2, x.ndim), 1))


def channels_first(x: ndarray) -> ndarray:
    """Return a view of ``(batch, *space, channels)`` as ``(batch, channels, *space)``."""
    return permute_dims(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))
