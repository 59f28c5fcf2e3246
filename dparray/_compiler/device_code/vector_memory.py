"""``dp.vec`` in device code: creating vectors, reading them from memory and writing them.

Loaded with the rest of the device code; importing it registers the implementations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.npydecl import parse_dtype
from numba.core.typing.templates import AbstractTemplate, CallableTemplate, signature
from numba.np.arrayobj import fix_integer_index, make_array
from numba.np.numpy_support import as_dtype, from_dtype

from dparray._compiler.device_code.vector_values import (
    NUMBERS,
    as_vector,
    common_type,
    constant_width,
    converted,
    dtype_of,
    element_of,
    elements_of,
    in_registers,
    spread,
    vector_of,
    width_of,
)
from dparray._compiler.target import registry, typing_registry
from dparray._compiler.types import DeviceArray, VectorType
from dparray.kernel_api import vec, vec_full, vec_load, vec_store, vec_where

_INT64 = ir.IntType(64)


# --- creating vectors -----------------------------------------------------------------------------


@typing_registry.register_global(vec)
class _Vec(AbstractTemplate):
    key = vec

    def generic(self, args: Any, kws: Any) -> Any:
        if kws:
            raise TypingError("vec: takes the elements alone; convert them with .astype(...)")
        width = constant_width("vec", len(args))
        for each in args:
            if not isinstance(each, NUMBERS):
                raise TypingError(
                    "vec: elements must be Booleans, integers or floats; got "
                    f"{types.unliteral(each)}"
                )
        common = np.result_type(*map(dtype_of, args))
        return signature(VectorType(in_registers(from_dtype(common)), width), *args)


@registry.lower(vec, types.VarArg(types.Any))
def _lower_vec(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
    element = actual.return_type.dtype
    elements = []
    for value, given in zip(arguments, actual.args, strict=True):
        number = types.unliteral(given)
        value = context.cast(builder, value, given, number)
        elements.append(context.cast(builder, value, number, element))
    return vector_of(builder, elements)


@typing_registry.register_global(vec_full)
class _VecFull(CallableTemplate):
    prefer_literal = True

    def generic(self) -> Callable[..., Any]:
        def typer(width: Any, value: Any, dtype: Any) -> Any:
            element = element_of("vec_full", dtype)
            if not isinstance(value, NUMBERS):
                raise TypingError(f"vec_full: takes a number as value; got {value}")
            return VectorType(in_registers(element), constant_width("vec_full", width))

        return typer


@registry.lower(vec_full, types.Any, types.Any, types.Any)
def _lower_full(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
    made = actual.return_type
    given, element = actual.args[1], parse_dtype(actual.args[2])
    number = types.unliteral(given)
    value = context.cast(builder, arguments[1], given, number)
    value = context.cast(builder, value, number, element)
    return spread(builder, value, made.width)


@typing_registry.register_global(vec_where)
class _VecWhere(CallableTemplate):
    def generic(self) -> Callable[..., Any]:
        def typer(condition: Any, a: Any, b: Any) -> Any:
            if not isinstance(condition, VectorType) or condition.dtype != types.boolean:
                raise TypingError(
                    "vec_where: the condition must be a vector of Booleans, such as v > 0; got "
                    f"{condition}"
                )
            vectors = [each for each in (a, b) if isinstance(each, VectorType)]
            if not vectors or not all(isinstance(each, (VectorType, *NUMBERS)) for each in (a, b)):
                raise TypingError(
                    f"vec_where: takes a vector and a vector or a number; got {a} and {b}"
                )
            for each in vectors:
                width_of((condition, each))
            return VectorType(common_type("where", (a, b)), condition.width)

        return typer


@registry.lower(vec_where, VectorType, types.Any, types.Any)
def _lower_where(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
    made = actual.return_type
    a, b = (
        as_vector(context, builder, value, given, made.dtype, made.width)
        for value, given in zip(arguments[1:], actual.args[1:], strict=True)
    )
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


@typing_registry.register_global(vec_load)
class _VecLoad(CallableTemplate):
    prefer_literal = True

    def generic(self) -> Callable[..., Any]:
        def typer(array: Any, index: Any, width: Any) -> Any:
            _check_place("vec_load", array, index)
            return VectorType(in_registers(array.dtype), constant_width("vec_load", width))

        return typer


@typing_registry.register_global(vec_store)
class _VecStore(CallableTemplate):
    prefer_literal = True

    def generic(self) -> Callable[..., Any]:
        def typer(array: Any, index: Any, vector: Any) -> Any:
            _check_place("vec_store", array, index)
            if not isinstance(vector, VectorType):
                raise TypingError(
                    f"vec_store: takes a vector, such as dp.vec_full(4, 0, x.dtype); got {vector}"
                )
            if not array.mutable:
                raise TypingError("Cannot modify readonly array")
            return types.void

        return typer


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
    array, made = actual.args[0], actual.return_type
    view, first = _place(context, builder, actual, arguments, made.width)
    if _lies_together(array):
        kind = ir.VectorType(first.type.pointee, made.width)
        pointer = builder.bitcast(first, kind.as_pointer(first.type.addrspace))
        loaded = builder.load(pointer, align=as_dtype(array.dtype).itemsize)
    else:
        pointers = _pointers(builder, array, view, first, made.width)
        loaded = vector_of(builder, [builder.load(each) for each in pointers])
    if isinstance(array.dtype, types.Boolean):
        return builder.icmp_unsigned("!=", loaded, ir.Constant(loaded.type, None))
    if array.dtype == types.float16:
        return builder.fpext(loaded, context.get_value_type(made))
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
