"""Records of the decisions of policies and their results, one for each bound expression."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from dparray._driver import driver_of
from dparray.memory.stats import format_bytes


@dataclass(frozen=True)
class PlacedWork:
    """A step, a copy, or freed memory.

    Attributes:
        kind: ``"step"``, ``"copy"`` or ``"drop"``.
        device: the device that computes it, or the target of a copy.
        source: the source of a copy.
        what: the operations, or the values.
        nbytes: for a step the size of its results; for a copy the bytes moved.
        because: for a copy ``"operand"``, ``"result"`` or ``"room"``.
        start, finish: the estimated times, in seconds from the beginning.
        alternatives: for a step, the time for each device at which its results would have been
            available if it had been computed there; ``inf`` if impossible.
        measured: the seconds that it took, if measured: on a simulated device, or in a profile.
        measured_start: the start time on a simulated device.
    """

    kind: str
    device: str
    what: str
    nbytes: int
    start: float
    finish: float
    source: str = ""
    because: str = ""
    alternatives: tuple[tuple[str, float], ...] = ()
    measured: float | None = None
    measured_start: float | None = None

    def __str__(self) -> str:
        when = f"{_ms(self.start)} to {_ms(self.finish)} ms"
        took = "" if self.measured is None else f", took {_ms(self.measured)} ms"
        size = format_bytes(self.nbytes)
        if self.kind == "step":
            others = ", ".join(
                f"{device} {_ms(finish) + ' ms' if finish < float('inf') else 'cannot'}"
                for device, finish in self.alternatives
                if device != self.device
            )
            beside = f"; else {others}" if others else ""
            return f"{self.device}: {self.what}, {size}, {when}{took}{beside}"
        if self.kind == "drop":
            return f"{self.device}: {self.what}, {size}, is freed at {_ms(self.start)} ms"
        if not self.nbytes:
            return f"{self.what} is used by {self.device}, which shares the memory"
        return (
            f"copy for {_REASONS[self.because]}: {self.what}, {size}, {self.source} -> "
            f"{self.device}, {when}{took}"
        )


_REASONS = {"operand": "a step", "result": "the result", "room": "room", "call": "a call"}


def _counted(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"


@dataclass(frozen=True, repr=False)
class PlacedExpression:
    """The distribution of an expression's steps over devices.

    It prints as text, or as a timeline in a notebook.

    Attributes:
        policy: ``"fastest"``, or the name of the function.
        devices: the candidate devices.
        work: steps, copies and drops in order of submission.
        seconds: the estimate for everything.
        alone: for each device the estimate if it computed everything; ``inf`` if it cannot.
        planning: the seconds that planning took; zero for a cached plan.
        measured: the seconds that it took, on simulated devices.
        retried: the devices that were lost meanwhile, after which it was planned again.
        ready: for each device how many kernels are compiled, and how many the plan could use there.

    Example:
        >>> gpu = dp.testing.SimulatedDevice("gpu", speeds=50.0)
        >>> x = dp.ones((500, 500), dtype="float32", device=gpu)
        >>> with dp.placement("fastest", devices=["cpu", gpu]):
        ...     pending = (x @ x).sum(axis=0)
        >>> dp.explain(pending).placed.steps[0].device
        'gpu'
    """

    policy: str
    devices: tuple[str, ...]
    work: tuple[PlacedWork, ...]
    seconds: float
    alone: tuple[tuple[str, float], ...] = ()
    planning: float = 0.0
    measured: float | None = None
    retried: tuple[str, ...] = ()
    ready: tuple[tuple[str, int, int], ...] = ()

    @property
    def steps(self) -> tuple[PlacedWork, ...]:
        """The steps."""
        return tuple(each for each in self.work if each.kind == "step")

    @property
    def copies(self) -> tuple[PlacedWork, ...]:
        """The copies that move data."""
        return tuple(each for each in self.work if each.kind == "copy" and each.nbytes)

    @property
    def nbytes_copied(self) -> int:
        """The size of all copies in bytes."""
        return sum(copy.nbytes for copy in self.copies)

    @property
    def times_estimate(self) -> float | None:
        """The measured time of the steps divided by the estimate; ``None`` if not measured."""
        known = [(step.finish - step.start, step.measured) for step in self.steps]
        estimate = sum(seconds for seconds, took in known if took is not None)
        took = sum(took for _, took in known if took is not None)
        return took / estimate if estimate and took else None

    def __str__(self) -> str:
        used = len({step.device for step in self.steps})
        took = "" if self.measured is None else f", took {_ms(self.measured)} ms"
        alone = ", ".join(
            f"{name} {_ms(seconds) + ' ms' if seconds < float('inf') else 'cannot'}"
            for name, seconds in self.alone
        )
        copies = _counted(len(self.copies), "copy", "copies")
        lines = [
            f"policy {self.policy}: {_counted(len(self.steps), 'step')} on {used} of "
            f"{_counted(len(self.devices), 'device')}, {copies} "
            f"of {format_bytes(self.nbytes_copied)}, "
            f"{_ms(self.seconds)} ms by the estimate{took}"
        ]
        if self.times_estimate is not None:
            lines.append(f"the measured steps took {self.times_estimate:.2g} times the estimate")
        if alone:
            lines.append(f"one device alone: {alone}")
        if self.ready:
            counts = ", ".join(f"{name} {done} of {count}" for name, done, count in self.ready)
            lines.append(f"compiled kernels: {counts}")
        lines += [f"without {name}, which was lost" for name in self.retried]
        lines += [f"  {each}" for each in self.work]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{str(self).splitlines()[0]}>"

    def svg(self) -> str:
        """Return the timeline as SVG: a row for each device, and one for copies."""
        rows = [*self.devices, *(["copies"] if self.copies else [])]
        end = max([self.seconds, *(each.finish for each in self.work), 1e-9])
        width, left, height = 640, 150, 26
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + left + 10}" '
            f'height="{height * len(rows) + 24}" font-family="sans-serif" font-size="11">'
        ]
        for number, name in enumerate(rows):
            top, bottom = height * number, height * (number + 1)
            parts.append(
                f'<text x="4" y="{top + 17}">{escape(name)}</text><path stroke="#ccc" '
                f'd="M{left} {bottom} H{left + width}"/>'
            )
        for each in self.work:
            if each.kind == "drop" or (each.kind == "copy" and not each.nbytes):
                continue
            row = rows.index(each.device if each.kind == "step" else "copies")
            x = left + width * each.start / end
            wide = max(width * (each.finish - each.start) / end, 1.5)
            color = "#4c78a8" if each.kind == "step" else "#f58518"
            parts.append(
                f'<rect x="{x:.1f}" y="{height * row + 3}" width="{wide:.1f}" '
                f'height="{height - 6}" fill="{color}" stroke="white"><title>{escape(str(each))}'
                "</title></rect>"
            )
        parts.append(
            f'<text x="{left}" y="{height * len(rows) + 16}">0</text>'
            f'<text x="{left + width}" y="{height * len(rows) + 16}" text-anchor="end">'
            f"{_ms(end)} ms</text></svg>"
        )
        return "".join(parts)

    def _repr_html_(self) -> str:
        return f"{self.svg()}<pre>{escape(str(self))}</pre>"


#: Steps that take this many times their estimate, or this fraction of it, refute the rates.
_DISAGREEING = 4.0

#: Shorter steps are no evidence about rates, in seconds.
_LONG = 1e-3


class Measuring:
    """Measurements that are available only after the work is done, and are read on demand.

    Args:
        found: the record.
        seconds: by number of the work, a function that reads its duration.
        doubt: called with the number of a step that took far more or less than its estimate.
    """

    def __init__(
        self,
        found: PlacedExpression,
        seconds: dict[int, Callable[[], float | None]],
        doubt: Callable[[int], None] | None = None,
    ) -> None:
        self._found = found
        self._seconds = seconds
        self._doubt = doubt

    def read(self) -> PlacedExpression:
        """Return the record with the measurements available so far."""
        if self._seconds:
            work = list(self._found.work)
            for number, read in list(self._seconds.items()):
                took = read()
                if took is not None:
                    done = work[number] = replace(work[number], measured=took)
                    del self._seconds[number]
                    if self._doubt and _disagrees(done, took):
                        self._doubt(number)
            self._found = replace(self._found, work=tuple(work))
        return self._found


def _disagrees(work: PlacedWork, took: float) -> bool:
    """Return whether a step took far more or less time than its estimate."""
    ratio = took / max(work.finish - work.start, 1e-9)
    is_near = 1 / _DISAGREEING < ratio < _DISAGREEING
    return work.kind == "step" and took > _LONG and not is_near


#: The last expressions that policies bound, the latest last.
records: deque[Measuring] = deque(maxlen=64)


def seconds_of_events(events: list[tuple[Any, Any]]) -> float | None:
    """Return the seconds of launches, each a queue and an event; ``None`` without profiling."""
    total = 0
    for queue, event in events:
        try:
            _, start, end = driver_of(queue).times(event)
            total += end - start
        except Exception:  # a queue without profiling; drivers report it in several ways
            return None
    return total * 1e-9
