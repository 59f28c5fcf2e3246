"""``dp.simulate``: run a kernel on the host, and find what a device cannot report.

Work-groups run one after another, and the items of a group in the order of their linear ids. One
item runs at a time; an item that reaches a barrier stops until all items of its group have come to
it, so the order is always the same.

The program of the kernel is interpreted (:mod:`dparray._simulator.interpreted_kernel`). Under a
debugger, with ``item=`` and for what the front end refuses, a copy of the kernel's function with
the same lines is run. In it, the names of the kernel language, ``math`` and a few builtins stand
for their simulated counterparts, and the functions it calls are copied likewise; a variable has the
type of its last value. Suspended items wait in threads of their own.
"""

from __future__ import annotations

import inspect
import itertools
import operator
import sys
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any

from dparray._language.promotion import rules_of
from dparray._simulator.arguments import Arguments, HostArguments
from dparray._simulator.interpreted_kernel import Item, program_of, run
from dparray._simulator.language import (
    SimulatedItem,
    SimulatedNdItem,
    linear_index,
    position_in_sub_group,
)
from dparray._simulator.memory import WorkItem
from dparray._simulator.simulation import GroupRun, Simulation, Workers, WorkGroup
from dparray.exceptions import (
    KernelArgumentError,
    KernelRangeError,
)

__all__ = [
    "simulate",
]

_RACES = ("error", "same-value", "ignore")


def simulate(
    kernel: Any,
    index_range: Any,
    /,
    *args: Any,
    races: str = "error",
    item: Any = None,
    sub_group_size: int = 16,
    **named: Any,
) -> Any:
    """Run ``kernel`` over ``index_range`` in plain Python, checking every access it makes.

    The results are those of the device, up to the last bits of mathematical functions and of
    fused multiply-adds, and up to the order of atomic additions of floats.

    Args:
        kernel: a function written in the kernel language, or what ``dp.kernel`` or
            ``numba_dpex.kernel`` made of one; or a function compiled by ``dp.jit``, whose
            arguments follow without a range: ``dp.simulate(f, x, y)``. Its ``prange`` loops are
            simulated, indices are checked everywhere, and its result is returned.
        index_range: a ``Range`` (or an integer, or a tuple of integers), or an ``NdRange`` (or a
            tuple of two tuples, the global and the local size).
        args: the kernel's arguments after the item: NumPy arrays (changed in place), dparray
            arrays (copied to the host, and those written back afterwards), scalars, and
            ``LocalAccessor`` objects where the range has work-groups. Those with a default
            may be left out.
        races: ``"error"`` reports every pair of conflicting accesses; ``"same-value"`` lets two
            items write the same value to one element (works on today's devices, but SYCL does
            not promise it); ``"ignore"`` checks none and runs faster.
        item: the global id of one work-item, to look at it in a debugger: only its work-group
            runs, or only the item itself over a plain range. This item runs in the calling
            thread, the others of its group in threads of their own. Breakpoints of
            ``pdb`` in the kernel then stop in this item only. ``breakpoint()`` in the kernel stops
            in every item that reaches it, with or without ``item``.
        sub_group_size: the work-items of a sub-group, which are neighbors in the first dimension;
            the last ones of a row are fewer.
        named: arguments of the kernel by name.

    Raises:
        SimulationError: naming the kernel, its line, the item and the index, for an access out
            of bounds; a barrier that not all items of a group reach, or not the same one; a read
            of local or private memory that no item wrote; two items that access one element, one of
            them writing, with neither an atomic nor a barrier to order them; an item that waits
            for another one in a loop; and any exception that the kernel's code raises.
        KernelArgumentError: an argument a kernel cannot take, or too many or too few.
        ExecutionPlacementError: dparray arrays on different queues, which a launch would refuse.
        KernelRangeError: a size is negative, or the local size does not divide the global size.

    After an error, NumPy arrays hold what was written until then, and dparray arrays are unchanged.

    Placement: runs on the host; dparray arrays are on one queue, as for a launch.

    Example:
        >>> import numpy as np
        >>> from dparray import simulate
        >>> def double(item, x, out):
        ...     i = item.get_id(0)
        ...     out[i] = x[i] * 2
        >>> x, out = np.arange(4), np.zeros(4, dtype=np.int64)
        >>> simulate(double, 4, x, out)
        >>> out
        array([0, 2, 4, 6])
    """
    if races not in _RACES:
        raise ValueError(f"simulate: races must be one of {', '.join(_RACES)}; got {races!r}")
    if not isinstance(sub_group_size, int) or sub_group_size < 1:
        raise ValueError(f"simulate: sub_group_size is a positive integer; got {sub_group_size!r}")
    if hasattr(kernel, "simulate"):
        return kernel.simulate(
            (index_range, *args),
            named,
            lambda each, space, *given: simulate(each, space, *given, races=races),
        )
    function = _python_function(kernel)
    global_size, local_size = _sizes(index_range)
    values = _all_arguments(function, args, named)
    host = HostArguments(function, values, grouped=local_size is not None)
    item_key = f"{'item' if local_size is None else 'nditem'}:{len(global_size)}"
    chosen = None if item is None else _chosen_item(item, global_size)
    keys = [item_key, *host.keys]
    if chosen is None and sys.gettrace() is None:  # A debugger stops in Python functions alone.
        rules = rules_of(getattr(kernel, "options", {}))
        program = program_of(function, keys, rules)
        if program is not None:
            groups = _groups_of_ids(global_size, local_size, sub_group_size)
            run(program, host, groups, global_size, races)
            return None
    simulation = Simulation(function, races)
    arguments = Arguments(simulation, host)
    with Workers() as workers:
        for group in _work_groups(global_size, local_size, chosen, sub_group_size):
            GroupRun(simulation, group, arguments.for_group(), workers).run()
    arguments.write_back()
    return None


def _groups_of_ids(
    global_size: tuple[int, ...], local_size: tuple[int, ...] | None, width: int
) -> Iterator[Sequence[Item]]:
    """Yield the work-items of each group."""
    local = (1,) * len(global_size) if local_size is None else local_size
    group_range = tuple(map(operator.floordiv, global_size, local))
    for group_id in itertools.product(*map(range, group_range)):
        group = linear_index(group_id, group_range)
        yield [
            Item(global_size, local, group_id, local_id, width, group=group)
            for local_id in itertools.product(*map(range, local))
        ]


def _all_arguments(
    function: FunctionType, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, ...]:
    """Return the arguments after the item, including those given by name and the defaults."""
    signature = inspect.signature(function)
    try:
        bound = signature.bind(None, *args, **named)
    except TypeError as error:
        if named:
            raise KernelArgumentError(f"simulate({function.__name__}): {error}") from None
        return args  # A wrong number of arguments is reported with their names.
    bound.apply_defaults()
    return tuple(bound.arguments.values())[1:]


def _python_function(kernel: Any) -> FunctionType:
    function = getattr(kernel, "py_func", kernel)
    if not isinstance(function, FunctionType):
        raise KernelArgumentError(
            f"simulate: needs a kernel or the Python function of one; got {kernel!r} of type "
            f"{type(kernel).__name__}"
        )
    if not getattr(kernel, "_has_item", True):
        raise KernelArgumentError(
            f"simulate: the kernel {function.__name__} has no work-item parameter; write "
            f"def {function.__name__}(item, ...) with item.get_global_id(0) for get_global_id(0)"
        )
    return function


def _sizes(index_range: Any) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return the global size, and the local size if there are work-groups."""
    if hasattr(index_range, "global_range") and hasattr(index_range, "local_range"):
        global_size, local_size = index_range.global_range, index_range.local_range
    elif (
        isinstance(index_range, tuple)
        and len(index_range) == 2
        and all(isinstance(one, (tuple, list)) for one in index_range)
    ):
        global_size, local_size = index_range
    else:
        return _extents(index_range, least=0), None
    wide, narrow = _extents(global_size), _extents(local_size)
    if len(wide) != len(narrow) or any(map(operator.mod, wide, narrow)):
        raise KernelRangeError(
            f"simulate: the local size {narrow} does not divide the global size {wide}"
        )
    return wide, narrow


def _extents(size: Any, least: int = 1) -> tuple[int, ...]:
    try:
        extents = tuple(map(operator.index, size if isinstance(size, (tuple, list)) else (size,)))
    except TypeError:
        raise KernelRangeError(
            f"simulate: a range is 1 to 3 integers, a Range or an NdRange; got {size!r}"
        ) from None
    if not 1 <= len(extents) <= 3 or min(extents) < least:
        raise KernelRangeError(f"simulate: a range is 1 to 3 positive integers; got {size!r}")
    return extents


def _chosen_item(item: Any, global_size: tuple[int, ...]) -> tuple[int, ...]:
    chosen = tuple(map(int, item if isinstance(item, (tuple, list)) else (item,)))
    if len(chosen) != len(global_size) or not all(
        0 <= one < extent for one, extent in zip(chosen, global_size, strict=False)
    ):
        raise KernelRangeError(
            f"simulate: item {chosen} is not in the global range {tuple(global_size)}"
        )
    return chosen


def _work_groups(
    global_size: tuple[int, ...],
    local_size: tuple[int, ...] | None,
    chosen: tuple[int, ...] | None,
    width: int,
) -> Iterator[WorkGroup]:
    if local_size is None:
        ids = itertools.product(*map(range, global_size)) if chosen is None else (chosen,)
        for global_id in ids:
            serial = linear_index(global_id, global_size)
            alone = WorkItem(global_id, serial, serial, 0)
            yield WorkGroup([SimulatedItem(alone, global_size)], None)
        return
    group_range = tuple(map(operator.floordiv, global_size, local_size))
    for group_id in itertools.product(*map(range, group_range)):
        if chosen is not None and group_id != tuple(map(operator.floordiv, chosen, local_size)):
            continue
        items = []
        for local, local_id in enumerate(itertools.product(*map(range, local_size))):
            global_id = tuple(
                group * extent + one
                for group, extent, one in zip(group_id, local_size, local_id, strict=True)
            )
            work_item = WorkItem(
                global_id,
                linear_index(global_id, global_size),
                linear_index(group_id, group_range),
                local,
                *position_in_sub_group(local_id, local_size, width),
            )
            items.append(SimulatedNdItem(work_item, local_id, global_size, local_size, width))
        yield WorkGroup(items, chosen)
