"""Histograms, counts of integers, and the bins that values fall into."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array.allocation import empty_on, from_host
from dparray._array.apply import apply, astype_array, choose_elements
from dparray._array.dispatch import compute
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
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
from dparray._graph.ops import OPS
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


# From so many elements on, the kernels are faster than NumPy on the host.
_LARGE = 1 << 15


_LARGE_COUNT = 1 << 17


# Of integers that NumPy counts: those that are safely positions.
_INDICES = tuple(np.dtype(letter) for letter in "bBhHiIq")


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> ndarray:
    """Return how often each of the integers 0, 1, 2 ... is there, or the sums of their weights.

    The length of the result depends on the values, so the host waits for them.

    Args:
        x: a vector of integers that are not negative.
        weights: a vector of the same length.
        minlength: the least number of counts.

    Returns:
        An array of ``max(x) + 1`` counts or more.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: ``x`` is no vector, or the lengths differ.
        ValueError: an integer or ``minlength`` is negative.

    Example:
        >>> import dparray as dp
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

    def count(xp: Any, x: Any, *amounts: Any) -> Any:
        if xp is not np and x.ndim == 1 and not x.size:  # where dpnp looks for the largest
            return 0 * xp.bincount(xp.zeros_like(x, shape=1), minlength=minlength)[:minlength]
        return xp.bincount(x, *amounts, minlength=minlength)

    return compute("bincount", named, either=count)


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
        bins: their number, a list or array of their edges, or the name of a rule by which the
            elements decide: ``"auto"``, ``"doane"``, ``"fd"``, ``"rice"``, ``"scott"``, ``"sqrt"``,
            ``"stone"``, ``"sturges"``. The host waits for what the rule asks for.
        range: lowest and highest edge, if ``bins`` is a number. Defaults to ``(x.min(), x.max())``.
        density: give the density of probability instead, whose integral is 1.
        weights: what each element counts.

    Returns:
        The counts and the edges.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the weights do not fit.
        ValueError: the edges do not increase, or are not finite, or there are no bins, or no such
            rule; or there are weights beside a rule.

    Example:
        >>> import dparray as dp
        >>> counts, edges = dp.histogram(dp.asarray([1.0, 2.0, 2.5, 4.0]), bins=3)
        >>> counts.asnumpy(), edges.asnumpy()
        (array([1, 2, 1]), array([1., 2., 3., 4.]))
    """
    named = [("x", x)]
    bins = _number_of_bins("histogram", x, bins, range, weights)
    are_even = _are_even(x, bins)
    on_host = host_may_compute(x.sycl_queue, x.usm_type)
    if are_even and weights is None and (x.size >= _LARGE or not on_host):
        counts, edges = count_in_bins(x.reshape(-1), int(bins), range)
        if density:
            real = _dtypes.default_float(x.sycl_queue.sycl_device)
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

    counts, edges = compute("histogram", named, either=count)
    return counts, edges


def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool = False,
    weights: Any = None,
) -> tuple[ndarray, ndarray, ndarray]:
    """Return how many points are in each cell of a grid.

    Args:
        x: a vector of coordinates.
        y: the other coordinates.
        bins: their number, a pair of numbers, a vector of edges, or a pair of such.
        range: lowest and highest edge along both axes; those of the points if not given.
        density: give the density of probability instead, whose integral is 1.
        weights: what each point counts.

    Returns:
        The counts, and the edges along both axes.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the vectors differ in length, or edges do not increase.

    Example:
        >>> import dparray as dp
        >>> x = dp.asarray([0.5, 1.5, 1.5])
        >>> dp.histogram2d(x, x, bins=2, range=[[0, 2], [0, 2]])[0].asnumpy()
        array([[1., 0.],
               [0., 2.]])
    """
    x = asarray(x) if isinstance(x, list | tuple) else check_array("histogram2d", "x", x)
    y = vector_of("histogram2d", x, "y", y)
    common_placement("histogram2d", (("x", x), ("y", y)))
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
    """Return how many points of any dimension are in each cell of a grid.

    Args:
        x: points as rows, or a sequence of vectors of coordinates.
        bins: as of :func:`histogram2d`, for each dimension.
        range: as of :func:`histogram2d`, for each dimension.
        density: as of :func:`histogram2d`.
        weights: as of :func:`histogram2d`.

    Returns:
        The counts, and a tuple of edges.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the arguments do not fit each other, or edges do not increase.

    Example:
        >>> import dparray as dp
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
    """A histogram of points: the cell of each by its coordinates, and one count of all cells."""
    named = list(coordinates)
    if weights is not None:
        named.append(("weights", vector_of(function, coordinates[0][1], "weights", weights)))
    placement = common_placement(function, named)
    loop = _dtypes.promote([column.dtype for _, column in coordinates])
    loop = _dtypes.fit_device(loop, placement.queue.sycl_device)
    columns = [
        astype_array(_with_usm_type(column, placement), loop, copy=False)
        for _, column in coordinates
    ]
    ranges = [None] * len(columns) if limits is None else list(limits)
    if len(ranges) != len(columns):
        raise ShapeError(f"{function}: {len(ranges)} ranges for {len(columns)} dimensions")
    wide = _dtypes.promote([loop, _dtypes.default_float(placement.queue.sycl_device)])
    edges = tuple(  # between limits they are of these, which are Python's
        histogram_bin_edges(
            column if limit is None else astype_array(column, wide, copy=False), one, limit
        )
        for column, one, limit in zip(columns, bins, ranges, strict=True)
    )
    shape = tuple(edge.size - 1 for edge in edges)
    cell: Any = None
    inside: Any = None
    for column, edge, extent in zip(columns, edges, shape, strict=True):
        index = apply(OPS["subtract"], digitize(column, edge), 1)
        # The last cell has its right edge.
        index = choose_elements(function, apply(OPS["equal"], column, edge[-1]), extent - 1, index)
        fits = apply(
            OPS["logical_and"],
            apply(OPS["greater_equal"], index, 0),
            apply(OPS["less"], index, extent),
        )
        if cell is None:
            cell, inside = index, fits
        else:
            cell = apply(OPS["add"], apply(OPS["multiply"], cell, extent), index)
            inside = apply(OPS["logical_and"], inside, fits)
    # Points outside are counted in a cell behind the last one.
    total = math.prod(shape)
    cell = choose_elements(function, inside, cell, total)
    amounts = None if weights is None else named[-1][1]
    flat = bincount(cell, amounts, minlength=total + 1)[:total]
    dtype = _dtypes.default_float(placement.queue.sycl_device)
    counts = reshape(astype_array(flat, dtype), shape)
    if density:
        for axis, edge in enumerate(edges):
            width = edge[1:] - edge[:-1]
            counts = counts / reshape(width, (-1,) + (1,) * (len(edges) - axis - 1))
        counts = counts / sum_of(flat)
    return counts, edges


def _with_usm_type(x: ndarray, placement: Placement) -> ndarray:
    """The array, or a copy of it in memory of the common USM type."""
    if x.usm_type == placement.usm_type:
        return x
    copied = empty_on(placement, x.shape, x.dtype)
    copied[...] = x
    return copied


@public()
def histogram_bin_edges(x: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> ndarray:
    """Return the edges that :func:`histogram` takes; weights have no influence on them.

    Example:
        >>> import dparray as dp
        >>> dp.histogram_bin_edges(dp.asarray([1.0, 4.0]), bins=3).asnumpy()
        array([1., 2., 3., 4.])
    """
    named = [("x", x)]
    bins = _number_of_bins("histogram_bin_edges", x, bins, range, weights)
    if _are_even(x, bins) and not host_may_compute(x.sycl_queue, x.usm_type):
        return _even_edges("histogram_bin_edges", x, bins, range)
    if isinstance(bins, ndarray | list | tuple):
        named.append(("bins", vector_of("histogram_bin_edges", x, "bins", bins)))
    return compute(
        "histogram_bin_edges",
        named,
        either=lambda xp, values, *edges: xp.histogram_bin_edges(
            values, bins=edges[0] if edges else bins, range=range
        ),
    )


def _are_even(x: ndarray, bins: Any) -> bool:
    """Whether bins are a number of them, of elements whose edges are computed here."""
    is_number = isinstance(bins, int | np.integer) and not isinstance(bins, bool)
    return is_number and x.dtype.kind in "iuf" and x.dtype != np.float16


def _even_edges(function: str, x: ndarray, bins: int, range: Any) -> ndarray:
    """Edges as NumPy's, where dpnp's are rounded otherwise, so that it counts otherwise."""
    if bins < 1:
        raise ValueError(f"{function}: bins is {bins}; it must be 1 or more")
    edges = even_edges(function, x, int(bins), range)[-1]
    return from_host(edges, x.sycl_queue, x.usm_type)


def _number_of_bins(function: str, x: ndarray, bins: Any, range: Any, weights: Any) -> Any:
    """What ``bins`` is; a number, where it names a rule and the host may not compute."""
    if not isinstance(bins, str):
        return bins
    if bins not in _WIDTHS:
        known = ", ".join(map(repr, _WIDTHS))
        raise ArgumentError(f"{function}: bins {bins!r} is none of {known}")
    if weights is not None:
        raise ArgumentError(f"{function}: rules for bins take no weights; give their number")
    if host_may_compute(x.sycl_queue, x.usm_type):
        return bins
    first, last = histogram_bin_edges(x, 1, range).asnumpy()
    values = ravel(x)
    if range is not None:
        values = values[apply(OPS["greater_equal"], values, float(first))]
        values = values[apply(OPS["less_equal"], values, float(last))]
    if not values.size:
        return 1
    width = _WIDTHS[bins](values, (first, last))
    if x.dtype.kind in "iu" and width:
        width = max(width, 1)
    return int(np.ceil((last - first) / width)) if width else 1


def _extent(x: ndarray) -> Any:
    """From the smallest element to the largest, in the dtype that NumPy has it in."""
    return max_of(x).asnumpy()[()] - min_of(x).asnumpy()[()]


def _by_square_root(x: ndarray, range: Any) -> Any:
    return _extent(x) / np.sqrt(x.size)


def _by_sturges(x: ndarray, range: Any) -> Any:
    return _extent(x) / (np.log2(x.size) + 1)


def _by_rice(x: ndarray, range: Any) -> Any:
    return _extent(x) / (2 * x.size ** (1 / 3))


def _by_scott(x: ndarray, range: Any) -> Any:
    """D. W. Scott, "On optimal and data-based histograms", Biometrika 66 (1979)."""
    return (24 * math.sqrt(math.pi) / x.size) ** (1 / 3) * std(x).asnumpy()[()]


def _by_doane(x: ndarray, range: Any) -> Any:
    """D. P. Doane, "Aesthetic frequency classifications", The American Statistician 30 (1976)."""
    count, deviation = x.size, float(std(x))
    if count <= 2 or not deviation:
        return 0.0
    ratio = apply(OPS["divide"], apply(OPS["subtract"], x, mean(x)), deviation)
    skewness = np.abs(mean(ratio * ratio * ratio).asnumpy()[()])
    usual = np.sqrt(6 * (count - 2) / ((count + 1) * (count + 3)))
    return _extent(x) / (1 + np.log2(count) + np.log2(1 + skewness / usual))


def _by_freedman_diaconis(x: ndarray, range: Any) -> Any:
    """D. Freedman, P. Diaconis, "On the histogram as a density estimator" (1981)."""
    upper, lower = percentile(x, [75, 25]).asnumpy()
    return 2 * (upper - lower) * x.size ** (-1 / 3)


def _by_stone(x: ndarray, limits: Any) -> Any:
    """C. J. Stone, "An asymptotically optimal histogram selection rule" (1984)."""
    count, extent = x.size, _extent(x)
    if count <= 1 or not extent:
        return 0.0

    def risk(bins: int) -> float:
        shares = histogram(x, bins, limits)[0].asnumpy() / count
        return float((2 - (count + 1) * shares.dot(shares)) / (extent / bins))

    return extent / min(builtins.range(1, max(100, math.isqrt(count)) + 1), key=risk)


def _by_the_narrower(x: ndarray, range: Any) -> Any:
    """Freedman and Diaconis, with no more bins than four times the square root's, or Sturges."""
    width = max(_by_freedman_diaconis(x, range), _by_square_root(x, range) / 2)
    return min(width, _by_sturges(x, range))


#: How wide a bin is by the rules that have a name.
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


@public()
def digitize(x: Any, bins: Any, right: bool = False) -> ndarray:
    """In which of the bins with the given edges each element is.

    Args:
        x: an array.
        bins: a vector of edges that increase or decrease.
        right: the right edge belongs to the bin.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: ``bins`` is no vector, or is not monotonic.

    Example:
        >>> import dparray as dp
        >>> dp.digitize(dp.asarray([0.5, 1.5]), dp.asarray([0.0, 1.0, 2.0])).asnumpy()
        array([1, 2])
    """
    edges = vector_of("digitize", x, "bins", bins)
    return compute(
        "digitize",
        (("x", x), ("bins", edges)),
        either=lambda xp, values, at: xp.digitize(values, at, right=right),
    )
