"""What a benchmark is: a name, and a function that yields rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dparray import _usm
from dparray.bench._timer import Candidate, Timing, measure
from dparray.device import Device


@dataclass(frozen=True)
class Settings:
    """What the command line decides.

    Attributes:
        device: where dparray and dpnp run.
        sizes: numbers of elements.
        budget: seconds for each row.
    """

    device: Device
    sizes: tuple[int, ...]
    budget: float


@dataclass(frozen=True)
class Row:
    """One case: the same work by several candidates, dparray's first.

    Attributes:
        case: what was done.
        size: number of elements, or of bytes where the case says so.
        timings: for each candidate.
        bytes_moved: what the work must read and write at least, or 0.
        limit: seconds that the first candidate is meant to stay below, or ``None``.
        where: where dparray computes it, if the benchmark finds out.
    """

    case: str
    size: int
    timings: dict[str, Timing] = field(default_factory=dict)
    bytes_moved: int = 0
    limit: float | None = None
    where: str = ""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark that ``dparray bench`` runs by its name."""

    name: str
    summary: str
    rows: Callable[[Settings], Iterator[Row]]


def row(
    settings: Settings,
    case: str,
    size: int,
    candidates: dict[str, Candidate],
    *,
    bytes_moved: int = 0,
    limit: float | None = None,
) -> Row:
    """Time ``candidates`` and make a row of it."""
    return Row(case, size, measure(candidates, settings.budget), bytes_moved, limit)


def finish(settings: Settings) -> None:
    """Wait for all work on the device's queue."""
    _usm.wait(settings.device.sycl_queue)


def complete(settings: Settings, function: Callable[[], Any]) -> Callable[[], None]:
    """``function``, which gives an array, followed by computing it and waiting for it."""

    def call() -> None:
        result = function()
        result.block  # noqa: B018 - computes what is pending
        finish(settings)

    return call
