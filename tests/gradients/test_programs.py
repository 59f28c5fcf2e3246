"""Whole programs, and random ones: gradients by differences and by forward mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.gradients.trees import flatten, mapped, unflatten
from tests.gradients.programs import PROGRAMS, cross_entropy_of_a_network, rosenbrock

pytestmark = pytest.mark.usefixtures("without_kernels")


def on_device(tree: Any) -> Any:
    return mapped(dp.asarray, tree)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.sample(20)
def test_programs(name: str) -> None:
    function, arguments, count = PROGRAMS[name]
    random = np.random.default_rng(3)
    chosen, rest = list(arguments[:count]), [on_device(x) for x in arguments[count:]]
    points, structure = flatten(chosen)
    along = [random.normal(size=x.shape) for x in points]

    def value(step: float) -> float:
        moved = [x + step * d for x, d in zip(points, along, strict=True)]
        return float(function(*on_device(unflatten(structure, moved)), *rest))

    result, gradients = dp.value_and_grad(function, tuple(range(count)))(*on_device(chosen), *rest)
    assert float(result) == pytest.approx(value(0.0), rel=1e-12)
    pairs = zip(flatten(gradients)[0], along, strict=True)
    reverse = sum(float(np.sum(g.asnumpy() * d)) for g, d in pairs)
    expected = (value(1e-6) - value(-1e-6)) / 2e-6
    assert reverse == pytest.approx(expected, rel=2e-6, abs=1e-6)
    tangents = on_device(unflatten(structure, along))
    _, forward = dp.jvp(lambda *xs: function(*xs, *rest), on_device(chosen), tangents)
    assert float(forward) == pytest.approx(reverse, rel=1e-9)


def test_scipy_minimizes_with_gradients_and_hessians() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    both = dp.value_and_grad(rosenbrock)

    def on_host(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = both(dp.asarray(x))
        return float(value), gradient.asnumpy()

    found = optimize.minimize(on_host, np.zeros(6), jac=True, method="L-BFGS-B")
    assert np.allclose(found.x, 1, atol=1e-3)
    hessian = dp.hessian(rosenbrock)
    found = optimize.minimize(
        on_host,
        np.zeros(6),
        jac=True,
        hess=lambda x: hessian(dp.asarray(x)).asnumpy(),
        method="Newton-CG",
    )
    assert np.allclose(found.x, 1, atol=1e-3)


def test_a_network_learns() -> None:
    layers, x, labels = map(on_device, PROGRAMS["cross_entropy_of_a_network"].arguments)
    step = dp.value_and_grad(cross_entropy_of_a_network)
    losses = []
    for _ in range(60):
        loss, gradients = step(layers, x, labels)
        losses.append(float(loss))
        layers = [
            (w - 0.5 * dw, b - 0.5 * db) for (w, b), (dw, db) in zip(layers, gradients, strict=True)
        ]
    assert losses[-1] < 0.8 * losses[0]


# -- random programs ------------------------------------------------------------------------------


def random_program(seed: int) -> Callable[[Any], Any]:
    """Return a program of 3 to 12 random statements on arrays of shape (4, 5)."""
    random = np.random.default_rng(seed)
    weights = [dp.asarray(random.uniform(0.5, 1.5, (4, 5))) for _ in range(3)]
    mask = dp.asarray(random.random((4, 5)) > 0.4)
    at = dp.asarray(random.integers(0, 4, 3))
    square = dp.asarray(random.normal(size=(5, 5)) / 3)
    kinds = random.integers(0, len(STATEMENTS), random.integers(3, 13))
    numbers = random.integers(0, 3, (len(kinds), 2))

    def run(x: Any) -> Any:
        arrays = [x * weights[0], dp.sin(x), dp.zeros_like(x) + 0.5]
        for kind, (i, j) in zip(kinds, numbers, strict=True):
            new = STATEMENTS[kind](arrays[i], arrays[j], mask, at, square)
            if new is not None:
                arrays[(i + 1) % 3] = dp.tanh(new)
        return sum(dp.sum(y * w) for y, w in zip(arrays, weights, strict=True))

    return run


def _write_slice(a: Any, b: Any, *_: Any) -> None:
    a[1:3] = b[:2] * 2


def _add_to_slice(a: Any, b: Any, *_: Any) -> None:
    a[:, 1:-1] += 0.3 * (b[:, :-2] - b[:, 2:])


def _write_mask(a: Any, b: Any, mask: Any, *_: Any) -> None:
    a[mask] = b[mask] * 0.5


def _write_rows(a: Any, b: Any, mask: Any, at: Any, *_: Any) -> None:
    a[at] = b[:3]


def _write_view(a: Any, b: Any, *_: Any) -> None:
    view = a.T[1:3]
    view *= 0.5
    view += b.T[:2]


def _write_reversed(a: Any, b: Any, *_: Any) -> None:
    view = a[::-1, ::2]
    view[0] = b[1, :3]
    a += view[1, 0]


def _in_place(a: Any, b: Any, *_: Any) -> None:
    a -= b * 0.25


STATEMENTS: list[Callable[..., Any]] = [
    *(_write_slice, _add_to_slice, _write_mask, _write_rows, _write_view, _write_reversed),
    _in_place,
    lambda a, b, *_: a * b,
    lambda a, b, *_: a + b[::-1],
    lambda a, b, *_: a / (b * b + 1),
    lambda a, b, mask, *_: dp.where(mask, a, b),
    lambda a, b, mask, at, *_: dp.sum(a[at], axis=0) * b,
    lambda a, b, mask, at, square: a @ square,
    lambda a, b, *_: dp.cumsum(a, axis=1) - dp.mean(b, axis=0),
    lambda a, b, *_: dp.concatenate([a[:2], b[2:]]),
    lambda a, b, *_: dp.exp(-a * a) * dp.maximum(b, 0.1),
    lambda a, b, *_: dp.roll(a, 2, axis=1) + dp.reshape(dp.reshape(b, (5, 4)).T.copy(), (4, 5)),
    lambda a, b, *_: dp.max(a, axis=0) * b + dp.var(b + 2 * a),
    lambda a, b, *_: dp.pad(a[1:, :-1], ((1, 0), (0, 1))) * b,
    lambda a, b, *_: dp.sort(a + b, axis=0),
    lambda a, b, *_: dp.sqrt(dp.abs(a) + 1) * dp.arctan(b),
]


def check_random(seed: int) -> None:
    run = random_program(seed)
    random = np.random.default_rng(seed)
    x, d = random.normal(size=(4, 5)), random.normal(size=(4, 5))
    point, along = dp.asarray(x), dp.asarray(d)
    value, gradient = dp.value_and_grad(run)(point)
    reverse = float(np.sum(gradient.asnumpy() * d))
    result, forward = dp.jvp(run, (point,), (along,))
    plain = float(run(dp.asarray(x)))
    assert float(value) == pytest.approx(plain, rel=1e-12), seed
    assert float(result) == pytest.approx(plain, rel=1e-12), seed
    assert float(forward) == pytest.approx(reverse, rel=1e-8, abs=1e-9), seed
    # Near a kink of `max`, `sort` or `abs`, a smaller step is needed.
    steps = [1e-6, 1e-7]
    slopes = [
        (float(run(dp.asarray(x + h * d))) - float(run(dp.asarray(x - h * d)))) / (2 * h)
        for h in steps
    ]
    assert any(reverse == pytest.approx(s, rel=2e-5, abs=2e-5) for s in slopes), (seed, slopes)


@pytest.mark.parametrize("count", [25, pytest.param(250, marks=pytest.mark.slow)])
@pytest.mark.parametrize("part", range(8))
def test_random_programs(part: int, count: int) -> None:
    for seed in range(part * 250, part * 250 + count):
        check_random(seed)
