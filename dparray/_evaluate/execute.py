"""Run the steps of a plan, with arrays in its slots. All computations happen here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import get_ident
from typing import Any

from dparray import _hooks
from dparray._codegen.values import scalar_arguments
from dparray._driver import traits_of
from dparray._evaluate import host, library, limits
from dparray._evaluate.counters import counters_of
from dparray._evaluate.kernels import note_host_time, obtain
from dparray._evaluate.plan import (
    ContractionStep,
    FusedStep,
    HostStep,
    KernelLaunch,
    LibraryStep,
    Plan,
    Step,
)
from dparray._evaluate.reasons import why_not_compiled, why_on_host
from dparray._graph.node import Node
from dparray._layout import Layout
from dparray._runtime import deferred_launch, durations, host_maps
from dparray._runtime.event import event_of_work
from dparray._runtime.launch import launch as submit_launch
from dparray._runtime.packing import (
    Packed,
    pack_local_pointer,
    pack_pointer,
    pack_scalar,
    pack_scalars,
)
from dparray._runtime.queues import may_read, may_write, working
from dparray.exceptions import MemoryError
from dparray.memory.blocks import BorrowedBlock
from dparray.memory.pool import allocate

#: The threads in a call of ``dp.eval``. What evaluates on behalf of other work reads the memory as
#: soon as it is submitted, so it defers nothing.
deferring: set[int] = set()

_new = tuple.__new__  # A `__new__` of the class itself would cost one more call.


def execute(
    plan: Plan,
    queue: Any,
    leaves: Sequence[Layout],
    scalars: Sequence[Any],
    target: Layout | None = None,
    nodes: Sequence[Node] = (),
) -> list[Any]:
    """Run a plan; return when the work is submitted, not when it is done.

    Args:
        plan: the plan.
        queue: the queue of the work.
        leaves: the layouts that the expression reads, in the order of its signature.
        scalars: the values of its scalars.
        target: the layout that the result is written to, if the plan has one.
        nodes: the pending nodes of the expression; nodes that the plan stores are completed.

    Returns:
        The layouts in all slots.

    Raises:
        KernelCompileError: a user's function in a kernel does not compile.
        MemoryError: there is no memory for a result.
    """
    inputs = leaves if target is None else [*leaves, target]
    slots: list[Any] = [*inputs, *[None] * (plan.slots - len(inputs))]
    arrays: list[Any] = [None] * plan.slots
    try:
        for step in plan.steps:
            may_defer = (
                bool(deferring)
                and queue in durations.running
                and step is plan.steps[-1]
                and get_ident() in deferring
            )
            _execute_step(step, queue, slots, arrays, scalars, nodes, "", may_defer)
    except MemoryError as error:
        error.args = (f"{error}. {_event_details(plan, step, leaves)}",)
        raise
    return slots


def _event_details(plan: Plan, step: Step, leaves: Sequence[Layout]) -> str:
    """Return the arrays for which a step allocated memory, and the arrays of the expression."""
    wanted = ", ".join(f"{dtype} of shape {shape}" for _, shape, dtype, *_ in step.new)
    held = ", ".join(f"{leaf.dtype} of shape {leaf.shape}" for leaf in leaves)
    number, count = plan.steps.index(step) + 1, len(plan.steps)
    return (
        f"It was for step {number} of {count} of an expression, which makes "
        f"{wanted or 'arrays for its own work'}; the expression reads {held or 'no array'}. What "
        "it has computed is kept, and the rest can be computed once there is memory"
    )


def _execute_step(
    step: Step,
    queue: Any,
    slots: list[Any],
    arrays: list[Any],
    scalars: Sequence[Any],
    nodes: Sequence[Node],
    because: str = "",
    may_defer: bool = False,
) -> float:
    """Run a step.

    Args:
        step, queue, slots, arrays, scalars, nodes: the step, and the plan's state.
        because: the reason, if it replaces a kernel.
        may_defer: whether a thread may compute it after a user's kernel that is running.

    Returns:
        The seconds that the calling thread computed.
    """
    seconds = 0.0
    for slot, shape, dtype, usm_type, nbytes, strides in step.new:
        block = allocate(queue, usm_type, nbytes)
        slots[slot] = _new(Layout, (block, 0, shape, strides, dtype))
    if type(step) is FusedStep:
        launches = step.launches
        is_there = limits.uses_kernels() and launches[0].entry.kernel is not None
        if not is_there and obtain(launches[0], queue) is None:
            if not step.otherwise:
                raise RuntimeError(f"no kernel and no other steps to compute {step.outputs}")
            if _hooks.subscribers:
                entry = launches[0].entry
                because = why_not_compiled(launches[0], entry.elements, entry.origin == "disk")
            for other in step.otherwise:
                seconds += _execute_step(other, queue, slots, arrays, scalars, nodes, because)
            note_host_time(launches[0], seconds)
        else:
            for each in launches:
                _launch(each, queue, slots, arrays, scalars)
    elif type(step) is HostStep:
        if step.instead is None or not _launch_instead(step, queue, slots, arrays, scalars):
            if _hooks.subscribers:
                because = because or why_on_host(step.because)
            compute = partial(host.run, step, slots, scalars, because)
            if not (may_defer and _is_deferred(step, queue, slots, compute)):
                seconds = compute()
                if step.instead is not None:
                    note_host_time(step.instead.launches[0], seconds)
    elif type(step) is ContractionStep:
        compute = partial(step.op.alone, [slots[slot] for slot in step.arrays], slots[step.output])
        if not (may_defer and _is_deferred(step, queue, slots, compute)):
            compute()
    else:
        assert type(step) is LibraryStep
        library.run(step, slots, scalars, step.because or because)
    if nodes:
        for slot, number in step.stores:
            node = nodes[number]
            if node.layout is None:
                node.complete(slots[slot])
    return seconds


def _is_deferred(
    step: Step, queue: Any, slots: Sequence[Layout], compute: Callable[[], Any]
) -> bool:
    """Let a thread compute a step on the host after the work on its memory, if that is running.

    The memory is held as for an open map, so later work on it waits. Other libraries do not know
    of that.
    """
    layouts = [slots[slot] for slot in (*step.reads, *step.outputs)]
    segments = [layout.block.segment for layout in layouts]
    if (
        not traits_of(queue).shares_memory
        or any(segment is None or segment.is_shared for segment in segments)
        or not _is_at_work(step, slots)
    ):
        return False
    accesses = [
        *[(slots[slot], "r") for slot in step.reads],
        *[(slots[slot], "w") for slot in step.outputs],
    ]
    held = host_maps.hold_for_later("computed by NumPy", *accesses)
    deferred_launch.after([event_of_work(queue)], held, compute)
    return True


def _launch_instead(
    step: HostStep, queue: Any, slots: list[Any], arrays: list[Any], scalars: Sequence[Any]
) -> bool:
    """Launch the kernel of a host step, if there is one and the host would have to wait.

    The same if the host took clearly longer so far than the kernel is expected to.
    """
    if not limits.uses_kernels():
        return False
    assert step.instead is not None
    launch = step.instead.launches[0]
    if not limits.is_clearly_slower(launch) and (
        queue not in working or not _is_at_work(step, slots)
    ):
        return False
    if launch.entry.kernel is None:
        launch.entry.lost += launch.gain or 0.0
        if obtain(launch, queue) is None:
            return False
    _launch(launch, queue, slots, arrays, scalars)
    return True


def _is_at_work(step: Step, slots: Sequence[Layout]) -> bool:
    """Return whether the host would have to wait before it accesses the memory of a step."""
    return not (
        all(may_read(slots[slot].block) for slot in step.reads)
        and all(may_write(slots[slot].block) for slot in step.outputs)
    )


def _launch(
    launch: KernelLaunch, queue: Any, slots: list[Any], arrays: list[Any], scalars: Sequence[Any]
) -> None:
    kernel = launch.entry.kernel
    if kernel is None:
        kernel = obtain(launch)
    for slot, shape, dtype, usm_type, nbytes, strides in launch.accumulators:
        block = allocate(queue, usm_type, nbytes)
        slots[slot] = _new(Layout, (block, 0, shape, strides, dtype))
    arguments: list[Packed] = []
    owners: tuple[Any, ...] = ()  # Blocks outside the pool, which a launch must keep alive.
    memory: list[Any] = []
    for position, slot in enumerate(launch.arguments):
        layout, packed = slots[slot], arrays[slot]
        block = layout.block
        if launch.offsets:
            pointer = block.pointer + layout.offset + launch.offsets[position]
            packed = pack_pointer(block.memory, pointer, block.nbytes)
        elif packed is None:
            pointer = block.pointer + layout.offset
            packed = arrays[slot] = pack_pointer(block.memory, pointer, block.nbytes)
        arguments.append(packed)
        memory.append(block.segment)
        if type(block) is BorrowedBlock:
            owners += (block,)
    if launch.merges_chunks:
        counters = counters_of(queue)
        arguments.append(counters.pointer or counters.pack_pointer())
    if launch.packed is None:
        local = [pack_local_pointer(dtype, count) for dtype, count in launch.local_memory]
        launch.packed = (local, pack_scalars(launch.numbers))
    local_memory, numbers = launch.packed
    if local_memory:
        arguments += local_memory
    for number, dtype in launch.scalars:
        arguments += map(pack_scalar, scalar_arguments(scalars[number], dtype))
    arguments.append(numbers)
    submit_launch(
        kernel,
        launch.global_range,
        launch.local_range,
        arguments,
        queue,
        (),
        owners,
        memory,
        launch.count_read,
    )
