"""USM memory: the pool every array of dparray is allocated from.

The first touch of fresh USM costs up to a hundred times the second, so memory that an array gave
back is kept and handed out again. The policy:

* **Who shares.** There is one pool for each (context, device, USM type), with free lists for each
  queue. A block that comes back is reused by later work of *its* queue with no wait, because all
  work on a queue is ordered as submitted (``dpctl.utils.SequentialOrderManager``).
* **Sizes.** A request is rounded up to a size class: multiples of 64 bytes, eight classes for each
  power of two, so above 512 bytes less than an eighth is wasted.
* **Splitting.** A block of the same size is taken first. Otherwise the smallest free block that
  fits is cut, unless it is more than eight times as large, where a small array would pin a large
  allocation; small blocks are cut from slabs of 2 MiB. Free neighbours are joined again when a
  request needs it.
* **Limits.** What the pools of a device hold, in use and cached, stays below the limit, the
  device's memory and the memory the host has left. Only when that would be exceeded are cached
  blocks of other queues taken over or given back to the driver, after their queue's work is
  complete. If that does not help either: :class:`dparray.exceptions.MemoryError`; nothing is lost.

The pool knows blocks and queues, never shapes or dtypes.

Example:
    >>> import dparray as dp
    >>> x = dp.zeros(1_000_000)
    >>> dp.memory.stats().in_use >= x.nbytes
    True
    >>> previous = dp.memory.set_limit(2 << 30)
    >>> del x
    >>> freed = dp.memory.release()
    >>> dp.memory.set_limit(previous)
    2147483648
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import operator
import os
import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from threading import RLock
from typing import Any, ClassVar, Protocol

import dpctl
import dpctl.memory
import numpy as np

from dparray import _hooks
from dparray._runtime.in_order import wait_for_host_tasks
from dparray.device import Device, describe_device, describe_queue, supports_usm, wait
from dparray.exceptions import (
    DeviceError,
    MemoryError,
    ShapeError,
    UnsupportedDeviceError,
    UsmTypeError,
)

__all__ = [
    "Block",
    "MemoryStats",
    "PoolStats",
    "allocate",
    "release",
    "reset_peak",
    "set_limit",
    "stats",
]

ALIGNMENT = 64  # a cache line, and the widest vector register
SLAB = 2 << 20  # what small blocks are cut from; also the size of a huge page
LARGE = 1 << 20  # from here on the host is asked what it has left
LOOK_AGAIN = 32  # segments somebody else held that are looked at again by one request
MAX_RATIO = 8  # a free block is cut for requests down to this fraction of it
MAX_FREE_LISTS = 32  # (queue, USM type) pairs remembered before idle ones are forgotten

_USM_TYPES = ("device", "shared", "host")


class Driver(Protocol):
    """What the pool needs of SYCL; the tests put a simulated one in its place."""

    def queue_of(self, device: Any) -> Any:
        """A queue of whatever was given as a device."""

    def place(self, queue: Any) -> Hashable:
        """The context and the device of ``queue``: what shares a pool."""

    def describe(self, queue: Any) -> tuple[str, str]:
        """The device and the queue, for people."""

    def supports(self, queue: Any, usm_type: str) -> bool:
        """Whether the device has USM of that type."""

    def capacity(self, queue: Any) -> tuple[int, int | None]:
        """Largest single allocation, and all there is (``None``: the driver will say)."""

    def available(self, queue: Any, usm_type: str, held: int) -> int | None:
        """Bytes the host has left, beyond ``held``, if such memory comes out of the host's."""

    def allocate(self, queue: Any, usm_type: str, nbytes: int) -> Any:
        """Fresh memory, freed when the object dies; raises ``builtins.MemoryError``."""

    def pointer(self, memory: Any) -> int:
        """The address of the first byte."""

    def part(self, memory: Any, pointer: int, nbytes: int, queue: Any) -> Any:
        """A part of ``memory`` as an object of its own that keeps the whole alive."""

    def wait(self, queue: Any) -> None:
        """Wait for all work submitted to ``queue``."""


# --- blocks ---------------------------------------------------------------------------------------


def bytes_at(pointer: int, nbytes: int) -> np.ndarray:
    """A NumPy array over bytes at an address, which somebody else keeps alive."""
    return np.frombuffer(memoryview((ctypes.c_char * nbytes).from_address(pointer)), np.uint8)


class Block:
    """Memory on loan from the pool; it goes back when this object dies.

    Submitted work may still use the block then: it is only handed out again to the same queue,
    whose later work comes after. Whoever uses it in work on *another* queue, as copies do,
    adds that event to ``SequentialOrderManager[block.queue]``; whoever writes it from the host
    waits for the queue first. ``memory`` may outlive the block: the pool notices and waits until
    nobody else holds it.

    Attributes:
        memory: ``dpctl.memory`` object whose first byte is the block's.
        pointer: address of the first byte, a multiple of 64.
        nbytes: size, at least what was asked for.
        queue, usm_type: where it was allocated.
        readers: notes of whoever defers work on the block; the pool never looks at it.

    Example:
        >>> import dparray as dp
        >>> x = dp.zeros(100, usm_type="shared")
        >>> x.block.nbytes >= x.nbytes, x.block.usm_type
        (True, 'shared')
    """

    __slots__ = ("_returned", "_segment", "memory", "nbytes", "pointer", "readers")

    @property
    def host_bytes(self) -> np.ndarray:
        """The bytes at their own address, for memory that the host may touch."""
        segment = self._segment
        if segment.host_bytes is None:
            segment.host_bytes = bytes_at(segment.pointer, segment.nbytes)
        return segment.host_bytes

    def __init__(self, segment: _Segment, returned: deque[_Segment]) -> None:
        self.readers: Any = None
        self._returned = returned
        self._segment = segment
        self.memory = segment.memory
        self.nbytes = segment.nbytes
        self.pointer = segment.pointer

    @property
    def queue(self) -> Any:
        """The queue that the block belongs to."""
        return self._segment.arena.queue

    @property
    def usm_type(self) -> str:
        """``"device"``, ``"shared"`` or ``"host"``."""
        return self._segment.arena.pool.usm_type

    def __repr__(self) -> str:
        return f"Block({self.nbytes} bytes of {self.usm_type} USM at {self.pointer:#x})"

    def __del__(self) -> None:
        # The collector may run this anywhere, inside the pool too: nothing here takes a lock, and
        # no global is read, so it also works while the interpreter shuts down.
        self._returned.append(self._segment)


class _Segment:
    """A part of a slab (one allocation of the driver), in use or free."""

    __slots__ = (
        "arena", "awaited", "host_bytes", "memory", "nbytes", "next", "pointer", "slab",
        "slab_nbytes",
    )  # fmt: skip

    def __init__(
        self, arena: _Arena, slab: Any, slab_nbytes: int, pointer: int, nbytes: int
    ) -> None:
        self.arena = arena
        self.slab = slab
        self.slab_nbytes = slab_nbytes
        self.pointer = pointer
        self.nbytes = nbytes
        self.memory: Any = None  # made when it is first handed out
        self.host_bytes: Any = None  # made when the host first looks
        self.next: _Segment | None = None  # what follows in the slab
        self.awaited = False

    @property
    def is_whole(self) -> bool:
        """Whether it is all of its slab, so that the slab can be given back."""
        return self.nbytes == self.slab_nbytes

    def cut(self, nbytes: int) -> _Segment:
        """Keep the first ``nbytes``; returns the rest."""
        rest = _Segment(
            self.arena, self.slab, self.slab_nbytes, self.pointer + nbytes, self.nbytes - nbytes
        )
        rest.next, self.next = self.next, rest
        self.nbytes = nbytes
        self.memory = self.host_bytes = None
        return rest

    def absorb_next(self) -> None:
        """Join with the next segment, which is nobody's from now on."""
        other = self.next
        assert other is not None
        self.nbytes += other.nbytes
        self.next = other.next
        self.memory = self.host_bytes = None


def _references_of_the_pool() -> int:
    segment = _Segment.__new__(_Segment)
    segment.memory = object()
    return sys.getrefcount(segment.memory)


_POOL_REFERENCES = _references_of_the_pool()


# --- free lists and pools -------------------------------------------------------------------------


class _Arena:
    """The free lists of one queue in one pool, by size.

    Invariant: ``held`` is the sum of the slabs; segments not in ``free`` are in use. The dict is
    never replaced, and a list only removed from it while empty: see :class:`Pools` for why.
    """

    __slots__ = ("free", "held", "pool", "queue")

    def __init__(self, pool: _Pool, queue: Any) -> None:
        self.pool = pool
        self.queue = queue
        self.held = 0
        self.free: dict[int, list[_Segment]] = {}

    @property
    def cached(self) -> int:
        return sum(segment.nbytes for segment in self.free_segments())

    def free_segments(self) -> list[_Segment]:
        return [segment for segments in list(self.free.values()) for segment in segments]

    def put(self, segment: _Segment) -> None:
        """Make a segment free."""
        segments = self.free.get(segment.nbytes)
        if segments is None:
            segments = self.free.setdefault(segment.nbytes, [])
        segments.append(segment)

    def take(self, nbytes: int, largest: int) -> _Segment | None:
        """The closest fit among the free segments up to ``largest``, cut to ``nbytes``."""
        segment = self._closest(nbytes, largest)
        if segment is None and self._join(nbytes, largest):
            segment = self._closest(nbytes, largest)
        if segment is not None and segment.nbytes > nbytes:
            self.put(segment.cut(nbytes))
        return segment

    def _closest(self, nbytes: int, largest: int) -> _Segment | None:
        for size in sorted(size for size in list(self.free) if nbytes <= size <= largest):
            segments = self.free.get(size)
            if segments:
                return segments.pop()
        return None

    def _join(self, at_least: int, at_most: int) -> bool:
        """Join free neighbours in slabs of such sizes; returns whether there were any."""
        taken = []
        for segments in list(self.free.values()):
            while segments:
                taken.append(segments.pop())
        for size in list(self.free):
            if not self.free.get(size, True):
                del self.free[size]
        free = set(taken)
        joined = False
        for segment in taken:
            if segment in free and at_least <= segment.slab_nbytes <= at_most:
                while segment.next in free:
                    free.remove(segment.next)
                    segment.absorb_next()
                    joined = True
        for segment in reversed(taken):
            if segment in free:
                self.put(segment)
        return joined

    def whole_slabs(self) -> list[_Segment]:
        """The slabs of which nothing is in use, as one free segment each."""
        self._join(0, sys.maxsize)
        return [segment for segment in self.free_segments() if segment.is_whole]

    def give(self, segment: _Segment) -> None:
        """Add a slab, as one free segment."""
        segment.arena = self
        self.held += segment.slab_nbytes
        self.put(segment)

    def remove(self, segment: _Segment) -> bool:
        """Remove a slab if it is one free segment still; returns whether it was."""
        segments = self.free.get(segment.slab_nbytes)
        if segments is None or not segment.is_whole or segment not in segments:
            return False
        segments.remove(segment)
        self.held -= segment.slab_nbytes
        segment.memory = None
        return True


class _Pool:
    """Memory of one USM type on one (context, device).

    Invariant: ``in_use`` is the sum of the blocks handed out and not yet seen to be back.
    """

    __slots__ = (
        "arenas", "hits", "in_use", "lingering", "misses", "peak", "place", "returned", "usm_type"
    )  # fmt: skip

    def __init__(self, place: _Place, usm_type: str) -> None:
        self.place = place
        self.usm_type = usm_type
        self.arenas: dict[Any, _Arena] = {}
        self.in_use = 0
        self.peak = 0
        self.hits = 0
        self.misses = 0
        self.returned: deque[_Segment] = deque()  # by Block.__del__, without the lock
        self.lingering: deque[_Segment] = deque()  # back, but the memory object is still held

    @property
    def held(self) -> int:
        return sum(arena.held for arena in list(self.arenas.values()))

    def collect(self) -> None:
        """Put the segments that came back on their free lists."""
        returned = self.returned
        while returned:
            segment = returned.popleft()
            if sys.getrefcount(segment.memory) > _POOL_REFERENCES:
                segment.awaited = False
                self.lingering.append(segment)
            else:
                self.in_use -= segment.nbytes
                segment.arena.put(segment)

    def settle(self, most: int = sys.maxsize) -> None:
        """Like :meth:`collect`, and look again at the ``most`` that have lingered longest."""
        self.collect()
        for _ in range(min(most, len(self.lingering))):
            if not self.lingering:
                break
            segment = self.lingering.popleft()
            if sys.getrefcount(segment.memory) > _POOL_REFERENCES:
                self.lingering.append(segment)
            else:
                self.in_use -= segment.nbytes
                segment.arena.put(segment)


class _Place:
    """One (context, device): what a limit holds for."""

    __slots__ = ("largest", "limit", "name", "pools", "total")

    def __init__(self, name: str, largest: int, total: int | None) -> None:
        self.name = name
        self.largest = largest
        self.total = total
        self.limit: int | None = None
        self.pools: dict[str, _Pool] = {}

    @property
    def held(self) -> int:
        return sum(pool.held for pool in list(self.pools.values()))

    @property
    def in_use(self) -> int:
        return sum(pool.in_use for pool in list(self.pools.values()))

    def arenas(self) -> list[_Arena]:
        return [arena for pool in list(self.pools.values()) for arena in list(pool.arenas.values())]


# --- statistics -----------------------------------------------------------------------------------


def format_bytes(nbytes: int | None) -> str:
    """``1536`` as ``1.5 KiB``; ``None`` as ``none``."""
    if nbytes is None:
        return "none"
    size = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{nbytes} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


@dataclass(frozen=True)
class PoolStats:
    """Counters of one pool: one USM type on one device.

    Attributes:
        device: the device, and which sub-device.
        usm_type: ``"device"``, ``"shared"`` or ``"host"``.
        queues: how many queues have blocks of it.
        in_use: bytes in blocks that arrays hold.
        cached: bytes that are free to be handed out again.
        peak: the most that ``in_use`` has been since ``reset_peak()``.
        hits: allocations served from cached memory.
        misses: allocations that had to ask the driver.

    Example:
        >>> import dparray as dp
        >>> x = dp.empty(1000)
        >>> any(pool.in_use >= x.nbytes for pool in dp.memory.stats().pools)
        True
    """

    device: str
    usm_type: str
    queues: int
    in_use: int
    cached: int
    peak: int
    hits: int
    misses: int


@dataclass(frozen=True)
class MemoryStats:
    """Counters of the pools that :func:`stats` was asked for, added up.

    Attributes:
        in_use: bytes in blocks that arrays hold.
        cached: bytes that are free to be handed out again.
        peak: the most that ``in_use`` has been since ``reset_peak()``; over several pools, the
            sum of their peaks.
        hits: allocations served from cached memory.
        misses: allocations that had to ask the driver.
        limit: the limit of the device in bytes, or the general one; ``None`` for none.
        pools: the counters of each pool.

    Example:
        >>> import dparray as dp
        >>> stats = dp.memory.stats()
        >>> stats.in_use == sum(pool.in_use for pool in stats.pools)
        True
    """

    in_use: int
    cached: int
    peak: int
    hits: int
    misses: int
    limit: int | None
    pools: tuple[PoolStats, ...]

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("pool", "in use", "cached", "peak", "hits", "misses")]
        rows += [(f"{pool.device}, {pool.usm_type}", *_cells(pool)) for pool in self.pools]
        if len(self.pools) != 1:
            rows.append(("total", *_cells(self)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                (cell.rjust if column else cell.ljust)(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        return "\n".join([*lines, f"limit: {format_bytes(self.limit)}"])


def _cells(counters: PoolStats | MemoryStats) -> tuple[str, ...]:
    return (
        format_bytes(counters.in_use),
        format_bytes(counters.cached),
        format_bytes(counters.peak),
        str(counters.hits),
        str(counters.misses),
    )


# --- all pools ------------------------------------------------------------------------------------


def _checked_size(nbytes: Any, function: str) -> int:
    try:
        size = operator.index(nbytes)
    except TypeError:
        raise ShapeError(
            f"{function}: a number of bytes is an integer, not {nbytes!r} of type "
            f"{type(nbytes).__name__}"
        ) from None
    if size < 0:
        raise ShapeError(f"{function}: a number of bytes is not negative, as {size} is")
    return size


class Pools:
    """All pools of a process over one driver.

    Thread-safe: one lock guards all state, also while a queue is waited for under pressure.
    ``Block.__del__`` takes no lock. The lock is re-entrant because the collector may run, whenever
    an object is made, a finaliser that allocates. So what a method works on is taken off its list
    first, and what was seen before an object was made is looked at again.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._lock = RLock()
        self._limit: int | None = None
        self._places: dict[Hashable, _Place] = {}
        self._arenas: dict[tuple[Any, str], _Arena] = {}

    def before_fork(self) -> None:
        """Make the state one that a child can inherit: whole, and with no work submitted.

        The threads that would complete that work do not exist in a child, which would wait for
        ever, or crash, when it ends and dpctl waits for it.
        """
        self._lock.acquire()
        for queue in {arena.queue for arena in self._arenas.values()}:
            self._driver.wait(queue)

    def after_fork(self) -> None:
        """Go on, in the parent and in the child."""
        self._lock.release()

    def allocate(self, queue: Any, usm_type: str, nbytes: int) -> Block:
        """Memory for later work on ``queue``; its content is undefined.

        Args:
            queue: the ``dpctl.SyclQueue`` whose work will use it.
            usm_type: ``"device"``, ``"shared"`` or ``"host"``.
            nbytes: how much; zero gives a block of the smallest size.

        Raises:
            MemoryError: there is not so much memory, on the device or below the limit.
            UnsupportedDeviceError: the device has no USM of that type.
            UsmTypeError: there is no such USM type.
            ShapeError: ``nbytes`` is no integer or negative.

        Example:
            >>> import dparray as dp
            >>> block = dp.memory.allocate(dp.default_device().sycl_queue, "device", 1000)
            >>> block.nbytes
            1024
        """
        if nbytes.__class__ is not int or nbytes < 0:
            nbytes = _checked_size(nbytes, "allocate")
        # Size classes: eight for each power of two, and multiples of the alignment.
        if nbytes > 512:
            shift = (nbytes - 1).bit_length() - 4
            size = (((nbytes - 1) >> shift) + 1) << shift
        else:
            size = (nbytes + 63) & -64 or 64
        with self._lock:
            arena = self._arenas.get((queue, usm_type))
            if arena is None:
                arena = self._open(queue, usm_type)
            pool = arena.pool
            if pool.returned:
                pool.collect()
            misses = pool.misses
            segments = arena.free.get(size)
            segment = segments.pop() if segments else self._find(arena, size, nbytes)
            size = segment.nbytes
            if segment.memory is None:
                segment.memory = self._driver.part(segment.slab, segment.pointer, size, queue)
            pool.in_use += size
            if pool.in_use > pool.peak:
                pool.peak = pool.in_use
            hit = pool.misses == misses
            if hit:
                pool.hits += 1
        if _hooks.subscribers:
            _hooks.emit("allocate", queue=queue, usm_type=usm_type, nbytes=size, hit=hit)
        return Block(segment, pool.returned)

    def stats(self, device: Any = None) -> MemoryStats:
        """What the pools hold, and how often they could serve from it.

        Args:
            device: whatever :class:`dparray.Device` takes; ``None`` for all devices.

        Example:
            >>> import dparray as dp
            >>> x = dp.empty(1000)
            >>> dp.memory.stats(x.device).in_use >= x.nbytes
            True
        """
        with self._lock:
            rows = []
            for place in self._chosen(device):
                for pool in list(place.pools.values()):
                    pool.settle()
                    rows.append(
                        PoolStats(
                            device=place.name,
                            usm_type=pool.usm_type,
                            queues=len(pool.arenas),
                            in_use=pool.in_use,
                            cached=pool.held - pool.in_use,
                            peak=pool.peak,
                            hits=pool.hits,
                            misses=pool.misses,
                        )
                    )
            own = None if device is None else self._place(device).limit
            return MemoryStats(
                in_use=sum(row.in_use for row in rows),
                cached=sum(row.cached for row in rows),
                peak=sum(row.peak for row in rows),
                hits=sum(row.hits for row in rows),
                misses=sum(row.misses for row in rows),
                limit=self._limit if own is None else own,
                pools=tuple(rows),
            )

    def set_limit(self, nbytes: int | None, device: Any = None) -> int | None:
        """Bound what the pools of one device may hold, in use and cached, all USM types together.

        Cached memory above the new limit is given back at once; memory in use never is.

        Args:
            nbytes: the limit; ``None`` takes it away.
            device: whatever :class:`dparray.Device` takes, for a limit of its own; ``None`` for
                the general limit, which holds for each device that has none of its own.

        Returns:
            The previous limit.

        Raises:
            ShapeError: ``nbytes`` is no integer or negative.

        Example:
            >>> import dparray as dp
            >>> previous = dp.memory.set_limit(4 << 30)
            >>> dp.memory.set_limit(previous) == 4 << 30
            True
        """
        if nbytes is not None:
            nbytes = _checked_size(nbytes, "set_limit")
        with self._lock:
            if device is None:
                previous, self._limit = self._limit, nbytes
            else:
                place = self._place(device)
                previous, place.limit = place.limit, nbytes
            for place in self._chosen(device):
                limit = self._limit_of(place)
                if limit is not None and place.held > limit:
                    self._give_back(place.arenas(), place.held - limit)
        return previous

    def release(self, device: Any = None) -> int:
        """Give cached memory back to the driver, after the work on its queues is complete.

        Memory that arrays use stays. Returns the bytes that were given back.

        Args:
            device: whatever :class:`dparray.Device` takes; ``None`` for all devices.

        Example:
            >>> import dparray as dp
            >>> x = dp.zeros(1_000_000)
            >>> del x
            >>> dp.memory.release() > 0
            True
        """
        with self._lock:
            arenas = [arena for place in self._chosen(device) for arena in place.arenas()]
            return self._give_back(arenas)

    def reset_peak(self, device: Any = None) -> None:
        """Begin to measure the peak anew, from what is in use now.

        Args:
            device: whatever :class:`dparray.Device` takes; ``None`` for all devices.

        Example:
            >>> import dparray as dp
            >>> dp.memory.reset_peak()
            >>> stats = dp.memory.stats()
            >>> stats.peak == stats.in_use
            True
        """
        with self._lock:
            for place in self._chosen(device):
                for pool in list(place.pools.values()):
                    pool.settle()
                    pool.peak = pool.in_use

    # What follows expects the lock to be held.

    def _place(self, device: Any) -> _Place:
        return self._place_of(self._driver.queue_of(device))

    def _place_of(self, queue: Any) -> _Place:
        key = self._driver.place(queue)
        place = self._places.get(key)
        if place is None:
            name, _ = self._driver.describe(queue)
            place = self._places.setdefault(key, _Place(name, *self._driver.capacity(queue)))
        return place

    def _chosen(self, device: Any) -> list[_Place]:
        return list(self._places.values()) if device is None else [self._place(device)]

    def _limit_of(self, place: _Place) -> int | None:
        return self._limit if place.limit is None else place.limit

    def _open(self, queue: Any, usm_type: str) -> _Arena:
        """Free lists for a queue that had none."""
        if usm_type not in _USM_TYPES:
            raise UsmTypeError(
                f"allocate: {usm_type!r} is no USM type; there are 'device', 'shared' and 'host'"
            )
        place = self._place_of(queue)
        if not self._driver.supports(queue, usm_type):
            raise UnsupportedDeviceError(
                f"allocate: {place.name} has no {usm_type} USM (aspect "
                f"usm_{usm_type}_allocations); `dp.Device(...).usm_types` says what it has"
            )
        if len(self._arenas) >= MAX_FREE_LISTS:
            self._forget_idle()
            self._places.setdefault(self._driver.place(queue), place)
        pool = place.pools.setdefault(usm_type, _Pool(place, usm_type))
        arena = pool.arenas.setdefault(queue, _Arena(pool, queue))
        return self._arenas.setdefault((queue, usm_type), arena)

    def _forget_idle(self) -> None:
        """Forget queues of which nothing is in use, so that dead ones do not add up.

        A queue cannot be watched dying: dpctl's order manager keeps every queue alive.
        """
        for arena in list(self._arenas.values()):
            arena.pool.settle()
            if arena.cached == arena.held:
                self._give_back([arena])
            if not arena.held:
                self._arenas.pop((arena.queue, arena.pool.usm_type), None)
                arena.pool.arenas.pop(arena.queue, None)
        for key in list(self._places):
            place = self._places.get(key)
            if place is not None and place.limit is None and not place.arenas():
                self._places.pop(key, None)

    def _find(self, arena: _Arena, size: int, nbytes: int) -> _Segment:
        """A segment where no free block has the very size."""
        pool = arena.pool
        pool.settle(most=LOOK_AGAIN)
        largest = max(MAX_RATIO * size, SLAB)
        segment = arena.take(size, largest)
        if segment is None:
            # Work that holds memory objects, as host tasks of dpnp.tensor do, ends sooner than
            # fresh memory is touched.
            of_use = 0 if size * MAX_RATIO <= SLAB else size
            lingering = [s for s in list(pool.lingering) if s.arena is arena and s.nbytes >= of_use]
            if self._await_lingering(lingering):
                segment = arena.take(size, largest)
        if segment is None:
            segment = self._fresh(arena, size)
        if segment is None:
            # A size class may reach above the limit or the device's end where the request does not.
            exact = -(-nbytes // ALIGNMENT) * ALIGNMENT or ALIGNMENT
            segment = self._under_pressure(arena, size) or self._under_pressure(arena, exact)
            if segment is None and exact <= pool.place.largest and gc.collect():
                # Arrays in reference cycles were in use until now.
                segment = self._under_pressure(arena, exact)
            if segment is None:
                raise self._refusal(arena, nbytes, exact)
        return segment

    def _await_lingering(self, segments: Iterable[_Segment]) -> bool:
        """Wait for the work that may hold their memory objects; returns whether there was any.

        Each is waited for once: what is still held then, somebody keeps.
        """
        waiting = [segment for segment in segments if not segment.awaited]
        for arena in {segment.arena for segment in waiting}:
            self._driver.wait(arena.queue)
        for segment in waiting:
            segment.awaited = True
        for pool in {segment.arena.pool for segment in waiting}:
            pool.settle()
        return bool(waiting)

    def _fresh(self, arena: _Arena, size: int) -> _Segment | None:
        """A segment of a new slab, unless there is no room for it or the driver refuses."""
        for slab_nbytes in (SLAB, size) if size * MAX_RATIO <= SLAB else (size,):
            if self._obstacle(arena, slab_nbytes) is not None:
                continue
            try:
                slab = self._driver.allocate(arena.queue, arena.pool.usm_type, slab_nbytes)
            except builtins.MemoryError:
                continue
            arena.pool.misses += 1
            pointer = self._driver.pointer(slab)
            arena.give(_Segment(arena, slab, slab_nbytes, pointer, slab_nbytes))
            return arena.take(size, slab_nbytes)
        return None

    def _ceiling(self, place: _Place) -> int | None:
        """The most the place may hold."""
        known = [bound for bound in (self._limit_of(place), place.total) if bound is not None]
        return min(known) if known else None

    def _obstacle(self, arena: _Arena, nbytes: int) -> str | None:
        """Why the driver must not be asked for so much, or ``None``.

        It would not refuse by itself: the host promises memory that it does not have, and kills
        the process that touches it.
        """
        place = arena.pool.place
        if nbytes > place.largest:
            return f"the largest single allocation of the device is {format_bytes(place.largest)}"
        limit = self._limit_of(place)
        if limit is not None and place.held + nbytes > limit:
            return f"the limit for this device is {format_bytes(limit)}"
        if place.total is not None and place.held + nbytes > place.total:
            return f"the device has {format_bytes(place.total)}"
        if nbytes >= LARGE:
            held = sum(other.held for other in list(self._places.values()))
            left = self._driver.available(arena.queue, arena.pool.usm_type, held)
            if left is not None and nbytes > left:
                return f"the host has {format_bytes(left)} left"
        return None

    def _under_pressure(self, arena: _Arena, size: int) -> _Segment | None:
        """A segment by giving up cached memory, which is kept where that cannot help."""
        place = arena.pool.place
        if size > place.largest:
            return None
        for pool in list(place.pools.values()):
            pool.settle()
            self._await_lingering(list(pool.lingering))
        segment = arena.take(size, sys.maxsize) or self._take_over(arena, size)
        if segment is None:
            ceiling = self._ceiling(place)
            if ceiling is not None and place.in_use + size > ceiling:
                return None
            missing = 0 if ceiling is None else place.held + size - ceiling
            # With room enough it was the driver or the host that refused: give back all.
            self._give_back(place.arenas(), missing if missing > 0 else None)
            segment = self._fresh(arena, size)
        return segment

    def _take_over(self, arena: _Arena, size: int) -> _Segment | None:
        """A segment cut from a free slab of another queue of the pool, once its work is done."""
        for other in list(arena.pool.arenas.values()):
            if other is arena:
                continue
            slabs = [slab for slab in other.whole_slabs() if slab.nbytes >= size]
            slab = min(slabs, key=lambda segment: segment.nbytes, default=None)
            if slab is not None and other.remove(slab):
                self._driver.wait(other.queue)
                arena.give(slab)
                return arena.take(size, sys.maxsize)
        return None

    def _give_back(self, arenas: Iterable[_Arena], at_least: int | None = None) -> int:
        """Free slabs of which nothing is in use; all of them, or until ``at_least`` bytes."""
        arenas = list(arenas)
        for pool in {arena.pool for arena in arenas}:
            pool.settle()
            self._await_lingering(list(pool.lingering))
        slabs = [slab for arena in arenas for slab in arena.whole_slabs()]
        slabs.sort(key=lambda segment: segment.nbytes)
        complete = set()
        freed = 0
        while slabs and (at_least is None or freed < at_least):
            missing = slabs[-1].nbytes if at_least is None else at_least - freed
            # The smallest that is enough, else the largest.
            slab = slabs.pop(
                min(bisect_left(slabs, missing, key=lambda s: s.nbytes), len(slabs) - 1)
            )
            arena = slab.arena
            if not arena.remove(slab):
                continue
            if arena not in complete:
                self._driver.wait(arena.queue)
                complete.add(arena)
            slab.slab = None
            freed += slab.nbytes
        return freed

    def _refusal(self, arena: _Arena, nbytes: int, size: int) -> MemoryError:
        place = arena.pool.place
        _, queue_name = self._driver.describe(arena.queue)
        limit = self._limit_of(place)
        in_use, cached = place.in_use, place.held - place.in_use
        reason = self._obstacle(arena, size) or "the driver refused it"
        remedy = "`del` arrays that are not needed and call `dp.memory.release()`, "
        if limit is not None:
            remedy += "raise the limit with `dp.memory.set_limit(...)`, "
        return MemoryError(
            f"allocate: {format_bytes(nbytes)} of {arena.pool.usm_type} USM on {queue_name} cannot "
            f"be had: {reason} ({format_bytes(in_use)} in use, {format_bytes(cached)} cached, "
            f"limit {format_bytes(limit)}); {remedy}or work on smaller arrays",
            requested=nbytes,
            in_use=in_use,
            cached=cached,
            limit=limit,
            device=place.name,
        )


# --- SYCL -----------------------------------------------------------------------------------------

_MADV_HUGEPAGE = 14
_madvise: Any = ctypes.CDLL(None).madvise if sys.platform == "linux" else None
if _madvise is not None:
    _madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class _Part:
    """A part of an allocation as ``__sycl_usm_array_interface__``; keeps the whole alive."""

    __slots__ = ("__sycl_usm_array_interface__", "whole")

    def __init__(self, whole: Any, pointer: int, nbytes: int, queue: dpctl.SyclQueue) -> None:
        self.whole = whole
        self.__sycl_usm_array_interface__ = {
            "data": (pointer, False),
            "shape": (nbytes,),
            "strides": None,
            "typestr": "|u1",
            "version": 1,
            "syclobj": queue,
        }


class SyclDriver:
    """USM through dpctl."""

    _classes: ClassVar[dict[str, Any]] = {
        "device": dpctl.memory.MemoryUSMDevice,
        "shared": dpctl.memory.MemoryUSMShared,
        "host": dpctl.memory.MemoryUSMHost,
    }

    def queue_of(self, device: Any) -> dpctl.SyclQueue:
        return Device(device).sycl_queue

    def place(self, queue: dpctl.SyclQueue) -> Hashable:
        if not isinstance(queue, dpctl.SyclQueue):
            raise DeviceError(
                f"allocate: {queue!r} is no dpctl.SyclQueue; `dp.Device(...).sycl_queue` is one"
            )
        return queue.sycl_context, queue.sycl_device

    def describe(self, queue: dpctl.SyclQueue) -> tuple[str, str]:
        return describe_device(queue.sycl_device), describe_queue(queue)

    def supports(self, queue: dpctl.SyclQueue, usm_type: str) -> bool:
        return supports_usm(queue.sycl_device, usm_type)

    def capacity(self, queue: dpctl.SyclQueue) -> tuple[int, int | None]:
        device = queue.sycl_device
        return device.max_mem_alloc_size, device.global_mem_size if device.is_cpu else None

    def available(self, queue: dpctl.SyclQueue, usm_type: str, held: int) -> int | None:
        if queue.sycl_device.is_cpu or usm_type == "host":
            return _host_memory_left(held)
        return None

    def allocate(self, queue: dpctl.SyclQueue, usm_type: str, nbytes: int) -> Any:
        is_huge = nbytes >= 2 * SLAB
        memory = self._classes[usm_type](nbytes, alignment=SLAB if is_huge else 4096, queue=queue)
        if is_huge and _madvise is not None and queue.sycl_device.is_cpu:
            # Huge pages make the first touch several times faster. It is advice: nothing is lost
            # where the kernel does not take it.
            _madvise(memory._pointer, nbytes, _MADV_HUGEPAGE)
        return memory

    def pointer(self, memory: Any) -> int:
        return int(memory._pointer)

    def part(self, memory: Any, pointer: int, nbytes: int, queue: dpctl.SyclQueue) -> Any:
        return dpctl.memory.as_usm_memory(_Part(memory, pointer, nbytes, queue))

    def wait(self, queue: dpctl.SyclQueue) -> None:
        # The order manager knows work on other queues that uses blocks of this one, the queue
        # knows work that was submitted past the order manager.
        wait(queue)
        wait_for_host_tasks(queue)
        queue.wait()


def _host_memory_left(held: int) -> int | None:
    """Bytes that can be touched without swapping or being killed; ``None`` if unknown.

    Of the ``held`` bytes that were allocated before, those not yet touched still count as
    available for the kernel, not for us. A sixteenth is left to the rest of the machine.
    """
    try:
        left = _first_number("/proc/meminfo", "MemAvailable:") * 1024
        page = os.sysconf("SC_PAGE_SIZE")
        physical = page * os.sysconf("SC_PHYS_PAGES")
        with open("/proc/self/statm") as file:
            resident = int(file.read().split()[1]) * page
    except (OSError, ValueError):
        return None
    for limit_file, stat_file, used in _CONTROL_GROUPS:
        try:
            with open(limit_file) as file:
                limit = int(file.read())
            if limit < physical:
                left = min(left, limit - _first_number(stat_file, used))
        except (OSError, ValueError):  # no such control group, or no limit ("max")
            continue
    return max(left - left // 16 - max(held - resident, 0), 0)


# Where version 2 and version 1 say how much a container may use, and has used.
_CONTROL_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.stat", "anon"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
        "total_rss",
    ),
)


def _first_number(path: str, name: str) -> int:
    """The number after ``name`` in a file of the kernel's usual form."""
    with open(path) as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1])
    raise ValueError(f"{path} does not say {name}")


_pools = Pools(SyclDriver())
os.register_at_fork(
    before=_pools.before_fork,
    after_in_parent=_pools.after_fork,
    after_in_child=_pools.after_fork,
)

allocate = _pools.allocate
stats = _pools.stats
set_limit = _pools.set_limit
release = _pools.release
reset_peak = _pools.reset_peak
