"""Calls of device functions bind arguments as Python does: keywords, defaults, keyword-only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp


@dp.device_func
def line(x: Any, scale: Any = 2.0, shift: Any = 1) -> Any:
    return x * scale + shift


@dp.device_func
def scaled(x: Any, *, scale: Any = 4) -> Any:
    return x * scale


@dp.device_func
def digits(x: Any, tens: Any = 1, *, hundreds: Any) -> Any:
    return x + 10 * tens + 100 * hundreds


@dp.device_func
def moved(x: Any, by: Any = None) -> Any:
    if by is None:
        return x + 1
    return x + by


@dp.device_func
def chained(x: Any, *, up: bool = True, weights: Any = (1, 2)) -> Any:
    step = weights[1] if up else -weights[0]
    return line(x, shift=step) + scaled(x, scale=3) + moved(x)


@dp.kernel
def calls(item: Any, x: Any, y: Any, n: Any) -> None:
    y[0] = line(x[0]) + line(x[0], shift=n) + line(shift=3.0, x=x[0])
    y[1] = line(x[0], 4, shift=5)
    y[2] = scaled(x[0]) + scaled(x[0], scale=n)
    y[3] = digits(x[0], hundreds=2)
    y[4] = digits(x[0], 3, hundreds=n) + digits(hundreds=n, tens=0, x=x[0])
    y[5] = moved(x[0]) + moved(x[0], n) + moved(x[0], by=0.5)
    y[6] = chained(x[0]) + chained(x[0], up=False, weights=(5, n))


EXPECTED = [3 + 5 + 5, 9, 4 + 3, 211, 331 + 301, 2 + 4 + 1.5, (4 + 3 + 2) + (-3 + 3 + 2)]


@pytest.mark.parametrize("debug", [False, True])
def test_calls_bind_arguments_as_python_does(debug: bool) -> None:
    x, y = dp.ones(1), dp.zeros(7)
    with dp.config.override(debug=debug):
        calls[1](x, y, 3)
    assert y.tolist() == EXPECTED
    host = np.zeros(7)
    dp.simulate(calls, 1, np.ones(1), host, 3)
    assert host.tolist() == EXPECTED


@dp.device_func
def any_names(x: Any, **others: Any) -> Any:
    return x


def others_by_name(item: Any, x: Any) -> None:
    x[0] = any_names(x[0], scale=3)


def by_position(item: Any, x: Any) -> None:
    x[0] = scaled(x[0], 3)


def left_out(item: Any, x: Any) -> None:
    x[0] = digits(x[0], 3)


def unknown_name(item: Any, x: Any) -> None:
    x[0] = line(x[0], offset=3)


def given_twice(item: Any, x: Any) -> None:
    x[0] = line(x[0], x=3)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (by_position, "scaled(x, *, scale=4): too many positional arguments"),
        (left_out, "missing a required"),
        (unknown_name, "got an unexpected keyword argument 'offset'"),
        (others_by_name, "any_names takes **others, and device code has no dict"),
        (given_twice, "multiple values for argument 'x'"),
    ],
)
def test_a_call_with_wrong_arguments_raises_pythons_error(
    function: Callable[..., Any], problem: str, debug: bool
) -> None:
    with dp.config.override(debug=debug), pytest.raises(dp.KernelCompileError) as caught:
        dp.kernel(function)[1](dp.ones(1))
    assert problem in str(caught.value)
    assert "^\n" in str(caught.value)
    assert "dparray_fault" not in str(caught.value)


@dp.device_func
def first_of(x: Any) -> Any:
    return x[0]


@dp.device_func
def counted_up(x: Any) -> Any:
    x[0] += 1
    return x[0]


taken = first_of


def test_read_only_arguments_include_those_of_called_functions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def kernel(item: Any, x: Any, out: Any) -> None:
        out[0] = taken(x)

    compiled = dp.kernel(kernel)
    x, out = dp.zeros(1), dp.zeros(1)
    compiled[1](x, out)
    assert "x" in compiled._only_read((x, out))
    monkeypatch.setitem(globals(), "taken", counted_up)
    compiled[1](x, out)
    assert "x" not in compiled._only_read((x, out))
    assert (x[0], out[0]) == (1, 1)
