"""Equations with triangular matrices and Cholesky factors, by the names of ``scipy.linalg``."""

from __future__ import annotations

from typing import Any

from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_arrays
from dparray._functions.manipulation import (
    broadcast_to,
    diagonal,
    expand_dims,
    matrix_transpose,
    squeeze,
)
from dparray._functions.matrices import eye, triu
from dparray._functions.operands import conjugate, placement_keywords
from dparray._functions.ranges import arange
from dparray._layout import broadcast_shapes
from dparray.exceptions import ArgumentError, ShapeError
from dparray.linalg.decompositions import cholesky
from dparray.linalg.factors import floating, lu_solve
from dparray.linalg.operands import LinAlgError, check_numbers, matrices, refuse_half

__all__ = ["cho_factor", "cho_solve", "solve_triangular"]

_TRANSPOSITIONS = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


def solve_triangular(
    x1: Any,
    x2: Any,
    /,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> ndarray:
    """Solve ``x1 @ x = x2`` by substitution, where ``x1`` is triangular.

    Args:
        x1: square matrices of shape (..., M, M). The elements of the other triangle are not read.
        x2: right sides: a vector of shape (M,), or matrices of shape (..., M, K).
        trans: 0 or ``"N"`` solves with ``x1``, 1 or ``"T"`` with its transpose, 2 or ``"C"`` with
            its conjugate transpose.
        lower: use the lower triangle of ``x1``; the default is the upper one.
        unit_diagonal: take the elements on the diagonal as 1, without reading them.
        overwrite_b: lets SciPy use the memory of ``x2``; here nothing is overwritten.
        check_finite: raise for infinities and NaN.

    The diagonal is read first, so the queue is waited for.

    Raises:
        ArgumentError: ``trans`` is invalid.
        DTypeError: an array is float16.
        ExecutionPlacementError: the arrays are on different queues.
        LinAlgError: an element on the diagonal is 0.
        ShapeError: the matrices are not square, or the shapes do not fit.
        ValueError: an element is infinite or NaN, and ``check_finite``.

    Example:
        >>> lower = dp.asarray([[2.0, 0.0], [1.0, 4.0]])
        >>> dp.linalg.solve_triangular(lower, dp.asarray([2.0, 9.0]), lower=True).tolist()
        [1.0, 2.0]
    """
    if trans not in _TRANSPOSITIONS:
        raise ArgumentError(
            "solve_triangular: trans must be 0, 1 or 2 (or 'N', 'T', 'C'), "
            f"not {trans!r}; write trans=0"
        )
    given = (("x1", x1), ("x2", x2))
    trans = _TRANSPOSITIONS[trans]
    return _solved("solve_triangular", given, trans, lower, unit_diagonal, check_finite)


def _solved(
    function: str,
    given: tuple[tuple[str, Any], tuple[str, Any]],
    trans: int,
    lower: bool,
    unit_diagonal: bool,
    check_finite: bool,
) -> ndarray:
    """Solve with one triangle of a matrix; ``operands`` has the matrix and the right side."""
    x1, x2 = check_arrays(function, *given)
    (first, _), (second, _) = given
    x1, x2 = floating(matrices(function, first, x1)), floating(x2)
    refuse_half(function, second, x2)
    size = x1.shape[-1]
    if not x2.ndim or x2.shape[0 if x2.ndim == 1 else -2] != size:
        raise ShapeError(
            f"{function}: {second} of shape {x2.shape} does not fit {first} of shape {x1.shape}; "
            f"its {'length' if x2.ndim < 2 else 'last axis but one'} must be {size}"
        )
    # An upper triangular matrix has as LU factors the unit matrix and itself, without row
    # exchanges.
    factors = x1
    if lower:
        factors = matrix_transpose(x1)
        if trans == 2:
            factors = conjugate(factors)
        trans = int(trans == 0)
    factors = triu(factors, k=1) + _unit(x1, size) if unit_diagonal else triu(factors)
    if check_finite:
        check_numbers(function, first, factors)
        check_numbers(function, second, x2)
    if not unit_diagonal and bool((diagonal(factors, 0, -2, -1) == 0).any()):
        raise LinAlgError(
            f"{function}: the matrix is singular: an element on its diagonal is 0. "
            "dp.linalg.lstsq gives the solution of least norm"
        )
    stack = broadcast_shapes(function, [x1.shape[:-2], x2.shape[:-2]])
    exchanges = broadcast_to(arange(size, **placement_keywords(x1)), (*stack, size))
    factors = broadcast_to(factors, (*stack, size, size))
    if x2.ndim > 1:
        x2 = broadcast_to(x2, (*stack, *x2.shape[-2:]))
    return lu_solve((factors, exchanges), x2, trans, check_finite=False)


def _unit(x: ndarray, size: int) -> ndarray:
    return eye(size, dtype=x.dtype, **placement_keywords(x))


def cho_factor(
    x: Any,
    /,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[ndarray, bool]:
    """Return the Cholesky factor of Hermitian positive definite matrices for :func:`cho_solve`.

    Args:
        x: matrices of shape (..., M, M).
        lower: return the lower factor; the default is the upper one.
        overwrite_a: lets SciPy use the memory of ``x``; here nothing is overwritten.
        check_finite: raise for infinities and NaN, for which the queue is waited for.

    Returns:
        The factor, whose other triangle is 0 (SciPy leaves arbitrary numbers there), and ``lower``.

    Raises:
        LinAlgError: a matrix is not positive definite.
        ShapeError: the matrices are not square.
        ValueError: an element is infinite or NaN, and ``check_finite``.

    Example:
        >>> a = dp.asarray([[4.0, 2.0], [2.0, 5.0]])
        >>> dp.linalg.cho_factor(a, lower=True)[0].tolist()
        [[2.0, 0.0], [1.0, 2.0]]
    """
    x = matrices("cho_factor", "x", x)
    if check_finite:
        check_numbers("cho_factor", "x", x)
    return cholesky(x, upper=not lower), lower


def cho_solve(
    c_and_lower: tuple[ndarray, bool],
    b: Any,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> ndarray:
    """Solve ``a @ x = b`` with the Cholesky factor of ``a``.

    Args:
        c_and_lower: the result of :func:`cho_factor`.
        b: the right-hand side, of shape (M,) or (..., M, K).
        overwrite_b: lets SciPy use the memory of ``b``; here nothing is overwritten.
        check_finite: raise for infinities and NaN.

    The diagonal is read first, so the queue is waited for.

    Returns:
        ``x``, of the shape of ``b``.

    Raises:
        ArgumentError: ``c_and_lower`` is not a pair.
        ExecutionPlacementError: the arrays are on different queues.
        LinAlgError: an element on the factor's diagonal is 0.
        ShapeError: the factor is not square, or ``b`` does not fit it.
        ValueError: an element is infinite or NaN, and ``check_finite``.

    Example:
        >>> factor = dp.linalg.cho_factor(dp.asarray([[4.0, 2.0], [2.0, 5.0]]))
        >>> dp.linalg.cho_solve(factor, dp.asarray([6.0, 7.0])).tolist()
        [1.0, 1.0]
    """
    if not isinstance(c_and_lower, tuple | list) or len(c_and_lower) != 2:
        raise ArgumentError(
            "cho_solve: c_and_lower must be a pair of a factor and a Boolean; "
            "write dp.linalg.cho_solve(dp.linalg.cho_factor(a), b)"
        )
    factor, lower = c_and_lower
    b = check_array("cho_solve", "b", b)
    first, second = (0, 2) if lower else (2, 0)
    half = _solved("cho_solve", (("c", factor), ("b", b)), first, bool(lower), False, check_finite)
    columns = expand_dims(half, -1) if b.ndim == 1 else half
    found = _solved("cho_solve", (("c", factor), ("b", columns)), second, bool(lower), False, False)
    return squeeze(found, -1) if b.ndim == 1 else found
