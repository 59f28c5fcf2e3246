"""Elementwise functions made of the op table's operations; comparisons of whole arrays."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.apply import apply, astype_array, choose_elements
from dparray._array.assignment import assign
from dparray._array.fresh import from_host
from dparray._array.libraries import call_either
from dparray._array.ndarray import as_method, ndarray
from dparray._array.operands import check_array, check_out
from dparray._array.small import call_at_once
from dparray._functions.calculus import diff
from dparray._functions.creation import asarray, full
from dparray._functions.elementwise import where
from dparray._functions.manipulation import expand_dims, moveaxis, reshape
from dparray._functions.reductions import all as all_of
from dparray._functions.reductions import cumsum
from dparray._functions.reductions import sum as sum_of
from dparray._functions.ufunc_options import with_options
from dparray._graph.ops import OPS
from dparray._placement import Placement, common_placement
from dparray.exceptions import ArgumentError, DTypeError, HostConversionError, ShapeError

__all__ = [
    "allclose",
    "around",
    "array_equal",
    "array_equiv",
    "bitwise_count",
    "copyto",
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
    "isclose",
    "iscomplex",
    "isneginf",
    "isposinf",
    "isreal",
    "lcm",
    "ldexp",
    "logaddexp2",
    "nan_to_num",
    "packbits",
    "rad2deg",
    "radians",
    "real_if_close",
    "round",
    "select",
    "sinc",
    "spacing",
    "unpackbits",
    "unwrap",
]


def _operands(function: str, *named: tuple[str, Any]) -> list[Any]:
    """Arrays and Python scalars, the arrays checked to be on one queue; at least one is an array.

    NumPy's scalars, which are as strong as arrays, become arrays.
    """
    arrays = [each for each in named if isinstance(each[1], ndarray)]
    place = common_placement(function, arrays) if arrays else None
    values = [value for _, value in named]
    for position, (name, value) in enumerate(named):
        if isinstance(value, np.generic) or not isinstance(value, bool | int | float | complex):
            values[position] = check_array(function, name, values[position], place)
    if not any(isinstance(value, ndarray) for value in values):
        values[0] = check_array(function, named[0][0], values[0])
    placed = [
        (name, value)
        for (name, _), value in zip(named, values, strict=True)
        if isinstance(value, ndarray)
    ]
    common_placement(function, placed)
    return values


@as_method
def round(x: Any, decimals: int = 0, out: ndarray | None = None) -> ndarray:
    """Elementwise rounding to a number of decimals, halves to even.

    Args:
        x: an array or a scalar.
        decimals: how many; negative numbers round before the point.
        out: an array for the result.

    Raises:
        ExecutionPlacementError: ``out`` is on another queue.

    Example:
        >>> import dparray as dp
        >>> dp.round(dp.asarray([0.5, 1.25]), 1).asnumpy()
        array([0.5, 1.2])
    """
    x = check_array("round", "x", x)
    check_out("round", (("x", x),), out)
    if decimals == 0 or (x.dtype.kind in "biu" and decimals > 0):
        return apply(OPS["round"], x, out=out)
    if x.dtype.kind in "fc":
        scale = 10.0 ** abs(decimals)
        towards, back = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
        whole = apply(OPS["round"], apply(OPS[towards], x, scale))
        return apply(OPS[back], whole, scale, out=out)
    result = call_either("round", lambda xp, a: xp.round(a, decimals), (("x", x),))
    if out is None:
        return result
    assign(out, result, "round")
    return out


around = round


def _round_element(self: ndarray, ndigits: int | None = None) -> Any:
    """Python's ``round``: an integer, or with ``ndigits`` an array without dimensions.

    Raises:
        HostConversionError: the array has dimensions.
    """
    if self.shape:
        raise HostConversionError(
            f"round(x): x has shape {self.shape}; write dp.round(x, decimals)"
        )
    return builtins.round(self.item()) if ndigits is None else round(self, ndigits)


_round_element.__name__, _round_element.__qualname__ = "__round__", "ndarray.__round__"
as_method(_round_element)


@with_options
def fix(x: Any, /) -> ndarray:
    """NumPy's other name for :func:`trunc`.

    Example:
        >>> import dparray as dp
        >>> dp.fix(dp.asarray([-1.6])).asnumpy()
        array([-1.])
    """
    return apply(OPS["trunc"], x)


@with_options
def fabs(x: Any, /) -> ndarray:
    """The absolute value as a float.

    Example:
        >>> import dparray as dp
        >>> dp.fabs(dp.asarray([-2])).asnumpy()
        array([2.])
    """
    x = check_array("fabs", "x", x)
    if x.dtype.kind == "c":
        raise DTypeError("fabs: not defined for complex numbers; use dp.abs")
    return apply(OPS["abs"], _as_float(x))


def _as_float(x: ndarray) -> ndarray:
    if x.dtype.kind in "fc":
        return x
    return astype_array(x, _dtypes.default_float(x.sycl_queue.sycl_device))


@with_options
def deg2rad(x: Any, /) -> ndarray:
    """Degrees as radians.

    Example:
        >>> import dparray as dp
        >>> float(dp.deg2rad(180.0)) == dp.pi
        True
    """
    return apply(OPS["multiply"], _as_float(check_array("deg2rad", "x", x)), math.pi / 180)


@with_options
def rad2deg(x: Any, /) -> ndarray:
    """Radians as degrees.

    Example:
        >>> import dparray as dp
        >>> float(dp.rad2deg(dp.pi))
        180.0
    """
    return apply(OPS["multiply"], _as_float(check_array("rad2deg", "x", x)), 180 / math.pi)


radians, degrees = deg2rad, rad2deg


def sinc(x: Any, /) -> ndarray:
    """`sin(pi x) / (pi x)`, and 1 at 0.

    Example:
        >>> import dparray as dp
        >>> dp.sinc(dp.asarray([0.0, 0.5])).asnumpy()
        array([1.        , 0.63661977])
    """
    x = _as_float(check_array("sinc", "x", x))
    angle = apply(OPS["multiply"], x, math.pi)
    angle = where(apply(OPS["equal"], x, 0), 1e-20, angle)
    return where(
        apply(OPS["equal"], x, 0), 1.0, apply(OPS["divide"], apply(OPS["sin"], angle), angle)
    )


def divmod(x1: Any, x2: Any, /) -> tuple[ndarray, ndarray]:
    """Quotient rounded down, and remainder.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> import dparray as dp
        >>> [part.tolist() for part in dp.divmod(dp.asarray([7, -7]), 2)]
        [[3, -4], [1, 1]]
    """
    x1, x2 = _operands("divmod", ("x1", x1), ("x2", x2))
    return apply(OPS["floor_divide"], x1, x2), apply(OPS["remainder"], x1, x2)


@with_options
def fmod(x1: Any, x2: Any, /) -> ndarray:
    """The remainder with the sign of ``x1``, as C has it.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> import dparray as dp
        >>> dp.fmod(dp.asarray([7.0, -7.0]), 3.0).asnumpy()
        array([ 1., -1.])
    """
    x1, x2 = _operands("fmod", ("x1", x1), ("x2", x2))
    rest = apply(OPS["remainder"], apply(OPS["abs"], x1), apply(OPS["abs"], x2))
    if rest.dtype.kind == "f":
        return apply(OPS["copysign"], rest, x1)
    if rest.dtype.kind != "i":
        return rest
    return where(apply(OPS["less"], x1, 0), apply(OPS["negative"], rest), rest)


def _leaving_nan_out(function: str, name: str, x1: Any, x2: Any) -> ndarray:
    x1, x2 = _operands(function, ("x1", x1), ("x2", x2))
    result = apply(OPS[name], x1, x2)
    if result.dtype.kind not in "fc":
        return result
    result = where(apply(OPS["isnan"], x2), x1, result) if isinstance(x2, ndarray) else result
    return where(apply(OPS["isnan"], x1), x2, result) if isinstance(x1, ndarray) else result


@with_options
def fmax(x1: Any, x2: Any, /) -> ndarray:
    """The larger of the two; the other one if one is NaN.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> import dparray as dp
        >>> dp.fmax(dp.asarray([1.0, dp.nan]), 0.0).asnumpy()
        array([1., 0.])
    """
    return _leaving_nan_out("fmax", "maximum", x1, x2)


@with_options
def fmin(x1: Any, x2: Any, /) -> ndarray:
    """The smaller of the two; the other one if one is NaN.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> import dparray as dp
        >>> dp.fmin(dp.asarray([1.0, dp.nan]), 0.0).asnumpy()
        array([0., 0.])
    """
    return _leaving_nan_out("fmin", "minimum", x1, x2)


@with_options
def float_power(x1: Any, x2: Any, /) -> ndarray:
    """``x1`` raised to the power ``x2``, in floats.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> import dparray as dp
        >>> dp.float_power(dp.asarray([2]), -1).asnumpy()
        array([0.5])
    """
    x1, x2 = _operands("float_power", ("x1", x1), ("x2", x2))
    return apply(OPS["pow"], *(_as_float(x) if isinstance(x, ndarray) else x for x in (x1, x2)))


@with_options
def logaddexp2(x1: Any, x2: Any, /) -> ndarray:
    """The logarithm to base 2 of `2**x1 + 2**x2`.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> import dparray as dp
        >>> dp.logaddexp2(dp.asarray([0.0]), 0.0).asnumpy()
        array([1.])
    """
    x1, x2 = _operands("logaddexp2", ("x1", x1), ("x2", x2))
    scale = math.log(2)
    parts = [
        apply(OPS["multiply"], x, scale) if isinstance(x, ndarray) else x * scale for x in (x1, x2)
    ]
    return apply(OPS["divide"], apply(OPS["logaddexp"], *parts), scale)


@with_options
def heaviside(x1: Any, x2: Any, /) -> ndarray:
    """0 where ``x1`` is negative, 1 where it is positive, ``x2`` where it is 0.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> import dparray as dp
        >>> dp.heaviside(dp.asarray([-1.0, 0.0, 2.0]), 0.5).asnumpy()
        array([0. , 0.5, 1. ])
    """
    x1, x2 = _operands("heaviside", ("x1", x1), ("x2", x2))
    x1 = _as_float(check_array("heaviside", "x1", x1))
    step = where(apply(OPS["isnan"], x1), x1, astype_array(apply(OPS["greater"], x1, 0), x1.dtype))
    return where(apply(OPS["equal"], x1, 0), x2, step)


@with_options
def gcd(x1: Any, x2: Any, /) -> ndarray:
    """The greatest common divisor of integers.

    Raises:
        DTypeError: the arrays are not integers.
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> import dparray as dp
        >>> dp.gcd(dp.asarray([12, 7]), dp.asarray([18, 21])).asnumpy()
        array([6, 7])
    """
    x1, x2 = check_array("gcd", "x1", x1), check_array("gcd", "x2", x2)
    return call_either("gcd", lambda xp, a, b: xp.gcd(a, b), (("x1", x1), ("x2", x2)))


@with_options
def lcm(x1: Any, x2: Any, /) -> ndarray:
    """The least common multiple of integers; errors as of :func:`gcd`.

    Example:
        >>> import dparray as dp
        >>> dp.lcm(dp.asarray([4, 3]), dp.asarray([6, 5])).asnumpy()
        array([12, 15])
    """
    x1, x2 = check_array("lcm", "x1", x1), check_array("lcm", "x2", x2)
    return call_either("lcm", lambda xp, a, b: xp.lcm(a, b), (("x1", x1), ("x2", x2)))


@with_options
def isposinf(x: Any, /) -> ndarray:
    """Whether the value is positive infinity.

    Example:
        >>> import dparray as dp
        >>> dp.isposinf(dp.asarray([dp.inf, -dp.inf])).asnumpy()
        array([ True, False])
    """
    return apply(OPS["equal"], _as_float(check_array("isposinf", "x", x)), math.inf)


@with_options
def isneginf(x: Any, /) -> ndarray:
    """Whether the value is negative infinity.

    Example:
        >>> import dparray as dp
        >>> dp.isneginf(dp.asarray([dp.inf, -dp.inf])).asnumpy()
        array([False,  True])
    """
    return apply(OPS["equal"], _as_float(check_array("isneginf", "x", x)), -math.inf)


def isreal(x: Any, /) -> ndarray:
    """Whether the imaginary part is zero.

    Example:
        >>> import dparray as dp
        >>> dp.isreal(dp.asarray([1 + 0j, 1j])).asnumpy()
        array([ True, False])
    """
    x = check_array("isreal", "x", x)
    return apply(OPS["equal"], x.imag, 0)


def iscomplex(x: Any, /) -> ndarray:
    """Whether the imaginary part is not zero.

    Example:
        >>> import dparray as dp
        >>> dp.iscomplex(dp.asarray([1 + 0j, 1j])).asnumpy()
        array([False,  True])
    """
    return apply(OPS["logical_not"], isreal(x))


def nan_to_num(
    x: Any,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> ndarray:
    """NaN replaced by a number, infinities by the largest ones of the dtype or given ones.

    Args:
        x: an array.
        copy: false writes into ``x`` itself.
        nan: in the place of NaN.
        posinf: in the place of infinity.
        neginf: in the place of negative infinity.

    Example:
        >>> import dparray as dp
        >>> dp.nan_to_num(dp.asarray([1.0, dp.nan])).asnumpy()
        array([1., 0.])
    """
    x = check_array("nan_to_num", "x", x)
    if x.dtype.kind not in "fc":
        return x.copy() if copy else x
    target = x.copy() if copy else x
    limits = np.finfo(x.dtype)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    for part in (target.real, target.imag) if x.dtype.kind == "c" else (target,):
        mended = where(apply(OPS["isnan"], part), nan, part)
        mended = where(apply(OPS["equal"], mended, math.inf), high, mended)
        part[...] = where(apply(OPS["equal"], mended, -math.inf), low, mended)
    return target


def isclose(
    x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> ndarray:
    """Whether the values differ by at most `atol + rtol * abs(x2)`.

    Args:
        x1: an array or a scalar.
        x2: an array or a scalar.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: NaN is close to NaN.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not broadcast.

    Example:
        >>> import dparray as dp
        >>> dp.isclose(dp.asarray([1.0, 2.0]), 1.0).asnumpy()
        array([ True, False])
    """
    if type(x1) is type(x2) and getattr(x1, "shape", ()) == getattr(x2, "shape", None):
        small = call_at_once(np.isclose, x1, x2, rtol, atol, equal_nan)
        if small is not None:
            return small
    x1, x2 = _operands("isclose", ("x1", x1), ("x2", x2))
    first, second = (
        astype_array(x, _dtypes.int64) if isinstance(x, ndarray) and x.dtype.kind == "b" else x
        for x in (x1, x2)
    )
    bound = apply(
        OPS["add"], apply(OPS["multiply"], apply(OPS["abs"], _array_of(second, first)), rtol), atol
    )
    near = apply(OPS["less_equal"], apply(OPS["abs"], apply(OPS["subtract"], first, second)), bound)
    near = apply(OPS["logical_and"], near, apply(OPS["isfinite"], _array_of(second, first)))
    result = apply(OPS["logical_or"], near, apply(OPS["equal"], x1, x2))
    if equal_nan:
        both = apply(
            OPS["logical_and"],
            apply(OPS["isnan"], _array_of(x1, x2)),
            apply(OPS["isnan"], _array_of(x2, x1)),
        )
        result = apply(OPS["logical_or"], result, both)
    return result


def _array_of(value: Any, like: Any) -> ndarray:
    """An array itself; a scalar as an array on the queue of another."""
    if isinstance(value, ndarray):
        return value
    return full((), value, sycl_queue=like.sycl_queue, usm_type=like.usm_type)


def allclose(
    x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> ndarray:
    """Whether all values are close; arguments and errors as of :func:`isclose`.

    Returns:
        A 0-dimensional boolean array; ``bool(...)`` of it waits for the answer.

    Example:
        >>> import dparray as dp
        >>> bool(dp.allclose(dp.asarray([1.0, 2.0]), dp.asarray([1.0, 2.0 + 1e-9])))
        True
    """
    x1, x2 = _operands("allclose", ("x1", x1), ("x2", x2))
    return all_of(isclose(x1, x2, rtol, atol, equal_nan))


def array_equal(x1: Any, x2: Any, /, equal_nan: bool = False) -> bool:
    """Whether two arrays have one shape and equal elements; waits for the answer.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> import dparray as dp
        >>> dp.array_equal(dp.asarray([1, 2]), dp.asarray([1, 2]))
        True
    """
    x1, x2 = check_array("array_equal", "x1", x1), check_array("array_equal", "x2", x2)
    common_placement("array_equal", (("x1", x1), ("x2", x2)))
    if x1.shape != x2.shape:
        return False
    same = apply(OPS["equal"], x1, x2)
    if equal_nan:
        both = apply(OPS["logical_and"], apply(OPS["isnan"], x1), apply(OPS["isnan"], x2))
        same = apply(OPS["logical_or"], same, both)
    return bool(all_of(same))


def array_equiv(x1: Any, x2: Any, /) -> bool:
    """Whether two arrays broadcast to each other with equal elements; waits for the answer.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> import dparray as dp
        >>> dp.array_equiv(dp.asarray([1, 1]), dp.asarray(1))
        True
    """
    x1, x2 = check_array("array_equiv", "x1", x1), check_array("array_equiv", "x2", x2)
    common_placement("array_equiv", (("x1", x1), ("x2", x2)))
    try:
        _layout.broadcast_shapes("array_equiv", [x1.shape, x2.shape])
    except ShapeError:
        return False
    return bool(all_of(apply(OPS["equal"], x1, x2)))


def copyto(x1: ndarray, x2: Any, /, casting: Any = "same_kind", where: Any = True) -> None:
    """Write the values of ``x2`` (an array or a scalar) into ``x1``.

    Args:
        x1: the array that is written.
        x2: an array or a scalar that broadcasts to it.
        casting: which conversions of arrays are allowed, as of NumPy.
        where: a mask that broadcasts to ``x1``: other elements stay.

    Raises:
        DTypeError: ``casting`` forbids the conversion.
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: ``x2`` does not broadcast to ``x1``.

    Example:
        >>> import dparray as dp
        >>> x = dp.zeros(2)
        >>> dp.copyto(x, 3)
        >>> x.asnumpy()
        array([3., 3.])
    """
    x1 = check_array("copyto", "x1", x1)
    place = Placement(x1.sycl_queue, x1.usm_type)
    named = [("x1", x1), *([("x2", x2)] if isinstance(x2, ndarray) else [])]
    if where is not True:
        named.append(("where", check_array("copyto", "where", where, place)))
    common_placement("copyto", named)
    is_scalar = isinstance(x2, bool | int | float | complex | np.generic)
    if isinstance(x2, np.integer | np.bool_) and x1.dtype.kind in "iu":
        given, x2 = x2.dtype, x2.astype(x1.dtype)
    elif is_scalar or isinstance(x2, ndarray):
        given = getattr(x2, "dtype", None) or np.result_type(x1.dtype, x2)
    else:
        given = x1.dtype
    if not np.can_cast(given, x1.dtype, casting):
        raise DTypeError(
            f"copyto: {given} does not convert to {x1.dtype} by the rule {casting!r}; give "
            f"casting='unsafe'"
        )
    if where is not True:
        mask = astype_array(named[-1][1], _dtypes.bool, copy=False)
        values = x2 if isinstance(x2, ndarray) else asarray(x2, x1.dtype, **_place(x1))
        x2 = choose_elements("copyto", mask, astype_array(values, x1.dtype, copy=False), x1)
        _layout.broadcast_shapes("copyto", [x1.shape, x2.shape])
    assign(x1, x2, "copyto")


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> ndarray:
    """For each element the choice that belongs to the first condition that is true.

    Args:
        condlist: boolean arrays.
        choicelist: as many arrays or scalars.
        default: where no condition is true.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: there are not as many choices as conditions.

    Example:
        >>> import dparray as dp
        >>> x = dp.asarray([1, 5, 9])
        >>> dp.select([x < 3, x < 7], [x, 10 * x], 0).asnumpy()
        array([ 1, 50,  0])
    """
    if not condlist or len(condlist) != len(choicelist):
        raise ShapeError(f"select: {len(condlist)} conditions for {len(choicelist)} choices")
    named = [(f"condlist[{at}]", x) for at, x in enumerate(condlist)]
    named += [(f"choicelist[{at}]", x) for at, x in enumerate(choicelist)]
    values = _operands("select", *named, ("default", default))
    conditions, choices = values[: len(condlist)], values[len(condlist) : -1]
    result = values[-1]
    for condition, choice in zip(conditions[::-1], choices[::-1], strict=True):
        result = where(condition, choice, result)
    return result


def unwrap(
    x: Any, /, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi
) -> ndarray:
    """Angles along an axis without jumps of more than half a period, or than ``discont``.

    Raises:
        AxisError: there is no such axis.

    Example:
        >>> import dparray as dp
        >>> dp.unwrap(dp.asarray([0.0, 3.0, -3.0])).asnumpy()
        array([0.        , 3.        , 3.28318531])
    """
    x = _as_float(check_array("unwrap", "x", x))
    axis = _layout.normalize_axis("unwrap", axis, x.ndim)
    steps = diff(x, axis=axis)
    half = period / 2
    inside = steps + half
    wrapped = apply(OPS["remainder"], inside, period) - half
    at_edge = apply(
        OPS["logical_and"], apply(OPS["equal"], wrapped, -half), apply(OPS["greater"], steps, 0)
    )
    wrapped = where(at_edge, half, wrapped)
    largest = half if discont is None else max(discont, half)
    correction = where(apply(OPS["less"], apply(OPS["abs"], steps), largest), 0.0, wrapped - steps)
    result = x.copy()
    rest = (*(slice(None),) * axis, slice(1, None))
    result[rest] = x[rest] + cumsum(correction, axis)
    return result


def frexp(x: Any, /) -> tuple[ndarray, ndarray]:
    """Mantissas from 0.5 to 1, and the powers of two that give ``x`` with them.

    Example:
        >>> import dparray as dp
        >>> [part.tolist() for part in dp.frexp(dp.asarray([8.0, 0.75]))]
        [[0.5, 0.75], [4, 0]]
    """
    x = _as_float(check_array("frexp", "x", x))
    size = apply(OPS["abs"], x)
    plain = apply(OPS["logical_and"], apply(OPS["isfinite"], x), apply(OPS["not_equal"], x, 0))
    # A number below the normal ones is made one first, so that its logarithm is exact enough.
    tiny = float(np.finfo(x.dtype).tiny)
    raised = 2.0 ** (np.finfo(x.dtype).nmant + 2)
    is_small = apply(OPS["less"], size, tiny)
    size = where(is_small, size * raised, size)
    size = where(plain, size, 1.0)
    exponent = apply(OPS["floor"], apply(OPS["log2"], size)) + 1.0
    half = _scaled_by_two(size, -exponent)
    too_large = apply(OPS["greater_equal"], half, 1.0)
    too_small = apply(OPS["less"], half, 0.5)
    half = where(too_large, half / 2, where(too_small, half * 2, half))
    exponent = where(too_large, exponent + 1, where(too_small, exponent - 1, exponent))
    exponent = where(is_small, exponent - math.log2(raised), exponent)
    mantissa = where(plain, apply(OPS["copysign"], half, x), x)
    return mantissa, astype_array(where(plain, exponent, 0.0), _dtypes.int32)


def _scaled_by_two(x: ndarray, exponent: ndarray) -> ndarray:
    """``x * 2**exponent`` in two steps, neither of which leaves the range of floats."""
    first = apply(OPS["floor"], exponent / 2)
    return x * apply(OPS["exp2"], first) * apply(OPS["exp2"], exponent - first)


@with_options
def ldexp(x1: Any, x2: Any, /) -> ndarray:
    """`x1 * 2**x2`, ``x2`` being integers.

    Raises:
        DTypeError: ``x2`` is not integer.
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> import dparray as dp
        >>> dp.ldexp(dp.asarray([0.5, 0.75]), dp.asarray([4, 0])).asnumpy()
        array([8.  , 0.75])
    """
    x1, x2 = _operands("ldexp", ("x1", x1), ("x2", x2))
    if isinstance(x2, float) or (isinstance(x2, ndarray) and x2.dtype.kind not in "iu"):
        raise DTypeError("ldexp: x2 must be integers; convert with `x2.astype('int64')`")
    x1 = _as_float(_array_of(x1, x2))
    exponent = astype_array(_array_of(x2, x1), x1.dtype)
    most = 2.0 * np.finfo(x1.dtype).maxexp + 100
    limited = apply(OPS["minimum"], apply(OPS["maximum"], exponent, -most), most)
    return _scaled_by_two(x1, limited)


@with_options
def spacing(x: Any, /) -> ndarray:
    """The distance to the next float away from 0.

    Example:
        >>> import dparray as dp
        >>> bool(dp.spacing(1.0) == dp.finfo("float64").eps)
        True
    """
    x = _as_float(check_array("spacing", "x", x))
    away = apply(OPS["copysign"], _array_of(math.inf, x), x)
    return apply(OPS["subtract"], apply(OPS["nextafter"], x, astype_array(away, x.dtype)), x)


@with_options
def bitwise_count(x: Any, /) -> ndarray:
    """How many bits of the absolute value are set, as ``uint8``.

    Raises:
        DTypeError: ``x`` is not integer.

    Example:
        >>> import dparray as dp
        >>> dp.bitwise_count(dp.asarray([0, 7, -8])).asnumpy()
        array([0, 3, 1], dtype=uint8)
    """
    x = check_array("bitwise_count", "x", x)
    if x.dtype.kind not in "biu":
        raise DTypeError(f"bitwise_count: x of dtype {x.dtype} must be integers")
    if x.dtype.kind == "b":
        return astype_array(x, _dtypes.uint8)
    if x.dtype.kind == "i":
        x = apply(OPS["abs"], x)
    # Sums of neighbouring fields of 1, 2 and 4 bits; the bytes are added by a multiplication.
    bits = astype_array(x, _dtypes.uint64)
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    count = (bits * 0x0101010101010101) >> 56
    return astype_array(count, _dtypes.uint8)


def i0(x: Any, /) -> ndarray:
    """The modified Bessel function of the first kind, of order 0.

    Example:
        >>> import dparray as dp
        >>> round(float(dp.i0(1.0)), 6)
        1.266066
    """
    x = _as_float(check_array("i0", "x", x))
    if x.dtype.kind == "c":
        raise DTypeError("i0: not defined for complex numbers")
    return call_either("i0", lambda xp, values: xp.i0(values), (("x", x),))


def real_if_close(x: Any, /, tol: float = 100) -> ndarray:
    """The real part where all imaginary parts are almost 0; the host waits to know.

    Args:
        x: an array.
        tol: how many times the spacing of floats at 1 imaginary parts may be; below 1 absolute.

    Example:
        >>> import dparray as dp
        >>> dp.real_if_close(dp.asarray([1 + 1e-15j])).dtype
        dtype('float64')
    """
    x = check_array("real_if_close", "x", x)
    if x.dtype.kind != "c":
        return x
    limit = tol * float(np.finfo(x.dtype).eps) if tol > 1 else tol
    near = apply(OPS["less"], apply(OPS["abs"], x.imag), limit)
    return x.real.copy() if bool(all_of(near)) else x


def packbits(x: Any, axis: int | None = None, bitorder: str = "big") -> ndarray:
    """Elements as bits of ``uint8``, eight along an axis in one; the last is filled with zeros.

    Args:
        x: integers or booleans; each counts as a set bit if it is not zero.
        axis: the axis; ``None`` packs the flattened array.
        bitorder: ``"big"`` makes the first element the highest bit, ``"little"`` the lowest.

    Raises:
        ArgumentError: there is no such order of bits.
        AxisError: there is no such axis.
        DTypeError: ``x`` is neither integer nor boolean.

    Example:
        >>> import dparray as dp
        >>> dp.packbits(dp.asarray([1, 0, 1])).asnumpy()
        array([160], dtype=uint8)
    """
    x = check_array("packbits", "x", x)
    if x.dtype.kind not in "biu":
        raise DTypeError(f"packbits: x of dtype {x.dtype} must be integers or booleans")
    shifts = _bit_shifts("packbits", x, bitorder)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = _layout.normalize_axis("packbits", axis, x.ndim)
    lines = moveaxis(x, axis, -1)
    count = -(-lines.shape[-1] // 8)
    bits = full((*lines.shape[:-1], 8 * count), 0, "uint8", **_place(x))
    bits[..., : lines.shape[-1]] = apply(OPS["not_equal"], lines, 0)
    fields = reshape(bits, (*lines.shape[:-1], count, 8)) << shifts
    return moveaxis(sum_of(fields, -1, dtype="uint8"), -1, axis)


def unpackbits(
    x: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> ndarray:
    """The bits of ``uint8`` as elements that are 0 or 1, along an axis.

    Args:
        x: a ``uint8`` array.
        axis: the axis; ``None`` unpacks the flattened array.
        count: how many bits to keep along it; a negative number leaves so many out.
        bitorder: ``"big"`` or ``"little"``, as of :func:`packbits`.

    Raises:
        ArgumentError: there is no such order of bits.
        AxisError: there is no such axis.
        DTypeError: ``x`` is not ``uint8``.

    Example:
        >>> import dparray as dp
        >>> dp.unpackbits(dp.asarray([160], dtype="uint8"), count=3).asnumpy()
        array([1, 0, 1], dtype=uint8)
    """
    x = check_array("unpackbits", "x", x)
    if x.dtype != _dtypes.uint8:
        raise DTypeError(f"unpackbits: x of dtype {x.dtype} must be uint8")
    shifts = _bit_shifts("unpackbits", x, bitorder)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = _layout.normalize_axis("unpackbits", axis, x.ndim)
    lines = moveaxis(x, axis, -1)
    bits = (expand_dims(lines, -1) >> shifts) & 1
    bits = reshape(bits, (*lines.shape[:-1], 8 * lines.shape[-1]))
    if count is not None and count > bits.shape[-1]:
        longer = full((*bits.shape[:-1], count), 0, "uint8", **_place(x))
        longer[..., : bits.shape[-1]] = bits
        bits = longer
    elif count is not None:
        bits = bits[..., :count].copy()
    return moveaxis(bits, -1, axis)


def _place(x: ndarray) -> dict[str, Any]:
    return {"sycl_queue": x.sycl_queue, "usm_type": x.usm_type}


def _bit_shifts(function: str, x: ndarray, bitorder: str) -> ndarray:
    """By how much each of eight bits is shifted in its byte."""
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"{function}: bitorder {bitorder!r} is neither 'big' nor 'little'")
    order = range(7, -1, -1) if bitorder == "big" else range(8)
    return from_host(np.asarray(order, np.uint8), x.sycl_queue, x.usm_type)
