"""The host backend: NumPy computes few elements on the calling thread in their own memory.

Only for host-accessible memory, after the work on it, because a launch would cost more than the
work. While the queue is idle, an operation is computed eagerly (:func:`eager_function`), because
recording it would cost more too. While the queue works, an expression waits until it is needed
(:func:`run`).
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from dparray import _dtypes, _hooks, config
from dparray._driver import traits_of
from dparray._evaluate.host_operations import HostOperations, form
from dparray._graph.ops import OPS, Op
from dparray._layout import Block, Layout
from dparray._placement import usm_rule
from dparray._runtime import queues
from dparray.device import USM_TYPES
from dparray.memory import copies, pool

if TYPE_CHECKING:
    from dparray._evaluate.plan import HostStep


@lru_cache(maxsize=64)
def can_compute(queue: Any, usm_type: str) -> bool:
    """Return whether the host may compute in such memory, with the same dtypes as the device.

    Never on a device that is not a CPU: values would leave it without a request.
    """
    return (
        traits_of(queue).shares_memory
        and copies.is_host_accessible(queue, usm_type)
        and "fp64" in traits_of(queue).aspects
    )


#: Operations can be computed eagerly: NumPy promotes like dparray, and stores its floating-point
#: error handling in a context variable.
COMPUTES_AT_ONCE = np.lib.NumpyVersion(np.__version__) >= "2.0.0"


class _Silence(threading.local):
    """One context for each thread, in which NumPy never warns of floating-point errors.

    Entering it costs a tenth of ``np.errstate``.
    """

    run: Callable[..., Any]

    def __init__(self) -> None:
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


_silence = _Silence()


#: The same for steps. A context cannot be entered twice, and a finalizer, or a thread that computes
#: a deferred step, may run a step meanwhile.
_step_silence = _Silence()
_is_entered = threading.Lock()


#: Raised by NumPy for unsupported operands, and below if NumPy's function differs from the
#: operation. These cases take the general path, which raises the right error.
FALLBACK_ERRORS = (TypeError, ValueError, IndexError, OverflowError, RuntimeError, MemoryError)


def call(function: Callable[..., Any], *args: Any, owner: Any = None) -> Any:
    """Call a NumPy function without warnings; return ``None`` if it rejects the arguments.

    Args:
        function: the function.
        *args: its arguments.
        owner: the array whose queue and USM type tracing reports.
    """
    start = time.perf_counter() if _hooks.is_tracing else 0.0
    try:
        result = _silence.run(function, *args)
    except FALLBACK_ERRORS:
        return None
    if start and result is not None:
        _emit_call(function, args, result, start, owner)
    return result


def is_ready(block: Block | None, writes: bool = False) -> bool:
    """Return whether the host may read or write memory now; never waits.

    ``None`` stands for host values that are not in USM memory yet.
    """
    if not config.host_tier:
        return False
    return block is None or (queues.may_write if writes else queues.may_read)(block)


def eager_function(op: Op) -> Callable[..., Any]:
    """Return a function that computes the operation on host arrays and Python scalars like its
    ufunc.

    It raises one of ``FALLBACK_ERRORS`` if the general path must be taken.
    """
    ufunc, is_right = op.ufunc, _kinds_of_ufunc(op)
    if is_right is None:
        return ufunc
    reduced = {constant: OPS[name].ufunc for constant, name in op.strength_reduced.items()}

    def checked(*operands: Any) -> Any:
        kinds = [*map(_kind, operands[: op.arity])]
        if not is_right(*kinds):
            raise TypeError(f"{op.name}: not for the host")
        if reduced and type(operands[1]) in (int, float) and ("f" in kinds or "c" in kinds):
            simpler = reduced.get(operands[1])
            if simpler is not None:
                x = operands[0]
                return simpler(x if kinds[0] in "fc" else x.astype(np.float64))
        return ufunc(*operands)

    checked.__name__ = op.name
    return checked


def in_place(op: Op) -> Callable[..., Any] | None:
    """Return the same with an output, or ``None`` if the operation has no such function."""
    if op.ufunc in _NAMES_OUTPUT:
        return _into(op)
    return None if op.strength_reduced else eager_function(op)


#: Ufuncs that need their output as a keyword.
_NAMES_OUTPUT = (np.maximum, np.minimum)


def _into(op: Op) -> Callable[..., Any]:
    """Return an operation's ufunc, whose output comes last."""
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
    """Return a conversion to a dtype, or a selection between operands, as a function of its
    operands.
    """
    return lambda *operands: form(op, operands, dtype, order)


_KINDS = {
    **{scalar: dtype.kind for scalar, dtype in _dtypes.OF_NUMPY_SCALAR.items()},
    bool: "b",
    int: "i",
    float: "f",
    complex: "c",
}


def _kind(operand: Any) -> str:
    """Return the kind of an array's or a scalar's dtype."""
    if type(operand) is np.ndarray:
        return operand.dtype.kind
    return _KINDS[type(operand)]


def run(
    step: HostStep, layouts: Sequence[Layout], scalars: Sequence[Any], because: str = ""
) -> float:
    """Compute a step of a plan; return the seconds that it took, without waits for other work.

    Args:
        step: the step.
        layouts: the arrays in the plan's slots.
        scalars: the values of the plan's scalars.
        because: the reason for subscribers.
    """
    work = step.operations
    values: list[Any] = []
    for slot in work.reads:
        layout = layouts[slot]
        if layout.block.queue in queues.working:
            queues.wait_to_read(layout.block)
        values.append(copies.host_view(layout))
    for slot in work.writes:
        layout = layouts[slot]
        if layout.block.queue in queues.working:
            queues.wait_to_write(layout.block)
        values.append(copies.host_view(layout))
    queue = layout.block.queue
    for number, convert in work.scalars:
        values.append(convert(scalars[number]))
    start = time.perf_counter()
    if _is_entered.acquire(blocking=False):
        try:
            _step_silence.run(_carry_out, work, values, queue, layout.block.usm_type)
        finally:
            _is_entered.release()
    else:
        with np.errstate(all="ignore"):
            _carry_out(work, values, queue, layout.block.usm_type)
    seconds = time.perf_counter() - start
    _hooks.recent.append((work.name, "NumPy for", queue, threading.get_ident()))
    if _hooks.subscribers:
        _hooks.emit(
            "host",
            queue=queue,
            function=work.name,
            start=start,
            because=because,
            nbytes=sum(values[len(work.reads) + write].nbytes for write in range(len(work.writes)))
            + sum(_bytes_read(layouts[slot]) for slot in set(step.reads)),
        )
    return seconds


def _carry_out(work: HostOperations, values: list[Any], queue: Any, usm_type: str) -> None:
    """Compute operations; large temporaries are in pool memory until their last use."""
    calls = work.calls
    if len(calls) == 1:
        call = calls[0]
        call.function(list(map(values.__getitem__, call.operands)), values[call.out])
        return
    values += [None] * work.results
    blocks: dict[int, Block] = {}
    for call in calls:
        out = values[call.out] if call.out >= 0 else None
        if call.size:
            block = blocks[call.result] = pool.allocate(queue, usm_type, call.size)
            queues.wait_to_write(block)
            out = np.ndarray(call.shape, call.dtype, block.host_bytes)
        result = call.function([values[each] for each in call.operands], out)
        values[call.result] = out if result is None else result
        for number in call.unneeded:
            values[number] = None
            blocks.pop(number, None)


def _bytes_read(layout: Layout) -> int:
    """Return the bytes of an array, counting broadcast axes once."""
    steps = zip(layout.shape, layout.strides, strict=True)
    return prod(extent for extent, stride in steps if stride) * layout.dtype.itemsize


_WIDER: dict[str, Any] = dict.fromkeys("?bhilqBHILQ", np.dtype(np.float64))
_WIDER["e"] = np.dtype(np.float32)


def _position_by(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reduction to a position by a NumPy array method, for real numbers."""

    def fold(x: np.ndarray, axis: Any, dtype: None, out: None, keepdims: bool) -> Any:
        if x.dtype.kind == "c":
            raise TypeError("argmax, argmin: not for the host")
        return method(x, axis, keepdims=keepdims)

    return fold


_add_up: Any = np.add.reduce  # NumPy's type stubs require named arguments.


def _mean(x: np.ndarray, axis: Any, dtype: None, out: None, keepdims: bool) -> Any:
    """Return the mean: integers are summed in double precision, float16 in single precision."""
    total = _add_up(x, axis, _WIDER.get(x.dtype.char), out, keepdims)
    mean = np.true_divide(total, x.size // (total.size or 1))
    return mean.astype(np.float16) if x.dtype.char == "e" else mean


def _variance_by(ddof: float) -> Callable[..., Any]:
    """Return the variance of real numbers: the mean of the squared distances from the mean."""

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
    """Return a reduction of a host array by a function with the interface of ``ufunc.reduce``."""

    def folded(x: np.ndarray, axis: Any, keepdims: Any) -> Any:
        # NumPy accepts the axes 0 and -1 for a 0-d array.
        if (axis is not None and not x.ndim) or type(keepdims) is not bool:
            raise TypeError(f"{name}: not for the host")
        return fold(x, axis, None, None, keepdims)

    folded.__name__ = name
    return folded


def variance_by(ddof: float) -> Callable[..., Any]:
    """Return the variance of real numbers, called as ``FOLDS`` are."""
    return _eager_fold("var", _variance_by(ddof))


def deviation_by(ddof: float) -> Callable[..., Any]:
    """Return the standard deviation of real numbers, called as ``FOLDS`` are."""
    fold = _variance_by(ddof)
    return _eager_fold("std", lambda *args: np.sqrt(fold(*args)))


def _count(x: np.ndarray, axis: Any, dtype: None, out: None, keepdims: bool) -> Any:
    return np.count_nonzero(x, axis, keepdims=keepdims)


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
    "count_nonzero": _count,
}

#: Reductions of host arrays, called with the array, the axis and `keepdims`.
FOLDS = {name: _eager_fold(name, fold) for name, fold in _FOLDS.items()}


#: The fast ones, one vectorized pass each: the kinds of dtypes, after a "+" for sums.
QUICK_FOLDS = {
    **dict.fromkeys(("sum", "mean"), "+f"),
    **dict.fromkeys(("max", "min", "argmax", "argmin"), "iuf"),
    **dict.fromkeys(("any", "all"), "biuf"),
    "count_nonzero": "b",
}


def fold_mode(name: str) -> str:
    """Return the mode of a reduction's fast path (:mod:`dparray._functions.public`)."""
    return f"fold {QUICK_FOLDS[name]}" if name in QUICK_FOLDS else "plain"


def _kinds_of_ufunc(op: Op) -> Callable[..., bool] | None:
    """Return the operand kinds for which the ufunc equals the operation; ``None`` for all."""
    if op.host_kinds is not None:
        return op.host_kinds
    if op.imaginary or "c" in op.host:
        return lambda x: x != "c"
    return (lambda x: x == "f") if op.keeps_integers else None


# -- tracing -------------------------------------------------------------------------------------


def _emit_call(function: Any, args: Sequence[Any], result: Any, start: float, owner: Any) -> None:
    """Report a call of a NumPy function on the calling thread to the subscribers."""
    name = getattr(function, "__name__", "")
    if not hasattr(np, name):  # a function of dparray's own stands in for NumPy's
        name = _hooks.public_name() or name
    arrays = {id(each): each for each in (*args, result) if isinstance(each, np.ndarray)}
    _hooks.emit(
        "host",
        queue=None if owner is None else owner.queue,
        function=name,
        start=start,
        nbytes=sum(each.nbytes for each in arrays.values()),
        usm_type="" if owner is None else _RULES[owner.usm_type],
        because=_AT_ONCE,
    )


_AT_ONCE = (
    "so few elements on the host's CPU, in memory that no work writes, are computed immediately: a "
    "launch would cost more than the work"
)
_RULES = {usm_type: usm_rule(usm_type, [usm_type]) for usm_type in USM_TYPES}
