"""Python numbers made of elements compute as Python's, in every form of compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.jit.forms import FORMS, compiled, function_of, uncompiled

_INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
#: Expressions of Python integers made of two elements.
_OF_INTEGERS = (
    "abs(int(a) - int(b))", "(int(a) - int(b)) * 0.5", "(int(a) - int(b)) / 2",
    "(int(a) - int(b)) >> 1", "(int(a) - int(b)) // 2", "(int(a) - int(b)) % 3",
    "(int(a) - int(b)) < 0", "max(int(a) - int(b), 0)", "min(int(a), -1)", "-int(a)", "~int(a)",
    "abs(int(a))", "round(a) - round(b)", "a.item() - b.item()", "int(round(a)) - int(b)",
    "math.floor(a) - math.ceil(b)", "divmod(int(a) - int(b), 4)[0]",
    "divmod(int(a) - int(b), 4)[1]", "bool(a) - int(b)", "int(a > 3) - int(b)",
    "math.sqrt(abs(int(a) - int(b)))", "int(a) if int(a) > 3 else int(a) - int(b)",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", _INTEGERS)
def test_python_integers_of_elements(dtype: str, form: str) -> None:
    high = min(np.iinfo(dtype).max, 2**52)  # beyond which Python's math.floor loses digits
    low = -high if dtype.startswith("int") else 0
    a = np.array([3, 100, 7, 0, high, low], dtype)
    b = np.array([5, 1, 7, high, 9, 2], dtype)
    operands = {"a": a, "b": b}
    for text, own, right in zip(
        _OF_INTEGERS,
        compiled(form, _OF_INTEGERS, operands),
        uncompiled(_OF_INTEGERS, operands),
        strict=True,
    ):
        np.testing.assert_array_equal(own, right, text)


def test_an_index_of_unsigned_elements_is_signed() -> None:
    @dp.kernel
    def fill(item: dp.Item, x: dp.ndarray, n: dp.ndarray, m: dp.ndarray) -> None:
        i = item.get_id(0)
        x[int(n[i]) - int(m[i])] = i + 1

    @dp.jit
    def fill_in_order(x: dp.ndarray, n: dp.ndarray, m: dp.ndarray) -> None:
        for i in range(n.size):
            for k in range(int(m[i]) - int(n[i])):  # no iteration where it is negative
                x[int(n[i]) - int(m[i]) + k] = i + 1

    n, m = (dp.asarray(each, dtype="uint8") for each in ([5, 3], [2, 4]))
    x, y = dp.zeros(8, dtype="int64"), dp.zeros(8, dtype="int64")
    dp.call_kernel(fill, dp.Range(2), x, n, m)
    fill_in_order(y, n, m)
    assert x.tolist() == [0, 0, 0, 1, 0, 0, 0, 2]
    assert y.tolist() == [0, 0, 0, 0, 0, 0, 0, 2]


@pytest.mark.parametrize("loop", ["range", "prange"])
def test_python_floats_of_elements_are_double(loop: str) -> None:
    texts = ("float(a) * float(b)", "a.item() * b.item()", "float(a) + 1e-9", "float(a) * b",
             "a.item() / 3", "round(a, 1) * b")  # fmt: skip
    operands = {name: np.array([0.1, 3.7, -2.5], "float32") for name in ("a", "b")}
    found = compiled(loop, texts, operands)
    for text, own, right in zip(texts, found, uncompiled(texts, operands), strict=True):
        np.testing.assert_array_equal(own, right, text)


#: Powers of Python integers that the forms of dp.jit compute, and those of all forms.
_POWERS = ("2 ** -int(b)", "10 ** (int(b) - 3)", "0.5 * 2 ** int(b)", "a.item() ** (int(b) - 1)",
           "math.sqrt(2 ** -int(b))", "1 - 3 * 2 ** (int(b) - 2)")  # fmt: skip
_POWERS_OF_ALL = ("int(a) ** -1", "pow(int(a), -2)", "2 ** -1", "1 ** -1", "2.0 ** -int(b)",
                  "2 ** abs(int(b))", "3 ** (int(a) & 3)", "2 ** max(int(b) - 1, 0)")  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_powers_of_python_integers(form: str) -> None:
    operands = {"a": np.array([3, 1, 7, 2], "int64"), "b": np.array([-2, -1, 3, 0], "int64")}
    is_jit = form in ("range", "prange", "checked")
    texts = _POWERS_OF_ALL + _POWERS * is_jit
    for text, own, right in zip(
        texts, compiled(form, texts, operands), uncompiled(texts, operands), strict=True
    ):
        np.testing.assert_allclose(own, right, rtol=1e-15, err_msg=text)
    for text in _POWERS if not is_jit and form != "simulate" else ():
        with pytest.raises(dp.exceptions.KernelCompileError, match=r"write float\(x\) \*\* k"):
            compiled(form, [text], operands)


def outcome(function: Callable[[Any], Any], x: dp.ndarray) -> Any:
    """Return the class of the error that a call raises, and what it leaves in its argument."""
    try:
        function(x)
    except ValueError as error:
        return type(error), x.tolist()
    return None, x.tolist()


@pytest.mark.parametrize("loop", ["range", "prange"])
def test_a_power_that_may_be_integer_or_float_is_refused(loop: str) -> None:
    loop_over = f"    for i in {'dp.prange' if loop == 'prange' else 'range'}(x.size):\n        "
    refused = {
        "def f(x):\n" + loop_over + "x[i] = 2 ** (int(x[i]) - 1)\n": r"float\(2\) \*\*.*max",
        "def f(x):\n" + loop_over + "k = 2 ** -int(x[i])\n        x[i] = k\n": "one type for it",
        "def f(x):\n" + loop_over + "x[i] = x[i] ** -1\n": r"-1 is not an integer\n.*float\(x",
        "def f(x):\n" + loop_over + "x[i] = dp.power(x[i], -2)\n": r"-2 is not an integer",
    }
    for text, message in refused.items():
        x = dp.asarray([2, 3])
        function = function_of(text)
        if loop == "range":
            with pytest.warns(dp.FallbackWarning, match=r"(?s)" + message):
                found = outcome(dp.jit(function), x)
            assert found == outcome(function, dp.asarray([2, 3]))
            continue
        with pytest.raises(dp.exceptions.KernelCompileError, match=r"(?s)" + message):
            dp.jit(function)(x)
        assert x.tolist() == [2, 3]
    count = function_of("def f(x):\n" + loop_over + "x[i] = 2 ** i + 3 ** len(x)\n")
    x = dp.zeros(5, dtype="int64")
    dp.jit(count)(x)
    assert x.tolist() == [2**i + 3**5 for i in range(5)]


@pytest.mark.parametrize("size", [3, 300_000])
def test_powers_of_integer_arrays_are_the_uncompiled_ones(size: int) -> None:
    def negative(x: dp.ndarray, k: int) -> dp.ndarray:
        return x * 2 ** (k - 3)

    def halves(x: dp.ndarray) -> dp.ndarray:
        return 2**-x + x**x

    def inverse(x: dp.ndarray) -> dp.ndarray:
        return dp.power(x, -1)

    x = dp.asarray(np.arange(size) % 3 - 1)
    for k in (1, 3, 5):
        own, right = dp.jit(negative)(x, k), negative(x, k)
        assert own.dtype == right.dtype
        np.testing.assert_array_equal(own.asnumpy(), right.asnumpy())
    np.testing.assert_array_equal(dp.jit(halves)(x).asnumpy(), halves(x).asnumpy())
    with pytest.raises(dp.ArgumentError, match="negative power -1"):
        dp.jit(inverse)(x)


@pytest.mark.parametrize("form", FORMS)
def test_logarithms_to_a_base(form: str) -> None:
    texts = ("math.log(a, 2)", "math.log(a, int(b))", "math.log(8, 2) + math.log(a)")
    operands = {"a": np.array([1.0, 3.0, 0.5]), "b": np.array([2, 10, 7])}
    found = compiled(form, texts, operands)
    for text, own, right in zip(texts, found, uncompiled(texts, operands), strict=True):
        np.testing.assert_allclose(own, right, rtol=1e-15, err_msg=text)
