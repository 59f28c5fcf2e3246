"""The cost of the tape, as calls of Python functions, and the memory that it keeps."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.gradients.traced import Level, Node, Spec, Traced
from tests.gradients.test_large_arrays import peak
from tests.support import runs_loops_on_host

SMALL = np.linspace(0.5, 1.5, 100)


def skip_unless_cpu() -> None:
    if not runs_loops_on_host():
        pytest.skip("on a CPU only: other devices have another way, and their stand-ins are slow")


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
    skip_unless_cpu()  # which has a fast path for small arrays
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


LARGE = 200_000


def layers(x: Any, wrap: Callable[..., Any] = lambda f: f) -> Any:
    def four(y: Any) -> Any:
        for _ in range(4):
            y = dp.tanh(dp.cumsum(y) / LARGE)
        return y

    four = wrap(four)
    for _ in range(4):
        x = four(x)
    return dp.sum(x)


def test_the_tape_keeps_what_derivatives_read() -> None:
    x = dp.asarray(np.linspace(0, 1, LARGE))
    skip_unless_cpu()
    both = dp.value_and_grad(layers)
    saving = dp.value_and_grad(lambda x: layers(x, dp.checkpoint))
    assert peak(layers, x) <= 6
    # 16 results of tanh, and some arrays of the backward pass.
    for f in (both, dp.jit(both)):
        assert 15 <= peak(f, x) <= 16 + 6
    # Four arguments, and the four results of the part that is computed again.
    assert peak(saving, x) <= 8 + 8
    assert np.allclose(both(x)[1].asnumpy(), saving(x)[1].asnumpy(), rtol=1e-12)


def test_sums_keep_nothing() -> None:
    x = dp.asarray(np.linspace(0, 1, LARGE))
    skip_unless_cpu()
    f = dp.value_and_grad(lambda x: dp.sum(x + 1) + dp.sum(2 * x))
    assert peak(f, x) <= 4


@pytest.mark.parametrize(("size", "count"), [(100, 1000), (60_000, 30)])
def test_many_steps_keep_nothing(size: int, count: int) -> None:
    gradient = dp.grad(lambda x: dp.mean((dp.sin(x) * x[::-1] - 0.5) ** 2))
    x = dp.asarray(np.linspace(0.5, 1.5, size))

    def steps(x: Any, count: int) -> Any:
        for _ in range(count):
            x = x - 0.1 * gradient(x)
            dp.eval(x)
        return x

    def tape_objects() -> int:
        gc.collect()
        return sum(isinstance(x, Level | Node | Spec | Traced) for x in gc.get_objects())

    x = steps(x, 20)
    objects, memory = tape_objects(), dp.memory.stats().in_use
    x = steps(x, count)
    assert tape_objects() <= objects
    assert dp.memory.stats().in_use <= memory + 8 * x.nbytes
