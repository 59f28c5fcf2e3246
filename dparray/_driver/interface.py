"""Define the interface of drivers, and the device traits that the layers above may use.

A driver is a module with the functions of :class:`Driver`. Its queues, devices, events and memory
are its own objects, for example ``dpctl.SyclQueue``: the layers above store, compare and hand them
back, and look at none of their attributes. Everything that a decision above the drivers depends on
is a field of :class:`Traits`. Functions in the folder of a driver have docstrings only where they
differ from these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

#: Objects of a driver, opaque to the layers above; they can be hashed and compared.
Queue = Any
DriverDevice = Any
DriverEvent = Any


class Target(NamedTuple):
    """The machine that kernels are compiled for.

    Attributes:
        name: the format of the module, for example ``"spirv64"``.
        compiler: the driver's compiler whose defects the module avoids, for example
            ``"intel-cpu"``; empty if none are known.
    """

    name: str
    compiler: str = ""


# Compared by identity, so that a lookup by traits is as cheap as a lookup by any object.
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
            empty if it is not installed.
        library_fix: the line that installs the library, where it is not.
        chooses_groups: whether the driver chooses the groups of a range well.
        has_groups: whether ranges run in groups, and are rounded up to whole ones.
        groups: the largest number of work-groups along each dimension.
        loads_vectors: whether element-wise kernels were measured to be faster if a work-item
            loads consecutive elements.
        prefers_products: whether the library's matrix products are faster than a kernel for
            convolutions, even of windows that are first copied to a matrix.
        raw_formats: the formats of kernels that are not written in Python, of ``"SPIR-V"`` and
            ``"OpenCL C"``.
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
    library_fix: str = ""
    chooses_groups: bool = True
    has_groups: bool = True
    groups: tuple[int, ...] = (2**31 - 1,) * 3
    loads_vectors: bool = False
    prefers_products: bool = False
    raw_formats: tuple[str, ...] = ()

    @property
    def sub_group(self) -> int:
        """The largest size of a sub-group; 1 if the device has none."""
        return max(self.sub_groups, default=1)


class PackedRange(NamedTuple):
    """A range in the device's order of dimensions: the kernel's last dimension comes first.

    Attributes:
        dimensions: their number.
        extents: the sizes, as C integers of type ``size_t``.
        local: the sizes of groups, likewise; ``None`` if the driver chooses them.
    """

    dimensions: int
    extents: bytes
    local: bytes | None


class ModuleRejected(Exception):
    """Raised if a driver rejects a module; the message contains its log."""


class Loaded(NamedTuple):
    """A kernel in a device's memory.

    Attributes:
        address: the address by which it is launched.
        group: the largest number of work-items in a group.
        multiple: the number of which groups should be multiples.
        arguments: the number of its parameters.
        raw: the driver's object.
    """

    address: int
    group: int
    multiple: int
    arguments: int
    raw: Any


class Store(Protocol):
    """A cache on disk for the machine code that a driver generates from a module."""

    def load(self, key: str) -> bytes | None:
        """Return the bytes saved under a key, or ``None`` if there are none or they are damaged."""

    def save(self, key: str, content: bytes) -> object:
        """Save bytes under a key."""


class Driver(Protocol):
    """The functions that a driver's module provides."""

    name: str
    queue_type: type
    device_type: type
    event_type: type
    #: Advice for making a GPU visible, for errors about a missing GPU.
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
        """Return the queue that an object of the driver, or of one of its libraries, represents."""

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

    def platforms(self) -> list[dict[str, Any]]:
        """Return the platforms that the driver shows and their devices, for `dparray info`."""

    # Memory: objects of the driver, which free it when they die.

    def allocate(self, queue: Queue, usm_type: str, nbytes: int) -> Any:
        """Return new memory, aligned to a page.

        Raises:
            builtins.MemoryError: there is not enough.
        """

    def pointer(self, memory: Any) -> int:
        """Return the address of the first byte of memory."""

    def part(self, owner: Any, pointer: int, nbytes: int, queue: Queue) -> Any:
        """Return bytes of allocated memory as a separate object, which keeps ``owner`` alive.

        Raises:
            ValueError: there is no allocation at the address.
        """

    def copy(
        self, queue: Queue, target: Any, source: Any, nbytes: int, after: Sequence[DriverEvent]
    ) -> DriverEvent:
        """Copy bytes after some events. Both ends are memory, or contiguous NumPy arrays."""

    def clear(self, queue: Queue, memory: Any) -> None:
        """Set all bytes of new memory to zero; return when it is done."""

    # Modules and launches.

    def load(
        self, queue: Queue, module: bytes | str, entry: str, options: str, binaries: Store
    ) -> Loaded:
        """Return a kernel of a module, or of source in the driver's own language.

        Raises:
            ModuleRejected: the driver does not accept the module.
            KeyError: the module has no such kernel.
        """

    def warm_up(self, queue: Queue) -> None:
        """Start the driver's compiler in advance, without waiting."""

    def keeps_binaries(self, queue: Queue) -> bool:
        """Return whether machine code for the queue's device is kept on disk."""

    def has_loaded(self) -> bool:
        """Return whether a module was loaded, so that a fork may hold the driver's locks."""

    def submit(
        self,
        kernel: int,
        queue: Queue,
        kinds: bytes,
        addresses: bytes,
        index_space: PackedRange,
        dependencies: Sequence[DriverEvent],
    ) -> DriverEvent | None:
        """Submit the kernel at an address after some events; ``None`` if it is rejected.

        The kinds and addresses are packed arguments (:mod:`dparray._runtime.packing`) for all
        parameters of the kernel, and must live until the call returns.
        """

    def for_launch(self, queue: Queue, kernel: int, index_space: PackedRange) -> bytes | None:
        """Return the 64-bit words that the compiled module needs, besides addresses, to submit a
        kernel over a range; ``None`` if it may not submit it while it holds the interpreter's lock.
        """

    def address_of(self, queue: Queue) -> int:
        """Return the address of a queue, for the compiled module."""

    def for_c(self) -> tuple[Any, ...]:
        """Return the arguments of the compiled module's `take_driver`: the driver's name,
        :meth:`order_of`, the addresses of four functions, and variables to check. Empty if it does
        not submit to the driver.
        """

    # Events and order.

    def order_of(self, queue: Queue) -> Any:
        """Return the order of a queue's work, a :class:`dparray._driver.marks.Marks` with these
        methods and properties: ``before_launch()``, ``add_event_pair([], events)``,
        ``submitted_events``, ``is_done()``, ``note_long(*events)``, ``has_long_work()``.
        """

    def is_done(self, event: DriverEvent) -> bool:
        """Return whether the work before an event is complete; never waits."""

    def wait(self, events: Sequence[DriverEvent], is_long: bool = False) -> None:
        """Wait for events without the interpreter's lock; signals are handled meanwhile.

        Args:
            events: the events.
            is_long: whether they may take long; by default `long_work` of
                :mod:`dparray._driver.waiting` decides.
        """

    def wait_for_queue(self, queue: Queue) -> None:
        """Wait for all work on a queue, including work that its order does not know."""

    def wait_for_kept(self, queue: Queue) -> None:
        """Wait until the objects that the work on a queue keeps alive are released."""

    def barrier(self, queue: Queue, events: Sequence[DriverEvent] = ()) -> DriverEvent:
        """Return a new event after some events, or after all work on a queue."""

    def times(self, event: DriverEvent) -> tuple[int, int, int]:
        """Return the submission, start and end of work on a queue with profiling, in nanoseconds.

        It waits for the end.
        """

    def keep_until(self, queue: Queue, objects: tuple[Any, ...], event: DriverEvent) -> None:
        """Keep objects alive until an event is complete."""

    def foreign_calls(self, queue: Queue) -> AbstractContextManager[None]:
        """Return a context for calls of other libraries, or of this driver, that submit work."""

    # Forks.

    def queues_in_use(self) -> Sequence[Queue]:
        """Return the queues that may have had work."""

    def locks(self) -> Sequence[Any]:
        """Return the locks that another thread may hold at a fork."""

    def forbid(self, refuse: Callable[..., Any]) -> None:
        """Make everything that would use a device call ``refuse``, which raises."""
