"""Control flow: graphs within nodes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dparray.exceptions import OnnxError
from dparray.onnx.registry import Call, checked_axis, is_traced, row


def _is_true(call: Call, x: Any) -> bool:
    return bool(call.host(x).reshape(-1)[0])


@row("If", reads_graphs=True)
def _if(call: Call, condition: Any) -> Any:
    branch = call["then_branch" if _is_true(call, condition) else "else_branch"]
    return tuple(branch.run(call.run, {}, call.scope))


@row("Loop", reads_graphs=True)
def _loop(call: Call, trips: Any = None, condition: Any = None, *carried: Any) -> Any:
    body = call["body"]
    most = math.inf if trips is None else call.ints(trips)[0]
    going = True if condition is None else _is_true(call, condition)
    values, step, count = list(carried), 0, len(carried)
    if len(body.inputs) != count + 2:
        raise OnnxError(f"the body has {len(body.inputs)} inputs, {count + 2} are given")
    scanned: list[list[Any]] = [[] for _ in body.outputs[1 + count :]]
    while going and step < most:
        given = [np.asarray(step, "int64"), np.asarray(True), *values]
        made = body.run(call.run, dict(zip(body.inputs, given, strict=True)), call.scope)
        going, values, step = _is_true(call, made[0]), made[1 : 1 + count], step + 1
        for seen, value in zip(scanned, made[1 + count :], strict=True):
            seen.append(value)
    return (*values, *(_stacked(call, seen) for seen in scanned))


def _stacked(call: Call, values: list[Any], axis: int = 0) -> Any:
    if not values:
        return np.zeros((0,), "float32")
    return (call.run.device if is_traced(values) else np).stack(values, axis=axis)


@row("Scan", reads_graphs=True)
def _scan(call: Call, *given: Any) -> Any:
    if call.opset < 9:
        if given[0] is not None:
            raise OnnxError("sequence lengths of Scan in opset 8 are not supported")
        batches = [
            _scanned(call, [x[number] for x in given[1:]]) for number in range(given[1].shape[0])
        ]
        return tuple(_stacked(call, list(each)) for each in zip(*batches, strict=True))
    return _scanned(call, list(given))


def _scanned(call: Call, given: list[Any]) -> tuple[Any, ...]:
    body, count = call["body"], int(call["num_scan_inputs"])
    state, inputs = given[: len(given) - count], given[len(given) - count :]
    outputs = len(body.outputs) - len(state)
    axes = [
        checked_axis(axis, x.ndim)
        for axis, x in zip(call.get("scan_input_axes", [0] * count), inputs, strict=True)
    ]
    backward = call.get("scan_input_directions", call.get("directions", [0] * count))
    length = inputs[0].shape[axes[0]]
    scanned: list[list[Any]] = [[] for _ in range(outputs)]
    for step in range(length):
        slices = [
            x[(slice(None),) * axis + (length - 1 - step if is_backward else step,)]
            for x, axis, is_backward in zip(inputs, axes, backward, strict=True)
        ]
        names = dict(zip(body.inputs, [*state, *slices], strict=True))
        made = body.run(call.run, names, call.scope)
        state = made[: len(state)]
        for seen, value in zip(scanned, made[len(state) :], strict=True):
            seen.append(value)
    to = call.get("scan_output_axes", [0] * outputs)
    reverse = call.get("scan_output_directions", [0] * outputs)
    ends = [
        _stacked(call, seen[::-1] if is_backward else seen, axis)
        for seen, axis, is_backward in zip(scanned, to, reverse, strict=True)
    ]
    return (*state, *ends)
