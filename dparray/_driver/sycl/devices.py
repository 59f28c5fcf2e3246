"""SYCL's devices and queues: lists, traits, sub-devices, descriptions.

State: the queues of sub-devices, the parts of each partition, and the labels of sub-devices.
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import dpctl
from dpctl._sycl_queue_manager import get_device_cached_queue

from dparray._driver.interface import Target, Traits
from dparray._driver.sycl import prepare
from dparray.exceptions import DeviceError

# The aspects in ``Traits.aspects``, with SYCL's names for them.
_ASPECTS = {
    "fp16": "fp16",
    "fp64": "fp64",
    "atomic64": "atomic64",
    "profiling": "queue_profiling",
    "usm_device": "usm_device_allocations",
    "usm_shared": "usm_shared_allocations",
    "usm_host": "usm_host_allocations",
}

# dpctl has no interface for this number. A vector engine of Intel's Xe and Xe2 GPUs holds 8
# threads, each running one sub-group (7 on Gen9 to Xe-LP).
_THREADS_OF_A_GPU_UNIT = 8

_lock = threading.RLock()
_sub_devices: dict[tuple[dpctl.SyclDevice, Any], tuple[dpctl.SyclDevice, ...]] = {}
_sub_device_labels: dict[dpctl.SyclDevice, str] = {}
_others_sub_devices = 0
_sub_device_queues: dict[dpctl.SyclDevice, dpctl.SyclQueue] = {}


# -- traits --------------------------------------------------------------------------------------


def _target(device: dpctl.SyclDevice) -> Target:
    # Only Intel's CPU compiler, which the FPGA emulator also uses, needs rules of its own.
    is_intels = device.vendor.startswith("Intel(R)") and not device.is_gpu
    return Target("spirv64", "intel-cpu" if is_intels else "")


@lru_cache(maxsize=256)
def traits(device: dpctl.SyclDevice) -> Traits:
    return Traits(
        driver="sycl",
        kind=device.device_type.name,
        name=str(device.name),
        vendor=str(device.vendor),
        version=str(device.driver_version),
        backend=device.backend.name,
        filter_string=str(root_of(device).filter_string),
        is_part=device.parent_device is not None,
        units=max(int(device.max_compute_units), 1),
        threads=_THREADS_OF_A_GPU_UNIT if device.is_gpu else 1,
        group=int(device.max_work_group_size),
        sizes=tuple(device.max_work_item_sizes3d),
        sub_groups=tuple(sorted(device.sub_group_sizes)),
        local_memory=int(device.local_mem_size),
        memory=int(device.global_mem_size),
        largest=int(device.max_mem_alloc_size),
        aspects=_aspects(device),
        shares_memory=bool(device.is_cpu),
        target=_target(device),
        library="dpnp",
        raw_formats=("SPIR-V", "OpenCL C") if device.backend.name == "opencl" else ("SPIR-V",),
    )


def _aspects(device: Any) -> frozenset[str]:
    aspects = {
        name for name, of_sycl in _ASPECTS.items() if getattr(device, f"has_aspect_{of_sycl}")
    }
    return frozenset(aspects | {"partition"} if device.partition_max_sub_devices else aspects)


def missing_usm(device: dpctl.SyclDevice) -> str | None:
    """Return why no array can be allocated on a device, or ``None`` if one can."""
    if not device.has_aspect_usm_device_allocations:
        return "it has no USM device allocations (aspect usm_device_allocations)"
    return None


@lru_cache(maxsize=256)
def unusable(device: dpctl.SyclDevice) -> str | None:
    """Return why no array can be allocated on a device, or ``None`` if one can.

    dpnp is written with dpctl's interface for C++. At its first use, for whatever device, that
    allocates on SYCL's default device, and an error there ends the process. So no device is usable
    if the default device is not.
    """
    reason = missing_usm(device)
    if reason is not None:
        return f"{reason}; use a device from `dp.devices()`"
    try:
        default = dpctl.select_default_device()
    except dpctl.SyclDeviceCreationError:
        return None
    reason = missing_usm(default)
    if reason is None:
        return None
    number = next(n for n, each in enumerate(dpctl.get_devices()) if missing_usm(each) is None)
    return (
        f"SYCL's default device {default.filter_string} ({default.name}) cannot hold arrays: "
        f"{reason}; dpctl and dpnp need a default device that can. Hide it before the program "
        f"starts: export ONEAPI_DEVICE_SELECTOR='*:{number}', or name another driver first in "
        "OCL_ICD_FILENAMES"
    )


# -- lists of devices ----------------------------------------------------------------------------


def devices() -> list[dpctl.SyclDevice]:
    """Return the root devices that can hold arrays, SYCL's default first."""
    usable = [device for device in dpctl.get_devices() if missing_usm(device) is None]
    return sorted(usable, key=lambda device: -device.default_selector_score)


def why_none() -> str:
    """Return the reason, with its fix, if SYCL shows no device that can hold arrays."""
    selector = os.environ.get("ONEAPI_DEVICE_SELECTOR")
    if selector:
        return (
            f"since ONEAPI_DEVICE_SELECTOR={selector} hides SYCL's devices: unset it, "
            f"or choose by type alone, ONEAPI_DEVICE_SELECTOR='*:cpu'"
        )
    reasons = [
        f"{each.filter_string} ({each.name}) cannot hold arrays: {missing_usm(each)}; "
        for each in dpctl.get_devices()
    ]
    advice = prepare.late_import() or (
        "`dparray doctor` reports the missing part (usually: pip install intel-opencl-rt)"
    )
    return "".join(reasons) + advice


def select(filter_string: str) -> dpctl.SyclDevice | None:
    """Return the device that a filter string names; ``None`` if there is none.

    A string without a number selects the best matching device that can hold arrays. A number counts
    all devices, as in ``Device.filter_string``.
    """
    filter_string = filter_string.removeprefix("sycl:")
    for part in filter_string.split(","):
        words = part.strip().split(":")
        if any(word.isdigit() for word in words):
            break
        for device in devices():
            if set(words) <= {device.device_type.name, device.backend.name}:
                return device
    try:
        return dpctl.SyclDevice(filter_string)
    except (dpctl.SyclDeviceCreationError, ValueError):
        return None


#: Advice for making a GPU visible, for errors about a missing GPU.
NEEDS_OF_GPUS = (
    ". An Intel GPU needs its compute driver: intel-opencl-icd and libze-intel-gpu1 (Ubuntu, "
    "Debian), intel-compute-runtime (Fedora, Arch, openSUSE), and a user of the group `render`; "
    "`dparray info` lists what the drivers show"
)


# -- queues --------------------------------------------------------------------------------------


def device_of(queue: dpctl.SyclQueue) -> dpctl.SyclDevice:
    return queue.sycl_device


def domain(queue: dpctl.SyclQueue) -> dpctl.SyclContext:
    """Return the context of a queue: events and memory belong to a context."""
    return queue.sycl_context


@lru_cache(maxsize=64)
def copies_by_host(queue: dpctl.SyclQueue) -> bool:
    """Return whether the host does the copies on a queue; read once.

    The OpenCL CPU driver fails or hangs when it copies in a context of several devices. Kernels
    work there.
    """
    return bool(queue.sycl_device.is_cpu) and len(queue.sycl_context.get_devices()) > 1


def taken(value: Any) -> dpctl.SyclQueue | None:
    """Return the queue that an object represents: a queue, a device, a device of dpctl or dpnp."""
    if isinstance(value, dpctl.SyclQueue):
        return one_object(value)
    if isinstance(value, dpctl.SyclDevice):
        return default_queue(value)
    queue = getattr(value, "sycl_queue", getattr(value, "queue", None))
    return queue if isinstance(queue, dpctl.SyclQueue) else None


def default_queue(device: dpctl.SyclDevice) -> dpctl.SyclQueue:
    """Return the one queue that represents a device.

    dpctl caches only the queues of root devices. Two requests for a sub-device would return two
    queues in two contexts, so the queues of sub-devices are cached here.
    """
    if device.parent_device is None:
        return one_object(get_device_cached_queue(device))
    with _lock:
        queue = _sub_device_queues.get(device)
        if queue is None:
            queue = _sub_device_queues[device] = dpctl.SyclQueue(device)
        return one_object(queue)


def new_queue(
    like: dpctl.SyclQueue, in_order: bool = False, profiling: bool = False
) -> dpctl.SyclQueue:
    wanted = {"in_order": in_order, "enable_profiling": profiling}
    properties = [name for name, is_wanted in wanted.items() if is_wanted]
    try:
        return dpctl.SyclQueue(like.sycl_context, like.sycl_device, property=properties)
    except dpctl.SyclQueueCreationError as error:
        raise DeviceError(
            f"new_queue: {describe(like.sycl_device)} has no queue with {', '.join(properties)}: "
            f"{error}"
        ) from None


def is_in_order(queue: dpctl.SyclQueue) -> bool:
    return bool(queue.is_in_order)


def has_profiling(queue: dpctl.SyclQueue) -> bool:
    return bool(queue.has_enable_profiling)


def one_object(queue: dpctl.SyclQueue) -> dpctl.SyclQueue:
    """Return the first of all equal queues: dpnp shares memory only on the same queue object."""
    with _lock:  # Two threads with equal queues would each keep one.
        return _first_of_equals(queue)


@lru_cache(maxsize=256)
def _first_of_equals(queue: dpctl.SyclQueue) -> dpctl.SyclQueue:
    return queue


# -- sub-devices ---------------------------------------------------------------------------------


def root_of(device: dpctl.SyclDevice) -> dpctl.SyclDevice:
    while device.parent_device is not None:
        device = device.parent_device
    return device


def describe(device: dpctl.SyclDevice) -> str:
    """Return ``opencl:cpu:0`` for a root device, ``opencl:cpu:0, sub-device 1 of 2`` below one."""
    parent = device.parent_device
    if parent is None:
        return str(device.filter_string)
    with _lock:
        label = _sub_device_labels.get(device)
        if label is None:  # Created by dpctl itself, which does not report sibling devices.
            global _others_sub_devices
            _others_sub_devices += 1
            units = device.max_compute_units
            label = f"sub-device #{_others_sub_devices} ({units} compute unit{'s' * (units != 1)})"
            _sub_device_labels[device] = label
    return f"{describe(parent)}, {label}"


def split(device: dpctl.SyclDevice, partition: Any) -> Sequence[dpctl.SyclDevice]:
    if type(partition) is int and partition == device.max_compute_units == 1:
        return (device,)
    try:
        return _parts(device, _partition(partition))
    except (dpctl.SyclSubDeviceCreationError, OverflowError, TypeError, ValueError) as error:
        if not device.partition_max_sub_devices:
            raise DeviceError(
                f"create_sub_devices: {describe(device)} has no sub-devices: its driver cannot "
                "split it. Use the whole device"
            ) from None
        raise DeviceError(
            f"create_sub_devices: {describe(device)} with {device.max_compute_units} compute units "
            f"cannot be split with partition={partition!r} ({error}); pass a number of compute "
            f"units of at most half of that, a list of numbers, or an affinity domain it has"
        ) from None


def _partition(partition: Any) -> int | tuple[int, ...] | str:
    """Return the argument of dpctl's ``create_sub_devices``, which would round a fraction."""
    if isinstance(partition, str):
        return partition
    if isinstance(partition, Sequence):
        return tuple(map(operator.index, partition))
    return operator.index(partition)


def _parts(
    device: dpctl.SyclDevice, partition: int | tuple[int, ...] | str
) -> tuple[dpctl.SyclDevice, ...]:
    with _lock:
        parts = _sub_devices.get((device, partition))
        if parts is None:
            parts = tuple(device.create_sub_devices(partition=partition))
            _sub_devices[device, partition] = parts
            # By default, each sub-device has one compute unit.
            how = "" if partition == 1 else f" by {partition!r}".replace(",)", ")")
            for number, part in enumerate(parts, start=1):
                _sub_device_labels.setdefault(part, f"sub-device {number} of {len(parts)}{how}")
        return parts


def path_of(device: dpctl.SyclDevice) -> tuple[tuple[Any, int], ...] | None:
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
