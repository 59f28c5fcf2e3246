"""``dparray info``: show drivers and devices of this machine, and whether they can hold arrays."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from dparray import __version__
from dparray._compiler import cache
from dparray._driver import drivers, missing
from dparray._runtime import startup

_PACKAGES = (
    *("dpctl", "dpnp", "numba", "llvmlite", "numpy", "intel-opencl-rt"),
    *("cuda-core", "cuda-bindings", "nvidia-nvvm", "cupy-cuda13x"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``dparray info``."""
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.add_argument(
        "--speed",
        action="store_true",
        help="also show the device speeds that dp.placement('fastest') uses, measured if unknown",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the information; return 1 if no device can hold arrays."""
    facts = gather()
    if arguments.speed and facts["error"] is None:
        facts["speed"] = speeds()
    print(json.dumps(facts, indent=2) if arguments.json else as_text(facts))
    usable = any(device["usable"] for device in all_devices(facts))
    if not usable:
        print(
            "dparray info: no device of this machine can hold arrays; run `dparray doctor`",
            file=sys.stderr,
        )
    return 0 if usable else 1


def all_devices(facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return every device of a :func:`gather` result."""
    for entry in facts["platforms"]:
        yield from entry["devices"]


def gather() -> dict[str, Any]:
    """Return versions, drivers, platforms and devices as JSON-compatible values."""
    directory = cache.base_directory()
    facts: dict[str, Any] = {
        "dparray": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "driver_files": os.environ.get("OCL_ICD_FILENAMES"),
        "fast_path": _fast_path(),
        "kernel_cache": None if directory is None else str(directory),
        "error": _error(),
        "platforms": [],
        "missing": [],
        "cost_model": {},
    }
    if facts["error"] is None:
        facts["platforms"] = [each for driver in drivers() for each in driver.platforms()]
        facts["missing"] = [each._asdict() for each in missing()]
        facts["cost_model"] = _costs()
    return facts


def _error() -> str | None:
    """Return the reason if nothing can be computed on this installation."""
    if startup.failure is not None:
        return str(startup.failure)
    absent = [f"{each.reason}: {each.fix}" for each in missing()]
    return None if drivers() else "; ".join(absent)


def _fast_path() -> str:
    """Return the state of the C module for small arrays."""
    if startup.failure is not None:
        return "unknown"
    fastpath = importlib.import_module("dparray._array.fastpath")
    if fastpath.module is not None:
        return "compiled"
    reason = fastpath.missing_reason
    return f"missing: {reason}; {fastpath.BUILD}" if reason else "switched off"


def _costs() -> dict[str, float]:
    """Return the constants of the cost model, if there is a CPU device."""
    device_module = importlib.import_module("dparray.device")
    cost_model = importlib.import_module("dparray._evaluate.cost_model")
    if any(device.traits.shares_memory for device in device_module.devices()):
        terms: dict[str, float] = cost_model.terms()._asdict()
        return terms
    return {}


def speeds() -> dict[str, Any]:
    """Return the speeds of devices and of copies between them, measured if unknown."""
    device_module = importlib.import_module("dparray.device")
    device_costs = importlib.import_module("dparray._satellites").provider("speeds")
    queues = [device.queue for device in device_module.devices()]
    names = [device_module.describe_device(queue) for queue in queues]
    links = []
    for name, queue in zip(names, queues, strict=True):
        for other, target in zip(names, queues, strict=True):
            if name != other:
                link = device_costs.link_of(queue, target)
                links.append(
                    {
                        "source": name,
                        "target": other,
                        "latency": link.latency,
                        "bandwidth": None if link.channel < 0 else link.bandwidth,
                    }
                )
    return {
        "devices": {
            name: device_costs.speeds_of(queue)._asdict()
            for name, queue in zip(names, queues, strict=True)
        },
        "links": links,
    }


def _speeds_as_text(facts: dict[str, Any]) -> str:
    """Format a :func:`speeds` result."""
    lines = ["speed of devices, by which dp.placement('fastest') chooses"]
    units = {"memory": "B/s", "reduction": "B/s"}
    for name, rates in facts["devices"].items():
        rows = [("  launch", _duration(rates["launch"]))]
        rows += [
            (f"  {rate}", f"{value / 1e9:.3g} G{units.get(rate, '/s')}" if value else "none")
            for rate, value in rates.items()
            if rate != "launch"
        ]
        lines += [name, _rows(rows)]
    for link in facts["links"]:
        way = f"{link['source']} -> {link['target']}"
        if link["bandwidth"] is None:
            lines.append(f"{way}: the memory is shared")
        else:
            lines.append(
                f"{way}: {_duration(link['latency'])}, then {link['bandwidth'] / 1e9:.3g} GB/s"
            )
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    """Format seconds in a suitable unit."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-9:.3g} ns"


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


# --- as text --------------------------------------------------------------------------------------


def as_text(facts: dict[str, Any]) -> str:
    """Format a :func:`gather` result."""
    packages = ", ".join(
        f"{name} {version or 'not installed'}" for name, version in facts["packages"].items()
    )
    sections = [
        _rows(
            [
                ("dparray", facts["dparray"]),
                ("Python", facts["python"]),
                ("packages", packages),
                ("driver files", facts["driver_files"] or "those registered with the system"),
                ("fast path", facts["fast_path"]),
                ("kernel cache", facts["kernel_cache"]),
            ]
        )
    ]
    if facts["error"]:
        sections.append(facts["error"])
    if facts["cost_model"]:
        terms = [(f"  {name}", _duration(seconds)) for name, seconds in facts["cost_model"].items()]
        sections.append(f"cost model of the CPU device ({_origin()})\n" + _rows(terms))
    if "speed" in facts:
        sections.append(_speeds_as_text(facts["speed"]))
    for number, entry in enumerate(facts["platforms"]):
        sections.append(
            f"platform {number}: {entry['name']} ({entry['vendor']}), {entry['version']}, "
            f"backend {entry['backend']}"
        )
        sections += [_device_as_text(device) for device in entry["devices"]]
    sections += [
        f"driver {each['name']}: {each['reason']}; {each['fix']}" for each in facts["missing"]
    ]
    return "\n\n".join(sections)


def _origin() -> str:
    """Return where the constants come from."""
    config = importlib.import_module("dparray.config")
    if config.cost_model:
        return f"dp.config.cost_model pins {', '.join(config.cost_model)}"
    return "constants; dp.config.cost_model pins terms"


def _device_as_text(device: dict[str, Any]) -> str:
    marks = " (default)" if device["default"] else ""
    rows = []
    if not device["usable"]:
        marks = " (not usable)"
        rows.append(("arrays", f"cannot live here: {device['reason']}"))
    rows += [
        ("driver", device["driver_version"]),
        ("USM types", ", ".join(device["usm_types"]) or "none"),
        (
            "dtypes",
            ", ".join(f"{name} {_yes(has)}" for name, has in device["dtypes"].items()),
        ),
        *([("kernels", capability)] if (capability := device.get("kernels")) else []),
        ("compute units", str(device["compute_units"])),
        (
            "sub-devices",
            ", ".join(
                f"{part['count']} with partition={part['partition']!r}"
                for part in device["sub_devices"]
            )
            or "cannot be split",
        ),
        (
            "work-group",
            f"at most {device['max_work_group_size']} work-items; in each dimension "
            f"{' x '.join(map(str, device['max_work_item_sizes']))}; "
            f"sub-groups of {_listed(device['sub_group_sizes'])}",
        ),
        ("local memory", _bytes(device["local_memory"])),
        (
            "memory",
            f"{_bytes(device['global_memory'])}; one allocation at most "
            f"{_bytes(device['max_allocation'])}; cache {_bytes(device['cache'])}",
        ),
        ("profiling", _yes(device["profiling"])),
    ]
    text = _rows(rows).replace("\n", "\n  ")
    return f"{device['filter_string']}  {device['name']}, {device['type']}{marks}\n  {text}"


def _rows(rows: Sequence[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _listed(values: Sequence[int]) -> str:
    return ", ".join(map(str, values)) or "unknown size"


def _bytes(count: int) -> str:
    return str(importlib.import_module("dparray.memory").format_bytes(count))
