"""Functions of blocks and assignment: methods that have further operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dparray import _layout
from dparray._array.ndarray import ndarray
from dparray.exceptions import ArgumentError, ShapeError, ShardingError
from dparray.sharding.array import ShardedArray, along, failures, unequal
from dparray.sharding.layout import Sharding, bounds_of
from dparray.sharding.operands import localised


def map_blocks(
    self: ShardedArray,
    function: Callable[..., Any],
    *others: Any,
    axis: int | None = None,
    **options: Any,
) -> ShardedArray:
    """Apply a function of arrays to the block of each device.

    A block includes its halo, if the array has one; if the result has the length of the block, the
    halo is removed. A stencil step can therefore be written as for a single device.

    Args:
        function: accepts a block, and those of the other arrays, and returns an array on its queue.
        others: more arrays sharded at the same positions, replicated arrays, or scalars.
        axis: the axis along which the results are shards of one array; that of the array by
            default.
        options: keyword arguments for the function.

    Returns:
        A sharded array of the results.

    Raises:
        ShardingError: the other arrays are sharded differently, or a result is on another queue.
        ShapeError: the results do not form one array.

    Example:
        >>> parts = [dp.Device("cpu").new_queue() for _ in range(2)]
        >>> x = dp.distribute(dp.arange(6.0), parts, halo=1)
        >>> def smooth(u):
        ...     v = u.copy()
        ...     v[1:-1] = (u[:-2] + u[1:-1] + u[2:]) / 3
        ...     return v
        >>> x.map_blocks(smooth).gather()
        array([0., 1., 2., 3., 4., 5.])
    """
    if not callable(function):
        raise ArgumentError(
            f"map_blocks: function must be callable, not {type(function).__name__}; give a "
            "function of a block"
        )
    arrays = (self, *others)
    local, sharding = localised("map_blocks", arrays, whole_blocks=True)
    results: list[ndarray] = []
    for number, operands in enumerate(local):
        with failures("map_blocks", sharding, number):
            result = function(*operands, **options)
        if not isinstance(result, ndarray):
            raise ArgumentError(
                f"map_blocks: the function returned a {type(result).__name__} for shard "
                f"{number + 1}; it must return an array on the queue of its block"
            )
        if result.device != sharding.devices[number]:
            raise ShardingError(
                f"map_blocks: shard {number + 1} is on {sharding.devices[number]}, and its "
                f"result on {result.device}; the function may not move it"
            )
        results.append(result)
    if sharding.axis is None:
        return ShardedArray(sharding, results)
    return _joined(self, results, sharding, sharding.axis if axis is None else axis)


def _joined(
    self: ShardedArray, results: list[ndarray], sharding: Sharding, axis: int
) -> ShardedArray:
    """Combine the results of blocks to one sharded array."""
    ndim = results[0].ndim
    if not -ndim <= axis < ndim:
        raise ShapeError(
            f"map_blocks: the results of shape {results[0].shape} have no axis {axis} to "
            "join; give axis=, or keep the axis in the function"
        )
    axis %= ndim
    rest = {x.shape[:axis] + x.shape[axis + 1 :] for x in results}
    if len(rest) != 1 or len({x.dtype for x in results}) != 1:
        raise ShapeError(
            f"map_blocks: the results of shapes {[x.shape for x in results]} and dtypes "
            f"{sorted({str(x.dtype) for x in results})} do not form one array along axis "
            f"{axis}"
        )
    extents = [x.shape[axis] for x in results]
    margins = [self._margins(number) for number in range(len(results))]
    if sharding.halo and axis == sharding.axis:
        padded = [size + sum(sides) for size, sides in zip(sharding.sizes, margins, strict=True)]
        if extents == padded:
            own = [
                x[along(axis, slice(sides[0], sides[0] + size))]
                for x, sides, size in zip(results, margins, sharding.sizes, strict=True)
            ]
            return ShardedArray(sharding, own, blocks=results)
    return ShardedArray(sharding.moved(axis, bounds_of(extents)), results)


def _set_item(self: ShardedArray, index: Any, value: Any) -> None:
    target, function, names = self[index], "x[...] = value", ("x[...]", "value")
    if isinstance(value, ShardedArray | ndarray):
        if value.ndim > target.ndim:  # as in NumPy, where leading axes of length 1 are dropped
            value = value[(0,) * (value.ndim - target.ndim)]
        _layout.broadcast_strides(function, value.shape, (0,) * value.ndim, target.shape)
    if isinstance(target, ndarray):
        if isinstance(value, ShardedArray):
            # The part is on one device, so only a copy on that device needs no move.
            sharding = Sharding((target.device,), None)
            if not value.is_replicated or target.device not in value.devices:
                rows = [(names[0], f"{target.shape}, {sharding}"), (names[1], str(value.sharding))]
                line = "value = dp.distribute(value, x.devices, axis=None)"
                raise unequal(function, rows, (names[1], value), sharding, line)
            value = value.shards[value.devices.index(target.device)]
        target[...] = value
        return
    local, _ = localised(function, (target, value), names, target=0)
    for number, (part, values) in enumerate(local):
        if part.size:
            with failures(function, target.sharding, number):
                part[...] = values


ShardedArray.map_blocks = map_blocks
ShardedArray.__setitem__ = _set_item
