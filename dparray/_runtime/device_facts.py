"""What a queue's device can do, asked once for each queue."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import dpctl
import dpctl.memory

from dparray import _dtypes


class _Limits(NamedTuple):
    group: int
    sizes: tuple[int, ...]
    local_memory: int
    place: tuple[Any, Any]


_limits: dict[dpctl.SyclQueue, _Limits] = {}


def _limits_of(queue: dpctl.SyclQueue) -> _Limits:
    limits = _limits.get(queue)
    if limits is None:
        device = queue.sycl_device
        limits = _limits[queue] = _Limits(
            device.max_work_group_size,
            tuple(device.max_work_item_sizes3d),
            device.local_mem_size,
            (queue.sycl_context, device),
        )
    return limits


def place_of(queue: dpctl.SyclQueue) -> tuple[Any, Any]:
    """Context and device of a queue: what a built kernel belongs to."""
    return _limits_of(queue).place


@lru_cache(maxsize=64)
def computes_in_double(queue: dpctl.SyclQueue) -> bool:
    """Whether the queue's device has double precision; asked once."""
    return _dtypes.has_aspect(queue.sycl_device, "fp64")


@lru_cache(maxsize=64)
def is_cpu(queue: dpctl.SyclQueue) -> bool:
    """Whether the queue's device is a CPU, whose memory the host shares; asked once."""
    return bool(queue.sycl_device.is_cpu)
