"""The types of results: the one file that answers which type ``a + b`` has.

Kernels, ``prange`` bodies, elementwise functions and the simulator ask here. There are two sets of
rules. :data:`NUMPY` has those of NumPy 2, for what users write: a Python number takes the type of
what it meets, and integers keep their width. :data:`WIDE` has those of Numba, for programs written
for numba-dpex and for the package's own device code: literals are int64 and float64, and integers
are computed in 64 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dparray._ir.types import BOOL, F16, F32, F64, I8, I64, U64, Type, of_dtype
from dparray.kernel_api import vectors as rules

#: Which of two operands are Python's numbers; in the rules of Numba, literals that are integers
#: and not negative.
Weak = tuple[bool, bool]
_STRONG: Weak = (False, False)


class Rules:
    """A set of rules; this class has those that all sets have.

    Attributes:
        is_numpy: whether they are those of NumPy.
        has_arrays: whether work-items have array statements.
    """

    is_numpy = False
    has_arrays = False

    def joined(self, a: Type, b: Type, weak: Weak = _STRONG) -> Type:
        """Return the type of a value that is one or the other: a variable, a choice, a minimum.

        Args:
            a: one type.
            b: the other type.
            weak: which of them are Python's numbers.
        """
        return _joined(a, b, any(weak))

    def maximum(self, a: Type, b: Type, weak: Weak = _STRONG) -> Type:
        """Return the type of the larger of two values, which is not below a uint64 of them."""
        kind = self.joined(a, b, weak)
        return U64 if kind == I64 and U64 in (a, b) else kind

    def arithmetic(self, a: Type, b: Type, weak: Weak = _STRONG) -> Type:
        """Return the type of a sum, a product or a remainder."""
        raise NotImplementedError

    def quotient(self, a: Type, b: Type, weak: Weak = _STRONG) -> Type:
        """Return the type of ``a / b``."""
        return self.arithmetic(a, b, weak) if "f" in (a.kind, b.kind) else F64

    def bitwise(self, a: Type, b: Type, weak: Weak = _STRONG) -> Type:
        """Return the type of ``a & b``, ``a | b`` and ``a ^ b`` of integers and Booleans."""
        return BOOL if a == b == BOOL else self.arithmetic(a, b, weak)

    def shifted(self, a: Type, b: Type, weak: Weak = _STRONG) -> Type:
        """Return the type of ``a << b`` and ``a >> b``."""
        raise NotImplementedError

    def widened(self, kind: Type, is_weak: bool = False) -> Type:
        """Return the type of ``+x``, ``-x`` and ``~x``."""
        raise NotImplementedError

    def magnitude(self, kind: Type) -> Type:
        """Return the type of ``abs(x)``."""
        return kind

    def rounded(self, kind: Type) -> Type:
        """Return the type of ``round(x, digits)`` of a float."""
        return _joined(kind, F32)

    def mathematics(self, a: Type, b: Type | None = None, weak: Weak = _STRONG) -> Type:
        """Return the type in which a function of ``math`` is computed."""
        if b is None:
            b, weak = a, (weak[0], weak[0])
        kind = self.joined(a, b, weak) if "f" in (a.kind, b.kind) else F64
        return _joined(kind, F32)

    def floated(self, kind: Type) -> Type:
        """Return the type of ``float(x)``."""
        raise NotImplementedError

    def power(self, base: Type, exponent: Type, weak: Weak = _STRONG) -> Type:
        """Return the type of ``a ** b``."""
        raise NotImplementedError


class _Wide(Rules):
    """The rules of Numba."""

    def arithmetic(self, a: Type, b: Type, weak: Weak = _STRONG) -> Type:
        """Return the type of a sum: integers are widened to 64 bits."""
        if "f" in (a.kind, b.kind):
            return _joined(_joined(a, b), F32)
        if a == b == BOOL:
            return I64
        if "i" not in (a.kind, b.kind):
            return U64
        return U64 if any(weak) and U64 in (a, b) else I64

    def shifted(self, a: Type, b: Type, weak: Weak = _STRONG) -> Type:
        return U64 if a.kind == "u" else I64

    def widened(self, kind: Type, is_weak: bool = False) -> Type:
        if kind.is_float:
            return max(kind, F32, key=_bits)
        return U64 if kind.kind == "u" else I64

    def floated(self, kind: Type) -> Type:
        return _joined(kind, F32) if kind.is_float else F64

    def magnitude(self, kind: Type) -> Type:
        return I8 if kind == BOOL else _joined(kind, F32) if kind == F16 else kind

    def power(self, base: Type, exponent: Type, weak: Weak = _STRONG) -> Type:
        """Return the type of a power: a float to an integer power keeps the type of the float."""
        if base.is_float and not exponent.is_float:
            return _joined(base, F32)
        return self.arithmetic(base, exponent, weak)


class _NumPy(Rules):
    """The rules of NumPy 2. A float16 is computed with as a float32."""

    is_numpy = True

    def joined(self, a: Type, b: Type, weak: Weak = _STRONG) -> Type:
        if weak[0] == weak[1]:
            return _joined(a, b, literal=weak[0])
        strong, python = (b, a) if weak[0] else (a, b)
        if python.is_float:
            return strong if strong.is_float else F64
        return I64 if strong == BOOL != python else strong

    def maximum(self, a: Type, b: Type, weak: Weak = _STRONG) -> Type:
        return self.joined(a, b, weak)

    def arithmetic(self, a: Type, b: Type, weak: Weak = _STRONG) -> Type:
        """Return the type of a sum: integers keep their width, and Booleans stay Booleans."""
        if all(weak) and a == b == BOOL:
            return I64
        if not any(weak) and {a.kind, b.kind} == {"i", "u"} and U64 in (a, b):
            return F64
        return self.joined(a, b, weak)

    def shifted(self, a: Type, b: Type, weak: Weak = _STRONG) -> Type:
        kind = self.arithmetic(a, b, weak)
        return I8 if kind == BOOL else kind

    def floated(self, kind: Type) -> Type:
        return F64

    def widened(self, kind: Type, is_weak: bool = False) -> Type:
        return I64 if is_weak and kind == BOOL else kind

    def power(self, base: Type, exponent: Type, weak: Weak = _STRONG) -> Type:
        return self.shifted(base, exponent, weak)


class _OfLoops(_NumPy):
    """The rules of NumPy for the bodies of loops in :func:`dparray.jit`."""

    has_arrays = True


NUMPY: Rules = _NumPy()
WIDE: Rules = _Wide()
_OF_LOOPS: Rules = _OfLoops()
#: Parts of the package with kernels like those of users.
_AS_USERS = ("dparray.examples.", "dparray.cli.")


def rules_of(options: Mapping[str, Any]) -> Rules:
    """Return the rules of types in a kernel with these options."""
    if options.get("arrays"):
        return _OF_LOOPS
    return WIDE if options.get("widens") else NUMPY


def is_own(function: Any) -> bool:
    """Return whether a function is the package's own device code, which has Numba's rules."""
    module = getattr(function, "__module__", None) or ""
    return module.startswith("dparray.") and not module.startswith(_AS_USERS)


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


def _joined(a: Type, b: Type, literal: bool = False) -> Type:
    """Return the type that holds the values of two types; ``literal``: one of them is a literal."""
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


def _bits(kind: Type) -> int:
    return kind.bits


def _float_for(kind: Type) -> Type:
    """Return the float type for the values of a type."""
    if kind.is_float:
        return kind
    return F16 if kind.bits <= 8 else F32 if kind.bits <= 16 else F64
