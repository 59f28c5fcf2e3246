"""Bounds of integer variables under linear inequalities: Fourier-Motzkin elimination.

The elimination is rational, with every inequality tightened to integers (divided by the common
divisor of its coefficients, with its constant rounded down). Nested loops between the bounds of
each level visit exactly the integer points: each given inequality bounds the last of its variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

#: The maximum number of points that the search for a first one tests.
_MAX_STEPS = 2_000_000
#: The maximum number of inequalities derived at one level; beyond it, only the tightest are kept.
_MAX_DERIVED = 400


class Inequality(NamedTuple):
    """``coefficients . x + constant >= 0``; ``is_derived`` if it follows from the given ones."""

    coefficients: tuple[int, ...]
    constant: int
    is_derived: bool = False


class Level(NamedTuple):
    """The inequalities that bound one variable in terms of those before it."""

    lower: list[Inequality]
    upper: list[Inequality]


class Box(NamedTuple):
    """An interval of integers."""

    low: int
    high: int


def tightened(coefficients: Sequence[int], constant: int, is_derived: bool = False) -> Inequality:
    """Return an inequality in lowest terms over the integers."""
    divisor = 0
    for each in coefficients:
        divisor = gcd(divisor, each)
    if divisor <= 1:
        return Inequality(tuple(coefficients), constant, is_derived)
    return Inequality(
        tuple(each // divisor for each in coefficients), constant // divisor, is_derived
    )


def between(coefficients: Sequence[int], constant: int, size: int) -> list[Inequality]:
    """Return ``0 <= coefficients . x + constant < size``."""
    negated = [-each for each in coefficients]
    return [tightened(coefficients, constant), tightened(negated, size - 1 - constant)]


def _reduced(inequalities: Sequence[Inequality]) -> list[Inequality]:
    """Return the tightest of each direction; trivial ones are dropped, false ones are kept."""
    best: dict[tuple[int, ...], Inequality] = {}
    for each in inequalities:
        if not any(each.coefficients) and each.constant >= 0:
            continue
        other = best.get(each.coefficients)
        if (
            other is None
            or each.constant < other.constant
            or (each.constant == other.constant and other.is_derived)
        ):
            best[each.coefficients] = each
    return list(best.values())


def eliminate(
    inequalities: Sequence[Inequality], size: int, stop: int = 0
) -> tuple[list[Level], list[Inequality]]:
    """Return levels of the variables ``stop`` to ``size - 1``, and inequalities of the others.

    The last variable is eliminated first.
    """
    rest = _reduced(inequalities)
    levels: list[Level] = []
    for variable in range(size - 1, stop - 1, -1):
        level = Level([], [])
        free: list[Inequality] = []
        for each in rest:
            sign = each.coefficients[variable]
            (level.lower if sign > 0 else level.upper if sign < 0 else free).append(each)
        for low in level.lower:
            for high in level.upper:
                a, b = low.coefficients[variable], -high.coefficients[variable]
                free.append(
                    tightened(
                        [
                            b * x + a * y
                            for x, y in zip(low.coefficients, high.coefficients, strict=True)
                        ],
                        b * low.constant + a * high.constant,
                        is_derived=True,
                    )
                )
        levels.append(level)
        rest = _reduced(free)
        if len(rest) > _MAX_DERIVED:
            rest = _least(rest, variable)
    return levels[::-1], rest


def _least(inequalities: list[Inequality], size: int) -> list[Inequality]:
    """Return all given inequalities, and the derived ones with the fewest variables.

    Omitting derived ones only widens outer loops, as long as each variable keeps bounds.
    """
    given = [each for each in inequalities if not each.is_derived]
    derived = sorted(
        (each for each in inequalities if each.is_derived),
        key=lambda each: (sum(map(bool, each.coefficients)), max(map(abs, each.coefficients))),
    )
    return given + derived[:_MAX_DERIVED]


def value(inequality: Inequality, point: Sequence[int]) -> int:
    """Return the left side at a point, for as many variables as the point has."""
    return inequality.constant + sum(
        a * x for a, x in zip(inequality.coefficients, point, strict=False)
    )


def interval(inequality: Inequality, boxes: Sequence[Box], skip: int) -> Box:
    """Return the range of the left side without variable ``skip``, over boxes of earlier ones."""
    low = high = inequality.constant
    for at, box in enumerate(boxes[:skip]):
        a = inequality.coefficients[at]
        low += a * (box.low if a > 0 else box.high)
        high += a * (box.high if a > 0 else box.low)
    return Box(low, high)


def box_of(level: Level, boxes: Sequence[Box], variable: int) -> Box | None:
    """Return an interval with all values of a variable; ``None`` if it is unbounded."""
    if not level.lower or not level.upper:
        return None
    low = max(
        -(interval(each, boxes, variable).high // each.coefficients[variable])
        for each in level.lower
    )
    high = min(
        interval(each, boxes, variable).high // -each.coefficients[variable] for each in level.upper
    )
    return Box(low, high)


def boxes_of(levels: Sequence[Level]) -> list[Box] | None:
    """Return intervals of all variables; ``None`` if there is no point (or one is unbounded)."""
    boxes: list[Box] = []
    for variable, level in enumerate(levels):
        box = box_of(level, boxes, variable)
        if box is None or box.low > box.high:
            return None
        boxes.append(box)
    return boxes


def range_at(level: Level, point: Sequence[int], variable: int) -> range:
    """Return the values of a variable that its level allows, given those of earlier variables."""
    low = max(-(value(each, point) // each.coefficients[variable]) for each in level.lower)
    high = min(value(each, point) // -each.coefficients[variable] for each in level.upper)
    return range(low, high + 1)


def has_point(inequalities: Sequence[Inequality], size: int) -> bool:
    """Return whether bounded inequalities have an integer point; exact up to a number of steps."""
    levels, rest = eliminate(inequalities, size)
    if any(each.constant < 0 for each in rest) or (size and boxes_of(levels) is None):
        return False
    steps = 0
    point: list[int] = []
    ranges = [iter(range_at(levels[0], point, 0))] if size else []
    if not size:
        return True
    while ranges:
        steps += 1
        if steps > _MAX_STEPS:
            return True
        for now in ranges[-1]:
            point.append(now)
            break
        else:
            ranges.pop()
            if point:
                point.pop()
            continue
        if len(point) == size:
            return True
        ranges.append(iter(range_at(levels[len(point)], point, len(point))))
    return False
