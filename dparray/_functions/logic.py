"""Comparisons of whole arrays, and tests for kinds of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.apply import astype_array, ops
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._driver import traits_of
from dparray._functions.mathematics import as_array
from dparray._functions.operands import arrays_of, as_float
from dparray._functions.public import public, with_options
from dparray._functions.reductions import all as all_of
from dparray.exceptions import DTypeError, ShapeError

__all__ = [
    "allclose",
    "array_equal",
    "array_equiv",
    "isclose",
    "iscomplex",
    "isneginf",
    "isposinf",
    "isreal",
    "real_if_close",
]


def _signed(function: str, x: Any) -> ndarray:
    x = check_array(function, "x", x)
    if x.dtype.kind == "c":
        raise DTypeError(f"{function}: complex infinities have no sign; use x.real or x.imag")
    return as_float(x)


@with_options()
def isposinf(x: Any, /) -> ndarray:
    """Return whether the value is positive infinity.

    Raises:
        DTypeError: ``x`` is complex, whose infinities have no sign.

    Example:
        >>> dp.isposinf(dp.asarray([dp.inf, -dp.inf])).asnumpy()
        array([ True, False])
    """
    return _signed("isposinf", x) == math.inf


@with_options()
def isneginf(x: Any, /) -> ndarray:
    """Return whether the value is negative infinity.

    Raises:
        DTypeError: ``x`` is complex, whose infinities have no sign.

    Example:
        >>> dp.isneginf(dp.asarray([dp.inf, -dp.inf])).asnumpy()
        array([False,  True])
    """
    return _signed("isneginf", x) == (-math.inf)


@public()
def isreal(x: Any, /) -> ndarray:
    """Return whether the imaginary part is zero.

    Example:
        >>> dp.isreal(dp.asarray([1 + 0j, 1j])).asnumpy()
        array([ True, False])
    """
    return ops.equal(x.imag, 0)


def iscomplex(x: Any, /) -> ndarray:
    """Return whether the imaginary part is not zero.

    Example:
        >>> dp.iscomplex(dp.asarray([1 + 0j, 1j])).asnumpy()
        array([False,  True])
    """
    return ops.logical_not(isreal(x))


def _are_alike(x1: Any, x2: Any, *options: Any) -> bool:
    return type(x2) is ndarray and x1.shape == x2.shape


@public(
    operands=("x1", "x2"),
    small=np.isclose,
    takes=("rtol", "atol", "equal_nan"),
    when=_are_alike,
    converts=False,
)
def isclose(
    x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> ndarray:
    """Return whether the values differ by at most `atol + rtol * abs(x2)`.

    Args:
        x1: an array or a scalar.
        x2: an array or a scalar.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: whether NaN equals NaN.

    Raises:
        ShapeError: the shapes do not broadcast.

    Example:
        >>> dp.isclose(dp.asarray([1.0, 2.0]), 1.0).asnumpy()
        array([ True, False])
    """
    x1, x2 = arrays_of("isclose", ("x1", x1), ("x2", x2))
    first, second = (
        astype_array(x, _dtypes.int64) if isinstance(x, ndarray) and x.dtype.kind == "b" else x
        for x in (x1, x2)
    )
    # Differences of unsigned integers would wrap around.
    if isinstance(second, int):
        second = float(second)
    elif isinstance(second, ndarray) and second.dtype.kind in "iu":
        second = astype_array(second, _dtypes.default_float(traits_of(second.queue)))
    if isinstance(second, ndarray):
        bound = ops.abs(second) * rtol + atol
        is_finite: Any = ops.isfinite(second)
    else:  # the dtype of `first` may not hold it
        bound, is_finite = abs(second) * rtol + atol, bool(np.isfinite(second))
    near = ops.abs(ops.subtract(first, second)) <= bound
    near = ops.logical_and(near, is_finite)
    result = ops.logical_or(near, ops.equal(x1, x2))
    if equal_nan:
        both = ops.logical_and(ops.isnan(as_array(x1, x2)), ops.isnan(as_array(x2, x1)))
        result = ops.logical_or(result, both)
    return result


def allclose(
    x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> ndarray:
    """Return whether all values are close; see :func:`isclose` for arguments and errors.

    Returns:
        A 0-d Boolean array; ``bool(...)`` waits for the result.

    Example:
        >>> bool(dp.allclose(dp.asarray([1.0, 2.0]), dp.asarray([1.0, 2.0 + 1e-9])))
        True
    """
    x1, x2 = arrays_of("allclose", ("x1", x1), ("x2", x2))
    return all_of(isclose(x1, x2, rtol, atol, equal_nan))


@public(operands=("x1", "x2"))
def array_equal(x1: Any, x2: Any, /, equal_nan: bool = False) -> bool:
    """Return whether two arrays have equal shapes and elements; waits for the result.

    Example:
        >>> dp.array_equal(dp.asarray([1, 2]), dp.asarray([1, 2]))
        True
    """
    if x1.shape != x2.shape:
        return False
    same = ops.equal(x1, x2)
    if equal_nan:
        both = ops.logical_and(ops.isnan(x1), ops.isnan(x2))
        same = ops.logical_or(same, both)
    return bool(all_of(same))


@public(operands=("x1", "x2"))
def array_equiv(x1: Any, x2: Any, /) -> bool:
    """Return whether two arrays are equal after broadcasting; waits for the result.

    Example:
        >>> dp.array_equiv(dp.asarray([1, 1]), dp.asarray(1))
        True
    """
    try:
        _layout.broadcast_shapes("array_equiv", [x1.shape, x2.shape])
    except ShapeError:
        return False
    return bool(all_of(ops.equal(x1, x2)))


@public()
def real_if_close(x: Any, /, tol: float = 100) -> ndarray:
    """Return the real part if all imaginary parts are close to 0; the host waits for the test.

    Args:
        x: an array.
        tol: the tolerance for imaginary parts, in multiples of machine epsilon; absolute below 1.

    Example:
        >>> dp.real_if_close(dp.asarray([1 + 1e-15j])).dtype
        dtype('float64')
    """
    if x.dtype.kind != "c":
        return x
    limit = tol * float(np.finfo(x.dtype).eps) if tol > 1 else tol
    near = ops.abs(x.imag) < limit
    return x.real if bool(all_of(near)) else x
