"""The placement report of a function: where each step ran, which argument decided it, and why."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dparray._array.ndarray import ndarray
from dparray._functions.evaluation import eval as compute
from dparray._functions.evaluation import synchronize
from dparray._profile.html import card
from dparray._profile.recorder import Record, Recorder
from dparray.device import describe_queue
from dparray.memory.stats import format_bytes


def counted(count: int, noun: str, plural: str = "") -> str:
    """Format ``3 steps``, ``1 step``."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


@dataclass(frozen=True)
class PlacementRow:
    """One step of a function.

    Attributes:
        line: the source line of the program.
        what: the kernel, or the function of the library or of NumPy.
        operations: for an expression, the operations in its kernel.
        tier: ``"kernel"``, ``"library"``, ``"host"`` or ``"copy"``.
        reason: why no faster backend was used, or the operation that requested a copy.
        queue: the queue of the step, or of the memory in which the calling thread computed.
        decided_by: the argument of the function that is on that queue.
        usm_type: the USM type of the result, with the rule; ``""`` for user-defined kernels and
            copies.
        nbytes: bytes read and written, or copied.
        compiled: for a kernel: ``"compiled now"``, ``"loaded from disk"`` or ``"known"``.
        seconds: the duration.
    """

    line: str
    what: str
    operations: str
    tier: str
    reason: str
    queue: str
    decided_by: str
    usm_type: str
    nbytes: int
    compiled: str
    seconds: float


@dataclass(frozen=True)
class PlacementReport:
    """The steps of a function; text when printed, a table in a notebook.

    Attributes:
        function: the name of the function.
        result: its return value.
        rows: the steps, in order.
        waits: how often the host waited for work that had not finished, without waits inside dpnp
            and the last one, for the results.
    """

    function: str
    result: Any
    rows: tuple[PlacementRow, ...]
    waits: int

    @property
    def launches(self) -> int:
        """Number of kernels that were launched; a call of dpnp counts as one."""
        return sum(row.tier in ("kernel", "library") for row in self.rows)

    @property
    def reads(self) -> int:
        """Number of copies from devices to the host."""
        return sum(row.what == "copy to the host" for row in self.rows)

    @property
    def bytes_to_host(self) -> int:
        """Bytes copied from devices to the host."""
        return sum(row.nbytes for row in self.rows if row.what == "copy to the host")

    @property
    def bytes_between_queues(self) -> int:
        """Bytes copied between queues."""
        return sum(row.nbytes for row in self.rows if row.what == "copy to another queue")

    def __str__(self) -> str:
        lines = [
            f"{self.function}: {counted(len(self.rows), 'step')}, "
            f"{counted(self.launches, 'launch', 'launches')}, {counted(self.reads, 'read')}, "
            f"{counted(self.waits, 'wait')}; {format_bytes(self.bytes_to_host)} to the host, "
            f"{format_bytes(self.bytes_between_queues)} between queues"
        ]
        for number, row in enumerate(self.rows, 1):
            state = f", {row.compiled}" if row.compiled else ""
            lines.append(
                f"{number}. {row.line or '?'}  {row.what} ({row.tier}{state}), "
                f"{format_bytes(row.nbytes)}, {row.seconds * 1e3:.3f} ms"
            )
            if row.operations:
                lines.append(f"   computes {row.operations}")
            if row.queue:
                lines.append(f"   on {row.queue}, {row.decided_by}")
            if row.usm_type:
                lines.append(f"   result in {row.usm_type}")
            if row.reason:
                lines.append(f"   because {row.reason}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        heads = ("line", "what", "tier", "where", "result", "bytes", "why")
        rows = [
            (
                row.line,
                row.operations or row.what,
                f"{row.tier}, {row.compiled}" if row.compiled else row.tier,
                f"{row.queue}, {row.decided_by}" if row.queue else "",
                row.usm_type,
                format_bytes(row.nbytes),
                row.reason,
            )
            for row in self.rows
        ]
        return card(f"Placement of {self.function}", heads, rows)


def explain_function(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> PlacementReport:
    """Run a function, compute its results, and report each step."""
    named = _arguments(function, args, kwargs)
    recorder = Recorder()
    recorder.start()
    try:
        result = function(*args, **kwargs)
        for x in arrays_in(result):
            compute(x)
        computed = recorder.now() - recorder.began
        for x in arrays_in(result):
            synchronize(x)
    finally:
        recorder.stop()
    rows = []
    states: dict[str, str] = {}
    records = sorted(recorder.records(), key=lambda record: record.asked)
    for record in records:
        if record.kind == "compile":
            name, _, how = record.name.partition(" (")
            if how != "by the driver)":
                states[name] = how.rstrip(")") or "compiled now"
        elif record.kind in ("kernel", "library", "host", "copy"):
            rows.append(_row(record, states, named))
    name = getattr(function, "__name__", type(function).__name__)
    waits = sum(record.kind == "wait" and record.asked < computed for record in records)
    return PlacementReport(name, result, tuple(rows), waits)


def _row(record: Record, states: dict[str, str], named: dict[str, Any]) -> PlacementRow:
    what = f"copy {record.name}" if record.kind == "copy" else record.name
    compiled = states.pop(record.name, "known") if record.kind == "kernel" else ""
    return PlacementRow(
        record.line,
        what,
        record.operations,
        record.kind,
        record.because,
        record.queue,
        _decided_by(record.queue, named),
        record.usm_type,
        record.nbytes,
        compiled,
        record.duration,
    )


def _decided_by(queue: str, named: dict[str, Any]) -> str:
    for name, value in named.items():
        for x in arrays_in(value):
            if describe_queue(x.queue) == queue:
                return f"the queue of argument {name!r}"
    return "the default device, or one named in the function"


def _arguments(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    try:
        return dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return {str(index): value for index, value in enumerate(args)} | dict(kwargs)


def arrays_in(value: Any) -> list[ndarray]:
    """Return the arrays in nested tuples, lists and dicts."""
    if isinstance(value, ndarray):
        return [value]
    if isinstance(value, list | tuple):
        return [x for part in value for x in arrays_in(part)]
    if isinstance(value, dict):
        return arrays_in(list(value.values()))
    return []
