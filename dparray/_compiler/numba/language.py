"""The kernel language: items, groups, barriers, fences and private arrays in device code.

Each is typed by a template and lowered directly, which compiles faster than Numba's overloads,
since those are functions that must be compiled themselves.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.npydecl import parse_dtype
from numba.core.typing.templates import AttributeTemplate
from numba.np.arrayobj import make_array, populate_array

from dparray._compiler import abi
from dparray._compiler.numba import instructions as device
from dparray._compiler.numba.registration import bound_method, typed
from dparray._compiler.numba.target import LOCAL_ARRAY, registry, typing_registry
from dparray._compiler.numba.types import (
    LOCAL,
    PRIVATE,
    DeviceArray,
    GroupType,
    ItemType,
    NdItemType,
    SubGroupType,
)
from dparray.kernel_api import (
    LocalArray,
    MemoryOrder,
    MemoryScope,
    PrivateArray,
    atomic_fence,
    group_barrier,
)

_SPACES = (ItemType, NdItemType, GroupType, SubGroupType)

# --- items and groups -----------------------------------------------------------------------------

# The requested range, which an item contains, since the device's own may be rounded up.
_EXTENTS = "extents"
# Methods with a dimension argument, and the numbers that they return.
_NUMBERS: dict[type, dict[str, str]] = {
    ItemType: {"get_id": abi.GLOBAL_ID, "get_range": _EXTENTS},
    NdItemType: {
        "get_global_id": abi.GLOBAL_ID,
        "get_local_id": abi.LOCAL_ID,
        "get_global_range": abi.GLOBAL_SIZE,
        "get_local_range": abi.LOCAL_SIZE,
    },
    GroupType: {
        "get_group_id": abi.GROUP_ID,
        "get_group_range": abi.GROUP_COUNT,
        "get_local_range": abi.LOCAL_SIZE,
    },
    SubGroupType: {},
}
# Methods that return a number over all dimensions, with their ids and sizes.
_LINEAR_IDS: dict[type, dict[str, tuple[str, str]]] = {
    ItemType: {"get_linear_id": (abi.GLOBAL_ID, _EXTENTS)},
    NdItemType: {
        "get_global_linear_id": (abi.GLOBAL_ID, abi.GLOBAL_SIZE),
        "get_local_linear_id": (abi.LOCAL_ID, abi.LOCAL_SIZE),
    },
    GroupType: {"get_group_linear_id": (abi.GROUP_ID, abi.GROUP_COUNT)},
    SubGroupType: {},
}
_VOLUMES: dict[type, dict[str, str]] = {
    ItemType: {"get_linear_range": _EXTENTS},
    NdItemType: {
        "get_global_linear_range": abi.GLOBAL_SIZE,
        "get_local_linear_range": abi.LOCAL_SIZE,
    },
    GroupType: {
        "get_group_linear_range": abi.GROUP_COUNT,
        "get_local_linear_range": abi.LOCAL_SIZE,
    },
    SubGroupType: {},
}
# Methods of sub-groups, which have no dimension argument.
_OF_SUB_GROUPS = {
    "get_local_id": abi.SUB_GROUP_LOCAL_ID,
    "get_local_linear_id": abi.SUB_GROUP_LOCAL_ID,
    "get_local_range": abi.SUB_GROUP_SIZE,
    "get_local_linear_range": abi.SUB_GROUP_SIZE,
    "get_max_local_range": abi.SUB_GROUP_MAX_SIZE,
    "get_group_id": abi.SUB_GROUP_ID,
    "get_group_linear_id": abi.SUB_GROUP_ID,
    "get_group_range": abi.SUB_GROUP_COUNT,
    "get_group_linear_range": abi.SUB_GROUP_COUNT,
}


_OF_A_DIMENSION = inspect.signature(lambda dim: None)
_OF_SUB_GROUP = inspect.signature(lambda *dim: None)
_GROUPS: dict[str, Callable[[int], Any]] = {
    "get_group": GroupType,
    "get_sub_group": lambda ndim: SubGroupType(1),
}


@functools.cache
def _method(space: Any, name: str) -> Any:
    """Return the type of a method of an item or a group; ``None`` if there is no such method."""
    typer = _typer(space, name)
    return None if typer is None else bound_method(space, space.label, name, typer)


def _typer(space: Any, name: str) -> Callable[..., Any] | None:
    """Return a function that has the parameters of a method and returns the type of a call."""
    cls = type(space)
    if name in _NUMBERS[cls]:

        def of_a_dimension(*dimensions: Any, **named: Any) -> Any:
            arguments = dimensions or tuple(named.values())
            if len(arguments) != 1 or not isinstance(arguments[0], types.Integer):
                raise TypingError(f"item.{name} requires a dimension: item.{name}(0)")
            return types.int64

        of_a_dimension.pysig = _OF_A_DIMENSION  # type: ignore[attr-defined]
        return of_a_dimension
    if name in _LINEAR_IDS[cls] or name in _VOLUMES[cls]:
        return lambda: types.int64
    if cls is SubGroupType and name in _OF_SUB_GROUPS:

        def of_sub_group(*dimensions: Any, **named: Any) -> Any:
            if dimensions or named:
                raise TypingError(
                    f"a sub-group has one dimension: item.get_sub_group().{name}() has no argument"
                )
            return types.int64

        of_sub_group.pysig = _OF_SUB_GROUP  # type: ignore[attr-defined]
        return of_sub_group
    if cls is NdItemType and name in _GROUPS:
        return lambda: _GROUPS[name](space.ndim)
    return None


def _register_space(cls: type) -> None:
    @typing_registry.register_attr
    class Attributes(AttributeTemplate):
        key = cls

        def generic_resolve(self, value: Any, attr: str) -> Any:
            return types.int64 if attr == "dimensions" else _method(value, attr)

    @registry.lower_getattr(cls, "dimensions")
    def dimensions(context: Any, builder: Any, numba_type: Any, value: Any) -> Any:
        return device.INT64(numba_type.ndim)

    for name, number in _NUMBERS[cls].items():
        _lower_number(cls, name, number)
    for name, (ids, sizes) in _LINEAR_IDS[cls].items():
        _lower_linear_id(cls, name, ids, sizes)
    for name, sizes in _VOLUMES[cls].items():
        _lower_volume(cls, name, sizes)


def _lower_of_sub_group(name: str, number: str) -> None:
    @registry.lower((SubGroupType, name), SubGroupType)
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return device.sub_group_number(builder, number)


def _lower_number(cls: type, name: str, number: str) -> None:
    @registry.lower((cls, name), cls, types.Integer)
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        space, dimension = arguments
        dimension = context.cast(builder, dimension, signature.args[1], types.int32)
        return _number(builder, space, number, dimension, signature.args[0].ndim)


def _lower_linear_id(cls: type, name: str, ids: str, sizes: str) -> None:
    @registry.lower((cls, name), cls)
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        ndim = signature.args[0].ndim
        linear = _number(builder, arguments[0], ids, 0, ndim)
        for dimension in range(1, ndim):
            size = _number(builder, arguments[0], sizes, dimension, ndim)
            number = _number(builder, arguments[0], ids, dimension, ndim)
            linear = builder.add(builder.mul(linear, size, flags=["nsw"]), number, flags=["nsw"])
        return linear


def _lower_volume(cls: type, name: str, sizes: str) -> None:
    @registry.lower((cls, name), cls)
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        ndim = signature.args[0].ndim
        numbers = [_number(builder, arguments[0], sizes, each, ndim) for each in range(ndim)]
        return functools.reduce(lambda a, b: builder.mul(a, b, flags=["nsw"]), numbers)


_WHOLE, _OFFSET = 1, 2  # members of the item of a range in pieces


def _number(builder: Any, space: Any, number: str, dimension: Any, ndim: int) -> Any:
    """Return a number of a work-item or a group in a dimension: the device's, or an item's."""
    in_pieces = len(space.type.elements) > 1
    if number == _EXTENTS:
        return _member(builder, space, _WHOLE if in_pieces else 0, dimension, ndim)
    found = device.index(builder, number, dimension)
    if in_pieces:
        offset = _member(builder, space, _OFFSET, dimension, ndim)
        found = builder.add(found, offset, flags=["nsw"])
    return found


def _member(builder: Any, space: Any, member: int, dimension: Any, ndim: int) -> Any:
    """Return the entry for one dimension of a member of an item."""
    extents = builder.extract_value(space, member)
    if isinstance(dimension, int):
        return builder.extract_value(extents, dimension)
    found = builder.extract_value(extents, ndim - 1)
    for at in reversed(range(ndim - 1)):
        is_it = builder.icmp_signed("==", dimension, device.INT32(at))
        found = builder.select(is_it, builder.extract_value(extents, at), found)
    return found


for _cls in _SPACES:
    _register_space(_cls)
for _method_name in _OF_SUB_GROUPS:
    _lower_of_sub_group(_method_name, _OF_SUB_GROUPS[_method_name])


@registry.lower((NdItemType, "get_group"), NdItemType)
@registry.lower((NdItemType, "get_sub_group"), NdItemType)
def _get_group(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return context.get_constant_null(signature.return_type)


# --- barriers and fences --------------------------------------------------------------------------


def constant(function: str, name: str, value: Any, example: str) -> int:
    """Return the value of a constant argument, given as a type or a default.

    Raises:
        TypingError: it is not constant.
    """
    number = getattr(value, "literal_value", getattr(value, "value", value))
    if not isinstance(number, int):
        raise TypingError(f"{function}: {name} must be a constant, such as dp.{example}")
    return int(number)


def _barrier_scope(scope: Any) -> int:
    return constant("group_barrier", "fence_scope", scope, "MemoryScope.WORK_GROUP")


@typed(group_barrier, prefer_literal=True)
def _group_barrier(group: Any, fence_scope: Any = MemoryScope.WORK_GROUP) -> Any:
    if not isinstance(group, GroupType | SubGroupType):
        return None
    _barrier_scope(fence_scope)
    return types.void


@registry.lower(group_barrier, GroupType)
@registry.lower(group_barrier, GroupType, types.IntegerLiteral)
@registry.lower(group_barrier, SubGroupType)
@registry.lower(group_barrier, SubGroupType, types.IntegerLiteral)
def _lower_barrier(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    waits = scope = MemoryScope.WORK_GROUP
    if isinstance(signature.args[0], SubGroupType):
        waits = MemoryScope.SUB_GROUP
    if len(signature.args) > 1:
        scope = MemoryScope(_barrier_scope(signature.args[1]))
    device.call(
        builder,
        abi.mangled("__spirv_ControlBarrier", "jjj"),
        ir.VoidType(),
        [
            device.scope(waits),
            device.scope(scope),
            device.semantics(MemoryOrder.SEQ_CST),
        ],
        convergent=True,
    )
    return context.get_dummy_value()


@typed(atomic_fence, prefer_literal=True)
def _atomic_fence(memory_order: Any, memory_scope: Any) -> Any:
    constant("atomic_fence", "memory_order", memory_order, "MemoryOrder.ACQ_REL")
    constant("atomic_fence", "memory_scope", memory_scope, "MemoryScope.DEVICE")
    return types.void


@registry.lower(atomic_fence, types.IntegerLiteral, types.IntegerLiteral)
def _lower_fence(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    order, scope = (numba_type.literal_value for numba_type in signature.args)
    device.call(
        builder,
        abi.mangled("__spirv_MemoryBarrier", "jj"),
        ir.VoidType(),
        [device.scope(scope), device.semantics(order)],
        convergent=True,
    )
    return context.get_dummy_value()


# --- private and local arrays ---------------------------------------------------------------------


_MAX_ELEMENTS = 2**31 - 1


def _extents(what: str, shape: Any) -> tuple[int, ...]:
    parts = tuple(shape) if isinstance(shape, types.BaseTuple) else (shape,)
    if not all(isinstance(part, types.IntegerLiteral) for part in parts):
        raise TypingError(
            f"{what}: the shape must be a constant integer or tuple of integers; got {shape}"
        )
    extents = tuple(int(part.literal_value) for part in parts)
    if functools.reduce(operator.mul, extents, 1) > _MAX_ELEMENTS:
        raise TypingError(f"{what}: it has at most 2**31 - 1 elements; got the shape {extents}")
    return extents


def _element(what: str, dtype: Any) -> Any:
    element = parse_dtype(dtype)
    if element is None:
        raise TypingError(f"{what}: the dtype must be one such as np.float32; got {dtype}")
    return element


@typed(PrivateArray, prefer_literal=True)
def _private_array(shape: Any, dtype: Any, fill_zeros: Any = False) -> Any:
    extents = _extents("PrivateArray", shape)
    if not isinstance(fill_zeros, bool | types.BooleanLiteral):
        raise TypingError("PrivateArray: fill_zeros must be a constant: True or False")
    return DeviceArray(_element("PrivateArray", dtype), len(extents), "C", PRIVATE)


@typed(LocalArray, prefer_literal=True)
def _local_array(shape: Any, dtype: Any) -> Any:
    extents = _extents("LocalArray", shape)
    return DeviceArray(_element("LocalArray", dtype), len(extents), "C", LOCAL)


# LLVM splits a zero that is stored as one value into elements, which takes minutes for tens of
# thousands. This limit equals LLVM's own limit for doing so.
_MAX_ELEMENTS_OF_A_VALUE = 1024


@registry.lower(PrivateArray, types.VarArg(types.Any))
def _lower_private_array(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    extents = _extents("PrivateArray", signature.args[0])
    storage = _storage(context, signature.return_type, extents)
    is_filled = len(signature.args) > 2 and signature.args[2].literal_value
    if storage.count <= _MAX_ELEMENTS_OF_A_VALUE:
        memory = cgutils.alloca_once(builder, storage, zfill=is_filled)
    else:
        with builder.goto_entry_block():
            memory = builder.alloca(storage)
        if is_filled:
            with cgutils.for_range(builder, device.INT64(storage.count)) as loop:
                first = device.INT64(0)
                element = builder.gep(memory, [first, loop.index], inbounds=True)
                builder.store(ir.Constant(storage.element, None), element)
    return _array_in(context, builder, signature.return_type, memory, extents)


@registry.lower(LocalArray, types.VarArg(types.Any))
def _lower_local_array(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    extents = _extents("LocalArray", signature.args[0])
    storage = _storage(context, signature.return_type, extents)
    name = builder.module.get_unique_name(LOCAL_ARRAY)
    memory = cgutils.add_global_variable(builder.module, storage, name, addrspace=LOCAL)
    memory.linkage = "internal"
    memory.initializer = ir.Constant(storage, ir.Undefined)
    return _array_in(context, builder, signature.return_type, memory, extents)


def _storage(context: Any, array_type: Any, extents: tuple[int, ...]) -> Any:
    element = context.get_data_type(array_type.dtype)
    return ir.ArrayType(element, functools.reduce(operator.mul, extents, 1))


def _array_in(
    context: Any, builder: Any, array_type: Any, memory: Any, extents: tuple[int, ...]
) -> Any:
    """Return an array of a given shape over memory that holds its elements."""
    itemsize = context.get_abi_sizeof(memory.type.pointee.element)
    strides = [itemsize]
    for extent in extents[:0:-1]:
        strides.insert(0, strides[0] * extent)
    array = make_array(array_type)(context, builder)
    populate_array(
        array,
        data=builder.gep(memory, [device.INT32(0), device.INT32(0)], inbounds=True),
        shape=[device.INT64(extent) for extent in extents],
        strides=[device.INT64(stride) for stride in strides],
        itemsize=device.INT64(itemsize),
        meminfo=None,
    )
    return array._getvalue()
