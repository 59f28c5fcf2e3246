"""Share the units of a launch out to threads: the pool of the compiled module, or Python's threads.

State: the pool.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from itertools import count
from typing import Any

#: The signature of the parts of a parallel loop: data, error, number, first and last unit.
PART = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3)
_SHARE = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
_PARTS_PER_THREAD = 16
_share: Any = None


def use_pool(address: int) -> None:
    """Take the pool of the compiled module, by the address of its function ``share_units``."""
    global _share
    _share = _SHARE(address)


def run(part: int, data: Any, units: int, threads: int) -> None:
    """Run the units of a launch.

    Args:
        part: the address of a function with the signature ``PART``.
        data: its first argument.
        units: their number.
        threads: the threads that share them.
    """
    if threads == 1 or units == 1:
        PART(part)(ctypes.addressof(data), None, 0, 0, units)
    elif _share is not None:
        _share(part, ctypes.addressof(data), units, threads)
    else:
        _run_on_python_threads(PART(part), ctypes.addressof(data), units, threads)


def _run_on_python_threads(part: Any, data: int, units: int, workers: int) -> None:
    parts = min(units, workers * _PARTS_PER_THREAD)
    numbers = count()

    def serve() -> None:
        while (number := next(numbers)) < parts:
            part(data, None, number, units * number // parts, units * (number + 1) // parts)

    others = [_executor().submit(serve) for _ in range(workers - 1)]
    serve()
    for each in others:
        each.result()


@cache
def _executor() -> Any:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="dparray units")
