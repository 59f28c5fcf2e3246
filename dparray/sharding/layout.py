"""How an array is cut: on which devices, along which axis, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dparray.device import Device
from dparray.exceptions import ArgumentError, ShardingError

Box = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Sharding:
    """Which device has which part of an array.

    Attributes:
        devices: one for each shard, in order.
        axis: the axis that is cut; ``None`` where each device has a copy of all.
        bounds: where each shard begins along the axis, and where the last ends; empty of copies.
        halo: how many elements of each neighbor a shard has beside its own.

    Example:
        >>> import dparray as dp
        >>> import dpctl
        >>> parts = [dp.Device(dpctl.SyclQueue("cpu")) for _ in range(2)]
        >>> dp.distribute(dp.zeros((5, 3)), parts).sharding.sizes
        (3, 2)
    """

    devices: tuple[Device, ...]
    axis: int | None
    bounds: tuple[int, ...] = ()
    halo: int = 0

    @property
    def sizes(self) -> tuple[int, ...]:
        """The extents of the shards along the axis."""
        return tuple(
            stop - start for start, stop in zip(self.bounds, self.bounds[1:], strict=False)
        )

    def box(self, number: int, shape: Sequence[int]) -> Box:
        """Begin and end of a shard along each axis of an array of that shape."""
        return tuple(
            (self.bounds[number], self.bounds[number + 1]) if at == self.axis else (0, extent)
            for at, extent in enumerate(shape)
        )

    def is_like(self, other: Sharding, ndim: int, other_ndim: int) -> bool:
        """Return whether two arrays of so many dimensions are cut at the same positions.

        Axes are compared from the last on, as they broadcast.
        """
        if self.devices != other.devices or (self.axis is None) != (other.axis is None):
            return False
        if self.axis is None or other.axis is None:
            return True
        return self.bounds == other.bounds and self.axis - ndim == other.axis - other_ndim

    def moved(self, axis: int | None, bounds: tuple[int, ...] | None = None) -> Sharding:
        """Return the same cuts along another axis; without a halo if the bounds change."""
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
    """Bounds of ``count`` parts of nearly one size, the larger ones first.

    Example:
        >>> balanced(7, 3)
        (0, 3, 5, 7)
    """
    size, more = divmod(extent, count)
    return tuple(number * size + min(number, more) for number in range(count + 1))


def bounds_of(sizes: Sequence[int]) -> tuple[int, ...]:
    """Where parts of these sizes begin, and where the last ends."""
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
    """Bytes that must pass from one device to another for an array to be cut in another way."""
    moved = 0
    for number, device in enumerate(target.devices):
        wanted = target.box(number, shape)
        here = 0
        for at, holder in enumerate(source.devices):
            if holder == device:
                here = max(here, volume(overlap(wanted, source.box(at, shape))))
        moved += volume(wanted) - here
    return moved * itemsize


def check_devices(function: str, devices: Any) -> tuple[Device, ...]:
    """Devices, each of them once.

    Raises:
        ArgumentError: there is none, or one is named twice.
        DeviceError: one of them is none.
    """
    if isinstance(devices, str | Device) or not hasattr(devices, "__iter__"):
        devices = (devices,)
    found = tuple(Device(device) for device in devices)
    if not found:
        raise ArgumentError(f"{function}: devices is empty; give at least one device or queue")
    for at, device in enumerate(found):
        if device in found[:at]:
            raise ArgumentError(
                f"{function}: {device} is in devices twice; a further queue on it is another place:"
                f" dp.Device(dpctl.SyclQueue({device.filter_string!r}))"
            )
    return found


def unequal(
    function: str,
    rows: Sequence[tuple[str, str]],
    moved: str,
    nbytes: int,
    whole: int,
    remedy: str,
) -> ShardingError:
    """Return the error for arrays that are cut in different ways.

    Args:
        function: the public function.
        rows: the name and the sharding of each array.
        moved: the array that would be copied.
        nbytes: how much of it.
        whole: how much it has.
        remedy: the line that does it.
    """
    width = max(len(name) for name, _ in rows)
    lines = "\n".join(f"  {name:<{width}}  {text}" for name, text in rows)
    return ShardingError(
        f"{function}: the arrays are cut in different ways:\n{lines}\nTo compute on the devices of "
        f"the first, {nbytes} bytes of {moved} ({whole} bytes) would be copied between devices, "
        f"and nothing is copied unasked: {remedy}",
        function=function,
        operands=tuple((name, text, "") for name, text in rows),
        remedy=remedy,
        nbytes=nbytes,
    )
