"""Capabilities of a queue's device, asked once for each queue."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import dpctl
import dpctl.memory

from dparray import _dtypes


class _Limits(NamedTuple):
    group: int
    units: int
    sizes: tuple[int, ...]
    local_memory: int
    context_and_device: tuple[Any, Any]


@lru_cache(maxsize=256)  # so that queues of the past are let go
def limits_of(queue: dpctl.SyclQueue) -> _Limits:
    device = queue.sycl_device
    return _Limits(
        device.max_work_group_size,
        max(int(device.max_compute_units), 1),
        tuple(device.max_work_item_sizes3d),
        device.local_mem_size,
        (queue.sycl_context, device),
    )


def context_and_device(queue: dpctl.SyclQueue) -> tuple[Any, Any]:
    """Context and device of a queue: what a built kernel belongs to."""
    return limits_of(queue).context_and_device


@lru_cache(maxsize=64)
def computes_in_double(queue: dpctl.SyclQueue) -> bool:
    """Whether the queue's device has double precision; asked once."""
    return _dtypes.has_aspect(queue.sycl_device, "fp64")


@lru_cache(maxsize=64)
def copies_by_host(queue: dpctl.SyclQueue) -> bool:
    """Whether copies on the queue are left to the host; asked once.

    The OpenCL driver of CPUs fails, or never ends, at copies in a context of several devices.
    Kernels work there.
    """
    return is_cpu(queue) and len(queue.sycl_context.get_devices()) > 1


@lru_cache(maxsize=64)
def is_cpu(queue: dpctl.SyclQueue) -> bool:
    """Whether the queue's device is a CPU, whose memory the host shares; asked once."""
    return bool(queue.sycl_device.is_cpu)
