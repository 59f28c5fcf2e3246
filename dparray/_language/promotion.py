"""The types of results: the one file that answers which type ``a + b`` has.

Kernels, ``prange`` bodies, elementwise functions and the simulator ask here. A *literal* is a
Python integer of the source that is not negative: next to a uint64 it is a uint64, and an int64
otherwise.
"""

from __future__ import annotations

from dparray._ir.types import BOOL, F16, F32, F64, I64, U64, Type, of_dtype
from dparray.kernel_api import vectors as rules


def joined(a: Type, b: Type, literal: bool = False) -> Type:
    """Return the type of a value that is one or the other: a variable, a choice, a minimum.

    Args:
        a: one type.
        b: the other type.
        literal: whether one of the values is a literal.
    """
    if a == b or b.kind == "b":
        return a
    if a.kind == "b":
        return b
    if "f" in (a.kind, b.kind):
        return max(_float_for(a), _float_for(b), key=_bits)
    if a.kind == b.kind:
        return max(a, b, key=_bits)
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if unsigned == U64:
        return U64 if literal else I64
    return Type("i", max(signed.bits, 2 * unsigned.bits))


def maximum(a: Type, b: Type, literal: bool = False) -> Type:
    """Return the type of the larger of two values, which is not below a uint64 of them."""
    kind = joined(a, b, literal)
    return U64 if kind == I64 and U64 in (a, b) else kind


def arithmetic(a: Type, b: Type, literal: bool = False) -> Type:
    """Return the type of a sum, a product or a remainder: integers are widened to 64 bits."""
    if "f" in (a.kind, b.kind):
        return joined(joined(a, b), F32)
    if a == b == BOOL:
        return I64
    if "i" not in (a.kind, b.kind):
        return U64
    return U64 if literal and U64 in (a, b) else I64


def quotient(a: Type, b: Type) -> Type:
    """Return the type of ``a / b``."""
    return arithmetic(a, b) if "f" in (a.kind, b.kind) else F64


def bitwise(a: Type, b: Type, literal: bool = False) -> Type:
    """Return the type of ``a & b``, ``a | b`` and ``a ^ b`` of integers and Booleans."""
    return BOOL if a == b == BOOL else arithmetic(a, b, literal)


def shifted(a: Type) -> Type:
    """Return the type of ``a << b`` and ``a >> b``."""
    return U64 if a.kind == "u" else I64


def widened(kind: Type) -> Type:
    """Return the type of ``+x``, ``-x`` and ``~x``."""
    if kind.is_float:
        return max(kind, F32, key=_bits)
    return U64 if kind.kind == "u" else I64


def inverted(kind: Type) -> Type:
    """Return the type of ``~x``."""
    return BOOL if kind == BOOL else widened(kind)


def magnitude(kind: Type) -> Type:
    """Return the type of ``abs(x)``."""
    return Type("i", 8) if kind == BOOL else joined(kind, F32) if kind == F16 else kind


def mathematics(a: Type, b: Type | None = None) -> Type:
    """Return the type in which a function of ``math`` is computed."""
    other = a if b is None else b
    return joined(joined(a, other), F32) if "f" in (a.kind, other.kind) else F64


def floated(kind: Type) -> Type:
    """Return the type of ``float(x)``."""
    return joined(kind, F32) if kind.is_float else F64


def power(base: Type, exponent: Type, literal: bool = False) -> Type:
    """Return the type of ``a ** b``: a float to an integer power keeps the type of the float."""
    if base.is_float and not exponent.is_float:
        return joined(base, F32)
    return arithmetic(base, exponent, literal)


def vectors(operation: str, a: Type, b: Type) -> Type | None:
    """Return the type of an operation on two vectors, or a vector and a number.

    Args:
        operation: its name in :mod:`dparray.kernel_api.vectors`.
        a: one type.
        b: the other type.

    Returns:
        The type in which the elements are combined, or ``None`` for a comparison of integers that
        no integer type can hold.

    Raises:
        TypeError: the vectors have different lengths, or do not support the operation.
    """
    lanes = max(a.lanes, b.lanes)
    if min(a.lanes, b.lanes) > 1:
        rules.same_width(a.lanes, b.lanes)
    are_vectors = a.lanes > 1, b.lanes > 1
    dtype = rules.common_dtype(operation, a.dtype, b.dtype, vectors=are_vectors)
    return None if dtype is None else of_dtype(dtype)._replace(lanes=lanes)


def _bits(kind: Type) -> int:
    return kind.bits


def _float_for(kind: Type) -> Type:
    """Return the float type for the values of a type."""
    if kind.is_float:
        return kind
    return F16 if kind.bits <= 8 else F32 if kind.bits <= 16 else F64
