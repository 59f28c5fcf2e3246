"""The functions of ``cmath``, written in the language; they are translated in place.

A function takes the parts of a complex number, and returns the parts of its result. The inverse
functions follow W. Kahan, "Branch cuts for complex elementary functions", 1987.
"""

from __future__ import annotations

import math
from typing import Any


def exp(a: Any, b: Any) -> Any:
    size = math.exp(a)
    return size * math.cos(b), size * math.sin(b)


def log(a: Any, b: Any) -> Any:
    return math.log(math.hypot(a, b)), math.atan2(b, a)


def log10(a: Any, b: Any) -> Any:
    one = a**0
    size, turn = log(a, b)
    return size / (one * math.log(10.0)), turn / (one * math.log(10.0))


def sqrt(a: Any, b: Any) -> Any:
    if a == 0 and b == 0:
        return a * 0, b
    two = a**0 + a**0
    size = math.sqrt((math.fabs(a) + math.hypot(a, b)) / two)
    if a >= 0:
        return size, b / (two * size)
    return math.fabs(b) / (two * size), math.copysign(size, b)


def sin(a: Any, b: Any) -> Any:
    return math.sin(a) * math.cosh(b), math.cos(a) * math.sinh(b)


def cos(a: Any, b: Any) -> Any:
    return math.cos(a) * math.cosh(b), -math.sin(a) * math.sinh(b)


def tan(a: Any, b: Any) -> Any:
    x, y = tanh(-b, a)
    return y, -x


def sinh(a: Any, b: Any) -> Any:
    return math.sinh(a) * math.cos(b), math.cosh(a) * math.sin(b)


def cosh(a: Any, b: Any) -> Any:
    return math.cosh(a) * math.cos(b), math.sinh(a) * math.sin(b)


def tanh(a: Any, b: Any) -> Any:
    one = a**0
    t, u = math.tanh(a), math.tan(b)
    size = one + t * t * u * u
    return t * (one + u * u) / size, u * (one - t * t) / size


def asin(a: Any, b: Any) -> Any:
    x, y = asinh(-b, a)
    return y, -x


def acos(a: Any, b: Any) -> Any:
    one = a**0
    p, q = sqrt(one - a, -b)
    r, s = sqrt(one + a, b)
    return (one + one) * math.atan2(p, r), math.asinh(r * q - s * p)


def atan(a: Any, b: Any) -> Any:
    x, y = atanh(-b, a)
    return y, -x


def asinh(a: Any, b: Any) -> Any:
    one = a**0
    p, q = sqrt(one + b, -a)
    r, s = sqrt(one - b, a)
    return math.asinh(p * s - r * q), math.atan2(b, p * r - q * s)


def acosh(a: Any, b: Any) -> Any:
    one = a**0
    p, q = sqrt(a - one, b)
    r, s = sqrt(a + one, b)
    return math.asinh(p * r + q * s), (one + one) * math.atan2(q, r)


def atanh(a: Any, b: Any) -> Any:
    one = a**0
    two = one + one
    x, y = (-a, -b) if a < 0 else (a, b)
    rest = one - x
    size = math.log1p((two + two) * x / (rest * rest + y * y)) / (two + two)
    turn = -math.atan2(-two * y, rest * (one + x) - y * y) / two
    return (-size, -turn) if a < 0 else (size, turn)


def rect(size: Any, turn: Any) -> Any:
    return size * math.cos(turn), size * math.sin(turn)
