"""The traits of a queue's device that decide how expressions are computed, asked once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dparray import config
from dparray._codegen.domain import Machine


@lru_cache(maxsize=64)
def device_type(queue: Any) -> str:
    """The type of device by which :data:`dparray.config.tuning` has its rows."""
    kind = str(queue.sycl_device.device_type).rpartition(".")[2]
    return kind if kind in config.tuning else "accelerator"


def tuning_of(queue: Any) -> config.Tuning:
    """How kernels of expressions are cut on a queue's device."""
    return config.tuning[device_type(queue)]


@lru_cache(maxsize=64)
def _machine(queue: Any, lanes: int) -> Machine:
    return Machine(int(queue.sycl_device.max_compute_units), lanes)


def machine_of(queue: Any) -> Machine:
    """The traits of a queue's device that decide how kernels with reductions are cut."""
    return _machine(queue, tuning_of(queue).lanes)
