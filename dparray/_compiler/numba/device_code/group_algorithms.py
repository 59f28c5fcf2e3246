"""Group algorithms on devices: reductions, scans and broadcasts over a group.

Sums, minima and maxima are SPIR-V instructions. Other operations, and Python's order in two and
three dimensions, go through local memory, or from lane to lane of a sub-group: W. D. Hillis and G.
L. Steele, "Data parallel algorithms", 1986.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import overload_attribute, register_jitable

from dparray._compiler import abi
from dparray._compiler.numba import instructions as device
from dparray._compiler.numba.registration import device_overload, instructions
from dparray._compiler.numba.target import TARGET
from dparray._compiler.numba.types import LOCAL, GroupType, SubGroupType
from dparray.kernel_api import (
    all_of_group,
    any_of_group,
    exclusive_scan_over_group,
    group_barrier,
    group_broadcast,
    group_inclusive_scan,
    group_reduce,
    inclusive_scan_over_group,
    none_of_group,
    permute_group_by_xor,
    reduce_over_group,
    select_from_group,
    shift_group_left,
    shift_group_right,
)
from dparray.kernel_api.groups import GROUP_OPERATIONS, neutral_of

_INT32 = ir.IntType(32)
_INT64 = ir.IntType(64)

# The numbers of SPIR-V's group operations.
_REDUCE, _INCLUSIVE_SCAN, _EXCLUSIVE_SCAN = range(3)
_OF_INTEGERS = ("and", "or", "xor")
# Instruction by operation and kind of number.
_INSTRUCTIONS = {
    ("add", "i"): "IAdd",
    ("add", "u"): "IAdd",
    ("add", "f"): "FAdd",
    ("min", "i"): "SMin",
    ("min", "u"): "UMin",
    ("min", "f"): "FMin",
    ("max", "i"): "SMax",
    ("max", "u"): "UMax",
    ("max", "f"): "FMax",
}
# The operations without an instruction, or whose instruction combines in another order.
_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": register_jitable(lambda a, b: a + b),
    "mul": register_jitable(lambda a, b: a * b),
    "min": register_jitable(lambda a, b: min(a, b)),
    "max": register_jitable(lambda a, b: max(a, b)),
    "and": register_jitable(lambda a, b: a & b),
    "or": register_jitable(lambda a, b: a | b),
    "xor": register_jitable(lambda a, b: a ^ b),
}


# The number of values in local memory during a scan over a group; larger groups, which only CPU
# devices have, take turns. Values for the largest groups would fill half or all of a GPU's local
# memory.
_SCRATCH = 1024


def _check_group(function: str, group: Any) -> None:
    if not isinstance(group, GroupType | SubGroupType):
        raise TypingError(
            f"{function}: the first argument is a group, as item.get_group() or "
            f"item.get_sub_group() gives; got {types.unliteral(group)}"
        )


def _scope_of(group: Any) -> abi.Scope:
    """Return the work-items that a group instruction involves."""
    is_part = isinstance(group, SubGroupType)
    return abi.Scope.SUB_GROUP if is_part else abi.Scope.WORK_GROUP


def _number(function: str, group: Any, value: Any) -> tuple[Any, Any, str]:
    """Return the type of a value, the type of the instruction, and its kind."""
    _check_group(function, group)
    value = types.unliteral(value)
    if isinstance(value, types.Boolean) or not isinstance(value, types.Integer | types.Float):
        raise TypingError(f"{function}: takes an integer or a float; got {value}")
    if isinstance(value, types.Float):
        return value, types.float32 if value.bitwidth < 32 else value, "f"
    kind = "i" if value.signed else "u"
    working = value
    if value.bitwidth < 32:
        working = types.int32 if value.signed else types.uint32
    return value, working, kind


def _operation(function: str, operation: Any, kind: str) -> tuple[str, Any]:
    """Return an operation's name, empty for a device function, and the function that combines two
    values.
    """
    if isinstance(operation, types.Dispatcher):
        return "", operation.dispatcher
    name = getattr(operation, "literal_value", operation)
    if isinstance(operation, types.Omitted):
        name = operation.value
    if name not in GROUP_OPERATIONS:
        raise TypingError(
            f"{function}: the operation is one of {', '.join(map(repr, GROUP_OPERATIONS))}, "
            f"written out in the call, or a device function; got {name!r}"
        )
    if kind == "f" and name in _OF_INTEGERS:
        raise TypingError(f"{function}: {name!r} takes integers; got a float")
    return name, _COMBINE[name]


@cache
def _instruction(operation: str, kind: str, group_operation: int, scope: int) -> Any:
    """Return a function that applies one group instruction to one value of each work-item."""
    name = f"__spirv_Group{_INSTRUCTIONS[operation, kind]}"

    @instructions(lambda value: value(value))
    def apply(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = signature.args[0]
        llvm_type = context.get_value_type(number)
        mangled = abi.mangled(name, "jj" + device.code_of(number))
        operands = [_INT32(scope), _INT32(group_operation), arguments[0]]
        return device.call(builder, mangled, llvm_type, operands, convergent=True)

    return apply


def _combination(
    function: str, group: Any, value: Any, operation: Any, group_operation: int
) -> tuple[Any, str, Any, Any]:
    """Return the type of a value, the operation's name and function, and a function of a group.

    That function returns to each work-item the combined value of all work-items, of those up to it,
    or of those before it.
    """
    number, working, kind = _number(function, group, value)
    name, combine = _operation(function, operation, kind)

    def implementation() -> Callable[..., Any]:
        if (name, kind) in _INSTRUCTIONS and (group_operation == _REDUCE or group.ndim == 1):
            apply = _instruction(name, kind, group_operation, _scope_of(group))
            return lambda group, value: number(apply(working(value)))
        if not isinstance(group, SubGroupType):
            scan_all = _scan_of(number)
            return lambda group, value: scan_all(group, value, combine)[group_operation]
        scan = _lane_scan_of(number, working)
        if group_operation == _INCLUSIVE_SCAN:
            return lambda group, value: scan(group, value, combine)
        if group_operation == _REDUCE:
            return lambda group, value: number(
                _shuffle(working(scan(group, value, combine)), group.get_local_range() - 1)
            )
        return lambda group, value: number(
            _shuffle(working(scan(group, value, combine)), max(group.get_local_id() - 1, 0))
        )

    return number, name, combine, register_jitable(implementation())


def _register(function: Any, group_operation: int) -> None:
    @device_overload(function, prefer_literal=True)
    def typed(group: Any, value: Any, operation: Any = "add") -> Any:
        name = function.__name__
        *_, of_group = _combination(name, group, value, operation, group_operation)
        return lambda group, value, operation="add": of_group(group, value)


for _function in (group_reduce, reduce_over_group):
    _register(_function, _REDUCE)
for _function in (group_inclusive_scan, inclusive_scan_over_group):
    _register(_function, _INCLUSIVE_SCAN)


@device_overload(exclusive_scan_over_group, prefer_literal=True)
def _exclusive_scan(group: Any, value: Any, operation: Any = "add", initial: Any = None) -> Any:
    function = "exclusive_scan_over_group"
    number, name, combine, before = _combination(function, group, value, operation, _EXCLUSIVE_SCAN)
    # The first work-item has no predecessor, so its result does not come from `before`.
    if not isinstance(initial, types.Omitted | types.NoneType) and initial is not None:
        _number(function, group, initial)

        def scan_from(group: Any, value: Any, operation: Any = "add", initial: Any = None) -> Any:
            result = before(group, value)
            return number(initial) if group.leader else number(combine(number(initial), result))

        return scan_from
    if not name:
        raise TypingError(
            f"{function}: a device function needs initial=, what the first work-item gets"
        )
    neutral = number(neutral_of(name, np.dtype(str(number))))

    def scan(group: Any, value: Any, operation: Any = "add", initial: Any = None) -> Any:
        result = before(group, value)
        return neutral if group.leader else result

    return scan


@instructions(lambda group, value, local_id: value(group, value, types.int64))
def _broadcast(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the value of the work-item with this row-major local id."""
    group, number, _ = signature.args
    dimensions = group.ndim
    linear = arguments[2]
    identifiers: list[Any] = [None] * dimensions
    for dimension in reversed(range(dimensions)):
        size = device.index(builder, abi.LOCAL_SIZE, dimension)
        identifiers[dimension] = linear if dimension == 0 else builder.urem(linear, size)
        linear = builder.udiv(linear, size)
    if dimensions == 1:
        id_type, id_mangled, identifier = _INT64, "m", identifiers[0]
    else:
        id_type, id_mangled = ir.VectorType(_INT64, dimensions), f"Dv{dimensions}_m"
        identifier = ir.Constant(id_type, ir.Undefined)
        for dimension, part in enumerate(identifiers):
            position = ir.Constant(_INT32, dimension)
            identifier = builder.insert_element(identifier, part, position)
    name = "__spirv_GroupBroadcast"
    mangled = abi.mangled(name, f"j{device.code_of(number)}{id_mangled}")
    operands = [_INT32(abi.Scope.WORK_GROUP), arguments[1], identifier]
    return device.call(builder, mangled, context.get_value_type(number), operands, convergent=True)


@device_overload(group_broadcast)
def _group_broadcast(group: Any, value: Any, local_id: Any = 0) -> Any:
    number, working, _ = _number("group_broadcast", group, value)
    if isinstance(local_id, types.Type) and not isinstance(local_id, types.Integer | types.Omitted):
        raise TypingError(f"group_broadcast: takes an integer as the local id; got {local_id}")
    if isinstance(group, SubGroupType):
        return lambda group, value, local_id=0: number(
            _shuffle(working(value), types.int64(local_id))
        )
    return lambda group, value, local_id=0: number(_broadcast(group, working(value), local_id))


@instructions(lambda value: types.CPointer(types.unliteral(value), addrspace=LOCAL)(value))
def _scan_scratch(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the address of local memory for the values of the work-items whose turn it is."""
    element = context.get_value_type(signature.args[0])
    storage = ir.ArrayType(element, _SCRATCH)
    name = f"dparray_scan_{signature.args[0]}"
    variable = builder.module.globals.get(name)
    if variable is None:
        variable = cgutils.add_global_variable(builder.module, storage, name, addrspace=LOCAL)
        variable.linkage = "linkonce_odr"  # One per kernel, shared by all functions.
        variable.initializer = ir.Constant(storage, ir.Undefined)
    zero = ir.Constant(_INT32, 0)
    return builder.gep(variable, [zero, zero])


@instructions(lambda pointer, index, value: types.void(pointer, types.int64, pointer.dtype))
def _put(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    builder.store(arguments[2], builder.gep(arguments[0], [arguments[1]]))
    return context.get_dummy_value()


@instructions(lambda pointer, index: pointer.dtype(pointer, types.int64))
def _get(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.load(builder.gep(arguments[0], [arguments[1]]))


@instructions(lambda group: types.int64(group))
def _row_major_id(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the local id as one number, the last dimension fastest."""
    dimensions = range(signature.args[0].ndim)
    return device.linear_index(builder, abi.LOCAL_ID, abi.LOCAL_SIZE, dimensions)


@cache
def _scan_of(number: Any) -> Any:
    """Return a function that scans values of a type."""

    @register_jitable
    def scan(group: Any, value: Any, combine: Any) -> Any:
        """Return the total, the inclusive scan and the exclusive scan of the work-items' values.

        By row-major id; the first item's exclusive value is undefined.
        """
        mine = _row_major_id(group)
        size = group.get_local_linear_range()
        scratch = _scan_scratch(number(value))
        upto = before = total = number(value)
        for first in range(0, size, _SCRATCH):
            own = number(value)
            count = min(size - first, _SCRATCH)
            place = min(max(mine - first, 0), count - 1)
            has_turn = mine >= first and mine < first + count
            group_barrier(group)  # The previous values have been read.
            if has_turn:
                _put(scratch, place, own)
            group_barrier(group)
            step = 1
            while step < count:
                other = _get(scratch, max(place - step, 0))
                group_barrier(group)
                if has_turn and place >= step:
                    own = number(combine(other, own))
                    _put(scratch, place, own)
                group_barrier(group)
                step *= 2
            if has_turn:
                upto, before = own, _get(scratch, max(place - 1, 0))
                if first > 0:
                    upto = number(combine(total, own))
                    before = number(combine(total, before)) if place > 0 else total
            last = _get(scratch, count - 1)
            total = number(combine(total, last)) if first > 0 else last
        group_barrier(group)
        return total, upto, before

    return scan


@overload_attribute(SubGroupType, "leader", target=TARGET, strict=False)
def _leader_of_lanes(group: Any) -> Any:
    return lambda group: group.get_local_id() == 0


@overload_attribute(GroupType, "leader", target=TARGET, strict=False)
def _leader(group: Any) -> Any:
    return lambda group: _row_major_id(group) == 0


# --- sub-groups -----------------------------------------------------------------------------------


@instructions(lambda value, lane: value(value, types.int64))
def _shuffle(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the value of the sub-group's work-item with a given id, which may differ between
    items.
    """
    number = signature.args[0]
    mangled = abi.mangled("sub_group_shuffle", device.code_of(number) + "j")
    operands = [arguments[0], builder.trunc(arguments[1], _INT32)]
    return device.call(builder, mangled, context.get_value_type(number), operands, convergent=True)


@cache
def _lane_scan_of(number: Any, working: Any) -> Any:
    """Return a function that scans values of a type over a sub-group."""

    @register_jitable
    def scan(group: Any, value: Any, combine: Any) -> Any:
        mine = group.get_local_id()
        size = group.get_local_range()
        total = number(value)
        step = 1
        while step < size:
            before = number(_shuffle(working(total), max(mine - step, 0)))
            if mine >= step:
                total = number(combine(before, total))
            step *= 2
        return total

    return scan


def _exchange(name: str, group: Any, value: Any, other: Any, source: Any) -> Any:
    """Return a function that gives each work-item of a sub-group the value of another, or its own.

    Args:
        name: the name of the function in kernels, for its errors.
        group, value, other: the types of its arguments.
        source: computes the id of the other work-item from the own id and the last argument.

    Raises:
        TypingError: an argument has an unsupported type.
    """
    if isinstance(group, GroupType):
        raise TypingError(
            f"{name}: only sub-groups exchange values: use item.get_sub_group(), or local memory "
            "and a barrier"
        )
    number, working, _ = _number(name, group, value)
    source = register_jitable(source)
    if not isinstance(other, int | types.Integer | types.Omitted):
        raise TypingError(f"{name}: takes an integer; got {types.unliteral(other)}")

    @register_jitable
    def exchange(group: Any, value: Any, other: Any) -> Any:
        mine = group.get_local_id()
        wanted = source(mine, types.int64(other))
        inside = wanted >= 0 and wanted < group.get_local_range()
        return number(_shuffle(working(value), wanted if inside else mine))

    return exchange


@device_overload(select_from_group)
def _select(group: Any, value: Any, remote_local_id: Any) -> Any:
    name = "select_from_group"
    exchange = _exchange(name, group, value, remote_local_id, lambda mine, other: other)
    return lambda group, value, remote_local_id: exchange(group, value, remote_local_id)


@device_overload(shift_group_left)
def _shift_left(group: Any, value: Any, delta: Any = 1) -> Any:
    exchange = _exchange("shift_group_left", group, value, delta, lambda mine, delta: mine + delta)
    return lambda group, value, delta=1: exchange(group, value, delta)


@device_overload(shift_group_right)
def _shift_right(group: Any, value: Any, delta: Any = 1) -> Any:
    exchange = _exchange("shift_group_right", group, value, delta, lambda mine, delta: mine - delta)
    return lambda group, value, delta=1: exchange(group, value, delta)


@device_overload(permute_group_by_xor)
def _permute(group: Any, value: Any, mask: Any) -> Any:
    exchange = _exchange("permute_group_by_xor", group, value, mask, lambda mine, mask: mine ^ mask)
    return lambda group, value, mask: exchange(group, value, mask)


# --- predicates -----------------------------------------------------------------------------------


def _judge(function: Callable[..., Any], operation: str, wanted: bool) -> None:
    """Create a predicate over a group that tests whether ones and zeros combine to an expected
    value.
    """

    @device_overload(function)
    def judge(group: Any, predicate: Any) -> Any:
        _check_group(function.__name__, group)
        apply = _instruction(operation, "i", _REDUCE, _scope_of(group))
        if not isinstance(predicate, types.Boolean | types.Integer | types.Float):
            raise TypingError(
                f"{function.__name__}: the predicate must be a Boolean or a number; got {predicate}"
            )
        return lambda group, predicate: (
            (apply(types.int32(1) if predicate else types.int32(0)) != 0) == wanted
        )


_judge(any_of_group, "max", True)
_judge(all_of_group, "min", True)
_judge(none_of_group, "max", False)
