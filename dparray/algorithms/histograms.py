"""Histograms with bins of equal width, and counts of small integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray._array.allocation import from_host
from dparray._array.ndarray import ndarray
from dparray._kernel.launch import call_kernel
from dparray._placement import Placement
from dparray.algorithms import tiles
from dparray.algorithms.ranges import (
    check_1d,
    check_kind,
    check_width,
    chunks,
    filled,
    kernel_of,
    new,
    placement_of,
    real_number,
    whole_number,
)
from dparray.algorithms.work_sizes import rounded_up
from dparray.algorithms.workspace import kept_memory
from dparray.exceptions import ArgumentError
from dparray.kernel_api import Range
from dparray.kernels.histogram import (
    make_add_rows_kernel,
    make_bincount_kernel,
    make_histogram_kernel,
)

__all__ = ["count_in_bins", "count_integers"]

# The private rows of all work-items have at most this many times the elements of the input.
_ROWS_PER_ELEMENT = 0.5


def count_in_bins(
    x: ndarray, bins: int = 10, range: tuple[float, float] | None = None
) -> tuple[ndarray, ndarray]:
    """Count the elements in bins of equal width.

    Args:
        x: a 1-D array of shape ``(n,)``, integers or floats.
        bins: the number of bins. (`dp.histogram` also accepts edges.)
        range: the lowest and the highest edge; by default the smallest and the largest element,
            which the host waits for and reads. NaN and elements outside the range are not counted.

    Returns:
        ``(counts, edges)`` of shapes ``(bins,)`` and ``(bins + 1,)``; counts are int64, edges have
        NumPy's dtype for them. The last bin includes its right edge.

    Raises:
        ShapeError: ``x`` is not one-dimensional.
        DTypeError: ``x`` is Boolean or complex.
        ValueError: ``bins`` is not positive or is too large for the range; the range is not finite
            and increasing; or its width cannot be divided in the dtype of the edges, as with the
            largest and the subnormal numbers.

    Placement: runs on the queue of ``x``; the results have its USM type.

    Example:
        >>> from dparray.algorithms.histograms import count_in_bins
        >>> counts, edges = count_in_bins(dp.asarray([1.0, 2.0, 2.5, 4.0]), bins=3, range=(1, 4))
        >>> dp.asnumpy(counts)
        array([1, 2, 1])
    """
    where = placement_of("histogram", [("x", x)])
    key = (x.queue, x.dtype, len(x.shape), bins, range) if _is_usual(bins, range) else None
    found = _evenly.get(key)
    if found is None:
        check_1d("histogram", "x", x)
        check_kind("histogram", "x", x, "iuf", "an integer or real")
        check_width("histogram", "x", x)
        found = _even_bins(x, bins, range)
    host_edges, numbers, edges = found
    uses_tiles = x.size > 0 and tiles.counts_in_tiles(x)
    if uses_tiles and key is not None:
        if edges is None:
            edges = kept_memory(x.queue, host_edges)
            if len(_evenly) < _MAX_KEPT and host_edges.size <= _MAX_KEPT_SIZE:
                _evenly[key] = host_edges, numbers, edges
        return tiles.count_in_bins(x, edges, numbers, where)
    edges = from_host(host_edges, where.queue, where.usm_type)
    if not x.size:
        return filled(host_edges.size - 1, np.int64(0), where), edges
    if uses_tiles:
        return tiles.count_in_bins(x, edges, numbers, where)
    rows, index_space, chunk = _rows(x, host_edges.size - 1, where)
    kind: Any = host_edges.dtype.type
    counting = kernel_of(make_histogram_kernel, tiles.bin_between_edges(kind))
    call_kernel(counting, index_space, x, edges, rows, chunk, *numbers[2:])
    return _added(rows, where), edges


#: The edges between given limits, by queue, dtype, number and range: on the host, the outer edges
#: with scale and margin, and in memory that is never freed.
_evenly: dict[Any, tuple[np.ndarray, np.ndarray, Any]] = {}
_MAX_KEPT, _MAX_KEPT_SIZE = 64, 1 << 12


def _is_usual(bins: Any, range: Any) -> bool:
    """Return whether edges are kept for another call."""
    is_pair = type(range) is tuple and len(range) == 2
    # Other numbers may be equal and lead to edges of another dtype.
    return is_pair and type(bins) is int and type(range[0]) is type(range[1]) is float


def _even_bins(
    x: ndarray, bins: Any, range: tuple[float, float] | None
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the edges, and the outer ones with scale and margin."""
    number = whole_number("histogram", "bins", bins, 1, np.iinfo(np.int32).max)
    low, high, host_edges = even_edges("histogram", x, number, range)
    dtype = host_edges.dtype
    scalar: Any = dtype.type
    with np.errstate(over="ignore"):
        width = scalar(high) - scalar(low)
        scale = scalar(number / (float(high) - float(low)))
    if not (np.isfinite(width) and 0 < scale < np.inf):
        raise ValueError(
            f"histogram: the range from {low} to {high} is too wide or too narrow to divide in "
            f"{dtype}; scale x, or convert it with x.astype('float64')"
        )
    # The largest rounding error of edges and distances, in bins.
    rounding = 8 * float(np.finfo(scalar).eps)
    margin = rounding * (number + float(scale) * max(abs(float(low)), abs(float(high))))
    numbers = np.array([host_edges[0], host_edges[-1], scale, margin], dtype)
    return host_edges, numbers, None


def even_edges(
    function: str, x: ndarray, number: int, range: tuple[float, float] | None
) -> tuple[Any, Any, np.ndarray]:
    """Return the lowest and highest edge, and all edges, rounded as NumPy rounds them."""
    low, high = _outer_edges(x, range)
    dtype = np.result_type(low, high, np.empty(0, x.dtype))
    if dtype.kind != "f" or dtype.itemsize < 4:
        dtype = np.result_type(dtype, np.float32 if dtype.kind == "f" else np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        edges = np.linspace(low, high, number + 1, dtype=dtype)
    if not (edges[1:] > edges[:-1]).all():
        raise ValueError(f"{function}: too many bins ({number}) between {low} and {high}")
    return low, high, edges


def _outer_edges(x: ndarray, range: tuple[float, float] | None) -> tuple[Any, Any]:
    if range is not None:
        if not isinstance(range, tuple | list) or len(range) != 2:
            raise ArgumentError(f"histogram: range must be (low, high); got {range!r}")
        low, high = range
        if real_number("histogram", "low", low) > real_number("histogram", "high", high):
            raise ArgumentError(f"histogram: the range must be increasing; got {range}")
    elif x.size:
        # Scalars of the input's dtype, since NumPy computes the edges in that dtype.
        low, high = (x.dtype.type(each.item()) for each in (x.min(), x.max()))
    else:
        low, high = 0.0, 1.0
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"histogram: the range must be finite; it is ({low}, {high})")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def count_integers(x: ndarray, minlength: int = 0) -> ndarray:
    """Count the occurrences of each nonnegative integer.

    Args:
        x: a 1-D array of shape ``(n,)`` of nonnegative integers.
        minlength: the minimum length of the result. The host waits for the largest element of ``x``
            to find the length.

    Returns:
        An int64 array of shape ``(max(minlength, x.max() + 1),)``.

    Raises:
        ShapeError: ``x`` is not one-dimensional.
        DTypeError: ``x`` does not have an integer dtype.
        ValueError: an element or ``minlength`` is negative.

    Placement: runs on the queue of ``x``; the result has its USM type.

    Example:
        >>> from dparray.algorithms.histograms import count_integers
        >>> dp.asnumpy(count_integers(dp.asarray([0, 3, 3, 1])))
        array([1, 1, 0, 2])
    """
    where = placement_of("bincount", [("x", x)])
    check_1d("bincount", "x", x)
    check_kind("bincount", "x", x, "iu", "an integer")
    minlength = whole_number("bincount", "minlength", minlength, 0, np.iinfo(np.int64).max)
    if not x.size:
        return filled(minlength, np.int64(0), where)
    smallest, largest = x.min().item(), x.max().item()
    if smallest < 0:
        raise ValueError(f"bincount: the elements must not be negative; the smallest is {smallest}")
    bins = max(minlength, largest + 1)
    if tiles.counts_in_tiles(x):
        return tiles.count_integers(x, bins, where)
    rows, index_space, chunk = _rows(x, bins, where)
    call_kernel(kernel_of(make_bincount_kernel), index_space, x, rows, chunk)
    return _added(rows, where)


def _rows(x: ndarray, bins: int, where: Placement) -> tuple[ndarray, Any, int]:
    """Allocate a row of counts for each work-item that processes ``x``."""
    smallest = max(2048, int(bins / _ROWS_PER_ELEMENT))
    index_space, count, chunk = chunks(where.queue, x.size, smallest)
    return new((count, bins), np.int64, where), index_space, chunk


def _added(rows: ndarray, where: Placement) -> ndarray:
    out = new(rows.shape[1], np.int64, where)
    call_kernel(kernel_of(make_add_rows_kernel), Range(rounded_up(out.size)), rows, out)
    return out
