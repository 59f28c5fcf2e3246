"""The transformations: structures of arguments, nesting, threads, auxiliary results, errors."""

from __future__ import annotations

import collections
import dataclasses
import math
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

import dparray as dp
from dparray.exceptions import ExecutionPlacementError, GradientError


def array(*values: float) -> Any:
    return dp.asarray(list(values))


def test_value_and_gradient() -> None:
    value, gradient = dp.value_and_grad(lambda x: dp.sum(x**2))(array(1.0, 2.0))
    assert float(value) == 5.0
    assert gradient.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
def test_gradients_have_dtype_placement_and_shape_of_their_inputs(
    dtype: str, usm_type: str
) -> None:
    x = dp.ones((2, 3), dtype=dtype, usm_type=usm_type)
    gradient = dp.grad(lambda x: dp.sum(dp.abs(x * 2.5) ** 2))(x)
    assert (gradient.dtype, gradient.shape) == (x.dtype, x.shape)
    assert (gradient.queue, gradient.usm_type) == (x.queue, usm_type)


def test_gradients_stay_on_the_queue_of_their_inputs() -> None:
    queue = dp.default_device().new_queue()
    x = dp.ones(3, device=queue)
    f = lambda x: dp.mean(dp.sin(x) * x[::-1])  # noqa: E731
    assert dp.grad(f)(x).queue == x.queue
    assert dp.jvp(f, (x,), (x,))[1].queue == x.queue
    assert dp.hessian(f)(x).queue == x.queue
    with pytest.raises(ExecutionPlacementError):
        dp.grad(lambda x: dp.sum(x * dp.ones(3)))(x)


def test_argnums_select_arguments() -> None:
    f = lambda x, y, z: dp.sum(x * y) * z  # noqa: E731
    x, y = array(1.0, 2.0), array(3.0, 4.0)
    assert dp.grad(f, 1)(x, y, 2.0).tolist() == [2.0, 4.0]
    of_x, of_z = dp.grad(f, (0, 2))(x, y, 2.0)
    assert of_x.tolist() == [6.0, 8.0]
    assert of_z.item() == 11.0
    assert dp.grad(f, -1)(x, y, 2.0).item() == 11.0
    assert dp.grad(lambda x, *, k: dp.sum(x) * k)(x, k=3.0).tolist() == [3.0, 3.0]


def test_auxiliary_results_are_returned() -> None:
    def f(x: Any) -> Any:
        y = dp.sin(x)
        return dp.sum(y), {"y": y, "text": "unchanged"}

    x = array(0.5, 1.0)
    (value, aux), gradient = dp.value_and_grad(f, has_aux=True)(x)
    assert float(value) == pytest.approx(math.sin(0.5) + math.sin(1.0))
    assert np.allclose(aux["y"].asnumpy(), np.sin([0.5, 1.0]))
    assert aux["text"] == "unchanged"
    assert np.allclose(gradient.asnumpy(), np.cos([0.5, 1.0]))
    found, aux = dp.grad(f, has_aux=True)(x)
    assert np.allclose(found.asnumpy(), gradient.asnumpy())
    _, pull, more = dp.vjp(f, x, has_aux=True)
    assert more["text"] == "unchanged"
    assert np.allclose(pull(dp.asarray(1.0))[0].asnumpy(), np.cos([0.5, 1.0]))
    with pytest.raises(GradientError, match="has_aux"):
        dp.grad(lambda x: dp.sum(x), has_aux=True)(x)


def test_all_transformations_return_auxiliary_results() -> None:
    def f(x: Any) -> Any:
        return x**3, {"twice": 2 * x, "text": "unchanged"}

    x, t = array(1.0, 2.0), array(1.0, 10.0)
    total = lambda x: (dp.sum(f(x)[0]), f(x)[1])  # noqa: E731
    J, of_jacobian = dp.jacobian(f, has_aux=True)(x)
    columns, of_columns = dp.jacobian(lambda x: (f(x)[0][None] * t[:, None], f(x)[1]), 0, True)(x)
    H, of_hessian = dp.hessian(total, has_aux=True)(x)
    value, slope, of_jvp = dp.jvp(f, (x,), (t,), has_aux=True)
    result, derivative, of_linearize = dp.linearize(f, x, has_aux=True)
    assert J.tolist() == [[3.0, 0.0], [0.0, 12.0]]
    assert columns.tolist() == [J.tolist(), (10 * J).tolist()]
    assert H.tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert value.tolist() == result.tolist() == [1.0, 8.0]
    assert slope.tolist() == derivative(t).tolist() == [3.0, 120.0]
    for aux in (of_jacobian, of_columns, of_hessian, of_jvp, of_linearize):
        assert aux["twice"].tolist() == [2.0, 4.0]
        assert aux["text"] == "unchanged"
    for transform in (dp.jacobian, dp.hessian):
        with pytest.raises(GradientError, match="has_aux"):
            transform(dp.sum, has_aux=True)(x)


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass
class Layer:
    weights: Any
    bias: Any
    name: str = dataclasses.field(default="", metadata={"static": True})


def test_arguments_may_be_trees() -> None:
    tree = {
        "layers": [Layer(array(1.0, 2.0), array(3.0), "one"), Pair(array(2.0), (array(4.0), None))],
        "scale": 2.0,
    }

    def f(tree: Any) -> Any:
        layer, pair = tree["layers"]
        inner = dp.sum(layer.weights**2) + dp.sum(layer.bias) * pair.first[0]
        return tree["scale"] * inner + dp.sum(pair.second[0])

    gradient = dp.grad(f)(tree)
    layer, pair = gradient["layers"]
    assert isinstance(layer, Layer)
    assert isinstance(pair, Pair)
    assert layer.name == "one"
    assert layer.weights.tolist() == [4.0, 8.0]
    assert layer.bias.tolist() == [4.0]
    assert pair.first.tolist() == [6.0]
    assert pair.second[0].tolist() == [1.0]
    assert pair.second[1] is None
    assert gradient["scale"].item() == 11.0


def test_trees_are_compared_by_their_names() -> None:
    x, zero = array(1.0, 2.0), array(0.0, 0.0)
    _, pull = dp.vjp(lambda x: {"a": 2 * x, "b": [3 * x, None]}, x)
    assert pull({"b": [x, None], "a": zero})[0].tolist() == [3.0, 6.0]
    f = lambda tree: 2 * tree["a"] + tree["b"]  # noqa: E731
    assert dp.jvp(f, ({"a": x, "b": x},), ({"b": zero, "a": x},))[1].tolist() == [2.0, 4.0]
    _, derivative = dp.linearize(f, {"a": x, "b": x})
    assert derivative({"b": zero, "a": x}).tolist() == [2.0, 4.0]
    rule = lambda tree: (f(tree), lambda g: {"b": g, "a": 2 * g})  # noqa: E731
    gradient = dp.grad(lambda tree: dp.sum(dp.custom_gradient(rule)(tree)))({"a": x, "b": x})
    assert gradient["a"].tolist() == [2.0, 2.0]
    known = collections.defaultdict(list, b=x, a=x)
    gradient = dp.grad(lambda tree: dp.sum(f(tree)))(known)
    assert (type(gradient), gradient.default_factory) == (collections.defaultdict, list)
    assert gradient["a"].tolist() == [2.0, 2.0]


def test_numbers_become_arrays() -> None:
    queue = dp.default_device().new_queue()
    x = dp.asarray(2.0, device=queue)
    value, pull = dp.vjp(lambda x: (x**3, 1.5), x)
    assert value[1].device == queue
    assert pull((1.0, 0.0))[0].item() == 12.0
    assert dp.jvp(lambda x: x**3, (x,), (1.0,))[1].item() == 12.0
    gradient = dp.grad(lambda tree: tree[0] * tree[1])([np.float32(2.0), np.float64(3.0)])
    assert [g.dtype for g in gradient] == [np.float32, np.float64]
    assert dp.jacobian(lambda x: 2.0)(dp.ones(2)).tolist() == [0.0, 0.0]


def test_second_and_third_derivatives() -> None:
    f = lambda x: x**4  # noqa: E731
    second = dp.grad(dp.grad(f))
    assert second(2.0).item() == pytest.approx(48.0)
    assert dp.grad(second)(2.0).item() == pytest.approx(48.0)
    assert dp.jvp(dp.grad(f), (2.0,), (1.0,))[1].item() == pytest.approx(48.0)
    along = lambda x: dp.jvp(f, (x,), (dp.ones_like(x),))[1]  # noqa: E731
    assert dp.grad(along)(2.0).item() == pytest.approx(48.0)
    assert dp.jvp(along, (2.0,), (1.0,))[1].item() == pytest.approx(48.0)


def test_levels_are_not_confused() -> None:
    # d/dx (x * d/dy (x + y)) = 1, the classical test of nested forward mode.
    inner = lambda x: x * dp.jvp(lambda y: x + y, (1.0,), (1.0,))[1]  # noqa: E731
    assert dp.jvp(inner, (1.0,), (1.0,))[1].item() == 1.0
    outer = lambda x: x * dp.grad(lambda y: x * y)(3.0)  # noqa: E731
    assert dp.grad(outer)(2.0).item() == 4.0


def test_threads_do_not_share_levels() -> None:
    f = lambda x: dp.sum(dp.sin(x) * x)  # noqa: E731
    wrong = []

    def work(number: int) -> None:
        x = array(float(number), 0.5)
        for _ in range(20):
            gradient = dp.grad(lambda x: dp.sum(dp.grad(f)(x) ** 2))(x).asnumpy()
            v = x.asnumpy()
            expected = 2 * (np.cos(v) * v + np.sin(v)) * (2 * np.cos(v) - v * np.sin(v))
            if not np.allclose(gradient, expected):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_vjp_takes_and_returns_trees() -> None:
    f = lambda x, y: {"product": x * y, "sums": (dp.sum(x), y)}  # noqa: E731
    value, pull = dp.vjp(f, array(1.0, 2.0), array(3.0, 4.0))
    assert value["product"].tolist() == [3.0, 8.0]
    g = {"product": array(1.0, 10.0), "sums": (dp.asarray(2.0), array(0.0, 5.0))}
    for _ in range(2):  # the tape stays
        of_x, of_y = pull(g)
        assert of_x.tolist() == [5.0, 42.0]
        assert of_y.tolist() == [1.0, 25.0]


def test_jvp_takes_and_returns_trees() -> None:
    f = lambda pair: [pair[0] * pair[1], dp.sum(pair[0])]  # noqa: E731
    value, slope = dp.jvp(
        f, ((array(1.0, 2.0), array(3.0, 4.0)),), ((array(1.0, 0.0), array(0.0, 1.0)),)
    )
    assert value[0].tolist() == [3.0, 8.0]
    assert slope[0].tolist() == [3.0, 2.0]
    assert slope[1].item() == 1.0


def test_linearize_runs_the_function_once() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return dp.stack([x[0] * x[1], dp.sin(x[0])])

    x = array(0.5, 2.0)
    value, derivative = dp.linearize(f, x)
    for t in (array(1.0, 0.0), array(0.3, -1.0)):
        assert np.allclose(derivative(t).asnumpy(), dp.jacobian(f)(x).asnumpy() @ t.asnumpy())
    assert value.tolist() == [1.0, math.sin(0.5)]


@pytest.mark.parametrize("count", [2, 7])
def test_jacobians_of_few_and_many_results(count: int) -> None:
    A = np.random.default_rng(0).normal(size=(count, 4))
    x = np.random.default_rng(1).normal(size=4)
    J = dp.jacobian(lambda x: dp.asarray(A) @ dp.sin(x))(dp.asarray(x))
    assert np.allclose(J.asnumpy(), A * np.cos(x))


def test_jacobians_of_trees() -> None:
    f = lambda tree, k: {"a": tree["x"] * k, "b": dp.sum(tree["x"] ** 2) * tree["y"]}  # noqa: E731
    J = dp.jacobian(f)({"x": array(1.0, 2.0), "y": array(3.0)}, 2.0)
    assert J["a"]["x"].tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert J["a"]["y"].tolist() == [[0.0], [0.0]]
    assert J["b"]["x"].tolist() == [[6.0, 12.0]]
    assert J["b"]["y"].tolist() == [[5.0]]
    of_x, of_y = dp.jacobian(lambda x, y: x * y, (0, 1))(array(1.0, 2.0), array(3.0, 4.0))
    assert of_x.tolist() == [[3.0, 0.0], [0.0, 4.0]]
    assert of_y.tolist() == [[1.0, 0.0], [0.0, 2.0]]


def test_hessians() -> None:
    f = lambda x, y: dp.sum(x**2 * y) + x[0] * x[1]  # noqa: E731
    x, y = array(1.0, 2.0), array(3.0, 4.0)
    H = dp.hessian(f)(x, y)
    assert H.tolist() == [[6.0, 1.0], [1.0, 8.0]]
    rows = dp.hessian(f, (0, 1))(x, y)
    assert rows[0][0].tolist() == H.tolist()
    assert rows[0][1].tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert rows[1][0].tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert rows[1][1].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert dp.hessian(lambda x: dp.sum(x**2))(dp.ones((0, 3))).shape == (0, 3, 0, 3)
    assert dp.jacobian(lambda x: dp.sum(x) + dp.ones(2))(dp.ones(0)).shape == (2, 0)
    product = dp.hvp(lambda x: f(x, y), x, array(1.0, -1.0))
    assert product.tolist() == [5.0, -7.0]


def test_a_result_that_does_not_depend_on_an_argument_has_the_gradient_zero() -> None:
    assert dp.grad(lambda x: dp.sum(dp.ones(3)))(array(1.0)).tolist() == [0.0]
    assert dp.grad(lambda x: 2.0)(array(1.0)).tolist() == [0.0]
    assert dp.grad(lambda x, y: dp.sum(y), (0, 1))(array(1.0), array(2.0))[0].tolist() == [0.0]


def test_stop_gradient() -> None:
    assert dp.grad(lambda x: x * dp.stop_gradient(x))(3.0).item() == 3.0
    f = lambda x: x * float(dp.stop_gradient({"a": [x]})["a"][0])  # noqa: E731
    assert dp.grad(f)(3.0).item() == 3.0
    assert dp.jvp(lambda x: dp.stop_gradient(x), (3.0,), (1.0,))[1].item() == 0.0
    x = array(1.0)
    assert dp.stop_gradient(x) is x


def test_gradients_are_arrays_of_their_own() -> None:
    first, second = dp.grad(lambda x, y: dp.sum(x + y), (0, 1))(array(1.0, 2.0), array(3.0, 4.0))
    first += 5
    assert second.tolist() == [1.0, 1.0]
    x = array(1.0, 2.0)
    y, pull = dp.vjp(dp.exp, x)
    y[...] = 0
    x[...] = 0
    assert np.allclose(pull(array(1.0, 1.0))[0].asnumpy(), np.exp([1.0, 2.0]))


def test_the_arguments_are_not_changed() -> None:
    x = array(1.0, 2.0)

    def f(x: Any) -> Any:
        x *= 3
        x[0] = 0
        return dp.sum(x**2)

    assert dp.grad(f)(x).tolist() == [0.0, 36.0]
    assert dp.jvp(f, (x,), (array(1.0, 1.0),))[1].item() == 36.0
    assert x.tolist() == [1.0, 2.0]


# -- custom_gradient and checkpoint ---------------------------------------------------------------


@dp.custom_gradient
def clipped(x: Any) -> Any:
    return x * 1.0, lambda g: dp.clip(g, -1.0, 1.0)


@dp.custom_gradient
def product(x: Any, y: Any) -> Any:
    return x * y, lambda g: (g * y, g * x)


def test_a_function_with_its_own_gradient() -> None:
    f = lambda x: dp.sum(clipped(x) * array(5.0, 0.5))  # noqa: E731
    assert dp.grad(f)(array(1.0, 2.0)).tolist() == [1.0, 0.5]
    assert clipped(array(2.0)).tolist() == [2.0]
    of_x, of_y = dp.grad(lambda x, y: dp.sum(product(x, y) ** 2), (0, 1))(array(2.0), array(3.0))
    assert (of_x.item(), of_y.item()) == (36.0, 24.0)


def test_its_forward_mode_transposes_the_rule() -> None:
    x, y = array(2.0, 5.0), array(3.0, 4.0)
    value, slope = dp.jvp(product, (x, y), (array(1.0, 0.0), array(0.0, 1.0)))
    assert value.tolist() == [6.0, 20.0]
    assert slope.tolist() == [3.0, 5.0]
    H = dp.hessian(lambda x: dp.sum(product(x, x)))(x)
    assert H.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert dp.grad(dp.grad(lambda x: product(x, x)))(3.0).item() == 2.0


def test_rules_that_do_not_fit_raise() -> None:
    wrong = dp.custom_gradient(lambda x, y: (x * y, lambda g: g))
    with pytest.raises(GradientError, match="1 cotangents for 2 arguments"):
        dp.grad(lambda x: dp.sum(wrong(x, x)))(array(1.0))
    for rule, message in (
        (lambda g: g[:1], r"has shape \(1,\)"),
        (lambda g: 3.0, r"has shape \(\)"),
        (lambda g: np.ones(2), r"is a numpy\.ndarray; it must be an array"),
    ):
        unfit = dp.custom_gradient(lambda x, rule=rule: (x * 2, rule))
        with pytest.raises(GradientError, match=message):
            dp.grad(lambda x, f=unfit: dp.sum(f(x)))(array(1.0, 2.0))

    def captures(x: Any) -> Any:
        inner = dp.custom_gradient(lambda y: (y * x, lambda g: g * x))
        return dp.sum(inner(array(1.0)) + inner(x))

    with pytest.raises(GradientError, match="not an argument"):
        dp.grad(captures)(array(2.0))


def test_checkpoint_computes_again() -> None:
    calls = []

    def layer(x: Any, scale: float) -> Any:
        calls.append(1)
        return dp.tanh(dp.cumsum(x) * scale)

    def f(x: Any, layer: Any) -> Any:
        for _ in range(3):
            x = layer(x, 0.5)
        return dp.sum(x**2)

    x = dp.asarray(np.linspace(-1, 1, 7))
    plain = dp.grad(f)(x, layer).asnumpy()
    calls.clear()
    assert np.allclose(dp.grad(f)(x, dp.checkpoint(layer)).asnumpy(), plain)
    assert len(calls) == 6
    H = dp.hessian(f)(x, layer).asnumpy()
    assert np.allclose(dp.hessian(f)(x, dp.checkpoint(layer)).asnumpy(), H)
    assert dp.checkpoint(layer)(x, 0.5).shape == (7,)


def test_checkpoint_refuses_captured_arrays() -> None:
    def f(x: Any) -> Any:
        return dp.sum(
            dp.checkpoint(lambda y: y * x)(array(1.0)) + dp.checkpoint(lambda y: y * x)(x)
        )

    with pytest.raises(GradientError, match="not an argument"):
        dp.grad(f)(array(2.0))


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dp.grad(dp.sum)(dp.arange(3)), "dtype int64"),
        (lambda: dp.grad(dp.sum)(dp.asarray([True])), "dtype bool"),
        (lambda: dp.grad(dp.sum)(np.ones(3)), "numpy.ndarray"),
        (lambda: dp.grad(lambda x, n: dp.sum(x) * n, 1)(dp.ones(2), 3), "int"),
        (lambda: dp.grad(dp.sum, 2)(dp.ones(2)), "argnums"),
        (lambda: dp.grad(lambda x: x)(dp.ones(2)), r"shape \(2,\)"),
        (lambda: dp.grad(lambda x: x[:1])(dp.ones(2)), r"shape \(1,\)"),
        (lambda: dp.grad(lambda x: dp.sum(x * 1j))(dp.ones(2)), "complex"),
        (lambda: dp.grad(lambda x: "text")(dp.ones(2)), "returned a str"),
        (lambda: dp.grad(lambda x: None)(dp.ones(2)), "NoneType"),
        (lambda: dp.grad(lambda t: 0.0)([]), "no arrays"),
        (lambda: dp.vjp(dp.sin, dp.ones(2))[1](dp.ones(3)), r"shape \(3,\)"),
        (lambda: dp.vjp(dp.sin, dp.ones(2))[1]([dp.ones(2)] * 2), "2 cotangents"),
        (lambda: dp.jvp(dp.sin, (dp.ones(2),), (dp.ones(3),)), r"shape \(3,\)"),
        (lambda: dp.jvp(dp.sin, (dp.ones(2),), ()), "0 tangents"),
        (lambda: dp.jvp(dp.sin, dp.ones(2), dp.ones(2)), "must be tuples"),
        (lambda: dp.jvp(dp.sin, (dp.ones(2),), (1j * dp.ones(2),)), "complex"),
        (lambda: dp.vjp(lambda x: {"a": x}, dp.ones(2))[1]({"b": dp.ones(2)}), "dicts like"),
        (lambda: dp.vjp(lambda x: "text", dp.ones(2)), "returned a str"),
        (lambda: dp.hvp(dp.sum, dp.ones(2), dp.ones(3)), r"hvp: .*shape \(3,\)"),
        (lambda: dp.grad(lambda x, y: dp.sum(x * y), (0, -2))(dp.ones(2), dp.ones(2)), "twice"),
        (lambda: dp.grad(dp.sum, 0.0)(dp.ones(2)), "argnums must be"),
        (lambda: dp.hessian(dp.sum, 1)(dp.ones(2)), "hessian: argnums"),
        (lambda: dp.grad(lambda x: dp.sum(x > 0))(dp.ones(2)), "int64, whose derivative is zero"),
        (lambda: dp.jacobian(dp.argsort)(dp.ones(2)), "whose derivative is zero"),
        (lambda: dp.custom_gradient(lambda x: x)(dp.ones(2)), "must return .value, rule."),
    ],
)
def test_wrong_uses_raise(call: Any, message: str) -> None:
    with pytest.raises(GradientError, match=message):
        call()


def test_results_share_no_memory_with_arguments() -> None:
    x = dp.asarray(3.0)
    y = dp.asarray([1.0, 2.0])
    value, _ = dp.value_and_grad(lambda x: x)(x)
    value += 1
    _, aux = dp.grad(lambda y: (dp.sum(y), (y, y[1:], y.reshape(1, 2))), has_aux=True)(y)
    for each in aux:
        each += 1
    moved = dp.jvp(lambda y: (y, y[:1]), (y,), (y,))
    for each in (*moved[0], *moved[1]):
        each += 1
    result, _ = dp.vjp(lambda y: y, y)
    result += 1
    assert float(x) == 3.0
    assert y.tolist() == [1.0, 2.0]
