"""Compute with layouts: shapes, strides and offsets, without memory.

Strides and offsets are in bytes. Every function is pure.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np

from dparray.exceptions import ArgumentError, AxisError, ShapeError

Shape = tuple[int, ...]
Strides = tuple[int, ...]

# Host views are NumPy arrays, and NumPy 1.26 supports no more.
MAX_DIMENSIONS = 32
#: Sizes are 64-bit integers, as in NumPy.
MAX_ELEMENTS = 2**63 - 1


def check_shape(shape: Any) -> Shape:
    """Return ``shape`` (an integer or a sequence of integers) as a tuple.

    Raises:
        ShapeError: it is not a shape, or a size is negative.
    """
    try:
        extents: Shape = (operator.index(shape),)
    except (TypeError, ValueError):  # a sequence, or an array of several sizes
        try:
            extents = tuple(operator.index(extent) for extent in shape)
        except TypeError:
            raise ShapeError(
                f"shape must be an integer or a sequence of integers, not {shape!r}"
            ) from None
    if extents and min(extents) < 0:
        raise ShapeError(f"shape: {extents} has a negative size; sizes must be at least 0")
    if len(extents) > MAX_DIMENSIONS:
        raise ShapeError(f"shape: {len(extents)} dimensions; an array has at most {MAX_DIMENSIONS}")
    return extents


def check_view_shape(shape: Any) -> Shape:
    """Check as :func:`check_shape` does, for a view, which needs no memory and may be very large.

    Raises:
        ShapeError: it is not a shape, or has more elements than a 64-bit integer can count.
    """
    extents = check_shape(shape)
    if prod(extents) > MAX_ELEMENTS:
        raise ShapeError(f"shape: {extents} has more than {MAX_ELEMENTS} elements (2**63 - 1)")
    return extents


@lru_cache(maxsize=1024)
def contiguous_strides(shape: Shape, itemsize: int, order: str = "C") -> Strides:
    """Return the strides of a contiguous array, rows first (``"C"``) or columns first (``"F"``)."""
    strides = []
    step = itemsize
    for extent in reversed(shape) if order == "C" else shape:
        strides.append(step)
        step *= extent or 1
    return tuple(reversed(strides)) if order == "C" else tuple(strides)


def contiguous_run(layout: Layout) -> int:
    """Return the number of contiguous elements, in index order, before the first gap."""
    run, step = 1, layout.dtype.itemsize
    for extent, stride in zip(reversed(layout.shape), reversed(layout.strides), strict=True):
        if extent != 1:
            if stride != step:
                break
            run *= extent
            step *= extent
    return max(run, 1)


def is_contiguous(shape: Shape, strides: Strides, itemsize: int, order: str = "C") -> bool:
    """Return whether the elements are contiguous in the given order."""
    step = itemsize
    axes = range(len(shape) - 1, -1, -1) if order == "C" else range(len(shape))
    for axis in axes:
        extent = shape[axis]
        if extent == 0:
            return True
        if extent != 1:
            if strides[axis] != step:
                return 0 in shape  # An empty array has every order.
            step *= extent
    return True


def shows_elements_twice(shape: Shape, strides: Strides) -> bool:
    """Return whether several indices share memory, as in a broadcast array.

    An empty array has no elements to share.
    """
    if 0 not in strides or 0 in shape:
        return False
    return any(n > 1 and not step for n, step in zip(shape, strides, strict=True))


def span_of(
    pointer: int, shape: Sequence[int], strides: Sequence[int], itemsize: int
) -> tuple[int, int]:
    """Return the first address of the elements and the one after the last; strides in bytes."""
    if 0 in shape:
        return pointer, pointer
    reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    low = pointer + sum(each for each in reach if each < 0)
    return low, pointer + sum(each for each in reach if each > 0) + itemsize


@lru_cache(maxsize=1024)
def strides_in_order(shape: Shape, itemsize: int, axes: tuple[int, ...] | None) -> Strides:
    """Return the strides of an array without gaps whose axes have a given order in memory.

    Args:
        shape: the shape of the array.
        itemsize: bytes of an element.
        axes: the axes from the largest stride to the smallest; ``None`` is C order.
    """
    if axes is None:
        return contiguous_strides(shape, itemsize)
    inner = contiguous_strides(tuple([shape[axis] for axis in axes]), itemsize)
    strides = [0] * len(shape)
    for axis, stride in zip(axes, inner, strict=True):
        strides[axis] = stride
    return tuple(strides)


@lru_cache(maxsize=4096)
def order_of_axes(shape: Shape, *operands: Strides) -> tuple[int, ...] | None:
    """Return the order of a result's axes in memory, from the largest stride to the smallest.

    It is NumPy's order ``"K"``: the operands' order if they agree, otherwise C order.

    Args:
        shape: the shape of the result.
        *operands: the strides of each operand, broadcast to the shape.

    Returns:
        The axes, or ``None`` for C order.
    """
    axes: list[int] = []  # from the smallest stride on
    for axis in reversed(range(len(shape))):
        position = len(axes)
        for before in reversed(range(len(axes))):
            order = _is_inside(axis, axes[before], shape, operands)
            if order is False:
                break
            if order:
                position = before
        axes.insert(position, axis)
    axes.reverse()
    return None if axes == list(range(len(shape))) else tuple(axes)


def _is_inside(axis: int, other: int, shape: Shape, operands: Sequence[Strides]) -> bool | None:
    """Return whether one axis has smaller strides than another; ``None`` if that is undecided."""
    if shape[axis] == 1 or shape[other] == 1:
        return None
    answer = None
    for strides in operands:
        step, step_of_other = abs(strides[axis]), abs(strides[other])
        if step and step_of_other:
            if step_of_other <= step:
                return False
            answer = True
    return answer


def order_of_copy(shape: Shape, strides: Strides) -> tuple[int, ...] | None:
    """Return the order of axes in a copy that keeps it, like :func:`order_of_axes`."""
    # The stride of an axis of length 1 has no meaning.
    step = min((abs(step) for n, step in zip(shape, strides, strict=True) if n > 1), default=1) or 1
    if len(shape) < 2 or is_contiguous(shape, strides, step):
        return None
    if is_contiguous(shape, strides, step, "F"):
        return tuple(range(len(shape)))[::-1]
    axes = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    return None if axes == list(range(len(shape))) else tuple(axes)


def order_like(shape: Shape, strides: Strides, itemsize: int, order: str) -> tuple[int, ...] | None:
    """Return the axis order of a copy for ``"C"``, ``"F"``, ``"A"`` or ``"K"``.

    Args:
        shape, strides, itemsize: the layout of the array.
        order: one of the four.
    """
    if len(shape) < 2 or order == "C":
        return None
    if order == "K":
        return order_of_copy(shape, strides)
    is_by_columns = order == "F" or (
        is_contiguous(shape, strides, itemsize, "F") and not is_contiguous(shape, strides, itemsize)
    )
    return tuple(range(len(shape)))[::-1] if is_by_columns else None


def order_of(shape: Shape, strides: Strides, itemsize: int) -> str:
    """Return ``"C"``, ``"F"`` or ``"A"``: the index arithmetic of the elements."""
    if is_contiguous(shape, strides, itemsize):
        return "C"
    return "F" if is_contiguous(shape, strides, itemsize, "F") else "A"


def broadcast_shapes(function: str, shapes: Sequence[Shape]) -> Shape:
    """Return the shape that ``shapes`` broadcast to.

    Raises:
        ShapeError: they do not broadcast.
    """
    result = shapes[0]
    for shape in shapes[1:]:
        if shape == result:
            continue
        longer, shorter = (result, shape) if len(result) >= len(shape) else (shape, result)
        head = len(longer) - len(shorter)
        extents = list(longer)
        for axis, extent in enumerate(shorter, start=head):
            if extents[axis] == 1:
                extents[axis] = extent
            elif extent not in (1, extents[axis]):
                listed = " and ".join(str(one) for one in shapes)
                raise ShapeError(
                    f"{function}: shapes {listed} do not broadcast: sizes {extents[axis]} and "
                    f"{extent} differ and neither is 1"
                )
        result = tuple(extents)
    return result


def broadcast_strides(function: str, shape: Shape, strides: Strides, target: Shape) -> Strides:
    """Return the strides that broadcast an array of ``shape`` to the shape ``target``.

    Raises:
        ShapeError: the shape does not broadcast to the target.
    """
    if shape == target:
        return strides
    head = len(target) - len(shape)
    if head < 0 or any(
        extent not in (1, wanted) for extent, wanted in zip(shape, target[head:], strict=True)
    ):
        raise ShapeError(f"{function}: shape {shape} does not broadcast to {target}")
    return (0,) * head + tuple(
        0 if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True)
    )


def reduced_shape(shape: Shape, axes: Shape, keepdims: bool) -> Shape:
    """Return the shape without some axes, or with length 1 there."""
    if keepdims:
        return tuple([1 if axis in axes else extent for axis, extent in enumerate(shape)])
    if len(axes) == len(shape):
        return ()
    return tuple([extent for axis, extent in enumerate(shape) if axis not in axes])


def as_order(order: Any, default: str | None = "C") -> Any:
    """Return a memory order as NumPy reads it: ``None`` is the default, lowercase is allowed."""
    if order is None:
        return default
    return order.upper() if isinstance(order, str) else order


def check_flag(function: str, name: str, value: Any) -> bool:
    """Return a flag, for which NumPy accepts integers too.

    Raises:
        ArgumentError: it is neither.
    """
    try:
        return bool(operator.index(value))
    except TypeError:
        raise ArgumentError(f"{function}: {name} must be True or False; got {value!r}") from None


def normalize_axis(function: str, axis: Any, ndim: int) -> int:
    """Return ``axis`` counted from the front.

    Raises:
        AxisError: it is outside ``-ndim ... ndim - 1``.
        ArgumentError: it is not an integer.
    """
    try:
        position = operator.index(axis)
    except TypeError:
        raise ArgumentError(f"{function}: axis must be an integer, not {axis!r}") from None
    if not -ndim <= position < ndim:
        allowed = f"it runs from {-ndim} to {ndim - 1}" if ndim else "x.reshape(1) has one"
        raise AxisError(
            f"{function}: axis {position} is outside an array of {ndim} dimension"
            f"{'s' * (ndim != 1)}; {allowed}"
        )
    return position % ndim


def normalize_axes(function: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """Return ``axes`` (an integer or a sequence) counted from the front, each once.

    Raises:
        ArgumentError: one of them is not an integer.
        AxisError: one of them is outside the dimensions.
        ShapeError: an axis is repeated.
    """
    try:
        listed: Sequence[Any] = (operator.index(axes),)
    except TypeError:
        try:
            listed = tuple(axes)
        except TypeError:
            raise ArgumentError(f"{function}: axis must be an integer, not {axes!r}") from None
    normalized = tuple(normalize_axis(function, axis, ndim) for axis in listed)
    if len(set(normalized)) != len(normalized):
        raise ShapeError(f"{function}: repeated axis in {tuple(axes)}")
    return normalized


def resolve_reshape(shape: Shape, wanted: Any) -> Shape:
    """Return the new shape with ``-1`` replaced.

    Raises:
        ShapeError: the number of elements differs, or more than one size is ``-1``.
    """
    try:
        extents = [operator.index(wanted)]
    except TypeError:
        try:
            extents = [operator.index(extent) for extent in wanted]
        except TypeError:
            raise ShapeError(
                f"reshape: the shape must be an integer or a sequence of integers, not {wanted!r}"
            ) from None
    size = prod(shape)
    unknown = [axis for axis, extent in enumerate(extents) if extent == -1]
    if len(unknown) == 1:
        known = prod(extent for extent in extents if extent != -1)
        if known and size % known == 0:
            extents[unknown[0]] = size // known
    if any(extent < 0 for extent in extents) or prod(extents) != size:
        raise ShapeError(
            f"reshape: an array of shape {shape} with {size} elements cannot become {wanted!r}"
        )
    return tuple(extents)


def reshape_strides(shape: Shape, strides: Strides, target: Shape, itemsize: int) -> Strides | None:
    """Return the strides that show the same elements in ``target``'s shape, or ``None`` if
    impossible.

    Both shapes are divided into the smallest groups of equal size. A group can be reshaped without
    a copy if its old axes are contiguous in memory.
    """
    if prod(shape) == 0:
        return contiguous_strides(target, itemsize)
    old = [(extent, stride) for extent, stride in zip(shape, strides, strict=True) if extent != 1]
    result = [0] * len(target)
    start = 0
    axis = 0
    while axis < len(target):
        if target[axis] == 1:
            result[axis] = itemsize
            axis += 1
            continue
        group_end, axis_end = start + 1, axis + 1
        old_size, new_size = old[start][0], target[axis]
        while old_size != new_size:
            if old_size < new_size:
                old_size *= old[group_end][0]
                group_end += 1
            else:
                new_size *= target[axis_end]
                axis_end += 1
        for outer, inner in zip(
            old[start : group_end - 1], old[start + 1 : group_end], strict=True
        ):
            if outer[1] != inner[0] * inner[1]:
                return None
        step = old[group_end - 1][1]
        for position in range(axis_end - 1, axis - 1, -1):
            result[position] = step
            step *= target[position]
        start, axis = group_end, axis_end
    return tuple(result)


def is_basic_index(index: Any) -> bool:
    """Return whether an index consists of integers, slices, ``None`` and ``...`` only."""
    entries = index if type(index) is tuple else (index,)
    for entry in entries:
        if entry is None or entry is Ellipsis or type(entry) is int or type(entry) is slice:
            continue
        if isinstance(entry, bool) or (hasattr(entry, "shape") and entry.shape != ()):
            return False
        if hasattr(entry, "dtype") and entry.dtype.kind == "b":
            return False
        if not hasattr(entry, "__index__"):
            return False
    return True


def at_axis(axis: int, *entries: Any) -> tuple[Any, ...]:
    """Return the index with ``entries`` from ``axis`` on, and full slices before it."""
    return (slice(None),) * axis + entries


def expand_ellipsis(index: Any, ndim: int, consumed: int) -> tuple[Any, ...]:
    """Return the index as a tuple with ``...`` replaced by full slices, filled up to ``ndim`` axes.

    Args:
        consumed: number of axes that the entries other than ``...`` and ``None`` index.

    Raises:
        IndexError: more than one ``...``, or more entries than axes.
    """
    entries = index if type(index) is tuple else (index,)
    positions = [at for at, entry in enumerate(entries) if entry is Ellipsis]
    if len(positions) > 1:
        raise IndexError("an index can have only one ellipsis ('...')")
    if consumed > ndim:
        raise IndexError(
            f"too many indices: the array has {ndim} dimension{'s' * (ndim != 1)}, "
            f"but {consumed} were indexed"
        )
    fill = (slice(None),) * (ndim - consumed)
    first = positions[0] if positions else len(entries)
    return (*entries[:first], *fill, *entries[first + bool(positions) :])


def basic_index(
    shape: Shape, strides: Strides, offset: int, index: Any
) -> tuple[Shape, Strides, int]:
    """Return the layout that a basic index (see :func:`is_basic_index`) selects.

    Raises:
        IndexError: an integer is outside its axis, or there are too many entries.
    """
    entries = index if type(index) is tuple else (index,)
    consumed = 0
    for entry in entries:  # A generator is a call for each entry.
        consumed += entry is not None and entry is not Ellipsis
    new_shape: list[int] = []
    new_strides: list[int] = []
    start_of_all = offset
    axis = 0
    for entry in expand_ellipsis(entries, len(shape), consumed):
        if entry is None:
            new_shape.append(1)
            new_strides.append(0)
            continue
        extent, stride = shape[axis], strides[axis]
        if type(entry) is slice:
            start, stop, step = entry.indices(extent)
            length = len(range(start, stop, step))
            new_shape.append(length)
            new_strides.append(stride * step)
            if length:
                offset += start * stride
        else:
            position = operator.index(entry)
            if not -extent <= position < extent:
                raise IndexError(
                    f"index {position} is out of bounds for axis {axis} with size {extent}"
                )
            offset += (position % extent) * stride
        axis += 1
    # An empty selection accesses no memory, so its offset must stay inside.
    return tuple(new_shape), tuple(new_strides), start_of_all if 0 in new_shape else offset


class AxisMap(NamedTuple):
    """A view as a map of positions: along each axis of the old shape, the start of the view and the
    step for each axis of the view.
    """

    shape: Shape
    starts: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]  # for each new axis, a step along each old axis


def axis_map(shape: Shape, itemsize: int, view: tuple[Shape, Strides, int]) -> AxisMap | None:
    """Return how a view (shape, strides, offset) of a C-contiguous array traverses its axes.

    ``None`` if it is not linear: a reshape that crosses the end of an axis.
    """
    new_shape, strides, offset = view
    if 0 in new_shape:
        return AxisMap(new_shape, (0,) * len(shape), ((0,) * len(shape),) * len(new_shape))
    own = contiguous_strides(shape, itemsize)
    starts = _digits(offset, own, shape)
    steps = [
        _digits(stride if extent > 1 else 0, own, shape)
        for extent, stride in zip(new_shape, strides, strict=True)
    ]
    for axis, extent in enumerate(shape):
        reached = [(count - 1) * step[axis] for count, step in zip(new_shape, steps, strict=True)]
        lowest = starts[axis] + sum(reach for reach in reached if reach < 0)
        highest = starts[axis] + sum(reach for reach in reached if reach > 0)
        if lowest < 0 or highest >= extent:
            return None
    return AxisMap(new_shape, starts, tuple(steps))


def _digits(number: int, weights: Strides, shape: Shape) -> tuple[int, ...]:
    """Convert a distance in bytes to a distance along each axis of a C-contiguous array."""
    digits = []
    sign, rest = (-1, -number) if number < 0 else (1, number)
    for weight, extent in zip(weights, shape, strict=True):
        digit, rest = divmod(rest, weight) if extent > 1 else (0, rest)
        digits.append(sign * digit)
    return tuple(digits)


def mapped(
    shape: Shape, strides: Strides, offset: int, view: AxisMap
) -> tuple[Shape, Strides, int]:
    """Return the layout that a view selects from an array that broadcasts to the view's base shape.

    Broadcast axes keep length 1, so that the result broadcasts to the view.
    """
    skipped = len(view.starts) - len(shape)
    new_shape = []
    new_strides = []
    for extent, steps in zip(view.shape, view.steps, strict=True):
        walked = [
            (step, stride)
            for step, stride, own in zip(steps[skipped:], strides, shape, strict=True)
            if step and own != 1
        ]
        new_shape.append(extent if walked or extent == 0 else 1)
        new_strides.append(sum(step * stride for step, stride in walked))
    for start, stride, own in zip(view.starts[skipped:], strides, shape, strict=True):
        if own != 1:
            offset += start * stride
    return tuple(new_shape), tuple(new_strides), offset


Place = tuple[int, Shape, Strides, int]


@lru_cache(maxsize=4096)
def are_apart(one: Place, other: Place) -> bool:
    """Return whether two views of one block are known to be disjoint, as border and interior are.

    A place is a view's offset, shape, strides and item size. If both are parts of an array, each is
    a box. Dividing its offset by the strides, the largest first, gives its sides. The boxes are
    disjoint if they are disjoint along one side.
    """
    boxes = [_upward(*each) for each in (one, other)]
    if 0 in one[1] or 0 in other[1]:
        return True
    ends = [at + sum([(n - 1) * step for n, step in axes]) + size for at, axes, size in boxes]
    if ends[0] <= boxes[1][0] or ends[1] <= boxes[0][0]:
        return True
    steps = sorted({step for _, axes, _ in boxes for _, step in axes}, reverse=True)
    sides = [_sides(*each, steps) for each in boxes]
    if sides[0] is None or sides[1] is None:
        return False
    return any(
        a_end < b_begin or b_end < a_begin
        for (a_begin, a_end), (b_begin, b_end) in zip(*sides, strict=True)
    )


def _upward(
    offset: int, shape: Shape, strides: Strides, itemsize: int
) -> tuple[int, list[tuple[int, int]], int]:
    """Return a view with its sizes and strides, all strides positive."""
    axes = [(n, step) for n, step in zip(shape, strides, strict=True) if n > 1 and step]
    offset += sum([(n - 1) * step for n, step in axes if step < 0])
    return offset, [(n, abs(step)) for n, step in axes], itemsize


def _sides(
    offset: int, axes: Sequence[tuple[int, int]], itemsize: int, steps: Sequence[int]
) -> list[tuple[int, int]] | None:
    """Return the first and last coordinate of a box along each stride, and the range of its
    bytes below the smallest one; ``None`` if it crosses a stride.
    """
    sides = []
    reach = sum([(n - 1) * step for n, step in axes]) + itemsize
    for step in steps:
        begin, offset = divmod(offset, step)
        length = sum([n - 1 for n, own in axes if own == step])
        reach -= length * step
        sides.append((begin, begin + length))
        if offset + reach > step:
            return None
    sides.append((offset, offset + reach - 1))
    return sides


class Block(Protocol):
    """Memory that layouts refer to.

    Pool memory is a :class:`dparray.memory.Block`. Other blocks are borrowed from another library,
    or have no memory: positions, which are their own values, and placeholders in a plan.

    Attributes:
        readers: records of the pending values that read it.
        segment: the pool memory behind it, on which launches record events (``_driver.marks``);
            ``None`` for memory outside the pool.
    """

    readers: Any
    segment: Any

    @property
    def memory(self) -> Any:
        """The ``dpctl.memory`` object whose first byte is the block's first byte; ``None`` for
        positions.
        """

    @property
    def queue(self) -> Any:
        """The queue of the allocation."""

    @property
    def usm_type(self) -> str:
        """``"device"``, ``"shared"`` or ``"host"``."""

    @property
    def nbytes(self) -> int:
        """The size in bytes."""

    @property
    def pointer(self) -> int:
        """The address of the first byte."""

    @property
    def host_bytes(self) -> Any:
        """The bytes at their own address, for memory that the host can access."""


class Layout(NamedTuple):
    """The elements of an array in a block; offset and strides in bytes."""

    block: Block
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
