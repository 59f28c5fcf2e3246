"""The candidate devices of a policy, and what is known of them when a step is bound."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, log2
from typing import Any

from dparray._driver import is_same_device, root_of
from dparray._graph.node import Node
from dparray._layout import Layout
from dparray._placement import Policy
from dparray._runtime import durations
from dparray._runtime import queues as runtime_queues
from dparray._scheduling import device_costs
from dparray._scheduling.cut import CutStep
from dparray._scheduling.problem import Link, Machine, Problem
from dparray.device import Device, describe_queue, devices
from dparray.exceptions import DeviceError
from dparray.memory.stats import format_bytes


class Vanished(Exception):
    """Raised when a device was lost, but the data on it can be computed again.

    Attributes:
        name: the name of the device.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def name_of(queue: Any) -> str:
    """Return the name of a device for messages."""
    said = device_costs.declared.get(queue)
    if said is not None:
        return said.name
    return _text_of(queue)


@lru_cache(maxsize=64)
def _text_of(queue: Any) -> str:
    return describe_queue(queue).removesuffix(", default queue")


def is_there(queue: Any) -> bool:
    """Return whether a device has not been lost."""
    said = device_costs.declared.get(queue)
    return said is None or said._steps_left > 0


def check_there(queue: Any) -> None:
    """Raise if a device was lost.

    Raises:
        Vanished: it was lost.
    """
    if not is_there(queue):
        raise Vanished(name_of(queue))


def check_homes(homes: Sequence[Any], arrays: Sequence[Layout]) -> None:
    """Raise if arrays of an expression are on a lost device.

    Raises:
        DeviceError: an array is on a lost device.
    """
    lost = [
        (number, array, home)
        for number, (array, home) in enumerate(zip(arrays, homes, strict=True))
        if home is not None and not is_there(home)
    ]
    if lost:
        named = ", ".join(
            f"array a{number} ({array.dtype} of shape {array.shape}, "
            f"{format_bytes(array.block.nbytes)}) on {name_of(home)}"
            for number, array, home in lost
        )
        raise DeviceError(
            f"placement: a device was lost with arrays that are needed: {named}; create them "
            "again on another device, from a copy or a file: x = dp.asarray(host, device=...)"
        )


def check_wanted(roots: Sequence[Any]) -> None:
    """Raise if a requested value must be on a lost device.

    Raises:
        DeviceError: the device was lost.
    """
    for node in roots:
        if not is_there(node.queue):
            raise DeviceError(
                f"placement: a result ({node.dtype} of shape {node.shape}) must be on "
                f"{name_of(node.queue)}, which was lost; build the expression again, from "
                "arrays on other devices, or choose a result device: dp.placement(policy, "
                'result="cpu")'
            )


@lru_cache(maxsize=1)
def _root_queues() -> tuple[Any, ...]:
    return tuple(device.queue for device in devices())


def devices_of(policy: Policy, used: Sequence[Any], wanted: Sequence[Any]) -> tuple[Any, ...]:
    """Return the queues to which steps may be bound.

    These are the queues that the policy names. By default, they are those of the arrays and
    results, one for each device, and one for each other device of the machine.

    Raises:
        DeviceError: all devices were lost.
    """
    if policy.queues:
        queues = list(dict.fromkeys(policy.queues))
    else:
        queues = []
        for queue in (*dict.fromkeys(wanted), *used, *_root_queues()):
            if queue in device_costs.declared:
                if queue not in queues:
                    queues.append(queue)
            elif not any(
                other not in device_costs.declared and is_same_device(queue, other)
                for other in queues
            ):
                queues.append(queue)
        real = {root_of(queue) for queue in used}
        queues = [queue for queue in queues if queue in used or root_of(queue) not in real]
    there = tuple([queue for queue in queues if is_there(queue)])
    if not there:
        names = ", ".join(map(name_of, queues))
        raise DeviceError(
            f"placement: no device is left that the policy may choose: {names} were lost; "
            "dp.devices() lists the available devices"
        )
    return there


# The times until which devices are busy, by the estimates of the work submitted to them.
_busy: dict[Any, float] = {}


def note_busy(queue: Any, seconds: float) -> None:
    """Record that a device will be busy for this many seconds from now."""
    _busy[queue] = max(_busy.get(queue, 0.0), time.perf_counter() + seconds)


#: Shorter backlogs are ignored.
_SHORT = 200e-6


#: Work that was not submitted by a policy has no estimate. It is assumed to need this long, or as
#: long again as it has been running.
_UNKNOWN = 1e-3

# The time since when queues have been running work that was not submitted by a policy.
_seen_at_work: dict[Any, float] = {}


def _backlog(queue: Any) -> float:
    """Return how long a device is still busy, as a power of two so that plans are reused."""
    if queue in device_costs.declared:
        return 0.0
    now = time.perf_counter()
    left = _busy.get(queue, now) - now
    if runtime_queues.is_idle(queue):
        _seen_at_work.pop(queue, None)
        left = 0.0
    else:
        left = max(left, durations.remaining(queue, _UNKNOWN))
        if left < _SHORT:
            left = max(_UNKNOWN, now - _seen_at_work.setdefault(queue, now))
    if left < _SHORT:
        _busy.pop(queue, None)
        return 0.0
    return float(2.0 ** round(log2(left)))


#: If this many times the size of an expression is free, memory is not a limit.
_AMPLE = 2.0


def machine_of(queues: Sequence[Any], count: int, nbytes: float, measures: bool) -> Machine:
    """Return the machine on which an expression is scheduled.

    Args:
        queues: the queues of the places, those of devices first.
        count: the number of devices.
        nbytes: the size of all arrays and values of the expression.
        measures: whether devices and links may be measured.
    """
    free = [device_costs.free_memory(queue) for queue in queues]
    return Machine(
        tuple([_backlog(queue) for queue in queues[:count]]),
        tuple([tuple([_link(a, b, measures) for b in queues]) for a in queues]),
        tuple([inf if each >= _AMPLE * nbytes else each for each in free]),
    )


_links: dict[Any, Link] = {}


def _link(source: Any, target: Any, measures: bool) -> Link:
    key = source, target
    link = _links.get(key)
    if link is None:
        link = device_costs.link_of(source, target, measures)
        if measures:
            if len(_links) > 1024:
                _links.clear()
            _links[key] = link
    return link


@dataclass(frozen=True)
class PolicyStep:
    """A step, as passed to a policy that is a function.

    Attributes:
        number: its position in the expression, from 1.
        operations: the names of its operations.
        shape, dtype: those of its result.
        nbytes_read, nbytes_written: the sizes of its operands and results.
        operands: for each operand the device on which it is stored at that time.
        devices: the candidate devices.
        seconds: for each candidate the estimated time of the step without copies; ``inf`` if it
            cannot be computed there.

    Example:
        >>> parts = [dp.Device("cpu").new_queue() for _ in range(2)]
        >>> x = dp.asarray([1.0, 2.0], device=parts[0])
        >>> y = dp.asarray([3.0, 4.0], device=parts[1])
        >>> def where_the_second_lies(step):
        ...     return step.operands[-1]
        >>> with dp.placement(where_the_second_lies):
        ...     total = x + y
        >>> total.asnumpy()
        array([4., 6.])
        >>> total.device in parts
        True
    """

    number: int
    operations: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    nbytes_read: int
    nbytes_written: int
    operands: tuple[Device, ...]
    devices: tuple[Device, ...]
    seconds: tuple[float, ...]


def _device_of(answer: Any, number: int) -> Any:
    """Return the queue of the device that a policy returned for a step."""
    if answer is None:
        raise DeviceError(
            f"placement: the policy returned None for step {number}; return one of step.devices"
        )
    try:
        return Device(answer).queue
    except DeviceError as error:
        raise DeviceError(
            f"placement: the policy did not choose a device for step {number}: {error}"
        ) from None


def chosen(
    policy: Policy,
    problem: Problem,
    steps: Sequence[CutStep],
    order: Sequence[Node],
    queues: Sequence[Any],
) -> list[int]:
    """Return the device of each step, by a policy that is a function.

    Raises:
        DeviceError: it did not return a candidate, or returned one that cannot compute the step.
    """
    assert callable(policy.choose)
    values = problem.values
    lies: dict[int, int] = {}
    found = []
    offered = tuple([Device(queue) for queue in queues])
    for number, (step, task) in enumerate(zip(steps, problem.tasks, strict=True), 1):
        last = order[step.results[-1]]
        operands = []
        for value in task.reads:
            place = lies.get(value, values[value].home)
            if place is not None and place < len(queues):
                operands.append(offered[place])
        names = [node.op.name for at in step.nodes if (node := order[at]).op is not None]
        given = PolicyStep(
            number,
            tuple(names),
            last.shape,
            last.dtype.name,
            int(sum(values[value].nbytes for value in task.reads)),
            int(sum(values[value].nbytes for value in task.writes)),
            tuple(operands),
            offered,
            task.seconds,
        )
        answer = _device_of(policy.choose(given), number)
        if answer not in queues:
            raise DeviceError(
                f"placement: the policy chose {name_of(answer)} for step {number}, which is not "
                f"one of {', '.join(map(name_of, queues))}; name it: dp.placement(policy, "
                "devices=[...])"
            )
        place = list(queues).index(answer)
        if task.seconds[place] == inf:
            raise DeviceError(
                f"placement: the policy chose {name_of(answer)} for step {number} "
                f"({', '.join(dict.fromkeys(names))} of {last.dtype}), but that device does not "
                "support the precision; step.seconds is finite for devices that can compute it"
            )
        for value in task.writes:
            lies[value] = place
        found.append(place)
    return found
