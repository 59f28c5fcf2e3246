"""Evaluation: the way from an expression to work on a queue.

Read from the top: :func:`evaluate` and :func:`store` are the only entries, :func:`_run` chooses one
of three tiers, and each tier is one function:

- *host*: few elements in memory that the host may read and write at its own address are computed on
  the calling thread with NumPy, because a launch would cost more than the work;
- *fused*: one generated kernel for the whole expression;
- *library*: the ready kernels of dpnp.tensor, one for each operation, where an operation cannot be
  generated, or where a structure is not worth compiling yet.

:func:`launch_kernel` is where every kernel, generated or written by hand, is launched.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from ctypes import c_int64, c_uint64
from math import prod
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np
from dpnp.exceptions import AxisError as LibraryAxisError

from dparray import _codegen, _codegen_reduction, _compiler, _hooks, _usm, config
from dparray._expr import Node, Scalar, pending_order
from dparray._launcher import Bound, launch
from dparray._ops import CONVERT, WHERE
from dparray._schedule import (
    HOST_ELEMENTS,
    is_worth_compiling,
    is_worth_storing,
    must_be_stored_first,
)
from dparray._usm import library, neighbour
from dparray.exceptions import AxisError, DparrayError, DTypeError, ShapeError

if TYPE_CHECKING:
    from dpctl import SyclEvent, SyclQueue

# A block whose memory somebody outside can write at any time: nothing may be deferred on it.
SHARED: tuple[()] = ()

# Above this many notes of readers, those that are computed or gone are dropped.
MOST_READERS = 64

_lock = threading.RLock()


def evaluate(*nodes: Node) -> None:
    """Compute pending nodes; returns when the work is submitted, not when it is done."""
    with _lock:
        for node in nodes:
            if node.layout is None:
                target = _usm.allocate(node.queue, node.usm_type, node.shape, node.dtype)
                _run(node, target)
                node.complete(target)


def store(value: Node | Scalar, target: Any) -> None:
    """Write a value into an existing layout of the same shape, converted to its dtype.

    Whatever is pending and reads the memory is computed first, so that it sees the old values.
    """
    with _lock:
        settle_readers(target.block, value)
        if type(value) is Node and _overlaps(value, target):
            value = _detached(value)
        _run(value, target)


def settle_readers(block: Any, value: Node | Scalar | None = None) -> None:
    """Compute the pending nodes that read ``block``, which is about to be written.

    Nodes that are computed with the write, as operands of ``value``, stay pending unless somebody
    else can still ask for them.
    """
    readers = block.readers
    if not readers:
        return
    block.readers = None
    used = pending_order([value])[:-1] if type(value) is Node else []
    uses: dict[int, int] = dict.fromkeys(map(id, used), 0)
    for user in (*used, value) if used else ():
        for operand in user.operands:  # type: ignore[union-attr]
            if id(operand) in uses:
                uses[id(operand)] += 1
    for node in used:
        # Three references are ours: the list `used`, the name `node`, and getrefcount's argument.
        if node.layout is None and getrefcount(node) > uses[id(node)] + 3:
            evaluate(node)
    for reference in readers:
        reader = reference()
        if reader is not None and reader.layout is None and id(reader) not in uses:
            evaluate(reader)


def settle_arguments(arguments: Sequence[Any]) -> None:
    """Compute what is pending on the arguments of a kernel, which may write any of them."""
    for argument in arguments:
        block = getattr(argument, "block", None)
        if block is not None and block.readers:
            with _lock:
                settle_readers(block)


def note_reader(node: Node, operand: Node) -> bool:
    """Remember that a pending node reads ``operand``; false if that lies in shared memory."""
    holder: Any = operand if operand.layout is None else operand.layout.block
    readers = holder.users if operand.layout is None else holder.readers
    if readers is SHARED:
        return False
    if readers is None:
        readers = []
        if operand.layout is None:
            holder.users = readers
        else:
            holder.readers = readers
    elif len(readers) > MOST_READERS:
        readers[:] = [
            reference
            for reference in readers
            if (reader := reference()) is not None and reader.layout is None
        ]
    readers.append(weakref.ref(node))
    return True


def share(block: Any) -> None:
    """The block's memory leaves our hands: compute what reads it, and defer no more on it."""
    with _lock:
        settle_readers(block)
        block.readers = SHARED


def reduce(
    name: str, value: Node, axes: tuple[int, ...], loop: np.dtype[Any], target: Any
) -> bool:
    """Reduce an expression over ``axes`` into ``target``; false if only the library can.

    Args:
        name: ``"sum"``, ``"prod"``, ``"max"``, ``"min"``, ``"all"`` or ``"any"``.
        value: what is reduced, of at least one element; computed inside the kernel if pending.
        axes: the reduced axes, counted from the front.
        loop: the dtype to accumulate in, which is the target's.
        target: a contiguous layout, shaped as the value with the reduced axes left out or of
            extent 1.
    """
    with _lock:
        if value.layout is None and is_worth_storing(value) and _is_held_elsewhere(value):
            evaluate(value)
        if value.size <= HOST_ELEMENTS and config.host_tier and _host_may_compute(target):
            _reduce_on_host(name, value, axes, loop, target)
            return True
        for node in pending_order([value])[:-1]:
            if node.layout is None and must_be_stored_first(node, value.size):
                evaluate(node)
        if not _codegen_reduction.can_reduce(name, value, loop):
            return False
        if _leaf_count(pending_order([value])) > _codegen.MOST_ARRAYS:
            evaluate(value)
        inner = _last_run(axes)
        if inner != axes:
            return _reduce_run_by_run(name, value, axes, inner, loop, target)
        return _reduce_fused(name, value, axes, loop, target)


def _last_run(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The adjacent axes at the end: one loop can walk them."""
    ordered = sorted(axes)
    start = len(ordered) - 1
    while start > 0 and ordered[start - 1] == ordered[start] - 1:
        start -= 1
    return tuple(ordered[start:]) if start > 0 else axes


def _reduce_run_by_run(
    name: str,
    value: Node,
    axes: tuple[int, ...],
    inner: tuple[int, ...],
    loop: np.dtype[Any],
    target: Any,
) -> bool:
    """Reduce the innermost run of adjacent axes, then the others."""
    shape = tuple(1 if axis in inner else extent for axis, extent in enumerate(value.shape))
    partial = _usm.allocate(value.queue, value.usm_type, shape, loop)
    rest = tuple(axis for axis in axes if axis not in inner)
    return _reduce_fused(name, value, inner, loop, partial) and reduce(
        name, Node.leaf(partial, value.queue, value.usm_type), rest, loop, target
    )


def _is_held_elsewhere(node: Node) -> bool:
    """Whether an array or another expression can still ask for the value of ``node``."""
    # Four references are ours: the caller's and this function's names, the array that is being
    # reduced, and getrefcount's argument; the caller's caller has the node as a temporary.
    return getrefcount(node) > _REFERENCES_WHILE_REDUCING


_REFERENCES_WHILE_REDUCING = 5


# -- the tiers ------------------------------------------------------------------------------------


def _run(value: Node | Scalar, target: Any) -> None:
    """Compute ``value`` into ``target``, a layout of its shape."""
    size = prod(target.shape)
    if size == 0:
        return
    if size <= HOST_ELEMENTS and config.host_tier and _host_may_compute(target):
        _run_on_host(value, target)
        return
    if type(value) is Node:
        for node in pending_order([value])[:-1]:
            if node.layout is None and must_be_stored_first(node, size):
                evaluate(node)
        if value.layout is None and not _codegen.can_generate(value):
            for operand in value.operands:
                if type(operand) is Node:
                    evaluate(operand)
            _run_in_library(value, target)
            return
        while len(order := pending_order([value])) and _leaf_count(order) > _codegen.MOST_ARRAYS:
            evaluate(order[(len(order) - 1) // 2])
    if not _run_fused(value, target, size):
        _run_in_library(value, target)


def _host_may_compute(target: Any) -> bool:
    queue = target.block.queue
    return bool(
        _usm.is_host_accessible(queue, target.block.usm_type) and queue.sycl_device.has_aspect_fp64
    )


def _run_on_host(value: Node | Scalar, target: Any) -> None:
    """Compute on the calling thread, after the queue's work, directly in USM memory."""
    _usm.wait(target.block.queue)
    out = _usm.host_view(target)
    if type(value) is Scalar:
        out[...] = value.value
        return
    assert type(value) is Node
    if value.layout is not None:
        np.copyto(out, _usm.host_view(value.layout), casting="unsafe")
        return
    values: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for node in pending_order([value]):
            values[id(node)] = _host_value(
                node, _host_operands(node, values), out if node is value else None
            )


def _host_operands(node: Node, values: Mapping[int, Any]) -> list[Any]:
    return [
        operand.value
        if type(operand) is Scalar
        else values[id(operand)]
        if operand.layout is None
        else _usm.host_view(operand.layout)
        for operand in node.operands
    ]


def _host_value(node: Node, operands: list[Any], out: np.ndarray | None) -> Any:
    """One operation in NumPy; into ``out`` where given."""
    op = node.op
    if op is CONVERT or (op.keeps_integers and node.dtype.kind in "biu"):  # type: ignore[union-attr]
        result = np.asarray(operands[0]).astype(node.dtype)
    elif op is WHERE:
        result = np.where(
            operands[0],
            *(
                node.dtype.type(operand) if not isinstance(operand, np.ndarray) else operand
                for operand in operands[1:]
            ),
        )
    elif out is not None:
        return op.ufunc(*operands, out=out, casting="unsafe")  # type: ignore[union-attr]
    else:
        return op.ufunc(*operands)  # type: ignore[union-attr]
    if out is not None:
        np.copyto(out, result, casting="unsafe")
    return result


def _host_values(value: Node) -> np.ndarray:
    """The values of an expression on the host, after the queue's work; views where they are there."""
    _usm.wait(value.queue)
    if value.layout is not None:
        return _usm.host_view(value.layout)
    values: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for node in pending_order([value]):
            values[id(node)] = _host_value(node, _host_operands(node, values), None)
    return np.asarray(values[id(value)])


def _reduce_on_host(
    name: str, value: Node, axes: tuple[int, ...], loop: np.dtype[Any], target: Any
) -> None:
    values = _host_values(value)
    with np.errstate(all="ignore"):
        if name in ("sum", "prod"):
            result = getattr(np, name)(values, axis=axes, dtype=loop)
        else:
            result = getattr(np, name)(values, axis=axes)
    _usm.host_view(target)[...] = np.reshape(result, target.shape)


class _Fused:
    """A structure's kernel, and how often the structure was met before there was one."""

    __slots__ = ("elements", "kernel", "source")

    def __init__(self) -> None:
        self.kernel: Any = None
        self.source = ""
        self.elements = 0


_fused: dict[_codegen.Structure, _Fused] = {}


def _run_fused(value: Node | Scalar, target: Any, size: int) -> bool:
    """Launch the generated kernel; false if there is none and compiling does not pay yet."""
    if not _codegen.can_store(value, target.dtype):
        return False
    order = pending_order([value]) if type(value) is Node else []
    program = _codegen.linearize(order, [(value, target)], target.shape)
    fused = _fused.get(program.structure)
    if fused is None:
        fused = _fused[program.structure] = _Fused()
    if fused.kernel is None:
        fused.elements += size
        if not is_worth_compiling(size, fused.elements):
            return False
        fused.source = _codegen.source_of(program.structure)
        fused.kernel = _compiler.obtain_kernel(
            _codegen.function_of(fused.source),
            (f"item:{1 + program.structure.has_rows}", *_codegen.types_of(program.structure)),
            {},
        )
    launch_kernel(
        fused.kernel,
        _codegen.range_of(program, size),
        None,
        Bound((), _flat(program, [target], size), None, _owners((*program.arrays, target))),
        target.block.queue,
    )
    return True


def _reduce_fused(
    name: str,
    value: Node,
    axes: tuple[int, ...],
    loop: np.dtype[Any],
    target: Any,
    must_compile: bool = False,
) -> bool:
    """Launch the generated reduction, pass after pass until one result is left for each output."""
    order = pending_order([value])
    program = _codegen_reduction.linearize_reduction(
        order, value, axes, name, loop, value.queue.sycl_device.max_compute_units
    )
    fused = _fused.get(program.structure)
    if fused is None:
        fused = _fused[program.structure] = _Fused()
    if fused.kernel is None:
        fused.elements += value.size
        if not (must_compile or is_worth_compiling(value.size, fused.elements)):
            return False
        fused.source = _codegen_reduction.source_of(program.structure)
        fused.kernel = _compiler.obtain_kernel(
            _codegen.function_of(fused.source),
            ("nditem:1", *_codegen_reduction.types_of(program.structure)),
            {},
        )
    is_last = program.partials == 1
    kept = prod(target.shape)
    result = target
    if not is_last:
        shape = (kept, program.partials)
        shape = shape if program.partials_are_inner else shape[::-1]
        result = _usm.allocate(value.queue, value.usm_type, shape, loop)
    flat = [
        argument for layout in (*program.arrays, result) for argument in _flat_array(layout)
    ] + _codegen_reduction.arguments_of(program)
    launch_kernel(
        fused.kernel,
        (program.global_range,),
        (program.local_range,),
        Bound((), flat, None, _owners((*program.arrays, result))),
        value.queue,
    )
    if is_last:
        return True
    partial = Node.leaf(result, value.queue, value.usm_type)
    axis = 1 if program.partials_are_inner else 0
    _reduce_fused(name, partial, (axis,), loop, target, must_compile=True)
    return True


def _owners(layouts: Iterable[Any]) -> tuple[Any, ...]:
    """The blocks outside the pool, which a launch has to keep alive."""
    return tuple(
        layout.block for layout in layouts if isinstance(layout.block, _usm.BorrowedBlock)
    )


def _flat_array(layout: Any) -> tuple[Any, ...]:
    """The flattened arguments of a layout seen as one contiguous dimension."""
    itemsize = c_int64(layout.dtype.itemsize)
    count = c_int64(layout.block.nbytes // layout.dtype.itemsize)
    return count, itemsize, _usm.memory_at(layout.block, layout.offset), count, itemsize


def _flat(program: _codegen.Program, targets: Sequence[Any], size: int) -> list[Any]:
    """The arguments in the order of ``_codegen.parameters_of``, flattened."""
    flat: list[Any] = []
    for layout in (*program.arrays, *targets):
        flat += _flat_array(layout)
    flat += program.scalars
    flat.append(c_uint64(size))
    flat += [c_uint64(extent) for extent in program.extents[1:]]
    for strides in program.strides:
        flat += [c_uint64(stride) for stride in strides]
    return flat


def _run_in_library(value: Node | Scalar, target: Any) -> None:
    """Compute one operation after the other with dpnp.tensor's ready kernels."""
    out = _usm.tensor_of(target)
    if type(value) is Scalar:
        out[...] = value.value
        return
    assert type(value) is Node
    order = pending_order([value])
    last_use: dict[int, int] = {}
    for position, node in enumerate(order):
        for operand in node.operands:
            last_use[id(operand)] = position
    layouts: dict[int, Any] = {}
    for position, node in enumerate(order):
        result = target if node is value and target.dtype == node.dtype else None
        if result is None:
            result = _usm.allocate(node.queue, node.usm_type, node.shape, node.dtype)
        _library_step(node, layouts, result)
        layouts[id(node)] = result
        for operand in node.operands:
            if last_use[id(operand)] == position:
                layouts.pop(id(operand), None)
    final = layouts[id(value)] if order else value.layout
    if final is not target:
        out[...] = _usm.tensor_of(final)


def _library_step(node: Node, layouts: Mapping[int, Any], result: Any) -> None:
    """One operation of an expression, its operands converted to the dtypes of its loop."""
    op = node.op
    assert op is not None
    out = _usm.tensor_of(result)
    operands: list[Any] = []
    for operand, dtype in zip(node.operands, node.loop, strict=False):
        if type(operand) is Scalar:
            operands.append(dtype.type(operand.value).item())
            continue
        layout = layouts.get(id(operand)) or operand.layout
        if layout.dtype != dtype:
            converted = _usm.allocate(node.queue, node.usm_type, layout.shape, dtype)
            _usm.tensor_of(converted)[...] = _usm.tensor_of(layout)
            layout = converted
        operands.append(_usm.tensor_of(layout))
    if op is CONVERT or (op.keeps_integers and node.dtype.kind in "biu"):
        out[...] = operands[0]
        return
    function = getattr(library, op.name)
    if op is WHERE:
        operands = [
            library.asarray(operand, dtype=dtype, sycl_queue=node.queue)
            if not isinstance(operand, library.usm_ndarray)
            else operand
            for operand, dtype in zip(operands, node.loop, strict=False)
        ]
    library_call(op.name, function, operands, (), {"out": out}, lambda tensor: tensor)


def _leaf_count(order: Sequence[Node]) -> int:
    return len(
        {
            id(operand)
            for node in order
            for operand in node.operands
            if type(operand) is Node and operand.layout is not None
        }
    )


# -- aliasing -------------------------------------------------------------------------------------


def _overlaps(value: Node, target: Any) -> bool:
    """Whether a leaf lies in the target's block other than exactly at the target."""
    leaves = [value] if value.layout is not None else [
        operand
        for node in pending_order([value])
        for operand in node.operands
        if type(operand) is Node and operand.layout is not None
    ]
    place = (target.offset, target.strides, target.shape, target.dtype)
    return any(
        leaf.layout.block.memory is target.block.memory
        and (leaf.layout.offset, leaf.layout.strides, leaf.layout.shape, leaf.layout.dtype) != place
        for leaf in leaves
    )


def _detached(value: Node) -> Node:
    """The value in memory of its own."""
    layout = _usm.allocate(value.queue, value.usm_type, value.shape, value.dtype)
    _run(value, layout)
    if value.layout is None:
        value.complete(layout)
        return value
    return Node.leaf(layout, value.queue, value.usm_type)


# -- others ---------------------------------------------------------------------------------------


def assign(target: Any, value: Any) -> None:
    """Write a tensor or a scalar into the tensor ``target``, broadcast and converted."""
    target[...] = value


def library_call(
    name: str,
    function: Callable[..., Any],
    tensors: Sequence[Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    wrap: Callable[[Any], Any],
) -> Any:
    """Call a function of dpnp.tensor and wrap the tensors it returns; its errors become ours."""
    try:
        result = function(*tensors, *args, **kwargs)
    except (DparrayError, np.linalg.LinAlgError):
        raise
    except LibraryAxisError as error:
        raise AxisError(f"{name}: {error}") from None
    except (ValueError, TypeError) as error:
        operands = ", ".join(
            f"{tensor.dtype}{list(tensor.shape)}" if hasattr(tensor, "shape") else repr(tensor)
            for tensor in tensors
        )
        kind = ShapeError if isinstance(error, ValueError) else DTypeError
        raise kind(f"{name}({operands}): {error}") from None
    return _wrapped(result, wrap)


def _wrapped(result: Any, wrap: Callable[[Any], Any]) -> Any:
    if isinstance(result, library.usm_ndarray):
        return wrap(result)
    if isinstance(result, neighbour.ndarray):
        return wrap(result._array_obj)
    if isinstance(result, tuple | list):
        parts = [_wrapped(part, wrap) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


def launch_kernel(
    kernel: Any,
    global_range: Sequence[int],
    local_range: Sequence[int] | None,
    bound: Bound,
    queue: SyclQueue,
    depends_on: Sequence[SyclEvent] = (),
) -> SyclEvent:
    """Launch a compiled kernel with arguments that a binder of ``_launcher`` has flattened."""
    event = launch(
        kernel, global_range, local_range, bound.flat, queue, depends_on, bound.borrowed
    )
    if _hooks.subscribers:
        _hooks.emit("launch", kernel=kernel, queue=queue, event=event)
    return event
