"""Element-wise operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np

from dparray.exceptions import OnnxError
from dparray.onnx import functions as dp
from dparray.onnx.operator_table import Call, row
from dparray.onnx.tensors import numpy_dtype

#: Operators that correspond to a single function.
_FUNCTIONS = {
    "Abs": "abs", "Neg": "negative", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Sin": "sin",
    "Cos": "cos", "Tan": "tan", "Sinh": "sinh", "Cosh": "cosh", "Tanh": "tanh", "Asin": "arcsin",
    "Acos": "arccos", "Atan": "arctan", "Asinh": "arcsinh", "Acosh": "arccosh",
    "Atanh": "arctanh", "Floor": "floor", "Ceil": "ceil", "Round": "rint", "Sign": "sign",
    "Not": "logical_not", "IsNaN": "isnan", "BitwiseNot": "invert", "Add": "add",
    "Sub": "subtract", "Mul": "multiply", "And": "logical_and", "Or": "logical_or",
    "Xor": "logical_xor", "Equal": "equal", "Greater": "greater", "Less": "less",
    "GreaterOrEqual": "greater_equal", "LessOrEqual": "less_equal",
    "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor",
    "Where": "where",
}  # fmt: skip
_REPEATED = {"Max": "maximum", "Min": "minimum", "Sum": "add"}


def scalar(x: Any, value: Any) -> Any:
    """Return a scalar of the dtype of ``x``."""
    return np.dtype(x.dtype).type(value)


def _one(function: str) -> Callable[..., Any]:
    def compute(call: Call, *x: Any) -> Any:
        if len(x) == 2:
            x = (x[0], _aligned(call, x[0], x[1]))
        return getattr(call.xp, function)(*x)

    return compute


def _aligned(call: Call, x: Any, y: Any) -> Any:
    """Return the second operand, before opset 7 with its axes aligned with those of the first."""
    if call.opset >= 7 or not call.get("broadcast"):
        return y
    axis = call.get("axis", x.ndim - y.ndim)
    axis = axis + x.ndim if axis < 0 else axis
    return call.xp.reshape(y, (*y.shape, *(1,) * (x.ndim - axis - y.ndim)))


def _repeated(function: str) -> Callable[..., Any]:
    def compute(call: Call, *x: Any) -> Any:
        return reduce(getattr(call.xp, function), x)

    return compute


for _name, _function in _FUNCTIONS.items():
    row(_name)(_one(_function))
for _name, _function in _REPEATED.items():
    row(_name)(_repeated(_function))


@row("Mean")
def _mean(call: Call, *x: Any) -> Any:
    return call.xp.divide(reduce(call.xp.add, x), scalar(x[0], len(x)))


@row("Div")
def _divide(call: Call, x: Any, y: Any) -> Any:
    y = _aligned(call, x, y)
    if x.dtype.kind not in "iu":
        return call.xp.divide(x, y)
    if x.dtype.kind == "u":
        return call.xp.floor_divide(x, y)
    xp = call.xp  # the standard rounds toward zero, NumPy down; the smallest integer has no abs
    down = xp.floor_divide(x, y)
    is_exact = xp.equal(xp.multiply(down, y), x)
    is_positive = xp.greater_equal(xp.multiply(xp.sign(x), xp.sign(y)), scalar(x, 0))
    return xp.where(xp.logical_or(is_exact, is_positive), down, xp.add(down, scalar(x, 1)))


@row("Mod")
def _mod(call: Call, x: Any, y: Any) -> Any:
    return (call.xp.fmod if call.get("fmod", 0) else call.xp.remainder)(x, y)


@row("Pow")
def _power(call: Call, x: Any, y: Any) -> Any:
    y = _aligned(call, x, y)
    if isinstance(y, np.ndarray) and y.ndim == 0 and x.dtype.kind in "fi" and float(y) == 2:
        return call.xp.multiply(x, x)
    result = call.xp.power(x, y)
    return result if result.dtype == x.dtype else result.astype(x.dtype)


@row("Reciprocal")
def _reciprocal(call: Call, x: Any) -> Any:
    return call.xp.divide(scalar(x, 1), x)


@row("BitShift")
def _shift(call: Call, x: Any, y: Any) -> Any:
    return (call.xp.left_shift if call["direction"] == "LEFT" else call.xp.right_shift)(x, y)


@row("IsInf")
def _is_infinite(call: Call, x: Any) -> Any:
    positive, negative = call.get("detect_positive", 1), call.get("detect_negative", 1)
    if positive and negative:
        return call.xp.isinf(x)
    if not positive and not negative:
        return call.xp.zeros_like(x, dtype=bool)
    return call.xp.equal(x, scalar(x, np.inf if positive else -np.inf))


@row("Clip")
def _clip(call: Call, x: Any, low: Any = None, high: Any = None) -> Any:
    low = call.get("min") if low is None else low
    high = call.get("max") if high is None else high
    for bound, function in ((low, call.xp.maximum), (high, call.xp.minimum)):
        if bound is not None:
            x = function(x, scalar(x, bound) if isinstance(bound, float) else bound)
    return x


@row("Cast", "CastLike")
def _cast(call: Call, x: Any, like: Any = None) -> Any:
    target = np.dtype(like.dtype) if like is not None else numpy_dtype(call["to"])
    if x.dtype == target:
        return x
    if target.kind == "O":
        return _to_text(call.host(x))
    if x.dtype.kind in "OUS":
        return np.asarray([_number(each) for each in x.reshape(-1)]).reshape(x.shape).astype(target)
    if call.run.is_device_dtype(target) and call.run.is_device_dtype(x.dtype):
        return x.astype(target)
    return narrow(call.host(x), target, call.get("saturate", 1))


@row("BitCast")
def _bit_cast(call: Call, x: Any) -> Any:
    target = numpy_dtype(call["to"])
    if target == x.dtype:
        return x
    if not (call.run.is_device_dtype(target) and call.run.is_device_dtype(x.dtype)):
        return call.host(x).view(target)
    return call.xp.call(_viewed, x, target)


def _viewed(x: Any, dtype: Any) -> Any:
    return x.view(dtype)


def _to_text(x: Any) -> Any:
    texts = [
        str(each) if x.dtype.kind in "iub" else f"{np.float32(each):.8g}".replace("inf", "INF")
        .replace("nan", "NaN") for each in x.reshape(-1)
    ]  # fmt: skip
    return np.asarray(texts, object).reshape(x.shape)


def _number(text: Any) -> float:
    text = text.decode() if isinstance(text, bytes) else str(text)
    try:
        return float(text)
    except ValueError:
        raise OnnxError(f"Cast: {text!r} is not a number") from None


def narrow(x: Any, target: Any, saturate: int = 1, rounding: str = "up") -> Any:
    """Convert on the host to or from a dtype that devices do not support."""
    if x.dtype.kind == "V" or x.dtype.name.startswith(("float8", "bfloat", "float4")):
        x = x.astype("float32")
    if "int" in target.name or target.kind in "biu":
        if target.name in ("int4", "uint4", "int2", "uint2"):
            return x.astype("int32").astype("int8").astype(target)
        return x.astype(target)
    if target.name.startswith("float8") and target.name != "float8_e8m0fnu" and saturate:
        limit = float(ml_dtypes.finfo(target).max)
        y = x.astype("float32")
        return np.where(np.isnan(y), y, np.clip(y, -limit, limit)).astype(target)
    if target.name == "float8_e8m0fnu":
        return _power_of_two(x.astype("float32"), rounding).astype(target)
    return x.astype("float32").astype(target)


def _power_of_two(x: Any, rounding: str) -> Any:
    """Return the powers of 2 by which the 8-exponent-bit dtype represents magnitudes."""
    round_exponent = {"up": np.ceil, "down": np.floor, "nearest": np.rint}[rounding]
    exponent = np.clip(round_exponent(np.log2(np.abs(x))), -127, 127)
    return np.where(np.isfinite(x), np.exp2(exponent), np.nan).astype("float32")


# -- activations -----------------------------------------------------------------------------------


@row("Relu")
def _relu(call: Call, x: Any) -> Any:
    return call.xp.maximum(x, scalar(x, 0))


@row("Erf", is_on_device=True)
def _erf(call: Call, x: Any) -> Any:
    return call.xp.erf(x).astype(x.dtype)


@row("Sigmoid")
def sigmoid(call: Call, x: Any) -> Any:
    """Return the logistic function, from operations that small arrays and fused kernels support."""
    xp, one = call.xp, scalar(x, 1)
    return xp.divide(one, xp.add(xp.exp(xp.negative(x)), one))


@row("Softplus")
def _softplus(call: Call, x: Any) -> Any:
    return call.xp.logaddexp(x, scalar(x, 0))


@row("HardSigmoid")
def _hard_sigmoid(call: Call, x: Any) -> Any:
    alpha, beta = call.get("alpha", 0.2), call.get("beta", 0.5)
    y = call.xp.add(call.xp.multiply(x, scalar(x, alpha)), scalar(x, beta))
    return call.xp.minimum(call.xp.maximum(y, scalar(x, 0)), scalar(x, 1))


@row("PRelu")
def _prelu(call: Call, x: Any, slope: Any) -> Any:
    if call.opset < 9 and slope.ndim == 1 and x.ndim > 1 and slope.shape[0] == x.shape[1]:
        slope = call.xp.reshape(slope, (1, -1) + (1,) * (x.ndim - 2))
    return call.xp.where(call.xp.less(x, scalar(x, 0)), call.xp.multiply(x, slope), x)


@row("LeakyRelu")
def _leaky(call: Call, x: Any) -> Any:
    small = call.xp.multiply(x, scalar(x, call.get("alpha", 0.01)))
    return call.xp.where(call.xp.less(x, scalar(x, 0)), small, x)


@row("Elu")
def _elu(call: Call, x: Any) -> Any:
    below = call.xp.multiply(call.xp.expm1(x), scalar(x, call.get("alpha", 1.0)))
    return call.xp.where(call.xp.less(x, scalar(x, 0)), below, x)


@row("Celu")
def _celu(call: Call, x: Any) -> Any:
    xp, alpha, zero = call.xp, scalar(x, call.get("alpha", 1.0)), scalar(x, 0)
    below = xp.multiply(alpha, xp.expm1(xp.divide(x, alpha)))
    return xp.add(xp.maximum(x, zero), xp.minimum(below, zero))


@row("Selu")
def _selu(call: Call, x: Any) -> Any:
    xp = call.xp
    alpha = scalar(x, call.get("alpha", 1.67326319217681884765625))
    below = xp.multiply(xp.expm1(x), alpha)
    gamma = scalar(x, call.get("gamma", 1.05070102214813232421875))
    return xp.multiply(xp.where(xp.greater(x, scalar(x, 0)), x, below), gamma)


@row("Gelu", is_on_device=True)
def gelu(call: Call, x: Any) -> Any:
    """Return the GELU function, exactly or by the usual approximation."""
    xp = call.xp
    if call.get("approximate", "none") == "tanh":
        cubic = xp.add(x, xp.multiply(xp.multiply(xp.multiply(x, x), x), scalar(x, 0.044715)))
        inner = xp.tanh(xp.multiply(cubic, scalar(x, math.sqrt(2 / math.pi))))
    else:
        inner = xp.erf(xp.multiply(x, scalar(x, math.sqrt(0.5)))).astype(x.dtype)
    return xp.multiply(xp.multiply(x, scalar(x, 0.5)), xp.add(inner, scalar(x, 1)))


# -- random values ---------------------------------------------------------------------------------


def _random(call: Call, shape: Any, draw: Callable[..., Any], dtype: Any) -> Any:
    """Draw new values on the device at each call."""
    call.check_size(shape, dtype)
    seed = call.get("seed")
    generator = dp.random.default_rng(None if seed is None else int(seed), device=call.device)
    return call.run.device.call_each_time(lambda: draw(generator, tuple(shape)).astype(dtype))


def _normal(call: Call) -> Callable[..., Any]:
    mean, scale = call.get("mean", 0.0), call.get("scale", 1.0)
    return lambda generator, shape: generator.normal(mean, scale, size=shape)


def _uniform(call: Call) -> Callable[..., Any]:
    low, high = call.get("low", 0.0), call.get("high", 1.0)
    return lambda generator, shape: generator.uniform(low, high, size=shape)


@row("RandomNormal", "RandomUniform", is_random=True)
def _random_of_shape(call: Call) -> Any:
    draw = _normal(call) if call.node.operator == "RandomNormal" else _uniform(call)
    return _random(call, call["shape"], draw, numpy_dtype(call.get("dtype", 1)))


@row("RandomNormalLike", "RandomUniformLike", is_random=True)
def _random_like(call: Call, x: Any) -> Any:
    draw = _normal(call) if call.node.operator == "RandomNormalLike" else _uniform(call)
    return _random(call, x.shape, draw, call.dtype(x))


@row("Bernoulli", is_random=True, is_on_device=True)
def _bernoulli(call: Call, x: Any) -> Any:
    drawn = _random(call, x.shape, lambda g, shape: g.uniform(size=shape), x.dtype)
    return call.xp.less(drawn, x).astype(call.dtype(x))


@row("Dropout", is_random=True)
def _dropout(call: Call, x: Any, ratio: Any = None, training: Any = None) -> Any:
    keep = call.xp.ones(x.shape, dtype=bool)
    if training is None or not bool(call.host(training)):
        return x, keep
    rate = 0.5 if ratio is None else float(call.host(ratio))
    if rate == 0:
        return x, keep
    drawn = _random(call, x.shape, lambda g, shape: g.uniform(size=shape), "float32")
    keep = call.run.device.greater_equal(drawn, np.float32(rate))
    scaled = call.run.device.multiply(x, scalar(x, 1 / (1 - rate) if rate < 1 else 0))
    return call.run.device.where(keep, scaled, scalar(x, 0)), keep
