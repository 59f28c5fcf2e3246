"""Rolled and joined operands, which kernels read where their boxes are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._evaluate.evaluate import observers
from dparray._evaluate.plan import FusedStep
from tests.support import force

SHAPES = [(1,), (7,), (5, 9), (4, 5, 6), (40, 70), (0, 3)]
DTYPES = ["f4", "f8", "i1", "u8", "?", "c8", "f2"]
ROLLS: Any = [(1, 0), (-2, -1), (3, None), ((1, -1), (0, -1)), ((2, 5), 0), (1000, 0), (0, 0)]


@pytest.fixture(params=["fused", "host", "library", ""])
def backend(request: pytest.FixtureRequest) -> Any:
    if not request.param:
        yield ""
        return
    with force(request.param):
        yield request.param


def _equal(found: dp.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.asnumpy(), expected)


def _sample(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (np.random.default_rng(len(shape)).random(shape) * 10).astype(dtype)


def _life(xp: Any, cells: Any) -> Any:
    around = sum(
        xp.roll(xp.roll(cells, down, 0), right, 1)
        for down in (-1, 0, 1)
        for right in (-1, 0, 1)
        if (down, right) != (0, 0)
    )
    return ((around == 3) | ((cells == 1) & (around == 2))).astype(cells.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_rolled_operands(backend: str, shape: tuple[int, ...], dtype: str) -> None:
    host = _sample(shape, dtype)
    x = dp.asarray(host)
    for shift, axis in ROLLS:
        _equal(dp.roll(x, shift, axis), np.roll(host, shift, axis))
        _equal(dp.roll(x + x, shift, axis) + x, np.roll(host + host, shift, axis) + host)
        twice = np.roll(np.roll(host, shift, axis), 1, -1)
        _equal(dp.roll(dp.roll(x, shift, axis), 1, -1) * x, twice * host)
        _equal(dp.roll(x[::-1], shift, axis) * x, np.roll(host[::-1], shift, axis) * host)
        _equal(dp.roll(x.T, shift, axis) + x.T, np.roll(host.T, shift, axis) + host.T)


def test_large_arrays_are_rolled_and_extended() -> None:
    host = np.arange(603 * 1021, dtype="f4").reshape(603, 1021)
    x = dp.asarray(host)
    for shift in (1, 3, 5, 16, 1000, -1, -300_000):
        _equal(dp.roll(x, shift), np.roll(host, shift))
    for width in (1, ((0, 3), (2, 0)), ((4, 0), (0, 0))):
        _equal(dp.pad(x, width), np.pad(host, width))


@pytest.mark.parametrize(("shift", "axis"), ROLLS)
def test_a_target_that_is_also_rolled(backend: str, shift: Any, axis: Any) -> None:
    expected = _sample((6, 8), "f8")
    x = dp.asarray(expected)
    x += dp.roll(x, shift, axis)
    expected += np.roll(expected, shift, axis)
    _equal(x, expected)
    x[...] = dp.roll(x, shift, axis)
    expected[...] = np.roll(expected, shift, axis)
    _equal(x, expected)
    x[1:] = dp.roll(x, shift, axis)[:-1] - x[1:]
    expected[1:] = np.roll(expected, shift, axis)[:-1] - expected[1:]
    _equal(x, expected)
    rolled = dp.roll(x, shift, axis)
    before = np.roll(expected, shift, axis)
    x[2] = 0  # A pending result keeps the old values.
    _equal(rolled, before)


def test_rolled_operands_of_reductions_and_broadcasts(backend: str) -> None:
    host = _sample((30, 50), "f4")
    x = dp.asarray(host)
    found = dp.sum((x - dp.roll(x, 1, 0)) * dp.roll(x, -1, 1), axis=1)
    expected = np.sum((host - np.roll(host, 1, 0)) * np.roll(host, -1, 1), axis=1)
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-4)
    _equal(x + dp.roll(x[0], 3), host + np.roll(host[0], 3))
    _equal(x + dp.roll(x[:, :1], 3, 0), host + np.roll(host[:, :1], 3, 0))
    row = dp.roll(x[:1], 2, 1)
    _equal((row + x[0])[0] * x, (np.roll(host[:1], 2, 1) + host[0])[0] * host)


def test_neighbors_of_three_dimensions(backend: str) -> None:
    host = _sample((9, 10, 11), "f8")
    x = dp.asarray(host)
    moves = [(by, axis) for axis in range(3) for by in (1, -1)]
    found = sum(dp.roll(x, *move) for move in moves) - 6 * x
    _equal(found, sum(np.roll(host, *move) for move in moves) - 6 * host)


def _fused_step(compute: Any, *hosts: np.ndarray) -> FusedStep:
    """Return the only step of an expression, whose result is checked."""
    plans: list[Any] = []
    observer = lambda bound, canonical, order: plans.append(bound.plan)  # noqa: E731
    observers.append(observer)
    try:
        with force("fused"):
            _equal(compute(dp, *map(dp.asarray, hosts)), compute(np, *hosts))
    finally:
        observers.remove(observer)
    (step,) = plans[0].steps
    assert isinstance(step, FusedStep)
    assert len(step.new) == 1  # The result is the only new array.
    return step


def _neighbors(xp: Any, x: Any) -> Any:
    moves = [(by, axis) for axis in range(x.ndim) for by in (1, -1)]
    return sum(xp.roll(x, *move) for move in moves) - 2 * x.ndim * x


@pytest.mark.parametrize(
    ("compute", "shape", "launches"),
    [
        (_life, (50, 60), 3),
        (_neighbors, (9, 10, 11), 3),
        (_neighbors, (70,), 3),
        (lambda xp, x: xp.roll(x, 2, 0) - x, (7, 9), 1),
        (lambda xp, x: xp.roll(x.T, 2, 0) - x.T, (7, 9), 1),
        (lambda xp, x: xp.roll(x.T, 2, 1) - x.T, (7, 9), 2),
        (lambda xp, x: xp.roll(x, (2, 3), (0, 1)) - xp.roll(x, 4, 0), (7, 9), 2),
        (lambda xp, x: xp.roll(x[::-1], 2, 0) * x[:, ::-1], (7, 9), 1),
        (lambda xp, x: xp.concatenate([x[4:], x[:4]]) * x, (7, 9), 2),
        # Three jumps along one axis.
        (lambda xp, x: xp.concatenate([x[4:], x[2:4], x[:2]]) * x, (7, 9), 3),
        # Two operands that differ in nothing but their jump.
        (lambda xp, x: xp.concatenate([x[:4], x[:4]]) * x[:8], (9, 9), 2),
    ],
)
def test_a_kernel_reads_rolled_operands_by_index(
    compute: Any, shape: tuple[int, ...], launches: int
) -> None:
    step = _fused_step(compute, (_sample(shape, "f8") > 5).astype("i4"))
    assert len(step.launches) == launches
    assert len({id(launch.entry) for launch in step.launches}) == 1


def test_joined_arrays_are_operands_of_their_own() -> None:
    def compute(xp: Any, x: Any, y: Any) -> Any:
        return xp.concatenate([x, y]) * xp.concatenate([y, x])

    assert len(_fused_step(compute, _sample((5, 9), "f4"), _sample((5, 9), "f4")).launches) == 2


JOINS: dict[str, Any] = {
    "rows": lambda xp, x, y: xp.concatenate([x, y, x[:1]]),
    "columns": lambda xp, x, y: xp.concatenate([x, y], 1),
    "flat": lambda xp, x, y: xp.concatenate([x, y], None),
    "stacked": lambda xp, x, y: xp.stack([x, y, x], 1),
    "rolled": lambda xp, x, y: xp.roll(xp.concatenate([x[-2:], y, x[:0]]), 3, 0),
    "of rolled": lambda xp, x, y: xp.hstack([xp.roll(x, 1, 1), xp.roll(y, -1, (0))]),
    "by columns": lambda xp, x, y: xp.concatenate([x.T, y.T], 1),
    "computed": lambda xp, x, y: xp.concatenate([x + x, y[::-1]]),
    "repeated": lambda xp, x, y: xp.concatenate([x[:, :1].T, y[:1, :7], x[:, 1:2].T], 1),
}


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("dtypes", ["f4 f4", "i4 f8", "? u1", "f2 f4", "c8 f8"])
def test_joined_operands(backend: str, name: str, dtypes: str) -> None:
    first, second = (_sample((9, 12), dtype) for dtype in dtypes.split())
    x, y = dp.asarray(first), dp.asarray(second)
    found, expected = JOINS[name](dp, x, y), JOINS[name](np, first, second)
    _equal(found, expected)
    assert found.strides == expected.strides
    found = JOINS[name](dp, x, y)
    _equal(found + found[::-1], expected + expected[::-1])
    found = JOINS[name](dp, x, y)
    x[...] = 0
    _equal(found * 2, expected * 2)


COPIES: dict[str, Any] = {
    "whole": lambda xp, x: x.copy(),
    "rows in reverse": lambda xp, x: x[::-1].copy(),
    "every second row": lambda xp, x: x[::2].copy(),
    "a part": lambda xp, x: x[3:, 5:-7].copy(),
    "columns in reverse": lambda xp, x: x[:, ::-1].copy(),
    "transposed": lambda xp, x: xp.asarray(x.T, order="C", copy=True),
    "rolled": lambda xp, x: xp.roll(x, -5, 1),
    "joined": lambda xp, x: xp.concatenate([x, x[:3]]),
    "padded": lambda xp, x: xp.pad(x, 2, mode="wrap"),
}


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("shape", [(701, 1003), (1_000_001, 1), (40, 50, 601)])
def test_large_copies_on_several_threads(name: str, shape: tuple[int, ...]) -> None:
    host = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    _equal(COPIES[name](dp, dp.asarray(host)), COPIES[name](np, host))


def test_large_copies_of_overlapping_parts() -> None:
    host = np.arange(900_000, dtype="f8").reshape(900, 1000)
    x = dp.asarray(host)
    x[1:] = x[:-1]
    host[1:] = host[:-1].copy()
    _equal(x, host)
    x[:, 3:] = x[:, :-3]
    host[:, 3:] = host[:, :-3].copy()
    _equal(x, host)
