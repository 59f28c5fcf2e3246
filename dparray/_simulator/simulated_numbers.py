"""Numbers in kernels that run as Python functions.

They are Python's and NumPy's, whose rules kernels follow. Differences are closed here:

- a float16 is computed with as a float32;
- ``math`` functions of float32 return float32, and return inf or nan instead of raising;
  ``math.floor`` of a float is a float;
- ``min`` and ``max`` return the type that all operands have in common.

A variable that branches assign numbers of several types has one type in a kernel; here it has that
of its last value.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dparray._ir.arithmetic import NUMPY_NAMES


class _Half:
    """Rounds a number to float16, which a kernel computes with as a float32."""

    dtype = np.dtype(np.float16)  # the dtype by which NumPy identifies it

    def __new__(cls, value: Any = 0) -> Any:
        return np.float32(np.float16(value))


#: The types of numbers that are others in a kernel.
CONSTRUCTORS: dict[Any, Any] = {np.float16: _Half}


def loaded(value: Any) -> Any:
    """Return an element as a kernel computes with it."""
    return np.float32(value) if type(value) is np.float16 else value


def plain_dtype(dtype: Any) -> np.dtype[Any]:
    """Return NumPy's own ``dtype``, also for the class made here."""
    return np.dtype(np.float16 if dtype is _Half else dtype)


# math -------------------------------------------------------------------------------------


def _as_float(value: Any) -> Any:
    return value if isinstance(value, np.floating) else np.float64(value)


def _python(value: Any) -> Any:
    """Return a float64 as a Python float, which takes the type of what it meets."""
    return float(value) if type(value) is np.float64 else value


def _from_ufunc(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    def function(*values: Any) -> Any:
        # Integers take the type of a float that represents them; without one they are float64.
        common = np.result_type(*values)
        is_weak = all(type(value) in (bool, int, float) for value in values)
        kind = np.float64 if is_weak or common.kind != "f" else common.type
        with np.errstate(all="ignore"):
            return _python(ufunc(*map(kind, values)))

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
        return _python(type(number)(result))

    return function


def _rounding(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    def function(value: Any) -> Any:
        return int(value) if isinstance(value, int | np.integer) else _python(ufunc(value))

    return function


_AS_UFUNCS = """
    acos acosh asin asinh atan atan2 atanh copysign cos cosh degrees exp expm1 fabs fmod hypot
    isfinite isinf isnan log log10 log1p log2 nextafter pow radians sin sinh sqrt tan tanh
"""
MATH: dict[Any, Callable[..., Any]] = {
    getattr(math, name): _from_ufunc(getattr(np, NUMPY_NAMES.get(name, name)))
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
MATH[math.ldexp] = lambda value, exponent: _python(np.ldexp(_as_float(value), int(exponent)))
# For floats these return a float on the device, not Python's int.
MATH |= {getattr(math, name): _rounding(getattr(np, name)) for name in ("ceil", "floor", "trunc")}


# builtins ---------------------------------------------------------------------------------


_KINDS: dict[Any, Any] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, np.floating),
    complex: (complex, np.complexfloating),
}


def _isinstance(value: Any, kinds: Any) -> bool:
    """Return ``isinstance`` for kernels, where a NumPy number is one of Python's classes, too."""
    given: tuple[Any, ...] = kinds if isinstance(kinds, tuple) else (kinds,)
    return any(isinstance(value, _KINDS.get(kind, kind)) for kind in given)


def _complex(*parts: Any) -> Any:
    single = all(isinstance(each, np.float32) for each in parts)
    return (np.complex64 if single else complex)(complex(*parts))


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Return a ``min`` or ``max`` whose result has the type that all operands have in common."""

    def function(*values: Any) -> Any:
        chosen = choose(*values)
        if isinstance(chosen, int | float | np.generic) and len(values) > 1:
            strong = [value for value in values if isinstance(value, np.generic)]
            if strong:
                return np.result_type(*values).type(chosen)
        return chosen

    return function


def _round(value: Any, *digits: Any) -> Any:
    return builtins.round(int(value) if isinstance(value, np.bool_) else value, *digits)


BUILTINS: dict[str, Any] = {
    "complex": _complex,
    "isinstance": _isinstance,
    "max": _extreme(builtins.max),
    "min": _extreme(builtins.min),
    "round": _round,
}
