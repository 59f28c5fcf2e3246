"""Call NVIDIA's driver: contexts, errors.

A thread has one current context, which other libraries set and rely on. dparray works in the
primary context of each device, as CuPy and PyTorch do, and leaves the current context as it was.

State: the primary contexts in use, and what refuses all calls after a fork.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from cuda.bindings import driver

from dparray import _hooks
from dparray.exceptions import DeviceError, DeviceLostError

# Errors after which every call in a context fails: a kernel did something that stopped the device.
_FATAL = frozenset(
    f"CUDA_ERROR_{name}"
    for name in (
        "ASSERT",
        "ECC_UNCORRECTABLE",
        "HARDWARE_STACK_ERROR",
        "ILLEGAL_ADDRESS",
        "ILLEGAL_INSTRUCTION",
        "INVALID_ADDRESS_SPACE",
        "INVALID_PC",
        "LAUNCH_FAILED",
        "LAUNCH_TIMEOUT",
        "MISALIGNED_ADDRESS",
        "UNKNOWN",
    )
)
#: The number of kernels that an error message names: the latest ones.
_NAMED = 4

lock = threading.RLock()
_primary: dict[int, int] = {}
_refuse: Callable[[], object] | None = None


def refuse_with(refuse: Callable[[], object]) -> None:
    """Make every later driver call raise, by calling ``refuse``."""
    global _refuse
    _refuse = refuse


def is_refused() -> bool:
    """Return whether all calls are refused, as in the child of a fork."""
    return _refuse is not None


def check() -> None:
    """Raise if all calls are refused."""
    if _refuse is not None:
        _refuse()


def failure(error: Any, task: str) -> Exception:
    """Return the exception for an error of the driver.

    Args:
        error: a status of the driver, or the exception of cuda-core, which begins with its name.
        task: what failed, for the message.
    """
    text = error.name if isinstance(error, driver.CUresult) else str(error)
    name = text.partition(":")[0]
    if name not in _FATAL:
        return DeviceError(f"{task}: {text}")
    names = [work for work, kind, *_ in tuple(_hooks.recent) if kind == "kernel"]
    last = ", ".join(dict.fromkeys(names[: -_NAMED - 1 : -1])) or "unknown"
    return DeviceLostError(
        f"{task}: a kernel stopped the GPU ({name}), so its memory is lost and this process must "
        f"be restarted; the last kernels, latest first: {last}. The usual cause is an index beyond "
        "an array, which DPARRAY_DEBUG=1 finds"
    )


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the driver; return its result, or several.

    Raises:
        DeviceError: the driver returns an error.
    """
    status, *results = function(*arguments)
    if status:
        raise failure(status, function.__name__)
    return results[0] if len(results) == 1 else results


def primary(number: int) -> int:
    """Return the primary context of a device, which is created at the first call."""
    context = _primary.get(number)
    if context is None:
        check()
        with lock:
            context = _primary[number] = int(call(driver.cuDevicePrimaryCtxRetain, number))
    return context


def push(context: int) -> bool:
    """Make a context current; return whether the thread had another one, which it gets back by
    ``cuCtxPopCurrent``.
    """
    if _refuse is not None:
        _refuse()
    if int(driver.cuCtxGetCurrent()[1]) == context:
        return False
    (status,) = driver.cuCtxPushCurrent(context)
    if status:
        raise failure(status, "cuCtxPushCurrent")
    return True


class Current:
    """Make a device's primary context current in a ``with`` block."""

    __slots__ = ("_context", "_is_pushed")

    def __init__(self, number: int) -> None:
        self._context = _primary.get(number) or primary(number)

    def __enter__(self) -> None:
        self._is_pushed = push(self._context)

    def __exit__(self, *error: object) -> None:
        if self._is_pushed:
            driver.cuCtxPopCurrent()
