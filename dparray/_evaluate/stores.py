"""Stores that follow each other: put off, and submitted together by one kernel.

Statements that write slices, ``u[1:-1] = ...; u[0] = 0; v[1:-1] = ...``, follow each other while
the kernels before them run, and a launch costs more than the work of many. So a store is put off
until anything else is submitted to the queue, or asked of it
(:attr:`dparray._runtime.order.Order.ahead`), or a store comes that no kernel can compute with it.
Then one kernel (:mod:`dparray._codegen.sequence`) computes all of them, found by one look-up of
their launches. While there is none, they are launched one by one, and it is compiled in the
background.

What a kernel can compute together follows from the elements that stores read and write
(:class:`Batch`). Stores of nothing that others write are *segments* of its range. One that
reads or writes what another writes goes into the same segment if the two have each element in the
same work-item; if not, and if it has few elements, into the kernel's *tail*, one after the other,
which the last work-group to end computes. Else it begins another kernel.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dparray import _hooks, config
from dparray._codegen import elementwise
from dparray._codegen.elementwise import Structure
from dparray._codegen.sequence import Segment, SequenceStructure, head_of
from dparray._codegen.values import POSITIONS, scalar_arguments
from dparray._compiler import interrupts
from dparray._evaluate import cost_model, schedule
from dparray._evaluate.counters import counters_of
from dparray._evaluate.kernels import obtain
from dparray._evaluate.plan import KernelLaunch
from dparray._layout import Block, Layout, are_apart
from dparray._runtime.device_facts import is_cpu, limits_of
from dparray._runtime.launch import launch as submit_launch
from dparray._runtime.order import lock, order_of
from dparray._runtime.queues import note_work
from dparray._runtime.submission import (
    Packed,
    pack_local_pointer,
    pack_pointer,
    pack_scalar,
    pack_scalars,
)
from dparray.exceptions import DparrayError

#: Larger stores are no part of a tail: one work-group runs on one core.
MOST_ELEMENTS = 1 << 12

#: Larger stores are submitted at once: beside their work a launch costs nothing, and the device
#: would be idle where the program does other things first.
MOST_PUT_OFF = 1 << 20

#: A kernel has no more parts, and no more parameters, of 8 bytes each: devices take a kilobyte.
MOST_PARTS, MOST_PARAMETERS = 16, 112

#: A large store that was put off so many times in turn, and that no other came to, is submitted at
#: once, until so many have been.
ALONE, AGAIN = 8, 64

# Work-items of a group. Those of a CPU walk memory once for each vector of them.
_LANES, _LANES_OF_CPU = 256, 16

# Groups for each compute unit, and how many elements each walks at least and at most.
_GROUPS_OF_A_UNIT, _ELEMENTS = 16, (1 << 10, 1 << 14)

#: The place of a store in the tail; others are numbers of segments.
TAIL = -1


#: Whether kernels may be put off that nobody has asked for; set with the lock of
#: :mod:`dparray._evaluate.readers` held.
are_written = False


def written(function: Callable[..., None], *arguments: Any) -> None:
    """Call a function for a statement, which asks for nothing: its kernels may be put off.

    The lock of :mod:`dparray._evaluate.readers` is held.
    """
    global are_written
    before, are_written = are_written, config.lazy
    try:
        function(*arguments)
    finally:
        are_written = before


class Stored(NamedTuple):
    """A store: its kernel, the arrays that are its arguments, and the expression's scalars."""

    launch: KernelLaunch
    layouts: list[Layout]
    scalars: Sequence[Any]


class Walk(NamedTuple):
    """How a kernel walks its arrays.

    Attributes:
        form: of two kernels of one form, work-items of the same index have the same element.
        columns: how each array is walked: its index class and strides, those of equal form.
        parameters: how many the kernel has.
    """

    form: tuple[Any, ...]
    columns: tuple[tuple[Any, ...], ...]
    parameters: int


def _walk_of(launch: KernelLaunch) -> Walk:
    """The walk of a kernel; kept with it."""
    walk: Walk | None = launch.walk
    if walk is None:
        structure = launch.structure
        numbers = tuple([number.value for number in launch.numbers])
        head = head_of(structure)
        strides = iter(numbers[head:])
        columns = [
            (dtype, cls, *[next(strides) for _ in range(cls.count("s"))])
            for dtype, cls in (*structure.arrays, *[each[1:] for each in structure.outputs])
        ]
        walk = launch.walk = Walk(
            (structure.dimensions, structure.has_rows, structure.multiplies, *numbers[:head]),
            tuple([column for column in columns if column[0] != POSITIONS]),
            len(launch.arguments) + 2 * len(launch.scalars) + len(numbers) + 2,
        )
    return walk


class _Touched(NamedTuple):
    """An array that a store reads or writes."""

    where: tuple[int, tuple[int, ...], tuple[int, ...], int]
    column: tuple[Any, ...]
    is_written: bool
    place: int


class Batch:
    """The stores that are put off on one queue; called, it submits them.

    An interrupt may come at any line. Then a store is among those of ``stores``, or it is not, and
    all else may say more than there is.

    Attributes:
        stores: those that are left, in turn, each with its place.
    """

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self.stores: list[tuple[Stored, int]] = []
        self._forms: list[tuple[Any, ...]] = []
        self._touched: dict[int, list[_Touched]] = {}
        self._parameters = 0

    def __call__(self) -> None:
        # A launch that is submitted and not noted down would be repeated.
        interrupts.after(submit, self._queue, self.stores)

    def takes(self, stored: Stored) -> bool:
        """Put a store off with the others, if a kernel can compute all of them."""
        walk = _walk_of(stored.launch)
        parameters = self._parameters + walk.parameters
        if self.stores and (
            len(self.stores) >= MOST_PARTS
            or parameters > MOST_PARAMETERS
            or self.stores[0][0].launch.fp_contract != stored.launch.fp_contract
        ):
            return False
        place = self._place_for(stored, walk)
        if place is None:
            return False
        if place == len(self._forms):
            self._forms.append(walk.form)
        self._parameters = parameters
        count_read = stored.launch.count_read
        for at, (layout, column) in enumerate(zip(stored.layouts, walk.columns, strict=True)):
            touched = _Touched(_place_of(layout), column, at >= count_read, place)
            self._touched.setdefault(layout.block.pointer, []).append(touched)
        self.stores.append((stored, place))
        return True

    def _place_for(self, stored: Stored, walk: Walk) -> int | None:
        """The segment of a store, or the tail; ``None`` where it needs another kernel."""
        launch = stored.launch
        is_small = launch.size <= MOST_ELEMENTS
        is_alone = launch.structure.elements > 1  # its work-items have several elements each
        found: int | None = None
        for at, (layout, column) in enumerate(zip(stored.layouts, walk.columns, strict=True)):
            known = self._touched.get(layout.block.pointer)
            if known is None:
                continue
            writes, where = at >= launch.count_read, _place_of(layout)
            for other in known:
                if not (writes or other.is_written) or are_apart(where, other.where):
                    continue
                is_same_item = (
                    other.place >= 0
                    and not is_alone
                    and found in (None, other.place)
                    and other.where[0] == where[0]
                    and other.column == column
                    and self._forms[other.place] == walk.form
                )
                if not is_same_item:
                    return TAIL if is_small else None
                found = other.place
        if is_alone:
            return TAIL
        if found is not None:
            return found
        return self._forms.index(walk.form) if walk.form in self._forms else len(self._forms)

    def touches(self, block: Block, writes: bool) -> bool:
        """Whether a store writes memory, or ``writes`` is true and one reads it."""
        known = self._touched.get(block.pointer, ())
        return any(writes or each.is_written for each in known)


def _place_of(layout: Layout) -> tuple[int, tuple[int, ...], tuple[int, ...], int]:
    return layout.offset, layout.shape, layout.strides, layout.dtype.itemsize


def put_off(stored: Stored, queue: Any) -> bool:
    """Submit a store later, with those that were put off before; false where it may not wait.

    Memory that others know is not among it: they may wait for the queue, which knows nothing yet.
    """
    launch = stored.launch
    if (
        type(launch.structure) is not Structure
        or launch.structure.block is not None
        or launch.structure.strips
        or launch.functions
        or (launch.size > MOST_ELEMENTS and launch.structure.elements > 1)
        or launch.size > MOST_PUT_OFF
        or queue.is_in_order
        or (launch.alone >= ALONE and launch.size > MOST_ELEMENTS and not _tries_again(launch))
    ):
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
        try:
            if batch is None or not batch.takes(stored):
                if batch is not None:
                    order.submit_ahead()
                batch = Batch(queue)
                if not batch.takes(stored):
                    return False
                order.ahead = batch
        finally:  # also where an interrupt comes once the store is among the others
            note_work(queue)
    return True


def _tries_again(launch: KernelLaunch) -> bool:
    """Whether a kernel that no other came to is put off once more."""
    launch.alone += 1
    if launch.alone < AGAIN:
        return False
    launch.alone = ALONE - 1
    return True


def submit(queue: Any, stores: list[tuple[Stored, int]]) -> None:
    """Launch stores, each with its place, by one kernel, or one after the other.

    What is launched is taken away, and what cannot be; after an error or an interrupt, the others
    are left.
    """
    if len(stores) == 1:
        stores[0][0].launch.alone += 1
    elif stores:
        for each, _ in stores:
            each.launch.alone = 0
        key = (queue, *[place for _, place in stores], *[each.launch for each, _ in stores])
        try:
            found = _sequence_of(key, queue, stores)
            if found is not None:
                in_turn = [stores[number][0] for number in found.numbers_of_stores]
                _launch(found.launch, queue, in_turn, found.numbers, found.last)
                stores.clear()
        except DparrayError:  # it cannot be compiled, or is refused: they go one by one
            _sequences[key] = None
    while stores:
        each = stores[0][0]
        try:
            _launch(each.launch, queue, [each], [_numbers_of(each.launch)])
        except DparrayError:
            del stores[0]
            raise
        del stores[0]


def _launch(
    launch: KernelLaunch,
    queue: Any,
    stores: Sequence[Stored],
    numbers: Sequence[Packed],
    last: Sequence[Packed] = (),
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
    arguments += last
    if launch.merges_chunks:
        counters = counters_of(queue)
        arguments.insert(len(arguments) - 2, counters.pointer or counters.pack_pointer())
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
    """The kernel of some launches.

    Attributes:
        launch: of the kernel.
        numbers_of_stores: which store each part of the kernel is.
        numbers: those of each part.
        last: the arguments after all parts.
    """

    launch: KernelLaunch
    numbers_of_stores: tuple[int, ...]
    numbers: list[Packed]
    last: list[Packed]


#: By queue, places and launches; ``None`` where no kernel is to compute them together.
_sequences: dict[tuple[Any, ...], _Sequence | None] = {}
_MOST_SEQUENCES = 1024
_hooks.when_set("executor", _sequences.clear)
schedule.when_forgotten.append(_sequences.clear)


def _sequence_of(
    key: tuple[Any, ...], queue: Any, stores: Sequence[tuple[Stored, int]]
) -> _Sequence | None:
    """The kernel for some stores; ``None`` while it is compiled, or where none may be."""
    if key not in _sequences:
        if len(_sequences) >= _MOST_SEQUENCES:
            _sequences.clear()
        launches, places = [each.launch for each, _ in stores], [place for _, place in stores]
        _sequences[key] = _made(queue, launches, places)
    found = _sequences[key]
    if found is not None and found.launch.entry.kernel is None:
        return found if obtain(found.launch, queue) is not None else None
    return found


def _made(queue: Any, launches: Sequence[KernelLaunch], places: Sequence[int]) -> _Sequence:
    """The kernel for some launches, which is not compiled yet."""
    is_tail = [place == TAIL for place in places]
    if max([launch.size for launch in launches]) <= MOST_ELEMENTS:  # one group is enough
        is_tail = [True] * len(launches)
    members: dict[int, list[int]] = {}
    for number, place in enumerate(places):
        if not is_tail[number]:
            members.setdefault(place, []).append(number)
    tail = [number for number in range(len(launches)) if is_tail[number]]
    size = sum([launches[each].size for own in members.values() for each in own])
    lanes, elements = _groups_of(queue, size)
    segments, numbers = [], []
    last: list[int] = []
    groups = 0
    for own in members.values():
        walked = _range_of(launches[own[0]], lanes, elements)
        segments.append(Segment(tuple([launches[each].structure for each in own]), walked.cuts > 1))
        for position, each in enumerate(own):
            launch = launches[each]
            skipped = head_of(launch.structure) if position else 0
            numbers.append(pack_scalars(launch.numbers[skipped:]))
        count = -(-walked.all // walked.pieces)
        last += [groups, groups + count, walked.pieces, walked.all, walked.extent]
        last += [walked.cuts, walked.length] * (walked.cuts > 1)
        groups += count
    parts = []
    for each in tail:
        launch = launches[each]
        structure, found = elementwise.in_one_dimension(launch.structure, launch.numbers)
        parts.append(structure)
        numbers.append(pack_scalars([*found, ctypes.c_int64(-(-launch.size // lanes))]))
    first = launches[0]
    whole = SequenceStructure(tuple(segments), tuple(parts))
    arguments = [pack_scalars(map(ctypes.c_uint64, last))] if last else []
    if whole.is_counted:
        arguments.append(pack_local_pointer(np.dtype(np.int32), 1))
        arguments.append(pack_scalars([ctypes.c_uint64(groups)]))
    made = KernelLaunch(
        structure=whole,
        entry=schedule.entry_of(whole, first.fp_contract),
        functions={},
        arguments=(),
        outputs=(),
        accumulators=(),
        nodes=(),
        scalars=(),
        numbers=(),
        local_memory=(),
        global_range=(max(groups, 1) * lanes,),
        local_range=(lanes,),
        size=sum(launch.size for launch in launches),
        must_compile=False,
        fp_contract=first.fp_contract,
        merges_chunks=whole.is_counted,
        gain=(len(launches) - 1) * cost_model.terms().launch,
    )
    in_turn = [each for own in members.values() for each in own]
    return _Sequence(made, (*in_turn, *tail), numbers, arguments)


class _Range(NamedTuple):
    """How groups walk a segment.

    Attributes:
        extent: the elements of a row.
        cuts: the pieces that a row is cut into.
        length: the elements of each piece.
        all: how many pieces there are.
        pieces: how many a group walks.
    """

    extent: int
    cuts: int
    length: int
    all: int
    pieces: int


def _range_of(launch: KernelLaunch, lanes: int, elements: int) -> _Range:
    """How groups of so many work-items walk a kernel's elements, about so many each."""
    structure = launch.structure
    extent = launch.numbers[structure.dimensions - 1].value if structure.has_rows else launch.size
    cuts = -(-extent // elements) if extent >= 2 * elements else 1
    length = -(-extent // cuts // lanes) * lanes if cuts > 1 else extent
    cuts = -(-extent // length)
    return _Range(extent, cuts, length, launch.size // extent * cuts, max(elements // length, 1))


def _groups_of(queue: Any, size: int) -> tuple[int, int]:
    """The work-items of a group, and about how many elements of all segments one walks."""
    limits = limits_of(queue)
    lanes = min(_LANES_OF_CPU if is_cpu(queue) and size else _LANES, limits.group)
    least, most = _ELEMENTS
    return lanes, min(max(size // (_GROUPS_OF_A_UNIT * limits.units), least), most)
