"""SPIR-V instructions, written as calls of functions with their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from dparray._compiler import abi
from dparray._compiler.abi import mangled
from dparray.kernel_api import MemoryOrder, MemoryScope

INT32 = ir.IntType(32)
INT64 = ir.IntType(64)


def scope(memory_scope: int) -> Any:
    """Return the constant of a ``MemoryScope``."""
    return INT32(abi.scope(MemoryScope(memory_scope)))


def semantics(memory_order: int) -> Any:
    """Return the constant of a ``MemoryOrder``; as in SYCL, it applies to all memory."""
    return INT32(abi.semantics(MemoryOrder(memory_order)))


def code_of(number: Any) -> str:
    """Return the code of a Numba type in function names."""
    if isinstance(number, types.Float):
        return {16: "Dh", 32: "f", 64: "d"}[number.bitwidth]
    return {8: "ah", 16: "st", 32: "ij", 64: "lm"}[number.bitwidth][not number.signed]


def call(
    builder: Any,
    name: str,
    result: Any,
    arguments: Sequence[Any] = (),
    *,
    convergent: bool = False,
    pure: bool = False,
) -> Any:
    """Call a device function.

    Args:
        name: the mangled name.
        result: its LLVM type.
        convergent: whether work-items call it together, so LLVM must not make it conditional.
        pure: whether it accesses no memory, so LLVM may remove it.
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


def whole(builder: Any, value: Any, target: Any, signed: bool) -> Any:
    """Convert a float, or a vector of floats, to integers of the LLVM type ``target``.

    LLVM leaves the result undefined for values that do not fit, including negative numbers in
    unsigned types; here they wrap, as on the host.
    """
    is_vector = isinstance(target, ir.VectorType)
    bits = (target.element if is_vector else target).width
    if signed and bits >= 32:
        return builder.fptosi(value, target)
    through: Any = INT64 if bits >= 32 else INT32
    if is_vector:
        through = ir.VectorType(through, target.count)
    wrapped = builder.fptosi(value, through)
    if bits < 64:
        return builder.trunc(wrapped, target)
    is_negative = builder.fcmp_ordered("<", value, ir.Constant(value.type, None))
    return builder.select(is_negative, wrapped, builder.fptoui(value, target))


# --- numbers of work-items ------------------------------------------------------------------------


def index(builder: Any, name: str, dimension: Any) -> Any:
    """Return one of the numbers above in a dimension, in the kernel's order of dimensions."""
    if isinstance(dimension, int):
        dimension = INT32(dimension)
    number = call(builder, mangled(name, "j"), INT64, [dimension], pure=True)
    # Numba's index code checks whether they are negative.
    builder.assume(builder.icmp_signed(">=", number, INT64(0)))
    return number


def sub_group_number(builder: Any, name: str) -> Any:
    """Return one of the numbers of sub-groups above."""
    number = call(builder, mangled(name, "v"), INT32, pure=True)
    return builder.zext(number, INT64)


def linear_index(builder: Any, ids: str, sizes: str, dimensions: Sequence[int]) -> Any:
    """Return the linear id of a work-item or a group, the last dimension fastest."""
    linear: Any = None
    for dimension in dimensions:
        number = index(builder, ids, dimension)
        if linear is None:
            linear = number
        else:
            before = builder.mul(linear, index(builder, sizes, dimension), flags=["nsw"])
            linear = builder.add(before, number, flags=["nsw"])
    return linear
