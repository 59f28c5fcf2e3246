"""Empty arrays in expressions: they do not affect other users of their operands."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp

LONG = 20_000  # too large for the host to compute

VALUES = 1 + np.cos(np.arange(LONG)) / 1000  # so that their product is about 1

REDUCTIONS = ("sum", "prod", "max", "min", "mean", "var", "any", "argmax")

# Expressions of an empty array `e` and a pending reduction `p` with kept dimensions.
READERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "elementwise": lambda xp, e, p: e / p,
    "chain": lambda xp, e, p: xp.sqrt(e - p) * p,
    "where": lambda xp, e, p: xp.where(e > 0, e, p),
    "reduction": lambda xp, e, p: xp.sum(e - p),
    "reduction along an axis": lambda xp, e, p: xp.max(xp.ones((3, 1)) * (e - p)[:0], axis=0),
    "mean": lambda xp, e, p: xp.prod(e * p, keepdims=True),
    "view": lambda xp, e, p: (e + p)[None, ::-1],
    "stack": lambda xp, e, p: xp.concatenate([e - p, e]),
}


def check(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(dp.asnumpy(found)), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("host_tier", [True, False])
@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_a_pending_reduction_outlives_an_empty_reader(
    reduction: str, reader: str, lazy: bool, host_tier: bool
) -> None:
    """Evaluating an empty expression leaves its inner values pending."""
    values = VALUES
    with dp.config.override(lazy=lazy, host_tier=host_tier):
        x = dp.asarray(values)
        p = getattr(dp, reduction)(x, keepdims=True)
        p_host = getattr(np, reduction)(values, keepdims=True)
        e = x[x > 1e9] if reader == "elementwise" else x[:0]
        check(READERS[reader](dp, e, p), READERS[reader](np, values[:0], p_host))
        check(p, p_host)


def test_stores_to_no_elements_leave_their_operands(queue: Any) -> None:
    """Assignment and in-place arithmetic on empty targets write nothing and lose nothing."""
    values = np.linspace(0.5, 1.5, LONG)
    x = dp.asarray(values, sycl_queue=queue)
    largest, total = x.max(keepdims=True), x.sum(keepdims=True)
    doubled = x * 2
    quotient = x[:0] / total
    empty = x[5:5]
    empty += largest
    x[3:3] = total
    x[:0] = quotient
    np.add(x[:0], largest, out=x[7:7])
    x[x < 0] = 1.0
    x[:] = 0.0  # readers of the old values have to be computed now
    check(largest, values.max(keepdims=True))
    check(total, values.sum(keepdims=True))
    check(doubled, values * 2)
    check(quotient, np.empty(0))
    check(x, np.zeros(LONG))


def test_several_roots_of_which_some_are_empty(queue: Any) -> None:
    """`dp.eval` of empty and other arrays that share held values computes all of them."""
    values = np.arange(3.0 * LONG).reshape(3, LONG)
    x = dp.asarray(values, sycl_queue=queue)
    means = x.mean(axis=1, keepdims=True)
    centred = x - means
    none = centred[:, :0] * means
    sums = dp.sum(none, axis=1)
    dp.eval(none, sums, centred)
    check(centred, values - values.mean(axis=1, keepdims=True))
    check(none, np.empty((3, 0)))
    check(sums, np.zeros(3))
    check(means, values.mean(axis=1, keepdims=True))


@pytest.mark.usefixtures("tests_options")
def test_explain_shows_that_nothing_is_computed_for_no_elements() -> None:
    """The plan of an empty expression has no kernel for the reduction that it reads."""
    x = dp.ones(LONG)
    total = x.sum(keepdims=True)
    plan = dp.explain(x[:0] / total)
    assert [kernel.reason for kernel in plan.kernels] == ["there are no elements"]
    assert "div" in str(plan)
    assert float(total[0]) == LONG


STEPS = ("reduce", "reduce", "binary", "binary", "where", "slice", "write", "read")


class Program:
    """A random program on arrays and their NumPy mirrors, which may be empty."""

    def __init__(self, seed: int, queue: Any) -> None:
        self.random = random.Random(seed)
        self.arrays: list[tuple[dp.ndarray, np.ndarray]] = []
        for shape in ((LONG,), (3, LONG // 4), (5,), (0,), (3, 0)):
            values = 1 + np.random.default_rng(seed).uniform(-0.001, 0.001, shape)
            self.arrays.append((dp.asarray(values, sycl_queue=queue), values))

    def pick(self) -> tuple[dp.ndarray, np.ndarray]:
        return self.random.choice(self.arrays)

    def partner(self, host: np.ndarray) -> tuple[Any, Any]:
        """Return an array that broadcasts with a given one, or a number."""
        fitting = [pair for pair in self.arrays if _result_shape(pair[1], host) is not None]
        return self.random.choice([*fitting, (0.5, 0.5)])

    def step(self) -> None:
        x, host = self.pick()
        kind = self.random.choice(STEPS)
        if kind == "reduce":
            names = ["sum", "prod", "any"] + ["mean", "max", "var"] * (host.size > 0)
            name = self.random.choice(names)
            axis = self.random.choice([None, *range(host.ndim)])
            if name in ("max", "var", "mean") and (axis is not None and not host.shape[axis]):
                return
            with np.errstate(all="ignore"):
                expected = getattr(np, name)(host, axis=axis, keepdims=True) * 1.0
            self.add(getattr(dp, name)(x, axis=axis, keepdims=True) * 1.0, expected)
        elif kind == "binary":
            name = self.random.choice(["add", "subtract", "maximum", "hypot"])
            other, other_host = self.partner(host)
            self.add(getattr(dp, name)(x, other), getattr(np, name)(host, other_host))
        elif kind == "where":
            other, other_host = self.partner(host)
            self.add(dp.where(x > 1.0, x, other), np.where(host > 1.0, host, other_host))
        elif kind == "slice":
            part = self.random.choice([slice(0), slice(2, None, 2), slice(-1), slice(1)])
            self.add(x[..., part], host[..., part])
        elif kind == "write":
            part = self.random.choice([slice(0), slice(3, 3), slice(1), slice(None)])
            other, other_host = self.partner(host[..., part])
            if np.broadcast_shapes(np.shape(other_host), host[..., part].shape) == (
                host[..., part].shape
            ):
                x[..., part] = other
                host[..., part] = other_host
        else:
            check(x, host)

    def add(self, x: dp.ndarray, host: Any) -> None:
        # Values that grow without a bound would differ, but only in their last bits.
        if host.size and not np.all(np.abs(np.nan_to_num(host)) < 1e6):
            return
        self.arrays.append((x, np.asarray(host)))


def _result_shape(x1: np.ndarray, x2: np.ndarray) -> tuple[int, ...] | None:
    try:
        shape = np.broadcast_shapes(x1.shape, x2.shape)
    except ValueError:
        return None
    return shape if np.prod(shape) <= LONG else None


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_random_programs_with_empty_arrays(seed: int, lazy: bool, queue: Any) -> None:
    """All values are NumPy's, in any order of reductions, slices, writes and reads."""
    with dp.config.override(lazy=lazy, host_tier=seed % 3 != 0):
        program = Program(seed, queue)
        for _ in range(30):
            program.step()
        program.random.shuffle(program.arrays)
        for x, host in program.arrays:
            check(x, host)
