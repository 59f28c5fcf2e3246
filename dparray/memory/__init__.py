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

In: a queue, a USM type and a size, and blocks that arrays let go. Out: blocks. The pool knows no
shapes and dtypes; it imports the runtime, and ``exchange`` alone imports dpnp.

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

from dparray.memory.driver import Driver as Driver
from dparray.memory.kernels import KernelStats, kernel_stats, set_kernel_limit
from dparray.memory.pool import allocate, release, reset_peak, set_limit, stats
from dparray.memory.segments import Block
from dparray.memory.stats import MemoryStats, PoolStats
from dparray.memory.stats import format_bytes as format_bytes

__all__ = [
    "Block",
    "KernelStats",
    "MemoryStats",
    "PoolStats",
    "allocate",
    "kernel_stats",
    "release",
    "reset_peak",
    "set_kernel_limit",
    "set_limit",
    "stats",
]
