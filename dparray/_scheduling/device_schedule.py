"""The schedule of tasks that are assigned to devices one after the other.

A task goes to the device that finishes it first, into the earliest sufficient gap. This is the
insertion of Topcuoglu, Hariri and Wu, "Performance-effective and low-complexity task scheduling for
heterogeneous computing", 2002. Copies wait for their channel as tasks do for their device. At a
place with limited memory, tasks run one after another without gaps, and values that are needed
later make room for those needed now: a second copy is dropped, or they are copied to a place with
free memory.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from dparray._scheduling.problem import (
    Copy,
    Drop,
    NoDevice,
    NoRoom,
    Problem,
    Schedule,
    Step,
)

Busy = list[tuple[float, float]]


def build(
    problem: Problem,
    order: Sequence[int],
    fixed: Sequence[int] | None = None,
    compares: bool = False,
) -> Schedule:
    """Return the schedule of tasks in a given order.

    Args:
        problem: the tasks and the machine.
        order: the numbers of the tasks, each after those whose values it reads.
        fixed: the device of each task; by default the one that finishes it first.
        compares: whether to also try the other devices, for the alternatives of the steps.

    Raises:
        NoDevice: no device can compute a task.
        NoRoom: no device has enough memory for a task.
    """
    timeline = _Timeline(problem)
    for number in order:
        timeline.add(number, None if fixed is None else fixed[number], compares)
    return timeline.finished()


def earliest(busy: Busy, ready: float, seconds: float) -> float:
    """Return the earliest start, from ``ready`` on, of a gap of this many seconds."""
    if not busy or busy[-1][1] <= ready:
        return ready
    place = bisect_left(busy, (ready,))
    start = max(ready, busy[place - 1][1]) if place else ready
    for position in range(place, len(busy)):
        begin, end = busy[position]
        if start + seconds <= begin:
            return start
        if end > start:
            start = end
    return start


class _Trial(NamedTuple):
    """A trial: one task on one device."""

    finish: float
    start: float = 0.0
    copies: tuple[Copy, ...] = ()


class _Timeline:
    """Devices and channels with their occupancy, and the places of values with times."""

    def __init__(self, problem: Problem) -> None:
        tasks, values, machine = problem
        self.tasks, self.values = tasks, values
        self.ready, self.links, self.memory = machine
        self.is_limited = machine.is_limited
        self.busy: list[Busy] = [[] for _ in self.ready]
        self.channels: dict[int, Busy] = {}
        self.at: list[dict[int, float]] = [
            {} if value.home is None else {value.home: 0.0} for value in values
        ]
        self.actions: list[tuple[float, int, Step | Copy | Drop]] = []
        # The time when a value was last dropped at a place: it cannot return before.
        self.dropped: dict[tuple[int, int], float] = {}
        self.assigned = [0] * len(tasks)
        self.finish = 0.0
        if self.is_limited:
            self.held: list[dict[int, list[float]]] = [{} for _ in self.memory]
            self.uses = [int(value.wanted is not None) for value in values]
            for task in tasks:
                for value in task.reads:
                    self.uses[value] += 1

    def add(self, number: int, device: int | None, compares: bool = False) -> None:
        """Assign the next task to a device, or to the best one."""
        task = self.tasks[number]
        every = range(len(self.ready))
        devices: Sequence[int] = every if device is None or compares else (device,)
        finishes = [inf] * len(self.ready)
        best, chosen, least = None, -1, inf
        for each in devices:
            if task.seconds[each] == inf:
                continue
            trial = self._try(number, each)
            finishes[each] = reached = trial.finish + self._home(number, each)
            if reached < least and (device is None or each == device):
                best, chosen, least = trial, each, reached
        if best is None:
            best, chosen = self._with_room(number, every if device is None else (device,))
            finishes[chosen] = best.finish + self._home(number, chosen)
        self._take(number, chosen, best, tuple(finishes))

    def finished(self) -> Schedule:
        """Return the schedule after all tasks were added; results go to their final places."""
        for number, value in enumerate(self.values):
            wanted = value.wanted
            if wanted is None:
                continue
            if wanted not in self.at[number]:
                if self.is_limited and self._floor(wanted, value.nbytes) == inf:
                    raise NoRoom(None, (number,), (wanted,))
                copy = self._copy(number, wanted, 0.0, self.channels, "result")
                self._note_copy(copy)
            self.finish = max(self.finish, self.at[number][wanted])
        self.actions.sort()
        return Schedule(
            tuple([action for _, _, action in self.actions]), self.finish, tuple(self.assigned)
        )

    def _home(self, number: int, device: int) -> float:
        """Return the seconds to copy a task's results from a device to their final places."""
        seconds = 0.0
        for value in self.tasks[number].writes:
            nbytes, _, wanted = self.values[value]
            if wanted is not None and wanted != device:
                seconds += self.links[device][wanted].seconds(nbytes)
        return seconds

    def _try(self, number: int, device: int) -> _Trial:
        task = self.tasks[number]
        ready = self.ready[device]
        floor = 0.0
        if self.is_limited and self.memory[device] < inf:
            floor = self._floor(device, self._need(number, device))
            if floor == inf:
                return _Trial(inf)
            busy = self.busy[device]
            ready = max(ready, floor, busy[-1][1] if busy else 0.0)
        copies: list[Copy] = []
        tentative: dict[int, Busy] | None = None
        for value in task.reads:
            there = self.at[value].get(device)
            if there is None:
                if tentative is None:
                    tentative = dict(self.channels)
                copy = self._copy(value, device, floor, tentative, "operand")
                copies.append(copy)
                channel = self.links[copy.source][device].channel
                if channel >= 0:
                    tentative[channel] = sorted(
                        [*tentative.get(channel, ()), (copy.start, copy.finish)]
                    )
                there = copy.finish
            if there > ready:
                ready = there
        seconds = task.seconds[device]
        start = earliest(self.busy[device], ready, seconds)
        return _Trial(start + seconds, start, tuple(copies))

    def _copy(
        self, value: int, target: int, floor: float, channels: dict[int, Busy], because: str
    ) -> Copy:
        """Return the earliest copy of a value, from any place that has it."""
        nbytes = self.values[value].nbytes
        floor = max(floor, self.dropped.get((value, target), 0.0))
        best: Copy | None = None
        for source, there in self.at[value].items():
            link = self.links[source][target]
            if link.channel < 0:
                start = max(there, self.dropped.get((value, target), 0.0))
                copy = Copy(value, source, target, start, start, 0, because)
            else:
                seconds = link.latency + nbytes / link.bandwidth
                start = earliest(channels.get(link.channel, []), max(there, floor), seconds)
                copy = Copy(value, source, target, start, start + seconds, nbytes, because)
            if best is None or copy.finish < best.finish:
                best = copy
        assert best is not None, value
        return best

    def _note_copy(self, copy: Copy) -> None:
        channel = self.links[copy.source][copy.target].channel
        if channel >= 0:
            insort(self.channels.setdefault(channel, []), (copy.start, copy.finish))
        self.at[copy.value][copy.target] = copy.finish
        self._note(copy.start, copy)
        if self.is_limited:
            self._used(copy.value, copy.source, copy.finish)
            if copy.nbytes:
                self.held[copy.target][copy.value] = [copy.nbytes, inf, copy.finish]

    def _note(self, start: float, action: Step | Copy | Drop) -> None:
        self.actions.append((start, len(self.actions), action))

    def _take(self, number: int, device: int, trial: _Trial, finishes: tuple[float, ...]) -> None:
        task = self.tasks[number]
        for copy in trial.copies:
            self._note_copy(copy)
        insort(self.busy[device], (trial.start, trial.finish))
        self.assigned[number] = device
        for value in task.writes:
            self.at[value][device] = trial.finish
        self._note(trial.start, Step(number, device, trial.start, trial.finish, finishes))
        self.finish = max(self.finish, trial.finish)
        if not self.is_limited:
            return
        for value in task.writes:
            release = inf if self.uses[value] else trial.finish
            self.held[device][value] = [self.values[value].nbytes, release, trial.finish]
        for value in task.reads:
            self.uses[value] -= 1
            self._used(value, device, trial.finish)
            if not self.uses[value]:
                for place in self.held:
                    if value in place:
                        place[value][1] = place[value][2]

    # Memory. Each value at a place has its size, the time when it is freed, and its last use.

    def _need(self, number: int, device: int) -> float:
        """Return the additional bytes that a task needs on a device."""
        task = self.tasks[number]
        read = [value for value in task.reads if self._must_be_copied(value, device)]
        return sum(self.values[value].nbytes for value in (*read, *task.writes))

    def _must_be_copied(self, value: int, device: int) -> bool:
        at = self.at[value]
        return device not in at and all(self.links[place][device].channel >= 0 for place in at)

    def _floor(self, place: int, need: float) -> float:
        """Return the time from which this many bytes are free at a place; ``inf`` if never."""
        free = self.memory[place] - need
        held = sorted((release, nbytes) for nbytes, release, _ in self.held[place].values())
        used = sum(nbytes for _, nbytes in held)
        floor = 0.0
        for release, nbytes in held:
            if used <= free:
                break
            floor = release
            used -= nbytes
        return floor if used <= free else inf

    def _used(self, value: int, place: int, until: float) -> None:
        held = self.held[place].get(value)
        if held is not None:
            held[2] = max(held[2], until)

    def _with_room(self, number: int, devices: Sequence[int]) -> tuple[_Trial, int]:
        """Return a device on which other values have made room for a task."""
        task = self.tasks[number]
        able = [each for each in devices if task.seconds[each] < inf]
        if not able:
            raise NoDevice(number)
        together = tuple(dict.fromkeys((*task.reads, *task.writes)))
        for device in sorted(able, key=lambda each: task.seconds[each]):
            while self._floor(device, self._need(number, device)) == inf:
                if not self._make_room(device, task.reads):
                    break
            else:
                return self._try(number, device), device
        raise NoRoom(number, together, tuple(able))

    def _make_room(self, device: int, reads: Sequence[int]) -> bool:
        """Drop one value at a device, or copy it elsewhere; return false if there is none."""
        held = self.held[device]
        pinned = [value for value, (_, release, _) in held.items() if release == inf]
        pinned = [value for value in pinned if value not in reads]
        pinned.sort(key=lambda value: (len(self.at[value]) == 1, -self.values[value].nbytes))
        for value in pinned:
            if len(self.at[value]) == 1 and not self._put_aside(value, device):
                continue
            release = held[value][2]
            held[value][1] = release
            del self.at[value][device]
            self.dropped[value, device] = release
            self._note(release, Drop(value, device, release))
            return True
        return False

    def _put_aside(self, value: int, device: int) -> bool:
        nbytes = self.values[value].nbytes
        others = [place for place in range(len(self.memory)) if place != device]
        for place in sorted(others, key=lambda each: self.links[device][each].seconds(nbytes)):
            floor = self._floor(place, nbytes)
            if floor < inf and self.links[device][place].channel >= 0:
                self._note_copy(self._copy(value, place, floor, self.channels, "room"))
                return True
        return False
