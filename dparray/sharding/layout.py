"""The sharding of an array: its devices, its axis, and the shard boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dparray.device import Device
from dparray.exceptions import ArgumentError

Box = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Sharding:
    """The assignment of parts of an array to devices.

    Attributes:
        devices: one for each shard, in order.
        axis: the sharded axis; ``None`` if each device has a copy of the whole array.
        bounds: the start of each shard along the axis, and the end of the last; empty for copies.
        halo: the number of elements from each neighbor in a block.

    Example:
        >>> parts = [dp.Device("cpu").new_queue() for _ in range(2)]
        >>> dp.distribute(dp.zeros((5, 3)), parts).sharding.sizes
        (3, 2)
    """

    devices: tuple[Device, ...]
    axis: int | None
    bounds: tuple[int, ...] = ()
    halo: int = 0

    @property
    def sizes(self) -> tuple[int, ...]:
        """The lengths of the shards along the axis."""
        return tuple(
            stop - start for start, stop in zip(self.bounds, self.bounds[1:], strict=False)
        )

    def box(self, number: int, shape: Sequence[int]) -> Box:
        """Return the start and end of a shard along each axis of an array with the given shape."""
        return tuple(
            (self.bounds[number], self.bounds[number + 1]) if position == self.axis else (0, extent)
            for position, extent in enumerate(shape)
        )

    def is_like(self, other: Sharding, ndim: int, other_ndim: int) -> bool:
        """Return whether two arrays with these dimensions are sharded at the same positions.

        Axes are compared from the last one, as in broadcasting.
        """
        if self.devices != other.devices or (self.axis is None) != (other.axis is None):
            return False
        if self.axis is None or other.axis is None:
            return True
        return self.bounds == other.bounds and self.axis - ndim == other.axis - other_ndim

    def moved(self, axis: int | None, bounds: tuple[int, ...] | None = None) -> Sharding:
        """Return the same bounds along another axis; without a halo if the bounds change."""
        if axis is None:
            return Sharding(self.devices, None)
        same = bounds is None or bounds == self.bounds
        kept = self.bounds if bounds is None else bounds
        return Sharding(self.devices, axis, kept, self.halo if same else 0)

    def __str__(self) -> str:
        devices = "; ".join(map(str, self.devices))
        if self.axis is None:
            return f"a copy on each of {devices}"
        cuts = " + ".join(map(str, self.sizes))
        halo = f", halo {self.halo}" if self.halo else ""
        return f"axis {self.axis} in {cuts}{halo} on {devices}"


def balanced(extent: int, count: int) -> tuple[int, ...]:
    """Return the bounds of ``count`` nearly equal shards, the longer ones first.

    Example:
        >>> balanced(7, 3)
        (0, 3, 5, 7)
    """
    size, more = divmod(extent, count)
    return tuple(number * size + min(number, more) for number in range(count + 1))


def bounds_of(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the start of each shard of these sizes, and the end of the last."""
    bounds = [0]
    for size in sizes:
        bounds.append(bounds[-1] + size)
    return tuple(bounds)


def overlap(first: Box, second: Box) -> Box:
    """Return the intersection of two boxes; an axis may be empty."""
    return tuple(
        (max(a, c), max(max(a, c), min(b, d))) for (a, b), (c, d) in zip(first, second, strict=True)
    )


def volume(box: Box) -> int:
    """Return the number of elements in a box."""
    count = 1
    for start, stop in box:
        count *= stop - start
    return count


def bytes_to_move(shape: Sequence[int], itemsize: int, source: Sharding, target: Sharding) -> int:
    """Return the number of bytes that a change of the sharding copies between devices."""
    moved = 0
    for number, device in enumerate(target.devices):
        wanted = target.box(number, shape)
        here = 0
        for position, holder in enumerate(source.devices):
            if holder == device:
                here = max(here, volume(overlap(wanted, source.box(position, shape))))
        moved += volume(wanted) - here
    return moved * itemsize


def check_devices(function: str, devices: Any) -> tuple[Device, ...]:
    """Return devices after checking that each occurs once.

    Raises:
        ArgumentError: there are no devices, or a device occurs twice.
        DeviceError: an entry is not a device.
    """
    if isinstance(devices, str | Device) or not hasattr(devices, "__iter__"):
        devices = (devices,)
    found = tuple(Device(device) for device in devices)
    if not found:
        raise ArgumentError(f"{function}: devices is empty; give at least one device or queue")
    for position, device in enumerate(found):
        if device in found[:position]:
            raise ArgumentError(
                f"{function}: {device} is in devices twice; another queue on it counts as another:"
                f" dp.Device({device.filter_string!r}).new_queue()"
            )
    return found
