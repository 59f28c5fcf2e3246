"""Derivatives of ``prange`` loops: by finite differences, and refusals with their lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._ir.instructions import walk
from dparray.gradients import kernels
from tests.gradients.test_rules import name_of, product, slope, weighted


@dp.jit
def squares(x: Any, out: Any) -> None:
    for i in dp.prange(x.size):
        out[i] = math.sin(x[i]) * x[i]


@dp.jit
def heat(u: Any, c: Any, k: Any) -> Any:
    v = u.copy()
    for i in dp.prange(1, u.shape[0] - 1):
        for j in dp.prange(1, u.shape[1] - 1):
            around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
            v[i, j] = u[i, j] + c[i, j] * k * (around - 4 * u[i, j])
    return v


@dp.jit
def total(x: Any, w: Any) -> Any:
    s, p = 0.5, 2.0
    for i in dp.prange(x.size):
        s += x[i] * x[i] * w[i]
        p *= 1 + 0.1 * x[i] * w[i]
    return s * p


@dp.jit
def least(x: Any, w: Any) -> Any:
    s = 1e9
    for i in dp.prange(x.size):
        s = min(s, x[i] * x[i] + w[i])
    return s


@dp.jit
def after(x: Any, w: Any) -> Any:
    s = dp.sum(x)
    for i in dp.prange(0, x.size, 2):
        if x[i] < 0.0:
            continue
        s -= x[i] ** 3 * w[i]
    return s


@dp.jit
def affine(x: Any, factors: Any) -> Any:
    y = np.empty_like(x)
    for i in dp.prange(x.size):
        y[i] = factors[0] * x[i] + factors[1][0] * factors[1][1]
    return y


@dp.jit
def by_rows(x: Any, w: Any) -> Any:
    y = np.zeros(x.shape)
    for i in dp.prange(x.shape[0]):
        y[i, :] = x[i, :] * w + np.sum(x[i, :] ** 2)
    return y


@dp.jit
def in_place(x: Any, w: Any) -> None:
    for i in dp.prange(1, x.size):
        x[i] = x[i] * math.exp(0.1 * x[i]) * w[i - 1]


@dp.jit
def leapfrog(u: Any, v: Any, h: Any) -> None:
    for i in dp.prange(1, u.size - 1):
        v[i] += h * math.sin(u[i - 1] - 2 * u[i] + u[i + 1]) * v[i]
    for i in dp.prange(u.size):
        u[i] += h * v[i] * u[i] ** 2


@dp.jit
def added(u: Any, v: Any) -> None:
    for i in dp.prange(1, u.size - 1):
        v[i] += 0.1 * u[i] * (u[i - 1] - 2 * u[i] + u[i + 1])


@dp.jit
def half_of_them(x: Any, first: Any, step: Any) -> None:
    for i in dp.prange(first, x.size, step):
        x[i] += x[i] ** 2


@dp.jit
def nearest(x: Any, w: Any) -> Any:
    at = np.zeros(x.size, dtype=np.int64)
    y = np.zeros_like(x)
    for i in dp.prange(x.size):
        for j in range(w.size):
            if abs(w[j] - x[i]) < abs(w[at[i]] - x[i]):
                at[i] = j
    for i in dp.prange(x.size):
        y[i] = x[i] * w[at[i]]
    return y


def of_squares(x: Any) -> Any:
    out = dp.zeros_like(x)
    squares(x, out)
    return out


def of_heat(u: Any, c: Any, k: Any) -> Any:
    for _ in range(3):
        u = heat(u, c, k)
    return u


def of_affine(x: Any, a: Any) -> Any:
    return affine(x, (a, (a * 2, dp.sum(x))))


def of_in_place(x: Any, w: Any) -> Any:
    x = x + 0 * w
    in_place(x, w)
    in_place(x[::2], w * x)
    return x


def of_leapfrog(u: Any, v: Any, h: Any) -> Any:
    u, v = u + dp.sum(v) * h * 0, v + dp.sum(u) * h * 0
    for _ in range(3):
        leapfrog(u, v, h)
    return u * v


def of_halves(x: Any) -> Any:
    x = x * 1
    half_of_them(x, 1, 2)
    half_of_them(x, x.size - 1, -3)
    half_of_them(x[4:], -2, 2)
    return x


_random = np.random.default_rng(0)


def _normal(*shape: int) -> Any:
    return _random.normal(size=shape)


CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (of_squares, (_normal(30),)),
    (of_heat, (_normal(8, 7), _normal(8, 7), 0.3)),
    (total, (_normal(30), _normal(30))),
    (total, (_normal(1500) * 0.1, _normal(1500))),
    (least, (_normal(30), _normal(30))),
    (after, (_normal(31), _normal(31))),
    (of_affine, (_normal(9), 1.5)),
    (by_rows, (_normal(6, 5), _normal(5))),
    (of_in_place, (_normal(10), _normal(10))),
    (of_leapfrog, (_normal(12), _normal(12), 0.1)),
    (of_halves, (_normal(11),)),
    (nearest, (_normal(11), _normal(3))),
]


@pytest.mark.parametrize(("f", "arguments"), CASES, ids=name_of)
def test_a_gradient_is_that_of_finite_differences(
    f: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    f = weighted(f)
    random = np.random.default_rng(2)
    inputs = [dp.asarray(x) for x in arguments]
    together = dp.grad(f, tuple(range(len(inputs))))(*inputs)
    for place, x in enumerate(arguments):
        along = random.normal(size=np.shape(x))

        def by_one(x: Any, place: int = place) -> Any:
            return f(*inputs[:place], x, *inputs[place + 1 :])

        expected = slope(by_one, [np.asarray(x)], [along], 1e-6)
        for gradient in (together[place], dp.grad(f, place)(*inputs)):
            assert np.isclose(product([gradient], [along]), expected, rtol=1e-6, atol=1e-7), place


def test_second_derivatives_forward_mode_and_replays() -> None:
    x, h = dp.asarray(_normal(6)), dp.asarray(_normal(6))
    for f in (of_squares, lambda x: of_leapfrog(x, x * 2, 0.1), lambda x: after(x, dp.sin(x))):
        gradient = dp.grad(weighted(f))
        pair = [gradient(x + sign * 1e-6 * h).asnumpy() for sign in (1, -1)]
        _, found = dp.jvp(gradient, (x,), (h,))
        np.testing.assert_allclose(found.asnumpy(), (pair[0] - pair[1]) / 2e-6, 1e-5, 1e-6)
        fast = dp.jit(gradient)
        for _ in range(3):
            np.testing.assert_allclose(fast(x).asnumpy(), gradient(x).asnumpy())
            x = x + 1


@pytest.mark.parametrize("f", [of_squares, of_halves, lambda x: total(x, dp.sin(x))])
def test_elements_of_one_iteration_need_no_atomic_addition(
    f: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    plain = kernels.AdjointKernel._made
    monkeypatch.setattr(
        kernels.AdjointKernel, "_made", lambda *given: made.append(plain(*given)) or made[-1]
    )
    dp.grad(weighted(f))(dp.asarray(_normal(11), dtype="float32"))
    assert made
    for op in walk([op for each in made for op in each.function.body]):
        assert op.name != "atomic" or op.attribute[1] == "work_item"


def test_stencils_added_to_an_array_are_gathers(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(u: Any) -> Any:
        v = u.copy()
        added(u, v)
        return v

    sums = []
    scatter = kernels.AdjointForm.scatter
    monkeypatch.setattr(
        kernels.AdjointForm, "scatter", lambda *given: sums.append(given[-1]) or scatter(*given)
    )
    x, h = _normal(12), _normal(12)
    gradient = dp.grad(weighted(f))(dp.asarray(x))
    assert sums == [[]]  # only the cotangent of what was there before
    assert np.isclose(product([gradient], [h]), slope(weighted(f), [x], [h], 1e-6), rtol=1e-6)


def test_arrays_are_read_as_they_were() -> None:
    def f(x: Any, y: Any) -> Any:
        z = of_squares(x)
        y[...] = 0.0
        return dp.sum(z * z) + dp.sum(y)

    def both(x: Any, y: Any) -> Any:
        def inner(y: Any) -> Any:
            z = dp.zeros_like(y)
            squares(x, z)
            x[...] = 0.0
            return dp.sum(z * y)

        return dp.sum(dp.grad(inner)(y) ** 2)

    x, y = dp.asarray(_normal(5)), dp.asarray(_normal(5))
    expected = dp.grad(lambda x: dp.sum((dp.sin(x) * x) ** 2))(x).asnumpy()
    np.testing.assert_allclose(dp.grad(f)(x, y.copy()).asnumpy(), expected)
    assert not x.is_pending
    np.testing.assert_allclose(dp.grad(both)(x, y).asnumpy(), expected)


def test_loops_without_iterations_and_without_differentiated_arrays() -> None:
    def f(x: Any) -> Any:
        known = dp.ones(3)
        squares(known, known)
        return dp.sum(x) * dp.sum(known) + total(x[:0], x[:0])

    assert np.allclose(dp.grad(f)(dp.ones(2)).asnumpy(), 3 * np.sin(1.0))


FACTOR = 2.0


@dp.jit
def scaled(x: Any) -> Any:
    y = dp.zeros_like(x)
    for i in dp.prange(x.size):
        y[i] = FACTOR * x[i]
    return dp.sum(y)


def test_a_changed_global_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dp.grad(scaled)(dp.ones(2)).tolist() == [2.0, 2.0]
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert dp.grad(scaled)(dp.ones(2)).tolist() == [5.0, 5.0]


@dp.jit
def gamma(x: Any, y: Any) -> None:
    for i in dp.prange(x.size):
        y[i] = math.lgamma(x[i])


@dp.jit
def twice(x: Any, y: Any) -> None:
    for i in dp.prange(x.size):
        y[i] = x[i]
        y[i] = y[i] * y[i]


@dp.jit
def from_value(x: Any, y: Any) -> Any:
    s = y[0]
    for i in dp.prange(x.size):
        s = max(s, x[i])
    return s


@dp.jit
def of_rows(x: Any, y: Any) -> None:
    s = y * 0
    for i in dp.prange(x.size):
        s += x[i] * np.arange(3)


@dp.jit
def with_plain_function(x: Any, y: Any) -> None:
    for i in dp.prange(x.size):
        y[i] = weighted(x[i])


REFUSED: list[tuple[Any, Callable[[Any], Any], str, str]] = [
    (gamma, lambda x: x * 2, "y[i] = math.lgamma(x[i])", "calls math.lgamma"),
    (twice, lambda x: x * 2, "y[i] = y[i] * y[i]", "needs the old value"),
    (squares, lambda x: dp.zeros(3), "out[i] = math.sin", "not differentiated\n"),
    (squares, lambda x: x[::-1], "out[i] = math.sin", "shares its memory"),
    (from_value, lambda x: x * 2, "for i in dp.prange", "a reduction starts from, has a gradient"),
    (of_rows, lambda x: x * 2, "for i in dp.prange", "it has no kernel: s is an array"),
    (with_plain_function, lambda x: x * 2, "y[i] = weighted(x[i])", "@dp.device_func"),
]


@pytest.mark.parametrize(("f", "other", "line", "reason"), REFUSED, ids=name_of)
def test_a_loop_without_a_derivative_is_refused_with_its_line_before_it_runs(
    f: Any,
    other: Callable[[Any], Any],
    line: str,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launches: list[Any] = []
    monkeypatch.setattr(kernels.KernelFunction, "_launch", lambda *given: launches.append(given))

    def value(x: Any) -> Any:
        y = other(x)
        f(x, y)
        return dp.sum(y)

    with pytest.raises(dp.GradientError) as caught:
        dp.grad(value)(dp.asarray(_normal(3)))
    assert line in str(caught.value)
    assert reason in str(caught.value)
    assert f.__name__ in str(caught.value)
    assert not launches


def test_wrong_arguments_have_the_errors_of_the_function() -> None:
    gradient = dp.grad(lambda x, w: dp.sum(affine(x, w)))
    x = dp.ones(3)
    with pytest.raises(dp.exceptions.HostConversionError, match="affine: argument 'factors' is a"):
        gradient(x, np.ones(3))
    with pytest.raises(dp.exceptions.KernelArgumentError, match="affine: argument 'factors' is a"):
        gradient(x, [1.0, 2.0])
    with pytest.raises(dp.exceptions.ExecutionPlacementError, match="affine: the arrays are not"):
        gradient(x, dp.ones(3, device=dp.default_device().new_queue()))
