"""The table is complete: an operation has a row, or raises an error that names it."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
import dparray.gradients  # fills the table
from dparray._graph import derivatives
from dparray._graph.ops import OPS
from dparray._graph.reductions import REDUCTIONS
from dparray.exceptions import GradientError
from dparray.gradients.calls import COMPOSED, CONSTANT, REASONS, ROWS, WRITING
from dparray.gradients.special import TEXTS

#: Public functions without a derivative and without a reason of their own.
WITHOUT = {
    *("apply_along_axis", "bincount", "distribute", "from_dlpack", "logspace", "nanmedian"),
    *("nanpercentile", "nanquantile", "poly", "polydiv"),
    *("ravel_multi_index", "roots", "sort_complex", "unravel_index", "linalg.lu_factor"),
}
#: Functions that are no computations, and those of kernels.
LEFT_OUT = (
    *("use_device", "profile", "explain", "simulate", "set_default_device", "prange", "printf"),
    *("load_ipython_extension", "unload_ipython_extension", "device_func", "kernel", "raw_kernel"),
    *("jit", "elementwise", "reduction", "implement", "vectorize", "group_", "vec_", "shift_group"),
    *("select_from", "permute_group", "any_of_group", "all_of_group", "none_of_group", "atomic"),
    *("reduce_over", "inclusive_scan", "exclusive_scan", "grad", "value_and_grad", "checkpoint"),
)


def test_each_operation_has_a_row() -> None:
    assert derivatives.OF_OPS.keys() == OPS.keys()
    assert derivatives.OF_REDUCTIONS.keys() == REDUCTIONS.keys()
    assert dp.special._FUNCTIONS.keys() | {"zeta"} == TEXTS.keys()


def test_a_row_has_a_derivative_for_each_operand() -> None:
    for name, texts in derivatives.OF_OPS.items():
        results = {types.rpartition(">")[2] for types in OPS[name].ufunc.types}
        if texts is None:
            assert "?" in results or name.startswith("bitwise"), name
        else:
            assert len(texts) == OPS[name].arity, name
    for name in dp.special._FUNCTIONS:
        assert len(TEXTS[name]) == len(dp.special._ROWS[name].parameters.split()), name


class Probe:
    """An operand that records the functions that are handed over to its class."""

    shape, ndim, size = (3,), 1, 3

    def __init__(self) -> None:
        self.functions: list[Callable[..., Any]] = []

    def __dparray_function__(self, function: Any, *_: Any) -> Any:
        self.functions.append(function)
        raise ZeroDivisionError


def _functions() -> dict[str, Callable[..., Any]]:
    named = {}
    for space in ("", "linalg.", "fft.", "special."):
        module = getattr(dp, space[:-1]) if space else dp
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isfunction(function) and not name.startswith(LEFT_OUT):
                named[space + name] = function
    return named


def test_each_function_that_takes_arrays_is_in_the_table() -> None:
    known = ROWS.keys() | COMPOSED.keys() | WRITING.keys() | CONSTANT | REASONS.keys()
    missing = set()
    for name, function in _functions().items():
        parameters = inspect.signature(function).parameters.values()
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        count = sum(p.default is p.empty and p.kind in by_position for p in parameters)
        for first in (Probe(), [Probe()]) if count else ():
            probe = first[0] if isinstance(first, list) else first
            with contextlib.suppress(Exception):
                function(first, *[1] * (count - 1))
            if probe.functions and probe.functions[0] not in known:
                missing.add(name)
    assert missing == WITHOUT


@pytest.mark.parametrize("name", ["roots", "nanmedian", "linalg.lu_factor"])
def test_a_function_without_a_rule_raises_with_its_name(name: str) -> None:
    function = _functions()[name]
    with pytest.raises(GradientError, match=rf"{name} has no derivative.*custom_gradient"):
        dp.grad(lambda x: dp.sum(function(x)))(dp.ones((2, 2)))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("multiply.at", lambda x: dp.multiply.at(x, 0, 2.0)),
        ("subtract.reduce", lambda x: dp.subtract.reduce(x)),
        ("maximum.accumulate", lambda x: dp.maximum.accumulate(x)),
        ("add.reduceat", lambda x: np.add.reduceat(x, [0, 1])),
    ],
)
def test_a_method_without_a_rule_raises_with_its_name(name: str, call: Any) -> None:
    with pytest.raises(GradientError, match=rf"^{name} has no derivative"):
        dp.grad(call)(dp.ones(2))


@pytest.mark.parametrize(
    ("method", "function"),
    [
        (lambda x: dp.add.reduce(x), lambda x: dp.sum(x, axis=0)),
        (lambda x: np.add.reduce(x, axis=1), lambda x: dp.sum(x, axis=1)),
        (lambda x: dp.add.reduce(x, None, initial=2.0), lambda x: dp.sum(x, initial=2.0)),
        (lambda x: dp.multiply.reduce(x, 1, keepdims=True), lambda x: dp.prod(x, 1, keepdims=True)),
        (lambda x: dp.minimum.reduce(x), lambda x: dp.min(x, axis=0)),
        (lambda x: dp.multiply.accumulate(x), lambda x: dp.cumprod(x, axis=0)),
        (lambda x: dp.add.accumulate(x, 1, "float32"), lambda x: dp.cumsum(x, 1, "float32")),
        (lambda x: dp.divide.outer(x, x[0]), lambda x: x[..., None] / x[0]),
        (lambda x: dp.power.outer(2.0, x), lambda x: 2.0**x),
    ],
)
def test_methods_of_ufuncs_have_the_derivatives_of_functions(method: Any, function: Any) -> None:
    x = dp.asarray([[0.5, 2.0, 1.5], [3.0, 0.25, 1.0]])
    assert np.allclose(method(x).asnumpy(), function(x).asnumpy())
    found, wanted = dp.jacobian(method)(x), dp.jacobian(function)(x)
    assert np.allclose(found.asnumpy(), wanted.asnumpy(), rtol=1e-5)


def test_a_composition_has_the_parameters_of_its_function() -> None:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    for function, composed in COMPOSED.items():
        own = inspect.signature(function).parameters
        for name, parameter in inspect.signature(composed).parameters.items():
            if parameter.kind not in variadic and name in own:
                assert parameter.default == own[name].default, (function, name)
