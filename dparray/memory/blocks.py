"""Blocks outside the pool, and layouts over blocks of the pool."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from dparray._driver import by_type, driver_of
from dparray._driver.interface import Queue
from dparray._layout import Block, Layout, contiguous_strides, strides_in_order
from dparray._runtime.queues import note_others
from dparray.memory import driver, pool

# The value of a block's `readers` when its memory is shared with another library: no work on it may
# be deferred.
SHARED: tuple[()] = ()


class BorrowedBlock:
    """USM memory of another library, with the interface of the pool's blocks.

    Invariant: holds a reference to the owner as long as an array uses the memory.

    Attributes:
        is_read_only: whether the owner forbids writes.
    """

    __slots__ = ("is_read_only", "memory", "nbytes", "pointer", "queue", "readers", "usm_type")

    segment = None

    def __init__(
        self,
        memory: Any,
        nbytes: int,
        usm_type: str,
        queue: Queue,
        readers: Any = None,
        is_read_only: bool = False,
    ) -> None:
        if readers is SHARED:
            note_others(queue)
        self.is_read_only = is_read_only
        self.readers = readers
        self.memory = memory
        self.pointer = driver_of(queue).pointer(memory)
        self.nbytes = nbytes
        self.queue = queue
        self.usm_type = usm_type

    @property
    def host_bytes(self) -> np.ndarray:
        """The bytes at their own address, for memory that the host can access."""
        driver.check_host_access(self.queue, self.usm_type)
        return driver.bytes_at(self.pointer, self.nbytes)


def zeros_beside_the_pool(queue: Queue, count: int, dtype: np.dtype[Any]) -> Layout:
    """Zero elements in device memory outside the pool."""
    of_queue, nbytes = driver_of(queue), count * dtype.itemsize
    memory = of_queue.allocate(queue, "device", nbytes)
    of_queue.clear(queue, memory)
    block = BorrowedBlock(memory, nbytes, "device", queue)
    return Layout(block, 0, (count,), (dtype.itemsize,), dtype)


def is_read_only(block: Any) -> bool:
    """Return whether the owner of a block's memory forbids writes."""
    return type(block) is BorrowedBlock and block.is_read_only


def memory_at(block: Block, offset: int) -> Any:
    """Return the driver's memory whose first byte is ``offset`` bytes into ``block``."""
    if offset == 0:
        return block.memory
    nbytes = max(block.nbytes - offset, 1)
    driver = by_type[type(block.queue)]
    return driver.part(block, block.pointer + offset, nbytes, block.queue)


class LentBlock:
    """A block for work on another queue of its device and context.

    The lender orders that work after the present work on the block's own queue, and later work
    there after it.

    Attributes:
        owner: the original block.
    """

    __slots__ = ("memory", "nbytes", "owner", "pointer", "queue", "readers", "usm_type")

    segment = None

    def __init__(self, owner: Any, queue: Queue) -> None:
        self.owner: Any = owner.owner if type(owner) is LentBlock else owner
        self.queue = queue
        self.memory = owner.memory
        self.pointer = owner.pointer
        self.nbytes = owner.nbytes
        self.usm_type = owner.usm_type
        self.readers: Any = None

    @property
    def host_bytes(self) -> Any:
        """The bytes at their own address."""
        return self.owner.host_bytes


class Positions:
    """A block without memory whose int64 elements equal their positions: 0, 1, 2, ...

    Its layouts begin at offset 0. In kernels the elements are index arithmetic.
    """

    __slots__ = ("nbytes", "queue", "readers", "usm_type")

    memory = None
    segment = None
    pointer = 0
    host_bytes = None

    def __init__(self, queue: Queue, usm_type: str, count: int) -> None:
        self.queue = queue
        self.usm_type = usm_type
        self.nbytes = 8 * count
        self.readers: Any = None

    def values(self, layout: Layout) -> np.ndarray:
        """Return the elements of a layout on this block."""
        result = np.zeros(layout.shape, np.int64)
        for axis, (extent, stride) in enumerate(zip(layout.shape, layout.strides, strict=True)):
            along = np.arange(extent, dtype=np.int64) * (stride // 8)
            result += along.reshape((-1,) + (1,) * (len(layout.shape) - axis - 1))
        return result


class _NoMemory:
    """A placeholder for a block of memory that would be allocated."""

    pointer = 0
    segment = None
    host_bytes = None

    def __init__(self, queue: Queue, usm_type: str, nbytes: int) -> None:
        self.queue = queue
        self.usm_type = usm_type
        self.nbytes = nbytes
        self.memory = self
        self.readers: Any = None


def planned_layout(
    queue: Queue, usm_type: str, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Layout:
    """Return the layout that :func:`allocate` would return, without allocating memory."""
    block = _NoMemory(queue, usm_type, prod(shape) * dtype.itemsize)
    return Layout(block, 0, shape, contiguous_strides(shape, dtype.itemsize), dtype)


def allocate(
    queue: Queue,
    usm_type: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    axes: tuple[int, ...] | None = None,
) -> Layout:
    """Return a layout in new memory of the pool: C-contiguous, or with axes in another order."""
    itemsize = dtype.itemsize
    block = pool.allocate(queue, usm_type, prod(shape) * itemsize)
    return Layout(block, 0, shape, strides_in_order(shape, itemsize, axes), dtype)
