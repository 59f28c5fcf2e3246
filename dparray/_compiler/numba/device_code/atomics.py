"""``AtomicRef`` in device code.

Loaded by ``_compiler.numba.device_code``; importing it registers the implementations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import overload_method
from numba.np.arrayobj import make_array

from dparray._compiler import abi
from dparray._compiler.numba import instructions as device
from dparray._compiler.numba.language import constant
from dparray._compiler.numba.registration import device_overload, instructions
from dparray._compiler.numba.target import TARGET
from dparray._compiler.numba.types import AtomicRefType, DeviceArray
from dparray.kernel_api import AddressSpace, AtomicRef, MemoryOrder, MemoryScope

_ELEMENTS = (types.int32, types.int64, types.uint32, types.uint64, types.float32, types.float64)
_BITWISE = ("fetch_and", "fetch_or", "fetch_xor")

# The memory order of an operation that only reads, and of one that only writes.
_READ_ORDERS = {
    MemoryOrder.RELEASE.value: MemoryOrder.RELAXED.value,
    MemoryOrder.ACQ_REL.value: MemoryOrder.ACQUIRE.value,
}
_WRITE_ORDERS = {
    MemoryOrder.ACQUIRE.value: MemoryOrder.RELAXED.value,
    MemoryOrder.ACQ_REL.value: MemoryOrder.RELEASE.value,
}


@device_overload(AtomicRef, prefer_literal=True)
def _atomic_ref(
    ref: Any,
    index: Any,
    memory_order: Any = MemoryOrder.RELAXED,
    memory_scope: Any = MemoryScope.DEVICE,
    address_space: Any = None,
) -> Any:
    if not isinstance(ref, DeviceArray):
        raise TypingError(f"AtomicRef: refers to an element of an array; got {ref}")
    if ref.dtype not in _ELEMENTS:
        raise TypingError(
            "AtomicRef: refers to int32, int64, uint32, uint64, float32 and float64 elements; got "
            f"an array of {ref.dtype}"
        )
    if not ref.mutable:
        raise TypingError("Cannot modify readonly array")
    if ref.addrspace == AddressSpace.PRIVATE.value:
        raise TypingError(
            "AtomicRef: private memory belongs to one work-item, which needs no atomics: read and "
            "write the element"
        )
    indices = tuple(index) if isinstance(index, types.BaseTuple) else (index,)
    if len(indices) != ref.ndim or not all(isinstance(part, types.Integer) for part in indices):
        wanted = "an integer" if ref.ndim == 1 else f"a tuple of {ref.ndim} integers"
        raise TypingError(
            f"AtomicRef: an index of this array is {wanted}; got {types.unliteral(index)}"
        )
    space = ref.addrspace
    if address_space is not None:
        chosen = constant("AtomicRef", "address_space", address_space, "AddressSpace.GLOBAL")
        if chosen not in (space, AddressSpace.GENERIC.value):
            known = AddressSpace(space).name
            raise TypingError(
                f"AtomicRef: the array is in {known.lower()} memory; use "
                f"address_space=dp.AddressSpace.{known}, or leave the argument out"
            )
    order = constant("AtomicRef", "memory_order", memory_order, "MemoryOrder.RELAXED")
    scope = constant("AtomicRef", "memory_scope", memory_scope, "MemoryScope.DEVICE")
    return lambda ref, index, memory_order=None, memory_scope=None, address_space=None: _refer(
        ref, index, order, scope
    )


def _reference(array: Any, index: Any, order: Any, scope: Any) -> Any:
    reference = AtomicRefType(
        array.dtype, order.literal_value, scope.literal_value, array.addrspace
    )
    return reference(array, index, order, scope)


@instructions(_reference, prefer_literal=True)
def _refer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the reference to an element."""
    array, index = signature.args[:2]
    view = make_array(array)(context, builder, arguments[0])
    kinds, parts = (index,), [arguments[1]]
    if isinstance(index, types.BaseTuple):
        kinds = tuple(index)
        parts = cgutils.unpack_tuple(builder, arguments[1], len(kinds))
    parts = [
        context.cast(builder, part, kind, types.intp)
        for part, kind in zip(parts, kinds, strict=True)
    ]
    return cgutils.get_item_pointer(context, builder, array, view, parts, wraparound=True)


# --- operations -----------------------------------------------------------------------------------

# Instructions by method, for signed integers, unsigned integers and floats.
_INSTRUCTIONS = {
    "fetch_add": ("IAdd", "IAdd", "FAddEXT"),
    "fetch_sub": ("ISub", "ISub", None),  # For floats, the negated value is added.
    "fetch_min": ("SMin", "UMin", "FMinEXT"),
    "fetch_max": ("SMax", "UMax", "FMaxEXT"),
    "fetch_and": ("And", "And", None),
    "fetch_or": ("Or", "Or", None),
    "fetch_xor": ("Xor", "Xor", None),
}


def _call(
    builder: Any, name: str, result: Any, reference: Any, pointer: Any, *values: Any, orders: Any
) -> Any:
    """Return an atomic instruction on an element: pointer, scope, orders, values."""
    code = device.code_of(reference.dtype)
    codes = f"PU3AS{reference.address_space}{code}" + "j" * (1 + len(orders)) + code * len(values)
    return device.call(
        builder,
        abi.mangled(f"__spirv_Atomic{name}", codes),
        result,
        [
            pointer,
            device.scope(reference.memory_scope),
            *map(device.semantics, orders),
            *values,
        ],
        convergent=True,
    )


def _call_on_bits(
    context: Any, builder: Any, name: str, reference: Any, pointer: Any, *values: Any, orders: Any
) -> Any:
    """Return an atomic instruction that moves elements as integers, which all drivers support."""
    element = reference.dtype
    bits = ir.IntType(element.bitwidth)
    whole = AtomicRefType(
        types.Integer.from_bitwidth(element.bitwidth),
        reference.memory_order,
        reference.memory_scope,
        reference.address_space,
    )
    result = ir.VoidType() if name == "Store" else bits
    pointer = builder.bitcast(pointer, bits.as_pointer(reference.address_space))
    values = tuple(builder.bitcast(value, bits) for value in values)
    return _call(builder, name, result, whole, pointer, *values, orders=orders)


def _changing_instruction(method: str) -> Any:
    """Return a function that changes an element and returns its previous value."""

    @instructions(lambda reference, value: reference.dtype(reference, reference.dtype))
    def change(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        reference, element = signature.args
        pointer, operand = arguments
        orders = [reference.memory_order]
        if method == "exchange":
            previous = _call_on_bits(
                context, builder, "Exchange", reference, pointer, operand, orders=orders
            )
            return builder.bitcast(previous, operand.type)
        is_float = isinstance(element, types.Float)
        name = _INSTRUCTIONS[method][2 if is_float else not element.signed]
        if name is None:
            name, operand = "FAddEXT", builder.fneg(operand)
        return _call(builder, name, operand.type, reference, pointer, operand, orders=orders)

    return change


@instructions(lambda reference: reference.dtype(reference))
def _value(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the value of an element."""
    (reference,) = signature.args
    orders = [_READ_ORDERS.get(reference.memory_order, reference.memory_order)]
    bits = _call_on_bits(context, builder, "Load", reference, arguments[0], orders=orders)
    return builder.bitcast(bits, context.get_value_type(reference.dtype))


@instructions(lambda reference, value: types.void(reference, reference.dtype))
def _assign(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Assign a value to an element."""
    reference = signature.args[0]
    orders = [_WRITE_ORDERS.get(reference.memory_order, reference.memory_order)]
    _call_on_bits(context, builder, "Store", reference, *arguments, orders=orders)
    return context.get_dummy_value()


_method = functools.partial(overload_method, AtomicRefType, target=TARGET, strict=False)


@_method("load")
def _load(atomic_ref: Any) -> Any:
    return lambda atomic_ref: _value(atomic_ref)


def _converted(method: str, atomic_ref: Any, value: Any) -> Any:
    """Return the element's type, to which ``value`` is converted."""
    element = atomic_ref.dtype
    if method in _BITWISE and not isinstance(element, types.Integer):
        raise TypingError(f"AtomicRef.{method} works on integers; the elements are {element}")
    allowed: tuple[type, ...] = (types.Integer, types.Boolean)
    if isinstance(element, types.Float):
        allowed += (types.Float,)
    if not isinstance(value, allowed):
        raise TypingError(
            f"AtomicRef.{method}: the elements are {element} and the value is {value}; convert "
            f"it: np.{element}(...)"
        )
    return element


@_method("store")
def _store(atomic_ref: Any, val: Any) -> Any:
    element = _converted("store", atomic_ref, val)
    return lambda atomic_ref, val: _assign(atomic_ref, element(val))


def _changing(method: str) -> Callable[..., Any]:
    """Return the overload of a method that takes a value and returns the previous one."""
    change = _changing_instruction(method)

    def overload_method(atomic_ref: Any, val: Any) -> Any:
        element = _converted(method, atomic_ref, val)
        return lambda atomic_ref, val: change(atomic_ref, element(val))

    return overload_method


def _swapped(reference: Any, expected: Any, desired: Any) -> Any:
    element = reference.dtype
    return types.Tuple((types.boolean, element))(reference, element, element)


@instructions(_swapped)
def _compare_and_swap(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return whether a desired value replaced the expected one, and the previous value."""
    reference, element, _ = signature.args
    pointer, expected, desired = arguments
    order = reference.memory_order
    orders = [order, _READ_ORDERS.get(order, order)]
    before = _call_on_bits(
        context, builder, "CompareExchange", reference, pointer, desired, expected, orders=orders
    )
    swapped = builder.icmp_unsigned("==", before, builder.bitcast(expected, before.type))
    previous = builder.bitcast(before, context.get_value_type(element))
    return context.make_tuple(builder, signature.return_type, (swapped, previous))


@_method("compare_exchange")
def _compare_exchange(
    atomic_ref: Any, expected_ref: Any, desired: Any, expected_idx: Any = 0
) -> Any:
    element = _converted("compare_exchange", atomic_ref, desired)
    if isinstance(expected_ref, types.Number):
        return lambda atomic_ref, expected_ref, desired, expected_idx=0: _compare_and_swap(
            atomic_ref, element(expected_ref), element(desired)
        )
    if not isinstance(expected_ref, DeviceArray) or expected_ref.dtype != element:
        raise TypingError(
            f"AtomicRef.compare_exchange: the expected value must be a number, or an element of an "
            f"array of {element}; got {expected_ref}"
        )

    def compare_exchange(
        atomic_ref: Any, expected_ref: Any, desired: Any, expected_idx: Any = 0
    ) -> Any:
        expected = expected_ref[expected_idx]
        swapped, previous = _compare_and_swap(atomic_ref, expected, element(desired))
        if not swapped:
            expected_ref[expected_idx] = previous
        return swapped

    return compare_exchange


for _name in ("exchange", *_INSTRUCTIONS):
    _method(_name)(_changing(_name))


# A captured member of an enumeration counts like a literal.
for _enumeration in (AddressSpace, MemoryOrder, MemoryScope):
    types.Literal.ctor_map[_enumeration] = lambda value: types.IntegerLiteral(int(value))
