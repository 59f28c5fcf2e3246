"""The host processor as a device, and its parts: some of its threads.

State: the parts of each partition.
"""

from __future__ import annotations

import operator
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from dparray._driver.interface import Target, Traits
from dparray._driver.reports import device_facts
from dparray._system import physical_memory, processor_name, usable_cores
from dparray.exceptions import DeviceError

NAME = "host:cpu"
NEEDS_OF_GPUS = ""
#: The largest local memory of a group, which is on the stack of a thread.
LOCAL_MEMORY = 256 << 10
_MAX_GROUP = 1024
_SUB_GROUP = 16
_ASPECTS = frozenset(
    {"fp16", "fp64", "atomic64", "profiling", "usm_device", "usm_shared", "usm_host"}
)


@dataclass(frozen=True)
class Device:
    """The processor, or a part of its threads.

    Attributes:
        units: the number of threads.
        label: the part among its siblings.
        parent: the device that it is a part of.
        partition: how the parent was split, and the number of the part.
    """

    units: int
    label: str = ""
    parent: Device | None = None
    partition: tuple[Any, int] = (None, 0)


@cache
def root() -> Device:
    """Return the processor, with as many threads as this process may use."""
    return Device(len(usable_cores()))


def devices() -> list[Device]:
    """Return the processor."""
    return [root()]


def why_none() -> str:
    """Return nothing: each host has a processor."""
    return ""


def unusable(device: Device) -> None:
    """Return nothing: all parts can hold arrays."""
    return


def select(words: str) -> Device | None:
    """Return the processor for ``"host:cpu"``, ``"host"`` and ``"cpu"``."""
    for part in words.split(","):
        if set(part.strip().split(":")) <= {"host", "cpu", "0"} and part.strip() != "0":
            return root()
    return None


@cache
def traits(device: Device) -> Traits:
    memory = physical_memory()
    aspects = _ASPECTS | ({"partition"} if device.units > 1 else set())
    return Traits(
        driver="host",
        kind="cpu",
        name=processor_name(),
        vendor=platform.machine(),
        version=_version(),
        backend="host",
        filter_string=NAME,
        is_part=device.parent is not None,
        units=device.units,
        threads=1,
        group=_MAX_GROUP,
        sizes=(_MAX_GROUP,) * 3,
        sub_groups=(_SUB_GROUP,),
        local_memory=LOCAL_MEMORY,
        memory=memory,
        largest=memory,
        aspects=frozenset(aspects),
        shares_memory=True,
        target=_target(),
        library="NumPy",
        has_groups=False,
        prefers_products=True,
    )


@cache
def _version() -> str:
    import llvmlite

    return f"llvmlite {llvmlite.__version__}"


@cache
def _target() -> Target:
    from llvmlite import binding

    return Target("host", f"{binding.get_host_cpu_name()} {features()}")


@cache
def features() -> str:
    """Return the instruction sets of the processor, as LLVM writes them."""
    from llvmlite import binding

    return str(binding.get_host_cpu_features().flatten())


def root_of(device: Device) -> Device:
    """Return the processor."""
    return root()


def describe(device: Device) -> str:
    """Return ``host:cpu``, and for a part its number."""
    if device.parent is None:
        return NAME
    return f"{describe(device.parent)}, {device.label}"


def split(device: Device, partition: Any) -> Sequence[Device]:
    counts = _counts(device, partition)
    if not counts or min(counts) < 1 or sum(counts) > device.units:
        raise DeviceError(
            f"create_sub_devices: {describe(device)} with {device.units} threads cannot be split "
            f"with partition={partition!r}; pass a number of threads of at most half of that, or a "
            "list of numbers"
        )
    if counts == [1] and device.units == 1:
        return (device,)
    return _parts(device, tuple(counts), partition if type(partition) is int else tuple(counts))


def _counts(device: Device, partition: Any) -> list[int]:
    """Return the threads of each part; none if there is no such partition."""
    if isinstance(partition, str):
        return []
    try:
        if isinstance(partition, Sequence):
            return [operator.index(each) for each in partition]
        count = operator.index(partition)
    except TypeError:
        return []
    return [count] * (device.units // count) if count > 0 else []


@cache
def _parts(device: Device, counts: tuple[int, ...], partition: Any) -> tuple[Device, ...]:
    # One thread each is the default meaning.
    how = "" if partition == 1 else f" by {partition!r}".replace(",)", ")")
    return tuple(
        Device(count, f"sub-device {at + 1} of {len(counts)}{how}", device, (partition, at))
        for at, count in enumerate(counts)
    )


def path_of(device: Device) -> tuple[tuple[Any, int], ...]:
    """Return the partitions that lead to a part, each with the index of the part."""
    if device.parent is None:
        return ()
    return (*path_of(device.parent), device.partition)


def platforms() -> list[dict[str, Any]]:
    """Return the processor, for `dparray info`."""
    of_device = traits(root())
    count = of_device.units
    parts = [{"partition": 1, "count": count}] if count > 1 else []
    return [
        {
            "name": "host",
            "vendor": of_device.vendor,
            "version": of_device.version,
            "backend": of_device.backend,
            "devices": [device_facts(of_device, sub_devices=parts)],
        }
    ]
