"""``x[index]`` with integer arrays and masks among the indices."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on, from_host
from dparray._array.apply import astype_array, choose_elements
from dparray._array.assignment import assign, sent_to
from dparray._array.dispatch import compute
from dparray._array.host_fastpath import compute_small, put_small, take_small
from dparray._array.ndarray import as_method, ndarray
from dparray._array.operands import (
    OVERRIDE,
    check_array,
    checked_scalar,
    dispatch_override,
    foreign_operand,
    on_queue_of,
    scalar_value,
    shared,
)
from dparray._driver import traits_of
from dparray._evaluate import limits
from dparray._functions.indexing import check_inside, nonzero, taken_by_host
from dparray._functions.single_precision import in_single, takes_bfloat16
from dparray._placement import common_placement, placement_of
from dparray.algorithms import tiles
from dparray.algorithms.compaction import can_compact
from dparray.algorithms.gather import can_gather, gather, put
from dparray.algorithms.selection import (
    can_select,
    is_for_numpy,
    is_large_mask,
    put_selected,
    selected,
)
from dparray.exceptions import DTypeError, ShapeError

_ALL = slice(None)


def _index_arrays(x: ndarray, index: Any) -> list[Any]:
    """Convert the lists and integers of an index to arrays, and resolve its masks.

    As in NumPy, integers count as arrays once an array is among the entries. Every array must be on
    the queue of ``x``.
    """
    entries: list[Any] = []
    for position, entry in enumerate(index if type(index) is tuple else (index,)):
        name = _entry_name(index, position)
        if isinstance(entry, ndarray):
            common_placement("x[index]", (("x", x), (name, entry)))
            if entry.dtype.kind not in "biu":
                raise IndexError(
                    f"x[index]: {name} has dtype {entry.dtype}; indices must be integers or a mask"
                )
            if entry.dtype.kind == "b":
                entries.extend(_mask_positions(entry))
            else:
                entries.append(entry)
        elif isinstance(entry, list | range | tuple):
            values = np.asarray(entry)
            if values.size == 0:
                values = values.astype(np.int64)
            if values.dtype.kind not in "biu":
                raise IndexError(
                    f"x[index]: {name} is {entry!r}; indices must be integers or a mask"
                )
            array = from_host(values, x.queue, x.usm_type)
            entries.extend(_mask_positions(array) if values.dtype.kind == "b" else (array,))
        elif isinstance(entry, bool | np.bool_):
            entries.append(_OfNewAxis(from_host(np.arange(int(entry)), x.queue, x.usm_type)))
        elif entry is None or entry is Ellipsis or isinstance(entry, slice):
            entries.append(entry)
        else:
            entries.append(_integer(scalar_value(entry)))
    return entries


def _integer(entry: Any) -> int:
    try:
        return operator.index(entry)
    except TypeError:
        raise IndexError(
            "x[index]: indices must be integers, slices (`:`), ellipsis (`...`), newaxis (`None`), "
            f"or arrays or lists of integers or Booleans; got {entry!r}"
        ) from None


class _OfNewAxis(NamedTuple):
    """Return the indices that a 0-d mask selects along a new axis of length 1."""

    positions: ndarray


def _mask_positions(mask: ndarray) -> list[Any]:
    """Convert a mask to one index array for each of its axes."""
    if mask.ndim == 0:
        length = int(bool(mask))
        return [_OfNewAxis(from_host(np.arange(length), mask.queue, mask.usm_type))]
    return list(nonzero(mask))


def _check_masks(x: ndarray, index: Any) -> None:
    axis = 0
    for entry in index if type(index) is tuple else (index,):
        if entry is Ellipsis:
            return
        if entry is None or isinstance(entry, bool):  # neither takes an axis
            continue
        shape = np.shape(entry) if isinstance(entry, list | tuple) else getattr(entry, "shape", ())
        is_mask = (
            np.asarray(entry).dtype.kind == "b"
            if isinstance(entry, list | tuple)
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
    """Convert an index to a basic view and index arrays on adjacent axes of the view.

    Returns:
        The view with the indexed axes made adjacent, the index arrays (broadcast together), the
        first indexed axis of the view, and the position of the indexed axes in the result.
    """
    _check_masks(x, index)
    entries = _index_arrays(x, index)
    consumed = sum(
        entry is not None and entry is not Ellipsis and not isinstance(entry, _OfNewAxis)
        for entry in entries
    )
    expanded = _layout.expand_ellipsis(tuple(entries), x.ndim, consumed)
    basic = tuple(
        None if isinstance(entry, _OfNewAxis) else slice(None) if _is_advanced(entry) else entry
        for entry in expanded
    )
    view = x[basic]
    axes = [at for at, entry in enumerate(expanded) if _is_advanced(entry)]
    arrays = []
    for at in axes:
        entry = expanded[at]
        if isinstance(entry, _OfNewAxis):
            entry = entry.positions
        if not isinstance(entry, ndarray):
            extent = view.shape[at]
            if not -extent <= entry < extent:
                raise IndexError(
                    f"index {entry} is out of bounds for axis {at} with length {extent}"
                )
            entry = from_host(np.asarray(entry), x.queue, x.usm_type)
        arrays.append(entry)
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    if not adjacent or _are_apart(entries):
        rest = [axis for axis in range(view.ndim) if axis not in axes]
        view = view.transpose((*axes, *rest))
        axes = list(range(len(axes)))
    return view, arrays, axes[0], axes[0]


def _is_advanced(entry: Any) -> bool:
    """Return whether an entry counts as an index array, as integers do next to arrays."""
    return isinstance(entry, ndarray | _OfNewAxis | int) and not isinstance(entry, bool)


def _are_apart(entries: Sequence[Any]) -> bool:
    """Return whether ``...`` is between index arrays, even if it stands for no axes."""
    at = next((at for at, entry in enumerate(entries) if entry is Ellipsis), 0)
    return any(map(_is_advanced, entries[:at])) and any(map(_is_advanced, entries[at:]))


def _checked(view: ndarray, arrays: list[ndarray], first: int) -> list[ndarray]:
    """Return the index arrays broadcast together; raise if an index is out of range."""
    try:
        shape = _layout.broadcast_shapes("x[index]", [array.shape for array in arrays])
    except ShapeError as error:  # NumPy's class
        raise IndexError(str(error)) from None
    checked = []
    for axis, array in enumerate(arrays, start=first):
        extent = view.shape[axis]
        if array.size and 0 not in shape:  # NumPy does not check indices that are broadcast away
            check_inside(array, extent, axis)
        array = astype_array(array, _dtypes.int64, copy=False)
        strides = _layout.broadcast_strides("x[index]", array.shape, array.strides, shape)
        checked.append(array._view(shape, strides, array.offset))
    return checked


def _with_host_data_here(x: ndarray, index: Any) -> Any:
    """Convert lists of arrays, NumPy arrays and arrays of other libraries in an index."""
    if type(index) is tuple:
        return tuple([_with_host_data_here(x, entry) for entry in index])
    if type(index) is list and any(isinstance(part, ndarray) for part in index):
        return check_array("x[index]", "index", index)
    if isinstance(index, np.ndarray):
        if index.dtype.kind not in "biu":
            raise IndexError(
                f"x[index]: index has dtype {index.dtype}; indices must be integers or a mask"
            )
        return on_queue_of(x, index)
    return shared(index)


def _entry_name(index: Any, position: int) -> str:
    """Return the name of an index entry for error messages."""
    return f"index[{position}]" if type(index) is tuple else "index"


def _operands(x: ndarray, index: Any) -> list[tuple[str, ndarray]]:
    """Return the arrays of an indexing operation by name; raise if an entry is not an index."""
    named = [("x", x)]
    for position, entry in enumerate(index if type(index) is tuple else (index,)):
        if isinstance(entry, ndarray):
            name = "index" if entry is index else _entry_name(index, position)
            if entry.dtype.kind not in "biu":
                raise IndexError(
                    f"x[index]: {name} has dtype {entry.dtype}; indices must be integers or a mask"
                )
            named.append((name, entry))
    return named


def index_for_numpy(index: Any, views: Sequence[np.ndarray]) -> Any:
    """Return the index with NumPy views instead of arrays."""
    rest = iter(views)
    entries = tuple(
        next(rest)
        if isinstance(entry, ndarray)
        else (np.asarray(entry, dtype=np.int64) if not len(entry) else np.asarray(entry))
        if isinstance(entry, list | range | tuple)
        else entry
        for entry in (index if type(index) is tuple else (index,))
    )
    return entries if type(index) is tuple else entries[0]


def _gathered_axis(x: ndarray, index: Any) -> int | None:
    """Return the axis of the index if it is a single integer array along one axis."""
    entries = index if type(index) is tuple else (index,)
    if not all(isinstance(entry, slice | ndarray) for entry in entries):
        return None
    axes = [at for at, entry in enumerate(entries) if isinstance(entry, ndarray) or entry != _ALL]
    if len(axes) != 1 or axes[0] >= x.ndim or len(entries) > x.ndim:
        return None
    entry = entries[axes[0]]
    return axes[0] if isinstance(entry, ndarray) and entry.dtype.kind in "iu" else None


def _only_mask(index: Any) -> ndarray | None:
    """Return the mask if the index is nothing but a mask."""
    entry = index[0] if type(index) is tuple and len(index) == 1 else index
    return entry if isinstance(entry, ndarray) and entry.dtype.kind == "b" else None


def _by_entries(source: np.ndarray, *entries: Any) -> Any:
    found = source[entries]
    # With slices, NumPy reorders the axes of its result.
    return found if getattr(found, "base", None) is None else found.copy("K")


@as_method
def _take_advanced(x: ndarray, index: Any) -> ndarray:
    """Return the elements that an advanced index selects, in a new array."""
    if takes_bfloat16((x,), {}):
        return in_single(type(x)._take_advanced, (x, index), {})
    most = limits.host_elements
    if type(index) is ndarray and index.size * x.size <= most * (x.shape or (1,))[0]:
        small = compute_small(operator.getitem, x, index) if x.size <= most else None
        if small is None and index.size <= most and index.dtype.kind in "iu":
            small = take_small(x, index)
        if small is not None:
            return small
    elif type(index) is list and len(index) * x.size <= most * (x.shape or (1,))[0]:
        are_integers = set(map(type, index)) == {int}
        small = compute_small(operator.getitem, x, index) if are_integers else None
        if small is not None:
            return small
    elif type(index) is tuple and x.size <= most:
        small = compute_small(_by_entries, x, *index)
        if small is not None:
            return small
    if type(index) is not ndarray:
        index = _with_host_data_here(x, index)
    named = _operands(x, index)
    placement = common_placement("x[index]", named)
    mask = _only_mask(index)
    if mask is not None and 0 < mask.size == x.size and can_compact(x):
        if len(x.shape) != 1:
            x = x.reshape(-1)
        if len(mask.shape) != 1:
            mask = mask.reshape(-1)
        return tiles.select(x, mask, placement)
    if mask is not None and can_select(x, mask):
        return selected(x, mask, placement)
    axis = _gathered_axis(x, index)
    found: ndarray | None = None
    if traits_of(placement.queue).shares_memory:
        if axis is not None:
            found = taken_by_host("x[index]", x, named[1], axis, placement)
        if found is None:
            found = compute(
                "x[index]", named, host=lambda view, *views: view[index_for_numpy(index, views)]
            )
        if found is not None:
            return found
    view, arrays, first = x, [each for _, each in named[1:]], axis
    if first is None:
        view, arrays, first, _ = _split(x, index)
    if can_gather(view, arrays):
        found = gather(view, arrays, first, placement)
        if found is not None:
            return found
    checked = _checked(view, arrays, first)
    named = [("x", view), *((f"index[{number}]", array) for number, array in enumerate(checked))]
    found = compute("x[index]", named, library=lambda _, x, *at: x[_layout.at_axis(first, *at)])
    assert found is not None
    if found.usm_type != placement.usm_type:
        result = empty_on(placement, found.shape, found.dtype)
        assign(result, found)
        return result
    return found


@as_method
def _put_advanced(x: ndarray, index: Any, value: Any) -> None:
    """Assign to the elements that an advanced index selects; all checks come before any write."""
    if takes_bfloat16((x,), {}):
        in_single(type(x)._put_advanced, (x, index, value), {})
        return
    function = "x[index] = value"
    if type(index) is ndarray and put_small(x, index, value):
        return
    index = _with_host_data_here(x, index)
    named = _operands(x, index)
    if hasattr(type(value), OVERRIDE):
        dispatch_override(ndarray.__setitem__, (x, index, value))
        return
    value = scalar_value(shared(value))
    if isinstance(value, np.ndarray):
        value = sent_to(x, value)
    elif isinstance(value, list | tuple | range):
        value = check_array(function, "value", value, placement_of(x))
    if isinstance(value, ndarray):
        common_placement(function, [*named, ("value", value)])
        if value.dtype.kind == "c" and x.dtype.kind != "c":
            raise DTypeError(
                f"{function}: {value.dtype} cannot be stored in {x.dtype}; "
                f"use dp.real(value) or dp.abs(value) first"
            )
        sources = [value]
    elif isinstance(value, bool | int | float | complex):
        common_placement(function, named)
        value = checked_scalar(function, value, x.dtype)
        sources = []
    else:
        raise foreign_operand(function, "value", value, x.queue)
    mask = _only_mask(index)
    in_memory = mask is not None and not mask.is_pending and not x.is_pending
    if (
        mask is not None
        and not sources
        and is_large_mask(x, mask)
        and not (in_memory and is_for_numpy(mask))
    ):
        condition = mask.reshape((*mask.shape, *(1,) * (x.ndim - mask.ndim)))
        assign(x, choose_elements(function, condition, value, x), function)
        return
    if mask is not None and sources and can_select(x, mask) and not is_for_numpy(mask):
        put_selected(x, mask, sources[0], function)
        return
    taken_from = [("value", source) for source in sources]

    def by_numpy(*views: np.ndarray) -> None:
        target, inputs = views[-1], list(views[:-1])
        taken = inputs.pop() if sources else value
        try:
            target[index_for_numpy(index, inputs)] = taken
        except ValueError as error:
            raise ShapeError(f"{function}: {error}") from None

    if compute(function, [*named[1:], *taken_from], host=by_numpy, out=x) is not None:
        return
    view, positions, first, _ = _split(x, index)
    if can_gather(view, positions) and put(view, positions, first, value):
        return
    checked = _checked(view, positions, first)
    shape = (*view.shape[:first], *checked[0].shape, *view.shape[first + len(checked) :])
    values = empty_on(placement_of(x), shape, x.dtype)
    assign(values, value, function)
    if values.size == 0:
        return
    named = [*((f"index[{number}]", array) for number, array in enumerate(checked))]

    def by_library(_: Any, source: Any, target: Any, *at_and_out: Any) -> None:
        target[_layout.at_axis(first, *at_and_out[:-1])] = source

    compute(function, (("value", values), ("x", view), *named), library=by_library, out=x)
