"""The functions that generated kernels call (:mod:`dparray._language.intrinsics`)."""

from __future__ import annotations

from typing import Any

from dparray import _type_keys
from dparray._ir.types import BOOL, F16, F32, I32, I64, U16, U32, U64
from dparray._language import intrinsics, promotion
from dparray._language.builtins.arrays import copied
from dparray._language.builtins.mathematics import mathematical
from dparray._language.builtins.registry import handles, known
from dparray._language.errors import Refusal
from dparray._language.memory import element_type
from dparray._language.values import (
    NONE,
    Array,
    Complex,
    Constant,
    Number,
    Shared,
    Tuple,
    Vector,
    described,
)


@handles(intrinsics.flat)
def _flat(front: Any, node: Any, array: Any) -> Array:
    extent = front.number(Constant((1 << 63) - 1))
    return Array(array.pointer, (extent,), None, array.is_readonly)


@handles(intrinsics.of_kind)
def _of_kind(front: Any, node: Any, value: Any, kind: Any) -> Any:
    allowed = {"b": "biu", "i": "biu", "f": "f"}[kind.value]
    if front.type_of(value).kind not in allowed:
        expected = {"b": "a truth value", "i": "an integer", "f": "a float"}[kind.value]
        raise Refusal(
            f"it returns {described(value)}, where {expected} is expected: give the dtype= of the "
            "result, or return the same kind of number on all paths",
            node,
        )
    return value


@handles(intrinsics.shared)
def _shared(front: Any, node: Any, total: Any, parts: Any) -> Shared:
    return Shared(front.to(total, I64), front.to(parts, I64))


@handles(intrinsics.reordered)
def _reordered(front: Any, node: Any, value: Any) -> Any:
    for part in (value.real, value.imag) if isinstance(value, Complex) else (value,):
        if isinstance(part, Number) and part.op.name in ("add", "sub", "mul"):
            part.op.marks |= {"reordered"}
    return value


@handles(intrinsics.launch)
def _launch(
    front: Any, node: Any, address: Any, sizes: Any, extents: Any, keys: Any, *arguments: Any
) -> Constant:
    operands = [front.to(address, I64).op]
    operands += [front.to(each, I64).op for each in extents.items]
    for text, value in zip(known(keys, "type keys"), arguments, strict=True):
        operands += _words(front, node, _type_keys.parse(text), value)
    attribute = (len(extents.items), *known(sizes, "the sizes of pieces"))
    front.op("launch", None, *operands, attribute=attribute)
    return NONE


def _words(front: Any, node: Any, key: _type_keys.TypeKey, value: Any) -> list[Any]:
    """Return an argument of a kernel as the parts of its parameter."""
    kind, is_complex = element_type(key.numpy_dtype)
    if key.is_scalar and not is_complex:
        return [front.to(value, F32 if kind == F16 else kind).op]
    if not isinstance(value, Array) or (key.order == "C" and value.strides is not None):
        raise Refusal("an argument of a parallel loop has another type", node)
    numbers = [*value.shape, *front.strides(value)]
    count = front.attribute(value, "size", node)
    words = [front.to(each, I64).op for each in (count, Constant(value.itemsize))]
    return [*words, value.pointer, *(each.op for each in numbers)]


@handles(intrinsics.are_apart)
def _are_apart(front: Any, node: Any, first: Any, second: Any) -> Number:
    return Number(front.are_apart(first, second))


@handles(intrinsics.give)
def _give(front: Any, node: Any, *results: Any) -> Constant:
    group = []
    for each in results:
        result, value, dtype, ndim = each.items
        array = front.whole(value)
        kind, is_complex = element_type(known(dtype, "a dtype"))
        is_alike = isinstance(array, Array) and len(array.shape) == ndim.value
        if not is_alike or (array.element, array.is_complex) != (kind, is_complex):
            raise Refusal("a result has another type", node)
        if array.strides is not None or array.pointer.name == "offset":
            front.given.append(([front.root(array.pointer)], ("new",), node))
            array = copied(front, array)
        group.append(array.pointer)
        address = front.op("bitcast", I64, front.op("address", U64, array.pointer))
        for at, number in enumerate((Number(address), *array.shape)):
            place = front.address_of(result, [front.number(Constant(at))])
            front.write(result, place, number)
    front.given.append((group, ("new", "parameter"), node))
    return NONE


# --- half precision -------------------------------------------------------------------------------


def _as_half(front: Any, value: Any) -> Number:
    kind = front.type_of(value)
    number: Number = front.to(front.to(value, kind if kind.is_float else F32), F16)
    return number


@handles(intrinsics.half_value)
def _half_value(front: Any, node: Any, bits: Any) -> Number:
    op = front.op("bitcast", F16, front.to(bits, U16).op)
    number: Number = front.to(Number(op), F32)
    return number


@handles(intrinsics.half_bits)
def _half_bits(front: Any, node: Any, value: Any) -> Number:
    return Number(front.op("bitcast", U16, _as_half(front, value).op))


@handles(intrinsics.half)
def _half(front: Any, node: Any, value: Any) -> Number:
    number: Number = front.to(_as_half(front, value), F32)
    return number


@handles(intrinsics.bfloat16_value)
def _bfloat16_value(front: Any, node: Any, bits: Any) -> Number:
    wide = front.to(front.to(bits, U16), U32)
    shifted = front.op("shl", U32, wide.op, front.constant(16, U32))
    return Number(front.op("bitcast", F32, shifted))


@handles(intrinsics.bfloat16_bits)
def _bfloat16_bits(front: Any, node: Any, value: Any) -> Number:
    number = front.to(value, F32).op
    bits = front.op("bitcast", U32, number)
    upper = front.op("shr", U32, bits, front.constant(16, U32))
    odd = front.op("and", U32, upper, front.constant(1, U32))
    half = front.op("add", U32, odd, front.constant(32767, U32))
    rounded = front.op("shr", U32, front.op("add", U32, bits, half), front.constant(16, U32))
    # Rounding could carry a NaN over to infinity.
    quiet = front.op("or", U32, upper, front.constant(64, U32))
    is_nan = front.op("ne", BOOL, number, number)
    result: Number = front.to(Number(front.op("select", U32, is_nan, quiet, rounded)), U16)
    return result


@handles(intrinsics.bfloat16)
def _bfloat16(front: Any, node: Any, value: Any) -> Number:
    return _bfloat16_value(front, node, _bfloat16_bits(front, node, value))


# --- integers -------------------------------------------------------------------------------------


@handles(intrinsics.integer_power)
def _integer_power(front: Any, node: Any, base: Any, exponent: Any) -> Number:
    wide = promotion.WIDE.widened(front.type_of(exponent))
    operands = front.to(base, U64).op, front.to(exponent, wide).op
    return Number(front.op("pow", U64, *operands))


@handles(intrinsics.multiply_add_32)
def _multiply_add_32(front: Any, node: Any, first: Any, second: Any, added: Any) -> Number:
    a, b, c = (front.op("low_bits", I32, front.to(each, U64).op) for each in (first, second, added))
    total = front.op("add", I32, front.op("mul", I32, a, b), c)
    result: Number = front.to(front.to(Number(total), I64), U64)
    return result


# --- floats ---------------------------------------------------------------------------------------


@handles(intrinsics.fused_multiply_add)
def _fused_multiply_add(front: Any, node: Any, first: Any, second: Any, added: Any) -> Number:
    return mathematical(front, "fma", F32, first, second, added)


# --- vectors of elements --------------------------------------------------------------------------


@handles(intrinsics.is_aligned)
def _is_aligned(front: Any, node: Any, array: Any, count: Any) -> Number:
    address = front.op("address", U64, array.pointer)
    mask = front.constant(count.value * array.element.size - 1, U64)
    rest = front.op("and", U64, address, mask)
    return Number(front.op("eq", BOOL, rest, front.constant(0, U64)))


@handles(intrinsics.new_vector)
def _new_vector(front: Any, node: Any, array: Any, count: Any) -> Tuple:
    return Tuple((Constant(0),) * count.value, Vector)


@handles(intrinsics.load_vector)
def _load_vector(front: Any, node: Any, array: Any, index: Any, count: Any) -> Tuple:
    kind = array.element._replace(lanes=count.value)
    address = front.address_of(array, [front.to(index, I64)])
    vector = Number(front.op("load", kind, address, attribute=count.value * array.element.size))
    return Tuple(tuple(front.lane(vector, lane) for lane in range(count.value)), Vector)


@handles(intrinsics.store_vector)
def _store_vector(front: Any, node: Any, array: Any, index: Any, vector: Tuple) -> Constant:
    parts = [front.to(each, array.element).op for each in vector.items]
    kind = array.element._replace(lanes=len(parts))
    address = front.address_of(array, [front.to(index, I64)])
    value = front.op("pack", kind, *parts)
    front.op("store", None, address, value, attribute=len(parts) * array.element.size)
    return NONE
