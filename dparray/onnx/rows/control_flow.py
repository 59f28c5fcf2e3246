"""Control flow: graphs within nodes."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
import onnx

from dparray.exceptions import OnnxError
from dparray.onnx.operator_table import Call, checked_axis, is_traced, row
from dparray.onnx.tensors import numpy_dtype


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
        result = body.run(call.run, dict(zip(body.inputs, given, strict=True)), call.scope)
        going, values, step = _is_true(call, result[0]), result[1 : 1 + count], step + 1
        for seen, value in zip(scanned, result[1 + count :], strict=True):
            seen.append(value)
    if not step:
        given = [np.asarray(0, "int64"), np.asarray(True), *values]
        return (*values, *_without_steps(call, given, [0] * len(scanned)))
    return (*values, *(_stacked(call, seen) for seen in scanned))


def _without_steps(call: Call, given: list[Any], axes: list[int]) -> list[Any]:
    """Return the scan outputs of no iteration: empty arrays, whose other sizes the body decides.

    A size that follows neither from the sizes of the inputs nor from the declared outputs is 0.
    """
    body = onnx.GraphProto()
    body.CopyFrom(next(each.g for each in call.node.proto.attribute if each.name == "body"))
    outer = {name: call.scope.get(name) for name in call["body"].free_names()}
    values = {**dict(zip(call["body"].inputs, given, strict=True)), **outer}
    del body.input[:]
    for name, x in values.items():
        if hasattr(x, "shape"):
            code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(x.dtype))
            body.input.append(onnx.helper.make_tensor_value_info(name, code, x.shape))
    versions = [onnx.helper.make_opsetid(*each) for each in call.run.model.opset.items()]
    outputs = body.output[-len(axes) :] if axes else []
    with contextlib.suppress(onnx.shape_inference.InferenceError):
        model = onnx.helper.make_model(body, opset_imports=versions)
        inferred = onnx.shape_inference.infer_shapes(model).graph.output
        outputs = inferred[-len(axes) :] if axes else []
    result = []
    for each, axis in zip(outputs, axes, strict=True):
        declared = each.type.tensor_type
        shape = [max(size.dim_value, 0) for size in declared.shape.dim]
        shape.insert(checked_axis(axis, len(shape) + 1), 0)
        call.check_size(shape, "int8")
        result.append(np.zeros(shape, numpy_dtype(declared.elem_type or 1)))
    return result


def _stacked(call: Call, values: list[Any], axis: int = 0) -> Any:
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
    if not 1 <= count <= len(given):
        raise OnnxError(f"num_scan_inputs={count} of {len(given)} inputs")
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
        result = body.run(call.run, names, call.scope)
        state = result[: len(state)]
        for seen, value in zip(scanned, result[len(state) :], strict=True):
            seen.append(value)
    to = call.get("scan_output_axes", [0] * outputs)
    if not length:
        empty = [
            np.broadcast_to(np.zeros((), x.dtype), x.shape[:axis] + x.shape[axis + 1 :])
            for x, axis in zip(inputs, axes, strict=True)
        ]
        return (*state, *_without_steps(call, [*state, *empty], to))
    reverse = call.get("scan_output_directions", [0] * outputs)
    ends = [
        _stacked(call, seen[::-1] if is_backward else seen, axis)
        for seen, axis, is_backward in zip(scanned, to, reverse, strict=True)
    ]
    return (*state, *ends)
