"""The interpreter: values of ops against NumPy, control flow against a plain one, barriers."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from dparray._ir import checks, interpreter
from dparray._ir.instructions import Function, Op, constant
from dparray._ir.interpreter import Machine, Memory
from dparray._ir.passes import remove_unused, simplify
from dparray._ir.types import (
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I32,
    I64,
    NUMBERS,
    U8,
    U16,
    U64,
    Pointer,
    Type,
)
from dparray._ir.verify import verify
from tests.ir.programs import Builder, array, row_sums, whole
from tests.support import examples


def computed(kind: Type, name: str, *operands: Any, attribute: Any = None, own: Any = None) -> Any:
    """Return the value of one op, of operands in a type."""
    build = Builder()
    lanes = kind.lanes
    out = build.parameter("out", array(kind.scalar))
    given = [constant(value, own or kind) for value in operands]
    build.op("store", None, out, build.op(name, kind, *given, attribute=attribute))
    function = build.end()
    verify(function)
    memory = Memory(np.zeros(lanes, kind.dtype))
    interpreter.run(function, [(memory, 0)], [1])
    return memory.data[0]


SAMPLES: dict[str, list[Any]] = {
    "i": [0, 1, -1, 7, -7, 100, -128, 127],
    "u": [0, 1, 7, 100, 200, 255],
    "f": [0.0, -0.0, 1.5, -2.25, 1e4, math.inf, math.nan],
}
UFUNCS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "div": np.divide,
}


@pytest.mark.parametrize("kind", [kind for kind in NUMBERS if kind != BOOL], ids=str)
@pytest.mark.parametrize("name", UFUNCS)
def test_arithmetic_is_that_of_numpy(kind: Type, name: str) -> None:
    if kind.is_float != (name == "div") and name not in ("add", "sub", "mul"):
        return
    values = np.array(SAMPLES[kind.kind]).astype(kind.dtype)
    with np.errstate(all="ignore"):
        for a in values:
            for b in values:
                np.testing.assert_array_equal(computed(kind, name, a, b), UFUNCS[name](a, b))


def test_integers_wrap_and_shifts_may_be_wide() -> None:
    assert computed(I64, "add", 2**63 - 1, 1) == -(2**63)
    assert computed(I64, "floordiv", -(2**63), -1) == -(2**63)
    assert computed(U64, "neg", 1) == 2**64 - 1
    assert computed(U64, "pow", 3, 41) == 3**41 % 2**64
    assert [computed(I64, "pow", base, -3) for base in (1, -1, 2, 0)] == [1, -1, 0, 0]
    assert [computed(I64, "shl", -3, by) for by in (1, 63, 64, -1)] == [-6, -(2**63), 0, 0]
    assert [computed(I64, "shr", -3, by) for by in (1, 64, -1)] == [-2, -1, -1]
    assert [computed(U8, "shr", 200, by) for by in (1, 8, 255)] == [100, 0, 0]
    assert computed(I32, "low_bits", 2**32 + 2**31, own=U64) == -(2**31)


@pytest.mark.parametrize("own", NUMBERS, ids=str)
@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_conversions_are_those_of_numpy(own: Type, kind: Type) -> None:
    values = SAMPLES["i" if own.kind == "b" else own.kind]
    for value in np.array(values).astype(own.dtype):
        fits = not own.is_float or kind.is_float or kind.kind == "b" or abs(value) < 100
        if fits and not (kind.kind == "u" and value < 0 and own.is_float):
            with np.errstate(all="ignore"):
                expected = value.astype(kind.dtype)
            np.testing.assert_array_equal(computed(kind, "convert", value, own=own), expected)


def test_integers_become_float32_in_one_rounding() -> None:
    number = 2**60 + 2**36 + 1
    assert computed(F32, "convert", number, own=I64) == np.float32(np.int64(number))
    assert computed(U16, "bitcast", 1.5, own=F16) == np.float16(1.5).view("u2")


def test_vectors_are_computed_by_lanes() -> None:
    kind = Type("i", 8, 4)
    assert computed(kind, "mul", 100, 3) == np.int8(300 - 256)


@pytest.mark.parametrize(
    ("name", "values"),
    [("sin", [1.0]), ("atan2", [1.0, 2.0]), ("pow", [2.0, 0.5]), ("rint", [2.5]), ("sqrt", [-1.0])],
)
@pytest.mark.parametrize("kind", [F32, F64], ids=str)
def test_mathematics(kind: Type, name: str, values: list[float]) -> None:
    names = {"atan2": "arctan2", "pow": "power"}
    with np.errstate(all="ignore"):
        expected = getattr(np, names.get(name, name))(*map(kind.dtype.type, values))
    result = computed(kind, "math", *values, attribute=name)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_functions_that_numpy_lacks() -> None:
    assert computed(F64, "math", 4.0, attribute="tgamma") == 6
    assert math.isnan(computed(F64, "math", -1.0, attribute="tgamma"))
    assert computed(F64, "math", -1.0, attribute="lgamma") == math.inf
    assert computed(F32, "math", 0.0, attribute="erf") == 0


def test_a_kernel_of_rows() -> None:
    x = np.arange(-6, 6, dtype=np.float32)
    out = np.full(4, 9, np.float32)
    interpreter.run(row_sums(), [3, (Memory(x), 0), (Memory(out), 0)], [4])
    assert out.tolist() == [9, 9, 3, 12 + 3 * 3 - 9]


def test_addresses_outside_of_memory_are_errors() -> None:
    memory = Memory(np.zeros(3, np.float32))
    with pytest.raises(IndexError, match="offset 12 of memory with 12 bytes"):
        interpreter.run(row_sums(), [4, (memory, 0), (memory, 0)], [1])


# --- control flow ---------------------------------------------------------------------------------


class Programs:
    """Builds random programs, which note the path that they take in a number."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.build = Builder(f"program_{seed}")
        self.n = self.build.parameter("n", I64)
        self.out = self.build.parameter("out", Pointer(I64, 1))
        self.around: list[tuple[Op, Op]] = []

    def note(self) -> None:
        """Multiply the noted number by 7, and add a new one."""
        old = self.build.load(self.out, whole(0))
        step = self.build.op("mul", I64, old, whole(7))
        new = self.build.op("add", I64, step, whole(self.random.randrange(1, 7)))
        self.build.store(self.out, whole(0), new)

    def test(self) -> Op:
        old = self.build.load(self.out, whole(0))
        mixed = self.build.op("add", I64, old, self.n)
        rest = self.build.op("mod", I64, mixed, whole(self.random.randrange(2, 5)))
        return self.build.op("eq", BOOL, rest, whole(0))

    def body(self, depth: int, end: Any) -> None:
        """Add statements, and a jump: any that is possible, or the one that ``end`` adds."""
        for _ in range(self.random.randrange(1, 4)):
            choice = self.random.random()
            if depth and choice < 0.7:
                if self.construct(depth - 1):
                    return
            else:
                self.note()
        if self.around and self.random.random() < 0.3:
            target, count = self.random.choice(self.around)
            self.build.leave(target, *self.values(target, count))
        else:
            end()

    def values(self, target: Op, count: Op) -> list[Op]:
        return [self.build.op("add", I64, count, whole(1)) for _ in target.results]

    def construct(self, depth: int) -> bool:
        """Add control flow; return whether nothing leaves it."""
        kind = self.random.choice(("if", "block", "loop"))
        op = Op(kind, operands=[self.test()] if kind == "if" else [])
        result = self.build.result(op, I64)
        build = self.build
        if kind == "loop":
            self.counted(op, depth, result)
        else:
            self.around.append((op, self.n))
            for _ in range(2 if kind == "if" else 1):
                build.inside(op, lambda: self.body(depth, lambda: build.leave(op, self.n)))
            self.around.pop()
            build.body.append(op)
        ends = not any(each.name == "leave" and each.attribute is op for each in _all(op))
        if ends:
            op.results = []
            return True
        build.store(self.out, whole(1), result)
        return False

    def counted(self, op: Op, depth: int, result: Op) -> None:
        """Add a loop of at most three iterations."""
        build = self.build
        op.operands = [whole(0)]
        op.carried = [Op("carried", I64)]
        count = op.carried[0]

        def again() -> None:
            build.op("repeat", None, build.op("add", I64, count, whole(1)), attribute=op)

        def iteration() -> None:
            test = build.op("lt", BOOL, count, whole(self.random.randrange(1, 4)))
            choice = Op("if", operands=[test])
            build.inside(choice, lambda: self.body(depth, again))
            build.inside(choice, lambda: build.leave(op, count))
            build.body.append(choice)

        self.around.append((op, count))
        build.inside(op, iteration)
        self.around.pop()
        build.body.append(op)

    def program(self) -> Function:
        self.body(4, lambda: self.build.op("return", None))
        return self.build.function


def _all(op: Op) -> list[Op]:
    return [each for body in op.bodies for inner in body for each in (inner, *_all(inner))]


class _Jump(Exception):
    """A jump of the plain interpreter."""

    def __init__(self, op: Op, values: list[int]) -> None:
        self.target, self.values, self.again = op.attribute, values, op.name == "repeat"


class Plain:
    """Interprets the ops of random programs one by one, with exceptions for jumps."""

    def __init__(self, function: Function, n: int) -> None:
        self.memory = [0, 0]
        self.values: dict[int, Any] = dict(zip(map(id, function.parameters), (n, 0), strict=True))
        self.body(function.body)

    def get(self, op: Op) -> Any:
        return op.attribute if op.name == "constant" else self.values[id(op)]

    def body(self, body: list[Op]) -> None:
        for op in body:
            given = [self.get(each) for each in op.operands]
            if op.name in ("if", "block", "loop"):
                if not self.control(op, given):
                    return
            elif op.name in ("leave", "repeat"):
                raise _Jump(op, given)
            elif op.name == "return":
                return
            elif op.name == "store":
                self.memory[given[0]] = given[1]
            else:
                self.values[id(op)] = self.computed(op, given)

    def computed(self, op: Op, given: list[Any]) -> Any:
        if op.name == "load":
            return self.memory[given[0]]
        if op.name in ("add", "offset"):
            return (given[0] + given[1] + 2**63) % 2**64 - 2**63
        if op.name == "mul":
            return (given[0] * given[1] + 2**63) % 2**64 - 2**63
        return {"mod": lambda a, b: a % b, "eq": lambda a, b: a == b, "lt": lambda a, b: a < b}[
            op.name
        ](*given)

    def control(self, op: Op, values: list[Any]) -> bool:
        while True:
            for carried, value in zip(op.carried, values, strict=False):
                self.values[id(carried)] = value
            try:
                self.body(op.bodies[0 if op.name != "if" or values[0] else 1])
                return False
            except _Jump as jump:
                if jump.target is not op:
                    raise
                values = jump.values
                if not jump.again:
                    self.values |= {
                        id(each): value for each, value in zip(op.results, values, strict=True)
                    }
                    return True


@pytest.mark.parametrize("seed", range(examples(80)))
def test_random_control_flow_is_that_of_a_plain_interpreter(seed: int) -> None:
    function = Programs(seed).program()
    verify(function)
    expected = {n: Plain(function, n).memory for n in range(4)}
    for _ in range(2):
        for n in range(4):
            out = np.zeros(2, np.int64)
            interpreter.run(function, [n, (Memory(out), 0)], [1])
            assert out.tolist() == expected[n]
        simplify(function)
        remove_unused(function)
        verify(function, "simplify")


# --- groups ---------------------------------------------------------------------------------------


def reversed_in_local_memory() -> Function:
    build = Builder("reversed")
    x, local = build.parameter("x", array()), build.parameter("slm", array(space=3))
    i, k = build.index(), build.index("local_id")
    build.store(local, k, build.load(x, i))
    build.op("barrier", None, attribute=("work_group", "work_group"))
    last = build.op("sub", I64, build.index("local_size"), whole(1))
    build.store(x, i, build.load(local, build.op("sub", I64, last, k)))
    return build.end()


def test_work_items_wait_at_barriers() -> None:
    x, local = np.arange(8, dtype=np.float32), np.zeros(4, np.float32)
    interpreter.run(reversed_in_local_memory(), [(Memory(x), 0), (Memory(local), 0)], [8], [4])
    assert x.tolist() == [3, 2, 1, 0, 7, 6, 5, 4]


@pytest.mark.parametrize(
    ("attribute", "others", "expected"),
    [
        (("work_group", "reduce", "add"), [], [10] * 4),
        (("work_group", "inclusive_scan", "max"), [], [1, 2, 3, 4]),
        (("work_group", "broadcast", ""), [constant(2, U64)], [3] * 4),
        (("sub_group", "reduce", "min"), [], [1] * 4),
    ],
)
def test_functions_of_groups(attribute: Any, others: list[Op], expected: list[int]) -> None:
    build = Builder()
    out = build.parameter("out", Pointer(I64, 1))
    i = build.index()
    value = build.op("add", I64, i, whole(1))
    result = build.op("group", I64, value, *others, attribute=attribute)
    build.store(out, i, result)
    memory = Memory(np.zeros(4, np.int64))
    function = build.end()
    verify(function)
    interpreter.run(function, [(memory, 0)], [4], [4])
    assert memory.data.tolist() == expected


def test_work_items_that_do_not_meet_are_reported() -> None:
    build = Builder()
    local = build.index("local_id")

    def wait(control: Op) -> None:
        build.op("barrier", None, attribute=("work_group", "work_group"))
        build.leave(control)

    build.branch(build.op("lt", BOOL, local, whole(1)), wait, build.leave)
    with pytest.raises(RuntimeError, match="1 work-items wait for 2 others"):
        interpreter.run(build.end(), [], [3], [3])


def test_atomic_operations_return_the_element_before() -> None:
    build = Builder()
    x, old = build.parameter("x", Pointer(I32, 1)), build.parameter("old", Pointer(I32, 1))
    i = build.index()
    attribute = ("fetch_add", "device", ("relaxed",))
    before = build.op("atomic", I32, x, constant(2**31 - 1, I32), attribute=attribute)
    build.store(old, i, before)
    memory, values = Memory(np.array([5], np.int32)), Memory(np.zeros(2, np.int32))
    interpreter.run(build.end(), [(memory, 0), (values, 0)], [2])
    assert values.data.tolist() == [5, 5 + 2**31 - 1 - 2**32]


def test_prints_and_checks_reach_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    build = Builder()
    i = build.index()
    build.op("print", None, i, constant(True, BOOL), attribute="%d %s\n")
    inside = build.op("lt", BOOL, i, whole(1))
    build.op("check", None, inside, i, attribute="a fault")
    with pytest.raises(IndexError, match=r"a fault: \(1,\)"):
        interpreter.run(build.end(), [], [2])
    assert capsys.readouterr().out == "0 True\n1 True\n"


def test_failed_checks_are_recorded_on_devices() -> None:
    build = Builder()
    x = build.parameter("x", Pointer(I64, 1))
    i = build.index()
    inside = build.op("lt", BOOL, i, whole(2))

    def checked(control: Op) -> None:
        build.op("check", None, inside, i, whole(9), whole(2), attribute=(7, 2, 0b10))
        build.leave(control)

    build.branch(build.op("ne", BOOL, i, whole(5)), checked, build.leave)
    build.store(x, i, whole(1))
    function = build.end()
    checks.record_checks(function)
    verify(function, "record_checks")
    out, record = Memory(np.zeros(6, np.int64)), Memory(np.zeros(checks.RECORD_SIZE, np.int64))
    size = checks.RECORD_SIZE
    interpreter.run(function, [(out, 0), size, 8, (record, 0), size, 8], [6])
    assert out.data.tolist() == [1] * 6
    faults, *described = record.data[: checks.INDICES].tolist()
    assert (faults, described) == (3, [7, 2, 0b10, 1])  # of the work-items 2, 3 and 4
    assert record.data[checks.INDICES :][:2].tolist() == [2, 9]
    assert record.data[checks.SHAPE] == 2


def test_a_machine_may_replace_what_memory_does() -> None:
    class Seen(Machine):
        def allocate(self, op: Op, item: interpreter.WorkItem) -> Memory:
            assert item.global_id == (0,)
            return super().allocate(op, item)

    build = Builder()
    private = build.op("allocate", Pointer(I8, 0), attribute=2)
    build.store(private, whole(1), constant(3, I8))
    interpreter.run(build.end(), [], [1], machine=Seen())
