"""Joining and splitting of arrays."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on, from_host, order_by_columns
from dparray._array.apply import cast_unsafe, ops, real_parts
from dparray._array.assignment import assign
from dparray._array.host_fastpath import SCALARS
from dparray._array.ndarray import ndarray
from dparray._array.nodes import assembled_array
from dparray._array.operands import (
    check_array,
    check_fits,
    check_out,
    dispatch_override,
    is_operand,
    named_arrays,
)
from dparray._driver import traits_of
from dparray._dtypes import is_bfloat16
from dparray._evaluate import limits
from dparray._functions.conversion import asarray
from dparray._functions.manipulation import (
    broadcast_to,
    moveaxis,
    ravel,
    reshape,
    three_dimensions,
    two_dimensions,
)
from dparray._functions.options import DEFAULT_CASTING, check_casting
from dparray._functions.public import public
from dparray._graph.assembly import Box
from dparray._placement import common_placement, placement_of
from dparray.exceptions import ArgumentError, AxisError, DTypeError, ShapeError

__all__ = [
    "append",
    "array_split",
    "block",
    "column_stack",
    "concat",
    "concatenate",
    "delete",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "insert",
    "resize",
    "split",
    "stack",
    "trim_zeros",
    "unstack",
    "vsplit",
    "vstack",
]

#: At most this many joined arrays are read where they are stored.
MAX_JOINED = 8


def _arrays_in(nested: Any) -> Iterator[ndarray]:
    if isinstance(nested, list):
        for part in nested:
            yield from _arrays_in(part)
    elif is_operand("block", nested):
        yield nested


def on_one_queue(function: str, values: Sequence[Any]) -> list[ndarray]:
    """Return arrays, and scalars and lists converted to arrays, all on one queue."""
    arrays = [(f"arrays[{at}]", x) for at, x in enumerate(values) if isinstance(x, ndarray)]
    place: dict[str, Any] = {}
    if arrays:
        placement = common_placement(function, arrays)
        place = {"sycl_queue": placement.queue, "usm_type": placement.usm_type}
    return [
        x
        if isinstance(x, ndarray)
        else asarray(x, **place)
        if isinstance(x, list | tuple | range)
        else _beside(function, f"arrays[{at}]", x, place)
        for at, x in enumerate(values)
    ]


def _beside(function: str, name: str, value: Any, place: dict[str, Any]) -> ndarray:
    """Convert a scalar to an array; raise for anything else."""
    if isinstance(value, bool | int | float | complex | np.generic):
        return asarray(value, **place)
    return check_array(function, name, value)


def block(arrays: Any) -> ndarray:
    """Assemble an array from blocks in nested lists; the innermost lists join the last axis.

    Args:
        arrays: an array, a scalar, or nested lists of them, all of the same depth.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes of the blocks do not match, or lists differ in depth.

    Example:
        >>> one, two = dp.eye(2, dtype="int32"), dp.full((2, 2), 2, dtype="int32")
        >>> dp.block([[one, two], [two, one]]).shape
        (4, 4)
    """
    inside = [(f"arrays[{at}]", x) for at, x in enumerate(_arrays_in(arrays))]
    place: dict[str, Any] = {}
    if inside:
        placement = common_placement("block", inside)
        place = {"sycl_queue": placement.queue, "usm_type": placement.usm_type}
    depth = _depth(arrays)
    most = max([depth, *(x.ndim for _, x in inside)])

    def whole(nested: Any, level: int, name: str) -> ndarray:
        if isinstance(nested, list):
            names = [f"{name}[{at}]" for at in range(len(nested))]
            parts = [whole(x, level + 1, own) for x, own in zip(nested, names, strict=True)]
            return joined("block", list(zip(names, parts, strict=True)), most - depth + level)
        x = nested if is_operand("block", nested) else _beside("block", name, nested, place)
        return reshape(x, (1,) * (most - x.ndim) + x.shape)

    result = whole(arrays, 0, "arrays")
    return result if depth else result.copy()


def _depth(nested: Any) -> int:
    if not isinstance(nested, list):
        return 0
    depths = {_depth(part) for part in nested}
    if len(depths) != 1:
        raise ShapeError("block: lists must not be empty and must have the same depth")
    return depths.pop() + 1


@public()
def dsplit(x: Any, indices_or_sections: Any) -> list[ndarray]:
    """Split along the third axis; see :func:`split`.

    Example:
        >>> len(dp.dsplit(dp.ones((1, 2, 4)), 2))
        2
    """
    if x.ndim < 3:
        raise ShapeError(f"dsplit: x must have at least 3 dimensions; it has {x.ndim}")
    return split(x, indices_or_sections, 2)


def _positions(function: str, x: ndarray, indices: Any, extent: int) -> np.ndarray:
    """Return indices along an axis on the host, where they determine the result's shape."""
    if isinstance(indices, ndarray):
        common_placement(function, (("x", x), ("obj", indices)))
        indices = indices.asnumpy()
    elif isinstance(indices, slice):
        indices = np.arange(extent)[indices]
    found = np.asarray(indices)
    if found.size == 0:
        return found.astype(np.int64).reshape(-1)
    if found.dtype.kind == "b":
        return np.flatnonzero(found)
    if found.dtype.kind not in "iu":
        raise IndexError(f"{function}: obj of dtype {found.dtype} must be integers")
    return found


def _is_plain_position(x: Any, obj: Any, axis: Any) -> bool:
    """Return whether NumPy interprets indices the same way: an integer, or a list of integers."""
    return type(obj) is int or (type(obj) is list and all(type(one) is int for one in obj))


def _is_plain_insertion(x: Any, obj: Any, values: Any, axis: Any) -> bool:
    return type(values) in (ndarray, int, float) and _is_plain_position(x, obj, axis)


@public(small=np.delete, takes=("obj", "axis"), when=_is_plain_position)
def delete(x: Any, obj: Any, axis: int | None = None) -> ndarray:
    """Return a copy without some slices along an axis.

    Args:
        x: an array.
        obj: their indices: an integer, a slice, a list, a NumPy array, or an array on the queue of
            ``x`` (the host waits for its values).
        axis: the axis; ``None`` flattens ``x`` first.

    Raises:
        ExecutionPlacementError: ``obj`` is on another queue.
        IndexError: an index is out of range.

    Example:
        >>> dp.delete(dp.asarray([1, 2, 3]), 1).asnumpy()
        array([1, 3])
    """
    if axis is None:
        x, axis = ravel(x), 0
    axis = _layout.normalize_axis("delete", axis, x.ndim)
    positions = _positions("delete", x, obj, x.shape[axis])
    placement = placement_of(x)
    if isinstance(obj, ndarray):
        placement = common_placement("delete", (("x", x), ("obj", obj)))
    kept = np.delete(np.arange(x.shape[axis]), positions)
    return x[_layout.at_axis(axis, from_host(kept, *placement))]


@public(small=np.insert, takes=("obj", "values", "axis"), when=_is_plain_insertion)
def insert(x: Any, obj: Any, values: Any, axis: int | None = None) -> ndarray:
    """Return a copy with slices inserted at indices along an axis.

    Args:
        x: an array.
        obj: the indices, as in :func:`delete`.
        values: an array or a scalar that broadcasts to the inserted slices.
        axis: the axis; ``None`` flattens ``x`` first.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        IndexError: an index is out of range.
        ShapeError: the values do not broadcast.

    Example:
        >>> dp.insert(dp.asarray([1, 3]), 1, 2).asnumpy()
        array([1, 2, 3])
    """
    named = [("x", x)]
    for name, value in (("obj", obj), ("values", values)):
        if isinstance(value, ndarray):
            named.append((name, value))
    placement = common_placement("insert", named)
    if axis is None:
        x, axis = ravel(x), 0
    axis = _layout.normalize_axis("insert", axis, x.ndim)
    extent = x.shape[axis]
    positions = _positions("insert", x, obj, extent)
    if positions.ndim > 1:
        raise ShapeError(f"insert: obj must have 0 or 1 dimensions; it has {positions.ndim}")
    if isinstance(values, list | tuple):
        values = from_host(np.asarray(values), *placement)
    if positions.size == 1:  # a single index accepts any number of slices
        count = 1
        if isinstance(values, ndarray):
            values = reshape(values, (1,) * (x.ndim - values.ndim) + values.shape)
            if positions.ndim == 0:
                values = moveaxis(values, 0, axis)
            count = values.shape[axis]
        positions = np.full(count, operator.index(positions.item()))
    positions = positions.reshape(-1)
    positions = np.where(positions < 0, positions + extent, positions)
    if positions.size and (positions.min() < 0 or positions.max() > extent):
        raise IndexError(f"insert: an index is out of range for an axis of length {extent}")
    order = np.argsort(positions, kind="stable")
    inserted = np.empty(positions.size, np.int64)
    inserted[order] = positions[order] + np.arange(positions.size)
    shape = (*x.shape[:axis], extent + positions.size, *x.shape[axis + 1 :])
    result = empty_on(placement, shape, x.dtype, order_by_columns(x))
    old = np.setdiff1d(np.arange(extent + positions.size), inserted)
    result[_layout.at_axis(axis, from_host(old, *placement))] = x
    result[_layout.at_axis(axis, from_host(inserted, *placement))] = values
    return result


def _has_few_elements(x: ndarray, new_shape: Any) -> bool:
    return prod(_layout.check_shape(new_shape)) <= limits.host_elements


@public(small=np.resize, takes=("new_shape",), when=_has_few_elements)
def resize(x: Any, new_shape: int | Sequence[int]) -> ndarray:
    """Return a copy in another shape, with the elements repeated as often as necessary.

    Example:
        >>> dp.resize(dp.asarray([1, 2]), 5).asnumpy()
        array([1, 2, 1, 2, 1])
    """
    target = _layout.check_shape(new_shape)
    x = ravel(x)
    result = empty_on(placement_of(x), target, x.dtype)
    if result.size == 0:
        return result
    if x.size == 0:
        assign(result, 0)
        return result
    flat = ravel(result)
    whole = result.size // x.size
    repeated = broadcast_to(x, (whole, x.size))
    assign(reshape(flat[: whole * x.size], (whole, x.size)), repeated, "resize")
    assign(flat[whole * x.size :], x[: result.size - whole * x.size], "resize")
    return result


@public()
def trim_zeros(x: Any, trim: str = "fb", axis: int | Sequence[int] | None = None) -> ndarray:
    """Return a view without leading (``f``) or trailing (``b``) zeros along axes, by default all.

    The host waits for the values, since they determine the result's shape.

    Example:
        >>> dp.trim_zeros(dp.asarray([0, 1, 0, 2, 0])).asnumpy()
        array([1, 0, 2])
    """
    if trim.lower() not in ("f", "b", "fb", "bf"):
        raise ArgumentError(f"trim_zeros: trim must be 'f', 'b' or 'fb'; got {trim!r}")
    axes = range(x.ndim) if axis is None else _layout.normalize_axes("trim_zeros", axis, x.ndim)
    is_there = ops.not_equal(x, 0).asnumpy()
    index = [slice(None)] * x.ndim
    for at in axes:
        others = tuple(other for other in range(x.ndim) if other != at)
        kept = np.flatnonzero(is_there.any(axis=others))
        start, last = (int(kept[0]), int(kept[-1])) if kept.size else (0, -1)
        index[at] = slice(
            start if "f" in trim.lower() else None, last + 1 if "b" in trim.lower() else None
        )
    if not is_there.any():
        index = [slice(0, 0) if at in axes else slice(None) for at in range(x.ndim)]
    return x[tuple(index)]


@public(small=np.concatenate, takes=("axis",), mode="join")
def concat(
    arrays: Sequence[Any],
    /,
    axis: int | None = 0,
    out: ndarray | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = DEFAULT_CASTING,
) -> ndarray:
    """Join arrays along an existing axis, in a new array.

    Args:
        arrays: a sequence of arrays whose shapes differ along ``axis`` only.
        axis: the axis; ``None`` flattens the arrays first.
        out: an array to write the result to.
        dtype: the dtype of the result; by default the promoted dtype of the arrays.
        casting: the allowed conversions to ``dtype`` or to that of ``out``, as in NumPy.

    Returns:
        An array on the queue of the arrays, with the coerced USM type.

    Raises:
        ArgumentError: ``casting`` is unknown.
        DTypeError: ``casting`` forbids a conversion.
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not match, or there are no arrays.

    Example:
        >>> dp.concat([dp.asarray([1, 2]), dp.asarray([3])]).asnumpy()
        array([1, 2, 3])
    """
    return joined("concat", named_arrays("concat", arrays), axis, out, dtype, casting)


concatenate = concat


def joined(
    function: str,
    named: list[tuple[str, ndarray]],
    axis: int | None,
    out: ndarray | None = None,
    dtype: DTypeLike | None = None,
    casting: str = DEFAULT_CASTING,
) -> ndarray:
    """Join checked arrays with their names, see :func:`concat`."""
    if casting is not DEFAULT_CASTING:
        check_casting(function, casting)
    if out is not None and dtype is not None:
        raise ArgumentError(
            f"{function}: out= determines the dtype; give either out= or dtype=, not both"
        )
    if not named:
        raise ShapeError(f"{function}: at least one array is required")
    taken = dispatch_override(concat, ([x for _, x in named],), axis=axis, dtype=dtype)
    if taken is not NotImplemented:
        return taken
    check_out(function, named, out)
    placement = common_placement(function, named if out is None else [*named, ("out", out)])
    if axis is None:
        named, axis = [(name, reshape(x, (x.size,))) for name, x in named], 0
    names, parts = zip(*named, strict=True)
    shapes = [x.shape for x in parts]
    first = shapes[0]
    axis = _layout.normalize_axis(function, axis, len(first))
    length = 0
    for name, shape in zip(names, shapes, strict=True):
        is_as_long = len(shape) == len(first)
        if not is_as_long or shape[:axis] != first[:axis] or shape[axis + 1 :] != first[axis + 1 :]:
            raise ShapeError(
                f"{function}: {name} has shape {shape}, arrays[0] has {first}; only the "
                f"lengths of axis {axis} may differ"
            )
        length += shape[axis]
    whole = (*first[:axis], length, *first[axis + 1 :])
    dtypes = [x.dtype for x in parts]
    if out is not None:
        chosen = out.dtype  # each array is cast to it separately
        check_fits(function, whole, chosen, out)
    elif dtype is None:
        chosen = _dtypes.promote(dtypes)
    else:
        chosen = _dtypes.check_device(_dtypes.as_dtype(dtype), traits_of(placement.queue))
    if dtypes.count(chosen) != len(dtypes) and chosen.kind != "c":
        parts = tuple(map(real_parts, parts))
    for name, own in zip(names, dtypes, strict=True):
        if not _dtypes.can_cast(own, chosen, casting):
            raise DTypeError(
                f"{function}: {name} of dtype {own} cannot be cast to {chosen} with "
                f"casting={casting!r}; give casting='unsafe', or write x.astype('{chosen}')"
            )
    axes = None if len(whole) < 2 else _layout.order_of_axes(whole, *map(_steps_of, parts))
    if out is None and len(parts) <= MAX_JOINED and 0 not in whole and not is_bfloat16(chosen):
        corner = [0] * len(whole)
        boxes = []
        for at, shape in enumerate(shapes):
            if shape[axis]:
                boxes.append(Box(at, tuple(corner), (0,) * len(shape), shape))
                corner[axis] += shape[axis]
        return assembled_array(function, parts, tuple(boxes), whole, chosen, placement, axes)
    result = empty_on(placement, whole, chosen, axes)
    start = 0
    for x in parts:
        stop = start + x.shape[axis]
        assign(result[_layout.at_axis(axis, slice(start, stop))], cast_unsafe(x, chosen), function)
        start = stop
    if out is not None:
        assign(out, result, function)
        return out
    return result


def _steps_of(x: ndarray) -> tuple[int, ...]:
    """Return the sizes of strides for the order of a joined array's axes.

    Unlike operands of element-wise functions, broadcast axes affect the order here.
    """
    pairs = zip(x.shape, x.strides, strict=True)
    return tuple([0 if extent == 1 else 2 * abs(step) + 1 for extent, step in pairs])


@public(small=np.stack, takes=("axis",), mode="join")
def stack(
    arrays: Sequence[Any],
    /,
    axis: int = 0,
    out: ndarray | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = DEFAULT_CASTING,
) -> ndarray:
    """Join arrays of equal shape along a new axis, in a new array.

    Args:
        arrays: a sequence of arrays of equal shape.
        axis: the position of the new axis in the result.
        out: an array to write the result to.
        dtype: the dtype of the result; by default the promoted dtype of the arrays.
        casting: the allowed conversions, as in :func:`concat`, with the same errors.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes differ, or there are no arrays.

    Example:
        >>> dp.stack([dp.zeros(2), dp.ones(2)], axis=1).asnumpy()
        array([[0., 1.],
               [0., 1.]])
    """
    named = named_arrays("stack", arrays)
    if not named:
        raise ShapeError("stack: at least one array is required")
    shapes = [x.shape for _, x in named]
    if shapes.count(shapes[0]) != len(shapes):
        raise ShapeError(f"stack: the shapes {shapes} must be equal")
    at = _layout.normalize_axis("stack", axis, len(shapes[0]) + 1)
    taken = dispatch_override(stack, ([x for _, x in named],), axis=axis, dtype=dtype)
    if taken is not NotImplemented:
        return taken
    index = (slice(None),) * at + (None,)
    return joined("stack", [(name, x[index]) for name, x in named], at, out, dtype, casting)


@public(small=np.vstack, mode="join")
def vstack(
    arrays: Sequence[Any], /, *, dtype: DTypeLike | None = None, casting: str = DEFAULT_CASTING
) -> ndarray:
    """Stack arrays vertically, along the first axis; vectors become rows. See :func:`concat`.

    Example:
        >>> dp.vstack([dp.zeros(2), dp.ones(2)]).shape
        (2, 2)
    """
    named = [(name, two_dimensions(x)) for name, x in named_arrays("vstack", arrays)]
    return joined("vstack", named, 0, None, dtype, casting)


@public(small=np.hstack, mode="join")
def hstack(
    arrays: Sequence[Any], /, *, dtype: DTypeLike | None = None, casting: str = DEFAULT_CASTING
) -> ndarray:
    """Stack arrays horizontally, along the second axis, or the only axis of vectors.

    For errors see :func:`concat`.

    Example:
        >>> dp.hstack([dp.zeros(2), dp.ones(1)]).asnumpy()
        array([0., 0., 1.])
    """
    named = [
        (name, reshape(x, (1,)) if x.ndim == 0 else x) for name, x in named_arrays("hstack", arrays)
    ]
    axis = 0 if named and named[0][1].ndim == 1 else 1
    return joined("hstack", named, axis, None, dtype, casting)


@public(small=np.dstack, mode="join")
def dstack(arrays: Sequence[Any], /) -> ndarray:
    """Stack arrays along the third axis. For errors see :func:`concat`.

    Example:
        >>> dp.dstack([dp.zeros((2, 3)), dp.ones((2, 3))]).shape
        (2, 3, 2)
    """
    named = [(name, three_dimensions(x)) for name, x in named_arrays("dstack", arrays)]
    return joined("dstack", named, 2)


@public(small=np.column_stack, mode="join")
def column_stack(arrays: Sequence[Any], /) -> ndarray:
    """Stack vectors as the columns of a matrix. For errors see :func:`concat`.

    Example:
        >>> dp.column_stack([dp.zeros(3), dp.ones(3)]).shape
        (3, 2)
    """
    named = [
        (name, reshape(x, (x.size, 1)) if x.ndim < 2 else x)
        for name, x in named_arrays("column_stack", arrays)
    ]
    return joined("column_stack", named, 1)


def _is_small_addition(x: ndarray, values: Any, axis: Any) -> bool:
    if type(values) is ndarray:
        return x.size + values.size <= limits.host_elements
    return type(values) in SCALARS


@public(operands=("x", "values"), small=np.append, takes=("axis",), when=_is_small_addition)
def append(x: Any, values: Any, axis: int | None = None) -> ndarray:
    """Append ``values`` to ``x``; both are flattened if ``axis`` is ``None``.

    Raises:
        ShapeError: the shapes do not match.

    Example:
        >>> dp.append(dp.asarray([1, 2]), dp.asarray([3])).asnumpy()
        array([1, 2, 3])
    """
    return joined("append", named_arrays("append", [x, values]), axis)


@public()
def unstack(x: Any, /, *, axis: int = 0) -> tuple[ndarray, ...]:
    """Return views of the slices along an axis, without that axis.

    Example:
        >>> [part.shape for part in dp.unstack(dp.ones((2, 3)))]
        [(3,), (3,)]
    """
    if x.ndim == 0:
        raise AxisError("unstack: x must have at least 1 dimension")
    front = moveaxis(x, _layout.normalize_axis("unstack", axis, x.ndim), 0)
    return tuple(front[position] for position in range(front.shape[0]))


_MAX_EMPTY_SECTIONS = 1 << 20


@public()
def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Split an array into views along an axis; their lengths may differ by one.

    Args:
        x: an array.
        indices_or_sections: the number of parts, or the indices at which to split.
        axis: the axis.

    Raises:
        ShapeError: the number of parts is not positive.

    Example:
        >>> [part.shape for part in dp.array_split(dp.arange(5), 2)]
        [(3,), (2,)]
    """
    axis = _layout.normalize_axis("array_split", axis, x.ndim)
    extent = x.shape[axis]
    if isinstance(indices_or_sections, ndarray):
        named = (("x", x), ("indices_or_sections", indices_or_sections))
        common_placement("split", named)
    if isinstance(indices_or_sections, ndarray) and indices_or_sections.ndim:
        indices_or_sections = indices_or_sections.tolist()
    try:
        sections = operator.index(indices_or_sections)
    except TypeError:
        bounds = [0, *(operator.index(at) for at in indices_or_sections), extent]
    else:
        if not 1 <= sections <= extent + _MAX_EMPTY_SECTIONS:
            raise ShapeError(
                f"array_split: {sections} sections of {extent} elements; there must be at least 1, "
                f"and at most {_MAX_EMPTY_SECTIONS} empty ones"
            )
        each, larger = divmod(extent, sections)
        bounds = [part * each + min(part, larger) for part in range(sections + 1)]
    return [x[_layout.at_axis(axis, slice(start, stop))] for start, stop in pairwise(bounds)]


@public()
def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Split an array into views of equal length; see :func:`array_split`.

    Raises:
        ShapeError: the length is not divisible by the number of parts.

    Example:
        >>> [part.shape for part in dp.split(dp.arange(6), 3)]
        [(2,), (2,), (2,)]
    """
    at = _layout.normalize_axis("split", axis, x.ndim)
    parts = indices_or_sections
    if isinstance(parts, int) and parts > 0 and x.shape[at] % parts:
        raise ShapeError(
            f"split: a length of {x.shape[at]} is not divisible into {parts} equal parts; "
            f"use dp.array_split"
        )
    return array_split(x, indices_or_sections, at)


@public()
def vsplit(x: Any, indices_or_sections: Any) -> list[ndarray]:
    """Split along the first axis; see :func:`split`.

    Raises:
        ShapeError: ``x`` has fewer than two dimensions, or is not divisible.

    Example:
        >>> len(dp.vsplit(dp.ones((4, 2)), 2))
        2
    """
    if x.ndim < 2:
        raise ShapeError(f"vsplit: x must have at least 2 dimensions, not {x.ndim}; use dp.split")
    return split(x, indices_or_sections, 0)


@public()
def hsplit(x: Any, indices_or_sections: Any) -> list[ndarray]:
    """Split along the second axis, or the only axis of a vector; see :func:`split`.

    Example:
        >>> len(dp.hsplit(dp.ones((4, 2)), 2))
        2
    """
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)
