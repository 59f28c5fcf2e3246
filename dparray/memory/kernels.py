"""Keep compiled kernels in memory, and evict the least recently used.

Users of a kernel hold a reference to it, so an evicted kernel is only looked up on disk at its next
use. The compiler adds kernels here; this module knows only their sizes.
"""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Protocol

from dparray.exceptions import ShapeError

__all__ = [
    "KernelStats",
    "kernel_stats",
    "set_kernel_limit",
]

_DEFAULT_LIMIT = 128 << 20
_MAX_KERNELS = 1024


class _Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True)
class KernelStats:
    """Statistics of the compiled kernels in memory.

    Attributes:
        count: number of kernels.
        nbytes: their size in bytes, with an estimate of the driver's part.
        limit: the largest total size in bytes.

    Example:
        >>> stats = dp.memory.kernel_stats()
        >>> stats.nbytes <= stats.limit or stats.count == 1
        True
    """

    count: int
    nbytes: int
    limit: int


class KernelMemory:
    """Kernels by key, least recently used first."""

    def __init__(self, limit: int = _DEFAULT_LIMIT) -> None:
        self.limit = limit
        self._kernels: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> Any:
        """Return the kernel of a key, or ``None``."""
        with self._lock:
            kernel = self._kernels.get(key)
            if kernel is not None:
                self._kernels.move_to_end(key)
            return kernel

    def put(self, key: str, kernel: _Sized) -> None:
        """Add a kernel, and evict others that exceed the limit."""
        with self._lock:
            self._kernels[key] = kernel
            self._kernels.move_to_end(key)
        self.trim()

    def trim(self) -> None:
        """Evict the least recently used until the rest is below the limit, but keep the last."""
        gone = []  # Their memory is freed outside the lock.
        with self._lock:
            total = sum(kernel.nbytes for kernel in self._kernels.values())
            while len(self._kernels) > 1 and (
                total > self.limit or len(self._kernels) > _MAX_KERNELS
            ):
                gone.append(self._kernels.popitem(last=False)[1])
                total -= gone[-1].nbytes
        gone.clear()

    def clear(self) -> None:
        """Evict all kernels."""
        with self._lock:
            kernels, self._kernels = self._kernels, OrderedDict()
        kernels.clear()

    def stats(self) -> KernelStats:
        """Return the number of kernels and their size."""
        with self._lock:
            sizes = [kernel.nbytes for kernel in self._kernels.values()]
        return KernelStats(len(sizes), sum(sizes), self.limit)


#: The kernels of this process.
kernel_memory = KernelMemory()


def kernel_stats() -> KernelStats:
    """Return how many compiled kernels are in memory, and their size.

    Example:
        >>> dp.memory.kernel_stats().limit
        134217728
    """
    return kernel_memory.stats()


def set_kernel_limit(nbytes: int) -> int:
    """Limit the memory of compiled kernels.

    Above the limit, the least recently used kernels are evicted when new ones arrive. They stay in
    the cache on disk. A kernel function or an array expression keeps its kernels alive.

    Args:
        nbytes: the limit in bytes; 0 keeps only the last kernel.

    Returns:
        The previous limit.

    Raises:
        ShapeError: ``nbytes`` is not an integer or is negative.

    Example:
        >>> previous = dp.memory.set_kernel_limit(64 << 20)
        >>> dp.memory.set_kernel_limit(previous) == 64 << 20
        True
    """
    try:
        limit = operator.index(nbytes)
    except TypeError:
        limit = -1
    if limit < 0 or isinstance(nbytes, bool):
        raise ShapeError(
            f"set_kernel_limit: nbytes must be an integer of at least 0; got {nbytes!r}"
        )
    previous, kernel_memory.limit = kernel_memory.limit, limit
    kernel_memory.trim()
    return previous
