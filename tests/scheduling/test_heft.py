"""Schedules are valid, nearly optimal, and never worse than a single device."""

from __future__ import annotations

from math import inf

import pytest

from dparray._scheduling.device_schedule import build, earliest
from dparray._scheduling.heft import alone_on, solve
from dparray._scheduling.problem import (
    Drop,
    Link,
    NoDevice,
    NoRoom,
    Problem,
    Schedule,
    Task,
    Value,
)
from tests.scheduling.graphs import MB, best_finish, check, machine, peak, random_problem

TWO_LINKS = tuple(  # four devices besides the first, two on each of two links
    tuple(Link() if a == b else Link(10e-6, 12e9, (max(a, b) - 1) // 2) for b in range(5))
    for a in range(5)
)
MACHINES = {
    "CPU and two GPUs": ((1.0, 8.0, 8.0), machine(3), ()),
    "GPU without fp64": ((1.0, 6.0), machine(2), (1,)),
    "four GPUs on two links": ((1.0, 5.0, 5.0, 5.0, 5.0), machine(5, links=TWO_LINKS), ()),
    "small accelerator": ((1.0, 10.0), machine(2, memory=(inf, 170 * MB)), ()),
}


def round_robin(problem: Problem) -> Schedule:
    """Assign the tasks to capable devices in turn, as a baseline for comparisons."""
    devices = len(problem.machine.ready)
    fixed, device = [], -1
    for task in problem.tasks:
        for _ in range(devices):
            device = (device + 1) % devices
            if task.seconds[device] < inf:
                break
        fixed.append(device)
    return build(problem, range(len(problem.tasks)), fixed)


def _on(name: str, seed: int, count: int) -> Problem:
    speeds, on, lacking = MACHINES[name]
    return random_problem(seed, count, speeds, on, lacking)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("count", [1, 5, 24])
def test_a_schedule_can_be_carried_out_and_keeps_limits(name: str, count: int) -> None:
    for seed in range(8):
        problem = _on(name, seed, count)
        check(problem, solve(problem))


@pytest.mark.parametrize("name", MACHINES)
def test_it_is_never_worse_than_one_device_and_better_than_in_turn(name: str) -> None:
    gains = []
    for seed in range(8):
        problem = _on(name, seed, 24)
        found = solve(problem).finish
        alone = [alone_on(problem, device) for device in range(len(problem.machine.ready))]
        assert found <= min(each.finish for each in alone if each is not None) * (1 + 1e-9)
        gains.append(found / round_robin(problem).finish)
    assert sum(gains) / len(gains) < 0.9


@pytest.mark.parametrize("name", ["CPU and two GPUs", "GPU without fp64"])
def test_small_graphs_are_near_the_best_of_all_schedules(name: str) -> None:
    ratios = []
    for seed in range(6):
        problem = _on(name, seed, 6)
        found = solve(problem).finish
        ratios.append(found / best_finish(problem, found))
    assert sum(ratios) / len(ratios) <= 1.15


def test_equal_graphs_get_equal_plans() -> None:
    problem = _on("CPU and two GPUs", 3, 16)
    assert solve(problem) == solve(problem)


def test_a_gap_that_is_long_enough_is_taken() -> None:
    busy = [(1.0, 2.0), (4.0, 5.0)]
    assert earliest(busy, 0.0, 1.0) == 0.0
    assert earliest(busy, 0.0, 1.5) == 2.0
    assert earliest(busy, 1.5, 3.0) == 5.0
    assert earliest(busy, 4.5, 0.5) == 5.0


def test_unsupported_steps_of_a_device_run_elsewhere() -> None:
    tasks = (Task((0,), (1,), (1.0, inf)), Task((1,), (2,), (1.0, 0.01)))
    problem = Problem(tasks, (Value(MB, 1), Value(MB), Value(MB, wanted=1)), machine(2))
    assert solve(problem).assigned == (0, 1)
    nowhere = problem._replace(tasks=(Task((0,), (1,), (inf, inf)),))
    with pytest.raises(NoDevice):
        solve(nowhere)


def test_shared_memory_is_not_copied() -> None:
    shared = ((Link(), Link()), (Link(), Link()))
    tasks = (Task((0,), (1,), (1.0, 0.1)),)
    problem = Problem(tasks, (Value(MB, 0), Value(MB, wanted=0)), machine(2, links=shared))
    found = solve(problem)
    assert (found.assigned, found.finish) == ((1,), 0.1)
    assert [copy.nbytes for copy in found.copies] == [0, 0]


def test_copies_through_one_channel_follow_each_other() -> None:
    both = Link(0.0, 1e6, 7)
    links = tuple(tuple(Link() if a == b else both for b in range(3)) for a in range(3))
    tasks = (Task((0,), (2,), (9.0, 1.0, inf)), Task((1,), (3,), (9.0, inf, 1.0)))
    values = (Value(MB, 0), Value(MB, 0), Value(0.0), Value(0.0))
    found = build(Problem(tasks, values, machine(3, links=links)), (0, 1))
    assert sorted(copy.finish for copy in found.copies) == [1.0, 2.0]


def test_values_make_room_if_memory_is_small() -> None:
    on = machine(2, memory=(inf, 25 * MB))
    steps = (
        Task((0,), (1,), (inf, 1.0)),
        Task((0,), (2,), (inf, 1.0)),
        Task((2,), (3,), (inf, 1.0)),
        Task((1, 3), (4,), (inf, 1.0)),
    )
    values = (Value(5 * MB, 0), *[Value(10 * MB)] * 3, Value(MB, wanted=0))
    problem = Problem(steps, values, on)
    found = solve(problem)
    check(problem, found)
    assert "room" in {copy.because for copy in found.copies}
    assert any(isinstance(action, Drop) for action in found.actions)
    assert 20 * MB <= peak(problem, found, 1) <= 25 * MB


def test_no_room_anywhere_names_the_task_its_values_and_the_devices() -> None:
    on = machine(2, memory=(5 * MB, 8 * MB))
    problem = Problem((Task((0,), (1,), (1.0, 1.0)),), (Value(MB, 0), Value(9 * MB)), on)
    with pytest.raises(NoRoom) as raised:
        solve(problem)
    error = raised.value
    assert (error.task, error.values, set(error.devices)) == (0, (0, 1), {0, 1})
    wanted = problem._replace(values=(Value(MB, 1), Value(6 * MB, wanted=0)))
    with pytest.raises(NoRoom) as raised:
        solve(wanted)
    assert raised.value.task is None
