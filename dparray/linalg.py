"""Linear algebra on matrices and stacks of matrices (the last two axes).

On a CPU device NumPy's LAPACK computes in the arrays' own memory, which is several times faster up
to some hundred rows; elsewhere, and on sub-devices for larger matrices, oneMKL does through dpnp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.apply import apply, astype_array
from dparray._array.assignment import delivered
from dparray._array.fresh import from_host
from dparray._array.libraries import call_neighbour, numpy_views
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_out, scalar_value
from dparray._functions import reductions
from dparray._functions.manipulation import (
    broadcast_to,
    expand_dims,
    matrix_transpose,
    moveaxis,
    reshape,
)
from dparray._functions.manipulation import diagonal as _diagonal_of_axes
from dparray._functions.matrices import eye
from dparray._functions.products import cross, matmul, outer, tensordot, vecdot
from dparray._graph.ops import OPS
from dparray._placement import common_placement
from dparray.exceptions import ArgumentError, DTypeError, HostConversionError, ShapeError
from dparray.memory.exchange import dpnp as neighbour

__all__ = [
    "EigResult",
    "EighResult",
    "LinAlgError",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]

LinAlgError = np.linalg.LinAlgError

#: On a sub-device, LAPACK on the calling thread works on one core up to about this many elements.
_ONE_CORE_ELEMENTS = 64 * 64


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors of general matrices.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.eig(dp.eye(2)).eigenvalues.shape
        (2,)
    """

    eigenvalues: ndarray
    eigenvectors: ndarray


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.eigh(dp.eye(2)).eigenvectors.shape
        (2, 2)
    """

    eigenvalues: ndarray
    eigenvectors: ndarray


class QRResult(NamedTuple):
    """An orthonormal and a triangular factor.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.qr(dp.eye(2)).R.shape
        (2, 2)
    """

    Q: ndarray
    R: ndarray


class SVDResult(NamedTuple):
    """Left singular vectors, singular values, conjugated right singular vectors as rows.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.svd(dp.eye(2)).S.shape
        (2,)
    """

    U: ndarray
    S: ndarray
    Vh: ndarray


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the absolute value of determinants.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.slogdet(dp.eye(2)).logabsdet.shape
        ()
    """

    sign: ndarray
    logabsdet: ndarray


def _matrices(function: str, name: str, x: Any, square: bool = True) -> ndarray:
    x = check_array(function, name, x)
    if x.ndim < 2:
        raise ShapeError(
            f"{function}: {name} has shape {x.shape}; give a matrix or a stack of them"
        )
    if square and x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{function}: {name} has shape {x.shape}; the matrices must be square")
    if x.dtype == _dtypes.float16:
        raise DTypeError(f"{function}: not defined for float16; write x.astype('float32')")
    return x


def _compute(
    function: str,
    by_numpy: Callable[..., Any],
    by_dpnp: Callable[..., Any],
    arrays: Sequence[tuple[str, ndarray]],
) -> Any:
    """The results of NumPy's function on a CPU device, of dpnp's on any other."""
    placement = common_placement(function, arrays)
    on_root = placement.queue.sycl_device.parent_device is None
    if on_root or all(x.size <= _ONE_CORE_ELEMENTS for _, x in arrays):
        views = numpy_views(*(x for _, x in arrays))
        if views is not None:
            try:
                with np.errstate(all="ignore"):
                    results = by_numpy(*views)
            except LinAlgError as error:
                raise LinAlgError(f"{function}: {error}") from None
            except ValueError as error:
                raise ShapeError(f"{function}: {error}") from None
            parts = results if isinstance(results, tuple) else (results,)
            moved = tuple(
                from_host(np.asarray(part), placement.queue, placement.usm_type) for part in parts
            )
            return moved if isinstance(results, tuple) else moved[0]
    arrays = [
        (name, x if x.dtype.kind in "fc" else astype_array(x, _default_float(x)))
        for name, x in arrays
    ]
    return call_neighbour(function, by_dpnp, arrays)


def _default_float(x: ndarray) -> np.dtype[Any]:
    return _dtypes.default_float(x.sycl_queue.sycl_device)


def cholesky(x: Any, /, *, upper: bool = False) -> ndarray:
    """The triangular factor L of Hermitian positive definite matrices, `x = L @ conj(L.T)`.

    Args:
        x: matrices of shape (..., M, M).
        upper: give the upper factor U, `x = conj(U.T) @ U`.

    Raises:
        LinAlgError: a matrix is not positive definite.
        ShapeError: the matrices are not square.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.cholesky(dp.asarray([[4.0, 0.0], [0.0, 9.0]])).asnumpy()
        array([[2., 0.],
               [0., 3.]])
    """
    x = _matrices("cholesky", "x", x)
    return _compute(
        "cholesky",
        lambda a: np.linalg.cholesky(a, upper=upper),
        lambda a: neighbour.linalg.cholesky(a, upper=upper),
        (("x", x),),
    )


def det(x: Any, /) -> ndarray:
    """The determinants of square matrices.

    Raises:
        ShapeError: the matrices are not square.

    Example:
        >>> import dparray as dp
        >>> float(dp.linalg.det(dp.asarray([[2.0, 0.0], [0.0, 3.0]])))
        6.0
    """
    x = _matrices("det", "x", x)
    return _compute("det", np.linalg.det, neighbour.linalg.det, (("x", x),))


def slogdet(x: Any, /) -> SlogdetResult:
    """Sign and logarithm of the absolute value of the determinants of square matrices.

    Raises:
        ShapeError: the matrices are not square.

    Example:
        >>> import dparray as dp
        >>> float(dp.linalg.slogdet(dp.eye(2)).sign)
        1.0
    """
    x = _matrices("slogdet", "x", x)
    return SlogdetResult(
        *_compute("slogdet", np.linalg.slogdet, neighbour.linalg.slogdet, (("x", x),))
    )


def inv(x: Any, /) -> ndarray:
    """The inverses of square matrices.

    Raises:
        LinAlgError: a matrix is singular.
        ShapeError: the matrices are not square.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.inv(dp.asarray([[2.0, 0.0], [0.0, 4.0]])).asnumpy()
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
    """
    x = _matrices("inv", "x", x)
    return _compute("inv", np.linalg.inv, neighbour.linalg.inv, (("x", x),))


def solve(x1: Any, x2: Any, /) -> ndarray:
    """The solutions of `x1 @ x = x2`.

    Args:
        x1: square matrices of shape (..., M, M).
        x2: right sides: a vector of shape (M,), or matrices of shape (..., M, K).

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        LinAlgError: a matrix is singular.
        ShapeError: the shapes do not fit.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.solve(dp.asarray([[2.0, 0.0], [0.0, 4.0]]), dp.asarray([2.0, 2.0])).asnumpy()
        array([1. , 0.5])
    """
    x1 = check_array("solve", "x1", x1)
    x2 = check_array("solve", "x2", x2)
    common_placement("solve", (("x1", x1), ("x2", x2)))
    x1 = _matrices("solve", "x1", x1)
    rows = x2.shape[-1] if x2.ndim == 1 else x2.shape[-2] if x2.ndim else -1
    if rows != x1.shape[-1]:
        raise ShapeError(f"solve: x2 of shape {x2.shape} has not the {x1.shape[-1]} rows of x1")
    return _compute("solve", np.linalg.solve, neighbour.linalg.solve, (("x1", x1), ("x2", x2)))


def lstsq(x1: Any, x2: Any, rcond: float | None = None) -> tuple[ndarray, ...]:
    """The least-squares solution of `x1 @ x = x2`.

    Args:
        x1: a matrix of shape (M, N).
        x2: right sides of shape (M,) or (M, K).
        rcond: singular values below `rcond` times the largest count as zero.

    Returns:
        Solution, residuals, rank (0-dimensional) and singular values.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not fit.

    Example:
        >>> import dparray as dp
        >>> a = dp.asarray([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
        >>> dp.linalg.lstsq(a, dp.asarray([1.0, 2.0, 3.0]))[0].asnumpy()
        array([1., 2.])
    """
    x1 = check_array("lstsq", "x1", x1)
    x2 = check_array("lstsq", "x2", x2)
    common_placement("lstsq", (("x1", x1), ("x2", x2)))
    x1 = _matrices("lstsq", "x1", x1, square=False)
    if x1.ndim != 2 or x2.ndim not in (1, 2) or x2.shape[0] != x1.shape[0]:
        raise ShapeError(
            f"lstsq: shapes {x1.shape} and {x2.shape} do not fit; (M, N) and (M, K) do"
        )
    found = _compute(
        "lstsq",
        lambda a, b: np.linalg.lstsq(a, b, rcond=rcond),
        lambda a, b: neighbour.linalg.lstsq(a, b, rcond=rcond),
        (("x1", x1), ("x2", x2)),
    )
    return tuple(found)


def qr(x: Any, /, mode: str = "reduced") -> Any:
    """The factors of `x = Q @ R`, Q with orthonormal columns, R upper triangular.

    Args:
        x: matrices of shape (..., M, N).
        mode: ``"reduced"`` (Q has min(M, N) columns), ``"complete"`` (M columns), ``"r"``
            (R alone) or ``"raw"`` (a tuple of LAPACK's reflectors, transposed, and their factors).

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    Example:
        >>> import dparray as dp
        >>> q, r = dp.linalg.qr(dp.ones((3, 2)))
        >>> q.shape, r.shape
        ((3, 2), (2, 2))
    """
    x = _matrices("qr", "x", x, square=False)
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ArgumentError(f"qr: mode {mode!r} is none of 'reduced', 'complete', 'r', 'raw'")
    found = _compute(
        "qr",
        lambda a: np.linalg.qr(a, mode=mode),  # type: ignore[call-overload]
        lambda a: neighbour.linalg.qr(a, mode=mode),
        (("x", x),),
    )
    return QRResult(*found) if isinstance(found, tuple) and mode != "raw" else found


def svd(
    x: Any, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """The singular value decomposition `x = U @ diag(S) @ Vh`.

    Args:
        x: matrices of shape (..., M, N).
        full_matrices: U and Vh are square; otherwise they have min(M, N) columns and rows.
        compute_uv: false gives the singular values alone.
        hermitian: the matrices are Hermitian.

    Raises:
        LinAlgError: the iteration does not converge.
        ShapeError: ``x`` has fewer than two dimensions.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.svd(dp.asarray([[3.0, 0.0], [0.0, 4.0]])).S.asnumpy()
        array([4., 3.])
    """
    x = _matrices("svd", "x", x, square=hermitian)
    found = _compute(
        "svd",
        lambda a: np.linalg.svd(a, full_matrices, compute_uv, hermitian),  # type: ignore[call-overload]
        lambda a: neighbour.linalg.svd(a, full_matrices, compute_uv, hermitian),
        (("x", x),),
    )
    return SVDResult(*found) if isinstance(found, tuple) else found


def svdvals(x: Any, /) -> ndarray:
    """The singular values of matrices, the largest first.

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.svdvals(dp.asarray([[3.0, 0.0], [0.0, 4.0]])).asnumpy()
        array([4., 3.])
    """
    return svd(x, compute_uv=False)


def eigh(x: Any, /, UPLO: str = "L") -> EighResult:
    """Eigenvalues (ascending) and eigenvectors of Hermitian matrices.

    Args:
        x: matrices of shape (..., M, M).
        UPLO: which triangle is read, ``"L"`` or ``"U"``.

    Raises:
        LinAlgError: the iteration does not converge.
        ShapeError: the matrices are not square.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.eigh(dp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.asnumpy()
        array([1., 2.])
    """
    x = _matrices("eigh", "x", x)
    return EighResult(
        *_compute(
            "eigh",
            lambda a: np.linalg.eigh(a, UPLO),  # type: ignore[call-overload]
            lambda a: neighbour.linalg.eigh(a, UPLO),
            (("x", x),),
        )
    )


def eigvalsh(x: Any, /, UPLO: str = "L") -> ndarray:
    """The eigenvalues of Hermitian matrices, ascending; arguments and errors as of :func:`eigh`.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.eigvalsh(dp.asarray([[2.0, 0.0], [0.0, 1.0]])).asnumpy()
        array([1., 2.])
    """
    x = _matrices("eigvalsh", "x", x)
    return _compute(
        "eigvalsh",
        lambda a: np.linalg.eigvalsh(a, UPLO),  # type: ignore[call-overload]
        lambda a: neighbour.linalg.eigvalsh(a, UPLO),
        (("x", x),),
    )


def eig(x: Any, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices; real if all of them are.

    Raises:
        LinAlgError: the iteration does not converge.
        ShapeError: the matrices are not square.

    Example:
        >>> import dparray as dp
        >>> dp.sort(dp.linalg.eig(dp.asarray([[2.0, 1.0], [0.0, 1.0]])).eigenvalues).asnumpy()
        array([1., 2.])
    """
    x = _matrices("eig", "x", x)
    return EigResult(*_compute("eig", np.linalg.eig, neighbour.linalg.eig, (("x", x),)))


def eigvals(x: Any, /) -> ndarray:
    """The eigenvalues of square matrices; errors as of :func:`eig`.

    Example:
        >>> import dparray as dp
        >>> dp.sort(dp.linalg.eigvals(dp.asarray([[2.0, 1.0], [0.0, 1.0]]))).asnumpy()
        array([1., 2.])
    """
    x = _matrices("eigvals", "x", x)
    return _compute("eigvals", np.linalg.eigvals, neighbour.linalg.eigvals, (("x", x),))


def pinv(x: Any, /, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> ndarray:
    """The Moore-Penrose pseudo-inverses of matrices.

    Args:
        x: matrices of shape (..., M, N).
        rcond: NumPy's name for ``rtol``.
        hermitian: the matrices are Hermitian.
        rtol: singular values below `rtol` times the largest count as zero; a scalar or an array.

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.pinv(dp.asarray([[2.0, 0.0], [0.0, 4.0]])).asnumpy()
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
    """
    x = check_array("pinv", "x", x)
    tolerance = scalar_value(rcond if rtol is None else rtol)
    if isinstance(tolerance, ndarray):
        common_placement("pinv", (("x", x), ("rtol", tolerance)))
    x = _matrices("pinv", "x", x, square=False)
    if x.dtype.kind not in "fc":
        x = astype_array(x, _default_float(x))
    if tolerance is None:
        tolerance = max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)
    if hermitian:
        values, vectors = eigh(x)
        parts: Any = (vectors, apply(OPS["abs"], values), matrix_transpose(_conjugate(vectors)))
        signs = apply(OPS["sign"], values)
    else:
        parts = svd(x, full_matrices=False)
        signs = None
    u, s, vh = parts
    if x.size == 0:
        return matrix_transpose(x).copy()
    if isinstance(tolerance, ndarray) and tolerance.ndim:
        tolerance = expand_dims(tolerance, -1)
    largest = reductions.max(s, -1, keepdims=True)
    kept = apply(OPS["greater"], s, apply(OPS["multiply"], largest, tolerance))
    from_zero = apply(OPS["logical_not"], kept)
    inverted = apply(
        OPS["multiply"], apply(OPS["reciprocal"], apply(OPS["add"], s, from_zero)), kept
    )
    if signs is not None:
        inverted = apply(OPS["multiply"], inverted, signs)
    scaled = apply(OPS["multiply"], matrix_transpose(_conjugate(vh)), expand_dims(inverted, -2))
    return matmul(scaled, matrix_transpose(_conjugate(u)))


def _conjugate(x: ndarray) -> ndarray:
    return apply(OPS["conj"], x) if x.dtype.kind == "c" else x


def matrix_rank(
    x: Any, /, tol: Any = None, hermitian: bool = False, *, rtol: Any = None
) -> ndarray:
    """The ranks of matrices: how many singular values count as more than zero (``int64``).

    Args:
        x: matrices of shape (..., M, N); a vector counts as a matrix of one row.
        tol: singular values up to `tol` count as zero.
        hermitian: the matrices are Hermitian.
        rtol: singular values up to `rtol` times the largest count as zero.

    Example:
        >>> import dparray as dp
        >>> int(dp.linalg.matrix_rank(dp.ones((3, 3))))
        1
    """
    x = check_array("matrix_rank", "x", x)
    tolerances = [(n, t) for n, t in (("tol", tol), ("rtol", rtol)) if isinstance(t, ndarray)]
    common_placement("matrix_rank", [("x", x), *tolerances])
    if x.ndim < 2:
        return astype_array(reductions.any(x), _dtypes.int64)
    x = _matrices("matrix_rank", "x", x, square=False)
    s = apply(OPS["abs"], eigvalsh(x)) if hermitian else svdvals(x)
    if s.shape[-1] == 0:
        return reductions.count_nonzero(s, -1)
    bound = scalar_value(tol)
    if bound is None:
        relative = scalar_value(rtol)
        if relative is None:
            relative = max(x.shape[-2:]) * float(np.finfo(s.dtype).eps)
        if isinstance(relative, ndarray) and relative.ndim:
            relative = expand_dims(relative, -1)
        bound = apply(OPS["multiply"], reductions.max(s, -1, keepdims=True), relative)
    elif isinstance(bound, ndarray) and bound.ndim:
        bound = expand_dims(bound, -1)
    return reductions.count_nonzero(apply(OPS["greater"], s, bound), -1)


def matrix_power(x: Any, n: int, /) -> ndarray:
    """Square matrices multiplied `n` times with themselves; negative powers invert.

    Raises:
        LinAlgError: the power is negative and a matrix is singular.
        ShapeError: the matrices are not square.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.matrix_power(dp.asarray([[1, 1], [0, 1]]), 3).asnumpy()
        array([[1, 3],
               [0, 1]])
    """
    x = _matrices("matrix_power", "x", x)
    if not isinstance(n, int):
        raise TypeError(f"matrix_power: n is {n!r}; it must be an integer")
    if n == 0:
        one = eye(x.shape[-1], dtype=x.dtype, sycl_queue=x.sycl_queue, usm_type=x.usm_type)
        return broadcast_to(one, x.shape).copy()
    if n < 0:
        x, n = inv(x), -n
    result = None
    while True:
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        if n == 0:
            break
        x = matmul(x, x)
    assert result is not None
    return result.copy() if result is x else result


def multi_dot(arrays: Sequence[Any], /, *, out: ndarray | None = None) -> ndarray:
    """The product of several matrices, in the order that takes the fewest multiplications.

    Args:
        arrays: two matrices or more; the first and the last may be vectors.
        out: an array for the result.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not fit.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.multi_dot([dp.ones((2, 3)), dp.ones((3, 4)), dp.ones(4)]).shape
        (2,)
    """
    if isinstance(arrays, np.ndarray):
        raise HostConversionError("multi_dot: arrays is a NumPy array; give a sequence of arrays")
    named = [
        (f"arrays[{position}]", check_array("multi_dot", f"arrays[{position}]", x))
        for position, x in enumerate(arrays)
    ]
    if len(named) < 2:
        raise ShapeError(f"multi_dot: {len(named)} arrays; give two or more")
    common_placement("multi_dot", named)
    check_out("multi_dot", named, out)
    factors = [x for _, x in named]
    starts_with_vector, ends_with_vector = factors[0].ndim == 1, factors[-1].ndim == 1
    if starts_with_vector:
        factors[0] = expand_dims(factors[0], 0)
    if ends_with_vector:
        factors[-1] = expand_dims(factors[-1], 1)
    if any(x.ndim != 2 for x in factors):
        raise ShapeError(f"multi_dot: shapes {[x.shape for _, x in named]}; give matrices")
    extents = [*(x.shape[0] for x in factors), factors[-1].shape[1]]
    product = _chain(factors, _cheapest_order(extents), 0, len(factors) - 1)
    if starts_with_vector:
        product = product[0]
    return delivered("multi_dot", product[..., 0] if ends_with_vector else product, out)


def _cheapest_order(extents: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to cut each run of a matrix chain, by dynamic programming."""
    count = len(extents) - 1
    cost = {(at, at): 0 for at in range(count)}
    cuts: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            cost[first, last], cuts[first, last] = min(
                (
                    cost[first, cut]
                    + cost[cut + 1, last]
                    + extents[first] * extents[cut + 1] * extents[last + 1],
                    cut,
                )
                for cut in range(first, last)
            )
    return cuts


def _chain(
    factors: Sequence[ndarray], cuts: dict[tuple[int, int], int], first: int, last: int
) -> ndarray:
    if first == last:
        return factors[first]
    cut = cuts[first, last]
    return matmul(_chain(factors, cuts, first, cut), _chain(factors, cuts, cut + 1, last))


def cond(x: Any, p: Any = None) -> ndarray:
    """The condition numbers of matrices: norm times norm of the inverse.

    Args:
        x: matrices of shape (..., M, N), square unless ``p`` is ``None``, 2 or -2.
        p: the norm, as of :func:`matrix_norm`; ``None`` is 2.

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    Example:
        >>> import dparray as dp
        >>> float(dp.linalg.cond(dp.asarray([[4.0, 0.0], [0.0, 2.0]])))
        2.0
    """
    x = _matrices("cond", "x", x, square=p not in (None, 2, -2))
    if p in (None, 2, -2):
        s = svdvals(x)
        high, low = (0, -1) if p != -2 else (-1, 0)
        return apply(OPS["divide"], s[..., high], s[..., low])
    return apply(OPS["multiply"], matrix_norm(x, ord=p), matrix_norm(inv(x), ord=p))


def diagonal(x: Any, /, *, offset: int = 0) -> ndarray:
    """A view of the diagonals of matrices (the last two axes).

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.diagonal(dp.asarray([[1, 2], [3, 4]])).asnumpy()
        array([1, 4])
    """
    x = check_array("diagonal", "x", x)
    if x.ndim < 2:
        raise ShapeError(f"diagonal: x has shape {x.shape}; give a matrix or a stack of them")
    return _diagonal_of_axes(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> ndarray:
    """The sums of the diagonals of matrices (the last two axes).

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    Example:
        >>> import dparray as dp
        >>> int(dp.linalg.trace(dp.asarray([[1, 2], [3, 4]])))
        5
    """
    return reductions.sum(diagonal(x, offset=offset), -1, dtype)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> ndarray:
    """The norms of vectors along axes.

    Args:
        x: an array.
        axis: an axis or a tuple of axes; all of them if ``None``.
        keepdims: keep the axes, with extent 1.
        ord: the norm: a positive number p, ``inf`` (largest), ``-inf`` (smallest), 0 (how many are
            not zero).

    Returns:
        A real array on the queue of ``x``.

    Raises:
        AxisError: there is no such axis.

    Example:
        >>> import dparray as dp
        >>> float(dp.linalg.vector_norm(dp.asarray([3.0, 4.0])))
        5.0
    """
    x = check_array("vector_norm", "x", x)
    if x.dtype.kind not in "fc":
        x = astype_array(x, _default_float(x))
    size = apply(OPS["abs"], x)
    axes = tuple(range(x.ndim)) if axis is None else axis
    if ord == np.inf:
        return reductions.max(size, axes, keepdims=keepdims)
    if ord == -np.inf:
        return reductions.min(size, axes, keepdims=keepdims)
    if ord == 0:
        return astype_array(reductions.count_nonzero(size, axes, keepdims=keepdims), size.dtype)
    if ord == 1:
        return reductions.sum(size, axes, keepdims=keepdims)
    if ord == 2:
        total = reductions.sum(apply(OPS["square"], size), axes, keepdims=keepdims)
        return apply(OPS["sqrt"], total)
    total = reductions.sum(apply(OPS["pow"], size, ord), axes, keepdims=keepdims)
    return apply(OPS["pow"], total, 1 / ord)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> ndarray:
    """The norms of matrices (the last two axes).

    Args:
        x: matrices of shape (..., M, N).
        keepdims: keep the two axes, with extent 1.
        ord: ``"fro"``, ``"nuc"``, 1, -1, 2, -2, ``inf`` or ``-inf``.

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.
        ValueError: there is no such norm.

    Example:
        >>> import dparray as dp
        >>> float(dp.linalg.matrix_norm(dp.asarray([[3.0, 0.0], [0.0, 4.0]])))
        5.0
    """
    x = _matrices("matrix_norm", "x", x, square=False)
    if ord in ("fro", None):
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        added, compared = (-2, -1) if abs(ord) == 1 else (-1, -2)
        size = apply(OPS["abs"], x if x.dtype.kind in "fc" else astype_array(x, _default_float(x)))
        sums = reductions.sum(size, added, keepdims=True)
        best = reductions.max if ord > 0 else reductions.min
        result = best(sums, compared, keepdims=True)
    elif ord in ("nuc", 2, -2):
        s = svdvals(x)
        if ord == "nuc":
            result = reductions.sum(s, -1)
        else:
            result = (reductions.max if ord == 2 else reductions.min)(s, -1)
        result = expand_dims(result, (-2, -1))
    else:
        raise ValueError(
            f"matrix_norm: ord {ord!r} is none of 'fro', 'nuc', 1, -1, 2, -2, inf, -inf"
        )
    return result if keepdims else result[..., 0, 0]


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> ndarray:
    """NumPy's norm: of the flattened array, of vectors along one axis or of matrices of two.

    Args:
        x: an array.
        ord: as of :func:`vector_norm` or :func:`matrix_norm`; ``None`` is 2 for vectors and
            ``"fro"`` for matrices.
        axis: one axis for vectors, two for matrices; ``None`` flattens ``x`` where ``ord`` is not
            given.
        keepdims: keep the axes, with extent 1.

    Raises:
        AxisError: there is no such axis.
        ValueError: there is no such norm.

    Example:
        >>> import dparray as dp
        >>> float(dp.linalg.norm(dp.asarray([[3.0, 0.0], [0.0, 4.0]])))
        5.0
    """
    x = check_array("norm", "x", x)
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


def tensorinv(x: Any, ind: int = 2) -> ndarray:
    """The inverse of an array with respect to :func:`tensordot` over its first ``ind`` axes.

    Raises:
        LinAlgError: it has none.
        ShapeError: the first ``ind`` axes have not as many elements as the others.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.tensorinv(dp.eye(4).reshape(2, 2, 4), ind=2).shape
        (4, 2, 2)
    """
    x = check_array("tensorinv", "x", x)
    if ind < 1:
        raise ShapeError(f"tensorinv: ind is {ind}; it must be 1 or more")
    rows = int(np.prod(x.shape[:ind]))
    if rows * rows != x.size:
        raise ShapeError(f"tensorinv: shape {x.shape} is not square when cut after axis {ind - 1}")
    return reshape(inv(reshape(x, (rows, rows))), x.shape[ind:] + x.shape[:ind])


def tensorsolve(x1: Any, x2: Any, axes: Sequence[int] | None = None) -> ndarray:
    """The solution of `tensordot(x1, x, x.ndim) = x2`.

    Args:
        x1: an array of shape `x2.shape` followed by the result's shape.
        x2: the right side.
        axes: axes of ``x1`` to move to the end first.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        LinAlgError: there is no solution.
        ShapeError: the shapes do not fit.

    Example:
        >>> import dparray as dp
        >>> dp.linalg.tensorsolve(dp.eye(4).reshape(2, 2, 4), dp.ones((2, 2))).shape
        (4,)
    """
    x1 = check_array("tensorsolve", "x1", x1)
    x2 = check_array("tensorsolve", "x2", x2)
    common_placement("tensorsolve", (("x1", x1), ("x2", x2)))
    if axes is not None:
        x1 = moveaxis(x1, tuple(axes), tuple(range(x1.ndim - len(axes), x1.ndim)))
    shape = x1.shape[x2.ndim :]
    if x1.size != x2.size * x2.size:
        raise ShapeError(f"tensorsolve: shapes {x1.shape} and {x2.shape} make no square system")
    matrix = reshape(x1, (x2.size, x2.size))
    return reshape(solve(matrix, reshape(x2, (x2.size,))), shape)
