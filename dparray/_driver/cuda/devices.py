"""Find CUDA's devices, their traits and their names."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NoReturn

from cuda.bindings import driver
from cuda.core import Device

from dparray._driver.cuda.context import call
from dparray._driver.cuda.prepare import INSTALL
from dparray._driver.cuda.queues import Queue, default_queue, queue_of_stream
from dparray._driver.interface import Target, Traits
from dparray._driver.reports import device_facts
from dparray.exceptions import DeviceError

#: Advice for making a GPU visible, for errors about a missing GPU.
NEEDS_OF_GPUS = ". An NVIDIA GPU needs NVIDIA's driver 580 or newer; `nvidia-smi` lists the GPUs"
#: The smallest compute capability that the common module supports.
_OLDEST = (7, 5)
_TARGET = Target("ptx", "sm_75")
_NAME = re.compile(r"(?:cuda|gpu)(?::(\d+))?")


@cache
def devices() -> tuple[Device, ...]:
    """Return the GPUs that can hold arrays, in CUDA's order."""
    if not call(driver.cuDeviceGetCount):
        return ()
    return tuple(each for each in Device.get_all_devices() if unusable(each) is None)


def why_none() -> str:
    """Return the reason, with its fix, if there is no GPU that can hold arrays."""
    old = [] if not call(driver.cuDeviceGetCount) else Device.get_all_devices()
    reasons = [f"{describe(each)} ({each.name}): {unusable(each)}" for each in old]
    return "; ".join(reasons) or (
        "NVIDIA's driver shows no GPU: `nvidia-smi` lists them, and CUDA_VISIBLE_DEVICES hides them"
    )


def unusable(device: Device) -> str | None:
    own = tuple(device.compute_capability)
    if own >= _OLDEST:
        return None
    oldest, capability = (".".join(map(str, each)) for each in (_OLDEST, own))
    return f"it has compute capability {capability}, and kernels need {oldest}"


def select(words: str) -> Device | None:
    """Return the device that ``cuda``, ``cuda:1`` or ``gpu`` names; ``None`` if there is none."""
    for word in words.split(","):
        named = _NAME.fullmatch(word.strip())
        for device in devices() if named else ():
            if named[1] is None or int(named[1]) == device.device_id:  # type: ignore[index]
                return device
    return None


def taken(value: Any) -> Queue | None:
    """Return the queue that an object represents: a queue, a device, a stream of a library."""
    if isinstance(value, Queue):
        return value
    if isinstance(value, Device):
        return default_queue(value)
    if hasattr(value, "__cuda_stream__"):
        return queue_of_stream(value)
    queue = getattr(value, "queue", None)
    return queue if isinstance(queue, Queue) else None


@cache
def _traits(number: int) -> Traits:
    device = Device(number)
    own = device.properties
    version = call(driver.cuDriverGetVersion)
    memory = int(call(driver.cuDeviceTotalMem, number))
    aspects = {"fp16", "fp64", "atomic64", "profiling", "usm_device", "usm_host"}
    if own.concurrent_managed_access:
        aspects.add("usm_shared")
    return Traits(
        driver="cuda",
        kind="gpu",
        name=device.name,
        vendor="NVIDIA Corporation",
        version=f"{version // 1000}.{version % 1000 // 10}",
        backend="cuda",
        filter_string=describe(device),
        is_part=False,
        units=own.multiprocessor_count,
        threads=own.max_threads_per_multiprocessor // own.warp_size,
        group=own.max_threads_per_block,
        sizes=(own.max_block_dim_x, own.max_block_dim_y, own.max_block_dim_z),
        sub_groups=(own.warp_size,),
        local_memory=own.max_shared_memory_per_block_optin,
        memory=memory,
        largest=memory,
        aspects=frozenset(aspects),
        shares_memory=False,
        target=_TARGET,
        library="CuPy" if importlib.util.find_spec("cupy") else "",
        library_fix=f"{INSTALL}, which brings CuPy for the device",
        chooses_groups=False,
        groups=(own.max_grid_dim_x, own.max_grid_dim_y, own.max_grid_dim_z),
        loads_vectors=True,
    )


def traits(device: Device) -> Traits:
    return _traits(device.device_id)


def domain(queue: Queue) -> str:
    """Return the same object for all queues, since each can wait for events of every other."""
    return "cuda"


def root_of(device: Device) -> Device:
    """Return the device itself: there are no sub-devices."""
    return device


def describe(device: Device) -> str:
    """Return a device's name in messages, for example ``cuda:0``."""
    return f"cuda:{device.device_id}"


def split(device: Device, partition: Any) -> NoReturn:
    """Raise, since NVIDIA GPUs have no sub-devices."""
    raise DeviceError(
        f"create_sub_devices: {describe(device)} has no sub-devices: dparray does not split NVIDIA "
        "GPUs. Use the whole device"
    )


def path_of(device: Device) -> tuple[tuple[Any, int], ...]:
    """Return the partitions that lead to a device: none."""
    return ()


def platforms() -> list[dict[str, Any]]:
    """Return NVIDIA's driver and its devices, for `dparray info`."""
    if not call(driver.cuDeviceGetCount):
        return []
    all_devices: Sequence[Device] = Device.get_all_devices()
    return [
        {
            "name": "NVIDIA CUDA",
            "vendor": "NVIDIA Corporation",
            "version": _traits(all_devices[0].device_id).version,
            "backend": "cuda",
            "devices": [_facts(device) for device in all_devices],
        }
    ]


def _facts(device: Device) -> dict[str, Any]:
    of_device = traits(device)
    facts = device_facts(of_device, unusable(device), cache=device.properties.l2_cache_size)
    capability = ".".join(map(str, device.compute_capability))
    compiled_for = f"compiled for {of_device.target.compiler}"
    return facts | {"kernels": f"{compiled_for}; its compute capability is {capability}"}
