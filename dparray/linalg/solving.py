"""Equations: solutions, inverses, determinants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dparray._array.apply import astype_array, ops
from dparray._array.ndarray import ndarray
from dparray._array.operands import scalar_value
from dparray._functions import reductions
from dparray._functions.manipulation import (
    expand_dims,
    matrix_transpose,
    moveaxis,
    reshape,
)
from dparray._functions.operands import conjugate
from dparray._functions.products import matmul, tensordot, vecdot
from dparray._functions.public import public
from dparray._placement import common_placement
from dparray.exceptions import ShapeError
from dparray.linalg.decompositions import svd
from dparray.linalg.operands import compute_by_name, default_float, matrices

__all__ = [
    "SlogdetResult",
    "det",
    "inv",
    "lstsq",
    "matmul",
    "matrix_transpose",
    "pinv",
    "slogdet",
    "solve",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "vecdot",
]


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the absolute value of determinants.

    Example:
        >>> dp.linalg.slogdet(dp.eye(2)).logabsdet.shape
        ()
    """

    sign: ndarray
    logabsdet: ndarray


def det(x: Any, /) -> ndarray:
    """Return the determinants of square matrices.

    Raises:
        ShapeError: the matrices are not square.

    Example:
        >>> float(dp.linalg.det(dp.asarray([[2.0, 0.0], [0.0, 3.0]])))
        6.0
    """
    x = matrices("det", "x", x)
    return compute_by_name("det", (("x", x),))


def slogdet(x: Any, /) -> SlogdetResult:
    """Sign and logarithm of the absolute value of the determinants of square matrices.

    Raises:
        ShapeError: the matrices are not square.

    Example:
        >>> float(dp.linalg.slogdet(dp.eye(2)).sign)
        1.0
    """
    x = matrices("slogdet", "x", x)
    return SlogdetResult(*compute_by_name("slogdet", (("x", x),)))


@public()
def inv(x: Any, /) -> ndarray:
    """Return the inverses of square matrices.

    Raises:
        LinAlgError: a matrix is singular.
        ShapeError: the matrices are not square.

    Example:
        >>> dp.linalg.inv(dp.asarray([[2.0, 0.0], [0.0, 4.0]])).asnumpy()
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
    """
    x = matrices("inv", "x", x)
    return compute_by_name("inv", (("x", x),))


@public(operands=("x1", "x2"))
def solve(x1: Any, x2: Any, /) -> ndarray:
    """Return the solutions of `x1 @ x = x2`.

    Args:
        x1: square matrices of shape (..., M, M).
        x2: right sides: a vector of shape (M,), or matrices of shape (..., M, K).

    Raises:
        LinAlgError: a matrix is singular.
        ShapeError: the shapes do not match.

    Example:
        >>> dp.linalg.solve(dp.asarray([[2.0, 0.0], [0.0, 4.0]]), dp.asarray([2.0, 2.0])).asnumpy()
        array([1. , 0.5])
    """
    x1 = matrices("solve", "x1", x1)
    rows = x2.shape[-1] if x2.ndim == 1 else x2.shape[-2] if x2.ndim else -1
    if rows != x1.shape[-1]:
        raise ShapeError(f"solve: x2 of shape {x2.shape} has not the {x1.shape[-1]} rows of x1")
    return compute_by_name("solve", (("x1", x1), ("x2", x2)))


@public(operands=("x1", "x2"))
def lstsq(x1: Any, x2: Any, rcond: float | None = None) -> tuple[ndarray, ...]:
    """Return the least-squares solution of `x1 @ x = x2`.

    Args:
        x1: a matrix of shape (M, N).
        x2: right sides of shape (M,) or (M, K).
        rcond: singular values below `rcond` times the largest count as zero.

    Returns:
        Solution, residuals, rank (0-dimensional) and singular values.

    Raises:
        ShapeError: the shapes do not match.

    Example:
        >>> a = dp.asarray([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
        >>> dp.linalg.lstsq(a, dp.asarray([1.0, 2.0, 3.0]))[0].asnumpy()
        array([1., 2.])
    """
    x1 = matrices("lstsq", "x1", x1, square=False)
    if x1.ndim != 2 or x2.ndim not in (1, 2) or x2.shape[0] != x1.shape[0]:
        raise ShapeError(
            f"lstsq: shapes {x1.shape} and {x2.shape} do not fit; (M, N) and (M, K) do"
        )
    return tuple(compute_by_name("lstsq", (("x1", x1), ("x2", x2)), rcond=rcond))


@public()
def pinv(x: Any, /, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> ndarray:
    """Return the Moore-Penrose pseudo-inverses of matrices.

    Args:
        x: matrices of shape (..., M, N).
        rcond: NumPy's name for ``rtol``.
        hermitian: the matrices are Hermitian.
        rtol: singular values below `rtol` times the largest count as zero; a scalar or an array.

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    Example:
        >>> dp.linalg.pinv(dp.asarray([[2.0, 0.0], [0.0, 4.0]])).asnumpy()
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
    """
    tolerance = scalar_value(rcond if rtol is None else rtol)
    if isinstance(tolerance, ndarray):
        common_placement("pinv", (("x", x), ("rtol", tolerance)))
    x = matrices("pinv", "x", x, square=False)
    if x.dtype.kind not in "fc" and 0 not in x.shape[-2:]:
        x = astype_array(x, default_float(x))
    if x.size == 0:
        return matrix_transpose(x).copy()
    if tolerance is None:
        tolerance = max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)
    u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
    if isinstance(tolerance, ndarray) and tolerance.ndim:
        tolerance = expand_dims(tolerance, -1)
    largest = reductions.max(s, -1, keepdims=True)
    kept = ops.greater(s, ops.multiply(largest, tolerance))
    from_zero = ops.logical_not(kept)
    inverted = ops.reciprocal(s + from_zero) * kept
    scaled = matrix_transpose(conjugate(vh)) * expand_dims(inverted, -2)
    return matmul(scaled, matrix_transpose(conjugate(u)))


@public()
def tensorinv(x: Any, ind: int = 2) -> ndarray:
    """Return the inverse of an array with respect to :func:`tensordot` over its first ``ind`` axes.

    Raises:
        LinAlgError: it has none.
        ShapeError: the first ``ind`` axes have not as many elements as the others.

    Example:
        >>> dp.linalg.tensorinv(dp.eye(4).reshape(2, 2, 4), ind=2).shape
        (4, 2, 2)
    """
    if ind < 1:
        raise ShapeError(f"tensorinv: ind is {ind}; it must be 1 or more")
    rows = int(np.prod(x.shape[:ind]))
    if rows * rows != x.size:
        raise ShapeError(f"tensorinv: shape {x.shape} is not square when cut after axis {ind - 1}")
    return reshape(inv(reshape(x, (rows, rows))), x.shape[ind:] + x.shape[:ind])


@public(operands=("x1", "x2"))
def tensorsolve(x1: Any, x2: Any, axes: Sequence[int] | None = None) -> ndarray:
    """Return the solution of `tensordot(x1, x, x.ndim) = x2`.

    Args:
        x1: an array of shape `x2.shape` followed by the result's shape.
        x2: the right side.
        axes: axes of ``x1`` to move to the end first.

    Raises:
        LinAlgError: there is no solution.
        ShapeError: the shapes do not match.

    Example:
        >>> dp.linalg.tensorsolve(dp.eye(4).reshape(2, 2, 4), dp.ones((2, 2))).shape
        (4,)
    """
    if axes is not None:
        x1 = moveaxis(x1, tuple(axes), tuple(range(x1.ndim - len(axes), x1.ndim)))
    shape = x1.shape[x2.ndim :]
    if x1.size != x2.size * x2.size:
        raise ShapeError(f"tensorsolve: shapes {x1.shape} and {x2.shape} make no square system")
    matrix = reshape(x1, (x2.size, x2.size))
    return reshape(solve(matrix, reshape(x2, (x2.size,))), shape)
