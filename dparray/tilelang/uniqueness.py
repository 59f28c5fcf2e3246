"""Check that each output element of a contraction has at most one valid point."""

from __future__ import annotations

from dparray.tilelang.bounds import Inequality, has_point, interval
from dparray.tilelang.enumerated_points import enumerated
from dparray.tilelang.valid_domain import Domain

#: Valid sets up to this size are counted; for larger ones, a second point is searched for.
_MAX_COUNTED = 200_000


def is_single_valued(domain: Domain) -> bool:
    """Return whether no output element has two points; exact."""
    if all(_runs_once(domain, at) for at in range(len(domain.loops))):
        return True
    points = enumerated(domain, _MAX_COUNTED)
    if points is not None:
        return bool((points.counts <= 1).all())
    return not any(_has_pair(domain, at) for at in range(len(domain.loops)))


def _runs_once(domain: Domain, at: int) -> bool:
    """Return whether the bounds alone show that a loop runs at most once."""
    variable = len(domain.solved) + at
    level = domain.loops[at]
    for low in level.lower:
        for high in level.upper:
            a, b = low.coefficients[variable], -high.coefficients[variable]
            width = Inequality(
                tuple(
                    b * x + a * y for x, y in zip(low.coefficients, high.coefficients, strict=True)
                ),
                b * low.constant + a * high.constant,
            )
            if interval(width, domain.boxes, variable).high < a * b:
                return True
    return False


def _has_pair(domain: Domain, at: int) -> bool:
    """Return whether two points of an element differ first, upwards, in one free variable."""
    known, count = len(domain.solved), domain.variables
    moved = list(range(known + at, count))  # the variables that may differ
    size = count + len(moved)
    system: list[Inequality] = []
    for each in domain.inequalities:
        rest = [0] * len(moved)
        system.append(Inequality((*each.coefficients, *rest), each.constant))
        step = tuple(each.coefficients[variable] for variable in moved)
        if any(step):
            system.append(Inequality((*each.coefficients, *step), each.constant))
    first = tuple(int(column == count) for column in range(size))
    system.append(Inequality(first, -1))
    return has_point(system, size)
