"""Index expressions as exact affine forms of the index variables."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from dparray.tilelang.tile_syntax import Call, Expression, Index, Name, Number
from dparray.tilelang.values import Builder

#: ``None`` stands for a number that the text alone does not determine.
Coefficient = Fraction | None


class Affine(NamedTuple):
    """Coefficients by variable (including zeros), and a constant."""

    coefficients: dict[str, Coefficient]
    constant: Coefficient


def affine_of(
    builder: Builder, expression: Expression, integer_of: Callable[[Name], int | None]
) -> Affine:
    """Return an index expression as an affine form.

    Args:
        builder: has the text, for errors.
        expression: an expression of literals, names of constants, and index variables.
        integer_of: returns the value of a name, ``None`` if it is not known yet.

    Raises:
        TileIndexError: a product or quotient of index variables, or a division by zero.
    """
    if isinstance(expression, Number):
        return Affine({}, Fraction(expression.value))
    if isinstance(expression, Name):
        value = integer_of(expression)
        return Affine({}, None if value is None else Fraction(value))
    if isinstance(expression, Index):
        return Affine({expression.name: Fraction(1)}, Fraction(0))
    parts = [affine_of(builder, each, integer_of) for each in expression.operands]
    if expression.function == "neg":
        return _scaled(parts[0], Fraction(-1))
    left, right = parts
    if expression.function == "+":
        return _sum(left, right)
    if expression.function == "-":
        return _sum(left, _scaled(right, Fraction(-1)))
    if expression.function == "*":
        return _product(builder, expression, left, right)
    return _quotient(builder, expression, left, right)


def _scaled(form: Affine, factor: Coefficient) -> Affine:
    return Affine(
        {name: _times(each, factor) for name, each in form.coefficients.items()},
        _times(form.constant, factor),
    )


def _times(a: Coefficient, b: Coefficient) -> Coefficient:
    if a == 0 or b == 0:
        return Fraction(0)
    return None if a is None or b is None else a * b


def _plus(a: Coefficient, b: Coefficient) -> Coefficient:
    return None if a is None or b is None else a + b


def _sum(left: Affine, right: Affine) -> Affine:
    zero: Coefficient = Fraction(0)
    names = [*left.coefficients, *(n for n in right.coefficients if n not in left.coefficients)]
    return Affine(
        {
            name: _plus(left.coefficients.get(name, zero), right.coefficients.get(name, zero))
            for name in names
        },
        _plus(left.constant, right.constant),
    )


def _product(builder: Builder, call: Call, left: Affine, right: Affine) -> Affine:
    if left.coefficients and right.coefficients:
        raise builder.index_error(
            call.position,
            f"a product of index variables: {_names(left)} and {_names(right)}",
            "index expressions are affine: multiply by literals and sizes only",
        )
    if left.coefficients:
        return _scaled(left, right.constant)
    return _scaled(right, left.constant)


def _quotient(builder: Builder, call: Call, left: Affine, right: Affine) -> Affine:
    if right.coefficients:
        raise builder.index_error(
            call.position,
            f"a division by index variables: {_names(right)}",
            "index expressions are affine: divide by literals and sizes only",
        )
    if right.constant == 0:
        raise builder.index_error(call.position, "a division by zero", "divide by another number")
    return _scaled(left, None if right.constant is None else 1 / right.constant)


def _names(form: Affine) -> str:
    return ", ".join(form.coefficients)
