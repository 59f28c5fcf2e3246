"""Sequences and optional values; a sequence is a list."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from dparray.exceptions import OnnxError
from dparray.onnx.operator_table import Call, checked_axis, is_traced, row


@row("Identity", "Optional", "OptionalGetElement")
def _identity(call: Call, x: Any = None) -> Any:
    return (x,)


@row("OptionalHasElement")
def _has_element(call: Call, x: Any = None) -> Any:
    return np.asarray(x is not None)


@row("SequenceEmpty")
def _empty(call: Call) -> Any:
    return []


@row("SequenceConstruct")
def _construct(call: Call, *x: Any) -> Any:
    return list(x)


@row("SequenceAt")
def _at(call: Call, sequence: Any, position: Any) -> Any:
    return sequence[call.ints(position)[0]]


@row("SequenceInsert")
def _insert(call: Call, sequence: Any, x: Any, position: Any = None) -> Any:
    at = len(sequence) if position is None else call.ints(position)[0]
    result = list(sequence)
    result.insert(at, x)
    return result


@row("SequenceErase")
def _erase(call: Call, sequence: Any, position: Any = None) -> Any:
    result = list(sequence)
    result.pop(-1 if position is None else call.ints(position)[0])
    return result


@row("SequenceLength")
def _length(call: Call, sequence: Any) -> Any:
    return np.asarray(len(sequence), "int64")


@row("ConcatFromSequence")
def _concatenate(call: Call, sequence: Any) -> Any:
    xp = call.run.device if is_traced(sequence) else np
    join = xp.stack if call.get("new_axis", 0) else xp.concatenate
    return join(list(sequence), axis=call["axis"])


@row("SplitToSequence")
def _split(call: Call, x: Any, split: Any = None) -> Any:
    axis = checked_axis(call.get("axis", 0), x.ndim)
    size = x.shape[axis]
    if split is None:
        sizes = [1] * size
    elif call.host(split).ndim:
        sizes = call.ints(split)
    else:
        each = call.ints(split)[0]
        if each < 1:
            raise OnnxError(f"split must be positive, not {each}")
        sizes = [min(each, size - position) for position in range(0, size, each)]
    parts = pieces(x, axis, sizes)
    if split is None and not call.get("keepdims", 1):
        parts = [part.reshape(part.shape[:axis] + part.shape[axis + 1 :]) for part in parts]
    return parts


def pieces(x: Any, axis: int, sizes: list[int]) -> list[Any]:
    """Return views of an array that follow each other along an axis."""
    ends = [0, *np.cumsum(sizes).tolist()]
    before = (slice(None),) * axis
    return [x[before + (slice(start, stop),)] for start, stop in pairwise(ends)]  # noqa: RUF005
