"""The rules of indexing, assignment and functions that take elements by their position."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
from dparray._layout import is_basic_index
from dparray.exceptions import GradientError
from dparray.gradients.calls import (
    ROWS_BY_NAME,
    WRITING,
    apply,
    is_array,
    write,
)
from dparray.gradients.elementwise import compose, register
from dparray.gradients.public import dp
from dparray.gradients.rows import Linear, Row, View
from dparray.gradients.slices import Part
from dparray.gradients.tape import without_memory
from dparray.gradients.traced import Spec, Traced, constants


def index_array(values: Any, like: Any) -> Any:
    """Return host integers as an array on the queue of another."""
    return dp.asarray(values, sycl_queue=like.queue)


def plain_key(key: Any) -> Any:
    """Return an index without traced arrays; indices have no derivative."""
    return constants(key) if type(key) in (Traced, tuple, list) else key


def is_basic(key: Any) -> bool:
    """Return whether an index consists of integers, slices, ``None`` and ``...``."""
    return bool(is_basic_index(key))


def _is_mask(key: Any) -> bool:
    return getattr(key, "dtype", None) is not None and key.dtype.kind == "b"


def _scattered(g: Any, key: Any, spec: Any) -> Any:
    made = Spec.zeros(spec)
    if g.dtype != made.dtype:
        made = made.astype(g.dtype)
    if is_basic(key) or _is_mask(key):
        made[key] = g
    else:
        dp.add.at(made, key, g)
    return made


def scatter(g: Any, key: Any, spec: Any) -> Any:
    """Return zeros to which ``g`` is added at an index, for repeated indices repeatedly."""
    return apply(ROWS_BY_NAME["scatter"], (g, key, spec), {})


class GetItem(View):
    """``x[key]``: a view for slices, a copy for single elements and for arrays of indices."""

    def makes_view(self, args: Any) -> bool:
        """Return whether the result of a call is a view."""
        key = args[1]
        keys = key if type(key) is tuple else (key,)
        is_element = all(isinstance(k, int | np.integer) for k in keys)
        return is_basic(key) and not (is_element and len(keys) == args[0].ndim)

    def write_back(self, base: Any, view: Any, *others: Any, **options: Any) -> Any:
        """Return the new value of the operand after the view was written."""
        return apply(ROWS_BY_NAME["setitem"], (base, others[0], view), {})


def _of_getitem(g: Any, x: Any, key: Any) -> Any:
    spec = Spec(x)
    return Part(g, key, spec, scatter) if is_basic(key) else scatter(g, key, spec)


class SetItem(Row):
    """A copy of an array with other values at an index."""

    reads_operands = False

    def keep(self, places: Any, operands: Any, answer: Any) -> tuple[Any, Any]:
        """Return what the rule needs of the operands and the result."""
        kept, _ = super().keep(places, operands[:2], answer)
        return [*kept, without_memory(operands[2])], None

    def transpose(self, place: Any, g: Any, answer: Any, operands: Any, options: Any) -> Any:
        """Return the cotangent of an operand from that of the result."""
        x, key, value = operands
        if place == 0:
            return apply(self, (g, key, 0), {})
        g = g[key]
        if not (is_basic(key) or _is_mask(key)):
            g = dp.where(_are_last(g.shape, key, Spec(x)), g, 0)
        return _front_dropped(g, value)

    def push(self, tangents: Any, answer: Any, operands: Any, options: Any) -> Any:
        """Return the tangent of the result from those of operands."""
        x, key, _ = operands
        tangent = tangents.get(0)
        tangent = Spec(x).zeros() if tangent is None else tangent
        return apply(self, (tangent, key, tangents.get(2, 0)), {})


class AddItem(SetItem):
    """A copy of an array with values of its dtype added to a slice."""

    def transpose(self, place: Any, g: Any, answer: Any, operands: Any, options: Any) -> Any:
        """Return the cotangent of an operand from that of the result."""
        return g if place == 0 else g[operands[1]]


def _added_to(x: Any, key: Any, value: Any) -> Any:
    if type(x) is Traced or type(value) is Traced:
        return apply(ROWS_BY_NAME["additem"], (x, key, value), {})
    copied = x.copy()
    copied[key] += value
    return copied


def _are_last(shape: tuple[int, ...], key: Any, spec: Spec) -> Any:
    """Return which of the values that are written at an index stay: of equal indices the last."""
    numbers = dp.reshape(index_array(np.arange(math.prod(shape)), spec), shape)
    writer = spec.changed(spec.shape, numbers.dtype).zeros()
    writer[key] = numbers
    return writer[key] == numbers


def _front_dropped(g: Any, value: Any) -> Any:
    """Add the axes of length 1 that an assigned value had in front."""
    return dp.reshape(g, (1,) * (value.ndim - g.ndim) + g.shape) if value.ndim > g.ndim else g


def _assigned(x: Any, key: Any, value: Any) -> Any:
    if type(x) is Traced or type(value) is Traced:
        return apply(ROWS_BY_NAME["setitem"], (x, key, value), {})
    copied = x.copy()
    copied[key] = value
    return copied


def item_of(x: Any, key: Any) -> Any:
    """Return ``x[key]`` of an array."""
    return x[key]


def getitem(x: Traced, key: Any) -> Any:
    """Return ``x[key]``."""
    return apply(ROWS_BY_NAME["getitem"], (x, plain_key(key)), {})


def setitem(x: Traced, key: Any, value: Any) -> None:
    """Carry out ``x[key] = value``."""
    key = plain_key(key)
    if isinstance(value, list | tuple):
        value = dp.asarray(value)
    if type(value) is Traced and value._root is not None and _is_view(x, key, value):
        return  # the last part of `x[key] += y`: the view has been written
    write(x, lambda old: apply(ROWS_BY_NAME["setitem"], (old, key, value), {}))


def _is_view(x: Traced, key: Any, value: Traced) -> bool:
    """Return whether a value is the view ``x[key]``."""
    root = x if x._root is None else x._root
    before = x._steps
    if value._root is not root or len(value._steps) != len(before) + 1 or not is_basic(key):
        return False
    last = value._steps[-1]
    return (
        last.row is ROWS_BY_NAME["getitem"]
        and repr(last.args) == repr((key,))
        and all(a is b or a.is_like(b) for a, b in zip(before, value._steps, strict=False))
    )


def _of_take(g: Any, x: Any, indices: Any, axis: Any = None, **_: Any) -> Any:
    spec = Spec(x)
    if axis is None:
        return dp.reshape(scatter(g, indices, spec.reshaped((x.size,))), x.shape)
    return scatter(g, (slice(None),) * (axis % x.ndim) + (indices,), spec)


def along(shape: Any, indices: Any, axis: int) -> tuple[Any, ...]:
    """Return the index that selects what ``take_along_axis`` takes."""
    grids = []
    for k, n in enumerate(indices.shape):
        line = [1] * len(shape)
        line[k] = n
        grids.append(indices if k == axis else index_array(np.arange(n).reshape(line), indices))
    return tuple(grids)


def _of_take_along_axis(g: Any, x: Any, indices: Any, axis: int | None = -1, **_: Any) -> Any:
    if axis is None:
        return _of_take(g, x, indices)
    return scatter(g, along(x.shape, indices, axis % x.ndim), Spec(x))


def _choose(at: Any, choices: Any, **options: Any) -> Any:
    if options:
        raise GradientError("choose: has a derivative without out= and mode= only")
    at = constants(at)
    return dp.select([at == number for number in range(len(choices))], list(choices))


def _put(x: Any, indices: Any, values: Any, mode: str = "raise") -> None:
    if mode != "raise":
        raise GradientError(f"put: mode={mode!r} has no derivative; clip or wrap the indices first")
    indices = dp.reshape(dp.asarray(constants(indices)), (-1,))
    values = dp.reshape(values, (-1,)) if is_array(values) else values
    if is_array(values) and values.size != indices.size:
        raise GradientError("put: values must be as many as indices here; repeat them with dp.tile")
    _write_flat(x, indices, values)


def _write_flat(x: Traced, indices: Any, values: Any) -> None:
    def result(old: Traced) -> Any:
        flat = _assigned(dp.reshape(old, (-1,)).copy(), indices, values)
        return dp.reshape(flat, old.shape)

    write(x, result)


def _put_along_axis(x: Any, indices: Any, values: Any, axis: Any, mode: str = "raise") -> None:
    if mode != "raise" or axis is None:
        raise GradientError("put_along_axis: has a derivative with an axis and mode='raise' only")
    indices = constants(indices)
    key = along(x.shape, indices, axis % x.ndim)
    write(x, lambda old: _assigned(old, key, values))


def _place(x: Any, mask: Any, values: Any) -> None:
    at = dp.nonzero(dp.reshape(constants(mask), (-1,)))[0]
    values = dp.reshape(dp.asarray(values), (-1,))
    repeats = -(-at.size // max(values.size, 1))
    values = dp.tile(values, repeats)[: at.size] if values.size != at.size else values
    _write_flat(x, at, values)


def _putmask(x: Any, mask: Any, values: Any) -> None:
    mask = constants(mask)
    if is_array(values) and values.shape != x.shape and values.size != 1:
        raise GradientError("putmask: values must have the shape of x here")
    write(x, lambda old: dp.where(mask, values, old))


def _copyto(x: Any, values: Any, casting: str = "same_kind", where: Any = True) -> None:
    if where is True:
        setitem(x, Ellipsis, values)
    else:
        where = constants(where)
        write(x, lambda old: dp.where(where, values, old))


def _fill_diagonal(x: Any, value: Any, wrap: bool = False) -> None:
    if x.ndim != 2 or wrap:
        raise GradientError("fill_diagonal: has a derivative for matrices without wrap= only")
    at = index_array(np.arange(min(x.shape)), x)
    write(x, lambda old: _assigned(old, (at, at), value))


def _add_at(x: Any, key: Any, values: Any) -> None:
    key = plain_key(key)

    def result(old: Traced) -> Any:
        shape = constants(old)[key].shape
        g = dp.broadcast_to(values, shape) if is_array(values) else dp.full(shape, values)
        return old + scatter(dp.astype(g, old.dtype), key, Spec(old))

    write(x, result)


def _insert(x: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    if axis is None:
        x, axis = dp.reshape(x, (-1,)), 0
    axis %= x.ndim
    at = _host(obj)
    values = values if is_array(values) else dp.asarray(values, sycl_queue=x.queue)
    if isinstance(at, int | np.integer):  # NumPy's rule for a single index
        values = dp.reshape(values, (1,) * (x.ndim - values.ndim) + values.shape)
        values = dp.moveaxis(values, 0, axis)
        at = [at] * values.shape[axis]
    # Negative numbers mark the inserted values, in the order in which they are given.
    order = np.insert(np.arange(x.shape[axis]), at, -1 - np.arange(len(at)))
    positions = np.where(order < 0, x.shape[axis] - 1 - order, order)
    shape = (*x.shape[:axis], len(at), *x.shape[axis + 1 :])
    both = dp.concatenate([x, dp.broadcast_to(dp.astype(values, x.dtype), shape)], axis=axis)
    return dp.take(both, index_array(positions, x), axis=axis)


def _host(obj: Any) -> Any:
    """Return an index on the host."""
    obj = constants(obj)
    return obj.asnumpy() if isinstance(obj, ndarray) else obj


def _enter() -> None:
    ROWS_BY_NAME["getitem"] = GetItem("x[key]", item_of, _of_getitem)
    ROWS_BY_NAME["setitem"] = SetItem("x[key] = value", _assigned)
    ROWS_BY_NAME["additem"] = AddItem("x[key] += value", _added_to)
    ROWS_BY_NAME["scatter"] = Linear("scatter", _scattered_or_recorded, _of_scatter)
    register("take", Linear("take", dp.take, _of_take))
    register("take_along_axis", Linear("take_along_axis", dp.take_along_axis, _of_take_along_axis))
    compose(globals(), "choose insert")
    compose(globals(), "put put_along_axis place putmask copyto fill_diagonal", WRITING)
    WRITING[dp.add.at] = _add_at
    WRITING[ndarray.__setitem__] = setitem


def _scattered_or_recorded(g: Any, key: Any, spec: Any) -> Any:
    return scatter(g, key, spec) if type(g) is Traced else _scattered(g, key, spec)


def _of_scatter(g: Any, x: Any, key: Any, spec: Any) -> Any:
    return g[key]


_enter()
