"""The syntax tree of a Tile program, and its source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True)
class Number:
    """A literal; a ``float`` value was written with a point or an exponent."""

    value: int | float
    position: int


@dataclass(frozen=True)
class Name:
    """A tensor, a size or a constant."""

    name: str
    position: int


@dataclass(frozen=True)
class Index:
    """An index variable."""

    name: str
    position: int


@dataclass(frozen=True)
class Call:
    """A function or an operator (named by its sign, or ``neg``, ``~`` and ``?``) with operands."""

    function: str
    operands: tuple[Expression, ...]
    position: int


Expression = Number | Name | Index | Call


class Attribute(NamedTuple):
    """``[[name(parameters)]]`` before a statement: a note, except ``[[propagate_nan]]``."""

    name: str
    parameters: tuple[str, ...]


class Reference(NamedTuple):
    """``A[i, j]`` in a contraction."""

    name: Name
    indices: tuple[Expression, ...]


class Constraint(NamedTuple):
    """``value < bound``, which also means ``0 <= value``."""

    value: Expression
    bound: Expression
    position: int


@dataclass(frozen=True)
class Assignment:
    """``name = expression;``."""

    name: Name
    value: Expression
    attributes: tuple[Attribute, ...] = ()


@dataclass(frozen=True)
class Contraction:
    """``name[indices : sizes] = aggregation(operands), constraints default start;``.

    Attributes:
        sizes: ``None`` if the statement has none.
        combination: ``""`` for one operand, ``"*"``, ``"+"``, ``"=="`` for two, ``"?"`` for three.
    """

    name: Name
    indices: tuple[Expression, ...]
    sizes: tuple[Expression, ...] | None
    aggregation: str
    operands: tuple[Reference, ...]
    combination: str
    constraints: tuple[Constraint, ...] = ()
    default: Name | None = None
    no_defract: bool = False
    attributes: tuple[Attribute, ...] = ()


Statement = Assignment | Contraction


class Input(NamedTuple):
    """A parameter: ``sizes`` is ``None`` if its rank is not specified."""

    name: Name
    sizes: tuple[Name, ...] | None


@dataclass(frozen=True)
class Program:
    """A whole function."""

    source: str
    inputs: tuple[Input, ...]
    outputs: tuple[Name, ...]
    statements: tuple[Statement, ...] = field(default=())


def parts(expression: Expression) -> tuple[Expression, ...]:
    """Yield an expression and all of its parts."""
    if isinstance(expression, Call):
        return (expression, *(each for operand in expression.operands for each in parts(operand)))
    return (expression,)
