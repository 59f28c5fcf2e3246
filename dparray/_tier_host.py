"""The host tier: few elements, computed with NumPy on the calling thread in the arrays' own memory.

Only for memory that the host may read and write at its own address, after the queue's work: then a
launch would cost more than the work itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dparray import _usm
from dparray._expr import Node, Scalar, pending_order
from dparray._ops import CONVERT, OPS, WHERE, Op
from dparray._placement import computes_in_double


@lru_cache(maxsize=64)
def can_compute(queue: Any, usm_type: str) -> bool:
    """Whether the host may compute in such memory, with the same dtypes as the device."""
    return _usm.is_host_accessible(queue, usm_type) and computes_in_double(queue)


def run(outputs: Sequence[tuple[Node | Scalar, Any]]) -> None:
    """Compute each value into its layout."""
    _usm.wait_if_working(outputs[0][1].block.queue)
    targets = {id(value): _usm.host_view(layout) for value, layout in outputs}
    values: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for value, _ in outputs:
            out = targets[id(value)]
            if type(value) is Scalar:
                out[...] = value.value
                continue
            assert type(value) is Node
            if value.layout is not None:
                np.copyto(out, _usm.host_view(value.layout), casting="unsafe")
                continue
            if id(value) not in values:
                _compute(pending_order([value]), values, targets)


def values_of(value: Node) -> np.ndarray:
    """The values of an expression as a host array; a view of USM memory where they are there."""
    _usm.wait_if_working(value.queue)
    if value.layout is not None:
        return _usm.host_view(value.layout)
    values: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        _compute(pending_order([value]), values, {})
    return np.asarray(values[id(value)])


def reduce(name: str, value: Node, axes: tuple[int, ...], loop: np.dtype[Any], target: Any) -> None:
    """Reduce an expression over axes into ``target``."""
    values = values_of(value)
    with np.errstate(all="ignore"):
        if name in ("sum", "prod"):
            result = getattr(np, name)(values, axis=axes, dtype=loop)
        else:
            result = getattr(np, name)(values, axis=axes)
    _usm.host_view(target)[...] = np.reshape(result, target.shape)


# What NumPy has no ufunc for, or one of another meaning.
_NO_UFUNC = frozenset(
    op for op in OPS.values() if op.keeps_integers or op.imaginary is not None
) | {CONVERT, WHERE, OPS["expm1"], OPS["pow"]}


def _compute(order: Sequence[Node], values: dict[int, Any], targets: dict[int, np.ndarray]) -> None:
    """Compute nodes, operands before users; results and views of leaves go to ``values`` by id."""
    for node in order:
        key = id(node)
        if key in values:
            continue
        operands = []
        for operand in node.operands:
            if type(operand) is Scalar:
                operands.append(operand.value)
                continue
            value = values.get(id(operand))
            if value is None:
                layout = operand.layout  # type: ignore[union-attr]
                value = values[id(operand)] = _usm.host_view(layout)
            operands.append(value)
        op, out = node.op, targets.get(key)
        assert op is not None
        if op in _NO_UFUNC:
            values[key] = _special(node, op, operands, out)
        elif out is None:
            values[key] = op.ufunc(*operands)
        else:
            values[key] = op.ufunc(*operands, out=out, casting="unsafe")


def _special(node: Node, op: Op, operands: list[Any], out: np.ndarray | None) -> Any:
    """One operation that is no plain ufunc."""
    result: Any
    if op is CONVERT or (op.keeps_integers and node.dtype.kind in "biu"):
        result = np.asarray(operands[0]).astype(node.dtype)
    elif op is WHERE:
        result = np.where(
            operands[0],
            *(
                operand if isinstance(operand, np.ndarray) else node.dtype.type(operand)
                for operand in operands[1:]
            ),
        )
    elif op.name == "pow" and node.dtype.kind == "i":
        # NumPy refuses negative exponents when it meets one, long after the line that is to blame;
        # the library's kernels give 0, so all tiers do.
        base, exponent = operands
        result = np.power(base, np.maximum(exponent, 0), dtype=node.dtype)
        result = np.where(np.less(exponent, 0), 0, result)
    elif op.name == "expm1" and node.dtype.kind == "c":
        result = _complex_expm1(operands[0], node.dtype)
    elif op.imaginary is not None and node.dtype.kind == "c":
        x = np.asarray(operands[0], node.dtype)
        result = np.asarray(op.ufunc(x))
        result.imag = op.imaginary(np, x.real, x.imag, result.imag)
    else:
        result = op.ufunc(*operands)
    if out is not None:
        np.copyto(out, result, casting="unsafe")
    return result


def _complex_expm1(x: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """`exp(x) - 1` with the values at infinities and on the real axis that NumPy has not."""
    x = np.asarray(x, dtype)
    result = np.where(np.isfinite(x), np.expm1(x), np.exp(x) - 1)
    on_axis = x.imag == 0
    result.real[on_axis] = np.expm1(x.real[on_axis])
    result.imag[on_axis] = x.imag[on_axis]
    return result
