"""``dp.vec``: vectors, their memory and their methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray import kernel_api as api
from dparray._ir.types import BOOL, I64, U64, Type, of_dtype
from dparray._language.builtins.registry import handles, known
from dparray._language.errors import Refusal
from dparray._language.numbers import ruled
from dparray._language.values import (
    NONE,
    Array,
    Constant,
    Number,
    array_name,
    described,
    entries_of,
    is_number,
)
from dparray.kernel_api import vectors as rules


def _width(what: str, width: Any) -> int:
    value = width.value if isinstance(width, Constant) else described(width)
    return int(ruled(rules.width_of, what, value))


def _element(what: str, dtype: Any) -> Type:
    """Return the type of the elements of a vector in registers."""
    try:
        return of_dtype(known(dtype, ""))
    except (Refusal, KeyError, TypeError):
        raise Refusal(f"{what}: a dtype such as dp.float32; got {described(dtype)}") from None


def _dtype_of(front: Any, value: Any) -> Any:
    """Return what NumPy's rule of results takes: a literal counts by its value."""
    if isinstance(value, Constant) and value.is_weak:
        return value.value
    return front.type_of(value).dtype


def _operand(front: Any, value: Any) -> Any:
    """Return what NumPy's rule takes for the element of a new vector."""
    kind = front.type_of(value)
    if front.rules.is_numpy and front.is_weak(value):
        return {"b": False, "i": 0, "u": 0, "f": 0.0}[kind.kind]
    return kind.dtype


@handles(api.vec)
def _vec(front: Any, node: Any, *values: Any) -> Number:
    lanes = _width("vec", Constant(len(values)))
    for value in values:
        if not is_number(value) or front.type_of(value).lanes > 1:
            raise Refusal(
                f"vec: elements must be Booleans, integers or floats; got {described(value)}", node
            )
    kind = of_dtype(np.result_type(*(_operand(front, value) for value in values)))
    parts = [front.to(value, kind).op for value in values]
    return Number(front.op("pack", kind._replace(lanes=lanes), *parts))


@handles(api.vec_full)
def _vec_full(front: Any, node: Any, width: Any, value: Any, dtype: Any) -> Number:
    kind = _element("vec_full", dtype)
    if not is_number(value) or front.type_of(value).lanes > 1:
        raise Refusal(f"vec_full: takes a number as value; got {described(value)}", node)
    number = front.loaded(front.to(value, kind))
    return front.to(number, number.type._replace(lanes=_width("vec_full", width)))


@handles(api.vec_where)
def _vec_where(front: Any, node: Any, condition: Any, a: Any, b: Any) -> Number:
    is_vector = isinstance(condition, Number) and condition.type.lanes > 1
    if not is_vector or condition.type.kind != "b":
        raise Refusal(
            "vec_where: the condition must be a vector of Booleans, such as v > 0; got "
            f"{described(condition)}",
            node,
        )
    kinds = [front.type_of(each) if is_number(each) else None for each in (a, b)]
    if None in kinds or max(kind.lanes for kind in kinds if kind) == 1:
        raise Refusal(
            "vec_where: takes a vector and a vector or a number; got "
            f"{described(a)} and {described(b)}",
            node,
        )
    for kind in kinds:
        if kind is not None and kind.lanes > 1:
            ruled(rules.same_width, condition.type.lanes, kind.lanes)
    kind = front.common_vector(*kinds, "where")
    return Number(
        front.op("select", kind, condition.op, front.to(a, kind).op, front.to(b, kind).op)
    )


# --- memory ---------------------------------------------------------------------------------------


def _check_place(front: Any, what: str, array: Any, index: Any, node: Any) -> None:
    if not isinstance(array, Array):
        raise Refusal(
            f"{what}: the first argument must be an array of the kernel; got {described(array)}",
            node,
        )
    if array.is_complex:
        raise Refusal(
            f"{what}: the array must have Booleans, integers or floats; got {array_name(array)}",
            node,
        )
    parts = entries_of(index)
    count = len(array.shape)
    are_integers = all(is_number(part) and front.type_of(part).is_integer for part in parts)
    if len(parts) != count or not are_integers:
        wanted = "an integer" if count == 1 else f"a tuple of {count} integers"
        raise Refusal(
            f"{what}: takes {wanted} as index of {array_name(array)}; got {described(index)}", node
        )


@handles(api.vec_load)
def _vec_load(front: Any, node: Any, array: Any, index: Any, width: Any) -> Number:
    _check_place(front, "vec_load", array, index, node)
    lanes = _width("vec_load", width)
    address = front.address_of_run(array, index, lanes, node)
    kind = array.element._replace(lanes=lanes)

    def load() -> Number:
        if array.strides is None:
            return Number(front.op("load", kind, address, attribute=array.element.size))
        places = front.along(array, address, lanes)
        parts = (front.op("load", array.element, place) for place in places)
        return Number(front.op("pack", kind, *parts))

    vector = front.guarded(address, load, Number(front.constant(0, kind)))
    return front.loaded(vector)


@handles(api.vec_store)
def _vec_store(front: Any, node: Any, array: Any, index: Any, vector: Any) -> Constant:
    _check_place(front, "vec_store", array, index, node)
    if not isinstance(vector, Number) or vector.type.lanes == 1:
        raise Refusal(f"vec_store: takes a vector; got {described(vector)}", node)
    if array.is_readonly:
        front.write(array, array.pointer, Constant(0), node)  # which refuses it
    front.note_cut(vector.type, array, node)
    lanes = vector.type.lanes
    value = front.to(vector, array.element._replace(lanes=lanes))
    address = front.address_of_run(array, index, lanes, node)

    def store() -> None:
        if array.strides is None:
            front.op("store", None, address, value.op, attribute=array.element.size)
            return
        for lane, place in enumerate(front.along(array, address, lanes)):
            front.op("store", None, place, front.lane(value, lane).op)

    front.guarded(address, store)
    return NONE


# --- methods --------------------------------------------------------------------------------------


def method(front: Any, vector: Number, name: str, node: Any, *arguments: Any, **named: Any) -> Any:
    """Translate a method of a vector."""
    if name == "astype":
        (dtype,) = (*arguments, *named.values())
        kind = _element("vec.astype", dtype)._replace(lanes=vector.type.lanes)
        return front.loaded(front.to(vector, kind))
    if arguments or named or name not in _REDUCTIONS:
        raise Refusal(f"vec: {name} takes no arguments", node)
    kind = vector.type.scalar
    if name in ("any", "all"):
        kind = BOOL
    elif name == "sum" and not kind.is_float:
        kind = U64 if kind.kind == "u" else I64
    else:
        ruled(rules.checked_dtype, name, kind.dtype)
    lanes = [front.lane(vector, lane) for lane in range(vector.type.lanes)]
    parts = [front.truth(lane) if kind == BOOL else front.to(lane, kind) for lane in lanes]
    while len(parts) > 1:  # neighbors first
        pairs = [
            _combined(front, name, kind, a, b)
            for a, b in zip(parts[:-1:2], parts[1::2], strict=True)
        ]
        parts = pairs + parts[len(parts) // 2 * 2 :]
    return parts[0]


_REDUCTIONS = {"sum": "add", "min": "min", "max": "max", "any": "or", "all": "and"}


def _combined(front: Any, name: str, kind: Type, a: Number, b: Number) -> Number:
    # A minimum is the second value if that is less.
    operands = (b, a) if name in ("min", "max") else (a, b)
    return Number(front.op(_REDUCTIONS[name], kind, *(each.op for each in operands)))
