"""``apply``: turns every element-wise operation and every reduction into a pending array."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from dparray import _dtypes, _hooks, _layout
from dparray._array import fastpath
from dparray._array.allocation import empty_on, full_scalar
from dparray._array.assignment import assign, writable_layout, write_value
from dparray._array.host_fastpath import array_type, compute_small, view_small
from dparray._array.ndarray import SEQUENCES, living_alias, ndarray
from dparray._array.nodes import array_of_operation, node_of, register
from dparray._array.operands import (
    OVERRIDE,
    WEAK_TYPES,
    check_fits,
    checked_out,
    checked_scalar,
    coerce_operands,
    dispatch_override,
    foreign_operand,
    is_shareable,
    is_taken_from_host,
    scalar_value,
    typed_scalars,
)
from dparray._driver import traits_of
from dparray._evaluate import host, host_operations, limits
from dparray._graph.ops import (
    COMPARISONS,
    CONVERT,
    OPERATORS,
    OPS,
    SINGLE_OPERATORS,
    WHERE,
    Op,
    with_constant,
)
from dparray._graph.reductions import REDUCTION_COST, Reduce, Reduction
from dparray._placement import Placement, check_dtype, common_placement, placement_of
from dparray.device import default_device
from dparray.exceptions import ArgumentError

Binary = Callable[["ndarray", Any], "ndarray"]


def general_operation(op: Op) -> Callable[..., ndarray]:
    """Return an operation of any operands: checked, and pending unless laziness is off."""

    def operate(*operands: Any) -> ndarray:
        return defer(op, operands, None)

    # The methods of arrays show these signatures.
    def operate_on_one(x1: Any) -> ndarray:
        return defer(op, (x1,), None)

    def operate_on_two(x1: Any, x2: Any) -> ndarray:
        return defer(op, (x1, x2), None)

    def operate_or_reduce(x1: Any, x2: Any) -> ndarray:
        """Apply a binary operation; ``x ** 2`` is a square, eager up to a larger size."""
        if type(x1) is ndarray and type(x2) in (int, float) and x1.dtype.kind in "fc":
            cheaper = op.strength_reduced.get(x2)
            if cheaper is not None:
                return OPERATIONS[OPS[cheaper]](x1)
        return defer(op, (x1, x2), None)

    if op.strength_reduced:
        return operate_or_reduce
    by_arity: dict[int, Callable[..., ndarray]] = {1: operate_on_one, 2: operate_on_two}
    return by_arity.get(op.arity, operate)


def _numbered() -> list[Op]:
    of_operators = [*OPERATORS.values(), *COMPARISONS.values(), *SINGLE_OPERATORS.values()]
    first = [OPS[name] for name in of_operators]
    return [*first, *(op for op in OPS.values() if op not in first)]


#: The numbers of the operations in the compiled fast path, operators first.
NUMBERS = {op: number for number, op in enumerate(_numbered())}

#: Every operation as a function of its operands; the compiled fast path computes small ones
#: eagerly.
OPERATIONS: dict[Op, Callable[..., ndarray]] = {
    op: general_operation(op) if fastpath.module is None else fastpath.module.operation(number)
    for op, number in NUMBERS.items()
}

#: The same functions by name: ``ops.less(x, y)``. Where ``x`` is known to be an array, ``x < y``.
ops = SimpleNamespace(**{op.name: function for op, function in OPERATIONS.items()})


def copy_of(x: ndarray, order: str = "C") -> ndarray:
    """Return a copy on the same queue, C-contiguous or (``"K"``) in the order of ``x``; may be
    pending.
    """
    small = compute_small(array_type.copy, x, order)
    if small is not None:
        return small
    signature = (x.dtype, x.dtype)
    return array_of_operation(CONVERT, (x,), signature, x.shape, placement_of(x), order == "K")


def astype_array(x: ndarray, dtype: np.dtype[Any], copy: bool = True, order: str = "K") -> ndarray:
    """Return ``x`` in another dtype; ``x`` itself if nothing changes and no copy is requested.

    Args:
        x: the array.
        dtype: the dtype.
        copy: whether to copy even if nothing changes.
        order: ``"K"``, which keeps the order of ``x``, or ``"C"``.
    """
    if x.dtype == dtype and not copy:
        return x
    check_dtype(dtype, x.queue)
    small = compute_small(array_type.astype, x, dtype, order)
    if small is not None:
        return small
    if not isinstance(x, ndarray):
        return dispatch_override("astype", (x, dtype))
    signature = (dtype, dtype)
    return array_of_operation(CONVERT, (x,), signature, x.shape, placement_of(x), order == "K")


def as_operand(x: ndarray, dtype: np.dtype[Any]) -> ndarray:
    """Return ``x`` in the dtype in which an operation computes.

    Unlike an explicit conversion, it puts the axes of a broadcast array in C order, like results of
    operations.
    """
    if x.dtype == dtype or not _layout.shows_elements_twice(x.shape, x.strides):
        return astype_array(x, dtype, copy=False)
    order = _layout.order_of_axes(x.shape, x.strides)
    if order is None:
        return astype_array(x, dtype, order="C")
    back = sorted(range(len(order)), key=order.__getitem__)
    return with_axes(astype_array(with_axes(x, order), dtype, order="C"), back)


def cast_unsafe(x: ndarray, dtype: np.dtype[Any]) -> ndarray:
    """Return ``x`` in another dtype by the rule ``"unsafe"``: complex numbers lose their imaginary
    parts, as requested by the user.
    """
    if x.dtype.kind == "c" and dtype.kind == "b":
        return array_of_operation(
            OPS["not_equal"],
            (x, 0),
            (x.dtype, x.dtype, dtype),
            x.shape,
            placement_of(x),
        )
    return astype_array(real_parts(x) if dtype.kind != "c" else x, dtype, copy=False)


def real_parts(x: ndarray) -> ndarray:
    """Return the view of the real parts of complex numbers; real arrays unchanged."""
    if x.dtype.kind != "c":
        return x
    return x._view(x.shape, x.strides, x.offset, np.dtype(f"f{x.itemsize // 2}"))


def with_axes(x: ndarray, order: Sequence[int]) -> ndarray:
    """Return the view whose axis ``i`` is axis ``order[i]`` of ``x``; the others have length 1."""
    if len(order) == x.ndim:
        view = view_small(x, array_type.transpose, order)
        if view is not None:
            return view
    shape, strides = x.shape, x.strides
    return x._view(
        tuple([shape[axis] for axis in order]), tuple([strides[axis] for axis in order]), x.offset
    )


def apply(op: Op, *operands: Any, out: ndarray | None = None) -> ndarray:
    """Apply an element-wise operation to arrays and scalars.

    All user errors are raised here: placement, then dtypes, then shapes.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        HostConversionError: an operand is a NumPy array or not an array.
        DTypeError: the operation is not defined for the dtypes, or the result does not fit ``out``.
        ShapeError: the shapes do not broadcast, or not to ``out``.
    """
    if out is None:
        return OPERATIONS[op](*operands)
    if fastpath.module is not None and fastpath.module.operate_into(NUMBERS[op], out, *operands):
        return out
    return defer(op, operands, out)


def defer(op: Op, operands: tuple[Any, ...], out: ndarray | None) -> ndarray:
    """Check an operation and create its pending array, or write its result to ``out``."""
    if type(out) is not ndarray and hasattr(type(out), OVERRIDE):
        return dispatch_override(op.name, operands, out=out)
    arrays: list[tuple[str, ndarray]] = []
    keys: list[Any] = []
    values = list(operands)
    for name, value in zip(op.parameters, operands, strict=True):
        if isinstance(value, ndarray):
            arrays.append((name, value))
            keys.append(value.dtype)
        elif type(value) in WEAK_TYPES:
            keys.append(WEAK_TYPES[type(value)])
        elif hasattr(type(value), OVERRIDE):
            return dispatch_override(op.name, operands, out=out)
        elif type(value) in SEQUENCES or is_shareable(value) or is_taken_from_host(value):
            return apply(op, *coerce_operands(op.name, op.parameters, operands), out=out)
        elif (
            value is None
            and out is None
            and op.comparison == "equality"
            and any(isinstance(operand, ndarray) for operand in operands)
        ):
            return _compare_out_of_range(op, operands, out)
        else:
            values[len(keys)], key = _scalar_operand(op, name, value, operands)
            keys.append(key)
    if not arrays:
        queue = default_device().queue if out is None else checked_out(op.name, out).queue
        # Among themselves, NumPy scalars keep their dtypes.
        for index in typed_scalars(operands, traits_of(queue)) or [0]:
            value = operands[index]
            values[index] = full_scalar(
                value if isinstance(value, np.generic) else values[index], queue
            )
        return apply(op, *values, out=out)
    placed = arrays if out is None else [*arrays, ("out", checked_out(op.name, out))]
    placement = common_placement(op.name, placed, True)
    if out is not None and placement.queue is not out.queue and placement.queue != out.queue:
        placement = placement_of(out)
    if op.keeps_integers and keys[0].kind in "biu":
        signature: tuple[np.dtype[Any], ...] = (keys[0], keys[0])
    else:
        signature = _dtypes.resolve(op.ufunc, tuple(keys))
    shape = arrays[0][1].shape
    if len(arrays) > 1 and arrays[1][1].shape != shape:
        shape = _layout.broadcast_shapes(op.name, [array.shape for _, array in arrays])
    if "fp64" not in traits_of(placement.queue).aspects:
        traits = traits_of(placement.queue)
        signature = tuple(_dtypes.fit_device(dtype, traits) for dtype in signature)
    if len(arrays) < op.arity:
        for position, (value, dtype) in enumerate(zip(values, signature, strict=False)):
            if not isinstance(value, ndarray):
                if op.comparison and dtype.kind in "iu" and not _fits(value, dtype):
                    return _compare_out_of_range(op, operands, out)
                values[position] = checked_scalar(op.name, value, dtype)
    if op.refusal is not None and (why := op.refusal(signature[-1].kind, values[-1])):
        raise ArgumentError(f"{op.name}: {why}")
    if op.strength_reduced:
        op, values, signature = _strength_reduced(op, values, signature)
    if out is None:
        return array_of_operation(op, values, signature, shape, placement)
    return operate_into(out, op, values, signature, shape, placement)


def operate_into(
    out: ndarray,
    op: Op,
    values: Sequence[Any],
    signature: tuple[np.dtype[Any], ...],
    shape: tuple[int, ...],
    placement: Placement,
) -> ndarray:
    """Write the result of a checked operation into an array, like :func:`operate`.

    Raises:
        ShapeError, DTypeError: the result does not fit ``out``.
    """
    check_fits(op.name, shape, signature[-1], out, broadcasts=True)
    if _dtypes.is_bfloat16_used and op is not CONVERT and any(map(_dtypes.is_bfloat16, signature)):
        values = (array_of_operation(op, values, signature, shape, placement),)
        op, signature = CONVERT, (out.dtype, out.dtype)
    if (
        out.shape == shape
        and out.dtype == signature[-1]
        and out.is_pending
        and living_alias(out) is None
    ):
        # No other array references the memory that the pending value would get.
        node = node_of(op, values, signature, shape, Placement(*placement[:1], out.usm_type), False)
        node.axes = out._node_kept.axes
        out._node_kept = register(node)
        node.array = weakref.ref(out)
    elif out.size:
        write_value(op, values, signature, writable_layout(op.name, out), placement)
    return out


def operate(
    op: Op,
    operands: Sequence[Any],
    signature: tuple[np.dtype[Any], ...],
    shape: tuple[int, ...],
    placement: Placement,
    keeps_order: bool = True,
) -> ndarray:
    """Return a new array for a checked operation: pending, unless laziness is off.

    Args:
        op: the operation.
        operands: arrays and Python scalars.
        signature: the dtype each operand is converted to, then the result's.
        shape: the result's shape, to which the operands broadcast.
        placement: the operands' common placement.
        keeps_order: whether the axes have the operands' order in memory, NumPy's order ``"K"``;
            otherwise C order.
    """
    if (op is CONVERT or op is WHERE) and prod(shape) <= limits.host_elements:
        result = compute_small(
            host.former(op, signature[-1], "K" if keeps_order else "C"), *operands
        )
        if result is not None:
            return result
    return array_of_operation(op, operands, signature, shape, placement, keeps_order)


#: Records a reduction of floats in C, if the compiled module exists; ``None`` if it is not simple.
make_lazy_fold: Callable[[ndarray, Reduce, int, tuple[int, ...]], ndarray | None] | None = None


def reduce_array(
    reduction: Reduction,
    x: ndarray,
    axes: tuple[int, ...],
    keepdims: bool,
    loop_dtype: np.dtype[Any],
    dtype: np.dtype[Any],
    *scalars: Any,
) -> ndarray:
    """Return a new array for a checked reduction: pending, unless laziness is off.

    Args:
        reduction: the reduction.
        x: the array, of at least one element.
        axes: the reduced axes, ascending.
        keepdims: whether the result keeps them, with length 1.
        loop_dtype: the dtype that elements and scalars are converted to.
        dtype: the result's dtype.
        *scalars: the reduction's scalar operands.
    """
    op = Reduce(reduction, axes, keepdims)
    if reduction.has_library and x._host_view is not None:
        small = compute_small(
            lambda values: host_operations.reduced(op, values, scalars, loop_dtype), x
        )
        if small is not None:
            return small
    shape = _layout.reduced_shape(x.shape, axes, keepdims)
    is_simple = loop_dtype == dtype == x.dtype and not (scalars or _hooks.subscribers)
    if is_simple and make_lazy_fold is not None and shape.count(0) == 0:
        pending = make_lazy_fold(x, op, REDUCTION_COST, shape)
        if pending is not None:
            return pending
    # float16 is reduced in single precision, and rounded once.
    wide = np.dtype(np.float32) if loop_dtype.char == "e" else loop_dtype
    loops = (*[wide] * (1 + len(scalars)), dtype)
    placement = placement_of(x)
    return array_of_operation(op, (x, *scalars), loops, shape, placement)


def choose_elements(function: str, condition: ndarray, x1: Any, x2: Any) -> ndarray:
    """Return elements of ``x1`` where a mask is true, otherwise of ``x2``; an array determines the
    dtype.

    The operands have been checked to be on one queue, and are arrays of one dtype or scalars.
    """
    operands = (condition, x1, x2)
    taken = dispatch_override("where", operands)
    if taken is not NotImplemented:
        return taken
    arrays = [x for x in operands if isinstance(x, ndarray)]
    like = x1 if isinstance(x1, ndarray) else x2
    shape = _layout.broadcast_shapes(function, [x.shape for x in arrays])
    placement = common_placement(function, [(f"x{i}", x) for i, x in enumerate(arrays)], True)
    signature = (_dtypes.bool, like.dtype, like.dtype, like.dtype)
    return operate(WHERE, operands, signature, shape, placement)


def _scalar_operand(op: Op, name: str, value: Any, operands: Sequence[Any]) -> tuple[Any, Any]:
    """Return a scalar operand of a derived class as a Python scalar, and its role in promotion:
    NumPy scalars by their dtypes, others like Python scalars by their kinds.
    """
    strong = _dtypes.OF_NUMPY_SCALAR.get(type(value))
    if strong is not None:
        return value.item(), strong
    if isinstance(value, np.ndarray) and not value.ndim:  # as NumPy's scalar of its dtype
        return _scalar_operand(op, name, value[()], operands)
    if type(value).__name__ == "bfloat16" and isinstance(value.dtype, np.dtype):  # of ml_dtypes
        return float(value), value.dtype
    if not isinstance(value, bool | int | float | complex):
        queues = (x.queue for x in operands if isinstance(x, ndarray))
        raise foreign_operand(op.name, name, value, next(queues, None))
    weak = complex if isinstance(value, complex) else float if isinstance(value, float) else int
    return value, weak


def _strength_reduced(
    op: Op, values: list[Any], signature: tuple[np.dtype[Any], ...]
) -> tuple[Op, list[Any], tuple[np.dtype[Any], ...]]:
    """Return a cheaper operation for a constant last operand, if there is one."""
    *others, constant = values
    if isinstance(constant, ndarray) or not isinstance(others[0], ndarray):
        return op, values, signature
    if constant in op.constants and signature[-1].kind == "f":
        op = with_constant(op, constant)
    reduced = op.strength_reduced.get(constant)
    if reduced is None or signature[-1].kind not in "iufc" or others[0].dtype.kind == "b":
        return op, values, signature  # NumPy's positive takes no Booleans
    return OPS[reduced], others, (*signature[: len(others)], signature[-1])


def _fits(value: Any, dtype: np.dtype[Any]) -> bool:
    limits = np.iinfo(dtype)
    return bool(limits.min <= value <= limits.max)


def _compare_out_of_range(op: Op, operands: Sequence[Any], out: ndarray | None) -> ndarray:
    """Return the constant result of a comparison with ``None`` or an integer beyond the dtype."""
    first_is_array = isinstance(operands[0], ndarray)
    x = operands[0] if first_is_array else operands[1]
    value = scalar_value(operands[1] if first_is_array else operands[0])
    sample, bound = (0, 1 if value is None or value > 0 else -1)
    answer = bool(op.ufunc(sample, bound) if first_is_array else op.ufunc(bound, sample))
    result = out
    if result is None:
        axes = _layout.order_of_axes(x.shape, x.strides)
        result = empty_on(placement_of(x), x.shape, _dtypes.bool, axes)
    assign(result, answer, op.name)
    return result
