"""The traits of a queue's device that affect plans, read once for each queue."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dparray import config
from dparray._codegen.domain import Machine
from dparray._codegen.reduction_steps import power_of_two
from dparray._driver import traits_of
from dparray._runtime.rounding import IN_GROUP, INDEX_LIMIT, WARP


@lru_cache(maxsize=64)
def device_type(queue: Any) -> str:
    """Return the type of device by which :data:`dparray.config.tuning` has its rows."""
    kind = traits_of(queue).kind
    return kind if kind in config.tuning else "accelerator"


def tuning_of(queue: Any) -> config.Tuning:
    """Return the tuning of element-wise kernels for a queue's device."""
    return config.tuning[device_type(queue)]


@lru_cache(maxsize=64)
def _machine(queue: Any, lanes: int, bytes_in_flight: int) -> Machine:
    traits = traits_of(queue)
    most = power_of_two(traits.group)  # a device may have smaller groups than the option allows
    return Machine(
        traits.units,
        min(lanes, most),
        min(traits.sub_group, most) if traits.kind == "gpu" else 0,
        traits.group,
        traits.local_memory,
        traits.threads,
        len(traits.sub_groups) == 1,
        traits.loads_vectors,
        bytes_in_flight if traits.loads_vectors and bytes_in_flight > 1 else 0,
        # More rows in a group would make its rows shorter.
        min(traits.groups[1] * (IN_GROUP // WARP), INDEX_LIMIT - 1),
    )


def machine_of(queue: Any) -> Machine:
    """Return the device traits that determine how kernels with reductions are divided."""
    tuning = tuning_of(queue)
    return _machine(queue, tuning.lanes, tuning.bytes_in_flight)
