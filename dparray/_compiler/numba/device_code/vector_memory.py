"""``dp.vec`` in device code: creating vectors, reading them from memory and writing them.

Loaded with the rest of the device code; importing it registers the implementations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.npydecl import parse_dtype
from numba.core.typing.templates import signature
from numba.np.arrayobj import fix_integer_index, make_array
from numba.np.numpy_support import as_dtype, from_dtype

from dparray._compiler.numba.device_code.vector_values import (
    NUMBERS,
    as_vectors,
    common_type,
    constant_width,
    converted,
    dtype_of,
    element_of,
    elements_of,
    in_registers,
    number_as,
    spread,
    vector_of,
    width_of,
)
from dparray._compiler.numba.registration import typed, typed_by_arguments
from dparray._compiler.numba.target import registry
from dparray._compiler.numba.types import DeviceArray, VectorType
from dparray.kernel_api import vec, vec_full, vec_load, vec_store, vec_where

_INT64 = ir.IntType(64)


# --- creating vectors -----------------------------------------------------------------------------


@typed_by_arguments(vec)
def _vec(args: Any, kws: Any) -> Any:
    if kws:
        raise TypingError("vec: takes the elements alone; convert them with .astype(...)")
    width = constant_width("vec", len(args))
    for each in args:
        if not isinstance(each, NUMBERS):
            raise TypingError(
                f"vec: elements must be Booleans, integers or floats; got {types.unliteral(each)}"
            )
    common = np.result_type(*map(dtype_of, args))
    return signature(VectorType(in_registers(from_dtype(common)), width), *args)


@registry.lower(vec, types.VarArg(types.Any))
def _lower_vec(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
    element = actual.return_type.dtype
    return vector_of(
        builder,
        [
            number_as(context, builder, value, given, element)
            for value, given in zip(arguments, actual.args, strict=True)
        ],
    )


@typed(vec_full, prefer_literal=True)
def _vec_full(width: Any, value: Any, dtype: Any) -> Any:
    element = element_of("vec_full", dtype)
    if not isinstance(value, NUMBERS):
        raise TypingError(f"vec_full: takes a number as value; got {value}")
    return VectorType(in_registers(element), constant_width("vec_full", width))


@registry.lower(vec_full, types.Any, types.Any, types.Any)
def _lower_full(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
    element = parse_dtype(actual.args[2])
    value = number_as(context, builder, arguments[1], actual.args[1], element)
    return spread(builder, value, actual.return_type.width)


@typed(vec_where)
def _vec_where(condition: Any, a: Any, b: Any) -> Any:
    if not isinstance(condition, VectorType) or condition.dtype != types.boolean:
        raise TypingError(
            f"vec_where: the condition must be a vector of Booleans, such as v > 0; got {condition}"
        )
    vectors = [each for each in (a, b) if isinstance(each, VectorType)]
    if not vectors or not all(isinstance(each, (VectorType, *NUMBERS)) for each in (a, b)):
        raise TypingError(f"vec_where: takes a vector and a vector or a number; got {a} and {b}")
    for each in vectors:
        width_of((condition, each))
    return VectorType(common_type("where", (a, b)), condition.width)


@registry.lower(vec_where, VectorType, types.Any, types.Any)
def _lower_where(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
    a, b = as_vectors(context, builder, arguments[1:], actual.args[1:], actual.return_type.dtype)
    return builder.select(arguments[0], a, b)


# --- memory ---------------------------------------------------------------------------------------


def _check_place(what: str, array: Any, index: Any) -> None:
    if not isinstance(array, DeviceArray):
        raise TypingError(f"{what}: the first argument must be an array of the kernel; got {array}")
    if not isinstance(array.dtype, NUMBERS):
        raise TypingError(f"{what}: the array must have Booleans, integers or floats; got {array}")
    kinds = _indices(index)
    if len(kinds) != array.ndim or not all(isinstance(kind, types.Integer) for kind in kinds):
        wanted = "an integer" if array.ndim == 1 else f"a tuple of {array.ndim} integers"
        raise TypingError(f"{what}: takes {wanted} as index of {array}; got {index}")


def _indices(index: Any) -> tuple[Any, ...]:
    return tuple(index) if isinstance(index, types.BaseTuple) else (index,)


@typed(vec_load, prefer_literal=True)
def _vec_load(array: Any, index: Any, width: Any) -> Any:
    _check_place("vec_load", array, index)
    return VectorType(in_registers(array.dtype), constant_width("vec_load", width))


@typed(vec_store, prefer_literal=True)
def _vec_store(array: Any, index: Any, vector: Any) -> Any:
    _check_place("vec_store", array, index)
    if not isinstance(vector, VectorType):
        raise TypingError(
            f"vec_store: takes a vector, such as dp.vec_full(4, 0, x.dtype); got {vector}"
        )
    if not array.mutable:
        raise TypingError("Cannot modify readonly array")
    return types.void


def _place(context: Any, builder: Any, actual: Any, arguments: Any, width: int) -> tuple[Any, Any]:
    """Return the array, and the address of the first element."""
    array, index = actual.args[:2]
    view = make_array(array)(context, builder, arguments[0])
    values = [arguments[1]]
    if isinstance(index, types.BaseTuple):
        values = cgutils.unpack_tuple(builder, arguments[1], len(index))
    extents = cgutils.unpack_tuple(builder, view.shape, array.ndim)
    positions = []
    for dimension, (kind, value, extent) in enumerate(
        zip(_indices(index), values, extents, strict=True)
    ):
        position = fix_integer_index(context, builder, types.unliteral(kind), value, extent)
        if context.enable_boundscheck:
            last = position
            if dimension == array.ndim - 1:
                last = builder.add(position, _INT64(width - 1))
            for each in (position, last):
                cgutils.do_boundscheck(context, builder, each, extent, dimension)
        positions.append(position)
    return view, cgutils.get_item_pointer(context, builder, array, view, positions)


def _lies_together(array: Any) -> bool:
    return bool(array.layout == "C" or (array.layout == "F" and array.ndim == 1))


def _pointers(builder: Any, array: Any, view: Any, first: Any, width: int) -> list[Any]:
    """Return the addresses of strided elements."""
    step = builder.extract_value(view.strides, array.ndim - 1)
    return [
        cgutils.pointer_add(builder, first, builder.mul(step, _INT64(lane)))
        for lane in range(width)
    ]


@registry.lower(vec_load, DeviceArray, types.Any, types.Any)
def _lower_load(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
    array, vector = actual.args[0], actual.return_type
    view, first = _place(context, builder, actual, arguments, vector.width)
    if _lies_together(array):
        kind = ir.VectorType(first.type.pointee, vector.width)
        pointer = builder.bitcast(first, kind.as_pointer(first.type.addrspace))
        loaded = builder.load(pointer, align=as_dtype(array.dtype).itemsize)
    else:
        pointers = _pointers(builder, array, view, first, vector.width)
        loaded = vector_of(builder, [builder.load(each) for each in pointers])
    if isinstance(array.dtype, types.Boolean):
        return builder.icmp_unsigned("!=", loaded, ir.Constant(loaded.type, None))
    if array.dtype == types.float16:
        return builder.fpext(loaded, context.get_value_type(vector))
    return loaded


@registry.lower(vec_store, DeviceArray, types.Any, VectorType)
def _lower_store(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
    array, vector = actual.args[0], actual.args[2]
    view, first = _place(context, builder, actual, arguments, vector.width)
    element = in_registers(array.dtype)
    value = converted(context, builder, arguments[2], vector.dtype, element)
    kind = ir.VectorType(first.type.pointee, vector.width)
    if isinstance(array.dtype, types.Boolean):
        value = builder.zext(value, kind)
    elif array.dtype == types.float16:
        value = builder.fptrunc(value, kind)
    if _lies_together(array):
        pointer = builder.bitcast(first, kind.as_pointer(first.type.addrspace))
        builder.store(value, pointer, align=as_dtype(array.dtype).itemsize)
    else:
        pointers = _pointers(builder, array, view, first, vector.width)
        for element_value, pointer in zip(elements_of(builder, value), pointers, strict=True):
            builder.store(element_value, pointer)
    return context.get_dummy_value()
