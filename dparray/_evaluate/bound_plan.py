"""Bound plans: one dictionary maps the key of a pending expression to the plan that computes it.

A plan (:mod:`dparray._evaluate.plan`) is bound to a queue at its first use, and cached. Its steps
are host operations, kernel launches and library calls; the calls of host operations are prepared
with the plan (:func:`dparray._evaluate.host.bind`). If a plan is a single launch, its constant
parts are prepared once its kernel is ready: the arguments, with slots for the arrays and the
numbers. The compiled module fills these slots and submits. This matters because arrays of at least
a megabyte evict a program's code from the core's caches, and Python then takes three to ten times
as long.

Until the kernel is ready, the plan's alternative steps run, and the kernel is compiled in the
background; the next evaluation binds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any

import numpy as np

from dparray import _hooks
from dparray._driver import driver_of, order_of, waiting
from dparray._evaluate import limits, schedule
from dparray._evaluate.counters import counters_of
from dparray._evaluate.execute import execute
from dparray._evaluate.plan import FusedStep, KernelLaunch, Plan
from dparray._graph.node import Node
from dparray._layout import Layout
from dparray._runtime.host_maps import lock

#: Bound plans by expression and queue (:func:`dparray._evaluate.evaluate.compute`). All are dropped
#: when there are too many, and when an option is set that affects plans.
plans: dict[Any, BoundPlan] = {}
MAX_PLANS = 4096

#: Creates a launch of the compiled module, and submits it; returns whether it succeeded. ``None``
#: without that module.
make_launch: Callable[[tuple[Any, ...]], Any] | None = None
launch_bound: Callable[[Any, Any, Any], bool | None] | None = None

# The scalar types that the compiled module converts.
_CONVERTED = {dtype: dtype.num for dtype in map(np.dtype, (np.float32, np.float64))}
_HOLE = bytes(8)


class BoundPlan:
    """A plan bound to a queue.

    Attributes:
        plan: the steps.
        queue: the queue of the steps.
        launch: the launch of the compiled module, once it exists.
        is_long: whether that launch may take long, judged by the memory that it reads and writes.
    """

    __slots__ = ("_step", "is_long", "launch", "plan", "queue")

    def __init__(self, plan: Plan, queue: Any, is_plain: bool) -> None:
        self.plan = plan
        self.queue = queue
        self.launch: Any = None
        self.is_long = False
        self._step = _single_launch(plan) if is_plain and make_launch is not None else None

    def run(self, canonical: Any, target: Layout | None, order: Sequence[Node]) -> None:
        """Compute an expression with the plan's key; return when the work is submitted.

        Args:
            canonical: the expression signature.
            target: the layout that the result is written to, if the plan has one.
            order: the pending nodes; nodes that the plan stores are completed.
        """
        launch = self.launch
        if launch is not None and launch_bound is not None and not _hooks.subscribers:
            is_done = launch_bound(launch, canonical, order[-1])
            if is_done:
                if self.is_long:
                    order_of(self.queue).note_long()
                return
            if is_done is None:  # The driver chooses anew who submits it.
                launch = self.launch = None
        execute(self.plan, self.queue, canonical.arrays, canonical.scalars, target, order)
        if launch is None and self._step is not None:
            self._bind_launch(self._step)

    def _bind_launch(self, step: FusedStep) -> None:
        """Create the launch of the compiled module, if the kernel is ready."""
        launch = step.launches[0]
        kernel, packed = launch.entry.kernel, launch.packed
        if not limits.uses_kernels() or kernel is None or packed is None:
            return
        ready = kernel.ready.get((self.queue, launch.global_range, launch.local_range))
        if ready is None or make_launch is None:
            return
        words = driver_of(self.queue).for_launch(self.queue, ready.address, ready.index_space)
        if words is not None:
            spec = (*_spec_of(self.plan, step, launch, self.queue, ready, packed), words)
            self.is_long = order_of(self.queue).has_long_work()
            self.launch = make_launch(spec)
            if self.launch is None:  # too many arguments
                self._step = None


def forget() -> None:
    """Drop all bound plans; running evaluations keep their plan."""
    with lock:
        plans.clear()


def keep(key: Any, bound: BoundPlan) -> None:
    """Store a bound plan."""
    if len(plans) >= MAX_PLANS:
        plans.clear()
    plans[key] = bound


def _single_launch(plan: Plan) -> FusedStep | None:
    """Return the only step of a plan if it is a launch that the compiled module can submit."""
    step = plan.steps[0] if len(plan.steps) == 1 else None
    if type(step) is not FusedStep or len(step.launches) > 1:
        return None
    if len(step.stores) != 1 or len(step.new) != 1:
        return None
    launch = step.launches[0]
    converts = all(dtype in _CONVERTED for _, dtype in launch.scalars)
    return step if not launch.functions and converts and not launch.offsets else None


def _spec_of(
    plan: Plan, step: FusedStep, launch: KernelLaunch, queue: Any, ready: Any, packed: Any
) -> tuple[Any, ...]:
    """Return the launch in the compiled module's format, without the driver's words."""
    parts: list[bytes] = [] if ready.extents is None else [ready.extents.addresses]
    arrays, numbers = [], []
    references = [launch.entry.kernel, ready, launch, packed]
    for slot in launch.arguments:
        arrays.append((_count(parts), slot))
        parts.append(_HOLE)
    if launch.merges_chunks:
        counters = counters_of(queue)
        pointer = counters.pointer or counters.pack_pointer()
        references += (counters, pointer)
        parts.append(pointer.addresses)
    local_memory, others = packed
    parts += [each.addresses for each in local_memory]
    for number, dtype in launch.scalars:
        numbers.append((_count(parts), number, _CONVERTED[dtype]))
        parts.append(_HOLE)
    parts.append(others.addresses)
    kernel = launch.entry.kernel
    return (
        tuple(references),
        queue,
        kernel.name,
        ready.address,
        driver_of(queue).address_of(queue),
        ready.index_space.extents,
        ready.index_space.local,
        ready.kinds,
        b"".join(parts),
        tuple(arrays),
        launch.count_read,
        tuple(numbers),
        (*step.new, *launch.accumulators),
        step.stores[0][0],
        plan.leaves,
        get_ident() if launch.merges_chunks else 0,
        driver_of(queue).name,
    )


def _count(parts: Sequence[bytes]) -> int:
    """Return the number of addresses."""
    return sum(map(len, parts)) // len(_HOLE)


_hooks.when_set("executor", forget)
_hooks.when_set("plans", forget)
waiting.when_submission_unlocks.append(plans.clear)
schedule.when_forgotten.append(plans.clear)
