"""Derivatives of all functions: by finite differences, in both modes, first and second."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.gradients.cases import ARRAYS, FIRST_ONLY, GROUPS, function

pytestmark = pytest.mark.usefixtures("without_kernels")

SPECIAL = "special functions"
CASES = [case for cases in GROUPS.values() for case in cases]


def weighted(call: Callable[..., Any], seed: int = 1) -> Callable[..., Any]:
    """Return a scalar function: the sum of the result of another with fixed weights."""

    def total(*arrays: Any) -> Any:
        y = call(*arrays)
        weights = np.random.default_rng(seed).uniform(0.5, 1.5, y.shape)
        return dp.sum(y * dp.asarray(weights))

    return total


def name_of(value: Any) -> str:
    return getattr(value, "__name__", "")


def directions(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    random = np.random.default_rng(5)
    return [np.where(np.isnan(x), 0, random.normal(size=x.shape)) for x in arrays]


def slope(f: Callable[..., Any], arrays: Any, along: Any, step: float) -> float:
    """Return the central difference of a function along a direction."""
    ahead, behind = (
        float(f(*[dp.asarray(x + sign * step * d) for x, d in zip(arrays, along, strict=True)]))
        for sign in (1, -1)
    )
    return (ahead - behind) / (2 * step)


def product(gradients: Any, along: Any) -> float:
    pairs = zip(gradients, along, strict=True)
    return sum(float(np.sum(g.asnumpy() * d)) for g, d in pairs)


def check_first(text: str, letters: str) -> None:
    arrays = [ARRAYS[letter] for letter in letters]
    along, f = directions(arrays), weighted(function(text), zlib.crc32(text.encode()))
    xs = [dp.asarray(x) for x in arrays]
    numbers = tuple(range(len(xs)))
    value, gradients = dp.value_and_grad(f, numbers)(*xs)
    assert np.isclose(float(value), float(f(*xs)), rtol=1e-12), (text, letters)
    reverse = product(gradients, along)
    _, forward = dp.jvp(f, xs, [dp.asarray(d) for d in along])
    expected = slope(f, arrays, along, 1e-6)
    scale = max(1, abs(expected))
    assert abs(reverse - expected) < 3e-6 * scale, (text, letters, reverse, expected)
    assert abs(float(forward) - reverse) < 1e-8 * scale, (text, letters, float(forward), reverse)


@pytest.mark.parametrize("group", [group for group in GROUPS if group != SPECIAL])
def test_first_derivatives(group: str) -> None:
    for text, letters in GROUPS[group]:
        check_first(text, letters)


# A kernel is compiled for each of these functions.
@pytest.mark.parametrize(("text", "letters"), GROUPS[SPECIAL])
@pytest.mark.sample(8)
def test_first_derivatives_of_special_functions(text: str, letters: str) -> None:
    check_first(text, letters)


@pytest.mark.parametrize(("text", "letters"), CASES)
def test_second_derivatives(text: str, letters: str) -> None:
    if text.startswith(FIRST_ONLY):
        pytest.skip("its second derivative is not compared")
    arrays = [ARRAYS[letter] for letter in letters]
    along, f = directions(arrays), weighted(function(text), zlib.crc32(text.encode()))
    numbers = tuple(range(len(arrays)))

    def first(*xs: Any) -> Any:
        pairs = zip(dp.grad(f, numbers)(*xs), along, strict=True)
        return sum(dp.sum(g * dp.asarray(d)) for g, d in pairs)

    xs = [dp.asarray(x) for x in arrays]
    second = product(dp.grad(first, numbers)(*xs), along)
    expected = slope(first, arrays, along, 1e-5)
    assert abs(second - expected) < 2e-5 * max(1, abs(expected)), (second, expected)
    _, forward = dp.jvp(first, xs, [dp.asarray(d) for d in along])
    assert abs(float(forward) - second) < 1e-7 * max(1, abs(second)), (float(forward), second)
