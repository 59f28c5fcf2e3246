"""The meaning of ops on values, in Python.

Integers and Booleans are Python's, float64 is Python's float, float32 and float16 are NumPy's
scalars, vectors are tuples.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dparray._ir.instructions import Op
from dparray._ir.types import F16, F32, F64, I32, Type

Function = Callable[..., Any]


def of_op(op: Op) -> Function:
    """Return the function of values that an op computes."""
    kind = op.type
    assert isinstance(kind, Type)
    own = op.operands[0].type if op.operands else kind
    assert isinstance(own, Type)
    return _of(op.name, op.attribute, own, kind)


def operation(name: str, kind: Type) -> Function:
    """Return an op of two numbers of one type."""
    return _of(name, None, kind, kind)


@functools.lru_cache(maxsize=1024)
def _of(name: str, attribute: Any, own: Type, kind: Type) -> Function:
    if own.lanes > 1:
        single = _of(name, attribute, own.scalar, kind.scalar)
        return lambda *vectors: tuple(map(single, *vectors))
    if name == "convert":
        return conversion(own, kind)
    if name == "bitcast":
        return lambda a: _number(np.array(a, own.dtype).view(kind.dtype)[()], kind)
    if name == "low_bits":
        return wrapping(I32)
    if name == "math":
        return _mathematics(attribute, kind)
    if name in _COMPARISONS:
        return _COMPARISONS[name]
    if name in ("min", "max"):
        return _least if name == "min" else _greatest
    if kind.kind == "b":
        return _OF_BOOLEANS[name]
    if kind.is_float:
        return _OF_FLOATS[name] if name != "div" or kind != F64 else _quotient
    if name in ("shl", "shr"):
        return _shift(name, kind)
    if name == "pow":
        return lambda a, b: wrapping(kind)(_integer_power(a, b))
    compute, wrap = _OF_INTEGERS[name], wrapping(kind)
    if name in ("and", "or", "xor"):
        return compute
    if name in ("neg", "invert"):
        return lambda a: wrap(compute(a))
    return lambda a, b: wrap(compute(a, b))


def selected(flags: Any, first: Any, second: Any) -> Any:
    """Return the lanes of two vectors that a vector of Booleans selects."""
    return tuple(a if flag else b for flag, a, b in zip(flags, first, second, strict=True))


def same_bits(a: Any, b: Any, dtype: Any) -> bool:
    """Return whether two elements have the same bits."""
    return np.array(a, dtype).tobytes() == np.array(b, dtype).tobytes()


_COMPARISONS: dict[str, Function] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}
_OF_BOOLEANS: dict[str, Function] = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": operator.ne,
    "not": operator.not_,
}
_OF_FLOATS: dict[str, Function] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
}
_OF_INTEGERS: dict[str, Function] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "invert": operator.invert,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
}


def _least(a: Any, b: Any) -> Any:
    return a if a < b else b


def _greatest(a: Any, b: Any) -> Any:
    return a if a > b else b


def _quotient(a: float, b: float) -> float:
    return a / b if b else float(np.float64(a) / np.float64(b))


@functools.lru_cache(maxsize=16)
def wrapping(kind: Type) -> Function:
    """Return the function that wraps an integer to a type."""
    mask = (1 << kind.bits) - 1
    if kind.kind == "u":
        return lambda a: a & mask
    largest, smallest, size = mask >> 1, -(mask >> 1) - 1, mask + 1

    def wrapped(a: int) -> int:
        if smallest <= a <= largest:
            return a
        a &= mask
        return a - size if a > largest else a

    return wrapped


def _shift(name: str, kind: Type) -> Function:
    bits, wrap, is_signed = kind.bits, wrapping(kind), kind.kind == "i"
    if name == "shl":
        return lambda a, b: wrap(a << b) if 0 <= b < bits else 0
    return lambda a, b: a >> (b if 0 <= b < bits else bits) if is_signed or 0 <= b < bits else 0


def _integer_power(base: int, exponent: int) -> int:
    """Return a power modulo 2**64; 1 and -1 have inverses, others give 0."""
    if exponent < 0:
        return base**-exponent if base in (1, -1) else 0
    return pow(base, exponent, 1 << 64)


# --- conversions ----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def conversion(own: Type, kind: Type) -> Function:
    """Return the conversion of a number to another type."""
    if own == kind:
        return lambda a: a
    if kind.kind == "b":
        return lambda a: bool(a != 0)
    if not own.is_float:
        return _from_integer(kind)
    if kind.is_float:
        return float if kind == F64 else kind.dtype.type
    wrap = wrapping(kind)
    # Devices convert to 32 or to 64 bits with a sign, and cut the result.
    limit = 1 << (31 if kind.bits < 32 or kind == I32 else 63)
    if kind.kind == "u" and kind.bits == 64:
        return lambda a: wrap(_whole(float(a), limit if a < limit else 2 * limit))
    return lambda a: wrap(_whole(float(a), limit))


def _whole(a: float, limit: int) -> int:
    """Return the integer part of a float; of those that do not fit, what x86 returns."""
    return int(a) if -limit <= a < limit else -limit


def _from_integer(kind: Type) -> Function:
    if not kind.is_float:
        wrap = wrapping(kind)
        return lambda a: wrap(int(a))
    if kind == F64:
        return float
    if kind == F16:
        return lambda a: np.float16(float(a))
    # By one rounding: through a float64 there would be two.
    return lambda a: (np.uint64(a) if a >= 0 else np.int64(a)).astype(np.float32)


def _number(value: Any, kind: Type) -> Any:
    """Return a NumPy scalar as the values of a type are kept."""
    return value if kind in (F32, F16) else value.item()


# --- mathematics ----------------------------------------------------------------------------------

#: The names in NumPy of functions of :mod:`math`, where they differ.
_INVERSES = ("cos", "cosh", "sin", "sinh", "tan", "tan2", "tanh")
NUMPY_NAMES = {f"a{name}": f"arc{name}" for name in _INVERSES} | {"pow": "power"}
#: Functions that NumPy does not have.
_IN_PYTHON = {"tgamma": math.gamma, "lgamma": math.lgamma, "erf": math.erf, "erfc": math.erfc}


def fused_multiply_add(first: Any, second: Any, added: Any) -> Any:
    """Return ``first * second + added`` of float32, rounded once.

    The product is exact in float64. The sum is rounded to odd there, so that the second rounding is
    the right one.
    """
    product, added = float(first) * float(second), float(added)
    total = product + added
    part = total - product
    error = (product - (total - part)) + (added - part)
    if math.isfinite(total) and error and not np.float64(total).view(np.uint64) & np.uint64(1):
        total = math.nextafter(total, math.copysign(math.inf, error))
    return np.float32(total)


def _mathematics(name: str, kind: Type) -> Function:
    if name == "fma":
        assert kind == F32
        return fused_multiply_add
    if name in _IN_PYTHON:
        function: Function = functools.partial(_guarded, _IN_PYTHON[name])
    else:
        function = getattr(np, NUMPY_NAMES.get(name, name))
    number = kind.dtype.type
    if kind != F64:
        return lambda *values: number(function(*values))
    return lambda *values: float(function(*map(number, values[:1]), *values[1:]))


def _guarded(function: Function, value: Any) -> float:
    try:
        return float(function(float(value)))
    except OverflowError:
        return math.inf
    except ValueError:  # a pole
        if function is math.gamma:
            return math.nan if value else math.copysign(math.inf, value)
        return math.inf
