"""Memory of the host: anonymous maps, with huge pages where they help. USM types are alike."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from dparray._driver.host.devices import root, traits
from dparray._driver.host.queues import Event, Queue

_HUGE_PAGE = 2 << 20
#: The caller copies at most this many bytes itself.
_SHORT_COPY = 1 << 16


class Memory:
    """Bytes at an address, which live as long as the object.

    Attributes:
        nbytes: their number.
        owner: what keeps them alive.
    """

    __slots__ = ("__weakref__", "_pointer", "nbytes", "owner")

    def __init__(self, pointer: int, nbytes: int, owner: Any) -> None:
        self._pointer, self.nbytes, self.owner = pointer, nbytes, owner


def allocate(queue: Queue, usm_type: str, nbytes: int) -> Memory:
    is_huge = nbytes >= 2 * _HUGE_PAGE
    if nbytes > traits(root()).memory:
        raise MemoryError(f"{nbytes} bytes are more than this machine has")
    try:
        pages = mmap.mmap(-1, nbytes + _HUGE_PAGE if is_huge else max(nbytes, 1))
    except (OSError, OverflowError) as error:
        raise MemoryError(f"{nbytes} bytes: {error}") from error
    if is_huge and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a hint that the system may not have
            pages.madvise(mmap.MADV_HUGEPAGE)
    start = ctypes.c_char.from_buffer(pages)  # It keeps the map open.
    address = ctypes.addressof(start)
    if is_huge:
        address = -(-address // _HUGE_PAGE) * _HUGE_PAGE
    return Memory(address, nbytes, start)


def pointer(memory: Memory) -> int:
    return memory._pointer


def part(owner: Any, pointer: int, nbytes: int, queue: Queue) -> Memory:
    whole = owner
    while not isinstance(whole, Memory):
        whole = whole.memory
    start = pointer - whole._pointer
    if start < 0 or start + nbytes > whole.nbytes:
        raise ValueError(f"there is no allocation of {nbytes} bytes at {pointer:#x}")
    return Memory(pointer, nbytes, owner)


def _address(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return int(value.__array_interface__["data"][0])
    return pointer(value)


def copy(queue: Queue, target: Any, source: Any, nbytes: int, after: Sequence[Event]) -> Event:
    to, of = _address(target), _address(source)

    def work(ends: Any = (target, source)) -> None:  # Both live until then.
        ctypes.memmove(to, of, nbytes)

    return queue.submit(work, after, is_short=nbytes <= _SHORT_COPY)


def clear(queue: Queue, memory: Memory) -> None:
    ctypes.memset(memory._pointer, 0, memory.nbytes)
