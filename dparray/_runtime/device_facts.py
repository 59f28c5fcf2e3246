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


class MachineFacts(NamedTuple):
    """The facts of a device that decide how kernels are divided on it.

    Attributes:
        compute_units: how many it has; on Intel's GPUs, vector engines.
        threads: the sub-groups that a compute unit holds at once.
        sub_group: the largest size of a sub-group.
        group: the largest size of a work-group.
        local_memory: the bytes of local memory of a work-group.
        is_gpu: whether it is a GPU.
    """

    compute_units: int
    threads: int
    sub_group: int
    group: int
    local_memory: int
    is_gpu: bool


# No interface of dpctl has this number. Intel's Xe and Xe2 vector engines hold 8 threads, of a
# sub-group each (those of Gen9 to Xe-LP 7).
_THREADS_OF_A_GPU_UNIT = 8


@lru_cache(maxsize=64)
def machine_facts(queue: dpctl.SyclQueue) -> MachineFacts:
    """Return the facts of a queue's device that decide how kernels are divided; asked once."""
    device = queue.sycl_device
    return MachineFacts(
        max(int(device.max_compute_units), 1),
        _THREADS_OF_A_GPU_UNIT if device.is_gpu else 1,
        max(device.sub_group_sizes, default=1),
        int(device.max_work_group_size),
        int(device.local_mem_size),
        bool(device.is_gpu),
    )


def context_and_device(queue: dpctl.SyclQueue) -> tuple[Any, Any]:
    """Context and device of a queue: what a built kernel belongs to."""
    return limits_of(queue).context_and_device


@lru_cache(maxsize=64)
def computes_in_double(queue: dpctl.SyclQueue) -> bool:
    """Return whether the queue's device has double precision; asked once."""
    return _dtypes.has_aspect(queue.sycl_device, "fp64")


@lru_cache(maxsize=64)
def copies_by_host(queue: dpctl.SyclQueue) -> bool:
    """Return whether copies on the queue are left to the host; asked once.

    The OpenCL driver of CPUs fails, or never ends, at copies in a context of several devices.
    Kernels work there.
    """
    return is_cpu(queue) and len(queue.sycl_context.get_devices()) > 1


@lru_cache(maxsize=64)
def is_cpu(queue: dpctl.SyclQueue) -> bool:
    """Return whether the queue's device is a CPU, whose memory the host shares; asked once."""
    return bool(queue.sycl_device.is_cpu)
