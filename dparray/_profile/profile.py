"""Profiles: the work, its duration, its device, and its share of the memory bandwidth."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import dparray._functions.creation as creation
from dparray import _hooks
from dparray._evaluate import timing
from dparray._functions.evaluation import eval as compute
from dparray._layout import Layout
from dparray._profile import timeline
from dparray._profile.html import card
from dparray._profile.recorder import Record, Recorder
from dparray._profile.report import counted
from dparray.exceptions import ArgumentError
from dparray.memory.stats import format_bytes

__all__ = ["Profile", "Record", "profile"]

#: Rows of the printed table; the others are summed in one line.
MAX_ROWS = 30
_PROCESS = 1  # of a trace
_MEASURED = 1 << 24  # number of elements of the arrays for the bandwidth measurement


class Row(NamedTuple):
    """One row of the table: all records with the same name and line.

    Attributes:
        kind, name, line, operations: as in a :class:`Record`.
        calls: the number of records.
        total, mean: seconds.
        nbytes: bytes of all records.
        bandwidth: bytes per second; ``None`` if bytes or time are unknown.
        share: the share of the bandwidth measured on the device; ``None`` for work outside the
            device.
        clock: ``"device"`` or ``"host"``.
        queue: a readable name; ``""`` without a queue.
    """

    kind: str
    name: str
    line: str
    operations: str
    calls: int
    total: float
    mean: float
    nbytes: int
    bandwidth: float | None
    share: float | None
    clock: str
    queue: str


class Profile:
    """The work of a ``with`` block, in all threads; created by :func:`profile`.

    It prints as a table; in a notebook, as a table with a timeline.
    """

    def __init__(self) -> None:
        self._recorder = Recorder()
        self._is_entered = False

    def __enter__(self) -> Profile:
        if self._is_entered:
            raise ArgumentError(
                "profile: this profile has ended; create a new one: with dp.profile() as p"
            )
        self._is_entered = True
        self._recorder.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._recorder.stop()

    @property
    def seconds(self) -> float:
        """The duration of the block."""
        recorder = self._recorder
        ended = recorder.ended
        return (recorder.now() if ended is None else ended) - recorder.began

    @property
    def pending(self) -> tuple[Any, ...]:
        """The arrays created in the block that are still referenced and not yet computed."""
        return tuple(self._recorder.pending())

    @property
    def events(self) -> tuple[Record, ...]:
        """The records, by start time; waits for work with unknown times."""
        return tuple(self._recorder.records())

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of the table: records with the same kind, name and line, the longest first."""
        groups: dict[Any, list[Record]] = {}
        for event in self.events:
            key = (event.kind, event.name, event.line, event.operations, event.clock, event.queue)
            groups.setdefault(key, []).append(event)
        rows = [self._row(records) for records in groups.values()]
        return tuple(sorted(rows, key=lambda row: -row.total))

    def _row(self, records: list[Record]) -> Row:
        first = records[0]
        kind, name, line, operations = first.kind, first.name, first.line, first.operations
        clock, queue = first.clock, first.queue
        total = sum(record.duration for record in records)
        nbytes = sum(record.nbytes for record in records)
        moves = kind in ("kernel", "library", "host", "copy") and nbytes and total > 0
        bandwidth = nbytes / total if moves else None
        share = None
        if bandwidth is not None and clock == "device":
            known = self._recorder.queues.get(queue)
            speed = None if known is None else bandwidth_of(known)
            share = None if speed is None else bandwidth / speed
        count = len(records)
        mean = total / count
        return Row(
            kind, name, line, operations, count, total, mean, nbytes, bandwidth, share, clock, queue
        )

    def __str__(self) -> str:
        return self.text()

    def text(self, max_rows: int = MAX_ROWS) -> str:
        """Return the table as text: the longest rows, and the notes below it."""
        heads, shown = self._table()
        if not shown:
            nothing = "nothing ran: no kernel, no copy, no host work"
            return "\n".join([nothing, *self._foot()])
        left_out = len(shown) - max_rows
        if left_out > 0:
            shown = shown[:max_rows]
            rows = [row for row in self.rows if row.kind != "allocate"]
            rest = sum(row.total for row in rows[max_rows:])
            more = f"{left_out} more rows of {rest * 1e3:.1f} ms together; p.rows has all"
        cells = [heads, *shown]
        texts = len(heads) - _NUMBERS
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(
                (text.ljust if column < texts else text.rjust)(width)
                for column, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in cells
        ]
        if left_out > 0:
            lines.append(more)
        return "\n".join([*lines, *self._foot()])

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return headers and cells; with the queues if there are several."""
        rows = [row for row in self.rows if row.kind != "allocate"]
        if len({row.queue for row in rows if row.queue}) < 2:
            return _HEADS, [*map(_cells, rows)]
        cells = []
        for row in rows:
            what, line, *numbers = _cells(row)
            cells.append((what, line, row.queue.removesuffix(", default queue"), *numbers))
        return (*_HEADS[:2], "queue", *_HEADS[2:]), cells

    def _foot(self) -> list[str]:
        """Return the notes that are printed below the table."""
        events = self.events
        allocations = [event for event in events if event.kind == "allocate"]
        peak = max((event.in_use for event in allocations), default=0)
        fresh = sum(event.name.endswith("driver") for event in allocations)
        lines = []
        if pending := self.pending:
            many = len(pending) > 1
            lines.append(
                f"{len(pending)} array{'s' * many} built in the block {'are' if many else 'is'} "
                "still pending, and their work is not in the table: dp.eval(y) in the block "
                "computes y"
            )
        lines += [
            f"{self.seconds * 1e3:.1f} ms; {counted(len(allocations), 'allocation')}, {fresh} from "
            f"the driver, at most {format_bytes(peak)} in use"
        ]
        for name, queue in self._recorder.queues.items():
            busy = sum(
                event.duration
                for event in events
                if event.clock == "device"
                and event.queue == name
                and event.kind in ("kernel", "library", "copy")
            )
            text = f"{name}: device times of {busy * 1e3:.1f} ms"
            if any(
                event.queue == name and event.kind == "kernel" and event.clock == "host"
                for event in events
            ):
                text = f"{name}: times measured by the host (an in-order queue collects none)"
            elif any(row.share is not None for row in self.rows):
                speed = bandwidth_of(queue)
                if speed is not None:
                    text += (
                        f"; 100 % is {speed / 1e9:.1f} GB/s, measured there on arrays beyond its "
                        "caches"
                    )
            lines.append(text)
        return lines

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        foot = "<br>".join(map(escape, self._foot()))
        return card("Profile", *self._table(), foot, self.plot().svg)

    def plot(self) -> timeline.Timeline:
        """Return a timeline by queue and thread, with the memory in use below it.

        A notebook shows it as a picture; ``p.plot().save("run.svg")`` writes it to a file.
        """
        return timeline.Timeline(self.events, self.seconds)

    def to_chrome_trace(self, path: str | Path) -> None:
        """Write a trace that Perfetto (ui.perfetto.dev) and ``chrome://tracing`` open.

        Example:
            >>> import pathlib, tempfile
            >>> with dp.profile() as p:
            ...     y = (dp.ones(100_000) + 1).asnumpy()
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     p.to_chrome_trace(pathlib.Path(folder) / "trace.json")
        """
        events = self.events
        trace: list[dict[str, Any]] = [
            {"ph": "M", "name": "process_name", "pid": _PROCESS, "args": {"name": "dparray"}}
        ]
        # A thread with the process's number would be shown as the main thread.
        for number, (row, records) in enumerate(timeline.lanes_of(events), _PROCESS + 1):
            about = {"ph": "M", "pid": _PROCESS, "tid": number}
            trace.append({**about, "name": "thread_name", "args": {"name": row}})
            trace.append({**about, "name": "thread_sort_index", "args": {"sort_index": number}})
            trace += [_span(record, number) for record in records]
        trace += [
            {
                "ph": "C",
                "name": "memory in use",
                "pid": _PROCESS,
                "ts": event.start * 1e6,
                "args": {"bytes": event.in_use},
            }
            for event in events
            if event.kind == "allocate"
        ]
        Path(path).write_text(json.dumps({"traceEvents": trace, "displayTimeUnit": "ms"}))


def _span(record: Record, row: int) -> dict[str, Any]:
    """Return a record as a complete event of a trace, in microseconds."""
    about = {"line": record.line, "bytes": record.nbytes, "operations": record.operations}
    return {
        "ph": "X",
        "name": record.name,
        "cat": record.kind,
        "pid": _PROCESS,
        "tid": row,
        "ts": record.start * 1e6,
        "dur": record.duration * 1e6,
        "args": {name: value for name, value in about.items() if value},
    }


_HEADS = ("what", "line", "calls", "total", "mean", "bytes", "GB/s", "% of peak")
_NUMBERS = 6


def _cells(row: Row) -> tuple[str, ...]:
    name = row.name if row.kind in ("kernel", "library") else f"{row.kind}: {row.name}"
    if len(name) > 48:
        name = name[:45] + "..."
    bandwidth = "" if row.bandwidth is None else f"{row.bandwidth / 1e9:.2f}"
    share = "" if row.share is None else f"{row.share * 100:.0f} %"
    size = format_bytes(row.nbytes) if row.nbytes else ""
    return name, row.line, str(row.calls), _time(row.total), _time(row.mean), size, bandwidth, share


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.1f} us"


_bandwidths: dict[Any, float] = {}


def bandwidth_of(queue: Any) -> float | None:
    """Measure the bytes per second that an element-wise kernel reads and writes on a device, the
    best of six.

    Measured once for each queue, on arrays of 64 MiB, and not recorded by any active profile;
    ``None`` if these arrays do not fit into the free memory.
    """
    if queue not in _bandwidths:
        try:
            with _hooks.events_disabled():
                x = creation.ones(_MEASURED, dtype="float32", sycl_queue=queue)
                compute(x)
                layout = Layout(x.block, x.offset, x.shape, x.strides, x.dtype)
                run = timing.addition(queue, layout)
                run()  # The first run compiles, and accesses the memory for the first time.
                _bandwidths[queue] = 8 * _MEASURED / timing.least(run, 6)
        except MemoryError:
            return None
    return _bandwidths[queue]


def profile() -> Profile:
    """Record the work in a ``with`` block: kernels, copies, allocations, compiles, waits, maps and
    host work, with the source lines that requested it.

    Device times come from profiling queues, which replace the arrays' queues in the block; results
    are the same, and arrays stay on their queues. In-order queues, and drivers without times, are
    timed by the host, and the table marks them. Blocks may be nested, and record the work of all
    threads. Expressions still pending at the end of the block are not computed, and the table lists
    them.

    Inside the block, the calling thread takes longer: 12 us for a launch, 65 us for an evaluated
    expression, 5 us for a deferred operation; 8 us for an operation on small arrays. Outside, no
    overhead was measurable compared with a build without the hooks.

    Returns:
        A :class:`Profile`: printed, a table by kernel and line with the achieved bandwidth as a
        share of the device's measured bandwidth; ``p.events``, ``p.rows``, ``p.plot()``,
        ``p.to_chrome_trace(path)``.

    Example:
        >>> x = dp.linspace(0, 1, 1_000_000)
        >>> dp.synchronize(dp.eval(x))
        >>> with dp.profile() as p:
        ...     total = float((x * 2).sum())
        >>> work = [event for event in p.events if event.kind in ("kernel", "library", "host")]
        >>> len(work) > 0, all(0 < event.duration < p.seconds for event in work)
        (True, True)
    """
    return Profile()
