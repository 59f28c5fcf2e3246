"""Small stores to memory at work: put off, and submitted together by one kernel.

Statements that write borders and corners, ``u[0, :] = 0; u[:, -1] = u[:, -2]; ...``, follow each
other while the kernel before them runs. Each has a kernel of few elements, and a launch costs more
than its work. So they are put off until anything else is submitted to the queue, or asked of it
(:attr:`dparray._runtime.order.Order.ahead`): then one kernel of one work-group computes them one
after the other (:mod:`dparray._codegen.sequence`), found by one look-up of their launches. While
there is none, they are launched one by one, and it is compiled in the background.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

from dparray import _hooks
from dparray._codegen import elementwise
from dparray._codegen.sequence import SequenceStructure
from dparray._codegen.values import scalar_arguments
from dparray._evaluate import cost_model, limits, schedule
from dparray._evaluate.kernels import obtain
from dparray._evaluate.plan import KernelEntry, KernelLaunch
from dparray._layout import Layout
from dparray._runtime.device_facts import limits_of
from dparray._runtime.launch import launch as submit_launch
from dparray._runtime.order import lock, order_of
from dparray._runtime.queues import note_work
from dparray._runtime.submission import Packed, pack_pointer, pack_scalar, pack_scalars

#: Larger stores are launched by themselves: one work-group runs on one core.
MOST_ELEMENTS = 1 << 12

#: A kernel has no more parts, and no more arrays.
MOST_PARTS, MOST_ARRAYS = 12, 16

#: Work-items of the group.
_LANES = 256


class Stored(NamedTuple):
    """A store: its kernel, the arrays that are its arguments, and the expression's scalars."""

    launch: KernelLaunch
    layouts: list[Layout]
    scalars: Sequence[Any]


class _Batch:
    """The stores that are put off on one queue; called, it submits them."""

    def __init__(self, queue: Any, first: Stored) -> None:
        self.queue = queue
        self.stores = [first]
        self.arrays = len(first.layouts)

    def __call__(self) -> None:
        submit(self.queue, self.stores)


def put_off(stored: Stored, queue: Any) -> bool:
    """Submit a store later, with those that were put off before; false where it may not wait.

    Memory that others know is not among it: they may wait for the queue, which knows nothing yet.
    """
    launch = stored.launch
    is_small = launch.size <= MOST_ELEMENTS and launch.structure.block is None
    if not is_small or launch.functions or queue.is_in_order:
        return False
    for layout in stored.layouts:
        memory = layout.block.segment
        if memory is None or memory.is_shared:
            return False
    with lock:
        order = order_of(queue)
        if order.is_submitting_ahead:  # this is asked for by a finalizer, say
            return False
        batch = order.ahead
        if (
            type(batch) is _Batch
            and len(batch.stores) < MOST_PARTS
            and batch.arrays + len(stored.layouts) <= MOST_ARRAYS
        ):
            batch.stores.append(stored)
            batch.arrays += len(stored.layouts)
        else:
            if batch is not None:
                order.submit_ahead()
            order.ahead = _Batch(queue, stored)
        note_work(queue)
    return True


def submit(queue: Any, stores: Sequence[Stored]) -> None:
    """Launch stores, one after the other or by one kernel."""
    found = _sequence_of(queue, [each.launch for each in stores]) if len(stores) > 1 else None
    if found is not None:
        _launch(found.launch, queue, stores, found.numbers)
    else:
        for each in stores:
            _launch(each.launch, queue, [each], [_numbers_of(each.launch)])


def _launch(
    launch: KernelLaunch, queue: Any, stores: Sequence[Stored], numbers: Sequence[Packed]
) -> None:
    """Launch the kernel of some stores; each has its own arrays, scalars and numbers."""
    arguments: list[Packed] = []
    read, written = [], []
    for stored, own in zip(stores, numbers, strict=True):
        arguments += _arguments(stored)
        arguments.append(own)
        memory = [layout.block.segment for layout in stored.layouts]
        count = stored.launch.count_read
        read += memory[:count]
        written += memory[count:]
    submit_launch(
        launch.entry.kernel,
        launch.global_range,
        launch.local_range,
        arguments,
        queue,
        memory=[*read, *written],
        reads=len(read),
    )


def _arguments(stored: Stored) -> list[Packed]:
    """The arrays and scalars of a store."""
    arguments = []
    for layout in stored.layouts:
        block = layout.block
        arguments.append(pack_pointer(block.memory, block.pointer + layout.offset, block.nbytes))
    for number, dtype in stored.launch.scalars:
        arguments += map(pack_scalar, scalar_arguments(stored.scalars[number], dtype))
    return arguments


def _numbers_of(launch: KernelLaunch) -> Packed:
    if launch.packed is None:
        launch.packed = ([], pack_scalars(launch.numbers))
    numbers: Packed = launch.packed[1]
    return numbers


class _Sequence(NamedTuple):
    """The kernel of some launches, and the numbers of each."""

    launch: KernelLaunch
    numbers: list[Packed]


_sequences: dict[tuple[Any, ...], _Sequence] = {}
_MOST_SEQUENCES = 1024


def _forget() -> None:
    _sequences.clear()


_hooks.when_set("executor", _forget)


def _sequence_of(queue: Any, launches: list[KernelLaunch]) -> _Sequence | None:
    """The kernel for some launches; ``None`` while it is compiled, or where none may be."""
    key = (queue, *launches)
    found = _sequences.get(key)
    if found is None:
        if len(_sequences) >= _MOST_SEQUENCES:
            _sequences.clear()
        found = _sequences[key] = _made(queue, launches)
    entry = found.launch.entry
    if entry.kernel is None and (
        not limits.compiles_in_background() or obtain(found.launch, queue) is None
    ):
        return None
    return found


def _made(queue: Any, launches: list[KernelLaunch]) -> _Sequence:
    lanes = min(_LANES, limits_of(queue).group)
    parts, numbers = [], []
    for launch in launches:
        structure, own = elementwise.in_one_dimension(launch.structure, launch.numbers)
        parts.append(structure)
        numbers.append(pack_scalars([*own, ctypes.c_int64(-(-launch.size // lanes))]))
    first = launches[0]
    whole = SequenceStructure(tuple(parts))
    entry = schedule.entries.setdefault((whole, first.fp_contract), KernelEntry())
    made = KernelLaunch(
        structure=whole,
        entry=entry,
        functions={},
        arguments=(),
        outputs=(),
        accumulators=(),
        nodes=(),
        scalars=(),
        numbers=(),
        local_memory=(),
        global_range=(lanes,),
        local_range=(lanes,),
        size=sum(launch.size for launch in launches),
        must_compile=False,
        fp_contract=first.fp_contract,
        merges_chunks=False,
        gain=(len(launches) - 1) * cost_model.terms().launch,
    )
    return _Sequence(made, numbers)
