"""Instructions of SPIR-V that are written as calls of functions with their names."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from dparray.kernel_api import MemoryOrder, MemoryScope

INT32 = ir.IntType(32)
INT64 = ir.IntType(64)


class Scope(IntEnum):
    """Which work-items an instruction concerns."""

    CROSS_DEVICE = 0
    DEVICE = 1
    WORK_GROUP = 2
    SUB_GROUP = 3
    INVOCATION = 4


_SCOPES = {
    MemoryScope.WORK_ITEM: Scope.INVOCATION,
    MemoryScope.SUB_GROUP: Scope.SUB_GROUP,
    MemoryScope.WORK_GROUP: Scope.WORK_GROUP,
    MemoryScope.DEVICE: Scope.DEVICE,
    MemoryScope.SYSTEM: Scope.CROSS_DEVICE,
}
# Bits of memory semantics: how reads and writes are ordered, and those of which memory.
_ORDERS = {
    MemoryOrder.RELAXED: 0x0,
    MemoryOrder.CONSUME_UNSUPPORTED: 0x0,
    MemoryOrder.ACQUIRE: 0x2,
    MemoryOrder.RELEASE: 0x4,
    MemoryOrder.ACQ_REL: 0x8,
    MemoryOrder.SEQ_CST: 0x10,
}
_ALL_MEMORY = 0x80 | 0x100 | 0x200  # of the sub-group, the work-group and the device


def scope(memory_scope: int) -> Any:
    """The constant of a ``MemoryScope``."""
    return INT32(int(_SCOPES[MemoryScope(memory_scope)]))


def semantics(memory_order: int) -> Any:
    """The constant of a ``MemoryOrder``; as in SYCL, it is about all memory."""
    return INT32(_ORDERS[MemoryOrder(memory_order)] | _ALL_MEMORY)


def code_of(number: Any) -> str:
    """How the names of functions say a type of Numba's."""
    if isinstance(number, types.Float):
        return {16: "Dh", 32: "f", 64: "d"}[number.bitwidth]
    return {8: "ah", 16: "st", 32: "ij", 64: "lm"}[number.bitwidth][not number.signed]


def mangled(name: str, codes: str) -> str:
    """The name of a function for parameters of some types."""
    return f"_Z{len(name)}{name}{codes}"


def call(
    builder: Any,
    name: str,
    result: Any,
    arguments: Sequence[Any] = (),
    *,
    convergent: bool = False,
    pure: bool = False,
) -> Any:
    """Call a function of the device.

    Args:
        name: mangled.
        result: its LLVM type.
        convergent: work-items do it together, so LLVM must not move it behind a condition.
        pure: it reads nothing and writes nothing, so LLVM may leave it out.
    """
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    function.calling_convention = "spir_func"
    function.attributes.add("nounwind")
    attributes = []
    if convergent:
        attributes.append("convergent")
        function.attributes.add("convergent")
    if pure:
        function.attributes.add("readnone")
    return builder.call(function, list(arguments), cconv="spir_func", attrs=attributes)


# --- numbers of work-items ------------------------------------------------------------------------

GLOBAL_ID = "get_global_id"
GLOBAL_SIZE = "get_global_size"
LOCAL_ID = "get_local_id"
LOCAL_SIZE = "get_local_size"
GROUP_ID = "get_group_id"
GROUP_COUNT = "get_num_groups"
# Of sub-groups, which have one dimension.
SUB_GROUP_LOCAL_ID = "get_sub_group_local_id"
SUB_GROUP_SIZE = "get_sub_group_size"
SUB_GROUP_MAX_SIZE = "get_max_sub_group_size"
SUB_GROUP_ID = "get_sub_group_id"
SUB_GROUP_COUNT = "get_num_sub_groups"


def index(builder: Any, name: str, dimension: Any) -> Any:
    """One of the numbers above in a dimension; the dimensions are in the order of the kernel's."""
    if isinstance(dimension, int):
        dimension = INT32(dimension)
    number = call(builder, mangled(name, "j"), INT64, [dimension], pure=True)
    # Numba's code for indices asks whether they are negative.
    builder.assume(builder.icmp_signed(">=", number, INT64(0)))
    return number


def sub_group_number(builder: Any, name: str) -> Any:
    """One of the numbers of sub-groups above."""
    number = call(builder, mangled(name, "v"), INT32, pure=True)
    return builder.zext(number, INT64)


def linear_index(builder: Any, ids: str, sizes: str, dimensions: Sequence[int]) -> Any:
    """The number of a work-item or a group in all dimensions, the last of them fastest."""
    linear: Any = None
    for dimension in dimensions:
        number = index(builder, ids, dimension)
        if linear is None:
            linear = number
        else:
            before = builder.mul(linear, index(builder, sizes, dimension), flags=["nsw"])
            linear = builder.add(before, number, flags=["nsw"])
    return linear
