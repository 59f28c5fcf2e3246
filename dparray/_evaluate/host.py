"""The host executor: few elements, computed with NumPy on the calling thread in their own memory.

Only for memory that the host may read and write at its own address, after the work on it: then a
launch would cost more than the work itself. While the queue is idle, an operation is computed
eagerly (:func:`eager_function`), because noting it down would cost more too; while it works, an
expression waits until it is needed (:func:`run`).
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from dparray import _dtypes, _hooks, config
from dparray._evaluate.pieces import Recipe
from dparray._evaluate.plan import HostStep, slot_of
from dparray._graph.node import Node, Scalar, layout_of
from dparray._graph.ops import CONVERT, OPS, WHERE, Op
from dparray._graph.reductions import Reduce
from dparray._layout import Block, Layout
from dparray._placement import USM_TYPES, usm_rule
from dparray._runtime import device_facts, queues
from dparray.memory import copies, pool


@lru_cache(maxsize=64)
def can_compute(queue: Any, usm_type: str) -> bool:
    """Whether the host may compute in such memory, with the same dtypes as the device.

    Of a device that is no CPU it does not: the values would leave it unasked.
    """
    return (
        device_facts.is_cpu(queue)
        and copies.is_host_accessible(queue, usm_type)
        and device_facts.computes_in_double(queue)
    )


#: Operations can be computed eagerly: NumPy promotes as arrays here do, and keeps its handling of
#: floating-point errors in a context variable.
COMPUTES_AT_ONCE = np.lib.NumpyVersion(np.__version__) >= "2.0.0"


class _Silence(threading.local):
    """For each thread a context where NumPy warns of no floating-point error.

    To enter it costs a tenth of what ``np.errstate`` does.
    """

    run: Callable[..., Any]

    def __init__(self) -> None:
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


_silence = _Silence()

#: Larger temporaries lie in the pool's memory: that of the system is fresh each time, and to touch
#: it the first time costs more than the operation.
HEAP_BYTES = 1 << 17

#: So many times an element is written turn by turn where it is repeated, and so many bytes in all:
#: each turn walks the whole result.
_MOST_TURNS, _WIDEST_TURN = 4, 16

#: Raised by NumPy for operands that it does not take, and below where NumPy's function is not the
#: operation. They go another way, which finds the right words.
REFUSALS = (TypeError, ValueError, IndexError, OverflowError, RuntimeError, MemoryError)


def call(function: Callable[..., Any], *args: Any, owner: Any = None) -> Any:
    """Call a NumPy function without warnings; ``None`` if it does not take the arguments.

    Args:
        function: the function.
        *args: its arguments.
        owner: the array whose queue and USM type tracing reports.
    """
    start = time.perf_counter() if _hooks.is_tracing else 0.0
    try:
        result = _silence.run(function, *args)
    except REFUSALS:
        return None
    if start and result is not None:
        _emit_call(function, args, result, start, owner)
    return result


def is_ready(block: Block | None, writes: bool = False) -> bool:
    """Whether the host may read memory now, or write it; never waits.

    ``None`` stands for values that the host has computed, which are in no USM memory yet.
    """
    if not config.host_tier:
        return False
    return block is None or (queues.may_write if writes else queues.may_read)(block)


def eager_function(op: Op) -> Callable[..., Any]:
    """A function that computes the operation on host arrays and Python scalars, as its ufunc does.

    It raises one of ``REFUSALS`` where another way is to be taken.
    """
    ufunc, is_right = op.ufunc, _kinds_of_ufunc(op)
    if is_right is None:
        return ufunc
    simpler = {constant: OPS[name].ufunc for constant, name in op.simpler.items()}

    def checked(*operands: Any) -> Any:
        kinds = [*map(_kind, operands[: op.arity])]
        if not is_right(*kinds):
            raise TypeError(f"{op.name}: not for the host")
        if simpler and type(operands[1]) in (int, float) and ("f" in kinds or "c" in kinds):
            made = simpler.get(operands[1])
            if made is not None:
                x = operands[0]
                return made(x if kinds[0] in "fc" else x.astype(np.float64))
        return ufunc(*operands)

    checked.__name__ = op.name
    return checked


def keeps_dtype(op: Op) -> bool:
    """Whether the result of floats of one dtype has that dtype, and the operation an output."""
    return not op.simpler and "d" * op.arity + "->d" in op.ufunc.types


def in_place(op: Op) -> Callable[..., Any] | None:
    """The same with an output, or ``None`` where the operation has no function for that."""
    if op.ufunc in _NAMES_OUTPUT:
        return _into(op)
    return None if op.simpler else eager_function(op)


#: Ufuncs that want their output by its name.
_NAMES_OUTPUT = (np.maximum, np.minimum)


def _into(op: Op) -> Callable[..., Any]:
    """An operation's ufunc, whose output comes last."""
    ufunc: Any = op.ufunc
    if ufunc not in _NAMES_OUTPUT:
        return ufunc

    def into(*operands: Any) -> Any:
        return ufunc(*operands[:-1], out=operands[-1])

    into.__name__ = op.name
    return into


def write(x: np.ndarray, index: Any, values: Any) -> bool:
    """Write to a part of an array."""
    x[index] = values
    return True


def former(op: Op, dtype: np.dtype[Any], order: str) -> Callable[..., np.ndarray]:
    """A conversion to a dtype, or a choice between operands, as a function of its operands."""
    return lambda *operands: form(op, operands, dtype, order)


def form(op: Op, operands: Sequence[Any], dtype: np.dtype[Any], order: Any = "C") -> np.ndarray:
    """A conversion of host arrays and Python scalars to a dtype, or a choice between them."""
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
    return np.where(mask, x1, x2)


_KINDS = {
    **{scalar: dtype.kind for scalar, dtype in _dtypes.OF_NUMPY_SCALAR.items()},
    bool: "b",
    int: "i",
    float: "f",
    complex: "c",
}


def _kind(operand: Any) -> str:
    """The kind of an array's or a scalar's dtype."""
    if type(operand) is np.ndarray:
        return operand.dtype.kind
    return _KINDS[type(operand)]


def run(
    step: HostStep, layouts: Sequence[Layout], scalars: Sequence[Any], because: str = ""
) -> None:
    """Compute a step of a plan, whose slots and scalars these are; who listens is told why."""
    targets: dict[int, np.ndarray] = {}
    for slot in step.reads:
        queues.wait_to_read(layouts[slot].block)
    for value, layout in step.values:
        target = layouts[slot_of(layout)]
        queues.wait_to_write(target.block)
        targets[id(value)] = copies.host_view(target)
    start = time.perf_counter() if _hooks.subscribers else 0.0
    with np.errstate(all="ignore"):
        is_done = step.recipe is not None and _follow(step.recipe, layouts, scalars)
        if step.order and not is_done:
            _compute(step.order, targets, layouts, scalars, step.reuses)
        for value, _ in () if step.order else step.values:
            out = targets[id(value)]
            if type(value) is Scalar:
                out[...] = scalars[value.value.number]
            else:
                source = layouts[slot_of(layout_of(value))]
                _copy(out, copies.host_view(source))
    names = [node.op.name for node in step.order if node.op is not None]
    name = ", ".join(names) or "a copy"
    _hooks.recent.append((name, "NumPy for", target.block.queue, threading.get_ident()))
    if start:
        _hooks.emit(
            "host",
            queue=target.block.queue,
            function=name,
            start=start,
            because=because,
            nbytes=sum(target.nbytes for target in targets.values())
            + sum(_bytes_read(layouts[slot]) for slot in set(step.reads)),
        )


def _bytes_read(layout: Layout) -> int:
    """The bytes of an array, of which those along broadcast axes are one."""
    steps = zip(layout.shape, layout.strides, strict=True)
    return prod(extent for extent, stride in steps if stride) * layout.dtype.itemsize


def reduced(op: Reduce, values: np.ndarray, scalars: Sequence[Any], loop: np.dtype[Any]) -> Any:
    """A reduction of host values; the scalars are the operation's."""
    row, axes = op.reduction, op.axes
    options: dict[str, Any] = {"axis": axes, "keepdims": op.keepdims}
    if row.is_positional:
        options["axis"] = axes[0] if len(axes) < values.ndim else None
    if "numpy" in row.takes_dtype:
        options["dtype"] = loop
    if row.takes_correction:
        options["ddof"] = prod(values.shape[axis] for axis in axes) - scalars[0]
    return getattr(np, row.name)(values, **options)


_WIDER: dict[str, Any] = dict.fromkeys("?bhilqBHILQ", np.dtype(np.float64))
_WIDER["e"] = np.dtype(np.float32)


def _position_by(method: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction to a position by a method of NumPy's arrays; of real numbers."""

    def fold(x: np.ndarray, axis: Any, dtype: None, out: None, keepdims: bool) -> Any:
        if x.dtype.kind == "c":
            raise TypeError("argmax, argmin: not for the host")
        return method(x, axis, keepdims=keepdims)

    return fold


_add_up: Any = np.add.reduce  # NumPy's types know it with named arguments only


def _mean(x: np.ndarray, axis: Any, dtype: None, out: None, keepdims: bool) -> Any:
    """The mean: integers are added up in double precision, halves in single."""
    total = _add_up(x, axis, _WIDER.get(x.dtype.char), out, keepdims)
    mean = np.true_divide(total, x.size // (total.size or 1))
    return mean.astype(np.float16) if x.dtype.char == "e" else mean


def _variance_by(ddof: float) -> Callable[..., Any]:
    """The variance of real numbers: the mean of the squared distances from the mean."""

    def fold(x: np.ndarray, axis: Any, dtype: None, out: None, keepdims: bool) -> Any:
        total = _add_up(x, axis, _WIDER.get(x.dtype.char), out, True)
        if total.dtype.kind == "c":
            raise TypeError("var: not for the host")
        count = x.size // (total.size or 1)
        distance = x - np.true_divide(total, count)
        squares = _add_up(np.multiply(distance, distance), axis, dtype, out, keepdims)
        result = np.true_divide(squares, max(count - ddof, 0))
        return result.astype(np.float16) if x.dtype.char == "e" else result

    return fold


def _eager_fold(name: str, fold: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction of a host array by what is called as the method ``reduce`` of a ufunc is."""

    def folded(x: np.ndarray, axis: Any, keepdims: Any) -> Any:
        # NumPy takes the axes 0 and -1 of an array that has none.
        if (axis is not None and not x.ndim) or type(keepdims) is not bool:
            raise TypeError(f"{name}: not for the host")
        return fold(x, axis, None, None, keepdims)

    folded.__name__ = name
    return folded


def variance_by(ddof: float) -> Callable[..., Any]:
    """The variance of real numbers, called as ``FOLDS`` are."""
    return _eager_fold("var", _variance_by(ddof))


def deviation_by(ddof: float) -> Callable[..., Any]:
    """The standard deviation of real numbers, called as ``FOLDS`` are."""
    fold = _variance_by(ddof)
    return _eager_fold("std", lambda *args: np.sqrt(fold(*args)))


_FOLDS: dict[str, Callable[..., Any]] = {
    "sum": np.add.reduce,
    "prod": np.multiply.reduce,
    "max": np.maximum.reduce,
    "min": np.minimum.reduce,
    "any": np.logical_or.reduce,
    "all": np.logical_and.reduce,
    "argmax": _position_by(np.ndarray.argmax),
    "argmin": _position_by(np.ndarray.argmin),
    "mean": _mean,
}

#: Reductions of host arrays, called with the array, the axis and `keepdims`.
FOLDS = {name: _eager_fold(name, fold) for name, fold in _FOLDS.items()}


#: The quick ones, one pass of vectors each, by the kinds of dtypes where they are that.
QUICK_FOLDS = {
    **dict.fromkeys(("sum", "mean"), "f"),
    **dict.fromkeys(("max", "min", "argmax", "argmin"), "iuf"),
    **dict.fromkeys(("any", "all"), "biuf"),
}


# Operations that NumPy has no ufunc for, or one of another meaning.
_NO_UFUNC = frozenset(
    op for op in OPS.values() if op.keeps_integers or op.host or op.imaginary is not None
) | {CONVERT, WHERE}


def _kinds_of_ufunc(op: Op) -> Callable[..., bool] | None:
    """For which kinds of operands the ufunc is the operation; ``None`` where for all."""
    if op.host_kinds is not None:
        return op.host_kinds
    if op.imaginary or "c" in op.host:
        return lambda x: x != "c"
    return (lambda x: x == "f") if op.keeps_integers else None


def _compute(
    order: Sequence[Node],
    targets: dict[int, np.ndarray],
    layouts: Sequence[Layout],
    scalars: Sequence[Any],
    reuses: Sequence[int],
) -> None:
    """Compute nodes, operands before users."""
    values: dict[int, Any] = {}  # results, and views of leaves, by id
    own: set[int] = set()  # temporaries, which `values` keeps and which may be written again
    blocks: list[Block] = []  # in which large ones lie
    for node, reused in zip(order, reuses, strict=True):
        operands = []
        op, out = node.op, targets.get(id(node))
        is_reduction = type(op) is Reduce
        for position, operand in enumerate(node.operands):
            if type(operand) is Scalar:
                # In the dtype that the expression was checked with: by itself it would be weak.
                given = scalars[operand.value.number]
                operands.append(given if is_reduction else node.loop[position].type(given))
                continue
            value = values.get(id(operand))
            if value is None:
                layout = layouts[slot_of(layout_of(operand))]
                value = values[id(operand)] = copies.host_view(layout)
            operands.append(value)
        assert op is not None
        if out is not None or isinstance(op, Reduce) or _is_special(op, node):
            found = compute_node(node, operands, out)
        else:
            taken = operands[reused] if reused >= 0 else None
            if id(taken) not in own:
                taken = _large_temporary(node, blocks)
            found = op.ufunc(*operands) if taken is None else None
            if found is None:
                found = op.ufunc(*operands, out=taken, casting="unsafe", signature=node.loop)
            if type(found) is np.ndarray:
                own.add(id(found))
        values[id(node)] = found


def compute_node(node: Node, operands: list[Any], out: np.ndarray | None) -> Any:
    """One operation of arrays and scalars in its dtypes, into ``out`` if that is given."""
    op = node.op
    assert op is not None
    if isinstance(op, Reduce):
        found = reduced(op, operands[0], operands[1:], node.loop[0])
        found = found if found.dtype == node.dtype else found.astype(node.dtype)
        if out is not None:
            np.copyto(out, found, casting="unsafe")
        return found
    if _is_special(op, node):
        return _special(node, op, operands, out)
    return op.ufunc(*operands, out=out, casting="unsafe", signature=node.loop)


def _is_special(op: Op, node: Node) -> bool:
    """Whether an operation of a node is no plain ufunc."""
    return op in _NO_UFUNC and not (op.keeps_integers and _is_plain(op, node))


def _follow(recipe: Recipe, layouts: Sequence[Layout], scalars: Sequence[Any]) -> bool:
    """Compute piece by piece; false if that would not be right."""
    view = copies.host_view
    return recipe.compute(
        [view(layouts[slot_of(layout)]) for layout in recipe.sources],
        [view(layouts[slot_of(layout)]) for layout in recipe.targets],
        [kind(scalars[number]) for number, kind in recipe.scalars],
        _function_of,
    )


def _function_of(node: Node, dtypes: Sequence[np.dtype[Any]]) -> Callable[..., Any]:
    """What computes an operation of operands of some dtypes, into what comes last."""
    op = node.op
    assert type(op) is Op
    if _is_special(op, node):
        return lambda *given: _special(node, op, list(given[:-1]), given[-1])
    if len({*node.loop, *dtypes}) == 1:  # NumPy chooses that by itself
        return _into(op)
    ufunc, loop = op.ufunc, node.loop
    return lambda *given: ufunc(*given[:-1], out=given[-1], casting="unsafe", signature=loop)


def _is_plain(op: Op, node: Node) -> bool:
    """Whether an operation that keeps integers is its ufunc, for the floats of a node."""
    return node.dtype.kind == "f" and "f" not in op.host


def _large_temporary(node: Node, blocks: list[Block]) -> np.ndarray | None:
    """Memory of the pool for a result, if it is large; ``blocks`` is what holds it."""
    nbytes = node.size * node.dtype.itemsize
    if nbytes <= HEAP_BYTES:
        return None
    blocks.append(pool.allocate(node.queue, node.usm_type, nbytes))
    queues.wait_to_write(blocks[-1])
    return np.ndarray(node.shape, node.dtype, blocks[-1].host_bytes)


def _special(node: Node, op: Op, operands: list[Any], out: np.ndarray | None) -> Any:
    """One operation that is no plain ufunc."""
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
    elif op is WHERE or op is CONVERT:
        result = form(op, operands, node.dtype)
    elif op.keeps_integers and node.dtype.kind in "biu":
        result = form(CONVERT, operands, node.dtype)
    elif node.dtype.kind in op.host:
        # For scalars, too, in the result's dtype: their own would be another in older NumPy.
        arrays = [np.asarray(operand, node.dtype) for operand in operands]
        made = op.host[node.dtype.kind](np, np.where, op.ufunc, *arrays)
        result = made if made.dtype == node.dtype else made.astype(node.dtype)
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


def _copy(out: np.ndarray, source: np.ndarray) -> None:
    """Copy an array, converted.

    NumPy walks rows one by one: where each element is repeated a few times, it is quicker to write
    the first of all, then the second.
    """
    is_repeated = source.ndim > 1 and source.shape == out.shape and source.strides[-1] == 0
    if (
        is_repeated
        and out.shape[-1] <= _MOST_TURNS
        and out.shape[-1] * out.itemsize <= _WIDEST_TURN
        and not np.may_share_memory(out, source)
    ):
        for turn in range(out.shape[-1]):
            np.copyto(out[..., turn], source[..., turn], casting="unsafe")
    else:
        np.copyto(out, source, casting="unsafe")


def _is_kept(out: np.ndarray, mask: Any, value: Any, other: Any) -> bool:
    """Whether an array keeps its elements where no others are chosen."""
    return (
        type(other) is type(mask) is np.ndarray
        and other.ctypes.data == out.ctypes.data
        and (other.dtype, other.shape, other.strides) == (out.dtype, out.shape, out.strides)
        and mask.dtype == np.bool_
        and np.can_cast(value.dtype, out.dtype, "same_kind")
        and not np.may_share_memory(mask, out)
    )


# -- tracing -------------------------------------------------------------------------------------


def _emit_call(function: Any, args: Sequence[Any], result: Any, start: float, owner: Any) -> None:
    """Report a call of a NumPy function on the calling thread to the subscribers."""
    name = getattr(function, "__name__", "") or type(function).__name__
    arrays = {id(each): each for each in (*args, result) if isinstance(each, np.ndarray)}
    _hooks.emit(
        "host",
        queue=None if owner is None else owner.sycl_queue,
        function=name,
        start=start,
        nbytes=sum(each.nbytes for each in arrays.values()),
        usm_type="" if owner is None else _RULES[owner.usm_type],
        because=_AT_ONCE,
    )


_AT_ONCE = (
    "so few elements on the host's CPU, in memory that no work writes, are computed at once: a "
    "launch would cost more than the work"
)
_RULES = {usm_type: usm_rule(usm_type, [usm_type]) for usm_type in USM_TYPES}
