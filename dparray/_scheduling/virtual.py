"""The virtual time of simulated devices, for actions that are submitted one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dparray._scheduling import device_costs
from dparray._scheduling.problem import Copy, Drop, Problem, Step

#: For each queue of a simulated device the time until which it is busy.
busy: dict[Any, float] = {}


class Clock:
    """The times of one expression's actions, if any of its devices is simulated.

    A device or channel starts an action when its previous one is done and the values are available:
    first come, first served, as in real queues, regardless of the schedule.
    """

    def __init__(self, queues: Sequence[Any], problem: Problem) -> None:
        self.queues = queues
        self.problem = problem
        simulated = [queue for queue in queues if queue in device_costs.declared]
        self.is_on = bool(simulated)
        self.began = max([busy.get(queue, 0.0) for queue in simulated], default=0.0)
        self._free: dict[Any, float] = {}
        self._there: dict[tuple[int, int], float] = {}
        self._times: dict[Any, tuple[float, float]] = {}
        self.taken = 0.0

    def step(self, step: Step) -> None:
        """Record that a step has been submitted."""
        task = self.problem.tasks[step.task]
        ready = self._ready(step.device, task.reads, ("device", step.device))
        said = device_costs.declared.get(self.queues[step.device])
        seconds = task.seconds[step.device] * (1.0 if said is None else said.slowdown)
        self._done(step, ("device", step.device), ready, seconds)
        if said is not None:
            said._note_step()
        for value in task.writes:
            self._there[value, step.device] = ready + seconds

    def copy(self, copy: Copy) -> None:
        """Record that a copy has been submitted."""
        link = self.problem.machine.links[copy.source][copy.target]
        channel = ("channel", link.channel)
        seconds = link.seconds(copy.nbytes)
        ready = self._ready(copy.source, (copy.value,), channel if seconds else None)
        self._done(copy, channel, ready, seconds)
        self._there[copy.value, copy.target] = ready + seconds

    def times_of(self, action: Step | Copy | Drop) -> tuple[float | None, float | None]:
        """Return how long an action took, and when it began."""
        times = self._times.get(action) if self.is_on else None
        return (None, None) if times is None else (times[1], times[0])

    def _ready(self, place: int, values: Sequence[int], resource: Any) -> float:
        there = [self._there.get((value, place), 0.0) for value in values]
        return max([self._free.get(resource, 0.0), *there])

    def _done(self, action: Any, resource: Any, start: float, seconds: float) -> None:
        if not self.is_on:
            return
        self._times[action] = start, seconds
        if seconds:
            self._free[resource] = start + seconds
        self.taken = max(self.taken, start + seconds)
        for queue in self.queues:
            if queue in device_costs.declared:
                busy[queue] = self.began + self.taken
