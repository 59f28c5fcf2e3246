"""Control flow without jumps, for passes that walk backward over a program.

In the structured form, both bodies of an ``if`` end by leaving it, there are no blocks, and a loop
has one decision: its body ends with an ``if`` whose first body ends with the ``repeat`` of the
loop and whose second body leaves it. A jump to control flow further out becomes a number that
tells where execution continues, with the values of all places where it may continue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dparray._ir.instructions import CONTROL, JUMPS, Function, Op, constant, walk
from dparray._ir.types import BOOL, I32, I64, Pointer, Type

#: Where a body continues: the identity of a construct, and the kind of jump.
Target = tuple[int, str]


class Unstructured(Exception):
    """A program has no structured form.

    Attributes:
        op: the op without one.
    """

    def __init__(self, problem: str, op: Op) -> None:
        super().__init__(problem)
        self.op = op


class _Exits(NamedTuple):
    """How a body ends.

    Attributes:
        values: what it gives to each place where it may continue.
        code: the number of that place, if there are several.
        paths: the bodies of the ``if`` at its end, if that brings the exits together.
    """

    values: dict[Target, list[Op]]
    code: Op | None = None
    paths: tuple[tuple[list[Op], _Exits], ...] = ()

    def is_only(self, target: Target) -> bool:
        return list(self.values) == [target]


def structured(function: Function) -> None:
    """Bring a program into the structured form.

    Raises:
        Unstructured: a pointer is one of several, or a loop has no end.
    """
    for op in walk(function.body):
        for value in (*op.results, *op.carried):
            if isinstance(value.type, Pointer):
                raise Unstructured("an array is one of several", op)
    form = _Form()
    function.body, _ = form.body(function.body, 0)
    function.body.append(Op("return"))
    for op in walk(function.body):
        op.operands = [form.now(operand) for operand in op.operands]


#: The longest loop that is unrolled, and the most ops that this makes of one.
MAX_UNROLLED, MAX_OPS = 8, 128


def counting(loop: Op) -> tuple[Op, Op, int, Op] | None:
    """Return where a structured loop starts and stops to count, its step, and what it counts."""
    decision = loop.bodies[0][-1]
    again, test = decision.bodies[0][-1], decision.operands[0]
    if test.name not in ("lt", "gt") or not any(op is test for op in loop.bodies[0]):
        return None
    count, stop = test.operands
    if id(stop) in inside_of(loop) or count.type != I64:
        return None
    for carried, first, following in zip(loop.carried, loop.operands, again.operands, strict=True):
        step = step_of(carried, following)
        if carried is not count or step is None or step.name != "constant":
            continue
        if step.attribute and (step.attribute > 0) == (test.name == "lt"):
            return first, stop, step.attribute, carried
    return None


def inside_of(loop: Op) -> set[int]:
    """Return the values that are computed in a loop, by identity."""
    return {id(each) for op in walk([loop]) for each in (op, *op.results, *op.carried)}


def step_of(carried: Op, following: Op) -> Op | None:
    """Return what an iteration adds to a carried value."""
    is_sum = following.name == "add" and following.operands[0] is carried
    return following.operands[1] if is_sum else None


def repetitions(first: int, stop: int, step: int) -> int:
    """Return how often a loop repeats that counts between constants."""
    return max(0, -((first - stop) // step))


def unroll(function: Function) -> None:
    """Repeat the ops of short loops of a structured program instead of the loops."""
    replaced: dict[int, Op] = {}
    _unroll(function.body, replaced)
    for op in walk(function.body):
        op.operands = [_last(operand, replaced) for operand in op.operands]


def _unroll(body: list[Op], replaced: dict[int, Op]) -> None:
    new: list[Op] = []
    for op in body:
        for inner in op.bodies:
            _unroll(inner, replaced)
        found = counting(op) if op.name == "loop" else None
        if found is None or not found[0].name == found[1].name == "constant":
            new.append(op)
            continue
        first, stop, step, counter = found
        count = repetitions(first.attribute, stop.attribute, step)
        if count > MAX_UNROLLED or count * len(list(walk(op.bodies[0]))) > MAX_OPS:
            new.append(op)
            continue
        *head, decision = op.bodies[0]
        *repeated, again = decision.bodies[0]
        *tail, leave = decision.bodies[1]
        now = {id(c): value for c, value in zip(op.carried, op.operands, strict=True)}
        for number in range(count + 1):
            now[id(counter)] = constant(first.attribute + number * step, I64)
            values = {**now}
            new += _copies([*head, *(repeated if number < count else tail)], values, replaced)
            jump = again if number < count else leave
            given = [values.get(id(_last(o, replaced)), o) for o in jump.operands]
            if number < count:
                now = {id(c): value for c, value in zip(op.carried, given, strict=True)}
            else:
                replaced |= {id(r): value for r, value in zip(op.results, given, strict=True)}
    body[:] = new


def _copies(body: Sequence[Op], values: dict[int, Op], replaced: dict[int, Op]) -> list[Op]:
    """Return copies of ops, with other values for some of those that they take."""
    made = []
    for op in body:
        operands = [_last(operand, replaced) for operand in op.operands]
        operands = [values.get(id(operand), operand) for operand in operands]
        target = values.get(id(op.attribute), op.attribute)
        copy = Op(op.name, op.type, operands, target, op.place, op.marks)
        for old, new in ((op.results, copy.results), (op.carried, copy.carried)):
            for each in old:
                new.append(Op(each.name, each.type, place=each.place))
                values[id(each)] = new[-1]
        values[id(op)] = copy
        copy.bodies = [_copies(inner, values, replaced) for inner in op.bodies]
        made.append(copy)
    return made


def _last(op: Op, replaced: dict[int, Op]) -> Op:
    while id(op) in replaced:
        op = replaced[id(op)]
    return op


class _Form:
    """Rewrites one program.

    Attributes:
        replaced: the values in place of results, by their identity.
        numbers: of the places where execution may continue.
    """

    def __init__(self) -> None:
        self.replaced: dict[int, Op] = {}
        self.numbers: dict[Target, int] = {}

    def now(self, op: Op) -> Op:
        return _last(op, self.replaced)

    def number(self, target: Target) -> Op:
        return constant(self.numbers.setdefault(target, len(self.numbers)), I32)

    def bind(self, op: Op, values: Sequence[Op]) -> None:
        for result, value in zip(op.results, values, strict=True):
            self.replaced[id(result)] = value

    def body(self, body: Sequence[Op], start: int) -> tuple[list[Op], _Exits]:
        """Return the ops of a body from a position on, without its jumps, and how it ends."""
        ops: list[Op] = []
        for at in range(start, len(body)):
            op = body[at]
            if op.name in JUMPS:
                return ops, _Exits({(id(op.attribute), op.name): list(op.operands)})
            if op.name not in CONTROL:
                ops.append(op)
                continue
            here = id(op), "leave"
            if op.name == "if":
                paths = [self.body(inner, 0) for inner in op.bodies]
                alone = [exits.is_only(here) for _, exits in paths]
                comes = [here in exits.values for _, exits in paths]
                if all(alone):
                    for inner, (rest, exits) in zip(op.bodies, paths, strict=True):
                        inner[:] = [*rest, _jump("leave", op, exits.values[here])]
                    ops.append(op)
                    continue
                for side in (0, 1):
                    if alone[side] and not comes[1 - side]:
                        # What follows belongs to the only path that reaches it.
                        inner, exits = paths[side]
                        self.bind(op, exits.values[here])
                        rest, after = self.body(body, at + 1)
                        paths[side] = [*inner, *rest], after
                        return self.merged(ops, op.operands[0], op, paths)
                ops, exits = self.merged(ops, op.operands[0], op, paths)
            elif op.name == "block":
                inner, exits = self.body(op.bodies[0], 0)
                ops += inner
            else:
                exits = self.loop(ops, op)
            if exits.is_only(here):
                self.bind(op, exits.values[here])
            elif here not in exits.values:
                return ops, exits
            else:
                return self.continued(ops, op, exits, body, at + 1)
        raise AssertionError("a body ends with a jump")

    def continued(
        self, ops: list[Op], op: Op, exits: _Exits, body: Sequence[Op], at: int
    ) -> tuple[list[Op], _Exits]:
        """Execute the rest of a body only if its exit is that of ``op``."""
        here = id(op), "leave"
        self.bind(op, exits.values[here])
        assert exits.code is not None
        test = Op("eq", BOOL, [exits.code, self.number(here)], place=op.place)
        others = {target: values for target, values in exits.values.items() if target != here}
        code = exits.code if len(others) > 1 else None
        paths = [self.body(body, at), ([], _Exits(others, code))]
        return self.merged([*ops, test], test, op, paths)

    def merged(
        self, ops: list[Op], test: Op, op: Op, paths: Sequence[tuple[list[Op], _Exits]]
    ) -> tuple[list[Op], _Exits]:
        """Add an ``if`` that brings the exits of two paths together."""
        choice = Op("if", None, [test], place=op.place)
        found: dict[Target, list[Op]] = {}
        for _, exits in paths:
            for target, values in exits.values.items():
                if target not in found:
                    found[target] = [Op("result", self.now(value).type) for value in values]
        code = Op("result", I32) if len(found) > 1 else None
        choice.results = [*([code] if code else []), *(v for each in found.values() for v in each)]
        for inner, exits in paths:
            given = [] if code is None else [exits.code or self.number(next(iter(exits.values)))]
            for target, results in found.items():
                given += exits.values.get(target) or [_zero(each.type) for each in results]
            choice.bodies.append([*inner, _jump("leave", choice, given)])
        return [*ops, choice], _Exits(found, code, tuple(paths))

    def loop(self, ops: list[Op], op: Op) -> _Exits:
        """Add a loop; return how it ends."""
        inner, exits = self.body(op.bodies[0], 0)
        again = id(op), "repeat"
        if again not in exits.values:
            for carried, first in zip(op.carried, op.operands, strict=True):
                self.replaced[id(carried)] = first
            ops += inner
            return exits
        if len(exits.values) == 1:
            raise Unstructured("a loop has no end", op)
        paths = exits.paths
        sides = [side for side, (_, each) in enumerate(paths) if each.is_only(again)]
        if len(sides) == 1 and again not in paths[1 - sides[0]][1].values:
            choice = inner.pop()
            test = choice.operands[0]
            going, leaving = paths[sides[0]], paths[1 - sides[0]]
            if sides[0] == 1:
                test = Op("not", BOOL, [test], place=op.place)
                inner.append(test)
        else:
            assert exits.code is not None
            test = Op("eq", BOOL, [exits.code, self.number(again)], place=op.place)
            inner.append(test)
            others = {target: each for target, each in exits.values.items() if target != again}
            going = [], _Exits({again: exits.values[again]})
            leaving = [], _Exits(others, exits.code if len(others) > 1 else None)
        new = Op("loop", None, op.operands, place=op.place)
        new.carried = op.carried
        ways, after = leaving
        code = Op("result", I32) if len(after.values) > 1 else None
        found = {
            target: [Op("result", self.now(value).type) for value in values]
            for target, values in after.values.items()
        }
        new.results = [*([code] if code else []), *(v for each in found.values() for v in each)]
        given = [*([after.code] if after.code else [])]
        given += [value for values in after.values.values() for value in values]
        decision = Op("if", None, [test], place=op.place)
        decision.bodies = [
            [*going[0], _jump("repeat", new, going[1].values[again])],
            [*ways, _jump("leave", new, given)],
        ]
        new.bodies = [[*inner, decision]]
        ops.append(new)
        return _Exits(found, code)


def _jump(name: str, target: Op, values: Sequence[Op]) -> Op:
    return Op(name, None, values, target, target.place)


def _zero(kind: Type | Pointer | None) -> Op:
    assert isinstance(kind, Type)
    return constant(0, kind)
