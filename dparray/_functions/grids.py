"""Creation beyond the standard: NumPy's other spellings, grids, index arrays, special matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.apply import apply, astype_array
from dparray._array.assignment import assign
from dparray._array.fresh import empty_on
from dparray._array.libraries import call_either
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_arrays, scalar_value
from dparray._functions.creation import arange, asarray, eye, linspace, ones
from dparray._functions.indexing import nonzero
from dparray._functions.manipulation import (
    broadcast_to,
    diag,
    expand_dims,
    ravel,
    reshape,
    stack,
    tril,
    triu,
)
from dparray._graph.ops import OPS
from dparray._placement import Placement, common_placement
from dparray.exceptions import DTypeError, ShapeError

__all__ = [
    "array",
    "asanyarray",
    "ascontiguousarray",
    "asfortranarray",
    "diag_indices",
    "diag_indices_from",
    "diagflat",
    "frombuffer",
    "fromfunction",
    "fromiter",
    "geomspace",
    "identity",
    "indices",
    "ix_",
    "logspace",
    "mask_indices",
    "mgrid",
    "ogrid",
    "ravel_multi_index",
    "tri",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "unravel_index",
    "vander",
]


def array(
    obj: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = True,
    ndmin: int = 0,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Any = None,
) -> ndarray:
    """NumPy's spelling of :func:`asarray`, which copies unless told not to.

    Args:
        obj: as of :func:`asarray`.
        dtype: as of :func:`asarray`.
        order: as of :func:`asarray`.
        copy: as of :func:`asarray`, but ``True`` if not given.
        ndmin: the least number of dimensions; axes are added in front.
        device: as of :func:`asarray`.
        usm_type: as of :func:`asarray`.
        sycl_queue: as of :func:`asarray`.

    Example:
        >>> import dparray as dp
        >>> dp.array([1, 2], ndmin=2).shape
        (1, 2)
    """
    result = asarray(
        obj, dtype, order, copy=copy, device=device, usm_type=usm_type, sycl_queue=sycl_queue
    )
    return reshape(result, (1,) * (ndmin - result.ndim) + result.shape)


def asanyarray(obj: Any, dtype: Any = None, order: str | None = None, **place: Any) -> ndarray:
    """NumPy's other name for :func:`asarray`.

    Example:
        >>> import dparray as dp
        >>> dp.asanyarray([1, 2]).shape
        (2,)
    """
    return asarray(obj, dtype, order, **place)


def ascontiguousarray(obj: Any, dtype: Any = None, **place: Any) -> ndarray:
    """:func:`asarray` with rows one after another in memory and one dimension or more.

    Example:
        >>> import dparray as dp
        >>> dp.ascontiguousarray(dp.ones((2, 3)).T).strides
        (16, 8)
    """
    result = asarray(obj, dtype, "C", **place)
    return result if result.ndim else reshape(result, (1,))


def asfortranarray(obj: Any, dtype: Any = None, **place: Any) -> ndarray:
    """:func:`asarray` with columns one after another in memory.

    Example:
        >>> import dparray as dp
        >>> dp.asfortranarray(dp.ones((2, 3))).strides
        (8, 16)
    """
    return asarray(obj, dtype, "F", **place)


def frombuffer(
    buffer: Any, dtype: Any = None, count: int = -1, offset: int = 0, **place: Any
) -> ndarray:
    """The numbers in a buffer of bytes, copied to a device.

    Args:
        buffer: an object with the buffer protocol.
        dtype: what the bytes are; the default float if not given.
        count: how many numbers; all if -1.
        offset: the first byte.
        **place: ``device``, ``usm_type``, ``sycl_queue`` as of :func:`asarray`.

    Example:
        >>> import dparray as dp
        >>> dp.frombuffer(b"ab", dtype="uint8").asnumpy()
        array([97, 98], dtype=uint8)
    """
    kind = np.float64 if dtype is None else dtype
    return asarray(np.frombuffer(buffer, kind, count, offset), **place)


def fromiter(iterable: Iterable[Any], dtype: Any, count: int = -1, **place: Any) -> ndarray:
    """The numbers of an iterable as a vector.

    Example:
        >>> import dparray as dp
        >>> dp.fromiter((i * i for i in range(3)), int).asnumpy()
        array([0, 1, 4])
    """
    return asarray(np.fromiter(iterable, dtype, count), **place)


def fromfunction(
    function: Callable[..., Any], shape: Sequence[int], *, dtype: Any = float, **place: Any
) -> Any:
    """What ``function`` makes of the coordinate arrays of a shape.

    Args:
        function: called with one array for each axis.
        shape: the extents.
        dtype: of the coordinates.
        **place: ``device``, ``usm_type``, ``sycl_queue`` as of :func:`asarray`.

    Example:
        >>> import dparray as dp
        >>> dp.fromfunction(lambda i, j: i + j, (2, 2), dtype=int).asnumpy()
        array([[0, 1],
               [1, 2]])
    """
    return function(*indices(shape, dtype, **place))


def identity(n: int, dtype: Any = None, **place: Any) -> ndarray:
    """The square matrix with ones on its diagonal.

    Example:
        >>> import dparray as dp
        >>> dp.identity(2, dtype="int8").asnumpy()
        array([[1, 0],
               [0, 1]], dtype=int8)
    """
    return eye(n, dtype=dtype, **place)


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
    **place: Any,
) -> ndarray:
    """Powers of ``base`` whose exponents are evenly spaced; otherwise as :func:`linspace`.

    Example:
        >>> import dparray as dp
        >>> dp.logspace(0, 2, 3).asnumpy()
        array([  1.,  10., 100.])
    """
    exponents = linspace(start, stop, num, endpoint=endpoint, axis=axis, **place)
    result = apply(OPS["pow"], base, exponents)
    return result if dtype is None else astype_array(result, _dtypes.as_dtype(dtype), copy=False)


def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
    **place: Any,
) -> ndarray:
    """Numbers from ``start`` to ``stop`` each of which is the last one times a constant.

    Raises:
        ValueError: one of the ends is 0, or they have different signs.

    Example:
        >>> import dparray as dp
        >>> dp.geomspace(1, 8, 4).asnumpy()
        array([1., 2., 4., 8.])
    """
    ends = [("start", scalar_value(start)), ("stop", scalar_value(stop))]
    if any(isinstance(end, ndarray | list | tuple) for _, end in ends):
        first, last = check_arrays("geomspace", *ends)
        common_placement("geomspace", (("start", first), ("stop", last)))
        low, high = (apply(OPS["log10"], apply(OPS["abs"], end)) for end in (first, last))
        exponents = linspace(low, high, num, endpoint=endpoint, axis=axis)
        signs = apply(OPS["add"], apply(OPS["sign"], first), apply(OPS["multiply"], last, 0))
        at = _layout.normalize_axis("geomspace", axis, exponents.ndim)
        values = apply(OPS["multiply"], apply(OPS["pow"], 10.0, exponents), expand_dims(signs, at))
        if num > 0:
            values[_layout.at_axis(at, 0)] = first
            if endpoint and num > 1:
                values[_layout.at_axis(at, -1)] = last
        return values if dtype is None else astype_array(values, _dtypes.as_dtype(dtype), False)
    if start == 0 or stop == 0 or (start < 0) != (stop < 0):
        raise ValueError(f"geomspace: {start} ... {stop}; both ends must be on one side of 0")
    sign = -1.0 if start < 0 else 1.0
    exponents = linspace(
        math.log10(abs(start)), math.log10(abs(stop)), num, endpoint=endpoint, **place
    )
    result = apply(OPS["multiply"], apply(OPS["pow"], 10.0, exponents), sign)
    if num > 0:
        result[0] = start
        if endpoint and num > 1:
            result[-1] = stop
    return result if dtype is None else astype_array(result, _dtypes.as_dtype(dtype), copy=False)


def indices(dimensions: Sequence[int], dtype: Any = int, sparse: bool = False, **place: Any) -> Any:
    """The coordinates of the elements of a shape: one array for each axis, stacked.

    Args:
        dimensions: the extents.
        dtype: of the coordinates.
        sparse: give a tuple of arrays that broadcast to the shape instead.
        **place: ``device``, ``usm_type``, ``sycl_queue`` as of :func:`asarray`.

    Example:
        >>> import dparray as dp
        >>> dp.indices((2, 2))[1].asnumpy()
        array([[0, 1],
               [0, 1]])
    """
    shape = _layout.check_shape(dimensions)
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
    """``mgrid`` and ``ogrid``: grids written as slices, on the default device."""

    def __init__(self, sparse: bool) -> None:
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        slices = key if isinstance(key, tuple) else (key,)
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

    @staticmethod
    def _line(one: slice) -> ndarray:
        """The coordinates along one axis; an imaginary step is a number of points."""
        start = 0 if one.start is None else one.start
        if isinstance(one.step, complex):
            return linspace(start, one.stop, int(abs(one.step)))
        return arange(start, one.stop, 1 if one.step is None else one.step)


mgrid = _Grid(sparse=False)
ogrid = _Grid(sparse=True)


def ix_(*arrays: Any) -> tuple[ndarray, ...]:
    """Vectors (positions or masks) as arrays that index their cross product.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: one of them is no vector.

    Example:
        >>> import dparray as dp
        >>> x = dp.arange(9).reshape(3, 3)
        >>> x[dp.ix_(dp.asarray([0, 2]), dp.asarray([1]))].asnumpy()
        array([[1],
               [7]])
    """
    named = [
        (f"arrays[{at}]", check_array("ix_", f"arrays[{at}]", x)) for at, x in enumerate(arrays)
    ]
    if named:
        common_placement("ix_", named)
    results = []
    for position, (name, x) in enumerate(named):
        if x.ndim != 1:
            raise ShapeError(f"ix_: {name} has {x.ndim} dimensions; give vectors")
        line = nonzero(x)[0] if x.dtype.kind == "b" else x
        shape = (1,) * position + (line.size,) + (1,) * (len(named) - position - 1)
        results.append(reshape(line, shape))
    return tuple(results)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None, **place: Any) -> ndarray:
    """A matrix with ones up to diagonal ``k`` and zeros above it.

    Example:
        >>> import dparray as dp
        >>> dp.tri(2, dtype="int8").asnumpy()
        array([[1, 0],
               [1, 1]], dtype=int8)
    """
    return tril(ones((N, N if M is None else M), dtype, **place), k)


def tril_indices(n: int, k: int = 0, m: int | None = None, **place: Any) -> tuple[ndarray, ...]:
    """The positions of the elements of a matrix up to diagonal ``k``.

    Example:
        >>> import dparray as dp
        >>> [at.tolist() for at in dp.tril_indices(2)]
        [[0, 1, 1], [0, 0, 1]]
    """
    return nonzero(tri(n, m, k, "int8", **place))


def triu_indices(n: int, k: int = 0, m: int | None = None, **place: Any) -> tuple[ndarray, ...]:
    """The positions of the elements of a matrix from diagonal ``k`` on.

    Example:
        >>> import dparray as dp
        >>> [at.tolist() for at in dp.triu_indices(2)]
        [[0, 0, 1], [0, 1, 1]]
    """
    return nonzero(triu(ones((n, n if m is None else m), "int8", **place), k))


def _square(function: str, x: Any) -> ndarray:
    x = check_array(function, "x", x)
    if x.ndim != 2:
        raise ShapeError(f"{function}: x has {x.ndim} dimensions; give a matrix")
    return x


def tril_indices_from(x: ndarray, k: int = 0) -> tuple[ndarray, ...]:
    """:func:`tril_indices` for a matrix, on its queue.

    Raises:
        ShapeError: ``x`` is no matrix.

    Example:
        >>> import dparray as dp
        >>> x = dp.ones((2, 2))
        >>> x[dp.tril_indices_from(x)].size
        3
    """
    x = _square("tril_indices_from", x)
    place = {"sycl_queue": x.sycl_queue, "usm_type": x.usm_type}
    return tril_indices(x.shape[0], k, x.shape[1], **place)


def triu_indices_from(x: ndarray, k: int = 0) -> tuple[ndarray, ...]:
    """:func:`triu_indices` for a matrix, on its queue.

    Raises:
        ShapeError: ``x`` is no matrix.

    Example:
        >>> import dparray as dp
        >>> x = dp.ones((2, 2))
        >>> x[dp.triu_indices_from(x, 1)].size
        1
    """
    x = _square("triu_indices_from", x)
    place = {"sycl_queue": x.sycl_queue, "usm_type": x.usm_type}
    return triu_indices(x.shape[0], k, x.shape[1], **place)


def mask_indices(
    n: int, mask_func: Callable[..., Any], k: Any = 0, **place: Any
) -> tuple[ndarray, ...]:
    """The positions that a function such as :func:`triu` leaves of an ``n`` by ``n`` matrix.

    Example:
        >>> import dparray as dp
        >>> rows, columns = dp.mask_indices(2, dp.triu)
        >>> rows.asnumpy(), columns.asnumpy()
        (array([0, 0, 1]), array([0, 1, 1]))
    """
    return nonzero(mask_func(ones((n, n), int, **place), k))


def diag_indices_from(x: ndarray) -> tuple[ndarray, ...]:
    """:func:`diag_indices` for an array of equal extents, on its queue.

    Raises:
        ShapeError: ``x`` has fewer than two dimensions, or extents that differ.

    Example:
        >>> import dparray as dp
        >>> x = dp.ones((2, 2))
        >>> x[dp.diag_indices_from(x)].size
        2
    """
    x = check_array("diag_indices_from", "x", x)
    if x.ndim < 2 or len(set(x.shape)) != 1:
        raise ShapeError(f"diag_indices_from: x of shape {x.shape} is no square")
    return diag_indices(x.shape[0], x.ndim, sycl_queue=x.sycl_queue, usm_type=x.usm_type)


def diag_indices(n: int, ndim: int = 2, **place: Any) -> tuple[ndarray, ...]:
    """The positions of the diagonal of an array with ``n`` elements along each axis.

    Example:
        >>> import dparray as dp
        >>> [at.tolist() for at in dp.diag_indices(2)]
        [[0, 1], [0, 1]]
    """
    return (arange(n, **place),) * ndim


def diagflat(x: Any, k: int = 0) -> ndarray:
    """A matrix with the elements of ``x``, flattened, on diagonal ``k``.

    Example:
        >>> import dparray as dp
        >>> dp.diagflat(dp.asarray([[1, 2]])).asnumpy()
        array([[1, 0],
               [0, 2]])
    """
    return diag(ravel(check_array("diagflat", "x", x)), k)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> ndarray:
    """A matrix whose columns are powers of a vector.

    Raises:
        ShapeError: ``x`` is no vector.

    Example:
        >>> import dparray as dp
        >>> dp.vander(dp.asarray([2, 3])).asnumpy()
        array([[2, 1],
               [3, 1]])
    """
    x = check_array("vander", "x", x)
    if x.ndim != 1:
        raise ShapeError(f"vander: x has {x.ndim} dimensions; give a vector")
    columns = x.size if N is None else N
    result = empty_on(Placement(x.sycl_queue, x.usm_type), (x.size, columns), _powers_dtype(x))
    power: ndarray | None = None
    for column in range(columns):
        at = column if increasing else columns - 1 - column
        if power is None:
            assign(result[:, at], 1)
            power = result[:, at].copy()
        else:
            power = apply(OPS["multiply"], power, x)
            assign(result[:, at], power)
    return result


def _powers_dtype(x: ndarray) -> np.dtype[Any]:
    return _dtypes.int64 if x.dtype.kind in "bi" else x.dtype


def unravel_index(indices: Any, shape: Sequence[int], order: str = "C") -> tuple[ndarray, ...]:
    """Positions in the flattened array as positions along each axis.

    Args:
        indices: integers.
        shape: the array's extents.
        order: ``"C"`` or ``"F"``: how it was flattened.

    Raises:
        ShapeError: a position is outside the array.

    Example:
        >>> import dparray as dp
        >>> [at.tolist() for at in dp.unravel_index(dp.asarray([5, 2]), (2, 3))]
        [[1, 0], [2, 2]]
    """
    flat = check_array("unravel_index", "indices", indices)
    if flat.dtype.kind not in "iu":
        raise DTypeError(f"unravel_index: indices of dtype {flat.dtype} must be integers")
    extents = _layout.check_shape(shape)
    size = math.prod(extents)
    if flat.size and not (int(flat.min()) >= 0 and int(flat.max()) < size):
        raise ShapeError(f"unravel_index: an index is outside an array of {size} elements")
    rest = astype_array(flat, _dtypes.int64, copy=False)
    found = []
    for extent in extents[::-1] if order == "C" else extents:
        found.append(apply(OPS["remainder"], rest, extent))
        rest = apply(OPS["floor_divide"], rest, extent)
    return tuple(found[::-1] if order == "C" else found)


def ravel_multi_index(
    arrays: Sequence[Any], shape: Sequence[int], mode: str = "raise", order: str = "C"
) -> ndarray:
    """Positions along each axis as positions in the flattened array.

    Args:
        arrays: integers for each axis.
        shape: the array's extents.
        mode: what to do with positions outside: ``"raise"``, ``"wrap"`` or ``"clip"``.
        order: ``"C"`` or ``"F"``: how the array is flattened.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: a position is outside the array.

    Example:
        >>> import dparray as dp
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
    return call_either(
        "ravel_multi_index",
        lambda xp, *at: xp.ravel_multi_index(at, extents, mode, order),
        named,
    )
