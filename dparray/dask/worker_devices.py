"""The device of a worker, as text that can be passed to another process."""

from __future__ import annotations

import json
import os
from typing import Any

from dparray._system import CAN_BIND, bind_to_cores, usable_cores
from dparray.device import Device, default_device, devices, sub_device_path
from dparray.exceptions import ArgumentError, DeviceError

#: Environment variable of a worker's process: its device and cores.
VARIABLE = "DPARRAY_DASK_PLACE"


def usual_devices() -> list[Device]:
    """Return all devices, or, on a machine with one CPU only, its cores as sub-devices."""
    found = list(devices())
    only = found[0] if len(found) == 1 else None
    if only is not None and only.traits.units > 1 and only.device_type == "cpu":
        return only.create_sub_devices(partition=1)
    return found


def places_of(wanted: list[Device]) -> list[dict[str, Any]]:
    """Return for each device the text by which a worker finds it, and the cores for its threads.

    A sub-device of a CPU by a number of compute units is a process bound to that number of cores:
    its driver shows a CPU of these cores, and processes compute at the same time, which
    sub-devices of one process do not.

    Raises:
        DeviceError: a device exists in this process only.
    """
    cores = usable_cores()
    places = []
    for device in wanted:
        path = sub_device_path(device.queue) if device.is_sub_device else ()
        if path is None or not (device.is_sub_device or device.is_canonical):
            raise DeviceError(
                f"LocalCluster: {device} exists in this process only; give devices, or sub-devices "
                "that device.create_sub_devices(...) has made"
            )
        place: dict[str, Any] = {"filter": device.filter_string, "path": path, "cores": None}
        if (
            CAN_BIND
            and device.device_type == "cpu"
            and len(path) == 1
            and not isinstance(path[0][0], str)
        ):
            partition, number = path[0]
            sizes = [partition] * (number + 1) if isinstance(partition, int) else list(partition)
            first = sum(sizes[:number])
            own = cores[first : first + sizes[number]]
            if len(own) == sizes[number]:
                place.update(cores=own, path=())
        places.append(place)
    return places


def check_devices(wanted: Any) -> list[Device]:
    """Return the devices of a cluster.

    Raises:
        ArgumentError: there is none, or it is not a list.
        DeviceError: one of them is no device.
    """
    if wanted is None:
        return usual_devices()
    if isinstance(wanted, str | int) or not hasattr(wanted, "__iter__"):
        raise ArgumentError(
            f"LocalCluster: devices is {wanted!r}; give a list: devices=[{wanted!r}], or "
            "dp.Device('cpu').create_sub_devices(partition=1)"
        )
    found = [Device(device) for device in wanted]
    if not found:
        raise ArgumentError("LocalCluster: devices is empty; give at least one device")
    return found


def bind_process() -> None:
    """Bind this process and its threads to its cores."""
    text = os.environ.get(VARIABLE)
    if text and (cores := json.loads(text)["cores"]):
        bind_to_cores(cores)


def device_of_process() -> Device:
    """Return the device of this worker process."""
    text = os.environ.get(VARIABLE)
    if not text:
        return default_device()
    place = json.loads(text)
    device = Device(place["filter"])
    for partition, number in place["path"]:
        given = partition if isinstance(partition, int | str) else list(partition)
        device = device.create_sub_devices(given)[number]
    return device
