"""Statistics of the pools, as numbers and as a table."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "MemoryStats",
    "PoolStats",
]


def format_bytes(nbytes: int | None) -> str:
    """Format ``1536`` as ``1.5 KiB``, and ``None`` as ``none``."""
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
        device: the device, with its sub-device.
        usm_type: ``"device"``, ``"shared"`` or ``"host"``.
        queues: number of queues that have blocks in the pool.
        in_use: bytes in blocks that arrays hold.
        cached: free bytes that later requests reuse.
        peak: the largest ``in_use`` since ``reset_peak()``.
        hits: allocations served from cached memory.
        misses: allocations from the driver.

    Example:
        >>> x = dp.empty(1_000_000)
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
    """The summed counters of the pools that :func:`stats` selected.

    Attributes:
        in_use: bytes in blocks that arrays hold.
        cached: free bytes that later requests reuse.
        peak: the largest ``in_use`` since ``reset_peak()``; over several pools, the sum of their
            peaks.
        hits: allocations served from cached memory.
        misses: allocations from the driver.
        limit: the limit of the device in bytes, or the general one; ``None`` for none.
        pools: the counters of each pool.

    Example:
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
