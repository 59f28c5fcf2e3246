"""Private and local arrays, and atomic references."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dparray import kernel_api as api
from dparray._ir.types import (
    BOOL,
    F32,
    F64,
    I32,
    I64,
    LOCAL,
    PRIVATE,
    U32,
    U64,
    Pointer,
    Type,
)
from dparray._language.builtins.registry import HANDLERS, handles, known
from dparray._language.errors import Refusal, method_problem
from dparray._language.memory import element_type
from dparray._language.values import (
    NONE,
    Array,
    Constant,
    Number,
    Reference,
    Tuple,
    array_name,
    described,
    entries_of,
    is_number,
)
from dparray.kernel_api import MemoryOrder, MemoryScope

#: Up to this size an array is filled by single stores.
_MAX_STORES = 32
SCOPES = {
    MemoryScope.WORK_ITEM: "work_item",
    MemoryScope.SUB_GROUP: "sub_group",
    MemoryScope.WORK_GROUP: "work_group",
    MemoryScope.DEVICE: "device",
    MemoryScope.SYSTEM: "system",
}
ORDERS = {
    MemoryOrder.RELAXED: "relaxed",
    MemoryOrder.CONSUME_UNSUPPORTED: "relaxed",
    MemoryOrder.ACQUIRE: "acquire",
    MemoryOrder.RELEASE: "release",
    MemoryOrder.ACQ_REL: "acq_rel",
    MemoryOrder.SEQ_CST: "seq_cst",
}


def constant_shape(what: str) -> str:
    """Return what the shape of an array must be."""
    return (
        f"a {what} takes a constant shape (positive numbers in the kernel's text, globals, "
        "captured values, parameters with dp.constexpr, or sums and products of them) and a NumPy "
        "dtype"
    )


def _allocated(
    what: str, space: int, front: Any, node: Any, shape: Any, dtype: Any, fill_zeros: Any = None
) -> Array:
    try:
        extents = known(shape, "")
        extents = extents if isinstance(extents, tuple) else (extents,)
        kind, is_complex = element_type(known(dtype, ""))
    except (Refusal, KeyError, TypeError):
        raise Refusal(constant_shape(what), node) from None
    if not all(isinstance(extent, int | np.integer) and extent > 0 for extent in extents):
        raise Refusal(constant_shape(what), node)
    if space == LOCAL and any(item.kind == "Item" for item in front.items):
        raise Refusal(
            "LocalArray: work-items of a Range do not share local memory; use an NdRange", node
        )
    count = math.prod(map(int, extents)) * (2 if is_complex else 1)
    if count >= 1 << 31:
        raise Refusal(f"{what}: it has at most 2**31 - 1 elements; got the shape {extents}", node)
    memory = front.op("allocate", Pointer(kind, space), attribute=count)
    front.shapes[memory] = tuple(map(int, extents))
    if fill_zeros is not None and known(fill_zeros, "fill_zeros"):
        _filled(front, node, memory, count, kind)
    numbers = tuple(front.number(Constant(int(extent))) for extent in extents)
    return Array(memory, numbers, None, False, is_complex)


def _filled(front: Any, node: Any, memory: Any, count: int, kind: Type) -> None:
    """Write zeros into private memory."""
    from dparray._language import prelude

    if count <= _MAX_STORES:
        for position in range(count):
            place = front.op("offset", memory.type, memory, front.constant(position, I64))
            front.op("store", None, place, front.constant(0, kind))
        return
    flat = Array(memory, (front.number(Constant(count)),))
    arguments = [flat, Constant(count), front.to(Constant(0), kind)]
    front.call(Constant(prelude.fill), arguments, {}, node)


HANDLERS[api.LocalArray] = lambda front, node, shape, dtype: _allocated(
    "LocalArray", LOCAL, front, node, shape, dtype
)
HANDLERS[api.PrivateArray] = lambda front, node, shape, dtype, fill_zeros=None: _allocated(
    "PrivateArray", PRIVATE, front, node, shape, dtype, fill_zeros
)


# --- atomic references ----------------------------------------------------------------------------


@handles(api.AtomicRef)
def atomic(
    front: Any,
    node: Any,
    ref: Any,
    index: Any,
    memory_order: Any = Constant(MemoryOrder.RELAXED),
    memory_scope: Any = Constant(MemoryScope.DEVICE),
    address_space: Any = NONE,
) -> Reference:
    """Translate a reference to an element."""
    _check_array(ref, node)
    parts = entries_of(index)
    are_integers = all(is_number(part) and front.type_of(part).is_integer for part in parts)
    count = len(ref.shape)
    if len(parts) != count or not are_integers:
        wanted = "an integer" if count == 1 else f"a tuple of {count} integers"
        raise Refusal(
            f"AtomicRef: an index of this array is {wanted}; got {described(index)}", node
        )
    if address_space != NONE:
        chosen = known(address_space, "AtomicRef: address_space")
        if int(chosen) not in (ref.space, int(api.AddressSpace.GENERIC)):
            name = api.AddressSpace(ref.space).name
            raise Refusal(
                f"AtomicRef: the array is in {name.lower()} memory; use "
                f"address_space=dp.AddressSpace.{name}, or leave the argument out",
                node,
            )
    order = _constant_of(memory_order, "memory_order", "MemoryOrder.RELAXED", node)
    scope = _constant_of(memory_scope, "memory_scope", "MemoryScope.DEVICE", node)
    return Reference(ref, index, front.address(ref, index, node), order, scope)


def _check_array(ref: Any, node: Any) -> None:
    if not isinstance(ref, Array):
        raise Refusal(
            "AtomicRef: refers to an element of an array, as in dp.AtomicRef(x, i); got "
            f"{described(ref)}",
            node,
        )
    if ref.is_readonly:
        raise Refusal(
            "the array that is written here is read-only: it repeats elements (dp.broadcast_to), "
            "or its owner forbids writes. Launch the kernel on a copy, dp.asarray(x, copy=True)",
            node,
        )
    if ref.is_complex or ref.element not in (I32, I64, U32, U64, F32, F64):
        raise Refusal(
            "AtomicRef: refers to int32, int64, uint32, uint64, float32 and float64 elements; got "
            f"an array of {array_name(ref).partition('[')[0]}",
            node,
        )
    if ref.space == PRIVATE:
        raise Refusal(
            "AtomicRef: private memory belongs to one work-item, which needs no atomics: read and "
            "write the element",
            node,
        )


def _constant_of(value: Any, what: str, example: str, node: Any) -> int:
    if not isinstance(value, Constant) or not isinstance(value.value, int):
        raise Refusal(f"AtomicRef: {what} must be a constant, as dp.{example}", node)
    return int(value.value)


_READS = {
    MemoryOrder.RELEASE: MemoryOrder.RELAXED,
    MemoryOrder.ACQ_REL: MemoryOrder.ACQUIRE,
}
_WRITES = {
    MemoryOrder.ACQUIRE: MemoryOrder.RELAXED,
    MemoryOrder.ACQ_REL: MemoryOrder.RELEASE,
}
_BITWISE = ("fetch_and", "fetch_or", "fetch_xor")
_CHANGES = ("fetch_add", "fetch_sub", "fetch_min", "fetch_max", "exchange", *_BITWISE)
#: The changes of the elements from the reference on, by a vector.
_OF_VECTORS = ("fetch_add", "fetch_sub", "fetch_min", "fetch_max", *_BITWISE)
_OPERATION = (
    "an operation of an AtomicRef takes one value, as fetch_add(1) does; load takes none, and "
    "compare_exchange the expected value, or an array with it, and the new value"
)


def atomic_method(
    front: Any, ref: Reference, name: str, node: Any, arguments: list[Any], named: dict[str, Any]
) -> Any:
    """Translate an operation of an ``AtomicRef``."""
    order = MemoryOrder(ref.order)
    if name == "compare_exchange":
        if not 2 <= len(arguments) + len(named) <= 3:
            raise Refusal(_OPERATION, node)
        return _compare_exchange(front, ref, node, *arguments, **named)
    if name not in (*_CHANGES, "load", "store"):
        raise Refusal(method_problem("AtomicRef", name), node)
    values = [*arguments, *named.values()]
    if len(values) != (0 if name == "load" else 1) or set(named) - {"val"}:
        raise Refusal(_OPERATION, node)
    kind = ref.element
    operands = [_operand(front, ref, name, value, node) for value in values]
    if name == "load":
        order = _READS.get(order, order)
    elif name == "store":
        order = _WRITES.get(order, order)
    attribute = (name, SCOPES[MemoryScope(ref.scope)], (ORDERS[order],))
    if operands and operands[0].type.lanes > 1:
        return _change_by_vector(front, ref, Number(operands[0]), attribute, node)
    result = None if name == "store" else kind
    op = front.op("atomic", result, ref.pointer, *operands, attribute=attribute)
    return NONE if name == "store" else Number(op)


def _change_by_vector(
    front: Any, ref: Reference, vector: Number, attribute: tuple[Any, ...], node: Any
) -> Any:
    """Change consecutive elements, each by an atomic operation; return those before, a vector."""
    lanes = vector.type.lanes
    address = front.address_of_run(ref.array, ref.index, lanes, node)

    def change() -> Number:
        if ref.array.strides is None:
            steps = (front.constant(lane, I64) for lane in range(lanes))
            places = [front.op("offset", address.type, address, step) for step in steps]
        else:
            places = front.along(ref.array, address, lanes)
        before = [
            front.op("atomic", ref.element, place, front.lane(vector, lane).op, attribute=attribute)
            for lane, place in enumerate(places)
        ]
        return Number(front.op("pack", vector.type, *before))

    return front.guarded(address, change, Number(front.constant(0, vector.type)))


def _operand(front: Any, ref: Reference, name: str, value: Any, node: Any) -> Any:
    kind = ref.element
    if name in _BITWISE and kind.is_float:
        raise Refusal(f"AtomicRef.{name} works on integers; the elements are {kind.name}", node)
    own = front.type_of(value)
    if own.lanes > 1 and name not in _OF_VECTORS:
        raise Refusal(
            f"AtomicRef.{name} takes a number, because no device accesses several elements in one "
            f"atomic operation; got {described(value)}",
            node,
        )
    if own.is_float and not kind.is_float:
        fix = f"v.astype(np.{kind.name})" if own.lanes > 1 else f"np.{kind.name}(...)"
        raise Refusal(
            f"AtomicRef.{name}: the elements are {kind.name} and the value is {described(value)}; "
            f"convert it: {fix}",
            node,
        )
    return front.to(value, kind._replace(lanes=own.lanes)).op


def _compare_exchange(
    front: Any,
    ref: Reference,
    node: Any,
    expected_ref: Any,
    desired: Any,
    expected_idx: Any = Constant(0),
) -> Any:
    kind, order = ref.element, MemoryOrder(ref.order)
    new = _operand(front, ref, "compare_exchange", desired, node)
    place = None
    if isinstance(expected_ref, Array) and expected_ref.element == kind:
        place = front.address(expected_ref, expected_idx, node)
        expected = front.read(expected_ref, place).op
    elif is_number(expected_ref):
        expected = front.to(expected_ref, kind).op
    else:
        raise Refusal(
            "AtomicRef.compare_exchange: the expected value must be a number, or an element of an "
            f"array of {kind.name}; got {described(expected_ref)}",
            node,
        )
    orders = (ORDERS[order], ORDERS[_READS.get(order, order)])
    attribute = ("compare_exchange", SCOPES[MemoryScope(ref.scope)], orders)
    before = front.op("atomic", kind, ref.pointer, new, expected, attribute=attribute)
    bits = Type("i", kind.bits)
    was, wanted = (
        front.op("bitcast", bits, op) if kind.is_float else op for op in (before, expected)
    )
    same = Number(front.op("eq", BOOL, was, wanted))
    if place is None:
        return Tuple((same, Number(before)))
    front.branch(same, lambda: NONE, lambda: front.write(expected_ref, place, Number(before), node))
    return same


def changed(name: str, front: Any, node: Any, array: Any, index: Any, value: Any) -> Any:
    """Translate an atomic operation of generated kernels."""
    reference = atomic(front, node, array, index)
    converted = front.to(value, reference.element)
    return atomic_method(front, reference, name, node, [converted], {})
