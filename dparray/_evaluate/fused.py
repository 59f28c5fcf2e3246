"""The fused tier: one generated kernel for a whole expression.

Kernels are kept by structure: neither shapes nor scalar values are part of it, so a loop that
changes them compiles nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from dparray import config, kernel_api
from dparray._codegen import (
    canonical,
    elementwise,
    reduction,
    reduction_steps,
    reduction_text,
    values,
)
from dparray._codegen.domain import Domain, Machine
from dparray._codegen.reduction import ReductionProgram, linearize_reduction
from dparray._codegen.values import can_store
from dparray._compiler import compile
from dparray._evaluate.schedule import (
    LOAD_ELEMENTS,
    Kernel,
    counted_elements,
    is_call,
    is_worth_compiling,
)
from dparray._graph.node import Node, Scalar, pending_order
from dparray._graph.ops import Op
from dparray._graph.reductions import Reduce
from dparray._runtime.arguments import Packed, pack_array, pack_local, pack_scalar, pack_scalars
from dparray._runtime.in_order import foreign_calls
from dparray._runtime.launch import launch
from dparray.memory import blocks, exchange


class Fused:
    """A structure's kernel, and what was computed of it before there was one.

    Attributes:
        kernel: the compiled kernel, or ``None``.
        source: its text.
        origin: ``"compiled"`` or ``"disk"``; empty while there is no kernel.
        elements: how many elements other tiers computed meanwhile, few of a call counted as more.
    """

    __slots__ = ("elements", "kernel", "origin", "source")

    def __init__(self) -> None:
        self.kernel: Any = None
        self.source = ""
        self.origin = ""
        self.elements = 0


kernels: dict[Any, Fused] = {}


class Generated(NamedTuple):
    """A generated kernel, and what its launches have in common.

    Attributes:
        kernel: the compiled kernel.
        global_range, local_range: the range.
        merges_chunks: whether it merges the accumulators that its groups leave.
        local_memory, numbers: the packed arguments before and after the scalars.
    """

    kernel: Any
    global_range: tuple[int, ...]
    local_range: tuple[int, ...] | None
    merges_chunks: bool
    local_memory: list[Packed]
    numbers: Packed

    def launch_on(
        self, queue: Any, arrays: list[Packed], scalars: Iterable[Any], owners: tuple[Any, ...]
    ) -> None:
        """Launch the kernel.

        Args:
            queue: where to.
            arrays: those it reads, those it writes and the accumulators it leaves; a list of the
                caller's that is changed.
            scalars: objects of ctypes.
            owners: the blocks of arrays that are outside the pool.
        """
        if self.merges_chunks:
            arrays.append(counters_of(queue))
        arrays += self.local_memory
        arrays += map(pack_scalar, scalars)
        arrays.append(self.numbers)
        launch(self.kernel, self.global_range, self.local_range, arrays, queue, (), owners)


class Known(NamedTuple):
    """What one operation on computed arrays launches.

    Attributes:
        generated: the kernel.
        left: shape and dtype of each array of accumulators that it leaves.
    """

    generated: Generated
    left: tuple[tuple[Any, ...], ...]


class Launched(NamedTuple):
    """What one launch was made of.

    Attributes:
        generated: the kernel.
        arrays: the layouts that it reads, then those it writes.
        left: those of the accumulators that it leaves.
        scalars: the arguments between local memory and numbers.
    """

    generated: Generated
    arrays: list[Any]
    left: list[Any]
    scalars: list[Any]

    def launch_on(self, queue: Any) -> None:
        """Launch the kernel."""
        arrays = [packed_flat(layout) for layout in (*self.arrays, *self.left)]
        self.generated.launch_on(queue, arrays, self.scalars, owners_of(self.arrays))


# By operation, dtypes and layouts.
_known: dict[Any, Known] = {}
# What `_replay` keeps: the launches of whole expressions, by form.
known_steps: dict[Any, Any] = {}
_SCALARS = frozenset((bool, int, float, complex))


def forget() -> None:
    """Drop all kernels held in memory, as a new process would; those on disk stay."""
    kernels.clear()
    _known.clear()
    known_steps.clear()
    compile.forget()


def kept(structure: Any) -> Fused | None:
    """What is kept of a structure, compiled as the configuration is now."""
    return kernels.get((structure, config.fp_contract))


def options() -> dict[str, bool]:
    """The compiler's options for generated kernels."""
    return {"fp_contract": True} if config.fp_contract else {}


def _obtained(
    structure: Any,
    size: int,
    source_of: Callable[[Any], str],
    types: Callable[[], tuple[str, ...]],
    names: Callable[[], Mapping[str, Any]],
    must_compile: bool = False,
) -> Any:
    """The kernel of a structure, or ``None`` while it is not worth compiling."""
    fused = kept(structure)
    if fused is None:
        fused = kernels[structure, config.fp_contract] = Fused()
    if fused.kernel is not None:
        return fused.kernel
    is_first = fused.elements == 0
    fused.elements += counted_elements(size)
    compiles = must_compile or is_worth_compiling(size, fused.elements)
    if not compiles and not (is_first and size >= LOAD_ELEMENTS):
        return None
    fused.source = source_of(structure)
    function = elementwise.function_of(fused.source, names())
    fused.kernel = compile.recall_kernel(function, types(), options())
    if fused.kernel is not None:
        fused.origin = "disk"
    elif compiles:
        fused.kernel = compile.obtain_kernel(function, types(), options())
        fused.origin = "compiled"
    return fused.kernel


def run(
    outputs: Sequence[tuple[Node | Scalar, Any]], order: Sequence[Node], size: int
) -> list[Launched]:
    """Compute all values, of one shape, in one kernel.

    ``order`` holds the pending nodes, operands before users.

    Returns:
        The launch; nothing if compiling does not pay yet.
    """
    if not all(can_store(value, target.dtype) for value, target in outputs):
        return []
    targets = [target for _, target in outputs]
    queue = targets[0].block.queue
    program = elementwise.linearize(order, outputs, targets[0].shape, tuning_of(queue))
    kernel = _obtained_elements(program.structure, size, order)
    if kernel is None:
        return []
    generated = _generated_elements(kernel, program)
    made = Launched(generated, [*program.arrays, *targets], [], program.scalars)
    made.launch_on(queue)
    return [made]


def _obtained_elements(structure: Any, size: int, order: Sequence[Node]) -> Any:
    """The kernel of elementwise operations; ``None`` while it is not worth compiling."""
    return _obtained(
        structure,
        size,
        elementwise.source_of,
        lambda: (f"item:{1 + structure.has_rows}", *elementwise.types_of(structure)),
        lambda: elementwise.functions_of(order),
        len(order) == 1 and is_call(order[0]),
    )


def prepare(node: Node, kernel: Kernel) -> None:
    """Compile the kernel, or the first one, that computes a node by itself; nothing is launched.

    Raises:
        KernelCompileError: a function in it does not compile.
        UnsupportedDeviceError: it computes in float64, which the device does not.
    """
    outputs = [(node, blocks.planned_layout(node.queue, node.usm_type, node.shape, node.dtype))]
    if kernel.domain is None:
        plan = elementwise.linearize(kernel.order, outputs, node.shape, tuning_of(node.queue))
        compiled = _obtained_elements(plan.structure, node.size, kernel.order)
    else:
        now = first_pass(outputs, kernel)
        compiled = _obtained_pass(now, prod(kernel.domain.shape), must_compile=True)
    compiled.check_device(node.queue.sycl_device)


class Argument(NamedTuple):
    """A computed array as :func:`compute_known` takes it; remembered on the array.

    Attributes:
        form: dtype, shape and strides.
        packed: the packed kernel arguments.
        block, offset: where it lies.
        owners: its block, where that is outside the pool.
    """

    form: tuple[Any, ...]
    packed: Packed
    block: Any
    offset: int
    owners: tuple[Any, ...]


def argument_of(layout: Any) -> Argument:
    """A computed array, or a layout, as an argument."""
    block = layout.block
    return Argument(
        (layout.dtype, layout.shape, layout.strides),
        packed_flat(layout),
        block,
        layout.offset,
        owners_of([layout]),
    )


def compute_known(
    op: Op | Reduce,
    operands: Sequence[Any],
    loop: tuple[Any, ...],
    shape: tuple[int, ...],
    queue: Any,
    usm_type: str,
    kernel_of: Callable[[Node], Kernel | None],
    target: Any = None,
) -> Any:
    """Compute one operation that has a kernel, without an expression: the way of eager calls.

    Args:
        op: the operation or the reduction.
        operands: arrays, which are computed if they are pending, and Python scalars.
        loop: the dtype each operand is converted to, then the result's.
        shape: the result's shape, of at least one element.
        queue, usm_type: the operands' common placement.
        kernel_of: the kernel that alone computes a node, or ``None`` if it takes more than one.
        target: a layout to write to, of the result's shape; fresh memory if not given.

    Returns:
        The result's layout; ``None`` where no kernel is there yet, or none can be.
    """
    key: list[Any] = [op, loop, shape, config.fp_contract, tuning_of(queue)]
    if target is not None:
        key.append((target.dtype, target.strides))
    arrays: list[Argument] = []
    scalars: list[Any] = []
    packed: list[Packed] = []
    owners: tuple[Any, ...] = ()
    for operand, dtype in zip(operands, loop, strict=False):
        if type(operand) in _SCALARS:
            scalars += values.scalar_arguments(operand, dtype)
            key.append(None)
            continue
        if type(operand) is Node:  # positions, which are in no memory
            return None
        argument = operand._argument
        form, own, block, offset, owned = argument
        if (
            target is not None
            and block.memory is target.block.memory
            and (offset != target.offset or form != (target.dtype, shape, target.strides))
        ):
            return None  # what is written may be read afterwards
        for number, other in enumerate(arrays):
            if other.block is block and other.offset == offset and other.form == form:
                key.append(number)  # a kernel takes it once
                break
        else:
            key.append(form)
            arrays.append(argument)
            packed.append(own)
            owners += owned
    form_of_all = tuple(key)
    known = _known.get(form_of_all)
    if known is None:
        parts = tuple(
            Scalar(operand) if type(operand) in _SCALARS else operand._node for operand in operands
        )
        node = Node(op, parts, loop, shape, prod(shape), queue, usm_type)
        known = _found(node, kernel_of(node), target)
        if known is None:
            return None
        canonical.remember(_known, form_of_all, known)
    if target is None:
        target = blocks.allocate(queue, usm_type, shape, loop[-1])
    else:
        owners += owners_of([target])
    packed.append(packed_flat(target))
    left = [blocks.allocate(queue, usm_type, *each) for each in known.left]
    packed += map(packed_flat, left)
    known.generated.launch_on(queue, packed, scalars, owners)
    return target


def _found(node: Node, kernel: Kernel | None, target: Any) -> Known | None:
    """What :func:`compute_known` launches, if :func:`run` or :func:`reduce` has had the kernel."""
    if target is None:
        target = blocks.planned_layout(node.queue, node.usm_type, node.shape, node.dtype)
    if kernel is None or not can_store(node, target.dtype):
        return None
    outputs = [(node, target)]
    if kernel.domain is None:
        if not elementwise.can_generate(node):
            return None
        plan = elementwise.linearize([node], outputs, node.shape, tuning_of(node.queue))
        fused = kept(plan.structure)
        if fused is None or fused.kernel is None:
            return None
        return Known(_generated_elements(fused.kernel, plan), ())
    now = first_pass(outputs, kernel)
    structure = now.program.structure
    fused = kept(structure)
    if fused is None or fused.kernel is None or structure.leaves_accumulators:
        return None
    left = tuple((now.shape, dtype) for dtype in now.left_dtypes)
    return Known(_generated_reduction(fused.kernel, now.program), left)


def _generated_elements(kernel: Any, plan: Any) -> Generated:
    """The kernel of elementwise operations as their plan or program launches it."""
    numbers = pack_scalars(plan.numbers)
    return Generated(kernel, plan.global_range, plan.local_range, False, [], numbers)


def _generated_reduction(kernel: Any, program: ReductionProgram) -> Generated:
    """The kernel of a program with reductions as that launches it."""
    return Generated(
        kernel,
        program.global_range,
        program.local_range,
        program.structure.merges_chunks,
        _local_memory(program),
        pack_scalars(program.numbers),
    )


@lru_cache(maxsize=64)
def _device_type(queue: Any) -> str:
    kind = str(queue.sycl_device.device_type).rpartition(".")[2]
    return kind if kind in config.tuning else "accelerator"


def tuning_of(queue: Any) -> config.Tuning:
    """How kernels of expressions are cut on a queue's device."""
    return config.tuning[_device_type(queue)]


# By queue and thread: threads may launch at the same time.
_counters: dict[tuple[Any, int], Packed] = {}


def counters_of(queue: Any) -> Packed:
    """Zeros that a kernel counts groups in, and leaves as zeros for the next one on the queue.

    Their memory is not the pool's, since as long as they live they would keep all of a slab.
    """
    key = (queue, threading.get_ident())
    counters = _counters.get(key)
    if counters is None:
        count = reduction.most_counters(machine_of(queue))
        with foreign_calls(queue):
            zeros = exchange.dpt.zeros(count, dtype="int32", usm_type="device", sycl_queue=queue)
        counters = _counters[key] = packed_flat(exchange.layout_of_tensor(zeros))
    return counters


@lru_cache(maxsize=64)
def _machine(queue: Any, lanes: int) -> Machine:
    return Machine(int(queue.sycl_device.max_compute_units), lanes)


def machine_of(queue: Any) -> Machine:
    """What of a queue's device decides how kernels with reductions are cut."""
    return _machine(queue, tuning_of(queue).lanes)


def names_for(structure: Any, order: Sequence[Node]) -> dict[str, Any]:
    """What the text of a kernel with reductions refers to."""
    return {
        **elementwise.functions_of(order),
        "group_barrier": kernel_api.group_barrier,
        "AtomicRef": kernel_api.AtomicRef,
        "MemoryOrder": kernel_api.MemoryOrder,
        "MemoryScope": kernel_api.MemoryScope,
        **reduction_text.functions_of(structure),
    }


class Pass(NamedTuple):
    """One kernel of those that compute values with reductions.

    Attributes:
        program: what is launched.
        order: the nodes in it, operands before users.
        stored: the outputs that it stores.
        left: those that another kernel makes of the accumulators that this one leaves.
        shape, strides: of these accumulators; the strides in elements.
    """

    program: ReductionProgram
    order: list[Node]
    stored: list[tuple[Node, Any]]
    left: list[tuple[Node, Any]]
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def left_dtypes(self) -> list[np.dtype[Any]]:
        """Of each array of accumulators that the kernel leaves in memory."""
        structure = self.program.structure
        if not structure.stores_accumulators:
            return []
        return [dtype for _, dtype in reduction_steps.shared_accumulators(structure)]

    @property
    def types(self) -> tuple[str, ...]:
        """The type keys of the kernel's parameters."""
        return ("nditem:1", *reduction_text.types_of(self.program.structure))


def first_pass(outputs: Sequence[tuple[Node, Any]], kernel: Kernel) -> Pass:
    """The first kernel that values with reductions need; mostly it is the only one."""
    domain = kernel.domain
    assert domain is not None
    machine = machine_of(outputs[0][1].block.queue)
    walked = kernel.first_domain
    if walked is domain:
        program = linearize_reduction(
            kernel.order,
            outputs,
            domain,
            kernel.dropped,
            kernel.rows,
            machine,
            kernel.elements_last,
        )
        if program.partials == 1 or program.structure.merges_chunks:
            count = reduction.count_left(program)
            return Pass(program, kernel.order, list(outputs), [], (count,), (1,))
    reductions = [node for node in kernel.order if type(node.op) is Reduce]
    stored = [each for each in outputs if id(each[0]) not in kernel.rows]
    left = [each for each in outputs if id(each[0]) in kernel.rows]
    order = pending_order([*reductions, *(value for value, _ in stored)])
    rows = frozenset(map(id, reductions))
    program = linearize_reduction(
        order, stored, walked, (), rows, machine, leaves_accumulators=True
    )
    shape, strides = _partial_layout(walked, program.partials, program.partials_are_inner)
    return Pass(program, order, stored, left, shape, strides)


def next_kernel(done: Pass, accumulators: list[Any], kernel: Kernel) -> Kernel:
    """What is left to compute after a pass; its reductions merge ``accumulators`` from now on."""
    domain = kernel.domain
    assert domain is not None
    for node in done.order:
        if type(node.op) is Reduce:
            _merge_instead(node, accumulators)
    return Kernel(
        pending_order([value for value, _ in done.left]),
        Domain(done.shape, domain.axes),
        kernel.rows,
        kernel.dropped,
    )


def reduce(
    outputs: Sequence[tuple[Node, Any]], kernel: Kernel, must_compile: bool = False
) -> list[Launched]:
    """Compute values with reductions: in one kernel, or more for the accumulators it leaves.

    Returns:
        The launches; none if compiling does not pay yet.
    """
    assert kernel.domain is not None
    if not all(can_store(value, target.dtype) for value, target in outputs):
        return []
    now = first_pass(outputs, kernel)
    program = now.program
    compiled = _obtained_pass(now, prod(kernel.domain.shape), must_compile)
    if compiled is None:
        return []
    first, target = outputs[0]
    queue = target.block.queue
    accumulators = []
    for dtype in now.left_dtypes:
        layout = blocks.allocate(queue, first.usm_type, now.shape, dtype)
        strides = tuple(stride * dtype.itemsize for stride in now.strides)
        accumulators.append(layout._replace(strides=strides))
    made = Launched(
        _generated_reduction(compiled, program),
        [*program.arrays, *(target for _, target in now.stored)],
        list(accumulators),
        program.scalars,
    )
    made.launch_on(queue)
    if not now.left:
        return [made]
    following = next_kernel(now, accumulators, kernel)
    return [made, *reduce(now.left, following, must_compile=True)]


def _obtained_pass(now: Pass, size: int, must_compile: bool) -> Any:
    """The kernel of a pass; ``None`` while it is not worth compiling."""
    structure = now.program.structure
    return _obtained(
        structure,
        size,
        reduction_text.source_of,
        lambda: now.types,
        lambda: names_for(structure, now.order),
        must_compile or must_generate(structure),
    )


def must_generate(structure: Any) -> bool:
    """Whether one of the reductions in a structure is only in generated kernels."""
    rows = [row for _, row, _ in reduction_steps.reductions_of(structure)]
    return not all(row.has_library for row in rows)


def _local_memory(program: ReductionProgram) -> list[Packed]:
    """The packed arguments that give a kernel with reductions its local memory."""
    structure = program.structure
    packed = [pack_local(np.dtype(np.int32), (1,))] if structure.merges_chunks else []
    if structure.form == "lanes":
        count = program.local_range[0]
        for _, dtype in reduction_steps.shared_accumulators(structure):
            packed.append(pack_local(dtype, (count,)))
    return packed


def _merge_instead(node: Node, accumulators: list[Any]) -> None:
    """Make a reduction one of accumulators, the next of a list, which are taken out of it."""
    op = node.op
    assert type(op) is Reduce
    row = op.reduction
    leaves = [Node.leaf(accumulators.pop(0), node.queue, node.usm_type) for _ in row.accumulators]
    scalars = node.operands[len(node.operands) - row.scalars :] if row.scalars else ()
    kinds = node.loop[len(node.loop) - 1 - row.scalars :]
    node.become(
        op._replace(merges=True),
        *leaves,
        *scalars,
        loop=(*(leaf.dtype for leaf in leaves), *kinds),
    )


def _partial_layout(
    walked: Domain, partials: int, are_inner: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides, in elements, of the accumulators that a kernel leaves of a domain.

    The first of the reduced axes holds those of one output, the others have extent 1.
    """
    shape = list(walked.row)
    strides = [0] * len(shape)
    step = partials if are_inner else 1
    for axis in reversed(range(len(shape))):
        if axis not in walked.axes:
            strides[axis] = step
            step *= shape[axis]
    if walked.axes:
        shape[walked.axes[0]] = partials
        strides[walked.axes[0]] = 1 if are_inner else step
    return tuple(shape), tuple(strides)


def owners_of(layouts: Iterable[Any]) -> tuple[Any, ...]:
    """The blocks outside the pool, which a launch has to keep alive."""
    return tuple(
        layout.block for layout in layouts if isinstance(layout.block, blocks.BorrowedBlock)
    )


def packed_flat(layout: Any) -> Packed:
    """The packed arguments of a layout, seen as one contiguous dimension."""
    block, itemsize = layout.block, layout.dtype.itemsize
    shape = (block.nbytes // itemsize,)
    return pack_array(block.memory, block.pointer + layout.offset, itemsize, shape, (itemsize,))
