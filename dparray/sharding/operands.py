"""Operands of an operation on shards: the local operand for each device, or an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
from dparray._array.operands import OVERRIDE
from dparray.exceptions import HostConversionError, ShardingError
from dparray.sharding.array import ShardedArray, along, described, unequal
from dparray.sharding.layout import Sharding, balanced, bytes_to_move

#: Types of values that are the same for every shard.
_PLAIN = (bool, int, float, complex, str, np.generic, type(None), np.dtype, type, slice)


def localised(
    function: str,
    operands: Sequence[Any],
    names: Sequence[str] | None = None,
    *,
    target: int | None = None,
    whole_blocks: bool = False,
) -> tuple[list[list[Any]], Sharding]:
    """Return the operands of each shard, and the sharding of the broadcast result.

    Args:
        function: the public function.
        operands: sharded arrays, at least one, and scalars.
        names: the parameter names for messages; ``x1``, ``x2``, ... by default.
        target: the position of the operand that is written. Its sharding decides, and it is not
            divided if it is replicated, because all copies must get all values.
        whole_blocks: whether operands include their halos.

    Raises:
        ShardingError: arrays are sharded differently, or one is on a single device.
        HostConversionError: an operand is a NumPy array.
    """
    names = names or [f"x{position + 1}" for position in range(len(operands))]
    arrays = [
        (name, value)
        for name, value in zip(names, operands, strict=False)
        if isinstance(value, ShardedArray)
    ]
    if target is not None:
        leading = next(pair for pair in arrays if pair[1] is operands[target])
    else:
        sharded = [pair for pair in arrays if not pair[1].is_replicated]
        wide = [pair for pair in sharded if pair[1].sharding.bounds[-1] != 1]
        leading = next(iter((*wide, *sharded, *arrays)))
    leader = leading[1]
    ndim = max(value.ndim for _, value in arrays)
    for name, value in zip(names, operands, strict=False):
        if not (whole_blocks and isinstance(value, tuple | list)):
            _check(function, leading, name, value)
    sharding = leader.sharding
    axis = None if sharding.axis is None else sharding.axis - leader.ndim
    count = len(sharding.devices)
    columns: list[Sequence[Any]] = []
    for value in operands:
        if not isinstance(value, ShardedArray):
            columns.append([value] * count)
        elif value.is_replicated and axis is not None:
            columns.append([_slice_of_copy(value, leader, axis, at) for at in range(count)])
        else:
            columns.append(value.blocks if whole_blocks else value.shards)
    local = [list(row) for row in zip(*columns, strict=True)]
    if sharding.axis is None:
        return local, sharding
    halo = max(value.halo for _, value in arrays)
    moved = Sharding(sharding.devices, ndim + sharding.axis - leader.ndim, sharding.bounds, halo)
    return local, moved


def _slice_of_copy(x: ShardedArray, leader: ShardedArray, axis: int, number: int) -> ndarray:
    """Return the part of a replicated array that one shard of another array needs."""
    shard = x.shards[number]
    if x.ndim < -axis or x.shape[axis] == 1:
        return shard
    start, stop = leader.sharding.bounds[number : number + 2]
    if x.shape[axis] != leader.sharding.bounds[-1]:
        return shard  # it does not broadcast, which the operation itself reports
    return shard[along(x.ndim + axis, slice(start, stop))]


def _check(function: str, leading: tuple[str, ShardedArray], name: str, value: Any) -> None:
    leader_name, leader = leading
    if isinstance(value, ShardedArray) and (
        value is leader
        or (value.is_replicated and value.devices == leader.devices)
        or leader.sharding.is_like(value.sharding, leader.ndim, value.ndim)
    ):
        return
    if isinstance(value, ShardedArray | ndarray):
        rows = [(leader_name, described(leader)), (name, described(value))]
        line = f"{name} = dp.distribute({name}, like={leader_name})"
        raise unequal(function, rows, (name, value), sharding_like(value.shape, leader), line)
    if isinstance(value, np.ndarray):
        raise HostConversionError(
            f"{function}: {name} is a NumPy array, but {leader_name} is on devices; nothing is "
            f"copied there implicitly: {name} = dp.distribute({name}, like={leader_name})"
        )
    if hasattr(type(value), OVERRIDE):
        raise ShardingError(
            f"{function}: {name} is differentiated, but {leader_name} is sharded; differentiate a "
            "function of each shard, x.shards, and add the gradients"
        )
    if not isinstance(value, _PLAIN) and not callable(value):
        raise HostConversionError(
            f"{function}: {name} of type {type(value).__name__} must be an array or a scalar; "
            f"{name} = dp.distribute({name}, like={leader_name})"
        )


def sharding_like(shape: Sequence[int], leader: ShardedArray) -> Sharding:
    """Return the sharding with which an array matches another.

    The sharded axis is the one that broadcasts with the other's; without such an axis, the array is
    replicated.
    """
    axis = leader.sharding.axis
    if axis is None:
        return leader.sharding
    at = len(shape) + axis - leader.ndim
    if at < 0 or shape[at] != leader.shape[axis]:
        return Sharding(leader.devices, None)
    return Sharding(leader.devices, at, leader.sharding.bounds, leader.halo)


def refuse_cut(function: str, x: ShardedArray, axis: int, other: int | None) -> ShardingError:
    """Return the error for a function along the sharded axis."""
    if other is None:
        target, line = Sharding(x.devices[:1], None), "x = x.gather()"
    else:
        target = Sharding(x.devices, other, balanced(x.shape[other], len(x.devices)))
        line = f"x = dp.distribute(x, x.devices, axis={other})"
    nbytes = bytes_to_move(x.shape, x.itemsize, x.sharding, target)
    return ShardingError(
        f"{function}: x of shape {x.shape} is sharded along axis {axis}, which must be whole"
        f"; {nbytes} of its {x.nbytes} bytes would be copied between devices, which never happens"
        f" implicitly: {line}",
        function=function,
        operands=(("x", str(x.sharding), ""),),
        remedy=line,
        nbytes=nbytes,
    )
