"""NumPy's legacy polynomials: vectors of coefficients, highest power first.

A polynomial has few coefficients, so NumPy computes on the host what needs them one after another.
:mod:`dparray._runtime.fallback` decides whether it may read those of other devices.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from dparray import _dtypes
from dparray._array.allocation import empty_on, from_host
from dparray._array.apply import apply, astype_array, ops
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_arrays, scalar_value
from dparray._driver import traits_of
from dparray._functions.conversion import asarray
from dparray._functions.convolution import convolve
from dparray._functions.creation import zeros
from dparray._functions.joining import concat, trim_zeros
from dparray._functions.manipulation import atleast_1d, expand_dims
from dparray._functions.matrices import vander
from dparray._functions.operands import placement_keywords, vector_of
from dparray._functions.products import matmul
from dparray._functions.public import public
from dparray._functions.ranges import arange
from dparray._functions.reductions import sum as sum_of
from dparray._graph.ops import OPS
from dparray._placement import common_placement, placement_of
from dparray.exceptions import ArgumentError, DTypeError, ShapeError
from dparray.linalg.operands import refuse_half
from dparray.linalg.solving import inv, lstsq

__all__ = [
    "poly",
    "poly1d",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
    "roots",
]


def _coefficients(function: str, **named: Any) -> list[ndarray]:
    """Return vectors of coefficients on one queue; lists and scalars are copied there."""
    given = [(name, x._coefficients if isinstance(x, poly1d) else x) for name, x in named.items()]
    found = [atleast_1d(x) for x in check_arrays(function, *given)]
    for name, x in zip(named, found, strict=True):
        if x.ndim != 1:
            raise ShapeError(f"{function}: {name} must be a vector; it has {x.ndim} dimensions")
    return found


def _on_host(function: str, compute: Callable[..., Any], *arrays: ndarray) -> list[ndarray]:
    """Return the results of a function of NumPy arrays, with the placement of the arrays."""
    placement = common_placement(function, [("coefficients", x) for x in arrays])
    try:
        with np.errstate(all="ignore"):
            results = compute(*(x.asnumpy() for x in arrays))
    except TypeError as error:
        raise DTypeError(f"{function}: {error}; write .astype('float32')") from None
    values = map(np.asarray, results if isinstance(results, tuple) else (results,))
    traits = traits_of(placement.queue)
    return [from_host(x, *placement, _dtypes.fit_device(x.dtype, traits)) for x in values]


def _like(result: ndarray, *given: Any) -> Any:
    """Return the result as a ``poly1d`` if an operand is one."""
    return poly1d(result) if any(isinstance(value, poly1d) for value in given) else result


def polyval(p: Any, x: Any) -> Any:
    """Evaluate a polynomial, given its coefficients from the highest power down.

    Args:
        p: a vector or a list of coefficients.
        x: the points at which to evaluate; for a ``poly1d``, the polynomial of a polynomial.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> dp.polyval([1, 0, 2], dp.asarray([1, 3])).asnumpy()
        array([ 3, 11])
    """
    if isinstance(p, poly1d):
        p = p._coefficients
    if isinstance(x, poly1d):
        composed: Any = poly1d([0])
        for coefficient in p:
            composed = composed * x + coefficient
        return composed
    x = _array_like(x, p)
    if isinstance(p, ndarray):
        common_placement("polyval", (("x", x), ("p", p)))
        coefficients: list[Any] = [p[at] for at in range(p.size)]
        result = ops.multiply(x, ops.multiply(p[0], 0))
    else:
        coefficients = [scalar_value(coefficient) for coefficient in p]
        result = ops.multiply(x, 0)
    for coefficient in coefficients:
        result = ops.multiply(result, x) + coefficient
    return result


def _array_like(x: Any, p: Any) -> ndarray:
    if not isinstance(x, ndarray) and isinstance(p, ndarray):
        value = scalar_value(x)
        if isinstance(value, list | tuple | bool | int | float | complex):
            return asarray(value, **placement_keywords(p))
    return asarray(x) if isinstance(x, list | tuple) else check_array("polyval", "x", x)


@public(operands=("x", "y"))
def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: Any = None,
    cov: Any = False,
) -> Any:
    """Return the coefficients of the polynomial with the least squared error, highest power first.

    Args:
        x: a vector of sample points.
        y: the values at these points; a matrix for several sets of values.
        deg: the degree of the polynomial.
        rcond: singular values below this fraction of the largest count as 0.
        full: whether to also return the squared residuals, the rank, the singular values and
            ``rcond``.
        w: a vector of weights for the values.
        cov: whether to also return the covariance matrix; ``"unscaled"`` does not scale it by the
            residuals.

    Raises:
        ArgumentError: the degree is negative, or there are too few points for a covariance.
        ShapeError: the vectors differ in length.

    Example:
        >>> x = dp.asarray([0.0, 1.0, 2.0])
        >>> dp.round(dp.polyfit(x, 2 * x + 1, 1), 6).asnumpy()
        array([2., 1.])
    """
    named = [("x", x), ("y", y)]
    if w is not None:
        w = vector_of("polyfit", x, "w", w)
        named.append(("w", w))
    placement = common_placement("polyfit", named)
    order = operator.index(deg)
    if order < 0:
        raise ArgumentError(f"polyfit: deg must be at least 0; got {deg}")
    if x.ndim != 1 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0] or not x.size:
        raise ShapeError(
            f"polyfit: x and y must be vectors of equal length; got shapes {x.shape} and {y.shape}"
        )
    real = _dtypes.default_float(traits_of(placement.queue))
    if x.dtype.kind not in "fc":
        x = astype_array(x, real)
    rcond = x.size * float(np.finfo(x.dtype).eps) if rcond is None else rcond
    matrix = vander(x, order + 1)
    refuse_half("polyfit", "y", y)
    if w is not None:
        weights = astype_array(w, x.dtype, copy=False)
        if weights.shape != x.shape:
            raise ShapeError(f"polyfit: w of shape {weights.shape} for {x.size} points")
        matrix = matrix * expand_dims(weights, 1)
        y = y * (expand_dims(weights, 1) if y.ndim == 2 else weights)
    scale = ops.sqrt(sum_of(ops.square(ops.abs(matrix)), 0))
    found, residuals, rank, singular = lstsq(matrix / scale, y, rcond)
    result = found / (expand_dims(scale, 1) if y.ndim == 2 else scale)
    if full:
        return result, residuals, rank, singular, rcond
    if not cov:
        return result
    covariance = inv(matmul(matrix.T, matrix))
    if cov == "unscaled":
        return result, covariance
    free = x.size - (order + 1)
    if free <= 0:
        raise ArgumentError(
            f"polyfit: {x.size} points are too few for the covariance of {order + 1} coefficients; "
            f"use cov='unscaled'"
        )
    misfit = y - matmul(matrix, result)
    factor = sum_of(misfit * misfit, 0) / free
    if y.ndim == 2:
        covariance = expand_dims(covariance, 2)
    return result, covariance * factor


@public()
def poly(x: Any) -> ndarray:
    """Return the coefficients of the polynomial with given roots, or a matrix's characteristic one.

    NumPy computes them on the host, which waits for ``x``.

    Raises:
        ShapeError: ``x`` is neither a vector nor a square matrix.

    Example:
        >>> dp.poly([1.0, 2.0]).asnumpy()
        array([ 1., -3.,  2.])
    """
    if x.ndim > 1 and not (x.ndim == 2 and x.shape[0] == x.shape[1] and x.size):
        raise ShapeError(f"poly: x must be a vector or a square matrix; got shape {x.shape}")
    return _on_host("poly", np.poly, x)[0]


def roots(p: Any) -> ndarray:
    """Return the roots: the eigenvalues of the companion matrix.

    NumPy computes them on the host, which waits for the coefficients.

    Example:
        >>> dp.sort(dp.roots([1.0, -3.0, 2.0]).real).asnumpy()
        array([1., 2.])
    """
    (p,) = _coefficients("roots", p=p)
    return _on_host("roots", np.roots, p)[0]


def _summed(function: str, a1: Any, a2: Any, operation: str) -> Any:
    x1, x2 = _coefficients(function, a1=a1, a2=a2)
    size = max(x1.size, x2.size)
    parts = [
        concat([zeros(size - x.size, x.dtype, **placement_keywords(x)), x]) if x.size < size else x
        for x in (x1, x2)
    ]
    return _like(apply(OPS[operation], *parts), a1, a2)


def polyadd(a1: Any, a2: Any) -> Any:
    """Return the sum of two polynomials.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> dp.polyadd([1, 2], [9, 5, 4]).asnumpy()
        array([9, 6, 6])
    """
    return _summed("polyadd", a1, a2, "add")


def polysub(a1: Any, a2: Any) -> Any:
    """Return the difference of two polynomials; for errors see :func:`polyadd`.

    Example:
        >>> dp.polysub([1, 2], [9, 5, 4]).asnumpy()
        array([-9, -4, -2])
    """
    return _summed("polysub", a1, a2, "subtract")


def polymul(a1: Any, a2: Any) -> Any:
    """Return the product of two polynomials; for errors see :func:`polyadd`.

    Example:
        >>> dp.polymul([1, 2], [3, 4]).asnumpy()
        array([ 3, 10,  8])
    """
    x1, x2 = _coefficients("polymul", a1=a1, a2=a2)
    return _like(convolve(x1, x2), a1, a2)


def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    """Return the quotient and the remainder of two polynomials; for errors see :func:`polyadd`.

    The host computes them, and waits for the coefficients.

    Example:
        >>> [part.tolist() for part in dp.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])]
        [[1.5, 1.75], [0.25]]
    """
    x1, x2 = _coefficients("polydiv", u=u, v=v)
    quotient, rest = _on_host("polydiv", _divided, x1, x2)
    return _like(quotient, u, v), _like(rest, u, v)


def _divided(u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the results of ``numpy.polydiv``, which removes leading zeros slowly."""
    rest = u.astype((u[0] + v[0] + 0.0).dtype)
    quotient = np.zeros(max(u.size - v.size + 1, 1), rest.dtype)
    scale = 1.0 / v[0]
    for at in range(u.size - v.size + 1):
        quotient[at] = scale * rest[at]
        rest[at : at + v.size] -= quotient[at] * v
    is_left = ~(np.abs(rest) <= 1e-8)  # true for NaN
    return quotient, rest[int(is_left.argmax()) if is_left.any() else -1 :]


def polyder(p: Any, m: int = 1) -> Any:
    """Return the ``m``-th derivative of a polynomial.

    Raises:
        ArgumentError: ``m`` is negative.

    Example:
        >>> dp.polyder([1, 1, 1, 1]).asnumpy()
        array([3, 2, 1])
    """
    (x,) = _coefficients("polyder", p=p)
    if operator.index(m) < 0:
        raise ArgumentError(f"polyder: m must be at least 0; got {m}")
    for _ in range(min(m, x.size)):
        powers = arange(x.size - 1, 0, -1, **placement_keywords(x))
        x = x[:-1] * powers
    return _like(x, p)


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """Return the ``m``-th integral of a polynomial.

    Args:
        p: coefficients.
        m: the order of integration.
        k: the constants of integration, a scalar or a list of length ``m``. Defaults to 0.

    Raises:
        ArgumentError: ``m`` is negative, or there are not ``m`` constants.

    Example:
        >>> dp.polyint([3.0, 2.0, 1.0]).asnumpy()
        array([1., 1., 1., 0.])
    """
    (x,) = _coefficients("polyint", p=p)
    if operator.index(m) < 0:
        raise ArgumentError(f"polyint: m must be at least 0; got {m}")
    constants = [0] if k is None else list(k) if isinstance(k, Sequence) else [k]
    if len(constants) == 1:
        constants *= m
    if len(constants) != m:
        raise ArgumentError(f"polyint: k must have m = {m} constants; got {len(constants)}")
    for constant in constants:
        powers = arange(x.size, 0, -1, **placement_keywords(x))
        divided = x / powers
        end = empty_on(placement_of(x), (1,), divided.dtype)
        end[...] = constant
        x = concat([divided, end])
    return _like(x, p)


class poly1d:
    """A polynomial of one variable that can be called, added, multiplied and differentiated.

    Args:
        coefficients: the coefficients, highest power first; leading zeros are removed.
        r: whether ``coefficients`` are the roots.
        variable: the name of the variable when it is printed.

    Example:
        >>> p = dp.poly1d([1.0, -3.0, 2.0])
        >>> p(dp.asarray([1.0, 3.0])).asnumpy()
        array([0., 2.])
        >>> p.deriv().coefficients.asnumpy()
        array([ 2., -3.])
    """

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    def __init__(self, coefficients: Any, r: bool = False, variable: str | None = None) -> None:
        self._coefficients: ndarray
        self.variable: str = variable or getattr(coefficients, "variable", None) or "x"
        if r:
            coefficients = poly(coefficients)
        (found,) = _coefficients("poly1d", coefficients=coefficients)
        trimmed = trim_zeros(found, "f")
        self._coefficients = trimmed if trimmed.size else found[:1] * 0

    @property
    def coefficients(self) -> ndarray:
        """The coefficients, highest power first."""
        return self._coefficients

    c = coef = coeffs = coefficients

    @property
    def order(self) -> int:
        """The degree of the polynomial."""
        return self._coefficients.size - 1

    o = order

    @property
    def roots(self) -> ndarray:
        """The roots."""
        return roots(self._coefficients)

    r = roots

    def __call__(self, x: Any) -> Any:
        return polyval(self._coefficients, x)

    def deriv(self, m: int = 1) -> poly1d:
        """Return the ``m``-th derivative."""
        return cast(poly1d, polyder(self, m))

    def integ(self, m: int = 1, k: Any = 0) -> poly1d:
        """Return the ``m``-th integral."""
        return cast(poly1d, polyint(self, m, k))

    def __len__(self) -> int:
        return self.order

    def __iter__(self) -> Any:
        return iter(self._coefficients)

    def __getitem__(self, power: int) -> Any:
        """Return the coefficient of a power."""
        return self._coefficients[self.order - power] if 0 <= power <= self.order else 0

    def __neg__(self) -> poly1d:
        return poly1d(-self._coefficients)

    def __pos__(self) -> poly1d:
        return self

    def __add__(self, other: Any) -> poly1d:
        return cast(poly1d, polyadd(self, other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> poly1d:
        return cast(poly1d, polysub(self, other))

    def __rsub__(self, other: Any) -> poly1d:
        return cast(poly1d, polysub(other, self))

    def __mul__(self, other: Any) -> poly1d:
        return cast(poly1d, polymul(self, other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, poly1d):
            return polydiv(self, other)
        return poly1d(self._coefficients / other)

    def __pow__(self, exponent: int) -> poly1d:
        result = poly1d(self._coefficients[:1] * 0 + 1)
        for _ in range(operator.index(exponent)):
            result = result * self
        return result

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, poly1d) or self.order != other.order:
            return False
        return bool((self._coefficients == other._coefficients).all())

    def __repr__(self) -> str:
        return f"poly1d({self._coefficients.tolist()})"

    def __str__(self) -> str:
        return str(np.poly1d(self._coefficients.asnumpy(), variable=self.variable))
