"""Quantized operators."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from dparray.onnx.operator_table import Call, checked_axis, row
from dparray.onnx.rows.elementwise import narrow, scalar
from dparray.onnx.rows.products import check_product
from dparray.onnx.rows.windows import conv
from dparray.onnx.tensors import numpy_dtype


def _spread(call: Call, scale: Any, x: Any) -> Any:
    """Return scales that broadcast with ``x``: for all, for an axis, or for blocks of an axis."""
    if scale.ndim == 0 or (scale.ndim == 1 and scale.shape[0] == 1 and x.ndim != 1):
        return scale.reshape(())
    axis = checked_axis(call.get("axis", 1), x.ndim)
    block = call.get("block_size", 0)
    if not block and scale.ndim == 1:
        return scale.reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    if not block:
        return scale
    at = np.arange(x.shape[axis]) // block
    return call.xp.take(scale, at, axis=axis)


def _limits(dtype: Any) -> tuple[int, int]:
    facts = ml_dtypes.iinfo(dtype)
    return int(facts.min), int(facts.max)


def _wide(x: Any) -> Any:
    """Return a quantized value as float32, which holds 16 bits exactly; int32 is unchanged."""
    return x.astype("float32") if x.dtype not in (np.dtype("int32"), np.dtype("int64")) else x


@row("DequantizeLinear")
def _dequantize(call: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    target = numpy_dtype(call["output_dtype"]) if call.get("output_dtype") else scale.dtype
    result = _wide(x)
    if zero is not None:
        result = call.xp.subtract(result, _spread(call, _wide(zero), x))
    wide = scale.astype("float32") if scale.dtype.itemsize < 4 else scale
    return call.xp.multiply(result.astype("float32"), _spread(call, wide, x)).astype(target)


@row("QuantizeLinear")
def _quantize(call: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    target = numpy_dtype(call.get("output_dtype") or 2) if zero is None else np.dtype(zero.dtype)
    xp = call.xp
    precision = call.get("precision", 0)
    if precision:
        x, scale = x.astype(numpy_dtype(precision)), scale.astype(numpy_dtype(precision))
    result = xp.divide(x, _spread(call, scale, x))
    if target.name.startswith("float"):
        return narrow(call.host(result).astype("float32"), target, call.get("saturate", 1))
    result = xp.rint(result.astype("float32") if result.dtype.itemsize < 4 else result)
    if zero is not None:
        result = xp.add(result, _spread(call, _wide(zero), x))
    low, high = _limits(target)
    result = xp.minimum(xp.maximum(result, scalar(result, low)), scalar(result, high))
    if call.run.is_device_dtype(target):
        return result.astype(target)
    return narrow(call.host(result), target)


@row("DynamicQuantizeLinear")
def _quantize_dynamically(call: Call, x: Any) -> Any:
    xp = call.xp
    low = xp.minimum(xp.min(x), np.float32(0))
    high = xp.maximum(xp.max(x), np.float32(0))
    size = xp.subtract(high, low)
    size = xp.where(xp.equal(size, np.float32(0)), np.float32(1), size)  # all elements are 0
    scale = xp.divide(size, np.float32(255))
    zero = xp.rint(xp.divide(xp.negative(low), scale))
    zero = xp.minimum(xp.maximum(zero, np.float32(0)), np.float32(255))
    result = xp.add(xp.rint(xp.divide(x, scale)), zero)
    result = xp.minimum(xp.maximum(result, np.float32(0)), np.float32(255))
    if isinstance(x, np.ndarray):
        return result.astype("uint8"), np.asarray(scale, "float32"), np.asarray(zero, "uint8")
    return result.astype("uint8"), scale.astype("float32"), zero.astype("uint8")


def _centered(call: Call, x: Any, zero: Any, axis: int) -> Any:
    """Return integers as int32, minus their zero points."""
    wide = x.astype("int32")
    if zero is None:
        return wide
    zero = zero.astype("int32")
    if zero.ndim == 1 and zero.shape[0] > 1:
        zero = zero.reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    elif zero.ndim == 1:
        zero = zero.reshape(())
    return call.xp.subtract(wide, zero)


@row("MatMulInteger")
def _matmul_integer(call: Call, x: Any, y: Any, x_zero: Any = None, y_zero: Any = None) -> Any:
    left, right = _centered(call, x, x_zero, x.ndim - 2), _centered(call, y, y_zero, y.ndim - 1)
    check_product(call, left, right)
    return call.xp.matmul(left, right)


def _requantized(call: Call, x: Any, factor: Any, zero: Any) -> Any:
    xp = call.xp
    result = xp.rint(xp.multiply(x.astype("float32"), factor.astype("float32")))
    result = xp.add(result, zero.reshape(()).astype("float32"))
    low, high = _limits(np.dtype(zero.dtype))
    result = xp.minimum(xp.maximum(result, np.float32(low)), np.float32(high))
    return result.astype(zero.dtype)


@row("QLinearMatMul", is_on_device=True)
def _quantized_matmul(
    call: Call, x: Any, x_scale: Any, x_zero: Any, y: Any, y_scale: Any, y_zero: Any, scale: Any,
    zero: Any,
) -> Any:  # fmt: skip
    result = _matmul_integer(call, x, y, x_zero, y_zero)
    factor = call.xp.divide(call.xp.multiply(x_scale, y_scale), scale)
    if factor.ndim == 1 and factor.shape[0] == 1:
        factor = factor.reshape(())
    return _requantized(call, result, factor, zero)


@row("ConvInteger", is_on_device=True)
def _conv_integer(call: Call, x: Any, filters: Any, x_zero: Any = None, zero: Any = None) -> Any:
    return conv(call, _centered(call, x, x_zero, 1), _centered(call, filters, zero, 0))


@row("QLinearConv", is_on_device=True)
def _quantized_conv(
    call: Call, x: Any, x_scale: Any, x_zero: Any, filters: Any, w_scale: Any, w_zero: Any,
    scale: Any, zero: Any, bias: Any = None,
) -> Any:  # fmt: skip
    centered = _centered(call, x, x_zero, 1)
    result = conv(call, centered, _centered(call, filters, w_zero, 0), bias)
    factor = call.xp.divide(call.xp.multiply(x_scale, w_scale), scale)
    if factor.ndim:
        factor = factor.reshape((1, -1, *(1,) * (x.ndim - 2)) if factor.size > 1 else ())
    return _requantized(call, result, factor, zero)
