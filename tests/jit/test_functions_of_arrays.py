"""Functions of arrays in compiled code: scalar operands, and the kinds of results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.jit.forms import function_of

#: Functions of an array of uint8, in which a number does not fit the array's dtype.
_DO_NOT_FIT = (
    "dp.where(x > 3, x, -1)", "dp.maximum(x, -1)", "np.minimum(300, x)", "dp.full_like(x, 300)",
    "dp.full(2, -1, dtype=dp.uint8)", "dp.asarray([300], dtype=dp.uint8)", "np.add(x, 300)",
    "np.multiply(x, -1)", "np.floor_divide(x, -3)", "np.bitwise_and(x, 300)", "np.power(x, 300)",
    "np.fmin(x, -1)", "np.left_shift(x, 300)", "x ** 300", "x << 300", "x.fill(300)",
    "x + np.uint8(300)", "np.remainder(x, 300)",
)  # fmt: skip


@pytest.mark.parametrize("size", [4, 200_000])
@pytest.mark.parametrize("text", _DO_NOT_FIT)
def test_a_scalar_operand_that_does_not_fit_is_refused(text: str, size: int) -> None:
    function = function_of(f"def f(x):\n    return {text}\n")
    x = dp.full(size, 7, dtype="uint8")
    for call in (function, dp.jit(function)):
        with pytest.raises(OverflowError):
            call(x)
    assert (x == 7).all()


@pytest.mark.parametrize("text", ["dp.maximum(v, x)", "dp.where(x > 3, x, v)", "np.add(x, v)",
                                  "dp.full_like(x, v)", "x + v"])  # fmt: skip
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint64"])
def test_an_argument_that_does_not_fit_is_refused(text: str, dtype: str) -> None:
    function = dp.jit(function_of(f"def f(x, v):\n    return {text}\n"))
    x = dp.asarray([3, 7], dtype=dtype)
    np.testing.assert_array_equal(function(x, 5).asnumpy(), function.py_func(x, 5).asnumpy())
    with pytest.raises(OverflowError):
        function(x, -1 if dtype[0] == "u" else 2**15)


@pytest.mark.parametrize("loop", ["range", "prange"])
def test_a_scalar_operand_of_elements_is_refused(loop: str) -> None:
    for text in ("np.maximum(x[i], -1)", "np.add(300, x[i])", "np.minimum(x[i], 256)"):
        body = f"def f(x):\n    for i in {'dp.' * (loop == 'prange')}{loop}(3):\n"
        function = dp.jit(function_of(f"{body}        x[i] = {text}\n"))
        with pytest.raises(OverflowError, match="does not fit into uint8"):
            function(dp.zeros(3, dtype="uint8"))


def test_functions_that_compare_take_any_integer() -> None:
    @dp.jit
    def compared(x: Any) -> Any:
        return np.less(x, -5), np.greater(x, 300), np.equal(x, -1), np.less_equal(300, x)

    x = dp.asarray([3, 200, 7], dtype="uint8")
    for own, right in zip(compared(x), compared.py_func(x), strict=True):
        np.testing.assert_array_equal(own.asnumpy(), right.asnumpy())


@pytest.mark.parametrize("text", [
    "x.sum(dtype=dp.float32)", "dp.sum(x, dtype=dp.float64)", "x.prod(dtype=np.int64)",
    "x.mean(dtype=dp.float32)", "np.searchsorted(x, 2)", "np.median(x)", "x.std(ddof=1)",
    "np.ptp(x)", "np.nanmax(x)", "np.count_nonzero(x)", "(x.sum(dtype=dp.float64), x.max())",
    "np.sum(x, axis=0, dtype=np.float64)", "len(x)", "x.size + 1", "x[0]", "x.sum() / 3",
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_results_have_the_kinds_of_the_uncompiled_function(text: str, dtype: str) -> None:
    function = dp.jit(function_of(f"def f(x):\n    return {text}\n"))
    x = dp.asarray([1, 5, 3], dtype=dtype)
    own, right = function(x), function.py_func(x)
    are_tuples = isinstance(right, tuple)
    for one, other in zip(*((own, right) if are_tuples else ([own], [right])), strict=True):
        assert type(one) is type(other)
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None)
        assert float(one) == pytest.approx(float(other), rel=1e-6)


_LOOP = "    s = 0\n    for i in range(x.size):\n        s += x[i]\n"


@pytest.mark.parametrize("before", ["", _LOOP], ids=["array code", "beside a loop"])
@pytest.mark.parametrize("text", [
    "dp.arange(lo, lo + 2, dtype=dp.uint64)", "dp.arange(1, 2, .1)", "dp.arange(0.0, 1.0, 0.1)",
    "dp.arange(2, 9, 3)", "dp.arange(3, dtype=dp.float32)",
    "(x.sum(axis=0) if lo else x.max(axis=0))", "dp.sum(x, axis=0) + 1 if lo else x",
])  # fmt: skip
def test_arrays_are_those_of_the_uncompiled_function(text: str, before: str) -> None:
    function = dp.jit(function_of(f"def f(x, lo):\n{before}    return {text}\n"))
    x, lo = dp.asarray([1.5, 2.5]), 2**53 + 1
    own, right = function(x, lo), function.py_func(x, lo)
    assert own.dtype == right.dtype
    assert own.tolist() == right.tolist()


@pytest.mark.parametrize("before", ["", _LOOP], ids=["array code", "beside a loop"])
def test_a_sum_of_floats_in_an_array_of_integers_is_refused(before: str) -> None:
    function = dp.jit(function_of(f"def f(x, y):\n{before}    x[1:] += y[:-1]\n    return x\n"))
    for call in (function, function.py_func):
        with pytest.raises(dp.exceptions.DTypeError, match="float64 does not fit out of dtype int"):
            call(dp.arange(5), dp.arange(5.0))
