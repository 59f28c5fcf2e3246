"""Kernels whose programs are interpreted: memory that checks accesses, groups that must meet.

The front end of the kernel language translates a kernel, as for a device, and the interpreter of
the IR runs it. A kernel that the front end refuses is simulated by its Python function
(:mod:`dparray._simulator.simulation`), and counted in :data:`refusals`.
"""

from __future__ import annotations

import itertools
import linecache
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from dparray._ir import arithmetic, interpreter
from dparray._ir.instructions import Function, Op, Place, walk
from dparray._ir.types import LOCAL, Pointer, Type, of_dtype
from dparray._language.errors import Refusal
from dparray._language.frontend import Translation, translation
from dparray._language.promotion import NUMPY, Rules
from dparray._simulator.arguments import HostArguments, LocalArgument
from dparray._simulator.memory import Access, Clock, Memory, WorkItem
from dparray.exceptions import SimulationError

#: Why kernels were simulated by their Python functions, and how often.
refusals: Counter[str] = Counter()

_ACQUIRES = ("acquire", "acq_rel", "seq_cst")
_RELEASES = ("release", "acq_rel", "seq_cst")
_SPIN_LIMIT = 100_000


def run(
    program: Translation,
    arguments: HostArguments,
    groups: Iterable[Sequence[Item]],
    global_size: tuple[int, ...],
    races: str,
) -> None:
    """Run a program with checks over groups of work-items."""
    engine = Engine(program, races)
    packer = _Packer(engine, arguments, global_size)
    code = interpreter.compiled(program.function)
    for group in groups:
        engine.local = {}
        interpreter.run_group(code, group, packer.for_group(), engine)
    packer.finish()


def program_of(
    function: FunctionType, keys: Sequence[str], rules: Rules = NUMPY
) -> Translation | None:
    """Return the program of a kernel with checks; ``None`` if the front end refuses it.

    Args:
        function: the kernel.
        keys: the type keys of its parameters.
        rules: the rules of types in users' functions.
    """
    try:
        return translation(function, keys, True, rules)
    except Refusal as refusal:
        refusals[str(refusal)] += 1
        return None


class SimulatedMemory(interpreter.Memory):
    """Memory that notes its accesses.

    Attributes:
        name: of the array, for messages.
        shape: of the array.
        strides: in bytes.
        start: the offset of the array's first element.
        history: of the accesses by address.
        is_written: whether the kernel has written an element.
    """

    def __init__(
        self,
        engine: Engine,
        history: Memory,
        data: np.ndarray[Any, Any],
        name: str,
        shape: Sequence[int],
        strides: Sequence[int],
        start: int = 0,
    ) -> None:
        super().__init__(data, data.__array_interface__["data"][0])
        self.engine = engine
        self.history = history
        self.name = name
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        self.start = start
        self.is_written = False

    def element(self, offset: int) -> str:
        """Return how a kernel writes the element at an offset."""
        rest = offset - self.start
        index = [0] * len(self.shape)
        order = sorted(range(len(self.shape)), key=lambda at: -abs(self.strides[at]))
        for dimension in order:
            if self.strides[dimension] and self.shape[dimension] > 1:
                index[dimension], rest = divmod(rest, self.strides[dimension])
        return f"{self.name}[{', '.join(map(str, index))}]"

    def holds(self, offset: int, value: Any) -> bool:
        """Return whether an element has the bits of a value."""
        return arithmetic.same_bits(self._item(self.position(offset)), value, self.data.dtype)

    def load(self, offset: int, item: Any, op: Op) -> Any:
        value = self._item(self.position(offset))
        self.engine.enter(item, op)
        self.history.read(self.engine, self, offset, self.base + offset)
        return value

    def store(self, offset: int, value: Any, item: Any, op: Op) -> None:
        position = self.position(offset)
        self.engine.enter(item, op)
        self.history.write(self.engine, self, offset, self.base + offset, value)
        self.data[position] = value
        self.is_written = True

    def atomic(self, offset: int, values: Sequence[Any], item: Any, op: Op) -> Any:
        self.engine.enter(item, op)
        address, method = self.base + offset, op.attribute[0]
        history, work = self.history, item.work
        if method != "store" and history.written is not None and address not in history.written:
            raise self.engine.fault(
                f"reads {self.element(offset)} of {history.kind} memory, which no item wrote",
                "write the element first, and put group_barrier(group) between",
            )
        history.atomic(self.engine, self, offset, address, changes=method != "load")
        before = super().atomic(offset, values, item, op)
        changes = method != "load"
        if method == "compare_exchange":
            changes = arithmetic.same_bits(before, values[1], self.data.dtype)
        if method != "store":
            self._acquire(address, work, op)
        if changes:
            self._publish(address, work, op)
            self.is_written = True
        else:
            self._count_spin(offset, before, work)
        return before

    def _acquire(self, address: int, work: WorkItem, op: Op) -> None:
        clock = self.history.clocks.get(address)
        if clock is None:
            return
        if op.attribute[2][0] in _ACQUIRES:
            work.acquire(clock)
        else:
            work.seen = clock.joined(work.seen)

    def _publish(self, address: int, work: WorkItem, op: Op) -> None:
        released = work.release() if op.attribute[2][0] in _RELEASES else work.fenced
        if released is not None:
            clocks = self.history.clocks
            clocks[address] = released.joined(clocks.get(address))

    def _count_spin(self, offset: int, value: Any, work: WorkItem) -> None:
        """Count the turns of an item that waits for another, which waits forever: one item runs at
        a time.
        """
        key = (self.base + offset, value)
        count = work.spin[1] + 1 if work.spin[0] == key else 1
        work.spin = (key, count)
        if count >= _SPIN_LIMIT:
            raise self.engine.fault(
                f"spins on {self.element(offset)}: it found {value} {count} times",
                "do not wait for another work-item in a loop: SYCL promises no progress between "
                "items, and the simulator runs one after another; use a barrier or two launches",
            )


class Item(interpreter.WorkItem):
    """A work-item, with the order of its work."""

    __slots__ = ("work",)

    def __init__(self, *ids: Any, group: int) -> None:
        super().__init__(*ids)
        serial = interpreter.linear(self.global_id, self.global_size)
        self.work = WorkItem(self.global_id, serial, group, self.position, self.part, self.lane)


class Engine(interpreter.Machine):
    """A simulation of one program.

    Attributes:
        races: which races are reported.
        item: the running work-item.
        op: its op.
        accesses: for each check, what the access after it does, and to how many elements.
    """

    def __init__(self, program: Translation, races: str) -> None:
        super().__init__()
        self.program = program.function
        self.sites = program.sites
        self.shapes = program.shapes
        self.races = races
        self.item = WorkItem((), 0, 0, 0)
        self.op = self.program.body[-1]
        self.accesses = dict(_accesses(self.program))

    def enter(self, item: Any, op: Op) -> None:
        """Note the running work-item and its op."""
        self.item, self.op = item.work, op

    # -- faults -----------------------------------------------------------------------------------

    def where(self) -> tuple[Any, int]:
        return self.op, 0

    def line_of(self, access: Access) -> str:
        place: Place = access[3].place  # type: ignore[attr-defined]
        return f"{place.file}:{place.line}"

    def fault(self, problem: str, remedy: str) -> SimulationError:
        place = self.op.place
        assert place is not None
        location = f"{place.file}:{place.line}"
        source = linecache.getline(place.file, place.line).strip()
        inside = "" if place.function == self.program.name else f", in {place.function}"
        return SimulationError(
            f"simulate({self.program.name}): work-item {self.item.global_id} {problem}; {remedy}\n"
            f"  at {location}{inside}" + (f": {source}" if source else ""),
            item=self.item.global_id,
            line=location,
        )

    def check(self, op: Op, item: Any, values: Sequence[Any]) -> None:
        self.enter(item, op)
        if op.name == "group":
            raise self.fault(
                f"calls group_broadcast; the items of its group ask for {list(values)}",
                "give all of them the same number of a work-item of the group",
            )
        site, count = self.sites[op.attribute.site], op.attribute.indices
        indices, shape = tuple(values[:count]), tuple(values[count:])
        verb, lanes = self.accesses[op]
        shown = ", ".join(map(str, indices))
        if site.problem.startswith("index"):
            dimension = next(
                number
                for number, (index, extent) in enumerate(zip(indices, shape, strict=False))
                if not -extent <= index < extent
            )
            raise self.fault(
                f"{verb} {site.there}[{shown}], outside its shape {shape} in dimension {dimension}",
                f"test the index against {site.there}.shape[{dimension}] first",
            )
        if site.problem.startswith("the elements"):
            raise self.fault(
                f"{verb} {lanes} elements of an array from index {shown} on, outside its shape "
                f"{shape}",
                f"test the index against its shape[{len(shape) - 1}] - {lanes} first",
            )
        raise self.fault(
            f"fails: {site.describe(indices, shape)}",
            "Python raises an exception here, and a device continues",
        )

    # -- memory -----------------------------------------------------------------------------------

    def allocate(self, op: Op, item: Any) -> interpreter.Memory:
        kind = op.type
        assert isinstance(kind, Pointer)
        if kind.space == LOCAL and op in self.local:
            return self.local[op]
        word = "local" if kind.space == LOCAL else "private"
        shape, dtype = self.shapes.get(op, (op.attribute,)), kind.element.dtype
        is_complex = math.prod(shape) < op.attribute
        array = np.zeros(shape, f"c{2 * dtype.itemsize}" if is_complex else dtype)
        data = array.reshape(-1).view(dtype)
        history = Memory(word, initialised=False)
        name = f"{word.capitalize()}Array"
        memory = SimulatedMemory(self, history, data, name, shape, array.strides)
        if kind.space == LOCAL:
            self.local[op] = memory
        return memory

    def fence(self, op: Op, item: Any) -> None:
        order = op.attribute[1]
        if order in _ACQUIRES:
            item.work.acquire(item.work.seen)
        if order in _RELEASES:
            item.work.fenced = item.work.release()

    def write(self, text: str) -> None:
        sys.stdout.write(text)

    # -- groups -----------------------------------------------------------------------------------

    def met(self, op: Op, items: Sequence[Any]) -> None:
        of_part = op.attribute[0] == "sub_group"
        works = [item.work for item in items]
        clock: Clock | None = None
        for work in works:
            before = work.release() if of_part else work.clock
            if before is not None:
                clock = before.joined(clock)
        for work in works:
            work.clock = clock
            if of_part:
                work.part_phase += 1
            else:
                work.phase += 1

    def diverged(self, waiting: Sequence[tuple[Any, Op]], missing: Sequence[Any]) -> None:
        places: dict[int, tuple[Op, list[Any]]] = {}
        for item, op in waiting:
            places.setdefault(id(op), (op, []))[1].append(item)
        parts = [
            f"{_names(items)} at {op.place.file}:{op.place.line}"  # type: ignore[union-attr]
            for op, items in places.values()
        ]
        if missing:
            parts.append(f"{_names(missing)} ended without coming to it")
        self.enter(*waiting[0])
        is_part = self.op.attribute[0] == "sub_group"
        raise self.fault(
            "waits at a barrier that not all work-items of its "
            f"{'sub-group' if is_part else 'group'} reach: " + "; ".join(parts),
            "call group_barrier where all items of the group come by, outside of branches and "
            "loops that depend on the item, and before any return",
        )


def _names(items: Sequence[Any]) -> str:
    shown = ", ".join(str(item.global_id) for item in items[:3])
    more = f" and {len(items) - 3} more" if len(items) > 3 else ""
    return f"{'items' if len(items) > 1 else 'item'} {shown}{more}"


_VERBS = {"load": "reads", "store": "writes", "atomic": "makes an AtomicRef of"}


def _accesses(program: Function) -> Iterator[tuple[Op, tuple[str, int]]]:
    """Yield for each check what the access after it does, and to how many elements."""
    pending: list[Op] = []
    ops = list(walk(program.body))
    for number, op in enumerate(ops):
        if op.name == "check":
            pending.append(op)
        elif op.name in _VERBS:
            following = itertools.takewhile(_is_of_a_run, ops[number:])
            count = sum(_lanes(each) for each in following if each.name == op.name)
            yield from ((check, (_VERBS[op.name], count)) for check in pending)
            pending = []
    yield from ((check, ("takes the view", 0)) for check in pending)


def _is_of_a_run(op: Op) -> bool:
    """Return whether an op may belong to the accesses of a vector whose elements are apart."""
    return op.name in ("load", "store", "atomic", "mul", "offset", "extract")


def _lanes(access: Op) -> int:
    kind = access.operands[-1].type if access.name == "store" else access.type
    return kind.lanes if isinstance(kind, Type) else 1


# --- arguments ------------------------------------------------------------------------------------


class _Packer:
    """Gives the parameters of a program their values."""

    def __init__(
        self,
        engine: Engine,
        arguments: HostArguments,
        global_size: tuple[int, ...],
    ) -> None:
        self.engine = engine
        self.arguments = arguments
        self.global_size = global_size
        self.copies: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], SimulatedMemory]] = []
        history = Memory("global", initialised=True)
        self.arrays = {
            name: (value, *self.memory(name, value, history))
            for name, value in arguments.values.items()
            if isinstance(value, np.ndarray)
        }

    def memory(
        self, name: str, array: np.ndarray[Any, Any], history: Memory
    ) -> tuple[SimulatedMemory, int]:
        """Return the memory of an array, and the offset of its first element."""
        host = array
        if any(stride % _part(array).itemsize for stride in array.strides):
            host = array.copy()
        flat, start = _flat(host)
        memory = SimulatedMemory(self.engine, history, flat, name, host.shape, host.strides, start)
        if host is not array:
            self.copies.append((array, host, memory))
        return memory, start

    def for_group(self) -> list[Any]:
        """Return the values of the parameters for one group, with its own local memory."""
        arrays = dict(self.arrays)
        for name, value in self.arguments.values.items():
            if isinstance(value, LocalArgument):
                data = np.zeros(value.shape, value.dtype)
                memory = self.memory(name, data, Memory("local", initialised=False))
                arrays[name] = data, *memory
        return [self.value(parameter, arrays) for parameter in self.engine.program.parameters]

    def value(self, parameter: Op, arrays: dict[str, Any]) -> Any:
        name, part, dimension = parameter.attribute
        if part in ("extent", "range"):
            return self.global_size[dimension]
        if name not in arrays:
            value = self.arguments.values[name]
            value = getattr(value, part) if part in ("real", "imag") else value
            assert isinstance(parameter.type, Type)
            return _scalar(value, parameter.type)
        array, memory, start = arrays[name]
        if part == "pointer":
            return memory, start
        if part == "shape":
            return array.shape[dimension]
        if part == "stride":
            return memory.strides[dimension]
        return array.size if part == "count" else array.itemsize

    def finish(self) -> None:
        """Write copies back, and the arrays of devices."""
        for array, host, memory in self.copies:
            if memory.is_written:
                array[...] = host
        written = {name for name, (_, memory, _) in self.arrays.items() if memory.is_written}
        self.arguments.write_back(written)


def _part(array: np.ndarray[Any, Any]) -> np.dtype[Any]:
    """Return the dtype of the numbers in memory: of complex numbers, that of a part."""
    kind = array.dtype
    return np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind


def _flat(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], int]:
    """Return the memory of an array in one dimension, and the offset of its first element."""
    part = _part(array)
    if not array.size:
        return np.zeros(0, part), 0
    upwards = array[tuple(slice(None, None, -1 if each < 0 else 1) for each in array.strides)]
    reach = sum(
        (extent - 1) * stride for extent, stride in zip(upwards.shape, upwards.strides, strict=True)
    )
    count = (reach + array.itemsize) // part.itemsize
    view = np.lib.stride_tricks.as_strided
    flat = view(view(upwards, (1,), (array.itemsize,)).view(part), (count,), (part.itemsize,))
    start = array.__array_interface__["data"][0] - upwards.__array_interface__["data"][0]
    return flat, start


def _scalar(value: Any, kind: Type) -> Any:
    """Return a scalar argument as a value of a type."""
    number = np.asarray(value)
    own = of_dtype(number.dtype)
    plain = number[()] if own.is_float and own.bits < 64 else number.item()
    return arithmetic.conversion(own, kind)(plain)
