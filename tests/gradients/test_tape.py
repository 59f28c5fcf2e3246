"""The cost of the tape, as calls of Python functions, and the memory that it keeps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp

SMALL = np.linspace(0.5, 1.5, 100)


def calls_of(f: Callable[..., Any], x: Any) -> int:
    """Return the number of Python functions that a call enters."""
    count = 0

    def note(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event == "call"

    f(x)
    sys.setprofile(note)
    try:
        f(x)
    finally:
        sys.setprofile(None)
    return count


def repeated(step: Callable[..., Any], times: int) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        y = x
        for _ in range(times):
            y = step(y, x)
        return dp.sum(y)

    return dp.value_and_grad(f)


@pytest.mark.parametrize(
    ("step", "most"),
    [
        (lambda y, x: dp.sin(y), 19),
        (lambda y, x: y * x, 17),
        (lambda y, x: y + 0.5, 11),
        (lambda y, x: x - y, 13),
    ],
    ids=["function", "product", "constant", "difference"],
)
def test_an_operation_enters_few_functions(step: Callable[..., Any], most: int) -> None:
    x = dp.asarray(SMALL)
    few, many = calls_of(repeated(step, 10), x), calls_of(repeated(step, 30), x)
    assert (many - few) / 20 <= most + 1  # one is the step itself


def test_one_number_stands_for_equal_cotangents() -> None:
    x = dp.asarray(SMALL)
    for f, expected in (
        (lambda x: dp.sum(x), 1.0),
        (lambda x: dp.mean(x - 0.5), 0.01),
        (lambda x: dp.sum(x + 1 - x), 0.0),
        (lambda x: dp.sum(dp.reshape(x, (10, 10)).T), 1.0),
        (lambda x: dp.sum(x[::2]) + dp.sum(x[1::2]), 1.0),
        (lambda x: dp.sum(dp.concatenate([x, x])), 2.0),
        (lambda x: dp.sum(dp.ones((3, 1)) + x), 3.0),
        (lambda x: dp.sum(dp.cumsum(x)) - dp.sum(dp.cumsum(x)), 0.0),
        (lambda x: dp.sum(dp.checkpoint(lambda y: y + 1)(x)), 1.0),
        (lambda x: dp.sum(dp.astype(x, "float32")), 1.0),
    ):
        gradient = dp.grad(f)(x)
        assert gradient.shape == x.shape
        assert gradient.dtype == x.dtype
        assert np.allclose(gradient.asnumpy(), expected)
    mixed = dp.grad(lambda s, x: dp.sum(s + x), argnums=(0, 1))(dp.asarray([1.0]), x)
    assert mixed[0].tolist() == [100.0]
    assert np.allclose(mixed[1].asnumpy(), 1)
