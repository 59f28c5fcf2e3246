"""Compute follows data: the one module that decides the queue of an operation.

The rules are those of the Python Data Parallel Extensions' programming model. All array inputs must
be on one queue. The operation runs there, and its result is allocated there; its USM type is
coerced from those of the inputs (device over shared over host). Nothing else decides.

That is the policy "follow". Another policy, which a program must request, lets operations take
inputs of several queues, and decides where each step is computed once that is known
(:mod:`dparray._scheduling`). The result is then allocated on the queue of the first input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dparray import _dtypes, _hooks, config
from dparray._driver import is_queue, is_same_device, root_of, traits_of
from dparray._driver.interface import Queue
from dparray.device import USM_TYPES, describe_queue
from dparray.exceptions import ExecutionPlacementError, UsmTypeError


class Placement(NamedTuple):
    """The queue and USM type of an operation and its result."""

    queue: Queue
    usm_type: str


_new = tuple.__new__  # A `__new__` of the class itself would cost one more call.


class Policy(NamedTuple):
    """A policy that decides where the steps of an expression are computed.

    Attributes:
        choose: ``"follow"``, ``"fastest"``, or a function of a step that returns a device.
        queues: the queues of the allowed devices; empty for all devices.
        result: the queue of results; ``None`` for the queue of the first input.
    """

    choose: str | Callable[[Any], Any]
    queues: tuple[Queue, ...] = ()
    result: Queue | None = None


_blocks = _hooks.Blocks("dparray_placement", lambda policy: _count())

#: The number of active policies other than "follow", in all threads. The fastest check needs zero.
in_force = 0
#: The number of these that are functions, which must place each step. While there are any, the
#: compiled fast path is off, because it computes small arrays where they are stored; "fastest"
#: would place them there, too.
functions_in_force = 0


def _count() -> None:
    global in_force, functions_in_force
    choices = [*config.values_in_force("placement"), *(each.choose for each in _blocks.in_force)]
    in_force = sum(each != "follow" for each in choices)
    functions_in_force = sum(map(callable, choices))
    _hooks.option_was_set("functions_in_force")


def policy_in_force() -> Policy | None:
    """Return the active policy of this thread or task; ``None`` if it is "follow"."""
    if not in_force:
        return None
    blocks = _blocks.entered.get()
    policy: Policy = blocks[-1].value if blocks else Policy(config.placement)
    return None if policy.choose == "follow" else policy


def scoped(policy: Policy) -> AbstractContextManager[None]:
    """Set a policy inside a ``with`` block, for this thread or task."""
    return _blocks.enter(policy)


_count()
_hooks.when_set("placement", _count)


def result_placement(placement: Placement) -> Placement:
    """Return the placement of a result: unchanged, or on the result queue of the active policy."""
    policy = policy_in_force()
    if policy is None or policy.result is None:
        return placement
    return Placement(policy.result, placement.usm_type)


def placement_of(x: Any) -> Placement:
    """Return the placement of an array, for results computed from it."""
    return _new(Placement, (x.queue, x.usm_type))


@lru_cache(maxsize=256)
def check_dtype(dtype: np.dtype[Any], queue: Queue) -> np.dtype[Any]:
    """Return ``dtype`` if the queue's device can compute in it; checked once.

    Raises:
        UnsupportedDeviceError: the device lacks the aspect.
    """
    return _dtypes.check_device(dtype, traits_of(queue))


def check_usm_type(usm_type: str) -> str:
    """Return ``usm_type``, or raise an error that lists the USM types."""
    if usm_type not in USM_TYPES:
        raise UsmTypeError(
            f"unknown usm_type {usm_type!r}; expected one of {', '.join(map(repr, USM_TYPES))}"
        )
    return usm_type


def coerced_usm_type(first: str, second: str) -> str:
    """Return the USM type of a result made from two: device over shared over host."""
    return USM_TYPES[min(USM_TYPES.index(first), USM_TYPES.index(second))]


def get_execution_queue(queues: Sequence[Queue]) -> Queue | None:
    """Return the queue that all ``queues`` equal, where an operation on their arrays would run.

    Returns:
        The queue; ``None`` if they differ, or there are none.

    Raises:
        TypeError: one of them is not a queue.

    Example:
        >>> x, y = dp.ones(3), dp.zeros(2)
        >>> dp.get_execution_queue([x.queue, y.queue]) == x.queue
        True
    """
    for queue in queues:
        if not is_queue(queue):
            raise TypeError(
                f"get_execution_queue: {queue!r} is not a queue; pass `x.queue` of arrays"
            )
    if not queues or any(queue != queues[0] for queue in queues):
        return None
    return queues[0]


def usm_rule(usm_type: str, operands: Iterable[str]) -> str:
    """Return the USM type of a result, and a text that explains it."""
    kinds = sorted(set(operands))
    if len(kinds) > 1:
        return f"{usm_type} memory: of {' and '.join(kinds)}, the nearest the device"
    return f"{usm_type} memory, as its operands" if kinds else f"{usm_type} memory"


def get_coerced_usm_type(usm_types: Sequence[str]) -> str | None:
    """Return the USM type of a result made from arrays of these types: device over shared over
    host.

    Returns:
        The USM type; ``None`` for an empty sequence.

    Raises:
        UsmTypeError: one of them is not a USM type.

    Example:
        >>> dp.get_coerced_usm_type(["host", "shared"])
        'shared'
    """
    kinds = [check_usm_type(usm_type) for usm_type in usm_types]
    return min(kinds, key=USM_TYPES.index) if kinds else None


def common_placement(
    function: str, operands: Sequence[tuple[str, Any]], may_mix: bool = False
) -> Placement:
    """Return the placement that ``operands`` share.

    Args:
        function: the public function, for the message.
        operands: pairs of a parameter's name and an array (anything with ``queue`` and
            ``usm_type``); at least one.
        may_mix: whether the result is an expression, so that a policy other than "follow" can
            decide later; the returned placement is then the placement of the result.

    Raises:
        ExecutionPlacementError: the operands are on different queues.
    """
    first = operands[0][1]
    queue, usm_type = first.queue, first.usm_type
    for _, operand in operands[1:]:
        if operand.queue is not queue and operand.queue != queue:
            if may_mix and in_force and policy_in_force() is not None:
                kinds = [operand.usm_type for _, operand in operands]
                return Placement(queue, min(kinds, key=USM_TYPES.index))
            raise _mismatch(function, operands)
        if operand.usm_type != usm_type:
            usm_type = coerced_usm_type(usm_type, operand.usm_type)
    return _new(Placement, (queue, usm_type))


def _case(queue: Queue, other: Queue) -> str:
    """Return which of the programming model's three cases two unequal queues are."""
    if is_same_device(queue, other):
        return "same device, different queues"
    if root_of(queue) == root_of(other):
        if not (traits_of(queue).is_part and traits_of(other).is_part):
            return "a device and a sub-device of it"
        return "different sub-devices of one device"
    return "different devices"


def _mismatch(function: str, operands: Sequence[tuple[str, Any]]) -> ExecutionPlacementError:
    """Return the error that names every operand with its device, the case, and the fix."""
    first_name, first = operands[0]
    strangers = [(name, operand) for name, operand in operands if operand.queue != first.queue]
    case = _case(first.queue, strangers[0][1].queue)
    places = tuple(
        (name, *describe_queue(operand.queue).rsplit(", ", 1)) for name, operand in operands
    )
    width = max(len(name) for name, _, _ in places)
    lines = [f"  {name:<{width}}  on {device}, {queue}" for name, device, queue in places]
    remedy = "; ".join(
        f"{name} = {name}.to_device({first_name}.device)"
        if name.isidentifier()
        else f"{name}.to_device({first_name}.device)"
        for name in dict.fromkeys(n for n, _ in strangers)
    )
    return ExecutionPlacementError(
        f"{function}: the arrays are not on one queue ({case}):\n"
        + "\n".join(lines)
        + f"\nCompute follows data, so all inputs must be on one queue. Move them: {remedy}",
        function=function,
        operands=places,  # type: ignore[arg-type]
        remedy=remedy,
    )
