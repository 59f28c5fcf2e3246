"""Numbers as a compiled kernel computes them, for the simulator.

Plain NumPy scalars differ from compiled kernels in four ways that change results, and this
module closes them:

- a literal has a type of its own in a kernel (``2.0`` is float64, ``2`` is int64), so
  ``x[i] * 2.0`` is computed in float64 even for float32 ``x``;
- integers narrower than 64 bits are widened before ``+ - * // % ** << >> & | ^``; the result
  is int64 when one operand is signed and uint64 when none is, and wraps around; beside a
  uint64, a literal that is not negative is a uint64, too; integers have negative powers, and
  those of a float32 are float32;
- ``math`` functions of float32 return float32, and return inf or nan instead of raising;
- ``int``, ``round`` and ``len`` return int64; ``float``, ``range``, ``min``, ``max`` and ``abs``
  return typed values.

A variable that branches assign numbers of several types has one type in a kernel; here it has that
of its last value.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

_BITS = 64
_MASK = (1 << _BITS) - 1
_SIGN = 1 << 63


def _wrapped(value: int, signed: bool) -> int:
    """Return the low 64 bits of ``value``, as a signed or an unsigned number."""
    value &= _MASK
    return value - (_MASK + 1) if signed and value & _SIGN else value


def _wrap(value: int, signed: bool) -> Any:
    return NUMPY_TYPES[np.int64 if signed else np.uint64](_wrapped(value, signed))


def _is_signed(value: Any, beside: Any = None) -> bool:
    """Return whether an integer is treated as signed, alone or in an operation with another one."""
    if isinstance(beside, np.uint64) and isinstance(value, _Literal):
        return int(value) < 0
    if isinstance(value, bool | np.bool_):  # A literal takes the type of the other integer.
        return beside is None or isinstance(beside, bool | np.bool_)
    return not isinstance(value, np.unsignedinteger)


def _floordiv(a: int, b: int) -> int:
    return a // b if b else 0


def _mod(a: int, b: int) -> int:
    return a % b if b else 0


def _pow(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, _MASK + 1)
    return a ** (b & 1) if a in (1, -1) else 0


def _lshift(a: int, b: int) -> int:
    return a << b if 0 <= b < _BITS else 0


def _rshift(a: int, b: int) -> int:
    return a >> (b if 0 <= b < _BITS else _BITS)


#: Operations on integers in full precision; the caller keeps the bits of the result's type.
INTEGER_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": _floordiv,
    "mod": _mod,
    "pow": _pow,
    "lshift": _lshift,
    "rshift": _rshift,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
_NUMPY_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name + "_" if name in ("and", "or") else name)
    for name in (*INTEGER_OPERATIONS, "truediv")
}
_INTEGERS = (np.integer, int, np.bool_)


def _plain(value: Any) -> Any:
    """Return an integer of a class made here as NumPy's own scalar, other values unchanged."""
    base = _BASES.get(type(value))
    return value if base is None else base(value)


def _binary_methods(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    integers = INTEGER_OPERATIONS.get(name)
    general = _NUMPY_OPERATIONS[name]
    is_shift = name in ("lshift", "rshift")
    is_exact = is_shift or name in ("floordiv", "mod")

    def compute(a: Any, b: Any) -> Any:
        assert integers is not None
        if is_shift:
            signed = _is_signed(a)
        else:
            signed = _is_signed(a, b) or _is_signed(b, a)
        if is_exact:
            return _wrap(integers(int(a), int(b)), signed)
        # Operands are converted to the result's type first, except exponents.
        second = int(b) if name == "pow" else _wrapped(int(b), signed)
        return _wrap(integers(_wrapped(int(a), signed), second), signed)

    def forward(self: Any, other: Any) -> Any:
        if name == "pow" and isinstance(other, _Literal) and int(other) < 0:
            return np.float64(self) ** np.float64(other)
        if integers is not None and isinstance(other, _INTEGERS):
            return compute(self, other)
        return general(_plain(self), _plain(other))

    def reflected(self: Any, other: Any) -> Any:
        # A Boolean is NumPy's own class, so its powers by a literal arrive here, not in `forward`.
        if name == "pow" and isinstance(self, _Literal) and isinstance(other, np.bool_):
            return forward(np.int64(other), self)
        if integers is not None and isinstance(other, _INTEGERS):
            return compute(other, self)
        if name == "pow" and isinstance(other, np.float32):
            return np.power(other, np.float32(self))
        return general(_plain(other), _plain(self))

    return forward, reflected


def _comparison(name: str) -> Callable[..., Any]:
    compare = getattr(operator, name)

    def method(self: Any, other: Any) -> Any:
        if isinstance(other, _INTEGERS):
            return np.bool_(compare(int(self), int(other)))
        return compare(_plain(self), _plain(other))

    return method


_COMPARISONS = {f"__{name}__": _comparison(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def _integer_type(base: type) -> type:
    """Return a subclass of the NumPy scalar ``base`` with the arithmetic of compiled kernels."""
    signed = issubclass(base, np.signedinteger)
    # The priority makes NumPy's own scalars leave mixed operations to the methods made here.
    members: dict[str, Any] = {"__slots__": (), "__array_priority__": 100.0}
    for name in _NUMPY_OPERATIONS:
        members[f"__{name}__"], members[f"__r{name}__"] = _binary_methods(name)
    members |= _COMPARISONS
    members["__divmod__"] = lambda self, other: (self // other, self % other)
    members["__rdivmod__"] = lambda self, other: (other // self, other % self)
    members["__hash__"] = lambda self: hash(int(self))
    # Computed in their own width and then widened, so the smallest integer stays unchanged.
    members["__neg__"] = lambda self: _wrap(int(_low_bits(-int(self), base)), signed)
    members["__invert__"] = lambda self: _wrap(int(_low_bits(~int(self), base)), signed)
    members["__pos__"] = lambda self: _wrap(int(self), signed)
    members["__abs__"] = lambda self: NUMPY_TYPES[base](builtins.abs(int(self)))
    # NumPy refuses to construct from values out of range; the device takes the low bits.
    members["__new__"] = lambda cls, value=0: base.__new__(cls, _low_bits(value, base))
    return type(base.__name__, (base,), members)


def _low_bits(value: Any, base: type) -> Any:
    if type(value) is base:
        return value
    if type(value) is int:
        value &= (1 << 64) - 1  # NumPy creates no array from integers that fit no dtype.
    return np.asarray(value).astype(base)[()]


NUMPY_TYPES: dict[type, type] = {
    base: _integer_type(base)
    for base in (np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32, np.uint64)
}


def _int64_type() -> Any:
    """Return the ``np.int64`` of a kernel.

    It takes the low bits of what does not fit. Of its arithmetic, NumPy's differs from a kernel's
    in powers only: NumPy refuses negative exponents, and makes a float64 of a float32.
    """
    base: Any = np.int64
    # A lower priority than that of the types above, whose methods compute mixed operations.
    members: dict[str, Any] = {"__slots__": (), "__array_priority__": 50.0}
    members["__hash__"] = base.__hash__
    members["__new__"] = lambda cls, value=0: base.__new__(cls, _low_bits(value, base))
    made: Any = type(base.__name__, (base,), members)

    def kept(operation: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, *others: Any) -> Any:
            result = operation(self, *others)
            return base.__new__(made, result) if type(result) is base else result

        return method

    for name, operation in _NUMPY_OPERATIONS.items():
        setattr(made, f"__{name}__", kept(getattr(base, f"__{name}__")))
        setattr(made, f"__r{name}__", kept(_reflected(operation)))
    for name in ("neg", "pos", "abs", "invert"):
        setattr(made, f"__{name}__", kept(getattr(base, f"__{name}__")))
    made.__repr__ = lambda self: repr(base(self))
    for name, method in _COMPARISONS.items():
        setattr(made, name, method)
    made.__pow__, made.__rpow__ = _binary_methods("pow")
    return made


def _reflected(operation: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: operation(other, np.int64(self))


_Int64 = _int64_type()
NUMPY_TYPES[np.int64] = _Int64


class _Literal(_Int64):  # type: ignore[misc,valid-type]
    """An integer literal in a kernel: it becomes uint64 next to a uint64, unless it is negative.

    A member of an ``IntEnum`` is one, too, and has its value.
    """

    __slots__ = ()
    __hash__ = np.int64.__hash__

    @property
    def value(self) -> Any:
        return self


# The integer types of NumPy in a kernel.
CONSTRUCTORS: dict[Any, Any] = dict(NUMPY_TYPES)


class _Half:
    """Rounds a number to float16, which a kernel computes with as a float32."""

    dtype = np.dtype(np.float16)  # the dtype by which NumPy identifies it

    def __new__(cls, value: Any = 0) -> Any:
        return np.float32(np.float16(value))


CONSTRUCTORS[np.float16] = _Half
_BASES = {made: base for base, made in CONSTRUCTORS.items()} | {_Literal: np.int64}


def literal(value: Any) -> Any:
    """Return a literal, or a number in a global or captured name, with its type in a kernel."""
    return _Literal(value) if type(value) is int and -_SIGN <= value < _SIGN else typed(value)


def typed(value: Any) -> Any:
    """Return a scalar argument, an array element or a tuple with its type in a kernel."""
    kind = type(value)
    if isinstance(value, tuple):
        items = map(typed, value)
        return kind(*items) if hasattr(kind, "_fields") else tuple(items)
    if kind is int:
        return _Int64(value) if -_SIGN <= value < _SIGN else _wrap(value, signed=False)
    if kind is float:
        return np.float64(value)
    if kind is complex:
        return np.complex128(value)
    made = CONSTRUCTORS.get(kind)
    return value if made is None else made(value)


def plain_dtype(dtype: Any) -> np.dtype[Any]:
    """Return NumPy's own ``dtype``, also for the classes made here."""
    return np.dtype(_BASES.get(dtype, dtype) if isinstance(dtype, type) else dtype)


# math -------------------------------------------------------------------------------------


def _as_float(value: Any) -> Any:
    return value if isinstance(value, np.floating) else np.float64(value)


def _from_ufunc(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    def function(*values: Any) -> Any:
        # Integers take the type of a float that represents them; without one they are float64.
        types = [plain_dtype(np.asarray(value).dtype) for value in values]
        common = np.result_type(*types)
        return ufunc(*map(common.type if common.kind == "f" else np.float64, values))

    return function


def _from_python(name: str) -> Callable[..., Any]:
    def function(value: Any) -> Any:
        number = _as_float(value)
        try:
            result = getattr(math, name)(float(number))
        except OverflowError:
            result = math.inf
        except ValueError:  # at a pole of the function
            result = math.inf
            if name == "gamma":
                result = math.copysign(math.inf, number) if number == 0 else math.nan
        return type(number)(result)

    return function


def _rounding(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    def function(value: Any) -> Any:
        return _int(value) if isinstance(value, np.integer) else ufunc(_as_float(value))

    return function


_UFUNC_NAMES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "pow": "power",
}
_AS_UFUNCS = """
    acos acosh asin asinh atan atan2 atanh copysign cos cosh degrees exp expm1 fabs fmod hypot
    isfinite isinf isnan log log10 log1p log2 nextafter pow radians sin sinh sqrt tan tanh
"""
MATH: dict[Any, Callable[..., Any]] = {
    getattr(math, name): _from_ufunc(getattr(np, _UFUNC_NAMES.get(name, name)))
    for name in _AS_UFUNCS.split()
}
MATH |= {  # only in Python 3.11 and later
    getattr(math, name): _from_ufunc(getattr(np, name))
    for name in ("cbrt", "exp2")
    if hasattr(math, name)
}
MATH |= {getattr(math, name): _from_python(name) for name in ("erf", "erfc", "gamma", "lgamma")}
_LOG = MATH[math.log]
MATH[math.log] = lambda value, *base: _LOG(value) / _LOG(*base) if base else _LOG(value)
MATH[math.ldexp] = lambda value, exponent: np.ldexp(_as_float(value), int(exponent))
# For floats these return a float on the device, not Python's int.
MATH |= {getattr(math, name): _rounding(getattr(np, name)) for name in ("ceil", "floor", "trunc")}


# builtins ---------------------------------------------------------------------------------


def _range(*bounds: Any) -> Iterator[Any]:
    return builtins.map(_Int64, builtins.range(*builtins.map(operator.index, bounds)))


def _int(value: Any = 0) -> Any:
    return _Int64(_low_bits(value, np.int64))


_KINDS: dict[Any, type | tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, np.floating),
    complex: (complex, np.complexfloating),
}


def _isinstance(value: Any, kinds: Any) -> bool:
    """Return ``isinstance`` for kernels, where type names refer to other types."""
    named = {id(BUILTINS.get(kind.__name__)): known for kind, known in _KINDS.items()}
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        known: Any = named.get(id(kind), _KINDS.get(kind, _BASES.get(kind, kind)))
        if isinstance(value, known):
            return True
    return False


def _are_mixed(a: Any, b: Any) -> bool:
    """Return whether one operand is uint64 and the other is treated as signed."""
    return (isinstance(a, np.uint64) and isinstance(b, _INTEGERS) and _is_signed(b, a)) or (
        isinstance(b, np.uint64) and isinstance(a, _INTEGERS) and _is_signed(a, b)
    )


def _selecting(choose: Callable[[Any, Any], Any], of_mixed: type) -> Callable[..., Any]:
    def function(*values: Any) -> Any:
        result = values[0]
        for value in values[1:]:
            if _are_mixed(result, value):
                result = NUMPY_TYPES[of_mixed](choose(result, value))
                continue
            promoted = _promoted(result, value)
            result = promoted(choose(promoted(result), promoted(value)))
        return result

    return function


def _promoted(a: Any, b: Any) -> Any:
    """Return the type that both operands of a choice are promoted to, as in compiled code.

    Integers are not widened first, as arithmetic does; so a ``max`` of uint32 is uint32.
    """
    integers = (np.integer, bool, np.bool_)
    if all(isinstance(each, integers) and not isinstance(each, np.uint64) for each in (a, b)):
        return NUMPY_TYPES.get(np.result_type(a, b).type, np.bool_)
    return type(a + b)


def _pair(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a function of two numbers, which counts two Booleans as integers."""

    def function(a: Any, b: Any) -> Any:
        if all(isinstance(each, bool | np.bool_) for each in (a, b)):
            a, b = _Int64(a), _Int64(b)
        return operation(typed(a), typed(b))

    return function


def _complex(*parts: Any) -> Any:
    single = all(isinstance(each, np.float32) for each in parts)
    return (np.complex64 if single else np.complex128)(complex(*parts))


def _abs(value: Any) -> Any:
    return builtins.abs(
        NUMPY_TYPES[np.int8](value) if isinstance(value, np.bool_) else typed(value)
    )


def _round(value: Any, *digits: Any) -> Any:
    if isinstance(value, bool | np.bool_ | np.integer):
        if not digits:
            return _int(value)
        return _wrap(builtins.round(int(value), *map(int, digits)), _is_signed(value))
    return typed(builtins.round(value, *digits))


BUILTINS: dict[str, Any] = {
    "abs": _abs,
    "complex": _complex,
    "divmod": _pair(lambda a, b: (a // b, a % b)),
    "float": lambda value=0.0: value if isinstance(value, np.float32) else np.float64(value),
    "int": _int,
    "isinstance": _isinstance,
    "len": lambda value: _Int64(builtins.len(value)),
    "max": _selecting(lambda a, b: b if b > a else a, np.uint64),
    "min": _selecting(lambda a, b: b if b < a else a, np.int64),
    "pow": _pair(operator.pow),
    "range": _range,
    "round": _round,
    "sum": lambda values, start=0: functools.reduce(operator.add, values, literal(start)),
}
