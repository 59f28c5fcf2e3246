"""Simulated memory: arrays that check every access, and atomic operations.

An element is known by its address, so two arguments that are views of one allocation share
their history. For each address the latest accesses are kept, with the work-item, the number of
barriers its work-group had passed, and the line. Two accesses of different items conflict when
one of them writes, not both are atomic, and nothing orders them. Ordered are: accesses of one
item; of one work-group with a barrier between them; and what an atomic with release order (or
after a release fence) hands to one with acquire order (or before an acquire fence).
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from types import CodeType
from typing import Any, Protocol

import numpy as np

from dparray._simulator.simulated_numbers import CONSTRUCTORS, loaded, plain_dtype
from dparray.exceptions import SimulationError

# The values of MemoryOrder and AddressSpace.
_ACQUIRE_ORDERS = (1, 4, 5)
_RELEASE_ORDERS = (3, 4, 5)
_ADDRESS_SPACES = {"private": 0, "global": 1, "local": 3}
_GENERIC = 4
_SPIN_LIMIT = 100_000


class Clock:
    """The finished work that an item may rely on: phases of work-groups, accesses of items."""

    __slots__ = ("groups", "items")

    def __init__(self, groups: dict[int, int], items: dict[int, int]) -> None:
        self.groups = groups
        self.items = items

    def joined(self, other: Clock | None) -> Clock:
        if other is None or other is self:
            return self
        return Clock(_maxima(self.groups, other.groups), _maxima(self.items, other.items))


def _maxima(a: dict[int, int], b: dict[int, int]) -> dict[int, int]:
    return {key: max(a.get(key, 0), b.get(key, 0)) for key in a.keys() | b.keys()}


# item, its phase, its time, code, line
Access = tuple["WorkItem", int, int, CodeType, int]


class WorkItem:
    """A work-item: its ids, and the work that happened before its next access.

    ``phase`` counts the barriers its group has passed, ``time`` its own release operations. In a
    sub-group, ``part`` is the index of that one, ``lane`` its own, ``part_phase`` counts barriers.
    """

    __slots__ = (
        "clock", "fenced", "global_id", "group", "lane", "local_linear", "part", "part_phase",
        "phase", "seen", "serial", "spin", "time",
    )  # fmt: skip

    def __init__(
        self,
        global_id: tuple[int, ...],
        serial: int,
        group: int,
        local: int,
        part: int = 0,
        lane: int = 0,
    ) -> None:
        self.global_id = global_id
        self.serial = serial
        self.group = group
        self.local_linear = local
        self.part = part
        self.lane = lane
        self.part_phase = 0
        self.phase = 0
        self.time = 1
        self.clock: Clock | None = None
        self.fenced: Clock | None = None  # published by a release fence
        self.seen: Clock | None = None  # read by relaxed atomics, for an acquire fence
        self.spin: tuple[Any, int] = (None, 0)

    def ordered_after(self, access: Access) -> bool:
        other = access[0]
        if other is self or (other.group == self.group and access[1] < self.phase):
            return True
        clock = self.clock
        return clock is not None and (
            clock.groups.get(other.group, 0) > access[1]
            or clock.items.get(other.serial, 0) >= access[2]
        )

    def release(self) -> Clock:
        """Return the work ordered before this moment, for the items that acquire it."""
        clock = Clock({self.group: self.phase}, {self.serial: self.time}).joined(self.clock)
        self.time += 1
        return clock

    def acquire(self, clock: Clock | None) -> None:
        if clock is not None:
            self.clock = clock.joined(self.clock)

    def fence(self, order: int) -> None:
        if order in _ACQUIRE_ORDERS:
            self.acquire(self.seen)
        if order in _RELEASE_ORDERS:
            self.fenced = self.release()


class Engine(Protocol):
    """The running simulation, as arrays access it."""

    item: WorkItem
    races: str

    def where(self) -> tuple[CodeType, int]: ...
    def fault(self, problem: str, remedy: str) -> SimulationError: ...
    def line_of(self, access: Access) -> str: ...


class Elements(Protocol):
    """An array, or memory, whose elements are accessed at positions."""

    @property
    def name(self) -> str: ...
    def element(self, position: Any) -> str: ...
    def holds(self, position: Any, value: Any) -> bool: ...


class _Location:
    """The accesses to one address that a later access may conflict with."""

    __slots__ = ("atomic_reads", "atomic_writes", "reads", "write")

    def __init__(self) -> None:
        self.write: Access | None = None
        self.reads: tuple[Access, ...] = ()
        self.atomic_reads: tuple[Access, ...] = ()
        self.atomic_writes: tuple[Access, ...] = ()


def _remember(kept: tuple[Access, ...], access: Access) -> tuple[Access, ...]:
    """Store at most four accesses, chosen so that a later access which conflicts with a dropped
    one also conflicts with a stored one. Groups run one after another, so one access of another
    group and two of the latest group are enough; a second one of another group is needed when
    atomics order groups.
    """
    if not kept:
        return (access,)
    item = access[0]
    mine: list[Access] = []
    others: list[Access] = []
    for old in kept:
        if old[0] is not item:
            (mine if old[0].group == item.group else others).append(old)
    return (*others[-2:], *mine[-1:], access)


class Memory:
    """The history of one address space; ``kind`` is ``"global"``, ``"local"`` or ``"private"``.

    ``written`` holds the addresses that have a value, or is ``None`` where all have.
    """

    def __init__(self, kind: str, initialised: bool) -> None:
        self.kind = kind
        self.written: set[int] | None = None if initialised else set()
        self.clocks: dict[int, Clock] = {}
        self._locations: dict[int, _Location] = {}

    def read(self, engine: Engine, array: Elements, position: Any, address: int) -> None:
        if self.written is not None and address not in self.written:
            raise engine.fault(
                f"reads {array.element(position)} of {self.kind} memory, which no item wrote",
                "write the element first"
                + (", and put group_barrier(group) between" if self.kind == "local" else ""),
            )
        if engine.races == "ignore" or self.kind == "private":
            return
        item = engine.item
        location = self._locations.get(address)
        if location is None:
            location = self._locations[address] = _Location()
        if location.write is not None and not item.ordered_after(location.write):
            self._conflict(engine, array, position, location.write, "wrote", "reads")
        for access in location.atomic_writes:
            if not item.ordered_after(access):
                self._conflict(engine, array, position, access, "changed (atomically)", "reads")
        location.reads = _remember(location.reads, (item, item.phase, item.time, *engine.where()))

    def write(
        self, engine: Engine, array: Elements, position: Any, address: int, value: Any
    ) -> None:
        if self.written is not None:
            self.written.add(address)
        if engine.races == "ignore" or self.kind == "private":
            return
        item = engine.item
        location = self._locations.get(address)
        if location is None:
            location = self._locations[address] = _Location()
        else:
            earlier = location.write
            if (
                earlier is not None
                and not item.ordered_after(earlier)
                and not (engine.races == "same-value" and array.holds(position, value))
            ):
                self._conflict(engine, array, position, earlier, "wrote", "writes")
            for accesses, verb in (
                (location.reads, "read"),
                (location.atomic_reads, "read (atomically)"),
                (location.atomic_writes, "changed (atomically)"),
            ):
                for access in accesses:
                    if not item.ordered_after(access):
                        self._conflict(engine, array, position, access, verb, "writes")
            # Later accesses that conflict with these also conflict with this write.
            location.reads = location.atomic_reads = location.atomic_writes = ()
        location.write = (item, item.phase, item.time, *engine.where())

    def atomic(
        self, engine: Engine, array: Elements, position: Any, address: int, *, changes: bool
    ) -> None:
        """Record an atomic operation: a load, or with ``changes`` any other."""
        if self.written is not None and changes:
            self.written.add(address)
        if engine.races == "ignore" or self.kind == "private":
            return
        item = engine.item
        location = self._locations.get(address)
        if location is None:
            location = self._locations[address] = _Location()
        verb = "changes (atomically)" if changes else "reads (atomically)"
        if location.write is not None and not item.ordered_after(location.write):
            self._conflict(engine, array, position, location.write, "wrote", verb)
        access = (item, item.phase, item.time, *engine.where())
        if not changes:
            location.atomic_reads = _remember(location.atomic_reads, access)
            return
        for earlier in location.reads:
            if not item.ordered_after(earlier):
                self._conflict(engine, array, position, earlier, "read", verb)
        location.atomic_writes = _remember(location.atomic_writes, access)

    def _conflict(
        self,
        engine: Engine,
        array: Elements,
        position: Any,
        earlier: Access,
        earlier_verb: str,
        verb: str,
    ) -> None:
        item = engine.item
        name = array.element(position)
        if "atomically" in earlier_verb + verb:
            remedy = "make both accesses atomic (AtomicRef), or order them with a barrier"
        elif earlier[0].group == item.group and self.kind != "global":
            remedy = "put group_barrier(group) between the two, or use AtomicRef"
        elif verb == "writes" and earlier_verb == "wrote":
            remedy = f"give each item an element of its own, or use AtomicRef({array.name}, index)"
        else:
            remedy = (
                "let the kernel read from one array and write to another, use AtomicRef, or make "
                "two launches of it"
            )
        between = (
            "with no barrier between"
            if earlier[0].group == item.group
            else "and nothing orders items of different work-groups"
        )
        raise engine.fault(
            f"{verb} {name}, which work-item {earlier[0].global_id} {earlier_verb} at "
            f"{engine.line_of(earlier)}, {between}",
            f'{remedy} (races="ignore" turns this check off)',
        )


class SimulatedArray:
    """An array inside a kernel: every access to an element is checked.

    Negative indices of signed types count from the end, as they do on the device.
    """

    __slots__ = (
        "_accepted", "_address", "_data", "_engine", "_made", "_memory", "_steps", "dtype",
        "itemsize", "name", "nbytes", "ndim", "root", "shape", "size", "strides", "touched",
    )  # fmt: skip

    def __init__(
        self,
        data: np.ndarray[Any, Any],
        name: str,
        engine: Engine,
        memory: Memory,
        root: SimulatedArray | None = None,
    ) -> None:
        self._data = data
        self._engine = engine
        self._memory = memory
        self._address: int = data.__array_interface__["data"][0]
        self._steps = tuple(zip(data.shape, data.strides, strict=True))
        kind = data.dtype.type
        self._made = CONSTRUCTORS.get(kind)
        self._accepted = (kind, self._made)
        self.name = name
        self.root = self if root is None else root
        self.touched = False
        self.dtype = data.dtype
        self.ndim = data.ndim
        self.shape = data.shape
        self.strides = data.strides
        self.size = data.size
        self.itemsize = data.itemsize
        self.nbytes = data.nbytes

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[Any]:
        return (self[position] for position in range(len(self)))

    def __repr__(self) -> str:
        return f"<{self.name}, {self._memory.kind} memory: {self._data!r}>"

    def __getitem__(self, index: Any) -> Any:
        position, address = self._locate(index, "reads")
        if position is None:
            return self._view(index)
        self._memory.read(self._engine, self, position, address)
        value = self._data[position]
        return value if self._made is None else self._made(value)

    def __setitem__(self, index: Any, value: Any) -> None:
        position, address = self._locate(index, "writes")
        if position is None:
            target = self._view(index)
            for position in itertools.product(*map(range, target._data.shape)):
                target[position] = value
            return
        self.put(position, address, value)

    def put(self, position: Any, address: int, value: Any) -> None:
        converted = self.converted(value)
        self._memory.write(self._engine, self, position, address, converted)
        self._data[position] = converted
        self.root.touched = True

    def converted(self, value: Any) -> Any:
        """Return ``value`` in this array's dtype, truncated to its low bits as on the device."""
        if type(value) in self._accepted:
            return value
        if isinstance(value, (complex, np.complexfloating)) and self.dtype.kind != "c":
            raise self._engine.fault(
                f"stores a complex number in {self.name}, which has dtype {self.dtype}",
                "store its .real or .imag",
            )
        if value is None:
            raise self._engine.fault(f"stores None in {self.name}", "give it a number on all paths")
        return np.asarray(value).astype(self.dtype)[()]

    def holds(self, position: Any, value: Any) -> bool:
        return bool(self._data[position].tobytes() == value.tobytes())

    def element(self, position: Any) -> str:
        inner = position if not isinstance(position, tuple) else ", ".join(map(str, position))
        return f"{self.name}[{inner}]"

    def locate_element(self, index: Any, verb: str) -> tuple[Any, int]:
        position, address = self._locate(index, verb)
        if position is None:
            raise self._engine.fault(
                f"{verb} {self.name} with the index {index!r}, which is not one element",
                f"give {self.ndim} integers",
            )
        return position, address

    def current(self, position: Any, address: int) -> Any:
        """Return the value at ``position``, for an atomic operation."""
        if self._memory.written is not None and address not in self._memory.written:
            raise self._engine.fault(
                f"reads {self.element(position)} of {self._memory.kind} memory, "
                "which no item wrote",
                "write the element first, and put group_barrier(group) between",
            )
        value = self._data[position]
        return value if self._made is None else self._made(value)

    def store_atomic(self, position: Any, value: Any) -> None:
        self._data[position] = self.converted(value)
        self.root.touched = True

    @property
    def memory(self) -> Memory:
        return self._memory

    def _locate(self, index: Any, verb: str) -> tuple[Any, int]:
        """Return position and address of an element; no position for slices and rows."""
        indices = index if type(index) is tuple else (index,)
        if len(indices) != self.ndim:
            if len(indices) > self.ndim:
                raise self._engine.fault(
                    f"{verb} {self.name}, which has {self.ndim} dimensions, with {len(indices)} "
                    "indices",
                    "give one index for each dimension",
                )
            return None, 0
        address = self._address
        positions = []
        for dimension, one in enumerate(indices):
            extent, stride = self._steps[dimension]
            try:
                position = operator.index(one)
            except TypeError:
                if isinstance(one, slice) or one is Ellipsis or one is None:
                    return None, 0
                raise self._engine.fault(
                    f"{verb} {self.name} with the index {one!r} of type {type(one).__name__}",
                    "make it an integer: int(...), or // instead of /",
                ) from None
            if position < 0:
                position += extent
            if not 0 <= position < extent:
                raise self._engine.fault(
                    f"{verb} {self.name}[{', '.join(map(_shown, indices))}], outside its shape "
                    f"{self._data.shape} in dimension {dimension}",
                    f"test the index against {self.name}.shape[{dimension}] first",
                )
            address += position * stride
            positions.append(position)
        return (positions[0] if len(positions) == 1 else tuple(positions)), address

    def _view(self, index: Any) -> SimulatedArray:
        indices = index if type(index) is tuple else (index,)
        checked = tuple(
            operator.index(one) if isinstance(one, (int, np.integer)) else one for one in indices
        )
        try:
            data = self._data[checked]
        except IndexError as error:
            raise self._engine.fault(
                f"takes the view {self.name}[{', '.join(map(_shown, indices))}], outside its shape "
                f"{self._data.shape}: {error}",
                f"test the index against {self.name}.shape first",
            ) from None
        return SimulatedArray(data, self.name, self._engine, self._memory, self.root)


def _shown(index: Any) -> str:
    return str(int(index)) if isinstance(index, (int, np.integer)) else repr(index)


class PrivateArray(SimulatedArray):
    """An array of one work-item's own; elements are undefined until written."""

    __slots__ = ()

    def __init__(self, engine: Engine, shape: Any, dtype: Any, fill_zeros: bool = False) -> None:
        extents = shape if isinstance(shape, (tuple, list)) else (shape,)
        super().__init__(
            np.zeros(tuple(map(int, extents)), plain_dtype(dtype)),
            "PrivateArray",
            engine,
            Memory("private", initialised=bool(fill_zeros)),
        )


class AtomicRef:
    """Atomic operations on one element; the memory order decides what else they order."""

    __slots__ = (
        "_address", "_array", "_engine", "_index", "_position",
        "address_space", "memory_order", "memory_scope",
    )  # fmt: skip

    def __init__(
        self,
        engine: Engine,
        ref: SimulatedArray,
        index: Any,
        memory_order: int = 0,
        memory_scope: int = 3,
        address_space: int | None = None,
    ) -> None:
        self._engine = engine
        self._array = ref
        self._index = index
        self._position, self._address = ref.locate_element(index, "makes an AtomicRef of")
        self.memory_order = memory_order
        self.memory_scope = memory_scope
        self.address_space = address_space
        if address_space not in (None, _GENERIC, _ADDRESS_SPACES[ref.memory.kind]):
            raise engine.fault(
                f"makes an AtomicRef of {ref.name}, which is in {ref.memory.kind} memory, with "
                f"address_space={address_space!r}",
                f"use AddressSpace.{ref.memory.kind.upper()} or leave the argument out",
            )

    @property
    def ref(self) -> Any:
        return self.load()

    def load(self) -> Any:
        value = self._read(changes=False)
        self._count_spin(value)
        return value

    def store(self, val: Any) -> None:
        self._record(changes=True)
        self._publish()
        self._array.store_atomic(self._position, val)

    def exchange(self, val: Any) -> Any:
        return self._change(lambda old, val: val, val)

    def compare_exchange(self, expected_ref: Any, desired: Any, expected_idx: Any = 0) -> Any:
        is_number = not hasattr(expected_ref, "__setitem__")
        old = self._read(changes=True)
        expected = expected_ref if is_number else expected_ref[expected_idx]
        swapped = bool(old == self._array.converted(expected))
        if swapped:
            self._publish()
            self._array.store_atomic(self._position, desired)
        else:
            if not is_number:
                expected_ref[expected_idx] = old
            self._count_spin(old)
        return (swapped, loaded(old)) if is_number else swapped

    def fetch_add(self, val: Any) -> Any:
        return self._change(lambda old, val: old + self._array.converted(val), val)

    def fetch_sub(self, val: Any) -> Any:
        return self._change(lambda old, val: old - self._array.converted(val), val)

    def fetch_min(self, val: Any) -> Any:
        return self._change(lambda old, val: min(old, self._array.converted(val)), val)

    def fetch_max(self, val: Any) -> Any:
        return self._change(lambda old, val: max(old, self._array.converted(val)), val)

    def fetch_and(self, val: Any) -> Any:
        return self._change(lambda old, val: self._integer("fetch_and", old) & val, val)

    def fetch_or(self, val: Any) -> Any:
        return self._change(lambda old, val: self._integer("fetch_or", old) | val, val)

    def fetch_xor(self, val: Any) -> Any:
        return self._change(lambda old, val: self._integer("fetch_xor", old) ^ val, val)

    def _integer(self, operation: str, old: Any) -> Any:
        if not isinstance(old, np.integer):
            raise self._engine.fault(
                f"calls {operation} on {self._array.element(self._position)} of dtype "
                f"{self._array.dtype}",
                "use an array of integers",
            )
        return old

    def _change(self, operation: Any, val: Any) -> Any:
        if hasattr(val, "as_array"):  # a vector, which changes the following elements, too
            *outer, first = self._index if isinstance(self._index, tuple) else (self._index,)
            first += self._array.shape[-1] * (first < 0)
            options = (self.memory_order, self.memory_scope, self.address_space)
            before = [
                AtomicRef(self._engine, self._array, (*outer, first + k), *options)._change(
                    operation, each
                )
                for k, each in enumerate(val.as_array())
            ]
            return type(val)(np.array(before))
        old = self._read(changes=True)
        self._publish()
        self._array.store_atomic(self._position, operation(loaded(old), val))
        return old

    def _record(self, *, changes: bool) -> None:
        self._array.memory.atomic(
            self._engine, self._array, self._position, self._address, changes=changes
        )

    def _read(self, *, changes: bool) -> Any:
        value = self._array.current(self._position, self._address)
        self._record(changes=changes)
        item = self._engine.item
        clock = self._array.memory.clocks.get(self._address)
        if clock is not None:
            if self.memory_order in _ACQUIRE_ORDERS:
                item.acquire(clock)
            else:
                item.seen = clock.joined(item.seen)
        return value

    def _publish(self) -> None:
        item = self._engine.item
        released = item.release() if self.memory_order in _RELEASE_ORDERS else item.fenced
        if released is not None:
            clocks = self._array.memory.clocks
            clocks[self._address] = released.joined(clocks.get(self._address))

    def _count_spin(self, value: Any) -> None:
        """Count the turns of a spinning item: only one item runs at a time, so an item that
        waits for another by spinning waits forever.
        """
        item = self._engine.item
        key = (self._address, value.tobytes())
        count = item.spin[1] + 1 if item.spin[0] == key else 1
        item.spin = (key, count)
        if count >= _SPIN_LIMIT:
            raise self._engine.fault(
                f"spins on {self._array.element(self._position)}: it found {value} {count} times",
                "do not wait for another work-item in a loop: SYCL promises no progress between "
                "items, and the simulator runs one after another; use a barrier or two launches",
            )
