"""The library backend: one dpnp.tensor kernel for each operation.

For operations without generated kernels, and for expressions that are not worth compiling yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from threading import get_ident
from typing import Any

import numpy as np

from dparray import _dtypes, _hooks
from dparray._driver import driver_of
from dparray._evaluate.plan import LibraryStep
from dparray._evaluate.slots import slot_of
from dparray._graph.node import Node, Scalar, layout_of
from dparray._graph.ops import CONVERT, WHERE
from dparray._graph.reductions import Reduce
from dparray._layout import Layout
from dparray._runtime import host_maps, queues
from dparray.device import describe_queue
from dparray.exceptions import AxisError, DparrayError, DTypeError, MemoryError, ShapeError
from dparray.memory import blocks
from dparray.memory.libraries import dpnp as exchange
from dparray.memory.libraries.dpnp import dpnp, dpt


def run(
    step: LibraryStep, slots: Sequence[Layout], scalars: Sequence[Any], because: str = ""
) -> None:
    """Compute a step of a plan with these slots and scalars; listeners receive the reason."""
    target = slots[slot_of(step.values[0][1])]
    queue = target.block.queue
    start = _hooks.begin(queue) if _hooks.subscribers else 0.0
    with driver_of(queue).foreign_calls(queue):
        try:
            _run(step, slots, scalars)
        finally:  # Work submitted before an error or an interrupt counts too.
            queues.note_work(queue)
    if start:
        _hooks.emit(
            "library",
            function="an expression",
            queue=queue,
            start=start,
            nbytes=0,
            because=because,
        )


def _run(step: LibraryStep, slots: Sequence[Layout], scalars: Sequence[Any]) -> None:
    targets = {id(value): slots[slot_of(layout)] for value, layout in step.values}
    last_use: dict[int, int] = {}
    for position, node in enumerate(step.order):
        for operand in node.operands:
            last_use[id(operand)] = position
    layouts: dict[int, Layout] = {}
    for position, node in enumerate(step.order):
        target = targets.get(id(node))
        if target is not None and target.dtype == node.dtype:
            result = target
        else:
            result = blocks.allocate(_queue_of(targets), node.usm_type, node.shape, node.dtype)
        operands = [_operand(part, layouts, slots, scalars) for part in node.operands]
        _operation(node, operands, result)
        layouts[id(node)] = result
        if target is not None and target is not result:
            _check_conversion(result.dtype, target.dtype)
            _store(_tensor_of(target), _tensor_of(result))
        for operand in node.operands:
            if last_use[id(operand)] == position:
                layouts.pop(id(operand), None)
    if not step.order:
        for value, _ in step.values:
            source = _operand(value, layouts, slots, scalars)
            target = _tensor_of(targets[id(value)])
            if isinstance(source, Scalar):
                target[...] = source.value
            else:
                _check_conversion(source.dtype, targets[id(value)].dtype)
                _store(target, _tensor_of(source))


def _queue_of(layouts: Mapping[int, Layout]) -> Any:
    return next(iter(layouts.values())).block.queue


def _operand(
    operand: Node | Scalar,
    layouts: Mapping[int, Layout],
    slots: Sequence[Layout],
    scalars: Sequence[Any],
) -> Scalar | Layout:
    """Return a scalar with its value, or the memory of an array."""
    if type(operand) is Scalar:
        return Scalar(scalars[operand.value.number])
    found = layouts.get(id(operand))
    return slots[slot_of(layout_of(operand))] if found is None else found


def _operation(node: Node, given: Sequence[Scalar | Layout], result: Layout) -> None:
    """Compute one operation of an expression, with operands converted to the dtypes of its loop.

    Args:
        node: the operation.
        given: the operands: scalars, and layouts.
        result: the destination.
    """
    op = node.op
    assert op is not None
    out = _tensor_of(result)
    queue = result.block.queue
    if isinstance(op, Reduce):
        _reduce(node, op, given, out)
        return
    operands: list[Any] = []
    for operand, dtype in zip(given, node.signature, strict=False):
        if isinstance(operand, Scalar):
            operands.append(dtype.type(operand.value).item())
            continue
        operands.append(_converted(operand, dtype, node.usm_type))
    if op is CONVERT or (op.keeps_integers and node.dtype.kind in "biu"):
        out[...] = operands[0]
        return
    if op is WHERE:
        operands = [
            operand
            if exchange.is_tensor(operand)
            else dpt.asarray(operand, dtype=dtype, sycl_queue=queue)
            for operand, dtype in zip(operands, node.signature, strict=False)
        ]
        if min(out.strides, default=0) < 0:
            out[...] = _called(op.name, _where, *operands)
            return
    shapes = [each.shape for each in operands if exchange.is_tensor(each)]
    if shapes and np.broadcast_shapes(*shapes) != out.shape:  # as `out=` with more dimensions
        operands = [
            dpt.broadcast_to(each, out.shape) if exchange.is_tensor(each) else each
            for each in operands
        ]
    function = getattr(dpt, op.name)
    made = op.library.get(node.dtype.kind)
    imaginary = op.imaginary if node.dtype.kind == "c" else None
    if made is not None or imaginary is not None:
        # In C order because of `where`.
        arrays = [
            dpt.asarray(each, dtype=node.dtype, sycl_queue=queue, order="C") for each in operands
        ]
        ready = partial(_called, op.name, function)
        found = ready(*arrays) if made is None else made(dpt, _where, ready, *arrays)
        if imaginary is not None:
            x = arrays[0]
            found.imag[...] = imaginary(dpt, dpt.real(x), dpt.imag(x), found.imag)
        out[...] = found
        return
    library_call(op.name, function, operands, (), {"out": out}, lambda tensor: tensor)


def _converted(layout: Layout, dtype: np.dtype[Any], usm_type: str) -> Any:
    """Return the tensor of an array, or of a copy in another dtype."""
    tensor = _tensor_of(layout)
    if layout.dtype == dtype:
        return tensor
    _check_conversion(layout.dtype, dtype)
    copy = _tensor_of(blocks.allocate(layout.block.queue, usm_type, layout.shape, dtype))
    _store(copy, tensor)
    return copy


def _tensor_of(layout: Layout) -> Any:
    """Return the tensor of an array; bfloat16 as its bits, which are copied but not converted."""
    return exchange.tensor_of(layout, as_bits=True)


def _check_conversion(source: np.dtype[Any], target: np.dtype[Any]) -> None:
    """Check that the library can convert, to which bfloat16 is its bits."""
    if source != target and (_dtypes.is_bfloat16(source) or _dtypes.is_bfloat16(target)):
        raise DTypeError(
            f"dpnp does not convert {source} to {target}; write x.astype('float32') first"
        )


def _store(target: Any, source: Any) -> None:
    """Copy a tensor into another, which converts it."""
    if _dtypes.library_converts(source.dtype, target.dtype):
        pass
    elif target.dtype.itemsize < 4:
        source = dpt.astype(source, np.int32)
    elif target.dtype == np.uint32:
        source = dpt.astype(source, np.int64)
    elif source.dtype.itemsize > 2:
        is_high = dpt.greater_equal(source, 2.0**63)
        low = dpt.astype(_where(is_high, dpt.subtract(source, 2.0**63), source), np.int64)
        high = dpt.bitwise_left_shift(dpt.astype(is_high, np.int64), 63)
        source = dpt.bitwise_xor(low, high)
    target[...] = source


def _where(condition: Any, x1: Any, x2: Any) -> Any:
    """Return elements of two tensors; dpnp 0.20 writes outside results with negative strides."""
    return dpt.where(condition, x1, x2, order="C")


def _called(name: str, function: Callable[..., Any], *operands: Any) -> Any:
    """Return the result of a function of tensors, in new memory."""
    return library_call(name, function, operands, (), {}, lambda tensor: tensor)


def _reduce(node: Node, op: Reduce, given: Sequence[Any], out: Any) -> None:
    """Compute a reduction."""
    layout, *scalars = given
    tensor = _tensor_of(layout)
    name, row, loop_dtype = op.name, op.reduction, node.signature[0]
    options: dict[str, Any] = {"axis": op.axes, "keepdims": op.keepdims}
    if row.is_positional:
        options["axis"] = op.axes[0] if len(op.axes) < len(layout.shape) else None
    if "dpnp" in row.takes_dtype:
        options["dtype"] = loop_dtype
    is_converted = "dtype" in options and _dtypes.library_converts(layout.dtype, loop_dtype)
    if row.takes_dtype and not is_converted:
        tensor = _converted(layout, loop_dtype, node.usm_type)
    if row.takes_correction:
        count = prod(layout.shape[axis] for axis in op.axes)
        divisor = scalars[0].value
        options["correction"] = count - divisor if divisor else 0
        if not divisor:  # NumPy's quotient; dpnp returns NaN for all
            found = library_call(name, getattr(dpt, name), [tensor], (), options, _unwrapped)
            out[...] = dpt.divide(found, 0.0)
            return
    found = library_call(name, getattr(dpt, name), [tensor], (), options, _unwrapped)
    if row.is_positional and tensor.dtype.kind == "f":  # dpnp returns the position of the last NaN
        is_nan = dpt.isnan(tensor)
        any_nan = dpt.any(is_nan, axis=options["axis"], keepdims=options["keepdims"])
        found = _where(any_nan, dpt.argmax(dpt.astype(is_nan, "i1"), **options), found)
    _store(out, found)


def _unwrapped(tensor: Any) -> Any:
    return tensor


def library_call(
    name: str,
    function: Callable[..., Any],
    tensors: Sequence[Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    wrap: Callable[[Any], Any],
    because: str = "",
    usm_type: str = "",
) -> Any:
    """Call a function of dpnp.tensor and wrap the returned tensors; convert its errors.

    Listeners receive the reason, and the USM type of the result.
    """
    queue = next(tensor.sycl_queue for tensor in tensors if hasattr(tensor, "sycl_queue"))
    if host_maps.holds:
        host_maps.before_reading_tensors(tensors)
    _hooks.recent.append((name, "library", queue, get_ident()))
    start = _hooks.begin(queue) if _hooks.subscribers else 0.0
    try:
        with driver_of(queue).foreign_calls(queue):
            result = function(*tensors, *args, **kwargs)
    except (DparrayError, np.linalg.LinAlgError):
        raise
    except dpnp.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(f"{name}: {error}") from None
    except dpnp.exceptions.AxisError as error:
        raise AxisError(f"{name}: {error}") from None
    except exchange.allocation_error() as error:
        raise MemoryError(
            f"{name}: its result or a temporary array is too large for the memory of "
            f"{describe_queue(queue)}"
        ) from error
    except (ValueError, TypeError) as error:
        operands = ", ".join(
            f"{tensor.dtype}{list(tensor.shape)}" if hasattr(tensor, "shape") else repr(tensor)
            for tensor in tensors
        )
        kind = ShapeError if isinstance(error, ValueError) else DTypeError
        raise kind(f"{name}({operands}): {error}") from None
    finally:
        for tensor in tensors:
            if exchange.is_tensor(tensor):
                queues.note_work(tensor.sycl_queue)
        if start:
            nbytes = sum(getattr(tensor, "nbytes", 0) for tensor in tensors)
            _hooks.emit(
                "library",
                function=name,
                queue=queue,
                start=start,
                nbytes=nbytes,
                because=because,
                usm_type=usm_type,
            )
    return _wrapped(result, wrap)


def _wrapped(result: Any, wrap: Callable[[Any], Any]) -> Any:
    if exchange.is_tensor(result):
        return wrap(result)
    if exchange.is_dpnp(result):
        return wrap(result._array_obj)
    if isinstance(result, tuple | list):
        parts = [_wrapped(part, wrap) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result
