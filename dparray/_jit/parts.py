"""Parallel loops of native code: the call that shares the parts of a loop out to threads.

The threads are those of `_fastpath_pool.c`. Without the compiled module, Python's threads run the
parts.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dparray._array import fastpath
from dparray._compiler.abi import (
    HAS_STACK,
    LAUNCH_KERNEL,
    NEGATIVE,
    NEW_MEMORY,
    NO_MEMORY,
    NO_STACK,
    NOTE_STOP,
    SHARE_PARTS,
)
from dparray._runtime.threads import share_out

#: The most parts of a loop, as in `_fastpath_pool.c`.
MAX_PARTS = 512
#: In how many parts a loop with reductions is divided: the results of the parts are combined in
#: order, so that the sum does not depend on the number of threads.
REDUCTION_PARTS = 128
_PART = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), *[ctypes.c_int64] * 3
)
_SHARE_PARTS = ctypes.CFUNCTYPE(
    ctypes.c_int, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, ctypes.POINTER(ctypes.c_void_p)
)
_threads = threading.local()
#: The threads whose loop on Python's threads was interrupted.
_interrupted: set[int] = set()


def _share_parts(run: int, data: int, total: int, parts: int, error: Any) -> int:
    """Do what ``share_parts`` of `_fastpath_pool.c` does, with Python's threads."""
    threads = getattr(_threads, "count", 1)
    parts = min(parts or 16 * threads, total, MAX_PARTS)
    part = _PART(run)
    failures: dict[int, tuple[int, Any]] = {}

    def call(number: int) -> None:
        own, before = ctypes.c_void_p(), getattr(_threads, "taken", {})
        _threads.taken = {}
        status = part(
            data, ctypes.byref(own), number, total * number // parts, total * (number + 1) // parts
        )
        _threads.taken = before
        if status:
            failures[number] = status, own.value
            raise StopIteration

    try:
        share_out(call, list(range(parts)), threads)
    except StopIteration:
        status, error[0] = failures[min(failures)]
        return status
    except KeyboardInterrupt:  # An exception cannot leave this call: see `_raise_interrupt`.
        _interrupted.add(threading.get_ident())
    return 0


def _raise_interrupt() -> None:
    """Raise the ``KeyboardInterrupt`` that ended a loop of Python's threads."""
    if threading.get_ident() in _interrupted:
        _interrupted.remove(threading.get_ident())
        raise KeyboardInterrupt


_twin = _SHARE_PARTS(_share_parts)


def _new_memory(count: int, size: int, is_zero: int, live: int, addresses: Any) -> int:
    """Do what ``new_memory`` of `_fastpath_pool.c` does."""
    if count < 0:
        return 0
    taken: dict[int, np.ndarray] = _threads.__dict__.setdefault("taken", {})
    needed = max(count, 1) * size
    for start, block in taken.items():
        is_read = any(start <= addresses[at] < start + block.size for at in range(live))
        if needed <= block.size <= 4 * needed + 4096 and not is_read:
            block[:needed] = 0
            return start
    made = np.zeros(needed, np.uint8)
    taken[made.ctypes.data] = made
    return made.ctypes.data


def _note_stop(number: int) -> None:
    """Do what ``note_stop`` of `_fastpath_pool.c` does."""
    _threads.stopped = number


def _call_function(
    address: int, kinds: bytes, arguments: Sequence[Any], results: bytes, threads: int
) -> tuple[Any, ...] | Any:
    """Call a function of :mod:`dparray._driver.host.processor` with host arrays and numbers.

    Args:
        address: of the function.
        kinds: a letter for each argument: the type of a number, ``C`` for an array in C order,
            ``S`` for one with strides, ``R`` for one that is only read.
        arguments: the arguments.
        results: for each result the number of dimensions and the letter of the type.
        threads: how many run its parallel loops.

    Returns:
        The results; the number of the exception with which the function has ended; or
        ``NotImplemented`` if an array has not the order of its letter.
    """
    _threads.count = threads
    words = b""
    for value, kind in zip(arguments, kinds.decode(), strict=True):
        if kind not in "CSR":
            words += np.array(value, kind).tobytes().ljust(8, b"\0")
            continue
        if (kind == "C" and not value.flags.c_contiguous) or value.flags.writeable != (kind != "R"):
            return NotImplemented
        numbers = (value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
        words += np.array(numbers, np.int64).tobytes()
    kept = [(ndim, chr(letter)) for ndim, letter in zip(results[::2], results[1::2], strict=True)]
    made = [np.zeros(1 + ndim, np.int64 if ndim else letter) for ndim, letter in kept]
    for each in made:
        words += np.array([each.size, 8, each.ctypes.data, each.size, 8]).tobytes()
    taken: dict[int, np.ndarray] = {}
    _threads.taken, _threads.stopped = taken, 0
    ctypes.CFUNCTYPE(None, ctypes.c_char_p)(address)(words)
    _raise_interrupt()
    if _threads.stopped == NO_MEMORY:
        raise MemoryError
    if _threads.stopped == NEGATIVE:
        raise ValueError("negative dimensions are not allowed")
    if _threads.stopped == NO_STACK:
        raise RecursionError("maximum recursion depth exceeded")
    if _threads.stopped:
        return _threads.stopped
    return tuple(
        each.item() if not ndim else _taken_array(each, letter, taken)
        for (ndim, letter), each in zip(kept, made, strict=True)
    )


def _taken_array(words: np.ndarray, letter: str, taken: dict[int, np.ndarray]) -> Any:
    """Return the array of a result; its address and shape if it is an argument."""
    address, *shape = words.tolist()
    if address not in taken:
        return (address, *shape)
    return np.ndarray(tuple(shape), letter, taken[address])


_memory_twin = ctypes.CFUNCTYPE(
    ctypes.c_void_p,
    *[ctypes.c_int64] * 2,
    *[ctypes.c_int32] * 2,
    ctypes.POINTER(ctypes.c_int64),
)(_new_memory)
_stop_twin = ctypes.CFUNCTYPE(None, ctypes.c_int32)(_note_stop)
#: Only a C function knows where the stack ends.
_stack_twin = ctypes.CFUNCTYPE(ctypes.c_int32)(lambda: 1)
#: Calls a native function.
call_function: Callable[[int, bytes, Sequence[Any], bytes, int], Any] = (
    _call_function if fastpath.module is None else fastpath.module.call_function
)


def _addresses() -> dict[str, int]:
    if fastpath.module is not None:
        found = fastpath.module
        return {
            SHARE_PARTS: int(found.share_parts),
            NEW_MEMORY: int(found.new_memory),
            NOTE_STOP: int(found.note_stop),
            LAUNCH_KERNEL: int(found.launch_kernel),
            HAS_STACK: int(found.has_stack),
        }
    twins = {SHARE_PARTS: _twin, NEW_MEMORY: _memory_twin, NOTE_STOP: _stop_twin}
    twins[HAS_STACK] = _stack_twin
    return {name: ctypes.cast(each, ctypes.c_void_p).value or 0 for name, each in twins.items()}


#: Whether native functions can launch kernels of the host.
has_launches = fastpath.module is not None
#: The addresses of the C functions that native functions call, by name.
addresses = _addresses()
