"""The machine of a measurement: processor, device and versions."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import datetime, timezone
from typing import Any

from dparray import __version__
from dparray._system import processor_name, usable_cores
from dparray.device import Device

_PACKAGES = ("dpctl", "dpnp", "numba", "llvmlite", "numpy", "intel-opencl-rt")


def describe(device: Device) -> dict[str, Any]:
    """Return the description of the machine as JSON-compatible values."""
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "cpu": processor_name(),
        "cores": os.cpu_count(),
        "usable_cores": len(usable_cores()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "dparray": __version__,
        "packages": {name: _version(name) for name in _PACKAGES},
        "device": str(device),
        "device_name": device.name,
        "driver_version": device.driver_version,
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
