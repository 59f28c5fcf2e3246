"""Sampling at computed positions, and selection of boxes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from dparray.exceptions import OnnxError
from dparray.onnx import functions as dp
from dparray.onnx.operator_table import Call, row
from dparray.onnx.rows.elementwise import scalar

#: The most terms of an interpolation in several dimensions.
MAX_CORNERS = 4096


def _reflected(at: Any, low: float, high: float) -> Any:
    """Return positions reflected at both ends into the valid range."""
    if high <= low:
        return dp.zeros_like(at)
    length = scalar(at, high - low)
    away = dp.abs(at - scalar(at, low))
    turns = dp.floor(away / length)
    rest = away - turns * length
    is_even = dp.equal(dp.remainder(turns, scalar(at, 2)), scalar(at, 0))
    return dp.where(is_even, rest + scalar(at, low), scalar(at, high) - rest)


def _taps(at: Any, mode: str, size: int) -> Any:
    """Return, for each tap along one axis, positions and weights."""
    if mode == "nearest":
        return [(dp.rint(at), None)]
    first = dp.floor(at)
    part = at - first
    one = scalar(at, 1)
    if mode == "linear":
        return [(first, one - part), (first + one, part)]
    a = scalar(at, -0.75)
    result = []
    for tap in range(-1, 3):
        away = dp.abs(part - scalar(at, tap))
        near = ((a + 2) * away - (a + 3)) * away * away + one
        far = ((a * away - 5 * a) * away + 8 * a) * away - 4 * a
        weight = far if tap in (-1, 2) else near
        result.append((first + scalar(at, tap), weight.astype(at.dtype)))
    return result


def _sampled(x: Any, grid: Any, mode: str, padding: str, is_aligned: bool) -> Any:
    """Sample ``(N, C, *space)`` at the positions of ``(N, *out, rank)``, from -1 to 1."""
    rank, taps = x.ndim - 2, []
    for axis, size in enumerate(x.shape[2:]):
        at = grid[..., rank - 1 - axis]  # positions are stored with the first axis last
        one = scalar(at, 1)
        if is_aligned:
            at, low, high = (at + one) * scalar(at, (size - 1) / 2), 0.0, size - 1.0
        else:
            at, low, high = (at + one) * scalar(at, size / 2) - scalar(at, 0.5), -0.5, size - 0.5
        if padding == "border":
            # Cubic interpolation between the border and the outer pixels keeps its position.
            inside = (at >= low) & (at <= high) if mode == "cubic" else None
            moved = dp.clip(at, 0, size - 1)
            at = moved if inside is None else dp.where(inside, at, moved)
        elif padding == "reflection" and mode != "cubic":
            at = dp.clip(_reflected(at, low, high), 0, size - 1)
        taps.append([(*tap, size, low, high) for tap in _taps(at, mode, size)])
    batch = dp.reshape(
        dp.arange(x.shape[0], dtype="int64", device=x.queue), (-1, *(1,) * (grid.ndim - 2))
    )
    last = dp.transpose(x, (0, *range(2, x.ndim), 1))
    total: Any = None
    for corner in product(*taps):
        weight, inside, index = None, None, []
        for at, part, size, low, high in corner:
            if padding == "reflection":
                at = _reflected(at, low, high)
            if padding == "zeros":
                within = (at >= 0) & (at <= size - 1)
                inside = within if inside is None else inside & within
            index.append(dp.clip(at, 0, size - 1).astype("int64"))
            if part is not None:
                weight = part if weight is None else weight * part
        if inside is not None:
            part = inside.astype(x.dtype)
            weight = part if weight is None else weight * part
        where = (dp.broadcast_to(batch, index[0].shape), *index)
        values = last[where]
        values = values if weight is None else values * dp.expand_dims(weight, -1)
        total = values if total is None else total + values
    return dp.transpose(total, (0, total.ndim - 1, *range(1, total.ndim - 1)))


@row("GridSample", is_on_device=True)
def _grid_sample(call: Call, x: Any, grid: Any) -> Any:
    mode = call.get("mode", "linear")
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    padding = call.get("padding_mode", "zeros")
    if mode not in ("linear", "nearest", "cubic") or x.ndim != grid.shape[-1] + 2:
        raise OnnxError(f"mode {mode!r} for {grid.shape[-1]} coordinates")
    count = {"nearest": 1, "linear": 2, "cubic": 4}[mode] ** grid.shape[-1]
    if count > MAX_CORNERS:
        raise OnnxError(f"{count} terms for each of the samples; at most {MAX_CORNERS}")
    is_aligned = bool(call.get("align_corners", 0))
    return call.xp.call(_sampled, x, grid.astype(x.dtype), mode, padding, is_aligned)


@row("NonMaxSuppression")
def _suppress(
    call: Call, boxes: Any, scores: Any, most: Any = None, overlap: Any = None, least: Any = None
) -> Any:
    corners, ranks = call.host(boxes), call.host(scores)
    count = 0 if most is None else call.ints(most)[0]
    limit = 0.0 if overlap is None else float(call.host(overlap).reshape(-1)[0])
    bound = -np.inf if least is None else float(call.host(least).reshape(-1)[0])
    if call.get("center_point_box", 0):
        half = corners[..., 2:] / 2
        low, high = corners[..., :2] - half, corners[..., :2] + half
    else:
        low = np.minimum(corners[..., :2], corners[..., 2:])
        high = np.maximum(corners[..., :2], corners[..., 2:])
    chosen: list[tuple[int, int, int]] = []
    for batch, kind in np.ndindex(*ranks.shape[:2]):
        row_scores = ranks[batch, kind]
        order = np.argsort(-row_scores, kind="stable")
        order = order[row_scores[order] > bound]
        kept: list[int] = []
        while order.size and len(kept) < count:
            best = order[0]
            kept.append(int(best))
            order = order[1:]
            ratio = _overlap(low[batch], high[batch], best, order)
            order = order[ratio <= limit]
        chosen += [(batch, kind, box) for box in kept]
    return np.asarray(chosen, "int64").reshape(-1, 3)


def _overlap(low: Any, high: Any, one: Any, others: Any) -> Any:
    """Return the intersection over union of a box with others."""
    sides = np.minimum(high[one], high[others]) - np.maximum(low[one], low[others])
    shared = np.prod(np.maximum(sides, 0), axis=-1)
    areas = np.prod(high - low, axis=-1)
    union = areas[one] + areas[others] - shared
    return np.where(union > 0, shared / np.where(union > 0, union, 1), 0)


@row("RoiAlign", is_on_device=True)
def _roi_align(call: Call, x: Any, rois: Any, batches: Any) -> Any:
    boxes, images = call.host(rois).astype("float64"), call.ints(batches)
    height, width = int(call.get("output_height", 1)), int(call.get("output_width", 1))
    scale, ratio = call.get("spatial_scale", 1.0), int(call.get("sampling_ratio", 0))
    default = "half_pixel" if call.opset >= 16 else "output_half_pixel"
    is_half = call.get("coordinate_transformation_mode", default) == "half_pixel"
    is_max, parts = call.get("mode", "avg") == "max", []
    call.check_size((len(images), x.shape[1], height, width), x.dtype)
    for image, box in zip(images, boxes * scale - (0.5 if is_half else 0), strict=True):
        weights = []  # of each axis: (output size, samples, size of the image)
        for size, result, low, high in (
            (x.shape[2], height, box[1], box[3]), (x.shape[3], width, box[0], box[2])
        ):  # fmt: skip
            length = high - low if is_half else max(high - low, 1.0)
            samples = ratio or int(np.ceil(length / result))
            call.check_size((result, samples, size), "float64")
            at = low + (np.arange(result * samples) + 0.5) * length / result / samples
            weights.append(_weights(at, size).reshape(result, samples, size))
        cells = [each for weight in weights for each in weight.shape[:2]]
        call.check_size((x.shape[1], *cells), x.dtype)
        values = call.xp.einsum(
            "chw,ash,btw->cabst", x[image], weights[0].astype(x.dtype), weights[1].astype(x.dtype)
        )
        reduce = call.xp.max if is_max else call.xp.mean
        parts.append(reduce(values, axis=(3, 4)))
    return call.xp.stack(parts, axis=0)


def _weights(at: Any, size: int) -> Any:
    """Return the matrix of linear interpolation at positions; zero beyond one step outside."""
    inside = (at >= -1) & (at <= size)
    at = np.clip(at, 0, size - 1)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, size - 1)
    result = np.zeros((len(at), size))
    rows = np.arange(len(at))
    np.add.at(result, (rows, low), (1 - (at - low)) * inside)
    np.add.at(result, (rows, high), (at - low) * inside)
    return result
