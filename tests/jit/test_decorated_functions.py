"""Compiled functions of decorated functions: they compute what the wrapper computes, or raise."""

import functools

import numpy as np
import pytest

import dparray as dp
from tests.support import runs_loops_on_host

VALUES = [1.0, 2.0, 3.0]


def doubled(f):
    @functools.wraps(f)
    def of_any_arguments(*args, **options):
        return 2 * f(*args, **options)

    return of_any_arguments


def doubled_one(f):
    @functools.wraps(f)
    def of_one_argument(x):
        return 2 * f(x)

    return of_one_argument


def signed(f):
    """Decorate like packages that copy the signature."""
    made = doubled(f)
    del made.__wrapped__
    made.__signature__ = functools.wraps(f)(lambda x: x)
    return made


class Doubled:
    def __init__(self, f):
        functools.update_wrapper(self, f)
        self.f = f

    def __call__(self, x):
        return 2 * self.f(x)


def squares(x):
    return dp.sum(x * x)


def square(v):
    return v * v


def scaled_squares(a, x):
    return a * dp.sum(x * x)


class Owner:
    def squares(self, x):
        return dp.sum(x * x)


compiled = dp.jit(squares)
compiled_square = dp.jit(square)

TAKEN = {
    "one argument": doubled_one(squares),
    "one argument, compiled inside": doubled_one(compiled),
}
REFUSED = {
    "any arguments": (doubled(squares), "below the decorator"),
    "any arguments, compiled inside": (doubled(compiled), "below the decorator"),
    "class": (Doubled(squares), "a Doubled, whose code"),
    "class, compiled inside": (Doubled(compiled), "a Doubled, whose code"),
    "bound method": (Owner().squares, "a bound method"),
    "partial": (functools.partial(scaled_squares, 3.0), "a partial"),
    "cache": (functools.lru_cache(squares), "a _lru_cache_wrapper"),
    "type": (Doubled, "not a Python function"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_wrapper_with_named_parameters_is_compiled(name):
    f = dp.jit(TAKEN[name])
    assert float(f(dp.asarray(VALUES))) == 28.0


@pytest.mark.parametrize("name", REFUSED)
def test_wrapper_that_cannot_be_compiled_is_refused(name):
    function, message = REFUSED[name]
    with pytest.raises(dp.exceptions.KernelArgumentError, match=message):
        dp.jit(function)


def test_copied_signature_does_not_hide_the_parameters_of_the_code():
    with pytest.raises(dp.exceptions.KernelArgumentError, match="any number of arguments"):
        dp.jit(signed(squares))


@pytest.mark.parametrize("decorate", [doubled, doubled_one, Doubled])
@pytest.mark.parametrize("inner", [squares, compiled])
def test_array_code_calls_the_wrapper(decorate, inner):
    f = decorate(inner)

    @dp.jit
    def caller(x):
        return f(x)

    assert float(caller(dp.asarray(VALUES))) == 28.0


def test_array_code_calls_methods_and_partial_functions():
    f, method = functools.partial(scaled_squares, 3.0), Owner().squares

    @dp.jit
    def caller(x):
        return f(x) + method(x)

    assert float(caller(dp.asarray(VALUES))) == 56.0


@pytest.mark.parametrize("inner", [square, compiled_square])
def test_loops_call_the_wrapper(inner):
    f = doubled_one(inner)

    @dp.jit
    def loop(x, out):
        for i in range(x.size):
            out[i] = f(x[i])

    @dp.jit
    def parallel(x, out):
        for i in dp.prange(x.size):
            out[i] = f(x[i])

    # The kernels of other devices call no functions without @dp.device_func.
    for each in (loop, parallel) if runs_loops_on_host() else (loop,):
        out = dp.zeros(3)
        each(dp.asarray(VALUES), out)
        assert out.tolist() == [2.0, 8.0, 18.0]


@pytest.mark.parametrize("decorate", [doubled, Doubled])
@pytest.mark.parametrize("inner", [square, compiled_square])
def test_loops_with_a_wrapper_without_compilable_code_run_in_python(monkeypatch, decorate, inner):
    monkeypatch.setattr("dparray._runtime.fallback._told", set())  # One warning for each line.
    f = decorate(inner)

    @dp.jit
    def loop(x, out):
        for i in range(x.size):
            out[i] = f(x[i])

    x, out, expected = dp.asarray(VALUES), dp.zeros(3), np.zeros(3)
    with pytest.warns(dp.FallbackWarning, match="run in Python"):
        loop(x, out)
    assert "runs in Python" in str(dp.explain(loop, x, out)) or not runs_loops_on_host()
    for i in range(3):
        expected[i] = f(x[i])
    np.testing.assert_array_equal(out.asnumpy(), expected)


TRANSFORMED = {
    "grad": dp.grad,
    "value_and_grad": dp.value_and_grad,
    "jacobian": dp.jacobian,
    "hessian": dp.hessian,
    "checkpoint": dp.checkpoint,
}


def _leaves(result):
    results = result if isinstance(result, tuple) else (result,)
    return [np.asarray(x.asnumpy() if hasattr(x, "asnumpy") else x).tolist() for x in results]


@pytest.mark.parametrize("name", TRANSFORMED)
def test_derivatives_of_compiled_functions(name):
    """``dp.grad(dp.jit(f))`` is what the error of ``dp.jit(dp.grad(f))`` recommends."""
    transform = TRANSFORMED[name]
    x = dp.asarray(VALUES)
    assert _leaves(transform(compiled)(x)) == _leaves(transform(squares)(x))


@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.parametrize("inner", [squares, compiled])
def test_derivatives_called_in_compiled_functions(name, inner):
    f = TRANSFORMED[name](inner)

    @dp.jit
    def caller(x):
        return f(x)

    x = dp.asarray(VALUES)
    assert _leaves(caller(x)) == _leaves(f(x))


@pytest.mark.parametrize("name", [name for name in TRANSFORMED if name != "checkpoint"])
@pytest.mark.parametrize("inner", [squares, compiled])
def test_compiled_derivatives(name, inner):
    f = TRANSFORMED[name](inner)
    compiled_derivative = dp.jit(f)
    for k in range(4):
        x = dp.asarray(VALUES) + k
        assert _leaves(compiled_derivative(x)) == _leaves(f(x))


@pytest.mark.parametrize("inner", [squares, compiled])
def test_checkpoints_are_not_compiled(inner):
    with pytest.raises(dp.exceptions.KernelArgumentError, match=r"such as dp\.grad; write"):
        dp.jit(dp.checkpoint(inner))
