"""The valid set of a contraction as loops that visit exactly the points of an output element.

The index variables are replaced in two exact steps. If coefficients are fractions, the points at
which all index expressions are integers form a lattice, whose coordinates are the new variables.
The Hermite normal form of the output's index expressions then splits these into two kinds. An
output element determines the first (:class:`Solved`); the free ones become loops between the bounds
from :mod:`dparray.tilelang.bounds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from operator import mul
from typing import NamedTuple

from dparray.tilelang.bounds import (
    Box,
    Inequality,
    Level,
    between,
    box_of,
    boxes_of,
    eliminate,
    has_point,
    interval,
)
from dparray.tilelang.integers import hermite, lattice_where_integral, rank, times


class Form(NamedTuple):
    """An affine form of the index variables: exact rational coefficients, in their order."""

    coefficients: tuple[Fraction, ...]
    constant: Fraction

    @property
    def is_integral(self) -> bool:
        """Return whether it is an integer at every integer point."""
        return all(each.denominator == 1 for each in (self.constant, *self.coefficients))


class Term(NamedTuple):
    """Return the form in the variables of the loops, with integers only."""

    coefficients: tuple[int, ...]
    constant: int


class Solved(NamedTuple):
    """A variable that an output element determines.

    ``divisor * variable = index[row] - constant - terms . variables before it``.
    """

    row: int
    divisor: int
    terms: tuple[int, ...]
    constant: int


class Check(NamedTuple):
    """The condition for points: ``index[row] == constant + terms . solved variables``."""

    row: int
    terms: tuple[int, ...]
    constant: int


class Domain(NamedTuple):
    """The loops of a contraction.

    Attributes:
        shape: the shape of the output.
        solved, checks: variables and conditions that an output element's index determines.
        guards: inequalities of the solved variables that an element must satisfy.
        loops: levels of the free variables, which follow the solved ones.
        operands: for each operand its indices in all variables.
        boxes: intervals of all variables.
        inequalities: all of them, in all variables.
    """

    shape: tuple[int, ...]
    solved: tuple[Solved, ...]
    checks: tuple[Check, ...]
    guards: tuple[Inequality, ...]
    loops: tuple[Level, ...]
    operands: tuple[tuple[Term, ...], ...]
    boxes: tuple[Box, ...]
    inequalities: tuple[Inequality, ...]

    @property
    def variables(self) -> int:
        """The number of variables."""
        return len(self.solved) + len(self.loops)

    @property
    def points(self) -> int:
        """The maximum number of points of one output element."""
        return prod(box.high - box.low + 1 for box in self.boxes[len(self.solved) :])

    @property
    def largest(self) -> int:
        """A bound for all numbers in the arithmetic of loops, guards and indices."""
        furthest = [max(abs(box.low), abs(box.high), 1) for box in self.boxes]
        levels = [each for level in self.loops for each in (*level.lower, *level.upper)]
        terms = [term for one in self.operands for term in one]
        rows = [(row, constant) for row, constant, _ in (*levels, *self.guards)]
        rows += [(row, constant) for row, constant in terms]
        rows += [(each.terms, each.constant) for each in self.solved]
        rows += [(each.terms, each.constant) for each in self.checks]
        sums = [
            abs(constant) + sum(abs(a) * x for a, x in zip(row, furthest, strict=False))
            for row, constant in rows
        ]
        return max([1, *self.shape, *furthest, *(each.divisor for each in self.solved), *sums])

    @property
    def covers(self) -> bool:
        """Return whether each output element certainly has a point."""
        if self.checks or self.guards or any(each.divisor != 1 for each in self.solved):
            return False
        return all(_is_never_empty(self, at) for at in range(len(self.loops)))


def _is_never_empty(domain: Domain, at: int) -> bool:
    """Return whether a loop always runs at least once."""
    variable = len(domain.solved) + at
    level = domain.loops[at]
    if len(level.lower) != 1 or len(level.upper) != 1:
        return False
    low, high = level.lower[0], level.upper[0]
    a, b = low.coefficients[variable], -high.coefficients[variable]
    least = interval(high, domain.boxes, variable).low // b
    most = -(interval(low, domain.boxes, variable).low // a)
    return most <= least


class Space(NamedTuple):
    """The index space of a contraction as written; variables are in order of use.

    Attributes:
        variables: the number of variables.
        output, operands: index expressions, and the sizes that bound them.
        constraints: expressions with their bounds.
    """

    variables: int
    output: tuple[tuple[Form, int], ...]
    operands: tuple[tuple[tuple[Form, int], ...], ...]
    constraints: tuple[tuple[Form, int], ...]

    @property
    def all(self) -> list[tuple[Form, int]]:
        """Return every expression with the size that bounds it."""
        return [*self.output, *(each for one in self.operands for each in one), *self.constraints]

    @property
    def is_bounded(self) -> bool:
        """Whether every variable is bounded: all inequalities have two sides, so the rank
        determines it.
        """
        return (
            rank([form.coefficients for form, _ in self.all]) == self.variables
            if self.variables
            else True
        )


def domain_of(space: Space) -> Domain | None:
    """Return the loops of a bounded space; ``None`` if it has no point."""
    if any(size <= 0 for _, size in space.all):
        return None
    if all(form.is_integral for form, _ in space.all):
        lattice = None
    else:
        lattice = lattice_where_integral([form for form, _ in space.all], space.variables)
        if lattice is None:
            return None

    def on_lattice(form: Form) -> Term:
        if lattice is None:
            return Term(tuple(map(int, form.coefficients)), int(form.constant))
        columns = zip(*lattice.basis, strict=True)
        row = [sum(map(mul, form.coefficients, column), Fraction(0)) for column in columns]
        constant = sum(map(mul, form.coefficients, lattice.origin), form.constant)
        return Term(tuple(map(int, row)), int(constant))

    outputs = [(on_lattice(form), size) for form, size in space.output]
    turned = hermite([list(term.coefficients) for term, _ in outputs], space.variables)

    def turn(term: Term) -> Term:
        return Term(tuple(times(term.coefficients, turned.unit)), term.constant)

    outputs = [(turn(term), size) for term, size in outputs]
    operands = [[(turn(on_lattice(form)), size) for form, size in one] for one in space.operands]
    others = [each for one in operands for each in one]
    others += [(turn(on_lattice(form)), size) for form, size in space.constraints]
    return _looped(space.variables, outputs, others, operands, turned.form, turned.pivots)


def _looped(
    count: int,
    outputs: list[tuple[Term, int]],
    others: list[tuple[Term, int]],
    operands: list[list[tuple[Term, int]]],
    form: list[list[int]],
    pivots: list[int],
) -> Domain | None:
    """Return the domain in variables of which the first are solved."""
    known = len(pivots)
    of_output = [each for term, size in outputs for each in between(*term, size)]
    given = [each for term, size in others for each in between(*term, size)]
    if not has_point([*of_output, *given], count):
        return None
    levels, rest = eliminate(given, count, stop=known)
    guards = [each for each in rest if not each.is_derived]
    solved = tuple(
        Solved(row, form[row][at], tuple(form[row][:at]), outputs[row][0].constant)
        for at, row in enumerate(pivots)
    )
    checks = tuple(
        Check(row, tuple(form[row]), outputs[row][0].constant)
        for row in range(len(outputs))
        if row not in pivots and (any(form[row]) or outputs[row][1] > 1)
    )
    # The boxes of the solved variables follow from the launch and the guards only.
    outer, _ = eliminate([*of_output, *guards], known)
    boxes = boxes_of(outer)
    if boxes is None and known:
        return None
    boxes = boxes or []
    only = boxes_of(eliminate(of_output, known)[0]) or []
    guards = [each for each in guards if interval(each, only, known).low < 0]
    loops: list[Level] = []
    for at, level in enumerate(levels):
        variable = known + at
        kept = Level(
            _not_implied(level.lower, boxes, variable), _not_implied(level.upper, boxes, variable)
        )
        box = box_of(kept, boxes, variable)
        assert box is not None
        loops.append(kept)
        boxes.append(box)
    return Domain(
        tuple(size for _, size in outputs),
        solved,
        checks,
        tuple(guards),
        tuple(loops),
        tuple(tuple(term for term, _ in one) for one in operands),
        tuple(boxes),
        (*of_output, *given),
    )


def _not_implied(
    inequalities: Sequence[Inequality], boxes: Sequence[Box], variable: int
) -> list[Inequality]:
    """Return the bounds of a variable on one side that others do not imply within the boxes.

    A bound is compared by its slack per step: the least of one with the most of another.
    """
    kept = list(inequalities)
    # Derived ones first, since they always follow from others.
    for each in sorted(inequalities, key=lambda one: (not one.is_derived, one.constant == 0)):
        if any(other is not each and _implies(other, each, boxes, variable) for other in kept):
            kept.remove(each)
    return kept


def _implies(one: Inequality, other: Inequality, boxes: Sequence[Box], variable: int) -> bool:
    """Return whether ``one`` implies ``other`` for earlier variables within their boxes."""
    a, b = abs(one.coefficients[variable]), abs(other.coefficients[variable])
    # a * other - b * one does not contain the variable; if it is nonnegative, other follows.
    difference = Inequality(
        tuple(a * y - b * x for x, y in zip(one.coefficients, other.coefficients, strict=True)),
        a * other.constant - b * one.constant,
    )
    return interval(difference, boxes, variable).low >= 0
