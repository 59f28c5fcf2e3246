"""Exact integer linear algebra: sublattices of congruences, and the Hermite normal form."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd
from typing import NamedTuple

Vector = list[int]
Matrix = list[list[int]]


def identity(size: int) -> Matrix:
    """Return the unit matrix."""
    return [[int(row == column) for column in range(size)] for row in range(size)]


def times(vector: Sequence[int], matrix: Matrix) -> Vector:
    """Return a row vector times a matrix."""
    columns = len(matrix[0]) if matrix else 0
    return [sum(a * row[j] for a, row in zip(vector, matrix, strict=True)) for j in range(columns)]


def rank(rows: Sequence[Sequence[Fraction | int]]) -> int:
    """Return the rank of a rational matrix, by elimination."""
    work = [[Fraction(each) for each in row] for row in rows]
    found = 0
    for column in range(len(work[0]) if work else 0):
        pivot = next((at for at in range(found, len(work)) if work[at][column]), None)
        if pivot is None:
            continue
        work[found], work[pivot] = work[pivot], work[found]
        for at in range(found + 1, len(work)):
            factor = work[at][column] / work[found][column]
            if factor:
                work[at] = [a - factor * b for a, b in zip(work[at], work[found], strict=True)]
        found += 1
    return found


class Lattice(NamedTuple):
    """The integer points ``origin + basis @ y`` for integer ``y``; ``basis`` is stored by rows."""

    origin: Vector
    basis: Matrix


def lattice_where_integral(
    forms: Sequence[tuple[Sequence[Fraction], Fraction]], size: int
) -> Lattice | None:
    """Return the integer points at which all affine forms have integer values.

    Each form with a denominator is a congruence; they are solved one after the other, each on the
    lattice left by the earlier ones. Returns ``None`` if no point is left.
    """
    origin, basis = [0] * size, identity(size)
    for coefficients, constant in forms:
        modulus = constant.denominator
        for each in coefficients:
            modulus = modulus * each.denominator // gcd(modulus, each.denominator)
        if modulus == 1:
            continue
        row = [int(each * modulus) for each in coefficients]
        rest = -(int(constant * modulus) + sum(a * x for a, x in zip(row, origin, strict=True)))
        now = [each % modulus for each in times(row, basis)]
        unit = identity(size)
        first = _gather(now, unit)
        if first is None:
            if rest % modulus:
                return None
            continue
        common = gcd(now[first], modulus)
        if rest % common:
            return None
        step = modulus // common
        start = (rest // common) * pow(now[first] // common, -1, step) % step if step > 1 else 0
        shift = [line[first] * start for line in unit]
        origin = [
            x + sum(b * s for b, s in zip(line, shift, strict=True))
            for x, line in zip(origin, basis, strict=True)
        ]
        for line in unit:
            line[first] *= step
        basis = [times(line, unit) for line in basis]
    return Lattice(origin, basis)


def _gather(row: Vector, unit: Matrix) -> int | None:
    """Apply column operations that leave one element of ``row``, and the same to ``unit``."""
    while True:
        held = [at for at, each in enumerate(row) if each]
        if not held:
            return None
        least = min(held, key=lambda at: (abs(row[at]), at))
        if len(held) == 1:
            return least
        for at in held:
            if at != least:
                factor = row[at] // row[least]
                row[at] -= factor * row[least]
                for line in unit:
                    line[at] -= factor * line[least]


class Hermite(NamedTuple):
    """``matrix @ unit == [form | 0]``, ``form`` in lower echelon with positive pivots.

    Attributes:
        form: the nonzero columns, stored by rows.
        unit: the unimodular change of variables, stored by rows.
        pivots: the row of the pivot of each column of ``form``.
    """

    form: Matrix
    unit: Matrix
    pivots: list[int]


def hermite(matrix: Matrix, size: int) -> Hermite:
    """Return the Hermite normal form of an integer matrix with ``size`` columns.

    Zero columns keep their relative order, so that variables outside the map are unchanged.
    """
    work = [list(row) for row in matrix]
    unit = identity(size)
    lines = [*work, *unit]  # both undergo all column operations
    pivots: list[int] = []
    for row in range(len(work)):
        done = len(pivots)
        while True:
            held = [at for at in range(done, size) if work[row][at]]
            if len(held) <= 1:
                break
            least = min(held, key=lambda at: (abs(work[row][at]), at))
            for at in held:
                if at != least:
                    factor = work[row][at] // work[row][least]
                    for line in lines:
                        line[at] -= factor * line[least]
        if not held:
            continue
        for line in lines:
            line.insert(done, line.pop(held[0]))
        if work[row][done] < 0:
            for line in lines:
                line[done] = -line[done]
        pivots.append(row)
    return Hermite([row[: len(pivots)] for row in work], unit, pivots)
