"""Convolution and pooling.

Images are stored channels-last: an operator transposes its input to that order and its result back.
These transpositions are views, and pairs of them cancel.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from dparray._array.operands import dispatch_override
from dparray.exceptions import OnnxError
from dparray.onnx import functions as dp
from dparray.onnx.call_recorder import is_differentiated
from dparray.onnx.operator_table import Call, is_traced, row
from dparray.onnx.rows.elementwise import scalar
from dparray.onnx.rows.shape_operators import cropped
from dparray.tilelang.kernel_text import VECTOR

Pairs = list[tuple[int, int]]

#: The most elements of a window; pooling adds up one view for each.
MAX_WINDOW = 1 << 20


def channels_last(x: Any) -> Any:
    """Return ``(N, C, *space)`` as ``(N, *space, C)``."""
    return x.transpose((0, *range(2, x.ndim), 1))


def channels_first(x: Any) -> Any:
    """Return ``(N, *space, C)`` as ``(N, C, *space)``."""
    return x.transpose((0, x.ndim - 1, *range(1, x.ndim - 1)))


class Window:
    """The window of a node: its sizes, strides, dilation and padding."""

    def __init__(self, call: Call, space: Any, sizes: Any) -> None:
        count = len(space)
        self.space, self.sizes = tuple(space), tuple(map(int, sizes))
        self.steps = tuple(call.get("strides", [1] * count))
        self.apart = tuple(call.get("dilations", [1] * count))
        named = {"kernel_shape": self.sizes, "strides": self.steps, "dilations": self.apart}
        for name, values in named.items():
            if len(values) != count or min(values, default=1) < 1:
                raise OnnxError(f"{name} must be {count} positive integers, not {list(values)}")
        if tuple(call.get("kernel_shape") or self.sizes) != self.sizes:
            raise OnnxError(
                f"kernel_shape={call['kernel_shape']} does not match filters of {list(self.sizes)}"
            )
        self.reach = tuple(d * (k - 1) + 1 for d, k in zip(self.apart, self.sizes, strict=True))
        self.pads = self._pads(call)
        padded = [size + sum(pads) for size, pads in zip(space, self.pads, strict=True)]
        call.check_size(padded, "float32")
        if math.prod(self.sizes) > MAX_WINDOW:
            raise OnnxError(f"a window of {list(self.sizes)} has more than {MAX_WINDOW:,} elements")

    def _pads(self, call: Call) -> Pairs:
        mode, count = call.get("auto_pad", "NOTSET"), len(self.space)
        if mode == "NOTSET":
            pads = call.get("pads", [0] * 2 * count)
            if len(pads) != 2 * count:
                raise OnnxError(f"pads must be {2 * count} integers, not {list(pads)}")
            return [(pads[axis], pads[axis + count]) for axis in range(count)]
        if mode == "VALID":
            return [(0, 0)] * count
        total = [
            max(0, (-(-size // step) - 1) * step + reach - size)
            for size, step, reach in zip(self.space, self.steps, self.reach, strict=True)
        ]
        return halves(total, mode)

    def counts(self, ceil: bool = False) -> tuple[int, ...]:
        """Return the sizes of the result."""
        return self.counts_of(self.space, self.pads, ceil)

    def counts_of(self, space: Any, pads: Pairs, ceil: bool = False) -> tuple[int, ...]:
        """Return the sizes of the result for another image and padding."""
        result = []
        for size, step, reach, (low, high) in zip(space, self.steps, self.reach, pads, strict=True):
            room = size + low + high - reach
            count = (-(-room // step) if ceil else room // step) + 1
            if ceil and (count - 1) * step >= size + low:
                count -= 1  # a window must begin in the image or in the padding before it
            if count < 0:
                raise OnnxError(f"a window of {reach} is larger than {size} with {low} + {high}")
            result.append(count)
        return tuple(result)

    def widths(self, counts: Any) -> Pairs:
        """Return the padding that is read for results of these sizes."""
        return [
            (low, max(high, (count - 1) * step + reach - size - low))
            for size, step, reach, (low, high), count in zip(
                self.space, self.steps, self.reach, self.pads, counts, strict=True
            )
        ]

    def views(self, x: Any, counts: Any) -> Any:
        """Iterate over views of a padded ``(N, *space, C)``, one for each window position."""
        for place in np.ndindex(*self.sizes):
            starts = [apart * at for apart, at in zip(self.apart, place, strict=True)]
            inside = (
                slice(start, start + step * (count - 1) + 1, step)
                for start, step, count in zip(starts, self.steps, counts, strict=True)
            )
            index = (slice(None), *inside)
            yield x[index]


def halves(total: Any, mode: str) -> Pairs:
    """Return the padding before and after; an odd total is larger at the end, or at the start."""
    if mode == "SAME_UPPER":
        return [(each // 2, each - each // 2) for each in total]
    return [(each - each // 2, each // 2) for each in total]


#: Convolutions of one group with at most this many multiplications are one matrix product, of the
#: concatenated window views with the filters. It needs no kernel, and small products are fast.
MAX_GATHERED = 1 << 19


def convolve(
    x: Any, filters: Any, bias: Any, window: Window, pads: Pairs, counts: Any, made: int,
    groups: int,
) -> Any:  # fmt: skip
    """Convolve ``(N, *space, C)`` with filters as `arranged`, `packed` or `depthwise` returns them.

    The result has ``made`` channels; packed filters and their bias may have more.
    """
    count = x.ndim - 2
    taps = math.prod(window.sizes)
    products = taps * x.shape[0] * math.prod(counts) * x.shape[-1] * filters.shape[-1]
    if filters.ndim != x.ndim:
        y = dp.tilelang.layers.conv_packed(x, filters, window.steps, window.apart, tuple(pads))
    elif groups == 1 and products <= MAX_GATHERED:
        parts = _gathered(_padded(x, pads, 0), window, counts)
        flat = dp.reshape(parts, (x.shape[0] * math.prod(counts), taps * x.shape[-1]))
        y = dp.matmul(flat, dp.reshape(filters, (taps * x.shape[-1], filters.shape[-1])))
        y = dp.reshape(y, (x.shape[0], *counts, filters.shape[-1]))
    elif count <= 3:
        borders = tuple([(low, high) for low, high in pads])
        y = dp.tilelang.layers.convolved(
            x, filters, tuple(window.steps), tuple(window.apart), borders, groups
        )
    else:
        raise OnnxError(f"a convolution over {count} dimensions; one to three are supported")
    y = y if bias is None else dp.add(y, bias)
    return y if y.shape[-1] == made else y[..., :made]


def _by_products(x: Any, filters: Any, bias: Any, window: Window, pads: Pairs, groups: int) -> Any:
    """Convolve ``(N, *space, C)`` with filters ``(F, C / groups, *window)`` by matrix products."""
    counts = window.counts_of(x.shape[1:-1], pads)
    x, order = _padded(x, pads, 0), (*range(2, filters.ndim), 1, 0)
    inner, outer = x.shape[-1] // groups, filters.shape[0] // groups
    parts = []
    for group in range(groups):
        own = x[..., group * inner : (group + 1) * inner]
        columns = _joined(tuple(window.views(own, counts)))
        weights = dp.permute_dims(filters[group * outer : (group + 1) * outer], order)
        parts.append(dp.matmul(columns, dp.reshape(weights, (-1, outer))))
    y = parts[0] if groups == 1 else _joined(tuple(parts))
    return y if bias is None else dp.add(y, bias)


def _joined(arrays: tuple[Any, ...]) -> Any:
    """Join arrays, some of which may be differentiated, along the last axis."""
    taken = dispatch_override(dp.concatenate, (arrays,), axis=-1)
    return dp.concatenate(arrays, axis=-1) if taken is NotImplemented else taken


def _gathered(x: Any, window: Window, counts: Any) -> Any:
    """Concatenate the window views: a view for one part or for many."""
    taps, count = math.prod(window.sizes), x.ndim - 2
    if taps == 1:
        return next(window.views(x, counts))
    if taps <= 27:
        return dp.concatenate(tuple(window.views(x, counts)), axis=-1)
    axes = tuple(range(1, count + 1))
    views = dp.lib.stride_tricks.sliding_window_view(x, window.reach, axis=axes)
    every = (
        slice(None),
        *(slice(None, None, step) for step in window.steps),
        slice(None),
        *(slice(None, None, apart) for apart in window.apart),
    )
    order = (0, *axes, *range(count + 2, 2 * count + 2), count + 1)
    return dp.permute_dims(views[every], order)


def arranged(filters: Any) -> Any:
    """Return filters ``(F, C / groups, *window)`` as ``(*window, C / groups, F)``."""
    return np.ascontiguousarray(np.moveaxis(filters, (0, 1), (-1, -2)))


def depthwise(filters: Any) -> Any:
    """Return filters ``(F, 1, *window)`` as ``(*window, F)``."""
    return arranged(filters)[..., 0, :]


def packed(filters: Any) -> Any:
    """Return filters ``(F, C, *window)`` as ``(F / VECTOR, *window, C, VECTOR)``, with zeros."""
    if rest := -len(filters) % VECTOR:
        filters = np.pad(filters, ((0, rest), *((0, 0),) * (filters.ndim - 1)))
    groups = filters.reshape(-1, VECTOR, *filters.shape[1:])
    return np.ascontiguousarray(np.moveaxis(groups, (1, 2), (-1, -2)))


def _check_groups(x: Any, filters: Any, groups: int, channels: int) -> None:
    if filters.ndim != x.ndim or x.ndim < 3:
        raise OnnxError(f"filters of shape {list(filters.shape)} for an input of {list(x.shape)}")
    if groups < 1 or filters.shape[0] % groups or x.shape[1] != channels:
        shape = list(filters.shape)
        raise OnnxError(f"filters of {shape} in {groups} groups do not fit {x.shape[1]} channels")


@row("Conv", is_on_device=True, placed=1)
def conv(call: Call, x: Any, filters: Any, bias: Any = None) -> Any:
    """Return a convolution."""
    groups = call.get("group", 1)
    _check_groups(x, filters, groups, filters.shape[1] * groups)
    window = Window(call, x.shape[2:], filters.shape[2:])
    window.counts()
    return _convolved(call, x, filters, bias, window, window.pads, groups)


def _convolved(
    call: Call, x: Any, filters: Any, bias: Any, window: Window, pads: Pairs, groups: int
) -> Any:
    if x.dtype.name in ("float16", "bfloat16"):  # sums of products need float32's precision
        bias = None if bias is None else bias.astype("float32")
        result = _convolved(
            call, x.astype("float32"), filters.astype("float32"), bias, window, pads, groups
        )
        return result.astype(x.dtype)
    if is_differentiated(x) or is_differentiated(filters) or is_differentiated(bias):
        arguments = (channels_last(x), filters, bias, window, pads, groups)
        return channels_first(call.xp.call(_by_products, *arguments))
    host = call.host(filters)
    if x.dtype.kind in "iu" and bias is not None:
        bias = bias.astype(x.dtype)
    x = channels_last(x)
    x, around = cropped(x, [(0, 0), *pads, (0, 0)])
    pads = around[1:-1]
    counts = window.counts_of(x.shape[1:-1], pads)
    count = filters.shape[0]
    wide = -(-count // VECTOR) * VECTOR
    products = math.prod(counts) * x.shape[0] * host.size
    # The remainder of a vector takes longer than zero filters, of which there may be some.
    may_pack = wide == count or (count % VECTOR > 2 and wide <= 2 * count and not is_traced(bias))
    may_pack = may_pack and not call.run.model.traits.prefers_products
    if groups == 1 and x.ndim <= 5 and may_pack and products > MAX_GATHERED:
        order, key = packed, ("packed", call.device)
        if bias is not None and wide > count:
            few = bias
            bias = call.cached("bias", lambda: np.pad(few, (0, wide - count)), of=few)
    elif x.ndim <= 5 and x.shape[-1] == groups == count > 1:
        order, key = depthwise, ("filters", call.device)
    else:
        order, key = arranged, ("filters", call.device)
    values = getattr(filters, "value", filters)
    placed = call.cached(key, lambda: call.xp.place(order(host)), of=values)
    result = call.xp.call(convolve, x, placed, bias, window, pads, counts, count, groups)
    return channels_first(result)


@row("ConvTranspose", is_on_device=True, placed=1)
def _transposed(call: Call, x: Any, filters: Any, bias: Any = None) -> Any:
    groups = call.get("group", 1)
    _check_groups(x, filters, groups, filters.shape[0])
    window = Window(call, x.shape[2:], filters.shape[2:])
    space, mode = x.shape[2:], call.get("auto_pad", "NOTSET")
    extra = call.get("output_padding", [0] * len(space))
    whole = [
        step * (size - 1) + more + reach
        for step, size, more, reach in zip(window.steps, space, extra, window.reach, strict=True)
    ]
    if call.get("output_shape"):
        wanted = call["output_shape"][-len(space) :]
        call.check_size((x.shape[0], filters.shape[1] * groups, *wanted), x.dtype)
        pads = halves([n - m for n, m in zip(whole, wanted, strict=True)], mode)
    elif mode.startswith("SAME"):
        total = [max(0, n - s * d) for n, s, d in zip(whole, window.steps, space, strict=True)]
        pads = halves(total, mode)
    else:
        pads = window.pads
    call.check_size((x.shape[0], filters.shape[1] * groups, *whole), x.dtype)
    around = [
        (reach - 1 - low, reach - 1 - high + more)
        for reach, (low, high), more in zip(window.reach, pads, extra, strict=True)
    ]
    if is_differentiated(filters):
        turned = call.xp.call(_flipped, filters, groups, dp)
    else:
        host = call.host(filters)
        turned = call.cached(
            "turned",
            lambda: np.ascontiguousarray(_flipped(host, groups, np)),
            of=getattr(filters, "value", filters),
        )
    if any(step > 1 for step in window.steps):
        x = channels_first(call.xp.call(_spread, channels_last(x), window.steps))
    window.steps = (1,) * len(space)
    return _convolved(call, x, turned, bias, window, around, groups)


def _flipped(filters: Any, groups: int, xp: Any) -> Any:
    """Return filters ``(C, F / groups, *window)`` as ``(F, C / groups, *window)``, reversed."""
    result = xp.flip(filters, axis=tuple(range(2, filters.ndim)))
    result = xp.reshape(result, (groups, filters.shape[0] // groups, *filters.shape[1:]))
    result = xp.moveaxis(result, 1, 2)
    return xp.reshape(result, (-1, *result.shape[2:]))


def _spread(x: Any, steps: Any) -> Any:
    """Return ``(N, *space, C)`` with zeros between its elements."""
    space = [(size - 1) * step + 1 for size, step in zip(x.shape[1:-1], steps, strict=True)]
    result = dp.zeros_like(x, shape=(x.shape[0], *space, x.shape[-1]))
    every = (slice(None), *(slice(None, None, step) for step in steps))
    result[every] = x
    return result


# -- pooling ---------------------------------------------------------------------------------------


def _padded(x: Any, widths: Pairs, value: Any) -> Any:
    if not any(map(any, widths)):
        return x
    return dp.pad(x, ((0, 0), *widths, (0, 0)), constant_values=value)


@row("MaxPool", is_on_device=True)
def _max_pool(call: Call, x: Any) -> Any:
    window = Window(call, x.shape[2:], call["kernel_shape"])
    counts = window.counts(bool(call.get("ceil_mode", 0)))
    widths = window.widths(counts)
    low = scalar(x, np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf)
    if call.outputs > 1:
        places = _places(x.shape, widths, bool(call.get("storage_order", 0)))
        result, at = call.xp.call(
            _largest_places, channels_last(x), places, window, counts, widths, low
        )
        return channels_first(result), channels_first(at)
    return channels_first(call.xp.call(_largest, channels_last(x), window, counts, widths, low))


def _largest(x: Any, window: Window, counts: Any, widths: Pairs, low: Any) -> Any:
    return reduce(dp.maximum, window.views(_padded(x, widths, low), counts))


def _places(shape: Any, widths: Pairs, is_transposed: bool) -> Any:
    """Return the index of each element of ``(N, C, *space)``, channels-last and padded."""
    space = shape[2:]
    order = np.arange(math.prod(space))
    order = order.reshape(space[::-1]).T if is_transposed else order.reshape(space)
    images = np.arange(shape[0] * shape[1]).reshape(shape[0], *(1,) * len(space), shape[1])
    return np.pad(order, widths)[None, ..., None] + images * math.prod(space)


def _largest_places(
    x: Any, places: Any, window: Window, counts: Any, widths: Pairs, low: Any
) -> Any:
    best = at = None
    for values, numbers in zip(
        window.views(_padded(x, widths, low), counts), window.views(places, counts), strict=True
    ):
        if best is None or at is None:
            best, at = values, numbers
        else:
            at = dp.where(dp.greater(values, best), numbers, at)
            best = dp.maximum(best, values)
    return best, at


@row("AveragePool", "LpPool", is_on_device=True)
def _average_pool(call: Call, x: Any) -> Any:
    window = Window(call, x.shape[2:], call["kernel_shape"])
    counts = window.counts(bool(call.get("ceil_mode", 0)))
    widths = window.widths(counts)
    if call.node.operator == "LpPool":
        order = call.get("p", 2)
        result = call.xp.call(_norms, channels_last(x), window, counts, widths, float(order))
        return channels_first(result.astype(x.dtype))
    inside = np.ones(window.space)
    if call.get("count_include_pad", 0):
        inside = np.pad(inside, window.pads, constant_values=1)
        rest = [(0, high - own) for (_, high), (_, own) in zip(widths, window.pads, strict=True)]
        inside = np.pad(inside, rest)
    else:
        inside = np.pad(inside, widths)
    held = reduce(np.add, window.views(inside[None, ..., None], counts)).astype(x.dtype)
    divisor = held.reshape(-1)[0] if held.size and (held == held.reshape(-1)[0]).all() else held
    total = call.xp.call(_sums, channels_last(x), window, counts, widths)
    return channels_first(call.xp.divide(total, np.asarray(divisor)))


def _sums(x: Any, window: Window, counts: Any, widths: Pairs) -> Any:
    return reduce(dp.add, window.views(_padded(x, widths, scalar(x, 0)), counts))


def _norms(x: Any, window: Window, counts: Any, widths: Pairs, order: float) -> Any:
    powers = dp.power(dp.abs(x), scalar(x, order))
    return dp.power(_sums(powers, window, counts, widths), scalar(x, 1 / order))


@row("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", is_on_device=True)
def _global_pool(call: Call, x: Any) -> Any:
    xp, name = call.xp, call.node.operator
    x, axes = channels_last(x), tuple(range(1, x.ndim - 1))
    if name == "GlobalLpPool":
        order = float(call.get("p", 2))
        total = xp.sum(xp.power(xp.abs(x), scalar(x, order)), axis=axes, keepdims=True)
        return channels_first(xp.power(total, scalar(x, 1 / order)))
    reduced = xp.mean if name == "GlobalAveragePool" else xp.max
    return channels_first(reduced(x, axis=axes, keepdims=True))


@row("MaxUnpool")
def _unpool(call: Call, x: Any, at: Any, shape: Any = None) -> Any:
    window = Window(call, x.shape[2:], call["kernel_shape"])
    least = [
        (size - 1) * step + reach - low - high
        for size, step, reach, (low, high) in zip(
            x.shape[2:], window.steps, window.reach, window.pads, strict=True
        )
    ]
    wanted = call.ints(shape) if shape is not None else [*x.shape[:2], *least]
    call.check_size(wanted, x.dtype)
    # Indices count within the smallest result, which is the corner of a larger one.
    rows = np.unravel_index(call.host(at).reshape(-1), (*x.shape[:2], *least))
    result = np.zeros(wanted, x.dtype)
    result[rows] = call.host(x).reshape(-1)
    return result


@row("Col2Im")
def _col2im(call: Call, x: Any, image: Any, block: Any) -> Any:
    space, sizes = tuple(call.ints(image)), tuple(call.ints(block))
    window = Window(call, space, sizes)
    counts, widths = window.counts(), window.pads
    channels, rest = divmod(x.shape[1], math.prod(sizes))
    if rest:
        raise OnnxError(f"{x.shape[1]} rows are not made of blocks of {list(sizes)}")
    wide = [n + sum(width) for n, width in zip(space, widths, strict=True)]
    call.check_size((x.shape[0], channels, *wide), x.dtype)
    return call.xp.call(_added_up, x, window, counts, channels, tuple(wide))


def _added_up(x: Any, window: Window, counts: Any, channels: int, wide: Any) -> Any:
    xp, queue = (np, {}) if isinstance(x, np.ndarray) else (dp, {"device": x.queue})
    result = xp.zeros((x.shape[0], *wide, channels), dtype=x.dtype, **queue)
    parts = xp.reshape(x, (x.shape[0], channels, -1, *counts))
    for number, view in enumerate(window.views(result, counts)):
        view += channels_last(parts[:, :, number])
    inner = [slice(low, low + n) for n, (low, _) in zip(window.space, window.pads, strict=True)]
    index = (slice(None), *inner)
    return channels_first(result[index])
