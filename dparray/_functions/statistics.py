"""Statistics: covariance and correlation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dparray import _dtypes
from dparray._array.apply import astype_array, ops
from dparray._array.ndarray import ndarray
from dparray._driver import traits_of
from dparray._functions.joining import joined
from dparray._functions.manipulation import (
    expand_dims,
    reshape,
)
from dparray._functions.moments import average
from dparray._functions.operands import vector_of
from dparray._functions.products import matmul
from dparray._functions.public import public
from dparray._functions.reductions import any as any_of
from dparray._functions.reductions import sum as sum_of
from dparray._placement import common_placement
from dparray.exceptions import ArgumentError, DTypeError, ShapeError

__all__ = [
    "corrcoef",
    "cov",
]

Axis = int | Sequence[int] | None


@public()
def cov(
    x: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """Return the covariance matrix of variables.

    Args:
        x: a matrix with one variable in each row, or a vector.
        y: additional variables, in the same format.
        rowvar: false if each column is a variable.
        bias: whether to divide by the number of observations instead of one less.
        ddof: the number subtracted from the number of observations in the divisor; overrides
            ``bias``.
        fweights: the frequency of each observation, a vector of integers.
        aweights: the weight of each observation, a vector.
        dtype: the dtype to compute in; by default double precision, if the device supports it.

    Raises:
        ArgumentError: a weight is negative.
        DTypeError: ``fweights`` are not integers.
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: ``x`` has more than two dimensions, or the weights have the wrong shape.

    Example:
        >>> dp.cov(dp.asarray([[1.0, 3.0], [2.0, 6.0]])).asnumpy()
        array([[2., 4.],
               [4., 8.]])
    """
    given = (("fweights", fweights), ("aweights", aweights))
    variables, weights = _variables("cov", x, y, rowvar, dtype, given)
    return _covariance(variables, weights, (0 if bias else 1) if ddof is None else ddof)


def _covariance(variables: ndarray, weights: dict[str, ndarray], ddof: float) -> ndarray:
    """Return the covariance matrix of rows, whose columns may have weights."""
    together: Any = None
    for each in weights.values():
        together = each if together is None else together * each
    count: Any = float(variables.shape[1])
    if together is not None:
        count = float(sum_of(together))
        if ddof and "aweights" in weights:
            ddof = ddof * float(sum_of(together * weights["aweights"])) / count
        traits = traits_of(variables.queue)
        together = astype_array(together, _dtypes.default_float(traits), copy=False)
    centred = variables - average(variables, 1, together, keepdims=True)
    # whatever the dtype of the weights
    centred = astype_array(centred, variables.dtype, copy=False)
    turned = (centred if together is None else centred * together).T
    if turned.dtype.kind == "c":
        turned = ops.conj(turned)
    products = matmul(centred, turned) / max(count - ddof, 0.0)
    return products[0, 0] if products.shape == (1, 1) else products


def _variables(
    function: str,
    x: ndarray,
    y: Any,
    rowvar: bool,
    dtype: Any,
    weights: Sequence[tuple[str, Any]] = (),
) -> tuple[ndarray, dict[str, ndarray]]:
    """Return the variables as rows of one matrix, and the given weights of its columns."""
    named = [("x", x)]
    if y is not None:
        named.append(("y", vector_of(function, x, "y", y)))
    weighing = {
        name: vector_of(function, x, name, value) for name, value in weights if value is not None
    }
    placement = common_placement(function, [*named, *weighing.items()])
    rows = []
    for name, values in named:
        if values.ndim > 2:
            raise ShapeError(
                f"{function}: {name} must have 1 or 2 dimensions; it has {values.ndim}"
            )
        matrix = reshape(values, (1, -1)) if values.ndim < 2 else values
        # NumPy accepts a single row of additional variables as it is.
        is_row = rowvar or values.ndim < 2 or (name == "y" and values.shape[0] == 1)
        rows.append(matrix if is_row else matrix.T)
    if len({matrix.shape[1] for matrix in rows}) != 1:
        raise ShapeError(f"{function}: x and y have different numbers of observations")
    for name, values in weighing.items():
        if values.shape != rows[0].shape[1:]:
            raise ShapeError(
                f"{function}: {name} of shape {values.shape} for {rows[0].shape[1]} observations"
            )
        if name == "fweights" and values.dtype.kind not in "iu":
            raise DTypeError(f"{function}: fweights must be integers, not {values.dtype}")
        if bool(any_of(values < 0)):
            raise ArgumentError(f"{function}: {name} must not be negative")
    if dtype is None:
        loop_dtype = _dtypes.promote([*(matrix.dtype for matrix in rows), np.dtype("float64")])
        loop_dtype = _dtypes.fit_device(loop_dtype, traits_of(placement.queue))
    else:
        loop_dtype = _dtypes.check_device(_dtypes.as_dtype(dtype), traits_of(placement.queue))
    if len(rows) == 1:
        return astype_array(rows[0], loop_dtype, copy=False), weighing
    together = [("", matrix) for matrix in rows]
    return joined(function, together, 0, dtype=loop_dtype, casting="unsafe"), weighing


@public()
def corrcoef(
    x: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: Any = None,
    ddof: Any = None,
    *,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """Return the correlation coefficients of variables; see :func:`cov` for arguments and errors.

    ``bias`` and ``ddof`` are ignored.

    Example:
        >>> dp.corrcoef(dp.asarray([[1.0, 3.0], [2.0, 6.0]])).asnumpy()
        array([[1., 1.],
               [1., 1.]])
    """
    products = _covariance(*_variables("corrcoef", x, y, rowvar, dtype), 1)
    if products.ndim == 0:
        return products / products
    spread = ops.sqrt(products.diagonal().real)
    scaled = products / expand_dims(spread, 1)
    scaled = scaled / expand_dims(spread, 0)
    if scaled.dtype.kind == "c":
        return scaled
    return ops.minimum(ops.maximum(scaled, -1), 1)
