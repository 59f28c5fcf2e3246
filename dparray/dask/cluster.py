"""A cluster on this machine: one process for each device."""

from __future__ import annotations

import json
import logging
from typing import Any

from distributed import Nanny, Scheduler, SpecCluster

from dparray.dask.spill import DeviceSpill, bytes_of
from dparray.dask.worker_devices import VARIABLE, check_devices, places_of
from dparray.device import Device
from dparray.exceptions import ArgumentError

#: Libraries that would start their own threads in addition to a worker's.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TBB_NUM_THREADS")


class LocalCluster(SpecCluster):
    """Workers on this machine, each a process with a device of its own as its default.

    A worker of a CPU's sub-device is bound to as many cores, so workers compute at the same time.
    Tasks compute their results before they end; results count with their bytes on the device, and
    the longest unused ones go to disk above a limit.

    Args:
        devices: a device or sub-device for each worker; all devices if not given, or the cores of
            the CPU where there is nothing else.
        device_memory_limit: bytes of results that each worker keeps on its device, also as text
            (``"2GB"``); half of the device's memory, shared by its workers, if not given.
        memory_limit: of each worker's process, as of ``distributed.LocalCluster``; none if 0.
        threads_per_worker: tasks that a worker runs at the same time. They share one queue.
        local_directory: where results are spilled to.
        silence_logs: what of a lower level is not shown of the logs of the cluster.
        options: further ones of ``distributed.SpecCluster``.

    Raises:
        ArgumentError: no devices, or a limit that is none.
        DeviceError: the device is unknown, or it exists in this process only.

    Example:
        >>> import dparray.dask
        >>> with dparray.dask.LocalCluster(["cpu"]) as cluster:  # doctest: +SKIP
        ...     client = cluster.get_client()
    """

    def __init__(
        self,
        devices: Any = None,
        *,
        device_memory_limit: Any = None,
        memory_limit: Any = 0,
        threads_per_worker: int = 1,
        local_directory: str | None = None,
        silence_logs: int | bool = logging.WARNING,
        **options: Any,
    ) -> None:
        chosen = check_devices(devices)
        if type(threads_per_worker) is not int or threads_per_worker < 1:
            raise ArgumentError(
                f"LocalCluster: threads_per_worker is {threads_per_worker!r}; give an integer from "
                "1 on"
            )
        if device_memory_limit is not None:
            device_memory_limit = bytes_of("LocalCluster: device_memory_limit", device_memory_limit)
        workers = {}
        for number, (device, place) in enumerate(zip(chosen, places_of(chosen), strict=True)):
            limit = device_memory_limit or _share(device, chosen)
            count = str(len(place["cores"]) if place["cores"] else threads_per_worker)
            workers[number] = {
                "cls": Nanny,
                "options": {
                    "name": f"{number}: {device}",
                    "nthreads": threads_per_worker,
                    "memory_limit": memory_limit,
                    "local_directory": local_directory,
                    "preload": ["dparray.dask.worker"],
                    "env": {VARIABLE: json.dumps(place), **dict.fromkeys(_THREADS, count)},
                    "data": (DeviceSpill, {"device_memory_limit": limit}),
                    "host": "127.0.0.1",
                    "silence_logs": silence_logs,
                },
            }
        #: The device of each worker.
        self.devices = tuple(chosen)
        scheduler = {
            "cls": Scheduler,
            "options": {"host": "127.0.0.1", "port": 0, "dashboard": False},
        }
        super().__init__(scheduler=scheduler, workers=workers, silence_logs=silence_logs, **options)


def _share(device: Device, devices: list[Device]) -> int:
    """Return half of a device's memory, divided among the workers that share it."""
    root = device.filter_string
    sharing = sum(other.filter_string == root for other in devices)
    return device.traits.memory // (2 * sharing)
