"""Record all hook events cheaply, and sort them out afterward."""

from __future__ import annotations

import threading
import time
import weakref
from dataclasses import dataclass
from typing import Any

from dparray import _hooks
from dparray._driver import driver_of
from dparray._graph.node import Node, pending_order
from dparray._hooks import Line, line_of, line_text
from dparray._placement import usm_rule
from dparray._runtime import profiled
from dparray._runtime.packing import arrays_of
from dparray.device import describe_queue


@dataclass(frozen=True)
class Record:
    """A record of one event.

    Attributes:
        kind: ``"kernel"``, ``"library"`` (a dpnp kernel), ``"host"`` (NumPy on the calling thread),
            ``"copy"``, ``"allocate"``, ``"compile"``, ``"wait"`` or ``"map"``.
        name: the name of the kernel or function, or a description of the work.
        queue: a readable name; ``""`` without a queue.
        line: ``"file.py:12"`` of the program; ``""`` if no line of it requested the work.
        start: seconds since the profile began.
        duration: seconds; measured by the device if it has times.
        nbytes: bytes read and written, copied, or allocated.
        clock: ``"device"`` or ``"host"``, the source of the times.
        thread: the name of the thread.
        operations: the operations of an expression's kernel.
        asked: seconds from the start of the profile to the submission by the host.
        in_use: for allocations, the bytes in use at that time.
        usm_type: the USM type of the result, with the rule behind it; ``""`` if there is none.
        because: why no generated kernel was used, or the operation that requested a copy.
    """

    kind: str
    name: str
    queue: str
    line: str
    start: float
    duration: float
    nbytes: int
    clock: str = "host"
    thread: str = ""
    operations: str = ""
    asked: float = 0.0
    in_use: int = 0
    usm_type: str = ""
    because: str = ""


class _Raw:
    """A raw record; its SYCL events are read later."""

    __slots__ = (
        "asked",
        "because",
        "driver_event",
        "end",
        "ends",
        "in_use",
        "kind",
        "line",
        "name",
        "nbytes",
        "operations",
        "queue",
        "start",
        "thread",
        "usm_type",
    )  # fmt: skip

    def __init__(self, kind: str, name: str, queue: Any, line: Line | None, start: float) -> None:
        self.kind, self.name, self.queue, self.line = kind, name, queue, line
        self.start = self.asked = start
        self.end = time.perf_counter()
        self.nbytes = self.in_use = 0
        self.operations = self.usm_type = self.because = ""
        self.driver_event: Any = None
        self.ends: Any = None  # the events between which the work ran
        self.thread = threading.current_thread().name


class _Thread(threading.local):
    """The state of one thread."""

    def __init__(self) -> None:
        self.evaluated: tuple[Any, Line | None, str, str] = (None, None, "", "")
        self.begun: list[tuple[Any, list[_Raw]]] = []  # open records, and the work inside each
        self.open_host: _Raw | None = None


class Recorder:
    """Recorder of events in one or all threads, between :meth:`start` and :meth:`stop`.

    Args:
        thread: the only thread to record, as an identifier of ``threading``.
    """

    def __init__(self, thread: int | None = None) -> None:
        self.began = time.perf_counter()
        self.ended: float | None = None
        self.made: list[weakref.ref[Any]] = []  # the arrays that became pending
        self._only = thread
        self._raw: list[_Raw] = []
        self._lines: weakref.WeakKeyDictionary[Node, Line | None] = weakref.WeakKeyDictionary()
        self._sizes: dict[int, int] = {}  # size in bytes by address
        self._local = _Thread()
        self._records: list[Record] = []
        self.queues: dict[str, Any] = {}  # queues with launches, by description

    def now(self) -> float:
        """Return the time on the records' clock."""
        return time.perf_counter()

    def start(self) -> None:
        """Start recording."""
        profiled.start()
        _hooks.trace(True)
        _hooks.subscribers.append(self._note)
        self.began = time.perf_counter()

    def stop(self) -> None:
        """Stop recording."""
        self.ended = time.perf_counter()
        _hooks.subscribers.remove(self._note)
        _hooks.trace(False)
        profiled.stop()

    # -- recording ---------------------------------------------------------------------------------

    def _note(self, event: str, **values: Any) -> None:
        if self._only is not None and threading.get_ident() != self._only:
            return
        note = getattr(self, "_on_" + event, None)
        if note is None:
            return
        local = self._local
        if local.open_host is not None:
            local.open_host.end = time.perf_counter()
            local.open_host = None
        note(local, _hooks.user_frame(), **values)

    def _add(
        self, kind: str, name: str, queue: Any, frame: Any, start: float | None, nbytes: int = 0
    ) -> _Raw:
        now = time.perf_counter() if start is None else start
        raw = _Raw(kind, name, queue, line_of(frame), now)
        raw.nbytes = nbytes
        self._raw.append(raw)
        return raw

    def _on_defer(self, local: _Thread, frame: Any, array: Any) -> None:
        self._lines[array._node_kept] = line_of(frame)
        self.made.append(weakref.ref(array))

    def _on_evaluate(self, local: _Thread, frame: Any, nodes: Any) -> None:
        if not nodes:
            return
        order = pending_order(nodes)
        line = next(
            (known for node in (*nodes, *reversed(order)) if (known := self._lines.get(node))),
            line_of(frame),
        )
        for node in order:
            for part in node.operands:
                if type(part) is Node and part.layout is not None and part.layout.block.memory:
                    address = part.layout.block.pointer + part.layout.offset
                    self._sizes[address] = part.size * part.dtype.itemsize
        names = [node.op.name for node in order if node.op is not None]
        shown = ", ".join(names[:6]) + (f", {len(names) - 6} more" if len(names) > 6 else "")
        local.evaluated = (_site_of(frame), line, shown, _usm_rule(nodes[-1], order))

    def _on_launch(self, local: _Thread, frame: Any, **values: Any) -> None:
        queue = values["queue"]
        raw = self._add("kernel", values["kernel"].name, queue, frame, values["start"])
        self._seen(queue)
        site, line, operations, usm_type = local.evaluated
        if site is not None and site == _site_of(frame) and raw.name.startswith("fused"):
            raw.line, raw.operations, raw.usm_type = line, operations, usm_type
        raw.nbytes = self._bytes_of(values["arguments"])
        if profiled.timed(queue) is not None:
            raw.driver_event = values["driver_event"]

    def _seen(self, queue: Any) -> None:
        if queue not in self.queues.values():
            self.queues[describe_queue(queue)] = queue

    def _bytes_of(self, arguments: Any) -> int:
        """Return bytes of the arrays of a launch, each counted once."""
        total = {}
        for address, nbytes in arrays_of(arguments):
            total[address] = min(nbytes, self._sizes.get(address, nbytes))
        return sum(total.values())

    def _on_begin(self, local: _Thread, frame: Any, queue: Any) -> None:
        local.begun.append((_mark(queue), []))

    def _on_library(
        self,
        local: _Thread,
        frame: Any,
        function: str,
        queue: Any,
        start: float,
        nbytes: int = 0,
        because: str = "",
        usm_type: str = "",
    ) -> None:
        begun, inside = local.begun.pop() if local.begun else (None, [])
        self._seen(queue)
        if inside:  # Its operations are recorded separately, and time is counted once.
            records = inside
        else:
            records = [self._add("library", function, queue, frame, start, nbytes)]
            if begun is not None:
                records[0].ends = (begun, _mark(queue))
        for raw in records:
            raw.because, raw.usm_type = raw.because or because, raw.usm_type or usm_type
        site, line, operations, usm_type = local.evaluated
        if function == "an expression" and site is not None and site == _site_of(frame):
            for raw in records:
                raw.line, raw.usm_type = line, usm_type
                raw.operations = raw.operations or (raw.name if inside else operations)
        if local.begun:
            local.begun[-1][1].extend(records)

    def _on_host(
        self,
        local: _Thread,
        frame: Any,
        queue: Any,
        function: str | None = None,
        start: float | None = None,
        nbytes: int = 0,
        because: str = "",
        usm_type: str = "",
    ) -> None:
        name = function
        if name is None:
            name = _hooks.public_name()
        raw = self._add("host", name, queue, frame, start, nbytes)
        raw.because, raw.usm_type = because, usm_type
        site, line, _, rule = local.evaluated
        if function is not None and not usm_type and site is not None and site == _site_of(frame):
            raw.line, raw.usm_type = line, rule
        if start is None:
            local.open_host = raw

    def _on_end(self, local: _Thread, frame: Any, queue: Any) -> None:
        pass  # Open records are closed.

    def _on_copy(
        self,
        local: _Thread,
        frame: Any,
        source: Any,
        target: Any,
        nbytes: int,
        start: float | None = None,
        driver_event: Any = None,
    ) -> None:
        name = "to the host" if target == "host" else "to another queue"
        if source == "host":
            name = "to the device"
        asked = _hooks.public_name()
        queue = source if target == "host" else target
        raw = self._add("copy", name, queue, frame, start, nbytes)
        raw.because = f"asked for by {asked}" if asked else ""
        if driver_event is not None and profiled.timed(target) is not None:
            raw.driver_event = driver_event

    def _on_allocate(self, local: _Thread, frame: Any, **values: Any) -> None:
        name = f"{values['usm_type']}, {'from the pool' if values['hit'] else 'from the driver'}"
        raw = self._add("allocate", name, values["queue"], frame, None, values["asked"])
        raw.in_use = values["in_use"]
        self._sizes[values["pointer"]] = values["asked"]

    def _on_compile(self, local: _Thread, frame: Any, **values: Any) -> None:
        how = "" if values["origin"] == "compiled" else " (loaded from disk)"
        start = time.perf_counter() - values["seconds"]
        self._add("compile", values["kernel"].name + how, None, frame, start)

    def _on_build(self, local: _Thread, frame: Any, kernel: Any, queue: Any, start: float) -> None:
        self._add("compile", f"{kernel.name} (by the driver)", queue, frame, start)

    def _on_wait(self, local: _Thread, frame: Any, queue: Any, start: float) -> None:
        self._add("wait", "for the queue", queue, frame, start)

    def _on_map(self, local: _Thread, frame: Any, **values: Any) -> None:
        how = "staged" if values["staged"] else "no copy"
        name = f"{values['mode']!r}, {how}"
        self._add("map", name, values["queue"], frame, values["start"], values["nbytes"])

    def pending(self) -> list[Any]:
        """Return the arrays created during the recording that are still referenced and not yet
        computed.
        """
        held = [array for reference in self.made if (array := reference()) is not None]
        return [array for array in held if array.is_pending]

    # -- results -----------------------------------------------------------------------------------

    def records(self) -> list[Record]:
        """Return the records so far, by start time; waits for work with unknown times."""
        raw, self._raw = self._raw, []
        if raw:
            offsets = _offsets(raw)
            self._records += [self._finished(each, offsets) for each in raw]
            self._records.sort(key=lambda record: record.start)
        return self._records

    def _finished(self, raw: _Raw, offsets: dict[Any, float]) -> Record:
        start, end, clock = raw.start, raw.end, "host"
        offset = offsets.get(raw.queue, 0.0)
        if raw.driver_event is not None:
            _, began, ended = driver_of(raw.queue).times(raw.driver_event)
            start, end, clock = began * 1e-9 + offset, ended * 1e-9 + offset, "device"
        elif raw.ends is not None:
            first, last = raw.ends
            times = driver_of(raw.queue).times
            begun = max(times(first)[2] * 1e-9 + offset, raw.start)
            end = max(times(last)[2] * 1e-9 + offset, begun)
            start, clock = begun, "device"
        return Record(
            raw.kind,
            raw.name,
            "" if raw.queue is None else describe_queue(raw.queue),
            line_text(raw.line),
            start - self.began,
            end - start,
            raw.nbytes,
            clock,
            raw.thread,
            raw.operations,
            raw.asked - self.began,
            raw.in_use,
            raw.usm_type,
            raw.because,
        )


def _usm_rule(root: Node, order: list[Node]) -> str:
    """Return the USM type of a result, and the rule behind it."""
    inputs = {
        part.usm_type
        for node in order
        for part in node.operands
        if type(part) is Node and part.layout is not None
    }
    return usm_rule(root.usm_type, inputs)


def _site_of(frame: Any) -> Any:
    """Return an identifier of the program's current call."""
    return None if frame is None else (id(frame), frame.f_lasti)


def _mark(queue: Any) -> Any:
    """Return an event with a time, after all submitted work; ``None`` without times."""
    timed = profiled.timed(queue)
    driver = driver_of(queue)
    if timed is None or driver.is_in_order(queue):
        return None
    with driver.foreign_calls(queue):
        return driver.barrier(timed, driver.order_of(queue).submitted_events)


def _offsets(raw: list[_Raw]) -> dict[Any, float]:
    """Return how far the host's clock is ahead of the device's, for each queue."""
    offsets: dict[Any, float] = {}
    for record in raw:
        if record.driver_event is not None:
            submitted, _, _ = driver_of(record.queue).times(record.driver_event)
            ahead = record.asked - submitted * 1e-9
            offsets[record.queue] = max(offsets.get(record.queue, ahead), ahead)
    # If both are the same clock, the device's queue reads it slightly later.
    return {queue: 0.0 if abs(ahead) < 0.1 else ahead for queue, ahead in offsets.items()}
