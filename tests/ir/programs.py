"""Programs for the tests of the IR, built op by op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dparray._ir.instructions import Function, Op, Parameter, constant
from dparray._ir.types import BOOL, F32, GLOBAL, I64, LOCAL, PRIVATE, Pointer, Type


class Builder:
    """Adds ops to a kernel. ``with`` is not needed: bodies are functions that add ops."""

    def __init__(self, name: str = "kernel") -> None:
        self.function = Function(name)
        self.body = self.function.body

    def parameter(self, name: str, kind: Any, part: str = "", dimension: int = 0) -> Op:
        part = part or ("pointer" if isinstance(kind, Pointer) else "value")
        op = Op("parameter", kind, attribute=Parameter(name, part, dimension))
        self.function.parameters.append(op)
        return op

    def op(self, name: str, kind: Any, *operands: Any, attribute: Any = None) -> Op:
        op = Op(name, kind, operands, attribute)
        self.body.append(op)
        return op

    def index(self, name: str = "global_id", dimension: int = 0) -> Op:
        return self.op("index", I64, attribute=(name, dimension))

    def place(self, pointer: Op, index: Op) -> Op:
        return self.op("offset", pointer.type, pointer, index)

    def load(self, pointer: Op, index: Op) -> Op:
        assert isinstance(pointer.type, Pointer)
        return self.op("load", pointer.type.element, self.place(pointer, index))

    def store(self, pointer: Op, index: Op, value: Op) -> Op:
        return self.op("store", None, self.place(pointer, index), value)

    def inside(self, control: Op, fill: Callable[[], Any]) -> None:
        """Add a body to control flow."""
        outside, self.body = self.body, []
        fill()
        control.bodies.append(self.body)
        self.body = outside

    def leave(self, control: Op, *values: Op) -> Op:
        return self.op("leave", None, *values, attribute=control)

    def branch(self, test: Op, then: Callable[[Op], Any], other: Callable[[Op], Any]) -> Op:
        """Add an ``if`` whose bodies end as the functions say."""
        control = Op("if", operands=[test])
        self.inside(control, lambda: then(control))
        self.inside(control, lambda: other(control))
        self.body.append(control)
        return control

    def result(self, control: Op, kind: Any) -> Op:
        control.results.append(Op("result", kind))
        return control.results[-1]

    def counted(
        self, first: Op, stop: Op, body: Callable[[Op, Sequence[Op]], Any], *start: Op
    ) -> Op:
        """Add a loop over a range; ``body`` returns the next values of what it carries."""
        loop = Op("loop", operands=[first, *start])
        loop.carried = [Op("carried", each.type) for each in loop.operands]
        at = loop.carried[0]
        loop.results = [Op("result", each.type) for each in start]

        def iteration() -> None:
            test = self.op("lt", BOOL, at, stop)

            def again(control: Op) -> None:
                new = body(at, loop.carried[1:])
                self.op(
                    "repeat",
                    None,
                    self.op("add", at.type, at, whole(1)),
                    *new,
                    attribute=loop,
                )

            self.branch(test, again, lambda control: self.leave(loop, *loop.carried[1:]))

        self.inside(loop, iteration)
        self.body.append(loop)
        return loop

    def end(self) -> Function:
        self.op("return", None)
        return self.function


def whole(value: int) -> Op:
    return constant(value, I64)


def single(value: float) -> Op:
    return constant(value, F32)


def array(kind: Type = F32, space: int = GLOBAL) -> Pointer:
    return Pointer(kind, space)


LOCAL_FLOATS, PRIVATE_FLOATS = array(space=LOCAL), array(space=PRIVATE)


def row_sums() -> Function:
    """``out[i] = sum(x[i * n + k] for k in range(n))``, for positive sums."""
    build = Builder("row_sums")
    n = build.parameter("n", I64)
    x, out = build.parameter("x", array()), build.parameter("out", array())
    i = build.index()

    def add(k: Op, sums: Sequence[Op]) -> list[Op]:
        position = build.op("add", I64, build.op("mul", I64, i, n), k)
        return [build.op("add", F32, sums[0], build.load(x, position))]

    loop = build.counted(whole(0), n, add, single(0))
    (total,) = loop.results
    test = build.op("gt", BOOL, total, single(0))

    def write(control: Op) -> None:
        build.store(out, i, total)
        build.leave(control)

    build.branch(test, write, build.leave)
    return build.end()
