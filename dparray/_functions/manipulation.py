"""Shape manipulation: views where the memory layout allows it, otherwise copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dparray import _layout
from dparray._array.apply import copy_of, with_axes
from dparray._array.host_fastpath import compute_small, view_small
from dparray._array.ndarray import array_method, as_method, ndarray, take_layout_of
from dparray._array.operands import named_arrays
from dparray._functions.public import public
from dparray._placement import common_placement
from dparray.algorithms.tiled_transpose import contiguous_copy
from dparray.exceptions import AxisError, ShapeError

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "diagonal",
    "expand_dims",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "rollaxis",
    "squeeze",
    "swapaxes",
    "transpose",
]


@public(small=np.ndarray.reshape, takes=("shape",), mode="view")
def reshape(x: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> ndarray:
    """Return the same elements in another shape: a view if the layout allows it, else a copy.

    Args:
        x: an array.
        shape: the new shape; one size may be ``-1``, which is inferred.
        order: ``"C"`` or ``"F"``: whether the last or the first axis changes fastest; ``"A"`` is
            ``"F"`` if ``x`` is only F contiguous, else ``"C"``.
        copy: ``True`` always copies; ``False`` never copies and raises if a copy is needed.

    Raises:
        ShapeError: the number of elements differs.
        ValueError: ``copy=False``, but a copy is needed.

    Example:
        >>> dp.reshape(dp.arange(6), (2, -1)).shape
        (2, 3)
    """
    order = _layout.as_order(order)
    if order not in ("C", "F", "A"):
        raise ValueError(f"reshape: order must be 'C', 'F' or 'A'; got {order!r}")
    target = _layout.resolve_reshape(x.shape, shape)
    if _is_by_columns(x, order):
        turned = reshape(_reversed(x), target[::-1], copy=copy)
        return _reversed(turned)
    strides = _layout.reshape_strides(x.shape, x.strides, target, x.itemsize)
    if strides is None:
        if copy is False:
            raise ValueError(
                f"reshape: copy=False, but {x.shape} with strides {x.strides} cannot be viewed as "
                f"{target} without a copy"
            )
        small = compute_small(_copied_in_shape, x, target)
        if small is not None:
            return small
        whole = contiguous_copy(x)
        return whole._view(target, _layout.contiguous_strides(target, x.itemsize), 0)
    view = x._view(target, strides, x.offset)
    return copy_of(view) if copy else view


def _copied_in_shape(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    made = np.empty(shape, values.dtype)
    made.reshape(values.shape)[...] = values
    return made


def _reversed(x: ndarray) -> ndarray:
    view = view_small(x, np.ndarray.transpose)
    return with_axes(x, range(x.ndim)[::-1]) if view is None else view


@array_method("reshape")
def _reshape_method(
    self: ndarray, *shape: Any, order: str = "C", copy: bool | None = None
) -> ndarray:
    """Return the same elements in another shape; see :func:`dparray.reshape`.

    ``x.reshape(2, 3)`` and ``x.reshape((2, 3))`` are equivalent.
    """
    if order == "C" and copy is None:
        small = view_small(self, np.ndarray.reshape, *shape)
        if small is not None:
            return small
    return reshape(self, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def _reshape_in_place(self: ndarray, shape: Any) -> None:
    """Change the shape of the array in place, if no copy is needed."""
    target = _layout.resolve_reshape(self.shape, shape)
    block, strides = self.block, self.strides  # evaluates a pending array
    found = _layout.reshape_strides(self.shape, strides, target, self.itemsize)
    if found is None:
        raise ShapeError(
            f"x.shape = {target}: an array of shape {self.shape} with strides {strides} would have "
            f"to be copied; write x = x.reshape({target})"
        )
    take_layout_of(self, ndarray._from_layout(block, self.offset, target, found, self.dtype))


@as_method
@public(small=np.ndarray.ravel, takes=("order",), mode="view")
def ravel(x: Any, /, order: str = "C") -> ndarray:
    """Return the elements as a vector: a view of a contiguous array, else a copy.

    Args:
        x: an array.
        order: ``"C"`` or ``"F"``: whether the last or the first axis changes fastest; ``"A"``:
            memory order if ``x`` is contiguous, else ``"C"``; ``"K"``: the order of the strides.

    Raises:
        ValueError: the order is unknown.

    Example:
        >>> dp.ravel(dp.ones((2, 2))).shape
        (4,)
    """
    order = _layout.as_order(order)
    _check_order("ravel", order)
    return _flat(x, order, False)


def _check_order(function: str, order: Any) -> None:
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"{function}: order must be 'C', 'F', 'A' or 'K'; got {order!r}")


def _flat(x: ndarray, order: str, copy: bool) -> ndarray:
    """Flatten an array; without ``copy``, return a view if it is contiguous in the order."""
    if order == "K":
        x = with_axes(x, _layout.order_of_axes(x.shape, x.strides) or range(x.ndim))
    elif _is_by_columns(x, order):
        x = _reversed(x)
    is_view = not copy and _layout.is_contiguous(x.shape, x.strides, x.itemsize)
    whole = x if is_view else copy_of(x)
    return whole._view((x.size,), (x.itemsize,), whole.offset)


def _is_by_columns(x: ndarray, order: str) -> bool:
    """Return whether the first axis changes fastest, for an order that may follow the memory."""
    if order != "A":
        return order == "F"
    layout = (x.shape, x.strides, x.itemsize)
    return _layout.is_contiguous(*layout, "F") and not _layout.is_contiguous(*layout)


@array_method("flatten")
@public(small=np.ndarray.flatten)
def _flatten(self: ndarray, order: str = "C") -> ndarray:
    """Return the elements as a vector, always a copy."""
    order = _layout.as_order(order)
    _check_order("flatten", order)
    return _flat(self, order, True)


@public(small=np.ndarray.transpose, takes=("axes",), mode="view")
def permute_dims(x: Any, /, axes: Sequence[int] | None = None) -> ndarray:
    """Return a view with the axes in another order.

    Args:
        x: an array.
        axes: a permutation of all axes; reversed by default.

    Raises:
        ShapeError: an axis is missing or occurs twice.

    Example:
        >>> dp.permute_dims(dp.ones((2, 3, 4)), (2, 0, 1)).shape
        (4, 2, 3)
    """
    if axes is None:
        axes = range(x.ndim)[::-1]
    order = _layout.normalize_axes("permute_dims", axes, x.ndim)
    if len(order) != x.ndim:
        raise ShapeError(
            f"permute_dims: axes must be a permutation of {x.ndim} dimensions; got {tuple(order)}"
        )
    return with_axes(x, order)


@public(small=np.ndarray.transpose, takes=("axes",), mode="view")
def transpose(x: Any, /, axes: Sequence[int] | None = None) -> ndarray:
    """Return a view with permuted axes, reversed if ``axes`` is not given.

    For errors see :func:`permute_dims`.

    Example:
        >>> dp.transpose(dp.ones((2, 3))).shape
        (3, 2)
    """
    return _reversed(x) if axes is None else permute_dims(x, axes)


@array_method("transpose")
def _transpose_method(self: ndarray, *axes: Any) -> ndarray:
    """Return a view with permuted axes: ``x.transpose(1, 0)`` or ``x.transpose((1, 0))``."""
    if not axes or axes == (None,):
        return _reversed(self)
    return permute_dims(self, axes if isinstance(axes[0], int) else axes[0])


@public(small=np.matrix_transpose, mode="view")
def matrix_transpose(x: Any, /) -> ndarray:
    """Return a view with each matrix (the last two axes) transposed.

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    Example:
        >>> dp.matrix_transpose(dp.ones((5, 2, 3))).shape
        (5, 3, 2)
    """
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose: x must have at least 2 dimensions; it has {x.ndim}")
    return with_axes(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@as_method
@public(small=np.ndarray.swapaxes, takes=("axis1", "axis2"), mode="view")
def swapaxes(x: Any, /, axis1: int, axis2: int) -> ndarray:
    """Return a view with two axes exchanged.

    Raises:
        AxisError: an axis is out of range.

    Example:
        >>> dp.swapaxes(dp.ones((2, 3, 4)), 0, 2).shape
        (4, 3, 2)
    """
    order = list(range(x.ndim))
    first = _layout.normalize_axis("swapaxes", axis1, x.ndim)
    second = _layout.normalize_axis("swapaxes", axis2, x.ndim)
    order[first], order[second] = second, first
    return with_axes(x, order)


@public(small=np.moveaxis, takes=("source", "destination"), mode="view")
def moveaxis(x: Any, /, source: Any, destination: Any) -> ndarray:
    """Return a view with axes moved to other positions; the other axes keep their order.

    Raises:
        AxisError: an axis is out of range.
        ShapeError: ``source`` and ``destination`` differ in length.

    Example:
        >>> dp.moveaxis(dp.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    sources = _layout.normalize_axes("moveaxis", source, x.ndim)
    destinations = _layout.normalize_axes("moveaxis", destination, x.ndim)
    if len(sources) != len(destinations):
        raise ShapeError(f"moveaxis: {len(sources)} sources for {len(destinations)} destinations")
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for position, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(position, axis)
    return with_axes(x, order)


@public()
def rollaxis(x: Any, axis: int, start: int = 0) -> ndarray:
    """Return a view with one axis moved before position ``start``; prefer :func:`moveaxis`.

    Example:
        >>> dp.rollaxis(dp.ones((2, 3, 4)), 2).shape
        (4, 2, 3)
    """
    axis = _layout.normalize_axis("rollaxis", axis, x.ndim)
    position = start + x.ndim if start < 0 else start
    if not 0 <= position <= x.ndim:
        raise AxisError(f"rollaxis: start must be from {-x.ndim} to {x.ndim}; got {start}")
    return moveaxis(x, axis, position - 1 if axis < position else position)


@as_method
@public(small=np.ndarray.squeeze, takes=("axis",), mode="view")
def squeeze(x: Any, /, axis: int | Sequence[int] | None = None) -> ndarray:
    """Return a view without axes of length 1: the given ones, or all.

    Raises:
        ShapeError: a given axis has another length.

    Example:
        >>> dp.squeeze(dp.ones((1, 3, 1)), axis=0).shape
        (3, 1)
    """
    if axis is None:
        removed = tuple(at for at, extent in enumerate(x.shape) if extent == 1)
    else:
        at_scalar = x.ndim == 0 and type(axis) is int and axis in (0, -1)  # NumPy accepts these
        removed = () if at_scalar else _layout.normalize_axes("squeeze", axis, x.ndim)
    for at in removed:
        if x.shape[at] != 1:
            raise ShapeError(f"squeeze: axis {at} must have length 1; it has {x.shape[at]}")
    return with_axes(x, [at for at in range(x.ndim) if at not in removed])


@public(small=np.expand_dims, takes=("axis",), mode="view")
def expand_dims(x: Any, /, axis: int | Sequence[int] = 0) -> ndarray:
    """Return a view with new axes of length 1 at the positions ``axis`` of the result.

    Example:
        >>> dp.expand_dims(dp.ones(3), axis=0).shape
        (1, 3)
    """
    if type(axis) is tuple and len(axis) == 1:
        (axis,) = axis
    axis = tuple(axis) if hasattr(axis, "__iter__") else axis
    count = len(axis) if isinstance(axis, tuple) else 1
    added = set(_layout.normalize_axes("expand_dims", axis, x.ndim + count))
    old = iter(zip(x.shape, x.strides, strict=True))
    pairs = [(1, 0) if at in added else next(old) for at in range(x.ndim + count)]
    return x._view(tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs), x.offset)


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which shapes broadcast.

    Raises:
        ShapeError: the shapes do not broadcast.

    Example:
        >>> dp.broadcast_shapes((3, 1), (4,))
        (3, 4)
    """
    checked = [_layout.check_shape(shape) for shape in shapes]
    return _layout.broadcast_shapes("broadcast_shapes", checked) if checked else ()


@public()
def broadcast_to(x: Any, /, shape: int | Sequence[int]) -> ndarray:
    """Return a read-only view of ``x`` broadcast to ``shape``, which needs no memory.

    Raises:
        ShapeError: the shape of ``x`` does not broadcast to it.

    Example:
        >>> dp.broadcast_to(dp.asarray([1, 2]), (2, 2)).asnumpy()
        array([[1, 2],
               [1, 2]])
    """
    target = _layout.check_view_shape(shape)
    strides = _layout.broadcast_strides("broadcast_to", x.shape, x.strides, target)
    view = x._view(target, strides, x.offset)
    if view._host_view is not None and view is not x:
        view._host_view.flags.writeable = not (0 in strides and view.size)
    return view


def broadcast_arrays(*arrays: Any) -> tuple[ndarray, ...]:
    """Return views of arrays broadcast to their common shape.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not broadcast.

    Example:
        >>> [x.shape for x in dp.broadcast_arrays(dp.ones((2, 1)), dp.ones(3))]
        [(2, 3), (2, 3)]
    """
    named = named_arrays("broadcast_arrays", arrays)
    if not named:
        return ()
    shape = _layout.broadcast_shapes("broadcast_arrays", [x.shape for _, x in named])
    return tuple(broadcast_to(x, shape) for _, x in named)


def atleast_1d(*arrays: Any) -> Any:
    """Return views with at least one dimension: an array for one argument, else a list.

    Example:
        >>> dp.atleast_1d(dp.asarray(3.0)).shape
        (1,)
    """
    return _at_least("atleast_1d", arrays, lambda x: expand_dims(x, 0) if x.ndim == 0 else x)


def atleast_2d(*arrays: Any) -> Any:
    """Return views with at least two dimensions: an array for one argument, else a list.

    Example:
        >>> dp.atleast_2d(dp.ones(3)).shape
        (1, 3)
    """
    return _at_least("atleast_2d", arrays, two_dimensions)


def two_dimensions(x: ndarray) -> ndarray:
    return expand_dims(x, tuple(range(2 - x.ndim))) if x.ndim < 2 else x


def atleast_3d(*arrays: Any) -> Any:
    """Return views with at least three dimensions: an array for one argument, else a list.

    Example:
        >>> dp.atleast_3d(dp.ones((2, 3))).shape
        (2, 3, 1)
    """
    return _at_least("atleast_3d", arrays, three_dimensions)


def three_dimensions(x: ndarray) -> ndarray:
    return expand_dims(two_dimensions(x), -1) if x.ndim < 3 else x


def _at_least(function: str, arrays: tuple[Any, ...], widen: Any) -> Any:
    if len(arrays) == 1 and type(arrays[0]) is ndarray:
        return widen(arrays[0])
    named = named_arrays(function, arrays)
    if named:
        common_placement(function, named)
    widened = [widen(x) for _, x in named]
    return widened[0] if len(widened) == 1 else widened


@as_method
@public()
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    """Return a view of a diagonal of two axes, as the last axis of the result.

    Args:
        x: an array of at least two dimensions.
        offset: the offset above (positive) or below (negative) the main diagonal.
        axis1: the axis of rows.
        axis2: the axis of columns.

    Raises:
        AxisError: an axis is out of range.
        ShapeError: the axes are the same.

    Example:
        >>> dp.diagonal(dp.asarray([[1, 2], [3, 4]])).asnumpy()
        array([1, 4])
    """
    row, column = _layout.normalize_axes("diagonal", (axis1, axis2), x.ndim)
    down, right = max(0, -offset), max(0, offset)
    length = max(0, min(x.shape[row] - down, x.shape[column] - right))
    rest = [at for at in range(x.ndim) if at not in (row, column)]
    start = down * x.strides[row] + right * x.strides[column] if length else 0
    return x._view(
        (*(x.shape[at] for at in rest), length),
        (*(x.strides[at] for at in rest), x.strides[row] + x.strides[column]),
        x.offset + start,
    )


def _matrix_transposed(self: ndarray) -> ndarray:
    return matrix_transpose(self)


def _transposed(self: ndarray) -> ndarray:
    return _reversed(self)


def _attach() -> None:
    """Attach the properties."""
    for name, getter, summary in (
        ("T", _transposed, "A view with the axes reversed."),
        ("mT", _matrix_transposed, "A view of each matrix (the last two axes) transposed."),
    ):
        setattr(ndarray, name, property(getter, doc=summary))
    read: Any = vars(ndarray)["shape"]
    setattr(ndarray, "shape", read.setter(_reshape_in_place))  # noqa: B010 - a property to mypy


_attach()
