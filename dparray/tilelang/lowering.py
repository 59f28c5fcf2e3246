"""Lowering of typed operations to calls of array functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from dparray._array.allocation import from_host
from dparray._array.apply import copy_of
from dparray._array.ndarray import ndarray
from dparray._functions import elementwise as ew
from dparray._functions import reductions
from dparray._functions.conversion import astype
from dparray._functions.creation import zeros
from dparray._functions.indexing import take
from dparray._functions.manipulation import broadcast_to, reshape
from dparray._functions.ranges import arange
from dparray._placement import Placement
from dparray.tilelang import prng
from dparray.tilelang.bind import Bound
from dparray.tilelang.contracting import Lowered, lowered
from dparray.tilelang.values import BOOL, DType, Literal, Operation, Tensor

Step = Callable[..., ndarray]


class Instruction(NamedTuple):
    """A step of a plan.

    Attributes:
        call: accepts the placement and arrays.
        sources, target: slot numbers.
        last: slots that nothing reads afterwards.
    """

    call: Step
    sources: tuple[int, ...]
    target: int
    last: tuple[int, ...]


class Plan(NamedTuple):
    """A bound program as array operations.

    Attributes:
        slots: the number of slots; those of the inputs come first, in the order of ``inputs``.
        outputs: the slot of each output, and whether it must be copied so that it does not share
            memory with an input or with another output.
        contractions: those in it.
        alone: the only step, if its result is the only output and it uses all inputs in order.
    """

    inputs: tuple[str, ...]
    slots: int
    instructions: tuple[Instruction, ...]
    outputs: tuple[tuple[int, bool], ...]
    contractions: tuple[Lowered, ...]
    alone: Step | None = None

    def run(self, placement: Placement, arrays: Sequence[ndarray]) -> list[ndarray]:
        """Compute the outputs; element-wise results stay pending."""
        if self.alone is not None:
            return [self.alone(placement, *arrays)]
        slots: list[Any] = [*arrays, *[None] * (self.slots - len(arrays))]
        for call, sources, target, last in self.instructions:
            slots[target] = call(placement, *[slots[each] for each in sources])
            for each in last:
                slots[each] = None
        return [copy_of(slots[at]) if copies else slots[at] for at, copies in self.outputs]


def plan_of(bound: Bound) -> Plan:
    """Return the plan of a bound program."""
    slots: dict[int, int] = {id(tensor): at for at, tensor in enumerate(bound.inputs.values())}
    shared = set(slots.values())  # slots that may share memory with an input
    made: list[tuple[Step, tuple[int, ...], int]] = []
    count = len(slots)
    contractions: list[Lowered] = []

    def literal(value: Literal) -> int:
        nonlocal count
        made.append((_full(value, ()), (), count))
        count += 1
        return count - 1

    for operation in bound.operations:
        if operation.name == "contract":
            step: Step = lowered(operation.parameters, operation.operands)
            assert isinstance(step, Lowered)
            contractions.append(step)
            may_share = step.is_view
            operands = [
                slots[id(each)] if isinstance(each, Tensor) else literal(each)
                for each in operation.operands
            ]
        else:
            step = _step(operation)
            may_share = operation.name in ("reshape", "broadcast_to")
            operands = [slots[id(each)] for each in operation.operands if isinstance(each, Tensor)]
        made.append((step, tuple(operands), count))
        slots[id(operation.result)] = count
        if may_share and (operation.name == "broadcast_to" or set(operands) & shared):
            shared.add(count)
        count += 1
    outputs: list[tuple[int, bool]] = []
    for each in bound.outputs.values():
        at = slots[id(each)] if isinstance(each, Tensor) else literal(each)
        outputs.append((at, at in shared))
        shared.add(at)
    order = tuple(range(len(bound.inputs)))
    is_alone = len(made) == 1 and made[0][1:] == (order, len(order))
    is_alone = is_alone and outputs == [(len(order), False)]
    return Plan(
        tuple(bound.inputs),
        count,
        _with_last_uses(made, {at for at, _ in outputs}),
        tuple(outputs),
        tuple(contractions),
        made[0][0] if is_alone else None,
    )


def _with_last_uses(
    made: Sequence[tuple[Step, tuple[int, ...], int]], kept: set[int]
) -> tuple[Instruction, ...]:
    seen = set(kept)
    found: list[Instruction] = []
    for step, sources, target in reversed(made):
        last = tuple(dict.fromkeys(each for each in sources if each not in seen))
        seen.update(sources)
        found.append(Instruction(step, sources, target, last))
    return tuple(found[::-1])


def _full(value: Literal, shape: tuple[int, ...]) -> Step:
    values = np.asarray(value.value, value.dtype)

    def made(placement: Placement) -> ndarray:
        x = from_host(values, placement.queue, placement.usm_type)
        return broadcast_to(x, shape) if shape else x

    return made


# -- elementwise -----------------------------------------------------------------------------------


def _first(a: Any, b: Any) -> Any:
    return a


def _truncated_quotient(a: Any, b: Any) -> Any:
    """Divide integers with truncation."""
    floored = ew.floor_divide(a, b)
    has_rest = ew.not_equal(ew.multiply(floored, b), a)
    return ew.add(floored, ew.logical_and(has_rest, ew.less(floored, 0)))


def _half_away(x: Any) -> Any:
    """Round to the nearest integer, ties away from zero."""
    whole = ew.trunc(x)
    is_half = ew.greater_equal(ew.abs(ew.subtract(x, whole)), 0.5)
    return ew.add(whole, ew.where(is_half, ew.copysign(ew.where(is_half, 1.0, x), x), 0.0))


def _and_not(a: Any, b: Any) -> Any:
    return ew.logical_and(a, ew.logical_not(b))


#: Operations on Booleans: the result of C's arithmetic as a Boolean.
_ON_BOOLS: dict[str, Callable[..., Any]] = {
    "add": ew.logical_or,
    "subtract": ew.logical_xor,
    "multiply": ew.logical_and,
    "divide": _first,
    "negative": lambda a: a,
    "bitwise_and": ew.logical_and,
    "bitwise_or": ew.logical_or,
    "bitwise_xor": ew.logical_xor,
    "bitwise_invert": ew.logical_not,
    "left_shift": _first,
    "right_shift": _and_not,
}
_SAME_NAME = (
    *("add", "subtract", "multiply", "negative", "abs", "pow", "floor", "ceil"),
    *("equal", "not_equal", "less", "greater", "less_equal", "greater_equal"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert", "exp", "log", "sqrt"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan"),
)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(ew, name) for name in _SAME_NAME},
    "left_shift": ew.bitwise_left_shift,
    "right_shift": ew.bitwise_right_shift,
}


def function_of(name: str, dtype: DType) -> Callable[..., Any]:
    """Return the array function of an element-wise operation on operands of a dtype."""
    if dtype == BOOL and name in _ON_BOOLS:
        return _ON_BOOLS[name]
    if name == "divide":
        if dtype.kind == "f":
            return ew.divide
        return ew.floor_divide if dtype.kind == "u" else _truncated_quotient
    return _half_away if name == "round" else _FUNCTIONS[name]


def _step(operation: Operation) -> Step:
    """Return an operation as a call; literals are bound to it."""
    name, result = operation.name, operation.result
    assert result.dtype is not None
    assert result.shape is not None
    dtype: DType = result.dtype
    shape: tuple[int, ...] = tuple(result.shape)  # type: ignore[arg-type]
    if name in _MOVES:
        return _MOVES[name](operation, shape, dtype)
    given = operation.operands
    if name == "cast":
        return lambda placement, x: astype(x, dtype)
    function = _choice(dtype) if name == "where" else function_of(name, given[-1].dtype)  # type: ignore[arg-type]
    literals = [each.value.item() if isinstance(each, Literal) else None for each in given]
    tensors = [isinstance(each, Tensor) for each in given]
    if all(tensors):
        return lambda placement, *arrays: function(*arrays)
    if len(given) == 2:
        value = literals[1] if tensors[0] else literals[0]
        if tensors[0]:
            return lambda placement, x: function(x, value)
        return lambda placement, x: function(value, x)

    def filled(placement: Placement, *arrays: ndarray) -> ndarray:
        rest = iter(arrays)
        return function(*[next(rest) if t else v for t, v in zip(tensors, literals, strict=True)])

    return filled


def _choice(dtype: DType) -> Callable[..., Any]:
    def choose(condition: Any, first: Any, second: Any) -> Any:
        return astype(ew.where(condition, first, second), dtype, copy=False)

    return choose


# -- moving data -----------------------------------------------------------------------------------


def _reshape(operation: Operation, shape: tuple[int, ...], dtype: DType) -> Step:
    return lambda placement, x: reshape(x, shape)


def _broadcast(operation: Operation, shape: tuple[int, ...], dtype: DType) -> Step:
    (given,) = operation.operands
    if isinstance(given, Literal):
        return _full(given, shape)
    return lambda placement, x: broadcast_to(x, shape)


def _index(operation: Operation, shape: tuple[int, ...], dtype: DType) -> Step:
    axis = operation.parameters
    column = (shape[axis], *[1] * (len(shape) - axis - 1))

    def made(placement: Placement) -> ndarray:
        where = {"sycl_queue": placement.queue, "usm_type": placement.usm_type}
        return broadcast_to(reshape(arange(shape[axis], dtype=dtype, **where), column), shape)

    return made


def _values(operation: Operation, shape: tuple[int, ...], dtype: DType) -> Step:
    values = np.asarray(operation.parameters, dtype).reshape(shape)
    return lambda placement: from_host(values, placement.queue, placement.usm_type)


def _indices_of(operation: Operation, rows: int) -> Callable[..., ndarray]:
    """Clamp the indices of a gather or scatter to the rows."""
    given = operation.operands[1]
    if isinstance(given, Literal):
        value = np.asarray(np.clip(given.value, 0, max(rows - 1, 0)), given.dtype)
        return lambda placement, *rest: from_host(value, placement.queue, placement.usm_type)
    return lambda placement, x: ew.clip(x, 0, max(rows - 1, 0))


def _gather(operation: Operation, shape: tuple[int, ...], dtype: DType) -> Step:
    data, given = operation.operands
    assert isinstance(data, Tensor)
    assert data.shape is not None
    where = given.shape if isinstance(given, Tensor) else ()
    rows = data.shape[0] or 0
    indices = _indices_of(operation, rows)
    if 0 in shape:
        return _zeros(shape, dtype)
    flat = prod(where or ())  # type: ignore[arg-type]

    def made(placement: Placement, x: ndarray, *rest: ndarray) -> ndarray:
        chosen = take(x, reshape(indices(placement, *rest), (flat,)), axis=0)
        return reshape(chosen, shape)

    return made


def _zeros(shape: tuple[int, ...], dtype: DType) -> Step:
    return lambda placement, *arrays: zeros(
        shape, dtype, sycl_queue=placement.queue, usm_type=placement.usm_type
    )


def _scatter(operation: Operation, shape: tuple[int, ...], dtype: DType) -> Step:
    values, given = operation.operands
    assert isinstance(values, Tensor)
    assert values.shape is not None
    where = given.shape if isinstance(given, Tensor) else ()
    indices = _indices_of(operation, shape[0])
    if 0 in values.shape or 0 in shape:
        return _zeros(shape, dtype)
    flat = prod(where or ())  # type: ignore[arg-type]
    lines = (flat, *shape[1:])

    def made(placement: Placement, x: ndarray, *rest: ndarray) -> ndarray:
        target = zeros(shape, dtype, sycl_queue=placement.queue, usm_type=placement.usm_type)
        rows = reshape(indices(placement, *rest), (flat,))
        function: Any = ew.logical_or if dtype == BOOL else ew.add
        function.at(target, rows, reshape(x, lines))
        return target

    return made


def _softmax(operation: Operation, shape: tuple[int, ...], dtype: DType) -> Step:
    is_log = operation.name == "builtin_logsoftmax"

    def made(placement: Placement, x: ndarray) -> ndarray:
        if 0 in shape:
            return x
        x = ew.subtract(x, reductions.max(x, axis=1, keepdims=True))
        powers = ew.exp(x)
        total = reductions.sum(powers, axis=1, keepdims=True, dtype=dtype)
        return ew.subtract(x, ew.log(total)) if is_log else ew.divide(powers, total)

    return made


def _prng_state(operation: Operation, shape: tuple[int, ...], dtype: DType) -> Step:
    count = prod(operation.parameters)
    return lambda placement, state: prng.step(placement, state, count)[0]


def _prng_value(operation: Operation, shape: tuple[int, ...], dtype: DType) -> Step:
    return lambda placement, state: reshape(prng.step(placement, state, prod(shape))[1], shape)


_MOVES: dict[str, Callable[[Operation, tuple[int, ...], DType], Step]] = {
    "reshape": _reshape,
    "broadcast_to": _broadcast,
    "index": _index,
    "values": _values,
    "gather": _gather,
    "scatter": _scatter,
    "builtin_softmax": _softmax,
    "builtin_logsoftmax": _softmax,
    "prng_state": _prng_state,
    "prng_value": _prng_value,
}
