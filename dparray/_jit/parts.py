"""Parallel loops of native code: the call that shares the parts of a loop out to threads.

The threads are those of `_fastpath_pool.c`. Without the compiled module, Python's threads run the
parts.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from dparray._array import fastpath
from dparray._jit.shared_loops import sharing
from dparray._runtime.threads import share_out

#: The most parts of a loop, as in `_fastpath_pool.c`.
MAX_PARTS = 512
#: In how many parts a loop with reductions is divided: the results of the parts are combined in
#: order, so that the sum does not depend on the number of threads.
REDUCTION_PARTS = 128
#: The distance of two parts' lines in the array of lines, so that threads write other cache lines.
LINE_SPACING = 8
_PART = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), *[ctypes.c_int64] * 3
)
_SHARE_PARTS = ctypes.CFUNCTYPE(
    ctypes.c_int, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, ctypes.POINTER(ctypes.c_void_p)
)
_threads = threading.local()
#: The threads whose loop on Python's threads was interrupted.
interrupted: set[int] = set()


def _share_parts(run: int, data: int, total: int, parts: int, error: Any) -> int:
    """Do what ``share_parts`` of `_fastpath_pool.c` does, with Python's threads."""
    threads = getattr(_threads, "count", 1)
    parts = min(parts or 16 * threads, total, MAX_PARTS)
    part = _PART(run)
    failures: dict[int, tuple[int, Any]] = {}

    def call(number: int) -> None:
        own = ctypes.c_void_p()
        status = part(
            data, ctypes.byref(own), number, total * number // parts, total * (number + 1) // parts
        )
        if status:
            failures[number] = status, own.value
            raise StopIteration

    try:
        share_out(call, list(range(parts)), threads)
    except StopIteration:
        status, error[0] = failures[min(failures)]
        return status
    except KeyboardInterrupt:  # An exception cannot leave this call: see `raise_interrupt`.
        interrupted.add(threading.get_ident())
    return 0


def raise_interrupt() -> None:
    """Raise the ``KeyboardInterrupt`` that ended a loop of Python's threads."""
    if threading.get_ident() in interrupted:
        interrupted.remove(threading.get_ident())
        raise KeyboardInterrupt


def _set_threads(count: int) -> None:
    _threads.count = count


#: Sets the number of threads for the loops that the calling thread runs.
use_threads: Callable[[int], None] = (
    _set_threads if fastpath.module is None else fastpath.module.use_threads
)


_twin = _SHARE_PARTS(_share_parts)


def functions() -> dict[str, Any]:
    """Return the functions that generated code calls for parallel loops, by name."""
    if fastpath.module is not None:
        return sharing(fastpath.module.share_parts)
    return sharing(ctypes.cast(_twin, ctypes.c_void_p).value or 0)
