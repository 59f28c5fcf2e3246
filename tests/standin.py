"""A driver for tests: memory of the host, work that runs when it is told to, failures on request.

The layers above the drivers run over it unchanged, without SYCL. A test installs it by the fixture
``standin`` of ``conftest.py``. Work is submitted to its queues as a list: :meth:`StandIn.run` does
it, and so does a wait for its event. Kernels are PTX, which NumPy emulates.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from struct import unpack
from typing import Any
from weakref import WeakSet, WeakValueDictionary, finalize

import numpy as np

from dparray._driver.arguments import LOCAL, POINTER, SCALARS, LocalMemory
from dparray._driver.interface import Loaded, ModuleRejected, PackedRange, Store, Target, Traits
from dparray._driver.marks import Marks, lock
from dparray.exceptions import DeviceError
from tests.cuda import ptx_emulator


@dataclass(frozen=True)
class Device:
    """A device of the stand-in."""

    name: str
    parent: Device | None = None


@dataclass(frozen=True)
class Queue:
    """A queue; equal ones are the same."""

    device: Device
    number: int = 0


@dataclass(eq=False)
class Event:
    """The end of a piece of work, with what the work does and the events it waits for."""

    work: Callable[[], object]
    device: Device
    after: tuple[Event, ...] = ()
    is_done: bool = False
    error: Exception | None = None


@dataclass(eq=False)
class Memory:
    """Bytes of the host at a real address."""

    values: np.ndarray
    owner: Any = None


class _Arena(ptx_emulator.Memory):
    """The memory of all devices: kernels may access what is allocated, nothing else."""

    def __init__(self) -> None:
        self.bytes = np.zeros(1 << 28, np.uint8)  # pages that are not used cost nothing
        self.start = self.bytes.ctypes.data
        self._end = -self.start % 4096
        self._free: dict[int, list[int]] = {}
        self._allocated: WeakSet[Memory] = WeakSet()
        self._variables: list[Memory] = []

    def allocate(self, nbytes: int) -> Memory:
        size = -(-(nbytes + 256) // 4096) * 4096  # bytes after each array belong to none
        free = self._free.setdefault(size, [])
        if free:
            start = free.pop()
        else:
            start = self._end
            self._end += size
            if self._end > self.bytes.size:
                raise MemoryError(nbytes)
        memory = Memory(self.bytes[start : start + nbytes])
        finalize(memory, free.append, start)
        self._allocated.add(memory)
        return memory

    def put(self, values: Any, align: int = 256) -> int:
        octets = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
        memory = self.allocate(max(1, octets.size))
        memory.values[: octets.size] = octets
        self._variables.append(memory)
        return int(memory.values.ctypes.data)

    def refresh(self) -> None:
        """Read the bounds of all allocations."""
        starts = [(each.values.ctypes.data, each.values.size) for each in self._allocated]
        found = [(start, start + size) for start, size in sorted(starts)]
        self.bounds = np.array(found, np.int64).reshape(-1, 2)


@cache
def _arena() -> _Arena:
    return _Arena()


#: All kernels by their addresses, while the package keeps them: longer than a stand-in lives.
_kernels: WeakValueDictionary[int, _Kernel] = WeakValueDictionary()
_addresses = count(1)


class _Kernel:
    """A kernel of a module, which NumPy emulates."""

    def __init__(self, module: ptx_emulator.Module, entry: str) -> None:
        self.module, self.entry = module, entry
        self.variables = module.place(_arena())

    def __call__(self, arguments: Sequence[Any], local_nbytes: int, space: PackedRange) -> None:
        extents, local = (
            [*unpack(f"{space.dimensions}N", each), 1, 1][:3] if each else [1, 1, 1]
            for each in (space.extents, space.local)
        )
        arena = _arena()
        arena.refresh()
        self.module.launch(
            self.entry,
            [size // part for size, part in zip(extents, local, strict=True)],
            local,
            arguments,
            arena,
            shared=local_nbytes,
            addresses=self.variables,
        )


def _unpacked(kinds: bytes, addresses: bytes) -> tuple[list[Any], int]:
    """Return the values of packed arguments, and the bytes of local memory among them."""
    values: list[Any] = []
    local_nbytes = 0
    words = unpack(f"{len(addresses) // 8}Q", addresses)
    for kind, word in zip(unpack(f"{len(kinds) // 4}i", kinds), words, strict=True):
        if kind == POINTER:
            values.append(np.uint64(word))
        elif kind == LOCAL:
            values.append(np.int64(local_nbytes))
            local_nbytes += -(-LocalMemory.from_address(word).nbytes // 16) * 16
        else:
            scalar = SCALARS[kind].from_address(word)
            values.append(np.dtype(SCALARS[kind]).type(scalar.value))
    return values, local_nbytes


_starts = count(1, 1 << 30)


class Order(Marks):
    """The order of one queue: each addition comes after all before it."""

    def __init__(self, driver: StandIn) -> None:
        self._driver = driver
        self._events: list[Event] = []
        # The pool's memory has marks with the counts of earlier tests, for an equal queue.
        self.count = self._others_at = next(_starts)

    @property
    def submitted_events(self) -> list[Event]:
        return self.before_launch()

    def before_launch(self) -> list[Event]:
        with lock:
            self._events = [event for event in self._events if not event.is_done]
            last = [] if self._last is None or self._last.is_done else [self._last]
            return [*self._events, *last]

    def _add_unordered(self, event: Event) -> None:
        self._events.append(event)

    def add_event_pair(self, kept: Any, events: Sequence[Event]) -> None:
        with lock:
            self._events += events
            self._others_at = self.count = self.count + 1

    def is_done(self) -> bool:
        return not self.before_launch()


_TRAITS = Traits(
    driver="standin",
    kind="gpu",
    name="",
    vendor="tests",
    version="1",
    backend="standin",
    filter_string="",
    is_part=False,
    units=8,
    threads=8,
    group=256,
    sizes=(256, 256, 64),
    sub_groups=(32,),
    local_memory=1 << 16,
    memory=1 << 30,
    largest=1 << 28,
    aspects=frozenset({"fp16", "fp64", "atomic64", "usm_device", "usm_shared", "usm_host"}),
    shares_memory=False,
    target=Target("ptx", "sm_75"),
    library="NumPy on the stand-in",
    chooses_groups=False,
    raw_formats=("OpenCL C",),  # it takes the text of PTX as it is
)


@dataclass
class StandIn:
    """The driver.

    Attributes:
        found: the devices that there are.
        traits_changed: fields of ``Traits`` with other values.
        unusable_since: why no array can be allocated; empty if it can.
        refuses_memory: a size from which allocations fail.
        refuses_modules, refuses_launches: whether modules and launches are rejected.
        lost: devices that have vanished: whatever is submitted to them or waited for fails.
        opened: work is only done while this is set; a wait for it goes on until then.
        on_load: called after each load of a module, on the thread that loads it.
        loaded: the entries of the kernels that were loaded.
        launches: the launches, each with the name of the kernel's entry, the queue and the range.
    """

    found: tuple[Device, ...] = (Device("standin:0"),)
    traits_changed: dict[str, Any] = field(default_factory=dict)
    unusable_since: str = ""
    refuses_memory: int = 1 << 40
    refuses_modules: bool = False
    refuses_launches: bool = False
    lost: Sequence[Device] = ()
    opened: threading.Event = field(default_factory=threading.Event)
    on_load: Callable[[], object] = lambda: None
    loaded: list[str] = field(default_factory=list)
    launches: list[tuple[str, Queue, PackedRange]] = field(default_factory=list)

    name = "standin"
    queue_type, device_type, event_type = Queue, Device, Event
    NEEDS_OF_GPUS = ""

    def __post_init__(self) -> None:
        self.orders: dict[Queue, Order] = {}
        self.work: dict[Queue, list[Event]] = {}
        self.kept: list[tuple[Event, tuple[Any, ...]]] = []
        self.traits = cache(self.traits)  # type: ignore[method-assign]
        self.opened.set()
        self._working = threading.RLock()

    # -- devices and queues

    def devices(self) -> Sequence[Device]:
        return () if self.unusable_since else self.found

    def why_none(self) -> str:
        return "the stand-in has none"

    def unusable(self, device: Device) -> str | None:
        return self.unusable_since or None

    def select(self, words: str) -> Device | None:
        return next((device for device in self.found if device.name.startswith(words)), None)

    def taken(self, value: Any) -> Queue | None:
        return value if isinstance(value, Queue) else getattr(value, "queue", None)

    def default_queue(self, device: Device) -> Queue:
        return Queue(device)

    def new_queue(self, like: Queue, in_order: bool = False, profiling: bool = False) -> Queue:
        if profiling:
            raise DeviceError("the stand-in has no queues that collect times")
        used = [queue.number for queue in self.orders if queue.device == like.device]
        return Queue(like.device, max([like.number, *used]) + 1)

    def is_in_order(self, queue: Queue) -> bool:
        return False

    def has_profiling(self, queue: Queue) -> bool:
        return False

    def copies_by_host(self, queue: Queue) -> bool:
        return False

    def device_of(self, queue: Queue) -> Device:
        return queue.device

    def traits(self, device: Device) -> Traits:
        return replace(
            _TRAITS,
            name=device.name,
            filter_string=self.root_of(device).name,
            is_part=device.parent is not None,
            **self.traits_changed,
        )

    def domain(self, queue: Queue) -> Any:
        return self.root_of(queue.device)

    def root_of(self, device: Device) -> Device:
        return device if device.parent is None else self.root_of(device.parent)

    def describe(self, device: Device) -> str:
        return device.name

    def split(self, device: Device, partition: Any) -> Sequence[Device]:
        return [Device(f"{device.name}, part {number}", device) for number in (1, 2)]

    def path_of(self, device: Device) -> None:
        return None

    def platforms(self) -> list[dict[str, Any]]:
        return []

    # -- memory

    def allocate(self, queue: Queue, usm_type: str, nbytes: int) -> Memory:
        if nbytes >= self.refuses_memory:
            raise MemoryError(nbytes)
        return _arena().allocate(nbytes)

    def pointer(self, memory: Memory) -> int:
        return int(memory.values.ctypes.data)

    def part(self, owner: Any, pointer: int, nbytes: int, queue: Queue) -> Memory:
        whole = owner
        while not isinstance(whole, Memory):  # a block
            whole = whole.memory
        start = pointer - self.pointer(whole)
        return Memory(whole.values[start : start + nbytes], owner)

    def copy(
        self, queue: Queue, target: Any, source: Any, nbytes: int, after: Sequence[Event]
    ) -> Event:
        to, of = (each.values if isinstance(each, Memory) else each for each in (target, source))

        def work() -> None:
            to[:nbytes] = of[:nbytes]

        return self._submitted(queue, work, after)

    def clear(self, queue: Queue, memory: Memory) -> None:
        memory.values[...] = 0

    # -- modules

    def load(
        self, queue: Queue, module: bytes | str, entry: str, options: str, binaries: Store
    ) -> Loaded:
        if self.refuses_modules:
            raise ModuleRejected("the stand-in takes none")
        kernel = _Kernel(ptx_emulator.Module(module), entry)
        self.loaded.append(entry)
        address = next(_addresses)
        _kernels[address] = kernel
        self.on_load()
        return Loaded(address, 256, 32, len(kernel.module.functions[entry].layout), kernel)

    def warm_up(self, queue: Queue) -> None:
        pass

    def keeps_binaries(self, queue: Queue) -> bool:
        return False

    def has_loaded(self) -> bool:
        return bool(_kernels)

    # -- launches, events and order

    def submit(
        self,
        kernel: int,
        queue: Queue,
        kinds: bytes,
        addresses: bytes,
        index_space: PackedRange,
        dependencies: Sequence[Event],
    ) -> Event | None:
        if self.refuses_launches:
            return None
        function = _kernels[kernel]
        arguments, local_nbytes = _unpacked(kinds, addresses)
        event = self._submitted(
            queue, lambda: function(arguments, local_nbytes, index_space), dependencies
        )
        self.launches.append((function.entry, queue, index_space))
        return event

    def _submitted(self, queue: Queue, work: Callable[[], object], after: Sequence[Event]) -> Event:
        if queue.device in self.lost:
            raise DeviceError(f"{queue.device.name} is lost")
        event = Event(work, queue.device, tuple(after))
        self.work.setdefault(queue, []).append(event)
        return event

    def run(self, queue: Queue) -> None:
        """Do all work of a queue."""
        self.wait(list(self.work.get(queue, [])))

    def for_launch(self, queue: Queue, kernel: int, index_space: PackedRange) -> bytes | None:
        return None

    def address_of(self, queue: Queue) -> int:
        return 0

    def for_c(self) -> tuple[Any, ...]:
        return ()

    def order_of(self, queue: Queue) -> Order:
        return self.orders.setdefault(queue, Order(self))

    def is_done(self, event: Event) -> bool:
        return event.is_done

    def wait(self, events: Sequence[Event], is_long: bool = False) -> None:
        for event in events:
            if not event.is_done:
                assert self.opened.wait(120)
                if event.device in self.lost:
                    raise RuntimeError("the device is lost")
                self.wait(event.after)
                with self._working:
                    self._do(event)
            if event.error is not None:
                raise event.error

    def _do(self, event: Event) -> None:
        if not event.is_done:
            try:
                event.work()
            except Exception as error:
                event.error = error
            event.is_done = True
            event.work = list  # The kernel may be freed now.

    def wait_for_queue(self, queue: Queue) -> None:
        self.run(queue)

    def wait_for_kept(self, queue: Queue) -> None:
        self.kept = [(event, objects) for event, objects in self.kept if not event.is_done]

    def barrier(self, queue: Queue, events: Sequence[Event] = ()) -> Event:
        return self._submitted(queue, lambda: None, events or self.work.get(queue, []))

    def times(self, event: Event) -> tuple[int, int, int]:
        raise NotImplementedError

    def keep_until(self, queue: Queue, objects: tuple[Any, ...], event: Event) -> None:
        self.kept.append((event, objects))

    def foreign_calls(self, queue: Queue) -> AbstractContextManager[None]:
        return nullcontext()

    # -- forks

    def queues_in_use(self) -> Sequence[Queue]:
        return list(self.orders)

    def locks(self) -> Sequence[Any]:
        return ()

    def forbid(self, refuse: Callable[..., Any]) -> None:
        pass
