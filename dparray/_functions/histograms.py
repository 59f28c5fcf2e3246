"""Histograms, counts of integers, and bin indices."""

from __future__ import annotations

import builtins
import math
from functools import partial
from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array.allocation import empty_on, from_host
from dparray._array.apply import astype_array, choose_elements, ops
from dparray._array.dispatch import by_name, compute
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._driver import traits_of
from dparray._evaluate.evaluate import host_may_compute
from dparray._functions.conversion import asarray
from dparray._functions.manipulation import ravel, reshape
from dparray._functions.moments import mean, std
from dparray._functions.operands import vector_of
from dparray._functions.public import public
from dparray._functions.quantiles import percentile
from dparray._functions.reductions import max as max_of
from dparray._functions.reductions import min as min_of
from dparray._functions.reductions import sum as sum_of
from dparray._placement import Placement, common_placement
from dparray.algorithms.histograms import count_in_bins, count_integers, even_edges
from dparray.exceptions import ArgumentError, ShapeError

__all__ = [
    "bincount",
    "digitize",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
]


# From this many elements, the kernels are faster than NumPy on the host.
_LARGE = 1 << 15


_LARGE_COUNT = 1 << 17


# The kinds of integers that NumPy counts: those that convert safely to intp.
_INDICES = tuple(np.dtype(letter) for letter in "bBhHiIq")


@public(small=np.bincount, takes=("weights", "minlength"), converts=False)
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> ndarray:
    """Count the occurrences of the integers 0, 1, 2 ..., or sum their weights.

    The length of the result depends on the values, so the host waits for them.

    Args:
        x: a vector of nonnegative integers.
        weights: a vector of the same length.
        minlength: the minimum length of the result.

    Returns:
        An array of at least ``max(x) + 1`` counts.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: ``x`` is not a vector, or the lengths differ.
        ValueError: an integer or ``minlength`` is negative.

    Example:
        >>> dp.bincount(dp.asarray([0, 2, 2])).asnumpy()
        array([1, 0, 2])
    """
    if isinstance(x, list | tuple) and not len(x):
        x = asarray(x, _dtypes.int64)
    x = check_array("bincount", "x", x)
    named = [("x", x)]
    if weights is None and x.ndim == 1 and x.size >= _LARGE_COUNT and x.dtype in _INDICES:
        return count_integers(x, minlength)
    if weights is not None:
        named.append(("weights", vector_of("bincount", x, "weights", weights)))

    library = partial(by_name("bincount"), minlength=minlength)
    return compute("bincount", named, host=True, library=library)


@public()
def histogram(
    x: Any,
    bins: Any = 10,
    range: tuple[float, float] | None = None,
    density: bool = False,
    weights: Any = None,
) -> tuple[ndarray, ndarray]:
    """Compute a histogram.

    Args:
        x: an array.
        bins: the number of bins, a list or array of their edges, or the name of a rule: ``"auto"``,
            ``"doane"``, ``"fd"``, ``"rice"``, ``"scott"``, ``"sqrt"``, ``"stone"``, ``"sturges"``.
            The host waits for the statistics that a rule needs.
        range: lowest and highest edge, if ``bins`` is a number. Defaults to ``(x.min(), x.max())``.
        density: whether to return a probability density, whose integral is 1.
        weights: the weight of each element.

    Returns:
        The counts and the edges.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the weights have the wrong shape.
        ValueError: the edges do not increase or are not finite, there are no bins, the rule is
            unknown, or weights are given with a rule.

    Example:
        >>> counts, edges = dp.histogram(dp.asarray([1.0, 2.0, 2.5, 4.0]), bins=3)
        >>> counts.asnumpy(), edges.asnumpy()
        (array([1, 2, 1]), array([1., 2., 3., 4.]))
    """
    named = [("x", x)]
    bins = _number_of_bins("histogram", x, bins, range, weights)
    are_even = _are_even(x, bins)
    on_host = host_may_compute(x.queue, x.usm_type)
    if are_even and weights is None and (x.size >= _LARGE or not on_host):
        flat = x if x.ndim == 1 else x.reshape(-1)
        counts, edges = count_in_bins(flat, int(bins), range)
        if density:
            real = _dtypes.default_float(traits_of(x.queue))
            widths = astype_array(edges[1:] - edges[:-1], real)
            counts = astype_array(counts, real) / widths / sum_of(counts)
        return counts, edges
    if are_even and not on_host:
        bins = _even_edges("histogram", x, bins, range)
    if isinstance(bins, ndarray | list | tuple):
        named.append(("bins", vector_of("histogram", x, "bins", bins)))
    if weights is not None:
        named.append(("weights", vector_of("histogram", x, "weights", weights)))

    def count(xp: Any, values: Any, *rest: Any) -> Any:
        arrays = dict(zip((name for name, _ in named[1:]), rest, strict=True))
        options = {"bins": bins, "range": range, "density": density} | arrays
        return tuple(xp.histogram(values, **options))

    counts, edges = compute("histogram", named, host=True, library=count)
    return counts, edges


@public(operands=("x", "y"))
def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool = False,
    weights: Any = None,
) -> tuple[ndarray, ndarray, ndarray]:
    """Compute a 2-D histogram.

    Args:
        x: a vector of first coordinates.
        y: a vector of second coordinates.
        bins: the number of bins, a pair of numbers, a vector of edges, or a pair of vectors.
        range: the lowest and highest edge along both axes; those of the points by default.
        density: whether to return a probability density, whose integral is 1.
        weights: the weight of each point.

    Returns:
        The counts, and the edges along both axes.

    Raises:
        ShapeError: the vectors differ in length, or edges do not increase.

    Example:
        >>> x = dp.asarray([0.5, 1.5, 1.5])
        >>> dp.histogram2d(x, x, bins=2, range=[[0, 2], [0, 2]])[0].asnumpy()
        array([[1., 0.],
               [0., 2.]])
    """
    if x.ndim != 1 or x.shape != y.shape:
        raise ShapeError(f"histogram2d: x of shape {x.shape} and y of shape {y.shape}")
    is_pair = isinstance(bins, list | tuple) and len(bins) == 2
    chosen = list(bins) if is_pair else [bins, bins]
    named = [("x", x), ("y", y)]
    counts, edges = _counts("histogram2d", named, chosen, range, density, weights)
    return counts, edges[0], edges[1]


def histogramdd(
    x: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[ndarray, tuple[ndarray, ...]]:
    """Compute a multidimensional histogram.

    Args:
        x: points as rows, or a sequence of vectors of coordinates.
        bins, range: see :func:`histogram2d`, for each dimension.
        density, weights: see :func:`histogram2d`.

    Returns:
        The counts, and a tuple of edges.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not match, or edges do not increase.

    Example:
        >>> counts, edges = dp.histogramdd(dp.asarray([[0.0, 0.0], [1.0, 1.0]]), bins=2)
        >>> counts.asnumpy()
        array([[1., 0.],
               [0., 1.]])
    """
    if isinstance(x, list | tuple) and any(isinstance(one, ndarray | list | tuple) for one in x):
        named = [
            (f"x[{at}]", check_array("histogramdd", f"x[{at}]", one)) for at, one in enumerate(x)
        ]
    else:
        x = check_array("histogramdd", "x", x)
        x = reshape(x, (-1, 1)) if x.ndim < 2 else x
        named = [("x", x[:, at]) for at in np.arange(x.shape[1])]
    if not named:
        raise ShapeError("histogramdd: x must have at least one column, a dimension of the points")
    is_listed = isinstance(bins, list | tuple) and len(bins) == len(named)
    chosen = list(bins) if is_listed else [bins] * len(named)
    return _counts("histogramdd", named, chosen, range, density, weights)


def _counts(
    function: str,
    coordinates: list[tuple[str, ndarray]],
    bins: list[Any],
    limits: Any,
    density: bool,
    weights: Any,
) -> tuple[ndarray, tuple[ndarray, ...]]:
    """Compute the cell of each point from its coordinates, and count all cells together."""
    named = list(coordinates)
    if weights is not None:
        named.append(("weights", vector_of(function, coordinates[0][1], "weights", weights)))
    placement = common_placement(function, named)
    loop_dtype = _dtypes.promote([column.dtype for _, column in coordinates])
    loop_dtype = _dtypes.fit_device(loop_dtype, traits_of(placement.queue))
    columns = [
        astype_array(_with_usm_type(column, placement), loop_dtype, copy=False)
        for _, column in coordinates
    ]
    ranges = [None] * len(columns) if limits is None else list(limits)
    if len(ranges) != len(columns):
        raise ShapeError(f"{function}: {len(ranges)} ranges for {len(columns)} dimensions")
    wide = _dtypes.promote([loop_dtype, _dtypes.default_float(traits_of(placement.queue))])
    edges = tuple(  # edges between given limits have the dtype of Python floats
        histogram_bin_edges(
            column if limit is None else astype_array(column, wide, copy=False), one, limit
        )
        for column, one, limit in zip(columns, bins, ranges, strict=True)
    )
    shape = tuple(edge.size - 1 for edge in edges)
    cell: Any = None
    inside: Any = None
    for column, edge, extent in zip(columns, edges, shape, strict=True):
        index = digitize(column, edge) - 1
        # The last cell includes its right edge.
        index = choose_elements(function, column == edge[-1], extent - 1, index)
        fits = ops.logical_and(ops.greater_equal(index, 0), ops.less(index, extent))
        if cell is None:
            cell, inside = index, fits
        else:
            cell = ops.multiply(cell, extent) + index
            inside = ops.logical_and(inside, fits)
    # Points outside are counted in an extra cell behind the last one.
    total = math.prod(shape)
    cell = choose_elements(function, inside, cell, total)
    amounts = None if weights is None else named[-1][1]
    flat = bincount(cell, amounts, minlength=total + 1)[:total]
    dtype = _dtypes.default_float(traits_of(placement.queue))
    counts = reshape(astype_array(flat, dtype), shape)
    if density:
        for axis, edge in enumerate(edges):
            width = edge[1:] - edge[:-1]
            counts = counts / reshape(width, (-1,) + (1,) * (len(edges) - axis - 1))
        counts = counts / sum_of(flat)
    return counts, edges


def _with_usm_type(x: ndarray, placement: Placement) -> ndarray:
    """Return the array, or a copy of it in memory of the common USM type."""
    if x.usm_type == placement.usm_type:
        return x
    copied = empty_on(placement, x.shape, x.dtype)
    copied[...] = x
    return copied


@public()
def histogram_bin_edges(x: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> ndarray:
    """Return the edges that :func:`histogram` uses; weights have no effect on them.

    Example:
        >>> dp.histogram_bin_edges(dp.asarray([1.0, 4.0]), bins=3).asnumpy()
        array([1., 2., 3., 4.])
    """
    named = [("x", x)]
    bins = _number_of_bins("histogram_bin_edges", x, bins, range, weights)
    if _are_even(x, bins) and not host_may_compute(x.queue, x.usm_type):
        return _even_edges("histogram_bin_edges", x, bins, range)
    if isinstance(bins, ndarray | list | tuple):
        named.append(("bins", vector_of("histogram_bin_edges", x, "bins", bins)))
    return compute(
        "histogram_bin_edges",
        named,
        host=True,
        library=lambda xp, values, *edges: xp.histogram_bin_edges(
            values, bins=edges[0] if edges else bins, range=range
        ),
    )


def _are_even(x: ndarray, bins: Any) -> bool:
    """Return whether bins are a number of bins for elements whose edges are computed here."""
    is_number = isinstance(bins, int | np.integer) and not isinstance(bins, bool)
    return is_number and x.dtype.kind in "iuf" and x.dtype != np.float16


def _even_edges(function: str, x: ndarray, bins: int, range: Any) -> ndarray:
    """Compute NumPy's edges; a library rounds differently and therefore counts differently."""
    if bins < 1:
        raise ValueError(f"{function}: bins must be at least 1; got {bins}")
    edges = even_edges(function, x, int(bins), range)[-1]
    return from_host(edges, x.queue, x.usm_type)


def _number_of_bins(function: str, x: ndarray, bins: Any, range: Any, weights: Any) -> Any:
    """Resolve ``bins``: the number of bins if it names a rule and the host may not compute."""
    if not isinstance(bins, str):
        return bins
    if bins not in _WIDTHS:
        known = ", ".join(map(repr, _WIDTHS))
        raise ArgumentError(f"{function}: bins must be one of {known}; got {bins!r}")
    if weights is not None:
        raise ArgumentError(
            f"{function}: weights require a number of bins or edges, not a rule; give bins=10"
        )
    if host_may_compute(x.queue, x.usm_type):
        return bins
    first, last = histogram_bin_edges(x, 1, range).asnumpy()
    values = ravel(x)
    if range is not None:
        values = values[values >= float(first)]
        values = values[values <= float(last)]
    if not values.size:
        return 1
    width = _WIDTHS[bins](values, (first, last))
    if x.dtype.kind in "iu" and width:
        width = max(width, 1)
    return int(np.ceil((last - first) / width)) if width else 1


def _extent(x: ndarray) -> Any:
    """Return the range from the smallest to the largest element, in NumPy's dtype."""
    return max_of(x).asnumpy()[()] - min_of(x).asnumpy()[()]


def _by_square_root(x: ndarray, range: Any) -> Any:
    return _extent(x) / np.sqrt(x.size)


def _by_sturges(x: ndarray, range: Any) -> Any:
    return _extent(x) / (np.log2(x.size) + 1)


def _by_rice(x: ndarray, range: Any) -> Any:
    return _extent(x) / (2 * x.size ** (1 / 3))


def _by_scott(x: ndarray, range: Any) -> Any:
    """Apply Scott's rule: "On optimal and data-based histograms", Biometrika 66 (1979)."""
    return (24 * math.sqrt(math.pi) / x.size) ** (1 / 3) * std(x).asnumpy()[()]


def _by_doane(x: ndarray, range: Any) -> Any:
    """Apply Doane's rule: "Aesthetic frequency classifications", Am. Statistician 30 (1976)."""
    count, deviation = x.size, float(std(x))
    if count <= 2 or not deviation:
        return 0.0
    ratio = ops.subtract(x, mean(x)) / deviation
    skewness = np.abs(mean(ratio * ratio * ratio).asnumpy()[()])
    usual = np.sqrt(6 * (count - 2) / ((count + 1) * (count + 3)))
    return _extent(x) / (1 + np.log2(count) + np.log2(1 + skewness / usual))


def _by_freedman_diaconis(x: ndarray, range: Any) -> Any:
    """Freedman and Diaconis: "On the histogram as a density estimator" (1981)."""
    upper, lower = percentile(x, [75, 25]).asnumpy()
    return 2 * (upper - lower) * x.size ** (-1 / 3)


def _by_stone(x: ndarray, limits: Any) -> Any:
    """Apply Stone's rule: "An asymptotically optimal histogram selection rule" (1984)."""
    count, extent = x.size, _extent(x)
    if count <= 1 or not extent:
        return 0.0

    def risk(bins: int) -> float:
        shares = histogram(x, bins, limits)[0].asnumpy() / count
        return float((2 - (count + 1) * shares.dot(shares)) / (extent / bins))

    return extent / min(builtins.range(1, max(100, math.isqrt(count)) + 1), key=risk)


def _by_the_narrower(x: ndarray, range: Any) -> Any:
    """Apply NumPy's "auto": at most four times the bins of the square root rule, or Sturges'."""
    width = max(_by_freedman_diaconis(x, range), _by_square_root(x, range) / 2)
    return min(width, _by_sturges(x, range))


#: The bin width of each named rule.
_WIDTHS = {
    "auto": _by_the_narrower,
    "doane": _by_doane,
    "fd": _by_freedman_diaconis,
    "rice": _by_rice,
    "scott": _by_scott,
    "sqrt": _by_square_root,
    "stone": _by_stone,
    "sturges": _by_sturges,
}


@public(operands=("x", "bins"))
def digitize(x: Any, bins: Any, right: bool = False) -> ndarray:
    """Return the index of the bin that contains each element.

    Args:
        x: an array.
        bins: a vector of edges that increase or decrease.
        right: whether a bin includes its right edge.

    Raises:
        ShapeError: ``bins`` is not a vector, or is not monotonic.

    Example:
        >>> dp.digitize(dp.asarray([0.5, 1.5]), dp.asarray([0.0, 1.0, 2.0])).asnumpy()
        array([1, 2])
    """
    return compute(
        "digitize",
        (("x", x), ("bins", bins)),
        host=True,
        library=partial(by_name("digitize"), right=right),
    )
