"""The adjoint of a program: from the cotangents of the arrays that it writes, those that it reads.

A work-item of the adjoint computes the values of the program's work-item again, and then walks
backward over its ops. In a body of control flow, the values of the body are computed again first.
The values that a loop carries are kept on a tape where derivatives read them: in private memory if
the number of iterations is constant, otherwise in a global array, whose length another program
computes before. The contribution to an element that several work-items
read is added atomically.

Ops without a derivative raise :class:`NoDerivative` with their statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from dparray._ir.facts import affine, joined_values
from dparray._ir.instructions import (
    CONTROL,
    OPS,
    Function,
    Op,
    Parameter,
    Place,
    constant,
    root,
    walk,
)
from dparray._ir.private_arrays import MAX_ELEMENTS, is_private, remove_private_arrays
from dparray._ir.structured import (
    Unstructured,
    counting,
    inside_of,
    repetitions,
    step_of,
    structured,
    unroll,
)
from dparray._ir.types import BOOL, F32, GLOBAL, I32, I64, LOCAL, PRIVATE, Pointer, Type

#: The longest tape of a loop in private memory, in iterations.
MAX_PRIVATE = 64

#: The rows of derivatives, by the name of an operation; see :mod:`dparray._graph.derivatives`.
Rules = Mapping[str, Sequence[str] | None]

#: The operations that ops of a kernel compute; others have the same name.
_NAMES = {
    "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negative", "max": "maximum",
    "min": "minimum", "fabs": "abs",
}  # fmt: skip
#: The rows of functions that are no operations of arrays.
_OTHERS: Rules = {
    "erf": ("1.1283791670955126 * exp(-x * x)",),
    "erfc": ("-1.1283791670955126 * exp(-x * x)",),
    "degrees": ("57.29577951308232",),
    "radians": ("0.017453292519943295",),
    "rint": ("0",),
    "fmod": ("g", "-trunc(x / y)"),
    "ldexp": ("ldexp(g, y)", "0"),
}
_ADDING = ("fetch_add", "fetch_sub")
#: The mark of products in which zero wins.
_ZERO_WINS = "zero wins"
#: Names of parameters of loops: the steps, which are not 0, and the number of all iterations.
STEP, COUNT = "__step", "__total"


class NoDerivative(Exception):
    """A program has no derivative.

    Attributes:
        place: the statement.
        fix: what to write instead.
    """

    def __init__(self, problem: str, op: Op, fix: str) -> None:
        super().__init__(problem)
        self.place = op.place
        self.fix = fix


class NotGathered(Exception):
    """A gradient is computed by additions to memory, not as a sum for each of its elements."""


class Adjoint(NamedTuple):
    """An adjoint.

    Attributes:
        function: the program. Its parameters are those of the original, with the cotangent instead
            of each output, then the outputs that are updated, a tape, and the gradients.
        cell: the type of the elements of the tape.
        has_tape: whether it uses the tape.
        size: returns a program that computes how many elements of the tape a work-item needs. Its
            arguments are those of the adjoint without tape and gradients, and an array of one int32
            for the largest number.
        takes: whether it clears cotangents of outputs when it has read them.
        reads: the most elements that a work-item reads of each wanted array.
    """

    function: Function
    cell: Type
    has_tape: bool
    size: Callable[[], Function]
    takes: bool
    reads: Mapping[str, float]


def cotangent(name: str) -> str:
    """Return the name of the cotangent of an output."""
    return f"g_{name}"


def gradient(name: str) -> str:
    """Return the name of the gradient by an input."""
    return f"d_{name}"


def adjoint(
    function: Function,
    dimensions: int,
    wanted: Collection[str],
    outputs: Collection[str],
    rules: Rules,
    updated: Collection[str] = (),
    cleared: Collection[str] = (),
    copied: Collection[str] = (),
    partly: Collection[str] = (),
) -> Adjoint:
    """Return the adjoint of a program, which is changed to its structured form.

    Args:
        function: the program.
        dimensions: of the range of its work-items.
        wanted: the array arguments that it reads, whose gradients are computed.
        outputs: the array arguments that it writes, whose cotangents are given.
        rules: the derivatives of operations.
        updated: the outputs whose elements from before the launch are arguments, too.
        cleared: the outputs whose cotangents become 0 where they are written.
        copied: the wanted arguments of whose gradient each work-item has a copy: the gradient has
            one more axis, in front.
        partly: the wanted arguments to whose gradient another program adds the contributions of
            elements that several work-items read (:mod:`dparray._ir.gathering`).

    Raises:
        NoDerivative: the program, or a part of it, has none.
    """
    bring_into_form(function)
    given = function, dimensions, wanted, outputs, rules, updated, cleared, copied
    left = [load for name in partly for load in shared_loads(function, name, dimensions)]
    return Writer(*given, left).run()


def bring_into_form(function: Function) -> None:
    """Change a program to its structured form, without short loops and private arrays.

    Raises:
        NoDerivative: it has no such form.
    """
    try:
        structured(function)
    except Unstructured as error:
        raise NoDerivative(
            str(error), error.op, "choose between numbers: x[i] if condition else y[i]"
        ) from None
    unroll(function)
    remove_private_arrays(function)


class _Scope:
    """A body of the adjoint that is being written.

    Attributes:
        ops: its ops so far.
        values: the value in the adjoint of each value of the program, by identity.
        cotangents: of values of the program, by identity.
        loops: the loops that were run forward here, by the identity of the original.
        parent: the body around it.
    """

    def __init__(self, parent: _Scope | None = None) -> None:
        self.ops: list[Op] = []
        self.values: dict[int, Op] = {}
        self.cotangents: dict[int, tuple[Op, Op]] = {}
        self.loops: dict[int, Op] = {}
        self.parent = parent


class Writer:
    """Writes one adjoint.

    Attributes:
        scope: the body that is being written.
        place: the statement of the op whose derivative is being written.
        entry: ops before all others.
        varied: the floats that depend on the wanted arrays, by identity.
    """

    def __init__(
        self,
        function: Function,
        dimensions: int,
        wanted: Collection[str],
        outputs: Collection[str],
        rules: Rules,
        updated: Collection[str] = (),
        cleared: Collection[str] = (),
        copied: Collection[str] = (),
        left: Collection[Op] = (),
    ) -> None:
        self.copied = copied
        #: The loads whose contributions another program computes, by identity.
        self.left = {id(load) for load in left}
        self.function, self.outputs, self.rules = function, outputs, {**rules, **_OTHERS}
        self.wanted = [name for name in arrays_of(function) if name in wanted]
        self.scope = _Scope()
        self.place: Place | None = None
        self.entry: list[Op] = []
        self.takes = False
        self.tape: Op | None = None
        self.tops: Op | None = None
        self.widths: dict[int, int] = {}
        #: The ids of the work-item that is computed again, if it is another one.
        self.ids: list[Op] = []
        #: Loads whose cotangents are summed before they are added to memory, by identity.
        self.deferred: dict[int, tuple[Op, Op]] = {}
        self.result = Function(f"adjoint_of_{function.name}")
        self.gradients: dict[str, Op] = {}
        _check(function, outputs)
        self.varied = _varied(function, {*self.wanted, *outputs}, self.left)
        self.own = {
            name: name in copied or is_own(function, name, dimensions, False, self.left)
            for name in self.wanted
        }
        # Two work-items that write the same element are a race in the program, too.
        self.own |= {name: is_own(function, name, dimensions, True) for name in outputs}
        check_reads(function, self.own, outputs)
        self.updated = {name: arrays_of(function)[name] for name in outputs if name in updated}
        #: The loads of elements of outputs that are not written yet, by identity.
        self.first_reads = _first_reads(function.body, set(self.updated))
        self.before: dict[str, Op] = {}
        #: Whether the cotangent of an output is read once, and need not be cleared.
        counts = {name: _accesses(function.body, name, self.first_reads) for name in outputs}
        self.is_once = {n: self.own[n] and n not in cleared and counts[n] <= 1 for n in outputs}
        if not cleared:  # What the outputs were before is a constant.
            self.varied -= self.first_reads
        #: Whether a tape may need 64 bits; decides the type of its elements.
        kinds = [each.type for op in walk(function.body) for each in op.carried]
        is_wide = any(isinstance(kind, Type) and kind.bits == 64 for kind in kinds)
        self.cell = I64 if is_wide else I32

    def run(self) -> Adjoint:
        body = self.function.body[:-1]
        self.parameters()
        for op in body:
            self.forward(op)
        for op in reversed(body):
            self.backward(op)
        self.result.body = [*self.entry, *self.scope.ops, Op("return")]
        if self.tape is None:
            self.cell = I32
            self.tape_parts = array_parameters(self.tape_name, I32, 1)
        self.result.parameters[self.tape_at : self.tape_at] = self.tape_parts
        remove_dead(self.result)
        for op in walk(self.result.body):
            if "written" in op.marks:
                raise NoDerivative(
                    "reads an element of an output that is written later, and a derivative needs "
                    "the old value",
                    op,
                    "keep the value in a variable, and write the element once",
                )
        reads = {name: _accesses(self.function.body, name, ()) for name in self.wanted}
        has_tape = self.tape is not None
        return Adjoint(self.result, self.cell, has_tape, self.size, self.takes, reads)

    def same_parameters(self, made: list[Op]) -> None:
        """Add the parameters of the program, with cotangents in place of the outputs, and the
        outputs as they were before.
        """
        for parameter in self.function.parameters:
            name, *rest = parameter.attribute
            name = cotangent(name) if name in self.outputs else name
            made.append(Op("parameter", parameter.type, attribute=Parameter(name, *rest)))
            self.scope.values[id(parameter)] = made[-1]
        for name, (pointer, count) in self.updated.items():
            parts = array_parameters(name, pointer.type.element, count)  # type: ignore[union-attr]
            made += parts
            self.before[name] = parts[2]

    def parameters(self) -> None:
        made = self.result.parameters
        self.same_parameters(made)
        self.tape_name = f"tape_of_{self.result.name}"
        self.tape_parts = array_parameters(self.tape_name, self.cell, 1)
        self.tape_at = len(made)
        for name in self.wanted:
            pointer, dimensions = arrays_of(self.function)[name]
            assert isinstance(pointer.type, Pointer)
            element = pointer.type.element
            parts = array_parameters(
                gradient(name),
                F32 if element.bits == 16 else element,
                dimensions + (name in self.copied),
            )
            made += parts
            self.gradients[name] = parts[2]
            if name in self.copied:
                at, _ = linear_item(self.function, self.entry, self.value)
                for length in parts[4 : 4 + dimensions]:
                    at = Op("mul", I64, [at, length])
                    self.entry.append(at)
                self.gradients[name] = Op("offset", parts[2].type, [parts[2], at])
                self.entry.append(self.gradients[name])

    # -- ops --------------------------------------------------------------------------------------

    def op(self, name: str, kind: Any, *operands: Op, attribute: Any = None) -> Op:
        op = Op(name, kind, operands, attribute, self.place)
        self.scope.ops.append(op)
        return op

    def value(self, op: Op) -> Op:
        """Return the value of the adjoint that is that of an op of the program."""
        if op.name == "constant":
            return op
        scope: _Scope | None = self.scope
        while scope is not None:
            if id(op) in scope.values:
                return scope.values[id(op)]
            scope = scope.parent
        raise AssertionError(f"{op!r} is not computed")

    def add(self, op: Op, g: Op | None) -> None:
        """Add to the cotangent of a value of the program."""
        if g is None or id(op) not in self.varied:
            return
        before = self.scope.cotangents.get(id(op))
        if before is not None:
            g = self.op("add", g.type, before[1], g)
        self.scope.cotangents[id(op)] = op, g

    def taken(self, op: Op) -> Op | None:
        """Return the cotangent of a value, and forget it."""
        found = self.scope.cotangents.pop(id(op), None)
        return None if found is None else found[1]

    # -- forward ----------------------------------------------------------------------------------

    def forward(self, op: Op) -> None:
        """Compute the value of an op again."""
        if op.name in ("store", "atomic", "print", "check"):
            return
        if op.name == "index" and self.ids:
            self.scope.values[id(op)] = self.ids[op.attribute[1]]
            return
        if op.name == "if":
            body = self.only_body(op)
            if body is not None:
                for inner in body[:-1]:
                    self.forward(inner)
                for result, value in zip(op.results, body[-1].operands, strict=True):
                    self.scope.values[id(result)] = self.value(value)
                return
            copy = Op("if", None, [self.value(op.operands[0])], place=op.place)
            for body in op.bodies:
                copy.bodies.append(self.again(body, {id(op): copy}))
        elif op.name == "loop":
            copy = Op("loop", None, [self.value(each) for each in op.operands], place=op.place)
            copy.carried = [Op("carried", each.type, place=op.place) for each in op.carried]
            first = {id(old): new for old, new in zip(op.carried, copy.carried, strict=True)}
            copy.bodies = [self.again(op.bodies[0], {id(op): copy}, first)]
            self.scope.loops[id(op)] = copy
        else:
            operands = [self.value(each) for each in op.operands]
            marks = op.marks
            if op.name == "load" and root(op.operands[0]).attribute.argument in self.outputs:
                if id(op) in self.first_reads:
                    start = self.before[root(op.operands[0]).attribute.argument]
                    operands = [self.shadow(op.operands[0], start)]
                else:
                    marks |= {"written"}
            copy = Op(op.name, op.type, operands, op.attribute, op.place, marks=marks)
            self.scope.values[id(op)] = copy
        copy.results = [Op("result", each.type) for each in op.results]
        for old, new in zip(op.results, copy.results, strict=True):
            self.scope.values[id(old)] = new
        self.scope.ops.append(copy)

    def again(
        self, body: Sequence[Op], targets: dict[int, Op], first: dict[int, Op] | None = None
    ) -> list[Op]:
        """Compute the ops of a body again, with jumps to other targets."""
        outside, self.scope = self.scope, _Scope(self.scope)
        self.scope.values |= first or {}
        *ops, jump = body
        for op in ops:
            self.forward(op)
        if jump.name == "if":  # the decision of a loop
            copy = Op("if", None, [self.value(jump.operands[0])], place=jump.place)
            copy.bodies = [self.again(inner, targets) for inner in jump.bodies]
        else:
            operands = [self.value(each) for each in jump.operands]
            copy = Op(jump.name, None, operands, targets[id(jump.attribute)], jump.place)
        self.scope.ops.append(copy)
        made, self.scope = self.scope.ops, outside
        return made

    # -- backward ---------------------------------------------------------------------------------

    def backward(self, op: Op) -> None:
        """Add what an op contributes to the cotangents of its operands."""
        self.place = op.place
        if op.name == "store":
            self.add(op.operands[1], self.of_output(op))
        elif op.name == "atomic":
            g = self.op("load", op.type, self.value(op.operands[0]))
            self.add(op.operands[1], g if op.attribute[0] == "fetch_add" else self.negative(g))
        elif op.name == "if":
            self.backward_if(op)
        elif op.name == "loop":
            self.backward_loop(op)
        else:
            own = self.taken(op)
            if own is not None:
                self.contribute(op, own)

    def contribute(self, op: Op, g: Op) -> None:
        """Add the contributions of an op with a value."""
        kind = op.operands[0].type
        if op.name == "load":
            self.scatter(op, g)
        elif op.name == "convert":
            self.add(op.operands[0], self.op("convert", kind, g))
        elif op.name == "select":
            self.contribute_selected(op, g)
        elif op.name == "pack":
            for lane, operand in enumerate(op.operands):
                self.add(operand, self.op("extract", operand.type, g, attribute=lane))
        elif op.name == "extract":
            assert isinstance(kind, Type)
            if op.attribute is None:
                raise NoDerivative("indexes a vector at run time", op, "use constant indices")
            zero = constant(0, kind.scalar)
            lanes = [g if lane == op.attribute else zero for lane in range(kind.lanes)]
            self.add(op.operands[0], self.op("pack", kind, *lanes))
        else:
            self.by_rule(op, g)

    def contribute_selected(self, op: Op, g: Op) -> None:
        """Add the contributions of a choice; equal operands of a maximum or minimum share."""
        flag, *others = op.operands
        if _ZERO_WINS in op.marks:  # The derivative is linear where the factor is 0, too.
            first, second = others[1].operands
            self.add(first, self.zero_wins(g, self.value(second)))
            self.add(second, self.zero_wins(g, self.value(first)))
            return
        half = none = constant(0, g.type)  # type: ignore[arg-type]
        is_extreme = flag.name in ("lt", "gt") and all(
            any(_are_same(each, other) for other in others) for each in flag.operands
        )
        if is_extreme:
            half = self.op("mul", g.type, g, constant(0.5, g.type))  # type: ignore[arg-type]
            are_equal = self.op("eq", flag.type, *[self.value(each) for each in others])
        for operand, pair in zip(others, ((g, none), (none, g)), strict=True):
            if id(operand) in self.varied:
                part = self.op("select", g.type, self.value(flag), *pair)
                if is_extreme:
                    part = self.op("select", g.type, are_equal, half, part)
                self.add(operand, part)

    def by_rule(self, op: Op, g: Op) -> None:
        """Add the contributions that the row of an operation states."""
        name = op.attribute if op.name == "math" else op.name
        row = self.rules.get(_NAMES.get(name, name))
        if row is None:
            what = f"calls math.{name}" if op.name == "math" else f"computes {name}"
            raise NoDerivative(what, op, "write it with functions that have one")
        names = {"r": _Value(self, self.value(op)), "g": _Value(self, g), **_functions(self)}
        for letter, operand in zip("xy", op.operands, strict=False):
            names[letter] = _Value(self, self.value(operand))
        for text, operand in zip(row, op.operands, strict=True):
            if text == "0" or id(operand) not in self.varied:
                continue
            plain = text.removeprefix("~")
            found = eval(plain, {"__builtins__": {}}, names)
            if plain != text:
                self.add(operand, self.zero_wins(g, found.op))
            else:
                is_whole = re.search(r"\bg\b", plain)
                self.add(operand, (found if is_whole else names["g"] * found).op)

    def zero_wins(self, g: Op, factor: Op) -> Op:
        """Return a product that is 0 where ``g`` is, also if the other factor is infinite."""
        assert isinstance(g.type, Type)
        none = constant(0, g.type)
        is_none = self.op("eq", g.type.flag, g, none)
        made = self.op("select", g.type, is_none, none, self.op("mul", g.type, g, factor))
        made.marks |= {_ZERO_WINS}
        return made

    def negative(self, g: Op) -> Op:
        return self.op("neg", g.type, g)

    # -- memory -----------------------------------------------------------------------------------

    def of_output(self, op: Op) -> Op | None:
        """Return the cotangent of an element that is written, which is cleared."""
        kind = op.operands[1].type
        if not isinstance(kind, Type) or not kind.is_float:
            return None
        name = root(op.operands[0]).attribute.argument
        address = self.value(op.operands[0])
        zero = constant(0, kind)
        if self.own[name]:
            g = self.op("load", kind, address, attribute=op.attribute)
            if not self.is_once[name]:
                self.takes = True
                self.op("store", None, address, zero, attribute=op.attribute)
            return g
        self.takes = True
        if kind.lanes > 1 or kind.bits == 16:
            self.refuse_vector(op)
        attribute = ("exchange", "device", ("relaxed",))
        return self.op("atomic", kind, address, zero, attribute=attribute)

    def refuse_vector(self, op: Op) -> None:
        raise NoDerivative(
            "accesses a vector, or a float16, that other work-items may access, too",
            op,
            "access one element of float32 or float64 at a time",
        )

    def scatter(self, op: Op, g: Op) -> None:
        """Add the cotangent of an element to the gradient of its array."""
        if id(op) in self.deferred:
            self.add(self.deferred[id(op)][1], g)
            return
        name = root(op.operands[0]).attribute.argument
        if name in self.outputs:
            address = self.value(op.operands[0])
        else:
            address = self.shadow(op.operands[0], self.gradients[name])
            assert isinstance(address.type, Pointer)
            if address.type.element != g.type.scalar:  # type: ignore[union-attr]
                g = self.op("convert", F32._replace(lanes=g.type.lanes), g)  # type: ignore[union-attr]
        is_own, is_vector = self.own[name], g.type.lanes > 1  # type: ignore[union-attr]
        if is_own and (is_vector or name in self.outputs):
            before = self.op("load", g.type, address, attribute=op.attribute)
            total = self.op("add", g.type, before, g)
            self.op("store", None, address, total, attribute=op.attribute)
            return
        if is_vector:
            self.refuse_vector(op)
        scope = "work_item" if is_own else "device"
        self.op("atomic", g.type, address, g, attribute=("fetch_add", scope, ("relaxed",)))

    def shadow(self, pointer: Op, start: Op) -> Op:
        """Return the address in a gradient that belongs to an address in its array."""
        if pointer.name == "parameter":
            return start
        before = self.shadow(pointer.operands[0], start)
        if pointer.attribute == "bytes" and before.type != pointer.type:
            raise NoDerivative(
                "accesses a part of a float16 array with strides", pointer, "index its elements"
            )
        index = self.value(pointer.operands[1])
        return self.op("offset", before.type, before, index, attribute=pointer.attribute)

    def only_body(self, op: Op) -> list[Op] | None:
        """Return the body of an ``if`` that is executed, if its condition is constant."""
        test = self.value(op.operands[0])
        return op.bodies[not test.attribute] if test.name == "constant" else None

    # -- control flow -----------------------------------------------------------------------------

    def backward_if(self, op: Op) -> None:
        gs = [self.taken(result) for result in op.results]
        if not any(gs) and not _has_effect(op):
            return
        only = self.only_body(op)
        if only is not None:
            for g, operand in zip(gs, only[-1].operands, strict=True):
                self.add(operand, g)
            for inner in reversed(only[:-1]):
                self.backward(inner)
            return
        choice = Op("if", None, [self.value(op.operands[0])], place=op.place)
        sides: list[_Scope] = []
        outside = self.scope
        for body in op.bodies:
            *ops, jump = body
            self.scope = _Scope(outside)
            for inner in ops:
                self.forward(inner)
            for g, operand in zip(gs, jump.operands, strict=True):
                self.add(operand, g)
            for inner in reversed(ops):
                self.backward(inner)
            sides.append(self.scope)
        self.scope = outside
        found = {key: each[0] for side in sides for key, each in side.cotangents.items()}
        for key, value in list(found.items()):
            pair = [side.cotangents.get(key, (None, None))[1] for side in sides]
            if pair[0] is pair[1]:  # Both paths pass it on.
                self.add(value, pair[0])
                del found[key]
        choice.results = [Op("result", each.type) for each in found.values()]
        for side in sides:
            given = [
                side.cotangents[key][1] if key in side.cotangents else _zero(each)
                for key, each in found.items()
            ]
            choice.bodies.append([*side.ops, Op("leave", None, given, choice, op.place)])
        self.scope.ops.append(choice)
        for each, result in zip(found.values(), choice.results, strict=True):
            self.add(each, result)

    def backward_loop(self, op: Op) -> None:
        """Run a loop backward: its last decision first, then the iterations."""
        gs = [self.taken(result) for result in op.results]
        if not any(gs) and not _has_effect(op):
            return
        *head, decision = op.bodies[0]
        *body, again = decision.bodies[0]
        *tail, leave = decision.bodies[1]
        run = self.scope.loops[id(op)]
        count = self.iterations(op, run, again)
        outside = self.scope
        # The part after the last iteration, with the values that the loop carried there.
        self.scope = _Scope(outside)
        for carried, own in zip(op.carried, list(run.carried), strict=False):
            self.scope.values[id(carried)] = _exported(run, own)
        last = [*head, *tail]
        for inner in last:
            self.forward(inner)
        for g, operand in zip(gs, leave.operands, strict=True):
            self.add(operand, g)
        for inner in reversed(last):
            self.backward(inner)
        after, self.scope = self.scope, outside
        outside.ops += after.ops
        moved = [c for c in op.carried if id(c) in self.varied]
        first = [after.cotangents.pop(id(c), (c, _zero(c)))[1] for c in moved]
        for value, g in after.cotangents.values():
            self.add(value, g)
        # The iterations.
        self.place = op.place
        back = Op("loop", None, [count, *first], place=op.place)
        back.carried = [Op("carried", each.type) for each in (count, *moved)]
        self.scope = _Scope(outside)
        at = self.op("add", I64, back.carried[0], constant(-1, I64))
        kept = self.carried_values(op, again, at)
        before, self.deferred = self.deferred, self.invariant_loads(op, body)
        for inner in (*head, *body):
            self.forward(inner)
        for carried, operand in zip(op.carried, again.operands, strict=True):
            if id(carried) in self.varied:
                self.add(operand, back.carried[1 + _position(moved, carried)])
        for inner in reversed([*head, *body]):
            self.backward(inner)
        inside, self.scope = self.scope, outside
        elements, self.deferred = self.deferred, before
        following = [inside.cotangents.pop(id(c), (c, _zero(c)))[1] for c in moved]
        others = [each for each, _ in inside.cotangents.values()]
        totals = [Op("carried", each.type) for each in others]
        back.carried += totals
        back.operands += [_zero(each) for each in others]
        sums = [
            Op("add", total.type, [total, g], place=op.place)
            for total, (_, g) in zip(totals, inside.cotangents.values(), strict=True)
        ]
        inside.ops += [*sums, Op("repeat", None, [at, *following, *sums], back, op.place)]
        back.results = [Op("result", each.type) for each in back.carried[1:]]
        goes_on = Op("gt", BOOL, [back.carried[0], constant(0, I64)], place=op.place)
        choice = Op("if", None, [goes_on], place=op.place)
        choice.bodies = [inside.ops, [Op("leave", None, back.carried[1:], back, op.place)]]
        back.bodies = [[goes_on, choice]]
        self.keep(op, run, back, kept, count, at)
        self.scope.ops.append(back)
        if id(op) in self.widths:
            assert self.tops is not None
            self.op("store", None, self.tops, self.base)
        firsts = [op.operands[_position(op.carried, c)] for c in moved]
        for value, g in zip((*firsts, *others), back.results, strict=True):
            self.add(value, g)
        self.scatter_deferred(elements, count)

    def invariant_loads(self, op: Op, body: Sequence[Op]) -> dict[int, tuple[Op, Op]]:
        """Return the loads of one element in all iterations, with a value for its cotangent."""
        inside = inside_of(op)

        def is_fixed(value: Op) -> bool:
            if id(value) not in inside:
                return True
            return OPS[value.name].is_cheap | (value.name == "offset") and all(
                map(is_fixed, value.operands)
            )

        found = {}
        for load in body:
            if load.name != "load" or id(load) not in self.varied:
                continue
            is_input = root(load.operands[0]).attribute.argument not in self.outputs
            if is_input and is_fixed(load.operands[0]):
                element = Op("carried", load.type)
                self.varied.add(id(element))
                found[id(load)] = load, element
        return found

    def scatter_deferred(self, elements: Mapping[int, tuple[Op, Op]], count: Op) -> None:
        """Add the sums of the cotangents of elements that a loop reads again and again."""
        totals = [(load, self.taken(element)) for load, element in elements.values()]
        totals = [(load, total) for load, total in totals if total is not None]
        if not totals:
            return
        some = self.op("gt", BOOL, count, constant(0, I64))  # otherwise there may be no element
        outside, self.scope = self.scope, _Scope(self.scope)
        for load, total in totals:
            self.available(load.operands[0])
            assert total is not None
            self.scatter(load, total)
        body, self.scope = self.scope.ops, outside
        choice = self.op("if", None, some)
        choice.bodies = [[*body, Op("leave", None, [], choice)], [Op("leave", None, [], choice)]]

    def available(self, op: Op) -> None:
        """Compute a value again, unless this body knows it."""
        scope: _Scope | None = self.scope
        while scope is not None and id(op) not in scope.values:
            scope = scope.parent
        if scope is None and op.name != "constant":
            for operand in op.operands:
                self.available(operand)
            self.forward(op)

    def iterations(self, op: Op, run: Op, again: Op) -> Op:
        """Return how often a loop repeats: by a formula if it counts, otherwise it is counted."""
        found = counting(op)
        if found is not None:
            first, stop, step, _ = found
            if first.name == stop.name == "constant":
                return constant(repetitions(first.attribute, stop.attribute, step), I64)
            self.place = op.place
            ends = [self.value(stop), self.value(first)]
            distance = self.op("sub", I64, *(ends if step > 0 else reversed(ends)))
            if abs(step) > 1:
                rounded = self.op("add", I64, distance, constant(abs(step) - 1, I64))
                distance = self.op("floordiv", I64, rounded, constant(abs(step), I64))
            return self.op("max", I64, distance, constant(0, I64))
        return _exported(run, _counter(run))

    def carried_values(self, op: Op, again: Op, at: Op) -> list[tuple[Op, Op]]:
        """Give each value that a loop carries its value in an iteration; return those to keep."""
        kept, inside = [], inside_of(op)
        for carried, first, following in zip(op.carried, op.operands, again.operands, strict=True):
            step = step_of(carried, following)
            if following is carried:
                value = self.value(first)
            elif carried.type == I64 and step is not None and id(step) not in inside:
                distance = self.op("mul", I64, at, self.value(step))
                value = self.op("add", I64, self.value(first), distance)
            else:
                value = Op("carried", carried.type, place=op.place)  # until it is known
                kept.append((carried, value))
            self.scope.values[id(carried)] = value
        return kept

    def keep(
        self, op: Op, run: Op, back: Op, kept: Sequence[tuple[Op, Op]], count: Op, at: Op
    ) -> None:
        """Keep the carried values that a backward loop reads, when the loop runs forward."""
        used = live([back], back)
        kept = [pair for pair in kept if id(pair[1]) in used]
        if not kept:
            return
        number = _counter(run)
        is_private = count.name == "constant" and count.attribute <= MAX_PRIVATE
        writes: list[Op] = []
        reads: list[Op] = []
        if not is_private:
            self.widths[id(op)] = len(kept)
            self.begin_tape(run, count, len(kept))
        for lane, (carried, value) in enumerate(kept):
            own = run.carried[_position(op.carried, carried)]
            kind = carried.type
            assert isinstance(kind, Type)
            if is_private:
                memory = Op("allocate", Pointer(kind, PRIVATE), [], max(count.attribute, 1))
                self.entry.append(memory)
                place = Op("offset", memory.type, [memory, number])
                writes += [place, Op("store", None, [place, own])]
                where = Op("offset", memory.type, [memory, at])
                value.name, value.operands = "load", [where]
                reads += [where, value]
            else:
                place = self.cell_of(writes, number, len(kept), lane)
                writes.append(Op("store", None, [place, _to_cell(writes, own, self.cell)]))
                where = self.cell_of(reads, at, len(kept), lane)
                cell = Op("load", self.cell, [where])
                reads.append(cell)
                _from_cell(reads, value, cell)
        *_, decision = run.bodies[0]
        decision.bodies[0][:0] = writes
        inside = back.bodies[0][1].bodies[0]
        inside[1:1] = reads

    # -- the global tape --------------------------------------------------------------------------

    def begin_tape(self, run: Op, count: Op, width: int) -> None:
        """Reserve a part of the tape around a loop that runs forward."""
        if self.ids:
            raise NotGathered
        if self.tape is None:
            self.tape = self.tape_parts[2]
            self.tops = Op("allocate", Pointer(I64, PRIVATE), [], 1)
            zero = Op("store", None, [self.tops, constant(0, I64)])
            self.entry += [self.tops, zero]
            self.item, self.items = linear_item(self.function, self.entry, self.value)
        assert self.tops is not None
        self.base = Op("load", I64, [self.tops])
        size = Op("mul", I64, [count, constant(width, I64)])
        top = Op("add", I64, [self.base, size])
        ops = self.scope.ops
        at = next(number for number, op in enumerate(ops) if op is run)
        if count.name not in ("result", "constant"):  # The formula may be after the loop.
            self.move_before(ops, count, run)
            at = next(number for number, op in enumerate(ops) if op is run)
        ops[at + 1 : at + 1] = [size, top, Op("store", None, [self.tops, top])]
        ops.insert(at, self.base)

    def move_before(self, ops: list[Op], value: Op, mark: Op) -> None:
        """Move an op, and the ops that it needs, before another of the same body."""
        at = {id(op): number for number, op in enumerate(ops)}
        if at.get(id(value), -1) < at[id(mark)]:
            return
        for operand in value.operands:
            self.move_before(ops, operand, mark)
        ops[:] = [op for op in ops if op is not value]
        ops.insert(next(number for number, op in enumerate(ops) if op is mark), value)

    def cell_of(self, ops: list[Op], iteration: Op, width: int, lane: int) -> Op:
        """Add ops for the address of a value on the tape."""
        assert self.tape is not None
        row = Op("mul", I64, [iteration, constant(width, I64)])
        cell = Op("add", I64, [self.base, row])
        number = Op("add", I64, [cell, constant(lane, I64)])
        before = Op("mul", I64, [number, self.items])
        index = Op("add", I64, [before, self.item])
        address = Op("offset", self.tape.type, [self.tape, index])
        ops += [row, cell, number, before, index, address]
        return address

    def size(self) -> Function:
        """Return the program that computes how much of the tape a work-item needs."""
        made = Function(f"tape_of_{self.function.name}")
        self.scope = _Scope()
        self.same_parameters(made.parameters)
        parts = array_parameters("needed", I32, 1)
        made.parameters += parts
        need = self.op("convert", I32, self.sized(self.function.body[:-1]))
        attribute = ("fetch_max", "device", ("relaxed",))
        self.op("atomic", I32, parts[2], need, attribute=attribute)
        made.body = [*self.scope.ops, Op("return")]
        remove_dead(made)
        return made

    def sized(self, ops: Sequence[Op]) -> Op:
        """Compute ops again, and how much of the tape they need."""
        need = constant(0, I64)
        for op in ops:
            if op.name not in CONTROL or not any(id(each) in self.widths for each in walk([op])):
                self.forward(op)
                continue
            copy = Op(op.name, None, [self.value(each) for each in op.operands], place=op.place)
            more = Op("result", I64)
            if op.name == "if":
                copy.results = [*(Op("result", each.type) for each in op.results), more]
                copy.bodies = [self.sized_path(inner, copy) for inner in op.bodies]
            else:
                self.sized_loop(op, copy, more)
            self.scope.values |= {id(o): n for o, n in zip(op.results, copy.results, strict=False)}
            self.scope.ops.append(copy)
            if op.name == "loop":
                kept = self.op(
                    "mul", I64, copy.results[-1], constant(self.widths.get(id(op), 0), I64)
                )
                more = self.op("add", I64, more, kept)
            need = self.op("add", I64, need, more)
        return need

    def sized_path(
        self, body: Sequence[Op], target: Op, *before: Op, counted: Sequence[Op] = ()
    ) -> list[Op]:
        """Compute a body again; its jump gives how much of the tape it needs as well."""
        outside, self.scope = self.scope, _Scope(self.scope)
        *ops, jump = body
        need = self.sized(ops)
        if before:
            most, others = before
            need = self.op("max", I64, most, self.op("add", I64, others, need))
        operands = [self.value(each) for each in jump.operands]
        self.op(jump.name, None, *operands, need, *counted, attribute=target)
        made, self.scope = self.scope.ops, outside
        return made

    def sized_loop(self, op: Op, copy: Op, more: Op) -> None:
        most, count = Op("carried", I64), Op("carried", I64)
        copy.operands += [constant(0, I64), constant(0, I64)]
        copy.carried = [*(Op("carried", each.type) for each in op.carried), most, count]
        copy.results = [*(Op("result", each.type) for each in op.results), more, Op("result", I64)]
        outside, self.scope = self.scope, _Scope(self.scope)
        self.scope.values |= {id(o): n for o, n in zip(op.carried, copy.carried, strict=False)}
        *head, decision = op.bodies[0]
        others = self.sized(head)
        following = self.op("add", I64, count, constant(1, I64))
        choice = self.op("if", None, self.value(decision.operands[0]))
        choice.bodies = [
            self.sized_path(inner, copy, most, others, counted=[number])
            for inner, number in zip(decision.bodies, (following, count), strict=True)
        ]
        copy.bodies, self.scope = [self.scope.ops], outside


# --- values in the texts of rules -----------------------------------------------------------------


class _Value:
    """A value of the adjoint, with the operators that rules use."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, front: Writer, op: Op) -> None:
        self.front, self.op = front, op

    def made(self, name: str, *operands: Any, kind: Any = None, attribute: Any = None) -> _Value:
        """Add an op of this value and others; numbers take its type."""
        own = self.op.type
        assert isinstance(own, Type)
        ops = [each.op if isinstance(each, _Value) else constant(each, own) for each in operands]
        return _Value(self.front, self.front.op(name, kind or own, *ops, attribute=attribute))

    def __add__(self, other: Any) -> _Value:
        return self.made("add", self, other)

    def __radd__(self, other: Any) -> _Value:
        return self.made("add", other, self)

    def __sub__(self, other: Any) -> _Value:
        return self.made("sub", self, other)

    def __rsub__(self, other: Any) -> _Value:
        return self.made("sub", other, self)

    def __mul__(self, other: Any) -> _Value:
        return self.made("mul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> _Value:
        return self.made("div", self, other)

    def __rtruediv__(self, other: Any) -> _Value:
        return self.made("div", other, self)

    def __neg__(self) -> _Value:
        return self.made("neg", self)

    def compared(self, name: str, other: Any) -> _Value:
        assert isinstance(self.op.type, Type)
        return self.made(name, self, other, kind=self.op.type.flag)

    def __gt__(self, other: Any) -> _Value:
        return self.compared("gt", other)

    def __eq__(self, other: Any) -> _Value:  # type: ignore[override]
        return self.compared("eq", other)


def _functions(front: Writer) -> dict[str, Callable[..., Any]]:
    """Return the functions that the texts of rules call."""

    def mathematics(name: str) -> Callable[..., _Value]:
        def call(first: Any, *others: Any) -> _Value:
            if not isinstance(first, _Value):
                first = _Value(front, constant(first, others[0].op.type))
            made: _Value = first.made("math", first, *others, attribute=name)
            return made

        return call

    def where(condition: _Value, first: Any, second: Any) -> _Value:
        typed = first if isinstance(first, _Value) else second
        made: _Value = typed.made("select", condition, first, second)
        return made

    def sign(x: _Value) -> _Value:
        return where(x > 0, x * 0 + 1, where(-x > 0, x * 0 - 1, x * 0))

    def above(x: _Value, y: _Value) -> _Value:
        return where(x > y, x * 0 + 1, where(x == y, x * 0 + 0.5, x * 0))

    def part_of_angle(x: _Value, y: _Value) -> _Value:
        length = known["hypot"](x, y)
        return x / length / length

    def power_by_base(x: _Value, y: _Value) -> _Value:
        return where(y == 0, 0, y * known["pow"](x, where(y == 0, 1, y - 1)))

    def power_by_exponent(x: _Value, y: _Value, r: _Value) -> _Value:
        return where(x == 0, 0, r * known["log"](where(x == 0, 1, x)))

    names = "cos cosh copysign exp floor hypot ldexp log pow sin sinh sqrt trunc"
    known: dict[str, Callable[..., Any]] = {name: mathematics(name) for name in names.split()}
    written = (above, part_of_angle, power_by_base, power_by_exponent, sign, where)
    return known | {each.__name__: each for each in written}


# --- what a program accesses ----------------------------------------------------------------------


def arrays_of(function: Function) -> dict[str, tuple[Op, int]]:
    """Return the pointer and the number of dimensions of each array argument."""
    found: dict[str, tuple[Op, int]] = {}
    for parameter in function.parameters:
        name, part, _ = parameter.attribute
        if part == "pointer":
            found[name] = parameter, 0
        elif part == "shape":
            found[name] = found[name][0], found[name][1] + 1
    return found


def array_parameters(name: str, element: Type, dimensions: int) -> list[Op]:
    """Return the parameters of an array argument, as a launch packs them."""
    parts: list[tuple[Any, str, int]] = [(I64, "count", 0), (I64, "itemsize", 0)]
    parts.append((Pointer(element, GLOBAL), "pointer", 0))
    parts += [(I64, word, each) for word in ("shape", "stride") for each in range(dimensions)]
    return [Op("parameter", kind, attribute=Parameter(name, word, d)) for kind, word, d in parts]


def linear_item(function: Function, ops: list[Op], values: Callable[[Op], Op]) -> tuple[Op, Op]:
    """Add ops for the number of a work-item in its launch, and for their count."""
    parts: dict[str, dict[int, Op]] = {"extent": {}, "range": {}, "start": {}}
    for parameter in function.parameters:
        if parameter.attribute.part in parts:
            parts[parameter.attribute.part][parameter.attribute.dimension] = values(parameter)
    whole = parts["range"] or parts["extent"]
    item, items = constant(0, I64), constant(1, I64)
    for dimension in range(len(whole) or 3):
        own = Op("index", I64, [], ("global_id", dimension))
        size = whole.get(dimension) or Op("index", I64, [], ("global_size", dimension))
        if dimension in parts["start"]:
            ops.append(own)
            own = Op("add", I64, [own, parts["start"][dimension]])
        scaled = Op("mul", I64, [item, size])
        item, items = Op("add", I64, [scaled, own]), Op("mul", I64, [items, size])
        ops += [own, *([] if whole else [size]), scaled, item, items]
    return item, items


_TOGETHER = {
    "barrier": "waits for other work-items at a barrier",
    "group": "combines values of several work-items",
    "fence": "orders its accesses to memory",
}


def _check(function: Function, outputs: Collection[str]) -> None:
    """Refuse ops without a derivative."""
    used = {id(operand) for op in walk(function.body) for operand in op.operands}
    alone = "write a kernel whose work-items need nothing of each other"
    for op in walk(function.body):
        if op.name in _TOGETHER:
            raise NoDerivative(_TOGETHER[op.name], op, alone)
        if op.name == "allocate":
            if not is_private(op):
                raise NoDerivative("has local memory", op, alone)
            elements = f"p[k], of private arrays of at most {MAX_ELEMENTS} elements"
            raise NoDerivative(
                f"has a private array of {op.attribute} elements, or uses it as a whole",
                op,
                f"read and write single elements, {elements}",
            )
        if op.name not in ("load", "store", "atomic"):
            continue
        start = root(op.operands[0])
        if start.name != "parameter":
            raise NoDerivative("accesses one of several arrays", op, "index each array by itself")
        name = start.attribute.argument
        assert isinstance(start.type, Pointer)
        if start.type.space == LOCAL:
            raise NoDerivative(f"accesses local memory, {name}", op, alone)
        if op.name == "load":
            continue
        if name not in outputs:
            raise NoDerivative(
                f"writes {name}, which is not an output",
                op,
                f"name it as an output: dp.differentiable(kernel, {name}=shape), or write to "
                "another array",
            )
        if op.name == "atomic" and (op.attribute[0] not in _ADDING or id(op) in used):
            what = f"has an atomic {op.attribute[0]}"
            raise NoDerivative(
                f"{what} whose result it uses" if op.attribute[0] in _ADDING else what,
                op,
                "add with fetch_add, and do not use its result",
            )


def check_reads(function: Function, own: Mapping[str, bool], outputs: Collection[str]) -> None:
    """Refuse outputs that are read, or written in two ways, unless by their own work-item alone."""
    kinds: dict[str, set[str]] = {name: set() for name in outputs}
    for op in walk(function.body):
        if op.name not in ("load", "store", "atomic"):
            continue
        name = root(op.operands[0]).attribute.argument
        if name not in kinds:
            continue
        kinds[name].add(op.name)
        if op.name == "load" and not own[name]:
            raise NoDerivative(
                f"reads {name}, which other work-items write",
                op,
                "read another array (out[i] += value is allowed with the id of the work-item)",
            )
        if "atomic" in kinds[name] and len(kinds[name]) > 1:
            raise NoDerivative(
                f"accesses {name} with and without an atomic operation", op, "use one of both"
            )


def _varied(function: Function, active: Collection[str], left: Collection[int]) -> set[int]:
    """Return the floats that depend on elements of arrays, without some loads, by identity."""
    sources = joined_values(function)
    ops = list(walk(function.body))
    joins = [each for op in ops for each in (*op.results, *op.carried)]
    found: set[int] = set()
    before = -1
    while before < len(found):
        before = len(found)
        for op in (*ops, *joins):
            if not isinstance(op.type, Type) or id(op) in found:
                continue
            if op.name == "load":
                depends = root(op.operands[0]).attribute.argument in active and id(op) not in left
            else:
                given = sources.get(id(op), op.operands[op.name == "select" :])
                depends = any(id(each) in found for each in given)
            if depends and op.name == "bitcast":
                raise NoDerivative("takes the bits of a float", op, "compute with numbers")
            if depends and op.name != "atomic" and op.type.is_float:
                found.add(id(op))
    return found


def is_id(op: Op, dimension: int) -> bool:
    """Return whether an index is the id of the work-item in a dimension."""
    if op.name == "add":  # in a range that is launched in pieces
        parts = [each for each in op.operands if each.name != "parameter"]
        starts = [each.attribute for each in op.operands if each.name == "parameter"]
        is_moved = [(each.part, each.dimension) for each in starts] == [("start", dimension)]
        return is_moved and is_id(parts[0], dimension)
    return op.name == "index" and op.attribute == ("global_id", dimension)


def axes_of(pointer: Op, dimensions: int) -> list[Op]:
    """Return the indices of an element's axes; none if they are not known."""
    if pointer.name != "offset" or pointer.operands[0].name != "parameter":
        return []
    array, index = pointer.operands
    if pointer.attribute == "bytes":
        return _axes_by_strides(array, index, dimensions)
    axes: list[Op] = []
    for dimension in range(dimensions - 1, 0, -1):
        name = array.attribute.argument
        # A gradient is indexed as its array is, and an output that is updated as its cotangent.
        names = (name, name.removeprefix("d_"), cotangent(name))
        extents = [Parameter(n, "shape", dimension) for n in names]
        if index.name != "add" or index.operands[0].name != "mul":
            return []
        outer, size = index.operands[0].operands
        if size.name != "parameter" or size.attribute not in extents:
            return []
        axes.insert(0, index.operands[1])
        index = outer
    return [index, *axes]


def _axes_by_strides(array: Op, index: Op, dimensions: int) -> list[Op]:
    axes: list[Op] = []
    for dimension in range(dimensions - 1, -1, -1):
        stride = Parameter(array.attribute.argument, "stride", dimension)
        term = index.operands[1] if dimension and index.name == "add" else index
        if term.name != "mul" or getattr(term.operands[1], "attribute", None) != stride:
            return []
        axes.insert(0, term.operands[0])
        index = index.operands[0]
    return axes


def loads_of(function: Function, name: str) -> list[Op]:
    """Return the loads from an array."""
    loads = (op for op in walk(function.body) if op.name == "load")
    return [op for op in loads if root(op.operands[0]).attribute.argument == name]


def shared_loads(function: Function, name: str, dimensions: int) -> list[Op]:
    """Return the loads from an array that may read the same element in several work-items."""
    loads = loads_of(function, name)
    every = set(map(id, loads))
    return [op for op in loads if not is_own(function, name, dimensions, False, every - {id(op)})]


def is_own(
    function: Function, name: str, dimensions: int, wraps: bool, left: Collection[int] = ()
) -> bool:
    """Return whether no two work-items access the same element of an array.

    Args:
        function: the program.
        name: the array.
        dimensions: of the range of the work-items.
        wraps: whether indices that may be negative count.
        left: loads that do not count, by identity.
    """
    count = arrays_of(function)[name][1]
    sums = {}  # the first value and the step of carried values
    for loop in walk(function.body):
        if loop.name == "loop":
            following = loop.bodies[0][-1].bodies[0][-1].operands
            for carried, first, next_one in zip(
                loop.carried, loop.operands, following, strict=True
            ):
                sums[id(carried)] = first, step_of(carried, next_one)
    accesses = [
        [_line_of(axis, wraps, sums) for axis in axes_of(op.operands[0], count)]
        for op in walk(function.body)
        if op.name in ("load", "store", "atomic")
        and id(op) not in left
        and root(op.operands[0]).attribute.argument == name
    ]
    if not accesses:
        return True
    if not all(accesses):
        return False
    lines = [{each[axis] for each in accesses} for axis in range(count)]
    owned = {line[0] for (line, *others) in lines if line is not None and not others}
    return owned >= set(range(dimensions))


#: The first values and the steps of carried values, by identity.
_Sums = Mapping[int, tuple[Op, Op | None]]


def _line_of(index: Op, wraps: bool, sums: _Sums) -> tuple[Any, ...] | None:
    """Return the dimension whose ids differ in an index, and what else it has.

    Work-items whose ids differ in this dimension have different indices. The result is ``None``
    for another index.
    """
    start = before_wrap(index)
    if _is_turn(index, sums) or (start is not None and _is_turn(start, sums, True)):
        return (0,)
    found = affine(start if start is not None and wraps else index)
    if found is None:
        return None
    terms = {
        tuple(sorted(str(found.values[each].attribute) for each in product)): factor
        for product, factor in found.terms.items()
    }
    products = [each for each in found.terms if any(found.values[v].name == "index" for v in each)]
    factors = [found.values[each] for product in products for each in product]
    ids = [each.attribute for each in factors if each.name == "index"]
    steps = [each.attribute.argument for each in factors if each.name == "parameter"]
    if len(ids) != 1 or ids[0][0] != "global_id" or not all(n.startswith(STEP) for n in steps):
        return None
    return ids[0][1], frozenset(terms.items())


def before_wrap(index: Op) -> Op | None:
    """Return an index as written, if a negative one counts from the end; otherwise ``None``."""
    if index.name != "select" or index.operands[0].name != "lt":
        return None
    (value, zero), start = index.operands[0].operands, index.operands[2]
    return start if value is start and zero.attribute == 0 else None


def _is_turn(index: Op, sums: _Sums, is_positive: bool = False) -> bool:
    """Return whether an index is the id of the work-item, and a multiple of their number.

    Args:
        index: the index.
        sums: the carried values.
        is_positive: whether it must not be negative.
    """
    if index.name == "add":
        pairs = (index.operands, index.operands[::-1])
        return any(
            _is_turn(a, sums, is_positive) and _is_round(b, sums, is_positive) for a, b in pairs
        )
    return is_id(index, 0)


def _is_round(value: Op, sums: _Sums, is_positive: bool) -> bool:
    """Return whether a value is a multiple of the number of work-items."""
    if value.name == "parameter":
        return bool(value.attribute.part == "extent" and value.attribute.dimension == 0)
    if value.name == "constant":
        return bool(value.attribute == 0)
    if value.name == "mul":
        return not is_positive and any(_is_round(each, sums, False) for each in value.operands)
    if value.name == "sub":
        whole, rest = value.operands
        is_rest = rest.name == "mod" and rest.operands[0] is whole
        is_count = whole.name == "parameter" and whole.attribute.argument == COUNT
        return is_rest and is_count and _is_round(rest.operands[1], sums, True)
    first, step = sums.get(id(value), (value, None))
    return step is not None and all(_is_round(each, sums, is_positive) for each in (first, step))


def _first_reads(body: Sequence[Op], unwritten: set[str]) -> set[int]:
    """Return the loads from arrays before they are written, by identity; update the arrays."""
    found: set[int] = set()
    for op in body:
        if op.name == "load" and root(op.operands[0]).attribute.argument in unwritten:
            found.add(id(op))
        elif op.name in ("store", "atomic"):
            unwritten.discard(root(op.operands[0]).attribute.argument)
        elif op.name == "loop":  # What an iteration writes, the next one may read.
            inside = [each for each in walk(op.bodies[0]) if each.name in ("store", "atomic")]
            unwritten -= {root(each.operands[0]).attribute.argument for each in inside}
        paths = [set(unwritten) for _ in op.bodies]
        for inner, path in zip(op.bodies, paths, strict=True):
            found |= _first_reads(inner, path)
        unwritten.intersection_update(*paths)
    return found


def _accesses(body: Sequence[Op], name: str, others: Collection[int]) -> float:
    """Return the most accesses of an array in one execution of a body, without some others."""
    count: float = 0
    for op in body:
        if op.name in ("load", "store"):
            is_own = root(op.operands[0]).attribute.argument == name
            count += is_own and id(op) not in others
        elif op.name == "if":
            count += max(_accesses(inner, name, others) for inner in op.bodies)
        elif op.name == "loop":
            count += float("inf") if _accesses(op.bodies[0], name, others) else 0
    return count


def _are_same(first: Op, second: Op) -> bool:
    if first.name == second.name == "constant":
        return bool(first.attribute == second.attribute)
    return first is second


def _has_effect(op: Op) -> bool:
    return any(inner.name in ("store", "atomic") for inner in walk([op]))


# --- loops ----------------------------------------------------------------------------------------


def _position(ops: Sequence[Op], op: Op) -> int:
    return next(number for number, each in enumerate(ops) if each is op)


def _exported(loop: Op, carried: Op) -> Op:
    """Return a new result of a loop: a value that it carries."""
    leave = loop.bodies[0][-1].bodies[1][-1]
    leave.operands.append(carried)
    result = Op("result", carried.type)
    loop.results.append(result)
    return result


def _counter(loop: Op) -> Op:
    """Return a carried value of a loop that counts its iterations."""
    for carried in loop.carried:
        if "counts" in carried.marks:
            return carried
    number = Op("carried", I64, marks=frozenset({"counts"}))
    following = Op("add", I64, [number, constant(1, I64)])
    body = loop.bodies[0][-1].bodies[0]
    body.insert(-1, following)
    body[-1].operands.append(following)
    loop.carried.append(number)
    loop.operands.append(constant(0, I64))
    return number


def _zero(op: Op) -> Op:
    assert isinstance(op.type, Type)
    return constant(0, op.type)


def _to_cell(ops: list[Op], value: Op, cell: Type) -> Op:
    """Add ops for the bits of a number as an element of the tape."""
    kind = value.type
    assert isinstance(kind, Type)
    if kind.is_float:
        value = Op("bitcast", Type("i", kind.bits), [value])
        ops.append(value)
    if value.type != cell:
        value = Op("convert", cell, [value])
        ops.append(value)
    return value


def _from_cell(ops: list[Op], value: Op, cell: Op) -> None:
    """Add ops that read a number from an element of the tape; the last of them is ``value``."""
    kind = value.type
    assert isinstance(kind, Type)
    bits = Type("i", kind.bits)
    if kind.is_float and cell.type != bits:
        cell = Op("convert", bits, [cell])
        ops.append(cell)
    value.name = "bitcast" if kind.is_float else "convert"
    if kind == cell.type:
        value.name, cell = "add", Op("add", kind, [cell, constant(0, kind)])
        ops.append(cell)
        value.operands = [cell, constant(0, kind)]
    else:
        value.operands = [cell]
    ops.append(value)


# --- after the derivatives ------------------------------------------------------------------------


def plain_updates(function: Function) -> None:
    """Replace the additions to elements that no other work-item accesses: they are not atomic."""
    bodies = [function.body, *(body for op in walk(function.body) for body in op.bodies)]
    for body in bodies:
        body[:] = [each for op in body for each in _plain(op)]


def _plain(op: Op) -> list[Op]:
    if op.name != "atomic" or op.attribute[1] != "work_item":
        return [op]
    address, value = op.operands
    before = Op("load", op.type, [address], place=op.place)
    total = Op("add", op.type, [before, value], place=op.place)
    return [before, total, Op("store", None, [address, total], place=op.place)]


# --- dead code ------------------------------------------------------------------------------------


def live(body: Sequence[Op], wanted: Op | None = None) -> set[int]:
    """Return the ops of a body that its effects depend on, by identity, with control flow.

    Args:
        body: the ops.
        wanted: a loop that is needed with all that it carries.
    """
    owners: dict[int, Op] = {}
    sources: dict[int, list[Op]] = {}
    jumps: dict[int, list[Op]] = {}
    pending = [] if wanted is None else [wanted, *wanted.carried]
    for op in walk(body):
        inside = (each for inner in op.bodies for each in inner)
        owners |= {id(each): op for each in (*op.results, *op.carried, *inside)}
        values, given = op.carried, op.operands
        if op.name in ("leave", "repeat"):
            jumps.setdefault(id(op.attribute), []).append(op)
            values = op.attribute.results if op.name == "leave" else op.attribute.carried
        elif OPS[op.name].has_effect and not op.bodies:
            pending.append(op)
        for value, source in zip(values, given, strict=False):
            sources.setdefault(id(value), []).append(source)
    found: set[int] = set()
    while pending:
        op = pending.pop()
        if id(op) in found:
            continue
        found.add(id(op))
        pending += [owners[id(op)]] if id(op) in owners else []
        pending += sources.get(id(op), ())
        if op.name == "loop":
            pending += jumps[id(op)]
        elif op.name not in ("leave", "repeat"):
            pending += op.operands
    return found


def remove_dead(function: Function) -> None:
    """Remove all that no effect depends on, control flow included."""
    found = live(function.body)

    def clean(body: list[Op], owner: Op | None) -> None:
        new = []
        for op in body:
            if op.name in ("leave", "repeat"):
                target = op.attribute
                values = target.results if op.name == "leave" else target.carried
                kept = [o for o, v in zip(op.operands, values, strict=True) if id(v) in found]
                op.operands = kept
            elif id(op) not in found:
                continue
            for inner in op.bodies:
                clean(inner, op)
            new.append(op)
        body[:] = new

    clean(function.body, None)
    for op in walk(function.body):
        if op.name == "loop":
            pairs = zip(op.operands, op.carried, strict=True)
            op.operands = [first for first, carried in pairs if id(carried) in found]
            op.carried = [carried for carried in op.carried if id(carried) in found]
        op.results = [result for result in op.results if id(result) in found]
