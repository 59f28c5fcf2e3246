"""Array statements of functions of the host and of their loops' kernels, as loops over elements.

An operation on arrays is a value whose elements are computed where they are read
(:class:`~dparray._language.values.Elements`), so a statement is one loop nest, however many
operations it has. A name gets memory of its own. Shapes are compared at run time where they are not
known: if axes of one element are repeated, or if memory that is read overlaps what is written, a
second loop nest runs.

A work-item has no memory for a new array. There a name holds an expression, which is computed
where it is read; what would need a copy is refused. Sizes are compared in checked kernels only.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dparray._ir.instructions import OPS, Op, walk
from dparray._ir.types import BOOL, F16, GLOBAL, I64, U64, Pointer, Type
from dparray._language.builtins.arrays import METHODS, creates, has_array, of_arrays, product
from dparray._language.errors import CHANGED, NO_MEMORY, OVERLAPS, SHAPE_ERROR, Refusal
from dparray._language.memory import dtype_of
from dparray._language.recursion import Recursion
from dparray._language.values import (
    NONE,
    Array,
    Complex,
    Constant,
    Elements,
    Frame,
    Method,
    Number,
    Range,
    Reference,
    Shared,
    Target,
    Tuple,
    described,
    entries_of,
    is_number,
)

#: Threads share the loop nest of a statement on at least this many elements.
MIN_SHARED_ELEMENTS = 1 << 14
#: Comparisons of which the operands are whole values.
_NOT_ELEMENTWISE = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_NO_BROADCAST = "an operand does not broadcast to the shape of the others"


class Made(ast.stmt):
    """A statement that the front end makes, with the names that it assigns."""

    _fields = ("assigned",)

    def __init__(self, translate: Callable[[], Any], names: Sequence[str]) -> None:
        super().__init__()
        self.translate = translate
        self.assigned = [ast.Name(name, ast.Store()) for name in names]


class _Unassigned(NamedTuple):
    """The guess that a name which only the iterations of a loop assign is an array.

    Attributes:
        array: one that is assigned.
    """

    array: Array


class Arrays(Recursion):
    """The part of the front end for array statements.

    Attributes:
        around: the functions whose calls lead to the one that is being translated.
        changes: the memory that statements have changed, in order.
        is_even: whether the loops that are being translated repeat no axis of one element.
        given: for each ``return``, the addresses of its arrays, and which memory they may be.
    """

    around: list[Frame]
    changes: list[Op]
    is_even: bool
    given: list[tuple[list[Op], tuple[str, ...], ast.AST]]

    @property
    def has_arrays(self) -> bool:  # type: ignore[override]
        """Whether array statements are allowed here: in users' functions of the host, and in the
        bodies of their loops.
        """
        return self.rules.has_arrays or (self.is_sequential and self.rules.is_numpy)

    # -- loops ------------------------------------------------------------------------------------

    def do_made(self, statement: Made) -> None:
        statement.translate()

    def unique(self) -> str:
        """Return a name that no source can have."""
        count = self.knowledge["names"] = self.knowledge.get("names", 0) + 1
        return f".{count}"

    def each(
        self,
        shape: Sequence[Any],
        body: Callable[[list[Number]], Any],
        assigned: Sequence[str] = (),
        ends: tuple[Any, Any] | None = None,
    ) -> None:
        """Translate a loop nest over the positions of a shape.

        Args:
            shape: the sizes of the axes.
            body: translates the innermost statements.
            assigned: the names that they assign.
            ends: where the outermost loop begins and ends, if that is not the whole axis.
        """
        position: list[Number] = []

        def loop(axis: int) -> None:
            if axis == len(shape):
                body(list(position))
                return
            name = self.unique()

            def inner() -> None:
                index = self.frame.names[name]
                assert isinstance(index, Number)
                position.append(index)
                loop(axis + 1)
                position.pop()

            statement = self.made_loop([name], inner, assigned)
            first, last = (Constant(0), shape[axis]) if axis or ends is None else ends
            self.counted(statement, Range(first, last, Constant(1)))
            self.frame.names.pop(name, None)

        loop(0)

    def made_loop(
        self, names: Sequence[str], inner: Callable[[], Any], assigned: Sequence[str] = ()
    ) -> ast.For:
        """Return a loop for names with a body that is translated by a function."""
        made, targets = Made(inner, assigned), [ast.Name(name, ast.Store()) for name in names]
        target = ast.Tuple(list(targets), ast.Store()) if len(names) > 1 else targets[0]
        statement = ast.For(target, ast.Constant(0), [made], [])
        # Translation tells loops apart by their identity, so their nodes must stay alive.
        self.knowledge.setdefault("statements", []).append(statement)
        assert self.place is not None
        made.lineno = statement.lineno = self.place.line - self.first_line + 1
        return statement

    def each_apart(self, shape: Sequence[Any], body: Callable[[list[Number]], Any]) -> None:
        """Translate a loop nest whose iterations are independent: threads share a long one."""
        is_shared = any(target.op.name == "parallel" for target in self.targets)
        if is_shared or not self.is_sequential or not shape or all(map(self.is_one, shape)):
            self.each(shape, body)
            return
        count = self.constant(1, I64)
        for length in shape:
            count = self.op("mul", I64, count, self.to(length, I64).op)
        is_short = self.op("lt", BOOL, count, self.constant(MIN_SHARED_ELEMENTS, I64))
        one, as_many_as_suit = (self.constant(number, I64) for number in (1, 0))
        parts = self.op("select", I64, is_short, one, as_many_as_suit)
        names = [self.unique() for _ in range(3)]

        def part() -> None:
            first, last = (self.frame.names[name] for name in names[1:])
            self.each(shape, body, (), (first, last))

        total = Number(self.to(shape[0], I64).op, is_natural=True)
        self.shared(self.made_loop(names, part), Shared(total, Number(parts)))

    def folded_over(
        self, shape: Sequence[Any], start: Any, step: Callable[[Any, list[Number]], Any]
    ) -> Any:
        """Return a value that a loop nest updates at each position."""
        name = self.unique()
        self.frame.names[name] = start

        def update(position: list[Number]) -> None:
            self.frame.names[name] = step(self.frame.names[name], position)

        self.each(shape, update, [name])
        return self.frame.names.pop(name)

    def settled(self, name: str, first: Any, values: Sequence[Any]) -> Any:
        arrays = [each for each in values if isinstance(each, Array)]
        forced = (names for key, names in self.knowledge.items() if key[:1] == ("forced",))
        if (
            self.has_arrays
            and arrays
            and is_number(first)
            and any(name in names for names in forced)
        ):
            return _Unassigned(arrays[0])
        return super().settled(name, first, values)

    def start(self, loop: Op, value: Any, guess: Any) -> Any:
        if isinstance(guess, _Unassigned):
            like = guess.array
            sizes = [Constant(0)] * len(like.shape)
            value = self.new_array(sizes, like.element, like.is_complex)
            if like.strides is not None:
                value = replace(value, strides=self.strides(value))
            guess = None
        return super().start(loop, value, guess)

    # -- elements ---------------------------------------------------------------------------------

    def elements(self, value: Any) -> Elements:
        """Return an array, an array expression or a number by its elements."""
        if isinstance(value, Elements):
            if value.version is not None and self.has_changed(value, self.changes[value.version :]):
                in_expression = "a function that an expression calls changes an array of it"
                raise Refusal(in_expression if self.is_sequential else CHANGED)
            return value
        if isinstance(value, Array):
            return Elements(
                value.shape,
                lambda index: self.read(value, self.address_of(value, index)),
                (value,),
            )
        if not (is_number(value) or isinstance(value, Complex)):
            raise Refusal(f"an operand of an array operation is {described(value)}")
        return Elements((), lambda index: value)

    def combined(self, function: Callable[..., Any], operands: Sequence[Any]) -> Elements:
        """Return an element-wise operation; axes of one element are repeated."""
        parts = [self.elements(each) for each in operands]
        ndim = max(len(each.shape) for each in parts)
        shape: list[Any] = []
        conditions: list[Op] = [each for part in parts for each in part.even]
        for axis in range(ndim):
            lengths = [
                each.shape[axis - ndim + len(each.shape)]
                for each in parts
                if axis - ndim + len(each.shape) >= 0
            ]
            shape.append(self.common_length(lengths, conditions))
        places = [self.stretched(each.shape, shape) for each in parts]

        def at(index: Sequence[Number]) -> Any:
            return function(
                *(part.at(place(index)) for part, place in zip(parts, places, strict=True))
            )

        reads = tuple(array for part in parts for array in part.reads)
        even = tuple(dict.fromkeys(conditions))
        return Elements(tuple(shape), at, reads, even, len(self.changes))

    def array_operation(self, operation: type, first: Any, second: Any, node: ast.AST) -> Any:
        """Return a binary operation of which an operand is an array."""
        if operation is ast.MatMult:
            return product(self, node, first, second)
        return self.combined(lambda a, b: self.binary(operation, a, b, node), [first, second])

    def compare(self, order: type, a: Any, b: Any, node: ast.AST) -> Any:
        if self.has_arrays and has_array((a, b)) and order not in _NOT_ELEMENTWISE:
            compare = super().compare
            return self.combined(lambda x, y: compare(order, x, y, node), [a, b])
        return super().compare(order, a, b, node)

    def has_changed(self, value: Elements, changes: Sequence[Op]) -> bool:
        """Return whether elements are others after changes of memory.

        The arguments of a work-item are apart: that is looked at before a launch.
        """
        if self.is_sequential:
            return bool(changes)
        return any(self.root(each.pointer) in changes for each in value.reads)

    def note_change(self, array: Array) -> None:
        """Note that a statement has changed an array."""
        self.changes.append(self.root(array.pointer))
        if self.is_sequential or not self.has_arrays:
            return
        frames = (*self.around, self.frame)
        loops = [self.births[loop[0].op] for frame in frames for loop in frame.loops]
        named = [each for frame in frames for each in frame.names.values()]
        # The next iteration would compute an expression from before the loop of other elements.
        before = [each for each in named if isinstance(each, Elements)]
        before = [each for each in before if each.birth < max(loops, default=0)]
        if any(self.has_changed(each, self.changes[-1:]) for each in before):
            raise Refusal(CHANGED)

    def element(self, owner: Any, index: Any, node: ast.AST) -> Any:
        if isinstance(owner, Elements):
            return self.element_of(owner, entries_of(index), node)
        if isinstance(owner, Array) and self.has_arrays:
            entries = entries_of(index)
            if has_array(entries):
                owner, entries = self.row_of(owner, entries, node)
                return self.gathered(owner, [self.whole(each) for each in entries], node)
            if entries == (Constant(...),):
                return self.view(owner, entries, node)
        return super().element(owner, index, node)

    def element_of(self, owner: Elements, entries: Sequence[Any], node: ast.AST) -> Any:
        """Return an element of an array expression."""
        source = self.elements(owner)
        if len(entries) != len(source.shape) or not all(map(is_number, entries)):
            raise Refusal(NO_MEMORY, node)
        pairs = zip(entries, source.shape, strict=True)
        return source.at([self.position(each, length, node) for each, length in pairs])

    def row_of(self, owner: Array, entries: Sequence[Any], node: ast.AST) -> tuple[Array, Any]:
        """Return the row at the integers before an array in an index, and that array."""
        *first, last = entries
        if not first or not all(map(is_number, first)):
            return owner, entries
        return self.view(owner, tuple(first), node), (last,)

    def gathered(self, owner: Array, parts: Sequence[Any], node: ast.AST) -> Elements:
        """Return the elements, or the rows, of an array at the integers of another."""
        at = parts[0]
        kind = self.kind_of(self.elements(at))[0].kind if len(parts) == 1 else ""
        if kind == "b" and len(at.shape) == len(owner.shape):
            return self.elements(self.selected(owner, at))
        if kind not in ("i", "u"):
            raise Refusal("this index of arrays is not available here", node)
        count = len(at.shape)

        def element(index: Sequence[Number]) -> Any:
            position = self.position_at(owner, at, index[:count], node)
            return self.read(owner, self.address_of(owner, [position, *index[count:]]))

        # One more axis tells `are_aligned` that elements are read at other places than they have.
        one = self.number(Constant(1))
        read = replace(owner, shape=(*owner.shape, one), strides=(*self.strides(owner), one))
        shape = (*at.shape, *owner.shape[1:])
        return Elements(shape, element, (read, at), (), len(self.changes))

    def position_at(
        self, owner: Array, at: Array, index: Sequence[Number], node: ast.AST
    ) -> Number:
        """Return an element of an array of indices as a position in the first axis of another."""
        found = self.read(at, self.address_of(at, index))
        position = self.position(found, owner.shape[0], node)
        numbers = (self.to(each, U64).op for each in (position, owner.shape[0]))
        self.require(self.op("lt", BOOL, *numbers), "IndexError", "an index is out of bounds")
        return position

    def selected(self, owner: Array, mask: Array) -> Array:
        """Return the elements of an array where a mask of its shape is true."""
        self.require_mask(owner, mask)
        zero = self.to(Constant(0), I64)

        def holds(index: Sequence[Number]) -> Number:
            return self.truth(self.read(mask, self.address_of(mask, index)))

        def counted(count: Any, index: list[Number]) -> Number:
            return self.made("add", I64, count, holds(index), True)

        count = self.folded_over(mask.shape, zero, counted)
        count = replace(count, is_natural=True)
        # Each element is stored; the next one overwrites it unless the mask holds. This needs no
        # branch, but room for one element more.
        room = self.made("add", I64, count, Constant(1), True)
        chosen = self.new_array([room], owner.element, owner.is_complex)

        def taken(count: Any, index: list[Number]) -> Number:
            value = self.read(owner, self.address_of(owner, index))
            self.write(chosen, self.address_of(chosen, [count]), value)
            return self.made("add", I64, count, holds(index), True)

        self.folded_over(mask.shape, zero, taken)
        return replace(chosen, shape=(count,))

    def require_mask(self, owner: Array, mask: Array) -> None:
        """End the function unless a mask has the shape of an array."""
        text = "boolean index did not match the shape of the array"
        for one, other in zip(owner.shape, mask.shape, strict=True):
            if not self.is_same(one, other):
                same = self.op("eq", BOOL, self.to(one, I64).op, self.to(other, I64).op)
                self.require(same, "IndexError", text)

    def store_where(self, owner: Array, mask: Array, value: Any, node: ast.AST) -> None:
        """Store a number where a mask of the shape of an array is true."""
        if not is_number(value) and not isinstance(value, Complex):
            raise Refusal("an array that is stored where a mask holds is not available", node)
        self.require_mask(owner, mask)
        mask = self.unaffected(owner, mask)

        def one(index: list[Number]) -> None:
            def store() -> Constant:
                self.write(owner, self.address_of(owner, index), value, node)
                return NONE

            test = self.truth(self.read(mask, self.address_of(mask, index)))
            self.branch(test, store, lambda: NONE)

        self.each(owner.shape, one)

    def scatter(self, owner: Array, index: Any, value: Any, node: ast.AST) -> None:
        """Store a value at the integers of an array, or where a mask holds."""
        owner, entries = self.row_of(owner, entries_of(index), node)
        at = self.whole(entries[0])
        is_mask = isinstance(at, Array) and self.kind_of(self.elements(at))[0] == BOOL
        if is_mask and len(at.shape) == len(owner.shape):
            self.store_where(owner, at, value, node)
            return
        is_vector = isinstance(at, Array) and len(owner.shape) == len(at.shape) == 1
        if not is_vector or self.kind_of(self.elements(at))[0].kind not in "iu":
            raise Refusal("this index of arrays is not available here", node)
        at, value = (self.unaffected(owner, each) for each in (at, self.whole(value)))
        source = self.elements(value)
        length = source.shape[0] if source.shape else at.shape[0]
        if not self.is_same(length, at.shape[0]):
            lengths = (self.to(each, I64).op for each in (length, at.shape[0]))
            self.require_shape(self.op("eq", BOOL, *lengths))

        def one(position: list[Number]) -> None:
            place = self.position_at(owner, at, position, node)
            element = source.at(position if source.shape else [])
            self.write(owner, self.address_of(owner, [place]), element, node)

        self.each(at.shape, one)

    def unaffected(self, place: Array, value: Any) -> Any:
        """Return a value, or a copy if it is an array that changes while another is written."""
        if not isinstance(value, Array) or self.are_separate(place, value):
            return value
        apart = Number(self.are_apart(place, value))
        return self.branch(apart, lambda: value, lambda: self.whole(self.elements(value)))

    # -- calls and branches -----------------------------------------------------------------------

    def call(self, called: Any, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        if not self.has_arrays:
            return super().call(called, arguments, named, node)
        if isinstance(called, Method) and isinstance(called.owner, Array | Elements):
            handler = METHODS.get(called.name)
            if handler is None:
                raise Refusal(f"the method {called.name} of an array is not available", node)
            return self.handled(handler, called, [called.owner, *arguments], named, node)
        if isinstance(called, Constant):
            made = creates(called.value)
            has_operand = has_array((*arguments, *named.values()))
            handler = of_arrays(called.value) if has_operand else made
            if handler is not None:
                return self.handled(handler, called.value, arguments, named, node)
        arguments = [self.named(each) for each in arguments]
        named = {name: self.named(each) for name, each in named.items()}
        return super().call(called, arguments, named, node)

    def attribute(self, owner: Any, name: str, node: ast.AST) -> Any:
        if isinstance(owner, Elements):
            if name in METHODS:
                return Method(owner, name)
            owner = self.whole(owner)
        if self.has_arrays and isinstance(owner, Array):
            if name in METHODS:
                return Method(owner, name)
            if name == "real" and not owner.is_complex:
                return owner
            if name in ("real", "imag") and owner.is_complex:
                part = self.parts_of(owner.pointer)[name == "imag"]
                return Array(part, owner.shape, self.strides(owner), owner.is_readonly)
        return super().attribute(owner, name, node)

    def run(self, frame: Frame, *rest: Any) -> Any:
        self.around.append(self.frame)
        value = super().run(frame, *rest)
        self.around.pop()
        return self.keep(value)

    def branch(self, test: Number, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
        return self.keep(super().branch(test, then, other))

    def inside(self, target: Target, translate: Callable[[], Any]) -> list[Op]:
        count = len(self.held)
        body = super().inside(target, translate)
        del self.held[count:]
        return body

    def keep(self, value: Any) -> Any:
        """Hold a value that paths have brought together until the end of the statement."""
        if isinstance(value, Array | Tuple):
            self.held.append(value)
        return value

    def common_length(self, lengths: Sequence[Any], conditions: list[Op]) -> Any:
        """Return the length of an axis of operands; where it differs, one of them is 1.

        Add the conditions under which no operand is repeated.
        """
        result = lengths[0]
        for other in lengths[1:]:
            if self.is_same(result, other) or self.is_one(other):
                continue
            if self.is_one(result):
                result = other
                continue
            first, second = self.to(result, I64).op, self.to(other, I64).op
            one = self.constant(1, I64)
            are_same = self.op("eq", BOOL, first, second)
            is_single = self.op("eq", BOOL, first, one)
            fits = self.op("or", BOOL, is_single, self.op("eq", BOOL, second, one))
            self.require_shape(self.op("or", BOOL, are_same, fits))
            conditions.append(are_same)
            result = Number(self.op("select", I64, is_single, second, first), is_natural=True)
        return result

    def stretched(
        self, own: Sequence[Any], whole: Sequence[Any]
    ) -> Callable[[Sequence[Number]], list[Any]]:
        """Return the index of an operand as a function of that of the result."""
        first = len(whole) - len(own)

        def place(index: Sequence[Number]) -> list[Any]:
            made: list[Any] = []
            for length, all_of_it, number in zip(own, whole[first:], index[first:], strict=True):
                if self.is_same(length, all_of_it):
                    made.append(number)
                elif self.is_one(length):
                    made.append(self.number(Constant(0)))
                elif self.is_even:
                    made.append(number)
                else:
                    is_one = self.op("eq", BOOL, self.to(length, I64).op, self.constant(1, I64))
                    zero = self.constant(0, I64)
                    at = self.op("select", I64, is_one, zero, self.to(number, I64).op)
                    made.append(Number(at, is_natural=True))
            return made

        return place

    def is_same(self, one: Any, other: Any) -> bool:
        """Return whether two lengths are certainly the same."""
        numbers = isinstance(one, Number) and isinstance(other, Number)
        if numbers and one.op is other.op:
            return True
        return _value_of(one) == _value_of(other) is not None

    def is_one(self, length: Any) -> bool:
        """Return whether a length is certainly 1."""
        return _value_of(length) == 1

    def require_shape(self, holds: Op, text: str = _NO_BROADCAST) -> None:
        """End the function unless shapes fit together."""
        self.require(holds, SHAPE_ERROR, text)

    def require(self, holds: Op, error: str, text: str) -> None:
        raise NotImplementedError

    @property
    def first_line(self) -> int:
        raise NotImplementedError

    def kind_of(self, value: Elements) -> tuple[Type, bool]:
        """Return the type of the numbers of elements in memory, and whether they are pairs."""
        outside, self.body, count = self.body, [], len(self.held)
        index = [self.number(Constant(0))] * len(value.shape)
        found = value.at(index)
        self.body = outside
        del self.held[count:]
        if isinstance(found, Complex):
            return found.real.type, True
        if not is_number(found) or self.type_of(found).lanes > 1:
            raise Refusal(f"the elements of an array would be {described(found)}")
        kind = self.type_of(found)
        if kind == F16:
            raise Refusal("arrays of float16 are not available in native code")
        return kind, False

    def all_hold(self, conditions: Sequence[Op]) -> Number:
        """Return whether all of some conditions hold, of which there is at least one."""
        return Number(functools.reduce(lambda a, b: self.op("and", BOOL, a, b), conditions))

    def evenly(self, value: Elements, translate: Callable[[bool], Any]) -> Any:
        """Return what is translated for loops that repeat no axis, or that may repeat some."""
        if not value.even:
            return translate(self.is_even)
        holds = self.all_hold(value.even)
        return self.branch(holds, lambda: translate(True), lambda: translate(False))

    # -- memory -----------------------------------------------------------------------------------

    @staticmethod
    def root(pointer: Op) -> Op:
        """Return the memory in which an address is."""
        while pointer.name == "offset":
            pointer = pointer.operands[0]
        return pointer

    def memory(self, kind: Type, count: Op, is_zero: bool = False) -> Op:
        """Return memory for a new array; memory that no array in use has is reused."""
        marks = frozenset({"zeros"} if is_zero else ())
        live = dict.fromkeys(self.root(each.pointer) for each in self.arrays_alive())
        pointers = [each for each in live if each.name not in ("parameter", "allocate")]
        return self.op("new", Pointer(kind, GLOBAL), count, *pointers, marks=marks)

    def arrays_alive(self) -> Iterator[Array]:
        """Yield the arrays that statements after this one may read."""

        def inside(value: Any) -> Iterator[Array]:
            if isinstance(value, Array):
                yield value
            elif isinstance(value, Tuple):
                for item in value.items:
                    yield from inside(item)
            elif isinstance(value, Reference):
                yield value.array
            elif isinstance(value, Elements):
                yield from value.reads

        for frame in (*self.around, self.frame):
            for value in frame.names.values():
                yield from inside(value)
        for value in self.held:
            yield from inside(value)

    def new_array(
        self, shape: Sequence[Any], kind: Type, is_complex: bool, is_zero: bool = False
    ) -> Array:
        """Return a new array."""
        if not self.is_sequential:
            raise Refusal(NO_MEMORY)
        if self.is_in_procedure:
            raise Refusal("a function that calls itself makes no arrays: pass them as arguments")
        extents = [self.to(each, I64) for each in shape]
        count = self.constant(2 if is_complex else 1, I64)
        is_negative: Op | None = None
        for length, each in zip(shape, extents, strict=True):
            count = self.op("mul", I64, count, each.op)
            if not self.is_natural(length) or (isinstance(length, Number) and length.relies):
                below = self.op("lt", BOOL, each.op, self.constant(0, I64))
                is_negative = (
                    below if is_negative is None else self.op("or", BOOL, is_negative, below)
                )
        if is_negative is not None:
            count = self.op("select", I64, is_negative, self.constant(-1, I64), count)
        pointer = self.memory(kind, count, is_zero)
        sizes = tuple(Number(each.op, is_natural=True) for each in extents)
        array = Array(pointer, sizes, None, False, is_complex)
        self.held.append(array)
        return array

    def array_of(self, items: Sequence[Any], node: ast.AST) -> Array:
        """Return a new array of numbers."""
        array = self.new_array([Constant(len(items))], self.common(items), False)
        for number, item in enumerate(items):
            self.write(array, self.address(array, Constant(number), node), item, node)
        return array

    def whole(self, value: Any) -> Any:
        """Return an array in memory for an array expression; any other value as it is."""
        if not isinstance(value, Elements):
            return value
        if not self.is_sequential:
            raise Refusal(NO_MEMORY)
        value = self.elements(value)
        array = self.new_array(value.shape, *self.kind_of(value))
        self.fill(array, value, ())
        return array

    def named(self, value: Any) -> Any:
        """Return the value that a name gets: an expression is an array in memory.

        In a work-item it stays an expression, which is computed where the name is read.
        """
        if self.is_sequential or not isinstance(value, Elements):
            return self.whole(value)
        return replace(value, birth=len(self.births))

    def fill(self, place: Array, value: Elements, conditions: Sequence[Op]) -> None:
        """Store elements in an array of their shape.

        Args:
            place: the array.
            value: the elements.
            conditions: what must hold so that each element can be stored once it is computed.
        """

        def store(target: Array, source: Elements, is_even: bool) -> Constant:
            before, self.is_even = self.is_even, is_even

            def one(index: list[Number]) -> None:
                element = source.at(index)
                self.write(target, self.address_of(target, index), element)

            self.each_apart(target.shape, one)
            self.is_even = before
            return NONE

        def by_a_copy() -> Constant:
            copy = self.new_array(place.shape, *self.kind_of(value))
            store(copy, value, False)
            return store(place, self.elements(copy), False)

        tests = [*value.even, *conditions]
        if not tests:
            store(place, value, self.is_even)
            return
        self.branch(
            self.all_hold(tests),
            lambda: store(place, value, True),
            by_a_copy if conditions else lambda: store(place, value, False),
        )

    def store(self, place: Array, value: Any, node: ast.AST) -> None:
        """Store a number, an array or an array expression in an array."""
        if place.is_readonly:
            self.write(place, place.pointer, Constant(0), node)  # which refuses it
        source = self.elements(value)
        first = len(place.shape) - len(source.shape)
        if first < 0:
            raise Refusal(f"{described(value)} has more axes than what it is assigned to", node)
        even = list(source.even)
        for own, length in zip(source.shape, place.shape[first:], strict=True):
            if self.is_same(own, length) or self.is_one(own):
                continue
            size, whole = self.to(own, I64).op, self.to(length, I64).op
            same = self.op("eq", BOOL, size, whole)
            single = self.op("eq", BOOL, size, self.constant(1, I64))
            self.require_shape(self.op("or", BOOL, same, single))
            even.append(same)
        at = self.stretched(source.shape, place.shape)
        spread = Elements(
            place.shape, lambda index: source.at(at(index)), source.reads, tuple(even)
        )
        self.fill(place, spread, self.apart_conditions(place, source.reads))

    def store_like(self, place: Any, value: Any, node: ast.AST) -> None:
        """Store a value in an array as an operation with ``out=`` does.

        Raises:
            Refusal: NumPy does not convert it.
        """
        if not isinstance(place, Array):
            raise Refusal(f"what is written is {described(place)}, not an array", node)
        computed = dtype_of(*self.kind_of(self.elements(value)))
        stored = dtype_of(place.element, place.is_complex)
        if not np.can_cast(computed, stored, "same_kind"):
            raise Refusal(f"{computed} is not converted to {stored}", node)
        self.store(place, value, node)

    def apart_conditions(self, place: Array, reads: Sequence[Array]) -> list[Op]:
        """Return what holds if no element that is written is read later at another place."""
        conditions: dict[Op, None] = {}
        for array in dict.fromkeys(reads):
            if array is place or self.are_separate(array, place):
                continue
            same = self.are_aligned(place, array)
            if same is True:
                continue
            if not self.is_sequential:
                roots = [self.root(each.pointer) for each in (array, place)]
                are_known = {each.name for each in roots} == {"parameter"}
                if not are_known or (roots[0] is roots[1] and not self.are_cut_alike(array, place)):
                    raise Refusal(OVERLAPS)
                continue
            apart = self.are_apart(place, array)
            conditions[apart if same is None else self.op("or", BOOL, apart, same)] = None
        return list(conditions)

    def are_cut_alike(self, one: Array, other: Array) -> bool:
        """Return whether parts of an array have the same elements, or none in common."""
        numbers = [[*each.shape, *self.strides(each)] for each in (one, other)]
        pairs = zip(*numbers, strict=False)
        is_same = len(numbers[0]) == len(numbers[1]) and one.cut == other.cut
        return is_same and all(_are_equal(a.op, b.op) for a, b in pairs)

    def are_separate(self, one: Array, other: Array) -> bool:
        """Return whether two arrays certainly have memory of their own."""
        roots = [self.root(each.pointer) for each in (one, other)]
        return roots[0] is not roots[1] and any(
            root.name == "new" and other.name in ("new", "parameter")
            for root, other in (roots, reversed(roots))
        )

    def are_aligned(self, place: Array, array: Array) -> Any:
        """Return whether two arrays have the same elements at the same places.

        ``True`` if it is certain, ``None`` if it cannot be.
        """
        if place.itemsize != array.itemsize or len(place.shape) != len(array.shape):
            return None
        pairs = [(place.pointer, array.pointer)]
        if place.strides is not None or array.strides is not None:
            strides = zip(self.strides(place), self.strides(array), strict=True)
            pairs += [(a.op, b.op) for a, b in strides]
        pairs += [(a.op, b.op) for a, b in zip(place.shape, array.shape, strict=True)]
        holds: Op | None = None
        for a, b in (pair for pair in pairs if not _are_equal(*pair)):
            if isinstance(a.type, Pointer):
                a, b = (self.op("address", U64, each) for each in (a, b))
            same = self.op("eq", BOOL, a, b)
            holds = same if holds is None else self.op("and", BOOL, holds, same)
        return True if holds is None else holds

    def are_apart(self, one: Array, other: Array) -> Op:
        """Return whether the memory between the first and the last byte of arrays is separate."""
        (low, high), (other_low, other_high) = self.span(one), self.span(other)
        is_before = self.op("le", BOOL, high, other_low)
        return self.op("or", BOOL, is_before, self.op("le", BOOL, other_high, low))

    def span(self, array: Array) -> tuple[Op, Op]:
        """Return the addresses of the first byte of an array, and of the first one after it."""
        low = self.op("bitcast", I64, self.op("address", U64, array.pointer))
        high = self.op("add", I64, low, self.constant(array.itemsize, I64))
        zero, one = self.constant(0, I64), self.constant(1, I64)
        for extent, stride in zip(array.shape, self.strides(array), strict=True):
            last = self.op("mul", I64, self.op("sub", I64, extent.op, one), stride.op)
            low = self.op("add", I64, low, self.op("min", I64, last, zero))
            high = self.op("add", I64, high, self.op("max", I64, last, zero))
        return low, high

    # -- results ----------------------------------------------------------------------------------

    def check_given(self, body: Sequence[Op]) -> None:
        """Refuse results that may be parts of arguments, or the same memory."""
        if not self.given:
            return
        sources: dict[Op, list[Op]] = {}
        for op in walk(body):
            received: Sequence[Op] = ()
            if op.name == "leave":
                received = op.attribute.results
            elif op.name == "repeat":
                received = op.attribute.carried
            elif op.name == "loop":
                received = op.carried
            for one, value in zip(received, op.operands, strict=False):
                sources.setdefault(one, []).append(value)
        for pointers, kinds, node in self.given:
            taken: set[Op] = set()
            for pointer in pointers:
                found, pending = set[Op](), [pointer]
                while pending:
                    op = pending.pop()
                    if op not in found:
                        found.add(op)
                        pending += sources.get(op, [])
                own = {op for op in found if op not in sources}
                if own & taken or any(op.name not in kinds for op in own):
                    raise Refusal("a result may be the memory of another array", node)
                taken |= {op for op in own if op.name == "new"}


def _are_equal(one: Op, other: Op) -> bool:
    """Return whether two ops have the same value, whatever is stored between them."""
    if one is other:
        return True
    is_alike = (one.name, one.type, one.attribute) == (other.name, other.type, other.attribute)
    is_known = one.name == "offset" or OPS[one.name].is_cheap
    if not is_alike or not is_known or len(one.operands) != len(other.operands):
        return False
    return all(map(_are_equal, one.operands, other.operands))


def _value_of(length: Any) -> Any:
    """Return the value of a length that is known, or ``None``."""
    if isinstance(length, Constant):
        return length.value
    is_known = isinstance(length, Number) and length.op.name == "constant"
    return length.op.attribute if is_known else None
