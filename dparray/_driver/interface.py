"""Describe what a driver provides, and what the layers above may ask of a device.

A driver is a module with the functions of :class:`Driver`. Its queues, devices, events and memory
are its own objects, for example ``dpctl.SyclQueue``: the layers above store, compare and hand them
back, and look at none of their attributes. Everything that a decision above the drivers depends on
is a field of :class:`Traits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

#: Objects of a driver, opaque to the layers above: hashable and comparable.
Queue = Any
DriverDevice = Any


class Target(NamedTuple):
    """The machine that kernels are compiled for.

    Attributes:
        name: the format of the module, for example ``"spirv64"``.
        compiler: the driver's compiler whose defects the module avoids, for example
            ``"intel-cpu"``; empty if none are known.
    """

    name: str
    compiler: str = ""


# Equal only if identical, so that a lookup by traits is as cheap as one by an object.
@dataclass(frozen=True, eq=False)
class Traits:
    """The properties of a device that the layers above the drivers decide by; read once.

    Attributes:
        driver: the driver's name, for example ``"sycl"``.
        kind: ``"cpu"``, ``"gpu"`` or ``"accelerator"``.
        name, vendor, version: of the hardware, and the version of its driver.
        backend: the driver's own interface to the device, for example ``"opencl"``.
        filter_string: the name by which ``dp.Device`` finds the device; of a sub-device, that of
            its root.
        is_part: whether the device is a sub-device.
        units: number of compute units; on Intel's GPUs, of vector engines.
        threads: number of sub-groups that a compute unit holds simultaneously.
        group: the largest number of work-items in a work-group.
        sizes: the largest work-group along each dimension.
        sub_groups: the sizes of sub-groups, in increasing order; empty if there are none.
        local_memory: bytes of local memory of a work-group.
        memory: bytes of memory.
        largest: bytes of the largest allocation.
        aspects: what the device can do, of ``"fp16"``, ``"fp64"``, ``"atomic64"``,
            ``"partition"``, ``"profiling"``, ``"usm_device"``, ``"usm_shared"`` and ``"usm_host"``.
        shares_memory: whether the host computes in the device's memory: the host is the device.
        target: the machine that kernels are compiled for.
        library: the name of the library that computes products and transforms there, for messages;
            empty if there is none.
    """

    driver: str
    kind: str
    name: str
    vendor: str
    version: str
    backend: str
    filter_string: str
    is_part: bool
    units: int
    threads: int
    group: int
    sizes: tuple[int, ...]
    sub_groups: tuple[int, ...]
    local_memory: int
    memory: int
    largest: int
    aspects: frozenset[str]
    shares_memory: bool
    target: Target
    library: str

    @property
    def sub_group(self) -> int:
        """The largest size of a sub-group; 1 if the device has none."""
        return max(self.sub_groups, default=1)


class Driver(Protocol):
    """The functions that a driver's module provides."""

    name: str
    #: What makes a GPU visible, for errors about a GPU that is not there.
    NEEDS_OF_GPUS: str

    def devices(self) -> Sequence[DriverDevice]:
        """Return the root devices that can hold arrays, the default first."""

    def why_none(self) -> str:
        """Return the reason, with its fix, if there is no device that can hold arrays."""

    def unusable(self, device: DriverDevice) -> str | None:
        """Return why no array can be allocated on a device, or ``None`` if one can."""

    def select(self, words: str) -> DriverDevice | None:
        """Return the device that a string names; ``None`` if there is none."""

    def taken(self, value: Any) -> Queue | None:
        """Return the queue that an object of the driver, or of its libraries, stands for."""

    def names_device_only(self, value: object) -> bool:
        """Return whether an object that ``taken`` accepts names a device and not a queue."""

    def is_queue(self, value: object) -> bool:
        """Return whether an object is a queue of this driver."""

    def default_queue(self, device: DriverDevice) -> Queue:
        """Return the one queue that represents a device."""

    def new_queue(self, like: Queue, in_order: bool = False, profiling: bool = False) -> Queue:
        """Return a new queue on the device and in the domain of another.

        Raises:
            DeviceError: the device has no queues with these properties.
        """

    def is_in_order(self, queue: Queue) -> bool:
        """Return whether a queue runs its work one after another without events."""

    def has_profiling(self, queue: Queue) -> bool:
        """Return whether a queue collects the times of its work."""

    def copies_by_host(self, queue: Queue) -> bool:
        """Return whether the host must do the copies on a queue, since its commands cannot."""

    def device_of(self, queue: Queue) -> DriverDevice:
        """Return the device that a queue belongs to."""

    def traits(self, device: DriverDevice) -> Traits:
        """Return the properties of a device, the same object each time."""

    def domain(self, queue: Queue) -> Any:
        """Return an object that is equal for queues which wait for each other on the device."""

    def root_of(self, device: DriverDevice) -> DriverDevice:
        """Return the device that a sub-device is a part of; a root device itself."""

    def describe(self, device: DriverDevice) -> str:
        """Return a device's name in messages, for example ``opencl:cpu:0``."""

    def split(self, device: DriverDevice, partition: Any) -> Sequence[DriverDevice]:
        """Return the sub-devices of a partition, the same ones every time.

        Raises:
            DeviceError: the device cannot be split that way.
        """

    def path_of(self, device: DriverDevice) -> tuple[tuple[Any, int], ...] | None:
        """Return the partitions that lead from the root to a sub-device, each with the index of
        the part; ``None`` if ``split`` did not create it.
        """
