"""A scheduling problem in numbers: tasks and their values, devices, links between places.

A *place* is memory that holds values; the first places are those of the *devices*, which compute.
This module does not use SYCL, so schedules are computed and tested on the host alone.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple


class Link(NamedTuple):
    """The link from one place to another.

    Attributes:
        latency: the fixed seconds per copy.
        bandwidth: the bytes per second after that.
        channel: copies through one channel run one after another; a negative number means that the
            memory is shared and nothing is copied.
    """

    latency: float = 0.0
    bandwidth: float = inf
    channel: int = -1

    def seconds(self, nbytes: float) -> float:
        """Return the seconds for a copy of this many bytes."""
        return 0.0 if self.channel < 0 else self.latency + nbytes / self.bandwidth


class Machine(NamedTuple):
    """Devices, and places for values.

    Attributes:
        ready: for each device the time from which it is free.
        links: from each place (row) to each place (column).
        memory: the free bytes of each place.
    """

    ready: tuple[float, ...]
    links: tuple[tuple[Link, ...], ...]
    memory: tuple[float, ...]

    @property
    def is_limited(self) -> bool:
        """Whether the memory of any place is limited."""
        return min(self.memory) < inf


class Value(NamedTuple):
    """A value that tasks read or write.

    Attributes:
        nbytes: its size.
        home: the place where it is stored initially; ``None`` for the result of a task.
        wanted: the place where it is needed at the end, if any.
    """

    nbytes: float
    home: int | None = None
    wanted: int | None = None


class Task(NamedTuple):
    """A step of a plan.

    Attributes:
        reads, writes: the numbers of values.
        seconds: its time on each device; ``inf`` if the device cannot compute it.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    seconds: tuple[float, ...]


class Problem(NamedTuple):
    """Tasks in an order in which each follows the tasks whose values it reads, and a machine."""

    tasks: tuple[Task, ...]
    values: tuple[Value, ...]
    machine: Machine


class Step(NamedTuple):
    """A task with its device and times.

    Attributes:
        task: its number.
        device: its device.
        start, finish: its times.
        alternatives: for each device, the time when the task would have been finished there, with
            its result where it is needed at the end.
    """

    task: int
    device: int
    start: float
    finish: float
    alternatives: tuple[float, ...]


class Copy(NamedTuple):
    """A value that is copied to another place.

    Attributes:
        value: its number.
        source, target: places.
        start, finish: its times.
        nbytes: its size; 0 if the memory is shared.
        because: ``"operand"``, ``"result"``, or ``"room"`` for a value that is moved to free
            memory.
    """

    value: int
    source: int
    target: int
    start: float
    finish: float
    nbytes: float
    because: str


class Drop(NamedTuple):
    """A value whose memory at a place is freed for others.

    Attributes:
        value: its number.
        place: the place; another place has the value, too.
        start: the time.
    """

    value: int
    place: int
    start: float


class Schedule(NamedTuple):
    """Steps, copies and drops in order of submission.

    Attributes:
        actions: all of them.
        finish: the time when everything is done, with results at their final places.
        assigned: the device of each task.
    """

    actions: tuple[Step | Copy | Drop, ...]
    finish: float
    assigned: tuple[int, ...]

    @property
    def steps(self) -> list[Step]:
        """The steps, in order."""
        return [action for action in self.actions if type(action) is Step]

    @property
    def copies(self) -> list[Copy]:
        """The copies, in order; where memory is shared, without bytes."""
        return [action for action in self.actions if type(action) is Copy]


class NoRoom(Exception):
    """Raised if no device has enough memory for a task.

    Attributes:
        task: its number; ``None`` for a result that does not fit in its final place.
        values: the numbers of the values that must be there together.
        devices: the devices that could compute it.
    """

    def __init__(self, task: int | None, values: tuple[int, ...], devices: tuple[int, ...]) -> None:
        super().__init__(task, values, devices)
        self.task = task
        self.values = values
        self.devices = devices


class NoDevice(Exception):
    """Raised if no device can compute a task, or a value is not reachable.

    Attributes:
        task: its number.
    """

    def __init__(self, task: int) -> None:
        super().__init__(task)
        self.task = task
