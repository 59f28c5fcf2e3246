"""Powers and products of matrices, diagonals and traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dparray import _layout
from dparray._array.assignment import write_out
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_out
from dparray._functions import reductions
from dparray._functions.manipulation import broadcast_to, expand_dims
from dparray._functions.manipulation import diagonal as _diagonal_of_axes
from dparray._functions.matrices import eye
from dparray._functions.products import cross as cross_of_axes
from dparray._functions.products import matmul
from dparray._functions.products import outer as outer_of_all
from dparray._functions.public import public
from dparray._placement import common_placement
from dparray.exceptions import HostConversionError, ShapeError
from dparray.linalg.operands import matrices
from dparray.linalg.solving import inv

__all__ = [
    "cross",
    "diagonal",
    "matrix_power",
    "multi_dot",
    "outer",
    "trace",
]


@public(operands=("x1", "x2"))
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> ndarray:
    """Return the cross product of vectors of three elements along an axis.

    Raises:
        ShapeError: the extent along ``axis`` is not 3, or the shapes do not broadcast.

    Example:
        >>> dp.linalg.cross(dp.asarray([1, 0, 0]), dp.asarray([0, 1, 0])).asnumpy()
        array([0, 0, 1])
    """
    for name, x in (("x1", x1), ("x2", x2)):
        if x.shape[_layout.normalize_axis("cross", axis, x.ndim)] != 3:
            raise ShapeError(
                f"cross: {name} of shape {x.shape} has no 3 elements along axis {axis}; "
                f"dp.cross takes 2, too"
            )
    return cross_of_axes(x1, x2, axis=axis)


@public(operands=("x1", "x2"))
def outer(x1: Any, x2: Any, /) -> ndarray:
    """Return all products of an element of one vector with one of the other: a matrix.

    Raises:
        ShapeError: one of them is not a vector.

    Example:
        >>> dp.linalg.outer(dp.asarray([1, 2]), dp.asarray([3, 4])).asnumpy()
        array([[3, 4],
               [6, 8]])
    """
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(
            f"outer: shapes {x1.shape} and {x2.shape}; give two vectors, or use dp.outer, which "
            f"flattens them"
        )
    return outer_of_all(x1, x2)


def matrix_power(x: Any, n: int, /) -> ndarray:
    """Square matrices multiplied `n` times with themselves; negative powers invert.

    Raises:
        LinAlgError: the power is negative and a matrix is singular.
        ShapeError: the matrices are not square.

    Example:
        >>> dp.linalg.matrix_power(dp.asarray([[1, 1], [0, 1]]), 3).asnumpy()
        array([[1, 3],
               [0, 1]])
    """
    x = matrices("matrix_power", "x", x)
    if isinstance(n, np.integer):
        n = int(n)
    if not isinstance(n, int):
        raise TypeError(f"matrix_power: n is {n!r}; it must be an integer")
    if n == 0:
        one = eye(x.shape[-1], dtype=x.dtype, sycl_queue=x.queue, usm_type=x.usm_type)
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
    """Return the product of several matrices, in the order that takes the fewest multiplications.

    Args:
        arrays: two matrices or more; the first and the last may be vectors.
        out: an array to write the result to.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not match.

    Example:
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
    return write_out("multi_dot", product[..., 0] if ends_with_vector else product, out)


def _cheapest_order(extents: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return the best split of each part of a chain of matrices, by dynamic programming."""
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


@public()
def diagonal(x: Any, /, *, offset: int = 0) -> ndarray:
    """Return a view of the diagonals of matrices (the last two axes).

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    Example:
        >>> dp.linalg.diagonal(dp.asarray([[1, 2], [3, 4]])).asnumpy()
        array([1, 4])
    """
    if x.ndim < 2:
        raise ShapeError(f"diagonal: x has shape {x.shape}; give a matrix or a stack of them")
    return _diagonal_of_axes(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> ndarray:
    """Return the sums of the diagonals of matrices (the last two axes).

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    Example:
        >>> int(dp.linalg.trace(dp.asarray([[1, 2], [3, 4]])))
        5
    """
    return reductions.sum(diagonal(x, offset=offset), -1, dtype)
