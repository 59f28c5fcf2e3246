"""Define benchmarks: each has a name and a function that yields rows."""

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
        sizes: numbers of elements; empty for each benchmark's default sizes.
        budget: seconds for each row.
        npbench: the folder of a clone of NPBench, if its programs are to be run.
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
    """One case: the same work done by several candidates, dparray's first.

    Attributes:
        case: a description of the work.
        size: number of elements, or of bytes if the case states so.
        timings: for each candidate.
        bytes_moved: the bytes that the work must read and write at least, or 0.
        limit: target of the first candidate in seconds, or ``None``.
        where: dparray's backend, if the benchmark determines it.
        elementwise_bytes: the bytes that the candidate ``elementwise`` moves, or 0.
        steps: number of steps of dparray's plan, or 0 if it is not an expression.
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
        """Return the bandwidth relative to an elementwise kernel's in the same turns."""
        if not self.elementwise_bytes:
            return None
        first = next(iter(self.timings.values()))
        speed = self.elementwise_bytes / self.timings["elementwise"].median
        return self.bytes_moved / first.median / speed


@dataclass(frozen=True)
class Benchmark:
    """A benchmark that ``dparray bench`` runs by its name.

    Attributes:
        name, summary: its name, and a description.
        rows: its rows.
        sizes: the default numbers of elements.
        conclude: lines that summarize its rows.
    """

    name: str
    summary: str
    rows: Callable[[Settings], Iterator[Row]]
    sizes: tuple[int, ...] = (1_000, 1_000_000, 10_000_000)
    conclude: Callable[[Sequence[Row]], Iterator[str]] = lambda rows: iter(())

    def measure(self, settings: Settings) -> Iterator[Row]:
        """Yield the rows for the sizes of the settings, or for the default sizes."""
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
    """Time ``candidates`` and return a row."""
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
    queues.wait(settings.device.queue)


def complete(settings: Settings, function: Callable[[], Any]) -> Callable[[], None]:
    """Return a function that calls ``function``, evaluates the array that it returns, and waits."""

    def call() -> None:
        result = function()
        materialize(result)  # computes pending arrays
        finish(settings)

    return call
