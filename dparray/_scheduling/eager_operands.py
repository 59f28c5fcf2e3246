"""Under a placement policy, copy the operands of eager functions to one device.

Such functions raise if their operands are on several queues, before anything is done. In that case
the operands are copied to one of the queues, the function is called again, and its result is moved
to its expected placement. :func:`dparray.placement` records the copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dparray import _placement
from dparray._array.ndarray import materialize, ndarray
from dparray._placement import Policy
from dparray._scheduling import device_costs, executor, places
from dparray._scheduling.places import PolicyStep
from dparray.device import Device

#: Functions that write to their first operand.
_WRITE_FIRST = frozenset(
    {"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask", "shuffle"}
)


def called_together(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a function again after copying its operands to one queue.

    Return ``NotImplemented`` if no active policy allows it.
    """
    policy = _placement.policy_in_force()
    arrays = [] if policy is None else _arrays_in((args, kwargs))
    if policy is None or len(arrays) < 2:
        return NotImplemented
    name = function.__name__
    # The ``out`` of a Tile function may be a sequence or a mapping of arrays.
    written = next(iter(_arrays_in(kwargs.get("out"))), None)
    if written is None and name in _WRITE_FIRST:
        written = arrays[0]
    if isinstance(written, ndarray):
        queue = written.queue
    else:
        queue = _chosen(policy, name, arrays)
    result = function(
        *_moved(args, policy, f"an operand of {name}", queue),
        **{
            key: value
            if key == "out"  # never a copy, which nobody would read
            else _moved(value, policy, f"an operand of {name}", queue)
            for key, value in kwargs.items()
        },
    )
    if isinstance(written, ndarray):
        return result
    home = arrays[0].queue if policy.result is None else policy.result
    return _moved(result, policy, f"the result of {name}", home)


def _arrays_in(value: Any) -> list[ndarray]:
    """Return each array in nested tuples, lists and dicts once."""
    arrays: dict[int, ndarray] = {}
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, ndarray):
            arrays.setdefault(id(each), each)
        elif isinstance(each, tuple | list):
            stack += reversed(each)
        elif isinstance(each, dict):
            stack += reversed(each.values())
    return list(arrays.values())


def _chosen(policy: Policy, name: str, arrays: list[ndarray]) -> Any:
    """Return the queue to which a function's operands are copied."""
    measures = policy.choose == "fastest"
    queues = [x.queue for x in arrays]
    devices = places.devices_of(policy, list(dict.fromkeys(queues)), queues[:1])
    total = sum(x.nbytes for x in arrays)
    seconds = []
    for queue in devices:
        able = all(device_costs.can_hold(x.dtype, queue) for x in arrays)
        moving = sum(
            device_costs.link_of(x.queue, queue, measures).seconds(x.nbytes) for x in arrays
        )
        moving += device_costs.link_of(queue, queues[0], measures).seconds(arrays[0].nbytes)
        speeds = device_costs.speeds_of(queue, measures)
        seconds.append(moving + 2 * total / speeds.memory if able else float("inf"))
    if callable(policy.choose):
        first = arrays[0]
        offered = tuple([Device(queue) for queue in queues])
        step = PolicyStep(
            *(1, (name,), first.shape, first.dtype.name, total, first.nbytes, offered),
            *(tuple([Device(queue) for queue in devices]), tuple(seconds)),
        )
        return Device(policy.choose(step)).queue
    return devices[seconds.index(min(seconds))]


def _moved(value: Any, policy: Policy, what: str, queue: Any) -> Any:
    """Move the arrays in nested tuples, lists and dicts to a queue; keep other values."""
    if isinstance(value, ndarray):
        if value.queue == queue:
            return value
        executor.note_call(policy, what, materialize(value), value.queue, queue)
        return value.to_device(queue)
    if isinstance(value, tuple | list):
        parts = [_moved(part, policy, what, queue) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: _moved(part, policy, what, queue) for key, part in value.items()}
    return value
