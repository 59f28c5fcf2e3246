"""Devices, and the queues that represent them.

In SYCL an array is bound to a queue, in the Array API to a device. A :class:`Device` combines the
two: it *is* a queue, used as a device. Every device has one default queue, which ``Device("cpu")``
represents. A further queue or a sub-device is a different ``Device``, and data moves between
devices only by ``to_device``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, cast

from dparray import _hooks, config
from dparray._driver import (
    by_type,
    driver_of,
    drivers,
    drivers_for,
    each_driver,
    is_name_of_cuda,
    is_queue,
    is_same_device,
    missing,
    root_of,
    sycl_queue_of,
    traits_of,
)
from dparray._driver.descriptions import describe_device, describe_queue, is_default
from dparray._driver.interface import Driver, DriverDevice, Queue, Traits
from dparray._imports import refuse_calls
from dparray.exceptions import DeviceError, UnsupportedDeviceError

if TYPE_CHECKING:
    import dpctl

__all__ = [
    "Device",
    "default_device",
    "describe_device",
    "describe_queue",
    "devices",
    "is_available",
    "queue_of",
    "set_default_device",
    "use_device",
]

#: Functions with which the layers above wait for recorded work on a queue.
waits: list[Callable[[Queue], None]] = []

lock = threading.RLock()

#: The processor without SYCL, which every installation has.
HOST = "host:cpu"


def _available() -> str:
    """Return the devices that can hold arrays, for errors, or the reason why there is none."""
    names = [driver.traits(each).filter_string for driver, each in _each_device()]
    if config.device == HOST and HOST not in names:
        names.insert(0, HOST)
    return ", ".join(names) if names else f"none, {_why_none()}"


def _each_device() -> Iterator[tuple[Driver, DriverDevice]]:
    for driver in each_driver():
        for device in driver.devices():
            yield driver, device


def _why_none() -> str:
    reasons = [driver.why_none() for driver in drivers()]
    reasons += [f"{each.reason}: {each.fix}" for each in missing()]
    return "; ".join(reasons) + (
        f". The CPU computes without them, as {HOST}: set DPARRAY_DEVICE={HOST}, or pass "
        f'device="{HOST}"'
    )


#: Attributes of devices in CuPy and PyTorch, and dparray's.
_ABSENT = {
    "id": "write device.filter_string, which ends with the number",
    "index": "write device.filter_string, which ends with the number",
    "type": "write device.device_type",
    "use": "write dp.set_default_device(device), or with dp.use_device(device):",
    "synchronize": "write device.wait()",
    "mem_info": "write dp.memory.stats(device), or run the command dparray info",
    "compute_capability": "run the command dparray info",
}


class Device:
    """A place for arrays: a device together with one queue on it.

    Two devices are equal if their queues are equal. ``Device("cpu")`` represents the default queue
    of the device; ``Device(queue)`` represents that queue.

    Args:
        device: a filter string (``"cpu"``, ``"gpu"``, ``"opencl:cpu:0"``, ``"host:cpu"``,
            ``"cuda:0"``); another ``Device``, for example ``x.device`` of an array; ``None`` for
            the default device. ``"cpu"`` is ``"host:cpu"`` if the option ``device`` is. Or an
            object of the driver: a ``dpctl.SyclDevice``, ``dpctl.SyclQueue``, ``cuda.core.Device``,
            or a stream of a CUDA library.

    Raises:
        DeviceError: no device of this machine matches.
        UnsupportedDeviceError: the device has no USM, so it cannot hold arrays.

    Example:
        >>> device = dp.Device("cpu")
        >>> device.device_type
        'cpu'
        >>> dp.zeros(3, device=device).device == device
        True
    """

    __slots__ = ("queue",)

    #: The queue: an object of the device's driver, for example a ``dpctl.SyclQueue``.
    queue: Queue

    def __init__(self, device: Any = None) -> None:
        if isinstance(device, Device):
            self.queue = device.queue
        elif type(device) in by_type:
            self.queue = _equal_queue(device)
        else:
            self.queue = default_device().queue if device is None else _queue_named(device)

    @property
    def traits(self) -> Traits:
        """The properties of the device, as the driver reported them once."""
        return traits_of(self.queue)

    @property
    def driver(self) -> str:
        """The name of the driver, for example ``"sycl"``."""
        return self.traits.driver

    def new_queue(self, in_order: bool = False, profiling: bool = False) -> Device:
        """Return the device with a new queue.

        Arrays on the new queue are apart from those on others: an operation on both raises, and
        ``to_device`` moves data between them.

        Args:
            in_order: whether the queue itself runs its work one after another. dparray orders all
                work of a queue anyway; other libraries may rely on it.
            profiling: whether the queue collects the times of its work (``event.profile``).

        Raises:
            DeviceError: the device has no queues with these properties.

        Example:
            >>> device = dp.Device("cpu").new_queue()
            >>> device == dp.Device("cpu")
            False
            >>> dp.ones(3, device=device).device == device
            True
        """
        return Device(driver_of(self.queue).new_queue(self.queue, in_order, profiling))

    @property
    def sycl_queue(self) -> dpctl.SyclQueue:
        """The ``dpctl.SyclQueue``, on devices of SYCL."""
        return sycl_queue_of(self, self.queue)

    @property
    def sycl_device(self) -> dpctl.SyclDevice:
        """The ``dpctl.SyclDevice``, on devices of SYCL."""
        return self.sycl_queue.sycl_device

    @property
    def sycl_context(self) -> dpctl.SyclContext:
        """The ``dpctl.SyclContext`` of the queue, on devices of SYCL."""
        return self.sycl_queue.sycl_context

    @property
    def is_canonical(self) -> bool:
        """Whether the queue is the default queue of its device."""
        return is_default(self.queue)

    @property
    def filter_string(self) -> str:
        """The filter string of the device; for a sub-device, of its root device."""
        return self.traits.filter_string

    @property
    def name(self) -> str:
        """The hardware's name as reported by the driver."""
        return self.traits.name

    @property
    def device_type(self) -> str:
        """``"cpu"``, ``"gpu"`` or ``"accelerator"``."""
        return self.traits.kind

    @property
    def backend(self) -> str:
        """The driver's backend, for example ``"opencl"`` or ``"level_zero"``."""
        return self.traits.backend

    @property
    def driver_version(self) -> str:
        """The driver's version."""
        return self.traits.version

    @property
    def is_sub_device(self) -> bool:
        """Whether the device is a part of another device."""
        return self.traits.is_part

    @property
    def has_fp64(self) -> bool:
        """Whether the device computes in double precision."""
        return "fp64" in self.traits.aspects

    @property
    def has_fp16(self) -> bool:
        """Whether the device computes in half precision."""
        return "fp16" in self.traits.aspects

    @property
    def usm_types(self) -> tuple[str, ...]:
        """The USM types that the device can allocate."""
        return tuple(usm for usm in USM_TYPES if supports_usm(self.traits, usm))

    def create_sub_devices(self, partition: int | Sequence[int] | str = 1) -> list[Device]:
        """Split the device; the same partition gives the same sub-devices every time.

        Args:
            partition: compute units of each sub-device, a list with the compute units of each, or
                an affinity domain (``"numa"``, ``"L3_cache"``, ``"next_partitionable"``). A device
                with one compute unit is its own only part of one unit.

        Raises:
            DeviceError: the device cannot be split that way.

        Example:
            >>> parts = dp.Device("cpu").create_sub_devices(partition=1)
            >>> len(parts) == dp.Device("cpu").traits.units
            True
        """
        driver = driver_of(self.queue)
        parts = driver.split(driver.device_of(self.queue), partition)
        return [Device(driver.default_queue(part)) for part in parts]

    def wait(self) -> None:
        """Wait for all work on the queue, including work of other libraries.

        Example:
            >>> dp.Device("cpu").wait()
        """
        for wait_for_work in waits:
            wait_for_work(self.queue)

    def print_device_info(self) -> None:
        """Print the properties of the device, like ``dpctl.SyclDevice.print_device_info``.

        A sub-device, which has no filter string, is described by its place in the whole device.
        """
        for name, value in (
            ("Name", self.name),
            ("Driver version", self.driver_version),
            ("Vendor", self.traits.vendor),
            ("Device" if self.is_sub_device else "Filter string", describe_device(self.queue)),
        ):
            print(f"    {name:<16}{value}")
        print()

    @classmethod
    def create_device(cls, device: Any = None) -> Device:
        """Return ``Device(device)`` under its name in dpctl.tensor.

        Example:
            >>> dp.Device.create_device("cpu") == dp.Device("cpu")
            True
        """
        return cls(device)

    def __getattr__(self, name: str) -> NoReturn:
        reason = _ABSENT.get(name)
        because = "" if reason is None else f": {reason}"
        message = f"'Device' object has no attribute {name!r}{because}"
        raise AttributeError(message, name=name, obj=self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Device):
            return bool(self.queue == other.queue)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.queue)

    def __str__(self) -> str:
        return describe_queue(self.queue)

    def __repr__(self) -> str:
        return f"Device({describe_queue(self.queue)})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.is_sub_device or not self.is_canonical:
            raise TypeError(
                f"{self!r} cannot be pickled: an extra queue or a sub-device exists in its own "
                f"process only; pickle `device.filter_string`"
            )
        return Device, (self.filter_string,)


def _queue_named(device: Any) -> Queue:
    """Return the queue that a string or a driver's object specifies.

    Raises:
        DeviceError: it names none.
    """
    if isinstance(device, str) and device.lower() == "cpu" and config.device == HOST:
        device = HOST
    for driver in drivers_for(device):
        if isinstance(device, str):
            selected = driver.select(device)
            queue = None if selected is None else driver.default_queue(selected)
        else:
            queue = driver.taken(device)
        if queue is not None:
            return _usable(queue)
    if isinstance(device, str):
        raise DeviceError(
            f"device: no device matches {device!r}; available: {_available()}{_needs_of(device)}"
        )
    raise DeviceError(
        f"device: {device!r} of type {type(device).__name__} is not a device; pass a filter string "
        f"(available: {_available()}), a dpctl.SyclDevice, a dpctl.SyclQueue or another array's "
        "`.device`"
    )


#: Cached for queues, because each call of a compiled function makes a device from one.
_equal_queue = lru_cache(maxsize=256)(_queue_named)


def _usable(queue: Queue) -> Queue:
    driver = driver_of(queue)
    reason = driver.unusable(driver.device_of(queue))
    if reason is not None:
        raise UnsupportedDeviceError(
            f"device: {describe_device(queue)} ({traits_of(queue).name}) cannot hold arrays: "
            f"{reason}"
        )
    return queue


def _needs_of(device: str) -> str:
    """Return advice for making a device visible that a string may refer to."""
    is_gpu = "gpu" in device.lower()
    needs = "".join(driver.NEEDS_OF_GPUS for driver in drivers()) if is_gpu else ""
    return needs + "".join(
        f". {device} needs more: {each.reason}: {each.fix}"
        for each in missing()
        if is_gpu or is_name_of_cuda(device) == (each.name == "cuda")
    )


def sub_device_path(queue: Queue) -> tuple[tuple[Any, int], ...] | None:
    """Return the partitions that lead from the root to a sub-device, each with the index of the
    part; ``None`` if :meth:`Device.create_sub_devices` did not create it.
    """
    driver = driver_of(queue)
    return driver.path_of(driver.device_of(queue))


USM_TYPES = ("device", "shared", "host")


def supports_usm(traits: Traits, usm_type: str) -> bool:
    """Return whether a device can allocate memory of ``usm_type``."""
    return f"usm_{usm_type}" in traits.aspects


class DeviceList(list[Device]):
    """A list of devices, which a notebook shows as a table."""


def devices() -> DeviceList:
    """Return all root devices that can hold arrays, the default first.

    ``host:cpu`` is listed where SYCL is not installed, or if it is the default.

    Example:
        >>> [device.device_type for device in dp.devices()]
        ['cpu']
    """
    found = [Device(driver.default_queue(each)) for driver, each in _each_device()]
    try:
        default = default_device().queue
    except DeviceError:  # The option names none of this machine, or there is none.
        return DeviceList(found)
    first = Device(driver_of(default).default_queue(root_of(default)))
    return DeviceList([first, *(each for each in found if each != first)])


def is_available(device: str | None = None) -> bool:
    """Return whether this machine has a device that matches a filter string and can hold arrays.

    Without a string, any such device counts.

    Example:
        >>> dp.is_available("cpu")
        True
        >>> dp.is_available("accelerator")
        False
    """
    try:
        Device(device)
    except (DeviceError, UnsupportedDeviceError):
        return False
    return True


_default: Device | None = None
_is_chosen = False  # whether set_default_device was called
_blocks = _hooks.Blocks("dparray_default_device")


def default_device() -> Device:
    """Return the device used if neither ``device=`` nor an input decides.

    It is the device set by :func:`use_device` or :func:`set_default_device`, otherwise the device
    named by the option ``device`` (``DPARRAY_DEVICE``), otherwise the first of :func:`devices`.

    Raises:
        DeviceError: this machine has no device that can hold arrays.

    Example:
        >>> dp.zeros(3).device == dp.default_device()
        True
    """
    global _default
    if blocks := _blocks.entered.get():
        return cast("Device", blocks[-1].value)
    if config.device and not _is_chosen:
        return Device(config.device)
    if _default is None:
        entry = next(_each_device(), None)
        if entry is None:
            raise DeviceError(f"no device that can hold arrays was found, {_why_none()}")
        driver, device = entry
        _default = Device(driver.default_queue(device))
    return _default


def set_default_device(device: Any) -> Device:
    """Make ``device`` the default of this process; return the previous default.

    Example:
        >>> previous = dp.set_default_device("cpu")
        >>> dp.set_default_device(previous).device_type
        'cpu'
    """
    global _default, _is_chosen
    new = Device(device)
    previous, _default, _is_chosen = default_device(), new, True
    return previous


@contextmanager
def use_device(device: Any) -> Iterator[Device]:
    """Make ``device`` the default inside a ``with`` block (of this thread or task).

    The default affects only creation functions: operations follow their inputs.

    Example:
        >>> part = dp.Device("cpu").create_sub_devices(partition=1)[0]
        >>> with dp.use_device(part):
        ...     dp.ones(3).device == part
        True
    """
    chosen = Device(device)
    with _blocks.enter(chosen):
        yield chosen


def queue_of(device: Any = None, sycl_queue: Queue | None = None) -> Queue:
    """Return the queue that ``device=`` and ``sycl_queue=`` of a creation function name.

    Raises:
        DeviceError: the two disagree, or one of them has a wrong type.

    Example:
        >>> dp.device.queue_of("cpu") == dp.Device("cpu").queue
        True
    """
    if sycl_queue is not None:
        if not is_queue(sycl_queue):
            raise DeviceError(
                f"sycl_queue: {sycl_queue!r} of type {type(sycl_queue).__name__} is not a queue; "
                f"pass a dpctl.SyclQueue, or a device as `device=`"
            )
        if device is not None:
            _check_agreement(device, sycl_queue)
        return Device(sycl_queue).queue
    if device is None:
        return default_device().queue
    return device.queue if type(device) is Device else Device(device).queue


def copying_call(name: str, queue: Queue | None) -> str:
    """Return the call that copies host data to a queue, for messages; ``by`` names the queue."""
    if queue is None or queue == default_device().queue:
        return f"dp.asarray({name})"
    device = Device(queue)
    if device.is_canonical and not device.is_sub_device:
        return f"dp.asarray({name}, device={device.filter_string!r})"
    return f"dp.asarray({name}, device=x.device), where x is one of the arrays"


def _check_agreement(device: Any, queue: Queue) -> None:
    """Return whether two arguments agree: a device name or SyclDevice matches any queue on it, a
    queue only itself.
    """
    named = Device(device)
    names_device_only = isinstance(device, str | driver_of(queue).device_type)
    agrees = is_same_device(named.queue, queue) if names_device_only else named.queue == queue
    if not agrees:
        raise DeviceError(
            f"device= and sycl_queue= disagree: device is {named}, sycl_queue is on "
            f"{describe_queue(queue)}; pass one of the two"
        )


refuse_calls(__name__, 'dp.Device("gpu")')
