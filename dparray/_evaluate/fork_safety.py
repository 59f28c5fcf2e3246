"""Forks: a child process has its parent's memory, but none of the drivers' threads.

SYCL and its drivers do not notice a fork: a child that submits work would wait forever.
So after a process has submitted work and forks, submitting work in the child raises an error.
Inherited memory does no harm, and a process that has used no device can fork freely.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

from dparray import _hooks, config, device, memory
from dparray._compiler import compile
from dparray._driver import drivers_in_use
from dparray._evaluate import background
from dparray._runtime import host_maps, launch
from dparray._runtime.queues import wait
from dparray.exceptions import ForkError
from dparray.memory import pool

_LOCKS: tuple[Any, ...] = (host_maps.lock, compile.lock, device.lock)


def _before() -> None:
    """Wait for work and host tasks to end, since these take the interpreter's lock."""
    for driver in drivers_in_use():
        for queue in driver.queues_in_use():
            wait(queue)
            driver.wait_for_kept(queue)


def _in_child() -> None:
    """Make all functions that submit work to a driver raise, so that no caller needs a check."""
    used = drivers_in_use()
    has_built = background.has_worked() or any(driver.has_loaded() for driver in used)
    background.forget_in_child()
    for lock in (*_LOCKS, *(lock for driver in used for lock in driver.locks())):
        # Like the standard library: the lock's holder may not exist in the child.
        lock._at_fork_reinit()
    has_queues = any(driver.queues_in_use() for driver in used)
    if not (has_built or has_queues or pool.holds_device_memory()):
        return
    config.host_tier = False  # Otherwise the answer would depend on an array's size.
    pool.allocate = memory.allocate = _refuse
    launch.launch_packed = None  # It reads no order of a queue whose work has ended.
    for driver in used:
        driver.forbid(_refuse)


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise ForkError(
        f"process {os.getpid()} was forked from one that had used a device, whose threads it does "
        "not have, so it cannot use devices itself; start it another way: "
        "multiprocessing.get_context('spawn') or get_context('forkserver') (as mp_context= for "
        "concurrent.futures), or fork before the first use of a device"
    )


_hooks.at_fork(before=_before, after_in_child=_in_child)
