"""Binding of a program to its inputs: the shape and dtype of every name, and the operations.

The same pass checks a program by its text alone, with unknown inputs, and binds it to inputs with
known shapes, dtypes and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dparray.tilelang import data_functions as data_functions
from dparray.tilelang.contraction import Scope, contract
from dparray.tilelang.elementwise import apply
from dparray.tilelang.tile_syntax import Assignment, Expression, Index, Input, Name, Number, Program
from dparray.tilelang.values import (
    Builder,
    Constant,
    Group,
    Literal,
    Operation,
    Tensor,
    Unknown,
    Value,
)


class Bound(NamedTuple):
    """A program bound to its inputs.

    Attributes:
        inputs: the inputs that are tensors.
        operations: in order; only those that an output needs.
        outputs: the tensor or constant of each output.
    """

    inputs: dict[str, Tensor]
    operations: tuple[Operation, ...]
    outputs: dict[str, Tensor | Literal]


def check(program: Program) -> None:
    """Check a program as far as possible without inputs.

    Raises:
        TileError: the class names the kind of error.
    """
    _Walk(program, None)


def bind(program: Program, inputs: Mapping[str, Tensor | Constant]) -> Bound:
    """Bind a program to inputs.

    Raises:
        TileError: the class names the kind of error.
    """
    walk = _Walk(program, inputs)
    outputs: dict[str, Tensor | Literal] = {}
    for name in program.outputs:
        value = walk.values[name.name]
        assert isinstance(value, Tensor | Constant)
        outputs[name.name] = walk.builder.operand(value, name.position)
    needed = {id(each) for each in outputs.values()}
    kept: list[Operation] = []
    for operation in reversed(walk.builder.operations):
        if id(operation.result) in needed:
            needed.update(map(id, operation.operands))
            kept.append(operation)
    tensors = {name: each for name, each in inputs.items() if isinstance(each, Tensor)}
    return Bound(tensors, tuple(kept[::-1]), outputs)


class _Walk:
    def __init__(self, program: Program, inputs: Mapping[str, Tensor | Constant] | None) -> None:
        self.builder = Builder(program.source)
        self.values: dict[str, Value] = {}
        self.roles: dict[str, str] = {}
        for each in program.inputs:
            self.add_input(each, None if inputs is None else inputs[each.name.name])
        self.check_outputs(program)
        scope = Scope(self.builder, self.values)
        self.scope = scope
        for statement in program.statements:
            self.check_new(statement.name)
            if isinstance(statement, Assignment):
                value = self.evaluate(statement.value)
            else:
                value = contract(scope, statement, self.evaluate)  # type: ignore[arg-type]
            self.values[statement.name.name] = value
            self.roles[statement.name.name] = "assigned on a line before"
        for name in program.outputs:
            if self.roles.get(name.name) != "assigned on a line before":
                raise self.builder.name_error(
                    name.position,
                    f"the output {name.name} is never assigned",
                    f"assign it in the body: {name.name} = ...;",
                )
            value = self.values[name.name]
            if isinstance(value, Group):
                raise self.builder.type_error(
                    name.position,
                    f"the output {name.name} is a tuple",
                    "return its members: A = element(T, 0);",
                )
            if isinstance(value, Constant):
                self.builder.dtype_of(value, name.position)  # raises if the dtype is not determined

    def check_outputs(self, program: Program) -> None:
        seen: set[str] = set()
        for name in program.outputs:
            if name.name in seen:
                raise self.builder.name_error(
                    name.position,
                    f"the output {name.name} is listed twice",
                    "list each output once",
                )
            seen.add(name.name)

    def check_new(self, name: Name) -> None:
        if name.name in self.values:
            raise self.builder.name_error(
                name.position,
                f"{name.name} is assigned again: it is {self.roles[name.name]}",
                "every name is assigned once; take another name",
            )

    def add_input(self, given: Input, value: Tensor | Constant | None) -> None:
        self.check_new(given.name)
        name = given.name.name
        self.roles[name] = "an input"
        if given.sizes is None:
            self.values[name] = Unknown() if value is None else value
            return
        shape: tuple[int | None, ...] | None
        if value is None:
            shape = (None,) * len(given.sizes)
            self.values[name] = Tensor(shape, None) if given.sizes else Unknown()
        else:
            shape = () if isinstance(value, Constant) else value.shape
            self.values[name] = value
        assert shape is not None
        if len(shape) != len(given.sizes):
            raise self.builder.shape_error(
                given.name.position,
                f"{name} has rank {len(given.sizes)} here, and was called with shape {shape}",
                "give an array of that rank, or reshape it first",
            )
        for size, known in zip(given.sizes, shape, strict=True):
            self.add_size(size, known)

    def add_size(self, name: Name, size: int | None) -> None:
        if name.name in self.values and self.roles[name.name] != "a size":
            self.check_new(name)
        before = self.values.get(name.name)
        if isinstance(before, Constant) and before.value is not None and before.value != size:
            raise self.builder.shape_error(
                name.position,
                f"the size {name.name} is {before.value} and {size}",
                "sizes of one name agree; use two names, or give arrays that fit",
            )
        self.values[name.name] = Constant(size, False)
        self.roles[name.name] = "a size"

    def evaluate(self, expression: Expression) -> Value:
        if isinstance(expression, Number):
            return Constant(expression.value, isinstance(expression.value, float))
        if isinstance(expression, Name):
            return self.scope.value(expression)
        if isinstance(expression, Index):
            raise self.builder.index_error(
                expression.position,
                f"the index variable {expression.name!r} outside of a contraction",
                f"write #{expression.name} for a tensor of that name; for coordinates use "
                "index(T, axis)",
            )
        return apply(
            self.builder, expression, [self.evaluate(each) for each in expression.operands]
        )
