"""Searching: insertion points and indices of nonzero elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array.allocation import empty_on
from dparray._array.dispatch import compute, into_out
from dparray._array.ndarray import array_method, ndarray
from dparray._array.operands import check_array, dispatch_override, on_queue_of, overriding
from dparray._functions.creation import full
from dparray._functions.indexing import nonzero
from dparray._functions.joining import stack
from dparray._functions.manipulation import ravel
from dparray._functions.public import public
from dparray._placement import common_placement, placement_of
from dparray.exceptions import ShapeError

__all__ = [
    "argwhere",
    "flatnonzero",
    "searchsorted",
]


def _is_plain_search(x1: Any, x2: Any, side: Any) -> bool:
    return type(x2) in (ndarray, int, float)


@public(small=np.searchsorted, takes=("x2", "side"), when=_is_plain_search)
def searchsorted(
    x1: ndarray, x2: Any, /, side: str = "left", sorter: ndarray | None = None
) -> ndarray:
    """Return the insertion points that keep a sorted vector sorted, as ``int64``.

    Args:
        x1: a sorted vector, or an unsorted one with ``sorter``.
        x2: the values, an array or a scalar.
        side: ``"left"`` to insert before equal elements, ``"right"`` after them.
        sorter: the indices that sort ``x1``.

    Returns:
        An array of the shape of ``x2`` on the common queue.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: ``x1`` is not a vector, or ``sorter`` has another shape.

    Example:
        >>> dp.searchsorted(dp.asarray([1, 3, 5]), dp.asarray([3, 6])).asnumpy()
        array([1, 3])
    """
    if x1.ndim != 1:
        raise ShapeError(f"searchsorted: x1 must be a sorted vector; it has {x1.ndim} dimensions")
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right'; got {side!r}")
    if isinstance(x2, bool | int | float | complex) and not isinstance(x2, np.generic):
        dtype = np.result_type(x1.dtype, x2 if not isinstance(x2, bool) else np.bool_)
        x2 = full((), x2, dtype, sycl_queue=x1.queue, usm_type=x1.usm_type)
    if overriding((x2, sorter)) is not None:
        return dispatch_override(searchsorted, (x1, x2), side=side, sorter=sorter)
    x2 = check_array("searchsorted", "x2", x2, placement_of(x1))
    named = [("x1", x1), ("x2", x2)]
    if sorter is not None:
        sorter = on_queue_of(x1, sorter)
        sorter = check_array("searchsorted", "sorter", sorter, placement_of(x1))
        named.append(("sorter", sorter))
    placement = common_placement("searchsorted", named)
    if sorter is not None:
        if sorter.shape != x1.shape or sorter.dtype.kind not in "iu":
            raise ShapeError(
                f"searchsorted: sorter of shape {sorter.shape} and dtype {sorter.dtype} must be "
                f"integers, one for each of the {x1.size} elements of x1"
            )
        x1 = x1[sorter]
    result = empty_on(placement, x2.shape, _dtypes.int64)
    few = x2.size <= 8192

    def by_numpy(ordered: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
        np.copyto(out, np.searchsorted(ordered, values, side=side))  # type: ignore[call-overload]

    common = _dtypes.promote([x1.dtype, x2.dtype])

    @into_out
    def by_library(library: Any, *arrays: Any) -> Any:
        ordered, values = (each.astype(common, copy=False) for each in arrays)
        return library.searchsorted(ordered, values, side=side)

    operands = (("x1", x1), ("x2", x2))
    host = by_numpy if few else None
    compute("searchsorted", operands, host=host, library=by_library, out=result)
    return result


@array_method("searchsorted")
def _searchsorted_method(
    self: ndarray, v: Any, side: str = "left", sorter: ndarray | None = None
) -> ndarray:
    """Return insertion points in a sorted vector; see :func:`dparray.searchsorted`."""
    return searchsorted(self, v, side, sorter)


@public(small=np.argwhere)
def argwhere(x: Any, /) -> ndarray:
    """Return the indices of the nonzero elements, one row for each.

    Example:
        >>> dp.argwhere(dp.asarray([[0, 1], [2, 0]])).asnumpy()
        array([[0, 1],
               [1, 0]])
    """
    if x.ndim == 0:
        return argwhere(x.reshape(1))[:, :0]
    return stack(nonzero(x), axis=1)


@public()
def flatnonzero(x: Any, /) -> ndarray:
    """Return the indices of the nonzero elements in the flattened array.

    Example:
        >>> dp.flatnonzero(dp.asarray([[0, 1], [2, 0]])).asnumpy()
        array([1, 2])
    """
    return nonzero(ravel(x))[0]
