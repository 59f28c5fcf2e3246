"""Creation functions beyond the Array API: grids, index arrays, special matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dparray import _dtypes, _layout
from dparray._array.apply import astype_array
from dparray._array.dispatch import compute, compute_at_once
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_arrays
from dparray._driver import traits_of
from dparray._functions.attributes import is_weak
from dparray._functions.conversion import asarray
from dparray._functions.indexing import nonzero
from dparray._functions.joining import concat, on_one_queue, stack
from dparray._functions.manipulation import atleast_1d, broadcast_to, reshape
from dparray._functions.public import public
from dparray._functions.ranges import arange, linspace
from dparray._placement import common_placement
from dparray.device import queue_of
from dparray.exceptions import DTypeError, ShapeError, UnsupportedFeatureError

__all__ = [
    "c_",
    "fromfunction",
    "indices",
    "ix_",
    "mgrid",
    "ogrid",
    "r_",
    "ravel_multi_index",
    "unravel_index",
]


def fromfunction(
    function: Callable[..., Any],
    shape: Sequence[int],
    *,
    dtype: DTypeLike | None = None,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Any = None,
    **options: Any,
) -> Any:
    """Call ``function`` with the coordinate arrays of a shape.

    Args:
        function: called with one array for each axis.
        shape: the shape.
        dtype: the dtype of the coordinates; ``None`` means the device's default float dtype.
        device, usm_type, sycl_queue: the placement of the coordinates; see :func:`asarray`.
        **options: further arguments for ``function``.

    Example:
        >>> dp.fromfunction(lambda i, j: i + j, (2, 2), dtype=int).asnumpy()
        array([[0, 1],
               [1, 2]])
    """
    place = {"device": device, "usm_type": usm_type, "sycl_queue": sycl_queue}
    return function(*indices(shape, dtype, **place), **options)


def indices(dimensions: Sequence[int], dtype: Any = int, sparse: bool = False, **place: Any) -> Any:
    """Return the coordinates of the elements of a shape, one array for each axis, stacked.

    Args:
        dimensions: the shape.
        dtype: the dtype of the coordinates; ``None`` means the device's default float dtype, or
            ``int`` if sparse.
        sparse: whether to return a tuple of arrays that broadcast to the shape instead.
        **place: ``device``, ``usm_type``, ``sycl_queue``; see :func:`asarray`.

    Example:
        >>> dp.indices((2, 2))[1].asnumpy()
        array([[0, 1],
               [0, 1]])
    """
    shape = _layout.check_shape(dimensions)
    if dtype is None and not sparse:
        queue = queue_of(place.get("device"), place.get("sycl_queue"))
        dtype = _dtypes.default_float(traits_of(queue))
    lines = [
        reshape(
            arange(extent, dtype=dtype, **place),
            (1,) * axis + (extent,) + (1,) * (len(shape) - axis - 1),
        )
        for axis, extent in enumerate(shape)
    ]
    if sparse:
        return tuple(lines)
    if not lines:
        return asarray([], dtype, **place)
    return stack([broadcast_to(line, shape) for line in lines])


class _Grid:
    """The class of ``mgrid`` and ``ogrid``: grids given as slices, on the default device."""

    def __init__(self, sparse: bool) -> None:
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        slices = key if isinstance(key, tuple) else (key,)
        if any(getattr(end, "ndim", 0) for one in slices for end in (one.start, one.stop)):
            return self._between_arrays(key, slices)
        lines = [self._line(one) for one in slices]
        dtype = np.result_type(*(line.dtype for line in lines))
        lines = [astype_array(line, dtype, copy=False) for line in lines]
        if not isinstance(key, tuple):
            return lines[0]
        shape = tuple(line.size for line in lines)
        shaped = [
            reshape(line, (1,) * at + (line.size,) + (1,) * (len(lines) - at - 1))
            for at, line in enumerate(lines)
        ]
        if self.sparse:
            return tuple(shaped)
        return stack([broadcast_to(line, shape) for line in shaped])

    def _between_arrays(self, key: Any, slices: Sequence[slice]) -> Any:
        """Return evenly spaced points between arrays, which broadcast with the coordinates."""
        if not all(isinstance(one.step, complex) for one in slices):
            raise ShapeError("a grid between arrays requires a number of points, as in a:b:10j")
        counts = [int(abs(one.step)) for one in slices]
        positions = indices(counts) if not self.sparse else [arange(count) for count in counts]
        lines = []
        for at, one in enumerate(slices):
            start = 0 if one.start is None else one.start
            step = (one.stop - start) / (counts[at] - 1.0) if counts[at] > 1 else 1
            line = positions[at] * step + start
            if self.sparse and isinstance(key, tuple):
                line = line[tuple(slice(None) if k == at else None for k in range(len(slices)))]
            lines.append(line)
        if not isinstance(key, tuple):
            return lines[0]
        return tuple(lines) if self.sparse else stack(lines)

    @staticmethod
    def _line(one: slice) -> ndarray:
        """Return the coordinates along one axis; an imaginary step is a number of points."""
        start = 0 if one.start is None else one.start
        if isinstance(one.step, complex):
            return linspace(start, one.stop, int(abs(one.step)))
        return arange(start, one.stop, 1 if one.step is None else one.step)


mgrid = _Grid(sparse=False)
ogrid = _Grid(sparse=True)


def ix_(*arrays: Any) -> tuple[ndarray, ...]:
    """Convert vectors (of indices or masks) to arrays that index their cross product.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: one of them is not a vector.

    Example:
        >>> x = dp.arange(9).reshape(3, 3)
        >>> x[dp.ix_(dp.asarray([0, 2]), dp.asarray([1]))].asnumpy()
        array([[1],
               [7]])
    """
    given = [(f"arrays[{at}]", x) for at, x in enumerate(arrays)]
    named = [(name, x) for (name, _), x in zip(given, check_arrays("ix_", *given), strict=True)]
    results = []
    for position, (name, x) in enumerate(named):
        if x.ndim != 1:
            raise ShapeError(f"ix_: {name} must be a vector; it has {x.ndim} dimensions")
        if not x.size and not isinstance(arrays[position], ndarray):
            x = astype_array(x, _dtypes.int64)
        line = nonzero(x)[0] if x.dtype.kind == "b" else x
        shape = (1,) * position + (line.size,) + (1,) * (len(named) - position - 1)
        results.append(reshape(line, shape))
    return tuple(results)


class _Joiner:
    """The class of ``r_`` and ``c_``: join arrays, scalars and slices by indexing."""

    def __init__(self, name: str, axis: int, ndmin: int, first: int) -> None:
        self.name = name
        self.axis = axis
        self.ndmin = ndmin
        self.first = first

    def __getitem__(self, key: Any) -> ndarray:
        parts = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, first = self.axis, self.ndmin, self.first
        if parts and isinstance(parts[0], str):
            try:
                numbers = [int(number) for number in parts.pop(0).split(",")]
            except ValueError:
                raise UnsupportedFeatureError(
                    f"{self.name}: matrices are not supported; a string must contain numbers: "
                    f"'axis, ndmin, first'"
                ) from None
            axis, ndmin, first = [*numbers, *(self.axis, 1, -1)[len(numbers) :]][:3]
        arrays = [x for x in parts if isinstance(x, ndarray)]
        place: dict[str, Any] = {}
        if arrays:
            placement = common_placement(
                self.name, [(f"arrays[{at}]", x) for at, x in enumerate(arrays)]
            )
            place = {"sycl_queue": placement.queue, "usm_type": placement.usm_type}
        lines = [self._line(x, place) if isinstance(x, slice) else x for x in parts]
        weak = [x for x in lines if is_weak(x)]
        shaped = [self._shaped(x, ndmin, first) for x in on_one_queue(self.name, lines)]
        strong = [x.dtype for x, given in zip(shaped, lines, strict=True) if not is_weak(given)]
        dtype = np.result_type(*strong, *weak) if strong or weak else None
        for at, given in enumerate(lines):
            if is_weak(given) and dtype is not None:
                np.asarray(given, dtype)  # NumPy's error for a number that does not fit
                shaped[at] = astype_array(shaped[at], dtype)
        if all(x.dtype == dtype for x in shaped):
            dtype = None
        return concat(shaped, axis=axis, dtype=dtype)

    @staticmethod
    def _line(one: slice, place: dict[str, Any]) -> ndarray:
        start = 0 if one.start is None else one.start
        if isinstance(one.step, complex):
            return linspace(start, one.stop, int(abs(one.step)), **place)
        return arange(start, one.stop, 1 if one.step is None else one.step, **place)

    @staticmethod
    def _shaped(x: ndarray, ndmin: int, first: int) -> ndarray:
        """Return an array with at least ``ndmin`` dimensions, the existing ones from ``first``."""
        x = atleast_1d(x)
        added = ndmin - x.ndim
        if added <= 0:
            return x
        before = first if first >= 0 else added + 1 + first
        before = min(max(before, 0), added)
        return reshape(x, (1,) * before + x.shape + (1,) * (added - before))


r_ = _Joiner("r_", 0, 1, -1)


c_ = _Joiner("c_", -1, 2, 0)


@public()
def unravel_index(indices: Any, shape: Sequence[int], order: str = "C") -> tuple[ndarray, ...]:
    """Convert indices of the flattened array to indices along each axis.

    Args:
        indices: integers.
        shape: the shape of the array.
        order: the order of flattening, ``"C"`` or ``"F"``.

    Raises:
        ShapeError: an index is out of range.

    Example:
        >>> [at.tolist() for at in dp.unravel_index(dp.asarray([5, 2]), (2, 3))]
        [[1, 0], [2, 2]]
    """
    if indices.dtype.kind not in "iu":
        raise DTypeError(f"unravel_index: indices of dtype {indices.dtype} must be integers")
    extents = _layout.check_shape(shape)
    size = math.prod(extents)
    order = _layout.as_order(order)
    by_numpy = partial(np.unravel_index, shape=extents, order=order)
    small = compute_at_once(by_numpy, (("indices", indices),))
    if small is not None:
        return small
    if indices.size and not (int(indices.min()) >= 0 and int(indices.max()) < size):
        raise ShapeError(f"unravel_index: an index is out of range for an array of {size} elements")
    rest = astype_array(indices, _dtypes.int64, copy=False)
    found = []
    for extent in extents[::-1] if order == "C" else extents:
        found.append(rest % extent)
        rest = rest // extent
    return tuple(found[::-1] if order == "C" else found)


def ravel_multi_index(
    arrays: Sequence[Any], shape: Sequence[int], mode: str = "raise", order: str = "C"
) -> ndarray:
    """Convert indices along each axis to indices of the flattened array.

    Args:
        arrays: integers for each axis.
        shape: the shape of the array.
        mode: the treatment of out-of-range indices: ``"raise"``, ``"wrap"`` or ``"clip"``.
        order: the order of flattening, ``"C"`` or ``"F"``.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: an index is out of range.

    Example:
        >>> dp.ravel_multi_index([dp.asarray([1]), dp.asarray([2])], (2, 3)).asnumpy()
        array([5])
    """
    named = [
        (f"arrays[{at}]", check_array("ravel_multi_index", f"arrays[{at}]", x))
        for at, x in enumerate(arrays)
    ]
    extents = _layout.check_shape(shape)
    if len(named) != len(extents):
        raise ShapeError(f"ravel_multi_index: {len(named)} arrays for {len(extents)} axes")
    return compute(
        "ravel_multi_index",
        named,
        host=True,
        library=lambda xp, *at: xp.ravel_multi_index(at, extents, mode, order),
    )
