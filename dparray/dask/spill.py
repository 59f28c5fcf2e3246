"""Results of a worker: on its device up to a limit, the longest unused ones on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
from distributed.spill import SpillBuffer

from dparray.exceptions import ArgumentError


class DeviceSpill(SpillBuffer):
    """The mapping of a worker's results, which counts bytes on the device.

    Arrays are written from the device's memory to files as frames, and read back onto the device.
    :class:`LocalCluster` makes one for each worker.

    Args:
        device_memory_limit: bytes, or text such as ``"2GB"``, from which on results are written
            to disk; half of the device's memory if not given.
        worker_local_directory: where; the worker's own folder.

    Raises:
        ArgumentError: the limit is no positive number of bytes.

    Example:
        >>> import dparray.dask
        >>> dparray.dask.DeviceSpill("1MB", worker_local_directory="/tmp/unused").limit
        1000000
    """

    def __init__(self, device_memory_limit: Any, worker_local_directory: str) -> None:
        self.limit = bytes_of("device_memory_limit", device_memory_limit)
        super().__init__(str(Path(worker_local_directory) / "device-storage"), target=self.limit)


def bytes_of(name: str, value: Any) -> int:
    """Return the number of bytes that a number or a text such as "1 GB" specifies.

    Raises:
        ArgumentError: it is neither, or not positive.
    """
    try:
        nbytes = int(dask.utils.parse_bytes(value))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name}: {value!r} must be a number of bytes: an integer or a string such as '2GB'"
        ) from None
    if nbytes <= 0:
        raise ArgumentError(f"{name}: {nbytes} bytes; give a positive number")
    return nbytes
