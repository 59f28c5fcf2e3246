"""Every function takes its arguments with the names and the order of NumPy's documentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._functions.missing_names import PARAMETERS
from dparray._functions.public import PublicFunction

NAMESPACES = {
    "dp": (dp, np),
    "dp.linalg": (dp.linalg, np.linalg),
    "dp.fft": (dp.fft, np.fft),
    "dp.random": (dp.random, np.random),
    "dp.random.Generator": (dp.random.Generator, np.random.Generator),
    "dp.testing": (dp.testing, np.testing),
}
P = inspect.Parameter
#: Arguments that a function does not take, and the reasons.
EXCEPTIONS = {
    "dp.array2string": "the rest is handed on to NumPy's function",
    "dp.genfromtxt": "the rest is handed on to NumPy's function",
    "dp.clip": "its bounds are min and max by position, and a_min and a_max by name",
}


def shared() -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    """Return the functions of both modules, except those without a signature in NumPy."""
    for place, (ours, theirs) in NAMESPACES.items():
        for name in sorted(vars(ours)):
            own, numpy_function = getattr(ours, name), getattr(theirs, name, None)
            if name.startswith("_") or not inspect.isfunction(own) or isinstance(own, type):
                continue
            if not callable(numpy_function) or isinstance(numpy_function, np.ufunc):
                continue
            try:
                inspect.signature(numpy_function)
            except ValueError:
                continue
            yield f"{place}.{name}", own, numpy_function


def by_position(function: Callable[..., Any]) -> list[str]:
    kinds = (P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD)
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind in kinds]


CASES = list(shared())


@pytest.mark.static
def test_functions_take_numpys_arguments() -> None:
    missing = []
    for name, own, theirs in CASES:
        taken = inspect.signature(own).parameters.keys() | PublicFunction(own).names.keys()
        for parameter in inspect.signature(theirs).parameters.values():
            if parameter.kind in (P.VAR_POSITIONAL, P.VAR_KEYWORD) or name in EXCEPTIONS:
                continue
            if parameter.name not in taken | PARAMETERS.keys():
                missing.append(f"{name} has no {parameter.name}=")
    assert not missing


@pytest.mark.static
def test_arguments_have_numpys_order() -> None:
    other_order = []
    for name, own, theirs in CASES:
        renamed = PublicFunction(own).names
        ours = by_position(own)
        expected = [renamed.get(each, each) for each in by_position(theirs)]
        expected = [each for each in expected if each in ours]
        if ours[: len(expected)] != expected and name not in EXCEPTIONS:
            other_order.append(f"{name}: {ours}, not {expected}")
    assert CASES
    assert not other_order


def test_calls_take_numpys_names() -> None:
    x = dp.asarray([3.0, 1.0, 2.0])
    assert bool(dp.allclose(a=x, b=x))
    assert dp.concatenate(arrays=[x, x]).shape == (6,)
    assert float(dp.quantile(a=x, q=0.5)) == 2.0
    assert dp.sort(a=x).tolist() == [1.0, 2.0, 3.0]
    assert dp.max(a=x) == 3.0
    assert dp.fft.fft(a=x).shape == (3,)
    assert float(dp.linalg.det(a=dp.eye(2))) == 1.0
    assert dp.take_along_axis(arr=x, indices=dp.asarray([0]), axis=0).tolist() == [3.0]
    dp.fill_diagonal(a := dp.zeros((2, 2)), val=1)
    assert a.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_unsupported_options_accept_numpys_defaults() -> None:
    assert dp.zeros(2, like=None).shape == (2,)
    assert dp.identity(2, like=None).shape == (2, 2)
    assert dp.array([1], subok=False).shape == (1,)
    assert dp.sort(dp.asarray([2, 1]), order=None).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: dp.sort(x, order="f"), "sort: order= is not supported: arrays have no fields"),
        (lambda x: dp.zeros(3, like=x), "zeros: like= is not supported: .*device="),
        (lambda x: dp.identity(3, like=x), "identity: like= is not supported: .*device="),
        (lambda x: dp.broadcast_to(x, (2, 3), subok=True), "broadcast_to: subok= is not supported"),
        (lambda x: dp.percentile(x, 5, interpolation="lower"), "percentile: .*method= now"),
    ],
)
def test_unsupported_options_are_named(call: Callable[..., Any], words: str) -> None:
    with pytest.raises(dp.ArgumentError, match=words):
        call(dp.ones(3))


def test_an_argument_that_neither_has_is_pythons_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'bogus'"):
        dp.allclose(dp.ones(2), dp.ones(2), bogus=1)  # type: ignore[call-arg]
