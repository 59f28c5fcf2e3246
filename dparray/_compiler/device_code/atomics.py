"""``AtomicRef`` in device code: what SYCL has and numba-dpex's does not do, or does wrong.

Its own knows no bitwise operations on unsigned integers, takes values of exactly the element's
type, hands memory orders to loads and stores that SPIR-V forbids there, and looks for the expected
value of ``compare_exchange`` without heeding the array's strides.

Loaded together with numba-dpex, by ``_device_code``; importing it replaces the implementations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import builtin_registry
from numba.extending import intrinsic, overload
from numba_dpex.core.types import USMNdArray
from numba_dpex.core.types.kernel_api.atomic_ref import AtomicRefType
from numba_dpex.kernel_api_impl.spirv.overloads import _atomic_ref_overloads as theirs
from numba_dpex.kernel_api_impl.spirv.overloads._spv_atomic_inst_helper import (
    _spv_atomic_instructions_map,
    get_memory_semantics_mask,
    get_scope,
)
from numba_dpex.kernel_api_impl.spirv.overloads.spv_fn_declarations import (
    get_or_insert_spv_atomic_compare_exchange_fn,
)
from numba_dpex.kernel_api_impl.spirv.target import SPIRV_TARGET_NAME

from dparray.kernel_api import AddressSpace, AtomicRef, MemoryOrder, MemoryScope

_ELEMENTS = (types.int32, types.int64, types.uint32, types.uint64, types.float32, types.float64)
_BITWISE = ("fetch_and", "fetch_or", "fetch_xor")

# What is left of a memory order where an operation only reads, and where it only writes.
_READ_ORDERS = {
    MemoryOrder.RELEASE.value: MemoryOrder.RELAXED.value,
    MemoryOrder.ACQ_REL.value: MemoryOrder.ACQUIRE.value,
}
_WRITE_ORDERS = {
    MemoryOrder.ACQUIRE.value: MemoryOrder.RELAXED.value,
    MemoryOrder.ACQ_REL.value: MemoryOrder.RELEASE.value,
}


def _add_unsigned_integers() -> None:
    instructions = {
        "fetch_add": "IAdd",
        "fetch_sub": "ISub",
        "fetch_min": "UMin",
        "fetch_max": "UMax",
        "fetch_and": "And",
        "fetch_or": "Or",
        "fetch_xor": "Xor",
    }
    for name, instruction in instructions.items():
        for number in (types.uint32, types.uint64):
            _spv_atomic_instructions_map[name][number] = f"__spirv_Atomic{instruction}"


def _replace(key: Any, attribute: str | None, implementation: Callable[..., Any]) -> None:
    """Put ``implementation`` in the place of numba-dpex's overload of a function or a method."""
    templates = builtin_registry.functions if attribute is None else builtin_registry.attributes
    (template,) = (
        template
        for template in templates
        if getattr(template, "key", None) is key and getattr(template, "_attr", None) == attribute
    )
    template._overload_func = staticmethod(implementation)
    if attribute is not None:  # a method is looked up as a function of its object, too
        overload(implementation, target=SPIRV_TARGET_NAME)(implementation)


def _constant(name: str, value: Any) -> int:
    number = getattr(value, "literal_value", getattr(value, "value", value))
    if not isinstance(number, int):
        raise TypingError(f"AtomicRef: {name} must be a constant, such as dp.{_EXAMPLES[name]}")
    return int(number)


_EXAMPLES = {
    "memory_order": "MemoryOrder.RELAXED",
    "memory_scope": "MemoryScope.DEVICE",
    "address_space": "AddressSpace.GLOBAL",
}


def _atomic_ref(
    ref: Any,
    index: Any,
    memory_order: Any = MemoryOrder.RELAXED,
    memory_scope: Any = MemoryScope.DEVICE,
    address_space: Any = None,
) -> Any:
    if not isinstance(ref, USMNdArray):
        raise TypingError(f"AtomicRef: refers to an element of an array; got {ref}")
    if ref.dtype not in _ELEMENTS:
        raise TypingError(
            "AtomicRef: refers to int32, int64, uint32, uint64, float32 and float64 elements; got "
            f"an array of {ref.dtype}"
        )
    if ref.addrspace == AddressSpace.PRIVATE.value:
        raise TypingError(
            "AtomicRef: private memory belongs to one work-item, which needs no atomics: read and "
            "write the element"
        )
    indices = tuple(index) if isinstance(index, types.BaseTuple) else (index,)
    if len(indices) != ref.ndim or not all(isinstance(part, types.Integer) for part in indices):
        wanted = "an integer" if ref.ndim == 1 else f"a tuple of {ref.ndim} integers"
        given = types.unliteral(index)
        raise TypingError(f"AtomicRef: an index of this array is {wanted}; got {given}")
    space = ref.addrspace
    if address_space is not None:
        asked = _constant("address_space", address_space)
        if asked not in (space, AddressSpace.GENERIC.value):
            known = AddressSpace(space).name
            raise TypingError(
                f"AtomicRef: the array is in {known.lower()} memory; use "
                f"address_space=dp.AddressSpace.{known}, or leave the argument out"
            )
    result = AtomicRefType(
        ref.dtype,
        _constant("memory_order", memory_order),
        _constant("memory_scope", memory_scope),
        space,
    )

    def refer(
        ref: Any,
        index: Any,
        memory_order: Any = MemoryOrder.RELAXED,
        memory_scope: Any = MemoryScope.DEVICE,
        address_space: Any = None,
    ) -> Any:
        return theirs._intrinsic_atomic_ref_ctor(ref, index, result)

    return refer


@intrinsic(target=SPIRV_TARGET_NAME)
def _reader(typing_context: Any, atomic_ref: Any) -> Any:
    """The reference with what is left of its memory order for an operation that reads."""
    return _with_order(atomic_ref, _READ_ORDERS)


@intrinsic(target=SPIRV_TARGET_NAME)
def _writer(typing_context: Any, atomic_ref: Any) -> Any:
    """The reference with what is left of its memory order for an operation that writes."""
    return _with_order(atomic_ref, _WRITE_ORDERS)


def _with_order(atomic_ref: Any, orders: dict[int, int]) -> Any:
    order = orders.get(atomic_ref.memory_order, atomic_ref.memory_order)
    result = AtomicRefType(
        atomic_ref.dtype, order, atomic_ref.memory_scope, atomic_ref.address_space
    )
    return result(atomic_ref), lambda context, builder, signature, arguments: arguments[0]


def _load(atomic_ref: Any) -> Any:
    def load(atomic_ref: Any) -> Any:
        return theirs._intrinsic_load(_reader(atomic_ref))

    return load


def _converted(method: str, atomic_ref: Any, value: Any) -> Any:
    """The element's type, which converts ``value`` to it."""
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


def _store(atomic_ref: Any, val: Any) -> Any:
    element = _converted("store", atomic_ref, val)

    def store(atomic_ref: Any, val: Any) -> Any:
        theirs._intrinsic_store(_writer(atomic_ref), element(val))

    return store


def _changing(method: str) -> Callable[..., Any]:
    """The overload of a method that takes a value and returns the one before."""
    change = getattr(theirs, f"_intrinsic_{method}")

    def overload_method(atomic_ref: Any, val: Any) -> Any:
        element = _converted(method, atomic_ref, val)

        def implementation(atomic_ref: Any, val: Any) -> Any:
            return change(atomic_ref, element(val))

        return implementation

    return overload_method


@intrinsic(target=SPIRV_TARGET_NAME)
def _compare_and_swap(typing_context: Any, atomic_ref: Any, expected: Any, desired: Any) -> Any:
    """Whether ``desired`` took the place of ``expected``, and the value before."""
    element = atomic_ref.dtype
    result = types.Tuple((types.boolean, element))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = ir.IntType(element.bitwidth)
        pointer, before, after = (
            builder.bitcast(value, kind)
            for value, kind in (
                (builder.extract_value(arguments[0], 0), bits.as_pointer(atomic_ref.address_space)),
                (arguments[1], bits),
                (arguments[2], bits),
            )
        )
        order = atomic_ref.memory_order
        call = builder.call(
            get_or_insert_spv_atomic_compare_exchange_fn(context, builder.module, atomic_ref),
            [
                pointer,
                context.get_constant(types.int32, get_scope(atomic_ref.memory_scope)),
                context.get_constant(types.int32, get_memory_semantics_mask(order)),
                context.get_constant(
                    types.int32, get_memory_semantics_mask(_READ_ORDERS.get(order, order))
                ),
                after,
                before,
            ],
        )
        call.attributes.add("convergent")
        call.attributes.add("nounwind")
        found = builder.bitcast(call, context.get_value_type(element))
        swapped = builder.icmp_unsigned("==", call, before)
        return context.make_tuple(builder, result, (swapped, found))

    return result(atomic_ref, element, element), generate


def _compare_exchange(
    atomic_ref: Any, expected_ref: Any, desired: Any, expected_idx: Any = 0
) -> Any:
    element = _converted("compare_exchange", atomic_ref, desired)
    if not isinstance(expected_ref, USMNdArray) or expected_ref.dtype != element:
        raise TypingError(
            f"AtomicRef.compare_exchange: the expected value is an element of an array of "
            f"{element}, such as dp.PrivateArray(1, np.{element}); got {expected_ref}"
        )

    def compare_exchange(
        atomic_ref: Any, expected_ref: Any, desired: Any, expected_idx: Any = 0
    ) -> Any:
        swapped, found = _compare_and_swap(atomic_ref, expected_ref[expected_idx], element(desired))
        if not swapped:
            expected_ref[expected_idx] = found
        return swapped

    return compare_exchange


_add_unsigned_integers()
_replace(AtomicRef, None, _atomic_ref)
_replace(AtomicRefType, "load", _load)
_replace(AtomicRefType, "store", _store)
_replace(AtomicRefType, "compare_exchange", _compare_exchange)
for _method in (*_spv_atomic_instructions_map, "exchange"):
    _replace(AtomicRefType, _method, _changing(_method))


def _literal(value: Any) -> Any:
    """The type of a constant, so that a captured member is as good as one that is written out."""
    return types.IntegerLiteral(int(value))


for _enumeration in (AddressSpace, MemoryOrder, MemoryScope):
    types.Literal.ctor_map[_enumeration] = _literal
