"""Assignment of tasks to devices: list scheduling, then a bounded local search.

Tasks are processed by upward rank, the longest path from a task to the end in mean times, and each
goes to the device that finishes it first (HEFT: Topcuoglu, Hariri and Wu, 2002). The search then
moves critical tasks to other devices. Its budget is a share of the planned time. It is
counted in schedules, not by a clock, so that equal graphs get equal plans on slow or loaded
machines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from dparray._scheduling.device_schedule import build
from dparray._scheduling.problem import Machine, NoDevice, NoRoom, Problem, Schedule, Step

#: The maximum planning time: seconds per step, or a share of the planned time.
SECONDS_OF_A_STEP = 20e-6
MAX_SHARE = 0.05

#: The time to build a schedule, in seconds per task, on a fast processor (slow ones take three
#: times as long), and with limited memory. No clock is read, since it would affect the plan.
_SECONDS_OF_A_TASK = 4e-6
_SECONDS_OF_A_LIMITED_TASK = 10e-6

#: Several devices must be faster than one by this factor, since costs are estimates.
MIN_GAIN = 0.05


def solve(problem: Problem) -> Schedule:
    """Return a schedule that is at least as good as that of the best single device.

    Raises:
        NoDevice: no device can compute a task.
        NoRoom: no device has enough memory for a task.
    """
    schedule, order = _solved(problem)
    return build(problem, order, schedule.assigned, True)


def _solved(problem: Problem) -> tuple[Schedule, Sequence[int]]:
    """Return the schedule, and the order in which its tasks were assigned."""
    tasks, _, machine = problem
    count, devices = len(tasks), len(machine.ready)
    alone = _best_alone(problem)
    single = None if alone is None else alone_on(problem, alone)
    if devices == 1 or count == 0:
        return build(problem, range(count)) if single is None else single, range(count)
    budget = SECONDS_OF_A_STEP * count
    trial = count * (_SECONDS_OF_A_LIMITED_TASK if machine.is_limited else _SECONDS_OF_A_TASK)
    if single is not None:
        budget = max(budget, MAX_SHARE * single.finish)
        if trial * (devices + 1) > budget:
            return single, range(count)
    order = by_rank(problem)
    best = build(problem, order) if single is None else _built(problem, order)
    if best is None or (single is not None and single.finish < best.finish):
        assert single is not None
        best = single
    if single is None:
        budget = max(budget, MAX_SHARE * best.finish)
    best = _searched(problem, order, best, int(budget / trial) - 2 * devices)
    if single is not None and single.finish * (1 - MIN_GAIN) <= best.finish:
        return single, range(count)
    return best, order


def alone_on(problem: Problem, device: int) -> Schedule | None:
    """Assign all tasks to one device; ``None`` if it cannot compute them or lacks the memory."""
    return _built(problem, range(len(problem.tasks)), (device,) * len(problem.tasks))


def by_rank(problem: Problem) -> list[int]:
    """Return the tasks in order of decreasing upward rank."""
    tasks, values, machine = problem
    latency, per_byte = _mean_link(machine)
    readers: dict[int, float] = {}  # for each value the highest rank of its readers
    ranks = [0.0] * len(tasks)
    for number in range(len(tasks) - 1, -1, -1):
        task = tasks[number]
        able = [second for second in task.seconds if second < inf]
        if not able:
            raise NoDevice(number)
        after = 0.0
        for value in task.writes:
            rank = readers.get(value)
            if rank is not None:
                after = max(after, rank + latency + values[value].nbytes * per_byte)
        ranks[number] = rank = sum(able) / len(able) + after
        for value in task.reads:
            if rank > readers.get(value, -1.0):
                readers[value] = rank
    return sorted(range(len(tasks)), key=lambda number: -ranks[number])


def _mean_link(machine: Machine) -> tuple[float, float]:
    """Return mean latency, and mean seconds per byte, between devices."""
    devices = range(len(machine.ready))
    links = [machine.links[a][b] for a in devices for b in devices if a != b]
    copying = [link for link in links if link.channel >= 0]
    if not copying:
        return 0.0, 0.0
    latency = sum(link.latency for link in copying) / len(links)
    return latency, sum(1 / link.bandwidth for link in copying) / len(links)


def _best_alone(problem: Problem) -> int | None:
    """Return the device that would compute everything first, including copies of its inputs."""
    tasks, values, machine = problem
    best, least = None, inf
    read = dict.fromkeys(value for task in tasks for value in task.reads)
    for device, ready in enumerate(machine.ready):
        finish = ready
        for task in tasks:
            finish += task.seconds[device]
        if finish >= least:
            continue
        for number in read:
            home = values[number].home
            if home is not None and home != device:
                finish += machine.links[home][device].seconds(values[number].nbytes)
        for value in values:
            if value.wanted is not None and value.wanted != device and value.home is None:
                finish += machine.links[device][value.wanted].seconds(value.nbytes)
        if finish < least:
            best, least = device, finish
    return best


def _built(
    problem: Problem, order: Sequence[int], fixed: Sequence[int] | None = None
) -> Schedule | None:
    try:
        return build(problem, order, fixed)
    except (NoRoom, NoDevice):
        return None


def _searched(problem: Problem, order: Sequence[int], best: Schedule, trials: int) -> Schedule:
    """Return the best of a limited number of schedules, each a move away from the previous best."""
    seen = {best.assigned}
    is_better = True
    while is_better:
        is_better = False
        for moved in _moves(problem, best):
            if moved in seen:
                continue
            if trials <= 0:
                return best
            trials -= 1
            seen.add(moved)
            schedule = _built(problem, order, moved)
            if schedule is not None and schedule.finish < best.finish * (1 - 1e-9):
                best, is_better = schedule, True
                break
    return best


def _moves(problem: Problem, schedule: Schedule) -> Iterator[tuple[int, ...]]:
    """Yield other assignments of critical tasks, alone or with neighbors, to each other device."""
    tasks = problem.tasks
    assigned = schedule.assigned
    devices = range(len(problem.machine.ready))
    writer = {value: number for number, task in enumerate(tasks) for value in task.writes}
    readers: dict[int, list[int]] = {}
    for number, task in enumerate(tasks):
        for value in task.reads:
            if value in writer:
                readers.setdefault(writer[value], []).append(number)
    chain = _critical(problem, schedule, writer)
    for number in chain:
        for device in devices:
            if device != assigned[number] and tasks[number].seconds[device] < inf:
                yield _with(assigned, (number,), device)
    for number in chain:
        before = [writer[value] for value in tasks[number].reads if value in writer]
        after = readers.get(number, [])
        for group in ((number, *before), (number, *after), (number, *before, *after)):
            if len(group) > 1:
                for device in devices:
                    if all(tasks[each].seconds[device] < inf for each in group):
                        yield _with(assigned, group, device)
    for first in chain:  # swap two tasks
        for second in range(len(tasks)):
            if assigned[first] != assigned[second]:
                swapped = list(assigned)
                swapped[first], swapped[second] = assigned[second], assigned[first]
                if all(tasks[each].seconds[swapped[each]] < inf for each in (first, second)):
                    yield tuple(swapped)


def _with(assigned: tuple[int, ...], group: Sequence[int], device: int) -> tuple[int, ...]:
    changed = list(assigned)
    for number in group:
        changed[number] = device
    return tuple(changed)


def _critical(problem: Problem, schedule: Schedule, writer: dict[int, int]) -> list[int]:
    """Return the critical tasks, the last first: each starts when the one before it ends.

    The task before is one on the same device or one that computes an operand.
    """
    steps = {step.task: step for step in schedule.steps}
    if not steps:
        return []
    by_device: dict[int, list[Step]] = {}
    for step in steps.values():
        by_device.setdefault(step.device, []).append(step)
    last = max(steps.values(), key=lambda step: step.finish)
    chain: list[int] = []
    while last.task not in chain:
        chain.append(last.task)
        before = [steps[writer[v]] for v in problem.tasks[last.task].reads if v in writer]
        before += [each for each in by_device[last.device] if each.finish <= last.start]
        if not before:
            break
        last = max(before, key=lambda step: step.finish)
    return chain
