"""Turn a request into a block of an existing or a new segment."""

from __future__ import annotations

import builtins
import gc
import operator
import sys
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator
from threading import RLock
from typing import Any
from weakref import ref

from dparray import _hooks
from dparray.device import USM_TYPES
from dparray.exceptions import MemoryError, ShapeError, UnsupportedDeviceError, UsmTypeError
from dparray.memory.driver import SLAB, Driver
from dparray.memory.segments import Arena, Block, DeviceMemory, Pool, Segment
from dparray.memory.stats import MemoryStats, PoolStats, format_bytes

__all__ = [
    "allocate",
    "release",
    "reset_peak",
    "set_limit",
    "stats",
]


ALIGNMENT = 64  # a cache line, and the widest vector register
LARGE = 1 << 20  # From this size on, the free host memory is checked.
LOOK_AGAIN = 32  # number of segments with held memory objects that each request checks again
MAX_RATIO = 8  # A free block is split for requests down to this fraction of its size.
MAX_FREE_LISTS = 32  # number of (queue, USM type) pairs kept before idle ones are dropped


def _checked_size(nbytes: Any, function: str) -> int:
    try:
        size = operator.index(nbytes)
    except TypeError:
        raise ShapeError(
            f"{function}: the number of bytes must be an integer, not {nbytes!r} of type "
            f"{type(nbytes).__name__}"
        ) from None
    if size < 0:
        raise ShapeError(f"{function}: the number of bytes must not be negative, but is {size}")
    return size


class Pools:
    """All pools of a process over one driver.

    Thread-safe: one lock guards all state, even while waiting for a queue under memory pressure.
    Releasing a block takes no lock. The lock is reentrant because the garbage collector may run a
    finalizer that allocates whenever an object is created. So a method first removes the objects
    that it works on from their lists, and after creating an object it re-reads the state that it
    had read before.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._lock = RLock()
        self._limit: int | None = None
        self._memories: dict[Hashable, DeviceMemory] = {}
        self._arenas: dict[tuple[Any, str], Arena] = {}

    def hold_at_fork(self) -> None:
        """Hold the lock at forks, so that a child inherits a consistent state."""
        release = self._lock.release
        _hooks.at_fork(before=self._lock.acquire, after_in_parent=release, after_in_child=release)

    def allocate(self, queue: Any, usm_type: str, nbytes: int) -> Block:
        """Return memory for later work on ``queue``; its content is undefined.

        Args:
            queue: the ``dpctl.SyclQueue`` whose work will use it.
            usm_type: ``"device"``, ``"shared"`` or ``"host"``.
            nbytes: the size in bytes; zero returns a block of the smallest size.

        Raises:
            MemoryError: there is not enough memory on the device or below the limit.
            UnsupportedDeviceError: the device has no USM of that type.
            UsmTypeError: there is no such USM type.
            ShapeError: ``nbytes`` is not an integer or is negative.

        Example:
            >>> block = dp.memory.allocate(dp.default_device().queue, "device", 1000)
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
            try:
                size = segment.nbytes
                if segment.memory is None:
                    segment.memory = self._driver.part(segment.slab, segment.pointer, size, queue)
                pool.in_use += size
                if pool.in_use > pool.peak:
                    pool.peak = pool.in_use
                hit = pool.misses == misses
                if hit:
                    pool.hits += 1
                block = Block(segment)
                pool.lent[ref(block, pool.returned.append)] = segment
            except BaseException:
                pool.take_back(segment)
                raise
        if _hooks.subscribers:
            _hooks.emit(
                "allocate",
                queue=queue,
                usm_type=usm_type,
                nbytes=size,
                hit=hit,
                asked=nbytes,
                pointer=segment.pointer,
                in_use=pool.in_use,
            )
        return block

    def holds_device_memory(self) -> bool:
        """Return whether memory of a non-CPU device exists, so its driver is in use."""
        return any(owner.total is None for owner in self._memories.values() if owner.held)

    def stats(self, device: Any = None) -> MemoryStats:
        """Return the sizes of the pools, and counts of requests served from the cache.

        Args:
            device: any device argument of :class:`dparray.Device`; ``None`` for all devices.

        Example:
            >>> x = dp.empty(1_000_000)
            >>> dp.memory.stats(x.device).in_use >= x.nbytes
            True
        """
        with self._lock:
            rows = []
            for pool in self._settled(device):
                rows.append(
                    PoolStats(
                        device=pool.owner.name,
                        usm_type=pool.usm_type,
                        queues=len(pool.arenas),
                        in_use=pool.in_use,
                        cached=pool.held - pool.in_use,
                        peak=pool.peak,
                        hits=pool.hits,
                        misses=pool.misses,
                    )
                )
            own = None if device is None else self._memory_on(device).limit
            return MemoryStats(
                in_use=sum(row.in_use for row in rows),
                cached=sum(row.cached for row in rows),
                peak=sum(row.peak for row in rows),
                hits=sum(row.hits for row in rows),
                misses=sum(row.misses for row in rows),
                limit=self._limit if own is None else own,
                pools=tuple(rows),
            )

    def limit_and_use(self, queue: Any) -> tuple[int | None, int]:
        """Return the limit of a queue's device, and the bytes in blocks there; a policy reads this
        for each expression.
        """
        with self._lock:
            owner, nbytes = self._memory_of(queue), 0
            for pool in list(owner.pools.values()):
                pool.settle()
                nbytes += pool.in_use
            return self._limit_of(owner), nbytes

    def is_limited(self) -> bool:
        """Return whether there is a limit for any device."""
        with self._lock:
            for owner in self._memories.values():
                if owner.limit is not None:
                    return True
            return self._limit is not None

    def in_use_on(self, queue: Any) -> int:
        """Return the bytes in blocks that arrays of one queue hold, of all USM types."""
        with self._lock:
            nbytes = 0
            for (owner, _), arena in list(self._arenas.items()):
                if owner == queue:
                    arena.pool.settle()
                    nbytes += arena.held - arena.cached
            return nbytes

    def set_limit(self, nbytes: int | None, device: Any = None) -> int | None:
        """Limit the memory that the pools of one device hold, in use and cached, of all USM types
        together.

        Cached memory above the new limit is released immediately. Memory in use is never released,
        and neither is free memory in the same driver allocation, which continues to serve requests.

        Args:
            nbytes: the limit in bytes; ``None`` removes it.
            device: any device argument of :class:`dparray.Device`, for a limit of that device;
                ``None`` for the general limit, which applies to every device without its own limit.

        Returns:
            The previous limit.

        Raises:
            ShapeError: ``nbytes`` is not an integer or is negative.

        Example:
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
                owner = self._memory_on(device)
                previous, owner.limit = owner.limit, nbytes
            for owner in self._chosen(device):
                limit = self._limit_of(owner)
                if limit is not None and owner.held > limit:
                    self._give_back(owner.arenas(), owner.held - limit)
        return previous

    def release(self, device: Any = None) -> int:
        """Release cached memory to the driver, after the work on its queues is complete.

        Memory in use by arrays stays. Returns the number of released bytes.

        Args:
            device: any device argument of :class:`dparray.Device`; ``None`` for all devices.

        Example:
            >>> x = dp.zeros(1_000_000)
            >>> del x
            >>> dp.memory.release() > 0
            True
        """
        with self._lock:
            arenas = [arena for owner in self._chosen(device) for arena in owner.arenas()]
            return self._give_back(arenas)

    def reset_peak(self, device: Any = None) -> None:
        """Restart the measurement of the peak from the memory in use now.

        Args:
            device: any device argument of :class:`dparray.Device`; ``None`` for all devices.

        Example:
            >>> dp.memory.reset_peak()
            >>> stats = dp.memory.stats()
            >>> stats.peak == stats.in_use
            True
        """
        with self._lock:
            for pool in self._settled(device):
                pool.peak = pool.in_use

    # The methods below require the lock to be held.

    def _memory_on(self, device: Any) -> DeviceMemory:
        return self._memory_of(self._driver.queue_of(device))

    def _memory_of(self, queue: Any) -> DeviceMemory:
        key = self._driver.context_and_device(queue)
        owner = self._memories.get(key)
        if owner is None:
            name, _ = self._driver.describe(queue)
            owner = self._memories.setdefault(
                key, DeviceMemory(name, *self._driver.capacity(queue))
            )
        return owner

    def _chosen(self, device: Any) -> list[DeviceMemory]:
        return list(self._memories.values()) if device is None else [self._memory_on(device)]

    def _settled(self, device: Any) -> Iterator[Pool]:
        for owner in self._chosen(device):
            for pool in list(owner.pools.values()):
                pool.settle()
                yield pool

    def _limit_of(self, owner: DeviceMemory) -> int | None:
        return self._limit if owner.limit is None else owner.limit

    def _open(self, queue: Any, usm_type: str) -> Arena:
        """Create free lists for a new queue."""
        if usm_type not in USM_TYPES:
            raise UsmTypeError(
                f"allocate: unknown USM type {usm_type!r}; expected 'device', 'shared' or 'host'"
            )
        owner = self._memory_of(queue)
        if not self._driver.supports(queue, usm_type):
            raise UnsupportedDeviceError(
                f"allocate: {owner.name} has no {usm_type} USM (aspect "
                f"usm_{usm_type}_allocations); see `dp.Device(...).usm_types`"
            )
        if len(self._arenas) >= MAX_FREE_LISTS:
            self._forget_idle()
            self._memories.setdefault(self._driver.context_and_device(queue), owner)
        pool = owner.pools.setdefault(usm_type, Pool(owner, usm_type))
        arena = pool.arenas.setdefault(queue, Arena(pool, queue))
        return self._arenas.setdefault((queue, usm_type), arena)

    def _forget_idle(self) -> None:
        """Drop queues without memory in use, so that dead queues do not accumulate.

        The end of a queue cannot be observed: dpctl's order manager keeps every queue alive. A
        queue with unfinished work is in use, and an allocation on another must not wait for it.
        """
        for arena in list(self._arenas.values()):
            arena.pool.settle()
            if arena.cached == arena.held and self._driver.is_idle(arena.queue):
                self._give_back([arena])
            if not arena.held:
                self._arenas.pop((arena.queue, arena.pool.usm_type), None)
                arena.pool.arenas.pop(arena.queue, None)
        for key in list(self._memories):
            owner = self._memories.get(key)
            if owner is not None and owner.limit is None and not owner.arenas():
                self._memories.pop(key, None)

    def _find(self, arena: Arena, size: int, nbytes: int) -> Segment:
        """Find a segment when no free block has the exact size."""
        pool = arena.pool
        pool.settle(most=LOOK_AGAIN)
        largest = max(MAX_RATIO * size, SLAB)
        segment = arena.take(size, largest)
        if segment is None:
            # Waiting for work that holds memory objects, such as host tasks of dpnp.tensor, takes
            # less time than the first access to fresh memory.
            of_use = 0 if size * MAX_RATIO <= SLAB else size
            lingering = [s for s in list(pool.lingering) if s.arena is arena and s.nbytes >= of_use]
            if self._await_lingering(lingering):
                segment = arena.take(size, largest)
        if segment is None:
            segment = self._fresh(arena, size)
        if segment is None:
            # A size class may exceed the limit or the device's memory although the request does
            # not.
            exact = -(-nbytes // ALIGNMENT) * ALIGNMENT or ALIGNMENT
            segment = self._under_pressure(arena, size) or self._under_pressure(arena, exact)
            if segment is None and exact <= pool.owner.largest and gc.collect():
                # Arrays in reference cycles were in use until now.
                segment = self._under_pressure(arena, exact)
            if segment is None:
                raise self._refusal(arena, nbytes, exact)
        return segment

    def _await_lingering(self, segments: Iterable[Segment]) -> bool:
        """Wait for work that may hold their memory objects; return whether there was any.

        Each is waited for once: objects that are still held then are kept by a user.
        """
        waiting = [segment for segment in segments if not segment.awaited]
        for arena in {segment.arena for segment in waiting}:
            self._driver.wait(arena.queue)
        for segment in waiting:
            segment.awaited = True
        for pool in {segment.arena.pool for segment in waiting}:
            pool.settle()
        return bool(waiting)

    def _fresh(self, arena: Arena, size: int) -> Segment | None:
        """Return a segment of a new slab, unless there is no room or the driver rejects it."""
        for slab_nbytes in (SLAB, size) if size * MAX_RATIO <= SLAB else (size,):
            if self._obstacle(arena, slab_nbytes) is not None:
                continue
            try:
                slab = self._driver.allocate(arena.queue, arena.pool.usm_type, slab_nbytes)
            except builtins.MemoryError:
                continue
            arena.pool.misses += 1
            pointer = self._driver.pointer(slab, arena.queue)
            arena.give(Segment(arena, slab, slab_nbytes, pointer, slab_nbytes))
            return arena.take(size, slab_nbytes)
        return None

    def _ceiling(self, owner: DeviceMemory) -> int | None:
        """Return the most memory that the owner may hold."""
        known = [bound for bound in (self._limit_of(owner), owner.total) if bound is not None]
        return min(known) if known else None

    def _obstacle(self, arena: Arena, nbytes: int) -> str | None:
        """Return why the driver must not be asked for this much, or ``None``.

        The driver would not reject it: the host promises memory that it does not have, and kills
        the process that uses it.
        """
        owner = arena.pool.owner
        if nbytes > owner.largest:
            return f"the largest single allocation of the device is {format_bytes(owner.largest)}"
        limit = self._limit_of(owner)
        if limit is not None and owner.held + nbytes > limit:
            return f"the limit for this device is {format_bytes(limit)}"
        if owner.total is not None and owner.held + nbytes > owner.total:
            return f"the device has {format_bytes(owner.total)}"
        if nbytes >= LARGE:
            held = sum(other.held for other in list(self._memories.values()))
            left = self._driver.available(arena.queue, arena.pool.usm_type, held)
            if left is not None and nbytes > left:
                return f"the host has {format_bytes(left)} left"
        return None

    def _under_pressure(self, arena: Arena, size: int) -> Segment | None:
        """Find a segment by releasing cached memory, which is kept if that cannot help."""
        owner = arena.pool.owner
        if size > owner.largest:
            return None
        for pool in list(owner.pools.values()):
            pool.settle()
            self._await_lingering(list(pool.lingering))
        segment = arena.take(size, sys.maxsize) or self._take_over(arena, size)
        if segment is None:
            ceiling = self._ceiling(owner)
            if ceiling is not None and owner.in_use + size > ceiling:
                return None
            missing = 0 if ceiling is None else owner.held + size - ceiling
            # There was enough room, so the driver or the host rejected the request: release
            # everything.
            self._give_back(owner.arenas(), missing if missing > 0 else None)
            segment = self._fresh(arena, size)
        return segment

    def _take_over(self, arena: Arena, size: int) -> Segment | None:
        """Return a segment of a free slab of another queue of the pool, once its work is done."""
        for other in list(arena.pool.arenas.values()):
            if other is arena:
                continue
            slabs = [slab for slab in other.whole_slabs() if slab.nbytes >= size]
            slab = min(slabs, key=lambda segment: segment.nbytes, default=None)
            if slab is not None:
                self._driver.wait(other.queue)
                if other.remove(slab):
                    arena.give(slab)
                    return arena.take(size, sys.maxsize)
        return None

    def _give_back(self, arenas: Iterable[Arena], at_least: int | None = None) -> int:
        """Return free slabs without memory in use; all of them, or until ``at_least`` bytes."""
        arenas = list(arenas)
        for pool in {arena.pool for arena in arenas}:
            pool.settle()
            self._await_lingering([each for each in pool.lingering if each.arena in arenas])
        slabs = [slab for arena in arenas for slab in arena.whole_slabs()]
        slabs.sort(key=lambda segment: segment.nbytes)
        complete = set()
        freed = 0
        while slabs and (at_least is None or freed < at_least):
            missing = slabs[-1].nbytes if at_least is None else at_least - freed
            # The smallest sufficient slab, otherwise the largest.
            slab = slabs.pop(
                min(bisect_left(slabs, missing, key=lambda s: s.nbytes), len(slabs) - 1)
            )
            arena = slab.arena
            # Drivers wait for its work when they free memory, where Ctrl-C does not end it.
            if arena not in complete:
                self._driver.wait(arena.queue)
                complete.add(arena)
            if arena.remove(slab):
                slab.slab = None
                freed += slab.nbytes
        return freed

    def _refusal(self, arena: Arena, nbytes: int, size: int) -> MemoryError:
        owner = arena.pool.owner
        _, queue_name = self._driver.describe(arena.queue)
        limit = self._limit_of(owner)
        in_use, cached = owner.in_use, owner.held - owner.in_use
        reason = self._obstacle(arena, size) or "the driver rejected the request"
        remedy = "`del` unused arrays and call `dp.memory.release()`, "
        if limit is not None:
            remedy += "raise the limit with `dp.memory.set_limit(...)`, "
        return MemoryError(
            f"allocate: {format_bytes(nbytes)} of {arena.pool.usm_type} USM on {queue_name} are "
            f"not available: {reason} "
            f"({format_bytes(in_use)} in use, {format_bytes(cached)} cached, "
            f"limit {format_bytes(limit)}); {remedy}or work on smaller arrays",
            requested=nbytes,
            in_use=in_use,
            cached=cached,
            limit=limit,
            device=owner.name,
        )


_pools = Pools(Driver())
_pools.hold_at_fork()

allocate = _pools.allocate
holds_device_memory = _pools.holds_device_memory
stats = _pools.stats
in_use_on = _pools.in_use_on
limit_and_use = _pools.limit_and_use
is_limited = _pools.is_limited
set_limit = _pools.set_limit
release = _pools.release
reset_peak = _pools.reset_peak
