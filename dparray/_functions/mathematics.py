"""Element-wise functions composed of operations in the op table."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.apply import apply, as_operand, astype_array, choose_elements, copy_of, ops
from dparray._array.assignment import assign
from dparray._array.dispatch import by_name, compute
from dparray._array.ndarray import array_method, as_method, ndarray
from dparray._driver import traits_of
from dparray._functions.creation import full
from dparray._functions.elementwise import where
from dparray._functions.operands import arrays_of, as_float, in_loop, placement_keywords
from dparray._functions.public import public, with_options
from dparray._graph.ops import OPS
from dparray.exceptions import DTypeError, HostConversionError

__all__ = [
    "around",
    "deg2rad",
    "degrees",
    "divmod",
    "fabs",
    "fix",
    "float_power",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "gcd",
    "heaviside",
    "i0",
    "lcm",
    "ldexp",
    "logaddexp2",
    "modf",
    "nan_to_num",
    "rad2deg",
    "radians",
    "round",
    "sinc",
    "spacing",
]


@as_method
@public()
def round(x: Any, decimals: int = 0, out: ndarray | None = None) -> ndarray:
    """Round to a number of decimals, ties to even.

    Args:
        x: an array or a scalar.
        decimals: the number of decimals; negative numbers round digits before the decimal point.
        out: an array to write the result to.

    Raises:
        ExecutionPlacementError: ``out`` is on another queue.

    Example:
        >>> dp.round(dp.asarray([0.5, 1.25]), 1).asnumpy()
        array([0.5, 1.2])
    """
    decimals = operator.index(decimals)
    if x.dtype.kind == "b":
        if decimals:
            raise DTypeError(
                f"round: Booleans have no decimals, but decimals={decimals}; write x.astype(float)"
            )
        x = as_operand(x, np.dtype(np.float16))  # NumPy rounds them as float16
    is_whole = x.dtype.kind in "iu" and decimals >= 0
    if is_whole and out is None and _layout.shows_elements_twice(x.shape, x.strides):
        return copy_of(x, "K")  # NumPy copies, with another memory order than an operation
    if decimals == 0 or (x.dtype.kind in "biu" and decimals > 0):
        return apply(OPS["round"], x, out=out)
    scale = 10.0 ** abs(decimals)
    if x.dtype.kind in "fc":
        towards, back = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
        whole = ops.round(apply(OPS[towards], x, scale))
        return apply(OPS[back], whole, scale, out=out)
    # Computed in floats, as in NumPy; multiplying by 0.1 is not division by 10.
    tens = as_operand(x, _dtypes.default_float(traits_of(x.queue))) / scale
    rounded = ops.round(tens) * scale
    if out is None:
        return astype_array(rounded, x.dtype)
    # Floats may hold values beyond the range of the integers.
    assign(out, rounded if out.dtype.kind in "fc" else astype_array(rounded, x.dtype), "round")
    return out


around = round


@array_method("__round__")
def _round_element(self: ndarray, ndigits: int | None = None) -> Any:
    """Implement Python's ``round``: an integer, or with ``ndigits`` a 0-d array.

    Raises:
        HostConversionError: the array has at least one dimension.
    """
    if self.shape:
        raise HostConversionError(
            f"round(x): x has shape {self.shape}; write dp.round(x, decimals)"
        )
    return builtins.round(self.item()) if ndigits is None else round(self, ndigits)


@with_options()
def fix(x: Any, /) -> ndarray:
    """Round towards zero; NumPy's other name for :func:`trunc`.

    Example:
        >>> dp.fix(dp.asarray([-1.6])).asnumpy()
        array([-1.])
    """
    return ops.trunc(x)


@with_options()
def fabs(x: Any, /) -> ndarray:
    """Return the absolute value as a float.

    Raises:
        DTypeError: ``x`` is complex.

    Example:
        >>> dp.fabs(dp.asarray([-2])).asnumpy()
        array([2.])
    """
    return ops.abs(*in_loop("fabs", ("x", x)))


@with_options()
def deg2rad(x: Any, /) -> ndarray:
    """Convert degrees to radians.

    Raises:
        DTypeError: ``x`` is complex.

    Example:
        >>> float(dp.deg2rad(180.0)) == dp.pi
        True
    """
    return ops.multiply(*in_loop("deg2rad", ("x", x)), math.pi / 180)


@with_options()
def rad2deg(x: Any, /) -> ndarray:
    """Convert radians to degrees.

    Raises:
        DTypeError: ``x`` is complex.

    Example:
        >>> float(dp.rad2deg(dp.pi))
        180.0
    """
    return ops.multiply(*in_loop("rad2deg", ("x", x)), 180 / math.pi)


radians, degrees = deg2rad, rad2deg


@public()
def sinc(x: Any, /) -> ndarray:
    """Return `sin(pi x) / (pi x)`, element-wise, and 1 at 0.

    Example:
        >>> dp.sinc(dp.asarray([0.0, 0.5])).asnumpy()
        array([1.        , 0.63661977])
    """
    x = as_float(x)
    angle = ops.multiply(x, math.pi)
    angle = where(ops.equal(x, 0), 1e-20, angle)
    return where(ops.equal(x, 0), 1.0, ops.sin(angle) / angle)


@with_options(results=2)
def divmod(x1: Any, x2: Any, /) -> tuple[ndarray, ndarray]:
    """Return the quotient rounded down, and the remainder.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> [part.tolist() for part in dp.divmod(dp.asarray([7, -7]), 2)]
        [[3, -4], [1, 1]]
    """
    x1, x2 = arrays_of("divmod", ("x1", x1), ("x2", x2))
    return ops.floor_divide(x1, x2), ops.remainder(x1, x2)


@with_options()
def fmod(x1: Any, x2: Any, /) -> ndarray:
    """Return the remainder with the sign of ``x1``, as in C.

    Raises:
        DTypeError: an operand is complex.
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> dp.fmod(dp.asarray([7.0, -7.0]), 3.0).asnumpy()
        array([ 1., -1.])
    """
    x1, x2 = in_loop("fmod", ("x1", x1), ("x2", x2))
    kind = (x1 if isinstance(x1, ndarray) else x2).dtype.kind
    if kind == "f":
        sizes = [ops.abs(x) if isinstance(x, ndarray) else builtins.abs(x) for x in (x1, x2)]
        return ops.copysign(ops.remainder(*sizes), x1)
    rest = ops.remainder(x1, x2)
    if kind != "i":
        return rest
    # It has the sign of x2. The absolute value of the minimum integer overflows, so none is
    # computed.
    differs = ops.less(rest, 0) != ops.less(x1, 0)
    differs = ops.logical_and(differs, ops.not_equal(rest, 0))
    return where(differs, rest - x2, rest)


def _leaving_nan_out(function: str, name: str, x1: Any, x2: Any) -> ndarray:
    x1, x2 = arrays_of(function, ("x1", x1), ("x2", x2))
    result = apply(OPS[name], x1, x2)
    if result.dtype.kind not in "fc":
        return result
    for value, other in ((x2, x1), (x1, x2)):
        if isinstance(value, ndarray):
            result = where(ops.isnan(value), other, result)
        elif value != value:
            result = ops.positive(as_operand(other, result.dtype))
    return result


@with_options()
def fmax(x1: Any, x2: Any, /) -> ndarray:
    """Return the element-wise maximum, ignoring a single NaN.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> dp.fmax(dp.asarray([1.0, dp.nan]), 0.0).asnumpy()
        array([1., 0.])
    """
    return _leaving_nan_out("fmax", "maximum", x1, x2)


@with_options()
def fmin(x1: Any, x2: Any, /) -> ndarray:
    """Return the element-wise minimum, ignoring a single NaN.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> dp.fmin(dp.asarray([1.0, dp.nan]), 0.0).asnumpy()
        array([0., 0.])
    """
    return _leaving_nan_out("fmin", "minimum", x1, x2)


@with_options()
def float_power(x1: Any, x2: Any, /) -> ndarray:
    """Return ``x1`` raised to the power ``x2``, in double precision if the device supports it.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> dp.float_power(dp.asarray([2]), -1).asnumpy()
        array([0.5])
    """
    return ops.pow(*in_loop("float_power", ("x1", x1), ("x2", x2)))


@with_options()
def logaddexp2(x1: Any, x2: Any, /) -> ndarray:
    """Return the base-2 logarithm of `2**x1 + 2**x2`, element-wise.

    Raises:
        DTypeError: an operand is complex.
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> dp.logaddexp2(dp.asarray([0.0]), 0.0).asnumpy()
        array([1.])
    """
    x1, x2 = in_loop("logaddexp2", ("x1", x1), ("x2", x2))
    # The larger one plus the contribution of the other, so that no infinite value is scaled.
    larger = ops.maximum(x1, x2)
    distance = ops.abs(ops.subtract(x1, x2))
    distance = choose_elements("logaddexp2", ops.equal(x1, x2), 0.0, distance)
    added = ops.log1p(ops.exp2(ops.negative(distance)))
    return larger + ops.multiply(added, 1 / math.log(2))


@with_options()
def heaviside(x1: Any, x2: Any, /) -> ndarray:
    """Return 0 where ``x1`` is negative, 1 where it is positive, ``x2`` where it is 0.

    Raises:
        DTypeError: an operand is complex.
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> dp.heaviside(dp.asarray([-1.0, 0.0, 2.0]), 0.5).asnumpy()
        array([0. , 0.5, 1. ])
    """
    x1, x2 = in_loop("heaviside", ("x1", x1), ("x2", x2))
    x1 = as_array(x1, x2)
    x1 = as_operand(x1, (x2 if isinstance(x2, ndarray) else x1).dtype)
    step = where(ops.isnan(x1), x1, astype_array(ops.greater(x1, 0), x1.dtype))
    return where(ops.equal(x1, 0), x2, step)


@with_options()
def gcd(x1: Any, x2: Any, /) -> ndarray:
    """Return the greatest common divisor of integers.

    Raises:
        DTypeError: the arrays are not integers.
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> dp.gcd(dp.asarray([12, 7]), dp.asarray([18, 21])).asnumpy()
        array([6, 7])
    """
    return _of_integers("gcd", x1, x2)


def _of_integers(function: str, x1: Any, x2: Any) -> ndarray:
    """Call a function of NumPy and the libraries on integers in NumPy's common dtype."""
    x1, x2 = in_loop(function, ("x1", x1), ("x2", x2))
    dtype = (x1 if isinstance(x1, ndarray) else x2).dtype
    first, second = (
        x if isinstance(x, ndarray) else full((), x, dtype, **placement_keywords(other))
        for x, other in ((x1, x2), (x2, x1))
    )

    named = (("x1", first), ("x2", second))
    return compute(function, named, host=True, library=by_name(function))


@with_options()
def lcm(x1: Any, x2: Any, /) -> ndarray:
    """Return the least common multiple of integers; for errors see :func:`gcd`.

    Example:
        >>> dp.lcm(dp.asarray([4, 3]), dp.asarray([6, 5])).asnumpy()
        array([12, 15])
    """
    return _of_integers("lcm", x1, x2)


@public()
def nan_to_num(
    x: Any,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> ndarray:
    """Replace NaN by a number, and infinities by given numbers or the limits of the dtype.

    Args:
        x: an array.
        copy: whether to return a copy; false writes to ``x``.
        nan: the replacement for NaN.
        posinf: the replacement for infinity.
        neginf: the replacement for negative infinity.

    Example:
        >>> dp.nan_to_num(dp.asarray([1.0, dp.nan])).asnumpy()
        array([1., 0.])
    """
    if x.dtype.kind not in "fc":
        return copy_of(x, "K") if copy else x
    target = copy_of(x, "K") if copy else x
    limits = np.finfo(x.dtype)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    for part in (target.real, target.imag) if x.dtype.kind == "c" else (target,):
        # Each condition refers to the original values, not to earlier replacements.
        mended = where(ops.equal(part, math.inf), high, part)
        mended = where(ops.equal(part, -math.inf), low, mended)
        part[...] = where(ops.isnan(part), nan, mended)
    return target


def as_array(value: Any, like: Any) -> ndarray:
    """Return an array unchanged; convert a scalar to an array on the queue of another."""
    if isinstance(value, ndarray):
        return value
    return full((), value, sycl_queue=like.queue, usm_type=like.usm_type)


@with_options(results=2)
def frexp(x: Any, /) -> tuple[ndarray, ndarray]:
    """Return mantissas from 0.5 to 1, and exponents of two, that give ``x``.

    Raises:
        DTypeError: ``x`` is complex.

    Example:
        >>> [part.tolist() for part in dp.frexp(dp.asarray([8.0, 0.75]))]
        [[0.5, 0.75], [4, 0]]
    """
    (x,) = in_loop("frexp", ("x", x))
    size = ops.abs(x)
    plain = ops.logical_and(ops.isfinite(x), ops.not_equal(x, 0))
    # Subnormal numbers are scaled up first, so that their logarithm is accurate enough.
    tiny = float(np.finfo(x.dtype).tiny)
    raised = 2.0 ** (np.finfo(x.dtype).nmant + 2)
    is_small = size < tiny
    size = where(is_small, size * raised, size)
    size = where(plain, size, 1.0)
    exponent = ops.floor(ops.log2(size)) + 1.0
    half = _scaled_by_two(size, -exponent)
    too_large = half >= 1.0
    too_small = half < 0.5
    half = where(too_large, half / 2, where(too_small, half * 2, half))
    exponent = where(too_large, exponent + 1, where(too_small, exponent - 1, exponent))
    exponent = where(is_small, exponent - math.log2(raised), exponent)
    mantissa = where(plain, ops.copysign(half, x), x)
    return mantissa, astype_array(where(plain, exponent, 0.0), _dtypes.int32)


def _scaled_by_two(x: ndarray, exponent: ndarray) -> ndarray:
    """Return ``x * 2**exponent``, computed in three steps whose powers do not overflow."""
    part = ops.trunc(exponent / 3)
    power = ops.exp2(part)
    return x * power * power * ops.exp2(exponent - part * 2)


@with_options()
def ldexp(x1: Any, x2: Any, /) -> ndarray:
    """Return `x1 * 2**x2`, element-wise, where ``x2`` are integers.

    Raises:
        DTypeError: ``x2`` is not an integer array, or ``x1`` is complex.
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> dp.ldexp(dp.asarray([0.5, 0.75]), dp.asarray([4, 0])).asnumpy()
        array([8.  , 0.75])
    """
    given, weak = x2, type(x1) if type(x1) in (int, float) else _dtypes.bool
    x1, x2 = in_loop("ldexp", ("x1", x1), ("x2", x2))
    if not isinstance(x1, ndarray):
        dtype = _dtypes.resolve(np.ldexp, (weak, given.dtype))[0]
        x1 = full((), x1, dtype, **placement_keywords(x2))
    x2 = x2 if isinstance(x2, ndarray) else full((), x2, **placement_keywords(x1))
    dtype = x1.dtype
    if dtype == _dtypes.float16:  # the power alone may not fit in float16
        x1 = as_operand(x1, _dtypes.float32)
    most = 2 * np.finfo(dtype).maxexp + 100
    limited = ops.minimum(ops.maximum(x2, -most), most)
    return astype_array(_scaled_by_two(x1, astype_array(limited, x1.dtype)), dtype, copy=False)


@with_options()
def spacing(x: Any, /) -> ndarray:
    """Return the distance to the next float away from 0; for float16 to the next larger float.

    Raises:
        DTypeError: ``x`` is complex.

    Example:
        >>> bool(dp.spacing(1.0) == dp.finfo("float64").eps)
        True
    """
    (x,) = in_loop("spacing", ("x", x))
    away = full((), math.inf, x.dtype, **placement_keywords(x))
    if x.dtype != _dtypes.float16:  # for float16 NumPy always uses the next larger number
        away = choose_elements("spacing", ops.less(x, 0), -away, away)
    found = ops.nextafter(x, away) - x
    return choose_elements("spacing", ops.isfinite(x), found, math.nan)


@public()
def i0(x: Any, /) -> ndarray:
    """Return the modified Bessel function of the first kind, of order 0.

    Example:
        >>> round(float(dp.i0(1.0)), 6)
        1.266066
    """
    if x.dtype.kind in "biu":
        x = astype_array(x, _dtypes.default_float(traits_of(x.queue)))
    if x.dtype.kind == "c":
        raise DTypeError("i0: not defined for complex numbers")
    found = compute("i0", (("x", x),), host=True, library=by_name("i0"))
    return where(ops.isinf(x), x * x, found)  # NumPy returns NaN for infinities


@with_options(results=2)
def modf(x: Any, /) -> tuple[ndarray, ndarray]:
    """Return the fractional and the integer part, both with the sign of ``x``.

    Raises:
        DTypeError: ``x`` is complex.

    Example:
        >>> [part.tolist() for part in dp.modf(dp.asarray([1.5, -2.25]))]
        [[0.5, -0.25], [1.0, -2.0]]
    """
    (x,) = in_loop("modf", ("x", x))
    whole = ops.trunc(x)
    rest = ops.subtract(x, whole)
    rest = choose_elements("modf", ops.isinf(x), 0.0, rest)
    return ops.copysign(rest, x), whole
