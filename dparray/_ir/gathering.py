"""Gradients of stencils as gathers: a work-item for each element of the gradient.

If all work-items read an array at constant distances from their own position, those that read an
element are known. A program with a work-item for each element computes each of them again as far as
its contribution needs, and stores the sum, without atomic operations.
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
    gradient,
    is_id,
    remove_dead,
    root,
)
from dparray._ir.instructions import Function, Op, Parameter, constant
from dparray._ir.structured import structured
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


def gathered(
    function: Function, dimensions: int, name: str, outputs: Collection[str], rules: Rules
) -> Function:
    """Return a program that computes the gradient by one array, over the range of its elements.

    Its arguments are those of the adjoint without the tape, then the gradient, and the sizes of
    the range of the original.

    Raises:
        NotGathered: the work-items that read an element are not known.
        NoDerivative: the program has none.
    """
    structured(function)
    return _Gather(function, dimensions, name, outputs, rules).gather()


class _Gather(Writer):
    """Writes one gather."""

    def __init__(
        self,
        function: Function,
        dimensions: int,
        name: str,
        outputs: Collection[str],
        rules: Rules,
    ) -> None:
        super().__init__(function, dimensions, [name], outputs, rules)
        self.name, self.dimensions = name, dimensions
        accessed = {
            root(op.operands[0]).attribute.argument: op.name
            for op, _ in _with_bounds(function.body, {})
            if op.name in ("store", "atomic")
        }
        for output in outputs:
            if not (self.is_once[output] or accessed.get(output) == "atomic"):
                raise NotGathered
        self.axis_of: dict[int, int] = {}
        self.readers = self.found_readers()
        pointer, _ = arrays_of(function)[name]
        element = pointer.type.element  # type: ignore[union-attr]
        self.kind = F32 if element.bits == 16 else element
        # The element whose gradient is computed; loads that read it add to its cotangent.
        self.element = Op("carried", self.kind)
        self.varied.add(id(self.element))
        self.selected: set[int] = set()

    def found_readers(self) -> list[_Reader]:
        """Return the readers of an element."""
        found: dict[tuple[int, ...], _Reader] = {}
        count = arrays_of(self.function)[self.name][1]
        for op, bounds in _with_bounds(self.function.body, {}):
            if op.name != "load" or root(op.operands[0]).attribute.argument != self.name:
                continue
            axes = [_distance(each) for each in axes_of(op.operands[0], count)]
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

    def gather(self) -> Function:
        made = self.result
        made.name = f"gradient_of_{self.function.name}"
        self.same_parameters(made.parameters)
        _, count = arrays_of(self.function)[self.name]
        parts = array_parameters(gradient(self.name), self.kind, count)
        names = [f"size{dimension}" for dimension in range(self.dimensions)]
        sizes = [Op("parameter", I64, attribute=Parameter(name)) for name in names]
        made.parameters += [*parts, *sizes]
        extents = [each for each in made.parameters if each.attribute.part == "extent"]
        for parameter in self.function.parameters:
            if parameter.attribute.part == "extent":
                self.scope.values[id(parameter)] = sizes[parameter.attribute.dimension]
        own = [self.op("index", I64, attribute=("global_id", axis)) for axis in range(count)]
        inside = [self.op("lt", BOOL, at, extent) for at, extent in zip(own, extents, strict=True)]
        outside, self.scope = self.scope, type(self.scope)(self.scope)
        shape = [each for each in parts if each.attribute.part == "shape"]
        total: Op | None = None
        for reader in self.readers:
            part = self.contribution(reader, own, shape, sizes)
            total = part if total is None else self.op("add", self.kind, total, part)
        assert total is not None
        number = own[0]
        for at, size in zip(own[1:], shape[1:], strict=True):
            number = self.op("add", I64, self.op("mul", I64, number, size), at)
        self.op("store", None, self.op("offset", parts[2].type, parts[2], number), total)
        body, self.scope = self.scope.ops, outside
        self.branch(inside, body, [], [])
        made.body = [*self.entry, *self.scope.ops, Op("return")]
        remove_dead(made)
        return made

    def contribution(
        self, reader: _Reader, own: Sequence[Op], shape: Sequence[Op], sizes: Sequence[Op]
    ) -> Op:
        """Return what a work-item that reads the element contributes to its gradient."""
        self.ids = []
        tests = []
        for dimension, size in enumerate(sizes):
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
        body = self.function.body[:-1]
        for op in body:
            self.forward(op)
        for op in reversed(body):
            self.backward(op)
        part = self.taken(self.element) or constant(0, self.kind)
        inside, self.scope = self.scope.ops, outside
        (result,) = self.branch(tests, inside, [part], [constant(0, self.kind)])
        return result

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

    def scatter(self, op: Op, g: Op) -> None:
        """Add the cotangent of an element, if it is the one whose gradient is computed."""
        if id(op) in self.selected:
            self.add(self.element, g if g.type == self.kind else self.op("convert", self.kind, g))


def _distance(index: Op) -> tuple[int, int, bool] | None:
    """Return the dimension of an id, its distance to an index, and whether that may wrap."""
    if index.name == "select" and index.operands[0].name == "lt":
        test, _, start = index.operands
        found = _distance(start)
        is_wrap = test.operands[0] is start and test.operands[1].attribute == 0
        return (*found[:2], True) if found and is_wrap else None
    if index.name in ("add", "sub") and index.operands[1].name == "constant":
        found = _distance(index.operands[0])
        step = index.operands[1].attribute
        if found is None or found[2]:
            return None
        return found[0], found[1] + (step if index.name == "add" else -step), False
    if index.name == "add" and index.operands[0].name == "constant":
        found = _distance(index.operands[1])
        return None if found is None else (found[0], found[1] + index.operands[0].attribute, False)
    for dimension in range(3):
        if is_id(index, dimension):
            return dimension, 0, False
    return None


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
