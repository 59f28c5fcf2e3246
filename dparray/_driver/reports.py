"""The properties of devices as data, for `dparray info`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dparray._driver.interface import Traits


def device_facts(
    traits: Traits,
    reason: str | None = None,
    sub_devices: Sequence[dict[str, Any]] = (),
    cache: int = 0,
    is_default: bool = False,
) -> dict[str, Any]:
    """Return the properties of a device.

    Args:
        traits: its traits.
        reason: why it cannot hold arrays; ``None`` if it can.
        sub_devices: how it can be split: ``partition`` for ``create_sub_devices``, and the number
            of parts.
        cache: bytes of its cache; 0 if unknown.
        is_default: whether it is the default device.
    """
    aspects = traits.aspects
    return {
        "filter_string": traits.filter_string,
        "name": traits.name,
        "vendor": traits.vendor,
        "type": traits.kind,
        "driver_version": traits.version,
        "usable": reason is None,
        "reason": reason,
        "default": is_default,
        "usm_types": [usm for usm in ("device", "shared", "host") if f"usm_{usm}" in aspects],
        "dtypes": {
            "float16": "fp16" in aspects,
            "float64": "fp64" in aspects,
            "atomic64": "atomic64" in aspects,
        },
        "compute_units": traits.units,
        "sub_devices": list(sub_devices),
        "max_work_group_size": traits.group,
        "max_work_item_sizes": list(traits.sizes),
        "sub_group_sizes": list(traits.sub_groups),
        "local_memory": traits.local_memory,
        "global_memory": traits.memory,
        "max_allocation": traits.largest,
        "cache": cache,
        "profiling": "profiling" in aspects,
    }
