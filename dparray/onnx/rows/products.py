"""Matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dparray.onnx import functions as dp
from dparray.onnx.operator_table import Call, is_traced, row
from dparray.onnx.rows.elementwise import scalar
from dparray.onnx.rows.windows import packed
from dparray.tilelang.kernel_text import VECTOR


@row("MatMul")
def _matmul(call: Call, x: Any, y: Any) -> Any:
    return _product(call, x, y)


#: Products with constant weights that have more multiplications, and at most this many terms per
#: sum or rows, are computed as convolutions. Their kernel also computes the operations that follow.
#: It does not wait for the threads of BLAS, which keep a core busy for some time after a product.
MIN_CONVOLVED, MAX_CONVOLVED_TERMS, MAX_CONVOLVED_ROWS = 1 << 18, 512, 64


def check_product(call: Call, x: Any, y: Any) -> None:
    """Raise if the product of two arrays would exceed the limit of the model."""
    try:
        stack = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:  # the product refuses it
        return
    columns = y.shape[-1:] if y.ndim > 1 else ()
    call.check_size((*stack, *x.shape[-2:-1], *columns), x.dtype)


def _product(call: Call, x: Any, y: Any) -> Any:
    check_product(call, x, y)
    if not call.run.is_device_dtype(x.dtype):
        return np.matmul(x.astype("float32"), y.astype("float32")).astype(x.dtype)
    if (
        is_traced(x)
        and isinstance(y, np.ndarray)
        and x.dtype == y.dtype == np.float32
        and y.ndim == 2 <= x.ndim
        and x.shape[-1] == y.shape[0]
        and (len(y) <= MAX_CONVOLVED_TERMS or math.prod(x.shape[:-1]) <= MAX_CONVOLVED_ROWS)
        and math.prod(x.shape) * y.shape[1] > MIN_CONVOLVED
        and y.shape[1] >= VECTOR
        and not call.run.model.traits.prefers_products
    ):
        return call.xp.call(convolved, x, packed(y.T[..., None]), y.shape[1])
    return call.xp.matmul(x, y)


def convolved(x: Any, filters: Any, count: int) -> Any:
    """Return a product with a matrix as a convolution by ``count`` filters of one element."""
    rows = x if x.ndim == 3 else dp.reshape(x, (1, math.prod(x.shape[:-1]), x.shape[-1]))
    result = dp.tilelang.layers.conv_packed(rows, filters, (1,), (1,), ((0, 0),))
    if x.ndim == 2:
        result = dp.tilelang.contracting.merged(result, result.shape[1:])
    if result.shape[-1] > count:
        result = result[..., :count]
    return result if x.ndim < 4 else dp.reshape(result, (*x.shape[:-1], count))


@row("Gemm")
def _gemm(call: Call, x: Any, y: Any, z: Any = None) -> Any:
    x = x.T if call.get("transA", 0) else x
    y = y.T if call.get("transB", 0) else y
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    result = _product(call, x, y)
    result = result if alpha == 1 else call.xp.multiply(result, scalar(result, alpha))
    if z is None or beta == 0:
        return result
    return call.xp.add(result, z if beta == 1 else call.xp.multiply(z, scalar(result, beta)))


@row("Einsum")
def _einsum(call: Call, *x: Any) -> Any:
    equation = call["equation"].replace(" ", "")
    dtype = x[0].dtype
    _check_einsum(call, equation, x)
    if dtype.kind != "V":
        return call.xp.einsum(equation, *x)
    return call.xp.einsum(equation, *(each.astype("float32") for each in x)).astype(dtype)


def _check_einsum(call: Call, equation: str, x: Sequence[Any]) -> None:
    """Raise if the result would exceed the limit of the model."""
    terms, arrow, result = equation.partition("->")
    if not arrow:
        letters = sorted(set(terms) - set(",."))
        result = "..." + "".join(operand for operand in letters if terms.count(operand) == 1)
    lengths: dict[str, int] = {}
    stack: tuple[int, ...] = ()
    for term, operand in zip(terms.split(","), x, strict=False):
        before, dots, after = term.partition("...")
        end = operand.ndim - len(after)
        sizes = (*operand.shape[: len(before)], *operand.shape[end:])
        for letter, size in zip(before + after, sizes, strict=False):
            lengths[letter] = max(size, lengths.get(letter, 0))
        with suppress(ValueError):  # einsum itself refuses shapes that do not fit
            stack = np.broadcast_shapes(stack, operand.shape[len(before) : end] if dots else ())
    stack = stack if "..." in result else ()
    own = (lengths.get(operand, 1) for operand in result.replace("...", ""))
    call.check_size((*stack, *own), x[0].dtype)


@row("Det", is_on_device=True)
def _determinant(call: Call, x: Any) -> Any:
    return call.xp.call(dp.linalg.det, x)
