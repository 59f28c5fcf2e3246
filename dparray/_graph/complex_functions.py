"""Complex functions composed of real ones, for cases where dpnp.tensor's are inaccurate.

In single precision, dpnp 0.20's inverse functions lose all digits of large and small numbers
(`asin(32767j)` is infinite), and its hyperbolic functions return NaN for 0 times infinity.
Non-finite numbers are left to dpnp. The inverse functions follow W. Kahan, "Branch cuts for complex
elementary functions" (1987).

Each function is the ``library`` of a row (:class:`dparray._graph.ops.Op`): it takes the module to
compute with, its ``where``, the module's function, and the operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Parts = tuple[Any, Any]
Function = Callable[[Any, Any, Any, Any], Any]

#: From here on, `exp(-2 * x)` is negligible compared with 1.
_LARGE = {"F": 10.0, "D": 22.0}


def _joined(xp: Any, parts: Parts, like: Any) -> Any:
    result = xp.empty_like(like)
    result.real[...], result.imag[...] = parts
    return result


def _root(xp: Any, real: Any, imaginary: Any, like: Any) -> Parts:
    """Return the square root of a number given by its parts, whose zeros keep their signs."""
    root = xp.sqrt(_joined(xp, (real, imaginary), like))
    return xp.real(root), xp.imag(root)


def _asin(xp: Any, like: Any, x: Any, y: Any) -> Parts:
    (a, b), (c, d) = _root(xp, 1 - x, -y, like), _root(xp, 1 + x, y, like)
    return xp.atan2(x, a * c - b * d), xp.asinh(a * d - b * c)


def _asinh(xp: Any, like: Any, x: Any, y: Any) -> Parts:
    real, imaginary = _asin(xp, like, -y, x)
    return imaginary, -real


def _acos(xp: Any, like: Any, x: Any, y: Any) -> Parts:
    (a, b), (c, d) = _root(xp, 1 - x, -y, like), _root(xp, 1 + x, y, like)
    return 2 * xp.atan2(a, c), xp.asinh(c * b - d * a)


def _acosh(xp: Any, like: Any, x: Any, y: Any) -> Parts:
    (a, b), (c, d) = _root(xp, x - 1, y, like), _root(xp, x + 1, y, like)
    return xp.asinh(a * c + b * d), 2 * xp.atan2(b, c)


def _atanh(xp: Any, like: Any, x: Any, y: Any) -> Parts:
    size = xp.abs(x)
    quotient = 4 * size / ((1 - size) ** 2 + y * y)
    beside_pole = (xp.log(xp.hypot(1 + size, y)) - xp.log(xp.hypot(1 - size, y))) / 2
    real = xp.copysign(xp.where(quotient > 1e10, beside_pole, xp.log1p(quotient) / 4), x)
    return real, xp.atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2


def _atan(xp: Any, like: Any, x: Any, y: Any) -> Parts:
    real, imaginary = _atanh(xp, like, -y, x)
    return imaginary, -real


def _of_finite(parts: Callable[[Any, Any, Any, Any], Parts]) -> Function:
    """Combine parts that are correct for finite numbers with the module's result for others."""

    def function(xp: Any, where: Any, ready: Any, x: Any) -> Any:
        result = _joined(xp, parts(xp, x, xp.real(x), xp.imag(x)), x)
        return where(xp.isfinite(x), result, ready(x))

    return function


asin, acos, atan = map(_of_finite, (_asin, _acos, _atan))
asinh, acosh, atanh = map(_of_finite, (_asinh, _acosh, _atanh))


def _waves(xp: Any, size: Any, angle: Any) -> Parts:
    """Return `exp(size) / 2` times the cosine and sine of an angle, even if the first overflows."""
    half = xp.exp(xp.abs(size) / 2)
    sine = (half * xp.sin(angle)) * (half / 2)
    return (half * xp.cos(angle)) * (half / 2), xp.where(angle == 0, angle, sine)


def _growing(parts: Callable[[Any, Any, Any], Parts], by_imaginary: bool) -> Function:
    """Create a function that grows with one part, with a formula for large values of that part."""

    def function(xp: Any, where: Any, ready: Any, x: Any) -> Any:
        real, imaginary = xp.real(x), xp.imag(x)
        size = xp.abs(imaginary if by_imaginary else real)
        is_large = xp.logical_and(size > _LARGE[x.dtype.char], xp.isfinite(x))
        return where(is_large, _joined(xp, parts(xp, real, imaginary), x), ready(x))

    return function


def _sinh(xp: Any, x: Any, y: Any) -> Parts:
    cosine, sine = _waves(xp, x, y)
    return cosine * xp.sign(x), sine


def _cosh(xp: Any, x: Any, y: Any) -> Parts:
    cosine, sine = _waves(xp, x, y)
    return cosine, sine * xp.sign(x)


def _sin(xp: Any, x: Any, y: Any) -> Parts:
    cosine, sine = _waves(xp, y, x)
    return sine, cosine * xp.sign(y)


def _cos(xp: Any, x: Any, y: Any) -> Parts:
    cosine, sine = _waves(xp, y, x)
    return cosine, -sine * xp.sign(y)


sinh, cosh = _growing(_sinh, False), _growing(_cosh, False)
sin, cos = _growing(_sin, True), _growing(_cos, True)


def logarithm(base: float) -> Function:
    """Return the logarithm to a base, accurate if the absolute value is near 1."""

    def function(xp: Any, where: Any, ready: Any, x: Any) -> Any:
        first, second = xp.abs(xp.real(x)), xp.abs(xp.imag(x))
        large, small = xp.maximum(first, second), xp.minimum(first, second)
        is_near = xp.logical_and(large > 0.5, large < 2)
        near = xp.log1p((large - 1) * (large + 1) + small * small) / (2 * math.log(base))
        result = ready(x)
        result.real[...] = where(is_near, near, xp.real(result))
        return result

    return function


def reciprocal(xp: Any, where: Any, ready: Any, x: Any) -> Any:
    """Divide by R. Smith, "Algorithm 116: Complex division" (1962), as kernels and NumPy do."""
    real, imaginary = xp.real(x), xp.imag(x)
    is_wide = xp.abs(imaginary) <= xp.abs(real)
    large, small = where(is_wide, real, imaginary), where(is_wide, imaginary, real)
    ratio = small / large
    size = large + small * ratio
    one, other = 1 / size, ratio / size
    return _joined(xp, (where(is_wide, one, other), -where(is_wide, other, one)), x)


def quotient(xp: Any, where: Any, ready: Any, x1: Any, x2: Any) -> Any:
    """Return the reciprocal by Smith's algorithm; for zeros with positive zeros in each part.

    dpnp keeps the signs of zeros, which would become the signs of infinities.
    """
    result = ready(x1, x2)
    first, second, real, imaginary = xp.real(x1), xp.imag(x1), xp.real(x2), xp.imag(x2)
    is_zero, is_wide = xp.equal(x2, 0), xp.abs(imaginary) <= xp.abs(real)
    large, small = where(is_wide, real, imaginary), where(is_wide, imaginary, real)
    ratio, zero = small / large, xp.abs(large)
    scale = 1 / (large + small * ratio)
    along = where(is_wide, first + second * ratio, first * ratio + second)
    across = where(is_wide, second - first * ratio, second * ratio - first)
    result.real[...] = where(is_zero, first / zero, along * scale)
    result.imag[...] = where(is_zero, second / zero, across * scale)
    return result


def sign(xp: Any, where: Any, ready: Any, x: Any) -> Any:
    """Return the result along an axis of the plane if one part is infinite, NaN if both are."""
    result = ready(x)
    parts = xp.real(x), xp.imag(x)
    for part, other, into in ((*parts, result.real), (*parts[::-1], result.imag)):
        is_along = xp.logical_and(xp.isinf(part), xp.logical_not(xp.isinf(other)))
        is_across = xp.logical_and(xp.isinf(other), xp.logical_not(xp.isinf(part)))
        into[...] = where(is_along, xp.sign(part), where(is_across, xp.zeros_like(part), into))
    return result
