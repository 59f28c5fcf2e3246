"""LU factors, by the names of ``scipy.linalg``: which the device's library computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray._array.allocation import empty_on
from dparray._array.apply import astype_array
from dparray._array.dispatch import compute
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._layout import broadcast_shapes
from dparray._placement import Placement
from dparray.exceptions import ArgumentError, ShapeError
from dparray.linalg.operands import default_float, matrices

__all__ = ["lu", "lu_factor", "lu_solve"]


def floating(x: ndarray) -> ndarray:
    return x if x.dtype.kind in "fc" else astype_array(x, default_float(x))


def _of_no_matrices(x: ndarray, *shapes: tuple[int, ...]) -> tuple[ndarray, ...]:
    """Return the factors of an empty stack, which SciPy rejects or gives other shapes.

    Those of one dimension are indices.
    """
    place, head = Placement(x.queue, x.usm_type), x.shape[:-2]
    dtypes = [np.dtype(np.int64) if len(shape) == 1 else x.dtype for shape in shapes]
    return tuple(
        empty_on(place, head + shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)
    )


def lu(
    x: Any,
    /,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> tuple[ndarray, ...]:
    """Return the factors of ``x = P @ L @ U``: a permutation, a unit lower and an upper triangular
    one.

    Args:
        x: matrices of shape (..., M, N); K is the lesser of M and N.
        permute_l: give two factors, ``P @ L`` and U.
        overwrite_a: lets SciPy use the memory of ``x``; here nothing is overwritten.
        check_finite: refuse infinities and NaN, for which the queue is waited for.
        p_indices: give P as row indices of shape (..., M), ``x = L[P] @ U``.

    Returns:
        P of shape (..., M, M), L of (..., M, K), U of (..., K, N), on the queue of ``x``.

    Raises:
        DTypeError: ``x`` is float16.
        ShapeError: ``x`` has fewer than two dimensions.
        ValueError: an element is no finite number, and ``check_finite``.

    Example:
        >>> p, l, u = dp.linalg.lu(dp.asarray([[0.0, 2.0], [4.0, 6.0]]))
        >>> (p @ l @ u).tolist()
        [[0.0, 2.0], [4.0, 6.0]]
    """
    x = floating(matrices("lu", "x", x, square=False))
    if 0 in x.shape[:-2]:
        m, n = x.shape[-2:]
        first = (m, min(m, n)) if permute_l else (m,) if p_indices else (m, m)
        middle = () if permute_l else ((m, min(m, n)),)
        return _of_no_matrices(x, first, *middle, (min(m, n), n))
    return compute(
        "lu",
        (("x", x),),
        library=lambda library, a: library.scipy.linalg.lu(
            a, permute_l=permute_l, check_finite=check_finite, p_indices=p_indices
        ),
    )


def lu_factor(
    x: Any, /, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[ndarray, ndarray]:
    """LU factors in one matrix, and the exchanges of rows: what :func:`lu_solve` takes.

    Args:
        x: matrices of shape (..., M, N).
        overwrite_a: lets SciPy use the memory of ``x``; here nothing is overwritten.
        check_finite: refuse infinities and NaN, for which the queue is waited for.

    Returns:
        A matrix with U in its upper triangle and L below it, without the ones on L's diagonal; and
        for each row that with which it was exchanged.

    Raises:
        DTypeError: ``x`` is float16.
        ShapeError: ``x`` has fewer than two dimensions.
        ValueError: an element is no finite number, and ``check_finite``.

    Example:
        >>> factors, rows = dp.linalg.lu_factor(dp.asarray([[0.0, 2.0], [4.0, 6.0]]))
        >>> factors.tolist(), rows.tolist()
        ([[4.0, 6.0], [0.0, 2.0]], [1, 1])
    """
    x = floating(matrices("lu_factor", "x", x, square=False))
    if 0 in x.shape[:-2]:
        factors, rows = _of_no_matrices(x, x.shape[-2:], (min(x.shape[-2:]),))
        return factors, rows
    return compute(
        "lu_factor",
        (("x", x),),
        library=lambda library, a: library.scipy.linalg.lu_factor(a, check_finite=check_finite),
    )


def lu_solve(
    lu_and_piv: tuple[ndarray, ndarray],
    b: Any,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> ndarray:
    """Solve ``a @ x = b`` with the factors of ``a`` that :func:`lu_factor` has given.

    Args:
        lu_and_piv: the factors of square matrices, and the exchanges of rows.
        b: the right-hand side, of shape (M,) or (..., M, K).
        overwrite_b: lets SciPy use the memory of ``b``; here nothing is overwritten.
        trans: 0 solves with ``a``, 1 with its transpose, 2 with its conjugate transpose.
        check_finite: refuse infinities and NaN, for which the queue is waited for.

    Returns:
        ``x``, of the shape of ``b``.

    Raises:
        ArgumentError: there is no such ``trans``, or ``lu_and_piv`` is no pair.
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the factors are not square, or ``b`` does not fit them.
        ValueError: an element is no finite number, and ``check_finite``.

    Example:
        >>> factors = dp.linalg.lu_factor(dp.asarray([[0.0, 2.0], [4.0, 6.0]]))
        >>> dp.linalg.lu_solve(factors, dp.asarray([2.0, 10.0])).tolist()
        [1.0, 1.0]
    """
    if not isinstance(lu_and_piv, tuple | list) or len(lu_and_piv) != 2:
        raise ArgumentError("lu_solve: lu_and_piv must be a pair, as from dp.linalg.lu_factor")
    if trans not in (0, 1, 2):
        raise ArgumentError(f"lu_solve: trans is {trans!r}; it is 0, 1 or 2")
    factors = floating(matrices("lu_solve", "lu", lu_and_piv[0]))
    rows = check_array("lu_solve", "piv", lu_and_piv[1])
    b = floating(check_array("lu_solve", "b", b, Placement(factors.queue, factors.usm_type)))
    if not b.ndim or b.shape[0 if b.ndim == 1 else -2] != factors.shape[-1]:
        raise ShapeError(
            f"lu_solve: b of shape {b.shape} does not fit factors of shape {factors.shape}"
        )
    if 0 in factors.shape[:-2]:
        shape = broadcast_shapes("lu_solve", (factors.shape[:-2], b.shape[:-2])) + b.shape[-2:]
        dtype = np.result_type(factors.dtype, b.dtype)
        return empty_on(Placement(factors.queue, factors.usm_type), shape, dtype)
    return compute(
        "lu_solve",
        (("lu", factors), ("piv", rows), ("b", b)),
        library=lambda library, a, p, c: library.scipy.linalg.lu_solve(
            (a, p), c, trans=trans, check_finite=check_finite
        ),
    )
