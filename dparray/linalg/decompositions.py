"""Decompositions, eigenvalues and singular values."""

from __future__ import annotations

from typing import Any, NamedTuple

from dparray._array.apply import ops
from dparray._array.ndarray import ndarray
from dparray._functions.indexing import take_along_axis
from dparray._functions.manipulation import expand_dims, matrix_transpose
from dparray._functions.operands import conjugate
from dparray._functions.public import public
from dparray._functions.sorting import argsort, sort
from dparray.exceptions import ArgumentError
from dparray.linalg.operands import compute_by_name, matrices

__all__ = [
    "EigResult",
    "EighResult",
    "QRResult",
    "SVDResult",
    "cholesky",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "qr",
    "svd",
    "svdvals",
]


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors of general matrices.

    Example:
        >>> dp.linalg.eig(dp.eye(2)).eigenvalues.shape
        (2,)
    """

    eigenvalues: ndarray
    eigenvectors: ndarray


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Example:
        >>> dp.linalg.eigh(dp.eye(2)).eigenvectors.shape
        (2, 2)
    """

    eigenvalues: ndarray
    eigenvectors: ndarray


class QRResult(NamedTuple):
    """An orthonormal and a triangular factor.

    Example:
        >>> dp.linalg.qr(dp.eye(2)).R.shape
        (2, 2)
    """

    Q: ndarray
    R: ndarray


class SVDResult(NamedTuple):
    """Left singular vectors, singular values, conjugated right singular vectors as rows.

    Example:
        >>> dp.linalg.svd(dp.eye(2)).S.shape
        (2,)
    """

    U: ndarray
    S: ndarray
    Vh: ndarray


def cholesky(x: Any, /, *, upper: bool = False) -> ndarray:
    """Return the triangular factor L of Hermitian positive definite matrices, `x = L @ conj(L.T)`.

    Args:
        x: matrices of shape (..., M, M).
        upper: give the upper factor U, `x = conj(U.T) @ U`.

    Raises:
        LinAlgError: a matrix is not positive definite.
        ShapeError: the matrices are not square.

    Example:
        >>> dp.linalg.cholesky(dp.asarray([[4.0, 0.0], [0.0, 9.0]])).asnumpy()
        array([[2., 0.],
               [0., 3.]])
    """
    x = matrices("cholesky", "x", x)
    return compute_by_name("cholesky", (("x", x),), upper=upper)


def qr(x: Any, /, mode: str = "reduced") -> Any:
    """Return the factors of `x = Q @ R`, Q with orthonormal columns, R upper triangular.

    Args:
        x: matrices of shape (..., M, N).
        mode: ``"reduced"`` (Q has min(M, N) columns), ``"complete"`` (M columns), ``"r"``
            (R alone) or ``"raw"`` (a tuple of LAPACK's reflectors, transposed, and their factors).

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    Example:
        >>> q, r = dp.linalg.qr(dp.ones((3, 2)))
        >>> q.shape, r.shape
        ((3, 2), (2, 2))
    """
    x = matrices("qr", "x", x, square=False)
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ArgumentError(f"qr: mode must be 'reduced', 'complete', 'r' or 'raw'; got {mode!r}")
    found = compute_by_name("qr", (("x", x),), mode=mode)
    return QRResult(*found) if isinstance(found, tuple) and mode != "raw" else found


def svd(
    x: Any, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Return the singular value decomposition `x = U @ diag(S) @ Vh`.

    Args:
        x: matrices of shape (..., M, N).
        full_matrices: U and Vh are square; otherwise they have min(M, N) columns and rows.
        compute_uv: false gives the singular values alone.
        hermitian: the matrices are Hermitian.

    Raises:
        LinAlgError: the iteration does not converge.
        ShapeError: ``x`` has fewer than two dimensions.

    Example:
        >>> dp.linalg.svd(dp.asarray([[3.0, 0.0], [0.0, 4.0]])).S.asnumpy()
        array([4., 3.])
    """
    x = matrices("svd", "x", x, square=hermitian)
    if hermitian:
        return _svd_of_hermitian(x, compute_uv)
    options = {"full_matrices": full_matrices, "compute_uv": compute_uv}
    found = compute_by_name("svd", (("x", x),), **options)
    return SVDResult(*found) if isinstance(found, tuple) else found


def _svd_of_hermitian(x: ndarray, compute_uv: bool) -> Any:
    """Compute singular values of Hermitian matrices: the sizes of their eigenvalues."""
    if not compute_uv:
        return sort(ops.abs(eigvalsh(x)))[..., ::-1]
    values, vectors = eigh(x)
    sizes = ops.abs(values)
    largest_first = argsort(sizes)[..., ::-1]
    u = take_along_axis(vectors, expand_dims(largest_first, -2), -1)
    signs = take_along_axis(ops.sign(values), largest_first, -1)
    turned = u * expand_dims(signs, -2)
    s = take_along_axis(sizes, largest_first, -1)
    return SVDResult(u, s, matrix_transpose(conjugate(turned)))


@public()
def svdvals(x: Any, /) -> ndarray:
    """Return the singular values of matrices, the largest first.

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    Example:
        >>> dp.linalg.svdvals(dp.asarray([[3.0, 0.0], [0.0, 4.0]])).asnumpy()
        array([4., 3.])
    """
    return svd(x, compute_uv=False)


def eigh(x: Any, /, UPLO: str = "L") -> EighResult:
    """Compute eigenvalues (ascending) and eigenvectors of Hermitian matrices.

    Args:
        x: matrices of shape (..., M, M).
        UPLO: which triangle is read, ``"L"`` or ``"U"``.

    Raises:
        LinAlgError: the iteration does not converge.
        ShapeError: the matrices are not square.

    Example:
        >>> dp.linalg.eigh(dp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.asnumpy()
        array([1., 2.])
    """
    x = matrices("eigh", "x", x)
    return EighResult(*compute_by_name("eigh", (("x", x),), UPLO=UPLO))


def eigvalsh(x: Any, /, UPLO: str = "L") -> ndarray:
    """Return the eigenvalues of Hermitian matrices, ascending; arguments and errors as of
    :func:`eigh`.

    Example:
        >>> dp.linalg.eigvalsh(dp.asarray([[2.0, 0.0], [0.0, 1.0]])).asnumpy()
        array([1., 2.])
    """
    x = matrices("eigvalsh", "x", x)
    return compute_by_name("eigvalsh", (("x", x),), UPLO=UPLO)


def eig(x: Any, /) -> EigResult:
    """Compute eigenvalues and eigenvectors of square matrices.

    They are complex where an eigenvalue is; where all are real, as NumPy has them: real before its
    release 2.5, complex since.

    Raises:
        LinAlgError: the iteration does not converge.
        ShapeError: the matrices are not square.

    Example:
        >>> found = dp.linalg.eig(dp.asarray([[2.0, 1.0], [0.0, 1.0]]))
        >>> dp.sort(dp.real(found.eigenvalues)).asnumpy()
        array([1., 2.])
    """
    x = matrices("eig", "x", x)
    return EigResult(*compute_by_name("eig", (("x", x),)))


def eigvals(x: Any, /) -> ndarray:
    """Return the eigenvalues of square matrices; for errors see :func:`eig`.

    Example:
        >>> dp.sort(dp.real(dp.linalg.eigvals(dp.asarray([[2.0, 1.0], [0.0, 1.0]])))).asnumpy()
        array([1., 2.])
    """
    x = matrices("eigvals", "x", x)
    return compute_by_name("eigvals", (("x", x),))
