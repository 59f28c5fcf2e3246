"""Derivatives of kernels: by finite differences, against array operations, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.gradients.kernels import Form, GatherKernel
from tests.gradients import device_code as code
from tests.gradients.random_kernels import compare
from tests.gradients.test_rules import name_of, product, slope, weighted

_random = np.random.default_rng(0)


def _normal(*shape: int) -> Any:
    return _random.normal(size=shape)


#: A kernel, its range, its output, and its arguments.
CASES: list[tuple[Any, Any, Any, tuple[Any, ...]]] = [
    (code.chain, 50, "x", (_normal(50), _normal(50))),
    (code.stencil, 50, "u", (_normal(50), _normal(50))),
    (code.heat, (6, 7), "u", (_normal(6, 7),)),
    (code.wrapped, 9, "u", (_normal(9),)),
    (code.behind, 10, 10, (_normal(9),)),
    (code.shifted, 9, 9, (_normal(12),)),
    (code.shifted, 7, 12, (_normal(12),)),
    (code.turned, (4, 5), (4, 5), (_normal(5, 6),)),
    (code.rows, 20, 20, (_normal(20, 7), _normal(20))),
    (code.pairwise, 20, 20, (_normal(20, 3), _normal(15, 3))),
    (code.among, 20, 20, (_normal(20, 3),)),
    (code.among, 300, 300, (_normal(300, 3),)),
    (code.among, 7, 7, (_normal(300, 2),)),
    (code.charges, 300, "x", (_normal(300), _normal(300))),
    (code.charges, 40, 40, (_normal(300), _normal(300))),
    (code.pairs_in_space, 9, 9, (_normal(9, 3), _normal(5, 3), _normal(3) ** 2)),
    (code.pairs_in_space, 9, 9, (_normal(9, 3), _normal(400, 3), _normal(3) ** 2)),
    (code.pairs_in_space, 9, 9, (_normal(9, 3), _normal(0, 3), _normal(3) ** 2)),
    (code.gather, 50, "x", (_normal(50), _random.integers(0, 50, 50))),
    (code.scatter, 6, "x", (_normal(6), _random.permutation(6))),
    (code.interleaved, 9, 18, (_normal(9),)),
    (code.store_in_branch, 30, "x", (_normal(30),)),
    (code.before_loop, 20, "x", (_normal(20), 7)),
    (code.conditional_sum, 30, "x", (_normal(30), _normal(11))),
    (code.conditional_sum, 9, "x", (_normal(9), _normal(400))),
    (code.pairwise, 7, 7, (_normal(7, 2), _normal(400, 2))),
    (code.reassigned, 30, "x", (_normal(30),)),
    (code.triangle, 10, 10, (_normal(10, 5),)),
    (code.window, 20, "x", (_normal(20), 2)),
    (code.largest, 10, 10, (_normal(10, 5),)),
    (code.recurrence, 10, 10, (_normal(10, 5),)),
    (code.fixed_recurrence, 10, "x", (_normal(10),)),
    (code.breaks, 20, "x", (_normal(20), _normal(9) * 0.6)),
    (code.breaks, 20, "x", (_normal(20), _normal(9) * 0.1)),
    (code.growth, 20, "x", (_normal(20),)),
    (code.newton, 20, "x", (_normal(20),)),
    (code.functions_of_device, 20, "x", (_normal(20), _normal(20))),
    (code.nested, 7, "b", (_normal(5, 5), _normal(7))),
    (code.three_loops, 9, "a", (_normal(9),)),
    (code.steps, 6, "x", (_normal(6), 3)),
    (code.steps, 6, "x", (_normal(6), 20)),
    (code.with_else, 26, "x", (_normal(26),)),
    (code.early_return, 29, "x", (_normal(29),)),
    (code.accumulated, 7, 7, (_normal(7, 5),)),
    (code.overwritten, 17, "a", (_normal(17),)),
    (code.reduction, 17, 2, (_normal(17), _normal(1))),
    (code.shared_weights, 999, "x", (_normal(999), _normal(3, 2))),
    (code.shared_weights, 5, "x", (_normal(5), _normal(3, 2))),
    (code.filtered, dp.NdRange((8, 20), (2, 4)), (8, 20), (_normal(22, 22), _normal(3, 3))),
    (code.blurred, (20, 20), (20, 20), (_normal(24, 24), _normal(5, 5))),
    (code.of_table, (20, 20), (20, 20), (_normal(20, 20), _normal(5, 5))),
    (code.powers, 29, "x", (np.abs(_normal(29)) + 0.1, _random.integers(-3, 4, 29))),
    (code.mathematics, 29, "x", (_normal(29), _normal(29))),
    (code.vectors, 6, 6, (_normal(6, 3),)),
    (code.parts, 6, 6, (_normal(6, 4),)),
    (code.private_powers, 9, "x", (_normal(9),)),
    (code.private_overwritten, 9, "x", (_normal(9), _random.integers(0, 9, 7), 12)),
    (code.private_in_loop, 9, 9, (_normal(9, 5),)),
    (code.in_groups, dp.NdRange((4, 8), (2, 4)), "x", (_normal(4, 8),)),
]


#: Kernels whose second derivatives are tested.
_TWICE = (
    *("chain", "heat", "wrapped", "reduction", "shared_weights", "fixed_recurrence", "rows"),
    "filtered",
    *(
        "pairs_in_space",
        "charges",
        "conditional_sum",
        "reassigned",
        "window",
        "growth",
        "mathematics",
    ),
)


def of_kernel(kernel: Any, space: Any, out: Any) -> Callable[..., Any]:
    """Return a scalar function of a kernel's inputs."""
    f = dp.differentiable(kernel, out=out)
    return weighted(lambda *inputs: f(space, *inputs))


@pytest.mark.parametrize(("kernel", "space", "out", "arguments"), CASES, ids=name_of)
def test_a_gradient_is_that_of_finite_differences(
    kernel: Any, space: Any, out: Any, arguments: tuple[Any, ...]
) -> None:
    f = of_kernel(kernel, space, out)
    places = [k for k, x in enumerate(arguments) if getattr(x, "dtype", "") == np.float64]
    inputs = [dp.asarray(x) if isinstance(x, np.ndarray) else x for x in arguments]
    random = np.random.default_rng(2)
    gradients = dp.grad(f, tuple(places))(*inputs)
    for place, gradient in zip(places, gradients, strict=True):

        def by_one(x: Any, place: int = place) -> Any:
            return f(*inputs[:place], x, *inputs[place + 1 :])

        along = random.normal(size=arguments[place].shape)
        expected = slope(by_one, [arguments[place]], [along], 1e-6)
        assert np.isclose(product([gradient], [along]), expected, rtol=1e-6, atol=1e-7), place


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(60))
def test_gradients_of_random_kernels(seed: int) -> None:
    compare(seed)


def same(first: Callable[..., Any], second: Callable[..., Any], *inputs: Any) -> None:
    """Compare values and gradients of two functions of arrays."""
    numbers = tuple(range(len(inputs)))
    value, gradients = dp.value_and_grad(first, numbers)(*inputs)
    other, expected = dp.value_and_grad(second, numbers)(*inputs)
    assert np.isclose(float(value), float(other))
    for ours, theirs in zip(gradients, expected, strict=True):
        assert (ours.dtype, ours.queue) == (theirs.dtype, theirs.queue)
        np.testing.assert_allclose(ours.asnumpy(), theirs.asnumpy(), rtol=1e-6, atol=1e-9)


def test_gradients_are_those_of_array_operations() -> None:
    heat = dp.differentiable(code.heat, out="u")
    pairwise = dp.differentiable(code.pairwise, out=8)

    def heat_of_arrays(u: Any) -> Any:
        v = u.copy()
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        v[1:-1, 1:-1] += 0.1 * (around - 4 * u[1:-1, 1:-1])
        return dp.sum(v**3)

    def pairwise_of_arrays(p: Any, q: Any) -> Any:
        distances = dp.sum((p[:, None] - q) ** 2, axis=2)
        return dp.sum(dp.sqrt(dp.sum(1 / dp.sqrt(distances + 0.1), axis=1)))

    u, p, q = (dp.asarray(_normal(*shape)) for shape in ((6, 5), (8, 3), (5, 3)))
    same(lambda u: dp.sum(heat((6, 5), u) ** 3), heat_of_arrays, u)
    same(lambda p, q: dp.sum(dp.sqrt(pairwise(8, p, q))), pairwise_of_arrays, p, q)


def test_gradients_of_arrays_that_are_read_as_a_whole_are_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied = []

    def adjoint(form: Form, wanted: Any, copies: Any = (), partly: Any = ()) -> Any:
        copied.extend(copies)
        return original(form, wanted, copies, partly)

    original = Form.adjoint
    monkeypatch.setattr(Form, "adjoint", adjoint)
    blurred, looked_up = (dp.differentiable(k, out=(20, 20)) for k in (code.blurred, code.of_table))
    x, w = dp.asarray(_normal(24, 24)), dp.asarray(_normal(5, 5))
    dp.grad(lambda w: dp.sum(blurred((20, 20), x, w)))(w)
    assert copied == ["w"]
    dp.grad(lambda w: dp.sum(looked_up((20, 20), x, w)))(w)
    assert copied == ["w"]


def test_stencils_are_gathers_and_others_are_not() -> None:
    def gathers(kernel: Any, name: str, *types: str) -> bool:
        form = Form(kernel, {"out": 1})
        return GatherKernel(form, name, int(types[0][-1])).program(types) is not None

    line = "item:1", "f8:1C", "f8:1C"
    assert gathers(code.shifted, "u", *line)
    assert gathers(code.wrapped, "u", *line)
    assert gathers(code.heat, "u", "item:2", "f8:2C", "f8:2C")
    assert gathers(code.turned, "u", "item:2", "f8:2C", "f8:2C")
    assert not gathers(code.window, "x", "item:1", "f8:1C", "i8", "f8:1C")
    assert not gathers(code.recurrence, "x", "item:1", "f8:2C", "f8:1C")
    assert gathers(code.pairwise, "q", "item:1", "f8:2C", "f8:2C", "f8:1C")
    assert gathers(code.among, "p", "item:1", "f8:2C", "f8:1C")
    assert gathers(code.charges, "x", *line, "f8:1C")
    assert gathers(code.charges, "w", *line, "f8:1C")
    assert gathers(code.conditional_sum, "y", *line, "f8:1C")
    assert not gathers(code.breaks, "y", *line, "f8:1C")
    assert not gathers(code.nested, "a", "item:1", "f8:2C", "f8:1C", "f8:1C")


def test_several_outputs_complex_numbers_and_names() -> None:
    both = dp.differentiable(code.two_outputs, b="x", a="x")
    x = dp.asarray(_normal(5))
    _, a = both(5, x)
    np.testing.assert_allclose(a.asnumpy(), np.sin(x.asnumpy()) * x.asnumpy())

    def first(x: Any) -> Any:
        b, a = both(dp.Range(5), x=x)
        return dp.sum(a) + 3 * dp.sum(b)

    same(first, lambda x: dp.sum(dp.sin(x) * x) + 3 * dp.sum(dp.sin(x) + 2 * x), x)
    same(lambda x: dp.sum(both(5, x)[0]), lambda x: dp.sum(dp.sin(x) + 2 * x), x)
    z = dp.asarray(_normal(4) + 1j * _normal(4))
    squared = dp.differentiable(code.of_complex, out="z")
    same(
        lambda z: dp.sum(dp.abs(squared(4, z)) ** 2),
        lambda z: dp.sum(dp.abs(z * z * 2j + dp.real(z)) ** 2),
        z,
    )


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_gradient_has_the_dtype_of_its_input(dtype: str) -> None:
    f = dp.differentiable(code.stencil, out="u")
    u, c = (dp.asarray(_normal(20), dtype=dtype) for _ in range(2))
    wide = [x.astype("float64") for x in (u, c)]
    gradient = dp.grad(lambda u, c: dp.sum(f(20, u, c) ** 2), (0, 1))
    for ours, expected in zip(gradient(u, c), gradient(*wide), strict=True):
        assert ours.dtype == dtype
        tolerance = 0.02 if dtype == "float16" else 1e-5
        np.testing.assert_allclose(ours.asnumpy(), expected.asnumpy(), tolerance, tolerance)


def test_conventions_are_those_of_arrays() -> None:
    x = dp.asarray([0.0, -1.0, 2.0])
    ties = dp.differentiable(code.equal_at_ties, out="x")
    root = dp.differentiable(code.guarded_root, out="x")
    assert dp.grad(lambda x: dp.sum(ties(3, x)))(x).tolist() == [1.5, -2.0, 5.0]
    assert dp.grad(lambda x: dp.sum(root(3, x)))(x).tolist() == [0.0, 0.0, 0.5 / 2**0.5]


@pytest.mark.parametrize(
    ("kernel", "space", "out", "arguments"),
    [case for case in CASES if case[0].__name__ in _TWICE],
    ids=name_of,
)
def test_second_derivatives(kernel: Any, space: Any, out: Any, arguments: tuple[Any, ...]) -> None:
    rest = [dp.asarray(x) if isinstance(x, np.ndarray) else x for x in arguments[1:]]
    f, x = of_kernel(kernel, space, out), arguments[0]
    gradient = dp.grad(lambda x: f(x, *rest) ** 2)
    along = np.random.default_rng(3).normal(size=x.shape)
    step = 1e-5
    pair = [gradient(dp.asarray(x + sign * step * along)).asnumpy() for sign in (1, -1)]
    expected = (pair[0] - pair[1]) / (2 * step)
    tolerance = 1e-7 * np.max(np.abs(expected))
    primal, tangent = dp.asarray(x), dp.asarray(along)
    _, found = dp.jvp(gradient, (primal,), (tangent,))
    np.testing.assert_allclose(found.asnumpy(), expected, 1e-5, tolerance)
    _, found = dp.jvp(gradient, (dp.asarray(np.stack([x, x], -1))[..., 0],), (tangent,))
    np.testing.assert_allclose(found.asnumpy(), expected, 1e-5, tolerance)
    _, pull = dp.vjp(gradient, primal)
    np.testing.assert_allclose(pull(tangent)[0].asnumpy(), expected, 1e-5, tolerance)
    _, slope = dp.jvp(lambda x: f(x, *rest) ** 2, (primal,), (tangent,))
    assert np.isclose(float(slope), product([gradient(primal)], [along]))


def test_a_second_derivative_through_a_tape_is_refused() -> None:
    f = of_kernel(code.recurrence, 3, 3)
    with pytest.raises(dp.GradientError, match="recurrence: only its first derivative is avail"):
        dp.hessian(f)(dp.asarray(_normal(3, 2)))


def test_arguments_are_read_as_they_were() -> None:
    f = dp.differentiable(code.stencil, out="u")

    def program(u: Any) -> Any:
        c = dp.asarray(np.ones(2000))
        y = f(2000, u, c)
        c[...] = 100.0
        return dp.sum(y**2)

    u = dp.asarray(_normal(2000))
    same(program, lambda u: dp.sum(f(2000, u, dp.ones(2000)) ** 2), u)
    same(
        lambda u: dp.sum(f(9, u[::2], u[:9])), lambda u: dp.sum(f(9, u[::2] * 1, u[:9] * 1)), u[:18]
    )


def test_a_jitted_gradient_replays_kernels() -> None:
    f = dp.differentiable(code.stencil, out="u")
    c = dp.asarray(_normal(20))
    both = dp.value_and_grad(lambda u: dp.sum(f(dp.Range(20), u, c) ** 2))
    fast = dp.jit(both)
    for _ in range(4):
        u = dp.asarray(_normal(20))
        value, gradient = fast(u)
        expected, other = both(u)
        assert np.isclose(float(value), float(expected))
        np.testing.assert_allclose(gradient.asnumpy(), other.asnumpy())


def test_elementwise_functions_have_gradients() -> None:
    def f(x: Any, y: Any) -> Any:
        total = code.smooth(x, y) ** 2 + code.smooth(0.3, y) + code.smooth(x, 1.5, k=3)
        return dp.sum(total) + dp.sum(code.smooth(x, [0.5, 1.0, 2.0]))

    x, y = _normal(4, 3), _normal(3)
    gradients = dp.grad(f, (0, 1))(dp.asarray(x), dp.asarray(y))
    along = [_normal(4, 3), _normal(3)]
    expected = slope(f, [x, y], along, 1e-6)
    assert np.isclose(product(gradients, along), expected, rtol=1e-6)
    assert dp.grad(lambda x: dp.sum(code.smooth(x, 0.5)))(dp.ones(3, dtype="float32")).dtype == "f4"

    def both(x: Any) -> Any:
        square, sine = code.square_and_sine(x)
        into = dp.zeros_like(x)
        code.smooth(x, 0.5, out=into)
        return dp.sum(square * sine) + 0 * dp.sum(into)

    same(both, lambda x: dp.sum(x * x * dp.sin(x)), dp.asarray(y))
    _, found = dp.jvp(dp.grad(lambda x: dp.sum(code.cubed(x))), [dp.asarray(y)], [dp.ones(3)])
    np.testing.assert_allclose(found.asnumpy(), 6 * y)
    # The cotangent of a sum is one number for all elements.
    many = dp.full(50_000, 2.0)
    _, found = dp.jvp(dp.grad(lambda x: dp.sum(code.cubed(x))), [many], [dp.ones(50_000)])
    assert dp.all(found == 12.0)
    assert dp.grad(lambda x: dp.sum(code.smooth(x, 0.5)))(dp.ones(0)).shape == (0,)


FACTOR = 2.0


@dp.kernel
def scaled(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i] * FACTOR


def test_a_changed_global_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = dp.grad(of_kernel(scaled, 2, "x"))
    before = gradient(dp.ones(2)).asnumpy()
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    np.testing.assert_allclose(gradient(dp.ones(2)).asnumpy(), 2.5 * before)


#: Kernels without a derivative, the statement that has none, and the reason.
REFUSED: list[tuple[Any, str, str]] = [
    (code.in_place, "x[i] = x[i] * 2", "writes x, which is not an output"),
    (code.read_after_write, "out[i] = x[i] + out[i - 1]", "reads out, which other work-items"),
    (code.squared_output, "out[i] = out[i] * out[i]", "needs the old value"),
    (code.at_barrier, "dp.group_barrier(", "at a barrier"),
    (code.with_local, "tile[", "local memory"),
    (code.sum_of_group, "dp.reduce_over_group", "combines values of several work-items"),
    (code.atomic_result, "fetch_add(x[i])", "fetch_add whose result it uses"),
    (code.atomic_maximum, "fetch_max", "an atomic fetch_max"),
    (code.both_ways, "fetch_add(x[i])", "with and without an atomic operation"),
    (code.large_array, "dp.PrivateArray", "a private array of 100 elements"),
    (code.chosen_array, "out[i] = a[i]", "accesses one of several arrays"),
    (code.gamma, "math.lgamma", "calls math.lgamma"),
]


@pytest.mark.parametrize(("kernel", "line", "reason"), REFUSED, ids=name_of)
def test_a_kernel_without_a_derivative_is_refused_with_its_line_before_the_launch(
    kernel: Any, line: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches = []
    monkeypatch.setattr(type(kernel), "_launch", lambda *given: launches.append(given))
    x = dp.ones(4)
    given = {"y": x, "tile": dp.LocalAccessor(4, dp.float64)}
    names = kernel._parameters
    inputs = [given.get(name, x) for name in names if name != "out"]
    in_groups = kernel in (code.at_barrier, code.with_local, code.sum_of_group)
    space = dp.NdRange((4,), (4,)) if in_groups else dp.Range(4)
    f = dp.differentiable(kernel, out="x")
    with pytest.raises(dp.GradientError) as caught:
        dp.grad(lambda x: dp.sum(f(space, x, *inputs[1:])))(x)
    text = str(caught.value)
    number = int(text.partition("line ")[2].partition(":")[0])
    with open(code.__file__) as file:
        assert line in file.read().splitlines()[number - 1]
    assert text.startswith(f"kernel {kernel.__name__}, line ")
    assert reason in text
    assert not launches


def test_wrong_outputs_are_refused() -> None:
    with pytest.raises(dp.GradientError, match=r"y='x'; an output is a parameter of kernel heat"):
        dp.differentiable(code.heat, y="x")
    with pytest.raises(dp.GradientError, match=r"dp.differentiable\(heat, out='u'\)"):
        dp.differentiable(code.heat)
    of_integers = dp.differentiable(code.gather, out="at")
    with pytest.raises(dp.GradientError, match="its outputs have integer dtypes"):
        dp.grad(lambda x: dp.sum(of_integers(4, x, dp.arange(4))))(dp.ones(4))
    f = dp.differentiable(code.heat, out="u")
    shards = dp.distribute(dp.ones(4), [dp.default_device()])
    with pytest.raises(dp.GradientError, match="a range over several devices"):
        f(dp.sharding.ShardedRange(shards), dp.ones(4))
    with pytest.raises(dp.GradientError, match="input 'u', which must be an array of dparray"):
        f(4, np.ones(4))
    with pytest.raises(dp.GradientError, match="first input of floats, which must be an array"):
        dp.differentiable(code.gather, out=4)(4, dp.arange(4), dp.arange(4))
    with pytest.raises(dp.GradientError, match="input 'u', which must be an array of dparray"):
        f(4, np.ones(4))
    with pytest.raises(dp.GradientError, match="first input of floats, which must be an array"):
        dp.differentiable(code.gather, out=4)(4, dp.arange(4), dp.arange(4))
    powers = dp.differentiable(code.powers, out="x")
    with pytest.raises(dp.GradientError, match="'n' is a differentiated number, but kernels"):
        dp.grad(lambda n: dp.sum(powers(4, dp.ones(4), n)))(2.0)
    with pytest.raises(dp.GradientError, match="its inputs are u, after the range; got 2"):
        f(4, dp.ones(4), dp.ones(4))
