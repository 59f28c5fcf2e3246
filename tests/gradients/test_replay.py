"""``dp.jit`` of derivatives: recorded twice, then replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.exceptions import GradientError
from tests.gradients.test_programs import random_program

X = np.linspace(0.5, 2.0, 6)


def leaves(result: Any) -> list[Any]:
    if isinstance(result, dict):
        return leaves(list(result.values()))
    if isinstance(result, tuple | list):
        return [leaf for each in result for leaf in leaves(each)]
    return [np.asarray(result.asnumpy() if isinstance(result, dp.ndarray) else result)]


def check(plain: Callable[..., Any], *arguments: Callable[[int], Any]) -> Any:
    """Compare five calls with those of the function itself, for other values each."""
    compiled = dp.jit(plain)
    for seed in range(5):
        given = [make(seed) for make in arguments]
        for a, b in zip(leaves(compiled(*given)), leaves(plain(*given)), strict=True):
            assert a.shape == b.shape
            assert a.dtype == b.dtype
            assert np.allclose(a, b, rtol=1e-12, atol=1e-14)
    return compiled


def values(shape: Any = (6,)) -> Callable[[int], Any]:
    return lambda seed: dp.asarray(np.random.default_rng(seed).uniform(0.5, 2, shape))


def loss(x: Any) -> Any:
    return dp.mean((dp.sin(x) * dp.exp(-x * x) - 0.5) ** 2)


@pytest.mark.parametrize("shape", [(6,), (70_000,), (3, 4)])
@pytest.mark.parametrize("transform", [dp.grad, dp.value_and_grad], ids=["grad", "value_and_grad"])
def test_calls_are_replayed(transform: Any, shape: Any) -> None:
    assert check(transform(loss), values(shape)).programs == 1


def test_jacobians_and_hessians_are_replayed() -> None:
    check(dp.hessian(loss), values())
    check(dp.jacobian(lambda x: x[:3] * x[3:]), values())
    check(dp.grad(lambda x: dp.sum(dp.grad(lambda y: dp.sum(y**3))(x) ** 2)), values())
    check(dp.grad(dp.jit(loss)), values())
    check(dp.grad(lambda x: dp.sum(dp.jit(dp.grad(loss))(x) ** 2)), values())


def test_rules_of_arguments_that_are_not_differentiated_are_recorded() -> None:
    doubled = dp.custom_gradient(lambda x: (2 * x, lambda g: g))
    again = dp.checkpoint(lambda x: dp.sin(x) * x)
    check(dp.grad(lambda x, y: dp.sum(x * doubled(y) * again(y))), values(), values())


@dataclass
class Layer:
    w: Any
    b: Any


def test_trees_several_arguments_and_auxiliary_results() -> None:
    def f(layer: Layer, x: Any, scale: float) -> Any:
        y = dp.tanh(x @ layer.w + layer.b) * scale
        return dp.sum(y * y), {"y": y, "largest": dp.max(y)}

    def layer(seed: int) -> Layer:
        return Layer(values((4, 3))(seed), values((3,))(seed))

    plain = dp.value_and_grad(f, argnums=(0, 1), has_aux=True)
    compiled = dp.jit(plain)
    for seed in range(4):
        given = layer(seed), values((5, 4))(seed), 0.5
        (value, aux), (by_layer, by_x) = compiled(*given)
        (value2, aux2), (by_layer2, by_x2) = plain(*given)
        assert isinstance(by_layer, Layer)
        pairs = [(value, value2), (aux["y"], aux2["y"]), (aux["largest"], aux2["largest"])]
        pairs += [(by_layer.w, by_layer2.w), (by_layer.b, by_layer2.b), (by_x, by_x2)]
        for a, b in pairs:
            assert np.allclose(a.asnumpy(), b.asnumpy())
    compiled(layer(0), values((5, 4))(0), 0.25)
    assert compiled.programs == 2


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_are_replayed(seed: int) -> None:
    check(dp.value_and_grad(random_program(seed)), values((4, 5)))


def test_kernels_that_read_a_captured_array_leave_it_unchanged() -> None:
    total = dp.zeros(6)

    @dp.kernel
    def add(item: Any, x: Any, other: Any) -> None:
        i = item.get_id(0)
        if x[0] > 1e9:
            other[i] = 0.0

    def f(x: Any) -> Any:
        dp.call_kernel(add, dp.Range(6), dp.ones(6), total)
        return dp.sum(total * x + x)

    check(dp.grad(f), values())


def test_a_replay_makes_no_tape() -> None:
    f = dp.jit(dp.value_and_grad(loss))
    x = dp.asarray(X)
    for _ in range(2):
        f(x)
    f.__wrapped__ = None  # a replay does not call the function
    _, gradient = f(x)
    assert gradient.shape == x.shape


def test_results_are_arrays_of_their_own() -> None:
    f = dp.jit(dp.value_and_grad(lambda x: dp.sum(x * 3)))
    x = dp.asarray(X)
    for _ in range(4):
        _, gradient = f(x)
        assert gradient.tolist() == [3.0] * 6
        gradient += 1
    assert np.array_equal(x.asnumpy(), X)


def test_changed_names_are_seen() -> None:
    weight = dp.asarray(X)

    def f(x: Any) -> Any:
        return dp.sum(weight * x)

    gradient = dp.jit(dp.grad(f))
    for _ in range(3):
        assert np.allclose(gradient(dp.asarray(X)).asnumpy(), X)
    weight = dp.asarray(2 * X)
    assert np.allclose(gradient(dp.asarray(X)).asnumpy(), 2 * X)
    weight[...] = 7
    for _ in range(3):
        assert np.allclose(gradient(dp.asarray(X)).asnumpy(), 7)
    weight[2:] = 8
    assert gradient(dp.asarray(X)).tolist() == [7, 7, 8, 8, 8, 8]


class Model:
    def __init__(self, n: int) -> None:
        self.weights = [dp.full(n, 2.0), {"more": dp.full(n, 3.0)}]

    def loss(self, x: Any) -> Any:
        return dp.sum(self.weights[0] * 0.5 * x) + dp.sum(self.weights[1]["more"] * x)


@pytest.mark.parametrize("n", [6, 60_000, 300_000])  # The last are pending at first.
def test_changed_attributes_items_and_elements_are_seen(n: int) -> None:
    model = Model(n)
    x = dp.ones(n)
    for gradient in (dp.jit(dp.grad(model.loss)), dp.jit(dp.grad(lambda x: model.loss(x)))):
        model.__init__(n)  # type: ignore[misc]

        def agrees(expected: float, gradient: Any = gradient) -> None:
            for _ in range(3):
                assert np.allclose(gradient(x).asnumpy(), expected)

        agrees(4.0)
        model.weights[0] += 2
        agrees(5.0)
        model.weights[1]["more"] = dp.full(n, 5.0)
        agrees(7.0)
        model.weights[1]["more"][...] = 6.0
        agrees(8.0)
        model.weights = [dp.zeros(n), {"more": dp.zeros(n)}]
        agrees(0.0)


def test_functions_that_cannot_be_replayed_raise() -> None:
    random = dp.random.default_rng(0)

    def writes(x: Any, y: Any) -> Any:
        y += 1
        return dp.sum(x * y)

    x = dp.asarray(X)

    def thrice(f: Any) -> None:
        for _ in range(3):
            f(x)

    refused: list[tuple[Any, str]] = [
        (lambda x: dp.sum(x) if dp.sum(x) > 0 else dp.sum(x * x), "reads a value on the host"),
        (lambda x: float(dp.stop_gradient(dp.sum(x))) * dp.sum(x), "on the host"),
        (lambda x: dp.sum(x[x > 1]), "depends on values"),
        (lambda x: dp.sum(x[dp.nonzero(x)[0]]), "depends on values"),
        (lambda x: dp.sum(x * random.normal(size=6)), "random numbers"),
    ]
    for f, message in refused:
        compiled = dp.jit(dp.grad(f))
        with pytest.raises(GradientError, match=message):
            thrice(compiled)
    outer = dp.ones(6)

    def writes_outside(x: Any) -> Any:
        y = dp.sum(x * outer)
        outer[...] = 3
        return y

    with pytest.raises(GradientError, match="outside of it"):
        dp.jit(dp.grad(writes_outside))(x)
    with pytest.raises(GradientError, match="writes to an argument"):
        dp.jit(dp.grad(writes))(x, x.copy())


def test_a_decorated_derivative_is_not_replayed_as_the_derivative() -> None:
    import functools

    gradient = dp.grad(loss)

    @functools.wraps(gradient)
    def doubled(x: Any) -> Any:
        return 2 * gradient(x)

    x = dp.asarray(X)
    assert np.allclose(dp.jit(doubled)(x).asnumpy(), 2 * gradient(x).asnumpy())


def test_masks_are_combined_by_operators() -> None:
    def f(x: Any) -> Any:
        inside = (x > 0) & (x < 1)
        same = inside
        inside |= x > 5
        whole = dp.astype(x, "int64")
        bits = (whole << 1) + (1 << (whole & 3)) + (whole >> 1)
        return dp.sum(dp.where(same, x * x, 0) + dp.where(~inside ^ (x > 3), x, x**3) * bits)

    x = dp.asarray([-1.0, 0.5, 2.0, 7.0, 3.5])
    replayed = dp.jit(dp.grad(f))
    for _ in range(4):
        assert replayed(x).tolist() == dp.grad(f)(x).tolist()
    with pytest.raises(GradientError, match="bits of integers"):
        dp.grad(lambda x: dp.sum(x & 1))(x)
