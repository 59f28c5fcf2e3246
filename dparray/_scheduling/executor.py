"""Binding of an expression's steps to devices, and their execution.

Bindings are cached by the expression signature, the placements of its arrays and the relevant
device facts, as plans are. The record of a run includes every copy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, prod
from types import MappingProxyType
from typing import Any, NamedTuple

from dparray import _hooks, config
from dparray._codegen.canonical import Canonical
from dparray._evaluate import background, evaluate, limits
from dparray._evaluate.dependents import externally_referenced
from dparray._evaluate.expression import Expression
from dparray._evaluate.kernels import make_ready
from dparray._evaluate.plan import FusedStep, KernelLaunch
from dparray._evaluate.schedule import schedule
from dparray._graph.node import Node, Scalar, pending_order
from dparray._layout import Layout
from dparray._placement import Policy
from dparray._runtime import host_maps
from dparray._scheduling import device_costs, device_schedule, heft, places, transfers
from dparray._scheduling.cut import CutStep, additions, apart, branches, cut
from dparray._scheduling.problem import (
    Copy,
    Drop,
    Machine,
    NoDevice,
    NoRoom,
    Problem,
    Schedule,
    Step,
    Task,
    Value,
)
from dparray._scheduling.trace import (
    Measuring,
    PlacedExpression,
    PlacedWork,
    records,
    seconds_of_events,
)
from dparray._scheduling.virtual import Clock
from dparray.exceptions import ExecutionPlacementError, MemoryError
from dparray.memory.blocks import planned_layout
from dparray.memory.stats import format_bytes


class Binding(NamedTuple):
    """The steps of an expression with their devices.

    Attributes:
        steps: the steps.
        problem: the numbers for scheduling.
        schedule: the schedule.
        queues: the queues of the places, those of devices first.
        results: by value the number of its node, after the leaves.
        last: for each action the values and places that nothing needs afterwards.
        alone: the estimate for each device if it computed everything.
        names: the operations of each step.
        planning: the seconds that planning took.
        launches: the kernels by step and device, which are compiled in the background.
    """

    steps: tuple[CutStep, ...]
    problem: Problem
    schedule: Schedule
    queues: tuple[Any, ...]
    results: tuple[int, ...]
    last: tuple[tuple[tuple[int, int], ...], ...]
    alone: tuple[float, ...]
    names: tuple[str, ...]
    planning: float
    launches: Mapping[tuple[int, int], Sequence[KernelLaunch]] = MappingProxyType({})


#: Bindings by their cache keys; all are dropped if there are too many.
bindings: dict[Any, Binding] = {}
_MAX_BINDINGS = 1024
_hooks.when_set("executor", bindings.clear)
_hooks.when_set("plans", bindings.clear)


def compute(policy: Policy, roots: Sequence[Node]) -> bool:
    """Compute pending nodes by a policy; return false if the usual evaluation is equivalent.

    Raises:
        DeviceError: a lost device holds required data, or a policy chose it.
        ExecutionPlacementError: no device can compute a step.
        MemoryError: no device has enough memory for a step.
    """
    roots = [root for root in dict.fromkeys(roots) if root.layout is None and root.size]
    retried: tuple[str, ...] = ()
    while roots:
        asked = _asked(policy, roots)
        if asked is None:
            return False
        binding = bound(policy, asked)
        try:
            _run(policy, asked, binding, retried)
        except places.Vanished as vanished:
            retried += (vanished.name,)
            continue
        return True
    return False


def planned(policy: Policy, roots: Sequence[Node]) -> PlacedExpression | None:
    """Return how a policy would compute pending nodes; ``None`` for the usual evaluation."""
    asked = _asked(policy, [root for root in roots if root.layout is None and root.size])
    return None if asked is None else described(policy, asked, bound(policy, asked))


class Asked(NamedTuple):
    """An expression that a policy binds.

    Attributes:
        order: its pending nodes, operands before users.
        roots: the requested nodes.
        held: inner nodes that are stored if this is part of the same work.
        canonical: its signature.
        homes: the queues of its arrays; ``None`` for values that are not in memory.
        devices: the candidate queues.
    """

    order: list[Node]
    roots: Sequence[Node]
    held: Sequence[Node]
    canonical: Canonical
    homes: tuple[Any, ...]
    devices: tuple[Any, ...]


def _asked(policy: Policy, roots: Sequence[Node]) -> Asked | None:
    order = pending_order(roots)
    if not order:
        return None
    held = [node for node in externally_referenced(roots, order) if places.is_there(node.queue)]
    canonical = Canonical(order)
    homes = tuple(
        [None if array.block.memory is None else array.block.queue for array in canonical.arrays]
    )
    wanted = [node.queue for node in (*roots, *held)]
    # Constants are not in memory, but belong to the queue for which they were created.
    queues = [array.block.queue for array in canonical.arrays]
    used = dict.fromkeys([*queues, *(node.queue for node in order), *wanted])
    devices = places.devices_of(policy, list(used), wanted)
    if policy.choose == "fastest" and len(used) == 1 and tuple(used) == devices:
        return None
    return Asked(order, roots, held, canonical, homes, devices)


def bound(policy: Policy, asked: Asked) -> Binding:
    """Return the binding of an expression, cached or new."""
    order, roots, held, canonical, homes, devices = asked
    places.check_homes(homes, canonical.arrays)
    places.check_wanted(roots)
    wanted = {id(node): node.queue for node in (*roots, *held)}
    queues = tuple(dict.fromkeys([*devices, *filter(None, homes), *wanted.values()]))
    total = sum(node.size * node.dtype.itemsize for node in order)
    total += sum(prod(array.shape) * array.dtype.itemsize for array in canonical.arrays)
    machine = places.machine_of(queues, len(devices), float(total), policy.choose == "fastest")
    numbers = canonical.numbers
    kept = tuple([-1 - numbers[id(node)] for node in held])
    asked_for = tuple([-1 - numbers[id(node)] for node in roots])
    key = None
    if policy.choose == "fastest":
        where = tuple(map(id, homes)), tuple(map(id, wanted.values())), tuple(map(id, devices))
        options = config.plans_differ and config.plan_options()
        key = canonical.key, asked_for, kept, where, machine.memory, machine.ready, options
        found = bindings.get(key)
        if found is not None and found.queues == queues:
            return found._replace(planning=0.0)
    started = time.perf_counter()
    at = {queue: place for place, queue in enumerate(queues)}
    stands = [None if home is None else at[home] for home in homes]
    traits = evaluate.plan_traits_of(devices[0])._replace(host_memory=frozenset())
    best: Binding | None = None
    seen: set[tuple[int, ...]] = set()
    for first in _cuts(policy, asked, stands):
        if tuple(map(id, first)) in seen:
            continue
        seen.add(tuple(map(id, first)))
        steps = cut(order, roots, held, first, numbers, traits)
        binding = _scheduled(policy, asked, steps, queues, stands, wanted, machine)
        if best is None or binding.schedule.finish < best.schedule.finish * (1 - heft.MIN_GAIN):
            best = binding
    assert best is not None
    best = best._replace(planning=time.perf_counter() - started)
    if key is not None:
        if len(devices) > 1 and limits.compiles_in_background():
            best = _compile_ahead(asked, best)
        if len(bindings) >= _MAX_BINDINGS:
            bindings.clear()
        bindings[key] = best
    return best


#: A branch gets its own step if it takes this many times the launch time.
_LAUNCHES_OF_A_STEP = 4

#: A coarser division has about this many steps per device.
_STEPS_OF_A_DEVICE = 4


def _cuts(policy: Policy, asked: Asked, homes: Sequence[int | None]) -> Iterator[list[Node]]:
    """Return the divisions to try, the simplest first, as the nodes that get their own steps."""
    order = asked.order
    measures = policy.choose == "fastest"
    if measures or len(asked.devices) == 1:
        yield []
    if len(asked.devices) > 1:
        together = apart(order, asked.canonical.numbers, homes)
        if measures:
            yield together
        speeds = [device_costs.speeds_of(queue, measures) for queue in asked.devices]
        least = min(speed.launch * speed.single for speed in speeds) * _LAUNCHES_OF_A_STEP
        share = sum(map(additions, order)) / (_STEPS_OF_A_DEVICE * len(asked.devices))
        for worth in (max(least, share), least)[: 2 if measures else 1]:
            stored = {id(node) for node in (*together, *branches(order, asked.roots, worth))}
            yield [node for node in order if id(node) in stored]


def _scheduled(
    policy: Policy,
    asked: Asked,
    steps: tuple[CutStep, ...],
    queues: tuple[Any, ...],
    homes: Sequence[int | None],
    wanted: dict[int, Any],
    machine: Machine,
) -> Binding:
    """Return the steps, scheduled by a policy."""
    order, arrays = asked.order, asked.canonical.arrays
    devices = asked.devices
    at = {queue: place for place, queue in enumerate(queues)}
    values = [
        Value(prod(array.shape) * array.dtype.itemsize, home)
        for array, home in zip(arrays, homes, strict=True)
    ]
    results: list[int] = []
    number_of: dict[int, int] = {}
    measures = policy.choose == "fastest"
    tasks = []
    for step in steps:
        nodes = [order[number] for number in step.nodes]
        stored = [order[number] for number in step.results]
        for number, node in zip(step.results, stored, strict=True):
            number_of[number] = len(values)
            results.append(number)
            queue = wanted.get(id(node))
            wish = None if queue is None else at[queue]
            values.append(Value(node.size * node.dtype.itemsize, None, wish))
        work = device_costs.work_of(nodes, stored, step.kind != "library")
        seconds = tuple(
            [device_costs.seconds_on(queue, nodes, stored, work, measures) for queue in devices]
        )
        leaves = [leaf for leaf in step.leaves if homes[leaf] is not None]
        reads = (*leaves, *[number_of[number] for number in step.reads])
        writes = tuple([number_of[number] for number in step.results])
        tasks.append(Task(tuple(reads), writes, seconds))
    problem = Problem(tuple(tasks), tuple(values), machine)
    try:
        if policy.choose == "fastest":
            schedule = heft.solve(problem)
        else:
            chosen = places.chosen(policy, problem, steps, order, devices)
            schedule = device_schedule.build(problem, range(len(tasks)), chosen, True)
    except NoRoom as error:
        raise _no_room(error, steps, problem, order, arrays, queues) from None
    except NoDevice as error:
        step = steps[error.task]
        dtypes = ", ".join(sorted({order[number].dtype.name for number in step.nodes}))
        raise ExecutionPlacementError(
            f"placement: no device can compute step {error.task + 1}, "
            f"{_operations(step, order)} of {dtypes}: none of {_listed(devices)} that the policy "
            "may choose supports the precision (fp64, fp16); convert with x.astype('float32'), or "
            "name a device that does: dp.placement(..., devices=[...])"
        ) from None
    alone = [heft.alone_on(problem, device) for device in range(len(devices))]
    return Binding(
        steps,
        problem,
        schedule,
        queues,
        tuple(results),
        _last_uses(problem, schedule),
        tuple([inf if each is None else each.finish for each in alone]),
        tuple([_operations(step, order) for step in steps]),
        0.0,
    )


def _last_uses(problem: Problem, schedule: Schedule) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return for each action the values, with places, that no later action needs.

    A value that the schedule drops to make room for others stays until then.
    """
    last: dict[tuple[int, int], int] = {}
    for position, action in enumerate(schedule.actions):
        if isinstance(action, Step):
            task = problem.tasks[action.task]
            for value in (*task.reads, *task.writes):
                last[value, action.device] = position
        elif isinstance(action, Copy):
            last[action.value, action.source] = last[action.value, action.target] = position
        else:
            last.pop((action.value, action.place), None)
    dropped: list[list[tuple[int, int]]] = [[] for _ in schedule.actions]
    for (value, place), position in last.items():
        if problem.values[value].wanted != place:
            dropped[position].append((value, place))
    return tuple(map(tuple, dropped))


# Execution.


def _run(policy: Policy, asked: Asked, binding: Binding, retried: tuple[str, ...]) -> None:
    """Submit the actions of a binding, then complete the nodes that it stores."""
    queues, steps, order = binding.queues, binding.steps, asked.order
    tasks, values, _ = binding.problem
    arrays = asked.canonical.arrays
    at: list[dict[int, Layout]] = [
        {} if value.home is None else {value.home: arrays[number]}
        for number, value in enumerate(values[: len(arrays)])
    ]
    at += [{} for _ in binding.results]
    leaf_numbers = asked.canonical.numbers
    value_of = {number: len(arrays) + position for position, number in enumerate(binding.results)}
    clock = Clock(queues, binding.problem)
    measured: dict[int, Any] = {}
    unsubscribe = None
    events: list[tuple[Any, Any]] = []
    if _hooks.subscribers:

        def note(event: str, **given: Any) -> None:
            if given.get("driver_event") is not None:
                queue = given.get("queue") or given["target"]
                events.append((queue, given["driver_event"]))

        unsubscribe = _hooks.subscribe(note)
    try:
        for position, action in enumerate(binding.schedule.actions):
            events.clear()
            if isinstance(action, Step):
                queue = queues[action.device]
                places.check_there(queue)
                step = steps[action.task]
                layouts = _computed(
                    step, order, queue, action.device, at, leaf_numbers, value_of, arrays
                )
                for value, layout in zip(tasks[action.task].writes, layouts, strict=True):
                    at[value][action.device] = layout
                clock.step(action)
            elif isinstance(action, Copy):
                source, target = queues[action.source], queues[action.target]
                places.check_there(source)
                places.check_there(target)
                layout = at[action.value][action.source]
                if action.nbytes or action.because == "result":
                    at[action.value][action.target] = transfers.copied(layout, target)
                else:
                    at[action.value][action.target] = transfers.lent(layout, target)
                clock.copy(action)
            else:
                del at[action.value][action.place]
            if events and not clock.is_on:
                taken = list(events)
                measured[position] = lambda taken=taken: seconds_of_events(taken)
            for value, place in binding.last[position]:
                at[value].pop(place, None)
    finally:
        if unsubscribe is not None:
            unsubscribe()
    for value, number in enumerate(binding.results, len(arrays)):
        wanted = values[value].wanted
        node = order[number]
        if wanted is not None and node.layout is None:
            node.complete(at[value][wanted])
    for done in binding.schedule.steps:
        places.note_busy(queues[done.device], done.finish)
    record = described(policy, asked, binding, clock, retried)

    def doubt(number: int) -> None:
        action = binding.schedule.actions[number]
        if isinstance(action, Step) and device_costs.doubt(queues[action.device]):
            bindings.clear()

    records.append(Measuring(record, measured, doubt))


def _computed(
    step: CutStep,
    order: Sequence[Node],
    queue: Any,
    place: int,
    at: Sequence[dict[int, Layout]],
    leaf_numbers: dict[int, int],
    value_of: dict[int, int],
    arrays: Sequence[Layout],
) -> list[Layout]:
    """Compute a step on a queue, by the plan of its expression there."""

    def operand(number: int, is_result: bool) -> Layout:
        value = value_of[number] if is_result else number
        found = at[value].get(place)
        return transfers.positions_on(arrays[value], queue) if found is None else found

    results, leaves = _on_queue(step, order, queue, operand, leaf_numbers)
    if host_maps.holds:  # copies are in flight
        host_maps.before_read(*(leaf.layout for leaf in leaves if leaf.layout is not None))
    pending = pending_order(results)
    last = results[-1]
    evaluate.compute(pending, [last], [result for result in results[:-1] if result.layout is None])
    for each in results:
        if each.layout is None:
            evaluate.compute(pending_order([each]), [each])
    layouts = [result.layout for result in results]
    transfers.ordered_after(queue, [leaf.layout for leaf in leaves])
    return layouts  # type: ignore[return-value]


def _on_queue(
    step: CutStep,
    order: Sequence[Node],
    queue: Any,
    operand: Callable[[int, bool], Layout],
    leaf_numbers: dict[int, int],
) -> tuple[list[Node], list[Node]]:
    """Return the results of a step as pending nodes on a queue, and their leaves.

    Args:
        step: the step.
        order: the pending nodes of the whole expression.
        queue: the queue.
        operand: returns the layout of an array by its number, or of the result of another step.
        leaf_numbers: the numbers of arrays.
    """
    inside: dict[int, Node] = {}
    leaves: dict[int, Node] = {}
    reads = {id(order[number]): number for number in step.reads}
    for number in step.nodes:
        node = order[number]
        parts: list[Node | Scalar] = []
        for part in node.operands:
            if type(part) is not Node:
                parts.append(part)
                continue
            copy = inside.get(id(part)) or leaves.get(id(part))
            if copy is None:
                read = reads.get(id(part))
                layout = operand(leaf_numbers[id(part)] if read is None else read, read is not None)
                copy = leaves[id(part)] = Node.leaf(layout, queue, part.usm_type)
            parts.append(copy)
        assert node.op is not None
        own = node.shape, node.size, queue, node.usm_type, node.axes
        inside[id(node)] = Node(node.op, tuple(parts), node.signature, *own)
    return [inside[id(order[number])] for number in step.results], [*leaves.values()]


def _launches_of(asked: Asked, binding: Binding) -> dict[tuple[int, int], list[KernelLaunch]]:
    """Return the kernels that each step would launch on each candidate device."""
    order, arrays = asked.order, asked.canonical.arrays
    launches: dict[tuple[int, int], list[KernelLaunch]] = {}
    for device, queue in enumerate(asked.devices):

        def operand(number: int, is_result: bool, queue: Any = queue) -> Layout:
            if not is_result and arrays[number].block.memory is None:
                return transfers.positions_on(arrays[number], queue)
            like = order[number] if is_result else arrays[number]
            return planned_layout(queue, "device", tuple(like.shape), like.dtype)

        for number, step in enumerate(binding.steps):
            nodes, _ = _on_queue(step, order, queue, operand, asked.canonical.numbers)
            pending = pending_order(nodes)
            *held, last = [next(i for i, x in enumerate(pending) if x is node) for node in nodes]
            expression = Expression(pending, (last,), tuple(held))
            plan = schedule(expression, Canonical(pending), evaluate.plan_traits_of(queue))
            fused = (each for each in plan.steps if isinstance(each, FusedStep))
            launches[number, device] = [launch for each in fused for launch in each.launches]
    return launches


def _compile_ahead(asked: Asked, binding: Binding) -> Binding:
    """Compile the kernels of all candidate devices in the background."""
    launches = _launches_of(asked, binding)
    by = _hooks.caller()
    for (_, device), each in launches.items():
        for launch in each:
            if launch.entry.kernel is None:
                background.ask(partial(make_ready, launch, asked.devices[device], True, by))
    return binding._replace(launches=launches)


def _ready(asked: Asked, binding: Binding) -> tuple[tuple[str, int, int], ...]:
    """Return for each device how many of its kernels are compiled, and how many there are."""
    counts = []
    for device, queue in enumerate(asked.devices):
        entries = {
            id(launch.entry): launch.entry
            for (_, place), launches in binding.launches.items()
            if place == device
            for launch in launches
        }
        done = sum(entry.kernel is not None for entry in entries.values())
        counts.append((places.name_of(queue), done, len(entries)))
    return tuple(count for count in counts if count[2])


def bring(policy: Policy, layout: Layout, queue: Any) -> Layout:
    """Return values on another queue, where a write needs them."""
    source = layout.block.queue
    places.check_there(source)
    note_call(policy, "a value that is written", layout, source, queue)
    return transfers.copied(layout, queue)


def note_call(policy: Policy, what: str, layout: Layout, source: Any, target: Any) -> None:
    """Add a copy to the records that is not part of a schedule."""
    nbytes = prod(layout.shape) * layout.dtype.itemsize
    seconds = device_costs.link_of(source, target, False).seconds(nbytes)
    what = f"{what}, {layout.dtype} of shape {layout.shape}"
    names = places.name_of(source), places.name_of(target)
    work = PlacedWork("copy", names[1], what, nbytes, 0.0, seconds, names[0], "call")
    records.append(Measuring(PlacedExpression(_called(policy), names, (work,), seconds), {}))


# Text.


def described(
    policy: Policy,
    asked: Asked,
    binding: Binding,
    clock: Clock | None = None,
    retried: tuple[str, ...] = (),
) -> PlacedExpression:
    """Return the record of a binding, and of its run if it was run."""
    queues, steps, order = binding.queues, binding.steps, asked.order
    names = [places.name_of(queue) for queue in queues]
    devices = tuple(names[: len(asked.devices)])
    arrays = asked.canonical.arrays
    tasks, values, _ = binding.problem
    writers = {
        number: position for position, step in enumerate(steps, 1) for number in step.results
    }

    def name_of(value: int) -> str:
        if value < len(arrays):
            return f"array a{value}, {arrays[value].dtype} of {arrays[value].shape}"
        number = binding.results[value - len(arrays)]
        node = order[number]
        return f"result of step {writers[number]}, {node.dtype} of {node.shape}"

    work = []
    for action in binding.schedule.actions:
        took, began = clock.times_of(action) if clock is not None else (None, None)
        measured: dict[str, Any] = {"measured": took, "measured_start": began}
        times = action.start, action.start if isinstance(action, Drop) else action.finish
        if isinstance(action, Step):
            results = [order[number] for number in steps[action.task].results]
            shapes = ", ".join(f"{node.dtype} of {node.shape}" for node in results)
            what = f"{action.task + 1}. {binding.names[action.task]}: {shapes}"
            nbytes = sum(values[value].nbytes for value in tasks[action.task].writes)
            others = tuple(zip(devices, action.alternatives, strict=True))
            own = PlacedWork("step", names[action.device], what, int(nbytes), *times)
            work.append(replace(own, alternatives=others, **measured))
        elif isinstance(action, Copy):
            kind = "copy", names[action.target], name_of(action.value), int(action.nbytes)
            source = names[action.source], action.because
            work.append(PlacedWork(*kind, *times, *source, **measured))
        else:
            held = int(values[action.value].nbytes)
            kind = "drop", names[action.place], name_of(action.value), held
            work.append(PlacedWork(*kind, *times))
    return PlacedExpression(
        _called(policy),
        devices,
        tuple(work),
        binding.schedule.finish,
        tuple(zip(devices, binding.alone, strict=True)),
        binding.planning,
        None if clock is None or not clock.is_on else clock.taken,
        retried,
        _ready(asked, binding),
    )


def _called(policy: Policy) -> str:
    choose = policy.choose
    return choose if isinstance(choose, str) else getattr(choose, "__name__", "a function")


def _operations(step: CutStep, order: Sequence[Node]) -> str:
    names = [node.op.name for number in step.nodes if (node := order[number]).op is not None]
    shown = list(dict.fromkeys(names))
    return ", ".join(shown[:6]) + (", ..." if len(shown) > 6 else "")


def _listed(queues: Sequence[Any]) -> str:
    return ", ".join(map(places.name_of, queues))


def _no_room(
    error: NoRoom,
    steps: Sequence[CutStep],
    problem: Problem,
    order: Sequence[Node],
    arrays: Sequence[Layout],
    queues: Sequence[Any],
) -> MemoryError:
    """Return the error that names arrays, bytes and devices."""
    numbers = [number for step in steps for number in step.results]
    named = []
    for value in error.values:
        size = format_bytes(int(problem.values[value].nbytes))
        if value < len(arrays):
            array = arrays[value]
            named.append(f"array a{value} ({array.dtype} of shape {array.shape}, {size})")
        else:
            node = order[numbers[value - len(arrays)]]
            assert node.op is not None
            named.append(f"the result of {node.op.name} ({node.dtype} of {node.shape}, {size})")
    lacking = [queues[place] for place in error.devices]
    left = [int(min(device_costs.free_memory(queue), 1 << 60)) for queue in lacking]
    free = ", ".join(
        f"{places.name_of(queue)} has {format_bytes(size)} free"
        for queue, size in zip(lacking, left, strict=True)
    )
    need = int(sum(problem.values[value].nbytes for value in error.values))
    where = "a result" if error.task is None else f"step {error.task + 1} of {len(steps)}"
    return MemoryError(
        f"placement: no device of the policy has enough memory for {where}, which needs "
        f"{format_bytes(need)}: {', '.join(named)}; {free}. `del` arrays that are not needed, "
        "process parts of them, or name a device with more memory: "
        "dp.placement(..., devices=[...])",
        requested=need,
        device=_listed(lacking),
    )
