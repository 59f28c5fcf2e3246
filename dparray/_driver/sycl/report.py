"""SYCL's platforms and devices as data, for `dparray info`."""

from __future__ import annotations

from typing import Any

import dpctl

from dparray._driver.reports import device_facts
from dparray._driver.sycl.devices import devices, missing_usm, traits

_AFFINITY_DOMAINS = ("numa", "L4_cache", "L3_cache", "L2_cache", "L1_cache")


def shown() -> list[dpctl.SyclDevice]:
    """Return all devices that SYCL shows, also those that cannot hold arrays."""
    devices: list[dpctl.SyclDevice] = dpctl.get_devices()
    return devices


def default() -> dpctl.SyclDevice:
    """Return SYCL's own default device."""
    return dpctl.select_default_device()


def platforms() -> list[dict[str, Any]]:
    """Return the platforms that SYCL shows, with their devices, usable or not."""
    usable = devices()
    default = usable[0] if usable else None
    return [
        {
            "name": entry.name,
            "vendor": entry.vendor,
            "version": entry.version,
            "backend": entry.backend.name,
            "devices": [describe(device, default) for device in entry.get_devices()],
        }
        for entry in dpctl.get_platforms()
    ]


def describe(device: Any, default: Any = None) -> dict[str, Any]:
    """Return properties of a ``dpctl.SyclDevice``.

    Args:
        device: the device.
        default: the default device.
    """
    return device_facts(
        traits(device),
        missing_usm(device),
        _partitions(device),
        device.global_mem_cache_size,
        is_default=device == default,
    )


def _partitions(device: Any) -> list[dict[str, Any]]:
    """Return how a device can be split: ``partition`` for ``create_sub_devices``, and the number of
    parts.
    """
    if device.partition_max_sub_devices < 2:
        return []
    partitions = []
    for partition in (1, *_AFFINITY_DOMAINS):
        try:
            parts = device.create_sub_devices(partition=partition)
        except Exception:  # Drivers report missing features in several ways.
            continue
        partitions.append({"partition": partition, "count": len(parts)})
    return partitions
