"""Runs of consecutive elements, which kernels reduce and scan as vectors.

``kernels.combine`` defines the functions in plain Python, one element after the other. A vector is
scanned in registers, in logarithmically many steps, and added to the total before it: one dependent
operation per vector, where a loop over elements has one per element. (W. D. Hillis and G. L.
Steele, "Data Parallel Algorithms", 1986.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray._ir.types import I64, U64, Type
from dparray._language import prelude
from dparray._language.builtins.registry import Native, handles
from dparray._language.errors import Refusal
from dparray._language.values import NONE, Array, Constant, Number, described
from dparray.kernels.combine import OPERATIONS, combine_runs, identity, reduce_run, scan_run

#: The size of a vector in bytes, and the maximum number of its elements.
_VECTOR_BYTES = 64
_MAX_LANES = 16
_WORDS = {"add": "add", "multiply": "mul", "minimum": "min", "maximum": "max"}


class _Run:
    """The operations on vectors of one type.

    Attributes:
        lanes: the number of elements of a vector.
    """

    def __init__(self, function: str, operation: Any, kind: Type, arrays: Any, node: Any) -> None:
        name = operation.value if isinstance(operation, Constant) else None
        if name not in OPERATIONS:
            raise Refusal(
                f"{function}: the operation must be one of {', '.join(OPERATIONS)}, as a constant; "
                f"got {described(operation)}",
                node,
            )
        for array in arrays:
            if not isinstance(array, Array) or len(array.shape) != 1:
                raise Refusal(
                    f"{function}: requires arrays of one dimension; got {described(array)}", node
                )
        if kind.kind == "b":
            raise Refusal(f"{function}: combines integers or floats; got bool", node)
        self.name = str(name)
        self.kind = kind
        self.lanes = min(_MAX_LANES, _VECTOR_BYTES * 8 // kind.bits)
        self.vector = kind._replace(lanes=self.lanes)

    def identity(self) -> Any:
        """Return the identity; for sums of floats -0, as adding 0 would change -0."""
        value = identity(self.name, self.kind.dtype.type)
        return -value if self.name == "add" and self.kind.is_float else value

    @property
    def loses_nan(self) -> bool:
        """Whether a minimum or maximum may lose a NaN of the second operand."""
        return self.name in ("minimum", "maximum") and self.kind.is_float

    def combined(self, front: Any, node: Any, a: Any, b: Any) -> Number:
        """Combine two values or vectors; a minimum is NaN where ``a`` is."""
        kind = self.vector if front.type_of(b).lanes > 1 else self.kind
        first, second = front.to(a, kind).op, front.to(b, kind).op
        word = _WORDS[self.name]
        operands = (second, first) if word in ("min", "max") else (first, second)
        return Number(front.op(word, kind, *operands))

    def combined_nan(self, front: Any, node: Any, a: Any, b: Any) -> Number:
        """Combine two values or vectors; a minimum is NaN where ``b`` is, too."""
        result = self.combined(front, node, a, b)
        if not self.loses_nan:
            return result
        kind = result.type
        second = front.to(b, kind).op
        is_nan = front.op("ne", kind.flag, second, second)
        return Number(front.op("select", kind, is_nan, second, result.op))

    def load(self, front: Any, node: Any, array: Array, start: Any) -> Number:
        """Load a vector, converted to the type in which it is combined."""
        address = front.address_of(array, [front.to(start, I64)])
        stored = array.element._replace(lanes=self.lanes)
        if array.strides is None:
            vector = front.op("load", stored, address, attribute=array.element.size)
        else:
            places = front.along(array, address, self.lanes)
            parts = (front.op("load", array.element, place) for place in places)
            vector = front.op("pack", stored, *parts)
        number: Number = front.to(Number(vector), self.vector)
        return number

    def store(self, front: Any, node: Any, array: Array, start: Any, vector: Number) -> Constant:
        address = front.address_of(array, [front.to(start, I64)])
        if array.strides is None:
            front.op("store", None, address, vector.op, attribute=array.element.size)
            return NONE
        for lane, place in enumerate(front.along(array, address, self.lanes)):
            front.op("store", None, place, front.lane(vector, lane).op)
        return NONE

    def fold(self, front: Any, node: Any, vector: Number) -> Number:
        """Combine the elements of a vector, neighbors first."""
        lanes = [front.lane(vector, lane) for lane in range(self.lanes)]
        while len(lanes) > 1:
            pairs = zip(lanes[::2], lanes[1::2], strict=True)
            lanes = [self.combined_nan(front, node, a, b) for a, b in pairs]
        return lanes[0]

    def scan(self, front: Any, node: Any, vector: Number) -> Number:
        """Return the inclusive scan of a vector."""
        neutral = front.to(Constant(self.identity()), self.kind)
        distance = 1
        while distance < self.lanes:
            parts = [
                neutral if lane < distance else front.lane(vector, lane - distance)
                for lane in range(self.lanes)
            ]
            before = Number(front.op("pack", self.vector, *(part.op for part in parts)))
            vector = self.combined(front, node, before, vector)
            distance *= 2
        return vector

    def spread(self, front: Any, node: Any, value: Any) -> Number:
        number: Number = front.to(front.to(value, self.kind), self.vector)
        return number

    def last(self, front: Any, node: Any, vector: Number) -> Number:
        number: Number = front.lane(vector, self.lanes - 1)
        return number

    def shifted(self, front: Any, node: Any, vector: Number, before: Any) -> Number:
        """Shift a vector by one element; the first is ``before``."""
        parts = [front.to(before, self.kind)]
        parts += [front.lane(vector, lane) for lane in range(self.lanes - 1)]
        return Number(front.op("pack", self.vector, *(part.op for part in parts)))

    def functions(self, *names: str) -> list[Constant]:
        """Return operations as functions of the prelude's parameters."""
        return [Constant(Native(getattr(self, name))) for name in names]


@handles(combine_runs)
def _combine_runs(
    front: Any,
    node: Any,
    operation: Any,
    a: Any,
    a_start: Any,
    b: Any,
    b_start: Any,
    out: Any,
    start: Any,
    count: Any,
) -> Any:
    run = _Run("combine_runs", operation, out.element, (a, b, out), node)
    starts = [front.to(each, U64) for each in (a_start, b_start, start, count)]
    arguments = [a, b, out, *starts, Constant(np.uint64(run.lanes))]
    functions = run.functions("load", "store", "combined_nan")
    return front.call(Constant(prelude.combine_runs), arguments + functions, {}, node)


@handles(reduce_run)
def _reduce_run(
    front: Any, node: Any, operation: Any, x: Any, start: Any, count: Any, initial: Any
) -> Any:
    kind = front.type_of(initial)
    run = _Run("reduce_run", operation, kind, (x,), node)
    nothing = Number(front.constant(run.identity(), run.vector))
    arguments = [x, front.to(start, U64), front.to(count, U64), front.to(initial, kind), nothing]
    arguments.append(Constant(np.uint64(run.lanes)))
    functions = run.functions("load", "combined_nan", "fold")
    return front.call(Constant(prelude.reduce_run), arguments + functions, {}, node)


@handles(scan_run)
def _scan_run(
    front: Any,
    node: Any,
    operation: Any,
    x: Any,
    out: Any,
    start: Any,
    count: Any,
    before: Any,
    total: Any,
    inclusive: Any,
) -> Any:
    kind = front.type_of(before)
    run = _Run("scan_run", operation, kind, (x, out), node)
    if out.element != kind:
        raise Refusal(f"scan_run: the results are {kind.name} and out has {out.element.name}", node)
    has_nan: Any = Constant(False)
    if run.loses_nan:
        number = front.to(total, kind).op
        has_nan = Number(front.op("ne", kind.flag, number, number))
    arguments = [x, out, front.to(start, U64), front.to(count, U64), front.to(before, kind)]
    arguments += [has_nan, inclusive, Constant(np.uint64(run.lanes))]
    names = ("load", "store", "combined", "combined_nan", "scan", "spread", "last", "shifted")
    return front.call(Constant(prelude.scan_run), arguments + run.functions(*names), {}, node)
