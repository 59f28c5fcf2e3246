"""Branches and loops: names become results of control flow, or values that a loop carries.

A loop whose variables change their types is translated again with the wider types.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

from dparray._ir.instructions import Op
from dparray._ir.passes import selected
from dparray._ir.types import BOOL, I64
from dparray._language.errors import NO_MEMORY, Refusal
from dparray._language.memory import Memory
from dparray._language.values import (
    NONE,
    Array,
    Complex,
    Conflict,
    Constant,
    Elements,
    Exit,
    Frame,
    Lambda,
    Method,
    Number,
    Optional,
    Range,
    Shared,
    Target,
    Tuple,
    Unset,
    are_arrays,
    are_same,
    are_tuples,
    described,
    is_number,
)

#: How often a loop is translated until the types of its variables settle.
_MAX_ATTEMPTS = 20


class Again(Exception):
    """Translation begins again, with new knowledge about a loop."""


class Ended(Exception):
    """Nothing that follows in this body is reached, as a call in it does not return."""


class Control(Memory):
    """The part of the front end for control flow.

    Attributes:
        has_ended: whether the ops that follow in this body are not reached.
        held: arrays without a name that the statements around have made.
        frame: the function that is being translated.
        targets: the control flow around, outermost first.
        knowledge: by loop, the types of its variables that earlier attempts have found.
    """

    has_ended: bool
    held: list[Any]
    frame: Frame
    targets: list[Target]
    knowledge: dict[Any, Any]

    def flow(self, name: str, *operands: Op) -> Op:
        """Create control flow."""
        return self.new(name, None, *operands)

    # -- branches ---------------------------------------------------------------------------------

    def branch(self, test: Number, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """Translate two paths; return the value that they return, joined."""
        op = self.flow("if", test.op)
        target = Target(op)
        before = self.frame.names
        for path in (then, other):
            self.frame.names = dict(before)
            op.bodies.append(self.inside(target, path))
        value = self.join(target)
        ops = None if self.has_ended else selected(op)
        if ops is not None:
            self.body[-1:] = ops
        return value

    def inside(self, target: Target, translate: Callable[[], Any]) -> list[Op]:
        """Translate a body of control flow, which continues after it."""
        outside, self.body = self.body, []
        self.targets.append(target)
        place, count = self.place, len(self.held)
        try:
            value = translate()
        except Ended:
            self.place = place
            del self.held[count:]
        if not self.has_ended:
            self.leave(target, value)
        self.targets.pop()
        self.has_ended = False
        body, self.body = self.body, outside
        return body

    def leave(self, target: Target, value: Any = None) -> None:
        """Jump to the ops after control flow."""
        jump = self.new("leave", attribute=target.op)
        self.body.append(jump)
        target.exits.append(Exit(jump, self.body, dict(self.frame.names), value))
        self.has_ended = True

    def join(self, target: Target) -> Any:
        """Add control flow, and join the names and values of the jumps out of it."""
        self.body.append(target.op)
        exits = target.exits
        if not exits:
            self.has_ended = True
            return Constant(None)
        self.frame.names = self.joined_names(target.op, exits)
        return self.joined(target.op, exits, [each.value for each in exits], "")

    def joined_names(self, op: Op, exits: Sequence[Exit]) -> dict[str, Any]:
        """Return the values of names after control flow."""
        first, *others = (each.names for each in exits)
        names = dict(first)
        for other in others:
            for name in other.keys() - first.keys():
                names[name] = None
        for name, value in names.items():
            for other in others:
                if other.get(name) is not value:
                    break
            else:
                # Most names keep their values, and functions with many of them have many ifs.
                if self.is_before(value, op):
                    continue
            names[name] = self.joined(op, exits, [each.names.get(name) for each in exits], name)
        return names

    def joined(self, op: Op, exits: Sequence[Exit], values: Sequence[Any], name: str) -> Any:
        """Return the value that is one of several, as results of control flow.

        Args:
            op: the control flow.
            exits: the jumps out of it.
            values: the value at each jump; ``None`` where the name is not assigned.
            name: the name; empty for the value of an expression.
        """
        present = [value for value in values if value is not None]
        if not present:
            return None
        unset = [value for value in present if isinstance(value, Unset)]
        if unset:
            is_partly = len(unset) < len(present) or any(value.is_partly for value in unset)
            return Unset(unset[0].loop, name, is_partly)
        first = present[0]
        if all(_is_like(first, value) for value in present) and self.is_before(first, op):
            return first
        for value in present:
            if isinstance(value, Conflict):
                return value
        if all(map(is_number, present)):
            return self.joined_numbers(op, exits, values)
        if are_tuples(present):
            columns = zip(
                *(each.items if each else (None,) * len(first.items) for each in values),
                strict=True,
            )
            parts = tuple(self.joined(op, exits, column, name) for column in columns)
            conflicts = [part for part in parts if isinstance(part, Conflict)]
            return conflicts[0] if conflicts else Tuple(parts, first.kind)
        if all(is_number(value) or isinstance(value, Complex) for value in present):
            whole = [
                self.at(exit_, self.complex, value)
                for exit_, value in zip(exits, values, strict=True)
            ]
            real = [value and value.real for value in whole]
            imag = [value and value.imag for value in whole]
            return Complex(self.joined(op, exits, real, name), self.joined(op, exits, imag, name))
        if are_arrays(present) and len(present) == len(values):
            return self.joined_arrays(op, exits, values)
        if any(value == NONE or isinstance(value, Optional) for value in present):
            return self.joined_optional(op, exits, values, name)
        return Conflict(_conflict(present, name))

    def joined_optional(
        self, op: Op, exits: Sequence[Exit], values: Sequence[Any], name: str
    ) -> Any:
        """Return a value that is ``None`` on some paths."""
        parts = [
            None if each == NONE else each.value if isinstance(each, Optional) else each
            for each in values
        ]
        value = self.joined(op, exits, parts, name)
        if not (is_number(value) or isinstance(value, Tuple | Complex)):
            others = [each for each in values if each is not None]
            return value if isinstance(value, Conflict) else Conflict(_conflict(others, name))
        flags = [
            each.is_none if isinstance(each, Optional) else self.to(Constant(each == NONE), BOOL)
            for each in values
        ]
        return Optional(value, self.joined_numbers(op, exits, flags))

    def is_before(self, value: Any, op: Op) -> bool:
        """Return whether a value is computed before control flow, so that it is known after it."""
        if type(value) is Number:
            return self.births.get(value.op, 0) < self.births[op]
        if isinstance(value, Tuple):
            return all(self.is_before(item, op) for item in value.items)
        if isinstance(value, Complex):
            return self.is_before(value.real, op) and self.is_before(value.imag, op)
        if isinstance(value, Array):
            parts = (*value.shape, *(value.strides or ()))
            pointer = self.births.get(value.pointer, 0)
            return pointer < self.births[op] and all(self.is_before(part, op) for part in parts)
        if isinstance(value, Optional):
            return self.is_before(value.is_none, op) and self.is_before(value.value, op)
        if isinstance(value, Elements):
            return value.birth < self.births[op]
        return not isinstance(value, Unset)

    def at(self, jump: Exit, translate: Callable[[Any], Any], value: Any) -> Any:
        """Translate something before a jump; ``None`` stays ``None``."""
        if value is None:
            return None
        outside, self.body = self.body, jump.body
        place = self.body.index(jump.jump)
        tail = self.body[place:]
        del self.body[place:]
        result = translate(value)
        self.body += tail
        self.body = outside
        return result

    def joined_numbers(self, op: Op, exits: Sequence[Exit], values: Sequence[Any]) -> Number:
        present = [value for value in values if value is not None]
        kind = self.common(present)
        result = self.new("result", kind)
        for jump, value in zip(exits, values, strict=True):
            # A name that is not assigned on this path has no value there; 0 is as good as any.
            given = Constant(0) if value is None else value
            number = self.at(jump, lambda each: self.to(each, kind), given)
            jump.jump.operands.append(number.op)
        op.results.append(result)
        natural = kind.is_integer and all(self.is_natural(value) for value in present)
        is_weak = all(self.is_weak(value) for value in present)
        return Number(result, is_weak, natural, self.relies(*present) if natural else frozenset())

    def joined_arrays(self, op: Op, exits: Sequence[Exit], values: Sequence[Array]) -> Array:
        first = values[0]
        has_strides = any(value.strides is not None for value in values)
        strides: list[tuple[Number, ...]] = [()] * len(values)
        if has_strides:
            strides = [
                self.at(jump, self.strides, value)
                for jump, value in zip(exits, values, strict=True)
            ]
        rows = [
            (Number(value.pointer), *value.shape, *own)
            for value, own in zip(values, strides, strict=True)
        ]
        parts = []
        for column in zip(*rows, strict=True):
            part = column[0]
            is_same = all(each.op is part.op for each in column)
            if not is_same or not self.is_before(part, op):
                natural = all(each.is_natural for each in column)
                part = Number(self.new("result", part.op.type), is_natural=natural)
                op.results.append(part.op)
                for jump, each in zip(exits, column, strict=True):
                    jump.jump.operands.append(each.op)
            parts.append(part)
        count = 1 + len(first.shape)
        return Array(
            parts[0].op,
            tuple(parts[1:count]),
            tuple(parts[count:]) if has_strides else None,
            any(value.is_readonly for value in values),
            first.is_complex,
        )

    # -- loops ------------------------------------------------------------------------------------

    def unrolled(self, statement: ast.For, items: Sequence[Any]) -> None:
        """Translate a loop over items that are known, once for each."""
        whole = Target(self.flow("block"))

        def all_items() -> None:
            for item in items:
                iteration = Target(self.flow("block"))
                self.frame.loops.append((whole, iteration))

                def once(item: Any = item) -> None:
                    self.assign(statement.target, item)
                    self.statements(statement.body)

                iteration.op.bodies = [self.inside(iteration, once)]
                self.frame.loops.pop()
                self.join(iteration)
                if self.has_ended:
                    return
            self.statements(statement.orelse)

        whole.op.bodies = [self.inside(whole, all_items)]
        self.join(whole)

    def counted(
        self, statement: ast.For, over: Range, item: Callable[[Number], Any] | None = None
    ) -> None:
        """Translate a loop over a range.

        Args:
            statement: the loop.
            over: the range.
            item: returns what the loop takes at a number of the range; the number without it.
        """
        kind = self.of_range(over)
        if kind == I64 and isinstance(over.first, Number):
            over, item = self.from_zero(over, item)
        known = over.step.value if isinstance(over.step, Constant) else None
        if known == 0:
            raise Refusal(
                "the step of a range is not 0: it would have no items, and Python raises "
                "ValueError",
                statement.iter,
            )
        self.check_step(over.step, statement.iter)
        first, stop, step = (self.to(each, kind) for each in (over.first, over.stop, over.step))
        natural = known is not None and known > 0 and self.is_natural(over.first)
        relies = self.relies(over.first) if natural else frozenset()
        # The counter is a variable that the source cannot name.
        counter, current = f".{id(statement)}", f".{id(statement)}item"
        self.frame.names[counter] = Number(first.op, is_natural=natural, relies=relies)

        def test() -> Number:
            count = self.frame.names[counter]
            self.frame.names[current] = Number(count.op, False, count.is_natural, count.relies)
            if known is not None:
                order = "lt" if known > 0 else "gt"
                return Number(self.op(order, BOOL, count.op, stop.op))
            up = self.op("lt", BOOL, count.op, stop.op)
            down = self.op("gt", BOOL, count.op, stop.op)
            zero = self.constant(0, kind)
            is_up = self.op("gt", BOOL, step.op, zero)
            goes_on = self.op("select", BOOL, is_up, up, down)
            moves = self.op("ne", BOOL, step.op, zero)
            return Number(self.op("and", BOOL, goes_on, moves))

        def body() -> None:
            number = self.python(self.frame.names[current])
            self.assign(statement.target, number if item is None else item(number))
            self.statements(statement.body)

        def after() -> None:
            count = self.frame.names[counter]
            following = self.op("add", kind, count.op, step.op)
            self.frame.names[counter] = Number(following, False, natural, count.relies)

        self.loop(statement, test, body, after, {counter})
        for name in (counter, current):
            self.frame.names.pop(name, None)

    def shared(self, statement: ast.For, over: Shared) -> None:
        """Translate a loop over the parts of a range; names have their values again after it."""
        op = self.flow("parallel", over.total.op, over.parts.op)
        op.carried = [self.new("carried", I64) for _ in range(3)]
        target = Target(op)
        before = dict(self.frame.names)

        def body() -> None:
            part = Tuple(tuple(Number(each, is_natural=True) for each in op.carried))
            self.assign(statement.target, part)
            self.statements(statement.body)

        op.bodies = [self.inside(target, body)]
        self.body.append(op)
        self.frame.names = before

    def from_zero(
        self, over: Range, item: Callable[[Number], Any] | None
    ) -> tuple[Range, Callable[[Number], Any]]:
        """Return a range that starts at 0, and what a loop takes at one of its numbers.

        Work-items whose ranges are equally long then leave the loop together, as barriers in it
        need, although their ranges start at different numbers.
        """
        first = over.first
        length = self.made("sub", I64, over.stop, first)

        def moved(number: Number) -> Any:
            at = self.made("add", I64, first, number, self.is_natural(first))
            return at if item is None else item(at)

        return Range(Constant(0), length, over.step), moved

    def loop(
        self,
        statement: ast.For | ast.While,
        test: Callable[[], Number | None],
        body: Callable[[], None],
        after: Callable[[], None],
        counters: Collection[str] = (),
    ) -> None:
        """Translate a loop; again if the types of its variables change.

        Args:
            statement: the loop.
            test: translates the condition; ``None`` for a loop without one.
            body: translates the statements.
            after: translates the step to the next iteration.
            counters: more names that it assigns.
        """
        key = (*self.frame.path, id(statement))
        before = self.frame.names
        assigned = [*sorted(assigned_names(statement)), *sorted(counters)]
        carried = self.carried_names(key, assigned, before)
        guesses = dict(self.knowledge.get(key, {}))
        lengths, count = [len(target.exits) for target in self.targets], len(self.held)
        for _ in range(_MAX_ATTEMPTS):
            attempt = _Attempt(self, statement, key, before, assigned, carried, guesses)
            attempt.translate(test, body, after)
            changed = attempt.changed()
            if not changed:
                break
            guesses |= changed
            del self.held[count:]
            for target, length in zip(self.targets, lengths, strict=True):
                del target.exits[length:]
        else:
            raise Refusal(
                "the types of the variables that this loop changes do not settle", statement
            )
        self.knowledge[key] = guesses
        self.body += attempt.entry
        attempt.give_next_values()
        self.join(attempt.whole)

    def carried_names(
        self, key: Any, assigned: Sequence[str], before: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what a loop carries, with its values before."""
        carried = {name: before[name] for name in assigned if name in before}
        for name in self.knowledge.get(("forced", key), ()):
            if isinstance(carried.get(name, Unset(key, name)), Unset):
                carried[name] = Constant(False)
        return {name: value for name, value in carried.items() if not isinstance(value, Unset)}

    def once(
        self,
        target: Target,
        whole: Target,
        repeats: list[Exit],
        test: Callable[[], Number | None],
        body: Callable[[], None],
        after: Callable[[], None],
    ) -> list[Op]:
        """Translate an iteration of a loop; return its ops."""
        outside, self.body = self.body, []
        self.targets.append(target)
        continues = test()
        before = dict(self.frame.names)
        operands = () if continues is None else (continues.op,)
        iteration = Target(self.flow("block" if continues is None else "if", *operands))

        def enter() -> None:
            self.frame.loops.append((whole, iteration))
            body()
            self.frame.loops.pop()

        iteration.op.bodies = [self.inside(iteration, enter)]
        if continues is not None:
            self.frame.names = dict(before)
            inner, self.body = self.body, []
            self.leave(target)
            iteration.op.bodies.append(self.body)
            self.body, self.has_ended = inner, False
        self.join(iteration)
        if not self.has_ended:
            after()
            jump = self.new("repeat", attribute=target.op)
            self.body.append(jump)
            repeats.append(Exit(jump, self.body, self.frame.names))
        self.targets.pop()
        self.has_ended = False
        ops, self.body = self.body, outside
        return ops

    def start(self, loop: Op, value: Any, guess: Any) -> Any:
        """Return what a loop carries, and add its first value to the loop."""
        if isinstance(value, Tuple):
            guesses = guess or (None,) * len(value.items)
            items = zip(value.items, guesses, strict=True)
            return Tuple(tuple(self.start(loop, item, own) for item, own in items), value.kind)
        if isinstance(value, Complex):
            guesses = guess or (None, None)
            return Complex(
                self.start(loop, value.real, guesses[0]), self.start(loop, value.imag, guesses[1])
            )
        if isinstance(guess, _Complex):
            return self.start(loop, self.complex(value), guess.parts)
        if isinstance(value, Array):
            return self.start_array(loop, value)
        if not is_number(value):
            return value
        guess = guess or (self.type_of(value), self.is_weak(value), self.is_natural(value))
        kind, is_weak, is_natural = guess
        carried = self.new("carried", kind)
        loop.operands.append(self.to(value, kind).op)
        loop.carried.append(carried)
        relies = self.relies(value) if is_natural else frozenset()
        return Number(carried, is_weak, is_natural, relies)

    def start_array(self, loop: Op, value: Array) -> Array:
        parts = [Number(value.pointer), *value.shape, *(value.strides or ())]
        numbers = []
        for part in parts:
            carried = self.new("carried", part.op.type)
            loop.operands.append(part.op)
            loop.carried.append(carried)
            numbers.append(Number(carried, is_natural=part.is_natural))
        count = 1 + len(value.shape)
        strides = None if value.strides is None else tuple(numbers[count:])
        return Array(
            numbers[0].op, tuple(numbers[1:count]), strides, value.is_readonly, value.is_complex
        )

    def settled(self, name: str, first: Any, values: Sequence[Any]) -> Any:
        """Return a better guess of what a loop carries; ``None`` if it was right."""
        for value in values:
            if isinstance(value, Conflict):
                raise Refusal(value.text)
        if isinstance(first, Tuple | Complex):
            return self.settled_parts(name, first, values)
        if isinstance(first, Number):
            if any(isinstance(value, Complex) for value in values):
                whole = self.complex(first)
                kind = whole.real.type
                return _Complex(((kind, False, False), (kind, False, False)))
            for value in values:
                if not is_number(value):
                    raise Refusal(_conflict([first, value], name))
            return self.settled_number(first, values)
        for value in values:
            is_same = isinstance(first, Constant) and are_same(first, value)
            is_alike = isinstance(first, Array) and are_arrays([first, value])
            if isinstance(first, Array) and is_alike and isinstance(value, Array):
                is_alike = first.strides is not None or value.strides is None
            if not (is_same or is_alike or first is value):
                raise Refusal(_conflict([first, value], name))
        return None

    def settled_parts(self, name: str, first: Tuple | Complex, values: Sequence[Any]) -> Any:
        parts = first.items if isinstance(first, Tuple) else (first.real, first.imag)
        columns: list[list[Any]] = [[] for _ in parts]
        for value in values:
            whole = (
                self.complex(value) if isinstance(first, Complex) and is_number(value) else value
            )
            if type(whole) is not type(first):
                raise Refusal(_conflict([first, value], name))
            items = whole.items if isinstance(whole, Tuple) else (whole.real, whole.imag)
            if len(items) != len(parts):
                raise Refusal(_conflict([first, value], name))
            for column, item in zip(columns, items, strict=True):
                column.append(item)
        guesses = [
            self.settled(name, part, column) for part, column in zip(parts, columns, strict=True)
        ]
        if all(guess is None for guess in guesses):
            return None
        return tuple(guess or _guess_of(part) for guess, part in zip(guesses, parts, strict=True))

    def settled_number(self, first: Number, values: Sequence[Any]) -> Any:
        kind = self.common([first, *values])
        is_weak = first.is_weak and all(self.is_weak(value) for value in values)
        natural = first.is_natural and all(self.is_natural(value) for value in values)
        is_same = kind == first.type and natural == first.is_natural
        if is_same and (is_weak == first.is_weak or not self.rules.is_numpy):
            return None
        return kind, is_weak, natural

    def give(self, jump: Op, first: Any, value: Any) -> None:
        """Give a loop the next value of what it carries."""
        if isinstance(first, Tuple):
            for own, item in zip(first.items, value.items, strict=True):
                self.give(jump, own, item)
        elif isinstance(first, Complex):
            whole = self.complex(value)
            self.give(jump, first.real, whole.real)
            self.give(jump, first.imag, whole.imag)
        elif isinstance(first, Array):
            strides = () if first.strides is None else self.strides(value)
            parts = (Number(value.pointer), *value.shape, *strides)
            jump.operands += [part.op for part in parts]
        elif isinstance(first, Number):
            jump.operands.append(self.to(value, first.type).op)

    # -- what other parts of the front end provide -------------------------------------------------

    def statements(self, body: Sequence[ast.stmt]) -> None:
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Any, source: ast.expr | None = None) -> None:
        raise NotImplementedError


class _Complex:
    """The guess that a number becomes complex in a loop, with the guesses of its parts."""

    def __init__(self, parts: tuple[Any, Any]) -> None:
        self.parts = parts


class _Attempt:
    """One translation of a loop, from guesses of the types that it carries.

    Attributes:
        whole: the loop with its ``else``.
        entry: the ops before the loop, which convert first values.
        first: what the loop carries, by name.
        repeats: the jumps to the next iteration.
    """

    def __init__(
        self,
        front: Control,
        statement: ast.For | ast.While,
        key: Any,
        before: dict[str, Any],
        assigned: Sequence[str],
        carried: dict[str, Any],
        guesses: dict[str, Any],
    ) -> None:
        self.front = front
        self.statement = statement
        self.whole = Target(front.flow("block"))
        self.op = front.flow("loop")
        self.repeats: list[Exit] = []
        names = dict(before)
        names |= {name: Unset(key, name) for name in assigned if name not in carried}
        self.entry: list[Op] = []
        front.frame.names = dict(before)  # not those after an earlier attempt
        outside, front.body = front.body, self.entry
        self.first = {
            name: front.start(self.op, value, guesses.get(name)) for name, value in carried.items()
        }
        front.body = outside
        front.frame.names = names | self.first

    def translate(
        self,
        test: Callable[[], Number | None],
        body: Callable[[], None],
        after: Callable[[], None],
    ) -> None:
        front, target = self.front, Target(self.op)

        def loop_and_else() -> None:
            self.op.bodies = [front.once(target, self.whole, self.repeats, test, body, after)]
            front.join(target)
            if not front.has_ended:
                front.statements(self.statement.orelse)

        self.whole.op.bodies = [front.inside(self.whole, loop_and_else)]

    def changed(self) -> dict[str, Any]:
        """Return better guesses for the names whose types have changed."""
        better = {
            name: self.front.settled(name, value, [each.names.get(name) for each in self.repeats])
            for name, value in self.first.items()
        }
        return {name: guess for name, guess in better.items() if guess is not None}

    def give_next_values(self) -> None:
        for name, value in self.first.items():
            for each in self.repeats:
                give = functools.partial(self.front.give, each.jump, value)
                self.front.at(each, give, each.names[name])


def _is_like(first: Any, value: Any) -> bool:
    return value is first or (isinstance(first, Constant) and are_same(first, value))


def _guess_of(value: Any) -> Any:
    """Return the guess that leads to a value again."""
    if isinstance(value, Tuple):
        return tuple(map(_guess_of, value.items))
    if isinstance(value, Complex):
        return _guess_of(value.real), _guess_of(value.imag)
    if isinstance(value, Number):
        return value.type, value.is_weak, value.is_natural
    return None


def _conflict(values: Sequence[Any], name: str) -> str:
    """Return why a name has no value that is one of several."""
    if any(isinstance(value, Constant) and callable(value.value) for value in values) or any(
        isinstance(value, Lambda | Method) for value in values
    ):
        return (
            "which function is called is known when a kernel is compiled: call both, and choose "
            "one of the results, as in f(x) if condition else g(x)"
        )
    if any(isinstance(value, Elements) for value in values):
        return NO_MEMORY
    others = [value for value in values if value != NONE]
    if 0 < len(others) < len(values):
        return (
            f"a value used here is None on some path, where {described(others[0])} is needed: give "
            "it a number on all of them"
        )
    words = list(dict.fromkeys(map(described, values)))
    first, other = words[0], words[-1]
    what = f"'{name}'" if name else "a value"
    return f"{what} would be {first} on one path and {other} on another; convert one of them"


@functools.lru_cache(maxsize=4096)
def assigned_names(statement: ast.AST) -> frozenset[str]:
    """Return the names that a statement assigns."""
    names = set()
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif not isinstance(node, ast.Lambda):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            pending += ast.iter_child_nodes(node)
    return frozenset(names)
