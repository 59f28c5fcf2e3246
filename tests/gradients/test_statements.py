"""In-place statements, views, ``out=``, changed operands: the right gradient, or an error."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.exceptions import DTypeError, GradientError, HostConversionError, ShapeError
from dparray.gradients.bodies import _with_body

X = np.linspace(0.5, 2.0, 6)
D = np.random.default_rng(0).normal(size=6)


def check(f: Callable[[Any], Any]) -> None:
    """Compare both modes, and second derivatives, with finite differences."""
    x, d, step = dp.asarray(X), dp.asarray(D), 1e-6
    value, gradient = dp.value_and_grad(f)(x)
    assert np.isclose(float(value), float(f(dp.asarray(X))), rtol=1e-13)
    ahead, behind = (float(f(dp.asarray(X + s * step * D))) for s in (1, -1))
    reverse = float(np.sum(gradient.asnumpy() * D))
    assert np.isclose(reverse, (ahead - behind) / (2 * step), rtol=1e-7, atol=1e-7)
    assert np.isclose(float(dp.jvp(f, (x,), (d,))[1]), reverse, rtol=1e-10, atol=1e-12)
    ahead, behind = (dp.grad(f)(dp.asarray(X + s * step * D)).asnumpy() for s in (1, -1))
    product = dp.hvp(f, x, d).asnumpy()
    assert np.allclose(product, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-6)
    assert x.asnumpy().tolist() == X.tolist()


def assignments(x: Any) -> Any:
    y = x * 1
    y[1:3] = x[0] * 2 * x[3:5]
    y += x * x
    y[0] *= x[2]
    y[dp.asarray([0, 4])] = dp.sin(x[1:3])
    y[y > 3] = x[1]
    y[...] = y * 2
    y[1] = 0.5
    y[2:4] = [x[0], 1.0]
    return dp.sum(y * y)


def heat(x: Any) -> Any:
    u = x.copy()
    for _ in range(3):
        u[1:-1] += 0.1 * (u[:-2] + u[2:] - 2 * u[1:-1])
    return dp.sum(u * u)


def filled(x: Any) -> Any:
    y = dp.zeros_like(x)
    y[1:] = x[:-1] ** 2
    y[0] = x[-1]
    z = dp.empty_like(x, shape=(2, 3))
    z[0] = x[:3]
    z[1] = y[3:] * 2
    o = dp.ones_like(x)
    o -= y
    return dp.sum(y * x) + dp.sum(z**3) + dp.sum(o * o * o)


def outputs(x: Any) -> Any:
    y = x * 1
    dp.multiply(y, x, out=y)
    np.add(y, 1, out=y)
    dp.sin(x, out=y, where=x > 1)
    dp.sum(dp.stack([x, y]), axis=0, out=y)
    return dp.sum(y**2)


def methods(x: Any) -> Any:
    y = x * 1
    y.sort()
    y.put([0, 2], x[1:3])
    z = x * 2
    z.fill(x[1])
    dp.put_along_axis(z, dp.asarray([1]), x[2:3], 0)
    dp.copyto(y[1:2], x[:1])
    dp.putmask(y, x > 1.5, x * x)
    dp.place(z, x > 1.8, x[:1])
    dp.add.at(z, dp.asarray([0, 0, 3]), x[:3])
    m = dp.reshape(x[:4] * 1, (2, 2)).copy()
    dp.fill_diagonal(m, x[5])
    return dp.sum(y * y) + dp.sum(z**3) + dp.sum(m**2 * m[0, 1])


def written_view(x: Any) -> Any:
    y = x * 1
    v = y[1:4]
    v += x[0]
    v *= v
    return dp.sum(y * y) + dp.sum(v)


def view_sees_writes(x: Any) -> Any:
    y = x * 1
    v, w = y[::2], y[1:4][::-1]
    y[2] = x[0] * x[1]
    w[0] *= 3
    y += 1
    return dp.sum(v**2) + dp.sum(w * y[:3]) + dp.sum(y**3)


def views_of_views(x: Any) -> Any:
    y = dp.reshape(x * 1, (2, 3))
    t = y.T
    row = t[1]
    row *= x[0]
    t[0][1:] = x[3] ** 2
    flat = y.ravel()
    flat[4] += row[0]
    y.mT[2, 0] = 2 * x[1]
    squeezed = dp.expand_dims(y, 0).squeeze(0)
    squeezed[0, 0] = row[1]
    dp.flip(y, axis=1)[1, 0] *= 2
    part, _ = dp.split(y, [1], axis=1)
    part += 1
    dp.moveaxis(y, 0, 1)[1] += x[2]
    return dp.sum(y**2 * dp.asarray(X.reshape(2, 3))) + dp.sum(flat**3)


def rows_of_a_loop(x: Any) -> Any:
    y = dp.reshape(x * 1, (3, 2))
    for number, row in enumerate(y):
        row *= number + x[0]
    return dp.sum(y**2)


def repeated_indices(x: Any) -> Any:
    y = x * 1
    y[[0, 0, 1]] += x[1:4]
    y[dp.asarray([4, 5, 4])] = x[0]
    z = dp.stack([x, x * x])
    z[1, dp.asarray([[2, 2], [3, 2]])] = dp.reshape(x[:2], (2, 1)) * x[4:]
    z.put([0, 0], x[2:4])
    return dp.sum(y**3) + dp.sum(z**2 * x)


def written_argument(x: Any) -> Any:
    v = x[2:]
    x *= 2
    x[0] = 0
    return dp.sum(x * x) + dp.sum(v)


PROGRAMS = [
    *(assignments, heat, filled, outputs, methods, written_view, view_sees_writes),
    *(views_of_views, rows_of_a_loop, repeated_indices, written_argument),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_statements_have_gradients(program: Callable[[Any], Any]) -> None:
    check(program)


def test_an_element_is_a_copy_not_a_view() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        first = y[0]
        y[0] = 5.0
        return dp.sum(y) + first

    check(f)


@dp.kernel
def _zero(item: Any, x: Any) -> None:
    x[item.get_id(0)] = 0


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w.__setitem__(Ellipsis, 0.0),
        lambda w: w.__setitem__(slice(0, 3), 0.0),
        lambda w: dp.call_kernel(_zero, dp.Range(6), w),
        lambda w: dp.multiply(w, 0, out=w),
    ],
)
def test_operands_may_change_after_they_were_used(change: Any) -> None:
    at = np.array([3, 0, 5, 5, 1, 2])

    def run(x: Any, changes: bool) -> Any:
        w, indices = dp.asarray(X[::-1].copy()), dp.asarray(at)
        pending = dp.asarray(X) + 1
        mask = w > 1
        y = dp.sum(x * w + x[indices] * pending) + dp.sum(x[mask]) + (w @ x) ** 2
        y = y + dp.sum(dp.where(mask, x, w))
        if changes:
            change(w)
            pending *= 0
            indices[...] = 0
            mask[...] = False
        return y

    x = dp.asarray(X)
    expected = dp.grad(lambda x: run(x, False))(x).asnumpy()
    assert np.allclose(dp.grad(lambda x: run(x, True))(x).asnumpy(), expected, rtol=1e-13)


def test_changes_of_an_outer_array_do_not_reach_inner_tapes() -> None:
    def f(x: Any) -> Any:
        w = x * 1

        def inner(y: Any) -> Any:
            z = dp.sum(y * y * w)
            w[...] = w * 0
            return z

        return dp.sum(dp.grad(inner)(x * 2))

    # The gradient of inner is 2 * y * w = 4 * x**2 with the values before the change.
    gradient = dp.grad(f)(dp.asarray(X)).asnumpy()
    assert np.allclose(gradient, 8 * X)


def leak(x: Any) -> Any:
    leaked.append(x)
    return dp.sum(x)


leaked: list[Any] = []


def test_an_array_that_outlives_its_function_raises() -> None:
    leaked.clear()
    dp.grad(leak)(dp.asarray(X))
    (x,) = leaked
    captured = dp.grad(lambda y: dp.sum(y * x))
    for use in (lambda: x + 1, lambda: dp.sum(x), lambda: captured(dp.ones(6))):
        with pytest.raises(GradientError, match="has ended"):
            use()


_LOSSES: dict[str, Callable[[Any], Any]] = {
    "float": lambda x: float(x[0]),
    "int": lambda x: int(x[0]),
    "complex": lambda x: complex(x[0]),
    "math": lambda x: math.sin(x[0]),
    "item": lambda x: x[0].item(),
    "tolist": lambda x: x.tolist(),
    "asnumpy": lambda x: x.asnumpy(),
    "dp.asnumpy": lambda x: dp.asnumpy(x),
    "np.asarray": lambda x: np.asarray(x),
    "np.array of a list": lambda x: np.array([x[0], x[1]]),
    "pickle": lambda x: pickle.dumps(x),
    "to_device": lambda x: x.to_device(x.queue),
    "kernel": lambda x: dp.call_kernel(_zero, dp.Range(6), x),
    "kernel by index": lambda x: _zero[6](x),
    "elementwise": lambda x: _of_lgamma(x),
    "reduction": lambda x: dp.reduction(lambda a, b: a + b, identity=0)(x),
    "save": lambda x: dp.save("/nowhere", x),
    "unique": lambda x: dp.unique(x),
    "histogram": lambda x: dp.histogram(x),
    "random": lambda x: dp.random.normal(x, 1.0),
    "generator": lambda x: dp.random.default_rng(1).normal(x, 1.0),
    "in a plain array": lambda x: dp.zeros(6).__setitem__(0, x[0]),
    "in a plain array by a mask": lambda x: dp.zeros(6).__setitem__(dp.ones(6) > 0, x),
    "out=": lambda x: dp.add(x, 1, out=dp.zeros(6)),
    "iadd": lambda x: dp.zeros(6).__iadd__(x),
    "sharded": lambda x: dp.distribute(x, [dp.default_device()]),
    "bits": lambda x: x & 1,
    "reshape of a transpose": lambda x: _write_doubtful(x),
    "broadcast": lambda x: dp.broadcast_to(x, (2, 6)).__setitem__(0, 1.0),
    "imag": lambda x: (x * 1j).imag.__setitem__(0, 1.0),
    "gammainc": lambda x: dp.special.gammainc(x, 1.0),
}


@dp.elementwise
def _of_lgamma(v: Any) -> Any:
    return math.lgamma(v)


def _write_doubtful(x: Any) -> None:
    flat = dp.reshape(dp.reshape(x, (2, 3)).T, (6,))
    flat += 1


@pytest.mark.parametrize("name", _LOSSES)
def test_what_would_lose_a_gradient_raises(name: str) -> None:
    def f(x: Any) -> Any:
        _LOSSES[name](x)
        return dp.sum(x)

    with pytest.raises((GradientError, TypeError)) as error:
        dp.grad(f)(dp.asarray(X))
    if name != "bits":
        assert isinstance(error.value, GradientError), error.value


def test_statements_that_do_not_fit_raise() -> None:
    with pytest.raises(ShapeError):
        dp.grad(lambda x: dp.sum(x.__iadd__(dp.ones((2, 6)))))(dp.asarray(X))
    with pytest.raises(DTypeError):
        dp.grad(lambda x: dp.sum(x.__iadd__(1j)))(dp.asarray(X))
    with pytest.raises(HostConversionError):
        dp.grad(lambda x: dp.sum(x * X))(dp.asarray(X))


def test_control_flow_follows_values() -> None:
    def f(x: Any) -> Any:
        y = dp.sum(x)
        if y > 0 and bool(x[0] < 1):
            y = y * 2
        for number in range(int(dp.argmax(x))):
            y = y + x[number]
        return y

    check(lambda x: f(x) ** 2)


def test_values_may_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        print(f"{dp.sum(x):.2f} {x[0]}")
        return dp.sum(x)

    dp.grad(f)(dp.asarray(X))
    assert capsys.readouterr().out == "7.50 Traced(array(0.5))\n"


def test_array_code_finds_the_namespace() -> None:
    check(lambda x: x.__array_namespace__().sum(x**3))


def test_copies_are_recorded() -> None:
    check(lambda x: dp.sum(copy.copy(x) * copy.deepcopy(x)))


def test_integers_of_traced_arrays_are_plain() -> None:
    def f(x: Any) -> Any:
        assert type(x > 1) is dp.ndarray
        assert type(dp.argsort(x)) is dp.ndarray
        assert type(x.astype("int32")) is dp.ndarray
        assert 0.5 in x
        assert x.shape == (6,)
        assert len(x) == x.size == 6
        assert x.queue == dp.default_device().queue
        return dp.sum(x * x.astype("int32"))

    assert dp.grad(f)(dp.asarray(X)).tolist() == X.astype("int32").tolist()


def test_compiled_functions_of_array_code_have_gradients() -> None:
    @dp.jit
    def compiled(x: Any, a: float) -> Any:
        return dp.sum(dp.sin(x) * a)

    check(lambda x: compiled(x, 2.0))


def test_numpys_functions_of_traced_arrays_have_gradients() -> None:
    check(lambda x: np.sum(np.sin(x) * np.float64(2)) + np.concatenate([x, x]).mean())
    check(lambda x: np.linalg.norm(x) + np.add(x, 1.0).sum())
    check(lambda x: pytest.importorskip("scipy.special").erf(x).sum())
    check(lambda x: np.einsum("i,i->", x, x, optimize=True))


@pytest.mark.parametrize("transform", [dp.checkpoint, lambda f: dp.custom_gradient(twice(f))])
def test_functions_with_their_own_rule_may_write_to_their_arguments(transform: Any) -> None:
    def doubled(x: Any) -> Any:
        x *= 2
        return x

    def f(x: Any) -> Any:
        y = x * 3
        z = transform(doubled)(y)
        return dp.sum(z * y)

    x = dp.asarray(X)
    assert np.allclose(dp.grad(f)(x).asnumpy(), 36 * X)
    assert np.array_equal(x.asnumpy(), X)


def twice(f: Any) -> Any:
    return lambda x: (f(x), lambda g: 2 * g)


@pytest.mark.parametrize("kept", [lambda x: x * x, lambda x: x[::2] * x[1::2], lambda x: dp.sin(x)])
def test_a_write_after_the_forward_pass_does_not_reach_the_tape(kept: Any) -> None:
    for n in (6, 60_000):
        values = np.linspace(0.5, 1.5, n)
        x = dp.asarray(values)
        _, pull = dp.vjp(lambda x: dp.sum(kept(x)), x)
        expected = dp.grad(lambda x: dp.sum(kept(x)))(dp.asarray(values)).asnumpy()
        x[...] = 7
        assert np.allclose(pull(dp.ones(()))[0].asnumpy(), expected)


def test_additions_to_slices_read_nothing() -> None:
    def f(x: Any) -> Any:
        y = x * 1.5
        y[1:-1] -= x[:4] * x[2:]
        y[::-1] += y
        y[1:][:2] += x[0]
        y[1:5][::2] += x[:2]
        return dp.sum(y**3)

    check(f)


def test_bodies_keep_dtypes_queues_and_errors() -> None:
    single = dp.asarray(np.arange(12.0).reshape(3, 4) ** 2, dtype="float32")
    for function in (
        lambda x: dp.sum(dp.cov(x)),
        lambda x: dp.sum(dp.concat([x, x], dtype="float64")),
        lambda x: dp.sum(dp.nanmean(x, axis=0, dtype="float64")),
    ):
        value, gradient = dp.value_and_grad(function)(single)
        assert value.dtype == function(single).dtype == np.float64
        assert gradient.dtype == np.float32
    x = dp.ones(4, device=dp.Device("cpu").new_queue())
    for function in (
        lambda x: dp.sum(dp.block([[x, 1.0]])),
        lambda x: dp.sum(dp.append(x, 2.0)),
        lambda x: dp.average(x, weights=[1.0, 2.0, 3.0, 4.0]),
    ):
        assert dp.grad(function)(x).queue == x.queue
    with pytest.raises(dp.ExecutionPlacementError, match="vstack: "):
        dp.grad(lambda x: dp.sum(dp.vstack([x, dp.ones(4)])))(x)
    with pytest.raises(GradientError, match="roll: has no derivative with these"):
        dp.grad(lambda x: dp.sum(_with_body(dp.roll)(x, 3)))(x)


def test_views_by_bodies_are_written_through() -> None:
    def f(x: Any) -> Any:
        x = x * 1.0
        turned = dp.rot90(x)
        turned[0] *= 3
        mirrored = dp.fliplr(x)
        mirrored[:, 0] += 1
        return dp.sum(x * x) + dp.sum(dp.linalg.diagonal(x))

    gradient = dp.grad(f)(dp.asarray(np.arange(6.0).reshape(2, 3)))
    assert gradient.tolist() == [[1.0, 2.0, 42.0], [6.0, 9.0, 96.0]]
    trimmed = dp.grad(lambda x: dp.sum(dp.trim_zeros(x) ** 2))(dp.asarray([0.0, 2.0, 3.0, 0.0]))
    assert trimmed.tolist() == [0.0, 4.0, 6.0, 0.0]
