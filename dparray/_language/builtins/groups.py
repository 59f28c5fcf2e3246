"""Group algorithms: reductions, scans, broadcasts and exchanges.

Sums, minima and maxima are functions of devices. Other operations, and Python's order in two and
three dimensions, go through local memory, or from lane to lane of a sub-group (``prelude``).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from dparray import kernel_api as api
from dparray._ir.types import BOOL, F32, I32, I64, LOCAL, U32, U64, Pointer, Type
from dparray._language import prelude
from dparray._language.builtins.registry import HANDLERS, Native, handles
from dparray._language.builtins.work_items import leader, linear_range, row_major_id
from dparray._language.device_function import DeviceFunction
from dparray._language.errors import Refusal
from dparray._language.values import (
    NONE,
    Array,
    Constant,
    Item,
    Lambda,
    Number,
    described,
    is_number,
)
from dparray.kernel_api.groups import GROUP_OPERATIONS, neutral_of

_COMBINE: dict[str, Any] = {
    "add": operator.add,
    "mul": operator.mul,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
_OF_DEVICES = ("add", "min", "max")
_OF_INTEGERS = ("and", "or", "xor")
#: The values in local memory during a scan over a group; larger groups, which only CPU devices
#: have, take turns. Values for the largest groups would fill the local memory of a GPU.
_SCRATCH = 1024


def _check_group(function: str, group: Any, node: Any) -> None:
    if not isinstance(group, Item) or group.kind not in ("Group", "SubGroup"):
        raise Refusal(
            f"{function}: the first argument is a group, as item.get_group() or "
            f"item.get_sub_group() gives; got {described(group)}",
            node,
        )


def _number(front: Any, function: str, group: Any, value: Any, node: Any) -> tuple[Type, Type]:
    """Return the type of a value, and the type in which a device works."""
    _check_group(function, group, node)
    kind = front.type_of(value) if is_number(value) else None
    if kind is None or kind.kind == "b" or kind.lanes > 1:
        got = described(value) if kind is None or kind.lanes > 1 else kind.name
        raise Refusal(f"{function}: takes an integer or a float; got {got}", node)
    least = F32 if kind.is_float else I32 if kind.kind == "i" else U32
    return kind, kind if kind.bits >= 32 else least


def _operation(function: str, operation: Any, kind: Type, node: Any) -> tuple[str, Any]:
    """Return the name of an operation, empty for a function, and the function of two values."""
    is_function = isinstance(operation, Lambda)
    if isinstance(operation, Constant):
        is_function = isinstance(operation.value, DeviceFunction)
    if is_function:
        return "", operation
    name = operation.value if isinstance(operation, Constant) else described(operation)
    if name not in GROUP_OPERATIONS:
        raise Refusal(
            f"{function}: the operation is one of {', '.join(map(repr, GROUP_OPERATIONS))}, "
            f"written out in the call, or a device function; got {name!r}",
            node,
        )
    if kind.is_float and name in _OF_INTEGERS:
        raise Refusal(f"{function}: {name!r} takes integers; got a float", node)
    return name, Constant(_COMBINE[name])


def _scope(group: Item) -> str:
    return "sub_group" if group.kind == "SubGroup" else "work_group"


def _shuffle(front: Any, value: Any, lane: Any, kind: Type, working: Type) -> Number:
    """Return the value of the work-item of a sub-group with a given id."""
    number = front.op("convert", U32, front.to(lane, I64).op)
    attribute = ("sub_group", "shuffle", "")
    op = front.op("group", working, front.to(value, working).op, number, attribute=attribute)
    return front.to(Number(op), kind)


_STEPS = {"reduce": 0, "inclusive_scan": 1, "exclusive_scan": 2}


def _combination(
    step: str, function: str, front: Any, node: Any, group: Any, value: Any, operation: Any
) -> Number:
    """Return the combined value of all work-items, of those up to this one, or before it."""
    kind, working = _number(front, function, group, value, node)
    name, combine = _operation(function, operation, kind, node)
    if name in _OF_DEVICES and (step == "reduce" or group.dimensions == 1):
        attribute = (_scope(group), step, name)
        op = front.op("group", working, front.to(value, working).op, attribute=attribute)
        return front.to(Number(op), kind)

    def combined(front: Any, node: Any, a: Any, b: Any) -> Number:
        return front.to(front.call(combine, [a, b], {}, node), kind)

    value = front.to(value, kind)
    call = Constant(Native(combined))
    if group.kind == "SubGroup":
        return _over_lanes(step, front, node, group, value, call, kind, working)
    memory = front.op("allocate", Pointer(kind, LOCAL), attribute=_SCRATCH)
    scratch = Array(memory, (front.number(Constant(_SCRATCH)),))
    size = linear_range(front, Item("NdItem", group.dimensions), "get_local_range", node)
    mine = row_major_id(front, group)
    arguments = [group, value, scratch, call, mine, size]
    result: Number = front.call(Constant(prelude.linear_scan), arguments, {}, node).items[
        _STEPS[step]
    ]
    return result


def _over_lanes(
    step: str,
    front: Any,
    node: Any,
    group: Item,
    value: Number,
    combine: Constant,
    kind: Type,
    working: Type,
) -> Number:
    def shuffled(front: Any, node: Any, value: Any, lane: Any) -> Number:
        return _shuffle(front, value, lane, kind, working)

    arguments = [group, value, combine, Constant(Native(shuffled))]
    upto: Number = front.call(Constant(prelude.lane_scan), arguments, {}, node)
    if step == "inclusive_scan":
        return upto
    last = front.index("sub_group_size" if step == "reduce" else "sub_group_local_id", 0)
    last = front.binary(ast.Sub, last, Constant(1), node)
    if step == "exclusive_scan":
        last = front.call(Constant(max), [last, Constant(0)], {}, node)
    return _shuffle(front, upto, last, kind, working)


def _combining(step: str, function: Any) -> Callable[..., Any]:
    def handler(
        front: Any, node: Any, group: Any, value: Any, operation: Any = Constant("add")
    ) -> Number:
        name = function.__name__
        return _combination(step, name, front, node, group, value, operation)

    return handler


for _function in (api.group_reduce, api.reduce_over_group):
    HANDLERS[_function] = _combining("reduce", _function)
for _function in (api.group_inclusive_scan, api.inclusive_scan_over_group):
    HANDLERS[_function] = _combining("inclusive_scan", _function)


@handles(api.exclusive_scan_over_group)
def _exclusive_scan(
    front: Any,
    node: Any,
    group: Any,
    value: Any,
    operation: Any = Constant("add"),
    initial: Any = NONE,
) -> Number:
    function = "exclusive_scan_over_group"
    kind, _ = _number(front, function, group, value, node)
    before = _combination("exclusive_scan", function, front, node, group, value, operation)
    name, combine = _operation(function, operation, kind, node)
    # The first work-item has no predecessor, so its result does not come from `before`.
    if initial != NONE:
        _number(front, function, group, initial, node)
        start = front.to(initial, kind)
        rest = front.to(front.call(combine, [start, before], {}, node), kind)
    elif name:
        start, rest = front.to(Constant(neutral_of(name, kind.dtype)), kind), before
    else:
        raise Refusal(
            f"{function}: a device function needs initial=, what the first work-item gets", node
        )
    is_first = leader(front, group)
    return Number(front.op("select", kind, is_first.op, start.op, rest.op))


@handles(api.group_broadcast)
def _broadcast(
    front: Any, node: Any, group: Any, value: Any, local_id: Any = Constant(0)
) -> Number:
    kind, working = _number(front, "group_broadcast", group, value, node)
    if not is_number(local_id) or not front.type_of(local_id).is_integer:
        raise Refusal(
            f"group_broadcast: takes an integer as the local id; got {described(local_id)}", node
        )
    if group.kind == "SubGroup":
        return _shuffle(front, value, local_id, kind, working)
    linear = front.to(front.to(local_id, I64), U64)
    parts: list[Number] = []
    for dimension in reversed(range(group.dimensions)):
        size = front.to(front.index("local_size", dimension), U64)
        parts.insert(0, linear if dimension == 0 else front.made("mod", U64, linear, size))
        linear = front.made("floordiv", U64, linear, size)
    operands = front.to(value, working).op, *(part.op for part in parts)
    op = front.op("group", working, *operands, attribute=("work_group", "broadcast", ""))
    return front.to(Number(op), kind)


# --- sub-groups -----------------------------------------------------------------------------------


def _exchange(
    function: str,
    operation: type | None,
    front: Any,
    node: Any,
    group: Any,
    value: Any,
    other: Any,
) -> Number:
    """Return the value of another work-item of a sub-group, or the own one if there is none."""
    if isinstance(group, Item) and group.kind == "Group":
        raise Refusal(
            f"{function}: only sub-groups exchange values: use item.get_sub_group(), or local "
            "memory and a barrier",
            node,
        )
    kind, working = _number(front, function, group, value, node)
    if not is_number(other) or not front.type_of(other).is_integer:
        raise Refusal(f"{function}: takes an integer; got {described(other)}", node)
    mine = front.index("sub_group_local_id", 0)
    size = front.index("sub_group_size", 0)
    wanted = front.to(other, I64)
    if operation is not None:
        wanted = front.binary(operation, mine, wanted, node)
    inside = front.op(
        "and",
        BOOL,
        front.op("ge", BOOL, wanted.op, front.constant(0, I64)),
        front.op("lt", BOOL, wanted.op, size.op),
    )
    lane = Number(front.op("select", I64, inside, wanted.op, mine.op))
    return _shuffle(front, value, lane, kind, working)


@handles(api.select_from_group)
def _select(front: Any, node: Any, group: Any, value: Any, remote_local_id: Any) -> Number:
    return _exchange("select_from_group", None, front, node, group, value, remote_local_id)


@handles(api.shift_group_left)
def _left(front: Any, node: Any, group: Any, value: Any, delta: Any = Constant(1)) -> Number:
    return _exchange("shift_group_left", ast.Add, front, node, group, value, delta)


@handles(api.shift_group_right)
def _right(front: Any, node: Any, group: Any, value: Any, delta: Any = Constant(1)) -> Number:
    return _exchange("shift_group_right", ast.Sub, front, node, group, value, delta)


@handles(api.permute_group_by_xor)
def _permute(front: Any, node: Any, group: Any, value: Any, mask: Any) -> Number:
    return _exchange("permute_group_by_xor", ast.BitXor, front, node, group, value, mask)


# --- predicates -----------------------------------------------------------------------------------


def _judged(
    function: str, word: str, wanted: bool, front: Any, node: Any, group: Any, predicate: Any
) -> Number:
    """Return whether ones and zeros of all work-items combine to the wanted value."""
    _check_group(function, group, node)
    if not is_number(predicate) or front.type_of(predicate).lanes > 1:
        raise Refusal(
            f"{function}: the predicate must be a Boolean or a number; got {described(predicate)}",
            node,
        )
    one = front.to(front.truth(predicate), I32)
    op = front.op("group", I32, one.op, attribute=(_scope(group), "reduce", word))
    answer = front.op("ne" if wanted else "eq", BOOL, op, front.constant(0, I32))
    return front.python(Number(answer))


HANDLERS[api.any_of_group] = partial(_judged, "any_of_group", "max", True)
HANDLERS[api.all_of_group] = partial(_judged, "all_of_group", "min", True)
HANDLERS[api.none_of_group] = partial(_judged, "none_of_group", "max", False)
