"""Editing arrays: elements removed, inserted and written by position or by mask; windows."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.apply import apply, astype_array
from dparray._array.assignment import assign
from dparray._array.fresh import empty_on, from_host
from dparray._array.ndarray import as_method, ndarray, take_layout_of
from dparray._array.operands import check_array, check_out, foreign_operand
from dparray._array.small import call_at_once
from dparray._functions import missing_names
from dparray._functions.creation import asarray, full, zeros
from dparray._functions.elementwise import where
from dparray._functions.indexing import put
from dparray._functions.manipulation import broadcast_to, diagonal, moveaxis, ravel, reshape
from dparray._functions.searching import compress
from dparray._functions.sorting import argpartition, partition
from dparray._graph.ops import OPS
from dparray._placement import Placement, common_placement
from dparray.exceptions import ArgumentError, DTypeError, ShapeError

__all__ = [
    "bartlett",
    "blackman",
    "choose",
    "delete",
    "fill_diagonal",
    "hamming",
    "hanning",
    "insert",
    "kaiser",
    "may_share_memory",
    "modf",
    "piecewise",
    "place",
    "put_along_axis",
    "putmask",
    "resize",
    "shares_memory",
    "trim_zeros",
]


def _positions(function: str, x: ndarray, indices: Any, extent: int) -> np.ndarray:
    """Positions along an axis on the host, where they decide the result's shape."""
    if isinstance(indices, ndarray):
        common_placement(function, (("x", x), ("obj", indices)))
        indices = indices.asnumpy()
    elif isinstance(indices, slice):
        indices = np.arange(extent)[indices]
    elif isinstance(indices, np.ndarray):
        raise foreign_operand(function, "obj", indices)
    found = np.asarray(indices)
    if found.size == 0:
        return found.astype(np.int64).reshape(-1)
    if found.dtype.kind == "b":
        return np.flatnonzero(found)
    if found.dtype.kind not in "iu":
        raise IndexError(f"{function}: obj of dtype {found.dtype} must be integers")
    return found


def _is_plain_position(obj: Any) -> bool:
    """Whether NumPy reads a position as we do: an integer, or a list of integers."""
    return type(obj) is int or (type(obj) is list and all(type(one) is int for one in obj))


def delete(x: Any, obj: Any, axis: int | None = None) -> ndarray:
    """A copy without some slices along an axis.

    Args:
        x: an array.
        obj: their positions: an integer, a slice, a list, or an array on the queue of ``x``
            (for whose values the host waits).
        axis: the axis; ``None`` flattens ``x`` first.

    Raises:
        ExecutionPlacementError: ``obj`` is on another queue.
        IndexError: a position is outside the axis.

    Example:
        >>> import dparray as dp
        >>> dp.delete(dp.asarray([1, 2, 3]), 1).asnumpy()
        array([1, 3])
    """
    small = call_at_once(np.delete, x, obj, axis) if _is_plain_position(obj) else None
    if small is not None:
        return small
    x = check_array("delete", "x", x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = _layout.normalize_axis("delete", axis, x.ndim)
    positions = _positions("delete", x, obj, x.shape[axis])
    placement = Placement(x.sycl_queue, x.usm_type)
    if isinstance(obj, ndarray):
        placement = common_placement("delete", (("x", x), ("obj", obj)))
    kept = np.delete(np.arange(x.shape[axis]), positions)
    return x[_layout.at_axis(axis, from_host(kept, *placement))]


def insert(x: Any, obj: Any, values: Any, axis: int | None = None) -> ndarray:
    """A copy with slices inserted before positions along an axis.

    Args:
        x: an array.
        obj: the positions, as of :func:`delete`.
        values: an array or a scalar that broadcasts to the inserted slices.
        axis: the axis; ``None`` flattens ``x`` first.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        IndexError: a position is outside the axis.
        ShapeError: the values do not fit.

    Example:
        >>> import dparray as dp
        >>> dp.insert(dp.asarray([1, 3]), 1, 2).asnumpy()
        array([1, 2, 3])
    """
    if _is_plain_position(obj) and type(values) in (ndarray, int, float):
        small = call_at_once(np.insert, x, obj, values, axis)
        if small is not None:
            return small
    x = check_array("insert", "x", x)
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
    if isinstance(values, list | tuple):
        values = from_host(np.asarray(values), *placement)
    if positions.ndim == 0:  # one position takes as many slices as there are values
        count = 1
        if isinstance(values, ndarray):
            values = reshape(values, (1,) * (x.ndim - values.ndim) + values.shape)
            values = moveaxis(values, 0, axis)
            count = values.shape[axis]
        positions = np.full(count, operator.index(positions[()]))
    positions = positions.reshape(-1)
    positions = np.where(positions < 0, positions + extent, positions)
    if positions.size and (positions.min() < 0 or positions.max() > extent):
        raise IndexError(f"insert: a position is outside an axis of extent {extent}")
    order = np.argsort(positions, kind="stable")
    places = np.empty(positions.size, np.int64)
    places[order] = positions[order] + np.arange(positions.size)
    shape = (*x.shape[:axis], extent + positions.size, *x.shape[axis + 1 :])
    result = empty_on(placement, shape, x.dtype)
    old = np.setdiff1d(np.arange(extent + positions.size), places)
    result[_layout.at_axis(axis, from_host(old, *placement))] = x
    result[_layout.at_axis(axis, from_host(places, *placement))] = values
    return result


def resize(x: Any, new_shape: int | Sequence[int]) -> ndarray:
    """A copy in another shape, the elements repeated as often as it takes.

    Example:
        >>> import dparray as dp
        >>> dp.resize(dp.asarray([1, 2]), 5).asnumpy()
        array([1, 2, 1, 2, 1])
    """
    x = ravel(check_array("resize", "x", x))
    target = _layout.check_shape(new_shape)
    result = empty_on(Placement(x.sycl_queue, x.usm_type), target, x.dtype)
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


def trim_zeros(x: Any, trim: str = "fb", axis: int | Sequence[int] | None = None) -> ndarray:
    """A view without the zeros at the front (``f``) or back (``b``) of axes; of all, if not given.

    The host waits for the values, as they decide the result's shape.

    Raises:
        AxisError: there is no such axis.

    Example:
        >>> import dparray as dp
        >>> dp.trim_zeros(dp.asarray([0, 1, 0, 2, 0])).asnumpy()
        array([1, 0, 2])
    """
    x = check_array("trim_zeros", "x", x)
    if trim.lower() not in ("f", "b", "fb", "bf"):
        raise ArgumentError(f"trim_zeros: trim {trim!r} is none of 'f', 'b', 'fb'")
    axes = range(x.ndim) if axis is None else _layout.normalize_axes("trim_zeros", axis, x.ndim)
    is_there = apply(OPS["not_equal"], x, 0).asnumpy()
    index = [slice(None)] * x.ndim
    for at in axes:
        others = tuple(other for other in range(x.ndim) if other != at)
        places = np.flatnonzero(is_there.any(axis=others))
        start, last = (int(places[0]), int(places[-1])) if places.size else (0, -1)
        index[at] = slice(
            start if "f" in trim.lower() else None, last + 1 if "b" in trim.lower() else None
        )
    if not is_there.any():
        index = [slice(0, 0) if at in axes else slice(None) for at in range(x.ndim)]
    return x[tuple(index)]


def fill_diagonal(x: ndarray, val: Any, wrap: bool = False) -> None:
    """Write to the diagonal of a matrix, or of an array of more dimensions and equal extents.

    Args:
        x: an array of two dimensions or more.
        val: a scalar, a list or an array on the queue of ``x``, repeated along the diagonal.
        wrap: begin again below the last column of a tall matrix, after a row left out.

    Raises:
        ExecutionPlacementError: ``val`` is on another queue.
        ShapeError: ``x`` has fewer dimensions, or more with extents that differ.

    Example:
        >>> import dparray as dp
        >>> x = dp.zeros((2, 2), dtype="int32")
        >>> dp.fill_diagonal(x, 7)
        >>> x.asnumpy()
        array([[7, 0],
               [0, 7]], dtype=int32)
    """
    x = check_array("fill_diagonal", "x", x)
    if isinstance(val, list | tuple):
        val = check_array("fill_diagonal", "val", val, Placement(x.sycl_queue, x.usm_type))
    if isinstance(val, ndarray):
        common_placement("fill_diagonal", (("x", x), ("val", val)))
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) != 1):
        raise ShapeError(
            f"fill_diagonal: x of shape {x.shape}; give a matrix or an array of equal extents"
        )
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


def put_along_axis(x: ndarray, indices: ndarray, values: Any, axis: int) -> None:
    """Write ``values`` at ``indices``, which lists positions along ``axis`` for each line.

    Raises:
        AxisError: there is no such axis.
        ExecutionPlacementError: the arrays are on different queues.
        IndexError: an index leads outside the axis.

    Example:
        >>> import dparray as dp
        >>> x = dp.zeros((2, 2), dtype="int32")
        >>> dp.put_along_axis(x, dp.asarray([[1], [0]]), 5, axis=1)
        >>> x.asnumpy()
        array([[0, 5],
               [5, 0]], dtype=int32)
    """
    x = check_array("put_along_axis", "x", x)
    indices = check_array("put_along_axis", "indices", indices)
    named = [("x", x), ("indices", indices)]
    if isinstance(values, ndarray):
        named.append(("values", values))
    placement = common_placement("put_along_axis", named)
    axis = _layout.normalize_axis("put_along_axis", axis, x.ndim)
    if indices.ndim != x.ndim:
        raise ShapeError(
            f"put_along_axis: indices of {indices.ndim} dimensions for an array of {x.ndim}"
        )
    entries: list[Any] = []
    for at, extent in enumerate(x.shape):
        if at == axis:
            entries.append(indices)
        else:
            line = from_host(np.arange(extent), *placement)
            shape = (1,) * at + (extent,) + (1,) * (x.ndim - at - 1)
            entries.append(reshape(line, shape))
    x[tuple(entries)] = values


def putmask(x: ndarray, mask: ndarray, values: Any) -> None:
    """Write the elements of ``values`` to where ``mask`` is true.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not fit.

    Example:
        >>> import dparray as dp
        >>> x = dp.asarray([1, 2, 3])
        >>> dp.putmask(x, x > 1, 0)
        >>> x.asnumpy()
        array([1, 0, 0])
    """
    x = check_array("putmask", "x", x)
    mask = check_array("putmask", "mask", mask)
    named = [("x", x), ("mask", mask)]
    if isinstance(values, ndarray):
        named.append(("values", values))
    common_placement("putmask", named)
    if mask.shape != x.shape:
        raise ShapeError(f"putmask: mask of shape {mask.shape} for x of shape {x.shape}")
    if isinstance(values, list | tuple):
        values = from_host(np.asarray(values), x.sycl_queue, x.usm_type)
    if isinstance(values, ndarray) and values.shape != x.shape:
        values = resize(values, x.shape)
    assign(x, where(mask, values, x), "putmask")


def place(x: ndarray, mask: ndarray, vals: Any) -> None:
    """Write the first elements of a vector to where ``mask`` is true, repeating them.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not fit.

    Example:
        >>> import dparray as dp
        >>> x = dp.asarray([1, 2, 3, 4])
        >>> dp.place(x, x > 1, dp.asarray([8, 9]))
        >>> x.asnumpy()
        array([1, 8, 9, 8])
    """
    x = check_array("place", "x", x)
    mask = check_array("place", "mask", mask)
    vals = (
        from_host(np.asarray(vals), x.sycl_queue, x.usm_type)
        if isinstance(vals, list | tuple)
        else check_array("place", "vals", vals)
    )
    common_placement("place", (("x", x), ("mask", mask), ("vals", vals)))
    if mask.shape != x.shape:
        raise ShapeError(f"place: mask of shape {mask.shape} for x of shape {x.shape}")
    mask = astype_array(mask, _dtypes.bool, copy=False)
    count = int(mask.sum())
    if count:
        x[mask] = resize(vals, count)


@as_method
def choose(
    x: Any, choices: Sequence[Any], out: ndarray | None = None, mode: str = "raise"
) -> ndarray:
    """For each element the choice that it numbers.

    Args:
        x: integers from 0 to the number of choices - 1.
        choices: arrays or scalars.
        out: an array for the result.
        mode: what other integers do: ``"raise"``, or ``"wrap"`` around, or ``"clip"`` to the range.

    Raises:
        ArgumentError: there is no such mode.
        ExecutionPlacementError: the arrays are on different queues.
        IndexError: an element numbers no choice.

    Example:
        >>> import dparray as dp
        >>> dp.choose(dp.asarray([1, 0]), [dp.asarray([1, 2]), dp.asarray([3, 4])]).asnumpy()
        array([3, 2])
    """
    x = check_array("choose", "x", x)
    values = [
        check_array("choose", "a choice", value, Placement(x.sycl_queue, x.usm_type))
        if isinstance(value, list | tuple)
        else value
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
        raise ShapeError("choose: there is no choice")
    if x.dtype.kind not in "iu":
        raise DTypeError(f"choose: x of dtype {x.dtype} must be integers")
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"choose: mode {mode!r} is none of 'raise', 'wrap', 'clip'")
    check_out("choose", named, out)
    if mode == "wrap":
        x = apply(OPS["remainder"], x, len(values))
    elif mode == "clip":
        x = apply(OPS["minimum"], apply(OPS["maximum"], x, 0), len(values) - 1)
    elif x.size and not (int(x.min()) >= 0 and int(x.max()) < len(values)):
        raise IndexError(f"choose: an element of x is outside 0 ... {len(values) - 1}")
    dtype = np.result_type(*(v.dtype if isinstance(v, ndarray | np.generic) else v for v in values))
    result = full((), 0, dtype=dtype, sycl_queue=x.sycl_queue, usm_type=x.usm_type)
    for position, value in enumerate(values):
        result = where(apply(OPS["equal"], x, position), value, result)
    if out is None:
        return result
    assign(out, result, "choose")
    return out


def piecewise(x: Any, condlist: Sequence[Any], funclist: Sequence[Any]) -> ndarray:
    """For each element what the function of the last condition that is true makes of it.

    Args:
        x: an array.
        condlist: boolean arrays of its shape.
        funclist: as many functions (of the elements) or scalars; one more for elements where no
            condition is true, which are 0 otherwise.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the numbers of conditions and functions do not fit.

    Example:
        >>> import dparray as dp
        >>> x = dp.asarray([-1.0, 2.0])
        >>> dp.piecewise(x, [x < 0], [lambda v: -v, 0.0]).asnumpy()
        array([1., 0.])
    """
    x = check_array("piecewise", "x", x)
    conditions = [
        check_array("piecewise", f"condlist[{at}]", condition)
        for at, condition in enumerate(condlist)
    ]
    named = [(f"condlist[{at}]", condition) for at, condition in enumerate(conditions)]
    common_placement("piecewise", [("x", x), *named])
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ShapeError(f"piecewise: {len(funclist)} functions for {len(conditions)} conditions")
    default = funclist[-1] if len(funclist) > len(conditions) else 0
    result = empty_on(Placement(x.sycl_queue, x.usm_type), x.shape, x.dtype)
    result[...] = default(x) if callable(default) else default
    for condition, function in zip(conditions, funclist, strict=False):
        chosen = function(x[condition]) if callable(function) else function
        result[condition] = chosen
    return result


def modf(x: Any, /) -> tuple[ndarray, ndarray]:
    """The parts after and before the point, both with the sign of ``x``.

    Example:
        >>> import dparray as dp
        >>> [part.tolist() for part in dp.modf(dp.asarray([1.5, -2.25]))]
        [[0.5, -0.25], [1.0, -2.0]]
    """
    x = check_array("modf", "x", x)
    if x.dtype.kind not in "f":
        x = astype_array(x, _dtypes.default_float(x.sycl_queue.sycl_device))
    whole = apply(OPS["trunc"], x)
    rest = where(apply(OPS["isinf"], x), 0.0, apply(OPS["subtract"], x, whole))
    return apply(OPS["copysign"], rest, x), whole


def shares_memory(x1: ndarray, x2: ndarray, /) -> bool:
    """Whether two arrays have an allocation in common, as views of one array have.

    Example:
        >>> import dparray as dp
        >>> x = dp.ones(4)
        >>> dp.shares_memory(x, x[1:]), dp.shares_memory(x, x.copy())
        (True, False)
    """
    x1, x2 = check_array("shares_memory", "x1", x1), check_array("shares_memory", "x2", x2)
    return bool(x1.block.pointer == x2.block.pointer)


may_share_memory = shares_memory


def _window(values: np.ndarray, place: dict[str, Any]) -> ndarray:
    return asarray(values, **place)


def hanning(m: int, **place: Any) -> ndarray:
    """The Hann window of ``m`` points; ``device=`` and the like as of :func:`asarray`.

    Example:
        >>> import dparray as dp
        >>> dp.hanning(3).asnumpy()
        array([0., 1., 0.])
    """
    return _window(np.hanning(m), place)


def hamming(m: int, **place: Any) -> ndarray:
    """The Hamming window of ``m`` points; ``device=`` and the like as of :func:`asarray`.

    Example:
        >>> import dparray as dp
        >>> dp.hamming(3).asnumpy()
        array([0.08, 1.  , 0.08])
    """
    return _window(np.hamming(m), place)


def blackman(m: int, **place: Any) -> ndarray:
    """The Blackman window of ``m`` points; ``device=`` and the like as of :func:`asarray`.

    Example:
        >>> import dparray as dp
        >>> round(float(dp.blackman(3)[1]), 6)
        1.0
    """
    return _window(np.blackman(m), place)


def bartlett(m: int, **place: Any) -> ndarray:
    """The Bartlett window of ``m`` points; ``device=`` and the like as of :func:`asarray`.

    Example:
        >>> import dparray as dp
        >>> dp.bartlett(3).asnumpy()
        array([0., 1., 0.])
    """
    return _window(np.bartlett(m), place)


def kaiser(m: int, beta: float, **place: Any) -> ndarray:
    """The Kaiser window of ``m`` points; ``device=`` and the like as of :func:`asarray`.

    Example:
        >>> import dparray as dp
        >>> round(float(dp.kaiser(3, 5.0)[1]), 6)
        1.0
    """
    return _window(np.kaiser(m, beta), place)


# -- methods whose signature differs from the function's ------------------------------------------


def _view(self: ndarray, dtype: Any = None) -> ndarray:
    """The same memory as another dtype; without one, another array over it.

    Raises:
        ShapeError: the last axis is not contiguous, or its bytes do not divide.
    """
    wanted = self.dtype if dtype is None else _dtypes.as_dtype(dtype)
    _dtypes.check_device(wanted, self.sycl_queue.sycl_device)
    if wanted.itemsize == self.itemsize:
        return self._view(self.shape, self.strides, self.offset, wanted)
    if self.ndim == 0 or (self.strides[-1] != self.itemsize and self.shape[-1] != 1):
        raise ShapeError(
            f"view: {self.dtype} as {wanted} needs a last axis whose elements lie one after another"
        )
    nbytes = self.shape[-1] * self.itemsize
    if nbytes % wanted.itemsize or self.offset % wanted.itemsize:
        raise ShapeError(f"view: {nbytes} bytes along the last axis do not divide into {wanted}")
    shape = (*self.shape[:-1], nbytes // wanted.itemsize)
    if any(stride % wanted.itemsize for stride in self.strides[:-1]):
        raise ShapeError(f"view: the rows do not lie at multiples of {wanted.itemsize} bytes")
    return self._view(shape, (*self.strides[:-1], wanted.itemsize), self.offset, wanted)


def _set_dtype(self: ndarray, dtype: Any) -> None:
    """Let the array itself see its memory as another dtype; see :meth:`view`."""
    self.block  # noqa: B018 - computes what is pending
    take_layout_of(self, _view(self, dtype))


def _set_strides(self: ndarray, strides: Any) -> None:
    raise AttributeError(
        f"x.strides cannot be set; write x = dp.lib.stride_tricks.as_strided(x, {self.shape}, "
        f"{strides!r:.40})"
    )


def _resize_in_place(self: ndarray, *new_shape: Any, refcheck: bool = True) -> None:
    """Give the array itself another shape, cut or with zeros at its end; views keep the old memory.

    Args:
        *new_shape: extents, or a tuple of them.
        refcheck: without effect, as other views never lose their memory.
    """
    given = new_shape[0] if len(new_shape) == 1 else new_shape
    resized = zeros(given, self.dtype, usm_type=self.usm_type, sycl_queue=self.sycl_queue)
    count = min(self.size, resized.size)
    ravel(resized)[:count] = ravel(self)[:count]
    resized.block  # noqa: B018 - computes it
    take_layout_of(self, resized)


def _absent_attribute(name: str, reason: str) -> property:
    def refuse(self: ndarray) -> NoReturn:
        raise AttributeError(f"'ndarray' object has no attribute {name!r}: {reason}")

    return property(refuse, doc=f"Not there: {reason}.")


def _partition_in_place(
    self: ndarray, kth: int | Sequence[int], axis: int = -1, kind: str = "introselect"
) -> None:
    """Partition the array itself, as NumPy's method does; see :func:`dparray.partition`."""
    assign(self, partition(self, kth, axis, kind), "partition")


def _argpartition(
    self: ndarray, kth: int | Sequence[int], axis: int = -1, kind: str = "introselect"
) -> ndarray:
    """The positions that partition the array; see :func:`dparray.argpartition`."""
    return argpartition(self, kth, axis, kind)


def _compress(
    self: ndarray, condition: ndarray, axis: int | None = None, out: ndarray | None = None
) -> ndarray:
    """The slices where ``condition`` is true; see :func:`dparray.compress`."""
    return compress(condition, self, axis, out)


def _put(self: ndarray, indices: Any, values: Any, mode: str = "raise") -> None:
    """Write to the elements of the flattened array; see :func:`dparray.put`."""
    put(self, indices, values, mode)


def _attach() -> None:
    for name, method in {
        "view": _view,
        "partition": _partition_in_place,
        "argpartition": _argpartition,
        "compress": _compress,
        "put": _put,
        "resize": _resize_in_place,
    }.items():
        method.__name__ = name
        method.__qualname__ = f"ndarray.{name}"
        setattr(ndarray, name, method)
    for name, set_it in (("dtype", _set_dtype), ("strides", _set_strides)):
        setattr(ndarray, name, vars(ndarray)[name].setter(set_it))
    for name, reason in missing_names.ATTRIBUTES.items():
        setattr(ndarray, name, _absent_attribute(name, reason))


_attach()
