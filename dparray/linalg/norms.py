"""Norms, condition numbers and ranks."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from dparray import _dtypes, _layout
from dparray._array.apply import astype_array, choose_elements, ops
from dparray._array.ndarray import ndarray
from dparray._array.operands import scalar_value
from dparray._functions import reductions
from dparray._functions.joining import stack
from dparray._functions.manipulation import expand_dims, moveaxis
from dparray._functions.public import public
from dparray._placement import common_placement
from dparray.exceptions import ArgumentError, ShapeError
from dparray.linalg.decompositions import eigvalsh, svdvals
from dparray.linalg.operands import default_float, matrices
from dparray.linalg.solving import inv

__all__ = [
    "cond",
    "matrix_norm",
    "matrix_rank",
    "norm",
    "vector_norm",
]


@public()
def matrix_rank(
    x: Any, /, tol: Any = None, hermitian: bool = False, *, rtol: Any = None
) -> ndarray:
    """Return the ranks of matrices: how many singular values count as more than zero (``int64``).

    Args:
        x: matrices of shape (..., M, N); a vector counts as a matrix of one row.
        tol: singular values up to `tol` count as zero.
        hermitian: the matrices are Hermitian.
        rtol: singular values up to `rtol` times the largest count as zero.

    Example:
        >>> int(dp.linalg.matrix_rank(dp.ones((3, 3))))
        1
    """
    tolerances = [(n, t) for n, t in (("tol", tol), ("rtol", rtol)) if isinstance(t, ndarray)]
    common_placement("matrix_rank", [("x", x), *tolerances])
    if x.ndim < 2:
        return astype_array(reductions.any(x), _dtypes.int64)
    x = matrices("matrix_rank", "x", x, square=False)
    s = ops.abs(eigvalsh(x)) if hermitian else svdvals(x)
    if s.shape[-1] == 0:
        return reductions.count_nonzero(s, -1)
    bound = scalar_value(tol)
    if bound is None:
        relative = scalar_value(rtol)
        if relative is None:
            relative = max(x.shape[-2:]) * float(np.finfo(s.dtype).eps)
        if isinstance(relative, ndarray) and relative.ndim:
            relative = expand_dims(relative, -1)
        bound = reductions.max(s, -1, keepdims=True) * relative
    elif isinstance(bound, ndarray) and bound.ndim:
        bound = expand_dims(bound, -1)
    return reductions.count_nonzero(s > bound, -1)


def cond(x: Any, p: Any = None) -> ndarray:
    """Return the condition numbers of matrices: norm times norm of the inverse; infinite where none
    is.

    Those of matrices with NaN are NaN, as NumPy's from 2.5 on; older ones raise.

    Args:
        x: matrices of shape (..., M, N), square unless ``p`` is ``None``, 2 or -2.
        p: the norm, as of :func:`matrix_norm`; ``None`` is 2.

    Raises:
        LinAlgError: ``x`` has no elements.
        ShapeError: ``x`` has fewer than two dimensions.

    Example:
        >>> float(dp.linalg.cond(dp.asarray([[4.0, 0.0], [0.0, 2.0]])))
        2.0
    """
    x = matrices("cond", "x", x, square=p not in (None, 2, -2))
    if not x.size and 0 in x.shape[-2:]:
        raise LinAlgError(f"cond: not defined for matrices without elements; x has shape {x.shape}")
    whole = x
    if p in (None, 2, -2, "nuc") and x.dtype.kind in "fc":  # singular values are of finite matrices
        is_finite = reductions.all(ops.isfinite(x), (-2, -1), keepdims=True)
        x = choose_elements("cond", is_finite, x, 0)
    if p in (None, 2, -2):
        s = svdvals(x)
        high, low = (0, -1) if p != -2 else (-1, 0)
        found = s[..., high] / s[..., low]
    else:
        found = matrix_norm(x, ord=p) * _norm_of_inverse(x, p)
    if x.dtype.kind not in "fc":
        is_singular = ops.isnan(found)
    else:
        is_nan = reductions.any(ops.isnan(whole), (-2, -1))
        is_singular = ops.logical_and(ops.isnan(found), ops.logical_not(is_nan))
    return choose_elements("cond", is_singular, math.inf, found)


def _norm_of_inverse(x: ndarray, p: Any) -> ndarray:
    """Return the norms of inverses, infinite for singular matrices."""
    if x.ndim == 2:
        try:
            return matrix_norm(inv(x), ord=p)
        except LinAlgError:
            norm_of_x = matrix_norm(x, ord=p)
            return (ops.abs(norm_of_x) + 1) * math.inf
    if not x.shape[0]:
        return matrix_norm(x, ord=p)
    return stack([_norm_of_inverse(x[at], p) for at in range(x.shape[0])])


def _euclidean(x: np.ndarray, axis: Any, keepdims: Any, ord: Any = None) -> Any:
    is_plain = ord is None or (type(ord) is int and ord == 2)
    if not is_plain or x.dtype.char == "e" or not (axis is None or type(axis) is int):
        raise ValueError
    if axis is None and x.dtype.kind == "f" and keepdims is False:
        values = x.ravel("K")
        return np.sqrt(values.dot(values))
    return np.linalg.norm(x, None, axis, bool(keepdims))


@public(small=_euclidean, takes=("axis", "keepdims", "ord"), mode="fold f")
def vector_norm(
    x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float | None = 2
) -> ndarray:
    """Return the norms of vectors along axes.

    Args:
        x: an array.
        axis: an axis or a tuple of axes; all of them if ``None``.
        keepdims: keep the axes, with extent 1.
        ord: the norm: a positive number p, ``inf`` (largest), ``-inf`` (smallest), 0 (how many are
            not zero); ``None`` is 2.

    Returns:
        A real array on the queue of ``x``.

    Raises:
        ArgumentError: ``ord`` is no real number.

    Example:
        >>> float(dp.linalg.vector_norm(dp.asarray([3.0, 4.0])))
        5.0
    """
    ord = 2 if ord is None else ord
    if isinstance(ord, bool) or not isinstance(ord, Real):
        raise ArgumentError(f"vector_norm: ord must be a real number; got {ord!r}")
    ord = scalar_value(ord)  # NumPy scalars must not widen the dtype of the computation.
    if x.dtype.kind not in "fc":
        x = astype_array(x, default_float(x))
    axes = tuple(range(x.ndim)) if axis is None else axis
    if ord == 2:
        squares = ops.square(x if x.dtype.kind == "f" else ops.abs(x))
        total = reductions.sum(squares, axes, keepdims=keepdims)
        return ops.sqrt(total)
    size = ops.abs(x)
    if ord == np.inf:
        return reductions.max(size, axes, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return reductions.min(size, axes, keepdims=keepdims)
    if ord == 0:
        return astype_array(reductions.count_nonzero(size, axes, keepdims=keepdims), size.dtype)
    if ord == 1:
        return reductions.sum(size, axes, keepdims=keepdims)
    total = reductions.sum(ops.pow(size, ord), axes, keepdims=keepdims)
    return ops.pow(total, 1 / ord)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> ndarray:
    """Return the norms of matrices (the last two axes).

    Args:
        x: matrices of shape (..., M, N).
        keepdims: keep the two axes, with extent 1.
        ord: ``"fro"``, ``"nuc"``, 1, -1, 2, -2, ``inf`` or ``-inf``.

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.
        ValueError: the norm is unknown.

    Example:
        >>> float(dp.linalg.matrix_norm(dp.asarray([[3.0, 0.0], [0.0, 4.0]])))
        5.0
    """
    x = matrices("matrix_norm", "x", x, square=False)
    if ord in ("fro", None):
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        added, compared = (-2, -1) if abs(ord) == 1 else (-1, -2)
        size = ops.abs(x if x.dtype.kind in "fc" else astype_array(x, default_float(x)))
        sums = reductions.sum(size, added, keepdims=True)
        result = _best(sums, compared, ord, keepdims=True)
    elif ord in ("nuc", 2, -2):
        s = svdvals(x)
        if ord == "nuc":
            result = reductions.sum(s, -1)
        else:
            result = _best(s, -1, ord)
        result = expand_dims(result, (-2, -1))
    else:
        raise ValueError(
            f"matrix_norm: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf; got {ord!r}"
        )
    return result if keepdims else result[..., 0, 0]


def _best(values: ndarray, axis: int, ord: Any, keepdims: bool = False) -> ndarray:
    """Return the largest of nonnegative values, 0 for none; the smallest for negative ``ord``."""
    if ord < 0:
        return reductions.min(values, axis, keepdims=keepdims)
    return reductions.max(values, axis, keepdims=keepdims, initial=0)


@public(small=_euclidean, takes=("axis", "keepdims"), mode="fold f")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> ndarray:
    """Compute the norm of the flattened array, of vectors along one axis or of matrices of two.

    Args:
        x: an array.
        ord: see :func:`vector_norm` or :func:`matrix_norm`; ``None`` is 2 for vectors and
            ``"fro"`` for matrices.
        axis: one axis for vectors, two for matrices; ``None`` flattens ``x`` where ``ord`` is not
            given.
        keepdims: keep the axes, with extent 1.

    Raises:
        ValueError: the norm is unknown.

    Example:
        >>> float(dp.linalg.norm(dp.asarray([[3.0, 0.0], [0.0, 4.0]])))
        5.0
    """
    if axis is None and (ord is None or x.ndim == 1):
        return vector_norm(x, axis=None, keepdims=keepdims, ord=2 if ord is None else ord)
    axes = tuple(range(x.ndim)) if axis is None else _layout.normalize_axes("norm", axis, x.ndim)
    if len(axes) == 1:
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ShapeError(f"norm: {len(axes)} axes; a norm is over one (vectors) or two (matrices)")
    result = matrix_norm(
        moveaxis(x, axes, (-2, -1)), keepdims=False, ord="fro" if ord is None else ord
    )
    return expand_dims(result, tuple(sorted(axes))) if keepdims else result
