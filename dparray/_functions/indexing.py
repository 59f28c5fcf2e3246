"""Advanced indexing: arrays of integers and masks as indices, and what is built on them.

A basic index (integers, slices, ``None``, ``...``) is a view and belongs to the array itself.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.apply import apply, astype_array, choose_elements
from dparray._array.assignment import assign
from dparray._array.fresh import empty_on, from_host
from dparray._array.libraries import call_library, call_numpy, numpy_views
from dparray._array.ndarray import as_method, ndarray
from dparray._array.operands import (
    check_array,
    check_out,
    checked_scalar,
    foreign_operand,
    scalar_value,
)
from dparray._array.small import call_at_once
from dparray._evaluate import evaluate
from dparray._evaluate.schedule import HOST_ELEMENTS
from dparray._graph.ops import OPS
from dparray._placement import Placement, common_placement
from dparray.algorithms.selection import (
    can_locate,
    can_select,
    is_large_mask,
    positions,
    put_selected,
    selected,
)
from dparray.exceptions import ArgumentError, DTypeError, ShapeError
from dparray.memory.exchange import dpt as library

_ALL = slice(None)

__all__ = ["nonzero", "put", "take", "take_along_axis"]


def _index_arrays(x: ndarray, index: Any) -> list[Any]:
    """The entries of an index with lists and integers among arrays made arrays, masks resolved.

    Integers count as arrays once an array is among the entries, as in NumPy. Every array is
    checked to be on the queue of ``x``.
    """
    entries: list[Any] = []
    for position, entry in enumerate(index if type(index) is tuple else (index,)):
        name = f"index {position}"
        if isinstance(entry, ndarray):
            common_placement("x[index]", (("x", x), (name, entry)))
            if entry.dtype.kind not in "biu":
                raise IndexError(
                    f"x[index]: {name} has dtype {entry.dtype}; indices are integers or a mask"
                )
            if entry.dtype.kind == "b":
                entries.extend(_mask_positions(entry))
            else:
                entries.append(entry)
        elif isinstance(entry, np.ndarray):
            raise foreign_operand("x[index]", name, entry)
        elif isinstance(entry, list | range):
            values = np.asarray(entry)
            if values.size == 0:
                values = values.astype(np.int64)
            if values.dtype.kind not in "biu":
                raise IndexError(f"x[index]: {name} is {entry!r}; indices are integers or a mask")
            array = from_host(values, x.sycl_queue, x.usm_type)
            entries.extend(_mask_positions(array) if values.dtype.kind == "b" else (array,))
        elif isinstance(entry, bool | np.bool_):
            entries.append(_OfNewAxis(from_host(np.arange(int(entry)), x.sycl_queue, x.usm_type)))
        else:
            entries.append(scalar_value(entry))
    return entries


class _OfNewAxis(NamedTuple):
    """The positions that a mask of 0 dimensions selects of a new axis of extent 1."""

    positions: ndarray


def _mask_positions(mask: ndarray) -> list[Any]:
    """A mask as one array of positions for each of its axes."""
    if mask.ndim == 0:
        length = int(bool(mask))
        return [_OfNewAxis(from_host(np.arange(length), mask.sycl_queue, mask.usm_type))]
    return list(nonzero(mask))


def _check_masks(x: ndarray, index: Any) -> None:
    axis = 0
    for entry in index if type(index) is tuple else (index,):
        if entry is Ellipsis:
            return
        if entry is None:
            continue
        shape = np.shape(entry) if isinstance(entry, list) else getattr(entry, "shape", ())
        is_mask = (
            np.asarray(entry).dtype.kind == "b"
            if isinstance(entry, list)
            else getattr(getattr(entry, "dtype", None), "kind", "") == "b"
        )
        fits = len(shape) <= x.ndim - axis and all(
            extent in (0, found)
            for extent, found in zip(shape, x.shape[axis : axis + len(shape)], strict=True)
        )
        if is_mask and not fits:
            raise IndexError(
                f"x[index]: a mask of shape {tuple(shape)} does not fit axes {axis} ... "
                f"{axis + len(shape) - 1} of an array of shape {x.shape}"
            )
        axis += len(shape) if is_mask else 1


def _split(x: ndarray, index: Any) -> tuple[ndarray, list[ndarray], int, int]:
    """An index as a basic view and index arrays on adjacent axes of it.

    Returns:
        The view with the indexed axes made adjacent, the index arrays (broadcast together), the
        first indexed axis of the view, and where the result's indexed axes belong.
    """
    _check_masks(x, index)
    entries = _index_arrays(x, index)
    consumed = sum(
        entry is not None and entry is not Ellipsis and not isinstance(entry, _OfNewAxis)
        for entry in entries
    )
    expanded = _layout.expand_ellipsis(tuple(entries), x.ndim, consumed)
    has_integers = [isinstance(entry, int) and not isinstance(entry, bool) for entry in expanded]
    basic = tuple(
        None
        if isinstance(entry, _OfNewAxis)
        else slice(None)
        if isinstance(entry, ndarray) or is_integer
        else entry
        for entry, is_integer in zip(expanded, has_integers, strict=True)
    )
    view = x[basic]
    places = [
        place
        for place, (entry, is_integer) in enumerate(zip(expanded, has_integers, strict=True))
        if isinstance(entry, ndarray | _OfNewAxis) or is_integer
    ]
    arrays = []
    for place in places:
        entry = expanded[place]
        if isinstance(entry, _OfNewAxis):
            entry = entry.positions
        if not isinstance(entry, ndarray):
            extent = view.shape[place]
            if not -extent <= entry < extent:
                raise IndexError(f"index {entry} is out of bounds for an axis with extent {extent}")
            entry = from_host(np.asarray(entry), x.sycl_queue, x.usm_type)
        arrays.append(entry)
    adjacent = places == list(range(places[0], places[0] + len(places)))
    if not adjacent:
        rest = [axis for axis in range(view.ndim) if axis not in places]
        view = view.transpose((*places, *rest))
        places = list(range(len(places)))
    return view, arrays, places[0], places[0]


def _checked(view: ndarray, arrays: list[ndarray], first: int) -> list[ndarray]:
    """The index arrays broadcast together, refused if one leads outside its axis."""
    shape = _layout.broadcast_shapes("x[index]", [array.shape for array in arrays])
    checked = []
    for axis, array in enumerate(arrays, start=first):
        extent = view.shape[axis]
        if array.size:
            low = int(call_library("x[index]", library.min, (("index", array),)))
            high = int(call_library("x[index]", library.max, (("index", array),)))
            if low < -extent or high >= extent:
                raise IndexError(
                    f"index {low if low < -extent else high} is out of bounds for an axis "
                    f"with extent {extent}"
                )
        array = astype_array(array, _dtypes.int64, copy=False)
        strides = _layout.broadcast_strides("x[index]", array.shape, array.strides, shape)
        checked.append(array._view(shape, strides, array.offset))
    return checked


def _with_lists_stacked(index: Any) -> Any:
    """The index with lists that hold arrays made one array each."""
    if type(index) is tuple:
        return tuple([_with_lists_stacked(entry) for entry in index])
    if type(index) is list and any(isinstance(part, ndarray) for part in index):
        return check_array("x[index]", "an index", index)
    return index


def _operands(x: ndarray, index: Any) -> list[tuple[str, ndarray]]:
    """The arrays of an indexing operation by name; refuses what is no index."""
    named = [("x", x)]
    for position, entry in enumerate(index if type(index) is tuple else (index,)):
        name = f"index {position}"
        if isinstance(entry, ndarray):
            if entry.dtype.kind not in "biu":
                raise IndexError(
                    f"x[index]: {name} has dtype {entry.dtype}; indices are integers or a mask"
                )
            named.append((name, entry))
        elif isinstance(entry, np.ndarray):
            raise foreign_operand("x[index]", name, entry)
    return named


def index_for_numpy(index: Any, views: list[np.ndarray]) -> Any:
    """The index with NumPy's views in the place of arrays."""
    rest = iter(views)
    entries = tuple(
        next(rest)
        if isinstance(entry, ndarray)
        else (np.asarray(entry, dtype=np.int64) if not len(entry) else np.asarray(entry))
        if isinstance(entry, list | range)
        else entry
        for entry in (index if type(index) is tuple else (index,))
    )
    return entries if type(index) is tuple else entries[0]


def _gathered_axis(x: ndarray, index: Any) -> int | None:
    """The axis that a single array of integers selects along, if that is all the index does."""
    entries = index if type(index) is tuple else (index,)
    if not all(isinstance(entry, slice | ndarray) for entry in entries):
        return None
    places = [at for at, entry in enumerate(entries) if isinstance(entry, ndarray) or entry != _ALL]
    if len(places) != 1 or places[0] >= x.ndim or len(entries) > x.ndim:
        return None
    entry = entries[places[0]]
    return places[0] if isinstance(entry, ndarray) and entry.dtype.kind in "iu" else None


def _only_mask(index: Any) -> ndarray | None:
    """The mask, if that is all there is in an index."""
    entry = index[0] if type(index) is tuple and len(index) == 1 else index
    return entry if isinstance(entry, ndarray) and entry.dtype.kind == "b" else None


def _take(source: np.ndarray, positions: np.ndarray, axis: int, out: np.ndarray) -> None:
    """NumPy's ``take`` without its detour through a buffer, which checking bounds needs."""
    extent = source.shape[axis]
    if positions.size:
        low, high = positions.min(), positions.max()
        if low < -extent or high >= extent:
            raise IndexError(
                f"index {low if low < -extent else high} is out of bounds for axis {axis} with "
                f"extent {extent}"
            )
    source.take(positions, axis, out, "wrap")


@as_method
def _take_advanced(x: ndarray, index: Any) -> ndarray:
    """The elements that an advanced index selects, in a new array."""
    if type(index) is ndarray and index.size * x.size <= HOST_ELEMENTS * (x.shape or (1,))[0]:
        small = call_at_once(operator.getitem, x, index)
        if small is not None:
            return small
    index = _with_lists_stacked(index)
    named = _operands(x, index)
    placement = common_placement("x[index]", named)
    mask = _only_mask(index)
    if mask is not None and can_select(x, mask):
        return selected(x, mask, placement)
    axis = _gathered_axis(x, index)
    if axis is not None:
        positions = named[1][1]
        shape = (*x.shape[:axis], *positions.shape, *x.shape[axis + 1 :])
        result = empty_on(placement, shape, x.dtype)
        if call_numpy(lambda source, at, out: _take(source, at, axis, out), [x, positions], result):
            return result
    views = numpy_views(*(array for _, array in named))
    if views is not None:
        return from_host(views[0][index_for_numpy(index, views[1:])], *placement)
    view, arrays, first, _ = _split(x, index)
    checked = _checked(view, arrays, first)
    selector = (*(slice(None),) * first, *(array._tensor for array in checked))
    named = [("x", view), *((f"index {place}", array) for place, array in enumerate(checked))]
    found: ndarray = call_library("x[index]", lambda tensor, *_: tensor[selector], named)
    if found.usm_type != placement.usm_type:
        result = empty_on(placement, found.shape, found.dtype)
        assign(result, found)
        return result
    return found


@as_method
def _put_advanced(x: ndarray, index: Any, value: Any) -> None:
    """Write to the elements that an advanced index selects; checks come before any write."""
    function = "x[index] = value"
    index = _with_lists_stacked(index)
    named = _operands(x, index)
    value = scalar_value(value)
    if isinstance(value, list | tuple | range):
        value = check_array(function, "value", value, Placement(x.sycl_queue, x.usm_type))
    if isinstance(value, ndarray):
        common_placement(function, [*named, ("value", value)])
        if value.dtype.kind == "c" and x.dtype.kind != "c":
            raise DTypeError(
                f"{function}: {value.dtype} does not fit into {x.dtype}; "
                f"take dp.real(value) or dp.abs(value) first"
            )
        sources = [value]
    elif isinstance(value, bool | int | float | complex):
        common_placement(function, named)
        value = checked_scalar(function, value, x.dtype)
        sources = []
    else:
        raise foreign_operand(function, "value", value)
    mask = _only_mask(index)
    if mask is not None and not sources and is_large_mask(x, mask):
        condition = mask.reshape((*mask.shape, *(1,) * (x.ndim - mask.ndim)))
        assign(x, choose_elements(function, condition, value, x), function)
        return
    if mask is not None and sources and can_select(x, mask):
        put_selected(x, mask, sources[0], function)
        return
    arrays = [array for _, array in named[1:]]

    def by_numpy(*views: np.ndarray) -> None:
        target, inputs = views[-1], list(views[:-1])
        taken = inputs.pop() if sources else value
        try:
            target[index_for_numpy(index, inputs)] = taken
        except ValueError as error:
            raise ShapeError(f"{function}: {error}") from None

    if call_numpy(by_numpy, [*arrays, *sources], x):
        return
    view, positions, first, _ = _split(x, index)
    checked = _checked(view, positions, first)
    shape = (*view.shape[:first], *checked[0].shape, *view.shape[first + len(checked) :])
    values = empty_on(Placement(x.sycl_queue, x.usm_type), shape, x.dtype)
    assign(values, value, function)
    if values.size == 0:
        return
    evaluate.settle_readers(x.block)
    selector = _layout.at_axis(first, *(array._tensor for array in checked))
    evaluate.library_call(
        function,
        lambda target, source: target.__setitem__(selector, source),
        [view._tensor, values._tensor],
        (),
        {},
        lambda tensor: tensor,
    )


@as_method
def nonzero(x: ndarray) -> tuple[ndarray, ...]:
    """The positions of the elements that are not zero: one integer array for each axis.

    Raises:
        ShapeError: ``x`` has no dimension.

    Example:
        >>> import dparray as dp
        >>> dp.nonzero(dp.asarray([0, 3, 0, 4]))[0].asnumpy()
        array([1, 3])
    """
    x = check_array("nonzero", "x", x)
    if x.ndim == 0:
        raise ShapeError("nonzero: an array with 0 dimensions has no positions; use x.reshape(1)")
    if can_locate(x):
        flat = positions(x if x.dtype.kind == "b" else apply(OPS["not_equal"], x, 0))
        found = []
        for extent in reversed(x.shape[1:]):
            found.append(apply(OPS["remainder"], flat, extent))
            flat = apply(OPS["floor_divide"], flat, extent)
        return (flat, *reversed(found))
    views = numpy_views(x)
    if views is None:
        return tuple(call_library("nonzero", library.nonzero, (("x", x),)))
    return tuple(from_host(at, x.sycl_queue, x.usm_type) for at in np.nonzero(views[0]))


def _within(function: str, positions: ndarray, extent: int, mode: str) -> ndarray:
    """Positions that a mode has brought into an axis; ``"raise"`` leaves them."""
    if mode == "raise":
        return positions
    if mode == "wrap":
        return apply(OPS["remainder"], positions, extent)
    if mode == "clip":
        return apply(OPS["minimum"], apply(OPS["maximum"], positions, 0), extent - 1)
    raise ArgumentError(f"{function}: mode {mode!r} is none of 'raise', 'wrap', 'clip'")


@as_method
def take(
    x: ndarray,
    indices: Any,
    axis: int | None = None,
    out: ndarray | None = None,
    mode: str = "raise",
) -> ndarray:
    """Elements at ``indices`` along ``axis``, or of the flattened array where it is ``None``.

    Args:
        x: an array.
        indices: integers: an array on the same queue, a list or a scalar; negative ones count
            from the end.
        axis: the axis; ``None`` means the flattened array.
        out: an array for the result.
        mode: what positions outside do: ``"raise"``, ``"wrap"`` around or ``"clip"`` to the range.

    Raises:
        ArgumentError: there is no such mode.
        ExecutionPlacementError: ``x`` and ``indices`` are on different queues.
        IndexError: an index leads outside the axis.

    Example:
        >>> import dparray as dp
        >>> dp.take(dp.asarray([5, 6, 7]), [2, 0]).asnumpy()
        array([7, 5])
    """
    if out is None and mode == "raise" and type(x) is ndarray:
        count = indices.size if type(indices) is ndarray and indices.dtype.kind in "iu" else None
        if type(indices) is int or (count is not None and count * x.size <= HOST_ELEMENTS):
            small = call_at_once(np.take, x, indices, axis)
            if small is not None:
                return small
    x = check_array("take", "x", x)
    named = [("x", x)]
    if isinstance(indices, ndarray):
        named.append(("indices", indices))
    common_placement("take", named)
    check_out("take", named, out)
    if axis is None:
        if x.ndim != 1:
            x = x.reshape(-1)
        axis = 0
    axis = _layout.normalize_axis("take", axis, x.ndim)
    if mode != "raise":
        indices = check_array("take", "indices", indices, Placement(x.sycl_queue, x.usm_type))
        indices = _within("take", indices, x.shape[axis], mode)
    result = x[_layout.at_axis(axis, indices)]
    if out is None:
        return result
    if out.shape != result.shape:
        raise ShapeError(
            f"take: the result of shape {result.shape} does not fit out of {out.shape}"
        )
    assign(out, result, "take")
    return out


def take_along_axis(x: ndarray, indices: ndarray, axis: int = -1) -> ndarray:
    """Elements of ``x`` at ``indices``, which lists positions along ``axis`` for each line.

    Raises:
        ExecutionPlacementError: ``x`` and ``indices`` are on different queues.
        AxisError: there is no such axis.
        IndexError: an index leads outside the axis.

    Example:
        >>> import dparray as dp
        >>> x = dp.asarray([[3, 1], [2, 4]])
        >>> dp.take_along_axis(x, dp.argsort(x, axis=1), axis=1).asnumpy()
        array([[1, 3],
               [2, 4]])
    """
    x = check_array("take_along_axis", "x", x)
    indices = check_array("take_along_axis", "indices", indices)
    placement = common_placement("take_along_axis", (("x", x), ("indices", indices)))
    axis = _layout.normalize_axis("take_along_axis", axis, x.ndim)
    if indices.ndim != x.ndim:
        raise ShapeError(
            f"take_along_axis: indices of {indices.ndim} dimensions for an array of {x.ndim}"
        )
    if indices.dtype.kind not in "iu":
        raise IndexError(f"take_along_axis: indices of dtype {indices.dtype} must be integers")
    views = numpy_views(x, indices)
    if views is not None:
        try:
            found = np.take_along_axis(views[0], views[1], axis)
        except ValueError as error:
            raise ShapeError(f"take_along_axis: {error}") from None
        return from_host(found, *placement)
    return call_library(
        "take_along_axis",
        library.take_along_axis,
        (("x", x), ("indices", indices)),
        axis=axis,
    )


def put(x: ndarray, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write ``v``, repeated as often as it takes, to elements of the flattened array.

    Args:
        x: an array.
        ind: positions: an integer array on the queue of ``x``, a list or an integer.
        v: values: an array on the queue of ``x``, a list or a scalar.
        mode: what positions outside do: ``"raise"``, ``"wrap"`` around or ``"clip"`` to the range.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        IndexError: an index leads outside the array.

    Example:
        >>> import dparray as dp
        >>> x = dp.zeros(3, dtype="int32")
        >>> dp.put(x, [0, 2], 7)
        >>> x.asnumpy()
        array([7, 0, 7], dtype=int32)
    """
    x = check_array("put", "x", x)
    place = Placement(x.sycl_queue, x.usm_type)
    named = [("x", x), ("ind", check_array("put", "ind", ind, place))]
    positions = named[1][1].reshape(-1)
    v = scalar_value(v)
    if not isinstance(v, bool | int | float | complex):
        v = check_array("put", "v", v, place)
        named.append(("v", v))
    common_placement("put", named)
    positions = _within("put", positions, x.size, mode)
    if isinstance(v, ndarray) and v.size != positions.size:
        if not v.size:
            return
        v = v.reshape(-1)[from_host(np.arange(positions.size) % v.size, *place)]
    elif isinstance(v, ndarray):
        v = v.reshape(-1)
    flat = x.reshape(-1)
    flat[positions] = v
    if flat.block is not x.block:
        assign(x, flat.reshape(x.shape), "put")
