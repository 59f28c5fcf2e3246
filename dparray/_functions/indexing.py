"""Advanced indexing functions: integer arrays and masks as indices.

A basic index (integers, slices, ``None``, ``...``) is a view, which the array itself implements.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on, from_host
from dparray._array.apply import astype_array, cast_unsafe, choose_elements, ops
from dparray._array.assignment import assign, write_out
from dparray._array.dispatch import by_name, compute, compute_at_once
from dparray._array.host_fastpath import compute_small
from dparray._array.ndarray import as_method, ndarray
from dparray._array.operands import (
    check_array,
    check_fits,
    check_out,
    dispatch_override,
    foreign_operand,
    is_taken_from_host,
    overriding,
    scalar_value,
    shared,
)
from dparray._evaluate import limits
from dparray._functions.conversion import asarray
from dparray._functions.creation import full
from dparray._functions.elementwise import where
from dparray._functions.joining import resize
from dparray._functions.manipulation import diagonal, ravel, reshape
from dparray._functions.operands import arrays_of, placement_keywords
from dparray._functions.public import public
from dparray._placement import Placement, common_placement, placement_of
from dparray.algorithms.reduction import reduce
from dparray.algorithms.selection import can_locate, positions
from dparray.exceptions import ArgumentError, DTypeError, ShapeError

__all__ = [
    "choose",
    "compress",
    "copyto",
    "extract",
    "fill_diagonal",
    "nonzero",
    "place",
    "put",
    "put_along_axis",
    "putmask",
    "select",
    "take",
    "take_along_axis",
]


@as_method
@public()
def nonzero(x: ndarray) -> tuple[ndarray, ...]:
    """Return the indices of the nonzero elements, one integer array for each axis.

    Raises:
        ShapeError: ``x`` has no dimensions.

    Example:
        >>> dp.nonzero(dp.asarray([0, 3, 0, 4]))[0].asnumpy()
        array([1, 3])
    """
    if x.ndim == 0:
        raise ShapeError("nonzero: x must have at least 1 dimension; use x.reshape(1)")
    small = compute_small(_column_of_positions, x) if x.ndim == 1 else None
    if small is not None:
        return (small,)
    found = compute_at_once(np.nonzero, (("x", x),))
    if found is not None:
        return tuple(found)

    def by_kernel() -> tuple[ndarray, ...]:
        flat = positions(x if x.dtype.kind == "b" else ops.not_equal(x, 0))
        found = []
        for extent in reversed(x.shape[1:]):
            found.append(flat % extent)
            flat = flat // extent
        return (flat, *reversed(found))

    kernel = by_kernel if can_locate(x) else None
    host = _positions_of_vector if x.ndim == 1 else None
    library = by_name("nonzero")
    found = compute("nonzero", (("x", x),), kernel=kernel, host=host or True, library=library)
    return tuple(found)


def _column_of_positions(values: np.ndarray) -> np.ndarray:
    return values.nonzero()[0]


def _positions_of_vector(values: np.ndarray) -> tuple[np.ndarray]:
    """Return the indices in memory of their own: NumPy returns the column of a table."""
    found = values.nonzero()[0]
    if found.base is not None:
        found.base.resize(found.size, refcheck=False)
    return (found if found.base is None else found.base,)


def _within(function: str, positions: ndarray, extent: int, mode: str) -> ndarray:
    """Return indices moved into an axis by a mode; ``"raise"`` leaves them unchanged."""
    if mode == "raise":
        return positions
    if mode == "wrap":
        return positions % extent
    if mode == "clip":
        return ops.minimum(ops.maximum(positions, 0), extent - 1)
    raise ArgumentError(f"{function}: mode must be 'raise', 'wrap' or 'clip'; got {mode!r}")


def check_inside(indices: ndarray, extent: int, axis: int) -> None:
    """Check that indices are inside an axis."""
    # i from 0 and ~i = -1 - i reach as far from the start as from the end: one reduction, one read.
    bits = 8 * indices.itemsize
    reach = indices ^ (indices >> bits - 1) if indices.dtype.kind == "i" else indices
    if int(reduce(reach, "maximum")) >= extent:
        low, high = int(reduce(indices, "minimum")), int(reduce(indices, "maximum"))
        index = low if low < -extent else high
        raise IndexError(f"index {index} is out of bounds for axis {axis} with length {extent}")


def _as_positions(function: str, name: str, indices: Any) -> Any:
    """Convert indices as NumPy does: Booleans are 0 and 1; other dtypes must be integers.

    In ``x[index]`` Booleans are a mask instead.
    """
    found: Any = indices if isinstance(indices, ndarray) else np.asarray(indices)
    kind = found.dtype.kind
    if found.size and kind == "b":
        is_array = isinstance(found, ndarray)
        return astype_array(found, _dtypes.int8) if is_array else found.astype(np.int8).tolist()
    if kind not in "iu" and found.size:
        raise DTypeError(f"{function}: {name} of dtype {found.dtype} must be integers")
    return indices


def _is_plain_index(x: ndarray, indices: Any, axis: Any) -> bool:
    if type(indices) is not ndarray:
        return type(indices) is int
    taken = indices.size * (1 if axis is None or x.ndim == 1 else x.size)
    return indices.dtype.kind in "iu" and taken <= limits.host_elements


@as_method
@public(index="indices", small=np.take, takes=("indices", "axis"), when=_is_plain_index)
def take(
    x: ndarray,
    indices: Any,
    axis: int | None = None,
    out: ndarray | None = None,
    mode: str = "raise",
) -> ndarray:
    """Take elements at ``indices`` along ``axis``, or of the flattened array if it is ``None``.

    Args:
        x: an array.
        indices: integers: an array on the same queue, a NumPy array, a list or a scalar. Negative
            indices count from the end.
        axis: the axis; ``None`` means the flattened array.
        out: an array to write the result to.
        mode: for out-of-range indices: ``"raise"``, ``"wrap"`` around, or ``"clip"`` to the range.

    Raises:
        ArgumentError: the mode is unknown.
        DTypeError: the indices are not integers.
        ExecutionPlacementError: ``x`` and ``indices`` are on different queues.
        IndexError: an index is out of range.

    Example:
        >>> dp.take(dp.asarray([5, 6, 7]), [2, 0]).asnumpy()
        array([7, 5])
    """
    is_array = isinstance(indices, ndarray)
    placement = placement_of(x)
    if is_array:
        placement = common_placement("take", (("x", x), ("indices", indices)))
    indices = _as_positions("take", "indices", indices)
    if axis is None:
        if x.ndim != 1:
            x = x.reshape(-1)
        axis = 0
    axis = _layout.normalize_axis("take", axis, x.ndim)
    if mode != "raise":
        indices = check_array("take", "indices", indices, placement_of(x))
        indices = _within("take", indices, x.shape[axis], mode)
    elif is_array and out is None and _is_taken_by_host(x, indices):
        taken = taken_by_host("take", x, ("indices", indices), axis, placement)
        if taken is not None:
            return taken
    is_view = isinstance(indices, int) or not getattr(indices, "shape", True)
    result = x[_layout.at_axis(axis, indices)]
    if out is None:
        return result.copy() if is_view else result
    check_fits("take", result.shape, result.dtype, out, "unsafe")
    assign(out, result, "take")
    return out


def _is_taken_by_host(x: ndarray, indices: ndarray) -> bool:
    """Return whether indices are many; ``x[indices]`` is faster for few."""
    return indices.size > limits.host_elements and not _dtypes.is_bfloat16(x.dtype)


def taken_by_host(
    function: str, x: ndarray, indices: tuple[str, ndarray], axis: int, placement: Placement
) -> ndarray | None:
    """Return the elements at named integer indices along an axis, if the host may take them.

    Raises:
        IndexError: an index is out of range.
    """

    def take_into(source: np.ndarray, positions: np.ndarray, out: np.ndarray) -> None:
        extent = source.shape[axis]
        # Unsigned, negative indices are the largest: one traversal is enough if all are positive.
        unsigned = positions.view(np.uint64) if positions.dtype == np.int64 else positions
        if positions.size and (unsigned is positions or unsigned.max() >= extent):
            low, high = positions.min(), positions.max()
            if low < -extent or high >= extent:
                index = low if low < -extent else high
                raise IndexError(
                    f"index {index} is out of bounds for axis {axis} with length {extent}"
                )
        # "wrap" does not check the bounds again, and needs no buffer inside NumPy.
        source.take(positions, axis, out, "wrap")

    shape = (*x.shape[:axis], *indices[1].shape, *x.shape[axis + 1 :])
    result = empty_on(placement, shape, x.dtype)
    taken: ndarray | None = compute(function, [("x", x), indices], host=take_into, out=result)
    return taken


@public(operands=("x", "indices"), index="indices")
def take_along_axis(
    x: ndarray, indices: ndarray, axis: int | None = -1, mode: str = "raise"
) -> ndarray:
    """Take elements of ``x`` at ``indices``, which list positions along ``axis`` for each line.

    ``axis=None`` means a vector of indices of the flattened array. ``mode`` handles out-of-range
    indices: ``"raise"``, ``"wrap"`` around, or ``"clip"`` to the range.

    Raises:
        ArgumentError: the mode is unknown.
        IndexError: an index is out of range.

    Example:
        >>> x = dp.asarray([[3, 1], [2, 4]])
        >>> dp.take_along_axis(x, dp.argsort(x, axis=1), axis=1).asnumpy()
        array([[1, 3],
               [2, 4]])
    """
    if axis is None:
        x, axis = ravel(x), 0
    axis = _layout.normalize_axis("take_along_axis", axis, x.ndim)
    if indices.ndim != x.ndim:
        raise ShapeError(
            f"take_along_axis: indices of {indices.ndim} dimensions for an array of {x.ndim}"
        )
    if indices.dtype.kind not in "iu":
        raise IndexError(f"take_along_axis: indices of dtype {indices.dtype} must be integers")
    indices = _within("take_along_axis", indices, x.shape[axis], mode)
    named = (("x", x), ("indices", indices))

    def by_library(library: Any, *operands: Any) -> Any:
        if mode == "raise" and indices.size:  # a library brings every index into the axis
            check_inside(indices, x.shape[axis], axis)
        return library.take_along_axis(*operands, axis=axis)

    host = partial(np.take_along_axis, axis=axis)
    return compute("take_along_axis", named, host=host, library=by_library)


@public(index="ind")
def put(x: ndarray, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write ``v``, repeated as necessary, to elements of the flattened array.

    Args:
        x: an array.
        ind: the indices: an integer array on the queue of ``x``, a NumPy array, a list or an
            integer.
        v: the values: an array on the queue of ``x``, a list or a scalar.
        mode: for out-of-range indices: ``"raise"``, ``"wrap"`` around, or ``"clip"`` to the range.

    Raises:
        DTypeError: the indices are not integers.
        ExecutionPlacementError: the arrays are on different queues.
        IndexError: an index is out of range.

    Example:
        >>> x = dp.zeros(3, dtype="int32")
        >>> dp.put(x, [0, 2], 7)
        >>> x.asnumpy()
        array([7, 0, 7], dtype=int32)
    """
    if overriding((v,)) is not None:
        dispatch_override(put, (x, ind, v), mode=mode)
        return
    place = placement_of(x)
    named = [("x", x), ("ind", check_array("put", "ind", ind, place))]
    positions = _as_positions("put", "ind", named[1][1].reshape(-1))
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


@public()
def fill_diagonal(x: ndarray, val: Any, wrap: bool = False) -> None:
    """Write to the diagonal of a matrix, or of an array with more dimensions and equal lengths.

    Args:
        x: an array with at least two dimensions.
        val: a scalar, a list or an array on the queue of ``x``, repeated along the diagonal.
        wrap: whether to restart the diagonal below the last column of a tall matrix.

    Raises:
        ExecutionPlacementError: ``val`` is on another queue.
        ShapeError: ``x`` has fewer than two dimensions, or more with different lengths.

    Example:
        >>> x = dp.zeros((2, 2), dtype="int32")
        >>> dp.fill_diagonal(x, 7)
        >>> x.asnumpy()
        array([[7, 0],
               [0, 7]], dtype=int32)
    """
    if isinstance(val, list | tuple):
        val = check_array("fill_diagonal", "val", val, placement_of(x))
    if isinstance(val, ndarray):
        common_placement("fill_diagonal", (("x", x), ("val", val)))
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) != 1):
        raise ShapeError(
            f"fill_diagonal: x must be a matrix or have equal axis lengths; got shape {x.shape}"
        )
    if isinstance(val, ndarray) and not val.size:
        return
    length = min(x.shape)
    targets = [x._view((length,), (sum(x.strides),), x.offset)]
    if wrap and x.ndim == 2:
        step = x.shape[1] + 1
        targets = [diagonal(x[start : start + step]) for start in range(0, x.shape[0], step)]
    done = 0
    for target in targets:
        part = val
        if isinstance(val, ndarray) and val.ndim:
            part = resize(val, done + target.size)[done:]
        assign(target, part, "fill_diagonal")
        done += target.size


@public(operands=("x", "indices"), index="indices")
def put_along_axis(
    x: ndarray, indices: ndarray, values: Any, axis: int | None, mode: str = "raise"
) -> None:
    """Write ``values`` at ``indices``, which list positions along ``axis`` for each line.

    ``axis=None`` means a vector of indices of the flattened array. For ``mode`` see
    :func:`take_along_axis`.

    Raises:
        ArgumentError: the mode is unknown.
        IndexError: an index is out of range.

    Example:
        >>> x = dp.zeros((2, 2), dtype="int32")
        >>> dp.put_along_axis(x, dp.asarray([[1], [0]]), 5, axis=1)
        >>> x.asnumpy()
        array([[0, 5],
               [5, 0]], dtype=int32)
    """
    named = [("x", x), ("indices", indices)]
    if isinstance(values, ndarray):
        named.append(("values", values))
    placement = common_placement("put_along_axis", named)
    if axis is None:
        flat = x.reshape(-1)
        put_along_axis(flat, indices, values, 0, mode)
        if flat.block is not x.block:
            assign(x, flat.reshape(x.shape), "put_along_axis")
        return
    axis = _layout.normalize_axis("put_along_axis", axis, x.ndim)
    if indices.ndim != x.ndim:
        raise ShapeError(
            f"put_along_axis: indices of {indices.ndim} dimensions for an array of {x.ndim}"
        )
    indices = _within("put_along_axis", indices, x.shape[axis], mode)
    entries: list[Any] = []
    for at, extent in enumerate(x.shape):
        if at == axis:
            entries.append(indices)
        else:
            line = from_host(np.arange(extent), *placement)
            shape = (1,) * at + (extent,) + (1,) * (x.ndim - at - 1)
            entries.append(reshape(line, shape))
    x[tuple(entries)] = values


def _check_no_loss(function: str, x: ndarray, values: Any) -> None:
    """Raise if an array cannot be cast safely; numbers in a list are converted."""
    if isinstance(values, ndarray) and not _dtypes.can_cast(values.dtype, x.dtype, "safe"):
        raise DTypeError(
            f"{function}: values of dtype {values.dtype} cannot be cast safely to x of dtype "
            f"{x.dtype}; write values.astype('{x.dtype}')"
        )


@public(operands=("x", "mask"), index="mask")
def putmask(x: ndarray, mask: ndarray, values: Any) -> None:
    """Write the elements of ``values`` where ``mask`` is true.

    Raises:
        DTypeError: the values cannot be cast safely to the dtype of ``x``.
        ShapeError: the shapes do not match.

    Example:
        >>> x = dp.asarray([1, 2, 3])
        >>> dp.putmask(x, x > 1, 0)
        >>> x.asnumpy()
        array([1, 0, 0])
    """
    if isinstance(values, ndarray):
        common_placement("putmask", (("x", x), ("mask", mask), ("values", values)))
    _check_no_loss("putmask", x, values)
    if mask.shape != x.shape:
        raise ShapeError(f"putmask: mask of shape {mask.shape} for x of shape {x.shape}")
    if isinstance(values, np.generic):
        values = values.item()  # its dtype would be promoted: int64 with uint64 to float64
    elif isinstance(values, list | tuple):
        values = from_host(np.asarray(values), x.queue, x.usm_type)
    if isinstance(values, ndarray) and values.shape != x.shape:
        values = resize(values, x.shape)
    assign(x, where(mask, values, x), "putmask")


@public(operands=("x", "mask"), index="mask")
def place(x: ndarray, mask: ndarray, vals: Any) -> None:
    """Write the first elements of a vector where ``mask`` is true, repeating them.

    Raises:
        DTypeError: the values cannot be cast safely to the dtype of ``x``.
        ShapeError: the shapes do not match.

    Example:
        >>> x = dp.asarray([1, 2, 3, 4])
        >>> dp.place(x, x > 1, dp.asarray([8, 9]))
        >>> x.asnumpy()
        array([1, 8, 9, 8])
    """
    _check_no_loss("place", x, vals)
    vals = check_array("place", "vals", vals, placement_of(x))
    common_placement("place", (("x", x), ("mask", mask), ("vals", vals)))
    if mask.shape != x.shape:
        raise ShapeError(f"place: mask of shape {mask.shape} for x of shape {x.shape}")
    mask = astype_array(mask, _dtypes.bool, copy=False)
    count = int(mask.sum())
    if count:
        if not vals.size:
            raise ShapeError(f"place: vals is empty, and mask is true {count} times")
        x[mask] = resize(vals, count)


@as_method
@public()
def choose(
    x: Any, choices: Sequence[Any], out: ndarray | None = None, mode: str = "raise"
) -> ndarray:
    """Return for each element the choice with that index.

    Args:
        x: integers from 0 to the number of choices - 1, or Booleans.
        choices: arrays or scalars.
        out: an array to write the result to.
        mode: for other integers: ``"raise"``, ``"wrap"`` around, or ``"clip"`` to the range.

    Raises:
        ArgumentError: the mode is unknown.
        ExecutionPlacementError: the arrays are on different queues.
        IndexError: an element is not the index of a choice.

    Example:
        >>> dp.choose(dp.asarray([1, 0]), [dp.asarray([1, 2]), dp.asarray([3, 4])]).asnumpy()
        array([3, 2])
    """
    values = [
        check_array("choose", "a choice", value, placement_of(x))
        if isinstance(value, list | tuple) or is_taken_from_host(value)
        else shared(value)
        for value in choices
    ]
    named = [("x", x)]
    for position, value in enumerate(values):
        if isinstance(value, ndarray):
            named.append((f"choices[{position}]", value))
        elif not isinstance(value, bool | int | float | complex | np.generic):
            raise foreign_operand("choose", f"choices[{position}]", value)
    common_placement("choose", named)
    if not values:
        raise ShapeError("choose: choices must not be empty")
    if x.dtype.kind == "b":
        x = astype_array(x, _dtypes.int8)
    if x.dtype.kind not in "iu":
        raise DTypeError(f"choose: x of dtype {x.dtype} must be integers")
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"choose: mode must be 'raise', 'wrap' or 'clip'; got {mode!r}")
    check_out("choose", named, out)
    if mode == "wrap":
        x = ops.remainder(x, len(values))
    elif mode == "clip":
        x = ops.minimum(ops.maximum(x, 0), len(values) - 1)
    elif x.size and not (int(x.min()) >= 0 and int(x.max()) < len(values)):
        raise IndexError(f"choose: the elements of x must be from 0 to {len(values) - 1}")
    dtype = np.result_type(*(v.dtype if isinstance(v, ndarray | np.generic) else v for v in values))
    result = full((), 0, dtype=dtype, sycl_queue=x.queue, usm_type=x.usm_type)
    for position, value in enumerate(values):
        result = where(ops.equal(x, position), value, result)
    if out is None:
        return result
    assign(out, result, "choose")
    return out


@public()
def copyto(dst: ndarray, src: Any, /, casting: Any = "same_kind", where: Any = True) -> None:
    """Copy the values of ``src`` (an array or a scalar) into ``dst``.

    Args:
        dst: the array to write to.
        src: a dparray or NumPy array, or a scalar, that broadcasts to ``dst``.
        casting: the allowed conversions of arrays, as in NumPy.
        where: a mask that broadcasts to ``dst``; other elements are unchanged.

    Raises:
        DTypeError: ``casting`` forbids the conversion.
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: ``src`` does not broadcast to ``dst``.

    Example:
        >>> x = dp.zeros(2)
        >>> dp.copyto(x, 3)
        >>> x.asnumpy()
        array([3., 3.])
    """
    src = shared(src)
    place = placement_of(dst)
    if isinstance(src, list | tuple | range):
        src = check_array("copyto", "src", src, place)
    named = [("dst", dst), *([("src", src)] if isinstance(src, ndarray) else [])]
    if where is not True:
        named.append(("where", check_array("copyto", "where", where, place)))
    common_placement("copyto", named)
    if isinstance(src, np.integer | np.bool_) and dst.dtype.kind in "iu":
        given, src = src.dtype, src.astype(dst.dtype)
    else:
        given = getattr(src, "dtype", None) or np.result_type(dst.dtype, src)
    if not _dtypes.can_cast(given, dst.dtype, casting):
        raise DTypeError(
            f"copyto: {given} cannot be cast to {dst.dtype} with casting={casting!r}; give "
            f"casting='unsafe'"
        )
    if isinstance(src, complex | np.complexfloating) and dst.dtype.kind != "c":
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)  # the cast was requested
            src = np.asarray(src).astype(dst.dtype)[()]
    if where is not True:
        mask = astype_array(named[-1][1], _dtypes.bool, copy=False)
        values = (
            src if isinstance(src, ndarray) else asarray(src, dst.dtype, **placement_keywords(dst))
        )
        src = choose_elements("copyto", mask, cast_unsafe(values, dst.dtype), dst)
        _layout.broadcast_shapes("copyto", [dst.shape, src.shape])
    elif isinstance(src, ndarray) and src.dtype.kind == "c":
        src = cast_unsafe(src, dst.dtype)
    assign(dst, src, "copyto")


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> ndarray:
    """Return for each element the choice of the first condition that is true.

    Args:
        condlist: Boolean arrays.
        choicelist: one array or scalar for each condition.
        default: the value where no condition is true.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the numbers of conditions and choices differ.

    Example:
        >>> x = dp.asarray([1, 5, 9])
        >>> dp.select([x < 3, x < 7], [x, 10 * x], 0).asnumpy()
        array([ 1, 50,  0])
    """
    if not condlist or len(condlist) != len(choicelist):
        raise ShapeError(f"select: {len(condlist)} conditions for {len(choicelist)} choices")
    named = [(f"condlist[{at}]", x) for at, x in enumerate(condlist)]
    named += [(f"choicelist[{at}]", x) for at, x in enumerate(choicelist)]
    values = arrays_of("select", *named, ("default", default))
    conditions, choices = values[: len(condlist)], values[len(condlist) :]
    arrays = [choice for choice in choices if isinstance(choice, ndarray)]
    if arrays:  # the dtype depends on all arrays together; a scalar alone is weak
        weak = [_dtypes.promotion_key(x) for x in choices if not isinstance(x, ndarray)]
        dtype = _dtypes.promote([*(x.dtype for x in arrays), *weak])
        choices = [
            cast_unsafe(x, dtype)
            if isinstance(x, ndarray)
            else full((), x, dtype, **placement_keywords(arrays[0]))
            for x in choices
        ]
    result = choices[-1]
    for condition, choice in zip(conditions[::-1], choices[-2::-1], strict=True):
        result = where(condition, choice, result)
    return result


@public(operands=("condition", "x"), index="condition")
def extract(condition: ndarray, x: ndarray) -> ndarray:
    """Return the elements of ``x`` where ``condition`` is true, both flattened.

    Raises:
        IndexError: ``condition`` is true beyond the elements of ``x``.

    Example:
        >>> x = dp.arange(4)
        >>> dp.extract(x % 2 == 0, x).asnumpy()
        array([0, 2])
    """
    if condition.size != x.size:
        return ravel(x)[nonzero(ravel(condition))[0]]
    return ravel(x)[astype_array(ravel(condition), _dtypes.bool, copy=False)]


@public(operands=("condition", "x"), index="condition")
def compress(
    condition: ndarray, x: ndarray, axis: int | None = None, out: ndarray | None = None
) -> ndarray:
    """Return the slices of ``x`` along ``axis`` where the vector ``condition`` is true.

    Raises:
        IndexError: ``condition`` is true beyond the axis.
        ShapeError: ``condition`` is not a vector, or ``out`` has the wrong shape.

    Example:
        >>> x = dp.asarray([[1, 2], [3, 4]])
        >>> dp.compress(dp.asarray([False, True]), x, axis=0).asnumpy()
        array([[3, 4]])
    """
    if axis is None:
        x, axis = ravel(x), 0
    axis = _layout.normalize_axis("compress", axis, x.ndim)
    if condition.ndim != 1:
        raise ShapeError(f"compress: condition must be a vector; got shape {condition.shape}")
    found = x[_layout.at_axis(axis, nonzero(condition)[0])]
    return write_out("compress", found, out)
