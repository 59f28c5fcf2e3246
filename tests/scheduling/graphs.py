"""Task graphs and machines for tests of schedules, optimal schedules, and checks of schedules."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf

import numpy as np

from dparray._scheduling.problem import (
    Copy,
    Drop,
    Link,
    Machine,
    Problem,
    Schedule,
    Step,
    Task,
    Value,
)

MB = 1e6


def linked(latency: float, bandwidth: float, count: int) -> tuple[tuple[Link, ...], ...]:
    """Return placements with a separate channel for each pair."""
    return tuple(
        tuple(
            Link() if a == b else Link(latency, bandwidth, count * min(a, b) + max(a, b))
            for b in range(count)
        )
        for a in range(count)
    )


def machine(
    count: int,
    latency: float = 10e-6,
    bandwidth: float = 10e9,
    memory: Sequence[float] = (),
    links: tuple[tuple[Link, ...], ...] = (),
) -> Machine:
    """Return idle devices with their memory."""
    return Machine(
        (0.0,) * count,
        links or linked(latency, bandwidth, count),
        tuple(memory) or (inf,) * count,
    )


def random_problem(
    seed: int,
    count: int,
    speeds: Sequence[float],
    on: Machine,
    lacking: Sequence[int] = (),
    seconds: float = 10e-3,
    nbytes: float = 20 * MB,
) -> Problem:
    """Return a random graph, in which each task reads up to three existing values.

    Args:
        seed: of the generator.
        count: the number of tasks.
        speeds: of the devices; each task favors some of them.
        on: the machine.
        lacking: devices that cannot compute a third of the tasks.
        seconds, nbytes: of a typical task and value.
    """
    generator = np.random.default_rng(seed)
    places = len(on.ready)
    values = [
        Value(float(nbytes * generator.uniform(0.1, 2)), int(generator.integers(places)))
        for _ in range(max(2, count // 3))
    ]
    tasks = []
    for _ in range(count):
        reads = generator.choice(len(values), min(len(values), 1 + generator.integers(3)), False)
        work = seconds * generator.uniform(0.2, 3)
        taken = work / np.asarray(speeds) * generator.uniform(0.7, 1.4, len(speeds))
        if generator.uniform() < 1 / 3:
            taken[list(lacking)] = inf
        tasks.append(Task(tuple(map(int, reads)), (len(values),), tuple(map(float, taken))))
        values.append(Value(float(nbytes * generator.uniform(0.1, 2))))
    read = {value for task in tasks for value in task.reads}
    ends = [
        value._replace(wanted=0) if value.home is None and number not in read else value
        for number, value in enumerate(values)
    ]
    return Problem(tuple(tasks), tuple(ends), on)


def best_finish(problem: Problem, bound: float) -> float:
    """Return the earliest finish time of all assignments in all orders.

    Copies are made as soon as a task is assigned. The search is branch and bound, with ``bound``.
    """
    tasks, values, on = problem
    devices = range(len(on.ready))
    writer = {value: number for number, task in enumerate(tasks) for value in task.writes}
    least = [min(task.seconds) for task in tasks]
    readers: dict[int, list[int]] = {number: [] for number in range(len(tasks))}
    for number, task in enumerate(tasks):
        for value in task.reads:
            if value in writer:
                readers[writer[value]].append(number)
    tail = [0.0] * len(tasks)
    for number in range(len(tasks) - 1, -1, -1):
        tail[number] = least[number] + max((tail[each] for each in readers[number]), default=0.0)
    best = bound

    def go(
        left: frozenset[int],
        free: tuple[float, ...],
        channels: dict[int, float],
        at: dict[tuple[int, int], float],
        end: float,
    ) -> None:
        nonlocal best
        if not left:
            for number, value in enumerate(values):
                if value.wanted is not None and (number, value.wanted) not in at:
                    there, channels, at = arrive(number, value.wanted, channels, at)
                    end = max(end, there)
            best = min(best, end)
            return
        if sum(least[each] for each in left) / len(free) + min(free) >= best:
            return
        for number in sorted(left):
            task = tasks[number]
            if any(writer.get(value) in left for value in task.reads):
                continue
            for device in devices:
                if task.seconds[device] == inf:
                    continue
                ready, now, there = free[device], channels, at
                for value in task.reads:
                    if (value, device) in there:
                        ready = max(ready, there[value, device])
                    else:
                        arrival, now, there = arrive(value, device, now, there)
                        ready = max(ready, arrival)
                finish = ready + task.seconds[device]
                if ready + tail[number] - least[number] + task.seconds[device] >= best:
                    continue
                there = there | {(value, device): finish for value in task.writes}
                then = (*free[:device], finish, *free[device + 1 :])
                go(left - {number}, then, now, there, max(end, finish))

    def arrive(
        value: int, place: int, channels: dict[int, float], at: dict[tuple[int, int], float]
    ) -> tuple[float, dict[int, float], dict[tuple[int, int], float]]:
        found, through = inf, -1
        for (each, source), there in at.items():
            if each == value:
                link = on.links[source][place]
                begin = max(there, channels.get(link.channel, 0.0))
                if begin + link.seconds(values[value].nbytes) < found:
                    found, through = begin + link.seconds(values[value].nbytes), link.channel
        return found, channels | {through: found}, at | {(value, place): found}

    homes = {
        (number, value.home): 0.0 for number, value in enumerate(values) if value.home is not None
    }
    go(frozenset(range(len(tasks))), on.ready, {}, homes, 0.0)
    return best


def check(problem: Problem, schedule: Schedule) -> None:
    """Assert that a schedule can be executed as it is, and keeps the memory limits."""
    tasks, values, on = problem
    at = {(number, value.home): 0.0 for number, value in enumerate(values)}
    busy: dict[str, list[tuple[float, float]]] = {}
    for action in schedule.actions:
        if isinstance(action, Step):
            task = tasks[action.task]
            for value in task.reads:
                assert at[value, action.device] <= action.start + 1e-12
            assert action.finish == action.start + task.seconds[action.device] < inf
            busy.setdefault(f"device {action.device}", []).append((action.start, action.finish))
            for value in task.writes:
                at[value, action.device] = action.finish
        elif isinstance(action, Copy):
            assert at[action.value, action.source] <= action.start + 1e-12
            link = on.links[action.source][action.target]
            took = link.seconds(action.nbytes)
            assert abs(action.finish - action.start - took) <= 1e-12
            if link.channel >= 0:
                busy.setdefault(f"channel {link.channel}", []).append((action.start, action.finish))
            at[action.value, action.target] = action.finish
        else:
            assert isinstance(action, Drop)
            del at[action.value, action.place]
            assert any(value == action.value for value, _ in at)
    for times in busy.values():
        times.sort()
        for (_, end), (start, _) in pairwise(times):
            assert end <= start + 1e-12
    assert sorted(step.task for step in schedule.steps) == list(range(len(tasks)))
    for number, value in enumerate(values):
        if value.wanted is not None:
            assert at[number, value.wanted] <= schedule.finish + 1e-12
    for place, limit in enumerate(on.memory):
        assert peak(problem, schedule, place) <= limit * (1 + 1e-9)


def peak(problem: Problem, schedule: Schedule, place: int) -> float:
    """Return the peak memory of a placement in bytes, in addition to its initial memory.

    Each value is freed after its last use in the order of the schedule.
    """
    tasks, values, _ = problem
    last: dict[tuple[int, int], int] = {}
    held: dict[int, float] = {}
    most = 0.0
    actions = schedule.actions
    for position, action in enumerate(actions):
        if isinstance(action, Step):
            for value in (*tasks[action.task].reads, *tasks[action.task].writes):
                last[value, action.device] = position
        elif isinstance(action, Copy):
            last[action.value, action.source] = last[action.value, action.target] = position
    for position, action in enumerate(actions):
        if isinstance(action, Step) and action.device == place:
            for value in tasks[action.task].writes:
                held[value] = values[value].nbytes
        elif isinstance(action, Copy) and action.target == place and action.nbytes:
            if values[action.value].home != place:
                held[action.value] = action.nbytes
        elif isinstance(action, Drop) and action.place == place:
            held.pop(action.value, None)
        most = max(most, sum(held.values()))
        for value in [
            value
            for value in held
            if last[value, place] == position and values[value].wanted != place
        ]:
            del held[value]
    return most
