"""The machine of a measurement: processor, device and versions."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dparray import __version__
from dparray.device import Device

_PACKAGES = ("dpctl", "dpnp", "numba", "llvmlite", "numpy", "intel-opencl-rt")


def describe(device: Device) -> dict[str, Any]:
    """Return the description of the machine as JSON-compatible values."""
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "dparray": __version__,
        "packages": {name: _version(name) for name in _PACKAGES},
        "device": str(device),
        "device_name": device.name,
        "driver_version": device.driver_version,
        "load": os.getloadavg()[0],
    }


def cpu_model(source: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's name as reported by the kernel."""
    try:
        for line in source.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
