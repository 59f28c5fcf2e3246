"""Benchmarks: each a name and a function that yields rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dparray._array.ndarray import materialize
from dparray._runtime import queues
from dparray.device import Device
from tests.benchmarks._timer import Candidate, Timing, measure


@dataclass(frozen=True)
class Settings:
    """Settings of the command line.

    Attributes:
        device: where dparray and dpnp run.
        sizes: numbers of elements; none for each benchmark's own.
        budget: seconds for each row.
        npbench: where a clone of NPBench lies, if its programs are to be run.
        jit: run NPBench's Numba forms with ``dp.jit`` instead of its NumPy forms.
        only: the NPBench programs to run with ``jit``; all if empty.
    """

    device: Device
    sizes: tuple[int, ...]
    budget: float
    npbench: Path | None = None
    jit: bool = False
    only: tuple[str, ...] = ()


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
        elementwise_bytes: what the candidate ``elementwise`` moves, or 0.
        steps: of the plan by which dparray computes it, or 0 where it is not an expression.
    """

    case: str
    size: int
    timings: dict[str, Timing] = field(default_factory=dict)
    bytes_moved: int = 0
    limit: float | None = None
    where: str = ""
    elementwise_bytes: int = 0
    steps: int = 0

    @property
    def share(self) -> float | None:
        """The speed, in bytes moved, as a share of an elementwise kernel's in the same turns."""
        if not self.elementwise_bytes:
            return None
        first = next(iter(self.timings.values()))
        speed = self.elementwise_bytes / self.timings["elementwise"].median
        return self.bytes_moved / first.median / speed


@dataclass(frozen=True)
class Benchmark:
    """A benchmark that ``dparray bench`` runs by its name.

    Attributes:
        name, summary: what it is called, and what it measures.
        rows: its rows.
        sizes: the numbers of elements if none are asked for.
        conclude: lines that sum up its rows.
    """

    name: str
    summary: str
    rows: Callable[[Settings], Iterator[Row]]
    sizes: tuple[int, ...] = (1_000, 1_000_000, 10_000_000)
    conclude: Callable[[Sequence[Row]], Iterator[str]] = lambda rows: iter(())

    def measure(self, settings: Settings) -> Iterator[Row]:
        """The rows for the sizes of the settings, or for its own if there are none."""
        return self.rows(settings if settings.sizes else replace(settings, sizes=self.sizes))


def row(
    settings: Settings,
    case: str,
    size: int,
    candidates: dict[str, Candidate],
    *,
    bytes_moved: int = 0,
    limit: float | None = None,
    elementwise_bytes: int = 0,
    steps: int = 0,
) -> Row:
    """Time ``candidates`` and make a row of it."""
    timings = measure(candidates, settings.budget)
    return Row(
        case,
        size,
        timings,
        bytes_moved,
        limit,
        elementwise_bytes=elementwise_bytes,
        steps=steps,
    )


def finish(settings: Settings) -> None:
    """Wait for all work on the device's queue."""
    queues.wait(settings.device.sycl_queue)


def complete(settings: Settings, function: Callable[[], Any]) -> Callable[[], None]:
    """``function``, which gives an array, followed by computing it and waiting for it."""

    def call() -> None:
        result = function()
        materialize(result)  # computes what is pending
        finish(settings)

    return call
