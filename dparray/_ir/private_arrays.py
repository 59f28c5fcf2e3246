"""Private arrays as values, for passes that follow values from op to op.

Each element becomes a value that control flow passes on. An access at a constant index is to one of
these values, and an access at another index chooses between all of them.
"""

from __future__ import annotations

from dparray._ir.instructions import Function, Op, constant, root, walk
from dparray._ir.types import BOOL, I64, PRIVATE, Pointer, Type

#: The largest private array whose elements become values.
MAX_ELEMENTS = 64

_ARITHMETIC = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__}


def remove_private_arrays(function: Function) -> None:
    """Replace the private arrays of a structured program by their elements.

    Large arrays stay, and those that are accessed in another way than by element.
    """
    ops = list(walk(function.body))
    found = {id(op) for op in ops if is_private(op) and op.attribute <= MAX_ELEMENTS}
    for op in ops:
        for number, operand in enumerate(op.operands):
            if isinstance(operand.type, Pointer) and (number or not _is_by_element(op)):
                found.discard(id(root(operand)))
    if found:
        _Elements(found).body(function.body)


def is_private(op: Op) -> bool:
    """Return whether an op creates a private array."""
    return op.name == "allocate" and isinstance(op.type, Pointer) and op.type.space == PRIVATE


def _is_by_element(op: Op) -> bool:
    """Return whether an op is the access to one element, or its address."""
    if op.name == "offset":
        return not op.attribute and op.operands[1].type == I64
    value = op if op.name == "load" else op.operands[-1]
    return op.name in ("load", "store") and isinstance(value.type, Type) and value.type.lanes == 1


class _Elements:
    """Replaces arrays by values, in one walk over a program.

    Attributes:
        arrays: the arrays that are replaced, by identity.
        values: of the elements of each array, where the walk is.
        loaded: the values in place of loads, by identity.
    """

    def __init__(self, arrays: set[int]) -> None:
        self.arrays = arrays
        self.values: dict[int, list[Op]] = {}
        self.loaded: dict[int, Op] = {}

    def body(self, body: list[Op]) -> None:
        ops, body[:] = list(body), []
        for op in ops:
            op.operands = [self.loaded.get(id(each), each) for each in op.operands]
            is_access = op.name in ("offset", "load", "store")
            array = root(op.operands[0]) if is_access else op
            if op.name == "if":
                self.choice(op)
            elif op.name == "loop":
                self.loop(op)
            elif id(array) in self.arrays:
                self.access(body, op, array)
                continue
            body.append(op)

    def access(self, body: list[Op], op: Op, array: Op) -> None:
        if op is array:
            assert isinstance(op.type, Pointer)
            self.values[id(op)] = [constant(0, op.type.element)] * op.attribute
        if op.name not in ("load", "store"):
            return
        values, index = self.values[id(array)], self.index(body, op.operands[0])
        number = _known(index)
        if number is not None:  # A branch that is not taken may be beyond the array.
            number = min(max(number, 0), len(values) - 1)
        if op.name == "store" and number is not None:
            values[number] = op.operands[1]
        elif op.name == "store":
            for at, value in enumerate(values):
                values[at] = self.chosen(body, op, index, at, op.operands[1], value)
        else:
            found = values[-1 if number is None else number]
            for at, value in enumerate(values[:-1] if number is None else ()):
                if value is not found:
                    found = self.chosen(body, op, index, at, value, found)
            self.loaded[id(op)] = found

    def index(self, body: list[Op], pointer: Op) -> Op:
        """Return the index of an element in its array."""
        index = constant(0, I64)
        while pointer.name == "offset":
            pointer, part = pointer.operands
            index = Op("add", I64, [index, part], place=pointer.place)
            body.append(index)
        return index

    def chosen(self, body: list[Op], op: Op, index: Op, at: int, first: Op, second: Op) -> Op:
        is_here = Op("eq", BOOL, [index, constant(at, I64)], place=op.place)
        body += [is_here, Op("select", first.type, [is_here, first, second], place=op.place)]
        return body[-1]

    def copies(self) -> dict[int, list[Op]]:
        return {array: list(values) for array, values in self.values.items()}

    def choice(self, op: Op) -> None:
        before, ends = self.values, []
        for inner in op.bodies:
            self.values = before
            self.values = self.copies()
            self.body(inner)
            ends.append(self.values)
        self.values = before
        for array, values in before.items():
            for at, pair in enumerate(zip(*(end[array] for end in ends), strict=True)):
                values[at] = pair[0]
                if pair[0] is not pair[1]:
                    values[at] = Op("result", pair[0].type)
                    op.results.append(values[at])
                    for inner, value in zip(op.bodies, pair, strict=True):
                        inner[-1].operands.append(value)

    def loop(self, op: Op) -> None:
        written = {id(root(o.operands[0])) for o in walk(op.bodies[0]) if o.name == "store"}
        before = {array: values for array, values in self.values.items() if array in written}
        for values in before.values():
            op.operands += values
            values[:] = [Op("carried", each.type) for each in values]
            op.carried += values
        self.values |= {array: list(values) for array, values in before.items()}
        *head, decision = op.bodies[0]
        self.body(head)
        decision.operands = [self.loaded.get(id(each), each) for each in decision.operands]
        op.bodies[0] = [*head, decision]
        behind = self.values
        for inner in decision.bodies:
            self.values = behind
            self.values = self.copies()
            self.body(inner)
            inner[-1].operands += [each for array in before for each in self.values[array]]
        self.values = {array: behind[array] for array in behind if array not in before}
        for array, values in before.items():
            self.values[array] = [Op("result", each.type) for each in values]
            op.results += self.values[array]


def _known(index: Op) -> int | None:
    """Return the value of an index of constants."""
    if index.name == "constant":
        return int(index.attribute)
    if index.name not in _ARITHMETIC:
        return None
    first, second = map(_known, index.operands)
    return None if first is None or second is None else _ARITHMETIC[index.name](first, second)
