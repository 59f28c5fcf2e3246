"""Reductions, cumulative sums and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dparray.onnx.operator_table import Call, checked_axis, row
from dparray.onnx.rows.elementwise import scalar

Reduce = Callable[[Any, Any, Any, bool], Any]  # xp, x, axes, keepdims


def _reduction(name: str, compute: Reduce, is_identity: bool = False) -> None:
    """Register ``Reduce<name>``; without axes it is the identity, or ``compute``."""

    def reduce(call: Call, x: Any, axes: Any = None) -> Any:
        over = call.axes(axes, x.ndim)
        keep = bool(call.get("keepdims", 1))
        if not over:
            if call.get("noop_with_empty_axes", 0):
                return x if is_identity else compute(call.xp, x, (), True)
            over = None
        result = compute(call.xp, x, over, keep)
        return result if result.dtype == x.dtype else result.astype(x.dtype)

    row("Reduce" + name)(reduce)


def _total(xp: Any, x: Any, axes: Any, keep: bool) -> Any:
    return x if axes == () else xp.sum(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _largest(name: str) -> Reduce:
    def compute(xp: Any, x: Any, axes: Any, keep: bool) -> Any:
        if x.dtype == bool:
            return (xp.any if name == "max" else xp.all)(x, axis=axes, keepdims=keep)
        if x.size:
            return getattr(xp, name)(x, axis=axes, keepdims=keep)
        if x.dtype.kind in "iu":
            empty = getattr(np.iinfo(x.dtype), "min" if name == "max" else "max")
        else:
            empty = -np.inf if name == "max" else np.inf
        return getattr(xp, name)(x, axis=axes, keepdims=keep, initial=empty)

    return compute


def _log_sum_exp(xp: Any, x: Any, axes: Any, keep: bool) -> Any:
    if axes == ():
        return x
    if not x.size:
        return xp.log(_total(xp, x, axes, keep))
    top = xp.max(x, axis=axes, keepdims=True)
    top = xp.where(xp.isinf(top), scalar(x, 0), top)
    result = xp.add(xp.log(_total(xp, xp.exp(xp.subtract(x, top)), axes, True)), top)
    return result if keep else xp.reshape(result, _total(xp, x, axes, False).shape)


_reduction("Sum", _total, True)
_reduction("Mean", lambda xp, x, a, k: xp.mean(x, axis=a, keepdims=k, dtype=x.dtype), True)
_reduction("Prod", lambda xp, x, a, k: xp.prod(x, axis=a, keepdims=k, dtype=x.dtype), True)
_reduction("Max", _largest("max"), True)
_reduction("Min", _largest("min"), True)
_reduction("L1", lambda xp, x, a, k: _total(xp, xp.abs(x), a, k))
_reduction("L2", lambda xp, x, a, k: xp.sqrt(_total(xp, xp.multiply(x, x), a, k)))
_reduction("SumSquare", lambda xp, x, a, k: _total(xp, xp.multiply(x, x), a, k))
_reduction("LogSum", lambda xp, x, a, k: xp.log(_total(xp, x, a, k)))
_reduction("LogSumExp", _log_sum_exp)


@row("ArgMax", "ArgMin")
def _position(call: Call, x: Any) -> Any:
    axis, keep = checked_axis(call.get("axis", 0), x.ndim), bool(call.get("keepdims", 1))
    find = call.xp.argmax if call.node.operator == "ArgMax" else call.xp.argmin
    if not call.get("select_last_index", 0):
        return find(x, axis=axis, keepdims=keep).astype("int64")
    from_end = find(call.xp.flip(x, axis=axis), axis=axis, keepdims=keep).astype("int64")
    return call.xp.subtract(np.int64(x.shape[axis] - 1), from_end)


@row("CumSum", "CumProd")
def _cumulative(call: Call, x: Any, axis: Any) -> Any:
    along, xp = checked_axis(call.ints(axis)[0], x.ndim), call.xp
    is_sum = call.node.operator == "CumSum"
    if call.get("reverse", 0):
        x = xp.flip(x, axis=along)
    if call.get("exclusive", 0) and x.shape[along]:
        shape = tuple(1 if a == along else size for a, size in enumerate(x.shape))
        first = (xp.zeros if is_sum else xp.ones)(shape, dtype=x.dtype)
        rest = x[(slice(None),) * along + (slice(0, -1),)]
        x = xp.concatenate((first, rest), axis=along)
    x = (xp.cumsum if is_sum else xp.cumprod)(x, axis=along, dtype=x.dtype)
    return xp.flip(x, axis=along) if call.get("reverse", 0) else x


@row("Softmax", "LogSoftmax", "Hardmax")
def softmax(call: Call, x: Any) -> Any:
    """Return softmax over one axis; before opset 13, over all axes from one on."""
    xp, shape = call.xp, x.shape
    if not x.size:
        return x
    axis = checked_axis(call.get("axis", -1 if call.opset >= 13 else 1), x.ndim, call.opset < 13)
    if call.opset < 13:
        x, axis = xp.reshape(x, (math.prod(shape[:axis]), math.prod(shape[axis:]))), 1
    return xp.reshape(softmax_along(call, x, axis), shape)


def softmax_along(call: Call, x: Any, axis: int) -> Any:
    """Return softmax, its logarithm, or a one-hot maximum, as the operator specifies."""
    xp, name = call.xp, call.node.operator
    if name == "Hardmax":
        top = xp.expand_dims(xp.argmax(x, axis=axis).astype("int64"), axis)
        places = np.arange(x.shape[axis]).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
        return xp.equal(top, places).astype(x.dtype)
    shifted = xp.subtract(x, xp.max(x, axis=axis, keepdims=True))
    powers = xp.exp(shifted)
    total = xp.sum(powers, axis=axis, keepdims=True)
    if name == "LogSoftmax":
        return xp.subtract(shifted, xp.log(total))
    return xp.divide(powers, total)
