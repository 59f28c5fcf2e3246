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
from dparray._ops import CONVERT, WHERE
from dparray._placement import computes_in_double


@lru_cache(maxsize=64)
def can_compute(queue: Any, usm_type: str) -> bool:
    """Whether the host may compute in such memory, with the same dtypes as the device."""
    return _usm.is_host_accessible(queue, usm_type) and computes_in_double(queue)


def run(outputs: Sequence[tuple[Node | Scalar, Any]]) -> None:
    """Compute each value into its layout."""
    _usm.wait(outputs[0][1].block.queue)
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
            for node in pending_order([value]):
                if id(node) not in values:
                    values[id(node)] = _value(node, _operands(node, values), targets.get(id(node)))


def values_of(value: Node) -> np.ndarray:
    """The values of an expression as a host array; a view of USM memory where they are there."""
    _usm.wait(value.queue)
    if value.layout is not None:
        return _usm.host_view(value.layout)
    values: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for node in pending_order([value]):
            values[id(node)] = _value(node, _operands(node, values), None)
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


def _operands(node: Node, values: dict[int, Any]) -> list[Any]:
    """What the operation is applied to; views of leaves are remembered among the values."""
    operands = []
    for operand in node.operands:
        if type(operand) is Scalar:
            operands.append(operand.value)
            continue
        value = values.get(id(operand))
        if value is None:
            value = values[id(operand)] = _usm.host_view(operand.layout)  # type: ignore[union-attr]
        operands.append(value)
    return operands


def _value(node: Node, operands: list[Any], out: np.ndarray | None) -> Any:
    """One operation in NumPy; into ``out`` where given."""
    op = node.op
    assert op is not None
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
    elif op.name == "expm1" and node.dtype.kind == "c":
        result = _complex_expm1(operands[0], node.dtype)
    elif out is not None:
        return op.ufunc(*operands, out=out, casting="unsafe")
    else:
        return op.ufunc(*operands)
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
