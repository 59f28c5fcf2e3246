"""Allocate USM memory: every array of dparray comes from the pool defined here.

The first access to fresh USM costs up to a hundred times the second, so memory that an array
released is kept and reused. The policy:

* **Sharing.** There is one pool for each (context, device, USM type), with free lists for each
  queue. Later work of the *same* queue reuses a released block without waiting, because all work on
  a queue is ordered as submitted (``dpctl.utils.SequentialOrderManager``).
* **Sizes.** A request is rounded up to a size class: multiples of 64 bytes, eight classes for each
  power of two, so above 512 bytes less than an eighth is wasted.
* **Splitting.** A block of the same size is used first. Otherwise the smallest free block that fits
  is split, unless it is more than eight times as large: then a small array would pin a large
  allocation. Small blocks are split from slabs of 2 MiB. Adjacent free blocks are merged when a
  request needs it.
* **Limits.** The memory of a device's pools, in use and cached, stays below the limit, the device's
  memory and the free host memory. Only when a request would exceed that are cached blocks of
  other queues reused or released to the driver, after their queue's work is complete. If that is
  not enough, :class:`dparray.exceptions.MemoryError` is raised; no data is lost.

The pool knows no shapes and dtypes. In: a queue, a USM type and a size, and blocks that arrays
release. Out: blocks. Imports: rows up to ``runtime``, and the packages of ``libraries``:
``cupy``, ``cupyx``, ``dpctl``, ``dpnp``, ``scipy``.

Example:
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
