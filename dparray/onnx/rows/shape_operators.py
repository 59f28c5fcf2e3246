"""Shapes, slices and indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dparray.exceptions import OnnxError
from dparray.onnx.operator_table import Call, checked_axis, module_of, row
from dparray.onnx.rows.elementwise import scalar
from dparray.onnx.rows.sequences import pieces


@row("Shape")
def _shape(call: Call, x: Any) -> Any:
    return np.asarray(x.shape[slice(call.get("start", 0), call.get("end"))], "int64")


@row("Size")
def _size(call: Call, x: Any) -> Any:
    return np.asarray(math.prod(x.shape), "int64")


@row("Reshape")
def _reshape(call: Call, x: Any, shape: Any = None) -> Any:
    sizes = call.ints(shape) if shape is not None else list(call["shape"])
    if not call.get("allowzero", 0):
        sizes = [x.shape[position] if size == 0 else size for position, size in enumerate(sizes)]
    if min(sizes, default=0) < -1:
        raise OnnxError(f"the shape {sizes} has a negative size; only one size may be -1")
    return x.reshape(tuple(sizes))


@row("Transpose")
def _transpose(call: Call, x: Any) -> Any:
    order = tuple(call.get("perm", range(x.ndim)[::-1]))
    if sorted(order) != list(range(x.ndim)):
        raise OnnxError(f"perm must be a permutation of {x.ndim} axes, not {list(order)}")
    return call.xp.transpose(x, order)


@row("Squeeze")
def _squeeze(call: Call, x: Any, axes: Any = None) -> Any:
    gone = call.axes(axes, x.ndim)
    if gone is None:
        gone = tuple(axis for axis, size in enumerate(x.shape) if size == 1)
    return x.reshape(tuple(size for axis, size in enumerate(x.shape) if axis not in gone))


@row("Unsqueeze")
def _unsqueeze(call: Call, x: Any, axes: Any = None) -> Any:
    given = call.ints(axes) if axes is not None else list(call["axes"])
    rank = x.ndim + len(given)
    new = {checked_axis(axis, rank) for axis in given}
    old = iter(x.shape)
    return x.reshape(tuple(1 if axis in new else next(old) for axis in range(rank)))


@row("Flatten")
def _flatten(call: Call, x: Any) -> Any:
    axis = checked_axis(call.get("axis", 1), x.ndim, is_boundary=True)
    return x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@row("Expand")
def _expand(call: Call, x: Any, shape: Any) -> Any:
    sizes = np.broadcast_shapes(x.shape, tuple(call.ints(shape)))
    call.check_size(sizes, x.dtype)
    return call.xp.broadcast_to(x, sizes)


@row("Tile")
def _tile(call: Call, x: Any, repeats: Any, along: Any = None) -> Any:
    if along is not None:  # opset 1: a number and an axis
        axis, number = call.ints(along)[0], call.ints(repeats)[0]
        counts = [number if a == axis else 1 for a in range(x.ndim)]
    else:
        counts = call.ints(repeats)
    call.check_size([s * c for s, c in zip(x.shape, counts, strict=True)], x.dtype)
    return call.xp.tile(x, tuple(counts))


@row("Concat")
def _concatenate(call: Call, *x: Any) -> Any:
    return call.xp.concatenate(x, axis=call.get("axis", 1))


@row("Split")
def _split(call: Call, x: Any, split: Any = None) -> Any:
    axis = checked_axis(call.get("axis", 0), x.ndim)
    sizes = call.ints(split) if split is not None else call.get("split")
    if sizes is None:
        count, size = call.outputs, x.shape[axis]
        if call.get("num_outputs", count) != count:
            raise OnnxError(f"num_outputs must be {count}, the number of outputs")
        each = -(-size // count)
        sizes = [max(0, min(each, size - position * each)) for position in range(count)]
    if sum(sizes) != x.shape[axis] or min(sizes, default=0) < 0 or len(sizes) != call.outputs:
        raise OnnxError(
            f"split must be {call.outputs} sizes with a sum of {x.shape[axis]}, not {list(sizes)}"
        )
    return tuple(pieces(x, axis, list(sizes)))


@row("Slice")
def _slice(
    call: Call, x: Any, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None
) -> Any:
    first = call.ints(starts) if starts is not None else call["starts"]
    stop = call.ints(ends) if ends is not None else call["ends"]
    along = call.ints(axes) if axes is not None else call.get("axes", range(len(first)))
    step = call.ints(steps) if steps is not None else [1] * len(first)
    index = [slice(None)] * x.ndim
    for axis, low, high, by in zip(along, first, stop, step, strict=True):
        size = x.shape[axis]
        index[checked_axis(axis, x.ndim)] = slice(
            low, None if by < 0 and high < -size else high, by
        )
    return x[tuple(index)]


@row("Pad")
def _pad(call: Call, x: Any, pads: Any = None, value: Any = None, axes: Any = None) -> Any:
    sizes = call.ints(pads) if pads is not None else call.get("pads", call.get("paddings"))
    given = call.ints(axes) if axes is not None else range(x.ndim)
    along = [checked_axis(axis, x.ndim) for axis in given]
    widths, half = [(0, 0)] * x.ndim, len(sizes) // 2
    for position, axis in enumerate(along):
        widths[axis] = (sizes[position], sizes[position + half])
    call.check_size([n + sum(width) for n, width in zip(x.shape, widths, strict=True)], x.dtype)
    x, widths = cropped(x, widths)
    mode = call.get("mode", "constant")
    if mode != "constant":
        return call.xp.pad(x, tuple(widths), mode=mode)
    fill = [] if value is None else call.host(value).reshape(-1)
    constant = fill[0] if len(fill) else scalar(x, call.get("value", 0))
    return call.xp.pad(x, tuple(widths), constant_values=constant)


def cropped(x: Any, widths: list[tuple[int, int]]) -> tuple[Any, list[tuple[int, int]]]:
    """Return an array without the elements that negative padding removes, and the other padding."""
    if min(map(min, widths), default=0) >= 0:
        return x, widths
    index = [slice(max(0, -a), n - max(0, -b)) for (a, b), n in zip(widths, x.shape, strict=True)]
    return x[tuple(index)], [(max(0, low), max(0, high)) for low, high in widths]


@row("CenterCropPad")
def _center(call: Call, x: Any, shape: Any) -> Any:
    along = call.axes(None, x.ndim, range(x.ndim)) or ()
    widths, index = [(0, 0)] * x.ndim, [slice(None)] * x.ndim
    for axis, wanted in zip(along, call.ints(shape), strict=True):
        more = wanted - x.shape[axis]
        if more > 0:
            widths[axis] = (more // 2, more - more // 2)
        elif more < 0:
            index[axis] = slice(-more // 2, -more // 2 + wanted)
    call.check_size([n + sum(width) for n, width in zip(x.shape, widths, strict=True)], x.dtype)
    return call.xp.pad(x[tuple(index)], tuple(widths))


# -- values derived from sizes ---------------------------------------------------------------------


@row("Constant")
def _constant(call: Call) -> Any:
    dtypes: dict[str, Any] = {
        "value_float": "float32", "value_floats": "float32", "value_int": "int64",
        "value_ints": "int64", "value_string": object, "value_strings": object,
    }  # fmt: skip
    for name, value in call.node.attributes.items():
        return np.asarray(value) if name not in dtypes else np.asarray(value, dtypes[name])
    raise OnnxError("a constant has no value")


@row("ConstantOfShape")
def _constant_of_shape(call: Call, shape: Any) -> Any:
    value = call.get("value")
    value = np.zeros(1, "float32") if value is None else value.reshape(-1)
    sizes = tuple(call.ints(shape))
    call.check_size(sizes, value.dtype)
    return np.full(sizes, value[0], value.dtype)


@row("Range")
def _range(call: Call, start: Any, limit: Any, step: Any) -> Any:
    first, last, by = (call.host(x).reshape(-1)[0] for x in (start, limit, step))
    if by == 0:
        raise OnnxError("the step of a range is 0")
    count = max(0, math.ceil((float(last) - float(first)) / float(by)))
    call.check_size((count,), start.dtype)
    return np.arange(count).astype(start.dtype) * by + first


@row("EyeLike")
def _eye(call: Call, x: Any) -> Any:
    return call.xp.eye(x.shape[0], x.shape[1], k=call.get("k", 0), dtype=call.dtype(x))


@row("OneHot")
def _one_hot(call: Call, at: Any, depth: Any, values: Any) -> Any:
    size = call.ints(depth)[0]
    axis = checked_axis(call.get("axis", -1), at.ndim + 1)
    off, on = call.host(values)
    shape = [-1 if a == axis else 1 for a in range(at.ndim + 1)]
    call.check_size((*at.shape, size), values.dtype)
    at, xp = call.xp.expand_dims(at, axis), call.xp
    at = xp.where(xp.less(at, scalar(at, 0)), xp.add(at, scalar(at, size)), at)
    return xp.where(xp.equal(at, np.arange(size).astype(at.dtype).reshape(shape)), on, off)


@row("Trilu")
def _triangle(call: Call, x: Any, k: Any = None) -> Any:
    number = 0 if k is None else call.ints(k)[0]
    number = max(-x.shape[-2] - 1, min(number, x.shape[-1] + 1))
    return (call.xp.triu if call.get("upper", 1) else call.xp.tril)(x, number)


# -- elements by index -----------------------------------------------------------------------------


def _from_start(call: Call, at: Any, size: int) -> Any:
    """Return indices counted from the start; those from the end are negative."""
    if isinstance(at, np.ndarray):
        if at.size and not (-size <= at.min() and at.max() < size):
            raise OnnxError(f"positions {at.min()} to {at.max()} are out of range for size {size}")
        return np.where(at < 0, at + size, at)
    xp = call.xp
    return xp.where(xp.less(at, scalar(at, 0)), xp.add(at, scalar(at, size)), at)


@row("Gather")
def _gather(call: Call, x: Any, at: Any) -> Any:
    axis = checked_axis(call.get("axis", 0), x.ndim)
    at = _from_start(call, at, x.shape[axis])
    if isinstance(at, np.ndarray) and at.ndim == 0:
        result = x[(slice(None),) * axis + (int(at),)]
        return np.asarray(result) if isinstance(x, np.ndarray) else result
    return call.xp.take(x, at, axis=axis)


@row("GatherElements")
def _gather_elements(call: Call, x: Any, at: Any) -> Any:
    axis = checked_axis(call.get("axis", 0), x.ndim)
    at = _from_start(call, at, x.shape[axis])
    shape = tuple(
        n if a == axis else min(n, m)
        for a, (n, m) in enumerate(zip(x.shape, at.shape, strict=True))
    )
    if shape != x.shape:
        x = x[tuple(map(slice, shape))]
    return call.xp.take_along_axis(x, at, axis=axis)


@row("GatherND")
def _gather_nd(call: Call, x: Any, at: Any) -> Any:
    batch, depth = call.get("batch_dims", 0), at.shape[-1]
    if not 0 <= batch < min(x.ndim, at.ndim) or batch + depth > x.ndim:
        raise OnnxError(
            f"batch_dims={batch} and indices of {depth} axes do not match {x.ndim} dimensions"
        )
    before = tuple(
        np.arange(size).reshape([-1 if a == axis else 1 for a in range(at.ndim - 1)])
        for axis, size in enumerate(at.shape[:batch])
    )
    return call.xp.call(_indexed, x, at, before, depth)


def _indexed(x: Any, at: Any, before: Any, depth: int) -> Any:
    where = (*before, *(at[..., number] for number in range(depth)))
    return x[where]


def _scattered(x: Any, where: Any, updates: Any, reduction: str) -> Any:
    """Return a copy of an array with other values at indices."""
    xp = module_of(x)
    result = xp.array(x, copy=True)
    if reduction == "none":
        result[where] = updates
        return result
    functions = {"add": xp.add, "mul": xp.multiply, "max": xp.maximum, "min": xp.minimum}
    functions[reduction].at(result, where, updates)
    return result


@row("ScatterElements", "Scatter")
def _scatter_elements(call: Call, x: Any, at: Any, updates: Any) -> Any:
    axis = checked_axis(call.get("axis", 0), x.ndim)
    at = _from_start(call, at, x.shape[axis])
    return call.xp.call(_scatter_along, x, at, updates, axis, call.get("reduction", "none"))


def _scatter_along(x: Any, at: Any, updates: Any, axis: int, reduction: str) -> Any:
    xp = module_of(x)
    where = [
        at if a == axis else xp.broadcast_to(_counted(x, size, a, at.ndim), at.shape)
        for a, size in enumerate(at.shape)
    ]
    return _scattered(x, tuple(where), updates, reduction)


def _counted(x: Any, size: int, axis: int, rank: int) -> Any:
    """Return the indices along one of ``rank`` axes, with the placement of ``x``."""
    place = {} if isinstance(x, np.ndarray) else {"device": x.queue}
    positions = module_of(x).arange(size, **place)
    return module_of(x).reshape(positions, [-1 if a == axis else 1 for a in range(rank)])


@row("ScatterND")
def _scatter_nd(call: Call, x: Any, at: Any, updates: Any) -> Any:
    return call.xp.call(_scatter_at, x, at, updates, call.get("reduction", "none"))


def _scatter_at(x: Any, at: Any, updates: Any, reduction: str) -> Any:
    where = tuple(at[..., number] for number in range(at.shape[-1]))
    return _scattered(x, where, updates, reduction)


@row("TensorScatter")
def _tensor_scatter(call: Call, x: Any, updates: Any, first: Any = None) -> Any:
    axis = checked_axis(call.get("axis", -2), x.ndim)
    start = np.zeros(x.shape[0], "int64") if first is None else call.host(first)
    rows = start.reshape(-1, 1) + np.arange(updates.shape[axis]).reshape(1, -1)
    if call.get("mode", "linear") == "circular":
        rows = rows % x.shape[axis]
    order = [0, axis, *(a for a in range(1, x.ndim) if a != axis)]
    back = [order.index(a) for a in range(x.ndim)]
    batch = np.broadcast_to(np.arange(x.shape[0]).reshape(-1, 1), rows.shape)
    xp = call.xp
    where = (np.ascontiguousarray(batch), rows)
    made = xp.call(_scattered, xp.transpose(x, order), where, xp.transpose(updates, order), "none")
    return xp.transpose(made, back)


@row("ReverseSequence")
def _reverse(call: Call, x: Any, lengths: Any) -> Any:
    time, batch = call.get("time_axis", 0), call.get("batch_axis", 1)
    order = [time, batch, *(a for a in range(x.ndim) if a not in (time, batch))]
    ends = call.host(lengths).reshape(1, -1)
    steps = np.arange(x.shape[time]).reshape(-1, 1)
    source = np.where(steps < ends, ends - 1 - steps, steps)
    columns = np.ascontiguousarray(np.broadcast_to(np.arange(x.shape[batch]), source.shape))
    result = call.xp.transpose(x, order)[source, columns]
    return call.xp.transpose(result, [order.index(a) for a in range(x.ndim)])


@row("DepthToSpace", "SpaceToDepth")
def _blocks(call: Call, x: Any) -> Any:
    b, (n, c, h, w) = call["blocksize"], x.shape
    if b < 1:
        raise OnnxError(f"blocksize must be positive, not {b}")
    is_crd = call.get("mode", "DCR") == "CRD"
    if call.node.operator == "SpaceToDepth":
        order = (0, 1, 3, 5, 2, 4) if is_crd else (0, 3, 5, 1, 2, 4)
        result = call.xp.transpose(x.reshape((n, c, h // b, b, w // b, b)), order)
        return result.reshape((n, c * b * b, h // b, w // b))
    shape = (n, c // b // b, b, b, h, w) if is_crd else (n, b, b, c // b // b, h, w)
    order = (0, 1, 4, 2, 5, 3) if is_crd else (0, 3, 4, 1, 5, 2)
    result = call.xp.transpose(x.reshape(shape), order)
    return result.reshape((n, c // b // b, h * b, w * b))


# -- sorting and selection, with sizes that depend on values ---------------------------------------


@row("TopK")
def _top(call: Call, x: Any, k: Any = None) -> Any:
    count = call.ints(k)[0] if k is not None else call["k"]
    axis, xp = checked_axis(call.get("axis", -1), x.ndim), call.xp
    if not 0 <= count <= x.shape[axis]:
        raise OnnxError(f"k={count} is out of range for an axis of size {x.shape[axis]}")
    if call.get("largest", 1):  # stable from the end, so that equal elements keep their order
        flipped = xp.argsort(xp.flip(x, axis=axis), axis=axis, kind="stable").astype("int64")
        order = xp.flip(xp.subtract(np.int64(x.shape[axis] - 1), flipped), axis=axis)
    else:
        order = xp.argsort(x, axis=axis, kind="stable").astype("int64")
    at = order[(slice(None),) * axis + (slice(0, count),)]
    return xp.take_along_axis(x, at, axis=axis), at


@row("NonZero")
def _nonzero(call: Call, x: Any) -> Any:
    host = np.atleast_1d(call.host(x))
    return np.stack(np.nonzero(host)).astype("int64")[: x.ndim]  # no row for a scalar


@row("Compress")
def _compress(call: Call, x: Any, condition: Any) -> Any:
    axis = call.get("axis")
    x, axis = (x.reshape((-1,)), 0) if axis is None else (x, checked_axis(axis, x.ndim))
    at = np.flatnonzero(call.host(condition))
    return call.xp.take(x, at, axis=axis)


@row("Unique")
def _unique(call: Call, x: Any) -> Any:
    axis = call.get("axis")
    values, first, inverse, counts = np.unique(
        call.host(x), return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    if not call.get("sorted", 1):
        order = np.argsort(first)
        inverse = np.argsort(order)[inverse.reshape(-1)]
        values, first, counts = np.take(values, order, axis=axis or 0), first[order], counts[order]
    return values, *(each.reshape(-1).astype("int64") for each in (first, inverse, counts))
