"""Special matrices, and parts of matrices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dparray import _dtypes, _layout
from dparray._array.allocation import chosen_placement, empty_on, is_made_by_host
from dparray._array.apply import astype_array, ops
from dparray._array.assignment import assign
from dparray._array.ndarray import ndarray
from dparray._array.nodes import positions
from dparray._driver import traits_of
from dparray._driver.interface import Queue
from dparray._evaluate import limits
from dparray._functions.conversion import placed
from dparray._functions.creation import checked_dtype, filled, may_wait, ones, zeros_like
from dparray._functions.elementwise import where
from dparray._functions.indexing import nonzero
from dparray._functions.manipulation import broadcast_to, diagonal, ravel
from dparray._functions.operands import placement_keywords
from dparray._functions.public import public
from dparray._functions.ranges import arange
from dparray._placement import Placement, placement_of
from dparray.exceptions import ShapeError

__all__ = [
    "diag",
    "diag_indices",
    "diag_indices_from",
    "diagflat",
    "eye",
    "identity",
    "mask_indices",
    "tri",
    "tril",
    "tril_indices",
    "tril_indices_from",
    "triu",
    "triu_indices",
    "triu_indices_from",
    "vander",
]


def eye(
    n_rows: int,
    n_cols: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Return a matrix with ones on diagonal ``k`` and zeros elsewhere; see :func:`empty`.

    Example:
        >>> dp.eye(2, dtype="int8").asnumpy()
        array([[1, 0],
               [0, 1]], dtype=int8)
    """
    shape = _layout.check_shape((n_rows, n_rows if n_cols is None else n_cols))
    k = operator.index(k)
    placement = chosen_placement(device, usm_type, sycl_queue)
    chosen = checked_dtype(dtype, placement)
    if order in ("C", "A", "K") and may_wait(placement, prod(shape), chosen):
        rows, columns = (positions(placement, shape, each) for each in ((1, 0), (0, 1)))
        is_one = (ops.add(rows, k) if k else rows) == columns
        return astype_array(is_one, chosen, copy=False)
    if order in ("C", "A", "K") and is_made_by_host(prod(shape), *placement):
        return ndarray._from_host_value(np.eye(shape[0], shape[1], k, chosen), *placement)
    array = filled(placement, shape, chosen, order, 0, "eye")
    row, column = max(0, -k), max(0, k)
    length = min(shape[0] - row, shape[1] - column)
    if length > 0:
        stride = array.strides[0] + array.strides[1]
        offset = array.offset + row * array.strides[0] + column * array.strides[1]
        assign(array._view((length,), (stride,), offset), 1)
    return array


def identity(n: int, dtype: DTypeLike | None = None, **place: Any) -> ndarray:
    """Return the identity matrix.

    Example:
        >>> dp.identity(2, dtype="int8").asnumpy()
        array([[1, 0],
               [0, 1]], dtype=int8)
    """
    return eye(n, dtype=dtype, **place)


def tri(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, **place: Any
) -> ndarray:
    """Return a matrix with ones up to diagonal ``k`` and zeros above it.

    Example:
        >>> dp.tri(2, dtype="int8").asnumpy()
        array([[1, 0],
               [1, 1]], dtype=int8)
    """
    return tril(ones((N, N if M is None else M), dtype, **place), k)


def tril_indices(n: int, k: int = 0, m: int | None = None, **place: Any) -> tuple[ndarray, ...]:
    """Return the indices of the elements of a matrix up to diagonal ``k``.

    Example:
        >>> [at.tolist() for at in dp.tril_indices(2)]
        [[0, 1, 1], [0, 0, 1]]
    """
    return nonzero(tri(n, m, k, "int8", **place))


def triu_indices(n: int, k: int = 0, m: int | None = None, **place: Any) -> tuple[ndarray, ...]:
    """Return the indices of the elements of a matrix from diagonal ``k`` on.

    Example:
        >>> [at.tolist() for at in dp.triu_indices(2)]
        [[0, 0, 1], [0, 1, 1]]
    """
    return nonzero(triu(ones((n, n if m is None else m), "int8", **place), k))


def _square(function: str, x: ndarray) -> ndarray:
    if x.ndim != 2:
        raise ShapeError(f"{function}: x must be a matrix; it has {x.ndim} dimensions")
    return x


@public()
def tril_indices_from(x: ndarray, k: int = 0) -> tuple[ndarray, ...]:
    """Return :func:`tril_indices` for a matrix, on its queue.

    Raises:
        ShapeError: ``x`` is not a matrix.

    Example:
        >>> x = dp.ones((2, 2))
        >>> x[dp.tril_indices_from(x)].size
        3
    """
    x = _square("tril_indices_from", x)
    place = placement_keywords(x)
    return tril_indices(x.shape[0], k, x.shape[1], **place)


@public()
def triu_indices_from(x: ndarray, k: int = 0) -> tuple[ndarray, ...]:
    """Return :func:`triu_indices` for a matrix, on its queue.

    Raises:
        ShapeError: ``x`` is not a matrix.

    Example:
        >>> x = dp.ones((2, 2))
        >>> x[dp.triu_indices_from(x, 1)].size
        1
    """
    x = _square("triu_indices_from", x)
    place = placement_keywords(x)
    return triu_indices(x.shape[0], k, x.shape[1], **place)


def mask_indices(
    n: int, mask_func: Callable[..., Any], k: Any = 0, **place: Any
) -> tuple[ndarray, ...]:
    """Return the indices that a function such as :func:`triu` keeps of an ``n`` by ``n`` matrix.

    Example:
        >>> rows, columns = dp.mask_indices(2, dp.triu)
        >>> rows.asnumpy(), columns.asnumpy()
        (array([0, 0, 1]), array([0, 1, 1]))
    """
    return nonzero(mask_func(ones((n, n), int, **place), k))


@public()
def diag_indices_from(x: ndarray) -> tuple[ndarray, ...]:
    """Return :func:`diag_indices` for an array of equal lengths, on its queue.

    Raises:
        ShapeError: ``x`` has fewer than two dimensions, or lengths that differ.

    Example:
        >>> x = dp.ones((2, 2))
        >>> x[dp.diag_indices_from(x)].size
        2
    """
    if x.ndim < 2 or len(set(x.shape)) != 1:
        raise ShapeError(
            f"diag_indices_from: x must have equal lengths along all axes; got shape {x.shape}"
        )
    return diag_indices(x.shape[0], x.ndim, **placement_keywords(x))


def diag_indices(n: int, ndim: int = 2, **place: Any) -> tuple[ndarray, ...]:
    """Return the indices of the diagonal of an array with ``n`` elements along each axis.

    Example:
        >>> [at.tolist() for at in dp.diag_indices(2)]
        [[0, 1], [0, 1]]
    """
    return (arange(n, **place),) * ndim


def diagflat(
    x: Any,
    k: int = 0,
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Return a matrix with the flattened elements of ``x`` on diagonal ``k``.

    It has the placement of ``x`` unless another one is given.

    Example:
        >>> dp.diagflat(dp.asarray([[1, 2]])).asnumpy()
        array([[1, 0],
               [0, 2]])
    """
    k = operator.index(k)
    return diag(ravel(placed("diagflat", "x", x, device, usm_type, sycl_queue)), k)


def vander(
    x: Any,
    N: int | None = None,
    increasing: bool = False,
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Return a Vandermonde matrix, whose columns are powers of a vector.

    It has the placement of ``x`` unless another one is given.

    Raises:
        ShapeError: ``x`` is not a vector.

    Example:
        >>> dp.vander(dp.asarray([2, 3])).asnumpy()
        array([[2, 1],
               [3, 1]])
    """
    x = placed("vander", "x", x, device, usm_type, sycl_queue)
    if x.ndim != 1:
        raise ShapeError(f"vander: x must be a vector; it has {x.ndim} dimensions")
    (columns,) = _layout.check_shape(x.size if N is None else N)
    result = empty_on(placement_of(x), (x.size, columns), _powers_dtype(x))
    power: ndarray | None = None
    for column in range(columns):
        at = column if increasing else columns - 1 - column
        if power is None:
            assign(result[:, at], 1)
            power = result[:, at].copy()
        else:
            power = power * x
            assign(result[:, at], power)
    return result


def _powers_dtype(x: ndarray) -> np.dtype[Any]:
    """Return NumPy's dtype: at least int64 for integers, double precision for floats."""
    if x.dtype.kind in "fc":
        wide = _dtypes.float64 if x.dtype.kind == "f" else _dtypes.complex128
        return _dtypes.fit_device(wide, traits_of(x.queue))
    return _dtypes.promote([x.dtype, _dtypes.int64])


def _is_small_diagonal(x: ndarray, k: Any) -> bool:
    """Return whether ``x`` is a vector, of which a small matrix is made."""
    return x.ndim == 1 and (x.size + abs(operator.index(k))) ** 2 <= limits.host_elements


@public(small=np.diag, takes=("k",), when=_is_small_diagonal, converts=False)
def diag(
    x: Any,
    k: int = 0,
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Return a matrix with the vector ``x`` on diagonal ``k``, or a view of that diagonal.

    It has the placement of ``x`` unless another one is given, to which ``x`` is copied.

    Raises:
        ShapeError: ``x`` has neither one nor two dimensions.

    Example:
        >>> dp.diag(dp.asarray([1, 2])).asnumpy()
        array([[1, 0],
               [0, 2]])
    """
    x = placed("diag", "x", x, device, usm_type, sycl_queue)
    k = operator.index(k)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError(f"diag: x must be a vector or a matrix; it has {x.ndim} dimensions")
    extent = x.size + abs(k)
    result = empty_on(placement_of(x), (extent, extent), x.dtype)
    assign(result, 0)
    assign(diagonal(result, k), x, "diag")
    return result


def _triangle(name: str, x: ndarray, k: int, keep_lower: bool) -> ndarray:
    """Return ``x`` with one triangle of each matrix zeroed, block of rows by block of rows."""
    if x.ndim == 0:
        raise ShapeError(f"{name}: x must have at least 1 dimension; give a vector or matrices")
    if x.ndim == 1:  # each row of the square matrix
        x = broadcast_to(x, (x.size, x.size))
    rows, columns = x.shape[-2:]
    placement = placement_of(x)
    row = _column_of_integers(placement, rows)
    column = _column_of_integers(placement, columns)
    bound = row + k  # the column of the diagonal in each row
    inside = column[None, :] <= bound[:, None] if keep_lower else column[None, :] >= bound[:, None]
    return where(broadcast_to(inside, x.shape), x, zeros_like(x, shape=()))


def _column_of_integers(placement: Placement, length: int) -> ndarray:
    return arange(length, dtype="int64", sycl_queue=placement.queue, usm_type=placement.usm_type)


def _has_plain_triangles(x: ndarray, k: Any) -> bool:
    return x.ndim >= 2 and type(k) is int


@public(small=np.tril, takes=("k",), when=_has_plain_triangles)
def tril(x: Any, /, k: int = 0) -> ndarray:
    """Return a copy with the elements of each matrix above diagonal ``k`` set to zero.

    A vector stands for the square matrix with this vector in every row.

    Raises:
        ShapeError: ``x`` has no dimensions.

    Example:
        >>> dp.tril(dp.asarray([[1, 2], [3, 4]])).asnumpy()
        array([[1, 0],
               [3, 4]])
    """
    return _triangle("tril", x, k, True)


@public(small=np.triu, takes=("k",), when=_has_plain_triangles)
def triu(x: Any, /, k: int = 0) -> ndarray:
    """Return a copy with the elements of each matrix below diagonal ``k`` set to zero.

    A vector stands for the square matrix with this vector in every row.

    Raises:
        ShapeError: ``x`` has no dimensions.

    Example:
        >>> dp.triu(dp.asarray([[1, 2], [3, 4]])).asnumpy()
        array([[1, 2],
               [0, 4]])
    """
    return _triangle("triu", x, k, False)
