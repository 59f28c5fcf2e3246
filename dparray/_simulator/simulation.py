"""A running simulation: work-items of a group as threads that take turns and meet at barriers."""

from __future__ import annotations

import bdb
import builtins
import enum
import functools
import linecache
import operator
import sys
import threading
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, CellType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from dparray._language.constants import plain
from dparray._language.scalar_functions import scalar_function
from dparray._language.special import SpecialFunction, precision
from dparray._simulator import vectors
from dparray._simulator.language import SimulatedNdItem, SimulatedSubGroup
from dparray._simulator.memory import (
    Access,
    AtomicRef,
    Clock,
    Memory,
    PrivateArray,
    SimulatedArray,
    WorkItem,
)
from dparray._simulator.simulated_numbers import CONSTRUCTORS, plain_dtype
from dparray._simulator.transform import View, nested
from dparray._simulator.vectors import BUILTINS, MATH
from dparray.exceptions import KernelError, SimulationError
from dparray.kernel_api.groups import neutral_of

_GROUP_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "and": operator.and_,
    "max": max,
    "min": min,
    "mul": operator.mul,
    "or": operator.or_,
    "xor": operator.xor,
}


_LANGUAGE_MODULES = ("dparray.kernel_api",)


class WorkGroup:
    """The items of a work-group, and the items that must run in the calling thread."""

    def __init__(self, items: Sequence[Any], chosen: tuple[int, ...] | None) -> None:
        self.items = items
        self.reserved = next(
            (member for member, one in enumerate(items) if one.work_item.global_id == chosen), None
        )


class Simulation:
    """A call of :func:`simulate`: the copied kernel, the running item, the faults."""

    def __init__(self, function: FunctionType, races: str) -> None:
        self.name = function.__name__
        self.races = races
        self.item: WorkItem = WorkItem((), 0, 0, 0)
        self.group_run: GroupRun | None = None
        self._codes: set[int] = set()
        self._copies: dict[Any, Any] = {}
        self._language: dict[str, Any] = {
            "LocalArray": self._local_array,
            "printf": self._printf,
            "AtomicRef": functools.partial(AtomicRef, self),
            "PrivateArray": functools.partial(PrivateArray, self),
            "atomic_fence": lambda memory_order, memory_scope=None: self.item.fence(memory_order),
            "group_barrier": lambda group, fence_scope=None: self._barrier(group),
            "all_of_group": lambda group, predicate: all(self._brought(group, bool(predicate))),
            "any_of_group": lambda group, predicate: any(self._brought(group, bool(predicate))),
            "none_of_group": lambda group, value: not any(self._brought(group, bool(value))),
            "exclusive_scan_over_group": self._exclusive_scan_over_group,
            "group_broadcast": self._group_broadcast,
            "group_inclusive_scan": self._group_inclusive_scan,
            "group_reduce": self._group_reduce,
            "inclusive_scan_over_group": self._group_inclusive_scan,
            "permute_group_by_xor": self._exchange(lambda mine, mask: mine ^ mask),
            "reduce_over_group": self._group_reduce,
            "select_from_group": self._exchange(lambda mine, other: other),
            "shift_group_left": self._exchange(lambda mine, delta=1: mine + delta),
            "shift_group_right": self._exchange(lambda mine, delta=1: mine - delta),
            "vec": vectors.make,
            "vec_full": vectors.full,
            "vec_load": functools.partial(vectors.load, self),
            "vec_store": functools.partial(vectors.store, self),
            "vec_where": vectors.where,
        }
        self.kernel = self._copy(function)

    # faults

    def where(self) -> tuple[CodeType, int]:
        return self._line(sys._getframe(2))

    def _line(self, frame: FrameType | None) -> tuple[CodeType, int]:
        """Return the innermost line of the kernel or of its functions, from ``frame`` outwards."""
        while frame is not None:
            if id(frame.f_code) in self._codes:
                return frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno
            frame = frame.f_back
        return self.kernel.__code__, self.kernel.__code__.co_firstlineno

    def line_of(self, access: Access) -> str:
        return f"{access[3].co_filename}:{access[4]}"

    def fault(self, problem: str, remedy: str) -> SimulationError:
        return self.fault_at(*self.where(), problem, remedy)

    def fault_at(self, code: CodeType, line: int, problem: str, remedy: str) -> SimulationError:
        location = f"{code.co_filename}:{line}"
        source = linecache.getline(code.co_filename, line).strip()
        inside = "" if code is self.kernel.__code__ else f", in {code.co_name}"
        return SimulationError(
            f"simulate({self.name}): work-item {self.item.global_id} {problem}; {remedy}\n"
            f"  at {location}{inside}" + (f": {source}" if source else ""),
            item=self.item.global_id,
            line=location,
        )

    def explain(self, error: Exception) -> SimulationError:
        """Return an exception of the kernel's own code, with the item and the line."""
        code, line = self.kernel.__code__, self.kernel.__code__.co_firstlineno
        trace = error.__traceback__
        while trace is not None:
            if id(trace.tb_frame.f_code) in self._codes:
                code, line = trace.tb_frame.f_code, trace.tb_lineno
            trace = trace.tb_next
        return self.fault_at(
            code,
            line,
            f"raised {type(error).__name__}: {error}",
            "the kernel's own code failed; a device would compute something else or not compile",
        )

    # barriers

    def _barrier(self, group: Any) -> None:
        if self.group_run is None or self._members(group) == 1:
            return
        self.group_run.barrier(self._call_sites(sys._getframe(2)), _part(group, self.item))

    def _local_array(self, shape: Any, dtype: Any) -> SimulatedArray:
        """Return the local array of a call in the kernel's source, for the running group."""
        if self.group_run is None:
            raise RuntimeError("a LocalArray was made outside of a simulation")
        if not self.group_run.is_group:
            raise self.fault(
                "makes a LocalArray, which work-items of a Range do not share", "use an NdRange"
            )
        site = self._call_sites(sys._getframe(1))
        arrays = self.group_run.local_arrays
        if site not in arrays:
            extents = shape if isinstance(shape, tuple | list) else (shape,)
            data = np.zeros(tuple(map(int, extents)), plain_dtype(dtype))
            memory = Memory("local", initialised=False)
            arrays[site] = SimulatedArray(data, "LocalArray", self, memory)
        return arrays[site]

    def _printf(self, text: str, *values: Any) -> None:
        sys.stdout.write(str(text) % tuple(value.item() for value in map(np.asarray, values)))

    def _members(self, group: Any) -> int:
        """Return the number of work-items of a group or a sub-group."""
        assert self.group_run is not None
        of_part = isinstance(group, SimulatedSubGroup)
        return group.members if of_part else len(self.group_run.group.items)

    # group algorithms: each item passes a value, and a barrier makes all values available

    def _exclusive_scan_over_group(
        self, group: Any, value: Any, operation: Any = "add", initial: Any = None
    ) -> Any:
        before = self._brought(group, value)[: _position(group, self.item)]
        if initial is None and callable(operation):
            raise self.fault(
                "calls exclusive_scan_over_group with a function and no initial",
                "give initial=, what the first work-item gets",
            )
        combine = self._group_operation(operation, value)
        if initial is not None:
            return functools.reduce(combine, before, type(value)(initial))
        if before:
            return functools.reduce(combine, before)
        return type(value)(neutral_of(operation, np.dtype(type(value))))

    def _group_reduce(self, group: Any, value: Any, operation: Any = "add") -> Any:
        values = self._brought(group, value)
        return functools.reduce(self._group_operation(operation, value), values)

    def _group_inclusive_scan(self, group: Any, value: Any, operation: Any = "add") -> Any:
        values = self._brought(group, value)[: _position(group, self.item) + 1]
        return functools.reduce(self._group_operation(operation, value), values)

    def _group_broadcast(self, group: Any, value: Any, local_id: Any = 0) -> Any:
        brought = self._brought(group, (value, int(local_id)))
        asked = {one[1] for one in brought}
        if len(asked) > 1 or not 0 <= int(local_id) < len(brought):
            raise self.fault(
                f"calls group_broadcast with local_id {int(local_id)}; the items of its group ask "
                f"for {sorted(asked)}",
                f"give all of them the same number below {len(brought)}",
            )
        return brought[int(local_id)][0]

    def _group_operation(self, operation: Any, value: Any) -> Callable[[Any, Any], Any]:
        scalar = type(value)
        if callable(operation):
            return lambda a, b: scalar(operation(a, b))
        if operation not in _GROUP_OPERATIONS:
            raise self.fault(
                f"asks for the group operation {operation!r}",
                f"use one of {', '.join(_GROUP_OPERATIONS)}, or a device function",
            )
        # The result has the type of the values, so integers wrap around in it.
        combine = _GROUP_OPERATIONS[operation]
        return lambda a, b: scalar(combine(a, b))

    def _exchange(self, source: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that gives each item of a sub-group the value of an item."""

        def exchange(group: Any, value: Any, *other: Any, **named: Any) -> Any:
            if not isinstance(group, SimulatedSubGroup):
                raise self.fault(
                    "exchanges values in a work-group", "only sub-groups do: item.get_sub_group()"
                )
            values = self._brought(group, value)
            wanted = int(source(self.item.lane, *map(int, (*other, *named.values()))))
            return values[wanted if 0 <= wanted < len(values) else self.item.lane]

        return exchange

    def _brought(self, group: Any, value: Any) -> list[Any]:
        """Return the values of all items of a group, in the order of their linear ids."""
        if self.group_run is None:
            raise RuntimeError("a group algorithm ran outside of a simulation")
        part = _part(group, self.item)
        phase = self.item.phase if part is None else self.item.part_phase
        values = self.group_run.brought.setdefault((part, phase), {})
        values[_position(group, self.item)] = value
        if self._members(group) > 1:
            self.group_run.barrier(self._call_sites(sys._getframe(2)), part)
        return [values[member] for member in range(len(values))]

    def _call_sites(self, frame: FrameType | None) -> tuple[tuple[CodeType, int], ...]:
        """Return the kernel's lines of a call, innermost first: equal for items at one barrier."""
        sites = []
        while frame is not None:
            if id(frame.f_code) in self._codes:
                sites.append((frame.f_code, frame.f_lineno or 0))
                if frame.f_code is self.kernel.__code__:
                    break
            frame = frame.f_back
        return tuple(sites)

    # the copy

    def _copy(self, function: FunctionType) -> Any:
        """Return a copy of ``function`` with the same lines, in which names refer to simulated
        counterparts.
        """
        if id(function) in self._copies:
            return self._copies[id(function)]
        code = function.__code__
        namespace: dict[str, Any] = {"__builtins__": {**vars(builtins), **BUILTINS}}
        cells = tuple(CellType() for _ in code.co_freevars)
        copy = FunctionType(code, namespace, function.__name__, None, cells or None)
        # Registered before its names are looked up, because functions may call each other.
        self._copies[id(function)] = copy
        self._codes.update(id(one) for one in nested(code))
        for name in {name for one in nested(code) for name in one.co_names}:
            if name in function.__globals__:
                namespace[name] = self._stand_in(function.__globals__[name])
        captured = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for cell, name in zip(cells, code.co_freevars, strict=True):
            try:
                cell.cell_contents = self._stand_in(captured[name].cell_contents)
            except ValueError:  # a name without a value yet
                continue
        copy.__defaults__ = function.__defaults__ and tuple(
            plain(each) for each in function.__defaults__
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        return copy

    def constant(self, value: Any) -> Any:
        """Return the value of a constant parameter of the kernel."""
        return self._stand_in(value.type if isinstance(value, np.dtype) else value)

    def _stand_in(self, value: Any) -> Any:
        """Return the value of a kernel's name in its copy."""
        if isinstance(value, ModuleType):
            return View(value, self._stand_in)
        # A function that `exec` created may have no module.
        module = getattr(value, "__module__", None) or ""
        if module.startswith(_LANGUAGE_MODULES):
            return self._language.get(getattr(value, "__name__", ""), value)
        value = scalar_function(value) or plain(value)
        is_enumeration = isinstance(value, type) and issubclass(value, enum.Enum)
        if is_enumeration or isinstance(value, enum.Enum):
            # One view for each enumeration, because members are compared.
            return self._copies.setdefault(id(value), View(value, self._stand_in))
        if isinstance(value, type):
            return (
                CONSTRUCTORS.get(value, BUILTINS.get(value.__name__, value))
                if (value in CONSTRUCTORS or value.__module__ == "builtins")
                else value
            )
        if isinstance(value, BuiltinFunctionType):
            is_builtin = value.__module__ == "builtins"
            return BUILTINS.get(value.__name__, value) if is_builtin else MATH.get(value, value)
        if isinstance(getattr(value, "py_func", None), FunctionType):
            return self._copy(value.py_func)
        if isinstance(value, FunctionType) and hasattr(value, "device_meaning"):
            return self._special(value.device_meaning)
        if isinstance(value, FunctionType) and not (value.__module__ or "").startswith("numpy"):
            return self._copy(value)
        return value

    def _special(self, meaning: SpecialFunction) -> Callable[..., Any]:
        """Return a public special function: the device function for the operands' precision."""

        def call(*numbers: Any) -> Any:
            kind = precision([np.asarray(number).dtype for number in numbers])
            function = meaning.of(kind).py_func
            assert isinstance(function, FunctionType)
            return self._copy(function)(*map(kind, numbers))

        return call


def _part(group: Any, item: WorkItem) -> int | None:
    """Return the index of a sub-group; ``None`` for a work-group."""
    return item.part if isinstance(group, SimulatedSubGroup) else None


def _position(group: Any, item: WorkItem) -> int:
    """Return the linear id of a work-item in a group or a sub-group."""
    return item.lane if isinstance(group, SimulatedSubGroup) else item.local_linear


_NEW, _RUNNING, _WAITING, _READY, _DONE = range(5)


class _Abandoned(BaseException):
    """Raised in suspended items when another item has failed, to end their threads."""


class _Baton:
    """A thread of the simulation, which runs only while it holds the baton."""

    def __init__(self) -> None:
        self._turn = threading.Semaphore(0)

    def give(self) -> None:
        self._turn.release()

    def await_turn(self) -> None:
        self._turn.acquire()


class Workers:
    """Threads for suspended items, reused by later groups and ended with the simulation."""

    def __init__(self) -> None:
        self._idle: list[_Worker] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._idle:
            worker.start_on(None)

    def take(self) -> _Worker:
        return self._idle.pop() if self._idle else _Worker()

    def put_back(self, worker: _Worker) -> None:
        self._idle.append(worker)


class _Worker(_Baton):
    def __init__(self) -> None:
        super().__init__()
        self._job: GroupRun | None = None
        threading.Thread(target=self._serve, name="dparray simulate", daemon=True).start()

    def start_on(self, job: GroupRun | None) -> None:
        self._job = job
        self.give()

    def _serve(self) -> None:
        while True:
            self.await_turn()
            if self._job is None:
                return
            self._job.work(self)


class GroupRun:
    """Runs the items of a work-group one at a time, and switches between them at barriers.

    Exactly one thread is at work at any moment. It hands the baton on when its item is
    suspended at a barrier, or when the next item to go on is suspended in another thread.
    """

    def __init__(
        self, simulation: Simulation, group: WorkGroup, arguments: list[Any], workers: Workers
    ) -> None:
        self.group = group
        self.local_arrays: dict[tuple[tuple[CodeType, int], ...], SimulatedArray] = {}
        self.is_group = isinstance(group.items[0], SimulatedNdItem)
        self.brought: dict[tuple[int | None, int], dict[int, Any]] = {}
        self._simulation = simulation
        self._arguments = arguments
        self._workers = workers
        count = len(group.items)
        self._states = [_NEW] * count
        self._threads: list[_Baton | None] = [None] * count
        # For each waiting item: the call site of its barrier, and its sub-group, if any.
        self._sites: list[tuple[tuple[CodeType, int], ...]] = [()] * count
        self._parts: list[int | None] = [None] * count
        self._error: BaseException | None = None
        self._caller = _Baton()
        self._first = 0  # All items before this one are waiting or done.

    def run(self) -> None:
        self._simulation.group_run = self
        self.work(self._caller)
        self._simulation.group_run = None
        if self._error is not None:
            raise self._error

    def work(self, thread: _Baton) -> None:
        """Run items in ``thread`` until another thread must continue or the group is finished."""
        is_caller = thread is self._caller
        while (member := self._next()) is not None:
            if self._states[member] == _NEW and self._may_run(member, is_caller):
                self._run_item(member, thread)
                continue
            if is_caller:
                self._give(member)
                self._await_turn(thread)
                continue
            assert isinstance(thread, _Worker)
            self._workers.put_back(thread)
            self._give(member)
            return
        if isinstance(thread, _Worker):
            self._workers.put_back(thread)
            self._caller.give()

    def _may_run(self, member: int, is_caller: bool) -> bool:
        reserved = self.group.reserved
        return reserved is None or is_caller == (member == reserved)

    def _give(self, member: int) -> None:
        """Let the item at ``member`` continue: in its thread, in the caller's, or in a new one."""
        thread = self._threads[member]
        if thread is not None:
            thread.give()
        elif member == self.group.reserved:
            self._caller.give()
        else:
            self._workers.take().start_on(self)

    def _run_item(self, member: int, thread: _Baton) -> None:
        item = self.group.items[member]
        self._states[member] = _RUNNING
        self._threads[member] = thread
        self._simulation.item = item.work_item
        try:
            with np.errstate(all="ignore"):
                self._simulation.kernel(item, *self._arguments)
        except _Abandoned:
            pass
        except BaseException as error:
            self._fail(error)
        self._states[member] = _DONE

    def _fail(self, error: BaseException) -> None:
        if self._error is not None:
            return
        if isinstance(error, Exception) and not isinstance(error, (KernelError, bdb.BdbQuit)):
            explained = self._simulation.explain(error)
            explained.__cause__ = error
            error = explained
        self._error = error

    def _await_turn(self, thread: _Baton) -> None:
        try:
            thread.await_turn()
        except BaseException as interrupt:  # Ctrl-C in the caller: stop at the next barrier
            self._fail(interrupt)
            thread.await_turn()

    def barrier(self, sites: tuple[tuple[CodeType, int], ...], part: int | None) -> None:
        """Suspend the running item until all items of the group, or sub-group, have arrived."""
        work_item = self._simulation.item
        member = work_item.local_linear
        thread = self._threads[member]
        assert thread is not None
        self._sites[member] = sites
        self._parts[member] = part
        self._states[member] = _WAITING
        following = self._next()
        if following != member:
            assert following is not None
            self._give(following)
            self._await_turn(thread)
        if self._error is not None:
            raise _Abandoned
        self._states[member] = _RUNNING
        self._simulation.item = work_item

    def _next(self) -> int | None:
        """Return the item that continues; ``None`` if the group is finished."""
        states = self._states
        if self._error is None:
            for member in range(self._first, len(states)):
                if states[member] in (_NEW, _READY):
                    self._first = member
                    return member
            waiting = [member for member, state in enumerate(states) if state == _WAITING]
            if not waiting:
                return None
            # A complete sub-group continues even if the rest of the group waits for something else.
            part = next((self._parts[one] for one in waiting if self._parts[one] is not None), None)
            members = [
                member
                for member in range(len(states))
                if part is None or self.group.items[member].work_item.part == part
            ]
            if self._all_at_one_barrier(members, part):
                self._pass_barrier(members, part)
                return members[0]
        suspended = (_WAITING, _READY)
        return next((member for member, state in enumerate(states) if state in suspended), None)

    def _pass_barrier(self, members: list[int], part: int | None) -> None:
        items = [self.group.items[member].work_item for member in members]
        clock: Clock | None = None
        for one in items:
            before = one.clock if part is None else one.release()
            if before is not None:
                clock = before.joined(clock)
        for one in items:
            one.clock = clock
            if part is None:
                one.phase += 1
            else:
                one.part_phase += 1
        reached = items[0].phase if part is None else items[0].part_phase
        for of_part, phase in list(self.brought):
            if of_part == part and phase < reached - 1:
                del self.brought[of_part, phase]
        for member in members:
            self._states[member] = _READY
        self._first = 0

    def _all_at_one_barrier(self, members: list[int], part: int | None) -> bool:
        """Return whether all items of a group or sub-group wait at one barrier, else an error."""
        waiting = [member for member in members if self._states[member] == _WAITING]
        missing = [member for member in members if self._states[member] != _WAITING]
        stops = {(self._sites[member], self._parts[member]) for member in waiting}
        if not missing and len(stops) == 1:
            return True
        sites: dict[tuple[tuple[CodeType, int], ...], list[int]] = {}
        for member in waiting:
            sites.setdefault(self._sites[member], []).append(member)
        found = [
            f"{self._names(members)} at {site[0][0].co_filename}:{site[0][1]}"
            for site, members in sites.items()
        ]
        if missing:
            found.append(f"{self._names(missing)} ended without coming to it")
        (code, line), *_ = self._sites[waiting[0]]
        self._simulation.item = self.group.items[waiting[0]].work_item
        self._error = self._simulation.fault_at(
            code,
            line,
            "waits at a barrier that not all work-items of its "
            f"{'group' if part is None else 'sub-group'} reach: " + "; ".join(found),
            "call group_barrier where all items of the group come by, outside of branches and "
            "loops that depend on the item, and before any return",
        )
        return False

    def _names(self, members: list[int]) -> str:
        shown = ", ".join(
            str(self.group.items[member].work_item.global_id) for member in members[:3]
        )
        more = f" and {len(members) - 3} more" if len(members) > 3 else ""
        return f"{'items' if len(members) > 1 else 'item'} {shown}{more}"
