"""Arrays cut into shards, or cut in another way."""

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

__all__ = ["distribute"]


def distribute(
    x: Any,
    devices: Any = None,
    axis: int | None = 0,
    *,
    halo: int = 0,
    sizes: Sequence[int] | None = None,
    like: ShardedArray | None = None,
) -> ShardedArray:
    """Cut an array into parts, each on a device or queue of its own.

    This is where data move: to each device its part, also of an array that is cut already in
    another way. Afterwards operations run on each device on what is there.

    Args:
        x: an array, one over shards, a NumPy array or a sequence.
        devices: whatever :class:`dparray.Device` takes, for each shard one: sub-devices, devices,
            queues.
        axis: the axis to cut, or ``None`` for a copy on each device.
        halo: how many elements of each neighbor a shard keeps beside its own, for
            :meth:`ShardedArray.map_blocks` and kernels; brought up to date when it is read.
        sizes: the extents of the shards along the axis; equal ones if not given.
        like: another array over shards, instead of the other arguments: cut to go with it. Where
            it broadcasts along the axis that is cut there, each device gets a copy.

    Returns:
        A :class:`ShardedArray` that shares no memory with an array of one device. Of one that is
        cut already, parts that stay on their device are shared.

    Raises:
        ArgumentError: no devices, one of them twice, or sizes that do not fit.
        AxisError: there is no such axis.
        DeviceError: there is no such device, or one failed.
        MemoryError: a device has not enough memory for its part.

    Example:
        >>> import dparray as dp
        >>> import dpctl
        >>> parts = [dp.Device(dpctl.SyclQueue("cpu")) for _ in range(2)]
        >>> x = dp.distribute(dp.arange(8.0), parts)
        >>> weights = dp.distribute(dp.ones(8), like=x)
        >>> float((x * weights).sum())
        28.0
    """
    if not isinstance(x, ShardedArray | np.ndarray):
        x = check_array("distribute", "x", x)
    if like is not None:
        if devices is not None or sizes is not None or halo or axis != 0:
            raise ArgumentError("distribute: give like= alone, or devices, axis, halo and sizes")
        if not isinstance(like, ShardedArray):
            raise ArgumentError(
                f"distribute: like is a {type(like).__name__}; give an array that dp.distribute "
                "has made, or devices"
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
                shards.append(from_host(np.asarray(part), device.sycl_queue, "device"))
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
        raise ArgumentError(f"distribute: halo is {halo}; it is a number of elements")
    if axis is None:
        if halo or sizes is not None:
            raise ArgumentError("distribute: axis=None makes copies, which have no halo and sizes")
        return Sharding(devices, None)
    if not shape:
        raise ShapeError(
            "distribute: an array of 0 dimensions has no axis to cut; axis=None makes copies"
        )
    axis = _layout.normalize_axis("distribute", axis, len(shape))
    if sizes is None:
        return Sharding(devices, axis, balanced(shape[axis], len(devices)), halo)
    counts = tuple(map(operator.index, sizes))
    if len(counts) != len(devices) or sum(counts) != shape[axis] or min(counts) < 0:
        raise ArgumentError(
            f"distribute: sizes {list(counts)} for {len(devices)} devices and axis {axis} of "
            f"extent {shape[axis]}; give one size a device, which add up to the extent"
        )
    return Sharding(devices, axis, bounds_of(counts), halo)
