"""Capabilities of a queue's device, read once for each queue."""

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


@lru_cache(maxsize=256)  # Weak, so that unused queues are released.
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
    """The facts of a device that decide how kernels are divided into groups.

    Attributes:
        compute_units: number of compute units; on Intel's GPUs, of vector engines.
        threads: number of sub-groups that a compute unit holds simultaneously.
        sub_group: the largest sub-group size.
        group: the largest work-group size.
        local_memory: bytes of local memory of a work-group.
        is_gpu: whether the device is a GPU.
    """

    compute_units: int
    threads: int
    sub_group: int
    group: int
    local_memory: int
    is_gpu: bool


# dpctl has no interface for this number. A vector engine of Intel's Xe and Xe2 GPUs holds 8
# threads, each running one sub-group (7 on Gen9 to Xe-LP).
_THREADS_OF_A_GPU_UNIT = 8


@lru_cache(maxsize=64)
def machine_facts(queue: dpctl.SyclQueue) -> MachineFacts:
    """Return the facts that decide how kernels are divided on the queue's device; read once."""
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
    """Return the context and device of a queue, to which a built kernel belongs."""
    return limits_of(queue).context_and_device


@lru_cache(maxsize=64)
def computes_in_double(queue: dpctl.SyclQueue) -> bool:
    """Return whether the queue's device has double precision; read once."""
    return _dtypes.has_aspect(queue.sycl_device, "fp64")


@lru_cache(maxsize=64)
def copies_by_host(queue: dpctl.SyclQueue) -> bool:
    """Return whether the host does the copies on the queue; read once.

    The OpenCL CPU driver fails or hangs when it copies in a context of several devices. Kernels
    work there.
    """
    return is_cpu(queue) and len(queue.sycl_context.get_devices()) > 1


@lru_cache(maxsize=64)
def is_cpu(queue: dpctl.SyclQueue) -> bool:
    """Return whether the queue's device is a CPU, whose memory the host shares; read once."""
    return bool(queue.sycl_device.is_cpu)
