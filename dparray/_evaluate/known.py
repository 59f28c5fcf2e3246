"""The short way to an expression that one launch of a known kernel computes.

Arrays of a megabyte and more drive a program's own code out of a core's caches, and Python then
takes three to ten times as long for what lies between a value that is asked for and its launch: the
plan's key, its steps, the kernel's arguments and the marks on memory. So where a plan is one
launch, what of it does not change is written down once: the arguments with places for the arrays
and the numbers. The compiled module (`dparray/_array/short.c`) fills these in, and submits. Without
it, and where anything is unusual, :mod:`dparray._evaluate.execute` does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any

import numpy as np

from dparray import _hooks
from dparray._evaluate import limits
from dparray._evaluate.counters import counters_of
from dparray._evaluate.plan import FusedStep, Plan
from dparray._runtime import in_order
from dparray._runtime.order import order_of

#: What the compiled module makes of a launch, by the form of the expression and the id of the
#: queue, which it keeps alive. All are dropped when there are many, and when another executor may
#: be the one.
launches: dict[tuple[Any, int], Any] = {}
_MOST_KNOWN = 1024
#: The ids of those that may take long, because of the memory that they read and write.
long_launches: set[int] = set()

#: Makes what the module keeps of a launch, and launches it: whether it could. ``None`` without it.
make: Callable[[tuple[Any, ...]], Any] | None = None
launch: Callable[[Any, Any, Any], bool] | None = None

in_order.when_met.append(launches.clear)
for _option in ("executor", "fp_contract", "fused_tier", "host_tier", "tuning"):
    _hooks.when_set(_option, launches.clear)

# The numbers that the module converts.
_CONVERTED = {dtype: dtype.num for dtype in map(np.dtype, (np.float32, np.float64))}
_HOLE = bytes(8)


def note(form: Any, plan: Plan, queue: Any) -> None:
    """Remember a plan that has just been carried out, if one launch is all of it."""
    step = plan.steps[0]
    if make is None or type(step) is not FusedStep or (form, id(queue)) in launches:
        return
    if len(plan.steps) > 1 or in_order.is_met():
        return
    if len(step.launches) > 1 or len(step.stores) != 1 or len(step.new) != 1:
        return
    found = step.launches[0]
    kernel = found.entry.kernel
    packed = found.packed  # which another thread's first launch may replace
    is_there = limits.uses_kernels and kernel is not None and packed is not None
    if not is_there or not found.takes_pointers:
        return
    ready = kernel.ready.get((queue, found.global_range, found.local_range))
    if ready is None or any(dtype not in _CONVERTED for _, dtype in found.scalars):
        return
    parts: list[bytes] = [] if ready.extents is None else [ready.extents.addresses]
    arrays, numbers, kept = [], [], [ready, found, packed]
    for slot in found.arguments:
        arrays.append((_count(parts), slot))
        parts.append(_HOLE)
    if found.merges_chunks:
        counters = counters_of(queue)
        pointer = counters.pointer or counters.pack_pointer()
        kept += (counters, pointer)
        parts.append(pointer.addresses)
    local_memory, others = packed
    parts += [each.addresses for each in local_memory]
    for number, dtype in found.scalars:
        numbers.append((_count(parts), number, _CONVERTED[dtype]))
        parts.append(_HOLE)
    parts.append(others.addresses)
    if len(launches) >= _MOST_KNOWN:
        launches.clear()
        long_launches.clear()
    made = launches[form, id(queue)] = make(
        (
            (kernel, *kept),
            queue,
            kernel.name,
            ready.address,
            queue.addressof_ref(),
            ready.index_space.extents,
            ready.index_space.local,
            ready.kinds,
            b"".join(parts),
            tuple(arrays),
            found.count_read,
            tuple(numbers),
            (*step.new, *found.accumulators),
            step.stores[0][0],
            plan.leaves,
            get_ident() if found.merges_chunks else 0,
        )
    )
    if order_of(queue).has_long_work():
        long_launches.add(id(made))
    if in_order.is_met():  # another thread has met one meanwhile
        launches.clear()


def _count(parts: Sequence[bytes]) -> int:
    """How many addresses these are."""
    return sum(map(len, parts)) // len(_HOLE)
