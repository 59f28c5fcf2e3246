"""Normalization."""

from __future__ import annotations

from functools import reduce
from typing import Any

from dparray.exceptions import OnnxError
from dparray.onnx.operator_table import Call, checked_axis, row
from dparray.onnx.rows.elementwise import scalar


def per_channel(x: Any, rank: int) -> Any:
    """Return a per-channel value in a shape that broadcasts with ``(N, C, *space)``."""
    return x.reshape((1, -1) + (1,) * (rank - 2))


@row("BatchNormalization")
def _batch(call: Call, x: Any, scale: Any, shift: Any, mean: Any, variance: Any) -> Any:
    xp, epsilon = call.xp, call.get("epsilon", 1e-5)
    if not call.get("training_mode", 0):
        factor = xp.divide(scale, xp.sqrt(xp.add(variance, scalar(variance, epsilon))))
        shift = xp.subtract(shift, xp.multiply(mean, factor))
        result = xp.add(xp.multiply(x, per_channel(factor, x.ndim)), per_channel(shift, x.ndim))
        return result.astype(x.dtype)
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    now, spread = xp.mean(x, axis=axes), xp.var(x, axis=axes)
    factor = xp.divide(scale, xp.sqrt(xp.add(spread, scalar(spread, epsilon))))
    moved = xp.multiply(xp.subtract(x, per_channel(now, x.ndim)), per_channel(factor, x.ndim))
    kept = call.get("momentum", 0.9)
    running = [
        xp.add(xp.multiply(old, scalar(old, kept)), xp.multiply(new, scalar(new, 1 - kept)))
        for old, new in ((mean, now), (variance, spread))
    ]
    return (xp.add(moved, per_channel(shift, x.ndim)), *running)


def normalized(call: Call, x: Any, axes: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Return ``x`` normalized over axes, its mean, and the reciprocal of its deviation."""
    xp = call.xp
    mean = xp.mean(x, axis=axes, keepdims=True)
    centered = xp.subtract(x, mean)
    variance = xp.mean(xp.multiply(centered, centered), axis=axes, keepdims=True)
    inverse = xp.divide(
        scalar(x, 1), xp.sqrt(xp.add(variance, scalar(x, call.get("epsilon", 1e-5))))
    )
    return xp.multiply(centered, inverse), mean, inverse


@row("InstanceNormalization")
def _instance(call: Call, x: Any, scale: Any, shift: Any) -> Any:
    result = normalized(call, x, tuple(range(2, x.ndim)))[0]
    result = call.xp.multiply(result, per_channel(scale, x.ndim))
    return call.xp.add(result, per_channel(shift, x.ndim))


@row("LayerNormalization")
def _layer(call: Call, x: Any, scale: Any, shift: Any = None) -> Any:
    axes = tuple(range(checked_axis(call.get("axis", -1), x.ndim), x.ndim))
    wide = x.astype("float32") if x.dtype.itemsize < 4 else x
    result, mean, inverse = normalized(call, wide, axes)
    result = call.xp.multiply(result.astype(x.dtype), scale)
    result = result if shift is None else call.xp.add(result, shift)
    return (result, mean, inverse)[: max(1, call.outputs)]


@row("LpNormalization")
def _lp(call: Call, x: Any) -> Any:
    xp, axis, order = call.xp, call.get("axis", -1), call.get("p", 2)
    if order == 1:
        length = xp.sum(xp.abs(x), axis=axis, keepdims=True)
    else:
        length = xp.sqrt(xp.sum(xp.multiply(x, x), axis=axis, keepdims=True))
    is_zero = xp.equal(length, scalar(x, 0))
    result = xp.divide(x, xp.where(is_zero, scalar(x, 1), length))
    return xp.where(is_zero, scalar(x, 0), result)


@row("LRN")
def _local_response(call: Call, x: Any) -> Any:
    xp, size, channels = call.xp, int(call["size"]), x.shape[1]
    if not 0 < size <= 2 * channels + 1:
        raise OnnxError(f"size={size} must be positive and at most {2 * channels + 1}")
    widths = ((0, 0), ((size - 1) // 2, size // 2), *((0, 0),) * (x.ndim - 2))
    squares = xp.pad(xp.multiply(x, x), widths)
    total = reduce(xp.add, (squares[:, position : position + channels] for position in range(size)))
    base = xp.add(
        xp.multiply(total, scalar(x, call.get("alpha", 1e-4) / size)),
        scalar(x, call.get("bias", 1.0)),
    )
    return xp.divide(x, xp.power(base, scalar(x, call.get("beta", 0.75))))
