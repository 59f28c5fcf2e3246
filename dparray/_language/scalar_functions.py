"""The functions of NumPy, dpnp and dparray that kernels may call with numbers, small vectors and
matrices.

Each stands for a function of the kernel language, and follows its rules of types: ``np.sqrt`` of an
integer is float64, of a float32 it is float32.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dparray._language import small_matrices
from dparray._language.device_function import DeviceFunction
from dparray.kernel_api import vec


def cross(a: Any, b: Any) -> Any:
    return vec(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


def dot(a: Any, b: Any) -> Any:
    return (a * b).sum()


def norm(a: Any) -> Any:
    return math.sqrt((a * a).sum())


def clip(x: Any, low: Any, high: Any) -> Any:
    return min(max(x, low), high)


def maximum(a: Any, b: Any) -> Any:
    return max(a, b) if a == a and b == b else a + b  # NaN if either is


def minimum(a: Any, b: Any) -> Any:
    return min(a, b) if a == a and b == b else a + b


def fmax(a: Any, b: Any) -> Any:
    return b if a != a else (a if b != b else max(a, b))


def fmin(a: Any, b: Any) -> Any:
    return b if a != a else (a if b != b else min(a, b))


def logical_and(a: Any, b: Any) -> Any:
    return bool(a) and bool(b)


def logical_or(a: Any, b: Any) -> Any:
    return bool(a) or bool(b)


def reciprocal(x: Any) -> Any:
    return x**0 / x


def rint(x: Any) -> Any:
    return round(x, 0)


def rounded(x: Any, decimals: Any = 0) -> Any:
    return round(x, decimals)


def sign(x: Any) -> Any:
    one = x**0  # of the type of x, also for NaN
    return one if x > 0 else (-one if x < 0 else (one - one if x == 0 else x))


def signbit(x: Any) -> Any:
    return math.copysign(1.0, x) < 0


def square(x: Any) -> Any:
    return x * x


def where(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


def _functions() -> dict[str, Any]:
    written = (
        *(clip, cross, dot, fmax, fmin, logical_and, logical_or, maximum, minimum, norm),
        *(reciprocal, rint, sign, signbit, square, where),
    )
    found: dict[str, Any] = {each.__name__: DeviceFunction(each, {}) for each in written}
    found |= dict.fromkeys(("round", "around"), DeviceFunction(rounded, {}))
    matrices = ("inv", "det", "matmul", "svd", "transpose")
    found |= {name: getattr(small_matrices, name) for name in matrices}
    found |= dict.fromkeys(("permute_dims", "matrix_transpose"), small_matrices.transpose)
    same = (
        "cbrt ceil copysign cos cosh degrees exp exp2 expm1 fabs floor fmod hypot isfinite isinf "
        "isnan ldexp log log10 log1p log2 nextafter radians sin sinh sqrt tan tanh trunc acos "
        "acosh asin asinh atan atan2 atanh"
    )
    found |= {name: getattr(math, name) for name in same.split() if hasattr(math, name)}
    for name in ("cos", "cosh", "sin", "sinh", "tan", "tan2", "tanh"):
        found[f"arc{name}"] = found[f"a{name}"]
    found |= {"deg2rad": math.radians, "rad2deg": math.degrees, "absolute": abs, "abs": abs}
    pairs = (
        "add:add subtract:sub multiply:mul divide:truediv true_divide:truediv "
        "floor_divide:floordiv remainder:mod mod:mod power:pow pow:pow negative:neg positive:pos "
        "equal:eq not_equal:ne less:lt less_equal:le greater:gt greater_equal:ge "
        "bitwise_and:and_ bitwise_or:or_ bitwise_xor:xor invert:invert bitwise_invert:invert "
        "left_shift:lshift right_shift:rshift bitwise_left_shift:lshift "
        "bitwise_right_shift:rshift logical_not:not_"
    )
    for name, _, symbol in (pair.partition(":") for pair in pairs.split()):
        found[name] = getattr(operator, symbol)
    return found


_FUNCTIONS = _functions()


def names() -> list[str]:
    """Return the names of NumPy's functions that kernels may call with numbers."""
    return sorted(
        f"np.{name}" if hasattr(np, name) else f"np.linalg.{name}"
        for name in _FUNCTIONS
        if hasattr(np, name) or hasattr(np.linalg, name)
    )


def scalar_function(value: Any) -> Callable[..., Any] | None:
    """Return the kernel-language function that replaces a function of arrays, or ``None``."""
    module = str(getattr(value, "__module__", ""))
    if isinstance(value, np.ufunc):
        return _FUNCTIONS.get(value.__name__)
    if module.partition(".linalg")[0] in ("numpy", "dparray") and hasattr(value, "__name__"):
        return _FUNCTIONS.get(value.__name__)
    if module.startswith("dpnp."):
        return _FUNCTIONS.get(getattr(value, "name_", getattr(value, "__name__", "")))
    return None
