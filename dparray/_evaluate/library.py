"""The library backend: one kernel of the device's library for each operation.

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
from dparray._evaluate.plan import LibraryStep
from dparray._evaluate.slots import slot_of
from dparray._graph.assembly import Assembly
from dparray._graph.contractions import Contraction
from dparray._graph.node import Node, Scalar, layout_of
from dparray._graph.ops import CONVERT, WHERE
from dparray._graph.reductions import Reduce
from dparray._layout import Layout
from dparray._runtime import queues
from dparray.device import describe_queue
from dparray.exceptions import AxisError, DparrayError, DTypeError, MemoryError, ShapeError
from dparray.memory import blocks
from dparray.memory.libraries import Library, library_of


def run(
    step: LibraryStep, slots: Sequence[Layout], scalars: Sequence[Any], because: str = ""
) -> None:
    """Compute a step of a plan with these slots and scalars; listeners receive the reason."""
    target = slots[slot_of(step.values[0][1])]
    queue = target.block.queue
    start = _hooks.begin(queue) if _hooks.subscribers else 0.0
    library = library_of(queue)
    with library.calls(queue):
        try:
            _run(library, step, slots, scalars)
        finally:  # Work that was submitted before an error or an interrupt must be recorded, too.
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


def _run(
    library: Library, step: LibraryStep, slots: Sequence[Layout], scalars: Sequence[Any]
) -> None:
    targets = {id(value): slots[slot_of(layout)] for value, layout in step.values}
    last_use: dict[int, int] = {}
    for position, node in enumerate(step.order):
        for operand in node.operands:
            last_use[id(operand)] = position
    queue = next(iter(targets.values())).block.queue
    layouts: dict[int, Layout] = {}
    for position, node in enumerate(step.order):
        target = targets.get(id(node))
        if target is not None and target.dtype == node.dtype:
            result = target
        else:
            result = blocks.allocate(queue, node.usm_type, node.shape, node.dtype)
        operands = [_operand(part, layouts, slots, scalars) for part in node.operands]
        _operation(library, node, operands, result)
        layouts[id(node)] = result
        if target is not None and target is not result:
            _store(library, target, result)
        for operand in node.operands:
            if last_use[id(operand)] == position:
                layouts.pop(id(operand), None)
    if not step.order:
        for value, _ in step.values:
            source = _operand(value, layouts, slots, scalars)
            _store(library, targets[id(value)], source)


def _operand(
    operand: Node | Scalar,
    layouts: Mapping[int, Layout],
    slots: Sequence[Layout],
    scalars: Sequence[Any],
) -> Scalar | Layout:
    """Return a scalar with its value, or the memory of an array."""
    if type(operand) is Scalar:
        return Scalar(scalars[operand.value.number])
    layout = layouts.get(id(operand))
    return slots[slot_of(layout_of(operand))] if layout is None else layout


def _operation(
    library: Library, node: Node, sources: Sequence[Scalar | Layout], result: Layout
) -> None:
    """Compute one operation of an expression, with operands converted to the dtypes of its loop.

    Args:
        library: the library.
        node: the operation.
        sources: the operands: scalars, and layouts.
        result: the destination.
    """
    op = node.op
    assert op is not None
    if type(op) is Contraction and op.implementation is not None:
        op.implementation(sources, result)
        return
    out = library.array(result, as_bits=True)
    call = partial(_called, library, result.block.queue, op.name)
    if isinstance(op, Reduce):
        library.store(out, _reduced(library, call, node, op, sources))
        return
    operands: list[Any] = []
    for operand, dtype in zip(sources, node.signature, strict=False):
        if isinstance(operand, Scalar):
            operands.append(dtype.type(operand.value).item())
            continue
        operands.append(_converted(library, operand, dtype, node.usm_type))
    if type(op) is Assembly:
        if op.fills:
            out[...] = 0
        for to, number, source in op.indices:
            out[to] = operands[number][source]
        return
    if op is CONVERT or (op.keeps_integers and node.dtype.kind in "biu"):
        out[...] = operands[0]
        return
    if op is WHERE:
        operands = [
            operand if library.is_array(operand) else library.asarray(operand, dtype)
            for operand, dtype in zip(operands, node.signature, strict=False)
        ]
    shapes = [each.shape for each in operands if library.is_array(each)]
    # as NumPy does for an `out=` with more dimensions
    if shapes and np.broadcast_shapes(*shapes) != out.shape:
        operands = [
            library.broadcast_to(each, out.shape) if library.is_array(each) else each
            for each in operands
        ]
    function = getattr(library, op.name)
    formula = op.library.get(node.dtype.kind)
    imaginary = op.imaginary if node.dtype.kind == "c" else None
    if formula is None is imaginary:
        call(function, operands, out=out)
        return
    # In C order, because of a defect of `where` (`memory/libraries/dpnp.py`).
    arrays = [library.asarray(each, node.dtype, order="C") for each in operands]
    if formula is None:
        values = call(function, arrays)
    else:
        ready = lambda *sources: call(function, sources)  # noqa: E731
        values = formula(library, library.where, ready, *arrays)
    if imaginary is not None:
        x = arrays[0]
        values.imag[...] = imaginary(library, library.real(x), library.imag(x), values.imag)
    out[...] = values


def _converted(library: Library, layout: Layout, dtype: np.dtype[Any], usm_type: str) -> Any:
    """Return the library's array of an array, or of a copy in another dtype.

    For bfloat16 it is an array of the bits, which are copied but not converted.
    """
    if layout.dtype != dtype:
        copy = blocks.allocate(layout.block.queue, usm_type, layout.shape, dtype)
        _store(library, copy, layout)
        layout = copy
    return library.array(layout, as_bits=True)


def _store(library: Library, target: Layout, source: Layout | Scalar) -> None:
    """Copy an array, with conversion, or a scalar."""
    if isinstance(source, Scalar):
        values = source.value
    else:
        _check_conversion(library, source.dtype, target.dtype)
        values = library.array(source, as_bits=True)
    library.store(library.array(target, as_bits=True), values)


def _check_conversion(library: Library, source: np.dtype[Any], target: np.dtype[Any]) -> None:
    """Raise if the library cannot convert: to it, bfloat16 values are only their bits."""
    if source != target and (_dtypes.is_bfloat16(source) or _dtypes.is_bfloat16(target)):
        raise DTypeError(
            f"{library.name} does not convert {source} to {target}; write x.astype('float32') first"
        )


def _reduced(
    library: Library, call: Callable[..., Any], node: Node, op: Reduce, sources: Sequence[Any]
) -> Any:
    layout, *scalars = sources
    row, loop_dtype = op.reduction, node.signature[0]
    options: dict[str, Any] = {"axis": op.axes, "keepdims": op.keepdims}
    if row.is_positional:
        options["axis"] = op.axes[0] if len(op.axes) < len(layout.shape) else None
    if row.takes_dtype:
        _check_conversion(library, layout.dtype, loop_dtype)
        options["dtype"] = loop_dtype
    if row.takes_correction:
        count = prod(layout.shape[axis] for axis in op.axes)
        options["correction"] = count - scalars[0].value
    return call(getattr(library, op.name), [library.array(layout, as_bits=True)], **options)


def _called(
    library: Library,
    queue: Any,
    name: str,
    function: Callable[..., Any],
    operands: Sequence[Any],
    **options: Any,
) -> Any:
    return library_call(library, queue, name, partial(function, **options), operands)


def library_call(
    library: Library,
    queue: Any,
    name: str,
    function: Callable[..., Any],
    arrays: Sequence[Any],
    usm_type: str = "device",
    details: Mapping[str, str] | None = None,
) -> Any:
    """Call a function of a library, and convert its errors.

    The caller has waited for maps and copies that write the arrays.

    Args:
        library: the library.
        queue: the queue of the arrays.
        name: the public function, for messages.
        function: called with the arrays.
        arrays: the library's arrays, and scalars.
        usm_type: the kind of memory that the library allocates, where it has kinds.
        details: the reason and the memory of the result, for listeners.
    """
    _hooks.recent.append((name, "library", queue, get_ident()))
    start = _hooks.begin(queue) if _hooks.subscribers else 0.0
    try:
        with library.calls(queue, usm_type):
            return function(*arrays)
    except DparrayError:
        raise
    except (library.errors().singular, np.linalg.LinAlgError) as error:
        raise np.linalg.LinAlgError(f"{name}: {error}") from None
    except library.errors().axis as error:
        raise AxisError(f"{name}: {error}") from None
    except library.errors().memory as error:
        raise MemoryError(
            f"{name}: its result or a temporary array is too large for the memory of "
            f"{describe_queue(queue)}"
        ) from error
    except (ValueError, TypeError) as error:
        operands = ", ".join(
            f"{each.dtype}{list(each.shape)}" if library.is_array(each) else repr(each)
            for each in arrays
        )
        kind = ShapeError if isinstance(error, ValueError) else DTypeError
        raise kind(f"{name}({operands}): {error}") from None
    finally:
        queues.note_work(queue)
        if start:
            nbytes = sum(getattr(each, "nbytes", 0) for each in arrays)
            _hooks.emit(
                "library",
                **{"function": name, "queue": queue, "start": start, "nbytes": nbytes}
                | {"because": "", "usm_type": ""}
                | dict(details or {}),
            )
