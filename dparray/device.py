"""Devices, and the queues that represent them.

In SYCL an array is bound to a queue, in the Array API to a device. A :class:`Device` combines the
two: it *is* a queue, used as a device. Every SYCL device has one default queue (dpctl's cached
queue), which ``Device("cpu")`` represents. A further queue or a sub-device is a different
``Device``, and data moves between devices only by ``to_device``.
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import dpctl
from dpctl._sycl_queue_manager import get_device_cached_queue

from dparray.exceptions import DeviceError, UnsupportedDeviceError

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

_USM_ASPECTS = {
    "device": "has_aspect_usm_device_allocations",
    "shared": "has_aspect_usm_shared_allocations",
    "host": "has_aspect_usm_host_allocations",
}

#: Functions with which the layers above wait for recorded work on a queue.
waits: list[Callable[[dpctl.SyclQueue], None]] = []

#: Reasons why there may be no device, with fixes, the most likely last. The layers above add to it.
advices = ["`dparray doctor` reports the missing part (usually: pip install intel-opencl-rt)"]

lock = threading.RLock()
_sub_devices: dict[tuple[dpctl.SyclDevice, Any], tuple[dpctl.SyclDevice, ...]] = {}
_sub_device_labels: dict[dpctl.SyclDevice, str] = {}
_others_sub_devices = 0
_sub_device_queues: dict[dpctl.SyclDevice, dpctl.SyclQueue] = {}
_extra_queue_numbers: dict[int, int] = {}


def _canonical_queue(device: dpctl.SyclDevice) -> dpctl.SyclQueue:
    """Return the one queue that represents ``device``.

    dpctl caches only the queues of root devices. Two requests for a sub-device would return two
    queues in two contexts, so the queues of sub-devices are cached here.
    """
    if device.parent_device is None:
        return get_device_cached_queue(device)
    with lock:
        queue = _sub_device_queues.get(device)
        if queue is None:
            queue = _sub_device_queues[device] = dpctl.SyclQueue(device)
        return queue


def one_object(queue: dpctl.SyclQueue) -> dpctl.SyclQueue:
    """Return the first of all equal queues: dpnp shares memory only on the same queue object."""
    with lock:  # Two threads with equal queues would each keep one.
        return _first_of_equals(queue)


@lru_cache(maxsize=256)
def _first_of_equals(queue: dpctl.SyclQueue) -> dpctl.SyclQueue:
    return queue


def describe_device(device: dpctl.SyclDevice) -> str:
    """Return ``opencl:cpu:0`` for a root device, ``opencl:cpu:0, sub-device 1 of 2`` below one.

    Example:
        >>> import dparray as dp
        >>> dp.device.describe_device(dp.Device("cpu").sycl_device)
        'opencl:cpu:0'
    """
    parent = device.parent_device
    if parent is None:
        return str(device.filter_string)
    with lock:
        label = _sub_device_labels.get(device)
        if label is None:  # dpctl created it, without information on its siblings.
            global _others_sub_devices
            _others_sub_devices += 1
            units = device.max_compute_units
            label = f"sub-device #{_others_sub_devices} ({units} compute unit{'s' * (units != 1)})"
            _sub_device_labels[device] = label
    return f"{describe_device(parent)}, {label}"


def _queue_text(queue: dpctl.SyclQueue) -> str:
    """Return ``canonical queue`` or ``queue #2``, with properties that are not the default."""
    if queue == _canonical_queue(queue.sycl_device):
        text = "canonical queue"
    else:
        with lock:
            number = _extra_queue_numbers.setdefault(hash(queue), len(_extra_queue_numbers) + 2)
        text = f"queue #{number}"
    properties = [
        name
        for name, is_set in (
            ("in-order", queue.is_in_order),
            ("profiling", queue.has_enable_profiling),
        )
        if is_set
    ]
    return f"{text} ({', '.join(properties)})" if properties else text


def describe_queue(queue: dpctl.SyclQueue) -> str:
    """Describe a queue in messages: device, sub-device, which queue.

    Example:
        >>> import dparray as dp
        >>> dp.device.describe_queue(dp.Device("cpu").sycl_queue)
        'opencl:cpu:0, canonical queue'
    """
    return f"{describe_device(queue.sycl_device)}, {_queue_text(queue)}"


def _available() -> str:
    """Return the devices that can hold arrays, for errors; or why there is none."""
    usable = [each for each in dpctl.get_devices() if unsupported_reason(each) is None]
    found = [str(each.filter_string) for each in usable]
    return ", ".join(found) if found else f"none, {_cure_without_devices()}"


def _cure_without_devices() -> str:
    """Return the advice if SYCL shows no device that can hold arrays."""
    selector = os.environ.get("ONEAPI_DEVICE_SELECTOR")
    if selector:
        return (
            f"since ONEAPI_DEVICE_SELECTOR={selector} hides SYCL's devices: unset it, "
            f"or choose by type alone, ONEAPI_DEVICE_SELECTOR='*:cpu'"
        )
    unusable = [
        f"{each.filter_string} ({each.name}) cannot hold arrays: {unsupported_reason(each)}; "
        for each in dpctl.get_devices()
    ]
    return "".join(unusable) + advices[-1]


class Device:
    """A place for arrays: a SYCL device together with one queue on it.

    Two devices are equal if their queues are equal. ``Device("cpu")`` represents the default queue
    of the device; ``Device(queue)`` represents that queue.

    Args:
        device: a filter string (``"cpu"``, ``"gpu"``, ``"opencl:cpu:0"``), a ``dpctl.SyclDevice``,
            a ``dpctl.SyclQueue``, another ``Device`` (for example ``x.device`` of an array), or
            ``None`` for the default device.

    Raises:
        DeviceError: no device of this machine matches.
        UnsupportedDeviceError: the device has no USM, so it cannot hold arrays.

    Example:
        >>> import dparray as dp
        >>> device = dp.Device("cpu")
        >>> device.device_type
        'cpu'
        >>> dp.zeros(3, device=device).device == device
        True
    """

    __slots__ = ("sycl_queue",)

    sycl_queue: dpctl.SyclQueue

    def __init__(
        self, device: str | dpctl.SyclDevice | dpctl.SyclQueue | Device | None = None
    ) -> None:
        if isinstance(device, Device):
            self.sycl_queue = device.sycl_queue
            return
        if isinstance(device, dpctl.SyclQueue):
            queue = one_object(device)
        elif isinstance(device, dpctl.SyclDevice):
            queue = one_object(_canonical_queue(device))
        elif isinstance(device, str):
            queue = one_object(_canonical_queue(_select(device)))
        elif device is None:
            queue = default_device().sycl_queue
        elif isinstance(getattr(device, "sycl_queue", None), dpctl.SyclQueue):
            queue = device.sycl_queue  # a dpctl or dpnp device
        else:
            raise DeviceError(
                f"device: {device!r} of type {type(device).__name__} is not a device; pass a "
                f"filter string (available: {_available()}), a dpctl.SyclDevice, a dpctl.SyclQueue "
                f"or another array's `.device`"
            )
        reason = unsupported_reason(queue.sycl_device)
        if reason is not None:
            raise UnsupportedDeviceError(
                f"device: {describe_device(queue.sycl_device)} ({queue.sycl_device.name}) cannot "
                f"hold arrays: {reason}; use a device from `dp.devices()`"
            )
        reason = _default_is_unusable()
        if reason is not None:
            raise UnsupportedDeviceError(reason)
        self.sycl_queue = queue

    @property
    def sycl_device(self) -> dpctl.SyclDevice:
        """The ``dpctl.SyclDevice``."""
        return self.sycl_queue.sycl_device

    @property
    def sycl_context(self) -> dpctl.SyclContext:
        """The ``dpctl.SyclContext`` of the queue."""
        return self.sycl_queue.sycl_context

    @property
    def is_canonical(self) -> bool:
        """Whether the queue is the default queue of its device."""
        return bool(self.sycl_queue == _canonical_queue(self.sycl_device))

    @property
    def filter_string(self) -> str:
        """The filter string of the device; for a sub-device, of its root device."""
        device = self.sycl_device
        while device.parent_device is not None:
            device = device.parent_device
        return str(device.filter_string)

    @property
    def name(self) -> str:
        """The hardware's name as reported by the driver."""
        return str(self.sycl_device.name)

    @property
    def device_type(self) -> str:
        """``"cpu"``, ``"gpu"`` or ``"accelerator"``."""
        return str(self.sycl_device.device_type.name)

    @property
    def backend(self) -> str:
        """The SYCL backend, for example ``"opencl"`` or ``"level_zero"``."""
        return str(self.sycl_device.backend.name)

    @property
    def driver_version(self) -> str:
        """The driver's version."""
        return str(self.sycl_device.driver_version)

    @property
    def is_sub_device(self) -> bool:
        """Whether the device is a part of another device."""
        return self.sycl_device.parent_device is not None

    @property
    def has_fp64(self) -> bool:
        """Whether the device computes in double precision."""
        return bool(self.sycl_device.has_aspect_fp64)

    @property
    def has_fp16(self) -> bool:
        """Whether the device computes in half precision."""
        return bool(self.sycl_device.has_aspect_fp16)

    @property
    def usm_types(self) -> tuple[str, ...]:
        """The USM types that the device can allocate."""
        return tuple(usm for usm in _USM_ASPECTS if supports_usm(self.sycl_device, usm))

    def create_sub_devices(self, partition: int | Sequence[int] | str = 1) -> list[Device]:
        """Split the device; the same partition gives the same sub-devices every time.

        Args:
            partition: compute units of each sub-device, a list with the compute units of each, or
                an affinity domain (``"numa"``, ``"L3_cache"``, ``"next_partitionable"``). A device
                with one compute unit is its own only part of one unit.

        Raises:
            DeviceError: the device cannot be split that way.

        Example:
            >>> import dparray as dp
            >>> parts = dp.Device("cpu").create_sub_devices(partition=1)
            >>> len(parts) == dp.Device("cpu").sycl_device.max_compute_units
            True
        """
        if type(partition) is int and partition == self.sycl_device.max_compute_units == 1:
            return [Device(self.sycl_device)]
        try:
            parts = _split(self.sycl_device, _partition(partition))
        except (dpctl.SyclSubDeviceCreationError, OverflowError, TypeError, ValueError) as error:
            if not self.sycl_device.partition_max_sub_devices:
                raise DeviceError(
                    f"create_sub_devices: {describe_device(self.sycl_device)} has no sub-devices: "
                    "its driver cannot split it. Use the whole device"
                ) from None
            raise DeviceError(
                f"create_sub_devices: {describe_device(self.sycl_device)} with "
                f"{self.sycl_device.max_compute_units} compute units cannot be split with "
                f"partition={partition!r} ({error}); pass a number of compute units of at "
                f"most half of that, a list of numbers, or an affinity domain it has"
            ) from None
        return [Device(part) for part in parts]

    def wait(self) -> None:
        """Wait for all work on the queue, including work of other libraries.

        Example:
            >>> import dparray as dp
            >>> dp.Device("cpu").wait()
        """
        for wait_for_work in waits:
            wait_for_work(self.sycl_queue)

    def print_device_info(self) -> None:
        """Print the properties of the device, like ``dpctl.SyclDevice.print_device_info``."""
        self.sycl_device.print_device_info()

    @classmethod
    def create_device(cls, device: Any = None) -> Device:
        """Return ``Device(device)`` under its name in dpctl.tensor.

        Example:
            >>> import dparray as dp
            >>> dp.Device.create_device("cpu") == dp.Device("cpu")
            True
        """
        return cls(device)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Device):
            return bool(self.sycl_queue == other.sycl_queue)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.sycl_queue)

    def __str__(self) -> str:
        return describe_queue(self.sycl_queue)

    def __repr__(self) -> str:
        return f"Device({describe_queue(self.sycl_queue)})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.is_sub_device or not self.is_canonical:
            raise TypeError(
                f"{self!r} cannot be pickled: an extra queue or a sub-device exists in its own "
                f"process only; pickle `device.filter_string`"
            )
        return Device, (self.filter_string,)


def _partition(partition: Any) -> int | tuple[int, ...] | str:
    """Return the argument of dpctl's ``create_sub_devices``, which would round a fraction."""
    if isinstance(partition, str):
        return partition
    if isinstance(partition, Sequence):
        return tuple(map(operator.index, partition))
    return operator.index(partition)


def _split(
    device: dpctl.SyclDevice, partition: int | tuple[int, ...] | str
) -> tuple[dpctl.SyclDevice, ...]:
    """Return the sub-devices of a partition; the same ones every time, with labels."""
    with lock:
        parts = _sub_devices.get((device, partition))
        if parts is None:
            parts = tuple(device.create_sub_devices(partition=partition))
            _sub_devices[device, partition] = parts
            # One compute unit each is the default meaning.
            how = "" if partition == 1 else f" by {partition!r}".replace(",)", ")")
            for number, part in enumerate(parts, start=1):
                _sub_device_labels.setdefault(part, f"sub-device {number} of {len(parts)}{how}")
        return parts


def sub_device_path(device: dpctl.SyclDevice) -> tuple[tuple[Any, int], ...] | None:
    """Return the partitions that lead from the root to a sub-device, each with the index of the
    part; ``None`` if :meth:`Device.create_sub_devices` did not create it.
    """
    path: list[tuple[Any, int]] = []
    while device.parent_device is not None:
        for (parent, partition), parts in list(_sub_devices.items()):
            if device in parts:
                path.append((partition, parts.index(device)))
                device = parent
                break
        else:
            return None
    return tuple(reversed(path))


def _select(filter_string: str) -> dpctl.SyclDevice:
    """Return the device that a filter string names.

    A string without a number selects the best matching device that can hold arrays. A number counts
    all devices, as in ``Device.filter_string``.
    """
    found = dpctl.get_devices()
    for part in filter_string.split(","):
        words = part.strip().split(":")
        if any(word.isdigit() for word in words):
            break
        candidates = [
            device
            for device in found
            if set(words) <= {device.device_type.name, device.backend.name}
            and unsupported_reason(device) is None
        ]
        if candidates:
            return max(candidates, key=lambda device: device.default_selector_score)
    try:
        return dpctl.SyclDevice(filter_string)
    except (dpctl.SyclDeviceCreationError, ValueError):
        raise DeviceError(
            f"device: no device matches {filter_string!r}; available: {_available()}"
            + (_NEEDS_OF_GPUS if "gpu" in filter_string.lower() else "")
        ) from None


_NEEDS_OF_GPUS = (
    ". An Intel GPU needs its compute driver: intel-opencl-icd and libze-intel-gpu1 (Ubuntu, "
    "Debian), intel-compute-runtime (Fedora, Arch, openSUSE), and a user of the group `render`; "
    "`dparray info` lists what the drivers show"
)


def supports_usm(device: dpctl.SyclDevice, usm_type: str) -> bool:
    """Return whether ``device`` can allocate memory of ``usm_type``."""
    return bool(getattr(device, _USM_ASPECTS[usm_type]))


def unsupported_reason(device: dpctl.SyclDevice) -> str | None:
    """Return why no array can be allocated on ``device``, or ``None`` if one can."""
    if not supports_usm(device, "device"):
        return "it has no USM device allocations (aspect usm_device_allocations)"
    return None


@lru_cache(maxsize=1)
def _default_is_unusable() -> str | None:
    """Return the error where SYCL's default device cannot hold arrays, else ``None``.

    dpnp is written with dpctl's interface for C++. At its first use, for whatever device, that
    allocates on the default device, and an error there ends the process.
    """
    try:
        default = dpctl.select_default_device()
    except dpctl.SyclDeviceCreationError:
        return None
    reason = unsupported_reason(default)
    if reason is None:
        return None
    number = next(
        n for n, each in enumerate(dpctl.get_devices()) if unsupported_reason(each) is None
    )
    return (
        f"device: SYCL's default device {default.filter_string} ({default.name}) cannot hold "
        f"arrays: {reason}; dpctl and dpnp need a default device that can. Hide it before the "
        f"program starts: export ONEAPI_DEVICE_SELECTOR='*:{number}', or name another driver first "
        "in OCL_ICD_FILENAMES"
    )


class DeviceList(list[Device]):
    """A list of devices, which a notebook shows as a table."""


def devices() -> DeviceList:
    """Return all root devices that can hold arrays, the default first.

    Example:
        >>> import dparray as dp
        >>> [device.device_type for device in dp.devices()]
        ['cpu']
    """
    usable = [device for device in dpctl.get_devices() if unsupported_reason(device) is None]
    usable.sort(key=lambda device: -device.default_selector_score)
    return DeviceList(Device(device) for device in usable)


def is_available(device: str | None = None) -> bool:
    """Return whether this machine has a device that matches a filter string and can hold arrays.

    Without a string, any such device counts.

    Example:
        >>> import dparray as dp
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
_scoped_default: ContextVar[Device | None] = ContextVar("dparray_default_device", default=None)


def default_device() -> Device:
    """Return the device used if neither ``device=`` nor an input decides.

    It is the device set by :func:`use_device` or :func:`set_default_device`, otherwise the device
    with the highest SYCL selector score that can hold arrays.

    Raises:
        DeviceError: this machine has no device that can hold arrays.

    Example:
        >>> import dparray as dp
        >>> dp.zeros(3).device == dp.default_device()
        True
    """
    global _default
    scoped = _scoped_default.get()
    if scoped is not None:
        return scoped
    if _default is None:
        found = devices()
        if not found:
            raise DeviceError(
                f"no SYCL device that can hold arrays was found, {_cure_without_devices()}"
            )
        _default = found[0]
    return _default


def set_default_device(device: Any) -> Device:
    """Make ``device`` the default of this process; return the previous default.

    Example:
        >>> import dparray as dp
        >>> previous = dp.set_default_device("cpu")
        >>> dp.set_default_device(previous).device_type
        'cpu'
    """
    global _default
    new = Device(device)
    previous, _default = default_device(), new
    return previous


@contextmanager
def use_device(device: Any) -> Iterator[Device]:
    """Make ``device`` the default inside a ``with`` block (of this thread or task).

    The default affects only creation functions: operations follow their inputs.

    Example:
        >>> import dparray as dp
        >>> part = dp.Device("cpu").create_sub_devices(partition=1)[0]
        >>> with dp.use_device(part):
        ...     dp.ones(3).device == part
        True
    """
    chosen = Device(device)
    token = _scoped_default.set(chosen)
    try:
        yield chosen
    finally:
        _scoped_default.reset(token)


def queue_of(device: Any = None, sycl_queue: dpctl.SyclQueue | None = None) -> dpctl.SyclQueue:
    """Return the queue that ``device=`` and ``sycl_queue=`` of a creation function name.

    Raises:
        DeviceError: the two disagree, or one of them has a wrong type.

    Example:
        >>> import dparray as dp
        >>> dp.device.queue_of("cpu") == dp.Device("cpu").sycl_queue
        True
    """
    if sycl_queue is not None:
        if not isinstance(sycl_queue, dpctl.SyclQueue):
            raise DeviceError(
                f"sycl_queue: {sycl_queue!r} of type {type(sycl_queue).__name__} is not a queue; "
                f"pass a dpctl.SyclQueue, or a device as `device=`"
            )
        if device is not None:
            _check_agreement(device, sycl_queue)
        return Device(sycl_queue).sycl_queue
    if device is None:
        return default_device().sycl_queue
    return device.sycl_queue if type(device) is Device else Device(device).sycl_queue


def copying_call(name: str, queue: dpctl.SyclQueue | None) -> str:
    """Return the call that copies host data to a queue, for messages; ``by`` names the queue."""
    if queue is None or queue == default_device().sycl_queue:
        return f"dp.asarray({name})"
    device = Device(queue)
    if device.is_canonical and not device.is_sub_device:
        return f"dp.asarray({name}, device={device.filter_string!r})"
    return f"dp.asarray({name}, device=x.device), where x is one of the arrays"


def _check_agreement(device: Any, queue: dpctl.SyclQueue) -> None:
    """Return whether two arguments agree: a device name or SyclDevice matches any queue on it, a
    queue only itself.
    """
    named = Device(device)
    names_device_only = isinstance(device, str | dpctl.SyclDevice)
    agrees = (
        named.sycl_device == queue.sycl_device if names_device_only else named.sycl_queue == queue
    )
    if not agrees:
        raise DeviceError(
            f"device= and sycl_queue= disagree: device is {named}, sycl_queue is on "
            f"{describe_queue(queue)}; pass one of the two"
        )
