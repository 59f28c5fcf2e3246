"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray.onnx.registry import Call, row
from dparray.onnx.rows.elementwise import scalar


@row("MatMul")
def _matmul(call: Call, x: Any, y: Any) -> Any:
    return _product(call, x, y)


def _product(call: Call, x: Any, y: Any) -> Any:
    if call.run.is_device_dtype(x.dtype):
        return call.xp.matmul(x, y)
    return np.matmul(x.astype("float32"), y.astype("float32")).astype(x.dtype)


@row("Gemm")
def _gemm(call: Call, x: Any, y: Any, z: Any = None) -> Any:
    x = x.T if call.get("transA", 0) else x
    y = y.T if call.get("transB", 0) else y
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    made = _product(call, x, y)
    made = made if alpha == 1 else call.xp.multiply(made, scalar(made, alpha))
    if z is None or beta == 0:
        return made
    return call.xp.add(made, z if beta == 1 else call.xp.multiply(z, scalar(made, beta)))


@row("Einsum")
def _einsum(call: Call, *x: Any) -> Any:
    equation = call["equation"].replace(" ", "")
    if call.run.is_device_dtype(x[0].dtype):
        return call.xp.einsum(equation, *x)
    return np.einsum(equation, *(each.astype("float32") for each in x)).astype(x[0].dtype)


@row("Det", is_on_device=True)
def _determinant(call: Call, x: Any) -> Any:
    return call.xp.linalg_det(x)
