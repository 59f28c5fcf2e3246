"""Host operations: the NumPy calls that compute an expression, bound to numbered values.

They are prepared with a plan, without memory and SYCL; :mod:`dparray._evaluate.host` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import cache, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from dparray import _dtypes
from dparray._codegen.indexing import merge_axes
from dparray._evaluate.slots import slot_of
from dparray._graph.assembly import Assembly, Box
from dparray._graph.node import Node, Scalar, layout_of
from dparray._graph.ops import CONVERT, OPS, WHERE, Op
from dparray._graph.reductions import Reduce
from dparray._layout import Layout
from dparray._system import usable_cores

#: Larger temporaries use pool memory: system memory is fresh each time, and its first access costs
#: more than the operation.
HEAP_BYTES = 1 << 17


#: Limits for writing a repeated element in turns, by repetitions and total bytes: each turn
#: traverses the whole result.
_MAX_TURNS, _WIDEST_TURN = 4, 16


def form(op: Op, operands: Sequence[Any], dtype: np.dtype[Any], order: Any = "C") -> np.ndarray:
    """Return a conversion of host arrays and Python scalars to a dtype, or a selection between
    them.
    """
    if op is CONVERT:
        return np.asarray(operands[0]).astype(dtype, order)
    mask, x1, x2 = (
        operand
        if position == 0
        else operand.astype(dtype, copy=False)
        if isinstance(operand, np.ndarray)
        else dtype.type(operand)
        for position, operand in enumerate(operands)
    )
    if np.size(mask) >= _MIN_BITS and dtype.itemsize in (4, 8) and mask.dtype == np.bool_:
        return _chosen_bits(mask, np.asarray(x1), np.asarray(x2))
    return np.where(mask, x1, x2)


#: NumPy selects element by element, which costs up to 4 ns each for a mask without a pattern. Masks
#: of at least this many elements select bits instead, in vectors.
_MIN_BITS = 1 << 12


def _chosen_bits(mask: np.ndarray, x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    """Return the elements of two arrays of a dtype where a mask is true, otherwise the others."""
    word = np.dtype(f"i{x1.itemsize}")
    mask_bits = np.negative(mask.view(np.int8)).astype(word)
    first, second = x1.view(word), x2.view(word)
    result = np.bitwise_and(np.bitwise_xor(first, second), mask_bits)
    if second.ndim or second:
        result = np.bitwise_xor(result, second)
    return result.view(x1.dtype)


class Call(NamedTuple):
    """One operation of a step: a function of operands and an output.

    Attributes:
        function: called with the list of operands, and with the output or ``None``.
        operands: the numbers of the step's values.
        out: the number of the output array, or -1.
        result: the number of the result.
        size: the size in bytes of a result that uses pool memory, or 0.
        shape, dtype: of that result.
        unneeded: the numbers of temporaries that no later operation reads.
    """

    function: Callable[[list[Any], Any], Any]
    operands: tuple[int, ...]
    out: int
    result: int
    size: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    unneeded: tuple[int, ...]


class HostOperations(NamedTuple):
    """The operations of a host step, bound to numbered values.

    Values are numbered in this order: arrays that are read, arrays that are written, scalars,
    results.

    Attributes:
        name: the names of all operations.
        reads, writes: slots of arrays.
        scalars: the numbers of scalars, each with a converter to its dtype in the expression.
        calls: the operations in order.
        results: the number of results.
    """

    name: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    scalars: tuple[tuple[int, Callable[[Any], Any]], ...]
    calls: tuple[Call, ...]
    results: int


def bind(order: Sequence[Node], stored: Sequence[tuple[Node | Scalar, Layout]]) -> HostOperations:
    """Bind operations to numbered values.

    Args:
        order: the operations, operands before users, with slots for arrays and scalars.
        stored: the stored values, and their layouts.
    """
    inside = {id(node) for node in order}
    apart = [value for value, _ in stored if id(value) not in inside]
    reads: dict[int, int] = {}
    scalars: dict[tuple[int, int], tuple[int, Callable[[Any], Any]]] = {}
    for node in order:
        for position, part in enumerate(node.operands):
            if type(part) is Scalar:
                # In the dtype of the checked expression, since the scalar alone would be weak.
                convert = _as_given if type(node.op) is Reduce else node.signature[position].type
                scalars[id(node), position] = part.value.number, convert
            elif id(part) not in inside:
                reads.setdefault(slot_of(layout_of(part)), len(reads))
    for value in apart:
        if type(value) is Scalar:
            scalars[id(value), 0] = value.value.number, _as_given
        else:
            reads.setdefault(slot_of(layout_of(value)), len(reads))
    first = len(reads)
    targets = {id(value): first + number for number, (value, _) in enumerate(stored)}
    first += len(stored)
    number_of_scalar = {key: first + number for number, key in enumerate(scalars)}
    first += len(scalars)
    number_of = {id(node): first + number for number, node in enumerate(order)}

    def operand(node: Any, position: int, part: Node | Scalar) -> int:
        if type(part) is Scalar:
            return number_of_scalar[id(node), position]
        number = number_of.get(id(part))
        return reads[slot_of(layout_of(part))] if number is None else number

    last_use = {id(part): node for node in order for part in node.operands}
    limited = _limited(order, targets)
    calls = []
    for node in order:
        if id(node) in limited:  # its user computes it
            continue
        out = targets.get(id(node), -1)
        function, takes_out = _function_of(node)
        operands = [operand(node, each, part) for each, part in enumerate(node.operands)]
        inner = node.operands[-1]
        if id(inner) in limited:
            function, takes_out = partial(_clip_into, node.dtype), True
            parts = enumerate(inner.operands)  # type: ignore[union-attr]
            operands[1:] = [operand(inner, each, part) for each, part in parts]
        nbytes = node.size * node.dtype.itemsize
        calls.append(
            Call(
                function,
                tuple(operands),
                out,
                number_of[id(node)],
                nbytes if takes_out and out < 0 and nbytes > HEAP_BYTES else 0,
                node.shape,
                node.dtype,
                tuple(
                    {
                        number_of[id(part)]
                        for part in node.operands
                        if id(part) in inside and last_use[id(part)] is node
                    }
                ),
            )
        )
    for value in apart:
        source = operand(value, 0, value)
        target = targets[id(value)]
        dtype = value.dtype if type(value) is Node else _dtypes.bool
        calls.append(Call(_copy_into, (source,), target, target, 0, (), dtype, ()))
    names = [
        "astype" if node.op is CONVERT else node.op.name for node in order if node.op is not None
    ]
    return HostOperations(
        ", ".join(names) or "a copy",
        tuple(reads),
        tuple([slot_of(layout) for _, layout in stored]),
        tuple(scalars.values()),
        tuple(calls),
        len(order),
    )


def _as_given(value: Any) -> Any:
    return value


def _copy_into(operands: list[Any], out: Any) -> None:
    source = operands[0]
    if type(source) is np.ndarray:
        _copy(out, source)
    else:
        out[...] = source


def reduced(
    op: Reduce, values: np.ndarray, scalars: Sequence[Any], loop_dtype: np.dtype[Any]
) -> Any:
    """Return a reduction of host values; the scalars are the operation's."""
    row, axes = op.reduction, op.axes
    options: dict[str, Any] = {"axis": axes, "keepdims": op.keepdims}
    if row.is_positional:
        options["axis"] = axes[0] if len(axes) < values.ndim else None
    if row.takes_dtype:
        options["dtype"] = loop_dtype
    if row.takes_correction:
        options["ddof"] = prod(values.shape[axis] for axis in axes) - scalars[0]
    return getattr(np, row.name)(values, **options)


# Operations without a NumPy ufunc, or whose ufunc has another meaning.
_NO_UFUNC = frozenset(
    op for op in OPS.values() if op.keeps_integers or op.host or op.imaginary is not None
) | {CONVERT, WHERE}


def _function_of(node: Node) -> tuple[Callable[[list[Any], Any], Any], bool]:
    """Return the function that computes a node in its dtypes, and whether it accepts any output."""
    op = node.op
    assert op is not None
    if isinstance(op, Reduce):
        return partial(_reduce_into, op, node.signature[0], node.dtype), False
    if type(op) is Assembly:
        return partial(_assemble_into, op, node.shape, node.dtype), True
    if _is_special(op, node):
        return partial(_special, node, op), False
    scalars = [position for position, part in enumerate(node.operands) if type(part) is Scalar]
    if op in (_MAXIMUM, _MINIMUM) and len(scalars) == 1 and node.dtype.char in _CLIPPED:
        return partial(_limit_into, op, node.signature, scalars[0]), True
    return partial(_ufunc_into, op.ufunc, node.signature), True


def _limited(order: Sequence[Node], stored: Container[int]) -> set[int]:
    """Return the ids of lower limits to which an upper limit is applied, and nothing else."""
    users: dict[int, int] = {}
    for node in order:
        for part in node.operands:
            users[id(part)] = users.get(id(part), 0) + 1
    return {
        id(inner)
        for node in order
        for inner in node.operands[1:]
        if node.op is _MINIMUM
        and type(inner) is Node
        and inner.layout is None
        and inner.op is _MAXIMUM
        and users[id(inner)] == 1
        and id(inner) not in stored
        and len({*node.signature, *inner.signature}) == 1
        and type(node.operands[0]) is type(inner.operands[0]) is Scalar
        and type(inner.operands[1]) is Node
        and node.dtype.char in _CLIPPED
    }


_MAXIMUM, _MINIMUM = OPS["maximum"], OPS["minimum"]

#: The dtypes for which NumPy limits by scalars faster than it compares with them: there is no
#: vector code for a maximum of an array and a scalar.
_CLIPPED = "bhilqBHILQfd"


def _clip_into(dtype: np.dtype[Any], operands: list[Any], out: Any) -> Any:
    """Return the last operand, limited by the upper and the lower limit before it."""
    upper, lower, x = operands
    if x.dtype == dtype and (out is None or out.dtype == dtype):
        return np.clip(x, lower, upper, out=out)
    clipped = np.minimum(upper, np.maximum(lower, x))
    if out is None:
        return clipped
    np.copyto(out, clipped, casting="unsafe")
    return out


def _limit_into(op: Op, signature: Any, position: int, operands: list[Any], out: Any) -> Any:
    """Return a maximum or minimum of an array and the scalar at ``position``."""
    bound, x = operands[position], operands[1 - position]
    dtype = signature[-1]
    # Of two equal values the second one is the result, which matters for the signs of zeros.
    if x.dtype != dtype or (out is not None and out.dtype != dtype) or (position and not bound):
        return _ufunc_into(op.ufunc, signature, operands, out)
    least, largest = -np.inf, np.inf
    if dtype.kind != "f":
        least, largest = np.iinfo(dtype).min, np.iinfo(dtype).max
    low, high = (bound, largest) if op is _MAXIMUM else (least, bound)
    return np.clip(x, dtype.type(low), dtype.type(high), out=out)


def _ufunc_into(ufunc: Any, signature: Any, operands: list[Any], out: Any) -> Any:
    return ufunc(*operands, out=out, casting="unsafe", signature=signature)


def _assemble_into(
    op: Assembly, shape: tuple[int, ...], dtype: np.dtype[Any], operands: list[Any], out: Any
) -> Any:
    out = np.empty(shape, dtype) if out is None else out
    if op.fills:
        _zero_around(out, op.boxes[0])
    for to, operand, source in op.indices:
        _copy(out[to], operands[operand][source].astype(dtype, copy=False))
    return out


def _zero_around(out: np.ndarray, box: Box) -> None:
    """Write zeros into the elements outside of a box."""
    for axis, (first, count) in enumerate(zip(box.start, box.shape, strict=True)):
        before, out, after = np.split(out, (first, first + count), axis)
        before[...] = after[...] = 0


def _reduce_into(
    op: Reduce, loop_dtype: np.dtype[Any], dtype: np.dtype[Any], operands: list[Any], out: Any
) -> Any:
    result = reduced(op, operands[0], operands[1:], loop_dtype)
    result = result if result.dtype == dtype else result.astype(dtype)
    if out is not None:
        np.copyto(out, result, casting="unsafe")
    return result


def _is_special(op: Op, node: Node) -> bool:
    """Return whether a node's operation is not a plain ufunc."""
    return op in _NO_UFUNC and not (op.keeps_integers and _is_plain(op, node))


def _is_plain(op: Op, node: Node) -> bool:
    """Return whether an operation that keeps integers equals its ufunc for a node's floats."""
    return node.dtype.kind == "f" and "f" not in op.host


def _special(node: Node, op: Op, operands: list[Any], out: np.ndarray | None) -> Any:
    """Return one operation that is no plain ufunc."""
    result: Any
    if op is CONVERT and type(node.operands[0]) is Scalar:
        if out is not None and out.dtype == node.dtype:
            np.copyto(out, operands[0], casting="unsafe")
            return out
        result = np.full(node.shape, operands[0], node.dtype)
    elif op is WHERE and out is not None and _is_kept(out, *operands):
        np.copyto(out, operands[1], casting="unsafe", where=operands[0])  # x[mask] = value
        return out
    elif op is CONVERT and out is not None and node.dtype == out.dtype:
        _copy(out, operands[0])
        return out
    elif op is WHERE or op is CONVERT or (op.keeps_integers and node.dtype.kind in "biu"):
        result = form(op if op is WHERE else CONVERT, operands, node.dtype)
        if result.shape != node.shape:  # a view that repeats elements
            result = np.broadcast_to(result, node.shape)
    elif node.dtype.kind in op.host:
        # Scalars too get the result's dtype: older NumPy would choose another one.
        arrays = [np.asarray(operand, node.dtype) for operand in operands]
        values = op.host[node.dtype.kind](np, np.where, op.ufunc, *arrays)
        result = values if values.dtype == node.dtype else values.astype(node.dtype)
    elif op.imaginary is not None and node.dtype.kind == "c":
        x = np.asarray(operands[0], node.dtype)
        result = np.asarray(op.ufunc(x))
        result.imag = op.imaginary(np, x.real, x.imag, result.imag)
    elif out is not None:
        return op.ufunc(*operands, out=out, casting="unsafe")
    else:
        result = op.ufunc(*operands)
    if out is not None:
        np.copyto(out, result, casting="unsafe")
    return result


#: Copies rows of bytes on several threads, if the compiled module exists.
copy_rows: Callable[..., None] | None = None

#: Copies of at least this many bytes use several threads, if their rows have at least this many.
#: Contiguous arrays are divided into rows of the last size.
_MIN_SHARED, _MIN_ROW, _WHOLE_ROW = 1 << 20, 1 << 9, 1 << 15


def _are_rows_copied(out: np.ndarray, source: np.ndarray) -> bool:
    """Copy an array on several threads, if it has long rows at a constant distance."""
    if (
        copy_rows is None
        or out.nbytes < _MIN_SHARED
        or out.dtype != source.dtype
        or out.shape != source.shape
        or np.may_share_memory(out, source)
    ):
        return False
    walked = merge_axes(range(out.ndim), out.shape, (out.strides, source.strides))
    extents, (steps, steps_of_source) = walked
    if (steps[-1], steps_of_source[-1]) != (out.itemsize,) * 2 or len(extents) > 2:
        return False
    run = extents[-1] * out.itemsize
    if len(extents) == 1:
        count, step, step_of_source, nbytes = run // _WHOLE_ROW, *(_WHOLE_ROW,) * 3
    else:
        count, step, step_of_source, nbytes = extents[0], steps[0], steps_of_source[0], run
    if nbytes < _MIN_ROW:
        return False
    to, start = (each.__array_interface__["data"][0] for each in (out, source))
    copy_rows(to, start, step, step_of_source, count, nbytes, _threads())
    if rest := run % _WHOLE_ROW if len(extents) == 1 else 0:
        copied = run - rest
        copy_rows(to + copied, start + copied, 0, 0, 1, rest, 1)
    return True


@cache
def _threads() -> int:
    return len(usable_cores())


def _copy(out: np.ndarray, source: np.ndarray) -> None:
    """Copy an array, converted.

    NumPy processes rows one by one: if each element is repeated a few times, writing all first
    repetitions, then all second ones, is faster.
    """
    if _are_rows_copied(out, source):
        return
    is_repeated = source.ndim > 1 and source.shape == out.shape and source.strides[-1] == 0
    if (
        is_repeated
        and out.shape[-1] <= _MAX_TURNS
        and out.shape[-1] * out.itemsize <= _WIDEST_TURN
        and not np.may_share_memory(out, source)
    ):
        for turn in range(out.shape[-1]):
            np.copyto(out[..., turn], source[..., turn], casting="unsafe")
    else:
        np.copyto(out, source, casting="unsafe")


def _is_kept(out: np.ndarray, mask: Any, value: Any, other: Any) -> bool:
    """Return whether an array keeps its elements where no others are selected."""
    return (
        type(other) is type(mask) is np.ndarray
        and other.ctypes.data == out.ctypes.data
        and (other.dtype, other.shape, other.strides) == (out.dtype, out.shape, out.strides)
        and mask.dtype == np.bool_
        and np.can_cast(value.dtype, out.dtype, "same_kind")
        and not np.may_share_memory(mask, out)
    )
