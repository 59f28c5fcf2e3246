"""Sharding of arrays, and changes of the sharding."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from dparray import _layout
from dparray._array.allocation import from_host
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray.exceptions import ArgumentError, ShapeError
from dparray.sharding.array import ShardedArray, failures, recut, slices
from dparray.sharding.layout import Sharding, balanced, bounds_of, check_devices
from dparray.sharding.operands import sharding_like


def distribute(
    x: Any,
    devices: Any = None,
    axis: int | None = 0,
    *,
    halo: int = 0,
    sizes: Sequence[int] | None = None,
    like: ShardedArray | None = None,
) -> ShardedArray:
    """Shard an array over devices or queues.

    This function copies data: each device gets its shard, also if the array is already sharded in
    another way. Afterwards operations run on each device on its shard.

    Args:
        x: a dparray, sharded or NumPy array, or a sequence.
        devices: one entry per shard, each whatever :class:`dparray.Device` accepts: sub-devices,
            devices, queues.
        axis: the axis to shard, or ``None`` for a copy on each device.
        halo: the number of elements that a shard keeps from each neighbor, for
            :meth:`ShardedArray.map_blocks` and kernels; updated when it is read.
        sizes: the lengths of the shards along the axis; equal by default.
        like: another sharded array to match, instead of the other arguments. If the array
            broadcasts along the sharded axis, each device gets a copy.

    Returns:
        A :class:`ShardedArray`, which does not share memory with an array on one device. If the
        array is already sharded in the same way, it is a view; otherwise all elements are copied.

    Raises:
        ArgumentError: there are no devices, a device occurs twice, or the sizes do not match.
        AxisError: an axis is out of range.
        DeviceError: a device is unknown or failed.
        MemoryError: a device does not have enough memory for its shard.

    Example:
        >>> parts = [dp.Device("cpu").new_queue() for _ in range(2)]
        >>> x = dp.distribute(dp.arange(8.0), parts)
        >>> weights = dp.distribute(dp.ones(8), like=x)
        >>> float((x * weights).sum())
        28.0
    """
    if not isinstance(x, ShardedArray | np.ndarray):
        x = check_array("distribute", "x", x)
    if like is not None:
        if devices is not None or sizes is not None or halo or axis != 0:
            raise ArgumentError(
                "distribute: give either like= alone, or devices, axis, halo and sizes"
            )
        if not isinstance(like, ShardedArray):
            raise ArgumentError(
                f"distribute: like must be a sharded array, not {type(like).__name__}; give one "
                "that dp.distribute returned, or devices"
            )
        sharding = sharding_like(x.shape, like)
    else:
        if devices is None:
            raise ArgumentError(
                "distribute: give devices, for example dp.devices(), or "
                "dp.Device('cpu').create_sub_devices(partition=1)"
            )
        sharding = _sharding(x.shape, check_devices("distribute", devices), axis, halo, sizes)
    if isinstance(x, ShardedArray):
        return recut(x, sharding)
    shards: list[ndarray] = []
    for number, device in enumerate(sharding.devices):
        box = slices(sharding.box(number, x.shape))
        with failures("distribute", sharding, number):
            part = x[box]
            if isinstance(part, ndarray):
                shards.append(part.to_device(device, copy=True))
            else:
                shards.append(from_host(np.asarray(part), device.queue, "device"))
    return ShardedArray(sharding, shards)


def _sharding(
    shape: tuple[int, ...],
    devices: tuple[Any, ...],
    axis: int | None,
    halo: int,
    sizes: Sequence[int] | None,
) -> Sharding:
    halo = operator.index(halo)
    if halo < 0:
        raise ArgumentError(
            f"distribute: halo must be a nonnegative number of elements; got {halo}"
        )
    if axis is None:
        if halo or sizes is not None:
            raise ArgumentError(
                "distribute: axis=None replicates the array, so halo= and sizes= must be omitted"
            )
        return Sharding(devices, None)
    if not shape:
        raise ShapeError(
            "distribute: a 0-d array has no axis to shard; use axis=None to replicate it"
        )
    axis = _layout.normalize_axis("distribute", axis, len(shape))
    if sizes is None:
        return Sharding(devices, axis, balanced(shape[axis], len(devices)), halo)
    counts = tuple(map(operator.index, sizes))
    if len(counts) != len(devices) or sum(counts) != shape[axis] or min(counts) < 0:
        raise ArgumentError(
            f"distribute: sizes {list(counts)} for {len(devices)} devices and axis {axis} of "
            f"length {shape[axis]}; give one size per device, which add up to the length"
        )
    return Sharding(devices, axis, bounds_of(counts), halo)
