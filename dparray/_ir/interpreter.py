"""Run programs work-item by work-item, for the simulator and for tests.

A program becomes a Python function, written from its ops and compiled once. Work-items of a group
are generators of that function: they stop at barriers and at functions of a group, where
:class:`Machine` lets the others come up. A program without these is a plain function.

Integers and Booleans are Python's, wrapped to the types of their ops; float64 is Python's float,
float32 and float16 are NumPy's scalars, and vectors are tuples. A pointer is a memory and an offset
in bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from dparray._ir import arithmetic
from dparray._ir.instructions import CONTROL, INDICES, Function, Op, walk
from dparray._ir.types import BOOL, F64, LOCAL, Pointer, Type


class Memory:
    """A piece of memory, as elements of one dtype.

    Attributes:
        data: the elements, in one dimension.
        base: the address of the first one.
    """

    def __init__(self, data: np.ndarray[Any, Any], base: int = 0) -> None:
        self.data = data
        self.base = base
        self._size = data.itemsize
        is_python = data.dtype.kind in "biu" or data.dtype == np.float64
        self._item: Callable[[int], Any] = data.item if is_python else data.__getitem__

    def position(self, offset: int) -> int:
        """Return the number of the element at an offset.

        Raises:
            IndexError: the memory has no such element.
        """
        position, rest = divmod(offset, self._size)
        if rest or not 0 <= position < self.data.size:
            raise IndexError(f"offset {offset} of memory with {self.data.nbytes} bytes")
        return position

    def load(self, offset: int, item: WorkItem, op: Op) -> Any:
        """Return the element at an offset."""
        return self._item(self.position(offset))

    def store(self, offset: int, value: Any, item: WorkItem, op: Op) -> None:
        """Write the element at an offset."""
        self.data[self.position(offset)] = value

    def atomic(self, offset: int, values: Sequence[Any], item: WorkItem, op: Op) -> Any:
        """Perform an atomic operation, and return the element before it."""
        position = self.position(offset)
        before = self._item(position)
        method = op.attribute[0]
        if method == "load":
            return before
        if method in ("store", "exchange"):
            after = values[0]
        elif method == "compare_exchange":
            after = (
                values[0] if arithmetic.same_bits(before, values[1], self.data.dtype) else before
            )
        else:
            kind = op.type
            assert isinstance(kind, Type)
            name = {"fetch_min": "min", "fetch_max": "max"}.get(method, method[6:])
            after = arithmetic.operation(name, kind)(before, values[0])
        self.data[position] = after
        return before


class WorkItem:
    """A work-item: its ids and sizes, in the dimensions of the range."""

    __slots__ = (*INDICES, "lane", "part", "position")

    def __init__(
        self,
        global_size: Sequence[int],
        local_size: Sequence[int],
        group_id: Sequence[int],
        local_id: Sequence[int],
        sub_group_size: int = 16,
    ) -> None:
        dimensions = range(len(global_size))
        self.global_size = tuple(global_size)
        self.local_size = tuple(local_size)
        self.group_id = tuple(group_id)
        self.local_id = tuple(local_id)
        self.global_id = tuple(group_id[d] * local_size[d] + local_id[d] for d in dimensions)
        self.group_count = tuple(global_size[d] // local_size[d] for d in dimensions)
        self.position = linear(local_id, local_size)
        place = sub_group_of(local_id, local_size, sub_group_size)
        self.part, self.lane, members, count = place
        self.sub_group_local_id = (self.lane,)
        self.sub_group_size = (members,)
        self.sub_group_max_size = (sub_group_size,)
        self.sub_group_id = (self.part,)
        self.sub_group_count = (count,)


def sub_group_of(
    local_id: Sequence[int], local_size: Sequence[int], width: int
) -> tuple[int, int, int, int]:
    """Return the number of a work-item's sub-group, its place, and their size and count.

    Sub-groups are neighbors in the first dimension; the last of a row may be smaller.
    """
    rows = -(-local_size[0] // width)
    row, lane = divmod(local_id[0], width)
    number = linear(local_id[:0:-1], local_size[:0:-1]) * rows + row
    members = min(width, local_size[0] - row * width)
    return number, lane, members, rows * int(np.prod(local_size[1:], dtype=int))


def linear(index: Sequence[int], sizes: Sequence[int]) -> int:
    """Return an index as one number, the last dimension fastest."""
    number = 0
    for own, size in zip(index, sizes, strict=True):
        number = number * size + own
    return number


class Machine:
    """The effects of a program beyond its own values; a simulator overrides the methods.

    Attributes:
        local: the local memory of the running group, by the op that allocates it.
    """

    def __init__(self) -> None:
        self.local: dict[Op, Memory] = {}

    def allocate(self, op: Op, item: WorkItem) -> Memory:
        """Return private memory, or the local memory of the group."""
        kind = op.type
        assert isinstance(kind, Pointer)
        if kind.space == LOCAL and op in self.local:
            return self.local[op]
        memory = Memory(np.zeros(op.attribute, kind.element.dtype))
        if kind.space == LOCAL:
            self.local[op] = memory
        return memory

    def fence(self, op: Op, item: WorkItem) -> None:
        """Order the accesses of a work-item."""

    def check(self, op: Op, item: WorkItem, values: Sequence[Any]) -> None:
        """Report a fault, with the values that describe it."""
        raise IndexError(f"{op.attribute}: {values}")

    def write(self, text: str) -> None:
        """Print a text."""
        print(text, end="")

    def diverged(self, waiting: Sequence[tuple[WorkItem, Op]], missing: Sequence[WorkItem]) -> None:
        """Report that work-items do not come to one barrier."""
        raise RuntimeError(f"{len(waiting)} work-items wait for {len(missing)} others")

    def met(self, op: Op, items: Sequence[WorkItem]) -> None:
        """Note that all work-items of a group or a sub-group have come to one op."""


def run(
    function: Function,
    arguments: Sequence[Any],
    global_size: Sequence[int],
    local_size: Sequence[int] | None = None,
    machine: Machine | None = None,
) -> None:
    """Run a kernel.

    Args:
        function: the kernel.
        arguments: for each parameter a number, or a pair of a :class:`Memory` and an offset.
        global_size: the range.
        local_size: the size of a group; groups of one work-item by default.
        machine: reports faults.
    """
    program = compiled(function)
    machine = Machine() if machine is None else machine
    local = tuple(local_size or (1,) * len(global_size))
    counts = [size // own for size, own in zip(global_size, local, strict=True)]
    for group_id in itertools.product(*map(range, counts)):
        machine.local = {}
        items = [
            WorkItem(global_size, local, group_id, local_id)
            for local_id in itertools.product(*map(range, local))
        ]
        run_group(program, items, arguments, machine)


def run_group(
    program: Callable[..., Any],
    items: Sequence[WorkItem],
    arguments: Sequence[Any],
    machine: Machine,
) -> None:
    """Run the work-items of a group, in turns from barrier to barrier."""
    with np.errstate(all="ignore"):
        states = [program(machine, item, *arguments) for item in items]
        if states[0] is not None:
            _Group(items, states, machine).run()


class _Group:
    """The running work-items of a group.

    Attributes:
        stops: of each waiting work-item: the op where it waits, and the value that it brings.
        answers: of each waiting work-item that may go on: what it gets.
        done: the work-items that have ended.
    """

    def __init__(
        self,
        items: Sequence[WorkItem],
        states: Sequence[Generator[Any, Any, None]],
        machine: Machine,
    ) -> None:
        self.items = items
        self.states = states
        self.machine = machine
        self.stops: dict[int, tuple[Op, Any]] = {}
        self.done: set[int] = set()

    def run(self) -> None:
        answers: dict[int, Any] = dict.fromkeys(range(len(self.items)))
        while answers:
            for member in sorted(answers):
                self.resume(member, answers[member])
            answers = self.meet()

    def resume(self, member: int, answer: Any) -> None:
        self.stops.pop(member, None)
        try:
            self.stops[member] = self.states[member].send(answer)
        except StopIteration:
            self.done.add(member)

    def meet(self) -> dict[int, Any]:
        """Return the answers of the work-items that may go on."""
        if not self.stops:
            return {}
        # A complete sub-group goes on even if the rest of the group waits for something else.
        parts = [
            self.items[member].part
            for member, (op, _) in self.stops.items()
            if op.attribute[0] == "sub_group"
        ]
        members = list(range(len(self.items)))
        if parts:
            members = [each for each in members if self.items[each].part == parts[0]]
        waiting = [each for each in members if each in self.stops]
        ops = {id(self.stops[each][0]) for each in waiting}
        if len(waiting) < len(members) or len(ops) > 1:
            self.machine.diverged(
                [(self.items[each], self.stops[each][0]) for each in waiting],
                [self.items[each] for each in members if each not in self.stops],
            )
        op = self.stops[waiting[0]][0]
        self.machine.met(op, [self.items[each] for each in waiting])
        if op.name == "barrier":
            return dict.fromkeys(waiting)
        values = [self.stops[each][1] for each in waiting]
        items = [self.items[each] for each in waiting]
        return dict(zip(waiting, self.together(op, items, values), strict=True))

    def together(
        self, op: Op, items: Sequence[WorkItem], values: Sequence[Sequence[Any]]
    ) -> Sequence[Any]:
        """Return the results of a function of a group."""
        _, function, name = op.attribute
        firsts = [each[0] for each in values]
        if function == "broadcast":
            wanted = {each[1:] for each in values}
            positions = [linear(each, items[0].local_size) for each in wanted]
            if len(wanted) > 1 or not 0 <= positions[0] < len(items):
                self.machine.check(op, items[0], sorted(positions))
            return [firsts[positions[0]]] * len(items)
        if function == "shuffle":
            lanes = [each[1] for each in values]
            return [firsts[lane] if lane < len(firsts) else firsts[0] for lane in lanes]
        assert isinstance(op.type, Type)
        combine = arithmetic.operation(name, op.type)
        sums = list(itertools.accumulate(firsts, combine))
        if function == "reduce":
            return [sums[-1]] * len(items)
        if function == "inclusive_scan":
            return sums
        return [firsts[0], *sums[:-1]]  # The first one is undefined.


# --- programs as Python ---------------------------------------------------------------------------


def compiled(function: Function) -> Callable[..., Any]:
    """Return a program as a Python function of a machine, a work-item and the arguments."""
    return _Writer(function).compiled()


_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_SIGNS = {"add": "+", "sub": "-", "mul": "*", **_COMPARISONS}


class _Writer:
    """Writes one program as Python.

    Control flow is ``if`` and ``while``. A jump out of the innermost ``while`` is ``break``. Other
    jumps that do not go where execution continues anyway set ``jump`` to the number of their
    target, and the statements up to there are skipped.

    Attributes:
        scope: the names that the text refers to.
        names: the names of values, by identity.
        targets: the number of each target of a jump: a construct, and how it is reached.
        loops: the loops around the op that is written, with the targets of jumps that break out of
            them.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {}
        self.names: dict[int, str] = {}
        self.targets: dict[tuple[int, str], int] = {}
        self.loops: list[tuple[Op, set[int]]] = []

    def compiled(self) -> Callable[..., Any]:
        parameters = [self.name(each) for each in self.function.parameters]
        self.lines = [f"def program(machine, item, {', '.join(parameters)}):", " jump = 0"]
        for parameter, name in zip(self.function.parameters, parameters, strict=True):
            if isinstance(parameter.type, Pointer):
                self.lines.append(f" {name}m, {name} = {name}")
        self.body(self.function.body, 1, set())
        exec(compile("\n".join(self.lines), f"<program {self.function.name}>", "exec"), self.scope)
        program: Callable[..., Any] = self.scope["program"]
        return program

    def add(self, depth: int, text: str) -> None:
        self.lines.append(" " * depth + text)

    # -- values -----------------------------------------------------------------------------------

    def name(self, op: Op) -> str:
        return self.names.setdefault(id(op), f"v{len(self.names)}")

    def value(self, op: Op) -> str:
        """Return the expression of a value; of a pointer, that of its offset."""
        if op.name != "constant":
            return self.name(op)
        kind, number = op.type, op.attribute
        assert isinstance(kind, Type)
        if kind.lanes == 1 and not kind.is_float:
            return f"({number!r})"
        if kind.is_float and kind.scalar != F64:
            number = kind.dtype.type(number)
        return self.held(number if kind.lanes == 1 else (number,) * kind.lanes)

    def held(self, value: Any) -> str:
        """Return the name of an object that the text refers to."""
        name = f"k{len(self.scope)}"
        self.scope[name] = value
        return name

    def assign(self, depth: int, targets: Sequence[Op], values: Sequence[Op]) -> None:
        """Write what a jump gives to results or to carried values."""
        left: list[str] = []
        right: list[str] = []
        for target, value in zip(targets, values, strict=True):
            left.append(self.name(target))
            right.append(self.value(value))
            if isinstance(target.type, Pointer):
                left.append(f"{self.name(target)}m")
                right.append(f"{self.value(value)}m")
        if left:
            self.add(depth, f"{', '.join(left)} = {', '.join(right)}")

    # -- control flow -----------------------------------------------------------------------------

    def target(self, op: Op, jump: str = "leave") -> int:
        return self.targets.setdefault((id(op), jump), len(self.targets) + 1)

    def body(self, body: Sequence[Op], depth: int, ends: set[tuple[int, str]]) -> set[int]:
        """Write a body; return the targets that ``jump`` may have when it ends.

        Args:
            body: the ops.
            depth: the indentation.
            ends: the jumps that go where execution continues after this body.
        """
        pending: set[int] = set()
        for op in body:
            is_last = op is body[-1]
            if op.name in CONTROL:
                more = self.control(op, depth, ends if is_last else set())
                if more and not is_last:
                    self.add(depth, "if not jump:")
                    depth += 1
                    self.add(depth, "pass")
                pending |= more
            elif op.name in ("leave", "repeat"):
                pending |= self.jump(op, depth, ends)
            elif op.name == "return":
                self.add(depth, "return")
            else:
                self.op(op, depth)
        return pending

    def jump(self, op: Op, depth: int, ends: set[tuple[int, str]]) -> set[int]:
        target = op.attribute
        values = target.results if op.name == "leave" else target.carried
        self.assign(depth, values, op.operands)
        if (id(target), op.name) in ends:
            self.add(depth, "pass")
            return set()
        innermost, broken = self.loops[-1] if self.loops else (None, set())
        if target is innermost:
            self.add(depth, "break" if op.name == "leave" else "continue")
            return set()
        number = self.target(target, op.name)
        self.add(depth, f"jump = {number}")
        if innermost is not None and not _contains(innermost, target):
            self.add(depth, "break")
            broken.add(number)
            return set()
        return {number}

    def control(self, op: Op, depth: int, ends: set[tuple[int, str]]) -> set[int]:
        """Write control flow; return the targets that ``jump`` may have after it."""
        if op.name == "loop":
            return self.loop(op, depth)
        inner = {*ends, (id(op), "leave")}
        if op.name == "block":
            pending = self.body(op.bodies[0], depth, inner)
        else:
            self.add(depth, f"if {self.value(op.operands[0])}:")
            pending = self.body(op.bodies[0], depth + 1, inner)
            self.add(depth, "else:")
            pending |= self.body(op.bodies[1], depth + 1, inner)
        return self.arrived(self.target(op), depth, pending)

    def loop(self, op: Op, depth: int) -> set[int]:
        self.assign(depth, op.carried, op.operands)
        self.add(depth, "while True:")
        self.loops.append((op, set()))
        pending = self.body(op.bodies[0], depth + 1, {(id(op), "repeat")})
        pending = self.arrived(self.target(op, "repeat"), depth + 1, pending)
        if pending:
            self.add(depth + 1, "if jump: break")
        _, broken = self.loops.pop()
        pending = self.arrived(self.target(op), depth, pending | broken)
        if self.loops:
            # Jumps to constructs around the next loop break out of that, too.
            outer, broken = self.loops[-1]
            inside = {self.target(each) for each in walk(outer.bodies[0]) if each.name in CONTROL}
            further = pending - inside - {self.target(outer, "repeat")}
            if further:
                numbers = "".join(f"{number}, " for number in sorted(further))
                self.add(depth, f"if jump in ({numbers}): break")
                broken |= further
                pending -= further
        return pending

    def arrived(self, number: int, depth: int, pending: set[int]) -> set[int]:
        """Write that a jump has come to its target."""
        if number in pending:
            self.add(depth, f"if jump == {number}: jump = 0")
        return pending - {number}

    # -- ops --------------------------------------------------------------------------------------

    def op(self, op: Op, depth: int) -> None:
        own = getattr(self, f"on_{op.name}", None)
        values = [self.value(operand) for operand in op.operands]
        if own is not None:
            own(op, depth, values)
            return
        name, kind = self.name(op), op.operands[0].type
        assert isinstance(kind, Type)
        sign = _SIGNS.get(op.name)
        if sign is None or kind.lanes > 1 or (kind.kind == "b" and op.name not in _COMPARISONS):
            self.add(depth, f"{name} = {self.held(arithmetic.of_op(op))}({', '.join(values)})")
            return
        self.add(depth, f"{name} = {values[0]} {sign} {values[1]}")
        if kind.is_integer and op.name not in _COMPARISONS:
            limits = np.iinfo(kind.dtype)
            wrap = self.held(arithmetic.wrapping(kind))
            self.add(
                depth, f"if not {limits.min} <= {name} <= {limits.max}: {name} = {wrap}({name})"
            )

    def on_select(self, op: Op, depth: int, values: list[str]) -> None:
        flag, first, second = values
        name = self.name(op)
        if isinstance(op.type, Pointer):
            self.add(depth, f"{name}m = {first}m if {flag} else {second}m")
        elif op.operands[0].type != BOOL:
            choose = self.held(arithmetic.selected)
            self.add(depth, f"{name} = {choose}({flag}, {first}, {second})")
            return
        self.add(depth, f"{name} = {first} if {flag} else {second}")

    def on_index(self, op: Op, depth: int, values: list[str]) -> None:
        name, dimension = op.attribute
        other = 0 if name.endswith("_id") else 1
        sizes = f"item.{name}"
        self.add(
            depth,
            f"{self.name(op)} = {sizes}[{dimension}] if len({sizes}) > {dimension} else {other}",
        )

    def on_pack(self, op: Op, depth: int, values: list[str]) -> None:
        self.add(depth, f"{self.name(op)} = ({', '.join(values)},)")

    def on_extract(self, op: Op, depth: int, values: list[str]) -> None:
        lane = op.attribute if len(values) == 1 else values[1]
        self.add(depth, f"{self.name(op)} = {values[0]}[{lane}]")

    def on_allocate(self, op: Op, depth: int, values: list[str]) -> None:
        name = self.name(op)
        self.add(depth, f"{name}m, {name} = machine.allocate({self.held(op)}, item), 0")

    def on_offset(self, op: Op, depth: int, values: list[str]) -> None:
        name, (pointer, index) = self.name(op), values
        assert isinstance(op.type, Pointer)
        step = index if op.attribute == "bytes" else f"{index} * {op.type.element.size}"
        self.add(depth, f"{name}m, {name} = {pointer}m, {pointer} + {step}")

    def on_address(self, op: Op, depth: int, values: list[str]) -> None:
        (pointer,) = values
        self.add(depth, f"{self.name(op)} = {pointer}m.base + {pointer}")

    def on_load(self, op: Op, depth: int, values: list[str]) -> None:
        (pointer,) = values
        kind, own = op.type, self.held(op)
        assert isinstance(kind, Type)
        loads = [
            f"{pointer}m.load({pointer} + {lane * kind.size}, item, {own})"
            for lane in range(kind.lanes)
        ]
        text = loads[0] if kind.lanes == 1 else f"({', '.join(loads)})"
        self.add(depth, f"{self.name(op)} = {text}")

    def on_store(self, op: Op, depth: int, values: list[str]) -> None:
        pointer, value = values
        kind, own = op.operands[1].type, self.held(op)
        assert isinstance(kind, Type)
        for lane in range(kind.lanes):
            one = value if kind.lanes == 1 else f"{value}[{lane}]"
            self.add(depth, f"{pointer}m.store({pointer} + {lane * kind.size}, {one}, item, {own})")

    def on_atomic(self, op: Op, depth: int, values: list[str]) -> None:
        pointer, *others = values
        own = self.held(op)
        given = f"({', '.join(others)},)" if others else "()"
        self.add(depth, f"{self.name(op)} = {pointer}m.atomic({pointer}, {given}, item, {own})")

    def on_barrier(self, op: Op, depth: int, values: list[str]) -> None:
        self.add(depth, f"yield {self.held(op)}, None")

    def on_group(self, op: Op, depth: int, values: list[str]) -> None:
        self.add(depth, f"{self.name(op)} = yield {self.held(op)}, ({', '.join(values)},)")

    def on_fence(self, op: Op, depth: int, values: list[str]) -> None:
        self.add(depth, f"machine.fence({self.held(op)}, item)")

    def on_print(self, op: Op, depth: int, values: list[str]) -> None:
        given = f"({', '.join(values)},)" if values else "()"
        self.add(depth, f"machine.write({self.held(op.attribute)} % {given})")

    def on_check(self, op: Op, depth: int, values: list[str]) -> None:
        holds, *others = values
        given = f"({', '.join(others)},)" if others else "()"
        self.add(depth, f"if not {holds}: machine.check({self.held(op)}, item, {given})")


def _contains(loop: Op, target: Op) -> bool:
    return any(op is target for op in walk(loop.bodies[0]))


__all__ = ["Machine", "Memory", "WorkItem", "compiled", "linear", "run", "run_group"]
