"""Sets: unique values, membership.

On a CPU device NumPy computes in the arrays' own memory, and dparray's radix sort sorts large
arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on
from dparray._array.apply import astype_array, ops
from dparray._array.assignment import assign
from dparray._array.dispatch import by_name, compute, into_out
from dparray._array.host_fastpath import SCALARS
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_arrays
from dparray._functions.creation import full, ones
from dparray._functions.cumulative import cumulative_sum
from dparray._functions.indexing import nonzero
from dparray._functions.joining import concat
from dparray._functions.manipulation import moveaxis, ravel, reshape
from dparray._functions.operands import placement_keywords
from dparray._functions.public import public
from dparray._functions.ranges import arange
from dparray._functions.reductions import any as any_of
from dparray._functions.reductions import count_nonzero
from dparray._functions.reductions import sum as sum_of
from dparray._functions.searching import searchsorted
from dparray._functions.sorting import argsort, is_by_radix, is_vectorized, lexsort, sort
from dparray._placement import common_placement, placement_of
from dparray.algorithms.sort import sort_by_key

__all__ = [
    "intersect1d",
    "isin",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class UniqueAllResult(NamedTuple):
    """The result of :func:`unique_all`."""

    values: ndarray
    indices: ndarray
    inverse_indices: ndarray
    counts: ndarray


class UniqueCountsResult(NamedTuple):
    """The result of :func:`unique_counts`."""

    values: ndarray
    counts: ndarray


class UniqueInverseResult(NamedTuple):
    """The result of :func:`unique_inverse`."""

    values: ndarray
    inverse_indices: ndarray


# From this many elements, dparray's radix sort and a pass over the sorted values are faster than
# NumPy.
_LONG = 1 << 19


def _is_long(x: ndarray) -> bool:
    """Return whether dparray's radix sort is worth using for an array."""
    return x.size >= _LONG and is_by_radix(x)


def _firsts(ordered: ndarray) -> ndarray:
    """Return for sorted values or rows a mask of the first of each group."""
    differs = ordered[1:] != ordered[:-1]
    if ordered.ndim > 1:
        differs = any_of(differs, axis=1)
    first = ones(1, dtype=_dtypes.bool, **placement_keywords(ordered))
    return concat([first, differs])[: ordered.shape[0]]


def _runs(ordered: ndarray) -> tuple[ndarray, ndarray]:
    """Return for sorted values or rows a mask of the first of each group, and its indices."""
    is_first = _firsts(ordered)
    return is_first, nonzero(is_first)[0]


def _lengths(starts: ndarray, size: int) -> ndarray:
    """Return the lengths of the groups that begin at ``starts``."""
    end = full(1, size, **placement_keywords(starts))
    return concat([starts[1:], end]) - starts


def _all_by_sorting(x: ndarray) -> UniqueAllResult:
    """Return the result of :func:`unique_all`, by a stable sort of values with their indices."""
    flat = ravel(x)
    if is_vectorized(x):
        order = argsort(flat)
        ordered = flat[order]
    else:
        ordered, moved = sort_by_key(flat, arange(x.size, **placement_keywords(x)))
        assert moved is not None
        order = moved
    found = _all_in_order(ordered, order)
    return found._replace(inverse_indices=reshape(found.inverse_indices, x.shape))


def _all_in_order(ordered: ndarray, order: ndarray) -> UniqueAllResult:
    """Return the fields of :func:`unique_all` for sorted values or rows and their old indices."""
    is_first, starts = _runs(ordered)
    inverse = empty_on(placement_of(order), order.shape, _dtypes.int64)
    inverse[order] = cumulative_sum(is_first, dtype=_dtypes.int64) - 1
    return UniqueAllResult(ordered[starts], order[starts], inverse, _lengths(starts, order.size))


def _all_slices_by_sorting(x: ndarray, axis: int) -> UniqueAllResult:
    """Return the fields of :func:`unique_all` for the slices along an axis, sorted as rows."""
    slices = moveaxis(x, axis, 0)
    count, *rest = slices.shape
    rows = reshape(slices, (count, math.prod(rest)))
    order = arange(count, **placement_keywords(x))
    if rows.size:
        order = lexsort([rows[:, column] for column in range(rows.shape[1] - 1, -1, -1)])
    found = _all_in_order(rows[order], order)
    values = reshape(found.values, (found.values.shape[0], *rest))
    return found._replace(values=moveaxis(values, 0, axis))


def _unique(
    name: str,
    by_numpy: Callable[..., Any],
    by_library: Callable[..., Any],
    x: ndarray,
    wanted: tuple[bool, ...],
) -> list[ndarray]:
    """Return the requested of the values, their first indices, the inverse and the counts."""

    def by_host(values: np.ndarray) -> Any:
        if values.dtype.char != "e":
            return by_numpy(values)
        # On some processors NumPy 2.4 leaves many float16 values unsorted.
        found = by_numpy(values.astype(np.float32))
        if isinstance(found, tuple):
            return (found[0].astype(np.float16), *found[1:])
        return found.astype(np.float16)

    library = None if is_by_radix(x) else by_library
    found = compute(name, (("x", x),), host=by_host, library=library)
    if found is None:
        return [*compress(_all_by_sorting(x), wanted)]
    return list(found) if isinstance(found, tuple) else [found]


@public()
def unique_values(x: Any, /) -> ndarray:
    """Return the sorted unique values of an array; all NaN are distinct.

    The number of results depends on the values, so the host waits for them.

    Example:
        >>> dp.unique_values(dp.asarray([3, 1, 3])).asnumpy()
        array([1, 3])
    """
    if _is_long(x) and not is_vectorized(x):
        ordered, _ = sort_by_key(ravel(x))
        return ordered[_runs(ordered)[1]]
    wanted = (True, False, False, False)
    return _unique("unique_values", _numpy_values, by_name("unique_values"), x, wanted)[0]


def _numpy_values(x: np.ndarray) -> np.ndarray:
    return np.unique(x, equal_nan=False)


@public()
def unique_counts(x: Any, /) -> UniqueCountsResult:
    """Return the sorted unique values of an array and their counts (``int64``).

    Example:
        >>> dp.unique_counts(dp.asarray([3, 1, 3])).counts.asnumpy()
        array([1, 2])
    """
    if _is_long(x) and not is_vectorized(x):
        ordered, _ = sort_by_key(ravel(x))
        starts = _runs(ordered)[1]
        return UniqueCountsResult(ordered[starts], _lengths(starts, x.size))
    wanted = (True, False, False, True)
    return UniqueCountsResult(
        *_unique("unique_counts", np.unique_counts, by_name("unique_counts"), x, wanted)
    )


@public()
def unique_inverse(x: Any, /) -> UniqueInverseResult:
    """Return the sorted unique values of an array, and for each element the index of its value.

    Example:
        >>> dp.unique_inverse(dp.asarray([3, 1, 3])).inverse_indices.asnumpy()
        array([1, 0, 1])
    """
    if _is_long(x):
        found = _all_by_sorting(x)
        return UniqueInverseResult(found.values, found.inverse_indices)
    wanted = (True, False, True, False)
    return UniqueInverseResult(
        *_unique("unique_inverse", np.unique_inverse, by_name("unique_inverse"), x, wanted)
    )


@public()
def unique_all(x: Any, /) -> UniqueAllResult:
    """Return the sorted unique values, their first indices, the inverse indices and the counts.

    Example:
        >>> dp.unique_all(dp.asarray([3, 1, 3])).indices.asnumpy()
        array([1, 0])
    """
    if _is_long(x):
        return _all_by_sorting(x)
    wanted = (True, True, True, True)
    return UniqueAllResult(*_unique("unique_all", np.unique_all, by_name("unique_all"), x, wanted))


@public()
def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Return the sorted unique values, with the options of NumPy's function.

    Args:
        x: an array.
        return_index: whether to also return the first index of each value.
        return_inverse: whether to also return the index of the value of each element.
        return_counts: whether to also return the count of each value.
        axis: the axis whose slices are compared; the flattened array if ``None``.
        equal_nan: whether all NaN are equal.
        sorted: accepted for compatibility with NumPy; the values are always sorted.

    Returns:
        The sorted unique values, or a tuple that begins with them if further results are requested.

    Example:
        >>> values, counts = dp.unique(dp.asarray([3, 1, 3]), return_counts=True)
        >>> counts.asnumpy()
        array([1, 2])
    """
    wanted = (True, return_index, return_inverse, return_counts)
    if axis is not None:
        axis = _layout.normalize_axis("unique", axis, x.ndim)
        axis = axis if x.ndim > 1 else None  # NaN in vectors are merged, those in slices are not

    def by_numpy(values: np.ndarray) -> Any:
        return np.unique(  # type: ignore[call-overload]
            values, return_index, return_inverse, return_counts, axis, equal_nan=equal_nan
        )

    def by_library(library: Any, values: Any) -> tuple[Any, ...]:
        return tuple(compress(library.unique_all(values), wanted))

    if axis is not None:
        found = compute("unique", (("x", x),), host=by_numpy)
        if found is None:
            parts = [*compress(_all_slices_by_sorting(x, axis), wanted)]
            return parts[0] if len(parts) == 1 else tuple(parts)
        return found
    parts = _unique("unique", by_numpy, by_library, x, wanted)
    if x.dtype.kind in "fc" and equal_nan:
        parts = _with_one_nan(parts, return_index, return_inverse)
    return parts[0] if len(parts) == 1 else tuple(parts)


def _with_one_nan(parts: list[ndarray], has_index: bool, has_inverse: bool) -> list[ndarray]:
    """Return the sorted unique values and related results, with the NaN at the end merged."""
    values, *others = parts
    different = values.size - int(count_nonzero(ops.isnan(values))) + 1
    if different >= values.size:
        return parts
    found = [values[:different]]
    if has_index:
        found.append(others.pop(0)[:different])
    if has_inverse:
        found.append(ops.minimum(others.pop(0), different - 1))
    if others:  # the counts
        (counts,) = others
        last = sum_of(counts[different - 1 :], keepdims=True, dtype=counts.dtype)
        found.append(concat([counts[: different - 1], last]))
    return found


def _pair(function: str, x1: Any, x2: Any) -> tuple[ndarray, ndarray]:
    x1, x2 = check_arrays(function, ("x1", x1), ("x2", x2))
    return ravel(x1), ravel(x2)


def _is_in(values: np.ndarray, among: Any, assume_unique: Any, invert: Any) -> np.ndarray:
    if type(among) is not np.ndarray and type(among) not in SCALARS:
        raise TypeError
    return np.isin(values, among, invert=bool(invert))


@public(operands=("x1", "x2"), small=_is_in, takes=("assume_unique", "invert"))
def isin(
    x1: Any,
    x2: Any,
    /,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> ndarray:
    """Return whether each element of ``x1`` is among the elements of ``x2``.

    Args:
        x1: an array.
        x2: the values to look for, an array, a list or a scalar.
        assume_unique, kind: ignored.
        invert: whether to negate the result.

    Returns:
        A Boolean array of the shape of ``x1``.

    Example:
        >>> dp.isin(dp.asarray([1, 2, 3]), dp.asarray([2, 9])).asnumpy()
        array([False,  True, False])
    """
    placement = common_placement("isin", (("x1", x1), ("x2", x2)))
    result = empty_on(placement, x1.shape, _dtypes.bool)
    found = compute(
        "isin",
        (("x1", x1), ("x2", x2)),
        host=lambda values, among, out: np.copyto(out, _is_in(values, among, False, invert)),
        library=None if is_by_radix(x2) else into_out(partial(by_name("isin"), invert=invert)),
        out=result,
    )
    if found is None:
        ordered = sort(ravel(x2))
        nearest = ops.minimum(searchsorted(ordered, x1), ordered.size - 1)
        assign(result, (ordered[nearest] == x1) != bool(invert))
    return result


def union1d(x1: Any, x2: Any, /) -> ndarray:
    """Return the sorted unique values of both arrays.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> dp.union1d(dp.asarray([1, 2]), dp.asarray([2, 3])).asnumpy()
        array([1, 2, 3])
    """
    x1, x2 = _promoted_scalar(x1, x2), _promoted_scalar(x2, x1)
    return unique(concat(_pair("union1d", x1, x2)))


def _promoted_scalar(x: Any, other: Any) -> Any:
    """Return a Python scalar and an array in their promoted dtype."""
    if type(x) not in (int, float, complex) or not isinstance(other, ndarray):
        return x
    dtype = _dtypes.promote([other.dtype, _dtypes.promotion_key(x)])
    return full((), x, dtype, **placement_keywords(other))


def intersect1d(
    x1: Any, x2: Any, /, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """Return the sorted unique values that are in both arrays.

    Args:
        x1: an array.
        x2: an array.
        assume_unique: ignored.
        return_indices: whether to also return the first index of each value in both flattened
            arrays.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> dp.intersect1d(dp.asarray([1, 2]), dp.asarray([2, 3])).asnumpy()
        array([2])
    """
    first, second = _pair("intersect1d", x1, x2)
    dtype = concat([ravel(first[:0]), ravel(second[:0])]).dtype
    first, second = (astype_array(x, dtype, copy=False) for x in (first, second))
    if not return_indices:
        values = unique(concat([first, second[:0]]))
        return values[isin(values, second)]
    values, index = unique(first, return_index=True)
    others, other_index = unique(second, return_index=True)
    common = values[isin(values, others)]
    return common, index[isin(values, common)], other_index[isin(others, common)]


def setdiff1d(x1: Any, x2: Any, /, assume_unique: bool = False) -> ndarray:
    """Return the sorted unique values of ``x1`` that are not in ``x2``.

    Args:
        x1: an array.
        x2: an array.
        assume_unique: whether the values of ``x1`` are unique; its elements then keep their order.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> dp.setdiff1d(dp.asarray([1, 2]), dp.asarray([2, 3])).asnumpy()
        array([1])
    """
    first, second = _pair("setdiff1d", x1, x2)
    values = first.reshape(-1) if assume_unique else unique(first)
    return values[isin(values, second, invert=True)]


def setxor1d(x1: Any, x2: Any, /, assume_unique: bool = False) -> ndarray:
    """Return the sorted unique values that are in exactly one of the arrays.

    NaN in one array does not equal NaN in the other: both are in the result.

    Args:
        x1: an array.
        x2: an array.
        assume_unique: whether the values of each array are unique, which avoids a check.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> dp.setxor1d(dp.asarray([1, 2]), dp.asarray([2, 3])).asnumpy()
        array([1, 3])
    """
    first, second = _pair("setxor1d", x1, x2)
    if not assume_unique:
        first, second = unique(first), unique(second)
    both = sort(concat([ravel(first), ravel(second)]))
    if not both.size:
        return both
    is_first = _firsts(both)
    return both[is_first & concat([is_first[1:], is_first[:1]])]
