"""Split segments of memory into blocks: free lists, arenas, merging."""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

import numpy as np

from dparray._driver.marks import Mark
from dparray.memory.driver import bytes_at, check_host_access

__all__ = [
    "Block",
]


class Block:
    """Memory borrowed from the pool, returned when this object dies.

    Submitted work may still use the block then: the pool reuses it only for the same queue, whose
    later work comes after. Work on *another* queue that uses the block, such as a copy, adds its
    event to ``SequentialOrderManager[block.queue]``. A write by the host first waits for the work
    on the block, and on the previous block in the same memory. ``memory`` may outlive the block:
    the pool notices this and waits until it is not referenced from outside.

    Attributes:
        memory: ``dpctl.memory`` object whose first byte is the block's first byte.
        pointer: address of the first byte, a multiple of 64.
        nbytes: size in bytes, at least the requested size.
        queue, usm_type: the queue and the USM type of the allocation.
        readers: records of deferred work on the block, which the pool never reads.
        segment: the memory, which records the latest launches on it.

    Example:
        >>> x = dp.zeros(100, usm_type="shared")
        >>> x.block.nbytes >= x.nbytes, x.block.usm_type
        (True, 'shared')
    """

    __slots__ = (
        "__weakref__", "memory", "nbytes", "pointer", "queue", "readers", "segment", "usm_type"
    )  # fmt: skip

    @property
    def host_bytes(self) -> np.ndarray:
        """The bytes at their own address, for memory that the host can access."""
        segment = self.segment
        if segment.host_bytes is None:
            check_host_access(self.queue, self.usm_type)
            segment.host_bytes = bytes_at(segment.pointer, segment.nbytes)
        return segment.host_bytes

    def __init__(self, segment: Segment) -> None:
        self.readers: Any = None
        self.segment = segment
        self.memory = segment.memory
        self.nbytes = segment.nbytes
        self.pointer = segment.pointer
        arena = segment.arena
        self.queue = arena.queue
        self.usm_type = arena.pool.usm_type

    def __repr__(self) -> str:
        return f"Block({self.nbytes} bytes of {self.usm_type} USM at {self.pointer:#x})"


def slab_of(block: object) -> Any:
    """Return the driver allocation that contains a pool block; ``None`` for other blocks."""
    return block.segment.slab if type(block) is Block else None


class Segment:
    """A part of a slab (one driver allocation), in use or free.

    Attributes:
        used, written: the last launches on it, see :class:`dparray._driver.marks.Marked`.
        is_shared: other libraries have its address, and may have work on it at any time.
    """

    __slots__ = (
        "arena", "awaited", "host_bytes", "is_shared", "memory", "nbytes", "next", "pointer",
        "slab", "slab_nbytes", "used", "written",
    )  # fmt: skip

    def __init__(
        self, arena: Arena, slab: Any, slab_nbytes: int, pointer: int, nbytes: int
    ) -> None:
        self.arena = arena
        self.slab = slab
        self.slab_nbytes = slab_nbytes
        self.pointer = pointer
        self.nbytes = nbytes
        self.memory: Any = None  # created at its first use
        self.host_bytes: Any = None  # created at the first host access
        self.next: Segment | None = None  # the next segment in the slab
        self.awaited = False
        self.settle()

    def settle(self) -> None:
        """Record that no work uses the segment."""
        self.used: Mark | None = None
        self.written: Mark | None = None
        self.is_shared = False

    @property
    def is_whole(self) -> bool:
        """Whether it covers its whole slab, so that the slab can be released."""
        return self.nbytes == self.slab_nbytes

    def cut(self, nbytes: int) -> Segment:
        """Keep the first ``nbytes`` and return the rest."""
        rest = Segment(
            self.arena, self.slab, self.slab_nbytes, self.pointer + nbytes, self.nbytes - nbytes
        )
        rest.next, self.next = self.next, rest
        rest.used, rest.written = self.used, self.written
        self.nbytes = nbytes
        self.memory = self.host_bytes = None
        return rest

    def absorb_next(self) -> None:
        """Merge with the next segment, which is unused from now on."""
        other = self.next
        assert other is not None
        self.nbytes += other.nbytes
        self.next = other.next
        self.used = _later(self.used, other.used)
        self.written = _later(self.written, other.written)
        self.memory = self.host_bytes = None


def _later(mark: Mark | None, other: Mark | None) -> Mark | None:
    """Return the later of two launches of one queue."""
    if mark is None or other is None:
        return mark or other
    return mark if mark[1] >= other[1] else other


def _references_of_the_pool() -> int:
    segment = Segment.__new__(Segment)
    segment.memory = object()
    return sys.getrefcount(segment.memory)


_POOL_REFERENCES = _references_of_the_pool()


@dataclass(slots=True, eq=False)
class Arena:
    """The free lists of one queue in one pool, by size.

    Invariant: ``held`` is the sum of the slabs; segments not in ``free`` are in use. The dict is
    never replaced, and a list is removed from it only while empty: :class:`Pools` explains why.
    """

    pool: Pool
    queue: Any
    held: int = 0
    free: dict[int, list[Segment]] = field(default_factory=dict)

    @property
    def cached(self) -> int:
        return sum(segment.nbytes for segment in self.free_segments())

    def free_segments(self) -> list[Segment]:
        return [segment for segments in list(self.free.values()) for segment in segments]

    def put(self, segment: Segment) -> None:
        """Add a segment to the free lists."""
        # The garbage collector may run after any call (from 3.12 on), and free memory in the middle
        # of this method. An empty list is removed then, but no collection happens between a lookup
        # and the call of its method.
        nbytes = segment.nbytes
        while nbytes not in self.free:
            alone = [segment]
            if self.free.setdefault(nbytes, alone) is alone:
                return
        self.free[nbytes].append(segment)

    def take(self, nbytes: int, largest: int) -> Segment | None:
        """Return the closest fit among the free segments up to ``largest``, split to ``nbytes``."""
        segment = self._closest(nbytes, largest)
        if segment is None and self._join(nbytes, largest):
            segment = self._closest(nbytes, largest)
        if segment is not None and segment.nbytes > nbytes:
            self.put(segment.cut(nbytes))
        return segment

    def _closest(self, nbytes: int, largest: int) -> Segment | None:
        for size in sorted(self.free):  # A generator here is a call for each size.
            segments = self.free.get(size) if nbytes <= size <= largest else None
            if segments:
                return segments.pop()
        return None

    def _join(self, at_least: int, at_most: int) -> bool:
        """Merge adjacent free segments in slabs of these sizes; return whether there were any."""
        taken = []
        for segments in list(self.free.values()):
            while segments:
                taken.append(segments.pop())
        for size in list(self.free):
            if size in self.free and not self.free[size]:
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

    def whole_slabs(self) -> list[Segment]:
        """Return the slabs without memory in use, as one free segment each."""
        self._join(0, sys.maxsize)
        return [segment for segment in self.free_segments() if segment.is_whole]

    def give(self, segment: Segment) -> None:
        """Add a slab that no work uses, as one free segment."""
        segment.arena = self
        segment.settle()
        self.held += segment.slab_nbytes
        self.put(segment)

    def remove(self, segment: Segment) -> bool:
        """Remove a slab if it is still one free segment; return whether it was."""
        segments = self.free.get(segment.slab_nbytes)
        if segments is None or not segment.is_whole or segment not in segments:
            return False
        segments.remove(segment)
        self.held -= segment.slab_nbytes
        segment.memory = None
        return True


@dataclass(slots=True, eq=False)
class Pool:
    """Memory of one USM type on one (context, device).

    Invariant: ``in_use`` is the sum of the blocks handed out and not yet seen to be returned.
    """

    owner: DeviceMemory
    usm_type: str
    arenas: dict[Any, Arena] = field(default_factory=dict)
    in_use: int = 0
    peak: int = 0
    hits: int = 0
    misses: int = 0
    lent: dict[ref[Block], Segment] = field(default_factory=dict)  # by reference to the block
    # The dead references among these. The garbage collector may add to it at any time, even inside
    # the pool, so adding takes no lock and is done by a C function: an interrupt could be lost in a
    # Python function.
    returned: deque[ref[Block]] = field(default_factory=deque)
    # returned, but the memory object is still referenced
    lingering: deque[Segment] = field(default_factory=deque)

    @property
    def held(self) -> int:
        return sum(arena.held for arena in list(self.arenas.values()))

    def take_back(self, segment: Segment) -> None:
        """Repair the state after an error or an interrupt during a request, whose block nobody
        received.
        """
        lent = list(self.lent.values())
        if segment not in lent:  # otherwise its block's end does this
            segment.arena.put(segment)
        self.in_use = sum(each.nbytes for each in (*lent, *self.lingering))

    def collect(self) -> None:
        """Put returned segments on their free lists."""
        returned, lent = self.returned, self.lent
        while returned:
            segment = lent.pop(returned.popleft())
            if sys.getrefcount(segment.memory) > _POOL_REFERENCES:
                segment.awaited = False
                self.lingering.append(segment)
            else:
                self.in_use -= segment.nbytes
                segment.is_shared = False  # no other references
                free = segment.arena.free.get(segment.nbytes)
                if free is None:
                    segment.arena.put(segment)
                else:
                    free.append(segment)

    def settle(self, most: int = sys.maxsize) -> None:
        """Collect as :meth:`collect` does, and check again the ``most`` segments held longest."""
        self.collect()
        for _ in range(min(most, len(self.lingering))):
            if not self.lingering:
                break
            segment = self.lingering.popleft()
            if sys.getrefcount(segment.memory) > _POOL_REFERENCES:
                self.lingering.append(segment)
            else:
                self.in_use -= segment.nbytes
                segment.is_shared = False  # no other references
                segment.arena.put(segment)


@dataclass(slots=True, eq=False)
class DeviceMemory:
    """The pools of one device in one context, which share a limit."""

    name: str
    largest: int
    total: int | None
    limit: int | None = None
    pools: dict[str, Pool] = field(default_factory=dict)

    @property
    def held(self) -> int:
        return sum(pool.held for pool in list(self.pools.values()))

    @property
    def in_use(self) -> int:
        return sum(pool.in_use for pool in list(self.pools.values()))

    def arenas(self) -> list[Arena]:
        return [arena for pool in list(self.pools.values()) for arena in list(pool.arenas.values())]
