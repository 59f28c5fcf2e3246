"""Resizing: along each axis by indices, or by a product with a small matrix."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dparray.exceptions import OnnxError
from dparray.onnx.operator_table import Call, checked_axis, row
from dparray.onnx.rows.elementwise import scalar


def _positions(name: str, size: int, made: int, scale: float, roi: Any) -> Any:
    """Return the input positions of the elements of the output."""
    at, length = np.arange(made), size * scale
    if name in ("half_pixel", "half_pixel_symmetric"):
        offset = size / 2 * (1 - made / length) if name == "half_pixel_symmetric" else 0
        return offset + (at + 0.5) / scale - 0.5
    if name == "pytorch_half_pixel":
        return (at + 0.5) / scale - 0.5 if made > 1 else np.zeros(1)
    if name == "align_corners":
        return at * (size - 1) / (length - 1) if length > 1 and made > 1 else np.zeros(made)
    if name == "asymmetric":
        return at / scale
    if name == "tf_crop_and_resize" and roi is not None:
        first, last = roi
        if made > 1:
            return first * (size - 1) + at * (last - first) * (size - 1) / (made - 1)
        return np.array([0.5 * (first + last) * (size - 1)])
    raise OnnxError(f"unknown coordinate_transformation_mode {name!r}")


def _matrix(call: Call, mode: str, size: int, made: int, scale: float, at: Any) -> Any:
    """Return the matrix that interpolates along one axis."""
    is_cubic, antialias = mode == "cubic", bool(call.get("antialias", 0))
    outside, a = call.get("exclude_outside", 0), call.get("cubic_coeff_a", -0.75)
    factor = min(1.0, scale) if antialias else 1.0
    reach = (2 if is_cubic else 1) / factor
    matrix = np.zeros((made, size))
    for number, place in enumerate(at):
        taps = np.arange(math.floor(place - reach) + 1, math.floor(place + reach) + 1 + antialias)
        away = abs(place - taps) * factor
        if is_cubic:
            near = (a + 2) * away**3 - (a + 3) * away**2 + 1
            far = a * away**3 - 5 * a * away**2 + 8 * a * away - 4 * a
            weights = np.where(away <= 1, near, np.where(away < 2, far, 0))
        else:
            weights = np.maximum(0, 1 - away)
        if outside:
            weights = np.where((taps < 0) | (taps >= size), 0, weights)
        if antialias or outside:
            weights = weights / weights.sum()
        np.add.at(matrix[number], np.clip(taps, 0, size - 1), weights)
    return matrix


def _nearest(name: str, at: Any, size: int) -> Any:
    rounded = {
        "round_prefer_floor": np.ceil(at - 0.5), "round_prefer_ceil": np.floor(at + 0.5),
        "floor": np.floor(at), "ceil": np.ceil(at),
    }  # fmt: skip
    return np.clip(rounded[name], 0, size - 1).astype("int64")


@row("Resize", "Upsample")
def _resize(call: Call, x: Any, *rest: Any) -> Any:
    is_new = call.node.operator == "Resize" and call.opset >= 11
    roi, scales, sizes = (*rest, None, None, None)[:3] if is_new else (None, *rest, None, None)[:3]
    axes = [checked_axis(axis, x.ndim) for axis in call.get("axes", range(x.ndim))]
    wanted, factors = _sizes(call, x, axes, scales, sizes)
    window = call.host(roi) if roi is not None and math.prod(roi.shape) else None
    mode = {"bilinear": "linear"}.get(call.get("mode", "nearest"), call.get("mode", "nearest"))
    coordinates = call.get(
        "coordinate_transformation_mode", "half_pixel" if is_new else "asymmetric"
    )
    rounding = call.get("nearest_mode", "round_prefer_floor" if is_new else "floor")
    is_crop = coordinates == "tf_crop_and_resize"
    full = list(x.shape)
    for axis, size in zip(axes, wanted, strict=True):
        full[axis] = size
    call.check_size(full, x.dtype)
    result = x if x.dtype.kind not in "iub" or mode == "nearest" else x.astype("float32")
    outside = np.zeros((1,) * x.ndim, bool)
    for number, (axis, size, scale) in enumerate(zip(axes, wanted, factors, strict=True)):
        before = x.shape[axis]
        if size == before and scale == 1 and not is_crop:
            continue
        call.check_size((size, before), "float64")
        part = None if window is None else (window[number], window[number + len(axes)])
        at = _positions(coordinates, before, size, scale, part)
        if is_crop:
            shape = [-1 if a == axis else 1 for a in range(x.ndim)]
            outside = outside | ((at < 0) | (at > before - 1)).reshape(shape)
        if mode == "nearest":
            result = call.xp.take(result, _nearest(rounding, at, before), axis=axis)
        else:
            matrix = _matrix(call, mode, before, size, scale, at).astype(result.dtype)
            result = _along(call, result, matrix, axis)
    if outside.any():
        fill = scalar(result, call.get("extrapolation_value", 0))
        result = call.xp.where(outside, fill, result)
    if result.dtype == x.dtype:
        return result
    return call.xp.rint(result).astype(x.dtype)


def _along(call: Call, x: Any, matrix: Any, axis: int) -> Any:
    order = [a for a in range(x.ndim) if a != axis] + [axis]
    result = call.xp.matmul(call.xp.transpose(x, order), np.ascontiguousarray(matrix.T))
    return call.xp.transpose(result, [order.index(a) for a in range(x.ndim)])


def _sizes(call: Call, x: Any, axes: list[int], scales: Any, sizes: Any) -> Any:
    """Return the sizes of the result along the axes, and the factors."""
    if sizes is not None and math.prod(sizes.shape):
        wanted = call.ints(sizes)
        factors = [size / x.shape[axis] for size, axis in zip(wanted, axes, strict=True)]
        policy = call.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            factor = (min if policy == "not_larger" else max)(factors)
            factors = [factor] * len(factors)
            wanted = [math.floor(factor * x.shape[axis] + 0.5) for axis in axes]
        return wanted, factors
    if scales is None:
        factors = call.get("scales") or [
            1.0, 1.0, call.get("height_scale", 1.0), call.get("width_scale", 1.0)
        ]  # fmt: skip
    else:
        factors = [float(each) for each in call.host(scales).reshape(-1)]
    if min(factors, default=1) <= 0 or len(factors) != len(axes):
        raise OnnxError(f"scales must be {len(axes)} positive numbers, not {factors}")
    return [math.floor(f * x.shape[a]) for f, a in zip(factors, axes, strict=True)], factors
