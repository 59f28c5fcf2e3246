"""A scheduling problem in numbers: tasks and their values, devices, the links between places.

A *place* is memory that values lie in, and the first places are those of the *devices*, which
compute. Nothing here knows of SYCL, so schedules are found and tested on the host alone.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple


class Link(NamedTuple):
    """The way from one place to another.

    Attributes:
        latency: seconds that any copy takes.
        bandwidth: bytes per second after that.
        channel: copies through one channel follow each other; below zero the memory is shared, and
            nothing is copied.
    """

    latency: float = 0.0
    bandwidth: float = inf
    channel: int = -1

    def seconds(self, nbytes: float) -> float:
        """Return the seconds of a copy of so many bytes."""
        return 0.0 if self.channel < 0 else self.latency + nbytes / self.bandwidth


class Machine(NamedTuple):
    """Devices, and the places of values.

    Attributes:
        ready: for each device the time from which on it is free.
        links: from each place (row) to each place.
        memory: for each place the free bytes.
    """

    ready: tuple[float, ...]
    links: tuple[tuple[Link, ...], ...]
    memory: tuple[float, ...]

    @property
    def is_limited(self) -> bool:
        """Whether any place may get full."""
        return min(self.memory) < inf


class Value(NamedTuple):
    """A value that tasks read or write.

    Attributes:
        nbytes: its size.
        home: the place where it lies before; ``None`` for what a task writes.
        wanted: the place where it is needed in the end, if any.
    """

    nbytes: float
    home: int | None = None
    wanted: int | None = None


class Task(NamedTuple):
    """A step of a plan.

    Attributes:
        reads, writes: the numbers of values.
        seconds: what it takes on each device; ``inf`` where it cannot be computed.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    seconds: tuple[float, ...]


class Problem(NamedTuple):
    """Tasks in an order in which each comes after those whose values it reads, and a machine."""

    tasks: tuple[Task, ...]
    values: tuple[Value, ...]
    machine: Machine


class Step(NamedTuple):
    """A task with its device and times.

    Attributes:
        task: its number.
        device: where.
        start, finish: when.
        alternatives: for each device when the task would have been finished there, and its result
            where it is needed in the end, when this one was chosen.
    """

    task: int
    device: int
    start: float
    finish: float
    alternatives: tuple[float, ...]


class Copy(NamedTuple):
    """A value that goes to another place.

    Attributes:
        value: its number.
        source, target: places.
        start, finish: when.
        nbytes: how many; none where the memory is shared.
        because: ``"operand"``, ``"result"``, or ``"room"`` for a value that makes room for others.
    """

    value: int
    source: int
    target: int
    start: float
    finish: float
    nbytes: float
    because: str


class Drop(NamedTuple):
    """A value whose memory at a place is given back, because others need it.

    Attributes:
        value: its number.
        place: where; another place has it too.
        start: when.
    """

    value: int
    place: int
    start: float


class Schedule(NamedTuple):
    """Steps, copies and drops in the order in which they are submitted.

    Attributes:
        actions: all of them.
        finish: when everything is done, the results where they are wanted.
        assigned: for each task its device.
    """

    actions: tuple[Step | Copy | Drop, ...]
    finish: float
    assigned: tuple[int, ...]

    @property
    def steps(self) -> list[Step]:
        """The steps, in order."""
        return [each for each in self.actions if type(each) is Step]

    @property
    def copies(self) -> list[Copy]:
        """The copies, in order; where memory is shared, without bytes."""
        return [each for each in self.actions if type(each) is Copy]


class NoRoom(Exception):
    """No device has the memory for a task.

    Attributes:
        task: its number; ``None`` for a result that does not fit where it is wanted.
        values: the numbers of the values that must be there together.
        devices: those that could compute it.
    """

    def __init__(self, task: int | None, values: tuple[int, ...], devices: tuple[int, ...]) -> None:
        super().__init__(task, values, devices)
        self.task = task
        self.values = values
        self.devices = devices


class NoDevice(Exception):
    """No device can compute a task, or a value lies at no place that can be reached.

    Attributes:
        task: its number.
    """

    def __init__(self, task: int) -> None:
        super().__init__(task)
        self.task = task
