"""A worker's process: its device, its threads, and results that are computed when a task ends.

``distributed`` loads this module into every worker of a :class:`dparray.dask.LocalCluster`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from distributed.core import error_message
from distributed.threadpoolexecutor import ThreadPoolExecutor

from dparray import config, device
from dparray._array.ndarray import ndarray
from dparray._functions.evaluation import eval as evaluate
from dparray._runtime import queues
from dparray.dask.worker_devices import bind_process, device_of_process


def arrays_in(value: Any) -> list[ndarray]:
    """Return the arrays in a result, also in lists, tuples and dictionaries."""
    if isinstance(value, ndarray):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [x for each in value for x in arrays_in(each)]
    return []


def _computed(run: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Run a task and evaluate its pending results, within the task's time and on its thread.

    So what a worker holds is memory that can be counted, sent and written to disk, and its inputs
    are free.
    """
    message = run(*args, **options)
    if not isinstance(message, dict) or message.get("op") != "task-finished":
        return message
    try:
        arrays = arrays_in(message["result"])
        evaluate(*arrays)
        for queue in {x.queue for x in arrays}:
            queues.wait(queue)
    except Exception as error:
        failed: dict[str, Any] = dict(error_message(error))
        failed.update(op="task-erred", actual_exception=error)
        failed.update({key: message[key] for key in ("start", "stop", "thread") if key in message})
        return failed
    return message


class DeviceExecutor(ThreadPoolExecutor):
    """The threads of a worker."""

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        """Run a task, a function with its arguments, and evaluate its result."""
        return super().submit(_computed, *args, **kwargs)


def dask_setup(worker: Any) -> None:
    """Set up a worker; ``distributed`` calls this when it starts."""
    bind_process()  # must run before the driver counts the cores, at its first device query
    device.set_default_device(device_of_process())
    # Dask selects elements by small NumPy index arrays.
    config.host_operands = "copy"
    before = worker.executors["default"]
    worker.executors["default"] = DeviceExecutor(
        worker.state.nthreads, thread_name_prefix="Dask-Device-Threads"
    )
    before.shutdown(wait=False)
