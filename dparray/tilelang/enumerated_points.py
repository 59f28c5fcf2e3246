"""All valid points of a small contraction as arrays, with which the host computes."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from dparray.tilelang.bounds import Inequality
from dparray.tilelang.valid_domain import Domain

Array = np.ndarray[Any, np.dtype[np.int64]]


class Points(NamedTuple):
    """The valid points, grouped by output element.

    Attributes:
        counts: for each output element, in row-major order, the number of its points.
        variables: the values of each variable at each point.
    """

    counts: Array
    variables: list[Array]


def enumerated(domain: Domain, most: int) -> Points | None:
    """Return the points of a domain; ``None`` if there are more than ``most``."""
    elements = prod(domain.shape)
    if elements > most:
        return None
    owner = np.arange(elements, dtype=np.int64)
    index = list(np.unravel_index(owner, domain.shape)) if domain.shape else []
    variables: list[Array] = []
    valid = np.ones(elements, bool)
    for each in domain.solved:
        rest = index[each.row] - each.constant - _sum(each.terms, variables, owner)
        valid &= rest % each.divisor == 0
        variables.append(rest // each.divisor)
    for check in domain.checks:
        valid &= index[check.row] == check.constant + _sum(check.terms, variables, owner)
    for guard in domain.guards:
        valid &= _value(guard, variables, owner) >= 0
    owner, variables = owner[valid], [each[valid] for each in variables]
    for at, level in enumerate(domain.loops):
        column = len(domain.solved) + at
        low = np.maximum.reduce(
            [-(_value(each, variables, owner) // each.coefficients[column]) for each in level.lower]
        )
        high = np.minimum.reduce(
            [_value(each, variables, owner) // -each.coefficients[column] for each in level.upper]
        )
        counts = np.maximum(high - low + 1, 0)
        total = int(counts.sum())
        if total > most:
            return None
        starts = np.cumsum(counts) - counts
        within = np.arange(total, dtype=np.int64) - np.repeat(starts, counts)
        owner = np.repeat(owner, counts)
        variables = [np.repeat(each, counts) for each in variables]
        variables.append(np.repeat(low, counts) + within)
    return Points(np.bincount(owner, minlength=elements), variables)


def _value(inequality: Inequality, variables: list[Array], like: Array) -> Array:
    return inequality.constant + _sum(inequality.coefficients, variables, like)


def _sum(terms: tuple[int, ...], variables: list[Array], like: Array) -> Array:
    total = np.zeros(like.shape, np.int64)
    for a, x in zip(terms, variables, strict=False):
        if a:
            total += a * x
    return total


def linear(domain: Domain, operand: int, shape: tuple[int, ...], points: Points) -> Array:
    """Return the row-major indices in an operand that the points read."""
    like = points.variables[0] if points.variables else np.zeros(int(points.counts.sum()), np.int64)
    total: Any = np.zeros(like.shape, np.int64)
    for size, term in zip(shape, domain.operands[operand], strict=True):
        total = total * size + term.constant + _sum(term.coefficients, points.variables, like)
    return total
