"""Sorting.

On a CPU device NumPy sorts in the arrays' own memory, which is many times faster than dpnp. Long
axes are sorted by dparray's radix sort on all cores, which is faster still. If NumPy may not be
used, the radix sort also sorts short axes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache, partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from dparray import _dtypes, _hooks, _layout, config
from dparray._array.allocation import empty_on
from dparray._array.apply import astype_array, choose_elements, copy_of
from dparray._array.assignment import assign
from dparray._array.dispatch import by_name, compute, into_out
from dparray._array.ndarray import array_method, ndarray
from dparray._array.operands import check_array
from dparray._driver import traits_of
from dparray._functions.indexing import take_along_axis
from dparray._functions.line_sorts import (
    argsort_lines,
    kind_of_values,
    lexsort_lines,
    sort_lines,
)
from dparray._functions.manipulation import moveaxis, ravel, reshape
from dparray._functions.public import public
from dparray._functions.rearranging import flip
from dparray._placement import common_placement, placement_of
from dparray.algorithms.sort import sort_by_key, stable_argsort
from dparray.exceptions import ArgumentError, DTypeError, ShapeError
from dparray.memory.libraries import library_of

__all__ = [
    "TopKResult",
    "argpartition",
    "argsort",
    "lexsort",
    "partition",
    "sort",
    "sort_complex",
    "top_k",
]

# From this many elements along the axis, dparray's radix sort is faster than NumPy's stable sorts
# on at least two cores (`make bench ARGS=algorithms`). NumPy's own radix sort computes the indices
# of narrow integers.
_LONG = 1 << 19
_LONG_FOR_POSITIONS = 1 << 16
# NumPy merges to compute the indices of wider values: 9.4 ms for 100,000 float32, where
# `argsort_lines` takes 1.5 ms. Up to this many elements its setup costs more.
_SHORT_MERGES = 1 << 11
# NumPy sorts float16 by merging: 27 ms for 2**18 elements, where dparray's radix sort takes 2 ms.
_LONG_HALVES = 1 << 17
# NumPy's vectorized sort, of values or of indices packed with value bits, is as fast on one core as
# dparray's radix sort on this many. By the size of a value; and the length from which this no
# longer holds for indices.
_CORES_OF_VECTORIZED = 4
_LONG_FOR_VECTORS = {4: 1 << 23, 8: 1 << 21}
# The elements for which NumPy's sort is timed, and the seconds for each that its vectorized sort
# stays below. It takes 1 to 6 ns where it is fast, and comparing takes 40 to 60 ns.
_TIMED, _VECTORIZED = 1 << 14, 15e-9


@cache
def _numpy_vectorizes(itemsize: int) -> bool:
    """Return whether NumPy sorts values of this size fast with vector instructions.

    It is timed once, in less than 3 ms. On some processors with such instructions, like AMD's
    Zen 4, they are as slow as comparisons.
    """
    if itemsize not in (2, 4, 8):
        return False
    values = np.random.default_rng(0).integers(0, 1 << 15, _TIMED).astype(f"i{itemsize}")
    values <<= 8 * itemsize - 16
    times = []
    for _ in range(4):
        start = perf_counter()
        np.sort(values)
        times.append(perf_counter() - start)
    return min(times) < _TIMED * _VECTORIZED


_KINDS = (None, "stable", "quicksort", "mergesort", "heapsort", "radixsort")


def _kind(name: str, stable: bool | None, kind: str | None) -> Any:
    """Return NumPy's name of the algorithm."""
    if kind is not None:  # NumPy checks the first letter only
        letter = kind[:1].lower() if isinstance(kind, str) else ""
        if kind != "radixsort" and letter not in ("q", "h", "m", "s"):
            raise ValueError(f"{name}: kind must be one of {_KINDS[1:]}; got {kind!r}")
        return "quicksort" if letter in ("q", "h") else "stable"
    return "quicksort" if stable is False else "stable"


def _new(x: ndarray, dtype: np.dtype[Any]) -> ndarray:
    return empty_on(placement_of(x), x.shape, dtype)


def is_by_radix(x: ndarray) -> bool:
    """Return whether dparray's radix sort is available for an array, instead of the library's.

    It is limited to CPU devices, where Intel's compiler (2026) has crashed while it compiled dpnp's
    kernels.
    """
    return x.size > 0 and x.dtype.kind in "biuf" and traits_of(x.queue).shares_memory


def _is_long(x: ndarray, axis: int, least: int) -> bool:
    """Return whether the lines along an axis are worth sorting with dparray's radix sort."""
    return x.ndim > 0 and x.shape[axis] >= least and is_by_radix(x)


def _cores(x: ndarray) -> int:
    """Return the number of cores of the device of an array."""
    cores: int = traits_of(x.queue).units
    return cores


def is_vectorized(x: ndarray) -> bool:
    """Return whether NumPy's vectorized sort on one core beats dparray's radix sort."""
    return (
        x.dtype.char != "e"
        and _cores(x) < _CORES_OF_VECTORIZED
        and config.host_tier
        and _numpy_vectorizes(x.itemsize)
    )


def _long(x: ndarray) -> int:
    """Return the length from which the radix sort beats NumPy's sort without vectorization."""
    return _LONG_HALVES if x.dtype.char == "e" else _LONG


def _long_for_positions(x: ndarray) -> int:
    """Return the minimum length of lines for which radix sorting of indices is worthwhile."""
    if x.itemsize < 4:
        return _long(x)
    return _LONG_FOR_VECTORS.get(x.itemsize, _LONG) if is_vectorized(x) else _LONG_FOR_POSITIONS


def _line_by_line(
    function: Callable[[ndarray], ndarray], x: ndarray, axis: int, dtype: np.dtype[Any]
) -> ndarray:
    """Apply ``function`` to each line along an axis, passed as a contiguous array."""
    if x.ndim == 1:
        return function(x if x.strides == (x.itemsize,) else copy_of(x))
    result = _new(x, dtype)
    lines, targets = moveaxis(x, axis, -1), moveaxis(result, axis, -1)
    for index in np.ndindex(lines.shape[:-1]):
        assign(targets[index], _line_by_line(function, lines[index], 0, dtype))
    return result


def _positions_by_radix(lines: ndarray) -> tuple[ndarray, ndarray]:
    """Return the elements of all lines along the last axis, and the sorted index of each."""
    flat = ravel(lines)
    order = stable_argsort(flat)
    if lines.ndim > 1:
        order = order[stable_argsort(order // lines.shape[-1])]
    return flat, order


def _sort_by_radix(x: ndarray, axis: int) -> ndarray:
    lines = moveaxis(x, axis, -1)
    flat, order = _positions_by_radix(lines)
    return moveaxis(reshape(flat[order], lines.shape), -1, axis)


def _argsort_by_radix(x: ndarray, axis: int) -> ndarray:
    lines = moveaxis(x, axis, -1)
    _, order = _positions_by_radix(lines)
    return moveaxis(reshape(order % lines.shape[-1], lines.shape), -1, axis)


def _sorted(values: np.ndarray, axis: Any, kind: Any, stable: Any) -> np.ndarray:
    if not _is_plain(axis):
        raise TypeError
    _kind("sort", stable, kind)
    return np.sort(values, axis, kind_of_values(values))


@public(small=_sorted, takes=("axis", "kind", "stable"))
def sort(
    x: Any,
    /,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> ndarray:
    """Return a sorted copy along an axis; NaN comes last in ascending order.

    Args:
        x: an array.
        axis: the axis; ``None`` sorts the flattened array.
        kind: NumPy's names of algorithms; they determine only whether the sort is stable.
        descending: whether to sort in descending order.
        stable: whether equal elements keep their order (which makes no difference for values).

    Returns:
        A new array of the shape and dtype of ``x``, on its queue.

    Example:
        >>> dp.sort(dp.asarray([3, 1, 2]), descending=True).asnumpy()
        array([3, 2, 1])
    """
    _kind("sort", stable, kind)
    if axis is None:
        x, axis = ravel(x), 0
    axis = _layout.normalize_axis("sort", axis, x.ndim)
    if _is_long(x, axis, _long(x)) and not is_vectorized(x):
        result = _line_by_line(lambda line: sort_by_key(line)[0], x, axis, x.dtype)
        return copy_of(flip(result, axis)) if descending else result
    result = _new(x, x.dtype)
    if x.size and library_of(x.queue).sorts_in_place:
        return _sort_in_result(x, result, axis, descending)
    target = flip(result, axis) if descending else result

    cores = _cores(x)

    def by_numpy(source: np.ndarray, out: np.ndarray) -> None:
        sort_lines(source, axis, out, cores)

    library = None if is_by_radix(x) else into_out(partial(by_name("sort"), axis=axis))
    if compute("sort", (("x", x),), host=by_numpy, library=library, out=target) is None:
        assign(target, _sort_by_radix(x, axis))
    return result


def _sort_in_result(x: ndarray, result: ndarray, axis: int, descending: bool) -> ndarray:
    """Sort in the memory of the result by a library that can, after one kernel has written it.

    The library puts negative NaN first, so the kernel writes positive ones.
    """
    is_float = x.dtype.kind == "f"
    values = choose_elements("sort", x != x, np.nan, x) if is_float else x
    assign(result, values)

    def by_library(library: Any, _: Any, out: Any) -> None:
        library.sort_in_place(out, axis)

    compute("sort", (("x", result),), library=by_library, out=result)
    return copy_of(flip(result, axis)) if descending else result


def _is_plain(axis: Any) -> bool:
    """Return whether NumPy accepts an axis argument with the same meaning."""
    return axis is None or type(axis) is int


def _has_few_positions(x: ndarray, axis: Any, kind: Any, stable: Any) -> bool:
    is_small = x.size <= _SHORT_MERGES or x.itemsize < 4
    return is_small and x.ndim > 0 and _is_plain(axis)


def _argsorted(values: np.ndarray, axis: Any, kind: Any, stable: Any) -> np.ndarray:
    return np.argsort(values, axis, _kind("argsort", stable, kind))


@public(small=_argsorted, takes=("axis", "kind", "stable"), when=_has_few_positions)
def argsort(
    x: Any,
    /,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> ndarray:
    """Return the indices that sort an array along an axis, as ``int64``; see :func:`sort`.

    Example:
        >>> dp.argsort(dp.asarray([3, 1, 2])).asnumpy()
        array([1, 2, 0])
    """
    algorithm = _kind("argsort", stable, kind)
    if axis is None:
        x, axis = ravel(x), 0
    axis = _layout.normalize_axis("argsort", axis, max(x.ndim, 1))
    if not x.ndim:  # NumPy treats a 0-d array as a vector of one element
        x = reshape(x, 1)
    # Descending and stable: sort the reversed array and count the indices from its end.
    source = flip(x, axis) if descending else x
    if _is_long(x, axis, _long_for_positions(x)):
        result = _line_by_line(stable_argsort, source, axis, _dtypes.int64)
        return x.shape[axis] - 1 - flip(result, axis) if descending else result
    result = _new(x, _dtypes.int64)
    target = flip(result, axis) if descending else result

    cores = _cores(x)

    def by_numpy(values: np.ndarray, out: np.ndarray) -> None:
        argsort_lines(values, axis, out, cores, algorithm == "stable")

    library = None if is_by_radix(x) else into_out(partial(by_name("argsort"), axis=axis))
    if compute("argsort", (("x", source),), host=by_numpy, library=library, out=target) is None:
        assign(target, _argsort_by_radix(source, axis))
    if descending:
        assign(result, x.shape[axis] - 1 - result)
    return result


@array_method("sort")
def _sort_in_place(
    self: ndarray,
    axis: int = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> None:
    """Sort the array in place along an axis, as NumPy's method does; see :func:`dparray.sort`.

    Raises:
        ArgumentError: ``axis`` is ``None``; :func:`dparray.sort` returns a new sorted vector
            instead.
    """
    if axis is None:
        raise ArgumentError(
            "sort: axis=None would change the shape in place; write x = dp.sort(x, axis=None)"
        )
    mark = _hooks.latest_work()
    assign(self, sort(self, axis, kind, descending=descending, stable=stable))
    _hooks.note_call("sort", mark, self)


@array_method("argsort")
def _argsort_method(
    self: ndarray,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> ndarray:
    """Return the indices that sort the array; see :func:`dparray.argsort`."""
    return argsort(self, axis, kind, descending=descending, stable=stable)


def _is_plain_selection(x: ndarray, kth: Any, axis: Any) -> bool:
    return type(kth) is int and _is_plain(axis)


@public(small=np.partition, takes=("kth", "axis"), when=_is_plain_selection)
def partition(
    x: Any, kth: int | Sequence[int] | ndarray, axis: int | None = -1, kind: str = "introselect"
) -> ndarray:
    """Partition a copy: element ``kth`` is where a sort puts it, smaller ones are before it.

    Raises:
        IndexError: ``kth`` is out of range.

    Example:
        >>> int(dp.partition(dp.asarray([5, 1, 4, 2]), 1)[1])
        2
    """
    if kind != "introselect":
        raise ArgumentError(f"partition: kind must be 'introselect'; got {kind!r}")
    if axis is None:
        x, axis = ravel(x), 0
    axis = _layout.normalize_axis("partition", axis, x.ndim)
    kth = _checked_kth("partition", x, kth, x.shape[axis])
    result = _new(x, x.dtype)

    def by_numpy(source: np.ndarray, out: np.ndarray) -> None:
        np.copyto(out, source)
        if out.size:
            out.partition(kth, axis=axis)

    found = compute("partition", (("x", x),), host=by_numpy, out=result)
    return sort(x, axis) if found is None else result


@public(small=np.argpartition, takes=("kth", "axis"), when=_is_plain_selection)
def argpartition(
    x: Any, kth: int | Sequence[int] | ndarray, axis: int | None = -1, kind: str = "introselect"
) -> ndarray:
    """Return the indices that :func:`partition` an array, as ``int64``, with the same errors.

    Example:
        >>> int(dp.argpartition(dp.asarray([5, 1, 4, 2]), 1)[1])
        3
    """
    if kind != "introselect":
        raise ArgumentError(f"argpartition: kind must be 'introselect'; got {kind!r}")
    if axis is None:
        x, axis = ravel(x), 0
    axis = _layout.normalize_axis("argpartition", axis, max(x.ndim, 1))
    if not x.ndim:
        x = reshape(x, 1)
    kth = _checked_kth("argpartition", x, kth, x.shape[axis])
    result = _new(x, _dtypes.int64)

    def by_numpy(source: np.ndarray, out: np.ndarray) -> None:
        if out.size:
            np.copyto(out, np.argpartition(source, kth, axis=axis))

    found = compute("argpartition", (("x", x),), host=by_numpy, out=result)
    return argsort(x, axis) if found is None else result


def _checked_kth(name: str, x: ndarray, kth: Any, extent: int) -> list[int]:
    """Return indices along an axis; the host waits for those in an array on the queue of ``x``."""
    if isinstance(kth, ndarray):
        common_placement(name, (("x", x), ("kth", kth)))
        kth = kth.tolist()
    elif isinstance(kth, np.ndarray):
        kth = kth.tolist()
    try:
        given = kth if isinstance(kth, list | tuple) else [kth]
        positions = [operator.index(one) for one in given]
    except TypeError:
        raise ArgumentError(
            f"{name}: kth must be an integer or a list of integers; got {kth!r}"
        ) from None
    for position in positions:
        if extent and not -extent <= position < extent:
            raise IndexError(
                f"{name}: kth {position} is out of range for an axis of length {extent}"
            )
    return positions


class TopKResult(NamedTuple):
    """The largest or smallest elements, and their indices.

    Example:
        >>> dp.top_k(dp.asarray([5, 1, 4]), 2).indices.asnumpy()
        array([0, 2])
    """

    values: ndarray
    indices: ndarray


@public()
def top_k(x: Any, k: int, /, *, axis: int | None = None, mode: str = "largest") -> TopKResult:
    """Return the `k` largest or smallest elements along an axis, best first, and their indices.

    Args:
        x: a real array.
        k: the number of elements.
        axis: the axis; ``None`` means the flattened array.
        mode: ``"largest"`` or ``"smallest"``.

    Returns:
        A named tuple of ``values`` and ``indices`` (``int64``) on the queue of ``x``. NaN counts as
        larger than all numbers.

    Raises:
        ArgumentError: ``k`` is not an integer from 1 to the length of the axis, or the mode is
            unknown.
        DTypeError: ``x`` is complex.

    Example:
        >>> dp.top_k(dp.asarray([5, 1, 4, 2]), 2).values.asnumpy()
        array([5, 4])
    """
    if mode not in ("largest", "smallest"):
        raise ArgumentError(f"top_k: mode must be 'largest' or 'smallest'; got {mode!r}")
    if x.dtype.kind == "c":
        raise DTypeError("top_k: not defined for complex numbers; use x.real")
    if axis is None:
        x, axis = ravel(x), 0
    axis = _layout.normalize_axis("top_k", axis, x.ndim)
    extent = x.shape[axis]
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= extent:
        raise ArgumentError(f"top_k: k must be from 1 to {extent} along axis {axis}; got {k!r}")
    is_largest = mode == "largest"
    best = slice(extent - k, None) if is_largest else slice(0, k)
    parted = argpartition(x, extent - k if is_largest else k - 1, axis)
    positions = parted[_layout.at_axis(axis, best)]
    values = take_along_axis(x, positions, axis)
    order = argsort(values, axis, descending=is_largest)
    return TopKResult(take_along_axis(values, order, axis), take_along_axis(positions, order, axis))


def _lexsorted(keys: tuple[np.ndarray, ...], axis: Any) -> np.ndarray:
    if type(axis) is not int:
        raise TypeError
    _layout.normalize_axis("lexsort", axis, keys[0].ndim)
    return np.lexsort(keys, axis)


@public(small=_lexsorted, takes=("axis",), mode="join")
def lexsort(keys: Any, axis: int = -1) -> ndarray:
    """Return the indices that sort by several keys, of which the last is the primary one.

    Args:
        keys: a sequence of arrays of equal shape, or an array whose first axis is the sequence.
        axis: the axis along which each key is sorted.

    Raises:
        ExecutionPlacementError: the keys are on different queues.
        ShapeError: there are no keys, or their shapes differ.

    Example:
        >>> first, second = dp.asarray([1, 1, 0]), dp.asarray([3, 2, 9])
        >>> dp.lexsort([second, first]).asnumpy()
        array([2, 1, 0])
    """
    named = [
        (f"keys[{position}]", check_array("lexsort", f"keys[{position}]", key))
        for position, key in enumerate(keys)
    ]
    if not named or len({key.shape for _, key in named}) != 1:
        raise ShapeError("lexsort: keys must be at least one array, all of equal shape")
    placement = common_placement("lexsort", named)
    axis = _layout.normalize_axis("lexsort", axis, named[0][1].ndim)
    result = empty_on(placement, named[0][1].shape, _dtypes.int64)
    cores = _cores(result)

    def by_numpy(*views: np.ndarray) -> None:
        lexsort_lines(views[:-1], axis, views[-1], cores)

    if compute("lexsort", named, host=by_numpy, out=result) is None:
        columns = [moveaxis(key, axis, -1) for _, key in named]
        order = argsort(columns[0])
        for key in columns[1:]:
            order = _taken(order, argsort(_taken(key, order)))
        assign(result, moveaxis(order, -1, axis))
    return result


def _taken(values: ndarray, positions: ndarray) -> ndarray:
    """Return each line of ``values`` at ``positions``, along the last axis."""
    result = _new(values, values.dtype)
    compute(
        "lexsort",
        (("keys", values), ("positions", positions)),
        library=into_out(partial(by_name("take_along_axis"), axis=-1)),
        out=result,
    )
    return result


@public()
def sort_complex(x: Any) -> ndarray:
    """Sort the elements by real part, then by imaginary part, and return them as complex numbers.

    Example:
        >>> dp.sort_complex(dp.asarray([2 + 1j, 1 - 1j])).asnumpy()
        array([1.-1.j, 2.+1.j])
    """
    ordered = sort(x, axis=-1)
    if x.dtype.kind == "c":
        return ordered
    is_narrow = x.dtype.kind in "iu" and x.itemsize < 4
    wide = _dtypes.default_complex(traits_of(x.queue))
    return astype_array(ordered, _dtypes.complex64 if is_narrow else wide)
