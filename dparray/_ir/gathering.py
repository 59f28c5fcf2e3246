"""Gradients as gathers: a work-item for each element of the gradient, or of one of its axes.

If all work-items read an array at constant distances from their own position, those that read an
element are known. If they all read it in a loop, an element belongs to an iteration of all of them.
A program with a work-item for each element computes its readers again as far as their contributions
need, and adds these up without atomic operations.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from dparray._ir.adjoint import (
    NotGathered,
    Rules,
    Writer,
    array_parameters,
    arrays_of,
    axes_of,
    before_wrap,
    bring_into_form,
    gradient,
    is_id,
    is_own,
    live,
    loads_of,
    remove_dead,
    shared_loads,
)
from dparray._ir.facts import affine
from dparray._ir.instructions import Function, Op, Parameter, constant, root, walk
from dparray._ir.structured import counting
from dparray._ir.types import BOOL, F32, I64

#: The most work-items that are computed again for an element.
MAX_READERS = 32


class _Reader(NamedTuple):
    """The work-items that read an element at a distance from themselves.

    Attributes:
        distance: the index of the element less the id, by axis.
        wraps: the axes whose index is negative, and counts from the end.
        loads: the loads that read it, by identity.
    """

    distance: tuple[int, ...]
    wraps: tuple[bool, ...]
    loads: set[int]


class Gathered(NamedTuple):
    """A program that computes the gradient by one array.

    Attributes:
        function: the program. Its arguments are those of the adjoint without the tape, then the
            gradient, which is 0 before, and the sizes of the range of the original.
        axis: the axis along which it has a work-item for each element, or ``None`` for all axes.
        is_partly: whether the adjoint adds what the other loads contribute.
    """

    function: Function
    axis: int | None
    is_partly: bool = False


def gathered(
    function: Function,
    dimensions: int,
    name: str,
    outputs: Collection[str],
    rules: Rules,
    updated: Collection[str] = (),
) -> Gathered:
    """Return a program that computes the gradient by one array; see :func:`adjoint`.

    Raises:
        NotGathered: the work-items that read an element are not known.
        NoDerivative: the program has none.
    """
    bring_into_form(function)
    given = function, dimensions, name, outputs, rules, updated
    try:
        return _Stencil(*given).gathered()
    except NotGathered:
        shared = set(map(id, shared_loads(function, name, dimensions)))
        if not is_own(function, name, dimensions, False, shared):
            raise
        own = [op for op in loads_of(function, name) if id(op) not in shared]
        return _Exchanged(*given, own).gathered()


class _Gather(Writer):
    """Writes a program with work-items for the elements of one array."""

    def __init__(
        self,
        function: Function,
        dimensions: int,
        name: str,
        outputs: Collection[str],
        rules: Rules,
        updated: Collection[str],
        left: Collection[Op] = (),
    ) -> None:
        super().__init__(function, dimensions, [name], outputs, rules, updated, left=left)
        self.name, self.dimensions = name, dimensions
        accessed = {
            root(op.operands[0]).attribute.argument: op.name
            for op in walk(function.body)
            if op.name in ("store", "atomic")
        }
        for output in outputs:
            if not (self.is_once[output] or accessed.get(output) == "atomic"):
                raise NotGathered
        self.loads = [op for op in loads_of(function, name) if id(op) not in self.left]
        pointer, self.count = arrays_of(function)[name]
        element = pointer.type.element  # type: ignore[union-attr]
        self.kind = F32 if element.bits == 16 else element

    def begin(self, axes: int) -> list[Op]:
        """Add the parameters; return the ids of the work-item, which is inside of its range."""
        made = self.result
        made.name = f"gradient_of_{self.function.name}"
        names = [f"size{dimension}" for dimension in range(self.dimensions)]
        self.sizes = [Op("parameter", I64, attribute=Parameter(name)) for name in names]
        others: list[Op] = []
        self.same_parameters(others)
        item = others[0].attribute.argument
        for parameter in self.function.parameters[: self.dimensions]:
            self.scope.values[id(parameter)] = self.sizes[parameter.attribute.dimension]
        extents = [
            Op("parameter", I64, attribute=Parameter(item, "extent", a)) for a in range(axes)
        ]
        self.parts = array_parameters(gradient(self.name), self.kind, self.count)
        self.gradients[self.name] = self.parts[2]
        made.parameters = [*extents, *others[self.dimensions :], *self.parts, *self.sizes]
        own = [self.op("index", I64, attribute=("global_id", axis)) for axis in range(axes)]
        pairs = zip(own, extents, strict=True)
        # Back ends know this comparison.
        self.beyond = [self.op("ge", BOOL, *pair) for pair in pairs]
        self.inside: list[Op] = []
        self.scope = type(self.scope)(self.scope)
        return own

    def end(self) -> Function:
        """Return the program."""
        body = self.scope.ops
        assert self.scope.parent is not None
        self.scope = self.scope.parent
        if self.inside:
            self.branch(self.inside, body, [], [])
            body = [self.scope.ops.pop()]
        for test in reversed(self.beyond):
            choice = Op("if", None, [test])
            leave = Op("leave", None, [], choice)
            choice.bodies = [[Op("leave", None, [], choice)], [*body, leave]]
            body = [choice]
        self.scope.ops += body
        self.result.body = [*self.entry, *self.scope.ops, Op("return")]
        remove_dead(self.result)
        return self.result

    def forward(self, op: Op) -> None:
        """Compute the value of an op again; the work-item is in the range of the original."""
        if op.name == "ge" and op.operands[0].name == "index":
            _, dimension = op.operands[0].attribute
            if self.value(op.operands[1]) is self.sizes[dimension]:
                self.scope.values[id(op)] = constant(False, BOOL)
                return
        super().forward(op)

    def adjoint(self) -> None:
        """Compute a work-item of the original and its adjoint."""
        body = self.function.body[:-1]
        for op in body:
            self.forward(op)
        for op in reversed(body):
            self.backward(op)

    def branch(
        self, tests: Sequence[Op], body: list[Op], values: Sequence[Op], others: Sequence[Op]
    ) -> list[Op]:
        """Add a body that is executed if all tests hold; return its values, or the others."""
        test = tests[0]
        for each in tests[1:]:
            test = self.op("and", BOOL, test, each)
        choice = self.op("if", None, test)
        choice.results = [Op("result", each.type) for each in values]
        choice.bodies = [
            [*body, Op("leave", None, values, choice)],
            [Op("leave", None, others, choice)],
        ]
        return choice.results


class _Exchanged(_Gather):
    """Exchanges the loop over the elements that all work-items read with the work-items.

    If all work-items read ``q[j]`` in a loop over ``j``, a work-item for each ``j`` computes this
    iteration of all work-items. The iteration must not need the others, as in a sum.

    Attributes:
        loop: the loop.
        axis: the axis of the array that the loop counts.
    """

    def gathered(self) -> Gathered:
        owners = {id(each): op for op in walk(self.function.body) for each in op.carried}
        choices: list[set[tuple[int, int]]] = []
        for op in self.loads:
            axes = axes_of(op.operands[0], self.count)
            choices.append({(axis, id(at)) for axis, at in enumerate(axes) if id(at) in owners})
        common = set.intersection(*choices) if choices else set()
        found = None
        for axis, counter in sorted(common):
            self.loop, self.axis = owners[counter], axis
            found = counting(self.loop)
            if found is not None and found[2] == 1 and id(found[3]) == counter:
                break
        else:
            raise NotGathered
        self.bounds = found[:2]
        self.exchanged: list[Op] = []
        self.own[self.name] = True
        #: The sums of the cotangents of elements with constant indices of the other axes.
        self.elements: dict[tuple[int, ...], Op] = {}
        (self.at,) = self.begin(1)
        # The bounds of the loop, if all work-items have the same.
        self.is_tested = all(each.name in ("constant", "parameter") for each in self.bounds)
        if self.is_tested:
            outside, self.scope = self.scope, self.scope.parent or self.scope
            self.inside += self.tests()
            self.scope = outside
        self.over(0)
        for constants, element in self.elements.items():
            self.store_sum(constants, element)
        made = self.end()
        loops = [op for op in walk(made.body) if op.name == "loop"]
        inside = {id(op) for op in walk(self.exchanged)}
        if sum(id(loop) not in inside for loop in loops) > self.dimensions:
            raise NotGathered  # Each element would take a whole loop.
        return Gathered(made, self.axis, bool(self.left))

    def over(self, dimension: int) -> None:
        """Compute all work-items of the original, from a dimension on."""
        if dimension == self.dimensions:
            self.adjoint()
            return
        left = Op("carried", I64)
        outside, self.scope = self.scope, type(self.scope)(self.scope)
        at = self.op("add", I64, left, constant(-1, I64))
        self.ids.append(at)
        self.over(dimension + 1)
        following = [at]
        inside, self.scope = self.scope, outside
        loop = Op("loop", None, [self.sizes[dimension]])
        loop.carried = [left]
        elements = []
        for element in self.elements.values():
            _, g = inside.cotangents.get(id(element), (None, None))
            if g is not None:
                loop.operands.append(constant(0, self.kind))
                loop.carried.append(Op("carried", self.kind))
                following.append(Op("add", self.kind, [loop.carried[-1], g]))
                elements.append(element)
        loop.results = [Op("result", each.type) for each in loop.carried[1:]]
        goes_on = Op("gt", BOOL, [left, constant(0, I64)])
        choice = Op("if", None, [goes_on])
        again = Op("repeat", None, following, loop)
        choice.bodies = [
            [*inside.ops, *following[1:], again],
            [Op("leave", None, loop.carried[1:], loop)],
        ]
        loop.bodies = [[goes_on, choice]]
        self.scope.ops.append(loop)
        for element, total in zip(elements, loop.results, strict=True):
            self.add(element, total)

    def tests(self) -> list[Op]:
        """Return whether the work-item is an iteration of the loop."""
        first, stop = (self.value(each) for each in self.bounds)
        made = []
        if first.name != "constant" or first.attribute > 0:
            made.append(self.op("ge", BOOL, self.at, first))
        # The range of the work-items has the length of the axis.
        if stop.attribute != Parameter(self.name, "shape", self.axis):
            made.append(self.op("lt", BOOL, self.at, stop))
        return made

    def scatter(self, op: Op, g: Op) -> None:
        """Add the cotangent of an element to a sum, or to memory."""
        axes = axes_of(op.operands[0], self.count)
        others = [each for axis, each in enumerate(axes) if axis != self.axis]
        if any(each.name != "constant" for each in others) or g.type.lanes > 1:  # type: ignore[union-attr]
            super().scatter(op, g)
            return
        key = tuple([each.attribute for each in others])
        element = self.elements.setdefault(key, Op("carried", self.kind))
        self.varied.add(id(element))
        self.add(element, g if g.type == self.kind else self.op("convert", self.kind, g))

    def store_sum(self, constants: tuple[int, ...], element: Op) -> None:
        """Store the sum of an element's cotangents, if the array has this element."""
        shape = [each for each in self.parts if each.attribute.part == "shape"]
        indices = [constant(each, I64) for each in constants]
        indices.insert(self.axis, self.at)
        tests = [self.op("lt", BOOL, *pair) for pair in zip(indices, shape, strict=True)]
        outside, self.scope = self.scope, type(self.scope)(self.scope)
        number = indices[0]
        for index, size in zip(indices[1:], shape[1:], strict=True):
            number = self.op("add", I64, self.op("mul", I64, number, size), index)
        address = self.op("offset", self.parts[2].type, self.parts[2], number)
        before = self.op("load", self.kind, address)
        total = outside.cotangents.pop(id(element))[1]
        self.op("store", None, address, self.op("add", self.kind, before, total))
        body, self.scope = self.scope.ops, outside
        self.branch(tests, body, [], [])

    def backward_loop(self, op: Op) -> None:
        """Run a loop backward; of the exchanged one, the iteration of the work-item alone."""
        if op is not self.loop:
            super().backward_loop(op)
            return
        gs: dict[int, Op] = {}
        *head, decision = op.bodies[0]
        *body, again = decision.bodies[0]
        for result, operand in zip(op.results, decision.bodies[1][-1].operands, strict=True):
            g = self.taken(result)
            if g is not None and (id(operand) in gs or not any(operand is c for c in op.carried)):
                raise NotGathered
            if g is not None:
                gs[id(operand)] = g
        first = self.bounds[0]
        tests = [] if self.is_tested else self.tests()
        outside, self.scope = self.scope, type(self.scope)(self.scope)
        iteration = self.op("sub", I64, self.at, self.value(first))
        kept = self.carried_values(op, again, iteration)
        for inner in (*head, *body):
            self.forward(inner)
        for carried, operand in zip(op.carried, again.operands, strict=True):
            self.add(operand, gs.get(id(carried)))
        for inner in reversed([*head, *body]):
            self.backward(inner)
        inside, self.scope = self.scope, outside
        for carried in op.carried:
            _, g = inside.cotangents.get(id(carried), (None, None))
            if g is not gs.get(id(carried)):
                raise NotGathered  # The cotangent differs between iterations.
        used = live([*inside.ops, Op("print", None, [g for _, g in inside.cotangents.values()])])
        if any(id(value) in used for _, value in kept):
            raise NotGathered  # The iteration needs values of those before.
        elements = [each for each in self.elements.values() if id(each) in inside.cotangents]
        sums = [inside.cotangents[id(each)][1] for each in elements]
        zeros = [constant(0, self.kind)] * len(sums)
        if tests:
            results = self.branch(tests, inside.ops, sums, zeros)
            self.exchanged.append(self.scope.ops[-1])
        else:
            results = sums
            self.scope.ops += inside.ops
            self.exchanged += inside.ops
        for element, result in zip(elements, results, strict=True):
            self.add(element, result)


class _Stencil(_Gather):
    """Computes the readers of an element, which are at constant distances."""

    def gathered(self) -> Gathered:
        self.axis_of: dict[int, int] = {}
        self.readers = self.found_readers()
        # The element whose gradient is computed; loads that read it add to its cotangent.
        self.element = Op("carried", self.kind)
        self.varied.add(id(self.element))
        own = self.begin(self.count)
        shape = [each for each in self.parts if each.attribute.part == "shape"]
        total: Op | None = None
        for reader in self.readers:
            part = self.contribution(reader, own, shape)
            total = part if total is None else self.op("add", self.kind, total, part)
        assert total is not None
        number = own[0]
        for at, size in zip(own[1:], shape[1:], strict=True):
            number = self.op("add", I64, self.op("mul", I64, number, size), at)
        address = self.op("offset", self.parts[2].type, self.parts[2], number)
        self.op("store", None, address, total)
        return Gathered(self.end(), None)

    def found_readers(self) -> list[_Reader]:
        """Return the readers of an element."""
        found: dict[tuple[int, ...], _Reader] = {}
        for op, bounds in _with_bounds(self.function.body, {}):
            if op.name != "load" or root(op.operands[0]).attribute.argument != self.name:
                continue
            axes = [_distance(each) for each in axes_of(op.operands[0], self.count)]
            if len(axes) != self.dimensions or op.type.lanes > 1:  # type: ignore[union-attr]
                raise NotGathered
            distance, wraps = [], []
            for axis, known in enumerate(axes):
                if known is None or self.axis_of.setdefault(known[0], axis) != axis:
                    raise NotGathered
                dimension, moved, may_wrap = known
                distance.append(moved)
                wraps.append(may_wrap and bounds.get(dimension, 0) + moved < 0)
            reader = found.get(tuple(distance))
            if reader is None:
                reader = _Reader(tuple(distance), tuple(wraps), set())
            joined = tuple([a or b for a, b in zip(reader.wraps, wraps, strict=True)])
            found[tuple(distance)] = reader._replace(wraps=joined)
            reader.loads.add(id(op))
        readers = []
        for reader in found.values():
            ways = [(False, True) if may_wrap else (False,) for may_wrap in reader.wraps]
            readers += [reader._replace(wraps=chosen) for chosen in itertools.product(*ways)]
        is_known = len(self.axis_of) == self.dimensions and 1 < len(readers) <= MAX_READERS
        if not is_known:
            raise NotGathered
        return readers

    def contribution(self, reader: _Reader, own: Sequence[Op], shape: Sequence[Op]) -> Op:
        """Return what a work-item that reads the element contributes to its gradient."""
        self.ids = []
        tests = []
        for dimension, size in enumerate(self.sizes):
            axis = self.axis_of[dimension]
            item = own[axis]
            if reader.distance[axis]:
                item = self.op("sub", I64, item, constant(reader.distance[axis], I64))
            if reader.wraps[axis]:
                item = self.op("sub", I64, item, shape[axis])
            if item is not own[axis]:
                tests.append(self.op("ge", BOOL, item, constant(0, I64)))
            tests.append(self.op("lt", BOOL, item, size))
            self.ids.append(item)
        self.selected = reader.loads
        outside, self.scope = self.scope, type(self.scope)(self.scope)
        self.adjoint()
        part = self.taken(self.element) or constant(0, self.kind)
        inside, self.scope = self.scope.ops, outside
        (result,) = self.branch(tests, inside, [part], [constant(0, self.kind)])
        return result

    def scatter(self, op: Op, g: Op) -> None:
        """Add the cotangent of an element, if it is the one whose gradient is computed."""
        if id(op) in self.selected:
            self.add(self.element, g if g.type == self.kind else self.op("convert", self.kind, g))


def _distance(index: Op) -> tuple[int, int, bool] | None:
    """Return the dimension of an id, its distance to an index, and whether that may wrap."""
    start = before_wrap(index)
    found = affine(index if start is None else start)
    products = [] if found is None else [each for each in found.terms if each]
    if found is None or [found.terms[each] for each in products] != [1] or len(products[0]) > 1:
        return None
    variable = found.values[products[0][0]]
    if variable.name != "index" or variable.attribute[0] != "global_id":
        return None
    return variable.attribute[1], found.terms.get((), 0), start is not None


def _with_bounds(body: Sequence[Op], bounds: dict[int, int]) -> Iterator[tuple[Op, dict[int, int]]]:
    """Yield all ops, with the least id in each dimension that the conditions around allow."""
    for op in body:
        yield op, bounds
        for side, inner in enumerate(op.bodies):
            known = dict(bounds)
            if op.name == "if":
                for dimension, least in _least(op.operands[0], side == 0):
                    known[dimension] = max(known.get(dimension, 0), least)
            yield from _with_bounds(inner, known)


#: The orders of comparisons whose operands are exchanged, and of those that do not hold.
_TURNED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def _least(test: Op, holds: bool) -> Iterator[tuple[int, int]]:
    """Yield the least ids that a condition allows, by dimension."""
    if test.name == "not":
        yield from _least(test.operands[0], not holds)
    elif holds and (test.name == "and" or _is_conjunction(test)):
        for each in test.operands[:2]:
            yield from _least(each, True)
    elif test.name in _TURNED:
        first, second = test.operands
        order = test.name if holds else _OPPOSITE[test.name]
        if first.name == "constant":
            first, second, order = second, first, _TURNED[order]
        for dimension in range(3):
            if second.name == "constant" and is_id(first, dimension):
                limit = second.attribute
                if order in ("gt", "ge", "eq"):
                    yield dimension, limit + (order == "gt")
                elif order == "ne" and limit == 0:
                    yield dimension, 1


def _is_conjunction(test: Op) -> bool:
    last = test.operands[-1]
    return test.name == "select" and last.name == "constant" and not last.attribute
